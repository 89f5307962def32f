"""Laws of optimal designs: Kiefer-Wolfowitz, known optima, updates that equal recomputation, invariance."""

import numpy as np
import pytest

from bestarm.designs.directions import EachArm, EachPair
from bestarm.designs.greedy import Greedy
from bestarm.designs.optimal import (
    KumarYildirim,
    Multiplicative,
    WolfeAtwood,
    certificate,
    harman_pronzato,
    kumar_yildirim,
)
from bestarm.designs.spread import Clustered, Forced, Uniform
from bestarm.designs.transductive import Transductive
from bestarm.designs.vertex import Fedorov, LineSearch, OpenLoop, VertexDirection, Wynn
from bestarm.linalg import Candidates, leverage, moment, rank, span_coordinates
from tests.conftest import AWKWARD


def sphere(rng, *shape):
    x = rng.standard_normal(shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def soare(dimension, omega=0.1):
    disturbing = np.zeros((1, dimension))
    disturbing[0, :2] = np.cos(omega), np.sin(omega)
    return np.concatenate([np.eye(dimension), disturbing])


SETS = [(12, 2), (30, 5), (60, 10), (200, 3), (16, 15)]


@pytest.mark.parametrize("start", [KumarYildirim(), Multiplicative()])
@pytest.mark.parametrize(("arms", "dimension"), SETS)
def test_kiefer_wolfowitz_gap_below_1e_6_on_20_random_sets(arms, dimension, start, rng):
    arms = Candidates.of(sphere(rng, 4, arms, dimension))
    weights = WolfeAtwood(1e-7, start).weights(arms)
    gap = certificate(arms.coordinates, weights) - 1
    assert (gap < 1e-6).all()
    assert (gap > -1e-9).all()
    np.testing.assert_allclose(weights.sum(-1), 1)
    assert (weights >= 0).all()


def test_both_starts_lead_to_the_same_information(rng):
    arms = Candidates.of(sphere(rng, 10, 40, 6))
    first, second = (
        moment(arms.coordinates, WolfeAtwood(1e-9, s).weights(arms)) for s in (KumarYildirim(), Multiplicative())
    )
    np.testing.assert_allclose(first, second, atol=1e-5)


@pytest.mark.parametrize("design", [WolfeAtwood(1e-8), VertexDirection(Fedorov(), 20_000, 1e-3)])
def test_known_optima(design):
    tolerance = 2e-3
    basis = Candidates.of(np.eye(5))
    np.testing.assert_allclose(design.weights(basis), 1 / 5, atol=tolerance)
    grid = np.linspace(-1, 1, 201)
    quadratic = design.weights(Candidates.of(np.stack([np.ones(201), grid, grid**2], axis=-1)))
    for middle in (0, 100, 200):
        assert quadratic[max(0, middle - 3) : middle + 4].sum() == pytest.approx(1 / 3, abs=0.01)
    cube = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T
    cubic = Candidates.of(cube)
    assert certificate(cubic.coordinates, design.weights(cubic)) == pytest.approx(1, abs=tolerance)
    disturbed = Candidates.of(soare(6))
    assert certificate(disturbed.coordinates, design.weights(disturbed)) == pytest.approx(1, abs=tolerance)
    line = design.weights(Candidates.of(np.array([[1.0], [-3.0], [2.0]])))
    np.testing.assert_array_equal(line, [0, 1, 0])


def test_a_disturbing_arm_gets_no_weight():
    np.testing.assert_allclose(WolfeAtwood(1e-8).weights(Candidates.of(soare(6))), [1 / 6] * 6 + [0], atol=1e-6)


def randomised_exchange(x, rng, rounds=300):
    """Another way to the D-optimum, as an oracle: pairwise exchanges in random order (Harman, Filova, Richtarik)."""
    arms, d = x.shape
    w = np.full(arms, 1 / arms)
    for _ in range(rounds):
        g = leverage(x, np.linalg.inv(moment(x, w)))
        if g.max() < (1 + 1e-9) * d:
            break
        for k in rng.permutation(np.flatnonzero(w > 0)):
            for m in rng.permutation(np.argsort(g)[-4 * d :]):
                inverse = np.linalg.inv(moment(x, w))
                gk, gm, gkm = (a @ inverse @ b for a, b in ((x[k], x[k]), (x[m], x[m]), (x[k], x[m])))
                below = 2 * (gk * gm - gkm**2)
                step = np.clip((gm - gk) / below, -w[m], w[k]) if below > 1e-12 else 0.0
                w[k], w[m] = w[k] - step, w[m] + step
    return w


def test_randomised_exchange_finds_the_same_information(rng):
    for arms, dimension in ((10, 3), (14, 4)):
        x = span_coordinates(sphere(rng, arms, dimension))
        other = moment(x, randomised_exchange(x, rng))
        ours = moment(x, WolfeAtwood(1e-9).weights(Candidates(x, x)))
        np.testing.assert_allclose(ours, other, atol=1e-5)


def test_deletion_never_removes_a_support_point(rng):
    for trial in range(200):
        arms = Candidates.of(sphere(rng, 30, 4) if trial % 2 else rng.standard_normal((30, 4)))
        x = arms.coordinates
        supports = WolfeAtwood(1e-8).weights(arms) > 1e-4
        some = WolfeAtwood(float(rng.choice([1.0, 0.3, 0.1, 0.01]))).weights(arms)
        deleted = harman_pronzato(leverage(x, np.linalg.inv(moment(x, some))), rank(x))
        assert not (deleted & supports).any()


def test_interior_points_do_not_change_the_information(rng):
    outer = sphere(rng, 25, 4)
    inner = 0.5 * outer[:10] + 0.3 * outer[10:20]
    alone = Candidates.of(outer)
    both = Candidates.of(np.concatenate([outer, inner]))
    V, W = (c.features.T @ (c.features * WolfeAtwood(1e-10).weights(c)[:, None]) for c in (alone, both))
    np.testing.assert_allclose(V, W, atol=1e-6)


def test_leverages_weighted_by_the_design_sum_to_the_dimension(rng):
    x = span_coordinates(sphere(rng, 30, 7))
    w = rng.dirichlet(np.ones(30))
    assert (w * leverage(x, np.linalg.inv(moment(x, w)))).sum() == pytest.approx(7, abs=1e-10)


@pytest.mark.parametrize("design", [WolfeAtwood(1e-6), VertexDirection(Fedorov()), VertexDirection(LineSearch())])
def test_rank_one_updates_equal_recomputation(design, rng):
    arms = Candidates.of(sphere(rng, 3, 30, 5))
    x = arms.coordinates
    start = np.full((3, 30), 1 / 30)
    inverse = np.linalg.inv(moment(x, start))
    work = (start, x, inverse, leverage(x, inverse), rank(x))
    work = (*work, np.zeros(3)) if isinstance(design, VertexDirection) else work
    for t in range(90):
        work = design._advance(t, work, design._finished(work))
    recomputed = np.linalg.inv(moment(x, work[0]))
    np.testing.assert_allclose(work[2], recomputed, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(work[3], leverage(x, recomputed), rtol=1e-8)


def test_the_literal_frank_wolfe_stalls_on_the_papers_first_experiment():
    arms = Candidates.of(soare(10))
    literal = VertexDirection(LineSearch(), iterations=1000, tolerance=0.0).weights(arms)
    np.testing.assert_allclose(literal, 1 / 11, atol=1e-9)
    assert certificate(arms.coordinates, literal) == pytest.approx(1.1, abs=0.01)
    assert certificate(arms.coordinates, WolfeAtwood(1e-6).weights(arms)) < 1 + 1e-5


def test_the_literal_frank_wolfe_stops_short_on_the_sphere(rng):
    arms = Candidates.of(sphere(rng, 20, 64, 10))
    literal = certificate(arms.coordinates, VertexDirection(LineSearch(), 100, 0.0).weights(arms))
    assert literal.mean() > 1.1
    assert (certificate(arms.coordinates, WolfeAtwood(1e-2).weights(arms)) <= 1.01).all()


@pytest.mark.parametrize("step", [OpenLoop(), Wynn(), Fedorov()])
def test_the_other_steps_do_not_stall(step, rng):
    arms = Candidates.of(sphere(rng, 5, 40, 5))
    weights = VertexDirection(step, 3000, 2e-2).weights(arms)
    assert (certificate(arms.coordinates, weights) < 1.05).all()


def test_fedorov_steps_increase_the_determinant(rng):
    arms = Candidates.of(sphere(rng, 40, 5))
    logs = [
        np.linalg.slogdet(moment(arms.coordinates, VertexDirection(Fedorov(), n).weights(arms)))[1] for n in range(30)
    ]
    assert (np.diff(logs) >= -1e-12).all()


@pytest.mark.parametrize("kind", AWKWARD)
def test_the_start_of_kumar_and_yildirim_spans(kind, rng):
    x = span_coordinates(AWKWARD[kind](rng))
    w = kumar_yildirim(x)
    assert np.linalg.matrix_rank(x[w > 0], tol=1e-9) == np.linalg.matrix_rank(x, tol=1e-9)
    assert (w > 0).sum() == rank(x)


DESIGNS = [
    WolfeAtwood(),
    WolfeAtwood(start=Multiplicative()),
    VertexDirection(Fedorov()),
    VertexDirection(LineSearch(), 100),
    Transductive(),
]


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
def test_designs_do_not_depend_on_the_basis_or_scale_of_the_features(design, rng):
    x = rng.standard_normal((30, 4))
    mixed = x @ (rng.standard_normal((4, 4)) * np.array([1.0, 10.0, 1e3, 1e-2]))
    first, second = (design.weights(Candidates.of(f)) for f in (x, mixed))
    np.testing.assert_allclose(first, second, atol=1e-6)


@pytest.mark.parametrize("design", DESIGNS, ids=repr)
@pytest.mark.parametrize("kind", AWKWARD)
def test_designs_are_points_of_the_simplex_on_awkward_arms(design, kind, rng):
    w = design.weights(Candidates.of(AWKWARD[kind](rng)))
    assert w.sum() == pytest.approx(1)
    assert (w >= 0).all()


@pytest.mark.parametrize("directions", [EachArm(), EachPair()], ids=repr)
def test_greedy_spreads_evenly_over_a_basis(directions, rng):
    for pulls in (1, 7, 8, 40, 43):
        times = Greedy(directions).allocate(Candidates.of(np.eye(8)), pulls, rng)
        assert times.sum() == pulls
        assert times.max() - times.min() <= 1 + (directions == EachPair())


def test_greedy_equals_brute_force(rng):
    arms = Candidates.of(rng.standard_normal((7, 3)))
    x = arms.coordinates
    A = 1e-3 * 3 / 7 * np.eye(3)
    for pulls in range(1, 12):
        times = Greedy().allocate(arms, pulls, rng)
        before = Greedy().allocate(arms, pulls - 1, rng) if pulls > 1 else 0 * times
        V = A + x.T @ (x * before[:, None])
        worst = [max(y @ np.linalg.inv(V + np.outer(a, a)) @ y for y in x) for a in x]
        chosen = int(np.argmax(times - before))
        assert worst[chosen] == pytest.approx(min(worst), rel=1e-6)


def test_xy_measures_what_tells_two_close_arms_apart(rng):
    arms = Candidates.of(soare(2))
    times = Greedy(EachPair()).allocate(arms, 100, rng, targets=np.array([0, 2]))
    assert times[1] > 80
    weights = Transductive(tolerance=1e-3).weights(arms, targets=np.array([0, 2]))
    assert weights[1] == pytest.approx(np.sin(0.1) / (1 - np.cos(0.1) + np.sin(0.1)), abs=0.01)


def test_the_transductive_certificate_holds(rng):
    """No design does better than the lower bound the search ends with says: random ones certainly do not."""
    arms = Candidates.of(rng.standard_normal((12, 4)))

    def worst(w):
        y = EachPair().of(arms.coordinates)
        return leverage(y, np.linalg.inv(moment(arms.coordinates, w))).max()

    best = worst(Transductive(tolerance=1e-2).weights(arms))
    others = [worst(rng.dirichlet(np.ones(12))) for _ in range(300)] + [worst(WolfeAtwood().weights(arms))]
    assert best <= 1.01 * min(others)


def test_uniform_is_even_and_its_odd_pulls_are_random(rng):
    arms = Candidates.of(np.broadcast_to(np.eye(4), (4000, 4, 4)))
    times = Uniform().allocate(arms, 7, rng)
    assert (times.sum(-1) == 7).all()
    assert set(np.unique(times)) == {1, 2}
    # three of four arms are odd: each with probability 3/4; 5 standard errors, a chance of 1e-6
    assert np.abs((times == 2).mean(0) - 0.75).max() < 5 * np.sqrt(0.75 * 0.25 / 4000)


def test_clusters_share_the_budget_equally(rng):
    crowd = np.array([1.0, 0.0]) + 1e-3 * rng.standard_normal((20, 2))
    arms = Candidates.of(np.concatenate([crowd, [[0.0, 1.0]]]))
    times = Clustered(2).allocate(arms, 40, rng)
    assert times[-1] == 20
    assert (times[:-1] == 1).all()


@pytest.mark.parametrize("kind", AWKWARD)
def test_clusters_and_forced_exploration_spend_exactly(kind, rng):
    arms = Candidates.of(AWKWARD[kind](rng))
    for pulls in (1, 5, 23):
        assert Clustered().allocate(arms, pulls, rng).sum() == pulls
        forced = Forced(Uniform()).allocate(arms, pulls, rng)
        assert forced.sum() == pulls
        dimension = int(rank(arms.coordinates))
        if pulls >= dimension:
            assert np.linalg.matrix_rank(arms.coordinates[forced > 0], tol=1e-9) == dimension


def test_batched_designs_equal_single_ones_bit_for_bit(rng):
    x = rng.standard_normal((6, 20, 4))
    for design in DESIGNS:
        together = design.weights(Candidates.of(x))
        alone = np.stack([design.weights(Candidates.of(one)) for one in x])
        np.testing.assert_array_equal(together, alone)
