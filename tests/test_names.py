"""Each noun once: no public class name stands twice, and what `bestarm` shows is its doors."""

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import bestarm

SOURCE = Path(bestarm.__file__).parent


def test_no_public_class_name_stands_twice():
    places = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_what_is_shown_are_the_doors():
    assert dir(bestarm) == sorted(bestarm.__all__)
    assert {"create_study", "load_study", "run", "plan", "design", "bench"} <= set(dir(bestarm))
    for name in bestarm.__all__:
        assert getattr(bestarm, name) is not None


def test_nothing_is_imported_before_it_is_named():
    program = "import sys, bestarm; print([name for name in ('numpy', 'scipy', 'sklearn') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
