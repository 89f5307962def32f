"""Suites: files that say what they mean, races that keep who may be best, sums that add up."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from bestarm import catalog
from bestarm.bench import race as races
from bestarm.bench import runner as engine
from bestarm.bench import suite as suites
from bestarm.bench import verdict as verdicts
from bestarm.bench.figures import draw_suite
from bestarm.bench.worlds import instance
from bestarm.cli import main
from bestarm.errors import InputError, UnknownNameError
from bestarm.simulate.policies import PolicyRef

TOY = {
    "name": "toy",
    "about": "two small contests",
    "seed": 3,
    "cells": [
        {"group": "a", "family": "s", "instance": "static", "params": {"K": 6, "Delta": 1.0}, "budget": 60},
        {"group": "b", "family": "f", "instance": "factorial", "params": {"factors": 2}, "budget_per_arm": 10},
    ],
}


def written(folder, **changes):
    path = folder / "toy.json"
    path.write_text(json.dumps({**TOY, **changes}))
    return path


def contest(group="a", K=6, budget=60):
    return suites.Contest(group, "f", instance("static", K=K), budget)


def outcome(group="a", K=6, left=(), **right):
    """An outcome of 1000 replications where each policy is right in the first so many."""
    correct = {name.replace("_", "-"): np.arange(1000) < n for name, n in right.items()}
    return verdicts.ContestOutcome(contest(group, K), correct, dict(left))


def verdict(*outcomes):
    return verdicts.Verdict(suites.Suite("toy", "", 0, tuple(o.contest for o in outcomes)), "judge", 1000, outcomes)


@pytest.mark.parametrize("name", suites.names())
def test_every_contest_of_a_suite_can_be_made(name):
    suite = suites.load(name)
    for one in suite.contests:
        why = races._entered(one, {}, "", True).skipped
        if why is not None:
            assert "BESTARM_DATA" in why, one  # the tables that are not shipped
            continue
        bandit = one.instance.make(3, 1)
        assert bandit.means.shape[0] == 3, one
        assert np.isfinite(bandit.means).all(), one
        assert np.ptp(bandit.means, axis=-1).min() > 0, one
        assert bandit.noise_variance is not None or one.instance.world == "replay", one
        assert one.budget > 0


HELD_OUT = [name for name in suites.names() if name.startswith("heldout")]
MET_BEFORE = {  # a cell that failed once is asked for again, and two with another budget; seeds differ
    "od(K=44, bend=cubic, d=5, strength=0.8)": ("fooled", "heldout-6"),
    "randomized(K=40, d=8, variance=6.0)": ("heldout-3", "heldout-7"),
    "functions(K=48, d=5, shape=cubic, variance=1.0)": ("heldout-5", "heldout-7"),
}


def test_suites_share_no_instance_but_those_with_a_reason_and_no_seed():
    every = [suites.load(name) for name in suites.names()]
    places = {}
    for suite in every:
        for one in suite.contests:
            places.setdefault(str(one.instance), set()).add(suite.name)
    assert {cell: tuple(sorted(names)) for cell, names in places.items() if len(names) > 1} == MET_BEFORE
    assert len({suite.seed for suite in every}) == len(every)
    assert 45 <= len(suites.load("default").contests) <= 60


def test_no_cell_is_held_out_twice():
    cells = [(c.instance, c.budget) for name in ("default", *HELD_OUT) for c in suites.load(name).contests]
    assert len(set(cells)) == len(cells)


@pytest.mark.parametrize("name", suites.names())
def test_suites_are_of_a_size_to_be_run(name):
    suite = suites.load(name)
    assert len(suite.contests) >= (7 if name == "fooled-tables" else 15)
    arms_and_budgets = [(one.instance.world, one.budget) for one in suite.contests]
    assert max(budget for world, budget in arms_and_budgets if world not in ("clicks", "factorial")) <= 4000
    assert max(budget for _, budget in arms_and_budgets) <= 12_800


def test_old_names_of_suites_are_understood_and_each_held_out_one_says_when_it_was_looked_at():
    for old, new in suites.ALIASES.items():
        assert suites.load(old) == suites.load(new)
        assert suites.load(old).name == new
    assert set(suites.ALIASES.values()) < set(HELD_OUT)
    days = [suites.load(name).looked_at or "not yet" for name in HELD_OUT]
    assert days == sorted(days)
    for name in set(suites.names()) - set(HELD_OUT):
        assert suites.load(name).looked_at is None


def test_limits_name_policies_that_exist():
    named = [policy for limit in races.LIMITS for policy in limit.policies]
    assert len(named) == len(set(named))
    assert set(named) | set(races.STAYING) <= set(catalog.names())


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ({"instance": "statik"}, "cell 1: unknown instance 'statik'"),
        ({"params": {"K": "many"}}, "cell 1: parameter K .* whole number"),
        ({"budget": None}, "cell 1 needs either a budget or a budget_per_arm"),
        ({"budget_per_arm": 5}, "cell 1 needs either a budget or a budget_per_arm"),
        ({"group": 3}, "cell 1 needs 'group', a text"),
        ({"policy": "uniform"}, "cell 1 has no 'policy'; it has group"),
    ],
)
def test_a_wrong_cell_is_named(tmp_path, cell, says):
    with pytest.raises(InputError, match=says):
        suites.load(written(tmp_path, cells=[{**TOY["cells"][0], **cell}]))


def test_a_wrong_suite_is_named(tmp_path):
    with pytest.raises(UnknownNameError, match="default"):
        suites.load("defalt")
    with pytest.raises(InputError, match="cannot be read"):
        suites.load(tmp_path / "no.json")
    with pytest.raises(InputError, match="needs 'seed'"):
        suites.load(written(tmp_path, seed="x"))
    with pytest.raises(InputError, match="no cells"):
        suites.load(written(tmp_path, cells=[]))
    with pytest.raises(InputError, match="cell 2 is the same as cell 1"):
        suites.load(written(tmp_path, cells=[TOY["cells"][0]] * 2))
    (tmp_path / "toy.json").write_text("{")
    with pytest.raises(InputError, match="not JSON"):
        suites.load(tmp_path / "toy.json")


def test_who_is_surely_worse_leaves_and_who_may_be_best_stays():
    race = outcome(judge=500, good=900, near=895, hopeless=600, gp_thompson=100)
    assert race.drop(("judge", *races.STAYING)) == ["hopeless"]
    assert race.left == {"hopeless": verdicts.Left(1000, "good")}
    assert race.drop(("judge", *races.STAYING)) == []


def test_a_small_but_certain_difference_is_no_reason_to_leave():
    race = outcome(good=900, near=893)  # 0.7 points behind, in the same replications
    assert race.drop(()) == []


def test_few_replications_are_no_reason_to_leave(rng):
    race = verdicts.ContestOutcome(contest(), {"one": rng.random(250) < 0.55, "two": rng.random(250) < 0.5})
    assert race.drop(()) == []


def test_the_best_rival_may_have_left_only_if_the_judge_beat_it():
    gone = {"early": verdicts.Left(1000, "judge"), "late": verdicts.Left(1000, "steady")}
    race = outcome(left=gone, judge=900, early=800, late=850, steady=700)
    assert race.best("judge") == "early"
    assert race.best("judge", ("late", "steady")) == "late"
    assert race.best("judge", ("nobody",)) is None


def test_differences_are_taken_where_both_ran():
    race = verdicts.ContestOutcome(contest(), {"long": np.arange(1000) < 250, "short": np.zeros(250, dtype=bool)})
    assert race.difference("long", "short")[0] == 1.0


def test_the_summary_adds_up():
    one = outcome(judge=900, alpha=800, beta=850, sequential_halving=500, sequential_halving_pooled=600)
    two = outcome(K=7, judge=500, alpha=525, beta=400, bayesgap_exp=450, gp_thompson=300)
    three = outcome("b", 8, judge=500, alpha=300, beta=600)
    rows = verdict(one, two, three).rows
    assert [row["rival"] for row in rows] == ["beta", "alpha", "beta"]
    assert [row["rival_difference"] for row in rows] == pytest.approx([0.05, -0.025, -0.1])
    assert [row["fixed"] for row in rows] == ["alpha", "alpha", "beta"]  # 1325 right in group a, beta 1250
    assert [row["halving"] for row in rows] == ["sequential-halving-pooled", None, None]
    assert rows[1]["process"] == "bayesgap-exp"
    assert rows[1]["process_difference"] == pytest.approx(0.05)
    first, second, overall = verdict(one, two, three).summary()
    assert (first["group"], second["group"], overall["group"]) == ("a", "b", "all")
    assert (first["contests"], first["won"], first["within_1_point"], first["within_3_point"]) == (2, 1, 1, 2)
    assert (first["within_1"], first["within_3"]) == (1, 2)  # −2.5 ± 0.97 does not reach −1
    assert first["mean"] == pytest.approx(0.0125)
    assert first["worst"] == pytest.approx(-0.025)
    assert first["worst_cell"] == str(two.contest)
    assert first["fixed_mean"] == pytest.approx((0.1 - 0.025) / 2)
    assert (overall["contests"], overall["won"], overall["within_3"]) == (3, 1, 2)
    assert overall["worst"] == pytest.approx(-0.1)
    assert overall["halving_mean"] == pytest.approx(0.3)
    assert (overall["failed"], overall["skipped"]) == (0, 0)


def test_a_contest_counts_as_within_when_its_interval_reaches():
    place = np.arange(240)
    ours = place % 2 == 0
    theirs = (place % 4 < 2) | (place < 12)  # right in six more of 240, and in others of the rest
    correct = {"judge": ours, "rival": theirs}
    summary = verdict(verdicts.ContestOutcome(contest(), correct)).summary()[-1]
    assert summary["mean"] == pytest.approx(-6 / 240)
    assert (summary["within_1"], summary["within_1_point"], summary["won"]) == (1, 0, 0)


def test_what_did_not_run_is_told():
    skipped, failed = verdicts.ContestOutcome(contest(), skipped="no data"), outcome(K=7, judge=500, alpha=400)
    failed.failed["slow"] = "it is slow"
    lost = verdicts.ContestOutcome(
        contest(K=8), {"alpha": np.ones(10)}, failed={"judge": "it broke", "slow": "it is slow"}
    )
    done = verdict(skipped, failed, lost)
    told = {row["what"]: (row["contests"], row["why"]) for row in done.not_run()}
    assert told == {str(skipped.contest): (1, "no data"), "judge": (1, "it broke"), "slow": (2, "it is slow")}
    summary = done.summary()[-1]
    assert (summary["contests"], summary["failed"], summary["skipped"]) == (1, 1, 1)


def test_policies_are_fit_for_a_contest_or_not():
    refs = {name: PolicyRef(name) for name in ("gse-log", "peace", "uniform")}
    small, large = (suites.Contest("a", "f", instance("static", K=k), 100) for k in (8, 64))
    clicks = suites.Contest("a", "f", instance("factorial", factors=3), 100)
    assert set(races._entered(small, refs, "uniform", True).failed) == {"gse-log"}
    assert set(races._entered(large, refs, "uniform", True).failed) == {"gse-log", "peace"}
    assert set(races._entered(large, refs, "uniform", False).failed) == {"gse-log"}
    assert set(races._entered(clicks, refs, "uniform", True).failed) == set()
    assert set(races._entered(large, refs, "peace", True).failed) == {"gse-log"}
    long = suites.Contest("a", "f", instance("static", K=8), 4000)
    slow = {"xy-adaptive": PolicyRef("xy-adaptive")}
    assert "4,000 pulls" in races._entered(long, slow, "uniform", True).failed["xy-adaptive"]
    assert not races._entered(small, slow, "uniform", True).failed
    assert not races._entered(long, slow, "uniform", False).failed  # it was asked for by name
    absent = suites.Contest("a", "f", instance("replay", file="no.npz"), 100)
    assert "no.npz" in races._entered(absent, refs, "uniform", True).skipped


POLICIES = ["uniform", "sequential-halving", "gp-thompson", "linucb-disjoint"]


def test_a_race_measures_what_a_plain_run_does_and_resumes(tmp_path, monkeypatch):
    suite = suites.load(written(tmp_path))
    asked = []
    original = engine.run

    def spy(cells, *args, **kwargs):
        asked.append(len(list(cells)))
        return original(cells, *args, **kwargs)

    monkeypatch.setattr(races, "run", spy)
    done = races.judge(suite, "gse-lin-fwg", POLICIES, 500, n_jobs=1, cache=tmp_path / "out")
    assert asked[0] == 2 * 5
    assert asked[1] == 2 * 5 - sum(len(o.left) for o in done.outcomes)
    for one in done.outcomes:
        assert len(one.correct["gse-lin-fwg"]) == len(one.correct["gp-thompson"]) == 500
        assert all(len(one.correct[p]) == left.after for p, left in one.left.items())
    cell = done.outcomes[0].contest.cell(PolicyRef("gse-lin-fwg"))
    plain = engine.run([cell], 500, suite.seed, 1)
    np.testing.assert_array_equal(
        done.outcomes[0].correct["gse-lin-fwg"], np.concatenate([c.correct for c in plain.chunks[cell.key]])
    )
    monkeypatch.setattr(engine, "run_chunk", None)
    again = races.judge(suite, "gse-lin-fwg", POLICIES, 500, n_jobs=1, cache=tmp_path / "out")
    assert again.rows == done.rows


def test_a_rival_is_chosen_by_the_first_replications_and_measured_on_the_others(tmp_path, monkeypatch):
    suite = suites.load(written(tmp_path))
    plain = races.judge(suite, "gse-lin-fwg", POLICIES, 500, n_jobs=1)
    asked = []
    original = engine.run

    def spy(cells, replications, **kwargs):
        asked.append((len(list(cells)), replications))
        return original(cells, replications, **kwargs)

    monkeypatch.setattr(races, "run", spy)
    done = races.judge(suite, "gse-lin-fwg", POLICIES, 1000, n_jobs=1, cache=tmp_path / "out", rival_from=500)
    assert asked[-1] == (2 * 2, 1000)
    assert [count for _, count in asked] == [250, 500, 1000]
    for one, before, row in zip(done.outcomes, plain.outcomes, done.rows, strict=True):
        assert one.rival == before.best("gse-lin-fwg")
        assert {policy for policy, right in one.correct.items() if len(right) > 500} == {"gse-lin-fwg", one.rival}
        judged, rival = (one.correct[policy][500:] for policy in ("gse-lin-fwg", one.rival))
        assert len(judged) == len(rival) == row["replications"] == 500
        assert (row["rival"], row["accuracy"], row["rival_accuracy"]) == (one.rival, judged.mean(), rival.mean())
        assert row["rival_difference"] == pytest.approx(judged.mean() - rival.mean())
    assert (done.replications, done.rival_from) == (1000, 500)
    monkeypatch.setattr(engine, "run_chunk", None)
    again = races.judge(suite, "gse-lin-fwg", POLICIES, 1000, n_jobs=1, cache=tmp_path / "out", rival_from=500)
    assert again.rows == done.rows


def test_a_rival_that_fails_where_it_is_measured_gives_way_to_the_next(tmp_path, monkeypatch):
    suite = suites.load(written(tmp_path))
    first = races.judge(suite, "gse-lin-fwg", POLICIES, 500, n_jobs=1, rival_from=250).outcomes[0]
    original = engine.run_chunk

    def breaks(cell, seed, number, size):
        if number and str(cell.policy) == first.rival:
            return engine.Chunk(cell.key, number, np.zeros(0, bool), np.zeros(0), np.zeros(0), 0.0, "it broke", "Error")
        return original(cell, seed, number, size)

    monkeypatch.setattr(engine, "run_chunk", breaks)
    done = races.judge(suite, "gse-lin-fwg", POLICIES, 500, n_jobs=1, rival_from=250)
    assert done.outcomes[0].rival not in (None, first.rival)
    assert "it broke" in done.outcomes[0].failed[first.rival]
    assert len(done.outcomes[0].correct[done.outcomes[0].rival]) == 500


def test_a_rival_is_measured_on_something():
    for count in (500, 600):
        with pytest.raises(InputError, match="must leave replications to measure with"):
            races.judge(suites.load("default"), "uniform", ["uniform"], 500, rival_from=count)
    with pytest.raises(InputError, match="rival_from"):
        races.judge(suites.load("default"), "uniform", ["uniform"], 500, rival_from=0)


def test_a_contest_fails_where_the_whole_interval_is_below_two_points():
    three = outcome(judge=900, alpha=940), outcome(K=7, judge=900, alpha=925), outcome(K=8, judge=900)
    assert [row["fails"] for row in verdict(*three).rows] == [True, False, None]  # 4 ± 1.2, 2.5 ± 1; no rival
    summary = verdict(*three).summary()[-1]
    assert (summary["failing"], summary["failing_by_chance"]) == (1, 0.05)
    late = outcome(judge=500, alpha=0)
    late.correct["alpha"] = np.arange(1000) < 501
    late.correct["alpha"][:490] = False  # so it was when it was chosen
    late.rival, late.rival_from = "alpha", 490
    assert verdict(late).rows[0]["rival_difference"] == pytest.approx(-1 / 510)


def test_an_interval_ends_below_the_true_difference_one_time_in_forty(rng):
    """2,000 contests of 1,000 paired replications; six standard deviations of the share are 2.1 points."""
    ends = []
    for _ in range(2000):
        luck, right = rng.random(1000), rng.random(1000) < 0.5
        rival = np.where(luck < 0.8, right, luck < 0.91)  # right in .11 of all where the judge is in .10
        ends.append(verdicts.ContestOutcome(contest(), {"judge": right, "rival": rival}).difference("judge", "rival"))
    assert np.mean([middle for middle, _, _ in ends]) == pytest.approx(-0.01, abs=0.002)
    assert np.mean([high < -0.01 for _, _, high in ends]) == pytest.approx(verdicts.BY_CHANCE, abs=0.021)


def test_the_command_prints_and_keeps_a_verdict(tmp_path):
    path = written(tmp_path)
    words = ["bench", "--suite", str(path), "--judge", "gse-lin-fwg", "--replications", "250", "--jobs", "1"]
    words += [word for policy in POLICIES for word in ("--policy", policy)]
    done = CliRunner().invoke(main, [*words, "-o", str(tmp_path / "out"), "-f", "json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert [row["group"] for row in said["contests"]] == ["a", "b"]
    assert [row["group"] for row in said["summary"]] == ["a", "b", "all"]
    kept = {file.name for file in (tmp_path / "out").iterdir()}
    assert kept >= {"blocks.jsonl", "table.csv", "table.json", "table.parquet", "summary.json", "distance.png"}
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["policy"] == "gse-lin-fwg"
    assert said["summary"][-1]["failing_by_chance"] == 0.05
    split = CliRunner().invoke(main, [*words, "--replications", "500", "--rival-from", "250"])
    assert "chosen by the first 250 replications, lies below -2 points" in split.stdout
    shown = CliRunner().invoke(main, [*words, "-o", str(tmp_path / "out")])
    assert "of 2 contests fail" in shown.stdout
    assert "rival_difference" in shown.stdout
    assert "within_3" in shown.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["static", "--suite", "default"], "INSTANCE cannot be given with --suite"),
        (["--suite", "default", "--budget", "10"], "--budget cannot be given with --suite"),
        (["--suite", "nothing"], "unknown suite 'nothing'"),
        (["--suite", "default", "--judge", "nobody"], "unknown policy 'nobody'"),
        (["--budget", "10", "--policy", "uniform"], "name an INSTANCE"),
        (["static", "--budget", "10"], "name at least one --policy"),
        (["static", "--budget", "10", "--policy", "uniform", "--judge", "uniform"], "--judge is for --suite"),
        (["static", "--budget", "10", "--policy", "uniform", "--rival-from", "250"], "--rival-from is for --suite"),
    ],
)
def test_wrong_words_are_named(words, says):
    done = CliRunner().invoke(main, ["bench", *words])
    assert done.exit_code != 0
    assert says in done.output


def test_the_figure_has_a_bar_a_contest():
    canvas = draw_suite(verdict(outcome(judge=900, a=800), outcome("b", 7, judge=1, a=9)).rows, "toy")
    assert [ax.get_title(loc="left") for ax in canvas.axes] == ["a", "b"]
    assert [len(ax.patches) for ax in canvas.axes] == [1, 1]
