"""The command as people use it: answers, talk, resuming, and errors that say what was expected."""

import csv
import io
import json
import pkgutil
import re
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest
from click.testing import CliRunner

import bestarm.cli
from bestarm import catalog
from bestarm.cli import main
from bestarm.cli.commands import COMMANDS, HOMES
from bestarm.study import load_study

CARS = "src/bestarm/data/automobile.csv"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "arms.csv"
    rows = ["code,size,kind,mean"] + [f"a{i},{i / 10},{'xy'[i % 2]},{i / 10 + (i % 2)}" for i in range(8)]
    path.write_text("\n".join(rows) + "\n")
    return path


def call(*args):
    return CliRunner().invoke(main, [str(a) for a in args])


def run(table, *args):
    return call("run", table, "--id", "code", *args)


def simulated(table, *args):
    return run(table, "--simulate", "mean", "--noise-variance", "0.01", "--seed", "1", *args)


def test_the_demo_finds_the_most_expensive_car(tmp_path):
    page = tmp_path / "cars.html"
    options = "--scale minmax --simulate price --missing mean --noise-variance 0.1 --seed 7 -f json"
    done = call(
        "run", CARS, "--budget", 4100, "--label", "make", "--label", "body_style", *options.split(), "--report", page
    )
    assert done.exit_code == 0
    answer = json.loads(done.stdout)
    assert answer["arm"] == answer["true_best"] == "75"
    assert answer["make"] == "mercedes-benz"
    assert answer["spent"] == 4100 == sum(answer["counts"].values())
    assert answer["low"] < answer["true_mean"] < answer["high"]
    assert answer["believes"].startswith("linear with a smooth residual")
    assert sum(answer["chances"].values()) == pytest.approx(1)
    assert answer["by_stage"] == []
    assert "bound" not in answer
    html = page.read_text()
    assert html.count("<figure") == 4
    assert '<p class="answer">75 mercedes-benz hardtop</p>' in html
    assert answer["believes"] in html


def test_elimination_tells_its_stages(tmp_path):
    page = tmp_path / "cars.html"
    options = "--scale minmax --simulate price --missing mean --noise-variance 0.1 --seed 7 -f json --model linear"
    done = call(
        "run", CARS, "--budget", 4100, "--label", "make", "--label", "body_style", *options.split(), "--report", page
    )
    assert done.exit_code == 0
    answer = json.loads(done.stdout)
    assert answer["believes"].startswith("linear in 5 coefficients")
    assert answer["bound"] > 0
    assert len(answer["by_stage"]) == 9 == answer["rounds"] + 1
    assert answer["by_stage"][-1] == {"told": 4100, "left": [answer["arm"]]}
    assert "4,100 of 4,100 pulls: 1 of 2 arms stays in the race; ahead: 75" in done.stderr
    html = page.read_text()
    assert html.count("<figure") == 5
    assert answer["arm"] in html
    for outside in ("<script", "src=", 'href="http', "@import", "url("):
        assert outside not in html.replace("url(#", "")


def test_table_csv_and_json_say_the_same(table):
    plain, comma, js = (simulated(table, "--budget", 60, "-f", style) for style in ("table", "csv", "json"))
    row = next(csv.DictReader(io.StringIO(comma.stdout)))
    answer = json.loads(js.stdout)
    assert row["arm"] == answer["arm"] == "a7"
    assert "a7" in plain.stdout
    assert {"value", "low", "high", "p_best", "runner_up", "spent", "seed"} <= set(answer)


def test_what_is_believed_is_printed(table):
    plain, comma = (simulated(table, "--budget", 600, "-f", style) for style in ("table", "csv"))
    assert re.search(r"^believes  +.*linear.*weight", plain.stdout, re.M)
    assert "linear" in next(csv.DictReader(io.StringIO(comma.stdout)))["believes"]


def test_rounds_are_kept_and_for_auto_only(table):
    answer = json.loads(simulated(table, "--budget", 61, "--rounds", 4, "-f", "json").stdout)
    assert (answer["arm"], answer["rounds"], answer["spent"]) == ("a7", 4, 61)
    wrong = simulated(table, "--budget", 60, "--rounds", 4, "--model", "linear")
    assert wrong.exit_code == 1
    assert "rounds are for the policy auto; gse-lin-fwg has stages" in wrong.stderr
    assert "no setting 'eta'" in simulated(table, "--budget", 60, "--eta", 3).stderr


