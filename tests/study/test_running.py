"""`run` is a study: in memory or in a log of its own, made by a function, a command or a world."""

import math
import os
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner

import bestarm
from bestarm.bandits import Bandit, Bernoulli, Gaussian, Tape
from bestarm.cli import main
from bestarm.errors import InputError, PullError, StorageError
from bestarm.models.glm import GLM
from bestarm.models.law import Logistic
from bestarm.study import create_study, load_study
from bestarm.study.running import simulate

ARMS = "code,size,mean\n" + "".join(f"a{i},{i / 10},{i / 10}\n" for i in range(4))
X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
WORLD = Bandit(X, np.array([0.1, 0.2, 0.9, 0.3]), Gaussian(0.1))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arms.csv").write_text(ARMS)
    return tmp_path


def run(*args, pull="echo {id} >> calls; echo 1", log="run.jsonl"):
    told = ["--id", "code", "--exclude", "mean", "--budget", 12, "--policy", "uniform", "--pull", pull, "--log", log]
    done = CliRunner().invoke(main, [str(word) for word in ["run", "arms.csv", *told, "--retries", 0, *args]])
    assert done.exit_code in (0, 1, 2), done.output
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert "Traceback" not in done.output
    return done


def calls(folder):
    return len((folder / "calls").read_text().splitlines()) if (folder / "calls").exists() else 0


def test_a_function_a_world_and_a_study_by_hand_say_the_same(tmp_path):
    rewards = dict(zip("1234", [0.1, 0.2, 0.9, 0.3], strict=True))
    given = {"policy": "gse-lin-fwg", "noise_variance": 0.1, "seed": 5}
    answer = bestarm.run(X, 30, rewards.__getitem__, **given)
    still = bestarm.run(X, 30, Bandit(X, np.array([0.1, 0.2, 0.9, 0.3]), Gaussian(0.0)), **given)
    study = create_study(X, 30, **given)
    while batch := study.ask():
        study.tell(batch, [rewards[trial.arm] for trial in batch])
    logged = bestarm.run(X, 30, rewards.__getitem__, log=tmp_path / "log", **given)
    assert answer == study.recommend() == logged
    assert still.row().keys() == answer.row().keys()
    for key, cell in answer.row().items():
        assert still.row()[key] == (pytest.approx(cell) if isinstance(cell, float) else cell)


def test_the_answer_can_be_read_and_written_down():
    answer = bestarm.run(X, 60, WORLD, noise_variance=0.1, seed=1)
    assert repr(answer).startswith(f"Answer({answer.arm}: ")
    assert "chance" in repr(answer)
    assert answer.arm in answer._repr_html_()
    plain = answer.to_dict()
    assert plain["arm"] == answer.arm
    assert plain["low"] == answer.interval[0]
    assert answer.about == {"x1": X[int(answer.arm) - 1, 0], "x2": X[int(answer.arm) - 1, 1]}
    assert answer.next is None


def test_the_theorems_bound_is_there_where_there_is_a_theorem():
    line = Bandit(X, X @ [1.0, 0.5], Gaussian(0.01))
    assert 0 < bestarm.run(X, 60, line, "gse-lin-fwg", noise_variance=0.01, seed=1).bound < 1
    assert bestarm.run(X, 60, WORLD, "lingape", noise_variance=0.1, seed=1).bound is None


def test_minimising_finds_the_smallest():
    answer = bestarm.run(X, 400, WORLD, direction="minimize", noise_variance=0.1, seed=1, model="means")
    assert answer.arm == "1"
    assert answer.interval[0] < 0.1 < answer.interval[1]
    chances = Bandit(np.eye(4), np.array([0.9, 0.8, 0.1, 0.7]), Bernoulli())
    assert bestarm.run(np.eye(4), 400, chances, model="logistic", direction=bestarm.Goal("minimize"), seed=1).arm == "3"


def test_one_arm_needs_no_pull():
    answer = bestarm.run(X[:1], 5, lambda arm: 1 / 0)
    assert (answer.arm, answer.p_best, answer.told) == ("1", 1.0, 0)
    assert math.isnan(answer.value)


def test_a_run_goes_on_where_it_stopped(tmp_path):
    made, plugged = [], []

    def pull(arm):
        if len(made) == 5 and not plugged:
            raise OSError("the plug was pulled")
        made.append(arm)
        return float(arm)

    given = {"policy": "gse-lin-fwg", "log": tmp_path / "log", "seed": 4, "retries": 0}
    with pytest.raises(PullError, match="the plug was pulled"):
        bestarm.run(X, 30, pull, **given)
    assert load_study("run", tmp_path / "log").state.total == 5
    plugged.append("in")
    answer = bestarm.run(X, 30, pull, **given)
    assert (len(made), answer.told) == (30, 30)
    assert bestarm.run(X, 30, pull, **given) == answer
    assert len(made) == 30


