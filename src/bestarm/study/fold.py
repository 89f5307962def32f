"""Records in, the state of a study out."""

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

from bestarm.errors import StorageError
from bestarm.study.kinds import FIRST, LATER
from bestarm.study.state import VERSION, StudyState
from bestarm.study.storage import Record, Records

MISREAD = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


def apply(state: StudyState, records: Iterable[Record], first: Record | None = None) -> None:
    """Take more records in, of version 2; `first` is the first of them where somebody has parsed it already."""
    place = getattr(records, "place", f"study {state.name!r}")
    check_mark(state, records)
    record: Record = {}
    try:
        with _uncollected():
            for record in chain([first], records.after(1)) if first and isinstance(records, Records) else records:
                (LATER if state.first else FIRST)[record["kind"]](state, record)
                state.records += 1
    except MISREAD as error:
        raise StorageError(f"{place}: record {state.records} {trouble(record, error)}") from error
    finally:
        state.recount()


def take(state: StudyState, record: Record) -> None:
    """Take one record in; its number is `state.records`."""
    (LATER if state.first else FIRST)[record["kind"]](state, record)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the collector of cycles away: a million new results set it off again and again, and have none."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def check_mark(state: StudyState, records: Iterable[Record]) -> None:
    """Refuse records of another log of the same name."""
    mark = getattr(records, "mark", state.mark)
    if state.records and mark != state.mark:
        place = getattr(records, "place", f"study {state.name!r}")
        raise StorageError(f"{place}: the study read before was deleted, and this is another of its name; load it")
    state.mark = mark


def trouble(record: Any, error: Exception) -> str:
    """Return what is wrong with a record, as the rest of a sentence."""
    kind = record.get("kind") if isinstance(record, dict) else None
    if not isinstance(kind, str) or kind not in {*FIRST, *LATER, "upgrade"}:
        needed = record.get("version") if isinstance(record, dict) else None
        newer = f"needs log version {needed}" if needed else "may be a newer bestarm's"
        return f"is of an unknown kind, {kind!r}, which {newer}; this bestarm reads up to version {VERSION}"
    if isinstance(error, KeyError) and error.args == (kind,):
        return f"is {kind!r}, which does not belong here"
    why = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return f"cannot be read: {why or type(error).__name__}"
