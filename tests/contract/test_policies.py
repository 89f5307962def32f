"""What every policy in the catalog must do, found there by name."""

from functools import partial

import numpy as np
import pytest

from bestarm import catalog
from bestarm.bandits import Bernoulli, Tape
from bestarm.core import Problem, policy_of
from bestarm.playing import play
from bestarm.testing import check_policy, follow
from tests.conftest import bandit_for, tape_for

SLOW = {"gse-forest"}
NAMES = catalog.names()


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_keeps_the_contract_of_policies(name):
    world = partial(bandit_for, name)
    if name in SLOW:
        check_policy(catalog.policy(name), world, budgets=(17,), replications=2)
    else:
        check_policy(catalog.policy(name), world)


@pytest.mark.parametrize("name", NAMES)
def test_a_single_arm_is_answered_without_a_pull(name, rng):
    run = play(catalog.policy(name), bandit_for(name, rng.standard_normal((1, 3)), rng), 17, rng)
    assert run.arm == 0
    assert run.counts.sum() == 0


@pytest.mark.parametrize("name", ["auto", "gse-lin-fwg", "p1-rage", "ocba"])
def test_play_is_the_loop_that_a_person_runs(name, rng):
    tape = tape_for(name, rng.standard_normal((9, 3)), 60, rng)
    choices, _ = np.random.default_rng(5).spawn(2)
    by_hand = follow(catalog.policy(name), tape, 60, lambda step: choices)
    run = play(catalog.policy(name), tape, 60, 5)
    assert run.arm == by_hand.arms[-1]
    np.testing.assert_array_equal(run.counts, by_hand.counts)


def goes_by_eta(name):
    policy = policy_of(catalog.policy(name))
    return policy.describe(policy.start(Problem(np.eye(6), 60, 1.0))).eta is not None


BY_ETA = [name for name in NAMES if goes_by_eta(name)]


@pytest.mark.parametrize("name", [n for n in BY_ETA if n not in SLOW])
@pytest.mark.parametrize("eta", [1.5, 2.5, 3.0, 100.0])
def test_any_eta_spends_what_it_has(name, eta, rng):
    run = play(catalog.policy(name, eta=eta), bandit_for(name, rng.standard_normal((11, 3)), rng), 50, rng)
    assert 50 - 11 < run.counts.sum() <= 50


NOT_WITHOUT_NOISE = {
    "p1-rage": "inverse propensity is random even without noise",
    "linucb": "its bonus is a multiple of the noise",
    "linucb-disjoint": "its bonus is a multiple of the noise",
    "linucb-azizi2021": "it plays for reward and returns the arm pulled most",
    "bayesgap-azizi2021-covariance": "it sees features without their mean, so its model is wrong",
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


DRAWN = {"gse-lin-wynn-azizi2021"}  # pulls are drawn arm by arm, in the order of the arms


@pytest.mark.parametrize("name", [n for n in NAMES if n not in SLOW | DRAWN])
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
def test_every_entry_says_what_it_is(name):
    assert catalog.ENTRIES[name].about
