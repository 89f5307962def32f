"""Laws of the reward models: normal equations, zero scores, agreement of two routes, finiteness."""

import numpy as np
import pytest

from bestarm.core import Tally
from bestarm.errors import RewardError
from bestarm.linalg import Candidates
from bestarm.models.any_regressor import AnyRegressor
from bestarm.models.glm import GLM
from bestarm.models.law import Custom, Identity, Logistic, Poisson
from bestarm.models.linear import Linear, PseudoInverse, Ridge
from bestarm.models.means import Means
from tests.conftest import AWKWARD


def gaussian_tally(x, rng, least=0, batch=()):
    counts = rng.integers(least, 9, size=(*batch, x.shape[-2])).astype(float)
    sums = counts * rng.standard_normal(counts.shape)
    return Tally(counts, sums, sums**2 / np.maximum(counts, 1) + counts)


def binary_tally(predictor, rng, most=12):
    counts = rng.integers(1, most, size=predictor.shape)
    sums = rng.binomial(counts, 1 / (1 + np.exp(-predictor))).astype(float)
    return Tally(counts.astype(float), sums, sums)


def test_projection_equals_pseudo_inverse(rng):
    for rank in (1, 2, 4):
        x = rng.standard_normal((20, 9, rank)) @ rng.standard_normal((rank, 4))
        tally = gaussian_tally(x, rng, least=1, batch=(20,))
        one, two = (Linear(s).fit(Candidates.of(x), tally).mean for s in (Linear().solver, PseudoInverse()))
        np.testing.assert_allclose(one, two, atol=1e-8)


def test_linear_equals_least_squares_on_the_pulls_one_by_one(rng):
    x = rng.standard_normal((6, 3))
    counts = rng.integers(1, 5, size=6)
    rewards = [rng.standard_normal(c) for c in counts]
    theta = np.linalg.lstsq(np.repeat(x, counts, axis=0), np.concatenate(rewards), rcond=None)[0]
    tally = Tally(counts.astype(float), *(np.array([f(r) for r in rewards]) for f in (np.sum, lambda r: (r**2).sum())))
    fit = Linear().fit(Candidates.of(x), tally)
    np.testing.assert_allclose(fit.mean, x @ theta, atol=1e-10)
    residual = np.concatenate(rewards) - np.repeat(x @ theta, counts)
    error = Linear().standard_error(Candidates.of(x), tally, fit, None)
    V = np.linalg.inv((x * counts[:, None]).T @ x)
    np.testing.assert_allclose(error, np.sqrt(np.diag(x @ V @ x.T) * (residual @ residual) / (counts.sum() - 3)))


def test_linear_does_not_depend_on_the_basis_of_the_features(rng):
    x = rng.standard_normal((8, 4))
    mixed = x @ (rng.standard_normal((4, 4)) * np.array([1.0, 1e3, 1e-3, 10.0]))
    for least in (0, 1):
        tally = gaussian_tally(x, rng, least)
        one, two = (Linear().fit(Candidates.of(f), tally).mean for f in (x, mixed))
        np.testing.assert_allclose(one, two, rtol=1e-7, atol=1e-8)


def test_ridge_shrinks_towards_zero_and_vanishes(rng):
    x = rng.standard_normal((8, 3))
    tally = gaussian_tally(x, rng, least=1)
    plain, weak, strong = (
        Linear(s).fit(Candidates.of(x), tally).mean for s in (Linear().solver, Ridge(1e-9), Ridge(1e9))
    )
    np.testing.assert_allclose(plain, weak, atol=1e-6)
    assert np.abs(strong).max() < 1e-6


@pytest.mark.parametrize("link", [Logistic(), Poisson(), Identity()], ids=repr)
def test_a_fitted_glm_zeroes_its_score(link, rng):
    x = rng.standard_normal((30, 10, 3))
    predictor = (x @ rng.standard_normal((30, 3, 1)))[..., 0] / 2
    if link == Poisson():
        counts = rng.integers(1, 9, size=predictor.shape).astype(float)
        sums = rng.poisson(counts * np.exp(predictor)).astype(float)
        tally = Tally(counts, sums, sums)
    else:
        tally = binary_tally(predictor, rng, 40)
    fit = GLM(link).fit(Candidates.of(x), tally)
    score = np.swapaxes(x, -1, -2) @ (tally.sums - tally.counts * fit.mean)[..., None]
    assert np.abs(score).max() < 1e-4 * tally.counts.sum(-1).max()


