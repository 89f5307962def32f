"""Laws of the small parts that everything else is made of."""

import array_api_strict
import numpy as np
import pytest

from bestarm.linalg import entries, top


@pytest.mark.parametrize(("count", "keep"), [(64, 1), (999, 3), (1000, 15), (5000, 64), (5000, 5000), (10, 3)])
@pytest.mark.parametrize("scores", ["normal", "few levels", "all equal", "mostly zero"])
def test_the_best_of_many_scores_are_those_of_a_full_sort(count, keep, scores, rng):
    made = {
        "normal": rng.standard_normal(count),
        "few levels": rng.integers(0, 5, count).astype(float),
        "all equal": np.ones(count),
        "mostly zero": np.where(rng.random(count) < 0.01, 3.0, 0.0),
    }[scores]
    expected = np.argsort(-made, kind="stable")[:keep]
    np.testing.assert_array_equal(top(made, keep), expected)
    np.testing.assert_array_equal(top(made[None], keep), expected[None])
    np.testing.assert_array_equal(top(np.stack([made, made]), keep), [expected, expected])


@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
def test_entries_are_taken_along_the_last_axis(batch, rng):
    values, index = rng.standard_normal((*batch, 7)), rng.integers(7, size=(*batch, 4))
    np.testing.assert_array_equal(entries(values, index), np.take_along_axis(values, index, axis=-1))
    other = entries(array_api_strict.asarray(values), array_api_strict.asarray(index))
    np.testing.assert_array_equal(np.asarray(other), entries(values, index))
