"""Results as people give them, checked and made into what the log keeps. Nothing here writes."""

import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from bestarm.core import Tally
from bestarm.errors import InputError, RewardError
from bestarm.numbers import LARGEST_VALUE, counted, real, whole
from bestarm.study.limits import LARGEST, totals_of
from bestarm.study.naming import arm_index, locate
from bestarm.study.rounds import as_ranges, ranges
from bestarm.study.state import StudyState
from bestarm.study.storage import Record
from bestarm.study.trials import WRITTEN, Batch, Trial, id_of

Told: TypeAlias = Batch | Trial | str | Mapping[str, Any] | None
TOLD = (Batch, Trial, str, Mapping)  # anything else is a table
NEAR = 1e-12  # relative difference of sums that are the same but for rounding


@dataclass(frozen=True)
class Difference:
    """A result that contradicts the log."""

    name: int | str  # of the trial, or an extra's id
    arm: str
    old: float | str | None  # None: not in the log; a text says what several rewards come to
    new: float | str | None  # None: failed, or not there any more

    def __str__(self) -> str:
        trial = f"trial {id_of(self.name)}" if isinstance(self.name, int) else f"result {self.name!r}"
        there = "is not in the log" if self.old is None else f"is {self.old} in the log"
        given = "no value is given" if self.new is None else f"given {self.new}"
        return f"{trial} of arm {self.arm!r} {there}; {given}"


def gather(
    state: StudyState, what: Told, values: Any, summary: Record, arm: str | None, id: str | None
) -> Sequence[Record]:
    """Return the results of one `tell`, blanks left out."""
    known = {key: value for key, value in summary.items() if value is not None}
    if arm is not None:
        if what is not None or (known and values is not None):
            raise InputError("tell either an arm's extra values or the results of trials, not both at once")
        if not known:
            return extras(state, arm, values, id)
        name = f"extra-{uuid.uuid4().hex}" if id is None else own_id(id)
        return [{"id": name, "arm": _extra_arm(state, arm, asked=id is None), **together(state, known, f"arm {arm!r}")}]
    if id is not None:
        raise InputError("an id names an extra result: give its arm too; a trial has its id already")
    if known.keys() - {"successes"}:
        if not isinstance(what, Trial | str) or values is not None:
            raise InputError("n, mean and sd are of one trial, or of an arm's extra rewards: name it, arm=")
        number = locate(state, what)
        said = together(state, known, f"trial {id_of(number)}")
        return [{"trial": number, "arm": state.arm_of(number), **said}]
    successes = known.get("successes")
    if successes is not None:
        if not isinstance(what, Batch) or values is not None:
            raise InputError("successes are told of a batch: tell(batch, successes=counts)")
        return by_arm(state, what, successes)
    return [single(state, trial, value) for trial, value in _pairs(what, values) if measured(value)]


def single(state: StudyState, trial: Trial | str | int, value: Any) -> Record:
    """Return the result of one trial."""
    number = locate(state, trial)
    return {"trial": number, "arm": state.arm_of(number), "value": usable(state, value, f"trial {id_of(number)}")}


def by_arm(state: StudyState, batch: Batch, successes: Any) -> list[Record]:
    """Return 0/1 results given as numbers of successes, in the order of `batch.arms` or by arm."""
    if isinstance(successes, Mapping):
        for arm in successes:
            if arm not in batch.counts:
                raise InputError(f"arm {arm!r} is not in this batch")
        successes = [successes.get(arm) for arm in batch.arms]
    if len(successes) != len(batch.arms):
        raise InputError(f"{len(batch.arms)} success counts expected, one for each arm; {len(successes)} given")
    usable(state, 1.0, "successes")
    mine: dict[str, list[int]] = {}
    for trial in batch:
        mine.setdefault(trial.arm, []).append(locate(state, trial))
    given = zip(batch.arms, successes, strict=True)
    return [_sum(state, arm, mine[arm], won) for arm, won in given if measured(won)]


def _sum(state: StudyState, arm: str, trials: list[int], won: Any) -> Record:
    count, times = _number(won, f"arm {arm!r}"), len(set(trials))
    if not 0 <= count <= times or count != int(count):
        raise InputError(f"arm {arm!r}: a whole number from 0 to {times} is expected; given {won!r}")
    if len({state.trial_rounds[trial] for trial in trials}) > 1:
        raise InputError(f"arm {arm!r}: its trials are of several rounds; tell the successes of each round apart")
    where = state.arm_of(trials[0])
    if times == 1:
        return {"trial": trials[0], "arm": where, "value": count}
    told = [trial for trial in trials if trial in state.results]
    if told and len(told) < times:
        raise InputError(
            f"arm {arm!r}: {len(told)} of these {times} trials are told already, such as {id_of(told[0])}; "
            "tell the others one by one"
        )
    return {"trials": as_ranges(trials), "arm": where, "n": times, "successes": int(count)}


