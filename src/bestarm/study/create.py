"""How studies begin."""

import os
import platform
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from bestarm import catalog, spec
from bestarm.core import Goal, Problem, policy_of
from bestarm.errors import BestArmError, BudgetError, InputError, StorageError, UnknownNameError
from bestarm.numbers import fresh_seed, real, whole
from bestarm.playing import warn_if_short
from bestarm.policies.elimination import Elimination
from bestarm.policies.streamed import BigProblem, Streamed
from bestarm.rewards import Rewards
from bestarm.study import fold
from bestarm.study.finding import Place, opened
from bestarm.study.limits import LARGEST
from bestarm.study.places import plain, reference
from bestarm.study.plates import shape_of
from bestarm.study.state import VERSION, StudyState
from bestarm.study.storage import Record, Storage
from bestarm.study.study import Study
from bestarm.tables import Source, in_blocks, open_source, opening
from bestarm.tables.arms import Arms
from bestarm.version import __version__

BLOCKS = "gse-lin-fwg"  # the policy for tables that are read in blocks, and of models without one
HOLD = 64 << 20  # bytes of such a table that are copied to memory
MANY = 1000  # pulls of each arm, and a budget is like any larger one


def create_study(
    arms: Arms | Any,
    budget: float,
    policy: str | Any = None,
    model: Any = None,
    *,
    study_name: str | None = None,
    storage: Place = None,
    load_if_exists: bool = False,
    direction: str | Goal = "maximize",
    noise_variance: float | None = None,
    seed: int | None = None,
    batch: int | None = None,
    plate: Any = None,
    rounds: int | None = None,
    refund: bool = True,
    extra: bool = True,
    unit: str | None = None,
    read: Mapping[str, Any] | None = None,
    labels: Sequence[str] = (),
    **reading: Any,
) -> Study:
    """Begin a study: find the best of `arms` within `budget` pulls (or money, where arms have costs).

    `arms` are whatever `bestarm.open_table` takes, whose options (`id`, `exclude`, `missing`, ...) may stand here too,
    or in one mapping, `read`; of a path the log keeps the place and a digest, no copy. `labels` are columns to show
    beside an arm's id. `policy` is a name, a policy, or None for `auto`, which learns how far to trust the features;
    `model` says what rewards are like, by name (linear, logistic, ...), as a model or as a law, and its own policy is
    used then. `batch` is how many trials are asked at once unless `ask` says otherwise; policies of small steps plan so
    many together. `plate`, 96, "8x12" or (8, 12), is a batch that fills a plate, each trial in a well that the seed
    draws. `rounds`, for `auto`, is how often one is willing to wait for results: all of a round is planned together.
    `refund` asks a failed trial's arm again; `extra` takes results nobody asked for. With `load_if_exists` a study of
    that name is loaded if it is of the same arms, policy and settings, and what differs is said if not.
    """
    place = opened(storage)
    table, kept = _arms(arms, {**(read or {}), **_options(reading)}, place.folder, labels)
    chosen, rewards_model = (
        chosen_policy(policy, model) if isinstance(table, Arms) else _in_blocks(policy, model, table)
    )
    name = f"study-{uuid.uuid4().hex[:8]}" if study_name is None else study_name
    goal, numbers = Goal.of(direction), _settings(table, budget, name, noise_variance, seed)
    options = {**_plates(batch, plate), "rounds": _rounds(chosen, rounds)}
    Rewards(rewards_model, goal)
    started = _start(chosen, table, numbers["budget"], numbers["noise_variance"])
    first = {
        "kind": "create", "version": VERSION, "name": name, "time": time.time(), "versions": _versions(chosen),
        "arms": kept, **goal.to_dict(), "unit": unit,
        "policy": spec.to_dict(chosen), "policy_name": policy_name(chosen), "model": spec.to_dict(rewards_model),
        "blocks": None, "stop": None, **numbers,
        "options": {**options, "refund": bool(refund), "extra": bool(extra)},
    }  # fmt: skip
    allow = _packages(chosen, rewards_model, place)
    _try(first, allow, place.folder)
    made = place.create(name, first)
    if not (made or load_if_exists):
        raise InputError(
            f"there is a study {name!r} already; load it (load_if_exists=True, --if-exists load), delete it, or choose "
            "another name"
        )
    study = Study(name, place, allow)
    study.driver.started = started
    if made:
        warn_if_short(chosen, _problem(table, started[0], None))
    else:
        _agree(study, first, plain(table) if isinstance(table, Arms) else kept, seed)
    return study


def policy_name(policy: Any) -> str:
    """Return the catalog's name of a policy, else the name of its class."""
    return catalog.name_of(policy)


