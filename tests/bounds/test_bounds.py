"""Bounds: numbers by hand, the directions they move in, and where the paper's comparisons hold."""

import math
import pickle
from copy import deepcopy

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from bestarm import bounds
from bestarm.errors import InputError
from bestarm.linalg import leverage, moment

ARMS = st.integers(2, 4000)
DIMENSIONS = st.integers(1, 200)
BUDGETS = st.integers(1, 10**7)
GAPS = st.floats(1e-4, 10.0)

OURS = [
    bounds.gse,
    bounds.gse_as_printed,
    bounds.static,
    bounds.frank_wolfe_khachiyan,
    bounds.frank_wolfe_kumar_yildirim,
    lambda *args: bounds.glm(*args, cmin=0.3),
]
RIVALS = [
    lambda K, d, B, gap: bounds.bayesgap_simplified(K, B, gap),
    lambda K, d, B, gap: bounds.peace_claimed(d, B, gap, width=4 * d),
    bounds.peace_g_optimal,
    lambda K, d, B, gap: bounds.od_linbai([gap] * max(1, d - 1), max(K, d), d, B),
    lambda K, d, B, gap: bounds.linucb(d, B, gap),
]


# Numbers by hand.


def test_gse_counts_the_stages_that_are_run():
    # 125 -> 25 -> 5 -> 1: three stages of 33 pulls.
    assert bounds.gse(125, 2, 100, 0.5, 0.1, eta=5).log == pytest.approx(math.log(30) - 33 * 0.25 / (8 * 0.1 * 2))
    # 13 -> 6 -> 3 -> 2 -> 1 with eta = 2.5, where log K / log eta is 2.8.
    assert bounds.gse(13, 1, 40, 1.0, eta=2.5).log == pytest.approx(math.log(5 * 4) - 10 / 8)
    assert bounds.gse(16, 4, 1600, 1.0, constant=4, efficiency=1.0) == bounds.gse(16, 4, 1600, 1.0)


def test_rivals_by_hand():
    assert bounds.sequential_halving([0.5, 0.4, 0.8], 800).log == pytest.approx(
        math.log(6) - 800 / (8 * 2 * max(2 / 0.16, 3 / 0.25, 4 / 0.64))
    )
    # H = 4 (1 + 1 + 1/4): the best arm counts with the gap of the second.
    assert bounds.bayesgap([2.0, 1.0], 3.0, 103, 4.0, 0.5).log == pytest.approx(
        math.log(3 * 103) - (100 / 4 + 6) / (8 * 9)
    )
    assert bounds.bayesgap([1.0], 2.0, 10, epsilon=3.0).log == pytest.approx(math.log(20) - 10 / (8 * 2 / 9))
    assert bounds.peace_claimed(10, 100, 0.5, width=2.0, constant=3.0).log == pytest.approx(
        math.log(8) - 25 / (6 * math.log2(10))
    )
    assert bounds.peace_g_optimal(16, 8, 100, 0.5).log == pytest.approx(math.log(6) - 25 / (8 * 4 * 3))
    assert bounds.linucb(3, 90, 0.5).log == pytest.approx(-2.5)
    assert bounds.ucb_glm(2, 3, 0.5, cmin=0.1, kappa=0.2).log == pytest.approx(math.log(3) - 1 / 6)
    assert bounds.od_linbai_simplified(64, 8, 100, 0.5).log == pytest.approx(math.log(41) - 36 / 4 / 768)


@pytest.mark.parametrize(
    ("budget", "arms", "dimension", "pulls"),
    [(25, 8, 2, 22), (100, 64, 10, 8.75), (200, 64, 10, 33.75), (320, 16, 16, 72.5), (160, 8, 7, 146 / 3)],
)
def test_od_linbai_has_the_pulls_it_is_run_with(budget, arms, dimension, pulls):
    found = bounds.od_linbai([2.0] * (arms - 1), arms, dimension, budget)
    factor = 4 * arms / dimension + 3 * math.log2(dimension)
    assert found.log == pytest.approx(math.log(factor) - pulls / (32 * dimension / 4))


def test_od_linbai_looks_at_the_smallest_gaps_only():
    assert bounds.od_linbai([9.0, 1.0, 3.0, 2.0], 5, 3, 50) == bounds.od_linbai([1.0, 2.0], 5, 3, 50)
    assert bounds.od_linbai([1.0, 2.0], 3, 1, 50).log == pytest.approx(math.log(12) - 49 / 64)


