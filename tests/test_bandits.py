"""The worlds: totals that have the law of single rewards, tapes and streams that give everyone the same."""

import numpy as np
import pytest
from scipy import stats

from bestarm import datasets, instances
from bestarm.bandits import Bandit, Bernoulli, Gaussian, Poisson, Stream, Tape
from bestarm.core import Pulls
from bestarm.errors import InputError

NOISES = [Gaussian(4.0), Bernoulli(), Poisson()]


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_totals_have_the_law_of_single_rewards(noise, rng):
    many, times = 40_000, 5
    means = np.full((many, 1), 0.3)
    bandit = Bandit(np.ones((many, 1, 1)), means, noise)
    pulls = Pulls(np.zeros((many, 1), dtype=int), np.full((many, 1), times))
    quick = bandit.pull(pulls, None, rng)
    slow = Tape.draw(bandit, times, rng).pull(pulls, np.zeros((many, 1), dtype=int))
    for one, two in ((quick.sums, slow.sums), (quick.squares, slow.squares)):
        assert stats.ks_2samp(one[:, 0], two[:, 0]).pvalue > 1e-6
    joint = (
        np.corrcoef(quick.sums[:, 0], quick.squares[:, 0])[0, 1]
        - np.corrcoef(slow.sums[:, 0], slow.squares[:, 0])[0, 1]
    )
    assert abs(joint) < 0.05


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_a_stream_has_the_law_of_its_noise(noise):
    many = 40_000
    bandit = Bandit(np.ones((many, 1, 1)), np.full((many, 1), 0.3), noise)
    pulls = Pulls(np.zeros((many, 1), dtype=int), np.ones((many, 1), dtype=int))
    rewards = Stream(bandit, 7).pull(pulls, np.zeros((many, 1), dtype=int)).sums[:, 0]
    others = noise.rewards(np.full(many, 0.3), 1, np.random.default_rng(1))[:, 0]
    assert stats.ks_2samp(rewards, others).pvalue > 1e-6
    assert abs(np.corrcoef(rewards[:-1], rewards[1:])[0, 1]) < 5 / np.sqrt(many)


def test_poisson_quantiles_are_exact():
    uniform = np.array([0.001, 0.2, 0.5, 0.74, 0.9, 0.9999])
    for mean in (0.1, 1.0, 3.7, 40.0):
        np.testing.assert_array_equal(Poisson().at(uniform, np.full(6, mean)), stats.poisson(mean).ppf(uniform))


@pytest.mark.parametrize("make", [lambda b: Tape.draw(b, 60, np.random.default_rng(1)), lambda b: Stream(b, 3)])
def test_everyone_meets_the_same_rewards_in_any_portions(make, rng):
    bandit = instances.randomized(6, 3, replications=4, rng=rng)
    source, none = make(bandit), np.zeros((4, 6), dtype=int)
    arms = np.broadcast_to(np.arange(6), (4, 6))
    whole = source.pull(Pulls(arms, np.full((4, 6), 5)), none)
    first = source.pull(Pulls(arms, np.full((4, 6), 2)), none)
    rest = source.pull(Pulls(arms[:, ::-1], np.full((4, 6), 3)), none + 2)
    np.testing.assert_allclose(first.sums + rest.sums[:, ::-1], whole.sums)
    np.testing.assert_allclose(first.squares + rest.squares[:, ::-1], whole.squares)
    one = source.pull(Pulls(arms[:, :1], np.ones((4, 1), dtype=int)), none + 2)
    two = source.pull(Pulls(arms[:, :1], np.full((4, 1), 2)), none + 1)
    three = source.pull(Pulls(arms[:, :1], np.ones((4, 1), dtype=int)), none + 1)
    np.testing.assert_allclose(one.sums + three.sums, two.sums)


def test_shuffling_keeps_arms_and_means_together(rng):
    bandit = instances.adaptive(8, replications=50)
    moved = bandit.shuffled(rng)
    np.testing.assert_array_equal(moved.features[..., 0], moved.means)
    assert len(set(np.argmax(moved.means, axis=-1).tolist())) > 3


