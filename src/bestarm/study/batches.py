"""Batches as files: what to measure, a row for each trial, such that it survives a spreadsheet."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO

from bestarm.study import plates
from bestarm.study.columns import SUMS, TIMES
from bestarm.study.sheets import OURS, WELLS, changed_by_spreadsheets, plain
from bestarm.study.state import StudyState
from bestarm.study.study import Study
from bestarm.study.trials import Batch, number_of
from bestarm.study.workbooks import workbook_bytes


def batch_columns(study: Study, batch: Batch) -> dict[str, list[str]]:
    """Return the columns of a batch: trials, wells if any has one, arms, the arms' own columns, a blank reward.

    Plates are sorted by their wells, which come first then.
    """
    state = study.sync()
    trials = [(number, trial) for trial in batch if (number := number_of(trial.id)) is not None]
    wells = {number: state.wells[number] for number, _ in trials if number in state.wells}
    on_plates = any(number in state.plates for number, _ in trials)
    if on_plates:
        trials.sort(key=lambda one: (state.plates.get(one[0], 0), plates.order(wells.get(one[0], ""))))
    columns = {"trial": [trial.id for _, trial in trials]}
    if wells:
        columns["well"] = [wells.get(number, "") for number, _ in trials]
    if on_plates:
        where = {"plate": [str(state.plates.get(number, "")) for number, _ in trials], "well": columns["well"]}
        columns = {**where, **columns}
    arms = [trial.arm for _, trial in trials]
    own = _own(state, arms, {*OURS, *(WELLS if on_plates else WELLS[1:] if wells else ())})
    return {**columns, "arm": arms, **own, "reward": [""] * len(arms)}


def arm_columns(study: Study, batch: Batch) -> dict[str, list[str]]:
    """Return the columns of a batch by arm: how often each is to be pulled, and blanks for what came of it."""
    state = study.sync()
    own = _own(state, batch.arms, {*OURS, *SUMS, *TIMES})
    columns = {"arm": [*batch.arms], **own, "times": [*map(str, batch.times)]}
    return columns | {name: [""] * len(batch.arms) for name in blank_columns(state)}


def blank_columns(state: StudyState) -> tuple[str, ...]:
    """Return the columns that say what came of several rewards, whichever the law can have."""
    law = state.rewards.law
    if law.limits == (0, 1):
        return "successes", "trials"
    return ("mean", "n") if law.counts_suffice else ("successes", "mean", "sd", "n")


def _own(state: StudyState, arms: Iterable[str], taken: Iterable[str]) -> dict[str, list[str]]:
    """Return the columns of the table of arms that are not taken, a cell for each of some arms."""
    table, taken = state.first["arms"].get("table"), {*taken}
    places = [state.places[arm] for arm in arms]
    found: dict[str, list[str]] = {}
    for name, cells in table.items() if isinstance(table, dict) else ():
        if isinstance(cells, list) and name.strip().lower() not in taken and cells != state.ids[: len(cells)]:
            later = {place: state.added.get(place, {}).get(name, "") for place in places if place >= len(cells)}
            found[name] = [str(cells[place] if place < len(cells) else later[place]) for place in places]
    return found


def write_batch(study: Study, batch: Batch, file: IO[str]) -> None:
    """Write a row for each trial: its id, its well if it has one, its arm, the arm's own columns, an empty reward.

    A file that a spreadsheet may open is better made by `batch_bytes`.
    """
    _write(batch_columns(study, batch), file)


def _write(columns: Mapping[str, Sequence[str]], file: IO[str]) -> None:
    for cells in (columns, *zip(*columns.values(), strict=True)):
        file.write(_line([*cells]))


def batch_bytes(study: Study, batch: Batch, path: str = "", by_arm: bool = False) -> bytes:
    """Return a batch as a file for a spreadsheet, a row for each trial or arm: a workbook if the path ends in .xlsx.

    Otherwise it is CSV in UTF-8, with a mark that spreadsheets know it by where it is not ASCII.
    """
    columns = arm_columns(study, batch) if by_arm else batch_columns(study, batch)
    if is_workbook(path):
        blank = [name for name, cells in columns.items() if name in ("reward", *SUMS, *TIMES) and not any(cells)]
        return workbook_bytes(columns, blank)
    text = io.StringIO(newline="")
    _write(columns, text)
    found = text.getvalue()
    return found.encode("ascii" if found.isascii() else "utf-8-sig", errors="backslashreplace")


def is_workbook(path: str) -> bool:
    """Whether a file is to be a workbook."""
    return Path(path).suffix.lower() == ".xlsx"


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
