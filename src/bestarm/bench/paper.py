"""The paper's figures as data: who plays what, on which panels, in three settings.

*As printed* plays what the text says, *published code* what its code does, *best effort* what one would choose today. A
label means the same algorithm in all three; what it stands for in each is a policy of the catalog or of `published`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from bestarm.bench.grid import Cell
from bestarm.bench.published import budget_of, player
from bestarm.bench.worlds import instance
from bestarm.simulate.chunks import CHUNK

PRINTED, CODE, BEST = "as printed", "published code", "best effort"
SETTINGS = {PRINTED: "printed", CODE: "code", BEST: "best"}  # and the name of its files

GSE, FWG, WYNN, GREEDY = "GSE-Lin", "GSE-Lin-FWG", "GSE-Lin-Wynn", "GSE-Lin-Greedy"
DFORM, KEPT, ONCE = "GSE-Lin-FWG, D-optimal", "GSE-Lin-FWG, all data", "one static stage"
LOG, LOGFWG, LOGD, LOGKEPT = "GSE-Log", "GSE-Log-FWG", "GSE-Log-FWG, D-optimal", "GSE-Log-FWG, all data"
LINGAPE, LGREEDY, UCB, UCBGLM = "LinGapE", "LinGapE-Greedy", "LinUCB", "UCB-GLM"
BAYES, OD, PEACE = "BayesGap", "OD-LinBAI", "Peace"
UCBBEST = "LinUCB, best estimate"

KEEPERS = (LINGAPE, LGREEDY, UCB, UCBGLM, BAYES, PEACE)  # rivals that keep all their data in best effort
ALL_DATA = {FWG: KEPT, LOGFWG: LOGKEPT}  # what stands beside them
D_OPTIMAL = {FWG: DFORM, LOGFWG: LOGD}  # the same as printed, but for a design that reaches its optimum

MISSING = {
    (CODE, PEACE): "the code's Peace halves the number of arms, by a design whose rounding may ask for negative pulls",
    (CODE, LINGAPE): "the code's linear program asks for weights of at least 0, which basis arms cannot meet",
}


@dataclass(frozen=True)
class Panel:
    """One set of axes: what is fixed, and the budget, whole or for each arm."""

    label: str
    params: tuple[tuple[str, Any], ...] = ()
    budget: int | None = None
    per_arm: int | None = None


@dataclass(frozen=True)
class Figure:
    """A figure: accuracy of policies against a parameter (or the budget per arm), in panels, in three settings.

    `players` says what a label plays, by setting; `changed` what a setting changes in the world. `only` limits a label
    to some values of x, where larger ones would take hours, and `fewer` to one chunk of replications.
    """

    name: str
    title: str
    place: str  # in the paper
    world: str
    x: str
    values: tuple[Any, ...]
    panels: tuple[Panel, ...]
    players: Mapping[str, Mapping[str, str]]
    changed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    fewer: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    hero: str = FWG
    log: bool = False

    def cell(self, setting: str, panel: Panel, value: Any, label: str) -> Cell:
        """Return the cell of a label at `value` of x in a panel, as a setting has it."""
        params = {**dict(panel.params), **self.changed.get(setting, {})}
        per_arm = panel.per_arm
        if self.x == "B/K":
            per_arm = value
        else:
            params[self.x] = value
        budget = panel.budget if panel.budget is not None else int(per_arm or 0) * params.get("K", 16)
        text = self.players[setting][label]
        return Cell(instance(self.world, params), player(text), budget_of(text, budget))

    def shown(self, label: str) -> tuple[Any, ...]:
        """Return the values of x at which a label is run."""
        return tuple(v for v in self.values if v in self.only.get(label, self.values))

    def cells(self, fewer: bool | None = None) -> list[Cell]:
        """Return every cell of the figure once; or those with fewer replications, or the others."""
        found = {}
        for setting, players in self.players.items():
            for label in players:
                for value in self.shown(label):
                    if fewer in (None, value in self.fewer.get(label, ())):
                        cells = [self.cell(setting, panel, value, label) for panel in self.panels]
                        found.update({cell.key: cell for cell in cells})
        return list(found.values())

    def small(self) -> "Figure":
        """Return the figure with two values of x, the first and the last but one, for a quick look."""
        return replace(self, values=tuple(dict.fromkeys((self.values[0], self.values[-2:][0]))))


def replications_of(fewer: bool, replications: int) -> int:
    """Return how often a cell is run: where one run takes long, one chunk is enough."""
    return min(CHUNK, replications) if fewer else replications


def _per_arm(*budgets: int, **params: Any) -> tuple[Panel, ...]:
    return tuple(Panel(f"B/K = {b}", tuple(params.items()), per_arm=b) for b in budgets)


def _linear(bayes: str, bayes_2021: str, square: float, *more: str) -> dict[str, dict[str, str]]:
    """Return who plays in a linear figure: `square` is σ⁴, which the code has where σ² belongs; `more` are labels."""
    printed = {
        GSE: "gse-lin", FWG: "gse-lin-fwg-literal", DFORM: "gse-lin-fwg", WYNN: "gse-lin-wynn",
        GREEDY: "gse-lin-greedy", LINGAPE: "lingape", LGREEDY: "lingape-greedy", UCB: "linucb-li2010", BAYES: bayes,
        OD: "od-linbai", PEACE: "peace-fresh", ONCE: "g-optimal",
    }  # fmt: skip
    code = {
        GSE: "gse-lin-azizi2021", FWG: "gse-lin-fwg-overspent", WYNN: "gse-lin-wynn-azizi2021",
        GREEDY: "gse-lin-greedy", LGREEDY: f"lingape-greedy-azizi2021:noise_variance={square:g}",
        UCB: "linucb-azizi2021", BAYES: bayes_2021, OD: "od-linbai-overspent",
    }  # fmt: skip
    best = printed | {FWG: "gse-lin-fwg", KEPT: "gse-lin-fwg-pooled", UCB: "linucb", PEACE: "peace"}
    del best[DFORM]
    every = (GSE, FWG, DFORM, KEPT, LGREEDY, UCB, BAYES, OD, *more)
    return {
        setting: {label: text for label, text in players.items() if label in every}
        for setting, players in ((PRINTED, printed), (CODE, code), (BEST, best))
    }


def _only(players: Mapping[str, Mapping[str, str]], *labels: str) -> dict[str, dict[str, str]]:
    return {setting: {label: some[label] for label in labels if label in some} for setting, some in players.items()}


_SE = {f"SE, l = {length:g}": f"-se:length={length:g}" for length in (1e-6, 1e-3, 0.1, 1.0, 10.0, 100.0)}
_KERNELS = {
    PRINTED: {
        "linear": "bayesgap-lin", **{label: f"bayesgap{text}" for label, text in _SE.items()},
        "exponential, l = 1": "bayesgap-exp", "exponential, l = 0.1": "bayesgap-exp:length=0.1",
        "Matérn, l = 1": "bayesgap-matern",
    },
    CODE: {
        "linear": "bayesgap-azizi2021", **{label: f"bayesgap-azizi2021{text}" for label, text in _SE.items()},
        "SE, l = 1000": "bayesgap-azizi2021-se:length=1000", "Matérn, l = 10": "bayesgap-azizi2021-matern",
        "covariance": "bayesgap-azizi2021-covariance",
    },
}  # fmt: skip
_KERNELS[BEST] = _KERNELS[PRINTED]

_GLM = {
    PRINTED: {
        LOG: "gse-log", LOGFWG: "gse-log-fwg-literal", LOGD: "gse-log-fwg", GSE: "raw gse-lin",
        FWG: "raw gse-lin-fwg-literal", DFORM: "raw gse-lin-fwg", UCBGLM: "ucb-glm", BAYES: "raw bayesgap-matern",
    },
    CODE: {
        LOG: "gse-log", LOGFWG: "gse-log-fwg-overspent", GSE: "raw gse-lin", FWG: "gse-lin-fwg-overspent",
        UCBGLM: "ucb-glm-azizi2021", BAYES: "raw bayesgap-azizi2021-matern",
    },
    BEST: {
        LOG: "gse-log", LOGFWG: "gse-log-fwg", LOGKEPT: "gse-log-fwg-pooled", GSE: "gse-lin", FWG: "gse-lin-fwg",
        UCBGLM: "ucb-glm", BAYES: "bayesgap-matern",
    },
}  # fmt: skip
_ADAPTIVE = _linear("bayesgap-lin", "bayesgap-azizi2021-se", 100, WYNN, GREEDY, LINGAPE, PEACE, ONCE)
_STATIC = _linear("bayesgap-exp", "bayesgap-azizi2021-se:length=1000", 100, LINGAPE, PEACE, ONCE)
_SPHERE = _linear("bayesgap-lin", "bayesgap-azizi2021-matern", 100, WYNN, GREEDY, PEACE)
_CARS = _linear("bayesgap-exp", "bayesgap-azizi2021-se:length=1e-06", 0.01, WYNN, GREEDY)
_MOTOR = _linear("bayesgap-exp", "bayesgap-azizi2021-covariance", 0.01, WYNN, GREEDY)
_CODE_WORLD = MappingProxyType({CODE: {"variant": "published-code"}})
_ETA = {f"η = {eta:g}": f"gse-lin-fwg:eta={eta:g}" for eta in (1.5, 2, 3, 4, 8, 16)}
_ETA_PRINTED = {label: text.replace("fwg", "fwg-literal") for label, text in _ETA.items()}
_DELTA = {f"δ = {delta:g}": f"lingape:delta={delta:g}" for delta in (0.01, 0.1, 0.4, 0.5, 0.9, 0.99)}

FIGURES = {
    figure.name: figure
    for figure in (
        Figure(
            "adaptive", "Adaptive instance, d = K − 1", "8.1", "adaptive", "K", (8, 16, 32, 64), _per_arm(10, 20, 50),
            _ADAPTIVE, only={PEACE: (8, 16, 32), LINGAPE: (8, 16, 32)}, fewer={PEACE: (8, 16, 32), LINGAPE: (32,)},
            log=True,
        ),
        Figure(
            "static", "Static instance, K = d = 16", "8.2", "static", "Delta", (0.01, 0.03, 0.05, 0.1, 0.3, 0.5, 1.0),
            (Panel("B = 320", budget=320),), _STATIC, _CODE_WORLD,
            fewer={PEACE: (0.01, 0.03, 0.05, 0.1, 0.3, 0.5, 1.0)}, log=True,
        ),
        Figure(
            "randomized", "Arms on the sphere, d = 10", "8.3", "randomized", "K", (8, 16, 32, 64, 128),
            _per_arm(20, 50), _SPHERE, _CODE_WORLD, only={PEACE: (8, 16)},
            fewer={PEACE: (8, 16), GREEDY: (128,), BAYES: (128,)}, log=True,
        ),
        Figure(
            "glm", "Logistic rewards, K = 8", "8.4", "glm", "d", (5, 7, 10, 12), _per_arm(10, 20, 50, K=8), _GLM,
            _CODE_WORLD, hero=LOGFWG,
        ),
        Figure(
            "automobile", "Automobile table", "App. E", "automobile", "B/K", (10, 20, 50),
            (Panel("K = 8", (("K", 8),)), Panel("K = 16", (("K", 16),))), _CARS, _CODE_WORLD,
        ),
        Figure(
            "motor", "Electric motor table", "App. E", "motor", "B/K", (10, 20, 50),
            (Panel("K = 8", (("K", 8),)), Panel("K = 16", (("K", 16),))),
            {setting: {label: text for label, text in some.items() if label != OD} for setting, some in _MOTOR.items()},
            _CODE_WORLD,
        ),
        Figure(
            "od", "Against OD-LinBAI: arms on the sphere, d = 10, noise variance 1", "App. E", "od", "K",
            (8, 16, 32, 64), tuple(Panel(f"B = {b}", budget=b) for b in (100, 200, 500)),
            _only(_SPHERE, GSE, FWG, DFORM, OD), _CODE_WORLD, log=True,
        ),
        Figure(
            "corner", "The corner case, d = 2", "App. E", "corner", "K", (3, 6, 12, 24), (Panel("B = 25", budget=25),),
            _only(_ADAPTIVE, GSE, FWG, DFORM, OD), log=True,
        ),
        Figure(
            "eta", "Other η, adaptive instance", "App. E", "adaptive", "K", (16, 32), _per_arm(10, 20, 50),
            {PRINTED: _ETA_PRINTED, BEST: _ETA}, hero="η = 2", log=True,
        ),
        Figure(
            "kernels", "BayesGap with ten kernels, adaptive instance", "App. E", "adaptive", "K", (16,),
            _per_arm(10, 20, 50), _KERNELS, hero="linear", log=True,
        ),
        Figure(
            "kernels-sphere", "BayesGap with ten kernels, arms on the sphere", "App. E", "randomized", "K", (16,),
            _per_arm(20, 50), _KERNELS, _CODE_WORLD, hero="linear", log=True,
        ),
        Figure(
            "delta", "LinGapE with other δ, adaptive instance", "8", "adaptive", "K", (8,), _per_arm(10, 20, 50),
            {PRINTED: _DELTA, BEST: _DELTA}, hero="δ = 0.99", log=True,
        ),
        Figure(
            "pulled", "The most pulled arm or the best estimate", "App. F", "static", "Delta", (0.1, 0.3, 1.0),
            (Panel("B = 320", budget=320),),
            {BEST: {UCB: "linucb", UCBBEST: "linucb-best-estimate"}}, hero=UCB, log=True,
        ),
    )
}  # fmt: skip

LINEAR = ("adaptive", "static", "randomized", "automobile", "motor", "od", "corner")  # the figures of linear rewards
