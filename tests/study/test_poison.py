"""Whatever a study accepted it can read again: numbers, names and calls that hurt, and it is loaded after each."""

import dataclasses
import itertools
import math
import os
import random
import uuid
from collections import Counter

import numpy as np
import pytest

from bestarm import Arms, catalog
from bestarm.errors import BestArmError, InputError
from bestarm.study import Memory, create_study, delete_study, load_study, open_storage
from bestarm.study.doctor import examine
from bestarm.study.evidence import assessment as assess
from bestarm.study.report import page
from bestarm.study.state import StudyState
from bestarm.study.trials import Batch, id_of
from tests.study.storage.test_storage import url_for

pytestmark = pytest.mark.filterwarnings("ignore::bestarm.errors.BestArmWarning")

FACTOR = float(os.environ.get("BESTARM_TORTURE", "1"))
PLAIN = np.random.default_rng(0).standard_normal((6, 3))
LINE = np.outer(PLAIN[:, 0], [1.0, 2.0, 3.0])

FEATURES = {
    "plain": PLAIN,
    "near 1e8": 1e8 + PLAIN,
    "x 1e77": PLAIN * 1e77,
    "x 1e-100": PLAIN * 1e-100,
    "x 1e16": PLAIN * 1e16,
    "x 1e60": PLAIN * 1e60,
    "up to 1e150": PLAIN / np.abs(PLAIN).max() * 1e150,
    "x 1e-300": PLAIN * 1e-300,
    "below all normal numbers": PLAIN * 1e-320,
    "columns of all sizes": PLAIN * [1e-150, 1.0, 1e149],
    "constant": np.ones((6, 3)),
    "zero": np.zeros((6, 3)),
    "one arm": PLAIN[:1],
    "arms twice": np.repeat(PLAIN[:3], 2, axis=0),
    "on a line": LINE,
    "all but on a line": LINE + 1e-12 * PLAIN,
    "more columns than arms": np.random.default_rng(1).standard_normal((4, 9)),
    "one arm far out": np.vstack([PLAIN[:5], [[1e100, 1.0, 1.0]]]),
}
VALUES = {
    "plain": lambda chance: chance.gauss(0, 1),
    "1e150": lambda chance: 1e150,
    "-1e150": lambda chance: -1e150,
    "either end": lambda chance: chance.choice([1e150, -1e150]),
    "1e-300": lambda chance: 1e-300,
    "0 and 1e150": lambda chance: chance.choice([0.0, 1e150]),
    "of all sizes": lambda chance: chance.choice([0.0, -0.0, 1e150, -1e150, 1e-300, 5e-324, 1.0, -1e77, 1e16]),
    "0": lambda chance: 0.0,
    "1": lambda chance: 1.0,
    "0 and 1": lambda chance: float(chance.random() < 0.5),
    "near 1e16": lambda chance: 1e16 + chance.gauss(0, 1),
    "one far out": lambda chance: 1e150 if chance.random() < 0.1 else chance.gauss(0, 1),
}
NOISE = (None, 1.0, 1e-300, 1e300, 0.0)
NEEDY = ("linucb", "ucb-glm", "lingape", "bayesgap")  # they ask for the variance of the noise
DOES = (
    "ask", "ask", "ask", "tell", "tell", "tell", "tell", "tell again", "extra", "import", "fail", "amend", "exclude",
    "restore", "undo", "withdraw", "add_arms", "raise_budget", "close_round", "hand_back", "successes", "finish",
)  # fmt: skip


