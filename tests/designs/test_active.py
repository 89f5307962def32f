"""Laws of designs over big tables: the certificate, invariance, hard tables, costs, refusals."""

import numpy as np
import pytest

from bestarm import spec
from bestarm.designs import newton
from bestarm.designs.active import optimal_design
from bestarm.designs.ascent import Ascent, certificate
from bestarm.designs.span import distinct
from bestarm.errors import ArmsError, InputError
from bestarm.linalg import Candidates
from bestarm.tables import open_source


def sphere(rng, K, d):
    x = rng.standard_normal((K, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def legendre(rng, K, d):
    return np.polynomial.legendre.legvander(rng.permutation(np.linspace(-1, 1, K)), d - 1)


TABLES = {
    "gaussian": lambda rng: rng.standard_normal((20_000, 7)),
    "sphere": lambda rng: sphere(rng, 20_000, 7),
    "cube vertices": lambda rng: rng.choice([-1.0, 1.0], (20_000, 7)),
    "a dense curve": lambda rng: legendre(rng, 20_000, 6),
    "heavy tails": lambda rng: rng.standard_cauchy((20_000, 5)),
    "very heavy tails": lambda rng: rng.standard_cauchy((20_000, 5)) ** 3,
    "duplicated": lambda rng: np.repeat(rng.standard_normal((30, 4)), 1000, axis=0),
    "all equal": lambda rng: np.ones((30_000, 4)) * np.array([1.0, 3.0, 0.1, 7.0]),
    "nearly all zero": lambda rng: np.concatenate([np.zeros((50_000, 4)), rng.standard_normal((7, 4))]),
    "ordered by norm": lambda rng: np.sort(np.abs(rng.standard_normal((30_000, 3))), axis=0),
    "one hot": lambda rng: np.eye(12)[np.minimum(rng.zipf(1.5, 20_000), 12) - 1],
    "rank deficient": lambda rng: rng.standard_normal((9_000, 3)) @ rng.standard_normal((3, 8)),
    "a zero column": lambda rng: rng.standard_normal((9_000, 4)) * np.array([1.0, 0.0, 1.0, 1.0]),
    "columns from 1e-8 to 1e8": lambda rng: rng.standard_normal((9_000, 5)) * np.logspace(-8, 8, 5),
    "squares overflow": lambda rng: rng.standard_normal((5_000, 3)) * np.array([1e-170, 1.0, 1e170]),
    "monomials": lambda rng: np.vander(rng.random(9_000), 9),
    "one column": lambda rng: rng.standard_normal((9_000, 1)),
    "one row": lambda rng: rng.standard_normal((1, 4)),
    "fewer rows than columns": lambda rng: rng.standard_normal((3, 9)),
    "as many rows": lambda rng: np.eye(6),
    "whole numbers": lambda rng: rng.integers(-3, 4, (9_000, 4)),
    "yes and no": lambda rng: rng.random((9_000, 4)) < 0.3,
    "float32, nearly collinear": lambda rng: (rng.random((9_000, 1)) + 0.002 * rng.random((9_000, 5))).astype(
        np.float32
    ),
    "float32": lambda rng: rng.standard_normal((9_000, 6)).astype(np.float32),
}


def rare(rng):
    """Directions that one row in a hundred thousand has: a sample does not span the space."""
    x = np.concatenate([rng.standard_normal((100_000, 4)), np.zeros((100_000, 4))], axis=1)
    x[17, 4], x[90_001, 5], x[90_002, 6], x[500:503, 7] = 1.0, 1e-3, 1e3, (1.0, 2.0, -1.5)
    return x


def exact(table, found):
    """Return max g / r of a design over all rows, from a QR factorisation of the table."""
    x = np.asarray(table, dtype=np.float64)
    peaks = np.abs(x).max(axis=0)
    x = x / np.where(peaks > 0, peaks, 1.0)
    basis = np.linalg.svd(x / np.linalg.norm(x, axis=0).clip(1e-300), full_matrices=False)[0][:, : found.rank]
    weights = np.zeros(len(x))
    weights[found.rows] = found.weights
    return float(certificate(basis, weights))


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6])
@pytest.mark.parametrize("name", TABLES)
def test_certificate_is_what_the_weights_give(name, tolerance, rng):
    table = TABLES[name](rng)
    found = optimal_design(open_source(table), tolerance)
    assert found.reached
    assert 1 - 1e-9 <= found.certificate <= 1 + tolerance
    assert exact(table, found) == pytest.approx(found.certificate, rel=1e-7)
    assert (found.weights > 0).all()
    assert found.weights.sum() == pytest.approx(1)
    assert (np.diff(found.rows) > 0).all()
    assert found.leverage_passes <= 8
    np.testing.assert_array_equal(found.features, np.asarray(table[found.rows], dtype=np.float64))


