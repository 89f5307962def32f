"""The paper's published code where it differs from the paper, so that its figures can be explained.

`CeilElimination(FloorHalving(), VertexDirection(LineSearch(), iterations=100, tolerance=0.0))` rounds every weight
up, keeps the floor of half the arms, and counts what it spends.
"""

from dataclasses import dataclass

from bestarm.policies.od_linbai import Share
from bestarm.policies.schedules import Leftover, ToLastStages, even_stages, floor_sizes


@dataclass(frozen=True)
class FloorHalving:
    """Stage budgets of Algorithm 1 for s = ⌈log_η K⌉ stages, but ⌊k/η⌋ survivors, hence at times fewer stages.

    The published code pulls ⌈n π_i⌉ times at every stage and so spends 10 % to 100 % more than B. Here a stage may do
    so too, but what it took is gone: a later stage has only what is left, none at all in the worst case, and then the
    leader of the stage before is the answer. What stages that never happen would have had is not spent.

    >>> FloorHalving().shares(arms=5, dimension=2, budget=90)
    (Share(pulls=30, keep=2), Share(pulls=30, keep=1))
    """

    eta: float = 2.0
    leftover: Leftover = ToLastStages()

    def shares(self, arms: int, dimension: int, budget: int) -> tuple[Share, ...]:
        stages = even_stages(arms, budget, self.eta, self.leftover)
        sizes = floor_sizes(arms, self.eta) if stages else (1,)
        return tuple(Share(stage.pulls, keep) for stage, keep in zip(stages, sizes[1:], strict=False))
