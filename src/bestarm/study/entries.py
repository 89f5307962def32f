"""The rows of a file of results, sorted by what they name: a trial, a key, or only an arm. Nothing here writes."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from bestarm.errors import SHOWN, InputError, UnknownNameError, listed
from bestarm.study.naming import locate, old_trial
from bestarm.study.plates import trial_in, written
from bestarm.study.results import together, usable
from bestarm.study.sheets import Row, number, plain
from bestarm.study.state import StudyState
from bestarm.study.storage import Record
from bestarm.study.trials import WRITTEN, id_of, number_of

T = TypeVar("T")


@dataclass(frozen=True)
class Reading:
    """What a row says of a trial or of what its key names; `value` is None where it failed."""

    row: Row
    arm: int
    value: float | None


@dataclass
class Entries:
    """What a file says, row by row; problems are collected, so that all are named at once."""

    state: StudyState
    key: str | None = None
    readings: str | None = None
    imported: bool = False
    plate: str = ""  # of rows that say none
    results: list[Record] = field(default_factory=list)  # of trials and of keys
    failures: list[tuple[int, str]] = field(default_factory=list)  # trial, reason
    arms: list[tuple[int, float]] = field(default_factory=list)  # of rows that name nothing else
    sums: list[tuple[int, Record]] = field(default_factory=list)  # of such rows, several rewards each
    blank: int = 0
    problems: list[tuple[int, str]] = field(default_factory=list)  # line, what is wrong
    said: dict[int | str, list[Reading]] = field(default_factory=dict)
    means: list[str] = field(default_factory=list)  # a note for each
    spellings: dict[str, str] = field(default_factory=dict)  # arms as they stand in the file, where that is otherwise
    fine: set[float] = field(default_factory=set)  # values that the model takes

    def take(self, rows: Sequence[Row]) -> None:
        """Sort rows."""
        rows = [self._placed(row) for row in rows]
        for row in rows:
            try:
                self._sort(row)
            except InputError as error:
                self.problems.append((row.line, str(error)))
        for name, given in self.said.items():
            try:
                self._settle(name, given)
            except InputError as error:
                self.problems.append((given[-1].row.line, str(error)))
        self._find_trials([row for row in rows if row.measured and not row.trial])
        self.problems.sort(key=lambda problem: problem[0])

    @property
    def notes(self) -> list[str]:
        """What was made of the rows that the file does not say."""
        taken = [f"arm {cell!r} is taken for {arm!r}" for cell, arm in self.spellings.items()]
        return [*listed(taken), *listed(self.means)]

    @property
    def count(self) -> int:
        """How many rewards are said."""
        return len(self.results) + len(self.arms) + sum(int(one["n"]) for _, one in self.sums)

    def _placed(self, row: Row) -> Row:
        """Return a row with the trial that is in its well, where it names no other."""
        if not row.well or row.trial or self.imported or not self.state.wells or not (row.measured or row.has_failed):
            return row
        try:
            return replace(row, trial=id_of(at("well", trial_in, self.state, row.well, row.plate or self.plate)))
        except InputError as error:
            self.problems.append((row.line, f"{error}; leave blank what is not to be told"))
            return replace(row, reward="", failed="", well="")

    def _sort(self, row: Row) -> None:
        if self.imported and row.trial:
            raise InputError("column 'trial': a trial is told, not imported")
        if row.has_failed:
            if row.measured:
                raise InputError(f"column 'failed': a trial with a reward has not failed; found {row.failed[:40]!r}")
            if not row.trial:
                raise InputError("column 'trial': a trial id is expected of what failed; found nothing")
            trial = self._trial(row)
            self.said.setdefault(trial, []).append(Reading(row, self.state.arm_of(trial), None))
        elif row.sums:
            self._summed(row)
        elif row.measured:
            self._measured(row, number(row.reward, row.called("reward")))
        else:
            self.blank += 1
            if row.trial:
                self._trial(row)

    def _find_trials(self, rows: Sequence[Row]) -> None:
        """Refuse rows that name their trials where nobody looks: they would count as results nobody asked for."""
        found = Counter(column for row in rows for column, cell in row.others if self._is_of(cell, row.arm))
        column, times = found.most_common(1)[0] if found else ("", 0)
        if times and 2 * times >= len(rows):
            way = "tell the file, with that column called 'trial'" if self.imported else "call that column 'trial'"
            what = f"column {column!r} holds ids of this study's trials, and each of these results would count beside"
            self.problems.append((1, f"{what} its trial: {way}; if they are ids of something else, leave it out"))

    def _is_of(self, cell: str, arm: str) -> bool:
        """Whether a cell is the id of a trial of an arm."""
        trial = number_of(cell) or 0
        return 0 < trial <= self.state.handed and self.state.ids[self.state.arm_of(trial)].strip() == arm

    def _summed(self, row: Row) -> None:
        """Take what several rewards of an arm come to; of none it is nothing."""
        if row.trial or self.key is not None:
            column = "trial" if row.trial else self.key
            raise InputError(f"column {column!r}: several rewards are of an arm, and have no name; leave it blank")
        cell, column = row.count
        if not cell:
            raise InputError(f"column {row.called(column)!r}: how many rewards these are is expected; found nothing")
        known = {name: number(text, row.called(name)) for name, text in row.sums.items()}
        known["n"] = number(cell, row.called(column))
        if known["n"] == known.get("successes") == 0:
            self.blank += 1
            return
        self.sums.append((self._extra_arm(row), together(self.state, known, f"arm {row.arm!r}")))

    def _measured(self, row: Row, value: float) -> None:
        if row.trial:
            trial = self._trial(row)
            self.said.setdefault(trial, []).append(Reading(row, self.state.arm_of(trial), value))
            return
        arm = self._extra_arm(row)
        if row.id:
            self.said.setdefault(key_id(self.state, row.id), []).append(Reading(row, arm, value))
        elif self.key is not None:
            raise InputError(f"column {self.key!r}: a key that names the row is expected; found nothing")
        else:
            self.arms.append((arm, self._allowed(value, f"arm {row.arm!r}")))

    def _extra_arm(self, row: Row) -> int:
        """Return the arm of a row without a trial."""
        if not row.arm:
            column, what = ("arm", "an arm") if self.imported else ("trial", "a trial id or an arm")
            raise InputError(f"column {column!r}: {what} is expected; found nothing")
        arm = self._arm(row.arm)
        if not (self.imported or self.state.options["extra"] or arm in self._asked):
            raise InputError(
                f"column 'arm': arm {row.arm!r} was not asked for, and this study takes no extra results; "
                "name the trial in a column 'trial'"
            )
        return arm

    @cached_property
    def _asked(self) -> set[int]:
        """The arms that were ever asked for."""
        return {self.state.arm_of(trial) for trial in range(1, self.state.handed + 1)}

    def _allowed(self, value: float, place: str) -> float:
        """Return a value that the study's model can use; it is asked once about each."""
        if value not in self.fine:
            at("reward", usable, self.state, value, place)
            self.fine.add(value)
        return value

    def _trial(self, row: Row) -> int:
        """Return the trial a row names, whose arm must be the row's where that is named too."""
        trial: int = at("trial", locate, self.state, row.trial)
        arm = self.state.arm_of(trial)
        well = self.state.wells.get(trial, "")
        if row.well and trial in self.state.plates and written(row.well) != well:
            plate = self.state.plates[trial]
            raise InputError(f"column 'well': trial {row.trial} is in {well} of plate {plate}; found {row.well!r}")
        others = mistakable(self.state, row.trial, trial)
        hint = f"; or has a spreadsheet dropped the last zero of what is now {id_of(others[0])}?" if others else ""
        if row.arm and row.arm != self.state.ids[arm].strip() and self._arm(row.arm) != arm:
            said = f"trial {row.trial} is of arm {self.state.ids[arm]!r}; found {row.arm!r}"
            raise InputError(f"column 'arm': {said}{hint}")
        sure = row.arm and ("." in row.trial or all(self.state.arm_of(other) != arm for other in others))
        if others and not sure:
            raise InputError(f"column 'trial': {row.trial} may be {id_of(trial)}{hint} Write the one it is")
        return trial

    def _arm(self, cell: str) -> int:
        """Return an arm by its id, also where a spreadsheet dropped its zeros or blanks and no other is alike."""
        ids = self.state.ids
        if cell in self.state.places:
            place: int = self.state.places[cell]
            return place
        alike = self._plain.get(plain(cell), [])
        if len(alike) == 1:
            self.spellings[cell] = ids[alike[0]]
            return alike[0]
        if alike:
            raise InputError(f"column 'arm': {cell!r} may be {ids[alike[0]]!r} or {ids[alike[1]]!r}; write it in full")
        if len(self.problems) < SHOWN:  # what is nearest takes long to find
            raise InputError(f"column 'arm': {UnknownNameError('arm', cell, ids)}")
        raise InputError(f"column 'arm': unknown arm {cell!r}")

    @cached_property
    def _plain(self) -> dict[str, list[int]]:
        """The arms by what a spreadsheet leaves of their ids."""
        found: dict[str, list[int]] = {}
        for arm, id in enumerate(self.state.ids):
            found.setdefault(plain(id), []).append(arm)
        return found

    def _settle(self, name: int | str, given: Sequence[Reading]) -> None:
        """Make one result, or one failure, of all that is said of a trial or a key."""
        first = given[0]
        what, column = (id_of(name), "trial") if isinstance(name, int) else (repr(first.row.id), self.key or "id")
        self._one_arm(name, given)
        if len(given) > 1 and self.readings is None:
            raise InputError(
                f"column {column!r}: {what} stands in {first.row.each} {first.row.line} already; "
                "--readings mean takes the mean of its values"
            )
        values = [one.value for one in given if one.value is not None]
        if not values:
            self.failures += [(name, first.row.failed)] if isinstance(name, int) else []
            return
        mean = values[0] if len(values) == 1 else math.fsum(values) / len(values)
        if len(given) > 1:
            self.means.append(f"{what}: the mean of {len(values)} readings, {mean:g}")
        where: Record = {"trial": name} if isinstance(name, int) else {"id": name}
        place = f"trial {what}" if isinstance(name, int) else f"{column} {what}"
        self.results.append({**where, "arm": first.arm, "value": self._allowed(mean, place)})

    def _one_arm(self, name: int | str, given: Sequence[Reading]) -> None:
        """Refuse a key that stands for two arms, here or in the log."""
        if isinstance(name, int):
            return
        first, ids = given[0], self.state.ids
        before = self.state.results.get(name)
        other = next((one for one in given if one.arm != first.arm), None)
        if other is not None:
            said = f"{other.row.id!r} is of arm {ids[first.arm]!r} in {first.row.each} {first.row.line}"
            raise InputError(f"column {self.key or 'id'!r}: {said}; found {other.row.arm!r}")
        if before is not None and before.arm != first.arm:
            raise InputError(
                f"column 'arm': result {name!r} is of arm {ids[before.arm]!r} in the log; found {first.row.arm!r}; "
                "exclude that one, and give this row another key"
            )


def at(column: str, function: Callable[..., T], *given: Any) -> T:
    """Call a function, its refusals naming the column."""
    try:
        return function(*given)
    except InputError as error:
        raise InputError(f"column {column!r}: {error}") from None


def key_id(state: StudyState, key: str) -> str:
    """Return the id of the result that a key names: the key, unless it looks like a trial's or an option."""
    marked = f"id-{key}"  # as version 1 marked all
    return marked if marked in state.results or key[0].isdigit() or key[0] == "-" or WRITTEN.match(key) else key


def mistakable(state: StudyState, cell: str, trial: int) -> list[int]:
    """Return the trials of version 1 that a cell may also stand for: a spreadsheet makes 0.1 of 0.10, and 3 of 3.0."""
    number, dot, slot = cell.partition(".")
    if not (state.old_rounds and number.isascii() and number.isdigit()) or (dot and slot.endswith("0")):
        return []
    if not dot:
        other = old_trial(state, int(number), 0)
        return [] if other in (None, trial) else [other]
    found, longer = [], int(slot) * 10
    while (other := old_trial(state, int(number), longer)) is not None:
        found.append(other)
        longer *= 10
    return found
