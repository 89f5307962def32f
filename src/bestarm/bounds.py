"""The theorems as functions: how likely a wrong answer is at most, for GSE and for its rivals.

Every bound is a `Bound`: a float that is at most 1 and remembers its logarithm unclipped. Noise is
σ²-sub-Gaussian and `noise_variance` is σ²; where it is not an argument σ = 1 is meant, so give gap / σ.
Logarithms are to base 2 in the rivals' bounds. `gaps` are those of the K - 1 suboptimal arms, in any order.
"""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from bestarm.core import Array, namespace
from bestarm.errors import InputError
from bestarm.policies.schedules import stage_sizes

Widths: TypeAlias = float | Sequence[float]

# What each argument must be at least; every other one must be positive. All must be finite.
LEAST = {"arms": 2, "dimension": 1, "budget": 1, "efficiency": 0, "epsilon": 0, "radius": 0}


class Bound(float):
    """A bound on a probability, min(1, exp(log)); `log` is not clipped, so any two can be compared.

    >>> Bound(-1000.0), Bound(3.0), Bound(-1000.0).log
    (0.0, 1.0, -1000.0)
    """

    log: float

    def __new__(cls, log: float) -> "Bound":
        bound = super().__new__(cls, math.exp(min(0.0, log)))
        bound.log = log
        return bound

    def __getnewargs__(self) -> tuple[float]:
        return (self.log,)


