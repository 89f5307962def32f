"""The contract that is shipped finds every way of breaking it, and says which."""

import json
import re
import sys
import textwrap
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from bestarm import Arms, Bandit, Gaussian, Pulls, create_study, load_study, play
from bestarm.cli import main
from bestarm.core import Standing
from bestarm.errors import BudgetError
from bestarm.testing import check_policy

ROOT = Path(__file__).parents[2]
MEMORY = []


@dataclass(frozen=True)
class Good:
    """Pull every arm once, those at random first where the budget is too small for all."""

    def start(self, problem):
        return problem, None

    def ask(self, state, rng):
        problem, seen = state
        if seen is not None:
            return None
        order = np.argsort(rng.random(problem.features.shape[:-1]), axis=-1)[..., : problem.budget]
        return Pulls(order, np.ones_like(order))

    def tell(self, state, pulls, totals):
        sums = np.zeros(state[0].features.shape[:-1])
        np.put_along_axis(sums, pulls.arms, totals.sums, axis=-1)
        return state[0], sums

    def recommend(self, state):
        return np.zeros(state[0].batch, np.int64) if state[1] is None else np.argmax(state[1], axis=-1)


@dataclass(frozen=True)
class Overspends(Good):
    def ask(self, state, rng):
        pulls = super().ask(state, rng)
        return None if pulls is None else replace(pulls, times=pulls.times * 2)


@dataclass(frozen=True)
class Endless(Good):
    def ask(self, state, rng):
        arms = np.zeros((*state[0].batch, 1), np.int64)
        return Pulls(arms, arms)


@dataclass(frozen=True)
class Elsewhere(Good):
    def ask(self, state, rng):
        pulls = super().ask(state, rng)
        return None if pulls is None else replace(pulls, arms=pulls.arms + 1)


@dataclass(frozen=True)
class InParts(Good):
    def ask(self, state, rng):
        pulls = super().ask(state, rng)
        return None if pulls is None else replace(pulls, times=pulls.times / 2)


@dataclass(frozen=True)
class Normal(Good):
    def ask(self, state, rng):
        rng.standard_normal(3)
        return super().ask(state, rng)


@dataclass(frozen=True)
class Hides(Good):
    def recommend(self, state):
        MEMORY.append(1)
        return np.full(state[0].batch, len(MEMORY) % state[0].arms)


@dataclass(frozen=True)
class Mutates(Good):
    def start(self, problem):
        return [problem, None]

    def tell(self, state, pulls, totals):
        state[1] = super().tell(state, pulls, totals)[1]
        return state


@dataclass(frozen=True)
class Unsure(Good):
    def recommend(self, state):
        return 0.5


@dataclass(frozen=True)
class Refuses(Good):
    def start(self, problem):
        if problem.budget < problem.arms:
            raise BudgetError("too little")
        return super().start(problem)


@dataclass(frozen=True)
class Insists(Good):
    def tell(self, state, pulls, totals):
        return state[0], np.array(totals.sums) + np.zeros(state[0].features.shape[:-1])


@dataclass(frozen=True)
class ByName(Good):
    function: object = len


@dataclass(frozen=True)
class Alone(Good):
    def ask(self, state, rng):
        return None if state[1] is not None else Pulls(np.arange(1), np.array([1]))


@dataclass(frozen=True)
class Leans(Good):
    def recommend(self, state):
        return super().recommend(state) * 0 + (len(state[0].batch) if state[0].arms > 1 else 0)


@dataclass(frozen=True)
class Describes(Good):
    def describe(self, state):
        return Standing(np.zeros(state[0].arms, dtype=bool))


def test_a_good_one_is_silent():
    assert check_policy(Good()) is None


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (Overspends, r"a policy keeps its budget; it asked for pull \d+ of"),
        (Endless, "a policy asks None in the end; it still asks"),
        (Elsewhere, r"arms are counted from 0; of 9 it asked for \[1, 2, 3, 4, 5, 6, 7, 8, 9\]"),
        (InParts, r"whole numbers of one shape \(\.\.\., m\).*float64"),
        (Normal, r"draws rng.random\(size\) and nothing else; it wants rng.standard_normal"),
        (Hides, "no state but the one it is handed|asked again after the run|told again after the run"),
        (Mutates, "a state answers the same question the same: question 1 asked again after the run; it was Pulls"),
        (Unsure, r"a recommendation is an arm at any time.*of float64"),
        (Refuses, "a BudgetError says the least budget that would do; it says None on arms"),
        (Insists, "takes other pulls than it asked for.*it raised ValueError"),
        (ByName, "can be written down and read again.*built-in function len"),
        (Alone, r"a question is Pulls\(arms, times\).*in a batch"),
        (Leans, "plays as each does alone.*recommends"),
        (Describes, "describe marks the arms still in"),
    ],
)
def test_each_law_is_told_by_name(kind, says):
    MEMORY.clear()
    with pytest.raises(AssertionError, match=says):
        check_policy(kind())


def test_a_policy_of_single_runs_may_say_so():
    check_policy(Alone(), replications=0)


def test_what_lacks_a_method_is_told():
    with pytest.raises(AssertionError, match="a policy has the four methods; object is no policy"):
        check_policy(object())


@pytest.fixture
def one_each(tmp_path, monkeypatch):
    """The example of CONTRIBUTING as printed, in a module of its own."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = next(block for block in re.findall(r"```python\n(.*?)```", text, re.S) if "class OneEach" in block)
    (tmp_path / "one_each.py").write_text(textwrap.dedent(block))
    (tmp_path / "arms.csv").write_text("id,x,mean\na,1,0\nb,2,9\nc,3,1\n")
    (tmp_path / "lab.py").write_text("def measure(arm): return {'a': 0, 'b': 9, 'c': 1}[arm]\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.chdir(tmp_path)
    yield import_module("one_each").OneEach
    for name in ("one_each", "lab"):
        sys.modules.pop(name, None)


def test_the_contributors_example_keeps_the_contract_and_finds_the_best_arm(one_each, rng):
    check_policy(one_each())
    features = np.broadcast_to(np.eye(5), (100, 5, 5))
    bandit = Bandit(features, 9 * features[..., 2], Gaussian(1.0))
    assert bandit.correct(play(one_each(), bandit, 5, rng).arm).mean() > 0.9


def test_the_contributors_example_runs_live_and_in_a_study(one_each):
    told = "--id id --exclude mean --budget 3 --policy one_each:OneEach --pull lab:measure -f json"
    done = CliRunner().invoke(main, ["run", "arms.csv", *told.split()])
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["arm"] == "b"
    study = create_study(Arms.from_file("arms.csv", id="id", exclude=("mean",)), 3, one_each(), storage="s.jsonl")
    while batch := study.ask():
        study.tell(batch, [float(trial.arm == "b") for trial in batch])
    assert study.best_arm == load_study(study.name, "s.jsonl", allow="one_each").best_arm == "b"
