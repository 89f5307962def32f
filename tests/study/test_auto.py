"""Studies with the policy nobody named: what it believes, how sure it is, and in how many rounds it asks."""

import json
import re
import time

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import binom

from bestarm import catalog
from bestarm.bandits import Bandit, Gaussian
from bestarm.cli import main
from bestarm.core import Tally
from bestarm.errors import InputError
from bestarm.linalg import Candidates
from bestarm.models.weighed import Weighed
from bestarm.playing import play
from bestarm.structures.posterior import ApartOutlook
from bestarm.study import create_study, load_study, open_storage
from bestarm.study.driver import Driver
from bestarm.study.history import look_back
from bestarm.study.report import page
from bestarm.tables.arms import Arms


def curve(x):
    return 1 - 4 * (x - 0.3) ** 2


def ran(features, mean, budget, noise=0.3, seed=1, sign=1.0, **settings):
    """A study run to its end; the sizes of the batches too."""
    rng = np.random.default_rng(seed)
    study, sizes = create_study(features, budget, seed=5, **settings), []
    while batch := study.ask():
        sizes.append(len(batch))
        study.tell(batch, [sign * mean[int(t.arm) - 1] + noise * rng.standard_normal() for t in batch])
    return study, sizes


LINE = np.random.default_rng(3).standard_normal((12, 3))
SLOPE = LINE @ np.array([1.0, -0.5, 0.3])


def test_nobody_named_a_policy():
    study, _ = ran(LINE, SLOPE, 90)
    answer = study.recommend()
    assert study.state.first["policy_name"] == "auto"
    assert study.state.rewards.model == Weighed() == catalog.policy("auto").model
    assert answer.arm == study.best_arm == str(SLOPE.argmax() + 1)
    assert answer.believes.startswith("linear")
    assert answer.believes.endswith("; noise estimated from the data")
    assert answer.interval[0] < SLOPE.max() < answer.interval[1]
    assert answer.value == pytest.approx(answer.corrected)
    assert sum(answer.chances.values()) == pytest.approx(1)
    assert answer.warnings == ()
    assert study.spent == 90


def test_studies_begun_before_auto_learned_more_go_on(tmp_path):
    """Settings that were not there when the study was created take their defaults, and those that went are ignored."""
    study = create_study(np.eye(4).tolist(), 40, study_name="s", seed=1)
    study.tell(study.ask(4), [0.5, 0.1, 0.2, 0.3])
    first, *rest = study.storage.read("s")
    policy = first["policy"]
    for kind in policy["kinds"]:
        for new in ("on_sphere", "off_sphere", "saturated", "exploring"):
            kind.pop(new, None)
        kind.setdefault("log_prior", 0.0)
    policy["kinds"] = [k for k in policy["kinds"] if k["part"] != "OneOf"]
    del policy["first_round"]
    policy |= {"share": 0.2, "focus": 0.4, "doubting": 0.4, "working": 256}
    place = open_storage(tmp_path / "log.jsonl")
    place.create("s", first)
    place.append("s", rest)
    old = load_study("s", place)
    assert old.recommend().told == 4
    assert old.ask(1)


def test_a_named_model_keeps_its_own_policy():
    for model, policy in (("linear", "gse-lin-fwg"), ("logistic", "gse-log-fwg"), ("means", "gse-means")):
        assert create_study(LINE, 90, model=model).state.first["policy_name"] == policy
    assert create_study(LINE, 90, policy="gse-lin").state.first["policy_name"] == "gse-lin"


def test_a_bent_truth_is_no_lack_of_fit():
    x = np.linspace(-1, 1, 9)
    study, _ = ran(np.stack([np.ones(9), x], axis=1), curve(x), 180, noise=0.1)
    answer = study.recommend()
    assert answer.arm == str(curve(x).argmax() + 1)
    assert not answer.believes.startswith("linear explains")
    assert not any("does not fit" in sentence for sentence in answer.warnings)
    assert Weighed().check(np.eye(3), study.state.known(), None).p is None


