"""The arm to choose, how sure that is, and what to be wary of: from all that was told, not the last stage alone."""

import math
import warnings as python_warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bestarm.core import Tally
from bestarm.errors import InputError, LackOfFitWarning
from bestarm.linalg import Candidates
from bestarm.models.glm import GLM, Identity, Logistic, Poisson
from bestarm.models.linear import Linear
from bestarm.models.means import Means
from bestarm.models.weighed import Weighed
from bestarm.study.checks import Finding, FitCheck, check_fit, findings
from bestarm.study.corrections import label, outliers
from bestarm.study.driver import PolicyFailed
from bestarm.study.posterior import Posterior, deviation, posterior
from bestarm.study.state import StudyState

if TYPE_CHECKING:
    from bestarm.study.study import Study

ROOM = 40_000_000  # draws times arms that are held at once
BEYOND = (ArithmeticError, np.linalg.LinAlgError, ValueError)  # what a model raises at numbers it cannot use


@dataclass(frozen=True)
class ArmEstimate:
    """One arm in the units of the rewards: what the model makes of all data, what is left after shrinking, its chance.

    `low` and `high` bound the mean with probability 95 %, also for an arm that was picked because it looked best.
    """

    arm: str
    pulls: int
    value: float
    corrected: float
    low: float
    high: float
    chance: float


@dataclass(frozen=True)
class Recommendation:
    """The answer of a study.

    value            estimated mean of the arm by the study's model, fitted to everything told; a model of weighed
                     hypotheses shrinks by itself, so that `corrected` is the same
    corrected        the same corrected for selection: the posterior mean under a prior that shrinks. The winner of many
                     is partly lucky, which `value` does not know and this does
    interval         holds the arm's mean with probability 95 %, selection allowed for; its middle is near `corrected`
    p_best           probability that the arm is the best of those in the race
    chances          the same for every arm in the race, most likely first
    expected_regret  how far, on average, the arm is behind the best
    policy_arm       what the policy recommends, once its run is over
    leader           the arm of largest `corrected` value. It is `arm`, unless the policy's run is over and the model
                     does not fit the data or is not the policy's own: then `arm` is the policy's; a warning says so
    pulls, told      how many results there are of the arm, and of all arms
    believes         the model in a line; of weighed hypotheses, which of them the results speak for
    warnings         what to be wary of, in sentences
    """

    arm: str
    value: float
    interval: tuple[float, float]
    p_best: float
    chances: dict[str, float]
    runner_up: str | None
    expected_regret: float
    corrected: float
    warnings: tuple[str, ...]
    believes: str
    pulls: int
    told: int
    policy_arm: str | None
    leader: str


@dataclass(frozen=True)
class Assessment:
    """A recommendation with what it rests on: every arm in the race, most likely first, and the check of the model."""

    recommendation: Recommendation
    estimates: tuple[ArmEstimate, ...]
    fit: FitCheck


def recommend(study: "Study", draws: int = 4000, rng: Any = None, warn: bool = False) -> Recommendation:
    """Return the arm to choose and how sure that is, by `draws` draws from the posterior.

    `rng` None takes the study's seed, so that the same log gives the same answer. With `warn` the findings are also
    given as Python warnings of their kind.
    """
    with np.errstate(all="ignore"):
        assessment, found = _assess(study, draws, rng)
    if warn:
        for finding in found:
            python_warnings.warn(finding.words, finding.kind, stacklevel=2)
    return assessment.recommendation


def assess(study: "Study", draws: int = 4000, rng: Any = None) -> Assessment:
    """Return the recommendation together with the estimates of all arms and the check of the model."""
    with np.errstate(all="ignore"):
        return _assess(study, draws, rng)[0]


def features_of(state: StudyState) -> Any:
    """Return the features the study's model sees `(K, d)`, of all arms there ever were."""
    features = np.array(state.features, dtype=np.float64).reshape(len(state.ids), -1)
    embedding = getattr(state.policy, "embedding", None)
    return features if embedding is None else embedding.embed(features)


