"""Batches that go through a spreadsheet come back as they were asked, or are refused."""

import csv
import io
import shutil
import warnings
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from bestarm import Arms, create_study, load_study
from bestarm.study.candidates import arms_of, more_arms
from bestarm.study.files import (
    batch_bytes,
    spreadsheet_note,
    tell_file,
    write_batch,
)
from tests.study.filing import FEW, begin, counted, file, length, refused

GOLDEN = Path(__file__).parent / "golden" / "v1"


# batches as files


def test_a_batch_has_a_row_a_trial_with_the_arms_own_columns_and_room_for_the_reward(tmp_path):
    (tmp_path / "arms.csv").write_text("code,temp,ID,well\nA,1,x,w1\nB,2,y,w2\nC,3,z,w3\n")
    study = create_study(Arms.from_csv(tmp_path / "arms.csv", id="code", features=["temp"]), 30, "uniform", seed=1)
    study.add_arms(Arms.from_arrays([[9.0]], ids=["new"], names=["temp"]))
    text = io.StringIO()
    write_batch(study, study.ask(5), text)
    rows = list(csv.DictReader(io.StringIO(text.getvalue())))
    assert list(rows[0]) == ["trial", "arm", "temp", "well", "reward"]
    assert [row["trial"] for row in rows] == ["T0001", "T0002", "T0003", "T0004", "T0005"]
    cells = {row["arm"]: (row["temp"], row["well"], row["reward"]) for row in rows}
    assert cells == {"A": ("1", "w1", ""), "B": ("2", "w2", ""), "C": ("3", "w3", ""), "new": ("", "", "")}


def test_added_arms_bring_their_own_columns_along(tmp_path):
    (tmp_path / "arms.csv").write_text("code,temp,lot,cost\nA,1,x,2\nB,2,y,1\n")
    (tmp_path / "more.csv").write_text("lot,cost,temp,code,note\nz,3,9.50,N,new\nw,1,8,M,new\n")
    first = Arms.from_csv(tmp_path / "arms.csv", id="code", features=["temp"], cost="cost")
    study = create_study(first, 70, "uniform", seed=1, storage=tmp_path / "s.jsonl")
    study.add_arms(more_arms(study.state, tmp_path / "more.csv"))
    study = load_study(study.name, tmp_path / "s.jsonl")
    text = io.StringIO()
    write_batch(study, study.ask(4), text)
    rows = list(csv.DictReader(io.StringIO(text.getvalue())))
    assert list(rows[0]) == ["trial", "arm", "temp", "lot", "cost", "reward"]
    cells = {row["arm"]: (row["temp"], row["lot"], row["cost"]) for row in rows}
    assert cells == {"A": ("1", "x", "2"), "B": ("2", "y", "1"), "N": ("9.50", "z", "3"), "M": ("8", "w", "1")}
    assert arms_of(study.state).table["lot"] == ["x", "y", "z", "w"]


def test_wells_stand_beside_their_trials_also_when_the_batch_is_written_again():
    study = begin()
    first = study.ask(wells=["A1", "A2", "A3"])
    study.ask(2)
    for batch, wells in ((first, ["A1", "A2", "A3"]), (study.pending(), ["A1", "A2", "A3", "", ""])):
        rows = list(csv.DictReader(io.StringIO(batch_bytes(study, batch).decode())))
        assert list(rows[0])[:3] == ["trial", "well", "arm"]
        assert [row["well"] for row in rows] == wells


def test_a_file_is_marked_as_utf_8_where_it_is_not_ascii():
    study = begin(["oil", "gel"])
    assert batch_bytes(study, study.ask(2)).startswith(b"trial,arm,")
    study = begin(["öl", "gel"])
    data = batch_bytes(study, study.ask(2))
    assert data.startswith(b"\xef\xbb\xbftrial,arm,")
    assert "T0001,öl," in data.decode("utf-8-sig")


@pytest.mark.parametrize("id", ["MAR1", "1E10", '=HYPERLINK("x")', "1-2"])
def test_ids_that_a_spreadsheet_changes_are_named_with_what_to_do(id):
    study = begin([id, "gel", "0007"])
    note = spreadsheet_note(study, study.ask(3))
    assert repr(id) in note
    assert "delete column 'arm'" in note
    assert "0007" not in note  # they come back by themselves
    study = begin(["gel", "0002"])
    assert spreadsheet_note(study, study.ask(2)) is None
    study = begin(["2", "0002"])
    assert "'0002'" in spreadsheet_note(study, study.ask(2))


# spreadsheets


def saved(data, mark=";", encoding="utf-8-sig", quoting=csv.QUOTE_MINIMAL, end="\r\n", values=()):
    """A batch's file with its rewards filled in, as a spreadsheet saves it."""
    header, *rows = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
    for row, value in zip(rows, values, strict=True):
        row[-1] = value
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=mark, quoting=quoting, lineterminator=end).writerows([header, *rows, [""] * len(header)])
    return text.getvalue().encode(encoding)


letters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
words = st.text(letters, min_size=1, max_size=8).filter(lambda text: text == text.strip() != "")
numbers = st.floats(-1e6, 1e6).map(lambda value: float(f"{value:.10g}"))


