"""Making a plan: what is plausible, which policies, and what their simulated runs say."""

import math
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from bestarm import catalog
from bestarm.core import Goal, Problem, whole_budget
from bestarm.errors import ArmsError, BudgetWarning, InputError, UnknownNameError
from bestarm.models.protocols import Model, model_of
from bestarm.numbers import LARGEST_WHOLE, generator, real, whole
from bestarm.planning.answer import Plan, Rounds
from bestarm.planning.rivals import RIVALS
from bestarm.planning.search import Simulation, search
from bestarm.planning.theorem import Theorem
from bestarm.planning.worlds import Prior, Worlds
from bestarm.progress import Meter
from bestarm.simulate.intervals import NORMAL
from bestarm.simulate.policies import Named, OwnPolicy, named
from bestarm.tables.opening import as_arms, is_array


def plan(
    arms: Any,
    model: Any = None,
    *,
    gap: float | None = None,
    noise_variance: float | None = None,
    error: float = 0.05,
    policies: Named = None,
    policy: Any = None,
    budget: int | None = None,
    budgets: Iterable[int] | None = None,
    replications: int = 1000,
    rng: Any = None,
    n_jobs: int = -1,
    prior: Prior | None = None,
    base: float | None = None,
    rivals: str = "spread",
    cap: int | None = None,
    progress: bool = False,
    direction: str | Goal = "maximize",
    **reading: Any,
) -> Plan:
    """Simulate `policies` on worlds plausible for `arms`, and find the smallest budget with at most `error`.

    `arms` are `Arms`, features `(K, d)`, or what `bestarm.open_table` takes, with its options (`id`, ...); `gap`,
    `prior` and `base` say what is plausible, see `Worlds`. With `rivals` "spread" the other arms are anywhere behind;
    "close" is the cautious choice, all near the gap. Policies are names, dotted paths `package.module:Class`, policies,
    or a mapping from a label to a policy, and `policy` is a single one; None is the model's own with two others.
    Without a `model` truths are linear; where one is named, "auto" stands for its own policy. With `budget`, the error
    there and at twice that is predicted; with `budgets`, at each of them. Otherwise budgets double until the target is
    shown, or `cap` is met, and the last step is refined. The numbers do not depend on `n_jobs`.

    >>> import numpy as np
    >>> small = plan(np.eye(4), gap=1.0, noise_variance=1.0, policies="gse-lin-fwg", replications=200, rng=1, n_jobs=1)
    >>> small.budget["gse-lin-fwg"] <= small.bound
    True
    """
    name, drawn, own = _model("linear" if model is None else model)
    replications, cap, n_jobs = _check(error, replications, cap, n_jobs, rivals)
    features = _features(arms, reading)
    worlds = Worlds(features, drawn, gap, noise_variance, prior, base, RIVALS[rivals], Goal.of(direction))
    chosen = _policies(policies, policy, own, model is None)
    listed = _budgets(budget, budgets, error, replications)
    about = _about(worlds, name, rivals) | {"replications": replications}
    if len(worlds.kinds[0]) == 1:
        return _nothing_to_find(worlds, chosen, error, about)
    seed = int(generator(rng, "rng").integers(2**63))
    worlds.predictors(1, np.random.default_rng(seed))  # worlds that cannot be are refused before anything runs
    with Meter(progress, "runs") as meter:
        runs = Simulation(worlds, chosen, replications, seed, n_jobs, error, meter)
        if listed is None:
            search(runs, cap)
        else:
            runs.run([(label, one) for label in chosen for one in listed])
    return _answer(runs, budget, listed is None, about)


def _about(worlds: Worlds, model: str, rivals: str) -> dict[str, Any]:
    """Return what a plan is for, by the names of its settings."""
    return {
        "model": model,
        "gap": worlds.gap,
        "rivals": None if worlds.gap is None else rivals,
        "prior": "given" if callable(worlds.prior) else worlds.prior,
        "base": worlds.base,
        "direction": None if worlds.goal == Goal() else worlds.goal.direction,
        "noise_variance": worlds.noise_variance,
    }


def _features(arms: Any, reading: dict[str, Any]) -> Any:
    array = is_array(arms) and not reading
    features = np.asarray(arms, dtype=np.float64) if array else as_arms(arms, **reading).features
    if features.ndim != 2:
        raise ArmsError(f"features must have shape (K, d); given {features.shape}")
    return Problem(features, 1).features


def _model(given: Any) -> tuple[str, Model, tuple[str, Any]]:
    """Return the name of a model, that by which truths are drawn, and the model's own policy with its label."""
    model = model_of(catalog.model(given) if isinstance(given, str) else catalog.model_from(given)).truth
    for name, (make, label) in catalog.MODELS.items():
        if make() == model:
            return name, model, (label, catalog.policy(label))
    name = given if isinstance(given, str) else model.law.named().lower()
    return name, model, (f"gse-{name}-fwg", catalog.policy("gse-lin-fwg", model=model))


