"""Charts as text: within their frame, of any names and numbers, in the colours of their page."""

import math
import re
import xml.etree.ElementTree as ElementTree

from hypothesis import given
from hypothesis import strategies as st

from bestarm.answer.history import History, RaceStep, Sight
from bestarm.draw import charts, svg
from bestarm.draw.page import STYLE

NUMBERS = st.floats(allow_nan=True, allow_infinity=True)
ARMS = st.lists(st.text(min_size=1, max_size=40), min_size=2, max_size=6, unique=True)


def drawn(text):
    """Assert that a chart can be read, that it is nowhere beyond its frame, and that its colours are the page's."""
    for chart in ElementTree.fromstring(f"<div>{text}</div>"):
        height = float(chart.get("style").removeprefix("height:").removesuffix("px"))
        for shape in chart.iter():
            for key, value in shape.attrib.items():
                if key in ("x", "x1", "x2", "cx", "width"):
                    assert -1e-6 <= float(value.rstrip("%")) <= 100 + 1e-6
                if key in ("y1", "y2", "cy"):
                    assert 0 <= float(value) <= height
            for word in shape.get("class", "").split():
                assert f".{word}" in STYLE or word == "small"
    return text


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS), max_size=6))
def test_any_numbers_can_be_drawn(measured):
    text = drawn(charts.fit(measured))
    assert bool(text) == (len(measured) > 1)
    assert not re.search(r"[\"' ](nan|-?inf)", text)


@given(ARMS, st.lists(st.tuples(st.integers(1, 50), st.floats(0, 1), st.floats(0, 1e300)), min_size=2, max_size=9))
def test_a_history_of_any_arms_can_be_drawn(ids, seen):
    told = 0
    sights, arrivals, steps = [], [], [RaceStep(0, 0, tuple(ids))]
    for place, (more, chance, regret) in enumerate(seen):
        told += more
        arrivals.append((100.0 + told, told))
        sights.append(Sight(told, ids[place % len(ids)], chance, regret))
    steps.append(RaceStep(1, told, (ids[0],)))
    history = History(100.0, tuple(arrivals), tuple(steps), tuple(sights))
    race = drawn(charts.race(history, ids[0]))
    assert race.count("<title>") == len(ids)
    assert drawn(charts.certainty(history, ids[0])).count('class="chart"') == 2
    assert drawn(charts.arrivals(history)).count('class="chart"') == 1
    assert charts.race(History(0.0, (), (), ()), "a") == charts.certainty(History(0.0, (), (), ()), "a") == ""


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_ticks_are_few_round_and_between(one, two):
    low, high = sorted((one, two))
    found = svg.ticks(low, high)
    assert len(found) <= 6
    slack = 1e-9 * max(high - low, abs(low))
    assert all(low - slack <= value <= high + slack for value in found)
    assert len(set(svg.written(found))) == len(found)


def test_what_is_no_number_has_no_place():
    assert math.isnan(svg.Axis(0, 1, 0, 100).at(math.nan))
    assert svg.Axis(0, 1, 0, 100).at(math.inf) == 100
    assert svg.line(math.nan, 0, 1, 0, "ink") == svg.dot(math.nan, 0, "ink") == ""
