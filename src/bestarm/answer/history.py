"""A study over time: how results came in, who was in the race, how sure one was."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RaceStep:
    """A moment at which the race changed: how many results there were then, and which arms were in it from then on."""

    number: int
    told: int
    left: tuple[str, ...]


@dataclass(frozen=True)
class Sight:
    """What would have been said after so many results: how sure, and how far behind the best on average."""

    told: int
    arm: str
    p_best: float
    expected_regret: float


@dataclass(frozen=True)
class History:
    """A study over time. `steps` is empty where the policy drops no arms."""

    started: float
    arrivals: tuple[tuple[float, int], ...]  # seconds since 1970, results so far
    steps: tuple[RaceStep, ...]
    sights: tuple[Sight, ...]
