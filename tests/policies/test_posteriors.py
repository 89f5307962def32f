"""Posteriors: tracked equals refit equals textbook, in every form of the covariance."""

import numpy as np
import pytest

from bestarm.kernels import Exponential, LinearKernel, Matern, SquaredExponential
from bestarm.policies.posteriors import KernelPrior, LinearPrior, SeparatePrior

KERNELS = [Exponential(2.0), SquaredExponential(3.0), Matern(0.5), Matern(1.5), Matern(2.5), LinearKernel(0.5)]
PRIORS = [LinearPrior(0.7), SeparatePrior(2.0), *(KernelPrior(kernel, 1.3) for kernel in KERNELS)]


def played(posterior, steps, rng, columns=1):
    """The posterior after `steps` updates of a few columns each, at random."""
    batch, arms = posterior.mean.shape[:-1], posterior.mean.shape[-1]
    for _ in range(steps):
        index = rng.integers(arms, size=(*batch, columns))
        times = rng.integers(0 if columns > 1 else 1, 4, size=index.shape)
        posterior = posterior.update(index, times, times * rng.standard_normal(index.shape))
    return posterior


def regression(gram, counts, sums, noise):
    """Gaussian-process regression on every single pull, from scratch."""
    seen = np.repeat(np.arange(len(counts)), counts.astype(int))
    rewards = (sums / np.maximum(counts, 1))[seen]  # only the mean of an arm's rewards matters
    inner = np.linalg.inv(gram[np.ix_(seen, seen)] + noise * np.eye(len(seen)))
    gain = gram[:, seen] @ inner
    return gain @ rewards, gram - gain @ gram[seen]


def gram_of(prior, x):
    if isinstance(prior, KernelPrior):
        return prior.variance * prior.kernel(x, x)
    gram = prior.variance * x @ x.T
    return np.diag(np.diag(gram)) if isinstance(prior, SeparatePrior) else gram


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
@pytest.mark.parametrize("columns", [1, 3])
def test_the_recursion_is_regression(prior, columns, rng):
    x = rng.standard_normal((6, 3))
    posterior = played(prior.posterior(x, 0.8), 40, rng, columns)
    mean, covariance = regression(gram_of(prior, x), posterior.counts, posterior.sums, 0.8)
    assert np.allclose(posterior.mean, mean, rtol=0, atol=1e-8)
    assert np.allclose(posterior.variance, np.diag(covariance), rtol=0, atol=1e-8)
    for arm in range(6):
        assert np.allclose(posterior.column(np.int64(arm)), covariance[arm], rtol=0, atol=1e-8)


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_information_is_the_log_determinant(prior, rng):
    x = rng.standard_normal((5, 3))
    posterior = played(prior.posterior(x, 0.5), 21, rng)
    inner = np.eye(5) + gram_of(prior, x) * posterior.counts / 0.5
    assert np.isclose(posterior.information, np.linalg.slogdet(inner)[1], atol=1e-9)


@pytest.mark.parametrize(
    "prior", [LinearPrior(100.0), KernelPrior(Matern(2.5, 3.0), 50.0), SeparatePrior(9.0)], ids=repr
)
def test_thousands_of_updates_do_not_drift(prior, rng):
    posterior = played(prior.posterior(rng.standard_normal((3, 12, 4)), 1.0), 5000, rng)
    _, mean, variance, information = posterior.covariance.refit(posterior.counts, posterior.sums, 1.0)
    assert np.allclose(posterior.mean, mean, rtol=0, atol=1e-8)
    assert np.allclose(posterior.variance, variance, rtol=0, atol=1e-8)
    assert np.allclose(posterior.information, information, rtol=1e-8)


def test_the_longest_stretch_without_a_refit_does_not_drift(rng):
    posterior = played(LinearPrior(1e6).posterior(rng.standard_normal((3, 12, 4)), 1.0), 255 + 256 * 7, rng)
    _, mean, variance, _ = posterior.covariance.refit(posterior.counts, posterior.sums, 1.0)
    assert np.allclose(posterior.mean, mean, rtol=0, atol=1e-8)
    assert np.allclose(posterior.variance, variance, rtol=0, atol=1e-8)


def test_an_update_leaves_the_posterior_before_as_it_was(rng):
    before = played(LinearPrior().posterior(rng.standard_normal((2, 5, 3)), 1.0), 5, rng)
    kept = [a.copy() for a in (before.mean, before.variance, before.counts, before.sums, before.covariance.inverse)]
    played(before, 300, rng)
    after = (before.mean, before.variance, before.counts, before.sums, before.covariance.inverse)
    assert all(np.array_equal(a, b) for a, b in zip(kept, after, strict=True))


def test_pulls_at_once_are_pulls_one_by_one(rng):
    x, rewards = rng.standard_normal((5, 3)), rng.standard_normal(4)
    at_once = LinearPrior().posterior(x, 1.0).update(np.array([2]), np.array([4]), np.array([rewards.sum()]))
    singly = LinearPrior().posterior(x, 1.0)
    for reward in rewards:
        singly = singly.update(np.array([2]), np.array([1]), np.array([reward]))
    assert np.allclose(at_once.mean, singly.mean)
    assert np.allclose(at_once.variance, singly.variance)


def test_more_features_than_arms_are_the_same_model(rng):
    x = rng.standard_normal((4, 9))
    wide, kernel = (
        played(p.posterior(x, 1.0), 30, np.random.default_rng(1)) for p in (LinearPrior(), KernelPrior(LinearKernel()))
    )
    assert wide.covariance.inverse.shape == (4, 4)
    assert np.allclose(wide.mean, kernel.mean)
    assert np.allclose(wide.variance, kernel.variance)


@pytest.mark.parametrize("prior", [LinearPrior(), SeparatePrior(), KernelPrior(Exponential())], ids=repr)
def test_a_stack_is_each_of_its_parts(prior, rng):
    x, index, sums = rng.standard_normal((4, 6, 3)), rng.integers(6, size=(40, 4, 1)), rng.standard_normal((40, 4, 1))
    ones = np.ones((4, 1), dtype=np.int64)
    whole = prior.posterior(x, 1.0)
    parts = [prior.posterior(one, 1.0) for one in x]
    for i, s in zip(index, sums, strict=True):
        whole = whole.update(i, ones, s)
        parts = [part.update(i[r], ones[r], s[r]) for r, part in enumerate(parts)]
    for r, part in enumerate(parts):
        assert np.array_equal(whole.mean[r], part.mean)
        assert np.array_equal(whole.variance[r], part.variance)
