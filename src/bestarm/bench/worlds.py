"""Instances by name and parameters: what a benchmark can be run on, as plain data."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, cast

import numpy as np

from bestarm import datasets, instances, misleading, plugins
from bestarm.bandits import Bandit, Bernoulli, Gaussian, Recorded
from bestarm.bench import own
from bestarm.errors import InputError, UnknownNameError
from bestarm.tables.arms import Arms
from bestarm.texts import imported, parameters, settled

NOISES = ("normal", "uneven", "proportional", "group", "heavy", "slips", "slips of either sign")
SHORT = {"K": "arms", "d": "dimension", "Delta": "gap", "variance": "noise_variance"}
LONG = {long: short for short, long in SHORT.items()}


@dataclass(frozen=True)
class World:
    """How to make a bandit, and what it is in one line."""

    make: Callable[..., Bandit]
    about: str

    @property
    def settings(self) -> dict[str, Parameter]:
        """What can be set, by its short name."""
        return {LONG.get(name, name): one for name, one in _settings(self.make).items()}

    @property
    def params(self) -> dict[str, Any]:
        """What can be set, by its short name, with the default."""
        return {name: one.default for name, one in self.settings.items()}

    def bandit(self, name: str, params: Mapping[str, Any], replications: int, rng: Any) -> Bandit:
        """Return a stack of `replications` bandits with these parameters."""
        settings = {SHORT.get(key, key): value for key, value in params.items()}
        if "rng" in signature(self.make).parameters:
            settings["rng"] = rng
        return self.make(**settings, replications=replications)


@dataclass(frozen=True)
class OwnFunction:
    """A function of one's own that makes worlds; see `bestarm.bench.own.made` for what it may return."""

    make: Callable[..., Any]

    @property
    def settings(self) -> dict[str, Parameter]:
        """What can be set."""
        return _settings(self.make)

    def bandit(self, name: str, params: Mapping[str, Any], replications: int, rng: Any) -> Any:
        """Return a stack of `replications` worlds with these parameters."""
        return own.made(self.make, name, params, replications, rng)


def _settings(make: Callable[..., Any]) -> dict[str, Parameter]:
    """Return the parameters of a function that are for a person to set."""
    some = {name: one for name, one in parameters(make).items() if name not in ("replications", "rng")}
    return {
        name: one for name, one in some.items() if one.kind not in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
    }


def varied(make: Callable[..., Bandit]) -> Callable[..., Bandit]:
    """Return `make` with settings for a wrong model and another noise; left alone, they change nothing."""
    inner = signature(make).parameters

    def made(
        deviation: float = 0.0,
        bend: str = "none",
        strength: float = 1.0,
        noise: str = "normal",
        ratio: float = 9.0,
        freedom: float = 3.0,
        share: float = 0.01,
        times: float = 100.0,
        offset: float = 0.0,
        replications: int | None = None,
        rng: Any = None,
        **settings: Any,
    ) -> Bandit:
        if noise not in NOISES:
            raise UnknownNameError("noise", noise, NOISES)
        rng = np.random.default_rng(rng)
        if "rng" in inner:
            settings["rng"] = rng
        bandit = make(**settings, replications=replications)
        if bend != "none":
            bandit = instances.bent(bandit, bend, strength, rng)
        if deviation:
            bandit = instances.deviated(bandit, deviation, rng)
        if offset:
            bandit = instances.shifted(bandit, offset)
        by_name: dict[str, Callable[[], Bandit]] = {
            "normal": lambda: bandit,
            "uneven": lambda: instances.uneven(bandit, ratio, rng),
            "proportional": lambda: instances.proportional(bandit, ratio),
            "group": lambda: instances.noisier(bandit, ratio, rng),
            "heavy": lambda: instances.heavy(bandit, freedom),
            "slips": lambda: instances.slipped(bandit, share, times),
            "slips of either sign": lambda: instances.slipped(bandit, share, times, either=True),
        }
        return by_name[noise]()

    own = [p for p in signature(made).parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
    given = [p for p in inner.values() if p.name not in ("replications", "rng")]
    both = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in (*given, *own)]
    made.__signature__ = Signature(both)  # type: ignore[attr-defined]
    return made


def _located(file: str) -> str:
    """Return `file`, or the file of that name in the folder BESTARM_DATA names."""
    folder = os.environ.get("BESTARM_DATA")
    if folder and not Path(file).exists() and (Path(folder) / file).exists():
        return str(Path(folder) / file)
    return file


@lru_cache(maxsize=4)
def _means_table(
    file: str, mean: str, noise_variance: float | None, bernoulli: bool, scale: str
) -> datasets.MeansTable:
    arms = Arms.from_file(file, exclude=(mean,), scale=scale)
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
def _repeats(file: str, arm: str, value: str, minimize: bool, skip: int, scale: str) -> datasets.Repeats:
    sign = -1.0 if minimize else 1.0
    if Path(file).suffix == ".npz":
        return _npz(file, arm, value, sign, skip, scale)
    rows = Arms.from_file(file, features=None, exclude=(arm, value), scale=scale)
    names, values = rows.table[arm], sign * rows.column(value)
    order: dict[Any, list[int]] = {}
    for place, name in enumerate(names):
        order.setdefault(name, []).append(place)
    features = rows.features[[places[0] for places in order.values()]]
    return datasets.Repeats(features, tuple(values[places[skip:]] for places in order.values()))


