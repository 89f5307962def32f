"""Optimism: LinUCB (Li et al. 2010; Abbasi-Yadkori et al. 2011) and UCB-GLM (Li, Lu and Zhou 2017)."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from bestarm.core import Array, Problem, Pulls, Random, Tally, Totals
from bestarm.linalg import Candidates, matvec, moment, rank, tally
from bestarm.models.glm import FAR, LONGEST, Logistic, MeanFunction
from bestarm.policies.belief import Belief, LinearPrior, Prior
from bestarm.policies.rules import (
    Answer,
    Deviation,
    EachOnce,
    Li2017,
    MostPulled,
    OfNoise,
    Race,
    Radius,
    Scene,
    Width,
    heard,
    once,
)


@dataclass(frozen=True)
class Hope(Race):
    """The state, with what the radius may depend on."""

    scene: Scene


@dataclass(frozen=True)
class LinUCB:
    """Pull argmax x'θ + radius |x|_{A⁻¹}, A = λI + Σ x x', B times; then name the arm pulled most.

    The prior LinearPrior(1/λ) is ridge regression shared by all arms, SeparatePrior(1/λ) one regression for each arm;
    a KernelPrior makes it GP-UCB.

    >>> import numpy as np
    >>> policy = LinUCB(noise_variance=1.0)
    >>> state = policy.start(Problem(np.array([[1.0, 0.0], [0.0, 2.0]]), budget=5))
    >>> policy.ask(state, np.random.default_rng(0)).arms
    array([1])
    """

    prior: Prior = LinearPrior()
    radius: Radius = OfNoise()
    answer: Answer = MostPulled()
    width: Width = Deviation()
    noise_variance: float | None = None

    def start(self, problem: Problem) -> Hope:
        scene = Scene.of(problem, 1 / self.prior.variance, self.noise_variance)
        self.radius.of(scene, 0)  # refuses now what it would refuse later
        return Hope(problem, self.prior.belief(problem.features, 1.0), 0, scene)

    def ask(self, state: Hope, rng: Random) -> Pulls | None:
        if state.over:
            return None
        index = self.index(state)
        return once(np.argmax(index, axis=-1))

    def tell(self, state: Hope, pulls: Pulls, totals: Totals) -> Hope:
        return heard(state, pulls, totals)

    def recommend(self, state: Hope) -> Array:
        return self.answer.arm(state.belief.counts, state.belief.mean)

    def index(self, state: Hope) -> Array:
        """Return the upper confidence bounds `(..., K)`."""
        return state.belief.mean + optimism(self.radius, self.width, state)


def optimism(radius: Radius, width: Width, state: Hope) -> Array:
    """Return radius times width for each arm, `(..., K)`."""
    multiple = radius.of(state.scene, state.spent)
    widths = width.of(state.belief.variance)
    return widths * (multiple if isinstance(multiple, float) else multiple[..., None])


@dataclass(frozen=True)
class Slope(Hope):
    """The state of UCB-GLM: coefficients in coordinates of the span, and who is still to be pulled at random."""

    coordinates: Array  # (..., K, r)
    theta: Array  # (..., r)
    tally: Tally
    exploring: Array  # (...), booleans


class Exploration(Protocol):
    """How UCB-GLM begins."""

    def first(self, state: Slope, rng: Random) -> Pulls | None:
        """Return pulls to make before anything else, if any."""
        ...

    def random(self, state: Slope, rng: Random) -> Array | None:
        """Return an arm `(...)` for the replications still exploring, or None when none may be."""
        ...

    def goes_on(self, state: Slope) -> Array:
        """Return whether to go on exploring, `(...)`."""
        ...


@dataclass(frozen=True)
class RandomUntil:
    """Arms at random until the least eigenvalue of Σ x x' on the span is `least`, for at most `share` of the budget."""

    least: float = 1.0
    share: float = 0.5

    def first(self, state: Slope, rng: Random) -> Pulls | None:
        return None

    def random(self, state: Slope, rng: Random) -> Array | None:
        if state.spent >= self.share * state.problem.budget:
            return None
        draws = rng.random((*state.problem.batch, state.problem.arms))
        return np.argmax(draws, axis=-1)

    def goes_on(self, state: Slope) -> Array:
        none = np.zeros(state.problem.batch, dtype=np.bool)
        if state.spent >= self.share * state.problem.budget or not bool(np.any(state.exploring)):
            return none
        x = state.problem.features
        V = np.matrix_transpose(x) @ (x * state.tally.counts[..., None])
        values = np.linalg.eigvalsh(V)
        place = x.shape[-1] - np.astype(rank(state.coordinates), np.int64)
        least = np.take_along_axis(values, np.clip(place, 0, x.shape[-1] - 1)[..., None], axis=-1)[..., 0]
        return state.exploring & (least < self.least)


@dataclass(frozen=True)
class Once:
    """Each arm once, as the GSE paper's published code begins."""

    def first(self, state: Slope, rng: Random) -> Pulls | None:
        return EachOnce().pulls(state.problem, rng)

    def random(self, state: Slope, rng: Random) -> Array | None:
        return None

    def goes_on(self, state: Slope) -> Array:
        return np.zeros(state.problem.batch, dtype=np.bool)


