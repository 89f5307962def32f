"""What the tests share: truths that a policy can model, streams that replay one row; a database for each worker."""

import gc
import os
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from bestarm.bandits import Bandit, Bernoulli, Gaussian, Poisson, Tape
from bestarm.testing import AWKWARD as AWKWARD

# Speed is never a test, and what a test tries is the same every time.
settings.register_profile("ours", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ours")

# Hundreds of processes are started, each of which would compile all sources again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def pytest_collection_finish(session):
    """Keep what was collected, half a million objects, out of every later search for garbage."""
    gc.collect()
    gc.freeze()


def pytest_configure(config):
    """Give each of several test processes a database of its own: some tests look at every study there is."""
    url, worker = os.environ.get("BESTARM_TEST_POSTGRES"), os.environ.get("PYTEST_XDIST_WORKER")
    if url and worker:
        import psycopg

        name = f"bestarm_{worker}_{os.getpid()}"
        with psycopg.connect(url.replace("+psycopg", "", 1), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        os.environ["BESTARM_TEST_POSTGRES"] = url.rpartition("/")[0] + "/" + name


class RowOf:
    """The randomness one replication of a batch sees: draw for the whole batch, keep a row."""

    def __init__(self, rng, replications, row):
        self.rng, self.replications, self.row = rng, replications, row

    def random(self, size=None):
        shape = () if size is None else (size,) if isinstance(size, int) else tuple(size)
        return self.rng.random((self.replications, *shape))[self.row]


@pytest.fixture
def rng():
    return np.random.default_rng(20220722)


def bandit_for(name, features, rng, noiseless=False):
    """A truth whose rewards the policy of that name can model."""
    theta = rng.standard_normal((*features.shape[:-2], features.shape[-1], 1))
    predictor = (features @ theta)[..., 0]
    if "log" in name or "glm" in name:
        return Bandit(features, (1 + np.tanh(predictor / 2)) / 2, Bernoulli())
    if "poi" in name:
        return Bandit(features, np.exp(np.clip(predictor, -3, 3)), Poisson())
    return Bandit(features, predictor, Gaussian(0.0 if noiseless else 1.0))


def tape_for(name, features, length, rng):
    return Tape.draw(bandit_for(name, features, rng), length, rng)
