"""How much budget is needed: policies are simulated on worlds that are plausible for some arms."""

from bestarm.plan.answer import Plan, Rounds
from bestarm.plan.figure import draw
from bestarm.plan.planner import plan
from bestarm.plan.worlds import Worlds

__all__ = ["Plan", "Rounds", "Worlds", "draw", "plan"]
