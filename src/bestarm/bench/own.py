"""One's own worlds on the bench: what `features`, `noise_variance` and `pull` do not say has a default."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bestarm.bandits import Bandit, Bernoulli, Gaussian, Poisson
from bestarm.core import Array, Pulls, Totals
from bestarm.errors import InputError
from bestarm.texts import parameters

NEEDED = ("features", "noise_variance", "pull")
PULLS = 10_000  # of each arm, for the means of a world that does not tell them


@dataclass(frozen=True, eq=False)
class Rows:
    """Worlds of one run each as a world of many; each keeps its own pull."""

    worlds: tuple[Any, ...]

    @property
    def features(self) -> Array:
        return np.stack([np.asarray(world.features) for world in self.worlds])

    @property
    def noise_variance(self) -> float | None:
        return float(np.mean(told)) if None not in (told := [one.noise_variance for one in self.worlds]) else None

    def pull(self, pulls: Pulls, taken: Array, rng: Any) -> Totals:
        asked = zip(self.worlds, pulls.arms, pulls.times, taken, strict=True)
        found = [world.pull(Pulls(arms, times), before, rng) for world, arms, times, before in asked]
        known = [(one.sums, one.squares, one.scatter) for one in found]
        return Totals(*(np.stack(part) for part in zip(*known, strict=True) if not any(one is None for one in part)))


@dataclass(frozen=True, eq=False)
class OwnWorld:
    """A world `(R, K, d)` with its arms and features in another order; right is who has the largest of `means`."""

    world: Any
    means: Array
    order: Array  # (R, K), which of the world's arms stands at each place
    columns: Array  # (R, d)
    noise: Any = None  # nothing is known of it

    @property
    def features(self) -> Array:
        moved = np.take_along_axis(np.asarray(self.world.features), self.order[..., None], axis=-2)
        return np.take_along_axis(moved, self.columns[:, None], axis=-1)

    @property
    def noise_variance(self) -> float | None:
        variance: float | None = self.world.noise_variance
        return variance

    def pull(self, pulls: Pulls, taken: Array, rng: Any) -> Totals:
        """Return the totals of `pulls`, asked of the world in its own order."""
        before = np.empty_like(taken)
        np.put_along_axis(before, self.order, taken, axis=-1)
        arms = np.take_along_axis(self.order, pulls.arms, axis=-1)
        totals: Totals = self.world.pull(Pulls(arms, pulls.times), before, rng)
        return totals

    def regret(self, arm: Array) -> Array:
        """Return how much worse than the best `arm` is."""
        chosen = np.take_along_axis(self.order, arm[:, None], axis=-1)
        return self.means.max(axis=-1) - np.take_along_axis(self.means, chosen, axis=-1)[:, 0]

    def correct(self, arm: Array) -> Array:
        """Return whether `arm` is as good as any."""
        return self.regret(arm) <= 0

    def shuffled(self, rng: np.random.Generator) -> "OwnWorld":
        """Return the same world with its arms in random order, another for each replication."""
        return replace(self, order=np.argsort(rng.random(self.order.shape), axis=-1))

    def turned(self, rng: np.random.Generator) -> "OwnWorld":
        """Return the same world with its features in random order, another for each replication."""
        return replace(self, columns=np.argsort(rng.random(self.columns.shape), axis=-1))


def made(
    function: Callable[..., Any], name: str, settings: Mapping[str, Any], replications: int, rng: Any
) -> Bandit | OwnWorld:
    """Return the worlds a function makes: called once with `replications` where it has such a parameter, or for each.

    `rng` is given to it where it has that parameter. What it returns has `features`, `noise_variance` and `pull`;
    `means` say which arm is best, and where there are none, PULLS of each arm do.
    """
    rng, known = np.random.default_rng(rng), parameters(function)
    if "replications" in known:
        more = {"rng": rng} if "rng" in known else {}
        world = function(**settings, replications=replications, **more)
    else:
        each = [{"rng": one} if "rng" in known else {} for one in rng.spawn(replications)]
        world = _stacked([_checked(function(**settings, **more), name) for more in each])
    features = np.asarray(_checked(world, name).features)
    if features.ndim != 3 or len(features) != replications:
        wanted = f"({replications}, K, d)" if "replications" in known else "(K, d)"
        raise InputError(f"instance {name!r}: features of shape {wanted} are expected; given {features.shape}")
    if isinstance(world, Bandit):
        return world
    size, arms, width = features.shape
    order, columns = (np.broadcast_to(np.arange(n), (size, n)) for n in (arms, width))
    return OwnWorld(world, _means(world, order, rng), order, columns)


def _checked(world: Any, name: str) -> Any:
    lacking = [one for one in NEEDED if not hasattr(world, one)]
    if lacking:
        raise InputError(f"instance {name!r}: a world has {', '.join(NEEDED)}; {world!r} has no {', '.join(lacking)}")
    return world


def _stacked(worlds: list[Any]) -> Any:
    """Return worlds of one run each as one; bandits whose noise is the same are a bandit again."""
    first = worlds[0]
    known = isinstance(first, Bandit) and isinstance(first.noise, Gaussian | Bernoulli | Poisson)
    if known and all(isinstance(world, Bandit) and world.noise == first.noise for world in worlds):
        return Bandit(np.stack([w.features for w in worlds]), np.stack([w.means for w in worlds]), first.noise)
    return Rows(tuple(worlds))


def _means(world: Any, every: Array, rng: np.random.Generator) -> Array:
    """Return the means `(..., K)`: those the world tells, or else the averages of many pulls."""
    if isinstance(world, Rows):
        return np.stack([_means(one, every[0], rng) for one in world.worlds])
    if hasattr(world, "means"):
        return np.asarray(world.means, dtype=np.float64)
    totals = world.pull(Pulls(every, np.full_like(every, PULLS)), np.zeros_like(every), rng)
    return np.asarray(totals.sums) / PULLS
