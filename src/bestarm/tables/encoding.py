"""How the columns of a table become features: it can be printed, stored, and applied to new rows."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bestarm.errors import ArmsError, UnknownNameError
from bestarm.tables.sheet import Floats, Sheet, as_text

FEW_LEVELS = 20  # as many as this are plausible in any table, however short
SCALES: dict[str, Callable[[Floats], tuple[float, float]]] = {
    "none": lambda values: (0.0, 1.0),
    "minmax": lambda values: (float(values.min()), float(values.max() - values.min())),
    "standard": lambda values: (float(values.mean()), float(values.std())),
}


@dataclass(frozen=True)
class Column:
    """How a column became features: `(x - shift) / unit`, or 0/1 for each of its levels but the baseline."""

    name: str
    shift: float = 0.0
    unit: float = 1.0
    levels: tuple[str, ...] = ()
    baseline: str | None = None

    @classmethod
    def of(cls, sheet: Sheet, name: str, text: bool, scale: str, intercept: bool) -> "Column":
        """Return how to encode a column: a number if half of its cells are, unless it is to be `text`."""
        if scale not in SCALES:
            raise UnknownNameError("scale", scale, SCALES)
        there, numeric = sheet.counts(name)
        if there and 2 * numeric >= there and not text:
            values = sheet.numbers(name)
            # A constant has no spread to divide by, and stays as it is.
            with np.errstate(all="ignore"):
                return cls(name, *SCALES["none" if (values == values[0]).all() else scale](values))
        levels = tuple(sorted(set(sheet.texts(name))))
        if len(levels) > max(FEW_LEVELS, there / 2) and not text:
            hint = "use it as id=, exclude= it, or name it categorical"
            raise ArmsError(f"column {name!r}: too many levels, {len(levels)} in {there} arms; {hint}")
        return cls(name, levels=levels, baseline=levels[0] if intercept else None)

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each feature, such as "width" or "body=sedan"."""
        kept = tuple(f"{self.name}={level}" for level in self.levels if level != self.baseline)
        return kept if self.levels else (self.name,)

    def encode(self, sheet: Sheet) -> Floats:
        """Return the features `(K, len(names))` of a table of K rows."""
        if self.levels:
            cells = [f"{self.name}={cell}" for cell in sheet.texts(self.name, self.levels)]
            same = np.array(cells, dtype=object)[:, None] == np.array(self.names, dtype=object)
            return np.asarray(same, dtype=np.float64)
        with np.errstate(all="ignore"):
            feature: Floats = (sheet.numbers(self.name)[:, None] - self.shift) / self.unit
        if not (np.isfinite(feature).all() and np.isfinite([self.shift, self.unit]).all()):
            raise ArmsError(f"column {self.name!r}: too large or too close to scale; use scale='none'")
        return feature


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
        """Return plain values, free of None, fit for JSON or TOML."""
        return asdict(self, dict_factory=lambda pairs: {k: v for k, v in pairs if v is not None})

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Encoding":
        """Return the encoding that `to_dict` made `plain` of."""
        try:
            columns = [Column(**{**one, "levels": tuple(one.get("levels", ()))}) for one in plain["columns"]]
            return cls(tuple(columns), bool(plain["intercept"]))
        except (AttributeError, KeyError, TypeError) as error:
            raise ArmsError(f"not a stored encoding: {error!r}") from error
