"""Estimators as plain data: there and back, and refusals."""

import json

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, PolynomialFeatures, StandardScaler

from bestarm.errors import InputError
from bestarm.estimators import build, describe, freeze


@pytest.mark.parametrize(
    "estimator",
    [
        PolynomialFeatures(degree=3, include_bias=False),
        MinMaxScaler(feature_range=(-1, 1)),
        Ridge(alpha=0.5),
        KMeans(n_clusters=3, random_state=7),
        PCA(n_components=0.9),
        StandardScaler(),
        SimpleImputer(),
        SelectKBest(k=3),
    ],
    ids=repr,
)
def test_description_and_building_undo_each_other(estimator):
    path, params = describe(estimator)
    again = build(path, params)
    assert type(again) is type(estimator)
    assert describe(again)[0] == path
    ours, theirs = again.get_params(), estimator.get_params()
    if theirs.get("random_state", 0) is None:
        theirs["random_state"] = 0
    assert repr(ours) == repr(theirs)
    assert freeze(json.loads(json.dumps(params))) == params
    hash((path, params))


def test_the_path_is_the_public_one_and_defaults_are_left_out():
    assert describe(Ridge(alpha=2.0, fit_intercept=True)) == ("sklearn.linear_model.Ridge", (("alpha", 2.0),))


def test_what_is_random_is_seeded_once():
    assert build("sklearn.cluster.KMeans", {"n_clusters": 2}).random_state == 0
    assert build("sklearn.cluster.KMeans", {"random_state": 5}).random_state == 5
    first, second = (build("sklearn.decomposition.PCA") for _ in range(2))
    assert first is not second


def test_parameters_are_sorted_plain_and_hashable():
    assert freeze({"b": [1, [2.5, None]], "a": "x"}) == (("a", "x"), ("b", (1, (2.5, None))))
    assert freeze([["b", True], ("a", 1)]) == (("a", 1), ("b", True))
    assert freeze(()) == ()


@pytest.mark.parametrize(
    "estimator",
    [
        FunctionTransformer(np.log1p),
        SelectKBest(f_regression),
        MinMaxScaler(feature_range=np.array([0, 1])),
    ],
    ids=lambda one: type(one).__name__,
)
def test_parameters_that_cannot_be_written_down_are_refused(estimator):
    with pytest.raises(InputError, match=r"parameter .* must be a number, a string"):
        describe(estimator)


def test_what_is_no_estimator_is_refused():
    for wrong in (Ridge, 3, "sklearn.linear_model.Ridge"):
        with pytest.raises(InputError, match="an estimator with get_params is expected"):
            describe(wrong)

    class Local(Ridge):
        pass

    with pytest.raises(InputError, match="move it to a module"):
        describe(Local())
    Local.__module__ = "__main__"
    with pytest.raises(InputError, match="move it to a module"):
        describe(Local())


@pytest.mark.parametrize(
    ("path", "params", "says"),
    [
        ("", {}, "such as sklearn"),
        ("Ridge", {}, "names no class"),
        (".linear_model.Ridge", {}, "names no class"),
        ("sklearn.no_such_module.Ridge", {}, "cannot be imported"),
        ("sklearn.linear_model.Rigde", {}, "has no class Rigde"),
        ("sklearn.linear_model.ridge_regression", {}, "has no class"),
        ("sklearn.linear_model.Ridge", {"alhpa": 1.0}, "cannot be made with.*alhpa"),
        ("collections.Counter", {}, "is not an estimator"),
        ("sklearn.linear_model.Ridge", {"alpha": object()}, "parameter alpha must be"),
        ("sklearn.linear_model.Ridge", 3, "params must map names to values"),
        ("sklearn.linear_model.Ridge", {1: 2}, "names of params must be strings"),
    ],
)
def test_refusals_say_what_was_expected(path, params, says):
    with pytest.raises(InputError, match=says):
        build(path, params)


def test_a_pipeline_is_written_down_step_by_step():
    pipeline = make_pipeline(StandardScaler(with_mean=False), PolynomialFeatures(degree=3))
    path, params = describe(pipeline)
    rebuilt = build(path, params)
    assert [type(step) for _, step in rebuilt.steps] == [StandardScaler, PolynomialFeatures]
    assert rebuilt.steps[0][1].with_mean is False
    assert rebuilt.steps[1][1].degree == 3
    assert describe(rebuilt) == (path, params)
