"""Studies as people use them: every form of telling, changes of mind, and refusals that say what was expected."""

import threading

import numpy as np
import pytest

from bestarm import Arms, catalog, create_study, delete_study, get_all_study_names, load_study
from bestarm.errors import BudgetError, InputError, RewardError, StorageError, UnknownNameError
from bestarm.study import Batch, Memory, Trial
from bestarm.study.table import COLUMNS

FEATURES = np.eye(4) + 0.5


def priced(cost):
    arms = Arms.from_arrays(FEATURES, ids="abcd")
    return Arms(arms.ids, arms.features, arms.names, arms.encoding, np.array(cost))


def fresh(budget=24, policy="uniform", storage=None, **settings):
    arms = settings.pop("arms", Arms.from_arrays(FEATURES, ids="abcd"))
    return create_study(arms, budget, policy, study_name="s", storage=storage or Memory(), seed=2, **settings)


def finish(study, value=lambda arm: float(ord(arm))):
    while batch := study.ask():
        study.tell(batch, [value(trial.arm) for trial in batch])
    return study


def totals(study):
    state = study.sync()
    return dict(zip(state.ids, zip(state.counts, state.sums, strict=True), strict=True))


@pytest.mark.parametrize("name", catalog.names())
def test_any_policy_runs_to_its_end_within_the_budget(name):
    binary = catalog.ENTRIES[name].binary
    study = fresh(40, name, noise_variance=1.0, batch=3)
    finish(study, lambda arm: float(arm in "bd") if binary else float(ord(arm) - 96))
    assert study.ask() is None
    assert study.finished
    assert sum(study.state.counts) == study.spent <= 40
    assert study.best_arm in "abcd"


def test_telling_in_every_form():
    study = fresh(model=None, policy="gse-log")
    batch = study.ask(8)
    assert batch.arms == ("a", "b", "c", "d")
    assert batch.times == (2, 2, 2, 2)
    first, second, *_ = batch
    assert study.tell(first, 1) == 1
    assert study.tell(second.id, 0.0) == 1
    assert study.tell({batch.trials[2].id: np.float32(1), batch.trials[3].id: None}) == 1
    assert study.tell(batch, [None, None, None, True, float("nan"), np.float32("nan"), np.int64(1), np.array(0)]) == 3
    assert totals(study) == {"a": (1, 1), "b": (1, 0), "c": (2, 2), "d": (2, 1)}
    assert [trial.arm for trial in study.pending()] == ["a", "b"]
    assert study.tell(arm="a", values=[1, 0]) == 2
    assert study.tell(arm="a", values=1, id="lab-7") == 1
    assert study.tell(arm="a", values=1, id="lab-7") == 0
    assert totals(study)["a"] == (4, 3)


def test_successes_by_arm_count_once_however_they_come():
    study = fresh(48, "gse-log")
    batch = study.ask(8)
    assert study.tell(batch, successes=[2, None, 1, 0]) == 6
    assert study.tell(batch, successes=[2, None, 1, 0]) == 0
    with pytest.raises(InputError, match=r"trial T0001 of arm 'a' is 2 in the log; given 1"):
        study.tell(batch, successes=[1, None, 1, 0])
    assert study.tell(batch, successes={"b": 1}) == 2
    assert totals(study) == {"a": (2, 2), "b": (2, 1), "c": (2, 1), "d": (2, 0)}
    assert study.tell({trial.id: 1 for trial in batch if trial.arm == "a"}) == 0  # known, within the sums
    assert study.tell(batch.trials[1], 1) == 0  # may be its own: one of b's two
    more = study.ask(8)
    some = Batch(more.trials[:1])
    assert study.tell(some, [1]) == 1
    with pytest.raises(InputError, match=r"1 of these 2 trials are told already, such as .*; tell the others"):
        study.tell(Batch(tuple(t for t in more if t.arm == some.trials[0].arm)), successes=[1])


