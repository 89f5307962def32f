"""GSE over a table that need not fit in memory: a mask of survivors, and a few passes a stage.

A stage reads the table for its design (`designs.active`, three passes or so) and once more for the estimates x_i'θ of
the survivors, of which it keeps those above an exact quantile. Beyond blocks and pools, one byte for each row (is it
still in?) and eight for each survivor (its estimate) are held. Survivors that fit in `hold` bytes are copied to
memory, and up to `switch` of them are left to `Elimination`.
"""

from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from bestarm.core import Array, Estimates, Problem, Pulls, Random, Standing, Tally, Totals, namespace, whole_budget
from bestarm.designs.active import Solution, optimal_design
from bestarm.designs.many import Sparse
from bestarm.designs.newton import Floats
from bestarm.designs.reading import Index
from bestarm.errors import InputError
from bestarm.linalg import moment, one_thread, symmetric_inverse, top
from bestarm.models.linear import Linear, Projected
from bestarm.needs import Need
from bestarm.numbers import real
from bestarm.policies.elimination import Elimination, EliminationState, Survivors, ThisStage
from bestarm.policies.schedules import Stage
from bestarm.tables.source import Rows, Source, beside, to_host
from bestarm.tables.views import CopiedSource, SelectedSource, gathered

DIGITS = 16  # bits of a score that one round of the search for a quantile looks at
CHUNK = 1 << 18  # scores that are looked at together


@dataclass(frozen=True)
class BigProblem:
    """What a policy may know of a big table: its source, the budget, and the noise variance if known."""

    source: Source
    budget: int
    noise_variance: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", whole_budget(self.budget))
        if self.noise_variance is not None:
            object.__setattr__(self, "noise_variance", real(self.noise_variance, "noise_variance", least=0))

    @property
    def arms(self) -> int:
        """The number of rows."""
        return self.source.rows


@dataclass(frozen=True)
class Leaders:
    """The two rows of largest estimate, the best first: which, their means and standard errors, each `(m,)`."""

    rows: Index
    means: Floats
    errors: Floats


@dataclass(frozen=True, eq=False)
class StreamedState:
    """The state of a streamed elimination: who is still in, the stage's design, or what the last few have come to."""

    problem: BigProblem
    stages: tuple[Stage, ...]
    stage: int
    rank: int
    kept: SelectedSource  # survivors
    held: Index | None  # rows of the table that the source of `kept` holds, if it is not the table itself
    found: Solution | None  # the design over `kept`
    few: EliminationState | None  # of the last survivors
    leaders: Leaders | None  # of the last stage

    @property
    def survivors(self) -> int:
        """How many arms are still in."""
        return self.kept.rows if self.few is None else int(self.few.active.shape[-1])

    def origin(self, index: Index) -> Index:
        """Return the rows of the table of survivors `index` `(m,)`."""
        rows = self.kept.origin(index)
        return rows if self.held is None else self.held[rows]