def chosen_policy(policy: Any, model: Any = None) -> tuple[Any, Any]:
    """Return the policy and the model of its rewards, which is the policy's own where it has one."""
    by_name = model is None or isinstance(model, str)
    if policy is None:
        policy = catalog.default_policy(model) if by_name else BLOCKS
    typed = isinstance(policy, str)
    assumed = catalog.rewards_of(policy) if typed else "linear"
    named = catalog.model(model or assumed) if by_name else catalog.model_from(model)
    chosen = catalog.policy_of_text(policy) if typed else policy
    own = policy_of(chosen).model
    if own is not None and model is not None and own != named:
        if not typed:
            raise InputError(f"the policy given has a model of its own; leave model={model!r} out")
        chosen, own = catalog.policy_of_text(policy, model=named), named
    return chosen, own or named


def _options(reading: dict[str, Any]) -> dict[str, Any]:
    """Return options by which arms are read, or refuse one that is none, naming the nearest of all there are."""
    for name in reading:
        if name not in opening.READING:
            raise UnknownNameError(
                "option", name, {*opening.READING, *signature(create_study).parameters} - {"reading"}
            )
    return reading


def _arms(
    arms: Any, read: Mapping[str, Any], folder: Path | None, labels: Sequence[str]
) -> tuple[Arms | Source, Record]:
    """Return the arms, or a table too long to hold, and what the log keeps of them."""
    if isinstance(arms, str | os.PathLike):
        path, options = Path(arms), dict(read)
        if in_blocks(path) and opening.shape(path)[0] > opening.SMALL:
            return _long(path, options, folder, labels)
        table = Arms.from_file(path, **options)
        kept = reference(path, table, folder, **options)
    else:
        table = opening.as_arms(arms, **read)
        kept = plain(table)
    for label in labels:
        if label not in table.table:
            raise UnknownNameError("column", label, table.table)
    return table, {**kept, "labels": list(labels)} if labels else kept


def _long(
    path: Path, read: dict[str, Any], folder: Path | None, labels: Sequence[str]
) -> tuple[Source, Record]:  # fmt: skip
    """Return a table that is read in blocks, and what the log keeps of it; refuse what needs all arms in memory."""
    whole = {
        "labels": labels,
        "missing": read.pop("missing", None),
        "na": read.pop("na", ()),
        "categorical": read.pop("categorical", ()),
        "cost": read.pop("cost", None),
    }
    whole["scale"] = read.pop("scale", "none") != "none"
    for option, given in whole.items():
        if given:
            rows = f"{path} has {opening.shape(path)[0]:,} rows, and above {opening.SMALL:,} a table is read in blocks"
            raise InputError(f"{option} needs all arms in memory: {rows}; leave it out, or give fewer rows")
    if "features" in read:
        read["columns"] = read.pop("features")
    source = open_source(path, **read)
    return source, reference(path, source, folder, **read)


def _in_blocks(policy: Any, model: str | None, table: Source) -> tuple[Any, Any]:
    """Return the policy for a table that is read in blocks, of which there is one, and its model."""
    chosen = catalog.policy(BLOCKS) if policy in (None, BLOCKS) else policy
    if not isinstance(chosen, Elimination | Streamed) or model not in (None, "linear"):
        given = f"model {model}" if isinstance(chosen, Elimination | Streamed) else f"policy {policy}"
        rows = f"the table has {table.rows:,} rows, and above {opening.SMALL:,} it is read in blocks"
        raise InputError(f"{given} needs all arms in memory: {rows}; only {BLOCKS} can, or give fewer rows")
    streamed = chosen if isinstance(chosen, Streamed) else Streamed(chosen, switch=opening.SMALL, hold=HOLD)
    return streamed, streamed.few.model


def _packages(policy: Any, model: Any, place: Storage) -> set[str]:
    """Return the packages of a policy and a model, which their log may import."""
    allow = spec.packages_of([policy, model])
    if "__main__" in allow and place.place != "memory":
        raise InputError(
            f"{policy_name(policy)} is, or has a part, of this script or notebook, where {place.place} cannot find it "
            "again: put that into a module of its own, or keep the study in memory"
        )
    return allow


def _versions(policy: Any) -> dict[str, str]:
    """Return the versions of what may compute something for this study."""
    found = {"bestarm": __version__, "python": platform.python_version()}
    forest = "scikit-learn" if "AnyRegressor" in repr(policy) else None
    for package in filter(None, ("numpy", "scipy", forest)):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


def _start(policy: Any, table: Arms | Source, budget: float, noise: float | None) -> tuple[int, Any]:
    """Return pulls and first state, the policy having asked once: a study that cannot begin must not be written.

    Who can begin with many pulls can with more, and some plan them one by one. Over a long table, where that takes
    passes, it has them all and is not asked.
    """
    try:
        with np.errstate(all="ignore"):
            if isinstance(table, Arms):
                pulls = min(_pulls(table, budget), MANY * len(table))
                state = policy.start(_problem(table, pulls, noise))
                policy.ask(state, np.random.default_rng(0))
                return pulls, state
            return int(budget), policy.start(_problem(table, int(budget), noise))
    except (BestArmError, ImportError, MemoryError):
        raise
    except Exception as error:
        raise InputError(f"{policy_name(policy)} cannot start with these arms: {error}") from error


