"""Laws of the hypotheses: evidence and posteriors equal what the definitions give, and units do not matter."""

import numpy as np
import pytest

from bestarm.core import Tally
from bestarm.kernels import Exponential
from bestarm.structures.apart import normal
from bestarm.structures.bases import (
    anchored,
    kernel_base,
    linear_base,
    products,
    roundness,
    sphere_centred,
    standardised,
    terms,
    two_levels,
)
from bestarm.structures.evidence import Data, evidence
from bestarm.structures.hypotheses import KINDS, Line, OneOf, Scaling, SeparateMeans, structures
from bestarm.structures.mixture import weigh
from bestarm.structures.posterior import posterior
from bestarm.structures.terms import weighed


@pytest.fixture
def known(rng):
    counts = np.array([3.0, 0.0, 5.0, 1.0, 2.0, 0.0, 4.0, 3.0])
    rewards = [rng.normal(1.0 + 0.3 * i, 1.0, int(n)) for i, n in enumerate(counts)]
    sums, squares = (np.array([f(r) for r in rewards]) for f in (np.sum, lambda r: np.sum(r**2)))
    return Tally(counts, sums, squares)


@pytest.fixture
def features(rng):
    return rng.standard_normal((8, 2))


OWN = Line("own", "standard", intercept=True, residuals=(2.0,), residual="own")


def covariances(h, made):
    """The covariance of the means in units of σ²: bare, and with each term that may count, or arm that may be apart."""
    total = h.own * np.eye(8)
    for name, scale in zip(h.bases, h.scales, strict=True):
        base = made.bases[name]
        total = total + scale * (base.features @ base.features.T + np.diag(base.missing))
    if h.apart is not None:
        return total, [total + h.apart * np.outer(e, e) for e in np.eye(8)]
    terms = [] if h.term is None else made.bases[h.term].features.T
    return total, [total + h.size * np.outer(t, t) for t in terms if np.any(t)] or [total]


def straight(h, S, known):
    """log evidence, what is left of the squares and the precision of the level by definition, over the arms pulled."""
    at = np.flatnonzero(known.counts > 0)
    n, y = known.counts.sum(), known.sums[at] / known.counts[at]
    within = np.sum(known.squares[at] - known.sums[at] * y)
    A = S[np.ix_(at, at)] + np.diag(1 / known.counts[at])
    inverse, one = np.linalg.inv(A), np.ones(len(at))
    if h.intercept:
        y = y - (one @ inverse @ y) / (one @ inverse @ one)
    left = within + y @ inverse @ y
    value = h.log_prior - np.linalg.slogdet(A)[1] / 2 - n / 2 * np.log(left)
    return value - h.intercept * np.log(n + 1) / 2, left, one @ inverse @ one if h.intercept else 1.0


def averaged(h, made, known):
    """log evidence and σ² over all terms that may count, and the chance of each."""
    bare, each = covariances(h, made)
    logs, left, level = np.transpose([straight(h, S, known) for S in each])
    logs = logs - np.log(level / straight(h, bare, known)[2]) / 2  # a term is charged for what it says beside the level
    if h.apart is not None:  # of interest where it is better, by the chance that what it has is above 0
        apart = [z_apart(h, S - bare, S, known, rest) for S, rest in zip(each, left, strict=True)]
        logs = logs + np.log(2 * normal(np.array(apart)))
    chance = np.exp(logs - logs.max())
    log = logs.max() + np.log(chance.mean())
    chance /= chance.sum()
    return log, chance @ left / (known.counts.sum() - h.intercept), chance


def z_apart(h, spike, S, known, left):
    """How many deviations above 0 the coefficient of an arm apart is."""
    at, q = np.flatnonzero(known.counts > 0), np.argmax(np.diag(spike))
    if q not in at:
        return 0.0
    inverse, one = np.linalg.inv(S[np.ix_(at, at)] + np.diag(1 / known.counts[at])), np.ones(len(at))
    if h.intercept:
        inverse = inverse - np.outer(inverse @ one, one @ inverse) / (one @ inverse @ one)
    gain = h.apart * inverse[list(at).index(q)]
    variance = h.apart - gain[list(at).index(q)] * h.apart
    return gain @ (known.sums[at] / known.counts[at]) / np.sqrt(variance * left / known.counts.sum())


