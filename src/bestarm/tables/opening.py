"""One way in: whatever holds a table is opened as arms or, where it is long, as a source that is read in blocks."""

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bestarm.core import AnyArray
from bestarm.errors import ArmsError, InputError, UnknownNameError
from bestarm.tables.arms import Arms, Names
from bestarm.tables.encoding import Column, Encoding
from bestarm.tables.memory import ArraySource, MappedSource
from bestarm.tables.sheet import Frame, chosen
from bestarm.tables.source import Source
from bestarm.tables.views import ColumnsSource, Index, InterceptSource, NamedSource, PricedSource, gathered

SMALL = 100_000  # rows up to which a table is read as a whole, with categories, labels and all policies
PARQUET = (".parquet", ".pq")
READING = (
    "id", "features", "exclude", "categorical", "scale", "intercept", "cost", "missing", "na"
)  # fmt: skip


def open_table(
    table: Any,
    *,
    id: str | None = None,
    features: Names = None,
    exclude: Iterable[str] = (),
    categorical: Iterable[str] = (),
    scale: Literal["none", "minmax", "standard"] = "none",
    intercept: bool = False,
    cost: str | None = None,
    missing: Literal["refuse", "mean", "category"] = "refuse",
    na: Iterable[str] = (),
    memory: int | None = None,
) -> Arms | Source:
    """Open a table of candidates: a path, a data frame, a list of dicts, or an array of any library.

    A path is one of CSV, .xlsx, .ods, Parquet or .npy. A list of texts, or a number, is of arms without features.

    Up to 100,000 rows it is read as a whole, and so is CSV of any length: what comes is `Arms`. Anything longer is a
    `Source`, read in blocks, whose features are numbers as they stand. Columns of arrays and .npy are x1, x2, ...

    `id` is the column that names rows, their numbers from 1 otherwise; `cost` that of the price of a pull. `features`
    are the columns to use, otherwise all others; those to `exclude` are never used. `categorical`, `scale` and
    `intercept` are as in `Arms.from_frame`, and so are `missing` and `na`; all but `intercept` are not for arrays and
    sources. `memory` limits, in bytes, what is held of a source at once.

    >>> open_table([[1.0, 5.0], [2.0, 7.0]], features=["x2"], intercept=True)
    Arms(2 arms, 2 features, rank 2)
    """
    texts: dict[str, Any] = {"categorical": categorical, "scale": scale, "missing": missing, "na": na}
    rest: dict[str, Any] = {"id": id, "exclude": exclude, "intercept": intercept, "cost": cost}
    if _is_alone(table):
        if features is not None or any(rest.values()) or categorical or scale != "none":
            raise InputError(
                "a list of names, or a number of arms, has no columns to choose from: leave the options out"
            )
        return Arms.without_features(table)
    if _is_records(table):
        return Arms.from_frame(table, features=features, **rest, **texts)
    small = (_is_path(table) and not in_blocks(table)) or shape(table)[0] <= SMALL
    if small and not is_array(table):
        read = Arms.from_file if _is_path(table) else Arms.from_frame
        return read(table, features=features, **rest, **texts)
    _as_it_stands(**texts)
    return _arms(table, features, **rest) if small else open_source(table, features, memory=memory, **rest)


def as_arms(table: Any, **reading: Any) -> Arms:
    """Return a table as arms in memory, read with the options of `open_table`; arms as they are."""
    _known_options(reading)
    if isinstance(table, Arms):
        if reading:
            raise InputError(f"{', '.join(reading)}: say how a table is read where it is opened")
        return table
    if is_array(table) and not reading:
        return Arms.from_arrays(table)
    found = open_table(table, **reading)
    if not isinstance(found, Arms):
        raise InputError(
            f"the table has {found.rows:,} rows, and more than {SMALL:,} are read in blocks: give a Parquet file"
        )
    return found


def _known_options(reading: Iterable[str], *more: str) -> None:
    for name in reading:
        if name not in (*READING, *more):
            raise UnknownNameError("option", name, (*READING, *more))


def in_blocks(table: Any) -> bool:
    """Return whether a table can be read in blocks: an array, a .npy file, Parquet."""
    return _is_parquet(table) or Path(table).suffix.lower() == ".npy" if _is_path(table) else is_array(table)


