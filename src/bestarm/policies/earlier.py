"""Parts of earlier versions, by the settings they had then, as what they are now: so logs written then are read."""

from dataclasses import replace
from typing import Any

from bestarm.designs.protocols import Design, Weights
from bestarm.designs.spread import Equal
from bestarm.models.linear import Linear
from bestarm.models.means import Means
from bestarm.models.protocols import Model
from bestarm.policies.elimination import AllStages, Elimination, Measure, Memory, Survivors, ThisStage
from bestarm.policies.schedules import EvenStages, Leftover, Rejects, Surplus, ToLastStages, Unspent


def elimination(
    model: Model,
    design: Design,
    eta: float = 2.0,
    memory: Memory = ThisStage(),
    measure: Measure = Survivors(),
    leftover: Leftover = ToLastStages(),
) -> Elimination:
    """Return GSE, whose schedule was two settings of its own."""
    return Elimination(model, design, EvenStages(eta, leftover), memory, measure)


def ceil_elimination(plan: Any, design: Weights, surplus: Surplus = Unspent(), model: Model = Linear()) -> Elimination:
    """Return OD-LinBAI and the published code of GSE."""
    return Elimination(model, design, replace(plan, surplus=surplus))


def successive_rejects() -> Elimination:
    """Return successive rejects."""
    return Elimination(Means(), Equal(), Rejects(), AllStages())
