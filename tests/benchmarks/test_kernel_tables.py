"""Cache files of Kernel Tuner become tables that the suite `fooled-tables` reads."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import kernel_tables
from bestarm import bench
from bestarm.bench import suite
from bestarm.errors import InputError


def cache(configurations=6):
    """A cache of three parameters, one that never varies, with a configuration that failed."""
    runs = {
        f"{n},{n % 2},1": {"x": n, "y": n % 2, "z": 1, "time": 1.0 + n, "times": [9.0 + n, 1.0 + n, 1.5 + n]}
        for n in range(configurations)
    }
    runs["99,0,1"] = {"x": 99, "y": 0, "z": 1, "time": "CompilationFailedConfig"}
    return {"tune_params_keys": ["x", "y", "z"], "cache": runs}


def test_what_failed_and_what_never_varies_is_left_out():
    table = kernel_tables.table_of(cache(), "here")
    np.testing.assert_array_equal(table["X"], [[n, n % 2] for n in range(6)])
    assert list(table["features"]) == ["x", "y"]
    np.testing.assert_array_equal(table["times_ms"][2], [11.0, 3.0, 3.5])


def test_of_too_many_some_are_drawn_by_the_seed():
    one, same, other = (kernel_tables.table_of(cache(50), "here", 20, seed)["X"] for seed in (1, 1, 2))
    assert len(np.unique(one[:, 0])) == 20
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"times": [1.0]}, "1 to 3 timings"),
        ({"x": "wide"}, "'x' is not a number"),
    ],
)
def test_what_makes_no_table_is_refused(change, says):
    some = cache()
    some["cache"]["0,0,1"] |= change
    with pytest.raises(InputError, match=says):
        kernel_tables.table_of(some, "here")
    with pytest.raises(InputError, match="no configuration has timings"):
        kernel_tables.table_of(cache(0), "here")


def test_the_program_writes_what_an_instance_reads(tmp_path, monkeypatch, capsys):
    source = tmp_path / "hub" / "convolution_milo" / "A4000.json.gz"
    source.parent.mkdir(parents=True)
    with gzip.open(source, "wt") as file:
        json.dump(cache(), file)
    kernel_tables.main([str(source), "-o", str(tmp_path / "data" / "fooled")])
    assert "6 of 7 configurations, 3 timings, x, y" in capsys.readouterr().out
    monkeypatch.setenv("BESTARM_DATA", str(tmp_path / "data"))
    settings = {"file": "fooled/convolution_A4000.npz", "arm": "X", "value": "times_ms", "minimize": True, "skip": 1}
    world = bench.instance("replay", settings, draw=4).make(2, 1)
    assert world.features.shape == (2, 4, 2)
    assert set(np.unique(world.means)) <= {-1.25 - n for n in range(6)}
    source.write_bytes(b"nothing")
    with pytest.raises(SystemExit):
        kernel_tables.main([str(source), "-o", str(tmp_path)])


def test_the_tables_wanted_are_those_of_the_suite():
    files = {dict(one.instance.params)["file"] for one in suite.load("fooled-tables").contests}
    assert {Path(file).stem for file in files if file.startswith("fooled/")} == set(kernel_tables.WANTED)
