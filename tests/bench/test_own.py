"""One's own policies and worlds on the bench and in a plan: values, dotted paths, two workers, refusals."""

import subprocess
import sys
import threading
from dataclasses import dataclass, replace

import numpy as np
import pytest
from click.testing import CliRunner

from bestarm import bench, catalog, plan
from bestarm.bandits import Bandit, Bernoulli, Gaussian
from bestarm.bench import suite as suites
from bestarm.bench.race import judge
from bestarm.bench.runner import world
from bestarm.cli import main
from bestarm.core import Pulls, Totals
from bestarm.errors import InputError
from bestarm.simulate.policies import OwnPolicy, PolicyRef, named, policy_of_text

HERE = __name__


@dataclass(frozen=True)
class Shares:
    """Pull every arm equally often, then believe the largest sum."""

    part: float = 1.0
    least: int = 1

    def start(self, problem):
        return problem, None

    def ask(self, state, rng):
        problem, seen = state
        every = np.broadcast_to(np.arange(problem.arms), problem.features.shape[:-1])
        times = max(self.least, int(self.part * problem.budget) // problem.arms)
        return None if seen is not None else Pulls(every, np.full_like(every, times))

    def tell(self, state, pulls, totals):
        return state[0], totals.sums

    def recommend(self, state):
        return np.argmax(state[1], axis=-1)


class Plain:
    """The same without settings, and no dataclass."""

    start, ask, tell, recommend = Shares().start, Shares().ask, Shares().tell, Shares().recommend


class Broken(Plain):
    def tell(self, state, pulls, totals):
        return totals.nothing


class Holding:
    """Settings that no repr tells."""

    def __init__(self):
        self.shape = lambda x: x

    start, ask, tell, recommend = Shares().start, Shares().ask, Shares().tell, Shares().recommend


class Three:
    """A world that has what a world must have, and nothing else; the second arm is the best."""

    def __init__(self, arms, noise):
        self.features, self.noise_variance, self.noise = np.eye(arms), None, noise
        self.heard = []

    def pull(self, pulls, taken, rng):
        self.heard.append((pulls.arms.copy(), taken.copy()))
        noise = self.noise * rng.standard_normal(pulls.arms.shape)
        sums = pulls.times * (pulls.arms == 1) + np.sqrt(pulls.times) * noise
        return Totals(sums, sums**2)


def three(arms: int = 4, noise: float = 1.0):
    return Three(arms, noise)


def many(arms: int = 4, gap: float = 0.5, binary: bool = False, replications: int = 1, rng=None):
    means = np.sort(rng.random((replications, arms)), axis=-1) * gap
    return Bandit(np.ones((replications, arms, 2)), means, Bernoulli() if binary else Gaussian(1.0))


def one(arms: int = 4, rng=None):
    return Bandit(np.eye(arms), rng.random(arms), Gaussian(1.0))


def flat(replications: int = 1):
    return Bandit(np.eye(3), np.arange(3.0), Gaussian(1.0))


def table(cells, n_jobs=1, **more):
    rows = bench.run(cells, 300, 2, n_jobs, **more).table()
    return [(row["policy"], row["accuracy"], round(row["regret"], 6)) for row in rows]  # files keep seven digits


def test_a_policy_is_a_value_and_two_workers_say_the_same(tmp_path):
    policies = [Shares(), Shares(part=0.5), Plain(), "uniform"]
    cells = bench.grid([bench.instance("adaptive", K=8)], policies, budget=80)
    one = table(cells, cache=tmp_path)
    assert [row[0] for row in one] == ["Shares", "Shares(part=0.5)", "Plain", "uniform"]
    assert one[0][1:] == one[2][1:] == one[3][1:]  # the same rewards, the same pulls, the same answers
    assert one[1] != one[0]
    assert table(cells, n_jobs=2) == one
    assert table(bench.grid([bench.instance("adaptive", K=8)], policies, budget=80), cache=tmp_path) == one


def test_a_value_of_the_catalog_is_that_cell():
    ours, names = (bench.grid([bench.instance("od")], some, 99) for some in ([catalog.policy("uniform")], ["uniform"]))
    assert ours == names


def test_a_policy_from_outside_gets_rewards_as_they_are():
    cells = bench.grid([bench.instance("factorial", factors=2)], [Shares(), "uniform"], 40)
    ours, centred = (world(cell, 1, 0, 5)[1] for cell in cells)
    assert isinstance(ours.bandit.noise, Bernoulli)
    np.testing.assert_array_equal(ours.bandit.means, centred.bandit.means + 0.5)


def test_names_tell_policies_apart():
    assert list(named({"mine": Shares(), "yours": Shares(part=0.5)})) == ["mine", "yours"]
    same = [named({"mine": Shares(part)})["mine"].identity for part in (0.5, 0.5, 0.25)]
    assert same[0] == same[1] != same[2]
    with pytest.raises(InputError, match="two policies are called mine"):
        named([OwnPolicy.of(Shares(), "mine"), OwnPolicy.of(Plain(), "mine")])
    arrays = [OwnPolicy.of(replace(Shares(), part=np.arange(2000) + extra)).identity for extra in (0.0, 0.0, 1e-9)]
    assert arrays[0] == arrays[1] != arrays[2]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (Shares, r"Shares is the class of a policy, not a policy: make one, Shares\(\)"),
        (object(), "object is no policy: it has no start, ask, tell, recommend"),
        (Holding(), r"Holding cannot be told from its repr.*give it a name: \{'mine': policy\}"),
        (f"{HERE}:Shares:part=x", "policy .*: part must be a number; given 'x'"),
        (f"{HERE}:Shares:parts=1", "has no setting 'parts'; it has least, part"),
        (f"{HERE}:Shares:part", "written key=value; given 'part'"),
        (f"{HERE}:HERE:part=1", "str is no policy"),
        (f"{HERE}:Nobody", "unknown part of .* 'Nobody'"),
        ("nowhere.at.all:Nobody", "nowhere.at.all cannot be imported.*PYTHONPATH"),
    ],
)
def test_what_is_no_policy_is_said(given, says):
    with pytest.raises(InputError, match=says):
        named(given)
    assert list(named({"mine": Holding()})) == ["mine"]


