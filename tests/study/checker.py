"""What a crowd of workers was told, held against the log at the end, as Jepsen does.

Nothing here uses the bookkeeping of studies: the log is read by the rules of docs/log-format.md, written once more.
Workers note each call before it and after it. A call that has no end was cut short: it may have been done, or not.
"""

import json
import os
import time
from collections import Counter
from dataclasses import dataclass, field

TINY = 1e-9


@dataclass(frozen=True)
class Call:
    """One call of a worker: what it gave, and what came back; `answer` is None where nothing did."""

    worker: str
    verb: str
    given: dict
    answer: dict | None
    began: float
    ended: float | None


class Notes:
    """A worker's notes, a line before and a line after each call; what is written outlives the worker."""

    def __init__(self, path, worker):
        self.worker = worker
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def call(self, verb, given, do, answer=lambda found: {}):
        """Make a call, and note what it was and what came of it."""
        self._write({"verb": verb, "given": given, "began": time.monotonic()})
        found = do()
        self._write({"answer": answer(found), "ended": time.monotonic()})
        return found

    def _write(self, line):
        os.write(self.file, json.dumps(line).encode() + b"\n")


def read_notes(path, worker):
    """Return the calls a worker noted."""
    calls = []
    for line in path.read_bytes().splitlines(keepends=True):
        if not line.endswith(b"\n"):
            break
        said = json.loads(line)
        if "verb" in said:
            calls.append(Call(worker, said["verb"], said["given"], None, said["began"], None))
        else:
            last = calls[-1]
            calls[-1] = Call(worker, last.verb, last.given, said["answer"], last.began, said["ended"])
    return calls


@dataclass
class Reading:
    """A log as its format says: trials handed out, who has them, what was told, what is spent."""

    arms: dict = field(default_factory=dict)  # by trial
    owners: dict = field(default_factory=dict)  # by trial: the source of the ask
    told: dict = field(default_factory=dict)  # by trial or id: arm, value, source; the first telling
    gone: set = field(default_factory=set)  # trials that failed or were handed back
    refunded: set = field(default_factory=set)  # those of them whose price came back
    spent: list = field(default_factory=list)  # after each record
    budgets: list = field(default_factory=list)
    wrong: list = field(default_factory=list)
    plan: list = field(default_factory=list)  # of the current round, pull by pull
    length: int = 0  # of it, without what failed and is asked again last
    answered: set = field(default_factory=set)  # slots of it
    slots: dict = field(default_factory=dict)  # by trial: round and slot
    round: int = -1

    def close(self):
        """Forget the current round if every slot of it is answered."""
        if len(self.answered) == len(self.plan):
            self.plan = []


def in_turn(pairs):
    """Return the arms of a plan in the order of handing out: every pair's first before any pair's second."""
    most = max((times for _, times in pairs), default=0)
    return [arm for turn in range(most) for arm, times in pairs if times > turn]


def read_log(records):
    """Return what a log says, by its format alone."""
    first, reading = records[0], Reading()
    price = first["arms"]["cost"] or [1.0] * len(first["arms"]["ids"])
    spent, budget = 0.0, first["budget"]
    for number, record in enumerate(records):
        kind = record["kind"]
        if kind == "ask":
            spent += _ask(reading, number, record, price)
        elif kind == "tell":
            spent += _tell(reading, record, price)
        elif kind == "fail":
            spent -= _fail(reading, record, price)
        elif kind == "close" and record["round"] == reading.round:
            reading.plan = []
        elif kind == "budget":
            budget = max(budget, record["budget"])
        reading.close()
        reading.spent.append(spent)
        reading.budgets.append(budget)
    return reading


def _ask(reading, number, record, price):
    if "plan" in record:
        if reading.plan:
            reading.wrong.append(f"record {number} begins a round while another has open pulls")
        reading.plan, reading.round, reading.answered = in_turn(record["plan"]), record["round"], set()
        reading.length = len(reading.plan)
    elif record["round"] != reading.round:
        reading.wrong.append(f"record {number} asks of round {record['round']}, which is not the current one")
    if record.get("repeats"):
        start, end, more = record["start"], reading.length, record["repeats"]
        reading.plan[start:] = reading.plan[end : end + more] + reading.plan[start:end] + reading.plan[end + more :]
        reading.length += more
    cost = 0.0
    for i in range(record["count"]):
        trial, slot = record["first"] + i, record["start"] + i
        if trial in reading.arms:
            reading.wrong.append(f"trial {trial} was handed out twice")
        if slot >= len(reading.plan):
            reading.wrong.append(f"trial {trial} is beyond the plan of its round")
            continue
        reading.arms[trial], reading.slots[trial] = reading.plan[slot], (reading.round, slot)
        reading.owners[trial] = record.get("source", "")
        cost += price[reading.plan[slot]]
    return cost


def _answer(reading, trial):
    """Take the slot of a trial for answered, and return whether its round is the current one."""
    number, slot = reading.slots[trial]
    current = bool(reading.plan) and number == reading.round
    if current:
        reading.answered.add(slot)
    return current


