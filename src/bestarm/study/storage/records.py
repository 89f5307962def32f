"""Records as text: what every storage keeps, how it is read again, and how damage to it is noticed."""

import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, overload

from bestarm.errors import InputError, StorageError

Record: TypeAlias = Mapping[str, Any]

CHUNK = 50  # records parsed together: fewer calls, and still within the processor's cache
WAY_OUT = "`bestarm doctor --salvage OUT` writes what is whole into a new log"
LIMIT = 1 << 28  # bytes of one record: 256 MiB


class Remark(str):
    """A note about a storage that wants nothing done."""

    __slots__ = ()


@dataclass(frozen=True)
class Records(Sequence[Record]):
    """Records as they lie in a log, parsed as they are walked through: a million take the room of their text.

    `mark` names the log: another one of the same name, made after this was deleted, has another mark.
    """

    lines: Sequence[str] | Sequence[bytes] = ()
    place: str = "memory"
    start: int = 0
    mark: object = None

    def __len__(self) -> int:
        return len(self.lines)

    @overload
    def __getitem__(self, at: int) -> Record: ...
    @overload
    def __getitem__(self, at: slice) -> "list[Record]": ...
    def __getitem__(self, at: int | slice) -> "Record | list[Record]":
        if isinstance(at, slice):
            return [self._one(i) for i in range(len(self))[at]]
        return self._one(range(len(self))[at])

    def __iter__(self) -> Iterator[Record]:
        return self.after(0)

    def after(self, some: int) -> Iterator[Record]:
        """Walk through all records but for the first ones."""
        for at in range(some, len(self.lines), CHUNK):
            chunk = self.lines[at : at + CHUNK]
            try:
                found = decode(_array(chunk))
            except (ValueError, RecursionError):
                found = None
            if found is None or len(found) != len(chunk) or not all(type(one) is dict for one in found):
                found = map(self._one, range(at, at + len(chunk)))  # to find the bad one
            yield from found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def _one(self, at: int) -> Record:
        record = parse(self.lines[at])
        if isinstance(record, str):
            raise StorageError(f"{self.place}: record {self.start + at} {record}")
        return record


def _array(lines: Sequence[Any]) -> str | bytes:
    return b"[%b]" % b",".join(lines) if isinstance(lines[0], bytes) else f"[{','.join(lines)}]"


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def decode(text: str | bytes) -> Any:
    """Return what JSON says; ValueError if it is none, or has a NaN or an infinity in it."""
    return _DECODER.decode(text if isinstance(text, str) else text.decode())


def parse(text: str | bytes) -> Record | str:
    """Return a record, or what is wrong with its text, beginning with "is not"."""
    try:
        record = decode(text)
    except (ValueError, RecursionError) as error:
        return f"is not JSON: {error}"
    return record if isinstance(record, dict) else "is not a JSON object"


def encode(record: Record) -> str:
    """Return a record as one line of ASCII."""
    try:
        text = json.dumps(record, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise StorageError(f"a record that is not JSON cannot be kept: {error}") from None
    if len(text) > LIMIT:
        raise StorageError(f"a record of {len(text):,} bytes cannot be kept; at most {LIMIT:,} are expected")
    return text


def checksum(name: str, number: int, text: str) -> int:
    """Return the CRC-32 of a record's study, its number there and its text."""
    return zlib.crc32(f"{name}\n{number}\n{text}".encode())


def complaint(name: str, number: int, text: object, crc: object, old: bool) -> str | None:
    """Return what is wrong with a row of a database; `old` if every record before it was of version 1 too."""
    if not isinstance(text, str):
        return "its text is no text"
    if crc is None:
        return None if old else "it has no CRC, though one before it has"
    try:
        right = checksum(name, number, text) == crc
    except UnicodeEncodeError:
        right = False
    return None if right else "its CRC does not fit"


def damaged(place: str, number: int, why: str) -> StorageError:
    """Return the error that names a damaged record; `place` names the storage and the study."""
    return StorageError(f"{place}: record {number} is damaged: {why}; {WAY_OUT}")


def salvaged(name: str, rows: Iterable[tuple[int, Any, Any]], length: int = 0) -> list[tuple[int, Record | str]]:
    """Return every record of a database's (number, text, crc), in order, or why it is damaged.

    Numbers below `length` that have no row are missing.
    """
    found: list[tuple[int, Record | str]] = []
    old, next_number = True, 0
    for number, text, crc in rows:
        found += [(gap, "it is missing") for gap in range(next_number, number)]
        why = complaint(name, number, text, crc, old)
        old = old and crc is None
        found.append((number, why if why is not None else record_or_why(text)))
        next_number = number + 1
    return found + [(gap, "it is missing") for gap in range(next_number, length)]


def record_or_why(text: str | bytes) -> Record | str:
    """Return a record, or why it is none."""
    record = parse(text)
    return f"it {record}" if isinstance(record, str) else record


def timeout_of(text: Any) -> float:
    """Return the seconds to wait that a storage's URL names."""
    try:
        timeout = float(text)
    except (TypeError, ValueError):
        timeout = math.nan
    if not 0 < timeout < 1e6:
        raise InputError(f"the storage's timeout is a positive number of seconds; given {text!r}")
    return timeout


def check_name(name: str) -> None:
    """Raise InputError for a name that some storage could not keep."""
    if not isinstance(name, str) or not name or "\0" in name or any("\ud800" <= letter <= "\udfff" for letter in name):
        raise InputError(f"a study needs a name of ordinary characters; given {name!r}")


def unknown(name: str, place: str) -> StorageError:
    """Return the error for a study that is not there."""
    return StorageError(f"there is no study {name!r} in {place}")


def check_start(name: str, place: str, start: int, length: int) -> None:
    """Raise StorageError if a log is shorter than what was read of it."""
    if start > length:
        raise StorageError(f"study {name!r} in {place} is not the one read before: it was deleted, or made anew")
