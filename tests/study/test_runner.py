"""Runners: every value told once, failures tried again, interruptions that lose nothing."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter

import numpy as np
import pytest

from bestarm import create_study, load_study
from bestarm.errors import InputError, PullError, RewardError
from bestarm.study import Memory
from bestarm.study.course import PATIENCE
from bestarm.study.runner import run, run_async

FEATURES = np.eye(4) + 0.5


def fresh(budget=24, **settings):
    return create_study(FEATURES, budget, study_name="s", storage=settings.pop("storage", Memory()), seed=2, **settings)


def value(arm):
    return float(arm)


async def later(arm):
    await asyncio.sleep(0.001)
    return float(arm)


@pytest.mark.parametrize("jobs", [1, 4, 50])
def test_threads_make_every_pull_once(jobs):
    study, lock, calls = fresh(), threading.Lock(), []

    def pull(arm):
        with lock:
            calls.append(arm)
        return value(arm)

    assert run(study, pull, n_jobs=jobs) == 24 == len(calls)
    assert study.finished
    assert study.spent == 24
    assert study.best_arm == "4"
    assert study.run(value) == 0  # nothing is left


@pytest.mark.parametrize("concurrency", [1, 16])
def test_coroutines_do_the_same(concurrency):
    study = fresh()
    assert asyncio.run(run_async(study, later, concurrency=concurrency)) == 24
    assert study.finished
    assert study.best_arm == "4"
    assert asyncio.run(study.run_async(later)) == 0


def test_the_answer_does_not_depend_on_how_many_run():
    tables = [fresh(policy="linucb", noise_variance=1.0, batch=4) for _ in range(3)]
    run(tables[0], value)
    run(tables[1], value, n_jobs=4)
    asyncio.run(run_async(tables[2], later, concurrency=3))
    assert tables[0].sync().sums == tables[1].sync().sums == tables[2].sync().sums


class Flaky:
    """Fails in each of the `every`-th calls."""

    def __init__(self, every):
        self.every, self.count = every, 0

    def __call__(self, arm):
        self.count += 1
        if self.count % self.every == 0:
            raise OSError("no answer")
        return float(arm)


class ThirdTime:
    """Fails the first two calls for a trial."""

    takes_trial = True

    def __init__(self):
        self.calls = Counter()

    def __call__(self, arm, trial, study):
        self.calls[trial] += 1
        if self.calls[trial] < 3:
            raise OSError("no answer")
        return float(arm)


def test_a_failed_pull_is_tried_again():
    study, pull = fresh(), ThirdTime()
    assert run(study, pull, retries=2, backoff=0) == 24
    assert set(pull.calls.values()) == {3}
    assert not study.sync().failures


def test_a_trial_that_fails_for_good_keeps_its_reason_and_is_asked_again():
    study, pull = fresh(), Flaky(7)
    assert run(study, pull, retries=0) == 24
    assert study.spent == 24
    assert study.finished
    rows = [row for row in study.trials() if row["state"] == "failed"]
    assert rows
    assert all(row["why"] == "OSError: no answer" for row in rows)


def test_without_a_refund_a_failed_pull_is_lost():
    study = fresh(refund=False)
    made = run(study, Flaky(7), retries=0)
    assert study.finished
    assert 0 < made < 24
    assert study.spent == 24


def broken(arm):
    if arm == "2":
        raise ValueError("the valve is stuck")
    return float(arm)


async def broken_later(arm):
    return broken(arm)


@pytest.mark.parametrize("way", ["threads", "coroutines"])
def test_an_arm_that_always_fails_ends_the_run_and_loses_nothing(way):
    study = fresh(policy="uniform")
    with pytest.raises(
        PullError, match=rf"arm '2' failed {PATIENCE} trials in a row.*valve is stuck.*withdraw"
    ) as info:
        run(study, broken, n_jobs=3) if way == "threads" else asyncio.run(run_async(study, broken_later, 3))
    assert isinstance(info.value.__cause__, ValueError)
    told = sum(study.sync().counts)
    assert told + len(study.pending()) == study.spent
    study.withdraw("2")
    run(study, broken)
    assert study.finished
    assert study.spent <= 24


@pytest.mark.parametrize("bad", [0.5, float("nan"), None, "1", float("inf"), np.ones(2)])
def test_a_value_the_model_cannot_use_is_an_error_with_arm_and_value(bad):
    study = fresh(model="logistic")

    async def pull(arm):
        return bad

    for call in (lambda: run(study, lambda arm: bad), lambda: asyncio.run(run_async(study, pull))):
        with pytest.raises(InputError, match=r"arm '\d' was pulled and gave") as info:
            call()
        assert repr(bad) in str(info.value)
        assert not sum(study.sync().counts)
    with pytest.raises(RewardError):
        run(study, lambda arm: 0.5)


def test_what_takes_too_long_is_given_up_and_tried_again():
    study, slow = fresh(budget=8, policy="uniform"), threading.Event()
    first = []

    def pull(arm):
        if not first:
            first.append(arm)
            slow.wait(5)
        return float(arm)

    assert run(study, pull, timeout=0.2) == 8
    slow.set()
    first.clear()

    async def hang(arm):
        if not first:
            first.append(arm)
            await asyncio.sleep(60)
        return float(arm)

    study = fresh(budget=8, policy="uniform")
    assert asyncio.run(run_async(study, hang, timeout=0.1)) == 8
    never = fresh(budget=8)
    with pytest.raises(PullError, match=r"did not finish in 0\.05 seconds"):
        asyncio.run(run_async(never, lambda arm: asyncio.sleep(9), retries=0, timeout=0.05))


def test_cancelling_loses_nothing_and_the_next_run_goes_on():
    study, calls = fresh(policy="uniform"), []

    async def pull(arm):
        calls.append(arm)
        await asyncio.sleep(0.01 if len(calls) < 12 else 60)
        return float(arm)

    async def stop():
        task = asyncio.create_task(study.run_async(pull, concurrency=4))
        while len(calls) < 14:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(stop())
    told = sum(study.sync().counts)
    assert told >= 9
    assert told + len(study.pending()) == study.spent
    assert run(study, value) == 24 - told
    assert study.finished


def test_ctrl_c_waits_for_what_is_under_way():
    study, calls = fresh(), []

    def pull(arm):
        calls.append(arm)
        if len(calls) == 6:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.02)
        return float(arm)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run(study, pull, n_jobs=3)
    assert signal.getsignal(signal.SIGINT) is before
    assert sum(study.sync().counts) == len(calls) == study.spent < 24  # all that was begun came back and is kept
    assert run(study, value) == 24 - len(calls)


def test_a_second_ctrl_c_does_not_wait(tmp_path):
    code = """
        import sys, time
        from bestarm import load_study
        n = 0
        def pull(arm):
            global n
            n += 1
            if n > 4:
                print("waiting", flush=True)
                time.sleep(60)
            return float(arm)
        load_study("s", sys.argv[1]).run(pull)
    """
    path = tmp_path / "s.jsonl"
    fresh(storage=path)
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert child.stdout.readline() == b"waiting\n"
    child.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert child.poll() is None  # it waits
    child.send_signal(signal.SIGINT)
    assert child.wait(10) != 0
    child.stdout.close()
    study = load_study("s", path)
    assert sum(study.sync().counts) == 4
    assert len(study.pending()) == 1
    assert study.run(value) == 20


def test_trials_left_by_a_crash_are_made_first():
    study = fresh()
    left = study.ask(3)
    seen = []
    assert run(study, lambda arm: seen.append(arm) or float(arm)) == 24
    assert seen[:3] == [trial.arm for trial in left]


def test_workers_that_share_a_study_leave_each_other_alone(tmp_path):
    fresh(storage=tmp_path / "s.db", budget=60, policy="uniform")
    made, calls = [], []

    def work():
        def pull(arm):
            calls.append(arm)
            time.sleep(0.002)
            return float(arm)

        made.append(load_study("s", tmp_path / "s.db").run(pull, n_jobs=2, shared=True))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(made) == 60 == len(calls)


def test_settings_that_cannot_be_are_refused():
    study = fresh()
    for bad in ({"n_jobs": 0}, {"retries": -1}):
        with pytest.raises(InputError):
            run(study, value, **bad)
    with pytest.raises(InputError, match="concurrency"):
        asyncio.run(run_async(study, later, concurrency=0))
    assert study.spent == 0


def test_progress_goes_to_stderr_and_says_who_is_ahead(capsys, monkeypatch):
    monkeypatch.setattr("bestarm.progress.SILENT", 0.0)
    monkeypatch.setattr("bestarm.progress.SELDOM", 0.0)
    monkeypatch.setattr("bestarm.study.watching.GUESS", (0.0, 0.0))
    fresh(budget=8).run(value, progress=True)
    asyncio.run(fresh(budget=8).run_async(later, progress=True))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("8 of 8 pulls, ") >= 2
    assert "; ahead: " in err


@pytest.mark.parametrize("way", ["threads", "tasks"])
def test_whoever_wants_to_hears_of_every_value_once_it_is_in_the_log(way):
    study, heard = fresh(budget=9), []

    def hear(study, trial, value):
        heard.append((trial.id, trial.arm, value, len(study.state.results)))

    run(study, value, on_result=hear) if way == "threads" else asyncio.run(run_async(study, later, 3, on_result=hear))
    assert sorted(one[0] for one in heard) == [row["trial"] for row in study.trials()]
    assert all(told == study.state.results[int(id[1:])].sum for id, _, told, _ in heard)
    assert all(count > place for place, (*_, count) in enumerate(heard))


def test_a_listener_that_fails_ends_the_run_and_loses_no_value():
    study = fresh(budget=9)

    def hear(study, trial, value):
        raise ValueError("the tracker is down")

    with pytest.raises(ValueError, match="the tracker is down"):
        run(study, value, n_jobs=3, on_result=hear)
    assert 0 < study.state.total == study.spent < 9
    run(study, value)
    assert study.finished
    with pytest.raises(InputError, match="on_result must be a plain function"):
        run(study, value, on_result=later)
