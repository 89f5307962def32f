"""A decision is one page; what was tried behind it is a table, whose rows a program makes."""

import csv
from argparse import Namespace

from benchmarks import ablation

DECISIONS = ablation.TRIED.parent
FOUND = {"difference": 0.01, "low": 0.0, "high": 0.02, "worst": 0.0, "worst_cell": "corner", "best": 0.02}


def test_a_decision_is_one_page():
    for page in DECISIONS.glob("*.md"):
        assert len(page.read_text(encoding="utf-8").splitlines()) < 100, page.name


def test_what_was_tried_is_what_the_program_writes(tmp_path):
    rows = list(csv.DictReader(ablation.TRIED.read_text(encoding="utf-8").splitlines()))
    given = Namespace(variation="auto:hedge=0", cells=[], suite="default", round=7, outcome="dropped", against="auto")
    row = ablation.tried(given, FOUND, 3, 250)
    assert list(row) == list(rows[0])
    assert (row["difference"], row["half"]) == (1.0, 1.0)
    for _ in range(2):
        ablation.append(tmp_path / "tried.csv", row)
    assert len((tmp_path / "tried.csv").read_text().splitlines()) == 3
    for one in rows:
        assert one["tried"]
        assert one["commit"]
        assert one["outcome"] in ("kept", "dropped")
        assert float(one["difference"]) == float(one["difference"])
        assert one["made"] in ("carried over", "benchmarks/ablation.py")
