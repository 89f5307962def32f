"""`bestarm run` on tables read in blocks, and `bestarm design`: answers, files, and errors that name what is wrong."""

import csv
import io
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import bestarm
from bestarm.cli import main
from bestarm.study import create
from bestarm.tables import opening

CARS = "src/bestarm/data/automobile.csv"
K, D = 6000, 4
NAMES = [f"f{j}" for j in range(D)]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(opening, "SMALL", 2000)  # what is a big table here
    monkeypatch.setattr(create, "HOLD", 0)


@pytest.fixture
def x():
    return np.random.default_rng(1).standard_normal((K, D))


@pytest.fixture
def means(x):
    return x @ [1.0, -2.0, 0.5, 1.5]


def write(path, x, means, **changes):
    columns = {"code": [f"item-{i}" for i in range(len(x))]}
    columns |= dict(zip(NAMES, x.T.copy(), strict=True)) | {"mean": means, "price": 1.0 + np.arange(len(x)) % 7}
    pq.write_table(pa.table(columns | changes), path, row_group_size=1000)
    return path


@pytest.fixture
def items(tmp_path, x, means):
    return write(tmp_path / "items.parquet", x, means)


def call(*args):
    return CliRunner().invoke(main, [str(a) for a in args])


def simulated(path, *args):
    noise = ["--noise-variance", 0.01, "--seed", 3, "--budget", 900]
    return call("run", path, "--simulate", "mean", *noise, *args)


def failed(done, *words):
    assert done.exit_code == 1, done.output
    assert done.output.startswith("Error: ") or "\nError: " in done.output
    for word in words:
        assert word in done.output
    assert "Traceback" not in done.output
    return True


def test_the_best_row_is_found_in_blocks(items, means):
    done = simulated(items, "--id", "code", "--exclude", "price", "-f", "json")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert answer["arm"] == answer["true_best"] == f"item-{means.argmax()}"
    assert answer["spent"] == 900 == sum(answer["counts"].values())
    assert answer["low"] < answer["true_mean"] < answer["high"]
    assert (answer["arms"], answer["rounds"]) == (K, 13)
    assert "6,000 arms, 4 features, read in blocks" in done.stderr
    assert any(f"of {K:,}" in words for words in answer["warnings"])


def test_rows_are_numbered_from_one_and_minimized(items, means):
    answer = json.loads(simulated(items, "--minimize", "--exclude", "code", "--exclude", "price", "-f", "json").stdout)
    assert answer["arm"] == str(means.argmin() + 1)
    assert answer["value"] == pytest.approx(means.min(), abs=0.2)
    assert simulated(items, "--feature", "f0", "--feature", "f1", "--intercept", "-f", "csv").exit_code == 0


def test_npy_columns_are_named_by_number(tmp_path, x, means):
    path = tmp_path / "items.npy"
    np.save(path, np.column_stack([x, means]))
    options = ["--simulate", "x5", "--noise-variance", 0.01, "--seed", 1, "--budget", 600]
    for more in ([], ["--id", "x5"]):
        done = call("run", path, *options, *more)
        assert done.exit_code == 0, done.output
    assert f"{means.max()!s}" in done.output or str(float(means.max())) in done.output