def test_lower_bounds_by_hand():
    assert bounds.mab_lower([1.0, 0.5], 10).log == pytest.approx(-2)
    assert bounds.mab_lower_tight([1.0, 0.5], 10).log == pytest.approx(-2 / math.log(3))


def test_slopes_and_steps_by_hand():
    def slope(z):
        return 1 / (2 + np.exp(z) + np.exp(-z))

    features = np.array([[1.0, 0.0], [0.0, 2.0]])
    assert bounds.cmin(features, np.array([1.0, 1.5]), slope) == pytest.approx(bounds.logistic_cmin(3.0))
    stacked = bounds.cmin(np.stack([features, 0 * features]), np.array([1.0, 1.5]), slope)
    assert stacked == pytest.approx([bounds.logistic_cmin(3.0), 0.25])
    strict = array_api_strict.asarray(features)
    assert float(bounds.cmin(strict, array_api_strict.ones(2, dtype=strict.dtype), lambda z: z)) == 1.0
    assert bounds.logistic_cmin(1000.0) == 0.0
    assert bounds.frank_wolfe_iterations(10, arms=90) == pytest.approx(10 * math.log(math.log(100)))
    assert bounds.frank_wolfe_iterations(100) == pytest.approx(100 * math.log(math.log(100)))
    assert bounds.frank_wolfe_iterations(1) == 1.0


# What a bound is.


def test_a_bound_is_a_float_that_keeps_its_logarithm():
    bound = bounds.Bound(-3.0)
    assert bound == math.exp(-3)
    for again in (pickle.loads(pickle.dumps(bound)), deepcopy(bound)):
        assert again == bound
        assert again.log == -3.0
    assert bounds.gse(4, 1, 10**9, 100.0) == 0.0
    assert bounds.gse(4, 1, 10**9, 100.0).log == pytest.approx(-6.25e11)
    assert bounds.gse(16, 1, 3, 1.0) == 1.0
    assert bounds.gse(16, 1, 3, 1e200).log == math.log(16)
    assert bounds.mab_lower([1e-300], 5) == 1.0


@settings(max_examples=60, deadline=None)
@given(ARMS, DIMENSIONS, BUDGETS, GAPS)
def test_all_bounds_are_probabilities_that_fall_with_the_budget_and_the_gap(arms, dimension, budget, gap):
    for bound in OURS + RIVALS:
        here = bound(arms, dimension, budget, gap)
        assert 0 <= here <= 1
        assert bound(arms, dimension, budget, 1.1 * gap).log <= here.log + 1e-9 or here.log > 0
        # K B exp(-B Δ² / c) rises in B at first, and OD-LinBAI's in the gap while its pulls are below 0.
        more = bound(arms, dimension, budget + 997, gap)
        assert more.log <= here.log + 1e-9 or more == 1


@settings(max_examples=60, deadline=None)
@given(ARMS, DIMENSIONS, BUDGETS, GAPS)
def test_our_bounds_rise_with_the_arms_the_dimension_and_the_noise(arms, dimension, budget, gap):
    for bound in OURS:
        here = bound(arms, dimension, budget, gap).log
        assert bound(arms + 1, dimension, budget, gap).log >= here - 1e-9
        assert bound(arms, dimension + 1, budget, gap).log >= here
    for bound in OURS[:3]:
        assert bound(arms, dimension, budget, gap, 1.5).log >= bound(arms, dimension, budget, gap).log
    assert bounds.glm(arms, dimension, budget, gap, 0.1).log >= bounds.glm(arms, dimension, budget, gap, 0.2).log


@settings(max_examples=60, deadline=None)
@given(ARMS, DIMENSIONS, BUDGETS, GAPS, st.sampled_from([2, 3, 7]))
def test_corrected_bounds_are_above_the_printed_ones(arms, dimension, budget, gap, eta):
    place = (arms, dimension, budget, gap)
    corrected = bounds.gse(*place, eta=eta).log
    assert corrected >= bounds.gse(*place, eta=eta, constant=4).log
    if arms >= eta:
        assert corrected >= bounds.gse_as_printed(*place, eta=eta).log - 1e-9
    assert bounds.frank_wolfe_khachiyan(*place).log >= bounds.gse(*place).log
    assert bounds.frank_wolfe_kumar_yildirim(*place).log >= bounds.frank_wolfe_khachiyan(*place).log
    assert bounds.static(*place) == bounds.gse(*place, eta=arms)


