"""The theorems as functions: how likely a wrong answer is at most, for GSE and for its rivals.

Every bound is a `Bound`: a float that is at most 1 and remembers its logarithm unclipped. Noise is
σ²-sub-Gaussian and `noise_variance` is σ²; where it is not an argument σ = 1 is meant, so give gap / σ.
Logarithms are to base 2 in the rivals' bounds. `gaps` are those of the K - 1 suboptimal arms, in any order.
"""

from bestarm.bounds.bound import Bound
from bestarm.bounds.compared import (
    log_peace_crossover,
    log_ratio_to_od,
    log_ratio_to_od_as_printed,
    peace_budget,
    peace_crossover,
    smallest,
)
from bestarm.bounds.hardness import accuracy_hardness, linear_hardness, peace_hardness, plain_hardness
from bestarm.bounds.rivals import (
    bayesgap,
    bayesgap_simplified,
    linucb,
    mab_lower,
    mab_lower_tight,
    od_crossover,
    od_linbai,
    od_linbai_simplified,
    peace_claimed,
    peace_g_optimal,
    sequential_halving,
    shvar,
    shvar_as_printed,
    ucb_e,
    ucb_e_exploration,
    ucb_glm,
    ugapeb,
    ugapeb_exploration,
    ugapeb_hardness,
)
from bestarm.bounds.theorems import (
    cmin,
    frank_wolfe_iterations,
    frank_wolfe_khachiyan,
    frank_wolfe_kumar_yildirim,
    glm,
    glm_allocation,
    gse,
    gse_allocation,
    gse_as_printed,
    logistic_cmin,
    one_pair,
    one_pair_glm,
    one_stage,
    one_stage_glm,
    pulls_for_accuracy,
    static,
)

__all__ = [
    "Bound", "accuracy_hardness", "bayesgap", "bayesgap_simplified", "cmin", "frank_wolfe_iterations",
    "frank_wolfe_khachiyan", "frank_wolfe_kumar_yildirim", "glm", "glm_allocation", "gse", "gse_allocation",
    "gse_as_printed", "linear_hardness", "linucb", "log_peace_crossover", "log_ratio_to_od",
    "log_ratio_to_od_as_printed", "logistic_cmin", "mab_lower", "mab_lower_tight", "od_crossover", "od_linbai",
    "od_linbai_simplified", "one_pair", "one_pair_glm", "one_stage", "one_stage_glm", "peace_budget",
    "peace_claimed", "peace_crossover", "peace_g_optimal", "peace_hardness", "plain_hardness", "pulls_for_accuracy",
    "sequential_halving", "shvar", "shvar_as_printed", "smallest", "static", "ucb_e", "ucb_e_exploration",
    "ucb_glm", "ugapeb", "ugapeb_exploration", "ugapeb_hardness",
]  # fmt: skip
