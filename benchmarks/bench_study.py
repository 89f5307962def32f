"""How long do people wait for a study's storage? Telling, alone and with many; asking among tellers; large logs."""

import json
import multiprocessing
import os
import resource
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from bestarm.study import create_study, delete_study, load_study
from bestarm.study.storage import SQLite, database

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["bestarm.study", "benchmarks.bench_study"])


def main(quick: bool = False) -> None:
    folder = Path(tempfile.mkdtemp(prefix="bench-study-"))
    try:
        places = {"journal": f"journal:///{folder}/log.jsonl", "sqlite": f"sqlite:///{folder}/log.db"}
        if "BESTARM_TEST_POSTGRES" in os.environ:
            places["postgresql"] = os.environ["BESTARM_TEST_POSTGRES"]
        else:
            print("no PostgreSQL: BESTARM_TEST_POSTGRES does not name a server")
        for kind, url in places.items():
            ask_among_tellers(kind, url, 8, 20 if quick else 100)
        for workers in (1, 8 if quick else 50):
            crowds(places, workers, 20 if quick else 100)
        checkpoints(folder, 200 if quick else 2000)
        results = 20_000 if quick else 100_000
        for kind, url in places.items():
            many_results(kind, url, results)
        both_versions(folder, results)
    finally:
        shutil.rmtree(folder)


@contextmanager
def study_at(url: str, budget: int, policy: str = "uniform", arms: int = 20) -> Iterator[Any]:
    """Lend a study, deleted at the end."""
    features = np.random.default_rng(1).standard_normal((arms, 4))
    name = f"bench-{uuid.uuid4().hex}"
    try:
        yield create_study(features, budget, policy, storage=url, study_name=name, seed=1)
    finally:
        delete_study(name, url)


def ask_among_tellers(kind: str, url: str, tellers: int, asks: int) -> None:
    """Print how long one who asks waits while others tell without a pause."""
    with study_at(url, 100_000) as study, FORKED.Manager() as manager:
        done, told = manager.Event(), manager.list()
        ready = manager.Barrier(tellers + 1)
        others = [FORKED.Process(target=tell_till, args=(url, study.name, ready, done, told)) for _ in range(tellers)]
        for process in others:
            process.start()
        ready.wait()
        spent, begun = [], time.perf_counter()
        while len(spent) < asks and time.perf_counter() - begun < 60:
            start = time.perf_counter()
            study.ask(1, "asker")
            spent.append(time.perf_counter() - start)
        wall = time.perf_counter() - begun
        done.set()
        for process in others:
            process.join()
        p50, worst = np.percentile(spent, [50, 100]) * 1e3
        goal = "   goal p50 300 ms" * (kind == "postgresql")
        print(
            f"{kind + f', 1 ask among {tellers} tellers':40s} p50 {p50:7.1f} ms   worst {worst:7.1f} ms   "
            f"{len(spent)} asks, {sum(told) / wall:.0f} tells a second{goal}"
        )


def tell_till(url, name, ready, done, told):  # type: ignore[no-untyped-def]
    study = load_study(name, url)
    batch, count, at = iter(study.ask(3000)), 0, 0.0
    ready.wait()
    while time.perf_counter() < at or not done.is_set():
        at = time.perf_counter() + 0.2  # how often to look whether it is over
        while time.perf_counter() < at and (trial := next(batch, None)) is not None:
            study.tell(trial, 0.5)
            count += 1
    told.append(count)


def crowds(places: dict[str, str], workers: int, tells: int) -> None:
    """Print how long many tell side by side on each storage, and how that compares to the journal."""
    walls = {kind: tell_latency(kind, url, workers, tells) for kind, url in places.items()}
    ratios = ", ".join(f"{kind} {wall / walls['journal']:.2f}" for kind, wall in walls.items() if kind != "journal")
    print(f"{f'{workers} x {tells} tells':40s} times the journal's {walls['journal']:.1f} s: {ratios}   goal 3")


def tell_latency(kind: str, url: str, workers: int, tells: int) -> float:
    """Print how long `tell` takes while others tell, and somebody reads the whole study over and over."""
    with study_at(url, workers * tells) as study, FORKED.Manager() as manager:
        done, spent, reads = manager.Event(), manager.list(), manager.list()
        ready = manager.Barrier(workers + 1)
        reader = FORKED.Process(target=read_on, args=(url, study.name, done, reads))
        others = [
            FORKED.Process(target=tell_on, args=(url, study.name, tells, ready, spent)) for _ in range(workers)
        ]  # fmt: skip
        for process in (reader, *others):
            process.start()
        ready.wait()
        start = time.perf_counter()
        for process in others:
            process.join()
        wall = time.perf_counter() - start
        done.set()
        reader.join()
        failed = sum(process.exitcode != 0 for process in (reader, *others))
        p50, p99, worst = np.percentile(list(spent), [50, 99, 100]) * 1e3
        head = f"{kind}, {workers} worker{'s' if workers > 1 else ''} x {tells} tells"
        print(
            f"{head:40s} {wall:6.1f} s   p50 {p50:7.1f} ms   p99 {p99:7.1f} ms   worst {worst:7.1f} ms   "
            f"a whole read meanwhile {np.median(list(reads)) * 1e3:6.1f} ms   workers with an error {failed}"
        )
    return wall


