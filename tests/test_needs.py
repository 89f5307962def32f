"""What policies need: parts say it, the catalog asks."""

import pytest

from bestarm.needs import Least, Need, smallest, wanted_by


@pytest.mark.parametrize(
    ("least", "arms", "dimension", "pulls"),
    [
        (Least.TWO, 1, 1, 1),
        (Least.TWO, 9, 3, 2),
        (Least.DIMENSIONS, 9, 3, 3),
        (Least.DIMENSIONS, 4, 0, 1),
        (Least.ARMS, 9, 3, 9),
        (Least.STAGES, 8, 3, 24),
        (Least.STAGES, 9, 3, 36),
        (Least.STAGES, 1, 3, 1),
    ],
)
def test_each_need_in_pulls(least, arms, dimension, pulls):
    assert least.need(arms, dimension) == Need(pulls, least.value)


def test_a_part_that_says_nothing_wants_two_rewards():
    assert wanted_by(object()) is Least.TWO


@pytest.mark.parametrize("least", [1, 2, 7, 8, 9, 1000])
@pytest.mark.parametrize("start", [1, 2, 7])
def test_the_smallest_number_is_found(least, start):
    assert smallest(lambda n: n >= least, start) == max(least, start)
