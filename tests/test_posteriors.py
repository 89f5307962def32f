"""The one interface of posteriors: mean, variance, column and draws of each say the same of its means."""

import numpy as np
import pytest

from bestarm.core import Pulls, Tally, Totals
from bestarm.kernels import Matern
from bestarm.linalg import Candidates
from bestarm.models.linear import Linear
from bestarm.models.weighed import Weighed
from bestarm.policies.classics import NoPrior
from bestarm.policies.likelihood import MaximumLikelihood
from bestarm.policies.posteriors import KernelPrior, LinearPrior, SeparatePrior
from bestarm.policies.process import FittedProcess

PRIORS = [LinearPrior(0.7), SeparatePrior(2.0), KernelPrior(Matern(2.5), 1.3), FittedProcess(), MaximumLikelihood()]
DRAWS = 40_000


def agree(posterior, draws):
    """Mean and covariance of draws are within six of their standard errors of what the posterior says."""
    covariance = np.stack([posterior.column(np.int64(arm)) for arm in range(posterior.mean.shape[-1])])
    variance = np.diag(covariance)
    np.testing.assert_allclose(posterior.variance, variance, rtol=1e-6, atol=1e-12)
    assert np.all(np.abs(draws.mean(axis=0) - posterior.mean) <= 6 * np.sqrt(variance / DRAWS) + 1e-12)
    spread = np.sqrt((covariance**2 + variance[:, None] * variance) / DRAWS)
    assert np.all(np.abs(np.cov(draws.T) - covariance) <= 6 * spread + 1e-12)


@pytest.mark.parametrize("prior", [*PRIORS, NoPrior()], ids=repr)
def test_draws_have_the_moments_a_tracked_posterior_says(prior, rng):
    posterior = prior.posterior(rng.standard_normal((5, 2)), 1.0)
    sums = np.array([2.0, 1.0, 1.0, 4.0, 0.0])
    posterior = posterior.after(Pulls(np.arange(5), np.array([4, 2, 1, 9, 3])), Totals(sums, sums))
    posterior = posterior.after(Pulls(np.array([1]), np.array([2])), Totals(np.ones(1), np.ones(1)))
    agree(posterior, posterior.draw(DRAWS, rng.standard_normal))


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_draws_of_a_stack_are_those_of_its_parts(prior, rng):
    x, normal = rng.standard_normal((3, 5, 2)), rng.standard_normal((2, 3, 4, 5))
    pulls = Pulls(np.array([[0, 1], [2, 3], [1, 4]]), np.array([[1, 2], [3, 1], [2, 2]]))
    sums = np.ones((3, 2))
    whole = prior.posterior(x, 1.0).after(pulls, Totals(sums, sums))
    for r in range(3):
        part = prior.posterior(x[r], 1.0).after(Pulls(pulls.arms[r], pulls.times[r]), Totals(sums[r], sums[r]))
        drawn = part.draw(4, lambda shape, r=r: normal[:, r].reshape(shape))
        np.testing.assert_allclose(whole.draw(4, lambda _: normal)[r], drawn, rtol=1e-6, atol=1e-9)


def test_hypotheses_and_models_answer_alike(rng):
    x, counts, sums = rng.standard_normal((6, 2)), np.array([3.0, 2, 0, 1, 5, 4]), rng.standard_normal(6)
    known = Tally(counts, sums * (counts > 0), 2 * sums**2 * (counts > 0))
    mixture, _ = Weighed().read(Candidates.of(x), known)
    for look in mixture.outlooks():
        drawn = look.draw(DRAWS, rng.standard_normal)[0]
        one = type("One", (), {"mean": look.mean[0], "variance": look.variance[0]})()
        one.column = lambda arm, look=look: look.column(np.array([arm]))[0]
        agree(one, drawn)
    drawn = Linear().posterior(x, known, 1.0, 300, rng)
    assert np.array_equal(drawn.draw(300, rng.standard_normal), drawn.draws)
    assert drawn.draw(700, rng.standard_normal).shape == (700, 6)
    covariance = np.cov(drawn.draws.T, ddof=0)
    np.testing.assert_allclose(drawn.variance, np.diag(covariance))
    np.testing.assert_allclose(drawn.column(2), covariance[2])
