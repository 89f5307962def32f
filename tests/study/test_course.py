"""A run step by step, under a clock that is put forward by hand: outages, waits, and what is held meanwhile."""

import itertools
import random

import numpy as np
import pytest

from bestarm import create_study
from bestarm.errors import InputError, PullError, StorageError
from bestarm.study import Memory
from bestarm.study.course import PATIENCE, Course, Outcome, WrongKind
from bestarm.study.leases import Life
from bestarm.study.retry import Pace, Retry

FEATURES = np.eye(4) + 0.5


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


class Failing(Memory):
    """A storage whose writes fail while `broken` is set: before anything is written, or after all of it is."""

    broken = written = False
    error = StorageError("the disk is full")

    def append(self, name, records, after=None):
        if self.broken and not self.written:
            raise self.error
        done = super().append(name, records, after)
        if self.broken:
            raise self.error
        return done


class Run:
    """A course whose pulls come back when the test says so."""

    def __init__(self, jobs=2, budget=8, retry=None, pace=None, policy="uniform", **settings):
        self.clock, self.storage = Clock(), Failing(timeout=60.0)
        self.study = create_study(FEATURES, budget, policy, study_name="s", storage=self.storage, seed=2, **settings)
        life = Life(self.storage, "s", 600, self.clock)
        retry = retry or Retry(rng=random.Random(1))
        self.course = Course(self.study, jobs, life, retry, pace or Pace(), clock=self.clock)
        self.study.join(life.runner, jobs)

    def step(self):
        return self.course.step()

    def give(self, trial, value=None, error=None):
        self.course.take([Outcome(trial, self.course.flying[trial.id], value, error)])

    def finish(self):
        """Answer everything until the run is done."""
        for _ in range(1000):
            for trial in self.step():
                self.give(trial, float(trial.arm))
            if self.course.done:
                return self.course.verdict()
            self.clock.now += self.course.pause() + 1e-9
        raise AssertionError("it does not end")


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("error", [StorageError("the disk is full"), OSError(28, "No space left on device")])
def test_values_are_told_again_until_the_storage_works(written, error):
    run = Run(jobs=4)
    first, second, third, fourth = run.step()
    run.storage.broken, run.storage.written, run.storage.error = True, written, error
    run.give(first, 1.0)
    assert not run.step()
    run.clock.now += 10
    run.give(second, 2.0)  # others are collected meanwhile
    run.give(third, error=OSError("no answer"))
    assert not run.step()
    run.clock.now += 40
    assert not run.step()
    assert not run.course.done
    run.storage.broken = False
    run.give(fourth, 4.0)
    assert run.finish() == 8
    assert run.study.sync().total == 8 == run.study.spent
    told = [one for record in run.storage.read("s") if record["kind"] == "tell" for one in record["results"]]
    assert len({one["trial"] for one in told}) == len(told) == 8


def test_the_storage_is_tried_less_and_less_often():
    run = Run()
    (trial, _) = run.step()
    run.storage.broken = True
    run.give(trial, 1.0)
    tries, begun, steps = [], run.clock.now, 0
    append = run.storage.append
    run.storage.append = lambda *given, **more: tries.append(run.clock.now) or append(*given, **more)
    while run.clock.now < begun + 59:
        steps += 1
        assert not run.step()
        run.clock.now += run.course.pause() + 1e-9
    waits = np.diff(tries)
    assert waits[0] <= 0.06
    assert 0.99 <= waits[-1] <= 2.3
    assert 25 < len(tries) < 90
    assert steps <= 2 * len(tries)  # it sleeps in between


@pytest.mark.parametrize("values", [1, 2])
def test_after_the_storages_timeout_one_error_names_trial_arm_and_value(values):
    run = Run()
    trials = run.step()
    run.storage.broken = True
    for trial in trials[:values]:
        run.give(trial, 0.25)
    run.step()
    run.clock.now += 59
    run.step()
    assert not run.course.outage.hopeless(run.clock.now)
    run.clock.now += 2
    run.step()
    assert run.course.done == (values == 2)  # what is under way is waited for
    for trial in trials[values:]:
        run.give(trial, 0.5)
    run.step()
    assert run.course.done
    run.course.end()
    with pytest.raises(StorageError, match="2 values came back and could not be told") as info:
        run.course.verdict()
    for trial in trials:
        assert f"trial {trial.id} of arm '{trial.arm}' gave 0." in str(info.value)
    assert info.value.__cause__ is run.storage.error
    assert not run.study.sync().total


