"""What the catalog answers today is what it answered when answers.csv was made: the guard of every refactoring."""

import os
import subprocess
import sys

import pytest

from tests.answers.make import read


def test_no_answer_has_changed():
    made_with, rows = read()
    kernel = made_with.split()[-1]
    here = {**os.environ, "OPENBLAS_CORETYPE": kernel, "OMP_NUM_THREADS": "1"}
    say = "from tests.answers.make import made_with; print(made_with())"
    found = subprocess.run([sys.executable, "-c", say], env=here, capture_output=True, text=True, check=True)
    if found.stdout.strip() != made_with:
        pytest.skip(f"the answers were written down with {made_with}; here is {found.stdout.strip()}")
    program = [sys.executable, "-m", "tests.answers.make", "--check"]
    done = subprocess.run(program, env=here, capture_output=True, text=True, check=False)
    changed = [line for line in done.stdout.splitlines() if line.startswith("changed")]
    assert not changed, f"{len(changed)} of {len(rows)} answers have changed:\n" + "\n".join(changed[:20])
    assert done.returncode == 0, done.stderr
