"""Batches and results as files: CSV as people make it, and refusals that name the line and the column."""

import csv
import hashlib
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any, TypeVar

from bestarm.errors import InputError
from bestarm.sheet import MISSING
from bestarm.study import results
from bestarm.study.fold import StudyState
from bestarm.study.storage import Record
from bestarm.study.study import Study
from bestarm.study.trials import Batch

T = TypeVar("T")

OURS = ("trial", "arm", "reward", "failed", "id")
NOT_FAILED = MISSING | {"0", "no", "false"}
SHOWN = 10  # problems of one file


@dataclass(frozen=True)
class Received:
    """What a file brought, in rows; `notes` are what its owner should look at."""

    new: int
    known: int
    blank: int
    failed: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """A line of results: what stands in our columns, blank where nothing does."""

    line: int
    trial: str = ""
    arm: str = ""
    reward: str = ""
    failed: str = ""
    id: str = ""


def write_batch(study: Study, batch: Batch, file: IO[str]) -> None:
    """Write a row for each trial: its id, its arm, the arm's own columns, and an empty cell for the reward."""
    fold = study.sync()
    ids, cells = fold.first["arms"]["ids"], fold.first["arms"].get("table")
    known = cells.items() if isinstance(cells, dict) else ()
    table = {name: dict(zip(ids, some, strict=False)) for name, some in known if isinstance(some, list) and some != ids}
    own = [name for name in table if name.strip().lower() not in OURS]
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["trial", "arm", *own, "reward"])
    for trial in batch:
        writer.writerow([trial.id, trial.arm, *(table[name].get(trial.arm, "") for name in own), ""])


def tell_file(study: Study, data: bytes, name: str, source: str | None = None) -> Received:
    """Tell the results in a CSV file, all of them or, if any line cannot be read, none."""
    rows = read_rows(data, name)
    return _receive(study, rows, data, name, source, asked=False)


def import_file(study: Study, data: bytes, name: str, source: str = "import") -> Received:
    """Add the earlier observations in a CSV file with columns arm and reward; they cost nothing."""
    rows = read_rows(data, name)
    for row in rows:
        if row.trial or not row.arm:
            what = "a trial is told, not imported" if row.trial else "an arm is expected"
            raise InputError(f"{name}, line {row.line}, column {'trial' if row.trial else 'arm'!r}: {what}")
    return _receive(study, rows, data, name, source, asked=True)


def read_rows(data: bytes, name: str) -> list[Row]:
    """Return the lines of a CSV file that say something; columns may come in any order, among others."""
    try:
        text = data.decode("utf-8-sig")
        lines = list(io.StringIO(text, newline=""))
        mark = _delimiter(lines, name)
        reader = csv.reader(lines, delimiter=mark, strict=True, skipinitialspace=True)
        header = [cell.strip().lower() for cell in next(reader)]
        places = {column: header.index(column) for column in OURS if column in header}
        for column in places:
            if header.count(column) > 1:
                raise InputError(
                    f"{name}, line 1: there are {header.count(column)} columns {column!r}; one is expected"
                )
        rows, line = [], reader.line_num + 1
        for cells in reader:
            if any(cell.strip() for cell in cells[len(header) :]):
                hint = "; is that a decimal comma? write 1.5, or separate the columns by ;" if mark == "," else ""
                raise InputError(f"{name}, line {line}: {len(header)} cells expected, {len(cells)} found{hint}")
            own = {column: cells[at].strip() for column, at in places.items() if at < len(cells)}
            if any(own.values()):
                rows.append(Row(line, **own))
            line = reader.line_num + 1
        return rows
    except UnicodeDecodeError as error:
        raise InputError(f"{name}: a CSV file in UTF-8 is expected; {error}") from error
    except csv.Error as error:
        raise InputError(f"{name}, line {reader.line_num}: this is not CSV: {error}") from error


def _delimiter(lines: Sequence[str], name: str) -> str:
    """Return the mark that cuts a header with our columns out of the first line."""
    for mark in ",;\t":
        header = [cell.strip().lower() for cell in next(csv.reader(lines, delimiter=mark, skipinitialspace=True), [])]
        if "reward" in header and ("trial" in header or "arm" in header):
            return mark
    found = (lines[0] if lines else "").strip()[:80]
    raise InputError(f"{name}, line 1: columns 'trial' (or 'arm') and 'reward' are expected; found {found!r}")


