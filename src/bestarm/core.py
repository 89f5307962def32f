"""The one seam: a problem, pulls, totals, and a policy that asks and is told.

Numeric arrays carry any number of leading axes `...`: none in a person's live study or a single
simulated run, one in a block of Monte Carlo replications. The same lines serve all three.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from bestarm.errors import ArmsError, BudgetError, InputError
from bestarm.needs import Least, Need
from bestarm.numbers import LARGEST_VALUE, LARGEST_WHOLE, real, whole
from bestarm.totals import AnyArray as AnyArray
from bestarm.totals import Array as Array
from bestarm.totals import Tally as Tally
from bestarm.totals import Totals as Totals

S = TypeVar("S")
Numbers = TypeVar("Numbers", float, Array)


def namespace(*arrays: Array) -> Any:
    """Return the array library of `arrays`; at once for NumPy, whose inner loops ask often."""
    if type(arrays[0]) is np.ndarray or isinstance(arrays[0], np.generic):
        return np  # from version 2.1 on NumPy keeps the standard itself
    from array_api_compat import array_namespace

    return array_namespace(*arrays)


class Random(Protocol):
    """Where a policy's randomness comes from; a `numpy.random.Generator` is one.

    Uniform numbers in [0, 1) are all a policy may draw, so that a run can be replayed row by row.
    """

    def random(self, size: Any = None, /) -> Any: ...


@dataclass(frozen=True)
class Problem:
    """What a policy may know: features `(..., K, d)`, the budget, and the noise variance if known.

    >>> import numpy as np
    >>> Problem(np.eye(3), budget=10).arms
    3
    """

    features: Array
    budget: int
    noise_variance: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", _checked(self.features))
        object.__setattr__(self, "budget", whole_budget(self.budget))
        if self.noise_variance is not None:
            object.__setattr__(self, "noise_variance", variance_of_noise(self.noise_variance))

    @property
    def arms(self) -> int:
        """The number of arms, K."""
        return int(self.features.shape[-2])

    @property
    def batch(self) -> tuple[int, ...]:
        """The leading axes: `()` for one run, `(R,)` for R replications."""
        return tuple(self.features.shape[:-2])


def whole_budget(budget: Any) -> int:
    """Return a budget as an int: pulls are counted in whole numbers of 64 bits, and there is at least one."""
    found = whole(budget, "budget", most=LARGEST_WHOLE)
    if found < 1:
        raise BudgetError(f"budget must be at least 1 pull; given {found}", least=1)
    return found


def variance_of_noise(variance: Any, what: str = "noise_variance") -> float:
    """Return the variance of one reward as a float; what no number within 0 and 1e150 is refused, naming `what`."""
    return real(variance, what, least=0, most=LARGEST_VALUE)


def _checked(features: Array) -> Array:
    """Return features `(..., K, d)` as floats, refusing what is no number within ±1e150 by its row and column."""
    try:
        xp = namespace(features)
    except TypeError as error:
        raise ArmsError(f"features must be an array of numbers of shape (..., K, d); {error}") from error
    if xp.isdtype(features.dtype, ("integral", "bool")):
        features = xp.astype(features, xp.float64)
    if not xp.isdtype(features.dtype, "real floating"):
        raise ArmsError(f"features must be an array of numbers of shape (..., K, d); given {features.dtype}")
    shape = features.shape
    if len(shape) < 2:
        raise ArmsError(f"features must have shape (..., K, d); given {tuple(shape)}")
    if shape[-2] == 0:
        raise ArmsError("there are no arms; at least one is needed")
    most = min(LARGEST_VALUE, float(xp.finfo(features.dtype).max))
    near = (features <= most) & (features >= -most)
    if not bool(xp.all(near)):
        where = int(xp.argmin(xp.astype(xp.reshape(near, (-1,)), xp.int64)))
        found = float(xp.reshape(features, (-1,))[where])
        row, column = where // shape[-1] % shape[-2] + 1, where % shape[-1] + 1
        raise ArmsError(
            f"row {row}, column {column}: features must be finite numbers within ±{LARGEST_VALUE:g}; found {found:g}"
        )
    return features


DIRECTIONS = {"maximize": ("largest", 1.0), "minimize": ("smallest", -1.0)}  # the word, and what rewards are times


@dataclass(frozen=True)
class Goal:
    """What is looked for: the best arm, of the largest mean or of the smallest. Policies look for the largest.

    >>> Goal("minimize").word, Goal("minimize").turned(3.0), Goal().turned(3.0)
    ('smallest', -3.0, 3.0)
    """

    direction: str = "maximize"

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            raise InputError(f"direction must be {' or '.join(map(repr, DIRECTIONS))}; given {self.direction!r}")

    @classmethod
    def of(cls, given: "Goal | str") -> "Goal":
        """Return a goal from what a person types."""
        return given if isinstance(given, Goal) else cls(given)

    @classmethod
    def from_dict(cls, written: Mapping[str, Any]) -> "Goal":
        """Read what `to_dict` wrote, among other things; a goal of a later version is refused."""
        if written.get("goal", "best") != "best":
            raise InputError(f"goal must be 'best'; given {written['goal']!r}")
        return cls(written["direction"])

    def to_dict(self) -> dict[str, str]:
        """Return plain values, as the log of a study has them."""
        return {"goal": "best", "direction": self.direction}

    @property
    def word(self) -> str:
        """Which mean is the best."""
        return DIRECTIONS[self.direction][0]

    @property
    def sign(self) -> float:
        """1 where the largest mean is the best, -1 where the smallest is."""
        return DIRECTIONS[self.direction][1]

    def turned(self, values: Numbers, about: float = 0.0) -> Numbers:
        """Return `values` so that larger is better: about - values where the smallest is. The same turn leads back."""
        return values if self.sign > 0 else about - values


@dataclass(frozen=True)
class Pulls:
    """A request: pull `arms[..., j]` exactly `times[..., j]` times. Zero times is allowed."""

    arms: Array
    times: Array

    @property
    def total(self) -> int:
        """The number of pulls; the largest over the replications, if there are several."""
        xp = namespace(self.times)
        return int(xp.max(xp.sum(self.times, axis=-1))) if self.times.shape[-1] else 0


class Policy(Protocol[S]):
    """An algorithm: frozen settings, no state. State goes in, state comes out.

    These four methods make a policy. What else may be asked of one is in `WholePolicy`, with a default for each.
    """

    def start(self, problem: Problem) -> S:
        """Return the state before any pull."""
        ...

    def ask(self, state: S, rng: Random) -> Pulls | None:
        """Return what to pull next, or None when nothing is left to pull."""
        ...

    def tell(self, state: S, pulls: Pulls, totals: Totals) -> S:
        """Return the state after `pulls` gave `totals`; they may differ from what was asked."""
        ...

    def recommend(self, state: S) -> Array:
        """Return the best arm as known now, shape `(...)`."""
        ...


@dataclass(frozen=True)
class Estimates:
    """Estimated means of some `arms` `(..., k)`, best first, with their standard errors, NaN where there are none."""

    arms: Array
    means: Array
    errors: Array


def _no_estimates() -> Estimates | None:
    return None


def _no_weights() -> dict[str, float]:
    return {}


@dataclass(frozen=True)
class Standing:
    """How a run stands, as its policy sees it. What takes computing is a function, called by whoever wants it.

    >>> Standing().active is None, Standing().weights()
    (True, {})
    """

    active: Array | None = None  # marks `(..., K)` of the arms still in; None where no arm ever leaves
    stages: tuple[int, ...] = ()  # pulls of every stage, passed and to come
    passed: int = 0  # how many stages are over
    eta: float | None = None  # where a stage keeps 1/eta of the arms, as the bounds on GSE suppose
    estimates: Callable[[], Estimates | None] = _no_estimates  # of the arms that were compared last
    weights: Callable[[], dict[str, float]] = _no_weights  # of the hypotheses it holds, the largest first


class WholePolicy(Policy[S], Protocol[S]):
    """A policy with all that may be asked of one; `policy_of` answers for those that leave something out."""

    @property
    def model(self) -> Any:
        """The reward model it judges by; None where it has none."""
        ...

    @property
    def flexible(self) -> bool:
        """Whether it takes fewer pulls than it asked for as it takes all, so that a plan may be cut to fit."""
        ...

    def needs(self, problem: Problem) -> Need:
        """Return the fewest pulls of these arms with which its answer means something; the budget does not matter."""
        ...

    def describe(self, state: S) -> Standing:
        """Return how a run stands."""
        ...

    def observe(self, state: S, pulls: Pulls, totals: Totals) -> S:
        """Return the state after rewards beyond what was asked, which take nothing of the budget it plans with."""
        ...

    def in_rounds(self, n: int) -> Policy[Any] | None:
        """Return the policy planned for `n` rounds; None where it has stages or single pulls of its own."""
        ...

    def in_batches(self, size: int, pulls: int, filled: bool) -> Policy[Any] | None:
        """Return the policy as it plans `size` of all its `pulls` together; None where it does not plan jointly.

        `filled`: batches are of that size, such as plates; otherwise it is how many are wanted at a time.
        """
        ...

    def sees(self, features: Array) -> Array:
        """Return the features `(..., K, d')` that its model sees."""
        ...

    def altered(self, change: Callable[[Any], Any]) -> Policy[Any]:
        """Return the policy with `change` applied to the part that settings are for: itself, unless it wraps one."""
        ...


class _Defaults:
    """What a policy answers to all it does not say itself."""

    model = None
    flexible = False

    def __init__(self, policy: Any) -> None:
        self.policy = policy

    def needs(self, problem: Problem) -> Need:
        return Least.TWO.need(problem.arms, problem.arms)

    def describe(self, state: Any) -> Standing:
        return Standing()

    def observe(self, state: Any, pulls: Pulls, totals: Totals) -> Any:
        return state

    def in_rounds(self, n: int) -> None:
        return None

    def in_batches(self, size: int, pulls: int, filled: bool) -> None:
        return None

    def sees(self, features: Array) -> Array:
        return features

    def altered(self, change: Callable[[Any], Any]) -> Any:
        return change(self.policy)


class _Completed:
    """A policy, and the defaults for what it leaves out; equal to the policy itself, and written down as such."""

    def __init__(self, policy: Any) -> None:
        self.__wrapped__ = policy

    def __getattr__(self, name: str) -> Any:
        own = self.__wrapped__
        return getattr(own if hasattr(own, name) else _Defaults(own), name)

    def __eq__(self, other: object) -> bool:
        return bool(self.__wrapped__ == getattr(other, "__wrapped__", other))

    def __hash__(self) -> int:
        return hash(self.__wrapped__)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def __reduce__(self) -> Any:
        return policy_of, (self.__wrapped__,)


METHODS = ("start", "ask", "tell", "recommend")
ASKED = ("model", "flexible", "needs", "describe", "observe", "in_rounds", "in_batches", "sees", "altered")


def policy_of(value: Any) -> WholePolicy[Any]:
    """Return whatever has the four methods of a policy with all that may be asked of one; nothing else looks.

    >>> policy_of(3)
    Traceback (most recent call last):
    ...
    bestarm.errors.InputError: int is no policy: it has no start, ask, tell, recommend
    """
    name = getattr(value, "__name__", type(value).__name__)
    missing = [method for method in METHODS if not callable(getattr(value, method, None))]
    if missing:
        raise InputError(f"{name} is no policy: it has no {', '.join(missing)}")
    if isinstance(value, type):
        raise InputError(f"{name} is the class of a policy, not a policy: make one, {name}()")
    return cast(WholePolicy[Any], value if all(hasattr(value, asked) for asked in ASKED) else _Completed(value))


class Pullable(Protocol):
    """Whatever can be pulled: a simulated truth, a tape, a person's command."""

    @property
    def features(self) -> Array: ...

    @property
    def noise_variance(self) -> float | None: ...

    def pull(self, pulls: Pulls, taken: Array, rng: Any) -> Totals:
        """Return the totals of `pulls`, when arm i has been pulled `taken[..., i]` times before."""
        ...
