"""Real tables as bandits: the paper's two, a person's own table of means, and recorded repeats."""

import csv
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from bestarm.bandits import Bandit, Bernoulli, Gaussian, Noise, Recorded
from bestarm.errors import InputError
from bestarm.instances import VARIANTS

CAR_FEATURES = ("curb_weight", "width", "engine_size", "city_mpg", "highway_mpg")

# Least and largest value of each column over all 998,070 rows: a sample is scaled as the whole is.
MOTOR_RANGES = {
    "ambient": (-8.573954, 2.967117),
    "coolant": (-1.429349, 2.649032),
    "u_d": (-1.655373, 2.274734),
    "u_q": (-1.861463, 1.793498),
    "motor_speed": (-1.371529, 2.024164),
    "torque": (-3.345953, 3.016971),
    "i_d": (-3.245874, 1.060937),
    "i_q": (-3.341639, 2.914185),
    "pm": (-2.631991, 2.917456),
    "stator_yoke": (-1.834688, 2.449158),
    "stator_tooth": (-2.066143, 2.326668),
    "stator_winding": (-2.019973, 2.653781),
}


@dataclass(frozen=True)
class Cars:
    """The UCI Automobile table (J. Schlimmer, 1987, doi 10.24432/C5B01C, CC BY 4.0): 205 cars, five features."""

    names: tuple[str, ...]
    features: Any  # (205, 5) as recorded
    prices: Any  # (205,), NaN for the four that are missing


