"""Whatever is typed and whatever is in a file: an answer or a line that says what is wrong, and never a traceback."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, example, given, settings

from bestarm import catalog, create_study
from bestarm.cli import main
from bestarm.errors import ArmsError
from bestarm.numbers import LARGEST_WHOLE
from bestarm.tables.arms import Arms
from bestarm.tables.files import read_file
from bestarm.tables.text import LONGEST

ROWS = [(f"a{i}", i / 10, "xy"[i % 2], i % 3) for i in range(6)]
TABLE = "code,size,kind,mean\n" + "".join(f"{i},{s},{k},{m}\n" for i, s, k, m in ROWS)
FACTOR = float(os.environ.get("BESTARM_TORTURE", "1"))


def call(*words):
    """Type a command, and check that it ends as every command does."""
    done = CliRunner().invoke(main, [str(word) for word in words])
    trace = f"{done.output}\n{done.exception!r}"
    assert done.exit_code in (0, 1, 2), trace
    assert done.exception is None or isinstance(done.exception, SystemExit), trace
    assert "Traceback" not in done.output
    if done.exit_code:
        assert "Error: " in done.stderr, trace
    return done


def refused(done, says, code=1):
    assert (done.exit_code, done.stdout) == (code, ""), done.output
    assert says in done.stderr
    return done.stderr


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arms.csv").write_text(TABLE)
    return tmp_path


def simulated(*words, table="arms.csv", id="code", column="mean", variance="1", budget=30):
    told = ["--simulate", column, "--noise-variance", variance, "--budget", budget]
    return call("run", table, *(["--id", id] if id else []), *told, *words)


def pulled(*words, table="arms.csv", budget=12):
    return call("run", table, "--id", "code", "--exclude", "mean", "--budget", budget, "--retries", 0, *words)


# what is typed


@pytest.mark.parametrize("budget", [LARGEST_WHOLE + 1, 10**30])
def test_budgets_beyond_64_bits_are_refused(folder, budget):
    refused(simulated(budget=budget), f"budget must be a whole number, at most {LARGEST_WHOLE}")
    create = ("create-study", "s", "--arms", "arms.csv", "--id", "code", "--storage", "s.jsonl")
    refused(call(*create, "--budget", budget), "is beyond what a study can plan")
    assert not (folder / "s.jsonl").exists()


@pytest.mark.parametrize("policy", ["auto", "gse-lin-fwg", "uniform"])
def test_a_budget_beyond_what_can_be_planned_is_refused_in_a_moment(folder, policy):
    refused(simulated("--policy", policy, budget=LARGEST_WHOLE), "is beyond what a study can plan, 100,000,000 pulls")


@pytest.mark.parametrize("policy", ["auto", "gse-lin-fwg", "uniform", "successive-rejects", "top-two-lin", "lingape"])
def test_a_study_of_the_largest_budget_begins_in_a_moment(policy):
    begun = time.process_time()
    create_study(Arms.from_arrays(np.eye(4)), 1e8, catalog.policy(policy), noise_variance=1.0, seed=1)
    assert time.process_time() - begun < 10


@pytest.mark.parametrize("command", ["run", "create-study", "plan"])
def test_a_negative_seed_is_refused(folder, command):
    words = {"run": ["arms.csv"], "create-study": ["s", "--arms", "arms.csv", "--storage", "s.jsonl"], "plan": []}
    assert "--seed" in refused(call(command, *words[command], "--budget", 9, "--seed", -1), "-1 is not in the range", 2)


OPTIONS = {
    "an infinite variance": (["--noise-variance", "inf"], "--noise-variance must be a finite number from 0 to 1e+150"),
    "a variance that is none": (["--noise-variance", "nan"], "--noise-variance must be a finite number"),
    "a variance of 1e308": (["--noise-variance", "1e308"], "--noise-variance must be a finite number"),
    "an eta that is none": (["--eta", "nan", "--model", "linear"], "eta must be greater than 1; given nan"),
    "a column of text": (["--simulate", "kind"], "arm 'a0', column 'kind': expected a number, found 'x'"),
    "no column": (["--simulate", ""], "unknown column ''"),
    "half a letter": (["--id", "c\udcff"], "unknown column"),
    "a policy of half a letter": (["--policy", "\udcff"], "unknown policy"),
}


@pytest.mark.parametrize("what", OPTIONS)
def test_options_that_cannot_be_are_refused(folder, what):
    words, says = OPTIONS[what]
    refused(simulated(*words), says)


LONG = "x" * 300
PLACES = [LONG, f"{LONG}.npy", f"{LONG}.parquet", f"{LONG}.csv", "arms.csv/x.csv", "nothing.csv", "nothing.npy",
          "nothing.parquet", ".", "", "/proc/self/mem", "/dev/null", "a\nb"]  # fmt: skip


@pytest.mark.parametrize("place", PLACES, ids=range(len(PLACES)))
def test_tables_that_are_nowhere_are_refused(folder, place):
    refused(simulated(table=place), "")
    refused(call("create-study", "s", "--arms", place, "--budget", 9, "--storage", "s.jsonl"), "")
    refused(call("design", place, "--pulls", 9), "")
    assert not (folder / "s.jsonl").exists()


@pytest.mark.parametrize("place", [f"{LONG}.html", "arms.csv/x.html", "arms.csv/x.png", "new/x.html"])
def test_a_report_that_cannot_be_written_is_said_before_the_first_pull(folder, place):
    done = simulated("--report", place)
    assert (done.exit_code, "Error: --report: " in done.stderr, done.stdout) == (2, True, "")
    assert not (folder / "new").exists()


def test_a_report_that_could_not_be_written_after_all_is_said_after_the_answer(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bestarm.study.report.write_whole", full)
    done = simulated("--report", "x.html")
    assert (done.exit_code, "--report cannot be written" in done.stderr) == (1, True)
    assert "arm " in done.stdout


def test_columns_too_large_to_simulate_are_refused_by_cell(folder):
    (folder / "arms.csv").write_text(TABLE.replace("a3,0.3,y,0", "a3,0.3,y,1e308"))
    for more in ([], ["--scale", "minmax"], ["--minimize"], ["--model", "linear"]):
        refused(simulated(*more), "arm 'a3', column 'mean': expected a number within ±1e+150, found '1e308'")
    (folder / "arms.csv").write_text(TABLE.replace("a3,0.3,y,0", "a3,0.3,y,1e18"))
    refused(simulated("--model", "poisson"), "must not go beyond 1e+15")


@pytest.mark.parametrize("factor", ["e200", "e149", "e-320"])
@pytest.mark.parametrize("scale", ["none", "minmax", "standard"])
@pytest.mark.parametrize("policy", ["auto", "gse-lin-fwg", "lingape"])
def test_features_of_any_size_are_answered_or_refused(folder, factor, scale, policy):
    rows = [f"{i},{s}{factor},{2 - s * s}{factor},{m}" for i, s, _, m in ROWS]
    (folder / "arms.csv").write_text("\n".join(["code,size,width,mean", *rows]) + "\n")
    done = simulated("--scale", scale, "--policy", policy)
    if done.exit_code:
        said = ("within ±1e+150", "use --scale none", "cannot start with these arms")
        assert any(word in done.stderr for word in said), done.stderr


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("factor", [1e200, 1e-160, 1e-310, 5e-324])
def test_a_design_for_features_of_any_size_is_made_or_refused(folder, factor):
    np.save("arms.npy", np.random.default_rng(0).standard_normal((6, 3)) * factor)
    done = call("design", "arms.npy", "--pulls", 9)
    assert done.exit_code == 0 or any(word in done.stderr for word in ("within ±1e+150", "in another unit"))


@pytest.mark.parametrize("reward", ["1e308", "1e150", "-1e150", "1e-320"])
@pytest.mark.parametrize("policy", ["auto", "gse-lin-fwg", "sequential-halving", "gse-forest"])
def test_rewards_of_any_size_are_taken_or_refused(folder, reward, policy):
    done = pulled("--pull", f"echo {reward} # BESTARM_ID", "--policy", policy)
    if "308" in reward:
        refused(done, "a number within ±1e+150 is expected of a pull")
        assert "0 results kept" in done.stderr
    else:
        assert done.exit_code == 0


NOTHING = "run - --budget 9 --simulate x --noise-variance 1"


@pytest.mark.parametrize(
    ("words", "closed"),
    [("policies", ">&-"), ("policies", "2>&-"), ("policies", ">/dev/full"), ("policies --help", ">/dev/full"),
     ("--help", ">/dev/full"), (NOTHING, "<&-"), (NOTHING, "2>/dev/full"), (NOTHING, "<&- >&- 2>&-")],
)  # fmt: skip
def test_closed_and_full_streams_are_no_traceback(folder, words, closed):
    line = f"{sys.executable} -c 'from bestarm.cli import main; main()' {words} {closed}"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, cwd=folder, input="", check=False)
    assert done.returncode in (0, 1, 2)
    assert "Traceback" not in done.stderr + done.stdout


def test_arguments_that_are_no_text_are_no_traceback(folder):
    name = os.fsdecode(b"t\xff.csv")
    (folder / name).write_text(TABLE)
    assert simulated("--report", os.fsdecode(b"r\xff.html"), "--log", os.fsdecode(b"l\xff"), table=name).exit_code == 0
    refused(simulated(table=os.fsdecode(b"n\xff.csv")), "No such file")


# what is in a file


def test_cells_longer_than_the_csv_modules_limit_are_read(folder):
    text = "y" * 200_000
    (folder / "arms.csv").write_text(
        TABLE.replace("kind", "kind,about").replace(",x,", f",x,{text},").replace(",y,", ",y,b,")
    )
    done = simulated("--label", "about", "-f", "json")
    assert done.exit_code == 0, done.output
    sheet = read_file(folder / "arms.csv")
    assert {len(cell) for cell in sheet.columns["about"]} == {200_000, 1}


def test_lines_longer_than_the_csv_modules_limit_are_read(folder):
    names = ",".join(f"f{j}" for j in range(60_000))
    (folder / "arms.csv").write_text(
        f"{names}\n" + ",".join(["0.5"] * 60_000) + "\n" + ",".join(["1.5"] * 60_000) + "\n"
    )
    sheet = read_file(folder / "arms.csv")
    assert len(sheet.columns) == 60_000
    assert list(sheet.columns["f59999"]) == ["0.5", "1.5"]


MEASURED = """
import resource, sys
from pathlib import Path
from bestarm.errors import ArmsError
from bestarm.tables.files import read_file
try:
    read_file(sys.argv[1])
