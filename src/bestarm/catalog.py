"""Name -> policy: the only list of algorithm names."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from bestarm import plugins
from bestarm.core import Policy, policy_of
from bestarm.designs.blend import WithTargets
from bestarm.designs.directions import EachPair
from bestarm.designs.greedy import Greedy
from bestarm.designs.many import BySize, Sparse
from bestarm.designs.optimal import Multiplicative, WolfeAtwood
from bestarm.designs.protocols import Rounded
from bestarm.designs.rounding import AutoRound
from bestarm.designs.spread import Clustered, Forced, Uniform
from bestarm.designs.transductive import Transductive
from bestarm.designs.trim import Trimmed
from bestarm.designs.vertex import Fedorov, LineSearch, OpenLoop, VertexDirection, Wynn
from bestarm.designs.width import GaussianWidth, WorstPair
from bestarm.embeddings import PCA, KernelFeatures
from bestarm.errors import InputError
from bestarm.kernels import Exponential, Matern, SquaredExponential
from bestarm.models.any_regressor import AnyRegressor
from bestarm.models.glm import GLM
from bestarm.models.law import Logistic, Poisson
from bestarm.models.linear import Linear
from bestarm.models.means import Means
from bestarm.models.weighed import Weighed
from bestarm.policies.auto import Auto
from bestarm.policies.bayesgap import Azizi2021, BayesGap
from bestarm.policies.belief import KernelPrior, LinearPrior, SeparatePrior
from bestarm.policies.classics import (
    AverageOfOthers,
    ContinuousRejects,
    Equal,
    SuccessiveRejects,
    ToLastStage,
    WorstOfOthers,
)
from bestarm.policies.compat import FloorHalving
from bestarm.policies.elimination import AllArms, AllStages, Elimination, ThisStage
from bestarm.policies.embedded import Embedded
from bestarm.policies.lingape import LeastRatio, LinGapE
from bestarm.policies.ocba import OCBA
from bestarm.policies.od_linbai import CeilElimination, ToLastRound, YangTan
from bestarm.policies.p1_rage import P1Rage
from bestarm.policies.peace import Exact, Official, Peace
from bestarm.policies.rules import EachOnce, Fixed, Variance
from bestarm.policies.schedules import Dropped
from bestarm.policies.thompson import Thompson
from bestarm.policies.top_two import TopTwo
from bestarm.policies.ucb import UCBGLM, LinUCB, Once
from bestarm.texts import divided, imported, made

fwg = BySize(Rounded(WolfeAtwood(start=Multiplicative()), AutoRound()), Sparse())
literal = VertexDirection(LineSearch(), iterations=100, tolerance=0.0)
fwg_literal = Rounded(literal, AutoRound())
trimmed = Trimmed(WolfeAtwood())
wynn = Rounded(VertexDirection(Wynn()), AutoRound())
fedorov = Rounded(VertexDirection(Fedorov()), AutoRound())
open_loop = Rounded(VertexDirection(OpenLoop()), AutoRound())
xy = Rounded(Transductive(), AutoRound())
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
        Elimination(Linear(), fwg_literal, leftover=Dropped()), "GSE with Algorithm 2 as printed, which stalls"
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
        Elimination(Linear(), fwg, eta=float("inf")), "one static stage: a G-optimal design, then the best estimate"
    ),
    "od-linbai": Entry(CeilElimination(YangTan(), trimmed), "OD-LinBAI: G-optimal rounds, the first leaves d/2 arms"),
    "od-linbai-spend": Entry(
        CeilElimination(YangTan(), trimmed, ToLastRound()), "OD-LinBAI, what rounding leaves goes to the last round"
    ),
    "peace": Entry(Peace(GaussianWidth(), Official(), AllStages()), "Peace: each epoch halves the Gaussian width"),
    "peace-rho": Entry(Peace(WorstPair(), Exact(), ThisStage()), "Peace with the worst pair in place of the width"),
    "linear-exploration": Entry(
        Elimination(Linear(), xy, measure=AllArms()), "LinearExploration: halving, XY design over all arms"
    ),
    "p1-rage": Entry(P1Rage(), "P1-RAGE: random pulls, inverse propensity, half G half XY designs"),
    "sequential-halving": Entry(
        Elimination(Means(), Equal(), leftover=Dropped()), "sequential halving on the means of each round"
    ),
    "sequential-halving-pooled": Entry(
        Elimination(Means(), Equal(), memory=AllStages(), leftover=ToLastStage()),
        "sequential halving on the means of all rounds",
    ),
    "successive-rejects": Entry(SuccessiveRejects(), "successive rejects: the worst mean leaves after each phase"),
    "continuous-rejects-a": Entry(
        ContinuousRejects(AverageOfOthers()), "continuous rejects, worst against the average of the others"
    ),
    "continuous-rejects-c": Entry(
        ContinuousRejects(WorstOfOthers()), "continuous rejects, worst against the second worst"
    ),
    "gse-lin-fwg-azizi2021": Entry(
        CeilElimination(FloorHalving(), literal), "GSE as its published code rounds, within the budget"
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
        Elimination(Means(), Uniform(), eta=float("inf")), "every arm equally often, then the best sample mean"
    ),
}

MODELS: dict[str, tuple[Callable[[], Any], str]] = {
    "linear": (Linear, "gse-lin-fwg"),
    "logistic": (lambda: GLM(Logistic()), "gse-log-fwg"),
    "poisson": (lambda: GLM(Poisson()), "gse-poi-fwg"),
    "means": (Means, "gse-means"),
    "forest": (lambda: forest, "gse-forest"),
}
KINDS = {"model": "models", "law": "laws", "link": "laws", "design": "designs"}  # of parts, by setting


def names() -> list[str]:
    """Return the names of all policies."""
    return sorted(ENTRIES)


def listed() -> tuple[list[dict[str, str]], list[str]]:
    """Return a row for each policy, here and of installed packages, and why some of those cannot be used."""
    rows = [{"policy": name, "about": ENTRIES[name].about} for name in names()]
    points, others, broken = plugins.found("policies"), [], []
    for point in points:
        try:
            about = (plugins.loaded(point).__doc__ or "").strip().partition("\n")[0]
            others.append({"policy": point.name, "about": about, "package": plugins.package(point)})
        except InputError as error:
            broken.append(str(error))
    return ([row | {"package": "bestarm-bai"} for row in rows] if others else rows) + others, broken


def policy(name: str, **settings: Any) -> Any:
    """Return the policy of that name, here or in an installed package, with `settings` replacing its own.

    >>> policy("gse-lin-fwg", eta=3).eta
    3
    >>> policy("gse-lin-fgw")
    Traceback (most recent call last):
    ...
    bestarm.errors.UnknownNameError: unknown policy 'gse-lin-fgw'; the nearest are gse-lin-fwg, gse-lin-wynn, gse-lin
    """
    return _with(_policy_called(name), name, "", settings)


def policy_of_text(text: str, **settings: Any) -> Any:
    """Return the policy that a person typed: a name or `package.module:Class`, then `:key=value,key=value`.

    Whoever types a path lets it be imported. `settings` are given as they are.

    >>> policy_of_text("gse-lin-fwg:eta=4").eta
    4.0
    >>> policy_of_text("bestarm.policies.ocba:OCBA:first=3")
    OCBA(first=3, scatter=SampleVariances(prior=2.0), answer=BestEstimate())
    """
    name, typed = divided(text)
    if name.partition(":")[0] in ENTRIES and ":" in name:
        raise InputError(f"policy {text!r}: a setting is written key=value; given {name.partition(':')[2]!r}")
    return _with(imported(name) if ":" in name else _policy_called(name), name, typed, settings)


def rewards_of(text: str) -> str:
    """Return the model of the rewards that the policy typed takes, where it says no more than that."""
    entry = ENTRIES.get(divided(text)[0])
    return "logistic" if entry is not None and entry.binary else "linear"


def _policy_called(name: str) -> Any:
    return ENTRIES[name].policy if name in ENTRIES else plugins.part("policies", name, ENTRIES)


def _with(found: Any, name: str, typed: str, settings: dict[str, Any]) -> Any:
    """Return a policy with settings; where it was a class, one made with them."""

    def changed(part: Any) -> Any:
        own = {field.name: getattr(part, field.name) for field in fields(part) if field.init}
        return made(type(part), f"policy {name!r}", typed, own | settings, _part)

    if isinstance(found, type):
        found, typed, settings = made(found, f"policy {name!r}", typed, settings, _part), "", {}
    whole = policy_of(found)
    return whole.altered(changed) if typed or settings else found


def _part(key: str, text: str) -> Any:
    """Return the part that a text stands for as the setting `key`."""
    if key in KINDS:
        return part(KINDS[key], text)
    if ":" not in text:
        raise InputError(f"{key} is a part; a path package.module:Class is expected, given {text!r}")
    return _one(imported(text), text)


def _one(found: Any, name: str) -> Any:
    """Return a part; where its class was named, one with all its defaults."""
    return made(found, name, "", {}, _part) if isinstance(found, type) else found


def part(kind: str, text: str) -> Any:
    """Return a model, law or design: by its name here or in an installed package, or its path `module:Class`."""
    if kind == "models" and text in MODELS:
        return MODELS[text][0]()
    if ":" in text:
        return _one(imported(text), text)
    if kind == "models" and text in plugins.names("laws"):
        return GLM(part("laws", text))
    known = (*MODELS, *plugins.names("laws")) if kind == "models" else ()
    return _one(plugins.part(kind, text, known), text)


def model(name: str) -> Any:
    """Return the reward model of that name, here or in an installed package."""
    return part("models", name)


def default_policy(model_name: str | None = None) -> str:
    """Return the policy used when none is named: the model's own, or `auto` where no model is named either.

    >>> default_policy(), default_policy("logistic")
    ('auto', 'gse-log-fwg')
    """
    if model_name is None:
        return "auto"
    if model_name not in MODELS:
        model(model_name)  # of an installed package, or not known at all
        return "gse-lin-fwg"
    return MODELS[model_name][1]
