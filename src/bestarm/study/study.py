"""A person's run: ask what to measure, tell what came out, in any order, from anywhere. The log is the study."""

import copy
import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from bestarm.arms import Arms, Encoding
from bestarm.errors import BudgetError, InputError, StorageError
from bestarm.study import results
from bestarm.study.fold import LARGEST, StudyState, slot_names
from bestarm.study.storage import Record, Storage
from bestarm.study.trials import Batch, Trial

Told: TypeAlias = tuple[Iterable[Record], Iterable[Record]]  # results, failures

COLUMNS = ("id", "arm", "count", "value", "time", "source", "failed")


class Study:
    """A study in a storage; make one with `create_study` or `load_study`. Threads may share it.

    >>> from bestarm.study import create_study
    >>> study = create_study([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], budget=12, seed=1)
    >>> while batch := study.ask():
    ...     new = study.tell(batch, [float(trial.arm) for trial in batch])
    >>> study.best_arm, study.spent
    ('3', 12.0)
    """

    def __init__(self, name: str, storage: Storage) -> None:
        self.name, self.storage = name, storage
        self.fold = StudyState()
        self._lock = threading.RLock()
        self.sync()

    def __repr__(self) -> str:
        return f"Study({self.name!r}: {len(self.fold.ids)} arms, {self.fold.used:g} of {self.fold.budget:g} spent)"

    def sync(self) -> StudyState:
        """Read what others have written, and return the state."""
        with self._lock:
            new = self.storage.read(self.name, self.fold.records)
            if not new and not self.fold.records:
                raise StorageError(f"there is no study {self.name!r} here")
            self.fold.apply(new)
            return self.fold

    @property
    def finished(self) -> bool:
        """Whether nothing is left to ask."""
        return self.sync().round is None

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
        fold = self.sync()
        return tuple(arm for arm, there in zip(fold.ids, fold.present, strict=True) if there)

    @property
    def encoding(self) -> Encoding:
        """How a row of the table of arms became features."""
        return Encoding.from_dict(self.sync().first["arms"]["encoding"])

    def ask(self, n: int | None = None, source: str | None = None) -> Batch | None:
        """Hand out up to `n` trials, None being the study's batch or else the rest of the round; None: it is over.

        An empty batch means that all trials of the round are out: its answers must come before the next question.
        """
        if n is not None and n < 1:
            raise InputError(f"ask for at least one trial; given {n}")
        with self._lock:
            while True:
                fold = self.sync()
                if fold.round is None:
                    return None
                most = n or fold.options.get("batch")
                start, stop = fold.round.handed, len(fold.round.plan)
                stop = stop if most is None else min(stop, start + most)
                if start == stop:
                    return Batch(())
                batch = self._trials(fold.round.number, range(start, stop))
                record = {"kind": "ask", "round": fold.round.number, "start": start, "stop": stop}
                if self.storage.append(self.name, [record | _stamp(source)], after=fold.records):
                    return batch

    def pending(self) -> Batch:
        """Return the trials of this round that are out and not yet answered, so that somebody else can make them."""
        with self._lock:
            current = self.sync().round
            if current is None:
                return Batch(())
            return self._trials(current.number, sorted(slot for slot in current.open if slot < current.handed))

    def tell(
        self,
        what: results.Told = None,
        values: Any = None,
        *,
        successes: Any = None,
        arm: str | None = None,
        id: str | None = None,
        source: str | None = None,
    ) -> int:
        """Tell results; return how many observations were new. The same one told again, in any form, counts once.

        tell(batch, values)               a value for each trial of the batch; None or NaN: not yet measured
        tell(batch, successes=counts)     0/1 rewards by arm: aligned with batch.arms, or {arm: count}
        tell(trial, value), tell({trial id: value, ...})
        tell(arm="a7", values=0.3)        an observation nobody asked for, or several, where the study accepts such

        Results of rounds that are over are kept and inform recommendations. Unknown ids are refused; if anything is
        wrong with one result, none of the call is kept.
        """
        with self._lock:
            return self.record(lambda fold: (results.gather(fold, what, values, successes, arm, id), ()), source)

    def fail(self, trial: Trial | str, reason: str, refund: bool | None = None, source: str | None = None) -> None:
        """Say that a trial could not be made; with a refund its arm is asked again, else the pull is lost.

        A trial whose value is known is left alone; a value that comes after all is kept as data.
        """
        self.record(lambda fold: ((), [self.failure(fold, trial, reason, refund)]), source)

    def failure(self, fold: StudyState, trial: Trial | str, reason: str, refund: bool | None = None) -> Record:
        """Return what the log keeps of a failed trial."""
        number, slot = results.locate(fold, trial)
        body = {"kind": "fail", "id": f"{number}.{slot}", "round": number, "slot": slot, "reason": str(reason)}
        return body | {
            "arm": fold.history[number].plan[slot],
            "refund": fold.options["refund"] if refund is None else refund,
        }

    def record(self, make: Callable[[StudyState], Told], source: str | None = None) -> int:
        """Write what `make(state)` gives, results and failures, whole or not at all; return how many were new."""
        with self._lock:
            while True:
                fold = self.sync()
                told, failures = make(fold)
                new = results.unseen(fold, told)
                failures = [one for one in failures if one["id"] not in fold.seen and one["id"] not in fold.failed]
                records = [{"kind": "tell", "results": new}] if new else []
                records = [{**one, **_stamp(source)} for one in [*records, *failures]]
                # A sum cannot be taken apart: it must not be written if one of its trials was told in between.
                alone = any(len(slot_names(one)) > 1 for one in new)
                if not records or self.storage.append(self.name, records, after=fold.records if alone else None):
                    self.sync()
                    return sum(one.get("count", 1) for one in new)

    def import_results(self, rows: Iterable[tuple[str, float]], source: str = "import") -> int:
        """Add earlier observations (arm, value); they inform recommendations and cost nothing."""
        given = list(rows)
        return self.record(
            lambda fold: ([one for arm, value in given for one in results.extras(fold, arm, value, asked=True)], ()),
            source,
        )

    def raise_budget(self, budget: float) -> None:
        """Change the budget to a larger one; the policy plans with it when its present plan is done."""

        def change(fold: StudyState) -> Record:
            if not fold.budget < budget < np.inf:
                raise BudgetError(f"the budget is {fold.budget:g}; a larger one is expected, given {budget:g}")
            if (budget - fold.used) / (1.0 if fold.cost is None else min(fold.cost)) > LARGEST:
                raise BudgetError(f"a budget of {budget:g} is beyond what a study can plan, {LARGEST:,} pulls")
            return {"kind": "budget", "budget": budget}

        self._change(change)

    def withdraw(self, arm: str) -> None:
        """Take an arm out of the race; the policy starts anew on the others with what is left of the budget."""

        def change(fold: StudyState) -> Record | None:
            place = results.arm_index(fold, arm)
            if fold.present[place] and sum(fold.present) == 1:
                raise InputError(f"arm {arm!r} is the last one: it cannot be withdrawn")
            return {"kind": "arms", "withdrawn": [place]} if fold.present[place] else None

        self._change(change)

    def add_arms(self, arms: Arms) -> None:
        """Put more arms into the race; the policy starts anew on all with what is left of the budget.

        Rows of the same table become features by `study.encoding.apply(rows)`, then `Arms.from_arrays`.
        """

        def change(fold: StudyState) -> Record:
            if arms.names != tuple(fold.names):
                names = (", ".join(some) for some in (fold.names, arms.names))
                raise InputError("new arms must have the features {}; given {}".format(*names))
            known = set(fold.ids) & set(arms.ids)
            if known:
                raise InputError(f"arm {sorted(known)[0]!r} is in the study already")
            if (arms.cost is None) != (fold.cost is None):
                raise InputError("new arms must have costs if and only if the study has them")
            costs = [None] * len(arms) if arms.cost is None else arms.cost.tolist()
            rows = zip(arms.ids, arms.features.tolist(), costs, strict=True)
            return {"kind": "arms", "added": [{"id": i, "features": f, "cost": c} for i, f, c in rows]}

        self._change(change)

    def close_round(self) -> None:
        """Go on without the answers that are still out; if they come they are kept, but the round has been judged."""
        self._change(lambda fold: {"kind": "close", "round": fold.round.number} if fold.round else None)

    @property
    def best_arm(self) -> str:
        """The arm the policy would recommend now; the best mean, where what is left is too little for the policy."""
        with self._lock:
            fold = self.sync()
            if fold.state is not None:
                return fold.ids[fold.epoch_arms[int(fold.runner.recommend(fold.state))]]
            known = fold.known()
            mean = known.sums / np.maximum(known.counts, 1)
            order = np.lexsort((-mean, known.counts == 0, ~np.array(fold.present)))
            return fold.ids[int(order[0])]

    def recommend(self, **settings: Any) -> Any:
        """Return the arm to choose, how sure that is, and what to be wary of; see `bestarm.study.recommendation`."""
        from bestarm.study.recommendation import recommend

        return recommend(self, **settings)

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write one page for people who were not there; see `bestarm.study.report`."""
        from bestarm.study.report import write_report

        write_report(self, path)

    def run(self, pull: Any, **settings: Any) -> int:
        """Make all observations by calling `pull(arm id)`, several at a time; see `bestarm.study.runner`."""
        from bestarm.study.runner import run

        return run(self, pull, **settings)

    async def run_async(self, pull: Any, **settings: Any) -> int:
        """Make all observations by awaiting `pull(arm id)`, several at a time; see `bestarm.study.runner`."""
        from bestarm.study.runner import run_async

        return await run_async(self, pull, **settings)

    def trials(self) -> list[dict[str, Any]]:
        """Return every told value and every failure as a row, with time and source; a sum stands for `count` trials."""
        with self._lock:
            ids, seen, rows = self.sync().ids, set[str](), list[dict[str, Any]]()
            for record in self.storage.read(self.name):
                failed = record["kind"] == "fail"
                for one in record["results"] if record["kind"] == "tell" else [record] if failed else ():
                    names = [f"failed {one['id']}", one["id"]] if failed else slot_names(one)
                    if not seen.isdisjoint(names):
                        continue
                    seen.update(names[:1] if failed else names)
                    count, value = (0, None) if failed else (one.get("count", 1), one.get("value", one.get("sum")))
                    cells = (one["id"], ids[one["arm"]], count, value, record["time"], record["source"])
                    rows.append(dict(zip(COLUMNS, (*cells, one["reason"] if failed else None), strict=True)))
            return rows

    def trials_frame(self, backend: Any = "pandas") -> Any:
        """Return `trials` as a data frame of the library named."""
        import narwhals

        rows = self.trials()
        return narwhals.from_dict({key: [row[key] for row in rows] for key in COLUMNS}, backend=backend).to_native()

    def _trials(self, number: int, slots: Iterable[int]) -> Batch:
        plan = self.fold.history[number].plan
        return Batch(tuple(Trial(f"{number}.{slot}", self.fold.ids[plan[slot]]) for slot in slots))

    def _change(self, make: Callable[[StudyState], Record | None]) -> None:
        """Write what `make(state)` gives, if it can be lived with: it is tried on a copy first."""
        with self._lock:
            while True:
                fold = self.sync()
                change = make(fold)
                if change is None:
                    return
                try:
                    copy.deepcopy(fold).apply([change])
                except StorageError as error:
                    raise InputError(f"this study cannot be so changed: {error.__cause__ or error}") from error
                if self.storage.append(self.name, [{**change, **_stamp(None)}], after=fold.records):
                    self.sync()
                    return


def _stamp(source: str | None) -> dict[str, Any]:
    return {"time": time.time(), "source": source or os.environ.get("BESTARM_SOURCE", "")}
