"""What is wrong with a storage, and what to do about it."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from bestarm.errors import BestArmError
from bestarm.numbers import counted
from bestarm.study.corrections import label, outliers
from bestarm.study.evidence import times
from bestarm.study.state import VERSION, StudyState
from bestarm.study.storage import Storage
from bestarm.study.storage.records import WAY_OUT, Remark
from bestarm.study.study import Study


@dataclass(frozen=True)
class Diagnosis:
    """Something a doctor saw, in a study or, without a name, in the storage; `wrong` if it wants doing something."""

    study: str
    wrong: bool
    says: str


def examine(storage: Storage) -> list[Diagnosis]:
    """Read every study of a storage from its first record to its last, and say what was found."""
    try:
        found = [Diagnosis("", not isinstance(note, Remark), note) for note in storage.notes()]
        names = storage.names()
    except BestArmError as error:
        return [Diagnosis("", True, f"{error}; restore the file from a copy, or name another storage")]
    if not names:
        found.append(Diagnosis("", True, "there is no study here; is it the right place?"))
    for name in names:
        found += _study(name, storage)
    return found


def _study(name: str, storage: Storage) -> list[Diagnosis]:
    """Return what there is to say of a study."""
    try:
        study = Study(name, storage)
    except BestArmError as error:
        return [*_damage(name, storage), Diagnosis(name, True, f"{error}{_what_to_do(str(error))}")]
    return [Diagnosis(name, False, line) for line in (*_standing(study), *_reminders(study))]


def _damage(name: str, storage: Storage) -> Iterator[Diagnosis]:
    """Give each damaged record of a study."""
    try:
        for number, record in storage.salvage(name):
            if isinstance(record, str):
                yield Diagnosis(name, True, f"record {number}: {record}")
    except BestArmError as error:
        yield Diagnosis(name, True, str(error))


def _what_to_do(said: str) -> str:
    """Return what to do about a study that cannot be read, unless that was said."""
    way = "" if WAY_OUT in said else f"; {WAY_OUT}"
    return f"{way}; this bestarm reads logs up to version {VERSION}"


def _standing(study: Study) -> Iterator[str]:
    state = study.state
    standing = "over" if state.over else f"round {max(state.rounds, 1)}"
    told = f"{counted(state.records, 'record')}, {counted(int(state.total), 'result')}"
    ahead = study.best_arm if state.total else "nothing yet"
    yield f"{told}, {state.used:g} of {state.budget:g} spent, {standing}; ahead: {ahead}"
    if state.version < VERSION:
        yield f"its log is of version {state.version}; `bestarm upgrade` makes it version {VERSION}, after a copy"
    out = state.open_trials()
    if out:
        asked = [one["time"] for one in study.storage.read(study.name) if one["kind"] == "ask"]
        ago = _ago((time.time() - asked[-1]) / 60)
        are = "1 trial is" if len(out) == 1 else f"{len(out)} trials are"
        yield f"{are} out, the last asked {ago} ago; `ask --pending` lists them"
    if state.failures:
        trials = "1 trial" if len(state.failures) == 1 else f"{len(state.failures)} trials"
        yield f"{trials} failed, the last because: {state.failures[-1]['reason']}"


def _reminders(study: Study) -> Iterator[str]:
    state = study.state
    if state.troubles:
        went = "arms are spread evenly since" if state.evenly else "it was started anew"
        yield f"the policy failed {times(len(state.troubles))}, and {went}; the last time: {state.troubles[-1]}"
    for result in outliers(state)[:5]:
        name = label(result.name)
        yield f"{name} of arm {state.ids[result.arm]}, {result.sum:g}, is far from all others: `bestarm amend` mends it"
    yield from set_aside(state)


def set_aside(state: StudyState) -> Iterator[str]:
    """Give what people decided that an answer rests on: results that do not count, a study finished by hand."""
    excluded = [one for one in state.told if one.excluded]
    if excluded:
        last = max(excluded, key=lambda one: max(one.corrections))
        why = state.changes[max(last.corrections)].why
        names = ", ".join(label(one.name) for one in excluded[:3]) + ", ..." * (len(excluded) > 3)
        reason = f", the last because: {why}" if why else ""
        yield f"excluded: {names} ({len(excluded)} in all){reason}; `bestarm restore` takes them back in"
    if state.finished_by_hand:
        ends = [number for number, change in state.changes.items() if change.kind == "finish"]
        yield f"it was finished by hand; `bestarm undo {max(ends)}` takes that back"


def _ago(minutes: float) -> str:
    """Return how long something is ago, in the largest unit of which there are two.

    >>> _ago(0.2), _ago(119), _ago(180), _ago(4320)
    ('a moment', '119 minutes', '3 hours', '3 days')
    """
    for unit, size in (("days", 1440), ("hours", 60)):
        if minutes >= 2 * size:
            return f"{minutes / size:.0f} {unit}"
    return f"{minutes:.0f} minutes" if minutes >= 2 else "a moment"
