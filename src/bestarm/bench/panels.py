"""The paper's figures as SVG: GSE in colour, rivals grey and named where their lines end, differences underneath.

A drawing is 360 wide, so that it can be read on a telephone, its panels one below the other. Rows in, text out: no
computing, no library. A file knows day and night itself; on a page that turns colours over at night it must not.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

INK, SOFT, HERO = ("#1c1c1c", "#e8e8e8"), ("#595959", "#b4b4b4"), ("#00528a", "#6cb8f0")  # by day, by night
LINE = ("#d0d0d0", "#444444")
WIDTH, LEFT, RIGHT, ACCURACY, DIFFERENCE, GAP = 360, 34, 138, 200, 150, 11
DASHES = ("", "5 3", "1.5 2.5", "7 2 1.5 2", "3 2", "9 3", "1 4", "6 2 2 2 2 2")
NIGHT = "@media (prefers-color-scheme: dark)"


@dataclass(frozen=True)
class Curve:
    """A line of a plot: its name, where it goes (x, value, low, high), and whether it is "hero", "ours" or "rival"."""

    name: str
    kind: str
    points: Sequence[tuple[float, float, float, float]]


@dataclass(frozen=True)
class Drawn:
    """A panel: what it shows, accuracies, and differences in points, said to be `against` what."""

    title: str
    accuracy: Sequence[Curve]
    difference: Sequence[Curve]
    against: str


def style(night: bool) -> str:
    """Return the colours of a drawing; those of the `night` too, where it stands alone."""

    def colours(at: int) -> str:
        return (
            f"text{{fill:{INK[at]}}}.soft,.rival text{{fill:{SOFT[at]}}}.rival{{stroke:{SOFT[at]}}}"
            f".ours,.hero{{stroke:{HERO[at]}}}.ours text,.hero text{{fill:{HERO[at]}}}.grid{{stroke:{LINE[at]}}}"
        )

    base = (
        "text{font:11px system-ui,sans-serif;stroke:none}path,line{fill:none}.hero{stroke-width:2.6}"
        ".ours{stroke-width:1.2}.rival{stroke-width:1.2}.whisker{stroke-width:.9;stroke-dasharray:none}"
        ".lead{stroke-width:.5;stroke-dasharray:none}.hero text,.title{font-weight:650}"
    )
    return f"<style>{base}{colours(0)}{f'{NIGHT}{{{colours(1)}}}' if night else ''}</style>"


def drawn(panels: Sequence[Drawn], ticks: Sequence[tuple[float, str]], x: str, night: bool = False) -> str:
    """Return a drawing of panels over the same axis `x`, with its `ticks` (place, name)."""
    each = ACCURACY + DIFFERENCE + 106
    parts = []
    for number, panel in enumerate(panels):
        top = number * each
        most = _most(panel.accuracy)
        parts.append(f'<text class="title" x="4" y="{top + 14}">{escape(panel.title)}, accuracy</text>')
        parts.append(_plot(panel.accuracy, ticks, top + 24, ACCURACY, (0.0, most), _share, "", x))
        reach = _reach(panel.difference)
        low = top + 24 + ACCURACY + 46
        parts.append(_plot(panel.difference, ticks, low, DIFFERENCE, (-reach, reach), _points, panel.against, x))
    height = each * len(panels)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">'
        f"{style(night)}{''.join(parts)}</svg>\n"
    )


def _share(value: float) -> str:
    return f"{value:g}"


def _points(value: float) -> str:
    return f"{100 * value:+.0f}".replace("-", "−") if value else "0"


def _most(curves: Iterable[Curve]) -> float:
    """Return 0.4, 0.6, 0.8 or 1: no accuracy lies above."""
    most = max((values[2] for curve in curves for _, *values in curve.points), default=0.0)
    return next(end for end in (0.4, 0.6, 0.8, 1.0) if end >= min(most, 1.0))


def _reach(curves: Iterable[Curve]) -> float:
    """Return a round number no difference lies beyond; 0.1 at least."""
    most = max((abs(v) for curve in curves for _, *values in curve.points for v in values), default=0.0)
    return next(reach for reach in (0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 9.9) if reach >= min(most, 1.0))


def _plot(
    curves: Sequence[Curve],
    ticks: Sequence[tuple[float, str]],
    top: float,
    height: float,
    ends: tuple[float, float],
    told: Callable[[float], str],
    what: str,
    x: str,
) -> str:
    low, high = ends
    right = WIDTH - RIGHT
    span = (ticks[-1][0] - ticks[0][0] if ticks else 0.0) or 1.0

    def across(value: float) -> float:
        return LEFT + 8 + (right - LEFT - 16) * ((value - ticks[0][0]) / span if len(ticks) > 1 else 0.5)

    def down(value: float) -> float:
        return top + height * (1 - (min(max(value, low), high) - low) / (high - low))

    parts = [f'<text class="soft" x="{LEFT}" y="{top - 4:g}">{escape(what)}</text>'] if what else []
    for i in range(5):
        value = low + (high - low) * i / 4
        parts.append(
            f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{down(value):.1f}" y2="{down(value):.1f}"/>'
            f'<text class="soft" x="{LEFT - 4}" y="{down(value) + 4:.1f}" text-anchor="end">{told(value)}</text>'
        )
    last = float(-WIDTH)
    for place, name in ticks:
        if across(place) - last < 7 * len(name):
            continue  # its name would run into the one before
        last = across(place)
        parts.append(
            f'<text class="soft" x="{across(place):.1f}" y="{top + height + 14:g}" text-anchor="middle">{name}</text>'
        )
    middle = (LEFT + right) / 2
    parts.append(f'<text class="soft" x="{middle:g}" y="{top + height + 28:g}" text-anchor="middle">{escape(x)}</text>')
    heights = _apart([down(curve.points[-1][1]) for curve in curves], top, top + height)
    for number, (curve, at) in enumerate(zip(curves, heights, strict=True)):
        shift = (number - (len(curves) - 1) / 2) * 1.6  # whiskers side by side
        parts.append(_curve(curve, [across(p[0]) + shift for p in curve.points], down, right, at, number))
    return "".join(parts)


def _curve(
    curve: Curve, xs: Sequence[float], down: Callable[[float], float], right: float, at: float, number: int
) -> str:
    dashes = "" if curve.kind == "hero" else DASHES[number % len(DASHES)]
    path = "M" + "L".join(f"{x:.1f} {down(p[1]):.1f}" for x, p in zip(xs, curve.points, strict=True))
    whiskers = "".join(f"M{x:.1f} {down(p[2]):.1f}V{down(p[3]):.1f}" for x, p in zip(xs, curve.points, strict=True))
    end = down(curve.points[-1][1])
    dots = "".join(f"M{x - 1.5:.1f} {down(p[1]):.1f}h3" for x, p in zip(xs, curve.points, strict=True))
    return (
        f'<g class="{curve.kind}"><path d="{path}"{f" stroke-dasharray={chr(34)}{dashes}{chr(34)}" if dashes else ""}/>'
        f'<path class="whisker" d="{whiskers}{dots}"/>'
        f'<path class="lead" d="M{xs[-1] + 2:.1f} {end:.1f}L{right + 3} {at:.1f}"/>'
        f'<text x="{right + 5}" y="{at + 4:.1f}">{escape(curve.name)}</text></g>'
    )


def _apart(wanted: Sequence[float], top: float, bottom: float) -> list[float]:
    """Return heights near those wanted, in their order, none nearer to another than a line of text."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed: list[float] = []
    for i in order:
        placed.append(max(wanted[i], placed[-1] + GAP if placed else top - 4))
    over = max(0.0, placed[-1] - bottom - 4) if placed else 0.0
    for place in range(len(placed) - 1, -1, -1):  # push back up what ran over the end
        limit = bottom + 4 if place == len(placed) - 1 else placed[place + 1] - GAP
        placed[place] = min(placed[place], limit) if over else placed[place]
    return [height for _, height in sorted(zip(order, placed, strict=True))]
