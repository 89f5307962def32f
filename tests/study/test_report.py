"""A page a manager can read: complete, self-contained, safe, and drawn by a real browser."""

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from bestarm import catalog
from bestarm.draw import charts
from bestarm.errors import InputError
from bestarm.study import create_study
from bestarm.study.history import look_back
from bestarm.study.report import page, write_report
from bestarm.tables.arms import Arms

NASTY = [
    '<script>document.title = "no"</script>',
    "\"quoted\" & 'quoted'",
    "$x^2_{$",
    "温度 🌡 Ünïcode",
    "a\nb\tc",
    "</style></svg>",
    "x" * 200,
    "plain",
]
VOID = {"meta", "br"}


class Tags(HTMLParser):
    """Which tags a page has, and whether they nest."""

    def __init__(self, text):
        super().__init__()
        self.seen, self.open = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


def ran(arms=8, budget=120, rng=1, ids=None, stop=None, **settings):
    """A study of random arms, told normal results, or coins for the logistic model."""
    rng = np.random.default_rng(rng)
    features = rng.standard_normal((arms, 3))
    theta = np.array([1.0, -0.5, 0.3])
    study = create_study(Arms.from_arrays(features, ids=ids), budget, seed=5, study_name="spring ads", **settings)
    rounds = 0
    while (stop is None or rounds < stop) and (batch := study.ask()):
        mean = [features[study.state.ids.index(trial.arm)] @ theta for trial in batch]
        if settings.get("model") == "logistic":
            study.tell(batch, [float(rng.random() < 1 / (1 + np.exp(-m))) for m in mean])
        else:
            study.tell(batch, [m + rng.standard_normal() for m in mean])
        rounds += 1
    return study


def checked(text):
    """Assert what every page must have, and return its tags."""
    tags = Tags(text)
    assert tags.open == []
    kinds = {tag for tag, _ in tags.seen}
    assert "script" not in kinds
    assert not kinds & {"link", "img", "iframe", "object"}
    outside = [value for _, given in tags.seen for key, value in given.items() if key in ("src", "href")]
    assert all(value.startswith("#") for value in outside if value)
    assert "nan" not in re.sub(r"<pre>.*?</pre>", "", text, flags=re.S).lower().split()
    for drawing in re.findall(r"<figure.*?</figure>", text, flags=re.S):
        ElementTree.fromstring(drawing)
    return tags


def test_a_report_says_what_a_manager_asks():
    study = ran(model="linear")
    text, answer = page(study), study.recommend()
    checked(text)
    for words in (
        "spring ads", f'class="answer">{answer.arm}<', "120 of 120", "The study is over", "How the arms compare",
        "How the race went", "What the results bought", "How results came in", "Does the model fit?", "seed 5",
        "gse-lin-fwg", "expected regret",
    ):  # fmt: skip
        assert words in text
    assert text.count("<figure") == 5


def test_it_is_the_same_page_again():
    study = ran(model="logistic")
    drop = lambda text: re.sub(r"&quot;written.*", "", text)  # noqa: E731
    assert drop(page(study)) == drop(page(study))


def test_a_study_without_a_result_says_so():
    study = create_study(np.eye(3), 30, study_name="<empty>")
    text = page(study)
    checked(text)
    assert "No result yet" in text
    assert "&lt;empty&gt;" in text
    study.ask(2)
    assert "2 trials are out" in page(study)


def test_a_study_still_running_counts_what_is_out():
    study = ran(stop=1, model="linear")
    study.ask(4)
    text = page(study)
    checked(text)
    assert "still running" in text
    assert "4 awaited" in text


def test_one_arm_and_one_result():
    study = create_study(np.eye(1), 30, policy="uniform")
    study.import_results([("1", 2.0)])
    text = page(study)
    checked(text)
    assert "nothing to compare it with" in text


def test_many_arms_show_the_likeliest():
    study = ran(arms=1000, budget=4000, stop=1)
    text = page(study)
    checked(text)
    assert "30 likeliest of 1,000" in text
    assert "The other 970 arms" in text


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_names_are_only_names(direction):
    study = ran(ids=NASTY, direction=direction, stop=1)
    study.fail(study.ask(1).trials[0], "<img src=x onerror=alert(1)>")
    text = page(study)
    tags = checked(text)
    assert "<script" not in text
    assert "温度 🌡 Ünïcode" in text
    assert "&lt;img src=x" in text
    assert ("title", {}) in tags.seen


@pytest.mark.parametrize("value", [0.0, 5.0, 1e90, -1e-200, 1e9])
def test_odd_values_can_be_drawn(value):
    study = create_study(np.eye(3), 30, seed=1)
    study.import_results([(arm, value) for arm in ("1", "2", "3") for _ in range(4)])
    checked(page(study))


