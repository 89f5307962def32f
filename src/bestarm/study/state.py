"""What a study has come to: its arms, what was asked, what was told, what counts. Pure bookkeeping.

What counts for what stands in docs/log-format.md. In short: a result counts once; it is told to the policy if its
round was current when it came, and is known (`known`, and so every recommendation) in any case; corrections change
both. No policy is asked anything here, so a log means the same on every machine.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bestarm.core import Tally
from bestarm.rewards import Rewards
from bestarm.study.rounds import StudyRound
from bestarm.study.rows import RowIds, RowPlaces
from bestarm.study.storage import Record
from bestarm.tables.source import Source

VERSION = 2
CENT = 1e-9  # of a price: what rounding may add up to


class Result(NamedTuple):
    """What came out of one trial, of several of one arm told as a sum, or of an extra observation."""

    name: int | str  # the (first) trial's number, or an extra's id
    arm: int
    count: float  # type: ignore[assignment]  # hides what tuples have, which nobody counts
    sum: float  # as told, not turned round
    squares: float
    record: int
    time: float
    source: str
    round: int = -1  # the round it answers, and so is told to the policy with; -1: none
    trials: tuple[int, ...] = ()  # of a sum
    file: str = ""
    excluded: bool = False
    corrections: tuple[int, ...] = ()  # records that hold
    block: Any = None
    cost: float | None = None
    scatter: float = 0.0  # of several about their mean
    heard: int = -1  # the question before which the policy is to know what goes beyond its trials; -1: none

    @property
    def of(self) -> tuple[int, ...]:
        """The trials it stands for, none for an extra."""
        return self.trials or ((self.name,) if isinstance(self.name, int) else ())


class Change(NamedTuple):
    """A record that can be undone: its kind, and what it set; of a correction, fields of results by name."""

    kind: str
    arms: tuple[int, ...] = ()
    sets: dict[int | str, dict[str, Any]] = {}  # noqa: RUF012
    why: str = ""
    again: bool = False  # excluded to be measured again, or taken back after that: cannot be undone


class FileTold(NamedTuple):
    """Results that came from a file without trials."""

    digest: str
    ids: tuple[int | str, ...]  # of trials, too, which they answered


@dataclass
class StudyState:
    """A study as its log tells it, kept up to date record by record."""

    allow: tuple[str, ...] = ()  # packages whose parts may be imported
    folder: Any = None  # of the log's file, from which paths in it count
    table: Any = None  # where the table of arms is now, if elsewhere
    records: int = 0
    mark: Any = None  # which log this is: one made anew under the same name has another
    version: int = VERSION  # of what was read last
    first: Record = field(default_factory=dict)  # what the study is
    name: str = ""
    ids: Any = field(default_factory=list)
    places: Any = field(default_factory=dict)  # of the ids
    features: list[Any] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    added: dict[int, Record] = field(default_factory=dict)  # rows as written, of arms that were added later
    cost: list[float] | None = None
    present: Any = field(default_factory=list)
    rows: Source | None = None  # of a table too long to copy, whose arms cannot come or go
    budget: float = 0
    used: float = 0.0  # of the budget, by what was handed out and not refunded
    options: dict[str, Any] = field(default_factory=dict)
    policy: Any = None
    rewards: Rewards = field(default_factory=lambda: Rewards(None))
    noise_variance: float | None = None
    seed: int = 0
    blocks: Record | None = None
    stop: Any = None
    counts: Any = field(default_factory=list)  # of all told results, by arm
    sums: Any = field(default_factory=list)  # as told, not turned round
    squares: Any = field(default_factory=list)
    scatters: Any = field(default_factory=list)  # about the mean of an arm
    total: float = 0.0  # of counts
    results: dict[int | str, Result] = field(default_factory=dict)
    originals: dict[int | str, Result] = field(default_factory=dict)  # of those that were corrected
    trial_rounds: list[int] = field(default_factory=lambda: [-1])  # by trial; there is no trial 0
    trial_slots: list[int] = field(default_factory=lambda: [-1])
    failures: list[Record] = field(default_factory=list)
    failed: set[int] = field(default_factory=set)
    handed_back: set[int] = field(default_factory=set)
    refunded: set[int] = field(default_factory=set)  # trials whose price came back
    returned: set[int] = field(default_factory=set)  # those of them that were measured, and are to be so again
    round: StudyRound | None = None  # the current one, as long as a slot of it is open
    history: list[StudyRound] = field(default_factory=list)  # every round, by number
    epoch: int | None = None  # the round the policy was started for; None: it must be started anew
    epoch_arms: Sequence[int] = field(default_factory=list)
    ended: bool = False  # the policy asks for nothing more
    finished_by_hand: bool = False
    evenly: bool = False  # the policy failed for good: arms are spread evenly
    troubles: list[str] = field(default_factory=list)
    stumbled: bool = False  # it failed, and has not asked since
    repeats: list[int] = field(default_factory=list)  # arms to be asked again with the next plan
    corrections: dict[int | str, list[int]] = field(default_factory=dict)  # records, by result
    corrected: int = 0  # grows with whatever changes what was told before
    dirty: set[int] = field(default_factory=set)  # arms to be counted anew
    changes: dict[int, Change] = field(default_factory=dict)
    undone: set[int] = field(default_factory=set)
    runners: dict[str, int] = field(default_factory=dict)
    holders: dict[int, tuple[str, float]] = field(default_factory=dict)  # of trials: runner, lease
    wells: dict[int, str] = field(default_factory=dict)  # places on plates, by trial
    plates: dict[int, int] = field(default_factory=dict)  # numbers of plates, by trial
    plate: int = 0  # how many were asked for
    heard: dict[int, list[int | str]] = field(default_factory=dict)  # results by what `Result.heard` says
    files: dict[str, FileTold] = field(default_factory=dict)
    old_rounds: dict[int, int] = field(default_factory=dict)  # of version 1, and where they are here
    skipped: int = 0  # rounds of version 1 in which nothing was asked

    def price(self, arm: int) -> float:
        """Return what one pull of an arm takes from the budget."""
        return 1.0 if self.cost is None else self.cost[arm]

    @property
    def in_race(self) -> Sequence[int]:
        """The arms that were not withdrawn."""
        if self.rows is not None:
            return range(self.rows.rows)
        return [arm for arm, there in enumerate(self.present) if there]

    @property
    def measured(self) -> list[int]:
        """The arms with results, in order."""
        if self.rows is not None:
            return sorted(arm for arm, count in self.counts.items() if count)
        return [arm for arm, count in enumerate(self.counts) if count]

    @property
    def over(self) -> bool:
        """Whether nothing is left to ask, as far as the log can tell: only `ask` asks the policy."""
        if self.finished_by_hand:
            return True
        cheapest = 1.0 if self.cost is None else min(self.cost[arm] for arm in self.in_race)
        return self.round is None and (self.ended or self.left < cheapest)

    @property
    def left(self) -> float:
        """What is left of the budget to hand out, with what rounding may have taken from it."""
        return self.budget - self.used + CENT * (1.0 if self.cost is None else min(self.cost))

    @property
    def rounds(self) -> int:
        """How many rounds have begun."""
        return len(self.history)

    @property
    def closed(self) -> int:
        """How many rounds are over."""
        return len(self.history) - (self.round is not None)

    @property
    def handed(self) -> int:
        """How many trials were handed out: the number of the last."""
        return len(self.trial_rounds) - 1

    @property
    def told(self) -> list[Result]:
        """Every result once, in the order of telling."""
        return [result for name, result in self.results.items() if result.name == name]

    def arm_of(self, trial: int) -> int:
        """Return the arm of a trial that was handed out."""
        return self.history[self.trial_rounds[trial]].plan[self.trial_slots[trial]]

    def is_out(self, trial: int) -> bool:
        """Return whether a trial of the current round is handed out and neither answered nor given up."""
        now = self.round
        return now is not None and self.trial_rounds[trial] == now.number and bool(now.open[self.trial_slots[trial]])

    def open_trials(self) -> list[int]:
        """Return the trials of the current round that are out."""
        now = self.round
        return [] if now is None else [now.trials[slot] for slot in now.open_slots(0, now.handed)]

    def ids_of(self, arms: Iterable[int]) -> list[str]:
        """Return what arms are called; rows of a long table are looked up together."""
        return [self.ids[arm] for arm in arms] if self.rows is None else self.ids.of(arms)

    def known(self, arms: Sequence[int] | None = None) -> Tally:
        """Return all told results by arm, or of some arms, turned so that larger is better."""
        every = range(len(self.ids)) if arms is None else arms
        numbers = (self.counts, self.sums, self.squares, self.scatters)
        return self.rewards.turned(Tally(*(np.array([one[arm] for arm in every], dtype=np.float64) for one in numbers)))

    def features_of(self, arms: Sequence[int] | None = None) -> Any:
        """Return the features of all arms, or of some, as they stand in the table `(m, d)`."""
        if self.rows is not None:
            return np.asarray(self.rows.take(np.array(arms, dtype=np.int64)), dtype=np.float64)
        rows = self.features if arms is None else [self.features[arm] for arm in arms]
        return np.array(rows, dtype=np.float64).reshape(len(rows), -1)

    # what records of several kinds do

    def hold(self, source: Source) -> None:
        """Let the rows of a long table be the arms."""
        self.rows, self.ids, self.names = source, RowIds(source), list(source.names)
        self.places, self.present = RowPlaces(self.ids), np.broadcast_to(True, source.rows)
        self.counts, self.sums, self.squares, self.scatters = (defaultdict(float) for _ in range(4))

    def add(self, ids: Sequence[str], features: Any, cost: Any) -> None:
        """Put arms into the race."""
        if self.rows is not None and ids:
            raise ValueError("no arms can be added to a table that is read in blocks")
        costs = [1.0] * len(ids) if self.cost is None else cost
        shape = np.array(features, dtype=np.float64).shape
        if ids and (len(shape) != 2 or shape[1] != len((self.features or features)[0])):
            raise ValueError("the features of the arms are no table of numbers")
        for id, row, price in zip(ids, features, costs, strict=True):
            if not isinstance(id, str):
                raise TypeError(f"an id must be text; found {id!r}")
            if id in self.places:
                raise ValueError(f"there are two arms {id!r}")
            self.places[id] = len(self.ids)
            self.ids.append(id)
            self.features.append(row)
            self.present.append(True)
            if self.cost is not None:
                self.cost.append(positive(price))
        for numbers in (self.counts, self.sums, self.squares, self.scatters):
            numbers += [0.0] * len(ids)

    def count(self, result: Result) -> None:
        """Count a result; how the scatter of two groups adds up stands in `Tally`."""
        arm, before = result.arm, self.counts[result.arm]
        self.scatters[arm] += result.scatter
        if before:
            apart = result.sum / result.count - self.sums[arm] / before
            self.scatters[arm] += before * result.count / (before + result.count) * apart * apart
        self.total += result.count
        self.counts[arm] = before + result.count
        self.sums[arm] += result.sum
        self.squares[arm] += result.squares

    def recount(self) -> None:
        """Add up anew what is told of arms with corrections, in order of telling: a difference would lose digits."""
        for arm in self.dirty:
            self.total -= self.counts[arm]
            self.counts[arm] = self.sums[arm] = self.squares[arm] = self.scatters[arm] = 0.0
        for name, result in self.results.items() if self.dirty else ():
            if result.arm in self.dirty and result.name == name and not result.excluded:
                self.count(result)
        self.dirty.clear()

    def returned_price(self, result: Result) -> float:
        """Return what came back when a result was excluded, to be measured again."""
        back = [trial for trial in result.of if trial in self.returned]
        return float(result.cost) if back and result.cost is not None else len(back) * self.price(result.arm)

    def refund(self, trial: int) -> bool:
        """Give a trial's price back, and return whether its round is the current one."""
        self.used = max(self.used - self.price(self.arm_of(trial)), 0.0)  # rounding may have gone below
        self.refunded.add(trial)
        self.ended = False
        return self.round is not None and self.round.number == self.trial_rounds[trial]

    def close(self) -> None:
        """End the round once every slot of it is answered or given up."""
        if self.round is not None and not self.round.left:
            self.round = None

    def anew(self) -> None:
        """Let the policy start anew, on what is there then."""
        self.round, self.epoch, self.ended = None, None, False


def positive(number: Any) -> float:
    """Return a number above 0, or raise ValueError."""
    if not 0 < number < np.inf:
        raise ValueError(f"a positive number is expected; given {number!r}")
    return number  # type: ignore[no-any-return]
