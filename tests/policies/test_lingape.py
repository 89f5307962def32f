"""LinGapE: the linear program, the greedy arm, the radius, and what happens to twins."""

import numpy as np
import pytest

from bestarm import instances
from bestarm.bandits import Bandit, Gaussian
from bestarm.core import Problem, Pulls, Totals
from bestarm.errors import InputError
from bestarm.linalg import rows
from bestarm.playing import play
from bestarm.policies.choosers import LeastRatio, Shares, least_norm_weights
from bestarm.policies.earlier import lingape
from bestarm.tuning import changed, tune


def told(policy, problem, times, sums):
    state = policy.start(problem)
    return policy.tell(state, Pulls(np.arange(len(times)), np.array(times)), Totals(np.array(sums), np.array(sums)))


def test_the_program_on_basis_arms():
    assert np.allclose(least_norm_weights(np.eye(4), np.array([0.0, 1.0, -1.0, 0.0])), [0, 1, -1, 0])
    assert np.allclose(Shares(np.eye(4)).of(np.int64(1), np.int64(2)), [0, 0.5, 0.5, 0])


def test_the_program_on_soares_arms():
    x, omega = instances.adaptive(6, 0.1).features, 0.1
    w = least_norm_weights(x, x[0] - x[-1])
    assert np.isclose(np.abs(w).sum(), 1 - np.cos(omega) + np.sin(omega))
    shares = Shares(x).of(np.int64(0), np.int64(5))
    assert np.isclose(shares[1], 0.952, atol=5e-4)
    assert np.isclose(shares.sum(), 1)


def test_the_program_reaches_y_at_least_cost(rng):
    x = rng.standard_normal((9, 4))
    y = x[2] - x[7]
    w = least_norm_weights(x, y)
    assert np.allclose(w @ x, y, atol=1e-8)
    assert np.abs(w).sum() <= 2 + 1e-9  # e_2 − e_7 would do
    cheapest = min(
        np.abs(np.linalg.solve(x[list(four)].T, y)).sum()
        for four in np.ndindex(9, 9, 9, 9)
        if list(four) == sorted(set(four))
    )
    assert np.isclose(np.abs(w).sum(), cheapest)


def test_replications_with_the_same_arms_share_their_programs(rng):
    x = rng.standard_normal((7, 3))
    order = np.argsort(rng.random((10, 7)), axis=-1)
    shares = Shares(rows(np.broadcast_to(x, (10, 7, 3)), order))
    i, j = (np.argmax(order == arm, axis=-1) for arm in (4, 1))
    found = shares.of(np.where(np.arange(10) % 2, i, j), np.where(np.arange(10) % 2, j, i))
    assert len(shares.solved) == 1
    assert np.allclose(
        np.take_along_axis(found, np.argsort(order, axis=-1), axis=-1), Shares(x).of(np.int64(1), np.int64(4))
    )


def test_the_greedy_arm_is_the_best_of_all(rng):
    policy = lingape(ridge=0.7)
    state = told(
        policy, Problem(rng.standard_normal((12, 4)), 60, 1.0), rng.integers(1, 4, 12), rng.standard_normal(12)
    )
    x = state.problem.features
    A = 0.7 * np.eye(4) + x.T @ (x * state.posterior.counts[:, None])
    i, j = policy.rule.pair(state)
    y = x[i] - x[j]
    left = [y @ np.linalg.inv(A + np.outer(a, a)) @ y for a in x]
    assert policy.ask(state, rng).arms[0] == np.argmin(left)


def test_the_pair_and_the_radius_by_brute_force(rng):
    policy = lingape(delta=0.1, ridge=0.5, bound=2.0)
    state = told(policy, Problem(rng.standard_normal((8, 3)), 60, 4.0), rng.integers(1, 4, 8), rng.standard_normal(8))
    x, counts = state.problem.features, state.posterior.counts
    A = 0.5 * np.eye(3) + x.T @ (x * counts[:, None])
    theta = np.linalg.solve(A, x.T @ state.posterior.sums)
    radius = 2.0 * np.sqrt(2 * np.log(64 * np.sqrt(np.linalg.det(A) / 0.5**3) / 0.1)) + np.sqrt(0.5) * 2.0
    assert np.isclose(policy.rule.radius(state), radius)
    i = np.argmax(x @ theta)
    y = x - x[i]
    gap = y @ theta + radius * np.sqrt(np.sum(y @ np.linalg.inv(A) * y, axis=-1))
    gap[i] = -np.inf
    assert policy.rule.pair(state) == (i, np.argmax(gap))


@pytest.mark.parametrize("policy", [lingape(), lingape(LeastRatio())], ids=repr)
def test_twins_are_pulled_in_turn(policy):
    features = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.1]])
    bandit = Bandit(features, np.array([1.0, 1.0, -5.0]), Gaussian(1e-4))
    counts = play(policy, bandit, 43, 1).counts
    assert abs(int(counts[0]) - int(counts[1])) <= 1


def test_the_program_is_tracked_on_soares_arms():
    bandit = instances.adaptive(5, 0.1, noise_variance=0.01)
    counts = play(lingape(LeastRatio()), bandit, 400, 1).counts
    assert counts[1] > 300  # p = 0.952


def test_each_arm_once_first_and_a_random_few_if_there_is_no_more(rng):
    policy = lingape()
    state = policy.start(Problem(np.eye(5), 9, 1.0))
    assert policy.ask(state, rng).arms.tolist() == [0, 1, 2, 3, 4]
    few = policy.ask(policy.start(Problem(np.eye(5), 3, 1.0)), rng).arms.tolist()
    assert len(set(few)) == 3


def test_a_narrow_width_listens_to_the_estimates(rng):
    bandit = instances.static(1.0, replications=200)
    wide, narrow = (bandit.correct(play(lingape(width=w), bandit, 160, 1).arm).mean() for w in (1.0, 0.2))
    assert narrow > wide - 0.05


@pytest.mark.parametrize("settings", [{"delta": 0.0}, {"delta": 1.5}, {"ridge": 0.0}])
def test_impossible_settings_are_refused(settings):
    with pytest.raises(InputError):
        lingape(**settings)


def test_delta_is_tuned_on_equal_terms():
    def bandits(n, rng):
        return instances.randomized(8, 3, noise_variance=1.0, replications=n, rng=rng)

    found = tune(lingape(), "delta", [0.01, 0.99, 0.01], bandits, 80, 50, 3)
    assert found.trials[0] == found.trials[2]  # the same bandits, the same rewards
    assert found.best.accuracy == max(trial.accuracy for trial in found.trials)
    assert found.policy == lingape(delta=found.best.value)
    assert str(found).count("\n") == 3
    assert found == tune(lingape(), "delta", [0.01, 0.99, 0.01], bandits, 80, 50, 3)


def test_tuning_refuses_what_is_not_there():
    with pytest.raises(InputError, match="no setting 'alpha'"):
        changed(lingape(), "alpha", 1.0)
    with pytest.raises(InputError, match=r"no setting 'delta\.x'"):
        changed(lingape(), "delta.x", 1.0)
    with pytest.raises(InputError, match="no values"):
        tune(lingape(), "delta", [], lambda n, rng: instances.static(replications=n), 40)


def test_arms_scaled_beyond_the_solver_still_get_shares(rng):
    x = rng.standard_normal((6, 3)) * np.array([1e-9, 1.0, 1e9])
    shares = Shares(x).of(np.int64(0), np.int64(1))
    assert np.isclose(shares.sum(), 1)
    assert (shares >= 0).all()
