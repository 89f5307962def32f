"""The ways in which parts of an installed package are used, each in a process of its own: python -m ... WAY FOLDER."""

import json
import os
import signal
import sys
import warnings

import numpy as np
from click.testing import CliRunner

from bestarm import catalog, create_study, load_study, play, plugins
from bestarm.cli import main
from bestarm.core import Pulls
from bestarm.testing import check_policy

POLICIES = {
    "policy": {"policy": "bounded:width=2"},
    "model": {"model": "pooled", "policy": "gse-means"},
    "law": {"model": "probit"},
    "design": {"policy": "gse-lin:design=ends"},
}
BUDGET = 40


def world(name="ladder"):
    """A world of the package, found by its name."""
    return plugins.part("worlds", name)()


def reward(part, arm, rng):
    """One reward of an arm of the world; 0 or 1 where the part is a law of such."""
    one = Pulls(np.array([arm]), np.array([1]))
    return float(world("coins" if part == "law" else "ladder").pull(one, None, rng).sums[0])


def live(folder):
    """Observe arms by a function, on the command line."""
    with open("arms.csv", "w") as file:
        file.write("id,x\n" + "".join(f"a{i},{i}\n" for i in range(5)))
    with open("lab.py", "w") as file:
        file.write(
            "import numpy as np\nfrom tests.extension.ways import reward\nrng = np.random.default_rng(1)\n"
            "def measure(arm): return reward('any', int(arm[1:]), rng)\n"
            "def try_out(arm): return reward('law', int(arm[1:]), rng)\n"
        )
    found = {}
    for part, given in POLICIES.items():
        flags = [word for key, value in given.items() for word in (f"--{key}", value)]
        pull = "lab:try_out" if part == "law" else "lab:measure"
        words = ["run", "arms.csv", "--id", "id", "--intercept", "--budget", str(BUDGET), "--pull", pull, "--seed", "1"]
        done = CliRunner().invoke(main, [*words, *flags, "-f", "json"])
        assert done.exit_code == 0, done.output
        found[part] = json.loads(done.stdout)["arm"]
    return found


def built(given):
    """Return the policy that names stand for."""
    own = {} if "model" not in given else {"model": catalog.model(given["model"])}
    return catalog.policy_of_text(given.get("policy", "gse-lin-fwg"), **own)


def simulated(folder):
    """Play in the package's world, and hold its policy to the contract."""
    check_policy(catalog.policy("bounded"))
    found = {}
    for part, given in POLICIES.items():
        policy = built(given)
        run = play(policy, world("coins" if part == "law" else "ladder"), 4 * BUDGET, 1)
        assert run.counts.sum() <= 4 * BUDGET
        found[part] = f"a{int(run.arm)}"
    return found


def begin(folder):
    """Begin a study of each part on the package's storage, and be killed in the middle."""
    for part, given in POLICIES.items():
        study = create_study(world().features, BUDGET, storage=f"shelf:///{folder}", study_name=part, seed=1, **given)
        rng = np.random.default_rng(1)
        batch = study.ask(4)
        study.tell(batch, [reward(part, study.state.places[trial.arm], rng) for trial in batch])
        study.ask(2)
    os.kill(os.getpid(), signal.SIGKILL)


def go_on(folder):
    """Go on with those studies from their logs alone."""
    found = {}
    for part in POLICIES:
        study = load_study(part, f"shelf:///{folder}")
        rng = np.random.default_rng(2)
        while batch := study.ask() or study.pending():
            study.tell({trial.id: reward(part, study.state.places[trial.arm], rng) for trial in batch})
        assert study.finished
        assert study.spent <= BUDGET
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found[part] = f"a{study.state.places[study.recommend().arm]}"
    return found


def bench(folder):
    """Measure each part in a world of the package, by two workers; the best arm is the last."""
    from bestarm import bench

    found = {}
    for part, given in POLICIES.items():
        instance = bench.instance("coins" if part == "law" else "ladder")
        results = bench.run(bench.grid([instance], {part: built(given)}, budget=BUDGET), replications=20, n_jobs=2)
        assert not results.failures, results.failures
        (row,) = results.table()
        found[part] = "a4" if row["accuracy"] > 0.5 else row
    return found


def plan(folder):
    """Plan with each part, for the arms of the package's world."""
    from bestarm import plan

    found = {}
    for part, given in POLICIES.items():
        settings = {"model": "probit", "gap": 0.1} if part == "law" else {"gap": 1.0, "noise_variance": 0.25}
        own = {part: built(given)}
        done = plan(world().features, policies=own, budgets=[10 * BUDGET], rng=1, replications=50, n_jobs=1, **settings)
        (row,) = done.curve
        found[part] = "a4" if row["error"] < 0.6 else row
    return found


if __name__ == "__main__":
    way, place = sys.argv[1:]
    print(json.dumps(globals()[way](place)))
