"""Running a grid: blocks of replications as pure functions, anywhere joblib can go, appended to a file as they come."""

import base64
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bestarm import catalog
from bestarm.bandits import Bandit, Bernoulli, Stream
from bestarm.bench.engines import engine_context
from bestarm.bench.grid import Cell
from bestarm.errors import BestArmError, InputError
from bestarm.numbers import whole
from bestarm.play import play
from bestarm.version import __version__

FORMAT = 2
BLOCK = 250  # replications a block; part of the definition of a result, since a block shares its random numbers


@dataclass(frozen=True)
class Block:
    """The outcome of some replications of a cell: right or wrong, regret and pulls of each, and CPU seconds."""

    cell: str
    number: int
    correct: Any
    regret: Any
    pulls: Any
    cpu: float
    error: str | None = None

    def to_json(self) -> str:
        """Return one line, arrays packed."""
        packed = {
            "correct": _pack(np.packbits(self.correct)),
            "regret": _pack(np.asarray(self.regret, dtype="<f4")),
            "pulls": _pack(np.asarray(self.pulls, dtype="<i4")),
            "size": len(self.correct),
        }
        return json.dumps({"cell": self.cell, "number": self.number, "cpu": self.cpu, **packed})

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Block":
        size = record["size"]
        bits = np.unpackbits(np.frombuffer(base64.b64decode(record["correct"]), dtype=np.uint8))
        regret = np.frombuffer(base64.b64decode(record["regret"]), dtype="<f4")
        pulls = np.frombuffer(base64.b64decode(record["pulls"]), dtype="<i4")
        return cls(record["cell"], record["number"], bits[:size].astype(bool), regret, pulls, record["cpu"])


def _pack(array: Any) -> str:
    return base64.b64encode(array.tobytes()).decode()


def run_block(cell: Cell, seed: int, number: int, size: int) -> Block:
    """Return replications `number * BLOCK` and on of a cell: the same whoever computes them, and where.

    Instances and rewards depend on the seed, the instance and the block only, so policies are compared on equal ground.
    """
    from threadpoolctl import threadpool_limits

    start = time.process_time()
    try:
        with threadpool_limits(1):
            choices = np.random.SeedSequence([seed, int(cell.key, 16), number])
            bandit, stream = world(cell, seed, number, size)
            run = play(cell.policy.build(), stream, cell.budget, np.random.default_rng(choices))
    except BestArmError as error:
        empty = np.zeros(0)
        return Block(cell.key, number, empty.astype(bool), empty, empty, 0.0, f"{type(error).__name__}: {error}")
    spent = time.process_time() - start
    return Block(cell.key, number, bandit.correct(run.arm), bandit.regret(run.arm), run.counts.sum(-1), spent)


def world(cell: Cell, seed: int, number: int, size: int) -> tuple[Bandit, Stream]:
    """Return the bandits of a block, arms and features in random order, and the rewards a policy meets.

    Some policies take the first of equal arms, or of equally good directions: neither order may say anything.
    """
    # the digest is taken as a number, so that different instances draw different worlds
    seeds = np.random.SeedSequence([seed, int(cell.world_key, 16), number])
    rng = np.random.default_rng(seeds)
    bandit = cell.instance.make(size, rng).shuffled(rng).turned(np.random.default_rng(seeds.spawn(1)[0]))
    return bandit, Stream(centred(bandit, cell), int(rng.integers(2**63)))


def centred(bandit: Any, cell: Cell) -> Any:
    """Return rewards 0 and 1 less a half for policies that model them linearly, without an intercept."""
    if isinstance(bandit.noise, Bernoulli) and catalog.ENTRIES[cell.policy.name].centred:
        return bandit.lowered(0.5)
    return bandit


