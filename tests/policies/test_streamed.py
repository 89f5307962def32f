"""Eliminations over many arms: the streamed one agrees with the one in memory, whatever holds the table."""

from dataclasses import replace
from types import SimpleNamespace

import array_api_strict
import dask.array
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bestarm import catalog
from bestarm.bandits import Bandit, Gaussian
from bestarm.core import Problem, Pulls, Totals
from bestarm.designs.many import BySize, Sparse
from bestarm.errors import ArmsError, BudgetError, InputError
from bestarm.linalg import Candidates
from bestarm.numbers import generator
from bestarm.playing import Round, play
from bestarm.policies.elimination import MANY, AllStages
from bestarm.policies.streamed import BigProblem, Streamed, quantile
from bestarm.spec import changed
from bestarm.tables import open_source
from bestarm.tables.memory import ArraySource
from bestarm.tables.views import ColumnsSource, InterceptSource, SelectedSource, WatchedSource, gathered

GSE = catalog.policy("gse-lin-fwg")


def play_source(policy, truth, problem, seed, watch=lambda round: None):
    """Play over the rows of a source, as `play` does over arrays."""
    choices, rewards = generator(seed).spawn(2)
    state, counts = policy.start(problem), {}
    while (pulls := policy.ask(state, choices)) is not None:
        totals, before = truth.pull(pulls, None, rewards), state
        state = policy.tell(state, pulls, totals)
        watch(Round(before, pulls, totals, state))
        for row, times in zip(pulls.arms.tolist(), pulls.times.tolist(), strict=True):
            counts[row] = counts.get(row, 0) + times
    rows = np.array(sorted(row for row, times in counts.items() if times), dtype=np.int64)
    pulled = np.array([counts[row] for row in rows.tolist()], dtype=np.int64)
    return SimpleNamespace(arm=int(policy.recommend(state)), rows=rows, counts=pulled, state=state)


ARMS, COLUMNS = 20_000, 5


@pytest.fixture(scope="module")
def table():
    return np.random.default_rng(3).standard_normal((ARMS, COLUMNS))


