"""The benchmark engine: pure chunks, pairing, resuming, refusals; the numbers never depend on who computes them."""

import csv
import errno
import io
import json
import threading

import numpy as np
import psutil
import pytest

from bestarm import bench
from bestarm.bench import runner as engine
from bestarm.bench import store as stores
from bestarm.bench import table as tables
from bestarm.errors import InputError, UnknownNameError
from bestarm.simulate import chunks


def small(policies=("gse-lin-fwg", "gse-lin"), budget=64):
    return bench.grid([bench.instance("adaptive", K=8), bench.instance("static", Delta=1.0, K=8)], policies, budget)


def numbers(results):
    return [(row["accuracy"], row["regret"], row["pulls_mean"], row["pulls_max"]) for row in results.table()]


def test_a_chunk_is_a_pure_function():
    cell = small()[0]
    one, two = (engine.run_chunk(cell, 3, 1, 50) for _ in range(2))
    np.testing.assert_array_equal(one.correct, two.correct)
    np.testing.assert_array_equal(one.regret, two.regret)
    assert not np.array_equal(one.regret, engine.run_chunk(cell, 3, 2, 50).regret)
    again = stores.from_json(json.loads(stores.to_json(one)))
    np.testing.assert_array_equal(again.correct, one.correct)
    np.testing.assert_allclose(again.regret, one.regret, rtol=1e-6)


def test_policies_and_budgets_meet_the_same_worlds_and_rewards():
    first, second = bench.grid([bench.instance("randomized", K=8)], ["uniform", "gse-means"], budget=80)
    assert first.world_key == second.world_key
    seen = []

    class Spy:
        def __init__(self, bandit, seed):
            seen.append((bandit.means.copy(), seed))
            raise InputError("seen enough")

    original, chunks.Stream = chunks.Stream, Spy
    try:
        for cell in (first, second):
            engine.run_chunk(cell, 5, 0, 20)
    finally:
        chunks.Stream = original
    np.testing.assert_array_equal(seen[0][0], seen[1][0])
    assert seen[0][1] == seen[1][1]


def test_one_worker_two_workers_and_resuming_give_the_same_numbers(tmp_path):
    whole = bench.run(small(), replications=600, rng=4, n_jobs=1)
    assert numbers(bench.run(small(), replications=600, rng=4, n_jobs=2)) == numbers(whole)
    bench.run(small(), replications=600, rng=4, n_jobs=1, cache=tmp_path)
    file = tmp_path / "blocks.jsonl"
    lines = file.read_text().splitlines()
    assert len(lines) == 1 + 4 * 3
    file.write_text("\n".join(lines[:6]) + "\n" + lines[6][:40])  # killed in mid-line
    resumed = bench.run(small(), replications=600, rng=4, n_jobs=1, cache=tmp_path)
    assert [row[0] for row in numbers(resumed)] == [row[0] for row in numbers(whole)]
    assert len(file.read_text().splitlines()) == 1 + 4 * 3


def test_nothing_is_computed_twice(tmp_path, monkeypatch):
    bench.run(small(), replications=300, rng=4, n_jobs=1, cache=tmp_path)
    monkeypatch.setattr(engine, "run_chunk", None)
    assert len(bench.run(small(), replications=300, rng=4, n_jobs=1, cache=tmp_path).table()) == 4


def test_a_failed_cell_is_named_and_the_rest_goes_on():
    results = bench.run(small(["gse-lin", "gse-lin:eta=1.5"], budget=4), replications=20, rng=1, n_jobs=1)
    assert len(results.failures) == 2
    assert all("at least" in why for why in results.failures.values())
    table = results.table(against="gse-lin")
    assert len(table) == 4
    assert {row["failed"] for row in table} == {None, *results.failures.values()}
    assert all((row["accuracy"] is None) == (row["failed"] is not None) == (row["replications"] == 0) for row in table)
    assert {"", *results.failures.values()} == {
        row["failed"] for row in csv.DictReader(io.StringIO(tables.to_csv(table)))
    }


