"""Results as files and frames, as people make them: told whole or not at all."""

import hashlib
import shlex
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from reprlib import repr as shorten
from typing import Any

from bestarm.errors import SHOWN, ArmsError, InputError, listed
from bestarm.study import contents, results
from bestarm.study.batches import batch_bytes, spreadsheet_note, write_batch
from bestarm.study.beyond import Pending
from bestarm.study.candidates import id_column
from bestarm.study.columns import Columns
from bestarm.study.contents import Content
from bestarm.study.corrections import label, outliers
from bestarm.study.counts import Sums
from bestarm.study.entries import Entries
from bestarm.study.results import Difference
from bestarm.study.rounds import as_ranges
from bestarm.study.sheets import Row, read_rows, rows_of
from bestarm.study.state import Result, StudyState
from bestarm.study.storage import Record
from bestarm.study.study import Study
from bestarm.study.trials import id_of
from bestarm.tables.files import frame_grid

__all__ = [
    "Contradiction",
    "Received",
    "batch_bytes",
    "import_file",
    "spreadsheet_note",
    "tell_file",
    "tell_frame",
    "write_batch",
]

WAYS = (
    "--correct replaces what the file gave, --cumulative adds what is new where the file holds all results so far, and "
    "--as NAME counts it as another file, of more results"
)


@dataclass(frozen=True)
class Received:
    """What a file brought, in results; `found` is how it was read, `notes` what its owner should look at."""

    new: int
    known: int
    blank: int
    failed: int
    corrected: int = 0
    notes: tuple[str, ...] = ()
    answered: int = 0  # trials that were out, by results that name only their arm
    beyond: int = 0  # such results that are more than trials were out
    cost: float = 0.0  # of these, where the budget pays for them
    found: tuple[str, ...] = ()


class Contradiction(InputError):
    """A file says otherwise than the log; `differences` are all of it."""

    def __init__(self, name: str, differences: Sequence[Difference], way: str) -> None:
        self.differences = list(differences)
        lines = listed([str(one) for one in differences])
        super().__init__("\n".join([f"{name} contradicts the log:", *lines, f"nothing of the file was kept; {way}"]))


@dataclass(frozen=True)
class Way:
    """How a file is to be taken.

    `correct` says that the file holds where it contradicts the log. Rows that name only an arm are known by the file's
    name and what it said: where that has changed, `correct` replaces it, `cumulative` adds what is new, and `as_` gives
    the file another name. `readings="mean"` takes the mean where rows are of the same trial or `key`, the column that
    names what has no trial. `extras="spend"` takes results beyond the trials that are out from the budget. `plate` is
    that of the wells in the file, where no column says so. `columns` says what the file calls ours, by our names:
    {"successes": "clicks", "trials": "views"}.
    """

    name: str
    imported: bool = False
    correct: bool = False
    readings: str | None = None
    cumulative: bool = False
    as_: str | None = None
    key: str | None = None
    extras: str = "free"
    plate: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    why: str = ""

    def __post_init__(self) -> None:
        if self.readings not in (None, "mean"):
            raise InputError(f"--readings mean is what there is; given {self.readings!r}")
        if self.correct and self.cumulative:
            raise InputError("a file either replaces what it gave, --correct, or adds to it, --cumulative; not both")
        if self.as_ is not None and not self.as_.strip():
            raise InputError("--as gives the file another name; given none")

    @property
    def file(self) -> str:
        """The name the file counts under."""
        return self.name if self.as_ is None else self.as_


@dataclass(frozen=True)
class Parcel:
    """What a file says to a study as it is now: the records to write, and what they are made of."""

    entries: Entries
    given: list[Record]  # results of trials and keys
    content: Content | Sums | None  # of rows that name only an arm
    pending: Pending
    records: list[Record]
    amended: int  # rewards that are said otherwise, or restored
    corrected: int  # results, those among them that are excluded


def tell_file(study: Study, data: bytes, name: str, *, source: str | None = None, **how: Any) -> Received:
    """Tell the results in a CSV file, all of them or, if anything is wrong with one, none; `how` is as in `Way`.

    A row names its trial, its plate and well, what `key` names it by, or only an arm, whose oldest trials it answers;
    columns successes and trials, or mean, sd and n, are of several rewards. The same told again counts once; what
    contradicts the log is refused, unless `correct` says that the file holds.
    """
    way = Way(name, **how)
    return _receive(study, data, way, source or way.file)


def import_file(study: Study, data: bytes, name: str, *, source: str = "import", **how: Any) -> Received:
    """Add the earlier observations in a CSV file with columns arm and reward; they cost nothing. See `tell_file`."""
    return _receive(study, data, Way(name, imported=True, **how), source)


