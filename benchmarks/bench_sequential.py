"""How long do the one-pull-at-a-time policies take for 1000 replications in one batch?

    python benchmarks/bench_sequential.py            CPU seconds against the goals, about two minutes
    python benchmarks/bench_sequential.py --quick    the same shapes with a short budget, a few seconds

One thread is what the goals are about. A short budget pays the start and the early refits over fewer pulls, so its
milliseconds a pull are a little higher.
"""

import argparse
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

from bestarm import instances
from bestarm.bandits import Bandit
from bestarm.kernels import Matern
from bestarm.play import play
from bestarm.policies.bayesgap import BayesGap
from bestarm.policies.belief import KernelPrior, SeparatePrior
from bestarm.policies.lingape import LeastRatio, LinGapE
from bestarm.policies.ocba import OCBA
from bestarm.policies.top_two import TopTwo
from bestarm.policies.ucb import UCBGLM, LinUCB

# name, policy, K, d, B, the goal in CPU seconds
CASES = [
    ("lingape-greedy", LinGapE(), 128, 10, 6400, 25.0),
    ("bayesgap-lin", BayesGap(), 64, 10, 3200, 12.0),
    ("bayesgap-matern", BayesGap(KernelPrior(Matern(1.5))), 64, 10, 640, None),
    ("lingape", LinGapE(LeastRatio()), 16, 15, 320, None),
    ("linucb", LinUCB(), 64, 10, 3200, None),
    ("linucb-disjoint", LinUCB(SeparatePrior()), 64, 10, 3200, None),
    ("top-two-lin", TopTwo(), 64, 10, 3200, None),
    ("ocba", OCBA(), 64, 10, 3200, None),
    ("ucb-glm", UCBGLM(), 8, 5, 400, None),
]


def bandit_for(name: str, arms: int, dimension: int, replications: int) -> Bandit:
    if name == "ucb-glm":
        return instances.logistic(arms, dimension, replications=replications, rng=1)
    if name == "lingape":  # one program for each pair of arms, not for each replication
        return instances.adaptive(arms, replications=replications)
    return instances.randomized(arms, dimension, replications=replications, rng=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="stop each case after 3 K pulls")
    parser.add_argument("--replications", type=int, default=1000)
    parser.add_argument("--only", default="", help="only names that contain this")
    chosen = parser.parse_args()
    print(f"{'policy':<16} {'K':>4} {'d':>3} {'B':>5} {'CPU s':>7} {'ms/pull':>8} {'goal s':>7}")
    for name, policy, arms, dimension, budget, goal in CASES:
        if chosen.only not in name:
            continue
        pulls = min(budget, 3 * arms) if chosen.quick else budget
        bandit = bandit_for(name, arms, dimension, chosen.replications)
        begin = time.process_time()
        play(policy, bandit, pulls, 1)
        spent = time.process_time() - begin
        aim = f"{goal:7.1f}" if goal and not chosen.quick else f"{'-':>7}"
        print(
            f"{name:<16} {arms:>4} {dimension:>3} {pulls:>5} {spent:7.2f} {1e3 * spent / pulls:8.2f} {aim}", flush=True
        )


if __name__ == "__main__":
    main()