def test_minimize_turns_the_question_round(table):
    answer = json.loads(simulated(table, "--budget", 80, "--minimize", "-f", "json").stdout)
    assert answer["arm"] == answer["true_best"] == "a0"
    assert answer["low"] <= answer["corrected"] <= answer["high"]
    assert abs(answer["value"]) < 0.2


def test_a_command_is_pulled_and_the_log_resumes(table, tmp_path):
    log, calls = tmp_path / "run.jsonl", tmp_path / "calls"
    broken = f"echo {{id}} >> {calls}; test $(wc -l < {calls}) -lt 6 && echo 1"
    made = ["--exclude", "mean", "--log", log]
    first = run(table, "--budget", 12, "--pull", broken, "--retries", 0, *made)
    assert first.exit_code == 1
    assert "5 results kept" in first.stderr
    assert f"run again to resume from {log}" in first.stderr
    seed = load_study("run", log).state.seed
    with log.open("a") as file:
        file.write('{"study":"run","n":')  # the laptop died in mid-line
    second = run(table, "--budget", 12, "--pull", f"echo {{id}} >> {calls}; echo 1", *made)
    assert second.exit_code == 0, second.output
    assert "resuming: 5 rewards" in second.stderr
    assert re.search(rf"^seed +{seed}$", second.stdout, re.M)
    assert load_study("run", log).state.total == 12
    other = run(table, "--budget", 14, "--pull", "echo {id}", *made)
    assert other.exit_code == 1
    assert "its budget is 12, not 14" in other.stderr


def test_the_log_of_a_run_is_a_study(table, tmp_path):
    log = tmp_path / "run.jsonl"
    done = run(
        table, "--budget", 12, "--simulate", "mean", "--noise-variance", 1, "--log", log, "--seed", 3, "-f", "json"
    )
    answer = json.loads(done.stdout)
    best = json.loads(call("best", "--storage", log, "-f", "json").stdout)
    assert {key: best[key] for key in ("arm", "value", "low", "p_best", "spent")}.items() <= answer.items()
    again = run(table, "--budget", 12, "--simulate", "mean", "--noise-variance", 1, "--log", log, "-f", "json")
    assert json.loads(again.stdout) == answer
    assert call("exclude", "T0001", "--why", "typed wrongly", "--storage", log).exit_code == 0


def test_a_reward_of_a_run_can_be_put_right_where_it_was_told_alone(table, tmp_path):
    given = ("--budget", 12, "--simulate", "mean", "--noise-variance", 1, "--seed", 3, "--log")
    amended = {}
    for policy in ("lingape", "uniform"):
        log = tmp_path / f"{policy}.jsonl"
        assert run(table, *given, log, "--policy", policy).exit_code == 0
        amended[policy] = call("amend", "T0001", 7, "--why", "typed wrongly", "--storage", log)
    assert amended["lingape"].exit_code == 0
    assert amended["uniform"].exit_code == 1
    assert "trial T0001 stands for 2 rewards told as one sum" in amended["uniform"].stderr
    assert "exclude it, and measure again what is needed" in amended["uniform"].stderr


def test_a_simulated_run_that_is_stopped_goes_on_to_the_same_numbers(table, tmp_path):
    given = ("--budget", 40, "--model", "linear", "-f", "json")
    whole, log = simulated(table, *given), tmp_path / "run.jsonl"
    assert simulated(table, *given, "--log", log).stdout == whole.stdout
    lines = log.read_bytes().splitlines(keepends=True)
    for kept in range(1, len(lines)):
        log.write_bytes(b"".join(lines[:kept]))
        assert simulated(table, *given, "--log", log).stdout == whole.stdout


