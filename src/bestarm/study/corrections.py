"""Records that put right what was told or asked, checked. Nothing here writes."""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from bestarm.errors import BudgetError, InputError
from bestarm.numbers import whole
from bestarm.study.limits import LARGEST
from bestarm.study.limits import whole as whole_table
from bestarm.study.naming import arm_index, locate, result_of
from bestarm.study.results import naming, usable
from bestarm.study.rounds import as_ranges, ranges
from bestarm.study.state import Result, StudyState
from bestarm.study.storage import Record
from bestarm.study.trials import Trial, id_of

if TYPE_CHECKING:
    from bestarm.tables.arms import Arms

FAR = 8.0  # robust deviations from which a value is worth a look
ENOUGH = 8  # values without which nobody can say what is far
MAD = 1.4826  # a normal's standard deviation over its median absolute deviation

What = Trial | str | int
Whats = What | Iterable[What]


def amend(state: StudyState, what: What, value: Any) -> Record | None:
    """Return the record by which another value holds; of a sum of 0/1 rewards, another number of successes."""
    result = result_of(state, what)
    new = restated(result, usable(state, value, label(result.name)) if result.count == 1 else value)
    if result.excluded:
        raise InputError(f"{label(result.name)} is excluded: restore it first")
    return None if result.sum == value else {"kind": "amend", "results": [new]}


def restated(result: Result, value: float) -> Record:
    """Return a result with another value, as a record has it."""
    where: Record = naming(result.of) if result.of else {"id": result.name}
    if result.count == 1:
        return {**where, "arm": result.arm, "value": value}
    if result.sum != result.squares:
        many, way = f"{result.count:.0f} rewards told as one sum", "measure again what is needed"
        raise InputError(
            f"{label(result.name)} stands for {many}, of which none can be put right alone: exclude it, and "
            f"{way if result.of else 'tell what holds under another id'}"
        )
    what = f"{label(result.name)} was told with others as a number of successes, which"
    won = whole(value, what, least=0, most=int(result.count))
    return {**where, "arm": result.arm, "n": result.count, "successes": won}


def exclude(state: StudyState, results: Sequence[Result], again: bool = False) -> Record | None:
    """Return the record by which results do not count."""
    if again:
        extra = next((one for one in results if not one.of), None)
        if extra is not None:
            raise InputError(f"{label(extra.name)} was not asked for, so it cannot be asked again")
    chosen = [one for one in results if not one.excluded]
    return {"kind": "exclude", **among(chosen), **({"again": True} if again else {})} if chosen else None


def restore(state: StudyState, results: Sequence[Result]) -> Record | None:
    """Return the record by which excluded results count again.

    What came back for those that were to be measured again is taken once more.
    """
    chosen = [one for one in results if one.excluded]
    price = sum(state.returned_price(one) for one in chosen)
    if price > state.left:
        raise BudgetError(
            f"these results were to be measured again, and what they cost came back: to count them takes {price:g} of "
            f"the budget, and {max(state.budget - state.used, 0):g} is left; raise it first"
        )
    return {"kind": "restore", **among(chosen), **({"again": True} if price else {})} if chosen else None


def among(results: Iterable[Result]) -> Record:
    """Return how a record names results."""
    results = list(results)
    trials = as_ranges(trial for one in results for trial in one.of)
    ids = [one.name for one in results if not one.of]
    return ({"trials": trials} if trials else {}) | ({"ids": ids} if ids else {})


def chosen(
    state: StudyState, trials: Whats, arm: str | None = None, by: str | None = None, since: Any = None
) -> list[Result]:
    """Return told results: those named, or else all that are of an arm, by a source, and since a time."""
    named = _listed(trials)
    if named:
        if not (arm is None and by is None and since is None):
            raise InputError("name either results or an arm, a source or a time, not both")
        found = [result_of(state, one) for one in named]
        return list({one.name: one for one in found}.values())
    if arm is None and by is None and since is None:
        raise InputError("name the trials, or an arm, a source or a time")
    place = None if arm is None else arm_index(state, arm)
    start = -math.inf if since is None else moment(since)
    sources = {one.source for one in state.results.values()}
    if by is not None and by not in sources:
        there = ", ".join(map(repr, sorted(sources))) or "none"
        raise InputError(f"no result is of the source {by!r}; there are {there}")
    return [
        one
        for one in state.told
        if (place is None or one.arm == place) and (by is None or one.source == by) and one.time >= start
    ]


def _listed(trials: Whats) -> list[What]:
    if isinstance(trials, Trial | str | int):
        return [trials]
    if not isinstance(trials, Iterable):
        raise InputError(f"a trial, its id, or several are expected; given {trials!r}")
    return list(trials)


def moment(value: Any) -> float:
    """Return a time, in seconds since 1970, of a number, a datetime or a text such as 2026-05-01T09:30+02:00.

    Without a zone it is the machine's own.
    """
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        return float(value.timestamp()) if isinstance(value, datetime) else float(value)
    except (ValueError, TypeError, OverflowError, OSError):
        raise InputError(f"a time such as 2026-05-01T09:30+02:00 is expected; given {value!r}") from None


