"""Is this tree as fast as another? Each timing alternates between the two, every time in a process of its own."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent.parent / "src"

PLAY = """
import numpy as np
from bestarm import catalog, instances
from bestarm.playing import play
rng = np.random.default_rng(1)
bandit = instances.{instance}
policy = catalog.policy("{policy}")
"""
SPHERE, ADAPTIVE = "randomized(64, 10, replications={0}, rng=rng)", "adaptive(16, replications={0})"
LOGISTIC = "logistic(8, 5, replications={0}, rng=rng)"
PLAYED = [  # policy, instance, replications, budget
    ("auto", SPHERE, 20, 640),
    ("gse-lin-fwg", ADAPTIVE, 500, 320),
    ("gse-log-fwg", LOGISTIC, 250, 400),
    ("od-linbai", SPHERE, 250, 500),
    ("sequential-halving", SPHERE, 500, 500),
    ("lingape-greedy", SPHERE, 250, 640),
    ("bayesgap-lin", SPHERE, 250, 640),
    ("top-two-lin", SPHERE, 250, 640),
    ("peace", ADAPTIVE, 20, 320),
    ("ucb-glm", LOGISTIC, 250, 400),
]
STUDY = """
import numpy as np, tempfile
from bestarm import create_study, load_study
place = tempfile.TemporaryDirectory()
log = place.name + "/log.jsonl"
def told():
    study = create_study(np.eye(10), 2000, "uniform", storage=log, study_name="s", seed=1)
    while batch := study.ask(10):
        study.tell(batch, [1.0] * len(batch))
"""
DESIGN = """
import numpy as np
from bestarm.designs.active import optimal_design
from bestarm.tables import open_source
source = open_source(np.random.default_rng(1).standard_normal((100_000, 20)))
"""
WAITING = """
import numpy as np, tempfile
from bestarm import create_study, load_study
place = tempfile.TemporaryDirectory()
log = place.name + "/log.jsonl"
rng = np.random.default_rng(1)
features = rng.standard_normal(({0}, 5))
study = create_study(features, {1} + 100, storage=log, study_name="s", seed=1)
for _ in range(20):
    arms = rng.integers(0, {0}, {1} // 20)
    study.import_results([(str(arm + 1), float(features[arm].sum() + rng.standard_normal())) for arm in arms])
"""
COMMAND = "from bestarm.cli import main\ntry: main({0})\nexcept SystemExit: pass"
SIZES = {50: 340, 1000: 2000, 10_000: 10_000}  # arms, and results of them
TIMINGS = {  # what it is called: what is made ready, and what is timed
    "import": ("", "import bestarm; bestarm.create_study"),
    "numpy": ("", "import numpy"),
    **{
        name: (PLAY.format(instance=world.format(count), policy=name), f"play(policy, bandit, {budget}, rng)")
        for name, world, count, budget in PLAYED
    },
    "study-told": (STUDY, "told()"),
    "study-read": (STUDY + "told()\n", 'load_study("s", log)'),
    "version": ("", COMMAND.format("['--version']")),
    **{f"load-{size[0]}": (WAITING.format(*size), 'load_study("s", log)') for size in SIZES.items()},
    **{f"recommend-{size[0]}": (WAITING.format(*size), "study.recommend()") for size in SIZES.items()},
    **{f"report-{size[0]}": (WAITING.format(*size), 'study.report(log + ".html")') for size in SIZES.items()},
    "create-10000": (WAITING.format(10_000, 20), 'create_study(features, 20000, storage=log, study_name="t", seed=1)'),
    "design": (DESIGN, "optimal_design(source)"),
}


def seconds(source: Path, compiled: str, ready: str, timed: str) -> float:
    """Return the CPU seconds of one thread that a statement takes in a fresh process."""
    clock = "import time\nstart = time.process_time()\n"
    program = f"{ready}\n{clock}{timed}\nprint(time.process_time() - start)"
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    given = os.environ | threads | {"PYTHONPATH": str(source.resolve()), "PYTHONPYCACHEPREFIX": compiled}
    given.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run([sys.executable, "-c", program], env=given, capture_output=True, text=True, check=False)
    return float(done.stdout.split()[-1]) if done.returncode == 0 else float("nan")


def main(other: Path, names: list[str], repeats: int) -> None:
    """Print the medians of both trees, and the median, least and largest ratio of one pair of runs."""
    if not (other / "bestarm").is_dir():
        raise SystemExit(f"{other} holds no package bestarm; the folder `src` of another tree is expected")
    print(f"{'timing':20s} {'here':>9s} {'there':>9s} {'here/there':>11s}   range of {repeats}")
    with tempfile.TemporaryDirectory() as compiled:
        for name, parts in TIMINGS.items():
            if names and name not in names:
                continue
            pairs = []
            for turn in range(repeats + 1):
                trees = (HERE, other) if turn % 2 else (other, HERE)
                spent = {tree: seconds(tree, compiled, *parts) for tree in trees}
                pairs.append((spent[HERE], spent[other]))
            del pairs[0]  # the first compiles
            ratios = [here / there for here, there in pairs]
            here, there = (median(column) for column in zip(*pairs, strict=True))
            row = (
                f"{name:20s} {here:8.3f}s {there:8.3f}s {median(ratios):11.2f}   {min(ratios):.2f} to {max(ratios):.2f}"
            )
            print(row, flush=True)