def test_the_identity_glm_is_least_squares(rng):
    x = rng.standard_normal((9, 3))
    tally = gaussian_tally(x, rng, least=1)
    np.testing.assert_allclose(
        GLM(Identity()).fit(Candidates.of(x), tally).mean, Linear().fit(Candidates.of(x), tally).mean, atol=1e-6
    )


def test_a_persons_own_mean_function_works_like_the_built_in_one(rng):
    x = rng.standard_normal((5, 9, 3))
    tally = binary_tally((x @ rng.standard_normal((5, 3, 1)))[..., 0], rng, 40)
    own = GLM(Custom(lambda z: (1 + np.tanh(z / 2)) / 2))
    np.testing.assert_allclose(
        own.fit(Candidates.of(x), tally).score, GLM().fit(Candidates.of(x), tally).score, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("kind", AWKWARD)
@pytest.mark.parametrize("successes", ["none", "all", "separated"])
def test_glms_stay_finite_where_no_maximum_exists(kind, successes, rng):
    x = AWKWARD[kind](rng)
    counts = np.full(len(x), 5.0)
    sums = {"none": 0 * counts, "all": counts, "separated": counts * (np.arange(len(x)) % 2)}[successes]
    for link in (Logistic(), Poisson()):
        fit = GLM(link).fit(Candidates.of(x), Tally(counts, sums, sums))
        assert np.isfinite(fit.score).all()
        assert np.isfinite(fit.mean).all()


def test_all_successes_rank_arms_by_their_direction():
    x = np.array([[0.1], [0.5], [1.0]])
    counts = np.full(3, 4.0)
    fit = GLM().fit(Candidates.of(x), Tally(counts, counts, counts))
    assert (np.diff(fit.score) > 0).all()


def test_rewards_a_model_cannot_have_are_refused():
    arms = Candidates.of(np.eye(2))
    half = Tally(np.array([2.0, 1.0]), np.array([0.5, 1.0]), np.array([0.25, 1.0]))
    with pytest.raises(RewardError, match="0 or 1"):
        GLM(Logistic()).fit(arms, half)
    with pytest.raises(RewardError, match="counts 0, 1, 2"):
        GLM(Poisson()).fit(arms, half)


def test_means_are_means(rng):
    tally = Tally(np.array([4.0, 2.0, 0.0]), np.array([8.0, 1.0, 0.0]), np.array([20.0, 0.9, 0.0]))
    fit = Means().fit(Candidates.of(np.eye(3)), tally)
    np.testing.assert_allclose(fit.mean, [2.0, 0.5, 1.5])
    error = Means().standard_error(Candidates.of(np.eye(3)), tally, fit, 1.0)
    np.testing.assert_allclose(error, [0.5, np.sqrt(0.5), np.inf])


@pytest.mark.parametrize(
    "path", ["sklearn.ensemble.RandomForestRegressor", "sklearn.neighbors.KNeighborsRegressor", "sklearn.svm.SVR"]
)
def test_any_regressor_learns_the_order_of_well_measured_arms(path, rng):
    x = np.linspace(-1, 1, 12)[:, None]
    counts = np.full(12, 50.0)
    params = {"n_neighbors": 2} if "Neighbors" in path else {}
    fit = AnyRegressor(path, params).fit(Candidates.of(x), Tally(counts, counts * x[:, 0] ** 3, counts))
    assert np.corrcoef(fit.mean, x[:, 0] ** 3)[0, 1] > 0.9


def test_a_pipeline_serves_as_a_model(rng):
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures

    model = AnyRegressor.wrap(make_pipeline(PolynomialFeatures(degree=2), LinearRegression()))
    x = rng.standard_normal((10, 2))
    truth = x[:, 0] ** 2 - x[:, 1]
    counts = np.arange(1.0, 11.0)
    fit = model.fit(Candidates.of(x), Tally(counts, counts * truth, counts))
    np.testing.assert_allclose(fit.mean, truth, atol=1e-8)


def test_elimination_runs_on_a_neural_network(rng):
    from sklearn.neural_network import MLPRegressor

    from bestarm.bandits import Bandit, Gaussian
    from bestarm.designs.spread import Uniform
    from bestarm.playing import play
    from bestarm.policies.elimination import Elimination

    network = AnyRegressor.wrap(MLPRegressor(hidden_layer_sizes=(16,), solver="lbfgs", max_iter=20_000))
    x = np.linspace(-1, 1, 16)[:, None]
    bandit = Bandit(x, 3 * np.cos(2 * (x[:, 0] - 0.2)), Gaussian(0.01))
    run = play(Elimination(network, Uniform()), bandit, 160, rng)
    assert bandit.regret(run.arm) < 0.1
