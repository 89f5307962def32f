"""How the columns of a table become features: it can be printed, stored, and applied to new rows."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from bestarm.errors import ArmsError, UnknownNameError
from bestarm.tables.cells import first_date
from bestarm.tables.sheet import Floats, Sheet, as_text

FEW_LEVELS = 20  # as many as this are plausible in any table, however short
BLANK = "(blank)"
FILLING = {"refuse": "", "error": "", "mean": "filled", "category": "marked"}  # what becomes of blank features
SCALES: dict[str, Callable[[Floats], tuple[float, float]]] = {
    "none": lambda values: (0.0, 1.0),
    "minmax": lambda values: (float(values.min()), float(values.max() - values.min())),
    "standard": lambda values: (float(values.mean()), float(values.std())),
}


@dataclass(frozen=True)
class Column:
    """How a column became features: `(x - shift) / unit`, or 0/1 for each of its levels but the baseline.

    x is a number, its decimal logarithm where `log` is set, or days since the `first` of dates. A blank one is `fill`,
    and told apart by one more feature, 1 where it was blank, if `marked`.
    """

    name: str
    shift: float = 0.0
    unit: float = 1.0
    levels: tuple[str, ...] = ()
    baseline: str | None = None
    log: bool = False
    first: str | None = None
    fill: float | None = None
    marked: bool = False

    @classmethod
    def of(
        cls,
        sheet: Sheet,
        name: str,
        text: bool,
        scale: str,
        intercept: bool,
        missing: str = "refuse",
        log: bool = False,
    ) -> "Column":
        """Return how to encode a column: a number if half of its cells are, unless it is to be `text`."""
        if scale not in SCALES:
            raise UnknownNameError("scale", scale, SCALES)
        if missing not in FILLING:
            raise UnknownNameError("rule for missing cells", str(missing), FILLING)
        there, numeric = sheet.counts(name)
        if there and 2 * numeric >= there and not text:
            first = first_date(sheet.columns[name])
            plain = cls(name, log=log, first=first, marked=FILLING[missing] == "marked")
            return plain._fitted(sheet, scale, there < len(sheet.columns[name]) and FILLING[missing] != "")
        levels = tuple(sorted(set(sheet.texts(name, blank=FILLING[missing] == "marked"))))
        if len(levels) > max(FEW_LEVELS, there / 2) and not text:
            hint = "use it as id=, exclude= it, or name it categorical"
            raise ArmsError(f"column {name!r}: too many levels, {len(levels)} in {there} arms; {hint}")
        return cls(name, levels=levels, baseline=levels[0] if intercept else None)

    def _fitted(self, sheet: Sheet, scale: str, filling: bool) -> "Column":
        """Return the column with what its numbers are scaled by, and what fills its blanks, the mean of the others."""
        fill = None
        if filling:
            known = [value for value in self._read(sheet).tolist() if not np.isnan(value)]
            fill = float(np.mean(known)) if known else None
        one = replace(self, fill=fill, marked=self.marked and filling)
        values = one.values(sheet)
        # A constant has no spread to divide by, and stays as it is.
        with np.errstate(all="ignore"):
            shift, unit = SCALES["none" if (values == values[0]).all() else scale](values)
        return replace(one, shift=shift, unit=unit)

    def _read(self, sheet: Sheet) -> Floats:
        values = sheet.values(self.name, self.first)
        with np.errstate(all="ignore"):
            return np.log10(values) if self.log else values

    def values(self, sheet: Sheet) -> Floats:
        """Return the numbers x `(K,)` of the column, blanks filled where that was said."""
        found = self._read(sheet)
        if self.fill is not None:
            blank = [row for row in np.flatnonzero(np.isnan(found)).tolist() if sheet.blank(self.name, row)]
            found[blank] = self.fill
        if np.isnan(found).any():
            sheet.numbers(self.name, first=self.first)
            raise ArmsError(f"column {self.name!r}: a logarithm needs numbers above 0")
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each feature, such as "width" or "body=sedan"."""
        kept = tuple(f"{self.name}={level or BLANK}" for level in self.levels if level != self.baseline)
        return kept if self.levels else (self.name,) + (f"{self.name}={BLANK}",) * self.marked

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the column that its cells do not say."""
        found = [f"dates, as days since {self.first}"] * (self.first is not None)
        found += ["logarithms are taken"] * self.log
        if self.fill is not None:
            marked = f", and marked by {self.name}={BLANK}" * self.marked
            found.append(f"blanks are filled with {self.fill:g}, the mean of the others{marked}")
        found += [f"blanks are a level, {self.name}={BLANK}"] * ("" in self.levels)
        return tuple(f"column {self.name!r}: {what}" for what in found)

    def encode(self, sheet: Sheet) -> Floats:
        """Return the features `(K, len(names))` of a table of K rows."""
        if self.levels:
            known = sheet.texts(self.name, self.levels, blank="" in self.levels)
            cells = [f"{self.name}={cell or BLANK}" for cell in known]
            same = np.array(cells, dtype=object)[:, None] == np.array(self.names, dtype=object)
            return np.asarray(same, dtype=np.float64)
        with np.errstate(all="ignore"):
            feature: Floats = (self.values(sheet)[:, None] - self.shift) / self.unit
        if not (np.isfinite(feature).all() and np.isfinite([self.shift, self.unit]).all()):
            raise ArmsError(f"column {self.name!r}: too large or too close to scale; use scale='none'")
        blank = np.isnan(sheet.values(self.name, self.first))[:, None] if self.marked else feature[:, :0]
        return np.hstack([feature, blank])


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table became features; it can be printed, stored, and applied to new rows.

    >>> encoding = Encoding((Column("width", shift=60.0, unit=2.0), Column("body", levels=("open", "sedan"))))
    >>> encoding.apply([{"width": 64, "body": "sedan"}])
    array([[2., 0., 1.]])
    """

    columns: tuple[Column, ...]
    intercept: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the d features, the intercept first."""
        return ("intercept",) * self.intercept + tuple(name for one in self.columns for name in one.names)

    def apply(self, rows: Iterable[Mapping[str, object]]) -> Floats:
        """Return the features `(K, d)` of K rows, each a mapping from column to cell."""
        given = list(rows)
        sheet = Sheet({one.name: [as_text(row.get(one.name)) for row in given] for one in self.columns})
        parts = [one.encode(sheet) for one in self.columns]
        return np.hstack([np.ones((len(given), int(self.intercept))), *parts])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, free of None and of what is seldom said, fit for JSON or TOML."""
        return asdict(
            self, dict_factory=lambda pairs: {k: v for k, v in pairs if v is not None and (k, v) not in USUAL}
        )

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Encoding":
        """Return the encoding that `to_dict` made `plain` of."""
        try:
            columns = [Column(**{**one, "levels": tuple(one.get("levels", ()))}) for one in plain["columns"]]
            return cls(tuple(columns), bool(plain["intercept"]))
        except (AttributeError, KeyError, TypeError) as error:
            raise ArmsError(f"not a stored encoding: {error!r}") from error


USUAL = (("log", False), ("marked", False))  # of a column, as logs of earlier studies have it