def test_the_two_forms_of_each_theorem_agree_where_the_second_is_derived():
    # Stage budget 400 = 1600 / 4; ||x_i||² <= d / n = 1/100 and ||x_i - x_1||² <= 4/100.
    assert bounds.gse_allocation(16, 0.7, 0.04).log == pytest.approx(bounds.gse(16, 4, 1600, 0.7).log)
    assert bounds.gse_allocation(16, 0.7, [0.04, 0.01, 0.02, 0.03]) == bounds.gse_allocation(16, 0.7, 0.04)
    assert bounds.gse_allocation(16, 0.7, 0.04, constant=4).log > bounds.gse_allocation(16, 0.7, 0.04).log
    assert bounds.glm_allocation(16, 0.7, 0.01, 0.2).log == pytest.approx(bounds.glm(16, 4, 1600, 0.7, 0.2).log)


def test_the_general_bound_covers_the_exact_error_of_one_stage():
    x = np.random.default_rng(4).normal(size=(6, 3))
    theta = np.array([1.0, -0.5, 0.2])
    means = np.sort(x @ theta)[::-1]
    x = x[np.argsort(-(x @ theta))]
    V = moment(x, np.full(6, 30.0))
    widths = leverage(x - x[0], np.linalg.inv(V))
    least_error = norm.sf((means[0] - means[1:]) / np.sqrt(widths[1:])).max()
    assert least_error <= bounds.gse_allocation(6, means[0] - means[1], widths.max(), eta=6)


# The paper's comparisons.


