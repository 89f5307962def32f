"""The planner: worlds at the gap asked for, errors that hold when measured afresh, a budget that does."""

import doctest
import json
import warnings
from dataclasses import FrozenInstanceError
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from bestarm import catalog, instances
from bestarm.bandits import Bandit, Bernoulli, Gaussian
from bestarm.errors import ArmsError, BudgetWarning, InputError, UnknownNameError
from bestarm.models.glm import GLM
from bestarm.models.law import Logistic
from bestarm.models.linear import Linear
from bestarm.planning import Plan, Worlds, draw, plan, search
from bestarm.planning.rivals import Close
from bestarm.playing import play
from bestarm.tables.arms import Arms

LUCK = 1e-4  # how seldom an honest test may fail


def table(arms=12, dimension=3, intercept=False, seed=5):
    features = np.random.default_rng(seed).standard_normal((arms, dimension))
    return np.hstack([np.ones((arms, 1)), features]) if intercept else features


@pytest.fixture(scope="module")
def found() -> Plan:
    return plan(
        table(), gap=0.5, noise_variance=1.0, policies=["gse-lin-fwg", "uniform"], replications=300, rng=3, n_jobs=1
    )


def test_the_error_falls_with_the_budget_within_noise(found):
    for name in found.budget:
        mine = [row for row in found.curve if row["policy"] == name]
        assert [row["budget"] for row in mine] == sorted({row["budget"] for row in mine})
        for few, many in pairwise(mine):
            spread = np.sqrt((few["high"] - few["low"]) ** 2 + (many["high"] - many["low"]) ** 2) / 3.92
            assert many["error"] <= few["error"] + 4 * spread
        assert all(row["low"] <= row["error"] <= row["high"] for row in mine)
        assert mine[0]["error"] > 0.1 > found.error >= mine[-1]["high"]


def test_the_budget_is_the_smallest_that_was_shown_to_do(found):
    for name, budget in found.budget.items():
        mine = [row for row in found.curve if row["policy"] == name]
        assert budget == min(row["budget"] for row in mine if row["high"] <= found.error)
        assert found.reached[name]["budget"] == budget
        assert found.double[name]["budget"] == 2 * budget
        assert found.double[name]["high"] <= found.error
        below = max(row["budget"] for row in mine if row["budget"] < budget)
        assert budget / below < 1.1
    assert found.warnings == ()


def test_the_rounds_are_those_of_the_policy(found):
    rounds = found.rounds["gse-lin-fwg"]
    assert rounds.count == len(rounds.pulls) == 4
    assert sum(rounds.pulls) == found.budget["gse-lin-fwg"]
    assert found.rounds["uniform"].pulls == (found.budget["uniform"],)
    single = plan(table(), gap=2.0, noise_variance=1.0, policies=["ocba"], budget=90, replications=20, rng=1, n_jobs=1)
    assert str(single.rounds["ocba"]) == "one at a time"


def test_the_theorem_asks_for_more_than_the_simulation(found):
    assert found.bound >= found.budget["gse-lin-fwg"]
    for row in found.curve:
        if row["policy"] == "gse-lin-fwg":
            assert row["bound"] >= row["low"]
    budgets, bounds = zip(*found.theorem, strict=True)
    assert list(bounds) == sorted(bounds, reverse=True)
    assert budgets[-1] == max(found.bound, max(row["budget"] for row in found.curve))
    assert bounds[-1] <= found.error


def test_the_number_of_workers_does_not_matter():
    options = {
        "gap": 0.5,
        "noise_variance": 1.0,
        "policies": ["gse-lin-fwg", "uniform"],
        "budgets": [20, 6000],
        "rng": 7,
    }
    one, two = (plan(table(), **options, replications=550, n_jobs=n) for n in (1, 2))
    assert one == two
    assert one != plan(table(), **(options | {"rng": 8}), replications=550, n_jobs=1)
    alone = plan(table(), **(options | {"policies": ["uniform"]}), replications=550, n_jobs=1)
    assert [row for row in one.curve if row["policy"] == "uniform"] == list(alone.curve)


