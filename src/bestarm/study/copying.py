"""Studies carried from storage to storage, results from study to study, and storages of version 1 upgraded."""

import os
from itertools import groupby
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np

from bestarm.core import Tally
from bestarm.errors import BestArmError, BestArmWarning, InputError, RewardError, StorageError
from bestarm.study.limits import said
from bestarm.study.log import Log
from bestarm.study.results import telling
from bestarm.study.state import Result, StudyState
from bestarm.study.storage import Record, Storage, open_storage
from bestarm.study.study import Study
from bestarm.study.trials import id_of

MANY = 1000  # records that are written at a time


def copy_study(name: str, storage: Any, to: Any, as_: str | None = None) -> int:
    """Copy a study to another storage, under a new name if one is given, and return how many records it has.

    What was copied is read again and compared, record by record. A copy that was interrupted is finished.
    """
    place, target, new = open_storage(storage), open_storage(to), as_ or name
    if new == name and _same(place, target):
        raise InputError(f"study {name!r} is here already: name another storage, or the copy by as_=, --as")
    records = list(place.read(name))
    if not records:
        raise StorageError(f"there is no study {name!r} in {place.place}")
    records[0] = _moved(records[0], place.folder, target.folder)
    target.create(new, records[0])
    there = list(target.read(new))
    if there != records[: len(there)]:
        raise InputError(f"there is another study {new!r} in {target.place}; name the copy by as_=, --as")
    for start in range(len(there), len(records), MANY):
        if not target.append(new, records[start : start + MANY], after=start):
            raise StorageError(f"{target.place}: somebody else writes to {new!r}; the copy is not finished")
    if list(target.read(new)) != records:
        raise StorageError(f"{target.place}: the copy of {name!r} is not what was copied; delete it and copy again")
    return len(records)


def _same(one: Storage, other: Storage) -> bool:
    mine, theirs = (getattr(place, "path", None) for place in (one, other))
    if mine and theirs:
        return bool(os.path.realpath(mine) == os.path.realpath(theirs))
    return one is other or (one.place == other.place and one.place != "memory")


def _moved(first: Record, folder: Path | None, to: Path | None) -> Record:
    """Return the first record with the place of its table as it is seen from another folder."""
    at = first["arms"].get("at")
    if at is None or Path(at).is_absolute() or "://" in at or folder is None or folder == to:
        return first
    return {**first, "arms": {**first["arms"], "at": str((folder / at).resolve())}}


def copy_results(old: Study, new: Study) -> int:
    """Take what counts in one study into another as results nobody asked for; return how many were new.

    Each keeps its time, its source and its file; a result of trial T0010 of the study `old` is called "T0010 of old".
    Corrections have been made, and what is excluded stays behind. Copied again, a result counts once.
    """
    there = old.sync()
    told = sorted((one for one in there.told if not one.excluded), key=lambda one: (one.record, one.file))
    groups = [list(group) for _, group in groupby(told, key=lambda one: (one.record, one.file))]

    def make(state: StudyState) -> list[Record]:
        return [record for group in groups for record in _taken(there, state, group)]

    return new.write(make)


def _taken(there: StudyState, state: StudyState, group: list[Result]) -> list[Record]:
    """Return the record, if there is something new, that tells results of another study which were told together."""
    first = group[0]
    more: Record = {"time": first.time} | ({"source": first.source} if first.source else {})
    if first.file and first.file in there.files:
        more = {**more, "file": {"name": first.file, "digest": there.files[first.file].digest}}
    return [{**record, **more} for record in telling(state, [_as_extra(there, state, one) for one in group])]


def _as_extra(there: StudyState, state: StudyState, result: Result) -> Record:
    """Return a result of another study as one that nobody asked for."""
    arm, name = there.ids[result.arm], result.name
    label = f"{id_of(name)} of {there.name}" if isinstance(name, int) else name
    if arm not in state.places:
        raise InputError(
            f"arm {arm!r} has results in {there.name!r}, such as {label}, but is not among the new arms: give a table "
            "that has it, or exclude its results first"
        )
    _check(state, result, label)
    block = {} if result.block is None else {"block": result.block}
    out = said(result.count, result.sum, result.squares, result.scatter)
    return {
        "id": label,
        "arm": state.places[arm],
        **out,
        **block,
    }


def _check(state: StudyState, result: Result, label: str) -> None:
    """Refuse a result that the new model cannot have produced."""
    try:
        state.rewards.law.check(Tally(*np.array([result.count, result.sum, result.squares])))
    except RewardError as error:
        raise RewardError(f"{label}, {result.sum:g}: {error}") from None


def _is_old(log: Log) -> bool:
    try:
        return log.sync().version == 1
    except BestArmError as error:
        warn(f"study {log.name!r} is left as it is: {error}", BestArmWarning, stacklevel=3)
        return False


def upgrade_storage(storage: Any, copy: Any = None) -> tuple[list[str], str]:
    """Make every study of version 1 in a storage one of version 2, after copying it; return which, and where to.

    Without `copy` the copies go into a journal beside the storage's file. One that cannot be read is left as it is,
    with a warning.
    """
    place = open_storage(storage)
    names = place.names()
    if not names:
        raise StorageError(f"there is no study in {place.place}; is it the right place?")
    old = [log for log in (Log(name, place) for name in names) if _is_old(log)]
    if not old:
        return [], ""
    path = getattr(place, "path", None)
    if copy is None and path is None:
        raise InputError(f"{place.place} is no file: say where the copy goes, as in copy='before.jsonl' or --copy")
    target = open_storage(copy if copy is not None else Path(f"{path}.before-upgrade.jsonl"))
    for log in old:
        copy_study(log.name, place, target)
    for log in old:
        log.upgrade()
    return [log.name for log in old], target.place
