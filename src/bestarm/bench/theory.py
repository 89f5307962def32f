"""The sentences of the theory and of the designs, computed: bounds on a grid of K, d, B and Δ, designs, first stages.

As printed means the formulas as printed, best effort those that the proofs give. The published code has none of them.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from bestarm import bounds, instances
from bestarm.bench.evidence import FAILS, HOLDS, NOISE, Cannot, Found, Lead, SettingView
from bestarm.bench.grid import Cell
from bestarm.bench.paper import BEST, CODE, FWG, OD, PRINTED
from bestarm.bench.published import budget_of, player
from bestarm.bench.runner import world
from bestarm.bounds import Bound
from bestarm.core import policy_of
from bestarm.designs.ascent import Ascent
from bestarm.designs.starts import Multiplicative
from bestarm.linalg import Candidates
from bestarm.playing import Round, played
from bestarm.policies.named import literal
from bestarm.policies.schedules import EvenStages, YangTan
from bestarm.simulate.chunks import CHUNK

DIMENSIONS, ARMS, BUDGETS = (4, 8, 16, 32, 64), (16, 64, 256, 1024, 16384), (10**3, 10**4, 10**5, 10**6)
GAP = 0.5
NO_BOUNDS = "the published code has no bounds"


@dataclass(frozen=True)
class Point:
    """K arms with gaps Δ in d dimensions, and a budget."""

    arms: int
    dimension: int
    budget: int

    def __str__(self) -> str:
        return f"K = {self.arms}, d = {self.dimension}, B = {self.budget:g}"


def points(wanted: Callable[[Point], bool] = lambda point: True) -> Iterator[Point]:
    """Give the points of the grid with d ≤ K, and those wanted of them."""
    grid = (Point(*one) for one in product(ARMS, DIMENSIONS, BUDGETS))
    return (point for point in grid if point.dimension <= point.arms and wanted(point))


def ours(setting: str, point: Point) -> Bound:
    """Return GSE's bound, as printed or as proved."""
    make = bounds.gse_as_printed if setting == PRINTED else bounds.gse
    return make(point.arms, point.dimension, point.budget, GAP)


@dataclass(frozen=True)
class Everywhere:
    """`holds` at every point of the grid that is wanted."""

    what: str
    holds: Callable[[str, Point], bool]
    wanted: Callable[[Point], bool] = lambda point: True

    def __call__(self, view: SettingView) -> Found:
        if view.setting == CODE:
            raise Cannot(NO_BOUNDS)
        grid = list(points(self.wanted))
        wrong = [point for point in grid if not self.holds(view.setting, point)]
        told = f"{self.what} at {len(grid) - len(wrong)} of {len(grid)} points (K, d, B) with Δ = {GAP:g}"
        return Found(FAILS if wrong else HOLDS, told + (f"; not at {wrong[0]}" if wrong else ""))


def tighter(rival: Callable[[Point], Bound]) -> Callable[[str, Point], bool]:
    """Return whether GSE's bound is below a rival's."""
    return lambda setting, point: ours(setting, point).log < rival(point).log


def bayesgap(point: Point) -> Bound:
    """Return BayesGap's bound as appendix D simplifies it."""
    return bounds.bayesgap_simplified(point.arms, point.budget, GAP)


def peace(point: Point) -> Bound:
    """Return Peace's bound by the second reading, with c' = 1."""
    return bounds.peace_g_optimal(point.arms, point.dimension, point.budget, GAP)


def od(point: Point) -> Bound:
    """Return OD-LinBAI's bound with equal gaps."""
    return bounds.od_linbai([GAP] * max(1, point.dimension - 1), point.arms, point.dimension, point.budget)


def linucb(point: Point) -> Bound:
    """Return the order appendix F derives for LinUCB."""
    return bounds.linucb(point.dimension, point.budget, GAP)


