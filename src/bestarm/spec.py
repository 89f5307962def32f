"""Frozen values as plain dicts and back, for JSON and TOML: how a policy is written down."""

import math
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from inspect import unwrap
from pkgutil import walk_packages
from typing import Any

import numpy as np

from bestarm import plugins
from bestarm.errors import InputError, UnknownNameError
from bestarm.texts import module as imported

ALIASES: dict[str, str] = {}  # names that parts had in earlier versions, and the ones they have now
RETIRED = {"Auto": {"focus", "doubting"}}  # settings that earlier versions wrote down and nothing depends on any more
HOMES = ("structures", "models", "designs", "policies", "embeddings", "kernels", "estimators")


def to_dict(value: Any) -> Any:
    """Return a part as {"part": its name, and its settings}, nested parts alike.

    >>> from bestarm.policies.schedules import Stage
    >>> to_dict(Stage(pulls=5, keep=2))
    {'part': 'Stage', 'pulls': 5, 'keep': 2}
    """
    value = unwrap(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {"part": _written(type(value))} | {f.name: to_dict(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple | list):
        return [to_dict(item) for item in value]
    if isinstance(value, np.integer | np.floating | np.bool_):
        return to_dict(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InputError(f"{value!r} cannot be written down; numbers, strings and parts of bestarm can")


def from_dict(data: Any, allow: Iterable[str] = ()) -> Any:
    """Return the value `to_dict` wrote; parts of other packages only of those installed as such, or in `allow`.

    >>> from_dict({"part": "Stage", "pulls": 5, "keep": 2})
    Stage(pulls=5, keep=2)
    """
    if isinstance(data, dict):
        if set(data) == {"number"}:
            return float(data["number"])
        if "part" not in data:
            raise InputError(f'a part is written as {{"part": name, ...}}; given keys {sorted(data)}')
        name = ALIASES.get(str(data["part"]), str(data["part"]))
        kind = _found(name, tuple(allow))
        left_out = {"part"} | RETIRED.get(name, set())
        settings = {key: from_dict(item, allow) for key, item in data.items() if key not in left_out}
        known = {field.name for field in fields(kind)}
        if not set(settings) <= known:
            raise InputError(f"{name} has no setting {sorted(set(settings) - known)}; it has {sorted(known)}")
        for field in fields(kind):
            if is_dataclass(field.default) and not is_dataclass(settings.get(field.name, field.default)):
                raise InputError(f"{name}: {field.name} must be a part of bestarm; given {data[field.name]!r}")
        return kind(**settings)
    return tuple(from_dict(item, allow) for item in data) if isinstance(data, list | tuple) else data


def packages_of(value: Any) -> set[str]:
    """Return the packages that the classes of a part and of those within are from, but for our own.

    Whoever hands a part over consents to their being imported.
    """
    value = unwrap(value)
    if isinstance(value, tuple | list):
        return set().union(*map(packages_of, value))
    if not is_dataclass(value) or isinstance(value, type):
        return set()
    within = packages_of([getattr(value, field.name) for field in fields(value)])
    return within | {type(value).__module__.partition(".")[0]} - {"bestarm"}


def _written(kind: type) -> str:
    """Return the name by which a part is found again: its class's own here, `module:Class` elsewhere."""
    name = kind.__name__
    if _parts().get(name) is kind:
        return name
    if not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise InputError(f"{name} cannot be written down: a frozen dataclass of plain settings is expected")
    if kind.__module__.startswith("bestarm.") or "." in kind.__qualname__ or kind.__module__ == "__main__":
        raise InputError(
            f"{kind.__qualname__} of {kind.__module__} cannot be found again; put it into a module of its own"
        )
    return f"{kind.__module__}:{kind.__qualname__}"


def _found(name: str, allow: tuple[str, ...]) -> Any:
    if ":" not in name:
        if name not in _parts():
            raise UnknownNameError("part", name, _parts())
        return _parts()[name]
    module, _, cls = name.partition(":")
    package = module.partition(".")[0]
    if package not in {*allow, *plugins.importable()}:
        raise InputError(
            f"{name} is of the package {package!r}, which may not be imported; allow={package!r} would let it"
        )
    kind = getattr(imported(module), cls, None)
    if not (isinstance(kind, type) and is_dataclass(kind)):
        raise InputError(f"there is no part {cls!r} in {module}; a frozen dataclass is expected")
    return kind


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
