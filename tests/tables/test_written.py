"""Tables as spreadsheets and people write them read as the clean ones; what cannot be read says the way out."""

import csv
import io
import zipfile
from datetime import date, datetime
from typing import Any

import openpyxl
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bestarm.errors import ArmsError
from bestarm.tables.arms import Arms
from bestarm.tables.cells import DATES, MISSING, like_number, plain_columns
from bestarm.tables.files import read_grid

LATIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ" + "".join(map(chr, range(0xC0, 0xFF)))
UNITS = ["mg/l", "°C", "[mm]", "(g)", "%", "1/s", "m²"]
WORDS = st.text(LATIN + " ,;'\"/.", min_size=1, max_size=9).filter(
    lambda word: (
        word == word.strip()
        and any(letter in LATIN for letter in word)
        and word.lower() not in MISSING
        and word[0] not in "\"'"
        and not like_number(word)
        and not word.lower().startswith(("inf", "nan"))
    )
)
NUMBERS = st.floats(-1e5, 1e5).map(lambda value: round(value, 2)) | st.integers(-(10**7), 10**7)


def read(data: bytes, suffix: str = ".csv", **options: Any) -> Arms:
    sheet = read_grid(io.BytesIO(data), "t", suffix).sheet({options.get("id")}, options.pop("na", ()))
    return Arms.from_frame(sheet, **options)


@st.composite
def tables(draw: Any) -> tuple[list[str], list[list[Any]]]:
    """Draw a header and rows: an id, numbers, a column of texts."""
    names = draw(st.lists(WORDS, min_size=3, max_size=5, unique=True))
    ids = draw(st.lists(WORDS | st.integers(0, 999).map("{:04}".format), min_size=2, max_size=6, unique=True))
    kinds = draw(st.lists(WORDS, min_size=len(ids), max_size=len(ids)))
    numbers = [draw(st.lists(NUMBERS, min_size=len(ids), max_size=len(ids))) for _ in names[2:]]
    numbers[0][0] = -0.5  # so that some number tells its decimal mark
    return names, [list(row) for row in zip(ids, *numbers, kinds, strict=True)]


def shown(value: Any, decimal: str, apart: str) -> str:
    """Return a number as a spreadsheet of some country shows it."""
    if not isinstance(value, int | float):
        return str(value)
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
    return text.replace(",", "\0").replace(".", decimal).replace("\0", apart)


def clean(names: list[str], rows: list[list[Any]]) -> Arms:
    return Arms.from_frame(
        [dict(zip(names, [shown(cell, ".", "") for cell in row], strict=True)) for row in rows],
        id=names[0],
        categorical=[names[-1]],
    )


@given(
    table=tables(),
    style=st.sampled_from([",.", ";,", "\t,", "\t.", ";."]),
    apart=st.sampled_from(["", "own", "\u00a0", "\u202f", "'"]),
    coding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1252", "latin-1"]),
    tail=st.tuples(st.integers(0, 2), st.integers(0, 3)),
    unit=st.none() | st.sampled_from(UNITS),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_any_table_a_spreadsheet_writes_reads_as_the_clean_one(
    table: Any, style: str, apart: str, coding: str, tail: tuple[int, int], unit: str | None, end: str
) -> None:
    names, rows = table
    mark, decimal = style
    apart = {",": ".", ".": ","}[decimal] if apart == "own" else apart
    assume(not (apart == "\u202f" and coding in ("cp1252", "latin-1")))
    cells = [names, *[[shown(cell, decimal, apart) for cell in row] for row in rows]]
    if unit is not None:
        cells.insert(1, ["", *[unit] * (len(names) - 2), ""])
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=mark, lineterminator=end)
    writer.writerows([[*row, *[""] * tail[0]] for row in cells] + [[""] * (len(names) + tail[0])] * tail[1])
    data = text.getvalue().encode(coding)
    assume(coding not in ("cp1252", "latin-1") or not _is_utf8(data) or data.isascii())
    assume(coding not in ("cp1252", "latin-1") or not data.startswith((b"\xff\xfe", b"\xfe\xff")))
    got, wanted = read(data, id=names[0], categorical=[names[-1]]), clean(names, rows)
    assert (got.ids, got.names, got.features.tolist()) == (wanted.ids, wanted.names, wanted.features.tolist())
    guessed = [note for note in got.notes if "Windows-1252" in note]
    assert bool(guessed) == (coding in ("cp1252", "latin-1") and not data.isascii())


