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
TRUTHS = {"true": True, "yes": True, "false": False, "no": False}


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
        raise InputError(f"{path}: {where} cannot be imported: {type(error).__name__}: {error}") from error
    try:
        return getattr(found, name)
    except AttributeError:
        there = [one for one, value in vars(found).items() if getattr(value, "__module__", None) == found.__name__]
        raise UnknownNameError(f"part of {where}", name, there) from None


def made(make: type, what: str, typed: str, settings: Mapping[str, Any], part: Any) -> Any:
    """Return a part of class `make`, its settings as `typed`, and else `settings` as they are.

    A text becomes what the annotation of its setting says; `part(key, text)` returns the part that one names.
    """
    known = {one.name: one for one in signature(make).parameters.values() if one.kind is not Parameter.VAR_KEYWORD}
    pairs = [pair.partition("=") for pair in typed.split(",") if pair]
    wrong = [key for key, equals, _ in pairs if not equals]
    if wrong:
        raise InputError(f"{what}: a setting is written key=value; given {wrong[0]!r}")
    texts = {key.strip(): value.strip() for key, _, value in pairs}
    for key in (*texts, *settings):
        if key not in known:
            raise InputError(f"{what} has no setting {key!r}; it has {', '.join(sorted(known)) or 'none'}")
    left = [k for k, one in known.items() if one.default is Parameter.empty and k not in {*texts, *settings}]
    if left:
        raise InputError(f"{what} needs settings: {','.join(f'{key}=...' for key in left)}")
    hints = _hints(make)
    values = {key: _value(text, hints.get(key, Any), f"{what}: {key}", key, part) for key, text in texts.items()}
    try:
        return make(**{**settings, **values})
    except (TypeError, ValueError) as error:
        raise error if isinstance(error, InputError) else InputError(f"{what}: {error}") from error


def value_of(make: type, key: str, text: str, what: str, part: Callable[[str, str], Any]) -> Any:
    """Return a text as what the setting `key` of a part of class `make` takes."""
    return _value(text, _hints(make).get(key, Any), what, key, part)


def _hints(make: type) -> dict[str, Any]:
    """Return the annotations of settings; none where they cannot be understood."""
    try:
        return get_type_hints(make.__init__)  # type: ignore[misc]
    except (NameError, TypeError):
        return {}


def _value(text: str, hint: Any, what: str, key: str, part: Callable[[str, str], Any]) -> Any:
    """Return a text as what an annotation says, or as a part where it is nothing plain."""
    kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    for kind in sorted(kinds, key=lambda kind: kind is str):
        try:
            return converted(text, kind)
        except ValueError:
            pass
    if any(kind not in WORDS and get_origin(kind) is not Literal for kind in kinds):
        return part(key, text)
    words = [WORDS.get(kind) or " or ".join(map(repr, get_args(kind))) for kind in kinds]
    raise InputError(f"{what} must be {' or '.join(words)}; given {text!r}")


def converted(text: str, kind: Any) -> Any:
    """Return a text as a value of a plain kind, or raise ValueError.

    >>> converted("3", int), converted("1e3", float), converted("no", bool), converted("none", type(None))
    (3, 1000.0, False, None)
    """
    if get_origin(kind) is Literal:
        return {str(one): one for one in get_args(kind)}[text] if text in map(str, get_args(kind)) else _refuse(text)
    if kind is Any:
        for plain in (NoneType, bool, int, float):
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
        return kind(text)
    return text if kind is str else _refuse(text)


def _refuse(text: str) -> Any:
    raise ValueError(text)
