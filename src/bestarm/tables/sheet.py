"""A person's table as it was written: columns of text, read from a frame, CSV, Parquet or .npy, and checked."""

import csv
import io
import math
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from reprlib import repr as shorten
from typing import IO, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bestarm.errors import ArmsError, UnknownNameError

Floats: TypeAlias = NDArray[np.float64]

MISSING = frozenset({"", "?", "na", "nan", "null"})
LONGEST = 1 << 26  # bytes of a line: a million columns, not a file without ends of lines

csv.field_size_limit(max(csv.field_size_limit(), LONGEST))  # 131,072 characters else, which a text may have


@dataclass(frozen=True, eq=False)
class Numbers(Sequence[str]):
    """A column of numbers `(K,)`, each as text where somebody reads it."""

    values: NDArray[Any]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[str]:
        return map(str, self.values.tolist())

    def __getitem__(self, at: Any) -> Any:
        found = self.values[at]
        return list(map(str, found.tolist())) if isinstance(at, slice) else str(found.item())


@dataclass(frozen=True)
class Sheet:
    """Columns of text cells, and what to call each row in an error."""

    columns: Mapping[str, Sequence[str]]
    places: Sequence[str] = ()

    def known(self, names: Iterable[str]) -> list[str]:
        """Return `names` once each, or refuse one that is not a column."""
        return known(self.columns, names)

    def error(self, row: int, name: str, expected: str, way_out: str) -> ArmsError:
        """Return an error that says where a cell is, what it holds, and what was expected there."""
        place = self.places[row] if self.places else f"row {row + 1}"
        found = shorten(self.columns[name][row])
        return ArmsError(f"{place}, column {name!r}: expected {expected}, found {found}; fix it, {way_out}")

    def numbers(self, name: str, way_out: str = "exclude the column, or name it categorical") -> Floats:
        """Return a column as finite numbers `(K,)`, or refuse the first cell that is none."""
        values = as_numbers(self.columns[name])
        for row in np.flatnonzero(np.isnan(values))[:1]:
            comma = not math.isnan(as_number(self.columns[name][row].replace(",", ".")))
            raise self.error(row, name, "a number" + ", with a decimal point as in 1.5" * comma, way_out)
        return values

    def counts(self, name: str) -> tuple[int, int]:
        """Return how many cells of a column hold something, and how many of those a number."""
        cells = self.columns[name]
        if isinstance(cells, Numbers):
            return int(np.count_nonzero(~np.isnan(cells.values))), int(np.count_nonzero(np.isfinite(cells.values)))
        there = [cell for cell in cells if cell.lower() not in MISSING]
        # A decimal comma counts as a number here, so that it is refused rather than read as a level.
        return len(there), sum(not math.isnan(as_number(cell.replace(",", "."))) for cell in there)

    def texts(self, name: str, known: Sequence[str] = ()) -> Sequence[str]:
        """Return a column as levels, none missing and all among those `known`, where given."""
        for row, cell in enumerate(self.columns[name]):
            if cell.lower() in MISSING or (known and cell not in known):
                expected = f"one of the levels {shorten(known)}" if known else "a level"
                raise self.error(row, name, expected, "or exclude the column")
        return self.columns[name]


def known(columns: Collection[str], names: Iterable[str]) -> list[str]:
    """Return `names` once each, or refuse one that is not among the columns."""
    listed = [names] if isinstance(names, str) else list(dict.fromkeys(names))
    for name in listed:
        if name not in columns:
            raise ArmsError(str(UnknownNameError("column", str(name), columns)))
    return listed


def chosen(
    columns: Collection[str], features: Iterable[str] | None, exclude: Iterable[str], apart: Iterable[str | None]
) -> list[str]:
    """Return the columns that are features: those named, or all but those `apart`, and none to exclude."""
    others = known(columns, (name for name in apart if name is not None))
    wanted = [name for name in columns if name not in others] if features is None else known(columns, features)
    left = known(columns, exclude)
    found = [name for name in wanted if name not in left]
    if not found:
        raise ArmsError(f"no column is left to be a feature, of {shorten(list(columns))}")
    return found


