"""What the data say of every arm's mean, as draws: linear, generalized linear, no structure, or all of it weighed.

The first three share one prior, which shrinks: the coefficients of the features, each feature measured in its own
standard deviation, are independent normal with variance τ². Where the features allow a common shift of all means, it is
left free. The spread of the means that τ makes is not chosen but integrated out, under a half-Cauchy prior whose scale
is the noise of one pull (one unit of the predictor, in a generalized linear model). This is what makes the winner's
estimate honest: a posterior mean is not biased by having been picked as the largest. Weighed hypotheses
(`structures`) have priors of their own; each draw is of one of them, chosen by its weight.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bestarm.core import Tally
from bestarm.linalg import Candidates
from bestarm.models.glm import FAR, GLM, Identity, Logistic, Poisson
from bestarm.models.linear import Linear
from bestarm.models.means import Means
from bestarm.models.weighed import Weighed
from bestarm.structures.odds import binary
from bestarm.structures.words import believes

SHIFT = 0.9  # the features allow a shift if they explain this share of the constant
FREE = 5.0  # standard deviation of a shift of the predictor, in a generalized linear model: hardly a limit
LEAST = (
    2  # degrees of freedom of the noise; where repeats give fewer, it is thought as large as the scatter of all values
)
WORTH = 0.1  # weights must leave the worth of this share of the draws, or they are not used
BINOMIAL = 4.0  # the noise variance of wins and losses read as log odds
LARGE = 300  # with more coefficients than this a coarser grid must do


@dataclass(frozen=True)
class Posterior:
    """Draws of the means of all arms `(n, K)`, larger being better, with their exact or averaged mean `(K,)`."""

    draws: Any
    mean: Any
    believes: str

    @property
    def chances(self) -> Any:
        """The probability of being best, by arm; ties, such as of arms with the same features, are shared."""
        top = self.draws.max(axis=1, keepdims=True)
        best = self.draws >= top - 1e-9 * np.maximum(np.abs(top), deviation(self.draws))
        return (best / best.sum(axis=1, keepdims=True)).mean(axis=0)

    def among(self, arms: Any) -> "Posterior":
        """Return the same for some of the arms only."""
        return Posterior(self.draws[:, arms], self.mean[arms], self.believes)


def deviation(values: Any) -> float:
    """Return the standard deviation of values, also of such whose squares are no numbers."""
    with np.errstate(over="ignore"):
        found = float(np.std(values))
    if math.isfinite(found):
        return found
    most = float(np.abs(values).max())
    return most * float(np.std(values / most))


def posterior(
    model: Any, features: Any, tally: Tally, noise_variance: float | None, draws: int = 4000, rng: Any = None
) -> Posterior:
    """Return what `tally` says of arms with `features` `(K, d)` under a reward model.

    >>> tally = Tally(np.array([50.0, 50.0]), np.array([0.0, 50.0]), np.array([50.0, 100.0]))
    >>> posterior(Means(), np.eye(2), tally, 1.0, rng=1).chances.round(2)
    array([0., 1.])
    """
    rng = np.random.default_rng(rng)
    tally = Tally(*(np.asarray(a, dtype=np.float64) for a in (tally.counts, tally.sums, tally.squares)))
    link = model.link if isinstance(model, GLM) else None
    noise = "noise estimated from the data" if noise_variance is None else f"noise variance {noise_variance:g}, as told"
    if isinstance(model, Linear) or isinstance(link, Identity):
        design = Design.of(features)
        drawn = _normal(design, tally, noise_variance, draws, rng)
        return Posterior(*drawn, f"linear in {design.rank} coefficients, {noise}")
    if isinstance(link, Logistic | Poisson):
        design = Design.of(features)
        kind = "logistic" if isinstance(link, Logistic) else "Poisson"
        return Posterior(*_generalized(design, link, tally, draws, rng), f"{kind} in {design.rank} coefficients")
    if isinstance(model, Weighed):
        return _weighed(model, features, tally, noise_variance, draws, rng, noise)
    drawn = _normal(None, tally, noise_variance, draws, rng)
    why = (
        ""
        if isinstance(model, Means)
        else f"; {type(model).__name__} says nothing of its error, so features are unused"
    )
    return Posterior(*drawn, f"each arm by itself, {noise}{why}")


@dataclass(frozen=True)
class Design:
    """Arms as rows `(K, r)` of which independent coefficients of equal variance make the means.

    `shift` `(r,)` are the coefficients that move all arms alike, zeros where there are none; `size` is the mean square
    of what coefficients of variance one make of the arms, a shift not counted.
    """

    rows: Any
    shift: Any
    size: float

    @property
    def rank(self) -> int:
        return int(self.rows.shape[1])

    @classmethod
    def of(cls, features: Any) -> "Design":
        x = np.asarray(features, dtype=np.float64)
        x = x / np.where((most := np.abs(x).max(axis=0, initial=0)) > 0, most, 1)
        constant = _constant(*_columns(x))
        deviation = np.std(x, axis=0) if np.any(constant) else 0.0
        size = np.sqrt(np.mean(x**2, axis=0))
        unit = np.where(deviation > 1e-6 * size, deviation, np.where(size > 0, size, 1))
        left, values = _columns(x / unit)
        rows = left * values
        shift = _constant(left, values)
        spread = np.var(rows, axis=0) if np.any(shift) else np.mean(rows**2, axis=0)
        return cls(rows, shift, max(float(np.sum(spread)), 1e-12))


def _columns(x: Any) -> tuple[Any, Any]:
    """Return the left singular vectors `(K, r)` and the singular values, as many as the rank."""
    left, values, _ = np.linalg.svd(x, full_matrices=False)
    kept = values > max(x.shape) * np.finfo(np.float64).eps * np.max(values, initial=0)
    return left[:, kept], values[kept]


def _constant(left: Any, values: Any) -> Any:
    """Return the coefficients nearest to the same for all arms `(r,)`, or zeros where nothing comes near."""
    near = left.T @ np.ones(len(left))
    return near / values if near @ near > SHIFT * len(left) else np.zeros_like(near)


def _grid(low: float, high: float, size: int) -> tuple[Any, Any]:
    """Return spreads evenly apart on a logarithmic scale and the logarithms of their half-Cauchy weights."""
    spread = np.exp(np.linspace(np.log(low), np.log(high), size))
    return spread, np.log(spread) - np.logaddexp(0, 2 * np.log(spread))


def _choose(log_weight: Any, draws: int, rng: Any) -> tuple[Any, Any]:
    """Return the probabilities of the points of a grid, and that many of the points at random."""
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    return weight, rng.choice(len(weight), size=draws, p=weight)


# normal rewards


@dataclass(frozen=True)
class _Told:
    """Normal data after a rotation that makes them diagonal: V = X'NX = W diag(v) W', b = W'X'S, a the shift.

    The coefficients γ = W'θ are told by e_j = b_j / v_j with variance σ² / v_j; before any data γ_j ~ N(m a_j, λσ²), m
    free. `basis` None stands for the identity: each arm has its own coefficient.
    """

    basis: Any
    v: Any
    b: Any
    a: Any
    size: float  # mean square of the arms under coefficients of variance one
    total: float
    rest: float  # sum of squares the coefficients leave
    rough: float  # variance of all values

    @property
    def e(self) -> Any:
        return np.where(self.v > 0, self.b / np.where(self.v > 0, self.v, 1), 0.0)

    @property
    def extra(self) -> float:
        return max(0.0, LEAST - max(self.total - np.count_nonzero(self.v), 0))

    @classmethod
    def of(cls, design: Design | None, counts: Any, sums: Any, squares: Any) -> "_Told":
        total, seen = float(counts.sum()), float(squares.sum())
        rough = _scatter(total, float(sums.sum()), seen)
        if design is None:
            told = cls(None, counts, sums, np.ones_like(sums), 1.0, total, 0.0, rough)
        else:
            x = design.rows
            values, w = np.linalg.eigh(x.T @ (x * counts[:, None]))
            v = np.where(values > 1e-12 * values.max(initial=0), values, 0.0)
            told = cls(x @ w, v, w.T @ (x.T @ sums), w.T @ design.shift, design.size, total, 0.0, rough)
        rest = seen - float(np.sum(told.v * told.e**2))
        return replace(told, rest=max(rest, 1e-14 * max(total, 1.0)))

    def spreads(self, noise: float | None) -> tuple[Any, Any]:
        """Return a grid of spreads, in units of the noise, wide enough for whatever the data can say."""
        least = np.sqrt(min(self.rough if noise is None else noise, self.rest / max(self.total, 1) or 1.0))
        farthest = np.max(np.abs(self.e), initial=1.0)
        return _grid(0.03 / np.sqrt(max(self.total, 1)), 30 * max(1.0, farthest / max(least, 1e-7)), 60)


def _normal(design: Design | None, tally: Tally, noise_variance: float | None, draws: int, rng: Any) -> tuple[Any, Any]:
    """Return draws of the means and their mean, for normal rewards; no design: each arm by itself."""
    unit = _unit(tally)
    told = _Told.of(design, tally.counts, tally.sums / unit, tally.squares / unit / unit)
    noise = None if noise_variance is None else float(np.clip(noise_variance / unit / unit, 1e-14, 1e200))
    spread, log_weight = told.spreads(noise)
    ratio = (spread**2 / told.size)[:, None]  # λ
    narrow = 1 + ratio * told.v

    w = told.v / narrow
    weight = np.sum(w * told.a**2, axis=1)
    free = bool(np.any(weight > 0))
    divisor = np.where(weight > 0, weight, 1)
    middle = np.sum(w * told.a * told.e, axis=1) / divisor
    misfit = np.sum(w * (told.e - middle[:, None] * told.a) ** 2, axis=1) + told.rest + told.extra * told.rough  # Q(λ)
    freedom = max(told.total - free, 0) + told.extra
    log_weight = log_weight - (np.sum(np.log(narrow), axis=1) + np.log(divisor)) / 2
    log_weight = log_weight - (freedom / 2 * np.log(misfit) if noise is None else misfit / (2 * noise))

    chance, at = _choose(log_weight, draws, rng)
    variance = misfit[at] / rng.chisquare(freedom, draws) if noise is None else np.full(draws, noise)
    m = middle[at] + free * np.sqrt(variance / divisor[at]) * rng.standard_normal(draws)
    gamma = (ratio[at] * told.b + m[:, None] * told.a) / narrow[at]
    gamma += np.sqrt(variance[:, None] * (ratio / narrow)[at]) * rng.standard_normal(gamma.shape)
    mean = chance @ ((ratio * told.b + middle[:, None] * told.a) / narrow)
    if told.basis is None:
        return unit * gamma, unit * mean
    return unit * (gamma @ told.basis.T), unit * (told.basis @ mean)


def _unit(tally: Tally) -> float:
    """Return a unit in which the values are near one."""
    largest = np.max(np.abs(tally.sums) / np.maximum(tally.counts, 1), initial=0)
    size = max(float(np.sqrt(tally.squares.sum() / max(tally.counts.sum(), 1))), float(largest))
    return size if size > 0 and np.isfinite(size) else 1.0


def _scatter(total: float, sums: float, squares: float) -> float:
    """Return the variance of all values about their mean; of a single one, its square."""
    if total < 2:
        return max(float(squares), 1e-12)
    return max(float(squares - sums**2 / total) / (total - 1), 1e-12 * float(squares) / total, 1e-14)


# weighed hypotheses


def _weighed(
    model: Weighed, features: Any, tally: Tally, noise_variance: float | None, draws: int, rng: Any, noise: str
) -> Posterior:
    """Return draws of the means: of one hypothesis each, chosen by weight, σ² drawn too where it is not known.

    Wins and losses are judged on the scale of log odds, where their noise is known but for how far it is from binomial.
    """
    unit, total = 1.0 if binary(tally)[0] else _unit(tally), float(tally.counts.sum())
    known = Tally(tally.counts, tally.sums / unit, tally.squares / unit / unit)
    mixture, odds = model.read(Candidates.of(np.asarray(features, dtype=np.float64)), known)
    chance, at = _choose(np.log(np.maximum(mixture.weight[0], 1e-300)), draws, rng)
    freedom = max(total - 1, 0.0)
    extra = max(0.0, LEAST - freedom)
    rough = BINOMIAL if odds is not None else _scatter(total, float(known.sums.sum()), float(known.squares.sum()))
    found, mean = np.empty((draws, len(tally.counts))), 0.0
    for g, look in enumerate(mixture.outlooks()):
        mine = np.flatnonzero(at == g)
        if noise_variance is None or odds is not None:
            rest = freedom * max(float(mixture.noise[0, g]), 1e-14) + extra * rough
            variance = rest / rng.chisquare(freedom + extra, len(mine))
        else:
            variance = np.full(len(mine), np.clip(noise_variance / unit / unit, 1e-14, 1e200))
        root, own = look.root[0], look.own[0]
        off = rng.standard_normal((len(mine), root.shape[1])) @ root.T
        if np.any(own > 0):
            off += np.sqrt(own) * rng.standard_normal(off.shape)
        found[mine] = look.mean[0] + np.sqrt(variance)[:, None] * off
        mean = mean + chance[g] * look.mean[0]
    weights = {kind.name: float(weight) for kind, weight in zip(model.kinds, mixture.kinds[0], strict=True)}
    if odds is not None:
        found = odds.means(found)
        return Posterior(found, found.mean(axis=0), f"{believes(weights)}; in log odds")
    return Posterior(unit * found, unit * mean, f"{believes(weights)}; {noise}")


# generalized linear rewards


def _generalized(design: Design, link: Any, tally: Tally, draws: int, rng: Any) -> tuple[Any, Any]:
    """Return draws of the means and their mean: Laplace's approximation at each spread, then weights that correct it.

    The draws come from the mixture of normals around the modes; weighing each by likelihood times prior over the
    density it came from, and drawing again, removes most of what the approximation missed.
    """
    z, r = design.rows, design.rank
    spread, log_weight = _grid(0.03, 30.0, 15 if r <= LARGE else 5)
    precision = _precisions(design, spread**2 / design.size)
    theta, H = _modes(z, link, tally, precision)
    logdet_prior, logdet = np.linalg.slogdet(precision)[1], np.linalg.slogdet(H)[1]
    at_mode = _likelihood(theta @ z.T, link, tally) - _square(theta, precision) / 2
    chance, at = _choose(log_weight + at_mode + (logdet_prior - logdet) / 2, draws, rng)
    root = np.linalg.inv(np.linalg.cholesky(H)).swapaxes(-1, -2)  # root root' = H⁻¹
    noise = rng.standard_normal((draws, r))
    found = theta[at]
    for g in np.unique(at):
        found[at == g] += noise[at == g] @ root[g].T
    if r <= LARGE:
        from scipy.special import logsumexp

        with np.errstate(divide="ignore"):
            prior = logsumexp(log_weight + logdet_prior / 2 - _squares(found, 0 * theta, precision) / 2, axis=1)
            from_here = logsumexp(np.log(chance) + logdet / 2 - _squares(found, theta, H) / 2, axis=1)
        found = found[_again(_likelihood(found @ z.T, link, tally) + prior - from_here, rng)]
    drawn = link.value(np.clip(found @ z.T, -FAR, FAR))
    return drawn, drawn.mean(axis=0)


def _precisions(design: Design, variance: Any) -> Any:
    """Return the inverse of τ² I + FREE² c c', c the shift, for each τ² `(G, r, r)`."""
    c, variance = design.shift, variance[:, None, None]
    return (np.eye(len(c)) - FREE**2 * np.outer(c, c) / (variance + FREE**2 * (c @ c))) / variance


