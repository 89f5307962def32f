"""Kernels among very many arms, through some of them that follow the pulls.

A few arms far from one another sit in the corners, and what they say nothing of counts as each arm's own: then one arm
tells little of its neighbours. So features go through the arms that were pulled, most of all, and some of those far
from one another. With L these landmarks, k(L, L) = R R' by its eigenvectors and X all arms,

    F = k(X, L) R |R|⁻²  by column,    τ = max(1 − |F|², 0).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from bestarm.core import Array
from bestarm.kernels import Radial, kernel_features, squared_distances
from bestarm.linalg import rows, top
from bestarm.structures.bases import Base, spread_out, unit_length

HELD = 2**23  # numbers in a table of features: with more arms there are fewer of them
MOST, LEAST = 160, 64  # landmarks, at most and among very many arms
FIXED = 5  # one landmark in so many is an arm far from others, whatever was pulled


@dataclass(frozen=True)
class Landmarks:
    """Where arms lie, in root mean squared distances `(..., K, d)`, and those far from one another, `(..., n)`."""

    places: Array
    far: Array
    kernels: Mapping[str, Radial]
    dimensions: Mapping[str, Array]  # of the bases these kernels are of at first: scales must stay, (...)

    @classmethod
    def of(cls, standard: Array, kernels: Mapping[str, Radial], bases: Mapping[str, Base]) -> "Landmarks":
        """Return the landmarks of arms with standardised features `(..., K, d)`."""
        count = int(np.clip(HELD // standard.shape[-2], LEAST, MOST))
        far = spread_out(standard, count // FIXED)
        dimensions = {name: bases[name].dimension for name in kernels}
        return cls(unit_length(standard), far, kernels, dimensions)

    def each(self, change: Callable[[Array, int], Array]) -> "Landmarks":
        """Return the same with each part changed, given the part and how many axes of its own it has."""
        dimensions = {name: change(one, 0) for name, one in self.dimensions.items()}
        return replace(self, places=change(self.places, 2), far=change(self.far, 1), dimensions=dimensions)

    def bases(self, counts: Array) -> dict[str, Base]:
        """Return the bases of the kernels when arms were pulled `counts` `(..., K)` times."""
        most = min(self.far.shape[-1] * (FIXED - 1), int(np.max(np.sum(counts > 0, axis=-1), initial=0)))
        pulled = top(counts, most)
        at = np.concat([self.far, pulled], axis=-1)
        there = np.concat([self.far >= 0, np.take_along_axis(counts, pulled, axis=-1) > 0], axis=-1)
        there &= ~_twice(at)
        marks = rows(self.places, at)
        apart, among = squared_distances(self.places, marks), squared_distances(marks, marks)
        return {name: self._base(name, there, apart, among) for name in self.kernels}

    def _base(self, name: str, there: Array, apart: Array, among: Array) -> Base:
        """Return the base of a kernel, from squared distances to landmarks of which some `(..., n)` are `there`."""
        kernel, mask = self.kernels[name], there.astype(apart.dtype)
        gram = kernel.at(among) * mask[..., None] * mask[..., None, :] + (1 - mask)[..., None] * np.eye(mask.shape[-1])
        root = kernel_features(gram)
        squared = np.vecdot(root.mT, root.mT)[..., None, :]
        turn = mask[..., None] * root / np.where(squared > 0, squared, 1.0)
        F = kernel.at(apart) @ turn
        missing = np.maximum(1 - np.vecdot(F, F), 0.0)
        missing = np.where(missing > 1e-9, missing, 0.0)
        F -= F.mean(axis=-2, keepdims=True)
        length = np.vecdot(F, F)
        size = np.mean(length + missing, axis=-1)[..., None]
        size = np.where(size > 0, size, 1.0)
        F /= np.sqrt(size)[..., None]
        return Base(F, missing / size, self.dimensions[name], length / size)


def _twice(at: Array) -> Array:
    """Return which of the arms `at` `(..., n)` were named before."""
    order = np.argsort(at, axis=-1, kind="stable")
    ordered = np.take_along_axis(at, order, axis=-1)
    again = np.concat([np.zeros_like(at[..., :1], dtype=bool), ordered[..., 1:] == ordered[..., :-1]], axis=-1)
    found = np.empty_like(again)
    np.put_along_axis(found, order, again, axis=-1)
    return found
