"""Studies whose workers are killed at any moment, and studies with a crowd of workers."""

import multiprocessing
import random
import time
import uuid

import numpy as np
import pytest

from bestarm.study import create_study, delete_study, load_study, open_storage
from bestarm.study.fold import StudyState
from tests.study.test_storage import url_for

PROCESSES = multiprocessing.get_context("forkserver")  # a fork of a process that has imported everything: quick
PROCESSES.set_forkserver_preload(["bestarm.study.postgres", "bestarm.study", "tests.study.test_survival"])

STUDIES = {
    "stages": {"policy": "gse-lin-fwg", "budget": 3000},
    "one at a time": {"policy": "lingape", "budget": 600, "batch": 8, "noise_variance": 1.0},
}


@pytest.fixture(params=["journal", "sqlite", "postgresql"])
def url(request, tmp_path):
    return url_for(request.param, tmp_path)


def begin(url, **settings):
    features = np.random.default_rng(3).standard_normal((9, 3))
    return create_study(features, storage=url, study_name=f"survival-{uuid.uuid4().hex}", seed=5, **settings)


# kill -9


def work(url, name, notes, seed):
    """Ask and tell till the study is over; note each result once `tell` has returned."""
    rng = random.Random(seed)
    study = load_study(name, url)
    with open(notes, "a") as file:
        while (batch := study.ask(rng.randint(1, 4))) is not None:
            todo = list(batch)
            if not todo:  # somebody has the rest of the round, and may be dead
                time.sleep(rng.uniform(0, 0.02))
                out = list(study.pending())
                todo = rng.sample(out, min(len(out), 2))
            for trial in todo:
                value = rng.gauss(0, 1)
                if study.tell(trial, value):
                    file.write(f"{trial.id} {value!r}\n")
                    file.flush()


def kill_at_random(url, name, folder, kills, rng):
    """Keep four workers at it, killing one after another; return the number of kills till the study was over."""
    done, started, workers = 0, 0, []
    while done < kills:
        while len(workers) < 4:
            started += 1
            notes = folder / f"{started}.notes"
            worker = PROCESSES.Process(target=work, args=(url, name, notes, rng.random()), daemon=True)
            worker.start()
            workers.append((worker, notes))
        victim, notes = workers.pop(rng.randrange(4))
        early = rng.random() < 0.1  # while it loads
        while not early and victim.is_alive() and not notes.exists():
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.25))
        victim.kill()
        victim.join()
        if victim.exitcode == 0:  # it was done before: the study is over
            break
        assert victim.exitcode == -9
        done += 1
    for worker, _ in workers:
        worker.kill()
        worker.join()
        assert worker.exitcode in (0, -9)
    return done


def check_survived(url, name, folder):
    """The log has every noted result, each trial handed out and counted once, within the budget."""
    records = list(open_storage(url).read(name))
    told = [
        (r["id"], r["value"], r["arm"]) for record in records if record["kind"] == "tell" for r in record["results"]
    ]
    noted = {
        tuple(line.split())
        for file in folder.glob("*.notes")
        for line in file.read_text().splitlines(keepends=True)
        if line.endswith("\n")
    }
    assert noted <= {(id, repr(value)) for id, value, _ in told}
    counted = {}
    for id, value, arm in told:
        counted.setdefault(id, (value, arm))
    study = load_study(name, url)
    known = study.fold.known()
    assert known.counts.sum() == len(counted)
    for arm in range(len(study.fold.ids)):
        assert known.sums[arm] == pytest.approx(sum(value for value, a in counted.values() if a == arm))
    handed = [f"{r['round']}.{s}" for r in records if r["kind"] == "ask" for s in range(r["start"], r["stop"])]
    assert len(handed) == len(set(handed)) == study.spent <= study.budget
    assert set(counted) <= set(handed)
    assert {trial.id for trial in study.pending()} == set(handed) - set(counted)
    return records


def check_goes_on(url, name, records):
    """The next question is what the log alone says, and the study can be brought to its end."""
    copies = [open_storage(None) for _ in range(2)]
    for copy in copies:
        copy.create(name, records[0])
        copy.append(name, records[1:])
    questions = [load_study(name, where).ask(5) for where in (*copies, open_storage(url))]
    assert questions[0] == questions[1] == questions[2]
    study = load_study(name, url)
    while (batch := study.ask()) is not None:
        study.tell(batch or study.pending(), np.zeros(len(batch) or len(study.pending())))
    assert study.finished
    assert study.spent == study.budget
    assert study.fold.known().counts.sum() == study.budget
    assert not study.pending()
    fold = StudyState()
    fold.apply(open_storage(url).read(name))
    assert fold.known().sums == pytest.approx(study.fold.known().sums)


def survive(url, tmp_path, settings, kills):
    rng, done, rounds = random.Random(f"{url} {settings}"), 0, 0
    while done < kills:
        rounds += 1
        folder = tmp_path / str(rounds)
        folder.mkdir()
        name = begin(url, **settings).name
        done += kill_at_random(url, name, folder, kills - done, rng)
        check_goes_on(url, name, check_survived(url, name, folder))
        delete_study(name, url)
    assert any(notes.stat().st_size for notes in tmp_path.glob("*/*.notes"))
    return done


@pytest.mark.parametrize("kind", STUDIES)
def test_ten_kills(url, kind, tmp_path):
    assert survive(url, tmp_path, STUDIES[kind], 10) == 10


@pytest.mark.statistics
@pytest.mark.parametrize("kind", STUDIES)
def test_two_hundred_kills(url, kind, tmp_path):
    assert survive(url, tmp_path, STUDIES[kind], 200) == 200


# a crowd


def tell_all(url, name, tells, ready):
    study = load_study(name, url)
    batch = study.ask(tells)
    ready.wait(60)
    for trial in batch:
        assert study.tell(trial, 0.5) == 1


def crowd(url, workers, tells):
    """Everyone tells at once, somebody reads it all over and over, and nobody sees an error."""
    name = begin(url, policy="uniform", budget=workers * tells).name
    ready = PROCESSES.Barrier(workers)
    everyone = [PROCESSES.Process(target=tell_all, args=(url, name, tells, ready), daemon=True) for _ in range(workers)]
    for worker in everyone:
        worker.start()
    while any(worker.is_alive() for worker in everyone):
        assert len(load_study(name, url).trials()) <= workers * tells
        time.sleep(0.05)
    for worker in everyone:
        worker.join()
    assert [worker.exitcode for worker in everyone] == [0] * workers
    study = load_study(name, url)
    assert study.fold.known().counts.sum() == workers * tells
    assert study.finished
    delete_study(name, url)


def test_eight_workers_tell_at_once(url):
    crowd(url, 8, 20)


@pytest.mark.statistics
def test_fifty_workers_tell_at_once(url):
    crowd(url, 50, 100)