def test_rare_directions_are_found(rng):
    table = rare(rng)
    found = optimal_design(open_source(table))
    assert found.reached
    assert found.rank == 8
    assert {17, 90_001, 90_002} <= set(found.rows.tolist())
    assert exact(table, found) == pytest.approx(found.certificate, rel=1e-9)


@pytest.mark.parametrize("name", ["gaussian", "sphere", "cube vertices", "a dense curve", "duplicated"])
def test_agrees_with_wolfe_atwood(name, rng):
    table = TABLES[name](rng)[::15]
    found = optimal_design(open_source(table), 1e-4)
    weights = Ascent(tolerance=1e-4).weights(Candidates.of(table))
    theirs = (table * weights[:, None]).T @ table
    gap = np.linalg.slogdet(found.information)[1] - np.linalg.slogdet(theirs)[1]
    # log det V of a design with max g = (1 + ε) d is within d log(1 + ε) of the best
    assert abs(gap) <= found.rank * 1e-4


def test_invertible_columns_change_nothing(rng):
    table, mixing = rng.standard_normal((5000, 5)), rng.standard_normal((5, 5)) * np.logspace(-4, 4, 5)
    one, other = (optimal_design(open_source(x), 1e-7) for x in (table, table @ mixing))
    shift = 2 * np.linalg.slogdet(mixing)[1]
    logs = [np.linalg.slogdet(found.information)[1] for found in (one, other)]
    assert logs[1] - logs[0] == pytest.approx(shift, abs=1e-5)
    np.testing.assert_allclose(mixing.T @ one.information @ mixing, other.information, rtol=1e-3)


def test_order_of_rows_changes_nothing(rng):
    table, order = rng.standard_normal((5000, 5)), rng.permutation(5000)
    one, other = (optimal_design(open_source(x), 1e-8) for x in (table, table[order]))
    np.testing.assert_allclose(one.information, other.information, atol=1e-4)
    heavy = set(one.rows[one.weights > 1e-3].tolist())
    assert heavy <= set(order[other.rows].tolist())


