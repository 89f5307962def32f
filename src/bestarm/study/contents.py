"""Results of a file that name only their arms: known by the file's name and by what it said, never by their lines.

What a file gave before is matched with what it says now, value by value of each arm, so the order of its rows does not
matter. A file that gave [1, 2] of an arm and says [1, 3] has changed one result; one that says [1] has one less.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bestarm.study.corrections import among, restated
from bestarm.study.results import Difference
from bestarm.study.state import Result, StudyState
from bestarm.study.storage import Record

Values = Sequence[tuple[int, float]]  # arm, value

LONGEST = 200  # characters of an id made here
ACTIVE, EXCLUDED, GONE = range(3)


@dataclass(frozen=True)
class Content:
    """What a file says now, beside what it gave."""

    name: str
    values: Values
    digest: str
    known: bool  # it said the same when it was told last
    first: bool  # it gave nothing yet
    changed: list[tuple[Result, float]] = field(default_factory=list)
    gone: list[Result] = field(default_factory=list)
    back: list[Result] = field(default_factory=list)  # gone with an earlier content, and there again
    silent: list[Result] = field(default_factory=list)  # excluded by hand, and still there
    new: Values = ()

    @property
    def contradicts(self) -> bool:
        """Whether something that the file gave is not there any more."""
        return bool(self.changed or self.gone)

    @property
    def corrected(self) -> int:
        """How many of the rewards that the file says are corrections."""
        return len(self.changed) + len(self.back)

    @property
    def corrections(self) -> int:
        """How many results are put right."""
        return len(self.changed) + len(self.back) + len(self.gone)

    def records(self, state: StudyState, why: str, result: Callable[[int, Record, str], Record]) -> list[Record]:
        """Return the records by which a file's results are what it says now; `result` says what a new one is of."""
        told: list[Record] = []
        if self.new or self.changed or self.gone or self.back:
            file = {"name": self.name, "digest": self.digest}
            new = [result(one["arm"], {"value": one["value"]}, one["id"]) for one in _named(state, self)]
            told = [{"kind": "tell", "results": new, "file": file}]
        if self.changed:
            told.append({"kind": "amend", "results": [restated(one, value) for one, value in self.changed]})
        if self.gone:
            because = reason(self.name) + (f": {why}" if why else "")
            told.append({"kind": "exclude", **among(self.gone), "why": because})
        if self.back:
            told.append({"kind": "restore", **among(self.back)})
        return told

    def differences(self, state: StudyState, additions: bool) -> list[Difference]:
        """Return how a file differs from what it gave; with `additions` also what is new."""
        ids = state.ids
        found = [Difference(one.name, ids[one.arm], one.sum, value) for one, value in self.changed]
        found += [Difference(one.name, ids[one.arm], one.sum, None) for one in self.gone]
        if additions:
            found += [Difference(one.name, ids[one.arm], None, one.sum) for one in self.back]
            found += [Difference(one["id"], ids[one["arm"]], None, one["value"]) for one in _named(state, self)]
        return found


def content_of(state: StudyState, name: str, values: Values, old: str) -> Content:
    """Return what the file `name` says beside what it gave; `old` is how version 1 named this content."""
    gave, digest = _given(state, name, old), digest_of(state, values)
    told = state.files.get(name)
    same, first = told is not None and told.digest == digest, told is None and not gave
    pools: dict[tuple[int, str], list[Result]] = {}
    for result in sorted(gave, key=lambda one: standing(state, one, name))[::-1]:
        pools.setdefault((result.arm, _written(result.sum)), []).append(result)
    matched, left = [], list[tuple[int, float]]()
    for arm, value in sorted(values):
        pool = pools.get((arm, _written(value)))
        if pool:
            matched.append(pool.pop())  # those that count first, in their order
        else:
            left.append((arm, value))
    over = sorted(
        (one for pool in pools.values() for one in pool if not one.excluded), key=lambda one: (one.arm, one.sum)
    )
    changed, gone, new = _paired(over, left)
    back = [one for one in matched if standing(state, one, name) == GONE]
    silent = [one for one in matched if standing(state, one, name) == EXCLUDED]
    return Content(name, values, digest, same, first, changed, gone, back, silent, new)


def _paired(over: Sequence[Result], left: Values) -> tuple[list[tuple[Result, float]], list[Result], Values]:
    """Return results that have another value now, those that have none, and values without a result."""
    values: dict[int, list[float]] = {}
    for arm, value in reversed(left):
        values.setdefault(arm, []).append(value)
    changed, gone = [], []
    for result in over:
        mine = values.get(result.arm)
        if mine:
            changed.append((result, mine.pop()))
        else:
            gone.append(result)
    return changed, gone, [(arm, value) for arm, mine in values.items() for value in reversed(mine)]


def told_by(state: StudyState, name: str) -> list[Result]:
    """Return what a file gave."""
    ids = dict.fromkeys(state.files[name].ids if name in state.files else ())
    return [state.results[id] for id in ids]


def _given(state: StudyState, name: str, old: str) -> list[Result]:
    """Return what a file gave; version 1 kept no names of files but as sources, and lines of contents as ids."""
    given = told_by(state, name)
    if state.first["version"] > 1:
        return given
    return given + [
        one
        for id, one in state.results.items()
        if isinstance(id, str) and id.startswith("file-") and (one.source == name or id.startswith(f"file-{old}:"))
    ]


def standing(state: StudyState, result: Result, name: str) -> int:
    """Return whether a result counts, is excluded, or is excluded since the file did not have it any more."""
    if not result.excluded:
        return ACTIVE
    last = [number for number in result.corrections if state.changes[number].kind == "exclude"][-1]
    return GONE if state.changes[last].why.startswith(reason(name)) else EXCLUDED


def reason(name: str) -> str:
    """Return why a result is excluded that its file does not have any more."""
    return f"{name} does not have it any more"


def digest_of(state: StudyState, values: Values) -> str:
    """Return what tells one content of a file from others, whatever the order of its rows."""
    lines = sorted(f"{state.ids[arm]}\t{_written(value)}\n" for arm, value in values)
    return f"sha256:{hashlib.sha256(''.join(lines).encode(errors='surrogatepass')).hexdigest()}"


def _written(value: float) -> str:
    return f"{value + 0.0:.12g}"  # spreadsheets keep 15 digits; -0 is 0


def _named(state: StudyState, content: Content) -> list[Record]:
    """Return the new results with ids: the file's, the arm's, and which of the arm's it is."""
    last: Counter[int] = Counter()
    results: list[Record] = []
    for arm, value in content.new:
        while True:
            last[arm] += 1
            id = id_in(content.name, state.ids[arm], last[arm])
            if id not in state.results:
                break
        results.append({"id": id, "arm": arm, "value": value})
    return results


def id_in(name: str, arm: str, which: int) -> str:
    """Return the id of a result of a file that says only which arm it is of.

    >>> id_in("lab.csv", "A7", 2)
    'file:lab.csv:A7:2'
    """
    id = f"file:{name}:{arm}:{which}"
    if len(id) <= LONGEST:
        return id
    return f"file:{hashlib.sha256(id.encode(errors='surrogatepass')).hexdigest()}"
