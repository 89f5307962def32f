"""Kinds of sentences, each beside the comparison that decides it; `claims` says which sentence is of which kind.

An interval above 0 makes a difference sure. "As good" allows a loss of 3 points, "alike" 3 points either way. Among
several cells of one sentence intervals hold together, so that one of many is not above by chance.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from bestarm.bench.evidence import FAILS, HOLDS, NOISE, Cannot, Found, Lead, NotRun, SettingView
from bestarm.bench.paper import DFORM, KEPT, LOGD, LOGKEPT, MISSING, ONCE

SLACK = 0.03  # how much worse "as good" or "competitive" may be

Values = Callable[[Any], bool]


class Judge(Protocol):
    """Whatever decides a sentence in one setting."""

    def __call__(self, view: SettingView) -> Found: ...


def better(lead: Lead) -> str:
    """Return whether a difference is above 0."""
    return HOLDS if lead.low > 0 else FAILS if lead.high < 0 else NOISE


def as_good(lead: Lead) -> str:
    """Return whether a difference is no loss of more than three points."""
    return HOLDS if lead.low > -SLACK else FAILS if lead.high < -SLACK else NOISE


def alike(lead: Lead) -> str:
    """Return whether a difference is within three points either way."""
    inside, outside = lead.low > -SLACK and lead.high < SLACK, lead.low > SLACK or lead.high < -SLACK
    return HOLDS if inside else FAILS if outside else NOISE


ALLOWED: dict[Callable[[Lead], str], str] = {
    as_good: "; a loss of 3 points is allowed",
    alike: "; 3 points are allowed",
}


@dataclass(frozen=True)
class Compare:
    """The mean difference of two labels over some cells of a figure, judged by `rule`."""

    name: str
    one: str
    two: str
    values: Values = bool
    panels: Iterable[int] | None = None
    rule: Callable[[Lead], str] = better

    def __call__(self, view: SettingView) -> Found:
        one, two = (view.label(self.name, label) for label in view.fair(self.one, self.two))
        lead = view.difference(view.places(self.name, self.values, self.panels), one, two)
        return Found(self.rule(lead), f"{one} less {two}: {lead}{ALLOWED.get(self.rule, '')}", (lead,))


@dataclass(frozen=True)
class Combination:
    """A weighted sum of accuracies above 0: weights by label, by value of x, by panel, averaged over what has none."""

    name: str
    what: str
    labels: Mapping[str, float]
    values: Mapping[Any, float] | None = None
    panels: Mapping[int, float] | None = None

    def __call__(self, view: SettingView) -> Found:
        figure = view.figure(self.name)
        labels = {view.label(self.name, label): weight for label, weight in self.labels.items()}
        common = [v for v in figure.values if all(v in figure.shown(label) for label in labels)]
        values = self.values or dict.fromkeys(common, 1 / max(len(common), 1))
        panels = self.panels or dict.fromkeys(range(len(figure.panels)), 1 / len(figure.panels))
        terms = [
            (a * b * c, (self.name, panel, value), label)
            for label, a in labels.items() for value, b in values.items() for panel, c in panels.items()
        ]  # fmt: skip
        if not terms or not all(place[2] in figure.values and view.ran(place, label) for _, place, label in terms):
            raise NotRun("it needs values of x that were not run")
        lead = view.contrast(terms)
        return Found(better(lead), f"{self.what}: {lead}", (lead,))


@dataclass(frozen=True)
class Falls:
    """The own accuracy of a label falls as x grows: its slope over the steps of x, as the change from end to end."""

    name: str
    one: str

    def __call__(self, view: SettingView) -> Found:
        values = view.figure(self.name).shown(view.label(self.name, self.one))
        middle = (len(values) - 1) / 2
        scale = sum((i - middle) ** 2 for i in range(len(values))) or 1.0
        slope = {value: -(i - middle) * (len(values) - 1) / scale for i, value in enumerate(values)}
        what = f"{self.one}, fall from {view.figure(self.name).x} = {values[0]:g} to {values[-1]:g}"
        return Combination(self.name, what, {self.one: 1.0}, slope)(view)


OURS = (DFORM, KEPT, LOGD, LOGKEPT, ONCE)


def rivals(view: SettingView, name: str, one: str) -> list[str]:
    """Return the labels of a figure that are no variant of `one`."""
    mine = one.startswith("GSE")
    players = view.figure(name).players[view.setting]
    return [p for p in players if p != one and p not in OURS and not (mine and p.startswith("GSE"))]


@dataclass(frozen=True)
class Ranked:
    """At most `place` − 1 others have their paired interval above `one`: 1 is "the best", 2 "at worst second"."""

    name: str
    one: str
    place: int = 1
    values: Values = bool
    panels: Iterable[int] | None = None

    def __call__(self, view: SettingView) -> Found:
        places = view.places(self.name, self.values, self.panels)
        gaps = {}
        for rival in rivals(view, self.name, self.one):
            two, one = (view.label(self.name, label) for label in view.fair(rival, self.one))
            if any(view.ran(place, two) for place in places):
                gaps[two] = view.difference(places, two, one)
        above = [rival for rival, gap in gaps.items() if gap.low > 0]
        told = "; ".join(f"{rival} {gap}" for rival, gap in sorted(gaps.items(), key=lambda i: -i[1].mean)[:4])
        leads = tuple(gaps.values())
        verdict = HOLDS if len(above) < self.place else FAILS
        return Found(verdict, f"{len(above)} of {len(gaps)} surely ahead of {self.one}; the nearest: {told}", leads)


@dataclass(frozen=True)
class Several:
    """At least `least` others are more often right than `one`."""

    name: str
    one: str
    least: int = 3

    def __call__(self, view: SettingView) -> Found:
        one = view.label(self.name, self.one)
        labels = [p for p in view.figure(self.name).players[view.setting] if p != one and p not in OURS]
        gaps = {label: view.difference(view.places(self.name), label, one) for label in labels}
        surely = [label for label, gap in gaps.items() if gap.low > 0]
        maybe = [label for label, gap in gaps.items() if gap.mean > 0]
        verdict = HOLDS if len(surely) >= self.least else FAILS if len(maybe) < self.least else NOISE
        told = f"{len(surely)} of {len(gaps)} are surely ahead of {one}, {len(maybe)} in the mean"
        return Found(verdict, f"{told}; {self.least} are several", tuple(gaps.values()))


def pairs(view: SettingView, names: Iterable[str], one: str, two: str) -> tuple[list[Lead], list[Any]]:
    """Return `one` less `two` in each cell of some figures that has both, the intervals holding together."""
    found = []
    for name in names:
        a, b = (view.label(name, label) for label in view.fair(one, two))
        found += [(p, a, b) for p in view.places(name) if view.ran(p, a) and view.ran(p, b)]
    if not found:
        raise NotRun(f"{one} and {two} were not run on the same cells")
    wide = view.wider(len(found))
    return [wide.difference([place], a, b) for place, a, b in found], [place for place, _, _ in found]


def _having(view: SettingView, names: Iterable[str], *labels: str) -> list[str]:
    """Return the figures that were run and have all labels in this setting."""
    for label in labels:
        if (view.setting, label) in MISSING:
            raise Cannot(MISSING[view.setting, label])
    ran = [name for name in names if name in view.results]
    having = [name for name in ran if all(label in view.figure(name).players[view.setting] for label in labels)]
    if not having and len(ran) < len(tuple(names)):
        raise NotRun("none of its figures was run")
    for label in labels if not having else ():
        view.label(ran[0], label)  # says why it is not there
    return having


def _counted(leads: Iterable[Lead], places: Iterable[Any], one: str, two: str) -> str:
    leads = list(leads)
    names = list(dict.fromkeys(place[0] for place in places))
    ahead, surely = sum(lead.mean > 0 for lead in leads), sum(lead.low > 0 for lead in leads)
    behind = sum(lead.high < 0 for lead in leads)
    worst = min(leads, key=lambda lead: lead.high)
    return (f"{one} ahead of {two} in {ahead} of {len(leads)} cells of {', '.join(names)}, surely in {surely}, "
            f"surely behind in {behind}; worst {worst}")  # fmt: skip


@dataclass(frozen=True)
class Always:
    """`one` is better in every cell of every figure with both: none surely behind, and surely ahead on average."""

    names: tuple[str, ...]
    one: str
    two: str
    strict: bool = True  # "never worse" otherwise: ahead on average is not asked

    def __call__(self, view: SettingView) -> Found:
        names = _having(view, self.names, self.one, self.two)
        leads, places = pairs(view, names, self.one, self.two)
        told = _counted(leads, places, self.one, self.two)
        if any(lead.high < 0 for lead in leads):
            return Found(FAILS, told, tuple(leads))
        average = [Compare(name, self.one, self.two)(view).leads[0] for name in names]
        sure = not self.strict or all(lead.low > 0 for lead in average)
        return Found(HOLDS if sure else NOISE, told, tuple(leads))


@dataclass(frozen=True)
class AtLeast:
    """`one` is at least as good as `two` on the average of each figure that has both, but for three points."""

    names: tuple[str, ...]
    one: str
    two: str

    def __call__(self, view: SettingView) -> Found:
        names = _having(view, self.names, self.one, self.two)
        wide = view.wider(len(names))
        leads = {name: Compare(name, self.one, self.two)(wide).leads[0] for name in names}
        verdicts = [as_good(lead) for lead in leads.values()]
        verdict = FAILS if FAILS in verdicts else NOISE if NOISE in verdicts else HOLDS
        told = "; ".join(f"{name} {lead}" for name, lead in leads.items())
        return Found(verdict, f"{self.one} less {self.two}: {told}{ALLOWED[as_good]}", tuple(leads.values()))


@dataclass(frozen=True)
class MostCells:
    """`one` is ahead of `two` in more than half of the cells, and on their average."""

    names: tuple[str, ...]
    one: str
    two: str
    values: Values = bool

    def __call__(self, view: SettingView) -> Found:
        names = _having(view, self.names, self.one, self.two)
        leads, places = pairs(view, names, self.one, self.two)
        some = [i for i, place in enumerate(places) if self.values(place[2])]
        leads, places = [leads[i] for i in some], [places[i] for i in some]
        one, two = view.fair(self.one, self.two)
        average = view.difference(places, one, two) if len(names) == 1 else _pooled(view, places, one, two)
        most = sum(lead.mean > 0 for lead in leads) > len(leads) / 2
        verdict = {HOLDS: HOLDS if most else NOISE, FAILS: NOISE if most else FAILS, NOISE: NOISE}[better(average)]
        told = _counted(leads, places, one, two)
        return Found(verdict, f"{told}; average {average}", (average,))


def _pooled(view: SettingView, places: list[Any], one: str, two: str) -> Lead:
    labels = {name: [view.label(name, label) for label in (one, two)] for name in {place[0] for place in places}}
    share = 1 / len(places)
    terms = [(s * share, p, label) for p in places for s, label in zip((1, -1), labels[p[0]], strict=True)]
    return view.contrast(terms)


@dataclass(frozen=True)
class MostlyBest:
    """In more than half of the cells of some figures no rival's paired interval lies above `one`."""

    names: tuple[str, ...]
    one: str

    def __call__(self, view: SettingView) -> Found:
        best, cells = 0, 0
        beaten: dict[str, int] = {}
        leads: list[Lead] = []
        for name in _having(view, self.names, self.one):
            for place in view.places(name):
                fair = [view.fair(rival, self.one) for rival in rivals(view, name, self.one)]
                some = [(a, b) for a, b in fair if view.ran(place, a)]
                wide = view.wider(len(some))
                gaps = {a: wide.difference([place], view.label(name, a), view.label(name, b)) for a, b in some}
                above = [a for a, gap in gaps.items() if gap.low > 0]
                best, cells = best + (not above), cells + 1
                beaten.update({a: beaten.get(a, 0) + 1 for a in above})
                leads += gaps.values()
        told = f"in {best} of {cells} cells no rival is surely ahead of {self.one}"
        told += "".join(f"; {rival} is in {n}" for rival, n in sorted(beaten.items(), key=lambda i: -i[1]))
        return Found(HOLDS if best > cells / 2 else FAILS, told, tuple(leads))


