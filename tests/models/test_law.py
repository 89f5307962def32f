"""Laws of laws: a probit law that somebody else wrote runs wherever a model may be given, and says how sure it is."""

import doctest
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm

from bestarm import catalog, create_study, load_study, plan, play, spec
from bestarm.bandits import Bandit, Gaussian, Stream
from bestarm.core import Goal, Tally
from bestarm.designs.spread import Uniform
from bestarm.errors import InputError, RewardError
from bestarm.linalg import Candidates
from bestarm.models.glm import GLM
from bestarm.models.law import BinaryLaw, CountLaw, Custom, Identity, Law, Logistic, Poisson
from bestarm.models.linear import Linear
from bestarm.models.protocols import Fit, Model
from bestarm.policies.elimination import Elimination
from bestarm.policies.likelihood import MaximumLikelihood
from bestarm.rewards import Rewards
from bestarm.study.storage import Memory


@dataclass(frozen=True)
class Probit(BinaryLaw):
    """Chances Φ(z): all that is said of the law is its mean."""

    def value(self, predictor):
        return ndtr(predictor)


@dataclass(frozen=True)
class Softplus(Law):
    """Rewards of any size about log(1 + eᶻ), with a noise variance of their own."""

    def value(self, predictor):
        return np.logaddexp(0, predictor)


@dataclass(frozen=True)
class Doubling(CountLaw):
    """Counts of mean 2ᶻ."""

    def value(self, predictor):
        return np.exp2(predictor)


class Bare:
    """What is no law yet."""

    def value(self, predictor):
        return ndtr(predictor)


@dataclass(frozen=True)
class Falling(BinaryLaw):
    def value(self, predictor):
        return ndtr(-predictor)


class OnlyFits:
    """Somebody else's model that says nothing of its error, and does not derive from `Model`."""

    def fit(self, candidates, tally):
        mean = tally.sums / np.maximum(tally.counts, 1)
        return Fit(mean, mean)


LAWS = {
    "logistic": Logistic(), "poisson": Poisson(), "identity": Identity(), "probit": Probit(), "softplus": Softplus(),
    "doubling": Doubling(), "custom": Custom(np.sinh),
}  # fmt: skip
BY_NUMERICS = {"logistic": BinaryLaw, "poisson": CountLaw, "identity": Law}
POLICY = Elimination(GLM(Probit()), Uniform())
OPTIMIST = catalog.policy("ucb-glm", prior=MaximumLikelihood(Probit()))


def arms(rng, count=8, columns=3):
    return np.hstack([np.ones((count, 1)), rng.standard_normal((count, columns - 1))])


def observed(law, predictor, each, rng):
    """Return what `each` rewards of every arm add up to."""
    counts = np.full(predictor.shape, float(each))
    return Tally(counts, *law.noise(1.0).totals(law.value(predictor), counts.astype(int), rng))


@pytest.mark.parametrize("name", LAWS)
def test_slope_inverse_and_integral_belong_to_the_mean_function(name):
    law, z = LAWS[name], np.linspace(-3, 3, 31)
    steps = np.linspace(0, 1, 20_001)[:, None] * z
    areas = z * ((law.value(steps)[1:] + law.value(steps)[:-1]) / 2).mean(axis=0)
    np.testing.assert_allclose(law.integral(z) - law.integral(0 * z), areas, atol=1e-5)
    np.testing.assert_allclose(law.slope(z), (law.value(z + 1e-4) - law.value(z - 1e-4)) / 2e-4, rtol=1e-5)
    np.testing.assert_allclose([law.inverse(float(mean)) for mean in law.value(z)], z, atol=1e-9)
    low, high = law.limits
    assert np.all((law.value(z) >= low) & (law.value(z) <= high))


@pytest.mark.parametrize("name", BY_NUMERICS)
def test_a_law_of_which_only_the_mean_is_said_agrees_with_the_one_of_the_house(name, rng):
    own, plain = LAWS[name], type("Plain", (BY_NUMERICS[name],), {"value": lambda self, z: LAWS[name].value(z)})()
    x = arms(rng)
    predictor = x @ np.array([0.2, 0.5, -0.4])
    tally = observed(own, predictor, 12, rng)
    for method in ("slope", "integral"):
        one, two = (getattr(law, method)(predictor) for law in (own, plain))
        np.testing.assert_allclose(one - one[0], two - two[0], atol=1e-6)
    one, two = (law.likelihood(np.stack([predictor, 0 * predictor]), tally, 1.0) for law in (own, plain))
    np.testing.assert_allclose(one[0] - one[1], two[0] - two[1], rtol=1e-8)
    np.testing.assert_allclose(own.weight(predictor, 1.0), plain.weight(predictor, 1.0), rtol=1e-5)
    fits = [GLM(law).fit(Candidates.of(x), tally) for law in (own, plain)]
    np.testing.assert_allclose(fits[0].mean, fits[1].mean, atol=1e-5)
    errors = [GLM(law).standard_error(Candidates.of(x), tally, fits[0], 1.0) for law in (own, plain)]
    np.testing.assert_allclose(errors[0], errors[1], rtol=1e-4)


