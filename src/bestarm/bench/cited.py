"""Systems the paper names and does not run: which of them play on which of its figures, and which do not, and why."""

from dataclasses import replace

from bestarm.bench.paper import BEST, FIGURES, Figure

PANEL = "named in the paper, not run by it"
MOST_ARMS = 32  # where the figures go further, this panel does not: LinGame-C and XY-adaptive look at pairs

PLAIN = ("ucb-e", "ucb-e-adaptive", "ugapeb", "shvar", "shadavar")
LINEAR = (
    "xy-adaptive:delta=0.01",  # the only one whose pulls depend on δ
    "xy-adaptive:delta=0.05",
    "xy-adaptive:delta=0.4",
    "lazy-track-and-stop",
    "lingame",
    "lingame-c",
)

CITED: dict[str, tuple[str, ...]] = {
    "adaptive": (*PLAIN, *LINEAR),
    "static": (*PLAIN, *LINEAR),
    "randomized": (*PLAIN, *LINEAR),
    "glm": (*PLAIN, "glm-ucb"),
    "automobile": (*PLAIN, *LINEAR),
    "motor": (*PLAIN, *LINEAR),
}

LEFT_OUT = {
    "ALBA (Tao, Blanco and Zhou 2018)": "fixed confidence, in rounds so long that 50 pulls an arm complete none to two",
    "Almost Tracking (Komiyama, Jang and Honda 2026)": "its allocation is not known to us, and we do not guess it",
    "Box Thirding (Hwang and Park 2026)": "known at second hand only: order of boxes and last choice are not stated",
}


def cited(figure: Figure) -> Figure:
    """Return the second panel of a figure: the systems only cited, beside GSE, at K = 32 at most."""
    values = tuple(v for v in figure.values if figure.x != "K" or v <= MOST_ARMS)
    beside = {figure.hero: figure.players[BEST][figure.hero]}
    players = {BEST: beside | {name: name for name in CITED[figure.name]}}
    return replace(figure, title=f"{figure.title}: {PANEL}", players=players, values=values, only={}, fewer={})


def cited_figures() -> dict[str, Figure]:
    """Return the second panels of all figures that have one."""
    return {name: cited(FIGURES[name]) for name in CITED}
