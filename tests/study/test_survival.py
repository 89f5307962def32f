"""Studies whose workers are killed, ended and stopped at any moment, and studies with a crowd of workers."""

import math
import multiprocessing
import os
import random
import signal
import time
import uuid
from collections import Counter
from contextlib import suppress

import numpy as np
import pytest

from bestarm.errors import InputError
from bestarm.study import create_study, delete_study, load_study, open_storage
from tests.study.checker import Notes, check, read_log, read_notes
from tests.study.storage.test_storage import url_for
from tests.study.test_poison import differing

PROCESSES = multiprocessing.get_context("forkserver")  # a fork of a process that has imported everything: quick
PROCESSES.set_forkserver_preload(["bestarm.study", "tests.study.test_survival"])
FACTOR = float(os.environ.get("BESTARM_TORTURE", "1"))
WORKERS = 4

STUDIES = {
    "stages": {"policy": "gse-lin-fwg", "budget": 3000},
    "one at a time": {"policy": "lingape", "budget": 600, "batch": 8, "noise_variance": 1.0},
    "auto": {"policy": "auto", "budget": 600, "batch": 12},
}


@pytest.fixture(params=["journal", "sqlite", "postgresql"])
def url(request, tmp_path):
    return url_for(request.param, tmp_path)


def begin(url, **settings):
    features = np.random.default_rng(3).standard_normal((9, 3))
    return create_study(features, storage=url, study_name=f"survival-{uuid.uuid4().hex}", seed=5, **settings)


def work(url, name, path, number):
    """Ask, tell and fail till the study is over; note every call before it and after it."""
    chance, who, told = random.Random(number), f"worker {number}", 0
    notes, study = Notes(path, who), load_study(name, url)

    def value():
        nonlocal told
        told += 1
        return number + told / 2**20  # no two workers tell the same

    while True:
        batch = ask(notes, study, who, chance.randint(1, 4))
        if batch is None:
            return
        todo = list(batch)
        if not todo:  # somebody has the rest of the round, and may be dead
            time.sleep(chance.uniform(0, 0.02))
            out = notes.call("pending", {}, study.pending, handed)
            todo = chance.sample(list(out), min(len(out), 2))
        if batch and chance.random() < 0.1:
            gone = todo.pop()
            notes.call("fail", {"trial": gone.id}, lambda gone=gone: study.fail(gone, "spilt", source=who))
        if chance.random() < 0.5:
            tell(notes, study, who, [(trial.id, value()) for trial in todo])
        for trial in todo:
            tell(notes, study, who, [(trial.id, value())])
        notes.call("look", {}, study.sync, lambda state: {"total": int(state.total), "records": state.records})


def handed(batch):
    return {"trials": [[trial.id, trial.arm] for trial in batch or ()]}


def ask(notes, study, who, n):
    return notes.call("ask", {"n": n}, lambda: study.ask(n, who), handed)


def tell(notes, study, who, values):
    """Tell values of trials, once more now and then; those that somebody told before are refused, all of them."""

    def told():
        try:
            return study.tell(dict(values), source=who)
        except InputError:
            return None

    for _ in range(1 + (values[0][1] * 2**20 % 7 == 0) if values else 0):
        notes.call("tell", {"values": values}, told, lambda new: {"new": new or 0, "refused": new is None})


