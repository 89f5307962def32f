"""Laws of rewards 0 and 1 read as log odds."""

import numpy as np
import pytest

from bestarm import bench, instances
from bestarm.bandits import Bandit, Bernoulli, Tape
from bestarm.bench.grid import Cell
from bestarm.bench.runner import world
from bestarm.bench.worlds import instance
from bestarm.core import Tally
from bestarm.linalg import Candidates
from bestarm.models.glm import GLM
from bestarm.models.law import Logistic
from bestarm.playing import play
from bestarm.policies.auto import Auto
from bestarm.simulate.policies import PolicyRef
from bestarm.structures.hypotheses import KINDS, Scaling, structures
from bestarm.structures.odds import Odds, binary, read


@pytest.fixture
def known(rng):
    counts = np.array([30.0, 12.0, 25.0, 40.0, 18.0, 9.0])
    wins = rng.binomial(counts.astype(int), 0.4).astype(float)
    return Tally(counts, wins, wins)


def test_least_squares_around_the_logistic_fit_is_the_logistic_fit(known, rng):
    x = rng.standard_normal((6, 2))
    fit = GLM(Logistic()).fit(Candidates.of(x), known)
    seen = Odds.around(fit.mean, known.counts, np.asarray(True)).tally(known)
    theta = np.linalg.solve((x.T * seen.counts) @ x, x.T @ seen.sums)
    np.testing.assert_allclose(1 / (1 + np.exp(-x @ theta)), fit.mean, atol=1e-6)


def test_wins_and_losses_are_mirror_images(known, rng):
    chance = rng.uniform(0.05, 0.95, 6)
    wins = Odds.around(chance, known.counts, np.asarray(True)).tally(known)
    lost = known.counts - known.sums
    losses = Odds.around(1 - chance, known.counts, np.asarray(True)).tally(Tally(known.counts, lost, lost))
    np.testing.assert_allclose(wins.counts, losses.counts)
    np.testing.assert_allclose(wins.sums, -losses.sums)
    np.testing.assert_allclose(wins.squares, losses.squares)


def test_as_many_pulls_are_counted_as_there_are_and_they_scatter_as_their_noise_says(rng):
    counts, chance = np.array([4000.0, 9000.0, 0.0, 2000.0]), np.array([0.05, 0.1, 0.5, 0.03])
    wins = rng.binomial(counts.astype(int), chance).astype(float)
    odds = Odds.around(chance, counts, np.asarray(True))
    seen = odds.tally(Tally(counts, wins, wins))
    np.testing.assert_allclose(seen.counts.sum(), counts.sum())
    np.testing.assert_allclose(seen.within.sum() / counts.sum(), odds.noise, rtol=0.1)


def test_losses_to_be_avoided_are_wins_less_one(rng):
    won = Tape.draw(instances.logistic(10, 3, replications=8, rng=rng), 80, rng)
    pulls = np.arange(won.sums.shape[-1])
    lost = Tape(won.features, won.sums - pulls, pulls - won.sums)  # rewards 1 and 0 less one are 0 and −1
    one, two = (play(Auto(), tape, 80, 3) for tape in (won, lost))
    np.testing.assert_array_equal(one.counts, two.counts)
    np.testing.assert_array_equal(one.arm, two.arm)


def test_other_rewards_are_read_as_they_are(known):
    chance = np.full((2, 6), 0.3)
    two = Tally(*(np.stack([a, a]) for a in (known.counts, known.sums, known.squares)))
    seen = Odds.around(chance, two.counts, np.array([True, False])).tally(two)
    np.testing.assert_allclose(seen.sums[1], known.sums)
    np.testing.assert_allclose(seen.squares[1], known.squares)
    assert not np.allclose(seen.sums[0], known.sums)


def test_what_is_binary_is_seen_in_the_squares():
    sums = np.array([[1.0, 2.0], [0.0, 3.0], [1.0, 2.0], [-1.0, 2.0], [-1.0, -2.0], [0.0, 0.0]])
    squares = np.array([[1.0, 2.0], [0.0, 3.0], [0.9, 2.0], [1.0, 2.0], [1.0, 2.0], [0.0, 0.0]])
    where, lost = binary(Tally(np.full((6, 2), 3.0), sums, squares))
    np.testing.assert_array_equal(where, [True, True, False, False, True, True])
    np.testing.assert_array_equal(lost, [False, False, False, False, True, False])