def test_equal_means_count_as_right():
    bandit = Bandit(np.eye(3), np.array([1.0, 1.0, 0.0]), Gaussian(1.0))
    assert bandit.correct(np.array(0))
    assert bandit.correct(np.array(1))
    assert not bandit.correct(np.array(2))


def test_means_must_match_the_arms():
    with pytest.raises(InputError, match="one for each arm"):
        Bandit(np.eye(3), np.zeros(2), Gaussian(1.0))


def test_the_papers_instances(rng):
    random = instances.randomized(32, 10, replications=20, rng=rng)
    gaps = np.sort(random.means, axis=-1)
    x = random.features
    closest = np.max(x @ np.swapaxes(x, -1, -2) - 2 * np.eye(32), axis=(-2, -1))
    np.testing.assert_allclose(gaps[:, -1] - gaps[:, -2], 0.98 * (1 - closest), rtol=1e-6)
    assert instances.adaptive(16).means.max() - np.sort(instances.adaptive(16).means)[-2] == pytest.approx(
        1 - np.cos(0.1)
    )
    cars = datasets.automobile(replications=2)
    assert cars.features.shape == (2, 205, 5)
    assert cars.features.min() == cars.means.min() == 0
    assert cars.features.max() == cars.means.max() == 1
    assert datasets.automobile(16, replications=3, rng=rng).features.shape == (3, 16, 5)


def test_recorded_repeats_are_drawn_from_their_arm(rng):
    values = (np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0]), np.array([-5.0]))
    bandit = datasets.Repeats(np.eye(3), values).bandit(2, replications=50, rng=rng).shuffled(rng)
    pulls = Pulls(np.broadcast_to(np.arange(2), (50, 2)), np.full((50, 2), 400))
    got = Stream(bandit, 1).pull(pulls, np.zeros((50, 2), dtype=int)).sums / 400
    scatter = np.where(bandit.means == 2.0, 0.82, np.where(bandit.means == 15.0, 5.0, 1e-9)) / 20
    assert (np.abs(got - bandit.means) < 6 * scatter).all()


def test_lowered_rewards_are_lowered(rng):
    bandit = instances.logistic(4, 2, replications=3, rng=rng)
    low = bandit.lowered(0.5)
    pulls = Pulls(np.broadcast_to(np.arange(4), (3, 4)), np.full((3, 4), 7))
    none = np.zeros((3, 4), dtype=int)
    one, two = Stream(bandit, 1).pull(pulls, none), Stream(low, 1).pull(pulls, none)
    np.testing.assert_allclose(two.sums, one.sums - 3.5)
    np.testing.assert_allclose(two.squares, np.full((3, 4), 7 * 0.25))


def test_the_motor_table_is_read_or_asked_for(tmp_path, monkeypatch, rng):
    monkeypatch.delenv("BESTARM_DATA", raising=False)
    with pytest.raises(InputError, match="BESTARM_DATA"):
        datasets.motor()
    names = list(datasets.MOTOR_RANGES)
    rows = rng.standard_normal((30, 12))
    table = tmp_path / "motor_small.csv"
    table.write_text("\n".join([",".join(names), *(",".join(map(str, row)) for row in rows)]))
    monkeypatch.setenv("BESTARM_DATA", str(tmp_path))
    bandit = datasets.motor(8, replications=3, rng=rng)
    assert bandit.features.shape == (3, 8, 11)
    low, high = datasets.MOTOR_RANGES["pm"]
    known = (rows[:, names.index("pm")] - low) / (high - low)
    assert np.isin(bandit.means.round(9), known.round(9)).all()
    (tmp_path / "motor_bad.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="no column"):
        datasets.motor(path=str(tmp_path / "motor_bad.csv"))


def test_features_in_another_order_are_the_same_arms(rng):
    bandit = instances.adaptive(6, replications=50)
    turned = bandit.turned(rng)
    np.testing.assert_array_equal(turned.means, bandit.means)
    gram = [b.features @ np.swapaxes(b.features, -1, -2) for b in (bandit, turned)]
    np.testing.assert_allclose(*gram, atol=1e-12)
    assert len(np.unique(turned.features.argmax(-1)[:, 0])) == 5  # the first arm's feature is anywhere
