"""D-optimal, hence G-optimal, designs over tables of millions of rows: few passes, and a certificate over all rows.

1. One pass adds up X'X, which gives the span and coordinates in which the uniform design has V = I, and takes a sample
   (`span`).
2. The sample gives a rough design in cache (`pool`, `newton.multiplicative`).
3. One pass computes all leverages g_i = x_i' V⁻¹ x_i block by block (one product with a d x r matrix, row norms) and
   keeps a pool: the rows of largest leverage, about one in thirty, no more than 8 MiB of them (`sweep`). Its largest
   value over r is the certificate: max_i g_i / r ≥ 1, with equality at the optimum alone (Kiefer and Wolfowitz 1960).
4. The pool is solved in cache (`pool`, `newton.improve`). Back to 3 until the certificate is at most 1 + tolerance.

`reading` counts and times the passes and says how many rows are held.

With costs c_i the rows are x_i / √c_i, so V(w) = Σ_i w_i x_i x_i' / c_i is information per unit of money, and w_i is
the share of the money that is spent on row i. Its share of the pulls is proportional to w_i / c_i.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bestarm.designs.newton import Floats
from bestarm.designs.pool import Cache, narrowed, pool_design, sample_design
from bestarm.designs.reading import Index, Pass, Progress, Reader, ReadingPlan
from bestarm.designs.span import Span
from bestarm.designs.sweep import all_leverages
from bestarm.errors import ArmsError, InputError
from bestarm.linalg import one_thread
from bestarm.tables.source import Source
from bestarm.tables.views import PricedSource

IDLE = 5  # passes in a row without a better design after which rounding errors are all that is left


@dataclass(frozen=True)
class Solution:
    """A design over the rows of a table, on its support.

    `rows` `(n,)` ascend; `weights` `(n,)` are shares of the money (of the pulls, without costs); `features` `(n, d)`
    are those rows as given and `coordinates` `(n, r)` in a basis of the span, divided by √cost: `transform` `(d, r)`
    takes rows to them, and Σ x x' / K = I there over all rows; `information` `(d, d)` is V = Σ w x x' / c;
    `certificate` is max_i g_i / r over all rows of the table, in float64, for these very weights.
    """

    rows: Index
    weights: Floats
    certificate: float
    rank: int
    features: Floats
    coordinates: Floats
    transform: Floats
    information: Floats
    costs: Floats | None
    tolerance: float
    trace: tuple[Pass, ...]

    @property
    def passes(self) -> int:
        """How often the table was read."""
        return len(self.trace)

    @property
    def leverage_passes(self) -> int:
        """How often all leverages were computed."""
        return sum(not np.isnan(one.certificate) for one in self.trace)

    @property
    def reached(self) -> bool:
        """Whether the certificate is at most 1 + tolerance."""
        return self.certificate <= 1 + self.tolerance

    @property
    def pulls(self) -> Floats:
        """The share of the pulls `(n,)` of each row: proportional to w / c."""
        share = self.weights if self.costs is None else self.weights / self.costs
        return np.asarray(share / share.sum())


def optimal_design(
    source: Source,
    tolerance: float = 1e-3,
    costs: ArrayLike | None = None,
    progress: Progress | None = None,
    limit: int = 50,
    seed: int = 0,
) -> Solution:
    """Return a design whose largest leverage over all rows is at most (1 + tolerance) times the rank.

    The D-efficiency and the G-efficiency are then at least 1 / (1 + tolerance). `costs` `(K,)` are what a pull of each
    row costs. `progress(pass_number, rows_done, rows_total, gap)` is called after each block, with the last known gap
    max g / r − 1. After `limit` passes, or several that bring nothing, the best design so far is
    returned: `Solution.reached` says whether it is good enough.

    >>> from bestarm.tables import open_source
    >>> found = optimal_design(open_source(np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]])))
    >>> found.rows, found.weights.round(3), round(found.certificate, 6)
    (array([0, 1]), array([0.5, 0.5]), 1.0)
    """
    if not 0 < tolerance < np.inf:
        raise InputError(f"tolerance must be a positive number; given {tolerance}")
    priced = source if costs is None else PricedSource.of(source, costs)
    with one_thread():
        return _solve(priced, tolerance, progress, limit, seed)


def _solve(priced: Source, tolerance: float, progress: Progress | None, limit: int, seed: int) -> Solution:
    reader = Reader(priced, progress)
    rng = np.random.default_rng(seed)
    plan = ReadingPlan.of(priced)
    span = Span.of(reader, plan, rng)
    cache = sample_design(span, plan)
    best: tuple[float, Span, Cache] | None = None
    idle = 0
    for _ in range(limit):
        found, certificate = all_leverages(reader, span, plan, cache, tolerance)
        idle += 1
        if cache.spans and (best is None or certificate < best[0]):
            best, idle = (certificate, span, cache), 0
        if cache.spans and (certificate <= 1 + tolerance or idle == IDLE):
            break
        before, cache = cache, pool_design(span, cache, found.joined(), tolerance)
        if not cache.spans and cache.missing.shape == before.missing.shape:
            span, cache = narrowed(span, cache, tolerance)
    if best is None:
        raise ArmsError(f"after {limit} passes no rows that span the space were found; raise limit")
    certificate, span, cache = best
    if certificate > 1 + tolerance and priced.dtype != np.float64:
        _, certificate = all_leverages(reader, span, plan, cache, np.inf)  # what was found in float32 proves nothing
    return _solution(priced, span, cache, certificate, tolerance, tuple(reader.trace))


def _solution(
    source: Source, span: Span, cache: Cache, certificate: float, tolerance: float, trace: tuple[Pass, ...]
) -> Solution:
    kept = np.flatnonzero(cache.weights)
    kept = kept[np.argsort(cache.index[kept])]
    rows, weights, coordinates = cache.index[kept], cache.weights[kept], cache.x[kept]
    scaled = cache.rows[kept].astype(np.float64)
    costs = source.costs(rows)
    features = scaled if costs is None else scaled * np.sqrt(costs)[:, None]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        information = (scaled * weights[:, None]).T @ scaled
    return Solution(
        rows, weights, certificate, span.rank, features, coordinates, span.transform, information, costs, tolerance,
        trace,
    )  # fmt: skip
