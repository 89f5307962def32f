"""OCBA: its ratios by hand, its first pulls, and what it does when rewards say nothing."""

import numpy as np
import pytest

from bestarm.bandits import Bandit, Gaussian
from bestarm.core import Problem, Pulls, Tally, Totals
from bestarm.errors import InputError
from bestarm.playing import play
from bestarm.policies.classics import KnownVariance, SampleVariances, shares
from bestarm.policies.earlier import ocba


def test_the_ratios_of_chen():
    mean, variance = np.array([1.0, 3.0, 2.0, 0.0]), np.array([1.0, 4.0, 2.0, 9.0])
    found = shares(mean, variance)
    others = np.array([1.0 / 4, 2.0 / 1, 9.0 / 9])  # σ_i² / δ_i² for arms 0, 2, 3
    assert np.allclose(found[[0, 2, 3]] / found[2], others / others[1])
    assert np.isclose(found[1] / found[2], 2.0 * np.sqrt(np.sum(others**2 / variance[[0, 2, 3]])) / others[1])
    assert np.isclose(found.sum(), 1)


def test_the_ratios_of_equals_are_finite():
    for mean in (np.zeros(3), np.array([1.0, 1.0, 0.0])):
        assert np.isfinite(shares(mean, np.ones(3))).all()
    tied = shares(np.array([1.0, 1.0, 0.0]), np.ones(3))
    assert np.allclose(tied, [0.5, 0.5, 0.0], atol=1e-6)


@pytest.mark.parametrize(("budget", "expected"), [(100, 5), (12, 3), (4, 1)])
def test_first_pulls_fit_the_budget(budget, expected, rng):
    policy = ocba()
    assert policy.ask(policy.start(Problem(np.eye(4), budget)), rng).times.tolist() == [expected] * 4


def test_a_budget_below_the_number_of_arms_buys_a_random_few(rng):
    policy = ocba()
    pulls = policy.ask(policy.start(Problem(np.eye(9), 5)), rng)
    assert pulls.total == 5
    assert len(set(pulls.arms.tolist())) == 5


def test_an_arm_never_pulled_is_not_named(rng):
    policy = ocba()
    state = policy.start(Problem(np.eye(3), 2))
    state = policy.tell(
        state, Pulls(np.array([0, 2]), np.array([1, 1])), Totals(np.array([-4.0, -3.0]), np.array([16.0, 9.0]))
    )
    assert policy.recommend(state) == 2


def test_variances_are_pooled_where_an_arm_says_little():
    tally = Tally(np.array([1.0, 5.0, 0.0]), np.array([2.0, 10.0, 0.0]), np.array([4.0, 28.0, 0.0]))
    found = SampleVariances(prior=2.0).variances(Problem(np.eye(3), 10), tally)
    pooled = 8.0 / 4.0
    assert np.allclose(found, [pooled, (8 + 2 * pooled) / 6, pooled])
    assert np.allclose(KnownVariance().variances(Problem(np.eye(3), 10, 7.0), tally), 7.0)


def test_pulls_go_where_they_tell_most():
    bandit = Bandit(
        np.broadcast_to(np.eye(5), (100, 5, 5)), np.tile([1.0, 0.8, 0.0, 0.0, 0.0], (100, 1)), Gaussian(0.25)
    )
    run = play(ocba(), bandit, 400, 1)
    assert run.counts.sum(axis=-1).tolist() == [400] * 100
    counts = run.counts.mean(axis=0)
    assert counts[:2].min() > 3 * counts[2:].max()
    assert bandit.correct(run.arm).mean() > 0.9


def test_constant_rewards_do_no_harm():
    run = play(ocba(), Bandit(np.eye(3), np.array([0.0, 1.0, 0.0]), Gaussian(0.0)), 60, 1)
    assert run.arm == 1
    assert run.counts.sum() == 60


def test_no_first_pulls_are_refused():
    with pytest.raises(InputError):
        ocba(first=0)
