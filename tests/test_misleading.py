"""Worlds that mislead: their means are what they say, in whatever order the arms come."""

import numpy as np
import pytest
from scipy import stats

from bestarm import misleading
from bestarm.bandits import Bernoulli, Gaussian
from bestarm.errors import InputError

WORLDS = [misleading.needle, misleading.hill, misleading.parabola, misleading.useless, misleading.clicks,
          misleading.families]  # fmt: skip


def rest_of_a_line(x, y):
    """Return what the best line in `x` `(..., K, d)` leaves of `y`."""
    design = np.concatenate([np.ones_like(x[..., :1]), x], axis=-1)
    return y - (design @ np.linalg.pinv(design) @ y[..., None])[..., 0]


@pytest.mark.parametrize("make", WORLDS, ids=lambda make: make.__name__)
def test_none_is_one_world_and_a_number_a_stack(make):
    one, some = make(12, rng=1), make(12, replications=5, rng=1)
    assert one.means.shape == (12,)
    assert some.means.shape == (5, 12)
    assert some.features.shape == (5, *one.features.shape)
    np.testing.assert_array_equal(make(12, rng=1).means, one.means)
    assert len(np.unique(some.means.max(-1))) > 1 or make is misleading.hill


@pytest.mark.parametrize("make", WORLDS, ids=lambda make: make.__name__)
def test_the_best_arm_is_anywhere(make):
    best = np.argmax(make(8, replications=4000, rng=1).means, axis=-1)
    assert stats.chisquare(np.bincount(best, minlength=8)).pvalue > 1e-6


def test_a_needle_is_above_a_line_and_a_second_one_if_asked_for():
    for second in (0.0, 2.5):
        world = misleading.needle(20, 3, 4.0, second, 0.5, replications=300, rng=2)
        above = np.sort(world.means - 0.5 * world.features[..., 0] - 0.3 * world.features[..., 1], axis=-1)
        np.testing.assert_allclose(above[:, -2:], np.tile([second, 4.0], (300, 1)), atol=1e-12)
        np.testing.assert_allclose(above[:, :-2], 0.0, atol=1e-12)
        assert world.noise == Gaussian(0.5)
    assert stats.kstest(world.features[..., 2].ravel(), "norm").pvalue > 1e-6


def test_a_hill_falls_as_it_says_from_a_place_in_the_cube():
    world = misleading.hill(30, 3, 2.0, 0.5, 0.3, replications=40, rng=2)
    x = world.features
    off = -0.5 * np.log(world.means / 2.0)  # |x − c|² = |x|² − 2 c'x + |c|²
    np.testing.assert_allclose(rest_of_a_line(x, off - np.vecdot(x, x)), 0.0, atol=1e-9)
    centred = x - x.mean(-2, keepdims=True)
    top = -0.5 * (np.linalg.pinv(centred) @ (off - np.vecdot(x, x))[..., None])[..., 0]
    assert ((top > 0) & (top < 1)).all()
    assert ((x >= 0) & (x <= 1)).all()
    assert world.noise == Gaussian(0.3)


def test_a_parabola_falls_by_four_from_a_place_between_the_ends():
    world = misleading.parabola(15, 0.1, replications=40, rng=2)
    x = world.features[..., 0]
    rest = world.means + 4 * x**2  # 8 c x − 4 c²
    np.testing.assert_allclose(rest_of_a_line(world.features, rest), 0.0, atol=1e-12)
    top = (rest[:, 1] - rest[:, 0]) / (x[:, 1] - x[:, 0]) / 8
    assert ((top > 0) & (top < 1)).all()
    assert world.noise == Gaussian(0.1)


def test_useless_features_say_nothing():
    world = misleading.useless(50, 3, 2.0, 4.0, replications=400, rng=2)
    assert stats.kstest(world.means.ravel() / 2.0, "norm").pvalue > 1e-6
    for feature in range(3):
        assert stats.pearsonr(world.features[..., feature].ravel(), world.means.ravel()).pvalue > 1e-6


def test_clicks_have_the_rates_they_say_and_features_that_say_nothing():
    world = misleading.clicks(50, 2, 4.0, 60.0, replications=400, rng=2)
    assert isinstance(world.noise, Bernoulli)
    assert stats.kstest(world.means.ravel(), stats.beta(4.0, 60.0).cdf).pvalue > 1e-6
    assert stats.spearmanr(world.features[..., 1].ravel(), world.means.ravel()).pvalue > 1e-6


def test_one_small_member_of_a_family_surprises():
    world = misleading.families(13, 1, slope=0.7, own=0.0, base=0.2, replications=200, rng=2)
    size = world.features[..., -1]
    odds = np.log(world.means / (1 - world.means)) - 0.2 - 0.7 * size
    odds = odds - np.median(odds, axis=-1, keepdims=True)  # less what the family has
    assert (np.isclose(odds, 1.5).sum(-1) == 1).all()
    assert (np.isclose(odds, 0.0).sum(-1) == 12).all()
    surprise = np.argmax(odds, axis=-1)
    assert (np.take_along_axis(size, surprise[:, None], -1) <= np.median(size, axis=-1, keepdims=True)).all()


def test_families_have_a_column_each_and_something_of_their_own():
    world = misleading.families(14, 4, slope=0.0, own=0.0, replications=300, rng=2)
    names = world.features[..., :-1]
    np.testing.assert_array_equal(names.sum(-1), 1.0)
    assert set(names.sum(-2).ravel()) == {3.0, 4.0}
    odds = np.log(world.means / (1 - world.means))
    for family in range(4):
        mine = np.sort(odds[:, family::4], axis=-1)
        np.testing.assert_allclose(mine[:, :-1], mine[:, :1] + np.zeros_like(mine[:, :-1]), atol=1e-12)
    assert np.std(odds[:, :4].min(-1)) > 0.1


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: misleading.needle(1), "a needle needs 2 arms and 2 features"),
        (lambda: misleading.needle(8, 1), "a needle needs 2 arms and 2 features"),
        (lambda: misleading.hill(width=0.0), "width must be above 0"),
        (lambda: misleading.clicks(wins=0.0), "wins and losses must be above 0"),
        (lambda: misleading.clicks(losses=float("nan")), "wins and losses must be above 0"),
        (lambda: misleading.families(5, 6), "count must be from 1 to 5"),
        (lambda: misleading.families(5, 0), "count must be from 1 to 5"),
    ],
)
def test_what_makes_no_world_is_refused(make, says):
    with pytest.raises(InputError, match=says):
        make()
