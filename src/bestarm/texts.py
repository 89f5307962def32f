"""Parts as people type them: a name or `package.module:Class`, then `:key=value,key=value`."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from bestarm.errors import InputError, UnknownNameError

WORDS = {int: "a whole number", float: "a number", bool: "true or false", NoneType: "none", str: "text"}
TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def divided(text: str) -> tuple[str, str]:
    """Return the name or path of a part, and its settings as typed.

    >>> divided("gse-lin:eta=3"), divided("lab.own:Mine"), divided("lab.own:Mine:depth=2")
    (('gse-lin', 'eta=3'), ('lab.own:Mine', ''), ('lab.own:Mine', 'depth=2'))
    """
    first, _, rest = text.partition(":")
    second, _, third = rest.partition(":")
    return (first, rest) if "=" in second or not second else (f"{first}:{second}", third)


def module(name: str) -> ModuleType:
    """Import a module that a person named; those of the folder one works in are found too."""
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    return import_module(name)


def imported(path: str) -> Any:
    """Return what `package.module:name` names."""
    where, _, name = path.partition(":")
    try:
        found = module(where)
    except (Exception, SystemExit) as error:  # the module is run by this, and may raise anything
        hint = "; is its package installed, or its folder on PYTHONPATH?" * isinstance(error, ImportError)
        raise InputError(f"{path}: {where} cannot be imported: {type(error).__name__}: {error}{hint}") from error
    try:
        return getattr(found, name)
    except AttributeError:
        there = [one for one, value in vars(found).items() if getattr(value, "__module__", None) == found.__name__]
        raise UnknownNameError(f"part of {where}", name, there) from None


def pairs(typed: str, what: str) -> list[tuple[str, str]]:
    """Return settings as they were typed, `key=value,key=value`."""
    found = [pair.partition("=") for pair in typed.split(",") if pair]
    for key, equals, _ in found:
        if not equals:
            raise InputError(f"{what}: a setting is written key=value; given {key!r}")
    return [(key.strip(), value.strip()) for key, _, value in found]


def parameters(make: Callable[..., Any]) -> dict[str, Parameter]:
    """Return the parameters of a class or a function by name, each annotation as a type, else that of its default."""
    try:
        hints = get_type_hints(make.__init__ if isinstance(make, type) else make)  # type: ignore[misc]
    except (NameError, TypeError):  # names that its module does not have, or a partial function
        hints = {}
    known = dict[str, Parameter]()
    for name, one in signature(make).parameters.items():
        hint = hints.get(name, one.annotation)
        if hint is Parameter.empty or isinstance(hint, str):
            hint = Any if one.default in (Parameter.empty, None) else type(one.default)
        known[name] = one.replace(annotation=hint)
    return known


def made(make: type, what: str, typed: str, settings: Mapping[str, Any], part: Any) -> Any:
    """Return a part of class `make`, its settings as `typed`, and else `settings` as they are.

    A text becomes what the annotation of its setting says; `part(key, text)` returns the part that one names.
    """
    known = {name: one for name, one in parameters(make).items() if one.kind is not Parameter.VAR_KEYWORD}
    texts = dict(pairs(typed, what))
    for key in (*texts, *settings):
        if key not in known:
            raise InputError(f"{what} has no setting {key!r}; it has {', '.join(sorted(known)) or 'none'}")
    left = [k for k, one in known.items() if one.default is Parameter.empty and k not in {*texts, *settings}]
    if left:
        raise InputError(f"{what} needs settings: {','.join(f'{key}=...' for key in left)}")
    values = {key: _value(text, known[key].annotation, f"{what}: {key}", key, part) for key, text in texts.items()}
    try:
        return make(**{**settings, **values})
    except (TypeError, ValueError) as error:
        raise error if isinstance(error, InputError) else InputError(f"{what}: {error}") from error


def settled(known: Mapping[str, Parameter], given: Mapping[str, Any], what: str) -> dict[str, Any]:
    """Return `given`, texts or values, as the parameters say; what is not `known` is refused."""
    for name in given:
        if name not in known:
            raise InputError(f"{what} has no parameter {name!r}; it has {', '.join(known) or 'none'}")
    asked = {name: (value, known[name].annotation, f"parameter {name} of {what}") for name, value in given.items()}
    return {name: _value(*one, name, lambda key, value: value) for name, one in asked.items()}


def value_of(make: type, key: str, text: str, what: str, part: Callable[[str, str], Any]) -> Any:
    """Return a text as what the setting `key` of a part of class `make` takes."""
    known = parameters(make)
    return _value(text, known[key].annotation if key in known else Any, what, key, part)


def _value(value: Any, hint: Any, what: str, key: str, part: Callable[[str, Any], Any]) -> Any:
    """Return a value, a text perhaps, as what an annotation says, or as a part where it is nothing plain."""
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if hint is Any and not isinstance(value, str):
        return value
    for kind in sorted(kinds, key=lambda kind: kind is str):
        try:
            return converted(str(value), kind)
        except ValueError:
            pass
    if any(kind not in WORDS and get_origin(kind) is not Literal for kind in kinds):
        return part(key, value)
    words = [WORDS.get(kind) or " or ".join(map(repr, get_args(kind))) for kind in kinds]
    raise InputError(f"{what} must be {' or '.join(words)}; given {value!r}")


def converted(text: str, kind: Any) -> Any:
    """Return a text as a value of a plain kind, or raise ValueError.

    >>> converted("3", int), converted("1e3", float), converted("no", bool), converted("none", type(None))
    (3, 1000.0, False, None)
    """
    if get_origin(kind) is Literal:
        return {str(one): one for one in get_args(kind)}[text] if text in map(str, get_args(kind)) else _refuse(text)
    if kind is Any:
        for plain in (NoneType, int, float, bool):
            try:
                return converted(text, plain)
            except ValueError:
                pass
        return text
    if kind is bool:
        return TRUTHS[text.lower()] if text.lower() in TRUTHS else _refuse(text)
    if kind is NoneType:
        return None if text.lower() == "none" else _refuse(text)
    if kind in (int, float) and "_" not in text:
        number = float(text)
        return number if kind is float else int(number) if number.is_integer() else _refuse(text)
    return text if kind is str else _refuse(text)


def _refuse(text: str) -> Any:
    raise ValueError(text)
