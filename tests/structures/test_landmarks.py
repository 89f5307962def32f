"""Laws of kernels through landmarks: exact where arms are landmarks, of unit variance, whoever else is in the batch."""

import numpy as np
import pytest

from bestarm.kernels import Exponential, Matern
from bestarm.structures import landmarks
from bestarm.structures.bases import kernel_base, standardised
from bestarm.structures.hypotheses import KINDS, Scaling, structures
from bestarm.structures.landmarks import Landmarks

KERNELS = {"exponential": Exponential(), "matern": Matern(2.5)}


def marked(x):
    standard = standardised(x)
    return Landmarks.of(standard, KERNELS, {name: kernel_base(standard, kernel) for name, kernel in KERNELS.items()})


def pulled(rng, arms, count):
    counts = np.zeros(arms)
    counts[rng.choice(arms, count, replace=False)] = rng.integers(1, 5, count)
    return counts


def same(one, two, atol=1e-9):
    for name in KERNELS:
        a, b = one[name], two[name]
        np.testing.assert_allclose(a.features @ a.features.mT, b.features @ b.features.mT, atol=atol)
        np.testing.assert_allclose(a.missing, b.missing, atol=atol)
        np.testing.assert_allclose(a.squared, np.vecdot(a.features, a.features), atol=1e-12)
        np.testing.assert_array_equal(a.dimension, b.dimension)


@pytest.mark.parametrize("arms", [20, 32])
def test_where_all_arms_are_landmarks_a_kernel_is_exact(arms, rng):
    x = rng.standard_normal((arms, 3))
    for counts in (np.zeros(arms), pulled(rng, arms, 7)):  # the 32 that are far from one another are all there are
        found = marked(x).bases(counts)
        for name, kernel in KERNELS.items():
            exact = kernel_base(standardised(x), kernel)
            F = found[name].features
            np.testing.assert_allclose(F @ F.T, exact.features @ exact.features.T, atol=1e-7)
            np.testing.assert_allclose(found[name].missing, 0, atol=1e-9)


def test_where_all_arms_were_pulled_a_kernel_is_exact(monkeypatch, rng):
    monkeypatch.setattr(landmarks, "MOST", 60)
    monkeypatch.setattr(landmarks, "LEAST", 60)
    x = rng.standard_normal((48, 3))
    found = marked(x)
    assert found.far.shape == (12,)
    same(found.bases(np.ones(48)), {name: kernel_base(standardised(x), k) for name, k in KERNELS.items()}, 1e-7)


def test_nothing_is_missing_of_landmarks_and_something_of_others(rng):
    counts = pulled(rng, 300, 40)
    found = marked(rng.standard_normal((300, 3)))
    at = np.zeros(300, dtype=bool)
    at[found.far] = True
    at |= counts > 0
    for base in found.bases(counts).values():
        assert (base.missing[at] == 0).all()
        assert (base.missing[~at] > 0).all()


def test_of_pulled_arms_the_covariance_is_that_of_the_kernel(rng):
    x, counts = rng.standard_normal((300, 3)), pulled(rng, 300, 40)
    at = np.flatnonzero(counts)
    found = marked(x)
    for name, base in found.bases(counts).items():
        own = KERNELS[name](found.places[at], found.places[at])
        F = base.features[at]
        middle = np.eye(40) - 1 / 40  # features are less their mean over all arms, and in another unit
        one, two = (middle @ gram @ middle for gram in (F @ F.T, own))
        np.testing.assert_allclose(one / np.trace(one), two / np.trace(two), atol=1e-8)


def test_the_most_pulled_are_landmarks_where_there_is_no_room_for_all(monkeypatch, rng):
    monkeypatch.setattr(landmarks, "MOST", 50)
    monkeypatch.setattr(landmarks, "LEAST", 50)
    found = marked(rng.standard_normal((300, 3)))
    counts = np.zeros(300)
    counts[:100] = 1.0
    counts[50:90] = 5.0  # forty are as many as there is room for
    for base in found.bases(counts).values():
        assert (base.missing[50:90] == 0).all()
        assert (base.missing[90:100] > 0).any()


def test_variance_is_one_over_the_arms_on_average(rng):
    x = rng.standard_normal((2, 300, 3))
    for count in (0, 3, 200):
        for base in marked(x).bases(np.stack([pulled(rng, 300, count)] * 2)).values():
            np.testing.assert_allclose(np.mean(base.squared + base.missing, axis=-1), 1)
            np.testing.assert_allclose(base.features.mean(axis=-2), 0, atol=1e-9)


def test_a_landmark_named_twice_is_one(rng):
    x = rng.standard_normal((300, 3))
    found = marked(x)
    counts = np.zeros(300)
    counts[found.far[:9]] = 4.0
    same(found.bases(counts), found.bases(np.zeros(300)))


def test_twins_are_borne(rng):
    x = np.repeat(rng.standard_normal((150, 3)), 2, axis=0)
    found = marked(x)
    for base in found.bases(pulled(rng, 300, 60)).values():
        np.testing.assert_allclose(base.features[::2], base.features[1::2], atol=1e-9)
        assert np.isfinite(base.features).all()


def test_replications_are_as_if_alone(rng):
    x = rng.standard_normal((4, 300, 3))
    counts = np.stack([pulled(rng, 300, count) for count in (0, 5, 40, 170)])
    together = marked(x).bases(counts)
    for row in range(4):
        of_row = {name: base.each(lambda part, _, row=row: part[row]) for name, base in together.items()}
        same(of_row, marked(x[row]).bases(counts[row]))


def test_scales_do_not_follow_the_pulls(rng):
    x = rng.standard_normal((300, 3))
    made = structures(x, 100, KINDS, Scaling())
    after = made.following(pulled(rng, 300, 40))
    assert after.hypotheses is made.hypotheses
    assert {n for n in made.bases if after.bases[n] is not made.bases[n]} == set(KERNELS)
    few = structures(x[:256], 100, KINDS, Scaling())
    assert few.landmarks is None
    assert few.following(np.ones(256)) is few
