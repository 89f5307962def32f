"""Batches of one-at-a-time policies: jointly planned, within the budget, and guesses that leave no trace."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from bestarm import Bandit, Gaussian, Problem, Pulls, Totals, catalog, play
from bestarm.policies.batched import Batched
from tests.conftest import bandit_for

ALONE = ("linucb", "ucb-glm", "bayesgap-lin", "lingape", "top-two-lin", "ocba", "continuous-rejects-a")


def sizes(policy, bandit, budget, seed=1):
    found = []
    done = play(policy, bandit, budget, seed, lambda round: found.append(int(round.pulls.times.sum())))
    return found, done


@pytest.mark.parametrize("name", sorted(catalog.ENTRIES))
def test_any_policy_keeps_its_budget_in_batches(name, rng):
    features = rng.standard_normal((8, 3))
    bandit = bandit_for(name, features, rng)
    found, done = sizes(Batched(catalog.policy(name), 5), bandit, 60)
    alone, _ = sizes(catalog.policy(name), bandit, 60)
    assert sum(found) <= 60
    assert 0 <= int(done.arm) < 8
    if 1 not in alone:  # a policy of stages keeps them
        assert found == alone


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("size", [2, 5, 96])
def test_single_questions_are_put_together(name, size, rng):
    features = rng.standard_normal((6, 3))
    found, _ = sizes(Batched(catalog.policy(name), size), bandit_for(name, features, rng), 50)
    later = [one for one in found[1:-1] if one]
    assert all(one == size for one in later)
    assert sum(found) == 50


@pytest.mark.parametrize("name", ALONE)
def test_a_batch_of_one_is_the_policy_itself(name, rng):
    features = rng.standard_normal((6, 3))
    bandit = bandit_for(name, features, rng)
    asked = [[], []]
    for seen, policy in zip(asked, (catalog.policy(name), Batched(catalog.policy(name), 1)), strict=True):
        play(policy, bandit, 30, 4, lambda round, seen=seen: seen.append(round.pulls.arms.tolist()))
    assert asked[0] == asked[1]


@dataclass(frozen=True)
class Recorder:
    """A policy that pulls arm 0, 1, 2, ... and remembers what it was told."""

    told: list = field(default_factory=list)

    def start(self, problem):
        return ()

    def ask(self, state, rng):
        return Pulls(np.array([len(state) % 3]), np.array([1])) if len(state) < 9 else None

    def tell(self, state, pulls, totals):
        return (*state, *zip(pulls.arms.tolist(), totals.sums.tolist(), totals.squares.tolist(), strict=True))

    def recommend(self, state):
        return np.int64(0)


def test_the_unseen_is_guessed_at_the_mean_and_then_forgotten():
    batched = Batched(Recorder(), 4)
    state = batched.start(Problem(np.eye(3), 9))
    pulls = batched.ask(state, None)
    assert pulls.arms.tolist() == [0, 1, 2, 0]
    state = batched.tell(state, pulls, Totals(np.array([1.0, 2.0, 6.0, 3.0]), np.array([1.0, 4.0, 36.0, 9.0])))
    assert state.inner == ((0, 1.0, 1.0), (1, 2.0, 4.0), (2, 6.0, 36.0), (0, 3.0, 9.0))
    guess = batched._guess(state.known, Pulls(np.array([0, 2]), np.array([1, 2])))
    assert guess.sums.tolist() == [2.0, 12.0]  # the mean of 1 and 3; twice 6
    assert guess.squares.tolist() == [5.0, 72.0]  # mean squares, so the spread stays as it was


def test_an_arm_never_seen_is_guessed_at_the_mean_of_all():
    batched = Batched(Recorder(), 2)
    state = batched.start(Problem(np.eye(3), 9))
    state = batched.tell(state, batched.ask(state, None), Totals(np.array([1.0, 3.0]), np.array([1.0, 9.0])))
    assert batched._guess(state.known, Pulls(np.array([2]), np.array([1]))).sums.tolist() == [2.0]


def test_batches_cost_little(rng):
    """In batches of 4 LinUCB still finds a clear winner."""
    features = np.broadcast_to(rng.standard_normal((6, 3)), (200, 6, 3))
    means = features @ np.array([1.0, -1.0, 0.5])
    bandit = Bandit(features, means, Gaussian(0.25))
    right = bandit.correct(play(Batched(catalog.policy("linucb"), 4), bandit, 60, rng).arm)
    assert right.mean() > 0.85
