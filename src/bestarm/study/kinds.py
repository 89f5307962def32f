"""What each kind of record does to the state of a study; corrections are in changes.py."""

from collections.abc import Callable, Iterable
from typing import Any

from bestarm.core import Goal
from bestarm.numbers import LARGEST_VALUE, real
from bestarm.rewards import Rewards
from bestarm.study import changes, parts
from bestarm.study.limits import totals_of
from bestarm.study.places import table_of
from bestarm.study.rounds import StudyRound, ranges
from bestarm.study.state import CENT, VERSION, Change, FileTold, Result, StudyState, positive
from bestarm.study.storage import Record


def create(state: StudyState, record: Record) -> None:
    version = record["version"]
    if not isinstance(version, int) or version > VERSION:
        raise ValueError(
            f"this study was written by a newer bestarm (log version {version}); this one reads up to {VERSION}"
        )
    kept = record["arms"]
    arms: Any = table_of(kept, state.folder, state.table) if "at" in kept else kept
    state.name, state.version = record["name"], version
    if isinstance(arms, dict):
        state.names, state.cost = list(arms["names"]), None if arms.get("cost") is None else []
        if not all(isinstance(name, str) for name in state.names):
            raise TypeError("the names of features must be texts")
        state.add(arms["ids"], arms["features"], arms.get("cost"))
    else:
        state.hold(arms)
        arms = kept
    if not len(state.ids):
        raise ValueError("there are no arms")
    state.budget, state.seed = positive(record["budget"]), int(record["seed"])
    state.options = {"batch": None, "rounds": None, "refund": True, "extra": True, "plate": None, **record["options"]}
    if not all(isinstance(state.options[key], int | None) for key in ("batch", "rounds")):
        raise TypeError("a batch and rounds must be whole numbers")
    noise = record.get("noise_variance")
    state.noise_variance = None if noise is None else real(noise, "noise_variance", least=0)
    state.blocks, state.stop = record.get("blocks"), record.get("stop")
    state.policy = parts.policy(record["policy"], state.allow)
    model = parts.model(record["model"], state.policy, state.allow)
    state.rewards = Rewards(model, Goal.from_dict(record))
    float(record["time"])
    state.first = record if arms is kept else {**record, "arms": {**arms, "at": kept["at"]}}


def ask(state: StudyState, record: Record) -> None:
    number, start, count = record["round"], record["start"], record["count"]
    if "plan" in record:
        _begin(state, record, number, start)
    now = state.round
    if now is not None and record.get("repeats"):
        now.bring_forward(record["repeats"])
    fits = now is not None and number == now.number and start == now.handed
    if now is None or not fits or count < 1 or start + count > len(now.plan) or record["first"] != state.handed + 1:
        raise ValueError("the trials asked for are not those that come next")
    mine = now.plan[start : start + count]
    state.used += count if state.cost is None else sum(state.cost[arm] for arm in mine)
    now.trials.extend(range(state.handed + 1, state.handed + 1 + count))
    state.trial_rounds.extend([number] * count)
    state.trial_slots.extend(range(start, start + count))
    if record.get("runner"):
        _hold(state, now.trials[start:], record)
    if record.get("wells"):
        state.wells.update(zip(now.trials[start:], map(str, record["wells"]), strict=False))
    if record.get("plate"):
        state.plate = int(record["plate"])
        state.plates.update(dict.fromkeys(now.trials[start:], state.plate))


def _begin(state: StudyState, record: Record, number: int, start: int) -> None:
    if state.round is not None or number != len(state.history) or start:
        raise ValueError(f"round {number} cannot begin here")
    if record.get("begin"):
        state.epoch, state.ended = number, False
        state.epoch_arms = state.in_race
    if state.epoch is None:
        raise ValueError(f"round {number} does not say how the policy was started")
    pairs = record["plan"]
    if any(not 0 <= arm < len(state.ids) for arm, _ in pairs):
        raise ValueError(f"the plan of round {number} has arms that are not there")
    if not sum(times * state.price(arm) for arm, times in pairs) <= state.budget * (1 + CENT):
        raise ValueError(f"the plan of round {number} costs more than the budget")
    state.round = StudyRound(number, pairs, state.epoch, record.get("begin"))
    state.history.append(state.round)
    state.stumbled = False
    state.repeats.clear()  # the plan has them


