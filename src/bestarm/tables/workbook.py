"""Workbooks of spreadsheets: the cells of the first sheet that has any."""

import re
import zipfile
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time
from typing import IO, Any
from xml.etree import ElementTree

from bestarm.errors import ArmsError

Rows = list[list[str]]
FORMULA = re.compile(rb"<(\w+:)?f[ />]")
EXCEL = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
PADDED = re.compile(r"0{2,18}")  # a format that shows zeros before a number
OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
WIDEST = 16_384  # columns of a sheet; one row is repeated to the end of the sheet where nothing is in it


def rows_of(file: IO[bytes], source: str, kind: str) -> tuple[Rows, list[str]]:
    """Return the rows of a workbook as text, and which sheet they are of where it has several."""
    if kind == ".xls":
        raise ArmsError(f"{source} is a workbook of an early Excel: save it as .xlsx, or as CSV")
    return _of_open(file, source) if kind == ".ods" else _of_excel(file, source)


def _of_excel(file: IO[bytes], source: str) -> tuple[Rows, list[str]]:
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        way = "pip install 'bestarm-bai[excel]', or save it as CSV, which is read without it"
        raise ArmsError(f"{source}: a workbook needs openpyxl: {way}") from error
    try:
        book = load_workbook(file, read_only=True, data_only=True)
        sheets = (
            (one.title, _sheet_rows(one, file, source)) for one in book.worksheets if one.sheet_state == "visible"
        )
        return _first(sheets, [one.title for one in book.worksheets])
    except ArmsError:
        raise
    except Exception as error:  # of openpyxl, zipfile and the XML parser, whatever is wrong with the file
        raise ArmsError(f"{source}: expected an .xlsx workbook; {error}; saving it as CSV will do") from error


def _sheet_rows(sheet: Any, file: IO[bytes], source: str) -> Rows:
    with zipfile.ZipFile(file) as parts:
        _check_formulas(parts.read(sheet._worksheet_path.removeprefix("/")), source)
    sheet.reset_dimensions()  # which may be those of another program's mistake
    return [[_text(cell.value, getattr(cell, "number_format", "")) for cell in row] for row in sheet.iter_rows()]


def _check_formulas(sheet: bytes, source: str) -> None:
    """Refuse formulas without a value: what a program wrote that does not compute would read as blank."""
    if not FORMULA.search(sheet):
        return
    blank = [
        (cell.get("r", ""), cell.findtext(f"{EXCEL}f") or "")
        for cell in ElementTree.fromstring(sheet).iter(f"{EXCEL}c")
        if cell.find(f"{EXCEL}f") is not None and not cell.findtext(f"{EXCEL}v") and cell.get("t") != "str"
    ]
    if blank:
        raise _uncomputed(source, *blank[0], len(blank))


def _uncomputed(source: str, place: str, formula: str, count: int) -> ArmsError:
    which = f"the formula ={formula.lstrip('=')[:40]}" + f", like {count - 1} more," * (count > 1)
    way = "open the workbook in a spreadsheet program and save it, or type values instead"
    return ArmsError(f"{source}, cell {place}: {which} was never computed: {way}")


def _text(value: Any, shown: str = "") -> str:
    """Return what a cell says as CSV would have it, dates as 2026-03-31."""
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ").removesuffix(":00")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, int) and not isinstance(value, bool) and PADDED.fullmatch(shown):
        return str(value).zfill(len(shown))
    return "" if value is None else str(value).strip()


def _of_open(file: IO[bytes], source: str) -> tuple[Rows, list[str]]:
    try:
        with zipfile.ZipFile(file) as book, book.open("content.xml") as content:
            found = ElementTree.parse(content).iter(f"{TABLE}table")
            sheets = [(one.get(f"{TABLE}name", ""), list(_open_rows(one))) for one in found]
    except (KeyError, OSError, ValueError, zipfile.BadZipFile, ElementTree.ParseError) as error:
        raise ArmsError(f"{source}: expected an .ods workbook; {error}; saving it as CSV will do") from error
    return _first(sheets, [name for name, _ in sheets])


def _open_rows(table: ElementTree.Element) -> Iterator[list[str]]:
    for row in table.iter(f"{TABLE}table-row"):
        cells: list[str] = []
        for cell in row:
            times = int(cell.get(f"{TABLE}number-columns-repeated", 1))
            cells += [_open_text(cell)] * min(times, WIDEST - len(cells))
        while cells and not cells[-1]:
            cells.pop()
        yield from [cells] * (min(int(row.get(f"{TABLE}number-rows-repeated", 1)), WIDEST) if cells else 1)


def _open_text(cell: ElementTree.Element) -> str:
    for key in ("value", "date-value"):
        value = cell.get(f"{OFFICE}{key}")
        if value is not None and not PADDED.match(_written(cell)):
            return value.replace("T00:00:00", "").replace("T", " ")
    return _written(cell)


def _written(cell: ElementTree.Element) -> str:
    return "\n".join("".join(one.itertext()) for one in cell.iter(f"{TEXT}p")).strip()


def _first(sheets: Iterable[tuple[str, Rows]], names: list[str]) -> tuple[Rows, list[str]]:
    for name, rows in sheets:
        if any(any(row) for row in rows):
            return rows, [f"sheet {name!r} is read, of {len(names)}"] if len(names) > 1 else []
    return [], []
