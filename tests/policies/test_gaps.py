"""UCB-E, adaptive UCB-E and UGapEb: numbers by hand, the rules written out once more, published experiments."""

import numpy as np
import pytest

from bestarm import bounds, catalog
from bestarm.bandits import Bandit, Bernoulli, Gaussian, Tape
from bestarm.core import Problem, Pulls, Totals
from bestarm.playing import play
from bestarm.policies.classics import NoPrior
from bestarm.policies.gaps import UCBE, AdaptiveUCBE, GapExploration, KnownExploration, UGapE, phase_ends
from bestarm.policies.rules import SmallestBound
from bestarm.policies.sequential import EachOnce, MostPulled, Sequential

FOURTH = (0.5, 0.42, 0.4, 0.4, 0.35, 0.35)  # experiment 4 of Audibert, Bubeck and Munos


def arms_with(means, noise):
    means = np.asarray(means, dtype=float)
    return Bandit(np.ones((*means.shape, 1)), means, noise)


def accuracy(rule, budget=600, runs=4000, final=None):
    bandit = arms_with(np.broadcast_to(FOURTH, (runs, 6)), Bernoulli())
    policy = Sequential(rule, NoPrior(), EachOnce(), **({} if final is None else {"final": final}))
    run = play(policy, bandit, budget, np.random.default_rng(3))
    return bandit.correct(run.arm).mean(), run.counts.mean(axis=0)


def near(found, wanted, runs=4000):
    return abs(found - wanted) < 4.9 * np.sqrt(2 * wanted * (1 - wanted) / runs)  # once in a million by chance


@pytest.mark.parametrize(("b", "width"), [(None, 2.0), (1.0, 1.0)])
def test_ucb_e_follows_its_rule(b, width, rng):
    """The rule, written out once more: argmax mean + b √(a/n) after one pull each; b is 2σ unless it is given."""
    tape = Tape.draw(arms_with(rng.random(5), Gaussian(1.0)), 80, rng)
    run = play(Sequential(UCBE(3.0, b), NoPrior(), EachOnce(), MostPulled()), tape, 80, 1)
    rewards, count = np.diff(tape.sums, axis=-1), np.ones(5, dtype=int)
    while count.sum() < 80:
        mean = np.array([rewards[i, : count[i]].mean() for i in range(5)])
        count[np.argmax(mean + width * np.sqrt(3.0 / count))] += 1
    np.testing.assert_array_equal(run.counts, count)
    assert run.arm == np.argmax(count)


def test_ucb_e_by_hand():
    """Rewards 1 and 0 give the indices 2 and 1; a 0 more makes the first .5 + √.5."""
    policy = Sequential(UCBE(1.0, 1.0), NoPrior(), EachOnce())
    state = policy.start(Problem(np.eye(2), 9))
    ones = np.array([1, 1])
    state = policy.tell(state, Pulls(np.arange(2), ones), Totals(np.array([1.0, 0.0]), np.array([1.0, 0.0])))
    assert policy.ask(state, None).arms.tolist() == [0]
    state = policy.tell(state, Pulls(np.array([0]), np.array([1])), Totals(np.zeros(1), np.zeros(1)))
    assert policy.ask(state, None).arms.tolist() == [0]


def test_phases_end_as_those_of_successive_rejects():
    assert phase_ends(4, 100) == {1: 64, 2: 79, 3: 99}
    assert phase_ends(1, 5) == {}


def test_adaptive_ucb_e_follows_its_rule(rng):
    """The rule, written out once more for one run, a taken at the end of each phase."""
    K, B, c = 6, 150, 0.7
    tape = Tape.draw(arms_with(rng.random(K), Gaussian(0.25)), B, rng)
    run = play(Sequential(AdaptiveUCBE(c), NoPrior(), EachOnce()), tape, B, 1)
    rewards, count = np.diff(tape.sums, axis=-1), np.ones(K, dtype=int)
    ends, H = phase_ends(K, B), float(K)
    while count.sum() < B:
        mean = np.array([rewards[i, : count[i]].mean() for i in range(K)])
        for k, end in ends.items():
            if end == count.sum():
                gap = np.sort(mean.max() - mean)  # gap[i - 1] is the i-th smallest
                H = max(i / gap[i - 1] ** 2 for i in range(K - k + 1, K + 1))
        count[np.argmax(mean + 1.0 * np.sqrt(c * B / H / count))] += 1  # b = 2 · .5
    np.testing.assert_array_equal(run.counts, count)


