"""Chances that come true, estimates that allow for selection, and warnings when they should come."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from bestarm import catalog
from bestarm.bandits import Bandit, Bernoulli, Gaussian, Poisson
from bestarm.core import Tally
from bestarm.errors import BudgetWarning, InputError, LackOfFitWarning, RankDeficientWarning, SeparationWarning
from bestarm.linalg import tally
from bestarm.models.glm import GLM
from bestarm.models.law import Poisson as PoissonLink
from bestarm.models.linear import Linear
from bestarm.models.means import Means
from bestarm.playing import play
from bestarm.study import create_study
from bestarm.tables.arms import Arms

BINS = ((0.0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 0.9), (0.9, 0.97), (0.97, 1.01))
CASES = {  # world, policy, model, noise told, budget
    "linear, noise known": ("linear", "gse-lin-fwg", Linear(), 1.0, 60),
    "linear, noise estimated": ("linear", "gse-lin-fwg", Linear(), None, 60),
    "linear, few pulls": ("linear", "lingape-greedy", Linear(), None, 24),
    "means": ("linear", "sequential-halving", Means(), None, 80),
    "logistic": ("logistic", "gse-log-fwg", GLM(), None, 150),
    "poisson": ("poisson", "gse-poi-fwg", GLM(PoissonLink()), None, 40),
}


def worlds(kind, count, rng, sizes="heavy"):
    """Eight arms in four dimensions, half of them with an intercept, effects of all sizes.

    "heavy": the spread of the predictors is half-Cauchy, as the prior has it; "moderate": between 0.4 and 4, evenly on
    a logarithmic scale, which the prior does not know.
    """
    features = rng.standard_normal((count, 8, 4))
    features[: count // 2, :, 0] = 1
    heavy = np.minimum(np.abs(rng.standard_cauchy((count, 1, 1))), 2 if kind == "poisson" else 10)
    size = heavy / 2 if sizes == "heavy" else np.exp(rng.uniform(np.log(0.2), np.log(2.0), (count, 1, 1)))
    predictor = (features @ (size * rng.standard_normal((count, 4, 1))))[..., 0]
    if kind == "logistic":
        return Bandit(features, (1 + np.tanh(predictor / 2)) / 2, Bernoulli())
    if kind == "poisson":
        return Bandit(features, np.exp(predictor), Poisson())
    return Bandit(features, predictor, Gaussian(1.0))


def simulate(case, count, seed, draws=1000, sizes="heavy"):
    """Return, for that many studies: p_best as said, whether it was right, and how the winner's estimates did."""
    kind, policy, model, noise, budget = CASES[case]
    rng = np.random.default_rng(seed)
    bandit = worlds(kind, count, rng, sizes)
    seen = []
    run = play(
        catalog.policy(policy), bandit, budget, rng, lambda round: seen.append(tally(round.pulls, round.totals, 8))
    )
    known = sum(seen[1:], seen[0])
    rows = []
    for i in range(count):
        mine = Tally(known.counts[i], known.sums[i], known.squares[i])
        belief = model.posterior(bandit.features[i], mine, noise, draws, rng)
        arm, truth = int(run.arm[i]), bandit.means[i]
        low, high = np.quantile(belief.draws[:, arm], (0.025, 0.975))
        held, regret = low <= truth[arm] <= high, np.mean(belief.draws.max(1) - belief.draws[:, arm])
        right = truth[arm] >= truth.max()
        rows.append((belief.chances[arm], right, held, belief.mean[arm] - truth[arm], regret, truth.max() - truth[arm]))
    return np.array(rows, dtype=np.float64)


def calibrated(said, right, level):
    """Assert that in each bin as many were right as said, within the binomial interval of probability 1 - level."""
    for low, high in BINS:
        inside = (said >= low) & (said < high)
        count = int(inside.sum())
        if count:
            p = float(np.clip(said[inside].mean(), 1e-9, 1 - 1e-9))
            least, most = binom.ppf(level / 2, count, p), binom.ppf(1 - level / 2, count, p)
            print(f"   {low:.2f}-{high:.2f}: {count:5d} say {p:.3f}, {right[inside].mean():.3f} right")
            assert least <= right[inside].sum() <= most, (low, high, count, p, right[inside].mean())


@pytest.mark.parametrize("case", CASES)
def test_what_is_said_comes_true(case):
    rows = simulate(case, 150 if case in ("logistic", "poisson") else 300, seed=3, draws=500)
    calibrated(rows[:, 0], rows[:, 1], 1e-5)


