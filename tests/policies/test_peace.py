"""Peace: epochs and halving, what may be measured, agreement with plain code, and where the two widths part."""

import numpy as np
import pytest

from bestarm import instances
from bestarm.bandits import Bandit, Gaussian, Tape
from bestarm.core import Problem, Pulls, Totals
from bestarm.designs.width import GaussianWidth, WorstPair
from bestarm.errors import InputError
from bestarm.linalg import Candidates, moment
from bestarm.playing import play
from bestarm.policies.elimination import AllStages, ThisStage
from bestarm.policies.peace import Exact, Official, Peace
from tests.conftest import AWKWARD, RowOf

RHO = Peace(WorstPair(), Exact(), ThisStage())
WIDTH = Peace(GaussianWidth(), Official(), AllStages())
BOTH = pytest.mark.parametrize("policy", [RHO, WIDTH], ids=["rho", "width"])


def watched(policy, bandit, budget, seed=1):
    rounds = []
    return play(policy, bandit, budget, seed, rounds.append), rounds


@pytest.mark.parametrize(("d", "epochs"), [(2, 2), (4, 3), (5, 4), (16, 5)])
def test_on_a_basis_epochs_are_the_logarithm_of_twice_the_dimension(d, epochs):
    """ρ of a basis is 2d, and the ρ of its halves d: sizes halve too."""
    state = RHO.start(Problem(np.eye(d), 100))
    assert int(state.epochs) == epochs
    _, rounds = watched(RHO, instances.static(5.0, arms=16), 320)
    assert [int(r.after.length) for r in rounds] == [8, 4, 2, 2]
    assert [int(r.pulls.total) for r in rounds] == [64, 64, 64, 128]  # no epoch can follow one with two arms


def test_epochs_as_printed_and_as_coded():
    values = np.array([0.0, 1.0, 2.0, 3.9, 4.0, 32.0, 33.0])
    assert Exact().epochs(values).tolist() == [1, 1, 1, 2, 2, 5, 6]
    assert Official().epochs(values).tolist() == [2, 2, 2, 2, 2, 5, 6]
    assert Official().goal(values).tolist() == [1, 1, 1, 2, 2, 16, 17]


@BOTH
def test_each_epoch_at_least_halves_the_width(policy, rng):
    bandit = instances.randomized(20, 5, noise_variance=1.0, replications=10, rng=2)
    _, rounds = watched(policy, bandit, 400)
    for r in rounds:
        narrowed = r.after.length < r.before.length
        goal = policy.halving.goal(r.before.width) * (1 + policy.width.tolerance)
        assert (r.after.width <= goal)[narrowed].all()
        assert (r.after.length >= 1).all()


@BOTH
def test_the_prefix_kept_is_the_longest(policy):
    bandit = instances.randomized(14, 4, noise_variance=1.0, rng=5)
    _, rounds = watched(policy, bandit, 200)
    first = rounds[0]
    goal = policy.halving.goal(first.before.width) * (1 + policy.width.tolerance)
    arms = Candidates.of(bandit.features)
    fits = [k for k in range(1, 14) if policy.width.solve(arms, first.after.order, np.array(k))[1] <= goal]
    assert int(first.after.length) == max(fits)


def test_arms_out_of_the_race_are_measured_if_they_tell_the_others_apart():
    """Between e_1 and the arm next to it, e_2 tells most."""
    truth = instances.adaptive(8, noise_variance=0.01)
    _, rounds = watched(RHO, truth, 400)
    last = rounds[-1]
    assert set(last.before.order[: int(last.before.length)]) == {0, 7}
    assert last.pulls.times[1] > 0.9 * last.pulls.total


def test_the_fit_rests_on_this_epoch_or_on_all(rng):
    bandit = instances.randomized(10, 3, noise_variance=1.0, rng=1)
    for policy in (RHO, WIDTH):
        run, rounds = watched(policy, bandit, 200)
        told = [r.pulls.times for r in rounds]
        expected = told[-1] if policy is RHO else sum(told)
        np.testing.assert_array_equal(run.state.known.counts, expected)
        x, known = bandit.features, run.state.known
        theta = np.linalg.lstsq(x * np.sqrt(known.counts)[:, None], _means(known) * np.sqrt(known.counts), rcond=None)
        inside = run.state.order[: int(run.state.length)]
        assert run.arm == max(inside, key=lambda i: float(x[i] @ theta[0]))


def _means(known):
    return known.sums / np.maximum(known.counts, 1)


@BOTH
@pytest.mark.parametrize("kind", AWKWARD)
def test_awkward_problems_stay_within_the_budget(policy, kind, rng):
    features = AWKWARD[kind](rng)
    bandit = Bandit(features, features.sum(axis=-1), Gaussian(1.0))
    for budget in (1, 2, 7, 30):
        run = play(policy, bandit, budget, rng)
        assert run.counts.sum() <= budget
        assert (run.counts.sum() == 0) == (len(features) == 1)


@BOTH
def test_replications_do_not_see_each_other(policy, rng):
    """Widths, epochs and lengths differ by replication; each goes its own way, bit for bit."""
    features = rng.standard_normal((5, 9, 3)) * rng.random((5, 1, 3)) ** 3
    tape = Tape.draw(Bandit(features, features[..., 0], Gaussian(1.0)), 90, rng)
    together = drive(policy, tape, 90, np.random.default_rng(4))
    assert len(set(together.length.tolist())) > 1
    for row in range(5):
        alone = Tape(tape.features[row], tape.sums[row], tape.squares[row], tape.noise_variance)
        single = drive(policy, alone, 90, RowOf(np.random.default_rng(4), 5, row))
        np.testing.assert_array_equal(single.order, together.order[row])
        assert single.length == together.length[row]
        assert single.spent == together.spent[row]


def drive(policy, tape, budget, rng):
    state = policy.start(Problem(tape.features, budget, tape.noise_variance))
    taken = np.zeros(tape.features.shape[:-1], dtype=np.int64)
    while (pulls := policy.ask(state, rng)) is not None:
        state = policy.tell(state, pulls, tape.pull(pulls, taken))
        taken = taken + pulls.times  # Peace names every arm, in order
    return state


@BOTH
def test_telling_more_than_was_planned_is_refused(policy):
    run = play(policy, instances.corner(5, rng=1), 30, 1)
    with pytest.raises(InputError, match="over"):
        policy.tell(run.state, Pulls(np.array([0]), np.array([1])), Totals(np.zeros(1), np.zeros(1)))


@BOTH
def test_the_allocation_is_near_the_design(policy, rng):
    bandit = instances.randomized(12, 4, rng=1)
    state = policy.start(Problem(bandit.features, 4000))
    times = policy.ask(state, rng).times
    arms = Candidates.of(bandit.features)
    ideal = np.linalg.inv(moment(arms.coordinates, state.weights)) / times.sum()
    actual = np.linalg.inv(moment(arms.coordinates, times.astype(float)))
    assert np.linalg.eigvals(np.linalg.solve(ideal, actual)).real.max() < 1.1


@pytest.mark.statistics
@BOTH
def test_structure_pays(policy):
    """On 64 arms in ten dimensions Peace finds the best where halving on means does not (0.56, 1000 runs)."""
    rng = np.random.default_rng(7)
    truth = instances.randomized(64, noise_variance=1.0, replications=100, rng=rng).shuffled(rng)
    correct = truth.correct(play(policy, truth, 500, rng).arm).mean()
    assert correct > 0.56 + 4.75 * np.sqrt(0.56 * 0.44 / 100)
