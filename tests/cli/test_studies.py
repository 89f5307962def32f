"""Studies as a whole from the command line: copied, begun from another, salvaged, upgraded, listed with their times."""

import json
import os
import subprocess
import sys
import time

import pytest

from bestarm import Goal, load_study
from bestarm.study import open_storage
from tests.cli.commands import ARMS, CREATE, fine, refused, rows, state, told, write


def test_a_study_is_copied_between_storages_and_compared(assay):
    assert "3 records, read again and compared" in fine(assay("copy-study", "assay", "--to", "sqlite:///b.db"))
    assert load_study("assay", "sqlite:///b.db").state.total == 6
    fine(assay("copy-study", "--to", "c.jsonl", "--as", "backup"))
    assert load_study("backup", "c.jsonl").trials() == load_study("assay").trials()
    fine(assay("amend", "T1", 9, "--why", "x", "--storage", "sqlite:///b.db"))
    assert "there is another study 'assay'" in refused(assay("copy-study", "--to", "sqlite:///b.db"))
    assert "is here already" in refused(assay("copy-study", "--to", "s.jsonl"))
    assert "'--to'" in refused(assay("copy-study", "assay"), 2)


def test_a_study_is_named_once(assay, monkeypatch):
    said = refused(assay("copy-study", "assay", "-s", "other", "--to", "copy.db"), 2)
    assert "name the study once: it is 'assay', and 'other' by -s" in said
    fine(assay("copy-study", "assay", "-s", "assay", "--to", "copy.db"))
    monkeypatch.setenv("BESTARM_STUDY", "other")  # what is typed goes before
    fine(assay("copy-study", "assay", "--to", "more.db"))
    monkeypatch.delenv("BESTARM_STORAGE")
    assert "say where studies are kept: --storage lab.db, or set BESTARM_STORAGE" in refused(assay("best"), 2)


def test_a_study_begins_anew_from_another_with_its_results(assay):
    fine(assay("exclude", "T0002", "--why", "foam"))
    fine(assay("amend", "T0003", 3.5, "--why", "typo"))
    fine(assay("withdraw", "B", "--why", "gone"))
    said = fine(assay("create-study", "again", "--from", "assay", "--minimize", "--exclude", "acid"))
    assert "5 results of 'assay' taken along, which cost nothing" in said
    assert "'assay' has 6 of 24 spent" in said
    old, new = state(), state("again")
    assert (new.budget, new.used, new.total) == (18, 0, 5)
    assert new.rewards.goal == Goal("minimize")
    assert new.names == ["temp"]
    assert new.options == old.options
    assert not new.present[1]
    found = {row["trial"]: row for row in load_study("again").trials()}
    assert set(found) == {f"T000{i} of assay" for i in (1, 3, 4, 5, 6)}
    assert found["T0003 of assay"]["value"] == 3.5
    assert found["T0003 of assay"]["source"] == "ann"
    assert found["T0003 of assay"]["time"] == old.results[3].time
    assert json.loads(assay("best", "-s", "again", "-f", "json").stdout)["arm"] == "A"
    assert "batch no" in rows(assay("ask", "-s", "again").stdout)[0]
    fine(assay("report", "-s", "again"))
    fine(assay("create-study", "again", "--from", "assay", "--minimize", "--exclude", "acid", "--if-exists", "load"))
    assert state("again").total == 5


def test_results_that_are_still_out_are_taken_along_when_they_have_come(assay):
    fine(assay("ask", "-n", 2, "-o", "plate.csv"))
    again = ("create-study", "again", "--from", "assay", "--minimize", "--if-exists", "load")
    said = fine(assay(*again))
    assert "2 trials of 'assay' are out: tell what comes of them to 'assay'; this command once more, with --if-" in said
    fine(assay("tell", "-s", "assay", told("plate.csv", [7, 8])))
    assert "are out" not in fine(assay(*again))
    assert state("again").total == 8
    fine(assay(*again))
    assert state("again").total == 8


def test_what_cannot_go_along_is_refused_before_anything_is_begun(assay):
    assert "needs rewards that are 0 or 1" in refused(
        assay("create-study", "n", "--from", "assay", "--model", "logistic")
    )
    few = write("code,temp,acid\nA,1,0.2\n", "few.csv")
    assert "is not among the new arms" in refused(assay("create-study", "n", "--from", "assay", "--arms", few))
    assert "unknown column 'sugar'" in refused(assay("create-study", "n", "--from", "assay", "--feature", "sugar"))
    assert "unknown study" in refused(assay("create-study", "n", "--from", "asay"))
    assert "already" in refused(assay("create-study", "assay", "--from", "assay"))
    assert open_storage("s.jsonl").names() == ["assay"]


def test_a_study_that_is_over_begins_anew_with_a_budget_of_its_own(assay, tmp_path):
    (tmp_path / "measure").write_text("#!/bin/sh\nprintf '%d' \"'$1\"\n")
    (tmp_path / "measure").chmod(0o755)
    fine(assay("run-study", "--pull", "./measure {id}"))
    assert "is spent: say what the new study may spend" in refused(assay("create-study", "n", "--from", "assay"))
    fine(assay("create-study", "n", "--from", "assay", "--policy", "uniform", "--budget", 10))
    assert (state("n").budget, state("n").total) == (10, 24)
    assert state("n").first["policy_name"] == "uniform"


