"""The paper by one command: figures are data, verdicts follow from outcomes, the report is whole."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from bestarm import bench
from bestarm.bench import claims
from bestarm.bench.paper import FIGURES
from bestarm.bench.reproduce import reproduce
from bestarm.bench.runner import Results
from bestarm.bench.table import read_csv
from bestarm.cli import main
from bestarm.errors import UnknownNameError
from bestarm.simulate.chunks import Chunk


def test_every_figure_names_policies_and_worlds_that_exist():
    for figure in FIGURES.values():
        if figure.world == "motor":
            continue
        for cell in figure.cells():
            cell.policy.build()
            assert cell.budget > 0
        assert len(figure.cells()) == len({cell.key for cell in figure.cells()})


def test_every_claim_is_about_policies_its_figure_runs():
    results = {name: fake(name, lambda policy, value: 0.5) for name in FIGURES}
    for claim in claims.judge_all(results):
        assert claim.verdict != claims.NOT_RUN, claim.sentence


def fake(name, chance, replications=400):
    """Results as if each policy were right with a given chance, a fixed share of replications."""
    figure = FIGURES[name]
    chunks = {}
    for panel in figure.panels:
        for policy in figure.policies:
            for value in figure.shown(policy):
                right = np.arange(replications) < chance(policy, value) * replications
                cell = figure.cell(panel, value, policy)
                chunks[cell.key] = (Chunk(cell.key, 0, right, 1.0 - right, np.full(replications, cell.budget), 1.0),)
    return Results(tuple(figure.cells()), 1, replications, chunks, {})


@pytest.mark.parametrize(
    ("chance", "verdict"), [((0.9, 0.5), claims.HOLDS), ((0.5, 0.9), claims.FAILS), ((0.7, 0.7), claims.NOISE)]
)
def test_verdicts_follow_from_the_outcomes(chance, verdict):
    good, bad = chance
    results = {"corner": fake("corner", lambda policy, value: good if policy == "od-linbai" else bad)}
    told = {c.sentence: c for c in claims.judge_all(results)}["OD-LinBAI outperforms GSE in the corner case"]
    assert told.verdict == verdict
    assert "od-linbai less gse-lin-fwg" in told.evidence


def test_claims_about_what_was_not_run_say_so():
    assert {c.verdict for c in claims.judge_all({})} == {claims.NOT_RUN}


def test_a_figure_is_reproduced_with_its_report(tmp_path, monkeypatch):
    monkeypatch.delenv("BESTARM_DATA", raising=False)
    done = reproduce(("corner", "motor"), 40, True, 3, 1, None, None, tmp_path)
    text, page = done.text.read_text(), done.page.read_text()
    assert "Not run: motor" in text
    assert "seed 3" in text
    assert "replications 40" in text
    assert page.count("data:image/png;base64,") == 1
    assert "<script" not in page
    assert (tmp_path / "corner" / "corner.png").stat().st_size > 10_000
    points = read_csv(tmp_path / "corner" / "points.csv")
    assert {"panel", "policy", "x", "accuracy", "low", "high"} == set(points[0])
    assert all(point["low"] <= point["accuracy"] <= point["high"] for point in points)
    with pytest.raises(UnknownNameError, match="adaptive"):
        reproduce(("adaptiv",), 10, True, 3, 1, None, None, tmp_path)


def test_the_bench_command(tmp_path):
    words = "bench adaptive --set K=8,16 --budget-per-arm 5 --policy gse-lin-fwg --policy uniform --replications 30"
    done = CliRunner().invoke(main, [*words.split(), "--jobs", "1", "-f", "json", "-o", str(tmp_path), "--seed", "9"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert len(rows) == 4
    wanted = "instance params policy budget replications accuracy low high regret pulls_mean pulls_max cpu_seconds"
    assert set(wanted.split()) <= set(rows[0])
    assert rows[0]["params"] == {"K": 8}
    assert (tmp_path / "table.parquet").exists()
    table = CliRunner().invoke(main, [*words.split(), "--jobs", "1", "--against", "uniform"])
    assert "difference_low" in table.stdout
    comma = CliRunner().invoke(main, [*words.split(), "--jobs", "1", "-f", "csv"])
    assert comma.stdout.splitlines()[0].startswith("instance,K,policy,budget")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("bench adaptive --policy uniform", 2, "either --budget or --budget-per-arm"),
        ("bench adaptve --budget 9 --policy uniform", 1, "nearest are adaptive"),
        ("bench adaptive --set K --budget 9 --policy uniform", 1, "KEY=VALUE"),
        ("bench adaptive --set K=x --budget 9 --policy uniform", 1, "whole number"),
        ("bench adaptive --budget 2 --policy gse-lin --jobs 1 --replications 5", 1, "1 of 1 cells failed"),
        (
            "bench adaptive --budget 9 --policy uniform --against gse-lin --jobs 1 --replications 5",
            1,
            "among those run",
        ),
        ("reproduce --figure nothing", 1, "unknown figure"),
    ],
)
def test_bad_calls_are_refused_in_one_line(words, code, says):
    done = CliRunner().invoke(main, words.split())
    assert done.exit_code == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_instances_are_listed():
    assert [
        row["instance"] for row in json.loads(CliRunner().invoke(main, ["instances", "-f", "json"]).stdout)
    ] == list(bench.WORLDS)
