"""Results as people give them, checked and made into what the log keeps. Nothing here writes."""

import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from bestarm.errors import InputError, UnknownNameError
from bestarm.study.fold import StudyState, slot_names
from bestarm.study.storage import Record
from bestarm.study.trials import Batch, Trial

Told: TypeAlias = Batch | Trial | str | Mapping[str, Any] | None


def gather(
    fold: StudyState, what: Told, values: Any, successes: Any, arm: str | None, id: str | None
) -> Sequence[Record]:
    """Return the results of one `tell`, blanks left out."""
    if arm is not None:
        if what is not None or successes is not None:
            raise InputError("tell either an arm's extra values or the results of trials, not both at once")
        return extras(fold, arm, values, id)
    if id is not None:
        raise InputError("an id names an extra result: give its arm too; a trial has its id already")
    if successes is not None:
        if not isinstance(what, Batch) or values is not None:
            raise InputError("successes are told of a batch: tell(batch, successes=counts)")
        return by_arm(fold, what, successes)
    return [single(fold, trial, value) for trial, value in _pairs(what, values) if measured(value)]


def single(fold: StudyState, trial: Trial | str, value: Any) -> Record:
    """Return the result of one trial."""
    number, slot = locate(fold, trial)
    given = usable(fold, value, f"trial {number}.{slot}")
    arm = fold.history[number].plan[slot]
    return {"id": f"{number}.{slot}", "arm": arm, "value": given, "round": number, "slots": [slot]}


def by_arm(fold: StudyState, batch: Batch, successes: Any) -> list[Record]:
    """Return 0/1 results given as numbers of successes, in the order of `batch.arms` or by arm."""
    if isinstance(successes, Mapping):
        for arm in successes:
            if arm not in batch.counts:
                raise InputError(f"arm {arm!r} is not in this batch")
        successes = [successes.get(arm) for arm in batch.arms]
    if len(successes) != len(batch.arms):
        raise InputError(f"{len(batch.arms)} success counts expected, one for each arm; {len(successes)} given")
    usable(fold, 1.0, "successes")
    slots: dict[str, list[tuple[int, int]]] = {}
    for trial in batch:
        slots.setdefault(trial.arm, []).append(locate(fold, trial))
    given = zip(batch.arms, successes, strict=True)
    return [_sum(fold, arm, slots[arm], won) for arm, won in given if measured(won)]


def _sum(fold: StudyState, arm: str, mine: list[tuple[int, int]], won: Any) -> Record:
    count, times = _number(won, f"arm {arm!r}"), len(set(mine))
    if not 0 <= count <= times or count != int(count):
        raise InputError(f"arm {arm!r}: a whole number from 0 to {times} is expected; given {won!r}")
    rounds, slots = {number for number, _ in mine}, sorted({slot for _, slot in mine})
    if len(rounds) > 1:
        raise InputError(f"arm {arm!r}: its trials are of several rounds; tell the successes of each round apart")
    number = rounds.pop()
    where = fold.history[number].plan[slots[0]]
    if times == 1:
        return {"id": f"{number}.{slots[0]}", "arm": where, "value": count, "round": number, "slots": slots}
    result = {"id": f"{number}.{slots[0]}-{slots[-1]}", "arm": where, "count": times, "sum": count, "squares": count}
    result |= {"round": number, "slots": slots}
    told = [name for name in slot_names(result) if name in fold.seen]
    if told and len(told) < times:
        raise InputError(
            f"arm {arm!r}: {len(told)} of these {times} trials are told already, such as {told[0]}; "
            "tell the others one by one"
        )
    return result


def extras(fold: StudyState, arm: str, values: Any, id: str | None = None, asked: bool = False) -> list[Record]:
    """Return observations nobody asked for: one value or several, of one arm."""
    if not asked and not fold.options["extra"]:
        raise InputError(f"arm {arm!r} was not asked for, and this study takes no extra results")
    given = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]
    if id is not None and len(given) != 1:
        raise InputError(f"an id names one result; {len(given)} values given")
    if id is not None and (not id or id[0].isdigit()):
        raise InputError(f"the id of an extra result must not begin with a digit, as a trial's does; given {id!r}")
    where = arm_index(fold, arm)
    return [
        {"id": id or f"extra-{uuid.uuid4().hex}", "arm": where, "value": usable(fold, value, f"arm {arm!r}")}
        for value in given
        if measured(value)
    ]


def unseen(fold: StudyState, results: Iterable[Record]) -> list[Record]:
    """Return the results that are new, each observation once."""
    new: list[Record] = []
    names: set[str] = set()
    for result in results:
        mine = slot_names(result)
        if fold.seen.isdisjoint(mine) and names.isdisjoint(mine):
            names.update(mine)
            new.append(result)
    return new


def locate(fold: StudyState, trial: Trial | str) -> tuple[int, int]:
    """Return the round and the slot of a trial that was handed out; any other is refused by its id."""
    name = trial.id if isinstance(trial, Trial) else trial if isinstance(trial, str) else repr(trial)
    number, dot, slot = name.partition(".")
    if not (dot and number.isascii() and number.isdigit() and slot.isascii() and slot.isdigit() and len(name) < 40):
        raise InputError(f"a trial id such as 3.17 is expected; given {name[:40]!r}")
    place = int(number), int(slot)
    if place[0] >= len(fold.history) or place[1] >= fold.history[place[0]].handed:
        raise InputError(f"trial {name} was never asked for")
    arm = fold.ids[fold.history[place[0]].plan[place[1]]]
    if isinstance(trial, Trial) and trial.arm != arm:
        raise InputError(f"trial {name} of this study is of arm {arm!r}, not {trial.arm!r}: is it another study's?")
    return place


def arm_index(fold: StudyState, arm: str) -> int:
    """Return where an arm stands among all arms ever."""
    if arm not in fold.ids:
        raise UnknownNameError("arm", str(arm), fold.ids)
    return fold.ids.index(arm)


def measured(value: Any) -> bool:
    """Return whether there is a value: None and NaN mean not yet."""
    return value is not None and not (isinstance(value, Real) and math.isnan(value))


def usable(fold: StudyState, value: Any, place: str) -> float:
    """Return a value as a number the study's model can use."""
    given = _number(value, place)
    assert fold.rewards is not None
    try:
        fold.rewards.allowed(given)
    except InputError as error:
        raise type(error)(f"{place}: {error}") from None
    return given


def _number(value: Any, place: str) -> float:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not isinstance(value, Real | np.bool_):
        raise InputError(f"{place}: a number is expected; given {value!r}")
    given = float(value)
    if not math.isfinite(given) or abs(given) > 1e150:  # its square must be a number too
        raise InputError(f"{place}: a finite number is expected; given {value!r}")
    return given


def _pairs(what: Told, values: Any) -> Iterable[tuple[Trial | str, Any]]:
    if isinstance(what, Mapping):
        if values is not None:
            raise InputError("a mapping from trial ids to values has the values already")
        return what.items()
    if isinstance(what, Trial | str):
        return [(what, values)]
    if not isinstance(what, Batch):
        raise InputError(f"a batch, a trial, a trial id or a mapping from ids to values is expected; given {what!r}")
    given = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]
    if len(given) != len(what):
        raise InputError(f"{len(what)} values expected, the number of trials asked; {len(given)} given")
    return zip(what.trials, given, strict=True)
