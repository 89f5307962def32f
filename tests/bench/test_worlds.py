"""Worlds with a wrong model or another noise, and the tables and functions a suite draws from."""

import numpy as np
import pytest
from scipy import stats

from bestarm import bench, datasets, instances
from bestarm.bandits import (
    Bandit,
    Bernoulli,
    Gaussian,
    Outliers,
    Poisson,
    Recorded,
    Shifted,
    Stream,
    StudentT,
    Uneven,
)
from bestarm.core import Pulls
from bestarm.errors import InputError, UnknownNameError


def pulls_of(bandit, times):
    arms = np.broadcast_to(np.arange(bandit.means.shape[-1]), bandit.means.shape)
    return Pulls(arms, np.full(bandit.means.shape, times))


@pytest.mark.parametrize("freedom", [2.5, 3.0, 8.0])
def test_heavy_tails_have_the_variance_they_say(freedom):
    noise = StudentT(4.0, freedom)
    assert stats.t(freedom, scale=noise.scale).var() == pytest.approx(4.0)
    grid = (np.arange(1000) + 0.5) / 1000
    np.testing.assert_allclose(noise.at(grid, 1.0), stats.t(freedom, 1.0, noise.scale).ppf(grid), rtol=1e-8)
    with pytest.raises(InputError, match="freedom must be more than 2"):
        StudentT(1.0, 2.0)


@pytest.mark.parametrize("noise", [StudentT(4.0, 3.0), Uneven(np.full((20_000, 1), 4.0))], ids=["t", "uneven"])
def test_totals_rewards_and_quantiles_agree_in_law(noise, rng):
    many, times = 20_000, 3
    bandit = Bandit(np.ones((many, 1, 1)), np.full((many, 1), 0.3), noise)
    none = np.zeros((many, 1), dtype=int)
    quick = bandit.pull(pulls_of(bandit, times), none, rng)
    stream = Stream(bandit, 7).pull(pulls_of(bandit, times), none)
    single = noise.rewards(bandit.means, times, rng)
    for other in (quick, stream):
        assert stats.ks_2samp(other.sums[:, 0], single.sum(-1)[:, 0]).pvalue > 1e-6
        assert stats.ks_2samp(other.squares[:, 0], (single**2).sum(-1)[:, 0]).pvalue > 1e-6
    assert noise.variance == pytest.approx(4.0)


def test_uneven_variances_average_to_what_is_told_and_move_with_their_arms(rng):
    world = instances.static(0.5, 8, noise_variance=2.0, replications=50)
    bandit = instances.uneven(world, 9.0, rng)
    variances = bandit.noise.variances
    np.testing.assert_allclose(variances.mean(-1), 2.0)
    np.testing.assert_allclose(variances.max(-1) / variances.min(-1), 9.0)
    assert bandit.noise_variance == pytest.approx(2.0)
    assert len(np.unique(np.argmax(variances, -1))) > 3
    tagged = Bandit(variances[..., None], bandit.means, bandit.noise)  # an arm's feature is its variance
    for moved in (tagged.shuffled(rng), tagged.lowered(0.5).shuffled(rng)):
        noise = moved.noise.noise if isinstance(moved.noise, Shifted) else moved.noise
        np.testing.assert_array_equal(moved.features[..., 0], noise.variances)
    assert not np.array_equal(tagged.shuffled(rng).noise.variances, variances)


def test_noise_that_rises_with_the_mean_is_largest_at_the_best_arm(rng):
    world = instances.functions(12, 3, noise_variance=2.0, replications=40, rng=rng)
    variances = instances.proportional(world, 16.0).noise.variances
    assert variances.mean() == pytest.approx(2.0)
    np.testing.assert_allclose(variances.max(-1) / variances.min(-1), 16.0)
    np.testing.assert_array_equal(np.argsort(variances), np.argsort(world.means))
    span = np.ptp(world.means, axis=-1)  # the deviation is a line in the mean
    share = (world.means - world.means.min(-1, keepdims=True)) / span[:, None]
    np.testing.assert_allclose(np.sqrt(variances / variances.min(-1, keepdims=True)), 1 + 3 * share)
    level = instances.static(0.0, 4, noise_variance=3.0)
    np.testing.assert_array_equal(instances.proportional(level).noise.variances, np.full(4, 3.0))