def test_small_tables_have_ids_categories_and_every_policy(tmp_path, x, means):
    path = write(tmp_path / "few.parquet", x[:40], means[:40], kind=["a", "b"] * 20)
    done = simulated(path, "--id", "code", "--exclude", "price", "--policy", "top-two-lin", "-f", "json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["arm"] == f"item-{means[:40].argmax()}"
    np.save(tmp_path / "few.npy", x[:40])
    done = call("run", tmp_path / "few.npy", "--simulate", "x1", "--noise-variance", 0.1, "--budget", 100, "--seed", 1)
    assert done.exit_code == 0, done.output
    broken = x[:40].copy()
    broken[17, 2] = np.nan
    path = write(tmp_path / "hole.parquet", broken, means[:40])
    assert failed(simulated(path, "--id", "code"), "row 18, row group 0, column 'f2': expected a number")


def test_real_pulls_are_logged_and_resumed(tmp_path, items, means, monkeypatch):
    (tmp_path / "lab.py").write_text(
        "calls = []\n"
        "def measure(arm):\n"
        "    calls.append(arm)\n"
        "    if 99 < len(calls) < 105: raise OSError('out of reagent')\n"
        "    return float(arm.split('-')[1]) % 17\n"
    )
    monkeypatch.chdir(tmp_path)
    options = [items, "--id", "code", "--exclude", "price", "--exclude", "mean", "--budget", 300, "--seed", 5]
    given = ["--pull", "lab:measure", "--log", "log.jsonl", "--retries", 0, "-f", "json"]
    first = call("run", *options, *given)
    assert first.exit_code in (0, 1)
    second = call("run", *options, *given)
    assert second.exit_code == 0, second.output
    assert "resuming: " in second.stderr
    import lab

    assert len(lab.calls) == 305  # 300 and those that failed
    assert json.loads(second.stdout)["spent"] == 300
    assert (tmp_path / "log.jsonl").stat().st_size < 200_000  # the table is not in it
    for command in ("best", "trials", "studies", "doctor"):
        assert call(command, "--storage", "log.jsonl").exit_code == 0
    assert call("report", "--storage", "log.jsonl", "-o", "page.html").exit_code == 0
    assert "cannot be withdrawn" in call("withdraw", "item-7", "--why", "x", "--storage", "log.jsonl").stderr
    begun = call("create-study", "again", "--from", "run", "--budget", 400, "--storage", "log.jsonl")
    for refused in (call("add-arms", "more.csv", "--storage", "log.jsonl"), begun):
        assert failed(refused, "a table that is read in blocks")
    assert call("raise-budget", 310, "--storage", "log.jsonl").exit_code == 0
    assert call("ask", "-o", "next.csv", "--storage", "log.jsonl").exit_code == 0
    best = call("best", "--storage", "log.jsonl")
    assert best.stderr.count("Chances are among the") == 1


def test_a_file_that_changes_is_refused(tmp_path, items, monkeypatch):
    (tmp_path / "meddler.py").write_text(
        f"import os\ndef measure(arm):\n    os.utime({str(items)!r}, ns=(1, 1))\n    return 1.0\n"
    )
    monkeypatch.chdir(tmp_path)
    options = ["--exclude", "code", "--budget", 300, "--seed", 5, "--pull", "meddler:measure"]
    assert failed(call("run", items, *options), "the file changed while it was read")
    assert os.stat(items).st_mtime_ns == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--id", "code", "--policy", "top-two-lin"],
            ["policy top-two-lin needs all arms in memory", "6,000 rows", "gse-lin-fwg"],
        ),
        (["--id", "code", "--model", "logistic"], ["model logistic needs all arms in memory"]),
        (["--label", "code"], ["labels needs all arms in memory"]),
        (["--scale", "minmax"], ["scale needs all arms in memory"]),
        (["--missing", "mean"], ["--missing needs all arms in memory"]),
        ([], ["column 'code': expected numbers, found the type string"]),
        (["--exclude", "cods"], ["unknown column 'cods'; the nearest are code"]),
        (["--id", "cods"], ["unknown column 'cods'"]),
        (["--exclude", "code", "--budget", 5], ["a budget of 5 cannot give each of 13 stages a pull"]),
    ],
)
def test_what_a_big_table_cannot_do(items, options, words):
    assert failed(simulated(items, *options), *words)


def test_bad_cells_are_named(tmp_path, x, means):
    broken = x.copy()
    broken[4321, 2] = np.nan
    path = write(tmp_path / "holes.parquet", broken, means)
    words = "holes.parquet: row 4322, row group 4, column 'f2': expected a finite number, found nan"
    assert failed(simulated(path, "--id", "code", "--exclude", "price"), words)
    assert failed(call("design", path, "--columns", "f1,f2", "--pulls", 20), words)
    wrong = means.copy()
    wrong[3210] = np.inf
    path = write(tmp_path / "truth.parquet", x, wrong)
    words = ("row 3211, row group 3", "column 'mean': expected a finite number to simulate")
    assert failed(simulated(path, "--id", "code", "--exclude", "price"), *words)
    path = write(tmp_path / "zeros.parquet", 0 * x, means)
    assert failed(simulated(path, "--id", "code", "--exclude", "price"), "row 1", "all others are zero")
    assert failed(call("run", tmp_path / "none.parquet", "--simulate", "mean", "--budget", 9), "no such file")
    no_noise = call("run", path, "--simulate", "mean", "--budget", 900, "--id", "code")
    assert failed(no_noise, "need --noise-variance")


# ---------------------------------------------------------------------------------------------- design


def design(path, *args):
    return call("design", path, "--pulls", 60, *args)


def of_json(done):
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_a_design_is_printed_written_and_certified(tmp_path, items, x):
    nowhere = design(items, "-o", tmp_path / "plates" / "plate.csv")
    assert (nowhere.exit_code, nowhere.stdout) == (1, "")
    assert "there is no folder" in nowhere.stderr
    file = tmp_path / "plate.csv"
    done = design(items, "--id", "code", "--columns", ",".join(NAMES), "-o", file)
    assert done.exit_code == 0, done.output
    for word in ("certificate  1.000", "rank         4", "support", "passes", "pulls        60"):
        assert word in done.stdout
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    assert sum(int(row["pulls"]) for row in rows) == 60
    for row in rows:
        index = int(row["row"]) - 1
        assert row["id"] == f"item-{index}"
        np.testing.assert_array_equal([float(row[name]) for name in NAMES], x[index])
    V = sum(int(row["pulls"]) * np.outer(x[int(row["row"]) - 1], x[int(row["row"]) - 1]) for row in rows)
    assert 60 * np.einsum("ij,ij->i", x @ np.linalg.inv(V), x).max() / D < 1.2