@dataclass(frozen=True)
class Streamed:
    """Eliminate as `few` does, reading the table in blocks while more than `switch` arms are left.

    >>> from bestarm.designs.protocols import Rounded
    >>> from bestarm.designs.ascent import Ascent
    >>> from bestarm.designs.rounding import AutoRound
    >>> from bestarm.tables import open_source
    >>> policy = Streamed(Elimination(Linear(), Rounded(Ascent(), AutoRound())), switch=2)
    >>> state = policy.start(BigProblem(open_source(np.eye(8)[:, :4] + 0.1), budget=30))
    >>> policy.ask(state, np.random.default_rng(1)).total
    10
    """

    few: Elimination
    many: Sparse = Sparse()
    switch: int = 100_000
    hold: int = 64 << 20

    def __post_init__(self) -> None:
        plain = (Linear(Projected()), ThisStage(), Survivors())
        if (self.few.model, self.few.memory, self.few.measure) != plain or self.few.eta is None:
            raise InputError("a table is read in blocks only by a linear GSE on each stage's own data and survivors")

    def needs(self, problem: BigProblem) -> Need:
        return self.few.needed(problem.arms, problem.source.columns)

    def start(self, problem: BigProblem) -> StreamedState:
        source = problem.source
        planned = self.few.schedule.stages(source.rows, problem.budget, lambda: source.columns)
        stages = tuple(Stage(int(stage.pulls), stage.keep) for stage in planned)
        kept = SelectedSource.of(source, np.ones(source.rows, dtype=bool))
        with one_thread():
            return self._begin(StreamedState(problem, stages, 0, 0, kept, None, None, None, None))

    def ask(self, state: StreamedState, rng: Random) -> Pulls | None:
        if state.few is not None:
            pulls = self.few.ask(state.few, rng)
            return None if pulls is None else Pulls(state.origin(pulls.arms), pulls.times)
        if state.found is None:
            return None
        rows, times = self.many.spread(state.found, state.stages[state.stage].pulls, rng)
        return Pulls(state.origin(rows), times)

    def tell(self, state: StreamedState, pulls: Pulls, totals: Totals) -> StreamedState:
        if state.stage == len(state.stages):
            raise InputError("all stages are over: there is nothing left to tell this elimination")
        with one_thread():
            if state.few is not None:
                return self._tell_few(state, state.few, pulls, totals)
            return self._tell_stage(state, pulls, totals)

    def recommend(self, state: StreamedState) -> Array:
        """Return the row, counted from 0, of the arm that is ahead."""
        rows = np.zeros(1, dtype=np.int64) if state.leaders is None else state.leaders.rows
        return rows[0]

    def _tell_stage(self, state: StreamedState, pulls: Pulls, totals: Totals) -> StreamedState:
        keep = state.stages[state.stage].keep
        fit = _Line.of(state, pulls, totals)
        scored: _Scored = state.kept.sweep(_Scores(fit.theta), _Scored.__add__)
        mask = _narrowed(state.kept.mask, _above(scored.pieces, keep))
        leaders = Leaders(state.origin(scored.index), scored.values, fit.errors(scored.rows))
        kept = SelectedSource.of(state.kept.source, mask)
        return self._begin(replace(state, stage=state.stage + 1, kept=kept, found=None, leaders=leaders))

    def _begin(self, state: StreamedState) -> StreamedState:
        """Bring survivors to memory if they fit, then find the design of the stage or hand over to `few`."""
        if state.stage == len(state.stages):
            return state
        kept, held = state.kept, state.held
        small = kept.rows <= self.switch
        width = kept.columns * kept.dtype.itemsize + 8  # bytes of a row and of its number
        if small or (held is None and kept.rows * width <= self.hold):
            rows = np.flatnonzero(kept.mask) if held is None else held[kept.mask]
            copy = CopiedSource.of(kept)
            state = replace(state, kept=SelectedSource.of(copy, np.ones(copy.rows, dtype=bool)), held=rows)
        if not small:
            found = optimal_design(state.kept, self.many.tolerance)
            return replace(state, found=found, rank=state.rank or found.rank)
        left = state.stages[state.stage :]
        features = np.asarray(gathered(state.kept), dtype=np.float64)
        problem = Problem(features, sum(stage.pulls for stage in left), state.problem.noise_variance)
        few = replace(self.few.start(problem), stages=left)
        rank = state.rank or int(np.count_nonzero(few.candidates.coordinates.any(axis=0)))
        return replace(state, few=few, rank=rank)

    def _tell_few(self, state: StreamedState, before: EliminationState, pulls: Pulls, totals: Totals) -> StreamedState:
        assert state.held is not None
        places = np.searchsorted(state.held, pulls.arms)
        few = self.few.tell(before, Pulls(places, pulls.times), totals)
        assert few.fit is not None
        lead = top(few.fit.score, 2)
        errors = self.few.standard_error(few)[lead]
        leaders = Leaders(state.held[few.judged[lead]], few.fit.mean[lead], errors)
        return replace(state, stage=state.stage + 1, few=few, leaders=leaders)

    def describe(self, state: StreamedState) -> Standing:
        """Return who is still in, the stages, and the two leaders of the last one."""
        held, active = state.held, np.zeros(state.problem.source.rows, dtype=bool)
        if state.few is None:
            active[slice(None) if held is None else held] = state.kept.mask
        else:
            active[state.origin(state.few.active)] = True
        pulls = tuple(stage.pulls for stage in state.stages)
        return Standing(active, pulls, state.stage, self.few.eta, partial(self._estimates, state))

    def _estimates(self, state: StreamedState) -> Estimates | None:
        ahead = state.leaders
        return None if ahead is None else Estimates(ahead.rows, ahead.means, ahead.errors)


@dataclass(frozen=True)
class _Line:
    """A fitted θ in terms of the columns `(d,)`, and what is needed for the errors of x'θ."""

    theta: Floats
    transform: Floats
    inverse: Floats
    scale: float

    @classmethod
    def of(cls, state: StreamedState, pulls: Pulls, totals: Totals) -> "_Line":
        """Fit least squares to a stage: of smallest norm in coordinates of the survivors' span, as `Linear` does."""
        assert state.found is not None
        T = state.found.transform
        z = _features(state, pulls.arms) @ T
        times = np.asarray(pulls.times, dtype=np.float64)
        inverse = symmetric_inverse(moment(z, times))
        along = inverse @ (z.T @ totals.sums)
        scale = state.problem.noise_variance
        if scale is None:
            mean = z @ along
            square = float(Tally(times, totals.sums, totals.squares, totals.scatter).residual(mean).sum())
            freedom = float(times.sum()) - z.shape[1]
            scale = square / freedom if freedom > 0 else np.inf
        return cls(T @ along, T, inverse, float(scale))

    def errors(self, rows: Rows) -> Floats:
        z = rows.astype(np.float64) @ self.transform
        return np.asarray(np.sqrt(self.scale * np.einsum("ij,ij->i", z @ self.inverse, z)))


