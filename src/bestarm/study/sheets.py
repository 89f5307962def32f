"""Sheets of results as people save them; what spreadsheets do to ids."""

import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bestarm.errors import InputError
from bestarm.study.columns import SUMS, TIMES, WHERE, Columns
from bestarm.tables.cells import MISSING, way_out
from bestarm.tables.files import Grid, read_grid
from bestarm.tables.sheet import as_float

OURS = ("trial", "arm", "reward", "failed", "id")
WELLS = ("plate", "well")
NOT_FAILED = MISSING | {"0", "no", "false"}
MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec"
TAKEN_FOR = (
    r"[=+\-@].*",  # a formula
    r"0\d+(\.\d*)?|\d{12,}|\d+\.\d*0|\d*\.?\d+e[+-]?\d+|\d+(\.\d+)?%|\d+ \d+/\d+",  # a number written otherwise
    r"\d{1,4}[-/]\d{1,4}([-/]\d{1,4})?|\d{1,2}\.\d{1,2}(\.\d{2,4})?|\d{1,2}:\d\d(:\d\d)?",  # a date or a time
    rf"({MONTHS})[a-z]*[-/. ]?\d{{1,4}}|\d{{1,4}}[-/. ]?({MONTHS})[a-z]*([-/. ]\d{{2,4}})?",
    r"true|false",
)
LIKE_TRIAL = re.compile(r"[Tt]\d{4,18}", re.ASCII)
CHANGED = re.compile("|".join(TAKEN_FOR), re.ASCII | re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Row:
    """A line of results: what stands in our columns, blank where nothing does."""

    line: int
    trial: str = ""
    arm: str = ""
    reward: str = ""
    failed: str = ""
    id: str = ""
    plate: str = ""
    well: str = ""
    successes: str = ""
    mean: str = ""
    sd: str = ""
    trials: str = ""
    n: str = ""
    times: str = ""
    others: tuple[tuple[str, str], ...] = ()  # columns and cells that may be trials' ids, where `trial` has none
    each: str = "line"  # or row
    names: Mapping[str, str] = field(default_factory=dict)  # what the file calls columns of ours

    def called(self, column: str) -> str:
        """Return what the file calls one of our columns."""
        return self.names.get(column, column)

    @property
    def has_failed(self) -> bool:
        """Whether the trial went wrong."""
        return self.failed.lower() not in NOT_FAILED

    @property
    def measured(self) -> bool:
        """Whether there is something in the place of the reward, or of what several rewards come to."""
        return self.reward.lower() not in MISSING or bool(self.sums)

    @property
    def sums(self) -> dict[str, str]:
        """What several rewards come to, by column."""
        return {name: cell for name in SUMS if (cell := getattr(self, name)).lower() not in MISSING}

    @property
    def count(self) -> tuple[str, str]:
        """How many rewards the sums are of, as written, and the column that says so."""
        there = ((getattr(self, name), name) for name in TIMES)
        return next((one for one in there if one[0].lower() not in MISSING), ("", TIMES[0]))


def read_rows(data: bytes, name: str, columns: Columns = Columns()) -> tuple[list[Row], tuple[str, ...]]:  # noqa: B008
    """Return the rows of a file that say something, and what was found in reading it; columns may come in any order.

    The format goes by the suffix of `name`.
    """
    return rows_of(read_grid(io.BytesIO(data), name, Path(name).suffix.lower(), "result"), columns)


def rows_of(grid: Grid, columns: Columns) -> tuple[list[Row], tuple[str, ...]]:
    """Return the rows of results in a grid that say something, and its notes."""
    header, guessed = columns.header(grid)
    numbers = ("reward",) if "reward" in header and {*WHERE} & {*header} else (*SUMS, *TIMES)
    places = _places(header, grid.source, columns.key, numbers)
    places += [(name, header.index(name)) for name in WELLS if header.count(name) == 1]
    names = {ours: grid.header[at] for ours, at in places if header[at] != grid.header[at].lower()}
    measured = {grid.header[at] for column, at in places if column in numbers}
    grid = grid.plain(measured.__contains__)
    apart = {at for column, at in places if column != "id"}
    rows = []
    for line, cells in zip(grid.lines, zip(*grid.columns, strict=True), strict=True):
        own = {column: cells[at] for column, at in places}
        if any(own.values()):
            at_trials = () if own.get("trial") else _like_trials(grid.header, cells, apart)
            rows.append(Row(line, **own, others=at_trials, each=grid.each, names=names))
    return rows, (*guessed, *grid.notes)


def _like_trials(header: Sequence[str], cells: Sequence[str], apart: set[int]) -> tuple[tuple[str, str], ...]:
    """Return the columns, but for some, that have what is written like a trial's id, and what they have."""
    there = enumerate(zip(header, (cell.strip() for cell in cells), strict=False))
    return tuple((column, cell) for at, (column, cell) in there if at not in apart and LIKE_TRIAL.fullmatch(cell))


def _places(header: Sequence[str], name: str, key: str | None, numbers: Sequence[str]) -> list[tuple[str, int]]:
    """Return where our columns are, under our names for them."""
    wanted = {column: column for column in dict.fromkeys((*OURS, *numbers))}
    if key is not None:
        wanted["id"] = key.strip().lower()
        if wanted["id"] in OURS[:4]:
            raise InputError(f"column {key!r} is no key: a column that names each row is expected")
        if wanted["id"] not in header:
            raise InputError(f"{name}, line 1: there is no column {key!r}; there are {', '.join(header)[:200]}")
    for column in wanted.values():
        if header.count(column) > 1:
            raise InputError(f"{name}, line 1: there are {header.count(column)} columns {column!r}; one is expected")
    return [(ours, header.index(column)) for ours, column in wanted.items() if column in header]


def number(text: str, column: str = "reward") -> float:
    """Return the number in a cell, or refuse what is none."""
    value = as_float(text)
    if math.isnan(value):
        hint = f"; {way_out(text)}" if way_out(text) else ""
        raise InputError(f"column {column!r}: a number is expected; found {text[:40]!r}{hint}")
    return value


def changed_by_spreadsheets(ids: Iterable[str]) -> list[str]:
    """Return the ids that a spreadsheet takes for a number, a date or a formula, and so may write back otherwise.

    >>> changed_by_spreadsheets(["gel", "0002", "MAR1", "1E10", "=1+1", "1-2", "1234567890123456", "R2", "17", "A-1"])
    ['0002', 'MAR1', '1E10', '=1+1', '1-2', '1234567890123456']
    """
    return [id for id in ids if CHANGED.fullmatch(id[:64])]


def plain(id: str) -> str:
    """Return what a spreadsheet leaves of an id: no blanks around it, nor zeros that a number does not need.

    >>> [plain(id) for id in ("0002", " gel ", "1.10", "007.0", "0", "A01", "1e5")]
    ['2', 'gel', '1.1', '7', '0', 'A01', '1e5']
    """
    text = id.strip()
    whole, _, part = text.partition(".")
    if not (text.isascii() and whole.isdigit() and (whole + part).isdigit()):
        return text
    left = part.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{left}" if left else "")


def timed(seconds: float | None) -> str:
    """Return a time, in seconds since 1970, with its zone, UTC; a number that is no time as it stands.

    >>> timed(1777627800.5), timed(None), timed(1e300)
    ('2026-05-01T09:30:00+00:00', '', '1e+300')
    """
    if seconds is None:
        return ""
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).isoformat(timespec="seconds")
    except (OverflowError, ValueError):
        return str(seconds)
