"""Frozen values as plain dicts and back, for JSON and TOML: how a policy is written down."""

import math
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

from bestarm.errors import InputError, UnknownNameError

RETIRED = {"Auto": {"focus", "doubting"}}  # settings that earlier versions wrote down and nothing depends on any more
HOMES = ("structures", "models", "designs", "policies", "embeddings", "kernels", "estimators")


def to_dict(value: Any) -> Any:
    """Return a part as {"part": its name, and its settings}, nested parts alike.

    >>> from bestarm.policies.schedules import Stage
    >>> to_dict(Stage(pulls=5, keep=2))
    {'part': 'Stage', 'pulls': 5, 'keep': 2}
    """
    if is_dataclass(value) and not isinstance(value, type):
        if _parts().get(type(value).__name__) is not type(value):
            raise InputError(f"{type(value).__name__} is not a part of bestarm, so it cannot be written down")
        return {"part": type(value).__name__} | {f.name: to_dict(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple | list):
        return [to_dict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InputError(f"{value!r} cannot be written down; numbers, strings and parts of bestarm can")


def from_dict(data: Any) -> Any:
    """Return the value `to_dict` wrote.

    >>> from_dict({"part": "Stage", "pulls": 5, "keep": 2})
    Stage(pulls=5, keep=2)
    """
    if isinstance(data, dict):
        if set(data) == {"number"}:
            return float(data["number"])
        if "part" not in data:
            raise InputError(f'a part is written as {{"part": name, ...}}; given keys {sorted(data)}')
        name, parts = data["part"], _parts()
        if name not in parts:
            raise UnknownNameError("part", str(name), parts)
        left_out = {"part"} | RETIRED.get(name, set())
        settings = {key: from_dict(item) for key, item in data.items() if key not in left_out}
        known = {field.name for field in fields(parts[name])}
        if not set(settings) <= known:
            raise InputError(f"{name} has no setting {sorted(set(settings) - known)}; it has {sorted(known)}")
        for field in fields(parts[name]):
            if is_dataclass(field.default) and not is_dataclass(settings.get(field.name, field.default)):
                raise InputError(f"{name}: {field.name} must be a part of bestarm; given {data[field.name]!r}")
        return parts[name](**settings)
    return tuple(from_dict(item) for item in data) if isinstance(data, list | tuple) else data


@cache
def _parts() -> dict[str, Any]:
    """Return every frozen dataclass of the player layers by name."""
    found: dict[str, Any] = {}
    for home in HOMES:
        package = import_module(f"bestarm.{home}")
        below = walk_packages(getattr(package, "__path__", []), f"{package.__name__}.")
        for module in [package, *(import_module(info.name) for info in below)]:
            for name, value in vars(module).items():
                if isinstance(value, type) and is_dataclass(value) and value.__module__ == module.__name__:
                    found[name] = value
    return found