def _features(state: StreamedState, rows: Index) -> Floats:
    """Return rows of the table `(m, d)`: those of the design are known, others are looked up."""
    assert state.found is not None
    known = state.origin(state.found.rows)
    places = np.minimum(np.searchsorted(known, rows), len(known) - 1)
    if np.array_equal(known[places], rows):
        return state.found.features[places]
    return np.asarray(state.problem.source.take(np.asarray(rows)), dtype=np.float64)


# ---------------------------------------------------------------------------------------------- estimates


@dataclass(frozen=True)
class _Scored:
    """Estimates in pieces, and the two largest of them: values, positions and rows, ties to the first."""

    pieces: tuple[Floats, ...]
    values: Floats
    index: Index
    rows: Rows

    def __add__(self, other: "_Scored") -> "_Scored":
        values, index, rows = (
            np.concatenate([getattr(self, name), getattr(other, name)]) for name in ("values", "index", "rows")
        )
        lead = top(values, 2)
        return _Scored(self.pieces + other.pieces, values[lead], index[lead], rows[lead])


@dataclass(frozen=True)
class _Scores:
    """Compute x'θ for each row in float64."""

    theta: Floats

    def __call__(self, block: Array, start: int) -> _Scored:
        xp = namespace(block)
        wide = xp.astype(block, xp.float64, copy=False)
        scores = to_host(wide @ beside(self.theta, wide))
        first = int(np.argmax(scores))
        rest = scores.copy()
        rest[first] = -np.inf
        lead = np.array([first, int(np.argmax(rest))][: len(scores)], dtype=np.int64)
        return _Scored((scores,), scores[lead], lead + start, to_host(xp.take(block, beside(lead, block), axis=0)))


def _above(pieces: tuple[Floats, ...], keep: int) -> tuple[NDArray[np.bool_], ...]:
    """Return marks of the `keep` largest scores, ties to the first, aligned with the pieces.

    >>> _above((np.array([1.0, 3.0, 2.0]), np.array([2.0, -5.0])), 2)
    (array([False,  True,  True]), array([False, False]))
    """
    cut, ties = quantile(pieces, keep)
    marks = []
    for scores in pieces:
        mark = scores > cut
        if ties:
            equal = np.flatnonzero(scores == cut)[:ties]
            mark[equal] = True
            ties -= len(equal)
        marks.append(mark)
    return tuple(marks)


def quantile(pieces: tuple[Floats, ...], keep: int) -> tuple[float, int]:
    """Return the `keep`-th largest score, and how many scores equal to it are among the `keep` largest.

    A search by leading digits: each round counts the next bits of the scores that agree in those before.

    >>> quantile((np.array([1.0, 3.0]), np.array([2.0, 2.0, -1.0])), 2)
    (2.0, 1)
    """
    prefix, left = 0, keep
    for shift in range(64 - DIGITS, -1, -DIGITS):
        counts = np.zeros(1 << DIGITS, dtype=np.int64)
        for keys in chain.from_iterable(_keys(scores) for scores in pieces):
            if shift < 64 - DIGITS:
                keys = keys[keys >> np.uint64(shift + DIGITS) == np.uint64(prefix)]
            digits = (keys >> np.uint64(shift)) & np.uint64((1 << DIGITS) - 1)
            counts += np.bincount(digits.astype(np.int64), minlength=1 << DIGITS)
        at_least = np.cumsum(counts[::-1])[::-1]
        digit = int(np.flatnonzero(at_least >= left)[-1])
        left -= int(at_least[digit] - counts[digit])
        prefix = (prefix << DIGITS) | digit
    bits = np.uint64(prefix ^ (1 << 63) if prefix >> 63 else prefix ^ ((1 << 64) - 1))
    return float(np.array([bits]).view(np.float64)[0]), left


def _keys(scores: Floats) -> list[NDArray[np.uint64]]:
    """Return scores as whole numbers in the same order, some at a time: the sign flips, and all bits of negatives."""
    parts = []
    for at in range(0, len(scores), CHUNK):
        bits = (scores[at : at + CHUNK] + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
        negative = (bits >> np.uint64(63)).astype(bool)
        parts.append(np.where(negative, ~bits, bits | np.uint64(1 << 63)))
    return parts


def _narrowed(mask: NDArray[np.bool_], marks: tuple[NDArray[np.bool_], ...]) -> NDArray[np.bool_]:
    """Return a mask `(K,)` that keeps, of the rows a mask keeps, those that are marked."""
    smaller, at = np.zeros_like(mask), 0
    kept = np.concatenate(marks)
    for start in range(0, len(mask), CHUNK):
        here = np.flatnonzero(mask[start : start + CHUNK])
        smaller[start + here] = kept[at : at + len(here)]
        at += len(here)
    return smaller
