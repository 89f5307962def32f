"""Linear systems made for a confidence, cut at the budget: XY-adaptive, lazy track-and-stop, LinGame, LinGame-C."""

import numpy as np
import pytest

from bestarm import catalog, instances
from bestarm.bandits import Bandit, Gaussian
from bestarm.core import Problem, Pulls, Totals
from bestarm.designs.directions import EachArm
from bestarm.designs.transductive import Transductive
from bestarm.errors import InputError
from bestarm.linalg import Candidates
from bestarm.playing import play
from bestarm.policies.games import Hedge, LinGame, Unclipped, worst_alternative
from bestarm.policies.posteriors import LeastSquares, RidgePrior
from bestarm.policies.sequential import BestActive, EachOnce, Sequential
from bestarm.policies.tracking import best_allocation
from bestarm.policies.xy_adaptive import NormalisedLength, XYAdaptive

OMEGA = 0.1
SOARE = np.array([[1.0, 0.0], [0.0, 1.0], [np.cos(OMEGA), np.sin(OMEGA)]])
NAMES = ("xy-adaptive", "lazy-track-and-stop", "lingame", "lingame-c")


def soare(runs):
    features = np.broadcast_to(SOARE, (runs, 3, 2))
    return Bandit(features, features @ np.array([2.0, 0.0]), Gaussian(1.0))


def first_phase(rule):
    """Return the pulls and the width when the first phase of XY-adaptive is over; it does not depend on rewards."""
    policy = Sequential(rule, LeastSquares(), final=BestActive())
    state = policy.start(Problem(SOARE, 1000, 1.0))
    counts = np.zeros(3, dtype=int)
    while state.memory.number == 1:
        pulls = policy.ask(state, None)
        counts[pulls.arms] += 1
        state = policy.tell(state, pulls, Totals(np.zeros(1), np.zeros(1)))
    inverse = np.linalg.inv(np.eye(2) + SOARE.T @ (SOARE * counts[:, None]))
    y = SOARE[:, None] - SOARE
    return counts.tolist(), np.max(np.einsum("abi,ij,abj->ab", y, inverse, y))


def test_the_first_phase_of_xy_adaptive():
    counts, width = first_phase(XYAdaptive())
    assert counts == [8, 7, 0]
    assert width == pytest.approx(0.2361, abs=1e-4)
    counts, width = first_phase(XYAdaptive(length=NormalisedLength()))
    assert sorted(counts) == [0, 139, 140]  # whichever of the basis arms rounding lets have the odd one
    assert width == pytest.approx(0.01424, abs=1e-5)


def test_xy_adaptive_forgets_a_phase_when_it_is_over(rng):
    seen = []
    play(catalog.policy("xy-adaptive"), soare(1), 300, rng, lambda done: seen.append(done.after.memory))
    number = [int(one.number[0]) for one in seen]
    assert number == sorted(number)
    assert number[-1] > 2
    changes = [j for j in range(1, len(seen)) if number[j] > number[j - 1]]
    assert all(seen[j].counts.sum() == j + 1 for j in changes)
    active = np.array([one.active[0] for one in seen])
    assert (np.diff(active.astype(int), axis=0) <= 0).all()  # nobody comes back


def test_xy_adaptive_drops_whom_it_is_sure_of():
    """With δ near 1 and no noise to speak of the first phase leaves the best arm alone."""
    features = np.eye(3)
    run = play(
        catalog.policy("xy-adaptive", delta=0.9), Bandit(features, np.array([9.0, 0.0, 1.0]), Gaussian(1e-6)), 60, 1
    )
    assert run.state.memory.active.tolist() == [True, False, False]
    assert run.arm == 0


def test_the_best_allocation_of_soares_arms():
    """For ω it is proportional to (1 − cos ω, sin ω, 0), and 1/T* is what the closest pair is told apart by."""
    arms, mean = Candidates.of(SOARE), SOARE @ np.array([2.0, 0.0])
    w = best_allocation(arms, mean, np.ones(3) / 3, Transductive(EachArm(), tolerance=1e-6, limit=100_000))
    np.testing.assert_allclose(w, [0.04766, 0.95234, 0.0], atol=3e-4)
    y = SOARE[0] - SOARE
    width = np.einsum("ki,ij,kj->k", y, np.linalg.inv(SOARE.T @ (SOARE * w[:, None])), y)[1:]
    assert 1 / np.min((mean[0] - mean[1:]) ** 2 / (2 * width)) == pytest.approx(220.15, rel=1e-3)


