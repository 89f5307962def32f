"""What is whole of a damaged study, written into a new log.

A trial keeps its number and its price though the record that handed it out is lost: whoever tells its result, now or
once more, tells that trial's. What was asked of which arm stands in the results too.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from bestarm.errors import InputError, StorageError
from bestarm.numbers import counted
from bestarm.study import fold
from bestarm.study.plans import affordable, begin_of
from bestarm.study.results import names_of, trials_of
from bestarm.study.rounds import as_ranges, spread
from bestarm.study.state import CENT, VERSION, StudyState
from bestarm.study.storage import Record, open_storage
from bestarm.study.trials import id_of
from bestarm.study.version1 import said_before

LOST = "salvaged-"  # begins the ids of results of version 1
NAMING = ("tell", "amend", "fail", "hand-back", "exclude", "restore", "takeover")  # trials


def salvage(name: str, storage: Any, to: Any, as_: str | None = None) -> list[str]:
    """Write what is whole of a study into a new log, and return what was left out and why, a sentence each."""
    place, target, new = open_storage(storage), open_storage(to), as_ or name
    found, left_out = _in_order(place.salvage(name))
    if not found:
        raise StorageError(f"there is no study {name!r} in {place.place}")
    if new in target.names():
        raise InputError(f"there is a study {new!r} in {target.place} already; salvage into a new place")
    first = found[0][1]
    if found[0][0] != 0 or isinstance(first, str):
        said = first if isinstance(first, str) else "it is missing"
        raise StorageError(
            f"{place.place}: the first record of {name!r} says what the study is, and it is lost: {said}"
        )
    old = first.get("version") == 1
    saving = Saving(StudyState(folder=place.folder), old, free=old, left_out=left_out)
    whole = [*saving.all(found)]
    if old:
        saving.left_out.append("what was asked in version 1: its results are kept, but count for nothing spent")
    target.create(new, whole[0])
    target.append(new, whole[1:])
    return saving.left_out


def _in_order(found: Iterable[tuple[int, Record | str]]) -> tuple[list[tuple[int, Record | str]], list[str]]:
    """Return records in the order of their numbers, each once, and what is left out so; a whole one is not missing."""
    whole: dict[int, Record | str] = {}
    wrong = []
    for number, one in found:
        before = whole.get(number)
        if before is None or (isinstance(before, str) and not isinstance(one, str)):
            whole[number] = one
        elif not isinstance(one, str) and one != before:
            wrong.append(f"record {number} is there twice, with different contents: the first one is kept")
    return sorted(whole.items(), key=lambda item: item[0]), wrong


@dataclass
class Saving:
    """Records taken over one by one. Trials keep numbers and price; rounds and records are numbered anew."""

    state: StudyState
    old: bool = False  # of version 1, so far
    free: bool = False  # what lost its arm is refunded
    left_out: list[str] = field(default_factory=list)
    rounds: dict[int, int] = field(default_factory=dict)  # numbers here, by those there
    plans: dict[int, "array[int]"] = field(default_factory=dict)  # arms there, by round there
    known: dict[int, int] = field(default_factory=dict)  # arms there, by trial
    numbers: dict[int, int] = field(default_factory=dict)  # of records
    arms: dict[int, int] = field(default_factory=dict)  # numbers here, by those there

    def all(self, found: Sequence[tuple[int, Record | str]]) -> Iterable[Record]:
        """Give the records of the new log."""
        for _, record in found:
            self._learn(record if isinstance(record, dict) else {})
        expected = 0
        for number, record in found:
            if number > expected:
                self._lose(f"records {expected} to {number - 1} are missing" if number > expected + 1 else
                           f"record {expected} is missing")  # fmt: skip
            expected = number + 1
            if isinstance(record, str):
                self._lose(f"record {number}: {record}")
                continue
            for kept in self._kept(number, record):
                try:
                    fold.take(self.state, kept)
                except fold.MISREAD as error:
                    self._lose(f"record {number} {fold.trouble(kept, error)}")
                    continue
                self.numbers[number] = self.state.records
                self.state.records += 1
                self.state.recount()
                yield kept

    def _lose(self, why: str) -> None:
        self.left_out.append(why)

    def _learn(self, record: Record) -> None:
        """Note of which arms trials are: the record by which they were handed out may be lost."""
        if record.get("kind") == "ask" and "plan" in record:
            self.plans[record["round"]] = spread(record["plan"])
        if record.get("kind") == "ask" and "first" in record:
            plan, start = self.plans.get(record["round"], array("i")), record["start"]
            plan[start:start] = array("i", [-1] * record.get("repeats", 0))  # their arms are what is told of them
            mine = plan[start : start + record["count"]]
            self.known |= dict(enumerate(mine, record["first"]))
        for one in record["results"] if record.get("kind") in ("tell", "amend") else [record]:
            self.known |= dict.fromkeys(trials_of(one), one["arm"]) if "arm" in one else {}

    def _kept(self, number: int, record: Record) -> Iterator[Record]:
        """Give what goes into the new log in place of a record."""
        kind = record["kind"]
        if self.old:
            yield from self._of_version_1(record)
            return
        if kind == "create":
            self.arms = {arm: arm for arm in range(_size(record["arms"]))}
        if kind == "ask":
            yield from self._ask(number, record)
            return
        if kind in NAMING:
            named = [trial for one in record.get("results", [record]) for trial in trials_of(one)]
            yield from self._handed(max(named, default=0), record)
        if kind == "arms":
            yield self._arms(record)
        elif kind in ("tell", "amend"):
            results = [new for new in (self._result(one, kind) for one in record["results"]) if new]
            lost = len(record["results"]) - len(results)
            if lost:
                self._lose(f"record {number}: {counted(lost, 'result')} lost the arm, or what it puts right")
            yield from [{**record, "results": results}] if results else []
        elif kind in ("fail", "exclude", "restore", "close", "undo", "end"):
            try:
                yield self._renumbered(record)
            except KeyError:
                self._lose(f"record {number}, {kind!r}, is about something that is lost")
        else:
            yield record

    def _of_version_1(self, record: Record) -> Iterator[Record]:
        """Version 1 begins anew in version 2, with all its results as extras."""
        kind = record["kind"]
        if kind == "create":
            self.arms = {arm: arm for arm in range(_size(record["arms"]))}
            yield {**record, "version": VERSION}
        elif kind == "upgrade":
            self.old = False
        elif kind == "tell":
            results = [{"id": f"{LOST}{one['id']}", **said_before(one), "arm": one["arm"]} for one in record["results"]]
            yield {**record, "results": results}
        elif kind in ("arms", "budget"):
            yield self._arms(record) if kind == "arms" else record

    def _ask(self, number: int, record: Record) -> Iterator[Record]:
        round_, start, first, count = (record[key] for key in ("round", "start", "first", "count"))
        yield from self._handed(first - 1, record)
        now, pairs = self.state.round, record.get("plan")
        if pairs is not None and all(arm in self.arms for arm, _ in pairs):
            if now is not None:
                yield {"kind": "close", "time": record["time"], "round": now.number}
            self.rounds[round_] = self.state.rounds
            plan = [[self.arms[arm], times] for arm, times in pairs]
            yield from self._paid(spread(plan)[:count], record, spread(plan))
            record = {**record, "plan": plan, "round": self.state.rounds}
            if "begin" not in record and (self.state.epoch is None or self._made_up):
                record["begin"] = begin_of(self.state, max(1, affordable(self.state)))
            yield record
        elif (
            now is not None
            and self.rounds.get(round_) == now.number
            and start == now.handed
            and (coming := self._coming(record)) is not None
        ):
            yield from self._paid(coming, record)
            yield {**record, "round": now.number}
        else:
            self._lose(f"record {number}: the plan of its {counted(count, 'trial')} is lost, not their price")
            yield from self._handed(first + count - 1, record)

    def _coming(self, record: Record) -> Sequence[int] | None:
        """Return the arms that an ask hands out, None where what it says waits, or is known of its trials, does not."""
        now, repeats, count = self.state.round, record.get("repeats", 0), record["count"]
        if now is None or repeats > now.waiting():
            return None
        coming = now.coming(count, repeats)
        known = (self.arms.get(self.known.get(trial, -1)) for trial in range(record["first"], record["first"] + count))
        agree = not repeats or all(arm in (None, there) for arm, there in zip(known, coming, strict=False))
        return coming if agree else None

    @property
    def _made_up(self) -> bool:
        """Whether the current round's plan was made here, of what the results say."""
        epoch = self.state.epoch
        return epoch is not None and bool((self.state.history[epoch].begin or {}).get("evenly"))

    def _handed(self, last: int, record: Record) -> Iterator[Record]:
        """Hand out again, up to a trial, what was handed out in records that are lost."""
        first, now = self.state.handed + 1, self.state.round
        trials = range(first, last + 1)
        if not trials:
            return
        arms = [self.arms.get(self.known.get(trial, -1)) for trial in trials]
        again: Record = {"kind": "ask", "time": record["time"], "first": first, "count": len(trials)}
        rest = [] if now is None else now.plan[now.handed : now.handed + len(trials)].tolist()
        if (
            now is not None
            and len(rest) == len(trials)
            and all(a in (None, b) for a, b in zip(arms, rest, strict=True))
        ):
            yield from self._paid(rest, record)
            yield {**again, "round": now.number, "start": now.handed}
            return
        if now is not None:
            yield {"kind": "close", "time": record["time"], "round": now.number}
        some = self.state.in_race[0]
        plan = [some if arm is None else arm for arm in arms]
        yield from self._paid(plan, record)
        begin = begin_of(self.state, 0, evenly=True)
        here = self.state.rounds
        yield {**again, "round": here, "start": 0, "plan": [[arm, 1] for arm in plan], "begin": begin}
        yield from self._nobodys([trial for trial, arm in zip(trials, arms, strict=True) if arm is None], record, some)

    def _nobodys(self, trials: Sequence[int], record: Record, arm: int) -> Iterator[Record]:
        """Give up trials of which nobody knows the arms."""
        if not trials:
            return
        if self.free:  # so that the refund asks for nothing again
            yield {"kind": "close", "time": record["time"], "round": self.state.rounds - 1}
        names = [id_of(low) if low == high else f"{id_of(low)} to {id_of(high)}" for low, high in as_ranges(trials)]
        said = f"of which arms {', '.join(names)} were: nothing counts for them by their numbers any more"
        self._lose(said if self.free else f"{said}, and what they cost stays spent")
        given_up = {"kind": "fail", "time": record["time"], "arm": arm, "reason": "its arm is lost"}
        yield from ({**given_up, "trial": trial, "refund": self.free} for trial in trials)

    def _paid(self, arms: Sequence[int], record: Record, plan: Sequence[int] = ()) -> Iterator[Record]:
        """Raise the budget where what was handed out needs more: the record that raised it, or a refund, is lost."""
        asked, planned = (sum(map(self.state.price, some)) for some in (arms, plan))
        if asked > self.state.left or planned > self.state.budget * (1 + CENT):
            budget = max(self.state.used + asked, planned)
            self._lose(f"that more was spent than {self.state.budget:.10g}: the budget is {budget:.10g} now")
            yield {"kind": "budget", "time": record["time"], "budget": budget}

    def _arms(self, record: Record) -> Record:
        """Return arms that come and go, numbered as here; what was added in a lost record is not there."""
        added, here = record.get("added", ()), len(self.state.ids)
        there = record.get("first", here)
        self.arms |= {there + i: here + i for i in range(len(added))}
        gone = [self.arms[arm] for arm in record.get("withdrawn", ()) if arm in self.arms]
        return {**record, **({"withdrawn": gone} if gone else {}), **({"first": here} if added else {})}

    def _result(self, one: Record, kind: str) -> Record | None:
        """Return a result with the number of its arm here; None if that is lost, or what it corrects."""
        if one["arm"] not in self.arms or (kind == "amend" and names_of(one)[0] not in self.state.results):
            return None
        return {**one, "arm": self.arms[one["arm"]]}

    def _renumbered(self, record: Record) -> Record:
        """Return a record with the numbers of the new log; KeyError where what it names is lost."""
        kind, new = record["kind"], dict(record)
        if kind == "fail":
            new["arm"] = self.state.arm_of(record["trial"])
        if kind in ("exclude", "restore"):
            there = self.state.results
            new["trials"] = as_ranges(trial for trial in trials_of(record) if trial in there)
            new["ids"] = [id for id in record.get("ids", ()) if id in there]
            new = {key: value for key, value in new.items() if key not in ("trials", "ids") or value}
            if not ("trials" in new or "ids" in new):
                raise KeyError
        if kind in ("close", "end"):
            new["round"] = self.rounds[record["round"]] if kind == "close" else self.state.rounds
        if kind == "undo":
            new["record"] = self.numbers[record["record"]]
        return new


def _size(arms: Any) -> int:
    return int(arms["rows"]) if "at" in arms else len(arms["ids"])
