"""Policies as people type them: a name or a path, settings that become what they are, errors that say what to do."""

import json
import sys

import pytest
from click.testing import CliRunner

from bestarm import catalog, create_study, load_study
from bestarm.cli import main
from bestarm.designs.spread import Clustered
from bestarm.errors import InputError, StorageError
from bestarm.texts import converted, divided

LAB = """
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from bestarm import Pulls
from bestarm.designs.protocols import Design
from bestarm.designs.spread import Uniform


@dataclass(frozen=True)
class Own:
    width: float = 1.0
    depth: int | None = None
    bold: bool = False
    kind: Literal["a", "b"] = "a"
    design: Design = Uniform()
    free: Any = None

    def __post_init__(self):
        if self.width < 0:
            raise ValueError("width must not be negative")

    def start(self, problem): return problem, None
    def ask(self, state, rng):
        every = np.broadcast_to(np.arange(state[0].arms), state[0].features.shape[:-1])
        return None if state[1] is not None else Pulls(every, np.ones_like(every))
    def tell(self, state, pulls, totals): return state[0], totals.sums
    def recommend(self, state): return np.argmax(state[1], axis=-1)


@dataclass(frozen=True, kw_only=True)
class Needs(Own):
    size: int


class Half:
    def start(self, problem): ...
"""


@pytest.fixture
def lab(tmp_path, monkeypatch):
    (tmp_path / "ownlab.py").write_text(LAB)
    (tmp_path / "ownbroken.py").write_text("import nothing_of_that_name\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path
    sys.modules.pop("ownlab", None)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", {}),
        (":width=2", {"width": 2.0}),
        (":depth=3,bold=yes,kind=b", {"depth": 3, "bold": True, "kind": "b"}),
        (":depth=none, bold=False", {}),
        (":free=3", {"free": 3}),
        (":free=word", {"free": "word"}),
        (":design=bestarm.designs.spread:Clustered", {"design": Clustered()}),
    ],
)
def test_settings_become_what_their_annotations_say(lab, settings, expected):
    made = catalog.policy_of_text(f"ownlab:Own{settings}")
    from ownlab import Own

    for name in Own.__dataclass_fields__:
        assert getattr(made, name) == expected.get(name, getattr(Own(), name)), name


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("ownlab:Own:width=x", "'ownlab:Own': width must be a number; given 'x'"),
        ("ownlab:Own:depth=2.5", "depth must be a whole number or none; given '2.5'"),
        ("ownlab:Own:bold=3", "bold must be true or false; given '3'"),
        ("ownlab:Own:kind=c", "kind must be 'a' or 'b'; given 'c'"),
        ("ownlab:Own:wide=3", "has no setting 'wide'; it has bold, depth, design, free, kind, width"),
        ("ownlab:Own:width", "a setting is written key=value; given 'width'"),
        ("ownlab:Own:width=-1", "'ownlab:Own': width must not be negative"),
        ("ownlab:Own:design=nothing", "unknown design 'nothing'"),
        ("ownlab:Needs:width=2", "needs settings: size=..."),
        ("ownlab:Onw", "unknown part of ownlab 'Onw'; the nearest are Own"),
        ("ownlab:Half", "Half is no policy: it has no ask, tell, recommend"),
        ("ownlab:np", "numpy is no policy"),
        ("ownnone:Own", "ownnone cannot be imported: ModuleNotFoundError: No module named 'ownnone'"),
        ("ownbroken:Own", "ownbroken cannot be imported: ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("gse-lin:eta", "policy 'gse-lin:eta': a setting is written key=value; given 'eta'"),
        ("gse-lin:eta=x", "policy 'gse-lin': eta must be a number; given 'x'"),
        ("gse-lin:memory=All", "memory is a part; a path package.module:Class is expected, given 'All'"),
        ("gse-lin:model=liner", "unknown model 'liner'; the nearest are linear"),
        ("gse-line", "unknown policy 'gse-line'; the nearest are gse-lin"),
    ],
)
def test_what_cannot_be_is_said(lab, text, says):
    with pytest.raises(InputError) as error:
        catalog.policy_of_text(text)
    assert says in str(error.value)


def test_names_take_settings_as_well():
    assert catalog.policy_of_text("gse-lin:eta=3") == catalog.policy("gse-lin", eta=3.0)
    assert catalog.policy_of_text("gse-pca-fwg:eta=3").policy.eta == 3.0
    assert catalog.policy_of_text("gse-lin:model=means").model == catalog.model("means")
    assert catalog.policy_of_text("auto:rounds=3").rounds == 3
    for name in catalog.names():
        assert catalog.policy_of_text(name) is catalog.ENTRIES[name].policy


def test_texts_are_divided_and_converted():
    assert divided("auto") == ("auto", "")
    assert divided("auto:") == ("auto", "")
    assert divided("a.b:C:x=d:e") == ("a.b:C", "x=d:e")
    assert divided("auto:x=a:b") == ("auto", "x=a:b")
    for text, kind in (("1_0", int), ("1_0", float), ("", int), ("x", bool), ("0", type(None))):
        with pytest.raises(ValueError):
            converted(text, kind)


def test_a_study_of_ones_own_policy_is_written_by_its_path_and_read_where_that_is_allowed(lab):
    arms = [[1.0], [2.0], [3.0]]
    study = create_study(arms, 9, "ownlab:Own:width=3", study_name="mine", storage="mine.jsonl", seed=1)
    assert study.state.first["policy"]["part"] == "ownlab:Own"
    assert study.tell(study.ask(), [0.0, 5.0, 1.0]) == 3
    assert study.ask() is None
    assert study.best_arm == "2"
    create_study(arms, 9, "ownlab:Own", study_name="other", storage="mine.jsonl")
    with pytest.raises(InputError, match="allow='ownlab'"):
        load_study("other", "mine.jsonl").ask()
    assert load_study("mine", "mine.jsonl", allow="ownlab").best_arm == "2"


def run_command(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def test_commands_take_a_policy_by_its_path(lab):
    (lab / "arms.csv").write_text("id,x,mean\na,1,0\nb,2,1\nc,3,0.5\n")
    shown = ("arms.csv", "--id", "id", "--seed", 1, "--policy", "ownlab:Own:width=2")
    done = run_command("run", *shown, "--budget", 3, "--simulate", "mean", "--noise-variance", 0, "-f", "json")
    assert json.loads(done.stdout)["arm"] == "b"
    made = run_command("create-study", "s", "--arms", *shown, "--budget", 9, "--storage", "s.jsonl")
    assert "ask -o batch1.csv --allow ownlab" in made.stderr
    told = json.loads(run_command("policies", "ownlab:Own:width=2", "-f", "json").stdout)
    assert (told["policy"], told["expression"]) == ("ownlab:Own:width=2", "Own(width=2.0)")
    assert told["about"] == "a policy of ownlab"
    refused = run_command("run", *shown[:-1], "ownlab:Half", "--budget", 3, "--simulate", "mean")
    assert refused.exit_code == 1
    assert "Half is no policy" in refused.stderr


def test_an_unknown_scheme_is_an_unknown_storage():
    with pytest.raises(StorageError, match="unknown storage"):
        load_study("s", "chest://there")
