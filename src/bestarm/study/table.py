"""Every trial and every extra result of a study as a row: what people look at before they put something right."""

from collections.abc import Sequence
from typing import Any

from bestarm.study.state import Result, StudyState
from bestarm.study.trials import id_of

COLUMNS = ("trial", "arm", "value", "state", "time", "source", "count", "why", "corrections")


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
    import narwhals

    columns = {key: [row[key] for row in rows] for key in COLUMNS}
    return narwhals.from_dict(columns, backend=backend).to_native()


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