def test_features_that_say_nothing_are_not_believed():
    rng = np.random.default_rng(2)
    study, _ = ran(rng.standard_normal((10, 2)), rng.permutation(np.linspace(-2, 2, 10)), 200)
    believes = study.recommend().believes
    assert "no structure: every arm for itself" in believes
    assert "linear" not in believes


@pytest.mark.parametrize("settings", [{}, {"batch": 15}, {"rounds": 4}])
def test_minimising_is_maximising_the_opposite(settings):
    up, _ = ran(LINE, SLOPE, 60, **settings)
    down, _ = ran(LINE, SLOPE, 60, sign=-1.0, seed=1, direction="minimize", **settings)
    assert down.recommend().arm == up.recommend().arm == str(SLOPE.argmax() + 1)
    assert down.recommend().value < 0 < up.recommend().value


@pytest.mark.parametrize("model", ["coins", "counts"])
def test_coins_and_counts_are_numbers_too(model):
    rng, chances = np.random.default_rng(4), np.linspace(0.1, 0.8, 8)
    study = create_study(np.linspace(-1, 1, 8)[:, None], 400, seed=1, batch=80)
    while batch := study.ask():
        if model == "coins":
            study.tell(batch, successes=rng.binomial(batch.times, [chances[int(arm) - 1] for arm in batch.arms]))
        else:
            study.tell(batch, rng.poisson([9 * chances[int(t.arm) - 1] for t in batch]).tolist())
    answer = study.recommend()
    assert answer.arm in ("7", "8")
    assert answer.interval[0] < answer.corrected < answer.interval[1]


def test_chances_of_coins_lie_between_0_and_1_and_losses_are_wins_less_one():
    features = np.linspace(-1, 1, 8)[:, None]
    counts, wins = np.full(8, 12.0), np.array([0.0, 0.0, 1.0, 0.0, 2.0, 5.0, 8.0, 11.0])
    heads, tails = Tally(counts, wins, wins), Tally(counts, wins - counts, counts - wins)
    won, lost = (Weighed().posterior(features, known, None, 2000, 1) for known in (heads, tails))
    assert won.words.endswith("in log odds")
    assert 0 <= won.draws.min() < won.draws.max() <= 1
    assert -1 <= lost.draws.min() < lost.draws.max() <= 0
    np.testing.assert_allclose(lost.mean, won.mean - 1, atol=0.03)
    fit = Weighed().fit(Candidates.of(features), heads)
    np.testing.assert_allclose(Weighed().fit(Candidates.of(features), tails).mean, fit.mean - 1, atol=1e-9)
    np.testing.assert_array_equal(np.argsort(fit.mean), np.arange(8))
    assert np.abs(fit.mean - won.mean).max() < 0.05
    error = Weighed().standard_error(Candidates.of(features), heads, fit, None)
    assert 0.02 < error.min() < error.max() < 0.2


def test_draws_have_the_moments_of_the_mixture():
    rng = np.random.default_rng(6)
    features, counts = rng.standard_normal((15, 3)), rng.integers(0, 12, 15).astype(float)
    means = np.sin(2 * features[:, 0]) + 50
    sums = counts * means + np.sqrt(counts) * rng.standard_normal(15)
    known = Tally(counts, sums, sums**2 / np.maximum(counts, 1) + np.maximum(counts - 1, 0))
    mixture, _ = Weighed().read(Candidates.of(features), known)
    mean, covariance, _ = mixture.moments(np.arange(15)[None])
    weight, off = mixture.weight[0], mean[0] - (mixture.weight[0] @ mean[0])
    wanted = np.einsum("g,gij->ij", weight, covariance[0]) + np.einsum("g,gi,gj->ij", weight, off, off)
    belief = Weighed().posterior(features, known, None, 60_000, rng)
    np.testing.assert_allclose(belief.mean, Weighed().fit(Candidates.of(features), known).mean, rtol=1e-9)
    np.testing.assert_allclose(belief.mean, mixture.marginals()[0][0], rtol=1e-9)
    np.testing.assert_allclose(belief.draws.mean(0), belief.mean, atol=0.02)
    freedom = counts.sum() - 1
    size = np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)))
    found = np.cov(belief.draws.T)
    assert np.abs(found - wanted * freedom / (freedom - 2)).max() < 0.04 * size.max()
    for look, its in zip(mixture.outlooks(), covariance[0] / mixture.noise[0][:, None, None], strict=True):
        if isinstance(look, ApartOutlook):  # its root, for very many arms, is of more
            continue
        np.testing.assert_allclose(look.root[0] @ look.root[0].T + np.diag(look.own[0]), its, atol=1e-10)


