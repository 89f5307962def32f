"""Numbers as people give them, at every door: what is one is one, whatever library made it, and one bound holds."""

import asyncio
import math
from decimal import Decimal
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given

from bestarm import catalog, create_study, instances, load_study
from bestarm import run as ran
from bestarm.cli import main
from bestarm.core import Problem
from bestarm.errors import BestArmError, InputError
from bestarm.numbers import LARGEST_VALUE, LARGEST_WHOLE, generator, real, shown, whole
from bestarm.playing import play
from bestarm.pulling import checked
from bestarm.tables.arms import Arms

KINDS = [np.int8, np.int64, np.uint64, np.float32, np.float64, np.array, np.longdouble, Fraction, Decimal, int, float]
NONE = [
    None, True, False, np.True_, "30", b"30", "", 30j, np.complex128(30), np.nan, np.inf, -np.inf, np.float32("nan"),
    Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), np.ones(1), np.ones((1, 1)), [30], (30,), {}, object(),
    np.ma.masked, np.datetime64("2026"), np.timedelta64(30), np.str_("30"), np.array("30"), np.array(None),
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_any_library_are_numbers(kind):
    found = whole(kind(30), "it"), real(kind(30), "it")
    assert found == (30, 30.0)
    assert [type(one) for one in found] == [int, float]


@pytest.mark.parametrize("value", NONE, ids=lambda value: f"{type(value).__name__}")
def test_what_is_no_number_is_refused_by_name(value):
    for number in (whole, real):
        with pytest.raises(InputError, match=r"^it must be a (whole|finite) number; given ") as info:
            number(value, "it")
        assert len(str(info.value)) < 200


@given(st.integers(-(2**70), 2**70))
def test_whole_numbers_are_kept_exactly(value):
    assert whole(value, "it") == value
    assert whole(Fraction(value), "it") == value
    assert whole(Decimal(value), "it") == value
    assert (float(value) != value) or whole(float(value), "it") == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_finite_numbers_are_kept_exactly(value):
    assert real(value, "it") == real(np.float64(value), "it") == real(Fraction(value), "it") == value
    if value != math.floor(value):
        with pytest.raises(InputError, match="whole number"):
            whole(value, "it")


@given(st.integers(), st.integers(), st.integers())
def test_limits_are_part_of_what_is_allowed(value, least, most):
    if least <= value <= most:
        assert whole(value, "it", least, most) == value
    else:
        with pytest.raises(InputError, match=f"it must be a whole number from {least} to {most}; given"):
            whole(value, "it", least, most)


def test_limits_are_named():
    assert real(0, "it", least=0) == 0.0
    for limits, words in (({"least": 1}, "at least 1"), ({"most": -1}, "at most -1"), ({"above": 0}, "above 0")):
        with pytest.raises(InputError, match=rf"it must be a finite number, {words}; given 0$"):
            real(0, "it", **limits)


@pytest.mark.parametrize("value", [10**400, -(10**400), Fraction(10**400), Decimal("1e400"), Decimal("1e999999")])
def test_numbers_beyond_all_floats_are_refused_in_short(value):
    with pytest.raises(InputError, match="finite number") as info:
        real(value, "it")
    assert len(str(info.value)) < 200
    assert len(shown(10**100_000)) < 200


@pytest.mark.parametrize("seed", [1, np.int64(1), 1.0, np.array(1)])
def test_a_seed_is_a_whole_number(seed):
    assert generator(seed).random() == np.random.default_rng(1).random()


def test_seeds_of_numpy_are_seeds():
    rng = np.random.default_rng(5)
    assert generator(rng) is rng
    for seed in ([1, 2], np.array([1, 2]), np.random.SeedSequence([1, 2])):
        assert generator(seed).random() == np.random.default_rng([1, 2]).random()


@pytest.mark.parametrize("seed", [1.5, True, -1, "1", np.nan, [1, -1], [0.5]])
def test_other_seeds_are_refused(seed):
    with pytest.raises(InputError, match=r"seed must be a whole number, at least 0; given"):
        generator(seed)


# doors

ARMS = Arms.from_arrays(np.eye(3), ids=["a", "b", "c"])
DOORS = {
    "Problem": lambda budget=9, seed=1: Problem(np.eye(3), budget),
    "play": lambda budget=9, seed=1: play(catalog.policy("uniform"), instances.static(gap=3.0), budget, seed),
    "create_study": lambda budget=9, seed=1: create_study(ARMS, budget, "uniform", seed=seed),
}


@pytest.mark.parametrize("door", DOORS)
def test_a_budget_of_any_library_is_one(door):
    for budget in (np.int64(30), np.float32(30), np.array(30), 30.0, Fraction(30)):
        DOORS[door](budget=budget)
    for budget in (True, "30", None, np.nan, 0, -1, LARGEST_WHOLE + 1, 10**400):
        with pytest.raises(InputError, match="budget"):
            DOORS[door](budget=budget)


@pytest.mark.parametrize("door", ["play", "create_study"])
def test_a_seed_of_any_library_is_one(door):
    for seed in (np.int64(3), np.uint8(3), 3.0):
        DOORS[door](seed=seed)
    for seed in (1.5, True, -1, "3"):
        with pytest.raises(InputError, match="seed must be a whole number, at least 0"):
            DOORS[door](seed=seed)


