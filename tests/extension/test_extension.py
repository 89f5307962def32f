"""A package from outside brings a part of every kind, and each is used as our own are."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).parent
WAYS = ("live", "simulated", "bench", "plan")
ROOT = HERE.parents[1]


def install(package, site):
    """Lay a package out as an installer does: its modules, and beside them what its pyproject says of it."""
    about = tomllib.loads((package / "pyproject.toml").read_text())
    project = about["project"]
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = (
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in project["entry-points"].items()
    )
    (info / "entry_points.txt").write_text("\n".join(groups))
    for name in about["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]:
        shutil.copytree(package / name, site / name)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    found = tmp_path_factory.mktemp("site")
    install(HERE / "package", found)
    return found


@pytest.fixture
def python(site, tmp_path):
    """Run Python where the package is installed, in an empty folder."""

    def call(*words, code=0):
        path = os.pathsep.join(map(str, (site, ROOT / "src", ROOT)))
        here = {**os.environ, "PYTHONPATH": path, "BESTARM_STORAGE": ""}
        done = subprocess.run([sys.executable, *words], cwd=tmp_path, env=here, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done

    return call


def way(python, name, code=0):
    done = python("-m", "tests.extension.ways", name, "shelf", code=code)
    return json.loads(done.stdout) if code == 0 else None


def bestarm(python, *words, code=0):
    return python("-c", "from bestarm.cli import main; main()", *words, code=code)


@pytest.mark.parametrize("name", WAYS)
def test_each_part_finds_the_best_arm(python, name):
    assert way(python, name) == dict.fromkeys(("policy", "model", "law", "design"), "a4")


def test_studies_that_are_killed_are_reloaded_and_go_on(python, tmp_path):
    way(python, "begin", code=-9)
    assert sorted(path.name for path in (tmp_path / "shelf").iterdir()) == [
        "design.jsonl",
        "law.jsonl",
        "model.jsonl",
        "policy.jsonl",
    ]
    assert way(python, "go_on") == dict.fromkeys(("policy", "model", "law", "design"), "a4")
    shown = bestarm(python, "studies", "--storage", "shelf:///shelf").stdout
    assert all(name in shown for name in ("design", "law", "model", "policy"))


def test_policies_are_listed_with_their_package(python):
    rows = json.loads(bestarm(python, "policies", "-f", "json").stdout)
    assert [row for row in rows if row["package"] != "bestarm-bai"] == [
        {
            "policy": "bounded",
            "about": "Pull each arm once, then the largest mean + width √(log B / n); the largest mean is the answer.",
            "package": "bestarm-extension-example",
        }
    ]


def test_names_that_are_not_there_are_refused_with_those_that_are(python):
    for call, says in (
        ("catalog.policy('bounds')", "unknown policy 'bounds'; the nearest are bounded"),
        ("catalog.model('probid')", "unknown model 'probid'; the nearest are probit"),
        ("catalog.part('designs', 'end')", "unknown design 'end'; the nearest are ends"),
        ("catalog.policy('bounded', wide=2)", "policy 'bounded' has no setting 'wide'; it has width"),
    ):
        assert says in python("-c", f"from bestarm import catalog; {call}", code=1).stderr


def test_a_broken_entry_point_is_named_and_hides_nothing(python, site):
    broken = site / "broken_example-1.0.dist-info"
    broken.mkdir()
    try:
        (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-example\nVersion: 1.0\n")
        points = "[bestarm.policies]\nlost = no_such_module:Lost\n[bestarm.storages]\nattic = no_such_module:attic\n"
        (broken / "entry_points.txt").write_text(points)
        done = bestarm(python, "policies", "-f", "json")
        why = "cannot be used: ModuleNotFoundError: No module named 'no_such_module'"
        assert done.stderr.splitlines() == [f"lost of broken-example (policies) {why}"]
        names = {row["policy"] for row in json.loads(done.stdout)}
        assert {"auto", "bounded"} <= names
        assert "lost" not in names
        assert (
            f"attic of broken-example (storages) {why}"
            in bestarm(python, "studies", "--storage", "attic:///x", code=1).stderr
        )
    finally:
        shutil.rmtree(broken)
