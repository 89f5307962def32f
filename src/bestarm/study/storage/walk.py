"""Through a journal's file, block by block: never more of it in memory than a block or a line."""

from bisect import bisect_right
from typing import IO

from bestarm.errors import StorageError
from bestarm.study.storage.lines import (
    BEGINNING,
    CRC,
    LINE_LIMIT,
    LogLines,
    differences,
    old_texts,
    pieces,
    plain_texts,
    read_line,
)
from bestarm.study.storage.scan import CHUNK, Scan

BLOCK = 1 << 22  # bytes read at a time
SEEN = 256  # bytes before the place read to by which a file is known again
HOPELESS = 1000  # damaged lines, and no sound one


def follow(scan: Scan, file: IO[bytes], place: str) -> tuple[int, bytes]:
    """Feed a scan the whole lines that it has not seen; return where they end, and the last bytes before."""
    while True:
        file.seek(scan.at)
        rest = file.read(BLOCK)
        lines, newline, _ = rest.rpartition(b"\n")
        if newline:
            scan.feed(lines.split(b"\n"))
        elif len(rest) < BLOCK or not _feed_long(scan, file):
            break
        if not scan.sound and (len(scan.strays) > HOPELESS or scan.stray_size > LINE_LIMIT):
            raise _no_journal(place, scan)
    end = file.seek(0, 2)
    if rest and end - scan.at <= LINE_LIMIT:
        file.seek(scan.at)
        rest = file.read(end - scan.at)
        if b"\n" in rest:  # it was written meanwhile
            return follow(scan, file, place)
        last = pieces(rest)[-1]
        other = read_line(last[:-1]) is not None  # a whole line, with another byte where its newline should be
        if other or read_line(last):  # or without one, which the next writer adds
            scan.feed([rest])
            scan.mended = sorted({*scan.mended, scan.line - 1}) if other else scan.mended
            rest = b""
    scan.close()
    if not scan.logs and not scan.sound and (scan.strays or not _begun(rest)):
        raise _no_journal(place, scan)
    scan.cut = max(0, end - scan.at)
    end = min(end, scan.at)
    file.seek(max(0, end - SEEN))
    return end, file.read(min(end, SEEN))


def _feed_long(scan: Scan, file: IO[bytes]) -> bool:
    """Feed a line longer than a block, or say how long it is if it is too long to be read; False if it has no end."""
    file.seek(scan.at)
    length = 0
    while block := file.read(BLOCK):
        at = block.find(b"\n")
        if at >= 0:
            length += at
            break
        length += len(block)
    else:
        return False
    file.seek(scan.at)
    if length > LINE_LIMIT:
        scan.too_long(file.read(1 << 16), length)
    else:
        scan.feed([file.read(length)])
    return True


def _begun(rest: bytes) -> bool:
    """Whether these bytes may be the beginning of a first line, cut short by a crash."""
    return differences(BEGINNING, rest) <= 1 or not rest.strip(b"\0")


def _no_journal(place: str, scan: Scan) -> StorageError:
    at = scan.strays[0].at if scan.strays else scan.at
    return StorageError(f"{place}, at byte {at}: this is not a line of a journal of bestarm")


def again(file: IO[bytes], log: LogLines, start: int, stop: int) -> list[bytes] | None:
    """Return the texts of a study's records from `start` to `stop`, read again; None if one is not what it was."""
    starts, texts, at = log.starts, list[bytes](), start
    while at < stop:
        begin = starts[at]
        last = bisect_right(starts, begin + BLOCK, at + 1, stop)
        file.seek(begin)
        data = file.read(starts[last - 1] - begin) + file.readline(LINE_LIMIT)
        for number in range(at, last, CHUNK):
            many = starts[number : min(number + CHUNK, last)]
            lines = [data[spot - begin : data.find(b"\n", spot - begin)] for spot in many]
            found = plain_texts(log, number, lines) or old_texts(log, lines)
            for i, line in enumerate(lines):
                text = found[i] if found else _text(log, number + i, line)
                if text is None:
                    return None
                texts.append(text)
        at = last
    return texts


def _text(log: LogLines, number: int, line: bytes) -> bytes | None:
    """Return the record in a line if it is of this study and number."""
    digits = b"%d" % number
    text = line[len(log.head) + len(digits) + CRC : -1]
    if line == b'%b%b,"crc":"%08x","record":%b}' % (log.head, digits, log.crc(digits, text), text):
        return text
    if line.startswith(log.old_head) and line.endswith(b"}"):
        return line[len(log.old_head) : -1]
    piece = pieces(line)[0]
    found = read_line(piece) or read_line(piece[:-1])
    return found.text if found and found.name == log.name and found.number in (None, number) else None