def test_the_likelihood_of_a_probit_law_is_that_of_its_chances(rng):
    z, counts = rng.standard_normal(6), np.full(6, 9.0)
    won = rng.binomial(9, ndtr(z)).astype(float)
    exact = log_ndtr(z) @ won + log_ndtr(-z) @ (counts - won)
    assert Probit().likelihood(z, Tally(counts, won, won), None) == pytest.approx(exact)
    information = norm.pdf(z) ** 2 / (ndtr(z) * ndtr(-z))
    np.testing.assert_allclose(Probit().slope(z) * Probit().weight(z, None), information, rtol=1e-6)


@pytest.mark.parametrize("name", LAWS)
def test_what_a_law_simulates_has_its_mean_and_its_variance(name, rng):
    law, times = LAWS[name], 40_000
    mean = law.value(np.array([0.3, 0.9]))
    for noise in (law.noise(1.5), law.quick_noise(1.5)):
        sums, squares, *_ = noise.totals(mean, np.full(2, times), rng)
        law.check(Tally(np.full(2, float(times)), sums, squares))
        variance = law.variance(mean, 1.5)
        assert np.all(np.abs(sums / times - mean) < 5 * np.sqrt(variance / times))  # 1 in a million
        np.testing.assert_allclose(squares / times - (sums / times) ** 2, variance, rtol=0.1)


@pytest.mark.parametrize("name", ["identity", "logistic", "probit", "softplus", "doubling"])
def test_standard_errors_are_those_of_repetitions(name, rng):
    law, x = LAWS[name], arms(rng, 6)
    predictor = x @ np.array([0.3, 0.4, -0.3])
    wide = np.broadcast_to(predictor, (1500, 6))
    tally, batch = observed(law, wide, 40, rng), Candidates.of(np.broadcast_to(x, (1500, 6, 3)))
    fit = GLM(law).fit(batch, tally)
    said = GLM(law).standard_error(batch, tally, fit, 1.0).mean(axis=0)
    np.testing.assert_allclose(said, fit.mean.std(axis=0), rtol=0.12)  # 6 standard deviations of a deviation of 1500


def test_without_a_known_noise_the_identity_glm_has_the_errors_of_least_squares(rng):
    x = arms(rng)
    tally = observed(Identity(), x @ np.array([0.3, 0.4, -0.3]), 5, rng)
    for noise in (None, 2.5):
        one, two = (
            model.standard_error(Candidates.of(x), tally, Linear().fit(Candidates.of(x), tally), noise)
            for model in (GLM(Identity()), Linear())
        )
        np.testing.assert_allclose(one, two, rtol=1e-6)


@pytest.mark.parametrize("name", ["probit", "softplus", "doubling"])
def test_intervals_of_a_law_of_ones_own_hold_the_means(name):
    rng, law, held = np.random.default_rng(4), LAWS[name], []
    for _ in range(120):
        x = arms(rng)
        predictor = x @ (rng.standard_normal(3) * 0.6)
        belief = GLM(law).posterior(x, observed(law, predictor, 10, rng), None, 400, rng)
        low, high = np.quantile(belief.draws, (0.025, 0.975), axis=0)
        held.append(np.mean((low <= law.value(predictor)) & (law.value(predictor) <= high)))
    assert np.mean(held) == pytest.approx(0.95, abs=5 * np.std(held) / np.sqrt(120) + 0.01)
    assert belief.words.startswith(type(law).__name__)


def test_a_probit_law_plays_against_the_noise_it_gives(rng):
    x = np.broadcast_to(arms(rng, 6), (60, 6, 3))
    means = ndtr(x @ np.array([0.0, 1.5, 0.8]))
    bandit = Bandit(x, means, Probit().noise(None))
    for policy in (POLICY, OPTIMIST):
        run = play(policy, Stream(bandit, 7), 240, 1)
        assert float(np.mean(bandit.regret(run.arm))) < 0.05
    state = play(POLICY, bandit, 240, 1).state
    error = POLICY.standard_error(state)
    assert np.isfinite(error).all()
    assert np.all(error > 0)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_probit_law_runs_in_a_study_that_is_reloaded(direction, tmp_path):
    rng = np.random.default_rng(3)
    x, place = arms(rng, 6), tmp_path / "study.journal"
    chances = ndtr(x @ np.array([0.0, 1.5, 0.8]))
    create_study(x, 120, POLICY, study_name="probit", storage=place, seed=1, direction=direction)
    study = load_study("probit", place, allow="tests")
    while (batch := study.ask()) is not None:
        study.tell(batch, [float(rng.random() < chances[int(trial.arm) - 1]) for trial in batch])
        study = load_study("probit", place, allow="tests")
    answer = study.recommend()
    best = np.argmax(chances) if direction == "maximize" else np.argmin(chances)
    assert int(answer.arm) - 1 == best
    assert 0 <= answer.interval[0] < answer.corrected < answer.interval[1] <= 1
    assert answer.believes == "Probit in 3 coefficients"
    assert study.state.rewards.law == Probit()
    with pytest.raises(RewardError, match="Probit model needs rewards that are 0 or 1"):
        study.tell(arm="1", values=0.5)


