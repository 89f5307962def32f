"""Tables in memory, of any array library, and .npy files mapped into memory."""

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bestarm.core import AnyArray, namespace
from bestarm.errors import ArmsError, InputError
from bestarm.tables.source import (
    CACHE,
    STREAM,
    Combine,
    Done,
    Kernel,
    P,
    Rows,
    as_floats,
    block_length,
    float_type,
    fold,
    numbered,
    to_host,
)

ON_DEVICE = 1 << 30  # bytes of a block on a GPU in float64: few launches, and room for its product


@dataclass(frozen=True)
class ArraySource:
    """Rows `(K, d)` of an array: NumPy, or any library of the array-API standard, on whatever device it is.

    >>> from operator import add
    >>> source = ArraySource.of(np.arange(6.0).reshape(3, 2))
    >>> source.sweep(lambda block, start: block.sum(axis=0), add)
    array([6., 9.])
    """

    table: AnyArray
    names: tuple[str, ...]
    block_rows: int
    memory: int | None = None
    label: str = "the table"

    @classmethod
    def of(
        cls,
        table: AnyArray,
        names: tuple[str, ...] | None = None,
        block_rows: int | None = None,
        memory: int | None = None,
        label: str = "the table",
    ) -> "ArraySource":
        """Check a table `(K, d)` and choose its blocks."""
        shape = tuple(table.shape)
        if len(shape) != 2 or 0 in shape:
            raise ArmsError(f"{label}: expected K rows of d numbers, neither zero; the shape is {shape}")
        float_type(table.dtype, label)
        given = tuple(f"x{j + 1}" for j in range(shape[1])) if names is None else names
        usual = CACHE if isinstance(table, np.ndarray) or _on_host(table) else ON_DEVICE
        return cls(table, given, block_length(shape[1], block_rows, memory, usual), memory, label)

    @property
    def rows(self) -> int:
        return int(self.table.shape[0])

    @property
    def columns(self) -> int:
        return int(self.table.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return float_type(self.table.dtype, self.label)

    def sweep(self, kernel: Kernel[P], combine: Combine[P], done: Done | None = None) -> P:
        return fold(self._blocks(), kernel, combine, done, self.label)

    def take(self, index: NDArray[np.int64]) -> Rows:
        if isinstance(self.table, np.ndarray):
            return np.asarray(as_floats(np.asarray(self.table[index])))
        xp = namespace(self.table)
        from array_api_compat import device

        return to_host(as_floats(xp.take(self.table, xp.asarray(index, device=device(self.table)), axis=0)))

    def costs(self, index: NDArray[np.int64]) -> NDArray[np.float64] | None:
        return None

    def ids(self, index: NDArray[np.int64]) -> list[str]:
        return numbered(index)

    def place(self, row: int) -> str:
        return f"{self.label}: row {row + 1}"

    def _blocks(self) -> Iterator[tuple[int, AnyArray]]:
        plain = np.asarray(self.table) if isinstance(self.table, np.ndarray) else self.table
        for start in range(0, self.rows, self.block_rows):
            yield start, as_floats(plain[start : min(start + self.block_rows, self.rows), :])


def _on_host(table: AnyArray) -> bool:
    from array_api_compat import device

    return "cpu" in str(device(table)).lower()


@dataclass(frozen=True)
class MappedSource:
    """Rows `(K, d)` of a .npy file; pages go back as soon as a block is done, so what is held does not grow with K."""

    path: Path
    table: NDArray[Any]
    names: tuple[str, ...]
    block_rows: int
    memory: int | None
    stamp: tuple[int, int]

    @classmethod
    def of(cls, path: Path, block_rows: int | None = None, memory: int | None = None) -> "MappedSource":
        """Map a file `(K, d)`."""
        stamp = file_stamp(path)
        table = mapped(path)
        inner = ArraySource.of(table, label=str(path))
        length = block_length(inner.columns, block_rows, memory, STREAM // 4)
        return cls(path, table, inner.names, length, memory, stamp)

    @property
    def rows(self) -> int:
        return int(self.table.shape[0])

    @property
    def columns(self) -> int:
        return int(self.table.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return float_type(self.table.dtype, str(self.path))

    def sweep(self, kernel: Kernel[P], combine: Combine[P], done: Done | None = None) -> P:
        check_unchanged(self.path, self.stamp)
        total = fold(self._blocks(), kernel, combine, done, str(self.path))
        check_unchanged(self.path, self.stamp)
        return total

    def take(self, index: NDArray[np.int64]) -> Rows:
        check_unchanged(self.path, self.stamp)
        out = np.empty((len(index), self.columns), self.dtype)
        for at, row in enumerate(index):
            out[at] = self.table[row]
            if at % 16 == 15:  # each row brings in the pages around it
                self._give_back()
        return out

    def costs(self, index: NDArray[np.int64]) -> NDArray[np.float64] | None:
        return None

    def ids(self, index: NDArray[np.int64]) -> list[str]:
        return numbered(index)

    def place(self, row: int) -> str:
        return f"{self.path}: row {row + 1}"

    def _blocks(self) -> Iterator[tuple[int, AnyArray]]:
        for start in range(0, self.rows, self.block_rows):
            yield start, as_floats(np.asarray(self.table[start : start + self.block_rows]))
            self._give_back()

    def _give_back(self) -> None:
        mapped = getattr(self.table, "_mmap", None)
        if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
            mapped.madvise(mmap.MADV_DONTNEED)


def mapped(path: Path) -> NDArray[Any]:
    """Return the array of a .npy file, mapped: a damaged header that claims too much is refused, not allocated."""
    try:
        table = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # a header is parsed as Python: whatever that raises
        raise ArmsError(f"{path}: expected a .npy file of numbers; {type(error).__name__}: {error}") from error
    if not isinstance(table, np.ndarray):
        table.close()
        raise ArmsError(f"{path}: expected a .npy file of numbers, found an archive of several (.npz)")
    return table


def file_stamp(path: Path) -> tuple[int, int]:
    """Return the size and the time of the last change of a file."""
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read; {error.strerror or error}") from error
    return status.st_size, status.st_mtime_ns


def check_unchanged(path: Path, stamp: tuple[int, int]) -> None:
    """Refuse a file whose size or time of change is not what it was when it was opened."""
    if file_stamp(path) != stamp:
        raise InputError(f"{path}: the file changed while it was read; open it again once it is complete")