@pytest.mark.statistics
@pytest.mark.parametrize("case", CASES)
def test_of_a_thousand_studies_that_say_so_the_share_is_right(case):
    rows = np.concatenate([simulate(case, 1000, seed) for seed in range(100, 118)])
    print(f"\n{case}")
    assert np.sum((rows[:, 0] >= 0.8) & (rows[:, 0] < 0.9)) > 950
    calibrated(rows[:, 0], rows[:, 1], 1e-4)
    held, regret, true_regret = rows[:, 2].mean(), rows[:, 4].mean(), rows[:, 5]
    print(f"   intervals hold {held:.3f}, regret said {regret:.4f}, true {true_regret.mean():.4f}")
    assert 0.93 < held < 0.97
    if case != "poisson":  # a few runs with hardly a count expect enormous regrets
        assert regret == pytest.approx(true_regret.mean(), rel=0.15)


@pytest.mark.statistics
@pytest.mark.parametrize("case", ["linear, noise known", "linear, noise estimated", "linear, few pulls", "logistic"])
def test_where_effects_are_not_as_the_prior_has_them_high_chances_hold_all_the_same(case):
    rows = np.concatenate([simulate(case, 1000, seed, sizes="moderate") for seed in range(200, 204)])
    print(f"\n{case}, moderate effects")
    for low, high in BINS:
        inside = (rows[:, 0] >= low) & (rows[:, 0] < high)
        said, right = rows[inside, 0].mean(), rows[inside, 1].mean()
        print(f"   {low:.2f}-{high:.2f}: {inside.sum():5d} say {said:.3f}, {right:.3f} right")
        assert right > said - 0.05
        assert low < 0.6 or right < said + 0.1


def test_the_corrected_estimate_allows_for_luck_and_the_plain_one_does_not():
    rng = np.random.default_rng(5)
    truth = 0.3 * rng.standard_normal((400, 40))
    sums = 4 * truth + 2 * rng.standard_normal(truth.shape)
    plain, corrected = [], []
    for means, total in zip(truth, sums, strict=True):
        known = Tally(np.full(40, 4.0), total, total**2)
        arm = int(np.argmax(total))
        plain.append(total[arm] / 4 - means[arm])
        corrected.append(Means().posterior(np.eye(40), known, 1.0, 50, rng).mean[arm] - means[arm])
    error = np.std(corrected) / 20
    assert np.mean(plain) > 0.5
    assert abs(np.mean(corrected)) < 4 * error + 0.03


def pulled(features, theta, budget, rng, *, model=None, noise=1.0, **settings):
    """A real study, run to its end."""
    study = create_study(features, budget, model=model, seed=int(rng.integers(2**31)), **settings)
    x = np.array(study.state.features)
    while batch := study.ask():
        predictor = [float(x[study.state.ids.index(trial.arm)] @ theta) for trial in batch]
        if model == "logistic":
            study.tell(batch, [float(rng.random() < 1 / (1 + np.exp(-p))) for p in predictor])
        else:
            study.tell(batch, [p + noise * rng.standard_normal() for p in predictor])
    return study


@pytest.mark.parametrize("model", ["linear", "logistic"])
def test_real_studies_are_calibrated_too(model):
    rng = np.random.default_rng(17)
    said, right = [], []
    for _ in range(30):
        features = rng.standard_normal((8, 3))
        theta = rng.standard_normal(3) * np.exp(rng.uniform(np.log(0.2), np.log(2)))
        answer = pulled(features, theta, 60, rng, model=model).recommend(draws=1000)
        said.append(answer.p_best)
        right.append(answer.arm == str(np.argmax(features @ theta) + 1))
        assert sum(answer.chances.values()) == pytest.approx(1)
    spread = np.sqrt(np.sum(np.array(said) * (1 - np.array(said))))
    assert abs(sum(right) - sum(said)) < 4.5 * spread + 1


def test_the_normal_posterior_is_what_an_integral_says():
    features, noise = np.array([[1.0], [-1.0]]), 2.0
    known = Tally(np.array([3.0, 2.0]), np.array([2.5, -0.5]), np.array([4.0, 1.0]))
    belief = Linear().posterior(features, known, noise, 40_000, rng=1)
    theta = np.linspace(-8, 8, 2001)
    spread = np.exp(np.linspace(np.log(0.03 / np.sqrt(5)), np.log(60), 400))  # in units of the noise
    prior = np.exp(-((theta[:, None] / spread / np.sqrt(noise)) ** 2) / 2) / spread @ (spread / (1 + spread**2))
    density = prior * np.exp((theta * (2.5 + 0.5) - 5 * theta**2 / 2) / noise)
    density /= density.sum()
    assert belief.mean[0] == pytest.approx(density @ theta, abs=0.01)
    assert belief.chances[0] == pytest.approx(density[theta > 0].sum(), abs=0.01)


