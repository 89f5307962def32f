"""A page: what is no markup is escaped, nothing comes from outside, and it can be read by day and by night."""

import re

import pytest

from bestarm.draw import page as pages
from bestarm.draw.page import DARK, LIGHT, Html
from bestarm.draw.style import COLOURS, ink

NASTY = '<i onclick="x">&\'\ud800'
ESCAPED = "&lt;i onclick=&quot;x&quot;&gt;&amp;&#x27;?"


def test_every_text_is_escaped_wherever_it_stands():
    pieces = [
        pages.head(NASTY, NASTY, NASTY),
        pages.facts([(NASTY, NASTY)]),
        pages.bar(0.5, NASTY),
        pages.warnings([NASTY]),
        pages.section(NASTY, NASTY, pages.table([NASTY], [[NASTY], [pages.strong(NASTY, "bad")]], [NASTY])),
        pages.drawing("<svg></svg>", NASTY),
        pages.picture(b"x", NASTY),
        pages.folded(NASTY, pages.literal(NASTY)),
        pages.bullets([NASTY]),
        pages.spot(NASTY, pages.link(NASTY, NASTY)),
        pages.beside([NASTY]),
    ]
    text = pages.page(NASTY, *pieces, NASTY)
    assert text.count(ESCAPED) == 23
    assert "<i onclick" not in text
    assert not re.search(r"<(script|link|iframe)|href=(?!\"#)|src=(?!\"data:)", text)


def test_a_section_of_empty_pieces_is_left_out():
    assert pages.section("Race", "Who left.", Html(), Html()) == ""
    assert "Who left." in pages.section("Race", "Who left.")
    assert "1 of 2" in pages.section("Race", "", Html(), pages.literal("1 of 2"))


def luminance(colour):
    """The relative luminance of a colour, by the guidelines for accessible pages."""
    if len(colour) == 4:
        colour = "#" + "".join(letter * 2 for letter in colour[1:])
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, two):
    low, high = sorted([luminance(one), luminance(two)])
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_words_stand_out_by_day_and_by_night(theme):
    colours = dict(re.findall(r"--(\w+): (#\w+)", theme))
    for words in ("ink", "soft", "accent", "good"):
        assert contrast(colours[words], colours["paper"]) >= 4.5
    assert contrast(colours["ink"], colours["warm"]) >= 4.5


@pytest.mark.parametrize("colour", COLOURS)
def test_names_of_lines_stand_out(colour):
    dark = "#" + "".join(f"{round(255 * part):02x}" for part in ink(colour))
    assert contrast(dark, "#ffffff") >= 4.45
    assert contrast(colour, "#ffffff") < 4.5 or dark == colour.lower()
