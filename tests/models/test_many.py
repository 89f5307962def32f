"""Very many arms are judged by few of them, and it makes no difference: not to chances, means, intervals or regret."""

import numpy as np
import pytest

from bestarm import catalog, create_study
from bestarm.answer.answer import Evidence, assess
from bestarm.core import Tally
from bestarm.linalg import Candidates
from bestarm.models import laplace, many, posterior, weighed
from bestarm.models.weighed import Weighed
from bestarm.rewards import Rewards

SEVERAL, DRAWS = 700, 4000
MODELS = {
    "linear": catalog.model("linear"), "means": catalog.model("means"), "logistic": catalog.model("logistic"),
    "poisson": catalog.model("poisson"), "auto": Weighed(), "forest": catalog.model("forest"),
}  # fmt: skip


def evidence(model, binary=False, counts=False, seed=1, results=1500, gone=0, pulled=SEVERAL, noise=None):
    """Arms of which some have the same features, and some no results, as many as are not `pulled`."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(SEVERAL), rng.standard_normal((SEVERAL, 3))])
    x[10:20] = x[:10]
    mean = x @ rng.standard_normal(4) * 0.4
    arms = rng.integers(0, pulled, results)
    if binary:
        y = (rng.random(results) < 1 / (1 + np.exp(-mean[arms]))).astype(float)
    else:
        y = rng.poisson(np.exp(mean[arms])) if counts else mean[arms] + rng.standard_normal(results)
    tally = Tally(*(np.bincount(arms, w, minlength=SEVERAL).astype(float) for w in (np.ones(results), y, y * y)))
    present = np.arange(SEVERAL) >= gone
    return Evidence([str(i) for i in range(SEVERAL)], x, present, tally, Rewards(MODELS[model]), noise)


def both(found, monkeypatch, draws=DRAWS):
    """The answers by some arms and by all of them, with other random numbers."""
    quick = assess(found, draws, 1)
    for module in (many, posterior, laplace, weighed):
        monkeypatch.setattr(module, "FEW", 10**9)
    return quick, assess(found, draws, 2)


CASES = {
    "linear": {"model": "linear"},
    "linear, few results": {"model": "linear", "results": 12},
    "linear, noise known": {"model": "linear", "noise": 1.0, "pulled": 40},
    "means": {"model": "means"},
    "means, never pulled": {"model": "means", "pulled": 60, "results": 600},
    "logistic": {"model": "logistic", "binary": True},
    "logistic, few results": {"model": "logistic", "binary": True, "results": 60},
    "poisson": {"model": "poisson", "counts": True},
    "auto": {"model": "auto"},
    "auto, few results": {"model": "auto", "results": 40},
    "auto, wins": {"model": "auto", "binary": True},
    "withdrawn": {"model": "linear", "gone": 100},
    "forest": {"model": "forest", "results": 900},
}


@pytest.mark.filterwarnings("ignore::bestarm.errors.BestArmWarning")
@pytest.mark.parametrize("case", CASES)
def test_few_arms_say_what_all_would(case, monkeypatch):
    found = evidence(**CASES[case])
    quick, whole = both(found, monkeypatch)
    rows = {e.arm: e for e in whole.estimates}
    assert {e.arm for e in quick.estimates} == set(rows)
    pairs = [(e, rows[e.arm]) for e in quick.estimates]
    error = 5 * np.sqrt(0.5 / DRAWS)  # of a difference of two chances, five times
    assert max(abs(a.chance - b.chance) for a, b in pairs) < error
    assert sum(e.chance for e in quick.estimates) == pytest.approx(1)
    width = np.array([b.high - b.low for _, b in pairs])
    for end in ("low", "high"):
        off = np.array([getattr(a, end) - getattr(b, end) for a, b in pairs])
        assert np.quantile(np.abs(off) / width, 0.99) < 0.2
        assert abs(np.mean(off / width)) < 0.06
    assert max(abs(a.corrected - b.corrected) / (b.high - b.low) for a, b in pairs) < 0.05
    assert all(a.value == pytest.approx(b.value, rel=1e-9, abs=1e-9) for a, b in pairs)
    one, two = quick.answer, whole.answer
    regret = np.mean(width) * 0.06
    if one.arm == two.arm:
        assert abs(one.expected_regret - two.expected_regret) < regret
    assert one.believes == two.believes


def test_arms_with_the_same_features_share_their_chance(monkeypatch):
    quick, _ = both(evidence("linear"), monkeypatch)
    chance = {e.arm: e.chance for e in quick.estimates}
    assert all(chance[str(i)] == pytest.approx(chance[str(i + 10)], abs=1e-12) for i in range(10))


def test_with_the_same_coefficients_no_chance_differs(monkeypatch):
    found = evidence("linear")
    given = (found.features, found.known, None, DRAWS, 3)
    quick = MODELS["linear"].posterior(*given)
    monkeypatch.setattr(posterior, "FEW", 10**9)
    whole = MODELS["linear"].posterior(*given)
    np.testing.assert_allclose(quick.chances, whole.chances, atol=1e-12)
    np.testing.assert_allclose(quick.mean, whole.mean)
    np.testing.assert_allclose(quick.draws, whole.draws)
    leader = int(np.argmax(whole.mean))
    assert quick.behind(leader) == pytest.approx(whole.behind(leader), abs=1e-9)
    assert quick.behind(0) == pytest.approx(whole.behind(0), abs=0.05 * whole.scale)


def test_most_arms_are_not_drawn():
    found = evidence("linear")
    (part,) = MODELS["linear"].posterior(found.features, found.known, None, DRAWS, 3).parts
    possible = part.possible()
    best = np.unique(np.argmax(part.drawn(np.arange(SEVERAL), slice(None), np.random.default_rng(1)), axis=1))
    assert possible[best].all()
    assert possible.sum() < SEVERAL / 4


@pytest.mark.parametrize("arms", [20, many.FEW + 20])
@pytest.mark.parametrize("kind", ["numbers", "wins"])
def test_what_the_weighed_model_fits_comes_with_its_posterior(arms, kind):
    rng = np.random.default_rng(5)
    features, counts = rng.standard_normal((arms, 3)), np.where(np.arange(arms) % 2, 3.0, 1.0)
    if kind == "wins":
        sums = rng.binomial(counts.astype(int), 0.4).astype(float)
        known = Tally(counts, sums, sums)
    else:
        sums = counts * (1000 + 30 * features[:, 0] + rng.standard_normal(arms))
        known = Tally(counts, sums, sums**2 / counts + 1)
    found = Weighed().posterior(features, known, None, 50, 1)
    some = np.arange(3, 9)
    expected = Weighed().fit(Candidates.of(features), known).mean
    np.testing.assert_allclose(found.fitted, expected, rtol=0, atol=1e-9 * np.std(expected))
    np.testing.assert_array_equal(found.among(some).fitted, found.fitted[some])


def test_an_answer_weighs_all_hypotheses_once(monkeypatch):
    calls, read = [], Weighed.read
    monkeypatch.setattr(Weighed, "read", lambda self, *given: calls.append(1) or read(self, *given))
    study = create_study(np.random.default_rng(1).standard_normal((9, 2)), 30, seed=1)
    study.tell(study.ask(5), [1.0, 2.0, 3.0, 1.5, 2.5])
    calls.clear()
    study.recommend()
    assert len(calls) == 1
