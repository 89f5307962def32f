"""Cells as people write them, made plain: decimal commas, thousands kept apart, dates, a row of units."""

import logging
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

log = logging.getLogger("bestarm")

MISSING = frozenset({"", "?", "na", "nan", "null", "none", "n/a", "#n/a", "-", "\u2013", "\u2014"})  # of numbers
FEW = 50  # cells among which there is a number, in a column of them
ABSENT = frozenset({"", "?", "nan", "null", "#n/a"})  # of texts, where NA or None may be a level
APART = " \u00a0\u202f\u2009'\u2019"
MARKS = APART + ",\u2212"  # which no program writes in a number
DOTS = re.compile(r"\d\.\d{3}\.\d")
SIGN, POWER, GROUPS = r"[+\-\u2212]?", r"(?:[eE][+\-]?\d+)?", rf"[1-9]\d{{0,2}}(?:[{APART}]\d{{3}})+"
POINT = re.compile(rf"{SIGN}(?:(?:\d+|{GROUPS}|[1-9]\d{{0,2}}(?:,\d{{3}})+)(?:\.\d*)?|\.\d+){POWER}", re.ASCII)
COMMA = re.compile(rf"{SIGN}(?:(?:\d+|{GROUPS}|[1-9]\d{{0,2}}(?:\.\d{{3}})+)(?:,\d*)?|,\d+){POWER}", re.ASCII)
BOUNDED = re.compile(r"[<>\u2264\u2265]\s*=?\s*[\d.,]+\s*%?")
PERCENT = re.compile(r"[+\-]?[\d.,]+\s*[%\u2030]")
CLOCK = r"(?:[T ]+(\d{1,2}:\d\d(?::\d\d(?:\.\d{1,6})?)?)(Z|[+-]\d\d:?\d\d)?)?"
DATES = {
    "year": re.compile(rf"(?P<y>\d{{4}})([-/])(?P<m>\d\d?)\2(?P<d>\d\d?){CLOCK}", re.ASCII),
    "dots": re.compile(rf"(?P<d>\d\d?)\.\s?(?P<m>\d\d?)\.\s?(?P<y>\d{{4}}){CLOCK}", re.ASCII),
    "day": re.compile(rf"(?P<d>\d\d?)([-/])(?P<m>\d\d?)\2(?P<y>\d{{4}}){CLOCK}", re.ASCII),
    "month": re.compile(rf"(?P<m>\d\d?)([-/])(?P<d>\d\d?)\2(?P<y>\d{{4}}){CLOCK}", re.ASCII),
}
UNIT = re.compile(r"[\[(]?[^\d\s\[\]()][^\[\]()]{0,19}[\])]?|1/\w{1,9}|[\[(][^\[\]()]{0,19}[\])]")
BARE = frozenset({"", "-", "[-]", "(-)", "unit", "units", "einheit", "einheiten"})  # beside units, over texts


class Guess(str):
    """A note on what a file does not say, so that it was guessed and may be wrong."""

    __slots__ = ()


def logged(notes: Iterable[str]) -> None:
    """Say what was found in reading to the logger `bestarm`: as a warning what was guessed, the rest at INFO."""
    for note in notes:
        log.log(logging.WARNING if isinstance(note, Guess) else logging.INFO, note, extra={"note": True})


def there(cells: Iterable[str], most: int | None = None) -> list[str]:
    """Return the cells that hold something, in a column of numbers; the first of them where `most` are wanted."""
    return [*islice((cell for cell in cells if cell.lower() not in MISSING), most)]


def like_number(cell: str) -> bool:
    """Return whether a cell is meant as a number, though it may not be read as one: 1,5 or <0.5 or 12 % or a date."""
    return any(one.fullmatch(cell) for one in (POINT, COMMA, BOUNDED, PERCENT, *DATES.values()))


def way_out(cell: str) -> str:
    """Return what is to be done about a cell that is no number, "" where nothing special is."""
    if BOUNDED.fullmatch(cell):
        return "write a number in its place, such as half the limit, the same way in all rows, or leave it blank"
    if PERCENT.fullmatch(cell):
        return "write the number alone, 12 or 0.12, the same way in all rows"
    if COMMA.fullmatch(cell):
        return "write it with a decimal point as in 1.5, or all of the column with a comma"
    if DATES["day"].fullmatch(cell):
        return "a day and a month that may be taken for one another: write dates as 2026-03-31"
    return ""


def moment(cell: str) -> datetime | None:
    """Return the date a plain cell holds, such as 2026-03-31 or 2026-03-31 09:30; in UTC where it has a zone."""
    if not DATES["year"].fullmatch(cell):
        return None
    try:
        found = datetime.fromisoformat(cell)
    except ValueError:
        return None
    return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)


def days(cells: Sequence[str], first: str) -> list[float]:
    """Return dates as days since the first, NaN where there is none."""
    start = moment(first)
    found = (moment(cell) for cell in cells)
    return [math.nan if one is None or start is None else (one - start).total_seconds() / 86400 for one in found]


def first_date(cells: Sequence[str]) -> str | None:
    """Return the first date of a column, None where fewer than half of its cells are dates."""
    if not any(map(moment, there(cells, FEW))):
        return None
    some = there(cells)
    dated = [(when, cell) for cell in some if (when := moment(cell)) is not None]
    return min(dated)[1] if dated and 2 * len(dated) >= len(some) else None


