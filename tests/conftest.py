"""What the tests share: streams that replay one row of a batch, and awkward problems; a database for each worker."""

import os

import numpy as np
import pytest

from bestarm.bandits import Bandit, Bernoulli, Gaussian, Poisson, Tape


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


AWKWARD = {
    "plain": lambda rng: rng.standard_normal((7, 3)),
    "one arm": lambda rng: rng.standard_normal((1, 3)),
    "two arms": lambda rng: rng.standard_normal((2, 2)),
    "fewer arms than features": lambda rng: rng.standard_normal((4, 9)),
    "as many": lambda rng: np.eye(5),
    "duplicates": lambda rng: np.repeat(rng.standard_normal((3, 2)), 3, axis=0),
    "a zero row": lambda rng: np.concatenate([np.zeros((1, 3)), rng.standard_normal((5, 3))]),
    "all zero": lambda rng: np.zeros((4, 2)),
    "rank one": lambda rng: np.outer(rng.standard_normal(6), rng.standard_normal(3)),
    "badly scaled": lambda rng: rng.standard_normal((9, 3)) * np.array([1e-4, 1.0, 1e4]),
    "one feature": lambda rng: rng.standard_normal((5, 1)),
    "odd": lambda rng: rng.standard_normal((13, 4)),
}
