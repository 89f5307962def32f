"""How fast are the policies? CPU seconds of one thread, in chunks of 250 replications as benchmarks run them."""

import time
from typing import Any

import numpy as np

from bestarm import catalog, instances
from bestarm.playing import play
from bestarm.simulate.chunks import CHUNK


def adaptive(arms: int) -> Any:
    return f"adaptive K={arms}", lambda r, rng: instances.adaptive(arms, replications=r)


def sphere(arms: int) -> Any:
    return f"sphere K={arms} d=10", lambda r, rng: instances.randomized(arms, 10, replications=r, rng=rng)


GLM = ("logistic K=8 d=5", lambda r, rng: instances.logistic(8, 5, replications=r, rng=rng))

# policy, instance, budget, runs, goal and what the paper reports, both in seconds for those runs
CELLS = [
    ("auto", sphere(64), 640, 1000, 30, None),
    ("auto", sphere(256), 2560, 100, 50, None),
    ("gse-auto", sphere(64), 640, 250, None, None),
    ("gse-lin-fwg", adaptive(16), 320, 1000, 0.5, 70),
    ("gse-lin-fwg", sphere(128), 6400, 1000, 2, None),
    ("gse-log-fwg", GLM, 400, 1000, 2, None),
    ("gse-lin", adaptive(16), 320, 1000, None, 70),
    ("gse-lin-greedy", adaptive(16), 320, 1000, None, 70),
    ("od-linbai", sphere(64), 500, 1000, None, None),
    ("sequential-halving", sphere(64), 500, 1000, None, None),
    ("successive-rejects", sphere(64), 500, 1000, None, None),
    ("continuous-rejects-a", sphere(64), 500, 1000, None, None),
    ("peace-rho", adaptive(32), 640, 100, 15, None),
    ("peace", adaptive(16), 320, 100, 60, 530),
    ("peace", adaptive(32), 640, 100, 600, 14 * 3600),
    ("p1-rage", adaptive(32), 640, 100, None, None),
    ("lingape-greedy", sphere(128), 6400, 1000, 25, None),
    ("lingape", adaptive(16), 320, 1000, None, 180),
    ("bayesgap-lin", sphere(64), 3200, 1000, 12, None),
    ("bayesgap-matern", sphere(64), 640, 1000, None, None),
    ("linucb", sphere(64), 3200, 1000, None, None),
    ("top-two-lin", sphere(64), 3200, 1000, None, None),
    ("ocba", sphere(64), 3200, 1000, None, None),
    ("ucb-glm", GLM, 400, 1000, None, None),
]


def main(quick: bool = False) -> None:
    print(f"{'policy':22s} {'instance':20s}     B  runs    CPU s   goal  paper/ours  right")
    for name, (label, make), budget, runs, goal, paper in CELLS:
        share = 10 if quick else 1
        runs, rng, right, spent = runs // share, np.random.default_rng(1), 0, 0.0
        for first in range(0, runs, CHUNK):
            bandit = make(min(CHUNK, runs - first), rng).shuffled(rng)
            start = time.process_time()
            run = play(catalog.policy(name), bandit, budget, rng)
            spent += time.process_time() - start
            right += int(bandit.correct(run.arm).sum())
        aim = "" if goal is None else f"{goal / share:.1f}"
        faster = "" if paper is None else f"{paper / share / spent:,.0f}x"
        print(
            f"{name:22s} {label:20s} {budget:5d} {runs:5d} {spent:8.2f} {aim:>6s} {faster:>11s} {right / runs:6.3f}",
            flush=True,
        )