@dataclass
class Store:
    """Finished blocks in a folder: one JSON line each, only ever appended. None keeps them in memory."""

    folder: Path | None
    seed: int
    blocks: dict[tuple[str, int], Block] = field(default_factory=dict)

    @property
    def path(self) -> Path | None:
        return None if self.folder is None else self.folder / "blocks.jsonl"

    @classmethod
    def open(cls, folder: str | os.PathLike[str] | None, seed: int) -> "Store":
        """Open a folder of results, reading what is there; refuse one of another seed or version."""
        store = cls(None if folder is None else Path(folder), seed)
        if store.path is None:
            return store
        try:
            store.path.parent.mkdir(parents=True, exist_ok=True)
            if store.path.exists() and store.path.stat().st_size:
                store._read()
            else:
                store._append(
                    json.dumps({"bestarm-bench": FORMAT, "version": __version__, "seed": seed, "block": BLOCK})
                )
        except OSError as error:
            raise InputError(f"results cannot be kept in {folder}: {error}") from error
        return store

    def _read(self) -> None:
        assert self.path is not None
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):  # a crash cut the last line
            with self.path.open("r+b") as file:
                file.truncate(len(whole))
        lines = whole.decode("utf-8", "replace").splitlines()
        number = 1
        try:
            header = json.loads(lines[0])
            wanted = {"bestarm-bench": FORMAT, "version": __version__, "seed": self.seed, "block": BLOCK}
            for key, value in wanted.items():
                if header.get(key) != value:
                    raise InputError(
                        f"{self.path} has results of another {key} ({header.get(key)!r}, not {value!r}); "
                        "choose another folder, or the same seed and version"
                    )
            for line in lines[1:]:
                number += 1
                block = Block.from_json(json.loads(line))
                self.blocks[block.cell, block.number] = block
        except (json.JSONDecodeError, KeyError, IndexError, AttributeError) as error:
            raise InputError(f"{self.path}, line {number}: this is not a results file of bestarm") from error

    def _append(self, line: str) -> None:
        assert self.path is not None
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def add(self, block: Block) -> None:
        """Keep a block; it is in the file when this returns."""
        if self.path is not None:
            try:
                self._append(block.to_json())
            except OSError as error:
                raise InputError(
                    f"results cannot be written to {self.path}: {error}; what was finished is kept"
                ) from error
        self.blocks[block.cell, block.number] = block


@dataclass(frozen=True)
class Results:
    """Cells with the blocks measured so far, and the cells that failed with the reason."""

    cells: tuple[Cell, ...]
    seed: int
    replications: int
    blocks: dict[str, tuple[Block, ...]]
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
) -> Results:
    """Measure every cell with `replications` replications from the seed `rng`, resuming what `cache` has.

    The numbers do not depend on `n_jobs` or `engine`. A block that fails fails its cell; the rest goes on.
    """
    cells = tuple(dict.fromkeys(cells))
    replications, rng = whole(replications, "replications", least=1), whole(rng, "rng", least=0)
    if not whole(n_jobs, "n_jobs"):
        raise InputError("n_jobs must not be 0; -1 is one for each core")
    store = Store.open(cache, rng)
    sizes = {n: min(BLOCK, replications - n * BLOCK) for n in range(-(-replications // BLOCK))}
    todo = [(cell, n, size) for cell in cells for n, size in sizes.items() if len(_known(store, cell, n)) < size]
    todo.sort(key=lambda task: -task[0].budget)  # long ones first: the end is then even
    failures: dict[str, str] = {}
    with _bar(len(cells), len(cells) * replications, sum(s for *_, s in todo), progress) as tick:
        for block in _compute(todo, rng, n_jobs, engine):
            if block.error is not None:
                failures[block.cell] = block.error
            else:
                store.add(block)
            tick(block)
    found: dict[str, list[Block]] = defaultdict(list)
    for cell in cells:
        if cell.key not in failures:
            found[cell.key] = [store.blocks[cell.key, n] for n in sizes]
    return Results(cells, rng, replications, {k: tuple(v) for k, v in found.items()}, failures)


def _known(store: Store, cell: Cell, number: int) -> Any:
    block = store.blocks.get((cell.key, number))
    return () if block is None else block.correct


def _compute(todo: Sequence[tuple[Cell, int, int]], seed: int, n_jobs: int, engine: str | None) -> Iterator[Block]:
    """Yield blocks as they are finished; what a lost worker had in hand is computed again."""
    from joblib import Parallel, delayed

    left = list(todo)
    if not left:
        return
    with engine_context(engine, n_jobs) as where:
        for attempt in range(5):
            done: set[tuple[str, int]] = set()
            try:
                for some in [left] if where.streams else _portions(left, 32):
                    jobs = (delayed(run_block)(cell, seed, n, size) for cell, n, size in some)
                    # no backend is named: whatever joblib.parallel_config says is used
                    pool = Parallel(
                        n_jobs=n_jobs, batch_size=1, return_as="generator_unordered" if where.streams else "list"
                    )
                    for block in pool(jobs):
                        done.add((block.cell, block.number))
                        yield block
            except where.lost as error:
                if attempt == 4:
                    raise InputError(f"workers were lost again and again: {type(error).__name__}: {error}") from error
            left = [task for task in left if (task[0].key, task[1]) not in done]
            if not left:
                return


def _portions(tasks: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [tasks[start : start + size] for start in range(0, len(tasks), size)]


@contextmanager
def _bar(cells: int, replications: int, todo: int, progress: bool) -> Iterator[Any]:
    from tqdm import tqdm

    with tqdm(total=replications, initial=replications - todo, unit=" runs", disable=not progress, leave=False) as bar:
        bar.set_description(f"{cells} cells")

        def tick(block: Block) -> None:
            bar.update(len(block.correct))

        yield tick
