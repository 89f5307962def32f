"""Suites: a fixed list of instances and budgets, kept as plain data, on which policies are judged."""

import json
from dataclasses import dataclass
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from bestarm.bench.grid import Cell, grid
from bestarm.bench.worlds import Instance, instance
from bestarm.errors import InputError, UnknownNameError
from bestarm.simulate.policies import Ref

ALIASES = {  # names that suites had in earlier versions
    "heldout": "heldout-1",
    "unseen": "heldout-2",
    "sealed": "heldout-3",
    "vault": "heldout-4",
    "chest": "heldout-5",
    "coffer": "heldout-6",
}


@dataclass(frozen=True)
class Contest:
    """An instance and a budget on which policies meet."""

    group: str
    family: str
    instance: Instance
    budget: int

    def cell(self, policy: Ref) -> Cell:
        """Return what is to be measured of `policy`."""
        return Cell(self.instance, policy, self.budget)

    def __str__(self) -> str:
        hidden = ("file", "arm", "value", "minimize", "skip", "scale", "told")
        shown = [f"{key}={value}" for key, value in self.instance.params if key not in hidden]
        return f"{self.instance.world} {' '.join([*shown, f'B={self.budget}'])}"


@dataclass(frozen=True)
class Suite:
    """A named list of contests, the seed of all their randomness, and the day its results were first looked at."""

    name: str
    about: str
    seed: int
    contests: tuple[Contest, ...]
    looked_at: str | None = None


def names() -> list[str]:
    """Return the suites that come with the package.

    >>> names()[:4], len(names())
    (['default', 'fooled', 'fooled-tables', 'heldout-1'], 10)
    """
    folder = files("bestarm.bench") / "suites"
    return sorted(file.name.removesuffix(".json") for file in folder.iterdir() if file.name.endswith(".json"))


def load(name: str | PathLike[str]) -> Suite:
    """Return the suite of that name, or of a JSON file of your own.

    >>> len(load("default").contests)
    51
    """
    name = ALIASES.get(str(name), name)
    path = Path(name)
    if str(name) in names():
        text = (files("bestarm.bench") / "suites" / f"{name}.json").read_text(encoding="utf-8")
    elif path.suffix == ".json":
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"suite {path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    else:
        raise UnknownNameError("suite", str(name), names())
    try:
        return _suite(json.loads(text), str(name))
    except json.JSONDecodeError as error:
        raise InputError(f"suite {name} is not JSON: line {error.lineno}, {error.msg}") from error
    except RecursionError as error:
        raise InputError(f"suite {name} is nested too deeply") from error


def _suite(data: Any, name: str) -> Suite:
    wanted = {"name": str, "about": str, "seed": int, "cells": list}
    for key, kind in wanted.items():
        if not isinstance(data, dict) or not isinstance(data.get(key), kind):
            raise InputError(f"suite {name} needs {key!r}, a JSON {kind.__name__}")
    contests = tuple(_contest(cell, f"suite {name}, cell {n}") for n, cell in enumerate(data["cells"], 1))
    if not contests:
        raise InputError(f"suite {name} has no cells; at least one is needed")
    met = [(contest.instance, contest.budget) for contest in contests]
    for n, one in enumerate(met):
        if one in met[:n]:
            raise InputError(f"suite {name}, cell {n + 1} is the same as cell {met.index(one) + 1}: {contests[n]}")
    return Suite(data["name"], data["about"], data["seed"], contests, data.get("looked_at"))


def _contest(data: Any, where: str) -> Contest:
    known = ("group", "family", "instance", "params", "budget", "budget_per_arm")
    if not isinstance(data, dict):
        raise InputError(f"{where}: an object with {', '.join(known)} is expected; given {data!r}")
    for key in data:
        if key not in known:
            raise InputError(f"{where} has no {key!r}; it has {', '.join(known)}")
    for key in known[:3]:
        if not isinstance(data.get(key), str):
            raise InputError(f"{where} needs {key!r}, a text")
    if ":" in data["instance"]:
        raise InputError(
            f"{where}: a file may not import {data['instance']!r}; name it in Python or by `bestarm bench`"
        )
    budgets = [data.get(key) for key in known[4:]]
    if sum(isinstance(b, int | float) and b > 0 for b in budgets) != 1:
        raise InputError(f"{where} needs either a budget or a budget_per_arm, a number above 0")
    try:
        one = instance(data["instance"], data.get("params") or {})
        budget = grid([one], ["uniform"], budgets[0], budgets[1])[0].budget
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    return Contest(data["group"], data["family"], one, budget)
