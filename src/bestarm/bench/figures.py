"""The table of a suite -> axes; no computing."""

from typing import Any

import numpy as np

from bestarm.draw.style import COLOURS, panels


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