def _policies(policies: Named, policy: Any, own: tuple[str, Any], assumed: bool) -> dict[str, Any]:
    """Return the policies by label; "auto" stands for the model's own, which is fast, unless the model is `assumed`."""
    if policies is not None and policy is not None:
        raise InputError("give either policy, a single one, or policies")
    if policy is not None:
        policies = [policy]
    mine: Any = own[0] if own[0] in catalog.ENTRIES else OwnPolicy.of(own[1], own[0])
    meaning = {"auto": catalog.default_policy() if assumed else mine, own[0]: mine}
    refs = named((own[0], "sequential-halving", "uniform") if policies is None else policies, meaning)
    if not refs:
        raise InputError("policies must name at least one policy")
    return {name: ref.build() for name, ref in refs.items()}


def _check(error: Any, replications: Any, cap: Any, n_jobs: Any, rivals: str) -> tuple[int, int | None, int]:
    """Return the replications, the cap and the number of jobs as whole numbers."""
    if not 0 < real(error, "error") < 1:
        raise InputError(f"error must be between 0 and 1; given {error}")
    if not whole(n_jobs, "n_jobs"):
        raise InputError("n_jobs must not be 0; -1 is one for each core")
    if rivals not in RIVALS:
        raise UnknownNameError("kind of rivals", rivals, RIVALS)
    most = None if cap is None else whole(cap, "cap", least=1, most=LARGEST_WHOLE)
    return whole(replications, "replications", least=1), most, whole(n_jobs, "n_jobs")


def _budgets(budget: int | None, budgets: Iterable[int] | None, error: float, replications: int) -> list[int] | None:
    """Return the budgets to simulate; None if one is to be found, which `error` must allow."""
    if budget is not None and budgets is not None:
        raise InputError("give either budget, to be seen with twice as much, or budgets")
    if budget is None and budgets is None:
        least = math.ceil(NORMAL**2 * (1 / error - 1))  # Wilson's interval after no error ends at z²/(R + z²)
        if replications < least:
            raise InputError(f"an error of {error:g} shows only in {least} replications or more; given {replications}")
        return None
    listed = [whole_budget(one) for one in ([budget] if budget is not None else budgets or ())]
    if not listed:
        raise InputError("budgets must list at least one budget")
    return sorted(listed) if budget is None else [*listed, 2 * listed[0]]


def _answer(runs: Simulation, given: int | None, searched: bool, about: dict[str, Any]) -> Plan:
    theorem = Theorem.of(runs.worlds, runs.seed)
    curve = [runs.row(cell) | {"bound": theorem.at(cell[1])} for cell in sorted(runs.wrong)]
    budget: dict[str, int | None] = {}
    reached: dict[str, dict[str, Any] | None] = {}
    double: dict[str, dict[str, Any] | None] = {}
    notes = []
    for name in runs.policies:
        mine = {row["budget"]: row for row in curve if row["policy"] == name}
        budget[name] = min((b for b in mine if runs.enough((name, b))), default=None)
        at = given or budget[name] or max(mine)
        reached[name], double[name] = mine[at], mine.get(2 * at)
        said = f"{name} is wrong in {mine[at]['error']:.0%} of simulated runs with {at:,} pulls"
        if searched and budget[name] is None:
            notes.append(f"{said}, the most tried; an error of {runs.error:g} needs more, or a larger gap")
        elif not searched and mine[at]["error"] > 0.5:
            notes.append(f"{said}: the budget is too small for this gap")
        noise = runs.worlds.noise.variance
        short = given and catalog.shortage(runs.policies[name], Problem(runs.worlds.features, given, noise))
        notes += [short] if short else []
    for note in notes:
        warnings.warn(note, BudgetWarning, stacklevel=3)
    return Plan(
        arms=len(runs.worlds.features),
        dimension=runs.worlds.dimension,
        error=runs.error,
        curve=tuple(curve),
        budget=budget,
        reached=reached,
        double=double,
        rounds={name: runs.rounds[name, row["budget"]] for name, row in reached.items() if row},
        bound=theorem.budget(runs.error),
        theorem=theorem.points(min(row["budget"] for row in curve), max(row["budget"] for row in curve), runs.error),
        given=given,
        warnings=tuple(notes),
        about=about,
    )


def _nothing_to_find(worlds: Worlds, policies: Iterable[str], error: float, about: dict[str, Any]) -> Plan:
    none: dict[str, dict[str, Any] | None] = dict.fromkeys(policies)
    return Plan(
        arms=len(worlds.features),
        dimension=worlds.dimension,
        error=error,
        curve=(),
        budget=dict.fromkeys(none, 0),
        reached=none,
        double=none,
        rounds=dict.fromkeys(none, Rounds(0)),
        bound=0,
        theorem=(),
        given=None,
        warnings=(),
        about=about,
    )
