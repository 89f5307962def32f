"""Running a grid: chunks of replications as pure functions, anywhere joblib can go, appended to a file as they come."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bestarm.bandits import Bernoulli
from bestarm.bench.grid import Cell
from bestarm.bench.own import OwnWorld
from bestarm.bench.store import Store
from bestarm.core import Pullable
from bestarm.errors import InputError
from bestarm.numbers import whole
from bestarm.progress import Meter
from bestarm.simulate import chunks
from bestarm.simulate.chunks import Chunk, Judged, Made, common, seeds
from bestarm.simulate.engines import computed


def run_chunk(cell: Cell, seed: int, number: int, size: int) -> Chunk:
    """Return replications `number * CHUNK` and on of a cell: the same whoever computes them, and where.

    Instances and rewards depend on the seed, the instance and the chunk only, so policies are compared on equal ground.
    """

    def make() -> Made:
        return cell.policy.build(), *world(cell, seed, number, size)

    return chunks.chunk(cell.key, number, make, cell.budget, seeds(seed, cell.key, number))


def world(cell: Cell, seed: int, number: int, size: int) -> tuple[Judged, Pullable]:
    """Return the bandits of a chunk, arms and features in random order, and the rewards a policy meets.

    Some policies take the first of equal arms, or of equally good directions: neither order may say anything.
    """
    # the digest is taken as a number, so that different instances draw different worlds
    ours = seeds(seed, cell.world_key, number)
    rng = np.random.default_rng(ours)
    bandit = cell.instance.make(size, rng).shuffled(rng).turned(np.random.default_rng(ours.spawn(1)[0]))
    if isinstance(bandit, OwnWorld):  # its rewards are its own, those of a bandit are laid down for all policies
        return bandit, bandit
    return bandit, common(centred(bandit, cell), rng)


def centred(bandit: Any, cell: Cell) -> Any:
    """Return rewards 0 and 1 less a half for policies that model them linearly, without an intercept."""
    if isinstance(bandit.noise, Bernoulli) and cell.policy.entry.centred:
        return bandit.lowered(0.5)
    return bandit


@dataclass(frozen=True)
class Results:
    """Cells with the chunks measured so far, and the cells that failed with the reason."""

    cells: tuple[Cell, ...]
    seed: int
    replications: int
    chunks: dict[str, tuple[Chunk, ...]]
    failures: dict[str, str]

    def table(self, against: str | None = None) -> list[dict[str, Any]]:
        """Return one tidy row a cell; see `bestarm.bench.table.rows`."""
        from bestarm.bench.table import rows

        return rows(self, against)


def run(
    cells: Iterable[Cell],
    replications: int = 1000,
    rng: int = 0,
    n_jobs: int = -1,
    cache: str | os.PathLike[str] | None = None,
    engine: str | None = None,
    progress: bool = False,
    about: str = "",
) -> Results:
    """Measure every cell with `replications` replications from the seed `rng`, resuming what `cache` has.

    The numbers do not depend on `n_jobs` or `engine`. A chunk that fails fails its cell; the rest goes on. `progress`
    shows how many runs are made, how fast and how long it takes yet, with words `about` them.
    """
    cells = tuple({cell.key: cell for cell in cells}.values())
    replications, rng = whole(replications, "replications", least=1), whole(rng, "rng", least=0)
    if not whole(n_jobs, "n_jobs"):
        raise InputError("n_jobs must not be 0; -1 is one for each core")
    store = Store.open(cache, rng)
    sizes = chunks.sizes(replications)
    todo = [(cell, rng, n, size) for cell in cells for n, size in enumerate(sizes) if store.known(cell.key, n) < size]
    todo.sort(key=lambda task: -task[0].budget)  # long ones first: the end is then even
    failures: dict[str, str] = {}
    total = len(cells) * replications
    with Meter(progress, "runs", total, total - sum(size for *_, size in todo)) as meter:
        meter.words = f"{about}{len(cells)} cell{'' if len(cells) == 1 else 's'}"
        for chunk in computed(run_chunk, todo, n_jobs, engine):
            if chunk.error is not None:
                failures[chunk.cell] = f"{chunk.fault}: {chunk.error}"
            else:
                store.add(chunk)
            meter.add(len(chunk.correct))
    kept = [cell.key for cell in cells if cell.key not in failures]
    found = {key: tuple(store.chunks[key, n] for n in range(len(sizes))) for key in kept}
    return Results(cells, rng, replications, found, failures)
