"""One contract for every storage, and what each of them does besides."""

import multiprocessing
import os
import pickle
import threading
import uuid

import pytest

from bestarm.errors import InputError, StorageError
from bestarm.study import create_study, load_study, open_storage
from bestarm.study.storage import Journal, Memory

SPAWN = multiprocessing.get_context("spawn")
PLACES = ("memory", "journal", "sqlite", "postgresql")


def url_for(kind, folder):
    """A fresh place of that kind."""
    if kind == "postgresql":
        server = os.environ.get("BESTARM_TEST_POSTGRES")
        if not server:
            pytest.skip("BESTARM_TEST_POSTGRES does not name a PostgreSQL server")
        return server
    return {"memory": None, "journal": f"journal:///{folder}/log.jsonl", "sqlite": f"sqlite:///{folder}/log.db"}[kind]


@pytest.fixture(params=PLACES)
def place(request, tmp_path):
    return url_for(request.param, tmp_path)


@pytest.fixture(params=PLACES[1:])
def shared(request, tmp_path):
    return url_for(request.param, tmp_path)


@pytest.fixture
def storage(place):
    return open_storage(place)


@pytest.fixture
def name():
    return f"spring ✓ {uuid.uuid4().hex}"  # a server's tables outlive a test


def line(i):
    return {"kind": "tell", "i": i}


# the contract


def test_a_log_is_created_once(storage, name):
    assert storage.create(name, line(0))
    assert not storage.create(name, line(1))
    assert list(storage.read(name)) == [line(0)]
    assert name in storage.names()


def test_append_and_read_from_a_number_on(storage, name):
    storage.create(name, line(0))
    assert storage.append(name, [line(1), line(2)])
    assert storage.append(name, [])
    assert [r["i"] for r in storage.read(name)] == [0, 1, 2]
    assert [r["i"] for r in storage.read(name, 2)] == [2]
    assert len(storage.read(name, 3)) == 0
    assert storage.read(name)[1] == line(1)


def test_compare_and_append(storage, name):
    storage.create(name, line(0))
    assert storage.append(name, [line(1)], after=1)
    assert not storage.append(name, [line(2)], after=1)
    assert not storage.append(name, [line(2)], after=3)
    assert storage.append(name, [line(2)], after=2)
    assert [r["i"] for r in storage.read(name)] == [0, 1, 2]


def test_a_name_that_is_not_there(storage, name):
    assert len(storage.read(name)) == 0
    assert not storage.delete(name)
    with pytest.raises(StorageError, match="there is no study"):
        storage.append(name, [line(0)])
    with pytest.raises(StorageError, match="there is no study"):
        storage.append(name, [line(0)], after=0)


@pytest.mark.parametrize("bad", ["", "a\0b", "\ud800"])
def test_names_no_storage_could_keep(storage, bad):
    with pytest.raises(InputError, match="name"):
        storage.create(bad, line(0))


def test_delete_and_create_again(storage, name):
    storage.create(name, line(0))
    storage.append(name, [line(1), line(2)])
    assert storage.delete(name)
    assert name not in storage.names()
    assert len(storage.read(name)) == 0
    assert storage.create(name, line(7))
    assert storage.append(name, [line(8)], after=1)
    assert [r["i"] for r in storage.read(name)] == [7, 8]


def test_a_log_made_anew_is_not_taken_for_the_old_one(place, name):
    storage = open_storage(place)
    other = open_storage(place) if place else storage
    storage.create(name, line(0))
    storage.append(name, [line(1), line(2)])
    mark = storage.read(name).mark
    assert storage.read(name, 3).mark == mark
    other.delete(name)
    with pytest.raises(StorageError, match="deleted"):
        storage.read(name, 3)
    other.create(name, line(10))
    with pytest.raises(StorageError, match="anew"):
        storage.read(name, 3)
    other.append(name, [line(i) for i in range(11, 20)])
    assert storage.read(name, 3).mark != mark


