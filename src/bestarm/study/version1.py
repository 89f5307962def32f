"""Logs of version 1, read as if they were of version 2.

Version 1 kept which slots of a round were handed out, not their arms: those it computed again, by running the policy.
What was told or failed names its arm, and overrules whatever would be computed today; only trials that are still out
rest on the policy, until the record `upgrade` pins them.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from bestarm.errors import BestArmError, StorageError
from bestarm.study import fold
from bestarm.study.driver import Driver, PolicyFailed
from bestarm.study.plans import affordable, begin_of
from bestarm.study.rounds import Pairs, as_ranges, spread
from bestarm.study.state import VERSION, StudyState
from bestarm.study.storage import Record

LOST = "the plan of version 1 could not be computed again"


def apply(state: StudyState, records: Sequence[Record]) -> list[Record]:
    """Take a whole log of version 1 in, upgraded or not, and return the questions to pin, as in a record `upgrade`."""
    place = getattr(records, "place", "a log")
    whole = list(records)
    fold.check_mark(state, records)
    end, pinned = _pinned(whole)
    record: Any = {}
    try:
        reading = OldReading(state, pinned)
        reading.look_ahead(whole[:end])
        for state.records, record in enumerate(whole[:end]):
            reading.take(record)
        state.records = end
    except fold.MISREAD as error:
        raise StorageError(f"{place}: record {state.records} {fold.trouble(record, error)}") from error
    if end < len(whole):
        state.records, state.version = end + 1, int(whole[end]["version"])
        fold.apply(state, whole[end + 1 :])
    state.recount()
    return reading.questions


def replay(state: StudyState, whole: Sequence[Record]) -> Iterator[tuple[Record, StudyState]]:
    """Give the records of a log of version 1 one by one, each with the state after it."""
    end, pinned = _pinned(whole)
    reading = OldReading(state, pinned)
    reading.look_ahead(whole[:end])
    for record in whole[:end]:
        reading.take(record)
        state.records += 1
        yield record, state
    state.version, state.records = VERSION if end < len(whole) else 1, min(end + 1, len(whole))
    for record in whole[end + 1 :]:
        fold.apply(state, [record])
        yield record, state


def _pinned(whole: Sequence[Record]) -> tuple[int, list[Record] | None]:
    """Return where a log of version 1 goes on in version 2, and the questions written there."""
    for number, record in enumerate(whole):
        if isinstance(record, dict) and record.get("kind") == "upgrade":
            return number, record["questions"]
    return len(whole), None


@dataclass
class OldReading:
    """Records of version 1 made into those of version 2, one after the other."""

    state: StudyState
    pinned: list[Record] | None = None
    questions: list[Record] = field(default_factory=list)  # what was asked, round by round
    driver: Driver = field(default_factory=Driver)
    arms: dict[tuple[int, int], int] = field(default_factory=dict)  # of slots that were told or failed
    length: Counter[int] = field(default_factory=Counter)  # least length of the plans, by round
    begun: tuple[int, float] = (0, 0.0)  # pulls and budget, when the policy was started
    failed: bool = False  # the policy: from then on nothing is computed

    def look_ahead(self, records: Sequence[Record]) -> None:
        """Note what the records say of arms and of the lengths of plans."""
        refunded: dict[int, set[int]] = {}
        for record in records:
            for one in record["results"] if record["kind"] == "tell" else [record] if record["kind"] == "fail" else ():
                slots = one.get("slots", [one["slot"]] if "slot" in one else [])
                self.arms.update({(one["round"], slot): one["arm"] for slot in slots})
            if record["kind"] == "fail" and record["refund"]:
                refunded.setdefault(record["round"], set()).add(record["slot"])
            elif record["kind"] == "ask":
                number = record["round"]
                self.length[number] = max(self.length[number], record["stop"] - len(refunded.get(number, ())))

    def take(self, record: Record) -> None:
        """Take one record in."""
        epoch = self.state.epoch
        KINDS[record["kind"]](self, record)
        if self.state.epoch is None and (epoch is not None or record["kind"] in ("create", "arms", "budget")):
            self.begun = affordable(self.state), self.state.budget

    def _give(self, record: Record, **changes: Any) -> None:
        fold.take(self.state, {**record, **changes})

    def _ask(self, record: Record) -> None:
        number, start, count = record["round"], record["start"], record["stop"] - record["start"]
        plan: Record = {}
        lost: list[int] = []
        if number not in self.state.old_rounds:
            if self.state.round is not None:  # longer as computed here than it was
                self._give({"kind": "close", "round": self.state.round.number})
            plan, lost = self._question(number)
            self.state.old_rounds[number] = self.state.rounds
            self.questions.append(plan)
        first, mine = self.state.handed + 1, self.state.old_rounds[number]
        self._give(record, round=mine, start=start, count=count, first=first, **plan)
        for slot in (slot for slot in lost if start <= slot < start + count):
            gone = {
                "kind": "fail",
                "trial": first + slot - start,
                "reason": LOST,
                "refund": True,
                "time": record["time"],
            }
            self._give(gone)

    def _question(self, number: int) -> tuple[Record, list[int]]:
        """Return the plan of a round, and its slots of which nobody knows the arm."""
        if self.pinned is not None:
            mine = self.pinned[len(self.questions)]
            return mine, mine.get("lost", [])
        state = self.state
        state.skipped = number - state.rounds
        found: Record = {} if self.failed else self._computed()
        plan = list(spread(found.get("plan", ())))
        lost = [slot for slot in range(len(plan), self.length[number]) if (number, slot) not in self.arms]
        plan += [state.in_race[0]] * (self.length[number] - len(plan))
        plan = [self.arms.get((number, slot), arm) for slot, arm in enumerate(plan)]
        same = plan == list(spread(found.get("plan", ())))
        pairs: Pairs = found["plan"] if same else [[arm, 1] for arm in plan]
        begin = found.get("begin")
        if begin is None and (state.epoch is None or self.failed):
            begin = begin_of(state, max(1, self.begun[0]), evenly=self.failed)
        asked: Record = {"plan": pairs} | ({} if begin is None else {"begin": begin}) | ({"lost": lost} if lost else {})
        return asked, lost

    def _computed(self) -> Record:
        """Return what the policy asks now, nothing where it cannot."""
        try:
            found = self.driver.question(self.state, None, self.begun if self.state.epoch is None else None)
        except (BestArmError, PolicyFailed):
            self.failed = True
            return {}
        return found if found["kind"] == "ask" else {}

    def _tell(self, record: Record) -> None:
        results = [self._result(one) for one in record["results"]]
        self._give(record, results=[one for one in results if one is not None], source=str(record.get("source", "")))

    def _result(self, one: Record) -> Record | None:
        """Return a result of version 1 as version 2 has it, None for one whose trial was told before."""
        said: dict[str, Any] = {"value": one["value"]} if one.get("value") is not None else _sum(one)
        mine = [trial for trial in (self._trial(one["round"], slot) for slot in one.get("slots", ())) if trial]
        if not mine:
            return {"id": str(one["id"]), "arm": one["arm"]} | said
        where: dict[str, Any] = {"trial": mine[0]} if len(mine) == 1 else {"trials": as_ranges(mine)}
        return {**where, "arm": one["arm"], **said}

    def _trial(self, number: int, slot: int) -> int | None:
        """Return the number of a trial, None if it was never handed out."""
        if number not in self.state.old_rounds:
            return None
        asked = self.state.history[self.state.old_rounds[number]]
        return asked.trials[slot] if 0 <= slot < asked.handed else None

    def _fail(self, record: Record) -> None:
        trial = self._trial(record["round"], record["slot"])
        if trial is not None:
            self._give(record, trial=trial)

    def _close(self, record: Record) -> None:
        if record["round"] in self.state.old_rounds:
            self._give(record, round=self.state.old_rounds[record["round"]])


def _sum(one: Record) -> dict[str, Any]:
    whole = one["sum"] == one["squares"] and one["sum"] == int(one["sum"]) and 0 <= one["sum"] <= one["count"]
    return {"n": one["count"]} | (
        {"successes": one["sum"]} if whole else {"sum": one["sum"], "squares": one["squares"]}
    )


KINDS: dict[str, Callable[[OldReading, Record], None]] = {
    "create": OldReading._give,
    "ask": OldReading._ask,
    "tell": OldReading._tell,
    "fail": OldReading._fail,
    "budget": OldReading._give,
    "arms": OldReading._give,
    "close": OldReading._close,
}