def test_totals_drawn_at_once_have_the_law_of_single_rewards(monkeypatch):
    options = {
        "gap": 0.1,
        "noise_variance": 1.0,
        "policies": ["gse-lin-fwg"],
        "budget": 400,
        "replications": 1500,
        "n_jobs": 1,
    }
    single = plan(table(), **options, rng=1).curve[0]["error"]
    monkeypatch.setattr(search, "LONG", 1)
    whole = plan(table(), **options, rng=2).curve[0]["error"]
    assert 0.1 < single < 0.9
    assert abs(whole - single) < 3.9 * np.sqrt(2 * single * (1 - single) / 1500)


def linear_world(features, gap, rng):
    u, _, _ = np.linalg.svd(features, full_matrices=False)
    means = u @ rng.standard_normal(u.shape[1])
    best, second = np.sort(means)[::-1][:2]
    return Bandit(features, means * gap / (best - second), Gaussian(1.0))


def means_world(features, gap, rng):
    return linear_world(np.eye(len(features)), gap, rng)


def logistic_world(features, gap, rng):
    """Chances around 0.3, by walking outwards until the gap is met."""
    u, _, _ = np.linalg.svd(features, full_matrices=False)
    while True:
        wave = u @ rng.standard_normal(u.shape[1])
        wave = (wave - wave.mean()) / np.abs(wave - wave.mean()).max()
        reach = np.linspace(0, 6, 6001)
        first, second = np.sort(wave)[::-1][:2]
        chance = [1 / (1 + np.exp(-np.log(0.3 / 0.7) - reach * end)) for end in (first, second)]
        there = np.flatnonzero(chance[0] - chance[1] >= gap)
        if there.size:
            predictor = np.log(0.3 / 0.7) + reach[there[0]] * wave
            return Bandit(features, 1 / (1 + np.exp(-predictor)), Bernoulli())


INSTANCES = {
    "linear": (linear_world, table(20, 4, seed=11), 0.4, 150, "gse-lin-fwg", {"noise_variance": 1.0}),
    "logistic": (logistic_world, table(8, 2, True, seed=12), 0.12, 250, "gse-log-fwg", {"base": 0.3}),
    "means": (means_world, table(10, 2, seed=13), 0.5, 120, "sequential-halving", {"noise_variance": 1.0}),
}


@pytest.mark.parametrize("name", INSTANCES)
def test_the_predicted_error_is_the_one_then_measured(name):
    """The worlds are drawn by other code, one at a time, and played without a stream."""
    world, features, gap, budget, policy, more = INSTANCES[name]
    said = plan(features, name, gap=gap, policies=[policy], budgets=[budget], rng=1, n_jobs=1, **more)
    predicted = said.reached[policy]
    rng = np.random.default_rng(977)
    made = [world(features, gap, rng) for _ in range(1000)]
    stack = np.broadcast_to(features if name != "means" else np.eye(len(features)), (1000, *made[0].features.shape))
    truth = Bandit(stack, np.stack([one.means for one in made]), made[0].noise)
    wrong = int((~truth.correct(play(catalog.policy(policy), truth, budget, rng).arm)).sum())
    low, high = binom.ppf([LUCK / 2, 1 - LUCK / 2], 1000, [predicted["low"], predicted["high"]])
    print(
        f"\n{name}: predicted {predicted['error']} [{predicted['low']:.4f}, {predicted['high']:.4f}], measured {wrong}"
    )
    assert 0.05 < predicted["error"] < 0.5
    assert low <= wrong <= high


def static(replications, rng):
    return instances.static(gap=0.5, arms=8, replications=replications)


def clicks(replications, rng):
    """The paper's logistic instance on one table of arms, its coefficients drawn again."""
    one = instances.logistic(arms=8, dimension=5, rng=3)
    chance = 1 / (1 + np.exp(-np.sqrt(3 / 5) * rng.standard_normal((replications, 5)) @ one.features.T))
    return Bandit(np.broadcast_to(one.features, (replications, 8, 5)), chance, Bernoulli())


