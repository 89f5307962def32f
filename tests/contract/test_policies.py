"""What every policy in the catalog must do, found there by name."""

import numpy as np
import pytest

from bestarm import catalog, spec
from bestarm.bandits import Bernoulli, Tape
from bestarm.core import Problem
from bestarm.errors import BudgetError
from bestarm.play import play
from tests.conftest import AWKWARD, RowOf, bandit_for, tape_for

SLOW = {"gse-forest"}
NAMES = catalog.names()


def arms_of(tape, row):
    return Tape(tape.features[row], tape.sums[row], tape.squares[row], tape.noise_variance)


@pytest.mark.parametrize("name", NAMES)
def test_live_single_and_batched_runs_agree_on_one_tape(name, rng):
    replications, budget = (2 if name in SLOW else 4), 60
    features = rng.standard_normal((replications, 9, 3))
    tape = tape_for(name, features, budget, rng)
    policy = catalog.policy(name)
    together = play(policy, tape, budget, 5)
    for row in range(replications):
        alone = arms_of(tape, row)
        single = play(policy, alone, budget, RowedGenerator(5, replications, row))
        live, counts = by_hand(policy, alone, budget, RowedGenerator(5, replications, row))
        assert single.arm == together.arm[row]
        np.testing.assert_array_equal(single.counts, together.counts[row])
        assert live == single.arm
        np.testing.assert_array_equal(counts, single.counts)


class RowedGenerator(np.random.Generator):
    """A generator whose children replay one row of a batch of `replications`."""

    def __init__(self, seed, replications, row):
        super().__init__(np.random.PCG64(seed))
        self.seed, self.row, self.replications = seed, row, replications

    def spawn(self, n_children):
        children = np.random.default_rng(self.seed).spawn(n_children)
        return [RowOf(child, self.replications, self.row) for child in children]


def by_hand(policy, tape, budget, rng):
    """The loop a person runs: ask, look, answer arm by arm in any order, tell."""
    choices, _ = rng.spawn(2)
    state = policy.start(Problem(tape.features, budget, tape.noise_variance))
    counts = np.zeros(len(tape.features), dtype=np.int64)
    while (pulls := policy.ask(state, choices)) is not None:
        totals = tape.pull(pulls, counts)
        state = policy.tell(state, pulls, totals)
        np.add.at(counts, pulls.arms, pulls.times)
    return policy.recommend(state), counts


def least_budget(policy, problem):
    """The budget asked for, or the least that the policy says it needs."""
    try:
        policy.start(problem)
    except BudgetError as error:
        return error.least
    return problem.budget


@pytest.mark.parametrize("kind", AWKWARD)
@pytest.mark.parametrize("name", NAMES)
def test_the_budget_is_never_exceeded_on_awkward_problems(name, kind, rng):
    features = AWKWARD[kind](rng)
    bandit = bandit_for(name, features, rng)
    for budget in (1, 2, 5, 17) if name not in SLOW else (17,):
        policy, problem = catalog.policy(name), Problem(features, budget, bandit.noise_variance)
        least = least_budget(policy, problem)
        if least > budget:
            with pytest.raises(BudgetError):
                play(policy, bandit, budget, rng)
            budget = least  # what the error says would do does
        run = play(policy, bandit, budget, rng)
        assert run.counts.sum() <= budget
        assert 0 <= int(run.arm) < len(features)
        if len(features) == 1:
            assert run.counts.sum() == 0


BY_ETA = [n for n in NAMES if any(where.endswith("schedule.eta") for where, _ in spec.settings(catalog.policy(n)))]


@pytest.mark.parametrize("name", [n for n in BY_ETA if n not in SLOW])
@pytest.mark.parametrize("eta", [1.5, 2.5, 3.0, 100.0])
def test_any_eta_spends_what_it_has(name, eta, rng):
    run = play(catalog.policy(name, eta=eta), bandit_for(name, rng.standard_normal((11, 3)), rng), 50, rng)
    assert 50 - 11 < run.counts.sum() <= 50


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_run(name, rng):
    bandit = bandit_for(name, rng.standard_normal((8, 3)), rng)
    first, second = (play(catalog.policy(name), bandit, 64, 3) for _ in range(2))
    assert first.arm == second.arm
    np.testing.assert_array_equal(first.counts, second.counts)


NOT_WITHOUT_NOISE = {
    "p1-rage": "inverse propensity is random even without noise",
    "linucb": "its bonus is a multiple of the noise",
    "linucb-disjoint": "its bonus is a multiple of the noise",
    "linucb-azizi2021": "it plays for reward and returns the arm pulled most",
}
LINEAR = [
    n
    for n in NAMES
    if n not in NOT_WITHOUT_NOISE and not any(word in n for word in ("log", "glm", "poi", "forest", "kernel", "pca"))
]


@pytest.mark.parametrize("name", LINEAR)
def test_without_noise_the_best_arm_is_found(name, rng):
    features = rng.standard_normal((20, 12, 4))
    bandit = bandit_for(name, features, rng, noiseless=True)
    run = play(catalog.policy(name), bandit, 200, rng)
    assert bandit.correct(run.arm).all()


@pytest.mark.parametrize("name", [n for n in NAMES if n not in SLOW])
def test_relabelling_the_arms_relabels_the_answer(name, rng):
    features = rng.standard_normal((20, 8, 3))
    bandit = bandit_for(name, features, rng)
    tape = Tape.draw(bandit, 504, rng)
    order = np.argsort(rng.random((20, 8)), axis=-1)
    moved = Tape(
        np.take_along_axis(tape.features, order[..., None], axis=-2),
        np.take_along_axis(tape.sums, order[..., None], axis=-2),
        np.take_along_axis(tape.squares, order[..., None], axis=-2),
        tape.noise_variance,
    )
    budget = 504  # 168 a stage: equal weights on 2, 3, 4 or 8 arms leave no odd pull to a tie
    straight, turned = (play(catalog.policy(name), t, budget, Still(order, r)) for t, r in ((tape, 0), (moved, 1)))
    agree = np.take_along_axis(order, turned.arm[:, None], axis=-1)[:, 0] == straight.arm
    assert agree.mean() >= (0.8 if isinstance(bandit.noise, Bernoulli) else 1.0)  # equal numbers of successes tie


class Still(np.random.Generator):
    """A generator whose draws belong to arms, not to positions: relabelled arms take their draws along."""

    def __init__(self, order, relabelled):
        super().__init__(np.random.PCG64(7))
        self.order, self.relabelled = order, relabelled

    def spawn(self, n_children):
        return [self] * n_children

    def random(self, size=None):
        draws = super().random(size)
        if not self.relabelled or np.shape(draws)[-1:] != self.order.shape[-1:]:
            return draws
        return np.take_along_axis(draws, self.order, axis=-1)


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_can_be_written_down_and_read_back(name):
    policy = catalog.policy(name)
    assert spec.from_dict(spec.to_dict(policy)) == policy


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_says_what_it_is(name):
    assert catalog.ENTRIES[name].about
