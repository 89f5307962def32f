"""The tutorials are true: their Python is run as doctests, their shell in an empty folder."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
MINE = ("clicks", "files_only", "noisy_function")


@pytest.mark.parametrize("name", MINE)
def test_the_python_of_a_tutorial_is_true(name):
    found = doctest.testfile(str(TUTORIALS / f"{name}.md"), module_relative=False)
    assert found.failed == 0
    assert found.attempted > 5 or name == "files_only"


def test_the_shell_of_a_tutorial_runs(tmp_path):
    text = (TUTORIALS / "files_only.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```shell\n(.*?)```", text, re.S)
    assert len(blocks) >= 7
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "bestarm"
    command.write_text(f"#!{sys.executable}\nfrom bestarm.cli import main\nmain()\n")
    command.chmod(0o755)
    env = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    script = "set -eu\n" + "\n".join(blocks)
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "refused, and nothing was kept" in done.stdout
    assert "the study is over: 48 of 48 spent" in done.stderr
    assert re.search(r"^R6 +", done.stdout, re.M), done.stdout  # rye at 220 degrees
    assert (tmp_path / "bread.html").exists()
    assert "Traceback" not in done.stderr
