"""What the rivals' papers promise, logarithms to base 2; rewards in [0, 1] where no noise is named."""

import math
from collections.abc import Sequence

from bestarm.bounds.bound import Bound, check, ordered
from bestarm.bounds.hardness import accuracy_hardness, linear_hardness, plain_hardness
from bestarm.errors import InputError


def mab_lower(gaps: Sequence[float], budget: int) -> Bound:
    """Return exp(-B / Σ_i Δ_i^-2), the lower bound for plain bandits of Kaufmann et al. as quoted in Sec. 4.

    >>> round(mab_lower([1.0, 0.5], budget=10), 4)    # exp(-10 / 5)
    0.1353
    """
    check(budget=budget)
    return Bound(-budget / sum(1 / gap / gap for gap in ordered(gaps)))


def mab_lower_tight(gaps: Sequence[float], budget: int) -> Bound:
    """Return exp(-B / (ln K Σ_i Δ_i^-2)), that of Carpentier and Locatelli as quoted in Sec. 4."""
    return Bound(mab_lower(gaps, budget).log / math.log(len(gaps) + 1))


def sequential_halving(gaps: Sequence[float], budget: int) -> Bound:
    """Bound the error of sequential halving, rewards in [0, 1]: 3 log K exp(-B / (8 H_2 log K)).

    H_2 = max_i i / Δ_i² over i = 2, ..., K with the gaps in increasing order (Karnin, Koren and Somekh).
    """
    check(budget=budget)
    hardness = linear_hardness(gaps, len(gaps) + 1)
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
    check(kappa=kappa, budget=budget, noise_variance=noise_variance, prior_variance=prior_variance)
    check(epsilon=epsilon)
    arms = len(gaps) + 1
    hardness = accuracy_hardness(gaps, epsilon)
    knowledge = (budget - arms) / noise_variance + kappa / prior_variance
    return Bound(math.log(arms) + math.log(budget) - knowledge / (8 * hardness))


def bayesgap_simplified(arms: int, budget: int, gap: float) -> Bound:
    """Return K B exp(-B Δ² / (32 K)): `bayesgap` with equal gaps, ||x_i|| = 1 and σ = η_b = 1.   App. D

    The paper calls GSE's gain over it obvious. In the exponent it is a gain where d s < 4K (8K as printed):
    with K = d, where features tell nothing, not above K = 16 (256 as printed).
    """
    check(arms=arms, budget=budget, gap=gap)
    return Bound(math.log(arms) + math.log(budget) - budget * gap * gap / (32 * arms))


def peace_claimed(dimension: int, budget: int, gap: float, width: float, constant: float = 1) -> Bound:
    """Return 2⌈log d⌉ exp(-B Δ² / (c w log d)), the paper's first reading of Peace.   App. D (i)

    w = max_i ||x_i - x_1||²_{V(λ)^-1} of the design λ, n times what `gse_allocation` takes; at most 4d if
    λ is G-optimal. The paper prints the norm without its square.
    """
    check(dimension=dimension, budget=budget, gap=gap, width=width, constant=constant)
    rounds = max(1.0, math.log2(dimension))
    return Bound(math.log(2 * math.ceil(rounds)) - budget * gap * gap / (constant * width * rounds))


def peace_g_optimal(arms: int, dimension: int, budget: int, gap: float, constant: float = 1) -> Bound:
    """Return 2⌈log d⌉ exp(-B Δ² / (c' d log K log d)), the paper's second reading of Peace.   App. D (ii)

    "Worse than ours" holds in order. With c' = 1 its exponent beats that of `gse` below d = 2^8 (2^4 as
    printed), so which is smaller hangs on a c' nobody states.
    """
    check(arms=arms, dimension=dimension)
    return peace_claimed(dimension, budget, gap, dimension * math.log2(arms), constant)


