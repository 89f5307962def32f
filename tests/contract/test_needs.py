"""Every policy of the catalog says when the budget is below what it needs, and only then."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

from bestarm import Arms, bench, catalog, create_study
from bestarm import run as run_study
from bestarm.core import Problem, policy_of
from bestarm.errors import BudgetError, BudgetWarning
from bestarm.playing import play
from bestarm.policies.batched import Batched
from bestarm.simulate.chunks import judged
from bestarm.study.successor import create_from
from tests.conftest import bandit_for

FEATURES = np.random.default_rng(8).standard_normal((12, 3))
REFUSE = {"gse-lin-fwg-azizi2021", "od-linbai", "od-linbai-spend"}  # to begin with fewer, and say the least


def said(make):
    """Return what is said of the budget while `make` makes something."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", BudgetWarning)
        make()
    return [str(one.message) for one in found if issubclass(one.category, BudgetWarning)]


@pytest.mark.parametrize("name", catalog.names())
def test_it_warns_just_below_its_need_and_not_at_it(name, rng):
    world = bandit_for(name, FEATURES, rng)
    need = policy_of(catalog.policy(name)).needs(Problem(FEATURES, 1, world.noise_variance)).pulls
    assert 2 <= need <= 48  # ⌈log₂ 12⌉ stages of 12 arms
    assert said(lambda: play(catalog.policy(name), world, need, 1)) == []
    if name in REFUSE:
        with pytest.raises(BudgetError) as refused:
            play(catalog.policy(name), world, need - 1, 1)
        assert refused.value.least == need
        return
    (words,) = said(lambda: play(catalog.policy(name), world, need - 1, 1))
    assert words.startswith(f"{catalog.name_of(catalog.policy(name))} needs {need} pulls of 12 arms, ")
    assert f"a budget of {need - 1} is fewer" in words


@pytest.mark.parametrize("name", catalog.names())
def test_a_need_does_not_depend_on_the_budget(name):
    policy = policy_of(catalog.policy(name))
    assert policy.needs(Problem(FEATURES, 1, 1.0)) == policy.needs(Problem(FEATURES, 1000, 1.0))


@pytest.mark.parametrize("name", ["auto", "uniform", "gse-lin-fwg", "linucb", "peace", "p1-rage"])
def test_a_single_arm_needs_nothing(name, rng):
    world = bandit_for(name, FEATURES[:1], rng)
    assert said(lambda: play(catalog.policy(name), world, 1, 1)) == []


@pytest.mark.parametrize(
    ("name", "pulls"),
    [
        ("sequential-halving", 48),
        ("successive-rejects", 12),
        ("uniform", 12),
        ("gse-lin-fwg", 12),
        ("g-optimal", 3),
        ("shvar", 48),
        ("bayesgap-exp", 12),
        ("lingape", 12),
        ("linucb", 3),
        ("gp-thompson", 2),
        ("auto", 2),
        ("gse-auto", 8),
        ("od-linbai", 9),
    ],
)
def test_needs_by_hand(name, pulls):
    assert policy_of(catalog.policy(name)).needs(Problem(FEATURES, 1, 1.0)).pulls == pulls


def test_features_of_lower_rank_need_fewer():
    flat = FEATURES @ np.outer(np.ones(3), np.ones(3))
    assert policy_of(catalog.policy("g-optimal")).needs(Problem(flat, 1)).pulls == 1
    stack = np.stack([flat, FEATURES])
    assert policy_of(catalog.policy("g-optimal")).needs(Problem(stack, 1)).pulls == 3


def test_what_wraps_a_policy_needs_what_it_needs():
    halving = catalog.policy("sequential-halving")
    assert policy_of(Batched(halving, 4)).needs(Problem(FEATURES, 1)).pulls == 48
    assert policy_of(catalog.policy("gse-pca-fwg")).needs(Problem(FEATURES, 1)).pulls == 12


@dataclass(frozen=True)
class Own:
    """A policy from outside, with the four methods alone."""

    def start(self, problem):
        return problem

    def ask(self, state, rng):
        return None

    def tell(self, state, pulls, totals):
        return state

    def recommend(self, state):
        return np.zeros(state.batch, np.int64)


def test_a_policy_from_outside_needs_two_rewards_to_compare(rng):
    world = bandit_for("uniform", FEATURES, rng)
    assert said(lambda: play(Own(), world, 2)) == []
    assert said(lambda: play(Own(), world, 1)) == [
        "Own needs 2 pulls of 12 arms, two rewards to compare; a budget of 1 is fewer, and its answer means little"
    ]


def test_a_study_warns_when_it_begins_and_not_when_it_goes_on(tmp_path):
    log = tmp_path / "s.jsonl"
    begin = {"policy": "uniform", "study_name": "s", "storage": log, "seed": 1}
    assert len(said(lambda: create_study(FEATURES, 5, **begin))) == 1
    assert said(lambda: create_study(FEATURES, 5, **begin, load_if_exists=True)) == []
    assert said(lambda: create_study(FEATURES, 12, policy="uniform")) == []


def test_a_run_warns_once(rng):
    world = bandit_for("uniform", FEATURES, rng)
    words = said(lambda: run_study(FEATURES, 5, world, "uniform", seed=1))
    assert [one for one in words if "needs" in one] == [
        "uniform needs 12 pulls of 12 arms, a pull of each arm; a budget of 5 is fewer, and its answer means little"
    ]


def test_a_successor_warns_once_where_nothing_is_known(tmp_path):
    old = create_study(FEATURES, 5, policy="uniform", study_name="old", storage=tmp_path / "s.db", seed=1)
    assert len(said(lambda: create_from(old, "new", tmp_path / "s.db"))) == 1
    batch = old.ask(2)
    old.tell(batch, [1.0, 2.0])
    assert said(lambda: create_from(old, "newer", tmp_path / "s.db")) == []


def test_money_is_counted_in_pulls():
    plain = Arms.from_arrays(FEATURES[:3])
    arms = Arms(plain.ids, plain.features, plain.names, plain.encoding, np.full(3, 2.0))
    assert len(said(lambda: create_study(arms, 5, policy="uniform"))) == 1
    assert said(lambda: create_study(arms, 6, policy="uniform")) == []


def test_benchmarks_choose_small_budgets_on_purpose(rng):
    world = bandit_for("uniform", FEATURES, rng)
    assert said(lambda: judged(catalog.policy("uniform"), world, world, 5, 1)) == []
    cells = bench.grid([bench.instance("static", Delta=1.0, K=8)], ["uniform"], budget=4)
    assert said(lambda: bench.run(cells, replications=4, n_jobs=1)) == []
