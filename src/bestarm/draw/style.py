"""What every picture and page shares: colours, figures, files written whole."""

import io
from pathlib import Path
from typing import Any

from bestarm.errors import InputError

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8A8A8A"  # Okabe and Ito: safe for the colour-blind
MOST = 30  # arms with a name on an axis


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
    ax.figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
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
