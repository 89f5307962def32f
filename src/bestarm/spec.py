"""Frozen values as plain dicts and back, for JSON and TOML: how a policy is written down."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from functools import cache
from importlib import import_module
from inspect import Parameter, getdoc, signature, unwrap
from pkgutil import walk_packages
from typing import Any

import numpy as np

from bestarm import plugins
from bestarm.errors import InputError, UnknownNameError
from bestarm.texts import module as imported

ALIASES = {  # names that parts had in earlier versions, and what in `policies.earlier` makes them today
    "ActiveSet": "active_set",
    "BayesGap": "bayesgap",
    "CeilElimination": "ceil_elimination",
    "ContinuousRejects": "continuous_rejects",
    "Elimination": "elimination",
    "LinGapE": "lingape",
    "LinUCB": "linucb",
    "OCBA": "ocba",
    "Once": "EachOnce",
    "SuccessiveRejects": "successive_rejects",
    "Thompson": "thompson",
    "TopTwo": "top_two",
    "UCBGLM": "ucb_glm",
    "VertexDirection": "vertex_direction",
    "WolfeAtwood": "wolfe_atwood",
}
RETIRED = {"Auto": {"focus", "doubting"}}  # settings that earlier versions wrote down and nothing depends on any more
COMMON = {  # where the parts of most logs are; others are looked for everywhere
    "structures.hypotheses": "Line OneOf Smooth SeparateMeans Scaling Geometry",
    "models.weighed": "Weighed",
    "models.linear": "Linear Projected",
    "models.glm": "GLM",
    "models.law": "Logistic Poisson",
    "models.means": "Means",
    "designs.protocols": "Rounded",
    "designs.rounding": "AutoRound",
    "designs.ascent": "Ascent VertexExchange",
    "designs.starts": "Multiplicative",
    "designs.many": "BySize Sparse",
    "policies.schedules": "EvenStages ToLastStages",
    "policies.elimination": "Elimination Survivors ThisStage",
    "policies.auto": "Auto",
}
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
        name = str(data["part"])
        left_out = {"part"} | RETIRED.get(name, set())
        given = {key: from_dict(item, allow) for key, item in data.items() if key not in left_out}
        kind = _found(name, set(given), tuple(allow))
        known = _parameters(kind)
        if not set(given) <= set(known):
            raise InputError(f"{name} has no setting {sorted(set(given) - set(known))}; it has {sorted(known)}")
        for key, parameter in known.items():
            if is_dataclass(parameter.default) and not is_dataclass(given.get(key, parameter.default)):
                raise InputError(f"{name}: {key} must be a part of bestarm; given {data[key]!r}")
        return kind(**given)
    return tuple(from_dict(item, allow) for item in data) if isinstance(data, list | tuple) else data


@cache
def _parameters(kind: type) -> Mapping[str, Parameter]:
    """Return what a part is made of, looked up once: a log names dozens."""
    return signature(kind).parameters


def settings(part: Any) -> list[tuple[str, Any]]:
    """Return where the settings of a part and of the parts within it are, and what they are; the outer go first.

    >>> from bestarm.policies.schedules import EvenStages
    >>> settings(EvenStages(eta=3.0))
    [('eta', 3.0), ('leftover', ToLastStages())]
    """
    found: list[tuple[str, Any]] = []
    inner = [("", part)]
    while inner:
        at, one = inner.pop(0)
        for field in fields(one) if is_dataclass(one) else ():
            value = getattr(one, field.name)
            found.append((at + field.name, value))
            if is_dataclass(value) and not field.metadata.get("apart"):
                inner.append((f"{at}{field.name}.", value))
    return found


def changed(part: Any, setting: str, value: Any, name: str | None = None) -> Any:
    """Return `part` with `value` for the outermost setting of that name: a part for a part, a number for a number.

    A setting within is named alone, or with its way where several have the name: "prior.kernel.length".

    >>> from bestarm.policies.schedules import EvenStages
    >>> changed(EvenStages(), "eta", 4.0)
    EvenStages(eta=4.0, leftover=ToLastStages())
    """
    known = settings(part)
    for where, now in known:
        if f".{where}".endswith(f".{setting}") and is_dataclass(now) == is_dataclass(value):
            return _replaced(part, where, value)
    listed = ", ".join(sorted({where.rpartition(".")[2] for where, _ in known})) or "none"
    raise InputError(f"{name or type(part).__name__} has no setting {setting!r} like {value!r}; it has {listed}")


def _replaced(part: Any, where: str, value: Any) -> Any:
    name, _, rest = where.partition(".")
    return replace(part, **{name: _replaced(getattr(part, name), rest, value) if rest else value})


def expression(part: Any) -> str:
    """Return a part as one would type it: what is as it is by default is left out.

    >>> from bestarm.policies.schedules import EvenStages
    >>> expression(EvenStages(eta=4.0))
    'EvenStages(eta=4.0)'
    """
    if isinstance(part, tuple):
        return "(" + "".join(f"{expression(item)}, " for item in part).rstrip(" ") + ")"
    if not is_dataclass(part):
        return f"float('{part}')" if isinstance(part, float) and not math.isfinite(part) else repr(part)
    typed, by_place = [], True
    for field in fields(part):
        value = getattr(part, field.name)
        by_place = by_place and (field.default is MISSING or is_dataclass(value))
        if field.default is MISSING or value != field.default:
            typed.append(("" if by_place else f"{field.name}=") + expression(value))
        else:
            by_place = False
    return f"{type(part).__name__}({', '.join(typed)})"


def equations(part: Any) -> list[str]:
    """Return what a policy and the parts of its expression say they do: their docstrings, without examples."""
    inner = [value for where, value in settings(part) if is_dataclass(value) and where.count(".") < 2]
    said = []
    for one in [part, *inner]:
        words = re.sub(r"\n\s*\n", "\n", (getdoc(type(one)) or "").partition(">>>")[0].strip())
        said.append(f"{type(one).__name__}: {words}")
    return list(dict.fromkeys(said))


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
    if _part(name) is kind:
        return name
    if not kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise InputError(f"{name} cannot be written down: a frozen dataclass of plain settings is expected")
    if kind.__module__.startswith("bestarm.") or "." in kind.__qualname__:
        raise InputError(
            f"{kind.__qualname__} of {kind.__module__} cannot be found again; put it into a module of its own"
        )
    return f"{kind.__module__}:{kind.__qualname__}"


def _found(name: str, given: set[str], allow: tuple[str, ...]) -> Any:
    """Return what makes the part of that name: its class, or what reads an earlier one that had `given` settings."""
    if ":" not in name:
        now = _part(name)
        if name in ALIASES and (now is None or not given <= set(signature(now).parameters)):
            return getattr(import_module("bestarm.policies.earlier"), ALIASES[name])
        if now is None:
            raise UnknownNameError("part", name, _parts())
        return now
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
def _part(name: str) -> Any:
    """Return the part of that name, None where there is none."""
    for home, names in COMMON.items():
        if name in names.split():
            module = import_module(f"bestarm.{home}")
            if _is_part(value := getattr(module, name), module):
                return value
    return _parts().get(name)


def _is_part(value: Any, module: Any) -> bool:
    return isinstance(value, type) and is_dataclass(value) and value.__module__ == module.__name__


@cache
def _parts() -> dict[str, Any]:
    """Return every frozen dataclass of the player layers by name."""
    found: dict[str, Any] = {}
    for home in HOMES:
        package = import_module(f"bestarm.{home}")
        below = walk_packages(getattr(package, "__path__", []), f"{package.__name__}.")
        for module in [package, *(import_module(info.name) for info in below)]:
            for name, value in vars(module).items():
                if _is_part(value, module):
                    found[name] = value
    return found
