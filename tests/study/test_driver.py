"""The policy's side of a study: told the logged plans with what came back, it asks what it would have asked anyway."""

from typing import Any

import numpy as np
import pytest

from bestarm import catalog
from bestarm.core import Pulls, Totals
from bestarm.errors import BestArmError
from bestarm.playing import play
from bestarm.policies.elimination import Elimination
from bestarm.study import create_study, load_study, open_storage
from bestarm.study.driver import Driver, PolicyFailed, policy_at_work
from bestarm.study.plans import asked_of

FEATURES = np.random.default_rng(2).standard_normal((7, 3))
MEANS = FEATURES @ [0.6, -0.4, 0.3]


def plan_of(record):
    return record.get("plan"), record.get("begin")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("policy", catalog.names())
def test_who_loads_a_study_asks_what_its_first_owner_would_ask(policy, size):
    try:
        study = create_study(FEATURES, 40, policy, seed=3, noise_variance=1.0, batch=size)
    except BestArmError as error:
        pytest.skip(str(error))
    rng = np.random.default_rng(1)
    for step in range(60):
        looked_at = step < 6 or step % 4 == 0  # whoever loads has to tell the policy all that was
        if looked_at and study.sync().round is None and not study.state.over:
            mine = study.driver.question(study.state)
            theirs = Driver().question(load_study(study.name, study.storage).state)
            assert plan_of(mine) == plan_of(theirs)
        batch = study.ask()
        if batch is None:
            break
        study.tell(batch, rng.integers(0, 2, size=len(batch)).astype(float))
    assert study.finished


@pytest.mark.parametrize("sizes", [(1, 4, 9, 2, 16), (16, 1)])
def test_runners_that_come_and_go_change_only_what_comes_next(sizes):
    study = create_study(FEATURES, 60, seed=3)
    rng, before = np.random.default_rng(1), []
    for step in range(40):
        study.join("r", sizes[step % len(sizes)])
        if study.state.round is None and not study.state.over:
            theirs = Driver().question(load_study(study.name, study.storage).state)
            assert plan_of(study.driver.question(study.state)) == plan_of(theirs)
        batch = study.ask()
        if batch is None:
            break
        before += [(trial.id, trial.arm) for trial in batch]
        study.tell(batch, rng.standard_normal(len(batch)))
    again = load_study(study.name, study.storage)
    assert [(row["trial"], row["arm"]) for row in again.trials()] == before
    assert again.spent == 60


def test_reading_and_telling_never_run_the_policy(monkeypatch):
    study = create_study(FEATURES, 30, "gse-lin-fwg", seed=3)
    batch = study.ask()

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("the policy was run")

    monkeypatch.setattr(Driver, "question", never)
    monkeypatch.setattr(Driver, "catch_up", never)
    monkeypatch.setattr(Driver, "_start", never)
    again = load_study(study.name, study.storage)
    again.tell(batch, np.arange(float(len(batch))))
    again.amend(batch.trials[0], 4.0)
    again.exclude(batch.trials[1])
    again.restore(batch.trials[1])
    again.trials()
    again.recommend(draws=50)
    assert not again.pending()


def test_what_is_missing_here_is_no_failure_of_the_policy(monkeypatch):
    for error in (ImportError("no such package"), MemoryError()):
        study = create_study(FEATURES, 30, "gse-lin-fwg", seed=3)
        before = study.sync().records

        def broken(*_: Any, error: Exception = error, **__: Any) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr("bestarm.policies.elimination.Elimination.ask", broken)
            with pytest.raises(BestArmError, match="cannot be run here"):
                study.ask()
        assert study.sync().records == before
        assert study.ask()


@pytest.mark.parametrize("moment", ["start", "ask", "tell"])
@pytest.mark.parametrize("times", [1, 2, 99])
def test_a_policy_that_fails_costs_no_result_and_ends_no_study(monkeypatch, moment, times):
    study = create_study(FEATURES, 40, "gse-lin-fwg", seed=3)
    first = study.ask()
    study.tell(first, MEANS[[study.state.ids.index(trial.arm) for trial in first]])
    right, left = getattr(Elimination, moment), [times]

    def sometimes(self, *given):
        if left[0] > 0:
            left[0] -= 1
            raise np.linalg.LinAlgError("singular matrix")
        return right(self, *given)

    monkeypatch.setattr(Elimination, moment, sometimes)
    other = load_study(study.name, study.storage)
    while (batch := other.ask()) is not None:
        other.tell(batch, MEANS[[other.state.ids.index(trial.arm) for trial in batch]])
    state = load_study(study.name, study.storage).state
    assert state.used == state.budget == state.total == 40
    assert 1 <= len(state.troubles) <= 3
    assert "policy failed: LinAlgError: singular matrix" in state.troubles[0]
    twice_running = times == 2 and moment != "tell"  # it never got to ask in between
    assert state.evenly == (times == 99 or twice_running)
    assert any("policy failed" in warning for warning in other.recommend(draws=200).warnings)
    assert other.best_arm == state.ids[int(np.argmax(MEANS))]


