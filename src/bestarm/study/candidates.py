"""A study's table of arms read again: with other options, or more rows of the same columns."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bestarm.errors import ArmsError, InputError
from bestarm.study.limits import whole
from bestarm.study.state import StudyState
from bestarm.tables.arms import Arms
from bestarm.tables.encoding import SCALES, Column, Encoding
from bestarm.tables.files import read_file
from bestarm.tables.sheet import Sheet, as_number, together

ADDED = "was added later and has no row in the table the study keeps: give a table with a row for every arm"


def arms_of(state: StudyState) -> Arms:
    """Return the arms of a study as they are, those added later among them."""
    kept = state.first["arms"]
    table = {
        name: [*cells, *(str(state.added.get(arm, {}).get(name, "")) for arm in range(len(cells), len(state.ids)))]
        for name, cells in _table(state).items()
    }
    cost = None if state.cost is None else np.array(state.cost, dtype=np.float64)
    features = np.array(state.features, dtype=np.float64)
    return Arms(tuple(state.ids), features, tuple(state.names), Encoding.from_dict(kept["encoding"]), cost, (), table)


def arms_anew(state: StudyState, path: str | Path | None = None, **options: Any) -> Arms:
    """Return the arms of a table, of the one the study keeps without a path, read with other options.

    What `options` of `Arms.from_frame` do not say is as it was when the study was made.
    """
    table = _table(state)
    if path is None and not table:
        raise InputError(f"study {state.name!r} keeps no table of its arms: give the table")
    if path is None:
        later = state.ids[len(state.first["arms"]["ids"]) :]
        if later:
            raise InputError(f"arm {later[0]!r} {ADDED}")
    options = {**options_of(state), **options}
    return Arms.from_frame(Sheet(table), **options) if path is None else Arms.from_file(path, **options)


def options_of(state: StudyState) -> dict[str, Any]:
    """Return the options of `Arms.from_frame` that made the arms of a study, as far as these tell."""
    columns, intercept = _encoding(state).columns, _encoding(state).intercept
    return {
        "id": id_column(state), "cost": _cost_column(state), "features": [one.name for one in columns],
        "categorical": [one.name for one in columns if one.levels], "intercept": intercept,
        "scale": _scale(columns, _table(state)), "missing": _missing(columns),
        "logs": [one.name for one in columns if one.log],
    }  # fmt: skip


def more_arms(state: StudyState, path: str | Path, id: str | None = None, cost: str | None = None) -> Arms:
    """Return the arms of another table with the columns of the study's, encoded as those were."""
    whole(state)
    encoding = _encoding(state)
    texts = [one.name for one in encoding.columns if one.levels]
    sheet = read_file(path, {id or id_column(state), *texts})
    sheet.known(one.name for one in encoding.columns)
    rows = len(next(iter(sheet.columns.values())))
    parts = together((one.encode, sheet) for one in encoding.columns)
    features = np.hstack([np.ones((rows, int(encoding.intercept))), *parts])
    costs = None
    if state.cost is not None or cost is not None:
        column = cost or _cost_column(state)
        if column is None:
            raise InputError("the arms of this study have costs: name the column of the new arms' costs, --cost COLUMN")
        costs = sheet.numbers(sheet.known([column])[0], "a cost is needed")
    return Arms(_new_ids(state, sheet, id, rows), features, encoding.names, encoding, costs, (), sheet.columns)


def _new_ids(state: StudyState, sheet: Sheet, id: str | None, rows: int) -> tuple[str, ...]:
    """Return the ids of more arms: a column's cells, or, where rows are numbered, the numbers that come next."""
    column = id or id_column(state)
    if column is not None:
        return tuple(sheet.columns[sheet.known([column])[0]])
    first = state.first["arms"]["ids"]
    if first != [str(row) for row in range(1, len(first) + 1)]:
        raise InputError("no column of the study's table has its arms' ids: name that of the new ones, --id COLUMN")
    return tuple(str(len(state.ids) + row) for row in range(1, rows + 1))


def _table(state: StudyState) -> Mapping[str, Sequence[str]]:
    """Return the columns of the study's table as they were written, none where it had no table."""
    table = state.first["arms"].get("table")
    return {name: cells for name, cells in (table or {}).items() if isinstance(cells, list)}


def _encoding(state: StudyState) -> Encoding:
    return Encoding.from_dict(state.first["arms"]["encoding"])


def id_column(state: StudyState) -> str | None:
    """Return the column of the study's table that has its arms' ids, None where none has."""
    return _column(state, lambda cells: cells == state.first["arms"]["ids"])


def _cost_column(state: StudyState) -> str | None:
    costs = state.first["arms"].get("cost")
    return None if costs is None else _column(state, lambda cells: [as_number(cell) for cell in cells] == costs)


def _column(state: StudyState, fits: Callable[[Sequence[str]], bool]) -> str | None:
    """Return the first column of the study's table whose cells fit, those that are no features before the others."""
    features: Iterable[str] = {one.name for one in _encoding(state).columns}
    found = [name for name, cells in _table(state).items() if fits(cells)]
    return min(found, key=lambda name: name in features, default=None)


def _missing(columns: Sequence[Column]) -> str:
    """Return what became of blank features."""
    if any(one.marked or "" in one.levels for one in columns):
        return "category"
    return "mean" if any(one.fill is not None for one in columns) else "refuse"


def _scale(columns: Sequence[Column], table: Mapping[str, Sequence[str]]) -> str:
    """Return how numbers were scaled."""
    for one in columns:
        if not one.levels and (one.shift, one.unit) != (0.0, 1.0) and one.name in table:
            try:
                values = replace(one, shift=0.0, unit=1.0).values(Sheet(table))
            except ArmsError:
                continue
            found = (one.shift, one.unit)
            return min(SCALES, key=lambda scale: float(np.abs(np.subtract(SCALES[scale](values), found)).sum()))
    return "none"
