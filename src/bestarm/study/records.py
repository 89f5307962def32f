"""Records as text: what every storage keeps, and how it is read again."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, overload

from bestarm.errors import InputError, StorageError

Record: TypeAlias = Mapping[str, Any]

CHUNK = 50  # records parsed together: fewer calls, and still within the processor's cache


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
        for at in range(0, len(self.lines), CHUNK):
            chunk = self.lines[at : at + CHUNK]
            try:
                found = decode(_array(chunk))
            except (ValueError, RecursionError):
                found = None
            if found is None or len(found) != len(chunk):
                found = map(self._one, range(at, at + len(chunk)))  # to find the bad one
            yield from found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def _one(self, at: int) -> Record:
        try:
            record = decode(self.lines[at])
        except (ValueError, RecursionError) as error:
            raise StorageError(f"{self.place}: record {self.start + at} is not JSON: {error}") from None
        if not isinstance(record, dict):
            raise StorageError(f"{self.place}: record {self.start + at} is not a JSON object")
        return record


def _array(lines: Sequence[Any]) -> str | bytes:
    return b"[%b]" % b",".join(lines) if isinstance(lines[0], bytes) else f"[{','.join(lines)}]"


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def decode(text: str | bytes) -> Any:
    """Return what JSON says; ValueError if it is none, or has a NaN or an infinity in it."""
    return _DECODER.decode(text if isinstance(text, str) else text.decode())


def encode(record: Record) -> str:
    """Return a record as one line of ASCII."""
    try:
        return json.dumps(record, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        raise StorageError(f"a record that is not JSON cannot be kept: {error}") from None


def check_name(name: str) -> None:
    """Raise InputError for a name that some storage could not keep."""
    if not name or "\0" in name or any("\ud800" <= letter <= "\udfff" for letter in name):
        raise InputError(f"a study needs a name of ordinary characters; given {name!r}")


def unknown(name: str, place: str) -> StorageError:
    return StorageError(f"there is no study {name!r} in {place}")


def check_start(name: str, place: str, start: int, length: int) -> None:
    """Raise StorageError if a log is shorter than what was read of it."""
    if start > length:
        raise StorageError(f"study {name!r} in {place} is not the one read before: it was deleted, or made anew")