def test_unicode_and_big_records(storage, name):
    record = {"text": 'Ünïcödé \u2028\x00 😀 \n\r\\"', "numbers": [i / 7 for i in range(100_000)]}
    storage.create(name, record)
    storage.append(name, [record])
    assert list(storage.read(name)) == [record, record]


def test_studies_do_not_mix(storage, name):
    others = [f'{name}","record":', name + "2", name + "\\"]
    for who in (name, *others):
        assert storage.create(who, {"who": who})
    for who in (name, *others, name):
        storage.append(who, [{"who": who}])
    for who in (name, *others):
        assert {r["who"] for r in storage.read(who)} == {who}
    assert len(storage.read(name)) == 3


@pytest.mark.parametrize("bad", [{"x": float("nan")}, {"x": object()}, {"x": float("inf")}])
def test_what_is_not_json_is_refused(storage, name, bad):
    storage.create(name, line(0))
    with pytest.raises(StorageError, match="not JSON"):
        storage.append(name, [line(1), bad])
    assert len(storage.read(name)) == 1


def test_what_is_given_back_is_not_what_is_kept(storage, name):
    storage.create(name, {"list": [1]})
    storage.read(name)[0]["list"].append(2)
    assert storage.read(name)[0] == {"list": [1]}


def test_two_handles_see_each_other(shared, name):
    one, two = open_storage(shared), open_storage(shared)
    one.create(name, line(0))
    assert not two.create(name, line(9))
    for i in range(1, 7):
        (one, two)[i % 2].append(name, [line(i)], after=i)
        assert [r["i"] for r in (one, two)[1 - i % 2].read(name)] == list(range(i + 1))


def test_a_handle_travels(shared, name):
    storage = open_storage(shared)
    storage.create(name, line(0))
    assert list(pickle.loads(pickle.dumps(storage)).read(name)) == [line(0)]


def race(url, name, wanted, mine):
    """Win `wanted` numbers of the log, whatever the others do."""
    storage, won = open_storage(url) if isinstance(url, str) else url, 0
    while won < wanted:
        length = len(storage.read(name))
        won += storage.append(name, [{"n": length, "by": mine}], after=length)


def everyone_won_each_number_once(storage, name, each, who):
    records = list(storage.read(name))[1:]
    assert [r["n"] for r in records] == list(range(1, each * len(who) + 1))
    assert {w: sum(r["by"] == w for r in records) for w in who} == dict.fromkeys(who, each)


