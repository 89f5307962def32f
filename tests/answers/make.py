"""What every catalog entry answers on small problems, arm and counts, as a guard for changes that must change nothing.

    OPENBLAS_CORETYPE=Nehalem python -m tests.answers.make          # write answers.csv
    OPENBLAS_CORETYPE=Nehalem python -m tests.answers.make --check  # compare, and print what differs

A processor's own kernels of linear algebra break ties otherwise, so one kernel is pinned, and the file says which, with
the version of NumPy. Of a refusal the kind of error is kept, not its words.
"""

import csv
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_info

from bestarm import Arms, Bandit, Bernoulli, Gaussian, Poisson, catalog, create_study, play

FILE = Path(__file__).with_name("answers.csv")
SEED = 1


class Small(NamedTuple):
    """A problem: features, what decides the means, the budget, and how much the arms cost."""

    features: np.ndarray
    scores: np.ndarray
    budget: int
    cost: np.ndarray | None = None


def problems() -> dict[str, Small]:
    """Return the problems by name, awkward ones among them."""
    rng = np.random.default_rng(20261119)
    normal = rng.standard_normal
    plain, wide, line = normal((8, 3)), normal((40, 6)), np.linspace(-1, 1, 9)[:, None]
    twins = np.repeat(normal((4, 3)), 2, axis=0)
    lost = normal((7, 2)) @ normal((2, 5))
    theta = normal(6)
    return {
        "plain": Small(plain, plain @ theta[:3], 120),
        "wide": Small(wide, wide @ theta, 300),
        "corner": Small(np.eye(5), np.array([1.0, 0.6, 0.5, 0.2, 0.0]), 60),
        "line": Small(np.hstack([line, np.ones_like(line)]), line[:, 0], 90),
        "curved": Small(np.hstack([line, np.ones_like(line)]), 1 - 2 * (line[:, 0] - 0.3) ** 2, 150),
        "ties": Small(twins, twins @ theta[:3], 80),
        "all alike": Small(np.ones((4, 2)), np.zeros(4), 40),
        "one arm": Small(np.array([[1.0, 2.0]]), np.array([0.4]), 10),
        "two arms": Small(np.eye(2), np.array([0.3, 0.0]), 15),
        "more arms than pulls": Small(wide, wide @ theta, 25),
        "rank lost": Small(lost, lost @ theta[:5], 100),
        "separated": Small(plain, 60 * (plain @ theta[:3]), 120),
        "far away": Small(plain * 1e3 + 1e4, plain @ theta[:3], 120),
        "costs": Small(plain, plain @ theta[:3], 60, np.array([1, 2, 1, 3, 1, 0.5, 2, 1.0])),
    }


def bandit(entry: catalog.Entry, name: str, small: Small) -> Bandit:
    """Return a problem with rewards that the entry's model can use."""
    if "-poi-" in name:
        return Bandit(small.features, np.exp(np.clip(small.scores, -2, 2)), Poisson())
    if entry.binary:
        return Bandit(small.features, 1 / (1 + np.exp(-np.clip(small.scores, -500, 500))), Bernoulli())
    return Bandit(small.features, small.scores, Gaussian(1.0))


def answer(policy: object, world: Bandit, small: Small) -> list[str]:
    """Return the arm and the counts, or that the policy refused."""
    try:
        if small.cost is None:
            run = play(policy, world, small.budget, SEED)
            arm, counts = run.arm, run.counts
        else:
            arm, counts = in_study(policy, world, small)
    except Exception as error:
        return [type(error).__name__, ""]
    return [str(int(arm)), " ".join(str(int(n)) for n in counts)]


def in_study(policy: object, world: Bandit, small: Small) -> tuple[int, list[float]]:
    """Run a study of arms that cost money to its end."""
    arms = Arms.from_arrays(small.features)
    priced = Arms(arms.ids, arms.features, arms.names, arms.encoding, small.cost)
    study = create_study(priced, small.budget, policy, seed=SEED, noise_variance=world.noise_variance, batch=4)
    rng = np.random.default_rng(SEED)
    while (batch := study.ask()) is not None:
        means = world.means[[study.state.places[trial.arm] for trial in batch]]
        study.tell(batch, world.noise.rewards(means, 1, rng)[:, 0])
    return study.state.places[study.best_arm], study.state.counts


def answers() -> Iterator[list[str]]:
    """Give every entry's answer to every problem: entry, problem, arm, counts."""
    for name, entry in catalog.ENTRIES.items():
        for title, small in problems().items():
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                yield [name, title, *answer(entry.policy, bandit(entry, name, small), small)]


def made_with() -> str:
    """Return what answers may depend on: the version of NumPy and the kernels of its linear algebra."""
    kernels = {one.get("architecture", "none") for one in threadpool_info() if one["user_api"] == "blas"}
    return f"numpy {np.__version__}, {' '.join(sorted(kernels))}"


def read() -> tuple[str, list[list[str]]]:
    """Return what the file was made with, and its rows."""
    first, *rows = csv.reader(FILE.read_text().splitlines())
    return first[0], rows


def main() -> None:
    if "--check" not in sys.argv:
        with FILE.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([[made_with()], *answers()])
        return
    made, rows = read()
    now = list(answers())
    print(f"made with {made}; here {made_with()}")
    for old, new in zip(rows, now, strict=True):
        if old != new:
            print("changed", *old, "is", *new[2:], sep=" | ")
    sys.exit(rows != now)


if __name__ == "__main__":
    main()
