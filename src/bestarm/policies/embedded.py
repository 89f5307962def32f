"""Any policy on embedded features (the paper's section on more general models)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from bestarm.core import Array, Policy, Problem, Pulls, Random, Standing, Totals, policy_of
from bestarm.embeddings import Embedding
from bestarm.needs import Need


@dataclass(frozen=True)
class Embedded:
    """Replace the features by an embedding of them, then play `policy`."""

    embedding: Embedding
    policy: Policy[Any]

    def start(self, problem: Problem) -> Any:
        return self.policy.start(self._embedded(problem))

    def needs(self, problem: Problem) -> Need:
        return policy_of(self.policy).needs(self._embedded(problem))

    def _embedded(self, problem: Problem) -> Problem:
        return replace(problem, features=self.embedding.embed(problem.features))

    def ask(self, state: Any, rng: Random) -> Pulls | None:
        return self.policy.ask(state, rng)

    def tell(self, state: Any, pulls: Pulls, totals: Totals) -> Any:
        return self.policy.tell(state, pulls, totals)

    def observe(self, state: Any, pulls: Pulls, totals: Totals) -> Any:
        return policy_of(self.policy).observe(state, pulls, totals)

    def recommend(self, state: Any) -> Array:
        return self.policy.recommend(state)

    @property
    def model(self) -> Any:
        """The model of the policy within."""
        return policy_of(self.policy).model

    def describe(self, state: Any) -> Standing:
        return policy_of(self.policy).describe(state)

    def sees(self, features: Array) -> Array:
        return policy_of(self.policy).sees(self.embedding.embed(features))

    def altered(self, change: Callable[[Any], Any]) -> "Embedded":
        return replace(self, policy=policy_of(self.policy).altered(change))
