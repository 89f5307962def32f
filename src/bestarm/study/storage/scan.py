"""The studies of a journal, from its lines: which lines are whose, and whose a damaged one was.

A line is sound if its CRC fits what it says of itself. A damaged one is laid to the study that it would fit, with its
next number, if one byte were another: either its CRC fits that study and number, or it names them where they should
stand. What fits none is a stray: it may be of any study that has no later line.
"""

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from bestarm.study.storage.lines import (
    CRC,
    LINE,
    MIDDLE,
    NOBODY,
    NULL,
    LogLine,
    LogLines,
    fits,
    joined,
    name_at_its_place,
    name_in_record,
    names_it,
    off_by_one,
    old_head_of,
    old_texts,
    opaque,
    pieces,
    plain_texts,
    read_line,
)
from bestarm.study.storage.records import Remark

CHUNK = 1000  # lines looked at together
KEPT = 1 << 24  # bytes of damaged lines, one after the other, that are looked at as one
NUMBER = re.compile(rb',"n":(\d{1,18}),"crc":"')


@dataclass(frozen=True, slots=True)
class Stray:
    """A damaged line that fits no study, and the record's number if it can be read."""

    at: int
    line: int
    number: int | None
    blob: bytes


class Scan:
    """The studies of a journal, from its lines in order.

    With `name`, the texts of its records from `start` on are kept as they come by; with `events` besides, everything
    that is found of it, sound or not.
    """

    def __init__(self, name: str | None = None, start: int = 0, events: list[Any] | None = None) -> None:
        self.logs: dict[str, LogLines] = {}
        self.heads: dict[bytes, LogLines] = {}  # what lines begin with
        self.at = self.line = self.sound = 0
        self.cut = 0  # bytes of a last line that is not whole
        self.strays: list[Stray] = []
        self.mended: list[int] = []  # lines with another byte for a newline
        self.name, self.start, self.texts, self.events = name, start, list[bytes](), events
        self._run: list[tuple[int, int, bytes]] = []  # damaged lines, one after the other
        self._run_size = self.stray_size = 0  # bytes

    def want(self, name: str | None, start: int = 0) -> None:
        """Keep the texts of a study's records from now on."""
        self.name, self.start, self.texts = name, start, []

    def feed(self, lines: Sequence[bytes]) -> None:
        """Note whole lines, without the newlines that end them."""
        for at in range(0, len(lines), CHUNK):
            some = lines[at : at + CHUNK]
            log = self._log_of(some[0])
            texts = self._texts(log, some)
            if texts is None:
                self._feed_each(some)
                continue
            starts = accumulate((len(line) + 1 for line in some), initial=self.at)
            log.starts.extend(starts)
            self.at, log.last = log.starts.pop(), log.starts[-1]
            if log.name == self.name:
                self._keep(log.next, texts)
            log.next += len(some)
            self.sound += len(some)
            self.line += len(some)

    def _texts(self, log: LogLines, lines: Sequence[bytes]) -> list[bytes] | None:
        """Return the records in lines that are all of one study and go on where it ended; None if not."""
        if log.damage or self._run or log is NOBODY:
            return None
        if log.old and lines[0].startswith(log.old_head):
            return old_texts(log, lines)
        return plain_texts(log, log.next, lines) if log.plain else None

    def _log_of(self, line: bytes) -> LogLines:
        """Return the log whose lines begin like this one."""
        log = self.heads.get(line[: line.find(b',"n":') + 5])
        return log or self.heads.get(line[: line.find(MIDDLE) + len(MIDDLE)], NOBODY)

    def _feed_each(self, lines: Sequence[bytes]) -> None:
        log, head, crc32 = NOBODY, NOBODY.head, zlib.crc32
        length = len(head)
        for line in lines:
            if not line.startswith(head):
                log = self._log_of(line)
                head, length = log.head, len(log.head)
            number = b"%d" % log.next
            begin = length + len(number) + CRC
            text = line[begin:-1]
            crc = crc32(text, crc32(number + b"\n", log.seed))
            if (
                log.plain
                and line[length:begin] == b'%b,"crc":"%08x","record":' % (number, crc)
                and line[-1:] == b"}"
                and text != NULL
                and not self._run
            ):
                log.starts.append(self.at)
                log.last = self.at
                if log.name == self.name:
                    self._keep(log.next, [text])
                log.next += 1
                self.sound += 1
            else:
                self._note(line)
                log, head, length = NOBODY, NOBODY.head, 1
            self.at += len(line) + 1
            self.line += 1

    def close(self) -> None:
        """Note that nothing more is there."""
        if self._run:
            run, self._run, self._run_size = self._run, [], 0
            for at, number, blob in joined(run):
                self._blame(at, number, blob)

    def too_long(self, beginning: bytes, size: int) -> None:
        """Note a line of so many bytes, too long to be read."""
        self.close()
        self._blame(self.at, self.line, beginning, f"it has {size:,} bytes")
        self.at += size + 1
        self.line += 1

    def _keep(self, number: int, texts: list[bytes]) -> None:
        """Keep the texts of records from a number on, if these are wanted."""
        first = max(number, self.start)
        self.texts += texts[first - number :]
        if self.events is not None:
            self.events += enumerate(texts[first - number :], first)

    def _note(self, line: bytes) -> None:
        """Note a line that wants a closer look."""
        log = self._log_of(line)
        old = old_texts(log, [line]) if log.old and log is not NOBODY and not self._run else None
        found = LogLine(log.name, None, old[0]) if old else read_line(line)
        if found is not None:
            self._place(found, self.at, line)
            return
        at = self.at
        for piece in pieces(line):
            found = read_line(piece) or read_line(piece[:-1])
            if found is not None:
                self._place(found, at, piece)
            else:
                self._run.append((at, self.line, piece))
                self._run_size += len(piece)
            at += len(piece)
        if not self._run:
            self.mended.append(self.line)
        if self._run_size > KEPT:
            self.close()

    def _place(self, found: LogLine, at: int, line: bytes) -> None:
        """Give a sound line its place in its study's log."""
        self.close()
        self.sound += 1
        log = self.logs.get(found.name)
        if found.text == NULL:
            if log is not None and (log.damage or found.number in (None, log.next)):
                self._forget(found.name)
            elif log is not None:
                self._damage(log, log.next, f"line {self.line + 1} has the number {found.number}")
            return
        if log is None or (log.damage and found.number == 0):
            log = self._begin(found.name, (at, zlib.crc32(line)))
        number = log.next if found.number is None else found.number
        if number != log.next:
            self._explain(log)
            missing = f"it is missing; line {self.line + 1} is record {number}"
            late = f"line {self.line + 1} has its number, and stands behind others"
            self._damage(log, min(number, log.next), missing if number > log.next else late)
        elif found.number is None and not log.old:
            self._damage(log, number, f"line {self.line + 1} has no CRC, though a record before it has one")
        elif not log.damage:
            log.starts.append(at)
        log.old = log.old and found.number is None
        log.plain = not log.old and not log.damage
        log.last = at
        if log.name == self.name:
            self._keep(number, [found.text])
        log.next = max(log.next, number + 1)

    def _begin(self, name: str, mark: tuple[int, int]) -> LogLines:
        self._forget(name)
        log = self.logs[name] = LogLines(name, mark)
        self.heads[log.head] = self.heads[log.old_head] = log
        return log

    def _forget(self, name: str) -> None:
        """Begin without a study: it was deleted, or begins anew."""
        log = self.logs.pop(name, None)
        if log is not None:
            del self.heads[log.head], self.heads[log.old_head]
        if name == self.name:
            self.texts.clear()
            if self.events is not None:
                self.events.clear()

    def _damage(self, log: LogLines, number: int, why: str) -> None:
        if log.damage is None:
            log.damage = number, why
        log.plain = False
        if self.events is not None and log.name == self.name:
            self.events.append((number, why))

    def _explain(self, log: LogLines) -> None:
        """Forget a stray if it is the record of this study that is missing."""
        for stray in self.strays:
            if fits(log, stray.blob):
                self.strays.remove(stray)
                self._damage(log, log.next, f"line {stray.line + 1}: its CRC does not fit")
                return

    def _blame(self, at: int, line: int, blob: bytes, why: str = "its CRC does not fit") -> None:
        """Lay a damaged line to the study it is of, or keep it as a stray."""
        log = next((log for log in self.logs.values() if fits(log, blob)), None)
        log = log or next((log for log in self.logs.values() if names_it(log, blob)), None)
        log = log or self._new(at, blob) or self._likely(blob)
        if log is not None:
            self._damage(log, log.next, f"line {line + 1}: {why}")
            log.next += 1
            log.last = at
        if log is None or opaque(blob):
            number = NUMBER.search(blob) if log is None else None
            known = -1 if not blob.strip() else int(number[1]) if number else None
            self.stray_size += len(blob)
            self.strays.append(Stray(at, line, known, blob if self.stray_size < KEPT else blob[:0]))

    def _new(self, at: int, blob: bytes) -> LogLines | None:
        """Begin the study whose first record this line is, if it can be said."""
        named, inner = name_at_its_place(blob), name_in_record(blob)
        for name in (named, inner):
            if name is not None and name not in self.logs and fits(LogLines(name), blob):
                return self._begin(name, (at, 0))
        if named is None or named in self.logs:
            return None
        old = blob.startswith(old_head_of(named))
        return self._begin(named, (at, 0)) if old or names_it(LogLines(named), blob) else None

    def _likely(self, blob: bytes) -> LogLines | None:
        """Return the study of a line in which more than a byte is wrong, or of one of version 1."""
        name = name_at_its_place(blob)
        if name in self.logs and not LINE.fullmatch(blob):
            return self.logs[name]
        near = [log for log in self.logs.values() if log.old and off_by_one(old_head_of(log.name), blob)]
        return near[0] if len(near) == 1 else None

    def doubts(self, name: str) -> str | None:
        """Return why a study may lack a record: a stray may be its last one."""
        log = self.logs.get(name)
        number, last = (log.next, log.last) if log is not None else (0, -1)
        for stray in self.strays:
            if stray.at > last and stray.number in (None, number):
                return f"line {stray.line + 1}, at byte {stray.at}, is damaged, and may be its record {number}"
        return None

    def notes(self, place: str) -> list[str]:
        """Return what is odd about the file, beside the damage to studies that can be named."""
        said = [
            f"{place}: line {stray.line + 1}, at byte {stray.at}, is damaged; of which study it was cannot be said"
            for stray in self.strays
        ]
        lost = [f"{place}: the newline behind line {line + 1} is damaged; nothing is lost" for line in self.mended]
        cut = Remark(
            f"{place}: line {self.line + 1}, at byte {self.at}, is cut short: whoever wrote it was stopped and was not "
            "told that it is kept, or the file was not copied whole; the next one to write removes it"
        )
        return said + lost + [cut] * (self.cut > 0)
