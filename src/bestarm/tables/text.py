"""Files of text as people save them: the code page, the ends of lines, the mark between cells."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import IO

from bestarm.errors import ArmsError
from bestarm.tables.cells import Guess

LONGEST = 1 << 26  # bytes of a line: a million columns, not a file without ends of lines
WORKBOOKS = {b"PK\x03\x04": "an .xlsx or .ods workbook", b"\xd0\xcf\x11\xe0": "an .xls workbook"}
CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")  # of no text that anybody wrote
FOREIGN = re.compile(r"[^,;\t\r\n]*[^\x00-\x7f][^,;\t\r\n]*")
NAMED_MARK = re.compile(r'"?sep=(.)"?\s*')  # a first line by which some spreadsheets say what separates

csv.field_size_limit(max(csv.field_size_limit(), LONGEST))  # 131,072 characters else, which a text may have


def records(file: IO[bytes], source: str, each: str) -> tuple[list[tuple[int, list[str]]], str, list[str]]:
    """Return the records of a CSV file with their lines, the mark between cells, and what had to be guessed."""
    lines, notes = lines_of(file, source, each)
    named = NAMED_MARK.fullmatch(lines[0]) if lines else None
    first = 0 if named is None else 1
    mark = separator(lines) if named is None else named[1]
    reader = csv.reader(lines[first:], delimiter=mark, strict=True, skipinitialspace=True)
    found, line = [], first + 1
    try:
        for cells in reader:
            found.append((line, [cell.strip() for cell in cells]))
            line = first + reader.line_num + 1
    except csv.Error as error:
        raise ArmsError(f"{source}, line {first + reader.line_num}: this is not CSV: {error}") from error
    return found, mark, notes


def separator(lines: Sequence[str]) -> str:
    """Return the mark that cuts the first records alike, or none wider than the header, else that one most.

    A comma that cuts alike beside another mark is a decimal one.
    """

    def fitness(mark: str) -> tuple[int, int, bool, int]:
        reader = csv.reader(lines, delimiter=mark, skipinitialspace=True)
        rows = [cells for cells in islice(reader, 20) if any(map(str.strip, cells))] or [[]]
        filled = [len(_trimmed(cells)) for cells in rows]
        alike = len({len(cells) for cells in rows}) == 1 < filled[0]
        fits = max(filled) == filled[0] > 1
        return 2 * alike or int(fits), alike * len(rows), alike and mark != ",", filled[0]

    return max(",;\t", key=fitness)


def _trimmed(cells: Sequence[str]) -> Sequence[str]:
    end = len(cells)
    while end and not cells[end - 1].strip():
        end -= 1
    return cells[:end]


def lines_of(file: IO[bytes], source: str, each: str = "arm") -> tuple[list[str], list[str]]:
    """Return the lines of a file with their ends, and a note where the code page had to be guessed."""
    raw = list(_limited(file, source, each))
    for start, book in WORKBOOKS.items():
        if raw and raw[0].startswith(start):
            way = "save it as 'CSV UTF-8 (comma delimited)', and give that file; or call it what it is"
            raise ArmsError(f"{source} is {book}: {way}")
    coding, notes = _coding(raw, source)
    try:
        pieces = [b"".join(raw).decode(coding)] if coding.startswith("utf-16") else (one.decode(coding) for one in raw)
        lines = [line for piece in pieces for line in io.StringIO(piece, newline="")]  # a return alone ends one as well
    except UnicodeDecodeError as error:
        raise _no_text(source, str(error)) from error
    if lines:
        lines[0] = lines[0].removeprefix("\ufeff")
    return lines, notes


def _limited(file: IO[bytes], source: str, each: str) -> Iterator[bytes]:
    """Yield the lines of a file; one that is too long is not read to its end."""
    number = 0
    while data := file.readline(LONGEST + 1):
        number += 1
        if len(data) > LONGEST:
            raise ArmsError(f"{source}, line {number}: more than {LONGEST:,} bytes; a table has a line for each {each}")
        yield data


def _coding(raw: Sequence[bytes], source: str) -> tuple[str, list[str]]:
    """Return the code page of lines of bytes, and a note where it is a guess."""
    if raw and raw[0].startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16", []
    for number, line in enumerate(raw, 1):
        if b"\0" in line:
            return _wide(b"".join(raw), f"{source}, line {number}", source)
    for line in raw:
        try:
            line.decode()
        except UnicodeDecodeError as error:
            return _guessed(raw, line, source, str(error))
    return "utf-8", []


def _wide(data: bytes, place: str, source: str) -> tuple[str, list[str]]:
    """Return which UTF-16 it is, by where the zeros stand."""
    for coding, zeros, others in (("utf-16-le", data[1::2], data[::2]), ("utf-16-be", data[::2], data[1::2])):
        if zeros.count(0) > 0.5 * len(zeros) and not others.count(0):
            return coding, [Guess(f"{source} is taken for UTF-16, which it does not say")]
    raise _no_text(place, "found a NUL character: this is no text")


def _guessed(raw: Sequence[bytes], line: bytes, source: str, why: str) -> tuple[str, list[str]]:
    """Return the code page of the Western Windows, of which Latin-1 is a part, where that can be."""
    try:
        if any(CONTROLS.search(one) for one in raw):
            raise _no_text(source, why)
        example = FOREIGN.search(line.decode("cp1252"))
        b"".join(raw).decode("cp1252")
    except UnicodeDecodeError:
        raise _no_text(source, why) from None
    shown = "" if example is None else f", so that it says {example[0].strip()[:40]!r}"
    return "cp1252", [Guess(f"{source} is not in UTF-8: taken for Windows-1252 (Latin-1){shown}")]


def _no_text(place: str, why: str) -> ArmsError:
    hint = "a spreadsheet writes it as 'CSV UTF-8'"
    return ArmsError(f"{place}: expected a CSV file in UTF-8, UTF-16 or Windows-1252; {why}; {hint}")
