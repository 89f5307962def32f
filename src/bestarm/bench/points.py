"""What a figure shows as tidy rows: a row a cell, its accuracy, what it spent, its difference to the figure's hero."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bestarm.bench.evidence import SettingView
from bestarm.bench.panels import Curve, Drawn, drawn
from bestarm.bench.paper import ALL_DATA, BEST, Figure
from bestarm.bench.published import LENT, budget_of, told
from bestarm.bench.runner import Results
from bestarm.simulate.intervals import wilson

AXES = {"Delta": "Δ"}


def rows(figures: Mapping[str, Figure], results: Mapping[str, Results], name: str) -> list[dict[str, Any]]:
    """Return a row for every setting, panel, label and value of x of a figure that was run."""
    figure, table = figures[name], []
    for setting, players in figure.players.items():
        view = SettingView(figures, results, setting)
        for label, text in players.items():
            knows = told(text)
            for place in view.places(name):
                if view.ran(place, label):
                    table.append({"setting": setting, **_row(view, place, label, text), "told_variance": knows})
    return table


def _row(view: SettingView, place: Any, label: str, text: str) -> dict[str, Any]:
    name, panel, value = place
    figure, cell, chunks = view.figure(name), view.cell(place, label), view.chunks(place, label)
    correct, pulls = (np.concatenate([getattr(c, a) for c in chunks]) for a in ("correct", "pulls"))
    low, high = wilson(int(correct.sum()), len(correct))
    budget = cell.budget // LENT if budget_of(text, 1) == LENT else cell.budget
    row = {
        "panel": figure.panels[panel].label,
        "label": label,
        "policy": str(cell.policy),
        figure.x: value,
        "budget": budget,
        "replications": len(correct),
        "accuracy": round(float(correct.mean()), 4),
        "low": round(low, 4),
        "high": round(high, 4),
        "pulls_mean": round(float(pulls.mean()), 1),
        "pulls_max": int(pulls.max()),
        "cpu_seconds_100": round(100 * sum(c.cpu for c in chunks) / len(correct), 3),
        "against": None,
        "difference": None,
        "difference_low": None,
        "difference_high": None,
    }
    hero, other = view.fair(figure.hero, label)
    if other == label and hero != label and hero in figure.players[view.setting] and view.ran(place, hero):
        lead = view.difference([place], hero, label)
        ends = {"difference": lead.mean, "difference_low": lead.low, "difference_high": lead.high}
        row |= {"against": hero} | {key: round(end, 4) for key, end in ends.items()}
    return row


def drawing(figure: Figure, table: list[dict[str, Any]], setting: str, night: bool = False) -> str:
    """Return the drawing of a figure in a setting, from its rows."""
    mine = [row for row in table if row["setting"] == setting]
    values = [value for value in figure.values if any(row[figure.x] == value for row in mine)]
    place = {value: float(np.log(value)) if figure.log else float(value) for value in values}
    kept = setting == BEST and figure.hero in ALL_DATA
    against = "GSE keeping data as the other does, less it" if kept else f"{figure.hero} less the other, points"
    panels = []
    for panel in figure.panels:
        here = [row for row in mine if row["panel"] == panel.label]
        labels = list(dict.fromkeys(row["label"] for row in here))
        accuracy, difference = [], []
        for label in labels:
            some = [row for row in here if row["label"] == label]
            kind = "hero" if label == figure.hero else "ours" if label.startswith("GSE") else "rival"
            points = [tuple(row[key] for key in ("accuracy", "low", "high")) for row in some]
            xs = [place[row[figure.x]] for row in some]
            accuracy.append(Curve(label, kind, [(x, *point) for x, point in zip(xs, points, strict=True)]))
            gaps = [(x, row["difference"], row["difference_low"], row["difference_high"])
                    for x, row in zip(xs, some, strict=True) if row["difference"] is not None]  # fmt: skip
            if gaps:
                difference.append(Curve(label, kind, gaps))
        panels.append(Drawn(panel.label, accuracy, difference, against))
    return drawn(panels, [(place[v], f"{v:g}") for v in values], AXES.get(figure.x, figure.x), night)