def test_json_csv_and_the_function_say_the_same(items, x):
    options = ("--columns", ",".join(NAMES), "--tolerance", 1e-4)
    js = of_json(design(items, *options, "-f", "json"))
    comma = list(csv.DictReader(io.StringIO(design(items, *options, "-f", "csv").stdout)))
    found = bestarm.design(x, 60, tolerance=1e-4, rng=0)
    assert [row["row"] - 1 for row in js["design"]] == [int(row["row"]) - 1 for row in comma] == found.rows.tolist()
    assert [row["pulls"] for row in js["design"]] == found.pulls.tolist()
    assert js["reached"]
    assert 1 <= js["certificate"] <= 1 + 1e-4
    assert of_json(design(items, *options, "--criterion", "d", "-f", "json"))["design"] == js["design"]
    assert "60 pulls on" in repr(found)


def test_costs_move_pulls_to_cheap_rows_and_the_money_is_told(items):
    features = ("--columns", ",".join(NAMES), "-f", "json")
    same, dear = (of_json(design(items, *features, *more)) for more in ((), ("--cost", "price")))
    assert "money" not in same
    assert dear["money"] == sum(row["pulls"] * row["cost"] for row in dear["design"])
    assert sum(row["pulls"] for row in dear["design"]) == 60
    assert np.mean([row["cost"] for row in dear["design"]]) < 3
    assert sum(row["weight"] for row in dear["design"]) == pytest.approx(1, abs=0.1)
    assert dear["certificate"] <= 1.001
    constant = of_json(design(items, *features, "--cost", "price", "--intercept"))
    assert constant["rank"] == D + 1
    assert all(row["intercept"] == 1 for row in constant["design"])


def test_npy_and_csv_tables(tmp_path, x):
    np.save(tmp_path / "x.npy", x)
    mapped = of_json(design(tmp_path / "x.npy", "-f", "json", "--memory", "1MB"))
    assert mapped["rank"] == D
    priced = of_json(design(tmp_path / "x.npy", "-f", "json", "--columns", "x1,x2", "--intercept"))
    assert priced["rank"] == 3
    cars = of_json(
        design(CARS, "--exclude", "price", "--exclude", "make", "--scale", "minmax", "--intercept", "-f", "json")
    )
    assert cars["candidates"] == 205
    assert cars["rank"] == 10
    plain = design(CARS, "--columns", "width,curb_weight", "--intercept")
    assert "width" in plain.stdout


def test_xy_designs_tell_rows_apart(tmp_path):
    angle = 0.1
    path = tmp_path / "soare.csv"
    path.write_text(f"a,b\n1,0\n0,1\n{np.cos(angle)},{np.sin(angle)}\n")
    found = of_json(design(path, "--criterion", "xy", "--tolerance", 0.02, "-f", "json"))
    assert found["reached"]
    assert found["certificate"] <= 1.02
    assert sum(row["pulls"] for row in found["design"]) == 60


def test_a_tolerance_out_of_reach_is_a_warning(monkeypatch, tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("a,b\n" + "\n".join(f"{i % 7},{i}" for i in range(40)) + "\n")
    done = design(path, "--criterion", "xy", "--tolerance", 1e-12)
    assert done.exit_code == 0
    assert "Warning: the tolerance of 1e-12 was not reached" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--columns", "f0,f1,f2", "--pulls", 2], ["2 pulls cannot determine 3 dimensions; at least 3 are needed"]),
        (["--columns", "f0,g1"], ["unknown column 'g1'"]),
        ([], ["column 'code': expected numbers, found the type string"]),
        (["--columns", "f0,f1", "--cost", "cost"], ["unknown column 'cost'"]),
        (["--columns", "f0,f1", "--cost", "mean"], ["expected a positive cost"]),
        (["--columns", "f0,f1", "--criterion", "xy"], ["for 300 of them at most; there are 6000"]),
        (["--columns", "f0,f1", "--scale", "minmax"], ["--scale is for CSV tables"]),
        (["--columns", "f0,f1", "--memory", "1KB"], ["memory: 1000 bytes given; at least"]),
        (["--columns", "f0,f1", "--memory", "lots"], ["such as 500MB or 2GiB; given 'lots'"]),
        (["--columns", "f0,f1", "--id", "cods"], ["unknown column 'cods'"]),
    ],
)
def test_what_a_design_cannot_do(items, options, words):
    assert failed(design(items, *options), *words)


def test_zero_columns_are_refused(tmp_path):
    np.save(tmp_path / "zeros.npy", np.zeros((30, 3)))
    assert failed(design(tmp_path / "zeros.npy"), "row 1 and all others are zero")
    assert failed(design(tmp_path / "zeros.npy", "--criterion", "xy"), "all others are zero")
    assert failed(design(tmp_path / "missing.npy"), "no such file")
    assert failed(design(tmp_path / "zeros.xlsx"), "No such file")