def test_a_value_that_can_be_told_at_the_very_end_is():
    run = Run()
    first, second = run.step()
    run.storage.broken = True
    run.give(first, 0.25)
    run.step()
    run.clock.now += 61
    run.give(second, 0.5)
    run.storage.broken = False
    run.course.end()
    assert run.study.sync().total == 2


def test_nothing_is_begun_while_the_storage_fails():
    run = Run(jobs=2, retry=Retry(backoff=0.01))
    first, second = run.step()
    run.give(second, error=OSError("no answer"))
    run.storage.broken = True
    run.give(first, 1.0)
    for _ in range(20):
        run.clock.now += 1
        assert not run.step()
    run.storage.broken = False
    run.clock.now += 3
    assert run.step()[0] == second


def test_asking_is_tried_again_too_and_trials_that_were_handed_out_all_the_same_are_found():
    run = Run(jobs=2)
    run.storage.broken = run.storage.written = True
    assert not run.step()
    assert run.study.spent == 2  # it was written, though the storage said that it failed
    run.storage.broken = False
    assert run.finish() == 8
    assert run.study.spent == 8
    assert run.study.sync().handed == 8


def test_an_outage_in_which_nothing_came_back_ends_with_its_own_error():
    run = Run()
    run.storage.broken = True
    for _ in range(100):
        run.step()
        run.clock.now += max(run.course.pause(), 0.7)
    assert run.course.done
    with pytest.raises(StorageError, match="the disk is full"):
        run.course.verdict()


def test_an_error_that_time_cannot_mend_is_not_waited_for():
    run = Run()
    first, second = run.step()
    run.study.write = lambda make: (_ for _ in ()).throw(RuntimeError("a defect"))
    run.give(first, 1.0)
    run.give(second, 2.0)
    run.step()
    assert run.course.done
    with pytest.raises(StorageError, match=r"2 values came back.*a defect.*trial T0001"):
        run.course.verdict()


def test_a_failed_pull_waits_and_holds_its_trial_while_others_are_made():
    run = Run(jobs=1, retry=Retry(backoff=8.0))
    (failing,) = run.step()
    run.give(failing, error=OSError("no answer"))
    made = []
    for trial in (trial for _ in range(7) for trial in run.step()):
        made.append(trial)
        run.give(trial, 1.0)
    assert len(made) == 7
    assert not run.step()
    assert [trial.id for trial in run.study.pending()] == [failing.id]
    run.clock.now += 3.9
    assert not run.step()
    run.clock.now += 4.2
    assert run.step() == [failing]


@pytest.mark.parametrize("stopping", [False, True])
def test_who_waits_for_pulls_under_way_sleeps_though_others_are_due(stopping):
    run = Run(jobs=1, retry=Retry(backoff=1.0, rng=random.Random(1)))
    (first,) = run.step()
    run.give(first, error=OSError("no answer"))
    (second,) = run.step()
    run.course.stopping = stopping
    run.clock.now += 100
    assert second != first
    assert run.course.pause() > 0.1


def test_no_more_pulls_wait_than_are_made_at_a_time():
    run = Run(jobs=3, budget=40, retry=Retry(backoff=8.0))
    begun = []
    for _ in range(10):
        for trial in run.step():
            begun.append(trial)
            run.give(trial, error=OSError("the service is down"))
    assert len(begun) == 6
    assert run.study.spent == 6


def test_a_wait_that_an_error_asks_for_is_kept_to_and_none_of_the_retries():
    run = Run(jobs=1, retry=Retry(retries=0))
    (trial,) = run.step()
    for _ in range(5):
        error = OSError("429")
        error.retry_after = 30
        run.give(trial, error=error)
        run.clock.now += 29.9
        assert trial not in run.step()
        run.course.flying = {trial.id: 0} if trial.id in run.course.flying else {}
        run.clock.now += 3.2
        assert trial in run.step()
        run.course.flying = {trial.id: run.course.flying[trial.id]}
    assert not run.study.sync().failures


