"""A step uphill is halved until it does not fall, each replication by itself."""

import numpy as np

from bestarm.iterate import uphill


def test_a_step_is_halved_until_the_objective_does_not_fall():
    def objective(x):
        return -np.sum(x * x, axis=-1)

    start = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    step = np.array([[-16.0, 0.0], [-1.0, 0.0], [-16.0, 0.0]])
    going = np.array([True, True, False])
    at, value = uphill(objective, start, objective(start), step, np.ones(3), going)
    np.testing.assert_array_equal(at[:, 0], [-1.0, 0.0, -15.0])  # an eighth, the whole, and left alone
    np.testing.assert_array_equal(value, objective(at))
    for r in range(2):
        alone, _ = uphill(objective, start[r : r + 1], objective(start[r : r + 1]), step[r : r + 1], np.ones(1))
        np.testing.assert_array_equal(alone[0], at[r])
