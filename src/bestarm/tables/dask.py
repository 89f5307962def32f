"""Dask arrays: each pass is one map-reduce over the array's row chunks. Needs dask."""

from dataclasses import dataclass
from functools import partial
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bestarm.core import AnyArray
from bestarm.errors import ArmsError, InputError
from bestarm.tables.source import (
    CACHE,
    Combine,
    Done,
    Kernel,
    P,
    Rows,
    as_floats,
    block_length,
    float_type,
    numbered,
    to_host,
)

FAN = 8  # partial results that one task joins


@dataclass(frozen=True)
class DaskSource:
    """Rows `(K, d)` of a Dask array. Unless it is persisted, each pass computes its chunks again."""

    table: Any
    names: tuple[str, ...]
    block_rows: int
    memory: int | None = None

    @classmethod
    def of(cls, table: Any, block_rows: int | None = None, memory: int | None = None) -> "DaskSource":
        """Check an array `(K, d)` and join its column chunks."""
        shape = tuple(table.shape)
        if len(shape) != 2 or 0 in shape:
            raise ArmsError(f"the Dask array: expected K rows of d numbers, neither zero; the shape is {shape}")
        if any(isnan(size) for size in shape):
            raise InputError("the Dask array: the sizes of its chunks are unknown; call compute_chunk_sizes() first")
        float_type(table.dtype, "the Dask array")
        names = tuple(f"x{j + 1}" for j in range(shape[1]))
        whole = table if table.numblocks[1] == 1 else table.rechunk({1: -1})
        return cls(whole, names, block_length(shape[1], block_rows, memory, CACHE), memory)

    @property
    def rows(self) -> int:
        return int(self.table.shape[0])

    @property
    def columns(self) -> int:
        return int(self.table.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return float_type(self.table.dtype, "the Dask array")

    def sweep(self, kernel: Kernel[P], combine: Combine[P], done: Done | None = None) -> P:
        from dask import delayed

        apply, join = delayed(_chunk, pure=False), delayed(partial(_join, combine), pure=False)
        parts, start = [], 0
        for chunk, count in zip(self.table.to_delayed()[:, 0], self.table.chunks[0], strict=True):
            if count:
                own = kernel.part(start, start + count) if hasattr(kernel, "part") else kernel
                parts.append(apply(own, combine, chunk, start, self.block_rows))
            start += count
        while len(parts) > 1:
            parts = [join(parts[j : j + FAN]) for j in range(0, len(parts), FAN)]
        total: P = parts[0].compute()
        if done is not None:
            done(self.rows)
        return total

    def take(self, index: NDArray[np.int64]) -> Rows:
        return to_host(as_floats(to_host(self.table[np.asarray(index)].compute())))

    def costs(self, index: NDArray[np.int64]) -> NDArray[np.float64] | None:
        return None

    def ids(self, index: NDArray[np.int64]) -> list[str]:
        return numbered(index)

    def place(self, row: int) -> str:
        return f"the Dask array: row {row + 1}"


def _chunk(kernel: Kernel[P], combine: Combine[P], chunk: AnyArray, start: int, length: int) -> P:
    """Apply a kernel to one chunk, block by block."""
    total = kernel(as_floats(chunk[:length]), start)
    for at in range(length, chunk.shape[0], length):
        total = combine(total, kernel(as_floats(chunk[at : at + length]), start + at))
    return total


def _join(combine: Combine[P], parts: list[P]) -> P:
    total = parts[0]
    for part in parts[1:]:
        total = combine(total, part)
    return total
