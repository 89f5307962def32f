"""What to run: a grid of cells, each an instance, a policy and a budget. Plain data, no computing."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bestarm.bench.worlds import Instance
from bestarm.core import whole_budget
from bestarm.errors import InputError
from bestarm.numbers import real
from bestarm.simulate.chunks import fingerprint
from bestarm.simulate.policies import Named, Ref, named


@dataclass(frozen=True)
class Cell:
    """One number to be measured: how a policy does on an instance with a budget."""

    instance: Instance
    policy: Ref
    budget: int

    @property
    def key(self) -> str:
        """Return a name that is the same in every process and version."""
        return digest([self.instance.world, self.instance.params, self.policy.identity, self.budget])

    @property
    def world_key(self) -> str:
        """Return the name of the cell's instances and rewards, which policies and budgets share."""
        return digest([self.instance.world, self.instance.params])


def digest(value: Any) -> str:
    """Return a short fingerprint of plain data."""
    return fingerprint(json.dumps(value, sort_keys=True, default=str))


def grid(
    instances: Iterable[Instance],
    policies: Named,
    budget: int | Callable[..., int] | None = None,
    budget_per_arm: float | None = None,
) -> list[Cell]:
    """Return the cells of every instance with every policy; `budget` may be a function of the instance's parameters.

    `policies` are names, `package.module:Class` as a text, or values; a mapping gives values names of one's own.
    """
    refs = named(policies).values()
    if (budget is None) == (budget_per_arm is None):
        raise InputError("give either a budget or a budget per arm")
    return [Cell(one, ref, _budget(one, budget, budget_per_arm)) for one in instances for ref in refs]


def _budget(one: Instance, budget: int | Callable[..., int] | None, per_arm: float | None) -> int:
    params: Mapping[str, Any] = dict(one.params)
    if per_arm is not None:
        arms = params.get("K") or params.get("draw") or one.make(1, 0).features.shape[-2]
        return whole_budget(int(real(per_arm, "budget_per_arm", above=0) * arms + 0.5))
    if callable(budget):
        from inspect import signature

        return whole_budget(int(budget(**{key: params[key] for key in signature(budget).parameters})))
    return whole_budget(budget)
