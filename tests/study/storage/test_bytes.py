"""One byte of a log is another: that is refused, or changes nothing; never is something else read in silence."""

import contextlib
import gc
import os
import random
import sqlite3
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from bestarm.cli import main
from bestarm.errors import BestArmError, StorageError
from bestarm.study import create_study, open_storage
from bestarm.study.storage import Journal, SQLite

FACTOR = float(os.environ.get("BESTARM_TORTURE", "1"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a journal of three studies, one of them begun anew, and what it says."""
    path = tmp_path_factory.mktemp("whole") / "log.jsonl"
    arms = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    study = create_study(arms, 12, "gse-lin-fwg", storage=path, study_name="s", seed=1)
    other = create_study(arms, 12, "uniform", storage=path, study_name="other ✓", seed=1)
    for _ in range(2):
        study.tell(study.ask(3), [0.5, 0.25, -1.5])
        other.tell(other.ask(1), [7.0])
    study.fail(study.ask(1).trials[0], "spilt")
    journal = Journal(path)
    journal.create("again", {"i": 1})
    journal.delete("again")
    journal.create("again", {"i": 2})
    study.tell(arm="1", values=7.5, id="mine")
    return path.read_bytes(), said_by(path)[0]


def said_by(path):
    """What is read from each study, and what is refused."""
    journal, found, refused = Journal(path), {}, {}
    try:
        for name in journal.names():
            try:
                found[name] = list(journal.read(name))
            except StorageError as error:
                refused[name] = str(error)
    except StorageError as error:
        refused[""] = str(error)
    for name in ("s", "other ✓", "again"):  # by its name, whether it is listed or not
        if name not in found and name not in refused:
            try:
                assert not list(journal.read(name))
            except StorageError as error:
                refused[name] = str(error)
    return found, refused


def spoilt(path, whole, changes):
    """Count what comes of changes."""
    (data, said), outcomes = whole, Counter()
    for at, byte in changes:
        path.write_bytes(data[:at] + bytes([byte]) + data[at + 1 :])
        found, refused = said_by(path)
        others = [name for name in found if found[name] != said.get(name)]
        missing = said.keys() - found.keys() - refused.keys()
        assert not others, (at, data[at : at + 1], byte, others)
        assert not missing or refused, (at, data[at : at + 1], byte, missing)
        outcomes["harmless" if found == said else "refused"] += 1
        outcomes["with a neighbour"] += len(said) - len(found) > 1
    return outcomes


def test_a_changed_byte_of_a_journal_is_refused_or_changes_nothing(whole, tmp_path):
    chance = random.Random(3)
    some = range(chance.randrange(3), len(whole[0]), 3)  # all of them in `make torture`
    changes = [(at, whole[0][at] ^ 1 << chance.randrange(8)) for at in some]
    found = spoilt(tmp_path / "log.jsonl", whole, changes)
    assert found["refused"] > 20 * found["harmless"]


@pytest.mark.torture
def test_no_changed_byte_of_a_journal_is_read_in_silence(whole, tmp_path):
    values = random.Random(4).sample(range(1, 256), min(255, round(64 * FACTOR)))
    changes = ((at, byte ^ value) for at, byte in enumerate(whole[0]) for value in values)
    found = spoilt(tmp_path / "log.jsonl", whole, changes)
    print(f"\na byte of a journal of {len(whole[0]):,} changed: {dict(found)}, 0 silent")


# SQLite


def small_study(url):
    study = create_study([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], 12, "gse-lin-fwg", storage=url, study_name="s", seed=1)
    study.tell(study.ask(3), [0.5, 0.25, -1.5])
    study.tell(arm="1", values=7.5, id="mine")
    return study


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """The bytes of a database with two studies, and what it says."""
    path = tmp_path_factory.mktemp("whole") / "log.db"
    small_study(path)
    SQLite(path).create("b", line(0))
    gc.collect()
    assert not Path(f"{path}-wal").exists()
    return path.read_bytes(), {name: list(SQLite(path).read(name)) for name in ("b", "s")}


def spoil(path, data, at, byte):
    """Return what is read from a database of which one byte is another, and what is refused."""
    path.write_bytes(data[:at] + bytes([byte]) + data[at + 1 :])
    storage, found, refused = SQLite(path), {}, {}
    try:
        for name in storage.names():
            try:
                found[name] = list(storage.read(name))
            except BestArmError as error:
                refused[name] = str(error)
    except BestArmError as error:
        refused[""] = str(error)
    return found, refused


def spoilt_database(path, database, changes):
    """Count what comes of changes. A name without records is refused by whoever loads it."""
    (data, said), outcomes = database, Counter()
    for at, byte in changes:
        found, refused = spoil(path, data, at, byte)
        missing = said.keys() - found.keys()
        silent = any(found[name] != said.get(name) for name in found if found[name]) or (missing and not refused)
        assert not silent, (at, data[at], byte, found)
        outcomes["harmless" if found == said else "refused"] += 1
    return outcomes


def test_no_changed_byte_is_read_in_silence(database, tmp_path):
    chance, data = random.Random(7), database[0]
    written = [at for at, byte in enumerate(data) if byte]
    changes = [(at, data[at] ^ 1 << chance.randrange(8)) for at in chance.sample(written, 500)]
    changes += [(at, data[at] ^ 1 << chance.randrange(8)) for at in chance.sample(range(len(data)), 100)]
    found = spoilt_database(tmp_path / "log.db", database, changes)
    assert found["refused"] > found["harmless"] > 0


@pytest.mark.torture
def test_no_byte_changed_anywhere_is_read_in_silence(database, tmp_path):
    data = database[0]
    bits = range(0, 8, max(1, round(4 / FACTOR)))
    found = spoilt_database(
        tmp_path / "log.db", database, ((at, byte ^ 1 << bit) for at, byte in enumerate(data) for bit in bits)
    )
    print(f"\na byte of a database of {len(data):,} changed: {dict(found)}")


def test_a_damaged_schema_is_refused(database, tmp_path):
    """What SQLite says of it quotes it, as bytes that may be no text."""
    data = database[0]
    at = data.index(b"CREATE TABLE")
    found = spoilt_database(tmp_path / "log.db", database, [(at + i, 0xE4) for i in range(60)])
    assert found["refused"] > 30


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_a_name_that_none_can_have_hides_no_other_study(name, tmp_path):
    path = tmp_path / "log.db"
    small_study(path)
    SQLite(path).create("b", line(0))
    gc.collect()
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE studies SET name = ? WHERE name = 'b'", (name,))
    for command in ("doctor", "studies"):
        shown = CliRunner().invoke(main, [command, "--storage", str(path)])
        assert shown.exit_code == 1
        assert "a study needs a name of ordinary characters" in shown.output
        assert "s" in shown.output.split()


def line(i):
    return {"kind": "tell", "i": i}


def test_each_record_s_crc_is_checked(tmp_path):
    storage = SQLite(tmp_path / "log.db")
    storage.create("a", line(0))
    storage.append("a", [line(i) for i in range(1, 4)])
    for number in range(4):
        for column, change in (("record", "replace(record, 'tell', 'tall')"), ("crc", "crc + 1"), ("crc", "crc || ''"),
                               ("record", "record || ' '"), ("record", "CAST(record AS BLOB) || x'00'")):  # fmt: skip
            with contextlib.closing(sqlite3.connect(storage.path)) as db:
                before = db.execute(f"SELECT {column} FROM log WHERE number = ?", (number,)).fetchone()
                with db:
                    db.execute(f"UPDATE log SET {column} = {change} WHERE number = ?", (number,))
            changed = column == "record" or change != "crc || ''"  # a column of integers makes a number of a text
            if changed:
                for start in range(number + 1):
                    with pytest.raises(StorageError, match=rf"study 'a': record {number} is damaged"):
                        storage.read("a", start)
                kept = [at for at, one in storage.salvage("a") if not isinstance(one, str)]
                assert kept == [at for at in range(4) if at != number]
            with contextlib.closing(sqlite3.connect(storage.path)) as db, db:
                db.execute(f"UPDATE log SET {column} = ? WHERE number = ?", (*before, number))
            assert list(open_storage(storage.path).read("a")) == [line(i) for i in range(4)]