@FEW
@given(data=st.data())
def test_a_batch_that_went_through_a_spreadsheet_is_told_as_it_was_asked(data):
    ids = data.draw(st.lists(words, min_size=2, max_size=5, unique=True))
    study, other = begin(ids), begin(ids)
    batch = study.ask(data.draw(st.integers(1, 9)))
    assert other.ask(len(batch)) == batch
    values = data.draw(st.lists(st.none() | numbers, min_size=len(batch), max_size=len(batch)))
    mark = data.draw(st.sampled_from(",;\t"))
    decimal = "." if mark == "," else data.draw(st.sampled_from(".,"))
    sheet = saved(
        batch_bytes(study, batch),
        mark,
        data.draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"])),
        *data.draw(st.sampled_from([(csv.QUOTE_MINIMAL, "\r\n"), (csv.QUOTE_ALL, "\r\n"), (csv.QUOTE_ALL, "\n")])),
        ["" if value is None else repr(value).replace(".", decimal) for value in values],
    )
    other.tell(batch, values)
    got = tell_file(study, sheet, "x.csv")
    assert (got.new, got.known, got.blank) == (len(batch) - values.count(None), 0, values.count(None))
    assert {name: one.sum for name, one in study.state.results.items()} == {
        name: one.sum for name, one in other.state.results.items()
    }
    before = length(study)
    assert tell_file(study, sheet, "again.csv").new == 0
    assert length(study) == before


def test_zeros_and_blanks_that_ids_of_arms_lost_come_back_where_that_is_clear():
    study = begin(["0002", "03", "1.50", " x "])
    got = tell_file(study, file("arm,reward", "2,1", "3,2", "1.5,3", "x,4", "2.0,5"), "x.csv")
    assert counted(study) == {("0002", 1): 1, ("03", 2): 1, ("1.50", 3): 1, (" x ", 4): 1, ("0002", 5): 1}
    assert got.notes[0] == "arm '2' is taken for '0002'"
    assert len(got.notes) == 5
    trial = next(trial for trial in study.ask(4) if trial.arm == "0002")
    assert tell_file(study, file("trial,arm,reward", f"{trial.id},2,6"), "x.csv").new == 1
    both = begin(["2", "0002", "002"])
    assert tell_file(both, file("arm,reward", "2,1"), "x.csv").new == 1
    assert counted(both) == {("2", 1): 1}
    refused(both, file("arm,reward", "02,1"), "line 2, column 'arm': '02' may be '2' or '0002'; write it in full")
    refused(both, file("arm,reward", "3,1"), "line 2, column 'arm': unknown arm '3'; the nearest are")


@pytest.mark.parametrize("id", ["T0003", "t3", "3", "T3", "0003", " T0003 "])
def test_a_trial_is_named_in_any_of_its_ways(id):
    study = begin()
    batch = study.ask(4)
    assert tell_file(study, file("trial,arm,reward", f"{id},{batch.trials[2].arm},7"), "x.csv").new == 1
    assert study.state.results[3].sum == 7


def old(name, folder):
    """A study that began in version 1."""
    shutil.copy(GOLDEN / f"{name}.jsonl", folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return load_study(name, folder / f"{name}.jsonl")


def test_ids_with_dots_are_refused_where_version_1_never_was():
    study = begin()
    study.ask(12)
    for id in ("0.1", "0.10", "1.0", "10.0"):
        refused(
            study,
            file("trial,reward", f"{id},1"),
            f"column 'trial': a trial id such as T0010 is expected; given '{id}'",
        )


@pytest.mark.parametrize("upgraded", [False, True])
def test_a_zero_that_an_old_id_may_have_lost_needs_the_arm_that_agrees(tmp_path, upgraded):
    study = old("poisson", tmp_path)
    if upgraded:
        study.log.upgrade()
    state = study.state
    arm, other = (state.ids[state.arm_of(trial)] for trial in (2, 11))  # 0.1 and 0.10
    assert arm != other
    told = state.results[2].sum
    refused(study, file("trial,reward", f"0.1,{told}"), "column 'trial': 0.1 may be T0002; .* dropped .* T0011")
    refused(
        study, file("trial,arm,reward", f"0.1,{other},5"), f"trial 0.1 is of arm '{arm}'; found '{other}'; .* T0011"
    )
    assert tell_file(study, file("trial,arm,reward", f"0.1,{arm},{told}"), "x.csv").known == 1
    assert tell_file(study, file("trial,reward", "0.10,5", "0.9,4"), "x.csv").new == 2
    assert (study.state.results[11].sum, study.state.results[10].sum) == (5, 4)


def test_a_number_is_no_trial_of_version_1_that_lost_its_zero(tmp_path):
    study = old("came-and-went", tmp_path)
    state = study.state
    mine = state.history[state.old_rounds[2]].trials[0]
    arm, other = state.ids[state.arm_of(2)], state.ids[state.arm_of(mine)]
    refused(
        study, file("trial,reward", "2,1"), "column 'trial': 2 may be T0002; .* dropped the last zero of what is now"
    )
    got = tell_file(study, file("trial,reward", f"T2,{state.results[2].sum}"), "x.csv")
    assert (got.new, got.known) == (0, 1)
    row = file("trial,arm,reward", f"2,{arm},{state.results[2].sum}")
    if arm == other:
        refused(study, row, "may be T0002")
    else:
        assert tell_file(study, row, "x.csv").known == 1
