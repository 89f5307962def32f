"""What a log says: records in, the state of a study out. Pure bookkeeping; nothing here reads a clock or a disk."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bestarm import spec
from bestarm.core import Problem, Pulls, Tally, Totals
from bestarm.errors import StorageError
from bestarm.policies.batched import Batched
from bestarm.rewards import Rewards
from bestarm.study.storage import Record

VERSION = 1


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
        self.open.discard(slot)
        self.plan.append(self.plan[slot])
        self.open.add(len(self.plan) - 1)


@dataclass
class StudyState:
    """A study as its log tells it, kept up to date record by record."""

    records: int = 0
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
    counts: Any = None  # of all told results, by arm
    sums: Any = None  # as told, not turned round
    squares: Any = None
    seen: set[str] = field(default_factory=set)
    failures: list[Record] = field(default_factory=list)
    epoch_arms: list[int] = field(default_factory=list)
    runner: Any = None
    state: Any = None
    answers: list[tuple[int, int, float, float]] = field(default_factory=list)
    round: Round | None = None
    rounds: int = 0
    closed: int = 0

    def apply(self, records: Iterable[Record]) -> None:
        """Fold more records in."""
        for record in records:
            kind = record.get("kind")
            if kind not in APPLY:
                raise StorageError(f"record {self.records} of study {self.name!r} is of an unknown kind, {kind!r}")
            APPLY[kind](self, record)
            self.records += 1

    # what each kind of record does

    def _create(self, record: Record) -> None:
        version = record.get("version")
        if not isinstance(version, int) or version > VERSION:
            raise StorageError(
                f"this study was written by a newer bestarm (log version {version}); this one reads up to {VERSION}"
            )
        self.name, self.ids = record["name"], list(record["arms"]["ids"])
        self.features, self.names = [list(row) for row in record["arms"]["features"]], list(record["arms"]["names"])
        self.cost = record["arms"].get("cost")
        self.present = [True] * len(self.ids)
        self.budget, self.seed = record["budget"], record["seed"]
        self.options, self.noise_variance = dict(record["options"]), record.get("noise_variance")
        self.policy = spec.from_dict(record["policy"])
        inner = getattr(self.policy, "policy", self.policy)
        model = getattr(inner, "model", None) or spec.from_dict(record["model"])
        self.rewards = Rewards(model, record["direction"] == "minimize")
        self.counts, self.sums, self.squares = (np.zeros(len(self.ids)) for _ in range(3))
        self._begin()

    def _ask(self, record: Record) -> None:
        if self.round is not None and record["round"] == self.round.number:
            for slot in range(record["start"], record["stop"]):
                self.used += self.price(self.round.plan[slot])
            self.round.handed = max(self.round.handed, record["stop"])

    def _tell(self, record: Record) -> None:
        for result in record["results"]:
            if result["id"] in self.seen:
                continue
            self.seen.add(result["id"])
            arm, count = result["arm"], result.get("count", 1)
            total = result["sum"] if "sum" in result else result["value"]
            square = result["squares"] if "sum" in result else result["value"] ** 2
            self.counts[arm] += count
            self.sums[arm] += total
            self.squares[arm] += square
            self._settle(result, arm, count, total, square)
        self._close()

    def _settle(self, result: Record, arm: int, count: int, total: float, square: float) -> None:
        """Count a result towards the open round if it answers one of its slots."""
        if self.round is None or result.get("round") != self.round.number:
            return
        slots = [slot for slot in result["slots"] if slot in self.round.open]
        if slots:
            self.round.open.difference_update(slots)
            self.answers.append((arm, count, total, square))

    def _fail(self, record: Record) -> None:
        if record["id"] in self.seen:
            return
        self.seen.add(record["id"])
        self.failures.append(record)
        if self.round is None or record["round"] != self.round.number or record["slot"] not in self.round.open:
            return
        if record["refund"]:
            self.used -= self.price(self.round.plan[record["slot"]])
            self.round.again(record["slot"])
        else:
            self.round.open.discard(record["slot"])
            self._close()

    def _raise(self, record: Record) -> None:
        self.budget = record["budget"]
        if self.state is None or self.round is None:
            self._begin()

    def _arms(self, record: Record) -> None:
        for arm in record.get("withdrawn", ()):
            self.present[arm] = False
        for arm in record.get("added", ()):
            self.ids.append(arm["id"])
            self.features.append(list(arm["features"]))
            self.present.append(True)
            if self.cost is not None:
                self.cost.append(arm["cost"])
            self.counts, self.sums, self.squares = (np.append(a, 0.0) for a in (self.counts, self.sums, self.squares))
        self._begin()

    def _end_round(self, record: Record) -> None:
        if self.round is not None and record["round"] == self.round.number:
            self.round.open.clear()
            self._close()

    # the policy's side

    def price(self, arm: int) -> float:
        """Return what one pull of an arm takes from the budget."""
        return 1.0 if self.cost is None else self.cost[arm]

    def _begin(self) -> None:
        """Start the policy on the arms there are now, with what is left of the budget."""
        self.epoch_arms = [arm for arm, there in enumerate(self.present) if there]
        self.answers, self.round, self.state = [], None, None
        mean = float(np.mean([self.price(arm) for arm in self.epoch_arms])) if self.epoch_arms else 1.0
        pulls = int((self.budget - self.used) / mean + 1e-9)
        if pulls < 1 or not self.epoch_arms:
            return
        features = np.array([self.features[arm] for arm in self.epoch_arms], dtype=np.float64)
        problem = Problem(features, pulls, self.noise_variance)
        size = self.options.get("batch")
        staged = hasattr(getattr(self.policy, "policy", self.policy), "eta") or size is None
        self.runner = self.policy if staged else Batched(self.policy, size)
        self.state = self.runner.start(problem)
        self._plan()

    def _plan(self) -> None:
        """Ask the policy its next question; the same log gives the same question."""
        rng = np.random.default_rng([self.seed, self.rounds])
        pulls = self.runner.ask(self.state, rng)
        self.answers = []
        if pulls is None:
            self.round = None
            return
        self.round = Round(self.rounds, self._spread(pulls))
        self.rounds += 1

    def _spread(self, pulls: Pulls) -> list[int]:
        """Return pulls one by one, every arm's first before any arm's second, within what is left of the budget."""
        turns = sorted((turn, place) for place, n in enumerate(pulls.times) for turn in range(int(n)))
        plan, left = [], self.budget - self.used
        for _, place in turns:
            arm = self.epoch_arms[int(pulls.arms[place])]
            left -= self.price(arm)
            if left < -1e-9:
                break
            plan.append(arm)
        return plan

    def _close(self) -> None:
        """Tell the policy once every slot of the round is answered or given up."""
        if self.round is None or self.round.open:
            return
        assert self.rewards is not None
        where = {arm: place for place, arm in enumerate(self.epoch_arms)}
        mine = [answer for answer in self.answers if answer[0] in where]
        arms = np.array([where[arm] for arm, *_ in mine], dtype=np.int64)
        count, sums, squares = (np.array([answer[i] for answer in mine], dtype=np.float64) for i in (1, 2, 3))
        sums, squares = self.rewards.totals(count, sums, squares)
        self.state = self.runner.tell(self.state, Pulls(arms, count.astype(np.int64)), Totals(sums, squares))
        self.closed += 1
        self._plan()

    def known(self) -> Tally:
        """Return all told results by arm, turned so that larger is better."""
        assert self.rewards is not None
        return Tally(self.counts, *self.rewards.totals(self.counts, self.sums, self.squares))


APPLY = {
    "create": StudyState._create,
    "ask": StudyState._ask,
    "tell": StudyState._tell,
    "fail": StudyState._fail,
    "budget": StudyState._raise,
    "arms": StudyState._arms,
    "close": StudyState._end_round,
}
