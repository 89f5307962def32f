"""One loop for iterative methods over many replications: the finished leave, the others go on."""

from collections.abc import Callable
from math import prod
from typing import TypeAlias

import numpy as np

from bestarm.core import AnyArray, namespace

Work: TypeAlias = tuple[AnyArray, ...]


def iterate(
    work: Work,
    finished: Callable[[Work], AnyArray],
    advance: Callable[[int, Work, AnyArray | None], Work],
    limit: int,
    batch: tuple[int, ...],
) -> AnyArray:
    """Advance `work` until every replication is finished or `limit` steps are done; return its first array.

    Each array of `work` has the axes `batch` in front. `advance(t, work, done)` must leave the replications
    marked in `done` bit for bit as they are, so that the company a replication runs in never shows; None marks none.
    """
    xp = namespace(work[0])
    size = prod(batch)
    work = tuple(xp.reshape(a, (size, *a.shape[len(batch) :])) for a in work)
    shape = work[0].shape[1:]
    places, pieces, kept = xp.arange(size), [], []
    for t in range(limit):
        done = finished(work)
        count = int(xp.count_nonzero(done))
        if count == places.shape[0]:
            break
        if 2 * count >= places.shape[0]:
            out, stay = (xp.nonzero(mask)[0] for mask in (done, ~done))
            pieces.append(xp.take(work[0], out, axis=0))
            kept.append(xp.take(places, out, axis=0))
            work = tuple(xp.take(a, stay, axis=0) for a in work)
            places = xp.take(places, stay, axis=0)
            count = 0
        work = advance(t, work, done if count else None)
    order = xp.argsort(xp.concat([*kept, places]))
    return xp.reshape(xp.take(xp.concat([*pieces, work[0]]), order, axis=0), (*batch, *shape))


def uphill(
    objective: Callable[[AnyArray], AnyArray],
    start: AnyArray,
    before: AnyArray,
    step: AnyArray,
    length: AnyArray,
    going: AnyArray | bool = True,
) -> tuple[AnyArray, AnyArray]:
    """Return `start` `(..., r)` plus `length` `(...)` times `step`, and the objective there.

    The length is halved, where `going`, until the objective, which was `before`, falls by no more than rounding.
    """
    least = before - 1e-12 * (1 + np.abs(before))
    for _ in range(40):
        after = objective(start + length[..., None] * step)
        worse = going & ~(after >= least)
        if not np.any(worse):
            break
        length = np.where(worse, length / 2, length)
    return start + length[..., None] * step, after
