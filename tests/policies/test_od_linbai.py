"""OD-LinBAI: the table of m, a budget that is never exceeded, one round in the plane, corner cases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bestarm import catalog, instances
from bestarm.bandits import Bandit, Gaussian, Tape
from bestarm.core import Problem, Pulls, Tally, Totals
from bestarm.designs.ascent import Ascent
from bestarm.designs.trim import Trimmed
from bestarm.errors import BudgetError, InputError
from bestarm.models.linear import Linear
from bestarm.playing import play
from bestarm.policies.elimination import Elimination
from bestarm.policies.schedules import Share, ToLastRound, YangTan, apportion

DESIGN = Trimmed(Ascent())
OD = Elimination(Linear(), DESIGN, YangTan())
SPEND = Elimination(Linear(), DESIGN, YangTan(ToLastRound()))

# (B, K, d), m, R: algorithms of Yang and Tan (2022), by hand
TABLE = [
    ((25, 8, 2), 22.0, 1),
    ((100, 64, 10), 8.75, 4),
    ((200, 64, 10), 33.75, 4),
    ((500, 64, 10), 108.75, 4),
    ((320, 16, 16), 72.5, 4),
    ((160, 8, 7), 146 / 3, 3),
]


@pytest.mark.parametrize(("cell", "m", "rounds"), TABLE)
def test_m_is_that_of_the_paper(cell, m, rounds):
    budget, arms, d = cell
    shares = YangTan().shares(arms, d, budget)
    assert len(shares) == rounds
    assert all(pulls == pytest.approx(m) for pulls, _ in shares)
    assert [keep for _, keep in shares] == [int(np.ceil(d / 2**r)) for r in range(1, rounds + 1)]


@given(d=st.integers(1, 300), extra=st.integers(0, 500), more=st.integers(-5, 5000))
def test_rounds_shrink_to_one_arm_or_say_what_they_need(d, extra, more):
    arms = d + extra
    if arms == 1:
        assert YangTan().shares(1, 1, 1) == ()
        return
    with pytest.raises(BudgetError) as caught:
        YangTan().shares(arms, d, 1)
    least = caught.value.least
    if more <= 0:
        with pytest.raises(BudgetError):
            YangTan().shares(arms, d, least - 1)
    shares = YangTan().shares(arms, d, least + max(more, 0))
    assert shares[-1][1] == 1
    assert all(pulls > 0 for pulls, _ in shares)
    assert shares[0][1] == -(-d // 2)  # all but d/2 arms leave in the first round


@settings(deadline=None, max_examples=60)
@given(arms=st.integers(1, 70), d=st.integers(1, 8), more=st.integers(0, 200), seed=st.integers(0, 10**6))
def test_rounding_up_never_exceeds_the_budget(arms, d, more, seed):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((arms, d))
    bandit = Bandit(features, features[:, 0], Gaussian(1.0))
    budget = 1
    try:
        OD.start(Problem(features, 1))
    except BudgetError as error:
        budget = error.least
    budget += more
    asked = []
    run = play(OD, bandit, budget, rng, asked.append)
    for r in asked:  # the inequality the choice of m rests on, before any clipping to the budget
        assert r.pulls.total <= np.ceil(r.before.stages[0].pulls) + np.count_nonzero(r.pulls.times)
    assert run.counts.sum() <= budget
    spent = play(SPEND, bandit, budget, rng).counts.sum()
    assert spent == (budget if arms > 1 else 0)


def test_in_the_plane_it_is_one_g_optimal_round(rng):
    bandit = instances.corner(12, replications=50, rng=3).shuffled(rng)
    tape = Tape.draw(bandit, 60, rng)
    rounds = []
    run = play(OD, tape, 60, 1, rounds.append)
    assert len(rounds) == 1
    candidates = rounds[0].before.candidates
    m = 60 - 3
    np.testing.assert_array_equal(rounds[0].pulls.times, np.ceil(m * DESIGN.weights(candidates) - 1e-9))
    pulls, totals = rounds[0].pulls, rounds[0].totals
    tally = Tally(pulls.times.astype(float), totals.sums, totals.squares)
    np.testing.assert_array_equal(run.arm, np.argmax(Linear().fit(candidates, tally).mean, axis=-1))


def test_on_the_line_the_longest_arm_is_pulled_and_the_sign_decides():
    features = np.array([[0.5], [-2.0], [1.0], [0.0]])
    for theta, best in ((1.0, 2), (-1.0, 1)):
        run = play(OD, Bandit(features, features[:, 0] * theta, Gaussian(0.0)), 10, 1)
        assert run.counts.tolist() == [0, 9, 0, 0]
        assert run.arm == best


def test_as_many_arms_as_dimensions_are_pulled_alike():
    rounds = []
    play(OD, instances.static(0.5, arms=8), 200, 1, rounds.append)
    assert len(set(rounds[0].pulls.times.tolist())) == 1


def test_whole_numbers_are_not_rounded_up():
    """On a basis of d = 4 the budget makes m π = 3 exactly; an error of 1e-12 in π must not cost four pulls."""

    class Shaky:
        def weights(self, candidates, targets=None):
            return np.full(4, 0.25) + np.array([1e-12, -1e-12, 1e-12, -1e-12])

    policy = Elimination(Linear(), Shaky(), YangTan())
    pulls = policy.ask(policy.start(Problem(np.eye(4), 30)), np.random.default_rng())
    assert policy.start(Problem(np.eye(4), 30)).stages[0] == Share(12.0, 2)
    assert pulls.times.tolist() == [3, 3, 3, 3]


def test_telling_more_than_was_planned_is_refused(rng):
    run = play(OD, instances.corner(5, rng=1), 30, rng)
    with pytest.raises(InputError, match="over"):
        OD.tell(run.state, Pulls(np.array([0]), np.array([1])), Totals(np.zeros(1), np.zeros(1)))


def test_dropped_samples_do_no_harm(rng):
    bandit = instances.randomized(20, 5, rng=1)
    state = OD.start(Problem(bandit.features, 200))
    while (pulls := OD.ask(state, rng)) is not None:
        done = Pulls(pulls.arms, pulls.times // 2)
        state = OD.tell(state, done, bandit.pull(done, None, rng))
    assert state.spent < 100
    assert 0 <= int(OD.recommend(state)) < 20


@given(arms=st.integers(1, 30), pulls=st.integers(0, 1000), seed=st.integers(0, 10**6))
def test_apportioned_pulls_add_up_and_stay_within_one(arms, pulls, seed):
    weights = np.random.default_rng(seed).dirichlet(np.ones(arms))
    times = apportion(weights, np.array(pulls))
    assert times.sum() == pulls
    assert (np.abs(times - pulls * weights) < 1 + 1e-6).all()


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("bandit", "budget", "accuracy"),
    [
        (lambda r, g: instances.static(0.5, replications=r), 320, 0.736),
        (lambda r, g: instances.randomized(64, noise_variance=1.0, replications=r, rng=g), 500, 0.758),
        (lambda r, g: instances.corner(64, replications=r, rng=g), 50, 0.929),
    ],
    ids=["static", "randomized", "corner"],
)
def test_accuracy_is_that_of_an_independent_implementation(bandit, budget, accuracy):
    rng = np.random.default_rng(11)
    truth = bandit(1000, rng).shuffled(rng)
    ours = truth.correct(play(OD, truth, budget, rng).arm).mean()
    error = np.sqrt(2 * accuracy * (1 - accuracy) / 1000)  # of a difference of two such numbers
    assert abs(ours - accuracy) < 4.9 * error  # fails by chance once in a million


@pytest.mark.parametrize("name", ["od-linbai", "od-linbai-spend", "gse-lin-fwg-azizi2021", "gse-lin-cluster"])
def test_replications_of_several_ranks_answer_as_each_alone(name, rng):
    """A stack of arms of rank 5, 2, 1 and 5, twins among them, as draws with replacement from a table give."""
    full, other = rng.standard_normal((2, 12, 5))
    flat = rng.standard_normal((12, 2)) @ rng.standard_normal((2, 5))
    line = np.outer(rng.standard_normal(12), rng.standard_normal(5))
    twins = np.repeat(other[:6], 2, axis=0)
    features = np.stack([full, flat, line, twins])
    tape = Tape.draw(Bandit(features, features @ rng.standard_normal(5), Gaussian(1.0)), 240, rng)
    policy = catalog.policy(name)
    together = play(policy, tape, 240, Still(0.25))
    for row in range(4):
        alone = play(policy, Tape(features[row], tape.sums[row], tape.squares[row], 1.0), 240, Still(0.25))
        assert alone.arm == together.arm[row]
        np.testing.assert_array_equal(alone.counts, together.counts[row])


def test_a_stack_of_several_ranks_stands_as_its_rows(rng):
    features = np.stack([rng.standard_normal((8, 4)), rng.standard_normal((8, 1)) @ rng.standard_normal((1, 4))])
    run = play(OD, Bandit(features, features[..., 0], Gaussian(1.0)), 100, rng)
    assert OD.describe(run.state).active.sum(axis=-1).tolist() == [1, 1]
    assert run.state.best.shape == (2,)
    assert OD.start(Problem(features[None], 100)).best.shape == (1, 2)


class Still(np.random.Generator):
    """A generator whose draws are all the same, in a stack or alone."""

    def __init__(self, value):
        super().__init__(np.random.PCG64(7))
        self.value = value

    def spawn(self, n_children):
        return [self] * n_children

    def random(self, size=None):
        ladder = np.linspace(0.0, 0.9, np.shape(np.empty(size))[-1])
        return np.broadcast_to(ladder, size)
