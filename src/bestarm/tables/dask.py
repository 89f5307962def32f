"""Dask arrays: each pass is one map-reduce over the array's row chunks. Needs dask."""

from dataclasses import dataclass
from functools import partial, reduce
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bestarm.core import AnyArray
from bestarm.errors import InputError
from bestarm.tables.source import (
    CACHE,
    Combine,
    Done,
    Kernel,
    Numbered,
    P,
    Rows,
    as_floats,
    block_length,
    column_names,
    part_of,
    to_host,
)

LABEL = "the Dask array"
FAN = 8  # partial results that one task joins


@dataclass(frozen=True)
class DaskSource(Numbered):
    """Rows `(K, d)` of a Dask array. Unless it is persisted, each pass computes its chunks again."""

    table: Any
    names: tuple[str, ...]
    block_rows: int
    memory: int | None = None
    label: str = LABEL

    @classmethod
    def of(cls, table: Any, block_rows: int | None = None, memory: int | None = None) -> "DaskSource":
        """Check an array `(K, d)` and join its column chunks."""
        if any(isnan(size) for size in table.shape):
            raise InputError(f"{LABEL}: the sizes of its chunks are unknown; call compute_chunk_sizes() first")
        names = column_names(table, LABEL)
        whole = table if table.numblocks[1] == 1 else table.rechunk({1: -1})
        return cls(whole, names, block_length(len(names), block_rows, memory, CACHE), memory)

    def sweep(self, kernel: Kernel[P], combine: Combine[P], done: Done | None = None) -> P:
        from dask import delayed

        apply, join = delayed(_chunk, pure=False), delayed(partial(reduce, combine), pure=False)
        parts, start = [], 0
        for chunk, count in zip(self.table.to_delayed()[:, 0], self.table.chunks[0], strict=True):
            if count:
                own = part_of(kernel, start, start + count)
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


def _chunk(kernel: Kernel[P], combine: Combine[P], chunk: AnyArray, start: int, length: int) -> P:
    """Apply a kernel to one chunk, block by block."""
    total = kernel(as_floats(chunk[:length]), start)
    for at in range(length, chunk.shape[0], length):
        total = combine(total, kernel(as_floats(chunk[at : at + length]), start + at))
    return total
