"""Tests lie where what they test lies: `tests/` mirrors `src/bestarm/`."""

from pathlib import Path

import bestarm

TESTS, SOURCE = Path(__file__).parent, Path(bestarm.__file__).parent
APART = {  # folders that are no package, each with its reason
    "answers": "what the whole catalog answered before",
    "benchmarks": "the programs of benchmarks/",
    "contract": "what every policy must do, ours or not",
    "docs": "the pages of docs/",
    "extension": "a package from outside, with a part of every kind",
    "laws": "laws across modules",
    "statistics": "how often policies are right, measured by `make statistics`",
}
WHOLE = {"test_layout", "test_names", "test_public"}  # of no module alone


def packages(root):
    return {str(found.parent.relative_to(root)) for found in root.rglob("__init__.py")} - {"."}


def test_every_folder_of_tests_is_a_package_or_has_a_reason():
    folders = {folder for folder in packages(TESTS) if folder.split("/")[0] not in APART}
    assert packages(SOURCE) == folders
    assert all((TESTS / folder).is_dir() for folder in APART)


def test_every_file_beside_the_folders_is_of_one_module():
    modules = {f"test_{path.stem}" for path in SOURCE.glob("*.py")}
    assert {path.stem for path in TESTS.glob("test_*.py")} - modules == WHOLE
