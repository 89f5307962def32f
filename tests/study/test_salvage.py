"""What is whole of a damaged study goes on in a new log; copies are the same record by record."""

import json
from pathlib import Path

import numpy as np
import pytest

from bestarm import Arms
from bestarm.errors import BestArmWarning, InputError, StorageError
from bestarm.study import create_study, load_study
from bestarm.study.copying import copy_study, upgrade_storage
from bestarm.study.salvage import salvage
from bestarm.study.storage import Journal, Memory, open_storage
from bestarm.study.trials import id_of

GOLDEN = Path(__file__).parent / "golden"


def busy(storage=None, name="s"):
    """A study with some of everything in its log."""
    table = Arms.from_arrays(np.random.default_rng(1).standard_normal((5, 2)), ids=list("abcde"))
    study = create_study(table, 60, "gse-lin-fwg", seed=2, storage=storage, study_name=name)
    rng = np.random.default_rng(3)
    batch = study.ask(6)
    study.tell(batch, rng.standard_normal(6), source="one")
    study.fail(study.ask(1).trials[0], "spilt")
    study.tell(arm="c", values=[1.0, 2.0])
    study.tell(arm="d", values=0.5, id="mine")
    study.amend("T0002", 7.0, why="typing error")
    study.exclude(["T0003", "mine"])
    study.restore("mine")
    while study.state.rounds < 2 and (more := study.ask(4)):
        study.tell(more, rng.standard_normal(len(more)))
    study.add_arms(Arms.from_arrays(np.ones((1, 2)), ids=["f"], names=study.state.names))
    study.tell(batch := study.ask(5), rng.standard_normal(5))
    study.hand_back(study.ask(2))
    study.raise_budget(80)
    study.tell(arm="f", values=3.0, id="late")
    return study


class Damaged(Memory):
    """Studies in memory of which some records cannot be read."""

    bad = frozenset()

    def salvage(self, name):
        return [(n, "its CRC does not fit" if n in self.bad else one) for n, one in super().salvage(name)]


def told(records, without=()):
    """What whole records of kind `tell` say, by arm."""
    found = {}
    for number, record in enumerate(records):
        for one in record["results"] if record["kind"] == "tell" and number not in without else ():
            found.setdefault(one["arm"], []).append(one["value"])
    return {arm: sorted(values) for arm, values in found.items()}


LENGTH = len(busy().storage.read("s"))


@pytest.mark.parametrize("bad", [*[{n} for n in range(1, LENGTH)], {1, 2, 5}, {3, 7, 9}, set(range(2, 8))])
def test_whatever_record_is_lost_the_results_of_all_others_are_saved(bad):
    place = Damaged()
    whole = list(busy(place).storage.read("s"))
    place.bad = frozenset(bad)
    left_out = salvage("s", place, target := Memory())
    study = load_study("s", target)
    assert all(any(f"record {n}" in said for said in left_out) for n in bad)
    saved = told(target.read("s"))
    new = {n for n, one in enumerate(whole) if one["kind"] == "arms" and n in bad}
    expected = told(whole, bad)
    if new:
        expected.pop(5, None)  # nobody knows what was measured
    assert saved == expected
    assert study.spent <= study.budget
    while (batch := study.ask()) is not None:  # and it goes on
        study.tell(batch or study.pending(), np.zeros(len(batch or study.pending())))
    assert study.best_arm in study.arms


@pytest.mark.parametrize("bad", [*[{n} for n in range(1, LENGTH)], {1, 2, 5}, {3, 7, 9}, set(range(2, 8))])
def test_trials_keep_their_numbers_and_their_price_whatever_is_lost(bad):
    place = Damaged()
    study = busy(place)
    whole, records = study.sync(), list(place.read("s"))
    place.bad = frozenset(bad)
    salvage("s", place, target := Memory())
    saved = load_study("s", target).state
    assert saved.used >= whole.used - (whole.handed - saved.handed)  # nobody knows of what was asked last
    lost = [one for n in bad if records[n]["kind"] == "tell" for one in records[n]["results"]]
    some = {id_of(one.name): one.sum for one in whole.told if isinstance(one.name, int) and one.name in saved.results}
    kept = [one.name for one in whole.told if one.name not in {one.get("trial", one.get("id")) for one in lost}]
    assert [name for name in kept if name not in saved.results and whole.results[name].arm < 5] == []
    for name, one in saved.results.items():
        assert saved.ids[one.arm] == whole.ids[whole.results[name].arm]
    assert load_study("s", target).tell(some, correct=True) == 0
    batch = load_study("s", target).ask() or ()
    assert not {trial.id for trial in batch} & {id_of(one.name) for one in whole.told if isinstance(one.name, int)} - {
        id_of(trial) for trial in range(saved.handed + 1, whole.handed + 1)
    }


@pytest.mark.parametrize("line", range(1, LENGTH))
def test_a_line_that_is_there_twice_or_in_another_place_is_no_loss(line, tmp_path):
    place = Journal(tmp_path / "a.jsonl")
    records = list(busy(place).storage.read("s"))
    lines = place.path.read_text().splitlines(keepends=True)
    swapped = [*lines[:line], *lines[line + 1 : line + 2], lines[line], *lines[line + 2 :]]
    twice = [*lines[: line + 1], *lines[line:]]
    for i, text in enumerate((swapped, twice, [*lines, lines[line]])):
        place.path.write_text("".join(text))
        assert salvage("s", Journal(place.path), target := Memory()) == [], i
        assert list(target.read("s")) == records


