"""Name -> policy: the only list of algorithm names."""

from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from functools import reduce
from typing import Any

import numpy as np

from bestarm import plugins
from bestarm.core import Problem, policy_of
from bestarm.errors import InputError
from bestarm.models.glm import GLM
from bestarm.models.law import Logistic, Poisson
from bestarm.models.linear import Linear
from bestarm.models.means import Means
from bestarm.policies.named import ENTRIES, Entry, forest, fwg
from bestarm.spec import changed, equations, expression, settings
from bestarm.texts import divided, imported, made, pairs, value_of

__all__ = [
    "ENTRIES",
    "MODELS",
    "Entry",
    "default_policy",
    "explained",
    "fwg",
    "model",
    "name_of",
    "names",
    "policy",
    "shortage",
]

MODELS: dict[str, tuple[Callable[[], Any], str]] = {
    "linear": (Linear, "gse-lin-fwg"),
    "logistic": (lambda: GLM(Logistic()), "gse-log-fwg"),
    "poisson": (lambda: GLM(Poisson()), "gse-poi-fwg"),
    "means": (Means, "gse-means"),
    "forest": (lambda: forest, "gse-forest"),
}
KINDS = {"model": "models", "law": "laws", "link": "laws", "design": "designs"}  # of parts, by setting


Plain = int | float | str | None


def names() -> list[str]:
    """Return the names of all policies."""
    return sorted(ENTRIES)


def listed() -> tuple[list[dict[str, str]], list[str]]:
    """Return a row for each policy, here and of installed packages, and why some of those cannot be used."""
    rows = [{"policy": name, "about": ENTRIES[name].about} for name in names()]
    points, others, broken = plugins.found("policies"), [], []
    for point in points:
        try:
            about = (plugins.loaded(point).__doc__ or "").strip().partition("\n")[0]
            others.append({"policy": point.name, "about": about, "package": plugins.package(point)})
        except InputError as error:
            broken.append(str(error))
    return ([row | {"package": "bestarm-bai"} for row in rows] if others else rows) + others, broken


def policy(name: str, **settings: Any) -> Any:
    """Return the policy of that name, here or in an installed package, with `settings` replacing its own.

    >>> policy("gse-lin-fwg", eta=3).eta
    3
    >>> policy("gse-lin-fgw")
    Traceback (most recent call last):
    ...
    bestarm.errors.UnknownNameError: unknown policy 'gse-lin-fgw'; the nearest are gse-lin-fwg, gse-lin-wynn, gse-lin
    """
    return _with(_policy_called(name), name, "", settings)


def policy_of_text(text: str, **settings: Any) -> Any:
    """Return the policy that a person typed: a name or `package.module:Class`, then `:key=value,key=value`.

    Whoever types a path lets it be imported. `settings` are given as they are.

    >>> policy_of_text("gse-lin-fwg:eta=4").eta
    4.0
    >>> policy_of_text("bestarm.policies.auto:Auto:rounds=3").rounds
    3
    """
    name, typed = divided(text)
    if name.partition(":")[0] in ENTRIES and ":" in name:
        raise InputError(f"policy {text!r}: a setting is written key=value; given {name.partition(':')[2]!r}")
    return _with(imported(name) if ":" in name else _policy_called(name), name, typed, settings)


def rewards_of(text: str) -> str:
    """Return the model of the rewards that the policy typed takes, where it says no more than that."""
    entry = ENTRIES.get(divided(text)[0])
    return "logistic" if entry is not None and entry.binary else "linear"


def _policy_called(name: str) -> Any:
    return ENTRIES[name].policy if name in ENTRIES else plugins.part("policies", name, ENTRIES)


def _with(found: Any, name: str, typed: str, given: dict[str, Any]) -> Any:
    """Return a policy with settings of its own or of its parts; where it was a class, one made with them."""
    what = f"policy {name!r}"
    if isinstance(found, type):
        found, typed, given = made(found, what, typed, given, _part), "", {}
    whole = policy_of(found)

    def altered(part: Any) -> Any:
        for key, value in {**given, **dict(_typed(part, what, typed))}.items():
            part = changed(part, key, value, what)
        return part

    return whole.altered(altered) if typed or given else found


