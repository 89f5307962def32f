"""One page for people who were not there: no scripts or outside files, no link but within; for dark, small and paper.

A page is made of pieces: `page(title, head(...), facts(...), section(title, note, drawing(...), table(...)))`. Each is
`Html`; every other text is escaped wherever it stands.

>>> section("Costs", "Of two arms.", table(["arm", "cost"], [["<a>", 3]], right=["cost"]))
'<h2>Costs</h2><p class="note">Of two arms.</p><div class="wide"><table><thead><tr><th>arm</th><th class="n">cost</th>\
</tr></thead><tbody><tr><td>&lt;a&gt;</td><td class="n">3</td></tr></tbody></table></div>'
"""

import base64
from collections.abc import Collection, Iterable, Sequence
from html import escape
from typing import Any

LIGHT = """--paper: #fff; --ink: #1c1c1c; --soft: #555; --accent: #a84500; --good: #00694d; --line: #ddd;
--wash: #e8e8e8; --warm: #fff6ef; --rule: #0072b2; color-scheme: light;"""
DARK = """--paper: #141414; --ink: #e8e8e8; --soft: #b4b4b4; --accent: #ff9d5c; --good: #4fd1a5; --line: #3a3a3a;
--wash: #3a3a3a; --warm: #2b1d12; --rule: #56b4e9; color-scheme: dark;"""
STYLE = f"""
:root {{ {LIGHT} }}
@media screen and (prefers-color-scheme: dark) {{
  :root {{ {DARK} }} img {{ filter: invert(.92) hue-rotate(180deg); }}
}}
* {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
body {{ font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word; }}
h1 {{ font-size: 1.3rem; font-weight: 500; margin: 0; color: var(--soft); }}
h2 {{ font-size: 1.1rem; font-weight: 600; margin: 2rem 0 .2rem; padding-top: 1rem;
  border-top: 1px solid var(--line); }}
.answer {{ font-size: 2.2rem; font-weight: 650; line-height: 1.25; color: var(--accent); margin: .3rem 0 .2rem;
  overflow-wrap: anywhere; }}
.sub {{ color: var(--soft); margin: .1rem 0 1.2rem; }}
.note {{ color: var(--soft); font-size: .9rem; margin: .1rem 0 .6rem; }}
.wary {{ border-left: 4px solid var(--accent); padding: .3rem .9rem; margin: .8rem 0; background: var(--warm);
  overflow-wrap: anywhere; }}
.bar {{ height: .9rem; background: var(--wash); margin: .4rem 0; }}
.bar i {{ display: block; height: 100%; background: var(--accent); }}
.facts {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .8rem; margin: 1.2rem 0; }}
.facts div {{ border-top: 3px solid var(--rule); padding-top: .3rem; }}
.facts b {{ display: block; font-size: 1.25rem; overflow-wrap: anywhere; }}
.facts span {{ color: var(--soft); font-size: .85rem; }}
.good {{ color: var(--good); }} .bad {{ color: var(--accent); }}
.beside {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(18rem, 100%), 1fr)); gap: 1rem; }}
a {{ color: inherit; }} .wide, figure {{ overflow-x: auto; }}
table {{ border-collapse: collapse; width: 100%; font-size: .9rem; margin: 1rem 0; }}
th, td {{ text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }}
td {{ overflow-wrap: anywhere; min-width: 5rem; }} tr {{ break-inside: avoid; }}
td.n, th.n {{ text-align: right; font-variant-numeric: tabular-nums; overflow-wrap: normal; }}
td.n {{ white-space: nowrap; min-width: 0; }}
figure {{ margin: 0; break-inside: avoid; }} figure.small {{ max-width: 32rem; }}
.charts {{ display: flex; flex-wrap: wrap; gap: 1rem 2rem; overflow: visible; }}
.chart {{ flex: 1 1 19rem; min-width: 0; width: 100%; display: block; fill: currentColor; stroke: currentColor; }}
.chart text {{ font-size: 12px; stroke: none; }} .chart path {{ fill: none; vector-effect: non-scaling-stroke; }}
.chart path {{ stroke-width: 2; }} .chart line {{ stroke-width: 1.5; }}
.chart line.wide {{ stroke-width: 3; stroke-linecap: round; }}
.chart line.dashed {{ stroke-width: 1; stroke-dasharray: 4 3; }} .chart .grid {{ color: var(--line); stroke-width: 1; }}
.chart .ink {{ color: var(--ink); }} .chart .soft {{ color: var(--soft); }} .chart .rule {{ color: var(--rule); }}
.chart .accent {{ color: var(--accent); }} .chart .good {{ color: var(--good); }} .chart .wash {{ color: var(--wash); }}
.chart rect {{ stroke: none; }} .chart .strong {{ font-weight: 650; }}
img {{ max-width: 100%; min-width: 36rem; }}
@media (min-width: 76rem) {{ figure:has(img) {{ margin: 0 -7.5rem; text-align: center; }} }}
details {{ margin: 1rem 0; color: var(--soft); }} pre {{ white-space: pre-wrap; font-size: .8rem; }}
@media (max-width: 30rem) {{
  body {{ margin-top: 1rem; }} table {{ font-size: .8rem; }} th, td {{ padding: .3rem .25rem; }}
}}
@media print {{
  body {{ max-width: none; margin: 0; font-size: 11pt; }} h2 {{ break-after: avoid; }} details {{ display: none; }}
  img {{ min-width: 0; }}
}}
"""


