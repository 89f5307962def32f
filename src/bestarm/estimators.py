"""Estimators of scikit-learn, or anything alike, as plain data: a dotted path and parameters.

So they can be printed, compared, hashed and written to JSON. Nothing is imported before it is built.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from typing import Any, TypeAlias

from bestarm.errors import InputError

Params: TypeAlias = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Part:
    """An estimator inside another, such as a step of a pipeline, written down in the same way."""

    path: str
    params: Params = ()


def build(path: str, params: Mapping[str, Any] | Iterable[tuple[str, Any]] = ()) -> Any:
    """Return a fresh estimator; one that is random and has no `random_state` gets 0, so that runs repeat.

    >>> build("sklearn.preprocessing.PolynomialFeatures", {"degree": 3}).degree
    3
    """
    made = _load(path)
    try:
        estimator = made(**{name: _thaw(value) for name, value in freeze(params)})
    except TypeError as error:
        raise InputError(f"{path} cannot be made with {dict(freeze(params))}: {error}") from error
    if not all(hasattr(estimator, method) for method in ("fit", "get_params", "set_params")):
        raise InputError(f"{path} is not an estimator: fit, get_params and set_params are expected of one")
    if estimator.get_params(deep=False).get("random_state", 0) is None:
        estimator.set_params(random_state=0)
    return estimator


def describe(estimator: Any) -> tuple[str, Params]:
    """Return the path and the parameters from which `build` makes an estimator like this one.

    Parameters at their default are left out; another estimator becomes a `Part`. One that is not plain data, such
    as a function, cannot be written down and is refused.

    >>> from sklearn.preprocessing import PolynomialFeatures
    >>> describe(PolynomialFeatures(degree=3))
    ('sklearn.preprocessing.PolynomialFeatures', (('degree', 3),))
    """
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        raise InputError(f"an estimator with get_params is expected, not a class; given {estimator!r}")
    defaults = signature(type(estimator)).parameters
    changed = {}
    for name, value in estimator.get_params(deep=False).items():
        default = defaults[name].default if name in defaults else None
        # Plain data has a faithful repr, and by repr a NaN equals itself.
        if value is not default and repr(value) != repr(default):
            changed[name] = value
    return _path(type(estimator)), freeze(changed)


def freeze(params: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> Params:
    """Return parameters as pairs sorted by name, lists as tuples; refuse what is not plain data.

    >>> freeze({"whiten": True, "feature_range": [0, 1]})
    (('feature_range', (0, 1)), ('whiten', True))
    """
    try:
        pairs = dict(params)
    except (TypeError, ValueError) as error:
        raise InputError(f"params must map names to values; given {params!r}") from error
    if not all(isinstance(name, str) for name in pairs):
        raise InputError(f"the names of params must be strings; given {list(pairs)}")
    return tuple((name, _plain(name, pairs[name])) for name in sorted(pairs))


def _plain(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return tuple(_plain(name, part) for part in value)
    if isinstance(value, Part):
        return Part(value.path, freeze(value.params))
    if hasattr(value, "get_params") and not isinstance(value, type):
        return Part(*describe(value))
    raise InputError(f"parameter {name} must be a number, a string, None or a list of those; given {value!r}")


def _thaw(value: Any) -> Any:
    if isinstance(value, Part):
        return build(value.path, value.params)
    return tuple(_thaw(part) for part in value) if isinstance(value, tuple) else value


def _load(path: str) -> Any:
    module, _, name = path.rpartition(".")
    example = "the dotted path of a class such as sklearn.preprocessing.StandardScaler is expected"
    if not module or path.startswith("."):
        raise InputError(f"{path!r} names no class; {example}")
    try:
        found = getattr(import_module(module), name, None)
    except ImportError as error:
        raise InputError(f"{module} cannot be imported ({error}); {example}") from error
    if not isinstance(found, type):
        raise InputError(f"{module} has no class {name}; {example}")
    return found


def _path(made: type) -> str:
    # The shortest module that offers a class is its public one: sklearn.decomposition, not ._pca below it.
    parts = made.__module__.split(".")
    modules = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
    for module in modules:
        # Another process would not find in its own __main__ what this one has there.
        if module != "__main__" and getattr(import_module(module), made.__name__, None) is made:
            return f"{module}.{made.__name__}"
    raise InputError(f"{made.__qualname__} cannot be imported from {made.__module__}; move it to a module")
