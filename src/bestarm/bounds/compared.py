"""Which bound is the smallest, and where: appendix D of the paper."""

import math

from bestarm.bounds.bound import Bound, check
from bestarm.bounds.rivals import (
    bayesgap_simplified,
    linucb,
    od_linbai,
    od_linbai_simplified,
    peace_claimed,
    peace_g_optimal,
)
from bestarm.bounds.theorems import gse, gse_as_printed, static


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
    check(dimension=dimension)
    return float(math.log(dimension) ** math.log(dimension))


def log_ratio_to_od(arms: int, dimension: int, budget: int, gap: float) -> float:
    """Return the logarithm of `gse_as_printed` over `od_linbai_simplified`, the two that the paper divides.   App. D

    With K = d^q the exponents in B differ by (B Δ² / (d log d)) (1/32 - 1/(4q)), which decides for large B: q < 8 is in
    favour of GSE. Logarithms are to base 2 in both here.
    """
    return gse_as_printed(arms, dimension, budget, gap).log - od_linbai_simplified(arms, dimension, budget, gap).log


def log_ratio_to_od_as_printed(arms: int, dimension: int, gap: float) -> float:
    """Return the logarithm of q log d / (d^(q-1) + log d) exp(-d² Δ² / (d log d)), K = d^q.   App. D, O(.) of the ratio

    The paper's O(.) drops the terms in B, which decide for large B, and takes 1 for 1/32: it is no order of the ratio.
    """
    check(arms=arms, dimension=dimension, gap=gap)
    log = max(1.0, math.log2(dimension))
    first = math.log(math.log2(arms)) - math.log(arms / dimension + log)
    return first - dimension * gap * gap / log


def peace_budget(dimension: int, gap: float, width: float, constant: float = 1) -> float:
    """Return c log d · w / Δ², the budget from which Peace's bound is said to hold.   Remark D.1

    w = max_i ||x_i - x_1||²_{V(λ)^-1} as in `peace_claimed`; nobody states c.
    """
    check(dimension=dimension, gap=gap, width=width, constant=constant)
    return constant * max(1.0, math.log2(dimension)) * width / gap**2