@pytest.mark.parametrize(("arms", "stages", "first"), [(2, 1, 27), (4, 2, 67)])
def test_the_printed_theorem_fails_on_opposite_arms_and_the_corrected_one_holds(arms, stages, first):
    for budget in range(2, 400, 2):
        # theta > 0 is estimated below 0, and the one arm at 1 falls behind all those at -1.
        error = norm.sf(math.sqrt(budget // stages) / 2)
        assert error <= bounds.gse(arms, 1, budget, 1.0)
        if budget >= first:
            assert error > bounds.gse_as_printed(arms, 1, budget, 1.0)


def test_bayesgap_is_beaten_with_few_features_and_not_with_many():
    assert bounds.gse(256, 8, 10**8, 0.1).log < bounds.bayesgap_simplified(256, 10**8, 0.1).log
    for size, corrected, printed in [(16, True, True), (32, False, True), (256, False, True), (512, False, False)]:
        rival = bounds.bayesgap_simplified(size, 10**9, 0.1).log
        assert (bounds.gse(size, size, 10**9, 0.1).log < rival) == corrected
        assert (bounds.gse_as_printed(size, size, 10**9, 0.1).log < rival) == printed


def test_the_simple_bayesgap_is_the_general_one_with_equal_gaps():
    general = bounds.bayesgap([0.5] * 9, 10.0, 10_000)
    assert general.log == pytest.approx(bounds.bayesgap_simplified(10, 10_000, 0.5).log)


def test_peace_crosses_over_long_before_the_paper_says():
    # The same design, so the same width per pull, and the same constant 2 in both.
    dimension, arms, budget = 16, 64, 10**7
    assert math.log(arms) < bounds.log_peace_crossover(dimension) / 4
    peace = bounds.peace_claimed(dimension, budget, 0.1, width=64.0, constant=2).log
    assert peace < bounds.gse_allocation(arms, 0.1, 64.0 / (budget // 6)).log
    # Below K = d it is the other way round, and with a constant c the turn is at K = d^(c/2).
    assert peace > bounds.gse_allocation(8, 0.1, 64.0 / (budget // 3)).log
    peace = bounds.peace_claimed(dimension, budget, 0.1, width=64.0, constant=8).log
    assert peace > bounds.gse_allocation(16**3, 0.1, 64.0 / (budget // 12)).log
    assert peace < bounds.gse_allocation(16**5, 0.1, 64.0 / (budget // 20)).log


def test_the_second_reading_of_peace_is_worse_only_in_many_dimensions():
    for dimension, worse in [(8, False), (128, False), (512, True)]:
        peace = bounds.peace_g_optimal(1024, dimension, 10**9, 0.1).log
        assert (bounds.gse(1024, dimension, 10**9, 0.1).log < peace) == worse


def test_od_linbai_is_not_tighter_below_its_crossover_when_gaps_are_equal():
    seen = 0
    for dimension in (4, 8, 16, 32, 64):
        for arms in (dimension, 2 * dimension, bounds.od_crossover(dimension) - 1):
            for budget in (100 * arms, 10_000 * arms):
                theirs = bounds.od_linbai([0.5] * (dimension - 1), arms, dimension, budget)
                ours = bounds.gse(arms, dimension, budget, 0.5)
                if min(ours, theirs) < 1:
                    seen += 1
                    assert ours.log < theirs.log
    assert seen >= 15


def test_od_linbai_is_tighter_with_one_close_rival():
    far = bounds.od_linbai([0.1] + [1.0] * 30, 32, 32, 100_000)
    assert far.log < bounds.gse(32, 32, 100_000, 0.1).log


@pytest.mark.parametrize(("power", "corrected", "printed"), [(3, False, False), (6, True, False), (9, True, True)])
def test_od_linbai_is_tighter_far_above_its_crossover_for_a_large_budget(power, corrected, printed):
    place = (8**power, 8, 10**15, 0.1)
    theirs = bounds.od_linbai([0.1] * 7, 8**power, 8, 10**15).log
    assert (theirs < bounds.gse(*place).log) == corrected
    assert (theirs < bounds.gse_as_printed(*place).log) == printed


def test_what_the_paper_makes_of_od_linbai_bounds_neither_way():
    above = [bounds.od_linbai_simplified(d * d, d, 10_000, 0.5).log for d in (4, 5)]
    exact = [bounds.od_linbai([0.5] * (d - 1), d * d, d, 10_000).log for d in (4, 5)]
    assert above[0] > exact[0]
    assert above[1] < exact[1]


def test_linucb_as_quoted_is_better_in_few_dimensions_and_worse_in_many():
    assert bounds.linucb(8, 10**6, 0.1).log < bounds.gse_as_printed(1024, 8, 10**6, 0.1).log
    assert bounds.linucb(64, 10**8, 0.1).log > bounds.gse_as_printed(1024, 64, 10**8, 0.1).log


def test_ucb_glm_as_printed_gets_worse_with_the_budget():
    found = [bounds.ucb_glm(2, budget, 0.5, cmin=0.1, kappa=0.2).log for budget in (1, 10, 100, 1000)]
    assert found == sorted(found)


def test_the_upper_bound_is_above_the_lower_ones_on_plain_bandits():
    gaps = [0.5] * 15
    for budget in (100, 1000, 10_000):
        assert bounds.mab_lower(gaps, budget) <= bounds.mab_lower_tight(gaps, budget)
        assert bounds.mab_lower_tight(gaps, budget) <= bounds.gse(16, 16, budget, 0.5)


def test_crossovers():
    assert [bounds.od_crossover(d) for d in (1, 2, 10)] == [1, 3, 55]
    assert bounds.peace_crossover(16) == pytest.approx(math.exp(math.log(16) ** math.log(16)))
    assert bounds.log_peace_crossover(16) == pytest.approx(math.exp(math.log(16) * math.log(math.log(16))))
    assert math.isfinite(bounds.peace_crossover(82))
    assert bounds.peace_crossover(83) == math.inf
    assert bounds.log_peace_crossover(1) == 1.0


@settings(max_examples=40, deadline=None)
@given(ARMS, DIMENSIONS, BUDGETS, GAPS)
def test_the_smallest_comes_first(arms, dimension, budget, gap):
    found = bounds.smallest(arms, dimension, budget, gap)
    logs = [bound.log for bound in found.values()]
    assert logs == sorted(logs)
    assert len(found) == 9
    assert found["gse"] == bounds.gse(arms, min(arms, dimension), budget, gap)


def test_bounds_of_any_size_are_told_apart():
    found = bounds.smallest(1000, 20, 10**12, 1.0)
    assert set(found.values()) == {0.0}
    assert len({bound.log for bound in found.values()}) == 9


# Refusals.


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: bounds.gse(1, 2, 10, 0.5), "arms must be at least 2"),
        (lambda: bounds.gse(4, 0, 10, 0.5), "dimension must be at least 1"),
        (lambda: bounds.gse(4, 2, 0, 0.5), "budget must be at least 1"),
        (lambda: bounds.gse(4, 2, 10, 0.0), "gap must be positive and finite; given 0.0"),
        (lambda: bounds.gse(4, 2, 10, math.nan), "gap must be positive"),
        (lambda: bounds.gse(4, 2, 10, 0.5, -1.0), "noise_variance must be positive"),
        (lambda: bounds.gse(4, 2, 10, 0.5, eta=1.0), "eta must be greater than 1"),
        (lambda: bounds.gse(4, 2, 10, 0.5, eta=math.inf), "eta must be positive and finite"),
        (lambda: bounds.gse(4, 2, 10, 0.5, efficiency=-0.1), "efficiency must be at least 0"),
        (lambda: bounds.gse_as_printed(4, 2, 10, 0.5, eta=0.5), "eta must be greater than 1"),
        (lambda: bounds.gse_allocation(4, 0.5, [0.1, 0.1, 0.1]), "widths must be one number or 2"),
        (lambda: bounds.gse_allocation(4, 0.5, [0.1, 0.0]), "widths must be positive"),
        (lambda: bounds.glm(4, 2, 10, 0.5, cmin=0.0), "cmin must be positive"),
        (lambda: bounds.glm_allocation(4, -0.5, 0.1, cmin=0.1), "gap must be positive"),
        (lambda: bounds.logistic_cmin(-1.0), "radius must be at least 0"),
        (lambda: bounds.frank_wolfe_iterations(0), "dimension must be at least 1"),
        (lambda: bounds.mab_lower([], 10), "at least 1 suboptimal arms; 0 given"),
        (lambda: bounds.mab_lower_tight([0.5, 0.0], 10), "gaps must be positive"),
        (lambda: bounds.sequential_halving([], 10), "at least 1 suboptimal arms; 0 given"),
        (lambda: bounds.sequential_halving([0.5], 0), "budget must be at least 1"),
        (lambda: bounds.bayesgap([0.5], 0.0, 10), "kappa must be positive"),
        (lambda: bounds.bayesgap([0.5], 1.0, 10, epsilon=-1.0), "epsilon must be at least 0"),
        (lambda: bounds.peace_claimed(2, 10, 0.5, width=0.0), "width must be positive"),
        (lambda: bounds.peace_g_optimal(1, 2, 10, 0.5), "arms must be at least 2"),
        (lambda: bounds.od_linbai([0.5], 4, 3, 10), "at least 2 suboptimal arms; 1 given"),
        (lambda: bounds.od_linbai([0.5] * 4, 4, 5, 10), "dimension must be at most the number of arms, 4"),
        (lambda: bounds.od_linbai_simplified(4, 5, 10, 0.5), "dimension must be at most"),
        (lambda: bounds.linucb(2, 10, -0.5), "gap must be positive"),
        (lambda: bounds.ucb_glm(2, 10, 0.5, cmin=0.1, kappa=-1.0), "kappa must be positive"),
        (lambda: bounds.smallest(4, 0, 10, 0.5), "dimension must be at least 1"),
        (lambda: bounds.od_crossover(0), "dimension must be at least 1"),
    ],
)
def test_refusals_name_the_argument(call, says):
    with pytest.raises(InputError, match=says):
        call()


# The lemmas and what the appendices name.


def test_the_theorem_is_the_second_lemma_summed_over_the_stages():
    widths = 0.07
    summed = bounds.one_stage(0.9, widths, 1.3, 2.0).log + math.log(4)  # 16 arms: four stages
    assert bounds.gse_allocation(16, 0.9, widths, 1.3).log == pytest.approx(summed)
    summed = bounds.one_stage_glm(0.9, 0.2, widths, 1.3).log + math.log(4)
    assert bounds.glm_allocation(16, 0.9, widths, 0.2, 1.3).log == pytest.approx(summed)


def test_a_pair_of_a_glm_counts_both_arms():
    one, other = (math.exp(-(0.8**2) * 0.25 / (8 * 0.1 * w)) for w in (0.02, 0.3))
    assert bounds.one_pair_glm(0.8, 0.5, 0.02, 0.3, 0.1).log == pytest.approx(math.log(one + other))


@pytest.mark.parametrize("gap", [0.3, 1.0, 2.0])
def test_a_pair_is_mistaken_no_more_often_than_the_lemma_says(gap):
    assert norm.cdf(-gap / math.sqrt(0.5)) <= bounds.one_pair(gap, 0.5)


def test_pulls_for_an_accuracy_are_enough(rng):
    """With them |x'(θ̂ − θ)| is off by ε or more, on either side, with probability δ at most; with c = 1 more often."""
    x = rng.standard_normal((8, 3))
    weights = np.full(8, 1 / 8)
    g = np.max(leverage(x, np.linalg.inv(moment(x, weights))))
    missed = {}
    for constant in (1, 2):
        pulls = bounds.pulls_for_accuracy(weights, g, accuracy=0.4, delta=0.1, constant=constant)
        widest = np.max(leverage(x, np.linalg.inv(moment(x, pulls))))
        missed[constant] = norm.cdf(-0.4 / math.sqrt(widest))
        assert widest <= 0.4**2 / (constant * math.log(10)) * (1 + 1e-9)
    assert missed[2] <= 0.1
    assert missed[1] > missed[2]


def test_the_hardness_of_peace_is_that_of_the_best_allocation():
    arms = np.array([[1.0, 0.0], [0.0, 1.0], [math.cos(0.1), math.sin(0.1)]])
    rho, gamma, weights = bounds.peace_hardness(arms, arms @ np.array([2.0, 0.0]))
    assert rho == pytest.approx(220.15 / 2, rel=0.011)
    assert weights == pytest.approx([0.048, 0.952, 0.0], abs=0.01)
    assert 0.5 * rho < gamma < 2 * math.log(3) * rho


def test_the_gaussian_hardness_of_two_arms_is_half_the_plain_one():
    """One direction: E max(0, ·)² would be half, but the maximum over a single arm may be negative: E ξ² = 1."""
    rho, gamma, _ = bounds.peace_hardness(np.eye(2), np.array([1.0, 0.0]), draws=200_000)
    assert gamma == pytest.approx(rho, rel=0.02)


def test_the_ratio_to_od_linbai_is_not_what_is_printed():
    """What the printed order leaves out decides: below q = 8 the ratio falls in B, above it grows."""
    for q, falls in ((3, True), (9, False)):
        ratios = [bounds.log_ratio_to_od(4**q, 4, B, 0.5) for B in (10**3, 10**5, 10**7)]
        assert (ratios[0] > ratios[1] > ratios[2]) == falls
        assert (ratios[0] < ratios[1] < ratios[2]) == (not falls)
    assert bounds.log_ratio_to_od_as_printed(4**3, 4, 0.5) == pytest.approx(math.log(6 / (16 + 2)) - 4 * 0.25 / 2)


def test_peaces_budget_grows_with_the_width():
    assert bounds.peace_budget(8, 0.5, 4.0) == 3 * 4 / 0.25
    assert bounds.peace_budget(1, 1.0, 4.0, constant=2.0) == 8


# Systems the paper only cites.


def test_ucb_es_bound_is_least_at_its_largest_a():
    gaps, budget = [0.1, 0.2, 0.2], 3000
    a = 25 / 36 * (budget - 4) / bounds.plain_hardness(gaps)
    assert bounds.plain_hardness(gaps) == pytest.approx(250)
    at_most = bounds.ucb_e(gaps, budget)
    assert at_most.log == pytest.approx(math.log(2 * budget * 4) - (budget - 4) / (18 * 250))
    assert bounds.ucb_e(gaps, budget, a / 2).log > at_most.log
    assert bounds.ucb_e(gaps, budget, b=2.0).log > at_most.log
    with pytest.raises(InputError, match="the bound holds for a from 0 to"):
        bounds.ucb_e(gaps, budget, 2 * a)


def test_ugapebs_bound_is_least_at_its_largest_a():
    gaps, budget = [0.1, 0.2, 0.2], 3000
    H = bounds.ugapeb_hardness(gaps)
    assert pytest.approx(4 * 250) == H
    at_most = bounds.ugapeb(gaps, budget)
    assert at_most.log == pytest.approx(math.log(2 * budget * 4) - (budget - 4) / (2 * H))
    assert bounds.ugapeb_hardness(gaps, 0.4, 3.0) == pytest.approx(9 * 4 / 0.4**2)
    with pytest.raises(InputError, match="the bound holds for a from 0 to"):
        bounds.ugapeb(gaps, budget, -1.0)


def test_shvars_bound_counts_the_stages_that_are_run():
    variances = [1.0, 2.0, 4.0, 8.0, 1.0]
    assert bounds.shvar(0.5, variances, 1000).log == pytest.approx(math.log(6) - (333 - 5) * 0.25 / 64)
    log = math.log2(5)
    printed = math.log(2 * log) - (1000 - 5 * log) * 0.25 / (4 * log * 16)
    assert bounds.shvar_as_printed(0.5, variances, 1000).log == pytest.approx(printed)
    with pytest.raises(InputError, match="variance must be positive"):
        bounds.shvar(0.5, [1.0, 0.0], 100)


def test_the_hardness_of_od_linbai():
    assert bounds.linear_hardness([0.5, 0.1, 1.0], 3) == pytest.approx(max(2 / 0.01, 3 / 0.25))