def _receive(study: Study, data: bytes, way: Way, source: str) -> Received:
    rows, found = read_rows(data, way.name, _columns(study.state, given=way.columns, key=way.key))
    return _taken(study, rows, found, hashlib.sha256(data).hexdigest()[:16], way, source)


def _columns(state: StudyState, **how: Any) -> Columns:
    table = state.first["arms"].get("table")
    return Columns(ids=id_column(state), own=table if isinstance(table, dict) else (), arms=state.places, **how)


def tell_frame(study: Study, frame: Any, source: str | None = None, correct: bool = False, why: str = "") -> Received:
    """Take results in a data frame, or in dicts, a row each; columns as in a file. The same frame again counts once."""
    try:
        grid = frame_grid(frame, "the frame")
    except ArmsError as error:
        what = "a batch, a trial, a trial id, a mapping from ids to values, a data frame or a list of dicts"
        raise InputError(f"{what} is expected; given {shorten(frame)} ({error})") from error
    rows, found = rows_of(grid, _columns(study.state, way="rename the column that is meant, {0!r}"))
    digest = hashlib.sha256(repr((grid.header, grid.columns)).encode(errors="surrogatepass")).hexdigest()[:16]
    way = Way("the frame", correct=correct, as_=f"frame {digest}", why=why)
    return _taken(study, rows, found, digest, way, source or "a frame")


def _taken(study: Study, rows: Sequence[Row], found: Sequence[str], old: str, way: Way, source: str) -> Received:
    made: list[Parcel] = []

    def make(state: StudyState) -> list[Record]:
        made[:] = [_parcel(state, rows, way, old)]
        return made[0].records

    new = study.write(make, source, way.why)
    parcel, entries = made[0], made[0].entries
    known = entries.count - new - parcel.amended
    failed = sum(record["kind"] == "fail" for record in parcel.records)
    notes = (*entries.notes, *_notes(study.state, parcel, way))
    out = parcel.pending
    beyond = (0, 0, 0.0) if way.imported else (out.answered, out.beyond, out.cost)
    return Received(new, max(0, known), entries.blank, failed, parcel.corrected, notes, *beyond, tuple(found))


def _parcel(state: StudyState, rows: Sequence[Row], way: Way, old: str) -> Parcel:
    entries = Entries(state, way.key, way.readings, way.imported, way.plate or "")
    entries.take(rows)
    if entries.problems:
        each = rows[0].each if rows else "line"
        lines = [f"{way.name}, {each} {line}, {what}" for line, what in entries.problems]
        raise InputError("\n".join([*listed(lines), "nothing of the file was kept"]))
    given = as_told(state, entries.results)
    content: Content | Sums | None = None
    if entries.sums:
        content = Sums.of(state, way.file, entries.sums, way.cumulative)
    elif entries.arms:
        content = contents.content_of(state, way.file, entries.arms, old)
    if content is not None and content.known and not way.correct:
        content = None  # there is nothing to do
    denied = _denied(state, entries)
    if content is not None and content.first and way.cumulative:
        _goes_on(state, way)
    if not way.correct:
        _agree(state, way, content, [*(one for one, _ in results.differing(state, given)), *denied])
    amended = results.contradictions(state, given, correct=True)
    records = [
        *results.telling(state, given),
        *results.failing(state, entries.failures),
        *amended,
        *_excluding(entries, denied, way.why),
    ]
    named = {trial for one in given for trial in results.trials_of(one)} | {trial for trial, _ in entries.failures}
    pending = Pending.of(state, way.extras, named)
    records += [] if content is None else content.records(state, way.why, _nameless if way.imported else pending.result)
    changed = sum(len(results.names_of(one)) for record in amended for one in record["results"])
    said, corrected = (0, 0) if content is None else (content.corrected, content.corrections)
    return Parcel(entries, given, content, pending, records, changed + said, changed + corrected + len(denied))


def _goes_on(state: StudyState, way: Way) -> None:
    """Refuse totals so far of a file of another name than those before: all that they held would count twice."""
    told = {one.file for one in state.results.values() if one.file and (one.of or one.heard >= 0)}
    others = [name for name in state.files if name in told]
    if others and not way.imported:
        raise InputError(
            f"nothing of {way.file} was told before: --as {shlex.quote(others[-1])} says that it holds what "
            f"{others[-1]} held and more; without --cumulative all of it is new"
        )


def _nameless(arm: int, said: Record, id: str) -> Record:
    """Return an earlier observation, which answers nothing."""
    return {"id": id, "arm": arm, **said}


def as_told(state: StudyState, given: Sequence[Record]) -> list[Record]:
    """Return results of trials as the log has them: as one where all trials of a sum are there."""
    found: list[Record] = []
    parts: dict[int | str, list[Record]] = {}
    for one in given:
        before = state.results.get(one["trial"]) if "trial" in one else None
        if before is None or len(before.of) < 2:
            found.append(one)
        else:
            parts.setdefault(before.name, []).append(one)
    for name, some in parts.items():
        whole = len(some) == len(state.results[name].of)
        found += [_sum(some)] if whole else some
    return found