def test_results_of_another_seed_or_version_are_refused(tmp_path):
    bench.run(small(), replications=20, rng=4, n_jobs=1, cache=tmp_path)
    with pytest.raises(InputError, match="another seed"):
        bench.run(small(), replications=20, rng=5, n_jobs=1, cache=tmp_path)
    file = tmp_path / "blocks.jsonl"
    file.write_text(file.read_text().replace('"bestarm-bench": 2', '"bestarm-bench": 1'))
    with pytest.raises(InputError, match="bestarm-bench"):
        bench.run(small(), replications=20, rng=4, n_jobs=1, cache=tmp_path)
    file.write_text("hello\n")
    with pytest.raises(InputError, match="not a results file"):
        bench.run(small(), replications=20, rng=4, n_jobs=1, cache=tmp_path)


def test_a_full_disk_loses_nothing_that_was_finished(tmp_path, monkeypatch):
    append = stores.Store._append
    written = []

    def full(self, line):
        if len(written) == 4:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(line)
        append(self, line)

    monkeypatch.setattr(stores.Store, "_append", full)
    with pytest.raises(InputError, match=r"No space left.*what was finished is kept"):
        bench.run(small(), replications=600, rng=4, n_jobs=1, cache=tmp_path)
    monkeypatch.undo()
    assert len((tmp_path / "blocks.jsonl").read_text().splitlines()) == 4
    assert len(bench.run(small(), replications=600, rng=4, n_jobs=1, cache=tmp_path).table()) == 4


@pytest.mark.parametrize(
    ("world", "params", "says"),
    [
        ("adaptive", {"K": "many"}, "must be a whole number"),
        ("adaptive", {"K": 8.5}, "must be a whole number"),
        ("static", {"Delta": "x"}, "must be a number"),
        ("adaptive", {"size": 8}, "has no parameter 'size'; it has K"),
    ],
)
def test_bad_parameters_are_named(world, params, says):
    with pytest.raises(InputError, match=says):
        bench.instance(world, params)


def test_unknown_names_get_the_nearest():
    with pytest.raises(UnknownNameError, match="adaptive"):
        bench.instance("adaptve")
    with pytest.raises(UnknownNameError, match="gse-lin-fwg"):
        bench.grid([bench.instance("adaptive")], ["gse-lin-fgw"], 100)
    with pytest.raises(InputError, match="key=value"):
        bench.PolicyRef.parse("gse-lin:eta")
    with pytest.raises(InputError, match="unknown engine"):
        bench.run(small(), replications=5, engine="spark")
    with pytest.raises(InputError, match="no Dask scheduler answers"):
        bench.run(small(), replications=5, engine="dask://127.0.0.1:1")


def test_budgets_may_depend_on_the_instance():
    cells = bench.grid([bench.instance("adaptive", K=k) for k in (8, 16)], ["uniform"], budget=lambda K: 20 * K)
    assert [cell.budget for cell in cells] == [160, 320]
    assert bench.grid([bench.instance("automobile")], ["uniform"], budget_per_arm=5)[0].budget == 80


def test_paired_differences_are_sharper_than_their_parts():
    results = bench.run(small(["gse-lin-fwg", "gse-lin"]), replications=500, rng=1, n_jobs=1)
    row = next(r for r in results.table(against="gse-lin") if r["policy"] == "gse-lin-fwg")
    other = next(r for r in results.table() if r["policy"] == "gse-lin")
    assert row["difference"] == pytest.approx(row["accuracy"] - other["accuracy"])
    assert row["difference_high"] - row["difference_low"] < (row["high"] - row["low"]) + (other["high"] - other["low"])


