"""Nothing ever exceeds its budget, on ten thousand random problems a policy."""

import numpy as np
import pytest

from bestarm import catalog
from bestarm.core import Problem
from bestarm.errors import BudgetError
from bestarm.playing import play
from tests.conftest import bandit_for

FEW = {"gse-forest": 100, "peace": 1000, "peace-rho": 2000, "p1-rage": 2000, "lingape": 2000, "gse-lin-cluster": 1000}


def least_budget(policy, problem):
    """The budget asked for, or the least that the policy says it needs."""
    try:
        policy.start(problem)
    except BudgetError as error:
        return error.least
    return problem.budget


@pytest.mark.statistics
@pytest.mark.parametrize("name", catalog.names())
def test_the_budget_is_never_exceeded(name, rng):
    seen, wanted = 0, FEW.get(name, 10_000)
    while seen < wanted:
        arms, dimension, budget = (int(n) for n in rng.integers([1, 1, 1], [24, 9, 120]))
        together = min(50, wanted - seen)
        features = rng.standard_normal((together, arms, dimension))
        if rng.random() < 0.3:
            features = features.round()  # duplicates, zero rows, ties
            features += (
                0 if np.ptp(np.linalg.matrix_rank(features)) == 0 else 1e-3 * rng.standard_normal(features.shape)
            )
        policy, bandit = catalog.policy(name), bandit_for(name, features, rng)
        budget = least_budget(policy, Problem(features, budget, bandit.noise_variance))
        run = play(policy, bandit, budget, rng)
        assert run.counts.sum(-1).max() <= budget
        seen += together