@pytest.fixture(scope="module")
def sources(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    np.save(folder / "table.npy", table)
    names = [f"x{j + 1}" for j in range(COLUMNS)]
    pq.write_table(pa.table(list(table.T.copy()), names=names), folder / "table.parquet", row_group_size=3000)
    return {
        "memory": open_source(table),
        "mapped": open_source(folder / "table.npy", block_rows=1700),
        "parquet": open_source(folder / "table.parquet", block_rows=2048),
        "strict": ArraySource.of(array_api_strict.asarray(table), block_rows=900),
        "dask": open_source(dask.array.from_array(table, chunks=(4500, COLUMNS))),
    }


def bandit(table, variance=1.0, seed=5):
    theta = np.random.default_rng(seed).standard_normal(table.shape[1])
    return Bandit(table, table @ theta, Gaussian(variance))


def counts(run, arms=ARMS):
    full = np.zeros(arms, np.int64)
    full[run.rows] = run.counts
    return full


@pytest.mark.parametrize("kind", ["memory", "mapped", "parquet"])
@pytest.mark.parametrize("hold", [0, 500_000, 64 << 20])
def test_streamed_and_in_memory_pull_the_same_arms(table, sources, kind, hold):
    truth = bandit(table)
    wide = play(GSE, truth, 1500, 7)
    narrow = play_source(Streamed(GSE, switch=MANY, hold=hold), truth, BigProblem(sources[kind], 1500, 1.0), 7)
    assert narrow.arm == wide.arm
    np.testing.assert_array_equal(counts(narrow), wide.counts)


@pytest.mark.parametrize("eta", [1.5, 3.0, 40.0, float("inf")])
@pytest.mark.parametrize("variance", [None, 0.5])
def test_they_agree_for_every_eta_and_without_a_known_noise(table, sources, eta, variance):
    policy, truth = changed(GSE, "eta", eta), bandit(table, 0.5)
    wide = play(policy, truth, 800, 2)
    narrow = play_source(Streamed(policy, switch=MANY), truth, BigProblem(sources["memory"], 800, variance), 2)
    assert (narrow.arm, narrow.counts.sum()) == (wide.arm, 800)
    np.testing.assert_array_equal(counts(narrow), wide.counts)
    leaders = narrow.state.leaders
    assert leaders.rows[0] == narrow.arm
    assert leaders.means[0] >= leaders.means[1]
    assert (leaders.errors > 0).all()


def test_the_last_estimates_and_errors_are_those_of_the_elimination(table, sources):
    policy, truth = changed(GSE, "eta", float("inf")), bandit(table)
    wide = play(policy, truth, 400, 2)
    narrow = play_source(Streamed(policy, switch=MANY), truth, BigProblem(sources["memory"], 400), 2)
    lead = narrow.state.leaders
    state = replace(wide.state, problem=replace(wide.state.problem, noise_variance=None))
    np.testing.assert_allclose(lead.means, wide.state.fit.mean[lead.rows], rtol=1e-9)
    np.testing.assert_allclose(lead.errors, policy.standard_error(state)[lead.rows], rtol=1e-9)


def test_a_thin_budget_still_gives_the_same_answer(table, sources):
    """Three pulls a stage cannot span five dimensions: both take the solution of smallest norm on the span."""
    truth = bandit(table)
    wide = play(GSE, truth, 45, 3)
    narrow = play_source(Streamed(GSE, switch=MANY), truth, BigProblem(sources["memory"], 45, 1.0), 3)
    assert narrow.counts.sum() == 45
    assert narrow.arm == wide.arm
    np.testing.assert_array_equal(counts(narrow), wide.counts)


@pytest.mark.parametrize("kind", ["memory", "mapped", "parquet", "strict", "dask"])
def test_noiseless_rewards_find_the_best_and_spend_all(table, sources, kind):
    truth = bandit(table, 0.0)
    done = play_source(Streamed(GSE, switch=1000, hold=0), truth, BigProblem(sources[kind], 777, 0.0), 1)
    assert done.arm == truth.means.argmax()
    assert done.counts.sum() == 777
    assert done.state.rank == COLUMNS


def test_stages_are_those_of_the_schedule(table, sources):
    sizes = []
    watch = lambda round: sizes.append((round.before.survivors, round.pulls.total))  # noqa: E731
    problem = BigProblem(sources["memory"], 800, 1.0)
    play_source(Streamed(GSE, switch=3000), bandit(table), problem, 1, watch)
    stages = GSE.start(Problem(table, 800)).stages
    assert [pulls for _, pulls in sizes] == [stage.pulls for stage in stages]
    assert [arms for arms, _ in sizes] == [ARMS, *(stage.keep for stage in stages[:-1])]


def test_one_run_over_many_arms_asks_only_for_those_with_a_pull(table, rng):
    state = GSE.start(Problem(table, 1000))
    asked = GSE.ask(state, rng)
    assert (asked.times > 0).all()
    assert len(asked.arms) < 50
    few = GSE.ask(GSE.start(Problem(table[:MANY], 1000)), rng)
    assert len(few.arms) == MANY


def test_replications_of_many_arms_stay_rectangular(rng):
    batch = rng.standard_normal((2, MANY + 1, 3))
    asked = GSE.ask(GSE.start(Problem(batch, 60)), rng)
    assert asked.times.shape == (2, MANY + 1)
    alone = GSE.ask(GSE.start(Problem(batch[1], 60)), rng)
    np.testing.assert_array_equal(np.flatnonzero(asked.times[1]), alone.arms)


def test_few_arms_go_the_way_they_always_went(rng):
    candidates = Candidates.of(rng.standard_normal((300, 4)))
    assert isinstance(catalog.fwg, BySize)
    np.testing.assert_array_equal(
        catalog.fwg.allocate(candidates, 97, rng), catalog.fwg.few.allocate(candidates, 97, rng)
    )


@pytest.mark.parametrize("pulls", [7, 66, 300, 5000])
def test_a_long_support_is_shortened_where_pulls_are_few(rng, pulls):
    sphere = rng.standard_normal((6000, 7))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    times = Sparse(1e-4).allocate(Candidates.of(sphere), pulls, rng)
    assert times.sum() == pulls
    if pulls <= 300:
        assert np.count_nonzero(times) <= 28
    V = (sphere * times[:, None]).T @ sphere / pulls
    worst = np.einsum("ij,ij->i", sphere @ np.linalg.pinv(V), sphere).max() / 7
    assert worst < (1.15 if pulls >= 300 else 8)


def test_arms_without_features_are_pulled_equally(rng):
    times = Sparse().allocate(Candidates.of(np.zeros((4, 2))), 10, rng)
    assert times.tolist() == [3, 3, 2, 2]


@pytest.mark.parametrize("kind", ["memory", "mapped", "parquet", "strict", "dask"])
def test_some_rows_of_a_source_are_a_source(table, sources, kind, rng):
    mask = rng.random(ARMS) < 0.1
    mask[4000:9000] = False  # whole blocks without a row
    some, rows = SelectedSource.of(sources[kind], mask), table[mask]
    assert (some.rows, some.columns) == rows.shape
    np.testing.assert_array_equal(gathered(some), rows)
    index = rng.integers(some.rows, size=50)
    np.testing.assert_array_equal(some.take(index), rows[index])
    np.testing.assert_array_equal(some.origin(index), np.flatnonzero(mask)[index])
    again = SelectedSource.of(some, np.arange(some.rows) % 3 == 0)
    np.testing.assert_array_equal(gathered(again), rows[::3])
    seen = []
    total = some.sweep(lambda block, start: [(start, block.shape[0])], lambda one, other: one + other, seen.append)
    assert [start for start, _ in total] == np.cumsum([0, *(size for _, size in total)]).tolist()[:-1]
    assert seen[-1] == some.rows
    assert f"row {np.flatnonzero(mask)[7] + 1}" in some.place(7).replace(",", "") or kind == "parquet"


def test_views_of_columns_constants_and_watchers(table):
    source = open_source(table)
    seen = []
    view = WatchedSource(InterceptSource(ColumnsSource.of(source, ["x3", "x1"])), lambda at, rows: seen.append(at))
    assert view.names == ("intercept", "x3", "x1")
    wanted = np.column_stack([np.ones(ARMS), table[:, 2], table[:, 0]])
    np.testing.assert_array_equal(gathered(view), wanted)
    np.testing.assert_array_equal(view.take(np.array([3, 1])), wanted[[3, 1]])
    assert seen[-1] == ARMS
    with pytest.raises(ArmsError, match="unknown column 'x9'"):
        ColumnsSource.of(source, ["x9"])
    with pytest.raises(InputError, match="at least one of them set"):
        SelectedSource.of(source, np.zeros(ARMS, bool))


def test_a_quantile_is_exact_with_ties_signs_and_zeros(rng):
    scores = np.concatenate([rng.standard_normal(500), np.zeros(50), -np.zeros(50), np.full(60, 0.5), [1e300, -1e-310]])
    rng.shuffle(scores)
    pieces = tuple(np.array_split(scores, 7))
    order = np.sort(scores)[::-1]
    for keep in (1, 2, 50, 300, 400, 500, len(scores)):
        cut, ties = quantile(pieces, keep)
        assert cut == order[keep - 1]
        assert ties == keep - np.count_nonzero(scores > cut)


def test_a_person_may_pull_other_rows_than_asked(table, sources):
    policy, truth = Streamed(GSE, switch=MANY, hold=0), bandit(table, 0.0)
    state = policy.start(BigProblem(sources["parquet"], 300, 1.0))
    rows = np.arange(40) * 100
    means = truth.means[rows]
    after = policy.tell(state, Pulls(rows, np.ones(40, np.int64)), Totals(means, means**2))
    assert after.survivors == ARMS // 2
    assert policy.recommend(after) == truth.means.argmax()


def test_what_cannot_be_streamed_is_refused(table, sources):
    with pytest.raises(InputError, match="only by a linear GSE"):
        Streamed(replace(GSE, memory=AllStages()))
    with pytest.raises(BudgetError, match="15 stages"):
        Streamed(GSE, switch=100).start(BigProblem(sources["memory"], 10))
    with pytest.raises(BudgetError, match="at least 1 pull"):
        BigProblem(sources["memory"], 0)
    with pytest.raises(ArmsError, match="all others are zero"):
        Streamed(GSE, switch=100).start(BigProblem(open_source(np.zeros((500, 2))), 100))
    policy = Streamed(changed(GSE, "eta", float("inf")), switch=100)
    state = policy.start(BigProblem(sources["memory"], 100, 1.0))
    pulls = policy.ask(state, np.random.default_rng(1))
    over = policy.tell(state, pulls, Totals(np.ones(len(pulls.arms)), np.ones(len(pulls.arms))))
    assert policy.ask(over, np.random.default_rng(1)) is None
    with pytest.raises(InputError, match="all stages are over"):
        policy.tell(over, pulls, Totals(np.ones(len(pulls.arms)), np.ones(len(pulls.arms))))
