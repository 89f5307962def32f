"""SHVar and SHAdaVar: shares by hand, the stages of halving, stages too short to estimate a variance in."""

import numpy as np
import pytest

from bestarm import catalog
from bestarm.bandits import Bandit, Gaussian, Tape
from bestarm.core import Problem, Tally
from bestarm.errors import InputError
from bestarm.playing import play
from bestarm.policies.classics import NoPrior
from bestarm.policies.sequential import BestActive, Sequential
from bestarm.policies.variances import KnownVariances, OfAllPulls, OfStage, UpperVariances, VarianceHalving


def shvar(*values):
    return Sequential(VarianceHalving(KnownVariances(values)), NoPrior(), final=BestActive())


def counts_of_a_stage(policy, arms, pulls):
    """Return the pulls of each arm in the first stage, when it has `pulls`."""
    stages = max(1, (arms - 1).bit_length())
    problem = Problem(np.ones((arms, 1)), pulls * stages, 1.0)
    tape = Tape.draw(Bandit(problem.features, np.zeros(arms), Gaussian(1.0)), problem.budget, np.random.default_rng(1))
    counts = []
    play(policy, tape, problem.budget, 1, lambda done: counts.append(int(np.ravel(done.pulls.arms)[0])))
    return np.bincount(counts[:pulls], minlength=arms).tolist()


@pytest.mark.parametrize(("values", "pulls", "wanted"), [((1, 4), 50, [10, 40]), ((1, 2, 4, 8), 100, [7, 14, 27, 52])])
def test_a_stage_is_shared_by_variance(values, pulls, wanted):
    assert counts_of_a_stage(shvar(*values), len(values), pulls) == wanted


def test_every_arm_has_its_share_of_a_stage(rng):
    """N_k ≥ (n − |A|) σ_k² / Σ σ², which the bound rests on."""
    values = rng.uniform(0.1, 5, 8)
    counts = np.array(counts_of_a_stage(shvar(*values), 8, 200))
    assert (counts >= (200 - 8) * values / values.sum() - 1e-9).all()


def test_with_equal_variances_it_is_sequential_halving():
    rounds = []
    bandit = Bandit(np.ones((16, 1)), np.arange(16.0), Gaussian(0.0))
    run = play(catalog.policy("shvar"), bandit, 330, 1, lambda done: rounds.append(done.after.memory.active.sum()))
    assert [rounds[j] for j in (81, 163, 245, 329)] == [8, 4, 2, 1]
    assert rounds[80] == 16
    halving = play(catalog.policy("sequential-halving"), bandit, 330, 1)
    assert run.arm == halving.arm == 15
    assert np.abs(run.counts - halving.counts).max() <= 4 + 2  # within one a stage, and two left over
    assert run.counts.sum() == 330


def test_upper_variances():
    """n = 14 is inflated 25-fold, 20 by 4.9, 50 by 2.0; before z = 13 pulls nothing is known."""
    assert UpperVariances().least() == 13
    counts = np.array([14.0, 20.0, 50.0, 12.0, 1.0, 0.0])
    tally = Tally(counts, np.zeros(6), np.maximum(counts - 1, 0))
    found = UpperVariances().variances(tally, tally)
    assert found[:3].round(1).tolist() == [25.1, 4.9, 2.0]
    assert np.isinf(found[3:]).all()


def test_the_bound_holds_as_often_as_it_says(rng):
    """U is above σ² in 1 − δ of samples at least."""
    draws = rng.standard_normal((20_000, 20))
    tally = Tally(np.full(20_000, 20.0), draws.sum(-1), (draws**2).sum(-1))
    for delta in (0.02, 0.05):
        assert (UpperVariances(delta).variances(tally, tally) >= 1).mean() > 1 - delta


def test_all_pulls_may_be_pooled():
    stage, everything = Tally(*np.ones((3, 1))), Tally(*np.full((3, 1), 2.0))
    assert OfStage().of(stage, everything) is stage
    assert OfAllPulls().of(stage, everything) is everything


def test_noisier_arms_are_pulled_more(rng):
    features = np.broadcast_to(np.eye(4), (50, 4, 4))
    rewards = rng.standard_normal((50, 4, 1000)) * np.sqrt([9.0, 9.0, 1.0, 1.0])[:, None]
    run = play(catalog.policy("shadavar"), Tape.of(features, rewards, 1.0), 800, 1)
    assert run.state.memory.short == ()
    stage = run.counts.mean(axis=0)
    assert stage[:2].min() > 1.5 * stage[2:].max()


def test_a_stage_too_short_is_equal_and_told():
    """K = 64 at 20 pulls an arm: the first three of six stages have fewer than 14 for each."""
    bandit = Bandit(np.ones((64, 1)), np.arange(64.0), Gaussian(1.0))
    run = play(catalog.policy("shadavar"), bandit, 1280, 1)
    assert run.state.memory.short == (0, 1, 2)
    assert run.counts.min() == 1280 // 6 // 64


@pytest.mark.parametrize("name", ["shvar", "shadavar"])
@pytest.mark.parametrize("budget", [1, 3, 7, 13])
def test_small_budgets_go_to_arms_at_random(name, budget, rng):
    means = np.broadcast_to(np.arange(8.0), (400, 8))
    run = play(catalog.policy(name), Bandit(np.ones((400, 8, 1)), means, Gaussian(1e-6)), budget, rng)
    assert (run.counts.sum(axis=-1) == budget).all()
    if budget < 8:
        assert run.counts.max() == 1
        seen = np.where(run.counts > 0, np.arange(8), -1).max(axis=-1)
        assert (run.arm == seen).all()
        assert (run.counts.mean(axis=0) > budget / 8 - 0.13).all()  # five standard errors


def test_variances_must_fit():
    with pytest.raises(InputError, match="2 variances are given for 3 arms"):
        shvar(1.0, 2.0).start(Problem(np.eye(3), 30))
    with pytest.raises(InputError, match="that of arm 1 is 0"):
        KnownVariances((1.0, 0.0))
    with pytest.raises(InputError, match="delta"):
        UpperVariances(0.0)
