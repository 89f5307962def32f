"""A person's table as it was written: columns of text, of a file or a frame, and checked."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from reprlib import repr as shorten
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bestarm.errors import ArmsError, UnknownNameError
from bestarm.tables.cells import ABSENT, MISSING, days, like_number, plain_columns, there, way_out

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Numbers(Sequence[str]):
    """A column of numbers `(K,)`, each as text where somebody reads it."""

    values: NDArray[Any]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[str]:
        return map(str, self.values.tolist())

    def __getitem__(self, at: Any) -> Any:
        found = self.values[at]
        return list(map(str, found.tolist())) if isinstance(at, slice) else str(found.item())


@dataclass(frozen=True)
class Sheet:
    """Columns of text cells, what to call each row in an error, and what was found when they were read."""

    columns: Mapping[str, Sequence[str]]
    places: Sequence[str] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, frame: Any, id: str | None = None) -> "Sheet":
        """Take the cells of a data frame, whose index may be the column `id`, or of dicts, a row each, as text."""
        if not isinstance(frame, list | tuple):
            return Frame.of(frame).named(id).sheet()
        for row, given in enumerate(frame, 1):
            if not isinstance(given, Mapping):
                raise ArmsError(f"row {row}: expected a dict of cells by column, as in row 1; given {shorten(given)}")
        names = dict.fromkeys(name for given in frame for name in given)
        return cls({str(name): [as_text(given.get(name)) for given in frame] for name in names})

    def known(self, names: Iterable[str]) -> list[str]:
        """Return `names` once each, or refuse one that is not a column."""
        return known(self.columns, names)

    def plain(self, keep: Collection[str | None] = (), na: Iterable[str] = (), apart: bool = False) -> "Sheet":
        """Return the sheet with numbers and dates as programs write them, but for columns to `keep` as they stand.

        `na` are more texts that mean a missing cell, in any column.
        """
        absent = {text.strip().lower() for text in ([na] if isinstance(na, str) else na)}
        columns = {
            name: ["" if cell.lower() in absent else cell for cell in cells] if absent else cells
            for name, cells in self.columns.items()
        }
        some = [(name, cells) for name, cells in columns.items() if name not in keep]
        found, notes = plain_columns(some, apart)
        written = {name: cells for (name, _), cells in zip(some, found, strict=True)}
        return replace(self, columns={**columns, **written}, notes=(*self.notes, *notes))

    def place(self, row: int) -> str:
        """Return what to call a row."""
        return self.places[row] if self.places else f"row {row + 1}"

    def finding(self, row: int, name: str, expected: str, way: str) -> str:
        """Return a line that says where a cell is, what it holds, and what was expected there."""
        found = self.columns[name][row]
        hint = way_out(found)
        way = f"; {hint}, or {way.removeprefix('or ')}" if hint else f"; fix it, {way}"
        return f"{self.place(row)}, column {name!r}: expected {expected}, found {shorten(found)}{way}"

    def numbers(
        self, name: str, way: str = "exclude the column, or name it categorical", first: str | None = None
    ) -> Floats:
        """Return a column as finite numbers `(K,)`, dates as days since the `first`; refuse cells that are none."""
        values = self.values(name, first)
        wrong = np.flatnonzero(np.isnan(values))
        if len(wrong):
            expected = "a number" if first is None else f"a date such as {first}"
            blank = ", or fill it, missing='mean', --missing mean" if "exclude" in way else ""
            raise ArmsError(
                *(self.finding(row, name, expected, way + blank * self.blank(name, row)) for row in wrong.tolist())
            )
        return values

    def values(self, name: str, first: str | None = None) -> Floats:
        """Return a column as numbers `(K,)`, dates as days since the `first`, NaN where a cell is none."""
        return as_numbers(self.columns[name]) if first is None else np.array(days(self.columns[name], first))

    def blank(self, name: str, row: int) -> bool:
        """Return whether a cell of a column of numbers holds nothing."""
        return self.columns[name][row].lower() in MISSING

    def counts(self, name: str) -> tuple[int, int]:
        """Return how many cells of a column hold something, and how many of those are meant as a number or a date."""
        cells = self.columns[name]
        if isinstance(cells, Numbers):
            return int(np.count_nonzero(~np.isnan(cells.values))), int(np.count_nonzero(np.isfinite(cells.values)))
        some = there(cells)
        # What is meant as a number counts, 1,5 or <0.5, so that it is refused rather than read as a level.
        return len(some), sum(not math.isnan(as_number(cell)) or like_number(cell) for cell in some)

    def texts(self, name: str, known: Sequence[str] = (), blank: bool = False) -> Sequence[str]:
        """Return a column as levels, all among those `known`, where given, and none missing unless `blank` is one."""
        cells = self.columns[name]
        if not isinstance(cells, Numbers):
            cells = ["" if cell.lower() in ABSENT else cell for cell in cells] if blank else cells
        wrong = [
            row
            for row, cell in enumerate(cells)
            if (not blank and cell.lower() in ABSENT) or (known and cell not in known)
        ]
        if wrong:
            expected = f"one of the levels {shorten(known)}" if known else "a level"
            way = "exclude the column" + ", or make it a level, missing='category', --missing category" * (not known)
            raise ArmsError(*(self.finding(row, name, expected, way) for row in wrong))
        return cells


def known(columns: Collection[str], names: Iterable[str]) -> list[str]:
    """Return `names` once each, or refuse one that is not among the columns."""
    listed = [names] if isinstance(names, str) else list(dict.fromkeys(names))
    for name in listed:
        if name not in columns:
            raise ArmsError(str(UnknownNameError("column", str(name), columns)))
    return listed


def together(calls: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Return what some functions return, each called with what follows it; whatever they refuse is refused at once."""
    found, wrong = [], list[str]()
    for function, *given in calls:
        try:
            found.append(function(*given))
        except ArmsError as error:
            wrong += error.findings
    if wrong:
        raise ArmsError(*wrong)
    return found


