"""How long do people wait? CPU seconds of what is typed, in a fresh process, in times of `import numpy`."""

import os
import subprocess
import sys
import tempfile
from statistics import median

from benchmarks.against import SIZES, WAITING

STUDY = ["--study-name", "s", "--storage", "log.jsonl"]
COMMANDS = {
    "--version": ["--version"],
    "--help": ["--help"],
    "best": ["best", *STUDY],
    "report": ["report", *STUDY, "-o", "report.html"],
}


def main(quick: bool = False) -> None:
    repeats = 3 if quick else 7
    numpy, _ = spent(["-c", "import numpy"], ".", repeats)
    print(f"{'import numpy':28s} {numpy:7.3f} s")
    for arms, results in SIZES.items():
        if quick and arms > 1000:
            continue
        with tempfile.TemporaryDirectory() as place:
            filled = WAITING.format(arms, results).replace("place = tempfile.TemporaryDirectory()", "")
            program = filled.replace('place.name + "/log.jsonl"', '"log.jsonl"')
            subprocess.run([sys.executable, "-c", program], cwd=place, check=True)
            for name, words in COMMANDS.items():
                program = f"from bestarm.cli import main; main({words!r})"
                seconds, memory = spent(["-c", program], place, repeats)
                goal = {"--version": "   goal 2", "best": "   goal 3"}.get(name, "") if arms == 50 else ""
                head = f"{arms:,} arms, bestarm {name}"
                print(f"{head:28s} {seconds:7.3f} s {seconds / numpy:7.1f} times {memory:6.0f} MB{goal}", flush=True)


def spent(words: list[str], place: str, repeats: int) -> tuple[float, float]:
    """Return the CPU seconds a fresh Python takes, median of some, and the most memory it held, in MB."""
    found, memory = [], 0.0
    for _ in range(repeats + 1):
        process = subprocess.Popen([sys.executable, *words], cwd=place, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(process.returncode)
        found.append(used.ru_utime + used.ru_stime)
        memory = max(memory, used.ru_maxrss / 1024)
    return median(found[1:]), memory
