"""BayesGap: its formulas by hand, its answer over time, and the published code's variant."""

import numpy as np
import pytest

from bestarm import catalog, instances
from bestarm.bandits import Bandit, Gaussian
from bestarm.core import Problem, Pulls, Totals
from bestarm.errors import InputError
from bestarm.kernels import Exponential, LinearKernel, Matern, SquaredExponential
from bestarm.playing import play
from bestarm.policies.earlier import bayesgap
from bestarm.policies.posteriors import KernelPrior, LinearPrior
from bestarm.policies.radii import Azizi2021
from bestarm.policies.sequential import EachOnce, NoPulls
from bestarm.tuning import tune


def told(policy, problem, times, sums):
    """The state after arm i was pulled times[i] times."""
    state = policy.start(problem)
    return policy.tell(
        state, Pulls(np.arange(len(times)), np.array(times)), Totals(np.array(sums), np.array(sums) ** 2)
    )


def test_basis_arms_are_shrunken_means():
    noise, prior = 2.0, 5.0
    times, sums = np.array([3, 1, 6]), np.array([3.0, -1.0, 9.0])
    state = told(bayesgap(LinearPrior(prior), noise_variance=noise), Problem(np.eye(3), 20), times, sums)
    assert np.allclose(state.posterior.mean, sums / (times + noise / prior))
    assert np.allclose(state.posterior.variance, 1 / (times / noise + 1 / prior))


def test_beta_by_hand():
    # Two basis arms, unit noise and prior, B = 10, one pull each giving 1 and 0: means 1/2 and 0, variances 1/2.
    policy = bayesgap(epsilon=0.0, noise_variance=1.0)
    state = told(policy, Problem(np.eye(2), 10), [1, 1], [1.0, 0.0])
    three = 3 / np.sqrt(2)
    gaps = np.array([(0 + three) - (0.5 - three), (0.5 + three) - (0 - three)]) / 2
    beta = np.sqrt(((10 - 2) / 1 + 2) / (4 * np.sum(gaps**-2.0)))
    look = policy.rule.look(state.posterior, state.memory.precision, 10)
    assert np.isclose(look.beta, beta)
    assert (look.leader, look.rival) == (0, 1)
    assert np.isclose(look.bound, (0 + beta * np.sqrt(0.5)) - (0.5 - beta * np.sqrt(0.5)))


def test_the_published_code_by_hand():
    policy = bayesgap(epsilon=0.0, noise_variance=1.0, confidence=Azizi2021())
    state = told(policy, Problem(np.eye(2), 10), [1, 1], [1.0, 0.0])
    gaps = np.array([(0 + 1.5) - (0.5 - 1.5), (0.5 + 1.5) - (0 - 1.5)]) / 2
    beta = (8 + 2) / (4 * gaps.sum())
    look = policy.rule.look(state.posterior, state.memory.precision, 10)
    assert np.isclose(look.beta, beta)
    assert np.isclose(look.bound, beta - 0.5)


def test_it_pulls_the_less_certain_of_two():
    state = told(bayesgap(noise_variance=1.0), Problem(np.eye(3), 30), [5, 2, 5], [5.0, 1.8, -20.0])
    assert state.memory.arm == 1


def test_two_identical_best_arms_keep_the_bound_positive():
    features = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    bandit = Bandit(features, np.array([1.0, 1.0, 0.0]), Gaussian(0.01))
    bounds = []
    run = play(bayesgap(), bandit, 200, 1, watch=lambda r: bounds.append(float(r.after.memory.bound)))
    assert min(bounds) > 0
    assert run.arm in (0, 1)


def test_the_answer_is_the_leader_at_the_smallest_bound(rng):
    seen = []
    policy = bayesgap(first=NoPulls())

    def watch(r):
        look = policy.rule.look(r.after.posterior, r.after.memory.precision, 40)
        seen.append((float(look.bound), int(look.leader)))

    run = play(policy, instances.randomized(8, 3, rng=rng), 40, 3, watch)
    first = policy.rule.look(
        policy.start(Problem(run.state.problem.features, 40, 10.0)).posterior, run.state.memory.precision, 40
    )
    seen.insert(0, (float(first.bound), int(first.leader)))
    assert int(run.arm) == min(seen, key=lambda pair: pair[0])[1]