def _tell(reading, record, price):
    more = 0.0  # what a result took in place of its arm's price, which may have come back before
    for one in record["results"]:
        name = one.get("trial", one.get("id"))
        if isinstance(name, int) and reading.arms.get(name) != one["arm"]:
            reading.wrong.append(f"trial {name} was told as of arm {one['arm']}; it is of {reading.arms.get(name)}")
        elif name not in reading.told:
            reading.told[name] = one["arm"], one["value"], record.get("source", "")
            if isinstance(name, int):
                _answer(reading, name)
            if "cost" in one:
                more += one["cost"] - (name not in reading.refunded) * price[one["arm"]]
    return more


def _fail(reading, record, price):
    trial = record["trial"]
    if trial in reading.told or trial in reading.gone:
        return 0.0
    reading.gone.add(trial)
    current = _answer(reading, trial)
    if not record["refund"]:
        return 0.0
    if current:
        reading.plan.append(reading.arms[trial])
    reading.refunded.add(trial)
    return price[reading.arms[trial]]


def check(records, calls):
    """Return all that is wrong with a log, given what workers were told, a sentence each; nothing if all is well."""
    reading = read_log(records)
    ids = records[0]["arms"]["ids"]
    wrong = list(reading.wrong)
    wrong += [
        f"after record {number} {spent:g} are spent of {budget:g}"
        for number, (spent, budget) in enumerate(zip(reading.spent, reading.budgets, strict=True))
        if spent > budget + TINY
    ]
    wrong += _handed_out(reading, calls, ids)
    wrong += _results(reading, calls)
    wrong += _looks(calls)
    return wrong


def _handed_out(reading, calls, ids):
    """Hold what workers were asked against the log: each trial is one worker's, and its arm the same for all."""
    owners = {}
    for call in calls:
        for name, arm in (call.answer or {}).get("trials", ()):
            trial = int(name.removeprefix("T"))
            if trial not in reading.arms:
                yield f"{call.worker} was handed {name}, which is not in the log"
                continue
            if ids[reading.arms[trial]] != arm:
                yield f"{name} is of arm {ids[reading.arms[trial]]} in the log; {call.worker} was told {arm}"
            if call.verb == "ask":
                if owners.setdefault(trial, call.worker) != call.worker:
                    yield f"{name} was handed to {owners[trial]} and to {call.worker}"
                if reading.owners[trial] != call.worker:
                    yield f"{name} was handed to {call.worker}; the log says to {reading.owners[trial]}"
    asked = Counter(reading.owners.values())
    for worker, trials in Counter(owners.values()).items():
        cut = any(call.worker == worker and call.verb == "ask" and call.answer is None for call in calls)
        if asked[worker] != trials and not cut:
            yield f"the log has {asked[worker]} trials of {worker}, who was handed {trials}"


def _results(reading, calls):
    """Hold what workers told against the log; a worker never tells one value of a trial as another does."""
    made = {}  # by worker, trial and value: whether a call with it came to its end
    new, unsure = Counter(), Counter()
    for call in (call for call in calls if call.verb == "tell"):
        mine = [(call.worker, int(name.removeprefix("T")), value) for name, value in call.given["values"]]
        low, high = _new(reading, made, mine)
        for one in mine:
            made[one] = made.get(one, False) or call.answer is not None
        if call.answer is None:
            unsure[call.worker] += len(mine)
            continue
        new[call.worker] += call.answer["new"]
        lost = [trial for _, trial, _ in mine if trial not in reading.told]
        if lost:
            yield f"{call.worker} told trial {lost[0]}, which is not in the log"
        if not low <= call.answer["new"] <= high:
            yield f"{call.worker} was told that {call.answer['new']} of {mine} are new; the log counts {high}"
    told = Counter(source for _, _, source in reading.told.values())
    for trial, (_, value, source) in reading.told.items():
        if (source, trial, value) not in made:
            yield f"the log has {value!r} for trial {trial} by {source!r}, which nobody told"
    for worker in told | new:
        if not new[worker] <= told[worker] <= new[worker] + unsure[worker]:
            yield (
                f"{worker} was told of {new[worker]} new results, and {unsure[worker]} more may be; "
                f"the log counts {told[worker]}"
            )


def _new(reading, made, mine):
    """Return how many results of a call are new, at least and at most: the log has them, and of no call before."""
    there = [one for one in mine if reading.told.get(one[1], (None,))[1:] == (one[2], one[0])]
    return sum(one not in made for one in there), sum(not made.get(one, False) for one in there)


def _looks(calls):
    """Hold what workers saw against time: whatever was acknowledged before a look began is in it."""
    looks = [call for call in calls if call.verb == "look" and call.answer is not None]
    tells = [call for call in calls if call.verb == "tell" and call.answer is not None]
    for look in looks:
        before = sum(call.answer["new"] for call in tells if call.ended < look.began)
        if look.answer["total"] < before:
            yield f"{look.worker} saw {look.answer['total']} results when {before} were acknowledged"
    seen = Counter()
    for look in sorted(looks, key=lambda look: look.began):
        if look.answer["records"] < seen[look.worker]:
            yield f"{look.worker} saw {seen[look.worker]} records, and later {look.answer['records']}"
        seen[look.worker] = look.answer["records"]