@pytest.mark.parametrize(("counts", "wins"), [((8.0, 6.0), (6.0, 2.0)), ((3.0, 3.0), (3.0, 0.0))])
def test_the_logistic_posterior_is_what_an_integral_says(counts, wins):
    features, sums = np.array([[1.0], [-1.0]]), np.array(wins)
    belief = GLM().posterior(features, Tally(np.array(counts), sums, sums), None, 40_000, rng=1)
    theta = np.linspace(-80, 80, 40_001)
    spread = np.exp(np.linspace(np.log(0.03), np.log(30), 15))
    prior = np.exp(-((theta[:, None] / spread) ** 2) / 2) / spread @ (spread / (1 + spread**2))
    log = sums @ np.array([theta, -theta]) - np.array(counts) @ np.logaddexp(0, np.array([theta, -theta]))
    density = prior * np.exp(log - log.max())
    density /= density.sum()
    assert belief.chances[0] == pytest.approx(density[theta > 0].sum(), abs=0.015)
    assert belief.mean[0] == pytest.approx(density @ (1 / (1 + np.exp(-theta))), abs=0.015)


def test_units_do_not_matter():
    rng = np.random.default_rng(2)
    features, units = rng.standard_normal((6, 3)), np.array([1e-4, 3.0, 1e5])
    counts = np.full(6, 5.0)
    sums = 5 * features @ np.array([0.4, -0.2, 0.1]) + rng.standard_normal(6)
    squares = sums**2 / 5 + 4
    one = Linear().posterior(features, Tally(counts, sums, squares), None, 20_000, rng=3)
    two = Linear().posterior(features * units, Tally(counts, 1e6 * sums, 1e12 * squares), None, 20_000, rng=4)
    np.testing.assert_allclose(two.mean, 1e6 * one.mean, rtol=1e-6, atol=1e-3)
    np.testing.assert_allclose(two.chances, one.chances, atol=0.03)


def test_where_there_is_an_intercept_a_shift_of_all_results_shifts_all_means():
    rng = np.random.default_rng(2)
    features = np.column_stack([np.ones(6), rng.standard_normal((6, 2))])
    counts, sums = np.full(6, 5.0), rng.standard_normal(6)
    squares = sums**2 / 5 + 4
    one = Linear().posterior(features, Tally(counts, sums, squares), 1.0, 10_000, rng=3)
    moved = Tally(counts, sums + 5 * 70, squares + 2 * 70 * sums + 5 * 70**2)
    two = Linear().posterior(features, moved, 1.0, 10_000, rng=4)
    np.testing.assert_allclose(two.mean, one.mean + 70, atol=0.01)
    np.testing.assert_allclose(two.chances, one.chances, atol=0.04)


def test_minimising_is_maximising_the_opposite():
    features = np.random.default_rng(1).standard_normal((5, 2))
    up = create_study(features, 40, seed=7)
    down = create_study(features, 40, seed=7, direction="minimize")
    rng = np.random.default_rng(3)
    while batch := up.ask():
        values = rng.standard_normal(len(batch))
        up.tell(batch, values)
        down.tell(down.ask(), -values)
    one, two = up.recommend(), down.recommend()
    assert one.arm == two.arm
    assert one.chances == two.chances
    assert two.value == pytest.approx(-one.value)
    assert two.interval == pytest.approx((-one.interval[1], -one.interval[0]))
    assert two.expected_regret == pytest.approx(one.expected_regret)


def test_a_logistic_study_that_minimises_speaks_of_its_own_rate():
    study = create_study(np.eye(2), 40, model="logistic", direction="minimize", seed=1)
    study.import_results([("1", 1.0)] * 18 + [("1", 0.0)] * 2 + [("2", 1.0)] * 3 + [("2", 0.0)] * 17)
    answer = study.recommend()
    assert answer.arm == "2"
    assert answer.value == pytest.approx(0.15, abs=0.01)
    assert 0 < answer.interval[0] < answer.corrected < answer.interval[1] < 0.5


