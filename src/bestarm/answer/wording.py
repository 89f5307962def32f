"""Numbers, chances and rows as people read them: the same on a page, on the command line and in a notebook."""

import math
from collections.abc import Mapping, Sequence
from typing import Any


def number(value: float | None) -> str:
    """Return a number as people read it.

    >>> number(0.123456), number(None), number(float("nan")), number(123456.0)
    ('0.123', '–', '–', '1.23e+05')
    """
    return "–" if value is None or value != value else f"{value:.3g}"


def percent(chance: float) -> str:
    """Return a probability as people read it; a thousand draws do not make it certain.

    >>> percent(0.8349), percent(0.9996), percent(0.0002)
    ('83 %', 'over 99.9 %', 'under 0.1 %')
    """
    if math.isnan(chance):
        return "unknown"
    if chance > 0.999:
        return "over 99.9 %"
    if chance < 0.001:
        return "under 0.1 %"
    digits = 1 if chance > 0.99 or chance < 0.01 else 0
    return f"{100 * chance:.{digits}f} %"


def how_sure(chance: float) -> str:
    """Return how sure one is of an arm that is the best with some probability.

    >>> how_sure(0.97), how_sure(0.3)
    ('very likely the best', 'the best guess, but more likely than not another one is better')
    """
    return next(words for least, words in SURE if chance >= least)


SURE = (
    (0.99, "almost certainly the best"),
    (0.95, "very likely the best"),
    (0.8, "probably the best"),
    (0.5, "more likely than not the best"),
    (-math.inf, "the best guess, but more likely than not another one is better"),
)
CHANCES = ("p_best",)  # facts that are probabilities


def facts(row: Mapping[str, Any]) -> dict[str, str]:
    """Return facts as people read them.

    >>> facts({"p_best": 1.0, "runner_up": None, "spent": 40})
    {'p best': 'over 99.9 %', 'runner up': '–', 'spent': '40'}
    """
    return {key.replace("_", " "): percent(cell) if key in CHANCES else short(cell) for key, cell in row.items()}


def short(cell: Any) -> str:
    """Return a cell of a table, or a fact, as people read it."""
    return number(cell) if isinstance(cell, float) or cell is None else str(cell)


def lines(facts: Mapping[str, str]) -> list[str]:
    """Return facts line by line."""
    width = max(map(len, facts))
    return [f"{key:<{width}}  {cell}" for key, cell in facts.items()]


def aligned(rows: Sequence[Mapping[str, Any]], side: str = "<") -> list[str]:
    """Return the lines of a table, its heads first; `side` ">" puts its cells to the right."""
    listed = [{key: key for key in rows[0]}, *rows]
    widths = {key: max(len(str(row[key])) for row in listed) for key in rows[0]}
    return ["  ".join(f"{row[key]!s:{side}{width}}" for key, width in widths.items()).rstrip() for row in listed]
