"""Small studies and files of results, for tests of what is told by file."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import settings

from bestarm import Arms, create_study
from bestarm.errors import InputError
from bestarm.study import Memory
from bestarm.study.files import tell_file

FEW = settings(max_examples=60, deadline=None, derandomize=True)


def begin(ids="abcd", budget=400, policy="uniform", storage=None, **more):
    arms = Arms.from_arrays(np.eye(len(ids)) + 0.5, ids=list(ids))
    return create_study(arms, budget, policy, study_name="s", storage=storage or Memory(), seed=2, **more)


def file(header, *rows, end="\n"):
    """The bytes of a CSV file."""
    return end.join([header, *rows]).encode()


def by_arm(values):
    """A file of rows (arm, value)."""
    return file("arm,reward", *(f"{arm},{value!r}" for arm, value in values))


def counted(study):
    """What counts in a study: how often each value of each arm does."""
    state = study.sync()
    return Counter((state.ids[one.arm], one.sum) for one in state.told if not one.excluded)


def length(study):
    return study.sync().records


def refused(study, data, says, name="x.csv", tell=tell_file, **how):
    """Tell a file that is refused, of which nothing is kept."""
    before = length(study)
    with pytest.raises(InputError, match=says) as error:
        tell(study, data, name, **how)
    assert length(study) == before
    return error.value
