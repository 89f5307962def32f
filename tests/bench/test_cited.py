"""The second panel of the figures: every system named plays, on few arms, where it can."""

from bestarm import bench, catalog
from bestarm.bench.cited import CITED, LEFT_OUT, MOST_ARMS, cited_figures
from bestarm.bench.paper import BEST, FIGURES


def test_every_cited_system_plays_on_some_figure():
    page = "docs/algorithms/cited.md"
    known = {name for name, entry in catalog.ENTRIES.items() if entry.page == page}
    played = {policy.partition(":")[0] for policies in CITED.values() for policy in policies}
    assert known - played == {"ugapeb-paper"}  # ugapeb with the printed recommendation, worse where a is small


def test_nobody_meets_more_than_a_few_arms():
    for name, figure in cited_figures().items():
        assert figure.hero in FIGURES[name].players[BEST]
        for cell in figure.cells():
            assert dict(cell.instance.params).get("K", 16) <= MOST_ARMS
        texts = figure.players[BEST].values()
        binary = [text for text in texts if catalog.ENTRIES[text.partition(":")[0]].binary]
        assert not binary or name == "glm"


def test_three_values_of_delta_are_tried():
    assert sum(policy.startswith("xy-adaptive") for policy in CITED["adaptive"]) == 3


def test_a_cell_of_each_runs():
    figure = cited_figures()["static"]
    cells = [figure.cell(BEST, figure.panels[0], figure.values[-1], label) for label in figure.players[BEST]]
    table = bench.run(cells, replications=4, rng=1, n_jobs=1).table()
    assert len(table) == len(figure.players[BEST])


def test_those_left_out_have_a_reason():
    assert len(LEFT_OUT) == 3
    assert all(LEFT_OUT.values())
