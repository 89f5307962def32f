"""Laws of ROUND(n, π): exactly n, on the support, near the design, within the guarantee."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bestarm.designs.ascent import Ascent
from bestarm.designs.rounding import AllenZhu, AutoRound, LargestRemainder, Multinomial, PukelsheimRieder, Randomised
from bestarm.linalg import Candidates, leverage, moment, rank

ROUNDINGS = [AllenZhu(), AllenZhu(head=0.0), AutoRound(), LargestRemainder(), PukelsheimRieder(), Randomised()]


@pytest.mark.parametrize("rounding", ROUNDINGS, ids=repr)
@settings(max_examples=60, deadline=None)
@given(arms=st.integers(1, 12), dimension=st.integers(1, 8), pulls=st.integers(1, 60), seed=st.integers(0, 10**6))
def test_exactly_n_pulls_on_the_support(rounding, arms, dimension, pulls, seed):
    rng = np.random.default_rng(seed)
    x = Candidates.of(rng.standard_normal((3, arms, dimension))).coordinates
    w = rng.dirichlet(np.ones(arms), size=3) * (rng.random((3, arms)) < 0.7)
    w[:, 0] += 1e-3
    w /= w.sum(-1, keepdims=True)
    times = rounding.round(x, w, pulls, rng)
    assert times.dtype == np.int64
    assert (times.sum(-1) == pulls).all()
    assert (times >= 0).all()
    assert (times[w == 0] == 0).all()


@pytest.mark.parametrize("rounding", ROUNDINGS, ids=repr)
@pytest.mark.parametrize("pulls", [3, 6, 20, 61])
def test_equal_weights_on_a_basis_differ_by_one(rounding, pulls, rng):
    times = rounding.round(np.eye(6), np.full(6, 1 / 6), pulls, rng)
    assert times.max() - times.min() <= 1


def spread(x, times):
    """G(c) n / d: 1 for an ideal rounding of an optimal design."""
    V = moment(x, times.astype(float))
    return leverage(x, np.linalg.inv(V)).max(-1) * times.sum(-1) / rank(x)


@pytest.mark.parametrize("rounding", [AllenZhu(), AllenZhu(head=0.0)], ids=repr)
@pytest.mark.parametrize(("dimension", "ratio"), [(4, 3), (4, 10), (8, 5), (8, 20)])
def test_allen_zhu_keeps_its_guarantee(rounding, dimension, ratio, rng):
    arms = Candidates.of(rng.standard_normal((10, 40, dimension)))
    w = Ascent(tolerance=1e-6).weights(arms)
    pulls = dimension * ratio
    times = rounding.round(arms.coordinates, w, pulls, rng)
    bound = 1 / (1 - np.sqrt(2 * dimension / pulls)) ** 2
    assert (spread(arms.coordinates, times) <= bound * (1 + 1e-5)).all()


def test_pukelsheim_rieder_keeps_its_guarantee(rng):
    for _ in range(200):
        q, pulls = int(rng.integers(2, 12)), int(rng.integers(12, 80))
        w = rng.dirichlet(np.ones(q))
        times = PukelsheimRieder().round(np.eye(q), w, pulls, rng)
        assert (times >= (1 - q / pulls) * pulls * w - 1e-9).all()


def literal_pukelsheim_rieder(w, pulls):
    c = np.maximum(np.ceil((pulls - len(w) / 2) * w), 0)
    while c.sum() < pulls:
        c[np.argmin(c / w)] += 1
    while c.sum() > pulls:
        c[np.argmax((c - 1) / w)] -= 1
    return c


def test_pukelsheim_rieder_equals_its_procedure(rng):
    for _ in range(200):
        q, pulls = int(rng.integers(2, 12)), int(rng.integers(12, 80))
        w = rng.dirichlet(np.ones(q))
        np.testing.assert_array_equal(
            PukelsheimRieder().round(np.eye(q), w, pulls, rng), literal_pukelsheim_rieder(w, pulls)
        )


def test_randomised_rounding_is_unbiased(rng):
    w = np.array([0.5, 0.26, 0.14, 0.1])
    many = Randomised().round(np.broadcast_to(np.eye(4), (20_000, 4, 4)), np.broadcast_to(w, (20_000, 4)), 7, rng)
    assert np.abs(many.mean(0) - 7 * w).max() < 5 * 0.5 / np.sqrt(20_000)


def test_fewer_pulls_than_dimensions_still_pick_independent_arms(rng):
    arms = Candidates.of(rng.standard_normal((20, 10)))
    times = AllenZhu().round(arms.coordinates, Ascent().weights(arms), 6, rng)
    assert np.linalg.matrix_rank(arms.features[times > 0]) == 6


def test_what_the_floors_leave_is_placed_as_well_as_the_whole(rng):
    """head = 1 runs one eigen-decomposition per leftover pull instead of one per pull, and is not worse."""
    arms = Candidates.of(rng.standard_normal((30, 40, 6)))
    w = Ascent().weights(arms)
    for pulls in (18, 60, 120):
        quick, whole = (
            np.median(spread(arms.coordinates, AllenZhu(h).round(arms.coordinates, w, pulls, rng))) for h in (1.0, 0.0)
        )
        assert quick <= 1.02 * whole


def test_draws_sum_to_the_pulls_and_follow_the_design(rng):
    weights = np.tile([0.5, 0.3, 0.2, 0.0], (400, 1))
    times = Multinomial().round(np.zeros((400, 4, 2)), weights, 50, rng)
    assert (times.sum(-1) == 50).all()
    assert (times[:, 3] == 0).all()
    assert np.allclose(times.mean(0), 50 * weights[0], atol=0.7)
    assert np.allclose(times.var(0), 50 * weights[0] * (1 - weights[0]), atol=2.5)
    assert Multinomial().round(np.zeros((3, 1)), np.array([0.2, 0.5, 0.3]), 7, rng).sum() == 7