def test_a_quarter_of_the_arms_any_is_noisier(rng):
    world = instances.static(0.5, 10, noise_variance=2.0, replications=400)
    variances = instances.noisier(world, 10.0, rng).noise.variances
    assert set(np.unique(variances)) == {2.0, 20.0}
    np.testing.assert_array_equal((variances == 20.0).sum(-1), 2)
    assert stats.chisquare((variances == 20.0).sum(0)).pvalue > 1e-6
    assert (instances.noisier(instances.static(0.5, 3), 4.0, rng).noise.variances == 4.0).sum() == 1


def test_slips_and_offsets_change_the_rewards_they_say():
    world = instances.static(0.5, 6, noise_variance=2.0)
    assert instances.slipped(world, 0.1, 50.0, either=True).noise == Outliers(2.0, 0.1, 50.0, either=True)
    moved = instances.shifted(world, 7.0)
    np.testing.assert_array_equal(moved.means, world.means + 7.0)
    assert moved.noise == world.noise
    np.testing.assert_array_equal(moved.features, world.features)


def test_settings_of_slips_offsets_and_groups_reach_the_world():
    def made(**settings):
        return bench.instance("functions", K=8, d=3, **settings).make(4, np.random.default_rng(5))

    plain = made()
    assert made(noise="slips", share=0.02, times=10).noise == Outliers(1.0, 0.02, 10.0)
    assert made(noise="slips of either sign").noise == Outliers(1.0, 0.01, 100.0, either=True)
    np.testing.assert_array_equal(made(offset=1e9).means, plain.means + 1e9)
    np.testing.assert_array_equal(made(noise="group", ratio=4).features, plain.features)
    rising = made(noise="proportional", ratio=4, offset=-3).noise  # an offset is no larger mean
    np.testing.assert_allclose(rising.variances, made(noise="proportional", ratio=4).noise.variances)


@pytest.mark.parametrize("source", ["pull", "stream"])
def test_each_arm_has_its_own_variance_in_whatever_order_it_is_pulled(source, rng):
    many = 4000
    variances = np.broadcast_to([0.1, 1.0, 10.0], (many, 3))
    bandit = Bandit(np.zeros((many, 3, 1)), np.zeros((many, 3)), Uneven(variances))
    arms = np.broadcast_to([2, 0], (many, 2))
    world = bandit if source == "pull" else Stream(bandit, 5)
    totals = world.pull(Pulls(arms, np.full((many, 2), 4)), np.zeros((many, 3), dtype=int), rng)
    np.testing.assert_allclose(totals.sums.var(0), [40.0, 0.4], rtol=0.12)
    np.testing.assert_allclose(totals.squares.mean(0), [40.0, 0.4], rtol=0.12)


def test_recorded_rewards_keep_what_is_told_when_moved(rng):
    noise = Recorded(rng.random((2, 3, 4)), np.full((2, 3), 4), 0.5, 0.1)
    moved = noise.moved(np.array([[2, 0, 1], [1, 2, 0]]))
    assert (moved.variance, moved.jitter) == (0.5, 0.1)
    np.testing.assert_array_equal(moved.values[0, 0], noise.values[0, 2])


def test_jitter_is_normal_noise_on_top_of_records(rng):
    noise = Recorded(np.array([[1.0, 3.0]]), np.array([2]), jitter=0.25)
    uniform = rng.random(20_000)
    drawn = noise.at(uniform, None, np.zeros(20_000, dtype=int))
    again = noise.rewards(np.zeros(1), 20_000, rng)[0]
    assert stats.ks_2samp(drawn, again).pvalue > 1e-6
    assert drawn.mean() == pytest.approx(2.0, abs=0.05)
    assert drawn.var() == pytest.approx(1.25, rel=0.05)


