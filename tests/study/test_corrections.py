"""Results put right: the answer and what comes next are those of a study that was told the truth at first."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bestarm import Arms
from bestarm.errors import BudgetError, InputError, UnknownNameError
from bestarm.study import create_study, load_study
from bestarm.study.corrections import outliers

FEATURES = np.random.default_rng(4).standard_normal((5, 2))
MEANS = FEATURES @ [1.0, -0.5]


def begin(budget=40, policy="gse-lin-fwg", **options):
    return create_study(Arms.from_arrays(FEATURES, ids=list("abcde")), budget, policy, seed=2, **options)


def truth(trial):
    return float(MEANS["abcde".index(trial.arm)])


def answered(study, batch=None, **wrong):
    """Tell the batch the truth, but for the trials named."""
    batch = study.ask() if batch is None else batch
    study.tell({trial.id: wrong.get(trial.id, truth(trial)) for trial in batch})
    return batch


def plans(study):
    return [record["plan"] for record in study.storage.read(study.name) if "plan" in record]


def known(study):
    tally = study.sync().known()
    return tally.counts.tolist(), tally.sums.tolist(), tally.squares.tolist()


@pytest.mark.parametrize("policy", ["gse-lin-fwg", "auto", "sequential-halving", "lingape", "gp-thompson", "gse-auto"])
def test_a_typing_error_put_right_leaves_no_trace_but_in_the_log(policy):
    right, wrong = (begin(policy=policy, noise_variance=1.0, batch=8) for _ in range(2))
    answered(right)
    batch = answered(wrong, T0002=1e6)
    wrong.amend("T0002", truth(batch.trials[1]), why="decimal point", source="Ada")
    assert known(wrong) == known(right)
    for study in (right, wrong):
        while answered(study, study.ask() or ()):
            pass
    assert plans(wrong) == plans(right)
    assert wrong.recommend() == right.recommend()
    assert wrong.best_arm == right.best_arm
    row = wrong.trials()[1]
    assert (row["value"], row["why"], row["corrections"]) == (
        truth(batch.trials[1]),
        "decimal point",
        "amend (record 3)",
    )
    record = wrong.storage.read(wrong.name)[3]
    assert (record["source"], record["why"]) == ("Ada", "decimal point")


def test_the_last_correction_holds_and_each_can_be_undone():
    study = begin()
    answered(study)
    before = known(study)
    study.amend("T0001", 7.0)
    study.amend("T0001", 8.0)
    assert study.state.results[1].sum == 8.0
    study.amend("T0001", 8.0)  # nothing new: no record
    assert study.state.records == 5
    assert study.undo() == 4
    assert study.state.results[1].sum == 7.0
    assert study.undo() == 3
    assert known(study) == before
    with pytest.raises(InputError, match="there is nothing to undo"):
        study.undo()
    with pytest.raises(InputError, match="record 3 is undone already"):
        study.undo(3)
    with pytest.raises(InputError, match="record 1 is nothing that can be undone"):
        study.undo(1)


def test_an_earlier_correction_can_be_undone_beneath_a_later_one():
    study = begin()
    answered(study)
    study.amend("T0001", 7.0)
    study.exclude("T0001", why="wrong tube")
    study.undo(3)
    assert study.state.results[1].excluded
    study.restore("T0001")
    assert study.state.results[1].sum == study.state.originals[1].sum


def test_what_is_excluded_stays_spent_and_is_not_asked_again():
    study = begin()
    batch = answered(study)
    spent, told = study.spent, known(study)
    assert study.exclude(["T0001", batch.trials[2]], why="bubble") == 2
    assert study.exclude("T0001") == 0
    assert study.spent == spent
    assert sum(known(study)[0]) == len(batch) - 2
    assert not study.pending()
    assert [row["state"] for row in study.trials()[:3]] == ["excluded", "told", "excluded"]
    assert study.restore(["T0001", "T0003"]) == 2
    assert known(study) == told


def test_what_is_excluded_may_be_asked_again():
    study = begin()
    batch = study.ask()
    study.tell(batch.trials[0], 5.0)
    spent = study.spent
    study.exclude(batch.trials[0], again=True)  # in its own round: at the end of the plan
    assert study.spent == spent - 1
    answered(study, study.pending())
    again = study.ask()
    assert [trial.arm for trial in again] == [batch.trials[0].arm]
    answered(study, again)
    study.exclude("T0002", again=True)  # when its round is over: with the next plan
    following = study.ask()
    assert following.trials[0].arm == batch.trials[1].arm
    answered(study, following)
    while answered(study, study.ask() or ()):
        pass
    assert study.spent == 40
    assert sum(known(study)[0]) == 40
    with pytest.raises(InputError, match="asked their arms again: restore the results instead"):
        study.undo(study.sync().changes and max(study.state.changes))


def test_what_was_asked_again_and_counts_after_all_is_paid_for():
    study = begin()
    batch = answered(study)
    spent = study.spent
    study.exclude(["T0001", "T0002"], again=True)
    assert study.spent == spent - 2
    assert study.restore("T0001") == 1
    assert study.spent == spent - 1
    with pytest.raises(InputError, match="restored results and took their price: exclude the results instead"):
        study.undo(max(study.sync().changes))
    study.exclude("T0001", again=True)
    assert study.spent == spent - 2
    while answered(study, study.ask() or ()):
        pass
    assert study.spent == 40
    with pytest.raises(BudgetError, match="to count them takes 2 of the budget, and 0 is left"):
        study.restore(["T0001", "T0002"])
    study.raise_budget(42)
    assert study.restore(["T0001", "T0002"]) == 2
    assert study.spent == 42 == sum(known(study)[0])
    assert {trial.id for trial in batch} <= {row["trial"] for row in study.trials()}


def test_an_arm_that_was_withdrawn_is_not_asked_again():
    study = begin()
    batch = answered(study)
    study.exclude("T0001", again=True)
    study.withdraw(batch.trials[0].arm)
    while answered(study, after := study.ask() or ()):
        assert batch.trials[0].arm not in after.arms
    assert study.spent == 40


def test_results_are_chosen_by_arm_source_and_time():
    study = begin()
    batch = study.ask()
    study.tell({trial.id: truth(trial) for trial in batch.trials[:5]}, source="plate 1")
    study.tell({trial.id: truth(trial) for trial in batch.trials[5:]}, source="plate 2")
    second = study.state.results[6].time
    assert study.exclude(by="plate 2") == len(batch) - 5
    assert study.restore([f"T{i:04d}" for i in range(6, len(batch) + 1)]) == len(batch) - 5
    assert study.exclude(arm=batch.trials[0].arm) == sum(trial.arm == batch.trials[0].arm for trial in batch)
    study.undo()
    assert study.exclude(since=second, by="plate 1") == 0
    assert study.exclude(since=second) == len(batch) - 5
    for bad, says in [
        (lambda: study.exclude(), "name the trials, or an arm, a source or a time"),
        (lambda: study.exclude("T0001", arm="a"), "not both"),
        (lambda: study.exclude(by="plate 3"), "no result is of the source 'plate 3'; there are 'plate 1', 'plate 2'"),
        (lambda: study.exclude(since="yesterday"), "a time such as 2026-05-01"),
        (lambda: study.exclude("T0999"), "T0999 was never asked for"),
        (lambda: study.amend("T0001", "x"), "trial T0001: a number is expected"),
        (lambda: study.amend("nobody", 1.0), "unknown result 'nobody'"),
        (lambda: study.amend("T0006", 1.0), "trial T0006 is excluded: restore it first"),
    ]:
        with pytest.raises(InputError) as info:
            bad()
        assert says in str(info.value)


def test_results_nobody_asked_for_are_put_right_by_their_id():
    study = begin()
    study.tell(arm="a", values=3.0, id="tuesday")
    study.amend("tuesday", 4.0)
    assert known(study)[1][0] == 4.0
    study.exclude("tuesday")
    assert sum(known(study)[0]) == 0
    with pytest.raises(InputError, match="result 'tuesday' was not asked for, so it cannot be asked again"):
        study.restore("tuesday") and study.exclude("tuesday", again=True)
    with pytest.raises(UnknownNameError, match="unknown result 'wednesday'"):
        study.exclude("wednesday")


def test_a_number_of_successes_is_put_right_as_a_whole():
    study = begin(40, "sequential-halving")
    batch = study.ask()
    study.tell(batch, successes=[1] * len(batch.arms))
    study.tell(batch, successes={batch.arms[0]: 2}, correct=True)
    first = study.state.results[1]
    assert (first.sum, first.squares) == (2, 2)
    study.amend("T0001", 0)
    assert study.state.results[1].sum == 0
    assert study.state.results[first.trials[-1]].sum == 0
    for bad in (3.5, -1, first.count + 1, float("inf"), float("nan"), True, "x", None):
        with pytest.raises(InputError, match="number of successes, which must be a whole number from 0 to"):
            study.amend("T0001", bad)


def test_what_was_told_otherwise_is_refused_whole_unless_it_is_a_correction():
    study = begin()
    batch = study.ask()
    study.tell(batch.trials[0], 0.2)
    with pytest.raises(InputError, match=r"trial T0001 of arm '\w' is 0.2 in the log; given 5.999"):
        study.tell({"T0001": 5.999, "T0002": 1.0})
    assert sum(known(study)[0]) == 1
    assert study.tell({"T0001": 5.999, "T0002": 1.0}, correct=True, why="read off the wrong row") == 1
    assert study.state.results[1].sum == 5.999
    assert study.trials()[0]["why"] == "read off the wrong row"


def test_trials_asked_by_mistake_are_handed_back():
    study = begin()
    study.ask(3)
    study.hand_back(["T0002", "T0003"], why="asked twice")
    assert study.spent == 1
    assert [trial.id for trial in study.pending()] == ["T0001"]
    study.hand_back("T0002")
    assert study.spent == 1
    study.tell("T0001", 1.0)
    with pytest.raises(InputError, match="trial T0001 has a result: exclude it"):
        study.hand_back("T0001")
    assert [row["state"] for row in study.trials()] == ["told", "handed back", "handed back"]
    other = begin()
    answered(other)
    answered(study, study.ask())
    assert known(study)[0] == known(other)[0]  # the round is whole: they were asked again
    while answered(study, study.ask() or ()):
        pass
    assert study.spent == 40
    assert study.tell("T0002", 3.0) == 1  # it was measured after all: known, and free


def test_a_withdrawal_and_the_finish_can_be_undone():
    study = begin()
    answered(study)
    study.withdraw("c", why="sold out")
    assert "c" not in study.arms
    study.undo(why="it is back")
    assert "c" in study.arms
    study.finish()
    assert study.finished
    assert study.ask() is None
    study.undo()
    assert not study.finished
    while answered(study, study.ask() or ()):
        pass
    assert study.spent == 40


def test_a_correction_while_a_round_is_out_waits_for_the_next_question():
    study = begin()
    batch = study.ask()
    answered(study, batch.trials[:4], T0001=50.0)
    study.amend("T0001", truth(batch.trials[0]))
    assert len(study.pending()) == len(batch) - 4
    answered(study, study.pending())
    other = begin()
    answered(other)
    assert [trial.arm for trial in study.ask()] == [trial.arm for trial in other.ask()]


def test_values_far_from_all_others_are_pointed_out():
    study = begin(400, "uniform", batch=40)
    rng = np.random.default_rng(1)
    batch = study.ask()
    study.tell({trial.id: truth(trial) + rng.normal() for trial in batch})
    assert not outliers(study.state)
    study.amend("T0007", 100.0)
    assert [one.name for one in outliers(study.state)] == [7]
    assert any("T0007" in warning for warning in study.recommend(draws=200).warnings)
    study.exclude("T0007")
    assert not outliers(study.state)


def test_normal_values_are_seldom_called_far():
    rng, called = np.random.default_rng(0), 0
    for _ in range(200):
        study = begin(200, "uniform", batch=100)
        study.tell(batch := study.ask(), rng.standard_normal(len(batch)))
        called += bool(outliers(study.state))
    assert called <= 2  # of 200 studies of 100 normal values; chance of more is below 1e-6


steps = st.lists(
    st.tuples(
        st.sampled_from(["amend", "exclude", "restore", "again", "undo", "ask", "tell", "late"]), st.integers(0, 30)
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_whatever_is_corrected_counts_are_those_of_what_holds(steps):
    study = begin(60, "sequential-halving", batch=4)
    for verb, number in steps:
        state = study.sync()
        told = [one for one in state.told if one.of]
        one = told[number % len(told)] if told else None
        out = study.pending().trials
        if verb == "ask":
            study.ask(number % 6 + 1)
        elif verb == "tell" and out:
            study.tell(out[number % len(out)], float(number))
        elif verb == "undo" and any(n not in state.undone and not c.again for n, c in state.changes.items()):
            free = [n for n, c in state.changes.items() if n not in state.undone and not c.again]
            study.undo(free[number % len(free)])
        elif one is None:
            continue
        elif verb == "amend" and not one.excluded:
            study.amend(one.name, float(number) / 3)
        elif verb == "exclude":
            study.exclude(one.name)
        elif verb == "restore":
            study.restore(one.name)
        elif verb == "again" and not one.excluded:
            study.exclude(one.name, again=True)
    state = study.sync()
    counts, sums = np.zeros(5), np.zeros(5)
    for result in state.told:
        if not result.excluded:
            counts[result.arm] += 1
            sums[result.arm] += result.sum
    assert state.counts == counts.tolist()
    np.testing.assert_allclose(state.sums, sums)
    assert state.total == counts.sum()
    assert 0 <= state.used <= state.budget
    again = load_study(study.name, study.storage).state
    assert (again.counts, again.sums, again.used, again.results) == (
        state.counts,
        state.sums,
        state.used,
        state.results,
    )