except ArmsError as error:
    print(error)
said = Path("/proc/self/status")  # what a process took before it became this one counts for the other figure
most = said.read_text().split("VmHWM:")[1].split()[0] if said.exists() else 0
print((int(most) or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) // 1024)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no resource module")
@pytest.mark.parametrize("quote", ["", '"'], ids=["plain", "quoted"])
def test_a_line_of_a_gigabyte_is_refused_in_little_memory(folder, quote):
    with (folder / "arms.csv").open("wb") as file:
        file.write(TABLE.encode() + f"a9,1,{quote}".encode())
        file.truncate(1 << 30)
    done = subprocess.run([sys.executable, "-c", MEASURED, "arms.csv"], capture_output=True, text=True, check=True)
    error, megabytes = done.stdout.splitlines()
    assert f"line 8: more than {LONGEST:,} bytes" in error
    assert int(megabytes) < 600


@pytest.mark.parametrize("data", [b"", b"\n\n", b"code\n", b"a,b\n1\n", b"a,b\n1,2,3\n", b'a,b\n"1,2\n', b"a,a\n1,2\n",
    b"\xff\xfe", b"a,b\n1,\0\n", b"a,b\n1,\xff\n", b"1,2\n3,4\n", b",\n,\n", b"a,b\n1,2\n1,2\n"], ids=repr)  # fmt: skip
def test_tables_that_are_none_are_refused(folder, data):
    (folder / "arms.csv").write_bytes(data)
    done = simulated(id=None, column="b")
    assert done.exit_code == 0 or "arms.csv" in done.stderr or "column" in done.stderr


def written(kind):
    """The bytes of a small sound table of a kind of file."""
    if kind == "csv":
        return TABLE.encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"arms.{kind}"
        if kind == "npy":
            np.save(path, np.array([[1, s, m] for _, s, _, m in ROWS]) + np.eye(6, 3))
        else:
            parquet = pytest.importorskip("pyarrow.parquet")
            import pyarrow

            table = {"x1": [float(s) for _, s, _, _ in ROWS], "x2": [m for *_, m in ROWS], "id": [r[0] for r in ROWS]}
            parquet.write_table(pyarrow.table(table), path, row_group_size=4)
        return path.read_bytes()


HEADER = (
    rb"<f8 >f8 |O8 <c8 <M8 |S0 |V8 |b1 |u1 (6,3) (3,6) (9,9) (0,3) (6,-3) (18,) (6e9,) True False shape descr "
    rb"x() { } ' [ PAR1"
).split()
CELLS = rb', ; " nan 1e999 1e308 -1e200 1_0 mean 0'.split() + [b"\n", b"\r", b"\0", b"\xff", b""]
PIECES = st.sampled_from(HEADER + CELLS) | st.binary(max_size=8)


@st.composite
def damaged(draw, data):
    """A file of which some bytes are overwritten, put in, taken out, doubled or cut off."""
    data = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)) | st.integers(max(0, len(data) - 64), len(data)) | st.integers(0, 128))
        piece, end = draw(PIECES), at + draw(st.integers(0, 24))
        match draw(st.integers(0, 4)):
            case 0:
                data[at : at + len(piece)] = piece
            case 1:
                data[at:at] = piece
            case 2:
                del data[at:end]
            case 3:
                data[at:at] = data[at:end]
            case _:
                data[at:] = b""
    return bytes(data)


