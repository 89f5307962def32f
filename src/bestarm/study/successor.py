"""A study begun anew with other settings, the results of the first one along."""

import warnings
from pathlib import Path
from typing import Any

from bestarm import catalog
from bestarm.core import policy_of
from bestarm.errors import BudgetError, BudgetWarning, InputError
from bestarm.study.candidates import arms_anew, arms_of
from bestarm.study.copying import copy_results
from bestarm.study.create import create_study
from bestarm.study.limits import whole
from bestarm.study.parts import absence
from bestarm.study.state import CENT, StudyState
from bestarm.study.storage import Memory
from bestarm.study.study import Study
from bestarm.tables.arms import Arms

KEPT = ("batch", "plate", "rounds", "refund", "extra")  # options of a study


def create_from(
    old: Study,
    name: str,
    storage: Any = None,
    *,
    arms: Arms | str | Path | None = None,
    read: dict[str, Any] | None = None,
    load_if_exists: bool = False,
    **settings: Any,
) -> Study:
    """Begin a study with the arms, settings and results of another one, but for what is given here.

    `settings` are those of `create_study`. `arms` are others, or a table of them; `read` are options of
    `Arms.from_frame` by which that table, or the one the study keeps, is read otherwise. The budget is what is left of
    the old one. Arms that were withdrawn are so again.
    """
    state = old.sync()
    whole(state)
    wanted = {**_settings(state, settings), **settings, **_arms(old, arms, read)}
    given: Any = [wanted.pop(key) for key in ("arms", "budget", "policy", "model")]
    gone = [id for id, there in zip(state.ids, state.present, strict=True) if not there]

    def begun(place: Any) -> Study:
        new = create_study(*given, study_name=name, storage=place, load_if_exists=load_if_exists, **wanted)
        copy_results(old, new)
        for arm in gone:
            if arm in new.state.places:
                new.withdraw(arm, why=f"withdrawn in {state.name!r}")
        return new

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BudgetWarning)
        begun(Memory())  # what cannot be, is found before anything is written
        if old.state.total:  # what the arms gave before is known, however few pulls there are
            return begun(storage)
    return begun(storage)


def _arms(old: Study, arms: Arms | str | Path | None, read: dict[str, Any] | None) -> dict[str, Any]:
    """Return the arms as `create_study` takes them; what was kept by reference is so again."""
    if isinstance(arms, Arms):
        return {"arms": arms}
    if arms is not None or read:
        return {"arms": arms_anew(old.state, arms, **(read or {}))}
    kept = old.storage.read(old.name)[0]["arms"]
    if "at" not in kept or kept["rows"] < len(old.state.ids):
        return {"arms": arms_of(old.state)}
    folder, moved = old.log.given["folder"], old.log.given["table"]
    path = Path(folder or "") / kept["at"] if moved is None else Path(moved)
    return {"arms": path, "read": kept["read"]}


def _settings(state: StudyState, given: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a study as `create_study` takes them, but for those that given ones make void."""
    named = given.get("policy") is not None or given.get("model") is not None
    why = absence(state.policy)
    if not named and why is not None:
        raise InputError(f"the policy of {state.name!r} is not here: {why}; name another, policy=, --policy")
    kept = {key: state.options[key] for key in KEPT if not (named and key == "rounds")}
    return {
        **kept, "policy": None if named else state.policy, "model": _model(state, given),
        "budget": _left(state) if "budget" not in given else None, "seed": state.seed,
        "direction": state.rewards.goal,
        "noise_variance": state.noise_variance, "unit": state.first.get("unit"),
    }  # fmt: skip


def _model(state: StudyState, given: dict[str, Any]) -> str | None:
    """Return the name of the model the study was told; None where the policy has one of its own."""
    policy = given.get("policy", state.policy)
    policy = catalog.policy_of_text(policy) if isinstance(policy, str) else policy
    if "model" in given or policy_of(policy).model is not None:
        return None
    known = {name: make() for name, (make, _) in catalog.MODELS.items()}
    return next((name for name, model in known.items() if model == state.rewards.model), None)


def _left(state: StudyState) -> float:
    """Return what is left of the budget, if it pays for a pull."""
    left = round(state.budget - state.used, 9)
    cheapest = 1.0 if state.cost is None else min(state.cost)
    if left + CENT < cheapest:
        raise BudgetError(
            f"the budget of {state.name!r}, {state.budget:g}, is spent: say what the new study may spend, budget=, "
            "--budget; the results taken along cost nothing, so its answer is there at once"
        )
    return left
