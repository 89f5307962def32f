"""The journal: half lines, long lines, two versions, and places that cannot be used."""

import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bestarm.errors import StorageError
from bestarm.study.storage import Journal, walk
from bestarm.study.storage.lines import LINE_LIMIT, written


def line(i):
    return {"kind": "tell", "i": i}


def numbers(journal, name="a", start=0):
    return [record["i"] for record in journal.read(name, start)]


@pytest.fixture
def journal(tmp_path):
    journal = Journal(tmp_path / "log.jsonl")
    journal.create("a", line(0))
    journal.append("a", [line(1)])
    return journal


# lines


def test_a_line_is_as_the_format_says(journal):
    assert journal.path.read_text().splitlines() == [
        '{"study":"a","n":0,"crc":"3d1af4c1","record":{"kind":"tell","i":0}}',
        '{"study":"a","n":1,"crc":"bf722f54","record":{"kind":"tell","i":1}}',
    ]


def test_half_a_line_is_not_read_and_is_cut_off(journal):
    reader = Journal(journal.path)
    whole = journal.path.read_bytes()
    for cut in (1, 10, 25, -1):
        with journal.path.open("ab") as file:
            file.write(whole.splitlines()[1][:cut])
        assert len(reader.read("a")) == 2
        assert reader.names() == ["a"]
        assert Journal(journal.path).append("a", [line(2)])
        assert numbers(reader) == [0, 1, 2]
        assert numbers(journal, start=2) == [2]
        journal.path.write_bytes(whole)


def test_a_last_line_that_lacks_only_its_newline_is_a_record(journal):
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole[:-1])
    length = len(Journal(journal.path).read("a"))
    for reader in (journal, Journal(journal.path)):
        assert len(reader.read("a")) == length
        assert reader.notes() == []
    assert Journal(journal.path).salvage("a") == list(enumerate(journal.read("a")))
    writer = Journal(journal.path)
    assert not writer.append("a", [line(2)], after=length - 1)
    assert writer.append("a", [line(2)], after=length)
    assert journal.path.read_bytes().startswith(whole)
    for reader in (journal, writer, Journal(journal.path)):
        assert len(reader.read("a")) == length + 1


def test_readers_of_a_line_that_is_being_written_see_it_once_and_never_in_part(journal):
    whole = journal.path.read_bytes()
    start = whole[:-1].rindex(b"\n") + 1
    length = len(journal.read("a"))
    journal.path.write_bytes(whole[:start])
    reader = Journal(journal.path)
    for end in range(start, len(whole) + 1):
        journal.path.write_bytes(whole[:end])
        done = end >= len(whole) - 1
        for one in (reader, Journal(journal.path)):
            assert len(one.read("a")) == length - (not done)
            assert bool(one.notes()) == (start < end < len(whole) - 1)


def test_what_was_cut_short_is_said_and_removed_by_the_next_writer(journal):
    whole = journal.path.read_bytes()
    length = len(journal.read("a"))
    journal.path.write_bytes(whole[:-2])
    reader = Journal(journal.path)
    assert "is cut short" in reader.notes()[0]
    assert reader.append("a", [line(2)], after=length - 1)
    assert reader.notes() == []
    assert len(Journal(journal.path).read("a")) == length


def test_a_line_whose_newline_is_damaged_is_whole(journal):
    whole = journal.path.read_bytes()
    for byte in (b" ", b"\0", b"}", b"\xff"):
        journal.path.write_bytes(whole[:-1] + byte)
        reader = Journal(journal.path)
        assert numbers(reader) == [0, 1]
        assert "newline behind line 2" in reader.notes()[0]
        assert Journal(journal.path).append("a", [line(2)])
        assert numbers(reader) == numbers(Journal(journal.path)) == [0, 1, 2]
        assert journal.path.read_bytes().startswith(whole[:-1] + byte + b"\n")


def test_a_journal_taken_away_or_cut_is_read_anew(journal):
    text = journal.path.read_bytes()
    journal.path.write_bytes(text[: text.index(b"\n") + 1])
    assert list(journal.read("a")) == [line(0)]
    with pytest.raises(StorageError, match="anew"):
        journal.read("a", 2)
    journal.path.unlink()
    assert journal.names() == []
    journal.path.write_bytes(text)
    assert len(journal.read("a")) == 2


def test_a_journal_in_whose_place_another_was_put_is_another(journal):
    mark = journal.read("a", 2).mark
    shutil.copy(journal.path, journal.path.with_name("copy"))
    os.replace(journal.path.with_name("copy"), journal.path)
    assert journal.read("a", 2).mark == mark
    first, _ = journal.path.read_bytes().splitlines(keepends=True)
    journal.path.write_bytes(first + written("a", 1, '{"kind":"tell","i":7}') + written("a", 2, '{"i":8}'))
    assert journal.read("a", 2).mark != mark
    assert numbers(journal) == [0, 7, 8]