def od_linbai(gaps: Sequence[float], arms: int, dimension: int, budget: int) -> Bound:
    """Bound the error of OD-LinBAI: (4K/d + 3 log d) exp(-m / (32 H)), H = max_{2<=i<=d} i / Δ_i².   App. D

    m = (B - min(K, d(d+1)/2) - Σ_{r<R} ⌈d/2^r⌉) / R with R = ⌈log d⌉, at least 1; where m <= 0 the bound is
    1. The d - 1 smallest gaps are enough; for d = 1 arm 2 stands in for the empty maximum.

    >>> round(od_linbai([1.0] * 63, arms=64, dimension=10, budget=500).log, 6)    # log 35.566 - 108.75 / 320
    3.23154
    """
    check(arms=arms, dimension=dimension, budget=budget)
    rounds = max(1, (dimension - 1).bit_length())
    spent = min(arms, od_crossover(dimension)) + sum(-(-dimension // 2**r) for r in range(1, rounds))
    pulls = (budget - spent) / rounds
    return Bound(od_factor(arms, dimension) - pulls / (32 * linear_hardness(gaps, max(2, dimension))))


def od_linbai_simplified(arms: int, dimension: int, budget: int, gap: float) -> Bound:
    """Return (4K/d + 3 log d) exp((d² - B) Δ² / (32 d log d)), what the paper makes of it.   App. D

    Said to favour OD-LinBAI, but d² is more than the d(d+1)/2 (or K) it replaces, so for d a power of two it
    is above `od_linbai`; elsewhere log d for ⌈log d⌉ may put it below. It bounds neither way.
    """
    check(arms=arms, dimension=dimension, budget=budget, gap=gap)
    scale = 32 * dimension * max(1.0, math.log2(dimension))
    return Bound(od_factor(arms, dimension) + (dimension**2 - budget) * gap * gap / scale)


def linucb(dimension: int, budget: int, gap: float) -> Bound:
    """Return exp(-B Δ² / d²), the order the paper derives for LinUCB, without logs and constants.   App. F

    The paper finds d² worse than its d; but it has 4 d log K there, which is larger for d < 4 log K.
    """
    check(dimension=dimension, budget=budget, gap=gap)
    return Bound(-budget * gap * gap / dimension**2)


def ucb_glm(dimension: int, budget: int, gap: float, cmin: float, kappa: float) -> Bound:
    """Return B exp(-Δ² κ² / (c_min² d B)), what the paper derives for UCB-GLM, without constants.   App. F

    Said to decrease slowly in B, it increases, since the cumulative regret was not divided by B.
    """
    check(dimension=dimension, budget=budget, gap=gap, cmin=cmin, kappa=kappa)
    ratio = gap * kappa / cmin
    return Bound(math.log(budget) - ratio * ratio / (dimension * budget))


def od_crossover(dimension: int) -> int:
    """Return d(d+1)/2, the K below which the paper has OD-LinBAI's bound smaller than its own.

    With equal gaps it does not hold: log K < 2 log d there, so the exponent of `gse` is about twice that of
    `od_linbai` or more; only above K = d^4 is it smaller (d^8 as printed; the paper's corner cases agree).
    With one close rival among distant arms `od_linbai` is the smaller, since it sees all the gaps.
    """
    check(dimension=dimension)
    return dimension * (dimension + 1) // 2


def od_factor(arms: int, dimension: int) -> float:
    if dimension > arms:
        raise InputError(f"dimension must be at most the number of arms, {arms}; given {dimension}")
    first = math.log(4 * arms) - math.log(dimension)
    return first + math.log1p(3 * math.log2(dimension) * math.exp(-first))


def ucb_e(gaps: Sequence[float], budget: int, a: float | None = None, b: float = 1) -> Bound:
    """Bound the error of UCB-E: 2 B K exp(-2a / 25) for a ≤ (25/36) (B - K) / (b² H), the largest where none is given.

    H = Σ_k Δ_k^-2 over all arms, see `plain_hardness`; b is the range of the rewards (2σ will do). At the largest a it
    is 2 B K exp(-(B - K) / (18 b² H)).

    >>> ucb_e([0.5], 1000).log == math.log(4000) - 998 / (18 * 8)
    True
    """
    largest = ucb_e_exploration(gaps, budget, b)
    return _explored("a", a, largest, math.log(2 * budget * (len(gaps) + 1)), 2 / 25)


def ucb_e_exploration(gaps: Sequence[float], budget: int, b: float = 1) -> float:
    """Return (25/36) (B - K) / (b² H), the a for which `ucb_e` is least."""
    check(budget=budget, b=b)
    return 25 / 36 * max(0, budget - len(gaps) - 1) / (b * b * plain_hardness(gaps))


def ugapeb(gaps: Sequence[float], budget: int, a: float | None = None, epsilon: float = 0, b: float = 1) -> Bound:
    """Bound the chance of a regret of ε or more (above 0 if ε = 0) of UGapEb: 2 K B exp(-2a), a ≤ (B - K)/(4 H_ε).

    Of the recommendation as printed, at the round of the smallest bound.
    """
    largest = ugapeb_exploration(gaps, budget, epsilon, b)
    return _explored("a", a, largest, math.log(2 * budget * (len(gaps) + 1)), 2)


def ugapeb_exploration(gaps: Sequence[float], budget: int, epsilon: float = 0, b: float = 1) -> float:
    """Return (B - K) / (4 H_ε), the a for which `ugapeb` is least."""
    check(budget=budget)
    return max(0, budget - len(gaps) - 1) / (4 * ugapeb_hardness(gaps, epsilon, b))


def ugapeb_hardness(gaps: Sequence[float], epsilon: float = 0, b: float = 1) -> float:
    """Return H_ε = Σ_k b² / max((Δ_k + ε)/2, ε)² over all arms, the best with the smallest gap."""
    check(b=b)
    return b * b * accuracy_hardness(gaps, epsilon)


def shvar(gap: float, variances: Sequence[float], budget: int) -> Bound:
    """Bound the error of SHVar: 2 s exp(-(n - K) Δ² / (4 Σ_k σ_k²)), s = ⌈log₂ K⌉ stages of n = ⌊B/s⌋ pulls.

    >>> shvar(1.0, [1.0, 2.0], 50).log == math.log(2) - 48 / 12
    True
    """
    stages = _halvings(gap, variances, budget)
    return Bound(math.log(2 * stages) - (budget // stages - len(variances)) * gap * gap / (4 * sum(variances)))


def shvar_as_printed(gap: float, variances: Sequence[float], budget: int) -> Bound:
    """Return 2 log K exp(-(B - K log K) Δ² / (4 log K Σ_k σ_k²)), as its paper has it."""
    _halvings(gap, variances, budget)
    log = math.log2(len(variances))
    pulls = budget - len(variances) * log
    return Bound(math.log(2 * log) - pulls * gap * gap / (4 * log * sum(variances)))


def _halvings(gap: float, variances: Sequence[float], budget: int) -> int:
    check(gap=gap, budget=budget, arms=len(variances))
    for variance in variances:
        check(variance=variance)
    return (len(variances) - 1).bit_length()


def _explored(name: str, given: float | None, largest: float, factor: float, rate: float) -> Bound:
    a = largest if given is None else given
    if not 0 <= a <= largest * (1 + 1e-12):
        raise InputError(f"the bound holds for {name} from 0 to {largest:g}; given {a:g}")
    return Bound(factor - rate * a)