def test_a_probit_law_is_planned_for(rng):
    x = arms(rng, 6)
    made = plan(x, GLM(Probit()), gap=0.2, budgets=[60, 240], replications=150, rng=1, n_jobs=1)
    assert list(made.budget) == ["gse-probit-fwg", "sequential-halving", "uniform"]
    few, many = (row["error"] for row in made.curve if row["policy"] == "gse-probit-fwg")
    assert many < few < 0.7
    with pytest.raises(InputError, match="noise_variance must not be given: rewards of the probit model"):
        plan(x, GLM(Probit()), gap=0.2, noise_variance=1.0)
    with pytest.raises(InputError, match="gap must be below 1"):
        plan(x, GLM(Probit()), gap=1.0)
    with pytest.raises(InputError, match="noise_variance is needed"):
        plan(x, GLM(Softplus()), gap=0.2)
    with pytest.raises(InputError, match="does not say which truths are plausible"):
        plan(x, "forest", gap=0.2, noise_variance=1.0)


def test_all_the_same_and_separated_rewards_are_warned_of(rng):
    place = Memory()
    create_study(np.array([[-2.0], [-1.0], [1.0], [2.0]]), 160, POLICY, study_name="probit", storage=place, seed=1)
    study = load_study("probit", place, allow="tests")
    study.tell(arm="4", values=[1.0] * 6)
    assert any("nothing tells the arms apart yet" in words for words in study.recommend().warnings)
    for arm, value in (("1", 0.0), ("2", 0.0), ("3", 1.0), ("4", 1.0)):
        study.tell(arm=arm, values=[value] * 30)
    assert any("separate successes from failures" in words for words in study.recommend().warnings)


def test_what_is_no_law_is_refused_before_the_first_pull():
    with pytest.raises(InputError, match=r"Bare is no law of rewards: it has no .*slope.*needs `value` alone"):
        GLM(Bare())
    with pytest.raises(InputError, match=r"Falling: value must increase; it is 0\.84.* at -1"):
        GLM(Falling())
    with pytest.raises(InputError, match="Doubling model cannot be minimised"):
        create_study(np.eye(3), 30, Elimination(GLM(Doubling()), Uniform()), direction="minimize")
    with pytest.raises(InputError, match="cannot be written down"):
        create_study(np.eye(3), 30, Elimination(GLM(Custom(np.sinh)), Uniform()))


def test_a_model_that_only_fits_is_used_and_its_silence_is_said(rng):
    policy = Elimination(OnlyFits(), Uniform())
    bandit = Bandit(np.eye(4), np.array([0.0, 3.0, 1.0, 0.0]), Gaussian(0.1))
    assert int(play(policy, bandit, 40, 1).arm) == 1
    rewards = Rewards(OnlyFits(), Goal("minimize"))
    assert rewards.better(2.0) == -2.0
    belief = rewards.model.posterior(np.eye(4), Tally(np.ones(4), np.arange(4.0), np.arange(4.0) ** 2), 1.0, 100, 1)
    assert "OnlyFits says nothing of its error, so features are unused" in belief.words


@pytest.mark.parametrize("policy", [POLICY, catalog.policy("gse-log-fwg"), OPTIMIST])
def test_laws_are_written_down_and_read_back(policy):
    assert spec.from_dict(spec.to_dict(policy), allow=["tests"]) == policy


@pytest.mark.parametrize("model", [catalog.model(name) for name in catalog.MODELS] + [catalog.policy("auto").model])
def test_turned_rewards_are_those_of_the_turned_truth(model, rng):
    if model.law.turn is None:
        with pytest.raises(InputError, match="cannot be minimised"):
            Rewards(model, Goal("minimize"))
        return
    rewards, given = Rewards(model, Goal("minimize")), rng.integers(0, 2, 9).astype(float)
    turned = rewards.better(given)
    found = rewards.turned(Tally(9.0, given.sum(), (given**2).sum()))
    assert (found.sums, found.squares, found.within) == pytest.approx(
        (turned.sum(), (turned**2).sum(), 9 * given.var())
    )
    np.testing.assert_array_equal(rewards.natural(turned), given)
    rewards.law.check(Tally(np.ones(9), turned, turned**2))


def test_a_model_is_all_that_the_protocol_asks():
    names = [name for name in vars(Model) if not name.startswith("_")]
    for name in catalog.MODELS:
        assert all(hasattr(type(catalog.model(name)), one) for one in names)


def test_the_page_on_models_is_true():
    page = Path(__file__).parents[2] / "docs" / "models.md"
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted > 10
    assert result.failed == 0
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    for name in re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in rows)):
        assert hasattr(Law, name), name
