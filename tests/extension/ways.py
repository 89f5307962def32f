"""The ways in which parts of an installed package are used, each in a process of its own: python -m ... WAY FOLDER."""

import json
import os
import signal
import sys
import warnings
from importlib.metadata import entry_points

import numpy as np
from click.testing import CliRunner
from scipy.special import ndtr

from bestarm import Bandit, Bernoulli, catalog, create_study, load_study, play
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


def world(**settings):
    """The package's world, found by its name."""
    (point,) = (one for one in entry_points(group="bestarm.worlds") if one.name == "ladder")
    return point.load()(**settings)


def reward(part, arm, rng):
    """One reward of an arm of the world; 0 or 1 where the part is a law of such."""
    one = Pulls(np.array([arm]), np.array([1]))
    value = float(world().pull(one, None, rng).sums[0])
    return float(rng.random() < ndtr(value - 2)) if part == "law" else value


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


def simulated(folder):
    """Play in the package's world, and hold its policy to the contract."""
    check_policy(catalog.policy("bounded"))
    found = {}
    for part, given in POLICIES.items():
        own = {} if "model" not in given else {"model": catalog.model(given["model"])}
        policy = catalog.policy_of_text(given.get("policy", "gse-lin-fwg"), **own)
        ladder = world()
        truth = Bandit(ladder.features, ndtr(ladder.means - 2), Bernoulli()) if part == "law" else ladder
        run = play(policy, truth, 4 * BUDGET, 1)
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
    """Measure each part in the package's world, by two workers."""
    from bestarm import bench

    parts = {part: _policy(given) for part, given in POLICIES.items() if part != "law"}
    cells = bench.grid([bench.instance("ladder")], parts, budget=BUDGET)
    results = bench.run(cells, replications=20, n_jobs=2)
    assert not results.failures, results.failures
    return {row["policy"]: f"a{4 if row['correct'] > 0.5 else 0}" for row in results.table()}


def plan(folder):
    """Plan with each part."""
    from bestarm import plan

    found = {}
    for part, given in POLICIES.items():
        model = catalog.model(given["model"]) if part == "law" else None
        noise = {} if part == "law" else {"noise_variance": 0.25}
        done = plan(
            world().features, model, gap=0.3 if part == "law" else 1.0, policies={part: _policy(given)}, rng=1,
            budgets=[BUDGET], replications=50, n_jobs=1, **noise,
        )  # fmt: skip
        found[part] = f"a{4 if done.rows()[0]['error'] < 0.6 else 0}"
    return found


def _policy(given):
    own = {} if "model" not in given else {"model": catalog.model(given["model"])}
    return catalog.policy_of_text(given.get("policy", "gse-lin-fwg"), **own)


if __name__ == "__main__":
    way, place = sys.argv[1:]
    print(json.dumps(globals()[way](place)))
