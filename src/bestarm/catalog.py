"""Name -> policy: the only list of algorithm names."""

from collections.abc import Callable
from typing import Any

from bestarm.errors import UnknownNameError
from bestarm.models.glm import GLM, Logistic, Poisson
from bestarm.models.linear import Linear
from bestarm.models.means import Means
from bestarm.policies.named import ENTRIES, Entry, forest, fwg
from bestarm.spec import changed, equations, expression, settings

__all__ = ["ENTRIES", "MODELS", "Entry", "default_policy", "explained", "fwg", "model", "names", "policy"]

MODELS: dict[str, tuple[Callable[[], Any], str]] = {
    "linear": (Linear, "gse-lin-fwg"),
    "logistic": (lambda: GLM(Logistic()), "gse-log-fwg"),
    "poisson": (lambda: GLM(Poisson()), "gse-poi-fwg"),
    "means": (Means, "gse-means"),
    "forest": (lambda: forest, "gse-forest"),
}


Plain = int | float | str | None


def names() -> list[str]:
    """Return the names of all policies."""
    return sorted(ENTRIES)


def policy(name: str, **given: Any) -> Any:
    """Return the policy of that name, with `given` settings in place of its own or those of its parts.

    >>> policy("gse-lin-fwg", eta=3).eta
    3
    >>> policy("gse-lin-fgw")
    Traceback (most recent call last):
    ...
    bestarm.errors.UnknownNameError: unknown policy 'gse-lin-fgw'; the nearest are gse-lin-fwg, gse-lin-wynn, gse-lin
    """
    if name not in ENTRIES:
        raise UnknownNameError("policy", name, ENTRIES)
    chosen = ENTRIES[name].policy
    for setting, value in given.items():
        chosen = changed(chosen, setting, value, f"policy {name!r}")
    return chosen


def explained(name: str) -> dict[str, str]:
    """Return what there is to say of a policy: its expression, settings, equations, citation and page.

    >>> explained("uniform")["expression"]
    "Elimination(Means(), Uniform(), EvenStages(eta=float('inf')))"
    """
    chosen, entry = policy(name), ENTRIES[name]
    numbers = [
        f"{where}={value!r}"
        for where, value in settings(chosen)
        if value is None or isinstance(value, int | float | str)
    ]
    return {
        "policy": name,
        "about": entry.about,
        "rewards": entry.rewards,
        "expression": expression(chosen),
        "settings": ", ".join(numbers),
        "equation": "\n".join(equations(chosen)),
        "source": entry.source,
        "page": entry.page,
    }


def model(name: str) -> Any:
    """Return the reward model of that name."""
    if name not in MODELS:
        raise UnknownNameError("model", name, MODELS)
    return MODELS[name][0]()


def default_policy(model_name: str | None = None) -> str:
    """Return the policy used when none is named: the model's own, or `auto` where no model is named either.

    >>> default_policy(), default_policy("logistic")
    ('auto', 'gse-log-fwg')
    """
    if model_name is None:
        return "auto"
    if model_name not in MODELS:
        raise UnknownNameError("model", model_name, MODELS)
    return MODELS[model_name][1]