def test_duplicates_change_nothing_but_the_name(rng):
    table = rng.standard_normal((200, 4))
    signs = rng.choice([-1.0, 1.0], (200 * 500, 1))
    one, other = (optimal_design(open_source(x), 1e-8) for x in (table, np.repeat(table, 500, axis=0) * signs))
    np.testing.assert_allclose(one.information, other.information, atol=1e-4)
    assert len(set((other.rows // 500).tolist())) == len(other.rows)


def test_distinct_rows_up_to_sign():
    x = np.array([[0.0, 1.0], [-0.0, -1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 2.0]])
    assert distinct(x).tolist() == [0, 2, 4]


def test_known_optima():
    quadratic = np.vander(np.linspace(-1, 1, 201), 3)
    found = optimal_design(open_source(quadratic), 1e-8)
    heavy = found.weights > 1e-3
    assert found.rows[heavy].tolist() == [0, 100, 200]
    np.testing.assert_allclose(found.weights[heavy], 1 / 3, atol=1e-4)
    basis = optimal_design(open_source(np.concatenate([np.eye(5), 0.1 * np.ones((3, 5))])), 1e-9)
    np.testing.assert_allclose(basis.weights, 0.2, atol=1e-8)


def test_costs_are_rows_over_roots(rng):
    table, costs = rng.standard_normal((4000, 4)), rng.uniform(0.5, 5.0, 4000)
    found = optimal_design(open_source(table), 1e-6, costs=costs)
    plain = optimal_design(open_source(table / np.sqrt(costs)[:, None]), 1e-6)
    np.testing.assert_array_equal(found.rows, plain.rows)
    np.testing.assert_allclose(found.weights, plain.weights, rtol=1e-6)
    np.testing.assert_allclose(found.features, table[found.rows], rtol=1e-12)
    np.testing.assert_allclose(found.pulls, found.weights / found.costs / (found.weights / found.costs).sum())
    np.testing.assert_allclose(plain.pulls, plain.weights, rtol=1e-14)


def test_cost_of_a_dear_row():
    """Along three axes money is split evenly, so pulls four times as dear are made a quarter as often."""
    found = optimal_design(open_source(np.eye(3)), 1e-9, costs=[1.0, 1.0, 4.0])
    np.testing.assert_allclose(found.weights, 1 / 3, atol=1e-8)
    np.testing.assert_allclose(found.pulls, [4 / 9, 4 / 9, 1 / 9], atol=1e-8)


def test_float32_is_certified_in_float64(rng):
    found = optimal_design(open_source(rng.standard_normal((9000, 6)).astype(np.float32)))
    assert [one.purpose for one in found.trace].count("leverages") == found.leverage_passes
    assert found.trace[-1].certificate == found.certificate


def test_blocks_change_nothing(rng):
    table = rng.standard_normal((3001, 4))
    answers = [optimal_design(open_source(table, block_rows=rows), 1e-8) for rows in (1, 7, 1000, 5000)]
    for found in answers[1:]:
        np.testing.assert_allclose(found.information, answers[0].information, atol=1e-4)


def test_progress_is_told(rng):
    told = []
    found = optimal_design(
        open_source(rng.standard_normal((5000, 3)), block_rows=1000), progress=lambda *now: told.append(now)
    )
    assert [now[0] for now in told if now[1] == 5000] == list(range(1, found.passes + 1))
    assert all(now[2] == 5000 for now in told)
    assert np.isinf(told[0][3])
    assert told[-1][3] < np.inf


def test_a_limit_returns_the_best_so_far(rng):
    found = optimal_design(open_source(rng.standard_normal((200_000, 8))), 1e-12, limit=1)
    assert not found.reached
    assert found.certificate > 1


def test_a_limit_certifies_float32_all_the_same(rng):
    table = rng.standard_normal((50_000, 5)).astype(np.float32)
    found = optimal_design(open_source(table), limit=1)
    assert not found.reached
    assert exact(table, found) == pytest.approx(found.certificate, rel=1e-10)


def test_as_weights_of_a_stack(rng):
    stack = rng.standard_normal((2, 3, 40, 4))
    stack[1, 2] = 0.0
    stack[0, 1] *= np.array([1.0, 0.0, 1.0, 1.0])
    candidates = Candidates.of(stack)
    weights = spec.from_dict({"part": "ActiveSet", "tolerance": 1e-4}).weights(candidates)
    assert weights.shape == (2, 3, 40)
    np.testing.assert_allclose(weights.sum(axis=-1), 1)
    np.testing.assert_allclose(weights[1, 2], 1 / 40)
    for one, w in zip(candidates.coordinates.reshape(-1, 40, 4)[:5], weights.reshape(-1, 40)[:5], strict=True):
        assert 1 - 1e-9 <= float(certificate(one, w)) <= 1 + 1e-4


def improved(x, tolerance):
    ascent = Ascent(newton.Newton(), tolerance=tolerance)
    return ascent.improve(x, np.full(len(x), 1 / len(x)), np.array(float(x.shape[1])))


def test_newton_reaches_any_tolerance(rng):
    x = rng.standard_normal((3000, 6))
    for tolerance in (1e-2, 1e-5, 1e-10):
        weights = improved(x, tolerance)
        root = newton.factor(x, weights, 6)
        assert newton.leverages(x, root).max() <= (1 + tolerance) * 6


def test_conjugate_gradients_equal_the_factorisation(rng, monkeypatch):
    x = rng.standard_normal((400, 5))
    one = improved(x, 1e-9)
    monkeypatch.setattr(newton, "DIRECT", 0)
    other = improved(x, 1e-9)
    np.testing.assert_allclose((x * one[:, None]).T @ x, (x * other[:, None]).T @ x, atol=1e-6)


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (np.zeros((10, 3)), {}, "all others are zero"),
        (np.eye(3) * [1.0, 1e-310, 1.0], {}, "column 'x2': expected numbers beyond 1e-290, found 5.8e-311"),
        (np.full((4, 1), 5e-324), {}, "column 'x1': expected numbers beyond 1e-290, found 4.9e-324; give them in"),
        (np.eye(3), {"tolerance": 0.0}, "tolerance must be a positive number; given 0.0"),
        (np.eye(3), {"costs": [1.0, 2.0]}, "3 numbers expected, one for each row"),
        (np.eye(3), {"costs": [1.0, -2.0, 1.0]}, "row 2: expected a positive cost, found -2.0"),
        (np.eye(3), {"costs": [1.0, 1.0, np.nan]}, "row 3: expected a positive cost, found nan"),
        (np.eye(3), {"costs": ["dear", "cheap", "free"]}, "costs: expected one number for each row"),
        (np.array([[1.0, 2.0], [3.0, np.inf]]), {}, "row 2, column 'x2': expected a finite number, found inf"),
    ],
)
def test_refusals(table, options, message):
    with pytest.raises(InputError, match=message):
        optimal_design(open_source(table), **options)


def test_a_row_that_is_not_finite_is_named_among_many(rng):
    table = rng.standard_normal((50_000, 3))
    table[31_415, 1] = np.nan
    with pytest.raises(ArmsError, match=r"row 31416, column 'x2': expected a finite number, found nan"):
        optimal_design(open_source(table))


def test_memory_too_small_for_a_design(rng):
    source = open_source(rng.standard_normal((1000, 50)), block_rows=16, memory=100_000)
    with pytest.raises(InputError, match=r"memory: 100000 bytes given; at least \d+ are needed to hold"):
        optimal_design(source)
