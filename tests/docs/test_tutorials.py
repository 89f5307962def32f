"""The documents are true: their Python runs as doctests, their shell in an empty folder, and says what they show."""

import contextlib
import doctest
import itertools
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bestarm.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TOLD = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PYTHON = ("tables.md", "tutorials/clicks.md", "tutorials/noisy_function.md", "workers.md", "keeping.md",
          "putting-right.md", "extending.md")  # fmt: skip
SHELL = ("putting-right.md", "spreadsheets.md", "tutorials/clicks.md", "keeping.md", "workers.md", "tables.md",
         "benchmarks.md")  # fmt: skip
TYPED = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("**/*.md"))]


@pytest.mark.parametrize("name", PYTHON)
def test_the_python_of_a_document_is_true(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(DOCS / name), module_relative=False)
    assert found.failed == 0
    assert found.attempted > 5


def blocks(text, *kinds):
    """The blocks of these kinds in a document, each with its kind."""
    return re.findall(rf"^```({'|'.join(kinds)})\n(.*?)^```", text, re.S | re.M)


def typed(text):
    """What a document types, each with what it shows of the answer, None where it shows nothing."""
    for kind, block in blocks(text, "shell", "console"):
        if kind == "shell":
            words = ""
            for line in block.splitlines(keepends=True):
                words += line
                if is_whole(words):
                    yield words.strip(), None
                    words = ""
        else:
            for words, shown in re.findall(r"^\$ (.*\n(?:> .*\n)*)((?:[^$].*\n|\n)*)", block, re.M):
                yield words.replace("\n> ", "\n").strip(), shown


def is_whole(words):
    """Whether a shell would not wait for another line."""
    done = subprocess.run(["bash", "-nc", words], capture_output=True, check=False)
    return done.returncode == 0 and not done.stderr


@pytest.fixture
def sit_down(tmp_path, monkeypatch):
    """Return who types a line in a folder of their own: what a shell is needed for in a shell, the rest in here."""
    monkeypatch.chdir(tmp_path)
    for name in ("BESTARM_STORAGE", "BESTARM_STUDY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "bestarm"
    command.write_text(f"#!{sys.executable}\nfrom bestarm.cli import main\nmain()\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")

    def enter(words):
        if setting := re.fullmatch(r"export (\w+)=(\S+)", words):
            monkeypatch.setenv(*setting.groups())
            return 0, ""
        if words.startswith("bestarm ") and not set("|<>;&\n") & set(words):
            done = CliRunner().invoke(main, shlex.split(words)[1:], prog_name="bestarm")
            return done.exit_code, done.output
        done = subprocess.run(
            ["bash", "-euc", words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        return done.returncode, done.stdout

    return enter


@pytest.mark.parametrize("name", SHELL)
def test_the_shell_of_a_document_says_what_it_shows(name, sit_down):
    lines = list(typed((DOCS / name).read_text(encoding="utf-8")))
    assert len(lines) > 5
    for words, shown in lines:
        code, said = sit_down(words)
        assert "Traceback" not in said, (words, said)
        if shown is None:
            assert code == 0, (words, said)
            continue
        assert doctest.OutputChecker().check_output(shown, said, TOLD), f"$ {words}\n{said}\nbut shown is\n{shown}"
        assert (code != 0) == ("Error:" in shown), (words, code, said)


def test_a_study_by_files_comes_to_its_end(sit_down, tmp_path):
    said = ""
    for words, _ in typed((DOCS / "tutorials" / "files_only.md").read_text(encoding="utf-8")):
        code, more = sit_down(words)
        assert code == 0, (words, more)
        said += more
    assert "refused, and nothing was kept" in said
    assert "the study is over: 48 of 48 spent" in said
    assert re.search(r"^arm +R6$", said, re.M), said  # rye at 220 degrees
    assert (tmp_path / "bread.html").exists()
    assert "Traceback" not in said


def commands():
    """Every line of the documents that types a command of ours, and whether it is typed whole."""
    for path in TYPED:
        text = path.read_text(encoding="utf-8")
        fenced = [block for _, block in blocks(text, "shell", "console", "")]
        lines = itertools.chain.from_iterable(block.replace("\\\n", " ").splitlines() for block in fenced)
        plain = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
        for line in lines:
            if found := re.match(r"(?:\$ |> )?\s*(bestarm [a-z].*)", line):
                yield path.name, found[1], True
        for line in re.findall(r"`(bestarm [a-z][^`]*)`", plain):
            yield path.name, " ".join(line.split()), False


def words_of(line):
    """The words behind `bestarm`, as far as the shell gives them to it."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return list(itertools.takewhile(lambda word: not set(word) <= set("|&;<>()"), lexer))[1:]


def test_every_command_in_the_documents_is_understood(monkeypatch):
    monkeypatch.setenv("BESTARM_STORAGE", "s.db")
    seen = set()
    for name, line, whole in commands():
        words = words_of(line)
        command = main.loaded().get(words[0])
        assert command is not None, (name, line)
        seen.add(words[0])
        fine = () if whole else (click.MissingParameter,)  # in a sentence a command's name may do
        with contextlib.suppress(click.exceptions.Exit, *fine):  # after --help
            command.make_context(words[0], words[1:])
    assert seen == set(main.loaded())
