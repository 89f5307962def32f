"""A person's run: ask what to measure, tell what came out, in any order, from anywhere. The log is the study."""

import math
import os
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bestarm import catalog, spec
from bestarm.arms import Arms
from bestarm.core import Problem
from bestarm.errors import BudgetError, InputError, StorageError, UnknownNameError
from bestarm.live import fresh_seed
from bestarm.rewards import Rewards
from bestarm.study.fold import VERSION, StudyState
from bestarm.study.storage import Record, Storage, open_storage


@dataclass(frozen=True)
class Trial:
    """One observation to make: of which arm. Its id says whose answer a result is."""

    id: str
    arm: str


@dataclass(frozen=True)
class Batch:
    """Trials handed out together. Empty, hence false, when all of the round are out and answers are awaited."""

    trials: tuple[Trial, ...]

    def __bool__(self) -> bool:
        return bool(self.trials)

    def __len__(self) -> int:
        return len(self.trials)

    def __iter__(self) -> Any:
        return iter(self.trials)

    @property
    def counts(self) -> dict[str, int]:
        """How often each arm is to be pulled, in order of appearance."""
        found: dict[str, int] = {}
        for trial in self.trials:
            found[trial.arm] = found.get(trial.arm, 0) + 1
        return found

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms, each once."""
        return tuple(self.counts)

    @property
    def times(self) -> tuple[int, ...]:
        """How often each of `arms` is to be pulled."""
        return tuple(self.counts.values())


class Study:
    """A study in a storage; make one with `create_study` or `load_study`."""

    def __init__(self, name: str, storage: Storage) -> None:
        self.name, self.storage = name, storage
        self.fold = StudyState()
        self.sync()

    def sync(self) -> StudyState:
        """Read what others have written, and return the state."""
        new = self.storage.read(self.name, self.fold.records)
        if not new and not self.fold.records:
            raise StorageError(f"there is no study {self.name!r} here")
        self.fold.apply(new)
        return self.fold

    @property
    def finished(self) -> bool:
        """Whether nothing is left to ask."""
        return self.sync().round is None

    def ask(self, n: int | None = None, source: str | None = None) -> Batch | None:
        """Hand out up to `n` trials, the rest of the round if None; return None when the study is over.

        An empty batch means that all trials of the round are out: its answers must come before the next question.
        """
        if n is not None and n < 1:
            raise InputError(f"ask for at least one trial; given {n}")
        while True:
            fold = self.sync()
            if fold.round is None:
                return None
            start, stop = fold.round.handed, len(fold.round.plan)
            stop = stop if n is None else min(stop, start + n)
            if start == stop:
                return Batch(())
            number, plan = fold.round.number, fold.round.plan
            record = {"kind": "ask", "round": number, "start": start, "stop": stop, **self._stamp(source)}
            if self.storage.append(self.name, [record], after=fold.records):
                return Batch(tuple(Trial(f"{number}.{slot}", fold.ids[plan[slot]]) for slot in range(start, stop)))

    def pending(self) -> Batch:
        """Return the trials that are out and not yet answered, so that somebody else can make them."""
        fold = self.sync()
        if fold.round is None:
            return Batch(())
        out = sorted(slot for slot in fold.round.open if slot < fold.round.handed)
        return Batch(tuple(Trial(f"{fold.round.number}.{s}", fold.ids[fold.round.plan[s]]) for s in out))

    def tell(
        self,
        what: Batch | Trial | str | Mapping[str, float | None] | None = None,
        values: Any = None,
        *,
        successes: Sequence[int] | None = None,
        arm: str | None = None,
        id: str | None = None,
        source: str | None = None,
    ) -> int:
        """Tell results; return how many were new. The same result told twice counts once.

        tell(batch, values)               a value for each trial of the batch; None or NaN: not yet measured
        tell(batch, successes=counts)     0/1 rewards by arm, aligned with batch.arms
        tell(trial, value), tell({trial id: value, ...})
        tell(arm="a7", values=0.3)        an observation nobody asked for, where the study accepts such
        """
        fold = self.sync()
        if arm is not None:
            results = [self._extra(fold, arm, values, id)]
        elif isinstance(what, Batch) and successes is not None:
            results = self._by_arm(fold, what, successes)
        else:
            results = [self._result(fold, trial, value) for trial, value in _pairs(what, values) if _there(value)]
        new = [result for result in results if result["id"] not in fold.seen]
        if new:
            self.storage.append(self.name, [{"kind": "tell", "results": new, **self._stamp(source)}])
            self.sync()
        return len(new)

    def fail(self, trial: Trial | str, reason: str, refund: bool | None = None, source: str | None = None) -> None:
        """Say that a trial could not be made; with a refund its arm is asked again, else the pull is lost."""
        fold = self.sync()
        number, slot = self._slot(fold, trial)
        back = fold.options["refund"] if refund is None else refund
        record = {
            "kind": "fail",
            "id": f"{number}.{slot}",
            "round": number,
            "slot": slot,
            "reason": reason,
            "refund": back,
        }
        self.storage.append(self.name, [{**record, **self._stamp(source)}])
        self.sync()

    def import_results(self, rows: Iterable[tuple[str, float]], source: str = "import") -> int:
        """Add earlier observations (arm, value); they inform recommendations and cost nothing."""
        fold = self.sync()
        results = [self._extra(fold, arm, value, None, asked=True) for arm, value in rows]
        if results:
            self.storage.append(self.name, [{"kind": "tell", "results": results, **self._stamp(source)}])
        self.sync()
        return len(results)

    def raise_budget(self, budget: float) -> None:
        """Change the budget to a larger one; the policy plans with it from its next start."""
        fold = self.sync()
        if budget <= fold.budget:
            raise BudgetError(f"the budget is {fold.budget:g}; a larger one is expected, given {budget:g}")
        self._write({"kind": "budget", "budget": budget})

    def withdraw(self, arm: str) -> None:
        """Take an arm out of the race; the policy starts anew on the others with what is left of the budget."""
        fold = self.sync()
        place = self._arm(fold, arm)
        if fold.present[place] and sum(fold.present) == 1:
            raise InputError(f"arm {arm!r} is the last one: it cannot be withdrawn")
        self._write({"kind": "arms", "withdrawn": [place]})

    def add_arms(self, arms: Arms) -> None:
        """Put more arms into the race; the policy starts anew on all with what is left of the budget."""
        fold = self.sync()
        if arms.names != tuple(fold.names):
            raise InputError(f"new arms must have the features {', '.join(fold.names)}; given {', '.join(arms.names)}")
        known = set(fold.ids) & set(arms.ids)
        if known:
            raise InputError(f"arm {sorted(known)[0]!r} is in the study already")
        if (arms.cost is None) != (fold.cost is None):
            raise InputError("new arms must have costs if and only if the study has them")
        costs = [None] * len(arms) if arms.cost is None else arms.cost.tolist()
        rows = zip(arms.ids, arms.features.tolist(), costs, strict=True)
        self._write({"kind": "arms", "added": [{"id": i, "features": f, "cost": c} for i, f, c in rows]})

    def close_round(self) -> None:
        """Go on without the answers that are still out; if they come they are kept, but the round has been judged."""
        fold = self.sync()
        if fold.round is not None:
            self._write({"kind": "close", "round": fold.round.number})

    @property
    def best_arm(self) -> str:
        """The arm the policy would recommend now."""
        fold = self.sync()
        if fold.state is None:
            known = fold.known()
            mean = np.where(known.counts > 0, known.sums / np.maximum(known.counts, 1), -np.inf)
            return fold.ids[int(np.argmax(mean))]
        return fold.ids[fold.epoch_arms[int(fold.runner.recommend(fold.state))]]

    def recommend(self, **settings: Any) -> Any:
        """Return the arm to choose, how sure that is, and what to be wary of; see `bestarm.study.recommendation`."""
        from bestarm.study.recommendation import recommend

        return recommend(self, **settings)

    def run(self, pull: Any, **settings: Any) -> Any:
        """Make all observations by calling `pull(arm id)`, several at a time; see `bestarm.study.runner`."""
        from bestarm.study.runner import run

        return run(self, pull, **settings)

    async def run_async(self, pull: Any, **settings: Any) -> Any:
        """Make all observations by awaiting `pull(arm id)`, several at a time; see `bestarm.study.runner`."""
        from bestarm.study.runner import run_async

        return await run_async(self, pull, **settings)

    def trials(self) -> list[dict[str, Any]]:
        """Return every told value and every failure as a row, with time and source."""
        rows = []
        fold = self.sync()
        seen: set[str] = set()
        for record in self.storage.read(self.name):
            told = record["results"] if record["kind"] == "tell" else [record] if record["kind"] == "fail" else ()
            for result in told:
                if result["id"] in seen:
                    continue
                seen.add(result["id"])
                rows.append(
                    {
                        "id": result["id"],
                        "arm": fold.ids[result["arm"]] if "arm" in result else None,
                        "count": result.get("count", 1) if record["kind"] == "tell" else 0,
                        "value": result.get("value", result.get("sum")),
                        "time": record["time"],
                        "source": record["source"],
                        "failed": result.get("reason") if record["kind"] == "fail" else None,
                    }
                )
        return rows

    def trials_frame(self, backend: str = "pandas") -> Any:
        """Return `trials` as a data frame of the library named."""
        import narwhals

        rows = self.trials()
        keys = ("id", "arm", "count", "value", "time", "source", "failed")
        return narwhals.from_dict({key: [row[key] for row in rows] for key in keys}, backend=backend).to_native()

    # results as the log has them

    def _result(self, fold: StudyState, trial: Trial | str, value: Any) -> Record:
        number, slot = self._slot(fold, trial)
        number_given = _number(value, f"trial {number}.{slot}")
        _allowed(fold, number_given, f"trial {number}.{slot}")
        arm = self._arm_of(fold, number, slot, trial)
        return {"id": f"{number}.{slot}", "arm": arm, "value": number_given, "round": number, "slots": [slot]}

    def _by_arm(self, fold: StudyState, batch: Batch, successes: Sequence[int]) -> list[Record]:
        if len(successes) != len(batch.arms):
            raise InputError(f"{len(batch.arms)} success counts expected, one for each arm; {len(successes)} given")
        results: list[Record] = []
        for arm, times, won in zip(batch.arms, batch.times, successes, strict=True):
            count = _number(won, f"arm {arm!r}")
            if not 0 <= count <= times or count != int(count):
                raise InputError(f"arm {arm!r}: a whole number from 0 to {times} is expected; given {won!r}")
            mine = [self._slot(fold, trial) for trial in batch if trial.arm == arm]
            slots = [slot for _, slot in mine]
            name = f"{mine[0][0]}.{min(slots)}-{max(slots)}:{self._arm(fold, arm)}"
            body = {"arm": self._arm(fold, arm), "count": times, "sum": count, "squares": count}
            results.append({"id": name, **body, "round": mine[0][0], "slots": slots})
        return results

    def _extra(self, fold: StudyState, arm: str, value: Any, id: str | None, asked: bool = False) -> Record:
        if not asked and not fold.options["extra"]:
            raise InputError(f"arm {arm!r} was not asked for, and this study takes no extra results")
        given = _number(value, f"arm {arm!r}")
        _allowed(fold, given, f"arm {arm!r}")
        return {"id": id or f"extra-{uuid.uuid4().hex}", "arm": self._arm(fold, arm), "value": given}

    def _slot(self, fold: StudyState, trial: Trial | str) -> tuple[int, int]:
        name = trial.id if isinstance(trial, Trial) else str(trial)
        try:
            number, slot = (int(part) for part in name.split("."))
        except ValueError:
            raise InputError(f"a trial id such as 3.17 is expected; given {name!r}") from None
        last = fold.rounds - 1
        if not 0 <= number <= last or slot < 0:
            raise InputError(f"trial {name} was never asked for")
        current = fold.round
        if current is not None and number == current.number and slot >= current.handed:
            raise InputError(f"trial {name} was never asked for")
        return number, slot

    def _arm_of(self, fold: StudyState, number: int, slot: int, trial: Trial | str) -> int:
        if isinstance(trial, Trial):
            return self._arm(fold, trial.arm)
        if fold.round is not None and number == fold.round.number:
            return fold.round.plan[slot]
        raise InputError(f"trial {number}.{slot} is of a round that is over; tell its value by arm")

    def _arm(self, fold: StudyState, arm: str) -> int:
        if arm not in fold.ids:
            raise UnknownNameError("arm", str(arm), fold.ids)
        return fold.ids.index(arm)

    def _write(self, record: Record) -> None:
        self.storage.append(self.name, [{**record, **self._stamp(None)}])
        self.sync()

    def _stamp(self, source: str | None) -> dict[str, Any]:
        return {"time": time.time(), "source": source or os.environ.get("BESTARM_SOURCE", "")}


def create_study(
    arms: Arms | Any,
    budget: float,
    policy: str | Any = None,
    model: str | None = None,
    *,
    study_name: str | None = None,
    storage: str | os.PathLike[str] | Storage | None = None,
    load_if_exists: bool = False,
    direction: str = "maximize",
    noise_variance: float | None = None,
    seed: int | None = None,
    batch: int | None = None,
    refund: bool = True,
    extra: bool = True,
) -> Study:
    """Begin a study: find the best of `arms` within `budget` pulls (or money, where arms have costs).

    `batch` is how many trials one-at-a-time policies plan together; policies that go by stages have their own rounds.
    """
    table = arms if isinstance(arms, Arms) else Arms.from_arrays(np.asarray(arms, dtype=np.float64))
    if direction not in ("maximize", "minimize"):
        raise InputError(f"direction must be 'maximize' or 'minimize'; given {direction!r}")
    chosen = (
        catalog.policy(policy or catalog.default_policy(model or "linear"))
        if policy is None or isinstance(policy, str)
        else policy
    )
    if policy is not None and model is not None:
        chosen = catalog.policy(policy, model=catalog.model(model)) if isinstance(policy, str) else chosen
    rewards_model = catalog.model(model or "linear")
    Rewards(getattr(getattr(chosen, "policy", chosen), "model", None) or rewards_model, direction == "minimize")
    cheapest = 1.0 if table.cost is None else float(table.cost.min())
    if not budget >= cheapest:
        raise BudgetError(f"a budget of {budget:g} does not pay for a single pull; at least {cheapest:g} is needed")
    chosen.start(
        Problem(
            table.features, max(1, int(budget / (1.0 if table.cost is None else table.cost.mean()))), noise_variance
        )
    )
    name = study_name or f"study-{uuid.uuid4().hex[:8]}"
    first = {
        "kind": "create", "version": VERSION, "name": name, "time": time.time(), "budget": budget, "direction": direction,
        "arms": {"ids": list(table.ids), "features": table.features.tolist(), "names": list(table.names),
                 "cost": None if table.cost is None else table.cost.tolist()},
        "policy": spec.to_dict(chosen), "model": spec.to_dict(rewards_model), "noise_variance": noise_variance,
        "seed": fresh_seed() if seed is None else seed, "options": {"batch": batch, "refund": refund, "extra": extra},
    }  # fmt: skip
    place = open_storage(storage if storage is not None else os.environ.get("BESTARM_STORAGE"))
    if not place.create(name, first) and not load_if_exists:
        raise InputError(f"there is a study {name!r} already; load it, delete it, or choose another name")
    return Study(name, place)


def load_study(study_name: str, storage: str | os.PathLike[str] | Storage | None = None) -> Study:
    """Return the study of that name."""
    place = open_storage(storage if storage is not None else os.environ.get("BESTARM_STORAGE"))
    names = place.names()
    if study_name not in names:
        if not names:
            raise StorageError(f"there is no study {study_name!r} here; there is none at all")
        raise UnknownNameError("study", study_name, names)
    return Study(study_name, place)


def delete_study(study_name: str, storage: str | os.PathLike[str] | Storage | None = None) -> None:
    """Forget a study and all its results."""
    place = open_storage(storage if storage is not None else os.environ.get("BESTARM_STORAGE"))
    if not place.delete(study_name):
        raise StorageError(f"there is no study {study_name!r} here")


def get_all_study_names(storage: str | os.PathLike[str] | Storage | None = None) -> list[str]:
    """Return the names of all studies in a storage."""
    return open_storage(storage if storage is not None else os.environ.get("BESTARM_STORAGE")).names()


def _pairs(what: Any, values: Any) -> list[tuple[Any, Any]]:
    if isinstance(what, Mapping):
        return list(what.items())
    if isinstance(what, Batch):
        given = list(values) if isinstance(values, Iterable) else [values]
        if len(given) != len(what):
            raise InputError(f"{len(what)} values expected, the number of trials asked; {len(given)} given")
        return list(zip(what.trials, given, strict=True))
    if isinstance(what, Trial | str):
        return [(what, values)]
    raise InputError(f"a batch, a trial, a trial id or a mapping from ids to values is expected; given {what!r}")


def _there(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def _number(value: Any, place: str) -> float:
    try:
        given = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{place}: a number is expected; given {value!r}") from None
    if not math.isfinite(given):
        raise InputError(f"{place}: a finite number is expected; given {value!r}")
    return given


def _allowed(fold: StudyState, value: float, place: str) -> None:
    assert fold.rewards is not None
    try:
        fold.rewards.allowed(value)
    except InputError as error:
        raise type(error)(f"{place}: {error}") from None
