"""How long does a person wait? One live ask, and the import."""

import subprocess
import sys
import time

import numpy as np

from bestarm import catalog
from bestarm.core import Problem


def main(quick: bool = False) -> None:
    print(f"{'one ask of gse-lin-fwg, K=1000, d=20':40s} {live_ask() * 1e3:6.1f} ms   goal 10 ms")
    print(f"{'import bestarm':40s} {import_time() * 1e3:6.0f} ms   goal 400 ms")


def live_ask() -> float:
    """Return CPU seconds of an `ask` at the first stage, the median of nine."""
    rng = np.random.default_rng(2)
    policy = catalog.policy("gse-lin-fwg")
    state = policy.start(Problem(rng.standard_normal((1000, 20)), 20_000))
    spent = []
    for _ in range(9):
        start = time.process_time()
        policy.ask(state, rng)
        spent.append(time.process_time() - start)
    return float(np.median(spent))


def import_time() -> float:
    """Return seconds of `import bestarm` in a fresh process less those of an empty one, medians of five."""

    def clock(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    return float(np.median([clock("import bestarm") for _ in range(5)]) - np.median([clock("") for _ in range(5)]))