def test_a_sum_told_while_one_of_its_trials_comes_in_is_not_counted_twice():
    storage = Memory()
    study, other = fresh(policy="gse-log", storage=storage), load_study("s", storage)
    batch = study.ask(8)
    append, raced = storage.append, []

    def slow(name, records, after=None):
        if not raced:
            raced.append(True)
            other.tell(batch.trials[0], 1)  # somebody is faster
        return append(name, records, after)

    storage.append = slow
    with pytest.raises(InputError, match="told already"):
        study.tell(batch, successes=[2, 2, 2, 2])
    assert totals(study)["a"] == (1, 1)


@pytest.mark.parametrize(
    ("tell", "says"),
    [
        (lambda s, b: s.tell({"T0009": 1.0}), "trial T0009 was never asked for"),
        (lambda s, b: s.tell("0", 1.0), "trial 0 was never asked for"),
        (lambda s, b: s.tell("zero", 1.0), "a trial id such as T0010 is expected; given 'zero'"),
        (lambda s, b: s.tell("0.1", 1.0), "a trial id such as T0010 is expected; given '0.1'"),
        (lambda s, b: s.tell(b, ["1", 2, 3, 4]), "trial T0001: a number is expected; given '1'"),
        (lambda s, b: s.tell(Trial("T0001", "d"), 1.0), "of arm 'a', not 'd': is it another study's"),
        (lambda s, b: s.tell(b, [1.0]), "4 values expected, the number of trials asked; 1 given"),
        (lambda s, b: s.tell(b, [1, 2, np.inf, 4]), "trial T0003: a number within ±1e+150 is expected; given inf"),
        (lambda s, b: s.tell(b, [1, 2, -1.1e150, 4]), "trial T0003: a number within ±1e+150 is expected"),
        (lambda s, b: s.tell(b, [1, 2, 10**400, 4]), "trial T0003: a number within"),
        (lambda s, b: s.tell(b, successes=[1, 1]), "4 success counts expected, one for each arm; 2 given"),
        (lambda s, b: s.tell(b, successes=[2, 1, 1, 1]), "arm 'a': a whole number from 0 to 1"),
        (lambda s, b: s.tell(b, successes={"z": 1}), "arm 'z' is not in this batch"),
        (lambda s, b: s.tell(arm="z", values=1.0), "unknown arm 'z'"),
        (lambda s, b: s.tell(arm="a", values=[1.0, 2.0], id="x"), "an id names one result; 2 values given"),
        (lambda s, b: s.tell(arm="a", values=1.0, id="0.1"), "must not look like a trial's"),
        (lambda s, b: s.tell(arm="a", values=1.0, id="t7"), "must not look like a trial's"),
        (lambda s, b: s.tell(b, [1, 1, 1, 1], arm="a"), "not both at once"),
        (lambda s, b: s.tell(b, [1, 1, 1, 1], id="x"), "an id names an extra result"),
        (lambda s, b: s.tell({"T0001": 1}, 3), "has the values already"),
        (lambda s, b: s.tell(3), "a batch, a trial, a trial id, a mapping"),
        (lambda s, b: s.tell(3, 1), "a batch, a trial, a trial id or a mapping"),
        (lambda s, b: s.tell("T0001", successes=[1]), "successes are told of a batch"),
        (lambda s, b: s.fail("T33", "x"), "trial T33 was never asked for"),
        (lambda s, b: s.ask(0), "the number of trials to ask for"),
        (lambda s, b: s.ask(1.5), "the number of trials to ask for"),
        (lambda s, b: s.ask(True), "the number of trials to ask for"),
        (lambda s, b: s.withdraw("z"), "unknown arm 'z'"),
        (lambda s, b: s.raise_budget(24), "the budget is 24; a larger one is expected"),
        (lambda s, b: s.raise_budget(1e12), "beyond what a study can plan"),
        (lambda s, b: s.add_arms(Arms.from_arrays([[1.0]])), "new arms must have the features x1, x2, x3, x4"),
        (lambda s, b: s.add_arms(Arms.from_arrays(FEATURES, ids="zyxd")), "arm 'd' is in the study already"),
        (lambda s, b: s.add_arms(priced([1.0] * 4)), "in the study already"),
    ],
)
def test_what_cannot_be_is_refused_whole(tell, says):
    study = fresh()
    batch = study.ask(4)
    records = study.state.records
    with pytest.raises(InputError, match=None) as info:
        tell(study, batch)
    assert says in str(info.value)
    assert len(study.storage.read("s")) == records == 2
    assert not sum(study.sync().counts)


