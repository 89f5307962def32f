"""Laws of optimal designs: Kiefer-Wolfowitz, known optima, updates that equal recomputation, invariance."""

from dataclasses import replace

import array_api_strict
import numpy as np
import pytest

from bestarm import catalog, spec
from bestarm.designs.ascent import Ascent, Fedorov, LineSearch, OpenLoop, VertexExchange, Wynn, certificate
from bestarm.designs.directions import EachArm, EachPair
from bestarm.designs.greedy import Greedy
from bestarm.designs.newton import Newton
from bestarm.designs.spread import Clustered, Forced, Uniform
from bestarm.designs.starts import Even, KumarYildirim, Multiplicative, kumar_yildirim, spanning
from bestarm.designs.transductive import Transductive
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


@pytest.mark.parametrize("step", [VertexExchange(), Newton()], ids=repr)
@pytest.mark.parametrize("start", [Even(), KumarYildirim(), Multiplicative()], ids=repr)
@pytest.mark.parametrize(("arms", "dimension"), SETS)
def test_kiefer_wolfowitz_gap_below_1e_6_on_20_random_sets(arms, dimension, start, step, rng):
    arms = Candidates.of(sphere(rng, 4, arms, dimension))
    weights = Ascent(step, start, 1e-7).weights(arms)
    gap = certificate(arms.coordinates, weights) - 1
    assert (gap < 1e-6).all()
    assert (gap > -1e-9).all()
    np.testing.assert_allclose(weights.sum(-1), 1)
    assert (weights >= 0).all()


def test_both_starts_lead_to_the_same_information(rng):
    arms = Candidates.of(sphere(rng, 10, 40, 6))
    designs = (Ascent(start=start, tolerance=1e-9) for start in (KumarYildirim(), Multiplicative()))
    first, second = (moment(arms.coordinates, design.weights(arms)) for design in designs)
    np.testing.assert_allclose(first, second, atol=1e-5)


@pytest.mark.parametrize(
    "design", [Ascent(tolerance=1e-8), Ascent(Fedorov(), Even(), 1e-3, 20_000), Ascent(Newton(), tolerance=1e-8)]
)
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
    np.testing.assert_allclose(Ascent(tolerance=1e-8).weights(Candidates.of(soare(6))), [1 / 6] * 6 + [0], atol=1e-6)


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
        ours = moment(x, Ascent(tolerance=1e-9).weights(Candidates(x, x)))
        np.testing.assert_allclose(ours, other, atol=1e-5)


def test_interior_points_do_not_change_the_information(rng):
    outer = sphere(rng, 25, 4)
    inner = 0.5 * outer[:10] + 0.3 * outer[10:20]
    alone = Candidates.of(outer)
    both = Candidates.of(np.concatenate([outer, inner]))
    V, W = (c.features.T @ (c.features * Ascent(tolerance=1e-10).weights(c)[:, None]) for c in (alone, both))
    np.testing.assert_allclose(V, W, atol=1e-6)


def test_leverages_weighted_by_the_design_sum_to_the_dimension(rng):
    x = span_coordinates(sphere(rng, 30, 7))
    w = rng.dirichlet(np.ones(30))
    assert (w * leverage(x, np.linalg.inv(moment(x, w)))).sum() == pytest.approx(7, abs=1e-10)


