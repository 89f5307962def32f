"""One observation: what a command or a function may give, and that nothing of a command is left when it is over."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from bestarm import create_study
from bestarm.errors import InputError, PullError
from bestarm.numbers import LARGEST_VALUE
from bestarm.pulling import Command, checked, ended_by_signals, function, named, stop_all
from bestarm.study.crews import Threads
from bestarm.study.runner import run, run_async
from bestarm.study.running import make
from bestarm.study.trials import Trial
from bestarm.tables.arms import Arms
from bestarm.templates import prepare

ARMS = Arms.from_arrays(np.eye(3), ids=["a", "b", "c"])
# A command with a child, both of which write down who they are; what is to be set before them comes first.
FAMILY = "{}; sleep 600 & echo $$ $! > family; wait # BESTARM_ID"


@pytest.fixture
def bench(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def running(process):
    """Return whether a process is there and has not ended."""
    try:
        os.kill(process, 0)
        stat = Path(f"/proc/{process}/stat")
        return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] in "ZX")
    except (ProcessLookupError, FileNotFoundError):
        return False


def family(folder, seconds=20.0):
    """Return the processes of a command of ours, once it has written them down."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = (folder / "family").read_text().split() if (folder / "family").exists() else []
        if len(found) == 2:
            return [int(one) for one in found]
        time.sleep(0.01)
    raise AssertionError("the command did not begin")


def gone(processes, seconds=10.0):
    """Return whether processes end within some seconds."""
    end = time.monotonic() + seconds
    while any(map(running, processes)) and time.monotonic() < end:
        time.sleep(0.01)
    return not any(map(running, processes))


@pytest.mark.parametrize("before", ["true", "trap '' TERM"], ids=["obedient", "deaf"])
def test_after_the_timeout_the_whole_group_is_gone(bench, before):
    with pytest.raises(PullError, match=r"arm 'a': .* did not finish in 0\.5 seconds"):
        Command(FAMILY.format(before), timeout=0.5)("a")
    assert gone(family(bench), 0.0)


def test_after_the_timeout_the_whole_group_is_gone_when_a_study_pulls(bench):
    study = create_study(ARMS, 9, "uniform", seed=1)
    command = Command(FAMILY.format("true"), timeout=0.3)
    with pytest.raises(PullError, match="3 trials in a row"):
        run(study, command, n_jobs=1, retries=0)
    assert gone(family(bench))
    assert study.state.total == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_command_with_the_program(bench, number):
    (bench / "arms.csv").write_text("code,size\na,1\nb,2\nc,4\n")
    told = ["run", "arms.csv", "--id", "code", "--budget", "9", "--pull", FAMILY.format("true")]
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # a background job ignores it
    program = [sys.executable, "-c", f"{heard}; from bestarm.cli import main; main()", *told]
    with subprocess.Popen(program, stderr=subprocess.PIPE, text=True) as running_program:
        try:
            children = family(bench)
            running_program.send_signal(number)
            if number == signal.SIGINT:  # which waits for what is under way, the second does not
                time.sleep(1)
                running_program.send_signal(number)
            said = running_program.communicate(timeout=30)[1]
        finally:
            running_program.kill()
    assert running_program.returncode != 0
    assert gone(children)
    assert "0 results kept, 1 trial out; with --log FILE the next run could resume" in said
    assert said.count(" of 9 spent") == 1
    assert "Traceback" not in said


def test_a_signal_that_comes_while_a_command_begins_ends_it_too(bench, monkeypatch):
    begin = subprocess.Popen

    def interrupted(*words, **settings):
        process = begin(*words, **settings)
        family(bench)
        signal.raise_signal(signal.SIGINT)
        return process

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Command(FAMILY.format("true"))("a")
    assert gone(family(bench))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_signals_are_as_they_were_afterwards():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit, match=str(128 + signal.SIGTERM)), ended_by_signals():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_command_that_is_stopped_ends_at_once(bench):
    command = Command(FAMILY.format("true"))
    with ThreadPoolExecutor(1) as pool:
        pulled = pool.submit(command, "a")
        children = family(bench)
        while not pulled.done():  # a command that writes down who it is may not be known to its caller yet
            command.stop()
            time.sleep(0.01)
        with pytest.raises(PullError, match="ended by signal 15"):
            pulled.result()
    assert gone(children)
    stop_all()  # nothing is left to do


def test_a_command_is_stopped_that_has_only_just_begun(monkeypatch):
    begin = Command._start

    def slowly(self, *args):
        begun = begin(self, *args)
        time.sleep(0.3)  # it runs, and is not noted down yet
        return begun

    monkeypatch.setattr(Command, "_start", slowly)
    command, since = Command("sleep 30 # BESTARM_ID"), time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        pull = pool.submit(command, "a")
        time.sleep(0.1)
        command.stop()
        with pytest.raises(PullError, match="was ended by signal"):
            pull.result()
    assert time.monotonic() - since < 10


