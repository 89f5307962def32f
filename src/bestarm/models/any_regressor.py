"""Any scikit-learn regressor as the reward model: the paper's general f."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bestarm.core import Array, Tally
from bestarm.errors import InputError
from bestarm.estimators import build, describe, freeze
from bestarm.linalg import Candidates, evened
from bestarm.models.protocols import Fit, Model


@dataclass(frozen=True)
class AnyRegressor(Model):
    """A regressor or pipeline, by dotted path and parameters, fitted to the means of the arms pulled.

    Each mean counts as often as its arm was pulled: by `sample_weight` where the estimator takes it, by repetition
    otherwise. Replications are fitted one after the other.

    >>> forest = AnyRegressor("sklearn.ensemble.RandomForestRegressor", (("n_estimators", 50),))
    >>> tally = Tally(np.array([5.0, 5.0]), np.array([1.0, 9.0]), np.array([1.0, 20.0]))
    >>> bool(np.diff(forest.fit(Candidates.of(np.eye(2)), tally).mean)[0] > 0)
    True
    """

    path: str
    params: Any = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", freeze(self.params))

    @classmethod
    def wrap(cls, estimator: Any) -> "AnyRegressor":
        """Return the model of a scikit-learn regressor at hand."""
        return cls(*describe(estimator))

    def fit(self, candidates: Candidates, tally: Tally) -> Fit:
        *batch, arms, columns = candidates.features.shape
        x = np.reshape(candidates.features, (-1, arms, columns))
        counts, sums = (np.reshape(a, (-1, arms)) for a in (tally.counts, tally.sums))
        mean = np.stack([self._one(*each) for each in zip(x, counts, sums, strict=True)]).reshape((*batch, arms))
        return Fit(mean, mean)

    def _one(self, features: Array, counts: Array, sums: Array) -> Array:
        from sklearn.utils.validation import has_fit_parameter

        pulled = counts > 0
        if not pulled.any():
            return np.zeros(len(features))
        estimator = build(self.path, self.params)
        if not hasattr(estimator, "predict"):
            raise InputError(f"{self.path} is not a regressor: it has no predict method")
        features = evened(features)  # scikit-learn holds them in single precision
        x, y, n = features[pulled], sums[pulled] / counts[pulled], counts[pulled]
        if has_fit_parameter(estimator, "sample_weight"):
            estimator.fit(x, y, sample_weight=n)
        else:
            often = n.astype(np.int64)
            estimator.fit(np.repeat(x, often, axis=0), np.repeat(y, often))
        return np.asarray(estimator.predict(features), dtype=np.float64).reshape(-1)
