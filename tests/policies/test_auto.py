"""The default policy: rounds, many arms, units, and what it believes."""

import numpy as np
import pytest
from scipy.stats import binom, multivariate_normal, norm

from bestarm import catalog, instances, misleading
from bestarm.bandits import Bandit, Gaussian, Tape
from bestarm.core import Problem, Pulls, Totals
from bestarm.errors import InputError
from bestarm.playing import play
from bestarm.policies.auto import Auto
from bestarm.policies.elimination import EliminationState
from bestarm.policies.opinion import _unbeaten
from bestarm.structures import aside
from bestarm.structures.hypotheses import KINDS, Line, OneOf
from tests.conftest import RowOf

BOTH = np.ones(2, dtype=bool)  # of two rivals count


@pytest.mark.parametrize("change", [lambda x: 1000 * x, lambda x: x + 100])
def test_the_answer_does_not_depend_on_unit_or_origin_of_the_features(change, rng):
    bandit = instances.randomized(12, 4, noise_variance=1.0, replications=20, rng=rng)
    tape = Tape.draw(bandit, 120, rng)
    moved = Tape(change(tape.features), tape.sums, tape.squares)
    one, two = (play(Auto(), t, 120, 3) for t in (tape, moved))
    np.testing.assert_array_equal(one.arm, two.arm)
    np.testing.assert_array_equal(one.counts, two.counts)


def test_whether_the_noise_is_told_makes_no_difference(rng):
    tape = Tape.draw(instances.static(0.5, replications=5), 60, rng)
    told = Tape(tape.features, tape.sums, tape.squares, 1.0)
    np.testing.assert_array_equal(play(Auto(), tape, 60, 3).counts, play(Auto(), told, 60, 3).counts)


@pytest.mark.parametrize("rounds", [1, 2, 3, 5, 10])
def test_the_whole_budget_is_spent_in_so_many_rounds(rounds, rng):
    bandit = instances.randomized(16, 4, replications=3, rng=rng)
    asked = []
    run = play(Auto(rounds=rounds), bandit, 203, 1, watch=lambda round_: asked.append(round_.pulls.total))
    assert len(asked) == rounds
    assert sum(asked) == 203
    np.testing.assert_array_equal(run.counts.sum(-1), 203)


@pytest.mark.parametrize(("arms", "most"), [(16, 0.3), (2, 0.5)])
def test_a_round_does_not_stake_all_on_its_leader(arms, most, rng):
    bandit = instances.static(0.5, arms=arms, replications=20)
    planned = []

    def watch(round_):
        if round_.before.opinion is not None:
            leader = np.argmax(round_.before.opinion.mean, axis=-1)
            planned.append(np.take_along_axis(round_.pulls.times, leader[:, None], axis=-1) / round_.pulls.total)

    play(Auto(rounds=10), bandit, 320, 1, watch=watch)
    assert np.max(planned) <= most + 1 / 20  # a step more at most, where a round has 28 pulls


def test_the_chance_of_no_third_above_a_tie_is_that_of_a_normal_distribution():
    mean = np.array([0.3, 0.8])  # how far two rivals are behind the leader
    covariance = np.array([[1.0, 0.4], [0.4, 0.5]])
    tied = np.array([-1e-4, 1e-4])
    for j, k in ((0, 1), (1, 0)):
        order = np.ix_([j, k], [j, k])
        upto = multivariate_normal(-mean[[j, k]], covariance[order], abseps=1e-10).cdf  # how far ahead they are
        low, high = (upto([x, 0.0]) for x in tied)
        alone = np.diff(norm(-mean[j], np.sqrt(covariance[j, j])).cdf(tied))[0]
        found = _unbeaten(mean, np.diagonal(covariance), covariance, BOTH)[j]
        assert found == pytest.approx((high - low) / alone, abs=2e-3)


def test_a_rival_that_can_tie_below_others_only_does_not_count():
    behind, leader, own = np.array([0.1, 1.0]), 0.25, 1e-4  # the leader may fall, the two rivals stay where they are
    shared = leader + own * np.eye(2)
    near, far = _unbeaten(behind, np.diagonal(shared), shared, BOTH)
    assert near > 0.99
    assert far < 1e-6


