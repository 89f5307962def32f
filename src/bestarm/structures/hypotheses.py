"""Hypotheses about the K means: which bases they are made of, at which scales, with which prior weight.

A hypothesis holds that f = μ 1 + g, g ~ N(0, σ² S), with S = Σ_b c_b F_b F_b' + diag(τ): bases F_b, each with a scale,
and what every arm has of its own. The intercept μ is flat or absent, σ² is unknown.
"""

from dataclasses import dataclass
from math import log
from typing import Protocol

from bestarm.core import Array, namespace
from bestarm.kernels import Exponential, Matern
from bestarm.structures.bases import Base, kernel_base, linear_base, sphere_centred, standardised


@dataclass(frozen=True)
class Hypothesis:
    """Which bases make up the means, with the scale `(...)` of each in units of σ², and the prior weight."""

    kind: str
    bases: tuple[str, ...]
    scales: tuple[Array, ...]
    own: float  # variance of what an arm has of its own, in units of σ²
    intercept: bool
    log_prior: float


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

    def hypotheses(self, bases: dict[str, Base], arms: int, budget: int, scaling: "Scaling") -> list[Hypothesis]: ...


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
    """f is linear in the features: through the centre of the sphere the arms lie on, or with any intercept.

    `residuals` adds a smooth residual of variance ρ K/B: as large as the budget can just see, if spread evenly.
    """

    name: str
    base: str
    intercept: bool
    residuals: tuple[float, ...] = ()
    residual: str = "exponential"
    log_prior: float = 0.0

    @property
    def nonlinear(self) -> bool:
        return bool(self.residuals)

    @property
    def needs(self) -> tuple[str, ...]:
        smooth = bool(self.residuals) and self.residual != "own"
        return (self.base, self.residual) if smooth else (self.base,)

    def hypotheses(self, bases: dict[str, Base], arms: int, budget: int, scaling: Scaling) -> list[Hypothesis]:
        dimension = bases[self.base].dimension
        one = namespace(dimension).ones_like(dimension)
        made = []
        for scale, weight in scaling.of(dimension, budget):
            prior = self.log_prior + weight
            for rho in self.residuals:
                size, share = rho * arms / budget, prior - log(len(self.residuals))
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

    def hypotheses(self, bases: dict[str, Base], arms: int, budget: int, scaling: Scaling) -> list[Hypothesis]:
        scales = scaling.of(bases[self.base].dimension, budget)
        return [Hypothesis(self.name, self.needs, (c,), 0.0, True, self.log_prior + w) for c, w in scales]


@dataclass(frozen=True)
class SeparateMeans:
    """The features say nothing: every arm has a mean of its own."""

    name: str = "separate"
    log_prior: float = -4.0
    nonlinear: bool = True
    needs: tuple[str, ...] = ()

    def hypotheses(self, bases: dict[str, Base], arms: int, budget: int, scaling: Scaling) -> list[Hypothesis]:
        scales = scaling.of(float(arms), budget)
        return [Hypothesis(self.name, (), (), float(c), True, self.log_prior + w) for c, w in scales]


def structures(features: Array, budget: int, kinds: tuple[Kind, ...], scaling: Scaling) -> Structures:
    """Return the hypotheses of `kinds` about arms with `features` `(..., K, d)`.

    Multiplying all features by a number or adding a number to each of them changes nothing.
    """
    arms = features.shape[-2]
    standard = standardised(features)
    make = {
        "centred": lambda: linear_base(sphere_centred(features)),
        "standard": lambda: linear_base(standard),
        "exponential": lambda: kernel_base(standard, Exponential()),
        "matern": lambda: kernel_base(standard, Matern(2.5)),
    }
    bases = {name: make[name]() for name in dict.fromkeys(name for kind in kinds for name in kind.needs)}
    made = [h for kind in kinds for h in kind.hypotheses(bases, arms, budget, scaling)]
    return Structures(bases, tuple(made))


KINDS: tuple[Kind, ...] = (
    Line("linear", "centred", intercept=False),
    Line("affine", "standard", intercept=True),
    Line("linear, smooth residual", "centred", intercept=False, residuals=(1.5, 6.0)),
    Line("affine, smooth residual", "standard", intercept=True, residuals=(1.5, 6.0)),
    SeparateMeans(),
    Smooth("exponential kernel", "exponential"),
    Smooth("Matérn kernel", "matern"),
)
