"""Hypotheses about the K means: which bases they are made of, at which scales, with which prior weight.

A hypothesis holds that f = μ 1 + g, g ~ N(0, σ² S), with S = Σ_b c_b F_b F_b' + diag(τ): bases F_b, each with a scale,
and what every arm has of its own. The intercept μ is flat or absent, σ² is unknown.
"""

from dataclasses import dataclass
from math import log
from typing import Protocol

from bestarm.core import Array, namespace
from bestarm.kernels import Exponential, Matern
from bestarm.structures.bases import Base, anchored, kernel_base, linear_base, roundness, sphere_centred, standardised


@dataclass(frozen=True)
class Hypothesis:
    """Which bases make up the means, with the scale `(...)` of each in units of σ², and the prior weight."""

    kind: str
    bases: tuple[str, ...]
    scales: tuple[Array, ...]
    own: float  # variance of what an arm has of its own, in units of σ²
    intercept: bool
    log_prior: Array | float


@dataclass(frozen=True)
class Structures:
    """All bases of a set of arms, and all hypotheses about their means."""

    bases: dict[str, Base]
    hypotheses: tuple[Hypothesis, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of hypotheses, each once."""
        return tuple(dict.fromkeys(h.kind for h in self.hypotheses))

    def members(self, kind: str) -> list[int]:
        """Return the places of the hypotheses of a kind."""
        return [j for j, h in enumerate(self.hypotheses) if h.kind == kind]


@dataclass(frozen=True)
class Arms:
    """What kinds of hypotheses are told of the arms: how many, their features, the pulls, how round, in which bases."""

    count: int
    features: int
    budget: int
    round: Array  # 1 on a sphere, 0 on none, (...)
    bases: dict[str, Base]


class Kind(Protocol):
    """A kind of hypothesis, at several scales."""

    @property
    def name(self) -> str: ...

    @property
    def nonlinear(self) -> bool:
        """Whether arms may differ in more than the features say linearly."""
        ...

    @property
    def needs(self) -> tuple[str, ...]:
        """The names of its bases."""
        ...

    def hypotheses(self, arms: Arms, scaling: "Scaling") -> list[Hypothesis]: ...


@dataclass(frozen=True)
class Scaling:
    """The scales tried: at scale 1 the whole budget, spread over a base's dimensions, gives signal to noise `least`.

    A smaller signal could not be found with this budget anyway, and believing in one stops exploration. Each further
    step costs `step` in log prior weight.
    """

    least: float = 4.0
    steps: tuple[float, ...] = (1.0, 4.0, 16.0, 64.0, 512.0, 4096.0)
    step: float = -0.7

    def of(self, dimension: Array, budget: int) -> list[tuple[Array, float]]:
        """Return scales `(...)` with their log prior weights."""
        return [(self.least * g / budget * dimension, self.step * k) for k, g in enumerate(self.steps)]


@dataclass(frozen=True)
class Line:
    """f is linear in the features: 0 at the centre of the arms, or with any intercept.

    Arms on a sphere were scaled to lie there, and zero is where they were scaled from; for other arms it is their
    middle, if any (`bases.anchored`). So between `on_sphere` and `off_sphere` is added to the log prior weight.
    `residuals` adds a smooth residual of variance ρ K/B: as large as the budget can just see, if spread evenly.
    """

    name: str
    base: str
    intercept: bool
    residuals: tuple[float, ...] = ()
    residual: str = "exponential"
    log_prior: float = 0.0
    on_sphere: float = 0.0
    off_sphere: float = 0.0

    @property
    def nonlinear(self) -> bool:
        return bool(self.residuals)

    @property
    def needs(self) -> tuple[str, ...]:
        smooth = bool(self.residuals) and self.residual != "own"
        return (self.base, self.residual) if smooth else (self.base,)

    def hypotheses(self, arms: Arms, scaling: Scaling) -> list[Hypothesis]:
        dimension = arms.bases[self.base].dimension
        one = namespace(dimension).ones_like(dimension)
        likely = self.log_prior + self.on_sphere * arms.round + self.off_sphere * (1 - arms.round)
        made = []
        for scale, weight in scaling.of(dimension, arms.budget):
            prior = likely + weight
            for rho in self.residuals:
                size, share = rho * arms.count / arms.budget, prior - log(len(self.residuals))
                scales, own = ((scale,), size) if self.residual == "own" else ((scale, size * one), 0.0)
                made.append(Hypothesis(self.name, self.needs, scales, own, self.intercept, share))
            if not self.residuals:
                made.append(Hypothesis(self.name, self.needs, (scale,), 0.0, self.intercept, prior))
        return made


@dataclass(frozen=True)
class Smooth:
    """f is a smooth function of the features, in whatever shape."""

    name: str
    base: str
    log_prior: float = -4.0
    nonlinear: bool = True

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.base,)

    def hypotheses(self, arms: Arms, scaling: Scaling) -> list[Hypothesis]:
        scales = scaling.of(arms.bases[self.base].dimension, arms.budget)
        return [Hypothesis(self.name, self.needs, (c,), 0.0, True, self.log_prior + w) for c, w in scales]


@dataclass(frozen=True)
class SeparateMeans:
    """The features say nothing: every arm has a mean of its own.

    The log prior weight rises from `log_prior` to `saturated` where there are as many features as arms: a line through
    all arms says nothing either, and is not simpler then.
    """

    name: str = "separate"
    log_prior: float = -4.0
    saturated: float = -1.0
    nonlinear: bool = True
    needs: tuple[str, ...] = ()

    def hypotheses(self, arms: Arms, scaling: Scaling) -> list[Hypothesis]:
        full = min(arms.features / arms.count, 1.0) ** 2
        prior = self.log_prior * (1 - full) + self.saturated * full
        scales = scaling.of(float(arms.count), arms.budget)
        return [Hypothesis(self.name, (), (), float(c), True, prior + w) for c, w in scales]


def structures(features: Array, budget: int, kinds: tuple[Kind, ...], scaling: Scaling) -> Structures:
    """Return the hypotheses of `kinds` about arms with `features` `(..., K, d)`.

    Multiplying all features by a number or adding a number to each of them changes nothing.
    """
    standard, sphere = standardised(features), sphere_centred(features)
    round = roundness(sphere)
    make = {
        "centred": lambda: linear_base(anchored(features, sphere, round)),
        "standard": lambda: linear_base(standard),
        "exponential": lambda: kernel_base(standard, Exponential()),
        "matern": lambda: kernel_base(standard, Matern(2.5)),
    }
    bases = {name: make[name]() for name in dict.fromkeys(name for kind in kinds for name in kind.needs)}
    arms = Arms(features.shape[-2], features.shape[-1], budget, round, bases)
    made = [h for kind in kinds for h in kind.hypotheses(arms, scaling)]
    return Structures(bases, tuple(made))


KINDS: tuple[Kind, ...] = (
    Line("linear", "centred", intercept=False, off_sphere=-1.0),
    Line("affine", "standard", intercept=True, on_sphere=-2.0),
    Line("linear, smooth residual", "centred", intercept=False, residuals=(1.5, 6.0), off_sphere=-1.0),
    Line("affine, smooth residual", "standard", intercept=True, residuals=(1.5, 6.0), on_sphere=-2.0),
    SeparateMeans(),
    Smooth("exponential kernel", "exponential"),
    Smooth("Matérn kernel", "matern"),
)
