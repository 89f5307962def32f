"""Variants that only the paper's figures have: the published code's, which overspend, and rewards 0 and 1 left raw.

The published code rounds every weight of a design up, so its stages take more than their share of the budget. Here a
bench lends such a policy more, meters it, and the tables show its pulls; `play` stays strict.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from bestarm import catalog
from bestarm.core import Array, Policy, Problem, Pulls, Random, Standing, Totals, policy_of
from bestarm.designs.ascent import Ascent
from bestarm.errors import InputError
from bestarm.models.glm import GLM
from bestarm.models.law import Logistic
from bestarm.models.linear import Linear
from bestarm.policies.elimination import Elimination
from bestarm.policies.named import literal
from bestarm.policies.rules import UCB
from bestarm.policies.schedules import FloorHalving, Share, Stages, YangTan
from bestarm.policies.sequential import Sequential
from bestarm.simulate.policies import OwnPolicy, PolicyRef, Ref

RAW = "raw "
LENT = 16  # times the budget: more than any design rounded up has taken
MUCH = 2**40


class Overspent(Share):
    """⌈`pulls` π_i⌉ pulls, whatever is left of the budget."""

    def times(self, design: Any, arms: Any, left: Array, rng: Random, targets: Array | None) -> Array | None:
        return super().times(design, arms, np.full_like(left, MUCH), rng, targets)


@dataclass(frozen=True)
class CeilHalving(FloorHalving):
    """The stages of the published GSE, each weight rounded up."""

    def stages(self, arms: int, budget: int, dimension: Callable[[], int]) -> Stages:
        return tuple(Overspent(pulls, keep) for pulls, keep in self.shares(arms, budget))


@dataclass(frozen=True)
class EarlySum(YangTan):
    """The published OD-LinBAI: the sum in m ends one term early, m is at most ⌊B/R⌋, each weight is rounded up."""

    def stages(self, arms: int, budget: int, dimension: Callable[[], int]) -> Stages:
        shares = self.shares(arms, dimension(), budget)
        last = shares[-2][1] / len(shares) if len(shares) > 1 else 0.0
        return tuple(Overspent(min(pulls + last, budget // len(shares)), keep) for pulls, keep in shares)


@dataclass(frozen=True)
class Lent:
    """A policy that is told one `LENT`-th of the budget, since it may ask for more than it is told."""

    policy: Policy[Any]

    def start(self, problem: Problem) -> Any:
        return self.policy.start(replace(problem, budget=problem.budget // LENT))

    def ask(self, state: Any, rng: Random) -> Pulls | None:
        return self.policy.ask(state, rng)

    def tell(self, state: Any, pulls: Pulls, totals: Totals) -> Any:
        return self.policy.tell(state, pulls, totals)

    def recommend(self, state: Any) -> Array:
        return self.policy.recommend(state)

    def describe(self, state: Any) -> Standing:
        return policy_of(self.policy).describe(state)


LENDING = {
    "gse-lin-fwg-overspent": Lent(Elimination(Linear(), literal, CeilHalving())),
    "gse-log-fwg-overspent": Lent(Elimination(GLM(Logistic()), literal, CeilHalving())),
    "od-linbai-overspent": Lent(Elimination(Linear(), Ascent(), EarlySum())),
}
OTHERS = {"linucb-best-estimate": Sequential(UCB())}


@dataclass(frozen=True)
class RawRef(PolicyRef):
    """A policy of the catalog that gets rewards 0 and 1 as they are, though its model has no intercept."""

    @property
    def entry(self) -> catalog.Entry:
        return replace(super().entry, rewards="any, 0/1 as such")

    def __str__(self) -> str:
        return RAW + super().__str__()


@cache
def player(text: str) -> Ref:
    """Return the policy a figure names: one above, `raw NAME`, or an entry of the catalog with settings."""
    if text in LENDING or text in OTHERS:
        return OwnPolicy(text, {**LENDING, **OTHERS}[text], text)  # known by its name, as entries are
    ref = PolicyRef.parse(text.removeprefix(RAW))
    return RawRef(ref.name, ref.settings) if text.startswith(RAW) else ref


def budget_of(text: str, budget: int) -> int:
    """Return the budget a bench plays a figure's policy with."""
    return LENT * budget if text in LENDING else budget


@cache
def told(text: str) -> bool:
    """Return whether a figure's policy is told the variance of the noise: without it, it refuses to start."""
    if "noise_variance=" in text:
        return True
    try:
        player(text).build().start(Problem(np.eye(4), LENT * 40))
    except InputError:
        return True
    return False
