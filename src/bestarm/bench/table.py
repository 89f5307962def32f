"""Results as one tidy row a cell: accuracy with its interval, regret, pulls, CPU seconds, paired differences."""

import csv
import io
import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bestarm.errors import InputError
from bestarm.simulate.intervals import paired, wilson

if TYPE_CHECKING:
    from bestarm.bench.runner import Results


def rows(results: "Results", against: str | None = None) -> list[dict[str, Any]]:
    """Return a row for every cell that did not fail; `against` names the policy differences are taken to."""
    outcomes = {key: np.concatenate([c.correct for c in chunks]) for key, chunks in results.chunks.items()}
    if against is not None and against not in {str(cell.policy) for cell in results.cells}:
        raise InputError(f"differences to {against!r} need that policy among those run")
    rivals = {(c.world_key, c.budget): c.key for c in results.cells if str(c.policy) == against}
    table = []
    for cell in results.cells:
        if cell.key not in results.chunks:
            continue
        chunks = results.chunks[cell.key]
        correct = outcomes[cell.key][: results.replications]
        regret, pulls = (np.concatenate([getattr(c, a) for c in chunks]) for a in ("regret", "pulls"))
        low, high = wilson(int(correct.sum()), len(correct))
        row = {
            "instance": cell.instance.world,
            "params": dict(cell.instance.params),
            "policy": str(cell.policy),
            "budget": cell.budget,
            "replications": len(correct),
            "accuracy": float(correct.mean()),
            "low": low,
            "high": high,
            "regret": float(regret.mean()),
            "pulls_mean": float(pulls.mean()),
            "pulls_max": int(pulls.max()),
            "cpu_seconds": float(sum(c.cpu for c in chunks)),
            "seed": results.seed,
        }
        rival = rivals.get((cell.world_key, cell.budget))
        if rival in outcomes:
            difference = paired(correct, outcomes[rival][: len(correct)])
            row |= dict(zip(("difference", "difference_low", "difference_high"), difference, strict=True))
        table.append(row)
    return table


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
