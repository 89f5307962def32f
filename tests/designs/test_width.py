"""Widths of sets of arms: closed forms, an exact gradient, order, and how ρ and γ bound each other."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from bestarm import instances
from bestarm.designs.width import (
    GaussianWidth,
    WorstPair,
    expected_maximum,
    solve_where,
    width_and_gradient,
)
from bestarm.linalg import Candidates, moment

WIDTHS = [WorstPair(), GaussianWidth()]


def everyone(arms):
    return np.arange(arms), np.array(arms)


def mean_of_maximum(d):
    return quad(lambda t: t * d * norm.pdf(t) * norm.cdf(t) ** (d - 1), -10, 10)[0]


def test_the_gradient_is_that_of_finite_differences(rng):
    x = Candidates.of(rng.standard_normal((9, 4))).coordinates
    weights, order, noise = rng.dirichlet(np.ones(9)), rng.permutation(9), rng.standard_normal((40, 4))
    within = np.arange(9) < 6
    value, gradient = width_and_gradient(x, weights, order, within, noise)

    def at(w):
        return expected_maximum(x, w, order, within, noise)

    numeric = [(at(weights + 1e-6 * e) - at(weights - 1e-6 * e)) / 2e-6 for e in np.eye(9)]
    np.testing.assert_allclose(gradient, numeric, atol=1e-7)
    assert value == pytest.approx(at(weights))
    assert weights @ gradient == pytest.approx(-value / 2)  # twice the weights, width less by a factor √2


def test_any_root_of_the_inverse_has_the_same_width(rng):
    features = rng.standard_normal((8, 3))
    arms, weights = Candidates.of(features), np.full(8, 1 / 8)
    inverse = np.linalg.inv(moment(arms.coordinates, weights))
    values, vectors = np.linalg.eigh(inverse)
    root = vectors * np.sqrt(values) @ vectors.T
    noise = rng.standard_normal((200_000, 3))
    symmetric = np.ptp(arms.coordinates @ root @ noise.T, axis=0).mean() / 2
    ours = expected_maximum(arms.coordinates, weights, np.arange(8), np.ones(8, dtype=bool), noise)
    assert ours == pytest.approx(symmetric, rel=0.01)  # both have a standard error of 0.1 %


@pytest.mark.parametrize("d", [2, 5, 16])
def test_on_a_basis_the_design_is_uniform_and_the_width_known(d):
    arms = Candidates.of(np.eye(d))
    weights, rho = WorstPair().solve(arms, *everyone(d))
    np.testing.assert_allclose(weights, 1 / d, atol=1e-6)
    assert rho == pytest.approx(2 * d, rel=0.02)
    weights, gamma = GaussianWidth(steps=200, checks=20_000).solve(arms, *everyone(d))
    np.testing.assert_allclose(weights, 1 / d, atol=0.1 / d)
    assert gamma == pytest.approx(d * mean_of_maximum(d) ** 2, rel=0.03)


def test_two_arms_have_the_width_of_their_difference(rng):
    arms = Candidates.of(rng.standard_normal((6, 3)))
    order, two = rng.permutation(6), np.array(2)
    weights, gamma = GaussianWidth(checks=20_000).solve(arms, order, two)
    y = arms.coordinates[order[0]] - arms.coordinates[order[1]]
    norm2 = y @ np.linalg.inv(moment(arms.coordinates, weights)) @ y
    assert gamma == pytest.approx(norm2 / (2 * np.pi), rel=0.03)
    best, rho = WorstPair().solve(arms, order, two)
    assert rho == pytest.approx(y @ np.linalg.inv(moment(arms.coordinates, best)) @ y)
    assert norm2 <= 1.05 * rho  # the mirror descent finds the optimum of the other solver


@pytest.mark.parametrize("width", WIDTHS, ids=lambda w: type(w).__name__)
def test_a_single_arm_has_no_width(width, rng):
    arms = Candidates.of(rng.standard_normal((5, 2)))
    weights, value = width.solve(arms, np.arange(5), np.array(1))
    assert value == pytest.approx(0, abs=1e-20)
    assert weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("width", WIDTHS, ids=lambda w: type(w).__name__)
def test_more_arms_are_never_easier(width, rng):
    arms = Candidates.of(rng.standard_normal((12, 4)))
    order = rng.permutation(12)
    values = [float(width.solve(arms, order, np.array(k))[1]) for k in range(1, 13)]
    assert all(b >= a * (1 - 0.03) for a, b in pairwise(values))


@pytest.mark.parametrize("width", WIDTHS, ids=lambda w: type(w).__name__)
def test_duplicates_add_no_width(width, rng):
    features = rng.standard_normal((5, 3))
    once, twice = Candidates.of(features), Candidates.of(np.concatenate([features, features]))
    a, b = (float(width.solve(c, *everyone(len(c.features)))[1]) for c in (once, twice))
    assert a == pytest.approx(b, rel=0.1)


def test_each_width_bounds_the_other(rng):
    """At one design: (2/π) ρ ≤ γ over differences ≤ 4 ρ ln N, and γ over differences is four times γ."""
    for _ in range(5):
        arms = Candidates.of(rng.standard_normal((10, 4)))
        weights, rho = WorstPair().solve(arms, *everyone(10))
        noise = rng.standard_normal((20_000, 4))
        half = expected_maximum(arms.coordinates, weights, np.arange(10), np.ones(10, dtype=bool), noise)
        assert 2 / np.pi * rho * 0.97 <= 4 * half**2 <= 4 * rho * np.log(10) * 1.03


@pytest.mark.parametrize("width", WIDTHS, ids=lambda w: type(w).__name__)
def test_only_the_replications_marked_are_solved(width, rng):
    arms = Candidates.of(rng.standard_normal((4, 6, 3)))
    order = np.argsort(rng.random((4, 6)), axis=-1)
    length, marked = np.array([6, 4, 3, 2]), np.array([True, False, True, True])
    weights, values = solve_where(width, arms, order, length, marked)
    assert values[1] == 0
    assert not weights[1].any()
    for row in np.nonzero(marked)[0]:
        alone = Candidates(arms.features[row], arms.coordinates[row])
        w, value = width.solve(alone, order[row], length[row])
        np.testing.assert_array_equal(weights[row], w)
        assert values[row] == value


@pytest.mark.parametrize("kind", ["basis of 4", "basis of 16", "soare", "sphere", "normal", "line", "many"])
def test_the_gaussian_width_is_that_of_its_design(kind, rng):
    """Within 2 % of what a hundred thousand draws say, which have 0.3 % themselves."""
    sphere = rng.standard_normal((32, 10))
    features = {
        "basis of 4": np.eye(4),
        "basis of 16": np.eye(16),
        "soare": instances.adaptive(8).features,
        "sphere": sphere / np.linalg.norm(sphere, axis=1, keepdims=True),
        "normal": rng.standard_normal((12, 3)),
        "line": np.column_stack([np.ones(9), np.linspace(-1, 1, 9)]),
        "many": rng.standard_normal((50, 5)),
    }[kind]
    arms = Candidates.of(features)
    order, length = everyone(len(features))
    weights, gamma = GaussianWidth().solve(arms, order, length)
    draws = rng.standard_normal((100_000, arms.coordinates.shape[-1]))
    truth = expected_maximum(arms.coordinates, weights, order, order >= 0, draws) ** 2
    assert gamma == pytest.approx(truth, rel=0.02)