def test_a_pace_holds_for_all_pulls_of_the_run():
    run = Run(jobs=8, budget=40, pace=Pace(2.0))
    begun = []
    while not run.course.done:
        for trial in run.step():
            begun.append(run.clock.now)
            run.give(trial, 1.0)
        run.clock.now += max(run.course.pause(), 0.001)
    assert len(begun) == 40
    assert begun[-1] - begun[0] >= 39 / 2 - 0.1
    assert all(b - a >= 0.44 for a, b in itertools.pairwise(begun))


def test_a_trial_that_somebody_else_answered_is_not_made_again():
    run = Run(jobs=1, retry=Retry(backoff=8.0))
    (failing,) = run.step()
    run.give(failing, error=OSError("no answer"))
    run.study.tell(failing, 3.0)
    run.clock.now += 10
    assert failing not in run.step()


def test_a_trial_told_by_others_meanwhile_counts_as_theirs():
    run = Run(jobs=2)
    first, second = run.step()
    run.study.tell(first, 9.0)
    run.give(first, 1.0)  # another value: the first that was told stays, and that is no error
    run.give(second, 1.0)
    assert run.finish() == 7
    assert run.study.sync().results[1].sum == 9.0


def test_the_value_of_an_attempt_that_was_given_up_is_used_if_it_comes_first():
    run = Run(jobs=1, retry=Retry(backoff=8.0))
    (trial,) = run.step()
    attempt = run.course.flying[trial.id]
    run.give(trial, error=PullError("did not finish"))
    run.course.take([Outcome(trial, attempt, 5.0)])
    run.course.take([Outcome(trial, attempt, error=PullError("once more"))])
    run.clock.now += 10
    assert trial not in run.step()
    assert run.study.sync().results[1].sum == 5.0


def test_finishing_the_study_ends_the_run_after_what_is_under_way():
    run = Run(jobs=2)
    first, second = run.step()
    run.give(first, error=OSError("no answer"))
    run.study.finish()
    run.give(second, 1.0)
    run.clock.now += 10
    assert not run.step()
    assert run.finish() == 1


def test_of_several_bad_values_the_first_is_the_error():
    run = Run(jobs=4)
    bad = run.step()
    for trial, value in zip(bad, ["x" * 10_000, None, 1e200, 1.0], strict=True):
        run.give(trial, value)
    assert not run.step()
    assert run.course.done
    with pytest.raises(
        InputError, match=r"arm '\d' was pulled and gave 'xx.*trial T0001: a number is expected"
    ) as info:
        run.course.verdict()
    assert len(str(info.value)) < 12_000
    assert info.value.__cause__ is None
    assert run.study.sync().total == 1  # the good one is kept


def test_a_pull_of_the_wrong_kind_keeps_its_value():
    run = Run(jobs=1)
    (trial,) = run.step()
    run.give(trial, 3.0, WrongKind("no awaitable"))
    run.step()
    assert run.course.done
    assert run.study.sync().total == 1
    with pytest.raises(InputError, match="no awaitable"):
        run.course.verdict()


def test_a_retry_on_that_raises_ends_the_run_by_its_error():
    run = Run(jobs=1, retry=Retry.of(2, lambda error: 1 / 0, 0))
    (trial,) = run.step()
    run.give(trial, error=OSError())
    assert run.course.done
    with pytest.raises(ZeroDivisionError):
        run.course.verdict()


def test_failures_are_told_again_too():
    run = Run(jobs=1, retry=Retry(retries=0))
    (trial,) = run.step()
    run.storage.broken = True
    run.give(trial, error=OSError("no answer"))
    assert not run.step()
    run.storage.broken = False
    run.clock.now += 1
    assert run.finish() == 8
    assert [failure["reason"] for failure in run.study.sync().failures] == ["OSError: no answer"]


def test_long_reasons_are_shortened():
    run = Run(jobs=1, retry=Retry(retries=0))
    (trial,) = run.step()
    run.give(trial, error=OSError("x" * 100_000))
    run.finish()
    assert len(run.study.sync().failures[0]["reason"]) == 1000


