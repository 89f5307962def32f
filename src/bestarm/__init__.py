"""Find the best of K candidates within a fixed budget of noisy observations."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bestarm.bandits import Bandit, Bernoulli, Gaussian, Poisson, Tape
from bestarm.catalog import model, names, policy
from bestarm.core import Policy, Problem, Pulls, Tally, Totals
from bestarm.designs.allocation import Allocation, design
from bestarm.errors import BestArmError
from bestarm.linalg import Candidates
from bestarm.plan import plan
from bestarm.play import Round, Run, play
from bestarm.tables import open_table
from bestarm.tables.arms import Arms
from bestarm.version import __version__ as __version__

if TYPE_CHECKING:
    from bestarm.study import (
        Answer,
        Batch,
        Study,
        Trial,
        copy_study,
        create_from,
        create_study,
        delete_study,
        get_all_study_names,
        load_study,
        run,
    )

__all__ = [
    "Allocation",
    "Answer",
    "Arms",
    "Bandit",
    "Batch",
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
    "Study",
    "Tally",
    "Tape",
    "Totals",
    "Trial",
    "copy_study",
    "create_from",
    "create_study",
    "delete_study",
    "design",
    "get_all_study_names",
    "load_study",
    "model",
    "names",
    "open_table",
    "plan",
    "play",
    "policy",
    "run",
]

STUDIES = (
    "Answer",
    "Batch",
    "Study",
    "Trial",
    "copy_study",
    "create_from",
    "create_study",
    "delete_study",
    "get_all_study_names",
    "load_study",
    "run",
)


def __getattr__(name: str) -> Any:
    """Import studies when they are first named: simulations do without."""
    if name not in STUDIES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("bestarm.study"), name)
