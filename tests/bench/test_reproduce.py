"""The paper by one command: figures are data, verdicts follow from outcomes, the report is whole."""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

from bestarm import bench, catalog, instances, play
from bestarm.bench import claims, panels, points, published
from bestarm.bench.evidence import CANNOT, FAILS, HOLDS, NOISE, NOT_RUN, Found, SettingView, sure
from bestarm.bench.judges import Always, AtLeast, Compare, Falls, MostCells, MostlyBest, Ranked, Sensitive, Several
from bestarm.bench.paper import (
    BAYES,
    BEST,
    CODE,
    FIGURES,
    FWG,
    KEPT,
    LGREEDY,
    MISSING,
    OD,
    PEACE,
    PRINTED,
    SETTINGS,
    UCB,
)
from bestarm.bench.paper_report import Made, by_chance
from bestarm.bench.reproduce import measured, reproduce
from bestarm.bench.runner import Results
from bestarm.bench.table import read_csv
from bestarm.cli import main
from bestarm.errors import OverspentError, UnknownNameError
from bestarm.simulate.chunks import Chunk

COMMITTED = Path(__file__).parents[2] / "docs" / "reproduction"
SMALL = {name: FIGURES[name] for name in ("static", "corner")}


def fake(name, chance, replications=400):
    """Results as if each label were right with a given chance: all in the same share of replications, in turn."""
    figure = FIGURES[name]
    chunks = {}
    for setting, players in figure.players.items():
        for label in players:
            for value in figure.shown(label):
                for panel in figure.panels:
                    right = np.arange(replications) * 0.618 % 1 < chance(label, value)
                    cell = figure.cell(setting, panel, value, label)
                    pulls = np.full(replications, cell.budget)
                    chunks[cell.key] = (Chunk(cell.key, 0, right, 1.0 - right, pulls, 1.0),)
    return Results(tuple(figure.cells()), 1, replications, chunks, {})


def verdict(judge, name, chance, setting=BEST):
    """What a judge says of faked results of one figure."""
    return judge(SettingView({name: FIGURES[name]}, {name: fake(name, chance)}, setting)).verdict


# ------------------------------------------------------------------------------------------------ figures


def test_every_figure_names_policies_and_worlds_that_exist():
    for figure in FIGURES.values():
        assert all(cell.budget > 0 for cell in figure.cells())
        assert len(figure.cells()) == len({cell.key for cell in figure.cells()})
        assert len(figure.cells(True)) + len(figure.cells(False)) == len(figure.cells())
        for players in figure.players.values():
            assert not players or all(published.player(text).build() for text in players.values())
            assert figure.hero in players


def test_what_settings_share_is_run_once():
    static = FIGURES["static"]
    cells = {setting: {static.cell(setting, static.panels[0], 0.1, label).key for label in static.players[setting]}
             for setting in SETTINGS}  # fmt: skip
    assert cells[PRINTED] & cells[BEST]
    assert not cells[CODE] & (cells[PRINTED] | cells[BEST])  # another variance: never averaged with the text's


def test_only_the_published_codes_roundings_overspend():
    for text in ("gse-lin-fwg-overspent", "gse-log-fwg-overspent"):
        binary = "log" in text
        bandit = (
            instances.logistic(8, replications=20, rng=1) if binary else instances.randomized(replications=20, rng=1)
        )
        policy = published.player(text).build()
        run = play(policy, bandit, published.budget_of(text, 160), 1)
        assert run.counts.sum(-1).max() > 160
        with pytest.raises(OverspentError):
            play(policy.policy, bandit, 160, 1)
    assert published.budget_of("gse-lin-fwg", 160) == 160


def test_the_published_od_linbai_takes_the_least_of_two_shares():
    stages = published.EarlySum().stages(64, 100, lambda: 10)
    plain = [pulls for pulls, _ in published.YangTan().shares(64, 10, 100)]
    assert [stage.keep for stage in stages] == [5, 3, 2, 1]
    assert all(stage.pulls == min(pulls + 2 / 4, 25) for stage, pulls in zip(stages, plain, strict=True))


def test_raw_rewards_are_a_matter_of_the_figure():
    raw, plain = published.player("raw gse-lin"), published.player("gse-lin")
    assert not raw.entry.centred
    assert plain.entry.centred
    assert raw.identity != plain.identity
    assert raw.build() == plain.build()


