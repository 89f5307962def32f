"""The paper's figures as data: what is run, against what it is drawn, in which panels."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bestarm.bench.grid import Cell
from bestarm.bench.worlds import instance
from bestarm.simulate.policies import PolicyRef

G_DESIGNS = ("gse-lin", "gse-lin-fwg", "gse-lin-wynn", "gse-lin-greedy")


@dataclass(frozen=True)
class Panel:
    """One set of axes: what is fixed, and the budget, whole or for each arm."""

    label: str
    params: tuple[tuple[str, Any], ...] = ()
    budget: int | None = None
    per_arm: int | None = None


@dataclass(frozen=True)
class Figure:
    """A figure: accuracy of policies against a parameter (or the budget per arm), in panels.

    `only` limits a policy to some values of x, where larger ones would take hours.
    """

    name: str
    title: str
    world: str
    x: str
    values: tuple[Any, ...]
    panels: tuple[Panel, ...]
    policies: tuple[str, ...]
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    log: bool = False

    def cell(self, panel: Panel, value: Any, policy: str) -> Cell:
        """Return the cell of a policy at `value` of x in a panel."""
        params = dict(panel.params)
        per_arm = panel.per_arm
        if self.x == "B/K":
            per_arm = value
        else:
            params[self.x] = value
        one = instance(self.world, params)
        arms = params.get("K", 16)
        budget = panel.budget if panel.budget is not None else int(per_arm or 0) * arms
        return Cell(one, PolicyRef.parse(policy), budget)

    def shown(self, policy: str) -> tuple[Any, ...]:
        """Return the values of x at which a policy is run."""
        return tuple(v for v in self.values if v in self.only.get(policy, self.values))

    def cells(self) -> list[Cell]:
        """Return every cell of the figure."""
        return [self.cell(p, v, policy) for p in self.panels for policy in self.policies for v in self.shown(policy)]

    def small(self) -> "Figure":
        """Return the figure with two values of x, the first and the last but one, for a quick look."""
        return replace(self, values=(self.values[0], self.values[-2]))


def _per_arm(*budgets: int, **params: Any) -> tuple[Panel, ...]:
    return tuple(Panel(f"B/K = {b}", tuple(params.items()), per_arm=b) for b in budgets)


FIGURES = {
    figure.name: figure
    for figure in (
        Figure(
            "adaptive", "Adaptive instance, d = K − 1", "adaptive", "K", (8, 16, 32, 64), _per_arm(10, 20, 50),
            (*G_DESIGNS, "gse-lin-fwg-literal", "g-optimal", "lingape", "lingape-greedy", "linucb", "bayesgap-lin",
             "od-linbai", "peace-rho", "peace"),
            only={"peace": (8, 16), "lingape": (8, 16, 32), "peace-rho": (8, 16, 32)}, log=True,
        ),
        Figure(
            "static", "Static instance, K = d = 16", "static", "Delta", (0.01, 0.03, 0.05, 0.1, 0.3, 0.5, 1.0),
            (Panel("B = 320, noise variance 1", budget=320),
             Panel("B = 320, noise variance 10 (published code)", (("variant", "published-code"),), budget=320)),
            ("gse-lin", "gse-lin-fwg", "lingape-greedy", "linucb", "bayesgap-exp", "od-linbai", "peace"), log=True,
        ),
        Figure(
            "randomized", "Arms on the sphere, d = 10", "randomized", "K", (8, 16, 32, 64, 128), _per_arm(20, 50),
            (*G_DESIGNS, "lingape-greedy", "linucb", "bayesgap-lin", "od-linbai", "peace"),
            only={"peace": (8, 16)}, log=True,
        ),
        Figure(
            "glm", "Logistic rewards, K = 8", "glm", "d", (5, 7, 10, 12), _per_arm(10, 20, 50, K=8),
            ("gse-log", "gse-log-fwg", "gse-lin", "gse-lin-fwg", "ucb-glm", "bayesgap-matern"),
        ),
        Figure(
            "automobile", "Automobile table", "automobile", "B/K", (10, 20, 50),
            (Panel("K = 8", (("K", 8),)), Panel("K = 16", (("K", 16),))),
            (*G_DESIGNS, "lingape-greedy", "linucb", "bayesgap-exp", "od-linbai"),
        ),
        Figure(
            "motor", "Electric motor table", "motor", "B/K", (10, 20, 50),
            (Panel("K = 8, temperature", (("K", 8),)), Panel("K = 16, temperature", (("K", 16),)),
             Panel("K = 8, speed (published code)", (("K", 8), ("target", "motor_speed"))),
             Panel("K = 16, speed (published code)", (("K", 16), ("target", "motor_speed")))),
            ("gse-lin", "gse-lin-fwg", "gse-lin-wynn", "lingape-greedy", "linucb", "bayesgap-exp"),
        ),
        Figure(
            "od", "Against OD-LinBAI: arms on the sphere, d = 10, noise variance 1", "od", "K", (8, 16, 32, 64),
            tuple(Panel(f"B = {b}", budget=b) for b in (100, 200, 500)),
            ("gse-lin", "gse-lin-fwg", "od-linbai"), log=True,
        ),
        Figure(
            "corner", "The corner case, d = 2", "corner", "K", (3, 6, 12, 24), (Panel("B = 25", budget=25),),
            ("gse-lin", "gse-lin-fwg", "od-linbai"), log=True,
        ),
    )
}  # fmt: skip
