"""The checker of crowds finds what it is there to find: each law is broken once, in a log or in what was told."""

import copy
import random

import pytest

from bestarm.study import Memory, create_study, load_study
from tests.study.checker import Call, check, in_turn, read_log

FEATURES = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, -1.0]]


@pytest.fixture(scope="module")
def crowd():
    """The log of a study and what its three workers were told, one call after the other."""
    storage, rng, calls, time = Memory(), random.Random(4), [], 0.0
    create_study(FEATURES, 40, "gse-lin-fwg", study_name="s", storage=storage, seed=1)
    studies = {name: load_study("s", storage) for name in ("ann", "bob", "cyd")}
    held = {name: [] for name in studies}
    values = iter(range(10_000))
    while True:
        worker = rng.choice(sorted(studies))
        study = studies[worker]
        time += 1
        if not held[worker]:
            n = rng.randint(1, 4)
            batch = study.ask(n, worker)
            calls.append(Call(worker, "ask", {"n": n}, {"trials": [[t.id, t.arm] for t in batch or ()]}, time, time))
            if batch is None:
                break
            held[worker] = list(batch)
        elif rng.random() < 0.3:
            trial = held[worker].pop()
            study.fail(trial, "spilt", source=worker)
            calls.append(Call(worker, "fail", {"trial": trial.id}, {}, time, time))
        else:
            told = [(trial.id, next(values) / 1024) for trial in held[worker]]
            held[worker] = []
            calls.append(_tell(study, worker, told, time))
            if rng.random() < 0.3:  # once more, as somebody does who did not get the answer
                calls.append(_tell(study, worker, told[:1], time, 0))
        calls.append(Call(worker, "look", {}, _seen(study), time + 0.5, time + 0.6))
    return list(storage.read("s")), calls


def _tell(study, worker, told, time, expected=None):
    new = study.tell(dict(told), source=worker)
    assert expected in (None, new)
    return Call(worker, "tell", {"values": [list(one) for one in told]}, {"new": new}, time, time)


def _seen(study):
    state = study.sync()
    return {"total": int(state.total), "records": state.records}


def of(records, kind):
    return [record for record in records if record["kind"] == kind]


def swapped(calls, which, **changes):
    """The calls, one of them with another answer."""
    place = next(i for i, call in enumerate(calls) if which(call))
    one = calls[place]
    answer = None if changes.get("answer", {}) is None else {**one.answer, **changes.get("answer", {})}
    new = Call(one.worker, one.verb, changes.get("given", one.given), answer, one.began, one.ended)
    return [*calls[:place], new, *calls[place + 1 :]]


def test_a_log_that_is_as_it_should_be_is_passed(crowd):
    records, calls = crowd
    assert check(records, calls) == []
    assert len(of(records, "fail")) > 1
    assert len(of(records, "ask")) > 5
    study = create_study(FEATURES, 40, "gse-lin-fwg", study_name="t", storage=Memory(), seed=1)
    study.storage.append("t", [{**record} for record in records[1:]])
    assert read_log(records).spent[-1] == study.spent


def test_a_plan_is_handed_out_in_turns():
    assert in_turn([[7, 2], [4, 1], [5, 3]]) == [7, 4, 5, 7, 5, 5]


def test_a_result_that_is_lost_is_found(crowd):
    records, calls = crowd
    records = copy.deepcopy(records)
    lost = of(records, "tell")[2]["results"].pop()
    said = check(records, calls)
    assert any(f"told trial {lost['trial']}, which is not in the log" in one for one in said)


def test_a_whole_record_that_is_lost_is_found(crowd):
    records, calls = crowd
    for kind in ("tell", "ask"):
        gone = of(records, kind)[-1]
        assert check([record for record in records if record is not gone], calls)


def test_a_value_that_changed_is_found(crowd):
    records, calls = crowd
    records = copy.deepcopy(records)
    of(records, "tell")[0]["results"][0]["value"] += 1.0
    assert any("which nobody told" in one for one in check(records, calls))


def test_a_value_under_another_arm_is_found(crowd):
    records, calls = crowd
    records = copy.deepcopy(records)
    one = of(records, "tell")[0]["results"][0]
    one["arm"] = (one["arm"] + 1) % 4
    assert any("was told as of arm" in said for said in check(records, calls))


def test_a_result_acknowledged_twice_is_found(crowd):
    """Two workers tell one trial, and both are told that theirs is new."""
    records, calls = crowd
    first = next(call for call in calls if call.verb == "tell")
    twice = Call("bob", "tell", {"values": [[first.given["values"][0][0], 9.5]]}, {"new": 1}, 0.0, 0.0)
    assert any("are new; the log counts 0" in one for one in check(records, [*calls, twice]))
    honest = Call("bob", "tell", twice.given, {"new": 0}, 0.0, 0.0)
    assert check(records, [*calls, honest]) == []


def test_a_return_value_that_is_too_small_is_found(crowd):
    records, calls = crowd
    calls = swapped(calls, lambda call: call.verb == "tell", answer={"new": 0})
    assert any("are new; the log counts" in one for one in check(records, calls))


def test_a_trial_handed_to_two_workers_is_found(crowd):
    records, calls = crowd
    first = next(call for call in calls if call.verb == "ask" and call.worker == "ann")
    again = Call("bob", "ask", {}, first.answer, first.began, first.ended)
    assert any("was handed to ann and to bob" in one for one in check(records, [*calls, again]))


def test_an_arm_that_is_another_in_somebody_s_eyes_is_found(crowd):
    records, calls = crowd
    first = next(call for call in calls if call.verb == "ask")
    (name, arm), *rest = first.answer["trials"]
    other = [[name, "1" if arm != "1" else "2"], *rest]
    calls = swapped(calls, lambda call: call is first, answer={"trials": other})
    assert any(f"{name} is of arm {arm} in the log" in one for one in check(records, calls))


def test_a_budget_that_is_exceeded_is_found(crowd):
    records, calls = crowd
    records = copy.deepcopy(records)
    records[0]["budget"] = 12
    assert any("are spent of 12" in one for one in check(records, calls))


def test_a_trial_handed_out_twice_in_the_log_is_found(crowd):
    records, calls = crowd
    ask = of(records, "ask")[0]
    assert any("was handed out twice" in one for one in check([*records, ask], calls))


def test_a_look_that_misses_what_was_acknowledged_is_found(crowd):
    records, calls = crowd
    last = [call for call in calls if call.verb == "look"][-1]
    late = swapped(calls, lambda call: call is last, answer={"total": 1})
    assert any("saw 1 results when" in one for one in check(records, late))
    back = swapped(calls, lambda call: call is last, answer={"records": 1})
    assert any("and later 1" in one for one in check(records, back))


def test_a_call_that_was_cut_short_may_be_in_the_log_or_not(crowd):
    """Its worker was killed before it knew: both are right, but nothing else of it may be there."""
    records, calls = crowd
    calls = [call for call in calls if call.verb != "tell" or call.answer["new"]]
    last = next(call for call in reversed(calls) if call.verb == "tell")
    cut = swapped(calls, lambda call: call is last, answer=None)
    assert check(records, cut) == []
    gone = of(records, "tell")[-1]
    assert check([record for record in records if record is not gone], cut) == []
    ask = next(call for call in reversed(calls) if call.verb == "ask" and call.answer["trials"])
    assert check(records, swapped(calls, lambda call: call is ask, answer=None)) == []
