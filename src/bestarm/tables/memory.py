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
    Numbered,
    P,
    Rows,
    as_floats,
    block_length,
    column_names,
    fold,
    to_host,
)

ON_DEVICE = 1 << 30  # bytes of a block on a GPU in float64: few launches, and room for its product


@dataclass(frozen=True)
class ArraySource(Numbered):
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
        numbers = column_names(table, label)
        usual = CACHE if isinstance(table, np.ndarray) or _on_host(table) else ON_DEVICE
        return cls(table, names or numbers, block_length(len(numbers), block_rows, memory, usual), memory, label)

    def sweep(self, kernel: Kernel[P], combine: Combine[P], done: Done | None = None) -> P:
        return fold(self._blocks(), kernel, combine, done, self.label)

    def take(self, index: NDArray[np.int64]) -> Rows:
        if isinstance(self.table, np.ndarray):
            return np.asarray(as_floats(np.asarray(self.table[index])))
        xp = namespace(self.table)
        from array_api_compat import device

        return to_host(as_floats(xp.take(self.table, xp.asarray(index, device=device(self.table)), axis=0)))

    def _blocks(self) -> Iterator[tuple[int, AnyArray]]:
        plain = np.asarray(self.table) if isinstance(self.table, np.ndarray) else self.table
        for start in range(0, self.rows, self.block_rows):
            yield start, as_floats(plain[start : min(start + self.block_rows, self.rows), :])


def _on_host(table: AnyArray) -> bool:
    from array_api_compat import device

    return "cpu" in str(device(table)).lower()


@dataclass(frozen=True)
class MappedSource(Numbered):
    """Rows `(K, d)` of a .npy file; pages go back as soon as a block is done, so what is held does not grow with K."""

    path: Path
    table: NDArray[Any]
    names: tuple[str, ...]
    block_rows: int
    memory: int | None
    stamp: tuple[int, int]
    label: str

    @classmethod
    def of(cls, path: Path, block_rows: int | None = None, memory: int | None = None) -> "MappedSource":
        """Map a file `(K, d)`."""
        stamp = file_stamp(path)
        table = mapped(path)
        names = column_names(table, str(path))
        length = block_length(len(names), block_rows, memory, STREAM // 4)
        return cls(path, table, names, length, memory, stamp, str(path))

    def sweep(self, kernel: Kernel[P], combine: Combine[P], done: Done | None = None) -> P:
        check_unchanged(self.path, self.stamp)
        total = fold(self._blocks(), kernel, combine, done, self.label)
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
