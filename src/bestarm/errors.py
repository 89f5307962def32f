"""What can go wrong, as a tree.

BestArmError
├── InputError (ValueError)      something given to us is not what we can use
│   ├── ArmsError                a table of arms: names the row and the column
│   ├── BudgetError              a budget no policy could work with: says the least that would do
│   ├── RewardError              a reward the model cannot have produced
│   └── UnknownNameError         a name we do not know: says the nearest we do
├── StorageError                 a log cannot be read or written
├── PullError                    an observation could not be made
└── OverspentError               a policy asked for more than the budget (a defect of the policy)

BestArmWarning (UserWarning)
├── BudgetWarning                the budget is thin for what is asked
├── LackOfFitWarning             the model does not fit what repeats of the same arm say
├── RankDeficientWarning         the features do not tell all arms apart
└── SeparationWarning            0/1 results leave a fitted chance at 0 or 1
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

SHOWN = 10  # findings of one sort in a message


def listed(lines: Sequence[str]) -> list[str]:
    """Return lines, ten at most, and how many more there are."""
    return [*lines[:SHOWN], *([f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else [])]


class BestArmError(Exception):
    """Any error bestarm raises on purpose."""


class InputError(BestArmError, ValueError):
    """Something given is not what can be used."""


class ArmsError(InputError):
    """A table of arms cannot be read; `findings` are all that is wrong with it, of which the text shows ten."""

    def __init__(self, *findings: str) -> None:
        super().__init__("\n".join(listed(findings)))
        self.findings = findings


class BudgetError(InputError):
    """A budget is too small; `least` would do, where known."""

    def __init__(self, message: str, least: int | None = None) -> None:
        super().__init__(message)
        self.least = least


class RewardError(InputError):
    """A reward lies outside what the model allows."""


class UnknownNameError(InputError):
    """A name is not in the list; the three nearest are offered."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        known = sorted(known)
        nearest = get_close_matches(name, known, n=3, cutoff=0.0)
        there = f"the nearest are {', '.join(nearest)}" if nearest else "there is none"
        super().__init__(f"unknown {kind} {name!r}; {there}")
        self.nearest = nearest


class StorageError(BestArmError):
    """A log cannot be read or written."""


class PullError(BestArmError):
    """An observation could not be made."""


class OverspentError(BestArmError):
    """A policy asked for more pulls than its budget."""


class BestArmWarning(UserWarning):
    """Any warning bestarm gives on purpose."""


class BudgetWarning(BestArmWarning):
    """The budget is thin for what is asked."""


class RankDeficientWarning(BestArmWarning):
    """The features do not tell all arms apart."""


class LackOfFitWarning(BestArmWarning):
    """The model does not fit what repeats of the same arm say."""


class SeparationWarning(BestArmWarning):
    """Results that are 0 or 1 leave a fitted chance at 0 or 1."""