def test_all_data_count_and_the_same_log_gives_the_same_answer():
    rng = np.random.default_rng(4)
    study = pulled(rng.standard_normal((6, 2)), np.array([1.0, 0.5]), 60, rng)
    answer = study.recommend()
    assert answer == study.recommend()
    assert answer.policy_arm == answer.arm == study.best_arm
    study.tell(arm="2", values=0.3)
    study.import_results([("3", 0.1), ("3", 0.2)])
    assert study.recommend().told == 63


def test_policy_and_data_may_differ_and_both_are_named():
    study = create_study(np.eye(2), 8, policy="uniform", seed=1)
    batch = study.ask()
    study.tell(batch, [1.0 if trial.arm == "1" else 0.0 for trial in batch])
    study.import_results([("2", 5.0)] * 50)
    answer = study.recommend()
    assert (answer.arm, answer.policy_arm, answer.runner_up, answer.leader) == ("2", "1", "1", "2")
    assert any("ended with 1; everything told speaks for 2" in sentence for sentence in answer.warnings)


def test_the_policys_answer_stands_where_the_model_does_not_fit():
    x = np.linspace(-1, 1, 8)
    truth = 1 - 4 * (x - 0.14) ** 2
    study = create_study(Arms.from_arrays(np.stack([np.ones(8), x], axis=1)), 240, policy="successive-rejects", seed=1)
    rng = np.random.default_rng(1)
    while batch := study.ask():
        study.tell(batch, [truth[int(trial.arm) - 1] + 0.1 * rng.standard_normal() for trial in batch])
    answer = study.recommend()
    assert answer.arm == answer.policy_arm == str(truth.argmax() + 1)


def test_before_the_end_the_likeliest_arm_is_recommended_and_withdrawn_arms_are_not():
    study = create_study(np.eye(4), 400, policy="gse-means", seed=1)
    batch = study.ask()
    study.tell(batch, [float(trial.arm) + 0.01 * i for i, trial in enumerate(batch)])
    assert study.recommend().arm == "4"
    assert study.recommend().policy_arm is None
    study.withdraw("4")
    answer = study.recommend()
    assert answer.arm == "3"
    assert set(answer.chances) == {"1", "2", "3"}


def test_nothing_told_nothing_recommended():
    with pytest.raises(InputError, match="no result yet"):
        create_study(np.eye(3), 30).recommend()


def test_a_model_that_does_not_fit_is_noticed():
    x = np.linspace(-1, 1, 9)
    study = create_study(Arms.from_arrays(np.stack([np.ones(9), x], axis=1)), 100, policy="gse-lin", seed=2)
    rng = np.random.default_rng(1)
    study.import_results([(str(i + 1), x[i] ** 2 + 0.1 * rng.standard_normal()) for i in range(9) for _ in range(4)])
    with pytest.warns(LackOfFitWarning, match="gse-means"):
        answer = study.recommend(warn=True)
    assert "does not fit" in answer.warnings[0]


def test_a_curve_is_noticed_in_clicks_too():
    x = np.linspace(-2, 2, 9)
    study = create_study(Arms.from_arrays(np.stack([np.ones(9), x], axis=1)), 100, model="logistic", seed=2)
    rng = np.random.default_rng(1)
    rate = 0.1 + 0.2 * x**2
    study.import_results([(str(i + 1), float(rng.random() < rate[i])) for i in range(9) for _ in range(100)])
    assert "does not fit" in study.recommend().warnings[0]


@pytest.mark.parametrize("case", ["linear, noise known", "linear, noise estimated", "logistic"])
def test_a_model_that_fits_is_seldom_blamed(case):
    kind, policy, model, noise, budget = CASES[case]
    rng = np.random.default_rng(8)
    bandit = worlds(kind, 400, rng)
    seen = []
    watch = lambda round: seen.append(tally(round.pulls, round.totals, 8))  # noqa: E731
    play(catalog.policy(policy), bandit, 3 * budget, rng, watch)
    known = sum(seen[1:], seen[0])
    checks = [
        model.check(bandit.features[i], Tally(known.counts[i], known.sums[i], known.squares[i]), noise)
        for i in range(400)
    ]
    assert sum(check.bad for check in checks) <= binom.ppf(1 - 1e-6, 400, 0.02)


