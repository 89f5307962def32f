"""What people see first: the public names, the README, an import that stays light."""

import doctest
import re
import runpy
import subprocess
import sys
from pathlib import Path

import bestarm
from bestarm import catalog

ROOT = Path(__file__).parent.parent


def test_the_public_names_are_sorted_and_there():
    assert bestarm.__all__ == sorted(bestarm.__all__)
    for name in bestarm.__all__:
        assert getattr(bestarm, name).__doc__ if callable(getattr(bestarm, name)) else True


def test_a_door_is_the_same_thing_each_time_it_is_named():
    """In a process where nothing of bestarm is loaded, for each door, and after every module of bestarm is."""
    code = f"""
import sys
from importlib import import_module
from pkgutil import iter_modules

doors = {bestarm.__all__!r}
for door in doors:
    for name in [name for name in sys.modules if name.partition(".")[0] == "bestarm"]:
        del sys.modules[name]
    ba = import_module("bestarm")
    assert getattr(ba, door) is getattr(ba, door), door
first = [getattr(ba, door) for door in doors]
for module in iter_modules(ba.__path__, "bestarm."):
    import_module(module.name)
for door, one in zip(doors, first):
    assert getattr(ba, door) is one, door
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_readme_is_true():
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert result.attempted > 10
    assert result.failed == 0


def test_the_readme_and_the_docs_name_only_what_exists():
    texts = {path: path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]}
    for path, text in texts.items():
        for name in re.findall(r"`((?:gse|od|bayesgap|lingape)-[a-z0-9-]+)`", text):
            assert name in catalog.ENTRIES, (path.name, name)
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`make ([a-z-]+)", "".join(texts.values())):
        assert f"\n{target}:" in makefile, target


def test_the_page_on_policies_is_written_from_the_numbers_beside_it(tmp_path):
    page = (ROOT / "docs" / "which-policy.md").read_text(encoding="utf-8")
    program = runpy.run_path(str(ROOT / "docs" / "which_policy.py"))
    parts = program["read_csv"](program["ABLATION"])
    assert program["written"](page, program["collect"](tmp_path), parts) == page


def test_importing_is_light():
    heavy = ("pandas", "polars", "sklearn", "scipy", "matplotlib", "array_api_compat.numpy")
    code = f"import sys, bestarm; print([m for m in {heavy!r} if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
