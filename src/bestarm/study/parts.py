"""The policy and the model a log names; what is not here, or may not be imported, is said when it is needed."""

from dataclasses import dataclass
from typing import Any

from bestarm import spec
from bestarm.core import policy_of
from bestarm.errors import BestArmError, InputError


@dataclass(frozen=True)
class Absent:
    """In place of a part that cannot be had: everything but playing goes without it."""

    why: str

    def _refuse(self, *asked: Any) -> Any:
        raise InputError(self.why)

    start = ask = tell = recommend = _refuse


def absence(part: Any) -> str | None:
    """Return why a part cannot be had, None where it can."""
    return part.why if isinstance(part, Absent) else None


def policy(written: Any, allow: tuple[str, ...]) -> Any:
    """Return the policy as written down in a log, by its name in the catalog or part by part."""
    return _part(written, allow, "policy")


def model(written: Any, chosen: Any, allow: tuple[str, ...]) -> Any:
    """Return the model of the rewards as written down; the policy's own, if it has one, where that cannot be had."""
    found = _part(written, allow, "model")
    return found if absence(found) is None else policy_of(chosen).model or _weighed()


def _weighed() -> Any:
    from bestarm.models.weighed import Weighed

    return Weighed()


def _part(written: Any, allow: tuple[str, ...], kind: str) -> Any:
    try:
        return _named(kind, written) if isinstance(written, str) else spec.from_dict(written, allow)
    except ImportError as error:
        return Absent(f"{_name(written)} cannot be imported: {error}; install the package it is in")
    except (BestArmError, TypeError, ValueError, KeyError) as error:
        return Absent(str(error) or type(error).__name__)


def _named(kind: str, name: str) -> Any:
    from bestarm import catalog  # which knows every policy there is

    return getattr(catalog, kind)(name)


def _name(written: Any) -> str:
    return str(written.get("part", "a part")) if isinstance(written, dict) else str(written)
