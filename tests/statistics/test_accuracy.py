"""Accuracies on cells that an independent implementation measured too, within three of its standard errors."""

import pytest

from tests.statistics.cells import CELLS, EXPECTED, EXPLAINED, GSE, RIVALS, measure

REPLICATIONS = 4000
THEIRS = 0.016  # standard error of 1000 replications


@pytest.mark.statistics
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("name", [*GSE, *RIVALS])
def test_we_agree_with_the_reference(name, cell):
    theirs = EXPECTED[name][list(CELLS).index(cell)]
    ours, spent = measure((GSE | RIVALS)[name], cell, REPLICATIONS, seed=11, block=250)
    print(f"{name:10s} {cell:26s} ours {ours:.3f} theirs {theirs:.3f}")
    assert spent <= CELLS[cell][1]
    if (name, cell) in EXPLAINED:
        assert ours < theirs - 3 * THEIRS, f"no longer true: {EXPLAINED[name, cell]}"
    else:
        assert abs(ours - theirs) < 3 * THEIRS