def as_text(cell: object) -> str:
    """Return what a cell says, "" where it holds nothing."""
    return "" if cell is None else str(cell).strip()


def as_number(cell: str) -> float:
    """Return the finite number a cell holds, else NaN."""
    value = as_float(cell)
    return value if math.isfinite(value) else math.nan


def as_numbers(cells: Sequence[str]) -> Floats:
    """Return the finite numbers that cells `(K,)` hold, else NaN."""
    if isinstance(cells, Numbers):
        values = cells.values.astype(np.float64)
        return np.where(np.isfinite(values), values, np.nan)
    return np.array([as_number(cell) for cell in cells], dtype=np.float64)


def as_float(cell: str) -> float:
    """Return the number a cell holds, infinities among them, else NaN."""
    try:
        return math.nan if "_" in cell else float(cell)  # Python alone reads 1_000 as a number
    except ValueError:
        return math.nan


def unique(kind: str, what: str, names: Iterable[str]) -> dict[str, int]:
    """Return the position of each name; one that is no text, blank or repeated is refused."""
    rows: dict[str, int] = {}
    for row, name in enumerate(names):
        if not isinstance(name, str) or not _encodes(name):
            raise ArmsError(f"{kind} {row + 1}: the {what} must be text; given {shorten(name)}")
        if not name or rows.setdefault(name, row) != row:
            both = f"s {rows[name] + 1} and" if name else ""
            raise ArmsError(f"{kind}{both} {row + 1}: the {what} is {name!r}; each needs its own")
    return rows