def test_deviations_are_in_units_of_one_pull(rng):
    world = instances.static(0.5, 16, noise_variance=4.0, replications=2000)
    off = instances.deviated(world, 0.5, rng).means - world.means
    assert off.std() == pytest.approx(1.0, rel=0.02)
    clicks = instances.deviated(instances.logistic(16, 5, replications=500, rng=rng), 1.0, rng)
    assert isinstance(clicks.noise, Bernoulli)
    assert 0 < clicks.means.min() < clicks.means.max() < 1


@pytest.mark.parametrize("kind", instances.BENDS)
def test_a_bend_is_as_strong_as_asked_and_not_linear(kind, rng):
    world = instances.randomized(40, 5, replications=30, rng=rng)
    bent = instances.bent(world, kind, 0.7, rng)
    term = bent.means - world.means
    np.testing.assert_allclose(term.std(-1), 0.7 * world.means.std(-1))
    design = np.concatenate([np.ones((30, 40, 1)), world.features], axis=-1)
    fitted = (design @ np.linalg.pinv(design) @ term[..., None])[..., 0]
    unexplained = ((term - fitted) ** 2).sum(-1) / (term**2).sum(-1)
    assert unexplained.mean() > 0.15
    np.testing.assert_array_equal(bent.features, world.features)


def test_a_bend_that_changes_nothing_is_refused():
    with pytest.raises(InputError, match="'interaction' is the same for all arms"):
        instances.bent(instances.static(0.5, 6), "interaction", rng=1)
    with pytest.raises(InputError, match="needs two features"):
        instances.bent(Bandit(np.ones((3, 1)), np.zeros(3), Gaussian()), "interaction", rng=1)


def test_factorial_arms_are_additive_in_log_odds_but_for_interactions(rng):
    for count in (0, 2):
        bandit = instances.factorial(5, count, replications=6, rng=rng)
        assert bandit.features.shape == (6, 32, 5)
        assert set(np.unique(bandit.features)) == {-1.0, 1.0}
        odds = np.log(bandit.means / (1 - bandit.means))
        effects = np.swapaxes(bandit.features, -1, -2) @ odds[..., None] / 32
        assert (np.abs(effects) >= 0.15 - 1e-9).all()
        assert (np.abs(effects) <= 0.45 + 1e-9).all()
        rest = odds - (bandit.features @ effects)[..., 0]
        assert (np.abs(rest).max() > 0.1) == (count > 0)
    with pytest.raises(InputError, match="from 1 to 12"):
        instances.factorial(13)
    with pytest.raises(InputError, match="3 factors have 3 interactions"):
        instances.factorial(3, 4)


@pytest.mark.parametrize("shape", instances.SHAPES)
def test_functions_have_the_spread_asked_for(shape, rng):
    bandit = instances.functions(40, 4, shape, spread=2.0, replications=20, rng=rng)
    np.testing.assert_allclose(bandit.means.std(-1), 2.0)
    counts = instances.functions(40, 4, shape, rewards="poisson", spread=0.3, replications=20, rng=rng)
    assert isinstance(counts.noise, Poisson)
    assert counts.noise_variance == pytest.approx(counts.means.mean())
    assert instances.functions(6, 2, shape, rng=1).means.shape == (6,)


def test_functions_depend_on_the_active_features_alone(rng):
    bandit = instances.functions(60, 6, active=2, extra=3, copies=4, clusters=5, replications=10, rng=rng)
    assert bandit.features.shape == (10, 60, 13)
    np.testing.assert_array_equal(bandit.features[..., 9:], bandit.features[..., :4])
    design = np.concatenate([np.ones((10, 60, 1)), bandit.features[..., :2]], axis=-1)
    fitted = (design @ np.linalg.pinv(design) @ bandit.means[..., None])[..., 0]
    np.testing.assert_allclose(fitted, bandit.means, atol=1e-9)


