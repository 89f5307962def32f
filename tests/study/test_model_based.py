"""A study against a simple reference, under random asks, tells, failures, reloads and changes of mind."""

import math
from collections import Counter

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bestarm import Arms
from bestarm.errors import InputError
from bestarm.study import Memory, create_study, load_study
from bestarm.study.trials import Batch

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
        self.asked, self.told, self.extra, self.failed = {}, {}, [], {}
        self.tokens = 0

    def some(self, data, trials, least=1):
        return data.draw(st.lists(st.sampled_from(sorted(trials)), min_size=least, max_size=12, unique=True))

    def value(self, data):
        return data.draw(st.sampled_from([0.0, 1.0]) if self.binary else st.floats(-5, 5, allow_subnormal=False))

    @rule(n=st.none() | st.integers(1, 9), twin=st.booleans())
    def ask(self, n, twin):
        study = load_study("s", self.storage) if twin else self.study
        over = study.finished
        batch = study.ask(n)
        assert (batch is None) == over
        for trial in batch or ():
            assert trial.id not in self.asked
            assert trial.arm in self.study.arms
            self.asked[trial.id] = trial
        assert n is None or batch is None or len(batch) <= n

    @precondition(lambda self: self.asked)
    @rule(data=st.data(), twin=st.booleans())
    def tell(self, data, twin):
        """Any subset, in any order, some again with another value, some blank."""
        study = load_study("s", self.storage) if twin else self.study
        values = {trial: data.draw(st.none() | st.just(math.nan)) if data.draw(st.integers(0, 4)) == 0 else
                  self.value(data) for trial in self.some(data, self.asked)}  # fmt: skip
        new = {t: v for t, v in values.items() if v is not None and v == v and t not in self.told}
        if data.draw(st.booleans()):
            assert study.tell(values) == len(new)
        else:
            batch = Batch(tuple(self.asked[t] for t in values))
            assert study.tell(batch, list(values.values())) == len(new)
        self.told |= new

    @precondition(lambda self: self.asked and self.binary)
    @rule(data=st.data())
    def tell_successes(self, data):
        chosen = self.some(data, self.asked)
        rounds = {trial.split(".")[0] for trial in chosen}
        chosen = [trial for trial in chosen if trial.split(".")[0] == min(rounds)]
        batch = Batch(tuple(self.asked[t] for t in chosen))
        won = {arm: data.draw(st.integers(0, times)) for arm, times in batch.counts.items()}
        mine = {arm: [t for t in chosen if self.asked[t].arm == arm] for arm in won}
        known = {arm: sum(t in self.told for t in mine[arm]) for arm in won}
        if any(0 < known[arm] < len(mine[arm]) for arm in won):
            try:
                self.study.tell(batch, successes=won)
            except InputError as error:
                assert "told already" in str(error)  # noqa: PT017
                return
            raise AssertionError("a sum that overlaps what is told was taken")
        new = [arm for arm in won if not known[arm]]
        assert self.study.tell(batch, successes=won) == sum(len(mine[arm]) for arm in new)
        for arm in new:
            self.told |= {t: float(i < won[arm]) for i, t in enumerate(mine[arm])}

    @rule(data=st.data(), again=st.booleans())
    def tell_extra(self, data, again):
        arm, value = data.draw(st.sampled_from("abcdef")), self.value(data)
        self.tokens += 1
        assert self.study.tell(arm=arm, values=value, id=f"x{self.tokens}") == 1
        if again:
            assert self.study.tell(arm=arm, values=value, id=f"x{self.tokens}") == 0
        self.extra.append((arm, value))

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def fail(self, data):
        for trial in self.some(data, self.asked)[:2]:
            self.study.fail(trial, "broken")
            if trial not in self.told:
                self.failed.setdefault(trial, "broken")

    @rule(more=st.integers(1, 9))
    def raise_budget(self, more):
        if self.study.budget < 90:
            self.study.raise_budget(self.study.budget + more)

    @precondition(lambda self: len(self.study.arms) > 3)
    @rule(data=st.data())
    def withdraw(self, data):
        self.study.withdraw(data.draw(st.sampled_from(self.study.arms)))

    @rule()
    def close_round(self):
        self.study.close_round()

    @rule(bad=st.sampled_from(["99.0", "0.9999", "0", "a.b", "", "-1.0", "0.-1", "٣.١"]))
    def an_unknown_trial_is_refused_by_its_id(self, bad):
        records = len(self.storage.read("s"))
        try:
            self.study.tell({bad: 1.0})
        except InputError as error:
            assert bad in str(error)  # noqa: PT017
        else:
            raise AssertionError(bad)
        assert len(self.storage.read("s")) == records

    @invariant()
    def the_budget_is_kept(self):
        if not hasattr(self, "study"):
            return
        assert self.study.spent <= self.study.budget + 1e-6
        lost = sum(self.cost[self.asked[t].arm] for t in self.failed) if self.refund else 0.0
        made = sum(self.cost[trial.arm] for trial in self.asked.values())
        assert made - lost <= self.study.spent + 1e-6

    @invariant()
    def every_told_value_is_kept_once(self):
        if not hasattr(self, "study"):
            return
        fold = self.study.sync()
        pairs = [(self.asked[t].arm, v) for t, v in self.told.items()] + self.extra
        counts = Counter(arm for arm, _ in pairs)
        assert [int(n) for n in fold.counts] == [counts[arm] for arm in fold.ids]
        for arm, total in zip(fold.ids, fold.sums, strict=True):
            assert math.isclose(total, sum(v for a, v in pairs if a == arm), abs_tol=1e-9)
        rows = self.study.trials()
        assert sum(row["count"] for row in rows) == len(pairs)
        assert sum(row["failed"] is not None for row in rows) == len(self.failed)

    @invariant()
    def a_reload_is_the_same_study(self):
        if not hasattr(self, "study"):
            return
        twin, fold = load_study("s", self.storage), self.study.sync()
        assert twin.fold.round == fold.round
        assert (twin.spent, twin.budget, twin.finished) == (fold.used, fold.budget, fold.round is None)
        assert twin.pending() == self.study.pending()
        assert {trial.id for trial in twin.pending()} <= set(self.asked) - set(self.told)
        np.testing.assert_array_equal(twin.fold.sums, fold.sums)
        assert twin.best_arm == self.study.best_arm


TestStudy = Reference.TestCase
TestStudy.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
