"""The figures of a report: assessment and history in, the text of an SVG out; no computing, and nothing to install."""

from collections.abc import Sequence

from bestarm.answer.answer import ArmEstimate, Assessment
from bestarm.answer.history import History
from bestarm.answer.wording import number, percent
from bestarm.draw import svg
from bestarm.draw.page import Html
from bestarm.draw.style import MOST, name

SHORT = 14  # letters of a name that stands beside its row; a longer one stands above it
STEPS = 1000  # of a line that rises
HIGH, TOP = 220.0, 34.0  # where the axis of a chart with two of them begins, and ends


def arms(assessment: Assessment) -> Html:
    """Draw estimates with intervals, chances and pulls of the arms side by side, most likely first."""
    chosen = assessment.answer.arm
    shown = shortlist(assessment.estimates, chosen)
    row, first, lift = _rows([e.arm for e in shown])
    low, high = _limits([end for e in shown for end in (e.low, e.high, e.value, e.corrected)])
    means, share = svg.Axis(low, high, first, 57.0), svg.Axis(0, 1, 60.0, 76.0)
    top, bottom = 26.0, 26.0 + row * len(shown)
    drawn = [svg.text(first, 10, "mean, 95 %", "soft"), svg.text(share.start, 10, "chance", "soft")]
    drawn.append(svg.text(100, 10, "results", "soft", "end"))
    values = svg.ticks(low, high)
    drawn.append(svg.below(means, values, svg.written(values), top, bottom))
    for place, e in enumerate(shown):
        y = top + row * (place + 1) - 11
        colour = "accent" if e.arm == chosen else "rule"
        told = f"{name(e.arm)}: {number(e.corrected)}, {number(e.low)} to {number(e.high)}, {percent(e.chance)}"
        drawn.append(svg.named(
            told,
            _name(e.arm, chosen, y - lift, first),
            svg.line(means.at(e.low), y, means.at(e.high), y, colour, "wide"),
            svg.dot(means.at(e.corrected), y, colour),
            svg.line(means.at(e.value), y - 6, means.at(e.value), y + 6, "ink"),
            svg.bar(share.start, share.end, y, "wash"), svg.bar(share.start, share.at(e.chance), y, colour),
            svg.text(77, y, percent(e.chance).replace("over", ">").replace("under", "<")),
            svg.text(100, y, f"{e.pulls:,}", anchor="end"),
        ))  # fmt: skip
    return svg.chart(bottom + 22, *drawn)


def shortlist(estimates: Sequence[ArmEstimate], chosen: str) -> list[ArmEstimate]:
    """Return the likeliest arms, the chosen one first: as many as a page can name."""
    first = [e for e in estimates if e.arm == chosen]
    return (first + [e for e in estimates if e.arm != chosen])[:MOST]


def race(history: History, chosen: str) -> Html:
    """Draw until when each arm was in the race, the last to go on top; nothing where no arm ever went."""
    last: dict[str, int] = {}  # the last step each arm was in
    for place, step in enumerate(history.steps):
        last.update(dict.fromkeys(step.left, place))
    if not history.steps or len(history.steps[-1].left) == len(last):
        return Html()
    still = set(history.steps[-1].left)
    ends = [step.told for step in history.steps]
    now = max(ends[-1], history.arrivals[-1][1] if history.arrivals else 0, 1)
    until = {arm: (now if arm in still else ends[place + 1]) for arm, place in last.items()}
    order = sorted(until, key=lambda arm: (until[arm], arm in still, arm == chosen))[::-1][:MOST]
    row, first, lift = _rows(order)
    told = svg.Axis(0, now, first, 98.0)
    bottom = 4 + row * len(order)
    values = svg.ticks(0, now, 4)
    drawn = [svg.below(told, values, svg.written(values), 4, bottom)]
    drawn += [svg.line(told.at(end), 4, told.at(end), bottom, "soft", "dashed") for end in ends if end]
    for place, arm in enumerate(order):
        y = 4 + row * (place + 1) - 11
        colour = "accent" if arm == chosen else "rule" if arm in still else "soft"
        mark = svg.dot if arm in still else svg.cross
        ended = f"{name(arm)}: {'in the race' if arm in still else f'left after {until[arm]:,} results'}"
        parts = (svg.line(told.at(0), y, told.at(until[arm]), y, colour, "wide"), mark(told.at(until[arm]), y, colour))
        drawn.append(svg.named(ended, _name(arm, chosen, y - lift, first), *parts))
    return svg.chart(bottom + 38, *drawn, svg.text(98, bottom + 28, "results", "soft", "end"))


