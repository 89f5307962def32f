"""Whole tables of 1,000 to 16,000 arms: made up by a formula anew for each draw, or timings that were recorded.

Those made up have means of standard deviation 1 over the arms, and normal noise of a tenth of their range.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from bestarm import bench
from bestarm.bandits import Bandit, Gaussian, Stream
from bestarm.simulate.chunks import common, fingerprint, seeds

NOISE = 0.1  # standard deviation, of the range of the means
SIZES = (600, 16_000)  # of recorded tables


def lattice(*levels: int) -> Any:
    """Return all settings of factors with so many levels between 0 and 1, `(K, d)`."""
    axes = np.meshgrid(*(np.linspace(0, 1, n) for n in levels), indexing="ij")
    return np.stack([axis.ravel() for axis in axes], axis=-1)


def ridges(rng: np.random.Generator) -> tuple[Any, Any]:
    """Return a grid of five features, 4,320 arms, and the product of four smooth ridges in directions of any kind."""
    x = lattice(6, 6, 6, 5, 4)
    means = np.ones(len(x))
    for _ in range(4):
        way = rng.standard_normal(5)
        along = x @ (way / np.linalg.norm(way))
        middle, width = rng.choice(along), rng.uniform(0.15, 0.35)
        means *= 0.3 + np.exp(-(((along - middle) / width) ** 2))
    return x, means


def fourier(rng: np.random.Generator, waves: int = 300, length: float = 0.35) -> tuple[Any, Any]:
    """Return 4,000 points of a cube of five features, and a draw of a Gaussian process with a Gaussian kernel.

    It is the sum of cosines with frequencies N(0, `length`⁻²) and any phase.
    """
    x = rng.random((4000, 5))
    frequency, phase = rng.standard_normal((5, waves)) / length, 2 * np.pi * rng.random(waves)
    return x, np.cos(x @ frequency + phase) @ rng.standard_normal(waves)


def tuning(rng: np.random.Generator) -> tuple[Any, Any]:
    """Return a log-scaled grid of learning rate, decay and width, 2,400 arms, and a loss with a valley.

    The best rate falls with the width; much above it training diverges, and the loss is what it was before.
    """
    x = lattice(25, 12, 8)
    rate, decay, width = -5 + 5 * x[:, 0], -6 + 5 * x[:, 1], 4 + 7 * x[:, 2]
    best = rng.uniform(-3.2, -2.0) - rng.uniform(0.05, 0.25) * (width - 7.5)
    off, other = rate - best, decay - rng.uniform(-5, -2)
    loss = 0.35 * off**2 + 0.06 * other**2 + rng.uniform(-0.15, 0.15) * off * other
    loss = loss + 0.02 * (width - rng.uniform(6, 11)) ** 2
    start = 2.5
    return x, -np.where(off > rng.uniform(0.7, 1.3), start, np.minimum(loss, start))


def hills(rng: np.random.Generator, count: int = 6) -> tuple[Any, Any]:
    """Return 5,000 points of a cube of four features, and a mixture of hills of several heights and widths."""
    x = rng.random((5000, 4))
    off = x[:, None] - rng.random((count, 4))
    heights, widths = rng.uniform(0.5, 1.5, count), rng.uniform(0.06, 0.18, count)
    return x, np.exp(-np.vecdot(off, off) / (2 * widths**2)) @ heights


def line(rng: np.random.Generator, dimension: int) -> tuple[Any, Any]:
    """Return 3,000 points of a cube, and a line."""
    x = rng.random((3000, dimension))
    return x, x @ rng.standard_normal(dimension)


def switches(rng: np.random.Generator, count: int = 10) -> tuple[Any, Any]:
    """Return all 2^10 settings of switches: effects, and two switches that work together only."""
    x = 2 * lattice(*([2] * count)) - 1
    one, two = rng.choice(count, 2, replace=False)
    return x, x @ rng.standard_normal(count) + 1.5 * x[:, one] * x[:, two]


SMOOTH: Mapping[str, Callable[[np.random.Generator], tuple[Any, Any]]] = {
    "ridges": ridges, "fourier": fourier, "tuning": tuning, "hills": hills,
}  # fmt: skip
OTHERS = {"line in 5": partial(line, dimension=5), "line in 20": partial(line, dimension=20), "switches": switches}


@dataclass(frozen=True)
class WholeTable:
    """A table by its name; `make` returns features and means of one draw, `file` is that of recorded timings."""

    name: str
    group: str
    make: Callable[[np.random.Generator], tuple[Any, Any]] | None = None
    file: str | None = None

    def bandit(self, rng: np.random.Generator) -> Bandit:
        """Return the truth of one draw, a stack of one."""
        if self.make is None:
            return _recorded(str(self.file))
        x, means = self.make(rng)
        means = (means - means.mean()) / means.std()
        return Bandit(x[None], means[None], Gaussian(float(NOISE * np.ptp(means)) ** 2))

    def draw(self, seed: int) -> tuple[Bandit, Stream]:
        """Return the truth of a draw, arms and features in any order, and the rewards that everyone meets there."""
        rng = np.random.default_rng(seeds(seed, fingerprint(self.name)))
        bandit = self.bandit(rng).shuffled(rng).turned(rng)
        return bandit, common(bandit, rng)


@lru_cache(maxsize=2)
def _recorded(file: str) -> Bandit:
    """Return timings as recorded but for the first of each, which is a cold start's."""
    settings = {"arm": "X", "value": "times_ms", "minimize": True, "skip": 1, "scale": "minmax", "told": True}
    made: Bandit = bench.instance("replay", settings, file=file).make(1, 0)
    return made


def tables(data: str | None) -> tuple[list[WholeTable], list[str]]:
    """Return all tables, those recorded in a folder first, and why some are not among them."""
    found, absent = [], []
    if data is None:
        absent.append("kernel timings: BESTARM_DATA names no folder; docs/suites.md says how to get them")
    for path in sorted([*Path(data).glob("kernels/*.npz"), *Path(data).glob("fooled/*.npz")] if data else []):
        with np.load(path) as arrays:
            arms = len(arrays["X"]) if {"X", "times_ms"} <= set(arrays) else 0
        if SIZES[0] <= arms <= SIZES[1]:
            found.append(WholeTable(path.stem.replace("_", " "), "kernels", file=str(path)))
        else:
            absent.append(f"{path.name}: it is no table of {SIZES[0]} to {SIZES[1]} arms")
    if data is not None and not found:
        absent.append(f"kernel timings: there are none in {data}; docs/suites.md says how to get them")
    found.sort(key=lambda table: table.name != "convolution A100")
    made = [WholeTable(name, "smooth", make) for name, make in SMOOTH.items()]
    groups = {name: "switches" if name == "switches" else "lines" for name in OTHERS}
    others = [WholeTable(name, groups[name], make) for name, make in OTHERS.items()]
    return [*found[:1], *made, *found[1:], *others], absent