def test_a_text_names_a_class_with_settings():
    ref = policy_of_text(f"{HERE}:Shares:part=.5,least=2")
    assert ref.build() == Shares(0.5, 2)
    assert str(ref) == f"{HERE}:Shares:part=.5,least=2"
    assert policy_of_text("gse-lin-fwg:eta=3") == PolicyRef("gse-lin-fwg", (("eta", 3.0),))


def test_a_policy_that_breaks_fails_its_cell_with_the_line():
    results = bench.run(bench.grid([bench.instance("adaptive", K=8)], [Broken(), "uniform"], 80), 20, 1, 1)
    (why,) = results.failures.values()
    assert why.startswith("AttributeError: 'Totals' object has no attribute 'nothing' (test_own.py, line ")
    assert [row["failed"] for row in results.table()] == [why, None]
    with pytest.raises(InputError, match=r"policy 'Broken', budget 30: .* no attribute 'nothing' \(test_own.py"):
        plan(np.eye(3), gap=1.0, noise_variance=1.0, policy=Broken(), budget=30, replications=20, rng=1, n_jobs=1)


def test_a_policy_is_a_value_in_a_plan():
    options = {"gap": 1.0, "noise_variance": 1.0, "budgets": [60], "replications": 300, "rng": 1}
    ours = plan(np.eye(5), policy=Shares(), n_jobs=2, **options)
    assert list(ours.budget) == ["Shares"]
    texts = plan(np.eye(5), policies=[f"{HERE}:Shares", "uniform"], n_jobs=1, **options)
    wrong = {row["policy"]: row["error"] for row in texts.curve}
    assert wrong == dict.fromkeys((f"{HERE}:Shares", "uniform"), ours.curve[0]["error"])
    with pytest.raises(InputError, match="either policy, a single one, or policies"):
        plan(np.eye(5), policy=Shares(), policies=["uniform"], **options)


