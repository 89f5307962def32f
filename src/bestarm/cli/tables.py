"""Tables as commands read them: the options, what they say, and what is said back."""

import math
import shlex
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

import click
import numpy as np

from bestarm.cli.app import say
from bestarm.errors import InputError
from bestarm.tables.arms import Arms
from bestarm.tables.encoding import SCALES
from bestarm.tables.sheet import as_number

UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
OPTIONS: dict[str, dict[str, Any]] = {
    "id": {"help": "Column that names the arms; row numbers otherwise."},
    "label": {"multiple": True, "help": "Column to show beside an arm's id (repeatable)."},
    "feature": {"multiple": True, "help": "Column to use as a feature (repeatable); all others otherwise."},
    "exclude": {"multiple": True, "help": "Column not to use as a feature (repeatable)."},
    "categorical": {"multiple": True, "help": "Column of categories though it holds numbers (repeatable)."},
    "scale": {"type": click.Choice([*SCALES]), "default": "none", "help": "Scale numeric features."},
    "intercept": {"is_flag": True, "help": "Add a constant feature."},
    "missing": {
        "type": click.Choice(["refuse", "mean", "category"]), "default": "refuse",
        "help": "Blank features: refuse them, fill in the mean of the others, or make blank a category of its own.",
    },
    "na": {"multiple": True, "metavar": "TEXT", "help": "Text that means a blank cell in any column (repeatable)."},
}  # fmt: skip


def table_options(**helps: str | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the options that read a table of arms; `helps` say more of some, and None leaves one out."""

    def declare(command: Callable[..., Any]) -> Callable[..., Any]:
        for name, settings in reversed(OPTIONS.items()):
            about = helps.get(name, settings["help"])
            spelled = ("--id", "id_column") if name == "id" else (f"--{name}",)
            command = command if about is None else click.option(*spelled, **settings | {"help": about})(command)
        return command

    return declare


def reading(asked: Mapping[str, Any], given: Collection[str] | None = None, apart: str | None = None) -> dict[str, Any]:
    """Return how a table is to be read, in the words of `bestarm.open_table`, of the options that are given.

    Labels and the column `apart` are no features. Where features are named these are all, and nothing is excluded.
    """
    given = {*asked} if given is None else {*given}
    read: dict[str, Any] = {key: asked[key] for key in ("cost", "categorical", "scale", "intercept") if key in given}
    usual = {"missing": "refuse", "na": ()}
    read |= {key: asked[key] for key in usual if key in given and asked[key] != usual[key]}
    if "id_column" in given:
        read["id"] = asked["id_column"]
    if "feature" in given and asked["feature"]:
        return {**read, "features": list(asked["feature"])}
    if {"exclude", "label"} & given:
        left = {*asked["exclude"], *asked.get("label", ()), apart} - {asked["id_column"], asked.get("cost"), None}
        read["exclude"] = sorted(left)
    return read


def read_arms(path: str, **read: Any) -> Arms:
    """Read a table as a whole and say what was found in it."""
    arms = Arms.from_file(path, **read)
    say(f"{arms!r}".removeprefix("Arms").strip("()"), *arms.notes, *cautions(arms, read.get("id")))
    return arms


def cautions(arms: Arms, id: str | None) -> list[str]:
    """Return words of caution: on a column that only numbers the rows, on one that could name them and does not."""
    steps = [(name, np.diff(column)) for name, column in zip(arms.names, arms.features.T, strict=True)]
    counts = [name for name, step in steps if len(step) > 2 and step[0] != 0 and np.all(step == step[0])]
    doubt = "only counts the rows, yet is a feature; is it an --id, or to --exclude?"
    said = [f"column {name!r} {doubt}" for name in counts]
    texts = [name for name, cells in arms.table.items() if id is None and len(arms) > 2 and _could_name(cells)]
    if texts:
        way = f"column {texts[0]!r} has another text in each: --id {shlex.quote(texts[0])} calls them so"
        said.append(f"arms are called by their row, 1 to {len(arms)}; {way}")
    return said


def _could_name(cells: Any) -> bool:
    """Return whether the cells of a column are texts, another in each row."""
    return len(set(cells)) == len(cells) and all(isinstance(one, str) and math.isnan(as_number(one)) for one in cells)


class PassBar:
    """A bar on stderr for each pass over a table; nothing where nobody watches."""

    def __init__(self) -> None:
        from tqdm import tqdm

        silent = not sys.stderr.isatty()
        self.bar = tqdm(total=1, unit=" rows", unit_scale=True, disable=silent, file=sys.stderr, leave=False)
        self.passes, self.at = 0, 0

    def watch(self, at: int, rows: int) -> None:
        """Show that `at` of `rows` rows are read."""
        if self.passes == 0 or at <= self.at:
            self.passes, self.at = self.passes + 1, 0
            self.bar.reset(rows)
            self.bar.set_description(f"pass {self.passes}")
        self.bar.update(at - self.at)
        self.at = at

    def passed(self, number: int, at: int, rows: int, gap: float) -> None:
        """Show how far a design's pass over the table is."""
        self.watch(at, rows)

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self.bar.write(line, file=sys.stderr)

    def __enter__(self) -> "PassBar":
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()


def size(text: str) -> int:
    """Return a size such as 500MB or 2GiB in bytes.

    >>> size("1GB"), size("0.5 MiB"), size("4096")
    (1000000000, 524288, 4096)
    """
    digits = text.strip().lower().rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = text.strip().lower()[len(digits) :].strip() or "b"
    try:
        return int(float(digits) * UNITS[unit])
    except (KeyError, ValueError, OverflowError):
        raise InputError(f"a size is a number and a unit, such as 500MB or 2GiB; given {text!r}") from None
