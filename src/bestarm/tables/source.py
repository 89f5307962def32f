"""What a source is: K rows of d numbers that are read block by block, and only by pure functions."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from bestarm.core import AnyArray, namespace
from bestarm.errors import ArmsError, InputError

P = TypeVar("P")
Rows: TypeAlias = NDArray[Any]
Kernel: TypeAlias = Callable[[AnyArray, int], P]
Combine: TypeAlias = Callable[[P, P], P]
Done: TypeAlias = Callable[[int], None]

CACHE = 3 << 18  # bytes of a block in memory: its product with a d x d matrix stays in a core's second-level cache
STREAM = 4 << 20  # bytes of a block that is read from a file: long reads, a bounded buffer
LEAST_ROWS = 256
COPIES = 4  # a block as read, as floats, its product, and what a kernel keeps of it


class Source(Protocol):
    """A table of K rows and d columns that may be larger than memory.

    `sweep` is one pass: `kernel(block, start)` turns each block `(m, d)` of consecutive rows, the first of which is
    row `start`, into a partial result, and `combine` joins the partial results of neighbours in order. Both must be
    picklable and free of side effects: a source may call them in another process, or on the array library of a GPU.
    """

    @property
    def rows(self) -> int:
        """The number of rows, K."""
        ...

    @property
    def columns(self) -> int:
        """The number of columns, d."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns are called."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers in a block: float32 or float64."""
        ...

    @property
    def memory(self) -> int | None:
        """The most bytes a reader may hold at once, where a limit was given."""
        ...

    def sweep(self, kernel: Kernel[P], combine: Combine[P], done: Done | None = None) -> P:
        """Read all rows once and return the joined result; `done(rows)` is told how far the pass is."""
        ...

    def take(self, index: NDArray[np.int64]) -> Rows:
        """Return rows `index` `(m,)` as floats `(m, d)` on this machine."""
        ...

    def costs(self, index: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Return what a pull of rows `index` `(m,)` costs, or None if all rows cost the same."""
        ...

    def ids(self, index: NDArray[np.int64]) -> list[str]:
        """Return what rows `index` `(m,)` are called: as a column of ids says, else by their numbers from 1."""
        ...

    def place(self, row: int) -> str:
        """Return how to call row `row`, an index from 0, in an error, where rows count from 1 as in all errors."""
        ...


class Numbered:
    """What all sources over a `table` `(K, d)` have in common: rows have numbers and no costs."""

    table: Any
    label: str

    @property
    def rows(self) -> int:
        return int(self.table.shape[0])

    @property
    def columns(self) -> int:
        return int(self.table.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return float_type(self.table.dtype, self.label)

    def costs(self, index: NDArray[np.int64]) -> NDArray[np.float64] | None:
        return None

    def ids(self, index: NDArray[np.int64]) -> list[str]:
        return numbered(index)

    def place(self, row: int) -> str:
        return f"{self.label}: row {row + 1}"


def column_names(table: Any, label: str) -> tuple[str, ...]:
    """Return x1, x2, ... for the columns of a table `(K, d)` of numbers; refuse what is none."""
    shape = tuple(table.shape)
    if len(shape) != 2 or 0 in shape:
        raise ArmsError(f"{label}: expected K rows of d numbers, neither zero; the shape is {shape}")
    float_type(table.dtype, label)
    return tuple(f"x{j + 1}" for j in range(shape[1]))


def numbered(index: NDArray[np.int64]) -> list[str]:
    """Return the numbers of rows `index` `(m,)`, counted from 1, as ids."""
    return [str(int(row) + 1) for row in index]


def float_type(given: Any, what: str) -> np.dtype[Any]:
    """Return the type in which numbers of the type `given` are read: itself, or float64 for whole numbers."""
    try:
        kind = np.dtype(given)
    except TypeError:
        kind = np.dtype(str(given).rpartition(".")[2])  # torch.float32, array_api_strict.float64
    if kind.kind not in "fiub":
        raise InputError(f"{what}: expected numbers, found the type {kind}")
    return kind if kind in (np.dtype(np.float32), np.dtype(np.float64)) else np.dtype(np.float64)


def as_floats(block: AnyArray) -> AnyArray:
    """Return a block in a floating-point type; whole numbers and short floats become float64."""
    xp = namespace(block)
    return block if block.dtype in (xp.float32, xp.float64) else xp.astype(block, xp.float64)


def to_host(array: AnyArray) -> Rows:
    """Return an array of any library as a NumPy array."""
    if isinstance(array, np.ndarray | np.generic):
        return np.asarray(array)
    if hasattr(array, "get"):  # CuPy
        return np.asarray(array.get())
    if hasattr(array, "detach"):  # PyTorch
        return np.asarray(array.detach().cpu().numpy())
    return np.asarray(np.from_dlpack(array))


def beside(values: AnyArray, block: AnyArray) -> AnyArray:
    """Return values as an array of the library and on the device of `block`, in its type if they are floats."""
    floats = namespace(values).isdtype(values.dtype, "real floating")
    if isinstance(block, np.ndarray):
        return values.astype(block.dtype, copy=False) if floats else values
    xp = namespace(block)
    from array_api_compat import device

    return xp.asarray(values, dtype=block.dtype if floats else None, device=device(block))


def block_length(columns: int, rows: int | None, memory: int | None, usual: int) -> int:
    """Return how many rows a block has: `rows` if given, what fits `memory`, else `usual` bytes' worth."""
    width = 8 * max(columns, 1)
    if rows is not None and rows < 1:
        raise InputError(f"block_rows must be at least 1; given {rows}")
    least = COPIES * width * (rows if rows is not None else LEAST_ROWS)
    if memory is not None and memory < least:
        held = rows if rows is not None else LEAST_ROWS
        raise InputError(
            f"memory: {memory} bytes given; at least {least} are needed for blocks of {held} rows and {columns} columns"
        )
    if rows is not None:
        return rows
    fitting = usual if memory is None else min(usual, memory // COPIES)
    return max(LEAST_ROWS, fitting // width)


def fold(
    blocks: Iterator[tuple[int, AnyArray]], kernel: Kernel[P], combine: Combine[P], done: Done | None, what: str
) -> P:
    """Apply `kernel` to blocks in order and join what it gives."""
    total: P | None = None
    for start, block in blocks:
        part = kernel(block, start)
        total = part if total is None else combine(total, part)
        if done is not None:
            done(start + int(block.shape[0]))
    if total is None:
        raise InputError(f"{what}: there are no rows; at least one is needed")
    return total


def part_of(kernel: Kernel[P], start: int, stop: int) -> Kernel[P]:
    """Return the kernel of rows `start` to `stop` alone, where it can say what that needs."""
    found: Kernel[P] = kernel.part(start, stop) if hasattr(kernel, "part") else kernel
    return found


def check_costs(costs: NDArray[np.float64], start: int, source: Any) -> None:
    """Refuse costs `(m,)` of the rows from `start` on that are not positive numbers."""
    for row in np.flatnonzero(~((costs > 0) & np.isfinite(costs)))[:1]:
        raise InputError(f"{source.place(start + int(row))}: expected a positive cost, found {costs[row]}")
