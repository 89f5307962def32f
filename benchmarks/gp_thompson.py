"""scikit-learn's Gaussian process with Thompson sampling in batches, as one would write it today: a rival from outside.

Matern 5/2 with a scale, and white noise; features standardised, rewards normalised; hyper-parameters fitted anew for
each batch. The first batch is drawn at random; each arm of another is the best of a draw of the posterior over some of
the arms. What it names in the end has the largest posterior mean of all.
"""

import warnings
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from bestarm.bandits import Stream
from bestarm.core import Pulls

BATCH = 10
SAMPLED = 2000  # arms over which the posterior is drawn


def standardised(x: Any) -> Any:
    """Return features with mean 0 and standard deviation 1; a constant column becomes 0."""
    spread = x.std(axis=0)
    return (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def fitted(x: Any, rewards: Any) -> GaussianProcessRegressor:
    """Return the process of what was seen, its hyper-parameters those of the largest likelihood."""
    kernel = ConstantKernel() * Matern(nu=2.5) + WhiteKernel()
    process = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=0)
    with warnings.catch_warnings():  # of bounds that are reached
        warnings.simplefilter("ignore")
        return process.fit(x, rewards)


def thompson(process: GaussianProcessRegressor, x: Any, count: int, rng: np.random.Generator) -> Any:
    """Return the best arm of each of `count` draws of the posterior over SAMPLED arms at random; not of the noise."""
    some = rng.choice(len(x), min(SAMPLED, len(x)), replace=False)
    mean, covariance = process.predict(x[some], return_cov=True)
    scale = float(np.ravel(process._y_train_std)[0]) ** 2
    covariance = covariance - scale * process.kernel_.k2.noise_level * np.eye(len(some))
    jitter = 1e-10 * scale
    while True:
        try:
            root = np.linalg.cholesky(covariance + jitter * np.eye(len(some)))
            break
        except np.linalg.LinAlgError:  # it is nearly singular
            jitter *= 10
    draws = mean[:, None] + root @ rng.standard_normal((len(some), count))
    return some[np.argmax(draws, axis=0)]


def search(world: Stream, budget: int, rng: np.random.Generator) -> int:
    """Return the arm that is named after `budget` pulls of a stack of one."""
    x = standardised(np.asarray(world.features)[0])
    taken = np.zeros((1, len(x)), dtype=np.int64)
    pulled: list[int] = []
    rewards: list[float] = []
    arms = rng.choice(len(x), min(BATCH, budget, len(x)), replace=False)
    while len(pulled) < budget:
        for arm in arms[: budget - len(pulled)]:
            once = Pulls(np.array([[arm]]), np.ones((1, 1), dtype=np.int64))
            rewards.append(float(world.pull(once, taken).sums[0, 0]))
            taken[0, arm] += 1
            pulled.append(int(arm))
        process = fitted(x[pulled], np.array(rewards))
        if len(pulled) < budget:
            arms = thompson(process, x, BATCH, rng)
    return int(np.argmax(process.predict(x)))