def test_only_what_is_new_is_read(journal, monkeypatch):
    seen = []
    feed = walk.Scan.feed
    monkeypatch.setattr(walk.Scan, "feed", lambda scan, lines: (seen.append(len(lines)), feed(scan, lines))[1])
    reader = Journal(journal.path)
    journal.append("a", [line(i) for i in range(2, 1000)])
    assert len(reader.read("a")) == 1000
    seen.clear()
    journal.append("a", [line(1000)])
    assert numbers(reader, start=1000) == [1000]
    assert sum(seen) <= 999 + 1


def test_many_lines_at_once_are_told_apart_like_few(journal, monkeypatch):
    other = Journal(journal.path)
    other.create("b", line(0))
    journal.append("a", [line(i) for i in range(2, 50)])
    for i in range(1, 20):
        other.append("b", [line(i)])
        journal.append("a", [line(49 + i)])
    journal.delete("a")
    journal.create("a", line(100))
    journal.append("a", [line(i) for i in range(101, 150)])
    for size in (10, 77, 500, 1 << 20):
        for chunk in (1, 7, 1000):
            monkeypatch.setattr("bestarm.study.storage.walk.BLOCK", size)
            monkeypatch.setattr("bestarm.study.storage.walk.CHUNK", chunk)
            monkeypatch.setattr("bestarm.study.storage.scan.CHUNK", chunk)
            fresh = Journal(journal.path)
            assert numbers(fresh) == numbers(fresh) == list(range(100, 150))
            assert numbers(fresh, start=49) == [149]
            assert numbers(fresh, "b", 3) == list(range(3, 20))


def test_lines_as_another_program_would_write_them(journal):
    crc = json.loads(written("a", 2, '{"i": 2, "t": "ü"}'))["crc"].upper()
    with journal.path.open("a") as file:
        file.write(f'{{"record": {{"i": 2, "t": "ü"}}, "crc": "{crc}" , "n": 2, "study": "a"}}\r\n')
        file.write('{"study": "b", "record": {"i": 0}}\n')
    assert numbers(journal) == [0, 1, 2]
    assert numbers(journal, start=2) == [2]
    assert journal.append("b", [line(1)], after=1)
    assert numbers(Journal(journal.path), "b", 1) == [1]


def test_version_1_is_read_and_goes_on_in_version_2(tmp_path):
    old = [f'{{"study":"{name}","record":{json.dumps(line(i))}}}' for i in range(30) for name in "ab"]
    text = '{"study":"c","record":{"i":0}}\n' + "".join(f"{one}\n" for one in old) + '{"study":"c","record":null}\n'
    (tmp_path / "log.jsonl").write_text(text)
    journal = Journal(tmp_path / "log.jsonl")
    assert journal.names() == ["a", "b"]
    assert numbers(journal) == numbers(journal, "b") == list(range(30))
    journal.append("a", [{"kind": "upgrade", "i": 30}])
    for reader in (journal, Journal(journal.path)):
        assert numbers(reader, start=29) == [29, 30]
        assert numbers(reader) == list(range(31))
    with journal.path.open("a") as file:
        file.write(old[0] + "\n")
    with pytest.raises(StorageError, match=r"record 31 is damaged.*no CRC"):
        journal.read("a")
    assert len(journal.read("b")) == 30


# signs of life


def test_signs_of_life_lie_beside_the_file_itself(journal, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link"
    link.symlink_to(journal.path)
    size = journal.path.stat().st_size
    Journal(link).beat("a", "r")
    journal.beat("a", "r")
    assert journal.beats("a") == Journal(link).beats("a") == {"r": 2}
    assert [path.name for path in tmp_path.glob("*.beats")] == ["log.jsonl.beats"]
    assert journal.path.stat().st_size == size
    journal.unbeat("a", "r")
    assert not list(tmp_path.glob("*.beats"))


def test_other_files_among_the_signs_of_life_are_passed_over(journal):
    journal.beat("a", "r")
    folder = journal.path.with_name("log.jsonl.beats")
    (folder / "notes").write_text("hello")
    (folder / "folder").mkdir()
    assert journal.beats("a") == {"r": 1}
    assert journal.delete("a")
    assert journal.beats("a") == {}


# places that cannot be used


def refuse(*args, **kwargs):
    raise OSError(28, "No space left on device")


def test_a_full_disk_is_said_in_words(journal, monkeypatch):
    whole = journal.path.read_bytes()
    for name in ("write", "fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(f"bestarm.study.storage.journal.os.{name}", refuse)
            with pytest.raises(StorageError, match="cannot be written: the disk is full"):
                journal.append("a", [line(2)])
    assert journal.path.read_bytes() == whole
    assert journal.append("a", [line(2)], after=2)


LIMITED = """
import resource, sys
from bestarm.errors import StorageError
from bestarm.study.storage import Journal
journal = Journal(sys.argv[1])
journal.create("a", {"i": 0})
size = journal.path.stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 5000, resource.RLIM_INFINITY))
written = 1
while True:
    try:
        journal.append("a", [{"i": written, "text": "x" * 300}] * 3)
        written += 3
    except StorageError as error:
        assert "larger than the system allows" in str(error), error
        break
assert len(Journal(sys.argv[1]).read("a")) == written, written
assert not journal.notes()
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert journal.append("a", [{"i": 0}], after=written)
assert len(Journal(sys.argv[1]).read("a")) == written + 1
"""


def test_a_file_that_may_not_grow_keeps_what_it_has(tmp_path):
    subprocess.run([sys.executable, "-c", LIMITED, tmp_path / "log.jsonl"], check=True, timeout=120)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x" * 300, "its name is too long"),
        ("file/log.jsonl", "a part of its path is a file"),
        ("folder", "a folder"),
        ("circle", "its links lead in a circle"),
        ("pipe", "no ordinary file"),
    ],
)
def test_places_that_cannot_be_used_are_refused_in_words(name, words, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "circle").symlink_to("circle")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StorageError, match=words):
        Journal(tmp_path / name).create("a", line(0))


