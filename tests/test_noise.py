"""Rewards a share of which are slips: their law in closed form, whoever asks for them."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from bestarm.bandits import Bandit, Stream
from bestarm.core import Pulls
from bestarm.errors import InputError
from bestarm.noise import Gaussian, Outliers

MANY, MEAN = 40_000, 0.7
SLIPS = [Outliers(4.0, 0.1, 20.0), Outliers(4.0, 0.1, 20.0, either=True)]


def chance(noise):
    """Return the distribution function of one reward of mean MEAN."""
    spread = noise.variance**0.5

    def below(y):
        slip = ndtr((y / noise.times - MEAN) / spread)
        if noise.either:
            slip = (slip + 1 - ndtr((-y / noise.times - MEAN) / spread)) / 2
        return (1 - noise.share) * ndtr((y - MEAN) / spread) + noise.share * slip

    return below


def drawn(noise, how, rng):
    """Return rewards of one arm, by one of three ways."""
    if how == "rewards":
        return noise.rewards(np.array([MEAN]), MANY, rng)[0]
    bandit = Bandit(np.ones((MANY, 1, 1)), np.full((MANY, 1), MEAN), noise)
    once, none = Pulls(np.zeros((MANY, 1), dtype=int), np.ones((MANY, 1), dtype=int)), np.zeros((MANY, 1), dtype=int)
    return (bandit if how == "totals" else Stream(bandit, 3)).pull(once, none, rng).sums[:, 0]


@pytest.mark.parametrize("how", ["totals", "stream", "rewards"])
@pytest.mark.parametrize("noise", SLIPS, ids=["one sign", "either sign"])
def test_slips_have_the_law_they_say(noise, how, rng):
    assert stats.kstest(drawn(noise, how, rng), chance(noise)).pvalue > 1e-6


@pytest.mark.parametrize("noise", SLIPS, ids=["one sign", "either sign"])
def test_totals_of_slips_add_up(noise, rng):
    times = rng.integers(0, 5, (MANY, 1))
    sums, squares = noise.totals(np.full((MANY, 1), MEAN), times, rng)
    assert (sums[times == 0] == 0).all()
    assert (squares[times == 0] == 0).all()
    assert (squares * np.maximum(times, 1) >= sums**2 * (1 - 1e-12)).all()  # Cauchy-Schwarz
    single = noise.rewards(np.array([MEAN]), 4 * MANY, rng)[0].reshape(MANY, 4)
    single = np.where(np.arange(4) < times, single, 0.0)
    assert stats.ks_2samp(sums[:, 0], single.sum(-1)).pvalue > 1e-6
    assert stats.ks_2samp(squares[:, 0], (single**2).sum(-1)).pvalue > 1e-6


def test_no_slips_are_normal_noise():
    uniform = (np.arange(999) + 1) / 1000
    for either in (False, True):
        noise = Outliers(2.0, 0.0, either=either)
        np.testing.assert_array_equal(noise.at(uniform, 1.0), Gaussian(2.0).at(uniform, 1.0))


def test_what_is_told_is_the_variance_of_the_others():
    assert Outliers(2.0, 0.5).variance == 2.0


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_a_share_is_below_1(share):
    with pytest.raises(InputError, match="share must be from 0 to below 1"):
        Outliers(1.0, share)


def test_slips_are_finite():
    with pytest.raises(InputError, match="times must be a finite number"):
        Outliers(times=float("inf"))