def test_ugapeb_by_hand():
    """m = (.6, .5, .1), a = .04: β = .2, B = (.3, .5, .9), so J is arm 0 and u arm 1."""
    policy = Sequential(UGapE(KnownExploration(0.04), b=1.0), NoPrior(), EachOnce())
    state = policy.start(Problem(np.eye(3), 9))
    rewards = np.array([0.6, 0.5, 0.1])
    state = policy.tell(state, Pulls(np.arange(3), np.ones(3, dtype=int)), Totals(rewards, rewards**2))
    leader, rival, bound = policy.rule.look(state)
    assert (leader, rival) == (0, 1)
    assert bound == pytest.approx(0.3)
    assert policy.ask(state, None).arms.tolist() == [0]


def test_ugapeb_of_two_arms_pulls_them_in_turn(rng):
    run = play(catalog.policy("ugapeb"), arms_with([0.9, 0.1], Bernoulli()), 30, rng)
    assert run.counts.tolist() == [15, 15]


def test_ugapeb_weighs_the_gaps_with_their_doubt():
    mean, counts = np.array([0.6, 0.5, 0.1]), np.array([8.0, 2.0, 8.0])
    D = np.array([0.1, 0.1, 0.5]) + np.sqrt(1 / (2 * counts))
    wanted = 4 * 7 / (4 * np.sum(4 / D**2))
    assert GapExploration().a(Problem(np.eye(3), 10), mean, counts, 1.0, 0.0) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        (UCBE(25 / 36 * 594 / 601.4, 1.0), 0.803),
        (UCBE(2 * 594 / 601.4, 1.0), 0.877),
        (AdaptiveUCBE(0.25, 1.0), 0.854),
        (AdaptiveUCBE(1.0, 1.0), 0.875),
        (AdaptiveUCBE(4.0, 1.0), 0.864),
        (UGapE(KnownExploration(0.0617), b=1.0), 0.560),
        (UGapE(KnownExploration(2.0), b=1.0), 0.884),
        (UGapE(GapExploration(1.0), b=1.0), 0.785),
        (UGapE(GapExploration(4.0), b=1.0), 0.864),
    ],
    ids=["ucb-e", "ucb-e 2", "adaptive .25", "adaptive 1", "adaptive 4", "ugape", "ugape 2", "ugape c 1", "ugape c 4"],
)
def test_accuracy_in_a_published_experiment_is_that_of_other_programs(rule, wanted):
    assert near(accuracy(rule)[0], wanted)


def test_the_printed_recommendation_loses_where_a_is_small():
    rule = UGapE(KnownExploration(0.0617), b=1.0)
    assert near(accuracy(rule, final=SmallestBound())[0], 0.354)
    assert near(accuracy(UGapE(KnownExploration(2.0), b=1.0), final=SmallestBound())[0], 0.871)


def test_ucb_e_pulls_the_best_arm_as_often_as_other_programs():
    assert accuracy(UCBE(25 / 36 * 594 / 601.4, 1.0))[1][0] == pytest.approx(355, abs=3)


def test_the_published_hardness_of_the_experiments():
    gaps = [0.5 - m for m in FOURTH[1:]]
    assert bounds.plain_hardness(gaps) == pytest.approx(601.4, abs=0.05)
    assert bounds.ugapeb_exploration(gaps, 600) == pytest.approx(0.0617, abs=1e-4)
    assert bounds.ugapeb_hardness(gaps) == pytest.approx(2405.6, abs=0.2)
    assert bounds.plain_hardness([0.1] * 19) == pytest.approx(2000)


@pytest.mark.parametrize(("name", "setting"), [("ucb-e", "a"), ("ucb-e-adaptive", "c"), ("ugapeb", "epsilon")])
def test_a_negative_setting_is_refused(name, setting):
    with pytest.raises(Exception, match=f"{setting} must not be negative"):
        catalog.policy(name, **{setting: -1.0})
