"""The report on the paper: what becomes of each sentence, by what evidence, and how much of it chance may explain."""

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from bestarm.bench.cited import LEFT_OUT
from bestarm.bench.claims import Claim
from bestarm.bench.evidence import CANNOT, FAILS, HOLDS, NOISE, NOT_RUN, NotRun, SettingView, sure
from bestarm.bench.paper import DFORM, FWG, PRINTED, SETTINGS, Figure
from bestarm.bench.runner import Results
from bestarm.draw import page as pages
from bestarm.draw.page import Html
from bestarm.version import __version__

TITLE = "The paper, reproduced"
ABOUT = (
    "Fixed-Budget Best-Arm Identification in Structured Bandits (Azizi, Kveton, Ghavamzadeh), by `bestarm reproduce`."
)
MEANS = (
    "*As printed* plays what the text says: Algorithm 2 as printed, Peace on fresh data, LinUCB with the radius of Li "
    "et al. at δ = 0.1, rewards 0 and 1 as they are for linear models without an intercept. Static variance 1, motor "
    "temperature.",
    "*Published code* plays what the code does: designs rounded up, which overspends and is metered here; BayesGap "
    "with variances for deviations, a plain sum, no root, a prior deviation of 50 and its own kernels; LinUCB disjoint "
    "with α = 0.513; UCB-GLM with its square; LinGapE-Greedy with σ² for σ. Static variance 10, motor speed, cars "
    "drawn with replacement, arms from a cube.",
    "*Best effort* plays what one would choose today: a design that reaches its optimum, rivals with correct "
    "confidence bounds, rewards 0 and 1 less a half. A rival that keeps its data is compared with GSE keeping its own.",
)
NOTES = (
    "The code's projection drops columns by their index and its Greedy adds an intercept to the design only; neither "
    "is imitated. Its line search has a grid; ours is exact and stalls at the same designs.",
    "LinGapE plays with δ = 0.99: the figure `delta` has the grid, as the paper tunes it.",
    "BayesGap plays with a linear kernel or with length 1; the figures `kernels` and `kernels-sphere` have others.",
    "Peace, LinGapE at K = 32, Greedy and BayesGap at K = 128 have one chunk of 250 replications.",
    "The adaptive instance stops at K = 64; `bestarm bench adaptive --set K=128` goes further.",
    "What became of the verdicts of an earlier report, and why: docs/reproduction/changes.md of the checkout.",
    *(f"Named in the paper and left out: {what}: {why}." for what, why in LEFT_OUT.items()),
)
KINDS = {HOLDS: "good", FAILS: "bad"}
SMALL = 500  # replications; fewer are a quick look
COUNTED = (HOLDS, FAILS, NOISE, CANNOT, NOT_RUN)


@dataclass(frozen=True)
class Made:
    """All that a report tells."""

    figures: Mapping[str, Figure]
    results: Mapping[str, Results]
    claims: Sequence[Claim]
    not_run: Mapping[str, str]
    quick: bool
    commit: str
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def first(self) -> Results | None:
        """Any of the results."""
        return next(iter(self.results.values()), None)

    @property
    def chunks(self) -> list[Any]:
        """What was measured, each cell once."""
        cells = {cell.key for result in self.results.values() for cell in result.cells}
        return [c for key, some in (self.first.chunks if self.first else {}).items() if key in cells for c in some]

    @property
    def replications(self) -> int:
        """How often a cell was run."""
        return self.first.replications if self.first else 0

    @property
    def seed(self) -> int:
        """The seed of everything random."""
        return self.first.seed if self.first else 0


def facts(made: Made) -> dict[str, Any]:
    """Return what this report came from."""
    cells = {cell.key for result in made.results.values() for cell in result.cells}
    hours = sum(c.cpu for c in made.chunks) / 3600
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": made.commit or "unknown",
        "bestarm": __version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "seed": made.seed,
        "replications": made.replications,
        "cells": len(cells),
        "CPU hours": f"{hours:.2f}",
        "minutes on two free cores": f"{hours * 30:.0f}",
    }


def counts(made: Made) -> list[list[Any]]:
    """Return for each verdict how many sentences have it, by setting."""
    return [[v, *(sum(c.findings[s].verdict == v for c in made.claims) for s in SETTINGS)] for v in COUNTED]