def test_two_records_of_one_number_are_said():
    class Twice(Memory):
        def salvage(self, name):
            return [*super().salvage(name), (2, {"kind": "finish", "time": 0.0})]

    study = busy(Twice())
    (said,) = salvage("s", study.storage, target := Memory())
    assert "record 2 is there twice, with different contents: the first one is kept" in said
    assert list(target.read("s")) == list(study.storage.read("s"))


def test_what_nobody_knows_the_arms_of_is_said_and_stays_spent():
    place = Damaged()
    study = create_study(np.eye(3), 12, "uniform", seed=1, storage=place, study_name="s")
    study.tell(study.ask(3), [1.0, 2.0, 3.0])
    study.ask(2)
    study.tell("T0005", 5.0)
    place.bad = frozenset({1})
    left_out = salvage("s", place, target := Memory())
    assert left_out[-1] == (
        "of which arms T0004 were: nothing counts for them by their numbers any more, and what they cost stays spent"
    )
    saved = load_study("s", target)
    assert (saved.spent, saved.state.total) == (5, 4)
    assert next(iter(saved.ask(1))).id == "T0006"


def test_a_whole_study_is_salvaged_as_it_is():
    study = busy()
    assert salvage("s", study.storage, target := Memory()) == []
    assert list(target.read("s")) == list(study.storage.read("s"))


def test_a_study_whose_first_record_is_lost_is_said_to_be_lost():
    place = Damaged()
    busy(place)
    place.bad = frozenset({0})
    with pytest.raises(StorageError, match="the first record of 's' says what the study is, and it is lost"):
        salvage("s", place, Memory())
    with pytest.raises(StorageError, match="there is no study 'other'"):
        salvage("other", place, Memory())
    with pytest.raises(InputError, match="there is a study 's' in memory already"):
        salvage("s", place, place)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(json.loads((GOLDEN / "v1" / "expected.json").read_text())))
def test_a_damaged_study_of_version_1_keeps_its_results(name):
    lines = (GOLDEN / "v1" / f"{name}.jsonl").read_text().splitlines()
    records = [json.loads(line)["record"] for line in lines]
    place = Damaged()
    place.create(name, records[0])
    place.append(name, records[1:])
    whole = load_study(name, place).state
    (said,) = salvage(name, place, target := Memory())
    assert "what was asked in version 1" in said
    saved = load_study(name, target).state
    assert (saved.counts, saved.ids, saved.budget) == (whole.counts, whole.ids, whole.budget)
    np.testing.assert_allclose(saved.sums, whole.sums)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("lost", ["ask", "tell", None])
def test_a_study_of_version_1_that_went_on_keeps_the_numbers_of_its_trials(lost):
    records = [json.loads(line)["record"] for line in (GOLDEN / "v1" / "uniform.jsonl").read_text().splitlines()]
    place = Damaged()
    place.create("uniform", records[0])
    place.append("uniform", records[1:])
    study = load_study("uniform", place)
    study.raise_budget(study.budget + 30)
    study.close_round()
    batch = study.ask(4)
    study.tell(batch, [1.0] * 4)
    whole = list(place.read("uniform"))
    place.bad = frozenset([n for n, one in enumerate(whole) if one["kind"] == lost][-1:])
    salvage("uniform", place, target := Memory())
    saved = load_study("uniform", target)
    assert saved.state.total == study.state.total - 4 * (lost == "tell")
    assert saved.tell(batch, [1.0] * 4) == 4 * (lost == "tell")
    assert saved.spent == 4
    assert not {trial.id for trial in batch} & {trial.id for trial in saved.ask(2)}


@pytest.mark.parametrize("url", ["a.jsonl", "a.db", None])
def test_a_copy_is_the_same_record_by_record(url, tmp_path):
    study, to = busy(), open_storage(None if url is None else tmp_path / url)
    assert copy_study("s", study.storage, to, as_="copy") == LENGTH
    assert list(to.read("copy")) == list(study.storage.read("s"))
    assert copy_study("s", study.storage, to, as_="copy") == LENGTH  # again: it is there
    copied = load_study("copy", to)
    assert copied.recommend(draws=100) == study.recommend(draws=100)
    copied.tell(copied.ask(1), [1.0])
    with pytest.raises(InputError, match=r"there is another study .copy. in"):
        copy_study("s", study.storage, to, as_="copy")
    create_study(np.eye(3), 20, storage=to, study_name="other")
    with pytest.raises(InputError, match="there is another study 'other'"):
        copy_study("s", study.storage, to, as_="other")
    with pytest.raises(InputError, match="is here already: name another storage, or the copy"):
        copy_study("s", study.storage, study.storage)


@pytest.mark.filterwarnings("ignore")
def test_a_whole_storage_is_upgraded_after_a_copy(tmp_path):
    text = "".join((GOLDEN / "v1" / f"{name}.jsonl").read_text() for name in ("uniform", "auto", "over"))
    place = tmp_path / "old.jsonl"
    place.write_text(text + '{"study":"odd","record":{"kind":"create","version":1}}\n')
    before = {name: load_study(name, place).state for name in ("uniform", "auto", "over")}
    with pytest.warns(BestArmWarning, match="study 'odd' is left as it is: .*record 0"):
        done, copy = upgrade_storage(place)
    assert sorted(done) == ["auto", "over", "uniform"]
    assert "".join(sorted(Path(copy).read_text().splitlines())) != ""
    for name, old in before.items():
        new = load_study(name, place).state
        assert (new.version, old.version) == (2, 1)
        assert (new.counts, new.sums, new.used) == (old.counts, old.sums, old.used)
        assert list(open_storage(copy).read(name)) == list(open_storage(place).read(name))[:-1]
    with pytest.warns(BestArmWarning, match="odd"):
        assert upgrade_storage(place) == ([], "")
