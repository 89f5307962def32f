"""The numeric layers keep to the array-API standard: policies run on array-api-strict and agree with NumPy."""

import array_api_strict as strict
import numpy as np
import pytest

from bestarm import catalog
from bestarm.bandits import Tape
from bestarm.play import play
from tests.conftest import tape_for

NUMPY_ONLY = {
    "gse-forest": "scikit-learn fits it",
    "gse-lin-cluster": "scikit-learn clusters for it",
    "auto": "hypotheses are weighed in NumPy",
    "gse-auto": "hypotheses are weighed in NumPy",
}


@pytest.mark.parametrize("name", [n for n in catalog.names() if n not in NUMPY_ONLY])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_policies_run_under_the_strict_standard(name, batch, rng):
    features = rng.standard_normal((*batch, 8, 3))
    tape = tape_for(name, features, 60, rng)
    elsewhere = Tape(strict.asarray(features), tape.sums, tape.squares, tape.noise_variance)
    here, there = play(catalog.policy(name), tape, 60, 2), play(catalog.policy(name), elsewhere, 60, 2)
    np.testing.assert_array_equal(here.arm, np.asarray(there.arm))
    np.testing.assert_array_equal(here.counts, np.asarray(there.counts))