def test_the_log_of_an_earlier_bestarm_is_refused_and_left_alone(table, tmp_path):
    log, old = tmp_path / "run.jsonl", '{"bestarm": 1, "arms": "x", "seed": 3}\n{"arm": "a1", "reward": 1.0}\n'
    log.write_text(old)
    done = simulated(table, "--budget", 9, "--log", log)
    assert done.exit_code == 1
    assert "log of a run of an earlier bestarm: name another file" in done.stderr
    assert "bestarm import" in done.stderr
    assert log.read_text() == old


def test_a_function_is_pulled(table, tmp_path, monkeypatch):
    (tmp_path / "assay.py").write_text("def measure(arm):\n    return 5.0 if arm == 'a3' else 1.0\n")
    monkeypatch.chdir(tmp_path)
    done = run(table, "--budget", 48, "--pull", "assay:measure", "--model", "means", "--exclude", "mean", "-f", "json")
    assert json.loads(done.stdout)["arm"] == "a3"


@pytest.mark.parametrize("model", ["logistic", "poisson", "means", "forest"])
def test_every_model_runs(table, model):
    done = run(table, "--simulate", "mean", "--scale", "minmax", "--noise-variance", 0.01, "--model", model,
               "--budget", 90, "--seed", 3, "-f", "json")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["spent"] == 90