def test_a_world_of_other_arms_and_a_log_of_another_run_are_refused(tmp_path):
    with pytest.raises(InputError, match="the world has 4 arms, the study 2"):
        bestarm.run(X[:2], 30, WORLD, noise_variance=0.1)
    bestarm.run(X, 30, WORLD, log=tmp_path / "log", noise_variance=0.1)
    with pytest.raises(InputError, match="its budget is 30, not 31"):
        bestarm.run(X, 31, WORLD, log=tmp_path / "log", noise_variance=0.1)
    (tmp_path / "thesis.txt").write_text("a thesis\n")
    with pytest.raises(StorageError, match=r"thesis\.txt"):
        bestarm.run(X, 30, WORLD, log=tmp_path / "thesis.txt", noise_variance=0.1)
    assert (tmp_path / "thesis.txt").read_text() == "a thesis\n"


@pytest.mark.parametrize("kind", ["uniform", "gse-lin-fwg"])
@pytest.mark.parametrize("budget", [50_000, pytest.param(1_000_000, marks=pytest.mark.torture)])
def test_many_simulated_pulls_are_heard_as_one_sum_an_arm(kind, budget):
    study = create_study(X, budget, kind, noise_variance=0.1, seed=1)
    assert simulate(study, Bandit(X, X @ [1.0, 0.5], Gaussian(0.1))) == budget
    assert len(study.state.told) <= 4 * study.state.rounds
    assert study.recommend().arm == "4"


