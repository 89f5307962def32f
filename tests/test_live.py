"""The log of `bestarm run`: one run at a time, nothing lost that is on disk, and what is wrong is said in a line."""

import errno
import json
import os
import subprocess
import sys
import time
from contextlib import closing

import pytest
from click.testing import CliRunner

from bestarm import catalog
from bestarm.cli import main
from bestarm.errors import InputError, StorageError
from bestarm.live import Log, LogBusy

ABOUT = {"arms": "x", "budget": 12, "seed": 3}
ARMS = "code,size,mean\n" + "".join(f"a{i},{i / 10},{i / 10}\n" for i in range(4))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arms.csv").write_text(ARMS)
    return tmp_path


def run(*args, pull="echo {id} >> calls; echo 1", log="run.jsonl"):
    told = ["--id", "code", "--exclude", "mean", "--budget", 12, "--policy", "uniform", "--pull", pull, "--log", log]
    done = CliRunner().invoke(main, [str(word) for word in ["run", "arms.csv", *told, *args]])
    assert done.exit_code in (0, 1, 2), done.output
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert "Traceback" not in done.output
    return done


def calls(folder):
    return len((folder / "calls").read_text().splitlines()) if (folder / "calls").exists() else 0


def test_one_log_has_one_run_at_a_time(tmp_path):
    with closing(Log.open(tmp_path / "log", ABOUT)), pytest.raises(LogBusy, match="in use by another run"):
        Log.open(tmp_path / "log", ABOUT)
    Log.open(tmp_path / "log", ABOUT).close()


