"""Every trial and every extra result of a study as a row: what people look at before they put something right."""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from bestarm.study.state import Result, StudyState
from bestarm.study.trials import id_of
from bestarm.tables.sheet import as_number

COLUMNS = ("trial", "arm", "value", "state", "time", "source", "count", "why", "corrections")
TEXTS = ("trial", "well", "arm", "state", "source", "why", "corrections")


def rows(state: StudyState) -> list[dict[str, Any]]:
    """Return the rows: trials in the order of handing out, a sum at its first one, then what nobody asked for."""
    reasons = {failure["trial"]: str(failure["reason"]) for failure in state.failures}
    times = {failure["trial"]: (failure["time"], failure.get("source", "")) for failure in state.failures}
    found = []
    for trial in range(1, state.handed + 1):
        result = state.results.get(trial)
        if result is not None and result.name != trial:
            continue  # part of a sum
        if result is not None:
            found.append(_told(state, result))
            continue
        when, who = times.get(trial, (None, ""))
        cells = (id_of(trial), state.ids[state.arm_of(trial)], None, _standing(state, trial), when, who, 0)
        found.append(dict(zip(COLUMNS, (*cells, reasons.get(trial, ""), ""), strict=True)))
    return found + [_told(state, result) for result in state.told if not result.of]


def frame(rows: Sequence[dict[str, Any]], backend: Any) -> Any:
    """Return rows as a data frame of the library named."""
    return framed({key: [row[key] for row in rows] for key in COLUMNS}, backend)


def _told(state: StudyState, result: Result) -> dict[str, Any]:
    name = result.name if isinstance(result.name, str) else id_of(result.name)
    if len(result.of) > 1:
        name += f" and {len(result.of) - 1} more"
    holding = [f"{state.changes[number].kind} (record {number})" for number in result.corrections]
    why = "; ".join(filter(None, (state.changes[number].why for number in result.corrections)))
    standing = "excluded" if result.excluded else "told"
    cells = (name, state.ids[result.arm], result.sum, standing, result.time, result.source, int(result.count))
    return dict(zip(COLUMNS, (*cells, why, ", ".join(holding)), strict=True))


def _standing(state: StudyState, trial: int) -> str:
    if trial in state.handed_back:
        return "handed back"
    if trial in state.failed:
        return "failed"
    return "out" if state.is_out(trial) else "unanswered"


def framed(columns: Mapping[str, Sequence[Any]], backend: Any) -> Any:
    """Return columns as a data frame of a library: ids as text, times as dates, other columns as numbers if all are."""
    import narwhals

    schema: dict[str, Any] = {}
    found: dict[str, list[Any]] = {}
    for name, cells in columns.items():
        found[name] = list(cells)
        if name == "time":
            schema[name] = narwhals.Datetime("us", "UTC")
            found[name] = [None if cell is None else _date(cell) for cell in cells]
        elif name not in TEXTS and all(cell is None or is_plain(cell) for cell in cells):
            whole = len(cells) > 0 and all(isinstance(cell, int) for cell in cells)
            schema[name] = narwhals.Int64() if whole else narwhals.Float64()
            found[name] = [None if cell is None else cell if whole else float(cell) for cell in cells]
        else:
            schema[name] = narwhals.String()
    return narwhals.from_dict(found, schema=schema, backend=backend).to_native()


def is_plain(cell: Any) -> bool:
    """Return whether a cell is a number that says the same without its text: not so 007."""
    text = str(cell)
    return not math.isnan(as_number(text)) and not re.match(r"[+-]?0\d", text)


def _date(seconds: float) -> datetime | None:
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        return None
