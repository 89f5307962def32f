"""Plates: how many wells there are, what they are called, and which trial is in which, drawn by the study's seed."""

import re
from collections.abc import Sequence
from itertools import product
from string import ascii_uppercase as LETTERS
from typing import Any

import numpy as np

from bestarm.errors import InputError
from bestarm.numbers import whole
from bestarm.study.state import StudyState
from bestarm.study.trials import id_of

SIZES = {6: (2, 3), 12: (3, 4), 24: (4, 6), 48: (6, 8), 96: (8, 12), 384: (16, 24), 1536: (32, 48)}
SHAPE = re.compile(r"(\d{1,3})\s*[x×*]\s*(\d{1,3})", re.IGNORECASE | re.ASCII)
WELL = re.compile(r"([A-Z]{1,2})[- ]?0*(\d{1,3})", re.IGNORECASE | re.ASCII)
NUMBER = re.compile(r"(?:plate)?[\s_#-]*0*(\d{1,9})(?:\.0)?", re.IGNORECASE | re.ASCII)
DRAW = 0x57E115  # beside the seeds of questions


def shape_of(plate: Any) -> list[int]:
    """Return the rows and columns of a plate: of 96 wells, "8x12" or (8, 12).

    >>> shape_of(96), shape_of("384"), shape_of("5x7"), shape_of((2, 3))
    ([8, 12], [16, 24], [5, 7], [2, 3])
    """
    sizes = ", ".join(map(str, SIZES))
    way = f"a number of wells, {sizes}, or ROWSxCOLUMNS, such as 8x12"
    if isinstance(plate, str) and plate.strip().isdecimal():
        plate = int(plate)
    found = SHAPE.fullmatch(plate.strip()) if isinstance(plate, str) else None
    if isinstance(plate, int) and not isinstance(plate, bool) and plate in SIZES:
        plate = SIZES[plate]
    given = found.groups() if found else plate
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
        raise InputError(f"a plate is {way}; given {plate!r}")
    numbers = (int(one) if found else one for one in given)
    return [
        whole(one, f"the plate's {what}", least=1, most=most)
        for one, what, most in zip(numbers, ("rows", "columns"), (702, 999), strict=True)
    ]


def wells_of(shape: Sequence[int]) -> list[str]:
    """Return the names of a plate's wells, row by row.

    >>> wells_of((2, 3)), wells_of((32, 48))[-1]
    (['A1', 'A2', 'A3', 'B1', 'B2', 'B3'], 'AF48')
    """
    letters = [*LETTERS, *(first + second for first in LETTERS for second in LETTERS)]
    return [f"{row}{column}" for row, column in product(letters[: shape[0]], range(1, shape[1] + 1))]


def drawn(state: StudyState, count: int) -> list[str]:
    """Return the wells of the next plate's trials: the first `count` wells, shuffled by the study's seed."""
    chances = np.random.default_rng([state.seed, state.plate + 1, DRAW]).random(count)
    wells = wells_of(state.options["plate"])
    return [wells[place] for place in np.argsort(chances, kind="stable").tolist()]


def written(well: str) -> str:
    """Return a well as plates call it, whatever zeros a reader puts in; any other name as it stands.

    >>> written("a01"), written("H12"), written("left")
    ('A1', 'H12', 'left')
    """
    found = WELL.fullmatch(well.strip())
    return f"{found[1].upper()}{int(found[2])}" if found else well.strip()


def order(well: str) -> tuple[int, str, int]:
    """Return by what wells are sorted, row by row."""
    found = WELL.fullmatch(well)
    return (len(found[1]), found[1].upper(), int(found[2])) if found else (3, well, 0)


def trial_in(state: StudyState, well: str, plate: str = "") -> int:
    """Return the trial in a well, of the plate that is named where there were several."""
    name = written(well)
    there = [trial for trial, one in state.wells.items() if written(one) == name]
    if plate:
        number = NUMBER.fullmatch(plate.strip())
        if not number or not 0 < int(number[1]) <= state.plate:
            raise InputError(f"plates 1 to {state.plate} were asked for; found plate {plate!r}")
        there = [trial for trial in there if state.plates.get(trial) == int(number[1])]
    if not there:
        raise InputError(f"nothing was asked for in well {well!r}" + f" of plate {plate}" * bool(plate))
    if len(there) > 1:
        ids = " and ".join(id_of(trial) for trial in there[:2])
        raise InputError(f"well {well!r} has {ids}: a column 'plate', or --plate, says which plate is meant")
    return there[0]