def peace_crosses(setting: str, point: Point) -> bool:
    """Return whether Peace's first bound is the smaller one exactly for K > exp(exp(ln d ln ln d)), width 4d."""
    one = bounds.peace_claimed(point.dimension, point.budget, GAP, 4.0 * point.dimension)
    above = math.log(point.arms) > bounds.log_peace_crossover(point.dimension)
    return above == (one.log < ours(setting, point).log)


def moves_as_said(setting: str, point: Point) -> bool:
    """Return whether GSE's bound is tighter for a larger B, looser for a larger K and d."""
    more = replace(point, budget=2 * point.budget), replace(point, arms=4 * point.arms)
    budget, arms, dimension = (ours(setting, one).log for one in (*more, replace(point, dimension=2 * point.dimension)))
    here = ours(setting, point).log
    return budget < here < arms and here < dimension


def near_lower(setting: str, point: Point) -> bool:
    """Return whether the exponent is that of the lower bound for K = d up to 8 s, s the number of stages."""
    lower = bounds.mab_lower([GAP] * (point.arms - 1), point.budget).log
    stages = len(EvenStages().stages(point.arms, point.budget, lambda: point.dimension))
    exponent = ours(setting, point).log - math.log(4 * stages)
    return exponent <= lower / (8 * stages) * 0.9


Path: TypeAlias = Callable[[int], tuple[float, float, float]]  # of a step: d, q and B


def ratio(constant: float, dimension: float, power: float, budget: float) -> float:
    """Return the logarithm of GSE's bound over OD-LinBAI's as simplified, K = d^q: K itself may not fit a float."""
    log_d = math.log2(dimension)
    gse = math.log(4 * power * log_d) - budget * GAP**2 / (constant * dimension * power * log_d)
    first = math.log(4) + (power - 1) * math.log(dimension)
    factor = first + math.log1p(3 * log_d * math.exp(-min(first, 700)))
    return gse - factor - (dimension**2 - budget) * GAP**2 / (32 * dimension * max(1.0, log_d))


@dataclass(frozen=True)
class CornerCase:
    """GSE's bound over OD-LinBAI's goes to 0 along a path, or to infinity if not `below`."""

    path: Path
    below: bool = True

    def __call__(self, view: SettingView) -> Found:
        if view.setting == CODE:
            raise Cannot(NO_BOUNDS)
        constant = 4 if view.setting == PRINTED else 8
        logs = [ratio(constant, *self.path(2**step)) for step in range(2, 13)]
        sign = 1 if self.below else -1
        far = sign * logs[-1] < sign * logs[-3] < 0
        told = f"logarithm of the ratio along the path: {logs[0]:.3g}, .., {logs[-1]:.3g}"
        return Found(HOLDS if far else FAILS, told)


def glm_falls(view: SettingView) -> Found:
    """Decide whether the bound derived for UCB-GLM decreases in B."""
    if view.setting == CODE:
        raise Cannot(NO_BOUNDS)
    logs = [bounds.ucb_glm(8, budget, GAP, 0.2, 0.2).log for budget in BUDGETS]
    told = f"its logarithm at B = 1000 and 10⁶: {logs[0]:.1f}, {logs[-1]:.1f}"
    return Found(HOLDS if logs[-1] < logs[0] else FAILS, told)


# ------------------------------------------------------------------------------------------------- designs


def reaches_optimum(view: SettingView) -> Found:
    """Decide whether Algorithm 2 reaches max leverage d, within 1 %, on the adaptive instance and on the sphere."""
    solver = Ascent(start=Multiplicative()) if view.setting == BEST else literal
    told, worst = [], 0.0
    sets = {"adaptive, K = 16": instances.adaptive(16), "sphere, K = 32": instances.randomized(32, rng=1)}
    for name, bandit in sets.items():
        arms = Candidates.of(bandit.features)
        weights = solver.weights(arms)
        x = arms.coordinates
        inverse = np.linalg.pinv(x.T @ (x * weights[:, None]))
        ratio = float(np.max(np.vecdot(x @ inverse, x))) / np.linalg.matrix_rank(x)
        worst = max(worst, ratio)
        told.append(f"{name} {ratio:.3f}")
    return Found(HOLDS if worst < 1.0101 else FAILS, "largest leverage over d: " + "; ".join(told))