def _npz(file: str, features: str, values: str, sign: float, skip: int, scale: str) -> datasets.Repeats:
    if not Path(file).is_file():
        raise InputError(f"there is no file {file}, nor one of that name in the folder BESTARM_DATA names")
    with np.load(file) as data:
        for key in (features, values):
            if key not in data:
                raise InputError(f"{file} has no array {key!r}; it has {', '.join(data)}")
        x, y = np.asarray(data[features], dtype=np.float64), sign * np.asarray(data[values], dtype=np.float64)
    if x.ndim != 2 or y.ndim != 2 or len(x) != len(y):
        raise InputError(f"{file}: arrays (K, d) and (K, repeats) are expected; given {x.shape} and {y.shape}")
    return datasets.Repeats(_scaled(x, scale), tuple(y[:, skip:]))


def _scaled(x: Any, scale: str) -> Any:
    """Return features `(K, d)` scaled as a table's are; a column that is constant becomes 0."""
    known = {"none": (0.0, 1.0), "minmax": (x.min(0), np.ptp(x, 0)), "standard": (x.mean(0), x.std(0))}
    if scale not in known:
        raise UnknownNameError("scale", scale, known)
    middle, unit = known[scale]
    return (x - middle) / np.where(unit == 0, 1.0, unit)


def replay(
    file: str = "",
    arm: str = "arm",
    value: str = "value",
    minimize: bool = False,
    skip: int = 0,
    scale: str = "none",
    told: bool = False,
    jitter: float = 0.0,
    draw: int | None = None,
    replications: int | None = None,
    rng: Any = None,
) -> Bandit:
    """Return recorded repeats as a bandit: a CSV of rows (arm, value, features), or an npz of features and values.

    A file that is not there is looked for in the folder BESTARM_DATA names. `told` lets policies know the average
    variance of the repeats of an arm, which some cannot do without. `jitter` is the variance of noise on top.
    """
    if not 0 <= jitter < np.inf:
        raise InputError(f"jitter must be a variance; given {jitter}")
    repeats = _repeats(_located(file), arm, value, minimize, skip, scale)
    bandit = repeats.bandit(draw, replications, rng)
    variance = repeats.variance + jitter if told else None
    return replace(bandit, noise=replace(cast(Recorded, bandit.noise), variance=variance, jitter=jitter))


WORLDS: dict[str, World] = {
    "adaptive": World(varied(instances.adaptive), "a basis and an arm close to the best one (section 8.1)"),
    "static": World(varied(instances.static), "a basis, one arm better by a gap (section 8.2)"),
    "randomized": World(varied(instances.randomized), "arms on the sphere, the closest two compete (section 8.3)"),
    "glm": World(varied(instances.logistic), "logistic rewards in a cube (section 8.4)"),
    "automobile": World(partial(datasets.automobile, arms=16), "205 cars and their prices (appendix)"),
    "motor": World(
        datasets.motor, "moments of an electric motor and its temperature (appendix; the data is not shipped)"
    ),
    "od": World(
        varied(partial(instances.randomized, noise_variance=1.0)), "randomized with noise variance 1 (appendix)"
    ),
    "corner": World(varied(instances.corner), "a crowd of arms in the plane (appendix)"),
    "factorial": World(varied(instances.factorial), "all settings of factors at two levels, rewards 0 or 1"),
    "functions": World(varied(instances.functions), "random functions of a cube: linear, cubic, product, tree"),
    "needle": World(varied(misleading.needle), "a line, and an arm or two that are far above it"),
    "hill": World(varied(misleading.hill), "a hill somewhere in a plain"),
    "parabola": World(varied(misleading.parabola), "one feature, the best somewhere in the middle"),
    "useless": World(varied(misleading.useless), "features that say nothing"),
    "clicks": World(varied(misleading.clicks), "rare clicks, and features that say nothing of them"),
    "families": World(varied(misleading.families), "answers graded 0 or 1; a small one of a family surprises"),
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
    own: OwnFunction | None = None

    def make(self, replications: int, rng: Any) -> Any:
        """Return a stack of `replications` bandits."""
        return (self.own or WORLDS[self.world]).bandit(self.world, dict(self.params), replications, rng)

    def __str__(self) -> str:
        return f"{self.world}({', '.join(f'{key}={value}' for key, value in self.params)})"


def instance(world: str | Callable[..., Any], params: Mapping[str, Any] | None = None, /, **more: Any) -> Instance:
    """Return the instance of that name, of an installed package's, or of one's own function or `module:function`.

    Values given as text become what the parameter is: by the annotations of the function.
    """
    if isinstance(world, str) and world not in WORLDS and ":" not in world:
        if world not in plugins.names("worlds"):
            raise UnknownNameError("instance", world, [*WORLDS, *plugins.names("worlds")])
        world = plugins.part("worlds", world)
    if isinstance(world, str) and world in WORLDS:
        name, kind, known = world, None, WORLDS[world].settings
        given = {LONG.get(key, key): value for key, value in {**(params or {}), **more}.items()}
    else:
        name, kind = _own(world)
        given, known = {**(params or {}), **more}, kind.settings
    settings = settled(known, given, f"instance {name!r}")
    return Instance(name, tuple(sorted(settings.items())), kind)


def _own(world: str | Callable[..., Any]) -> tuple[str, OwnFunction]:
    """Return a function of one's own with the name it is written down by."""
    function = imported(world) if isinstance(world, str) else world
    name = f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', '<nameless>')}"
    if not callable(function) or "<" in name:
        raise InputError(
            f"instance {name}: a function at the top of its module is expected, whose name tells it from others; "
            "what varies is a parameter"
        )
    return (world if isinstance(world, str) else name), OwnFunction(function)
