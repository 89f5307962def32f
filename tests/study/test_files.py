"""Files of results: told whole or not at all, once however often, and never under another trial in silence."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from bestarm import load_study
from bestarm.errors import InputError
from bestarm.study import Memory
from bestarm.study.files import (
    Contradiction,
    Received,
    import_file,
    tell_file,
)
from tests.study.filing import FEW, begin, by_arm, counted, file, length, refused

# what contradicts the log


def test_a_file_that_contradicts_the_log_is_shown_and_nothing_of_it_kept():
    study = begin()
    batch = study.ask(6)
    rows = [f"{trial.id},{i}" for i, trial in enumerate(batch)]
    assert tell_file(study, file("trial,reward", *rows[:4]), "x.csv").new == 4
    other = file("trial,reward", rows[0], "T0002,1.5", "T0004,30", *rows[4:])
    error = refused(
        study, other, r"trial T0002 of arm 'b' is 1.0 in the log; given 1.5\ntrial T0004 .*\nnothing of the file"
    )
    assert isinstance(error, Contradiction)
    assert [(one.name, one.arm, one.old, one.new) for one in error.differences] == [(2, "b", 1, 1.5), (4, "d", 3, 30)]
    assert "--correct" in str(error)
    before = length(study)
    got = tell_file(study, other, "x.csv", correct=True, why="typed wrong")
    assert (got.new, got.known, got.corrected) == (2, 1, 2)
    assert [study.state.results[i].sum for i in range(1, 7)] == [0, 1.5, 2, 30, 4, 5]
    assert [one["kind"] for one in study.storage.read("s", before)] == ["tell", "amend"]  # in one write
    assert all(one["why"] == "typed wrong" for one in study.storage.read("s", before))
    assert tell_file(study, other, "x.csv").known == 5
    assert tell_file(study, other, "x.csv", correct=True).corrected == 0


def test_ten_differences_are_listed_and_all_are_there():
    study = begin()
    batch = study.ask(15)
    study.tell(batch, [1.0] * 15)
    error = refused(study, file("trial,reward", *(f"{trial.id},2" for trial in batch)), "and 5 more")
    assert len(error.differences) == 15
    assert str(error).count("in the log") == 10


def test_an_arm_that_is_not_the_trials_is_refused_naming_both():
    study = begin()
    study.ask(4)
    refused(study, file("trial,arm,reward", "T0001,b,1"), "line 2, column 'arm': trial T0001 is of arm 'a'; found 'b'")
    refused(study, file("trial,arm,reward", "T0001,b,"), "trial T0001 is of arm 'a'; found 'b'")
    refused(study, file("trial,arm,reward", "T0001,b,1"), "found 'b'", correct=True)


def test_successes_told_together_are_held_against_their_trials_one_by_one():
    study = begin("ab", policy="gse-log")
    batch = study.ask(6)
    study.tell(batch, successes=[2, 3])
    mine = [trial.id for trial in batch if trial.arm == "a"]
    agree = file("trial,reward", *(f"{id},{int(i > 0)}" for i, id in enumerate(mine)))
    assert tell_file(study, agree, "x.csv").known == 3
    other = file("trial,reward", *(f"{id},1" for id in mine))
    refused(study, other, f"trial {mine[0]} of arm 'a' is 2 in the log; given 3")
    assert tell_file(study, other, "x.csv", correct=True).corrected == 3
    assert study.sync().sums == [3, 3]


def test_every_problem_is_named_by_line_and_column_up_to_ten():
    study = begin()
    study.ask(4)
    data = file("trial,arm,reward,failed", "T9,,1,", "T1,,x,", ",z,1,", ",,1,", "T2,,1,spilt", ",a,,spilt", "T3,a,,")
    lines = str(refused(study, data, "x.csv, line 2")).splitlines()
    starts = ["column 'trial'", "column 'reward'", "column 'arm'", "column 'trial'"]
    starts += ["column 'failed'", "column 'trial'", "column 'arm'"]
    assert [line.partition(":")[0] for line in lines[:-1]] == [f"x.csv, line {i}, {s}" for i, s in enumerate(starts, 2)]
    assert lines[-1] == "nothing of the file was kept"
    many = str(refused(study, file("trial,reward", *["T1,x"] * 14), "and 4 more"))
    assert many.count("column 'reward'") == 10


# readings, failures


def test_two_rows_of_one_trial_are_refused_unless_their_mean_is_wanted():
    study = begin()
    study.ask(4)
    data = file("trial,reward", "T1,1", "T2,5", "t0001,2", "1,6")
    refused(study, data, r"line 5, column 'trial': T0001 stands in line 2 already; --readings mean takes the mean")
    refused(study, data, "--readings mean is what there is; given 'median'", readings="median")
    got = tell_file(study, data, "x.csv", readings="mean")
    assert (got.new, study.state.results[1].sum) == (2, 3)
    assert got.notes == ("T0001: the mean of 3 readings, 3",)
    assert tell_file(study, data, "x.csv", readings="mean").known == 2
    refused(study, file("trial,reward,failed", "T3,1,", "T3,,spilt"), "T0003 stands in line 2 already")
    assert tell_file(study, file("trial,reward,failed", "T3,1,", "T3,,spilt"), "x.csv", readings="mean").failed == 0
    assert tell_file(study, file("trial,reward", "T4,", "T4,1"), "x.csv").new == 1  # a blank is no reading


def test_what_failed_is_kept_with_its_reason_once():
    study = begin()
    study.ask(4)
    data = file("trial,reward,failed", "T1,1,no", "T2,,spilt", "T3,,NA")
    assert tell_file(study, data, "x.csv") == Received(1, 0, 1, 1)
    assert [(one["trial"], one["reason"]) for one in study.state.failures] == [(2, "spilt")]
    before = length(study)
    assert tell_file(study, data, "x.csv") == Received(0, 1, 1, 0)
    study.tell("T2", 4.0)  # it came after all
    assert tell_file(study, data, "x.csv") == Received(0, 1, 1, 0)
    assert length(study) == before + 1


def test_a_trial_with_a_value_has_not_failed_unless_the_file_corrects_it():
    study = begin()
    study.tell(study.ask(2), [3.0, 4.0])
    data = file("trial,reward,failed", "T1,,spilt", "T2,4,")
    error = refused(study, data, "trial T0001 of arm 'a' is 3.0 in the log; no value is given")
    assert [(one.old, one.new) for one in error.differences] == [(3.0, None)]
    assert tell_file(study, data, "x.csv", correct=True).corrected == 1
    assert counted(study) == {("b", 4.0): 1}
    assert study.trials()[0]["why"] == "failed: spilt"
    assert tell_file(study, data, "x.csv") == Received(0, 1, 0, 0)


# whatever is given

PIECES = [
    "trial",
    "arm",
    "reward",
    "failed",
    "id",
    "T0001",
    "T0002",
    "2",
    "0.1",
    "a",
    "z",
    "1",
    "1e999",
    "nan",
    "-1e200",
    "1,5",
]
PIECES += [",", ",", ",", "\n", "\n", ";", "\t", '"', "\r", "\0", "\ufeff", "٣", "=1+1", "1_0", " "]
soup = st.lists(st.sampled_from(PIECES), max_size=20).map("".join)
ways = st.fixed_dictionaries(
    {},
    optional={
        "correct": st.booleans(),
        "cumulative": st.booleans(),
        "readings": st.just("mean"),
        "as_": st.sampled_from(["x.csv", "y", ""]),
        "key": st.sampled_from(["id", "sample"]),
    },
)


@settings(FEW, max_examples=300)
@given(
    texts=st.lists(
        soup | soup.map("trial,arm,reward,failed,id\n".__add__) | st.text(max_size=20), min_size=1, max_size=3
    ),
    how=ways,
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_whatever_is_told_is_kept_whole_or_refused_in_words(texts, how, encoding):
    study = begin()
    study.ask(3)
    for text in texts:
        for tell in (tell_file, import_file):
            before, said, added = length(study), "", 0
            try:
                got = tell(study, text.encode(encoding, "replace"), "x.csv", **how)
                added = got.new + got.failed + got.corrected
            except InputError as error:
                said = str(error)
            assert (length(study) > before) == (added > 0)
            assert not (said and added)
    assert counted(load_study("s", study.storage)) == counted(study)


# who may tell what


def test_what_is_imported_names_arms_and_costs_nothing():
    study = begin(extra=False)
    study.ask(2)
    assert import_file(study, by_arm([("a", 1.0), ("b", 2.0)]), "x.csv").new == 2
    assert study.spent == 2
    assert {one.source for one in study.state.told} == {"import"}
    refused(
        study, file("trial,arm,reward", "T1,a,1"), "column 'trial': a trial is told, not imported", tell=import_file
    )
    refused(study, file("arm,reward", ",1"), "column 'arm': an arm is expected", tell=import_file)
    refused(study, by_arm([("c", 3.0)]), "this study takes no extra results", name="y.csv")
    refused(study, by_arm([("a", 3.0), ("a", 4.0)]), "arm 'a': 0 of its trials .* takes no extra", name="y.csv")
    assert tell_file(study, by_arm([("a", 3.0)]), "y.csv").answered == 1


def test_values_that_the_model_cannot_have_are_refused():
    study = begin(policy="gse-log")
    study.ask(8)
    refused(study, file("trial,reward", "T1,0.5"), "line 2, column 'reward': trial T0001: ")
    refused(study, file("arm,reward", "a,2"), "line 2, column 'reward': arm 'a': ")
    refused(begin(), file("arm,reward", "a,1e151"), "a number within")


def test_a_value_far_outside_what_is_known_is_kept_with_the_command_to_undo_it():
    study = begin("abcdefghij")
    batch = study.ask(20)
    values = [1.0 + 0.1 * (i % 7) for i in range(20)]
    values[6] = 5999.0
    data = file("trial,reward", *(f"{trial.id},{value}" for trial, value in zip(batch, values, strict=True)))
    notes = tell_file(study, data, "x.csv").notes
    assert len(notes) == 1
    assert notes[0].startswith("trial T0007 of arm 'g' is 5999, far from all else, and is kept")
    assert notes[0].endswith("bestarm amend T0007 VALUE --why ..., or bestarm exclude T0007 --why ...")
    assert tell_file(study, data, "x.csv").notes == ()
    extra = import_file(study, by_arm([("a", -4e4)]), "my file.csv").notes
    assert extra[0].endswith("bestarm exclude 'file:my file.csv:a:1' --why ...")


def test_results_with_keys_of_arms_of_which_trials_are_out_are_noted():
    study = begin()
    study.ask(2)
    (note,) = tell_file(study, file("id,arm,reward", "k,a,1", "l,b,1", "m,c,1"), "x.csv").notes
    assert note.startswith("2 results have keys and no trial, though trials of the same arms are out")
    assert tell_file(study, by_arm([("a", 1.0)]), "y.csv").notes == ()


class Raced(Memory):
    """A storage in which somebody else is faster, once."""

    def __init__(self):
        super().__init__()
        self.faster = None

    def append(self, name, records, after=None):
        first, self.faster = self.faster, None
        if first is not None:
            first()
        return super().append(name, records, after)


TOLD_AT_ONCE = {
    "trials": (file("trial,reward", "T1,1", "T2,2"), (0, 2)),
    "trials, some of them": (file("trial,reward", "T2,2"), (1, 1)),
    "arms": (by_arm([("a", 1.0), ("b", 2.0)]), (0, 2)),
    "keys": (file("id,arm,reward", "k,a,1"), (0, 1)),
}


@pytest.mark.parametrize("case", TOLD_AT_ONCE)
def test_what_two_tell_at_once_counts_once_and_is_new_to_one(case):
    data, (new, known) = TOLD_AT_ONCE[case]
    whole = TOLD_AT_ONCE["trials"][0] if "some" in case else data
    study = begin(storage=Raced())
    study.ask(2)
    other = load_study("s", study.storage)
    study.storage.faster = lambda: tell_file(other, data, "x.csv")
    got = tell_file(study, whole, "x.csv")
    assert (got.new, got.known) == (new, known)
    assert sum(counted(study).values()) == new + known


def test_two_contents_of_one_file_told_at_once_are_not_both_kept():
    study = begin(storage=Raced())
    other = load_study("s", study.storage)
    study.storage.faster = lambda: tell_file(other, by_arm([("a", 1.0)]), "x.csv")
    with pytest.raises(Contradiction):
        tell_file(study, by_arm([("a", 2.0)]), "x.csv")
    assert counted(study) == {("a", 1.0): 1}


def test_what_somebody_told_otherwise_at_the_same_moment_is_said():
    study = begin(storage=Raced())
    study.ask(1)
    other = load_study("s", study.storage)
    study.storage.faster = lambda: other.tell("T1", 1.0)
    got = tell_file(study, file("trial,reward", "T1,2"), "x.csv")
    assert (got.new, got.known) == (0, 1)
    assert got.notes[0].startswith(
        "trial T0001 of arm 'a' is 1.0 in the log; given 2.0: somebody told it at the same moment"
    )


@pytest.mark.parametrize("column", ["Trial ID", "id", "nr", "Versuch"])
def test_trials_in_a_column_of_another_name_are_refused_and_not_counted_beside_themselves(column):
    study = begin()
    batch = study.ask(6)
    rows = [f"{trial.id},{trial.arm},{i}" for i, trial in enumerate(batch)]
    wrong = file(f"{column},arm,reward", *rows)
    refused(study, wrong, f"line 1, column '{column}' holds ids of this study's trials.* call that column 'trial'")
    with pytest.raises(InputError, match="tell the file, with that column called 'trial'"):
        import_file(study, wrong, "x.csv")
    assert tell_file(study, file("trial,arm,reward", *rows), "x.csv").new == 6
    others = [f"T000{i},{arm},{i}" for i, arm in enumerate("cabd", 1)]  # samples of somebody else
    assert tell_file(study, file("sample,arm,reward", *others), "y.csv").new == 4
    notes = [f"{trial.id},{trial.arm},7,T0001" for trial in study.ask(4)]
    assert tell_file(study, file("trial,arm,reward,repeats", *notes), "z.csv").new == 4


def test_a_file_that_says_what_another_said_is_kept_with_a_note_on_how_to_take_it_back():
    study = begin()
    rows = [("a", 1.0), ("a", 1.0), ("b", 2.0)]
    assert import_file(study, by_arm(rows), "ord.csv", source="ord.csv").notes == ()
    (note,) = import_file(study, by_arm(rows[::-1]), "copy.csv", source="copy.csv").notes
    assert note == (
        "copy.csv says the same as ord.csv, and both count; if it is a copy: "
        "bestarm exclude --source copy.csv --why copy"
    )
    assert import_file(study, by_arm(rows), "copy.csv", source="copy.csv").notes == ()  # it was said
    assert study.exclude(by="copy.csv") == 3
    (note,) = import_file(study, by_arm(rows), "third.csv", source="ord.csv").notes
    assert "bestarm exclude file:third.csv:b:1 file:third.csv:a:1 file:third.csv:a:2 --why copy" in note
