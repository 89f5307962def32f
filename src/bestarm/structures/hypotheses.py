"""Hypotheses about the K means: which bases they are made of, at which scales, with which prior weight.

A hypothesis holds that (Eq. 1 and 2 of docs/algorithms/auto.md)

    f = μ 1 + g,    g ~ N(0, σ² S),    S = Σ_b c_b F_b F_b' + diag(τ),    c = 4 (D/B) 4^i,

with bases F_b, each at a scale c_b, and τ what every arm has of its own. The intercept μ is flat or absent, σ² is
unknown. D is the dimension of a base and B the budget.
"""

from dataclasses import dataclass, replace
from math import log, prod
from typing import Protocol

import numpy as np

from bestarm.core import Array
from bestarm.kernels import Exponential, Matern, Radial
from bestarm.linalg import evened
from bestarm.structures.bases import (
    EXACT,
    Base,
    anchored,
    flattened,
    kernel_base,
    linear_base,
    of_replications,
    products,
    roundness,
    scaled,
    sphere_centred,
    standardised,
    terms,
    two_levels,
)
from bestarm.structures.landmarks import Landmarks

MOST_TERMS = 128  # of which one may count
MOST_NUMBERS = 2**21  # in a table of such terms
PULLS = 4  # of an arm, from which a line can be tested as well as with more
FEWEST = 8  # arms of which one can be told apart: of two, either is as far from a line as it is from the other
SPARE = 4  # arms there must be beyond twice the features, for a product of two of them to be told from a line


@dataclass(frozen=True)
class Hypothesis:
    """Which bases make up the means, with the scale `(...)` of each in units of σ², and the prior weight."""

    kind: str
    bases: tuple[str, ...]
    scales: tuple[Array, ...]
    own: float  # variance of what an arm has of its own, in units of σ²
    intercept: bool
    log_prior: Array | float
    term: str | None = None  # the base of which one feature, nobody knows which, counts too
    size: Array | None = None  # its scale `(...)` in units of σ²
    apart: Array | None = None  # variance `(...)` of what one arm, nobody knows which, has more, in units of σ²
    tested: Array | float = 0.0  # added to the log prior while pulls are chosen, `(...)`
    answer_only: Array | float = 0.0  # 1 where it stands for its kind in the answer only, but weighs, `(...)`


