"""How long does a person wait? One live ask, a round of the default policy among many arms, and the import."""

import subprocess
import sys
import time

import numpy as np

from bestarm import catalog
from bestarm.bandits import Bandit, Bernoulli, Gaussian
from bestarm.core import Problem
from bestarm.policies.auto import Auto


def main(quick: bool = False) -> None:
    print(f"{'one ask of gse-lin-fwg, K=1000, d=20':44s} {live_ask() * 1e3:6.1f} ms   goal 10 ms")
    for arms in (10_000,) if quick else (10_000, 100_000):
        for rounds, binary in ((None, False), (10, False), (10, True)):
            mean, most = many_arms(arms, 50, rounds, binary)
            kind = "a step" if rounds is None else f"one of {rounds} rounds" + " of 0/1" * binary
            how = f"auto, K={arms:,}, d=50, {kind}"
            print(f"{how:44s} {mean * 1e3:6.1f} ms on average, {most * 1e3:.1f} ms at most   goal 50 ms")
    print(f"{'import bestarm':44s} {import_time() * 1e3:6.0f} ms   goal 400 ms")


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


def many_arms(arms: int, dimension: int, rounds: int | None, binary: bool, budget: int = 2000) -> tuple[float, float]:
    """Return CPU seconds of a round of `auto`, question and answer, the opening left out: mean and most of all."""
    rng = np.random.default_rng(2)
    features = rng.standard_normal((arms, dimension))
    means = features @ rng.standard_normal(dimension) / 7
    bandit = (
        Bandit(features, 1 / (1 + np.exp(-means)), Bernoulli()) if binary else Bandit(features, means, Gaussian(1.0))
    )
    policy = Auto(rounds=rounds)
    state, counts, spent = policy.start(Problem(features, budget)), np.zeros(arms, dtype=np.int64), []
    while True:
        start = time.process_time()
        pulls = policy.ask(state, rng)
        asked = time.process_time() - start
        if pulls is None:
            return float(np.mean(spent[1:])), float(np.max(spent[1:]))
        totals = bandit.pull(pulls, counts, rng)
        np.add.at(counts, pulls.arms, pulls.times)
        start = time.process_time()
        state = policy.tell(state, pulls, totals)
        spent.append(asked + time.process_time() - start)


def import_time() -> float:
    """Return seconds of `import bestarm` in a fresh process less those of an empty one, medians of five."""

    def clock(code: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    return float(np.median([clock("import bestarm") for _ in range(5)]) - np.median([clock("") for _ in range(5)]))
