"""Who is ahead is found out in a share of the time, and is what the answer says."""

import numpy as np

from bestarm import Bandit, Gaussian, create_study
from bestarm.study import watching
from bestarm.study.running import simulate
from bestarm.study.watching import SHARE, Watch

FEATURES = np.eye(5)
WORLD = Bandit(FEATURES, np.arange(5.0), Gaussian(1.0))


def test_who_is_ahead_is_who_the_answer_names():
    study = create_study(FEATURES, 60, seed=1, noise_variance=1.0)
    simulate(study, WORLD)
    watch, answer = Watch(study, True), study.recommend()
    watch.look()
    arm, chance = watch.words.removeprefix("ahead: ").split(", ")
    assert arm == answer.arm
    assert abs(float(chance.strip("over %")) / 100 - answer.p_best) < 0.1


def test_at_most_a_share_of_the_time_goes_into_looking(monkeypatch):
    now, spent = [0.0], [0.0]

    def slowly(*_, **__):
        now[0] += 2.0
        spent[0] += 2.0
        raise ValueError("nothing can be said")  # which ends nothing

    study = create_study(FEATURES, 5000, seed=1)
    study.tell(arm="1", values=1.0)
    monkeypatch.setattr(watching, "evidence_of", slowly)
    watch = Watch(study, True, lambda: now[0])
    for _ in range(20_000):
        now[0] += 0.01
        study.state.total += 1
        watch.step()
    assert 0 < spent[0] <= 2.0 + SHARE * now[0]
    assert watch.words == ""


def test_nobody_looks_where_nothing_is_shown(monkeypatch):
    study = create_study(FEATURES, 50, seed=1)
    seen = []
    monkeypatch.setattr(Watch, "look", lambda self: seen.append(1))
    simulate(study, WORLD)
    assert seen == []
    assert study.finished


def test_each_trial_of_a_simulated_round_is_heard_with_its_average():
    study, heard = create_study(FEATURES, 50, "sequential-halving", seed=1), []
    made = simulate(study, WORLD, on_result=lambda study, trial, value: heard.append((trial.arm, value)))
    assert made == len(heard) > 40
    known = study.state.known(range(5))
    for arm in range(5):
        mine = [value for name, value in heard if name == str(arm + 1)]
        assert len(mine) == known.counts[arm]
        assert np.isclose(sum(mine), known.sums[arm])
