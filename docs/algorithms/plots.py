"""Draw the plot of each page: `make docs`. Accuracy against budget per arm, with 95 % intervals."""

import sys
from pathlib import Path

import numpy as np

from bestarm import bench
from bestarm.draw.style import ink, panels, pen

BUDGETS = (5, 10, 20, 50)
GAP = 0.043  # between two names, in accuracy
SPHERE = ("sphere, K = 32, d = 10, noise variance 1", (("K", 32), ("variance", 1.0)))
ADAPTIVE = ("adaptive, K = 16, noise variance 10", (("K", 16),))
GLM = ("logistic, K = 8, d = 5", (("K", 8), ("d", 5)))

PAGES = {
    "gse": ("randomized", SPHERE, ("gse-lin", "gse-lin-fwg", "gse-lin-xy-pooled", "gse-means", "uniform")),
    "od_linbai": ("randomized", SPHERE, ("gse-lin-fwg", "od-linbai", "od-linbai-spend", "gse-lin-fwg-azizi2021")),
    "peace": ("adaptive", ADAPTIVE, ("gse-lin-fwg", "peace", "peace-rho", "linear-exploration")),
    "p1_rage": ("randomized", SPHERE, ("gse-lin-fwg", "p1-rage", "g-optimal", "linear-exploration")),
    "classics": (
        "static",
        ("static, K = 16, gap 1, noise variance 1", (("Delta", 1.0),)),
        ("gse-means", "sequential-halving", "sequential-halving-pooled", "successive-rejects", "continuous-rejects-a",
         "continuous-rejects-c", "ocba", "uniform"),
    ),
    "bayesgap": (
        "randomized", SPHERE,
        ("gse-lin-fwg", "bayesgap-lin", "bayesgap-exp", "bayesgap-se", "bayesgap-matern", "bayesgap-azizi2021"),
    ),
    "lingape": ("randomized", SPHERE, ("gse-lin-fwg", "lingape", "lingape-greedy", "lingape-greedy-narrow")),
    "ucb": ("glm", GLM, ("gse-log-fwg", "ucb-glm", "ucb-glm-azizi2021", "linucb", "linucb-disjoint")),
    "cited": (
        "adaptive", ADAPTIVE,
        ("gse-lin-fwg", "xy-adaptive", "lazy-track-and-stop", "lingame", "lingame-c", "ugapeb", "ucb-e-adaptive",
         "shadavar"),
    ),
    "top_two": ("adaptive", ADAPTIVE, ("gse-lin-fwg", "top-two-lin", "lingape-greedy-narrow", "linucb")),
}  # fmt: skip


def draw(rows, policies, title, note):
    """Return a figure of accuracy against the budget with 95 % intervals, each line named at its end."""
    (ax,), ends = panels((7, 4.4), 1), []
    for number, policy in enumerate(policies):
        mine = [row for row in rows if row["policy"] == policy]
        x, y = range(len(mine)), np.array([row["accuracy"] for row in mine])
        spread = [y - [row["low"] for row in mine], [row["high"] for row in mine] - y]
        ax.errorbar(x, y, spread, **pen(number))
        ends.append((y[-1], policy, pen(number)["color"]))
    place = 1.0
    for y, policy, colour in sorted(ends, reverse=True):
        place = min(y, place)
        ax.annotate(
            policy, (1.0, y), (1.03, place), xycoords=("axes fraction", "data"), textcoords=("axes fraction", "data"),
            color=ink(colour), fontsize=7, va="center", arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.4},
            annotation_clip=False,
        )  # fmt: skip
        place -= GAP
    ax.set_xticks(range(len(BUDGETS)), BUDGETS)
    ax.set(ylim=(0, 1), xlabel="B/K", ylabel="accuracy")
    ax.set_title(title)
    ax.figure.suptitle(note, fontsize=8)
    return ax.figure


def main(replications: int = 500, seed: int = 1) -> None:
    folder = Path(__file__).parent
    for page, (world, (title, params), policies) in PAGES.items():
        one = bench.instance(world, dict(params))
        cells = [cell for budget in BUDGETS for cell in bench.grid([one], policies, budget_per_arm=budget)]
        rows = bench.run(cells, replications, seed, cache=None).table()
        draw(rows, policies, title, f"{replications} replications, seed {seed}").savefig(
            folder / f"{page}.png", dpi=100
        )
        print(page, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