def test_rounds_must_be_a_number_of_rounds():
    with pytest.raises(InputError, match="rounds must be a whole number"):
        Auto(rounds=0)


@pytest.mark.parametrize("setting", ["steps", "rivals", "kept", "working", "refresh", "leading"])
def test_a_setting_that_cannot_be_is_named(setting):
    with pytest.raises(InputError, match=setting):
        Auto(**{setting: 0})


@pytest.mark.parametrize("variance", [1e-2, 1e-4, 1e-8])
def test_a_race_that_is_decided_is_run_among_its_leaders(variance, rng):
    features = rng.standard_normal((20, 3))
    features = features[np.argsort(features[:, 0])]  # the worst arm first: an index must not count
    run = play(Auto(), Bandit(features, features[:, 0], Gaussian(variance)), 400, 1)
    assert run.arm == 19
    assert run.counts[0] < 100


def test_more_arms_than_fit_at_once_are_screened(rng):
    features = rng.standard_normal((3000, 5))
    bandit = Bandit(features, features @ np.array([1.0, -1.0, 0.5, 0.0, 0.0]), Gaussian(0.25))
    run = play(catalog.policy("auto"), bandit, 400, 2)
    assert run.counts.sum() == 400
    assert (bandit.means > bandit.means[run.arm]).sum() < 5
    assert run.state.opinion.arms.shape == (200,)


def test_more_pulls_than_arms_are_not_needed(rng):
    features = rng.standard_normal((300, 3))
    bandit = Bandit(features, features[:, 0], Gaussian(0.01))
    assert bandit.regret(play(Auto(), bandit, 40, 2).arm) < 0.3


def test_the_largest_tables_are_handed_over_to_elimination(rng):
    state = Auto(most=100).start(Problem(rng.standard_normal((200, 3)), budget=50))
    assert isinstance(state, EliminationState)


def test_kinds_that_do_not_explore_are_asked_for_the_answer_only(rng):
    tape = Tape.draw(instances.adaptive(16, noise_variance=4.0, replications=30), 160, rng)
    explored = tuple(kind for kind in KINDS if kind.exploring)
    assert len(explored) < len(KINDS)
    one, two = (play(policy, tape, 160, 3) for policy in (Auto(), Auto(kinds=explored)))
    np.testing.assert_array_equal(one.counts, two.counts)
    assert (one.arm != two.arm).any()
    with pytest.raises(InputError, match="at least one that takes part in choosing pulls"):
        Auto(kinds=tuple(kind for kind in KINDS if not kind.exploring))


def test_one_interaction_among_many_is_found():
    levels = 1.0 - 2.0 * ((np.arange(32)[:, None] >> np.arange(5)) & 1)
    means = levels @ np.array([0.5, -0.4, 0.3, 0.3, 0.4]) + 0.7 * levels[:, 1] * levels[:, 3]
    bandit = Bandit(np.stack([levels] * 100), np.stack([means] * 100), Gaussian(1.0))
    straight = tuple(kind for kind in KINDS if isinstance(kind, Line) and not kind.residuals)
    found, blind = (np.mean(bandit.correct(play(Auto(kinds=k), bandit, 320, 1).arm)) for k in (KINDS, straight))
    assert found > 0.85 > 0.6 > blind  # of 100, where .95 and .41 are right: beyond has probability 1e-4
    policy = Auto()
    alone = policy.describe(play(policy, Bandit(levels, means, Gaussian(1.0)), 600, 1).state).weights()
    assert alone["linear, one product"] + alone["affine, one product"] > 0.9


def test_one_feature_among_many_is_found():
    bandit = instances.adaptive(24, noise_variance=4.0, replications=100)
    dense = tuple(kind for kind in KINDS if not isinstance(kind, OneOf))
    right, lost = (np.mean(bandit.correct(play(Auto(kinds=k), bandit, 480, 1).arm)) for k in (KINDS, dense))
    assert right > lost + 0.2


def test_it_says_what_it_believes():
    bandit = instances.randomized(32, 3, noise_variance=0.1, rng=2)
    policy = Auto()
    run = play(policy, bandit, 600, 1)
    weights = policy.describe(run.state).weights()
    assert list(weights) == sorted(weights, key=lambda kind: -weights[kind])
    assert sum(weights.values()) == pytest.approx(1)
    assert sum(weight for kind, weight in weights.items() if kind.startswith(("linear", "affine"))) > 0.9
    assert weights["linear"] == max(weights.values())
    assert policy.describe(policy.start(Problem(np.eye(3), 5))).weights() == {}


