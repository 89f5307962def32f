"""A table of arms: what is read is what was written, and every bad cell is named."""

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bestarm.tables.arms
from bestarm.errors import ArmsError, UnknownNameError
from bestarm.tables.arms import Arms
from bestarm.tables.encoding import Column, Encoding
from bestarm.tables.files import read_file
from bestarm.tables.sheet import Sheet

CARS = Path(bestarm.__file__).parent / "data/automobile.csv"
NUMBERS = ["curb_weight", "width", "engine_size", "city_mpg", "highway_mpg"]
TABLE = "name,width,body,price\na,1,sedan,10\nb,2.5,wagon,?\nc,4,sedan,30\n"


def read(text: str | bytes, **options: Any) -> Arms:
    """Read arms from text as if it came through a pipe."""
    data = text.encode() if isinstance(text, str) else text
    with patch("sys.stdin", io.TextIOWrapper(io.BytesIO(data))):
        return Arms.from_csv("-", **options)


def rows_of(arms: Arms) -> list[dict[str, object]]:
    return [dict(zip(arms.table, cells, strict=True)) for cells in zip(*arms.table.values(), strict=True)]


def small(**options: Any) -> Arms:
    return read(TABLE, **{"id": "name", "exclude": ["price"], **options})


# Reading


def test_a_table_becomes_ids_features_and_names() -> None:
    arms = small()
    assert arms.ids == ("a", "b", "c")
    assert arms.names == ("width", "body=sedan", "body=wagon")
    assert arms.features.tolist() == [[1, 1, 0], [2.5, 0, 1], [4, 1, 0]]
    assert repr(arms) == "Arms(3 arms, 3 features, rank 3)"
    assert len(arms) == 3


def test_without_an_id_column_arms_are_numbered_by_row() -> None:
    assert read(TABLE, features=["width"]).ids == ("1", "2", "3")


def test_the_automobile_table() -> None:
    arms = Arms.from_csv(CARS, features=NUMBERS)
    assert repr(arms) == "Arms(205 arms, 5 features, rank 5)"
    assert len(np.unique(arms.features, axis=0)) == 187
    assert arms.present("price").sum() == 201
    assert any("have equal features" in note and "arms 1 and 2;" in note for note in arms.notes)


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_delimiters_line_endings_marks_and_blank_lines_do_not_matter(mark: str, ending: str) -> None:
    text = "\ufeff" + TABLE.replace(",", mark).replace("\n", ending) + ending
    assert (read(text, exclude=["price", "name"]).features == small().features).all()


def test_the_delimiter_is_the_one_that_cuts_all_rows_alike() -> None:
    arms = read("width, mm;height, mm\n1;2\n3;5\n")
    assert arms.names == ("width, mm", "height, mm")


def test_a_path_and_standard_input_agree(tmp_path: Path) -> None:
    (tmp_path / "arms.csv").write_text(TABLE)
    for path in (tmp_path / "arms.csv", str(tmp_path / "arms.csv")):
        assert (Arms.from_csv(path, exclude=["name", "price"]).features == small().features).all()