class Html(str):
    """A piece of a page; a text that is none is escaped."""

    __slots__ = ()


def safe(text: Any) -> Html:
    """Return anything fit for a page; what cannot be written in UTF-8 is replaced.

    >>> safe("a < b"), safe(safe("a < b"))
    ('a &lt; b', 'a &lt; b')
    """
    return text if isinstance(text, Html) else Html(escape(str(text).encode("utf-8", "replace").decode("utf-8")))


def joined(pieces: Iterable[Any]) -> Html:
    """Return pieces one after another."""
    return Html("".join(map(safe, pieces)))


def tagged(tag: str, *pieces: Any, kind: str = "") -> Html:
    """Return pieces in a tag."""
    opened = f'<{tag} class="{kind}">' if kind else f"<{tag}>"
    return Html(f"{opened}{joined(pieces)}</{tag}>")


def page(title: str, *pieces: str) -> str:
    """Return a whole page."""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{safe(title)}</title><style>{STYLE}</style></head><body>
{joined(pieces)}
</body></html>
"""


def head(title: str, answer: str = "", below: str = "") -> Html:
    """Return the beginning of a page: what it is about, the answer in large letters, a line or two."""
    large = [tagged("p", answer, kind="answer")] if answer else []
    return joined([tagged("h1", title), *large, tagged("p", below, kind="sub")])


def section(title: str, note: str, *pieces: str) -> Html:
    """Return pieces under a heading and a note; nothing where all of them are empty."""
    if pieces and not any(pieces):
        return Html()
    return joined([tagged("h2", title), *([tagged("p", note, kind="note")] if note else []), *pieces])


def warnings(sentences: Iterable[str]) -> Html:
    """Return what to be wary of."""
    return joined(tagged("p", sentence, kind="wary") for sentence in sentences)


def facts(pairs: Iterable[tuple[Any, str]]) -> Html:
    """Return short values in bold, each with what it is."""
    cells = (tagged("div", tagged("b", value), tagged("span", label)) for value, label in pairs)
    return tagged("div", *cells, kind="facts")


def bar(share: float, label: str) -> Html:
    """Return a bar that is filled to a share of its length."""
    filled = f'<i style="width:{100 * share:.1f}%"></i>'
    return Html(f'<div class="bar" role="img" aria-label="{safe(label)}">{filled}</div>')


def strong(text: Any, kind: str = "") -> Html:
    """Return a text in bold; of a `kind`, "good" or "bad", in its colour."""
    return tagged("b", text, kind=kind)


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], right: Collection[str] = ()) -> Html:
    """Return a table; the columns named in `right` are numbers."""
    kinds = ["n" if head in right else "" for head in heads]

    def line(tag: str, cells: Sequence[Any]) -> Html:
        return tagged("tr", *(tagged(tag, cell, kind=kind) for cell, kind in zip(cells, kinds, strict=True)))

    body = tagged("tbody", *(line("td", cells) for cells in rows))
    return tagged("div", tagged("table", tagged("thead", line("th", heads)), body), kind="wide")


def drawing(svg: str, label: str, small: bool = False) -> Html:
    """Return charts that are part of the page; their label is for those who do not see them. None: nothing."""
    kind = "charts small" if small else "charts"
    return Html(f'<figure class="{kind}" role="img" aria-label="{safe(label)}">{svg}</figure>') if svg else Html()


def picture(png: bytes, label: str) -> Html:
    """Return a picture that is part of the page."""
    data = base64.b64encode(png).decode()
    return tagged("figure", Html(f'<img alt="{safe(label)}" src="data:image/png;base64,{data}">'))


def bullets(lines: Iterable[str]) -> Html:
    """Return a list."""
    return tagged("ul", *(tagged("li", line) for line in lines))


def folded(summary: str, *pieces: str) -> Html:
    """Return pieces that are shown when they are asked for, and not on paper."""
    return tagged("details", tagged("summary", summary), *pieces)


def spot(name: str, piece: str) -> Html:
    """Return a piece that links of the page can lead to by a name."""
    return Html(f'<p id="{safe(name)}">{safe(piece)}</p>')


def link(name: str, text: str) -> Html:
    """Return a link to a spot of the same page."""
    return Html(f'<a href="#{safe(name)}">{safe(text)}</a>')


def beside(pieces: Iterable[str]) -> Html:
    """Return pieces side by side where there is room."""
    return tagged("div", *(tagged("div", piece) for piece in pieces), kind="beside")


def literal(text: str) -> Html:
    """Return a text as it is, spaces and lines included."""
    return tagged("pre", text)