def test_late_results_of_closed_rounds_are_kept_as_data():
    study = fresh(policy="gse-means")
    batch = study.ask()
    late = batch.trials[:3]
    study.tell(Batch(batch.trials[3:]), [float(ord(trial.arm)) for trial in batch.trials[3:]])
    assert study.ask() == Batch(())
    assert not study.ask()
    study.close_round()
    following = study.ask(1)
    assert following.trials[0].id == f"T{len(batch) + 1:04d}"
    assert study.state.rounds == 2
    assert study.tell({trial.id: 5.0 for trial in late}) == 3
    assert study.tell({trial.id: 5.0 for trial in late}) == 0
    assert sum(study.state.counts) == len(batch)
    finish(study)
    assert study.spent == 24


def test_failed_trials_are_asked_again_or_lost():
    study = fresh()
    first = study.ask(1).trials[0]
    study.fail(first, "spilt")
    study.fail(first, "spilt")
    assert study.spent == 0
    finish(study)
    assert study.spent == 24 == sum(study.state.counts)
    assert [row["why"] for row in study.trials() if row["state"] == "failed"] == ["spilt"]
    assert study.tell(first, 1.0) == 1  # it came after all
    assert sum(study.sync().counts) == 25
    lost = fresh(refund=False)
    lost.fail(lost.ask(1).trials[0], "spilt")
    finish(lost)
    assert lost.spent == 24 == sum(lost.state.counts) + 1
    other = fresh(refund=False)
    other.fail(other.ask(1).trials[0], "spilt", refund=True)
    assert other.spent == 0


def test_many_workers_never_ask_more_than_the_budget():
    storage, found = Memory(), []
    fresh(60, "linucb", storage, noise_variance=1.0, batch=7)

    def work(seed):
        study, rng = load_study("s", storage), np.random.default_rng(seed)
        while (batch := study.ask(int(rng.integers(1, 5)))) is not None:
            found.extend(trial.id for trial in batch)
            study.tell(batch, rng.standard_normal(len(batch)))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(set(found)) == 60
    assert load_study("s", storage).spent == 60


def test_threads_may_share_one_study():
    study, found = fresh(60), []

    def work():
        while batch := study.ask(2):
            found.extend(batch)
            study.tell(batch, [1.0] * len(batch))

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({trial.id for trial in found}) == 60
    assert study.finished


def test_costs_are_money():
    study = fresh(30.0, "gse-means", arms=priced([1.0, 2.0, 4.0, 0.5]))
    asked = []
    while batch := study.ask():
        asked += [trial.arm for trial in batch]
        study.tell(batch, [float(ord(trial.arm)) for trial in batch])
    price = dict(zip("abcd", [1.0, 2.0, 4.0, 0.5], strict=True))
    assert sum(price[arm] for arm in asked) == study.spent <= 30
    assert study.finished
    with pytest.raises(BudgetError, match=r"does not pay for a single pull; at least 0\.5"):
        fresh(0.4, arms=priced([1.0, 2.0, 4.0, 0.5]))


def test_the_budget_may_grow_before_and_after_the_end():
    early = fresh(policy="gse-means")
    early.tell(batch := early.ask(5), [1.0] * len(batch))
    early.raise_budget(50)
    finish(early)
    assert early.spent == 50
    late = finish(fresh())
    assert late.finished
    late.raise_budget(30)
    assert not late.finished
    finish(late)
    assert late.spent == 30