def test_noise_that_is_told_is_believed():
    known = Tally(np.full(4, 5.0), np.arange(4.0), np.arange(4.0) ** 2 / 5 + 4)
    narrow, wide = (Weighed().posterior(np.eye(4), known, noise, 2000, 1) for noise in (1e-4, 100.0))
    assert narrow.draws.std(0).max() < 0.1 * wide.draws.std(0).min()
    assert narrow.words.endswith("noise variance 0.0001, as told")


def test_thousands_of_arms_are_drawn_without_a_matrix_of_their_size():
    rng = np.random.default_rng(1)
    features, counts = rng.standard_normal((20_000, 4)), np.zeros(20_000)
    counts[:300] = 1
    sums = counts * (features[:, 0] + 0.1 * rng.standard_normal(20_000))
    begun = time.perf_counter()
    belief = Weighed().posterior(features, Tally(counts, sums, sums**2), None, 500, rng)
    assert time.perf_counter() - begun < 30
    assert features[belief.mean.argmax(), 0] > 3
    assert belief.chances.sum() == pytest.approx(1)


@pytest.mark.parametrize("world", ["linear", "separate"])
def test_what_is_said_comes_true(world):
    """Where the truth is linear and where features say nothing: as many are right as said, within binomial error."""
    rng = np.random.default_rng(11)
    features = rng.standard_normal((150, 8, 4))
    size = np.exp(rng.uniform(np.log(0.4), np.log(4.0), (150, 1)))
    own = rng.standard_normal((150, 8))
    means = size * (own if world == "separate" else (features @ rng.standard_normal((150, 4, 1)))[..., 0] / 2)
    bandit = Bandit(features, means, Gaussian(1.0))
    run = play(catalog.policy("auto"), bandit, 60, rng)
    known, said, right, held = run.state.known, [], [], []
    for i in range(150):
        mine = Tally(known.counts[i], known.sums[i], known.squares[i])
        belief = Weighed().posterior(features[i], mine, None, 300, rng)
        arm = int(belief.mean.argmax())
        low, high = np.quantile(belief.draws[:, arm], (0.025, 0.975))
        said.append(belief.chances[arm])
        right.append(means[i, arm] == means[i].max())
        held.append(low <= means[i, arm] <= high)
    said, right = np.array(said), np.array(right)
    for low, high in ((0.0, 0.5), (0.5, 0.8), (0.8, 0.95), (0.95, 1.01)):
        inside = (said >= low) & (said < high)
        p, count = np.clip(said[inside].mean(), 1e-3, 1 - 1e-3), int(inside.sum())
        print(f"   {low:.2f}-{high:.2f}: {count:4d} say {p:.3f}, {right[inside].mean():.3f} right")
        assert binom.ppf(1e-4, count, p) <= right[inside].sum() <= binom.ppf(1 - 1e-4, count, p)
    assert np.sum(held) >= binom.ppf(1e-4, 150, 0.95)


@pytest.mark.parametrize(("rounds", "budget"), [(1, 30), (4, 60), (5, 203)])
def test_so_many_rounds_are_waited_for(rounds, budget):
    study, sizes = ran(LINE, SLOPE, budget, rounds=rounds)
    assert (len(sizes), sum(sizes)) == (rounds, budget)
    assert study.state.first["policy_name"] == "auto"
    assert study.state.options["rounds"] == rounds