def test_one_arm_is_answered_without_a_pull(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("code,size\nonly,1\n")
    done = call("run", path, "--id", "code", "--budget", 5, "--pull", "false {id}", "-f", "json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["arm"] == "only"
    assert json.loads(done.stdout)["spent"] == 0


BAD = {
    "a budget below the stages": (["--budget", "2", "--model", "linear"], "at least 3 pulls are needed"),
    "an unknown policy": (["--budget", "9", "--policy", "gse-lin-fgw"], "nearest are gse-lin-fwg, "),
    "an unknown model": (["--budget", "9", "--model", "linaer"], "nearest are linear"),
    "a bad eta": (["--budget", "9", "--eta", "1", "--model", "linear"], "eta must be greater than 1"),
    "a column that is not there": (["--budget", "9", "--exclude", "siez"], "size"),
    "no noise": (["--budget", "9", "--noise-variance", "-1"], "--noise-variance"),
}


def test_a_budget_is_a_whole_number_in_any_spelling(table):
    for text in ("90", "9e1", "90.0", "9_0"):
        assert json.loads(simulated(table, "--budget", text, "-f", "json").stdout)["spent"] == 90
    for text, says in (("0", "x>=1"), ("-3", "x>=1"), ("1,000", "1000 is meant?"), ("9.5", "whole"), ("many", "whole"),
                       ("1e99", "can be used"), ("inf", "can be used")):  # fmt: skip
        done = simulated(table, "--budget", text)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "--budget" in done.stderr
        assert says in done.stderr


@pytest.mark.parametrize("case", BAD)
def test_bad_options_are_refused_in_one_line(table, case):
    options, says = BAD[case]
    done = simulated(table, *options)
    assert done.exit_code == 1, done.output
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("pull", "says"),
    [
        ("exit 3 # {id}", "exit code 3"),
        ("echo nothing # {id}", "must print one number on stdout; it printed 'nothing'"),
        ("echo nan # {id}", "finite"),
        ("echo 1", "must contain {id}"),
        ("nowhere:nothing", "cannot be loaded"),
        ("sleep 9 # {id}", "did not finish in 0.2 seconds"),
    ],
)
def test_pulls_that_fail_say_how(table, pull, says):
    done = run(table, "--budget", 9, "--pull", pull, "--pull-timeout", 0.2, "--exclude", "mean", "--retries", 0)
    assert done.exit_code == 1
    assert says in done.stderr


def test_rewards_outside_0_and_1_are_refused_for_logistic(table):
    done = run(table, "--budget", 9, "--pull", "echo 0.5 # {id}", "--model", "logistic", "--exclude", "mean")
    assert done.exit_code == 1
    assert "rewards that are 0 or 1" in done.stderr
    assert "(0.5)" in done.stderr


@pytest.mark.parametrize(("cell", "says"), [("", "row 2"), ("big", "size"), ("nan", "size"), ("inf", "size")])
def test_bad_cells_name_row_and_column(tmp_path, cell, says):
    path = tmp_path / "arms.csv"
    path.write_text(f"code,size,mean\na,1,1\nb,{cell},2\nc,3,3\nd,4,4\n")
    done = simulated(path, "--budget", 9)
    assert done.exit_code == 1
    assert says in done.stderr
    assert "row 2" in done.stderr


def test_a_missing_file_and_an_empty_table_are_named(tmp_path):
    missing = simulated(tmp_path / "no.csv", "--budget", 9)
    assert missing.exit_code == 1
    assert "no.csv" in missing.stderr
    empty = tmp_path / "empty.csv"
    empty.write_text("code,size,mean\n")
    assert "no arms" in simulated(empty, "--budget", 9).stderr


def test_where_rewards_come_from_must_be_said(table):
    assert run(table, "--budget", 9).exit_code == 2
    assert simulated(table, "--budget", 9, "--pull", "echo {id}").exit_code == 2
    assert simulated(table, "--budget", 9, "--report", "x.pdf").exit_code == 2


def test_policies_are_listed_with_one_line_each():
    listed = json.loads(call("policies", "-f", "json").stdout)
    assert [row["policy"] for row in listed] == catalog.names()
    assert len(call("policies").stdout.splitlines()) == len(listed) + 1


def test_every_command_and_option_has_a_help_text():
    for name, command in main.loaded().items():
        assert command.help, name
        shown = call(name, "--help")
        assert shown.exit_code == 0
        for option in command.params:
            shown = not getattr(option, "hidden", False) and option.name != "style"
            if getattr(option, "opts", [""])[0].startswith("--") and shown:
                assert getattr(option, "help", None), (name, option.name)


@pytest.mark.parametrize("policy", ["auto", "gse-lin-fwg", "ocba"])
def test_the_report_can_be_a_picture(table, tmp_path, policy):
    picture = tmp_path / "run.png"
    assert simulated(table, "--budget", 60, "--policy", policy, "--report", picture).exit_code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_seed_reproduces_everything(table):
    first, second = (simulated(table, "--budget", 30, "-f", "json").stdout for _ in range(2))
    assert first == second
    assert np.isfinite(json.loads(first)["value"])


def test_a_column_that_numbers_the_rows_is_pointed_out(tmp_path):
    path = tmp_path / "arms.csv"
    path.write_text("nr,size,mean\n" + "".join(f"{i},{i * i % 7},{i % 3}\n" for i in range(1, 9)))
    done = call("run", path, "--budget", 30, "--simulate", "mean", "--noise-variance", 1, "--seed", 1)
    assert "column 'nr' only counts the rows" in done.stderr


def test_every_command_is_found_by_its_name():
    for info in pkgutil.iter_modules(bestarm.cli.__path__):
        import_module(f"bestarm.cli.{info.name}")
    assert set(main.commands) == {*HOMES}


def test_the_list_of_commands_says_what_their_helps_say_and_imports_none_of_them():
    for name, (_, about) in ((name, one) for some in COMMANDS.values() for name, one in some.items()):
        first = " ".join((main.loaded()[name].help or "").split("\n\n")[0].split())
        assert about == first.partition(": `")[0].partition(". ")[0].rstrip("."), name
    code = "import sys; from bestarm.cli import main; main(['--help'], standalone_mode=False); print([*sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "numpy" not in out.splitlines()[-1]
    assert "bestarm.cli.asking" not in out.splitlines()[-1]
    assert all(name in out for name in HOMES)


def test_a_version_needs_no_numbers():
    code = "import sys; from bestarm.cli import main\ntry: main(['--version'])\nfinally: print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_a_budget_below_what_the_policy_needs_is_said_in_a_line(table):
    said = [
        line for line in simulated(table, "--budget", 5, "--policy", "uniform").stderr.splitlines() if "needs" in line
    ]
    assert said == [
        "uniform needs 8 pulls of 8 arms, a pull of each arm; a budget of 5 is fewer, and its answer means little"
    ]
    assert "needs" not in simulated(table, "--budget", 8, "--policy", "uniform").stderr
    assert "needs       a pull of each arm: 64 pulls of 64 arms" in call("policies", "uniform").stdout