def half_on_the_other(view: SettingView) -> Found:
    """Decide whether a G-optimal design gives e_2 half the pulls, with 20 arms near e_1."""
    x = np.column_stack([1 + np.sqrt(0.001) * np.random.default_rng(1).standard_normal(20), np.zeros(20)])
    weights = Ascent(start=Multiplicative()).weights(Candidates.of(np.vstack([x, [0.0, 1.0]])))
    return Found(HOLDS if abs(weights[-1] - 0.5) < 0.01 else FAILS, f"its weight is {weights[-1]:.3f}")


def shares_evenly(view: SettingView) -> Found:
    """Decide whether GSE pulls the arms still in equally often, in every stage on the static instance."""
    text = view.figure("static").players[view.setting][FWG]
    gaps = []

    def watch(one: Round) -> None:
        gaps.append(int(np.ptp(one.pulls.times, axis=-1).max()))

    bandit = instances.static(gap=0.5, replications=50)
    played(player(text).build(), bandit, budget_of(text, 320), 1, watch)
    told = f"largest difference between two arms still in, by stage: {', '.join(map(str, gaps))} pulls"
    return Found(HOLDS if max(gaps) <= 1 else FAILS, told)


def as_many_stages(view: SettingView) -> Found:
    """Decide whether OD-LinBAI and GSE have the same number of stages where d = K − 1."""
    counts = {}
    for arms in (8, 16, 32, 64):
        rounds = YangTan().shares(arms, arms - 1, 20 * arms)
        counts[arms] = (len(EvenStages().stages(arms, 20 * arms, lambda: 0)), len(rounds))
    told = ", ".join(f"K = {arms}: {a} and {b}" for arms, (a, b) in counts.items())
    return Found(HOLDS if all(a == b for a, b in counts.values()) else FAILS, told)


# ------------------------------------------------------------------------------------------- first stages


@cache
def lost_first(cell: Cell, seed: int, number: int) -> Any:
    """Return whether the best arm is gone after the first stage, in each replication of a chunk."""
    truth, pulled = world(cell, seed, number, CHUNK)
    policy = cell.policy.build()
    gone: list[Any] = []
    everyone = np.broadcast_to(np.arange(pulled.features.shape[-2]), pulled.features.shape[:-1])
    best = np.stack([truth.correct(arm) for arm in np.moveaxis(everyone, -1, 0)], axis=-1)

    def watch(one: Round) -> None:
        if not gone:
            active = policy_of(policy).describe(one.after).active
            gone.append(~np.any(active & best, axis=-1))

    played(policy, pulled, cell.budget, seed, watch)
    return gone[0].astype(float)


@dataclass(frozen=True)
class LosesFirst:
    """OD-LinBAI loses the best arm in its first stage more often than GSE does in its own."""

    name: str = "od"
    panel: int = 0
    value: int = 64

    def __call__(self, view: SettingView) -> Found:
        figure, results = view.figure(self.name), view.results[self.name]
        lost = {}
        for label in (OD, FWG):
            cell = figure.cell(view.setting, figure.panels[self.panel], self.value, view.label(self.name, label))
            chunks = range(-(-results.replications // CHUNK))
            lost[label] = np.concatenate([lost_first(cell, results.seed, n) for n in chunks])
        gap = lost[OD] - lost[FWG]
        lead = Lead(float(gap.mean()), float(gap.std(ddof=1) / len(gap) ** 0.5), len(gap), 1, view.reach)
        told = f"lost in the first stage: {OD} {lost[OD].mean():.3f}, {FWG} {lost[FWG].mean():.3f}; difference {lead}"
        return Found(HOLDS if lead.low > 0 else FAILS if lead.high < 0 else NOISE, told, (lead,))
