"""How much budget is needed: policies are simulated on worlds that are plausible for some arms."""

from bestarm.planning.answer import Plan, Rounds
from bestarm.planning.figure import draw
from bestarm.planning.planner import plan
from bestarm.planning.worlds import Worlds

__all__ = ["Plan", "Rounds", "Worlds", "draw", "plan"]
