"""Intervals hold what they should as often as they say."""

import numpy as np
import pytest

from bestarm.simulate.intervals import paired, wilson


def test_wilson_covers(rng):
    right = rng.binomial(50, 0.1, size=2000)
    inside = np.mean([low <= 0.1 <= high for low, high in (wilson(int(r), 50) for r in right)])
    assert inside > 0.93


def test_a_paired_difference_turns_round_with_its_order(rng):
    one, two = rng.random((2, 50))
    middle, low, high = paired(one, two)
    assert low < middle < high
    np.testing.assert_allclose(paired(two, one), (-middle, -high, -low))
    assert paired(one[:1], two[:1])[1:] == pytest.approx((-np.inf, np.inf))