def _hold(state: StudyState, trials: Iterable[int], record: Record) -> None:
    holder = str(record["runner"]), float(record.get("lease") or 0.0)
    state.holders.update((trial, holder) for trial in trials)


_made = tuple.__new__  # in half the time, for what there may be a million of


def tell(state: StudyState, record: Record) -> None:
    file = record.get("file")
    if file is not None:
        _tell_file(state, record, file)
        return
    for one in record["results"]:
        if len(one) == 3 and "trial" in one and "value" in one:
            _tell_one(state, record, one["trial"], one["arm"], one["value"])
        elif len(one) == 3 and "id" in one and "value" in one:
            _tell_extra(state, record, str(one["id"]), one["arm"], one["value"])
        else:
            _tell_other(state, record, one, "")
    state.close()


def _tell_file(state: StudyState, record: Record, file: Record) -> None:
    name = str(file["name"])
    told = [_tell_other(state, record, one, name) for one in record["results"]]
    before = state.files.get(name, FileTold("", ()))
    state.files[name] = FileTold(str(file["digest"]), (*before.ids, *told))
    state.close()


def _tell_one(state: StudyState, record: Record, trial: int, arm: int, value: float) -> None:
    """Take the value of one trial in, which most results are."""
    if trial in state.results:
        return
    _check_value(value)
    where = _answer(state, trial, arm)
    if where >= 0:
        state.history[where].results.append(trial)
    _count_one(state, record, trial, arm, value, where)


def _tell_extra(state: StudyState, record: Record, name: str, arm: int, value: float) -> None:
    """Take a value in that is of no trial."""
    if name not in state.results:
        _check_value(value)
        _check_arm(state, arm)
        _count_one(state, record, name, arm, value, -1)


def _check_value(value: float) -> None:
    if not -LARGEST_VALUE <= value <= LARGEST_VALUE:
        raise ValueError(f"{value!r} is no result")


def _count_one(state: StudyState, record: Record, name: int | str, arm: int, value: float, where: int) -> None:
    square, when, source = value * value, float(record["time"]), record.get("source", "")
    mine = (name, arm, 1, value, square, state.records, when, source, where, (), "", False, (), None, None, 0.0, -1)
    state.results[name] = _made(Result, mine)
    if before := state.counts[arm]:  # as `StudyState.count` does for several
        apart = value - state.sums[arm] / before
        state.scatters[arm] += before / (before + 1) * apart * apart
    state.total += 1
    state.counts[arm] = before + 1
    state.sums[arm] += value
    state.squares[arm] += square


def _check_arm(state: StudyState, arm: object) -> None:
    if type(arm) is not int or not 0 <= arm < len(state.ids):
        raise ValueError(f"there is no arm {arm!r}")


def _answer(state: StudyState, trial: int, arm: int) -> int:
    """Take a trial for answered, and return the round it answers, -1 for none."""
    rounds = state.trial_rounds
    if not 0 < trial < len(rounds):
        raise ValueError(f"trial {trial} was never asked for")
    number, slot = rounds[trial], state.trial_slots[trial]
    asked = state.history[number]
    if asked.plan[slot] != arm:
        _check_arm(state, arm)
        raise ValueError(f"trial {trial} is of arm {state.ids[asked.plan[slot]]!r}, not {state.ids[arm]!r}")
    return number if asked.shut(slot) and asked is state.round else -1


def _tell_other(state: StudyState, record: Record, one: Record, file: str) -> int | str:
    """Take a result in that is more than a trial with a value, and return its name."""
    arm = one["arm"]
    _check_arm(state, arm)
    trials = ranges(one["trials"]) if "trials" in one else [one["trial"]] if "trial" in one else []
    name = trials[0] if trials else str(one["id"])
    if any(trial in state.results for trial in trials) or name in state.results:
        return name  # an observation counts once, alone or within a sum
    count, total, squares, scatter = totals_of(one)
    answers = [_answer(state, trial, arm) for trial in trials]
    where = max(answers, default=-1)
    if where >= 0:
        state.history[where].results.append(name)
    several = tuple(trials) if len(trials) > 1 else ()
    stamp = state.records, float(record["time"]), record.get("source", "")
    result = Result(
        name, arm, count, total, squares, *stamp, where, several, file,
        block=one.get("block"), cost=one.get("cost"), scatter=scatter, heard=state.rounds if "beyond" in one else -1,
    )  # fmt: skip
    if result.heard >= 0:
        state.heard.setdefault(result.heard, []).append(name)
    state.results.update(dict.fromkeys(trials or [name], result))
    state.count(result)
    if result.cost is not None:
        state.used += float(result.cost) - sum(trial not in state.refunded for trial in trials) * state.price(arm)
        state.refunded.difference_update(trials)
    return name