def cars(replications, rng):
    """Prices of every fourth car as a linear truth; what the planner is told are its coefficients."""
    arms = Arms.from_csv("src/bestarm/data/automobile.csv", exclude=["make", "price"], scale="standard", intercept=True)
    arms = arms.subset(range(0, len(arms), 4))
    price = arms.column("price", missing="mean") / 10_000
    means = arms.features @ np.linalg.lstsq(arms.features, price, rcond=None)[0]
    stack = np.broadcast_to(arms.features, (replications, *arms.features.shape))
    return Bandit(stack, np.broadcast_to(means, stack.shape[:-1]), Gaussian(1.0))


def price_of(features, means):
    theta = np.linalg.lstsq(features, means, rcond=None)[0]
    return lambda size, rng: np.broadcast_to(theta, (size, len(theta)))


def slippage(one):
    return {"gap": 0.5, "rivals": "close", "noise_variance": 1.0}


def told(one):
    return {"prior": price_of(one.features[0], one.means[0]), "noise_variance": 1.0}


KNOWN = {
    "the paper's static instance, linear": (static, "linear", 60, "gse-lin-fwg", slippage),
    "the paper's static instance, means": (static, "means", 90, "sequential-halving", slippage),
    "the paper's logistic instance": (clicks, "logistic", 300, "gse-log-fwg", lambda one: {"prior": 0.6}),
    "car prices": (cars, "linear", 200, "gse-lin-fwg", told),
}


@pytest.mark.parametrize("name", KNOWN)
def test_the_prediction_holds_on_instances_that_were_there_before(name):
    make, model, budget, policy, hint = KNOWN[name]
    rng = np.random.default_rng(41)
    truth = make(500, rng).shuffled(rng)
    options = {"policies": [policy], "budgets": [budget], "replications": 500, "rng": 2, "n_jobs": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BudgetWarning)
        predicted = plan(truth.features[0], model, **options, **hint(make(1, rng))).reached[policy]
    wrong = int((~truth.correct(play(catalog.policy(policy), truth, budget, rng).arm)).sum())
    low, high = binom.ppf([LUCK / 2, 1 - LUCK / 2], 500, [predicted["low"], predicted["high"]])
    print(f"\n{name}: predicted {predicted['error']} [{predicted['low']:.3f}, {predicted['high']:.3f}], {wrong / 500}")
    assert 0.05 < predicted["error"] < 0.7
    assert low <= wrong <= high


def test_close_rivals_are_harder_than_spread_ones(rng):
    features = table(20, 4, intercept=True)
    options = {"gap": 0.3, "noise_variance": 1.0, "policies": ["gse-lin-fwg"], "budgets": [300], "rng": 1, "n_jobs": 1}
    spread, close = (plan(features, **options, rivals=name).curve[0] for name in ("spread", "close"))
    assert close["low"] > spread["high"]
    worlds = Worlds(features, Linear(), 0.3, 1.0, rivals=Close()).draw(100, rng)
    ranked = np.sort(worlds.means, axis=-1)
    np.testing.assert_allclose(ranked[:, -1] - ranked[:, -2], 0.3, rtol=1e-9)
    assert ((ranked[:, -1:] - ranked < 0.3 + 1e-7).sum(axis=-1) >= 5).all()  # a vertex: d - 1 rivals, and the best
    assert np.unique(worlds.means.argmax(axis=-1)).size > 3


def test_a_given_budget_is_judged_with_twice_as_much():
    said = plan(
        table(), gap=0.5, noise_variance=1.0, policies="gse-lin-fwg", budget=48, replications=200, rng=1, n_jobs=1
    )
    assert [row["budget"] for row in said.curve] == [48, 96]
    assert said.double["gse-lin-fwg"]["budget"] == 96
    assert "48" in str(said)
    assert "over" not in str(said)


