"""Garbage in: never a traceback, only exit codes 0, 1 and 2 with a sentence; never a record lost."""

import json
import os
import random
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given, settings

from bestarm import create_study, load_study
from bestarm.cli import main
from bestarm.tables.arms import Arms

ARMS = b"code,temp,acid\nA,1,0.2\nB,2,0.5\nC,3,0.1\nD,4,0.9\nE,5,0.3\n"
FEW = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))

fragments = st.sampled_from(
    [
        b",",
        b";",
        b"\t",
        b"\n",
        b"\r\n",
        b'"',
        b"0.0",
        b"T0003",
        b"T0011",
        b"T9999",
        b"1e999",
        b"nan",
        b"-",
        b"trial",
        b"reward",
        b"arm",
        b"failed",
        b"id",
        b"A",
        b"Z",
        b"1",
        b"1,5",
        b"\xef\xbb\xbf",
        b"\x00",
        b"\xff",
        b"{",
        b"}",
        b"[",
        b"null",
        b'"id"',
        "٣.١".encode(),
        b"1_0",
        b"0x1",
        b"--",
        b"\\",
        b" ",
        b"true",
        b"-1",
        b"1e200",
    ]
)


def read_everything(journal):
    """Call all that reads a study, and `ask`, which also writes."""
    named = ("--study-name", "s")
    page = ("-o", journal.with_name("page.html"))
    for args in (["studies"], ["doctor"], ["best", *named], ["report", *named, *page], ["ask", *named]):
        call(*args, "--storage", journal)


@st.composite
def mutations(draw, text):
    """A text with bytes put in, taken out, doubled or moved."""
    data = bytearray(text)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 12)))
        match draw(st.integers(0, 3)):
            case 0:
                data[at:at] = draw(fragments)
            case 1:
                del data[at:end]
            case 2:
                data[at:at] = data[at:end]
            case _:
                data[at:end] = draw(st.binary(max_size=6))
    return bytes(data)


soup = st.lists(fragments, max_size=30).map(b"".join)


def call(*args):
    done = CliRunner().invoke(main, [str(arg) for arg in args])
    trace = f"{done.output}\n{done.exception!r}"
    assert done.exit_code in (0, 1, 2), trace
    assert done.exception is None or isinstance(done.exception, SystemExit), trace
    assert "Traceback" not in done.output
    if done.exit_code == 1:
        assert done.stderr.strip() or done.stdout.strip()
    return done


@pytest.fixture(scope="module")
def begun():
    """The bytes of a journal with a study that has told four of eight trials."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "arms.csv").write_bytes(ARMS)
        arms = Arms.from_csv(Path(folder) / "arms.csv", id="code")
        study = create_study(arms, 30, model="linear", study_name="s", storage=Path(folder) / "j", seed=1)
        batch = study.ask(8)
        study.tell(batch, [1.0, 2.0, None, None, 3.0, 4.0, None, None])
        return (Path(folder) / "j").read_bytes()


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory() as path:
        before = os.getcwd()
        os.chdir(path)
        yield Path(path)
        os.chdir(before)


def values(path):
    return {row["trial"]: row["value"] for row in load_study("s", path).trials() if row["count"]}


BATCH = b"trial,arm,temp,acid,reward,failed\nT0003,,3,0.1,1.5,\nT0004,,3,0.1,,spilt\nT0007,,1,1,2.5,\n,A,,,7,\n"


@FEW
@given(data=mutations(BATCH) | soup | st.binary(max_size=200))
@example(data=BATCH)
@example(data=b"")
def test_whatever_is_told_nothing_told_before_is_lost(begun, data):
    with tempfile.TemporaryDirectory() as folder:
        journal, told = Path(folder) / "j", Path(folder) / "told.csv"
        journal.write_bytes(begun)
        told.write_bytes(data)
        before = values(journal)
        for verb in ("tell", "import"):
            done = call(verb, "--study-name", "s", told, "--storage", journal)
            after = values(journal)
            assert before.items() <= after.items()
            if done.exit_code:
                assert after == before  # whole or not at all
            before = after
        assert load_study("s", journal).spent <= 30
        call("ask", "--study-name", "s", "--storage", journal)


@FEW
@given(data=mutations(ARMS) | soup | st.binary(max_size=200), budget=st.sampled_from(["30", "1", "0", "nan", "1e300"]))
def test_whatever_the_arms_a_study_begins_or_does_not_exist(data, budget):
    with tempfile.TemporaryDirectory() as folder:
        journal, arms = Path(folder) / "j", Path(folder) / "arms.csv"
        arms.write_bytes(data)
        done = call("create-study", "s", "--arms", arms, "--budget", budget, "--storage", journal)
        listed = call("studies", "--storage", journal, "-f", "json")
        assert listed.exit_code == 0
        assert ("s" in [row["study"] for row in json.loads(listed.stdout or "[]")]) == (done.exit_code == 0)


@FEW
@given(data=st.data())
def test_whatever_happened_to_the_journal_it_is_said(begun, data):
    damaged = data.draw(mutations(begun) | soup | st.binary(max_size=200))
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "j"
        journal.write_bytes(damaged)
        whole = damaged[: damaged.rfind(b"\n") + 1]
        read_everything(journal)
        told = Path(folder) / "told.csv"
        told.write_bytes(BATCH)
        call("tell", "--study-name", "s", told, "--storage", journal)
        assert journal.read_bytes().startswith(whole)  # whatever stood there in whole lines still does


@FEW
@given(cut=st.integers(0, 10_000))
def test_a_journal_cut_anywhere_keeps_its_whole_records(begun, cut):
    with tempfile.TemporaryDirectory() as folder:
        journal = Path(folder) / "j"
        journal.write_bytes(begun[: cut % (len(begun) + 1)])
        lines = journal.read_bytes().count(b"\n")
        if not lines:
            assert call("best", "--study-name", "s", "--storage", journal).exit_code == 1
            return
        assert load_study("s", journal).state.records == lines
        assert call("ask", "--study-name", "s", "--storage", journal).exit_code == 0
        assert journal.read_bytes().count(b"\n") == lines + 1


@pytest.mark.parametrize("seed", range(20))
def test_a_record_of_valid_json_that_makes_no_sense_is_said(begun, seed, folder):
    """Numbers, words and keys of the log swapped for others, which still is JSON."""
    chance = random.Random(seed)
    lines = [json.loads(line) for line in begun.splitlines()]

    def swap(value, depth=0):
        if chance.random() < 0.02 and depth > 1:
            return chance.choice([None, -1, 3, "x", [], {}, True, 1e300, [1], {"part": "Nothing"}])
        if isinstance(value, dict):
            return {key: swap(item, depth + 1) for key, item in value.items() if chance.random() > 0.01}
        return [swap(item, depth + 1) for item in value] if isinstance(value, list) else value

    for _ in range(8):
        journal = folder / "j"
        journal.write_text("".join(json.dumps(swap(line)) + "\n" for line in lines))
        read_everything(journal)
