"""Counts and summaries by arm: they answer the trials that are out, add up, and cost what goes beyond if it is to."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from bestarm import load_study
from bestarm.errors import StorageError
from bestarm.study import Memory
from bestarm.study.files import Contradiction, import_file, tell_file
from tests.study.filing import FEW, begin, by_arm, file, refused

counts = st.lists(
    st.dictionaries(
        st.sampled_from("abc"), st.integers(1, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
    ),
    min_size=1,
    max_size=4,
)


def clicks(told):
    """A file of rows (arm, successes, trials)."""
    return file("arm,successes,trials", *(f"{arm},{won},{n}" for arm, (won, n) in told.items()))


def means(told):
    """A file of rows (arm, mean, n, sd) of rewards."""
    rows = ((arm, np.mean(some), len(some), np.std(some, ddof=1)) for arm, some in told.items())
    return file("arm,mean,n,sd", *(f"{arm},{mean},{n},{sd}" for arm, mean, n, sd in rows))


def known(study):
    """What is known of each arm, rounded."""
    tally = study.sync().known()
    return [[round(float(x), 6) for x in part] for part in (tally.counts, tally.sums, tally.within)]


def logistic(**more):
    return begin("abc", policy="gse-log", **more)


@FEW
@given(days=counts, asked=st.integers(1, 40))
def test_increments_add_up_and_totals_so_far_say_the_same(days, asked):
    parts, totals, at_once = (begin("abc") for _ in range(3))
    so_far = {}
    for study in (parts, totals, at_once):
        study.ask(asked)
    for day, told in enumerate(days):
        tell_file(parts, clicks(told), f"day{day}.csv")
        for arm, (won, n) in told.items():
            so_far[arm] = tuple(np.add(so_far.get(arm, (0, 0)), (won, n)).tolist())
        if so_far:
            tell_file(totals, clicks(so_far), "clicks.csv", cumulative=True)
    if so_far:
        tell_file(at_once, clicks(so_far), "all.csv")
    assert known(parts) == known(totals) == known(at_once)
    assert parts.sync().sums == [float(so_far.get(arm, (0, 0))[0]) for arm in "abc"]
    assert parts.state.open_trials() == totals.state.open_trials() == at_once.state.open_trials()
    assert parts.spent == totals.spent == at_once.spent == len(parts.state.trial_rounds) - 1
    for study in (parts, totals, at_once):
        again = load_study("s", study.storage)
        assert known(again) == known(study)


@FEW
@given(values=st.dictionaries(st.sampled_from("ab"), st.lists(st.floats(-5, 5), min_size=4, max_size=9), min_size=1))
def test_means_say_what_their_rewards_say_one_by_one_and_in_two_parts(values):
    one, several, grown = begin("ab"), begin("ab"), begin("ab")
    for study in (one, several, grown):
        study.ask(6)
    tell_file(one, by_arm([(arm, value) for arm, some in values.items() for value in some]), "x.csv")
    tell_file(several, means(values), "x.csv")
    tell_file(grown, means({arm: some[:2] for arm, some in values.items()}), "x.csv")
    got = tell_file(grown, means(values), "x.csv", cumulative=True)
    assert got.new == sum(len(some) - 2 for some in values.values())
    np.testing.assert_allclose(known(several), known(one), atol=1e-5)
    np.testing.assert_allclose(known(grown), known(one), atol=1e-5)
    assert one.state.open_trials() == several.state.open_trials() == grown.state.open_trials()


def test_the_same_file_counts_once_and_a_changed_one_is_the_logs_question():
    study = logistic()
    study.ask(30)
    first = {"a": (3, 10), "b": (4, 10), "c": (1, 10)}
    got = tell_file(study, clicks(first), "clicks.csv")
    assert (got.new, got.answered, got.beyond) == (30, 30, 0)
    before = study.sync().records
    again = tell_file(study, file("arm,successes,trials", "c,1,10", "b,4,10", "a,1,4", "a,2,6"), "clicks.csv")
    assert (again.new, again.known, study.sync().records) == (0, 30, before)
    more = {"a": (5, 20), "b": (4, 10), "c": (1, 10)}
    error = refused(
        study, clicks(more), r"arm 'a' is 3 of 10 in the log; given 5 of 20(.|\n)*--correct .* --as NAME", "clicks.csv"
    )
    assert isinstance(error, Contradiction)
    assert tell_file(study, clicks(more), "clicks.csv", cumulative=True).new == 10
    assert tell_file(study, clicks(more), "other.csv", as_="day2.csv").new == 40
    refused(study, clicks({"a": (9, 12)}), "with --cumulative a file only grows", "clicks.csv", cumulative=True)


def test_a_corrected_file_counts_as_what_it_says_last():
    study = logistic()
    study.ask(30)
    tell_file(study, clicks({"a": (3, 10), "b": (4, 10)}), "x.csv")
    tell_file(study, clicks({"a": (5, 20), "b": (4, 10)}), "x.csv", cumulative=True)
    for told in ({"a": (2, 15), "c": (1, 3)}, {"b": (1, 2)}, {"a": (5, 20), "b": (4, 10)}, {"b": (4, 10), "a": (1, 1)}):
        tell_file(study, clicks(told), "x.csv", correct=True)
        assert known(study)[0] == [told.get(arm, (0, 0))[1] for arm in "abc"]
        assert known(study)[1] == [told.get(arm, (0, 0))[0] for arm in "abc"]
        assert known(load_study("s", study.storage)) == known(study)
        before = study.sync().records
        tell_file(study, clicks(told), "x.csv", correct=True)
        assert study.sync().records == before


def test_what_goes_beyond_is_free_or_spent_never_more_than_is_left():
    told = {"a": (20, 50), "b": (10, 30)}
    free, spend = (logistic(budget=100) for _ in range(2))
    for study in (free, spend):
        study.ask(30)
    got = tell_file(free, clicks(told), "x.csv")
    assert (got.new, got.answered, got.beyond, got.cost, free.spent) == (80, 20, 60, 0, 30)
    got = tell_file(spend, clicks(told), "x.csv", extras="spend")
    assert (got.new, got.answered, got.beyond, got.cost, spend.spent) == (80, 20, 60, 60, 90)
    got = tell_file(spend, clicks({"a": (20, 50)}), "y.csv", extras="spend")
    assert (got.beyond, got.cost, spend.spent) == (50, 10, 100)
    assert load_study("s", spend.storage).spent == 100
    refused(free, clicks(told), "free or spend is expected", "z.csv", extras="gladly")


def test_rows_of_rewards_answer_the_oldest_trials_of_their_arms():
    study = begin("ab")
    batch = study.ask(6)
    mine = [number for number, trial in enumerate(batch, 1) if trial.arm == "a"]
    got = tell_file(study, by_arm([("a", 1.0), ("a", 2.0)]), "x.csv")
    assert (got.new, got.answered, got.beyond) == (2, 2, 0)
    assert [study.state.results[trial].sum for trial in mine[:2]] == [1.0, 2.0]
    assert tell_file(study, by_arm([("a", 2.0), ("a", 1.0)]), "x.csv").known == 2
    got = tell_file(study, by_arm([("a", 2.0), ("a", 1.0), ("a", 4.0), ("a", 5.0)]), "x.csv", cumulative=True)
    assert (got.answered, got.beyond) == (1, 1)
    tell_file(study, by_arm([("a", 2.5), ("a", 1.0), ("a", 4.0), ("a", 5.0)]), "x.csv", correct=True)
    assert sorted(one.sum for one in study.sync().told) == [1.0, 2.5, 4.0, 5.0]
    assert study.state.open_trials() == [n for n, trial in enumerate(batch, 1) if trial.arm == "b"]


def test_imported_counts_answer_nothing_and_cost_nothing():
    study = logistic()
    study.ask(6)
    assert import_file(study, clicks({"a": (3, 10), "b": (0, 5)}), "old.csv").new == 15
    assert (len(study.pending()), study.spent, study.state.heard) == (6, 6, {})


def test_totals_of_another_name_are_refused_since_all_would_count_twice():
    study = logistic()
    study.ask(6)
    import_file(study, clicks({"c": (1, 2)}), "old.csv")
    tell_file(study, clicks({"a": (1, 2)}), "monday.csv", cumulative=True)
    refused(study, clicks({"a": (2, 4)}), "--as monday.csv says", "tuesday.csv", cumulative=True)
    assert tell_file(study, clicks({"a": (2, 4)}), "tuesday.csv", cumulative=True, as_="monday.csv").new == 2


def test_every_wrong_row_of_counts_is_named():
    study = logistic()
    study.ask(6)
    rows = ("a,x,3", "a,4,3", "z,1,3", "b,1,", "c,,", "c,0,0", "a,-1,3", ",1,2")
    lines = str(refused(study, file("arm,successes,trials", *rows), "x.csv, line 2, column 'successes'")).splitlines()
    assert [line.split(":")[0] for line in lines[:-1]] == [
        "x.csv, line 2, column 'successes'", "x.csv, line 3, arm 'a'", "x.csv, line 4, column 'arm'",
        "x.csv, line 5, column 'trials'", "x.csv, line 8, arm 'a'", "x.csv, line 9, column 'trial'",
    ]  # fmt: skip
    assert tell_file(study, file("arm,successes,times,trials", "a,1,2,", "b,,2,"), "y.csv").new == 2
    linear = begin("ab")
    refused(linear, file("arm,mean,n", "a,1,2"), "sd is needed")
    assert tell_file(linear, file("arm,mean,n,sd", "a,1.5,1,", "b,2,2,0.5"), "x.csv").new == 3


def day(study, rng, more):
    """Ask for a day's trials and answer them, some arms with more than was asked."""
    batch = study.ask(12)
    for arm, n in batch.counts.items():
        study.tell(
            arm=arm, n=n + more.get(arm, 0), mean=float(rng.normal()), sd=1.0 if n + more.get(arm, 0) > 1 else None
        )
    return batch


