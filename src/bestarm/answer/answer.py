"""The arm to choose, how sure that is, and what to be wary of: from all that was told, not the last stage alone."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bestarm.answer import wording
from bestarm.answer.checks import Finding, findings
from bestarm.answer.wording import number, percent
from bestarm.core import Goal, Tally
from bestarm.errors import InputError, LackOfFitWarning
from bestarm.linalg import Candidates
from bestarm.models.checks import FitCheck
from bestarm.models.many import ROUNDING, Believed
from bestarm.models.means import Means
from bestarm.rewards import Rewards

ROOM = 40_000_000  # draws times arms that are held at once
BEYOND = (ArithmeticError, np.linalg.LinAlgError, ValueError)  # what a model raises at numbers it cannot use


class ArmEstimate(NamedTuple):
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
class Answer:
    """The arm to choose, how sure that is, and what to be wary of.

    about            what the arm is: the columns to show beside its id, or else its features
    value            estimated mean of the arm by the model, fitted to everything told; a model of weighed hypotheses
                     shrinks by itself, so that `corrected` is the same
    corrected        the same corrected for selection: the posterior mean under a prior that shrinks. The winner of many
                     is partly lucky, which `value` does not know and this does
    interval         holds the arm's mean with probability 95 %, selection allowed for; its middle is near `corrected`
    p_best           probability that the arm is the best of those in the race
    chances          the same for every arm in the race, most likely first
    expected_regret  how far, on average, the arm is behind the best
    bound            the theorem's bound on the error, were the gap as estimated; None where there is no theorem
    policy_arm       what the policy recommends, once its run is over
    leader           the arm of largest `corrected` value. It is `arm`, unless the policy's run is over and the model
                     does not fit the data or is not the policy's own: then `arm` is the policy's; a warning says so
    pulls, told      how many results there are of the arm, and of all arms
    spent, budget    pulls, or money where arms have costs
    believes         the model in a line; of weighed hypotheses, which of them the results speak for
    warnings         what to be wary of, in sentences
    next             what another round would buy, where somebody has worked that out
    goal             what was looked for: the largest mean, or the smallest
    """

    arm: str
    value: float
    interval: tuple[float, float]
    p_best: float
    chances: dict[str, float] = field(repr=False)
    runner_up: str | None
    expected_regret: float
    corrected: float
    warnings: tuple[str, ...]
    believes: str
    pulls: int
    told: int
    policy_arm: str | None
    leader: str
    spent: float = 0.0
    budget: float = 0.0
    bound: float | None = None
    about: dict[str, Any] = field(default_factory=dict)
    next: Any = None
    goal: Goal = Goal()

    def row(self) -> dict[str, Any]:
        """Return the answer as one flat row."""
        bound = {} if self.bound is None else {"bound": self.bound}
        return {
            "arm": self.arm, **{key: cell for key, cell in self.about.items() if isinstance(cell, str)},
            "value": self.value, "low": self.interval[0], "high": self.interval[1], "corrected": self.corrected,
            "p_best": self.p_best, "runner_up": self.runner_up, "expected_regret": self.expected_regret,
            "spent": _money(self.spent), "budget": _money(self.budget), **bound, "believes": self.believes,
        }  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        plain = {key: list(value) if isinstance(value, tuple) else value for key, value in vars(self).items()}
        return {**self.row(), **plain, **self.goal.to_dict()}

    def __repr__(self) -> str:
        low, high = map(number, self.interval)
        second = f", runner-up {self.runner_up}" if self.runner_up is not None else ""
        wary = f", {len(self.warnings)} to be wary of" if self.warnings else ""
        chance = f"best with chance {percent(self.p_best)}"
        return f"Answer({self.arm}: {number(self.corrected)} [{low}, {high}], {chance}{second}{wary})"

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(key)}</th><td>{escape(cell)}</td></tr>"
            for key, cell in wording.facts(self.row()).items()
        )
        return f"<table>{rows}</table>" + "".join(f"<p>{escape(sentence)}</p>" for sentence in self.warnings)


def _money(spent: float) -> float | int:
    return int(spent) if float(spent).is_integer() else spent


@dataclass(frozen=True)
class Evidence:
    """What an answer rests on: the arms as the model sees them `(K, d)`, what is known, and what the policy says.

    `policy_arm` is its answer once its run is over; `by_model` says that it judges by the model, so that the model's
    view of all data may correct it; `bound` gives the theorem's bound at a gap; `about` says what an arm is; `notes`
    are sentences on the policy and the results.
    """

    ids: Sequence[str]
    features: Any
    present: Any  # (K,)
    known: Tally  # larger being better
    rewards: Rewards
    noise_variance: float | None = None
    policy_arm: int | None = None
    by_model: bool = True
    spent: float = 0.0
    budget: float = 0.0
    notes: tuple[str, ...] = ()
    bound: Callable[[float], float | None] = lambda gap: None
    about: Callable[[int], Mapping[str, Any]] = lambda arm: {}

    @property
    def told(self) -> int:
        """How many results there are."""
        return int(self.known.counts.sum())

    def believed(self, draws: int, rng: Any) -> Believed:
        """Return the posterior of the arms in the race."""
        draws = int(min(draws, max(500, ROOM // len(self.ids))))
        if draws < 1:
            raise InputError(f"at least one draw is needed; given {draws}")
        given = (self.features, self.known, self.noise_variance, draws, rng)
        try:
            with np.errstate(all="ignore"):
                everyone: Believed = self.rewards.model.posterior(*given)
            if not everyone.finite:
                raise ArithmeticError("the posterior is not finite")
        except BEYOND:  # results are kept, also those it cannot use
            everyone = Means().posterior(*given)
        return everyone.among(np.flatnonzero(self.present))


@dataclass(frozen=True)
class Assessment:
    """An answer with what it rests on: every arm in the race, most likely first, and the check of the model."""

    answer: Answer
    estimates: tuple[ArmEstimate, ...]
    fit: FitCheck
    findings: tuple[Finding, ...] = ()


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


def assess(evidence: Evidence, draws: int = 4000, rng: Any = None) -> Assessment:
    """Return the arm to choose and how sure that is, by `draws` draws from the posterior, and what it rests on."""
    with np.errstate(all="ignore"):
        if evidence.told:
            return _assess(evidence, draws, np.random.default_rng(rng))
        if np.sum(evidence.present) == 1:
            return _alone(evidence)
        raise InputError("there is no result yet, so there is nothing to recommend")


def _assess(evidence: Evidence, draws: int, rng: np.random.Generator) -> Assessment:
    model, policy = evidence.rewards.model, evidence.policy_arm
    belief = evidence.believed(draws, rng)
    present = np.flatnonzero(evidence.present)
    mean = belief.mean
    leader = int(np.argmax(mean))
    theirs = leader if policy is None else int(np.searchsorted(present, policy))
    estimates = _estimates(evidence, belief)
    fit = model.check(evidence.features, evidence.known, evidence.noise_variance)
    found = findings(model, evidence.ids, evidence.features, np.asarray(evidence.present), evidence.known, fit)
    doubted = any(finding.kind is LackOfFitWarning for finding in found) or not evidence.by_model
    chosen = theirs if doubted else leader
    differ = _difference(estimates, leader, theirs, belief, _why(model, doubted))
    ranked = sorted(range(len(present)), key=lambda i: (-estimates[i].chance, -mean[i]))
    best, others = estimates[chosen], [estimates[i] for i in ranked if i != chosen]
    answer = Answer(
        arm=best.arm,
        value=best.value,
        interval=(best.low, best.high),
        p_best=best.chance,
        chances={estimates[i].arm: estimates[i].chance for i in ranked},
        runner_up=others[0].arm if others else None,
        expected_regret=belief.behind(chosen),
        corrected=best.corrected,
        warnings=(*(finding.words for finding in found), *differ, *evidence.notes),
        believes=belief.words,
        pulls=best.pulls,
        told=evidence.told,
        policy_arm=None if policy is None else evidence.ids[policy],
        leader=estimates[leader].arm,
        spent=evidence.spent,
        budget=evidence.budget,
        bound=evidence.bound(abs(best.value - others[0].value)) if others else None,
        about=dict(evidence.about(int(present[chosen]))),
        goal=evidence.rewards.goal,
    )
    return Assessment(answer, tuple(estimates[i] for i in ranked), fit, tuple(found))


def _alone(evidence: Evidence) -> Assessment:
    """Return the only arm, which needs no result to be the best."""
    arm = int(np.flatnonzero(evidence.present)[0])
    one = ArmEstimate(evidence.ids[arm], 0, math.nan, math.nan, math.nan, math.nan, 1.0)
    answer = Answer(
        one.arm, math.nan, (math.nan, math.nan), 1.0, {one.arm: 1.0}, None, 0.0, math.nan, evidence.notes,
        "nothing to compare: there is one arm", 0, 0, None, one.arm, evidence.spent, evidence.budget,
        about=dict(evidence.about(arm)), goal=evidence.rewards.goal,
    )  # fmt: skip
    return Assessment(answer, (one,), FitCheck("nothing to check: there is one arm"))


def _estimates(evidence: Evidence, belief: Believed) -> list[ArmEstimate]:
    """Return the estimates of the arms in the race, in their own order, turned to the person's direction."""
    natural, present, model = evidence.rewards.natural, np.flatnonzero(evidence.present), evidence.rewards.model
    model = model if model.structured else Means()
    value = belief.fitted
    if value is None or not np.isfinite(value).all():
        value = fitted(model, evidence.features, evidence.known)[present]
    ends = natural(belief.ends)
    columns = (
        np.asarray(evidence.known.counts)[present],
        natural(value),
        natural(belief.mean),
        ends.min(axis=0),
        ends.max(axis=0),
        belief.chances,
    )
    rows = zip(present, *(column.tolist() for column in columns), strict=True)
    return [ArmEstimate(evidence.ids[arm], int(pulls), *rest) for arm, pulls, *rest in rows]


def _why(model: Any, doubted: bool) -> str:
    """Return the words for policy and data that differ."""
    if doubted:
        return (
            "The policy ended with {policy}, the model fitted to everything told with {data} ({odds} by that model). "
            "The model does not fit, or is not the policy's own, so the policy's answer stands."
        )
    return str(model.otherwise)


def _difference(
    estimates: list[ArmEstimate], leader: int, theirs: int, belief: Believed, words: str
) -> tuple[str, ...]:
    """Say that policy and data differ, unless the two arms are as good as equal."""
    ahead = float(belief.mean[leader] - belief.mean[theirs])
    if leader == theirs or ahead <= max(1e-9 * belief.scale, ROUNDING * abs(float(belief.mean[leader]))):
        return ()
    policy, data = estimates[theirs], estimates[leader]
    odds = f"their chances of being best are {percent(policy.chance)} and {percent(data.chance)}"
    return (words.format(policy=policy.arm, data=data.arm, odds=odds),)
