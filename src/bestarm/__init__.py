"""Find the best of K candidates within a fixed budget of noisy observations."""

from bestarm.arms import Arms
from bestarm.bandits import Bandit, Bernoulli, Gaussian, Poisson, Tape
from bestarm.catalog import model, names, policy
from bestarm.core import Policy, Problem, Pulls, Tally, Totals
from bestarm.errors import BestArmError
from bestarm.linalg import Candidates
from bestarm.play import Round, Run, play

__version__ = "0.1.0"

__all__ = [
    "Arms",
    "Bandit",
    "Bernoulli",
    "BestArmError",
    "Candidates",
    "Gaussian",
    "Poisson",
    "Policy",
    "Problem",
    "Pulls",
    "Round",
    "Run",
    "Tally",
    "Tape",
    "Totals",
    "model",
    "names",
    "play",
    "policy",
]
