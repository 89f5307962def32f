"""What a reward model is: totals in, estimates out. A model never sees a design."""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from bestarm.core import Array, Tally
from bestarm.errors import InputError
from bestarm.linalg import Candidates
from bestarm.models.checks import FitCheck, rank_of
from bestarm.models.law import Identity, Law
from bestarm.models.many import Believed
from bestarm.models.posterior import Effects, as_floats, noise_words, normal

OTHERWISE = (
    "The policy, which judges a stage by its own data, ended with {policy}; everything told speaks for {data}: {odds}."
)


@dataclass(frozen=True)
class Fit:
    """What a model makes of the data, for each arm `(..., k)`.

    `score` ranks the arms; `mean` is the estimated mean reward. They differ where the model is linear only behind a
    mean function: the score is x'θ, the mean h(x'θ).
    """

    score: Array
    mean: Array


class Model(Protocol):
    """A reward model: how means follow from features. `fit` alone is needed; then nothing is known of its error.

    `law` is that of its rewards. `structured` says that the model relates the arms by their features and knows how sure
    it is of that; `confirmed`, that results far from all others are set aside until they are. `otherwise` are the words
    where the policy ends with another arm than the model speaks for.
    """

    structured: ClassVar[bool] = False
    confirmed: ClassVar[bool] = False
    otherwise: ClassVar[str] = OTHERWISE

    @property
    def law(self) -> Law:
        return Identity()

    def fit(self, candidates: Candidates, tally: Tally) -> Fit:
        """Return estimates for all candidates from what was observed of them."""
        ...

    def standard_error(self, candidates: Candidates, tally: Tally, fit: Fit, noise_variance: float | None) -> Array:
        """Return the standard error of each mean `(..., k)`; the noise is estimated when its variance is None."""
        return np.full_like(fit.mean, np.nan)

    def posterior(
        self, features: Array, tally: Tally, noise_variance: float | None, draws: int = 4000, rng: Any = None
    ) -> Believed:
        """Return what `tally` says of the means of arms with `features` `(K, d)`, by that many draws."""
        return each_by_itself(tally, noise_variance, draws, rng, silence(self))

    def check(self, features: Array, tally: Tally, noise_variance: float | None) -> FitCheck:
        """Test the model against what repeats of the same arm say."""
        return FitCheck("nothing to check: no relation between the arms is assumed")

    @property
    def truth(self) -> "Model":
        """The model by which plausible truths are drawn, to plan."""
        raise InputError(
            "plans are made for the linear, logistic, poisson and means models, and for laws of one's own; "
            f"{type(self).__name__} does not say which truths are plausible"
        )

    def distinct(self, features: Array) -> tuple[Array, Array]:
        """Return the arms that may differ `(U, d)`, truths being linear in them, and which each arm is `(K,)`."""
        distinct, which = np.unique(features, axis=0, return_inverse=True)
        return distinct, which.ravel()


class LawModel(Model, Protocol):
    """Means h(x'θ), with the posterior under the prior that shrinks, and the test that goes with the law."""

    structured: ClassVar[bool] = True

    def posterior(
        self, features: Array, tally: Tally, noise_variance: float | None, draws: int = 4000, rng: Any = None
    ) -> Believed:
        effects = Effects.of(features)
        found = self.law.posterior(effects, as_floats(tally), noise_variance, draws, rng)
        return found.called(self.law.described(effects.rank, noise_words(noise_variance)))

    def check(self, features: Array, tally: Tally, noise_variance: float | None) -> FitCheck:
        mean = self.fit(Candidates.of(features), tally).mean
        return self.law.lack_of_fit(rank_of(features[tally.counts > 0]), mean, tally, noise_variance)

    @property
    def truth(self) -> Model:
        return self


def each_by_itself(tally: Tally, noise_variance: float | None, draws: int, rng: Any, why: str = "") -> Believed:
    """Return the posterior without structure."""
    found = normal(None, as_floats(tally), noise_variance, draws, rng)
    return found.called(f"each arm by itself, {noise_words(noise_variance)}{why}")


def silence(model: Any) -> str:
    """Return the words for a model that is no help."""
    return f"; {type(model).__name__} says nothing of its error, so features are unused"


@dataclass(frozen=True)
class FitOnly(Model):
    """Somebody else's model with `fit` and perhaps no more."""

    model: Any

    def fit(self, candidates: Candidates, tally: Tally) -> Fit:
        found: Fit = self.model.fit(candidates, tally)
        return found

    def posterior(
        self, features: Array, tally: Tally, noise_variance: float | None, draws: int = 4000, rng: Any = None
    ) -> Believed:
        return each_by_itself(tally, noise_variance, draws, rng, silence(self.model))


def model_of(given: Any) -> Model:
    """Return a model as it is; one that lacks what a `Model` has beyond `fit` is given it."""
    complete = all(hasattr(type(given), name) for name in vars(Model) if not name.startswith("_"))
    return given if complete else FitOnly(given)
