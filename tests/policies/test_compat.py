"""The published code's roundings, counted honestly: rounding up costs later stages what it takes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bestarm import instances
from bestarm.bandits import Bandit, Gaussian
from bestarm.core import Problem
from bestarm.designs.ascent import Ascent, LineSearch
from bestarm.designs.starts import Even
from bestarm.errors import BudgetError
from bestarm.models.linear import Linear
from bestarm.playing import play
from bestarm.policies.elimination import Elimination
from bestarm.policies.schedules import FloorHalving, stage_sizes

AZIZI = Elimination(Linear(), Ascent(LineSearch(), Even(), tolerance=0.0, limit=100), FloorHalving())


def test_five_arms_skip_a_stage_and_leave_its_budget():
    assert FloorHalving().shares(5, 91) == ((30, 2), (30, 1))  # the 31 of the third stage are lost
    assert FloorHalving().shares(8, 90) == ((30, 4), (30, 2), (30, 1))
    assert FloorHalving().shares(1, 90) == ()


def test_rounding_up_overspends_each_stage_and_the_last_pays():
    """Adaptive, K = 8, B = 80: unbounded, the stages would take 88 pulls, as the published code does."""
    bandit = instances.adaptive(8)
    rounds = []
    run = play(AZIZI, bandit, 80, 1, rounds.append)
    shares = [s.pulls for s in rounds[0].before.stages]
    taken = [r.pulls.total for r in rounds]
    assert shares == [26, 27, 27]
    assert all(t > s for t, s in zip(taken[:-1], shares[:-1], strict=True))
    assert taken[-1] < shares[-1]
    assert run.counts.sum() == 80
    wanted = [np.ceil(s * AZIZI.design.weights(r.before.candidates)).sum() for s, r in zip(shares, rounds, strict=True)]
    assert sum(wanted) > 80


@settings(deadline=None, max_examples=60)
@given(arms=st.integers(1, 40), d=st.integers(1, 6), budget=st.integers(1, 120), seed=st.integers(0, 10**6))
def test_the_budget_is_never_exceeded(arms, d, budget, seed):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((3, arms, d))
    bandit = Bandit(features, features[..., 0], Gaussian(1.0))
    stages = len(stage_sizes(arms, 2)) - 1
    if budget < stages:
        with pytest.raises(BudgetError) as caught:
            AZIZI.start(Problem(features, budget))
        budget = caught.value.least
    run = play(AZIZI, bandit, budget, rng)
    assert (run.counts.sum(axis=-1) <= budget).all()


def test_with_nothing_left_the_last_leader_stands():
    """64 arms and 70 pulls: the first stage takes a pull for each arm, the second what is left; then it is over."""
    rng = np.random.default_rng(2)
    features = rng.standard_normal((64, 3))
    rounds = []
    run = play(AZIZI, Bandit(features, features[:, 0], Gaussian(0.0)), 70, 1, rounds.append)
    assert [r.pulls.total for r in rounds] == [64, 6]
    assert run.arm == rounds[-1].after.best == np.argmax(features[:, 0])
    assert AZIZI.ask(run.state, rng) is None


@pytest.mark.parametrize("budget", [80, 160, 400])
def test_without_noise_the_best_arm_is_found(budget, rng):
    features = rng.standard_normal((50, 8, 3))
    bandit = Bandit(features, features[..., 0], Gaussian(0.0))
    assert bandit.correct(play(AZIZI, bandit, budget, rng).arm).all()
