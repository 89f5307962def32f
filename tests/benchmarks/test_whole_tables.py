"""Whole tables: made up as they say, the same for everyone, and a rival from outside that spends what it has."""

import csv

import numpy as np
import pytest

from benchmarks import gp_thompson, whole_tables, whole_worlds
from bestarm.core import Pulls

MADE = {**whole_worlds.SMOOTH, **whole_worlds.OTHERS}


def small(rng):
    """Sixty points of a plain, and a hill."""
    x = whole_worlds.lattice(10, 6)
    off = x - rng.random(2)
    return x, np.exp(-np.vecdot(off, off))


SMALL = whole_worlds.WholeTable("small", "smooth", small)


@pytest.mark.parametrize("name", list(MADE))
def test_a_table_is_drawn_anew_by_its_seed_and_has_spread_1(name):
    table = whole_worlds.WholeTable(name, "made", MADE[name])
    one, again, other = (table.draw(seed) for seed in (3, 3, 4))
    bandit = one[0]
    assert bandit.features.shape[:2] == bandit.means.shape
    assert bandit.means.shape[0] == 1
    assert 600 <= bandit.means.shape[1] <= 16_000
    assert (bandit.means.mean(), bandit.means.std()) == pytest.approx((0.0, 1.0), abs=1e-9)
    assert bandit.noise_variance == pytest.approx((0.1 * np.ptp(bandit.means)) ** 2)
    np.testing.assert_array_equal(bandit.means, again[0].means)
    np.testing.assert_array_equal(bandit.features, again[0].features)
    assert not np.array_equal(bandit.means, other[0].means)
    pulls, none = Pulls(np.arange(9)[None], np.full((1, 9), 2)), np.zeros(bandit.means.shape, int)
    np.testing.assert_array_equal(one[1].pull(pulls, none).sums, again[1].pull(pulls, none).sums)


def test_a_lattice_has_every_setting_once():
    x = whole_worlds.lattice(3, 2)
    assert {tuple(row) for row in x} == {(a, b) for a in (0.0, 0.5, 1.0) for b in (0.0, 1.0)}
    assert len(x) == 6


def test_lines_are_lines_and_switches_are_not_quite():
    for dimension in (5, 20):
        x, means = whole_worlds.line(np.random.default_rng(1), dimension)
        assert np.linalg.lstsq(x, means)[1].max() < 1e-9
    x, means = whole_worlds.switches(np.random.default_rng(1))
    effects = x.T @ means / len(x)
    assert np.std(means - x @ effects) == pytest.approx(1.5)


def test_training_diverges_in_one_place_and_the_rest_is_a_valley():
    means = whole_worlds.tuning(np.random.default_rng(1))[1]
    assert means.min() == pytest.approx(-2.5)
    assert 0.05 < np.mean(means == means.min()) < 0.6


def test_what_is_absent_or_of_another_size_is_told(tmp_path):
    found, absent = whole_worlds.tables(None)
    assert [table.name for table in found] == list(MADE)
    assert "BESTARM_DATA names no folder" in absent[0]
    (tmp_path / "kernels").mkdir()
    np.savez(tmp_path / "kernels" / "few.npz", X=np.ones((5, 2)), times_ms=np.ones((5, 3)))
    assert "few.npz: it is no table of 600 to 16000 arms" in whole_worlds.tables(str(tmp_path))[1][0]
    x, times = np.random.default_rng(1).random((700, 2)), np.random.default_rng(2).random((700, 3))
    np.savez(tmp_path / "kernels" / "convolution_A100.npz", X=x, times_ms=times)
    first = whole_worlds.tables(str(tmp_path))[0][0]
    assert (first.name, first.group) == ("convolution A100", "kernels")
    assert np.sort(first.draw(1)[0].means[0]) == pytest.approx(np.sort(-times[:, 1:].mean(-1)))


