"""What is added to every reward is taken off every estimate, and costs no digits: 1e9 leaves rewards seven of them.

Where zero is, is something to know: `auto` also holds lines through zero. So problems here lie well off it to begin
with.
"""

import warnings

import numpy as np
import pytest
from click.testing import CliRunner

from bestarm import Bandit, Bernoulli, Gaussian, Poisson, Tape, Totals, catalog, create_study, load_study, play, run
from bestarm.bandits import Stream, StudentT, Uneven
from bestarm.cli import main
from bestarm.core import Pulls, Tally
from bestarm.linalg import Candidates, tally
from bestarm.models.linear import Linear
from bestarm.models.means import Means
from bestarm.noise import Shifted

OFFSETS = (1e6, 1e9, -1e9)
BASE = 10.0  # of all means
POLICIES = {"auto": None, "gse-auto": None, "gse-lin": "linear", "sequential-halving": "means"}


def problem(rng, *batch, arms=12):
    """Return features `(..., K, 3)`, a constant among them, and means."""
    x = rng.standard_normal((*batch, arms, 3))
    x[..., 2] = 1.0
    theta = rng.standard_normal((*batch, 3, 1)) + [[0.0], [0.0], [BASE]]
    return x, (x @ theta)[..., 0]


@pytest.mark.parametrize("world", ["draws", "stream", "tape"])
@pytest.mark.parametrize("name", ["auto", "gse-auto", "ocba"])
def test_a_batch_pulls_the_same_arms_wherever_rewards_lie(name, world, rng):
    x, means = problem(rng, 40)
    noise = rng.standard_normal((*means.shape, 150))

    def made(offset):
        bandit = Bandit(x, means + offset, Gaussian(1.0))
        tape = Tape.of(x, (means + offset)[..., None] + noise, 1.0)
        course = play(catalog.policy(name), {"draws": bandit, "stream": Stream(bandit, 3), "tape": tape}[world], 150, 5)
        return course.arm, course.counts

    arm, counts = made(0.0)
    for offset in OFFSETS:
        same_arm, same_counts = (np.mean(b) for b in zip(*_agree((arm, counts), made(offset)), strict=True))
        assert same_arm >= 0.95, offset
        assert same_counts >= 0.9, offset  # the offset rounds rewards, and a tie may fall the other way


def _agree(one, two):
    return [(a == b, np.array_equal(m, n)) for a, m, b, n in zip(*one, *two, strict=True)]


def told(policy, offset, direction, seed=2):
    """Return the answer of a study that was told every value."""
    rng = np.random.default_rng(seed)
    x, means = problem(rng, arms=8)
    how = {"model": POLICIES[policy], "direction": direction, "seed": seed, "batch": 5}
    study = create_study(x, 100, policy, **how)
    while (batch := study.ask()) is not None:
        noise = rng.standard_normal(len(batch))
        at = [study.state.places[trial.arm] for trial in batch]
        study.tell(batch, means[at] + offset + noise)
    return study.recommend(), study.state.counts


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_study_gives_the_same_answer_wherever_values_lie(policy, direction):
    answer, counts = told(policy, 0.0, direction)
    for offset in OFFSETS:
        _is_moved(told(policy, offset, direction), (answer, counts), offset)


def _is_moved(found, before, offset):
    (answer, counts), (first, others) = found, before
    width = first.interval[1] - first.interval[0]
    assert counts == others
    assert (answer.arm, answer.runner_up, answer.warnings) == (first.arm, first.runner_up, first.warnings)
    for name in ("value", "corrected", "interval"):
        moved = np.asarray(getattr(answer, name)) - offset
        np.testing.assert_allclose(moved, getattr(first, name), rtol=0, atol=1e-5 * width)
    np.testing.assert_allclose(answer.expected_regret, first.expected_regret, rtol=0, atol=1e-5 * width)
    np.testing.assert_allclose(list(answer.chances.values()), list(first.chances.values()), rtol=0, atol=1e-3)