def _sum(some: Sequence[Record]) -> Record:
    values = [one["value"] for one in some]
    where = {"trials": as_ranges(one["trial"] for one in some), "arm": some[0]["arm"], "n": len(values)}
    if set(values) <= {0, 1}:
        return {**where, "successes": int(sum(values))}
    return {**where, "mean": statistics.fmean(values), "sd": statistics.stdev(values)}


def _denied(state: StudyState, entries: Entries) -> list[Difference]:
    """Return the trials that failed, says the file, though they have a value that counts."""
    found = []
    for trial, _ in entries.failures:
        result = state.results.get(trial)
        if result is None or result.excluded or trial in state.failed:
            continue
        if len(result.of) > 1:
            raise InputError(f"{label(trial)} was told in a sum with others, and cannot have failed alone")
        found.append(Difference(trial, state.ids[result.arm], result.sum, None))
    return found


def _agree(state: StudyState, way: Way, content: Content | Sums | None, found: Sequence[Difference]) -> None:
    """Refuse what contradicts the log."""
    said = "--correct lets the file hold"
    if content is not None and not content.first and (content.contradicts or not way.cumulative):
        found = [*found, *content.differences(state, additions=not way.cumulative)]
        said = "with --cumulative a file only grows; --correct replaces what it gave" if way.cumulative else WAYS
    if found:
        raise Contradiction(way.name, found, said)


def _excluding(entries: Entries, denied: Sequence[Difference], why: str) -> list[Record]:
    trials = [one.name for one in denied if isinstance(one.name, int)]
    if not trials:
        return []
    reasons = dict(entries.failures)
    failed = "failed: " + ", ".join(dict.fromkeys(reasons[trial] for trial in trials[:SHOWN]))
    return [{"kind": "exclude", "trials": as_ranges(trials), "why": failed + (f"; {why}" if why else "")}]


def _notes(state: StudyState, parcel: Parcel, way: Way) -> list[str]:
    """Return what the owner of a file should look at, after it was told."""
    written = [one for record in parcel.records if record["kind"] in ("tell", "amend") for one in record["results"]]
    fresh = {name for one in written for name in results.names_of(one)}
    far = [one for one in outliers(state) if one.name in fresh]
    given = [state.results[name] for one in parcel.given for name in results.names_of(one)[:1]]
    silent = [one for one in given if one.excluded] + [*(parcel.content.silent if parcel.content else ())]
    late = [str(one) for one, _ in results.differing(state, parcel.given)]
    return [
        *listed([f"{line}: somebody told it at the same moment, and that stays" for line in late]),
        *listed([_far(state, one) for one in far]),
        *listed([f"{label(one.name)} is excluded, and stays so: bestarm restore {quoted(one)}" for one in silent]),
        *([] if way.imported else _unanswered(state, written)),
        *_twin(state, parcel.content),
    ]


def _twin(state: StudyState, content: Content | Sums | None) -> list[str]:
    """Return a note where another file said the same: its results count twice now."""
    if content is None or not content.new:
        return []
    others = (name for name, told in state.files.items() if told.digest == content.digest and name != content.name)
    other = next(others, None)
    mine = [state.results[id] for id in state.files[content.name].ids]
    if other is None:
        return []
    source = mine[0].source
    alone = source and sum(one.source == source for one in state.told) == len(mine)
    which = f"--source {shlex.quote(source)}" if alone else " ".join(map(quoted, mine[:3])) + " ..." * (len(mine) > 3)
    return [
        f"{content.name} says the same as {other}, and both count; if it is a copy: bestarm exclude {which} --why copy"
    ]


def _far(state: StudyState, one: Result) -> str:
    name = quoted(one)
    return (
        f"{label(one.name)} of arm {state.ids[one.arm]!r} is {one.sum:g}, far from all else, and is kept; if wrong: "
        f"bestarm amend {name} VALUE --why ..., or bestarm exclude {name} --why ..."
    )


def quoted(one: Result) -> str:
    """Return the name of a result as the command line takes it."""
    return id_of(one.name) if isinstance(one.name, int) else shlex.quote(one.name)


def _unanswered(state: StudyState, written: Sequence[Record]) -> list[str]:
    """Return a note where keys name results of arms of which trials are out."""
    out = {state.arm_of(trial) for trial in state.open_trials()}
    extra = sum("id" in one and "beyond" not in one and one["arm"] in out for one in written)
    if not extra:
        return []
    many = "1 result has a key" if extra == 1 else f"{extra} results have keys"
    return [
        f"{many} and no trial, though trials of the same arms are out: to answer those, name them in column 'trial'"
    ]
