"""When a failed pull is tried again: growing waits with chance in them, waits that were asked for, and a pace."""

import itertools
import random
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace

import pytest

from bestarm.errors import InputError, PullError
from bestarm.study.retry import GRANTED, LAG, LONGEST, Pace, PullTimeout, Retry, Tries, asked_to_wait

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def carrying(**attributes):
    error = OSError("429 Too Many Requests")
    vars(error).update(attributes)
    return error


def test_waits_double_up_to_a_minute_and_have_chance_in_them():
    for seed in range(20):
        retry, tries = Retry(retries=12, backoff=0.5, rng=random.Random(seed)), Tries()
        waits = [retry.after(OSError(), tries) for _ in range(12)]
        for k, wait in enumerate(waits):
            assert min(LONGEST, 0.5 * 2**k) / 2 <= wait <= min(LONGEST, 0.5 * 2**k)
        assert retry.after(OSError(), tries) is None
    assert len({Retry(rng=random.Random(seed)).after(OSError(), Tries()) for seed in range(20)}) == 20


def test_without_back_off_the_next_attempt_is_at_once():
    assert Retry.of(1, Exception, 0).after(OSError(), Tries()) == 0


@pytest.mark.parametrize(
    ("retry_on", "again", "not_again"),
    [
        (Exception, (OSError(), PullTimeout("late")), (SystemExit(1), KeyboardInterrupt())),
        (ConnectionError, (ConnectionResetError(),), (ValueError(), PullTimeout("late"))),
        ((ValueError, TimeoutError), (ValueError(), PullTimeout("late")), (OSError(),)),
        ([ValueError], (ValueError(),), (OSError(),)),
        (lambda error: "busy" in str(error), (OSError("busy"),), (OSError("gone"),)),
        ((), (), (OSError(),)),
    ],
)
def test_only_what_was_said_is_tried_again(retry_on, again, not_again):
    retry = Retry.of(3, retry_on, 0)
    assert all(retry.after(error, Tries()) is not None for error in again)
    assert all(retry.after(error, Tries()) is None for error in not_again)


def test_what_a_pull_error_was_raised_from_counts_too():
    outer = PullError("arm 'a' failed")
    outer.__cause__ = ConnectionResetError()
    assert Retry.of(1, ConnectionError, 0).after(outer, Tries()) is not None
    outer.__cause__ = carrying(retry_after=3)
    assert asked_to_wait(outer) == 3


@pytest.mark.parametrize("bad", [None, 3, "OSError", [OSError, 3], int, [int]])
def test_what_is_no_exception_type_is_refused(bad):
    with pytest.raises(InputError, match="retry_on is a type of exception"):
        Retry.of(1, bad, 0)


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (carrying(retry_after=7), 7.0),
        (carrying(retry_after="0.5"), 0.5),
        (carrying(retry_after=timedelta(minutes=2)), 120.0),
        (carrying(retry_after=NOW + timedelta(seconds=9)), 9.0),
        (carrying(response=SimpleNamespace(headers={"Retry-After": "30"})), 30.0),
        (carrying(response=SimpleNamespace(headers={"retry-after": b"31"})), 31.0),
        (carrying(headers={"Retry-After": " 32 "}), 32.0),
        (carrying(headers={"Retry-After": format_datetime(NOW + timedelta(seconds=45), usegmt=True)}), 45.0),
        (carrying(headers={"Retry-After": format_datetime(NOW - timedelta(days=45), usegmt=True)}), 0.0),
        (carrying(retry_after="soon", headers={"Retry-After": "4"}), 4.0),
        (carrying(), None),
        (carrying(retry_after=True), None),
        (carrying(retry_after=-1), None),
        (carrying(retry_after=float("nan")), None),
        (carrying(retry_after="inf"), None),
        (carrying(retry_after=lambda: 3), None),
        (carrying(headers=3, response="no response"), None),
        (carrying(response=SimpleNamespace(headers={"Retry-After": "Mon, 99 Foo 2026"})), None),
    ],
)
def test_a_wait_that_is_asked_for_is_read_from_wherever_it_stands(error, seconds):
    assert asked_to_wait(error, now=NOW.timestamp) == seconds


def test_an_error_whose_attributes_raise_asks_for_nothing():
    class Odd(Exception):
        @property
        def response(self):
            raise RuntimeError("the connection is closed")

        headers = retry_after = response

    assert asked_to_wait(Odd()) is None


def test_a_wait_that_is_asked_for_is_kept_to_and_is_no_failure():
    retry, tries = Retry(retries=1, backoff=0.5), Tries()
    waits = [retry.after(carrying(retry_after=40), tries) for _ in range(GRANTED)]
    assert all(40 <= wait <= 60 for wait in waits)
    assert tries.failed == 0
    assert retry.after(OSError(), tries) is not None
    assert retry.after(OSError(), tries) is None
    assert 40 <= Retry(retries=1).after(carrying(retry_after=40), Tries(waited=GRANTED)) <= 60  # from then on it counts
    assert Retry(retries=0).after(carrying(retry_after=40), Tries(waited=GRANTED)) is None


def test_who_asks_for_no_wait_again_and_again_gets_longer_ones():
    retry, tries = Retry(backoff=0.5), Tries()
    waits = [retry.after(carrying(retry_after=0), tries) for _ in range(6)]
    assert waits[0] >= 0.25
    assert waits[-1] >= 8


@pytest.mark.parametrize("rate", [0.5, 2, 20, 300])
def test_a_pace_is_never_exceeded_and_is_reached(rate):
    pace, rng, now, begun = Pace.of(rate), random.Random(3), 100.0, []
    while len(begun) < 200:
        if pace.wait(now) <= 0:
            pace.begin(now)
            begun.append(now)
        else:
            now += pace.wait(now) + rng.choice([0, 0, 1e-4, 1e-3])
    assert min(b - a for a, b in itertools.pairwise(begun)) >= 1 / rate - LAG - 1e-9
    for k in (10, 199):  # in any window: no more than the rate, one at its edge, and what a late one makes up for
        spans = [b - a for a, b in zip(begun, begun[k:], strict=False)]
        assert min(spans) >= (k / rate) - LAG - 1e-9
    assert begun[-1] - begun[0] <= 199 / rate * 1.001 + LAG


def test_after_a_pause_no_burst_follows():
    pace = Pace.of(2)
    pace.begin(0.0)
    pace.begin(100.0)
    assert pace.wait(100.0) >= 0.5 - LAG


def test_without_a_pace_nothing_waits():
    pace = Pace.of(None)
    pace.begin(1.0)
    assert pace.wait(1.0) == 0