@pytest.mark.parametrize("link", [None, os.symlink, os.link], ids=["itself", "symbolic", "hard"])
def test_two_runs_on_one_log_share_its_budget(folder, link):
    program = [sys.executable, "-c", "import sys; from bestarm.cli import main; main()", "run", "arms.csv"]
    words = [
        "--id",
        "code",
        "--exclude",
        "mean",
        "--budget",
        "12",
        "--policy",
        "uniform",
        "--log",
        "run.jsonl",
        "--pull",
    ]
    slow = "echo $BESTARM_TRIAL >> calls; : BESTARM_ID; until test -f go; do sleep 0.05; done; echo 1"
    with subprocess.Popen([*program, *words, slow], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as first:
        while not calls(folder):
            assert first.poll() is None
            time.sleep(0.02)
        if link is not None:
            link(folder / "run.jsonl", folder / "other.jsonl")
        log = "run.jsonl" if link is None else "other.jsonl"
        second = subprocess.Popen([*program, *[log if word == "run.jsonl" else word for word in words], slow])
        time.sleep(0.5)
        (folder / "go").touch()
        first.communicate(timeout=120)
        second.wait(timeout=120)
    assert (first.returncode, second.returncode, calls(folder)) == (0, 0, 12)
    assert load_study("run", folder / "run.jsonl").spent == 12


@pytest.mark.parametrize("place", ["arms.csv/run.jsonl", "/proc/bestarm.jsonl", "/dev/full", "x" * 300])
def test_a_log_that_cannot_be_is_refused_before_the_first_pull(folder, place):
    done = run(log=place)
    assert done.exit_code in (1, 2)
    assert "Error" in done.stderr
    assert not calls(folder)


@pytest.mark.parametrize("template", ["bash -c './measure {id}'", "./measure 'a {id}'", "./measure x{id}", "echo 1"])
def test_a_template_that_cannot_be_is_refused_before_anything_is_begun(folder, template):
    done = run(pull=template)
    assert done.exit_code == 1
    assert '"$BESTARM_ID"' in done.stderr
    assert not (folder / "run.jsonl").exists()


def test_ids_that_a_command_cannot_be_given_are_refused_before_anything_is_begun(folder):
    (folder / "arms.csv").write_text(ARMS.replace("a3", "-rf"))
    done = run()
    assert done.exit_code == 1
    assert "arm '-rf' begins with '-'" in done.stderr
    assert not calls(folder)
    assert not (folder / "run.jsonl").exists()
    assert run(pull='echo "$BESTARM_ID" >> calls; echo 1').exit_code == 0
    assert "-rf" in (folder / "calls").read_text().split()


def test_a_log_cut_anywhere_gives_its_whole_rewards_again(folder):
    assert run().exit_code == 0
    whole = (folder / "run.jsonl").read_bytes()
    first = whole.index(b"\n") + 1
    for cut in [0, 1, 5, first - 1, first, first + 1, len(whole) // 2, len(whole) - 1, len(whole)]:
        (folder / "run.jsonl").write_bytes(whole[:cut])
        (folder / "calls").unlink(missing_ok=True)
        kept = load_study("run", "run.jsonl").state.total if cut >= first else 0
        done = run()
        assert done.exit_code == 0, done.output
        assert calls(folder) == 12 - kept
        assert load_study("run", "run.jsonl").state.total == 12


def test_a_law_or_a_model_is_taken_as_a_value(tmp_path):
    chances = Bandit(X, np.array([0.2, 0.3, 0.9, 0.6]), Bernoulli())
    named = bestarm.run(X, 200, chances, "gse-lin-fwg", model="logistic", seed=1)
    assert named == bestarm.run(X, 200, chances, model=GLM(Logistic()), seed=1)
    assert named == bestarm.run(X, 200, chances, model=Logistic(), seed=1)
    with pytest.raises(InputError, match="a reward model, a law of rewards, or the name of one is expected"):
        bestarm.run(X, 200, chances, model=3.5, seed=1)


def test_rewards_drawn_in_advance_are_a_world_too():
    tape = Tape.draw(WORLD, 60, np.random.default_rng(3))
    study = create_study(X, 60, "sequential-halving", storage=None, seed=1)
    told = simulate(study, tape)
    known = study.state.known()
    assert 50 < told == known.counts.sum()
    at = known.counts.astype(int)
    np.testing.assert_allclose(known.sums, np.take_along_axis(tape.sums, at[:, None], axis=-1)[:, 0], atol=1e-12)


SCRIPT = """
from dataclasses import dataclass
import numpy as np
import bestarm as ba


@dataclass(frozen=True)
class Mine:
    times: int = 2

    def start(self, problem): return problem, None
    def ask(self, state, rng):
        every = np.arange(state[0].arms)
        return None if state[1] is not None else ba.Pulls(every, np.full_like(every, self.times))
    def tell(self, state, pulls, totals): return state[0], totals.sums
    def recommend(self, state): return int(np.argmax(state[1]))


rewards = {"1": 0.0, "2": 5.0, "3": 1.0}
print(ba.run([[1.0], [2.0], [3.0]], 9, rewards.__getitem__, Mine(), seed=1).arm)
try:
    ba.run([[1.0], [2.0], [3.0]], 9, rewards.__getitem__, Mine(), seed=1, log="mine.jsonl")
except ba.BestArmError as error:
    print(error)
"""


def test_a_policy_of_a_script_runs_in_memory_and_is_refused_with_a_log(folder):
    (folder / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "2"
    assert second.startswith(
        "Mine is, or has a part, of this script or notebook, where mine.jsonl cannot find it again"
    )
    assert not (folder / "mine.jsonl").exists()


def test_a_setting_that_run_does_not_have_names_the_right_call():
    for name, way in (("idd", "the nearest are id"), ("storage", "log="), ("minimize", "direction='minimize'")):
        with pytest.raises(InputError, match=f"run has no setting '{name}'") as error:
            bestarm.run(X, 12, WORLD, **{name: "code"})
        assert way in str(error.value)
    with pytest.raises(InputError, match="unknown setting of a run 'retry'; the nearest are retry_on, retries"):
        create_study(X, 12).run(lambda arm: 1.0, retry=3)


def test_a_stack_of_worlds_is_refused():
    stack = Bandit(np.stack([X] * 4), np.stack([WORLD.means] * 4), WORLD.noise)
    with pytest.raises(InputError, match=r"one world is expected.*given a stack of shape \(4, 4, 2\)"):
        bestarm.run(X, 12, stack, noise_variance=0.1)


def test_a_log_whose_budget_was_raised_is_not_gone_on_with_by_the_first_number(folder):
    assert run().exit_code == 0
    raised = CliRunner().invoke(main, ["raise-budget", "24", "--storage", "run.jsonl"])
    assert raised.exit_code == 0
    done = run()
    assert done.exit_code == 1
    assert "the budget of run.jsonl was raised to 24; given 12" in done.stderr
    assert calls(folder) == 12
    assert run("--budget", 24).exit_code == 0
    assert calls(folder) == 24


def test_a_log_begun_with_ones_own_policy_is_gone_on_with_by_naming_it(folder):
    (folder / "ownpart.py").write_text(SCRIPT.partition("rewards =")[0])
    first = run("--policy", "ownpart:Mine")
    assert first.exit_code == 0, first.output
    other = run("--policy", "uniform")
    assert other.exit_code == 1
    assert "its policy is Mine, not uniform" in other.stderr
    assert run("--policy", "ownpart:Mine").exit_code == 0
