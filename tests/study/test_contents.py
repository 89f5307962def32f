"""Rows of files that name no trial: known by a key, or by the name of the file and what it says."""

import hashlib
import json
import shutil
from collections import Counter
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from bestarm import load_study
from bestarm.study.files import (
    Received,
    import_file,
    tell_file,
)
from tests.study.filing import FEW, begin, by_arm, counted, file, length, refused

GOLDEN = Path(__file__).parent / "golden" / "v1"


# results that name only their arms

rows = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([0.0, 1.0, 1.5, -2.0])), min_size=1, max_size=8)


@FEW
@given(values=rows, chance=st.randoms(use_true_random=False))
def test_a_file_counts_once_in_any_order_of_its_rows(values, chance):
    study = begin()
    assert tell_file(study, by_arm(values), "x.csv").new == len(values)
    other = list(values)
    chance.shuffle(other)
    before = length(study)
    for tell in (tell_file, import_file):
        got = tell(study, by_arm(other), "x.csv")
        assert (got.new, got.known, length(study)) == (0, len(values), before)
    assert counted(study) == Counter(values)
    assert tell_file(study, by_arm(other), "x.csv", as_="y.csv").new == len(values)
    assert counted(study) == Counter(values + values)
    assert tell_file(study, by_arm(values), "y.csv").new == 0


@FEW
@given(contents=st.lists(rows, min_size=2, max_size=4))
def test_a_corrected_file_counts_as_what_it_says_last(contents):
    study = begin()
    import_file(study, by_arm([("d", 9.0)]), "other.csv")
    for values in contents:
        differs = counted(study) not in (Counter([("d", 9.0)]), Counter([*values, ("d", 9.0)]))
        if differs:
            error = refused(study, by_arm(values), "--correct .* --cumulative .* --as NAME")
            assert error.differences
        tell_file(study, by_arm(values), "x.csv", correct=True)
        assert counted(study) == Counter([*values, ("d", 9.0)])
        assert counted(load_study("s", study.storage)) == counted(study)
        before = length(study)
        assert tell_file(study, by_arm(values), "x.csv", correct=True).corrected == 0
        assert tell_file(study, by_arm(values), "x.csv").known == len(values)
        assert length(study) == before


@FEW
@given(values=rows, more=rows, other=rows)
def test_a_cumulative_file_adds_what_goes_beyond_it_and_contradicts_nothing(values, more, other):
    study = begin()
    assert tell_file(study, by_arm(values), "x.csv", cumulative=True).new == len(values)
    got = tell_file(study, by_arm([*more, *values]), "x.csv", cumulative=True)
    assert (got.new, got.known) == (len(more), len(values))
    grown = Counter(values + more)
    if not grown <= Counter(other):
        refused(study, by_arm(other), "with --cumulative a file only grows", cumulative=True)
    else:
        tell_file(study, by_arm(other), "x.csv", cumulative=True)
        grown = Counter(other)
    assert counted(study) == grown


def test_another_content_is_shown_value_by_value():
    study = begin()
    tell_file(study, by_arm([("a", 1.0), ("a", 2.0), ("b", 5.0)]), "x.csv")
    error = refused(study, by_arm([("a", 2.5), ("a", 1.0), ("c", 7.0), ("c", 7.0)]), "x.csv contradicts the log")
    found = [(one.arm, one.old, one.new) for one in error.differences]
    assert found == [("a", 2.0, 2.5), ("b", 5.0, None), ("c", None, 7.0), ("c", None, 7.0)]
    assert "result 'file:x.csv:a:2' of arm 'a' is 2.0 in the log; given 2.5" in str(error)
    assert "'file:x.csv:c:2' of arm 'c' is not in the log; given 7.0" in str(error)
    assert "'file:x.csv:b:1' of arm 'b' is 5.0 in the log; no value is given" in str(error)
    refused(study, by_arm([("a", 1.0)]), "not both", correct=True, cumulative=True)
    refused(study, by_arm([("a", 1.0)]), "--as gives the file another name", as_=" ")


def test_what_somebody_excluded_stays_excluded_when_its_file_is_corrected():
    study = begin()
    tell_file(study, by_arm([("a", 1.0), ("a", 999.0)]), "x.csv")
    study.exclude("file:x.csv:a:2")
    got = tell_file(study, by_arm([("a", 1.25), ("a", 999.0)]), "x.csv", correct=True)
    assert counted(study) == {("a", 1.25): 1}
    assert got.notes[0] == "result 'file:x.csv:a:2' is excluded, and stays so: bestarm restore file:x.csv:a:2"
    trial = study.ask(1).trials[0].id
    study.tell(trial, 3.0)
    study.exclude(trial)
    got = tell_file(study, file("trial,reward", f"{trial},4"), "x.csv", correct=True)
    assert study.sync().results[int(trial[1:])].excluded
    assert f"trial {trial} is excluded, and stays so: bestarm restore {trial}" in got.notes