@pytest.mark.parametrize(("budget", "batch", "count"), [(480, 96, 5), (100, 7, 15), (48, 12, 4), (60, 100, 1)])
def test_a_batch_is_planned_together(budget, batch, count):
    _, sizes = ran(LINE, SLOPE, budget, batch=batch)
    assert sum(sizes) == budget
    assert max(sizes) <= batch
    assert len(sizes) == count


def test_small_batches_of_a_large_budget_do_not_mean_a_thousand_rounds():
    study, _ = ran(LINE[:4], SLOPE[:4], 1500, batch=2)
    assert study.state.closed <= 201


def test_rounds_are_for_auto_only():
    with pytest.raises(InputError, match="rounds are for the policy auto; gse-lin-fwg has"):
        create_study(LINE, 60, model="linear", rounds=3)
    with pytest.raises(InputError, match="at least 1"):
        create_study(LINE, 60, rounds=0)


def test_arms_come_and_go_and_the_budget_grows_within_the_rounds():
    rng = np.random.default_rng(1)
    study = create_study(LINE, 80, rounds=4, seed=1)
    study.tell(batch := study.ask(), rng.standard_normal(len(batch)))
    study.withdraw("2")
    study.add_arms(Arms.from_arrays(np.ones((1, 3)), ids=["late"], names=study.state.names))
    asked = 1
    while batch := study.ask():
        asked += 1
        study.tell(batch, rng.standard_normal(len(batch)))
    assert (asked, study.spent) == (4, 80)
    study.raise_budget(120)
    while batch := study.ask():
        study.tell(batch, rng.standard_normal(len(batch)))
    assert study.spent == 120
    assert study.recommend().arm != "2"


def test_the_same_log_asks_the_same_again(tmp_path):
    rng = np.random.default_rng(1)
    study = create_study(LINE, 60, study_name="s", storage=tmp_path / "j", batch=10, seed=1)
    for _ in range(3):
        study.tell(batch := study.ask(), rng.standard_normal(len(batch)))
    again = load_study("s", tmp_path / "j")
    assert again.recommend() == study.recommend()
    assert Driver().question(again.state) == study.driver.question(study.state)


def test_the_page_says_what_is_believed():
    study, _ = ran(LINE, SLOPE, 90)
    text = page(study)
    for words in (study.recommend().believes, "how far the features are to be trusted was learned", "Policy auto"):
        assert words in text
    assert "How the race went" not in text
    assert text.count("<figure") == 4
    history = look_back(study)
    assert history.steps == ()
    assert history.sights[-1].told == 90


def test_the_command_says_what_is_believed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BESTARM_STORAGE", "sqlite:///s.db")
    call = lambda *args: CliRunner().invoke(main, [str(arg) for arg in args])  # noqa: E731
    (tmp_path / "arms.csv").write_text("code,x,y\n" + "".join(f"A{i},{i},{i * i % 7}\n" for i in range(1, 9)))
    options = ("--arms", "arms.csv", "--id", "code", "--budget", 40, "--seed", 1)
    made = call("create-study", "s", *options, "--rounds", 3)
    assert made.exit_code == 0, made.output
    assert "auto, budget 40" in made.stderr
    done = call("run-study", "--study-name", "s", "--pull", "echo {id} | tr -d A")
    assert done.exit_code == 0, done.output
    best = call("best", "--study-name", "s", "-f", "json")
    answer = json.loads(best.stdout)
    assert answer["arm"] == "A8"
    assert "linear" in answer["believes"]
    assert re.search(r"^believes +linear", call("best", "--study-name", "s").stdout, re.M)
    wrong = call("create-study", "t", *options, "--rounds", 3, "--model", "linear")
    assert wrong.exit_code == 1
    assert "rounds are for the policy auto" in wrong.stderr
