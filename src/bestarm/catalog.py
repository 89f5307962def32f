"""Name -> policy: the only list of algorithm names."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bestarm.core import Policy
from bestarm.designs.blend import WithTargets
from bestarm.designs.directions import EachPair
from bestarm.designs.greedy import Greedy
from bestarm.designs.many import BySize, Sparse
from bestarm.designs.optimal import Multiplicative, WolfeAtwood
from bestarm.designs.protocols import Rounded
from bestarm.designs.rounding import AutoRound
from bestarm.designs.spread import Clustered, Equal, Forced, Uniform
from bestarm.designs.transductive import Transductive
from bestarm.designs.trim import Trimmed
from bestarm.designs.vertex import Fedorov, LineSearch, OpenLoop, VertexDirection, Wynn
from bestarm.designs.width import GaussianWidth, WorstPair
from bestarm.embeddings import PCA, KernelFeatures
from bestarm.errors import UnknownNameError
from bestarm.kernels import Exponential, Matern, SquaredExponential
from bestarm.models.any_regressor import AnyRegressor
from bestarm.models.glm import GLM, Logistic, Poisson
from bestarm.models.linear import Linear
from bestarm.models.means import Means
from bestarm.models.weighed import Weighed
from bestarm.policies.auto import Auto
from bestarm.policies.bayesgap import Azizi2021, BayesGap
from bestarm.policies.belief import KernelPrior, LinearPrior, SeparatePrior
from bestarm.policies.classics import AverageOfOthers, ContinuousRejects, WorstOfOthers
from bestarm.policies.elimination import AllArms, AllStages, Elimination, ThisStage
from bestarm.policies.embedded import Embedded
from bestarm.policies.lingape import LeastRatio, LinGapE
from bestarm.policies.ocba import OCBA
from bestarm.policies.p1_rage import P1Rage
from bestarm.policies.peace import Exact, Official, Peace
from bestarm.policies.rules import EachOnce, Fixed, Variance
from bestarm.policies.schedules import (
    Dropped,
    EvenStages,
    FloorHalving,
    Rejects,
    ToLastRound,
    ToLastStage,
    YangTan,
)
from bestarm.policies.thompson import Thompson
from bestarm.policies.top_two import TopTwo
from bestarm.policies.ucb import UCBGLM, LinUCB, Once
from bestarm.spec import changed

fwg = BySize(Rounded(WolfeAtwood(start=Multiplicative()), AutoRound()), Sparse())
literal = VertexDirection(LineSearch(), iterations=100, tolerance=0.0)
fwg_literal = Rounded(literal, AutoRound())
trimmed = Trimmed(WolfeAtwood())
wynn = Rounded(VertexDirection(Wynn()), AutoRound())
fedorov = Rounded(VertexDirection(Fedorov()), AutoRound())
open_loop = Rounded(VertexDirection(OpenLoop()), AutoRound())
xy = Rounded(Transductive(), AutoRound())
static = EvenStages(eta=float("inf"))
forest = AnyRegressor("sklearn.ensemble.RandomForestRegressor", (("n_estimators", 50),))


@dataclass(frozen=True)
class Entry:
    """A named policy and what it is, in one line."""

    policy: Policy[Any]
    about: str
    binary: bool = False  # models rewards 0 and 1, and no others
    either: bool = False  # sees for itself whether rewards are 0 and 1, and models them as such

    @property
    def centred(self) -> bool:
        """Whether rewards 0 and 1 are lowered by a half in benchmarks, for a linear model without intercept."""
        return not (self.binary or self.either)


ENTRIES: dict[str, Entry] = {
    "auto": Entry(
        Auto(), "the default: learns from the rewards how much structure to trust; pulls what tells most", either=True
    ),
    "gse-lin": Entry(Elimination(Linear(), Uniform()), "GSE, linear model, uniform exploration"),
    "gse-lin-fwg": Entry(Elimination(Linear(), fwg), "GSE, linear model, G-optimal exploration"),
    "gse-lin-fwg-literal": Entry(
        Elimination(Linear(), fwg_literal, EvenStages(leftover=Dropped())),
        "GSE with Algorithm 2 as printed, which stalls",
    ),
    "gse-lin-wynn": Entry(Elimination(Linear(), wynn), "GSE, linear model, Wynn's G-optimal design"),
    "gse-lin-fedorov": Entry(Elimination(Linear(), fedorov), "GSE, linear model, Fedorov's design"),
    "gse-lin-open-loop": Entry(Elimination(Linear(), open_loop), "GSE, linear model, Frank-Wolfe without line search"),
    "gse-lin-greedy": Entry(Elimination(Linear(), Greedy()), "GSE, linear model, Soare's greedy G allocation"),
    "gse-lin-greedy-xy": Entry(
        Elimination(Linear(), Greedy(EachPair())), "GSE, linear model, Soare's greedy XY allocation"
    ),
    "gse-lin-xy": Entry(Elimination(Linear(), xy), "GSE, linear model, XY design on the survivors"),
    "gse-lin-xy-all": Entry(
        Elimination(Linear(), xy, measure=AllArms()), "GSE, linear model, XY design, eliminated arms may be measured"
    ),
    "gse-lin-xy-pooled": Entry(
        Elimination(Linear(), xy, measure=AllArms(), memory=AllStages()), "the same, fitted to the data of all stages"
    ),
    "gse-lin-fwg-pooled": Entry(
        Elimination(Linear(), fwg, memory=AllStages()), "gse-lin-fwg, fitted to the data of all stages"
    ),
    "gse-auto": Entry(
        Elimination(Weighed(), WithTargets(xy), measure=AllArms(), memory=AllStages()),
        "GSE that learns how much structure to trust: all data, any arm measurable, half the pulls on survivors",
    ),
    "gse-lin-cluster": Entry(Elimination(Linear(), Clustered()), "GSE, linear model, equal budget for each cluster"),
    "gse-log": Entry(Elimination(GLM(Logistic()), Uniform()), "GSE, logistic model, uniform exploration", binary=True),
    "gse-log-fwg": Entry(Elimination(GLM(Logistic()), fwg), "GSE, logistic model, G-optimal exploration", binary=True),
    "gse-log-fwg-forced": Entry(
        Elimination(GLM(Logistic()), Forced(fwg)),
        "gse-log-fwg with d forced pulls a stage, which bound c_min",
        binary=True,
    ),
    "gse-poi-fwg": Entry(Elimination(GLM(Poisson()), fwg), "GSE, Poisson model, G-optimal exploration"),
    "gse-means": Entry(Elimination(Means(), Uniform()), "GSE without structure: halving on sample means"),
    "gse-forest": Entry(Elimination(forest, Clustered()), "GSE, random forest, clustered exploration"),
    "gse-pca-fwg": Entry(Embedded(PCA(5), Elimination(Linear(), fwg)), "gse-lin-fwg on five principal components"),
    "gse-kernel-fwg": Entry(
        Embedded(KernelFeatures(Matern(2.5), 10), Elimination(Linear(), fwg)),
        "gse-lin-fwg on ten features of a Matérn kernel",
    ),
    "g-optimal": Entry(
        Elimination(Linear(), fwg, static),
        "one static stage: a G-optimal design, then the best estimate",
    ),
    "od-linbai": Entry(
        Elimination(Linear(), trimmed, YangTan()), "OD-LinBAI: G-optimal rounds, the first leaves d/2 arms"
    ),
    "od-linbai-spend": Entry(
        Elimination(Linear(), trimmed, YangTan(ToLastRound())), "OD-LinBAI, what rounding leaves goes to the last round"
    ),
    "peace": Entry(Peace(GaussianWidth(), Official(), AllStages()), "Peace: each epoch halves the Gaussian width"),
    "peace-rho": Entry(Peace(WorstPair(), Exact(), ThisStage()), "Peace with the worst pair in place of the width"),
    "linear-exploration": Entry(
        Elimination(Linear(), xy, measure=AllArms()), "LinearExploration: halving, XY design over all arms"
    ),
    "p1-rage": Entry(P1Rage(), "P1-RAGE: random pulls, inverse propensity, half G half XY designs"),
    "sequential-halving": Entry(
        Elimination(Means(), Equal(), EvenStages(leftover=Dropped())), "sequential halving on the means of each round"
    ),
    "sequential-halving-pooled": Entry(
        Elimination(Means(), Equal(), EvenStages(leftover=ToLastStage()), AllStages()),
        "sequential halving on the means of all rounds",
    ),
    "successive-rejects": Entry(
        Elimination(Means(), Equal(), Rejects(), AllStages()),
        "successive rejects: the worst mean leaves after each phase",
    ),
    "continuous-rejects-a": Entry(
        ContinuousRejects(AverageOfOthers()), "continuous rejects, worst against the average of the others"
    ),
    "continuous-rejects-c": Entry(
        ContinuousRejects(WorstOfOthers()), "continuous rejects, worst against the second worst"
    ),
    "gse-lin-fwg-azizi2021": Entry(
        Elimination(Linear(), literal, FloorHalving()), "GSE as its published code rounds, within the budget"
    ),
    "bayesgap-lin": Entry(BayesGap(), "BayesGap, linear model"),
    "bayesgap-exp": Entry(BayesGap(KernelPrior(Exponential())), "BayesGap, exponential kernel"),
    "bayesgap-se": Entry(BayesGap(KernelPrior(SquaredExponential())), "BayesGap, squared exponential kernel"),
    "bayesgap-matern": Entry(BayesGap(KernelPrior(Matern(1.5))), "BayesGap, Matérn kernel"),
    "bayesgap-azizi2021": Entry(
        BayesGap(LinearPrior(2500.0), epsilon=0.0, first=EachOnce(), confidence=Azizi2021()),
        "BayesGap with the bounds of the GSE paper's published code",
    ),
    "lingape": Entry(LinGapE(LeastRatio()), "LinGapE, the arm furthest behind its optimal share"),
    "lingape-greedy": Entry(LinGapE(), "LinGapE, the arm that shrinks the difference most"),
    "lingape-greedy-narrow": Entry(LinGapE(width=0.2), "lingape-greedy with a fifth of the theory's width"),
    "linucb": Entry(LinUCB(), "LinUCB, one linear model for all arms, most pulled arm"),
    "linucb-disjoint": Entry(LinUCB(SeparatePrior()), "LinUCB, a linear model for each arm"),
    "linucb-azizi2021": Entry(LinUCB(SeparatePrior(), Fixed(0.5130)), "LinUCB as in the GSE paper's published code"),
    "ucb-glm": Entry(UCBGLM(), "UCB-GLM, logistic model, most pulled arm", binary=True),
    "ucb-glm-azizi2021": Entry(
        UCBGLM(radius=Fixed(0.5), exploration=Once(), width=Variance()),
        "UCB-GLM as in the GSE paper's published code",
        binary=True,
    ),
    "gp-thompson": Entry(Thompson(), "Thompson sampling, Gaussian process fitted to the data, Matérn kernel"),
    "top-two-lin": Entry(TopTwo(), "leader against its closest challenger, linear model, D-optimal start"),
    "ocba": Entry(OCBA(), "optimal computing budget allocation on sample means"),
    "uniform": Entry(
        Elimination(Means(), Uniform(), static),
        "every arm equally often, then the best sample mean",
    ),
}

MODELS: dict[str, tuple[Callable[[], Any], str]] = {
    "linear": (Linear, "gse-lin-fwg"),
    "logistic": (lambda: GLM(Logistic()), "gse-log-fwg"),
    "poisson": (lambda: GLM(Poisson()), "gse-poi-fwg"),
    "means": (Means, "gse-means"),
    "forest": (lambda: forest, "gse-forest"),
}


def names() -> list[str]:
    """Return the names of all policies."""
    return sorted(ENTRIES)


def policy(name: str, **settings: Any) -> Any:
    """Return the policy of that name, with `settings` replacing its own or those of its parts.

    >>> policy("gse-lin-fwg", eta=3).eta
    3
    >>> policy("gse-lin-fgw")
    Traceback (most recent call last):
    ...
    bestarm.errors.UnknownNameError: unknown policy 'gse-lin-fgw'; the nearest are gse-lin-fwg, gse-lin-wynn, gse-lin
    """
    if name not in ENTRIES:
        raise UnknownNameError("policy", name, ENTRIES)
    chosen = ENTRIES[name].policy
    for setting, value in settings.items():
        chosen = changed(chosen, setting, value, f"policy {name!r}")
    return chosen


def model(name: str) -> Any:
    """Return the reward model of that name."""
    if name not in MODELS:
        raise UnknownNameError("model", name, MODELS)
    return MODELS[name][0]()


def default_policy(model_name: str | None = None) -> str:
    """Return the policy used when none is named: the model's own, or `auto` where no model is named either.

    >>> default_policy(), default_policy("logistic")
    ('auto', 'gse-log-fwg')
    """
    if model_name is None:
        return "auto"
    if model_name not in MODELS:
        raise UnknownNameError("model", model_name, MODELS)
    return MODELS[model_name][1]
