"""Signs of life of the runners of a journal's studies: a folder beside it, with a file for each runner.

The first line of a file says of whom it is; every byte behind it is a sign of life.
"""

import contextlib
import hashlib
import json
from pathlib import Path

TRIES = 10  # another may remove the empty folder just when it was found


def beat(folder: Path, name: str, runner: str) -> None:
    """Add a sign of life."""
    path = _file(folder, name, runner)
    for again in range(TRIES - 1, -1, -1):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("ab") as file:
                file.write(b"." if file.tell() else json.dumps([name, runner]).encode() + b"\n.")
            return
        except FileNotFoundError:
            if not again:
                raise


def beats(folder: Path, name: str) -> dict[str, int]:
    """Return the number of signs of every runner of a study."""
    return {runner: number for study, runner, number, _ in _all(folder) if study == name}


def forget(folder: Path, name: str, runner: str | None = None) -> None:
    """Forget the signs of a runner, or of all of a study's."""
    for study, other, _, path in _all(folder):
        if study == name and runner in (None, other):
            path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()  # if it is empty


def _file(folder: Path, name: str, runner: str) -> Path:
    """Return where a runner's signs are: any name may be a study's or a runner's, but not a file's."""
    return folder / hashlib.sha256(f"{name}\n{runner}".encode()).hexdigest()[:32]


def _all(folder: Path) -> list[tuple[str, str, int, Path]]:
    found = []
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for path in sorted(folder.iterdir()):
            try:
                head, _, signs = path.read_bytes().partition(b"\n")
                study, runner = json.loads(head)
            except (OSError, ValueError, TypeError):
                continue  # removed meanwhile, or not one of ours
            found.append((study, runner, len(signs), path))
    return found