def test_the_best_allocation_in_six_dimensions():
    features = instances.adaptive(6, OMEGA).features
    mean = features @ (2 * np.eye(features.shape[-1])[0])
    arms = Candidates.of(features)
    w = best_allocation(arms, mean, np.ones(len(mean)), Transductive(EachArm(), tolerance=1e-3, limit=100_000))
    y = features[0] - features
    inverse = np.linalg.inv(features.T @ (features * w[:, None]))
    width = np.einsum("ki,ij,kj->k", y, inverse, y)[1:]
    closest = 1 / np.min((mean[0] - mean[1:]) ** 2 / (2 * width))
    assert features.shape == (6, 5)
    assert 220.15 < closest < 222.25 * 1.001  # six basis arms more need 222.25


def test_a_tie_leaves_the_allocation_as_it_was():
    before = np.array([0.2, 0.3, 0.5])
    found = best_allocation(Candidates.of(np.eye(3)), np.array([1.0, 1.0, 0.0]), before, Transductive(EachArm()))
    np.testing.assert_array_equal(found, before)


def test_lazy_track_and_stop_follows_its_allocation(rng):
    """In the end the pulls are those that w* asks for, but for the forced ones."""
    run = play(catalog.policy("lazy-track-and-stop"), soare(100), 500, rng)
    np.testing.assert_allclose((run.counts / 500).mean(axis=0), [0.05, 0.95, 0.0], atol=0.015)
    memory = run.state.memory
    np.testing.assert_allclose(memory.w.sum(axis=-1), 1.0)


def test_lazy_track_and_stop_starts_with_arms_that_span(rng):
    features = rng.standard_normal((50, 7, 4))
    pulls = catalog.policy("lazy-track-and-stop").ask(
        catalog.policy("lazy-track-and-stop").start(Problem(features, 30)), rng
    )
    assert (pulls.times.sum(axis=-1) == 4).all()
    for x, arms in zip(features, pulls.arms, strict=True):
        assert np.linalg.matrix_rank(x[arms]) == 4


def test_lazy_track_and_stop_knows_no_noise(rng):
    bandit = soare(20)
    silent = Problem(bandit.features, 50)
    state = catalog.policy("lazy-track-and-stop").start(silent)
    assert state.problem.noise_variance is None


def test_lingame_by_hand():
    """Two basis arms, rewards 1 and 0: λ = (.25, .25), both gains (.25 + .8326)²/2 = .586; the tie is arm 0."""
    assert worst_alternative(np.eye(2), np.array([0.5, 0.5]), np.array([0.5, 0.0])).tolist() == [0.25, -0.25]
    policy = Sequential(LinGame(), RidgePrior(), EachOnce())
    state = policy.start(Problem(np.eye(2), 9, 1.0))
    rewards = np.array([1.0, 0.0])
    state = policy.tell(state, Pulls(np.arange(2), np.array([1, 1])), Totals(rewards, rewards))
    np.testing.assert_allclose(state.memory.learners.losses[0], [-0.586, -0.586], atol=5e-4)
    assert state.memory.learners.losses[1].tolist() == [0.0, 0.0]
    assert state.memory.W.tolist() == [1.5, 1.5]
    assert policy.ask(state, None).arms.tolist() == [0]


def test_a_gain_is_clipped_unless_it_is_not():
    """After two pulls c = ln 2: a distance of 3 would gain more."""
    told = Totals(np.array([9.0, 0.0]), np.array([81.0, 0.0]))
    for rule, clipped in ((LinGame(), True), (LinGame(Unclipped()), False)):
        policy = Sequential(rule, RidgePrior(), EachOnce())
        state = policy.tell(policy.start(Problem(np.eye(2), 9, 1.0)), Pulls(np.arange(2), np.array([1, 1])), told)
        gains = -state.memory.learners.losses[0]
        assert (gains == np.log(2)).all() == clipped
        assert (gains >= np.log(2)).all()