@pytest.mark.parametrize("scale", ["none", "minmax", "standard"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("library", [pd, pl])
def test_pandas_polars_and_csv_agree_exactly(library: Any, intercept: bool, scale: str) -> None:
    options: dict[str, Any] = {"exclude": ["make", "price"], "scale": scale, "intercept": intercept}
    csv, frame = Arms.from_csv(CARS, **options), Arms.from_frame(library.read_csv(CARS), **options)
    assert frame.encoding == csv.encoding
    assert frame.features.tobytes() == csv.features.tobytes()
    assert (frame.ids, frame.names, frame.notes) == (csv.ids, csv.names, csv.notes)
    assert (frame.column("price", "mean") == csv.column("price", "mean")).all()


@pytest.mark.parametrize("library", [pd, pl])
def test_booleans_and_nulls_of_a_frame_read_as_in_a_csv(library: Any) -> None:
    frame = library.DataFrame({"ok": [True, False, True], "score": [1.0, None, 3.0], "x": [1, 2, 4]})
    arms = Arms.from_frame(frame, exclude=["score"])
    assert arms.names == ("ok=False", "ok=True", "x")
    assert arms.present("score").tolist() == [True, False, True]
    with pytest.raises(ArmsError, match=r"row 2, column 'score': expected a number, found ''"):
        Arms.from_frame(frame)


def test_frames_with_numbers_for_names_and_exotic_nulls() -> None:
    frame = pd.DataFrame({0: [1, 2], 1: pd.array([3, None], dtype="Int64"), 2: [pd.NaT, pd.Timestamp(0)]})
    arms = Arms.from_frame(frame, features=["0"])
    assert arms.present("1").tolist() == [True, False]
    assert arms.present("2").tolist() == [False, True]


def test_importing_arms_imports_no_frame_library() -> None:
    code = (
        "import sys; from importlib.util import spec_from_file_location as spec, module_from_spec as make;"
        f"s = spec('arms_alone', {bestarm.tables.arms.__file__!r}); m = make(s); sys.modules['arms_alone'] = m;"
        "sys.modules['bestarm'] = type(sys)('bestarm'); sys.modules['bestarm'].__path__ = "
        f"[{str(Path(bestarm.__file__).parent)!r}]; s.loader.exec_module(m);"
        "print({'pandas', 'polars', 'sklearn', 'scipy', 'narwhals'} & {*sys.modules})"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"


# Encoding


@pytest.mark.parametrize("scale", ["none", "minmax", "standard"])
@pytest.mark.parametrize("intercept", [False, True])
def test_applying_the_encoding_to_the_table_gives_the_features(scale: str, intercept: bool) -> None:
    arms = Arms.from_csv(CARS, exclude=["price"], scale=scale, intercept=intercept)
    assert arms.encoding.apply(rows_of(arms)).tobytes() == arms.features.tobytes()
    assert arms.encoding.apply([]).shape == (0, len(arms.names))


@pytest.mark.parametrize("intercept", [False, True])
def test_an_encoding_survives_json(intercept: bool) -> None:
    encoding = Arms.from_csv(CARS, exclude=["price"], scale="standard", intercept=intercept).encoding
    assert Encoding.from_dict(json.loads(json.dumps(encoding.to_dict()))) == encoding
    assert "None" not in str(encoding.to_dict())


@pytest.mark.parametrize("plain", [{}, {"columns": 3}, {"columns": [{"nom": 1}], "intercept": False}])
def test_what_is_not_a_stored_encoding_is_refused(plain: dict[str, Any]) -> None:
    with pytest.raises(ArmsError, match="not a stored encoding"):
        Encoding.from_dict(plain)


def test_one_hot_rows_sum_to_one() -> None:
    arms = Arms.from_csv(CARS, features=["body_style"])
    assert (arms.features.sum(axis=1) == 1).all()
    assert len(arms.names) == 5


def test_an_intercept_takes_the_place_of_the_first_level_so_the_rank_is_full() -> None:
    arms = Arms.from_csv(CARS, exclude=["price"], intercept=True)
    assert arms.names[0] == "intercept"
    assert (arms.features[:, 0] == 1).all()
    assert "body_style=convertible" not in arms.names
    assert arms.rank == len(arms.names)


@given(st.lists(st.floats(-1e6, 1e6).map(lambda x: round(x, 3)), min_size=2, max_size=8, unique=True))
def test_scaling_is_invertible_and_lands_where_it_should(numbers: list[float]) -> None:
    frame = pl.DataFrame({"x": numbers})
    for scale in ("none", "minmax", "standard"):
        arms = Arms.from_frame(frame, scale=scale)
        (column,), feature = arms.encoding.columns, arms.features[:, 0]
        # Rounding of the shift, a number up to 1e6, is all that is lost.
        np.testing.assert_allclose(feature * column.unit + column.shift, numbers, atol=1e-9, rtol=1e-12)
        if scale == "minmax":
            assert (feature.min(), feature.max()) == (0.0, 1.0)
        if scale == "standard":
            np.testing.assert_allclose([feature.mean(), feature.std()], [0, 1], atol=1e-6)


def test_a_new_row_is_scaled_as_the_old_ones_were() -> None:
    encoding = small(scale="minmax").encoding
    assert encoding.apply([{"width": 7, "body": "wagon", "unused": 1}]).tolist() == [[2, 0, 1]]


def test_a_new_level_or_a_lacking_column_is_named() -> None:
    encoding = small().encoding
    with pytest.raises(ArmsError, match=r"row 2, column 'body': expected one of .*'sedan'.*found 'suv'"):
        encoding.apply([{"width": 1, "body": "sedan"}, {"width": 1, "body": "suv"}])
    with pytest.raises(ArmsError, match="row 1, column 'width'"):
        encoding.apply([{"body": "sedan"}])


def test_a_number_named_categorical_is_one() -> None:
    assert read(TABLE, features=["width"], categorical="width").names == ("width=1", "width=2.5", "width=4")


def test_huge_numbers_have_a_rank_and_are_refused_beyond_what_can_be_squared() -> None:
    assert read("x,y\n1e150,1\n-1e150,2\n").rank == 1  # the second column is nothing beside the first
    with pytest.raises(ArmsError, match=r"features must be finite numbers within ±1e\+150; found 1e\+308 in row 1"):
        read("x,y\n1e308,1\n-1e308,2\n")
    assert read("x,y\n1e308,1\n0,2\n", scale="minmax").features.tolist() == [[1, 0], [0, 1]]
    for scale in ("minmax", "standard"):
        with pytest.raises(ArmsError, match="column 'x': too large"):
            read("x\n1e308\n-1e308\n1.7e308\n1.7e308\n", scale=scale)


# What is found


def test_constant_columns_are_dropped_and_noted_unless_nothing_is_left() -> None:
    text = "x,one,kind\n1,1,a\n2,1,a\n"
    arms = read(text)
    assert arms.names == ("x",)
    assert arms.notes == ("column 'one' is constant: dropped", "column 'kind' is constant: dropped")
    assert read(text, intercept=True).names == ("intercept", "x")
    assert read(text, features=["one", "kind"]).names == ("one",)
    assert read(text, features=["kind"]).features.tolist() == [[1], [1]]
    assert read(text, features=["one"], intercept=True).names == ("intercept",)


def test_equal_rows_are_kept_and_noted_even_across_the_signs_of_zero() -> None:
    arms = Arms.from_arrays([[0.0, 1.0], [1.0, 0.0], [-0.0, 1.0]], ids=["a", "b", "c"])
    assert len(arms) == 3
    (note,) = arms.notes
    assert note == "arms a and c have equal features: the features cannot tell them apart (groups: 1)"


def test_a_rank_below_the_number_of_features_is_noted() -> None:
    arms = read("x,y\n1,2\n2,4\n3,6\n")
    assert arms.rank == 1
    assert arms.notes == ("the rank is 1: some features are combinations of others",)
    assert Arms.from_arrays(np.zeros((2, 2))).rank == 0


def test_describe_says_sizes_encoding_cost_and_notes() -> None:
    text = small(scale="minmax", cost="width").describe()
    assert text.splitlines()[0] == "3 arms, 2 features, rank 2, cost 1 to 4"
    assert "body: ('sedan', 'wagon')" in text
    assert "note: arms a and c have equal features" in text
    lines = small(scale="minmax", intercept=True).describe().splitlines()
    assert lines[1:3] == ["intercept", "width: (x - 1) / 3"]


# Columns, subsets, ids


def test_a_column_with_missing_cells_is_refused_filled_or_dropped() -> None:
    arms = small()
    with pytest.raises(ArmsError, match=r"arm 'b', column 'price': expected a number, found '\?'"):
        arms.column("price")
    assert arms.column("price", missing="mean").tolist() == [10, 20, 30]
    assert arms.column("price", missing="drop").tolist() == [10, 30]
    assert arms.column("width").tolist() == [1, 2.5, 4]
    with pytest.raises(ArmsError, match="arm 'a', column 'body': expected a number, found 'sedan'"):
        arms.column("body", missing="mean")
    with pytest.raises(ArmsError, match="unknown column 'prize'; the nearest are price"):
        arms.column("prize")
    with pytest.raises(UnknownNameError, match="mean"):
        arms.column("price", missing="means")  # type: ignore[arg-type]


@pytest.mark.parametrize("blank", ["", " ", "?", "NA", "na", "NaN", "nan", "NULL", "null"])
def test_what_counts_as_missing(blank: str) -> None:
    arms = read(f"x,y\n1,1\n2,{blank}\n", exclude="y")
    assert arms.present("y").tolist() == [True, False]
    with pytest.raises(ArmsError, match="only missing"):
        read(f"x,y\n1,{blank}\n2,{blank}\n", exclude="y").column("y", missing="mean")


def test_dropping_cells_and_dropping_arms_agree() -> None:
    arms = Arms.from_csv(CARS, features=NUMBERS, cost="width")
    kept = arms.subset(arms.present("price"))
    assert len(kept) == 201
    assert (kept.column("price") == arms.column("price", missing="drop")).all()
    assert kept.cost is not None
    assert (kept.cost == kept.column("width")).all()
    assert kept.encoding is arms.encoding


def test_a_subset_keeps_order_and_finds_anew() -> None:
    arms = Arms.from_arrays([[1.0], [2.0], [1.0]], ids=["a", "b", "c"])
    assert arms.notes
    some = arms.subset([2, 1])
    assert (some.ids, some.features.tolist(), some.notes) == (("c", "b"), [[1], [2]], ())
    with pytest.raises(ArmsError, match="not be empty"):
        arms.subset([])


def test_whole_numbers_may_stand_for_ids() -> None:
    assert Arms.from_arrays(np.eye(3), ids=[7, np.int64(8), "x"]).ids == ("7", "8", "x")


def test_an_arm_is_found_by_its_id_or_the_nearest_are_named() -> None:
    arms = small()
    assert [arms.index(one) for one in arms.ids] == [0, 1, 2]
    assert read(TABLE, features=["width"]).index(2) == 1
    with pytest.raises(UnknownNameError, match="unknown arm 'bb'; the nearest are b"):
        arms.index("bb")


def test_features_and_cost_cannot_be_written_to() -> None:
    given_features = np.eye(2)
    arms = Arms.from_arrays(given_features, cost=np.ones(2))
    given_features[0, 0] = 5.0
    assert arms.features[0, 0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        arms.features[0, 0] = 5.0


# Other sources


def test_a_product_has_every_combination_once_with_main_effects() -> None:
    arms = Arms.product({"dose": [1, 2.5], "form": ["gel", "oil", "tab"], "on": [True, False]})
    assert len(arms) == len(set(arms.ids)) == 12
    assert arms.ids[0] == "dose=1, form=gel, on=True"
    assert arms.names == ("intercept", "dose", "form=oil", "form=tab", "on=True")
    assert arms.rank == 5
    assert set(arms.column("dose")) == {1, 2.5}
    assert Arms.product({"size": ["1", "2"]}, intercept=False).names == ("size=1", "size=2")
    assert Arms.product({"mixed": [1, "auto"]}, intercept=False).names == ("mixed=1", "mixed=auto")


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ({}, "no arms"),
        ({"a": []}, "no arms"),
        ({"a": [1, 2], "b": []}, "no arms"),
        ({"a": [1, 1]}, "rows 1 and 2: the id is 'a=1'"),
        ({"a": [1, None]}, "row 2, column 'a'"),
    ],
)
def test_a_product_that_cannot_be_is_refused(factors: dict[str, list[object]], message: str) -> None:
    with pytest.raises(ArmsError, match=message):
        Arms.product(factors)


def test_texts_are_embedded_in_one_call() -> None:
    calls = []

    def embed(texts: list[str]) -> list[list[float]]:
        calls.append(texts)
        return [[len(text), text.count("a")] for text in texts]

    arms = Arms.from_texts(iter(["aa", "b", "cad"]), embed)
    assert arms.features.tolist() == [[2, 2], [1, 0], [3, 1]]
    assert arms.table["text"] == ["aa", "b", "cad"]
    assert calls == [["aa", "b", "cad"]]
    with pytest.raises(ArmsError, match="not be empty"):
        Arms.from_texts([], embed)
    with pytest.raises(ArmsError, match="2 rows expected from embed, one for each text; 1 given"):
        Arms.from_texts(["a", "b"], lambda texts: [[1.0]])


def test_arrays_are_taken_as_they_are_ones_and_all() -> None:
    features = np.array([[1.0, 0.1, 7.0], [1.0, 0.2, 7.0]])
    arms = Arms.from_arrays(features, names=["one", "x", "seven"], cost=np.array([1.0, 2.0]))
    assert (arms.features == features).all()
    assert arms.encoding.apply([{"one": 1, "x": 0.5, "seven": 7}]).tolist() == [[1, 0.5, 7]]
    assert Arms.from_arrays(features).names == ("x1", "x2", "x3")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Arms.from_arrays([1.0, 2.0]), r"shape \(K, d\)"),
        (lambda: Arms.from_arrays(np.empty((0, 2))), "not be empty"),
        (lambda: Arms.from_arrays([["a"]]), "must be numbers"),
        (lambda: Arms.from_arrays([["1"]]), "must be numbers of shape .* found the type <U1"),
        (lambda: Arms.from_arrays(np.ma.masked_equal([[1.0], [2.0]], 2.0)), "found masked cells"),
        (lambda: Arms.from_arrays([[10**400]]), "must be numbers"),
        (lambda: Arms.from_arrays([[1j]]), "found the type complex128"),
        (lambda: Arms.from_arrays([[1.0], [-1.1e150]]), r"within ±1e\+150; found -1.1e\+150 in row 2"),
        (lambda: Arms.from_arrays([[1.0]], cost=np.array([1e151])), r"cost must be .* within ±1e\+150"),
        (lambda: Arms.from_arrays(np.eye(2), ids=["a", ("b",)]), r"ids must be text or whole numbers; given \('b',\)"),
        (lambda: Arms.from_arrays(np.eye(2), ids=["a", None]), "ids must be text or whole numbers; given None"),
        (lambda: Arms.from_arrays(np.eye(2), ids=["a", True]), "ids must be text or whole numbers; given True"),
        (lambda: Arms.from_arrays(np.eye(2), ids=["a", b"b"]), "ids must be text or whole numbers; given b'b'"),
        (lambda: Arms.from_arrays(np.eye(2), ids=["a", "\ud800"]), r"row 2: the id must be text; given '\\ud800'"),
        (lambda: Arms((1,), np.eye(1), ("x",), Encoding((Column("x"),))), "row 1: the id must be text; given 1"),
        (lambda: Arms.from_arrays(np.eye(2), names=["a", 2]), "feature 2: the name must be text; given 2"),
        (lambda: Arms.from_arrays([[1.0], [np.nan]]), "found nan in row 2"),
        (lambda: Arms.from_arrays(np.eye(2), ids=["a"]), "2 ids expected, one for each arm; 1 given"),
        (lambda: Arms.from_arrays(np.eye(2), ids=["a", "a"]), "rows 1 and 2: the id is 'a'"),
        (lambda: Arms.from_arrays(np.eye(2), names=["a"]), "2 feature names expected"),
        (lambda: Arms.from_arrays(np.eye(2), names=["a", "a"]), "features 1 and 2: the name is 'a'"),
        (lambda: Arms.from_arrays(np.eye(2), cost=np.array([1.0])), "2 costs above 0 expected; 1 given"),
        (lambda: Arms.from_arrays(np.eye(2), cost=np.array([1.0, 0.0])), "in row 2, is 0"),
        (lambda: Arms.from_frame(3), "expected an eager data frame"),
        (lambda: Arms.from_frame([{"a": 1}, 2]), "row 2: expected a dict of cells by column, as in row 1; given 2"),
        (lambda: Arms.from_arrays(pd.DataFrame({"a": [1]})), r"make arms by Arms.from_frame\(frame, id=...\)"),
        (lambda: Arms.from_frame(pl.LazyFrame({"a": [1]})), "expected an eager data frame"),
        (lambda: Arms.from_frame(pd.DataFrame([[1, 2]], columns=["a", "a"])), "expected an eager data frame"),
        (lambda: Arms.from_frame(pl.DataFrame({"a": []})), "no arms"),
        (lambda: Arms.from_frame(pl.DataFrame()), "no arms"),
        (lambda: Arms(("a",), np.eye(1), ("x",), Encoding((Column("y"),))), "1 feature names expected"),
    ],
)
def test_arrays_and_frames_that_cannot_be_used_are_refused(make: Callable[[], Arms], message: str) -> None:
    with pytest.raises(ArmsError, match=message):
        make()