def test_a_table_can_be_written_and_read(tmp_path):
    import pyarrow.parquet

    table = bench.run(small(), replications=20, rng=1, n_jobs=1).table(against="gse-lin")
    files = tables.write(table, tmp_path)
    assert [f.name for f in files] == ["table.csv", "table.json", "table.parquet"]
    assert json.loads(files[1].read_text()) == table
    assert tables.read_csv(files[0]) == tables.flat(table)
    assert pyarrow.parquet.read_table(files[2]).column("accuracy").to_pylist() == [row["accuracy"] for row in table]


def test_a_persons_table_and_repeats_are_worlds_too(tmp_path, rng):
    means = tmp_path / "means.csv"
    means.write_text("size,kind,p\n" + "".join(f"{i},{'ab'[i % 2]},{i / 10}\n" for i in range(9)))
    repeats = tmp_path / "repeats.csv"
    repeats.write_text("arm,size,ms\n" + "".join(f"a{i},{i},{10 - i + j / 10}\n" for i in range(6) for j in range(4)))
    packed = tmp_path / "repeats.npz"
    np.savez(packed, X=rng.standard_normal((6, 2)), times=rng.random((6, 5)) + np.arange(6)[:, None])
    for one in (
        bench.instance("table", file=str(means), mean="p", bernoulli=True, draw=5),
        bench.instance("replay", file=str(repeats), arm="arm", value="ms", minimize=True),
        bench.instance("replay", file=str(packed), arm="X", value="times", minimize=True, skip=1, draw=4),
    ):
        row = bench.run(bench.grid([one], ["gse-means"], budget=200), replications=40, rng=1, n_jobs=1).table()[0]
        assert row["accuracy"] > 0.5, one


def kill_a_worker(busy_for):
    """Kill the first worker process that has computed for some seconds; tell whether one was found."""
    killed, over = [], threading.Event()

    def is_worker(child):
        words = " ".join([child.name(), *child.cmdline()])
        return child.status() != psutil.STATUS_ZOMBIE and any(w in words for w in ("loky", "spawn_main", "ray::"))

    def kill():
        while not over.wait(0.1) and not killed:
            for child in psutil.Process().children(recursive=True):
                try:
                    if is_worker(child) and sum(child.cpu_times()[:2]) > busy_for:
                        child.kill()
                        killed.append(child.pid)
                        return
                except psutil.Error:
                    continue

    thread = threading.Thread(target=kill)
    thread.start()
    return over, thread, killed


@pytest.mark.cluster
@pytest.mark.parametrize("name", [None, "dask", "ray"])
@pytest.mark.filterwarnings("ignore")
def test_engines_agree_and_survive_a_killed_worker(name):
    cells = bench.grid([bench.instance("adaptive", K=16)], ["gse-lin-greedy-xy", "gse-lin-fwg"], budget=320)
    here = bench.run(cells, replications=250, rng=2, n_jobs=1)
    over, thread, killed = kill_a_worker(busy_for=3.0)
    many = bench.run(cells, replications=5000, rng=2, n_jobs=2, engine=name)
    over.set()
    thread.join()
    assert killed, "the run was over before a worker could be killed"
    assert [row["replications"] for row in many.table()] == [5000, 5000]
    first = [np.concatenate([one.correct for one in many.chunks[c.key]])[:250] for c in cells]
    np.testing.assert_array_equal(first, [np.concatenate([one.correct for one in here.chunks[c.key]]) for c in cells])


def test_the_order_of_the_features_tells_nothing():
    """Five principal components of sixteen equal ones are an arbitrary choice, which the order must not make."""
    cell = bench.grid([bench.instance("adaptive", K=16)], ["gse-pca-fwg"], budget=320)[0]
    bandit, _ = engine.world(cell, 3, 0, 400)
    best = np.take_along_axis(bandit.features, bandit.means.argmax(-1)[:, None, None], axis=1)[:, 0]
    shares = np.bincount(best.argmax(-1), minlength=15) / 400
    assert shares.max() < 0.15  # 1/15 each
    (chunk,) = bench.run([cell], 250, rng=3, n_jobs=1).chunks[cell.key]
    assert chunk.correct.mean() < 0.52  # .57 and more where the best arm's feature always comes first
