"""Every command, every option and every public method of a study stands in a page that somebody wrote."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import click
import pytest

from bestarm.cli import main
from bestarm.study import Study

ROOT = Path(__file__).parents[2]
PRINTED = ROOT / "docs" / "reproduction"  # by a program
COMMON = 5  # commands that share an option: then one page may tell of it for all


@cache
def pages():
    """The pages, by their names."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {str(p.relative_to(ROOT)): p.read_text(encoding="utf-8") for p in paths if PRINTED not in p.parents}


def that_say(word, before=""):
    """The names of the pages in which a word stands, as a whole."""
    wanted = re.compile(rf"(?<![\w-]){before}{re.escape(word)}(?![\w-])")
    return {name for name, text in pages().items() if wanted.search(text)}


def options(command):
    return [p for p in command.params if isinstance(p, click.Option) and not p.hidden]


SHARED = Counter((*p.opts, p.help) for command in main.loaded().values() for p in options(command))


@pytest.mark.parametrize("name", sorted(main.loaded()))
def test_every_command_and_its_options_stand_in_a_page(name):
    """An option in a page in which its command stands too; one that many commands have, in any."""
    here = that_say(name, "(?:bestarm |`)")
    assert here, f"no page tells of `bestarm {name}`"
    missing = []
    for option in options(main.loaded()[name]):
        where = set().union(*(that_say(word) for word in (*option.opts, *option.secondary_opts)))
        if not (where if SHARED[(*option.opts, option.help)] >= COMMON else where & here):
            missing.append(max(option.opts, key=len))
    assert not missing, f"no page that tells of `bestarm {name}` tells of {', '.join(missing)}"


def test_the_options_of_all_commands_stand_in_a_page():
    assert [p.opts for p in options(main) if not any(that_say(word) for word in p.opts)] == []


def test_every_public_name_of_a_study_stands_in_a_page():
    names = [name for name in dir(Study) if not name.startswith("_")]
    missing = [name for name in names if not that_say(name, r"study\.")]
    assert not missing, f"no page tells of study.{', study.'.join(missing)}"
