"""A figure's table -> axes; no computing. Intervals are always drawn, and lines are named where they end."""

from typing import Any

import numpy as np

from bestarm.bench.paper import Figure
from bestarm.bench.runner import Results
from bestarm.draw.style import COLOURS, ink, panels, pen
from bestarm.simulate.intervals import wilson


def points(figure: Figure, results: Results) -> list[dict[str, Any]]:
    """Return what is drawn as tidy rows: panel, policy, x, accuracy, low, high."""
    rows = []
    for panel in figure.panels:
        for policy in figure.policies:
            for value in figure.shown(policy):
                chunks = results.chunks.get(figure.cell(panel, value, policy).key)
                if chunks is None:
                    continue
                right = int(sum(c.correct.sum() for c in chunks))
                count = sum(len(c.correct) for c in chunks)
                low, high = wilson(right, count)
                measured = {"x": value, "accuracy": right / count, "low": low, "high": high}
                rows.append({"panel": panel.label, "policy": policy, **measured})
    return rows


def draw_suite(rows: list[dict[str, Any]], title: str) -> Any:
    """Return a matplotlib Figure of the distance to the best rival, a bar with its interval for each row of a verdict.

    Rows without a rival are left out; distances are in percentage points, and the lines are at 0, −1 and −3.
    """
    rows = [row for row in rows if row["rival"] is not None]
    groups = list(dict.fromkeys(row["group"] for row in rows))
    sizes = [sum(row["group"] == group for row in rows) for group in groups]
    size = (10, 1.2 + 0.24 * sum(sizes) + 0.4 * len(groups))
    axes = panels(size, len(groups) or 1, 1, sharex=True, height_ratios=sizes or [1])
    for number, (ax, group) in enumerate(zip(axes, groups, strict=False)):
        mine = sorted((row for row in rows if row["group"] == group), key=lambda row: row["rival_difference"])
        places = np.arange(len(mine))
        middle, low, high = (
            100 * np.array([row[key] for row in mine]) for key in ("rival_difference", "rival_low", "rival_high")
        )
        style = {"ecolor": "#333333", "error_kw": {"lw": 0.8, "capsize": 2}}
        ax.barh(places, middle, 0.7, xerr=[middle - low, high - middle], color=COLOURS[number % len(COLOURS)], **style)
        ax.set_yticks(places, [row["cell"] for row in mine], fontsize=7)
        for place, row in zip(places, mine, strict=True):
            ax.annotate(
                f"{row['accuracy']:.2f}, {row['rival']} {row['rival_accuracy']:.2f}", (1.01, place),
                xycoords=("axes fraction", "data"), fontsize=6, va="center", annotation_clip=False,
            )  # fmt: skip
        for line in (0, -1, -3):
            ax.axvline(line, color="#7F7F7F", lw=0.6, ls="-" if line == 0 else ":")
        ax.set_ylim(-0.6, len(mine) - 0.4)
        ax.set_title(group, fontsize=9, loc="left")
    axes[-1].set_xlabel("difference to the best rival of the contest, percentage points, 95 % interval")
    axes[0].figure.suptitle(title, fontsize=11)
    return axes[0].figure


def draw(shown: Figure, results: Results) -> Any:
    """Return a matplotlib Figure with a panel for each of `shown`."""
    rows = points(shown, results)
    axes = panels((5.2 * len(shown.panels), 4.6), len(shown.panels), sharey=True)
    for ax, panel in zip(axes, shown.panels, strict=True):
        draw_panel(shown, [row for row in rows if row["panel"] == panel.label], ax)
        ax.set_title(panel.label)
    axes[0].set_ylabel("accuracy")
    axes[0].figure.suptitle(f"{shown.title}; {results.replications} replications, seed {results.seed}", fontsize=11)
    return axes[0].figure


def draw_panel(figure: Figure, rows: list[dict[str, Any]], ax: Any) -> Any:
    """Draw accuracy against x with 95 % intervals, each line named at its end."""
    ends = []
    for number, policy in enumerate(figure.policies):
        mine = [row for row in rows if row["policy"] == policy]
        if not mine:
            continue
        x, y = [row["x"] for row in mine], [row["accuracy"] for row in mine]
        spread = [[row["accuracy"] - row["low"] for row in mine], [row["high"] - row["accuracy"] for row in mine]]
        ax.errorbar(x, y, spread, **pen(number))
        ends.append((x[-1], y[-1], policy, pen(number)["color"]))
    if figure.log:
        ax.set_xscale("log")
        ax.set_xticks(figure.values, [f"{value:g}" for value in figure.values])
        ax.minorticks_off()
    else:
        ax.set_xticks(figure.values)
    ax.set_ylim(0, 1)
    ax.set_xlabel({"Delta": "Δ"}.get(figure.x, figure.x))
    _name(ends, ax)
    return ax


def _name(ends: list[tuple[Any, float, str, str]], ax: Any) -> None:
    """Write each policy's name to the right of the axes, none over another."""
    gap = 0.043
    ends = sorted(ends, key=lambda end: end[1])
    heights = np.array([end[1] for end in ends])
    for _ in range(300):
        for i in np.flatnonzero(np.diff(heights) < gap - 1e-9):
            shift = (gap - (heights[i + 1] - heights[i])) / 2
            heights[i] -= shift
            heights[i + 1] += shift
        heights = np.maximum(heights, gap * np.arange(len(heights)))  # none below the axis
    for (_, y, policy, colour), height in zip(ends, heights, strict=True):
        ax.annotate(
            policy, (1.0, y), (1.03, height), xycoords=("axes fraction", "data"), textcoords=("axes fraction", "data"),
            color=ink(colour), fontsize=7, va="center", arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.4},
            annotation_clip=False,
        )  # fmt: skip
