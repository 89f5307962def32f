"""The planner's worlds: on the span of the features, at the gap asked for, around the base."""

import numpy as np
import pytest

from bestarm.errors import InputError
from bestarm.models.glm import GLM
from bestarm.models.law import Logistic, Poisson
from bestarm.models.linear import Linear
from bestarm.models.means import Means
from bestarm.noise import Counts
from bestarm.noise import Poisson as PoissonNoise
from bestarm.planning import Worlds


def table(arms=12, dimension=3, intercept=False, seed=5):
    features = np.random.default_rng(seed).standard_normal((arms, dimension))
    return np.hstack([np.ones((arms, 1)), features]) if intercept else features


MODELS = {
    "linear": (Linear(), 0.25, 1.0, None),
    "means": (Means(), 0.25, 1.0, None),
    "logistic": (GLM(Logistic()), 0.05, None, 0.1),
    "poisson": (GLM(Poisson()), 0.4, None, 3.0),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_world_has_exactly_the_gap(name, rng):
    model, gap, noise_variance, base = MODELS[name]
    worlds = Worlds(table(intercept=True), model, gap, noise_variance, None, base).draw(300, rng)
    ranked = np.sort(worlds.means, axis=-1)
    np.testing.assert_allclose(ranked[:, -1] - ranked[:, -2], gap, rtol=1e-9)
    assert len(np.unique(worlds.means.argmax(axis=-1))) > 3
    predictor = {"logistic": lambda m: np.log(m / (1 - m)), "poisson": np.log}.get(name, lambda m: m)(worlds.means)
    if name != "means":
        inside = worlds.features @ (np.linalg.pinv(worlds.features) @ predictor[..., None])
        np.testing.assert_allclose(inside[..., 0], predictor, atol=1e-7)
    centre = {"logistic": np.log(0.1 / 0.9), "poisson": np.log(3.0)}.get(name, 0.0)
    np.testing.assert_allclose(predictor.mean(axis=-1), centre, atol=1e-7)


def test_equal_arms_are_equally_good(rng):
    features = np.repeat(table(4, 3), 3, axis=0)
    worlds = Worlds(features, Linear(), 0.5, 1.0).draw(50, rng)
    ranked = np.sort(worlds.means, axis=-1)
    np.testing.assert_allclose(ranked[:, -1], ranked[:, -3], rtol=1e-9)
    np.testing.assert_allclose(ranked[:, -3] - ranked[:, -4], 0.5, rtol=1e-9)


def test_a_prior_is_a_variance_or_a_function(rng):
    worlds = Worlds(table(), Linear(), None, 1.0, 4.0)
    theta = np.linalg.lstsq(worlds.kinds[0], worlds.predictors(4000, rng).T, rcond=None)[0]
    assert 3.6 < theta.var() < 4.4
    fixed = Worlds(table(), Linear(), None, 1.0, lambda size, rng: np.tile([1.0, 2.0, 3.0], (size, 1))).draw(5, rng)
    np.testing.assert_allclose(fixed.means, fixed.features @ [1.0, 2.0, 3.0])
    wrong = Worlds(table(), Linear(), None, 1.0, lambda size, rng: np.zeros(3))
    with pytest.raises(InputError, match="shape"):
        wrong.draw(5, rng)


def test_totals_of_counts_have_the_moments_of_single_ones(rng):
    means, times = np.full(20_000, 1.7), np.full(20_000, 9)
    quick, slow = (noise.totals(means, times, rng) for noise in (Counts(), PoissonNoise()))
    for one, two in zip(quick, slow, strict=True):
        assert abs(one.mean() - two.mean()) < 4 * np.sqrt(2 * two.var() / 20_000)
        assert 0.9 < one.var() / two.var() < 1.1
    single = Counts().totals(means, np.ones(20_000, dtype=int), rng)
    np.testing.assert_array_equal(single[0] ** 2, single[1])