@pytest.mark.parametrize("policy", ["auto", "top-two-lin", "uniform"])
@pytest.mark.parametrize("lost", [1, 3])
def test_what_failed_joins_the_next_plate_and_no_plate_is_of_a_few_wells(policy, lost):
    settings = {"batch": 12, "noise_variance": 1.0, "seed": 2, "storage": open_storage(None)}
    study = create_study(FEATURES, 60, policy, **settings)
    sizes = []
    while (batch := study.ask()) is not None:
        sizes.append(len(batch))
        trials = list(batch)
        for trial in trials[:lost] if len(sizes) in (1, 3) else ():
            study.fail(trial, "dried out")
            trials.remove(trial)
        study.tell({trial.id: float(MEANS[study.state.ids.index(trial.arm)]) for trial in trials})
    assert sizes[:5] == [12] * 5
    assert sum(sizes) == 60 + 2 * lost
    assert study.spent == 60 == study.state.total


@pytest.mark.parametrize("settings", [{"batch": 6}, {"plate": "2x3"}])
def test_what_failed_is_made_with_the_next_plate_of_the_same_round(settings):
    study = create_study(FEATURES, 24, "uniform", seed=2, storage=open_storage(None), **settings)
    plates, failed = [], []
    while (batch := study.ask()) is not None:
        trials = list(batch)
        assert {*failed} <= {trial.arm for trial in trials[: len(failed)]}
        plates.append(len(trials))
        failed = [trial.arm for trial in trials[:2]] if len(plates) in (1, 2) else []
        for trial in trials[: len(failed)]:
            study.fail(trial, "dried out")
        study.tell({trial.id: 1.0 for trial in trials[len(failed) :]})
    assert plates == [6, 6, 6, 6, 4]
    assert study.spent == 24 == study.state.total
    asked = study.state.counts
    assert asked == load_study(study.name, study.storage).state.counts
    assert max(asked) - min(asked) <= 1  # each arm as often as planned


def test_a_runner_makes_what_failed_at_the_end_of_the_round():
    study = create_study(FEATURES, 12, "uniform", batch=6, seed=2, storage=open_storage(None))
    failed = study.ask(3, runner="r").trials[0]
    study.fail(failed, "timeout")
    assert study.ask(runner="r").trials[0].arm != failed.arm
    assert study.state.round.plan[-1] == study.state.arm_of(1)


def test_before_the_policy_was_told_anything_the_results_speak():
    study = create_study(FEATURES, 40, "gse-lin-fwg", batch=4, storage=open_storage(None), seed=3)
    batch = study.ask()
    study.tell({trial.id: float(MEANS[study.state.ids.index(trial.arm)]) for trial in batch})
    assert study.state.round is not None
    assert study.best_arm == study.recommend(draws=500).leader


def test_a_policy_that_asks_nonsense_has_failed():
    with pytest.raises(PolicyFailed, match="InputError"), policy_at_work():
        asked_of(Pulls(np.array([9]), np.array([1])), [0, 1])


def test_a_study_of_one_round_asks_what_a_game_asks():

    policy = catalog.policy("sequential-halving")
    asked: list[Any] = []

    class World:
        features, noise_variance = FEATURES, 1.0

        def pull(self, pulls, counts, rng):
            asked.append([[int(a), int(t)] for a, t in zip(pulls.arms, pulls.times, strict=True) if t])
            return Totals(MEANS[pulls.arms] * pulls.times, MEANS[pulls.arms] ** 2 * pulls.times)

    play(policy, World(), 42, 5)
    study = create_study(FEATURES, 42, policy, seed=5, storage=open_storage(None))
    while (batch := study.ask()) is not None:
        study.tell(batch, MEANS[[study.state.ids.index(trial.arm) for trial in batch]])
    plans = [record["plan"] for record in study.storage.read(study.name) if "plan" in record]
    assert [sorted(plan) for plan in plans] == [sorted(plan) for plan in asked]
