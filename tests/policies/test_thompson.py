"""Thompson sampling: draws have the law of the posterior, and the fit finds the noise."""

import numpy as np
import pytest

from bestarm import instances
from bestarm.bandits import Stream
from bestarm.core import Problem, Pulls, Totals
from bestarm.errors import InputError
from bestarm.kernels import Exponential
from bestarm.playing import play
from bestarm.policies.earlier import thompson
from bestarm.policies.posteriors import KernelPrior, LinearPrior, SeparatePrior
from bestarm.policies.process import RATIOS, _by_distance, _centred
from bestarm.policies.rules import Thompson
from bestarm.policies.sequential import EachOnce, Sequential
from bestarm.testing import check_policy


def told(policy, features, times, sums, squares):
    state = policy.start(Problem(features, budget=10_000))
    arms = np.broadcast_to(np.arange(features.shape[-2]), features.shape[:-1])
    return policy.tell(state, Pulls(arms, times), Totals(sums, squares))


def test_draws_have_the_mean_and_covariance_of_the_posterior(rng):
    features = rng.standard_normal((5, 2))
    times = np.array([3, 0, 1, 7, 2])
    sums = times * rng.standard_normal(5)
    policy = thompson()
    state = told(policy, features, times, sums, sums**2 + times)
    state = policy.tell(state, Pulls(np.array([1]), np.array([2])), Totals(np.array([1.0]), np.array([1.0])))
    draws = state.posterior.draw(40_000, rng.standard_normal)
    x = _by_distance(features)
    prior = float(state.posterior.ratio * state.posterior.noise) * policy.prior.kernel(x, x)
    known = state.posterior.tally
    hit, noise = known.counts > 0, float(state.posterior.noise)
    gain = prior[:, hit] @ np.linalg.inv(prior[np.ix_(hit, hit)] + np.diag(noise / known.counts[hit]))
    covariance = prior - gain @ prior[hit]
    np.testing.assert_allclose(draws.mean(0), gain @ (_centred(known) / known.counts)[hit], atol=0.03)
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.03 * covariance.max())


def test_the_fit_finds_noise_and_signal(rng):
    x = np.linspace(-1, 1, 40)[:, None]
    means = 3 * np.sin(3 * x[:, 0])
    rewards = means[:, None] + 0.5 * rng.standard_normal((40, 20))
    state = told(thompson(), x, np.full(40, 20), rewards.sum(-1), (rewards**2).sum(-1))
    assert state.posterior.noise == pytest.approx(0.25, rel=0.15)
    assert state.posterior.ratio >= 3
    flat = rng.standard_normal((40, 20))
    state = told(thompson(), x, np.full(40, 20), flat.sum(-1), (flat**2).sum(-1))
    assert state.posterior.noise == pytest.approx(1.0, rel=0.15)
    assert state.posterior.ratio == RATIOS[0]


def test_units_of_features_and_rewards_do_not_matter(rng):
    bandit = instances.randomized(8, 3, noise_variance=0.1, replications=20, rng=rng)
    stream = Stream(bandit, 3)

    class Scaled:
        features = 100 * stream.features + 5
        noise_variance = None

        def pull(self, pulls, taken, rng=None):
            plain = stream.pull(pulls, taken)
            return Totals(8 * plain.sums + 16 * pulls.times, 64 * plain.squares + 256 * (plain.sums + pulls.times))

    one, two = play(thompson(), stream, 60, 1), play(thompson(), Scaled(), 60, 1)
    np.testing.assert_array_equal(one.counts, two.counts)
    np.testing.assert_array_equal(one.arm, two.arm)


def test_equal_rewards_still_leave_a_choice():
    features = np.arange(6.0)[:, None]
    state = told(thompson(), features, np.full(6, 2), np.zeros(6), np.zeros(6))
    rng = np.random.default_rng(1)
    assert len({int(thompson().ask(state, rng).arms[0]) for _ in range(40)}) > 2


def test_it_beats_equal_shares_on_smooth_means():
    rng = np.random.default_rng(2)
    bandit = instances.functions(30, 2, "cubic", replications=200, rng=rng)
    stream = Stream(bandit, 1)
    from bestarm import catalog

    ours, equal = (bandit.correct(play(p, stream, 150, 1).arm).mean() for p in (thompson(), catalog.policy("uniform")))
    assert ours > equal + 0.1


def test_a_share_of_nothing_is_refused():
    with pytest.raises(InputError, match="share"):
        thompson(share=0.0)


@pytest.mark.parametrize("prior", [LinearPrior(), SeparatePrior(), KernelPrior(Exponential())], ids=repr)
def test_any_prior_will_do(prior, rng):
    policy = Sequential(Thompson(), prior, EachOnce())
    bandit = instances.randomized(6, 3, noise_variance=0.01, replications=20, rng=rng)
    assert np.mean(bandit.correct(play(policy, bandit, 60, 1).arm)) > 0.6
    check_policy(policy)