def test_who_is_told_the_variance_is_found_by_keeping_it_back():
    assert [published.told(text) for text in ("bayesgap-lin", "linucb", "linucb-li2010", "gse-lin", "peace")] == [
        True, True, False, False, False]  # fmt: skip
    assert published.told("lingape-greedy-azizi2021:noise_variance=100")


def test_every_variant_within_the_budget_is_an_entry():
    for figure in FIGURES.values():
        for text in {text for players in figure.players.values() for text in players.values()}:
            name = text.removeprefix(published.RAW).partition(":")[0]
            assert name in catalog.ENTRIES or name in published.LENDING or name in published.OTHERS


# ----------------------------------------------------------------------------------------------- evidence


def test_budgets_share_their_worlds_so_their_differences_are_not_independent():
    results = fake("adaptive", lambda label, value: 0.7 if label == FWG else 0.5)
    view = SettingView(FIGURES, {"adaptive": results}, BEST)
    one = view.difference([("adaptive", 0, 16)], FWG, OD)
    same = view.difference([("adaptive", p, 16) for p in range(3)], FWG, OD)  # three times the same numbers
    other = view.difference([("adaptive", 0, k) for k in (8, 16, 32)], FWG, OD)
    assert same.error == pytest.approx(one.error)
    assert other.error == pytest.approx(one.error / 3**0.5)
    assert one.mean == pytest.approx(0.2, abs=0.01)
    assert one.replications == 400


def test_no_interval_is_empty():
    results = fake("corner", lambda label, value: 1.0)
    lead = SettingView(FIGURES, {"corner": results}, BEST).difference([("corner", 0, 6)], OD, FWG)
    assert lead.mean == 0
    assert 0 < lead.error < 0.01


def test_beside_a_rival_that_keeps_its_data_gse_keeps_its_own():
    view = SettingView(FIGURES, {}, BEST)
    assert view.fair(FWG, UCB) == (KEPT, UCB)
    assert view.fair(UCB, FWG) == (UCB, KEPT)
    assert view.fair(FWG, OD) == (FWG, OD)
    assert SettingView(FIGURES, {}, PRINTED).fair(FWG, UCB) == (FWG, UCB)


def test_intervals_that_hold_together_are_wider():
    assert sure(1) == pytest.approx(1.96, abs=1e-3)
    assert sure(1) < sure(10) < sure(1000) < 5


# ----------------------------------------------------------------------------------------------- verdicts


@pytest.mark.parametrize(("good", "bad", "told"), [(0.9, 0.5, HOLDS), (0.5, 0.9, FAILS), (0.7, 0.7, NOISE)])
def test_better_is_surely_better(good, bad, told):
    assert verdict(Compare("corner", OD, FWG), "corner", lambda label, v: good if label == OD else bad) == told


def test_the_best_has_nobody_surely_ahead():
    def chance(label, value):
        return {UCB: 0.8, BAYES: 0.75}.get(label, 0.6)

    assert verdict(Ranked("static", UCB), "static", chance) == HOLDS
    assert verdict(Ranked("static", BAYES), "static", chance) == FAILS
    assert verdict(Ranked("static", BAYES, 2), "static", chance) == HOLDS
    assert verdict(Ranked("static", FWG, 2), "static", chance) == FAILS


def test_a_trend_is_ones_own():
    assert verdict(Falls("randomized", OD), "randomized", lambda label, k: 0.9 - 0.1 * np.log2(k / 8)) == HOLDS
    assert (
        verdict(Falls("randomized", OD), "randomized", lambda label, k: 0.4 if label == OD else 0.9 - k / 400) == NOISE
    )


def test_always_and_never_look_at_every_cell():
    def but_one(label, value):
        return 0.9 if label == PEACE and value == 16 else 0.8 if label == KEPT else 0.5

    assert verdict(Always(("adaptive",), FWG, PEACE, strict=False), "adaptive", but_one) == FAILS
    assert verdict(AtLeast(("adaptive",), FWG, PEACE), "adaptive", but_one) == HOLDS  # on average it is
    assert verdict(MostCells(("adaptive",), FWG, PEACE), "adaptive", but_one) == HOLDS
    assert verdict(Always(("adaptive",), FWG, LGREEDY), "adaptive", but_one) == HOLDS