class Crowd:
    """A study and somebody who calls all it has, with numbers that hurt; `made` and `refused` count the calls."""

    def __init__(self, policy, features, value, seed, storage=None, name="s"):
        self.chance = random.Random(seed)
        self.storage = Memory() if storage is None else storage
        self.value, self.made, self.refused = VALUES[value], Counter(), Counter()
        table = Arms.from_arrays(FEATURES[features], cost=self._cost(len(FEATURES[features])))
        budget = 30.0 if table.cost is None else 30 * float(table.cost.mean())
        self.study = create_study(
            table, budget, policy, study_name=name, storage=self.storage, seed=3,
            batch=self.chance.choice([None, 1, 4]),
            noise_variance=self.chance.choice(NOISE[1:] if policy.startswith(NEEDY) else NOISE),
            refund=self.chance.random() < 0.7, direction=self._direction(policy),
        )  # fmt: skip
        self.asked = []
        self._settle("create")

    def _cost(self, arms):
        if self.chance.random() < 0.7:
            return None
        unit = self.chance.choice([1.0, 1e-12, 1e12])
        return unit * np.array([self.chance.choice([1e-3, 0.1, 1.0, 3.0, 1e3]) for _ in range(arms)])

    def _direction(self, policy):
        return "minimize" if "poi" not in policy and self.chance.random() < 0.3 else "maximize"

    def drawn(self):
        """A value that hurts, of those the study's model can have."""
        value, link = self.value(self.chance), type(self.study.state.rewards.law).__name__
        if link == "Logistic":
            return float(value > 0)
        return abs(float(round(value))) if link == "Poisson" else value

    def go(self, calls):
        """Make some calls at random; what is refused has written nothing."""
        for _ in range(calls):
            verb = self.chance.choice(DOES)
            before = len(self.storage.read(self.study.name))
            try:
                getattr(self, f"_{verb.replace(' ', '_')}")()
            except BestArmError:
                self.refused[verb] += 1
                assert len(self.storage.read(self.study.name)) == before or verb == "ask"
            self._settle(verb)

    def _settle(self, verb):
        self.made[verb] += 1
        reread(self.study)

    def _any(self, most=3):
        return self.chance.sample(self.asked, min(len(self.asked), self.chance.randint(1, most)))

    def _arm(self):
        return self.chance.choice(self.study.state.ids)

    def _ask(self):
        self.asked += self.study.ask(self.chance.choice([None, 1, 2, 5])) or ()

    def _tell(self):
        batch = self.study.pending()
        if batch:
            self.study.tell(batch, [self.drawn() for _ in batch])

    def _tell_again(self):
        for trial in self._any(1):
            self.study.tell(trial, self.drawn(), correct=self.chance.random() < 0.5)

    def _extra(self):
        values = [self.drawn() for _ in range(self.chance.randint(1, 3))]
        self.study.tell(arm=self._arm(), values=values, source=self.chance.choice(["", "é\x00\ud800", "ann"]))

    def _import(self):
        self.study.import_results([(self._arm(), self.drawn()) for _ in range(3)])

    def _successes(self):
        batch = self.study.pending()
        won = {arm: self.chance.randint(0, times) for arm, times in batch.counts.items()}
        self.study.tell(Batch(batch.trials), successes=won)

    def _fail(self):
        for trial in self._any(1):
            self.study.fail(trial, "odd \x00 \ud800", refund=self.chance.choice([None, True, False]))

    def _amend(self):
        for trial in self._any(1):
            self.study.amend(trial, self.drawn(), why="\ud800")

    def _exclude(self):
        self.study.exclude(self._any(), again=self.chance.random() < 0.5)

    def _restore(self):
        gone = [one.name for one in self.study.state.told if one.excluded]
        self.study.restore([id_of(name) if isinstance(name, int) else name for name in gone])

    def _undo(self):
        self.study.undo()

    def _withdraw(self):
        self.study.withdraw(self._arm())

    def _add_arms(self):
        state, new = self.study.state, f"new {len(self.study.state.ids)}"
        row = np.array([state.features[self.chance.randrange(len(state.ids))]]) * self.chance.choice([1.0, -1.0, 0.5])
        cost = None if state.cost is None else np.array([self.chance.choice([0.5, 1.0, 10.0]) * min(state.cost)])
        self.study.add_arms(Arms.from_arrays(row, ids=[new], names=state.names, cost=cost))

    def _raise_budget(self):
        self.study.raise_budget(self.study.budget * self.chance.choice([1 + 1e-15, 1.01, 1.3]))

    def _close_round(self):
        self.study.close_round()

    def _hand_back(self):
        self.study.hand_back([trial for trial in self.study.pending() if self.chance.random() < 0.3])

    def _finish(self):
        if self.chance.random() < 0.2:
            self.study.finish()


