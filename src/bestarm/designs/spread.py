"""Allocations that need no design problem solved: uniform, clustered, forced."""

import warnings
from dataclasses import dataclass

import numpy as np

from bestarm.core import AnyArray, Random, namespace
from bestarm.designs.protocols import Design
from bestarm.designs.starts import kumar_yildirim
from bestarm.linalg import Candidates, evened, one_hot, span_coordinates


@dataclass(frozen=True)
class Uniform:
    """⌊n/k⌋ pulls each, and one more for a random n mod k of the arms.

    >>> sorted(Uniform().allocate(Candidates.of(np.eye(3)), 7, np.random.default_rng(1)).tolist())
    [2, 2, 3]
    """

    def allocate(self, candidates: Candidates, pulls: int, rng: Random, targets: AnyArray | None = None) -> AnyArray:
        shape = candidates.features.shape[:-1]
        each, rest = divmod(pulls, shape[-1])
        return each + random_subset(shape, rest, rng, candidates.features)


@dataclass(frozen=True)
class Equal:
    """The same number ⌊n/k⌋ of pulls for each arm (Karnin, Koren and Somekh 2013); the n mod k left are not spent.

    With fewer pulls than arms, a random n of them have one each: the rule would spend nothing.

    >>> Equal().allocate(Candidates.of(np.eye(3)), 8, np.random.default_rng())
    array([2, 2, 2])
    """

    def allocate(self, candidates: Candidates, pulls: int, rng: Random, targets: AnyArray | None = None) -> AnyArray:
        xp = namespace(candidates.features)
        shape = tuple(candidates.features.shape[:-1])
        if pulls < shape[-1]:
            return random_subset(shape, pulls, rng, candidates.features)
        return xp.full(shape, pulls // shape[-1], dtype=xp.int64)


def random_subset(shape: tuple[int, ...], size: int, rng: Random, like: AnyArray) -> AnyArray:
    """Return ones `(..., k)` for a random `size` of the arms, zeros for the others."""
    xp = namespace(like)
    order = xp.argsort(xp.asarray(rng.random(shape)), axis=-1)
    return xp.astype(xp.argsort(order, axis=-1) < size, xp.int64)


@dataclass(frozen=True)
class Clustered:
    """Equal budget for each cluster of arms, uniform inside (the paper's appendix on more general models).

    k-means on the features; `clusters` None takes as many as the span has dimensions, at most one an arm.

    >>> crowd = np.column_stack([1 + 0.03 * np.sin(np.arange(20.0)), np.zeros(20)])
    >>> arms = Candidates.of(np.concatenate([crowd, [[0.0, 1.0]]]))  # 20 near e_1, and e_2
    >>> int(Clustered().allocate(arms, 40, np.random.default_rng(1))[-1])
    20
    """

    clusters: int | None = None

    def allocate(self, candidates: Candidates, pulls: int, rng: Random, targets: AnyArray | None = None) -> AnyArray:
        xp = namespace(candidates.features)
        *batch, arms, columns = candidates.features.shape
        flat = np.reshape(np.asarray(candidates.features), (-1, arms, columns))
        draws = np.reshape(np.asarray(rng.random((*batch, arms + 1))), (-1, arms + 1))
        times = [self._one(x, pulls, draw) for x, draw in zip(flat, draws, strict=True)]
        return xp.reshape(xp.asarray(np.stack(times)), (*batch, arms))

    def _one(self, features: AnyArray, pulls: int, draw: AnyArray) -> AnyArray:
        from sklearn.cluster import KMeans
        from sklearn.exceptions import ConvergenceWarning

        features = evened(features, axis=(-2, -1))
        distinct = len(np.unique(features, axis=0))
        dimension = int(np.count_nonzero(np.any(span_coordinates(features) != 0, axis=0)))
        wanted = self.clusters if self.clusters is not None else max(dimension, 1)
        means = KMeans(min(wanted, distinct), n_init=1, random_state=int(draw[-1] * 2**31))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # of arms that differ by rounding only
            label = means.fit_predict(features)
        groups = [np.nonzero(label == c)[0] for c in range(label.max() + 1)]
        groups.sort(key=len)  # an odd pull goes where it is spread thinnest
        budget = [pulls // len(groups) + (g >= len(groups) - pulls % len(groups)) for g in range(len(groups))]
        times = np.zeros(len(features), dtype=np.int64)
        for members, share in zip(groups, budget, strict=True):
            order = members[np.argsort(draw[members])]
            times[order] = share // len(order) + (np.arange(len(order)) < share % len(order))
        return times


@dataclass(frozen=True)
class Forced:
    """Another design, changed so that `each` of d arms that span the space has a pull at least (paper, section 5).

    Bounds c_min away from zero in generalized linear models. The pulls come from the arms that have most.
    """

    design: Design
    each: int = 1

    def allocate(self, candidates: Candidates, pulls: int, rng: Random, targets: AnyArray | None = None) -> AnyArray:
        xp = namespace(candidates.coordinates)
        times = self.design.allocate(candidates, pulls, rng, targets)
        basis = xp.astype(kumar_yildirim(candidates.coordinates) > 0, xp.int64)
        wanted = self.each * basis
        if self.each * int(xp.max(xp.sum(basis, axis=-1))) > pulls:
            return times
        times = xp.maximum(times, wanted)
        for _ in range(int(xp.max(xp.sum(times, axis=-1))) - pulls):
            spare = xp.argmax(times - wanted, axis=-1)
            over = xp.astype(xp.sum(times, axis=-1) > pulls, xp.int64)
            times = times - one_hot(spare, times.shape[-1], xp.int64) * over[..., None]
        return times