def test_values_are_the_same_within_what_a_spreadsheet_keeps():
    study = begin()
    tell_file(study, by_arm([("a", 1 / 3), ("a", -0.0)]), "x.csv")
    assert tell_file(study, file("arm,reward", "a,0.333333333333333", "a,0"), "x.csv").known == 2


def test_a_file_of_trials_does_not_ask_what_its_name_gave():
    study = begin()
    tell_file(study, by_arm([("a", 1.0)]), "standard input")
    study.ask(2)
    for how in ({}, {"correct": True}, {"cumulative": True}):
        tell_file(study, file("trial,reward", "T1,5"), "standard input", **how)
    assert counted(study) == {("a", 1.0): 1, ("a", 5.0): 1}


def test_rows_of_trials_and_of_arms_may_stand_in_one_file():
    study = begin()
    study.ask(2)
    data = file("trial,arm,reward", "T1,,1", ",c,7", ",c,7")
    assert tell_file(study, data, "x.csv").new == 3
    assert tell_file(study, data, "x.csv").known == 3
    error = refused(study, file("trial,arm,reward", "T1,,2", ",c,7"), "T0001")
    assert [one.name for one in error.differences] == [1, "file:x.csv:c:2"]


# keys


def test_a_key_names_a_row_wherever_it_stands():
    study = begin()
    data = file("sample,arm,reward", "7,a,1", "lab-8,b,2")
    assert tell_file(study, data, "x.csv", key="sample").new == 2
    assert tell_file(study, file("id,reward,arm", "lab-8,2,b", "9,3,c", "7,1,a"), "y.csv").new == 1
    assert study.tell(arm="b", values=2.0, id="lab-8") == 0
    assert set(study.state.results) == {"id-7", "lab-8", "id-9"}
    other = file("sample,arm,reward", "7,a,1.5", "lab-8,b,2")
    refused(study, other, "result 'id-7' of arm 'a' is 1.0 in the log; given 1.5", key="sample")
    assert tell_file(study, other, "x.csv", key="sample", correct=True) == Received(0, 1, 0, 0, 1)
    refused(study, file("id,arm,reward", "7,b,1.5"), "column 'arm': result 'id-7' is of arm 'a' in the log; found 'b'")
    refused(study, file("s,arm,reward", ",b,1"), "line 2, column 's': a key that names the row is expected", key="s")
    twice = file("id,arm,reward", "k,b,1", "k,b,2")
    refused(study, twice, "line 3, column 'id': 'k' stands in line 2 already; --readings mean")
    assert tell_file(study, twice, "x.csv", readings="mean").new == 1
    refused(study, file("id,arm,reward", "j,b,1", "j,c,2"), "'j' is of arm 'b' in line 2; found 'c'", readings="mean")


# version 1


def told_in_version_1(folder, data, name, source):
    """A log of version 1 that was told the rows of a file by arm, as version 1 kept them."""
    digest = hashlib.sha256(data).hexdigest()[:16]
    results = [{"id": f"file-{digest}:{line}", "arm": line - 2, "value": float(line)} for line in (2, 3)]
    record = {"kind": "tell", "results": results, "time": 1.0, "source": source}
    path = folder / "over.jsonl"
    shutil.copy(GOLDEN / "over.jsonl", path)
    with path.open("a") as log:
        log.write(json.dumps({"study": "over", "record": record}) + "\n")
    return load_study("over", path)


@pytest.mark.parametrize("source", ["x.csv", "import"])
def test_a_file_that_version_1_was_told_still_counts_once(tmp_path, source):
    data = file("arm,reward", "a0,2.0", "a1,3.0")
    study = told_in_version_1(tmp_path, data, "x.csv", source)
    before = length(study)
    assert tell_file(study, data, "x.csv").known == 2
    assert length(study) == before
    if source == "x.csv":
        other = file("arm,reward", "a0,2.0", "a1,3.5")
        assert [one.new for one in refused(study, other, "contradicts the log").differences] == [3.5]
        assert tell_file(study, other, "x.csv", correct=True).corrected == 1
        assert tell_file(study, other, "x.csv").known == 2
