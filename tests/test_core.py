"""The one door for policies: four methods are enough, and the defaults change nothing about the policy."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from bestarm import Arms, Bandit, Gaussian, catalog, create_study, play, spec
from bestarm.core import Problem, Pulls, Standing, Totals, policy_of
from bestarm.errors import InputError
from bestarm.policies.batched import Batched
from bestarm.policies.embedded import Embedded
from bestarm.policies.schedules import Stage
from bestarm.policies.streamed import BigProblem, Streamed
from bestarm.tables import open_source


@dataclass(frozen=True)
class First:
    """Pull the first arm once, and answer it."""

    def start(self, problem):
        return problem, False

    def ask(self, state, rng):
        return None if state[1] else Pulls(np.array([0]), np.array([1]))

    def tell(self, state, pulls, totals):
        return state[0], True

    def recommend(self, state):
        return 0


def test_four_methods_are_enough_and_stay_what_they_are():
    own, whole = First(), policy_of(First())
    assert whole == own
    assert own == whole
    assert hash(whole) == hash(own)
    assert repr(whole) == repr(own)
    assert spec.to_dict(whole) == spec.to_dict(own)
    assert pickle.loads(pickle.dumps(whole)) == own
    assert policy_of(whole) is whole
    bandit = Bandit(np.eye(3), np.arange(3.0), Gaussian(1.0))
    assert play(whole, bandit, 5, 1).counts.tolist() == play(own, bandit, 5, 1).counts.tolist()
    assert whole.model is None
    assert whole.describe(None) == Standing()
    assert whole.in_rounds(3) is None
    assert whole.in_batches(4, 10, True) is None
    assert not whole.flexible
    assert whole.altered(lambda policy: (policy, 1)) == (own, 1)


def test_what_a_policy_says_itself_is_not_replaced():
    @dataclass(frozen=True)
    class Says(First):
        def in_rounds(self, n):
            return n

    assert policy_of(Says()).in_rounds(7) == 7
    assert policy_of(Says()).describe(None) == Standing()


@pytest.mark.parametrize(
    ("what", "says"),
    [
        (Stage(1, 1), "Stage is no policy: it has no start, ask, tell, recommend"),
        (First, r"First is the class of a policy, not a policy: make one, First\(\)"),
        (None, "NoneType is no policy"),
    ],
)
def test_what_is_no_policy_is_told_what_it_lacks(what, says):
    with pytest.raises(InputError, match=says):
        policy_of(what)
    if what is not None:
        with pytest.raises(InputError, match=says):
            create_study(Arms.from_arrays(np.eye(3)), 10, what)


@pytest.mark.parametrize("name", catalog.names())
def test_everyone_who_drops_arms_says_who_is_in(name, rng):
    policy = policy_of(catalog.policy(name))
    state = policy.start(Problem(rng.standard_normal((6, 2)), 40, 1.0))
    standing = policy.describe(state)
    assert standing.active is None or standing.active.tolist() == [True] * 6
    assert standing.passed == 0
    assert standing.estimates() is None


def test_estimates_are_those_of_the_arms_compared_best_first(rng):
    bandit, policy = Bandit(np.eye(8), np.arange(8.0), Gaussian(0.01)), policy_of(catalog.policy("gse-lin"))
    seen = []
    play(policy, bandit, 96, 1, lambda round: seen.append(policy.describe(round.after)))
    assert [int(one.active.sum()) for one in seen] == [4, 2, 1]
    assert seen[0].stages == (32, 32, 32)
    first = seen[0].estimates()
    assert first.arms.tolist() == [7, 6, 5, 4, 3, 2, 1, 0]
    np.testing.assert_allclose(first.means, np.arange(7.0, -1, -1), atol=0.5)
    assert np.all(first.errors > 0)


def test_a_wrapped_policy_answers_for_the_one_within():
    pca = catalog.policy("gse-pca-fwg", eta=4)
    assert isinstance(pca, Embedded)
    assert pca.policy.eta == 4
    within, features = policy_of(pca), np.random.default_rng(1).standard_normal((9, 7))
    assert within.model == pca.policy.model
    assert within.sees(features).shape == (9, 5)
    batched = policy_of(Batched(pca, 2))
    assert batched.model == pca.policy.model
    assert batched.describe(batched.start(Problem(features, 60, 1.0))).active.all()


def test_over_a_big_table_the_marks_are_of_its_rows(rng):
    few = catalog.policy("gse-lin-fwg")
    policy, table = Streamed(few, switch=20), rng.standard_normal((60, 3))
    state, seen = policy.start(BigProblem(open_source(table), 90, 1.0)), []
    while (pulls := policy.ask(state, rng)) is not None:
        sums = pulls.times * table[pulls.arms, 0]
        state = policy.tell(state, pulls, Totals(sums, sums**2))
        seen.append(policy_of(policy).describe(state))
    assert [int(one.active.sum()) for one in seen] == [30, 15, 8, 4, 2, 1]
    assert np.flatnonzero(seen[-1].active).tolist() == [policy.recommend(state)]
    assert all(one.active[one.estimates().arms].any() for one in seen)
    assert seen[-1].passed == len(seen[-1].stages) == 6
    assert seen[0].eta == few.eta
