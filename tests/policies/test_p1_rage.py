"""P1-RAGE: the design it draws from, an unbiased estimate, blocks, corner cases."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestarm import instances
from bestarm.bandits import Bandit, Gaussian, Tape
from bestarm.core import Problem, Pulls, Totals
from bestarm.designs.ascent import Ascent
from bestarm.designs.transductive import Transductive
from bestarm.errors import InputError
from bestarm.linalg import Candidates, matvec
from bestarm.playing import play
from bestarm.policies.p1_rage import P1Rage, blocks
from tests.conftest import AWKWARD, RowOf

RAGE = P1Rage()


@given(first=st.integers(1, 50), budget=st.integers(1, 10_000), growth=st.floats(1.01, 5))
def test_blocks_spend_the_budget_and_grow(first, budget, growth):
    sizes = blocks(first, budget, growth)
    assert sum(sizes) == budget
    assert min(sizes) >= 1
    done = np.cumsum(sizes)
    assert (done[1:-1] >= done[:-2] * growth - 1e-6).all()
    assert (done[1:] <= done[:-1] * growth + 1).all()


def test_the_first_design_is_half_g_and_half_xy(rng):
    features = rng.standard_normal((8, 3))
    arms = Candidates.of(features)
    state = RAGE.start(Problem(features, 100))
    half = Ascent().weights(arms) / 2 + Transductive(tolerance=0.1).weights(arms, np.arange(8)) / 2
    np.testing.assert_allclose(state.weights, half, atol=1e-12)


def test_later_designs_average_the_levels_of_a_virtual_elimination(rng):
    features = rng.standard_normal((8, 3))
    arms = Candidates.of(features)
    state = RAGE.start(Problem(features, 1000))
    pulls = RAGE.ask(state, rng)
    counts = pulls.times.astype(float)
    state = RAGE.tell(state, pulls, Totals(counts * features[pulls.arms, 0], counts))
    score = arms.coordinates @ state.estimates
    gap = score.max() - score
    order = np.argsort(-score)
    designs = []
    for level in range(RAGE.levels):
        size = int((gap <= gap.max() * 2.0**-level).sum())
        if size > 1:
            padded = np.where(np.arange(8) < size, order, order[0])[: 2 ** (size - 1).bit_length()]
            designs.append(Transductive(tolerance=0.1).weights(arms, padded))
    assert len(designs) > 1
    half = Ascent().weights(arms) / 2 + np.mean(designs, axis=0) / 2
    np.testing.assert_allclose(state.weights, half, atol=1e-12)


def test_pulls_are_drawn_from_the_design(rng):
    features = np.broadcast_to(rng.standard_normal((6, 2)), (4000, 6, 2))
    state = RAGE.start(Problem(features, 4))
    pulls = RAGE.ask(state, rng)
    drawn = np.zeros((4000, 6))
    np.put_along_axis(drawn, pulls.arms, pulls.times, axis=-1)
    assert (drawn.sum(axis=-1) == 4).all()
    weights = state.weights[0]
    error = np.sqrt(weights * (1 - weights) / 16_000)
    assert (np.abs(drawn.mean(axis=0) / 4 - weights) < 5.5 * error + 1e-9).all()


def test_the_estimate_is_unbiased_whatever_the_design_was(rng):
    """Averaged over many runs, the estimate of every mean is that mean, though designs follow the data."""
    features = rng.standard_normal((7, 3))
    means = features @ np.array([1.0, -0.5, 0.2])
    stack = np.broadcast_to(features, (4000, 7, 3))
    run = play(RAGE, Bandit(stack, np.broadcast_to(means, (4000, 7)), Gaussian(0.5)), 60, rng)
    estimate = matvec(run.state.candidates.coordinates, run.state.estimates) / 60
    error = estimate.std(axis=0) / np.sqrt(4000)
    assert (np.abs(estimate.mean(axis=0) - means) < 5.5 * error).all()


@pytest.mark.parametrize("kind", AWKWARD)
def test_awkward_problems_spend_the_budget(kind, rng):
    features = AWKWARD[kind](rng)
    bandit = Bandit(features, features.sum(axis=-1), Gaussian(1.0))
    for budget in (1, 2, 7, 30):
        run = play(RAGE, bandit, budget, rng)
        assert run.counts.sum() == (budget if len(features) > 1 else 0)
        assert 0 <= int(run.arm) < len(features)


def test_replications_do_not_see_each_other(rng):
    features = rng.standard_normal((4, 9, 3))
    tape = Tape.draw(Bandit(features, features[..., 0], Gaussian(1.0)), 120, rng)
    together = drive(tape, np.random.default_rng(4))
    for row in range(4):
        alone = Tape(tape.features[row], tape.sums[row], tape.squares[row], tape.noise_variance)
        single = drive(alone, RowOf(np.random.default_rng(4), 4, row))
        np.testing.assert_array_equal(single.estimates, together.estimates[row])


def drive(tape, rng):
    state = RAGE.start(Problem(tape.features, 120, tape.noise_variance))
    taken = np.zeros(tape.features.shape[:-1], dtype=np.int64)
    while (pulls := RAGE.ask(state, rng)) is not None:
        state = RAGE.tell(state, pulls, tape.pull(pulls, taken))
        add = np.zeros_like(taken)
        np.put_along_axis(add, pulls.arms, pulls.times, axis=-1)
        taken = taken + add
    return state


def test_telling_more_than_was_planned_is_refused():
    run = play(RAGE, instances.corner(5, rng=1), 30, 1)
    with pytest.raises(InputError, match="nothing left"):
        RAGE.tell(run.state, Pulls(np.array([0]), np.array([1])), Totals(np.zeros(1), np.zeros(1)))