@dataclass(frozen=True)
class Structures:
    """All bases of a set of arms, and all hypotheses about their means."""

    bases: dict[str, Base]
    hypotheses: tuple[Hypothesis, ...]
    landmarks: Landmarks | None = None  # among very many arms
    depth: float = np.inf  # pulls an arm

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of hypotheses, each once."""
        return tuple(dict.fromkeys(h.kind for h in self.hypotheses))

    def of(self, kinds: "tuple[Kind, ...]") -> "Structures":
        """Return the hypotheses of some kinds only."""
        names = {kind.name for kind in kinds}
        return replace(self, hypotheses=tuple(h for h in self.hypotheses if h.kind in names))

    def for_the_answer(self) -> "Structures":
        """Return the same hypotheses, all of which may stand for their kinds, as likely as they are."""
        return replace(self, hypotheses=tuple(replace(h, answer_only=0.0, tested=0.0) for h in self.hypotheses))

    def among(self, who: Array | None, batch: tuple[int, ...]) -> "Structures":
        """Return the same for the replications `who` `(m,)`, None all, with the leading axes `batch` in one."""
        count = prod(batch)

        def one(part: Array | float) -> Array:
            flat = np.broadcast_to(np.asarray(part, dtype=float), batch).reshape(count)
            return flat if who is None else flat[who]

        def some(h: Hypothesis) -> Hypothesis:
            size, apart = (None if part is None else one(part) for part in (h.size, h.apart))
            scales, prior = tuple(one(c) for c in h.scales), one(h.log_prior)
            return replace(
                h,
                scales=scales,
                log_prior=prior,
                size=size,
                apart=apart,
                tested=one(h.tested),
                answer_only=one(h.answer_only),
            )

        bases, landmarks = flattened(self.bases), self.landmarks
        if who is not None:
            bases = of_replications(bases, who)
        if landmarks is not None:
            landmarks = landmarks.each(
                lambda a, own: a.reshape(-1, *a.shape[a.ndim - own :])[slice(None) if who is None else who]
            )
        return Structures(bases, tuple(map(some, self.hypotheses)), landmarks, self.depth)

    def following(self, counts: Array) -> "Structures":
        """Return the same with kernels through the arms that were pulled `counts` `(..., K)` times."""
        return self if self.landmarks is None else replace(self, bases={**self.bases, **self.landmarks.bases(counts)})

    def members(self, kind: str) -> list[int]:
        """Return the places of the hypotheses of a kind."""
        return [j for j, h in enumerate(self.hypotheses) if h.kind == kind]


@dataclass(frozen=True)
class Geometry:
    """What kinds of hypotheses depend on: the number of arms, of features and of pulls, their shape, their bases."""

    count: int
    features: int
    budget: int
    round: Array  # 1 on a sphere, 0 on none, (...)
    scaled: Array  # 1 where they were scaled to lie on a sphere, 0 elsewhere, (...)
    levels: Array  # 1 where every feature has two levels at most, 0 elsewhere, (...)
    bases: dict[str, Base]


class Kind(Protocol):
    """A kind of hypothesis, at several scales."""

    @property
    def name(self) -> str: ...

    @property
    def nonlinear(self) -> bool | None:
        """Whether arms may differ in more than the features say linearly; None where it takes no side."""
        ...

    @property
    def exploring(self) -> bool:
        """Whether it takes part in choosing pulls; if not, in the answer only."""
        ...

    @property
    def needs(self) -> tuple[str, ...]:
        """The names of its bases."""
        ...

    def hypotheses(self, arms: Geometry, scaling: "Scaling") -> list[Hypothesis]: ...


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
        return [(self.least * g / budget * dimension, self.step * k) for k, g in enumerate(self.steps)]  # Eq. 2


@dataclass(frozen=True)
class Line:
    """f is linear in the features: 0 at the centre of the arms, or with any intercept.

    Arms on a sphere were scaled to lie there, and zero is where they were scaled from; for other arms it is their
    middle, if any (`bases.anchored`). So between `on_sphere` and `off_sphere` is added to the log prior weight.
    `residuals` adds a smooth residual of variance ρ K/B: as large as the budget can just see, if spread evenly. Where
    arms were scaled to lie on a sphere little else doubts the line, so pulls are chosen by the largest ρ there. And as
    long as they are, `tested` is added on a sphere: a line that is believed is never tested where it matters. Where
    there are few pulls an arm there is nothing to test it with, and less is added.
    """

    name: str
    base: str
    intercept: bool
    residuals: tuple[float, ...] = ()
    residual: str = "exponential"
    log_prior: float = 0.0
    on_sphere: float = 0.0
    off_sphere: float = 0.0
    tested: float = 0.0
    exploring: bool = True

    @property
    def nonlinear(self) -> bool:
        return bool(self.residuals)

    @property
    def needs(self) -> tuple[str, ...]:
        smooth = bool(self.residuals) and self.residual != "own"
        return (self.base, self.residual) if smooth else (self.base,)

    def hypotheses(self, arms: Geometry, scaling: Scaling) -> list[Hypothesis]:
        dimension = arms.bases[self.base].dimension
        likely = self.log_prior + self.on_sphere * arms.round + self.off_sphere * (1 - arms.round)
        made = []
        for scale, weight in scaling.of(dimension, arms.budget):
            prior = likely + weight
            for rho in self.residuals:
                size, share = rho * arms.count / arms.budget, prior - log(len(self.residuals))
                scales, own = (
                    ((scale,), size) if self.residual == "own" else ((scale, np.full_like(dimension, size)), 0.0)
                )
                small = arms.scaled if rho < max(self.residuals) else 0.0
                made.append(Hypothesis(self.name, self.needs, scales, own, self.intercept, share, answer_only=small))
            if not self.residuals:
                doubt = self.tested * arms.round * min(arms.budget / (PULLS * arms.count), 1.0)
                made.append(Hypothesis(self.name, self.needs, (scale,), 0.0, self.intercept, prior, tested=doubt))
        return made


@dataclass(frozen=True)
class Smooth:
    """f is a smooth function of the features, in whatever shape.

    Arms were put on a sphere for the sake of a line, so `on_sphere` is added to the log prior weight there.
    """

    name: str
    base: str
    log_prior: float = -4.0
    on_sphere: float = 0.0
    nonlinear: bool = True
    exploring: bool = True

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.base,)

    def hypotheses(self, arms: Geometry, scaling: Scaling) -> list[Hypothesis]:
        scales = scaling.of(arms.bases[self.base].dimension, arms.budget)
        likely = self.log_prior + self.on_sphere * arms.round
        return [Hypothesis(self.name, self.needs, (c,), 0.0, True, likely + w) for c, w in scales]


@dataclass(frozen=True)
class SeparateMeans:
    """The features say nothing: every arm has a mean of its own.

    Off a sphere `off_sphere` is added to the log prior weight. It rises to `saturated` where there are as many features
    as arms: a line through all arms says nothing either, and is not simpler then.
    """

    name: str = "separate"
    log_prior: float = -4.0
    off_sphere: float = 0.0
    saturated: float = 4.0
    nonlinear: bool = True
    exploring: bool = True
    needs: tuple[str, ...] = ()

    def hypotheses(self, arms: Geometry, scaling: Scaling) -> list[Hypothesis]:
        full = min(arms.features / arms.count, 1.0) ** 2
        alone = self.log_prior + self.off_sphere * (1 - arms.round)
        prior = alone * (1 - full) + self.saturated * full
        scales = scaling.of(np.asarray(float(arms.count)), arms.budget)
        return [Hypothesis(self.name, (), (), float(c), True, prior + w) for c, w in scales]


@dataclass(frozen=True)
class OneOf:
    """f is one of many terms, nobody knows which, and besides it nothing or a line.

    All terms are equally likely beforehand, of variance 1 over the arms, and at the scales of a base of one dimension
    times `sizes`. Features of two levels have no curves, only products: `two_levels` is added to the log prior weight.
    """

    name: str
    terms: str
    line: str | None
    intercept: bool
    sizes: tuple[float, ...] = (1.0, 16.0, 256.0)
    log_prior: float = 0.0
    on_sphere: float = 0.0
    off_sphere: float = 0.0
    two_levels: float = 0.0
    nonlinear: bool = False
    exploring: bool = True

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.terms,) if self.line is None else (self.line, self.terms)

    def hypotheses(self, arms: Geometry, scaling: Scaling) -> list[Hypothesis]:
        if self.terms not in arms.bases:  # too many
            return []
        likely = self.log_prior + self.on_sphere * arms.round + self.off_sphere * (1 - arms.round)
        likely = likely + self.two_levels * arms.levels
        lines: list[tuple[tuple[str, ...], tuple[Array, ...], float]] = [((), (), 0.0)]
        if self.line is not None:
            scales = scaling.of(arms.bases[self.line].dimension, arms.budget)
            lines = [((self.line,), (scale,), weight) for scale, weight in scales]
        return [
            Hypothesis(self.name, bases, scales, 0.0, self.intercept, likely + weight + more, self.terms, size)
            for bases, scales, weight in lines
            for size, more in replace(scaling, steps=self.sizes).of(np.ones_like(arms.round), arms.budget)
        ]


@dataclass(frozen=True)
class OneArm:
    """f is linear but for one arm, nobody knows which.

    What it has more is at the scales of a base of one dimension times `sizes`, of variance 1 over the arms. It takes no
    side between lines and all else: neither is right about that arm. But where there are pulls for it, it asks for all
    arms to be looked at, as what doubts the line does.
    """

    name: str
    line: str
    intercept: bool
    sizes: tuple[float, ...] = (16.0, 256.0)
    log_prior: float = 0.0
    on_sphere: float = 0.0
    off_sphere: float = 0.0
    nonlinear: bool | None = None
    exploring: bool = True

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.line,)

    def hypotheses(self, arms: Geometry, scaling: Scaling) -> list[Hypothesis]:
        if arms.count < FEWEST:
            return []
        likely = self.log_prior + self.on_sphere * arms.round + self.off_sphere * (1 - arms.round)
        each = replace(scaling, steps=self.sizes).of(arms.count * np.ones_like(arms.round), arms.budget)
        return [
            Hypothesis(self.name, self.needs, (scale,), 0.0, self.intercept, likely + weight + more, apart=size)
            for scale, weight in scaling.of(arms.bases[self.line].dimension, arms.budget)
            for size, more in each
        ]


def structures(features: Array, budget: int, kinds: tuple[Kind, ...], scaling: Scaling) -> Structures:
    """Return the hypotheses of `kinds` about arms with `features` `(..., K, d)`.

    Multiplying all features by a number or adding a number to each of them changes nothing.
    """
    standard = standardised(features)
    features = evened(features, axis=(-2, -1))
    sphere = sphere_centred(features)
    round = roundness(sphere)
    kernels: dict[str, Radial] = {"exponential": Exponential(), "matern": Matern(2.5)}
    make = {
        "centred": lambda: linear_base(anchored(features, sphere, round)),
        "standard": lambda: linear_base(standard),
        "exponential": lambda: kernel_base(standard, kernels["exponential"]),
        "matern": lambda: kernel_base(standard, kernels["matern"]),
        "features": lambda: terms(standard),
        "centred features": lambda: terms(anchored(features, sphere, round)[..., :-1]),
        "products": lambda: terms(products(standard)),
    }
    count, width = features.shape[-2:]
    pairs = width * (width + 1) // 2
    for name, many in (("features", width), ("centred features", width), ("products", pairs)):
        if many > MOST_TERMS or many * count > MOST_NUMBERS:
            del make[name]
    if count < 2 * width + SPARE:  # a line has said nearly all there is to say of so few arms
        make.pop("products", None)
    needed = dict.fromkeys(name for kind in kinds for name in kind.needs)
    bases = {name: make[name]() for name in needed if name in make}
    arms = Geometry(count, width, budget, round, scaled(round, count, width), two_levels(standard), bases)
    made = [h for kind in kinds for h in kind.hypotheses(arms, scaling)]
    some = {name: kernel for name, kernel in kernels.items() if name in bases and count > EXACT}
    landmarks = Landmarks.of(standard, some, bases) if some else None
    return Structures(bases, tuple(made), landmarks, budget / count)


KINDS: tuple[Kind, ...] = (
    Line("linear", "centred", intercept=False, off_sphere=-1.0, tested=-2.0),
    Line("affine", "standard", intercept=True, on_sphere=-2.0),
    Line("linear, smooth residual", "centred", intercept=False, residuals=(1.5, 6.0), off_sphere=-1.0),
    Line("affine, smooth residual", "standard", intercept=True, residuals=(1.5, 6.0), on_sphere=-2.0),
    SeparateMeans(off_sphere=3.0),
    Smooth("exponential kernel", "exponential", log_prior=0.0, on_sphere=-4.0),
    Smooth("Matérn kernel", "matern", log_prior=0.0, on_sphere=-4.0),
    OneOf(
        "linear, one product", "products", "centred", intercept=False, log_prior=-4.0, off_sphere=-1.0, two_levels=4.0
    ),
    OneOf(
        "affine, one product", "products", "standard", intercept=True, log_prior=-4.0, on_sphere=-2.0, two_levels=4.0
    ),
    OneArm("linear, one arm", "centred", intercept=False, on_sphere=-4.0, off_sphere=-1.0),
    OneArm("affine, one arm", "standard", intercept=True, on_sphere=-6.0),
    OneOf("one feature", "centred features", None, intercept=False, log_prior=-2.0, off_sphere=-1.0, exploring=False),
    OneOf("one feature, any level", "features", None, intercept=True, log_prior=-2.0, on_sphere=-2.0, exploring=False),
)