def test_arms_come_and_go():
    study = fresh(40, "gse-means")
    study.tell(batch := study.ask(8), [1.0] * len(batch))
    out = study.ask(2)
    study.withdraw("d")
    study.withdraw("d")
    assert study.arms == ("a", "b", "c")
    assert study.tell(out, [1.0, 1.0]) == 2  # asked of the plan before, kept as data
    study.add_arms(Arms.from_arrays(2 * FEATURES[:1], ids=["e"]))
    seen = set()
    while batch := study.ask():
        seen |= set(batch.arms)
        study.tell(batch, [float(ord(trial.arm)) for trial in batch])
    assert "d" not in seen
    assert "e" in seen
    assert study.best_arm == "e"
    assert study.spent == 40
    for arm in "abc":
        study.withdraw(arm)
    with pytest.raises(InputError, match="arm 'e' is the last one"):
        study.withdraw("e")


def test_withdrawing_with_little_left_ends_the_study_and_breaks_nothing():
    study = fresh(9, "gse-means")
    study.tell(batch := study.ask(), [float(ord(trial.arm)) for trial in batch])
    out = study.ask(4)
    study.tell(out, [float(ord(trial.arm)) for trial in out])
    study.withdraw("a")
    again = load_study("s", study.storage)
    assert again.state.round == study.state.round
    assert again.best_arm == study.best_arm != "a"


def test_minimize_looks_for_the_smallest():
    assert finish(fresh(direction="minimize")).best_arm == "a"
    assert finish(fresh(policy="gse-log", direction="minimize"), lambda arm: float(arm != "c")).best_arm == "c"
    with pytest.raises(InputError, match="Poisson model cannot be minimised"):
        fresh(policy="gse-poi-fwg", direction="minimize")


def test_values_are_kept_with_time_and_source(monkeypatch):
    monkeypatch.setenv("BESTARM_SOURCE", "robot 3")
    study = fresh()
    batch = study.ask(3)
    study.tell(batch.trials[0], 1.5)
    study.tell(batch.trials[1], 2.5, source="by hand")
    study.fail(batch.trials[2], "spilt")
    study.import_results([("a", 9.0), ("d", 8.0)], source="last year")
    rows = study.trials()
    assert [row["source"] for row in rows] == ["robot 3", "by hand", "robot 3", "last year", "last year"]
    assert [row["value"] for row in rows] == [1.5, 2.5, None, 9.0, 8.0]
    assert all(row["time"] > 1.6e9 for row in rows)
    frame = study.trials_frame("polars")
    assert frame["arm"].to_list() == ["a", "b", "c", "a", "d"]
    assert study.trials_frame().shape == (5, len(COLUMNS))
    assert study.spent == 2  # what was imported costs nothing


def test_extra_results_may_be_refused():
    study = fresh(extra=False)
    with pytest.raises(InputError, match="takes no extra results"):
        study.tell(arm="a", values=1.0)
    assert study.import_results([("a", 1.0)]) == 1


def test_a_study_is_loaded_again_only_if_it_is_the_same():
    storage = Memory()
    fresh(storage=storage, batch=5).ask(3)
    assert fresh(storage=storage, batch=5, load_if_exists=True).spent == 3
    with pytest.raises(InputError, match="there is a study 's' already"):
        fresh(storage=storage, batch=5)
    other = Arms.from_arrays(FEATURES, ids="abce")
    moved = FEATURES.copy()
    moved[2, 1] = 7
    cases = {
        "its arms are others, such as 'd'": {"arms": other},
        "its arms are in another order": {"arms": Arms.from_arrays(FEATURES, ids="badc")},
        "arm 'c' has other features": {"arms": Arms.from_arrays(moved, ids="abcd")},
        "its features are x1, x2, x3, x4": {"arms": Arms.from_arrays(FEATURES, ids="abcd", names="wxyz")},
        "its arms have other costs": {"arms": priced([1.0, 1, 1, 2])},
        "its policy is uniform, not gse-means": {"policy": "gse-means"},
        "its budget is 24, not 25": {"budget": 25},
        "its direction is 'maximize', not 'minimize'": {"direction": "minimize"},
        "its batch is 5, not 6": {"batch": 6},
        "its noise_variance is None, not 1.0": {"noise_variance": 1.0},
    }
    for says, settings in cases.items():
        with pytest.raises(InputError) as info:
            fresh(**{"storage": storage, "batch": 5, "load_if_exists": True} | settings)
        assert says in str(info.value)
        assert "but a different one" in str(info.value)
    study = load_study("s", storage)
    study.raise_budget(25)
    assert fresh(storage=storage, batch=5, load_if_exists=True).budget == 25
    assert fresh(25, storage=storage, batch=5, load_if_exists=True).budget == 25