# Bad tables


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "standard input: no arms"),
        ("a,b\n", {}, "no arms"),
        ("a,b\n\n\n", {}, "no arms"),
        ("a,b\n1,2\n\n3\n", {}, r"row 2 \(line 4\), column 'b': expected a number, found ''"),
        ("a,b\n1,2,3\n", {}, r"line 2: 2 cells expected.*3 found; is that a decimal comma\?"),
        ("a,b,a\n1,2,3\n", {}, "columns 1 and 3: the name is 'a'"),
        (",b\n1,2\n", {}, "column 1: the name is ''"),
        ("1.5,2\n3,4\n", {}, r"expected a header of names, found the numbers \['1.5', '2'\]"),
        ("x\n1\n2\nwide\n", {}, r"row 3 \(line 4\), column 'x': expected a number, found 'wide'.*categ"),
        ('n,x\n"a\nb",1\nc,2\nd,inf\n', {"exclude": "n"}, r"row 3 \(line 5\), column 'x': .*found 'inf'"),
        ("x,y\n1,1\n2,\n", {}, r"row 2 \(line 3\), column 'y': expected a number, found ''"),
        ("x,y\n1,a\n2,\n", {}, r"row 2 \(line 3\), column 'y': expected a level, found ''"),
        ("x,y\n1,1\n2,1_000\n", {}, r"row 2 \(line 3\), column 'y': expected a number, found '1_000'"),
        (
            "x;y\n1.5;2\n2,5;3\n",
            {},
            r"row 2 \(line 3\), column 'x': expected a number, found '2,5'; write it with a decimal point",
        ),
        ("x\n-1.5\nwide\n2\n", {}, r"row 2 \(line 3\), column 'x': expected a number, found 'wide'"),
        ("n,x\na,1\nb,2\na,3\n", {"id": "n"}, "rows 1 and 3: the id is 'a'"),
        ("n,x\na,1\n,2\n", {"id": "n"}, "row 2: the id is ''"),
        ("x,c\n1,1\n2,free\n", {"cost": "c"}, r"row 2 \(line 3\), column 'c': .* a number, found 'free'"),
        ("x,c\n1,1\n2,-1\n", {"cost": "c"}, "2 costs above 0 expected; 2 given; the least, in row 2, is -1"),
        ("x\n1\n2\n", {"exclude": ["x"]}, r"no column is left to be a feature, of \['x'\]"),
        ("x,x=a\na,1\nb,2\n", {}, "features 1 and 3: the name is 'x=a'"),
        ('x,y\n1,"2\n', {}, "line 2: this is not CSV: unexpected end of data"),
        (b"\x89PNG\r\n\x1a\n\xff", {}, "expected a CSV file in UTF-8"),
        (b"x,y\n1,\x00\n", {}, "line 2: expected a CSV file in UTF-8, .*; found a NUL character"),
        ("width,y\n1,2\n", {"features": ["widht"]}, "unknown column 'widht'; the nearest are width, y"),
        ("width,y\n1,2\n", {"exclude": ["z"]}, "unknown column 'z'"),
        ("width,y\n1,2\n", {"categorical": ["z"]}, "unknown column 'z'"),
        ("width,y\n1,2\n", {"id": "z"}, "unknown column 'z'"),
        ("width,y\n1,2\n", {"cost": "z"}, "unknown column 'z'"),
    ],
)
def test_each_bad_table_has_its_error(text: str | bytes, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArmsError, match=f"(?s){message}"):
        read(text, **options)


