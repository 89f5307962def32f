"""Policies that fit no reward model run on array-api-strict and agree with NumPy; models are plain NumPy."""

import array_api_strict as strict
import numpy as np
import pytest

from bestarm import catalog, spec
from bestarm.bandits import Tape
from bestarm.play import play
from tests.conftest import tape_for

MODELS = {"AnyRegressor", "GLM", "Linear", "Logistic", "Means", "Poisson", "Weighed"}
FIT_MEANS = {"successive-rejects", "continuous-rejects-a", "continuous-rejects-c"}  # as part of their recommendation


def fits_a_model(part):
    """Return whether a policy, or a part of it, is of `bestarm.models`."""
    if isinstance(part, dict):
        return part.get("part") in MODELS or any(fits_a_model(value) for value in part.values())
    return isinstance(part, list) and any(fits_a_model(value) for value in part)


PLAIN = [name for name in catalog.names() if not fits_a_model(spec.to_dict(catalog.policy(name)))]


@pytest.mark.parametrize("name", [name for name in PLAIN if name not in FIT_MEANS])
@pytest.mark.parametrize("batch", [(), (3,)])
def test_policies_run_under_the_strict_standard(name, batch, rng):
    features = rng.standard_normal((*batch, 8, 3))
    tape = tape_for(name, features, 60, rng)
    elsewhere = Tape(strict.asarray(features), tape.sums, tape.squares, tape.noise_variance)
    here, there = play(catalog.policy(name), tape, 60, 2), play(catalog.policy(name), elsewhere, 60, 2)
    np.testing.assert_array_equal(here.arm, np.asarray(there.arm))
    np.testing.assert_array_equal(here.counts, np.asarray(there.counts))
