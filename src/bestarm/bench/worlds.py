"""Instances by name and parameters: what a benchmark can be run on, as plain data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from bestarm import datasets, instances
from bestarm.arms import Arms
from bestarm.bandits import Bandit, Bernoulli, Gaussian
from bestarm.errors import InputError, UnknownNameError

SHORT = {"K": "arms", "d": "dimension", "Delta": "gap", "variance": "noise_variance"}
LONG = {long: short for short, long in SHORT.items()}


@dataclass(frozen=True)
class World:
    """How to make a bandit, and what it is in one line."""

    make: Callable[..., Bandit]
    about: str

    @property
    def params(self) -> dict[str, Any]:
        """Return what can be set, by its short name, with the default."""
        known = signature(self.make).parameters.values()
        return {LONG.get(p.name, p.name): p.default for p in known if p.name not in ("replications", "rng")}


@lru_cache(maxsize=4)
def _means_table(
    file: str, mean: str, noise_variance: float | None, bernoulli: bool, scale: str
) -> datasets.MeansTable:
    arms = Arms.from_csv(file, exclude=(mean,), scale=scale)
    noise = Bernoulli() if bernoulli else Gaussian(1.0 if noise_variance is None else noise_variance)
    return datasets.MeansTable(arms.features, arms.column(mean), noise)


def table(
    file: str = "",
    mean: str = "mean",
    noise_variance: float | None = None,
    bernoulli: bool = False,
    scale: str = "none",
    draw: int | None = None,
    replications: int | None = None,
    rng: Any = None,
) -> Bandit:
    """Return a person's CSV as a bandit: features, a column of true means, and noise."""
    return _means_table(file, mean, noise_variance, bernoulli, scale).bandit(draw, replications, rng)


@lru_cache(maxsize=4)
def _repeats(file: str, arm: str, value: str, minimize: bool, skip: int) -> datasets.Repeats:
    sign = -1.0 if minimize else 1.0
    if Path(file).suffix == ".npz":
        return _npz(file, arm, value, sign, skip)
    rows = Arms.from_csv(file, features=None, exclude=(arm, value))
    names, values = rows.table[arm], sign * rows.column(value)
    order: dict[Any, list[int]] = {}
    for place, name in enumerate(names):
        order.setdefault(name, []).append(place)
    features = rows.features[[places[0] for places in order.values()]]
    return datasets.Repeats(features, tuple(values[places[skip:]] for places in order.values()))


def _npz(file: str, features: str, values: str, sign: float, skip: int) -> datasets.Repeats:
    with np.load(file) as data:
        for key in (features, values):
            if key not in data:
                raise InputError(f"{file} has no array {key!r}; it has {', '.join(data)}")
        x, y = np.asarray(data[features], dtype=np.float64), sign * np.asarray(data[values], dtype=np.float64)
    if x.ndim != 2 or y.ndim != 2 or len(x) != len(y):
        raise InputError(f"{file}: arrays (K, d) and (K, repeats) are expected; given {x.shape} and {y.shape}")
    return datasets.Repeats(x, tuple(y[:, skip:]))


def replay(
    file: str = "",
    arm: str = "arm",
    value: str = "value",
    minimize: bool = False,
    skip: int = 0,
    draw: int | None = None,
    replications: int | None = None,
    rng: Any = None,
) -> Bandit:
    """Return recorded repeats as a bandit: a CSV of rows (arm, value, features), or an npz of features and values."""
    return _repeats(file, arm, value, minimize, skip).bandit(draw, replications, rng)


WORLDS: dict[str, World] = {
    "adaptive": World(instances.adaptive, "a basis and an arm close to the best one (section 7.1)"),
    "static": World(instances.static, "a basis, one arm better by a gap (section 7.2)"),
    "randomized": World(instances.randomized, "arms on the sphere, the closest two compete (section 7.3)"),
    "glm": World(instances.logistic, "logistic rewards in a cube (section 7.4)"),
    "automobile": World(partial(datasets.automobile, arms=16), "205 cars and their prices (appendix)"),
    "motor": World(
        datasets.motor, "moments of an electric motor and its temperature (appendix; the data is not shipped)"
    ),
    "od": World(partial(instances.randomized, noise_variance=1.0), "randomized with noise variance 1 (appendix)"),
    "corner": World(instances.corner, "a crowd of arms in the plane (appendix)"),
    "table": World(table, "your CSV: features, a column of true means, and noise"),
    "replay": World(replay, "your repeats: rows of arm, value and features, or an npz"),
}


@dataclass(frozen=True)
class Instance:
    """A world with its parameters set: plain data that can be printed, stored and sent to a worker.

    >>> str(instance("adaptive", K=8))
    'adaptive(K=8)'
    """

    world: str
    params: tuple[tuple[str, Any], ...] = ()

    def make(self, replications: int, rng: Any) -> Bandit:
        """Return a stack of `replications` bandits."""
        make = WORLDS[self.world].make
        settings = {SHORT.get(key, key): value for key, value in self.params}
        if "rng" in signature(make).parameters:
            settings["rng"] = rng
        return make(**settings, replications=replications)

    def __str__(self) -> str:
        return f"{self.world}({', '.join(f'{key}={value}' for key, value in self.params)})"


def instance(world: str, params: Mapping[str, Any] | None = None, **more: Any) -> Instance:
    """Return the instance of that name; values given as text become what the parameter is."""
    if world not in WORLDS:
        raise UnknownNameError("instance", world, WORLDS)
    known = WORLDS[world].params
    settings = {LONG.get(key, key): value for key, value in {**(params or {}), **more}.items()}
    for key, value in settings.items():
        if key not in known:
            raise InputError(f"instance {world!r} has no parameter {key!r}; it has {', '.join(known)}")
        settings[key] = _convert(world, key, value, known[key])
    return Instance(world, tuple(sorted(settings.items())))


def _convert(world: str, key: str, value: Any, default: Any) -> Any:
    whole = key in ("K", "d", "draw", "skip")
    if whole or isinstance(default, float) or key in ("noise_variance", "variance", "Delta"):
        try:
            number = float(value)
            if not np.isfinite(number) or (whole and number != int(number)) or (whole and number < 0):
                raise ValueError
        except (TypeError, ValueError):
            wanted = "a whole number" if whole else "a number"
            raise InputError(f"parameter {key} of instance {world!r} must be {wanted}; given {value!r}") from None
        return int(number) if whole else number
    if isinstance(default, bool):
        return value in (True, "true", "True", "yes", "1", 1)
    return value
