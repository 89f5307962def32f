"""What to run: a grid of cells, each an instance, a policy and a budget. Plain data, no computing."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bestarm import catalog
from bestarm.bench.worlds import Instance
from bestarm.core import whole_budget
from bestarm.errors import InputError
from bestarm.numbers import real


@dataclass(frozen=True)
class PolicyRef:
    """A policy of the catalog with settings: `lingape-greedy:width=0.2`.

    >>> PolicyRef.parse("gse-lin-fwg:eta=4")
    PolicyRef(name='gse-lin-fwg', settings=(('eta', 4.0),))
    """

    name: str
    settings: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def parse(cls, text: str) -> "PolicyRef":
        """Read a name, then a colon and comma-separated settings."""
        name, _, rest = text.partition(":")
        settings = []
        for pair in filter(None, rest.split(",")):
            key, equals, value = pair.partition("=")
            try:
                settings.append((key.strip(), float(value)))
            except ValueError:
                raise InputError(f"policy {text!r}: a setting is written key=number; given {pair!r}") from None
            if not equals:
                raise InputError(f"policy {text!r}: a setting is written key=number; given {pair!r}")
        ref = cls(name, tuple(sorted(settings)))
        ref.build()
        return ref

    def build(self) -> Any:
        """Return the policy."""
        return catalog.policy(self.name, **dict(self.settings))

    def __str__(self) -> str:
        more = ",".join(f"{key}={value:g}" for key, value in self.settings)
        return f"{self.name}:{more}" if more else self.name


@dataclass(frozen=True)
class Cell:
    """One number to be measured: how a policy does on an instance with a budget."""

    instance: Instance
    policy: PolicyRef
    budget: int

    @property
    def key(self) -> str:
        """Return a name that is the same in every process and version."""
        return digest([self.instance.world, self.instance.params, str(self.policy), self.budget])

    @property
    def world_key(self) -> str:
        """Return the name of the cell's instances and rewards, which policies and budgets share."""
        return digest([self.instance.world, self.instance.params])


def digest(value: Any) -> str:
    """Return a short fingerprint of plain data."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]


def grid(
    instances: Iterable[Instance],
    policies: Iterable[str | PolicyRef],
    budget: int | Callable[..., int] | None = None,
    budget_per_arm: float | None = None,
) -> list[Cell]:
    """Return the cells of every instance with every policy; `budget` may be a function of the instance's parameters."""
    refs = [p if isinstance(p, PolicyRef) else PolicyRef.parse(p) for p in policies]
    if (budget is None) == (budget_per_arm is None):
        raise InputError("give either a budget or a budget per arm")
    return [Cell(one, ref, _budget(one, budget, budget_per_arm)) for one in instances for ref in refs]


def _budget(one: Instance, budget: int | Callable[..., int] | None, per_arm: float | None) -> int:
    params: Mapping[str, Any] = dict(one.params)
    if per_arm is not None:
        arms = params.get("K") or params.get("draw") or one.make(1, 0).means.shape[-1]
        return whole_budget(int(real(per_arm, "budget_per_arm", above=0) * arms + 0.5))
    if callable(budget):
        from inspect import signature

        return whole_budget(int(budget(**{key: params[key] for key in signature(budget).parameters})))
    return whole_budget(budget)