def test_most_counts_cells_and_several_counts_policies():
    few = {BAYES, UCB}
    ahead = lambda label, value: 0.9 if label in few else 0.5  # noqa: E731
    assert verdict(Several("static", PEACE, 3), "static", ahead) == FAILS
    assert verdict(Several("static", PEACE, 2), "static", ahead) == HOLDS
    assert verdict(MostlyBest(("static",), FWG), "static", ahead) == FAILS
    assert verdict(MostlyBest(("static",), UCB), "static", ahead) == HOLDS


def test_kernels_matter_where_they_differ():
    assert verdict(Sensitive("kernels"), "kernels", lambda label, value: 0.5) == FAILS
    assert verdict(Sensitive("kernels"), "kernels", lambda label, value: 0.9 if label == "linear" else 0.5) == HOLDS


def test_what_cannot_be_had_is_a_dash_with_its_reason():
    view = SettingView(FIGURES, {"static": fake("static", lambda label, value: 0.5)}, CODE)
    found = claims._judged(Compare("static", FWG, PEACE), view)
    assert found == Found(CANNOT, MISSING[CODE, PEACE])


def test_sentences_are_judged_wherever_their_figures_were_run(monkeypatch):
    monkeypatch.setattr(claims, "sure", lambda count: 4.0)
    results = {name: fake(name, lambda label, value: 0.5, 50) for name in FIGURES if name != "od"}
    judged = claims.judge_all(results)
    lacking = [c.sentence.text for c in judged if not c.ran]
    assert all("OD-LinBAI" in text for text in lacking)
    assert len({c.sentence.text for c in judged}) == len(judged) > 80
    assert all(set(c.findings) == set(SETTINGS) for c in judged)


def test_claims_about_what_was_not_run_say_so():
    judged = claims.judge_all({})
    assert {c.findings[BEST].verdict for c in judged if c.seen} <= {NOT_RUN}
    measured_ones = [c for c in judged if c.sentence.place.startswith("8.") and "stages" not in c.sentence.text]
    assert not any(c.ran for c in measured_ones)


def test_a_verdict_is_a_sentence():
    found = {PRINTED: Found(HOLDS, ""), CODE: Found(HOLDS, ""), BEST: Found(FAILS, "")}
    one = claims.judge_all({})[0]
    assert replace(one, findings=found).verdict == (
        "holds as printed and in the published code; does not hold with correct confidence bounds"
    )
    assert replace(one, findings=dict.fromkeys(SETTINGS, Found(HOLDS, ""))).verdict == "holds in all three settings"


# ------------------------------------------------------------------------------------------------- report


def test_a_figure_is_reproduced_with_its_report(tmp_path, monkeypatch):
    monkeypatch.delenv("BESTARM_DATA", raising=False)
    done = reproduce(("corner", "motor"), 40, True, 3, 1, None, None, tmp_path)
    text, page = done.text.read_text(), done.page.read_text()
    assert "Not run: motor" in text
    assert "seed 3" in text
    assert "replications 40" in text
    assert "commit" in text
    assert "cannot be trusted" in text
    assert "`bestarm reproduce --figure corner --replications 40 --seed 3`" in text
    assert page.count("<svg") == 3
    assert "<script" not in page
    assert set(re.findall('href="#(.+?)"', page)) <= set(re.findall('id="(.+?)"', page))
    assert set(re.findall(r"\]\(#([\w-]+)\)", text)) <= set(re.findall(r"^### (\S+)$", text, re.M))
    rows = read_csv(tmp_path / "corner.csv")
    assert {"setting", "label", "policy", "accuracy", "pulls_mean", "difference", "told_variance"} <= set(rows[0])
    assert all(row["low"] <= row["accuracy"] <= row["high"] for row in rows)
    assert max(row["pulls_max"] for row in rows if row["setting"] == CODE) > 25
    assert max(row["pulls_max"] for row in rows if row["setting"] != CODE) <= 25
    with pytest.raises(UnknownNameError, match="adaptive"):
        reproduce(("adaptiv",), 10, True, 3, 1, None, None, tmp_path)


