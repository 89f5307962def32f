"""Laws of what is set aside: what lies far from all else waits until its arm repeats it, and nothing else ever does."""

import numpy as np
import pytest

from bestarm.core import Pulls, Totals
from bestarm.structures.aside import Groups, _median, _shares

ORDINARY = np.asarray(True)


def came(arms, rewards, ordinary=ORDINARY, count=None):
    """Rewards `(..., G)` in the groups in which they came, a list of several where one is a list; judged."""
    lists = [np.atleast_1d(np.asarray(one, dtype=float)) for one in rewards]
    parts = [
        np.array([f(y) for y in lists]) for f in (len, np.sum, lambda y: y @ y, lambda y: len(y) * np.var(y) + 0.0)
    ]
    times, *totals = parts
    found = Groups.none(()).plus(Pulls(np.asarray(arms), times), Totals(*totals))
    return found.judged(int(np.max(arms)) + 1 if count is None else count, ordinary)


def stacked(arms, y, ordinary=None):
    """Single rewards `(R, G)` of `arms` `(R, G)`, judged."""
    groups = Groups.none(y.shape[:-1]).plus(Pulls(arms, np.ones(y.shape, dtype=int)), Totals(y, y * y, 0 * y))
    return groups.judged(int(arms.max()) + 1, np.ones(len(y), dtype=bool) if ordinary is None else ordinary)


def test_every_arm_has_one_in_all(rng):
    arms, there = rng.integers(0, 6, (4, 25)), rng.random((4, 25)) < 0.7
    found = _shares(arms, there)
    for row in range(4):
        for one in range(25):
            alike = np.sum(there[row] & (arms[row] == arms[row, one]))
            assert found[row, one] == pytest.approx(1 / alike if there[row, one] else 0)


def test_half_of_all_weight_is_at_the_weighted_median_or_below(rng):
    values, weights = rng.standard_normal((50, 9)).round(1), rng.random((50, 9)) * (rng.random((50, 9)) < 0.7)
    weights[0] = 0
    for value, y, w in zip(_median(values, weights), values, weights, strict=True):
        upto = [np.sum(w[y <= one]) for one in np.sort(y)]
        enough = [one for one, all_below in zip(np.sort(y), upto, strict=True) if all_below >= np.sum(w) / 2 > 0]
        assert value == (enough[0] if enough else 0)


def odd(arms, rewards):
    """Eq. 15 in words, for groups of lists of rewards: which are left out."""
    y, times = np.array([np.mean(one) for one in rewards]), np.array([len(one) for one in rewards])
    share = np.array([1 / np.sum(arms == arm) for arm in arms])

    def median(values, weights):
        order = np.argsort(values)
        upto = np.cumsum(weights[order])
        return values[order][np.flatnonzero(upto >= upto[-1] / 2)[0]]

    off = y - median(y, share)
    spread = [1.4826 * max(median(abs(off), share), median(abs(off)[s], share[s])) for s in (off < 0, off > 0)]
    variance = np.array([np.var(one, ddof=1) if len(one) > 1 else 0.0 for one in rewards])
    several = times > 1
    wide = several & (variance > 144 * max(max(spread) ** 2, median(variance[several], np.ones(several.sum()))))
    over, under = ~wide & (off > 12 * spread[1]), ~wide & (off < -12 * spread[0])
    left_out = wide | over | under
    for arm in arms:
        for side in (over, under):
            alike = side & (arms == arm)
            if alike.sum() >= 2 and 2 * alike.sum() >= np.sum(arms == arm):
                left_out[alike] = False
    return left_out


def test_groups_are_judged_as_the_equation_says(rng):
    seen = []
    for _ in range(100):
        arms = rng.permutation(np.repeat(np.arange(11), rng.choice([1, 2, 4], 11)))
        rewards = [rng.normal(0.1 * arm, 1, rng.choice([1, 1, 3])) for arm in arms]
        for place in rng.choice(len(arms), rng.integers(0, 6), replace=False):
            rewards[place][0] += rng.choice([-1, 1]) * rng.choice([20, 100])
        wanted = odd(arms, rewards)
        np.testing.assert_array_equal(came(arms, rewards).aside, wanted)
        seen.append(wanted.sum())
    assert {0, 1, 2} <= set(seen)