@pytest.mark.parametrize("variance", [True, "1", np.nan, np.inf, -1, np.nextafter(LARGEST_VALUE, np.inf), 1e308])
def test_a_variance_is_a_number_within_the_bound(variance):
    with pytest.raises(InputError, match="noise_variance"):
        Problem(np.eye(3), 9, variance)
    with pytest.raises(InputError, match="noise_variance"):
        create_study(ARMS, 9, "uniform", noise_variance=variance)
    for right in (0, np.float32(1), LARGEST_VALUE):
        assert type(Problem(np.eye(3), 9, right).noise_variance) is float


def test_numbers_of_numpy_at_the_doors_of_a_study():
    study = create_study(ARMS, np.int64(30), "uniform", seed=np.int64(1), batch=np.int64(6))
    batch = study.ask(np.int64(3))
    assert study.tell(batch, np.ones(3, np.float32)) == 3
    assert study.tell(arm="a", values=np.float32(1)) == 1
    study.amend(batch.trials[0], np.int32(2))
    study.raise_budget(np.float64(31))
    assert study.run(lambda arm: np.float32(1), n_jobs=np.int64(2), retries=np.int64(1), timeout=np.float32(9)) > 0
    assert (study.spent, study.state.sums[0]) == (31, 1 + study.state.counts[0])
    for bad in (True, 1.5, "3", 0):
        with pytest.raises(InputError):
            study.ask(bad)


def one(study):
    return study.ask(1).trials[0]


def file_of(study, value, folder):
    """A file of results as `ask` would have it."""
    path = folder / "told.csv"
    path.write_text(f"trial,arm,reward\n{one(study).id},,{value!r}\n")
    return path


def command(name, *words):
    """Run a command on the study, and raise what it says if it is refused."""
    done = CliRunner().invoke(main, [str(word) for word in (words[0], "-s", "s", "--storage", name, *words[1:])])
    assert done.exit_code in (0, 1, 2), done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert "Traceback" not in done.output
    if done.exit_code:
        raise InputError(done.stderr)


def run_with(study, value):
    """Pull until the first value that is refused; the study's budget is one pull larger than what is spent."""
    return study.run(lambda arm: value, retries=0)


def run_async_with(study, value):
    async def pull(arm):
        return value

    return asyncio.run(study.run_async(pull, retries=0))


WAYS = {
    "tell": lambda s, v, f: s.tell(one(s), v),
    "tell a batch": lambda s, v, f: s.tell(s.ask(2), [1.0, v]),
    "tell by arm": lambda s, v, f: s.tell(arm="a", values=v),
    "tell a correction": lambda s, v, f: s.tell("T0001", v, correct=True),
    "import": lambda s, v, f: s.import_results([("a", v)]),
    "amend": lambda s, v, f: s.amend("T0001", v),
    "run": lambda s, v, f: run_with(s, v),
    "run_async": lambda s, v, f: run_async_with(s, v),
    "bestarm tell": lambda s, v, f: command(f / "s.jsonl", "tell", file_of(s, v, f)),
    "bestarm tell by arm": lambda s, v, f: (
        (f / "told.csv").write_text(f"arm,reward\na,{v!r}\n"), command(f / "s.jsonl", "tell", f / "told.csv"),
    ),
    "bestarm import": lambda s, v, f: (
        (f / "told.csv").write_text(f"arm,reward\na,{v!r}\n"), command(f / "s.jsonl", "import", f / "told.csv"),
    ),
    "bestarm amend": lambda s, v, f: command(f / "s.jsonl", "amend", "--why", "typo", "--", "T0001", repr(v)),
    "bestarm run-study": lambda s, v, f: command(
        f / "s.jsonl", "run-study", "--pull", f"echo {v!r} # BESTARM_ID", "--retries", 0
    ),
}  # fmt: skip


@pytest.fixture
def study(tmp_path):
    """A study of which one trial is told."""
    made = create_study(ARMS, 6, "uniform", study_name="s", storage=tmp_path / "s.jsonl", seed=1)
    made.tell(made.ask(1), [0.0])
    return made


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("way", WAYS)
def test_a_value_at_the_bound_is_taken_and_read_again(way, sign, study, tmp_path):
    WAYS[way](study, sign * LARGEST_VALUE, tmp_path)
    again = load_study("s", tmp_path / "s.jsonl")
    assert sign * LARGEST_VALUE in [row["value"] for row in again.trials()]
    assert math.isfinite(sum(again.state.squares))
    assert again.best_arm in "abc"
    again.ask(1)


@pytest.mark.parametrize("value", [np.nextafter(LARGEST_VALUE, np.inf), -1e151, 1e308, np.inf, -np.inf], ids=repr)
@pytest.mark.parametrize("way", WAYS)
def test_a_value_beyond_the_bound_is_refused_and_nothing_of_it_kept(way, value, study, tmp_path):
    with pytest.raises(BestArmError, match="expected"):
        WAYS[way](study, float(value), tmp_path)
    again = load_study("s", tmp_path / "s.jsonl")
    assert [row["value"] for row in again.trials() if row["value"] is not None] == [0.0]


@pytest.mark.parametrize("sign", [1, -1])
def test_one_bound_for_a_pull_and_for_a_run(sign):
    right, wrong = sign * LARGEST_VALUE, float(sign * np.nextafter(LARGEST_VALUE, np.inf))
    assert checked(right, "it") == right
    assert ran(np.eye(3), 3, lambda arm: right, "uniform", seed=1).told == 3
    with pytest.raises(BestArmError, match="within ±"):
        ran(np.eye(3), 3, lambda arm: wrong, "uniform", seed=1, retries=0)
