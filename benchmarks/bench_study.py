"""How long do people wait for a study's storage? Telling, alone and with many; a million results."""

import multiprocessing
import os
import resource
import shutil
import tempfile
import time
import uuid
from pathlib import Path

import numpy as np

from bestarm.study import create_study, delete_study, load_study

FORKED = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload(["bestarm.study"])


def main(quick: bool = False) -> None:
    folder = Path(tempfile.mkdtemp(prefix="bench-study-"))
    try:
        places = {"journal": f"journal:///{folder}/log.jsonl", "sqlite": f"sqlite:///{folder}/log.db"}
        if "BESTARM_TEST_POSTGRES" in os.environ:
            places["postgresql"] = os.environ["BESTARM_TEST_POSTGRES"]
        else:
            print("no PostgreSQL: BESTARM_TEST_POSTGRES does not name a server")
        for workers in (1, 8 if quick else 50):
            for kind, url in places.items():
                tell_latency(kind, url, workers, 20 if quick else 100)
        for kind, url in places.items():
            many_results(kind, url, 20_000 if quick else 1_000_000)
    finally:
        shutil.rmtree(folder)


def tell_latency(kind: str, url: str, workers: int, tells: int) -> None:
    """Print how long `tell` takes while others tell, and somebody reads the whole study over and over."""
    name = f"latency-{uuid.uuid4().hex}"
    features = np.random.default_rng(1).standard_normal((20, 4))
    create_study(features, workers * tells, "uniform", storage=url, study_name=name, seed=1)
    with FORKED.Manager() as manager:
        done, spent, reads = manager.Event(), manager.list(), manager.list()
        ready = manager.Barrier(workers)
        reader = FORKED.Process(target=read_on, args=(url, name, done, reads))
        others = [FORKED.Process(target=tell_on, args=(url, name, tells, ready, spent)) for _ in range(workers)]
        for process in (reader, *others):
            process.start()
        for process in others:
            process.join()
        done.set()
        reader.join()
        failed = sum(process.exitcode != 0 for process in (reader, *others))
        p50, p99, worst = np.percentile(list(spent), [50, 99, 100]) * 1e3
        head = f"{kind}, {workers} worker{'s' if workers > 1 else ''} x {tells} tells"
        print(
            f"{head:40s} p50 {p50:7.1f} ms   p99 {p99:7.1f} ms   worst {worst:7.1f} ms   "
            f"a whole read meanwhile {np.median(list(reads)) * 1e3:6.1f} ms   workers with an error {failed}"
        )
    delete_study(name, url)


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


def many_results(kind: str, url: str, results: int) -> None:
    """Print what a fresh process needs for a log of that many results, each a record of its own."""
    name = f"many-{uuid.uuid4().hex}"
    features = np.random.default_rng(1).standard_normal((50, 5))
    study = create_study(features, results + 1000, "gse-lin-fwg", storage=url, study_name=name, seed=1)
    told = 0
    while told < results:
        batch = study.ask(min(10_000, results - told))
        assert batch
        records = [single_tell(study.fold, trial.id, told / 7) for trial in batch]
        study.storage.append(name, records)
        told += len(batch)
    with FORKED.Pool(1) as pool:
        loaded, busy, asked, memory = pool.apply(reload, (url, name))
    head = f"{kind}, {results:,} results"
    print(
        f"{head:40s} reload {loaded:6.2f} s, {busy:.2f} s of the processor (goal 5)   "
        f"ask {asked * 1e3:6.1f} ms (goal 50)   peak memory {memory:5.0f} MB"
    )
    delete_study(name, url)


def single_tell(fold, name, value):  # type: ignore[no-untyped-def]
    number, slot = map(int, name.split("."))
    result = {"id": name, "arm": fold.history[number].plan[slot], "value": value, "round": number, "slots": [slot]}
    return {"kind": "tell", "results": [result], "time": time.time(), "source": "bench"}


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
