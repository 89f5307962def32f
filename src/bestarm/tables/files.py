"""Files with a table, of candidates or of results: the format goes by the suffix, CSV where it says nothing else."""

import io
import math
import os
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from reprlib import repr as shorten
from typing import IO, Any

import numpy as np

from bestarm.errors import ArmsError
from bestarm.tables.cells import Guess, plain_columns, units
from bestarm.tables.sheet import Numbers, Sheet, as_number, unique
from bestarm.tables.text import records


@dataclass(frozen=True)
class Grid:
    """A header and rows of as many cells, none of them empty; `lines` say where they stand in the file."""

    source: str
    header: Sequence[str]
    columns: Sequence[Sequence[str]]
    lines: Sequence[int] = ()
    each: str = "line"
    notes: tuple[str, ...] = ()
    mark: str = field(default="", repr=False)  # between cells

    @classmethod
    def of(
        cls, source: str, found: Iterable[tuple[int, Sequence[str]]], notes: Iterable[str], each: str, mark: str = ""
    ) -> "Grid":
        """Take records without what is empty and without a row of units; refuse cells that stand under no name."""
        some = [(line, cells) for line, cells in found if any(cells)]
        header = [" ".join(cell.splitlines()) for cell in some[0][1]] if some else []
        wide = [
            f"{source}, {each} {line}: {len(header)} cells expected, as in the header; {len(cells)} found"
            + "; is that a decimal comma? write 1.5, or separate the columns by ;" * (mark == "," and len(header) > 1)
            + "; the header is to be the first row that holds anything" * (len(header) == 1)
            for line, cells in some[1:]
            if any(cells[len(header) :])
        ]
        if wide:
            raise ArmsError(*wide)
        rows = [[*cells[: len(header)], *[""] * (len(header) - len(cells))] for _, cells in some[1:]]
        columns = dict(enumerate(map(list, zip(*rows, strict=True)))) if rows else {j: [] for j in range(len(header))}
        said, lines = list(notes), [line for line, _ in some[1:]]
        if len(header) == 1 and " " in header[0] and rows:  # a list of texts, perhaps, whose first stands there
            said.append(Guess(f"{each} {some[0][0]} of {source}, {header[0]!r}, is taken for the name of the column"))
        for at, name in enumerate(header):
            counted = name in ("", "Unnamed: 0") and at == 0 and columns[at] == [*map(str, range(len(rows)))]
            if counted and len(header) > 1 and rows:
                said.append(f"column {at + 1} of {source} only counts the rows: left out")
            if (not name and not any(columns[at])) or (counted and len(header) > 1):
                del columns[at]
        measured = units([*columns.values()]) if len(rows) > 1 else None
        if measured is not None:
            shown = ", ".join(f"{header[at]} in {unit}" for at, unit in zip(columns, measured, strict=True) if unit)
            said.append(Guess(f"{each} {lines[0]} of {source} is taken for a row of units: {shown}"))
            lines, columns = lines[1:], {at: cells[1:] for at, cells in columns.items()}
        return cls(source, [header[at] for at in columns], [*columns.values()], lines, each, tuple(said), mark)

    def plain(self, which: Callable[[str], bool]) -> "Grid":
        """Return the grid with the numbers and dates of some columns as programs write them."""
        some = [at for at, name in enumerate(self.header) if which(name)]
        found, notes = plain_columns([(self.header[at], self.columns[at]) for at in some], self.mark in {";", "\t"})
        columns = dict(enumerate(self.columns)) | dict(zip(some, found, strict=True))
        return Grid(
            self.source, self.header, [*columns.values()], self.lines, self.each, (*self.notes, *notes), self.mark
        )

    def sheet(self, keep: Collection[str | None] = (), na: Iterable[str] = ()) -> Sheet:
        """Return the grid as a table of arms, whose columns have a name each; those to `keep` stay as they stand."""
        if not self.lines:
            raise ArmsError(f"{self.source}: no arms: expected text, a header and then a row for each arm")
        for at in [at for at, name in enumerate(self.header, 1) if not name][:1]:
            what = f"{self.source}: column {at}: the name is ''; each needs its own"
            raise ArmsError(f"{what}, and the header is to be the first row that holds anything")
        names = unique(f"{self.source}: column", "name", self.header)
        if "0" not in names and not any(math.isnan(as_number(name)) for name in names):  # pandas writes 0,1,2
            raise ArmsError(f"{self.source}: expected a header of names, found the numbers {shorten([*names])}")
        places = [f"{self.source}: row {row} ({self.each} {line})" for row, line in enumerate(self.lines, 1)]
        sheet = Sheet(dict(zip(names, self.columns, strict=True)), places, self.notes)
        return sheet.plain(keep, na, self.mark in {";", "\t"})


def read_grid(file: IO[bytes], source: str, kind: str, each: str = "arm") -> Grid:
    """Return what is in a file of a kind, its suffix."""
    if kind in (".xlsx", ".xlsm", ".xls", ".ods"):
        from bestarm.tables.workbook import rows_of

        rows, notes = rows_of(file, source, kind)
        return Grid.of(source, enumerate(rows, 1), notes, "row")
    if kind in (".parquet", ".pq"):
        return frame_grid(_parquet(file, source), source)
    found, mark, notes = records(file, source, each)
    return Grid.of(source, found, notes, "line", mark)


def frame_grid(frame: Any, source: str) -> Grid:
    """Return the cells of a data frame, or of a list of dicts, as text."""
    sheet = Sheet.of(frame)
    columns = [list(cells) for cells in sheet.columns.values()]
    count = len(columns[0]) if columns else 0
    return Grid(source, list(sheet.columns), columns, range(1, count + 1), "row")


def read_file(path: str | Path, keep: Collection[str | None] = (), na: Iterable[str] = ()) -> Sheet:
    """Read a workbook, a .parquet file or folder, a .npy file with columns x1, x2, ..., or else a CSV file.

    "-" is standard input. Columns to `keep` are texts and stay as they stand; `na` are texts that mean a missing cell.
    """
    kind = ".parquet" if os.path.isdir(path) else Path(path).suffix.lower()
    if kind in READERS:
        return READERS[kind](path).plain(keep, na)
    source = "standard input" if str(path) == "-" else str(path)
    try:
        with nullcontext(sys.stdin.buffer) if str(path) == "-" else Path(path).open("rb") as file:
            return read_grid(file, source, kind).sheet(keep, na)
    except (OSError, ValueError) as error:
        if isinstance(error, ArmsError):
            raise
        why = getattr(error, "strerror", None) or str(error)
        raise ArmsError(f"{source} cannot be read: {why}") from error


def _parquet(file: IO[bytes], source: str) -> Any:
    from bestarm.tables.parquet import pyarrow_parquet

    try:
        return pyarrow_parquet().read_table(io.BytesIO(file.read()))
    except (OSError, ValueError) as error:
        raise ArmsError(f"{source}: expected a Parquet file; {error}") from error


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