def test_a_report_says_how_much_chance_may_explain():
    results = {"corner": fake("corner", lambda label, value: 0.5)}
    made = Made(FIGURES, results, claims.judge_all(results), {}, False, "")
    told = " ".join(by_chance(made))
    assert re.search(r"\d+ verdicts rest on \d+ intervals", told)
    assert "Quick" in told  # 400 replications


@pytest.mark.parametrize("night", [False, True])
def test_a_drawing_is_small_and_no_name_hides_another(night):
    results = {"static": fake("static", lambda label, value: 0.5)}
    table = points.rows(FIGURES, results, "static")
    text = points.drawing(FIGURES["static"], table, PRINTED, night)
    root = ElementTree.fromstring(text)
    assert root.get("width") == "360"
    assert ("prefers-color-scheme" in text) == night
    names = [(float(e.get("x")), float(e.get("y"))) for e in root.iter() if e.tag.endswith("text")]
    heights = sorted(y for x, y in names if x > panels.WIDTH - panels.RIGHT)
    assert min(np.diff(heights)) >= panels.GAP - 0.11
    assert len(text) < 40_000


def test_drawings_can_be_read_by_day_and_by_night():
    from tests.draw.test_page import contrast

    for by_day, by_night in (panels.INK, panels.SOFT, panels.HERO):
        assert contrast(by_day, "#ffffff") >= 4.5
        assert contrast(by_night, "#0d1117") >= 4.5


def test_the_committed_table_is_what_the_code_gives(tmp_path):
    figures = {"corner": FIGURES["corner"]}
    results = measured(figures, 250, 11, 1, tmp_path, None, False)
    now = {(r["setting"], r["label"], r["K"]): r for r in points.rows(figures, results, "corner")}
    then = {(r["setting"], r["label"], r["K"]): r for r in read_csv(COMMITTED / "corner.csv")}
    assert set(now) == set(then)
    for key, one in then.items():
        assert now[key]["policy"] == one["policy"]
        chance = (one["accuracy"] * one["replications"] + 1) / (one["replications"] + 2)
        error = (chance * (1 - chance) * (1 / one["replications"] + 1 / 250)) ** 0.5
        assert abs(now[key]["accuracy"] - one["accuracy"]) < 3 * error, key


def test_the_bench_command(tmp_path):
    words = "bench adaptive --set K=8,16 --budget-per-arm 5 --policy gse-lin-fwg --policy uniform --replications 30"
    done = CliRunner().invoke(main, [*words.split(), "--jobs", "1", "-f", "json", "-o", str(tmp_path), "--seed", "9"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert len(rows) == 4
    wanted = "instance params policy budget replications accuracy low high regret pulls_mean pulls_max cpu_seconds"
    assert set(wanted.split()) <= set(rows[0])
    assert rows[0]["params"] == {"K": 8}
    assert (tmp_path / "table.parquet").exists()
    table = CliRunner().invoke(main, [*words.split(), "--jobs", "1", "--against", "uniform"])
    assert "difference_low" in table.stdout
    comma = CliRunner().invoke(main, [*words.split(), "--jobs", "1", "-f", "csv"])
    assert comma.stdout.splitlines()[0].startswith("instance,K,policy,budget")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ("bench adaptive --policy uniform", 2, "either --budget or --budget-per-arm"),
        ("bench adaptve --budget 9 --policy uniform", 1, "nearest are adaptive"),
        ("bench adaptive --set K --budget 9 --policy uniform", 1, "KEY=VALUE"),
        ("bench adaptive --set K=x --budget 9 --policy uniform", 1, "whole number"),
        ("bench adaptive --budget 2 --policy gse-lin --jobs 1 --replications 5", 1, "1 of 1 cells failed"),
        (
            "bench adaptive --budget 9 --policy uniform --against gse-lin --jobs 1 --replications 5",
            1,
            "among those run",
        ),
        ("reproduce --figure nothing", 1, "unknown figure"),
        ("reproduce --panel papr", 1, "unknown panel"),
    ],
)
def test_bad_calls_are_refused_in_one_line(words, code, says):
    done = CliRunner().invoke(main, words.split())
    assert done.exit_code == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_instances_are_listed():
    assert [
        row["instance"] for row in json.loads(CliRunner().invoke(main, ["instances", "-f", "json"]).stdout)
    ] == list(bench.WORLDS)