def _modes(z: Any, link: Any, tally: Tally, precision: Any) -> tuple[Any, Any]:
    """Return the most probable coefficients under each prior `(G, r)` and the curvature there `(G, r, r)`."""
    theta = np.zeros(precision.shape[:2])
    value = _objective(theta, z, link, tally, precision)
    for _ in range(100):
        predictor = np.clip(theta @ z.T, -FAR, FAR)
        gradient = (tally.sums - tally.counts * link.value(predictor)) @ z - (precision @ theta[..., None])[..., 0]
        step = np.linalg.solve(_curvature(predictor, z, link, tally, precision), gradient[..., None])[..., 0]
        length = 1 / np.maximum(np.abs(step @ z.T).max(axis=1, initial=0) / 8, 1)
        for _ in range(30):
            after = _objective(theta + length[:, None] * step, z, link, tally, precision)
            worse = ~(after >= value - 1e-12 * (1 + np.abs(value)))
            if not worse.any():
                break
            length = np.where(worse, length / 2, length)
        theta, value = theta + length[:, None] * step, after
        if np.abs(step).max(initial=0) < 1e-8:
            break
    return theta, _curvature(np.clip(theta @ z.T, -FAR, FAR), z, link, tally, precision)


def _curvature(predictor: Any, z: Any, link: Any, tally: Tally, precision: Any) -> Any:
    return (z.T * (tally.counts * link.slope(predictor))[:, None, :]) @ z + precision


