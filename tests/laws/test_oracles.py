"""Other people's solvers as oracles: cvxpy for designs, statsmodels for generalized linear models."""

import warnings

import numpy as np
import pytest

from bestarm.core import Tally
from bestarm.designs.ascent import Ascent
from bestarm.designs.directions import EachPair
from bestarm.designs.transductive import Transductive
from bestarm.linalg import Candidates, leverage, moment
from bestarm.models.glm import GLM
from bestarm.models.law import Logistic, Poisson

cvxpy = pytest.importorskip("cvxpy", reason="cvxpy comes with the test extra")
statsmodels = pytest.importorskip("statsmodels.api", reason="statsmodels comes with the test extra")


@pytest.mark.parametrize(("arms", "dimension"), [(12, 3), (30, 5), (16, 15)])
def test_d_optimal_designs_agree_with_cvxpy(arms, dimension, rng):
    x = Candidates.of(rng.standard_normal((arms, dimension)))
    z = x.coordinates
    w = cvxpy.Variable(arms, nonneg=True)
    problem = cvxpy.Problem(cvxpy.Maximize(cvxpy.log_det(z.T @ cvxpy.diag(w) @ z)), [cvxpy.sum(w) == 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve()
    ours = moment(z, Ascent(tolerance=1e-8).weights(x))
    assert np.linalg.slogdet(ours)[1] >= problem.value - 1e-5
    np.testing.assert_allclose(ours, moment(z, w.value), atol=2e-4)


def test_xy_designs_agree_with_cvxpy(rng):
    x = Candidates.of(rng.standard_normal((10, 4)))
    z, targets = x.coordinates, np.array([0, 3, 4, 7])
    y = EachPair().of(z[targets])
    w = cvxpy.Variable(10, nonneg=True)
    V = sum(w[i] * np.outer(z[i], z[i]) for i in range(10))
    worst = cvxpy.max(cvxpy.hstack([cvxpy.matrix_frac(direction, V) for direction in y]))
    problem = cvxpy.Problem(cvxpy.Minimize(worst), [cvxpy.sum(w) == 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve()
    ours = Transductive(tolerance=1e-3, limit=5000).weights(x, targets)
    assert leverage(y, np.linalg.inv(moment(z, ours))).max() == pytest.approx(problem.value, rel=3e-3)


@pytest.mark.parametrize("link", [Logistic(), Poisson()], ids=repr)
def test_glms_agree_with_statsmodels(link, rng):
    for _ in range(10):
        x = rng.standard_normal((12, 3))
        predictor = x @ rng.standard_normal(3) / 2
        counts = rng.integers(20, 60, size=12)
        if link == Logistic():
            sums = rng.binomial(counts, 1 / (1 + np.exp(-predictor))).astype(float)
            outcome, settings = np.column_stack([sums, counts - sums]), {"family": statsmodels.families.Binomial()}
        else:
            sums = rng.poisson(counts * np.exp(predictor)).astype(float)
            outcome, settings = sums, {"family": statsmodels.families.Poisson(), "exposure": counts}
        theirs = statsmodels.GLM(outcome, x, **settings).fit(tol=1e-14, maxiter=200).params
        ours = GLM(link).fit(Candidates.of(x), Tally(counts.astype(float), sums, sums)).score
        np.testing.assert_allclose(ours, x @ theirs, atol=1e-6)
