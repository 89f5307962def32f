"""Which directions a design must estimate well: each arm (G) or each difference of two arms (XY)."""

from dataclasses import dataclass
from typing import Protocol

from bestarm.core import AnyArray, namespace


class Directions(Protocol):
    """Directions y made of m target arms in coordinates T `(..., m, r)`."""

    def of(self, coordinates: AnyArray) -> AnyArray:
        """Return the directions themselves, `(..., D, r)`."""
        ...

    def widths(self, gram: AnyArray) -> AnyArray:
        """Return y'V⁻¹y for each direction, from `gram` = T V⁻¹ T' `(..., m, m)`, zero where there is none."""
        ...

    def mix(self, coordinates: AnyArray, shares: AnyArray) -> AnyArray:
        """Return Σ_y s_y y y' `(..., r, r)`, with `shares` shaped as `widths`."""
        ...


@dataclass(frozen=True)
class EachArm:
    """The arms themselves: the G criterion."""

    def of(self, coordinates: AnyArray) -> AnyArray:
        return coordinates

    def widths(self, gram: AnyArray) -> AnyArray:
        return namespace(gram).linalg.diagonal(gram)

    def mix(self, coordinates: AnyArray, shares: AnyArray) -> AnyArray:
        return namespace(coordinates).matrix_transpose(coordinates) @ (coordinates * shares[..., None])


@dataclass(frozen=True)
class EachPair:
    """All differences of two arms: the XY criterion. Work grows with m², so thousands of targets at most."""

    def of(self, coordinates: AnyArray) -> AnyArray:
        xp = namespace(coordinates)
        arms = coordinates.shape[-2]
        first = xp.concat([xp.full((arms - 1 - i,), i, dtype=xp.int64) for i in range(arms)])
        second = xp.concat([xp.arange(i + 1, arms, dtype=xp.int64) for i in range(arms)])
        return xp.take(coordinates, first, axis=-2) - xp.take(coordinates, second, axis=-2)

    def widths(self, gram: AnyArray) -> AnyArray:
        xp = namespace(gram)
        own = xp.linalg.diagonal(gram)
        return xp.maximum(own[..., :, None] + own[..., None, :] - 2 * gram, xp.zeros_like(gram))

    def mix(self, coordinates: AnyArray, shares: AnyArray) -> AnyArray:
        xp = namespace(coordinates)
        both = shares + xp.matrix_transpose(shares)
        laplacian = xp.eye(both.shape[-1], dtype=both.dtype) * xp.sum(both, axis=-1)[..., None] - both
        return xp.matrix_transpose(coordinates) @ laplacian @ coordinates