def try_file(kind, data):
    """Give a file to the commands that read arms."""
    with tempfile.TemporaryDirectory() as folder:
        arms, storage = Path(folder) / f"arms.{kind}", Path(folder) / "s.jsonl"
        arms.write_bytes(data)
        column, id = ("mean", "code") if kind == "csv" else ("x2", None)
        policy = "auto" if len(data) % 4 == 0 else "uniform"
        simulated("--policy", policy, table=arms, id=id, column=column)
        done = call("create-study", "s", "--arms", arms, "--budget", 9, "--policy", policy, "--storage", storage)
        if not done.exit_code:
            assert call("ask", "--storage", storage).exit_code == 0
        assert storage.exists() == (done.exit_code == 0)


FUZZ = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
LONG_FUZZ = settings(FUZZ, max_examples=max(1, round(3000 * FACTOR)), derandomize=False)


@FUZZ
@given(data=damaged(written("npy")))
@example(data=written("npy"))
def test_damaged_arrays_are_read_or_refused(data):
    try_file("npy", data)


@FUZZ
@given(data=damaged(written("parquet")))
@example(data=written("parquet"))
def test_damaged_parquet_files_are_read_or_refused(data):
    try_file("parquet", data)


@FUZZ
@given(data=damaged(written("csv")))
@example(data=written("csv"))
def test_damaged_tables_are_read_or_refused(data):
    try_file("csv", data)


