"""Policies as a simulation is told them: names of the catalog with settings, dotted paths, or values."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from bestarm import catalog
from bestarm.core import policy_of
from bestarm.errors import InputError
from bestarm.texts import divided, pairs


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
        for key, value in pairs(rest, f"policy {text!r}"):
            try:
                settings.append((key, float(value)))
            except ValueError:
                raise InputError(f"policy {text!r}: a setting is written key=number; given '{key}={value}'") from None
        ref = cls(name, tuple(sorted(settings)))
        ref.build()
        return ref

    def build(self) -> Any:
        """Return the policy."""
        return catalog.policy(self.name, **dict(self.settings))

    @property
    def entry(self) -> catalog.Entry:
        """What the catalog says of it."""
        return catalog.ENTRIES[self.name]

    @property
    def identity(self) -> str:
        """What tells it from other policies, the same in every process and version."""
        return str(self)

    def __str__(self) -> str:
        more = ",".join(f"{key}={value:g}" for key, value in self.settings)
        return f"{self.name}:{more}" if more else self.name


@dataclass(frozen=True, eq=False)
class OwnPolicy:
    """A policy that is a value, the name it is shown by, and what tells it from others: its class and settings.

    >>> print(OwnPolicy.of(catalog.policy("p1-rage"), "mine"))
    mine
    """

    name: str
    policy: Any
    identity: str

    @classmethod
    def of(cls, policy: Any, name: str | None = None) -> "OwnPolicy":
        """Return a policy, checked, under a name or else its class and the settings that are not the defaults."""
        policy_of(policy)
        kind = type(policy)
        with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
            settings = repr(policy if is_dataclass(policy) else getattr(policy, "__dict__", policy))
        own = f"{kind.__module__}:{kind.__qualname__}"
        if " at 0x" not in settings:  # the place in memory of something that has no repr
            return cls(name or _shown(policy), policy, f"{name or ''}={own} {settings}")
        if name is None:
            raise InputError(
                f"the settings of {kind.__name__} cannot be told from its repr, so results could not be told apart; "
                "make it a frozen dataclass of plain settings, or give it a name: {'mine': policy}"
            )
        return cls(name, policy, f"{name}={own}")

    def build(self) -> Any:
        """Return the policy."""
        return self.policy

    @property
    def entry(self) -> catalog.Entry:
        """What is known of it: it gets rewards as they are, and may model any."""
        return catalog.Entry(self.policy, f"a policy of {type(self.policy).__module__}", "any, 0/1 as such", "", "")

    def __str__(self) -> str:
        return self.name


Ref: TypeAlias = PolicyRef | OwnPolicy
Named: TypeAlias = Any  # a name, a ref or a policy; several of them; or a mapping from labels to policies


def policy_of_text(text: str) -> Ref:
    """Return the policy a text names: `name:key=number,...` or `package.module:Class:key=value,...`."""
    name, _ = divided(text)
    own = ":" in name and name.partition(":")[0] not in catalog.ENTRIES
    return OwnPolicy.of(catalog.policy_of_text(text), text) if own else PolicyRef.parse(text)


def named(policies: Named, meaning: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Ref]:
    """Return policies by what they are called, a text perhaps `meaning` another one; no two may be called the same."""
    if isinstance(policies, Mapping):
        listed: Iterable[Ref] = [OwnPolicy.of(policy, str(name)) for name, policy in policies.items()]
    else:
        several = isinstance(policies, Iterable) and not isinstance(policies, str)
        listed = [_ref(one, meaning) for one in (policies if several else [policies])]
    found: dict[str, Ref] = {}
    for ref in listed:
        if found.setdefault(str(ref), ref).identity != ref.identity:
            raise InputError(f"two policies are called {ref}; give them names: {{'one': ..., 'other': ...}}")
    return found


def _ref(one: Any, meaning: Mapping[str, Any]) -> Ref:
    one = meaning.get(one, one) if isinstance(one, str) else one
    if isinstance(one, PolicyRef | OwnPolicy):
        return one
    if isinstance(one, str):
        return policy_of_text(one)
    known = (PolicyRef(name) for name, entry in catalog.ENTRIES.items() if repr(entry.policy) == repr(one))
    return next(known, None) or OwnPolicy.of(one)


def _shown(policy: Any) -> str:
    """Return the class of a policy and what is set otherwise than by default."""
    some = fields(policy) if is_dataclass(policy) else ()
    values = [(field.name, getattr(policy, field.name), field.default) for field in some if field.repr]
    settings = ", ".join(f"{name}={value!r}" for name, value, default in values if repr(value) != repr(default))
    return f"{type(policy).__name__}({settings})" if settings else type(policy).__name__
