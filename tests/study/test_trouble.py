"""A policy that breaks is a record in the log: what was told is kept, and the study goes on, without it if need be."""

import numpy as np
import pytest

from bestarm import Arms
from bestarm.errors import InputError
from bestarm.study import Memory, create_study, load_study
from bestarm.study.doctor import examine
from bestarm.study.report import page
from tests.study.raising import NONSENSE, Asks, Breaks
from tests.study.test_poison import PLAIN, answered, reread


def broken(**settings):
    return create_study(PLAIN, 30, Breaks(**settings), study_name="s", storage=Memory(), seed=3)


def finish(study, value=1.0):
    """Ask and tell till the end; return how many pulls were made."""
    made = 0
    while (batch := study.ask()) is not None:
        assert batch
        study.tell(batch, [value] * len(batch))
        made += len(batch)
    return made


@pytest.mark.parametrize("where", ["start", "ask"])
def test_a_study_whose_policy_cannot_ask_once_does_not_begin(where):
    storage = Memory()
    with pytest.raises(InputError, match=f"Breaks cannot start with these arms: broken in {where}"):
        create_study(PLAIN, 30, Breaks(where=where), study_name="s", storage=storage)
    assert storage.names() == []


@pytest.mark.parametrize("where", ["ask", "tell"])
@pytest.mark.parametrize("error", ["ValueError", "ZeroDivisionError", "IndexError", "RecursionError", "LinAlgError"])
def test_a_policy_that_breaks_keeps_what_was_told_and_the_study_goes_on(where, error):
    study = broken(where=where, after=2, error=error)
    assert finish(study) == study.spent == 30
    assert int(study.state.total) == 30
    assert study.finished
    said = f"policy failed: {error}: broken in {where} after 2"
    assert set(study.state.troubles) == {said}
    troubles = [record for record in study.storage.read("s") if record["kind"] == "trouble"]
    assert [record["why"] for record in troubles] == study.state.troubles
    assert any(said in warning for warning in study.recommend(draws=100).warnings)
    if error == "ValueError":  # a page is drawn in as long as all the rest takes
        assert said in page(study)
    assert any(said in finding.says for finding in examine(study.storage))
    reread(study)
    answered(study)


def test_a_policy_that_broke_is_started_anew_with_what_is_left():
    study = broken(where="ask", after=3)
    begun = []
    for _ in range(4):
        batch = study.ask()
        begun.append(study.state.history[study.state.epoch].begin)
        study.tell(batch, [1.0] * len(batch))
    assert [one["pulls"] for one in begun] == [30, 30, 30, 12]
    assert [record["then"] for record in study.storage.read("s") if record["kind"] == "trouble"] == ["anew"]
    assert not study.state.evenly


def test_arms_are_spread_evenly_where_a_policy_breaks_at_once_again():
    study = broken(where="start", most=29, beyond=5.0)
    batch = study.ask()
    assert study.tell(batch, [9.0] * len(batch)) == 6
    rest = study.ask()
    assert [record["then"] for record in study.storage.read("s") if record["kind"] == "trouble"] == ["anew", "evenly"]
    assert len(rest) == 24
    assert set(rest.counts.values()) == {4}
    study.tell(rest, [1.0] * 24)
    assert study.ask() is None
    assert "arms were spread evenly" in " ".join(study.recommend(draws=100).warnings)


def test_a_policy_that_breaks_again_and_again_is_left_in_the_end():
    study = broken(where="ask", after=1)
    assert finish(study) == 30
    assert len(study.state.troubles) == 3
    assert study.state.evenly


def test_arms_spread_evenly_are_those_measured_least_first_and_within_the_money():
    table = Arms.from_arrays(PLAIN, cost=np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0]))
    study = create_study(table, 60, Breaks(where="ask", after=1), study_name="s", storage=Memory(), seed=3)
    finish(study)
    assert 57 < study.spent <= 60
    counts = study.state.counts
    assert max(counts) - min(counts) <= 2


def test_new_arms_or_a_larger_budget_go_on_after_trouble():
    study = broken(where="ask", after=1)
    finish(study)
    study.raise_budget(42)
    assert finish(study) == 12
    study.add_arms(Arms.from_arrays(np.ones((1, 3)), ids=["new"], names=study.state.names))
    assert not study.state.evenly  # the arms are others: the policy has another chance
    study.raise_budget(56)
    assert finish(study) == 14
    assert study.state.counts[-1] > 0
    reread(study)


def test_corrections_reach_a_policy_that_broke_on_what_is_put_right():
    study = broken(beyond=100.0)
    batch = study.ask()
    study.tell(batch, [1.0, 2.0, 3000.0, 1.0, 1.0, 1.0])
    study.amend(batch.trials[2], 3.0, why="a typing error")
    assert study.ask()
    assert study.state.troubles == []


@pytest.mark.parametrize("where", ["ask", "tell", "start"])
@pytest.mark.parametrize("error", ["MemoryError", "ImportError", "ModuleNotFoundError"])
def test_what_is_missing_on_one_machine_is_not_the_policy_s_failure(where, error):
    study = broken(where=where, after=0 if where == "start" else 2, error=error, most=25)
    for _ in range(3 if where == "tell" else 2):
        batch = study.ask()
        study.tell(batch, [1.0] * len(batch))
    if where == "start":
        study.withdraw("1")
    records = list(study.storage.read("s"))
    with pytest.raises(InputError, match=f"cannot be run here: {error}"):
        study.ask()
    assert list(study.storage.read("s")) == records
    assert study.tell(arm="2", values=5.0) == 1
    answered(study)


def test_a_person_who_interrupts_a_policy_leaves_the_study_as_it_was():
    study = broken(where="ask", after=1, error="KeyboardInterrupt")
    batch = study.ask()
    study.tell(batch, [1.0] * len(batch))
    records = list(study.storage.read("s"))
    with pytest.raises(KeyboardInterrupt):
        study.ask()
    assert list(study.storage.read("s")) == records


def test_a_policy_without_an_answer_leaves_it_to_the_results():
    study = broken(where="recommend")
    finish(study, 2.0)
    assert study.state.troubles == []
    assert study.best_arm in study.arms
    assert any("no answer of its own" in said for said in study.recommend(draws=100).warnings)


@pytest.mark.parametrize("what", sorted(NONSENSE))
def test_what_cannot_be_handed_out_is_the_policy_s_failure(what):
    study = create_study(PLAIN, 12, Asks(what, after=1), study_name="s", storage=Memory(), seed=3)
    assert finish(study) == 12
    assert study.state.troubles
    assert study.state.evenly
    reread(study)


def test_a_study_whose_policy_may_not_be_imported_is_read_told_and_answered():
    study = broken()
    batch = study.ask()
    other = load_study("s", study.storage)
    assert other.tell(batch, [1.0] * len(batch)) == 6
    with pytest.raises(InputError, match=r"allow='tests'"):
        other.ask()
    assert other.recommend(draws=100).told == 6
    assert other.best_arm in other.arms
    assert page(other)
    assert load_study("s", study.storage, allow=["tests"]).ask()
