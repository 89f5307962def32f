"""Jobs as people type them, from the table they have to the answer: no command is refused on the way."""

import csv
import random

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pytest

import bestarm as ba
from tests.cli.commands import fine, refused, rows, state, write

BUFFERS = ["Tris", "HEPES", "Phosphat"]


def laboratory():
    """Twelve recipes, as a list of rows under a header."""
    made = [[f"{row:04}", BUFFERS[row % 3], 6.5 + row / 10, row * 125, f"{row:02}.03.2026"] for row in range(1, 13)]
    return [["Probe Nr.", "Puffer", "pH", "Salz (mM)", "Datum"], *made]


def european(path):
    """Write the laboratory's table as Excel saves CSV in Germany: Windows-1252, commas, points between thousands."""
    header, *made = laboratory()
    lines = [header, ["", "", "", "µM", ""]]
    lines += [
        [one, buffer, f"{ph:.1f}".replace(".", ","), f"{salt:,}".replace(",", "."), day]
        for one, buffer, ph, salt, day in made
    ]
    text = "\r\n".join(";".join(line + ["", ""]) for line in [*lines, [""] * 5])
    path.write_bytes(text.encode("cp1252"))


def measured(path, out, mark=";", encoding="cp1252"):
    """Fill in a file of `ask` and save it as a European spreadsheet would."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        header, *lines = csv.reader(file, delimiter=",")
    at = header.index("pH")
    filled = [[*line[:-1], f"{float(line[at]) * 2.5 + 0.25:.2f}".replace(".", ",")] for line in lines]
    with open(out, "w", encoding=encoding, newline="") as file:
        csv.writer(file, delimiter=mark).writerows([header, *filled, [""] * len(header)])
    return out


def test_a_european_excel_file_from_table_to_answer(call, tmp_path):
    european(tmp_path / "platte.csv")
    table = ("platte.csv", "--id", "Probe Nr.")
    said = fine(call("create-study", "assay", "--arms", *table, "--budget", 24, "--batch", 12, "--seed", 1))
    assert "taken for Windows-1252 (Latin-1), so that it says 'µM'" in said
    assert "line 2 of platte.csv is taken for a row of units: Salz (mM) in µM" in said
    assert "decimal commas in column 'pH' (6,6 is 6.6)" in said
    assert "thousands kept apart in column 'Salz (mM)' (1.000 is 1000)" in said
    assert "column 'Datum': dates, as days since 2026-03-01" in said
    for batch in ("1", "2"):
        fine(call("ask", "-o", f"b{batch}.csv"))
        said = fine(call("tell", measured(f"b{batch}.csv", f"b{batch} gemessen.csv")))
        assert "12 new" in said
        assert "decimal commas in column 'reward'" in said
    answer = call("best", "-f", "csv")
    fine(answer)
    assert rows(answer.stdout)[0]["arm"] == "0012"
    fine(call("design", *table, "--pulls", 12))
    fine(call("plan", *table, "--feature", "pH", "--intercept", "--gap", 1, "--noise-variance", 1, "--budget", 40,
              "--replications", 20, "--policy", "gse-lin-fwg", "--jobs", 1, "--seed", 1))  # fmt: skip
    fine(call("run", *table, "--simulate", "pH", "--noise-variance", 0.1, "--budget", 40, "--seed", 1))
    said = fine(call("bench", "table", "platte.csv", "--mean", "pH", "--noise-variance", 1, "--budget", 40, "--policy",
              "uniform", "--replications", 2, "--jobs", 1, "-o", "bench"))  # fmt: skip
    assert "decimal commas in column 'pH' (6,6 is 6.6)" in said


def test_a_workbook_from_table_to_answer(call, tmp_path):
    book = openpyxl.Workbook()
    for row in laboratory():
        book.active.append(row)
    book.save("platte.xlsx")
    fine(call("create-study", "assay", "--arms", "platte.xlsx", "--id", "Probe Nr.", "--budget", 12, "--seed", 1))
    fine(call("ask", "-o", "b1.csv"))
    pd.read_csv("b1.csv").assign(reward=lambda frame: frame["pH"]).to_excel("b1 gemessen.xlsx", index=False)
    assert "0 blank, 0 failed" in fine(call("tell", "b1 gemessen.xlsx"))
    assert rows(call("best", "-f", "csv").stdout)[0]["arm"] == "0012"
    pd.DataFrame({"arm": ["0001", "0099"], "reward": [6.6, 1]}).to_excel("more.xlsx", index=False)
    assert "more.xlsx, row 3, column 'arm': unknown arm '0099'" in refused(call("tell", "more.xlsx"))


@pytest.mark.parametrize("name", ["told.csv", "told.tsv", "told.xlsx", "told.parquet"])
@pytest.mark.parametrize("index", [True, False])
def test_a_file_of_ask_goes_through_pandas(call, tmp_path, name, index):
    (tmp_path / "ads.csv").write_text("ad,size,colour\n" + "".join(f"{n:03},{n},{'rb'[n % 2]}\n" for n in range(8)))
    fine(call("create-study", "ads", "--arms", "ads.csv", "--id", "ad", "--budget", 16, "--batch", 8, "--seed", 1))
    for _ in range(2):
        fine(call("ask", "-o", "batch.csv", "--overwrite"))
        frame = pd.read_csv("batch.csv")
        frame["reward"] = frame["size"] + 0.5
        write = {"csv": frame.to_csv, "xlsx": frame.to_excel, "parquet": frame.to_parquet}
        if name == "told.tsv":
            frame.to_csv(name, sep="\t", decimal=",", index=index)
        else:
            write[name.partition(".")[2]](name, index=index)
        assert "8 new" in fine(call("tell", name))
    assert rows(call("best", "-f", "csv").stdout)[0]["arm"] == "007"


def test_all_findings_in_a_file_of_results_are_told_at_once(assay):
    lines = ["trial,reward", *(f"T{n:04},{'<0.5' if n % 2 else '12 %'}" for n in range(1, 7)), "T0099,1"]
    with open("odd.csv", "w") as file:
        file.write("\n".join(lines))
    said = refused(assay("tell", "odd.csv"))
    assert "line 2, column 'reward': a number is expected; found '<0.5'; write a number in its place" in said
    assert "line 3, column 'reward': a number is expected; found '12 %'; write the number alone" in said
    assert "line 8, column 'trial': trial T0099 was never asked for" in said


def test_blanks_are_refused_or_filled_as_said(call, tmp_path):
    (tmp_path / "glues.csv").write_text("code,water,resin\nA,1,oak\nB,,pine\nC,3,\nD,2,oak\nE,none,x\n")
    made = ("--arms", "glues.csv", "--id", "code", "--budget", 10, "--seed", 1)
    said = refused(call("create-study", "glues", *made))
    assert "row 2 (line 3), column 'water'" in said
    assert "row 3 (line 4), column 'resin'" in said
    assert "--missing" in said
    assert "blanks are filled with 2" in fine(
        call("create-study", "a", *made, "--exclude", "resin", "--missing", "mean")
    )
    said = fine(call("create-study", "b", *made, "--missing", "category", "--na", "x"))
    assert "column 'resin': blanks are a level, resin=(blank)" in said
    fine(call("create-study", "c", *made, "--missing", "category", "--by-reference"))
    assert fine(call("ask", "-s", "c", "-o", "c.csv"))


def noisy(arm):
    return float(arm[2:]) / 4 + random.Random(arm).gauss(0, 0.1)


ADS = {"ad": [f"ad{n:02}" for n in range(12)], "size": range(12), "since": pd.date_range("2026-01-01", periods=12)}
FRAMES = [
    pd.DataFrame(ADS),
    pl.from_pandas(pd.DataFrame(ADS)),
    pl.from_pandas(pd.DataFrame(ADS)).to_arrow(),
    pd.DataFrame(ADS).to_dict("records"),
]


@pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars", "pyarrow", "dicts"])
def test_a_frame_from_table_to_answer(frame, tmp_path):
    study = ba.create_study(frame, id="ad", exclude=["since"], budget=36, batch=12, seed=1, storage=tmp_path / "s.db")
    backend = "polars" if isinstance(frame, pl.DataFrame) else "pandas"
    while batch := study.ask():
        told = batch.to_frame(backend)
        values = [noisy(arm) for arm in told["arm"]]
        told = told.with_columns(reward=pl.Series(values)) if backend == "polars" else told.assign(reward=values)
        assert study.tell(told) == len(batch)
        assert study.tell(told) == 0
    assert study.best_arm == "ad11"
    assert ba.run(frame, 36, noisy, id="ad", exclude=["since"], seed=1).arm == "ad11"
    assert ba.design(frame, pulls=24, id="ad").pulls.sum() == 24
    plan = ba.plan(frame, id="ad", exclude=["since"], intercept=True, gap=1, noise_variance=1, budget=24,
                   policy="gse-lin-fwg", replications=20, rng=1, n_jobs=1)  # fmt: skip
    assert plan.arms == 12


def test_a_frame_of_a_batch_has_the_columns_of_its_arms_and_comes_back(tmp_path):
    study = ba.create_study(FRAMES[0], id="ad", budget=24, seed=1, storage=tmp_path / "s.db")
    batch = study.ask(3)
    frame = batch.to_frame()
    assert list(frame) == ["trial", "arm", "size", "since", "reward"]
    assert frame["size"].tolist() == [float(arm[2:]) for arm in frame["arm"]]
    assert frame["reward"].isna().all()
    assert study.tell(frame) == 0
    frame.loc[1, "reward"] = 2.0
    assert study.tell(frame) == 1
    frame.loc[1, "reward"] = 3.0
    with pytest.raises(ba.BestArmError, match="contradicts the log"):
        study.tell(frame)
    assert study.tell(frame, correct=True, why="typed wrongly") == 0
    with pytest.raises(ba.BestArmError, match="the frame, row 1, column 'trial': trial T0099 was never asked for"):
        study.tell([{"trial": "T0099", "reward": 1.0}])
    rows = study.trials_frame()
    assert str(rows["time"].dtype).startswith("datetime64")
    assert rows["value"].tolist()[1] == 3.0
    assert study.tell([{"arm": batch.arms[0], "reward": 1.0}]) == 1  # the trial that is out
    assert [trial.arm for trial in study.pending()] == [batch.trials[2].arm]
    assert study.tell([{"arm": batch.arms[0], "reward": 1.0}]) == 0  # the same frame
    assert study.tell(pd.DataFrame({"arm": ["ad09"], "reward": [1.0]})) == 1


def test_a_grid_from_a_dict_to_the_best_setting():
    arms = ba.Arms.from_grid({"C": np.logspace(-2, 2, 5), "kernel": ["rbf", "linear"], "depth": [None, 3, 5]})
    assert len(arms) == 30
    assert "column 'C': logarithms are taken" in arms.notes

    def score(arm):
        setting = arms.row(arm)
        assert {type(setting["C"]), type(setting["kernel"])} == {np.float64, str}
        return -abs(np.log10(setting["C"]) - 1) + (setting["kernel"] == "rbf") + 0.1 * (setting["depth"] or 0)

    answer = ba.run(arms, 200, score, seed=1)
    assert arms.row(answer.arm)["kernel"] == "rbf"
    assert arms.row(answer.arm)["depth"] == 5
    assert arms[answer.arm].tolist() == arms.features[arms.index(answer.arm)].tolist()
    assert list(arms) == list(arms.ids)
    assert arms.subset([3]).row(arms.ids[3]) == arms.row(arms.ids[3])
    assert ba.Arms.from_frame(pd.DataFrame(ADS), id="ad").row("ad03")["size"] == 3
    assert ba.Arms.from_arrays(np.eye(2)).row(2) == {"x1": 0, "x2": 1}


@pytest.mark.parametrize("names", [["short", "polite", "with examples", "as a list"], 4])
def test_names_alone_or_their_number_are_arms(names):
    values = dict(zip(map(str, names if isinstance(names, list) else range(1, 5)), [0.1, 0.2, 0.9, 0.4], strict=True))
    for model in (None, "means"):
        answer = ba.run(names, 60, lambda arm: values[arm] + random.Random(arm).gauss(0, 0.01), model=model, seed=1)
        assert answer.arm == [*values][2]
    assert ba.design(names, pulls=8).pulls.tolist() == [2, 2, 2, 2]


@pytest.mark.parametrize(
    ("wrong", "way"),
    [
        (lambda: ba.Arms(FRAMES[0]), r"Arms\.from_frame"),
        (lambda: ba.Arms.from_arrays(FRAMES[0]), r"Arms\.from_frame\(frame, id=...\)"),
        (lambda: ba.create_study(ADS, 10), r"Arms\.from_grid\(it\)"),
        (lambda: ba.create_study(FRAMES[0], 10, name="x"), "unknown option 'name'; the nearest are .*study_name"),
        (lambda: ba.plan(FRAMES[0], ids="ad", gap=1), "unknown option 'ids'; the nearest are id"),
        (lambda: ba.design(FRAMES[0], 10, exlude=["ad"]), "unknown option 'exlude'; the nearest are exclude"),
        (lambda: ba.create_study(["a", "b"], 10, id="a"), "no columns to choose from"),
        (lambda: ba.create_study(10_000, 10), r"numpy\.ones.* model='means'"),
        (lambda: ba.Arms.from_grid({"C": 3}), "'C': expected a list of its values; given 3"),
        (lambda: ba.create_study(ba.Arms.from_grid({"C": [1, 2]}), 10, id="C"), "say how a table is read where"),
    ],
)
def test_a_wrong_call_names_the_right_one(wrong, way):
    with pytest.raises(ba.BestArmError, match=way):
        wrong()


def test_a_study_begun_from_another_fills_blanks_and_takes_logarithms_as_that_did(tmp_path):
    place = tmp_path / "s.db"
    rows = [{"id": f"a{n}", "x": n if n else None, "kind": "ab"[n % 2]} for n in range(6)]
    old = ba.create_study(rows, id="id", missing="mean", budget=9, seed=1, storage=place, study_name="one")
    grid = ba.Arms.from_grid({"C": [0.01, 0.1, 1], "depth": [2, 3]})
    other = ba.create_study(grid, budget=9, seed=1, storage=place, study_name="grid")
    for study in (old, other):
        new = ba.create_from(study, f"{study.name} again", place, read={"intercept": False, "scale": "standard"})
        plain = {one.name: (one.log, one.fill) for one in study.encoding.columns}
        assert {one.name: (one.log, one.fill) for one in new.encoding.columns} == plain
        again = ba.create_from(new, f"{study.name} once more", place, read={"intercept": True})
        assert again.encoding.columns[0] == new.encoding.columns[0]


def test_counts_are_told_in_the_words_of_whoever_counted(call):
    write("ad,size\na1,1\na2,2\n", "ads.csv")
    fine(call("create-study", "ads", "--arms", "ads.csv", "--id", "ad", "--budget", 40, "--batch", 20, "--seed", 1))
    fine(call("ask", "--by", "arm", "-o", "day1.csv"))
    said = fine(call("tell", write("ad;Clicks;Views\na1;1;10\na2;2;10\n", "monday.csv")))
    assert "column 'Clicks' is taken for 'successes'; column 'Views' is taken for 'trials'" in said
    assert "by arm: 20 answer trials that were out" in said
    fine(call("ask", "--by", "arm", "-o", "day2.csv"))
    several = write("ad,clicks,sales,views\na1,1,0,10\na2,2,0,10\n", "tuesday.csv")
    assert "successes may be 'clicks' or 'sales'; --column successes=COLUMN says" in refused(call("tell", several))
    assert "20 new" in fine(call("tell", several, "--column", "successes=clicks"))
    wrong = refused(call("tell", several, "--column", "clicks=successes"), code=2)
    assert "NAME=COLUMN is expected, each NAME once, of trial, arm, well" in wrong


def test_a_choice_of_prompts_is_a_file_of_one_column(call):
    write("prompt\nAnswer briefly.\nThink step by step.\nReply in JSON.\n", "prompts.csv")
    create = ("create-study", "p", "--arms", "prompts.csv", "--id", "prompt", "--model", "logistic")
    said = fine(call(*create, "--budget", 60, "--batch", 30, "--seed", 1))
    assert "there is no column but that of the ids: each arm is for itself" in said
    fine(call("ask", "--by", "arm", "-o", "eval.csv"))
    said = fine(call("tell", write("prompt,passed,total\nAnswer briefly.,5,10\nThink step by step.,9,10\n", "r.csv")))
    assert "column 'passed' is taken for 'successes'; column 'total' is taken for 'trials'" in said
    assert "Think step by step." in call("best").stdout
    headless = write("Answer briefly.\nThink step by step.\n", "prompts.txt")
    said = fine(call("create-study", "q", "--arms", headless, "--budget", 9, "--seed", 1))
    assert "line 1 of prompts.txt, 'Answer briefly.', is taken for the name of the column" in said


def test_a_reader_s_file_has_wells_and_a_column_of_its_own(call):
    write("code,dose\n" + "".join(f"R{i},{i}\n" for i in range(4)), "recipes.csv")
    fine(
        call(
            "create-study", "a", "--arms", "recipes.csv", "--id", "code", "--budget", 12, "--plate", "2x3", "--seed", 1
        )
    )
    fine(call("ask", "-o", "plate1.csv"))
    said = fine(call("tell", write("Well;Messwert;Kommentar\nA01;1,5;ok\nA02;0,25;\nB03;;?\n", "reader.csv")))
    assert "column 'Messwert' is taken for 'reward'" in said
    assert "decimal commas in column 'Messwert' (1,5 is 1.5)" in said
    assert state("a").total == 2


@pytest.mark.parametrize(
    ("typed", "way"),
    [
        (["-s", "a", "ask"], "Options of a command go behind it: bestarm best -s NAME"),
        (["bench", "--instance", "randomized"], "It is written alone: bestarm bench [INSTANCE]"),
        (["run", "arms.csv", "--budget", 9, "--pull", "./measure", "{id}"], "Quotes keep a command together: --pull"),
    ],
)
def test_what_is_often_typed_wrongly_says_the_way_out(call, typed, way):
    assert way in refused(call(*typed), code=2)
