"""GSE over a million arms and more: seconds, and memory beyond the table. Writes what it prints into the document."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.bench_designs import peak
from bestarm import catalog
from bestarm.bandits import Bandit, Gaussian
from bestarm.playing import play
from bestarm.policies.streamed import BigProblem, Streamed
from bestarm.tables import open_source

DOCUMENT = Path(__file__).parent.parent / "docs" / "designs-at-scale.md"
HEAD = (
    f"{'way':22s} {'K':>11s} {'d':>3s} {'B':>7s} {'seconds':>8s} {'CPU':>6s} {'passes':>7s} {'growth MiB':>11s} "
    f"{'regret':>7s}"
)
REPEATS = 3


def main(quick: bool = False) -> None:
    print("gse-lin-fwg, gaussian features, noise variance 1; growth is peak memory less that with the table")
    print(HEAD)
    lines = [HEAD]
    for K in (200_000,) if quick else (1_000_000,):
        for way in ("memory", "streamed"):
            lines.append(measured(way, way, str(K), "11", "20000"))
    sizes = ((200_000, 8),) if quick else ((1_000_000, 8), (10_000_000, 8))
    with tempfile.TemporaryDirectory() as folder:
        for K, d in sizes:
            path = Path(folder) / "items.parquet"
            write(path, K, d)
            lines.append(measured("bestarm run .parquet", "run", str(path), "24000"))
            lines.append(measured("bestarm design", "design", str(path), "96"))
    if not quick:
        before, _, after = DOCUMENT.read_text(encoding="utf-8").partition(HEAD)
        table = "\n".join([*lines, "```"])
        DOCUMENT.write_text(before + table + after.partition("```")[2], encoding="utf-8")


def measured(way: str, *command: str) -> str:
    """Return, and print, the line of a command: the fastest of some, each in a process of its own."""
    found = []
    for _ in range(REPEATS):
        program = [sys.executable, "-m", "benchmarks.bench_large", *command]
        done = subprocess.run(program, check=True, capture_output=True, text=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    line = min(found, key=lambda one: float(one["seconds"]))
    shown = (
        f"{way:22s} {line['K']:11,d} {line['d']:3d} {line['B']:7,d} {line['seconds']:8.1f} {line['cpu']:6.1f} "
        f"{line['passes'] or '':>7} {line['growth']:11.0f} {line['regret']:7.3f}"
    )
    print(shown, flush=True)
    return shown


def write(path: Path, K: int, d: int, rows: int = 250_000) -> None:
    """Write ids, d features in float32 and their means, a row group at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    theta = rng.standard_normal(d)
    names = [f"x{j + 1}" for j in range(d)]
    kinds = [("code", pa.string()), *((name, pa.float32()) for name in names), ("mean", pa.float64())]
    with pq.ParquetWriter(path, pa.schema(kinds), compression="none", use_dictionary=False) as file:
        for start in range(0, K, rows):
            block = rng.standard_normal((min(rows, K - start), d)).astype(np.float32)
            codes = [f"item-{row}" for row in range(start, start + len(block))]
            columns = [pa.array(codes), *(pa.array(column) for column in block.T.copy()), pa.array(block @ theta)]
            file.write_table(pa.table(columns, schema=pa.schema(kinds)))


def in_memory(way: str, K: int, d: int, budget: int) -> dict[str, object]:
    """Play over an array, by the policy as it is or in blocks."""
    rng = np.random.default_rng(1)
    table = rng.standard_normal((K, d))
    bandit = Bandit(table, table @ rng.standard_normal(d), Gaussian(1.0))
    policy = catalog.policy("gse-lin-fwg")
    play(policy, Bandit(table[:9000], bandit.means[:9000], Gaussian(1.0)), 1000, 1)  # imports what is imported late
    before, start, used = peak(), time.perf_counter(), time.process_time()
    if way == "streamed":
        streamed, rng = Streamed(policy), np.random.default_rng(1)
        state = streamed.start(BigProblem(open_source(table), budget, 1.0))
        while (pulls := streamed.ask(state, rng)) is not None:
            state = streamed.tell(state, pulls, bandit.pull(pulls, None, rng))
        arm = int(streamed.recommend(state))
    else:
        arm = int(play(policy, bandit, budget, 1).arm)
    spent, used = time.perf_counter() - start, time.process_time() - used
    regret = float(bandit.means.max() - bandit.means[arm])
    return {
        "K": K,
        "d": d,
        "B": budget,
        "seconds": spent,
        "cpu": used,
        "passes": 0,
        "growth": peak() - before,
        "regret": regret,
    }


def command(name: str, path: str, number: int) -> dict[str, object]:
    """Run a command as a person would, less the start of Python."""
    import pyarrow.parquet
    from click.testing import CliRunner

    from bestarm.cli import main as commands

    options = {
        "run": ["--simulate", "mean", "--noise-variance", "1", "--seed", "1", "--budget", str(number)],
        "design": ["--exclude", "mean", "--pulls", str(number)],
    }[name]
    features = sum(name.startswith("x") for name in pyarrow.parquet.read_schema(path).names)
    before, start, used = peak(), time.perf_counter(), time.process_time()
    done = CliRunner().invoke(commands, [name, path, "--id", "code", *options, "-f", "json"], catch_exceptions=False)
    spent, used = time.perf_counter() - start, time.process_time() - used
    answer = json.loads(done.stdout)
    return {
        "K": answer.get("arms") or answer["candidates"], "d": answer.get("rank", features), "B": number,
        "seconds": spent, "cpu": used, "passes": answer.get("passes"), "growth": peak() - before,
        "regret": answer.get("regret", 0.0),
    }  # fmt: skip


if __name__ == "__main__":
    kind, *rest = sys.argv[1:]
    if kind in ("memory", "streamed"):
        print(json.dumps(in_memory(kind, *map(int, rest))))
    else:
        print(json.dumps(command(kind, rest[0], int(rest[1]))))
