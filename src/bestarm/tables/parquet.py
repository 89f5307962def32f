"""Parquet: one file or a folder of them, decoded into one bounded buffer. Needs pyarrow."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bestarm.core import AnyArray
from bestarm.errors import ArmsError, BestArmError, InputError, UnknownNameError
from bestarm.tables.memory import check_unchanged, file_stamp
from bestarm.tables.sheet import Numbers
from bestarm.tables.source import STREAM, Combine, Done, Kernel, P, Rows, block_length, check_costs, fold, numbered

READ_AHEAD = 1 << 20  # bytes that are read at once of one column


@dataclass(frozen=True)
class ParquetPart:
    """One file: its rows by row group, and what it looked like when it was opened."""

    path: Path
    groups: tuple[int, ...]
    stamp: tuple[int, int]

    @property
    def rows(self) -> int:
        return sum(self.groups)


@dataclass(frozen=True)
class ParquetSource:
    """Columns `names` of Parquet files, in the order of the files' names, divided by √cost where a cost is named."""

    parts: tuple[ParquetPart, ...]
    names: tuple[str, ...]
    block_rows: int
    memory: int | None
    dtype: np.dtype[Any]
    cost: str | None = None
    id: str | None = None

    @classmethod
    def of(
        cls,
        path: Path,
        columns: Sequence[str] | None = None,
        block_rows: int | None = None,
        memory: int | None = None,
        cost: str | None = None,
        id: str | None = None,
    ) -> "ParquetSource":
        """Read the footers of a file, or of all *.parquet files of a folder; no row is read yet."""
        paths, parts, schemas = _footers(path)
        chosen = tuple(columns) if columns is not None else tuple(name for name in schemas[0] if name != cost)
        kinds = [_number_type(*found) for found in _chosen_types(paths, schemas, chosen, cost)]
        if not chosen:
            raise ArmsError(f"{path}: there are no columns to use; at least one is needed")
        if not any(part.rows for part in parts):
            raise ArmsError(f"{path}: there are no rows; at least one is needed")
        single = all(kind == np.dtype(np.float32) for kind in kinds)
        length = block_length(len(chosen), block_rows, memory, STREAM)
        return cls(tuple(parts), chosen, length, memory, np.dtype(np.float32 if single else np.float64), cost, id)

    @property
    def rows(self) -> int:
        return sum(part.rows for part in self.parts)

    @property
    def columns(self) -> int:
        return len(self.names)

    def sweep(self, kernel: Kernel[P], combine: Combine[P], done: Done | None = None) -> P:
        self._check()
        total = fold(self._blocks(), kernel, combine, done, str(self.parts[0].path))
        self._check()
        return total

    def take(self, index: NDArray[np.int64]) -> Rows:
        """Return rows `index`; each row group they lie in is read once."""
        self._check()
        wanted, back = np.unique(np.asarray(index, dtype=np.int64), return_inverse=True)
        out = np.empty((len(wanted), self.columns), self.dtype)
        for part, group, start, count in self._groups():
            low, high = np.searchsorted(wanted, [start, start + count])
            if low < high:
                with _opened(part.path) as file:
                    table = file.read_row_group(group, columns=self._read_names)
                    self._numbers(table, start, out[low:high], wanted[low:high] - start)
        return out[back]

    def costs(self, index: NDArray[np.int64]) -> NDArray[np.float64] | None:
        if self.cost is None:
            return None
        alone = replace(self, names=(self.cost,), cost=None, dtype=np.dtype(np.float64))
        return np.asarray(alone.take(index)[:, 0])

    def ids(self, index: NDArray[np.int64]) -> list[str]:
        if self.id is None:
            return numbered(index)
        cells = self.texts(self.id, index)
        for row, cell in zip(index, cells, strict=True):
            if not cell:
                raise ArmsError(f"{self.place(int(row))}, column {self.id!r}: the id is missing")
        return cells

    def texts(self, name: str, index: NDArray[np.int64]) -> list[str]:
        """Return the cells of any column, such as one of ids, in rows `index` `(m,)`; "" where one is missing."""
        self._check()
        found: dict[int, str] = {}
        wanted = np.unique(np.asarray(index, dtype=np.int64))
        for part, group, start, count in self._groups():
            low, high = np.searchsorted(wanted, [start, start + count])
            if low < high:
                with _opened(part.path) as file:
                    if name not in file.schema_arrow.names:
                        raise ArmsError(f"{part.path}: {UnknownNameError('column', name, file.schema_arrow.names)}")
                    column = file.read_row_group(group, columns=[name]).column(name)
                    found |= {row: _text(column[row - start].as_py()) for row in wanted[low:high].tolist()}
        return [found[int(row)] for row in index]

    def place(self, row: int) -> str:
        for part, group, start, count in self._groups():
            if start <= row < start + count:
                return f"{part.path}: row {row - self._first_of(part) + 1}, row group {group}"
        return f"row {row + 1}"

    @property
    def _read_names(self) -> list[str]:
        return [*self.names, *([] if self.cost is None else [self.cost])]

    def _check(self) -> None:
        for part in self.parts:
            check_unchanged(part.path, part.stamp)

    def _first_of(self, part: ParquetPart) -> int:
        return sum(one.rows for one in self.parts[: self.parts.index(part)])

    def _groups(self) -> Iterator[tuple[ParquetPart, int, int, int]]:
        start = 0
        for part in self.parts:
            for group, count in enumerate(part.groups):
                yield part, group, start, count
                start += count

    def _blocks(self) -> Iterator[tuple[int, AnyArray]]:
        """Yield blocks of the same length whatever the row groups are, all in one buffer."""
        buffer = np.empty((min(self.block_rows, self.rows), self.columns), self.dtype)
        start, filled = 0, 0
        for part in self.parts:
            with _opened(part.path, buffer_size=READ_AHEAD, pre_buffer=False) as file:
                for batch in file.iter_batches(len(buffer), columns=self._read_names, use_threads=False):
                    self._expect(start + filled + batch.num_rows <= self.rows)
                    given = 0
                    while given < batch.num_rows:
                        piece = batch.slice(given, min(len(buffer) - filled, batch.num_rows - given))
                        self._numbers(piece, start + filled, buffer[filled : filled + piece.num_rows], slice(None))
                        given, filled = given + piece.num_rows, filled + piece.num_rows
                        if filled == len(buffer):
                            yield start, buffer
                            start, filled = start + filled, 0
        self._expect(start + filled == self.rows)
        if filled:
            yield start, buffer[:filled]

    def _expect(self, holds: bool) -> None:
        if not holds:
            raise ArmsError(f"{self.parts[0].path}: expected {self.rows} rows, as the footers say; there are others")

    def _numbers(self, table: Any, start: int, out: Rows, some: Any) -> None:
        """Write the columns of `some` rows of an Arrow table into `out` `(m, d)`; a missing cell becomes NaN."""
        for j, name in enumerate(self.names):
            out[:, j] = _as_numpy(table, name)[some]
        if self.cost is not None:
            cost = np.asarray(_as_numpy(table, self.cost), dtype=np.float64)
            check_costs(cost, start, self)
            out /= np.sqrt(cost[some])[:, None]


