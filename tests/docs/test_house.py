"""docs/house.md is true of the tree: it names every module, and each noun stands where it says."""

import re
from pathlib import Path

import bestarm

SOURCE = Path(bestarm.__file__).parent
PAGE = (Path(__file__).parents[2] / "docs/house.md").read_text(encoding="utf-8")
APART = {"__init__", "version"}


def test_every_module_stands_in_the_tree():
    tree = set(re.findall(r"[a-z_0-9]+", PAGE.split("```")[1]))
    modules = {path.stem for path in SOURCE.rglob("*.py") if "suites" not in path.parts} - APART
    assert modules <= tree, f"not in the tree of docs/house.md: {sorted(modules - tree)}"
    folders = {path.parent.name for path in SOURCE.rglob("__init__.py")} - {"bestarm", "suites"}
    assert folders <= tree


def test_every_noun_stands_where_the_table_says():
    rows = [line.split("|") for line in PAGE.splitlines() if line.startswith("| `")]
    assert len(rows) > 30
    for _, nouns, _, where, _ in rows:
        names = re.findall(r"`(\w+)`", nouns)
        parts = re.findall(r"`([^`]+)`", where)
        folder = SOURCE / parts[0]
        first = folder.parent if folder.suffix == ".py" else folder
        files = [one for part in parts for base in (SOURCE, first) for one in base.glob(part)]
        folders = [one for one in files if one.is_dir()]
        files = [one for one in files if one.is_file()] + [one for base in folders for one in base.glob("*.py")]
        text = "\n".join(one.read_text(encoding="utf-8") for one in files)
        for name in names:
            assert re.search(rf"^(class )?{name}\b", text, re.M), f"{name} is not in {where.strip()}"
