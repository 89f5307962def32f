"""What is handed out: trials, one observation each, and batches of them."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

WRITTEN = re.compile(r"[Tt]?0*(\d{1,18})\Z", re.ASCII)


@dataclass(frozen=True)
class Trial:
    """One observation to make: of which arm. Its id says whose answer a result is."""

    id: str
    arm: str


@dataclass(frozen=True)
class Batch:
    """Trials handed out together. Empty, hence false, when all of the round are out and answers are awaited.

    >>> batch = Batch((Trial("T0001", "gel"), Trial("T0002", "oil"), Trial("T0003", "gel")))
    >>> batch.arms, batch.times
    (('gel', 'oil'), (2, 1))
    """

    trials: tuple[Trial, ...]
    study: Any = field(default=None, compare=False, repr=False)  # which knows the arms' own columns

    def __getstate__(self) -> dict[str, Any]:
        return {"trials": self.trials, "study": None}  # which stays where its storage is

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return a row a trial as a data frame of the library named: its arm's own columns, an empty one for rewards.

        `study.tell` takes it back with rewards in it.
        """
        from bestarm.study.batches import batch_columns
        from bestarm.study.table import framed

        own = {} if self.study is None else batch_columns(self.study, self)
        columns = {"trial": [trial.id for trial in self], "arm": [trial.arm for trial in self], **own}
        return framed({**columns, "reward": [None] * len(self)}, backend)

    def __len__(self) -> int:
        return len(self.trials)

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    @cached_property
    def counts(self) -> dict[str, int]:
        """How often each arm is to be pulled, in order of appearance."""
        return dict(Counter(trial.arm for trial in self.trials))

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms, each once."""
        return tuple(self.counts)

    @property
    def times(self) -> tuple[int, ...]:
        """How often each of `arms` is to be pulled."""
        return tuple(self.counts.values())


def id_of(number: int) -> str:
    """Return a trial's number as people see it, such that no spreadsheet takes it for a number.

    >>> id_of(10), id_of(123456)
    ('T0010', 'T123456')
    """
    return f"T{number:04d}"


def number_of(id: str) -> int | None:
    """Return the number an id stands for; None for what is no trial's id.

    >>> number_of("T0010"), number_of("10"), number_of("0.10")
    (10, 10, None)
    """
    found = WRITTEN.match(id.strip())
    return int(found[1]) if found else None
