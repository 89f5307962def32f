"""What a study's answer rests on: its arms, what is known of them, and what its policy says."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bestarm.answer.answer import Answer, Assessment, Evidence, assess
from bestarm.core import Pulls, Tally, Totals, policy_of
from bestarm.errors import InputError
from bestarm.numbers import counted
from bestarm.structures.aside import ENOUGH, Groups
from bestarm.structures.odds import binary
from bestarm.study.corrections import label, outliers
from bestarm.study.driver import PolicyFailed
from bestarm.study.parts import absence
from bestarm.study.state import StudyState

if TYPE_CHECKING:
    from bestarm.study.study import Study


def answer(study: "Study", draws: int = 4000, rng: Any = None, warn: bool = False) -> Answer:
    """Return the arm to choose and how sure that is, by `draws` draws from the posterior.

    `rng` None takes the study's seed, so that the same log gives the same answer. With `warn` the findings are also
    given as Python warnings of their kind.
    """
    found = assessment(study, draws, rng)
    for finding in found.findings if warn else ():
        warnings.warn(finding.words, finding.kind, stacklevel=3)
    return replace(found.answer, chances=dict(found.answer.chances), about=dict(found.answer.about))


def assessment(study: "Study", draws: int = 4000, rng: Any = None) -> Assessment:
    """Return the answer together with the estimates of all arms and the check of the model.

    By the study's seed it is computed once, until the log has grown.
    """
    with study.log.lock:
        state = study.sync()
        if not state.total and len(state.in_race) > 1:
            raise InputError(f"study {state.name!r} has no result yet, so there is nothing to recommend")
        if rng is not None:
            return assess(_complete(study), draws, rng)
        found: Assessment = study.log.kept(("assessment", draws), lambda: _assessed(study, draws))
        return found


def _assessed(study: "Study", draws: int) -> Assessment:
    evidence = _complete(study)
    return assess(evidence, draws, [study.state.seed, evidence.told])


def evidence_of(state: StudyState, also: int | None = None) -> Evidence:
    """Return what the results alone say: of a long table, of the arms measured and `also` one more."""
    some = None if state.rows is None else sorted({*state.measured, *(() if also is None else (also,))})
    groups = told_groups(state, some)
    ids = state.ids if some is None else state.ids.of(some)
    present = np.array(state.present) if some is None else np.ones(len(some), dtype=bool)
    return Evidence(
        ids, features_of(state, some), present, known_of(state, some, groups), state.rewards, state.noise_variance,
        policy_arm=also if also is None or some is None else some.index(also), spent=state.used, budget=state.budget,
        about=lambda arm: about(state, arm if some is None else some[arm]),
    )  # fmt: skip


def told_groups(state: StudyState, some: Sequence[int] | None = None) -> Groups | None:
    """Return what was told, result by result, some of it set aside; None where nothing is.

    Arms are numbered among `some`. Only a model that wants results to be confirmed sets any aside.
    """
    told = [one for one in state.told if not one.excluded] if state.rewards.model.confirmed else []
    arms = len(state.ids) if some is None else len(some)
    if len(told) < ENOUGH[0] or arms < ENOUGH[1]:
        return None
    place = {arm: number for number, arm in enumerate(some)} if some is not None else None
    pulled = np.array([one.arm if place is None else place[one.arm] for one in told])
    times, sums, squares, scatter = np.array([(one.count, one.sum, one.squares, one.scatter) for one in told]).T
    groups = Groups.none(()).plus(Pulls(pulled, times), Totals(sums, squares, scatter))
    groups = groups.judged(arms, np.asarray(not binary(state.known(some))[0]))
    return groups if groups.aside.any() else None


def known_of(state: StudyState, some: Sequence[int] | None, groups: Groups | None) -> Tally:
    """Return what is known by arm, without what is set aside."""
    if groups is None:
        return state.known(some)
    return state.rewards.turned(groups.kept(len(state.ids) if some is None else len(some)))


def features_of(state: StudyState, arms: Sequence[int] | None = None) -> Any:
    """Return the features the study's model sees `(m, d)`, of all arms there ever were or of some."""
    features = state.features_of(arms)
    return policy_of(state.policy).sees(features)


