"""Meters: nothing in the first second, a bar where somebody sees it, lines elsewhere, and never too many of them."""

import logging

import pytest

from bestarm.progress import Meter


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.mark.parametrize(("level", "lines"), [(logging.WARNING, 10), (logging.INFO, 120)])
def test_elsewhere_it_says_a_line_a_minute_or_every_five_seconds(clock, capsys, level, lines):
    log = logging.getLogger("bestarm")
    before = log.level
    log.setLevel(level)
    with Meter(True, "pulls", 1200, 600, clock) as meter:
        for done in range(600, 1200):
            clock.now += 1.0
            meter.at(done + 1, "ahead: A, 90 %")
    said = capsys.readouterr().err.splitlines()
    assert len(said) == lines
    assert said[-1] == "1,200 of 1,200 pulls, 1 a second, 0 s left; ahead: A, 90 %"
    log.setLevel(before)


def test_what_takes_a_second_or_is_not_to_be_shown_says_nothing(clock, capsys):
    with Meter(True, "pulls", 10, clock=clock) as quick, Meter(False, "pulls", 10, clock=clock) as silent:
        quick.at(9)
        clock.now += 1000.0
        silent.add(5)
    assert capsys.readouterr().err == ""


def test_on_a_terminal_a_bar_is_drawn_and_taken_away(clock, capsys, monkeypatch):
    monkeypatch.setattr("bestarm.progress.watched", lambda: True)
    with Meter(True, "pulls", 10, clock=clock) as meter:
        clock.now += 5.0
        meter.at(4, "ahead: A, 90 %")
        drawn = capsys.readouterr().err
    assert "4/10" in drawn
    assert "ahead: A, 90 %" in drawn
    assert capsys.readouterr().err.strip() == ""  # blanks are drawn over it


def test_the_time_is_told_that_is_left(clock):
    meter = Meter(True, "pulls", 100, clock=clock)
    assert meter.line() == "0 of 100 pulls, none yet"
    clock.now += 600.0
    meter.at(10)
    assert meter.line() == "10 of 100 pulls, 1 a minute, 1 h 30 min left"
