"""Account -> figure; no computing. Every drawer takes `ax=None` and returns the Axes; none shows anything."""

from typing import Any

import numpy as np

from bestarm.account import Account
from bestarm.errors import InputError

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8A8A8A"  # Okabe and Ito: safe for the colour-blind
MOST = 30  # arms with a name on an axis


def _axes(ax: Any, size: tuple[float, float]) -> Any:
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("figures need matplotlib: pip install 'bestarm-bai[plot]'") from error
    made = Figure(figsize=size, layout="constrained").subplots()
    made.spines[["top", "right"]].set_visible(False)
    return made


def draw_estimates(account: Account, ax: Any = None) -> Any:
    """Draw the estimates of every stage with 95 % intervals, the survivors in colour; without stages, the last ones."""
    if not account.stages:
        return _draw_last(account, ax)
    ax = _axes(ax, (9, 4))
    for stage in account.stages:
        shown = stage.estimates[:MOST]
        spread = np.linspace(-0.38, 0.38, len(shown)) if len(shown) > 1 else [0.0]
        for place, estimate in zip(spread, shown, strict=True):
            colour = ORANGE if estimate.arm == account.best.arm else BLUE if estimate.arm in stage.kept else GREY
            at = stage.number + place
            if np.isfinite(estimate.low) and np.isfinite(estimate.high):
                ax.plot([at, at], [estimate.low, estimate.high], color=colour, lw=1, alpha=0.6)
            ax.plot(at, estimate.mean, "o", ms=4 if colour == ORANGE else 2.5, color=colour)
    last = account.stages[-1]
    at = last.number - 0.38 if len(last.estimates) > 1 else last.number
    label = {"ha": "right", "va": "bottom", "textcoords": "offset points", "color": ORANGE}
    ax.annotate(account.best.arm, (at, account.best.mean), (-6, 6), **label)
    ax.set_xticks([stage.number for stage in account.stages])
    ax.set(xlabel="stage", ylabel="estimated mean", title="Estimates by stage, best first, with 95 % intervals")
    return ax


def _draw_last(account: Account, ax: Any) -> Any:
    """Draw the last estimates of the arms that look best, with 95 % intervals, best on top."""
    shown = account.estimates[:MOST][::-1]
    ax = _axes(ax, (9, 1 + 0.2 * len(shown)))
    for height, estimate in enumerate(shown):
        colour = _colour(account, estimate.arm)
        if np.isfinite(estimate.low) and np.isfinite(estimate.high):
            ax.plot([estimate.low, estimate.high], [height, height], color=colour, lw=1.5, alpha=0.6)
        ax.plot(estimate.mean, height, "o", ms=4, color=colour)
    ax.set_yticks(range(len(shown)), [estimate.arm for estimate in shown], fontsize=8)
    some = f", the best {MOST} of {account.arms:,} arms" if len(account.estimates) > MOST else ""
    ax.set(xlabel="estimated mean", title=f"Estimates with 95 % intervals{some}")
    return ax


def draw_pulls(account: Account, ax: Any = None) -> Any:
    """Draw how often each arm was pulled, most first."""
    pulled = sorted(((arm, n) for arm, n in account.counts.items() if n), key=lambda item: -item[1])
    ranked = pulled[:MOST][::-1]
    ax = _axes(ax, (9, 1 + 0.2 * len(ranked)))
    ax.barh(range(len(ranked)), [n for _, n in ranked], color=[_colour(account, arm) for arm, _ in ranked])
    ax.set_yticks(range(len(ranked)), [arm for arm, _ in ranked], fontsize=8)
    some = f", the {MOST} most pulled" if len(pulled) > MOST else ""
    ax.set(xlabel="pulls", title=f"Pulls by arm: {len(pulled)} of {account.arms} arms were pulled{some}")
    return ax


def draw_elimination(account: Account, ax: Any = None) -> Any:
    """Draw in which stage each arm went, the last to go on top."""
    gone = [(arm, stage.number) for stage in account.stages for arm in reversed(stage.eliminated)]
    shown = [*gone, (account.best.arm, len(account.stages) + 0.3)][-MOST:]
    ax = _axes(ax, (9, 1.2 + 0.2 * len(shown)))
    for height, (arm, until) in enumerate(shown):
        ax.plot([0, until], [height, height], color=_colour(account, arm), lw=2)
        if arm != account.best.arm:
            ax.plot(until, height, "x", color=BLUE, ms=5)
    ax.set_yticks(range(len(shown)), [arm for arm, _ in shown], fontsize=8)
    left = [f"{stage.number}\n{len(stage.kept)} left" for stage in account.stages]
    ax.set_xticks(range(len(left) + 1), [f"0\n{account.arms} arms", *left])
    ax.set(xlabel="stage", title="Order of elimination" + (f", the last {MOST} arms" if len(gone) >= MOST else ""))
    return ax


def _colour(account: Account, arm: str) -> str:
    return ORANGE if arm == account.best.arm else BLUE
