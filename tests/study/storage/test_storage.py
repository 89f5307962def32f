"""The laws that every storage obeys."""

import multiprocessing
import os
import pickle
import threading
import uuid

import pytest

from bestarm.errors import InputError, StorageError
from bestarm.study import create_study, load_study, open_storage
from bestarm.study.storage import Memory, Records

PROCESSES = multiprocessing.get_context("forkserver")  # a fork of a process that has imported everything: quick
PROCESSES.set_forkserver_preload(["bestarm.study", "tests.study.storage.test_storage"])
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


# logs


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
    workers = [PROCESSES.Process(target=race, args=(shared, name, 15, w)) for w in range(4)]
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


# holding


def in_thread(work):
    """Begin some work in a thread; its answer or error is in the list by its end."""
    found = []

    def do():
        try:
            found.append(work())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=do, daemon=True)
    thread.start()
    return thread, found


def another(place, storage, timeout):
    """Another handle on a place; memory has but one."""
    other = open_storage(place) if place else storage
    other.timeout = timeout
    return other


def test_who_holds_a_study_writes_and_others_wait(place, storage, name):
    storage.create(name, line(0))
    other = another(place, storage, 30.0)
    with storage.hold(name):
        thread, found = in_thread(lambda: other.append(name, [line(9)]))
        for i in range(1, 4):
            assert storage.append(name, [line(i)], after=i)
            assert len(storage.read(name, i)) == 1
        with storage.hold(name):
            assert storage.append(name, [line(4)])
        assert not found
    thread.join()
    assert found == [True]
    assert [r["i"] for r in storage.read(name)] == [0, 1, 2, 3, 4, 9]


def test_readers_do_not_wait_for_who_holds_a_study(place, storage, name):
    storage.create(name, line(0))
    other = another(place, storage, 0.05)
    with storage.hold(name):
        storage.append(name, [line(1)])
        thread, found = in_thread(lambda: (name in other.names(), len(other.read(name))))
        thread.join()
    assert found == [(True, 2)]


def test_who_waits_in_vain_is_told_and_has_written_nothing(place, name):
    hurried = place and f"{place}{'&' if '?' in place else '?'}timeout=0.2"
    storage = open_storage(place)
    storage.create(name, line(0))
    other = open_storage(hurried) if place else another(place, storage, 0.2)
    with storage.hold(name):
        for work in (lambda: other.append(name, [line(1)]), lambda: other.delete(name)):
            thread, found = in_thread(work)
            thread.join()
            assert isinstance(found[0], StorageError)
            assert "0.2 s" in str(found[0])
    assert list(storage.read(name)) == [line(0)]
    assert other.append(name, [line(1)], after=1)


def test_an_error_while_a_study_is_held_lets_it_go(place, storage, name):
    storage.create(name, line(0))
    with pytest.raises(StorageError, match="not JSON"), storage.hold(name):
        storage.append(name, [{"i": object()}])
    assert another(place, storage, 5.0).append(name, [line(1)])
    assert [r["i"] for r in storage.read(name)] == [0, 1]


# signs of life


def test_a_sign_of_life_raises_the_runner_s_number(place, storage, name):
    storage.create(name, line(0))
    other = another(place, storage, 5.0)
    assert storage.beats(name) == {}
    seen = []
    for _ in range(3):
        storage.beat(name, "one/../..")
        seen.append(other.beats(name)["one/../.."])
    other.beat(name, "zwei ✓" * 50)
    assert seen == sorted(set(seen))
    assert storage.beats(name).keys() == {"one/../..", "zwei ✓" * 50}
    storage.unbeat(name, "one/../..")
    storage.unbeat(name, "nobody")
    assert other.beats(name).keys() == {"zwei ✓" * 50}
    assert len(storage.read(name)) == 1


def test_signs_of_life_are_a_study_s_own_and_end_with_it(storage, name):
    for who in (name, f"{name} 2"):
        storage.create(who, line(0))
        storage.beat(who, "r")
    storage.delete(name)
    assert storage.beats(name) == {}
    assert storage.beats(f"{name} 2").keys() == {"r"}
    storage.create(name, line(0))
    assert storage.beats(name) == {}


# soundness


def test_of_a_sound_study_everything_can_be_salvaged(storage, name):
    storage.create(name, line(0))
    storage.append(name, [line(1), line(2)])
    assert storage.salvage(name) == [(i, line(i)) for i in range(3)]
    assert storage.salvage(f"{name} 2") == []


def test_of_a_sound_storage_there_is_nothing_to_say(storage, name):
    storage.create(name, line(0))
    storage.append(name, [line(1)])
    assert storage.notes() == []


def test_records_say_where_they_are_from(storage, name):
    storage.create(name, line(0))
    records = storage.read(name)
    assert isinstance(records, Records)
    assert name in records.place
    assert storage.place in records.place


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
        open_storage("postgresql+psycopg://me:secret@127.0.0.1:1/none?timeout=0.3").names()
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("kind", ["journal", "sqlite"])
def test_folders_and_files_in_the_way(kind, tmp_path):
    with pytest.raises(StorageError, match="folder"):
        open_storage(f"{kind}:///{tmp_path}")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        open_storage(f"{kind}:///{tmp_path}/file/log").create("a", line(0))


@pytest.mark.parametrize("name", ["a\0b", "a\0b.db", "\ud800", "\ud800.db", "x" * 300, "x" * 300 + ".db"])
def test_names_that_no_file_can_have(name, tmp_path):
    with pytest.raises(StorageError, match=r"no file can have the name|name is too long"):
        open_storage(f"{tmp_path}/{name}").names()


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


# versions


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_log_of_this_version_or_an_older_one_is_read(version, place, name):
    storage = open_storage(place)
    create_study([[1.0], [2.0]], 4, storage=storage, study_name=name, seed=0)
    first = dict(storage.read(name)[0])
    storage.delete(name)
    storage.create(name, {**first, "version": version})
    assert load_study(name, storage).ask()


@pytest.mark.parametrize("version", [3, "2", None])
def test_a_log_of_a_newer_version_is_refused(version, place, name):
    storage = open_storage(place)
    create_study([[1.0], [2.0]], 4, storage=storage, study_name=name, seed=0)
    first = dict(storage.read(name)[0])
    storage.delete(name)
    storage.create(name, {**first, "version": version})
    with pytest.raises(StorageError, match="newer bestarm"):
        load_study(name, storage)


def test_an_unknown_kind_is_refused_by_number(place, name):
    storage = open_storage(place)
    create_study([[1.0], [2.0]], 4, storage=storage, study_name=name)
    storage.append(name, [{"kind": "dance"}])
    with pytest.raises(StorageError, match=r"record 1 .*'dance'"):
        load_study(name, storage)
