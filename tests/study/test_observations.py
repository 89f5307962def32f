"""Observations of several rewards, of which only a summary is known, are worth what the rewards told one by one are."""

import numpy as np
import pytest

from bestarm import create_study, load_study
from bestarm.errors import InputError, RewardError
from bestarm.totals import moments

ARMS = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])


def fresh(place=None, **settings):
    return create_study(ARMS, 30, storage=place, study_name="these", seed=1, **settings)


def test_moments_are_those_of_the_rewards(rng):
    rewards = rng.standard_normal(7)
    several = {"mean": rewards.mean(), "sd": rewards.std(ddof=1), "n": 7}
    assert moments(several) == pytest.approx((7, rewards.sum(), (rewards**2).sum(), 7 * rewards.var()))
    totals = {"sum": rewards.sum(), "squares": (rewards**2).sum(), "n": 7}
    assert moments(totals) == pytest.approx(moments(several))
    won = (rewards > 0).astype(float)
    assert moments({"successes": won.sum(), "n": 7}) == pytest.approx((7, won.sum(), (won**2).sum(), 7 * won.var()))
    assert moments({"value": -2.0}) == (1, -2.0, 4.0, 0.0)


@pytest.mark.parametrize("model", ["linear", "logistic", "poisson", "means", None])
def test_a_summary_says_what_its_rewards_say(model, rng, tmp_path):
    place = tmp_path / "a.journal"
    one, two = fresh(model=model), fresh(place, model=model)
    for arm in one.arms:
        rewards = {"logistic": rng.integers(0, 2, 9), "poisson": rng.poisson(3, 9)}.get(model, rng.standard_normal(9))
        one.tell(arm=arm, values=rewards.astype(float))
        if model == "logistic":
            said = {"successes": int(rewards.sum())}
        else:
            said = {"mean": rewards.mean()} | ({} if model == "poisson" else {"sd": rewards.std(ddof=1)})
        for _ in range(2):  # the same one told again counts once
            two.tell(arm=arm, n=9, id=f"week 1, {arm}", **said)
    two = load_study("these", place)
    first, second = one.recommend(), two.recommend()
    assert (first.arm, first.told) == (second.arm, second.told) == (second.arm, 27)
    np.testing.assert_allclose(first.interval, second.interval, rtol=1e-6, atol=1e-9)
    assert first.p_best == pytest.approx(second.p_best)


REFUSED = {
    "neither": ({"n": 3}, "either successes and n are expected, or mean, sd and n"),
    "both": ({"successes": 1, "mean": 0.2, "n": 3}, "either successes and n"),
    "no n": ({"successes": 3}, "either successes and n"),
    "more than all": ({"successes": 4, "n": 3}, "arm '2': successes must be a whole number from 0 to 3"),
    "half a reward": ({"successes": 1, "n": 2.5}, "arm '2': n must be a whole number"),
    "no scatter": ({"mean": 1.0, "n": 3}, "arm '2': sd is needed"),
    "less than none": ({"mean": 1.0, "sd": -1.0, "n": 3}, "arm '2': sd must be a finite number from 0"),
    "values too": ({"values": 1.0, "n": 3}, "not both at once"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_summary_that_says_too_little_or_too_much_is_refused(case):
    study, (said, words) = fresh(), REFUSED[case]
    with pytest.raises(InputError, match=words):
        study.tell(arm="2", **said)
    assert sum(study.state.counts) == 0


def test_a_summary_the_model_cannot_have_produced_is_refused():
    with pytest.raises(RewardError, match="arm '1': the logistic model needs rewards that are 0 or 1"):
        fresh(model="logistic").tell(arm="1", mean=0.3, n=10)
    with pytest.raises(RewardError, match="arm '1': the Poisson model needs"):
        fresh(model="poisson").tell(arm="1", mean=0.33, n=10)


def test_a_summary_is_of_one_trial_and_extras_may_be_refused():
    study = fresh(extra=False)
    batch = study.ask()
    with pytest.raises(InputError, match="n, mean and sd are of one trial, or of an arm's extra rewards"):
        study.tell(batch, mean=1.0, sd=0.1, n=5)
    with pytest.raises(InputError, match="n, mean and sd are of one trial"):
        study.tell(batch.trials[0], 1.0, n=5)
    with pytest.raises(InputError, match="trial T0001: sd is needed"):
        study.tell(batch.trials[0], mean=1.0, n=5)
    with pytest.raises(InputError, match="takes no extra results"):
        study.tell(arm="1", mean=1.0, sd=0.1, n=5)


@pytest.mark.parametrize("policy", ["auto", "gse-log-fwg", "sequential-halving", "gp-thompson", "linucb-azizi2021"])
def test_a_trial_of_several_rewards_is_one_pull_of_the_budget(policy, rng, tmp_path):
    study = fresh(tmp_path / "a.journal", policy=policy)
    told = np.zeros((3, 2))
    while batch := study.ask():
        for trial in batch:
            won = int(rng.binomial(20, 0.2 + 0.2 * int(trial.arm)))
            told[int(trial.arm) - 1] += 20, won
            assert study.tell(trial, successes=won, n=20) == 20
            assert study.tell(trial.id, successes=won, n=20) == 0
    assert study.spent >= 24  # halving leaves some
    assert study.best_arm == "3"
    assert not study.state.troubles
    assert np.array_equal(load_study("these", tmp_path / "a.journal").state.known().counts, told[:, 0])
    assert np.array_equal(study.state.known().sums, told[:, 1])
    with pytest.raises(InputError, match=r"trial T0001 of arm .* is .* in the log"):
        study.tell("T0001", successes=0, n=19)
    study.amend("T0001", 20)
    assert study.state.results[1].sum == 20