def test_a_linear_kernel_is_the_linear_form(rng):
    bandit = instances.randomized(8, 3, noise_variance=1.0, replications=5, rng=rng)
    linear, kernel = (play(bayesgap(p), bandit, 60, 4) for p in (LinearPrior(2.0), KernelPrior(LinearKernel(2.0))))
    assert np.array_equal(linear.counts, kernel.counts)
    assert np.array_equal(linear.arm, kernel.arm)


@pytest.mark.parametrize(
    "kernel", [Exponential(), SquaredExponential(), Matern(0.5), Matern(1.5), Matern(2.5)], ids=repr
)
def test_a_kernel_finds_the_top_of_a_curve(kernel):
    x = np.linspace(0, 3, 15)
    bandit = Bandit(np.broadcast_to(x[:, None], (50, 15, 1)), np.broadcast_to(np.sin(2 * x), (50, 15)), Gaussian(0.01))
    run = play(bayesgap(KernelPrior(kernel)), bandit, 100, 2)
    assert bandit.regret(run.arm).max() < 0.1


def test_without_the_noise_variance_it_says_what_to_do():
    with pytest.raises(InputError, match="noise_variance"):
        bayesgap().start(Problem(np.eye(2), 5))
    with pytest.raises(InputError, match="negative"):
        bayesgap(noise_variance=-1.0).start(Problem(np.eye(2), 5))


def test_first_pulls():
    rng = np.random.default_rng(0)
    problem = Problem(np.eye(4), 7, 1.0)
    assert bayesgap().ask(bayesgap().start(problem), rng).total == 1  # 7 < 2 * 4
    each = bayesgap(first=EachOnce())
    assert each.ask(each.start(problem), rng).arms.tolist() == [0, 1, 2, 3]
    few = each.ask(each.start(Problem(np.eye(4), 3, 1.0)), rng)
    assert few.total == 3
    assert len(set(few.arms.tolist())) == 3


def test_a_length_scale_is_tuned_inside_its_part():
    def bandits(n, rng):
        x = np.linspace(0, 3, 12)
        return Bandit(np.broadcast_to(x[:, None], (n, 12, 1)), np.broadcast_to(np.sin(2 * x), (n, 12)), Gaussian(0.3))

    found = tune(bayesgap(KernelPrior(Exponential())), "prior.kernel.length", [0.1, 1.0], bandits, 40, 40, 1)
    assert found.policy.prior.kernel.length in (0.1, 1.0)
    assert [trial.value for trial in found.trials] == [0.1, 1.0]


@pytest.mark.parametrize("name", ["bayesgap-lin", "bayesgap-exp", "bayesgap-matern", "ugapeb-paper"])
def test_with_fewer_pulls_than_arms_it_names_the_largest_posterior_mean(name):
    rng = np.random.default_rng(5)
    features = rng.standard_normal((100, 30, 3))
    bandit = Bandit(features, features @ np.array([0.6, -0.4, 0.3]), Gaussian(0.25))
    run = play(catalog.policy(name), bandit, 20, 3)
    assert np.array_equal(run.arm, np.argmax(run.state.posterior.mean, axis=-1))
    to_chance = np.max(bandit.means, axis=-1) - np.mean(bandit.means, axis=-1)
    assert np.mean(bandit.regret(run.arm)) < 0.5 * np.mean(to_chance)  # a random arm has 1, as most of them had


def test_with_as_many_pulls_as_arms_it_names_the_arm_of_the_smallest_bound():
    features = np.random.default_rng(6).standard_normal((50, 12, 3))
    bandit = Bandit(features, features @ np.array([0.6, -0.4, 0.3]), Gaussian(0.25))
    run = play(catalog.policy("bayesgap-lin"), bandit, 12, 3)
    assert np.array_equal(run.arm, run.state.memory.best)