def differing(one, other):
    """The names of the fields in which two states differ."""
    return [
        field.name
        for field in dataclasses.fields(StudyState)
        if field.name not in ("policy", "folder", "allow") and getattr(one, field.name) != getattr(other, field.name)
    ]


def reread(study):
    """The study loads, and says the same; nothing is spent that is not there."""
    state, twin = study.sync(), load_study(study.name, study.storage, allow=["tests"])
    assert differing(state, twin.state) == []
    assert twin.pending() == study.pending()
    assert state.used <= state.budget * (1 + 1e-9)
    assert state.used >= 0
    return twin


def answered(study):
    """Everything that answers does, or says in a clear error why not; a study with results has an answer."""
    assert study.best_arm in study.arms
    study.trials()
    assert not [finding for finding in examine(study.storage) if finding.wrong and finding.study == study.name]
    if not study.state.known().counts.sum():
        with pytest.raises(InputError, match="no result yet"):
            study.recommend()
        return
    best = study.recommend(draws=100)
    assert best.arm in study.arms
    assert all(map(math.isfinite, (best.value, best.corrected, *best.interval, best.p_best, best.expected_regret)))
    assert math.isclose(sum(best.chances.values()), 1.0, rel_tol=1e-6)
    assert best.interval[0] <= best.interval[1]
    assert assess(study, draws=100).fit.words
    said = " ".join(best.warnings)
    assert ("The policy failed" in said) == bool(study.state.troubles)


def pairs(policy, some):
    """As many of the hostile pairs as wanted, other ones for each policy."""
    every = sorted(itertools.product(FEATURES, VALUES))
    return random.Random(policy).sample(every, some)


@pytest.mark.parametrize("policy", catalog.names())
def test_whatever_is_accepted_is_read_again(policy):
    for number, (features, value) in enumerate(pairs(policy, 2)):
        try:
            crowd = Crowd(policy, features, value, number)
        except InputError:  # a study that cannot begin is refused
            continue
        crowd.go(14)
        answered(crowd.study)


@pytest.mark.torture
@pytest.mark.parametrize("policy", catalog.names())
def test_whatever_is_accepted_is_read_again_with_every_pair(policy):
    made, refused, troubles, runs = Counter(), Counter(), 0, 0
    for seed in range(math.ceil(FACTOR)):
        for features, value in itertools.product(FEATURES, VALUES):
            try:
                crowd = Crowd(policy, features, value, f"{seed} {policy} {features} {value}")
            except InputError:
                refused["create"] += 1
                continue
            crowd.go(30)
            answered(crowd.study)
            if runs % 60 == 0:
                assert page(crowd.study).encode()
            made, refused, runs = made + crowd.made, refused + crowd.refused, runs + 1
            troubles += len(crowd.study.state.troubles)
    print(f"\npoison, {policy}: {runs} studies, {sum(made.values())} calls, {sum(refused.values())} refused, "
          f"{troubles} troubles, 0 that could not be read")  # fmt: skip


@pytest.mark.parametrize("kind", ["journal", "sqlite", "postgresql"])
def test_whatever_is_accepted_is_read_again_from_every_storage(kind, tmp_path):
    url = url_for(kind, tmp_path)
    name = f"s-{uuid.uuid4().hex}"
    for number, (features, value) in enumerate(pairs(kind, 3)):
        crowd = Crowd("gse-lin-fwg", features, value, number, open_storage(url), f"{name}-{number}")
        crowd.go(15)
        answered(crowd.study)
        delete_study(crowd.study.name, url)


@pytest.mark.parametrize(("features", "value"), pairs("page", 4))
def test_whatever_is_accepted_can_be_put_on_a_page(features, value):
    crowd = Crowd("gse-lin-fwg", features, value, 5)
    crowd.go(20)
    assert page(crowd.study).encode()


# doors


@pytest.fixture
def study():
    return create_study(PLAIN, 30, "gse-lin-fwg", study_name="s", storage=Memory(), seed=3)


