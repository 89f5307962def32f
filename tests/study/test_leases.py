"""Leases: a runner that is gone loses its trials to the others, one that lives never does, a person's never expire."""

import subprocess
import sys
import threading

import numpy as np
import pytest

from bestarm import create_study, load_study
from bestarm.errors import StorageError
from bestarm.study import Memory, leases
from bestarm.study.course import Course, Outcome
from bestarm.study.leases import Life, ended, new_runner
from bestarm.study.retry import Pace, Retry
from bestarm.study.runner import run

FEATURES = np.eye(4) + 0.5
ELSEWHERE = "lab-7-0123abcd-77-1234-{:08x}"  # a runner of another machine


class Clock:
    """A clock that is put forward by hand."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Worker:
    """A runner whose steps are made by hand: it beats, looks and pulls when it is told to."""

    def __init__(self, storage, clock, number=None, lease=60.0, jobs=2, shared=True):
        self.study = load_study("s", storage)
        self.life = Life(storage, "s", lease, clock)
        if number is not None:
            self.life.runner = ELSEWHERE.format(number)
        self.course = Course(self.study, jobs, self.life, Retry(), Pace(), shared, clock)
        storage.beat("s", self.life.runner)
        self.study.join(self.life.runner, jobs)
        self.life.see()

    def step(self):
        return self.course.step()

    def tell(self, trials):
        self.course.take([Outcome(trial, self.course.flying[trial.id], float(trial.arm)) for trial in trials])
        return self.course.step()


@pytest.fixture
def storage():
    return Memory()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def study(storage):
    return create_study(FEATURES, 8, "uniform", study_name="s", storage=storage, seed=2, batch=8)


def takeovers(study):
    return [record for record in study.storage.read("s") if record["kind"] == "takeover"]


def test_a_silent_runner_loses_its_trials_after_its_lease_and_not_before(study, storage, clock):
    silent, other = Worker(storage, clock, 1), Worker(storage, clock, 2, jobs=8)
    lost = silent.step()
    other.tell(other.step())
    for _ in range(59):
        clock.now += 1
        other.life.pulse()
        assert not other.step()
    clock.now += 2
    other.life.pulse()
    taken = other.step()
    assert [trial.id for trial in taken] == [trial.id for trial in lost]
    assert len(takeovers(study)) == 1
    assert takeovers(study)[0]["from"] == [silent.life.runner]
    assert silent.life.runner not in storage.beats("s")
    other.tell(taken)
    silent.tell(lost)  # told late, it counts once
    assert study.sync().total == 8
    assert silent.course.outbox.made == 0
    assert other.course.outbox.made == 8
    assert study.finished


def test_a_value_told_late_counts_if_it_is_the_first(study, storage, clock):
    silent, other = Worker(storage, clock, 1, jobs=8), Worker(storage, clock, 2, jobs=8)
    lost = silent.step()
    other.step()
    clock.now += 61
    other.life.pulse()
    taken = other.step()
    assert len(taken) == 8
    silent.tell(lost)
    other.tell(taken)
    assert (silent.course.outbox.made, other.course.outbox.made) == (8, 0)
    assert study.sync().total == 8 == study.spent


def test_a_runner_that_gives_signs_of_life_keeps_its_trials(study, storage, clock):
    slow, other = Worker(storage, clock, 1), Worker(storage, clock, 2, jobs=8, shared=False)
    held = slow.step()
    other.tell(other.step())
    for _ in range(100):
        clock.now += 50
        slow.life.pulse()
        other.life.pulse()
        assert not other.step()
    slow.tell(held)
    assert study.sync().total == 8
    assert not takeovers(study)


def test_the_lease_is_that_of_the_holder(study, storage, clock):
    patient, hasty = Worker(storage, clock, 1, lease=600), Worker(storage, clock, 2, lease=5, jobs=8)
    patient.step()
    hasty.tell(hasty.step())
    for _ in range(50):
        clock.now += 10
        hasty.life.pulse()
        assert not hasty.step()
    clock.now += 120
    hasty.life.pulse()
    assert len(hasty.step()) == 2


def test_a_look_that_took_long_declares_nobody_gone(study, storage, clock):
    silent, other = Worker(storage, clock, 1), Worker(storage, clock, 2, jobs=8)
    silent.step()
    other.tell(other.step())
    before = storage.beats

    def slow(name):
        found = before(name)
        clock.now += 1000  # the storage was away
        return found

    storage.beats = slow
    other.life.see()
    assert not other.step()


def test_a_runner_taken_for_gone_joins_again_and_goes_on(study, storage, clock):
    asleep, other = Worker(storage, clock, 1), Worker(storage, clock, 2)
    asleep.step()
    other.step()
    other.study.take_over(other.life.runner, {asleep.life.runner}, 60)
    assert set(study.sync().runners) == {other.life.runner}
    asleep.course.flying.clear()
    assert asleep.step()
    assert set(study.sync().runners) == {asleep.life.runner, other.life.runner}


def test_trials_that_were_taken_over_before_they_began_are_not_made_twice(study, storage, clock):
    asleep, other = Worker(storage, clock, 1, jobs=4), Worker(storage, clock, 2, jobs=8)
    asleep.course.pace = Pace(0.001)  # so that three of four wait to be begun
    begun = asleep.step()
    assert len(begun) == 1
    other.tell(other.step())
    other.study.take_over(other.life.runner, {asleep.life.runner}, 60)
    assert len(other.step()) == 4
    asleep.course.pace = Pace()
    asleep.course.flying.clear()
    asleep.study.sync()
    assert not asleep.step()


def test_a_persons_trials_never_expire_for_those_who_share(study, storage, clock):
    mine = study.ask(5)
    worker = Worker(storage, clock, 1, jobs=8)
    worker.tell(worker.step())
    for _ in range(100):
        clock.now += 3600
        worker.life.pulse()
        assert not worker.step()
    assert len(study.pending()) == 5
    study.tell(mine, [1.0] * 5)
    worker.step()
    assert worker.course.over


def test_who_does_not_share_makes_a_persons_trials_first_and_says_so(study, storage, clock):
    mine = study.ask(3)
    worker, second = Worker(storage, clock, 1, shared=False), Worker(storage, clock, 2, shared=False)
    assert [trial.id for trial in worker.step()] == [trial.id for trial in mine][:2]
    assert not {trial.id for trial in second.step()} & {trial.id for trial in mine}  # the first has them all
    assert takeovers(study)[0]["from"] == [""]


def test_trials_of_a_runner_that_left_are_free_at_once(study, storage, clock):
    first, second = Worker(storage, clock, 1), Worker(storage, clock, 2)
    left = first.step()
    first.course.joined = True
    first.course.end()
    assert first.life.runner not in storage.beats("s")
    assert {trial.id for trial in second.step()} == {trial.id for trial in left}


def test_who_asked_by_a_name_of_its_own_is_watched_before_it_is_gone(study, storage, clock):
    study.ask(3, runner="my own loop", lease=30)
    worker = Worker(storage, clock, 1, jobs=8)
    worker.tell(worker.step())
    clock.now += 29
    worker.life.pulse()
    assert not worker.step()
    clock.now += 2
    worker.life.pulse()
    assert len(worker.step()) == 3


def test_a_gone_runner_that_holds_nothing_no_longer_counts_among_those_at_work(study, storage, clock):
    Worker(storage, clock, 1, jobs=4)
    other = Worker(storage, clock, 2, jobs=8)
    held = other.step()
    other.course.looked = False
    other.course.flying.clear()
    other.step()
    assert len(study.sync().runners) == 2
    clock.now += leases.LEASE + 1
    other.life.pulse()
    other.course.looked = False
    other.course.flying.clear()
    other.step()
    assert set(study.sync().runners) == {other.life.runner}
    assert held


def test_a_storage_that_fails_stops_no_heart(storage, clock):
    def broken(*given):
        raise StorageError("the disk is full")

    life = Life(storage, "s", 60, clock)
    storage.beat = storage.beats = broken
    life.pulse()
    assert life.look is None


def test_names_are_not_given_twice_and_fit_any_storage():
    names = {new_runner() for _ in range(100)}
    assert len(names) == 100
    assert all(leases.OURS.fullmatch(name) and "/" not in name and name.isprintable() for name in names)


def test_a_runner_of_a_process_that_ended_is_known_to_be_gone():
    code = "from bestarm.study import leases; print(leases.new_runner(), flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        name = child.stdout.readline().strip()
        assert not ended(name)
        child.kill()
        assert wait_for(lambda: ended(name))  # a process that nobody has waited for yet has ended, too
    finally:
        child.kill()
        child.communicate()
    assert ended(name)


def wait_for(what):
    pause = threading.Event()
    return any(what() or pause.wait(0.02) for _ in range(500))


def test_another_process_under_the_same_number_is_not_the_same(monkeypatch):
    name = new_runner()
    monkeypatch.setattr(leases, "_at_work", {name})
    assert not ended(name)
    host, machine, process, start, chance = name.rsplit("-", 4)
    started = int(start)
    if started:
        assert ended("-".join([host, machine, process, str(started + 1), chance]))
    assert not ended("-".join([host, "00000000", "1", "1", chance]))  # another machine's: nothing is known
    assert not ended("anybody")


def test_a_runner_of_this_process_that_is_no_longer_at_work_is_gone(study, storage):
    life = Life(storage, "s", 60)
    life.start()
    assert not ended(life.runner)
    life.stop()
    assert ended(life.runner)


def test_a_shared_run_ends_though_a_worker_died(study, storage):
    dead = ELSEWHERE.format(9)
    storage.beat("s", dead)
    study.join(dead, 3)
    study.ask(3, runner=dead, lease=0.2)
    assert run(study, float, n_jobs=2, shared=True, lease=0.2) == 8
    assert study.finished
    assert takeovers(study)[0]["from"] == [dead]
    assert storage.beats("s") == {}
    assert study.sync().runners == {}
