"""What corrections do to the state of a study: amend, exclude, restore, undo."""

from collections.abc import Iterable, Mapping
from typing import Any

from bestarm.study.limits import totals_of
from bestarm.study.rounds import ranges
from bestarm.study.state import Change, Result, StudyState
from bestarm.study.storage import Record


def amend(state: StudyState, record: Record) -> None:
    """Let other values hold for results that were told."""
    sets = {}
    for one in record["results"]:
        name = one["trial"] if "trial" in one else ranges(one["trials"])[0] if "trials" in one else one["id"]
        sets[_find(state, name).name] = dict(zip(("count", "sum", "squares", "scatter"), totals_of(one), strict=True))
    _change(state, "amend", sets, record)


def exclude(state: StudyState, record: Record) -> None:
    """Let results not count; asked again where the record says so."""
    found = [result for result in _named(state, record) if not result.excluded]
    _change(state, "exclude", {result.name: {"excluded": True} for result in found}, record)
    for result in found if record.get("again") else ():
        _ask_again(state, result)


def _ask_again(state: StudyState, result: Result) -> None:
    """Give back what a result took from the budget, if that did not come back before, and ask its arm again."""
    new = [trial for trial in result.of if trial not in state.refunded]
    if result.cost is not None and new:
        state.used -= float(result.cost) - len(new) * state.price(result.arm)
    state.returned.update(new)
    for trial in result.of:
        asked, slot = state.history[state.trial_rounds[trial]], state.trial_slots[trial]
        if trial in new and state.refund(trial):
            asked.again(slot)
        else:
            state.repeats.append(asked.plan[slot])
            state.ended = False


def restore(state: StudyState, record: Record) -> None:
    """Let excluded results count again, for the price that came back if they were to be measured again."""
    found = [result for result in _named(state, record) if result.excluded]
    _change(state, "restore", {result.name: {"excluded": False} for result in found}, record)
    for result in found:
        state.used += state.returned_price(result)
        state.refunded.difference_update(state.returned.intersection(result.of))
        state.returned.difference_update(result.of)


def undo(state: StudyState, record: Record) -> None:
    """Take a withdrawal, a correction or the finish back."""
    number = record["record"]
    change = state.changes.get(number)
    if change is None or number in state.undone:
        return
    state.undone.add(number)
    if change.kind == "finish":
        state.finished_by_hand = False
    elif change.kind == "withdraw":
        for arm in change.arms:
            state.present[arm] = True
        state.anew()
    else:
        _settle(state, change.sets)


def _find(state: StudyState, name: Any) -> Result:
    result = state.results.get(name)
    if result is None:
        raise ValueError(f"there is no result {name!r} to correct")
    return result


def _named(state: StudyState, record: Record) -> list[Result]:
    names = [*ranges(record.get("trials", ())), *record.get("ids", ())]
    found = (_find(state, name) for name in names)
    return list({result.name: result for result in found}.values())


def _change(state: StudyState, kind: str, sets: Mapping[int | str, dict[str, Any]], record: Record) -> None:
    if sets:
        for name in sets:
            state.originals.setdefault(name, state.results[name])
            state.corrections.setdefault(name, []).append(state.records)
        state.changes[state.records] = Change(
            kind, (), dict(sets), str(record.get("why", "")), bool(record.get("again"))
        )
        _settle(state, sets)


def _settle(state: StudyState, names: Iterable[int | str]) -> None:
    """Let results be what they were told as, changed by every correction of them that holds, in order."""
    for name in names:
        result, holding = state.originals[name], [n for n in state.corrections[name] if n not in state.undone]
        for number in holding:
            result = result._replace(**state.changes[number].sets[name])
        result = result._replace(corrections=tuple(holding))
        state.results.update(dict.fromkeys(result.of or [name], result))
        state.dirty.add(result.arm)
    state.corrected += 1
