"""The paper's lemmas, theorems and corollaries: how likely GSE is to be wrong, at most."""

import math
from collections.abc import Callable

from bestarm.bounds.bound import Bound, Widths, check, stage_count, widest
from bestarm.core import AnyArray, namespace


def one_pair(gap: float, width: float, noise_variance: float = 1) -> Bound:
    """Bound the chance that a worse arm looks better: 2 exp(-Δ_i² / (2 σ² w)), w = ||x_i - x_1||²_{V_t^-1}.   Lemma 1

    >>> round(one_pair(gap=1.0, width=0.1), 6)    # 2 exp(-5)
    0.013476
    """
    check(gap=gap, width=width, noise_variance=noise_variance)
    return Bound(math.log(2) - gap * gap / (2 * noise_variance * width))


def one_stage(gap: float, width: float, noise_variance: float = 1, eta: float = 2) -> Bound:
    """Bound the chance that stage t drops the best arm: η times `one_pair`, of the widest pair.   Lemma 2

    Δ is the least gap within the stage. Markov's factor is (k - 1)/k', at most η for k' = min(k - 1, ⌈k/η⌉) kept.
    """
    check(eta=eta)
    return Bound(math.log(eta) + one_pair(gap, width, noise_variance).log)


def one_pair_glm(gap: float, cmin: float, width: float, best_width: float, noise_variance: float = 1) -> Bound:
    """Bound the same with a GLM: Σ over x_i and x_1 of exp(-Δ_i² c_min² / (8 σ² ||x||²_{V_t^-1})).   Lemma B.1

    Δ_i is the gap of the predictors. Like `glm` a guide: the Hessian at a random point is taken for fixed.
    """
    check(gap=gap, cmin=cmin, width=width, best_width=best_width, noise_variance=noise_variance)
    exponents = [-((gap * cmin) ** 2) / (8 * noise_variance * w) for w in (width, best_width)]
    return Bound(max(exponents) + math.log1p(math.exp(min(exponents) - max(exponents))))


def one_stage_glm(gap: float, cmin: float, width: float, noise_variance: float = 1, eta: float = 2) -> Bound:
    """Bound the chance that stage t drops the best arm: 2η exp(-Δ² c_min² / (8 σ² max_i ||x_i||²)).   Lemma B.2"""
    check(eta=eta)
    return Bound(math.log(eta) + one_pair_glm(gap, cmin, width, width, noise_variance).log)


def pulls_for_accuracy(
    weights: AnyArray, leverage: float, accuracy: float, delta: float, constant: float = 2
) -> AnyArray:
    """Return w_i = ⌈c π_i g log(1/δ) / ε²⌉: pulls by a design π after which x'θ is known to ε.   App. C

    g = max_i ||x_i||²_{V(π)^-1}, d at the optimum, with probability 1 - δ for each x and σ = 1. The paper prints c = 1
    and g without its square; with c = 1 the error may be √2 ε.
    """
    check(leverage=leverage, accuracy=accuracy, delta=delta, constant=constant)
    xp = namespace(weights)
    return xp.ceil(constant * weights * leverage * math.log(1 / delta) / accuracy**2 - 1e-9)


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
    check(dimension=dimension, budget=budget, gap=gap, noise_variance=noise_variance)
    check(constant=constant, efficiency=efficiency)
    stages = stage_count(arms, eta)
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
    check(dimension=dimension, budget=budget, gap=gap, noise_variance=noise_variance)
    stage_count(arms, eta)
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
    check(gap=gap, noise_variance=noise_variance, constant=constant)
    stages = stage_count(arms, eta)
    scale = constant * noise_variance * widest(widths, stages)
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
    check(gap=gap, cmin=cmin)
    return gse(arms, dimension, budget, gap * cmin, noise_variance, eta)


def glm_allocation(
    arms: int, gap: float, widths: Widths, cmin: float, noise_variance: float = 1, eta: float = 2
) -> Bound:
    """Bound the error of GSE with a GLM: 2ηs exp(-Δ² c_min² / (8 σ² max_t w_t)).   Thm. 2, Eq. (5)

    Here w_t = max_i ||x_i||²_{V_t^-1}, the largest leverage of stage t. Otherwise as `glm`.

    >>> round(glm_allocation(arms=4, gap=2.0, widths=0.05, cmin=0.5), 6)    # 8 exp(-1 / 0.4)
    0.65668
    """
    check(gap=gap, cmin=cmin)
    return gse_allocation(arms, gap * cmin, widths, noise_variance, eta, constant=8)


def cmin(features: AnyArray, theta: AnyArray, slope: Callable[[AnyArray], AnyArray]) -> AnyArray:
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
    check(radius=radius)
    return math.exp(-radius) / (1 + math.exp(-radius)) ** 2


def frank_wolfe_iterations(dimension: int, arms: int = 0) -> float:
    """Return d ln ln(d + K), the order of Frank-Wolfe steps from uniform; ln ln is at least 1 here.   App. C

    Without `arms`, that from the start of Kumar and Yildirim. The paper has the first reach g <= d; what is
    known is a constant factor of d.
    """
    check(dimension=dimension)
    return dimension * max(1.0, math.log(max(1.0, math.log(dimension + max(0, arms)))))


def frank_wolfe_khachiyan(
    arms: int, dimension: int, budget: int, gap: float, constant: float = 8, efficiency: float = 0.01
) -> Bound:
    """Bound the error of GSE with a design of g <= (1+ε) d, as `gse`; printed: 4 and ε = 0.   Cor. 1"""
    return gse(arms, dimension, budget, gap, constant=constant, efficiency=efficiency)


def frank_wolfe_kumar_yildirim(arms: int, dimension: int, budget: int, gap: float, constant: float = 16) -> Bound:
    """Bound the error of GSE with a design of g <= 2d, twice the constant of `gse`; printed: 8.   Cor. 2"""
    return gse(arms, dimension, budget, gap, constant=constant)