def test_the_hopeless_is_called_so():
    options = {
        "gap": 0.001,
        "noise_variance": 9.0,
        "policies": ["gse-lin-fwg"],
        "replications": 100,
        "rng": 1,
        "n_jobs": 1,
    }
    with pytest.warns(BudgetWarning, match="100 pulls, the most tried"):
        far = plan(table(), **options, cap=100)
    assert far.budget == {"gse-lin-fwg": None}
    assert far.reached["gse-lin-fwg"]["budget"] == 100
    assert "over 100" in str(far)
    assert "warning: gse-lin-fwg is wrong in" in str(far)
    with pytest.warns(BudgetWarning, match="budget is too small"):
        plan(table(), **options, budget=20)


@pytest.mark.parametrize("features", [np.ones((1, 3)), np.ones((5, 2)), np.zeros((4, 2))])
def test_where_nothing_is_to_be_found_nothing_is_spent(features):
    nothing = plan(features, gap=1.0, noise_variance=1.0)
    assert set(nothing.budget.values()) == {0}
    assert nothing.bound == 0
    assert "0" in str(nothing)
    json.dumps(nothing.to_dict())
    with pytest.raises(InputError, match="nothing to draw"):
        draw(nothing)


def test_a_plan_is_a_frozen_value_and_plain_data(found):
    with pytest.raises(FrozenInstanceError):
        found.error = 0.5
    again = json.loads(json.dumps(found.to_dict()))
    assert again["budget"] == found.budget
    assert again["curve"] == list(found.curve)
    assert again["rounds"]["gse-lin-fwg"]["pulls"] == list(found.rounds["gse-lin-fwg"].pulls)
    lines = str(found).splitlines()
    assert lines[2].split()[:2] == ["policy", "budget"]
    assert lines[-1].startswith("the theorem (GSE)")


def test_arms_models_and_policies_as_objects():
    arms = Arms.product({"dose": [1, 2, 4], "form": ["gel", "oil"]})
    options = {"gap": 0.1, "budget": 30, "replications": 50, "rng": 1, "n_jobs": 1}
    slow = catalog.policy("gse-log-fwg", eta=3)
    by_object = plan(arms, GLM(Logistic()), policies={"mine": slow}, **options)
    assert by_object.rounds["mine"].count == 2
    assert by_object.about["model"] == "logistic"
    by_array = plan(arms.features, "logistic", policies={"mine": slow}, **options)
    assert by_array == by_object


def test_the_progress_bar_is_on_stderr(capsys, monkeypatch):
    monkeypatch.setattr("bestarm.progress.SILENT", 0.0)
    monkeypatch.setattr("bestarm.progress.SELDOM", 0.0)
    plan(table(), gap=1.0, noise_variance=1.0, budget=30, replications=50, rng=1, n_jobs=1, progress=True)
    talk = capsys.readouterr()
    assert talk.out == ""
    assert "runs" in talk.err


def test_the_drawing_has_intervals_target_and_theorem(found):
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert draw(found, ax) is ax
    words = " ".join(text.get_text() for text in ax.texts)
    for word in ("gse-lin-fwg", "uniform", "target 0.05", "theorem"):
        assert word in words
    assert len(ax.containers) == 2
    assert any(line.get_linestyle() == "--" for line in ax.lines)
    assert draw(found).figure is not None


LINEAR = {"gap": 0.5, "noise_variance": 1.0}


def test_the_tutorial_is_true():
    result = doctest.testfile(str(Path(__file__).parents[2] / "docs/tutorials/planning.md"), module_relative=False)
    assert result.attempted > 8
    assert result.failed == 0


