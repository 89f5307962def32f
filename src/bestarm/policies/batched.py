"""One-at-a-time policies in batches: plan several pulls before any of them is seen."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bestarm.core import Array, Policy, Problem, Pulls, Random, Standing, Tally, Totals, policy_of
from bestarm.linalg import entries, tally
from bestarm.models.means import sample_means
from bestarm.needs import Need
from bestarm.numbers import whole


@dataclass(frozen=True)
class BatchedState:
    """The inner state with what is known of each arm, from which unseen rewards are guessed."""

    problem: Problem
    inner: Any
    known: Tally


@dataclass(frozen=True)
class Batched:
    """Ask `policy` up to `size` times in a row, reporting the arm's mean so far for what is not yet seen.

    The guesses are forgotten when the real rewards come: only those are told. A question of several pulls, such as a
    stage of an elimination, is a batch already: nothing is guessed within it or beyond it.
    """

    policy: Policy[Any]
    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole(self.size, "size", least=1))

    def start(self, problem: Problem) -> BatchedState:
        zero = np.zeros_like(problem.features[..., 0])
        return BatchedState(problem, self.policy.start(problem), Tally(zero, zero, zero))

    def ask(self, state: BatchedState, rng: Random) -> Pulls | None:
        planned: list[Pulls] = []
        inner = state.inner
        while (pulls := self.policy.ask(inner, rng)) is not None:
            if pulls.total != 1:
                planned = planned or [pulls]
                break
            planned.append(pulls)
            if len(planned) >= self.size:  # after the last one nothing is asked: it needs no guess
                break
            inner = self.policy.tell(inner, pulls, self._guess(state.known, pulls))
        if not planned:
            return None
        return Pulls(*(np.concat([getattr(p, part) for p in planned], axis=-1) for part in ("arms", "times")))

    def tell(self, state: BatchedState, pulls: Pulls, totals: Totals) -> BatchedState:
        known = state.known + tally(pulls, totals, state.problem.arms)
        return replace(state, inner=self.policy.tell(state.inner, pulls, totals), known=known)

    def observe(self, state: BatchedState, pulls: Pulls, totals: Totals) -> BatchedState:
        known = state.known + tally(pulls, totals, state.problem.arms)
        return replace(state, inner=policy_of(self.policy).observe(state.inner, pulls, totals), known=known)

    def recommend(self, state: BatchedState) -> Array:
        return self.policy.recommend(state.inner)

    def _guess(self, known: Tally, pulls: Pulls) -> Totals:
        """Return an arm's mean reward and mean square so far; those of all arms for one not yet seen."""
        times, counts = np.astype(pulls.times, known.sums.dtype), known.counts
        return Totals(*(times * entries(sample_means(counts, of), pulls.arms) for of in (known.sums, known.squares)))

    @property
    def model(self) -> Any:
        """The model of the policy within."""
        return policy_of(self.policy).model

    def describe(self, state: BatchedState) -> Standing:
        return policy_of(self.policy).describe(state.inner)

    def needs(self, problem: Problem) -> Need:
        return policy_of(self.policy).needs(problem)

    def sees(self, features: Array) -> Array:
        return policy_of(self.policy).sees(features)