def arrivals(history: History) -> Html:
    """Draw how results came in over time."""
    if not history.arrivals:
        return Html()
    seconds = [time - history.started for time, _ in history.arrivals]
    unit, word = next((u, w) for u, w in UNITS if seconds[-1] >= 2 * u or u == 1)
    told = [0, *(told for _, told in history.arrivals)]
    when = [0.0, *(second / unit for second in seconds)]
    keep = sorted({*range(0, len(told), max(1, len(told) // STEPS)), len(told) - 1})
    x, y = svg.Axis(0, max(when), 0.5, 99.0), svg.Axis(0, 1.05 * max(told), HIGH, TOP)
    steps, before = [(x.at(0), y.at(0))], y.at(0)
    for place in keep:
        steps += [(x.at(when[place]), before), (x.at(when[place]), before := y.at(told[place]))]
    drawn = [_both(x, y, "results so far", f"{word} since the study began"), svg.path(steps, HIGH, "rule")]
    return svg.chart(HIGH + 38, *drawn)


UNITS = ((86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))


def certainty(history: History, chosen: str) -> Html:
    """Draw chance of being right and expected regret against the results so far, side by side."""
    if len(history.sights) < 2:
        return Html()
    told = svg.Axis(0, history.sights[-1].told, 0.5, 98.0)
    regret = [sight.expected_regret for sight in history.sights]
    below, chance = svg.Axis(0, 1.08 * max(regret) or 1.0, HIGH, TOP), svg.Axis(0, 1.05, HIGH, TOP)
    left = [_both(told, below, "expected regret of the leader", "results")]
    right = [_both(told, chance, "chance that the leader is best", "results", (0, 0.5, 1), ("0", "50 %", "100 %"))]
    for drawn, axis, values, colour in ((left, below, regret, "rule"), (right, chance, None, "good")):
        heights = [sight.p_best for sight in history.sights] if values is None else values
        points = [(told.at(s.told), axis.at(v)) for s, v in zip(history.sights, heights, strict=True)]
        drawn.append(svg.path(points, HIGH, colour))
        for sight, (x, y), value in zip(history.sights, points, heights, strict=True):
            mine = sight.arm == chosen
            mark, hue = (svg.dot, "accent") if mine else (svg.square, "soft")
            if values is not None:
                mark, hue = svg.dot, "rule"
            said = percent(value) if values is None else number(value)
            drawn.append(svg.named(f"{name(sight.arm)}, {sight.told:,} results: {said}", mark(x, y, hue)))
    return Html(svg.chart(HIGH + 38, *left) + svg.chart(HIGH + 38, *right))


def fit(measured: Sequence[tuple[float, ...]]) -> Html:
    """Draw what was measured, (fitted mean, mean of its results, low, high) by arm, against the model."""
    if len(measured) < 2:
        return Html()
    low, high = _limits([value for fitted, seen, *_ in measured for value in (fitted, seen)])
    ends = _limits([end for _, seen, *both in measured for end in (seen, *both)])
    x, y = svg.Axis(low, high, 1.0, 98.0), svg.Axis(*ends, 260, TOP)
    drawn = [_both(x, y, "mean of the arm's own results, 95 %", "mean by the model")]
    drawn.append(svg.line(x.at(low), y.at(low), x.at(high), y.at(high), "soft", "dashed"))
    for fitted, seen, least, most in measured:
        whisker = svg.line(x.at(fitted), y.at(least), x.at(fitted), y.at(most), "rule")
        drawn.append((whisker if least < most else "") + svg.dot(x.at(fitted), y.at(seen), "rule"))
    return svg.chart(298, *drawn)


def _both(
    x: svg.Axis, y: svg.Axis, up: str, along: str, values: Sequence[float] = (), labels: Sequence[str] = ()
) -> str:  # fmt: skip
    """Return two axes: what is measured upwards is said above, what along below."""
    heights = values or svg.ticks(y.low, y.high)
    places = svg.ticks(x.low, x.high)
    bottom = max(y.start, y.end)
    grid = svg.beside(y, heights, labels or svg.written(heights)) + svg.below(
        x, places, svg.written(places), bottom, bottom
    )
    return svg.text(0, 8, up, "ink strong") + grid + svg.text(98, bottom + 28, along, "soft", "end")


def _rows(names: Sequence[str]) -> tuple[float, float, float]:
    """Return the height of a row, where it begins, and how far above its marks its name is: 0, beside them."""
    return (24.0, 27.0, 0.0) if max(len(name(one)) for one in names) <= SHORT else (40.0, 0.5, 18.0)


def _name(arm: str, chosen: str, y: float, room: float) -> str:
    return svg.text(0, y, name(arm), "ink strong" if arm == chosen else "ink", room=room - 1 if room > 1 else 58.0)


def _limits(values: Sequence[float]) -> tuple[float, float]:
    """Return a little less than the least, and more than the largest, of those that are numbers."""
    finite = [value for value in values if abs(value) < float("inf")]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    more = 0.04 * (high - low) if high > low else 0.5 * abs(high) or 1.0
    return low - more, high + more
