"""What every picture and page shares: colours, the look of a page, numbers as people read them, files written whole."""

import io
from pathlib import Path
from typing import Any

from bestarm.errors import InputError

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8A8A8A"  # Okabe and Ito: safe for the colour-blind
MOST = 30  # arms with a name on an axis

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1c1c1c; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; font-weight: 500; margin: 0; color: #555; }
.answer { font-size: 2.2rem; font-weight: 650; color: #a84500; margin: .2rem 0 0; overflow-wrap: anywhere; }
.sub { color: #444; margin: .1rem 0 1.2rem; }
.facts { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .8rem; margin: 1.2rem 0; }
.facts div { border-top: 3px solid #0072B2; padding-top: .3rem; }
.facts b { display: block; font-size: 1.25rem; overflow-wrap: anywhere; }
.facts span { color: #555; font-size: .85rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; margin: 1rem 0; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #ddd; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
svg { width: 100%; height: auto; }
details { margin: 1rem 0; color: #444; } pre { white-space: pre-wrap; font-size: .8rem; }
@media print { details { display: none; } body { margin: 0; } }
"""


def number(value: float | None) -> str:
    """Return a number as people read it.

    >>> number(0.123456), number(None), number(float("nan")), number(123456.0)
    ('0.123', '–', '–', '1.23e+05')
    """
    return "–" if value is None or value != value else f"{value:.3g}"


def figure(size: tuple[float, float]) -> Any:
    """Return an empty figure."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("figures need matplotlib: pip install 'bestarm-bai[plot]'") from error
    return Figure(figsize=size, layout="constrained")


def axes(size: tuple[float, float]) -> Any:
    """Return axes in a figure of their own."""
    made = figure(size).subplots()
    made.spines[["top", "right"]].set_visible(False)
    return made


def svg(ax: Any) -> str:
    """Return the figure of some axes as the text of an SVG."""
    buffer = io.StringIO()
    ax.figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def png(ax: Any) -> bytes:
    """Return the figure of some axes as a PNG."""
    buffer = io.BytesIO()
    ax.figure.savefig(buffer, format="png", dpi=130)
    return buffer.getvalue()


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.part")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
