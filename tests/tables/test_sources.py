"""The same answer wherever the table lives, and refusals that name file, row and column."""

import os
import subprocess
import sys
from operator import add

import numpy as np
import pytest

from bestarm.designs.active import optimal_design
from bestarm.errors import ArmsError, InputError
from bestarm.tables import open_source

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

K, D = 6000, 5


@pytest.fixture
def table(rng):
    return rng.standard_normal((K, D))


def write(path, table, groups=1000, **more):
    columns = {f"f{j}": table[:, j] for j in range(table.shape[1])} | more
    pq.write_table(pa.table(columns), path, row_group_size=groups)
    return path


def as_ndarray(table, folder):
    return table


def as_mapped(table, folder):
    np.save(folder / "table.npy", table)
    return folder / "table.npy"


def as_fortran(table, folder):
    np.save(folder / "fortran.npy", np.asfortranarray(table))
    return str(folder / "fortran.npy")


def as_parquet(table, folder):
    return write(folder / "table.parquet", table, groups=777)


def as_folder(table, folder):
    (folder / "parts").mkdir()
    for j, part in enumerate(np.array_split(table, 4)):
        write(folder / "parts" / f"part-{j}.parquet", part)
    return folder / "parts"


def as_dask(table, folder):
    return pytest.importorskip("dask.array").from_array(table, chunks=(1100, 2))


def as_strict(table, folder):
    return pytest.importorskip("array_api_strict").asarray(table)


def as_torch(table, folder):
    return pytest.importorskip("torch").asarray(table)


FORMS = [as_ndarray, as_mapped, as_fortran, as_parquet, as_folder, as_dask, as_strict, as_torch]