def test_a_table_kept_by_reference_may_move(call, tmp_path):
    fine(call("create-study", "r", *CREATE, "--budget", 24, "--by-reference"))
    assert open_storage("s.jsonl").read("r")[0]["arms"]["at"] == "arms.csv"
    fine(call("create-study", "again", "--from", "r", "--policy", "uniform"))
    assert "at" in open_storage("s.jsonl").read("again")[0]["arms"]
    (tmp_path / "sub").mkdir()
    (tmp_path / "arms.csv").rename(tmp_path / "sub" / "arms.csv")
    assert "--arms" in refused(call("ask", "-s", "r"))
    assert len(rows(call("ask", "-s", "r", "--arms", "sub/arms.csv").stdout)) > 0
    write(ARMS.replace("0.2", "0.3"), "arms.csv")
    assert "not the table this study was made with" in refused(call("ask", "-s", "r"))
    assert "needs a file" in refused(call("create-study", "x", "--arms", "-", "--budget", 9, "--by-reference"), 2)


def test_parts_of_a_package_are_imported_only_where_it_is_allowed(call, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\nfrom bestarm.policies.elimination import Elimination\n"
        "@dataclass(frozen=True)\nclass Mine(Elimination):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    code = (
        "from mine import Mine; from bestarm import create_study, catalog; p = catalog.policy('gse-lin-fwg'); "
        "create_study([[1, 0], [0, 1.0]], 9, Mine(p.model, p.design), study_name='m', storage='s.jsonl')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert "'mine'" in refused(call("ask"))
    fine(call("ask", "--allow", "mine", "-o", "batch.csv"))
    fine(call("tell", told("batch.csv", range(len(rows((tmp_path / "batch.csv").read_text()))))))
    fine(call("best"))
    fine(call("best", "--allow", "mine"))


def test_one_unreadable_study_hides_no_other_and_what_is_whole_is_salvaged(assay, tmp_path):
    fine(assay("create-study", "other", *CREATE, "--budget", 30))
    log = tmp_path / "s.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"value":3.0', b'"value":8.0'))
    done = assay("studies", "-f", "json")
    assert "study 'assay' cannot be read" in refused(done)
    assert [row["study"] for row in json.loads(done.stdout)] == ["other"]
    assert "record 2" in assay("doctor").stdout
    assert assay("doctor").exit_code == 1
    assert "study 'assay': what is whole is in rescued.jsonl" in fine(assay("doctor", "--salvage", "rescued.jsonl"))
    assert "left out: record 2" in assay("doctor", "-s", "assay", "--salvage", "again.jsonl").stderr
    assert load_study("assay", "rescued.jsonl").state.handed == 6
    assert "already" in refused(assay("doctor", "--salvage", "rescued.jsonl"))
    assert "no study is damaged" in fine(assay("doctor", "--salvage", "x.jsonl", "--storage", "rescued.jsonl"))
    refused(assay("delete-study", "-s", "assay"))
    fine(assay("delete-study", "-s", "assay", "--yes"))
    fine(assay("studies"))


def test_a_storage_of_version_1_is_upgraded_after_a_copy(call, tmp_path):
    golden = os.path.join(os.path.dirname(__file__), "..", "study", "golden", "v1", "uniform.jsonl")
    with open(golden, "rb") as file:
        (tmp_path / "old.jsonl").write_bytes(file.read())
    names = open_storage("old.jsonl").names()
    place = ("--storage", "old.jsonl")
    fine(call("studies", *place))
    said = fine(call("upgrade", "--copy", "before.jsonl", *place))
    assert names == ["uniform"]
    assert "1 study is of log version 2 now: uniform" in said
    assert "before.jsonl" in said
    assert open_storage("before.jsonl").names() == names
    assert "already" in fine(call("upgrade", *place))


def test_times_beyond_any_calendar_are_shown_as_numbers(assay, tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1e300)
    fine(assay("amend", "T0001", 2, "--why", "x"))
    fine(assay("ask", "-n", 1, "-o", "next.csv"))
    fine(assay("tell", told("next.csv", [3])))
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BESTARM_STORAGE", "s.jsonl")
    assert "1e+300" in assay("trials").stdout
    fine(assay("trials", "-f", "json"))
    fine(assay("doctor"))
    fine(assay("report"))


def test_where_nothing_was_told_nobody_is_ahead(call, assay):
    fine(call("create-study", "new", "--arms", "arms.csv", "--id", "code", "--budget", 30, "--storage", "n.jsonl"))
    place = ("--storage", "n.jsonl", "-f", "json")
    assert json.loads(call("studies", *place).stdout)[0]["ahead"] == "-"
    assert json.loads(call("doctor", *place).stdout)[0]["says"].endswith("ahead: nothing yet")
    fine(call("ask", "-n", 1, "--storage", "n.jsonl"))
    assert json.loads(call("doctor", *place).stdout)[1]["says"].startswith("1 trial is out")


@pytest.mark.parametrize("damage", [lambda data: data[:5000], lambda data: bytes(len(data))])
def test_a_storage_that_cannot_be_opened_is_not_said_to_be_salvaged(assay, tmp_path, damage):
    fine(assay("copy-study", "assay", "--to", "sqlite:///b.db"))
    (tmp_path / "b.db").write_bytes(damage((tmp_path / "b.db").read_bytes()))
    done = assay("doctor", "--storage", "b.db", "--salvage", "out.jsonl")
    assert "no study is damaged" not in refused(done)
    assert not (tmp_path / "out.jsonl").exists()


def test_a_storage_that_is_not_there_is_not_upgraded(assay, tmp_path):
    said = refused(assay("upgrade", "--storage", "nosuch.db"))
    assert "there is no study in nosuch.db; is it the right place?" in said
    assert not (tmp_path / "nosuch.db").exists()