def test_a_class_of_the_main_module_runs_in_workers():
    code = f"""
from dataclasses import dataclass
from bestarm import bench
from {HERE} import Plain

@dataclass(frozen=True)
class Mine(Plain):
    part: float = 1.0

def world(arms: int = 4, rng=None):
    from {HERE} import one
    return one(arms, rng)

if __name__ == "__main__":
    cells = bench.grid([bench.instance(world)], [Mine()], 40)
    print([bench.run(cells, 300, 1, n).table()[0]["accuracy"] for n in (1, 2)])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = eval(done.stdout)
    assert first == second > 0.3


class Locked(Plain):
    """What cannot be sent anywhere."""

    def __init__(self):
        self.lock = threading.Lock()


def test_what_cannot_be_sent_to_workers_runs_here_or_is_refused_in_words():
    cells = bench.grid([bench.instance("adaptive", K=8)], {"locked": Locked()}, 80)
    assert table(cells)[0][0] == "locked"
    with pytest.raises(InputError, match=r"cannot be sent to workers: .*lock.*; n_jobs=1 computes it here"):
        table(cells, n_jobs=2)


def test_a_class_that_has_no_place_in_a_module_runs_in_workers():
    class Inner(Plain):
        pass

    cells = bench.grid([bench.instance("adaptive", K=8)], [Inner()], 80)
    assert table(cells, n_jobs=2) == table(cells)


def test_own_instances_are_functions_with_parameters(tmp_path):
    cells = bench.grid([bench.instance(three, arms=n) for n in ("3", 5)], ["uniform", Shares()], budget_per_arm=9)
    assert [cell.budget for cell in cells] == [27, 27, 45, 45]
    assert str(cells[0].instance) == f"{HERE}:three(arms=3)"
    alone = table(cells, cache=tmp_path)
    assert min(accuracy for _, accuracy, _ in alone) > 0.8
    assert table(cells, n_jobs=2) == alone
    named_by_text = bench.grid([bench.instance(f"{HERE}:three", arms="3")], ["uniform"], budget=27)
    assert table(named_by_text, cache=tmp_path) == alone[:1]


def test_a_world_hears_its_own_arms_whatever_the_order_on_the_bench():
    bandit = bench.instance(three, noise=0.0).make(6, 1).shuffled(np.random.default_rng(2))
    best = np.argmax(bandit.features[..., 1], axis=-1)
    assert len(set(best)) > 1
    assert bandit.correct(best).all()
    assert not bandit.correct((best + 1) % 4).any()
    every = np.broadcast_to(np.arange(4), (6, 4))
    totals = bandit.pull(Pulls(every, np.ones_like(every)), every, np.random.default_rng(3))
    np.testing.assert_array_equal(np.argmax(totals.sums, axis=-1), best)
    for row, three_world in enumerate(bandit.world.worlds):
        arms, taken = three_world.heard[-1]
        np.testing.assert_array_equal(taken[arms], every[row])  # what was taken goes with its arm


def test_worlds_made_at_once_or_one_by_one_are_bandits_again():
    for function in (many, one):
        bandit = bench.instance(function, arms=6).make(5, 1)
        assert isinstance(bandit, Bandit)
        assert bandit.means.shape == (5, 6)
    assert isinstance(bench.instance(many, binary="yes").make(2, 1).noise, Bernoulli)
    cells = bench.grid([bench.instance(many)], ["uniform", "gse-means"], 40)
    assert table(cells, n_jobs=2) == table(cells)


@pytest.mark.parametrize(
    ("given", "params", "says"),
    [
        (many, {"gap": "x"}, "parameter gap of instance '.*:many' must be a number; given 'x'"),
        (many, {"arms": 2.5}, "must be a whole number"),
        (many, {"binary": "perhaps"}, "must be true or false"),
        (many, {"gp": 1}, "has no parameter 'gp'; it has arms, gap, binary"),
        (lambda: 3, {}, "a function at the top of its module is expected"),
        ("nowhere:at_all", {}, "nowhere cannot be imported"),
        (f"{HERE}:nothing", {}, "unknown part of .* 'nothing'"),
    ],
)
def test_what_is_no_instance_is_said(given, params, says):
    with pytest.raises(InputError, match=says):
        bench.instance(given, params)


def test_what_is_no_world_is_said():
    with pytest.raises(InputError, match=r"features, noise_variance, pull; .* has no features"):
        bench.instance(f"{HERE}:Shares").make(2, 1)
    with pytest.raises(InputError, match=r"features of shape \(5, K, d\) are expected; given \(3, 3\)"):
        bench.instance(flat).make(5, 1)


def test_the_commands_take_ones_own(tmp_path):
    words = [f"{HERE}:many", "--set", "gap=0.5,1", "--set", "binary=no", "--budget", "40", "--replications", "30"]
    words += ["--policy", f"{HERE}:Shares:part=0.5", "--policy", "uniform", "--jobs", "1", "-f", "csv"]
    done = CliRunner().invoke(main, ["bench", *words])
    assert done.exit_code == 0, done.output
    assert len(done.stdout.splitlines()) == 5
    arms = tmp_path / "arms.csv"
    arms.write_text("a,b\n1,2\n2,1\n3,5\n")
    words = ["--gap", "1", "--noise-variance", "1", "--budget", "30", "--seed", "1", "--jobs", "1"]
    done = CliRunner().invoke(main, ["plan", str(arms), *words, "--policy", f"{HERE}:Shares"])
    assert done.exit_code == 0, done.output
    assert f"{HERE}:Shares" in done.stdout


def test_a_suite_judges_ones_own_but_a_file_imports_nothing(tmp_path):
    contest = suites.Contest("a", "f", bench.instance(many), 40)
    verdict = judge(suites.Suite("toy", "", 1, (contest,)), Shares(), ["uniform"], 250, n_jobs=1)
    assert verdict.rows[0]["policy"] == "Shares"
    assert verdict.rows[0]["rival_difference"] == 0.0
    path = tmp_path / "toy.json"
    cell = f'{{"group": "a", "family": "f", "instance": "{HERE}:many", "budget": 40}}'
    path.write_text(f'{{"name": "t", "about": "", "seed": 1, "cells": [{cell}]}}')
    with pytest.raises(InputError, match="a file may not import"):
        suites.load(path)