@dataclass(frozen=True)
class Habit:
    """How the numbers of a column are written: which marks show that they have decimal points, or commas."""

    point: bool  # some can be read with a point alone
    comma: bool
    commas: bool  # there are any
    points: bool

    @classmethod
    def of(cls, cells: Sequence[str], marks: str) -> "Habit | None":
        """Look at a column, None where it has none of the marks, or fewer than half of it is meant as numbers."""
        text = "\n".join(cells) if isinstance(cells, list) else ""
        if not any(mark in text for mark in marks) and not DOTS.search(text):
            return None
        some = there(cells)
        marked = [cell for cell in some if "," in cell or "." in cell]
        if not some or not any(map(like_number, some[:FEW])) or 2 * sum(map(like_number, some)) < len(some):
            return None
        kinds = [(POINT.fullmatch(cell) is not None, COMMA.fullmatch(cell) is not None) for cell in marked]
        numbers = [cell for cell, kind in zip(marked, kinds, strict=True) if any(kind)]
        return cls(
            (True, False) in kinds, (False, True) in kinds, any("," in one for one in numbers),
            any("." in one for one in numbers),
        )  # fmt: skip

    def has_commas(self, apart: bool, others: "Sequence[Habit]") -> bool | None:
        """Return whether commas are decimal, None where the column has both kinds.

        What 1,234 means is told by the other columns, else by what stands between the cells: decimal, if no comma does.
        """
        if self.point or self.comma:
            return None if self.point and self.comma else self.comma
        if self.commas and self.points:
            return None
        point, comma = any(one.point for one in others), any(one.comma for one in others)
        return not point and (comma or (apart and self.commas))


def plain_columns(
    columns: Sequence[tuple[str, Sequence[str]]], apart: bool = False
) -> tuple[list[Sequence[str]], list[str]]:
    """Return columns with their numbers and dates as programs write them, and notes; texts stay as they are.

    `apart`: no comma separates the cells of the file they come from.

    >>> plain_columns([("dose", ["1,5", "2"]), ("n", ["1.200", "900"]), ("day", ["1.3.2026", "31.12.2026"])])[0]
    [['1.5', '2'], ['1200', '900'], ['2026-03-01', '2026-12-31']]
    """
    dated = [_dates(cells) for _, cells in columns]
    written = [None if date else Habit.of(cells, MARKS) for date, (_, cells) in zip(dated, columns, strict=True)]
    if any(one and (one.comma or one.commas) for one in written):  # then points may be something else
        written = [
            one or (None if date else Habit.of(cells, "."))
            for one, date, (_, cells) in zip(written, dated, columns, strict=True)
        ]
    found, decimal, apart_in = [], list[str](), list[str]()
    for (name, cells), dates, one in zip(columns, dated, written, strict=True):
        comma = None if one is None else one.has_commas(apart, [other for other in written if other is not None])
        found.append(cells if dates is None else dates)
        if comma is None:
            continue
        groups = APART + ("." if comma else ",")
        found[-1] = [_number(cell, comma, groups) for cell in cells]
        changed = [(old, new) for old, new in zip(cells, found[-1], strict=True) if old != new]
        for said, marks in ((decimal, "," * comma), (apart_in, groups)):
            shown = (f"{name!r} ({old} is {new})" for old, new in changed if any(mark in old for mark in marks))
            said += [*islice(shown, 1)]
    notes = (("decimal commas", decimal), ("thousands kept apart", apart_in))
    return found, [f"{what} in column{'s' * (len(names) > 1)} {_few(names)}" for what, names in notes if names]


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + f" and {len(names) - 3} more" * (len(names) > 3)


def _number(cell: str, comma: bool, groups: str) -> str:
    """Return a number with a decimal point and nothing between its thousands, and any other cell as it is."""
    if not (COMMA if comma else POINT).fullmatch(cell):
        return cell
    for mark in groups:
        cell = cell.replace(mark, "")
    return cell.replace(",", ".").replace("\u2212", "-")


def _dates(cells: Sequence[str]) -> list[str] | None:
    """Return a column with its dates as 2026-03-31, None where it has none or they may be read in two ways."""
    if not any(one.fullmatch(cell) for cell in there(cells, FEW) for one in DATES.values()):
        return None
    some, ways = there(cells), []
    for order in ("day", "month"):
        patterns = [DATES[kind] for kind in ("year", "dots", order)]
        matches = [next(filter(None, (one.fullmatch(cell) for one in patterns)), None) for cell in cells]
        plain = [_date(match) or cell for cell, match in zip(cells, matches, strict=True)]
        ways.append((sum(moment(cell) is not None for cell in plain), plain))
    (count, plain), (other, otherwise) = ways if ways[0][0] >= ways[1][0] else ways[::-1]
    return None if 2 * count < len(some) or (count == other and plain != otherwise) else plain


def _date(found: re.Match[str] | None) -> str:
    if found is None:
        return ""
    clock, zone = found.groups()[-2:]
    hours = clock.zfill(len(clock) + (clock[1] == ":")) if clock else ""
    rest = f" {hours}{zone or ''}" if hours and hours.strip("0:.") + (zone or "") else ""
    return f"{found['y']}-{int(found['m']):02}-{int(found['d']):02}{rest}"


def units(columns: Sequence[Sequence[str]]) -> list[str] | None:
    """Return the cells of a first row that holds the units of the columns, None where it is a row as others are."""
    first = [cells[0] for cells in columns]
    if any(map(like_number, first)):
        return None
    below = [there(cells[1:]) for cells in columns]
    numeric = [bool(some) and all(map(like_number, some)) for some in below]
    given = [cell for cell, number in zip(first, numeric, strict=True) if number and cell.lower() not in MISSING]
    fits = all(
        cell in BARE or UNIT.fullmatch(cell) if number else cell.lower() in BARE or cell[:1] + cell[-1:] in ("[]", "()")
        for cell, number in zip(first, numeric, strict=True)
    )
    return first if given and fits else None
