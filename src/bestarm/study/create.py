"""How studies begin, are found again, and end."""

import math
import os
import time
import uuid
from typing import Any, TypeAlias

from bestarm import catalog, spec
from bestarm.arms import Arms
from bestarm.core import Problem
from bestarm.errors import BestArmError, BudgetError, InputError, StorageError, UnknownNameError
from bestarm.live import fresh_seed
from bestarm.policies.auto import Auto
from bestarm.rewards import Rewards
from bestarm.study.fold import LARGEST, VERSION, StudyState
from bestarm.study.storage import Record, Storage, open_storage
from bestarm.study.study import Study

Place: TypeAlias = str | os.PathLike[str] | Storage | None


def create_study(
    arms: Arms | Any,
    budget: float,
    policy: str | Any = None,
    model: str | None = None,
    *,
    study_name: str | None = None,
    storage: Place = None,
    load_if_exists: bool = False,
    direction: str = "maximize",
    noise_variance: float | None = None,
    seed: int | None = None,
    batch: int | None = None,
    rounds: int | None = None,
    refund: bool = True,
    extra: bool = True,
) -> Study:
    """Begin a study: find the best of `arms` within `budget` pulls (or money, where arms have costs).

    `policy` is a name, a policy, or None for `auto`, which learns how far to trust the features; `model` says what
    rewards are like, linear, logistic, ..., and its own policy is used then. `batch` is how many trials are asked at
    once unless `ask` says otherwise; policies of small steps plan so many together. `rounds`, for `auto`, is how often
    one is willing to wait for results: all of a round is planned together. `refund` asks a failed trial's arm again;
    `extra` takes results nobody asked for. With `load_if_exists` a study of that name is loaded if it is of the same
    arms, policy and settings, and what differs is said if not.
    """
    table = arms if isinstance(arms, Arms) else Arms.from_arrays(arms)
    chosen, rewards_model = _policy(policy, model)
    name = f"study-{uuid.uuid4().hex[:8]}" if study_name is None else study_name
    _check(table, budget, name, direction, noise_variance, seed, batch)
    _check_rounds(chosen, rounds)
    Rewards(rewards_model, direction == "minimize")
    chosen.start(Problem(table.features, _pulls(table, budget), noise_variance))
    first = {
        "kind": "create", "version": VERSION, "name": name, "time": time.time(), "budget": budget,
        "direction": direction,
        "arms": {"ids": list(table.ids), "features": table.features.tolist(), "names": list(table.names),
                 "cost": None if table.cost is None else table.cost.tolist(), "encoding": table.encoding.to_dict(),
                 "table": {column: list(cells) for column, cells in table.table.items()}},
        "policy": spec.to_dict(chosen), "policy_name": policy_name(chosen), "model": spec.to_dict(rewards_model),
        "noise_variance": noise_variance, "seed": fresh_seed() if seed is None else int(seed),
        "options": {"batch": batch, "rounds": rounds, "refund": refund, "extra": extra},
    }  # fmt: skip
    _try(first)
    place = _open(storage)
    if place.create(name, first):
        return Study(name, place)
    if not load_if_exists:
        raise InputError(f"there is a study {name!r} already; load it, delete it, or choose another name")
    study = Study(name, place)
    differing = _differences(study, first, seed)
    if differing:
        raise InputError(f"there is a study {name!r}, but a different one: {'; '.join(differing)}")
    return study


def load_study(study_name: str, storage: Place = None) -> Study:
    """Return the study of that name."""
    place = _open(storage)
    _known(study_name, place)
    return Study(study_name, place)


def delete_study(study_name: str, storage: Place = None) -> None:
    """Forget a study and all its results."""
    place = _open(storage)
    _known(study_name, place)
    place.delete(study_name)


def get_all_study_names(storage: Place = None) -> list[str]:
    """Return the names of all studies in a storage."""
    return _open(storage).names()


def policy_name(policy: Any) -> str:
    """Return the catalog's name of a policy, else the name of its class."""
    for name, entry in catalog.ENTRIES.items():
        if entry.policy == policy:
            return name
    return type(policy).__name__


def _open(storage: Place) -> Storage:
    return open_storage(storage if storage is not None else os.environ.get("BESTARM_STORAGE"))


def _known(name: str, place: Storage) -> None:
    names = place.names()
    if name not in names:
        if not names:
            raise StorageError(f"there is no study {name!r} here; there is none at all")
        raise UnknownNameError("study", name, names)


