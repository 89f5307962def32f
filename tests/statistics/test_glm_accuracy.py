"""The logistic cell an independent implementation measured too: K = 8, d = 5, B = 400, linear methods centred."""

import numpy as np
import pytest

from bestarm import catalog, instances
from bestarm.playing import play
from bestarm.policies.earlier import ucb_glm
from bestarm.policies.radii import Fixed
from bestarm.policies.sequential import EachOnce, NoPulls

# policy, their accuracy with 1000 replications, what is taken from each reward
CASES = {
    "GSE-Lin-FWG": (catalog.policy("gse-lin-fwg"), 0.614, 0.5),
    "GSE-Log": (catalog.policy("gse-log"), 0.609, 0.0),
    "GSE-Log-FWG": (catalog.policy("gse-log-fwg"), 0.650, 0.0),
    "OD": (catalog.policy("od-linbai"), 0.654, 0.5),
    "LinGapE-Gr": (catalog.policy("lingape-greedy"), 0.697, 0.5),
    "LinUCB(2)": (catalog.policy("linucb"), 0.690, 0.5),
    "BG-Lin": (catalog.policy("bayesgap-lin", first=NoPulls()), 0.679, 0.5),
    "UCB-GLM": (ucb_glm(radius=Fixed(1.0), exploration=EachOnce()), 0.504, 0.0),
    "top-two": (catalog.policy("top-two-lin"), 0.752, 0.5),
}


@pytest.mark.statistics
@pytest.mark.parametrize("name", CASES)
def test_we_agree_with_the_reference_on_logistic_rewards(name):
    policy, theirs, centre = CASES[name]
    right = 0
    for stream in np.random.SeedSequence(11).spawn(16):
        rng = np.random.default_rng(stream)
        bandit = instances.logistic(8, 5, replications=250, rng=rng).shuffled(rng)
        run = play(policy, bandit.lowered(centre) if centre else bandit, 400, rng)
        right += int(bandit.correct(run.arm).sum())
    assert abs(right / 4000 - theirs) < 3 * 0.016
