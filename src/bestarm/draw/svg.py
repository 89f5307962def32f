"""Charts as the text of an SVG: as wide as their page lets them be, their letters always of the same size.

Places from left to right are shares of the width, from top to bottom pixels. Colours are classes, which the style of
the page turns into its own, by day and by night: `ink`, `soft`, `rule`, `accent`, `good`.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bestarm.draw.page import Html, safe

LINE = 18.0  # pixels from a line of text to the next


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high` on places from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """Return the place of a value, at an end where it is beyond; that of no number is none."""
        span = self.high - self.low
        share = (value - self.low) / span if 0 < span < math.inf else value - value + 0.5
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start) if share == share else math.nan


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return round values between two others.

    >>> ticks(0.0, 0.9), ticks(-3, 7, most=3), ticks(2.0, 2.0)
    ([0.0, 0.2, 0.4, 0.6, 0.8], [0.0, 5.0], [2.0])
    """
    span = high - low
    if not 1e-300 < span < math.inf or span < 1e-12 * max(abs(low), abs(high)):
        return [low] if math.isfinite(low) else []
    power = 10.0 ** math.floor(math.log10(span / most))
    step = next((unit * power for unit in (1, 2, 5, 10) if span / (unit * power) <= most), 10 * power)
    return [float(f"{k * step:.12g}") for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def written(values: Sequence[float]) -> list[str]:
    """Return round values as short as tells them apart.

    >>> written([0.0, 0.5]), written([1000.0, 1500.0]), written([100000.01, 100000.02])
    (['0', '0.5'], ['1,000', '1,500'], ['100000.01', '100000.02'])
    """
    if all(value.is_integer() and abs(value) < 1e9 for value in map(float, values)):
        return [f"{value:,.0f}" for value in values]
    return next(said for digits in range(3, 18) if len(set(said := [f"{v:.{digits}g}" for v in values])) == len(values))


def chart(height: float, *pieces: str) -> Html:
    """Return a chart of so many pixels."""
    return Html(f'<svg class="chart" style="height:{height:.0f}px">{"".join(pieces)}</svg>')


def line(x1: float, y1: float, x2: float, y2: float, colour: str, kind: str = "") -> str:
    """Return a line between two points, nothing where one is nowhere."""
    if math.isnan(x1 + y1 + x2 + y2):
        return ""
    return f'<line class="{colour} {kind}" x1="{x1:.2f}%" y1="{y1:.1f}" x2="{x2:.2f}%" y2="{y2:.1f}"/>'


def dot(x: float, y: float, colour: str) -> str:
    """Return a round mark, nothing where it is nowhere."""
    return "" if math.isnan(x + y) else f'<circle class="{colour}" cx="{x:.2f}%" cy="{y:.1f}" r="3.5"/>'


def square(x: float, y: float, colour: str) -> str:
    """Return a square mark."""
    return f'<rect class="{colour}" x="{x:.2f}%" y="{y:.1f}" width="7" height="7" transform="translate(-3.5 -3.5)"/>'


def cross(x: float, y: float, colour: str) -> str:
    """Return a mark that crosses out."""
    return f'<svg class="{colour}" x="{x:.2f}%" y="{y:.1f}" overflow="visible"><path d="M-4-4 4 4M-4 4 4-4"/></svg>'


def bar(x1: float, x2: float, y: float, colour: str) -> str:
    """Return a bar from one place to another, around a height."""
    return f'<rect class="{colour}" x="{x1:.2f}%" y="{y - 5:.1f}" width="{max(x2 - x1, 0):.2f}%" height="10"/>'


def text(x: float, y: float, words: str, kind: str = "ink", anchor: str = "start", room: float = 0.0) -> str:
    """Return words that start, end or have their middle at a place; what needs more `room` than is given is cut off."""
    if room:
        said = text(0, LINE / 2, words, kind, anchor)
        return f'<svg x="{x:.2f}%" y="{y - LINE / 2:.1f}" width="{room:.2f}%" height="{LINE:.0f}">{said}</svg>'
    place = f'x="{x:.2f}%" y="{y:.1f}" text-anchor="{anchor}" dominant-baseline="central"'
    return f'<text class="{kind}" {place}>{safe(words)}</text>'


def path(points: Iterable[tuple[float, float]], height: float, colour: str) -> str:
    """Return a line through points."""
    through = "L".join(f"{10 * x:.1f} {y:.1f}" for x, y in points)
    return (
        f'<svg class="{colour}" width="100%" height="{height:.0f}" viewBox="0 0 1000 {height:.0f}" '
        f'preserveAspectRatio="none"><path d="M{through}"/></svg>'
    )


def named(words: str, *pieces: str) -> str:
    """Return pieces that say what they are to whoever points at them."""
    return f"<g><title>{safe(words)}</title>{''.join(pieces)}</g>"


def below(axis: Axis, values: Sequence[float], labels: Sequence[str], top: float, bottom: float) -> str:
    """Return lines from top to bottom at values of an axis, and what they are below."""
    drawn = []
    for value, label in zip(values, labels, strict=True):
        x = axis.at(value)
        anchor = "start" if x < 3 else "end" if x > 97 else "middle"
        drawn += [line(x, top, x, bottom, "grid"), text(x, bottom + 10, label, "soft", anchor)]
    return "".join(drawn)


def beside(axis: Axis, values: Sequence[float], labels: Sequence[str]) -> str:
    """Return lines across the chart at values of an axis, each with what it is above its beginning."""
    drawn = []
    for value, label in zip(values, labels, strict=True):
        y = axis.at(value)
        drawn += [line(0, y, 100, y, "grid"), text(0, y - 8, label, "soft")]
    return "".join(drawn)