@pytest.mark.parametrize("minimize", [[], ["--minimize"]])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_simulated_run_gives_the_same_answer_and_reads_it_again(policy, minimize, rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, means = problem(rng, arms=6)

    def made(offset):
        rows = [f"{a!r},{b!r},{m!r}" for (a, b), m in zip(x[:, :2].tolist(), (means + offset).tolist(), strict=True)]
        (tmp_path / "arms.csv").write_text("\n".join(["one,two,mean", *rows]))
        log = f"{offset:g}.jsonl"
        how = ["--budget", 240, "--policy", policy, "--seed", 1, "--intercept", "--simulate", "mean", "--log", log]
        how += ["--noise-variance", 1.0, *minimize, *(["--rounds", 4] if policy == "auto" else [])]
        how += ["--model", POLICIES[policy]] if POLICIES[policy] else []
        done = CliRunner().invoke(main, ["run", "arms.csv", *map(str, how)])
        assert done.exit_code == 0, done.output
        study = load_study("run", tmp_path / log)
        return study.recommend(), study.state.counts

    before = made(0.0)
    for offset in OFFSETS:
        _is_moved(made(offset), before, offset)


def test_a_simulated_run_estimates_the_same_noise_wherever_rewards_lie(rng, tmp_path):
    x, means = problem(rng, arms=6)
    found = {}
    for offset in (0.0, *OFFSETS):
        world = Bandit(x, means + offset, Gaussian(4.0))
        answer = run(x, 240, world, "auto", rounds=4, seed=1, log=tmp_path / f"{offset:g}.jsonl")
        found[offset] = answer, load_study("run", tmp_path / f"{offset:g}.jsonl").state.counts
    for offset in OFFSETS:
        _is_moved(found[offset], found[0.0], offset)


NOISES = {"normal": Gaussian(1.0), "heavy": StudentT(1.0), "uneven": Uneven(np.array([[1.0, 4.0, 0.25]]))}


@pytest.mark.parametrize("noise", NOISES)
def test_worlds_know_how_far_rewards_scatter_wherever_they_lie(noise):
    means, pulls = np.array([[0.0, 1.0, 2.0]]), Pulls(np.array([[0, 1, 2]]), np.array([[7, 1, 0]]))
    one, far = (
        Bandit(np.eye(3)[None], means + offset, NOISES[noise]).pull(pulls, None, np.random.default_rng(1))
        for offset in (0.0, 1e9)
    )
    np.testing.assert_array_equal(one.scatter, far.scatter)
    by_squares = Tally(pulls.times, one.sums, one.squares).within
    np.testing.assert_allclose(one.scatter, by_squares, atol=1e-12)
    lowered = Bandit(np.eye(3)[None], means, Shifted(NOISES[noise], 1e9)).pull(pulls, None, np.random.default_rng(1))
    np.testing.assert_array_equal(one.scatter, lowered.scatter)


def test_a_tally_adds_up_as_all_rewards_together_do(rng):
    rewards = [rng.standard_normal((3, n)) + 1e9 for n in (1, 4, 9)]

    def of(values):
        each = ((values - values.mean(-1, keepdims=True)) ** 2).sum(-1)
        return Tally(np.full(3, float(values.shape[-1])), values.sum(-1), (values**2).sum(-1), each)

    together, added = of(np.concatenate(rewards, axis=-1)), of(rewards[0]) + of(rewards[1]) + of(rewards[2])
    np.testing.assert_allclose(added.within, together.within, rtol=1e-6)
    at = 1e9 + np.array([0.5, -1.0, 0.0])
    every = np.concatenate(rewards, axis=-1) - at[:, None]
    np.testing.assert_allclose(added.residual(at), (every**2).sum(-1), rtol=1e-6)
    moved = added.about(1e9)
    np.testing.assert_allclose(moved.squares, ((every + at[:, None] - 1e9) ** 2).sum(-1), rtol=1e-6)
    np.testing.assert_allclose(added.level, np.concatenate(rewards, axis=-1).mean(), rtol=1e-15)


def test_an_arm_named_twice_scatters_as_its_rewards_together(rng):
    rewards = rng.standard_normal(5) + 1e9
    pulls, totals = Pulls(np.array([1, 1, 0]), np.array([2, 2, 1])), [rewards[:2], rewards[2:4], rewards[4:]]
    known = tally(
        pulls,
        Totals(*np.array([[r.sum(), (r**2).sum(), ((r - r.mean()) ** 2).sum()] for r in totals]).T),
        3,
    )
    np.testing.assert_allclose(known.within, [0, 4 * rewards[:4].var(), 0], rtol=1e-6)


def test_totals_of_two_parts_say_all_there_is_of_wins_and_counts(rng):
    for noise, means in ((Bernoulli(), [0.2, 0.9]), (Poisson(), [3.0, 0.5])):
        found = Bandit(np.eye(2), np.array(means), noise).pull(Pulls(np.arange(2), np.array([9, 4])), None, rng)
        assert found.scatter is None
        known = tally(Pulls(np.arange(2), np.array([9, 4])), found, 2)
        np.testing.assert_allclose(known.within, found.squares - found.sums**2 / [9, 4], atol=1e-12)


@pytest.mark.parametrize("model", [Means(), Linear()])
def test_standard_errors_and_tests_of_fit_are_the_same_wherever_rewards_lie(model, rng):
    x, means = problem(rng, arms=7)
    rewards = means[:, None] + rng.standard_normal((7, 5))

    def of(offset):
        values = rewards + offset
        scatter = ((values - values.mean(-1, keepdims=True)) ** 2).sum(-1)
        known = Tally(np.full(7, 5.0), values.sum(-1), (values**2).sum(-1), scatter)
        candidates = Candidates.of(x)
        fit = model.fit(candidates, known)
        check = model.check(x, known, None)
        return model.standard_error(candidates, known, fit, None), check.statistic, check.p, check.words

    error, statistic, p, words = of(0.0)
    for offset in OFFSETS:
        found = of(offset)
        np.testing.assert_allclose(found[0], error, rtol=1e-5)
        if statistic is not None:
            np.testing.assert_allclose(found[1:3], [statistic, p], rtol=1e-5)
        assert found[3] == words


def test_rewards_without_noise_are_as_certain_far_from_zero(rng):
    x, means = problem(rng, arms=6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for offset in (0.0, *OFFSETS):
            course = play(catalog.policy("auto"), Bandit(x, means + offset, Gaussian(0.0)), 60, 1)
            assert int(course.arm) == int(np.argmax(means))