def believed(state: StudyState, features: Any, known: Tally, draws: int, rng: Any) -> Posterior:
    """Return the posterior of the arms in the race from the data `known`."""
    draws = int(min(draws, max(500, ROOM // len(state.ids))))
    if draws < 1:
        raise InputError(f"at least one draw is needed; given {draws}")
    given = (features, known, state.noise_variance, draws, rng)
    try:
        with np.errstate(all="ignore"):
            everyone = posterior(state.rewards.model, *given)
        if not np.isfinite(everyone.draws).all():
            raise ArithmeticError("the posterior is not finite")
    except BEYOND:  # results are kept, also those it cannot use
        everyone = posterior(Means(), *given)
    return everyone.among(np.flatnonzero(state.present))


def fitted(model: Any, features: Any, known: Tally) -> Any:
    """Return the means the model fits to the data, each arm's own where it cannot use them."""
    candidates = Candidates.of(features)
    try:
        mean = model.fit(candidates, known).mean
        if np.isfinite(mean).all():
            return mean
    except BEYOND:
        pass
    return Means().fit(candidates, known).mean


def _assess(study: "Study", draws: int, rng: Any) -> tuple[Assessment, list[Finding]]:
    state = study.sync()
    known, features, rewards = state.known(), features_of(state), state.rewards
    told = int(known.counts.sum())
    if told == 0:
        raise InputError(f"study {state.name!r} has no result yet, so there is nothing to recommend")
    rng = np.random.default_rng([state.seed, told]) if rng is None else np.random.default_rng(rng)
    belief = believed(state, features, known, draws, rng)
    present = np.flatnonzero(state.present)
    leader = int(np.argmax(belief.mean))
    policy, missing = _policy_arm(study, state)
    theirs = leader if policy is None else int(np.searchsorted(present, policy))
    estimates = _estimates(state, features, known, belief)
    fit = check_fit(rewards.model, features, known, state.noise_variance)
    found = findings(rewards.model, state.ids, features, np.array(state.present), known, fit)
    doubted = any(finding.kind is LackOfFitWarning for finding in found) or not _judges_by_model(state)
    chosen = theirs if doubted else leader
    differ = _difference(estimates, leader, theirs, belief, _why(rewards.model, doubted))
    sentences = (*(finding.words for finding in found), *differ, *missing, *_troubles(state))
    ranked = sorted(range(len(present)), key=lambda i: (-estimates[i].chance, -belief.mean[i]))
    best = estimates[chosen]
    others = [i for i in ranked if i != chosen]
    recommendation = Recommendation(
        arm=best.arm,
        value=best.value,
        interval=(best.low, best.high),
        p_best=best.chance,
        chances={estimates[i].arm: estimates[i].chance for i in ranked},
        runner_up=estimates[others[0]].arm if others else None,
        expected_regret=float(np.mean(belief.draws.max(axis=1) - belief.draws[:, chosen])),
        corrected=best.corrected,
        warnings=sentences,
        believes=belief.believes,
        pulls=best.pulls,
        told=told,
        policy_arm=None if policy is None else state.ids[policy],
        leader=estimates[leader].arm,
    )
    return Assessment(recommendation, tuple(estimates[i] for i in ranked), fit), found


def _judges_by_model(state: StudyState) -> bool:
    """Return whether the policy rests on the study's model, so that the model's view of all data may correct it."""
    return bool(getattr(getattr(state.policy, "policy", state.policy), "model", None) == state.rewards.model)


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


def _estimates(state: StudyState, features: Any, known: Tally, belief: Posterior) -> list[ArmEstimate]:
    """Return the estimates of the arms in the race, in their own order, turned to the person's direction."""
    natural, present = state.rewards.natural, np.flatnonzero(state.present)
    model = state.rewards.model
    structured = isinstance(model, Linear | Weighed) or (isinstance(model, GLM) and _understood(model.link))
    model = model if structured else Means()
    value = fitted(model, features, known)[present]
    ends = natural(np.quantile(belief.draws, (0.025, 0.975), axis=0))
    columns = (
        np.array(state.counts)[present],
        natural(value),
        natural(belief.mean),
        ends.min(axis=0),
        ends.max(axis=0),
        belief.chances,
    )
    rows = zip(present, *(column.tolist() for column in columns), strict=True)
    return [ArmEstimate(state.ids[arm], int(pulls), *rest) for arm, pulls, *rest in rows]


def _understood(link: Any) -> bool:
    return isinstance(link, Identity | Logistic | Poisson)


def _why(model: Any, doubted: bool) -> str:
    """Return the words for policy and data that differ."""
    if doubted:
        return (
            "The policy ended with {policy}, the model fitted to everything told with {data} ({odds} by that model). "
            "The model does not fit, or is not the policy's own, so the policy's answer stands."
        )
    if isinstance(model, Weighed):
        return (
            "The policy ended with {policy}, the arm no single other one is likely to beat; of everything told, "
            "{data} has the largest expected mean: {odds}."
        )
    return (
        "The policy, which judges a stage by its own data, ended with {policy}; everything told speaks for {data}: "
        "{odds}."
    )


def _difference(
    estimates: list[ArmEstimate], leader: int, theirs: int, belief: Posterior, words: str
) -> tuple[str, ...]:
    """Say that policy and data differ, unless the two arms are as good as equal."""
    ahead = float(belief.mean[leader] - belief.mean[theirs])
    if leader == theirs or ahead <= 1e-9 * max(deviation(belief.draws), abs(float(belief.mean[leader]))):
        return ()
    policy, data = estimates[theirs], estimates[leader]
    odds = f"their chances of being best are {percent(policy.chance)} and {percent(data.chance)}"
    return (words.format(policy=policy.arm, data=data.arm, odds=odds),)


def percent(chance: float) -> str:
    """Return a probability as people read it; a thousand draws do not make it certain.

    >>> percent(0.8349), percent(0.9996), percent(0.0002)
    ('83 %', 'over 99.9 %', 'under 0.1 %')
    """
    if math.isnan(chance):
        return "unknown"
    if chance > 0.999:
        return "over 99.9 %"
    if chance < 0.001:
        return "under 0.1 %"
    digits = 1 if chance > 0.99 or chance < 0.01 else 0
    return f"{100 * chance:.{digits}f} %"