def by_chance(made: Made) -> list[str]:
    """Return how much of the table chance may explain, in sentences."""
    numbers = [len(f.leads) for c in made.claims for f in c.findings.values() if f.leads]
    intervals, alone = sum(numbers), sum(number == 1 for number in numbers)
    judged = [(c, s) for c in made.claims for s, f in c.findings.items() if f.leads]
    loose = sum(not c.firm[s] for c, s in judged)
    coarse = sum(not c.fine[s] for c, s in judged)
    told = [
        f"{len(numbers)} verdicts rest on {intervals} intervals. At 95 % about {0.05 * intervals:.0f} of these miss by "
        f"chance, and about {0.05 * alone:.0f} of the {alone} verdicts that rest on one interval alone.",
        f"*Together* are intervals of {sure(intervals):.2f} standard errors in place of 1.96: at 95 % all {intervals} "
        f"hold at once. {loose} verdicts would be another one by those; they are marked †.",
        f"{coarse} verdicts rest on an interval wider than three points either way; they are marked ‡.",
        "In brackets behind a verdict: the fewest replications it rests on, where it rests on intervals.",
    ]
    if made.quick or made.replications < SMALL:
        told.append(
            f"**Quick**: {made.replications} replications{' of fewer cells' if made.quick else ''}. A verdict marked "
            "‡, a “within noise”, and every sentence about what nobody does (the best, always, never, most) cannot be "
            "trusted at this size."
        )
    return told


def literal_told(made: Made) -> str:
    """Return what Algorithm 2 as printed is worth on the adaptive instance; nothing where it was not run."""
    try:
        view = SettingView(made.figures, made.results, PRINTED)
        lead = view.difference(view.places("adaptive"), FWG, DFORM)
    except NotRun:
        return ""
    better = "better" if lead.low > 0 else "worse" if lead.high < 0 else "neither better nor worse"
    return (
        f"Algorithm 2 as printed stalls at the uniform design on the adaptive instance. There it is {better} than its "
        f"D-optimal form, which reaches the optimum: {lead}. The optimum gives nothing to the disturbing arm, one of "
        "the two that must be told apart."
    )


def told_rows(made: Made) -> list[list[str]]:
    """Return who is told the noise variance, and what overspent: label, setting, policy, told, pulls over budget."""
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for rows in made.tables.values():
        for row in rows:
            found.setdefault((row["setting"], row["label"], row["policy"]), []).append(row)
    return [
        [setting, label, policy, "told" if rows[0]["told_variance"] else "not told",
         f"{np.mean([r['pulls_mean'] / r['budget'] for r in rows]):.2f}, at most "
         f"{max(r['pulls_max'] / r['budget'] for r in rows):.2f}"]
        for (setting, label, policy), rows in sorted(found.items())
        if rows[0]["told_variance"] or any(r["pulls_max"] > r["budget"] for r in rows)
    ]  # fmt: skip


def timing(made: Made) -> list[list[str]]:
    """Return CPU seconds per 100 runs of the adaptive instance, by setting, label and K."""
    rows = made.tables.get("adaptive", [])
    values = made.figures["adaptive"].values if rows else ()
    lines = []
    for setting, label in dict.fromkeys((row["setting"], row["label"]) for row in rows):
        mine = [row for row in rows if (row["setting"], row["label"]) == (setting, label)]
        spent = [[row["cpu_seconds_100"] for row in mine if row["K"] == value] for value in values]
        lines.append([setting, label, *(f"{np.mean(some):.2f}" if some else "–" for some in spent)])
    return lines


def sentences(made: Made) -> list[dict[str, Any]]:
    """Return the table of sentences as tidy rows."""
    return [
        {
            "number": claim.number, "place": claim.sentence.place, "sentence": claim.sentence.text, "setting": setting,
            "verdict": finding.verdict, "firm": claim.firm[setting], "fine": claim.fine[setting],
            "replications": finding.replications, "intervals": len(finding.leads), "evidence": finding.told,
        }
        for claim in made.claims for setting, finding in claim.findings.items()
    ]  # fmt: skip


def shown(claim: Claim, setting: str) -> str:
    """Return a verdict with its marks and its replications."""
    finding = claim.findings[setting]
    marks = ("" if claim.firm[setting] else "†") + ("" if claim.fine[setting] else "‡")
    return f"{finding.verdict}{marks}{f' ({finding.replications})' if finding.replications else ''}"


def command(made: Made, claim: Claim) -> str:
    """Return the command that measures again what a sentence rests on."""
    figures = " ".join(f"--figure {name}" for name in claim.seen if name in made.results)
    return f"bestarm reproduce {figures} --replications {made.replications} --seed {made.seed}" if figures else ""


def failures(made: Made) -> Iterable[str]:
    """Give what was not run or failed, and why."""
    yield from (f"Not run: {name}: {why}" for name, why in made.not_run.items())
    for name, result in made.results.items():
        for cell in result.cells:
            if cell.key in result.failures:
                why = result.failures[cell.key]
                yield f"Failed in {name}: {cell.policy} on {cell.instance}, budget {cell.budget}: {why}"


# ---------------------------------------------------------------------------------------------- as Markdown