def shape(table: Any) -> tuple[int, tuple[str, ...]]:
    """Return the number of rows and the names of the columns; the rows of a file are not read."""
    if _is_parquet(table):
        from bestarm.tables.parquet import parquet_shape

        return parquet_shape(_existing(table))
    if _is_path(table) or is_array(table):
        source = _of_numbers(table)
        return source.rows, source.names
    frame = _frame(table)
    return frame.rows, tuple(frame.columns)


def open_source(
    table: AnyArray | str | Path,
    columns: Iterable[str] | None = None,
    block_rows: int | None = None,
    memory: int | None = None,
    cost: str | ArrayLike | None = None,
    *,
    id: str | None = None,
    exclude: Iterable[str] = (),
    intercept: bool = False,
) -> Source:
    """Return the source of a table of K candidate rows and d features, of any length.

    `table` is an array `(K, d)` of NumPy, CuPy, PyTorch or another library of the array-API standard, a Dask array, a
    data frame, or the path of a .npy file, a .parquet file or a folder of them. `columns` are the features, otherwise
    all but those to `exclude`, `id` and `cost`, which is what a pull of each row costs: numbers `(K,)`, or the name of
    a column (see `designs.active`). A block has `block_rows` rows; `memory` limits, in bytes, what is held of a table
    at once.

    >>> open_source(np.eye(3), columns=["x3", "x1"], intercept=True).take(np.array([0]))
    array([[1., 0., 1.]])
    """
    named = cost if isinstance(cost, str) else None
    names = chosen(shape(table)[1], columns, exclude, (id, named))
    while_read = named if _is_parquet(table) and not intercept else None
    source = _some_columns(table, names, block_rows, memory, while_read, id)
    source = InterceptSource(source) if intercept else source
    if cost is None or while_read is not None:
        return source
    return PricedSource.of(source, cost if named is None else gathered(open_source(table, [named]))[:, 0])


def source_of(table: Any, cost: str | ArrayLike | None = None, **reading: Any) -> Source:
    """Return a table as a source: read in blocks, whatever its length, where that can be, else by `open_table`."""
    _known_options(reading, "memory", "block_rows")
    if _is_read(table):
        if reading:
            raise InputError(f"{', '.join(reading)}: say how a table is read where it is opened")
        return as_source(table, cost)
    if in_blocks(table):
        texts = {name: reading.pop(name) for name in ("categorical", "scale", "missing", "na") if name in reading}
        _as_it_stands(**texts)
        return open_source(table, reading.pop("features", None), cost=cost, **reading)
    named, prices = (cost, None) if isinstance(cost, str) else (None, cost)
    return as_source(open_table(table, cost=named, **reading), prices)


def as_source(table: Arms | Source, cost: ArrayLike | None = None) -> Source:
    """Return arms as a source in memory, and a source as it is; `cost` `(K,)` is in place of the arms' own."""
    if isinstance(table, Arms):
        held = ArraySource.of(table.features, table.names, label="the arms")
        source: Source = NamedSource(held, partial(_listed, table.ids))
        cost = table.cost if cost is None else cost
    else:
        source = table
    return source if cost is None else PricedSource.of(source, cost)


def _arms(
    table: AnyArray, features: Names, id: str | None, exclude: Iterable[str], intercept: bool, cost: str | None
) -> Arms:
    """Return the arms of an array: no column is scaled or dropped, as in `Arms.from_arrays`."""
    names = chosen(shape(table)[1], features, exclude, (id, cost))
    source, encoding = open_source(table, names, id=id), Encoding(tuple(map(Column, names)), intercept)
    matrix = np.hstack([np.ones((source.rows, int(intercept))), gathered(source)])
    costs = None if cost is None else gathered(open_source(table, [cost]))[:, 0]
    return Arms(tuple(source.ids(np.arange(source.rows))), matrix, encoding.names, encoding, costs)


