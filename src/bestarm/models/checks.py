"""Tests of a fit against what repeats of the same arm say.

F = Σ_i n_i (ȳ_i − μ̂_i)² / f  ÷  Σ_ij (y_ij − ȳ_i)² / Σ_i (n_i − 1), f the arms measured less the coefficients   (1)
χ² = Σ_i (S_i − n_i μ̂_i)² / n_i v_i                                                                      (2)
"""

from dataclasses import dataclass

import numpy as np

from bestarm.core import Array, Tally

LEVEL = 0.01  # a fit is called bad if data as odd as these come less often than this from a model that holds


@dataclass(frozen=True)
class FitCheck:
    """How well a model fits. `p` is None where the data cannot tell, and `words` say why."""

    words: str
    statistic: float | None = None
    p: float | None = None

    @property
    def bad(self) -> bool:
        return self.p is not None and self.p < LEVEL


def rank_of(features: Array) -> int:
    """Return the rank of features `(m, d)`, 0 of none."""
    return int(np.linalg.matrix_rank(features)) if len(features) else 0


def scatter_of_means(rank: int, fit: Array, tally: Tally, noise_variance: float | None) -> FitCheck:
    """Compare the scatter of the arms' means about the fit with that of repeats, or with the noise where it is told."""
    from scipy.special import chdtrc, fdtrc

    pulled = tally.counts > 0
    counts, sums = tally.counts[pulled], tally.sums[pulled]
    free, repeats = int(pulled.sum()) - rank, float(np.sum(counts - 1))
    if free < 1:
        return FitCheck("cannot be checked: no more arms were measured than there are coefficients")
    about, seen = float(tally.residual(tally.level).sum()), float(tally.squares.sum())
    lack = float(np.sum(counts * (sums / counts - fit[pulled]) ** 2))
    if lack <= max(1e-12 * about, 1e-24 * seen):  # rounding
        return FitCheck(f"the {int(pulled.sum())} arms measured lie on the model", 0.0, 1.0)
    if noise_variance is not None and noise_variance > 0:
        p = float(chdtrc(free, lack / noise_variance))
        return FitCheck(f"χ² = {lack / noise_variance:.3g} on {_degrees(free)}", lack / noise_variance, p)
    if repeats < 1:
        return FitCheck("cannot be checked: no arm was measured twice and the noise is unknown")
    pure = max(float(tally.within.sum()), 1e-14 * (about + lack))
    ratio = (lack / free) / (pure / repeats)  # Eq. 1
    return FitCheck(
        f"F = {ratio:.3g} on {free} and {repeats:.0f} degrees of freedom", ratio, float(fdtrc(free, repeats, ratio))
    )


def pearson(rank: int, fit: Array, variance: Array, tally: Tally) -> FitCheck:
    """Compare sums with what was expected, over the arms measured often enough for a normal approximation."""
    from scipy.special import chdtrc

    enough = tally.counts * variance >= 2.5  # about three of the rarer outcome expected
    free = int(enough.sum()) - rank
    if free < 1:
        return FitCheck("cannot be checked: too few arms were measured often enough")
    residual = (tally.sums - tally.counts * fit)[enough]
    statistic = float(np.sum(residual**2 / (tally.counts * variance)[enough]))  # Eq. 2
    return FitCheck(f"χ² = {statistic:.3g} on {_degrees(free)}", statistic, float(chdtrc(free, statistic)))


def _degrees(free: int) -> str:
    return f"{free} degree{'s' if free > 1 else ''} of freedom"
