"""Two folders of results are compared cell by cell, paired, and only read."""

import csv
import json

import numpy as np
import pytest

from benchmarks import before_after
from bestarm import bench
from bestarm.bench import suite
from bestarm.bench.store import Store
from bestarm.errors import InputError
from bestarm.simulate.chunks import Chunk
from bestarm.simulate.policies import PolicyRef

UNIFORM = PolicyRef("uniform")


def kept(folder, right, seed=3):
    """Write who was right, by cell and chunk."""
    store = Store.open(folder, seed)
    for cell, chunks in right.items():
        for number, correct in chunks.items():
            store.add(Chunk(cell, number, correct, np.zeros(len(correct)), np.ones(len(correct)), 0.0))
    return before_after.Kept.read(folder, "toy")


def contest(K):
    return suite.Contest("a", "s", bench.instance("static", K=K), 60)


def test_cells_are_paired_in_the_chunks_that_both_have(tmp_path, rng):
    keys = [contest(K).cell(UNIFORM).key for K in (4, 5)]
    old = {number: rng.random(250) < 0.7 for number in range(3)}
    new = {0: old[0], 2: old[2] & (np.arange(250) >= 100), 3: old[1]}
    before, after = kept(tmp_path / "old", {keys[0]: old}), kept(tmp_path / "new", {keys[0]: new, keys[1]: new})
    (row,) = before_after.compared(before, after, [contest(4), contest(5)], UNIFORM)
    assert row["replications"] == 500
    lost = np.concatenate([np.zeros(250), old[2] & (np.arange(250) < 100)])
    assert row["difference"] == pytest.approx(-lost.mean())
    assert row["high"] - row["difference"] == pytest.approx(1.959964 * lost.std(ddof=1) / 500**0.5)
    assert row["fails"] == (row["high"] < -0.02)


def test_a_suite_is_pooled_with_its_cells_as_units():
    rows = [{"difference": d, "fails": d < -0.05} for d in (-0.1, 0.0, 0.01, 0.05)]
    every = before_after.pooled(rows)
    assert every["difference"] == pytest.approx(-0.01)
    half = 3.182446 * np.std([-0.1, 0.0, 0.01, 0.05], ddof=1) / 2  # Student's t with 3 degrees of freedom
    assert (every["low"], every["high"]) == pytest.approx((-0.01 - half, -0.01 + half))
    assert (every["failing"], every["failing_by_chance"], every["worst"]) == (1, 0.1, -0.1)
    assert before_after.pooled(rows[:1])["high"] == float("inf")


def test_a_file_that_is_being_written_is_read_and_left_alone(tmp_path):
    key = contest(4).cell(UNIFORM).key
    kept(tmp_path / "toy", {key: {0: np.ones(10, bool)}})
    path = tmp_path / "toy" / "blocks.jsonl"
    with path.open("a") as file:
        file.write('{"cell": "half a li')
    size = path.stat().st_size
    again = before_after.Kept.read(tmp_path, "toy")  # in the folder of the suite's name
    assert set(again.right) == {key}
    assert path.stat().st_size == size


def test_other_seeds_and_empty_folders_are_refused(tmp_path):
    one, two = kept(tmp_path / "one", {}, 3), kept(tmp_path / "two", {}, 4)
    with pytest.raises(InputError, match="seeds 3 and 4"):
        before_after.compared(one, two, [contest(4)], UNIFORM)
    with pytest.raises(InputError, match="no results in"):
        before_after.Kept.read(tmp_path, "toy")


def test_the_program_compares_what_runs_have_kept(tmp_path, capsys):
    cells = [{"group": "a", "family": "s", "instance": "static", "params": {"K": k}, "budget": 20} for k in (4, 5)]
    (tmp_path / "toy.json").write_text(json.dumps({"name": "toy", "about": "", "seed": 3, "cells": cells}))
    toy = suite.load(tmp_path / "toy.json")
    for folder in ("before", "after"):
        bench.run([c.cell(UNIFORM) for c in toy.contests], 50, toy.seed, 1, tmp_path / folder)
    words = [str(tmp_path / "before"), str(tmp_path / "after"), "--suite", str(tmp_path / "toy.json")]
    before_after.main([*words, "--policy", "uniform", "-o", str(tmp_path / "rows.csv")])
    assert "toy: 2 cells, 0 not in both; mean   +0.0 [+0.0, +0.0]" in capsys.readouterr().out
    rows = list(csv.DictReader((tmp_path / "rows.csv").read_text().splitlines()))
    assert [(row["suite"], float(row["difference"])) for row in rows] == [("toy", 0.0)] * 2
    with pytest.raises(SystemExit):
        before_after.main([*words, "--policy", "gse-lin"])
    assert "no cell of toy with gse-lin is in both folders" in capsys.readouterr().err
