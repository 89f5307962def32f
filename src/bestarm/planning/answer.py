"""What a plan says: the chance of a wrong answer by budget, the budget for a target, rounds, the theorem."""

from dataclasses import dataclass, fields
from typing import Any

from bestarm.answer.wording import aligned
from bestarm.numbers import counted


@dataclass(frozen=True)
class Rounds:
    """How often one must wait for results, and the pulls of each round: none listed for a pull at a time.

    Where they depend on the rewards, the most over simulated runs are given.

    >>> print(Rounds(3, (40, 40, 41)), "|", Rounds(120))
    3 of 40 to 41 | one at a time
    """

    count: int
    pulls: tuple[int, ...] = ()

    def __str__(self) -> str:
        if not self.pulls:
            return "one at a time" if self.count else "none"
        low, high = min(self.pulls), max(self.pulls)
        return f"{self.count} of {low:,}" + (f" to {high:,}" if high > low else "")


@dataclass(frozen=True)
class Plan:
    """What a budget buys: the chance of a wrong answer, averaged over plausible worlds, with 95 % Wilson intervals.

    `curve` has a row for each policy and budget simulated; `budget` the smallest whose interval ends at or below the
    target `error`, or None. `reached` is the row at that budget, at the one `given`, or as far as the policy got;
    `double` the row at twice as much, `rounds` how it is spent. `bound` is the theorem's budget for G-optimal
    elimination, and `theorem` its bound by budget.
    """

    arms: int
    dimension: int
    error: float
    curve: tuple[dict[str, Any], ...]
    budget: dict[str, int | None]
    reached: dict[str, dict[str, Any] | None]
    double: dict[str, dict[str, Any] | None]
    rounds: dict[str, Rounds]
    bound: int | None
    theorem: tuple[tuple[int, float], ...]
    given: int | None
    warnings: tuple[str, ...]
    about: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, fit for JSON."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        rounds = {name: {"count": one.count, "pulls": list(one.pulls)} for name, one in self.rounds.items()}
        lists = {name: list(plain[name]) for name in ("curve", "warnings")}
        return plain | lists | {"rounds": rounds, "theorem": [list(point) for point in self.theorem]}

    def table(self) -> list[dict[str, str]]:
        """Return a row of text for each policy: its budget, the error there, rounds, what twice the budget buys."""
        rows = []
        for name, budget in self.budget.items():
            far = self.reached[name]
            spent = f"{0 if far is None else far['budget']:,}"
            rows.append(
                {
                    "policy": name,
                    "budget": f"over {spent}" if budget is None and self.given is None else spent,
                    "error": _share(far),
                    "rounds": str(self.rounds[name]),
                    "at twice the budget": _share(self.double[name]),
                }
            )
        bound = "–" if self.bound is None else f"{self.bound:,}"
        return [*rows, dict(zip(rows[0], ("the theorem (GSE)", bound, f"at most {self.error:g}", "", ""), strict=True))]

    def __str__(self) -> str:
        known = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in self.about.items() if value is not None)
        arms = f"{counted(self.arms, 'arm')}, dimension {self.dimension}"
        lines = [f"{arms}; target: error at most {self.error:g}", known]
        return "\n".join([*lines, *aligned(self.table()), *(f"warning: {one}" for one in self.warnings)])


def _share(row: dict[str, Any] | None) -> str:
    return "–" if row is None else f"{row['error']:.3f} [{row['low']:.3f}, {row['high']:.3f}]"
