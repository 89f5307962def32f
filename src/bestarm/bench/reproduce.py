"""Every experiment of the paper by one call: what was measured, tables, drawings, verdicts, and a report of them."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bestarm import datasets
from bestarm.bench import paper_report, points, table
from bestarm.bench.cited import cited_figures
from bestarm.bench.claims import Claim, judge_all
from bestarm.bench.paper import FIGURES, SETTINGS, Figure, replications_of
from bestarm.bench.runner import Results, run
from bestarm.draw.style import write_whole
from bestarm.errors import InputError, UnknownNameError
from bestarm.numbers import counted

PANELS: dict[str, Mapping[str, Figure]] = {"paper": FIGURES, "cited": cited_figures()}


@dataclass(frozen=True)
class Reproduction:
    """What came of it: claims with verdicts, and where the report is."""

    claims: Sequence[Claim]
    page: Path
    text: Path


def reproduce(
    names: Sequence[str],
    replications: int,
    quick: bool,
    seed: int,
    n_jobs: int,
    engine: str | None,
    data: str | None,
    output: Path,
    progress: bool = False,
    panel: str = "paper",
) -> Reproduction:
    """Run the figures named (all of a panel otherwise), draw them, judge the sentences, write the report."""
    if panel not in PANELS:
        raise UnknownNameError("panel", panel, PANELS)
    figures = PANELS[panel]
    for name in names:
        if name not in figures:
            raise UnknownNameError("figure", name, figures)
    chosen = {name: figures[name] for name in names or figures}
    chosen = {name: figure.small() if quick else figure for name, figure in chosen.items()}
    if data is not None:
        os.environ["BESTARM_DATA"] = data
    not_run: dict[str, str] = {}
    if "motor" in chosen:
        try:
            datasets.motor_path()
        except InputError as error:
            not_run["motor"] = str(error)
    wanted = {name: figure for name, figure in chosen.items() if name not in not_run}
    results = measured(wanted, replications, seed, n_jobs, output / "cells", engine, progress)
    claims = judge_all(results, chosen) if figures is FIGURES else []  # the paper's sentences are about its own figures
    made = paper_report.Made(chosen, results, claims, not_run, quick, commit())
    return write(made, output)


def measured(
    figures: Mapping[str, Figure],
    replications: int,
    seed: int,
    n_jobs: int,
    cache: Path,
    engine: str | None,
    progress: bool,
) -> dict[str, Results]:
    """Return the results of each figure; a cell that several figures or settings share is run once."""
    runs = []
    for fewer in (False, True):
        cells = [cell for figure in figures.values() for cell in figure.cells(fewer)]
        about = f"{counted(len(figures), 'figure')}, {'slow policies, ' if fewer else ''}"
        runs.append(run(cells, replications_of(fewer, replications), seed, n_jobs, cache, engine, progress, about))
    chunks, failures = runs[0].chunks | runs[1].chunks, runs[0].failures | runs[1].failures
    return {name: Results(tuple(figure.cells()), seed, replications, chunks, failures)
            for name, figure in figures.items()}  # fmt: skip


def write(made: paper_report.Made, output: Path) -> Reproduction:
    """Write the table and the drawings of each figure, the table of sentences, and the report in two forms."""
    output.mkdir(parents=True, exist_ok=True)
    drawings = {}
    for name in made.results:
        rows = points.rows(made.figures, made.results, name)
        write_whole(output / f"{name}.csv", table.to_csv(rows).encode())
        for setting in made.figures[name].players:
            write_whole(
                output / f"{name}-{SETTINGS[setting]}.svg",
                points.drawing(made.figures[name], rows, setting, night=True).encode(),
            )
            drawings[name, setting] = points.drawing(made.figures[name], rows, setting)
        made.tables[name] = rows
    if made.claims:
        write_whole(output / "sentences.csv", table.to_csv(paper_report.sentences(made)).encode())
    text, page = output / "report.md", output / "report.html"
    write_whole(text, paper_report.markdown(made).encode())
    write_whole(page, paper_report.html(made, drawings).encode())
    return Reproduction(made.claims, page, text)


def commit() -> str:
    """Return the commit this was run from, marked where files differ from it; nothing outside a checkout."""
    where = ["git", "-C", str(Path(__file__).parent)]
    try:
        known = subprocess.run([*where, "describe", "--always", "--dirty"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return known.stdout.strip()