def test_parquet_is_read_without_pandas(table, tmp_path):
    """Importing it takes longer than a pass over a million rows, and as much memory."""
    path = write(tmp_path / "table.parquet", table, code=np.array([f"row {i}" for i in range(K)]))
    program = f"""
import sys
import numpy as np
from bestarm.tables import open_source
source = open_source({str(path)!r}, id="code")
source.sweep(lambda block, start: float(block.sum()), float.__add__)
source.take(np.arange(3)), source.ids(np.arange(3))
sys.exit("pandas" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def count(block, start):
    return int(block.shape[0])


@pytest.mark.parametrize("form", FORMS)
def test_same_answer_from_every_source(form, table, tmp_path):
    expected = optimal_design(open_source(table, block_rows=512), 1e-7)
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler="synchronous"):
        source = open_source(form(table, tmp_path), block_rows=512)
        assert (source.rows, source.columns, len(source.names)) == (K, D, D)
        assert source.sweep(count, add) == K
        np.testing.assert_array_equal(source.take(np.array([5999, 0, 1234, 0])), table[[5999, 0, 1234, 0]])
        found = optimal_design(source, 1e-7)
    assert found.certificate == pytest.approx(expected.certificate, abs=2e-7)
    np.testing.assert_allclose(found.information, expected.information, atol=1e-5)
    np.testing.assert_array_equal(found.features, table[found.rows])
    if form in (as_ndarray, as_mapped, as_parquet, as_folder):
        np.testing.assert_array_equal(found.rows, expected.rows)
        np.testing.assert_array_equal(found.weights, expected.weights)


@pytest.mark.parametrize("form", [as_dask, as_strict, as_torch, as_parquet])
def test_costs_travel(form, table, tmp_path, rng):
    costs = rng.uniform(1, 3, K)
    expected = optimal_design(open_source(table), 1e-7, costs)
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler="synchronous"):
        found = optimal_design(open_source(form(table, tmp_path), cost=costs), 1e-7)
    np.testing.assert_allclose(found.information, expected.information, atol=1e-5)
    np.testing.assert_array_equal(found.costs, costs[found.rows])


def test_a_column_of_costs(table, tmp_path, rng):
    costs = rng.uniform(1, 3, K)
    path = write(tmp_path / "priced.parquet", table, price=costs)
    source = open_source(path, cost="price")
    assert source.names == ("f0", "f1", "f2", "f3", "f4")
    found = optimal_design(source, 1e-7)
    expected = optimal_design(open_source(table), 1e-7, costs)
    np.testing.assert_allclose(found.information, expected.information, atol=1e-5)
    np.testing.assert_allclose(found.costs, costs[found.rows])
    np.testing.assert_allclose(found.features, table[found.rows], rtol=1e-12)


@pytest.mark.cluster
def test_local_cluster(table):
    pytest.importorskip("distributed")
    import dask.array
    from distributed import Client, LocalCluster

    expected = optimal_design(open_source(table), 1e-7)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        found = optimal_design(open_source(dask.array.from_array(table, chunks=(1500, D)).persist()), 1e-7)
    np.testing.assert_allclose(found.information, expected.information, atol=1e-5)


def test_columns_are_chosen_by_name(table, tmp_path):
    path = write(tmp_path / "wide.parquet", table, label=["a"] * K)
    source = open_source(path, columns=["f3", "f1"])
    np.testing.assert_array_equal(source.take(np.arange(10)), table[:10][:, [3, 1]])


def test_float32_and_whole_numbers(tmp_path, rng):
    path = tmp_path / "mixed.parquet"
    whole = rng.integers(0, 9, 2000)
    pq.write_table(pa.table({"a": rng.random(2000).astype(np.float32), "b": whole, "c": whole > 3}), path)
    assert open_source(path).dtype == np.float64
    assert open_source(path, columns=["a"]).dtype == np.float32
    assert optimal_design(open_source(path)).reached


def test_a_missing_cell_names_file_row_group_and_column(table, tmp_path):
    table[4321, 2] = np.nan
    path = write(tmp_path / "holes.parquet", table)
    with pytest.raises(ArmsError, match=r"holes\.parquet: row 4322, row group 4, column 'f2': .* found nan"):
        optimal_design(open_source(path, block_rows=256))
    cells = pa.array([1.0] * 5 + [None] * 5)
    pq.write_table(pa.table({"a": cells}), path)
    with pytest.raises(ArmsError, match=r"row 6, row group 0, column 'a': expected a finite number"):
        optimal_design(open_source(path))


def test_a_bad_row_in_a_folder_is_counted_in_its_file(table, tmp_path):
    table[4500, 0] = np.inf
    with pytest.raises(ArmsError, match=r"part-3\.parquet: row 1, row group 0, column 'f0'"):
        optimal_design(open_source(as_folder(table, tmp_path)))


@pytest.mark.parametrize("form", [as_mapped, as_parquet])
def test_a_file_that_changes_is_refused(form, table, tmp_path):
    path = form(table, tmp_path)
    source = open_source(path)
    os.utime(path, ns=(1, 1))
    with pytest.raises(InputError, match=r"table\..*: the file changed while it was read"):
        source.sweep(count, add)
    with pytest.raises(InputError, match="the file changed"):
        source.take(np.arange(3))


@pytest.mark.parametrize("form", [as_mapped, as_parquet])
def test_a_file_that_changes_during_a_pass_is_refused(form, table, tmp_path):
    path = form(table, tmp_path)

    def touch(block, start):
        os.utime(path, ns=(start + 1, start + 1))
        return 1

    with pytest.raises(InputError, match="the file changed"):
        open_source(path).sweep(touch, add)


def test_refusals(table, tmp_path):
    path = write(tmp_path / "t.parquet", table, label=["a"] * K)
    with pytest.raises(ArmsError, match=r"t\.parquet: column 'label': expected numbers, found the type string"):
        open_source(path)
    with pytest.raises(ArmsError, match="unknown column 'f9'; the nearest are"):
        open_source(path, columns=["f1", "f9"])
    with pytest.raises(ArmsError, match="unknown column 'price'"):
        open_source(path, columns=["f1"], cost="price")
    empty = tmp_path / "empty.parquet"
    pq.write_table(pa.table({"a": pa.array([], pa.float64())}), empty)
    with pytest.raises(ArmsError, match="there are no rows"):
        open_source(empty)
    (tmp_path / "none").mkdir()
    with pytest.raises(ArmsError, match=r"expected \*\.parquet files in this folder"):
        open_source(tmp_path / "none")
    (tmp_path / "bad.parquet").write_bytes(b"no")
    with pytest.raises(ArmsError, match=r"bad\.parquet: expected a Parquet file"):
        open_source(tmp_path / "bad.parquet")
    (tmp_path / "bad.npy").write_bytes(b"no")
    with pytest.raises(ArmsError, match=r"bad\.npy: expected a \.npy file of numbers"):
        open_source(tmp_path / "bad.npy")
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(InputError, match=r"\.csv cannot be read in blocks"):
        open_source(tmp_path / "t.csv")
    (tmp_path / "t.txt").write_text("a\n1\n")
    with pytest.raises(InputError, match=r"unknown kind of table '\.txt'"):
        open_source(tmp_path / "t.txt")
    with pytest.raises(InputError, match="there is no such file"):
        open_source(tmp_path / "nowhere.npy")
    with pytest.raises(ArmsError, match=r"the shape is \(0, 3\)"):
        open_source(np.zeros((0, 3)))
    with pytest.raises(ArmsError, match=r"the shape is \(3,\)"):
        open_source(np.zeros(3))
    with pytest.raises(InputError, match="expected numbers, found the type"):
        open_source(np.array([["a"]]))
    with pytest.raises(InputError, match="expected a path, an array, a Dask array or a data frame; found int"):
        open_source(3)
    with pytest.raises(InputError, match="unknown column 'a'; the nearest are x"):
        open_source(table, columns=["a"])
    with pytest.raises(InputError, match="block_rows must be at least 1"):
        open_source(table, block_rows=0)


def test_costs_in_a_column_must_be_positive(table, tmp_path):
    costs = np.ones(K)
    costs[3210] = 0.0
    path = write(tmp_path / "free.parquet", table, price=costs)
    with pytest.raises(InputError, match=r"row 3211, row group 3: expected a positive cost, found 0.0"):
        optimal_design(open_source(path, cost="price"))


@pytest.mark.parametrize("form", [as_ndarray, as_mapped, as_parquet, as_dask])
def test_memory_is_kept_or_refused(form, table, tmp_path):
    given = form(table, tmp_path)
    with pytest.raises(InputError, match=r"memory: 1000 bytes given; at least 40960 are needed for blocks of 256 rows"):
        open_source(given, memory=1000)
    source = open_source(given, memory=100_000)
    assert source.block_rows * D * 8 * 4 <= 100_000


def test_dask_with_unknown_chunks():
    array = pytest.importorskip("dask.array")
    x = array.from_array(np.arange(20.0).reshape(10, 2), chunks=5)
    with pytest.raises(InputError, match="the sizes of its chunks are unknown"):
        open_source(x[x[:, 0] > 3])