def _is_utf8(data: bytes) -> bool:
    try:
        return bool(data.decode()) or True
    except UnicodeDecodeError:
        return False


@given(tables(), st.integers(0, 3), st.none() | st.sampled_from(UNITS))
def test_a_workbook_reads_as_the_clean_table(table: Any, tail: int, unit: str | None) -> None:
    names, rows = table
    book = openpyxl.Workbook()
    empty = book.active
    assert empty is not None
    sheet = book.create_sheet("data")
    for row in [names, *([["", *[unit] * (len(names) - 2), ""]] if unit else []), *rows]:
        sheet.append(row)
    for row in range(1, tail + 1):
        sheet.cell(sheet.max_row + row, len(names) + row, "")
    data = io.BytesIO()
    book.save(data)
    got = read(data.getvalue(), ".xlsx", id=names[0], categorical=[names[-1]])
    wanted = clean(names, rows)
    assert (got.ids, got.names) == (wanted.ids, wanted.names)
    assert got.features.tolist() == pytest.approx(wanted.features)
    assert "sheet 'data' is read, of 2" in got.notes


@given(st.lists(st.lists(NUMBERS.map(str) | WORDS | st.sampled_from(["", "2026-03-01"]), min_size=2), max_size=3))
def test_what_is_plain_stays_as_it_is(columns: list[list[str]]) -> None:
    named = [(str(at), cells) for at, cells in enumerate(columns)]
    found, _ = plain_columns(named)
    again, notes = plain_columns([(name, cells) for (name, _), cells in zip(named, found, strict=True)])
    assert (again, notes) == (found, [])


def test_zeros_of_a_format_and_dates_of_a_workbook_are_kept() -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (
        ["code", "day", "when"],
        [7, date(2026, 3, 1), datetime(2026, 3, 1, 9, 30)],
        [12, date(2026, 3, 3), None],
    ):
        sheet.append(row)
    for at in (2, 3):
        sheet.cell(at, 1).number_format = "0000"
    data = io.BytesIO()
    book.save(data)
    arms = read(data.getvalue(), ".xlsx", id="code", features=["day"])
    assert (arms.ids, arms.features.tolist()) == (("0007", "0012"), [[0], [2]])
    assert arms.table["when"] == ["2026-03-01 09:30", ""]
    assert "column 'day': dates, as days since 2026-03-01" in arms.notes


def test_an_open_workbook_is_read() -> None:
    def cell(value: str, kind: str = "string", more: str = "") -> str:
        number = f' office:value="{value}"' if kind == "float" else ""
        return f'<table:table-cell office:value-type="{kind}"{number}{more}><text:p>{value}</text:p></table:table-cell>'

    spaces = "".join(
        f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
    )
    blank = '<table:table-cell table:number-columns-repeated="16000"/>'
    rows = [
        cell("code") + cell("x") + cell("y") + blank,
        cell("007") + cell("1.5", "float", ' table:number-columns-repeated="2"'),
    ]
    rows.append(cell("008") + cell("2", "float") + cell("3", "float"))
    body = "".join(f"<table:table-row>{row}</table:table-row>" for row in rows)
    body += f'<table:table-row table:number-rows-repeated="1048000">{blank}</table:table-row>'
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as book:
        text = f'<d{spaces}><table:table table:name="one">{body}</table:table></d>'
        book.writestr("content.xml", text)
    arms = read(data.getvalue(), ".ods", id="code")
    assert (arms.ids, arms.features.tolist()) == (("007", "008"), [[1.5, 1.5], [2, 3]])
    with pytest.raises(ArmsError, match=r"t: expected an \.ods workbook; .*; saving it as CSV will do"):
        read(b"PK\x03\x04", ".ods", id="code")


def test_a_workbook_without_openpyxl_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    with pytest.raises(ArmsError, match=r"pip install 'bestarm-bai\[excel\]', or save it as CSV"):
        read(b"PK\x03\x04", ".xlsx")
    monkeypatch.undo()
    with pytest.raises(ArmsError, match=r"expected an \.xlsx workbook; .*; saving it as CSV will do"):
        read(b"PK\x03\x04", ".xlsx")
    with pytest.raises(ArmsError, match=r"an early Excel: save it as \.xlsx"):
        read(b"\xd0\xcf\x11\xe0", ".xls")


