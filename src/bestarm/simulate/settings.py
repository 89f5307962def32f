"""Parts and their settings as text: `package.module:Name` is imported, and values become what annotations say."""

from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import Parameter, signature
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from bestarm.errors import InputError

WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def loaded(path: str, what: str) -> Any:
    """Return what `package.module:Name` names: whoever writes it down consents to the import."""
    place, _, name = path.partition(":")
    try:
        found: Any = import_module(place)
    except ImportError as error:
        hint = "is its package installed, or its folder on PYTHONPATH?"
        raise InputError(f"{what} {path!r}: {place} cannot be imported: {error}; {hint}") from error
    except ValueError as error:
        raise InputError(f"{what} {path!r} is written package.module:Name") from error
    if name not in vars(found):
        raise InputError(f"{what} {path!r}: there is no {name!r} in {place}")
    return vars(found)[name]


def parameters(make: Callable[..., Any]) -> dict[str, Parameter]:
    """Return the parameters of a function or a class by name, each annotation as a type."""
    inner = make.__init__ if isinstance(make, type) else make  # type: ignore[misc]
    try:
        hints = get_type_hints(inner)
    except (TypeError, NameError):  # a partial function, or names that its module does not have
        hints = {}
    known = signature(make).parameters.items()
    return {name: one.replace(annotation=hints.get(name, one.annotation)) for name, one in known}


def settled(known: Mapping[str, Parameter], given: Mapping[str, Any], what: str, kind: str) -> dict[str, Any]:
    """Return `given` as the parameters say; a name that is not `known` is refused with those that are."""
    for name in given:
        if name not in known:
            raise InputError(f"{what} has no {kind} {name!r}; it has {', '.join(known) or 'none'}")
    return {name: converted(known[name], value, f"{kind} {name} of {what}") for name, value in given.items()}


def converted(parameter: Parameter, value: Any, what: str) -> Any:
    """Return a value, perhaps a text, as what the parameter's annotation says, or else its default is."""
    hint = parameter.annotation
    if hint in (Parameter.empty, Any):
        hint = type(parameter.default)
    some = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kinds = set(some) - {type(None)}
    if value is None and type(None) in some:
        return None
    if kinds == {bool}:
        if str(value).lower() not in WORDS:
            raise InputError(f"{what} must be true or false; given {value!r}")
        return WORDS[str(value).lower()]
    return _number(value, kinds == {int}, what) if kinds and kinds <= {int, float} else value


def _number(value: Any, whole: bool, what: str) -> float:
    try:
        number = float(value)
        if not np.isfinite(number) or (whole and (number != int(number) or number < 0)):
            raise ValueError
    except (TypeError, ValueError):
        wanted = "a whole number" if whole else "a number"
        raise InputError(f"{what} must be {wanted}; given {value!r}") from None
    return int(number) if whole else number
