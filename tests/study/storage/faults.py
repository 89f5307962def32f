"""A short study that is called again where it raised, calls of which the n-th fails, and what must be there then."""

import errno
import math
import os
from collections import Counter

from bestarm.errors import StorageError
from bestarm.study import create_study, load_study, open_storage
from bestarm.study.files import import_file, tell_file
from bestarm.study.trials import number_of

ARMS = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
BY_ARM = b"arm,reward\n1,21\n2,22\n"
EARLIER = b"arm,reward\n3,31\n3,32\n"
STEPS = ("create", "ask", "tell_one", "tell_many", "fail", "add", "name_one", "bring", "tell_a_file", "import_a_file",
         "amend", "ask", "tell_many")  # fmt: skip

UNNAMED = (11.0, 12.0, 14.0, 15.0)


class Script:
    """A short study. Each step is called again until it does not raise; what it promised is noted then."""

    def __init__(self, url, name):
        self.url, self.name, self.study = url, name, None
        self.values, self.extras, self.asked, self.failed = {}, Counter(), [], set()
        self.raised, self.todo = 0, list(STEPS)

    def run(self, healed=lambda: None):
        while self.todo:
            try:
                getattr(self, self.todo[0])()
            except StorageError:
                self.raised += 1
                assert self.raised < 20, f"{self.todo[0]} never came to its end"
                healed()
            else:
                del self.todo[0]
        return self

    def again(self, url):
        """The same in another process, at what is left in a place after this one died."""
        other = Script(url, self.name)
        other.values, other.extras, other.failed = dict(self.values), self.extras.copy(), set(self.failed)
        other.asked, other.todo = self.asked[:], self.todo[:]
        if url and self.name in open_storage(url).names():
            other.study = load_study(self.name, url)
        return other

    def create(self):
        self.study = create_study(
            ARMS, 60, "uniform", storage=self.url, study_name=self.name, seed=1, load_if_exists=True
        )

    def ask(self):
        self.asked += self.study.ask(5)

    def tell_one(self):
        trial = self.asked[-5]
        self.study.tell(trial, 1.5)
        self.values[number_of(trial.id)] = 1.5

    def tell_many(self):
        told = {trial.id: number_of(trial.id) / 7 for trial in self.asked[-4:-1]}
        self.study.tell(told)
        self.values |= {number_of(id): value for id, value in told.items()}

    def fail(self):
        self.study.fail(self.asked[-1], "spilt")
        self.failed.add(number_of(self.asked[-1].id))

    def add(self):
        self.study.tell(arm="1", values=[11.0, 12.0])
        self.extras.update([11.0, 12.0])

    def name_one(self):
        self.study.tell(arm="2", values=13.0, id="mine")
        self.extras.update([13.0])

    def bring(self):
        self.study.import_results([("1", 14.0), ("3", 15.0)])
        self.extras.update([14.0, 15.0])

    def tell_a_file(self):
        tell_file(self.study, BY_ARM, "by-arm.csv")
        answered = (one for one in self.study.state.told if one.file == "by-arm.csv" and one.of)
        self.values |= {one.name: one.sum for one in answered}
        self.extras.update({21.0, 22.0}.difference(self.values.values()))

    def import_a_file(self):
        import_file(self.study, EARLIER, "earlier.csv")
        self.extras.update([31.0, 32.0])

    def amend(self):
        trial = self.asked[0]
        self.study.amend(trial, 2.5, why="a typo")
        self.values[number_of(trial.id)] = 2.5


def log_of(storage, name):
    """The records of a study, read anew, and that they are whole."""
    records = list(storage.read(name))
    assert storage.salvage(name) == list(enumerate(records))
    assert storage.notes() == []
    return records


def check(script, url, unnamed_twice=False):
    """All that the script was promised is in the log, once, and nothing else."""
    storage = open_storage(url)
    log_of(storage, script.name)
    state = load_study(script.name, storage).state
    told = {name: one.sum for name, one in state.results.items() if isinstance(name, int)}
    extras = Counter(one.sum for name, one in state.results.items() if isinstance(name, str))
    assert told == script.values
    assert script.failed <= set(state.failed)
    assert {number_of(trial.id) for trial in script.asked} <= set(range(1, state.handed + 1))
    assert len({trial.id for trial in script.asked}) == len(script.asked) == 10
    assert all(state.ids[state.arm_of(number_of(trial.id))] == trial.arm for trial in script.asked)
    if unnamed_twice:  # told without a name, by a call that raised and could not take back what it had written
        extras -= Counter({value: extras[value] - 1 for value in UNNAMED if extras[value] == 2})
    assert extras == script.extras
    return state


class Killed(BaseException):
    """What ends a process, in mid-call."""


class Faults:
    """Counts calls that may fail, and lets some fail: `times` of them from the number `first` on."""

    def __init__(self, first=math.inf, times=1, code=errno.EIO, effect=0.0):
        self.first, self.times, self.code, self.effect = first, times, code, effect
        self.calls, self.named = 0, []

    def may_fail(self, name, real):
        def tried(*args, **given):
            number, self.calls = self.calls, self.calls + 1
            self.named.append(name)
            if not 0 <= number - self.first < self.times:
                return real(*args, **given)
            if self.effect and name == "write":
                real(args[0], args[1][: int(len(args[1]) * self.effect)])
            raise self.error()

        return tried

    def error(self):
        return OSError(self.code, os.strerror(self.code)) if self.code else Killed()

    def heal(self):
        if self.calls > self.first:
            self.first = math.inf
