"""What is wrong with a storage, and what to do about it."""

import sqlite3
import time
from dataclasses import dataclass

from bestarm.errors import BestArmError
from bestarm.study.fold import VERSION
from bestarm.study.storage import Journal, SQLite, Storage
from bestarm.study.study import Study

TAIL = 1 << 24  # bytes looked at for a last line cut short


@dataclass(frozen=True)
class Finding:
    """Something a doctor saw, in a study or, without a name, in the storage; `wrong` if it wants doing something."""

    study: str
    wrong: bool
    says: str


def examine(storage: Storage) -> list[Finding]:
    """Read every study of a storage from its first record to its last, and say what was found."""
    found = _file(storage)
    try:
        names = storage.names()
    except BestArmError as error:
        hint = "restore the file from a copy, or name another storage"
        return [*found, Finding("", True, f"{error}; {hint}")]
    if not names:
        found.append(Finding("", True, "there is no study here; is it the right place?"))
    for name in names:
        found += _study(name, storage)
    return found


def _file(storage: Storage) -> list[Finding]:
    """Return what is odd about the file itself."""
    path = getattr(storage, "path", None)
    if path is None or not path.exists():
        return []
    try:
        if isinstance(storage, Journal):
            with path.open("rb") as file:
                file.seek(-min(TAIL, path.stat().st_size), 2)
                return _torn(file.read())
        if isinstance(storage, SQLite):
            db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
            try:
                said = db.execute("PRAGMA quick_check(1)").fetchone()[0]
            finally:
                db.close()
            return [] if said == "ok" else [Finding("", True, f"the database is damaged: {said}; restore a copy")]
    except (OSError, sqlite3.Error) as error:
        return [Finding("", True, f"{path} cannot be read: {error}")]
    return []


def _torn(end: bytes) -> list[Finding]:
    torn = len(end) - end.rfind(b"\n") - 1
    if not torn:
        return []
    says = f"the last line is cut short ({torn} bytes): a write was interrupted before it was confirmed, so no told "
    return [Finding("", True, says + "result is lost; the next ask or tell removes it")]


def _study(name: str, storage: Storage) -> list[Finding]:
    try:
        study = Study(name, storage)
        best, out = study.best_arm, study.pending()
    except BestArmError as error:
        hint = f"this bestarm reads logs up to version {VERSION}; update it, or delete the study if it is of no use"
        return [Finding(name, True, f"{error}; {hint}")]
    fold = study.fold
    told = int(sum(fold.counts))
    state = "over" if fold.round is None else f"round {fold.round.number + 1}"
    lines = [f"{fold.records} records, {told} results, {fold.used:g} of {fold.budget:g} spent, {state}; ahead: {best}"]
    if out:
        asked = [one["time"] for one in storage.read(name) if one["kind"] == "ask" and one["round"] == fold.rounds - 1]
        days = (time.time() - min(asked)) / 86400 if asked else 0.0
        lines.append(f"{len(out)} trials are out, the oldest for {days:.1f} days; `ask --pending` lists them")
    if fold.failures:
        lines.append(f"{len(fold.failures)} trials failed, the last because: {fold.failures[-1]['reason']}")
    return [Finding(name, False, line) for line in lines]
