"""How the arms compare as a picture: an assessment in, Axes out; no computing, nothing is shown."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bestarm.answer.answer import ArmEstimate, Assessment
from bestarm.answer.wording import percent
from bestarm.draw.charts import shortlist
from bestarm.draw.style import BLUE, ORANGE, name_ticks, panels


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


def _whiskers(ax: Any, shown: Sequence[ArmEstimate], height: Any, colour: Sequence[str]) -> None:
    for at, e, hue in zip(height, shown, colour, strict=True):
        ax.plot([e.low, e.high], [at, at], color=hue, lw=1.6, solid_capstyle="round")
        ax.plot(e.corrected, at, "o", ms=5, color=hue)
        ax.plot(e.value, at, "|", ms=8, color="black", mew=1)
    ax.set(title="estimated mean, 95 % interval")
    ax.locator_params(axis="x", nbins=5)
    ax.grid(axis="x", color="#e5e5e5", lw=0.6)
    ax.set_axisbelow(True)