UNALLOWED = """
import os, sys
from bestarm.errors import StorageError
from bestarm.study.storage import Journal
if os.geteuid() == 0:
    os.setuid(65534)
for path, use in (
    (sys.argv[1], lambda journal: journal.append("a", [{}])),
    (sys.argv[2], lambda journal: journal.names()),
    (sys.argv[2], lambda journal: journal.create("b", {})),
):
    try:
        use(Journal(path))
    except StorageError as error:
        assert "this user is not allowed to" in str(error) and path in str(error), error
    else:
        raise AssertionError(path)
assert len(Journal(sys.argv[1]).read("a")) == 2
"""


def test_what_this_user_is_not_allowed_is_said(journal, tmp_path):
    shut = tmp_path / "shut"
    shut.mkdir()
    shutil.copy(journal.path, shut / "log.jsonl")
    shut.chmod(0)
    journal.path.chmod(0o444)
    for folder in tmp_path.parents:
        if folder.stat().st_uid == os.getuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o711)
    tmp_path.chmod(0o755)
    try:
        program = [sys.executable, "-c", UNALLOWED, journal.path, shut / "log.jsonl"]
        subprocess.run(program, check=True, timeout=120)
    finally:
        shut.chmod(0o700)


def test_folders_are_made(tmp_path):
    journal = Journal(tmp_path / "one" / "two" / "log.jsonl")
    assert journal.create("a", line(0))
    assert journal.folder == tmp_path / "one" / "two"


def test_a_link_to_where_nothing_is_makes_the_file_there(tmp_path):
    (tmp_path / "link").symlink_to("away/log.jsonl")
    journal = Journal(tmp_path / "link")
    assert journal.create("a", line(0))
    assert numbers(Journal(tmp_path / "away" / "log.jsonl")) == [0]
    assert journal.folder == tmp_path / "away"


@pytest.mark.parametrize("text", [b"hello", b'{"a": 1}', b"\x89PNG", b"hello\n" * 3000, os.urandom(1 << 16)])
def test_another_program_s_file_is_left_alone(text, tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_bytes(text)
    with pytest.raises(StorageError, match="is not a line of a journal"):
        Journal(path).create("a", line(0))
    with pytest.raises(StorageError, match="is not a line of a journal"):
        Journal(path).names()
    assert path.read_bytes() == text


# lines of half a gigabyte, twice what may be read


LONG = """
import resource, sys
from pathlib import Path
from bestarm.errors import StorageError
from bestarm.study.storage import Journal
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20), resource.RLIM_INFINITY))
journal = Journal(sys.argv[1])
assert journal.names() == ["a", "b"], journal.names()
assert len(journal.read("b")) == 2
try:
    journal.read("a")
except StorageError as error:
    assert "536,870,912 bytes" in str(error) or "is damaged" in str(error), error
else:
    raise AssertionError
try:
    journal.append("a", [{}])
except StorageError:
    pass
else:
    raise AssertionError
assert journal.append("b", [{}], after=2)
assert len(Journal(sys.argv[1]).read("b")) == 3
assert isinstance(dict(journal.salvage("a"))[1], str)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux says how much memory is used")
@pytest.mark.parametrize("begins", [b"", b'{"study":"a","n":1,"crc":"00000000","record":{"text":"'])
def test_a_line_of_half_a_gigabyte_is_refused_in_little_memory(begins, tmp_path):
    path = tmp_path / "log.jsonl"
    with open(path, "wb") as file:
        file.write(written("a", 0, "{}") + written("b", 0, "{}") + begins)
        file.seek((1 << 29) - len(begins), os.SEEK_CUR)
        file.write(b"\n" + written("b", 1, "{}"))
    subprocess.run([sys.executable, "-c", LONG, path], check=True, timeout=300)


def test_half_a_line_of_half_a_gigabyte_is_cut_off(journal):
    os.truncate(journal.path, journal.path.stat().st_size + (1 << 29))
    assert numbers(journal) == [0, 1]
    assert journal.append("a", [line(2)], after=2)
    assert journal.path.stat().st_size < 1000


def test_a_record_too_long_to_be_read_is_not_written(journal, monkeypatch):
    monkeypatch.setattr("bestarm.study.storage.records.LIMIT", 1000)
    with pytest.raises(StorageError, match="at most 1,000 are expected"):
        journal.append("a", [{"text": "x" * 1000}])
    assert LINE_LIMIT > 1 << 28
    assert numbers(journal) == [0, 1]
    assert resource.getpagesize()
