"""What a log says: records in, the state of a study out. Pure bookkeeping; nothing here reads a clock or a disk.

What counts for what:

- A result counts once, by its trial; what comes after its round was judged or abandoned is known (`known`, and so every
  recommendation) but not told to the policy, which has moved on.
- A trial that failed with a refund is put at the end of its round, or gives its price back if that round is over;
  without one its price is lost. A value that comes after all is kept as a late one.
- A round nobody answered teaches nothing: the policy is asked again, with what is left of the budget.
- Arms withdrawn or added start the policy anew on the arms present with what is left; so does a larger budget when
  nothing is handed out yet or the study is over, and otherwise when the policy comes to its end.
- No plan costs more than what is left, and what is handed out is paid for, so the budget is never exceeded.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

import numpy as np

from bestarm import spec
from bestarm.core import Problem, Pulls, Tally, Totals
from bestarm.errors import BudgetError, StorageError
from bestarm.policies.auto import Auto
from bestarm.policies.batched import Batched
from bestarm.rewards import Rewards
from bestarm.study.storage import Record

VERSION = 1
LARGEST = 10**8  # pulls: a plan names them one by one
NUMBERS = (int, float)
HUGE = 1e150  # its square is a number too


@dataclass
class Round:
    """One question of the policy: its pulls one by one, how many are handed out, and what came back."""

    number: int
    plan: list[int]  # arms, by position among all arms ever
    handed: int = 0
    open: set[int] = field(default_factory=set)  # slots not yet told or given up

    def __post_init__(self) -> None:
        self.open = set(range(len(self.plan)))

    def again(self, slot: int) -> None:
        """Put the arm of a slot that failed at the end of the plan."""
        self.plan.append(self.plan[slot])
        self.open.add(len(self.plan) - 1)


@dataclass
class StudyState:
    """A study as its log tells it, kept up to date record by record."""

    records: int = 0
    mark: Any = None  # which log this is: one made anew under the same name has another
    first: Record = field(default_factory=dict)  # what the study is
    name: str = ""
    ids: list[str] = field(default_factory=list)
    features: list[list[float]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    cost: list[float] | None = None
    present: list[bool] = field(default_factory=list)
    budget: float = 0
    used: float = 0.0  # of the budget, by what was handed out and not refunded
    options: dict[str, Any] = field(default_factory=dict)
    policy: Any = None
    rewards: Rewards | None = None
    noise_variance: float | None = None
    seed: int = 0
    counts: list[float] = field(default_factory=list)  # of all told results, by arm
    sums: list[float] = field(default_factory=list)  # as told, not turned round
    squares: list[float] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    failures: list[Record] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    epoch_arms: list[int] = field(default_factory=list)
    runner: Any = None
    state: Any = None
    answers: dict[int, list[float]] = field(default_factory=dict)  # of the round: count, sum, squares by arm
    round: Round | None = None
    history: list[Round] = field(default_factory=list)  # every round, by number
    rounds: int = 0
    planned: float = 0  # the budget the policy last started with
    closed: int = 0

    def apply(self, records: Iterable[Record]) -> None:
        """Fold more records in."""
        place = getattr(records, "place", f"study {self.name!r}")
        mark = getattr(records, "mark", self.mark)
        if self.records and mark != self.mark:
            raise StorageError(f"{place}: the study read before was deleted, and this is another of its name; load it")
        self.mark = mark
        kinds = LATER if self.records else FIRST
        record: Record = {}
        try:
            for record in records:
                kinds[record["kind"]](self, record)
                kinds = LATER
                self.records += 1
        except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise StorageError(f"{place}: record {self.records} {_trouble(record, kinds, error)}") from error

    # what each kind of record does

    def _create(self, record: Record) -> None:
        version = record["version"]
        if not isinstance(version, int) or version > VERSION:
            raise ValueError(
                f"this study was written by a newer bestarm (log version {version}); this one reads up to {VERSION}"
            )
        if not isinstance(record["time"], NUMBERS):
            raise TypeError(f"a time is expected; given {record['time']!r}")
        self.first, arms = record, record["arms"]
        self.name, self.ids, self.names = record["name"], list(arms["ids"]), list(arms["names"])
        self.features, self.present = [list(row) for row in arms["features"]], [True] * len(self.ids)
        self.cost = None if arms.get("cost") is None else [_positive(cost) for cost in arms["cost"]]
        self.budget, self.seed = _positive(record["budget"]), record["seed"]
        self.options = {"batch": None, "rounds": None, "refund": True, "extra": True, **record["options"]}
        self.noise_variance = record.get("noise_variance")
        if self.noise_variance is not None and not 0 <= self.noise_variance < np.inf:
            raise ValueError(f"a variance is expected; given {self.noise_variance!r}")
        if not all(isinstance(text, str) for text in (self.name, *self.ids, *self.names)):
            raise TypeError("names must be text")
        if len(set(self.ids)) != len(self.features) or (self.cost is not None and len(self.cost) != len(self.ids)):
            raise ValueError("ids, features and costs of the arms do not fit together")
        if not all(isinstance(self.options[key] or 1, int) for key in ("batch", "rounds")):
            raise TypeError("a batch and rounds must be whole numbers")
        self.policy = spec.from_dict(record["policy"])
        inner = getattr(self.policy, "policy", self.policy)
        model = getattr(inner, "model", None) or spec.from_dict(record["model"])
        self.rewards = Rewards(model, {"minimize": True, "maximize": False}[record["direction"]])
        self.counts, self.sums, self.squares = ([0.0] * len(self.ids) for _ in range(3))
        self._begin()

    def _ask(self, record: Record) -> None:
        _stamped(record)
        here, start, stop = self.round, record["start"], record["stop"]
        if here is None or record["round"] != here.number or start != here.handed or not start < stop <= len(here.plan):
            raise ValueError("the trials asked for are not those that come next")
        self.used += stop - start if self.cost is None else sum(self.cost[arm] for arm in here.plan[start:stop])
        here.handed = stop

    def _tell(self, record: Record) -> None:
        _stamped(record)
        seen, arms = self.seen, len(self.ids)
        for result in record["results"]:
            arm, value = result["arm"], result.get("value")
            if type(arm) is not int or not 0 <= arm < arms:
                raise ValueError(f"there is no arm {arm!r}")
            if value is None:
                self._tell_sum(result)
                continue
            name = result["id"]
            if name in seen:
                continue
            if type(name) is not str or not -HUGE < value < HUGE:
                raise ValueError(f"{name!r} and {value!r} are no result")
            seen.add(name)
            self._count(result, arm, 1, value, value * value)
        self._close()

    def _tell_sum(self, result: Record) -> None:
        names = slot_names(result)
        count, total, squares = result["count"], result["sum"], result["squares"]
        if not 0 < count < HUGE or not -HUGE < total < HUGE or not 0 <= squares < HUGE:
            raise ValueError(f"{count!r} results with the sum {total!r} and squares {squares!r} cannot be")
        if self.seen.isdisjoint(names):  # an observation counts once, alone or within a sum
            self.seen.update(names)
            self._count(result, result["arm"], count, total, squares)

    def _count(self, result: Record, arm: int, count: int, total: float, squares: float) -> None:
        """Count a result, and towards the open round too if it answers one of its slots."""
        self.counts[arm] += count
        self.sums[arm] += total
        self.squares[arm] += squares
        number = result.get("round")
        if number is None:
            return
        asked, answered = self.round, False
        if asked is None or number != asked.number:
            asked = self._round(number)
        for slot in result["slots"]:
            if slot in asked.open and slot < asked.handed:
                asked.open.remove(slot)
                answered = True
        if answered and asked is self.round:
            answer = self.answers.setdefault(arm, [0, 0.0, 0.0])
            answer[0] += count
            answer[1] += total
            answer[2] += squares

    def _fail(self, record: Record) -> None:
        _stamped(record)
        record["reason"]
        name, slot, asked = record["id"], record["slot"], self._round(record["round"])
        if name in self.seen or name in self.failed:
            return
        self.failed.add(name)  # not seen: a value that comes later all the same is kept
        self.failures.append(record)
        if slot not in asked.open or slot >= asked.handed:
            return
        asked.open.discard(slot)
        if record["refund"]:
            self.used -= self.price(asked.plan[slot])
            if asked is self.round:
                asked.again(slot)
        self._close()

    def _raise(self, record: Record) -> None:
        self.budget = max(self.budget, _positive(record["budget"]))  # of two at once the larger one holds
        if self.round is None or not self.used:
            self._begin()

    def _arms(self, record: Record) -> None:
        before = list(self.present)
        for arm in record.get("withdrawn", ()):
            self.present[arm] = sum(self.present) == 1 and self.present[arm]  # the last one stays
        for arm in record.get("added", ()):
            if arm["id"] in self.ids:  # somebody else was faster
                continue
            self.ids.append(arm["id"])
            self.features.append(list(arm["features"]))
            self.present.append(True)
            if self.cost is not None:
                self.cost.append(_positive(arm["cost"]))
            for numbers in (self.counts, self.sums, self.squares):
                numbers.append(0.0)
        if self.present != before:
            self._begin()

    def _end_round(self, record: Record) -> None:
        if self.round is not None and record["round"] == self.round.number:
            self._judge()

    # the policy's side

    def price(self, arm: int) -> float:
        """Return what one pull of an arm takes from the budget."""
        return 1.0 if self.cost is None else self.cost[arm]

    def _round(self, number: int) -> Round:
        if number < 0:
            raise ValueError(f"there is no round {number}")
        return self.history[number]

    def _begin(self) -> None:
        """Start the policy on the arms there are now, with what is left of the budget."""
        arms = [arm for arm, there in enumerate(self.present) if there]
        if arms != self.epoch_arms:
            self.epoch_arms, self.state = arms, None
        self.answers, self.round, self.planned = {}, None, self.budget
        pulls = int((self.budget - self.used) / float(np.mean([self.price(arm) for arm in arms])) + 1e-9)
        if pulls > LARGEST:
            raise ValueError(f"a budget of {pulls:,} pulls is beyond what a study can plan, {LARGEST:,}")
        if pulls < 1:
            return
        problem = Problem(np.array([self.features[arm] for arm in arms], dtype=np.float64), pulls, self.noise_variance)
        self.runner = self._planner(pulls)
        try:
            self.state = self.runner.start(problem)
        except BudgetError:  # what is left is too little for this policy
            return
        self._plan()

    def _planner(self, pulls: int) -> Any:
        """Return the policy as it plans `pulls` pulls in batches, or in the rounds that are left."""
        size, rounds = self.options["batch"], self.options["rounds"]
        if not isinstance(self.policy, Auto):
            return self.policy if size is None else Batched(self.policy, size)
        if self.policy.rounds is not None or (rounds is None and (size or 1) == 1):
            return self.policy
        if rounds is not None:
            begun = sum(one.handed > 0 for one in self.history)
            return replace(self.policy, rounds=rounds - begun if begun < rounds else rounds)
        first = max(size, ceil(self.policy.share * pulls))
        return replace(self.policy, rounds=min(1 + ceil(max(pulls - first, 0) / size), self.policy.steps))

    def _plan(self) -> None:
        """Ask the policy its next question; the same log gives the same question."""
        self.answers, self.round = {}, None
        rng = np.random.default_rng([self.seed, self.rounds])
        pulls = self.runner.ask(self.state, rng)
        if pulls is None:
            if self.budget > self.planned:  # raised meanwhile
                self._begin()
            return
        plan = self._spread(pulls)
        if not plan and pulls.total:  # the money is gone
            return
        self.round = Round(self.rounds, plan)
        self.history.append(self.round)
        self.rounds += 1
        self._close()  # at once, if it is empty

    def _spread(self, pulls: Pulls) -> list[int]:
        """Return pulls one by one, every arm's first before any arm's second, within what is left of the budget."""
        times = np.asarray(pulls.times, dtype=np.int64)
        places = np.repeat(np.arange(len(times)), times)
        turns = np.arange(len(places)) - np.repeat(np.cumsum(times) - times, times)
        arms = np.array(self.epoch_arms)[np.asarray(pulls.arms)[places[np.lexsort((places, turns))]]]
        spent = np.cumsum(np.ones(len(arms)) if self.cost is None else np.array(self.cost)[arms])
        paid = int(np.searchsorted(spent, self.budget - self.used + 1e-9, side="right"))
        return [int(arm) for arm in arms[:paid].tolist()]

    def _close(self) -> None:
        """Judge the round once every slot of it is answered or given up."""
        if self.round is not None and not self.round.open:
            self._judge()

    def _judge(self) -> None:
        """Tell the policy what came back, and ask it again; a round without any answer is asked again."""
        assert self.rewards is not None
        assert self.round is not None
        where = {arm: place for place, arm in enumerate(self.epoch_arms)}
        mine = sorted((where[arm], *answer) for arm, answer in self.answers.items() if arm in where)
        if mine or not self.round.plan:
            arms, count, sums, squares = np.array(mine, dtype=np.float64).reshape(-1, 4).T
            sums, squares = self.rewards.totals(count, sums, squares)
            pulls = Pulls(arms.astype(np.int64), count.astype(np.int64))
            self.state = self.runner.tell(self.state, pulls, Totals(sums, squares))
        self.closed += 1
        self._plan()

    def known(self) -> Tally:
        """Return all told results by arm, turned so that larger is better."""
        assert self.rewards is not None
        counts, sums, squares = (np.array(numbers) for numbers in (self.counts, self.sums, self.squares))
        return Tally(counts, *self.rewards.totals(counts, sums, squares))


def slot_names(result: Record) -> list[str]:
    """Return the ids of the observations a result is made of."""
    return [f"{result['round']}.{slot}" for slot in result["slots"]] if "slots" in result else [result["id"]]


def _stamped(record: Record) -> None:
    if not isinstance(record["time"], NUMBERS) or not isinstance(record["source"], str):
        raise TypeError("a time and a source are expected")


def _positive(number: Any) -> float:
    if not 0 < number < np.inf:
        raise ValueError(f"a positive number is expected; given {number!r}")
    return number  # type: ignore[no-any-return]


def _trouble(record: Record, kinds: Any, error: Exception) -> str:
    """Return what is wrong with a record, as the rest of a sentence."""
    kind = record.get("kind") if isinstance(record, dict) else None
    if not isinstance(kind, str) or kind not in kinds:
        return f"is of an unknown kind, {kind!r}; {', '.join(kinds)} is expected"
    why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return f"cannot be read: {why or type(error).__name__}"


FIRST: dict[str, Callable[[StudyState, Record], None]] = {"create": StudyState._create}
LATER: dict[str, Callable[[StudyState, Record], None]] = {
    "ask": StudyState._ask,
    "tell": StudyState._tell,
    "fail": StudyState._fail,
    "budget": StudyState._raise,
    "arms": StudyState._arms,
    "close": StudyState._end_round,
}
