"""Figures of an answer: assessment and history in, Axes or a Figure out; no computing, nothing is shown.

Text stays text, so that any script and any name can be read, searched and printed; names are never taken for formulas.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bestarm.answer.answer import ArmEstimate, Assessment
from bestarm.answer.history import History
from bestarm.answer.wording import percent
from bestarm.draw.page import Html, drawing, tagged
from bestarm.draw.style import BLUE, GREEN, GREY, MOST, ORANGE, axes, can_draw, name_ticks, panels, svg

FONT: Any = {"svg.fonttype": "none", "text.parse_math": False, "font.family": "DejaVu Sans", "font.size": 9}


def inline(draw: Callable[..., Any], *data: Any, label: str, small: bool = False) -> Html:
    """Return a figure as a piece of a page, empty where `draw` has nothing to show."""
    if not can_draw():
        return tagged("p", f"No chart of {label}: it needs matplotlib, pip install 'bestarm-bai[plot]'.")
    from matplotlib import rc_context

    with rc_context(FONT), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters the measuring font lacks: the reader's browser has them
        drawn = draw(*data)
        return Html() if drawn is None else drawing(svg(drawn), label, small)


def draw_arms(assessment: Assessment) -> Any:
    """Draw estimates with intervals, chances and pulls of the arms side by side, most likely first."""
    chosen = assessment.answer.arm
    shown = shortlist(assessment.estimates, chosen)
    means, chances, results = panels((9, 1.1 + 0.24 * len(shown)), 3, sharey=True, width_ratios=[4, 3, 2])
    height = np.arange(len(shown))[::-1]
    colour = [ORANGE if e.arm == chosen else BLUE for e in shown]
    _whiskers(means, shown, height, colour)
    chances.barh(height, [e.chance for e in shown], color=colour)
    for at, e in zip(height, shown, strict=True):
        chances.text(e.chance + 0.02, at, percent(e.chance), va="center", fontsize=7.5)
    chances.set(xlim=(0, 1.36), xticks=[0, 0.5, 1], xticklabels=["0", "50 %", "100 %"], title="chance of being best")
    results.barh(height, [e.pulls for e in shown], color=colour)
    results.set(title="results", xlabel="")
    results.locator_params(axis="x", nbins=3, integer=True)
    name_ticks(means, height, [e.arm for e in shown], chosen)
    for ax in (means, chances, results):
        ax.tick_params(axis="y", length=0)
    means.set_ylim(-0.6, len(shown) - 0.4)
    return means


def shortlist(estimates: Sequence[ArmEstimate], chosen: str) -> list[ArmEstimate]:
    """Return the likeliest arms, the chosen one first: as many as a page can name."""
    first = [e for e in estimates if e.arm == chosen]
    return (first + [e for e in estimates if e.arm != chosen])[:MOST]


def _whiskers(ax: Any, shown: Sequence[ArmEstimate], height: Any, colour: Sequence[str]) -> None:
    for at, e, hue in zip(height, shown, colour, strict=True):
        ax.plot([e.low, e.high], [at, at], color=hue, lw=1.6, solid_capstyle="round")
        ax.plot(e.corrected, at, "o", ms=5, color=hue)
        ax.plot(e.value, at, "|", ms=8, color="black", mew=1)
    ax.set(title="estimated mean, 95 % interval")
    ax.locator_params(axis="x", nbins=5)
    ax.grid(axis="x", color="#e5e5e5", lw=0.6)
    ax.set_axisbelow(True)


def draw_race(history: History, chosen: str) -> Any:
    """Draw until when each arm was in the race, the last to go on top; None where no arm ever went."""
    last: dict[str, int] = {}  # the last step each arm was in
    for place, step in enumerate(history.steps):
        last.update(dict.fromkeys(step.left, place))
    if not history.steps or len(history.steps[-1].left) == len(last):
        return None
    still = set(history.steps[-1].left)
    ends = [step.told for step in history.steps]
    now = max(ends[-1], history.arrivals[-1][1] if history.arrivals else 0)
    until = {arm: (now if arm in still else ends[place + 1]) for arm, place in last.items()}
    order = sorted(until, key=lambda arm: (until[arm], arm in still, arm == chosen))[-MOST:]
    ax = axes((9, 1.2 + 0.2 * len(order)))
    for at, arm in enumerate(order):
        hue = ORANGE if arm == chosen else BLUE if arm in still else GREY
        ax.plot([0, until[arm]], [at, at], color=hue, lw=2.5, solid_capstyle="butt")
        ax.plot(until[arm], at, "o" if arm in still else "x", color=hue, ms=5)
    name_ticks(ax, range(len(order)), order, chosen)
    for told in ends:
        ax.axvline(told, color="#dddddd", lw=0.8, zorder=0)
    ax.set(xlabel="results", xlim=(0, 1.02 * max(now, 1)))
    return ax


def draw_arrivals(history: History) -> Any:
    """Draw how results came in over time."""
    if not history.arrivals:
        return None
    ax = axes((9, 2.6))
    seconds = np.array([time for time, _ in history.arrivals]) - history.started
    unit, word = next((u, w) for u, w in UNITS if seconds[-1] >= 2 * u or u == 1)
    every = max(1, len(seconds) // 1000)
    told = [0, *(told for _, told in history.arrivals)]
    keep = sorted({*range(0, len(told), every), len(told) - 1})
    ax.step(np.append(0, seconds / unit)[keep], np.array(told)[keep], where="post", color=BLUE, lw=1.8)
    ax.set(xlabel=f"{word} since the study began", ylabel="results so far", ylim=(0, 1.08 * told[-1]))
    return ax


UNITS = ((86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))


def draw_certainty(history: History, chosen: str) -> Any:
    """Draw chance of being right and expected regret against the results so far, side by side."""
    if len(history.sights) < 2:
        return None
    left, right = panels((9, 2.9), 2)
    told = [sight.told for sight in history.sights]
    left.plot(told, [sight.expected_regret for sight in history.sights], "o-", color=BLUE, ms=4)
    left.set(title="expected regret of the leader", xlabel="results", ylim=(0, None))
    right.plot(told, [sight.p_best for sight in history.sights], "-", color=GREEN, lw=1.5)
    for sight in history.sights:
        mine = sight.arm == chosen
        right.plot(sight.told, sight.p_best, "o" if mine else "s", ms=5, color=ORANGE if mine else GREY)
    right.set(title="chance that the leader is best", xlabel="results", ylim=(0, 1.05))
    right.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    for ax in (left, right):
        ax.set_xlim(0, None)
    return left


def draw_fit(measured: Sequence[tuple[float, ...]]) -> Any:
    """Draw what was measured, (fitted mean, mean of its results, low, high) by arm, against the model."""
    if len(measured) < 2:
        return None
    ax = axes((5.2, 3.8))
    fitted, seen, low, high = (np.array(column) for column in zip(*measured, strict=True))
    sure = np.isfinite(low) & np.isfinite(high)
    ax.vlines(fitted[sure], low[sure], high[sure], color=BLUE, lw=1, alpha=0.7)
    ax.plot(fitted, seen, "o", ms=4, color=BLUE)
    ends = [min(fitted.min(), seen.min()), max(fitted.max(), seen.max())]
    ax.plot(ends, ends, "--", color=GREY, lw=1)
    ax.set(xlabel="mean by the model", ylabel="mean of the arm's own results, 95 %")
    return ax
