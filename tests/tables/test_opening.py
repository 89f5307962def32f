"""One way in: arms up to 100,000 rows, a source beyond, and the same rules for columns and ids whatever holds them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import bestarm
from bestarm import Arms, open_table
from bestarm.errors import ArmsError, InputError
from bestarm.tables import opening, source_of
from bestarm.tables.views import gathered

K = 40
VALUES = np.random.default_rng(3).standard_normal((K, 3))
CODES = [f"c{row}" for row in range(K)]
PRICES = 1.0 + np.arange(K) % 5


def frame(library):
    columns = dict(zip(("x1", "x2", "x3"), VALUES.T.copy(), strict=True))
    return library.DataFrame({"code": CODES} | columns | {"price": PRICES})


def as_csv(folder):
    frame(pd).to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def as_parquet(folder):
    frame(pl).write_parquet(folder / "t.parquet", row_group_size=7)
    return str(folder / "t.parquet")


NAMED = [as_csv, as_parquet, lambda folder: frame(pd), lambda folder: frame(pl)]
LONG = NAMED[1:]


def as_npy(folder):
    np.save(folder / "t.npy", np.column_stack([VALUES, PRICES]))
    return folder / "t.npy"


def as_dask(folder):
    return pytest.importorskip("dask.array").from_array(np.column_stack([VALUES, PRICES]), chunks=(9, 4))


NUMBERS = [as_npy, as_dask, lambda folder: np.column_stack([VALUES, PRICES]), lambda folder: VALUES.tolist()]


@pytest.fixture
def long(monkeypatch):
    monkeypatch.setattr(opening, "SMALL", K - 1)


@pytest.mark.parametrize("form", NAMED)
def test_a_small_table_is_arms_whatever_holds_it(form, tmp_path):
    arms = open_table(form(tmp_path), id="code", cost="price", features=["x3", "x1"], scale="minmax", intercept=True)
    assert isinstance(arms, Arms)
    assert arms.ids == tuple(CODES)
    assert arms.names == ("intercept", "x3", "x1")
    assert (arms.features.min(axis=0) == [1, 0, 0]).all()
    assert (arms.cost == PRICES).all()


@pytest.mark.parametrize("form", LONG)
@pytest.mark.usefixtures("long")
def test_a_long_table_is_a_source_with_the_same_columns_ids_and_costs(form, tmp_path):
    source = open_table(form(tmp_path), id="code", cost="price", exclude=["x2"], intercept=True)
    rows = np.array([39, 0, 7])
    assert source.names == ("intercept", "x1", "x3")
    assert source.ids(rows) == ["c39", "c0", "c7"]
    assert (source.costs(rows) == PRICES[rows]).all()
    expected = np.column_stack([np.ones(K), VALUES[:, [0, 2]]]) / np.sqrt(PRICES)[:, None]
    np.testing.assert_allclose(gathered(source), expected, rtol=1e-15)


def test_csv_of_any_length_is_arms(long, tmp_path):
    assert len(open_table(as_csv(tmp_path), id="code")) == K


@pytest.mark.parametrize("form", NUMBERS)
@pytest.mark.parametrize("most", [K, K - 1])
def test_columns_without_names_are_numbered(form, most, tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "SMALL", most)
    table = open_table(form(tmp_path), features=["x3", "x1"], intercept=True)
    assert isinstance(table, Arms) == (most == K)
    assert table.names == ("intercept", "x3", "x1")
    np.testing.assert_array_equal(gathered(source_of(table))[:, 1:], VALUES[:, [2, 0]])


def test_numbers_as_ids_have_no_point_and_none_is_missing(tmp_path):
    table = np.array([[7.0, 1.0], [2.5, 2.0], [np.nan, 4.0]])
    source = source_of(table, id="x1")
    assert source.names == ("x2",)
    assert source.ids(np.array([0, 1])) == ["7", "2.5"]
    with pytest.raises(ArmsError, match="row 3, column 'x1': the id is missing"):
        source.ids(np.array([2]))
    assert open_table(table[:2], id="x1").ids == ("7", "2.5")


def test_an_array_keeps_a_constant_column_and_a_table_of_people_does_not():
    table = np.array([[1.0, 2.0], [1.0, 5.0]])
    assert open_table(table).names == ("x1", "x2")
    assert open_table(pd.DataFrame(table, columns=["x1", "x2"])).names == ("x2",)


@pytest.mark.usefixtures("long")
def test_what_is_read_as_it_stands_is_not_encoded():
    for options in ({"scale": "minmax"}, {"categorical": ["x1"]}):
        with pytest.raises(InputError, match=f"{next(iter(options))} is for tables read as a whole"):
            open_table(frame(pl), id="code", **options)
        with pytest.raises(InputError, match="is for tables read as a whole"):
            bestarm.design(VALUES, 9, **options)


@pytest.mark.parametrize("most", [K, K - 1])
@pytest.mark.parametrize("form", LONG)
def test_an_unknown_column_is_refused_by_name(form, most, tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "SMALL", most)
    for options in ({"id": "cods"}, {"features": ["x9"]}, {"exclude": ["x9"]}, {"cost": "prices"}):
        with pytest.raises(ArmsError, match=r"unknown column '(cods|x9|prices)'; the nearest are "):
            open_table(form(tmp_path), **options)
    with pytest.raises(ArmsError, match="no column is left to be a feature"):
        open_table(form(tmp_path), id="code", exclude=["x1", "x2", "x3", "price"])


@pytest.mark.usefixtures("long")
def test_text_in_a_long_frame_is_refused_by_column():
    with pytest.raises(ArmsError, match="the frame, column 'code': expected numbers, found the type String"):
        open_table(frame(pl))


def test_what_is_no_table_is_refused():
    for what in (3.5, True, None, object()):
        with pytest.raises(InputError, match=r"table: expected a path, an array, a Dask array or a data frame; found "):
            open_table(what)


# design


@pytest.mark.parametrize("form", NAMED)
def test_a_design_of_a_table_is_that_of_its_features(form, tmp_path):
    found = bestarm.design(form(tmp_path), pulls=24, id="code", exclude=["price"])
    expected = bestarm.design(VALUES, pulls=24)
    assert found.rows.tolist() == expected.rows.tolist()
    assert found.pulls.tolist() == expected.pulls.tolist()
    assert found.ids == tuple(CODES[row] for row in found.rows)


@pytest.mark.parametrize("form", NAMED)
def test_costs_by_name_or_by_number_are_the_same(form, tmp_path):
    named = bestarm.design(form(tmp_path), pulls=24, id="code", cost="price")
    given = bestarm.design(form(tmp_path), pulls=24, id="code", exclude=["price"], cost=PRICES)
    assert named.money == given.money == named.pulls @ PRICES[named.rows]
    assert named.records() == given.records()


@pytest.mark.parametrize("library", [pd, pl])
def test_a_design_is_a_frame(library):
    found = bestarm.design(frame(library), pulls=24, id="code", cost="price", scale="standard", intercept=True)
    rows = found.to_frame(library.__name__)
    assert list(rows.columns) == ["row", "id", "weight", "pulls", "cost", "intercept", "x1", "x2", "x3"]
    assert rows["pulls"].sum() == 24
    assert [CODES[row - 1] for row in rows["row"]] == list(rows["id"])
    with pytest.raises(InputError, match="a frame of nothing_such needs it"):
        found.to_frame("nothing_such")


def test_what_is_read_already_is_not_read_again():
    arms = Arms.from_arrays(VALUES, CODES)
    assert bestarm.design(arms, pulls=9).ids == tuple(CODES[row] for row in bestarm.design(arms, pulls=9).rows)
    for table in (arms, source_of(arms)):
        with pytest.raises(InputError, match="scale: say how a table is read where it is opened"):
            bestarm.design(table, pulls=9, scale="minmax")
