"""A study against a simple reference: random asks, tells, failures, reloads, corrections and changes of mind."""

import math
from collections import Counter

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bestarm import Arms
from bestarm.errors import InputError
from bestarm.study import Memory, create_study, load_study
from bestarm.study.trials import Batch, number_of
from tests.study.test_poison import differing

POLICIES = ("gse-lin-fwg", "gse-log-fwg", "od-linbai", "linucb", "bayesgap-lin", "successive-rejects", "uniform")


class Reference(RuleBasedStateMachine):
    """What a careful person would write down: who asked what, and the first value of each trial."""

    @initialize(
        policy=st.sampled_from(POLICIES),
        budget=st.integers(14, 60),
        batch=st.none() | st.integers(1, 7),
        priced=st.booleans(),
        minimize=st.booleans(),
        refund=st.booleans(),
    )
    def begin(self, policy, budget, batch, priced, minimize, refund):
        features = np.random.default_rng(5).standard_normal((6, 3))
        cost = np.array([0.5, 1.0, 2.0, 1.5, 1.0, 0.5]) if priced else None
        arms = Arms.from_arrays(features, ids=list("abcdef"))
        arms = Arms(arms.ids, arms.features, arms.names, arms.encoding, cost)
        self.storage, self.cost = Memory(), dict(zip("abcdef", cost if priced else [1.0] * 6, strict=True))
        self.study = create_study(
            arms, budget, policy, study_name="s", storage=self.storage, batch=batch, seed=3, refund=refund,
            noise_variance=1.0, direction="minimize" if minimize else "maximize",
        )  # fmt: skip
        self.binary, self.refund = "log" in policy, refund
        self.asked = {}  # trial id: trial
        self.told = {}  # trial or extra id: the value that holds
        self.arm = {}  # of each told result
        self.single, self.excluded, self.failed, self.back, self.refunded = set(), set(), set(), set(), set()
        self.returned = set()  # refunded because they are to be measured again
        self.changes = []  # what `undo` takes back, the last one last: how, or why it does not
        self.tokens = 0

    def some(self, data, trials, least=1):
        return data.draw(st.lists(st.sampled_from(sorted(trials)), min_size=least, max_size=12, unique=True))

    def value(self, data):
        return data.draw(st.sampled_from([0.0, 1.0]) if self.binary else st.floats(-5, 5, allow_subnormal=False))

    def out(self):
        return set(self.asked) - set(self.told) - self.failed - self.back

    def take(self, values):
        left = self.study.budget - self.spent + 1e-9
        for trial in [t for t in values if t in self.refunded]:  # what comes all the same is paid for, while it can be
            price = self.cost[self.asked[trial].arm]
            self.refunded -= {trial} if price <= left else set()
            left -= price if price <= left else 0.0
        self.told |= values
        self.arm |= {t: self.asked[t].arm for t in values if t in self.asked}

    @property
    def spent(self):
        """The price of all that was asked and did not come back."""
        return sum(self.cost[trial.arm] for name, trial in self.asked.items() if name not in self.refunded)

    def refused(self, call, words):
        """Check that a call is refused with these words, and that nothing is kept of it."""
        records = len(self.storage.read("s"))
        try:
            call()
        except InputError as error:
            assert words in str(error), str(error)  # noqa: PT017
        else:
            raise AssertionError(words)
        assert len(self.storage.read("s")) == records

    @rule(n=st.none() | st.integers(1, 9), twin=st.booleans())
    def ask(self, n, twin):
        study = load_study("s", self.storage) if twin else self.study
        batch = study.ask(n)
        assert (batch is None) == study.finished
        for trial in batch or ():
            assert trial.id not in self.asked
            assert trial.arm in self.study.arms
            self.asked[trial.id] = trial
        assert n is None or batch is None or len(batch) <= n

    @precondition(lambda self: self.asked)
    @rule(data=st.data(), twin=st.booleans(), again=st.booleans())
    def tell(self, data, twin, again):
        """Any subset, in any order, some told before, some blank."""
        study = load_study("s", self.storage) if twin else self.study
        trials = self.some(data, set(self.asked) - (set(self.told) - self.single) - self.excluded or self.asked)
        trials = [t for t in trials if t not in self.told or t in self.single - self.excluded]
        values = {t: self.told[t] if again and t in self.told else self.value(data) for t in trials}
        blank = {t for t in trials if data.draw(st.integers(0, 4)) == 0}
        values |= dict.fromkeys(blank, math.nan)
        new = {t: v for t, v in values.items() if t not in self.told and t not in blank}
        other = [t for t in values if t in self.told and t not in blank and values[t] != self.told[t]]
        if other:
            self.refused(lambda: study.tell(values), other[0])
            return
        if data.draw(st.booleans()):
            assert study.tell(values) == len(new)
        else:
            batch = Batch(tuple(self.asked[t] for t in values))
            assert study.tell(batch, list(values.values())) == len(new)
        self.take(new)
        self.single |= set(new)

    @precondition(lambda self: self.binary and self.out())
    @rule(data=st.data())
    def tell_successes(self, data):
        """The number of successes of several trials at once."""
        chosen = self.some(data, self.out())
        mine = {}
        for trial in chosen:
            mine.setdefault(self.asked[trial].arm, []).append(trial)
        arm, trials = sorted(mine.items())[0]
        state = self.study.sync()
        rounds = {state.trial_rounds[number_of(trial)] for trial in trials}
        trials = [t for t in trials if state.trial_rounds[number_of(t)] == min(rounds)]
        won = data.draw(st.integers(0, len(trials)))
        assert self.study.tell(Batch(tuple(self.asked[t] for t in trials)), successes={arm: won}) == len(trials)
        self.take({t: float(i < won) for i, t in enumerate(trials)})
        self.single |= set(trials) if len(trials) == 1 else set()

    @rule(data=st.data(), again=st.booleans())
    def tell_extra(self, data, again):
        arm, value = data.draw(st.sampled_from("abcdef")), self.value(data)
        self.tokens += 1
        name = f"x{self.tokens}"
        assert self.study.tell(arm=arm, values=value, id=name) == 1
        if again:
            assert self.study.tell(arm=arm, values=value, id=name) == 0
        self.told[name], self.arm[name] = value, arm
        self.single.add(name)

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def fail(self, data):
        for trial in self.some(data, self.asked)[:2]:
            self.study.fail(trial, "broken")
            if trial in self.out():
                self.failed.add(trial)
                self.refunded |= {trial} if self.refund else set()

    @precondition(lambda self: self.out())
    @rule(data=st.data())
    def hand_back(self, data):
        trials = self.some(data, self.out())[:3]
        self.study.hand_back(trials)
        self.back |= set(trials)
        self.refunded |= set(trials)
        assert not set(trials) & {trial.id for trial in self.study.pending()}

    @precondition(lambda self: self.told)
    @rule(data=st.data())
    def what_was_measured_is_not_handed_back(self, data):
        trial = data.draw(st.sampled_from(sorted(self.told)))
        if trial in self.asked:
            self.refused(lambda: self.study.hand_back(trial), trial)

    @precondition(lambda self: self.single - self.excluded)
    @rule(data=st.data(), correct=st.booleans())
    def amend(self, data, correct):
        name, value = data.draw(st.sampled_from(sorted(self.single - self.excluded))), self.value(data)
        old = self.told[name]
        if correct and name in self.asked:
            assert self.study.tell({name: value}, correct=True) == 0
        else:
            self.study.amend(name, value, why="a typo")
        self.told[name] = value
        if value != old:
            self.changes.append(lambda: self.told.__setitem__(name, old))

    @precondition(lambda self: self.single)
    @rule(data=st.data())
    def exclude(self, data):
        names = set(self.some(data, self.single)[:3])
        new = names - self.excluded
        assert self.study.exclude(sorted(names), why="the wrong plate") == len(new)
        self.excluded |= new
        if new:
            self.changes.append(lambda: self.excluded.__isub__(new))

    @precondition(lambda self: self.single & set(self.asked) - self.excluded)
    @rule(data=st.data())
    def exclude_again(self, data):
        """To be measured again: what it took comes back, once."""
        names = set(self.some(data, self.single & set(self.asked) - self.excluded)[:2])
        assert self.study.exclude(sorted(names), again=True) == len(names)
        self.excluded |= names
        self.returned |= names - self.refunded
        self.refunded |= names
        self.changes.append("restore the results instead")

    @precondition(lambda self: self.excluded)
    @rule(data=st.data())
    def restore(self, data):
        names = set(self.some(data, self.excluded)[:3])
        back = names & self.returned
        if sum(self.cost[self.asked[name].arm] for name in back) > self.study.budget - self.study.spent + 1e-6:
            self.refused(lambda: self.study.restore(sorted(names)), "raise it first")
            return
        assert self.study.restore(sorted(names)) == len(names)
        self.excluded -= names
        self.returned -= back
        self.refunded -= back
        self.changes.append("exclude the results instead" if back else lambda: self.excluded.__ior__(names))

    @precondition(lambda self: len(self.study.arms) > 3)
    @rule(data=st.data())
    def withdraw(self, data):
        arm = data.draw(st.sampled_from(self.study.arms))
        self.study.withdraw(arm)
        assert arm not in self.study.arms
        self.changes.append(lambda: None)

    @rule()
    def finish(self):
        over = self.study.state.finished_by_hand
        self.study.finish()
        assert self.study.ask() is None
        if not over:
            self.changes.append(lambda: None)

    @rule(twin=st.booleans())
    def undo(self, twin):
        if not self.changes:
            self.refused(self.study.undo, "nothing to undo")
            return
        study = load_study("s", self.storage) if twin else self.study
        if isinstance(self.changes[-1], str):
            self.refused(study.undo, self.changes[-1])
            return
        study.undo()
        self.changes.pop()()

    @rule(more=st.integers(1, 9))
    def raise_budget(self, more):
        if self.study.budget < 90:
            self.study.raise_budget(self.study.budget + more)

    @rule()
    def close_round(self):
        self.study.close_round()

    @rule(bad=st.sampled_from(["T9999", "99.0", "0.9999", "0", "a.b", "", "-1.0", "0.-1", "T٣", "x"]))
    def an_unknown_trial_is_refused_by_its_id(self, bad):
        self.refused(lambda: self.study.tell({bad: 1.0}), bad)
        self.refused(lambda: self.study.amend(bad, 1.0), bad)

    @invariant()
    def the_budget_is_kept(self):
        if not hasattr(self, "study"):
            return
        assert self.study.spent <= self.study.budget + 1e-6
        assert abs(self.spent - self.study.spent) <= 1e-6

    @invariant()
    def every_told_value_counts_once(self):
        if not hasattr(self, "study"):
            return
        state = self.study.sync()
        pairs = [(self.arm[t], v) for t, v in self.told.items() if t not in self.excluded]
        counts = Counter(arm for arm, _ in pairs)
        assert [int(n) for n in state.counts] == [counts[arm] for arm in state.ids]
        for arm, total in zip(state.ids, state.sums, strict=True):
            assert math.isclose(total, sum(v for a, v in pairs if a == arm), abs_tol=1e-9)
        rows = self.study.trials()
        assert sum(row["count"] for row in rows) == len(self.told)
        assert sum(row["state"] == "excluded" for row in rows) == len(self.excluded)
        assert sum(row["state"] == "failed" for row in rows) == len(self.failed - set(self.told))
        assert {row["trial"] for row in rows if row["state"] == "handed back"} == self.back - set(self.told)

    @invariant()
    def a_reload_is_the_same_study(self):
        if not hasattr(self, "study"):
            return
        twin, state = load_study("s", self.storage), self.study.sync()
        assert differing(twin.state, state) == []
        assert twin.pending() == self.study.pending()
        assert {trial.id for trial in twin.pending()} <= self.out()
        assert twin.best_arm == self.study.best_arm


TestStudy = Reference.TestCase
TestStudy.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