def test_a_crew_is_stopped_with_what_it_was_about_to_begin():
    trial, command = Trial("T0001", "a"), Command("sleep 30 # BESTARM_ID")

    def pull(trial):
        time.sleep(0.3)  # the thread is there, the command is not
        return command(trial.arm)

    crew, since = Threads(pull, None), time.monotonic()
    crew.send(trial, 1)
    crew.stop(command.stop)
    (outcome,) = crew.collect(0.0)
    assert isinstance(outcome.error, PullError)
    assert time.monotonic() - since < 10


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("./nowhere {id}", "there is no file ./nowhere"),
        ("nice ./nowhere {id} > log", "there is no file ./nowhere"),
        ("./plain {id}", "./plain may not be executed; chmod +x ./plain allows it"),
        ("plain {id}", "there is no program plain on the PATH; the file of this folder is ./plain"),
        ("./here/ {id}", "is a folder"),
        ("python3 nowhere.py {id}", "there is no file nowhere.py"),
        ("true && ./nowhere {id}", "there is no file ./nowhere"),
    ],
)
def test_a_program_that_is_not_there_is_refused_before_the_first_pull(tmp_path, monkeypatch, template, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain").write_text("echo 1\n")
    (tmp_path / "here").mkdir()
    with pytest.raises(InputError) as refused:
        named(template)
    assert says in str(refused.value)
    study = create_study([[1.0], [2.0]], 6, seed=1)
    with pytest.raises(InputError, match="cannot be run"):
        make(study, template)
    assert study.spent == 0


@pytest.mark.parametrize(
    "template",
    [
        "cd /tmp && ./there {id}", "PATH=bin:$PATH there {id}", "A=1 true {id}", "nice -n 5 ./x {id}", "exit {id}",
        "~/there {id}", "$HOME/there {id}", "test -f x || echo 1 # {id}", "python3 -u x.py {id}", ". ./env && x {id}",
        "if true; then echo 1; fi # BESTARM_ID", "/bin/sh there {id}", "timeout 5 ./x {id}",
    ],
)  # fmt: skip
def test_what_cannot_be_looked_up_is_trusted(tmp_path, monkeypatch, template):
    monkeypatch.chdir(tmp_path)
    try:
        prepare(template)
    except InputError:
        pytest.skip("refused as it is")
    named(template)


def test_a_command_learns_of_its_trial_and_of_nothing_older(bench, monkeypatch):
    monkeypatch.setenv("BESTARM_TRIAL", "T9999")
    command = Command('printf "%s|" "$BESTARM_ID" "$BESTARM_ARM" "$BESTARM_TRIAL" "$BESTARM_STUDY" > said; echo 1')
    assert command("a 'b'") == 1.0
    assert (bench / "said").read_text() == "a 'b'|a 'b'|||"
    command("c", trial="T0003", study="lab")
    assert (bench / "said").read_text() == "c|c|T0003|lab|"


@pytest.mark.parametrize(
    ("printed", "value"),
    [("1", 1.0), (" -2.5e3 ", -2500.0), ("\\n7\\n\\n", 7.0), ("1e150", 1e150), ("-1e150", -1e150), ("1e-320", 1e-320)],
)
def test_one_number_is_taken(printed, value):
    assert Command(f"printf '%b' '{printed}' # BESTARM_ID")("a") == value


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("printf ''", "must print one number on stdout; it printed nothing"),
        ("printf '1 2'", "it printed '1 2'"),
        ("printf '1_000'", "it printed '1_000'"),
        ("printf '1,5'", "it printed '1,5'"),
        ("printf '\\377\\376'", r"it printed '\\\\xff\\\\xfe'"),
        ("printf '1\\000'", r"it printed '1\\x00'"),
        ("printf '\\331\\243'", "it printed"),
        ("head -c 200000 /dev/zero", "it printed more than 65,536 bytes"),
        ("echo nan", "gave nan; a finite number is expected"),
        ("echo inf", "gave inf; a finite number is expected"),
        ("echo 1.0000001e150", r"a number within ±1e\+150 is expected"),
        ("echo 1e308", r"gave 1e\+308; a number within ±1e\+150 is expected"),
        ("printf 'a\\n\\033[31mb\\n\\377' >&2; false", "failed with exit code 1: a / .*b / .$"),
        ("exit 3", "failed with exit code 3: nothing on stderr"),
        ("kill -9 $$", "ended by signal 9"),
    ],
)
def test_anything_else_is_refused_and_shown(does, says):
    with pytest.raises(PullError, match=says) as info:
        Command(f"{does} # BESTARM_ID")("a")
    assert str(info.value).startswith("arm 'a': `")
    assert str(info.value).isprintable()


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf")])
def test_a_timeout_is_a_number_of_seconds(timeout):
    with pytest.raises(InputError, match="the timeout of a pull must be a number of seconds above 0"):
        Command("true # BESTARM_ID", timeout)


def test_a_very_long_timeout_is_one():
    assert Command("echo 1 # BESTARM_ID", 1e300)("a") == 1.0


