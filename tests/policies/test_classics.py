"""Sequential halving, successive rejects, continuous rejects: totals by hand, and nothing but the means matters."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestarm import instances
from bestarm.bandits import Bandit, Bernoulli, Gaussian, Tape
from bestarm.core import Problem, Pulls, Totals
from bestarm.designs.spread import Equal
from bestarm.errors import InputError
from bestarm.models.means import Means
from bestarm.playing import play
from bestarm.policies.classics import AverageOfOthers, WorstOfOthers
from bestarm.policies.earlier import continuous_rejects
from bestarm.policies.elimination import AllStages, Elimination
from bestarm.policies.schedules import Dropped, EvenStages, Rejects, ToLastStage, harmonic, reject_stages

HALVING = Elimination(Means(), Equal(), EvenStages(leftover=Dropped()))
POOLED = Elimination(Means(), Equal(), EvenStages(leftover=ToLastStage()), AllStages())
REJECTS = Elimination(Means(), Equal(), Rejects(), AllStages())
CR_A, CR_C = continuous_rejects(AverageOfOthers()), continuous_rejects(WorstOfOthers())
POLICIES = [HALVING, POOLED, REJECTS, CR_A, CR_C]


def arms_with(means, variance=1.0):
    means = np.asarray(means, dtype=float)
    return Bandit(np.ones((*means.shape, 1)), means, Gaussian(variance))


# Sequential halving.


@pytest.mark.parametrize(("arms", "budget"), [(8, 100), (5, 47), (16, 320), (3, 9)])
def test_halving_pulls_each_arm_the_same_number_of_times_each_round(arms, budget):
    rounds = []
    play(HALVING, arms_with(np.arange(arms)), budget, 1, rounds.append)
    stages = int(np.ceil(np.log2(arms)))
    sizes = [arms]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // 2))
    assert len(rounds) == stages == len(sizes) - 1
    for r, size in zip(rounds, sizes, strict=False):
        assert r.pulls.times.tolist() == [budget // (size * stages)] * size


def test_halving_with_too_little_for_everyone_stays_within_the_budget(rng):
    """Where B < K log₂ K the rule gives no pulls; each round then tries a random few, once."""
    rounds = []
    run = play(HALVING, arms_with(rng.random((2000, 64))), 100, rng, rounds.append)
    assert (run.counts.sum(axis=-1) <= 100).all()
    first = rounds[0].pulls.times
    assert first.max() == 1
    assert (first.sum(axis=-1) == 100 // 6).all()
    assert np.ptp(first.mean(axis=0)) < 10 * np.sqrt(0.25 * 0.75 / 2000)  # no arm is favoured


def test_halving_uses_the_means_of_its_round_and_pooling_those_of_all():
    """Arm 0 shines in the first round only, arm 1 in the second only."""
    rewards = np.zeros((4, 60))
    rewards[0, :5], rewards[1, :5] = 10.0, 1.0
    rewards[1, 5:] = 2.0
    tape = Tape.of(np.eye(4), rewards)
    assert play(HALVING, tape, 40, 1).arm == 1
    assert play(POOLED, tape, 40, 1).arm == 0


def test_leftover_pulls_can_go_to_the_last_round():
    assert ToLastStage().extra(3, 4) == (0, 0, 0, 3)
    assert play(POOLED, arms_with(np.arange(8)), 103, 1).counts.sum() > 96


# Successive rejects.


def test_rejects_by_hand():
    """K = 4, B = 100: logbar = 19/12, n = 16, 21, 31, in all 4·16 + 3·5 + 2·10 = 99 pulls."""
    assert harmonic(4) == pytest.approx(19 / 12)
    run = play(REJECTS, arms_with([3.0, 2.0, 1.0, 0.0], 0.0), 100, 1)
    assert run.counts.tolist() == [31, 31, 21, 16]
    assert run.arm == 0


@given(arms=st.integers(2, 300), budget=st.integers(1, 5000))
def test_rejects_spend_the_budget_at_most(arms, budget):
    stages = reject_stages(arms, budget)
    assert 0 < sum(s.pulls for s in stages) <= budget
    assert stages[-1].keep == 1
    keep = [arms, *(s.keep for s in stages)]
    assert all(a > b for a, b in pairwise(keep))
    assert all(s.pulls > 0 for s in stages)
    if budget > arms:
        assert all(s.pulls % size == 0 for s, size in zip(stages, keep, strict=False))
        unspent = budget - sum(s.pulls for s in stages)
        assert unspent < arms + 1  # the ceilings give back most of what they were set aside


def test_rejects_drop_the_worst_cumulative_mean(rng):
    tape = Tape.draw(arms_with(rng.random(6), 1.0), 200, rng)
    rounds = []
    play(REJECTS, tape, 200, 1, rounds.append)
    for r in rounds:
        mean = r.after.known.sums / np.maximum(r.after.known.counts, 1)
        worst = min(r.before.active, key=lambda i: mean[i])
        assert set(r.before.active) - set(r.after.active) == {worst}


# Continuous rejects.


@pytest.mark.parametrize(("policy", "level"), [(CR_A, np.mean), (CR_C, np.min)], ids=["a", "c"])
@pytest.mark.parametrize("noise", [Gaussian(4.0), Bernoulli()], ids=["gaussian", "bernoulli"])
def test_continuous_rejects_follow_their_rule(policy, level, noise, rng):
    """The rule, written out once more in plain Python for one run."""
    means, budget = np.linspace(0.1, 0.9, 7), 300
    tape = Tape.draw(Bandit(np.ones((7, 1)), means, noise), budget, rng)
    run = play(policy, tape, budget, 3)
    rewards = np.diff(tape.sums, axis=-1)
    scale = 2 * np.sqrt(noise.variance)
    count, inside, gone = np.ones(7, dtype=int), list(range(7)), []
    while True:
        mean = {i: rewards[i, : count[i]].mean() for i in range(7)}
        worst = min(inside, key=lambda i: mean[i])
        others = [i for i in inside if i != worst]
        beta = harmonic(len(inside)) * count[inside].sum() / (budget - count[gone].sum())
        far = level([mean[i] for i in others]) - mean[worst] > scale * (1 / np.sqrt(beta) - 1)
        if len(inside) > 2 and far and count[worst] > max(count[gone], default=0):
            inside, gone = others, [*gone, worst]
        if count.sum() == budget:
            break
        few = min(count[inside])
        count[max((i for i in inside if count[i] == few), key=lambda i: mean[i])] += 1
    np.testing.assert_array_equal(run.counts, count)
    assert run.arm == max(inside, key=lambda i: mean[i])
    np.testing.assert_array_equal(np.nonzero(run.state.memory.active)[0], inside)


def test_continuous_rejects_are_as_bold_as_the_rewards_are_wide(rng):
    """Rewards in other units are judged alike when the noise level is given in those units."""
    bandit = arms_with(np.linspace(0, 1, 6), 0.25)
    tape = Tape.draw(bandit, 200, rng)
    wide = Tape(tape.features, 8 * tape.sums, 64 * tape.squares, 64 * 0.25)
    np.testing.assert_array_equal(play(CR_A, tape, 200, 1).counts, play(CR_A, wide, 200, 1).counts)


# All of them.


@pytest.mark.parametrize("policy", POLICIES, ids=["sh", "sh-pooled", "sr", "cr-a", "cr-c"])
def test_features_do_not_matter(policy, rng):
    tape = Tape.draw(arms_with(rng.random(9), 0.1), 150, rng)
    other = Tape(rng.standard_normal((9, 4)), tape.sums, tape.squares, tape.noise_variance)
    a, b = play(policy, tape, 150, 2), play(policy, other, 150, 2)
    np.testing.assert_array_equal(a.counts, b.counts)
    assert a.arm == b.arm


@pytest.mark.parametrize("policy", POLICIES[2:], ids=["sr", "cr-a", "cr-c"])
@pytest.mark.parametrize("budget", [2, 3, 5])
def test_with_fewer_pulls_than_arms_a_random_few_have_one(policy, budget, rng):
    means = np.broadcast_to(np.arange(6.0), (400, 6))
    run = play(policy, arms_with(means, 1e-6), budget, rng)
    assert (run.counts.sum(axis=-1) == budget).all()
    assert run.counts.max() == 1
    seen = np.where(run.counts > 0, np.arange(6), -1).max(axis=-1)
    assert (run.arm == seen)[seen == 5].all()  # the best is recognised where it was seen
    assert (run.counts.mean(axis=0) > budget / 6 - 0.13).all()  # five standard errors


@pytest.mark.parametrize("policy", [HALVING, REJECTS], ids=["sh", "sr"])
def test_telling_more_than_was_planned_is_refused(policy):
    run = play(policy, arms_with([1.0, 0.0, 0.5]), 30, 1)
    with pytest.raises(InputError, match="over"):
        policy.tell(run.state, Pulls(np.array([0]), np.array([1])), Totals(np.zeros(1), np.zeros(1)))


@pytest.mark.parametrize("policy", POLICIES, ids=["sh", "sh-pooled", "sr", "cr-a", "cr-c"])
def test_one_arm_needs_no_pull(policy, rng):
    state = policy.start(Problem(np.ones((1, 2)), 10))
    assert policy.ask(state, rng) is None
    assert policy.recommend(state) == 0


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("bandit", "budget", "accuracy"),
    [
        (lambda r, g: instances.static(0.5, replications=r), 320, 0.767),
        (lambda r, g: instances.randomized(64, replications=r, rng=g), 3200, 0.470),
        (lambda r, g: instances.adaptive(16, replications=r), 320, 0.354),
    ],
    ids=["static", "randomized", "adaptive"],
)
def test_accuracy_of_halving_is_that_of_an_independent_implementation(bandit, budget, accuracy):
    rng = np.random.default_rng(11)
    truth = bandit(1000, rng).shuffled(rng)
    ours = truth.correct(play(HALVING, truth, budget, rng).arm).mean()
    error = np.sqrt(2 * accuracy * (1 - accuracy) / 1000)  # of a difference of two such numbers
    assert abs(ours - accuracy) < 4.9 * error  # fails by chance once in a million
