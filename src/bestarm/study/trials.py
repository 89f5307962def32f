"""What is handed out: trials, one observation each, and batches of them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Trial:
    """One observation to make: of which arm. Its id says whose answer a result is."""

    id: str
    arm: str


@dataclass(frozen=True)
class Batch:
    """Trials handed out together. Empty, hence false, when all of the round are out and answers are awaited.

    >>> batch = Batch((Trial("0.0", "gel"), Trial("0.1", "oil"), Trial("0.2", "gel")))
    >>> batch.arms, batch.times
    (('gel', 'oil'), (2, 1))
    """

    trials: tuple[Trial, ...]

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
