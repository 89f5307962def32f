"""Commands that are stopped or cannot be: a line says why, what is kept and what to do, and never a traceback."""

import os
import signal
import subprocess
import sys
import time

import pytest

from bestarm.cli import main
from bestarm.cli.commands import COMMANDS
from bestarm.study import open_storage
from bestarm.study.study import Study
from tests.cli.commands import CREATE, fine, refused, state, told, write


def interrupted(done):
    assert done.exit_code == 130
    assert not {"Traceback", "Aborted!"} & set(done.output.split())
    return done.stderr


def test_ctrl_c_says_what_was_spent_what_is_kept_and_how_to_go_on(assay, tmp_path, monkeypatch):
    ask, write_ = Study.ask, Study.write

    def asked(self, *args, **how):
        ask(self, *args, **how)
        raise KeyboardInterrupt

    def stopped(self, *args):
        raise KeyboardInterrupt

    monkeypatch.setattr(Study, "ask", asked)
    said = interrupted(assay("ask", "-o", "next.csv"))
    assert "stopped: 12 of 24 spent, 6 results kept, 6 trials out; ask --pending writes the trials that are out" in said
    assert not (tmp_path / "next.csv").exists()
    fine(assay("ask", "--pending", "-o", "next.csv"))
    monkeypatch.setattr(Study, "write", stopped)
    said = interrupted(assay("tell", told("next.csv", range(6))))
    assert "6 results kept, 6 trials out; tell the file again" in said
    monkeypatch.setattr(Study, "write", write_)
    assert "6 new" in fine(assay("tell", "told.csv"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_says_how_to_go_on_and_is_resumed(assay, tmp_path, number):
    (tmp_path / "measure").write_text("#!/bin/sh\necho begun >> begun\ntest -f quick || sleep 60\necho 1\n")
    (tmp_path / "measure").chmod(0o755)
    command = [sys.executable, "-c", "from bestarm.cli import main; main()", "run-study", "--pull", "./measure {id}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
        while not (tmp_path / "begun").exists():
            time.sleep(0.05)
        run.send_signal(number)
        if number == signal.SIGINT:  # which waits for what is under way, the second does not
            assert "waiting for 1 pull under way" in run.stderr.readline()
            run.send_signal(number)
        said = run.communicate(timeout=30)[1]
    assert run.returncode == 128 + number
    assert "Aborted" not in said
    assert "stopped with 7 of 24 spent; every value that came back is kept; run again to go on" in said
    assert "Traceback" not in said
    (tmp_path / "quick").touch()
    assert "24 of 24 spent" in fine(assay("run-study", "--pull", "./measure {id}", "--jobs", 4))


def test_a_template_is_refused_before_the_first_pull(assay):
    for template in ("bash -c 'measure {id}'", "measure x{id}", "ssh lab measure {id}"):
        assert '"$BESTARM_ID"' in refused(assay("run-study", "--pull", template))
    assert state().used == 6
    write("code,temp\n-rf,1\n-x,2\n", "dashes.csv")
    fine(assay("create-study", "d", "--arms", "dashes.csv", "--id", "code", "--budget", 9))
    assert "-rf" in refused(assay("run-study", "-s", "d", "--pull", "measure {id}"))
    assert state("d").used == 0


@pytest.mark.parametrize("style", ["table", "json", "csv"])
def test_a_reader_that_goes_away_is_no_traceback(assay, style):
    command = [sys.executable, "-c", "from bestarm.cli import main; main()", "trials", "-f", style]
    read, write_ = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(command, stdout=write_, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(write_)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


LONG = "x" * 300


@pytest.mark.parametrize(
    "words",
    [
        ("tell", LONG), ("import", LONG), ("ask", "-o", LONG), ("trials", "-o", LONG), ("report", "-o", f"{LONG}.html"),
        ("add-arms", LONG), ("trials", "--storage", LONG), ("trials", "--storage", f"sqlite:///{LONG}.db"),
        ("copy-study", "--to", LONG), ("doctor", "--storage", LONG), ("studies", "--storage", f"{LONG}/{LONG}"),
        ("create-study", "n", "--arms", LONG, "--budget", 9), ("create-study", "n", *CREATE, "--budget", 1e30),
        ("create-study", "n", *CREATE, "--budget", "inf"), ("create-study", "n", *CREATE, "--budget", "nan"),
        ("create-study", "n", *CREATE, "--budget", 9, "--noise-variance", -1),
        ("create-study", "\n", *CREATE, "--budget", 9),
        ("trials", "--storage", "postgresql+psycopg://u@h:port/db"), ("trials", "--storage", "oracle://x"),
        ("trials", "--storage", "sqlite:///"), ("run-study", "--pull", "nowhere:pull"),
        ("run-study", "--pull", "measure {id}", "--pull-timeout", -1), ("tell", "."), ("trials", "--arms", LONG),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_a_line_and_never_by_a_traceback(assay, words):
    done = assay(*words)
    if words[:2] != ("trials", "--arms"):  # of no use where the log has the arms
        said = refused(done)
        assert said.startswith("Error: ") or (words[0] == "doctor" and "wrong  " in done.stdout)  # it found that
    assert state().used == 6
    assert open_storage("s.jsonl").names() == ["assay"]


def test_folders_without_access_are_refused(assay, monkeypatch):
    def closed(self, *args, **how):
        raise PermissionError(13, "Permission denied", str(self))

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.read_bytes", closed)
        assert "told.csv cannot be read: Permission denied" in refused(assay("tell", "told.csv"))
    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.is_file", closed)
        assert "x.csv cannot be written: Permission denied" in refused(assay("ask", "-o", "x.csv"))
    with monkeypatch.context() as patch:
        patch.setattr("bestarm.study.open_storage", closed)
        assert "closed.db: Permission denied" in refused(assay("trials", "--storage", "closed.db"))
    assert state().used == 6


def test_a_batch_survives_a_spreadsheet_and_ids_that_do_not_are_said(call, tmp_path):
    write("code,temp\nMAR1,1\n0002,2\nGrün,3\n", "arms.csv")
    fine(call("create-study", "s", *CREATE[:4], "--budget", 9, "--policy", "uniform"))
    said = fine(call("ask", "-o", "batch.csv"))
    assert "MAR1" in said
    data = (tmp_path / "batch.csv").read_bytes()
    assert data.startswith(b"\xef\xbb\xbf")
    text = data.decode("utf-8-sig").replace("0002", "2")  # as it comes back
    lines = text.splitlines()
    write("\n".join([lines[0], *(line + "1" for line in lines[1:])]), "told.csv")
    assert "9 new" in fine(call("tell", "told.csv"))


def test_commands_are_listed_by_what_they_are_for_and_show_an_example(call):
    listed = call("--help").stdout
    for title in ("Studies:", "Asking and telling:", "Answers:", "Putting right:"):
        assert title in listed
    for name in main.loaded():
        assert f"\n  {name} " in listed
    on_studies = [name for title, some in COMMANDS.items() for name in some if title not in ("One run", "Research")]
    shown = {name: " ".join((main.loaded()[name].help or "").split()) for name in on_studies}
    assert [name for name, text in shown.items() if f"`bestarm {name}" not in text] == []
