"""Worlds that are plausible for some arms: truths drawn on their span, at a given gap or from a prior."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from bestarm.bandits import Bandit
from bestarm.core import Goal
from bestarm.errors import InputError
from bestarm.linalg import span_coordinates
from bestarm.models.law import Law
from bestarm.models.protocols import Model
from bestarm.numbers import real
from bestarm.planning.rivals import Rivals, Spread
from bestarm.rewards import Rewards

Prior: TypeAlias = float | Callable[[int, np.random.Generator], Any]

REACH = 6.0  # farthest predictor from the base in a plausible world: odds, or a ratio of counts, of 400
WAVE, TRIES = 250, 50  # so many draws at a time, so often, before a gap is called out of reach


@dataclass(frozen=True, eq=False)
class Worlds:
    """Truths that are plausible for arms with `features` `(K, d)`: any direction of their span, at a given gap.

    With a `gap`, predictors are drawn on the span as `rivals` says, and scaled until the best and the second best
    mean are that far apart. Where a GLM cannot reach the gap with predictors within REACH of the base, the draw is
    repeated. With a `prior`, coefficients are N(0, prior I), or what a function `(size, rng) -> (size, d)` returns.
    `base` is the mean reward of an average arm, where the features have a constant in their span. Where the smallest
    mean is the best, the worlds drawn are turned: a larger mean is better in them, too.
    """

    features: Any
    model: Model
    gap: float | None = None
    noise_variance: float | None = None
    prior: Prior | None = None
    base: float | None = None
    rivals: Rivals = Spread()
    goal: Goal = Goal()

    def __post_init__(self) -> None:
        if (self.gap is None) == (self.prior is None):
            raise InputError("say how far the best arm is ahead: either gap= or prior=, the variance of coefficients")
        Rewards(self.model, self.goal)
        _positive(gap=self.gap, prior=None if callable(self.prior) else self.prior)
        self._check_noise()
        low, high = self.law.limits
        if self.gap is not None and self.gap >= high - low:
            raise InputError(
                f"gap must be below {high - low:g}, between means from {low:g} to {high:g}; given {self.gap}"
            )
        if self.base is not None:
            real(self.base, "base")
        if self.base is not None and not self.level:
            raise InputError("base needs features with a constant in their span; add an intercept")
        if not math.isfinite(self.offset):
            raise InputError(f"base must be a mean reward the model can have; given {self.base}")

    def _check_noise(self) -> None:
        """Refuse a noise variance that is missing, or one that the mean implies already."""
        implied = self.law.counts_suffice
        if implied and self.noise_variance is not None:
            name = self.law.named().lower()
            said = f"rewards of the {name} model have the variance their mean implies"
            raise InputError(f"noise_variance must not be given: {said}")
        if not implied and self.noise_variance is None:
            raise InputError("noise_variance is needed: the variance of one reward around its mean")
        _positive(noise_variance=self.noise_variance)

    @property
    def law(self) -> Law:
        """The law of rewards."""
        return self.model.law

    @property
    def noise(self) -> Any:
        """How rewards scatter."""
        return self.law.quick_noise(self.noise_variance)

    @cached_property
    def offset(self) -> float:
        """The predictor of an average arm."""
        return 0.0 if self.base is None else self.goal.turned(self.law.inverse(self.base))

    @cached_property
    def kinds(self) -> tuple[Any, Any]:
        """The arms that differ `(U, d)`, and which of them each arm is `(K,)`: equal arms are equally good."""
        return self.model.distinct(self.features)

    @cached_property
    def basis(self) -> Any:
        """An orthonormal basis of the span `(U, r)`."""
        coordinates = span_coordinates(self.kinds[0])
        return coordinates[:, np.any(coordinates != 0, axis=0)]

    @cached_property
    def prepared(self) -> Any:
        """What the rivals need of the basis, kept since every block needs it."""
        return self.rivals.prepare(self.basis)

    @cached_property
    def level(self) -> bool:
        """Whether all arms can be raised by the same amount."""
        ones = np.ones(len(self.basis))
        return bool(np.allclose(self.basis @ (self.basis.T @ ones), ones, atol=1e-8))

    @property
    def dimension(self) -> int:
        """The number of directions in which the arms differ or lie."""
        return int(self.basis.shape[1])

    def predictors(self, size: int, rng: np.random.Generator) -> Any:
        """Return x'θ of the arms that differ in `size` worlds, `(size, U)`."""
        if self.gap is None:
            return self.offset + self._coefficients(size, rng) @ self.kinds[0].T
        found, count = [], 0
        for _ in range(TRIES):
            wave = self.rivals.draw(self.prepared, max(size, WAVE), rng)
            wave -= wave.mean(axis=-1, keepdims=True) * self.level
            scale, fits = self._scale(wave)
            found.append(self.offset + scale[fits, None] * wave[fits])
            count += int(fits.sum())
            if count >= size:
                return np.concatenate(found)[:size]
        widest = f"{self._apart(wave, self._steps(wave)).max():.2g}"
        raise InputError(f"gap {self.gap:g} is out of reach of these arms, where {widest} is rare; take a smaller one")

    def draw(self, size: int, rng: np.random.Generator) -> Bandit:
        """Return a stack of `size` worlds with the arms in random order, another in each."""
        means = self.law.value(self.predictors(size, rng)[:, self.kinds[1]])
        features = np.broadcast_to(self.features, (size, *self.features.shape))
        return Bandit(features, means, self.noise).shuffled(rng)

    def _coefficients(self, size: int, rng: np.random.Generator) -> Any:
        shape = (size, self.kinds[0].shape[1])
        if not callable(self.prior):
            return math.sqrt(self.prior or 0.0) * rng.standard_normal(shape)
        drawn = np.asarray(self.prior(size, rng), dtype=np.float64)
        if drawn.shape != shape or not np.isfinite(drawn).all():
            raise InputError(f"prior must return finite coefficients of shape {shape}; it returned {drawn.shape}")
        return self.goal.turned(drawn)

    def _steps(self, wave: Any) -> Any:
        """Return factors `(65, size)` from 0 to where a predictor is REACH away from the base."""
        return np.linspace(0, 1, 65)[:, None] * REACH / np.abs(wave).max(axis=-1)

    def _apart(self, wave: Any, factor: Any) -> Any:
        """Return how far the best mean is above the second best, when each row is multiplied by a factor."""
        first, second = _best_two(wave)
        return np.subtract(*(self.law.value(self.offset + factor * end) for end in (first, second)))

    def _scale(self, wave: Any) -> tuple[Any, Any]:
        """Return by what to multiply each row for the gap, the smallest such factor, and which rows allow it."""
        scale = self.law.stretch(float(self.gap or 0), self.offset, *_best_two(wave), self._steps(wave))
        return scale, np.isfinite(scale)

    def hardness(self, size: int, rng: np.random.Generator) -> Any:
        """Return the gap as the theorem takes it in `size` worlds: Δ, or c_min times that of the predictors."""
        return self.law.hardness(self.gap, self.predictors(size, rng))


def _best_two(values: Any) -> tuple[Any, Any]:
    """Return the largest and the second largest of each row."""
    two = np.partition(values, -2, axis=-1)[..., -2:]
    return two[..., 1], two[..., 0]


def _positive(**values: float | None) -> None:
    for name, value in values.items():
        if value is not None:
            real(value, name, above=0)
