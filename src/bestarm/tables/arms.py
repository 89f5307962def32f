"""A table of candidates: read, checked, and encoded as features `(K, d)`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from reprlib import repr as shorten
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bestarm.errors import ArmsError, InputError, UnknownNameError
from bestarm.numbers import LARGEST_VALUE, counted
from bestarm.tables.cells import MISSING, logged
from bestarm.tables.encoding import Column, Encoding
from bestarm.tables.files import read_file
from bestarm.tables.grid import Given, by_factor, is_number
from bestarm.tables.sheet import Floats, Numbers, Sheet, as_text, chosen, known, together, unique

Names: TypeAlias = Iterable[str] | None
MOST_ALONE = 1000  # arms without features, which have as many features as there are arms


@dataclass(frozen=True, eq=False, repr=False)
class Arms:
    """A table of K candidates: ids, features `(K, d)`, the encoding that made them, a cost each `(K,)`.

    `table` holds the cells as they were read, `notes` what was found in them and done about it.

    >>> from importlib.resources import files
    >>> cars = Arms.from_csv(files("bestarm") / "data/automobile.csv", exclude=["make", "price"])
    >>> cars, cars.column("price", missing="drop").shape
    (Arms(205 arms, 10 features, rank 10), (201,))
    >>> Arms.product({"dose": [1, 2, 4], "form": ["gel", "oil"]}).names
    ('intercept', 'dose', 'form=oil')
    """

    ids: tuple[str, ...]
    features: Floats
    names: tuple[str, ...]
    encoding: Encoding
    cost: Floats | None = None
    notes: tuple[str, ...] = ()
    table: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __new__(cls, *given: Any, **named: Any) -> "Arms":
        if len(given) == 1 and not named:
            ways = "from_frame (a data frame, dicts), from_file (a path), from_arrays, from_grid (a dict of lists)"
            raise InputError(f"Arms are made by Arms.{ways}, without_features (names)")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", _array(self.features, "features", "K, d"))
        unique("feature", "name", self.names)
        if self.names != self.encoding.names or len(self.names) != self.features.shape[1]:
            raise ArmsError(f"{self.features.shape[1]} feature names expected; given {shorten(self.names)}")
        if len(self._rows) != len(self):
            raise ArmsError(f"{len(self)} ids expected, one for each arm; {len(self.ids)} given")
        if self.cost is not None:
            object.__setattr__(self, "cost", _array(self.cost, "cost", "K"))
            if len(self.cost) != len(self) or not (self.cost > 0).all():
                least = f"the least, in row {self.cost.argmin() + 1}, is {self.cost.min():g}"
                raise ArmsError(f"{len(self)} costs above 0 expected; {len(self.cost)} given; {least}")
        object.__setattr__(self, "notes", tuple(dict.fromkeys([*self.notes, *self._findings()])))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        id: str | None = None,
        features: Names = None,
        exclude: Iterable[str] = (),
        categorical: Iterable[str] = (),
        scale: Literal["none", "minmax", "standard"] = "none",
        intercept: bool = False,
        cost: str | None = None,
        missing: Literal["refuse", "mean", "category"] = "refuse",
        na: Iterable[str] = (),
        logs: Iterable[str] = (),
    ) -> "Arms":
        """Take arms from an eager data frame, of pandas, polars, pyarrow or another that narwhals knows, or from dicts.

        `id` is a column, or an index of pandas that names the rows, called "index" where it has no name. Blank features
        are refused, filled with the `mean` of the others, or a `category` of their own; `na` are more texts that mean
        blank. Of the columns `logs` logarithms are taken. What was found goes to `notes`, and to the logger `bestarm`:
        what had to be guessed as a warning, the rest at INFO.
        """
        texts = [categorical] if isinstance(categorical, str) else [*categorical]
        sheet = frame if isinstance(frame, Sheet) else Sheet.of(frame, id).plain({id, *texts}, na)
        count = len(next(iter(sheet.columns.values()), ()))
        if not count:
            raise ArmsError("no arms: the table has no rows")
        empty = [] if features is not None else [name for name, cells in sheet.columns.items() if not any(cells)]
        alone = id is not None and features is None and {*sheet.columns} <= {id, cost, *empty} and count <= MOST_ALONE
        if alone and id is not None:
            features, texts, empty = [id], [*texts, id], []
        used = chosen(sheet.columns, features, [*known(sheet.columns, exclude), *empty], (id, cost))
        sheet.known([*texts, *logs])
        fitted = together(
            (Column.of, sheet, name, name in texts, scale, intercept, missing, name in [*logs]) for name in used
        )
        parts = dict(zip(fitted, together((one.encode, sheet) for one in fitted), strict=True))
        kept = [one for one in fitted if (parts[one] != parts[one][:1]).any()] or fitted[: not intercept]
        constant = {*fitted} - {*kept}
        notes = [*sheet.notes, *(f"column {name!r} is empty: left out" for name in empty if name not in (id, cost))]
        notes += ["there is no column but that of the ids: each arm is for itself"] * alone
        notes += [note for one in kept for note in one.notes]
        notes += [f"column {one.name!r} is constant: dropped" for one in fitted if one in constant]
        matrix = np.hstack([np.ones((count, int(intercept))), *(parts[one] for one in kept)])
        encoding = Encoding(tuple(kept), intercept)
        ids = tuple(map(str, range(1, count + 1))) if id is None else tuple(sheet.columns[id])
        costs = None if cost is None else sheet.numbers(cost, "or leave cost= out")
        logged(notes)
        return cls(ids, matrix, encoding.names, encoding, costs, tuple(notes), sheet.columns)

    @classmethod
    def from_csv(cls, path: str | Path, **options: Any) -> "Arms":
        """Read arms from a CSV file with a header, "-" being standard input; options as in `from_frame`."""
        return cls.from_file(path, **options)

    @classmethod
    def from_file(cls, path: str | Path, *, na: Iterable[str] = (), **options: Any) -> "Arms":
        """Read arms from .xlsx, .ods, .parquet (a folder too), .npy with columns x1, x2, ..., or else a CSV file."""
        texts = options.get("categorical", ())
        keep = {options.get("id"), *([texts] if isinstance(texts, str) else texts)}
        return cls.from_frame(read_file(path, keep, na), **options)

    @classmethod
    def without_features(cls, ids: Iterable[object] | int) -> "Arms":
        """Take arms of which nothing is known but their ids, or their number: each has a feature of its own.

        >>> Arms.without_features(["short", "polite", "with examples"])
        Arms(3 arms, 3 features, rank 3)
        """
        names = [str(row) for row in range(1, ids + 1)] if isinstance(ids, int) else [_id(one) for one in ids]
        if len(names) > MOST_ALONE:
            way = "take Arms.from_arrays(numpy.ones((K, 1)), ids) and model='means'"
            raise ArmsError(f"up to {MOST_ALONE:,} arms can be without features; given {len(names):,}: {way}")
        unique("arm", "id", names)
        return cls.from_frame(Sheet({"arm": names}), id="arm", features=["arm"], categorical=["arm"])

    @classmethod
    def from_arrays(
        cls, features: ArrayLike, ids: Names = None, names: Names = None, *, cost: Floats | None = None
    ) -> "Arms":
        """Take features `(K, d)` as they are: no column is scaled or dropped, so one of ones stays."""
        if hasattr(features, "columns"):
            raise ArmsError(
                "arrays of numbers are expected; of a data frame make arms by Arms.from_frame(frame, id=...)"
            )
        matrix = _array(features, "features", "K, d")
        rows, columns = (map(str, range(1, size + 1)) for size in matrix.shape)
        encoding = Encoding(tuple(map(Column, [f"x{j}" for j in columns] if names is None else names)))
        return cls(tuple(rows if ids is None else map(_id, ids)), matrix, encoding.names, encoding, cost)

    @classmethod
    def product(cls, factors: Mapping[str, Iterable[object]], *, intercept: bool = True) -> "Arms":
        """Make an arm of each combination of levels, with main effects; factors of numbers stay numeric."""
        levels = {name: list(given) for name, given in factors.items()}
        words = [name for name, given in levels.items() if any(isinstance(level, str) for level in given)]
        return cls._combined(levels, as_text, categorical=words, intercept=intercept)

    @classmethod
    def from_grid(cls, grid: Mapping[str, Iterable[object]]) -> "Arms":
        """Make an arm of each combination in a grid of parameters, such as a search of settings takes.

        Numbers that grow by a factor are taken as logarithms; where None or a text stands beside them, all are levels.
        `row` gives the values of an arm as they stand in the grid.

        >>> grid = Arms.from_grid({"C": [0.01, 0.1, 1, 10], "kernel": ["rbf", "linear"], "depth": [None, 3]})
        >>> grid.names, grid.row("C=0.1, kernel=rbf, depth=None")
        (('intercept', 'C', 'kernel=rbf', 'depth=None'), {'C': 0.1, 'kernel': 'rbf', 'depth': None})
        """
        for name, given in grid.items():
            if isinstance(given, str) or not isinstance(given, Iterable):
                raise ArmsError(f"{name!r}: expected a list of its values; given {shorten(given)}")
        levels = {str(name): list(given) for name, given in grid.items()}
        words = [name for name, given in levels.items() if not all(map(is_number, given))]
        logs = [name for name, given in levels.items() if name not in words and by_factor(given)]
        arms = cls._combined(levels, str, categorical=words, intercept=True, logs=logs)
        mixed = [name for name in words if any(map(is_number, levels[name]))]
        notes = [f"column {name!r}: not all of its values are numbers, so each is a level" for name in mixed]
        return replace(arms, notes=(*arms.notes, *notes))

    @classmethod
    def _combined(cls, levels: Mapping[str, list[Any]], text: Callable[[Any], str], **options: Any) -> "Arms":
        rows = list(product(*levels.values()))
        columns = {name: [row[j] for row in rows] for j, name in enumerate(levels)}
        sheet = Sheet({name: Given(values, [text(one) for one in values]) for name, values in columns.items()})
        ids = (", ".join(f"{name}={level}" for name, level in zip(levels, row, strict=True)) for row in rows)
        return replace(cls.from_frame(sheet, **options), ids=tuple(ids))

    @classmethod
    def from_texts(cls, texts: Iterable[str], embed: Callable[[list[str]], ArrayLike]) -> "Arms":
        """Embed K texts as features `(K, d)`; `embed` is called once, with the list of them."""
        given = list(texts)
        arms = cls.from_arrays(embed(given) if given else [])
        if len(arms) != len(given):
            raise ArmsError(f"{len(given)} rows expected from embed, one for each text; {len(arms)} given")
        return replace(arms, table={"text": given})

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        return f"Arms({counted(len(self), 'arm')}, {counted(len(self.names), 'feature')}, rank {self.rank})"

    @cached_property
    def rank(self) -> int:
        """The rank of the features."""
        return _rank(self.features)

    @cached_property
    def _rows(self) -> dict[str, int]:
        return unique("row", "id", self.ids)

    def _findings(self) -> list[str]:
        alike: dict[bytes, list[str]] = {}
        for one, row in zip(self.ids, self.features + 0.0, strict=True):  # -0.0 + 0.0 is 0.0
            alike.setdefault(row.tobytes(), []).append(one)
        groups = [" and ".join(group[:3]) for group in alike.values() if len(group) > 1]
        equal = f"arms {'; '.join(groups[:3])} have equal features: the features cannot tell them apart"
        short = f"the rank is {self.rank}: some features are combinations of others"
        levels = {name for one in self.encoding.columns if one.levels for name in one.names}
        plain = [place for place, name in enumerate(self.names) if name not in levels]  # the 0/1 of a category sum to 1
        lost = self.rank < len(self.names) and _rank(self.features[:, plain]) < len(plain)
        return [f"{equal} (groups: {len(groups)})"] * bool(groups) + [short] * lost

    def __iter__(self) -> Iterator[str]:
        return iter(self.ids)

    def __getitem__(self, id: object) -> Floats:
        """Return the features `(d,)` of the arm called `id`: a name, never the number of a row."""
        found: Floats = self.features[self.index(id)]
        return found

    def row(self, id: object) -> dict[str, Any]:
        """Return what the table says of the arm called `id`, its features where there is no table."""
        at = self.index(id)
        if not self.table:
            return dict(zip(self.names, self.features[at].tolist(), strict=True))
        return {name: _as_given(cells, at) for name, cells in self.table.items()}

    def index(self, id: object) -> int:
        """Return the row, counted from 0, of the arm called `id`."""
        if str(id) not in self._rows:
            raise UnknownNameError("arm", str(id), self.ids)
        return self._rows[str(id)]

    def present(self, name: str) -> NDArray[np.bool_]:
        """Return which arms `(K,)` have something in a column of the table."""
        Sheet(self.table).known([name])
        return np.array([cell.lower() not in MISSING for cell in self.table[name]])

    def column(self, name: str, missing: Literal["error", "mean", "drop"] = "error") -> Floats:
        """Return a column of the table as numbers `(K,)`; "drop" leaves those of the arms `present(name)`."""
        if missing not in ("error", "mean", "drop"):
            raise UnknownNameError("rule for missing cells", str(missing), ("error", "mean", "drop"))
        there = self.present(name)
        if not there.any():
            raise ArmsError(f"column {name!r}: expected numbers, found only missing cells")
        cells = np.where(there | (missing == "error"), np.array(self.table[name], dtype=object), "0").tolist()
        sheet = Sheet({name: cells}, [f"arm {one!r}" for one in self.ids])
        values = sheet.numbers(name, "or set missing=")
        within = f"a number within ±{LARGEST_VALUE:g}"
        wrong = np.flatnonzero(~(np.abs(values) <= LARGEST_VALUE)).tolist()
        if wrong:
            raise ArmsError(*(sheet.finding(row, name, within, "or set missing=") for row in wrong))
        return values[there] if missing == "drop" else np.where(there, values, values[there].mean())

    def subset(self, index: Iterable[int]) -> "Arms":
        """Return the arms at `index`, rows counted from 0 or a mask `(K,)`, in that order."""
        rows = np.arange(len(self))[[*index]]
        table = {name: _some(cells, rows.tolist()) for name, cells in self.table.items()}
        cost = None if self.cost is None else self.cost[rows]
        old, ids = self._findings(), tuple(self.ids[row] for row in rows)
        notes = tuple(note for note in self.notes if note not in old)
        return Arms(ids, self.features[rows], self.names, self.encoding, cost, notes, table)

    def describe(self) -> str:
        """Return a summary in lines: sizes, encoding, cost, notes."""
        cost = "" if self.cost is None else f", cost {self.cost.min():g} to {self.cost.max():g}"
        lines = [f"{counted(len(self), 'arm')}, {counted(len(self.names), 'feature')}, rank {self.rank}{cost}"]
        lines += ["intercept"] * self.encoding.intercept
        for one in self.encoding.columns:
            scaling = f"(x - {one.shift:g}) / {one.unit:g}"
            lines.append(f"{one.name}: {shorten(one.levels) if one.levels else scaling}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def _some(cells: Sequence[str], rows: Sequence[int]) -> Sequence[str]:
    texts = [cells[row] for row in rows]
    return Given([cells.values[row] for row in rows], texts) if isinstance(cells, Given) else texts


def _as_given(cells: Sequence[str], at: int) -> Any:
    """Return a cell as it was given: a number, or any value of a grid, where the column holds more than text."""
    if isinstance(cells, Numbers):
        return cells.values[at].item()
    return cells.values[at] if isinstance(cells, Given) else cells[at]


def _rank(features: Floats) -> int:
    """Return the rank of features, brought within [-1, 1] lest their singular values overflow."""
    peak = np.abs(features).max(initial=0.0)
    return int(np.linalg.matrix_rank(features / peak)) if peak else 0


def _id(given: Any) -> str:
    """Return an id as text; whole numbers may stand for theirs, whatever else is no text is refused."""
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return str(given)
    if not isinstance(given, str):
        raise ArmsError(f"ids must be text or whole numbers; given {shorten(given)}")
    return str(given)


def _array(given: ArrayLike, what: str, shape: str) -> Floats:
    """Return a read-only copy, all finite, with the axes that `shape` names."""
    try:
        raw = np.asanyarray(given)
        if raw.dtype.kind not in "fiubO" or np.ma.is_masked(raw):
            raise TypeError("found masked cells" if np.ma.is_masked(raw) else f"found the type {raw.dtype}")
        array = np.array(raw, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ArmsError(f"{what} must be numbers of shape ({shape}); {error}") from error
    if array.ndim != len(shape.split(",")) or not array.size:
        raise ArmsError(f"{what} must have shape ({shape}) and not be empty; given {array.shape}")
    for spot in np.argwhere(~(np.abs(array) <= LARGEST_VALUE))[:1]:
        found = f"found {array[tuple(spot)]:g} in row {spot[0] + 1}"
        raise ArmsError(f"{what} must be finite numbers within ±{LARGEST_VALUE:g}; {found}")
    array.setflags(write=False)
    return array
