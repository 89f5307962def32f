"""A study with a reward that was read a hundred times too large answers as it would without, and says so."""

import numpy as np
import pytest

from bestarm.study import create_study

X = np.random.default_rng(3).standard_normal((20, 3))
MEANS = X @ np.array([1.0, -0.5, 0.3])


def told(direction, also=(), model=None, arms=20):
    """A study in which each arm was told twice, and what was told `also`: arms and rewards."""
    sign, rng = (1.0 if direction == "maximize" else -1.0), np.random.default_rng(8)
    study = create_study(X[:arms], 200, seed=5, direction=direction, model=model)
    for mean, arm in zip(np.tile(MEANS[:arms], 2), np.tile(np.arange(arms), 2), strict=True):
        tell(study, arm, sign * (mean + 0.3 * rng.standard_normal()))
    for arm, reward in also:
        tell(study, arm, sign * reward)
    return study


def tell(study, arm, reward):
    study.tell(arm=str(arm + 1), mean=reward, n=1)


def aside(answer):
    return [said for said in answer.warnings if said.startswith("Set aside")]


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("reward", [100.0, -100.0])
def test_one_reward_far_from_all_changes_no_answer_and_is_named(direction, reward):
    worst = int(MEANS.argmin())
    without, answer = (told(direction, also).recommend() for also in ((), [(worst, reward)]))
    assert answer.arm == without.arm
    assert answer.value == pytest.approx(without.value)
    assert aside(without) == []
    assert aside(answer) == [
        f"Set aside: 1 result of {worst + 1}, far from all others, until another of the arm agrees."
    ]


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_what_its_arm_repeats_is_believed(direction):
    worst = int(MEANS.argmin())
    answer = told(direction, [(worst, 100.0), (worst, 90.0)]).recommend()
    assert answer.arm == str(worst + 1)
    assert aside(answer) == []


def test_several_are_counted_and_a_few_named():
    answer = told("maximize", [(arm, 100.0 + arm) for arm in (1, 4, 9, 11)]).recommend()
    assert aside(answer) == [
        "Set aside: 4 results of 2, 5, 10 and others, far from all others, until another of the arm agrees."
    ]


def test_other_models_set_nothing_aside():
    answer = told("maximize", [(3, 100.0)], model="linear").recommend()
    assert aside(answer) == []


def test_what_was_excluded_is_not_set_aside_too():
    study = told("maximize", [(3, 100.0)])
    far = next(one.name for one in study.state.told if one.sum == 100.0)
    study.exclude(far)
    assert aside(study.recommend()) == []
    study.restore(far)
    assert len(aside(study.recommend())) == 1


def test_of_few_arms_nothing_is_set_aside():
    assert aside(told("maximize", [(3, 100.0)], arms=7).recommend()) == []


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_study_that_was_asked_throughout_forgets_one_misreading(direction):
    sign, rng = (1.0 if direction == "maximize" else -1.0), np.random.default_rng(2)
    study, count = create_study(X, 120, seed=5, direction=direction), 0
    while batch := study.ask():
        rewards = []
        for trial in batch:
            count += 1
            y = MEANS[int(trial.arm) - 1] + 0.3 * rng.standard_normal()
            rewards.append(sign * (y + 100 if count == 15 else y))
        study.tell(batch, rewards)
    assert study.best_arm == study.recommend().arm == str(MEANS.argmax() + 1)
