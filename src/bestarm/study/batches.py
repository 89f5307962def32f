"""Batches as files: what to measure, a row for each trial, such that it survives a spreadsheet."""

import csv
import io
from collections.abc import Sequence
from typing import IO

from bestarm.study.sheets import OURS, changed_by_spreadsheets, plain
from bestarm.study.study import Study
from bestarm.study.trials import Batch, number_of


def batch_columns(study: Study, batch: Batch) -> dict[str, list[str]]:
    """Return the columns of a batch: trials, wells if any has one, arms, the arms' own columns, a blank reward."""
    state = study.sync()
    wells = {trial.id: state.wells[n] for trial in batch if (n := number_of(trial.id)) in state.wells}
    taken = {*OURS, *(["well"] if wells else [])}
    table = state.first["arms"].get("table")
    own = {
        name: cells
        for name, cells in (table.items() if isinstance(table, dict) else ())
        if isinstance(cells, list) and name.strip().lower() not in taken and cells != state.ids[: len(cells)]
    }
    columns = {"trial": [trial.id for trial in batch]}
    columns |= {"well": [wells.get(trial.id, "") for trial in batch]} if wells else {}
    columns["arm"] = [trial.arm for trial in batch]
    places = [state.places[trial.arm] for trial in batch]
    for name, cells in own.items():
        later = {place: state.added.get(place, {}).get(name, "") for place in places if place >= len(cells)}
        columns[name] = [str(cells[place] if place < len(cells) else later[place]) for place in places]
    return {**columns, "reward": [""] * len(places)}


def write_batch(study: Study, batch: Batch, file: IO[str]) -> None:
    """Write a row for each trial: its id, its well if it has one, its arm, the arm's own columns, an empty reward.

    A file that a spreadsheet may open is better made by `batch_bytes`.
    """
    columns = batch_columns(study, batch)
    for cells in (columns, *zip(*columns.values(), strict=True)):
        file.write(_line([*cells]))


def batch_bytes(study: Study, batch: Batch) -> bytes:
    """Return what `write_batch` writes in UTF-8, with a mark that spreadsheets know it by where it is not ASCII."""
    text = io.StringIO(newline="")
    write_batch(study, batch, text)
    found = text.getvalue()
    return found.encode("ascii" if found.isascii() else "utf-8-sig", errors="backslashreplace")


def _line(cells: Sequence[str]) -> str:
    """Return a line of CSV; whatever breaks lines inside a cell is quoted."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue()[:-2] + "\n"


def spreadsheet_note(study: Study, batch: Batch) -> str | None:
    """Return what to do where a spreadsheet would change ids of arms, None where it would not.

    Zeros before a number are no matter where they can be told from what is left of it.
    """
    alike: dict[str, int] = {}
    state = study.sync()
    for id in state.ids if state.rows is None else batch.arms:
        alike[plain(id)] = alike.get(plain(id), 0) + 1
    lost = [id for id in changed_by_spreadsheets(batch.arms) if plain(id) == id or alike[plain(id)] > 1]
    if not lost:
        return None
    more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
    return (
        f"a spreadsheet takes some arms' ids for numbers, dates or formulas and changes them: "
        f"{', '.join(map(repr, lost[:3]))}{more}; import the file as text, or delete column 'arm' before telling: "
        "the trials' ids are safe, and say which arm it was"
    )
