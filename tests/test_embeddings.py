"""Embeddings: scikit-learn's answers, stacks equal to their parts, plain data that can be stored."""

import dataclasses
import json

import array_api_strict
import numpy as np
import pytest
from sklearn.decomposition import PCA as TheirPCA
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures

from bestarm.embeddings import PCA, KernelFeatures, Projection, Transformer
from bestarm.errors import InputError
from bestarm.kernels import LinearKernel, Matern

POLYNOMIAL = Transformer("sklearn.preprocessing.PolynomialFeatures", {"degree": 2})
EMBEDDINGS = [
    PCA(2),
    Projection(3),
    KernelFeatures(Matern(), components=4),
    KernelFeatures(LinearKernel()),
    POLYNOMIAL,
    Transformer("sklearn.preprocessing.StandardScaler"),
]


@pytest.fixture
def features():
    return np.random.default_rng(3).normal(size=(4, 10, 5)) + 2.0


def up_to_sign(ours, theirs):
    signs = np.sign(np.sum(ours * theirs, axis=-2, keepdims=True))
    return np.allclose(ours * signs, theirs, atol=1e-10)


def test_pca_agrees_with_scikit_learn(features):
    assert up_to_sign(PCA(3).embed(features[0]), TheirPCA(3).fit_transform(features[0]))


def test_projection_agrees_with_truncated_svd(features):
    theirs = TruncatedSVD(3, algorithm="arpack", random_state=0).fit_transform(features[0])
    assert up_to_sign(Projection(3).embed(features[0]), theirs)


@pytest.mark.parametrize("embedding", EMBEDDINGS, ids=repr)
def test_a_stack_is_each_of_its_parts(embedding, features):
    whole = embedding.embed(features)
    assert whole.shape[:2] == (4, 10)
    for part, x in zip(whole, features, strict=True):
        assert np.allclose(part, embedding.embed(x), atol=1e-12)
    assert np.array_equal(embedding.embed(features.reshape(2, 2, 10, 5)), whole.reshape(2, 2, 10, -1))


@pytest.mark.parametrize("embedding", EMBEDDINGS[:4], ids=repr)
def test_it_keeps_to_the_array_standard(embedding, features):
    strict = embedding.embed(array_api_strict.asarray(features))
    assert isinstance(strict, array_api_strict._array_object.Array)
    assert np.allclose(np.asarray(strict), embedding.embed(features), atol=1e-12)


def test_projection_at_full_rank_changes_no_inner_product_and_pca_no_distance(features):
    x = features[0]
    found = Projection(5).embed(x)
    assert np.allclose(found @ found.T, x @ x.T)
    centred = x - x.mean(axis=0)
    found = PCA(5).embed(x)
    assert np.allclose(found @ found.T, centred @ centred.T)


def test_there_are_at_most_as_many_components_as_arms_or_features(features):
    for embedding in (PCA(40), Projection(40)):
        assert embedding.embed(features).shape == (4, 10, 5)
        assert embedding.embed(array_api_strict.asarray(features[:, :3])).shape == (4, 3, 3)
    assert KernelFeatures(Matern(), 40).embed(features).shape == (4, 10, 10)


def test_directions_that_are_not_there_are_zero():
    line = np.outer(np.arange(1.0, 7.0), [1.0, 2.0, 3.0])
    assert (Projection(3).embed(line)[:, 1:] == 0).all()
    assert (Projection(3).embed(np.zeros((4, 3))) == 0).all()
    assert (PCA(1).embed(np.ones((4, 3))) == 0).all()


def test_kernel_features_have_the_kernel_as_inner_products(features):
    found = KernelFeatures(Matern(2.5)).embed(features)
    assert np.allclose(found @ np.swapaxes(found, -1, -2), Matern(2.5)(features, features), atol=1e-9)


def test_a_transformer_is_plain_data():
    assert Transformer.wrap(PolynomialFeatures(degree=2, include_bias=False)) == Transformer(
        "sklearn.preprocessing.PolynomialFeatures", {"include_bias": False}
    )
    stored = json.loads(json.dumps(dataclasses.asdict(POLYNOMIAL)))
    again = Transformer(**stored)
    assert again == POLYNOMIAL
    assert hash(again) == hash(POLYNOMIAL)
    assert eval(repr(again)) == POLYNOMIAL
    with pytest.raises(dataclasses.FrozenInstanceError):
        again.path = "elsewhere"


def test_a_random_transformer_repeats_itself(features):
    noisy = Transformer("sklearn.random_projection.GaussianRandomProjection", {"n_components": 3})
    assert np.array_equal(noisy.embed(features), noisy.embed(features))
    assert np.array_equal(noisy.embed(features)[1], noisy.embed(features[1]))


def test_sparse_answers_are_made_dense():
    encoded = Transformer("sklearn.preprocessing.OneHotEncoder").embed(np.array([[1.0], [4.0], [1.0]]))
    assert np.array_equal(encoded, [[1, 0], [0, 1], [1, 0]])


def test_replications_of_different_width_are_filled_up_with_zeros():
    same, varied = np.array([[1.0, 5.0], [1.0, 6.0]]), np.array([[1.0, 5.0], [2.0, 6.0]])
    kept = Transformer("sklearn.feature_selection.VarianceThreshold").embed(np.stack([same, varied]))
    assert np.array_equal(kept, [[[5, 0], [6, 0]], [[1, 5], [2, 6]]])


@pytest.mark.parametrize(
    ("transformer", "says"),
    [
        (Transformer("sklearn.linear_model.Ridge"), "is not a transformer"),
        (Transformer("sklearn.preprocessing.Nothing"), "has no class Nothing"),
        (Transformer("sklearn.feature_selection.SelectKBest", {"k": 2}), "cannot embed features"),
        (Transformer("sklearn.preprocessing.PolynomialFeatures", {"degree": "two"}), "cannot embed features"),
        (Transformer("sklearn.preprocessing.PolynomialFeatures", {"grade": 2}), "cannot be made with"),
    ],
    ids=str,
)
def test_refusals_say_what_was_expected(transformer, says, features):
    with pytest.raises(InputError, match=says):
        transformer.embed(features)


def test_a_transformer_that_cannot_be_written_down_is_refused():
    with pytest.raises(InputError, match="parameter func must be"):
        Transformer.wrap(FunctionTransformer(np.log1p))


@pytest.mark.parametrize("components", [0, -1, 2.0, True])
def test_components_are_counted(components):
    for embedding in (PCA, Projection, lambda count: KernelFeatures(Matern(), count)):
        with pytest.raises(InputError, match="components must be a whole number"):
            embedding(components)