def test_means_are_chances_wherever_rewards_are_binary(known):
    chance = np.stack([known.sums / known.counts] * 3)
    where, lost = np.array([True, True, False]), np.array([False, True, False])
    odds = Odds.around(chance, np.stack([known.counts] * 3), where, lost)
    thought = np.log(chance / (1 - chance))
    np.testing.assert_allclose(odds.means(thought), [chance[0], chance[1] - 1, thought[2]])
    nearby = (odds.means(thought + 1e-6) - odds.means(thought - 1e-6)) / 2e-6
    np.testing.assert_allclose(odds.steepness(thought), nearby, rtol=1e-6)


def test_only_ones_or_only_zeros_are_borne(rng):
    made = structures(rng.standard_normal((5, 2)), 40, KINDS, Scaling())
    counts = np.array([3.0, 0.0, 2.0, 8.0, 1.0])
    for wins in (counts, 0 * counts):
        mixture, odds = read(made, KINDS, Tally(counts, wins, wins), 0.15, 3, 256)
        assert np.isfinite(mixture.marginals()[0]).all()
        assert (odds.share > 0).all()


@pytest.mark.parametrize("batch", [(), (3,), (2, 2)])
def test_arms_that_were_not_pulled_change_nothing_in_how_rewards_are_read(batch, rng):
    made = structures(rng.standard_normal((*batch, 40, 2)), 90, KINDS, Scaling())
    counts = rng.binomial(3, 0.3, (*batch, 40)).astype(float)
    wins = rng.binomial(counts.astype(int), 0.4).astype(float)
    every, some = (read(made, KINDS, Tally(counts, wins, wins), 0.15, 3, many) for many in (40, 10))
    np.testing.assert_allclose(some[0].weight, every[0].weight, rtol=1e-9)
    np.testing.assert_allclose(some[0].means(), every[0].means(), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(np.where(counts > 0, some[1].share, 0), np.where(counts > 0, every[1].share, 0))


@pytest.mark.parametrize("change", [lambda x: 1000 * x, lambda x: x + 100])
def test_units_of_the_features_do_not_matter_for_wins_and_losses_either(change, rng):
    bandit = instances.logistic(10, 3, replications=10, rng=rng)
    tape = Tape.draw(bandit, 80, rng)
    moved = Tape(change(tape.features), tape.sums, tape.squares)
    one, two = (play(Auto(), t, 80, 3) for t in (tape, moved))
    np.testing.assert_array_equal(one.counts, two.counts)


def test_steep_log_odds_are_no_reason_to_doubt_a_line(rng):
    levels = 1.0 - 2.0 * ((np.arange(32)[:, None] >> np.arange(5)) & 1)
    means = 1 / (1 + np.exp(-levels @ np.array([0.9, -0.8, 0.7, 0.6, -0.5])))
    run = play(Auto(), Bandit(np.stack([levels] * 40), np.stack([means] * 40), Bernoulli()), 600, 1)
    assert (run.arm == means.argmax()).mean() > 0.9
    assert np.mean(run.state.opinion.nonlinear) < 0.3


def test_benchmarks_give_auto_rewards_0_and_1_and_lower_them_for_linear_policies():
    cell = Cell(instance("glm", K=4, d=2), PolicyRef("auto"), 40)
    bandit, _ = world(cell, 1, 0, 3)
    rewards = {name: world(Cell(cell.instance, PolicyRef(name), 40), 1, 0, 3)[1] for name in ("auto", "top-two-lin")}
    np.testing.assert_allclose(rewards["auto"].bandit.means, bandit.means)
    np.testing.assert_allclose(rewards["top-two-lin"].bandit.means, bandit.means - 0.5)
    assert bench.run([cell], replications=5, rng=1, n_jobs=1).failures == {}