def _policy(policy: Any, model: str | None) -> tuple[Any, Any]:
    """Return the policy and the model of its rewards, which is the policy's own where it has one."""
    binary = isinstance(policy, str) and policy in catalog.ENTRIES and catalog.ENTRIES[policy].binary
    named = catalog.model(model or ("logistic" if binary else "linear"))
    if policy is None:
        policy = catalog.default_policy(model)
    chosen = catalog.policy(policy) if isinstance(policy, str) else policy
    own = getattr(getattr(chosen, "policy", chosen), "model", None)
    if own is not None and model is not None and own != named:
        if not isinstance(policy, str):
            raise InputError(f"the policy given has a model of its own; leave model={model!r} out")
        chosen, own = catalog.policy(policy, model=named), named
    return chosen, own or named


def _try(first: Record) -> None:
    """Ask the first question once before anything is written: a study that cannot begin must not exist."""
    try:
        StudyState().apply([first])
    except StorageError as error:
        raise error.__cause__ if isinstance(error.__cause__, BestArmError) else error from None


def _pulls(table: Arms, budget: float) -> int:
    return max(1, int(budget / (1.0 if table.cost is None else float(table.cost.mean())) + 1e-9))


def _check(
    table: Arms, budget: Any, name: str, direction: str, variance: Any, seed: Any, batch: Any
) -> None:  # fmt: skip
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise InputError(f"a study needs a name that can be read; given {name!r}")
    if direction not in ("maximize", "minimize"):
        raise InputError(f"direction must be 'maximize' or 'minimize'; given {direction!r}")
    if variance is not None and not 0 <= variance < math.inf:
        raise InputError(f"a variance is a number not below 0; given {variance!r}")
    if seed is not None and seed < 0:
        raise InputError(f"a seed is a whole number not below 0; given {seed!r}")
    if batch is not None and batch < 1:
        raise InputError(f"a batch is of at least one trial; given {batch!r}")
    cheapest = 1.0 if table.cost is None else float(table.cost.min())
    if not cheapest <= budget < math.inf:
        raise BudgetError(f"a budget of {budget} does not pay for a single pull; at least {cheapest:g} is needed")
    if budget / cheapest > LARGEST:
        raise BudgetError(f"a budget of {budget:g} is beyond what a study can plan, {LARGEST:,} pulls")


def _check_rounds(policy: Any, rounds: Any) -> None:
    if rounds is None:
        return
    if not isinstance(policy, Auto):
        raise InputError(f"rounds are for the policy auto; {policy_name(policy)} has stages or batches of its own")
    if rounds < 1 or rounds != int(rounds):
        raise InputError(f"rounds must be a whole number, at least 1; given {rounds!r}")


def _differences(study: Study, wanted: Record, seed: int | None) -> list[str]:
    """Return what differs between a stored study and the one asked for, a phrase each."""
    fold = study.sync()
    found = fold.first
    mine, theirs = wanted["arms"], found["arms"]
    said = []
    if mine["ids"] != theirs["ids"]:
        odd = sorted(set(mine["ids"]) ^ set(theirs["ids"]))
        said.append(f"its arms are others, such as {odd[0]!r}" if odd else "its arms are in another order")
    elif mine["names"] != theirs["names"]:
        said.append(f"its features are {', '.join(theirs['names'])}")
    elif mine["features"] != theirs["features"]:
        pairs = zip(mine["ids"], mine["features"], theirs["features"], strict=True)
        said.append(f"arm {next(i for i, a, b in pairs if a != b)!r} has other features")
    if mine["cost"] != theirs["cost"]:
        said.append("its arms have other costs")
    if spec.from_dict(found["policy"]) != spec.from_dict(wanted["policy"]):
        said.append(f"its policy is {found.get('policy_name', 'another')}, not {wanted['policy_name']}")
    elif spec.from_dict(found["model"]) != spec.from_dict(wanted["model"]):
        said.append("its model is another")
    if wanted["budget"] not in (found["budget"], fold.budget):
        said.append(f"its budget is {fold.budget:g}, not {wanted['budget']:g} (raise_budget changes it)")
    keys = ("direction", "noise_variance", *(["seed"] if seed is not None else []))
    said += [f"its {key} is {found[key]!r}, not {wanted[key]!r}" for key in keys if found[key] != wanted[key]]
    options = [key for key, value in wanted["options"].items() if found["options"].get(key) != value]
    return said + [f"its {key} is {found['options'].get(key)!r}, not {wanted['options'][key]!r}" for key in options]
