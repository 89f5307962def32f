"""Chunks of replications: a policy on simulated bandits, the same numbers whoever computes them, and where."""

import hashlib
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bestarm.bandits import Bandit, Stream
from bestarm.core import Array, Policy, Pullable
from bestarm.errors import BestArmError
from bestarm.playing import Round, played

CHUNK = 250  # replications a chunk; part of the definition of a result, since a chunk shares its random numbers


class Judged(Pullable, Protocol):
    """Something to pull that also knows how good an answer is."""

    def correct(self, arm: Array) -> Array: ...

    def regret(self, arm: Array) -> Array: ...


@dataclass(frozen=True)
class Chunk:
    """What replications of a cell came to: right or wrong, regret and pulls of each, and CPU seconds; or the error."""

    cell: Any
    number: int
    correct: Any
    regret: Any
    pulls: Any
    cpu: float
    error: str | None = None
    fault: str = ""  # the class of the error


Made = tuple[Policy[Any], Judged, Pullable]  # a policy, the truth, and what the policy pulls of it
Watch = Callable[[Round], None]


def chunk(
    cell: Any, number: int, make: Callable[[], Made], budget: int, choices: Any, watch: Watch | None = None
) -> Chunk:
    """Return a chunk of what `make` makes, on one thread; what fails is told in the chunk."""
    from threadpoolctl import threadpool_limits

    start = time.process_time()
    try:
        with threadpool_limits(1):
            correct, regret, pulls = judged(*make(), budget, np.random.default_rng(choices), watch)
    except Exception as error:  # a cell that fails is no reason for the others to end
        empty = np.zeros(0)
        return Chunk(cell, number, empty.astype(bool), empty, empty, 0.0, _told(error), type(error).__name__)
    return Chunk(cell, number, correct, regret, pulls, time.process_time() - start)


def judged(
    policy: Policy[Any], truth: Judged, pulled: Pullable, budget: int, rng: Any, watch: Watch | None = None
) -> tuple[Any, Any, Any]:
    """Play, and return whether each answer is right, its regret, and the pulls it took, `(...)` each."""
    run = played(policy, pulled, budget, rng, watch)
    return truth.correct(run.arm), truth.regret(run.arm), run.counts.sum(-1)


def _told(error: Exception) -> str:
    """Return an error as a text: with the line it is from where nobody raised it on purpose."""
    if isinstance(error, BestArmError):
        return str(error)
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{error} ({Path(place.filename).name}, line {place.lineno}, in {place.name})"


def sizes(replications: int, most: int = CHUNK) -> list[int]:
    """Return the replications of each chunk.

    >>> sizes(600)
    [250, 250, 100]
    """
    return [min(most, replications - start) for start in range(0, replications, most)]


def fingerprint(text: str) -> str:
    """Return 16 hexadecimal digits that stand for a text, the same in every process and version."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def seeds(seed: int, *parts: int | str) -> np.random.SeedSequence:
    """Return the randomness of a part of a simulation, named by numbers and fingerprints."""
    return np.random.SeedSequence([seed, *(part if isinstance(part, int) else int(part, 16) for part in parts)])


def common(bandit: Bandit, rng: np.random.Generator) -> Stream:
    """Return the rewards that every policy meets on a bandit: the j-th pull of an arm is the same number for all."""
    return Stream(bandit, int(rng.integers(2**63)))
