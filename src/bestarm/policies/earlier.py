"""Parts of earlier versions, by the settings they had then, as what they are now: so logs written then are read."""

from dataclasses import replace
from typing import Any

from bestarm.designs.ascent import Ascent, Step
from bestarm.designs.newton import Newton
from bestarm.designs.protocols import Design, Weights
from bestarm.designs.spread import Equal
from bestarm.designs.starts import Even, KumarYildirim, Multiplicative, Start
from bestarm.kernels import Kernel, Matern
from bestarm.models.law import Law, Logistic
from bestarm.models.linear import Linear
from bestarm.models.means import Means
from bestarm.models.protocols import Model
from bestarm.policies.choosers import Chooser, GreedyArm
from bestarm.policies.classics import OCBA, BestRemaining, ContinuousRejection, NoPrior, Rival, SampleVariances, Scatter
from bestarm.policies.elimination import AllStages, Elimination, Measure, StageMemory, Survivors, ThisStage
from bestarm.policies.likelihood import MaximumLikelihood
from bestarm.policies.posteriors import LinearPrior, RidgePrior
from bestarm.policies.process import FittedProcess
from bestarm.policies.radii import Confidence, Deviation, Hoffman, IntervalWidth, Li2017, OfNoise, Radius
from bestarm.policies.rules import (
    UCB,
    BayesGap,
    Challenger,
    Closest,
    LinGapE,
    RandomUntil,
    SmallestBound,
    Thompson,
    TopTwo,
)
from bestarm.policies.schedules import EvenStages, Leftover, Rejects, Surplus, ToLastStages, Unspent
from bestarm.policies.sequential import (
    BestEstimate,
    ByDesign,
    EachIfCheap,
    EachOnce,
    EachSeveral,
    Final,
    FirstPulls,
    MostPulled,
    Prior,
    RandomShare,
    RandomSubset,
    Sequential,
)


def wolfe_atwood(tolerance: float = 1e-2, start: Start = KumarYildirim(), limit: int = 100_000) -> Ascent:
    """Return the vertex exchange with away steps, which was a loop of its own."""
    return Ascent(start=start, tolerance=tolerance, limit=limit)


def active_set(tolerance: float = 1e-2) -> Ascent:
    """Return Newton steps over arms in memory, which took the way of a long table."""
    return Ascent(Newton(), Multiplicative(), tolerance)


def vertex_direction(step: Step, iterations: int = 1000, tolerance: float = 1e-2) -> Ascent:
    """Return the vertex-direction methods, which were a loop of their own from the uniform design."""
    return Ascent(step, Even(), tolerance, iterations)


def elimination(
    model: Model,
    design: Design,
    eta: float = 2.0,
    memory: StageMemory = ThisStage(),
    measure: Measure = Survivors(),
    leftover: Leftover = ToLastStages(),
) -> Elimination:
    """Return GSE, whose schedule was two settings of its own."""
    return Elimination(model, design, EvenStages(eta, leftover), memory, measure)


def ceil_elimination(plan: Any, design: Weights, surplus: Surplus = Unspent(), model: Model = Linear()) -> Elimination:
    """Return OD-LinBAI and the published code of GSE."""
    return Elimination(model, design, replace(plan, surplus=surplus))


def successive_rejects() -> Elimination:
    """Return successive rejects."""
    return Elimination(Means(), Equal(), Rejects(), AllStages())


def continuous_rejects(rival: Rival) -> Sequential:
    """Return continuous rejects."""
    return Sequential(ContinuousRejection(rival), NoPrior(), RandomSubset(), BestRemaining())


def ocba(first: int = 5, scatter: Scatter = SampleVariances(), answer: Final = BestEstimate()) -> Sequential:
    """Return OCBA."""
    return Sequential(OCBA(scatter), NoPrior(), EachSeveral(first), answer)


def bayesgap(
    prior: Prior = LinearPrior(),
    epsilon: float = 1e-3,
    first: FirstPulls = EachIfCheap(),
    confidence: Confidence = Hoffman(),
    noise_variance: float | None = None,
) -> Sequential:
    """Return BayesGap."""
    return Sequential(BayesGap(epsilon, confidence, noise_variance), prior, first, SmallestBound())


def lingape(
    chooser: Chooser = GreedyArm(),
    delta: float = 0.99,
    width: float = 1.0,
    ridge: float = 1.0,
    bound: float = 1.0,
    noise_variance: float | None = None,
) -> Sequential:
    """Return LinGapE."""
    return Sequential(LinGapE(chooser, delta, width, bound, noise_variance), RidgePrior(ridge), EachOnce())


def linucb(
    prior: Prior = LinearPrior(),
    radius: Radius = OfNoise(),
    answer: Final = MostPulled(),
    width: IntervalWidth = Deviation(),
    noise_variance: float | None = None,
) -> Sequential:
    """Return LinUCB."""
    return Sequential(UCB(radius, width, noise_variance), prior, final=answer)


def ucb_glm(
    link: Law = Logistic(),
    radius: Radius = Li2017(),
    exploration: Any = RandomUntil(),
    answer: Final = MostPulled(),
    width: IntervalWidth = Deviation(),
    ridge: float = 1e-8,
    steps: int = 3,
    noise_variance: float | None = None,
) -> Sequential:
    """Return UCB-GLM, which began by random arms or by each arm once."""
    rule, prior = UCB(radius, width, noise_variance), MaximumLikelihood(link, ridge, steps)
    if exploration == EachOnce():
        return Sequential(rule, prior, EachOnce(), answer)
    return Sequential(replace(exploration, then=rule), prior, final=answer)


def top_two(
    prior: Prior = LinearPrior(0.3),
    share: float = 0.2,
    design: Design = ByDesign().design,
    challenger: Challenger = Closest(),
    answer: Final = BestEstimate(),
) -> Sequential:
    """Return the linear top-two."""
    return Sequential(TopTwo(challenger), prior, ByDesign(share, design), answer)


def thompson(kernel: Kernel = Matern(2.5), share: float = 0.2) -> Sequential:
    """Return Thompson sampling."""
    return Sequential(Thompson(), FittedProcess(kernel), RandomShare(share))
