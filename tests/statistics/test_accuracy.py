"""Accuracies on cells that an independent implementation measured too, within three standard errors of both."""

import math

import pytest

from tests.statistics.cells import CELLS, EXPECTED, GSE, measure

REPLICATIONS = 4000


@pytest.mark.statistics
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("name", GSE)
def test_gse_agrees_with_the_reference(name, cell):
    theirs = EXPECTED[name][list(CELLS).index(cell)]
    ours, spent = measure(GSE[name], cell, REPLICATIONS, seed=11)
    error = math.sqrt(theirs * (1 - theirs) * (1 / 1000 + 1 / REPLICATIONS))
    assert abs(ours - theirs) < 3 * error
    assert spent <= CELLS[cell][1]