@dataclass(frozen=True)
class UCBGLM:
    """Pull argmax x'θ + radius |x|_{V⁻¹} with θ the maximum-likelihood estimate of a GLM and V = Σ x x'.

    Everything is done in coordinates of the span of the arms, so that V can be inverted. Each pull is followed by a few
    Newton steps from the last θ, as many as are needed and at most `steps`.

    >>> import numpy as np
    >>> policy = UCBGLM()
    >>> state = policy.start(Problem(np.eye(2), budget=40, noise_variance=0.25))
    >>> state = policy.tell(state, Pulls(np.array([0, 1]), np.array([10, 10])),
    ...     Totals(np.array([7.0, 5.0]), np.array([7.0, 5.0])))
    >>> np.abs(policy.predictor(state)).round(4)  # logit 0.7
    array([0.8473, 0.    ])
    """

    link: MeanFunction = Logistic()
    radius: Radius = Li2017()
    exploration: Exploration = RandomUntil()
    answer: Answer = MostPulled()
    width: Width = Deviation()
    ridge: float = 1e-8
    steps: int = 3
    noise_variance: float | None = None

    def start(self, problem: Problem) -> Slope:
        z = Candidates.of(problem.features).coordinates
        zero = np.zeros_like(z[..., 0])
        scene = replace(Scene.of(problem, self.ridge, self.noise_variance), dimension=np.maximum(rank(z), 1.0))
        self.radius.of(scene, 0)  # refuses now what it would refuse later
        everyone = np.ones(problem.batch, dtype=np.bool)
        return Slope(
            problem=problem,
            belief=_vague(z, self.ridge),
            spent=0,
            scene=scene,
            coordinates=z,
            theta=np.zeros_like(z[..., 0, :]),
            tally=Tally(zero, zero, zero),
            exploring=everyone,
        )

    def ask(self, state: Slope, rng: Random) -> Pulls | None:
        if state.over:
            return None
        first = self.exploration.first(state, rng) if state.spent == 0 else None
        if first is not None:
            return first
        index = self.predictor(state) + optimism(self.radius, self.width, state)
        arm = np.argmax(index, axis=-1)
        random = self.exploration.random(state, rng)
        return once(arm if random is None else np.where(state.exploring, random, arm))

    def tell(self, state: Slope, pulls: Pulls, totals: Totals) -> Slope:
        news = tally(pulls, totals, state.problem.arms)
        self.link.check(news)
        known = state.tally + news
        # a prior this vague cancels badly in rank-one updates, and the Newton steps cost as much as a refit
        belief = state.belief.refitted(known.counts, known.sums)
        state = replace(state, belief=belief, tally=known, spent=state.spent + pulls.total)
        state = replace(state, exploring=self.exploration.goes_on(state))
        return replace(state, theta=self._climb(state))

    def recommend(self, state: Slope) -> Array:
        return self.answer.arm(state.tally.counts, self.predictor(state))

    def predictor(self, state: Slope) -> Array:
        """Return x'θ for all arms, `(..., K)`."""
        return matvec(state.coordinates, state.theta)

    def _climb(self, state: Slope) -> Array:
        theta = state.theta
        size = np.sum(state.tally.counts, axis=-1)
        for _ in range(self.steps):
            gradient, hessian = self._slopes(state, theta)
            still = np.max(np.abs(gradient), axis=-1) > 1e-9 * size
            if not bool(np.any(still)):
                break
            theta = np.where(still[..., None], self._step(state, theta, gradient, hessian), theta)
        return theta

    def _slopes(self, state: Slope, theta: Array) -> tuple[Array, Array]:
        z, known = state.coordinates, state.tally
        at = np.clip(matvec(z, theta), -FAR, FAR)
        gradient = matvec(np.matrix_transpose(z), known.sums - known.counts * self.link.value(at))
        hessian = moment(z, known.counts * self.link.slope(at)) + self.ridge * np.eye(z.shape[-1], dtype=z.dtype)
        return gradient - self.ridge * theta, hessian

    def _step(self, state: Slope, theta: Array, gradient: Array, hessian: Array) -> Array:
        """Return θ after a Newton step, halved until the penalised likelihood does not fall."""
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        reach = np.max(np.abs(matvec(state.coordinates, step)), axis=-1)
        one = np.ones_like(reach)
        length = np.minimum(LONGEST / np.maximum(reach, one), one)
        before = self._likelihood(state, theta)
        for _ in range(20):
            moved = theta + length[..., None] * step
            worse = self._likelihood(state, moved) < before - 1e-12 * (1 + np.abs(before))
            if not bool(np.any(worse)):
                break
            length = np.where(worse, length / 2, length)
        return moved

    def _likelihood(self, state: Slope, theta: Array) -> Array:
        at = np.clip(matvec(state.coordinates, theta), -FAR, FAR)
        gain = np.sum(state.tally.sums * at - state.tally.counts * self.link.integral(at), axis=-1)
        return gain - self.ridge / 2 * np.vecdot(theta, theta)


def _vague(coordinates: Array, ridge: float) -> Belief:
    """Return a belief whose variances are x'(V + ridge I)⁻¹x."""
    return LinearPrior(1 / ridge).belief(coordinates, 1.0)