def test_failures_money_and_withdrawn_arms_are_told():
    arms = Arms.from_arrays(np.eye(3), cost=np.array([1.0, 2.5, 1.0]))
    study = create_study(arms, 60, policy="gse-means", seed=1)
    batch = study.ask()
    study.fail(batch.trials[0], "lamp broke")
    study.tell({trial.id: float(trial.arm) for trial in batch.trials[1:]})
    study.withdraw("1")
    text = page(study)
    checked(text)
    for words in ("lamp broke", "1 was refunded", "of the budget spent", ", 1 withdrawn"):
        assert words in text


def test_history_follows_the_log():
    study = ran(model="linear")
    history = look_back(study)
    assert [len(step.left) for step in history.steps] == [8, 4, 2, 1]
    assert history.steps[-1].left == (study.best_arm,)
    assert history.arrivals[-1][1] == history.sights[-1].told == 120
    assert len(look_back(study, points=2).sights) == 2
    assert look_back(ran(policy="bayesgap-lin", noise_variance=1.0, batch=4, budget=40)).steps == ()


def test_arms_that_come_and_go_are_drawn():
    study = ran(stop=1)
    study.withdraw(study.state.ids[0])
    study.add_arms(Arms.from_arrays(np.eye(3)[:2], ids=["late", "later"], names=study.state.names))
    study.tell(batch := study.ask(), np.arange(len(batch)) / 10)
    text = page(study)
    checked(text)
    assert "later" in text
    assert "1 withdrawn" in text


def test_a_report_is_written_whole(tmp_path):
    study = ran(budget=40)
    with pytest.raises(InputError, match="there is no folder"):
        write_report(study, tmp_path / "new" / "ads.html")
    (tmp_path / "new").mkdir()
    write_report(study, tmp_path / "new" / "ads.html")
    assert (tmp_path / "new" / "ads.html").read_text(encoding="utf-8").endswith("</html>\n")
    assert os.listdir(tmp_path / "new") == ["ads.html"]
    with pytest.raises(InputError, match=r"\.html"):
        write_report(study, tmp_path / "ads.pdf")


@pytest.mark.parametrize("name", catalog.names())
def test_every_policy_has_its_answer_and_its_history(name):
    rng = np.random.default_rng(1)
    features = rng.standard_normal((6, 2))
    study = create_study(features, 36, policy=name, noise_variance=1.0, seed=1, batch=6)
    counted = catalog.ENTRIES[name].binary or "poi" in name
    while batch := study.ask():
        study.tell(batch, rng.integers(0, 2, len(batch)) if counted else rng.standard_normal(len(batch)))
    answer, history = study.recommend(draws=200), look_back(study, draws=50, points=3)
    assert answer.policy_arm == study.best_arm
    assert answer.arm in (answer.policy_arm, answer.leader)
    assert history.sights[-1].told == answer.told
    assert charts.race(history, answer.arm).count('class="chart"') <= 1


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("case", ["nasty", "empty", "logistic"])
def test_a_browser_draws_it_without_complaint(case, tmp_path):
    made = {
        "nasty": lambda: ran(ids=NASTY),
        "empty": lambda: create_study(np.eye(3), 30),
        "logistic": lambda: ran(model="logistic", budget=90),
    }[case]()
    write_report(made, tmp_path / "page.html")
    shot = tmp_path / "page.png"
    flags = "--headless --no-sandbox --disable-gpu --hide-scrollbars --enable-logging=stderr --window-size=1000,2800"
    done = subprocess.run(
        [CHROMIUM, *flags.split(), f"--user-data-dir={tmp_path / 'profile'}", f"--screenshot={shot}",
         (tmp_path / "page.html").as_uri()],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "CONSOLE" not in done.stderr
    from matplotlib.image import imread

    pixels = imread(shot)
    assert pixels.shape[:2] == (2800, 1000)
    inked = np.mean(np.any(pixels[..., :3] < 0.9, axis=-1))
    assert inked > (0.002 if case == "empty" else 0.02)


def test_a_page_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    def full(self, data):
        self.touch()
        raise OSError(28, "No space left on device")

    study = create_study(np.eye(3), 9)
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        study.report(tmp_path / "x.html")
    assert not list(tmp_path.iterdir())


def test_a_page_needs_no_drawing_library(tmp_path):
    ran(storage=tmp_path / "log.jsonl")
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from bestarm.study import load_study\n"
        f"study = load_study('spring ads', {str(tmp_path / 'log.jsonl')!r})\n"
        f"study.report({str(tmp_path / 'page.html')!r})\n"
        f"study.report({str(tmp_path / 'picture.png')!r})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "bestarm-bai[plot]" in done.stderr.splitlines()[-1]
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    checked(text)
    assert text.count('class="chart"') >= 5
    assert not (tmp_path / "picture.png").exists()