def _typed(part: Any, what: str, typed: str) -> Iterator[tuple[str, Any]]:
    """Give settings of a part, or of the parts within it, as they were typed: `key=value,key=value`."""
    there = settings(part)
    for key, text in pairs(typed, what):
        like = ":" in text or key in KINDS  # a part takes the place of a part, a number that of a number
        found = [(where, now) for where, now in there if f".{where}".endswith(f".{key}")]
        where = next((where for where, now in found if is_dataclass(now) == like), found[0][0] if found else None)
        if where is None:
            known = ", ".join(sorted({where.rpartition(".")[2] for where, _ in there})) or "none"
            raise InputError(f"{what} has no setting {key!r}; it has {known}")
        *within, last = where.split(".")
        owner = reduce(getattr, within, part)
        a_part = is_dataclass(getattr(owner, last))
        yield key, _part(last, text) if a_part else value_of(type(owner), last, text, f"{what}: {key}", _part)


def _part(key: str, text: str) -> Any:
    """Return the part that a text stands for as the setting `key`."""
    if key in KINDS:
        return part(KINDS[key], text)
    if ":" not in text:
        raise InputError(f"{key} is a part; a path package.module:Class is expected, given {text!r}")
    return _one(imported(text), text)


def _one(found: Any, name: str) -> Any:
    """Return a part; where its class was named, one with all its defaults."""
    return made(found, name, "", {}, _part) if isinstance(found, type) else found


def model_from(given: Any) -> Any:
    """Return a reward model, of a law the generalized linear one; what is neither is refused."""
    if callable(getattr(given, "fit", None)):  # a model; a law has none
        return given
    if callable(getattr(given, "value", None)):
        return GLM(given)
    what = f"{given.__name__} is a class" if isinstance(given, type) else f"{type(given).__name__} has no method fit"
    raise InputError(f"a reward model, a law of rewards, or the name of one is expected; {what}")


def part(kind: str, text: str) -> Any:
    """Return a model, law or design: by its name here or in an installed package, or its path `module:Class`."""
    if kind == "models" and text in MODELS:
        return MODELS[text][0]()
    if ":" in text:
        found = _one(imported(text), text)
        return model_from(found) if kind == "models" else found
    if kind == "models" and text in plugins.names("laws"):
        return GLM(part("laws", text))
    known = (*MODELS, *plugins.names("laws")) if kind == "models" else ()
    return _one(plugins.part(kind, text, known), text)


def name_of(policy: Any) -> str:
    """Return the catalog's name of a policy, else the name of its class."""
    for name, entry in ENTRIES.items():
        if entry.policy == policy:
            return name
    return type(policy).__name__


def shortage(policy: Any, problem: Any) -> str | None:
    """Return in words that the budget is below what a policy needs for its answer to mean anything; None if it is not.

    >>> shortage(policy("uniform"), Problem(np.eye(8), 5))
    'uniform needs 8 pulls of 8 arms, a pull of each arm; a budget of 5 is fewer, and its answer means little'
    """
    need = policy_of(policy).needs(problem)
    if problem.arms == 1 or problem.budget >= need.pulls:
        return None
    return (
        f"{name_of(policy)} needs {need.pulls:,} pulls of {problem.arms:,} arms, {need.why}; a budget of "
        f"{problem.budget:,} is fewer, and its answer means little"
    )


EXAMPLE = 64, 6  # arms and features


def _needs(policy: Any) -> str:
    """Return what a policy needs, and how many pulls that is for example."""
    arms, features = EXAMPLE
    need = policy_of(policy).needs(Problem(np.random.default_rng(0).standard_normal(EXAMPLE), 1))
    return f"{need.why}: {need.pulls} pulls of {arms} arms with {features} features, for example"


def explained(name: str) -> dict[str, str]:
    """Return what there is to say of a policy: its expression, settings, what it needs, equations, citation and page.

    >>> explained("uniform")["expression"]
    "Elimination(Means(), Uniform(), EvenStages(eta=float('inf')))"
    """
    chosen = policy_of_text(name)
    entry = ENTRIES.get(name) or Entry(chosen, f"a policy of {type(chosen).__module__}", "any", "", "")
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
        "needs": _needs(chosen),
        "equation": "\n".join(equations(chosen)),
        "source": entry.source,
        "page": entry.page,
    }


def model(name: str) -> Any:
    """Return the reward model of that name, here or in an installed package."""
    return part("models", name)


def default_policy(model_name: str | None = None) -> str:
    """Return the policy used when none is named: the model's own, or `auto` where no model is named either.

    >>> default_policy(), default_policy("logistic")
    ('auto', 'gse-log-fwg')
    """
    if model_name is None:
        return "auto"
    if model_name not in MODELS:
        model(model_name)  # of an installed package, or not known at all
        return "gse-lin-fwg"
    return MODELS[model_name][1]
