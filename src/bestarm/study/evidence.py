"""What a study's answer rests on: its arms, what is known of them, and what its policy says."""

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bestarm import bounds
from bestarm.answer.answer import Answer, Assessment, Evidence, assess
from bestarm.core import Tally
from bestarm.errors import InputError
from bestarm.study.corrections import label, outliers
from bestarm.study.driver import PolicyFailed
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
    return found.answer


def assessment(study: "Study", draws: int = 4000, rng: Any = None) -> Assessment:
    """Return the answer together with the estimates of all arms and the check of the model."""
    state = study.sync()
    evidence = _complete(study, evidence_of(state))
    if not evidence.told and sum(state.present) > 1:
        raise InputError(f"study {state.name!r} has no result yet, so there is nothing to recommend")
    return assess(evidence, draws, [state.seed, evidence.told] if rng is None else rng)


def evidence_of(state: StudyState) -> Evidence:
    """Return what the results alone say."""
    return Evidence(
        state.ids, features_of(state), np.array(state.present), state.known(), state.rewards, state.noise_variance,
        spent=state.used, budget=state.budget, about=lambda arm: about(state, arm),
    )  # fmt: skip


def features_of(state: StudyState) -> Any:
    """Return the features the study's model sees `(K, d)`, of all arms there ever were."""
    features = np.array(state.features, dtype=np.float64).reshape(len(state.ids), -1)
    embedding = getattr(state.policy, "embedding", None)
    return features if embedding is None else embedding.embed(features)


def about(state: StudyState, arm: int) -> dict[str, Any]:
    """Return what an arm is: the columns to show beside its id, or else its features."""
    kept = state.first["arms"]
    cells = {name: kept["table"][name] for name in kept.get("labels", ())}
    if cells and arm < len(kept["ids"]):
        return {name: str(column[arm]) for name, column in cells.items()}
    return dict(zip(state.names, map(float, state.features[arm]), strict=False))


def _complete(study: "Study", results: Evidence) -> Evidence:
    """Add what the policy says, and what went wrong."""
    state = study.state
    arm, missing = _policy_arm(study, state)
    by_model = bool(getattr(getattr(state.policy, "policy", state.policy), "model", None) == state.rewards.model)
    notes = (*missing, *_troubles(state))
    return replace(results, policy_arm=arm, by_model=by_model, notes=notes, bound=lambda gap: bound(state, gap))


def bound(state: StudyState, gap: float) -> float | None:
    """Return the theorem's bound on the error of an elimination at a gap, None where there is no theorem."""
    inner = getattr(state.policy, "policy", state.policy)
    eta, noise, arms = getattr(inner, "eta", None), _noise(state), len(state.in_race)
    features = features_of(state)[np.array(state.present)]
    dimension = int(np.linalg.matrix_rank(features)) if features.size else 0
    if eta is None or not gap or not np.isfinite(gap) or not noise or dimension < 1 or arms < 2:
        return None
    return float(bounds.gse(arms, dimension, int(state.budget), gap, noise, min(eta, arms)))


def _noise(state: StudyState) -> float | None:
    """Return the noise variance: as told, or from the scatter of repeats of the same arm."""
    if state.noise_variance is not None:
        return state.noise_variance
    known: Tally = state.known()
    counts = np.maximum(known.counts, 1)
    freedom = float(np.sum(counts - 1))
    scatter = float(np.sum(known.squares - known.sums**2 / counts))
    return scatter / freedom if freedom > 0 else None


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
    return tuple(said)


def times(n: int) -> str:
    """Return how often something happened."""
    return "once" if n == 1 else f"{n} times"
