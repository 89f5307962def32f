"""Real tables as bandits."""

import csv
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from bestarm.bandits import Bandit, Gaussian

CAR_FEATURES = ("curb_weight", "width", "engine_size", "city_mpg", "highway_mpg")


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
    arms: int | None = None, noise_variance: float = 0.1, replications: int | None = None, rng: Any = None
) -> Bandit:
    """Return the cars as a bandit by the paper's protocol: missing prices take the mean, all scaled to [0, 1].

    `arms` None is all 205; otherwise each replication draws that many without replacement.
    """
    cars = load_cars()
    prices = np.where(np.isnan(cars.prices), np.nanmean(cars.prices), cars.prices)
    table = np.column_stack([cars.features, prices])
    table = (table - table.min(axis=0)) / (table.max(axis=0) - table.min(axis=0))
    shape = () if replications is None else (replications,)
    if arms is None:
        drawn = np.broadcast_to(table, (*shape, *table.shape))
    else:
        order = np.argsort(np.random.default_rng(rng).random((*shape, len(table))), axis=-1)
        drawn = table[order[..., :arms]]
    return Bandit(drawn[..., :-1], drawn[..., -1], Gaussian(noise_variance))