@pytest.mark.parametrize("step", [VertexExchange(), Fedorov(), LineSearch()])
def test_rank_one_updates_equal_recomputation(step, rng):
    arms = Candidates.of(sphere(rng, 3, 30, 5))
    x = arms.coordinates
    start = np.full((3, 30), 1 / 30)
    work = step.begin(x, start, rank(x))
    for t in range(90):
        work = step.advance(t, work, work[3].max(-1) <= (1 + 1e-6) * work[4])
    recomputed = np.linalg.inv(moment(x, work[0]))
    np.testing.assert_allclose(work[2], recomputed, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(work[3], leverage(x, recomputed), rtol=1e-8)


STEPS = [VertexExchange(), Newton(), Fedorov(), Wynn(), OpenLoop(), LineSearch()]


@pytest.mark.parametrize("step", STEPS, ids=repr)
def test_a_replication_does_not_notice_its_company(step, rng):
    stack = sphere(rng, 6, 20, 4)
    stack[1], stack[2, :, 2:], stack[3, :, 1:] = 0.0, 0.0, 0.0  # of rank 0, 2 and 1
    design = Ascent(step, Even(), 1e-3, 150)
    together = design.weights(Candidates.of(stack.reshape(2, 3, 20, 4))).reshape(6, 20)
    for one, w in zip(stack, together, strict=True):
        np.testing.assert_array_equal(design.weights(Candidates.of(one)), w)


@pytest.mark.parametrize("step", STEPS, ids=repr)
def test_steps_take_arrays_of_other_libraries(step, rng):
    x = sphere(rng, 2, 20, 4)
    design = Ascent(step, Even(), 1e-3, 50)
    strict = design.weights(Candidates.of(array_api_strict.asarray(x)))
    assert isinstance(strict, array_api_strict._array_object.Array)
    np.testing.assert_allclose(np.asarray(strict), design.weights(Candidates.of(x)), atol=1e-9)


def test_newton_steps_are_named_in_place_of_others(rng):
    design = catalog.policy("gse-lin-fwg", step=Newton()).design.few.design
    assert spec.from_dict(spec.to_dict(design)) == design == Ascent(Newton(), Multiplicative())
    arms = Candidates.of(rng.standard_normal((3000, 8)))
    assert certificate(arms.coordinates, replace(design, tolerance=1e-10).weights(arms)) <= 1 + 1e-9


def test_newton_refuses_a_start_that_does_not_span():
    with pytest.raises(ValueError, match="do not span the space"):
        Ascent(Newton()).improve(np.eye(3), np.array([0.5, 0.5, 0.0]), np.array(3.0))


def test_the_literal_frank_wolfe_stalls_on_the_papers_first_experiment():
    arms = Candidates.of(soare(10))
    literal = Ascent(LineSearch(), Even(), 0.0, 1000).weights(arms)
    np.testing.assert_allclose(literal, 1 / 11, atol=1e-9)
    assert certificate(arms.coordinates, literal) == pytest.approx(1.1, abs=0.01)
    assert certificate(arms.coordinates, Ascent(tolerance=1e-6).weights(arms)) < 1 + 1e-5


def test_the_literal_frank_wolfe_stops_short_on_the_sphere(rng):
    arms = Candidates.of(sphere(rng, 20, 64, 10))
    literal = certificate(arms.coordinates, Ascent(LineSearch(), Even(), 0.0, 100).weights(arms))
    assert literal.mean() > 1.1
    assert (certificate(arms.coordinates, Ascent(tolerance=1e-2).weights(arms)) <= 1.01).all()


@pytest.mark.parametrize("step", [OpenLoop(), Wynn(), Fedorov()])
def test_the_other_steps_do_not_stall(step, rng):
    arms = Candidates.of(sphere(rng, 5, 40, 5))
    weights = Ascent(step, Even(), 2e-2, 3000).weights(arms)
    assert (certificate(arms.coordinates, weights) < 1.05).all()


def test_fedorov_steps_increase_the_determinant(rng):
    arms = Candidates.of(sphere(rng, 40, 5))
    logs = [
        np.linalg.slogdet(moment(arms.coordinates, Ascent(Fedorov(), Even(), limit=n).weights(arms)))[1]
        for n in range(30)
    ]
    assert (np.diff(logs) >= -1e-12).all()


@pytest.mark.parametrize("kind", AWKWARD)
def test_the_start_of_kumar_and_yildirim_spans(kind, rng):
    x = span_coordinates(AWKWARD[kind](rng))
    w = kumar_yildirim(x)
    assert np.linalg.matrix_rank(x[w > 0], tol=1e-9) == np.linalg.matrix_rank(x, tol=1e-9)
    assert (w > 0).sum() == rank(x)


DESIGNS = [
    Ascent(),
    Ascent(start=Multiplicative()),
    Ascent(Newton(), tolerance=1e-6),
    Ascent(Fedorov(), Even(), limit=1000),
    Ascent(LineSearch(), Even(), limit=100),
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
    others = [worst(rng.dirichlet(np.ones(12))) for _ in range(300)] + [worst(Ascent().weights(arms))]
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
    times = Clustered().allocate(arms, 40, rng)
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


@pytest.mark.parametrize("kind", AWKWARD)
def test_arms_that_span_do_so_and_are_no_more_than_it_takes(kind, rng):
    features = AWKWARD[kind](rng)
    chosen = spanning(features) > 0
    coordinates = Candidates.of(features).coordinates
    dimension = int(rank(coordinates))
    assert np.count_nonzero(chosen) == max(1, dimension)
    assert np.linalg.matrix_rank(coordinates[chosen], tol=1e-9) == dimension