def parquet_shape(path: Path) -> tuple[int, tuple[str, ...]]:
    """Return the number of rows and the names of the columns of a file, or of a folder of files."""
    _, parts, schemas = _footers(path)
    return sum(part.rows for part in parts), tuple(schemas[0])


def parquet_cells(path: Path) -> tuple[dict[str, Sequence[str]], list[str]]:
    """Return all columns of a file or folder, "" where a cell is missing, and how to call each row."""
    _, parts, schemas = _footers(path)
    columns: dict[str, list[Any]] = {name: [] for name in schemas[0]}
    places: list[str] = []
    for part in parts:
        with _opened(part.path) as file:
            for name, pieces in columns.items():
                if name not in file.schema_arrow.names:
                    raise ArmsError(f"{part.path}: {UnknownNameError('column', name, file.schema_arrow.names)}")
                pieces.append(file.read(columns=[name]).column(name))
                if len(pieces[-1]) != part.rows:
                    raise ArmsError(f"{part.path}, column {name!r}: {part.rows} rows expected; {len(pieces[-1])} found")
        where = [group for group, count in enumerate(part.groups) for _ in range(count)]
        places += [f"{part.path}: row {row}, row group {group}" for row, group in enumerate(where, 1)]
    with _sound(path):
        return {name: _cells(pieces) for name, pieces in columns.items()}, places


