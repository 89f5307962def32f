"""What was measured as a sentence of the paper sees it: in one setting, paired on the same replications."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, TypeAlias

import numpy as np

from bestarm.bench.grid import Cell
from bestarm.bench.paper import ALL_DATA, BEST, KEEPERS, MISSING, Figure
from bestarm.bench.runner import Results
from bestarm.simulate.intervals import NORMAL

HOLDS, FAILS, NOISE, NOT_RUN, CANNOT = "holds", "does not hold", "within noise", "not run", "–"

Place: TypeAlias = tuple[str, int, Any]  # figure, panel, value of x
Term: TypeAlias = tuple[float, Place, str]  # weight, where, label


class NotRun(Exception):
    """What a sentence is about was not run."""


class Cannot(Exception):
    """What a sentence is about cannot be had in a setting, and why."""


def sure(intervals: int, alpha: float = 0.05) -> float:
    """Return the half width of an interval in standard errors, where so many are to hold together (Šidák 1967).

    >>> round(sure(1), 3), round(sure(100), 3)
    (1.96, 3.474)
    """
    from scipy.stats import norm

    return float(norm.isf((1 - (1 - alpha) ** (1 / max(intervals, 1))) / 2))


@dataclass(frozen=True)
class Lead:
    """A mean difference of accuracies with its standard error, and how many errors its interval reaches."""

    mean: float
    error: float
    replications: int
    cells: int
    reach: float = NORMAL

    @property
    def low(self) -> float:
        return self.mean - self.reach * self.error

    @property
    def high(self) -> float:
        return self.mean + self.reach * self.error

    def __str__(self) -> str:
        ends = [f"[{100 * (self.mean - z * self.error):+.1f}, {100 * (self.mean + z * self.error):+.1f}]"
                for z in dict.fromkeys((NORMAL, self.reach))]  # fmt: skip
        return f"{100 * self.mean:+.1f} points {', together '.join(ends)}"


@dataclass(frozen=True)
class Found:
    """A verdict in one setting, the evidence in words, and the intervals it rests on."""

    verdict: str
    told: str
    leads: tuple[Lead, ...] = ()

    @property
    def replications(self) -> int:
        """The fewest replications an interval rests on; 0 where none does."""
        return min((lead.replications for lead in self.leads), default=0)


class SettingView:
    """What was measured in one setting. Intervals reach `reach` standard errors; `instead` puts labels for others."""

    def __init__(
        self,
        figures: Mapping[str, Figure],
        results: Mapping[str, Results],
        setting: str,
        reach: float = NORMAL,
        instead: Mapping[str, str] | None = None,
    ) -> None:
        self.figures, self.results, self.setting, self.reach = figures, results, setting, reach
        self.instead = instead or {}
        self.seen: dict[tuple[str, str], None] = {}  # figures and labels a sentence asked for

    def figure(self, name: str) -> Figure:
        """Return a figure that was run, in this setting too."""
        if name not in self.results:
            raise NotRun(f"{name} was not run")
        if self.setting not in self.figures[name].players:
            raise Cannot("this setting has no such figure")
        return self.figures[name]

    def label(self, name: str, label: str) -> str:
        """Return the label that stands for `label` in a figure of this setting."""
        label = self.instead.get(label, label)
        if label not in self.figure(name).players[self.setting]:
            raise Cannot(MISSING.get((self.setting, label), f"{label} is no variant of this setting"))
        self.seen[name, label] = None
        return label

    def fair(self, one: str, two: str) -> tuple[str, str]:
        """Return two labels to be compared: in best effort, beside a rival that keeps its data GSE keeps its own."""
        if self.setting != BEST:
            return one, two
        swap = {a: (ALL_DATA.get(a, a) if b in KEEPERS else a) for a, b in ((one, two), (two, one))}
        return swap[one], swap[two]

    def places(
        self, name: str, values: Callable[[Any], bool] = bool, panels: Iterable[int] | None = None
    ) -> list[Place]:
        """Return the panels and values of x of a figure that a sentence is about."""
        figure = self.figure(name)
        chosen = range(len(figure.panels)) if panels is None else panels
        return [(name, p, v) for p in chosen for v in figure.values if values(v)]

    def ran(self, place: Place, label: str) -> bool:
        """Return whether a label was run at a place."""
        name, _, value = place
        return value in self.figure(name).shown(label) and bool(self.chunks(place, label))

    def cell(self, place: Place, label: str) -> Cell:
        """Return the cell of a label at a place."""
        name, panel, value = place
        return self.figure(name).cell(self.setting, self.figure(name).panels[panel], value, label)

    def chunks(self, place: Place, label: str) -> Any:
        """Return what was measured of a label at a place; nothing where it failed."""
        return self.results[place[0]].chunks.get(self.cell(place, label).key, ())

    def contrast(self, terms: Sequence[Term]) -> Lead:
        """Return Σ weight · accuracy with its standard error; what was played in the same worlds is paired.

        Budgets share their worlds, and so do labels; other instances are independent.
        """
        worlds: dict[str, list[tuple[float, Any]]] = {}
        for weight, place, label in terms:
            chunks = self.chunks(place, label)
            if not chunks:
                raise NotRun(f"{label} failed in a cell of {place[0]}")
            right = np.concatenate([c.correct for c in chunks]).astype(np.float64)
            worlds.setdefault(self.cell(place, label).world_key, []).append((weight, right))
        mean, variance, least = 0.0, 0.0, 10**9
        for some in worlds.values():
            count = min(len(right) for _, right in some)
            total = sum(weight * right[:count] for weight, right in some)
            mean += float(np.mean(total))
            least_seen = max(abs(weight) for weight, _ in some) ** 2 / count  # as if one replication had differed
            variance += max(float(np.var(total, ddof=1)) if count > 1 else np.inf, least_seen) / count
            least = min(least, count)
        return Lead(mean, sqrt(variance), least, len({place for _, place, _ in terms}), self.reach)

    def difference(self, places: Iterable[Place], one: str, two: str) -> Lead:
        """Return how much more often `one` is right than `two`, averaged over the places both were run at."""
        both = [place for place in places if self.ran(place, one) and self.ran(place, two)]
        if not both:
            raise NotRun(f"{one} and {two} were not run on the same cells")
        share = 1 / len(both)
        return self.contrast([(s * share, place, label) for place in both for s, label in ((1, one), (-1, two))])

    def seconds(self, name: str, value: Any, label: str) -> float | None:
        """Return CPU seconds per 100 runs, averaged over panels."""
        places = [(name, p, value) for p in range(len(self.figure(name).panels))]
        chunks = [c for place in places if self.ran(place, label) for c in self.chunks(place, label)]
        runs = sum(len(c.correct) for c in chunks)
        return 100 * sum(c.cpu for c in chunks) / runs if runs else None

    def wider(self, count: int) -> "SettingView":
        """Return a view whose intervals hold together for `count` comparisons within one sentence."""
        view = SettingView(self.figures, self.results, self.setting, max(self.reach, sure(count)), self.instead)
        view.seen = self.seen
        return view
