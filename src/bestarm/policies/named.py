"""The named policies, each one expression: what it is, the rewards it is for, where it was published, and its page."""

from dataclasses import dataclass
from typing import Any, TypeAlias

from bestarm.core import Policy
from bestarm.designs.ascent import Ascent, Fedorov, LineSearch, OpenLoop, Wynn
from bestarm.designs.blend import WithTargets
from bestarm.designs.directions import EachPair
from bestarm.designs.greedy import Greedy
from bestarm.designs.many import BySize, Sparse
from bestarm.designs.protocols import Rounded
from bestarm.designs.rounding import AutoRound, Multinomial
from bestarm.designs.spread import Clustered, Equal, Forced, Uniform
from bestarm.designs.starts import Even, Multiplicative
from bestarm.designs.transductive import Transductive
from bestarm.designs.trim import Trimmed
from bestarm.designs.width import GaussianWidth, WorstPair
from bestarm.embeddings import PCA, CentredRows, KernelFeatures, KernelRows
from bestarm.kernels import Exponential, Matern, SquaredExponential
from bestarm.models.any_regressor import AnyRegressor
from bestarm.models.glm import GLM
from bestarm.models.law import Logistic, Poisson
from bestarm.models.linear import Linear
from bestarm.models.means import Means
from bestarm.models.weighed import Weighed
from bestarm.policies.auto import Auto
from bestarm.policies.choosers import LeastRatio
from bestarm.policies.classics import (
    OCBA,
    AverageOfOthers,
    BestRemaining,
    ContinuousRejection,
    NoPrior,
    WorstOfOthers,
)
from bestarm.policies.elimination import AllArms, AllStages, Elimination, ThisStage
from bestarm.policies.embedded import Embedded
from bestarm.policies.games import LinGame, LinGameC
from bestarm.policies.gaps import UCBE, AdaptiveUCBE, UGapE
from bestarm.policies.likelihood import MaximumLikelihood
from bestarm.policies.p1_rage import P1Rage
from bestarm.policies.peace import Exact, Official, Peace
from bestarm.policies.posteriors import KernelPrior, LeastSquares, LinearPrior, RidgePrior, SeparatePrior
from bestarm.policies.process import FittedProcess
from bestarm.policies.radii import Azizi2021, Fixed, Li2010, Li2017, Variance
from bestarm.policies.rules import GLMUCB, UCB, BayesGap, LinGapE, RandomUntil, SmallestBound, Thompson, TopTwo
from bestarm.policies.schedules import (
    Dropped,
    EvenStages,
    FloorHalving,
    FloorStages,
    Rejects,
    ToLastRound,
    ToLastStage,
    YangTan,
)
from bestarm.policies.sequential import (
    BestActive,
    ByDesign,
    EachIfCheap,
    EachOnce,
    EachOrSpanning,
    EachSeveral,
    MostPulled,
    RandomShare,
    RandomSubset,
    Sequential,
    SpanningArms,
)
from bestarm.policies.tracking import LazyTrackAndStop
from bestarm.policies.variances import UpperVariances, VarianceHalving
from bestarm.policies.xy_adaptive import XYAdaptive

fwg = BySize(Rounded(Ascent(start=Multiplicative()), AutoRound()), Sparse())
literal = Ascent(LineSearch(), Even(), tolerance=0.0, limit=100)
fwg_literal = Rounded(literal, AutoRound())
trimmed = Trimmed(Ascent())
wynn = Rounded(Ascent(Wynn(), Even(), limit=1000), AutoRound())
wynn_2021 = Rounded(Ascent(Fedorov(), Even(), limit=1000), Multinomial())
fedorov = Rounded(Ascent(Fedorov(), Even(), limit=1000), AutoRound())
open_loop = Rounded(Ascent(OpenLoop(), Even(), limit=1000), AutoRound())
xy = Rounded(Transductive(), AutoRound())
staged = BySize(xy, Sparse(), 512)  # work on all pairs grows with the square of the arms, at every step
static = EvenStages(eta=float("inf"))
bayesgap_2021 = BayesGap(0.0, Azizi2021())
forest = AnyRegressor("sklearn.ensemble.RandomForestRegressor", (("n_estimators", 50),))


