"""Budgets are compared on the same worlds and rewards."""

import csv

import numpy as np
import pytest

from benchmarks import more_budget
from bestarm.bench.runner import world
from bestarm.core import Pulls


@pytest.mark.parametrize("name", list(more_budget.CELLS))
def test_worlds_and_rewards_are_the_same_whatever_the_budget(name):
    group = more_budget.cells("uniform")[name]
    budgets = [cell.budget for cell in group]
    assert budgets == sorted(set(budgets))
    assert len({cell.world_key for cell in group}) == 1
    assert len({cell.key for cell in group}) == len(group)
    (one, first), (two, last) = (world(cell, 5, 1, 3) for cell in (group[0], group[-1]))
    np.testing.assert_array_equal(one.features, two.features)
    np.testing.assert_array_equal(one.means, two.means)
    arms = np.broadcast_to(np.arange(one.means.shape[-1]), one.means.shape)
    pulls, none = Pulls(arms, np.full(arms.shape, 2)), np.zeros(arms.shape, int)
    np.testing.assert_array_equal(first.pull(pulls, none).sums, last.pull(pulls, none).sums)


def test_every_pair_of_budgets_is_compared_and_the_worse_marked():
    groups = {"hill": more_budget.cells("uniform")["hill"]}
    less, middle, more = groups["hill"]
    right = {less.key: np.arange(500) < 250, middle.key: np.arange(500) < 200, more.key: np.arange(500) < 250}
    rows = more_budget.compared(groups, right)
    assert [(row["budget"], row["more"]) for row in rows] == [(100, 200), (100, 400), (200, 400)]
    assert [row["difference"] for row in rows] == pytest.approx([-0.1, 0.0, 0.1])
    assert [row["worse"] for row in rows] == [True, False, False]


def test_the_program_keeps_what_it_measures(tmp_path, capsys):
    words = ["--policy", "uniform", "--world", "hill", "--replications", "20", "--jobs", "1", "-o", str(tmp_path)]
    more_budget.main(words)
    assert "of 3 pairs of budgets are surely worse" in capsys.readouterr().out
    rows = list(csv.DictReader((tmp_path / "more_budget.csv").read_text().splitlines()))
    assert [(row["budget"], row["more"]) for row in rows] == [("100", "200"), ("100", "400"), ("200", "400")]