def tell_on(url, name, tells, ready, spent):  # type: ignore[no-untyped-def]
    study, mine = load_study(name, url), []
    batch = study.ask(tells)
    ready.wait()
    for trial in batch:
        start = time.perf_counter()
        study.tell(trial, 0.5)
        mine.append(time.perf_counter() - start)
    spent.extend(mine)


def read_on(url, name, done, reads):  # type: ignore[no-untyped-def]
    while not done.wait(0.05) or not reads:
        start = time.perf_counter()
        load_study(name, url).trials()
        reads.append(time.perf_counter() - start)


def checkpoints(folder: Path, appends: int) -> None:
    """Print what it costs SQLite to move records into the database itself after each write."""

    def clock(name: str) -> float:
        storage = SQLite(folder / name)
        storage.create("a", {"i": 0})
        start = time.perf_counter()
        for i in range(appends):
            storage.append("a", [{"kind": "tell", "i": i}])
        return (time.perf_counter() - start) / appends

    with_it = clock("with.db")
    with mock.patch.object(database, "_checkpoint"):
        without = clock("without.db")
    print(
        f"{'sqlite, one append of a record':40s} {with_it * 1e3:.2f} ms with a checkpoint, {without * 1e3:.2f} ms "
        f"without: {with_it / without:.2f} times"
    )


def many_results(kind: str, url: str, results: int) -> None:
    """Print what a fresh process needs for a log of that many results, each a record of its own."""
    with study_at(url, results + 1000, "gse-lin-fwg", 50) as study:
        fill(study, results)
        with FORKED.Pool(1) as pool:
            loaded, busy, asked, memory = pool.apply(reload, (url, study.name))
        head = f"{kind}, {results:,} results"
        print(
            f"{head:40s} reload {loaded:6.2f} s, {busy:.2f} s of the processor   "
            f"ask {asked * 1e3:6.1f} ms   peak memory {memory:5.0f} MB"
        )


def fill(study: Any, results: int) -> None:
    """Tell so many results, each in a record of its own."""
    told = 0
    while told < results:
        batch = study.ask(min(10_000, results - told))
        assert batch
        study.storage.append(study.name, [single_tell(study.state, trial, told / 7) for trial in batch])
        told += len(batch)


def single_tell(state: Any, trial: Any, value: float) -> dict[str, Any]:
    result = {"trial": int(trial.id[1:]), "arm": state.places[trial.arm], "value": value}
    return {"kind": "tell", "time": time.time(), "source": "bench", "results": [result]}


def both_versions(folder: Path, results: int) -> None:
    """Print the size of the same log in both versions, and how long each is loaded."""
    new, old = folder / "v2.jsonl", folder / "v1.jsonl"
    with study_at(str(new), results + 1000, "gse-lin-fwg", 50) as study:
        fill(study, results)
        old.write_bytes(as_version_1(study.name, study.storage.read(study.name)))
        sizes = [new.stat().st_size, old.stat().st_size]
        with FORKED.Pool(1, maxtasksperchild=1) as pool:
            times = [pool.apply(load_time, (str(path), study.name)) for path in (new, old)]
    (size, size_1), (seconds, seconds_1) = sizes, times
    print(
        f"{f'a log of {results:,} results':40s} version 2: {size / 1e6:.1f} MB, {seconds:.2f} s; "
        f"version 1: {size_1 / 1e6:.1f} MB, {seconds_1:.2f} s: {size / size_1:.2f} times as large (goal 1.3), "
        f"{seconds / seconds_1:.2f} times as long (goal 1)"
    )


def as_version_1(name: str, records: Any) -> bytes:
    """Return a log as version 1 would have kept it."""
    slots: dict[int, tuple[int, int]] = {}
    lines = []
    for record in records:
        kind, more = record["kind"], {"time": record["time"], "source": record.get("source", "")}
        if kind == "create":
            made = {**record, "version": 1}
        elif kind == "ask":
            number, start = record["round"], record["start"]
            slots |= {record["first"] + i: (number, start + i) for i in range(record["count"])}
            made = {"kind": "ask", "round": number, "start": start, "stop": start + record["count"], **more}
        else:
            (one,) = record["results"]
            number, slot = slots[one["trial"]]
            told = {"id": f"{number}.{slot}", "arm": one["arm"], "value": one["value"], "round": number}
            made = {"kind": "tell", "results": [{**told, "slots": [slot]}], **more}
        lines.append(json.dumps({"study": name, "record": made}, separators=(",", ":")))
    return "\n".join(lines).encode() + b"\n"


def load_time(path: str, name: str) -> float:
    start = time.perf_counter()
    load_study(name, path)
    return time.perf_counter() - start


def reload(url: str, name: str) -> tuple[float, float, float, float]:
    start, at_work = time.perf_counter(), time.process_time()
    study = load_study(name, url)
    loaded, busy = time.perf_counter() - start, time.process_time() - at_work
    spent = []
    for _ in range(9):
        start = time.perf_counter()
        study.ask(1)
        spent.append(time.perf_counter() - start)
    return loaded, busy, float(np.median(spent)), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