def extras(state: StudyState, arm: str, values: Any, id: str | None = None, asked: bool = False) -> list[Record]:
    """Return observations nobody asked for: one value or several, of one arm."""
    where, place = _extra_arm(state, arm, asked), f"arm {arm!r}"
    given = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]
    if id is not None:
        own_id(id)
        if len(given) != 1:
            raise InputError(f"an id names one result; {counted(len(given), 'value')} given")
    before = state.results.get(id or "")
    if before is not None and before.arm != where:
        raise InputError(
            f"result {id!r} is of arm {state.ids[before.arm]!r} in the log; given {arm!r}: exclude that one, and give "
            "this one another id"
        )
    return [
        {"id": id or f"extra-{uuid.uuid4().hex}", "arm": where, "value": usable(state, value, place)}
        for value in given
        if measured(value)
    ]


def together(state: StudyState, known: Record, place: str) -> Record:
    """Return what is said of `n` rewards at once: their successes, or mean and sd."""
    if ("successes" in known) == ("mean" in known) or "n" not in known:
        raise InputError(f"{place}: either successes and n are expected, or mean, sd and n; given {', '.join(known)}")
    n = whole(known["n"], f"{place}: n", least=1, most=LARGEST)
    if "successes" in known:
        said: Record = {"n": n, "successes": whole(known["successes"], f"{place}: successes", least=0, most=n)}
    else:
        if "sd" not in known and n > 1 and not state.rewards.law.counts_suffice:
            raise InputError(f"{place}: sd is needed, the standard deviation of the {n} rewards about their mean")
        sd = real(known.get("sd", 0.0), f"{place}: sd", least=0, most=LARGEST_VALUE)
        said = {"n": n, "mean": _number(known["mean"], f"{place}: mean"), "sd": sd if n > 1 else None}
    try:
        state.rewards.law.check(Tally(*np.array(totals_of(said))))
    except RewardError as error:
        raise RewardError(f"{place}: {error}") from None
    return said


def _extra_arm(state: StudyState, arm: str, asked: bool = False) -> int:
    if not asked and not state.options["extra"]:
        raise InputError(f"arm {arm!r} was not asked for, and this study takes no extra results")
    return arm_index(state, arm)


def own_id(id: Any) -> str:
    """Return the id of an extra result, or refuse one that looks like a trial's."""
    if not isinstance(id, str):
        raise InputError(f"the id of a result is a text; given {id!r}")
    if not id or id[0].isdigit() or WRITTEN.match(id):
        raise InputError(f"the id of an extra result must not look like a trial's, T0010 or 10; given {id!r}")
    return id


def naming(trials: Sequence[int]) -> Record:
    """Return how a result names the trials it is of, the inverse of `trials_of`."""
    return {"trial": trials[0]} if len(trials) == 1 else {"trials": as_ranges(trials)}


def trials_of(one: Record) -> list[int]:
    """Return the trials a result is of; none for an extra."""
    return [one["trial"]] if "trial" in one else ranges(one["trials"]) if "trials" in one else []


def names_of(one: Record) -> list[Any]:
    """Return the names of the observations a result is made of."""
    return trials_of(one) or [one["id"]]


def unseen(state: StudyState, results: Iterable[Record]) -> list[Record]:
    """Return the results that are new, each observation once."""
    new: list[Record] = []
    names: set[int | str] = set()
    for result in results:
        mine = names_of(result)
        if not any(name in state.results or name in names for name in mine):
            names.update(mine)
            new.append(result)
    return new


def telling(state: StudyState, results: Iterable[Record]) -> list[Record]:
    """Return the record that tells what is new of some results."""
    new = priced(state, unseen(state, results))
    return [{"kind": "tell", "results": new}] if new else []


def failing(
    state: StudyState, failures: Iterable[tuple[Trial | str | int, str]], refund: bool | None = None
) -> list[Record]:
    """Return the records of trials that could not be made, and why, but for those of which something is known."""
    gone, found = (state.results, state.failed, state.handed_back), list[Record]()
    back = state.options["refund"] if refund is None else bool(refund)
    for trial, reason in failures:
        number = locate(state, trial)
        one = {"kind": "fail", "trial": number, "arm": state.arm_of(number), "reason": str(reason), "refund": back}
        found += [one] if not any(number in some for some in gone) else []
    return found


