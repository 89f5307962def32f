"""Where the other arms stand when the best is ahead by a gap: anywhere, or as close as the features allow."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bestarm.errors import InputError

DIRECTIONS = 1000  # random directions of the span, from which the arms that can be best are known
MOST = 100  # arms that are made the best in turn; one linear programme each


class Rivals(Protocol):
    """A law of predictors, up to scale."""

    def prepare(self, basis: Any) -> Any:
        """Return what draws on a span with this orthonormal basis `(U, r)` need; computed once."""
        ...

    def draw(self, prepared: Any, size: int, rng: np.random.Generator) -> Any:
        """Return predictors `(size, U)`."""
        ...


@dataclass(frozen=True)
class Spread:
    """Every direction of the span is equally likely: most rivals are farther behind than the second best."""

    def prepare(self, basis: Any) -> Any:
        return basis

    def draw(self, prepared: Any, size: int, rng: np.random.Generator) -> Any:
        return rng.standard_normal((size, prepared.shape[1])) @ prepared.T


@dataclass(frozen=True)
class Close:
    """All rivals as close behind as the features allow: the slippage configuration of Bechhofer (1954).

    For best arm i, Σ_j (x_i − x_j)'θ is least subject to (x_i − x_j)'θ >= 1 for each j. The best arm is drawn as
    `Spread` would have it. With separate means every rival is exactly the gap behind.

    >>> first = Close().prepare(np.eye(3))[0][0]
    >>> np.round(first - first.max(), 6)
    array([ 0., -1., -1.])
    """

    def prepare(self, basis: Any) -> Any:
        best = np.argmax(np.random.default_rng(0).standard_normal((DIRECTIONS, basis.shape[1])) @ basis.T, axis=-1)
        arms, counts = np.unique(best, return_counts=True)
        often = np.sort(np.argsort(-counts, kind="stable")[:MOST])
        rows = [self._nearest(basis, i) for i in arms[often]]
        solved = np.array([row is not None for row in rows])
        if not solved.any():
            raise InputError("no arm can be made the best by a clear gap: the features are too close; scale them")
        chances = counts[often] * solved
        return np.stack([row for row in rows if row is not None]), chances[solved] / chances.sum()

    def draw(self, prepared: Any, size: int, rng: np.random.Generator) -> Any:
        rows, chances = prepared
        return rows[rng.choice(len(rows), size, p=chances)]

    def _nearest(self, basis: Any, best: int) -> Any:
        from scipy.optimize import linprog

        others = np.delete(basis, best, axis=0) - basis[best]
        found = linprog(-others.sum(axis=0), others, -np.ones(len(others)), bounds=(None, None))
        return None if found.x is None else basis @ found.x


RIVALS: dict[str, Rivals] = {"spread": Spread(), "close": Close()}
