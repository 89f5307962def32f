"""One self-contained page, or one picture, for a run."""

import io
import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from bestarm import plots
from bestarm.account import Account
from bestarm.errors import InputError

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


FIGURES = (plots.draw_estimates, plots.draw_pulls, plots.draw_elimination)


def _figures(account: Account) -> tuple[Any, ...]:
    """Return what there is to draw: without stages nobody was eliminated in one."""
    return FIGURES if account.stages else FIGURES[:2] if account.estimates else FIGURES[1:2]


def write(account: Account, path: Path, about: Mapping[str, Any]) -> None:
    """Write the report of a run to an .html or .png file; `about` is what one needs to run it again."""
    kind = path.suffix.lower()
    if kind == ".html":
        data = page(account, about).encode("utf-8")
    elif kind == ".png":
        data = picture(account)
    else:
        raise InputError(f"a report is a .html or a .png file; given {path.name!r}")
    write_whole(path, data)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.part")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def picture(account: Account) -> bytes:
    """Return the figures of a run as one PNG."""
    drawers = _figures(account)
    figure = _figure((9, 1 + 5 * len(drawers)))
    panels = figure.subplots(len(drawers), 1, squeeze=False, height_ratios=[4, 5, 5][: len(drawers)])[:, 0]
    for draw, ax in zip(drawers, panels, strict=True):
        ax.spines[["top", "right"]].set_visible(False)
        draw(account, ax)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=130)
    return buffer.getvalue()


def page(account: Account, about: Mapping[str, Any]) -> str:
    """Return the report as one HTML page without links, scripts or outside files."""
    best, second = account.best, account.runner_up
    facts = [
        (f"{number(best.mean)}", f"estimated mean, 95 % interval {number(best.low)} to {number(best.high)}"),
        (
            escape(second.arm) if second else "none",
            f"runner-up, {number(second.mean)}" if second else "there is one arm",
        ),
        (f"{account.spent:,} of {account.budget:,}", "pulls spent"),
        (f"{account.arms:,}", f"arms in {account.dimension} dimensions"),
        (number(account.bound), _bound_words(account.bound)),
    ]
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>bestarm: {escape(best.arm)}</title><style>{STYLE}</style></head><body>
<h1>The best arm is</h1><p class="answer">{escape(best.arm)}</p>
<p class="sub">{_verdict(account)}{_believed(account)}</p>
<div class="facts">{"".join(f"<div><b>{value}</b><span>{label}</span></div>" for value, label in facts)}</div>
{"".join(_svg(draw(account)) for draw in _figures(account))}
{_stages(account)}
<details><summary>Everything needed to run this again</summary>
<pre>{escape(json.dumps(about, indent=1))}</pre></details>
</body></html>
"""


def number(value: float | None) -> str:
    """Return a number as people read it.

    >>> number(0.123456), number(None), number(float("nan")), number(123456.0)
    ('0.123', '–', '–', '1.23e+05')
    """
    return "–" if value is None or value != value else f"{value:.3g}"


def _verdict(account: Account) -> str:
    best, second = account.best, account.runner_up
    if second is None:
        return "There was nothing to compare it with."
    if not best.low > second.high:
        return f"Its interval overlaps that of {escape(second.arm)}: the two are hard to tell apart on these pulls."
    return f"Its interval lies clear of that of {escape(second.arm)}."


def _believed(account: Account) -> str:
    if account.believes is None:
        return ""
    return f" What the rewards say of the features: {escape(account.believes)}."


def _bound_words(bound: float | None) -> str:
    if bound is None:
        return "no bound known for this policy"
    if bound >= 1:
        return "bound on the error: the theorem says nothing at this budget"
    return "bound on the error, were the gap as estimated"


def _stages(account: Account) -> str:
    if not account.stages:
        return ""
    rows = "".join(
        f'<tr><td class="n">{s.number}</td><td class="n">{sum(s.pulls.values()):,}</td>'
        f'<td class="n">{len(s.pulls):,}</td>'
        f'<td class="n">{len(s.kept):,} of {len(s.estimates):,}</td><td>{escape(s.estimates[0].arm)}</td>'
        f'<td class="n">{number(s.estimates[0].mean)}</td></tr>'
        for s in account.stages
    )
    heads = ("stage", "pulls", "arms pulled", "kept", "leader", "its estimate")
    marks = "".join(f'<th class="{"" if head == "leader" else "n"}">{head}</th>' for head in heads)
    return f"<table><thead><tr>{marks}</tr></thead><tbody>{rows}</tbody></table>"


def _figure(size: tuple[float, float]) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InputError("a report needs matplotlib: pip install 'bestarm-bai[plot]'") from error
    return Figure(figsize=size, layout="constrained")


def _svg(ax: Any) -> str:
    buffer = io.StringIO()
    ax.figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