@pytest.mark.parametrize(
    "policy", ["auto", "linucb", "top-two-lin", "gse-lin-fwg", "sequential-halving", "successive-rejects"]
)
def test_who_loads_a_study_with_results_beyond_asks_what_its_first_owner_would_ask(policy):
    study = begin("abcdef", 120, policy, noise_variance=1.0)
    study.tell(arm="e", mean=0.5, sd=1.0, n=4)
    rng = np.random.default_rng(1)
    for turn in range(5):
        if study.sync().round is None:
            mine = study.driver.question(study.state)
            again = load_study("s", study.storage)
            assert again.driver.question(again.state) == mine
        day(study, rng, {"a": turn, "b": 2})
        study.tell(arm="d", mean=0.1 * turn, sd=1.0, n=3)
    study.exclude([one.name for one in study.state.told if not one.of][-1:])
    if study.sync().round is None:
        again = load_study("s", study.storage)
        assert again.driver.question(again.state) == study.driver.question(study.state)


@pytest.mark.parametrize("policy", ["auto", "top-two-lin"])
def test_the_policy_knows_what_went_beyond_before_its_next_question(policy):
    """An arm that turned out bad in results nobody asked for is not asked for any more."""

    def next_of(told):
        study = begin("abcdef", 600, policy, noise_variance=1.0)
        rng = np.random.default_rng(1)
        while study.spent < 200:
            batch = study.ask(20)
            study.tell(batch, rng.normal(0.5 * np.array([trial.arm == "a" for trial in batch])))
        if told is not None:
            study.tell(arm=told, mean=-5.0, sd=1.0, n=4000)
        return study.ask(20).counts

    first = next_of(None)
    most = max(first, key=first.get)
    assert next_of(most).get(most, 0) == 0


