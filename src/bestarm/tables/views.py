"""Sources made of another: some of its rows, some of its columns, a constant in front, prices, a watcher."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bestarm.core import AnyArray, namespace
from bestarm.errors import ArmsError, InputError, UnknownNameError
from bestarm.tables.memory import ArraySource
from bestarm.tables.source import Combine, Done, Kernel, P, Rows, Source, beside, check_costs, part_of, to_host

Index: TypeAlias = NDArray[np.int64]

STEP = 4096  # rows between two marks that say how many of those before are kept


@dataclass(frozen=True)
class View:
    """Another source as it is; a view overrides what differs."""

    source: Source

    @property
    def rows(self) -> int:
        return self.source.rows

    @property
    def columns(self) -> int:
        return self.source.columns

    @property
    def names(self) -> tuple[str, ...]:
        return self.source.names

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.source.dtype

    @property
    def memory(self) -> int | None:
        return self.source.memory

    def sweep(self, kernel: Kernel[P], combine: Combine[P], done: Done | None = None) -> P:
        return self.source.sweep(kernel, combine, done)

    def take(self, index: Index) -> Rows:
        return self.source.take(index)

    def costs(self, index: Index) -> NDArray[np.float64] | None:
        return self.source.costs(index)

    def ids(self, index: Index) -> list[str]:
        return self.source.ids(index)

    def place(self, row: int) -> str:
        return self.source.place(row)


@dataclass(frozen=True)
class SelectedSource(View):
    """The rows of a source that a mask `(K,)` keeps, in their order; `marks` count those kept before each step.

    >>> from bestarm.tables.memory import ArraySource
    >>> some = SelectedSource.of(ArraySource.of(np.arange(8.0).reshape(4, 2)), np.array([True, False, False, True]))
    >>> some.take(np.array([1])), some.origin(np.array([1]))
    (array([[6., 7.]]), array([3]))
    """

    mask: NDArray[np.bool_]
    marks: Index

    @classmethod
    def of(cls, source: Source, mask: NDArray[np.bool_]) -> "SelectedSource":
        """Check a mask: one mark for each row, at least one of them set."""
        if mask.shape != (source.rows,) or not mask.any():
            raise InputError(f"mask: expected {source.rows} marks, at least one of them set; the shape is {mask.shape}")
        return cls(source, mask, _marks(mask))

    @property
    def rows(self) -> int:
        return int(self.marks[-1])

    def sweep(self, kernel: Kernel[P], combine: Combine[P], done: Done | None = None) -> P:
        tell = None if done is None else (lambda at: done(_kept_before(self.mask, self.marks, at)))
        total = self.source.sweep(_Selecting(kernel, self.mask, self.marks), _Present(combine), tell)
        assert total is not None  # at least one row is kept
        return total

    def take(self, index: Index) -> Rows:
        return self.source.take(self.origin(index))

    def costs(self, index: Index) -> NDArray[np.float64] | None:
        return self.source.costs(self.origin(index))

    def ids(self, index: Index) -> list[str]:
        return self.source.ids(self.origin(index))

    def place(self, row: int) -> str:
        return self.source.place(int(self.origin(np.array([row]))[0]))

    def origin(self, index: Index) -> Index:
        """Return which rows of the source the kept rows `index` `(m,)` are."""
        index = np.asarray(index, dtype=np.int64)
        step = np.searchsorted(self.marks, index, side="right") - 1
        out = np.empty_like(index)
        order = np.argsort(step, kind="stable")
        for some in np.split(order, np.flatnonzero(np.diff(step[order])) + 1):
            if len(some):
                first = int(step[some[0]])
                inside = np.flatnonzero(self.mask[first * STEP : (first + 1) * STEP])
                out[some] = first * STEP + inside[index[some] - self.marks[first]]
        return out


def _marks(mask: NDArray[np.bool_]) -> Index:
    counts = [int(np.count_nonzero(mask[start : start + STEP])) for start in range(0, len(mask), STEP)]
    return np.cumsum([0, *counts], dtype=np.int64)


def _kept_before(mask: NDArray[np.bool_], marks: Index, row: int) -> int:
    step = row // STEP
    return int(marks[step]) + int(np.count_nonzero(mask[step * STEP : row]))


@dataclass(frozen=True)
class _Selecting(Generic[P]):
    """A kernel over the kept rows of a block, None where there are none; `mask` is that of the rows from `first` on."""

    kernel: Kernel[P]
    mask: NDArray[np.bool_]
    marks: Index
    first: int = 0
    before: int = 0

    def __call__(self, block: AnyArray, start: int) -> P | None:
        at = start - self.first
        kept = np.flatnonzero(self.mask[at : at + block.shape[0]])
        if not len(kept):
            return None
        if len(kept) < block.shape[0]:
            block = namespace(block).take(block, beside(kept, block), axis=0)
        return self.kernel(block, self._kept(start))

    def part(self, start: int, stop: int) -> "_Selecting[P]":
        """Return the kernel of rows `start` to `stop` alone, so that no more of the mask travels to a worker."""
        mask, low, high = self.mask[start - self.first : stop - self.first], self._kept(start), self._kept(stop)
        return _Selecting(part_of(self.kernel, low, high), mask, _marks(mask), start, low)

    def _kept(self, row: int) -> int:
        return self.before + _kept_before(self.mask, self.marks, row - self.first)


@dataclass(frozen=True)
class _Present(Generic[P]):
    """Join results of which some are None."""

    combine: Combine[P]

    def __call__(self, one: P | None, other: P | None) -> P | None:
        if one is None or other is None:
            return other if one is None else one
        return self.combine(one, other)


@dataclass(frozen=True)
class ColumnsSource(View):
    """Some columns of a source, `chosen` by position."""

    chosen: tuple[int, ...]

    @classmethod
    def of(cls, source: Source, names: Sequence[str]) -> "ColumnsSource":
        """Choose columns by name."""
        for name in names:
            if name not in source.names:
                raise ArmsError(str(UnknownNameError("column", name, source.names)))
        if not names:
            raise ArmsError("there are no columns to use; at least one is needed")
        return cls(source, tuple(source.names.index(name) for name in names))

    @property
    def columns(self) -> int:
        return len(self.chosen)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.source.names[j] for j in self.chosen)

    def sweep(self, kernel: Kernel[P], combine: Combine[P], done: Done | None = None) -> P:
        return self.source.sweep(_Changed(kernel, partial(_some, self.chosen)), combine, done)

    def take(self, index: Index) -> Rows:
        return np.asarray(self.source.take(index)[:, list(self.chosen)])


@dataclass(frozen=True)
class _Changed(Generic[P]):
    """A kernel over blocks that are changed first."""

    kernel: Kernel[P]
    change: Callable[[AnyArray], AnyArray]

    def __call__(self, block: AnyArray, start: int) -> P:
        return self.kernel(self.change(block), start)

    def part(self, start: int, stop: int) -> "_Changed[P]":
        return _Changed(part_of(self.kernel, start, stop), self.change)


def _some(chosen: tuple[int, ...], block: AnyArray) -> AnyArray:
    return namespace(block).take(block, beside(np.array(chosen), block), axis=1)


@dataclass(frozen=True)
class InterceptSource(View):
    """A source with a column of ones in front."""

    @property
    def columns(self) -> int:
        return self.source.columns + 1

    @property
    def names(self) -> tuple[str, ...]:
        return ("intercept", *self.source.names)

    def sweep(self, kernel: Kernel[P], combine: Combine[P], done: Done | None = None) -> P:
        return self.source.sweep(_Changed(kernel, _with_ones), combine, done)

    def take(self, index: Index) -> Rows:
        found = self.source.take(index)
        return np.concatenate([np.ones_like(found[:, :1]), found], axis=1)


def _with_ones(block: AnyArray) -> AnyArray:
    xp = namespace(block)
    return xp.concat([xp.ones_like(block[:, :1]), block], axis=1)


@dataclass(frozen=True)
class PricedSource(View):
    """The rows x_i / √c_i of a source, where a pull of row i costs c_i."""

    prices: NDArray[np.float64]

    @classmethod
    def of(cls, source: Source, costs: ArrayLike) -> "PricedSource":
        """Check costs `(K,)`: one positive number for each row."""
        try:
            prices = np.asarray(costs, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"costs: expected one number for each row; {error}") from error
        if prices.shape != (source.rows,):
            raise InputError(f"costs: {source.rows} numbers expected, one for each row; the shape is {prices.shape}")
        check_costs(prices, 0, source)
        return cls(source, prices)

    def sweep(self, kernel: Kernel[P], combine: Combine[P], done: Done | None = None) -> P:
        return self.source.sweep(_Divided(kernel, self.prices), combine, done)

    def take(self, index: Index) -> Rows:
        return np.asarray(self.source.take(index) / np.sqrt(self.prices[index])[:, None])

    def costs(self, index: Index) -> NDArray[np.float64] | None:
        return self.prices[index]


@dataclass(frozen=True)
class _Divided(Generic[P]):
    """A kernel over divided rows; `prices` are those of the rows from `first` on."""

    kernel: Kernel[P]
    prices: NDArray[np.float64]
    first: int = 0

    def __call__(self, block: AnyArray, start: int) -> P:
        at = start - self.first
        roots = np.sqrt(self.prices[at : at + block.shape[0]])
        return self.kernel(block / beside(roots, block)[:, None], start)

    def part(self, start: int, stop: int) -> "_Divided[P]":
        """Return the kernel of rows `start` to `stop` alone, so that no more prices travel to a worker."""
        return _Divided(part_of(self.kernel, start, stop), self.prices[start - self.first : stop - self.first], start)


@dataclass(frozen=True)
class NamedSource(View):
    """A source whose rows are called by what `names_of` says of rows `(m,)`."""

    names_of: Callable[[Index], list[str]]

    def ids(self, index: Index) -> list[str]:
        return self.names_of(index)


@dataclass(frozen=True)
class WatchedSource(View):
    """A source that tells `watch(rows_done, rows)` how far each pass is."""

    watch: Callable[[int, int], None]

    def sweep(self, kernel: Kernel[P], combine: Combine[P], done: Done | None = None) -> P:
        def tell(at: int) -> None:
            self.watch(at, self.rows)
            if done is not None:
                done(at)

        return self.source.sweep(kernel, combine, tell)


@dataclass(frozen=True)
class CopiedSource(View):
    """A source of which all rows are held in memory as well, to be read from there."""

    held: ArraySource

    @classmethod
    def of(cls, source: Source) -> "CopiedSource":
        """Copy the rows by one pass."""
        return cls(source, ArraySource.of(gathered(source), source.names, memory=source.memory))

    def sweep(self, kernel: Kernel[P], combine: Combine[P], done: Done | None = None) -> P:
        return self.held.sweep(kernel, combine, done)

    def take(self, index: Index) -> Rows:
        return self.held.take(index)


def gathered(source: Source) -> Rows:
    """Return all rows `(K, d)` of a source in memory, by one pass."""
    return np.concatenate(source.sweep(_copied, _both))


def _copied(block: AnyArray, start: int) -> tuple[Rows, ...]:
    return (np.array(to_host(block)),)


def _both(one: tuple[Rows, ...], other: tuple[Rows, ...]) -> tuple[Rows, ...]:
    return one + other
