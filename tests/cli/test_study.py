"""Studies from the command line, by files only: talk on stderr, data on stdout, refusals by line and column."""

import csv
import errno
import io
import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from bestarm import load_study
from bestarm.cli import main
from bestarm.study.storage.lines import written
from bestarm.study.study import Study

ARMS = "code,temp,acid,batch no\nA,1,0.2,x1\nB,2,0.5,x2\nC,3,0.1,x3\nD,4,0.9,x4\nE,5,0.3,x5\n"


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BESTARM_STORAGE", "sqlite:///s.db")
    monkeypatch.delenv("BESTARM_STUDY", raising=False)
    (tmp_path / "arms.csv").write_text(ARMS)
    return lambda *args, **kw: CliRunner().invoke(main, [str(arg) for arg in args], **kw)


@pytest.fixture
def assay(call):
    """Return a caller within a study that has asked for six trials, in batch.csv."""
    made = call("create-study", "assay", "--arms", "arms.csv", "--id", "code", "--exclude", "batch no", "--budget", 24,
                "--batch", 6, "--seed", 1, "--intercept", "--model", "linear")  # fmt: skip
    assert made.exit_code == 0, made.output
    assert made.stdout == ""
    assert "5 arms, 3 features" in made.stderr
    assert call("ask", "--study-name", "assay", "-o", "batch.csv").exit_code == 0
    return lambda verb, *args, **kw: call(verb, *args, "--study-name", "assay", **kw)


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def filled(value="1.5", path="batch.csv"):
    """The batch with a value in every empty cell for a reward."""
    with open(path) as file:
        return "".join(line if line.startswith("trial") else line.rstrip("\n") + value + "\n" for line in file)


def write(text, path="told.csv"):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def script(folder):
    """A command that measures an arm: the number of its letter."""
    (folder / "measure").write_text("#!/bin/sh\nprintf '%d' \"'$1\"\n")
    (folder / "measure").chmod(0o755)
    return "./measure {id}"


def told():
    return sum(load_study("assay").state.counts)


def test_a_whole_study_by_files(assay, call, tmp_path):
    number = 0
    while True:
        got = assay("ask", "-o", f"plate{number}.csv") if number else None
        if got is not None and "the study is over" in got.stderr:
            break
        path = f"plate{number}.csv" if number else "batch.csv"
        arms = [row["arm"] for row in rows((tmp_path / path).read_text())]
        assert len(arms) <= 6
        trials = [row["trial"] for row in rows((tmp_path / path).read_text())]
        measured = [f"{'ABCDE'.index(arm)},{arm},{trial}" for arm, trial in zip(arms, trials, strict=True)]
        done = assay("tell", write("Reward,Arm,Trial\n" + "\n".join(measured) + "\n"))
        assert f"{len(arms)} new, 0 known already, 0 corrected, 0 blank, 0 failed" in done.stderr
        number += 1
        assert number < 20
    assert not (tmp_path / f"plate{number}.csv").exists()
    answer = json.loads(assay("best", "-f", "json").stdout)
    assert answer["arm"] == "E"
    assert answer["spent"] == 24
    assert answer["finished"] is True
    assert answer["low"] <= answer["corrected"] <= answer["high"]
    assert rows(assay("best", "-f", "csv").stdout)[0]["arm"] == "E"
    listed = json.loads(call("studies", "-f", "json").stdout)
    assert listed[0]["study"] == "assay"
    assert listed[0]["state"] == "over"
    assert listed[0]["results"] == 24


def test_a_batch_has_the_arms_own_columns_and_room_for_the_reward(assay, tmp_path):
    found = rows((tmp_path / "batch.csv").read_text())
    assert list(found[0]) == ["trial", "arm", "temp", "acid", "batch no", "reward"]
    assert len(found) == 6
    by_code = {row["code"]: row for row in rows(ARMS)}
    assert all(row["temp"] == by_code[row["arm"]]["temp"] and row["reward"] == "" for row in found)
    pending = assay("ask", "--pending")
    assert rows(pending.stdout) == found
    assert "6 trials out" in pending.stderr
    again = assay("ask", "-n", 1)
    assert len(rows(again.stdout)) == 1
    assert again.stdout.count("trial") == 1