def test_an_elimination_counts_what_went_beyond_in_the_mean_of_its_stage():
    study = begin("abcd", 80, "sequential-halving", noise_variance=1.0)
    batch = study.ask()
    for arm, mean in zip("abcd", (1.0, 2.0, 3.0, 4.0), strict=True):
        study.tell(arm=arm, mean=mean, sd=0.1, n=batch.counts[arm])
    study.tell(arm="a", mean=50.0, sd=0.1, n=4 * batch.counts["a"])
    assert set(study.ask().counts) == {"a", "d"}
    assert study.spent <= 80


@pytest.mark.parametrize("policy", ["auto", "linucb", "gse-log-fwg", "peace", "p1-rage"])
def test_free_extras_leave_the_budget_to_the_policy_and_spent_ones_take_theirs(policy):
    for extras in ("free", "spend"):
        study = begin("abcdef", 200, policy, noise_variance=0.25)
        rng = np.random.default_rng(2)
        beyond, day = 0.0, 0
        while (batch := study.ask(30)) is not None and day < 60:
            told = {arm: n + (day % 3 == 0) for arm, n in batch.counts.items()} | (
                {"f": batch.counts.get("f", 0) + 3} if day == 1 else {}
            )
            wins = {arm: (int(rng.binomial(n, 0.5)), n) for arm, n in told.items()}
            got = tell_file(study, clicks(wins), f"day{day}.csv", extras=extras)
            beyond, day = beyond + got.beyond, day + 1
        assert study.spent <= 200
        assert study.state.total >= study.spent - 1e-9
        assert (study.state.total - study.spent == beyond) == (extras == "free") or not beyond
        assert study.recommend().arm in study.arms


