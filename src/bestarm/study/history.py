"""A study's log read again from its beginning: how results came in, who was in the race, how sure one was."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bestarm.core import Tally
from bestarm.study.fold import StudyState
from bestarm.study.recommendation import believed, features_of

if TYPE_CHECKING:
    from bestarm.study.study import Study

POINTS = 15  # at which one looks back at how sure one was


@dataclass(frozen=True)
class Step:
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
    steps: tuple[Step, ...]
    sights: tuple[Sight, ...]


def look_back(study: "Study", draws: int = 1000, points: int = POINTS) -> History:
    """Return the history of a study; its chances are recomputed at up to `points` moments."""
    total = int(sum(study.sync().counts))
    wanted = list(np.unique(np.linspace(0, total, points + 1).astype(int))[1:]) if total else []
    fold, told, started = StudyState(), 0, 0.0
    arrivals: list[tuple[float, int]] = []
    steps: list[Step] = []
    sights: list[Sight] = []
    for number, record in enumerate(study.storage.read(study.name)):
        closed = fold.closed
        arms = {result["arm"] for result in record["results"]} if record["kind"] == "tell" else set()
        before = sum(fold.counts[arm] for arm in arms)
        fold.apply([record])
        if number == 0:
            started = float(record["time"])
        new = int(sum(fold.counts[arm] for arm in arms) - before)  # less than was told, where some was told before
        if new:
            told += new
            arrivals.append((float(record["time"]), told))
        if fold.closed > closed or record["kind"] in ("create", "arms"):
            step = _step(fold, told)
            steps += [step] if step and (not steps or set(step.left) != set(steps[-1].left)) else []
        if wanted and told >= wanted[0]:
            wanted = [point for point in wanted if point > told]
            sights.append(_sight(fold, told, draws))
    return History(started, tuple(arrivals), tuple(steps), tuple(sights))


def _step(fold: StudyState, told: int) -> Step | None:
    """Return who is in the race, where the policy's state says so."""
    state: Any = fold.state
    while not hasattr(state, "active") and hasattr(state, "inner"):
        state = state.inner
    active = getattr(state, "active", None)
    if active is None:
        return None
    places = np.flatnonzero(active) if np.asarray(active).dtype == bool else np.asarray(active)
    return Step(fold.closed, told, tuple(fold.ids[fold.epoch_arms[place]] for place in places.tolist()))


def _sight(fold: StudyState, told: int, draws: int) -> Sight:
    known: Tally = fold.known()
    belief = believed(fold, features_of(fold), known, draws, np.random.default_rng([fold.seed, told]))
    leader = int(np.argmax(belief.mean))
    behind = float(np.mean(belief.draws.max(axis=1) - belief.draws[:, leader]))
    return Sight(told, fold.ids[int(np.flatnonzero(fold.present)[leader])], float(belief.chances[leader]), behind)