def test_the_rival_spends_its_budget_in_batches_and_finds_a_hill():
    right = 0
    for seed in range(5):
        bandit, stream = SMALL.draw(seed)
        asked = []

        class Spy:
            features = stream.features

            def pull(self, pulls, taken, stream=stream, asked=asked):
                asked.append((int(pulls.arms[0, 0]), int(taken[0, pulls.arms[0, 0]])))
                return stream.pull(pulls, taken)

        arm = gp_thompson.search(Spy(), 35, np.random.default_rng(seed))
        right += bool(bandit.regret(np.array([arm]))[0] < 0.3)  # three standard deviations of the noise
        assert len(asked) == len(set(asked)) == 35  # each pull of an arm is its next
        assert len({arm for arm, _ in asked[:10]}) == 10
    assert right == 5


def test_draws_are_of_the_mean_and_not_of_the_noise():
    """The same arm pulled 400 times at noise 1: its mean is known to 1/20, and its draws scatter about so."""
    rng = np.random.default_rng(1)
    x = np.repeat(np.array([[-1.0], [1.0]]), 400, axis=0)
    process = gp_thompson.fitted(x, np.where(x[:, 0] > 0, 1.5, 0.0) + rng.standard_normal(800))
    assert process.kernel_.k2.noise_level * process._y_train_std**2 == pytest.approx(1.0, rel=0.25)
    two = np.array([[-1.0], [1.0]])
    drawn = [gp_thompson.thompson(process, two, 1, rng)[0] for _ in range(200)]
    assert set(drawn) == {1}  # with the noise of one pull the other would be drawn 28 of 200 times


def test_the_program_keeps_every_draw_and_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(whole_tables, "tables", lambda data: ([SMALL], ["nothing: it was never there"]))
    words = ["--policy", "plain=uniform", "--gp", "--draws", "2", "--budget", "20", "-o", str(tmp_path / "rows.csv")]
    whole_tables.main(words)
    said = capsys.readouterr().out
    assert "left out: nothing: it was never there" in said
    assert "plain" in said
    rows = list(csv.DictReader((tmp_path / "rows.csv").read_text().splitlines()))
    assert tuple(rows[0]) == whole_tables.COLUMNS
    assert sorted((row["policy"], row["seed"]) for row in rows) == sorted(
        (name, str(seed)) for name in ("plain", whole_tables.GP) for seed in range(2)
    )
    monkeypatch.setattr(whole_tables, "measured", None)
    whole_tables.main(words)
    assert capsys.readouterr().out == said
    other = tmp_path / "other.csv"
    whole_tables.main(["-o", str(other), "--with", str(tmp_path / "rows.csv")])
    assert "plain" in capsys.readouterr().out
    assert not other.exists()


def test_a_draw_has_one_row_whoever_runs_it():
    one, again = (whole_tables.measured(SMALL, "gp", None, 20, 1) for _ in range(2))
    assert {**one, "seconds": 0} == {**again, "seconds": 0}
    assert one["top"] == (one["rank"] == 0)  # of 60 arms the best alone are 1 %
    assert 0 <= one["regret"] <= 1


def test_policies_have_labels_and_rounds():
    some = whole_tables.policies(["auto", "new=auto:hedge=0.5", "sequential-halving"], None)
    assert list(some) == ["auto", "new", "sequential-halving"]
    assert some["new"].hedge == 0.5
    assert list(whole_tables.policies(["auto"], 10)) == ["auto", "auto, 10 rounds"]
    with pytest.raises(whole_tables.InputError, match="sequential-halving cannot be asked in rounds"):
        whole_tables.policies(["sequential-halving"], 10)


def test_differences_are_paired_by_draw():
    rows = {}
    for seed, (gp, ours) in enumerate([(0, 1), (1, 1), (0, 0), (0, None)]):
        for name, top in ((whole_tables.GP, gp), ("auto", ours)):
            if top is not None:
                rows["small", name, 50, seed] = {"top": top, "regret": 1.0 - top}
    gp, ours = whole_tables.compared(rows, {"all": {"small"}})
    assert (gp["policy"], gp["draws"], gp["top"]) == (whole_tables.GP, 4, 0.25)
    assert (ours["draws"], ours["paired"], ours["top_difference"]) == (3, 3, pytest.approx(1 / 3))
    assert ours["regret_difference"] == pytest.approx(-1 / 3)
    ours, gp = whole_tables.compared(rows, {"all": {"small"}}, "auto")
    assert (gp["draws"], gp["paired"], gp["top_difference"]) == (4, 3, pytest.approx(-1 / 3))