def test_too_many_levels_are_refused_unless_asked_for() -> None:
    text = "sku,x\n" + "".join(f"s{j},{j}\n" for j in range(21))
    with pytest.raises(ArmsError, match="column 'sku': too many levels, 21 in 21 arms; use it as id="):
        read(text)
    assert len(read(text, categorical=["sku"]).names) == 22
    assert len(read(text, id="sku")) == 21
    assert len(read(text.replace("s20", "s19")).names) == 21


def test_an_unknown_scale_and_a_missing_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown scale 'min-max'; the nearest are minmax"):
        small(scale="min-max")
    with pytest.raises(ArmsError, match=r"none\.csv cannot be read: No such file"):
        Arms.from_csv(tmp_path / "none.csv")
    with pytest.raises(ArmsError, match=r"expected \*.parquet files in this folder"):
        Arms.from_csv(tmp_path)


def check(data: bytes, **options: Any) -> None:
    """Check that bytes give sound arms or an ArmsError, and nothing else."""
    try:
        arms = read(data, **options)
    except ArmsError:
        return
    assert np.isfinite(arms.features).all()
    assert arms.features.shape == (len(arms.ids), len(arms.names))
    assert arms.encoding.apply(rows_of(arms)).tobytes() == arms.features.tobytes()
    assert arms.describe()


