"""A goal turns rewards and estimates there and back, and is refused where it is not one we know."""

import numpy as np
import pytest

import bestarm
from bestarm import Bandit, Gaussian, Goal, create_study
from bestarm.core import DIRECTIONS
from bestarm.errors import InputError
from bestarm.models.glm import GLM
from bestarm.models.law import Logistic, Poisson
from bestarm.models.linear import Linear
from bestarm.planning import Worlds, plan


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_same_turn_leads_back_and_the_best_becomes_the_largest(direction, rng):
    goal, values = Goal(direction), rng.standard_normal(50)
    for about in (0.0, 1.0):
        turned = goal.turned(values, about)
        np.testing.assert_allclose(goal.turned(turned, about), values, atol=1e-15)
        assert values[np.argmax(turned)] == {"largest": values.max(), "smallest": values.min()}[goal.word]
    assert Goal.from_dict(goal.to_dict()) == Goal.of(direction) == Goal.of(goal) == goal


def test_what_is_no_goal_is_refused():
    with pytest.raises(InputError, match="direction must be 'maximize' or 'minimize'; given 'up'"):
        Goal.of("up")
    with pytest.raises(InputError, match="goal must be 'best'; given 'best 3'"):
        Goal.from_dict({"goal": "best 3", "direction": "maximize"})


def test_a_goal_goes_from_the_call_through_the_log_to_the_answer(tmp_path):
    study = create_study(np.eye(3), 12, direction=Goal("minimize"), storage=tmp_path / "log", study_name="s", seed=1)
    study.import_results([("1", 2.0), ("2", 1.0), ("3", 3.0)] * 4)
    first = study.storage.read("s")[0]
    assert (first["goal"], first["direction"]) == ("best", "minimize")
    answer = bestarm.load_study("s", tmp_path / "log").recommend()
    assert (answer.arm, answer.goal) == ("2", Goal("minimize"))
    assert answer.to_dict()["direction"] == "minimize"
    world = Bandit(np.eye(3), np.array([2.0, 1.0, 3.0]), Gaussian(0.01))
    assert bestarm.run(np.eye(3), 30, world, "gse-means", direction="minimize", seed=1).arm == "2"


def test_a_plan_for_the_smallest_mean_is_one_for_the_largest_turned():
    features, base = np.array([[1.0, -1.0], [1.0, 0.0], [1.0, 0.4], [1.0, 1.0]]), 0.02
    up = Worlds(features, GLM(Logistic()), gap=0.01, base=1 - base)
    down = Worlds(features, GLM(Logistic()), gap=0.01, base=base, goal=Goal("minimize"))
    one, two = (worlds.draw(50, np.random.default_rng(1)).means for worlds in (up, down))
    np.testing.assert_allclose(one, two, atol=1e-12)
    asked = {"noise_variance": 1.0, "policies": "gse-lin-fwg", "budget": 40, "replications": 50, "rng": 1, "n_jobs": 1}
    asked["prior"] = lambda size, rng: np.array([0.0, 1.0]) + 0.1 * rng.standard_normal((size, 2))
    made = plan(features, direction="minimize", **asked)
    assert made.about["direction"] == "minimize"
    with pytest.raises(InputError, match="cannot be minimised"):
        Worlds(features, GLM(Poisson()), gap=0.1, goal=Goal("minimize"))
    drawn = Worlds(features, Linear(), None, 1.0, asked["prior"], goal=Goal("minimize"))
    assert np.all(np.argmax(drawn.predictors(20, np.random.default_rng(1)), axis=1) == 0)