def test_hedge_follows_the_smaller_loss():
    hedge = Hedge.fresh((2,))
    for _ in range(50):
        p = hedge.play()
        hedge = hedge.after(p, np.array([1.0, 0.5]))
    assert p[1] > 0.999
    assert p.sum() == pytest.approx(1)
    assert hedge.mixed >= 0.01


def test_what_no_pull_measures_is_passed_over():
    """Arm 2 lies where w does not look: the rival that is measured is chosen, though arm 2 seems cheaper."""
    moved = worst_alternative(np.eye(3), np.array([0.5, 0.5, 0.0]), np.array([1.0, 0.0, 0.9]))
    assert moved[2] == 0
    assert moved[:2].tolist() == pytest.approx([0.5, -0.5])


def test_twins_of_the_leader_are_no_rivals():
    z = Candidates.of(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])).coordinates
    moved = worst_alternative(z, np.full(3, 1 / 3), np.array([1.0, 1.0, 0.0]))
    assert abs(moved[0] - moved[2]) == pytest.approx(1)
    alike = worst_alternative(Candidates.of(np.ones((3, 2))).coordinates, np.full(3, 1 / 3), np.zeros(3))
    assert alike.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("name", "budget", "wanted", "shares"),
    [
        ("xy-adaptive", 200, 0.893, (0.12, 0.88, 0.0)),
        ("xy-adaptive", 500, 0.990, (0.07, 0.93, 0.0)),
        ("lazy-track-and-stop", 200, 0.895, (0.06, 0.94, 0.0)),
        ("lazy-track-and-stop", 500, 0.988, (0.05, 0.95, 0.0)),
        ("lingame", 200, 0.815, (0.30, 0.61, 0.09)),
        ("lingame", 500, 0.935, (0.30, 0.65, 0.05)),
        ("lingame-c", 200, 0.803, (0.32, 0.59, 0.09)),
        ("lingame-c", 500, 0.945, (0.32, 0.63, 0.05)),
    ],
)
def test_accuracy_and_pulls_are_those_of_other_programs(name, budget, wanted, shares):
    bandit = soare(400)
    run = play(catalog.policy(name), bandit, budget, np.random.default_rng(8))
    right = bandit.correct(run.arm).mean()
    assert abs(right - wanted) < 4.9 * np.sqrt(2 * wanted * (1 - wanted) / 400)
    np.testing.assert_allclose((run.counts / budget).mean(axis=0), shares, atol=0.025)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("budget", [1, 2, 3, 7])
def test_small_budgets_are_spent_and_no_more(name, budget, rng):
    features = rng.standard_normal((30, 9, 4))
    bandit = Bandit(features, features[..., 0], Gaussian(1.0))
    run = play(catalog.policy(name), bandit, budget, rng)
    assert (run.counts.sum(axis=-1) == budget).all()


@pytest.mark.parametrize("name", NAMES)
def test_replications_of_several_ranks_play_as_each_alone(name, rng):
    full = rng.standard_normal((6, 5))
    flat = rng.standard_normal((6, 2)) @ rng.standard_normal((2, 5))
    features = np.stack([full, flat])
    tape_means = features @ rng.standard_normal(5)
    together = play(catalog.policy(name), Bandit(features, tape_means, Gaussian(0.0)), 40, 1)
    for row in range(2):
        alone = play(catalog.policy(name), Bandit(features[row], tape_means[row], Gaussian(0.0)), 40, 1)
        assert alone.arm == together.arm[row]
        np.testing.assert_array_equal(alone.counts, together.counts[row])


@pytest.mark.parametrize("name", ["xy-adaptive", "lingame", "lingame-c"])
def test_a_rule_in_units_of_the_noise_asks_for_it(name):
    with pytest.raises(InputError, match="variance of the noise"):
        catalog.policy(name).start(Problem(np.eye(3), 20))


@pytest.mark.parametrize(("setting", "value"), [("delta", 0.0), ("alpha", 1.0)])
def test_xy_adaptive_refuses_what_is_no_share(setting, value):
    with pytest.raises(InputError, match=setting):
        catalog.policy("xy-adaptive", **{setting: value})