def test_settings_left_alone_change_nothing():
    plain = instances.randomized(8, 3, noise_variance=1.0, replications=4, rng=np.random.default_rng(5))
    same = bench.instance("od", K=8, d=3).make(4, np.random.default_rng(5))
    np.testing.assert_array_equal(plain.means, same.means)
    assert same.noise == Gaussian(1.0)
    off = bench.instance("od", K=8, d=3, deviation=1.0).make(4, np.random.default_rng(5))
    np.testing.assert_array_equal(off.features, plain.features)  # the same arms, other means
    assert bench.instance("adaptive", K=8).make(4, np.random.default_rng(5)).means.shape == (4, 8)


@pytest.mark.parametrize(
    ("world", "params", "says"),
    [
        ("static", {"noise": "loud"}, "unknown noise 'loud'"),
        ("static", {"bend": "twist"}, "unknown bend 'twist'"),
        ("glm", {"noise": "heavy"}, "heavy noise takes the place of normal noise"),
        ("clicks", {"noise": "slips"}, "slips noise takes the place of normal noise"),
        ("glm", {"noise": "proportional"}, "proportional noise takes the place of normal noise"),
        ("glm", {"noise": "group"}, "group noise takes the place of normal noise"),
        ("glm", {"offset": 2.0}, "an offset is for worlds of normal noise; this one has Bernoulli"),
        ("od", {"offset": float("inf")}, "offset must be a finite number"),
        ("od", {"noise": "proportional", "ratio": 0.5}, "ratio must be"),
        ("od", {"noise": "group", "ratio": 0.5}, "ratio must be"),
        ("od", {"noise": "slips", "share": 1.0}, "share must be"),
        ("od", {"noise": "slips", "times": float("nan")}, "times must be"),
        ("needle", {"d": 1}, "a needle needs"),
        ("od", {"deviation": -1}, "deviation must be"),
        ("od", {"noise": "uneven", "ratio": 0.5}, "ratio must be"),
        ("od", {"bend": "cubic", "strength": -1}, "strength must be"),
        ("functions", {"shape": "round"}, "unknown shape"),
        ("functions", {"rewards": "many"}, "unknown rewards"),
        ("functions", {"active": 9}, "active must be from 1 to 5"),
        ("automobile", {"target": "doors"}, "target must be a column"),
        ("replay", {"file": "no.npz"}, "there is no file no.npz"),
    ],
)
def test_wrong_settings_are_named(world, params, says):
    with pytest.raises((InputError, UnknownNameError), match=says):
        bench.instance(world, params).make(2, 1)


def test_whole_numbers_stay_whole():
    with pytest.raises(InputError, match=r"factors .* whole number"):
        bench.instance("factorial", factors=2.5)
    assert dict(bench.instance("od", deviation="0.5", noise="heavy").params) == {"deviation": 0.5, "noise": "heavy"}


def test_cars_can_be_searched_for_something_else():
    cars, other = datasets.automobile(), datasets.automobile(target="engine_size")
    np.testing.assert_array_equal(other.means, cars.features[:, 2])
    np.testing.assert_array_equal(other.features[:, -1], cars.means)
    assert other.features.shape == (205, 5)


def test_repeats_are_found_scaled_and_told(tmp_path, monkeypatch, rng):
    features, values = 10 * rng.random((9, 2)), rng.standard_normal((9, 6))
    np.savez(tmp_path / "some.npz", X=features, y=values)
    monkeypatch.setenv("BESTARM_DATA", str(tmp_path))
    settings = {"file": "some.npz", "arm": "X", "value": "y"}
    plain = bench.instance("replay", settings).make(2, 1)
    assert plain.noise_variance is None
    scaled = bench.instance("replay", settings, scale="minmax", told=True, jitter=0.5).make(2, 1)
    assert scaled.noise_variance == pytest.approx(values.var(1).mean() + 0.5)
    assert (scaled.features.min(), scaled.features.max()) == (0.0, 1.0)
    with pytest.raises(UnknownNameError, match="scale"):
        bench.instance("replay", settings, scale="log").make(2, 1)