def test_a_file_with_results_in_it_is_not_overwritten(assay, tmp_path):
    (tmp_path / "batch.csv").write_text(filled())
    refused = assay("ask", "-o", "batch.csv")
    assert refused.exit_code == 1
    assert "perhaps with results" in refused.stderr
    assert (tmp_path / "batch.csv").read_text() == filled("")
    assert load_study("assay").spent == 6
    assert assay("ask", "-o", "batch.csv", "--overwrite").exit_code == 0


def test_where_nothing_can_be_written_nothing_is_asked(assay, tmp_path):
    (tmp_path / "folder").mkdir()
    for name, why in (("batch.csv/x.csv", "is no folder"), ("folder", "is a folder"), ("x" * 300, "too long")):
        refused = assay("ask", "-o", name)
        assert refused.exit_code == 1
        assert "cannot be written: " in refused.stderr
        assert why in refused.stderr
    assert load_study("assay").spent == 6
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".part") == []


def test_a_batch_that_cannot_be_written_stays_out_and_that_is_said(assay, tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("bestarm.cli.options.os.fsync", full)
    failed = assay("ask", "-o", "more.csv", "-n", 2)
    assert failed.exit_code == 1
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BESTARM_STORAGE", "sqlite:///s.db")
    assert "more.csv cannot be written: No space left on device" in failed.stderr
    assert "its 2 trials stay out: `bestarm ask --pending -o more.csv` writes them again" in failed.stderr
    assert not (tmp_path / "more.csv").exists()
    assert load_study("assay").spent == 8
    assert assay("ask", "--pending", "-o", "more.csv").exit_code == 0
    assert len(rows((tmp_path / "more.csv").read_text())) == 8
    assert not list(tmp_path.glob(".*.part"))


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_csv_as_people_make_it(assay, mark):
    lines = [f"Who{mark} REWARD {mark}note{mark}Trial", f"me{mark} 1.5 {mark}\"a {mark} b\"{mark}T0001",
             f"me{mark}{mark}{mark}T0002", "", f"{mark}NA{mark}{mark}T0003",
             f"{mark}2{mark}{mark}T0004{mark}"]  # fmt: skip
    done = assay("tell", write("\ufeff" + "\r\n".join(lines)))
    assert done.exit_code == 0, done.stderr
    assert "2 new, 0 known already, 0 corrected, 2 blank, 0 failed" in done.stderr
    assert "4 trials out" in done.stderr


def test_the_same_file_twice_counts_once(assay):
    write(filled())
    assert "6 new" in assay("tell", "told.csv").stderr
    assert "0 new, 6 known already" in assay("tell", "told.csv").stderr
    extra = write("arm,reward\nA,1\nA,1\n", "extra.csv")
    assert "2 new" in assay("tell", extra).stderr
    assert "0 new, 2 known" in assay("tell", extra).stderr
    named = write("id,arm,reward\n7,A,1\n8,A,1\n", "named.csv")
    assert "2 new" in assay("tell", named).stderr
    grown = write("id,arm,reward\n7,A,1\n8,A,1\n9,B,2\n", "named.csv")
    assert "1 new, 2 known" in assay("tell", grown).stderr
    assert told() == 11


def test_failures_come_with_a_reason(assay):
    done = assay("tell", write("trial,reward,failed\nT0001,1,\nT0002,,spilt\nT0003,2,no\n"))
    assert "2 new, 0 known already, 0 corrected, 0 blank, 1 failed" in done.stderr
    assert [row["why"] for row in load_study("assay").trials() if row["state"] == "failed"] == ["spilt"]
    assert "0 new, 2 known already, 0 corrected, 0 blank, 0 failed" in assay("tell", "told.csv").stderr
    both = assay("tell", write("trial,reward,failed\nT0004,1,spilt\n"))
    assert "line 2, column 'failed': a trial with a reward has not failed" in both.stderr


BAD = {
    "decimal commas and points": (
        "trial;reward\nT0001;1,5\nT0002;2.5\n",
        "line 2, column 'reward': a number is expected; found '1,5'; write it with a decimal point",
    ),
    "less than a limit": (
        "trial,reward\nT0001,<0.5\n",
        "line 2, column 'reward': a number is expected; found '<0.5'; write a number in its place",
    ),
    "a decimal comma that splits": (
        "trial,reward\nT0001,1,5\n",
        "line 2: 2 cells expected, as in the header; 3 found; is that a decimal",
    ),
    "words": ("trial,reward\nT0001,1\nT0002,high\n", "line 3, column 'reward': a number is expected; found 'high'"),
    "infinity": ("trial,reward\nT0001,inf\n", "line 2, column 'reward': trial T0001: a number within"),
    "an unknown trial": ("trial,reward\nT0001,1\nT0077,1\n", "line 3, column 'trial': trial T0077 was never asked for"),
    "a blank of an unknown trial": (
        "trial,reward\nT0077,\n",
        "line 2, column 'trial': trial T0077 was never asked for",
    ),
    "another arm": ("trial,arm,reward\nT0001,B,1\n", "line 2, column 'arm': trial T0001 is of arm"),
    "an unknown arm": ("arm,reward\nAA,1\n", "line 2, column 'arm': unknown arm 'AA'"),
    "neither": ("trial,arm,reward\n,,1\n", "line 2, column 'trial': a trial id or an arm is expected"),
    "two values": (
        "trial,reward\nT0001,1\nT0001,2\n",
        "line 3, column 'trial': T0001 stands in line 2 already; --readings mean",
    ),
    "no header": ("T0001,1\n", "'sd' and 'n'; found 'T0001, 1'"),
    "no reward": ("trial,note\nT0001,good\n", "columns 'trial' (or 'arm') and 'reward' are expected"),
    "two rewards": ("trial,reward,reward\nT0001,1,2\n", "line 1: there are 2 columns 'reward'"),
    "nothing": ("", "line 1: columns"),
    "an open quote": ('trial,reward\nT0001,"1\n', "this is not CSV"),
    "an id that failed": ("arm,reward,failed\nA,,spilt\n", "column 'trial': a trial id is expected of what failed"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_problem_is_named_and_nothing_is_kept(assay, case):
    text, says = BAD[case]
    done = assay("tell", write(text))
    assert done.exit_code == 1, done.output
    assert says in done.stderr
    assert "told.csv" in done.stderr
    assert done.stdout == ""
    assert told() == 0
    assert assay("tell", "-", input=text).exit_code == 1
    assert assay("tell", "nowhere.csv").exit_code == 1


def test_every_problem_of_a_file_is_listed_up_to_ten(assay):
    done = assay("tell", write("trial,reward\n" + "".join(f"T000{i % 6 + 1},x\n" for i in range(14))))
    assert done.stderr.count("column 'reward'") == 10
    assert "and 4 more" in done.stderr
    assert "nothing of the file was kept" in done.stderr


def test_earlier_results_are_imported_and_cost_nothing(assay):
    assert "2 new" in assay("import", write("reward,arm\n1,A\n2,B\n", "old.csv")).stderr
    assert {one.source for one in load_study("assay").state.told if one.file} == {"old.csv"}
    copied = assay("import", write("reward,arm\n1,A\n2,B\n", "copy.csv")).stderr
    assert "copy.csv says the same as old.csv, and both count; if it is a copy: bestarm exclude --source copy" in copied
    assert "2 results excluded" in assay("exclude", "--source", "copy.csv", "--why", "copy").stderr
    assert load_study("assay").spent == 6
    refused = assay("import", write("trial,arm,reward\nT0001,A,1\n"))
    assert refused.exit_code == 1
    assert "line 2, column 'trial': a trial is told, not imported" in refused.stderr
    assert "column 'arm'" in assay("import", write("arm,reward\n,1\n")).stderr


def test_standard_input_and_output(assay):
    assert "1 new" in assay("tell", "-", input="trial,reward\nT0001,1\n").stderr
    assert assay("ask", "-n", 2).stdout.splitlines()[0].startswith("trial,arm")


def test_waiting_is_said(assay):
    while not (asked := assay("ask", "-o", "-")).stderr.startswith("all trials of this round are out"):
        assert asked.exit_code == 0
    assert asked.stdout == ""
    assert asked.exit_code == 0
    assert "ask --pending" in asked.stderr


def test_a_study_runs_with_a_command_and_with_a_function(assay, call, tmp_path):
    done = assay("run-study", "--pull", script(tmp_path), "--jobs", 3)
    assert done.exit_code == 0, done.output
    assert "24 values told; 24 of 24 spent" in done.stderr
    assert json.loads(assay("best", "-f", "json").stdout)["arm"] == "E"
    assert done.stdout == ""
    (tmp_path / "lab.py").write_text("def pull(arm):\n    return 5.0 if arm == 'B' else 1.0\n")
    options = ("--arms", "arms.csv", "--id", "code", "--budget", 40, "--model", "means")
    assert call("create-study", "two", *options).exit_code == 0
    code = "from bestarm.cli import main; main()"
    command = [sys.executable, "-c", code, "run-study", "--study-name", "two", "--pull", "lab:pull"]
    assert subprocess.run(command, env=os.environ, capture_output=True, check=True).stdout == b""
    assert json.loads(call("best", "--study-name", "two", "-f", "json").stdout)["arm"] == "B"


def test_a_pull_that_keeps_failing_is_said_and_nothing_is_lost(assay):
    done = assay("run-study", "--pull", "echo no {id} >&2 && exit 3", "--retries", 0)
    assert done.exit_code == 1
    assert "failed 3 trials in a row" in done.stderr
    assert "Traceback" not in done.stderr
    slow = assay("run-study", "--pull", "sleep 5; : BESTARM_ID", "--pull-timeout", 0.1, "--retries", 0, "--jobs", 3)
    assert "did not finish in 0.1 seconds" in slow.stderr


def test_options_of_a_run_reach_the_runner(assay, monkeypatch):
    given = []

    def run(self, pull, **settings):
        given.append((getattr(pull, "timeout", None), settings))
        return 0

    monkeypatch.setattr(Study, "run", run)
    options = ("--jobs", 3, "--retries", 1, "--shared", "--per-second", 2.5, "--lease", 60)
    done = assay("run-study", "--pull", "true BESTARM_ID", "--pull-timeout", 7, *options)
    assert done.exit_code == 0, done.output
    wanted = {"n_jobs": 3, "retries": 1, "shared": True, "per_second": 2.5, "lease": 60.0, "progress": True}
    assert given.pop() == (7.0, wanted | {"timeout": None})  # a command ends its own pulls
    assay("run-study", "--pull", "true BESTARM_ID", "--timeout", 8)
    assert given.pop() == (8.0, {"n_jobs": 1, "retries": 2, "shared": False, "progress": True, "timeout": None})
    assay("run-study", "--pull", "math:sqrt", "--pull-timeout", 9)
    assert given.pop()[1]["timeout"] == 9.0
    assert "--timeout" not in assay("run-study", "--help").stdout.replace("--pull-timeout", "")


def test_reports_are_written(assay, tmp_path):
    assay("tell", write(filled()))
    done = assay("report", "-o", "page.html")
    assert done.exit_code == 0, done.output
    assert "<html" in (tmp_path / "page.html").read_text()
    refused = assay("report", "-o", tmp_path / "page.html" / "x.html")
    assert refused.exit_code == 1
    assert "cannot be written" in refused.stderr


def test_deleting_is_refused_without_yes(assay, call):
    refused = assay("delete-study", input="y\n")
    assert refused.exit_code == 1
    assert "this would forget study 'assay' and its 0 results; add --yes" in refused.stderr
    assert load_study("assay").spent == 6
    assert call("delete-study", "-s", "asay", "--yes").exit_code == 1
    assert assay("delete-study", "--yes").exit_code == 0
    assert assay("best").exit_code == 1
    assert "there are no studies here" in call("studies").stderr


def test_money_minimum_and_names(call, tmp_path):
    (tmp_path / "arms.csv").write_text("code,temp,price\nA,1,2\nB,2,1\nC,4,0.5\n")
    options = ("--arms", "arms.csv", "--id", "code", "--cost", "price", "--minimize", "--model", "means")
    assert call("create-study", "m", *options, "--budget", 20.5).exit_code == 0
    assert load_study("m").budget == 20.5
    call("run-study", "--study-name", "m", "--pull", script(tmp_path))
    study = load_study("m")
    assert study.finished
    assert study.spent <= 20.5
    assert study.best_arm == "A"
    again = call("create-study", "m", *options, "--budget", 20.5)
    assert again.exit_code == 1
    assert "there is a study 'm' already" in again.stderr
    assert call("create-study", "m", *options, "--budget", 20.5, "--if-exists", "load").exit_code == 0
    assert (
        "its budget is 20.5, not 21"
        in call("create-study", "m", *options, "--budget", 21, "--if-exists", "load").stderr
    )
    for bad in ("nan", "inf", "-3", "0"):
        assert call("create-study", "x", *options, "--budget", bad).exit_code == 1


def test_usage_errors_have_exit_code_2(call, monkeypatch):
    assert call("ask", "--study-name", "x", "-n", 0).exit_code == 2
    assert call("create-study", "x", "--arms", "arms.csv").exit_code == 2
    assert call("create-study", "x", "--arms", "arms.csv", "--budget", 9, "--seed", -1).exit_code == 2
    assert call("amend", "T0001", "1.5").exit_code == 2
    monkeypatch.delenv("BESTARM_STORAGE")
    missing = call("studies")
    assert missing.exit_code == 2
    assert "--storage" in missing.stderr


def test_the_doctor_says_what_is_wrong(assay, call, tmp_path):
    healthy = call("doctor", "-f", "json")
    assert healthy.exit_code == 0
    says = [row["says"] for row in json.loads(healthy.stdout)]
    assert "6 of 24 spent" in says[0]
    assert "6 trials are out" in says[1]
    journal = tmp_path / "j.jsonl"
    place = ("--storage", journal)
    assert call("doctor", *place).exit_code == 1
    call("create-study", "j", "--arms", "arms.csv", "--id", "code", "--budget", 30, *place)
    assert call("doctor", *place).exit_code == 0
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"study":"j","rec')
    cut = call("doctor", *place)
    assert cut.exit_code == 0  # cut short by a crash, so never confirmed
    assert "note   j.jsonl: line 2, at byte" in " ".join(cut.stdout.split(" ")).replace(str(tmp_path) + "/", "")
    record = json.loads(whole)["record"] | {"version": 9}
    journal.write_bytes(written("j", 0, json.dumps(record)))
    newer = call("doctor", *place)
    assert newer.exit_code == 1
    assert "newer bestarm (log version 9)" in newer.stdout
    assert call("studies", *place).exit_code == 1
    (tmp_path / "s.db").write_bytes(b"this is no database, but it is long enough to be one" * 9)
    broken = call("doctor")
    assert broken.exit_code == 1
    assert "Traceback" not in broken.output


def test_pending_trials_are_written_all(assay):
    fine = assay("ask", "-n", 3)
    assert fine.exit_code == 0
    refused = assay("ask", "--pending", "-n", 1)
    assert refused.exit_code == 2
    assert "--pending writes all trials that are out: it goes without -n" in refused.stderr