def hand_back(state: StudyState, trials: Whats) -> Record | None:
    """Return the record by which trials that were asked by mistake are given back."""
    numbers = [locate(state, one) for one in _listed(trials)]
    for number in numbers:
        if number in state.results or number in state.failed:
            said = "has a result: exclude it" if number in state.results else "has failed"
            raise InputError(f"trial {id_of(number)} {said}; only trials that were not measured can be handed back")
    left = as_ranges(number for number in numbers if number not in state.handed_back)
    return {"kind": "hand-back", "trials": left} if left else None


def undo(state: StudyState, record: int | None = None) -> Record:
    """Return the record that takes back a withdrawal, a correction or `finish`: the last one unless one is named."""
    open_ = [number for number in state.changes if number not in state.undone]
    if record is None:
        if not open_:
            raise InputError("there is nothing to undo: withdrawals, corrections and finish can be")
        record = open_[-1]
    if record not in open_:
        said = "is undone already" if record in state.undone else "is nothing that can be undone"
        raise InputError(f"record {record} {said}; {_list(open_)}")
    change = state.changes[record]
    if change.again:
        wrong = ("asked their arms again", "restore") if change.kind == "exclude" else ("took their price", "exclude")
        raise InputError(f"record {record} {change.kind}d results and {wrong[0]}: {wrong[1]} the results instead")
    return {"kind": "undo", "record": record}


def raise_budget(state: StudyState, wanted: float) -> Record:
    """Return the record by which the budget is a larger one."""
    if not state.budget < wanted:
        raise BudgetError(f"the budget is {state.budget:.15g}; a larger one is expected, given {wanted:.15g}")
    if (wanted - state.used) / (1.0 if state.cost is None else min(state.cost)) > LARGEST:
        raise BudgetError(f"a budget of {wanted:.15g} is beyond what a study can plan, {LARGEST:,} pulls")
    return {"kind": "budget", "budget": int(wanted) if wanted.is_integer() else wanted}


def withdraw(state: StudyState, arm: str) -> Record | None:
    """Return the record that takes an arm out of the race."""
    place = arm_index(state, arm)
    if state.rows is not None:
        raise InputError("an arm of a table that is read in blocks cannot be withdrawn")
    if state.present[place] and sum(state.present) == 1:
        raise InputError(f"arm {arm!r} is the last one: it cannot be withdrawn")
    return {"kind": "arms", "withdrawn": [place]} if state.present[place] else None


def add_arms(state: StudyState, arms: "Arms") -> Record:
    """Return the record that puts more arms into the race."""
    whole_table(state)
    if arms.names != tuple(state.names):
        names = (", ".join(some) for some in (state.names, arms.names))
        raise InputError("new arms must have the features {}; given {}".format(*names))
    known = set(state.places).intersection(arms.ids)
    if known:
        raise InputError(f"arm {min(known)!r} is in the study already")
    if (arms.cost is None) != (state.cost is None):
        raise InputError("new arms must have costs if and only if the study has them")
    costs = [None] * len(arms) if arms.cost is None else arms.cost.tolist()
    rows = zip(arms.ids, arms.features.tolist(), costs, strict=True)
    added = [{"id": i, "features": f, "cost": c} for i, f, c in rows]
    kept = [name for name in state.first["arms"].get("table") or () if name in arms.table]
    for at, one in enumerate(added if kept else ()):
        one["row"] = {name: arms.table[name][at] for name in kept}
    return {"kind": "arms", "first": len(state.ids), "added": added}


def _list(numbers: Sequence[int]) -> str:
    return f"records {', '.join(map(str, numbers[-10:]))} can be" if numbers else "nothing can be"


def size(record: Record) -> int:
    """Return how many results a record names."""
    return len(ranges(record.get("trials", ()))) + len(record.get("ids", ()))


def label(name: int | str) -> str:
    """Return what to call a result."""
    return f"trial {id_of(name)}" if isinstance(name, int) else f"result {name!r}"


def outliers(state: StudyState) -> list[Result]:
    """Return the results farther than FAR robust deviations from other arms and their own: typing errors, perhaps.

    An arm counts once however often it was pulled, since policies pull the best ones most; values that their arm
    repeats are no errors.
    """
    told = [one for one in state.told if not one.excluded and one.count == 1]
    if len(told) < ENOUGH or np.isfinite(state.rewards.law.limits).any():
        return []
    values, arms = np.array([one.sum for one in told]), np.array([one.arm for one in told])
    middles, which, times = _medians(arms, values)
    centre, within = np.median(middles), np.abs(values - middles[which])
    alone = times[which] == 1
    spreads = (np.abs(values - np.median(values)), np.abs(middles - centre), within[~alone])
    reach = FAR * MAD * max(float(np.median(spread)) for spread in spreads if spread.size)
    if not reach > 0:
        return []
    far = (np.abs(values - centre) > reach) & (alone | (within > reach))
    return [told[i] for i in np.flatnonzero(far)]


def _medians(arms: Any, values: Any) -> tuple[Any, Any, Any]:
    """Return the median of each arm that has values, which of them is each value's, and how many values they are of."""
    _, which, times = np.unique(arms, return_inverse=True, return_counts=True)
    ordered, starts = values[np.lexsort((values, which))], np.cumsum(times) - times
    return (ordered[starts + (times - 1) // 2] + ordered[starts + times // 2]) / 2, which, times
