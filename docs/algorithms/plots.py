"""Draw the plot of each page: `make docs`. Accuracy against budget per arm, with 95 % intervals."""

import sys
from pathlib import Path

from bestarm import bench
from bestarm.bench import figures
from bestarm.bench.paper import Figure, Panel

BUDGETS = (5, 10, 20, 50)
SPHERE = Panel("sphere, K = 32, d = 10, noise variance 1", (("K", 32), ("variance", 1.0)))
ADAPTIVE = Panel("adaptive, K = 16, noise variance 10", (("K", 16),))
GLM = Panel("logistic, K = 8, d = 5", (("K", 8), ("d", 5)))

PAGES = {
    "gse": ("randomized", SPHERE, ("gse-lin", "gse-lin-fwg", "gse-lin-xy-pooled", "gse-means", "uniform")),
    "od_linbai": ("randomized", SPHERE, ("gse-lin-fwg", "od-linbai", "od-linbai-spend", "gse-lin-fwg-azizi2021")),
    "peace": ("adaptive", ADAPTIVE, ("gse-lin-fwg", "peace", "peace-rho", "linear-exploration")),
    "p1_rage": ("randomized", SPHERE, ("gse-lin-fwg", "p1-rage", "g-optimal", "linear-exploration")),
    "classics": (
        "static",
        Panel("static, K = 16, gap 1, noise variance 1", (("Delta", 1.0),)),
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


def main(replications: int = 500, seed: int = 1) -> None:
    folder = Path(__file__).parent
    for page, (world, panel, policies) in PAGES.items():
        figure = Figure(page, page, world, "B/K", BUDGETS, (panel,), policies)
        results = bench.run(figure.cells(), replications, seed, cache=None)
        canvas = figures.draw(figure, results)
        canvas.set_size_inches(7, 4.4)
        canvas.suptitle(f"{replications} replications, seed {seed}", fontsize=8)
        canvas.savefig(folder / f"{page}.png", dpi=100)
        print(page, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