def end(state: StudyState, record: Record) -> None:
    state.ended = state.round is None


def fail(state: StudyState, record: Record) -> None:
    trial = record["trial"]
    if trial in state.results or trial in state.failed or trial in state.handed_back:
        return
    _give_up(state, trial, record["refund"])
    state.failed.add(trial)  # a value that comes later all the same is kept
    state.failures.append({**record, "reason": str(record["reason"])})
    state.close()


def _give_up(state: StudyState, trial: int, refund: bool) -> None:
    """Take a trial for given up; with a refund, its arm goes to the end of the plan while its round is current."""
    if not 0 < trial <= state.handed:
        raise ValueError(f"trial {trial} was never asked for")
    asked, slot = state.history[state.trial_rounds[trial]], state.trial_slots[trial]
    if asked.shut(slot) and refund and state.refund(trial):
        asked.again(slot)


def hand_back(state: StudyState, record: Record) -> None:
    for trial in ranges(record["trials"]):
        if trial not in state.results and trial not in state.failed and trial not in state.handed_back:
            _give_up(state, trial, refund=True)
            state.handed_back.add(trial)
    state.close()


def close(state: StudyState, record: Record) -> None:
    now = state.round
    if now is not None and record["round"] == now.number:
        state.repeats += [now.plan[slot] for slot in now.open_slots(max(now.handed, now.length))]
        state.round = None


def budget(state: StudyState, record: Record) -> None:
    state.budget = max(state.budget, positive(record["budget"]))  # of two at once the larger one holds
    state.ended = False
    if not state.used:
        state.anew()


def arms(state: StudyState, record: Record) -> None:
    gone = tuple(arm for arm in record.get("withdrawn", ()) if _withdraw(state, arm))
    new = [arm for arm in record.get("added", ()) if arm["id"] not in state.places]  # else somebody was faster
    state.add(*([arm.get(key) for arm in new] for key in ("id", "features", "cost")))
    state.added.update((state.places[arm["id"]], arm["row"]) for arm in new if isinstance(arm.get("row"), dict))
    if gone:
        state.changes[state.records] = Change("withdraw", gone, why=str(record.get("why", "")))
    if gone or new:
        state.evenly = False
        state.anew()


def _withdraw(state: StudyState, arm: int) -> bool:
    if arm < 0 or state.rows is not None or not state.present[arm] or sum(state.present) == 1:  # the last one stays
        return False
    state.present[arm] = False
    return True


def trouble(state: StudyState, record: Record) -> None:
    state.troubles.append(str(record.get("why", "")))
    state.evenly = state.evenly or record["then"] == "evenly"
    state.anew()
    state.stumbled = True


def runner(state: StudyState, record: Record) -> None:
    name, jobs = str(record["runner"]), int(record["jobs"])
    if jobs > 0:
        state.runners[name] = jobs
    else:
        state.runners.pop(name, None)


def take_over(state: StudyState, record: Record) -> None:
    gone = record.get("from", ())
    _hold(state, ranges(record["trials"]), record)
    for name in [gone] if isinstance(gone, str) else gone:
        state.runners.pop(str(name), None)


def finish(state: StudyState, record: Record) -> None:
    if not state.finished_by_hand:
        state.finished_by_hand = True
        state.changes[state.records] = Change("finish", why=str(record.get("why", "")))


def blocks(state: StudyState, record: Record) -> None:
    state.blocks = record


def stop(state: StudyState, record: Record) -> None:
    state.stop = record.get("rule")


FIRST: dict[str, Callable[[StudyState, Record], Any]] = {"create": create}
LATER: dict[str, Callable[[StudyState, Record], Any]] = {
    "ask": ask, "tell": tell, "end": end, "fail": fail, "hand-back": hand_back, "budget": budget, "arms": arms,
    "close": close, "trouble": trouble, "runner": runner, "takeover": take_over, "finish": finish, "blocks": blocks,
    "stop": stop, "amend": changes.amend, "exclude": changes.exclude, "restore": changes.restore, "undo": changes.undo,
}  # fmt: skip