def test_python_tells_an_arms_counts_to_its_trials():
    study = begin("abc", 5000, "gse-log")
    batch = study.ask(30)
    a = batch.counts["a"]
    assert study.tell(arm="a", successes=2, n=a + 5) == a + 5
    assert len(study.pending()) == 30 - a
    assert study.spent == 30
    assert study.tell(arm="b", successes=1, n=batch.counts["b"] + 5, extras="spend") == batch.counts["b"] + 5
    assert study.spent == 35
    assert study.tell(arm="c", successes=1, n=4, id="leaflet") == 4
    assert len(study.pending()) == batch.counts["c"]
    assert study.recommend().arm in "abc"


class Lost(Memory):
    """A storage that writes, and then says once that it has not."""

    lost = False

    def append(self, name, records, after=None):
        done = super().append(name, records, after)
        if self.lost:
            self.lost = False
            raise StorageError("the line went dead")
        return done


def test_counts_of_which_nobody_heard_whether_they_were_written_count_once():
    storage = Lost()
    study = begin("abc", 5000, "gse-log", storage=storage)
    study.ask(30)
    for n in (4, 40):
        before = study.sync().total
        storage.lost = True
        with pytest.raises(StorageError):
            study.tell(arm="a", successes=1, n=n)
        study.tell(arm="a", successes=1, n=n)
        assert study.sync().total == before + n
    study.tell(arm="a", successes=1, n=40)
    assert study.sync().counts[0] == 84


class Raced(Memory):
    """A storage in which somebody else is faster, once."""

    faster = None

    def append(self, name, records, after=None):
        first, self.faster = self.faster, None
        if first is not None:
            first()
        return super().append(name, records, after)


@pytest.mark.parametrize("n", [1, 3])
def test_two_who_tell_an_arm_at_once_answer_other_trials(n):
    storage = Raced()
    study = begin("abc", 5000, "gse-log", storage=storage)
    study.ask(30)
    other = load_study("s", storage)
    storage.faster = lambda: other.tell(arm="a", successes=0, n=n)
    assert study.tell(arm="a", successes=n, n=n) == n
    assert (study.sync().counts[0], study.state.sums[0], len(study.pending())) == (2 * n, n, 30 - 2 * n)
