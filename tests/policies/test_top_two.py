"""The linear top-two: its start, its pair, its arm."""

import numpy as np
import pytest

from bestarm import instances
from bestarm.bandits import Bandit, Gaussian
from bestarm.core import Problem, Pulls, Totals
from bestarm.errors import InputError
from bestarm.kernels import Exponential
from bestarm.playing import play
from bestarm.policies.earlier import top_two
from bestarm.policies.posteriors import KernelPrior, LinearPrior
from bestarm.policies.rules import Optimistic


def told(policy, problem, times, sums):
    state = policy.start(problem)
    return policy.tell(state, Pulls(np.arange(len(times)), np.array(times)), Totals(np.array(sums), np.array(sums)))


def test_the_start_is_a_design_on_a_fifth_of_the_budget(rng):
    x = np.concatenate([np.eye(3), 0.1 * rng.standard_normal((5, 3))])
    pulls = top_two().ask(top_two().start(Problem(x, 61)), rng)
    assert pulls.times.sum() == 13
    assert pulls.times[:3].sum() == 13  # short arms are not worth a pull


def test_leader_challenger_and_arm_by_brute_force(rng):
    policy = top_two()
    x = rng.standard_normal((10, 4))
    state = told(policy, Problem(x, 100), rng.integers(1, 4, 10), rng.standard_normal(10))
    A = np.eye(4) / 0.3 + x.T @ (x * state.posterior.counts[:, None])
    inverse = np.linalg.inv(A)
    mean = x @ inverse @ x.T @ state.posterior.sums
    i = np.argmax(mean)
    y = x[i] - x
    with np.errstate(invalid="ignore"):
        z = (mean[i] - mean) / np.sqrt(np.sum(y @ inverse * y, axis=-1))
    z[i] = np.inf
    j = np.argmin(z)
    assert policy.rule.pair(state) == (i, j)
    left = [y[j] @ np.linalg.inv(A + np.outer(a, a)) @ y[j] for a in x]
    assert policy.ask(state, rng).arms[0] == np.argmin(left)


def test_the_noise_level_does_not_matter_to_it(rng):
    x = rng.standard_normal((8, 3))
    means = (x @ rng.standard_normal((3, 1)))[:, 0]
    known, unknown = (Bandit(x, means, Gaussian(1.0)) for _ in range(2))
    first = play(top_two(), known, 80, 3)
    state = top_two().start(Problem(unknown.features, 80, None))
    assert np.array_equal(state.posterior.variance, top_two().start(Problem(x, 80, 9.0)).posterior.variance)
    assert first.counts.sum() == 80


def test_twins_are_not_each_others_challengers(rng):
    x = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    state = told(top_two(), Problem(x, 50), [5, 5, 5, 5], [5.0, 5.0, 0.0, 1.0])
    i, j = top_two().rule.pair(state)
    assert i in (0, 1)
    assert j in (2, 3)


def test_arms_that_are_all_alike_are_pulled_in_turn():
    run = play(top_two(share=0.0), Bandit(np.ones((2, 3)), np.ones(2), Gaussian(1.0)), 21, 1)
    assert sorted(run.counts.tolist()) == [10, 11]


def test_it_beats_uniform_pulling_on_soares_arms():
    bandit = instances.adaptive(8, replications=300).shuffled(np.random.default_rng(2))
    assert bandit.correct(play(top_two(), bandit, 800, 1).arm).mean() > 0.55  # any static half-half guess stops at 0.5


@pytest.mark.parametrize("prior", [LinearPrior(), KernelPrior(Exponential())], ids=repr)
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_any_prior_and_any_share(prior, share):
    bandit = instances.static(3.0, arms=5)
    run = play(top_two(prior, share), bandit, 100, 1)
    assert run.counts.sum() == 100
    assert run.arm == 0


def test_an_impossible_share_is_refused():
    with pytest.raises(InputError):
        top_two(share=1.5)


def test_an_optimistic_challenger_by_brute_force(rng):
    policy = top_two(challenger=Optimistic(2.0))
    x = rng.standard_normal((10, 4))
    state = told(policy, Problem(x, 100, 9.0), rng.integers(1, 4, 10), rng.standard_normal(10))
    inverse = np.linalg.inv(np.eye(4) / 0.3 + x.T @ (x * state.posterior.counts[:, None]))
    i, j = policy.rule.pair(state)
    y = x - x[i]
    index = state.posterior.mean + 2.0 * 3.0 * np.sqrt(np.sum(y @ inverse * y, axis=-1))
    index[i] = -np.inf
    assert j == np.argmax(index)
    with pytest.raises(InputError, match="noise_variance"):
        policy.rule.pair(told(policy, Problem(x, 100), np.ones(10, dtype=int), np.zeros(10)))
