"""Numbers as people give them: Python's, NumPy's and other libraries' are numbers, anything else is refused by name.

A number is an int, a float, a Fraction, a Decimal, a NumPy scalar such as `np.int64(30)` or `np.float32(1)`, or an
array without axes, of any library. No number is a bool, though Python counts it as an int; nor is a text, "30"
included, None, a complex number, a span of time, a masked cell, NaN, an infinity, or an array with axes, even of
one number.
"""

import math
import sys
from numbers import Real
from reprlib import repr as shorten
from typing import Any

import numpy as np

from bestarm.errors import InputError

LARGEST_WHOLE = 2**63 - 1  # of an int64, in which pulls are counted
LARGEST_VALUE = 1e150  # a feature, cost or reward lies within ± this: sums of 10^8 squares are numbers too


def whole(value: object, what: str, least: int | None = None, most: int | None = None) -> int:
    """Return a whole number as an int, 30.0 included; 1.5 and what is no number are refused, naming `what`.

    >>> whole(np.int64(30), "budget"), whole(30.0, "budget"), whole(np.array(30), "budget", least=1)
    (30, 30, 30)
    >>> whole(1.5, "seed", least=0)
    Traceback (most recent call last):
    ...
    bestarm.errors.InputError: seed must be a whole number, at least 0; given 1.5
    """
    number = _finite(value)
    found = None if number is None or number != int(number) else int(number)
    if found is None or (least is not None and found < least) or (most is not None and found > most):
        raise InputError(f"{what} must be a whole number{_limits(least, most)}; given {shown(value)}")
    return found


def real(
    value: object, what: str, least: float | None = None, most: float | None = None, above: float | None = None
) -> float:
    """Return a finite number as a float, from `least` to `most` and truly `above`; others are refused, naming `what`.

    >>> real(np.float32(0.5), "noise_variance", above=0), real(3, "cost")
    (0.5, 3.0)
    >>> real(True, "cost")
    Traceback (most recent call last):
    ...
    bestarm.errors.InputError: cost must be a finite number; given True
    """
    number = _finite(value)
    try:
        found = math.nan if number is None else float(number)
    except OverflowError:
        found = math.nan
    small = (least is not None and found < least) or (above is not None and found <= above)
    if not math.isfinite(found) or small or (most is not None and found > most):
        raise InputError(f"{what} must be a finite number{_limits(least, most, above)}; given {shown(value)}")
    return found


def generator(seed: Any = None, what: str = "seed") -> np.random.Generator:
    """Return the generator that a whole number from 0 on, None, or what else NumPy takes for a seed stands for.

    >>> generator(-1)
    Traceback (most recent call last):
    ...
    bestarm.errors.InputError: seed must be a whole number, at least 0; given -1
    """
    if isinstance(seed, np.random.Generator):
        return seed
    if seed is None or isinstance(seed, np.random.SeedSequence | np.random.BitGenerator):
        return np.random.default_rng(seed)
    if isinstance(seed, np.ndarray | list | tuple) and np.ndim(seed):
        return np.random.default_rng([whole(one, what, least=0) for one in seed])
    return np.random.default_rng(whole(seed, what, least=0))


def fresh_seed() -> int:
    """Return a seed from the operating system, short enough to type again."""
    return int(np.random.SeedSequence().generate_state(1)[0])


def counted(n: float, what: str, mark: str = "") -> str:
    """Return how many there are of something, with a `mark` between thousands if one is given.

    >>> counted(1, "trial"), counted(2400, "pull"), counted(2400, "pull", ",")
    ('1 trial', '2400 pulls', '2,400 pulls')
    """
    return f"{n:{mark}.10g} {what}{'' if n == 1 else 's'}"


def shown(value: object) -> str:
    """Return a value as an error shows it: in short, and NumPy's numbers as numbers."""
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0 and value.dtype.kind in "biuf":
        value = "masked" if np.ma.is_masked(value) else value.item()
    try:
        return shorten(value)
    except ValueError:  # Python writes no more than some thousands of digits
        return "a number of thousands of digits"


def _finite(value: Any) -> Any:
    """Return a finite number, out of its array where that has no axes, or None for anything else."""
    masked = isinstance(value, np.ndarray) and np.ma.is_masked(value)
    if masked or (isinstance(value, np.generic | np.ndarray) and value.dtype.kind not in "iuf"):
        return None
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    decimal = sys.modules.get("decimal")  # where nobody has imported it there is no such number
    if decimal is not None and isinstance(value, decimal.Decimal):
        return value if value.is_finite() and value.adjusted() < 1000 else None
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    return value if not isinstance(value, float | np.floating) or math.isfinite(value) else None


def _limits(least: float | None, most: float | None, above: float | None = None) -> str:
    if least is not None and most is not None:
        return f" from {least} to {most}"
    words = (("above", above), ("at least", least), ("at most", most))
    return "".join(f", {word} {limit}" for word, limit in words if limit is not None)
