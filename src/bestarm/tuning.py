"""Try values of a setting on simulated bandits, and keep the best.

LinGapE's delta and BayesGap's length scale have no value that is right everywhere; the GSE paper chose both by search.
Tune on seeds of their own: a value chosen on the very runs it is then judged by looks better than it is.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from bestarm.core import Policy
from bestarm.errors import InputError
from bestarm.numbers import generator, whole
from bestarm.simulate.chunks import Judged, judged
from bestarm.spec import changed


@dataclass(frozen=True)
class Tried:
    """How a value did: the share of right answers, the standard error of that share, and the mean regret."""

    value: Any
    accuracy: float
    error: float
    regret: float


@dataclass(frozen=True)
class Tuning:
    """All trials in the order given, and the policy with the best value."""

    setting: str
    trials: tuple[Tried, ...]
    best: Tried
    policy: Any

    def __str__(self) -> str:
        rows = [f"{self.setting:>16}  accuracy   s.e.   regret"]
        for t in self.trials:
            mark = " *" if t is self.best else ""
            rows.append(f"{t.value!s:>16}  {t.accuracy:8.3f}  {t.error:.3f}  {t.regret:7.4f}{mark}")
        return "\n".join(rows)


def tune(
    policy: Policy[Any],
    setting: str,
    values: Iterable[Any],
    bandits: Callable[[int, np.random.Generator], Judged],
    budget: int,
    replications: int = 200,
    rng: Any = None,
) -> Tuning:
    """Play `policy` with each of `values` for `setting` on the same simulated bandits; the first of the best wins.

    `bandits(n, rng)` makes a stack of n bandits. A setting of a part within is found by its name, or by its way:
    "prior.kernel.length". Every value meets the same bandits and the same random numbers, so what differs between
    trials is the value.

    >>> from bestarm import instances
    >>> from bestarm import catalog
    >>> lingape = catalog.policy("lingape-greedy")
    >>> found = tune(lingape, "width", [1.0, 0.2], lambda n, rng: instances.static(3.0, replications=n), 64, 20, 1)
    >>> [trial.value for trial in found.trials], found.best.accuracy
    ([1.0, 0.2], 1.0)
    """
    makes, plays = generator(rng, "rng").spawn(2)
    bandit = bandits(whole(replications, "replications", least=1), makes)
    seed = int(plays.integers(2**63))
    candidates = [(value, changed(policy, setting, value)) for value in values]
    if not candidates:
        raise InputError(f"there are no values of {setting!r} to try")
    trials = tuple(_trial(candidate, value, bandit, budget, seed) for value, candidate in candidates)
    place = max(range(len(trials)), key=lambda k: (trials[k].accuracy, -trials[k].regret, -k))
    return Tuning(setting, trials, trials[place], candidates[place][1])


def _trial(policy: Policy[Any], value: Any, bandit: Judged, budget: int, seed: int) -> Tried:
    correct, regret, _ = judged(policy, bandit, bandit, budget, seed)
    right = np.asarray(correct, dtype=np.float64)
    accuracy = float(right.mean())
    error = sqrt(accuracy * (1 - accuracy) / right.size)
    return Tried(value, accuracy, error, float(np.asarray(regret).mean()))