def test_features_that_lie_do_not_mislead_it(rng):
    means = rng.permuted(np.broadcast_to(np.linspace(-2, 2, 16), (100, 16)), axis=-1)
    bandit = Bandit(rng.standard_normal((100, 16, 3)), means, Gaussian(1.0))
    right = bandit.correct(play(Auto(), bandit, 800, 1).arm).mean()
    fooled = bandit.correct(play(catalog.policy("top-two-lin"), bandit, 800, 1).arm).mean()
    assert right > 0.8 > 0.5 > fooled


def opening(arms, budget, rng, replications=3, **settings):
    """How often each arm is pulled first."""
    features = rng.standard_normal((replications, arms, 4))
    policy = Auto(**settings)
    pulls = policy.ask(policy.start(Problem(features, budget)), rng)
    np.testing.assert_array_equal(pulls.arms, np.broadcast_to(np.arange(arms), (replications, arms)))
    return pulls.times


@pytest.mark.parametrize(
    ("arms", "budget", "size"),
    [(20, 200, 20), (20, 260, 26), (64, 640, 64), (65, 130, 65), (100, 200, 100), (250, 500, 250), (300, 700, 300)],
)
def test_each_arm_is_looked_at_where_that_is_cheap_or_not_all_are_in_play(arms, budget, size, rng):
    times = opening(arms, budget, rng)
    assert times.min() == 1
    np.testing.assert_array_equal(times.sum(-1), size)


@pytest.mark.parametrize(
    ("arms", "budget", "size"),
    [(20, 199, 20), (64, 639, 64), (40, 100, 10), (100, 199, 20), (300, 500, 50), (300, 50, 12)],
)
def test_where_looks_are_dear_the_opening_is_a_tenth_or_twice_the_features(arms, budget, size, rng):
    times = opening(arms, budget, rng)
    assert times.min() == 0
    np.testing.assert_array_equal(times.sum(-1), size)


@pytest.mark.parametrize("settings", [{"rounds": 1}, {"rounds": 2}, {"rounds": 7}, {}])
@pytest.mark.parametrize("arms", [20, 100, 257, 300])
@pytest.mark.parametrize("budget", [5, 60, 400, 599])
def test_an_opening_is_as_large_as_it_says(arms, budget, settings, rng):
    times = opening(arms, budget, rng, 2, **settings)
    wanted = Auto(**settings)._opening(Problem(np.zeros((arms, 4)), budget))
    assert (times >= 0).all()
    np.testing.assert_array_equal(times.sum(-1), wanted)


def test_half_of_an_opening_among_many_arms_is_of_any_that_the_design_leaves(rng):
    features = np.broadcast_to(rng.standard_normal((300, 4)), (200, 300, 4))
    policy = Auto()
    times = policy.ask(policy.start(Problem(features, 500)), rng).times
    np.testing.assert_array_equal(times.sum(-1), 50)
    design = times.min(axis=0) > 0  # in all replications: the same corners
    assert 4 < design.sum() <= 25
    np.testing.assert_array_equal(times[:, design].sum(-1), 25)
    assert times[:, ~design].max() == 1
    assert times.max(axis=0).min() == 1  # an arm is left out of all with probability (1 − 25/295)^200, 2e-8


@pytest.mark.parametrize(
    ("arms", "budget", "rounds"), [(20, 100, None), (70, 160, None), (300, 90, None), (20, 100, 5)]
)
def test_what_is_set_aside_does_not_depend_on_the_company(arms, budget, rounds, rng):
    features = rng.standard_normal((6, arms, 3))
    y = features[..., :1] + rng.standard_normal((6, arms, budget))
    y = np.where(rng.random(y.shape) < np.array([0.0, 0.01, 0.02, 0.05, 0.1, 0.0])[:, None, None], 100 * y, y)
    y[5] = rng.random((arms, budget)) < 0.3  # rewards 0 and 1 among others
    tape, policy = Tape.of(features, y), Auto(rounds=rounds)
    together = run_of(policy, tape, budget, np.random.default_rng(4))
    assert together.groups.aside.any(axis=-1).sum() >= 3
    assert not together.groups.aside[5].any()
    for row in range(6):
        alone = run_of(policy, tape.replication(row), budget, RowOf(np.random.default_rng(4), 6, row))
        np.testing.assert_array_equal(alone.known.counts, together.known.counts[row])
        np.testing.assert_array_equal(alone.judged.counts, together.judged.counts[row])
        assert policy.recommend(alone) == policy.recommend(together)[row]