@pytest.mark.torture
@pytest.mark.parametrize("kind", ["npy", "parquet", "csv"])
def test_thousands_of_damaged_files_are_read_or_refused(kind):
    @LONG_FUZZ
    @given(data=damaged(written(kind)))
    def never_a_traceback(data):
        try_file(kind, data)

    never_a_traceback()


def test_a_parquet_file_cut_anywhere_is_refused(folder):
    pytest.importorskip("pyarrow")
    whole = written("parquet")
    for cut in range(0, len(whole), 97):
        (folder / "arms.parquet").write_bytes(whole[:cut])
        refused(simulated(table="arms.parquet", id="id", column="x1"), "arms.parquet: expected a Parquet file")


@pytest.mark.parametrize("claim", ["(99999999999, 3)", "(9999999999999999999999, 3)", "(6, -3)", "(-6, 3)", "(6.0, 3)",
    "(6*3,)", "None", "(True, 3)", "((6, 3),)"])  # fmt: skip
def test_an_array_that_claims_to_be_another_is_refused_and_not_allocated(folder, claim):
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {claim}, }}".ljust(117) + "\n"
    (folder / "arms.npy").write_bytes(b"\x93NUMPY\x01\x00\x76\x00" + head.encode() + b"\0" * 144)
    refused(simulated(table="arms.npy", id=None, column="x1"), "arms.npy: expected")
    with pytest.raises(ArmsError):
        Arms.from_file("arms.npy")
