"""How near to reading the table a few times is an optimal design? Time in passes, memory, and peers side by side."""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from bestarm.bench.table import to_csv
from bestarm.designs.active import Solution, optimal_design
from bestarm.designs.ascent import Ascent
from bestarm.linalg import Candidates
from bestarm.tables import open_source

RESULTS = Path(__file__).parent.parent / "docs" / "designs_at_scale.csv"
TABLES = ("gaussian", "cube", "sphere")
MIB = 1 << 20


def main(quick: bool = False) -> None:
    rows = speed(quick)
    growth = [] if quick else scaling()
    peers(quick)
    if quick:
        memory((200_000,), 20, ("npy", "parquet"))
    else:
        memory((1_000_000, 10_000_000), 20, ("npy", "parquet", "dask"))
    if not quick:
        parts = (("speed", rows), ("scaling", growth))
        RESULTS.write_text(to_csv([{"part": name} | row for name, some in parts for row in some]), encoding="utf-8")
        print(f"written to {RESULTS.relative_to(RESULTS.parent.parent)}")


def draw(kind: str, K: int, d: int, seed: int = 1) -> np.ndarray:
    """Return a table `(K, d)`: independent normals, vertices of the cube, or points of the unit sphere."""
    rng = np.random.default_rng(seed)
    if kind == "cube":
        return rng.choice([-1.0, 1.0], (K, d))
    x = rng.standard_normal((K, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True) if kind == "sphere" else x


def best(action, repeats: int) -> float:
    """Return the least wall-clock seconds of some repeats."""
    spent = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        spent.append(time.perf_counter() - start)
    return min(spent)


def bare_pass(table: np.ndarray, block: int) -> float:
    """Return the largest leverage under V = I: the least that one pass has to do."""
    L, largest = np.eye(table.shape[1]), 0.0
    for start in range(0, len(table), block):
        y = table[start : start + block] @ L
        largest = max(largest, float(np.einsum("ij,ij->i", y, y).max()))
    return largest


def measure(kind: str, K: int, d: int, tolerance: float) -> dict[str, object]:
    """Return one line of the table."""
    table = draw(kind, K, d)
    source = open_source(table)
    found: list[Solution] = []
    repeats = 5 if K * d <= 10_000_000 else 3
    one = best(lambda: bare_pass(table, source.block_rows), repeats)
    spent = best(lambda: found.append(optimal_design(source, tolerance)), repeats)
    one = min(one, best(lambda: bare_pass(table, source.block_rows), repeats))
    read = best(lambda: table.sum(), repeats)
    last = found[-1]
    return {
        "table": kind, "K": K, "d": d, "tolerance": tolerance, "seconds": spent, "passes": last.passes,
        "leverage_passes": last.leverage_passes, "gap": last.certificate - 1, "support": len(last.rows),
        "pass_seconds": one, "read_seconds": read,
    }  # fmt: skip


def show(row: dict[str, object]) -> None:
    ratios = f"{row['seconds'] / row['pass_seconds']:8.1f} {row['seconds'] / row['read_seconds']:7.0f}"
    print(
        f"{row['table']:9s} {row['K']:9,d} {row['d']:4d} {row['tolerance']:9.0e} {row['seconds']:8.3f} {ratios} "
        f"{row['passes']:7d} {row['gap']:9.1e} {row['support']:8d}",
        flush=True,
    )


def header() -> None:
    print(
        f"{'table':9s} {'K':>9s} {'d':>4s} {'tolerance':>9s} {'seconds':>8s} {'/ pass':>8s} {'/ read':>7s} "
        f"{'passes':>7s} {'gap':>9s} {'support':>8s}"
    )


def speed(quick: bool) -> list[dict[str, object]]:
    """Print seconds, and their ratio to one leverage pass (goal: 20 at d = 11, 25 at d = 50) and to one sum."""
    optimal_design(open_source(draw("gaussian", 1000, 5)))  # imports what is imported late
    header()
    rows = []
    for K in (20_000,) if quick else (100_000, 1_000_000):
        for d in (11, 50):
            for kind in TABLES:
                for tolerance in (1e-3, 1e-6) if d == 11 else (1e-3,):
                    rows.append(measure(kind, K, d, tolerance))
                    show(rows[-1])
    return rows


def scaling() -> list[dict[str, object]]:
    """Print how time and passes grow with K and with d."""
    print("\ntime against K and d, tolerance 1e-3")
    header()
    rows = []
    for K, d in (
        *((K, 20) for K in (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000)),
        *((100_000, d) for d in (2, 5, 10, 30, 60, 100)),
    ):
        for kind in TABLES:
            rows.append(measure(kind, K, d, 1e-3))
            show(rows[-1])
    return rows


def peers(quick: bool) -> None:
    """Print the same problem solved by cvxpy and by our own solver for small sets of arms."""
    try:
        import cvxpy
    except ImportError:
        print("\ncvxpy is not installed: no peers")
        return
    print(f"\nat d = 11, gaussian\n{'solver':24s} {'K':>7s} {'seconds':>9s} {'gap':>9s}")
    for K in (1000,) if quick else (1000, 3000, 10_000):
        table = draw("gaussian", K, 11)

        def conic(x: np.ndarray = table) -> np.ndarray:
            w = cvxpy.Variable(len(x), nonneg=True)
            problem = cvxpy.Problem(cvxpy.Maximize(cvxpy.log_det(_moment(x, w))), [cvxpy.sum(w) == 1])
            problem.solve(solver=cvxpy.CLARABEL)
            return np.maximum(w.value, 0) / np.maximum(w.value, 0).sum()

        def ours(x: np.ndarray = table) -> np.ndarray:
            found = optimal_design(open_source(x))
            w = np.zeros(len(x))
            w[found.rows] = found.weights
            return w

        def exchange(x: np.ndarray = table) -> np.ndarray:
            return Ascent(tolerance=1e-3).weights(Candidates.of(x))

        for name, solve in (
            ("cvxpy, Clarabel", conic),
            ("exchange steps, 1e-3", exchange),
            ("optimal_design(1e-3)", ours),
        ):
            start = time.perf_counter()
            w = solve()
            spent = time.perf_counter() - start
            V = (table * w[:, None]).T @ table
            gap = np.einsum("ij,ij->i", table @ np.linalg.inv(V), table).max() / 11 - 1
            print(f"{name:24s} {K:7,d} {spent:9.3f} {gap:9.1e}", flush=True)


def _moment(x: np.ndarray, w):
    """Return Σ w_i x_i x_i' as one product: cvxpy is slow to take in diag(w)."""
    import cvxpy

    products = np.einsum("ij,ik->jki", x, x).reshape(-1, len(x))
    return cvxpy.reshape(products @ w, (x.shape[1], x.shape[1]), order="C")


def memory(sizes: tuple[int, ...], d: int, kinds: tuple[str, ...]) -> None:
    """Print seconds and peak memory of files: mapped, as Parquet and through two Dask workers."""
    print(f"\nfiles, gaussian, d = {d}, float64, tolerance 1e-3: growth is peak memory less that after imports")
    print(f"{'source':9s} {'K':>11s} {'MiB':>6s} {'seconds':>8s} {'passes':>7s} {'gap':>9s} {'growth MiB':>11s}")
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            write(Path(folder), size, d)
            answers = []
            for kind in kinds:
                command = [sys.executable, "-m", "benchmarks.bench_designs", kind, str(Path(folder) / f"{size}")]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                line = json.loads(done.stdout.splitlines()[-1])
                answers.append(line["information"])
                print(
                    f"{kind:9s} {size:11,d} {size * d * 8 // MIB:6d} {line['seconds']:8.1f} {line['passes']:7d} "
                    f"{line['gap']:9.1e} {line['growth']:11.0f}",
                    flush=True,
                )
            spread = max(np.abs(np.array(one) - np.array(answers[0])).max() for one in answers)
            print(f"largest difference between the information matrices: {spread:.1e}", flush=True)


def write(folder: Path, K: int, d: int) -> None:
    """Write the same gaussian rows as .npy and as Parquet, a hundred thousand at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"x{j + 1}" for j in range(d)]
    mapped = np.lib.format.open_memmap(folder / f"{K}.npy", "w+", np.float64, (K, d))
    schema = pa.schema([(name, pa.float64()) for name in names])
    rng = np.random.default_rng(1)
    options = {"compression": "none", "use_dictionary": False}
    with pq.ParquetWriter(folder / f"{K}.parquet", schema, **options) as file:
        for start in range(0, K, 100_000):
            block = rng.standard_normal((min(100_000, K - start), d))
            mapped[start : start + len(block)] = block
            file.write_table(pa.table(list(block.T.copy()), names=names))
    mapped.flush()


def read_rows(path: str, start: int, stop: int) -> np.ndarray:
    """Return some rows of a .npy file, for a Dask worker."""
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def peak() -> float:
    """Return the peak memory of this process in MiB; getrusage would count what its parent held before."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def child(kind: str, stem: str) -> None:
    """Solve one file and print what it took as a line of JSON."""
    optimal_design(open_source(draw("gaussian", 1000, 5)))
    if kind == "dask":
        print(json.dumps(through_dask(f"{stem}.npy")))
        return
    if kind == "parquet":
        import pyarrow.parquet  # noqa: F401
    before = peak()
    print(json.dumps(solved(open_source(f"{stem}.{kind}")) | {"growth": peak() - before}))


def solved(source) -> dict[str, object]:
    start = time.perf_counter()
    found = optimal_design(source)
    return {
        "seconds": time.perf_counter() - start, "passes": found.passes, "gap": found.certificate - 1,
        "information": found.information.tolist(),
    }  # fmt: skip


def through_dask(path: str, rows: int = 250_000) -> dict[str, object]:
    """Solve through a local cluster of two workers; growth is that of the larger worker."""
    import dask.array
    from distributed import Client, LocalCluster

    K, d = np.load(path, mmap_mode="r").shape
    starts = range(0, K, rows)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        lazy = dask.delayed(read_rows, pure=True)
        parts = [
            dask.array.from_delayed(lazy(path, at, min(at + rows, K)), (min(rows, K - at), d), np.float64)
            for at in starts
        ]
        optimal_design(open_source(parts[0][:1000]))
        before = client.run(peak)
        line = solved(open_source(dask.array.concatenate(parts)))
        after = client.run(peak)
        return line | {"growth": max(after[worker] - before[worker] for worker in before)}


if __name__ == "__main__":
    child(*sys.argv[1:])
