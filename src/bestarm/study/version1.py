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
from bestarm.study.limits import said
from bestarm.study.plans import affordable, begin_of
from bestarm.study.results import naming
from bestarm.study.rounds import Pairs, spread
from bestarm.study.state import StudyState
from bestarm.study.storage import Record

LOST = "the plan of version 1 could not be computed again"


def apply(state: StudyState, records: Sequence[Record]) -> list[Record]:
    """Take a whole log of version 1 in, upgraded or not, and return the questions to pin, as in a record `upgrade`."""
    fold.check_mark(state, records)
    reading = OldReading(state)
    for _ in reading.all(records):
        pass
    state.recount()
    return reading.questions


def replay(state: StudyState, whole: Sequence[Record]) -> Iterator[tuple[Record, StudyState]]:
    """Give the records of a log of version 1 one by one, each with the state after it."""
    for record in OldReading(state).all(whole):
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

    def all(self, records: Sequence[Record]) -> Iterator[Record]:
        """Take a whole log in, and give its records but for `upgrade`."""
        state, whole = self.state, list(records)
        record: Any = {}
        end, self.pinned = _pinned(whole)
        try:
            self.look_ahead(whole[:end])
            for record in whole[:end]:
                self.take(record)
                state.records += 1
                yield record
        except fold.MISREAD as error:
            place = getattr(records, "place", "a log")
            raise StorageError(f"{place}: record {state.records} {fold.trouble(record, error)}") from error
        if end < len(whole):
            state.records, state.version = end + 1, int(whole[end]["version"])
        for record in whole[end + 1 :]:
            fold.apply(state, [record])
            yield record

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
            gone = {"kind": "fail", "time": record["time"], "reason": LOST, "refund": True}
            self._give(gone, trial=first + slot - start)

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
        mine = [trial for trial in (self._trial(one["round"], slot) for slot in one.get("slots", ())) if trial]
        if not mine:
            return {"id": str(one["id"]), "arm": one["arm"], **said_before(one)}
        return {**naming(mine), "arm": one["arm"], **said_before(one)}

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


def said_before(one: Record) -> Record:
    """Return what came out by a result of version 1, as version 2 has it."""
    return (
        said(1, one["value"], 0.0) if one.get("value") is not None else said(one["count"], one["sum"], one["squares"])
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