def krige(S, intercept, data):
    """The mean and covariance of all arms given the data, with an unknown level or none."""
    at = np.flatnonzero(data.counts > 0)
    inverse = np.linalg.inv(S[np.ix_(at, at)] + np.diag(1 / data.counts[at]))
    gain, one = S[:, at] @ inverse, np.ones(len(at))
    mean, spread = gain @ data.means[at], S - gain @ S[at]
    if not intercept:
        return mean, spread
    information, tilt = one @ inverse @ one, 1 - gain @ one
    level = one @ inverse @ data.means[at] / information
    return mean + level * tilt, spread + np.outer(tilt, tilt) / information


def test_evidence_is_the_marginal_likelihood(features, known):
    made = structures(features, 40, (*KINDS, OWN), Scaling())
    logs, variances = evidence(made, Data.of(known, made.bases))
    by_hand = np.array([averaged(h, made, known)[:2] for h in made.hypotheses])
    np.testing.assert_allclose(logs - logs[0], by_hand[:, 0] - by_hand[0, 0], atol=1e-6)
    np.testing.assert_allclose(variances, by_hand[:, 1], rtol=1e-7)


def test_a_posterior_is_the_normal_distribution_given_the_data(features, known):
    made = structures(features, 40, (*KINDS, OWN), Scaling())
    data = Data.of(known, made.bases)
    for h in made.hypotheses:
        own = data.own(h.bases, h.scales, h.own)
        found = posterior(h.bases, h.scales, own, h.intercept, data, h.term, h.size, h.apart)
        seen = found.arms(made.bases, data.counts, data.means, own)
        _, noise, chance = averaged(h, made, known)
        each = [krige(S, h.intercept, data) for S in covariances(h, made)[1]]
        mean = sum(c * m for c, (m, _) in zip(chance, each, strict=True))
        between = (np.outer(m - mean, m - mean) / noise for m, _ in each)  # in units of σ²
        spread = sum(c * (s + b) for c, (_, s), b in zip(chance, each, between, strict=True))
        np.testing.assert_allclose(seen.mean, mean, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(seen.covariance, spread, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(seen.variance, np.diag(seen.covariance), rtol=1e-8)


@pytest.mark.parametrize("change", [lambda x: 1000 * x, lambda x: x + 100, lambda x: 1e-3 * x - 7])
def test_neither_unit_nor_origin_of_the_features_matters(change, features, known):
    one, two = (structures(x, 40, KINDS, Scaling()) for x in (features, change(features)))
    for name in one.bases:
        gram = [m.bases[name].features @ m.bases[name].features.T for m in (one, two)]
        np.testing.assert_allclose(*gram, atol=1e-8)
    logs = [evidence(m, Data.of(known, m.bases))[0] for m in (one, two)]
    np.testing.assert_allclose(*logs, atol=1e-7)


def test_units_of_the_rewards_do_not_matter(features, known):
    made = structures(features, 40, KINDS, Scaling())
    bigger = Tally(known.counts, 50 * known.sums, 2500 * known.squares)
    one, two = (weigh(made, KINDS, k, 0.15, 3, 256) for k in (known, bigger))
    np.testing.assert_allclose(one.kinds, two.kinds, atol=1e-9)
    np.testing.assert_allclose(50 * one.marginals()[0], two.marginals()[0], rtol=1e-8)


def test_a_level_far_from_zero_is_no_noise(features, known):
    far = Tally(known.counts, known.sums + 1e6 * known.counts, known.squares + 2e6 * known.sums + 1e12 * known.counts)
    made = structures(features, 40, KINDS, Scaling())
    h = next(h for h in made.hypotheses if h.term is not None and h.intercept)
    near, moved = (
        posterior(h.bases, h.scales, 0 * known.counts, True, data, h.term, h.size).term
        for data in (Data.of(tally, made.bases) for tally in (known, far))
    )
    np.testing.assert_allclose(moved.covariance, near.covariance, rtol=0.01, atol=1e-4)


def test_the_centre_of_a_sphere_is_found_wherever_it_was_moved(rng):
    x = rng.standard_normal((20, 4))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    np.testing.assert_allclose(sphere_centred(3 * x + 5.0), 3 * x, atol=1e-10)


def test_roundness_tells_spheres_from_cubes(rng):
    x = rng.standard_normal((50, 40, 3))
    sphere = x / np.linalg.norm(x, axis=-1, keepdims=True)
    assert np.all(roundness(sphere_centred(2 * sphere + 7)) > 1 - 1e-9)
    cube = rng.uniform(-1, 1, (50, 8, 5))  # few arms are nearer to the sphere fitted to them than they should be
    assert np.mean(roundness(sphere_centred(cube))) < 0.1
    assert np.all(roundness(np.zeros((4, 3))) == 1)


def test_a_line_is_anchored_at_the_centre_of_a_sphere_or_near_the_middle_of_the_arms(rng):
    cube = rng.uniform(-1, 1, (4, 30, 3))
    ball = cube / np.linalg.norm(cube, axis=-1, keepdims=True)
    for x, on_sphere in ((ball, True), (cube, False)):
        moved = 5 * x + 9
        sphere = sphere_centred(moved)
        seen = anchored(moved, sphere, roundness(sphere))
        assert seen.shape == (4, 30, 4)
        if on_sphere:
            np.testing.assert_allclose(seen[..., :3], 5 * x, atol=1e-9)
            np.testing.assert_array_equal(seen[..., 3], 0)
        else:  # the mean of 30 arms is off the middle by a thirtieth of their variance
            np.testing.assert_allclose(seen[..., :3].mean(1), 0, atol=1e-9)
            variance = (seen[..., :3] ** 2).sum(-1).mean(-1)
            np.testing.assert_allclose(seen[..., 3] ** 2, np.broadcast_to(variance[:, None] / 30, (4, 30)))


def test_separate_means_are_likelier_the_more_features_there_are_for_an_arm(rng):
    def prior(arms, features):
        made = structures(rng.standard_normal((arms, features)), 40, KINDS, Scaling())
        return made.hypotheses[made.members("separate")[0]].log_prior

    assert prior(100, 1) == pytest.approx(-1, abs=0.01)
    assert prior(10, 9) > prior(20, 9) > prior(40, 9)
    assert prior(10, 30) == pytest.approx(4)


def test_where_the_arms_lie_on_no_sphere_an_intercept_is_expected(rng):
    def weight(kind, x):
        made = structures(x, 40, KINDS, Scaling())
        return np.exp([made.hypotheses[j].log_prior for j in made.members(kind)]).sum()

    cube = rng.uniform(-1, 1, (30, 4))
    sphere = cube / np.linalg.norm(cube, axis=1, keepdims=True)
    assert weight("affine", cube) > 2 * weight("linear", cube)
    assert weight("linear", sphere) > 5 * weight("affine", sphere)


def test_a_base_has_variance_one_on_average_and_a_dimension_below_its_rank(features):
    base = linear_base(standardised(features))
    centred = base.features - base.features.mean(0)
    assert np.mean(np.sum(centred**2, 1)) == pytest.approx(1)
    assert 1 <= base.dimension <= 3 + 1e-9


def test_what_a_kernel_loses_to_few_features_every_arm_keeps_for_itself(rng):
    z = standardised(rng.standard_normal((300, 3)))
    base = kernel_base(z, Exponential())
    assert base.features.shape == (300, 64)
    total = np.sum(base.features**2, 1) + base.missing
    assert np.mean(total) == pytest.approx(1, rel=0.05)
    assert np.all(base.missing >= 0)


def test_linear_worlds_are_called_linear_and_lawless_ones_separate(rng):
    x = rng.standard_normal((30, 20, 4))
    slope = rng.standard_normal((30, 4, 1))
    counts = np.full((30, 20), 20.0)
    doubts = {}
    for name, means in {"linear": (x @ slope)[..., 0], "separate": rng.standard_normal((30, 20))}.items():
        sums = counts * means + np.sqrt(counts) * rng.standard_normal(means.shape)
        squares = sums**2 / counts + rng.chisquare(19, means.shape)
        made = structures(x, 400, KINDS, Scaling())
        kinds = weigh(made, KINDS, Tally(counts, sums, squares), 0.15, 3, 256).kinds.mean(axis=0)
        doubts[name] = sum(weight for kind, weight in zip(KINDS, kinds, strict=True) if kind.nonlinear)
    assert doubts["linear"] < 0.25
    assert doubts["separate"] > 0.95


def test_rewards_without_noise_and_features_without_content_are_borne():
    zero = np.zeros((4, 2))
    made = structures(zero, 10, KINDS, Scaling())
    known = Tally(np.array([2.0, 2.0, 0.0, 1.0]), np.array([2.0, 4.0, 0.0, 3.0]), np.array([2.0, 8.0, 0.0, 9.0]))
    mixture = weigh(made, KINDS, known, 0.15, 3, 256)
    assert np.isfinite(mixture.marginals()[0]).all()
    assert np.isfinite(mixture.weight).all()


def test_separate_means_keep_the_hedge(features, known):
    made = structures(features, 40, KINDS, Scaling())
    mixture = weigh(made, KINDS, known, 0.5, len(KINDS), 256)
    place = [isinstance(kind, SeparateMeans) for kind in KINDS].index(True)
    weights = list(zip(KINDS, mixture.kinds[0], strict=True))
    raised = 0.5 * sum(weight for kind, weight in weights if kind.nonlinear)
    lighter = min(weight for kind, weight in weights if kind.nonlinear is None)  # one arm apart is enough
    wanted = raised / (1 + raised - mixture.kinds[0, place] - lighter)
    assert np.isclose(np.sort(mixture.weight[0]), wanted, rtol=1e-6).any()


def test_where_arms_were_scaled_to_a_sphere_small_residuals_are_for_the_answer_only(rng):
    arms = rng.standard_normal((30, 4))
    unit = arms / np.linalg.norm(arms, axis=1, keepdims=True)
    nearly = unit * (1 + arms / 100)
    for features, answer_only in ((arms, 0), (unit, 1), (1000 * unit + 100, 1), (unit[:5], 0), (nearly, 0)):
        made = structures(features, 60, KINDS, Scaling())
        assert {
            (round(float(h.scales[1]) * 60 / len(features), 6), h.answer_only)
            for h in made.hypotheses
            if "residual" in h.kind
        } == {(1.5, answer_only), (6.0, 0)}
        assert all(h.answer_only == 0 for h in made.hypotheses if "residual" not in h.kind)
        assert all(h.answer_only == 0 and np.all(h.tested == 0) for h in made.for_the_answer().hypotheses)


def test_a_line_on_a_sphere_is_doubted_while_pulls_are_chosen_as_far_as_they_can_test_it(rng):
    arms = rng.standard_normal((30, 4))
    unit = arms / np.linalg.norm(arms, axis=1, keepdims=True)
    for features, budget, doubt in ((unit, 120, -2.0), (unit, 60, -1.0), (unit, 1200, -2.0), (arms, 120, 0.0)):
        made = structures(features, budget, KINDS, Scaling())
        lines = made.members("linear")
        np.testing.assert_allclose([made.hypotheses[j].tested for j in lines], doubt, atol=1e-9)
        assert all(np.all(h.tested == 0) for j, h in enumerate(made.hypotheses) if j not in lines)


def test_hypotheses_for_the_answer_only_weigh_but_do_not_stand_for_their_kind(rng):
    arms = rng.standard_normal((30, 4))
    unit = arms / np.linalg.norm(arms, axis=1, keepdims=True)
    counts, sums = np.full(30, 4.0), 4 * unit[:, 0] + rng.standard_normal(30)
    known = Tally(counts, sums, sums**2 / 4 + rng.chisquare(3, 30))
    made = structures(unit, 120, KINDS, Scaling())
    pulling, answer = (weigh(m, KINDS, known, 0.15, len(KINDS), 256) for m in (made, made.for_the_answer()))
    doubted = KINDS.index(next(kind for kind in KINDS if isinstance(kind, Line) and kind.tested))
    odds = [np.log(mixture.kinds[0] / mixture.kinds[0, doubted]) for mixture in (pulling, answer)]
    more = np.where(np.arange(len(KINDS)) == doubted, 0.0, -KINDS[doubted].tested)  # with four pulls an arm, all of it
    np.testing.assert_allclose(odds[0] - odds[1], more, atol=1e-9)
    sizes = [
        [p.scales[1][0] * 4 for p in m.pieces if "exponential" in p.posterior.names[1:]] for m in (pulling, answer)
    ]
    np.testing.assert_allclose(sizes, [[6.0, 6.0], [1.5, 1.5]])


def test_products_of_features_of_two_levels_are_all_but_their_squares(rng):
    standard = standardised(5.0 + 3.0 * ((np.arange(16)[:, None] >> np.arange(4)) & 1))
    assert two_levels(standard) == 1
    assert two_levels(standardised(rng.choice([0.0, 1.0, 2.0], (40, 4)))) == 0
    found = terms(products(standard)).features
    assert found.shape == (16, 10)
    assert np.any(found, axis=0).sum() == 6
    np.testing.assert_allclose(np.mean(found**2, axis=0)[np.any(found, axis=0)], 1)


def test_terms_that_are_too_many_are_left_out(rng):
    few, many = (structures(rng.standard_normal((30, d)), 40, KINDS, Scaling()).kinds for d in (3, 200))
    assert set(few) - set(many) == {kind.name for kind in KINDS if isinstance(kind, OneOf)}


def test_a_term_that_no_arm_has_is_none():
    nothing = np.zeros((1, 3))
    found = weighed(nothing != 0, np.ones(1), nothing, nothing, np.ones(1), 5 * np.ones(1))
    assert found.gain == 0
    assert found.left == 1
    np.testing.assert_array_equal(found.weight, nothing)


def many(rng, count=3000, width=6):
    """Hypotheses about many arms with a few pulled in two replications, and what is known of them."""
    features = rng.standard_normal((2, count, width)) * np.linspace(0.2, 3, width)
    counts = np.zeros((2, count))
    counts[:, rng.choice(count, 120, replace=False)] = 3.0
    means = features[..., 0] + 0.3 * np.sin(features[..., 1]) + rng.standard_normal((2, count))
    known = Tally(counts, counts * means, counts * (means**2 + 1))
    return structures(features, 500, KINDS, Scaling()), known


@pytest.mark.parametrize("kept", [1, 3, 6])
def test_no_deviation_exceeds_its_bound(kept, rng):
    made, known = many(rng)
    mixture = weigh(made, KINDS, known, 0.15, kept, 64)
    for piece in mixture.pieces:
        arms = mixture._arms(piece, None)
        look = piece.posterior.arms(*arms)
        mean, bound = piece.posterior.bounds(*arms)
        np.testing.assert_allclose(mean, look.mean, rtol=1e-9, atol=1e-12)
        assert (bound >= look.variance * (1 - 1e-9)).all()


@pytest.mark.parametrize("kept", [1, 3, 6])
def test_screening_leaves_out_no_arm_that_reaches_higher(kept, rng):
    made, known = many(rng)
    mixture = weigh(made, KINDS, known, 0.15, kept, 64)
    first = np.zeros(known.counts.shape, dtype=bool)
    first[:, [5, 17]] = True
    mean, deviation = mixture.marginals()
    reach = np.where(first, np.inf, mean + 3 * deviation)
    np.testing.assert_allclose(mixture.means(), mean, rtol=1e-9, atol=1e-12)
    found = mixture.foremost(40, 3.0, first)
    np.testing.assert_array_equal(np.sort(found), np.sort(np.argsort(-reach, axis=-1, kind="stable")[:, :40]))


def test_hypotheses_nobody_listens_to_cost_nothing(rng):
    features = rng.standard_normal((40, 2))
    counts, means = np.full(40, 30.0), 20 * features[:, 0]
    known = Tally(counts, counts * means, counts * (means**2 + 1))
    mixture = weigh(structures(features, 1200, KINDS, Scaling()), KINDS, known, 0.0, 11, 256)
    assert mixture.weight.shape[-1] < 11
    assert (mixture.weight > 0).all()
    assert np.isclose(mixture.weight.sum(), 1)
