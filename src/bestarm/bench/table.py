"""Results as one tidy row a cell: accuracy with its interval, regret, pulls, CPU seconds, paired differences."""

import csv
import io
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bestarm.errors import InputError
from bestarm.simulate.chunks import Chunk
from bestarm.simulate.intervals import paired, wilson

if TYPE_CHECKING:
    from bestarm.bench.runner import Results


def rows(results: "Results", against: str | None = None) -> list[dict[str, Any]]:
    """Return a row for every cell; `against` names the policy differences are taken to.

    A cell that failed has its reason in the column `failed`, which is there where one did, and no numbers.
    """
    outcomes = {key: np.concatenate([c.correct for c in chunks]) for key, chunks in results.chunks.items()}
    if against is not None and against not in {str(cell.policy) for cell in results.cells}:
        raise InputError(f"differences to {against!r} need that policy among those run")
    rivals = {(c.world_key, c.budget): c.key for c in results.cells if str(c.policy) == against}
    table = []
    for cell in results.cells:
        if cell.key not in results.chunks and cell.key not in results.failures:
            continue
        correct = outcomes.get(cell.key, np.zeros(0))[: results.replications]
        row = {
            "instance": cell.instance.world,
            "params": dict(cell.instance.params),
            "policy": str(cell.policy),
            "budget": cell.budget,
            "replications": len(correct),
            **_measured(results.chunks.get(cell.key, ()), correct),
            "seed": results.seed,
        }
        rival = rivals.get((cell.world_key, cell.budget))
        if rival in outcomes and len(correct):
            row |= dict(zip(DIFFERENCES, paired(correct, outcomes[rival][: len(correct)]), strict=True))
        table.append(row | ({"failed": results.failures.get(cell.key)} if results.failures else {}))
    return table


MEASURED = ("accuracy", "low", "high", "regret", "pulls_mean", "pulls_max", "cpu_seconds")
DIFFERENCES = ("difference", "difference_low", "difference_high")


def _measured(chunks: Sequence[Chunk], correct: Any) -> dict[str, Any]:
    """Return what the chunks of a cell say, None for each where there are none."""
    if not chunks:
        return dict.fromkeys(MEASURED)
    regret, pulls = (np.concatenate([getattr(chunk, key) for chunk in chunks]) for key in ("regret", "pulls"))
    chance = (float(correct.mean()), *wilson(int(correct.sum()), len(correct)))
    spent = (float(pulls.mean()), int(pulls.max()), float(sum(chunk.cpu for chunk in chunks)))
    return dict(zip(MEASURED, (*chance, float(regret.mean()), *spent), strict=True))


def flat(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with every parameter in a column of its own."""
    params = [row.get("params", {}) for row in table]
    names = list(dict.fromkeys(name for some in params for name in some))
    keys = list(dict.fromkeys(key for row in table for key in row if key != "params"))
    return [
        {keys[0]: row[keys[0]]} | {n: some.get(n) for n in names} | {k: row.get(k) for k in keys[1:]}
        for row, some in zip(table, params, strict=True)
    ]


def to_csv(table: list[dict[str, Any]]) -> str:
    """Return rows as CSV."""
    text = io.StringIO()
    listed = flat(table)
    if listed:
        writer = csv.DictWriter(text, list(listed[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(listed)
    return text.getvalue()


def read_csv(path: Path) -> list[dict[str, Any]]:
    """Return the rows that `to_csv` wrote, numbers as numbers and nothing as None."""
    with path.open(encoding="utf-8", newline="") as file:
        return [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(file)]


def _value(text: str) -> Any:
    if not text:
        return None
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def write(table: list[dict[str, Any]], folder: Path) -> list[Path]:
    """Write rows as CSV, JSON and, where pyarrow is there, Parquet; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / "table.csv", folder / "table.json"]
    files[0].write_text(to_csv(table), encoding="utf-8")
    files[1].write_text(json.dumps(table, indent=1), encoding="utf-8")
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        return files
    listed = flat(table)
    columns = {key: [row[key] for row in listed] for key in listed[0]} if listed else {}
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "table.parquet")
    return [*files, folder / "table.parquet"]
