"""A design as a product: which rows of a table to measure, and how often."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bestarm.designs.active import optimal_design
from bestarm.designs.many import shortened
from bestarm.designs.newton import Floats
from bestarm.designs.protocols import without_dust
from bestarm.designs.reading import Index, Progress
from bestarm.designs.rounding import AutoRound
from bestarm.designs.transductive import Transductive
from bestarm.errors import BudgetError, InputError, UnknownNameError
from bestarm.linalg import Candidates, span_coordinates
from bestarm.numbers import LARGEST_WHOLE, counted, generator, real, whole
from bestarm.tables import Source, source_of
from bestarm.tables.views import gathered

MOST_PAIRS = 300  # rows up to which all differences between rows are looked at
ROUNDING = AutoRound()
LIMIT = 5000  # steps of the search over differences


@dataclass(frozen=True, eq=False)
class Allocation:
    """Rows to measure `(m,)`, counted from 0 and ascending, each with its id, share, whole pulls, cost and features.

    `weights` are shares of the money (of the pulls, without costs), `pulls` sum to what was asked for, and `support`
    counts the rows of the design, some of which may have come to no pull. `certificate` is that of the design before
    rounding: max leverage / rank over all rows, or for "xy" the worst width of a difference over a lower bound on it.
    """

    rows: Index
    ids: tuple[str, ...]
    weights: Floats
    pulls: Index
    costs: Floats | None
    features: Floats
    names: tuple[str, ...]
    arms: int
    rank: int
    support: int
    passes: int
    certificate: float
    tolerance: float

    @property
    def reached(self) -> bool:
        """Whether the certificate is at most 1 + tolerance."""
        return self.certificate <= 1 + self.tolerance

    @property
    def money(self) -> float:
        """What all pulls cost; their number where no costs were given."""
        return float(self.pulls.sum() if self.costs is None else self.pulls @ self.costs)

    def records(self) -> list[dict[str, Any]]:
        """Return a flat mapping for each row to measure, where `row` counts from 1."""
        found = []
        for at, row in enumerate(self.rows):
            flat: dict[str, Any] = {"row": int(row) + 1, "id": self.ids[at]}
            flat |= {"weight": float(self.weights[at]), "pulls": int(self.pulls[at])}
            flat |= {} if self.costs is None else {"cost": float(self.costs[at])}
            features = dict(zip(self.names, (float(value) for value in self.features[at]), strict=True))
            found.append(flat | {f"feature {name}" if name in flat else name: it for name, it in features.items()})
        return found

    def to_frame(self, library: str = "pandas") -> Any:
        """Return `records` as a data frame of pandas, or of another library with `DataFrame`, such as polars."""
        try:
            return import_module(library).DataFrame(self.records())
        except ImportError as error:
            raise InputError(f"a frame of {library} needs it: pip install {library}, or take records()") from error

    def __repr__(self) -> str:
        n, m = int(self.pulls.sum()), len(self.rows)
        return f"Allocation({n} pulls on {m} of {self.arms} rows, rank {self.rank}, certificate {self.certificate:.6g})"


def design(
    table: Any,
    pulls: int,
    criterion: str = "g",
    cost: ArrayLike | str | None = None,
    tolerance: float = 1e-3,
    progress: Progress | None = None,
    rng: Any = None,
    **reading: Any,
) -> Allocation:
    """Say which rows of a table to measure, and how often, so that a linear model is known best after `pulls` pulls.

    `table` is whatever `bestarm.open_table` takes, read with its options (`id`, `features`, `exclude`, `categorical`,
    `scale`, `intercept`, `memory`), or `Arms`, or a source. Arrays, .npy files and Parquet of any length are read in
    blocks, as they stand. "g" makes the worst error of an estimated mean least and "d" the volume of the confidence
    ellipsoid; the same design does both (Kiefer and Wolfowitz 1960). "xy" makes the worst error of a difference between
    two rows least, for up to 300 rows. Where a pull of row i costs c_i, numbers `(K,)` or a column's name, information
    for the same money is made largest: pulls are proportional to w_i / c_i.

    >>> found = design(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]]), pulls=10)
    >>> found.rows, found.pulls, round(found.certificate, 6)
    (array([0, 1]), array([5, 5]), 1.0)
    >>> [(row["id"], row["pulls"], row["x2"]) for row in found.records()]
    [('1', 5, 0.0), ('2', 5, 1.0)]
    """
    if criterion not in CRITERIA:
        raise UnknownNameError("criterion", criterion, CRITERIA)
    count = whole(pulls, "pulls", most=LARGEST_WHOLE)
    if count < 1:
        raise BudgetError(f"pulls must be at least 1; given {count}", least=1)
    near = real(tolerance, "tolerance", above=0)
    source = source_of(table, cost, **reading)
    return CRITERIA[criterion](source, count, near, progress, generator(rng, "rng"))


def _by_volume(source: Source, pulls: int, tolerance: float, progress: Progress | None, rng: Any) -> Allocation:
    found = optimal_design(source, tolerance, progress=progress)
    _check(pulls, found.rank)
    kept, shares = shortened(found, pulls)
    features = found.features[kept]
    times = ROUNDING.round(span_coordinates(features), shares, pulls, rng)
    costs = None if found.costs is None else found.costs[kept]
    money = shares if costs is None else shares * costs
    return _pulled(
        source, found.rows[kept], times, weights=money / money.sum(), costs=costs, features=features, rank=found.rank,
        support=len(kept), passes=found.passes, certificate=found.certificate, tolerance=tolerance,
    )  # fmt: skip


def _by_pairs(source: Source, pulls: int, tolerance: float, progress: Progress | None, rng: Any) -> Allocation:
    if source.rows > MOST_PAIRS:
        raise InputError(
            f"criterion 'xy' compares all pairs of rows and is for {MOST_PAIRS} of them at most; there are "
            f"{source.rows}: use 'g', or fewer rows"
        )
    if source.costs(np.zeros(1, np.int64)) is not None:
        raise InputError("criterion 'xy' takes no costs; use 'g'")
    x = gathered(source).astype(np.float64)
    for row, column in np.argwhere(~np.isfinite(x))[:1]:
        name = source.names[int(column)]
        raise InputError(f"{source.place(int(row))}, column {name!r}: expected a finite number, found {x[row, column]}")
    candidates = Candidates.of(x)
    rank = int(np.count_nonzero(candidates.coordinates.any(axis=0)))
    if rank == 0:
        raise InputError(f"{source.place(0)} and all others are zero: there is nothing to tell rows apart by")
    _check(pulls, rank)
    best, certificate = Transductive(tolerance=tolerance, limit=LIMIT).certified(candidates)
    weights = without_dust(best)
    times = ROUNDING.round(candidates.coordinates, weights, pulls, rng)
    return _pulled(
        source, np.arange(len(x)), times, weights=weights, costs=None, features=x, rank=rank,
        support=int(np.count_nonzero(weights)), passes=1, certificate=certificate, tolerance=tolerance,
    )  # fmt: skip


def _pulled(
    source: Source, rows: Index, times: Any, weights: Floats, costs: Floats | None, features: Floats, **more: Any
) -> Allocation:
    """Return the allocation of rows `(q,)`, which are pulled `times` `(q,)`: those with a pull."""
    some = np.flatnonzero(times)
    return Allocation(
        rows=rows[some], ids=tuple(source.ids(rows[some])), weights=weights[some],
        pulls=np.asarray(times[some], dtype=np.int64), costs=None if costs is None else costs[some],
        features=features[some], names=source.names, arms=source.rows, **more,
    )  # fmt: skip


def _check(pulls: int, rank: int) -> None:
    if pulls < rank:
        given = counted(pulls, "pull")
        raise BudgetError(f"{given} cannot determine {rank} dimensions; at least {rank} are needed", least=rank)


CRITERIA: dict[str, Callable[[Source, int, float, Progress | None, Any], Allocation]] = {
    "g": _by_volume,
    "d": _by_volume,
    "xy": _by_pairs,
}