def _cells(pieces: Sequence[Any]) -> Sequence[str]:
    """Return a column's pieces as numbers, where all are and none is missing, else as text."""
    import pyarrow.types as types

    kind = pieces[0].type
    numeric = types.is_integer(kind) or types.is_floating(kind)
    if numeric and all(piece.type == kind and not piece.null_count for piece in pieces):
        return Numbers(np.concatenate([piece.to_numpy() for piece in pieces]))
    return [_text(cell) for piece in pieces for cell in piece.to_pylist()]


def _text(cell: object) -> str:
    return "" if cell is None else str(cell).strip()


def _footers(path: Path) -> tuple[list[Path], list[ParquetPart], list[dict[str, Any]]]:
    """Return the files of a path, their row groups, and the types of their columns by name."""
    parquet = pyarrow_parquet()
    paths = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not paths:
        raise ArmsError(f"{path}: expected *.parquet files in this folder; found none")
    parts: list[ParquetPart] = []
    schemas: list[dict[str, Any]] = []
    for one in paths:
        stamp = file_stamp(one)
        with _sound(one):
            footer = parquet.read_metadata(one)
            arrow = footer.schema.to_arrow_schema()
            schema = {field.name: field.type for field in arrow}
            if not schema or len(schema) < len(arrow):
                raise ArmsError(f"{one}: {len(arrow)} columns, with {len(schema)} names; each needs its own")
            groups = tuple(footer.row_group(j).num_rows for j in range(footer.num_row_groups))
            if min(groups, default=0) < 0:
                raise ArmsError(f"{one}: expected a Parquet file; a row group claims {min(groups)} rows")
        schemas.append(schema)
        parts.append(ParquetPart(one, groups, stamp))
    return paths, parts, schemas


@contextmanager
def _sound(path: Path) -> Iterator[None]:
    """Name the file in whatever goes wrong while it is read: pyarrow has its own tree of errors, and others."""
    try:
        yield
    except BestArmError:
        raise
    except Exception as error:
        raise ArmsError(f"{path}: expected a Parquet file; {type(error).__name__}: {error}") from error


@contextmanager
def _opened(path: Path, **options: Any) -> Iterator[Any]:
    with _sound(path), pyarrow_parquet().ParquetFile(path, **options) as file:
        yield file


def _as_numpy(table: Any, name: str) -> NDArray[Any]:
    """Return a column of an Arrow table or record batch as numbers, NaN where a cell is missing."""
    import pyarrow

    column = table.column(name)
    if not pyarrow.types.is_floating(column.type):
        column = column.cast(pyarrow.float64(), safe=False)  # of bools and decimals NumPy makes objects
    if column.null_count:
        column = column.fill_null(float("nan"))
    # by to_numpy, as by a column's take, pyarrow would import pandas where there is one
    pieces = [np.from_dlpack(piece) for piece in getattr(column, "chunks", [column])]
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def pyarrow_parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise InputError("Parquet needs pyarrow: pip install 'bestarm-bai[big]'") from error
    return pyarrow.parquet


def _chosen_types(
    paths: Sequence[Path], schemas: Sequence[dict[str, Any]], chosen: Sequence[str], cost: str | None
) -> Iterator[tuple[Path, str, Any]]:
    for path, schema in zip(paths, schemas, strict=True):
        for name in [*chosen, *([] if cost is None else [cost])]:
            if name not in schema:
                raise ArmsError(f"{path}: {UnknownNameError('column', name, schema)}")
            if name != cost:
                yield path, name, schema[name]


def _number_type(path: Path, name: str, kind: Any) -> np.dtype[Any]:
    import pyarrow.types as types

    if types.is_float32(kind):
        return np.dtype(np.float32)
    if types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind):
        return np.dtype(np.float64)
    raise ArmsError(f"{path}: column {name!r}: expected numbers, found the type {kind}; choose columns without it")