@dataclass(frozen=True)
class Entry:
    """A named policy: what it is in a line, the rewards it is for, where it was published, and its page."""

    policy: Policy[Any]
    about: str
    rewards: str  # "any", "0/1", "counts", or "any, 0/1 as such": it sees for itself whether they are 0 and 1
    source: str
    page: str

    @property
    def binary(self) -> bool:
        """Whether it models rewards 0 and 1, and no others."""
        return self.rewards == "0/1"

    @property
    def centred(self) -> bool:
        """Whether rewards 0 and 1 are lowered by a half in benchmarks, for a linear model without intercept."""
        return "0/1" not in self.rewards


Named: TypeAlias = tuple[Any, str] | tuple[Any, str, str]  # a policy, what it is, and the rewards if not any


def _family(source: str, page: str, members: dict[str, Named]) -> dict[str, Entry]:
    """Return the entries of policies that were published together, or are explained together."""
    page = f"docs/algorithms/{page}.md"
    return {
        name: Entry(policy, about, rewards[0] if rewards else "any", source, page)
        for name, (policy, about, *rewards) in members.items()
    }


GSE = "Azizi, Kveton and Ghavamzadeh 2022, Algorithm 1", "gse"
OURS = "bestarm, decision 7", "auto"

ENTRIES: dict[str, Entry] = {
    **_family(*OURS, {
        "auto": (Auto(),
            "the default: learns from the rewards how much structure to trust; pulls what tells most",
            "any, 0/1 as such"),
    }),
    **_family(*GSE, {
        "gse-lin": (Elimination(Linear(), Uniform()), "GSE, linear model, uniform exploration"),
        "gse-lin-fwg": (Elimination(Linear(), fwg), "GSE, linear model, G-optimal exploration"),
        "gse-lin-fwg-literal": (Elimination(Linear(), fwg_literal, EvenStages(leftover=Dropped())),
            "GSE with Algorithm 2 as printed, which stalls"),
        "gse-lin-wynn": (Elimination(Linear(), wynn), "GSE, linear model, Wynn's G-optimal design"),
        "gse-lin-fedorov": (Elimination(Linear(), fedorov), "GSE, linear model, Fedorov's design"),
        "gse-lin-open-loop": (Elimination(Linear(), open_loop), "GSE, linear model, Frank-Wolfe without line search"),
        "gse-lin-greedy": (Elimination(Linear(), Greedy()), "GSE, linear model, Soare's greedy G allocation"),
        "gse-lin-greedy-xy": (Elimination(Linear(), Greedy(EachPair())),
            "GSE, linear model, Soare's greedy XY allocation"),
        "gse-lin-xy": (Elimination(Linear(), xy), "GSE, linear model, XY design on the survivors"),
        "gse-lin-xy-all": (Elimination(Linear(), xy, measure=AllArms()),
            "GSE, linear model, XY design, eliminated arms may be measured"),
        "gse-lin-xy-pooled": (Elimination(Linear(), xy, memory=AllStages(), measure=AllArms()),
            "the same, fitted to the data of all stages"),
        "gse-lin-fwg-pooled": (Elimination(Linear(), fwg, memory=AllStages()),
            "gse-lin-fwg, fitted to the data of all stages"),
    }),
    **_family(*OURS, {
        "gse-auto": (Elimination(Weighed(), WithTargets(staged), memory=AllStages(), measure=AllArms()),
            "GSE that learns how much structure to trust, for faithfulness to its frame of stages: auto is better"),
    }),
    **_family(*GSE, {
        "gse-lin-cluster": (Elimination(Linear(), Clustered()), "GSE, linear model, equal budget for each cluster"),
        "gse-log": (Elimination(GLM(Logistic()), Uniform()), "GSE, logistic model, uniform exploration", "0/1"),
        "gse-log-fwg": (Elimination(GLM(Logistic()), fwg), "GSE, logistic model, G-optimal exploration", "0/1"),
        "gse-log-fwg-forced": (Elimination(GLM(Logistic()), Forced(fwg)),
            "gse-log-fwg with d forced pulls a stage, which bound c_min", "0/1"),
        "gse-log-fwg-literal": (Elimination(GLM(Logistic()), fwg_literal, EvenStages(leftover=Dropped())),
            "gse-log-fwg with Algorithm 2 as printed, which stalls", "0/1"),
        "gse-log-fwg-pooled": (Elimination(GLM(Logistic()), fwg, memory=AllStages()),
            "gse-log-fwg, fitted to the data of all stages", "0/1"),
        "gse-poi-fwg": (Elimination(GLM(Poisson()), fwg), "GSE, Poisson model, G-optimal exploration", "counts"),
        "gse-means": (Elimination(Means(), Uniform()), "GSE without structure: halving on sample means"),
        "gse-forest": (Elimination(forest, Clustered()), "GSE, random forest, clustered exploration"),
        "gse-pca-fwg": (Embedded(PCA(5), Elimination(Linear(), fwg)), "gse-lin-fwg on five principal components"),
        "gse-kernel-fwg": (Embedded(KernelFeatures(Matern(2.5), 10), Elimination(Linear(), fwg)),
            "gse-lin-fwg on ten features of a Matérn kernel"),
        "g-optimal": (Elimination(Linear(), fwg, static),
            "one static stage: a G-optimal design, then the best estimate"),
    }),
    **_family("Yang and Tan 2022, Algorithm 1", "od_linbai", {
        "od-linbai": (Elimination(Linear(), trimmed, YangTan()),
            "OD-LinBAI: G-optimal rounds, the first leaves d/2 arms"),
        "od-linbai-spend": (Elimination(Linear(), trimmed, YangTan(ToLastRound())),
            "OD-LinBAI, what rounding leaves goes to the last round"),
    }),
    **_family("Katz-Samuels, Jain, Karnin and Jamieson 2020, fixed-budget algorithm", "peace", {
        "peace": (Peace(GaussianWidth(), Official(), AllStages()), "Peace: each epoch halves the Gaussian width"),
        "peace-fresh": (Peace(GaussianWidth(), Official(), ThisStage()), "Peace, each epoch fitted to its own data"),
        "peace-rho": (Peace(WorstPair(), Exact(), ThisStage()), "Peace with the worst pair in place of the width"),
    }),
    **_family("Azizi, Kveton and Ghavamzadeh 2022, section 8", "peace", {
        "linear-exploration": (Elimination(Linear(), xy, measure=AllArms()),
            "LinearExploration: halving, XY design over all arms"),
    }),
    **_family("Xiong, Camilleri, Fazel, Jain and Jamieson 2024", "p1_rage", {
        "p1-rage": (P1Rage(), "P1-RAGE: random pulls, inverse propensity, half G half XY designs"),
    }),
    **_family("Karnin, Koren and Somekh 2013, Algorithm 1", "classics", {
        "sequential-halving": (Elimination(Means(), Equal(), EvenStages(leftover=Dropped())),
            "sequential halving on the means of each round"),
        "sequential-halving-pooled": (Elimination(Means(), Equal(), EvenStages(leftover=ToLastStage()), AllStages()),
            "sequential halving on the means of all rounds"),
    }),
    **_family("Audibert, Bubeck and Munos 2010, Figure 2", "classics", {
        "successive-rejects": (Elimination(Means(), Equal(), Rejects(), AllStages()),
            "successive rejects: the worst mean leaves after each phase"),
    }),
    **_family("Wang, Tzeng and Proutière 2023", "classics", {
        "continuous-rejects-a": (
            Sequential(ContinuousRejection(AverageOfOthers()), NoPrior(), RandomSubset(), BestRemaining()),
            "continuous rejects, worst against the average of the others"),
        "continuous-rejects-c": (
            Sequential(ContinuousRejection(WorstOfOthers()), NoPrior(), RandomSubset(), BestRemaining()),
            "continuous rejects, worst against the second worst"),
    }),
    **_family("Azizi, Kveton and Ghavamzadeh 2022, published code", "od_linbai", {
        "gse-lin-fwg-azizi2021": (Elimination(Linear(), literal, FloorHalving()),
            "GSE as its published code rounds, within the budget"),
        "gse-lin-azizi2021": (Elimination(Linear(), Uniform(), FloorStages()),
            "gse-lin with the stages of its published code"),
        "gse-lin-wynn-azizi2021": (Elimination(Linear(), wynn_2021, FloorStages()),
            "gse-lin-wynn as its published code has it: Fedorov's steps, drawn and not rounded"),
    }),
    **_family("Hoffman, Shahriari and de Freitas 2014, Algorithm 1", "bayesgap", {
        "bayesgap-lin": (Sequential(BayesGap(), LinearPrior(), EachIfCheap(), SmallestBound()),
            "BayesGap, linear model"),
        "bayesgap-exp": (Sequential(BayesGap(), KernelPrior(Exponential()), EachIfCheap(), SmallestBound()),
            "BayesGap, exponential kernel"),
        "bayesgap-se": (Sequential(BayesGap(), KernelPrior(SquaredExponential()), EachIfCheap(), SmallestBound()),
            "BayesGap, squared exponential kernel"),
        "bayesgap-matern": (Sequential(BayesGap(), KernelPrior(Matern(1.5)), EachIfCheap(), SmallestBound()),
            "BayesGap, Matérn kernel"),
        "bayesgap-azizi2021": (Sequential(bayesgap_2021, LinearPrior(2500.0), EachOnce(), SmallestBound()),
            "BayesGap with the bounds of the GSE paper's published code"),
        "bayesgap-azizi2021-se": (
            Sequential(bayesgap_2021, KernelPrior(SquaredExponential(1e-3), 2500.0), EachOnce(), SmallestBound()),
            "the same with a squared exponential kernel, by default that of the adaptive instance"),
        "bayesgap-azizi2021-matern": (
            Embedded(KernelRows(Matern(1.5, 10.0)),
                     Sequential(bayesgap_2021, LinearPrior(2500.0), EachOnce(), SmallestBound())),
            "the same with the rows of a Matérn kernel's matrix for features"),
        "bayesgap-azizi2021-covariance": (
            Embedded(CentredRows(),
                     Sequential(bayesgap_2021, LinearPrior(250.0), EachOnce(), SmallestBound())),
            "the same with the covariance of two arms over eleven features for a kernel"),
    }),
    **_family("Xu, Honda and Sugiyama 2018, Algorithm 1", "lingape", {
        "lingape": (Sequential(LinGapE(LeastRatio()), RidgePrior(), EachOnce()),
            "LinGapE, the arm furthest behind its optimal share"),
        "lingape-greedy": (Sequential(LinGapE(), RidgePrior(), EachOnce()),
            "LinGapE, the arm that shrinks the difference most"),
        "lingape-greedy-narrow": (Sequential(LinGapE(width=0.2), RidgePrior(), EachOnce()),
            "lingape-greedy with a fifth of the theory's width"),
        "lingape-greedy-azizi2021": (Sequential(LinGapE(delta=0.4), RidgePrior(1e-8), EachOnce()),
            "lingape-greedy with the delta and ridge of the GSE paper's published code"),
    }),
    **_family("Li, Chu, Langford and Schapire 2010; Abbasi-Yadkori, Pál and Szepesvári 2011", "ucb", {
        "linucb": (Sequential(UCB(), final=MostPulled()), "LinUCB, one linear model for all arms, most pulled arm"),
        "linucb-li2010": (Sequential(UCB(Li2010()), final=MostPulled()),
            "LinUCB with the radius of Li et al., which is for rewards in [0, 1]"),
        "linucb-disjoint": (Sequential(UCB(), SeparatePrior(), final=MostPulled()),
            "LinUCB, a linear model for each arm"),
        "linucb-azizi2021": (Sequential(UCB(Fixed(0.513)), SeparatePrior(), final=MostPulled()),
            "LinUCB as in the GSE paper's published code"),
    }),
    **_family("Li, Lu and Zhou 2017, Algorithm 1 and Theorem 2", "ucb", {
        "ucb-glm": (Sequential(RandomUntil(UCB(Li2017())), MaximumLikelihood(), final=MostPulled()),
            "UCB-GLM, logistic model, most pulled arm", "0/1"),
        "ucb-glm-azizi2021": (Sequential(UCB(Fixed(0.5), Variance()), MaximumLikelihood(), EachOnce(), MostPulled()),
            "UCB-GLM as in the GSE paper's published code", "0/1"),
    }),
    **_family("Filippi, Cappé, Garivier and Szepesvári 2010, Algorithm 1", "cited", {
        "glm-ucb": (Sequential(GLMUCB(), MaximumLikelihood(), SpanningArms(), MostPulled()),
            "GLM-UCB, logistic model, bonus in units of the reward, most pulled arm", "0/1"),
    }),
    **_family("Audibert, Bubeck and Munos 2010, Figures 1 and 4", "cited", {
        "ucb-e": (Sequential(UCBE(b=None), NoPrior(), EachOnce()), "UCB-E: upper confidence bounds of a fixed width"),
        "ucb-e-adaptive": (Sequential(AdaptiveUCBE(), NoPrior(), EachOnce()),
            "UCB-E, the width made of the gaps seen so far"),
    }),
    **_family("Gabillon, Ghavamzadeh and Lazaric 2012, Figure 1", "cited", {
        "ugapeb": (Sequential(UGapE(), NoPrior(), EachOnce()),
            "UGapEb: the less pulled of leader and rival, the width made of the gaps seen so far"),
        "ugapeb-paper": (Sequential(UGapE(), NoPrior(), EachOnce(), SmallestBound()),
            "UGapEb, names the leader of the round with the smallest bound, as printed"),
    }),
    **_family("Soare, Lazaric and Munos 2014, Algorithm 3", "cited", {
        "xy-adaptive": (Sequential(XYAdaptive(), LeastSquares(), final=BestActive()),
            "XY-adaptive, cut at the budget: XY allocation by phases for who is left"),
    }),
    **_family("Jedra and Proutière 2020, Algorithm 1", "cited", {
        "lazy-track-and-stop": (Sequential(LazyTrackAndStop(), LeastSquares(), SpanningArms()),
            "lazy track-and-stop, cut at the budget: follows the best allocation for the estimate"),
    }),
    **_family("Degenne, Ménard, Shang and Valko 2020, Algorithms 1 and 2", "cited", {
        "lingame": (Sequential(LinGame(), RidgePrior(), EachOrSpanning()),
            "LinGame, cut at the budget: a learner for each answer plays against the worst alternative"),
        "lingame-c": (Sequential(LinGameC(), RidgePrior(), EachOrSpanning()),
            "LinGame-C, cut at the budget: one learner over pairs of answer and arm"),
    }),
    **_family("Lalitha, Kalantari, Ma, Deoras and Kveton 2023", "cited", {
        "shvar": (Sequential(VarianceHalving(), NoPrior(), final=BestActive()),
            "SHVar: halving, pulls in proportion to known variances"),
        "shadavar": (Sequential(VarianceHalving(UpperVariances()), NoPrior(), final=BestActive()),
            "SHAdaVar: halving, pulls in proportion to upper bounds on unknown variances"),
    }),
    **_family("Thompson 1933; Rasmussen and Williams 2006, chapters 2 and 5", "auto", {
        "gp-thompson": (Sequential(Thompson(), FittedProcess(), RandomShare()),
            "Thompson sampling, Gaussian process fitted to the data, Matérn kernel"),
    }),
    **_family("after Russo 2016; Shang, de Heide, Ménard, Kaufmann and Valko 2020", "top_two", {
        "top-two-lin": (Sequential(TopTwo(), LinearPrior(0.3), ByDesign()),
            "leader against its closest challenger, linear model, D-optimal start"),
    }),
    **_family("Chen, Lin, Yücesan and Chick 2000", "top_two", {
        "ocba": (Sequential(OCBA(), NoPrior(), EachSeveral(5)), "optimal computing budget allocation on sample means"),
    }),
    **_family(*GSE, {
        "uniform": (Elimination(Means(), Uniform(), static), "every arm equally often, then the best sample mean"),
    }),
}  # fmt: skip