def _some_columns(
    table: Any, names: Sequence[str], block_rows: int | None, memory: int | None, cost: str | None, id: str | None
) -> Source:
    if _is_parquet(table):
        from bestarm.tables.parquet import ParquetSource

        return ParquetSource.of(_existing(table), names, block_rows, memory, cost, id)
    if _is_path(table) or is_array(table):
        whole = _of_numbers(table, block_rows, memory)
        source = whole if tuple(names) == whole.names else ColumnsSource.of(whole, names)
        return source if id is None else NamedSource(source, partial(_numbers_as_ids, ColumnsSource.of(whole, [id])))
    frame = _frame(table).named(id)
    held = ArraySource.of(frame.numbers(names), tuple(names), block_rows, memory)
    return held if id is None else NamedSource(held, partial(_listed, frame.texts(id)))


def _of_numbers(table: Any, block_rows: int | None = None, memory: int | None = None) -> Source:
    """Return the source of an array or of a .npy file, all columns of it."""
    if _is_path(table):
        path = _existing(table)
        if path.suffix.lower() in (".csv", ".xlsx", ".ods"):
            hint = "pass Arms.from_file(path).features, or write Parquet"
            raise InputError(f"{path}: {path.suffix} cannot be read in blocks; {hint}")
        if path.suffix.lower() != ".npy":
            raise InputError(f"{path}: {UnknownNameError('kind of table', path.suffix, ('.npy', '.parquet'))}")
        return MappedSource.of(path, block_rows, memory)
    if _library(table) == "dask":
        from bestarm.tables.dask import DaskSource

        return DaskSource.of(table, block_rows, memory)
    rows: Any = np.asarray(table) if isinstance(table, list | tuple) else table
    return ArraySource.of(rows, block_rows=block_rows, memory=memory)


def _frame(table: Any) -> Frame:
    if isinstance(table, Mapping):
        way = "Arms.from_grid(it) takes every combination, pandas.DataFrame(it) is a table of these columns"
        raise InputError(f"table: a dict may be a grid, or columns: {way}")
    try:
        return Frame.of(table)
    except ArmsError as error:
        found = f"{type(table).__name__}; {error}"
        raise InputError(f"table: expected a path, an array, a Dask array or a data frame; found {found}") from error


def _is_read(table: Any) -> bool:
    return isinstance(table, Arms) or hasattr(table, "sweep")


def _is_path(table: Any) -> bool:
    return isinstance(table, str | Path)


def _is_parquet(table: Any) -> bool:
    return _is_path(table) and (os.path.isdir(table) or Path(table).suffix.lower() in PARQUET)


def _is_alone(table: Any) -> bool:
    """Return whether nothing is known of arms but their names, or their number."""
    if isinstance(table, list | tuple):
        return bool(table) and all(isinstance(one, str) for one in table)
    return isinstance(table, int) and not isinstance(table, bool)


def _is_records(table: Any) -> bool:
    return isinstance(table, list | tuple) and bool(table) and isinstance(table[0], Mapping)


def is_array(table: Any) -> bool:
    """Return whether a table is an array of some library, or lists of numbers."""
    if _is_alone(table) or _is_records(table):
        return False
    known = isinstance(table, np.ndarray | list | tuple) or hasattr(table, "__array_namespace__")
    return known or _library(table) in ("dask", "torch", "cupy")


def _library(table: Any) -> str:
    return type(table).__module__.partition(".")[0]


def _existing(table: str | Path) -> Path:
    if not os.path.exists(table):  # False as well where a name is too long
        raise InputError(f"{table}: there is no such file or folder")
    return Path(table)


def _as_it_stands(
    categorical: Iterable[str] = (), scale: str = "none", missing: str = "refuse", na: Iterable[str] = ()
) -> None:
    odd = {"categorical": tuple(categorical), "scale": scale != "none", "missing": missing != "refuse", "na": tuple(na)}
    for option, given in odd.items():
        if given:
            raise InputError(f"{option} is for tables read as a whole; arrays and long tables are read as they stand")


def _listed(ids: Sequence[str], index: Index) -> list[str]:
    return [ids[int(row)] for row in index]


def _numbers_as_ids(column: Source, index: Index) -> list[str]:
    """Return the numbers of a column as ids, whole ones without a point."""
    cells: NDArray[Any] = column.take(index)[:, 0]
    for row, cell in zip(index, cells, strict=True):
        if not np.isfinite(cell):
            raise ArmsError(f"{column.place(int(row))}, column {column.names[0]!r}: the id is missing")
    return [str(int(cell)) if cell == int(cell) else str(cell) for cell in cells.tolist()]