def gse(
    arms: int,
    dimension: int,
    budget: int,
    gap: float,
    noise_variance: float = 1,
    eta: float = 2,
    constant: float = 8,
    efficiency: float = 0,
) -> Bound:
    """Bound the error of G-optimal GSE: 2ηs exp(-n Δ² / (c (1+ε) σ² d)), n = ⌊B/s⌋.   Thm. 1, Eq. (3)

    s counts the stages as they are run. ε is how far the whole-number allocation is above the optimum:
    max_i ||x_i||²_{V^-1} <= (1+ε) d/n. The proof gives c = 2 on ||x_i - x_1||², which is at most
    4 max ||x_i||², so c = 8. The paper prints 4, which is too small: see `gse_as_printed`.

    >>> round(gse(arms=16, dimension=4, budget=1600, gap=1.0), 7)    # 16 exp(-400 / 32)
    5.96e-05
    """
    _check(dimension=dimension, budget=budget, gap=gap, noise_variance=noise_variance)
    _check(constant=constant, efficiency=efficiency)
    stages = _stages(arms, eta)
    scale = constant * (1 + efficiency) * noise_variance * dimension
    return Bound(math.log(2 * eta * stages) - (budget // stages) * gap * gap / scale)


def gse_as_printed(
    arms: int, dimension: int, budget: int, gap: float, noise_variance: float = 1, eta: float = 2
) -> Bound:
    """Evaluate 2η log_η K exp(-B Δ² / (4 σ² d log_η K)), Eq. (3) as printed. It is not a bound.

    Arms on a line, one at 1 and the others at -1, lose the best in stage 1 with probability Φ(-√n Δ / 2σ).
    That is above the printed value from B Δ² / σ² = 27 on for K = 2, 67 for K = 4; with 8 for 4 it never is.

    >>> round(gse_as_printed(arms=16, dimension=4, budget=256, gap=1.0), 4)    # 16 exp(-4)
    0.2931
    """
    _check(dimension=dimension, budget=budget, gap=gap, noise_variance=noise_variance)
    _stages(arms, eta)
    stages = math.log(arms) / math.log(eta)
    return Bound(math.log(2 * eta * stages) - budget * gap * gap / (4 * noise_variance * dimension * stages))


def gse_allocation(
    arms: int, gap: float, widths: Widths, noise_variance: float = 1, eta: float = 2, constant: float = 2
) -> Bound:
    """Bound the error of GSE with any allocation: 2ηs exp(-Δ² / (c σ² max_t w_t)).   Thm. 1, Eq. (2)

    w_t = max_i ||x_i - x_1||²_{V_t^-1}: one number for the widest stage, or one a stage. The proof has c = 2;
    the statement has 4, which is looser but true. (Eq. (3) goes wrong by setting that 4 before ||x_i||².)

    >>> round(gse_allocation(arms=4, gap=1.0, widths=[0.1, 0.05]), 6)    # 8 exp(-5)
    0.053904
    """
    _check(gap=gap, noise_variance=noise_variance, constant=constant)
    stages = _stages(arms, eta)
    scale = constant * noise_variance * _widest(widths, stages)
    return Bound(math.log(2 * eta * stages) - gap * gap / scale)


def static(arms: int, dimension: int, budget: int, gap: float, noise_variance: float = 1, constant: float = 8) -> Bound:
    """Bound the error of one stage, η = K: 2K exp(-B Δ² / (c σ² d)), c = 4 as printed.   App. E, first lines

    >>> static(16, 4, 1600, 1.0) == gse(16, 4, 1600, 1.0, eta=16.0)
    True
    """
    return gse(arms, dimension, budget, gap, noise_variance, float(arms), constant)


def glm(
    arms: int, dimension: int, budget: int, gap: float, cmin: float, noise_variance: float = 1, eta: float = 2
) -> Bound:
    """Bound the error of G-optimal GSE with a GLM: 2ηs exp(-n Δ² c_min² / (8 σ² d)).   Thm. 2, Eq. (6)

    Δ is the gap of the linear predictors x'θ, which the proof uses, not that of the means. The proof treats
    the random Hessian at the estimate as fixed, so this is a guide, not a theorem. Bernoulli: σ² = 1/4.
    An allocation 1+ε above the optimum counts as noise of variance (1+ε) σ².

    >>> glm(16, 4, 1600, gap=2.0, cmin=0.5) == gse(16, 4, 1600, gap=1.0)
    True
    """
    _check(gap=gap, cmin=cmin)
    return gse(arms, dimension, budget, gap * cmin, noise_variance, eta)


def glm_allocation(
    arms: int, gap: float, widths: Widths, cmin: float, noise_variance: float = 1, eta: float = 2
) -> Bound:
    """Bound the error of GSE with a GLM: 2ηs exp(-Δ² c_min² / (8 σ² max_t w_t)).   Thm. 2, Eq. (5)

    Here w_t = max_i ||x_i||²_{V_t^-1}, the largest leverage of stage t. Otherwise as `glm`.

    >>> round(glm_allocation(arms=4, gap=2.0, widths=0.05, cmin=0.5), 6)    # 8 exp(-1 / 0.4)
    0.65668
    """
    _check(gap=gap, cmin=cmin)
    return gse_allocation(arms, gap * cmin, widths, noise_variance, eta, constant=8)


def cmin(features: Array, theta: Array, slope: Callable[[Array], Array]) -> Array:
    """Return min_i h'(x_i'θ), shape `(...)`, for features `(..., K, d)`, θ `(..., d)` and `slope` = h'.

    Theorem 2 wants it for every point between θ* and its estimate; at θ alone it is the best that can be.
    """
    xp = namespace(features, theta)
    return xp.min(slope((features @ theta[..., None])[..., 0]), axis=-1)


def logistic_cmin(radius: float) -> float:
    """Return h'(R) = e^R / (1 + e^R)², the least slope of the logistic function on |x'θ| <= R.

    >>> logistic_cmin(0.0)
    0.25
    """
    _check(radius=radius)
    return math.exp(-radius) / (1 + math.exp(-radius)) ** 2


def frank_wolfe_iterations(dimension: int, arms: int = 0) -> float:
    """Return d ln ln(d + K), the order of Frank-Wolfe steps from uniform; ln ln is at least 1 here.   App. C

    Without `arms`, that from the start of Kumar and Yildirim. The paper has the first reach g <= d; what is
    known is a constant factor of d.
    """
    _check(dimension=dimension)
    return dimension * max(1.0, math.log(max(1.0, math.log(dimension + max(0, arms)))))


def frank_wolfe_khachiyan(
    arms: int, dimension: int, budget: int, gap: float, constant: float = 8, efficiency: float = 0.01
) -> Bound:
    """Bound the error of GSE with a design of g <= (1+ε) d, as `gse`; printed: 4 and ε = 0.   Cor. 1"""
    return gse(arms, dimension, budget, gap, constant=constant, efficiency=efficiency)


def frank_wolfe_kumar_yildirim(arms: int, dimension: int, budget: int, gap: float, constant: float = 16) -> Bound:
    """Bound the error of GSE with a design of g <= 2d, twice the constant of `gse`; printed: 8.   Cor. 2"""
    return gse(arms, dimension, budget, gap, constant=constant)


def mab_lower(gaps: Sequence[float], budget: int) -> Bound:
    """Return exp(-B / Σ_i Δ_i^-2), the lower bound for plain bandits of Kaufmann et al. as quoted in Sec. 4.

    >>> round(mab_lower([1.0, 0.5], budget=10), 4)    # exp(-10 / 5)
    0.1353
    """
    _check(budget=budget)
    return Bound(-budget / sum(1 / gap / gap for gap in _ordered(gaps)))


def mab_lower_tight(gaps: Sequence[float], budget: int) -> Bound:
    """Return exp(-B / (ln K Σ_i Δ_i^-2)), that of Carpentier and Locatelli as quoted in Sec. 4."""
    return Bound(mab_lower(gaps, budget).log / math.log(len(gaps) + 1))


def sequential_halving(gaps: Sequence[float], budget: int) -> Bound:
    """Bound the error of sequential halving, rewards in [0, 1]: 3 log K exp(-B / (8 H_2 log K)).

    H_2 = max_i i / Δ_i² over i = 2, ..., K with the gaps in increasing order (Karnin, Koren and Somekh).
    """
    _check(budget=budget)
    hardness = _hardness(gaps, len(gaps) + 1)
    rounds = math.log2(len(gaps) + 1)
    return Bound(math.log(3 * rounds) - budget / (8 * hardness * rounds))


def bayesgap(
    gaps: Sequence[float],
    kappa: float,
    budget: int,
    noise_variance: float = 1,
    prior_variance: float = 1,
    epsilon: float = 0,
) -> Bound:
    """Bound the error of BayesGap: K B exp(-((B-K)/σ² + κ/η_b²) / (8 H_ε)), κ = Σ_i ||x_i||^-2.   App. D

    H_ε = Σ_i max((Δ_i + ε)/2, ε)^-2 over all K arms; the best arm counts with its distance to the second
    best, since with Δ_1 = 0 as the paper has it H_0 would be infinite.
    """
    _check(kappa=kappa, budget=budget, noise_variance=noise_variance, prior_variance=prior_variance)
    _check(epsilon=epsilon)
    ordered = _ordered(gaps)
    arms = len(ordered) + 1
    hard = [max((gap + epsilon) / 2, epsilon) for gap in [ordered[0], *ordered]]
    knowledge = (budget - arms) / noise_variance + kappa / prior_variance
    return Bound(math.log(arms) + math.log(budget) - knowledge / (8 * sum(1 / gap / gap for gap in hard)))


def bayesgap_simplified(arms: int, budget: int, gap: float) -> Bound:
    """Return K B exp(-B Δ² / (32 K)): `bayesgap` with equal gaps, ||x_i|| = 1 and σ = η_b = 1.   App. D

    The paper calls GSE's gain over it obvious. In the exponent it is a gain where d s < 4K (8K as printed):
    with K = d, where features tell nothing, not above K = 16 (256 as printed).
    """
    _check(arms=arms, budget=budget, gap=gap)
    return Bound(math.log(arms) + math.log(budget) - budget * gap * gap / (32 * arms))


def peace_claimed(dimension: int, budget: int, gap: float, width: float, constant: float = 1) -> Bound:
    """Return 2⌈log d⌉ exp(-B Δ² / (c w log d)), the paper's first reading of Peace.   App. D (i)

    w = max_i ||x_i - x_1||²_{V(λ)^-1} of the design λ, n times what `gse_allocation` takes; at most 4d if
    λ is G-optimal. The paper prints the norm without its square.
    """
    _check(dimension=dimension, budget=budget, gap=gap, width=width, constant=constant)
    rounds = max(1.0, math.log2(dimension))
    return Bound(math.log(2 * math.ceil(rounds)) - budget * gap * gap / (constant * width * rounds))


def peace_g_optimal(arms: int, dimension: int, budget: int, gap: float, constant: float = 1) -> Bound:
    """Return 2⌈log d⌉ exp(-B Δ² / (c' d log K log d)), the paper's second reading of Peace.   App. D (ii)

    "Worse than ours" holds in order. With c' = 1 its exponent beats that of `gse` below d = 2^8 (2^4 as
    printed), so which is smaller hangs on a c' nobody states.
    """
    _check(arms=arms, dimension=dimension)
    return peace_claimed(dimension, budget, gap, dimension * math.log2(arms), constant)


def od_linbai(gaps: Sequence[float], arms: int, dimension: int, budget: int) -> Bound:
    """Bound the error of OD-LinBAI: (4K/d + 3 log d) exp(-m / (32 H)), H = max_{2<=i<=d} i / Δ_i².   App. D

    m = (B - min(K, d(d+1)/2) - Σ_{r<R} ⌈d/2^r⌉) / R with R = ⌈log d⌉, at least 1; where m <= 0 the bound is
    1. The d - 1 smallest gaps are enough; for d = 1 arm 2 stands in for the empty maximum.

    >>> round(od_linbai([1.0] * 63, arms=64, dimension=10, budget=500).log, 6)    # log 35.566 - 108.75 / 320
    3.23154
    """
    _check(arms=arms, dimension=dimension, budget=budget)
    rounds = max(1, (dimension - 1).bit_length())
    spent = min(arms, od_crossover(dimension)) + sum(-(-dimension // 2**r) for r in range(1, rounds))
    pulls = (budget - spent) / rounds
    return Bound(_od_factor(arms, dimension) - pulls / (32 * _hardness(gaps, max(2, dimension))))


def od_linbai_simplified(arms: int, dimension: int, budget: int, gap: float) -> Bound:
    """Return (4K/d + 3 log d) exp((d² - B) Δ² / (32 d log d)), what the paper makes of it.   App. D

    Said to favour OD-LinBAI, but d² is more than the d(d+1)/2 (or K) it replaces, so for d a power of two it
    is above `od_linbai`; elsewhere log d for ⌈log d⌉ may put it below. It bounds neither way.
    """
    _check(arms=arms, dimension=dimension, budget=budget, gap=gap)
    scale = 32 * dimension * max(1.0, math.log2(dimension))
    return Bound(_od_factor(arms, dimension) + (dimension**2 - budget) * gap * gap / scale)


def linucb(dimension: int, budget: int, gap: float) -> Bound:
    """Return exp(-B Δ² / d²), the order the paper derives for LinUCB, without logs and constants.   App. F

    The paper finds d² worse than its d; but it has 4 d log K there, which is larger for d < 4 log K.
    """
    _check(dimension=dimension, budget=budget, gap=gap)
    return Bound(-budget * gap * gap / dimension**2)


def ucb_glm(dimension: int, budget: int, gap: float, cmin: float, kappa: float) -> Bound:
    """Return B exp(-Δ² κ² / (c_min² d B)), what the paper derives for UCB-GLM, without constants.   App. F

    Said to decrease slowly in B, it increases, since the cumulative regret was not divided by B.
    """
    _check(dimension=dimension, budget=budget, gap=gap, cmin=cmin, kappa=kappa)
    ratio = gap * kappa / cmin
    return Bound(math.log(budget) - ratio * ratio / (dimension * budget))


def smallest(arms: int, dimension: int, budget: int, gap: float) -> dict[str, Bound]:
    """Return every bound that K, d, B and Δ determine, by name, the smallest first by unclipped logarithm.

    All gaps are Δ, σ = 1, η = 2, d is at most K, and Peace has the width 4d of a G-optimal design and c = 1.

    >>> list(smallest(arms=64, dimension=64, budget=100_000, gap=0.5))[:2]
    ['static', 'peace_claimed']
    """
    d = min(dimension, arms)
    bounds = {
        "gse": gse(arms, d, budget, gap),
        "gse_as_printed": gse_as_printed(arms, d, budget, gap),
        "static": static(arms, d, budget, gap),
        "bayesgap_simplified": bayesgap_simplified(arms, budget, gap),
        "peace_claimed": peace_claimed(d, budget, gap, 4.0 * d),
        "peace_g_optimal": peace_g_optimal(arms, d, budget, gap),
        "od_linbai": od_linbai([gap] * max(1, d - 1), arms, d, budget),
        "od_linbai_simplified": od_linbai_simplified(arms, d, budget, gap),
        "linucb": linucb(d, budget, gap),
    }
    return dict(sorted(bounds.items(), key=lambda item: (item[1].log, item[0])))


def peace_crossover(dimension: int) -> float:
    """Return exp(exp(ln d ln ln d)), the K above which the paper has Peace's bound smaller; inf from d = 83.

    It does not hold. The comparison writes A exp(-x) as exp(-x / log A), and takes V of one pull in one bound
    and of n = B / log K pulls in the other. Like with like, Peace's is smaller for large B once K > d^(c/2).
    """
    log = log_peace_crossover(dimension)
    return math.exp(log) if log < 709 else math.inf  # e^709 is about the largest double


def log_peace_crossover(dimension: int) -> float:
    """Return exp(ln d ln ln d) = (ln d)^(ln d), the logarithm of `peace_crossover`; 1 for d = 1."""
    _check(dimension=dimension)
    return float(math.log(dimension) ** math.log(dimension))


def od_crossover(dimension: int) -> int:
    """Return d(d+1)/2, the K below which the paper has OD-LinBAI's bound smaller than its own.

    With equal gaps it does not hold: log K < 2 log d there, so the exponent of `gse` is about twice that of
    `od_linbai` or more; only above K = d^4 is it smaller (d^8 as printed; the paper's corner cases agree).
    With one close rival among distant arms `od_linbai` is the smaller, since it sees all the gaps.
    """
    _check(dimension=dimension)
    return dimension * (dimension + 1) // 2


def _stages(arms: int, eta: float) -> int:
    # With k - 1 rivals and k' = min(k-1, ⌈k/η⌉) kept, Markov's factor (k-1)/k' is at most η for every η > 1.
    _check(arms=arms, eta=eta)
    return len(stage_sizes(arms, eta)) - 1


def _od_factor(arms: int, dimension: int) -> float:
    if dimension > arms:
        raise InputError(f"dimension must be at most the number of arms, {arms}; given {dimension}")
    first = math.log(4 * arms) - math.log(dimension)
    return first + math.log1p(3 * math.log2(dimension) * math.exp(-first))


def _widest(widths: Widths, stages: int) -> float:
    listed = [widths] if isinstance(widths, int | float) else list(widths)
    if len(listed) not in {1, stages}:
        raise InputError(f"widths must be one number or {stages}, one a stage; {len(listed)} given")
    for value in listed:
        _check(widths=value)
    return max(listed)


def _ordered(gaps: Sequence[float], least: int = 1) -> list[float]:
    if len(gaps) < least:
        raise InputError(f"gaps must be those of at least {least} suboptimal arms; {len(gaps)} given")
    for gap in gaps:
        _check(gaps=gap)
    return sorted(gaps)


def _hardness(gaps: Sequence[float], last: int) -> float:
    ordered = _ordered(gaps, max(1, last - 1))
    return max(i / gap / gap for i, gap in enumerate(ordered[: last - 1], start=2))


def _check(**values: float) -> None:
    for name, value in values.items():
        least = LEAST.get(name)
        if not (value > 0 if least is None else value >= least) or value == math.inf:
            wanted = "positive" if least is None else f"at least {least}"
            raise InputError(f"{name} must be {wanted} and finite; given {value}")
