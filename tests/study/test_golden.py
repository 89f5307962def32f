"""Logs that earlier bestarms wrote are read for ever, with the same arms behind the same trials."""

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bestarm.errors import InputError, StorageError
from bestarm.study import Study, load_study, open_storage
from bestarm.study.naming import locate, result_of
from bestarm.study.salvage import salvage

GOLDEN = Path(__file__).parent / "golden"
EXPECTED: dict[str, dict[str, Any]] = json.loads((GOLDEN / "v1" / "expected.json").read_text())
WITHOUT_ALGEBRA = {
    "uniform",
    "sequential-halving",
    "successive-rejects",
    "closed-round",
    "poisson",
    "over",
    "means",
    "costs",
}
PINNED = ("before", "after")


def opened(name: str, folder: Path, upgraded: bool = False) -> Study:
    """A copy of a golden log of version 1."""
    shutil.copy(GOLDEN / "v1" / f"{name}.jsonl", folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = load_study(name, folder / f"{name}.jsonl")
        if upgraded:
            assert study.log.upgrade()
            study = load_study(name, folder / f"{name}.jsonl")
    return study


@pytest.mark.parametrize("pinned", PINNED)
@pytest.mark.parametrize("name", EXPECTED)
def test_what_was_told_in_version_1_stands(name: str, pinned: str, tmp_path: Path) -> None:
    study, expected = opened(name, tmp_path, pinned == "after"), EXPECTED[name]
    state = study.state
    told = {old: state.ids[result_of(state, old).arm] for old in expected["told"]}
    assert told == expected["told"]
    assert (state.counts, state.sums, state.squares) == (expected["counts"], expected["sums"], expected["squares"])
    assert (state.used, state.budget, study.arms) == (expected["spent"], expected["budget"], tuple(expected["arms"]))


@pytest.mark.parametrize("pinned", PINNED)
@pytest.mark.parametrize("name", EXPECTED)
def test_open_trials_of_version_1_are_of_their_arms(name: str, pinned: str, tmp_path: Path) -> None:
    study, expected = opened(name, tmp_path, pinned == "after"), EXPECTED[name]
    pending = [[old, study.state.ids[study.state.arm_of(locate(study.state, old))]] for old, _ in expected["pending"]]
    assert len(study.pending()) == len(expected["pending"])
    if name in WITHOUT_ALGEBRA:  # the others are as computed here, which may be another machine
        assert pending == expected["pending"]


@pytest.mark.parametrize("name", EXPECTED)
def test_answers_of_version_1_are_the_same_within_rounding(name: str, tmp_path: Path) -> None:
    study, expected = opened(name, tmp_path), EXPECTED[name]
    if expected["answer"] is None:
        return
    answer = study.recommend()
    assert answer.arm == expected["answer"]["arm"]
    assert answer.leader == expected["answer"]["leader"]
    for key in ("value", "corrected", "p_best"):
        np.testing.assert_allclose(getattr(answer, key), expected["answer"][key], rtol=1e-4, atol=0.02)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_study_of_version_1_goes_on_to_its_end(name: str, tmp_path: Path) -> None:
    study = opened(name, tmp_path)
    before = [study.state.ids[result.arm] for result in study.state.told]
    rng = np.random.default_rng(3)
    for trial in study.pending():
        study.tell(trial, float(rng.integers(2)))
    while (batch := study.ask()) is not None:
        assert batch, "nothing is out"
        study.tell(batch, rng.integers(2, size=len(batch)).astype(float))
    again = load_study(name, tmp_path / f"{name}.jsonl")
    assert again.spent <= again.budget
    assert again.state.sums == study.state.sums
    assert [again.state.ids[result.arm] for result in again.state.told][: len(before)] == before


def test_version_1_says_once_that_open_plans_are_computed_again(tmp_path: Path) -> None:
    shutil.copy(GOLDEN / "v1" / "batches.jsonl", tmp_path)
    place = tmp_path / "batches.jsonl"
    with pytest.warns(UserWarning, match="version 1: which arms its 3 open trials"):
        study = load_study("batches", place)
    lines = len(place.read_text().splitlines())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study.tell(study.pending().trials[0], 1.5)
        load_study("batches", place)
    kinds = [record["kind"] for record in open_storage(place).read("batches")][lines:]
    assert kinds == ["upgrade", "tell"]


# version 2: trial to arm, counts and sums exactly, everywhere


def newest(name: str, folder: Path, **settings: Any) -> Study:
    """A copy of a golden log of version 2, with the table it refers to."""
    for file in (GOLDEN / "v2").iterdir():
        shutil.copy(file, folder)
    return load_study(name, folder / f"{name}.jsonl", **settings)


ARMS = ["A1", "A2", "A3", "A4", "A5", "A6", "A1", "A4", "A5", "A2", "A7", "A1", "A7", "A6", "A4", "A7"]
COUNTS = [3.0, 1.0, 4.0, 1.0, 11.0, 2.0, 2.0]
SUMS = [14.0, 3.5, 8.0, 6.0, 11.5, 12.9, 2.5]
SQUARES = [66.0, 12.25, 16.75, 36.0, 27.25, 107.01, 3.25]


def test_every_kind_and_place_of_version_2_is_read(tmp_path: Path) -> None:
    state = newest("everything", tmp_path).state
    assert [state.ids[state.arm_of(trial)] for trial in range(1, state.handed + 1)] == ARMS
    assert (state.counts, state.sums, state.squares) == (COUNTS, SUMS, SQUARES)
    assert state.present == [True] * 7
    assert (state.used, state.budget, state.open_trials()) == (16.0, 80, [15, 16])
    assert state.finished_by_hand
    assert not state.runners
    assert state.holders[11] == ("r2", 600.0)
    assert state.results[6].sum == 9.9
    assert state.originals[6].sum == 99.0
    assert state.results[2].excluded
    assert state.results[1].block == "monday"
    assert state.added == {6: {"code": "A7", "ph": "8.0", "salt": "0.2"}}
    assert state.failed == {5}
    assert state.handed_back == {8}
    assert len(state.troubles) == 1
    assert (state.wells[2], state.wells[7]) == ("A2", "B1")
    assert state.files["old.csv"].ids == ("mine-1", "mine-2")


def test_what_counts_say_and_where_plates_have_their_trials_is_read(tmp_path: Path) -> None:
    state = newest("counts", tmp_path).state
    assert (state.counts, state.sums) == ([5.0, 2.0, 4.0], [3.0, 1.0, 2.0])
    assert (state.used, state.open_trials()) == (13.0, [5, 6, 7, 8, 9, 10, 11])
    assert [state.ids[state.arm_of(trial)] for trial in range(1, 12)] == list("abcabcabcac")
    assert [state.wells[trial] for trial in (1, 2, 6, 7, 11)] == ["B2", "A1", "B1", "A1", "B1"]
    assert [state.plates[trial] for trial in (1, 6, 7, 11)] == [1, 1, 2, 2]
    assert (state.plate, state.options["plate"]) == (2, [2, 3])
    assert state.files["clicks.csv"].ids == (1, 2)
    assert state.heard == {1: [1, "file:clicks.csv:c:1", "more-1"]}


def test_repeats_that_a_plate_took_along_come_before_the_rest_of_the_plan(tmp_path: Path) -> None:
    study = newest("repeats", tmp_path)
    state = study.state
    assert "".join(state.ids[state.arm_of(trial)] for trial in range(1, 14)) == "abcabc" + "cab" + "bcab"
    assert (state.counts, state.sums, state.used) == ([2.0, 2.0, 1.0], [2.5, 0.75, 2.0], 11.0)
    assert state.open_trials() == [4, 6, 9, 11, 12, 13]
    assert [trial.arm for trial in study.ask()] == list("cabcaa")  # the rest of the plan, which nothing waits for
    assert study.ask().trials[0].arm == "a"
    assert len(study.ask()) == 0
    # somebody's log is damaged in between: what is told says which arm it was
    new = tmp_path / "new.jsonl"
    lines = (tmp_path / "repeats.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "repeats.jsonl").write_text("".join(lines[:2] + lines[3:]))
    assert any("record 2" in said for said in salvage("repeats", tmp_path / "repeats.jsonl", new))
    assert load_study("repeats", new).state.sums == state.sums


def test_every_kind_is_in_the_golden_log_of_version_2() -> None:
    from bestarm.study.kinds import FIRST, LATER

    lines = (GOLDEN / "v2" / "everything.jsonl").read_text().splitlines()
    assert {json.loads(line)["record"]["kind"] for line in lines} == {*FIRST, *LATER}


def test_a_study_whose_policy_is_elsewhere_is_told_and_answered_and_only_asking_refuses(tmp_path: Path) -> None:
    study = newest("everything", tmp_path)
    study.undo()
    assert study.tell({trial.id: 2.0 for trial in study.pending()}) == 2
    assert study.state.sums == [14.0, 3.5, 8.0, 8.0, 11.5, 12.9, 4.5]
    assert study.recommend().arm in study.arms
    assert study.best_arm in study.arms
    study.report(tmp_path / "report.html")
    before = study.state.records
    with pytest.raises(InputError, match="of the package 'elsewhere', which may not be imported"):
        study.ask()
    with pytest.raises(InputError, match="cannot be imported: No module named 'elsewhere'"):
        load_study("everything", tmp_path / "everything.jsonl", allow="elsewhere").ask()
    assert study.sync().records == before


def test_a_table_a_log_refers_to_is_looked_for_where_one_says_and_must_be_the_same(tmp_path: Path) -> None:
    study = newest("everything", tmp_path)
    (tmp_path / "moved").mkdir()
    moved = (tmp_path / "plates.csv").rename(tmp_path / "moved" / "plates.csv")
    with pytest.raises(StorageError, match=r"plates\.csv is not there; name the table's place by arms="):
        load_study("everything", tmp_path / "everything.jsonl")
    assert load_study("everything", tmp_path / "everything.jsonl", arms=moved).state.sums == study.state.sums
    moved.write_text(moved.read_text().replace("6.5", "6.4"))
    with pytest.raises(StorageError, match="not the table this study was made with"):
        load_study("everything", tmp_path / "everything.jsonl", arms=moved)


def test_what_was_asked_in_version_2_is_what_the_plan_says_whatever_the_policy_would_ask_here(tmp_path: Path) -> None:
    study = newest("inline", tmp_path)
    assert [trial.arm for trial in study.pending()] == ["c", "c"]
    assert [trial.arm for trial in study.ask()] == ["c"]
    assert study.state.sums == [1.0, 0.0, 0.0]


def test_later_kinds_of_record_are_refused_with_the_version_they_need(tmp_path: Path) -> None:
    study = newest("inline", tmp_path)
    study.storage.append("inline", [{"kind": "dream", "time": 0.0, "version": 7}])
    with pytest.raises(StorageError, match="record 3 is of an unknown kind, 'dream', which needs log version 7"):
        load_study("inline", tmp_path / "inline.jsonl")
