"""Results that name only an arm: they answer its oldest trials that are out, and what goes beyond is kept as well."""

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from bestarm.errors import InputError
from bestarm.study.results import naming
from bestarm.study.state import StudyState
from bestarm.study.storage import Record

EXTRAS = ("free", "spend")


@dataclass
class Pending:
    """The trials that are out, by arm, and what has been made of them; `spend` takes what goes beyond off the budget.

    What goes beyond, as the log says, is known to the policy before its next question.
    """

    state: StudyState
    spend: bool
    left: float
    trials: dict[int, deque[int]] = field(default_factory=dict)
    answered: int = 0
    beyond: int = 0
    cost: float = 0.0

    @classmethod
    def of(cls, state: StudyState, extras: str = "free", without: Collection[int] = ()) -> "Pending":
        """Return the trials that are out, but for some."""
        if extras not in EXTRAS:
            raise InputError(f"extras, --extras: {' or '.join(EXTRAS)} is expected; given {extras!r}")
        found = cls(state, extras == "spend", max(state.budget - state.used, 0.0))
        for trial in state.open_trials():
            if trial not in without:
                found.trials.setdefault(state.arm_of(trial), deque()).append(trial)
        return found

    def result(self, arm: int, said: Record, id: str) -> Record:
        """Return a value of an arm, or what several come to, as a result of trials; under the id where none is out."""
        n = int(said.get("n", 1))
        out = self.trials.get(arm, deque())
        mine = [out.popleft() for _ in range(min(n, len(out)))]
        more = n - len(mine)
        if more and not self.state.options["extra"]:
            raise InputError(
                f"arm {self.state.ids[arm]!r}: {len(mine)} of its trials are out, and {more} more results are given: "
                "this study takes no extra results"
            )
        self.answered, self.beyond = self.answered + len(mine), self.beyond + more
        one = {**(naming(mine) if mine else {"id": id}), "arm": arm, **said}
        if "n" in said or more:
            one["beyond"] = more
        return {**one, **self._priced(arm, len(mine), more)}

    def answered_by(self, given: Sequence[Record]) -> list[Record]:
        """Return results of arms under ids as those of trials, as far as such are out."""
        said = ({key: value for key, value in one.items() if key not in ("id", "arm")} for one in given)
        return [self.result(one["arm"], what, one["id"]) for one, what in zip(given, said, strict=True)]

    def _priced(self, arm: int, asked: int, more: int) -> Record:
        """Return what a result takes off the budget, where what goes beyond does: as much as is left of it at most."""
        if not (self.spend and more):
            return {}
        price = self.state.price(arm)
        extra = min(more * price, self.left)
        self.left, self.cost = self.left - extra, self.cost + extra
        return {"cost": asked * price + extra}
