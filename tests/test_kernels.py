"""Kernels: closed forms by hand, Gram matrices that are Gram matrices, features that reproduce them."""

import math

import array_api_strict
import numpy as np
import pytest

from bestarm.errors import InputError
from bestarm.kernels import (
    Exponential,
    LinearKernel,
    Matern,
    SquaredExponential,
    kernel_features,
    squared_distances,
)

KERNELS = [
    LinearKernel(),
    LinearKernel(variance=2500.0),
    Exponential(length=0.7),
    SquaredExponential(length=1e-3),
    SquaredExponential(length=1000.0),
    Matern(nu=0.5),
    Matern(nu=1.5, length=10.0),
    Matern(nu=2.5, length=0.3),
]
STATIONARY = [kernel for kernel in KERNELS if not isinstance(kernel, LinearKernel)]


@pytest.fixture
def features():
    return np.random.default_rng(1).normal(size=(5, 9, 3))


@pytest.mark.parametrize(
    ("kernel", "at_distance_5"),
    [
        (Exponential(length=2.0), math.exp(-2.5)),
        (SquaredExponential(length=2.0), math.exp(-12.5)),
        (Matern(nu=0.5, length=2.0), math.exp(-2.5)),
        (Matern(nu=1.5, length=2.0), (1 + math.sqrt(3) * 2.5) * math.exp(-math.sqrt(3) * 2.5)),
        (Matern(nu=2.5, length=2.0), (1 + math.sqrt(5) * 2.5 + 5 * 25 / 12) * math.exp(-math.sqrt(5) * 2.5)),
        (LinearKernel(variance=2.0), 0.0),
    ],
)
def test_the_closed_form_at_distance_five(kernel, at_distance_5):
    gram = kernel(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]]))
    assert gram.shape == (1, 1)
    assert gram[0, 0] == pytest.approx(at_distance_5, rel=1e-14)


@pytest.mark.parametrize("nu", [1.5, 2.5])
def test_matern_agrees_with_scikit_learn(nu, features):
    from sklearn.gaussian_process.kernels import Matern as Theirs

    ours = Matern(nu, length=0.8)(features[0], features[1])
    assert np.allclose(ours, Theirs(length_scale=0.8, nu=nu)(features[0], features[1]), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_gram_matrix_is_symmetric_and_positive_semi_definite(kernel, features):
    gram = kernel(features, features)
    assert gram.shape == (5, 9, 9)
    assert np.array_equal(gram, np.swapaxes(gram, -1, -2))
    values = np.linalg.eigvalsh(gram)
    assert (values >= -1e-12 * values[:, -1:]).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_stack_is_each_of_its_parts(kernel, features):
    other = features[:, :4] + 1.0
    whole = kernel(features, other)
    assert whole.shape == (5, 9, 4)
    for part, x, y in zip(whole, features, other, strict=True):
        assert np.allclose(part, kernel(x, y), rtol=1e-14, atol=0)
    assert np.array_equal(kernel(features, other[0])[2], kernel(features[2], other[0]))


@pytest.mark.parametrize("kernel", STATIONARY, ids=repr)
def test_an_arm_is_exactly_like_itself_and_its_double_however_far_from_zero(kernel, features):
    far = features + 1e8
    doubled = np.concatenate([far, far[:, :1]], axis=1)
    gram = kernel(doubled, doubled)
    assert (np.diagonal(gram, axis1=-2, axis2=-1) == 1).all()
    assert (gram[:, 0, -1] == 1).all()
    assert (gram <= 1).all()


def test_close_arms_keep_their_distance():
    x = np.array([[1e6, 1.0]])
    assert squared_distances(x, x + np.array([0.0, 2.0**-30]))[0, 0] == 2.0**-60


def test_no_features_are_no_distance():
    assert np.array_equal(squared_distances(np.zeros((2, 0)), np.zeros((3, 0))), np.zeros((2, 3)))


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_features_reproduce_the_gram_matrix(kernel, features):
    gram = kernel(features, features)
    found = kernel_features(gram)
    assert found.shape == (5, 9, 9)
    scale = np.linalg.norm(gram, ord=2, axis=(-2, -1))[:, None, None]
    assert np.abs(found @ np.swapaxes(found, -1, -2) - gram).max() <= 1e-10 * scale.max()
    sizes = np.linalg.norm(found, axis=-2)
    assert (np.diff(sizes, axis=-1) <= 1e-12 * scale[..., 0]).all()


def test_the_linear_kernel_has_as_many_features_as_the_arms():
    x = np.random.default_rng(2).normal(size=(9, 3))
    found = kernel_features(LinearKernel()(x, x))
    assert (found[:, 3:] == 0).all()
    assert (np.linalg.norm(found[:, :3], axis=0) > 0.1).all()


def test_rank_cuts_to_the_nearest_matrix_of_that_rank(features):
    gram = Exponential()(features[0], features[0])
    found = kernel_features(gram, rank=4)
    left, values, right = np.linalg.svd(gram)
    assert found.shape == (9, 4)
    assert np.allclose(found @ found.T, (left[:, :4] * values[:4]) @ right[:4], atol=1e-12)
    assert kernel_features(gram, rank=40).shape == (9, 9)


def test_a_matrix_that_is_not_quite_positive_gives_no_nan():
    found = kernel_features(np.array([[1.0, 1.0 + 1e-15], [1.0 + 1e-15, 1.0]]))
    assert np.allclose(found @ found.T, 1.0)
    assert (kernel_features(np.zeros((3, 3))) == 0).all()
    assert (kernel_features(-np.eye(3)) == 0).all()


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_it_keeps_to_the_array_standard(kernel, features):
    strict = array_api_strict.asarray(features)
    gram = kernel(strict, strict)
    found = kernel_features(gram, rank=20)
    assert isinstance(found, array_api_strict._array_object.Array)
    assert np.allclose(np.asarray(gram), kernel(features, features), rtol=1e-14, atol=0)


@pytest.mark.parametrize("length", [0.0, -1.0, math.inf, math.nan])
def test_a_length_that_is_none_is_refused(length):
    for kernel in (Exponential, SquaredExponential, lambda length: Matern(0.5, length)):
        with pytest.raises(InputError, match="length must be positive"):
            kernel(length)
    with pytest.raises(InputError, match="variance must be positive"):
        LinearKernel(length)


def test_other_refusals_say_what_was_expected():
    with pytest.raises(InputError, match=r"0\.5, 1\.5 and 2\.5; given 1"):
        Matern(nu=1)
    with pytest.raises(InputError, match="2 and 3 given"):
        Exponential()(np.zeros((4, 2)), np.zeros((4, 3)))
    with pytest.raises(InputError, match="rank must be at least 1"):
        kernel_features(np.eye(2), rank=0)


def test_kernels_are_values():
    assert Matern(2.5, 3.0) == Matern(2.5, 3.0) != Matern(2.5, 4.0)
    assert len({Exponential(), Exponential(1.0), SquaredExponential()}) == 2
