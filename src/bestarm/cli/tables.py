"""Tables that are read in blocks, as commands open them: .npy and Parquet."""

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bestarm.errors import ArmsError, InputError, UnknownNameError
from bestarm.tables import Source, open_source
from bestarm.tables.parquet import ParquetSource, parquet_shape
from bestarm.tables.views import ColumnsSource, InterceptSource, PricedSource, WatchedSource, gathered

SMALL = 100_000  # rows up to which a table is read as a whole, with ids, categories and all policies
UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}


def in_blocks(path: str) -> bool:
    """Return whether a table is of a kind that can be read in blocks."""
    return os.path.isdir(path) or Path(path).suffix.lower() in (".npy", ".parquet", ".pq")


def shape(path: str) -> tuple[int, tuple[str, ...]]:
    """Return the number of rows and the names of the columns, without reading the rows."""
    if not os.path.exists(path):  # False as well where a name is too long
        raise InputError(f"{path}: there is no such file or folder")
    if Path(path).suffix.lower() == ".npy":
        source = open_source(path)
        return source.rows, source.names
    return parquet_shape(Path(path))


def chosen(names: Sequence[str], feature: Iterable[str], exclude: Iterable[str], apart: Iterable[str]) -> list[str]:
    """Return the columns that are features: those named, or all but those excluded or used for something else."""
    wanted, left, used = list(dict.fromkeys(feature)), set(exclude), set(apart)
    for name in [*wanted, *left, *used]:
        if name not in names:
            raise ArmsError(str(UnknownNameError("column", name, names)))
    found = [name for name in (wanted or names) if name not in left and (wanted or name not in used)]
    if not found:
        raise ArmsError("no column is left to be a feature")
    return found


def open_table(
    path: str,
    columns: Sequence[str],
    memory: int | None = None,
    cost: str | None = None,
    intercept: bool = False,
) -> Source:
    """Return the source of some columns of a table, with costs and a constant where wanted."""
    if Path(path).suffix.lower() == ".npy":
        whole = open_source(path, memory=memory)
        source: Source = whole if tuple(columns) == whole.names else ColumnsSource.of(whole, columns)
    elif cost is not None and not intercept:
        return open_source(path, columns, memory=memory, cost=cost)
    else:
        source = open_source(path, columns, memory=memory)
    source = InterceptSource(source) if intercept else source
    return source if cost is None else PricedSource.of(source, gathered(open_table(path, [cost]))[:, 0])


@dataclass
class Ids:
    """What arms are called: their row numbers, counted from 1, or the cells of a column, looked up when needed."""

    path: str
    column: str | None = None
    known: dict[int, str] = field(default_factory=dict)

    def of(self, rows: Any) -> list[str]:
        """Return the ids of rows `(m,)`, counted from 0."""
        wanted = [int(row) for row in rows]
        if self.column is None:
            return [str(row + 1) for row in wanted]
        missing = np.array([row for row in wanted if row not in self.known], dtype=np.int64)
        if len(missing):
            self.known |= dict(zip(missing.tolist(), self._cells(missing), strict=True))
        return [self.known[row] for row in wanted]

    def __getitem__(self, row: Any) -> str:
        return self.of([row])[0]

    def _cells(self, rows: Any) -> list[str]:
        assert self.column is not None
        if Path(self.path).suffix.lower() == ".npy":
            cells = open_table(self.path, [self.column]).take(rows)[:, 0].tolist()
            return [str(int(cell)) if cell == int(cell) else str(cell) for cell in cells]
        source = ParquetSource.of(Path(self.path), columns=_any_number(self.path))
        cells = source.texts(self.column, rows)
        for row, cell in zip(rows, cells, strict=True):
            if not cell:
                raise ArmsError(f"{source.place(int(row))}, column {self.column!r}: the id is missing")
        return cells


def _any_number(path: str) -> list[str]:
    """Return the name of one column of numbers: a source has at least one."""
    for name in parquet_shape(Path(path))[1]:
        try:
            ParquetSource.of(Path(path), columns=[name])
        except ArmsError:
            continue
        return [name]
    raise ArmsError(f"{path}: there is no column of numbers")


class PassBar:
    """A bar on stderr for each pass over a table; nothing where nobody watches."""

    def __init__(self) -> None:
        from tqdm import tqdm

        silent = not sys.stderr.isatty()
        self.bar = tqdm(total=1, unit=" rows", unit_scale=True, disable=silent, file=sys.stderr, leave=False)
        self.passes, self.at = 0, 0

    def over(self, source: Source) -> Source:
        """Return the same source, whose passes are shown."""
        return WatchedSource(source, self.watch)

    def watch(self, at: int, rows: int) -> None:
        """Show that `at` of `rows` rows are read."""
        if self.passes == 0 or at <= self.at:
            self.passes, self.at = self.passes + 1, 0
            self.bar.reset(rows)
            self.bar.set_description(f"pass {self.passes}")
        self.bar.update(at - self.at)
        self.at = at

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self.bar.write(line, file=sys.stderr)

    def __enter__(self) -> "PassBar":
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()


def size(text: str) -> int:
    """Return a size such as 500MB or 2GiB in bytes.

    >>> size("1GB"), size("0.5 MiB"), size("4096")
    (1000000000, 524288, 4096)
    """
    digits = text.strip().lower().rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = text.strip().lower()[len(digits) :].strip() or "b"
    try:
        return int(float(digits) * UNITS[unit])
    except (KeyError, ValueError, OverflowError):
        raise InputError(f"a size is a number and a unit, such as 500MB or 2GiB; given {text!r}") from None