@pytest.mark.parametrize("side", [-1, 1])
def test_one_reward_far_from_all_waits_until_its_arm_repeats_it(side, rng):
    arms, y = np.arange(30), rng.standard_normal(30)
    y[7] = side * 100
    once = came(arms, y)
    assert np.flatnonzero(once.aside) == [7]
    again = came(np.append(arms, 7), np.append(y, side * 90))
    assert not again.aside.any()
    opposite = came(np.append(arms, 7), np.append(y, -side * 90))
    assert np.flatnonzero(opposite.aside).tolist() == [7, 30]
    denied = came(np.append(arms, [7, 7, 7]), np.append(y, [0.1, 0.2, -0.3]))
    assert np.flatnonzero(denied.aside) == [7]


def test_only_what_is_far_above_is_asked_for_again(rng):
    arms, y = np.arange(30), rng.standard_normal(30)
    y[7], y[8] = 100, -100
    found = came(arms, y)
    assert np.flatnonzero(found.unsettled(30)) == [7]
    other = came(np.append(arms, 7), np.append(y, 0.2))
    assert not other.unsettled(30).any()  # something is left of it
    assert not came(np.append(arms, [7, 7]), np.append(y, [-100, -90])).unsettled(30).any()  # it was asked enough


def test_a_group_that_scatters_far_more_is_left_out_and_confirms_nothing(rng):
    arms = np.append(np.arange(20), [3, 3])
    rewards = [*rng.standard_normal((20, 4)), [0.2, 0.1, 500.0], [0.3, -0.1, 700.0]]
    found = came(arms, rewards)
    assert np.flatnonzero(found.aside).tolist() == [20, 21]


def test_what_is_skewed_is_rarely_odd(rng):
    arms, y = np.tile(np.arange(30), (2000, 1)), np.exp(rng.standard_normal((2000, 30)))
    share = np.mean(np.any(stacked(arms, y).aside, axis=-1))
    # exceeding 1 + 12 · 1.4826 · (e^0.6745 − 1) = 18.1 has probability .0019, in 30 rewards .055, the medians known
    assert share < 0.12
    normal = stacked(arms, rng.standard_normal((2000, 30)))
    assert not normal.aside.any()  # twelve deviations: less than 1e-6 in all, s being off by less than half


def test_rewards_zero_and_one_are_never_odd():
    arms, times = np.arange(20), np.full(20, 50)
    wins = np.array([*[0.0, 1.0, 2.0] * 6, 1.0, 50.0])  # all of fifty where others have about one
    for ordinary in (True, False):
        found = Groups.none(()).plus(Pulls(arms, times), Totals(wins, wins)).judged(20, np.asarray(ordinary))
        assert np.flatnonzero(found.aside).tolist() == [19] * ordinary
        assert found.doubtful == ordinary


@pytest.mark.parametrize(("groups", "arms"), [(11, 11), (12, 7), (40, 7)])
def test_of_few_groups_or_arms_there_is_no_middle_to_speak_of(groups, arms, rng):
    y = np.append(rng.standard_normal(groups - 1), 1e6)
    few = came(np.arange(groups) % arms, y)
    assert not few.aside.any()
    assert not few.doubtful
    enough = came(np.arange(12) % 8, np.append(rng.standard_normal(11), 1e6))
    assert np.flatnonzero(enough.aside) == [11]


def test_where_nothing_scatters_nothing_is_odd():
    y = np.ones(30)
    y[4] = 100.0
    assert not came(np.arange(30), y).aside.any()


@pytest.mark.parametrize("change", [lambda y: y + 1e9, lambda y: 1e-6 * y, lambda y: -3e7 * y, lambda y: 1e-3 * y - 7])
def test_neither_origin_nor_unit_of_the_rewards_matters(change, rng):
    arms = np.append(np.arange(20), [3, 3, 5])
    rewards = [*rng.standard_normal((20, 3)), np.array([90.0]), np.array([0.1, 0.2, 200.0]), np.array([-80.0])]
    one, two = (came(arms, [f(y) for y in rewards]) for f in (lambda y: y, change))
    np.testing.assert_array_equal(one.aside, two.aside)
    assert np.flatnonzero(one.aside).tolist() == [20, 21, 22]