class Crowd:
    """Workers in processes of their own, each with its notes."""

    def __init__(self, url, name, folder):
        self.url, self.name, self.folder = url, name, folder
        self.started, self.at_work, self.sent = 0, [], Counter()

    def fill(self):
        """Start as many workers as are missing."""
        while len(self.at_work) < WORKERS:
            self.started += 1
            path = self.folder / f"{self.started}.notes"
            worker = PROCESSES.Process(target=work, args=(self.url, self.name, path, self.started), daemon=True)
            worker.start()
            self.at_work.append((worker, path))

    def end(self, which, how, chance):
        """End a worker at a random moment, and return whether it was still at work."""
        worker, path = self.at_work.pop(which)
        early = chance.random() < 0.1  # while it loads
        while not early and worker.is_alive() and not path.exists():
            time.sleep(0.005)
        time.sleep(chance.uniform(0, 0.4))
        with suppress(ProcessLookupError):  # it is done: the study is over
            os.kill(worker.pid, how)
        worker.join()
        self.sent[how.name] += worker.exitcode == -how
        assert worker.exitcode in (0, -how)
        return worker.exitcode != 0

    def stop(self, chance):
        """Stop a worker at a random moment, whatever it holds, and let it go on after a while."""
        worker, _ = chance.choice(self.at_work)
        with suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGSTOP)
            time.sleep(chance.uniform(0, 0.3))
            os.kill(worker.pid, signal.SIGCONT)
            self.sent["SIGSTOP"] += 1

    def clear(self, seconds=60.0):
        """Kill whoever is left, once somebody has told something: a loaded machine may have been too slow for that."""
        end = time.monotonic() + seconds
        while not any(call.verb == "tell" for call in self.calls()) and time.monotonic() < end:
            if not any(worker.is_alive() for worker, _ in self.at_work):
                break
            time.sleep(0.05)
        for worker, _ in self.at_work:
            worker.kill()
            worker.join()
            self.sent["SIGKILL"] += worker.exitcode == -9
            assert worker.exitcode in (0, -9)

    def calls(self):
        """Return all that was noted."""
        paths = sorted(self.folder.glob("*.notes"), key=lambda path: int(path.stem))
        return [call for path in paths for call in read_notes(path, f"worker {path.stem}")]


def torment(crowd, signals, chance):
    """Send that many signals, or fewer if the study is over before; return how many."""
    sent = 0
    while sent < signals:
        crowd.fill()
        how = chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
        if how is signal.SIGSTOP:
            crowd.stop(chance)
        elif not crowd.end(chance.randrange(WORKERS), how, chance):
            break
        sent += 1
    crowd.clear()
    return sent


def check_goes_on(url, name, records):
    """The log alone says what is out and what comes next, and the study can be brought to its end."""
    copy = open_storage(None)
    copy.create(name, records[0])
    copy.append(name, records[1:])
    here, there = load_study(name, url), load_study(name, copy)
    assert differing(here.state, there.state) in ([], ["mark"])
    assert here.pending() == there.pending()
    assert here.ask(5) == there.ask(5)
    while (batch := here.ask()) is not None:
        batch = batch or here.pending()
        here.tell(batch, [0.5] * len(batch))
    assert here.finished
    assert not here.pending()
    assert here.spent == here.budget
    assert read_log(list(open_storage(url).read(name))).spent[-1] == here.spent


def survive(url, folder, settings, signals, seed):
    """Torment studies with that many signals, and hold each log against what its workers were told."""
    chance, left, made, studies, sent = random.Random(seed), signals, Counter(), 0, Counter()
    while left > 0:
        studies += 1
        place = folder / str(studies)
        place.mkdir()
        name = begin(url, **settings).name
        crowd = Crowd(url, name, place)
        left -= torment(crowd, left, chance)
        calls, records = crowd.calls(), list(open_storage(url).read(name))
        assert check(records, calls) == []
        made.update(call.verb for call in calls)
        made["new"] += sum((call.answer or {}).get("new", 0) for call in calls)
        made["cut short"] += sum(call.answer is None for call in calls)
        sent.update(crowd.sent)
        check_goes_on(url, name, records)
        delete_study(name, url)
    return {"studies": studies, **sent, **made}


@pytest.mark.parametrize("kind", ["stages", "one at a time"])
def test_nothing_acknowledged_is_lost_or_doubled_when_workers_are_killed(url, kind, tmp_path):
    done = survive(url, tmp_path, STUDIES[kind], 5, f"{kind} of a few")
    assert done["tell"] >= done["new"] > 0


@pytest.mark.torture
@pytest.mark.parametrize("kind", STUDIES)
def test_nothing_acknowledged_is_lost_or_doubled_in_hundreds_of_kills(url, kind, tmp_path):
    done = survive(url, tmp_path, STUDIES[kind], math.ceil(100 * FACTOR), kind)
    print(f"\nsurvival, {url.partition(':')[0]}, {kind}: {done}, 0 lost, 0 doubled")


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
    assert study.state.known().counts.sum() == workers * tells
    assert study.ask() is None
    delete_study(name, url)


def test_eight_workers_tell_at_once(url):
    crowd(url, 8, 20)


@pytest.mark.torture
def test_fifty_workers_tell_at_once(url):
    crowd(url, 50, 100)
    print(f"\ncrowd, {url.partition(':')[0]}: 50 workers told 100 results each, 0 lost, 0 doubled")
