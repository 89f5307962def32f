"""Rows that cost different amounts: each is divided by the root of its cost."""

from dataclasses import dataclass
from typing import Generic

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bestarm.core import Array
from bestarm.errors import InputError
from bestarm.tables.source import Combine, Done, Kernel, P, Rows, Source, beside, check_costs
from bestarm.tables.views import View


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

    def take(self, index: NDArray[np.int64]) -> Rows:
        return np.asarray(self.source.take(index) / np.sqrt(self.prices[index])[:, None])

    def costs(self, index: NDArray[np.int64]) -> NDArray[np.float64] | None:
        return self.prices[index]


@dataclass(frozen=True)
class _Divided(Generic[P]):
    """A kernel over divided rows; `prices` are those of the rows from `first` on."""

    kernel: Kernel[P]
    prices: NDArray[np.float64]
    first: int = 0

    def __call__(self, block: Array, start: int) -> P:
        at = start - self.first
        roots = np.sqrt(self.prices[at : at + block.shape[0]])
        return self.kernel(block / beside(roots, block)[:, None], start)

    def part(self, start: int, stop: int) -> "_Divided[P]":
        """Return the kernel of rows `start` to `stop` alone, so that no more prices travel to a worker."""
        kernel = self.kernel.part(start, stop) if hasattr(self.kernel, "part") else self.kernel
        return _Divided(kernel, self.prices[start - self.first : stop - self.first], start)
