"""Where a bench keeps what it measured: JSON lines in a folder, a header and then a chunk each."""

import base64
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bestarm.errors import InputError
from bestarm.simulate.chunks import CHUNK, Chunk
from bestarm.version import __version__

FORMAT = 2  # which calls a chunk a block


def to_json(chunk: Chunk) -> str:
    """Return one line, arrays packed."""
    packed = {
        "correct": _pack(np.packbits(chunk.correct)),
        "regret": _pack(np.asarray(chunk.regret, dtype="<f4")),
        "pulls": _pack(np.asarray(chunk.pulls, dtype="<i4")),
        "size": len(chunk.correct),
    }
    return json.dumps({"cell": chunk.cell, "number": chunk.number, "cpu": chunk.cpu, **packed})


def from_json(record: dict[str, Any]) -> Chunk:
    """Return the chunk of a line."""
    bits = np.unpackbits(np.frombuffer(base64.b64decode(record["correct"]), dtype=np.uint8))
    regret = np.frombuffer(base64.b64decode(record["regret"]), dtype="<f4")
    pulls = np.frombuffer(base64.b64decode(record["pulls"]), dtype="<i4")
    correct = bits[: record["size"]].astype(bool)
    return Chunk(record["cell"], record["number"], correct, regret, pulls, record["cpu"])


def _pack(array: Any) -> str:
    return base64.b64encode(array.tobytes()).decode()


@dataclass
class Store:
    """Finished chunks in a folder: one JSON line each, only ever appended. None keeps them in memory."""

    folder: Path | None
    seed: int
    chunks: dict[tuple[str, int], Chunk] = field(default_factory=dict)

    @property
    def path(self) -> Path | None:
        return None if self.folder is None else self.folder / "blocks.jsonl"

    @classmethod
    def open(cls, folder: str | os.PathLike[str] | None, seed: int) -> "Store":
        """Open a folder of results, reading what is there; refuse one of another seed or version."""
        store = cls(None if folder is None else Path(folder), seed)
        if store.path is None:
            return store
        try:
            store.path.parent.mkdir(parents=True, exist_ok=True)
            if store.path.exists() and store.path.stat().st_size:
                store._read()
            else:
                store._append(
                    json.dumps({"bestarm-bench": FORMAT, "version": __version__, "seed": seed, "block": CHUNK})
                )
        except OSError as error:
            raise InputError(f"results cannot be kept in {folder}: {error}") from error
        return store

    def _read(self) -> None:
        assert self.path is not None
        data = self.path.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):  # a crash cut the last line
            with self.path.open("r+b") as file:
                file.truncate(len(whole))
        lines = whole.decode("utf-8", "replace").splitlines()
        number = 1
        try:
            header = json.loads(lines[0])
            wanted = {"bestarm-bench": FORMAT, "version": __version__, "seed": self.seed, "block": CHUNK}
            for key, value in wanted.items():
                if header.get(key) != value:
                    raise InputError(
                        f"{self.path} has results of another {key} ({header.get(key)!r}, not {value!r}); "
                        "choose another folder, or the same seed and version"
                    )
            for line in lines[1:]:
                number += 1
                chunk = from_json(json.loads(line))
                self.chunks[chunk.cell, chunk.number] = chunk
        except (json.JSONDecodeError, KeyError, IndexError, AttributeError) as error:
            raise InputError(f"{self.path}, line {number}: this is not a results file of bestarm") from error

    def known(self, cell: str, number: int) -> int:
        """Return how many replications of a chunk are kept."""
        return len(self.chunks[cell, number].correct) if (cell, number) in self.chunks else 0

    def _append(self, line: str) -> None:
        assert self.path is not None
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def add(self, chunk: Chunk) -> None:
        """Keep a chunk; it is in the file when this returns."""
        if self.path is not None:
            try:
                self._append(to_json(chunk))
            except OSError as error:
                raise InputError(
                    f"results cannot be written to {self.path}: {error}; what was finished is kept"
                ) from error
        self.chunks[chunk.cell, chunk.number] = chunk
