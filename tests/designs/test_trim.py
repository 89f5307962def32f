"""Trimming: d(d + 1)/2 support points at most, V no smaller, nothing else changed."""

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bestarm.designs.ascent import Ascent
from bestarm.designs.trim import Trimmed, trim
from bestarm.linalg import Candidates, leverage, moment


def support(weights):
    return np.count_nonzero(weights > 0, axis=-1)


@settings(deadline=None, max_examples=60)
@given(arms=st.integers(1, 60), columns=st.integers(1, 5), seed=st.integers(0, 10**6))
def test_support_is_small_and_information_no_less(arms, columns, seed):
    rng = np.random.default_rng(seed)
    x = Candidates.of(rng.standard_normal((arms, columns))).coordinates
    weights = rng.dirichlet(np.ones(arms))
    trimmed = trim(x, weights)
    r = min(arms, columns)
    assert support(trimmed) <= r * (r + 1) // 2
    assert trimmed.min() >= 0
    assert trimmed.sum() == pytest.approx(1, abs=1e-12)
    V, fewer = moment(x, weights), moment(x, trimmed)
    scale = np.trace(fewer) / np.trace(V)
    np.testing.assert_allclose(fewer, scale * V, atol=1e-9)  # V is unchanged up to a factor
    assert scale >= 1 - 1e-9  # and the factor is one at least
    assert (leverage(x, np.linalg.inv(fewer)) <= leverage(x, np.linalg.inv(V)) * (1 + 1e-7)).all()


def test_an_optimal_design_stays_optimal(rng):
    sphere = rng.standard_normal((3, 200, 6))
    arms = Candidates.of(sphere / np.linalg.norm(sphere, axis=-1, keepdims=True))
    design = Ascent(tolerance=1e-2)
    before, after = design.weights(arms), Trimmed(design).weights(arms)
    assert support(before).max() > 21  # otherwise this shows nothing
    assert support(after).max() <= 21
    for w in (before, after):
        g = leverage(arms.coordinates, np.linalg.inv(moment(arms.coordinates, w)))
        assert g.max() <= 6 * (1 + 1.001e-2)


def test_a_small_support_is_left_alone(rng):
    x = Candidates.of(rng.standard_normal((8, 3))).coordinates
    weights = np.array([0.5, 0, 0.25, 0, 0, 0.25, 0, 0])
    np.testing.assert_array_equal(trim(x, weights), weights)


@pytest.mark.parametrize(
    "features",
    [np.zeros((5, 2)), np.ones((5, 2)), np.outer(np.arange(1.0, 6), [1, 2]), np.repeat(np.eye(2), 4, axis=0)],
    ids=["all zero", "all equal", "rank one", "duplicates"],
)
def test_degenerate_arms(features):
    arms = Candidates.of(features)
    trimmed = trim(arms.coordinates, np.full(len(features), 1 / len(features)))
    rank = np.linalg.matrix_rank(features)
    assert trimmed.sum() == pytest.approx(1)
    assert rank == 0 or support(trimmed) <= rank * (rank + 1) // 2


def test_each_replication_is_trimmed_as_if_alone(rng):
    arms = Candidates.of(rng.standard_normal((4, 30, 3)))
    weights = rng.dirichlet(np.ones(30), 4)
    together = trim(arms.coordinates, weights)
    for row in range(4):
        np.testing.assert_array_equal(together[row], trim(arms.coordinates[row], weights[row]))
    elsewhere = trim(strict.asarray(arms.coordinates), strict.asarray(weights))
    np.testing.assert_allclose(np.asarray(elsewhere), together, atol=1e-12)
