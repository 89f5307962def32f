"""Generalized Successive Elimination: schedule, stages, invariance, special cases, measured error below the bound."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestarm import bounds, catalog, instances
from bestarm.bandits import Bandit, Gaussian, Tape
from bestarm.core import Problem, Pulls, Totals
from bestarm.designs.spread import Uniform
from bestarm.designs.transductive import Transductive
from bestarm.errors import ArmsError, BudgetError, InputError
from bestarm.models.means import Means
from bestarm.playing import play
from bestarm.policies.elimination import AllArms, AllStages, Elimination
from bestarm.policies.schedules import Dropped, ToLastStages, even_stages, stage_sizes
from tests.conftest import bandit_for


@given(arms=st.integers(1, 3000), eta=st.floats(1.01, 50))
def test_stages_shrink_to_one_arm(arms, eta):
    sizes = stage_sizes(arms, eta)
    assert sizes[0] == arms
    assert sizes[-1] == 1
    assert all(a > b for a, b in pairwise(sizes))


@pytest.mark.parametrize(("arms", "eta", "stages"), [(125, 5, 3), (16, 2, 4), (17, 2, 5), (6, 2.5, 3), (216, 6, 3)])
def test_stages_are_counted_exactly(arms, eta, stages):
    assert len(stage_sizes(arms, eta)) - 1 == stages


@given(arms=st.integers(2, 200), budget=st.integers(1, 5000), eta=st.sampled_from([1.5, 2.0, 3.0, 1000.0]))
def test_stage_budgets_add_up(arms, budget, eta):
    count = len(stage_sizes(arms, eta)) - 1
    if budget < count:
        with pytest.raises(BudgetError) as caught:
            even_stages(arms, budget, eta, ToLastStages())
        assert caught.value.least == count
        assert even_stages(arms, count, eta, ToLastStages())
        return
    assert sum(s.pulls for s in even_stages(arms, budget, eta, ToLastStages())) == budget
    assert sum(s.pulls for s in even_stages(arms, budget, eta, Dropped())) == count * (budget // count)


@pytest.mark.parametrize("name", ["gse-lin-fwg", "gse-lin", "gse-log-fwg", "gse-lin-greedy", "gse-lin-xy-all"])
def test_mixing_the_features_changes_nothing(name, rng):
    features = rng.standard_normal((10, 9, 4))
    bandit = bandit_for(name, features / 2, rng)
    tape = Tape.draw(bandit, 240, rng)  # 60 a stage: equal weights on 2 or 3 arms leave no odd pull to a tie
    M = rng.standard_normal((4, 4)) * np.array([1.0, 100.0, 1e-2, 10.0])
    first, second = [], []
    straight = play(catalog.policy(name), tape, 240, 1, first.append)
    mixed = play(catalog.policy(name), Tape(tape.features @ M, tape.sums, tape.squares), 240, 1, second.append)
    np.testing.assert_array_equal(straight.counts, mixed.counts)
    sums = first[-1].totals.sums  # the last two may have won equally often, and then rounding decides between them
    decided = np.max(sums, axis=-1) > np.min(sums, axis=-1)
    assert decided.mean() > 0.5
    np.testing.assert_array_equal(straight.arm[decided], mixed.arm[decided])
    np.testing.assert_allclose(first[0].after.fit.mean, second[0].after.fit.mean, rtol=1e-7, atol=1e-8)


def test_on_a_basis_gse_is_sequential_halving(rng):
    bandit = Bandit(np.eye(8), rng.standard_normal(8), Gaussian(1.0))
    tape = Tape.draw(bandit, 200, rng)
    seen = []
    linear = play(catalog.policy("gse-lin-fwg"), tape, 8 * 3 * 4, 0, seen.append)
    means = play(catalog.policy("gse-means"), tape, 8 * 3 * 4, 0)
    assert linear.arm == means.arm
    np.testing.assert_array_equal(linear.counts, means.counts)
    assert [sorted(set(r.pulls.times.tolist())) for r in seen] == [[4], [8], [16]]


def test_eta_of_all_arms_is_one_static_stage(rng):
    features = rng.standard_normal((9, 3))
    tape = Tape.draw(bandit_for("", features, rng), 100, rng)
    seen = []
    run = play(catalog.policy("gse-lin-fwg", eta=9), tape, 60, 0, seen.append)
    assert len(seen) == 1
    theta = np.linalg.lstsq(
        features * np.sqrt(run.counts)[:, None],
        tape.sums[np.arange(9), run.counts] / np.sqrt(np.maximum(run.counts, 1)),
        rcond=None,
    )[0]
    assert run.arm == np.argmax(features @ theta)


def test_eliminated_arms_are_pulled_only_where_allowed(rng):
    bandit = instances.adaptive(8, replications=5)
    for policy, allowed in ((catalog.policy("gse-lin-xy"), False), (catalog.policy("gse-lin-xy-all"), True)):
        seen = []
        play(policy, bandit, 240, rng, seen.append)
        outside = [
            int(np.sum(r.pulls.times * ~np.any(r.pulls.arms[..., None] == r.before.active[..., None, :], axis=-1)))
            for r in seen
        ]
        assert outside[0] == 0
        assert (sum(outside) > 0) == allowed


def test_the_data_of_all_stages_are_kept_where_wanted(rng):
    bandit = Bandit(np.eye(4), np.arange(4.0), Gaussian(1.0))
    for memory, total in ((AllStages(), 40), (catalog.policy("gse-means").memory, 20)):
        run = play(Elimination(Means(), Uniform(), memory=memory), bandit, 40, rng)
        assert run.state.known.counts.sum() == total


def test_what_was_done_may_differ_from_what_was_asked(rng):
    policy = Elimination(Means(), Uniform())
    state = policy.start(Problem(np.eye(4), 20))
    policy.ask(state, rng)
    done = Pulls(np.array([3, 1, 3]), np.array([2, 1, 1]))
    state = policy.tell(state, done, Totals(np.array([10.0, 1.0, 5.0]), np.array([50.0, 1.0, 25.0])))
    assert policy.recommend(state) == 3
    np.testing.assert_array_equal(state.known.counts, [0, 1, 0, 3])


def test_telling_after_the_end_is_an_error(rng):
    run = play(Elimination(Means(), Uniform()), Bandit(np.eye(2), np.arange(2.0), Gaussian(1.0)), 4, rng)
    with pytest.raises(InputError, match="nothing left"):
        Elimination(Means(), Uniform()).tell(run.state, Pulls(np.array([0]), np.array([1])), None)


def test_problems_are_checked():
    with pytest.raises(ArmsError, match="no arms"):
        Problem(np.zeros((0, 3)), 5)
    with pytest.raises(ArmsError, match="finite"):
        Problem(np.array([[1.0, np.nan]]), 5)
    with pytest.raises(ArmsError, match="shape"):
        Problem(np.zeros(3), 5)
    for budget in (0, -4):
        with pytest.raises(BudgetError, match="at least 1"):
            Problem(np.eye(2), budget)


@pytest.mark.parametrize("name", ["gse-lin-fwg", "gse-log-fwg", "gse-means", "gse-lin-xy-pooled"])
def test_standard_errors_cover_the_truth(name, rng):
    features = rng.standard_normal((300, 6, 2)) / 2
    bandit = bandit_for(name, features, rng)
    policy = catalog.policy(name, eta=100)
    run = play(policy, bandit, 600, rng)
    error = policy.standard_error(run.state)
    z = (run.state.fit.mean - bandit.means) / error
    inside = np.mean(np.abs(z) < 1.96)
    assert 0.93 < inside < 0.97  # 1800 dependent intervals: 0.95 with a standard error of about 0.005


@pytest.mark.parametrize(
    ("bandit", "budget"),
    [
        (lambda r: instances.static(gap=1.5, arms=4, replications=r), 400),
        (lambda r: instances.static(gap=3.0, arms=8, replications=r), 400),
        (lambda r: instances.randomized(8, 2, noise_variance=1e-4, replications=r, rng=3), 300),
    ],
)
def test_the_measured_error_is_below_the_theorems_bound(bandit, budget, rng):
    replications = 2000
    world = bandit(replications)
    run = play(catalog.policy("gse-lin-fwg"), world, budget, rng)
    ordered = np.sort(world.means, axis=-1)
    arms, dimension = world.features.shape[-2:]
    promised = np.array(
        [
            float(bounds.gse(arms, dimension, budget, gap, world.noise_variance, efficiency=0.1))
            for gap in ordered[:, -1] - ordered[:, -2]
        ]
    )
    wrong = 1 - world.correct(run.arm).mean()
    assert promised.mean() < 0.9, "a bound of 1 would say nothing"
    assert wrong <= promised.mean() + 5 * np.sqrt(0.25 / replications)


def test_any_arm_is_a_part_not_a_flag():
    assert catalog.policy("gse-lin-xy-all").measure == AllArms()


def test_gse_auto_designs_for_many_arms_without_looking_at_all_pairs(monkeypatch):
    asked = []
    monkeypatch.setattr(Transductive, "weights", lambda self, *given: asked.append(given))
    policy = catalog.policy("gse-auto")
    features = np.random.default_rng(2).standard_normal((600, 5))
    pulls = policy.ask(policy.start(Problem(features, 300)), np.random.default_rng(1))
    assert pulls.total == 30  # of ten stages
    assert not asked