def test_an_arm_fails_in_a_row_only_while_nothing_of_it_comes():
    run = Run(jobs=1, budget=40, retry=Retry(retries=0))
    failures = 0
    for _ in range(60):
        for trial in run.step():
            bad = trial.arm == "2" and failures % PATIENCE != PATIENCE - 1
            failures += trial.arm == "2"
            run.give(trial, None if bad else 1.0, OSError("no answer") if bad else None)
    assert run.course.error is None
    assert len(run.study.sync().failures) > PATIENCE


def test_what_to_say_at_the_end_names_what_was_spent_and_how_to_go_on(monkeypatch):
    run = Run(jobs=3)
    first, *_ = run.step()
    run.give(first, 1.0)
    run.course.stopping = True
    run.step()
    spent = "stopped with 3 of 8 spent; every value that came back is kept"
    assert run.course.summary() == spent  # what is in memory ends with the process
    monkeypatch.setattr(run.study.storage, "place", "lab.jsonl")
    later = "run again to go on; 2 of the trials that were handed out come first then"
    assert run.course.summary() == f"{spent}; {later}"


def test_runners_joined_plan_as_many_together_as_they_make_at_a_time():
    run = Run(jobs=6, budget=200, policy=None)
    run.study.join("another-one", 10)
    run.step()
    rounds = []
    while not run.study.finished:
        for trial in run.step() or run.study.ask(10) or ():
            run.study.tell(trial, float(trial.arm))
        run.course.flying.clear()
        rounds = [one.length for one in run.study.state.history]
        if len(rounds) > 3:
            break
        for trial in run.study.pending():
            run.study.tell(trial, float(trial.arm))
    assert rounds[1:3] == [16, 16]
    assert {record["jobs"] for record in run.storage.read("s") if record["kind"] == "runner"} == {6, 10}


def test_a_studys_own_batch_stays():
    lengths = []
    for jobs in (1, 8):
        run = Run(jobs=jobs, budget=200, policy=None, batch=96)
        run.finish()
        lengths.append([one.length for one in run.study.sync().history])
    assert lengths[0] == lengths[1]
    assert min(lengths[0]) > 60


def slow_pulls(budget, **settings):
    """A run that gives every pull up: each runs on, and gives its value a step later."""
    run, late, begun = Run(jobs=1, budget=budget, retry=Retry(0, rng=random.Random(1)), **settings), [], []
    for _ in range(1000):
        for trial in run.step():
            begun.append(trial.id)
            attempt = run.course.flying[trial.id]
            run.course.take([Outcome(trial, attempt, error=TimeoutError("slow"), adrift=True)])
            late.append(Outcome(trial, attempt, float(trial.arm)))
        if run.course.done:
            return run, late, begun
        if len(late) > 1:
            run.course.take([late.pop(0)])
        run.clock.now += run.course.pause() + 1e-9
    raise AssertionError("it does not end")


@pytest.mark.parametrize("budget", [4, 5, 8, 30])
def test_an_arm_that_only_takes_too_long_ends_the_run_though_its_values_come_late(budget):
    run, late, begun = slow_pulls(budget)
    with pytest.raises(PullError, match=r"3 trials in a row|still run"):
        run.course.verdict()
    run.course.take(late)
    run.course.end()
    assert len(begun) <= min(budget, 2 * len(FEATURES) + 1)
    assert run.study.sync().total == len(begun) <= run.study.spent <= budget


def test_no_more_is_begun_than_is_left_beside_what_was_given_up_and_runs_on():
    run = Run(jobs=1, budget=4, retry=Retry(0, rng=random.Random(1)))
    begun = []
    while not run.course.done:
        for trial in run.step():
            begun.append(trial.id)
            if len(begun) == 1:
                outcome = Outcome(trial, run.course.flying[trial.id], error=TimeoutError("slow"), adrift=True)
                run.course.take([outcome])
            else:
                run.give(trial, 1.0)
        run.clock.now += run.course.pause() + 1e-9
    with pytest.raises(PullError, match="still run, and 1 of the budget is kept for what they give"):
        run.course.verdict()
    assert len(begun) == 4
    assert run.study.spent == 3
