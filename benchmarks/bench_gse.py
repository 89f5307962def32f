"""How fast is GSE? CPU seconds of one thread, beside the 7 to 18 seconds per 100 runs the paper reports."""

import subprocess
import sys
import time

import numpy as np

from bestarm import catalog, instances
from bestarm.core import Problem
from bestarm.play import play

PAPER = 7 / 100  # seconds a run, the fastest the paper reports at K = 16

CELLS = {
    "gse-lin-fwg, adaptive K=16, B=320": (
        "gse-lin-fwg",
        lambda r, rng: instances.adaptive(16, replications=r),
        320,
        0.5,
    ),
    "gse-lin-fwg, sphere K=128, d=10, B=6400": (
        "gse-lin-fwg",
        lambda r, rng: instances.randomized(128, 10, replications=r, rng=rng),
        6400,
        2.0,
    ),
    "gse-log-fwg, GLM K=8, d=5, B=400": (
        "gse-log-fwg",
        lambda r, rng: instances.logistic(8, 5, replications=r, rng=rng),
        400,
        2.0,
    ),
}


def main(quick: bool = False) -> None:
    replications = 100 if quick else 1000
    print(f"{'replications: ' + str(replications):44s} {'CPU s':>8s} {'goal':>6s} {'paper/ours':>11s} {'accuracy':>9s}")
    for label, (name, make, budget, goal) in CELLS.items():
        rng = np.random.default_rng(1)
        bandit = make(replications, rng).shuffled(rng)
        start = time.process_time()
        run = play(catalog.policy(name), bandit, budget, rng)
        spent = time.process_time() - start
        faster = PAPER * replications / spent
        accuracy = bandit.correct(run.arm).mean()
        print(f"{label:44s} {spent:8.2f} {goal:6.1f} {faster:10.0f}x {accuracy:9.3f}")
    print(f"{'one live ask, K=1000, d=20':44s} {live_ask() * 1e3:6.1f}ms {10:4d}ms")
    print(f"{'import bestarm':44s} {import_time():7.2f}s {0.4:5.1f}s")


def live_ask() -> float:
    """Return seconds of an `ask` at the first stage, the median of nine."""
    rng = np.random.default_rng(2)
    features = rng.standard_normal((1000, 20))
    policy = catalog.policy("gse-lin-fwg")
    state = policy.start(Problem(features, 20_000))
    spent = []
    for _ in range(9):
        start = time.process_time()
        policy.ask(state, rng)
        spent.append(time.process_time() - start)
    return float(np.median(spent))


def import_time() -> float:
    """Return seconds of `import bestarm` in a fresh process less those of an empty one, the median of five."""

    def clock(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    return float(np.median([clock("import bestarm") for _ in range(5)]) - np.median([clock("") for _ in range(5)]))