def test_policies_and_models_by_name_and_by_hand():
    assert create_study(FEATURES, 24, model="logistic").state.first["policy_name"] == "gse-log-fwg"
    assert create_study(FEATURES, 24, model="linear").state.first["policy_name"] == "gse-lin-fwg"
    assert create_study(FEATURES, 24).state.first["policy_name"] == "auto"
    own = create_study(FEATURES, 24, catalog.policy("gse-lin", eta=4.0))
    assert own.state.policy.eta == 4.0
    assert own.state.first["policy_name"] == "Elimination"
    mixed = create_study(FEATURES, 24, "gse-lin", model="logistic")
    with pytest.raises(RewardError, match="0 or 1"):
        mixed.tell(mixed.ask(1), [0.5])
    binary = create_study(FEATURES, 24, "ucb-glm", noise_variance=1.0)
    with pytest.raises(RewardError, match="0 or 1"):
        binary.tell(binary.ask(1), [0.5])
    with pytest.raises(InputError, match="model of its own"):
        create_study(FEATURES, 24, catalog.policy("gse-lin"), model="logistic")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"budget": 0}, "does not pay for a single pull"),
        ({"budget": float("nan")}, "the budget must be a finite number; given nan"),
        ({"budget": float("inf")}, "the budget must be a finite number; given inf"),
        ({"budget": True}, "the budget must be a finite number; given True"),
        ({"budget": "24"}, "the budget must be a finite number; given '24'"),
        ({"budget": 1e12}, "beyond what a study can plan"),
        ({"budget": 1, "policy": "gse-lin-fwg"}, "at least 2 pulls are needed"),
        ({"policy": "linucb"}, "needs the variance of the noise"),
        ({"policy": "unifrom"}, "unknown policy 'unifrom'"),
        ({"model": "linaer"}, "unknown model 'linaer'"),
        ({"direction": "up"}, "direction must be"),
        ({"noise_variance": -1.0}, "noise_variance must be a finite number, at least 0; given -1.0"),
        ({"seed": -1}, "seed must be a whole number, at least 0; given -1"),
        ({"seed": 1.5}, "seed must be a whole number, at least 0; given 1.5"),
        ({"batch": 0}, "batch must be a whole number, at least 1; given 0"),
        ({"study_name": " "}, "a study needs a name"),
        ({"study_name": "a\nb"}, "a study needs a name"),
        ({"storage": "mysql://x"}, "unknown storage"),
    ],
)
def test_studies_that_cannot_begin_are_not_written(settings, says, tmp_path):
    place = settings.get("storage", tmp_path / "s.jsonl")
    arguments = {"budget": 24, "policy": None, "study_name": "s", **settings, "storage": place}
    with pytest.raises((InputError, StorageError)) as info:
        create_study(FEATURES, **arguments)
    assert says in str(info.value)
    assert not (tmp_path / "s.jsonl").exists()


def test_studies_are_found_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv("BESTARM_STORAGE", f"sqlite:///{tmp_path}/s.db")
    assert get_all_study_names() == []
    with pytest.raises(StorageError, match="there is none at all"):
        load_study("spring")
    create_study(FEATURES, 24, study_name="spring")
    create_study(FEATURES, 24, study_name="autumn")
    assert get_all_study_names() == ["autumn", "spring"]
    with pytest.raises(UnknownNameError, match="the nearest are spring"):
        load_study("sprong")
    delete_study("autumn")
    with pytest.raises(UnknownNameError):
        delete_study("autumn")
    assert get_all_study_names() == ["spring"]
    assert "24" in repr(load_study("spring"))


def test_a_study_deleted_under_ones_feet_is_said(tmp_path):
    place = tmp_path / "s.jsonl"
    study = fresh(storage=place)
    delete_study("s", place)
    with pytest.raises(StorageError):
        study.ask()
    fresh(storage=place)
    with pytest.raises(StorageError):
        study.ask()


