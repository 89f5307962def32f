"""Trials, results and arms by what people call them."""

from typing import Any

from bestarm.errors import InputError, UnknownNameError
from bestarm.study.state import Result, StudyState
from bestarm.study.trials import Trial, id_of, number_of

FEW = 10_000  # ids among which the nearest to one that is unknown are sought


def locate(state: StudyState, trial: Trial | str | int) -> int:
    """Return the number of a trial that was handed out; any other is refused by its id."""
    number = _trial_number(state, trial)
    name = trial.id if isinstance(trial, Trial) else trial
    if not 0 < number <= state.handed:
        raise InputError(f"trial {name} was never asked for")
    arm = state.ids[state.arm_of(number)]
    if isinstance(trial, Trial) and trial.arm != arm:
        raise InputError(f"trial {name} of this study is of arm {arm!r}, not {trial.arm!r}: is it another study's?")
    return number


def _trial_number(state: StudyState, trial: Any) -> int:
    name = trial.id if isinstance(trial, Trial) else str(trial) if isinstance(trial, int) else trial
    if isinstance(trial, bool) or not isinstance(name, str):
        raise InputError(f"a trial id such as T0010 is expected; given {trial!r}")
    number, dot, slot = name.strip().partition(".")
    if dot and state.old_rounds and all(s.isascii() and s.isdigit() and len(s) < 18 for s in (number, slot)):
        return old_trial(state, int(number), int(slot)) or 0
    found = number_of(name)
    if found is None:
        raise InputError(f"a trial id such as T0010 is expected; given {name[:40]!r}")
    return found


def old_trial(state: StudyState, number: int, slot: int) -> int | None:
    """Return the trial that version 1 called `number.slot`, None if it was never handed out."""
    asked = state.history[state.old_rounds[number]] if number in state.old_rounds else None
    return asked.trials[slot] if asked is not None and slot < asked.handed else None


def result_of(state: StudyState, what: Trial | str | int) -> Result:
    """Return a told result by its trial, or by its id where nobody asked for it."""
    if isinstance(what, str) and what in state.results:
        return state.results[what]
    try:
        number = locate(state, what)
    except InputError:
        if isinstance(what, str) and number_of(what) is None and "." not in what:
            raise _no_result(state, what) from None
        raise
    if number not in state.results:
        raise InputError(f"trial {id_of(number)} has no result yet: tell it")
    return state.results[number]


def _no_result(state: StudyState, what: str) -> InputError:
    if what not in state.places:
        return UnknownNameError("result", what, [name for name in state.results if isinstance(name, str)])
    names = [one.name for one in state.told if one.arm == state.places[what]]
    mine = [name if isinstance(name, str) else id_of(name) for name in names]
    those = f"its results are {', '.join(mine[:3])}{', ...' * (len(mine) > 3)}" if mine else "it has no result yet"
    return InputError(f"{what!r} is an arm, and a trial or a result is expected; {those}")


def arm_index(state: StudyState, arm: str) -> int:
    """Return where an arm stands among all arms ever."""
    if not isinstance(arm, str):
        raise InputError(f"the id of an arm is a text; given {arm!r}")
    if arm not in state.places:
        raise UnknownNameError("arm", arm, state.ids[:FEW])
    place: int = state.places[arm]
    return place
