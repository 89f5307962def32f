"""Laws of an arm that may be apart: pulls tell by Bayes' rule, and nothing is gained where nothing is open."""

import numpy as np
import pytest
from scipy.stats import norm

from bestarm.policies.opinion import Lone
from bestarm.structures.apart import Alone, normal

ONE = np.asarray(2)  # the arm that is pulled


@pytest.fixture
def lone(rng):
    """Two hypotheses of four arms."""
    chance = np.array([[0.1, 0.3, 0.2, 0.05], [0.6, 0.02, 0.1, 0.25]])
    return Lone.of(Alone(chance, rng.normal(0, 1, (2, 4)), rng.normal(1, 0.5, (2, 4)), rng.uniform(0.1, 0.5, (2, 4))))


def gain(lone, pulls=1.0, weight=(0.4, 0.6), best=1.0, noise=(0.8, 1.3)):
    return lone.gain(np.array(weight), np.asarray(best), np.array(noise), np.broadcast_to(pulls, (4,)))


def by_quadrature(lone, g, times, mean, noise):
    """Chances of all arms given the mean of some pulls of one, and mean of what it has: b > 0 on a fine grid."""
    m0, b, s = (part[g, ONE] for part in (lone.without, lone.mean, np.sqrt(lone.variance)))
    grid = np.linspace(0, b + 12 * s, 400_001)
    prior = norm.pdf(grid, b, s) / norm.sf(0, b, s)
    seen = norm.pdf(mean, m0 + grid, np.sqrt(noise / times))
    step = grid[1]
    apart, ordinary = np.sum(prior * seen) * step, norm.pdf(mean, m0, np.sqrt(noise / times))
    likelihood = np.where(np.arange(4) == ONE, apart, ordinary)
    nobody = (1 - lone.chance[g].sum()) * ordinary
    chance = lone.chance[g] * likelihood
    return chance / (chance.sum() + nobody), np.sum(grid * prior * seen) / np.sum(prior * seen)


@pytest.mark.parametrize("times", [1.0, 3.0])
@pytest.mark.parametrize("mean", [-1.5, 0.2, 1.0, 4.0])
def test_a_pull_tells_by_the_rule_of_bayes(times, mean, lone):
    noise = np.array([0.8, 1.3])
    after = lone.after(ONE, np.asarray(times), np.asarray(times * mean), noise)
    for g in range(2):
        chance, own = by_quadrature(lone, g, times, mean, noise[g])
        np.testing.assert_allclose(after.chance[g], chance, atol=2e-3)  # `normal` is right to three digits
        b, s = after.mean[g, ONE], np.sqrt(after.variance[g, ONE])
        assert b + s * norm.pdf(b / s) / norm.cdf(b / s) == pytest.approx(own, rel=1e-4)  # truncated at 0
    others = np.arange(4) != ONE
    for part in ("mean", "variance", "without"):
        np.testing.assert_array_equal(getattr(after, part)[:, others], getattr(lone, part)[:, others])
    np.testing.assert_array_equal(after.without, lone.without)
    np.testing.assert_array_equal(after.planned, lone.planned)


def test_the_ratio_is_that_of_normals_times_that_of_the_truncations(lone):
    times, mean, noise = 2.0, 1.7, np.array([0.8, 1.3])
    after = lone.after(ONE, np.asarray(times), np.asarray(times * mean), noise)
    p, m0, b, v = (part[:, ONE] for part in (lone.chance, lone.without, lone.mean, lone.variance))
    scatter = noise / times
    more = v / (v + scatter) * (mean - m0 - b)
    r = norm.pdf(mean, m0 + b, np.sqrt(v + scatter)) / norm.pdf(mean, m0, np.sqrt(scatter))
    r = r * normal((b + more) / np.sqrt(v * scatter / (v + scatter))) / normal(b / np.sqrt(v))
    np.testing.assert_allclose(after.chance[:, ONE], p * r / (1 - p + p * r), rtol=1e-10)
    np.testing.assert_allclose(after.mean[:, ONE], b + more, rtol=1e-10)
    np.testing.assert_allclose(after.variance[:, ONE], v * scatter / (v + scatter), rtol=1e-10)


def test_pulls_one_by_one_tell_what_they_tell_together(lone, rng):
    noise, rewards = np.array([0.8, 1.3]), rng.normal(1, 1, 5)
    step = lone
    for one in rewards:
        step = step.after(ONE, np.asarray(1.0), np.asarray(one), noise)
    whole = lone.after(ONE, np.asarray(5.0), rewards.sum(), noise)
    # one at a time, scatter about their mean cancels in the odds
    np.testing.assert_allclose(step.chance, whole.chance, rtol=1e-8)
    np.testing.assert_allclose(step.mean, whole.mean, rtol=1e-8)
    np.testing.assert_allclose(step.variance, whole.variance, rtol=1e-8)


@pytest.mark.parametrize("rewards", [[-1e9] * 5, [1e9] * 5, [1e9, -1e9], [40.0, -40.0, 40.0], [1e9, -1e9, 1e9]])
def test_a_chance_stays_one_whatever_is_seen(rewards, lone):
    lone = Lone(lone.chance / lone.chance.sum(-1, keepdims=True), *list(vars(lone).values())[1:])  # it is one of these
    for reward in rewards:
        lone = lone.after(ONE, np.asarray(1.0), np.asarray(reward), np.array([0.8, 1.3]))
        np.testing.assert_allclose(lone.chance.sum(axis=-1), 1, rtol=1e-9)
    assert (lone.chance >= 0).all()
    assert (lone.chance.sum(axis=-1) <= 1 + 1e-12).all()
    assert np.isfinite(gain(lone)).all()


def test_pulls_that_are_planned_leave_less_to_gain_of_that_arm_only(lone):
    planned = lone.after(ONE, np.asarray(3.0), None, np.array([0.8, 1.3]))
    less, before = gain(planned), gain(lone)
    assert 0 < less[ONE] < before[ONE]
    others = np.arange(4) != ONE
    np.testing.assert_array_equal(less[others], before[others])
    np.testing.assert_array_equal(planned.chance, lone.chance)


def test_planned_in_two_parts_the_gain_is_the_same_in_all(lone):
    for c in (0.5, 1.0, 7.0):
        half = lone.after(ONE, np.asarray(c), None, np.array([0.8, 1.3]))
        in_parts = gain(lone, c)[ONE] + gain(half, c)[ONE]
        assert in_parts == pytest.approx(gain(lone, 2 * c)[ONE], rel=1e-12)


def test_of_what_is_certain_nothing_is_gained(lone):
    for chance in (0.0, 1.0):
        sure = Lone.of(Alone(np.full((2, 4), chance), lone.without, lone.mean, lone.variance))
        np.testing.assert_array_equal(gain(sure), 0)
    assert (gain(lone) > 0).all()


def test_the_gain_is_what_the_equation_says(lone):
    w, L, noise, c = np.array([0.4, 0.6]), 1.0, np.array([0.8, 1.3]), 3.0
    p, m0, b, v = lone.chance, lone.without, lone.mean, lone.variance
    size = b**2 + v
    by_hand = 4 * p * (1 - p) * norm.cdf((m0 + b - L) / np.sqrt(v)) * size / (size + noise[:, None] / c)  # Eq. 14
    np.testing.assert_allclose(gain(lone, c), w @ by_hand, atol=5e-4)