@pytest.mark.parametrize(
    ("cells", "plain"),
    [
        (["31.12.2026", "1.3.2026"], ["2026-12-31", "2026-03-01"]),
        (["3/31/2026", "4/1/2026"], ["2026-03-31", "2026-04-01"]),
        (["31/3/2026", "1/4/2026"], ["2026-03-31", "2026-04-01"]),
        (["2026-03-31 00:00:00", "2026/4/1 9:05"], ["2026-03-31", "2026-04-01 09:05"]),
        (["3/4/2026", "5/6/2026"], ["3/4/2026", "5/6/2026"]),
        (["1.234", "2.5"], ["1.234", "2.5"]),
        (["1 234", "999"], ["1234", "999"]),
        (["1,234,567.5", "-3"], ["1234567.5", "-3"]),
        (["1.234.567", "1,5"], ["1234567", "1.5"]),
        (["1,5", "2.5"], ["1,5", "2.5"]),
        (["1,2,3", "a,b"], ["1,2,3", "a,b"]),
    ],
)
def test_one_column_alone(cells: list[str], plain: list[str]) -> None:
    assert plain_columns([("x", cells)])[0] == [plain]


def test_every_finding_is_told_at_once_ten_shown() -> None:
    text = "code,x,y\n" + "".join(
        f"a{row},{'<0.5' if row % 2 else row},{row if row < 9 else '12 %'}\n" for row in range(18)
    )
    with pytest.raises(ArmsError) as error:
        read(text.encode(), id="code")
    lines = str(error.value).splitlines()
    assert len(lines) == 11
    assert lines[-1] == "and 8 more"
    assert lines[0].startswith(
        "t: row 2 (line 3), column 'x': expected a number, found '<0.5'; write a number in its place"
    )
    assert "column 'y': expected a number, found '12 %'; write the number alone, 12 or 0.12" in lines[9]


BLANKS = b"code,x,kind\na,1,None\nb,,oil\nc,n/a,\nd,5,NA\n"


def test_blanks_are_refused_or_filled() -> None:
    with pytest.raises(ArmsError, match=r"(?s)row 2 .*column 'x'.*missing='mean'.*row 4.*column 'kind'.*'category'"):
        read(BLANKS.replace(b"c,n/a,\n", b"c,n/a,gel\ne,1,\n"), id="code")
    arms = read(BLANKS, id="code", missing="category")
    assert arms.names == ("x", "x=(blank)", "kind=(blank)", "kind=NA", "kind=None", "kind=oil")
    assert arms.features[:, :3].tolist() == [[1, 0, 0], [3, 1, 0], [3, 1, 1], [5, 0, 0]]
    assert "blanks are filled with 3, the mean of the others, and marked by x=(blank)" in arms.notes[0]
    assert arms.encoding.from_dict(arms.encoding.to_dict()) == arms.encoding
    assert arms.encoding.apply([{"kind": "oil"}]).tolist() == [[3, 1, 0, 0, 0, 1]]
    assert read(BLANKS, id="code", exclude=["kind"], missing="mean").features.tolist() == [[1], [3], [3], [5]]
    with pytest.raises(ArmsError, match="found '<1'; write a number in its place"):
        read(b"code,x\na,<1\nb,\nc,<2\n", id="code", missing="mean")
    assert "kind=None" not in read(BLANKS, id="code", missing="category", na=["none"]).names


def test_dates_are_days_since_the_first() -> None:
    data = b"code;made\na;3.3.2026\nb;1.3.2026\n"
    arms = read(data, id="code")
    assert arms.features.tolist() == [[2], [0]]
    assert arms.encoding.apply([{"made": "2026-03-01 12:00"}]).tolist() == [[0.5]]
    frame = {"code": ["a", "b"], "made": [datetime(2026, 3, 3), datetime(2026, 3, 1)]}
    for made in (pd.DataFrame(frame), pl.DataFrame(frame), pl.DataFrame(frame).to_arrow()):
        assert Arms.from_frame(made, id="code").encoding == arms.encoding
    with pytest.raises(ArmsError, match="expected a date such as 2026-03-01, found 'soon'"):
        read(data + b"c;soon\n", id="code")
    with pytest.raises(ArmsError, match="found '3/4/2026'; a day and a month that may be taken for one another"):
        read(b"code,made\na,3/4/2026\nb,5/6/2026\n", id="code")


