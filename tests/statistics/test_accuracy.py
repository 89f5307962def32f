"""Accuracies on cells that an independent implementation measured too, within three standard errors of both."""

import math

import pytest

from tests.statistics.cells import CELLS, EXPECTED, EXPLAINED, GSE, RIVALS, measure

REPLICATIONS = 4000


@pytest.mark.statistics
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("name", [*GSE, *RIVALS])
def test_we_agree_with_the_reference(name, cell):
    theirs = EXPECTED[name][list(CELLS).index(cell)]
    ours, spent = measure((GSE | RIVALS)[name], cell, REPLICATIONS, seed=11, block=250)
    error = math.sqrt(theirs * (1 - theirs) * (1 / 1000 + 1 / REPLICATIONS))
    print(f"{name:10s} {cell:26s} ours {ours:.3f} theirs {theirs:.3f} ({(ours - theirs) / error:+.1f} s.e.)")
    assert spent <= CELLS[cell][1]
    if (name, cell) in EXPLAINED:
        assert ours < theirs - 3 * error, f"no longer true: {EXPLAINED[name, cell]}"
    else:
        assert abs(ours - theirs) < 3 * error