def chosen(
    columns: Collection[str], features: Iterable[str] | None, exclude: Iterable[str], apart: Iterable[str | None]
) -> list[str]:
    """Return the columns that are features: those named, or all but those `apart`, and none to exclude."""
    others = known(columns, (name for name in apart if name is not None))
    wanted = [name for name in columns if name not in others] if features is None else known(columns, features)
    left = known(columns, exclude)
    found = [name for name in wanted if name not in left]
    if not found:
        raise ArmsError(f"no column is left to be a feature, of {shorten(list(columns))}")
    return found


def as_text(cell: object) -> str:
    """Return what a cell says, "" where it holds nothing."""
    return "" if cell is None else str(cell).strip()


def as_number(cell: str) -> float:
    """Return the finite number a cell holds, else NaN."""
    value = as_float(cell)
    return value if math.isfinite(value) else math.nan


def as_numbers(cells: Sequence[str]) -> Floats:
    """Return the finite numbers that cells `(K,)` hold, else NaN."""
    if isinstance(cells, Numbers):
        values = cells.values.astype(np.float64)
        return np.where(np.isfinite(values), values, np.nan)
    return np.array([as_number(cell) for cell in cells], dtype=np.float64)


def as_float(cell: str) -> float:
    """Return the number a cell holds, infinities among them, else NaN."""
    try:
        return math.nan if "_" in cell else float(cell)  # Python alone reads 1_000 as a number
    except ValueError:
        return math.nan


def unique(kind: str, what: str, names: Iterable[str]) -> dict[str, int]:
    """Return the position of each name; one that is no text, blank or repeated is refused."""
    rows: dict[str, int] = {}
    for row, name in enumerate(names):
        if not isinstance(name, str) or not _encodes(name):
            raise ArmsError(f"{kind} {row + 1}: the {what} must be text; given {shorten(name)}")
        if not name or rows.setdefault(name, row) != row:
            both = f"s {rows[name] + 1} and" if name else ""
            raise ArmsError(f"{kind}{both} {row + 1}: the {what} is {name!r}; each needs its own")
    return rows


def _encodes(text: str) -> bool:
    """Return whether a text can be written: not so half of a surrogate pair."""
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


@dataclass(frozen=True)
class Frame:
    """An eager data frame, of pandas, polars, or another library that narwhals knows, by columns."""

    columns: Mapping[str, Any]
    index: tuple[str, Any] | None = None  # of pandas, one that names rows rather than counting them

    @classmethod
    def of(cls, frame: Any) -> "Frame":
        """Take a frame, or refuse what is none."""
        import narwhals.stable.v1 as nw

        try:
            known = nw.from_native(frame, eager_only=True)
        except (TypeError, ValueError) as error:
            raise ArmsError(f"expected an eager data frame such as pandas or polars; {error}") from error
        index: Any = nw.maybe_get_index(known)
        columns: dict[str, Any] = {str(one.name): one for one in known.iter_columns()}
        if index is None or not len(index) or (index.name is None and index.dtype.kind in "iu"):
            return cls(columns)
        name = "index" if index.name is None else str(index.name)
        return cls(columns, (name, nw.from_native(index.to_series(), series_only=True)))

    def named(self, id: str | None) -> "Frame":
        """Return the frame with its index as a column, where `id` is of that name; an index passed over is refused."""
        name, cells = self.index or (None, None)
        if name is not None and id is None:
            way = f"say id={name!r} to call the arms so, or pass frame.reset_index(drop=True)"
            raise ArmsError(f"the rows of the frame are named by its index {name!r}, which is no column: {way}")
        return replace(self, columns={name: cells, **self.columns}) if id is not None and id == name else self

    @property
    def rows(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def texts(self, name: str) -> Sequence[str]:
        """Return the cells of a column as text, "" where one is missing."""
        column = self.columns[name]
        missing, kind = column.is_null(), column.dtype
        if (kind.is_integer() or kind.is_float()) and not missing.any():
            return Numbers(np.array(column.to_numpy()))
        cells = zip(column.to_list(), missing.to_list(), strict=True)
        return ["" if null else as_text(cell) for cell, null in cells]

    def numbers(self, names: Iterable[str]) -> Floats:
        """Return columns of numbers `(K, d)`, NaN where a cell is missing."""
        import narwhals.stable.v1 as nw

        for name in names:
            kind = self.columns[name].dtype
            if not (kind.is_numeric() or kind == nw.Boolean):
                raise ArmsError(f"the frame, column {name!r}: expected numbers, found the type {kind}; leave it out")
        return np.column_stack([self.columns[name].cast(nw.Float64).to_numpy() for name in names])

    def sheet(self) -> Sheet:
        """Return all cells as text."""
        return Sheet({name: self.texts(name) for name in self.columns})