def test_a_row_of_units_is_no_arm_and_a_first_arm_no_unit() -> None:
    arms = read("code;Wasser (ml);T\n;ml;°C\na;1,5;20\nb;2;30\n".encode("cp1252"), id="code")
    assert (arms.ids, arms.names) == (("a", "b"), ("Wasser (ml)", "T"))
    assert "line 2 of t is taken for a row of units: Wasser (ml) in ml, T in °C" in arms.notes
    with pytest.raises(ArmsError, match=r"row 1 .*'high'"):
        read(b"code,x\na,high\nb,1\nc,2\n", id="code")
    with pytest.raises(ArmsError, match="row 1"):
        read(b"x,y\n,NA\n1,2\n3,4\n")


def test_a_title_above_the_header_is_refused_with_the_way_out() -> None:
    with pytest.raises(ArmsError, match=r"line 2: 1 cells expected.*; the header is to be the first row"):
        read(b"Results of May\ncode,x,y\na,1,2\n", id="code")
    with pytest.raises(ArmsError, match=r"column 2: the name is ''; .* the header is to be the first row"):
        read(b"Results of May,,\ncode,x,y\na,1,2\n", id="code")


def test_the_index_that_pandas_writes_is_left_out() -> None:
    frame = pd.DataFrame({"code": ["a", "b"], "x": [1.5, 2.5]})
    arms = read(frame.to_csv().encode(), id="code")
    assert arms.names == ("x",)
    assert arms.notes == ("column 1 of t only counts the rows: left out",)


def test_the_day_comes_first_or_last_in_any_pattern() -> None:
    assert all(pattern.groupindex.keys() == {"y", "m", "d"} for pattern in DATES.values())


def test_a_formula_that_no_program_has_computed_is_refused_by_its_cell(tmp_path):
    book = openpyxl.Workbook()
    for row in [["code", "dose", "twice"], ["a", 1, "=B2*2"], ["b", 2, "=B3*2"]]:
        book.active.append(row)
    book.save(path := tmp_path / "x.xlsx")
    with pytest.raises(ArmsError) as refusal:
        Arms.from_file(path, id="code")
    said = str(refusal.value)
    assert "x.xlsx, cell C2: the formula =B2*2, like 1 more, was never computed: open the workbook" in said
    assert "save it, or type values" in said


def test_a_formula_that_was_computed_reads_as_its_value(tmp_path):
    book = openpyxl.Workbook()
    for row in [["code", "dose", "note"], ["a", 1, "x"], ["b", "=B2*2", '=IF(B2>0,"",1)'], ["c", 5, "y"]]:
        book.active.append(row)
    book.save(tmp_path / "x.xlsx")
    with zipfile.ZipFile(tmp_path / "x.xlsx") as old, zipfile.ZipFile(tmp_path / "y.xlsx", "w") as new:
        for name in old.namelist():
            text = old.read(name).decode()
            text = text.replace("<f>B2*2</f><v></v>", "<f>B2*2</f><v>2</v>").replace(
                "<f>B2*2</f><v />", "<f>B2*2</f><v>2</v>"
            )
            new.writestr(name, text.replace('<c r="C3">', '<c r="C3" t="str">'))  # as spreadsheets write no text
    arms = Arms.from_file(tmp_path / "y.xlsx", id="code", exclude=["note"])
    assert arms.features[:, 0].tolist() == [1.0, 2.0, 5.0]
    assert arms.table["note"] == ["x", "", "y"]


def test_what_was_found_is_logged_and_what_was_guessed_is_a_warning(tmp_path, caplog):
    (tmp_path / "x.csv").write_bytes("code;dose;day\n;mM;\nä;1,5;1.3.2026\nö;2,5;5.3.2026\n".encode("latin-1"))
    with caplog.at_level("INFO", "bestarm"):
        arms = Arms.from_file(tmp_path / "x.csv", id="code")
    levels = {record.getMessage(): record.levelname for record in caplog.records}
    assert {*levels} == {*arms.notes}
    guessed = [said for said, level in levels.items() if level == "WARNING"]
    assert len(guessed) == 2
    assert any("Windows-1252" in said for said in guessed)
    assert any("row of units" in said for said in guessed)
