"""A line of a journal: what it says, and what it would say if a byte of it were another."""

import json
import re
import zlib
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise, repeat
from typing import Any

from bestarm.errors import BestArmError
from bestarm.study.storage.records import LIMIT, check_name, decode

LINE_LIMIT = LIMIT + (1 << 16)  # bytes of a line
CRC = 27  # bytes from the end of the number to the record: ,"crc":"01234567","record":
LINE = re.compile(
    rb'\{"study":("(?:[^"\\]|\\.)*"),"n":(0|[1-9]\d{0,17}),"crc":"([0-9a-f]{8})","record":(.*)\}', re.DOTALL
)
HEAD = re.compile(rb'\{"study":"(?:[^"\\]|\\.)*","n":\d{1,18},"crc":"[0-9a-f]{8}","record":')
BEGINNING = b'{"study":'
MIDDLE = b',"record":'  # stands in no JSON string, whose quotes have a backslash before them
NULL = b"null"


@dataclass(frozen=True, slots=True)
class LogLine:
    """What a sound line says: the text of `null` deletes; without a number it is of version 1."""

    name: str
    number: int | None
    text: bytes


@dataclass(slots=True)
class LogLines:
    """Where the lines of one study begin in the file, and a mark made from the first of them."""

    name: str
    mark: tuple[int, int] = (0, 0)
    starts: "array[int]" = field(default_factory=lambda: array("Q"))
    next: int = 0  # the number that comes next
    last: int = -1  # where its last line begins
    old: bool = True  # all its lines are of version 1
    damage: tuple[int, str] | None = None  # the first damaged record, and what is wrong
    head: bytes = b""
    old_head: bytes = b""
    seed: int = 0
    plain: bool = False  # what comes next needs no closer look if it has the next number and its CRC fits

    def __post_init__(self) -> None:
        self.head, self.old_head = head_of(self.name), old_head_of(self.name)
        self.seed = zlib.crc32(self.name.encode() + b"\n")

    def crc(self, number: bytes, text: bytes) -> int:
        return zlib.crc32(text, zlib.crc32(number + b"\n", self.seed))


def head_of(name: str) -> bytes:
    """Return what the lines of a study begin with."""
    return b'{"study":%b,"n":' % json.dumps(name).encode()


def old_head_of(name: str) -> bytes:
    """Return what the lines of a study of version 1 begin with."""
    return b'{"study":%b,"record":' % json.dumps(name).encode()


NOBODY = LogLines("")
NOBODY.head = b"\n"


def written(name: str, number: int, text: str) -> bytes:
    """Return a record's line."""
    crc = zlib.crc32(f"{name}\n{number}\n{text}".encode())
    return b'%b%d,"crc":"%08x","record":%b}\n' % (head_of(name), number, crc, text.encode())


def plain_texts(log: LogLines, first: int, lines: Sequence[bytes]) -> list[bytes] | None:
    """Return the records in a study's lines, whose numbers begin with `first`; None if one needs a closer look."""
    last = first + len(lines) - 1
    digits = len(str(first))
    if digits != len(str(last)) or not lines[-1].startswith(b"%b%d," % (log.head, last)):
        return None
    begin, numbers = len(log.head) + digits + CRC, range(first, last + 1)
    texts = [line[begin:-1] for line in lines]
    seeds = map(zlib.crc32, (b"%d\n" * len(lines) % (*numbers,)).splitlines(keepends=True), repeat(log.seed))
    said = chain.from_iterable(zip(numbers, map(zlib.crc32, texts, seeds), texts, strict=True))
    whole = (b'%b%%d,"crc":"%%08x","record":%%b}\n' % log.head.replace(b"%", b"%%") * len(lines)) % (*said,)
    return texts if whole == b"\n".join(lines) + b"\n" and NULL not in texts else None


def old_texts(log: LogLines, lines: Sequence[bytes]) -> list[bytes] | None:
    """Return the records in a study's lines of version 1; None if one needs a closer look."""
    begin = len(log.old_head)
    texts = [line[begin:-1] for line in lines]
    whole = (log.old_head.replace(b"%", b"%%") + b"%b}\n") * len(lines) % (*texts,)
    objects = all(text.startswith(b"{") and text.endswith(b"}") for text in texts)
    alone = objects and whole.count(BEGINNING) == len(lines) and whole == b"\n".join(lines) + b"\n"
    return texts if alone else None


def read_line(line: bytes) -> LogLine | None:
    """Return what a line says, if it is whole and its CRC fits."""
    found = LINE.fullmatch(line)
    if found is None:
        return _read_foreign(line)
    name = _name(found[1])
    if name is None or b"%08x" % zlib.crc32(found[4], zlib.crc32(b"%b\n%b\n" % (name.encode(), found[2]))) != found[3]:
        return None
    return LogLine(name, int(found[2]), found[4])