SCALES = st.sampled_from(["none", "minmax", "standard"])
OPTIONS = st.fixed_dictionaries({"scale": SCALES, "intercept": st.booleans()})
CELLS = st.sampled_from(["1", "2.5", "1e308", "5e-324", "a", "b c", "", "?", "1,5", '"', "\n", "é", "-0.0"])
ROWS = st.lists(st.lists(CELLS, min_size=1, max_size=3), min_size=1, max_size=6)


@given(st.binary(max_size=60), OPTIONS)
def test_random_bytes_give_arms_or_an_arms_error(data: bytes, options: dict[str, Any]) -> None:
    check(data, **options)


@given(ROWS, st.sampled_from(",;\t"), OPTIONS)
def test_random_tables_give_arms_or_an_arms_error(rows: Any, mark: str, options: dict[str, Any]) -> None:
    header = ["x", "y", "z"][: len(rows[0])]
    check("\n".join(mark.join(cells) for cells in [header, *rows]).encode(), **options)


@given(st.data(), OPTIONS)
def test_a_mutated_table_gives_arms_or_an_arms_error(data: st.DataObject, options: dict[str, Any]) -> None:
    text = bytearray(TABLE.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        spot = data.draw(st.integers(0, len(text) - 1))
        text[spot : spot + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    check(bytes(text), **options)


# Numbers that are never written as text


WHOLE = np.array([3, -1, 2**53 + 1, 0, 7])
FRACTIONS = np.array([0.1, -0.0, 1e-300, 1e149, 5.0])


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint8, np.uint64, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("scale", ["none", "minmax", "standard"])
@pytest.mark.parametrize("categorical", [(), ("a",)])
def test_columns_of_numbers_are_what_their_text_is(kind, scale, categorical, tmp_path):
    with np.errstate(all="ignore"):
        column = (FRACTIONS if np.dtype(kind).kind == "f" else abs(WHOLE) % 100).astype(kind)
    column[~np.isfinite(column)] = 2
    table = pd.DataFrame({"a": column, "b": np.arange(5)[::-1]})
    pl.from_pandas(table).write_parquet(tmp_path / "t.parquet")
    written = Sheet({name: [str(cell) for cell in table[name].tolist()] for name in table})
    expected = Arms.from_frame(written, scale=scale, categorical=categorical, id="b")
    for same in (table, pl.from_pandas(table), read_file(tmp_path / "t.parquet")):
        arms = Arms.from_frame(same, scale=scale, categorical=categorical, id="b")
        assert (arms.features.tobytes(), arms.encoding, arms.ids) == (
            expected.features.tobytes(),
            expected.encoding,
            expected.ids,
        )
        assert {name: list(cells) for name, cells in arms.table.items()} == written.columns
        assert arms.table["a"][1:3] == written.columns["a"][1:3]
        assert arms.subset([4, 0]).table["a"] == [written.columns["a"][4], written.columns["a"][0]]


def test_arms_keep_what_was_read_though_the_frame_changes():
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0]})
    arms = Arms.from_frame(frame)
    frame.loc[0, "x"] = 9.0
    assert list(arms.table["x"]) == ["1.0", "2.0", "4.0"]


def test_true_and_false_in_an_array_are_levels(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[True, False], [False, False], [True, True]]))
    assert Arms.from_file(tmp_path / "t.npy").names == ("x1=False", "x1=True", "x2=False", "x2=True")


def test_an_index_that_names_rows_is_the_id_or_is_refused():
    frame = pd.DataFrame({"dose": [1.0, 2.0, 4.0], "price": [3.0, 1.0, 2.0]}, index=["a", "b", "c"])
    assert Arms.from_frame(frame, id="index").ids == ("a", "b", "c")
    assert Arms.from_frame(frame.rename_axis("code"), id="code").names == ("dose", "price")
    assert Arms.from_frame(frame, id="price").ids == ("3.0", "1.0", "2.0")
    assert Arms.from_frame(frame.reset_index(drop=True)[1:]).ids == ("1", "2")
    for odd, name in ((frame, "index"), (frame.rename_axis("code"), "code"), (frame.set_index("dose"), "dose")):
        with pytest.raises(ArmsError, match=rf"named by its index '{name}'.*say id='{name}'.*reset_index\(drop=True\)"):
            Arms.from_frame(odd)