def test_arms_alike_are_named_and_share_their_chance():
    study = create_study(
        Arms.from_arrays(np.array([[1.0, 0], [1, 0], [0, 1]]), ids=["a", "b", "c"]), 90, model="linear", seed=1
    )
    study.import_results([(arm, value) for arm, value in (("a", 3.0), ("c", 1.0)) for _ in range(20)])
    with pytest.warns(RankDeficientWarning, match="a and b"):
        answer = study.recommend(warn=True)
    assert answer.chances["a"] == pytest.approx(answer.chances["b"]) == pytest.approx(0.5, abs=0.01)


def test_features_nobody_measured_are_named():
    study = create_study(Arms.from_arrays(np.eye(3), ids=["a", "b", "c"]), 90, seed=1)
    study.import_results([("a", 1.0 + 0.1 * i) for i in range(9)] + [("b", 0.1 * i) for i in range(9)])
    with pytest.warns(RankDeficientWarning, match="no measured arm has had.*c"):
        study.recommend(warn=True)


def test_one_class_is_told():
    study = create_study(np.array([[1.0, 1.0], [1.0, -1.0]]), 90, model="logistic", seed=1)
    study.import_results([("1", 1.0), ("2", 1.0)] * 5)
    with pytest.warns(SeparationWarning, match="All 10 results are the same"):
        answer = study.recommend(warn=True)
    assert answer.p_best == pytest.approx(0.5, abs=0.1)


def test_separation_is_told():
    study = create_study(np.array([[1.0, 1.0], [1.0, -1.0]]), 90, model="logistic", seed=1)
    study.import_results([("1", 1.0), ("2", 0.0)] * 10)
    with pytest.warns(SeparationWarning, match="separate successes"):
        answer = study.recommend(warn=True)
    assert answer.value > 0.999
    assert 0.7 < answer.corrected < 0.99


def test_few_pulls_are_told():
    study = create_study(np.random.default_rng(1).standard_normal((9, 4)), 90, seed=1)
    study.import_results([(str(i), float(i)) for i in range(1, 6)])
    with pytest.warns(BudgetWarning, match="5 results for 4 coefficients"):
        study.recommend(warn=True)


def test_a_forest_says_that_its_chances_use_no_features():
    study = create_study(np.random.default_rng(1).standard_normal((4, 2)), 40, policy="gse-forest", seed=1)
    study.import_results([(str(i), float(i)) for i in (1, 2, 3, 4) for _ in range(5)])
    answer = study.recommend()
    assert "features are unused" in answer.believes
    assert answer.arm == "4"


def test_a_policy_on_embedded_features_is_judged_by_them():
    rng = np.random.default_rng(6)
    study = pulled(rng.standard_normal((12, 3)), np.ones(3), 150, rng, policy="gse-kernel-fwg")
    assert study.recommend().believes.startswith("linear in 10 coefficients")


values = st.one_of(
    st.floats(-1e100, 1e100), st.sampled_from([0.0, 1e-300, -1e-300, 1e9, 1e9 + 1]), st.floats(-1, 1), st.just(5.0)
)


@settings(max_examples=60, deadline=None)
@given(
    told=st.lists(st.tuples(st.integers(0, 3), values), min_size=1, max_size=12),
    policy=st.sampled_from(["auto", "gse-lin-fwg", "gse-means", "successive-rejects"]),
    direction=st.sampled_from(["maximize", "minimize"]),
    noise=st.sampled_from([None, 1.0, 1e-30, 1e30]),
    features=st.sampled_from([np.eye(4), np.zeros((4, 2)), np.array([[1.0], [2], [2], [1e9]]), np.ones((4, 1))]),
)
def test_whatever_is_told_the_answer_is_a_number(told, policy, direction, noise, features):
    study = create_study(features, 40, policy=policy, direction=direction, noise_variance=noise, seed=1)
    study.import_results([(study.state.ids[arm], value) for arm, value in told])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = study.recommend(draws=200)
    numbers = [answer.value, *answer.interval, answer.p_best, answer.expected_regret, answer.corrected]
    assert np.isfinite(numbers).all()
    assert answer.interval[0] <= answer.interval[1]
    assert answer.expected_regret >= 0
    assert sum(answer.chances.values()) == pytest.approx(1)


def test_equal_values_make_equal_chances():
    study = create_study(np.eye(4), 40, policy="gse-means", seed=1)
    study.import_results([(str(arm), 5.0) for arm in (1, 2, 3, 4) for _ in range(3)])
    assert list(study.recommend().chances.values()) == pytest.approx([0.25] * 4, abs=0.05)
