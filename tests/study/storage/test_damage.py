"""What a damaged log may do: give a StorageError that names the file and the place, never a traceback."""

import json
import sqlite3
import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bestarm.errors import BestArmError, StorageError
from bestarm.study import create_study, load_study, open_storage
from bestarm.study.storage import Journal, SQLite
from bestarm.study.storage.records import checksum


def small_study(url):
    study = create_study([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], 12, "gse-lin-fwg", storage=url, study_name="s", seed=1)
    for _ in range(2):
        batch = study.ask(3)
        study.tell(batch, [0.5] * len(batch))
    study.fail(study.ask(1).trials[0], "spilt")
    study.raise_budget(20)
    study.withdraw("1")
    return study


@pytest.fixture(scope="module")
def journal_bytes(tmp_path_factory):
    path = tmp_path_factory.mktemp("damage") / "log.jsonl"
    small_study(path)
    return path.read_bytes()


edits = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 3), st.binary(min_size=1, max_size=6)),
    min_size=1,
    max_size=3,
)


def damaged(data, changes):
    """Overwrite, insert, remove, or cut at places given as shares of the length."""
    for share, how, new in changes:
        at = int(share * len(data))
        after = {0: at + len(new), 1: at, 2: at + len(new), 3: len(data)}[how]
        data = data[:at] + (new if how < 2 else b"") + data[after:]
    return data


def use(path):
    """Do what a person would, on a log in whatever state; only our own errors may come."""
    try:
        storage = open_storage(path)
        for name in storage.names():
            study = load_study(name, storage)
            study.pending()
            batch = study.ask(2)
            if batch:
                study.tell(batch, [0.1] * len(batch))
            _ = study.best_arm
    except BestArmError as error:
        return error
    return None


quiet = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.filterwarnings("ignore")
@quiet
@given(changes=edits)
def test_a_damaged_journal_never_gives_a_traceback(changes, journal_bytes, tmp_path):
    path = tmp_path / f"{uuid.uuid4().hex}.jsonl"
    path.write_bytes(damaged(journal_bytes, changes))
    error = use(path)
    if isinstance(error, StorageError):
        assert path.name in str(error)


@pytest.mark.filterwarnings("ignore")
@quiet
@given(data=st.binary(max_size=200))
def test_random_bytes_are_no_journal(data, tmp_path):
    path = tmp_path / f"{uuid.uuid4().hex}.jsonl"
    path.write_bytes(data)
    use(path)


@pytest.mark.parametrize(
    "data", [b"hello\n", b"{}\n", b"[]\n", b"1\n", b"\xff\xfe\n", b'{"study":1,"record":{}}\n', b"\n"]
)
def test_another_file_is_no_journal(data, tmp_path):
    (tmp_path / "log.jsonl").write_bytes(data)
    with pytest.raises(StorageError, match=r"log\.jsonl, at byte 0"):
        Journal(tmp_path / "log.jsonl").names()


def test_a_journal_cut_anywhere_keeps_what_is_before(journal_bytes, tmp_path):
    lengths = []
    for cut in range(0, len(journal_bytes), 37):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(journal_bytes[:cut])
        lengths.append(len(Journal(path).read("s")))
        whole = journal_bytes[cut : cut + 1] == b"\n"  # but for the end of its line
        assert lengths[-1] == journal_bytes[:cut].count(b"\n") + whole


values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**6) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    path = tmp_path_factory.mktemp("damage") / "log.db"
    small_study(path)
    with sqlite3.connect(path) as db:
        rows = db.execute("SELECT number, record FROM log ORDER BY number").fetchall()
    db.close()
    return [json.loads(record) for _, record in rows]


def replaced(record, share, value):
    """Put a value in the place of one of a record's parts, or take it out."""
    spots = []

    def walk(at):
        for key in list(at) if isinstance(at, dict) else range(len(at)):
            spots.append((at, key))
            if isinstance(at[key], dict | list):
                walk(at[key])

    record = json.loads(json.dumps(record))
    walk(record)
    at, key = spots[int(share * len(spots))]
    if value == "remove":
        del at[key]
    else:
        at[key] = value
    return record


def rewritten(path, records):
    """Write records as any program could that knows the format."""
    storage = SQLite(path)
    storage.create("s", records[0])
    storage.append("s", records[1:])
    return storage


@pytest.mark.filterwarnings("ignore")
@settings(quiet, max_examples=100)
@given(
    which=st.floats(0, 1, exclude_max=True), spot=st.floats(0, 1, exclude_max=True), value=st.just("remove") | values
)
def test_a_damaged_record_never_gives_a_traceback(which, spot, value, database, tmp_path):
    number = int(which * len(database))
    path = tmp_path / f"{uuid.uuid4().hex}.db"
    try:
        rewritten(path, [*database[:number], replaced(database[number], spot, value), *database[number + 1 :]])
    except StorageError as error:
        assert "not JSON" in str(error)  # noqa: PT017
        return
    error = use(path)
    if isinstance(error, StorageError):
        assert path.name in str(error)


@pytest.mark.filterwarnings("ignore")
@quiet
@given(which=st.floats(0, 1, exclude_max=True), text=st.text(max_size=30), sound=st.booleans())
def test_random_text_for_a_record(which, text, sound, database, tmp_path):
    number = int(which * len(database))
    path = tmp_path / f"{uuid.uuid4().hex}.db"
    rewritten(path, database)
    with sqlite3.connect(path) as db:
        crc = checksum("s", number, text) if sound else 0
        db.execute("UPDATE log SET record = ?, crc = ? WHERE number = ?", (text, crc, number))
    db.close()
    error = use(path)
    assert isinstance(error, StorageError)
    assert path.name in str(error)
    assert f"record {number}" in str(error)


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "log.db").write_bytes(b"hello, this is not a database at all" * 100)
    with pytest.raises(StorageError, match=r"log\.db"):
        SQLite(tmp_path / "log.db").names()


def test_records_that_are_missing(tmp_path):
    storage = SQLite(tmp_path / "log.db")
    storage.create("s", {})
    storage.append("s", [{}, {}])
    with sqlite3.connect(storage.path) as db:
        db.execute("DELETE FROM log WHERE number = 1")
    db.close()
    with pytest.raises(StorageError, match="record 1 is damaged: it is missing"):
        storage.read("s")


@pytest.mark.parametrize("left_out", ["seed", "policy", "arms", "options", "budget"])
def test_a_first_record_without_one_of_its_parts_is_told(left_out, database, tmp_path):
    first, *others = json.loads(json.dumps(database))
    del first[left_out]
    rewritten(tmp_path / "log.db", [first, *others])
    with pytest.raises(StorageError, match=rf"log\.db, study 's': record 0.*'{left_out}' is missing"):
        _ = load_study("s", open_storage(tmp_path / "log.db")).best_arm


@pytest.mark.parametrize(
    ("pair", "says"),
    [([0, 13], "costs more than the budget"), ([0, 9866891567], "costs more"), ([3, 1], "arms that are not there")],
)
def test_a_plan_that_cannot_be_is_refused_before_it_takes_memory(pair, says, database, tmp_path):
    number = next(place for place, record in enumerate(database) if "plan" in record)
    wrong = {**database[number], "plan": [pair]}
    storage = rewritten(tmp_path / "log.db", [*database[:number], wrong, *database[number + 1 :]])
    with pytest.raises(StorageError, match=rf"record {number} cannot be read.*{says}"):
        load_study("s", storage)
