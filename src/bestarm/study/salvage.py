"""What is whole of a damaged study, written into a new log; results whose trials are lost come along as extras."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from bestarm.errors import InputError, StorageError
from bestarm.study import fold
from bestarm.study.plans import affordable, begin_of
from bestarm.study.results import names_of
from bestarm.study.rounds import as_ranges, ranges
from bestarm.study.state import VERSION, StudyState
from bestarm.study.storage import Record, open_storage
from bestarm.study.trials import id_of

LOST = "salvaged-"  # begins the ids of results whose trials are lost


def salvage(name: str, storage: Any, to: Any, as_: str | None = None) -> list[str]:
    """Write what is whole of a study into a new log, and return what was left out and why, a sentence each."""
    place, target, new = open_storage(storage), open_storage(to), as_ or name
    found = place.salvage(name)
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
    saving = Saving(StudyState(folder=place.folder), old=first.get("version") == 1)
    whole = [*saving.all(found)]
    if first.get("version") == 1:
        saving.left_out.append("what was asked in version 1: its results are kept, but count for nothing spent")
    target.create(new, whole[0])
    target.append(new, whole[1:])
    return saving.left_out


@dataclass
class Saving:
    """Records taken over one by one, with the numbers they have in the new log."""

    state: StudyState
    old: bool = False  # of version 1, so far
    left_out: list[str] = field(default_factory=list)
    trials: dict[int, int] = field(default_factory=dict)  # numbers here, by those there
    asked: dict[int, int] = field(default_factory=dict)  # the first trial of an ask there, by the one here
    rounds: dict[int, int] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)  # of records
    next_trial: int = 1  # there
    arms: dict[int, int] = field(default_factory=dict)  # numbers here, by those there

    def all(self, found: Iterable[tuple[int, Record | str]]) -> Iterable[Record]:
        """Give the records of the new log."""
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
                if kept["kind"] == "ask":
                    there = self.asked[kept["first"]]
                    self.trials.update({there + i: kept["first"] + i for i in range(kept["count"])})
                self.numbers[number] = self.state.records
                self.state.records += 1
                self.state.recount()
                yield kept

    def _lose(self, why: str) -> None:
        self.left_out.append(why)

    def _kept(self, number: int, record: Record) -> list[Record]:
        """Return what goes into the new log in place of a record."""
        kind = record["kind"]
        if self.old:
            return self._of_version_1(number, record)
        if kind == "create":
            self.arms = {arm: arm for arm in range(_size(record["arms"]))}
        if kind == "arms":
            return [self._arms(record)]
        if kind == "ask":
            return self._ask(number, record)
        if kind in ("tell", "amend"):
            results = [new for new in (self._result(one, kind) for one in record["results"]) if new]
            if len(results) < len(record["results"]):
                self._lose(
                    f"record {number}: {len(record['results']) - len(results)} results have lost their trials or arms"
                )
            return [{**record, "results": results}] if results else []
        if kind in ("fail", "hand-back", "exclude", "restore", "takeover", "close", "undo", "end"):
            try:
                return [self._renumbered(record)]
            except KeyError:
                self._lose(f"record {number}, {kind!r}, is about something that is lost")
                return []
        return [record]

    def _of_version_1(self, number: int, record: Record) -> list[Record]:
        """Version 1 begins anew in version 2, with all its results as extras."""
        if record["kind"] == "create":
            return [{**record, "version": VERSION}]
        if record["kind"] == "upgrade":
            self.old = False
            return []
        if record["kind"] == "tell":
            return [{**record, "results": [{"id": self._extra(str(one["id"])), **_said(one), "arm": one["arm"]}
                                           for one in record["results"]]}]  # fmt: skip
        return [record] if record["kind"] in ("arms", "budget") else []

    def _ask(self, number: int, record: Record) -> list[Record]:
        round_, start, first = record["round"], record["start"], record["first"]
        lost = first - self.next_trial
        self.next_trial = first + record["count"]
        begins = "plan" in record
        now = self.state.round
        before: list[Record] = []
        if begins:
            if any(arm not in self.arms for arm, _ in record["plan"]):
                self._lose(f"record {number}: its plan has arms that are lost")
                return []
            record = {**record, "plan": [[self.arms[arm], times] for arm, times in record["plan"]]}
            if now is not None:
                before = [{"kind": "close", "time": record["time"], "round": now.number}]
            self.rounds[round_] = self.state.rounds
            if self.state.epoch is None and "begin" not in record:
                record = {**record, "begin": begin_of(self.state, max(1, affordable(self.state)))}
        elif now is None or self.rounds.get(round_) != now.number or start - now.handed > lost or start < now.handed:
            self._lose(f"record {number}: the plan of its {record['count']} trials is lost")
            return []
        gap = 0 if begins or now is None else start - now.handed
        new = self.state.handed + 1
        if gap:  # the plan is known, so the ask that is lost can be written again
            again = {"kind": "ask", "time": record["time"], "round": self.rounds[round_], "start": start - gap}
            before.append({**again, "first": new, "count": gap})
        self.asked |= {new: first - gap, new + gap: first}
        return [*before, {**record, "round": self.rounds[round_], "first": new + gap}]

    def _arms(self, record: Record) -> Record:
        """Return arms that come and go, numbered as here; what was added in a lost record is not there."""
        added, here = record.get("added", ()), len(self.state.ids)
        there = record.get("first", here)
        self.arms |= {there + i: here + i for i in range(len(added))}
        gone = [self.arms[arm] for arm in record.get("withdrawn", ()) if arm in self.arms]
        return {**record, **({"withdrawn": gone} if gone else {}), **({"first": here} if added else {})}

    def _result(self, one: Record, kind: str) -> Record | None:
        """Return a result with its numbers in the new log, as an extra where its trial is lost; None if its arm is."""
        if one["arm"] not in self.arms:
            return None
        one = {**one, "arm": self.arms[one["arm"]]}
        names = names_of(one)
        if "id" in one:
            return one if kind == "tell" or one["id"] in self.state.results else None
        if all(trial in self.trials for trial in names):
            mine = [self.trials[trial] for trial in names]
            if kind == "amend" and mine[0] not in self.state.results:
                return None
            where: Record = {"trial": mine[0]} if "trial" in one else {"trials": as_ranges(mine)}
        else:
            id = self._extra(id_of(names[0]))
            if kind == "amend" and id not in self.state.results:
                return None
            where = {"id": id}
        return {**where, **{key: value for key, value in one.items() if key not in ("trial", "trials")}}

    @staticmethod
    def _extra(id: str) -> str:
        return f"{LOST}{id}"

    def _renumbered(self, record: Record) -> Record:
        """Return a record with the numbers of the new log; KeyError where what it names is lost."""
        new = dict(record)
        if "trial" in record:
            new["trial"] = self.trials[record["trial"]]
        if "trials" in record:
            known = {trial: self._name(trial) for trial in ranges(record["trials"])}
            new["trials"] = as_ranges(name for name in known.values() if isinstance(name, int))
            extra = [name for name in known.values() if isinstance(name, str)]
            if extra:
                new["ids"] = [*record.get("ids", ()), *extra]
        if record["kind"] in ("close", "end"):
            new["round"] = self.rounds[record["round"]] if record["kind"] == "close" else self.state.rounds
        if record["kind"] == "undo":
            new["record"] = self.numbers[record["record"]]
        return new

    def _name(self, trial: int) -> int | str:
        if trial in self.trials:
            return self.trials[trial]
        id = self._extra(id_of(trial))
        if id not in self.state.results:
            raise KeyError(trial)
        return id


def _said(one: Record) -> Record:
    if one.get("value") is not None:
        return {"value": one["value"]}
    return {"n": one["count"], "sum": one["sum"], "squares": one["squares"]}


def _size(arms: Any) -> int:
    return int(arms["rows"]) if "at" in arms else len(arms["ids"])