def test_the_encoding_of_the_table_is_kept(tmp_path):
    path = tmp_path / "arms.csv"
    path.write_text("code,width,body\na,1,open\nb,3,sedan\nc,2,open\n")
    arms = Arms.from_csv(path, id="code", scale="minmax", intercept=True)
    study = create_study(arms, 24, "gse-means")
    features = study.encoding.apply([{"width": 5, "body": "sedan"}])
    assert features.tolist() == [[1.0, 2.0, 1.0]]
    study.add_arms(Arms.from_arrays(features, ids=["d"], names=arms.names))
    assert study.arms == ("a", "b", "c", "d")


@pytest.mark.parametrize("cost", [(1.0, 1.0, 1.0, 1.0), (2.0, 1.0, 4.0, 0.5)])
def test_a_value_of_a_refunded_trial_takes_its_price_again_while_the_budget_pays_for_it(cost):
    study = fresh(sum(cost), arms=priced(cost))
    batch, price = study.ask().trials, dict(zip("abcd", cost, strict=True))
    first, second = batch[:2]
    study.fail(first, "slow")
    study.hand_back(second.id)
    spent = study.spent
    assert study.tell({first.id: 1.0, second.id: 1.0}) == 2
    assert study.spent == spent + price[first.arm] + price[second.arm] == study.budget
    assert study.tell({first.id: 1.0}) == 0
    study.exclude(first.id, again=True)
    assert study.spent == study.budget - price[first.arm]
    assert study.restore(first.id) == 1
    assert study.spent == study.budget
    study.tell({trial.id: 1.0 for trial in batch})
    assert study.ask() is None  # what was to be asked again cannot be paid for any more
    assert load_study(study.name, study.storage).spent == study.budget


def test_a_late_value_that_nothing_is_left_for_is_kept_and_costs_nothing():
    study = create_study(np.eye(3), 6, "uniform", seed=1)
    batch = study.ask().trials
    study.fail(batch[0], "slow")
    again = study.ask().trials
    assert study.tell(batch[0], 1.0) == 1
    assert study.spent == study.budget
    study.tell({trial.id: 1.0 for trial in (*batch, *again)})
    assert (study.state.total, study.spent, study.ask()) == (7, 6, None)


def test_restoring_what_was_to_be_asked_again_leaves_nothing_to_ask_beyond_the_budget():
    study = create_study(np.eye(3), 6, "uniform", seed=1)
    batch = study.ask().trials
    study.tell(batch[0], 1.0)
    study.exclude(batch[0].id, again=True)
    study.restore(batch[0].id)
    while more := study.ask():
        study.tell(more, [1.0] * len(more))
    assert study.spent == study.budget


def test_a_result_without_a_trial_counts_once_by_its_id_and_with_each_call_without_one():
    study = fresh()
    assert study.tell(arm="a", values=1.0, id="x1") == 1
    assert study.tell(arm="a", values=1.0, id="x1") == 0
    with pytest.raises(InputError, match=r"'x1' is of arm 'a' in the log; given 'b': exclude that one"):
        study.tell(arm="b", values=1.0, id="x1")
    with pytest.raises(InputError, match="'x1' is of arm 'a' in the log"):
        study.tell(arm="b", values=2.0, id="x1", correct=True)
    assert [study.tell(arm="a", values=[1, 2]) for _ in range(2)] == [2, 2]
    assert [study.import_results([("b", 1.0)]) for _ in range(2)] == [1, 1]
    assert totals(study) == {"a": (5, 7.0), "b": (2, 2.0), "c": (0, 0.0), "d": (0, 0.0)}


def test_whoever_names_no_storage_is_told_how_to(monkeypatch):
    monkeypatch.delenv("BESTARM_STORAGE", raising=False)
    with pytest.raises(StorageError, match="say where studies are kept: storage=, or set BESTARM_STORAGE"):
        load_study("own")
    with pytest.raises(StorageError, match=r"there is none at all$"):
        load_study("own", Memory())