def _read_foreign(line: bytes) -> LogLine | None:
    """Return what a line says that is of version 1, or that another program wrote, with other spaces or order."""
    if not line.lstrip().startswith(b"{") or len(line) > LINE_LIMIT:
        return None
    try:
        text = line.decode()
        keys = {key: (value, spot) for key, value, spot in _members(text)}
        name, record = keys["study"][0], keys["record"][0]
    except (ValueError, KeyError, RecursionError, IndexError):
        return None
    if not isinstance(name, str) or not good(name) or not (record is None or isinstance(record, dict)):
        return None
    raw = text[keys["record"][1]].encode()
    if keys.keys() == {"study", "record"}:
        return LogLine(name, None, raw)
    number, crc = (keys.get(key, (None,))[0] for key in ("n", "crc"))
    if keys.keys() != {"study", "n", "crc", "record"} or type(number) is not int or number < 0:
        return None
    right = zlib.crc32(b"%b\n%d\n%b" % (name.encode(), number, raw))
    return LogLine(name, number, raw) if isinstance(crc, str) and crc.lower() == f"{right:08x}" else None


_SCANNER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r]*")


def _members(text: str) -> Iterator[tuple[str, Any, slice]]:
    """Yield the keys and values of a JSON object, and where each value stands; ValueError if it is none."""

    def past(at: int, wanted: str) -> tuple[int, str]:
        at = _SPACE.match(text, at).end()  # type: ignore[union-attr]
        if text[at] not in wanted:
            raise ValueError
        return _SPACE.match(text, at + 1).end(), text[at]  # type: ignore[union-attr]

    decode(text)
    at, mark = past(0, "{")
    seen = set()
    while mark != "}":
        key, at = _SCANNER.raw_decode(text, at)
        begin, _ = past(at, ":")
        value, at = _SCANNER.raw_decode(text, begin)
        if key in seen:
            raise ValueError
        seen.add(key)
        yield key, value, slice(begin, at)
        at, mark = past(at, ",}")


def good(name: str) -> bool:
    try:
        check_name(name)
    except BestArmError:
        return False
    return True


def _name(text: bytes) -> str | None:
    """Return the name that a JSON string is."""
    try:
        name = decode(text)
    except (ValueError, RecursionError):
        return None
    return name if isinstance(name, str) and good(name) else None


def pieces(line: bytes) -> list[bytes]:
    """Cut a line where others begin in it: a newline was lost."""
    cuts = [0, *(found.start() for found in HEAD.finditer(line, 1)), len(line)]
    return [line[begin:end] for begin, end in pairwise(cuts)]


def joined(run: list[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes]]:
    """Join damaged lines that do not begin like one to those before them: a newline came in between."""
    found: list[tuple[int, int, bytes]] = []
    ended = False
    for at, number, blob in run:
        if found and not ended and not off_by_one(BEGINNING, blob):
            first, line, before = found[-1]
            found[-1] = first, line, before + b"\n" * (at - first - len(before)) + blob
        else:
            found.append((at, number, blob))
    return found


def off_by_one(wanted: bytes, blob: bytes) -> bool:
    """Whether a line begins with what is wanted, but for one byte at most."""
    return len(blob) >= len(wanted) and differences(wanted, blob) <= 1


def differences(wanted: bytes, blob: bytes) -> int:
    """Return in how many bytes a line begins otherwise, as far as it goes."""
    return sum(a != b for a, b in zip(wanted, blob, strict=False))


def _spots(log: LogLines) -> tuple[bytes, int]:
    """Return a study's next number, and where the record begins in a line that has it."""
    number = b"%d" % log.next
    return number, len(log.head) + len(number) + CRC


def fits(log: LogLines, blob: bytes) -> bool:
    """Whether a line's CRC fits a study and its next number, whatever else it says."""
    number, begin = _spots(log)
    return b"%08x" % log.crc(number, blob[begin:-1]) == blob[begin - 19 : begin - 11]


def names_it(log: LogLines, blob: bytes) -> bool:
    """Whether a line has a study's name and next number where they should stand."""
    number, begin = _spots(log)
    spot, end = len(BEGINNING), len(log.head) - 5
    return blob[spot:end] == log.head[spot:end] and blob[len(log.head) : begin - CRC] == number


def name_at_its_place(blob: bytes) -> str | None:
    found = re.compile(rb'"(?:[^"\\]|\\.)*"').match(blob, len(BEGINNING))
    return _name(found[0]) if found else None


def name_in_record(blob: bytes) -> str | None:
    """Return the name in what may be the record of kind `create`."""
    try:
        name = decode(blob[blob.index(b'"record":') + 9 : -1])["name"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return name if isinstance(name, str) and good(name) else None


def opaque(blob: bytes) -> bool:
    """Whether so much is wrong with a line that it may hide others."""
    odd = sum(blob.count(byte) for byte in range(32)) - blob.count(b"\n")
    return odd > 1 or (odd == 0 and not _utf8(blob) and sum(byte > 127 for byte in blob) > 1)


def _utf8(blob: bytes) -> bool:
    try:
        blob.decode()
    except ValueError:
        return False
    return True