def run_of(policy, tape, budget, rng):
    state = policy.start(Problem(tape.features, budget))
    taken = np.zeros(tape.features.shape[:-1], dtype=np.int64)
    while (pulls := policy.ask(state, rng)) is not None:
        state = policy.tell(state, pulls, tape.pull(pulls, taken))
        np.add.at(taken, (*np.indices(pulls.arms.shape, sparse=True)[:-1], pulls.arms), pulls.times)
    return state


def test_a_star_is_asked_for_again_and_believed_and_an_accident_is_not(rng):
    features, policy = rng.standard_normal((30, 3)), Auto()
    for again, right in ((100.0, True), (0.1, False)):
        state = policy.start(Problem(features, 300))
        pulls = policy.ask(state, rng)
        y = 0.3 * features[:, 0] + 0.5 * rng.standard_normal(30)
        y[int(np.argmin(features[:, 0]))] = star = 100.0
        arm = int(np.argmax(y == star))
        state = policy.tell(state, pulls, Totals(y * pulls.times, y * y * pulls.times, 0 * y))
        assert np.flatnonzero(state.groups.aside).tolist() == [arm]
        asked = policy.ask(state, rng)
        assert asked.arms == [arm]
        one = np.array([again]) * asked.times
        state = policy.tell(state, asked, Totals(one, again * one, 0 * one))
        assert state.groups.aside.any() != right
        assert (policy.recommend(state) == arm) == right
        if not right:
            assert policy.ask(state, rng).arms != [arm]


def test_rewards_that_come_unasked_are_set_aside_too(rng):
    features, policy = rng.standard_normal((30, 3)), Auto()
    state = policy.start(Problem(features, 300))
    y = np.append(features[:, 0] + 0.1 * rng.standard_normal(30), 500.0)
    arms = np.append(np.arange(30), 4)
    state = policy.observe(state, Pulls(arms, np.ones(31, dtype=int)), Totals(y, y * y, 0 * y))
    assert np.flatnonzero(state.groups.aside).tolist() == [30]
    np.testing.assert_array_equal(state.judged.counts, 1)
    np.testing.assert_array_equal(state.known.counts, np.where(np.arange(30) == 4, 2, 1))


def test_a_needle_is_found():
    bandit = misleading.needle(64, replications=200, rng=1)
    right = np.sum(bandit.correct(play(Auto(), bandit, 128, 1).arm))
    assert right >= binom.ppf(1e-6, 200, 0.95)  # fewer has probability 1e-6


def test_slips_of_one_reward_in_a_hundred_cost_little(monkeypatch, rng):
    x = rng.uniform(-1, 1, (200, 32, 5))
    clean = Bandit(x, (x @ rng.standard_normal((200, 5, 1)))[..., 0], Gaussian(0.25))
    bandit = instances.slipped(clean, 0.01, 100.0)
    right = np.sum(bandit.correct(play(Auto(), bandit, 128, 1).arm))
    assert right >= binom.ppf(1e-6, 200, 0.91)
    monkeypatch.setattr(aside, "FAR", 1e9)  # nothing is odd any more
    assert np.mean(bandit.correct(play(Auto(), bandit, 128, 1).arm)) < 0.8  # about .67: more has probability 1e-5


@pytest.mark.parametrize("level", [5.0, 5e-12, 5e-20, 5e20])
@pytest.mark.parametrize("rounds", [None, 4])
def test_rewards_that_are_all_the_same_are_borne(level, rounds, rng):
    features = rng.standard_normal((3, 5, 3))
    run = play(Auto(rounds=rounds), Bandit(features, np.full((3, 5), level), Gaussian(0.0)), 400, 1)
    np.testing.assert_array_equal(run.counts.sum(-1), 400)