def _grid(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    return [
        f"| {' | '.join(heads)} |",
        "|---" * len(heads) + "|",
        *(f"| {' | '.join(map(str, r))} |" for r in rows),
        "",
    ]


def markdown(made: Made) -> str:
    """Return the report as Markdown; drawings and tables lie beside it."""
    heads = ["", "section", "sentence", *SETTINGS, "verdict"]
    rows = [
        [c.number, c.sentence.place, f"[{c.sentence.text}](#{c.number})", *(shown(c, s) for s in SETTINGS), c.verdict]
        for c in made.claims
    ]
    lines = [f"# {TITLE}", "", ABOUT, "", ", ".join(f"{key} {value}" for key, value in facts(made).items()) + ".", ""]
    lines += [*(f"- {line}" for line in MEANS), "", *_grid(["", *SETTINGS], counts(made))]
    lines += [*(f"- {line}" for line in by_chance(made)), "", literal_told(made), ""]
    lines += [*(f"- {line}" for line in failures(made)), "", "## Sentences", "", *_grid(heads, rows)]
    lines += ["## Evidence", ""]
    for claim in made.claims:
        lines += [f"### {claim.number}", "", f"**{claim.sentence.text}** ({claim.sentence.place})", ""]
        lines += [f"- {s}: {shown(claim, s)}. {f.told}" for s, f in claim.findings.items()]
        links = [f"[drawing](#{name}), [cells]({name}.csv)" for name in claim.seen if name in made.results]
        lines += [f"- {'; '.join(links)}; `{command(made, claim)}`", ""] if links else [""]
    lines += ["## Figures", ""]
    for name in made.results:
        figure = made.figures[name]
        lines += [f"### {name}", "", f"**{figure.title}** ({figure.place}), [cells]({name}.csv)", ""]
        lines += [f'<img src="{name}-{SETTINGS[s]}.svg" alt="{figure.title}, {s}" width="32%">' for s in figure.players]
        lines += [""]
    lines += ["## Who is told the variance of the noise, and what is overspent", ""]
    lines += _grid(["setting", "label", "policy", "variance", "pulls over budget"], told_rows(made))
    if timing(made):
        values = [f"K = {value}" for value in made.figures["adaptive"].values]
        lines += ["## CPU seconds per 100 runs, adaptive instance", "", "The paper: 7 to 18 s at K = 16, Peace 530 s; "
                  "Peace 14 hours at K = 32.", "", *_grid(["setting", "label", *values], timing(made))]  # fmt: skip
    lines += ["## Notes", "", *(f"- {line}" for line in NOTES), ""]
    return "\n".join(lines)


# -------------------------------------------------------------------------------------------------- as a page


def _plain(line: str) -> str:
    return line.replace("*", "").replace("`", "")


def html(made: Made, drawings: Mapping[tuple[str, str], str]) -> str:
    """Return the report as a page of its own."""
    heads = ["", "section", "sentence", *SETTINGS, "verdict"]
    rows = [
        [c.number, c.sentence.place, pages.link(f"s{c.number}", c.sentence.text),
         *(pages.strong(shown(c, s), KINDS.get(c.findings[s].verdict, "")) for s in SETTINGS), c.verdict]
        for c in made.claims
    ]  # fmt: skip
    evidence: list[Html] = []
    for c in made.claims:
        links = [
            pages.joined([pages.link(name, made.figures[name].title), "; "]) for name in c.seen if name in made.results
        ]
        told = [f"{s}: {shown(c, s)}. {f.told}" for s, f in c.findings.items()]
        again = [pages.joined([*links, " ", pages.tagged("code", command(made, c))])] if links else []
        title = pages.strong(f"{c.number}. {c.sentence.text} ({c.sentence.place})")
        evidence += [pages.spot(f"s{c.number}", title), pages.bullets([*told, *again])]
    figures: list[Html] = []
    for name in made.results:
        figure = made.figures[name]
        each = [
            pages.joined([pages.tagged("p", s, kind="note"),
                          pages.drawing(drawings[name, s], f"{figure.title}, {s}", small=True)])
            for s in figure.players
        ]  # fmt: skip
        figures += [pages.spot(name, pages.strong(f"{figure.title} ({figure.place})")), pages.beside(each)]
    spent = timing(made)
    values = [f"K = {value}" for value in made.figures["adaptive"].values] if spent else []
    return pages.page(
        TITLE,
        pages.head(TITLE, "", _plain(ABOUT)),
        pages.facts((value, key) for key, value in facts(made).items()),
        pages.bullets([_plain(line) for line in MEANS]),
        pages.warnings([*failures(made), *([_plain(literal_told(made))] if literal_told(made) else [])]),
        pages.section("How many sentences", "", pages.table(["", *SETTINGS], counts(made), list(SETTINGS)),
                      pages.bullets([_plain(line) for line in by_chance(made)])),
        pages.section("Sentences", "", pages.table(heads, rows)),
        pages.section("Evidence", "", *evidence),
        pages.section("Figures", "", *figures),
        pages.section("Who is told the variance of the noise, and what is overspent", "",
                      pages.table(["setting", "label", "policy", "variance", "pulls over budget"], told_rows(made))),
        pages.section("CPU seconds per 100 runs, adaptive instance", "",
                      pages.table(["setting", "label", *values], spent, values)) if spent else "",
        pages.section("Notes", "", pages.bullets([_plain(line) for line in NOTES])),
    )  # fmt: skip
