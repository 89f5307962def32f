"""Find the best of K candidates within a fixed budget of noisy observations."""

from importlib import import_module as _module
from typing import TYPE_CHECKING

from bestarm.version import __version__ as __version__

if TYPE_CHECKING:
    from bestarm import bench
    from bestarm.bandits import Bandit, Bernoulli, Gaussian, Poisson, Tape
    from bestarm.catalog import model, names, policy
    from bestarm.core import Goal, Policy, Problem, Pulls, Tally, Totals
    from bestarm.designs.allocation import Allocation, design
    from bestarm.errors import BestArmError
    from bestarm.linalg import Candidates
    from bestarm.planning import plan
    from bestarm.playing import Round, Run, play
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
    from bestarm.tables import open_table
    from bestarm.tables.arms import Arms

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
    "Goal",
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
    "bench",
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

_HOMES = {
    "bandits": "Bandit Bernoulli Gaussian Poisson Tape",
    "catalog": "model names policy",
    "core": "Goal Policy Problem Pulls Tally Totals",
    "designs.allocation": "Allocation design",
    "errors": "BestArmError",
    "linalg": "Candidates",
    "planning": "plan",
    "playing": "Round Run play",
    "study": "Answer Batch Study Trial copy_study create_from create_study delete_study get_all_study_names load_study "
    "run",
    "tables": "open_table",
    "tables.arms": "Arms",
}
_HOME = {name: f"bestarm.{home}" for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """Import what is named when it is first named: few programs need everything."""
    if name == "bench":
        return _module("bestarm.bench")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(_module(_HOME[name]), name))


def __dir__() -> list[str]:
    return __all__