def load_cars() -> Cars:
    """Return the table as recorded.

    >>> cars = load_cars()
    >>> cars.features.shape, cars.names[int(np.nanargmax(cars.prices))]
    ((205, 5), 'mercedes-benz hardtop')
    """
    table = (files("bestarm") / "data" / "automobile.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(table.splitlines()))
    features = np.array([[float(row[name]) for name in CAR_FEATURES] for row in rows])
    prices = np.array([float(row["price"] or "nan") for row in rows])
    return Cars(tuple(f"{row['make']} {row['body_style']}" for row in rows), features, prices)


def automobile(
    arms: int | None = None,
    noise_variance: float = 0.1,
    variant: str = "text",
    target: str = "price",
    replications: int | None = None,
    rng: Any = None,
) -> Bandit:
    """Return the cars as a bandit by the paper's protocol: missing prices take the mean, all scaled to [0, 1].

    `arms` None is all 205; otherwise each replication draws that many, the published code with replacement. Another
    `target` than the price is a feature to be found by the others and the price.
    """
    columns = (*CAR_FEATURES, "price")
    if target not in columns:
        raise InputError(f"target must be a column of the cars, {', '.join(columns)}; given {target!r}")
    cars = load_cars()
    prices = np.where(np.isnan(cars.prices), np.nanmean(cars.prices), cars.prices)
    table = np.column_stack([cars.features, prices])[:, np.argsort([c == target for c in columns], kind="stable")]
    table = (table - table.min(axis=0)) / (table.max(axis=0) - table.min(axis=0))
    drawn = table[_draw(len(table), arms, replications, rng, variant == VARIANTS[1])]
    return Bandit(drawn[..., :-1], drawn[..., -1], Gaussian(noise_variance))


def motor_path(path: str | os.PathLike[str] | None = None) -> Path:
    """Return where the Electric Motor Temperature table is: `path`, or the one BESTARM_DATA names.

    The table (Kirchgässner, Wallscheid, Böcker; Paderborn University; CC BY-SA 4.0) is not shipped. BESTARM_DATA is a
    CSV, or a folder that has one somewhere with "motor" or "pmsm" in its name.
    """
    given = path if path is not None else os.environ.get("BESTARM_DATA")
    if not given:
        raise InputError("the motor table is not shipped: give its path, or set BESTARM_DATA to it or to its folder")
    place = Path(given)
    if place.is_dir():
        names = [p for p in sorted(place.rglob("*.csv")) if {"motor", "pmsm"} & set(p.stem.lower().split("_"))]
        if not names:
            raise InputError(f"no motor table in {place}: a CSV with motor or pmsm in its name is expected")
        place = names[0]
    if not place.is_file():
        raise InputError(f"there is no file {place}")
    return place


def motor(
    arms: int = 16,
    target: str | None = None,
    noise_variance: float = 0.1,
    path: str | None = None,
    variant: str = "text",
    replications: int | None = None,
    rng: Any = None,
) -> Bandit:
    """Return moments of an electric motor as a bandit, eleven features, all scaled to [0, 1] over the full table.

    The text looks for the highest temperature (`target` "pm"), the published code for the highest "motor_speed".
    """
    goal = target or {"text": "pm", "published-code": "motor_speed"}[variant]
    if goal not in MOTOR_RANGES:
        raise InputError(f"target must be a column of the motor table, {', '.join(MOTOR_RANGES)}; given {goal!r}")
    table = _motor_table(motor_path(path))
    names = [name for name in MOTOR_RANGES if name != goal]
    drawn = _draw(len(table[goal]), arms, replications, rng, variant == VARIANTS[1])
    features = np.stack([table[name][drawn] for name in names], axis=-1)
    return Bandit(features, table[goal][drawn], Gaussian(noise_variance))


@lru_cache(maxsize=1)
def _motor_table(path: Path) -> Mapping[str, Any]:
    with path.open(encoding="utf-8") as file:
        header = file.readline().strip().split(",")
    missing = [name for name in MOTOR_RANGES if name not in header]
    if missing:
        raise InputError(f"{path} is not the motor table: it has no column {missing[0]!r}")
    columns = np.loadtxt(path, delimiter=",", skiprows=1, usecols=[header.index(n) for n in MOTOR_RANGES], unpack=True)
    return {
        name: (column - low) / (high - low)
        for (name, (low, high)), column in zip(MOTOR_RANGES.items(), columns, strict=True)
    }


@dataclass(frozen=True)
class MeansTable:
    """A person's table: features `(K, d)`, true means `(K,)`, noise."""

    features: Any
    means: Any
    noise: Noise = field(default_factory=Gaussian)

    def bandit(self, arms: int | None = None, replications: int | None = None, rng: Any = None) -> Bandit:
        """Return all arms, or `arms` of them drawn anew for each replication."""
        if isinstance(self.noise, Bernoulli) and (np.min(self.means) < 0 or np.max(self.means) > 1):
            raise InputError("means of rewards 0 or 1 must lie between 0 and 1")
        drawn = _draw(len(self.means), arms, replications, rng)
        return Bandit(self.features[drawn], self.means[drawn], self.noise)


@dataclass(frozen=True)
class Repeats:
    """Recorded repeats: features `(K, d)` and for each arm the values seen, drawn again with replacement."""

    features: Any
    values: tuple[Any, ...]

    @property
    def variance(self) -> float:
        """The variance of the values of an arm, averaged over the arms."""
        return float(np.mean([np.var(v) for v in self.values]))

    def bandit(self, arms: int | None = None, replications: int | None = None, rng: Any = None) -> Bandit:
        """Return all arms, or `arms` of them drawn anew for each replication; the mean of the values is the truth."""
        drawn = _draw(len(self.values), arms, replications, rng)
        longest = max(len(v) for v in self.values)
        counts = np.array([len(v) for v in self.values])
        padded = np.stack([np.resize(np.asarray(v, dtype=np.float64), longest) for v in self.values])
        means = np.array([np.mean(v) for v in self.values])
        return Bandit(self.features[drawn], means[drawn], Recorded(padded[drawn], counts[drawn]))


def _draw(size: int, arms: int | None, replications: int | None, rng: Any, again: bool = False) -> Any:
    """Return rows `(..., arms)` of a table, by default without replacement."""
    shape = () if replications is None else (replications,)
    if arms is None:
        return np.broadcast_to(np.arange(size), (*shape, size))
    if not 1 <= arms <= size:
        raise InputError(f"{arms} arms cannot be drawn from a table of {size}")
    rng = np.random.default_rng(rng)
    if again:
        return rng.integers(size, size=(*shape, arms))
    if replications is None or size <= 4096:
        return np.argsort(rng.random((*shape, size)), axis=-1)[..., :arms]
    return np.stack([rng.choice(size, arms, replace=False) for _ in range(replications)])
