"""`bestarm plan` as people use it: the same answer in every format, and errors that name the option."""

import csv
import io
import json
import warnings

import pytest
from click.testing import CliRunner

from bestarm.cli import main


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "arms.csv"
    rows = ["code,size,kind,note"] + [f"a{i},{i / 10},{'xyz'[i % 3]},n" for i in range(9)]
    path.write_text("\n".join(rows) + "\n")
    return path


def call(path, *args):
    options = [
        "--id",
        "code",
        "--exclude",
        "note",
        "--intercept",
        "--seed",
        "1",
        "--jobs",
        "1",
        "--replications",
        "100",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return CliRunner().invoke(main, ["plan", str(path), *options, *map(str, args)])


def test_the_command_says_the_same_in_every_format(file, tmp_path):
    picture = tmp_path / "plan.png"
    refused = call(file, "--gap", 0.2, "--plot", tmp_path / "deep" / "plan.png")
    assert (refused.exit_code, "there is no folder" in refused.stderr) == (2, True)
    options = ["--gap", 0.2, "--model", "logistic", "--base", 0.4, "--policy", "gse-log-fwg", "--budget", 60]
    comma, js = (call(file, *options, "-f", style) for style in ("csv", "json"))
    text = call(file, *options, "--plot", picture)
    assert text.exit_code == comma.exit_code == js.exit_code == 0, text.output
    rows = list(csv.DictReader(io.StringIO(comma.stdout)))
    answer = json.loads(js.stdout)
    assert [int(row["budget"]) for row in rows] == [row["budget"] for row in answer["curve"]] == [60, 120]
    assert "gse-log-fwg" in text.stdout
    assert "9 arms" in text.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_command_finds_a_budget_and_says_its_seed(file):
    done = call(file, "--gap", 1, "--noise-variance", 1, "--policy", "gse-lin-fwg", "--error", 0.1, "-f", "json")
    answer = json.loads(done.stdout)
    assert answer["budget"]["gse-lin-fwg"] <= answer["bound"]
    unseeded = CliRunner().invoke(
        main, ["plan", str(file), "--id", "code", "--gap", "1", "--noise-variance", "1", "--budget", "20",
               "--exclude", "note", "--replications", "20", "--jobs", "1"],
    )  # fmt: skip
    assert unseeded.exit_code == 0, unseeded.output
    assert "seed " in unseeded.stderr


def test_the_command_warns_when_it_is_hopeless(file):
    done = call(file, "--gap", 0.01, "--noise-variance", 4, "--policy", "gse-lin-fwg", "--cap", 50)
    assert done.exit_code == 0, done.output
    assert "BudgetWarning: gse-lin-fwg is wrong in" in done.stderr
    assert "over 50" in done.stdout
    assert "warning" not in done.stdout


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--gap", "0"], 2, "--gap"),
        (["--gap", "big"], 2, "--gap"),
        ([], 2, "either --gap or --prior-variance"),
        (["--gap", "1", "--prior-variance", "1"], 2, "either --gap or --prior-variance"),
        (["--gap", "1", "--error", "1"], 2, "--error"),
        (["--gap", "1", "--noise-variance", "-1"], 2, "--noise-variance"),
        (["--gap", "1"], 2, "--noise-variance"),
        (["--gap", "0.1", "--model", "logistic", "--noise-variance", "1"], 2, "--noise-variance"),
        (["--gap", "1", "--budget", "0"], 2, "--budget"),
        (["--gap", "1", "--jobs", "0"], 2, "--jobs"),
        (["--gap", "1", "--model", "linaer"], 2, "--model"),
        (["--gap", "1", "--policy", "gse-lin-fgw"], 2, "--policy"),
        (["--gap", "1", "--noise-variance", "1", "--plot", "x.pdf"], 2, "--plot"),
        (["--gap", "1", "--noise-variance", "1", "--exclude", "siez"], 1, "size"),
        (["--gap", "1", "--noise-variance", "1", "--error", "0.001"], 1, "replications"),
        (["--gap", "1", "--noise-variance", "1", "--budget", "2"], 1, "at least 4 pulls"),
    ],
)
def test_bad_options_are_named_in_one_line(file, options, code, says):
    done = call(file, *options)
    assert done.exit_code == code, done.output
    assert says in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.output


def test_a_study_can_be_planned_for(tmp_path):
    import numpy as np

    from bestarm import create_study

    place = f"sqlite:///{tmp_path}/s.db"
    create_study(np.eye(6), 240, study_name="assay", storage=place, noise_variance=1.0)
    words = ["plan", "--study-name", "assay", "--storage", place, "--gap", "1", "--replications", "200", "--seed", "1"]
    done = CliRunner().invoke(main, [*words, "--jobs", "1", "-f", "json"])
    assert done.exit_code == 0, done.output
    curve = json.loads(done.stdout)["curve"]
    assert {row["budget"] for row in curve} == {240, 480}
    assert {row["policy"] for row in curve} == {"auto"}
    assert CliRunner().invoke(main, ["plan", "--gap", "1"]).exit_code == 2
    missing = CliRunner().invoke(main, ["plan", "--study-name", "assy", "--storage", place, "--gap", "1"])
    assert missing.exit_code == 1
    assert "assay" in missing.stderr


def test_a_plan_is_for_the_direction_of_its_study(tmp_path):
    import numpy as np

    from bestarm import create_study

    place, features = str(tmp_path / "log"), np.column_stack([np.ones(6), np.linspace(-1, 1, 6)])
    create_study(features, 60, "gse-log-fwg", study_name="ads", storage=place, direction="minimize")
    asked = ["--gap", "0.1", "--base", "0.9", "--replications", "50", "--seed", "1", "--jobs", "1", "-f", "json"]
    done = CliRunner().invoke(main, ["plan", "--study-name", "ads", "--storage", place, *asked])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["about"]["direction"] == "minimize"
    (tmp_path / "ads.csv").write_text("x\n" + "\n".join(map(str, features[:, 1].tolist())), encoding="utf-8")
    more = ["--model", "logistic", "--intercept", "--minimize", "--policy", "gse-log-fwg", "--budget", "60"]
    other = CliRunner().invoke(main, ["plan", str(tmp_path / "ads.csv"), *asked, *more])
    assert other.exit_code == 0, other.output
    assert json.loads(other.stdout)["curve"] == json.loads(done.stdout)["curve"]
