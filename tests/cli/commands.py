"""What tests of the command line share: files as people write them, and how a command ended."""

import csv
import io

from bestarm import load_study

ARMS = "code,temp,acid,batch no\nA,1,0.2,x1\nB,2,0.5,x2\nC,3,0.1,x3\nD,4,0.9,x4\nE,5,0.3,x5\n"
CREATE = ("--arms", "arms.csv", "--id", "code", "--exclude", "batch no", "--seed", 1, "--policy", "uniform")


def told(path, values, name="told.csv"):
    """The file of `ask` with these rewards, in a file of this name."""
    with open(path) as file:
        head, *lines = file.read().splitlines()
    text = "\n".join([head, *(f"{line}{value}" for line, value in zip(lines, values, strict=True))])
    return write(text + "\n", name)


def write(text, name):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)
    return name


def fine(done):
    assert done.exit_code == 0, done.output
    assert "Traceback" not in done.output
    return done.stderr


def refused(done, code=1):
    assert done.exit_code == code, done.output
    assert isinstance(done.exception, SystemExit)
    return done.stderr


def state(name="assay"):
    return load_study(name).state


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))