def priced(state: StudyState, new: Iterable[Record]) -> list[Record]:
    """Return new results; those of trials whose price came back take it again, if what is left pays for it."""
    left, found = state.left, list[Record]()
    for one in new:
        trials = trials_of(one) if state.refunded else []
        price = sum(state.price(one["arm"]) for trial in trials if trial in state.refunded)
        if 0 < price <= left:
            left -= price
            one = {**one, "cost": len(trials) * state.price(one["arm"])}
        found.append(one)
    return found


def alone(records: Iterable[Record]) -> bool:
    """Return whether records hold only for the state they were made for.

    Results of single trials hold in any: the first that is told counts. A sum cannot be taken apart, nor can a file
    that says only which arms its results are of; which trials answer for an arm depends on those that are out; and what
    takes a price rests on what is left of the budget.
    """
    return not all(
        record["kind"] == "fail"
        or (
            record["kind"] == "tell"
            and "file" not in record
            and not any({"trials", "cost", "beyond"} & {*one} for one in record["results"])
        )
        for record in records
    )


def added(state: StudyState, records: Iterable[Record], number: int) -> int:
    """Return how many observations were new with records that were written from `number` on."""
    told = [(i, record) for i, record in enumerate(records, number) if record["kind"] == "tell"]
    new = (state.results[names_of(one)[0]] for _, record in told for one in record["results"])
    numbers = {i for i, _ in told}
    return sum(int(result.count) for result in new if result.record in numbers)


def contradictions(state: StudyState, results: Iterable[Record], correct: bool = False) -> list[Record]:
    """Return the record that puts right what results contradict; without `correct` they are refused."""
    found = differing(state, results)
    if found and not correct:
        more = f", and {len(found) - 1} more" if len(found) > 1 else ""
        raise InputError(f"{found[0][0]}{more}; correct=True says that the new value holds")
    for said, one in found:
        if len(names_of(one)) != len(state.results[said.name].of or (0,)):
            raise InputError(f"{said}: its trials were told one by one, so they are put right one by one")
    return [{"kind": "amend", "results": [one for _, one in found]}] if found else []


def differing(state: StudyState, results: Iterable[Record]) -> list[tuple[Difference, Record]]:
    """Return the results that are told already and say something else, with what they say of what the log has."""
    found = []
    for one in results:
        names = names_of(one)
        before = {state.results[name].name: state.results[name] for name in names if name in state.results}
        covered = sum(max(1, len(old.of)) for old in before.values())
        if not before or covered != len(names):
            continue  # new, or told in parts that cannot be compared
        count, total, *_ = totals_of(one)
        old = sum(result.sum for result in before.values())
        if not math.isclose(old, total, rel_tol=NEAR) or sum(result.count for result in before.values()) != count:
            found.append((Difference(names[0], state.ids[one["arm"]], old, total), one))
    return found


def measured(value: Any) -> bool:
    """Return whether there is a value: None and NaN mean not yet."""
    return value is not None and not (isinstance(value, Real) and value != value)


def usable(state: StudyState, value: Any, place: str) -> float:
    """Return a value as a number the study's model can use."""
    given = _number(value, place)
    try:
        state.rewards.allowed(given)
    except InputError as error:
        raise type(error)(f"{place}: {error}") from None
    return given


def _number(value: Any, place: str) -> float:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not isinstance(value, Real | np.bool_):
        raise InputError(f"{place}: a number is expected; given {value!r}")
    try:
        given = float(value)
    except OverflowError:
        given = math.inf
    if not abs(given) <= LARGEST_VALUE:  # its square must be a number too
        raise InputError(f"{place}: a number within ±{LARGEST_VALUE:g} is expected; given {value!r}")
    return given


def _pairs(what: Told, values: Any) -> Iterable[tuple[Trial | str, Any]]:
    if isinstance(what, Mapping):
        if values is not None:
            raise InputError("a mapping from trial ids to values has the values already")
        return what.items()
    if isinstance(what, Trial | str):
        return [(what, values)]
    if not isinstance(what, Batch):
        raise InputError(f"a batch, a trial, a trial id or a mapping from ids to values is expected; given {what!r}")
    given = list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]
    if len(given) != len(what):
        raise InputError(f"{counted(len(what), 'value')} expected, the number of trials asked; {len(given)} given")
    return zip(what.trials, given, strict=True)
