"""A person's run: ask what to measure, tell what came out, in any order, from anywhere. The log is the study."""

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from reprlib import repr as shorten
from typing import TYPE_CHECKING, Any

import numpy as np

from bestarm.errors import BestArmError, BestArmWarning, InputError
from bestarm.numbers import counted, real, whole
from bestarm.study import asking, corrections, results
from bestarm.study.beyond import Pending
from bestarm.study.driver import Driver, PolicyFailed
from bestarm.study.log import Log
from bestarm.study.rounds import as_ranges
from bestarm.study.state import StudyState
from bestarm.study.storage import Record, Storage
from bestarm.study.trials import Batch, Trial, id_of

if TYPE_CHECKING:
    from bestarm.tables.arms import Arms
    from bestarm.tables.encoding import Encoding

Make = Callable[[StudyState], Sequence[Record]]


class Study:
    """A study in a storage; make one with `create_study` or `load_study`. Threads may share it.

    >>> from bestarm.study import create_study
    >>> study = create_study([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], budget=12, seed=1)
    >>> while batch := study.ask():
    ...     new = study.tell(batch, [float(trial.arm) for trial in batch])
    >>> study.best_arm, study.spent
    ('3', 12.0)
    """

    def __init__(self, name: str, storage: Storage, allow: Iterable[str] = (), arms: Any = None) -> None:
        self.name, self.storage = name, storage
        self.log = Log(name, storage, tuple(allow), arms)
        self.driver = Driver()
        self.sync()

    def __repr__(self) -> str:
        state = self.log.state
        return f"Study({self.name!r}: {counted(len(state.ids), 'arm')}, {state.used:g} of {state.budget:g} spent)"

    @property
    def state(self) -> StudyState:
        """What the log says, as it was read last."""
        return self.log.state

    def sync(self) -> StudyState:
        """Read what others have written, and return the state."""
        return self.log.sync()

    @property
    def finished(self) -> bool:
        """Whether nothing is left to ask, as far as the log tells: a policy that is at its end says so when asked."""
        return self.sync().over

    @property
    def budget(self) -> float:
        """Pulls, or money where arms have costs."""
        return self.sync().budget

    @property
    def spent(self) -> float:
        """What was handed out and not refunded, of the budget."""
        return self.sync().used

    @property
    def arms(self) -> tuple[str, ...]:
        """The ids of the arms in the race."""
        state = self.sync()
        return tuple(state.ids[:] if state.rows is not None else (state.ids[arm] for arm in state.in_race))

    @property
    def encoding(self) -> "Encoding":
        """How a row of the table of arms became features."""
        from bestarm.tables.encoding import Encoding

        return Encoding.from_dict(self.sync().first["arms"]["encoding"])

    def ask(
        self,
        n: int | None = None,
        source: str | None = None,
        *,
        runner: str | None = None,
        lease: float | None = None,
        wells: Sequence[str] | None = None,
    ) -> Batch | None:
        """Hand out up to `n` trials, None being the study's batch or else the rest of the round; None: it is over.

        An empty batch means that all trials of the round are out: its answers must come before the next question.
        A `runner` holds its trials for `lease` seconds without a sign of life; `wells` name their places on a plate.
        """
        most, more = asking.limit(n, wells), asking.lasting(runner, lease, wells)
        with self.log.lock:
            trials = self._hand_out(most, more, source)
            return None if trials is None else self._batch(trials)

    def pending(self) -> Batch:
        """Return the trials of this round that are out and not yet answered, so that somebody else can make them."""
        with self.log.lock:
            return self._batch(self.sync().open_trials())

    def tell(
        self,
        what: results.Told = None,
        values: Any = None,
        *,
        successes: Any = None,
        mean: float | None = None,
        sd: float | None = None,
        n: int | None = None,
        arm: str | None = None,
        id: str | None = None,
        extras: str = "free",
        source: str | None = None,
        correct: bool = False,
        why: str = "",
    ) -> int:
        """Tell results; return how many observations were new. A trial's told again, in any form, counts once.

        tell(batch, values)               a value for each trial of the batch; None or NaN: not yet measured
        tell(batch, successes=counts)     0/1 rewards by arm: aligned with batch.arms, or {arm: count}
        tell(trial, value), tell({trial id: value, ...})
        tell(arm="a7", values=0.3)        an observation nobody asked for, or several, where the study accepts such:
                                          new with each call, also where a value is the same
        tell(arm="a7", values=0.3, id="plate 3, A1")     told again with its id, it counts once
        tell(arm="a7", successes=120, n=5000), tell(arm="a7", mean=1.2, sd=0.4, n=10)     several rewards, which answer
                                          the arm's oldest trials that are out; what goes beyond is free, or with
                                          extras="spend" taken from the budget, and the policy knows it before it asks
        tell(trial, successes=3, n=10), tell(trial, mean=1.2, sd=0.4, n=10)     of one trial, which they are all of
        tell(frame)                       a data frame, or dicts, with columns trial (or arm) and reward, as in a file

        Results of rounds that are over are kept and inform recommendations. Unknown ids are refused, and values other
        than those told before, unless `correct` says that these hold; if anything is wrong with one result, none of
        the call is kept.
        """

        if what is not None and not isinstance(what, results.TOLD):
            return self._tell_frame(what, values, source, correct, why)

        def make(state: StudyState) -> Sequence[Record]:
            summary = {"successes": successes, "mean": mean, "sd": sd, "n": n}
            given = results.gather(state, what, values, summary, arm, id)
            if arm is not None and id is None and values is None:
                given = Pending.of(state, extras).answered_by(given)
            amended = results.contradictions(state, given, correct)
            return [*results.telling(state, given), *amended]

        return self.write(make, source, why)

    def _tell_frame(self, frame: Any, values: Any, source: str | None, correct: bool, why: str) -> int:
        from bestarm.study.files import tell_frame
        from bestarm.tables.cells import logged

        if values is not None:
            what = "a batch, a trial, a trial id or a mapping from ids to values is expected"
            raise InputError(f"{what}, or a frame alone, with a column 'reward'; given {shorten(frame)} and values")
        got = tell_frame(self, frame, _text(source), correct, why)
        logged(got.found)
        for note in got.notes:
            warnings.warn(note, BestArmWarning, stacklevel=3)
        return got.new

    def fail(self, trial: Trial | str, reason: str, refund: bool | None = None, source: str | None = None) -> None:
        """Say that a trial could not be made; with a refund its arm is asked again, else the pull is lost.

        A trial whose value is known is left alone; a value that comes after all is kept as data, and takes its price
        again while the budget pays for it.
        """
        self.write(lambda state: results.failing(state, [(trial, reason)], refund), source)

    def write(self, make: Make, source: str | None = None, why: str = "") -> int:
        """Write the records `make(state)` gives, whole or not at all; return how many observations they added."""
        with self.log.lock:
            written = self.log.write(lambda state: list(make(state)), _text(source), _text(why, "why"), results.alone)
            return 0 if written is None else results.added(self.state, *written)

    def import_results(self, rows: Iterable[tuple[str, float]], source: str = "import") -> int:
        """Add earlier observations (arm, value); they inform recommendations and cost nothing.

        They have no ids, so the same rows added again count again; `tell` takes an id, and `bestarm import` knows a
        file by its name and what it says.
        """
        given = list(rows)

        def make(state: StudyState) -> Sequence[Record]:
            found = [one for arm, value in given for one in results.extras(state, arm, value, asked=True)]
            return results.telling(state, found)

        return self.write(make, source)

    def amend(self, trial: corrections.What, value: Any, *, why: str = "", source: str | None = None) -> None:
        """Let another value hold for a result that was told; the first stays in the log."""
        self._change(lambda state: corrections.amend(state, trial, value), why, source)

    def exclude(
        self,
        trials: corrections.Whats = (),
        *,
        arm: str | None = None,
        by: str | None = None,
        since: Any = None,
        again: bool = False,
        why: str = "",
        source: str | None = None,
    ) -> int:
        """Let results not count: those named, or all of an arm, `by` a source, `since` a time; return how many.

        Their pulls stay spent, unless they are to be measured `again`.
        """

        def make(state: StudyState) -> Record | None:
            return corrections.exclude(state, corrections.chosen(state, trials, arm, by, since), again)

        return sum(map(corrections.size, self._change(make, why, source)))

    def restore(self, trials: corrections.Whats, *, why: str = "", source: str | None = None) -> int:
        """Let excluded results count again; return how many."""
        given = self._change(lambda state: corrections.restore(state, corrections.chosen(state, trials)), why, source)
        return sum(map(corrections.size, given))

    def hand_back(self, trials: corrections.Whats, *, why: str = "", source: str | None = None) -> None:
        """Give trials back that were asked by mistake and not measured: refunded, and asked again when you ask."""
        self._change(lambda state: corrections.hand_back(state, trials), why, source)

    def undo(self, record: int | None = None, *, why: str = "", source: str | None = None) -> int:
        """Take back a withdrawal, a correction or `finish`, the last one unless its record is named; return which."""
        number = None if record is None else whole(record, "record", least=0)
        (written,) = self._change(lambda state: corrections.undo(state, number), why, source)
        return int(written["record"])

    def finish(self, *, why: str = "", source: str | None = None) -> None:
        """Ask for nothing more; `undo` takes it back."""
        self._change(lambda state: None if state.finished_by_hand else {"kind": "finish"}, why, source)

    def raise_budget(self, budget: float, *, why: str = "", source: str | None = None) -> None:
        """Change the budget to a larger one; the policy plans with it when its present plan is done."""
        wanted = real(budget, "the budget")
        self._change(lambda state: corrections.raise_budget(state, wanted), why, source)

    def withdraw(self, arm: str, *, why: str = "", source: str | None = None) -> None:
        """Take an arm out of the race; the policy starts anew on the others with what is left of the budget."""
        self._change(lambda state: corrections.withdraw(state, arm), why, source)

    def add_arms(self, arms: "Arms", *, why: str = "", source: str | None = None) -> None:
        """Put more arms into the race; the policy starts anew on all with what is left of the budget.

        Rows of the same table become features by `study.encoding.apply(rows)`, then `Arms.from_arrays`.
        """
        from bestarm.tables.arms import Arms

        if not isinstance(arms, Arms):
            raise InputError(f"Arms are expected, as Arms.from_arrays gives them; given {type(arms).__name__}")
        self._change(lambda state: corrections.add_arms(state, arms), why, source)

    def close_round(self, *, why: str = "", source: str | None = None) -> None:
        """Go on without the answers that are still out; if they come they are kept, but the round has been judged."""
        self._change(
            lambda state: {"kind": "close", "round": state.round.number} if state.round else None, why, source
        )  # fmt: skip

    def join(self, runner: str, jobs: int) -> None:
        """Say that a runner makes so many pulls at a time; 0: it has left."""
        self._change(
            lambda state: (
                None if state.runners.get(runner, 0) == jobs else {"kind": "runner", "runner": runner, "jobs": jobs}
            )
        )  # fmt: skip

    def take_over(self, runner: str, dead: Iterable[str], lease: float | None = None) -> Batch:
        """Hand the open trials of runners that gave no sign of life to another, and return them."""
        gone, taken = set(dead), list[int]()

        def make(state: StudyState) -> Record | None:
            taken[:] = [trial for trial in state.open_trials() if state.holders.get(trial, ("", 0))[0] in gone]
            taking = {"kind": "takeover", "runner": runner, "from": sorted(gone), "trials": as_ranges(taken)}
            return {**taking, "lease": lease} if taken or gone & set(state.runners) else None

        with self.log.lock:
            self._change(make)
            return self._batch(taken)

    @property
    def best_arm(self) -> str:
        """The arm the policy would recommend now; where it has nothing to say, the one that all results speak for.

        Where there is no result yet it is any arm of the race.
        """
        with self.log.lock:
            state = self.sync()
            try:
                arm = self.driver.recommended(state)
            except (PolicyFailed, InputError):
                arm = None
            return str(state.ids[_leader(self, state) if arm is None or not state.present[arm] else arm])

    def standing(self) -> tuple[str, ...] | None:
        """Return the arms that the policy has not dropped, None where it drops none."""
        with self.log.lock:
            try:
                return self.driver.standing(self.sync())
            except (PolicyFailed, InputError):
                return None

    def recommend(self, **settings: Any) -> Any:
        """Return the `Answer`: the arm to choose, how sure that is, and what to be wary of."""
        from bestarm.study.evidence import answer

        return answer(self, **settings)

    def report(self, path: str | os.PathLike[str], progress: bool = False) -> None:
        """Write one page for people who were not there; see `bestarm.study.report`."""
        from bestarm.study.report import write_report

        write_report(self, path, progress)

    def run(self, pull: Any, **settings: Any) -> int:
        """Make all observations by calling `pull(arm id)`, several at a time; see `bestarm.study.runner`."""
        from bestarm.study.runner import run

        return run(self, pull, **settings)

    async def run_async(self, pull: Any, **settings: Any) -> int:
        """Make all observations by awaiting `pull(arm id)`, several at a time; see `bestarm.study.runner`."""
        from bestarm.study.runner import run_async

        return await run_async(self, pull, **settings)

    def trials(self) -> list[dict[str, Any]]:
        """Return a row for every trial and extra result: what came of it, when, by whom, and what was corrected."""
        from bestarm.study import table

        with self.log.lock:
            return table.rows(self.sync())

    def trials_frame(self, backend: Any = "pandas") -> Any:
        """Return `trials` as a data frame of the library named, times as dates in UTC, ids as text."""
        from bestarm.study import table

        return table.frame(self.trials(), backend)

    def _hand_out(self, most: int | None, more: Record, source: str | None = None) -> Sequence[int] | None:
        """Hand out trials as `ask` does, and return their numbers alone: ids of a long table have to be looked up."""
        while written := self.log.write(lambda state: asking.records(self.driver, state, most, more), _text(source)):
            record = written.records[0]
            if record["kind"] == "ask":
                return range(record["first"], record["first"] + record["count"])
        return None if self.state.over or self.state.round is None else ()

    def _batch(self, trials: Iterable[int]) -> Batch:
        trials = list(trials)
        ids = self.state.ids_of(map(self.state.arm_of, trials))
        return Batch(tuple(Trial(id_of(trial), id) for trial, id in zip(trials, ids, strict=True)), self)

    def _change(
        self, make: Callable[[StudyState], Record | None], why: str = "", source: str | None = None
    ) -> Sequence[Record]:  # fmt: skip
        """Write what `make(state)` gives, if anything, and return it."""
        written = self.log.write(lambda state: [r for r in [make(state)] if r], _text(source), _text(why, "why"))
        return () if written is None else written.records


def _text(text: str | None, what: str = "source") -> Any:
    """Return a text, or refuse what is none."""
    if text is not None and not isinstance(text, str):
        raise InputError(f"{what} must be a text; given {text!r}")
    return text


def _leader(study: Study, state: StudyState) -> int:
    """Return the arm that all results speak for: of the largest posterior mean, or of the best mean without one."""
    try:
        return int(state.places[study.recommend(draws=500).leader])
    except (BestArmError, ArithmeticError, np.linalg.LinAlgError, ValueError):
        arms = state.in_race if state.rows is None else state.measured or [0]
        known = state.known(arms)
        mean = known.sums / np.maximum(known.counts, 1)
        return arms[int(np.lexsort((-mean, known.counts == 0))[0])]