def test_of_threads_that_compare_one_wins(storage, name):
    storage.create(name, line(0))
    threads = [threading.Thread(target=race, args=(storage, name, 10, w)) for w in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everyone_won_each_number_once(storage, name, 10, range(6))


def test_of_processes_that_compare_one_wins(shared, name):
    open_storage(shared).create(name, line(0))
    workers = [SPAWN.Process(target=race, args=(shared, name, 15, w)) for w in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    everyone_won_each_number_once(open_storage(shared), name, 15, range(4))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_handle_survives_a_fork(shared, name):
    storage = open_storage(shared)
    storage.create(name, line(0))
    children = []
    for w in range(3):
        child = os.fork()
        if not child:
            try:
                race(storage, name, 5, w)
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    race(storage, name, 5, 3)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    everyone_won_each_number_once(storage, name, 5, range(4))


# places that cannot be used


@pytest.mark.parametrize("url", ["ftp://x/y", "sqlite://", "journal:///", "mysql+x://a/b"])
def test_urls_that_name_no_storage(url):
    with pytest.raises(StorageError, match=r"expected"):
        open_storage(url)


def test_paths_and_urls_name_the_same_file(tmp_path):
    assert open_storage(tmp_path / "a.db").path == open_storage(f"sqlite:///{tmp_path}/a.db").path
    assert open_storage(tmp_path / "a.jsonl").path == open_storage(f"journal:///{tmp_path}/a.jsonl").path
    assert isinstance(open_storage(None), Memory)
    assert str(open_storage("sqlite:///a/b.db").path) == "a/b.db"


def test_a_server_that_does_not_answer():
    with pytest.raises(StorageError, match="failed") as error:
        open_storage("postgresql+psycopg://me:secret@127.0.0.1:1/none").names()
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("kind", ["journal", "sqlite"])
def test_folders_and_files_in_the_way(kind, tmp_path):
    with pytest.raises(StorageError, match="folder"):
        open_storage(f"{kind}:///{tmp_path}")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        open_storage(f"{kind}:///{tmp_path}/file/log").create("a", line(0))


@pytest.mark.parametrize("kind", ["journal", "sqlite"])
def test_looking_makes_no_file(kind, tmp_path):
    storage = open_storage(f"{kind}:///{tmp_path}/log")
    assert storage.names() == []
    assert len(storage.read("a")) == 0
    assert not storage.delete("a")
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("kind", ["journal", "sqlite"])
def test_a_file_taken_away_is_made_anew(kind, tmp_path):
    url = f"{kind}:///{tmp_path}/log"
    one, two = open_storage(url), open_storage(url)
    one.create("a", line(0))
    one.append("a", [line(1)])
    for file in tmp_path.iterdir():
        file.unlink()
    assert one.names() == []
    two.create("b", line(5))
    assert one.names() == ["b"]
    one.append("b", [line(6)], after=1)
    assert list(open_storage(url).read("b")) == [line(5), line(6)]


# the journal


@pytest.fixture
def journal(tmp_path):
    journal = Journal(tmp_path / "log.jsonl")
    journal.create("a", line(0))
    journal.append("a", [line(1)])
    return journal


def test_half_a_line_is_not_read_and_is_cut_off(journal):
    reader = Journal(journal.path)
    whole = journal.path.read_bytes()
    for cut in (1, 10, 25):
        with journal.path.open("ab") as file:
            file.write(whole.splitlines()[1][:cut])
        assert len(reader.read("a")) == 2
        assert reader.names() == ["a"]
    assert Journal(journal.path).append("a", [line(2)])
    assert [r["i"] for r in reader.read("a")] == [0, 1, 2]
    assert [r["i"] for r in journal.read("a", 2)] == [2]


def test_a_reader_does_not_wait_for_a_writer(journal):
    with journal._writing():
        other = Journal(journal.path)
        assert len(other.read("a")) == 2


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
        monkeypatch.setattr("bestarm.study.journal.BLOCK", size)
        monkeypatch.setattr("bestarm.study.journal.STEP", size)
        fresh = Journal(journal.path)
        assert [r["i"] for r in fresh.read("a")] == list(range(100, 150))
        assert [r["i"] for r in fresh.read("a", 49)] == [149]
        assert [r["i"] for r in fresh.read("b", 3)] == list(range(3, 20))


def test_lines_as_another_program_would_write_them(journal):
    with journal.path.open("a") as file:
        file.write('{"record": {"i": 2, "t": "ü"}, "study": "a"}\n{"study": "b", "record": {"i": 0}}\n')
    assert [r["i"] for r in journal.read("a")] == [0, 1, 2]
    assert journal.append("b", [line(1)], after=1)
    assert [r["i"] for r in Journal(journal.path).read("b", 1)] == [1]


# versions


def test_a_newer_log_is_refused_and_an_older_one_read(place, name):
    storage = open_storage(place)
    create_study([[1.0], [2.0]], 4, storage=storage, study_name=name, seed=0)
    first = dict(storage.read(name)[0])
    for version in (0, 1):
        storage.delete(name)
        storage.create(name, {**first, "version": version})
        assert load_study(name, storage).ask()
    storage.delete(name)
    storage.create(name, {**first, "version": 2})
    with pytest.raises(StorageError, match="newer bestarm"):
        load_study(name, storage)


def test_an_unknown_kind_is_refused_by_number(place, name):
    storage = open_storage(place)
    create_study([[1.0], [2.0]], 4, storage=storage, study_name=name)
    storage.append(name, [{"kind": "dance"}])
    with pytest.raises(StorageError, match=r"record 1 .*'dance'"):
        load_study(name, storage)