def _problem(table: Arms | Source, pulls: int, noise: float | None) -> Any:
    """Return the problem a policy starts with."""
    return Problem(table.features, pulls, noise) if isinstance(table, Arms) else BigProblem(table, pulls, noise)


def _try(first: Record, allow: Iterable[str], folder: Path | None) -> None:
    """Read the record once before it is written."""
    try:
        fold.apply(StudyState(allow=tuple(allow), folder=folder), [first])
    except StorageError as error:
        raise error.__cause__ if isinstance(error.__cause__, BestArmError) else error from None


def _pulls(table: Arms, budget: float) -> int:
    return max(1, int(budget / (1.0 if table.cost is None else float(table.cost.mean())) + 1e-9))


def _settings(
    table: Arms | Source, budget: Any, name: Any, variance: Any, seed: Any
) -> dict[str, Any]:  # fmt: skip
    """Return the numbers of a study, checked."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise InputError(f"a study needs a name that can be read; given {name!r}")
    cheapest = 1.0 if not isinstance(table, Arms) or table.cost is None else float(table.cost.min())
    money = real(budget, "the budget")
    if money < cheapest:
        raise BudgetError(f"a budget of {money:.15g} does not pay for a single pull; at least {cheapest:g} is needed")
    if money / cheapest > LARGEST:
        raise BudgetError(f"a budget of {money:.15g} is beyond what a study can plan, {LARGEST:,} pulls")
    return {
        "budget": int(money) if money.is_integer() else money,
        "noise_variance": None if variance is None else real(variance, "noise_variance", least=0),
        "seed": fresh_seed() if seed is None else whole(seed, "seed", least=0),
    }


def _rounds(policy: Any, rounds: Any) -> int | None:
    number = None if rounds is None else whole(rounds, "rounds", least=1)
    if number is not None and policy_of(policy).in_rounds(number) is None:
        raise InputError(f"rounds are for the policy auto; {policy_name(policy)} has stages or batches of its own")
    return number


def _plates(batch: Any, plate: Any) -> Record:
    """Return how many trials are asked at once, and on what plate, where there are plates."""
    size = None if batch is None else whole(batch, "batch", least=1)
    if plate is None:
        return {"batch": size, "plate": None}
    shape = shape_of(plate)
    wells = shape[0] * shape[1]
    if size is not None and size > wells:
        raise InputError(f"a batch of {size} does not fit on a plate of {wells} wells")
    return {"batch": size or wells, "plate": shape}


def _agree(study: Study, wanted: Record, mine: Record, seed: int | None) -> None:
    """Refuse a stored study that is not the one asked for, with a phrase for each difference."""
    state = study.sync()
    found, said = state.first, list[str]()
    theirs = found["arms"]
    if state.rows is not None or "ids" not in mine:
        here, there = ({key: one.get(key) for key in ("rows", "digest", "read")} for one in (mine, theirs))
        said += [] if here == there else ["its table of arms is another, or is read otherwise"]
    elif mine["ids"] != theirs["ids"]:
        odd = sorted(set(mine["ids"]) ^ set(theirs["ids"]))
        said.append(f"its arms are others, such as {odd[0]!r}" if odd else "its arms are in another order")
    elif mine["names"] != theirs["names"]:
        said.append(f"its features are {', '.join(theirs['names'])}")
    elif mine["features"] != theirs["features"]:
        pairs = zip(mine["ids"], mine["features"], theirs["features"], strict=True)
        said.append(f"arm {next(i for i, a, b in pairs if a != b)!r} has other features")
    if mine.get("cost") != theirs.get("cost"):
        said.append("its arms have other costs")
    same = {key: _read(found[key], state) == _read(wanted[key], state) for key in ("policy", "model")}
    if not same["policy"]:
        said.append(f"its policy is {found.get('policy_name', 'another')}, not {wanted['policy_name']}")
    elif not same["model"]:
        said.append("its model is another")
    if wanted["budget"] not in (found["budget"], state.budget):
        said.append(f"its budget is {state.budget:.15g}, not {wanted['budget']:.15g} (raise_budget changes it)")
    keys = ("direction", "noise_variance", *(["seed"] if seed is not None else []))
    settings = [(key, found[key], wanted[key]) for key in keys]
    settings += [(key, found["options"].get(key), value) for key, value in wanted["options"].items()]
    said += [f"its {key} is {there!r}, not {here!r}" for key, there, here in settings if there != here]
    if said:
        raise InputError(f"there is a study {study.name!r}, but a different one: {'; '.join(said)}")


def _read(written: Any, state: StudyState) -> Any:
    """Return a part, or what is written of one that cannot be had here, and so is another than any that can."""
    try:
        return spec.from_dict(written, state.allow)
    except (BestArmError, ImportError):
        return written
