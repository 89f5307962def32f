"""How fast are the staged rivals? CPU seconds of one thread; the paper reports 14 hours for 100 runs of Peace."""

import time
from typing import Any

import numpy as np

from bestarm import instances
from bestarm.designs.optimal import WolfeAtwood
from bestarm.designs.trim import Trimmed
from bestarm.designs.width import GaussianWidth, WorstPair
from bestarm.models.means import Means
from bestarm.play import play
from bestarm.policies.classics import AverageOfOthers, ContinuousRejects, Equal, SuccessiveRejects
from bestarm.policies.elimination import AllStages, Elimination, ThisStage
from bestarm.policies.od_linbai import CeilElimination, YangTan
from bestarm.policies.p1_rage import P1Rage
from bestarm.policies.peace import Exact, Official, Peace
from bestarm.policies.schedules import Dropped

RHO = Peace(WorstPair(), Exact(), ThisStage())
WIDTH = Peace(GaussianWidth(), Official(), AllStages())
OD = CeilElimination(YangTan(), Trimmed(WolfeAtwood()))


def adaptive(arms: int) -> Any:
    return lambda r, rng: instances.adaptive(arms, replications=r)


def sphere(r: int, rng: Any) -> Any:
    return instances.randomized(64, 10, replications=r, rng=rng)


# label -> policy, instance, budget, replications, goal in seconds
CELLS = {
    "peace-rho, adaptive K=32, B=640": (RHO, adaptive(32), 640, 100, 15),
    "peace, adaptive K=16, B=320": (WIDTH, adaptive(16), 320, 100, 60),
    "peace, adaptive K=32, B=640": (WIDTH, adaptive(32), 640, 100, 600),
    "p1-rage, adaptive K=32, B=640": (P1Rage(), adaptive(32), 640, 100, None),
    "od-linbai, sphere K=64, d=10, B=500": (OD, sphere, 500, 1000, 2),
    "sequential-halving, the same": (Elimination(Means(), Equal(), leftover=Dropped()), sphere, 500, 1000, 2),
    "successive-rejects, the same": (SuccessiveRejects(), sphere, 500, 1000, 2),
    "continuous-rejects-a, the same": (ContinuousRejects(AverageOfOthers()), sphere, 500, 1000, 2),
}


def main(quick: bool = False) -> None:
    print(f"{'':40s} {'runs':>5s} {'CPU s':>8s} {'goal':>6s} {'accuracy':>9s}")
    for label, (policy, make, budget, runs, goal) in CELLS.items():
        runs = runs // 10 if quick else runs
        rng = np.random.default_rng(1)
        bandit = make(runs, rng).shuffled(rng)
        start = time.process_time()
        run = play(policy, bandit, budget, rng)
        spent = time.process_time() - start
        accuracy = bandit.correct(run.arm).mean()
        shown = "" if goal is None else f"{goal / 10 if quick else goal:6.1f}"
        print(f"{label:40s} {runs:5d} {spent:8.2f} {shown:>6s} {accuracy:9.3f}")


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    main(parser.parse_args().quick)
