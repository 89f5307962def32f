"""Worlds that are plausible for some arms: truths drawn on their span, at a given gap or from a prior."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from bestarm.bandits import Bandit, Bernoulli, Gaussian
from bestarm.bandits import Poisson as PoissonNoise
from bestarm.errors import InputError
from bestarm.linalg import span_coordinates
from bestarm.models.glm import GLM, Identity, Logistic, Poisson
from bestarm.models.linear import Linear
from bestarm.models.means import Means
from bestarm.numbers import real
from bestarm.planning.rivals import Rivals, Spread

Prior: TypeAlias = float | Callable[[int, np.random.Generator], Any]

REACH = 6.0  # farthest predictor from the base in a plausible world: odds, or a ratio of counts, of 400
WAVE, TRIES = 250, 50  # so many draws at a time, so often, before a gap is called out of reach
INVERSE: dict[type, Callable[[float], float]] = {
    Identity: float,
    Logistic: lambda chance: math.log(chance / (1 - chance)),
    Poisson: math.log,
}


@dataclass(frozen=True)
class Counts(PoissonNoise):
    """Poisson rewards whose totals come in one draw: the sum S of n is Poisson, whatever n.

    Given S, the squares add up to S + 2C where C of the S(S − 1)/2 pairs share a reward. Pairs do so with chance 1/n,
    any two of them independently; C is drawn as normal with the mean and the variance that follow.
    """

    def totals(self, means: Any, times: Any, rng: np.random.Generator) -> tuple[Any, Any]:
        sums = rng.poisson(times * means).astype(np.float64)
        pairs, chance = sums * (sums - 1) / 2, 1 / np.maximum(times, 1)
        shared = pairs * chance + np.sqrt(pairs * chance * (1 - chance)) * rng.standard_normal(sums.shape)
        return sums, sums + 2 * np.maximum(shared, 0.0)


@dataclass(frozen=True, eq=False)
class Worlds:
    """Truths that are plausible for arms with `features` `(K, d)`: any direction of their span, at a given gap.

    With a `gap`, predictors are drawn on the span as `rivals` says, and scaled until the best and the second best
    mean are that far apart. Where a GLM cannot reach the gap with predictors within REACH of the base, the draw is
    repeated. With a `prior`, coefficients are N(0, prior I), or what a function `(size, rng) -> (size, d)` returns.
    `base` is the mean reward of an average arm, where the features have a constant in their span.
    """

    features: Any
    model: Any
    gap: float | None = None
    noise_variance: float | None = None
    prior: Prior | None = None
    base: float | None = None
    rivals: Rivals = Spread()

    def __post_init__(self) -> None:
        if (self.gap is None) == (self.prior is None):
            raise InputError("say how far the best arm is ahead: either gap= or prior=, the variance of coefficients")
        _positive(gap=self.gap, prior=None if callable(self.prior) else self.prior)
        law = f"rewards of the {type(self.link).__name__.lower()} model have the variance their mean implies"
        if isinstance(self.link, Identity):
            if self.noise_variance is None:
                raise InputError("noise_variance is needed: the variance of one reward around its mean")
            _positive(noise_variance=self.noise_variance)
        elif self.noise_variance is not None:
            raise InputError(f"noise_variance must not be given: {law}")
        if isinstance(self.link, Logistic) and self.gap is not None and self.gap >= 1:
            raise InputError(f"gap must be below 1 for chances of success; given {self.gap}")
        if self.base is not None:
            real(self.base, "base")
        if self.base is not None and not self.level:
            raise InputError("base needs features with a constant in their span; add an intercept")
        if not math.isfinite(self.offset):
            raise InputError(f"base must be a mean reward the model can have; given {self.base}")

    @property
    def link(self) -> Any:
        """The mean function h."""
        if isinstance(self.model, Linear | Means):
            return Identity()
        if isinstance(self.model, GLM) and isinstance(self.model.link, Logistic | Poisson | Identity):
            return self.model.link
        raise InputError("plans are made for the linear, logistic, poisson and means models")

    @property
    def noise(self) -> Any:
        """How rewards scatter."""
        if isinstance(self.link, Identity):
            return Gaussian(float(self.noise_variance or 0.0))
        return Bernoulli() if isinstance(self.link, Logistic) else Counts()

    @cached_property
    def offset(self) -> float:
        """The predictor of an average arm."""
        if self.base is None:
            return 0.0
        try:
            return INVERSE[type(self.link)](self.base)
        except (ValueError, ZeroDivisionError):
            return math.inf

    @cached_property
    def kinds(self) -> tuple[Any, Any]:
        """The arms that differ `(U, d)`, and which of them each arm is `(K,)`: equal arms are equally good."""
        if isinstance(self.model, Means):
            return np.eye(len(self.features)), np.arange(len(self.features))
        distinct, which = np.unique(self.features, axis=0, return_inverse=True)
        return distinct, which.ravel()

    @cached_property
    def basis(self) -> Any:
        """An orthonormal basis of the span `(U, r)`."""
        coordinates = span_coordinates(self.kinds[0])
        return coordinates[:, np.any(coordinates != 0, axis=0)]

    @cached_property
    def prepared(self) -> Any:
        """What the rivals need of the basis, kept since every block needs it."""
        return self.rivals.prepare(self.basis)

    @cached_property
    def level(self) -> bool:
        """Whether all arms can be raised by the same amount."""
        ones = np.ones(len(self.basis))
        return bool(np.allclose(self.basis @ (self.basis.T @ ones), ones, atol=1e-8))

    @property
    def dimension(self) -> int:
        """The number of directions in which the arms differ or lie."""
        return int(self.basis.shape[1])

    def predictors(self, size: int, rng: np.random.Generator) -> Any:
        """Return x'θ of the arms that differ in `size` worlds, `(size, U)`."""
        if self.gap is None:
            return self.offset + self._coefficients(size, rng) @ self.kinds[0].T
        found, count = [], 0
        for _ in range(TRIES):
            wave = self.rivals.draw(self.prepared, max(size, WAVE), rng)
            wave -= wave.mean(axis=-1, keepdims=True) * self.level
            scale, fits = self._scale(wave)
            found.append(self.offset + scale[fits, None] * wave[fits])
            count += int(fits.sum())
            if count >= size:
                return np.concatenate(found)[:size]
        widest = f"{self._apart(wave, self._steps(wave)).max():.2g}"
        raise InputError(f"gap {self.gap:g} is out of reach of these arms, where {widest} is rare; take a smaller one")

    def draw(self, size: int, rng: np.random.Generator) -> Bandit:
        """Return a stack of `size` worlds with the arms in random order, another in each."""
        means = self.link.value(self.predictors(size, rng)[:, self.kinds[1]])
        features = np.broadcast_to(self.features, (size, *self.features.shape))
        return Bandit(features, means, self.noise).shuffled(rng)

    def _coefficients(self, size: int, rng: np.random.Generator) -> Any:
        shape = (size, self.kinds[0].shape[1])
        if not callable(self.prior):
            return math.sqrt(self.prior or 0.0) * rng.standard_normal(shape)
        drawn = np.asarray(self.prior(size, rng), dtype=np.float64)
        if drawn.shape != shape or not np.isfinite(drawn).all():
            raise InputError(f"prior must return finite coefficients of shape {shape}; it returned {drawn.shape}")
        return drawn

    def _steps(self, wave: Any) -> Any:
        """Return factors `(65, size)` from 0 to where a predictor is REACH away from the base."""
        return np.linspace(0, 1, 65)[:, None] * REACH / np.abs(wave).max(axis=-1)

    def _apart(self, wave: Any, factor: Any) -> Any:
        """Return how far the best mean is above the second best, when each row is multiplied by a factor."""
        first, second = _best_two(wave)
        return np.subtract(*(self.link.value(self.offset + factor * end) for end in (first, second)))

    def _scale(self, wave: Any) -> tuple[Any, Any]:
        """Return by what to multiply each row for the gap, the smallest such factor, and which rows allow it."""
        if isinstance(self.link, Identity):
            with np.errstate(all="ignore"):
                scale = self.gap / np.subtract(*_best_two(wave))
            return scale, np.isfinite(scale)
        steps = self._steps(wave)
        wide = self._apart(wave, steps) >= self.gap
        at = np.maximum(wide.argmax(axis=0), 1)
        low, high = (np.take_along_axis(steps, row[None], axis=0)[0] for row in (at - 1, at))
        for _ in range(60):
            middle = (low + high) / 2
            short = self._apart(wave, middle) < self.gap
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return high, wide.any(axis=0)

    def hardness(self, size: int, rng: np.random.Generator) -> Any:
        """Return the gap as the theorem takes it in `size` worlds: Δ, or c_min times that of the predictors."""
        if isinstance(self.link, Identity) and self.gap is not None:
            return np.array([self.gap])
        predictors = self.predictors(size, rng)
        first, second = _best_two(predictors)
        return (first - second) * self.link.slope(predictors).min(axis=-1)


def _best_two(values: Any) -> tuple[Any, Any]:
    """Return the largest and the second largest of each row."""
    two = np.partition(values, -2, axis=-1)[..., -2:]
    return two[..., 1], two[..., 0]


def _positive(**values: float | None) -> None:
    for name, value in values.items():
        if value is not None:
            real(value, name, above=0)