def test_the_order_in_which_groups_came_does_not_matter(rng):
    arms = rng.integers(0, 12, 40)
    y = rng.standard_normal(40) + 80 * (rng.random(40) < 0.1)
    found = came(arms, y)
    assert found.aside.any()
    for _ in range(10):
        order = rng.permutation(40)
        np.testing.assert_array_equal(came(arms[order], y[order], count=12).aside, found.aside[order])


def test_what_is_kept_is_the_tally_of_what_is_left(rng):
    arms = rng.integers(0, 12, 40)
    rewards = [rng.standard_normal(rng.integers(1, 4)) for _ in arms]
    rewards[3][0] += 500
    found = came(arms, rewards, count=14)
    assert found.aside[3]
    known = found.kept(14)
    for arm in range(14):
        left = [y for place, y in enumerate(rewards) if arms[place] == arm and not found.aside[place]]
        y = np.concatenate([np.empty(0), *left])
        assert known.counts[arm] == len(y)
        np.testing.assert_allclose(known.sums[arm], y.sum(), atol=1e-12)
        np.testing.assert_allclose(known.squares[arm], y @ y, atol=1e-12)
        np.testing.assert_allclose(known.within[arm], len(y) * np.var(y) if len(y) else 0, atol=1e-12)


def test_groups_of_no_pulls_are_none(rng):
    arms, y = np.append(np.arange(20), [3, 3]), np.append(rng.standard_normal(20), [100.0, 0.2])
    found = came(arms, y)
    padded = np.append(arms, np.arange(20)), np.append(np.ones(22), np.zeros(20)), np.append(y, np.zeros(20))
    wider = Groups.none(()).plus(Pulls(*padded[:2]), Totals(padded[2], padded[2] ** 2)).judged(20, ORDINARY)
    assert found.aside.any()
    np.testing.assert_array_equal(wider.aside[:22], found.aside)
    assert not wider.aside[22:].any()
    for one, two in zip(vars(wider.kept(20)).values(), vars(found.kept(20)).values(), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-12)
    np.testing.assert_array_equal([wider.low, wider.high, wider.widest], [found.low, found.high, found.widest])


def test_replications_are_judged_as_if_alone(rng):
    arms = rng.integers(0, 12, (6, 40))
    times = rng.integers(0, 4, (6, 40))
    times[0, 5:] = 0  # one that was hardly asked anything
    y = rng.standard_normal((6, 40, 3)) + 200 * (rng.random((6, 40, 3)) < 0.03)
    y = y * (np.arange(3) < times[..., None])
    sums, squares = y.sum(-1), (y**2).sum(-1)
    together = Groups.none((6,)).plus(Pulls(arms, times), Totals(sums, squares)).judged(12, np.ones(6, dtype=bool))
    assert together.aside.any(axis=-1).sum() > 2
    for row in range(6):
        alone = Groups.none(()).plus(Pulls(arms[row], times[row]), Totals(sums[row], squares[row]))
        alone = alone.judged(12, ORDINARY)
        for one, two in zip(vars(together.kept(12)).values(), vars(alone.kept(12)).values(), strict=True):
            np.testing.assert_array_equal(one[row], two)
        assert (together.low[row], together.high[row]) == (alone.low, alone.high)


def test_whatever_may_change_what_is_set_aside_is_doubtful(rng):
    """A group that came last is judged anew wherever that could matter: as far as limits have not moved."""
    arms, y = np.arange(30), rng.standard_normal(30)
    y[7] = 100.0
    before = came(arms, y)
    for arm, reward, doubt in ((3, 0.3, False), (3, 90.0, True), (3, -90.0, True), (7, 0.3, True), (7, 95.0, True)):
        one = np.array([reward])
        after = before.plus(Pulls(np.array([arm]), np.array([1])), Totals(one, one**2))
        assert after.doubtful == doubt
        changed = np.any(after.judged(30, ORDINARY).aside != after.aside)
        assert changed <= doubt
