"""Rewards that nobody asked for: a policy knows them or lets them be, and plans with its budget as before."""

import numpy as np
import pytest

from bestarm import Pulls, catalog
from bestarm.core import Problem, Totals, policy_of
from bestarm.errors import BestArmError

FEATURES = np.random.default_rng(3).normal(size=(6, 3))
BUDGET = 90


def spent_by(policy, observe):
    """How many pulls a policy asks for, if it observes more between its questions."""
    rng, total = np.random.default_rng(5), 0
    whole = policy_of(policy)
    state = whole.start(Problem(FEATURES, BUDGET, 1.0))
    for _ in range(BUDGET + 1):
        if observe:
            more = np.array([1, 4])
            sums = rng.random(2).round()
            state = whole.observe(state, Pulls(more, np.array([1, 1])), Totals(sums, sums, np.zeros(2)))
        asked = whole.ask(state, rng)
        if asked is None:
            break
        times = np.asarray(asked.times)
        sums = rng.binomial(times, 0.5).astype(float)
        total += int(times.sum())
        state = whole.tell(state, asked, Totals(sums, sums, sums - sums**2 / np.maximum(times, 1)))
    assert 0 <= int(whole.recommend(state)) < 6
    return total


@pytest.mark.parametrize("name", catalog.names())
def test_what_was_observed_takes_nothing_of_the_budget(name):
    policy = catalog.policy(name)
    try:
        usual = spent_by(policy, observe=False)
    except BestArmError as error:
        pytest.skip(str(error))
    assert spent_by(policy, observe=True) <= BUDGET
    assert usual <= BUDGET
    if name in ("auto", "linucb", "top-two-lin", "uniform"):
        assert spent_by(policy, observe=True) == usual == BUDGET