def _receive(study: Study, rows: list[Row], data: bytes, name: str, source: str | None, asked: bool) -> Received:
    digest = hashlib.sha256(data).hexdigest()[:16]
    counts = {"known": 0, "failed": 0}
    told: list[tuple[Row, Record]] = []

    def make(fold: StudyState) -> tuple[list[Record], list[Record]]:
        problems: list[str] = []
        failures: list[Record] = []
        told.clear()
        for row in rows:
            try:
                if row.failed.lower() not in NOT_FAILED:
                    failures.append(_failure(study, fold, row))
                elif row.reward.lower() not in MISSING:
                    told.append((row, _result(fold, row, f"file-{digest}:{row.line}", asked)))
                else:
                    _blank(fold, row)
            except InputError as error:
                problems.append(f"{name}, line {row.line}, {error}")
        problems += _twice(told, name)
        if problems:
            more = [f"and {len(problems) - SHOWN} more"] * (len(problems) > SHOWN)
            raise InputError("\n".join([*problems[:SHOWN], *more, "nothing of the file was kept"]))
        counts["known"] = len(told) - len(results.unseen(fold, [result for _, result in told]))
        gone = fold.seen | fold.failed
        counts["failed"] = sum(one["id"] not in gone for one in failures)
        return [result for _, result in told], failures

    new = study.record(make, source or name)
    blank = sum(row.reward.lower() in MISSING and row.failed.lower() in NOT_FAILED for row in rows)
    notes = _contradictions(study, told, name) if counts["known"] else ()
    return Received(new, counts["known"], blank, counts["failed"], notes)


def _result(fold: StudyState, row: Row, id: str, asked: bool) -> Record:
    value = _number(row)
    if not row.trial:
        if not row.arm:
            raise InputError("column 'trial': a trial id or an arm is expected; found nothing")
        return _at("arm" if row.arm not in fold.ids else "reward", results.extras, fold, row.arm, value,
                   _own_id(row.id) if row.id else id, asked)[0]  # fmt: skip
    _belongs(fold, row)
    return _at("reward", results.single, fold, row.trial, value)


def _own_id(id: str) -> str:
    return f"id-{id}"  # never like a trial's


def _failure(study: Study, fold: StudyState, row: Row) -> Record:
    if row.reward.lower() not in MISSING:
        raise InputError(f"column 'failed': a trial with a reward has not failed; found {row.failed[:40]!r}")
    if not row.trial:
        raise InputError("column 'trial': a trial id is expected of what failed; found nothing")
    _belongs(fold, row)
    return study.failure(fold, row.trial, row.failed)


def _blank(fold: StudyState, row: Row) -> None:
    if row.trial:
        _belongs(fold, row)


def _belongs(fold: StudyState, row: Row) -> None:
    number, slot = _at("trial", results.locate, fold, row.trial)
    arm = fold.ids[fold.history[number].plan[slot]]
    if row.arm and row.arm != arm:
        raise InputError(f"column 'arm': trial {row.trial} is of arm {arm!r}; found {row.arm!r}")


def _at(column: str, function: Callable[..., T], *given: Any) -> T:
    """Call a function, its refusals naming the column."""
    try:
        return function(*given)
    except InputError as error:
        raise InputError(f"column {column!r}: {error}") from None


def _number(row: Row) -> float:
    text = row.reward
    try:
        value = math.nan if "_" in text else float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        comma = "," in text and text.replace(",", "").replace(".", "").lstrip("+-").isdigit()
        hint = "; write a decimal point, as in 1.5" if comma else ""
        raise InputError(f"column 'reward': a number is expected{hint}; found {text[:40]!r}")
    return value


def _twice(told: list[tuple[Row, Record]], name: str) -> list[str]:
    """Return a problem for each id that stands in two lines with two values."""
    first: dict[str, tuple[Row, Record]] = {}
    problems = []
    for row, result in told:
        before, other = first.setdefault(result["id"], (row, result))
        if other["value"] != result["value"]:
            where = f"{name}, line {row.line}, column 'reward'"
            what = f"trial {row.trial}" if row.trial else f"id {row.id!r}"
            problems.append(f"{where}: {what} has another value in line {before.line}")
    return problems


def _contradictions(study: Study, told: list[tuple[Row, Record]], name: str) -> tuple[str, ...]:
    """Return a note for each result that was told before with another value."""
    before = {one["id"]: one["value"] for one in study.trials() if one["count"] == 1}
    notes = [
        f"{name}, line {row.line}: {row.trial or row.id or row.arm} was told {before[result['id']]:g} first; that stays"
        for row, result in told
        if before.get(result["id"], result["value"]) != result["value"]
    ]
    more = [f"and {len(notes) - SHOWN} more"] * (len(notes) > SHOWN)
    return (*notes[:SHOWN], *more)
