"""A study's log read again from its beginning: how results came in, who was in the race, how sure one was."""

from typing import TYPE_CHECKING

import numpy as np

from bestarm.answer.history import History, RaceStep, Sight
from bestarm.errors import InputError
from bestarm.progress import Meter
from bestarm.study.driver import Driver, PolicyFailed
from bestarm.study.evidence import evidence_of
from bestarm.study.state import StudyState

if TYPE_CHECKING:
    from bestarm.study.study import Study

POINTS, FEWER = 15, 6  # at which one looks back at how sure one was; of more than MANY arms
MANY = 500


def look_back(study: "Study", draws: int = 1000, points: int | None = None, progress: bool = False) -> History:
    """Return the history of a study; its chances are recomputed at up to `points` moments, once for the same log."""
    with study.log.lock:
        state = study.sync()
        number = (POINTS if len(state.ids) <= MANY else FEWER) if points is None else points
        kept = ("history", draws, number)
        found: History = study.log.kept(kept, lambda: _looked_back(study, draws, number, progress))
        return found


def _looked_back(study: "Study", draws: int, points: int, progress: bool) -> History:
    total = int(study.state.total)
    wanted = list(np.unique(np.linspace(0, total, points + 1).astype(int))[1:]) if total else []
    told, started = 0, 0.0
    seen: tuple[int, int | None, int] = (0, None, 0)
    arrivals: list[tuple[float, int]] = []
    steps: list[RaceStep] = []
    sights: list[Sight] = []
    driver, state, silent = Driver(), study.state, False
    with Meter(progress, "results looked back on", total) as meter:
        for record, state in study.log.replay():
            started = started or float(record["time"])
            now = int(state.total)  # less than was told, where some was told before or excluded
            if now != told:
                told = now
                arrivals.append((float(record["time"]), told))
            if _turn(state) != seen:
                silent = silent and _turn(state)[1:] == seen[1:]
                seen = _turn(state)
                silent = silent or _step(steps, driver, state, told)
            if wanted and told >= wanted[0]:
                wanted = [point for point in wanted if point > told]
                sights.append(_sight(state, told, draws))
                meter.at(told)
    if state.corrected:  # after the last round, perhaps
        _step(steps, driver, state, told)
    started = min([started, *(when for when, _ in arrivals)])  # results of another study are older
    return History(started, tuple(arrivals), tuple(steps), tuple(sights))


def _turn(state: StudyState) -> tuple[int, int | None, int]:
    """Return what changes with the race: rounds that are over, the policy's start, arms."""
    return state.closed, state.epoch, len(state.in_race)


def _step(steps: list[RaceStep], driver: Driver, state: StudyState, told: int) -> bool:
    """Note who is in the race, where that is new and the policy's state says so; everyone is when it starts anew.

    Return whether the policy has a state and names nobody: then it need not be told more to be asked again.
    """
    try:
        left = driver.standing(state)
    except (PolicyFailed, InputError):
        return False
    silent = left is None and driver.state is not None
    if left is None and steps and state.epoch is None and state.rows is None:
        left = tuple(state.ids[arm] for arm in state.in_race)
    if left is not None and (not steps or set(left) != set(steps[-1].left)):
        steps.append(RaceStep(state.closed, told, left))
    return silent


def _sight(state: StudyState, told: int, draws: int) -> Sight:
    evidence = evidence_of(state)
    belief = evidence.believed(draws, np.random.default_rng([state.seed, told]))
    leader = int(np.argmax(belief.mean))
    arm = evidence.ids[int(np.flatnonzero(evidence.present)[leader])]
    return Sight(told, arm, float(belief.chances[leader]), belief.behind(leader))
