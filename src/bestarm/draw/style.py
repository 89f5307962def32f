"""What every picture and page shares: colours, figures, files written whole."""

import io
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from bestarm.errors import InputError

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8A8A8A"  # Okabe and Ito: safe for the colour-blind
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#56B4E9", "#B8860B", "#000000", "#7F7F7F", "#8B4513", "#6A3D9A")
MARKS = "osD^vP*Xh<>p8"
MOST = 30  # arms with a name on an axis
LONG = 28  # characters of a name on an axis


def pen(number: int) -> dict[str, Any]:
    """Return colour, mark and widths of one line of several with error bars."""
    line = {"ls": "-" if number < len(COLOURS) else "--", "lw": 1.3, "elinewidth": 0.8, "capsize": 2, "ms": 4}
    return {"color": COLOURS[number % len(COLOURS)], "marker": MARKS[number % len(MARKS)], **line}


def ink(colour: str) -> tuple[float, ...]:
    """Return a colour for words on white: the same, or so much darker that its contrast is 4.5."""
    from matplotlib.colors import to_rgb

    rgb = np.array(to_rgb(colour))
    while 1.05 / (0.05 + LIGHT @ np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)) < 4.5:
        rgb = 0.97 * rgb
    return tuple(rgb.tolist())


LIGHT = np.array([0.2126, 0.7152, 0.0722])  # how bright red, green and blue are


def figure(size: tuple[float, float]) -> Any:
    """Return an empty figure."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("figures need matplotlib: pip install 'bestarm-bai[plot]'") from error
    return Figure(figsize=size, layout="constrained")


def axes(size: tuple[float, float]) -> Any:
    """Return axes in a figure of their own."""
    return panels(size, 1)[0]


def panels(size: tuple[float, float], *shape: int, **how: Any) -> Any:
    """Return the axes `(n,)` of a figure with rows and columns of them, or with a row of columns."""
    made = np.atleast_1d(figure(size).subplots(*(shape if len(shape) > 1 else (1, *shape)), **how))
    for ax in made:
        ax.spines[["top", "right"]].set_visible(False)
        ax.title.set_fontsize(9.5)
    return made


def name_ticks(ax: Any, heights: Any, arms: Sequence[str], chosen: str) -> None:
    """Name the arms on the axis, the chosen one in bold."""
    ax.set_yticks(heights, [name(arm) for arm in arms], fontsize=8)
    for tick, arm in zip(ax.get_yticklabels(), arms, strict=True):
        tick.set_fontweight("bold" if arm == chosen else "normal")


def name(arm: str) -> str:
    """Return an arm's name short and plain enough for an axis."""
    plain = "".join(letter if letter.isprintable() else "·" for letter in arm)
    return plain if len(plain) <= LONG else plain[: LONG - 1] + "…"


def png(ax: Any) -> bytes:
    """Return the figure of some axes as a PNG."""
    buffer = io.BytesIO()
    ax.figure.savefig(buffer, format="png", dpi=130)
    return buffer.getvalue()


def writable(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file to write, or refuse one that cannot be: no folder is made for it."""
    target = Path(path)
    try:
        _writable(target, target.parent)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}") from error
    return target


def _writable(target: Path, folder: Path) -> None:
    if not folder.is_dir():
        missing = f"there is no folder {folder}; mkdir -p {folder} makes it"
        raise InputError(f"{target} cannot be written: {f'{folder} is no folder' if folder.exists() else missing}")
    if target.is_dir():
        raise InputError(f"{target} cannot be written: it is a folder")
    place = target if target.exists() else folder
    if not os.access(place, os.W_OK):
        raise InputError(f"{target} cannot be written: this user may not write to {place}")


def can_draw() -> bool:
    """Return whether there is matplotlib, which figures need."""
    return find_spec("matplotlib") is not None


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    unfinished = path.with_name(f".{path.name}.part")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