BAD = {
    "a source that is a number": lambda s, b: s.tell(b, [1.0, 2.0], source=7),
    "a source of an ask": lambda s, b: s.ask(1, source=7),
    "a source of a failure": lambda s, b: s.fail(b.trials[0], "x", source=b"ann"),
    "a source of an import": lambda s, b: s.import_results([("1", 1.0)], source=7),
    "a source of a correction": lambda s, b: s.exclude(b.trials, source=["ann"]),
    "a why that is a number": lambda s, b: s.withdraw("1", why=7),
    "an id that is a tuple": lambda s, b: s.tell(arm="1", values=1.0, id=("a",)),
    "an id that is a number": lambda s, b: s.tell(arm="1", values=1.0, id=7),
    "an id like a trial's": lambda s, b: s.tell(arm="1", values=1.0, id="T0001"),
    "an arm that is a number": lambda s, b: s.tell(arm=1, values=1.0),
    "a value too large": lambda s, b: s.tell(b, [1.0, 1.0000001e150]),
    "a value too small": lambda s, b: s.import_results([("1", -1.1e150)]),
    "an infinity": lambda s, b: s.tell(b.trials[0], float("inf")),
    "a text": lambda s, b: s.tell(b.trials[0], "1.0"),
    "a complex number": lambda s, b: s.tell(b.trials[0], 1j),
    "True for a budget": lambda s, b: s.raise_budget(True),
    "a budget that is no number": lambda s, b: s.raise_budget(float("nan")),
    "a budget beyond all plans": lambda s, b: s.raise_budget(1e9),
    "half a trial": lambda s, b: s.ask(1.5),
    "wells that are numbers": lambda s, b: s.ask(2, wells=[1, 2]),
    "a record that is no number": lambda s, b: s.undo("x"),
    "features too large": lambda s, b: s.add_arms(Arms.from_arrays([[1e151, 0, 0]], ids=["n"], names=s.state.names)),
}


@pytest.mark.parametrize("what", BAD)
def test_what_could_not_be_read_again_is_refused_at_the_door(what, study):
    batch = study.ask(2)
    records = list(study.storage.read("s"))
    with pytest.raises(InputError):
        BAD[what](study, batch)
    assert list(study.storage.read("s")) == records
    reread(study)


@pytest.mark.parametrize("number", [np.int64(3), np.float32(2), np.array(4), 3.0])
def test_numbers_of_other_libraries_are_numbers(number, study):
    batch = study.ask(number)
    assert len(batch) == int(number)
    assert study.tell(batch, [number] * len(batch)) == len(batch)
    study.raise_budget(np.float64(31.5))
    assert study.state.sums[study.state.places[batch.trials[0].arm]] > 0
    reread(study)


IDS = [
    "a\nb", "a\0b", "\0", "\r\n", " ", "é" * 1000, "\U0001f600", "\u202eabc", "<script>alert(1)</script>", "T0001",
    "1", "0001", "nan", "None", "{id}", "$(id)", "`id`", "'; DROP TABLE log; --", "=1+1", "-x", "a,b", '"', "\\",
    "a\ud7ff\ue000", "\x7f",
]  # fmt: skip


@pytest.mark.parametrize("kind", ["memory", "journal", "sqlite"])
def test_odd_ids_survive(kind, tmp_path):
    table = Arms.from_arrays(np.random.default_rng(2).standard_normal((len(IDS), 2)), ids=IDS)
    study = create_study(table, 120, "gse-lin", study_name="s", storage=url_for(kind, tmp_path), seed=3)
    batch = study.ask()
    assert study.tell(batch, [float(IDS.index(trial.arm)) for trial in batch]) == len(batch) > 20
    for id in IDS:
        assert study.tell(arm=id, values=1.0, id=f"x {id}") == 1
        assert study.tell(arm=id, values=1.0, id=f"x {id}") == 0
    study.exclude(f"x {IDS[1]}", why="\0")
    study.withdraw(IDS[2])
    assert [row["arm"] for row in study.trials() if row["count"]] == [trial.arm for trial in batch] + IDS
    reread(study)
    assert study.best_arm in IDS
    assert study.arms == tuple(id for id in IDS if id != IDS[2])


@pytest.mark.parametrize("bad", ["", "\ud800", "a\udfffb"])
def test_ids_that_no_file_can_hold_are_refused(bad):
    with pytest.raises(InputError, match="row 2"):
        Arms.from_arrays(np.eye(2), ids=["a", bad])