@pytest.mark.parametrize(
    "value",
    [1, 1.0, True, np.True_, np.int64(1), np.float32(1), np.array(1.0), Fraction(1), Decimal(1)],
    ids=lambda value: type(value).__name__,
)
def test_numbers_of_any_library_and_truths_are_values(value):
    found = checked(value, "it")
    assert (type(found), found) == (float, 1.0)


@pytest.mark.parametrize(
    "value",
    [None, "1", b"1", 1j, np.ones(1), np.ones(2), [1.0], np.ma.masked, np.nan, -np.inf, 10**400, Decimal("NaN")],
    ids=repr,
)
def test_what_is_no_number_is_no_value(value):
    with pytest.raises(PullError, match=r"it gave .*; a (finite )?number .*is expected of a pull"):
        checked(value, "it")


@pytest.mark.parametrize("sign", [1, -1])
def test_one_bound_for_all_values(sign):
    assert checked(sign * LARGEST_VALUE, "it") == sign * LARGEST_VALUE
    with pytest.raises(PullError, match="within ±"):
        checked(sign * np.nextafter(LARGEST_VALUE, np.inf), "it")


ASSAY = """
import sys
def plain(arm): return len(arm)
def text(arm): return "1.5"
def broken(arm): raise ValueError("the valve is stuck")
def ends(arm): sys.exit(7)
async def later(arm): return 1.0
class Later:
    async def __call__(self, arm): return 1.0
later_too = Later()
hidden = lambda arm: later(arm)
number = 7
"""


@pytest.fixture
def assay(bench, monkeypatch):
    (bench / "assay_of_tests.py").write_text(ASSAY)
    (bench / "ends_of_tests.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(str(bench))
    yield lambda name: function(f"assay_of_tests:{name}")
    sys.modules.pop("assay_of_tests", None)


def test_a_function_gives_values(assay):
    assert assay("plain")("abc") == 3.0
    with pytest.raises(PullError, match=r"arm 'a': assay_of_tests:text gave '1\.5'; a finite number is expected"):
        assay("text")("a")
    with pytest.raises(PullError, match="broken failed: ValueError: the valve is stuck"):
        assay("broken")("a")
    with pytest.raises(PullError, match="ends failed: SystemExit: 7"):
        assay("ends")("a")


@pytest.mark.parametrize("name", ["later", "later_too"])
def test_coroutine_functions_are_refused_before_the_first_pull(assay, name):
    with pytest.raises(InputError, match=r"coroutine function, which only Study\.run_async can call"):
        assay(name)


def test_what_cannot_be_loaded_is_said(assay):
    for path in ("assay_of_tests:nothing", "nowhere_of_tests:pull", ":", "x:", ":x", ".x:y", "ends_of_tests:pull"):
        with pytest.raises(InputError, match="module:function"):
            function(path)
    with pytest.raises(InputError, match="is not a function"):
        assay("number")


def test_a_function_that_turns_out_to_give_awaitables_is_refused_at_its_first_call(assay):
    study = create_study(ARMS, 9, "uniform", seed=1)
    with pytest.raises(InputError, match="gave an awaitable: run_async makes such pulls"):
        run(study, assay("hidden"))
    assert (study.state.total, len(study.state.failures)) == (0, 0)
    with pytest.raises(PullError, match=r"it gave an awaitable, which only Study\.run_async can await"):
        checked(assay("hidden")("a"), "it")


@pytest.mark.parametrize("jobs", [1, 4])
def test_run_refuses_awaitables_at_its_first_call(jobs):
    study, calls = create_study(ARMS, 12, "uniform", seed=1), []

    async def pull(arm):
        calls.append(arm)
        return 1.0

    with pytest.raises(InputError, match=r"gave an awaitable: run_async makes such pulls, run does not"):
        run(study, pull, n_jobs=jobs)
    assert not calls  # no coroutine was begun
    assert (study.state.total, len(study.state.failures)) == (0, 0)
    assert asyncio.run(run_async(study, pull)) == 12


@pytest.mark.parametrize("concurrency", [1, 4])
def test_run_async_refuses_other_values_at_its_first_call_and_keeps_that_one(concurrency):
    study, calls = create_study(ARMS, 12, "uniform", seed=1), []

    def pull(arm):
        calls.append(arm)
        return 2.5

    with pytest.raises(InputError, match=r"gave 2\.5, which is no awaitable: run makes such pulls, run_async does not"):
        asyncio.run(run_async(study, pull, concurrency=concurrency))
    assert len(calls) == 1
    assert [row["value"] for row in study.trials() if row["count"]] == [2.5]
    assert run(study, pull) == 11


def test_awaitables_of_any_kind_are_right_for_run_async():
    class Later:
        def __init__(self, value):
            self.value = value

        def __await__(self):
            yield from asyncio.sleep(0).__await__()
            return self.value

    def pull(arm):
        if arm == "a":
            return Later(1.0)
        if arm == "b":
            return asyncio.ensure_future(asyncio.sleep(0, 2.0))
        return asyncio.sleep(0, 3.0)

    study = create_study(ARMS, 9, "uniform", seed=1)
    assert asyncio.run(run_async(study, pull)) == 9
    assert list(study.state.sums) == [3.0, 6.0, 9.0]
