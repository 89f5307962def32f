"""From a policy's request to a plan that the log can keep and the budget can pay."""

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from math import ceil
from typing import Any

import numpy as np

from bestarm.core import Pulls, policy_of
from bestarm.errors import InputError
from bestarm.policies.batched import Batched
from bestarm.study.limits import LARGEST
from bestarm.study.rounds import turns
from bestarm.study.state import CENT, StudyState
from bestarm.study.storage import Record

Plan = list[list[int]]  # arms among all there ever were, and times


def affordable(study: StudyState) -> int:
    """Return the pulls that what is left pays for, at the mean price of the arms in the race."""
    mean = 1.0 if study.cost is None else float(np.mean([study.cost[arm] for arm in study.in_race]))
    return int((study.budget - study.used) / mean + CENT)


def size_of(study: StudyState, asked: int | None = None) -> int:
    """Return how many pulls are planned together: the study's batch, else as many as are made at a time."""
    batch: int | None = study.options["batch"]
    return batch or max(asked or 1, sum(study.runners.values()))


def begin_of(study: StudyState, pulls: int, evenly: bool = False, budget: float | None = None) -> dict[str, Any]:
    """Return how the policy is started, for the log."""
    begun = {"pulls": pulls, "begun": study.rounds, "budget": study.budget if budget is None else budget}
    return begun | {"evenly": True} if evenly else begun


def planner(study: StudyState, begin: Record, size: int) -> Any:
    """Return the policy as it plans `size` pulls together, or in the rounds that are left."""
    if study.rows is not None:  # it goes by stages
        return study.policy
    rounds, begun, policy = study.options["rounds"], int(begin["begun"]), policy_of(study.policy)
    if rounds is None:
        planned = policy.in_batches(size, int(begin["pulls"]), bool(study.options["batch"]))
    else:
        planned = policy.in_rounds(rounds - begun if begun < rounds else rounds)
    return Batched(study.policy, max(1, size - len(study.repeats))) if planned is None else planned


def asked_of(pulls: Pulls, arms: Sequence[int]) -> Plan:
    """Return a policy's request as a plan; `arms` are those it plays with."""
    places, times = np.asarray(pulls.arms), np.asarray(pulls.times)
    whole = places.shape == times.shape and places.ndim == 1 and (not places.size or places.dtype.kind in "iu")
    if not whole or (places.size and not (0 <= places.min() <= places.max() < len(arms))):
        raise InputError(f"pulls of {len(arms)} arms are expected; it asked for {np.ravel(places).tolist()[:5]}")
    if times.size and not (times.dtype.kind in "iuf" and np.all((times >= 0) & (times == np.floor(times)))):
        raise InputError(f"whole numbers of pulls are expected; it asked for {times.tolist()[:5]}")
    if times.size and not float(times.sum()) <= LARGEST:
        raise InputError(f"at most {LARGEST:,} pulls can be planned; it asked for {times.sum():g}")
    return [[arms[place], int(n)] for place, n in zip(places.tolist(), times.tolist(), strict=True) if n]


def evenly(study: StudyState) -> Plan | None:
    """Return a plan of all that is left: every arm as often as the others, the least measured first."""
    arms = sorted(study.in_race, key=lambda arm: study.counts[arm])
    times = int(study.left / sum(study.price(arm) for arm in arms))
    return paid(study, [[arm, min(times + 1, LARGEST // len(arms))] for arm in arms]) or None


def paid(study: StudyState, pairs: Sequence[Sequence[int]]) -> Plan:
    """Return as much of a plan, in the order of handing out, as what is left of the budget pays for."""
    left = study.left
    if sum(times * study.price(arm) for arm, times in pairs) <= left:
        return [list(pair) for pair in pairs]
    kept = [[arm, 0] for arm, _ in pairs]
    for place in turns(pairs):
        left -= study.price(pairs[place][0])
        if left < 0:
            break
        kept[place][1] += 1
    return [pair for pair in kept if pair[1]]


def question(study: StudyState, plan: Plan | None, begin: Record | None) -> Record:
    """Return the record of a question without its trials: what is asked again first, then what the policy asked."""
    repeats = paid(study, [[arm, 1] for arm in study.repeats if study.present[arm]])
    if repeats and plan:
        plan = _fitting(study, repeats, plan)
    whole = repeats + (plan or [])
    if not whole:
        return {"kind": "end", "round": study.rounds}
    if begin is None and study.epoch is None:
        begin = begin_of(study, max(1, affordable(study)))
    return {"kind": "ask", "round": study.rounds, "plan": whole} | ({} if begin is None else {"begin": begin})


def _fitting(study: StudyState, repeats: Plan, plan: Plan) -> Plan:
    """Return as much of a plan as is paid for beside what is asked again, and fits on the plates that it would fill.

    Policies that are not flexible are told the size before (`planner`).
    """
    batch = study.options["batch"]
    if batch and policy_of(study.policy).flexible:
        plates = ceil(sum(times for _, times in plan) / batch)
        plan = _first(plan, plates * batch - len(repeats))
    return paid(study, [*repeats, *plan])[len(repeats) :]


def _first(pairs: Plan, pulls: int) -> Plan:
    """Return the first so many pulls of a plan, in the order of handing out."""
    kept = Counter(islice(turns(pairs), max(pulls, 0)))
    return [[arm, kept[place]] for place, (arm, _) in enumerate(pairs) if kept[place]]
