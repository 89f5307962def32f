"""From a table to an answer in one call: a study of its own, made by a function, a command or a simulated world."""

import os
from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np

from bestarm import pulling
from bestarm.answer.answer import Answer
from bestarm.core import Goal, Pullable, Pulls, Tally
from bestarm.draw.style import writable
from bestarm.errors import BudgetError, InputError, StorageError, UnknownNameError
from bestarm.numbers import counted
from bestarm.study import results
from bestarm.study.create import create_study
from bestarm.study.limits import said
from bestarm.study.runner import Hear, RunTerms, unheard
from bestarm.study.state import StudyState
from bestarm.study.storage import Record
from bestarm.study.storage.memory import Memory
from bestarm.study.study import Study
from bestarm.study.trials import number_of
from bestarm.study.watching import Watch
from bestarm.tables.opening import READING

NAME = "run"  # of the study in a log of its own
OLD = b'{"bestarm": '  # what the logs of runs began with before they were studies
WORLD = 1  # of the seed, what a simulated world draws from; the policy's choices are drawn from [seed, round]


def run(
    arms: Any,
    budget: float,
    pull: Callable[[str], float] | str | Pullable,
    policy: Any = None,
    model: Any = None,
    *,
    log: str | os.PathLike[str] | None = None,
    direction: str | Goal = "maximize",
    noise_variance: float | None = None,
    seed: int | None = None,
    n_jobs: int = 1,
    timeout: float | None = None,
    **settings: Any,
) -> Answer:
    """Find the best of `arms` within `budget` pulls, and return the `Answer`.

    `pull` is a function from an arm's id to a reward; a text, 'CMD {id}' or MODULE:FUNCTION; or a world to simulate,
    such as a `Bandit`. With `log` every reward is kept in that file, and the same call goes on where it stopped.
    `settings` are those of `create_study` (id, rounds, batch, ...) and of `Study.run` (retries, on_result, ...).

    >>> from bestarm import Bandit, Gaussian
    >>> world = Bandit(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([0.1, 0.2, 0.9]), Gaussian(1.0))
    >>> answer = run(world.features, 300, world, "sequential-halving", seed=1)
    >>> answer.arm, answer.spent
    ('3', 300.0)
    """
    how = {key: settings.pop(key) for key in RunTerms.__dataclass_fields__ if key in settings}
    known = {*signature(create_study).parameters, *READING} - {"study_name", "storage", "reading"}
    for name in settings:
        if name not in known:
            nearest = str(UnknownNameError("setting", name, known)).partition("; ")[2]
            raise InputError(f"run has no setting {name!r}; {WAYS.get(name, nearest)}")
    if isinstance(pull, str):
        pull = pulling.named(pull, timeout)
    study = begin(
        arms, budget, log, policy=policy, model=model, direction=direction, noise_variance=noise_variance, seed=seed,
        **settings,
    )  # fmt: skip
    make(study, pull, n_jobs=n_jobs, timeout=timeout, **how)
    return study.recommend()  # type: ignore[no-any-return]


WAYS = {
    "study_name": "a log of its own is log=; create_study begins studies with names",
    "storage": "a log of its own is log=; create_study begins studies in any storage",
    "minimize": "the smallest mean is the best by direction='minimize'",
}


def begin(arms: Any, budget: float, log: str | os.PathLike[str] | None = None, **settings: Any) -> Study:
    """Return the study of a run: in memory, or the one in `log`, which goes on if it is there."""
    if log is None:
        return create_study(arms, budget, study_name=NAME, storage=Memory(), **settings)
    path = writable(log)
    if path.is_file():
        with path.open("rb") as file:
            if file.read(len(OLD)) == OLD:
                raise StorageError(
                    f"{path} is the log of a run of an earlier bestarm: name another file. Its rewards can be taken "
                    "along, as a table of two columns, arm and value: bestarm import"
                )
    study = create_study(arms, budget, study_name=NAME, storage=path, load_if_exists=True, **settings)
    if study.state.budget > budget:
        raise BudgetError(f"the budget of {path} was raised to {study.state.budget:.10g}; given {budget:.10g}")
    return study


def make(study: Study, pull: Callable[[str], float] | str | Pullable, timeout: float | None = None, **how: Any) -> int:
    """Make a study's observations by a function, a command or a world; return how many values were told."""
    if isinstance(pull, str):
        pull = pulling.named(pull, timeout, study.arms if study.state.rows is None else ())
    if isinstance(pull, pulling.Command):
        pull.check_ids(study.arms if study.state.rows is None else ())
        timeout = None  # it ends its own
    if callable(pull):
        return study.run(pull, timeout=timeout, **how)
    return simulate(study, pull, how.get("progress", False), how.get("on_result", unheard))


def simulate(study: Study, world: Pullable, progress: Any = False, on_result: Hear = unheard) -> int:
    """Make a study's observations by a world whose arms are the study's; return how many values were told.

    Of each round the policy hears one sum an arm. They are drawn from the seed and the number of the round, so that a
    run that was stopped goes on to the same numbers. The world's rewards are in the person's direction. `progress` and
    `on_result` are as in `RunTerms`; of the trials of an arm in a round each is heard with their average.
    """
    if study.sync().rows is None and np.ndim(world.features) != 2:
        raise InputError(
            f"one world is expected, of features (K, d); given a stack of shape {np.shape(world.features)}"
        )
    if study.state.rows is None and len(world.features) != len(study.state.ids):
        raise InputError(f"the world has {counted(len(world.features), 'arm')}, the study {len(study.state.ids)}")
    told = 0
    with Watch(study, progress) as watch:
        while study.sync().open_trials() or study._hand_out(None, {}):  # nobody asks for ids
            trials = study.pending() if on_result is not unheard else ()
            told += study.write(lambda state: results.telling(state, _drawn(state, world)))
            for trial in trials:
                one = study.state.results[number_of(trial.id) or 0]
                on_result(study, trial, one.sum / one.count)
            watch.step()
    return told


def _drawn(state: StudyState, world: Pullable) -> list[Record]:
    """Return a sum for each arm of the trials that are out."""
    trials: dict[int, list[int]] = {}
    for trial in state.open_trials():
        trials.setdefault(state.arm_of(trial), []).append(trial)
    arms, times = np.array(list(trials)), np.array([len(mine) for mine in trials.values()])
    taken = np.zeros(len(state.ids), dtype=np.int64)
    taken[state.measured] = state.known(state.measured).counts
    drawn = world.pull(Pulls(arms, times), taken, np.random.default_rng([state.seed, WORLD, state.rounds]))
    known = Tally(times, drawn.sums, drawn.squares, drawn.scatter)
    totals = (part.tolist() for part in (times, known.sums, known.squares, known.within))
    rows = zip(trials.items(), *totals, strict=True)
    return [{**results.naming(mine), "arm": arm, **said(*sums)} for (arm, mine), *sums in rows]