@dataclass(frozen=True)
class Sensitive:
    """The labels of a figure differ by more than three points: the largest difference of any two, all told together."""

    name: str

    def __call__(self, view: SettingView) -> Found:
        labels = list(view.figure(self.name).players[view.setting])
        places = view.places(self.name)
        wide = view.wider(len(labels) * (len(labels) - 1) // 2)
        means = {label: view.contrast([(1 / len(places), p, label) for p in places]).mean for label in labels}
        high, low = max(means, key=lambda k: means[k]), min(means, key=lambda k: means[k])
        lead = wide.difference(places, view.label(self.name, high), view.label(self.name, low))
        verdict = HOLDS if lead.low > SLACK else FAILS if lead.high < SLACK else NOISE
        ends = f"accuracy {means[low]:.3f} ({low}) to {means[high]:.3f} ({high})"
        return Found(verdict, f"{ends} over {len(labels)} kernels: {lead}; 3 points are allowed", (lead,))


@dataclass(frozen=True)
class Slower:
    """100 runs of `slow` at one value of x take more than `times` the CPU time of any other policy, or of `seconds`."""

    name: str
    slow: str
    value: Any
    times: float = 1.0
    seconds: float | None = None

    def __call__(self, view: SettingView) -> Found:
        slow = view.label(self.name, self.slow)
        players = view.figure(self.name).players[view.setting]
        spent = {p: view.seconds(self.name, self.value, p) or 0.0 for p in players}
        if not spent[slow]:
            raise NotRun(f"{slow} was not run at {self.value}")
        rest = max(seconds for p, seconds in spent.items() if p != slow) if self.seconds is None else self.seconds
        told = f"{slow} {spent[slow]:.2f} CPU seconds per 100 runs, {rest:.2f} the slowest other or the paper"
        return Found(HOLDS if spent[slow] > self.times * rest else FAILS, told)


@dataclass(frozen=True)
class All:
    """Several comparisons at once: the sentence holds where all do, and not where one does not."""

    judges: tuple[Judge, ...]

    def __call__(self, view: SettingView) -> Found:
        found = [judge(view) for judge in self.judges]
        verdicts = [one.verdict for one in found]
        verdict = FAILS if FAILS in verdicts else NOISE if NOISE in verdicts else HOLDS
        return Found(verdict, "; ".join(one.told for one in found), tuple(lead for one in found for lead in one.leads))