BAD = {
    "neither gap nor prior": ({"noise_variance": 1.0}, "either gap= or prior="),
    "both": (LINEAR | {"prior": 1.0}, "either gap= or prior="),
    "a gap of 0": (LINEAR | {"gap": 0.0}, "gap must be a finite number, above 0; given 0"),
    "no noise": ({"gap": 0.5}, "noise_variance is needed"),
    "negative noise": (LINEAR | {"noise_variance": -1.0}, "noise_variance must be a finite number, above 0"),
    "noise of chances": (LINEAR | {"model": "logistic"}, "noise_variance must not be given"),
    "a gap of chances": ({"gap": 1.5, "model": "logistic"}, "gap must be below 1"),
    "a gap out of reach": ({"gap": 0.99, "model": "logistic"}, "out of reach"),
    "an error of 0": (LINEAR | {"error": 0.0}, "error must be between 0 and 1"),
    "an error that cannot show": (LINEAR | {"error": 0.001}, "3838 replications"),
    "no replications": (LINEAR | {"replications": 0}, "replications must be a whole number, at least 1"),
    "no budget": (LINEAR | {"budget": 0}, "budget must be at least 1 pull"),
    "half a pull": (LINEAR | {"budgets": [10.5]}, "budget must be a whole number"),
    "no budgets": (LINEAR | {"budgets": []}, "at least one budget"),
    "a cap of 0": (LINEAR | {"cap": 0}, "cap must be"),
    "two budgets": (LINEAR | {"budget": 5, "budgets": [5]}, "either budget"),
    "a budget below the stages": (LINEAR | {"budget": 2}, "at least 4 pulls are needed"),
    "a base without an intercept": (LINEAR | {"base": 1.0}, "add an intercept"),
    "no policy": (LINEAR | {"policies": []}, "at least one policy"),
    "no workers": (LINEAR | {"n_jobs": 0}, "n_jobs"),
    "a model without worlds": (LINEAR | {"model": "forest"}, "linear, logistic, poisson and means"),
    "a policy of other rewards": (LINEAR | {"policies": ["gse-log-fwg"], "budget": 50}, "rewards that are 0 or 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused(case):
    options, says = BAD[case]
    with pytest.raises(InputError, match=says):
        plan(table(), **({"n_jobs": 1} | options))


def test_bad_names_and_arms_are_refused():
    with pytest.raises(UnknownNameError, match="nearest are gse-lin-fwg"):
        plan(table(), **LINEAR, policies=["gse-lin-fgw"])
    with pytest.raises(UnknownNameError, match="nearest are linear"):
        plan(table(), "linaer", **LINEAR)
    with pytest.raises(UnknownNameError, match="rivals"):
        plan(table(), **LINEAR, rivals="closer")
    with pytest.raises(ArmsError, match="finite"):
        plan(np.array([[1.0, np.nan], [0.0, 1.0]]), **LINEAR)
    with pytest.raises(ArmsError, match="shape"):
        plan(np.ones(3), **LINEAR)
    with pytest.raises(InputError, match="a mean reward the model can have"):
        plan(table(intercept=True), "logistic", gap=0.1, base=1.0)


def test_auto_is_the_policy_of_that_name_unless_a_model_is_named():
    options = {"gap": 1.0, "noise_variance": 1.0, "budgets": [40], "replications": 20, "rng": 1, "n_jobs": 1}
    assert set(plan(np.eye(4), policies="auto", **options).budget) == {"auto"}
    assert set(plan(np.eye(4), "means", policies="auto", **options).budget) == {"gse-means"}
    assert set(plan(np.eye(4), **options).budget) == {"gse-lin-fwg", "sequential-halving", "uniform"}


def test_a_budget_below_what_a_policy_needs_is_said():
    options = {"gap": 1.0, "noise_variance": 0.01, "replications": 100, "rng": 1, "n_jobs": 1}
    with pytest.warns(BudgetWarning, match="uniform needs 6 pulls of 6 arms"):
        thin = plan(np.eye(6), policies=["uniform"], budget=4, **options)
    assert any("uniform needs 6 pulls" in one for one in thin.warnings)
    assert not plan(np.eye(6), policies=["uniform"], budget=6, **options).warnings