@pytest.mark.parametrize("link", [None, os.symlink, os.link], ids=["itself", "symbolic", "hard"])
def test_a_second_run_is_refused_names_the_first_and_pulls_nothing(folder, link):
    program = [sys.executable, "-c", "import sys; from bestarm.cli import main; main()", "run", "arms.csv"]
    words = [
        "--id",
        "code",
        "--exclude",
        "mean",
        "--budget",
        "12",
        "--policy",
        "uniform",
        "--log",
        "run.jsonl",
        "--pull",
    ]
    wait = "echo $BESTARM_TRIAL >> calls; : BESTARM_ID; until test -f go; do sleep 0.05; done; echo 1"
    with subprocess.Popen([*program, *words, wait], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as first:
        while not calls(folder):
            assert first.poll() is None
            time.sleep(0.02)
        if link is not None:
            link(folder / "run.jsonl", folder / "other.jsonl")
        second = run(log="run.jsonl" if link is None else "other.jsonl", pull="echo {id} >> second; echo 1")
        (folder / "go").touch()
        first.communicate(timeout=60)
    assert second.exit_code == 2
    assert "is in use by another run" in second.stderr
    assert "nothing was pulled" in second.stderr
    if sys.platform == "linux" and "process" in second.stderr:  # a container may hide its processes
        assert f"process {first.pid}" in second.stderr
    assert not (folder / "second").exists()
    assert (first.returncode, calls(folder)) == (0, 12)
    assert run().exit_code == 0
    assert calls(folder) == 12  # all from the log


def test_a_log_that_is_deleted_meanwhile_is_noticed_at_the_next_reward(folder):
    done = run(pull="echo {id} >> calls; test $(wc -l < calls) -eq 3 && rm run.jsonl; echo 1")
    assert done.exit_code == 1
    assert (
        "pull 3: 1.0 came back, and is not on disk: the log run.jsonl cannot be written: it was deleted" in done.stderr
    )
    assert calls(folder) == 3


@pytest.mark.parametrize("room", [0, 5, 26, 60])
def test_a_full_disk_names_the_reward_and_what_is_kept_is_whole(folder, monkeypatch, room):
    write, left = Log._append, [room]

    class Full:
        """A file on a disk with so many bytes left."""

        def __init__(self, file):
            self.file = file

        def write(self, data):
            taken = min(len(data), left[0])
            left[0] -= taken
            if not taken:
                raise OSError(errno.ENOSPC, "No space left on device")
            return self.file.write(data[:taken])

        def __getattr__(self, name):
            return getattr(self.file, name)

    def append(self, record):
        if "reward" in record and not isinstance(self.file, Full):
            self.file = Full(self.file)
        return write(self, record)

    with monkeypatch.context() as patch:
        patch.setattr(Log, "_append", append)
        done = run()
    assert done.exit_code == 1
    kept = (folder / "run.jsonl").read_bytes()
    assert kept.endswith(b"\n")
    rewards = [json.loads(line) for line in kept.splitlines()[1:]]
    assert len(rewards) == calls(folder) - 1
    said = (
        f"pull {calls(folder)}: 1.0 came back, and is not on disk: the log run.jsonl cannot be written: No space left"
    )
    assert said in done.stderr
    assert f"{calls(folder)} of 12 pulls were spent; run again to resume from run.jsonl" in done.stderr
    assert run().exit_code == 0


@pytest.mark.parametrize("place", ["arms.csv/run.jsonl", "/proc/bestarm.jsonl", "/dev/full", "x" * 300])
def test_a_log_that_cannot_be_is_refused_before_the_first_pull(folder, place):
    done = run(log=place)
    assert done.exit_code in (1, 2)
    assert "log" in done.stderr
    assert not calls(folder)


@pytest.mark.parametrize("template", ["bash -c './measure {id}'", "./measure 'a {id}'", "./measure x{id}", "echo 1"])
def test_a_template_that_cannot_be_is_refused_before_anything_is_begun(folder, template):
    done = run(pull=template)
    assert done.exit_code == 1
    assert '"$BESTARM_ID"' in done.stderr
    assert not (folder / "run.jsonl").exists()


def test_ids_that_a_command_cannot_be_given_are_refused_before_anything_is_begun(folder):
    (folder / "arms.csv").write_text(ARMS.replace("a3", "-rf"))
    done = run()
    assert done.exit_code == 1
    assert "arm '-rf' begins with '-'" in done.stderr
    assert not calls(folder)
    assert not (folder / "run.jsonl").exists()
    assert run(pull='echo "$BESTARM_ID" >> calls; echo 1').exit_code == 0
    assert "-rf" in (folder / "calls").read_text().split()


def header(**changes):
    return lambda first: json.dumps({k: v for k, v in {**first, **changes}.items() if v != "gone"}) + "\n"


BROKEN = {
    "no version": (header(bestarm="gone"), "is not a log of bestarm"),
    "a later version": (header(bestarm=2), "was written by a newer bestarm"),
    "no seed": (header(seed="gone"), "line 1: the seed must be a whole number, at least 0; given None"),
    "a bad seed": (header(seed=-1), "line 1: the seed must be a whole number"),
    "no budget": (header(budget="gone"), "belongs to another run: its budget is None, this one's 12"),
    "no policy": (header(policy="gone"), "belongs to another run: its policy is None"),
    "a list": (lambda first: "[]\n", "line 1 is not a JSON object"),
    "a table": (lambda first: ARMS, "line 1 is not JSON"),
    "a text": (lambda first: "a thesis", "is not a log of bestarm"),
    "bytes": (lambda first: b"\xff\xfe\n", "line 1 is not JSON"),
}
LINES = {
    "no arm": ('{"reward": 1}', "line 2: an arm and a reward are expected"),
    "no reward": ('{"arm": "a1"}', "line 2: an arm and a reward are expected"),
    "a text": ('{"arm": "a1", "reward": "1"}', "line 2: an arm and a reward are expected"),
    "too large": ('{"arm": "a1", "reward": 1e151}', "line 2: a reward within ±1e+150 is expected"),
    "an infinity": ('{"arm": "a1", "reward": 1e999}', "line 2: a reward within"),
    "NaN": ('{"arm": "a1", "reward": NaN}', "line 2: a reward within"),
    "400 digits": (f'{{"arm": "a1", "reward": {"9" * 400}}}', "line 2: a reward within"),
    "5000 digits": (f'{{"arm": "a1", "reward": {"9" * 5000}}}', "line 2 is not JSON"),
    "nested": ("[" * 100_000, "line 2 is not JSON"),
    "blank": ("", "line 2 is not JSON"),
    "a list": ("[1]", "line 2 is not a JSON object"),
}
BROKEN |= {
    what: (lambda first, line=line: f"{json.dumps(first)}\n{line}\n", says) for what, (line, says) in LINES.items()
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_damaged_log_is_refused_and_left_alone(folder, what):
    assert run().exit_code == 0
    log = folder / "run.jsonl"
    damaged = BROKEN[what][0](json.loads(log.read_text().splitlines()[0]))
    log.write_bytes(damaged if isinstance(damaged, bytes) else damaged.encode())
    before = log.read_bytes()
    done = run()
    assert done.exit_code == 1
    assert BROKEN[what][1] in done.stderr
    assert len(done.stderr) < 1000
    assert log.read_bytes() == before
    assert calls(folder) == 12


def test_a_log_cut_anywhere_gives_its_whole_rewards_again(folder):
    assert run().exit_code == 0
    whole = (folder / "run.jsonl").read_bytes()
    first = whole.index(b"\n") + 1
    for cut in [0, 1, 5, first - 1, first, first + 1, len(whole) - 1, len(whole)]:
        (folder / "run.jsonl").write_bytes(whole[:cut])
        (folder / "calls").unlink(missing_ok=True)
        kept = max(0, whole[:cut].count(b"\n") - 1)
        done = run()
        assert done.exit_code == 0, done.output
        assert calls(folder) == 12 - kept
        assert len((folder / "run.jsonl").read_bytes().splitlines()) == 13


def test_rewards_of_odd_ids_are_kept(tmp_path):
    for reward, arm in enumerate(["a\nb", "a\u2028b", "\ud800", "", "é", '"']):
        with closing(Log.open(tmp_path / "log", ABOUT)) as log:
            log.write(arm, float(reward))
        with closing(Log.open(tmp_path / "log", {**ABOUT, "seed": None})) as log:
            assert list(log.earlier[arm]) == [float(reward)]
            assert log.header["seed"] == 3
            assert log.count == reward + 1


def test_what_a_policy_cannot_digest_is_said_and_the_rewards_are_kept(folder, monkeypatch):
    def fails(self, state, pulls, totals):
        raise ZeroDivisionError("the letters of the equation")

    monkeypatch.setattr(type(catalog.policy("uniform")), "tell", fails)
    done = run()
    assert done.exit_code == 1
    assert "Error: the policy failed: ZeroDivisionError: the letters of the equation; another one may do" in done.stderr
    assert f"{calls(folder)} of 12 pulls were spent; every reward is in run.jsonl" in done.stderr
    assert len((folder / "run.jsonl").read_text().splitlines()) == 1 + calls(folder)


def test_a_log_is_not_written_where_it_cannot_be_opened(tmp_path):
    with pytest.raises(StorageError, match="cannot be opened"):
        Log.open(tmp_path / "no" / "log", ABOUT)
    with pytest.raises(InputError, match="it is not a file"):
        Log.open(tmp_path / "/dev/null", ABOUT)