def about(state: StudyState, arm: int) -> dict[str, Any]:
    """Return what an arm is: the columns to show beside its id, or else its features."""
    kept = state.first["arms"]
    cells = {name: kept["table"][name] for name in kept.get("labels", ())}
    if cells and arm < len(kept["ids"]):
        return {name: str(column[arm]) for name, column in cells.items()}
    return dict(zip(state.names, state.features_of([arm])[0].tolist(), strict=False))


def _complete(study: "Study") -> Evidence:
    """Return what the results say and what the policy says, and what went wrong."""
    state = study.state
    arm, missing = _policy_arm(study, state)
    found = evidence_of(state, arm)
    by_model = state.rows is None and policy_of(state.policy).model == state.rewards.model
    notes = (*missing, *_lacking(state), *_troubles(state), *_among(state, found))
    return replace(found, by_model=by_model, notes=notes, bound=lambda gap: bound(study, state, found, gap))


def _lacking(state: StudyState) -> tuple[str, ...]:
    """Say that the policy's parts are not here, so that a model of ours stands in for its own."""
    why = absence(state.policy)
    return () if why is None else (f"The policy of this study is not here, so another model answers: {why}.",)


def _among(state: StudyState, found: Evidence) -> tuple[str, ...]:
    """Say that of a long table only some arms are compared."""
    if state.rows is None:
        return ()
    return (f"Chances are among the {counted(len(found.ids), 'arm', ',')} measured, of {state.rows.rows:,}.",)


def bound(study: "Study", state: StudyState, found: Evidence, gap: float) -> float | None:
    """Return the theorem's bound on the error of an elimination that is over, None where there is no theorem."""
    if not state.over:
        return None
    eta, noise, arms = study.driver.described(state).eta, _noise(found), len(state.in_race)
    features = np.asarray(found.features)[found.present]
    dimension = int(np.linalg.matrix_rank(features)) if features.size else 0
    known = gap > 0 and np.isfinite(gap) and noise is not None and noise > 0 and state.budget >= 1
    if eta is None or noise is None or not known or dimension < 1 or arms < 2:
        return None
    from bestarm import bounds

    return float(bounds.gse(arms, dimension, int(state.budget), gap, noise, min(eta, arms)))


def _noise(found: Evidence) -> float | None:
    """Return the noise variance: as told, or from the scatter of repeats of the same arm."""
    if found.noise_variance is not None:
        return found.noise_variance
    known = found.known
    freedom = float(np.sum(np.maximum(known.counts - 1, 0)))
    return float(known.within.sum()) / freedom if freedom > 0 else None


def _policy_arm(study: "Study", state: StudyState) -> tuple[int | None, tuple[str, ...]]:
    """Return the policy's own answer among all arms, if its run is over, and why it has none where it failed."""
    if not state.over:
        return None, ()
    try:
        arm = study.driver.recommended(state)
    except (PolicyFailed, InputError) as error:
        return None, (f"The policy has no answer of its own ({error}), so this is what all results speak for.",)
    return (arm if arm is not None and state.present[arm] else None), ()


def _troubles(state: StudyState) -> tuple[str, ...]:
    """Return what went wrong with the policy, and what to look at among the results, in sentences."""
    said = []
    if state.troubles:
        went = "arms were spread evenly from then on" if state.evenly else "it was started anew on what was known"
        said.append(f"The policy failed {times(len(state.troubles))} and {went}; the last time: {state.troubles[-1]}.")
    far = outliers(state)
    if far:
        names = ", ".join(label(one.name) for one in far[:3]) + (f" and {len(far) - 3} more" if len(far) > 3 else "")
        said.append(f"Far from all other values, so perhaps typing errors: {names}; amend or exclude puts them right.")
    said.extend(_waiting(state))
    return tuple(said)


def _waiting(state: StudyState) -> tuple[str, ...]:
    """Say how many results the answer does not rest on, since they lie so far from all others."""
    groups = told_groups(state)
    if groups is None:
        return ()
    count = int(groups.aside.sum())
    ids = ", ".join(dict.fromkeys(state.ids[arm] for arm in groups.arms[groups.aside][:3]))
    more = " and others" if count > 3 else ""
    return (
        f"Set aside: {counted(count, 'result')} of {ids}{more}, far from all others, until another of the arm agrees.",
    )


def times(n: int) -> str:
    """Return how often something happened."""
    return "once" if n == 1 else f"{n} times"
