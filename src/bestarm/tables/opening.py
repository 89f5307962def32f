"""One function that finds the source for whatever holds the table."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bestarm.core import Array
from bestarm.errors import InputError, UnknownNameError
from bestarm.tables.memory import ArraySource, MappedSource
from bestarm.tables.source import Source
from bestarm.tables.views import PricedSource


def open_source(
    table: Array | str | Path,
    columns: Sequence[str] | None = None,
    block_rows: int | None = None,
    memory: int | None = None,
    cost: str | ArrayLike | None = None,
) -> Source:
    """Return the source of a table of K candidate rows and d features.

    `table` is an array `(K, d)` of NumPy, CuPy, PyTorch or another library of the array-API standard, a Dask array,
    or the path of a .npy file, a .parquet file or a folder of them. `columns` chooses columns of Parquet by name, and
    `cost` is what a pull of each row costs: numbers `(K,)`, or the name of a column of Parquet (see `designs.active`).
    A block has `block_rows` rows; `memory` limits, in bytes, what is held of a table at once.

    >>> open_source(np.eye(3)).rows
    3
    """
    if cost is not None and not isinstance(cost, str):
        return PricedSource.of(open_source(table, columns, block_rows, memory), cost)
    if not isinstance(table, str | Path):
        if columns is not None or cost is not None:
            raise InputError(
                "columns and cost are names of columns in a Parquet file; choose columns of an array by slicing"
            )
        return _of_array(table, block_rows, memory)
    path = Path(table)
    kind = path.suffix.lower()
    if not os.path.exists(path):  # False as well where a name is too long
        raise InputError(f"{path}: there is no such file or folder")
    if path.is_dir() or kind in (".parquet", ".pq"):
        from bestarm.tables.parquet import ParquetSource

        return ParquetSource.of(path, columns, block_rows, memory, cost)
    if kind == ".npy":
        if columns is not None or cost is not None:
            raise InputError(f"{path}: columns of a .npy file have no names; columns and cost need Parquet")
        return MappedSource.of(path, block_rows, memory)
    if kind == ".csv":
        raise InputError(f"{path}: a CSV cannot be read in blocks; pass Arms.from_csv(path).features, or write Parquet")
    raise InputError(f"{path}: {UnknownNameError('kind of table', path.suffix, ('.npy', '.parquet'))}")


def _of_array(table: Any, block_rows: int | None, memory: int | None) -> Source:
    if isinstance(table, np.ndarray):
        return ArraySource.of(table, block_rows=block_rows, memory=memory)
    if type(table).__module__.partition(".")[0] == "dask":
        from bestarm.tables.dask import DaskSource

        return DaskSource.of(table, block_rows, memory)
    if hasattr(table, "__array_namespace__") or type(table).__module__.partition(".")[0] in ("torch", "cupy"):
        return ArraySource.of(table, block_rows=block_rows, memory=memory)
    if isinstance(table, list | tuple):
        rows: NDArray[Any] = np.asarray(table)
        return ArraySource.of(rows, block_rows=block_rows, memory=memory)
    raise InputError(f"table: expected an array, a Dask array or a path; found {type(table).__name__}")
