"""Sheets of results as people save them, and what spreadsheets do to ids."""

import csv
import math

import pytest

from bestarm.errors import InputError
from bestarm.study.columns import Columns
from bestarm.study.corrections import moment
from bestarm.study.sheets import changed_by_spreadsheets, number, plain, read_rows, timed
from bestarm.tables.text import LONGEST

SAID = [("T0001", "gel", "1.5"), ("T0002", "öl", ""), ("", "rye; oat", "-2e3")]


def sheet(mark=",", end="\n", quote=False):
    """The rows of SAID under columns in another order, among others."""
    rows = [
        ("Reward ", "who", " TRIAL", "Arm"),
        *((value, "me", trial, arm) for trial, arm, value in SAID),
        ("", "", "", ""),
    ]
    cell = '"{}"'.format if quote else lambda text: f'"{text}"' if mark in text else text
    return end.join(mark.join(cell(text) for text in row) for row in rows)


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("quote", [False, True])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le with a mark", "utf-16-be with a mark"])
def test_a_sheet_says_the_same_however_it_was_saved(mark, end, quote, encoding):
    marked = encoding.endswith("with a mark")
    data = (("\ufeff" if marked else "") + sheet(mark, end, quote)).encode(encoding.split()[0])
    rows, _ = read_rows(data, "x.csv")
    assert [(row.trial, row.arm, row.reward) for row in rows] == SAID
    assert [row.line for row in rows] == [2, 3, 4]


@pytest.mark.parametrize("width", [131_073, 1_000_000])
def test_cells_and_lines_of_any_width_are_read(width):
    wide = "w" * width
    rows, _ = read_rows(f'note,trial,reward\n{wide},T0001,1\n"{wide}\n{wide}",T0002,2\n'.encode(), "x.csv")
    assert [(row.line, row.trial, row.reward) for row in rows] == [(2, "T0001", "1"), (3, "T0002", "2")]
    assert csv.field_size_limit() >= width


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"PK\x03\x04...", "x.csv is an .xlsx or .ods workbook: save it as 'CSV UTF-8"),
        (b"\xd0\xcf\x11\xe0...", "an .xls workbook"),
        (b"trial,reward\n\x81,1", "expected a CSV file in UTF-8, .* a spreadsheet writes it as 'CSV UTF-8'"),
        (b"\xff\xfet", "expected a CSV file in UTF-8"),
        (b"", "line 1: columns 'trial' .* are expected, .*; found ''"),
        (b"0.0,1\n", "line 1: columns .* found '0.0, 1'"),
        (b"trial,reward,REWARD\n", "line 1: there are 2 columns 'reward'"),
        (b'trial,reward\nT1,"1\n', "line 2: this is not CSV"),
        (b"trial,reward\nT1,1,5\n", "line 2: 2 cells expected, .* 3 found; is that a decimal comma"),
    ],
)
def test_what_is_no_sheet_of_results_is_refused_by_line(data, says):
    with pytest.raises(InputError, match=says):
        read_rows(data, "x.csv")


@pytest.mark.parametrize("letter", [b"7", b"\0"])
def test_a_file_without_ends_of_lines_is_refused_before_it_is_read(letter):
    with pytest.raises(InputError, match=r"f\.csv, line 2: more than 67,108,864 bytes"):
        read_rows(b"trial,reward\n" + letter * (LONGEST + 1), "f.csv")


def test_a_key_is_a_column_that_names_rows():
    data = b"Sample,arm,reward,id\ns1,a,1,9\n"
    assert read_rows(data, "x.csv", Columns(key="sample "))[0][0].id == "s1"
    assert read_rows(data, "x.csv")[0][0].id == "9"
    with pytest.raises(InputError, match="there is no column 'code'; there are sample, arm, reward, id"):
        read_rows(data, "x.csv", Columns(key="code"))
    with pytest.raises(InputError, match="'Arm' is no key"):
        read_rows(data, "x.csv", Columns(key="Arm"))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("<1,5", "; found '<1,5'; write a number in its place"),
        ("12 %", "; found '12 %'; write the number alone"),
        ("high", "; found 'high'"),
        ("1_0", "; found"),
        ("0x1", ""),
    ],
)
def test_a_reward_is_a_number(text, hint):
    row = read_rows(f'trial,reward\nT1,"{text}"\n'.encode(), "x.csv")[0][0]
    with pytest.raises(InputError, match=f"column 'reward': a number is expected{hint}"):
        number(row.reward)


@pytest.mark.parametrize("id", ["2", "gel", "T0001", "R2", "A-1", "17", "x=1", "May be", "A01"])
def test_ids_that_spreadsheets_leave_alone(id):
    assert changed_by_spreadsheets([id]) == []
    assert plain(id) == id


@pytest.mark.parametrize(
    "id", ["0002", "1E10", "1e-5", "MAR1", "1-May", "=A1", "-x", "@me", "1/2", "1.10", "12:30", "TRUE", "1" * 100_000]
)
def test_ids_that_spreadsheets_change(id):
    assert changed_by_spreadsheets([id, "gel"]) == [id]


@pytest.mark.parametrize("seconds", [0, 1.5, 1_777_627_800.25, -86_400.0, 253_402_300_799])
def test_a_time_carries_its_zone_and_is_read_back(seconds):
    text = timed(seconds)
    assert text.endswith("+00:00")
    assert moment(text) == math.floor(seconds)


@pytest.mark.parametrize("seconds", [253_402_300_800, 1e18, 1e300, -1e15, math.inf, math.nan, 10**400])
def test_a_number_that_is_no_time_stands_as_it_is(seconds):
    assert timed(seconds) == str(seconds)
    assert timed(None) == ""