def _objective(theta: Any, z: Any, link: Any, tally: Tally, precision: Any) -> Any:
    return _likelihood(theta @ z.T, link, tally) - _square(theta, precision) / 2


def _likelihood(predictor: Any, link: Any, tally: Tally) -> Any:
    near = np.clip(predictor, -FAR, FAR)
    return near @ tally.sums - link.integral(near) @ tally.counts


def _square(theta: Any, precision: Any) -> Any:
    return np.einsum("gi,gij,gj->g", theta, precision, theta)


def _squares(found: Any, middle: Any, precision: Any) -> Any:
    """Return the squared distances `(n, G)` of draws from each middle, measured by each precision."""
    return np.stack([np.vecdot((found - m) @ P, found - m) for m, P in zip(middle, precision, strict=True)], axis=1)


def _again(log_weight: Any, rng: Any) -> Any:
    """Return positions drawn again by weight, evenly; a weight counts at most √n times the mean (Ionides 2008).

    Where a few draws would carry all the weight, as happens with many coefficients, they stay as they are.
    """
    weight = np.exp(log_weight - log_weight.max())
    weight = np.minimum(weight, weight.mean() * np.sqrt(len(weight)))
    if weight.sum() ** 2 < WORTH * len(weight) * np.sum(weight**2):
        return np.arange(len(weight))
    edges = np.cumsum(weight) / weight.sum()
    return np.minimum(np.searchsorted(edges, (np.arange(len(weight)) + rng.random()) / len(weight)), len(weight) - 1)