def _encodes(text: str) -> bool:
    """Return whether a text can be written: not so half of a surrogate pair."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


@dataclass(frozen=True)
class Frame:
    """An eager data frame, of pandas, polars, or another library that narwhals knows, by columns."""

    columns: Mapping[str, Any]
    index: tuple[str, Any] | None = None  # of pandas, one that names rows rather than counting them

    @classmethod
    def of(cls, frame: Any) -> "Frame":
        """Take a frame, or refuse what is none."""
        import narwhals.stable.v1 as nw

        try:
            known = nw.from_native(frame, eager_only=True)
        except (TypeError, ValueError) as error:
            raise ArmsError(f"expected an eager data frame such as pandas or polars; {error}") from error
        index: Any = nw.maybe_get_index(known)
        columns: dict[str, Any] = {str(one.name): one for one in known.iter_columns()}
        if index is None or not len(index) or (index.name is None and index.dtype.kind in "iu"):
            return cls(columns)
        name = "index" if index.name is None else str(index.name)
        return cls(columns, (name, nw.from_native(index.to_series(), series_only=True)))

    def named(self, id: str | None) -> "Frame":
        """Return the frame with its index as a column, where `id` is of that name; an index passed over is refused."""
        name, cells = self.index or (None, None)
        if name is not None and id is None:
            way = f"say id={name!r} to call the arms so, or pass frame.reset_index(drop=True)"
            raise ArmsError(f"the rows of the frame are named by its index {name!r}, which is no column: {way}")
        return replace(self, columns={name: cells, **self.columns}) if id is not None and id == name else self

    @property
    def rows(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def texts(self, name: str) -> Sequence[str]:
        """Return the cells of a column as text, "" where one is missing."""
        column = self.columns[name]
        missing, kind = column.is_null(), column.dtype
        if (kind.is_integer() or kind.is_float()) and not missing.any():
            return Numbers(np.array(column.to_numpy()))
        cells = zip(column.to_list(), missing.to_list(), strict=True)
        return ["" if null else as_text(cell) for cell, null in cells]

    def numbers(self, names: Iterable[str]) -> Floats:
        """Return columns of numbers `(K, d)`, NaN where a cell is missing."""
        import narwhals.stable.v1 as nw

        for name in names:
            kind = self.columns[name].dtype
            if not (kind.is_numeric() or kind == nw.Boolean):
                raise ArmsError(f"the frame, column {name!r}: expected numbers, found the type {kind}; leave it out")
        return np.column_stack([self.columns[name].cast(nw.Float64).to_numpy() for name in names])

    def sheet(self) -> Sheet:
        """Return all cells as text."""
        return Sheet({name: self.texts(name) for name in self.columns})


def read_file(path: str | Path) -> Sheet:
    """Read a .parquet file or folder, a .npy file with columns x1, x2, ..., or else a CSV file."""
    kind = ".parquet" if os.path.isdir(path) else Path(path).suffix.lower()
    return READERS.get(kind, read_csv)(path)


def read_csv(path: str | Path) -> Sheet:
    """Read a CSV file in UTF-8 with a header, "-" being standard input."""
    source = "standard input" if str(path) == "-" else str(path)
    records: list[tuple[str, list[str]]] = []
    try:
        with nullcontext(sys.stdin.buffer) if str(path) == "-" else Path(path).open("rb") as file:
            lines = list(lines_of(file, source))
        reader, line = csv.reader(lines, delimiter=_delimiter(lines), strict=True, skipinitialspace=True), 1
        for record in reader:
            if len(record) > 1 or any(record):
                records.append((f"{source}: row {len(records)} (line {line})", record))
            line = reader.line_num + 1
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ArmsError(f"{source}: expected a CSV file in UTF-8; {error}") from error
    if len(records) < 2:
        raise ArmsError(f"{source}: no arms: expected text, a header and then a row for each arm")
    rows, header = records[1:], unique(f"{source}: column", "name", map(str.strip, records[0][1]))
    if "0" not in header and not any(math.isnan(as_number(name)) for name in header):  # pandas writes 0,1,2
        raise ArmsError(f"{source}: expected a header of names, found the numbers {shorten([*header])}")
    for place, cells in rows:
        if len(cells) != len(header):
            raise ArmsError(f"{place}: {len(header)} cells expected, as in the header; {len(cells)} found")
    columns = {name: [cells[j].strip() for _, cells in rows] for name, j in header.items()}
    return Sheet(columns, [place for place, _ in rows])


def lines_of(file: IO[bytes], source: str, each: str = "arm") -> Iterator[str]:
    """Yield the lines of a file in UTF-8 with their ends; one that is too long is not read to its end."""
    number, coding = 0, "utf-8-sig"
    while data := file.readline(LONGEST + 1):
        number += 1
        if len(data) > LONGEST:
            raise ArmsError(f"{source}, line {number}: more than {LONGEST:,} bytes; a table has a line for each {each}")
        if b"\0" in data:
            why = "found a NUL character: this is no text, or UTF-16 without its mark"
            raise ArmsError(f"{source}, line {number}: expected a CSV file in UTF-8, {why}")
        yield from io.StringIO(data.decode(coding), newline="")  # a return alone ends a line as well
        coding = "utf-8"


def _delimiter(lines: Sequence[str]) -> str:
    """Return the mark that cuts the first records alike, else the one that cuts the header most."""
    widths: dict[str, list[int]] = {}
    for mark in ",;\t":
        widths[mark] = [len(cells) for cells in islice(csv.reader(lines, delimiter=mark), 20) if cells] or [0]
    return max(widths, key=lambda mark: (len(set(widths[mark])) == 1 < widths[mark][0], widths[mark][0]))


def _read_parquet(path: str | Path) -> Sheet:
    from bestarm.tables.parquet import parquet_cells

    return Sheet(*parquet_cells(Path(path)))


def _read_npy(path: str | Path) -> Sheet:
    from bestarm.tables.memory import mapped

    table = mapped(Path(path))
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        raise ArmsError(f"{path}: expected K rows of d numbers; found the shape {table.shape} of {table.dtype}")
    cells = (list(map(str, one.tolist())) if one.dtype.kind == "b" else Numbers(np.array(one)) for one in table.T)
    columns = {f"x{j}": column for j, column in enumerate(cells, 1)}
    return Sheet(columns, [f"{path}: row {row}" for row in range(1, len(table) + 1)])


READERS: dict[str, Callable[[str | Path], Sheet]] = {
    ".parquet": _read_parquet,
    ".pq": _read_parquet,
    ".npy": _read_npy,
}
