"""A plan -> axes; no computing."""

from typing import Any

import numpy as np

from bestarm.draw.style import GREY, axes, ink, pen
from bestarm.errors import InputError
from bestarm.planning.answer import Plan


def draw(plan: Plan, ax: Any = None) -> Any:
    """Draw error against budget with 95 % intervals, the target, and the theorem's bound; return the Axes.

    No wrong answer at all is drawn at half an answer, since the scale is logarithmic.
    """
    if not plan.curve:
        raise InputError("there is nothing to draw: a single arm needs no budget")
    ax = axes((8, 4.5)) if ax is None else ax
    floor = 0.5 / plan.curve[0]["replications"]
    names = list(plan.budget)
    ends = []
    for number, name in enumerate(names):
        mine = [row for row in plan.curve if row["policy"] == name]
        x = [row["budget"] for row in mine]
        low, y, high = (np.maximum([row[key] for row in mine], floor) for key in ("low", "error", "high"))
        ax.errorbar(x, y, [y - low, high - y], **pen(number))
        ends.append((x[-1], low[-1], name, pen(number)["color"]))
    if plan.theorem:
        ax.plot(*zip(*plan.theorem, strict=True), ls="--", lw=1.2, color=GREY)
        label = {"xytext": (0, 4), "textcoords": "offset points", "ha": "right", "color": ink(GREY), "fontsize": 8}
        ax.annotate("the theorem's bound (GSE)", (plan.theorem[-1][0], 1.0), annotation_clip=False, **label)
    ax.axhline(plan.error, color="black", lw=0.8, ls=":")
    ax.annotate(f"target {plan.error:g}", (0.01, plan.error), (0, 3), xycoords=("axes fraction", "data"),
                textcoords="offset points", fontsize=8)  # fmt: skip
    ax.set(xscale="log", yscale="log", ylim=(0.3 * floor, 2), xlabel="budget, pulls", ylabel="chance of a wrong answer")
    _name(ends, ax)
    return ax


def _name(ends: list[tuple[Any, float, str, str]], ax: Any) -> None:
    """Write each name below the end of its line, none over another."""
    taken: list[tuple[float, float]] = []
    for x, y, name, colour in sorted(ends, key=lambda end: -end[1]):
        while any(abs(np.log10(x / a)) < 0.6 and abs(np.log10(y / b)) < 0.15 for a, b in taken):
            y /= 1.1
        taken.append((x, y))
        ax.annotate(
            name, (x, y), (0, -3), textcoords="offset points", ha="center", va="top", color=ink(colour), fontsize=8,
            annotation_clip=False, bbox={"color": "white", "alpha": 0.7, "pad": 0.5},
        )  # fmt: skip
