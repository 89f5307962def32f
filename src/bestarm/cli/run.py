"""`bestarm run` and `bestarm policies`."""

import sys
from pathlib import Path
from typing import Any

import click
import numpy as np

from bestarm import catalog, live, report
from bestarm.account import Account, Accountant, StageAccount
from bestarm.arms import Arms
from bestarm.bandits import Bandit, Bernoulli, Gaussian, Poisson
from bestarm.cli import big
from bestarm.cli.app import FORMAT, main, print_answer, print_table, say
from bestarm.cli.request import Request, accounted
from bestarm.core import Problem, Pullable, variance_of_noise
from bestarm.errors import BudgetWarning, InputError
from bestarm.models.glm import GLM, Logistic
from bestarm.models.glm import Poisson as PoissonLink
from bestarm.play import Round, play
from bestarm.policies.auto import Auto
from bestarm.rewards import Rewards
from bestarm.version import __version__

LARGEST_COUNT = 1e15  # a mean whose Poisson counts fit into 64 bits


@main.command()
@click.argument("arms_file", metavar="ARMS.csv|.parquet|.npy")
@click.option("--budget", type=int, required=True, help="Pulls to spend, never one more.")
@click.option("--id", "id_column", help="Column that names the arms; row numbers otherwise.")
@click.option("--label", multiple=True, help="Column to show beside an arm's id (repeatable).")
@click.option("--feature", multiple=True, help="Column to use as a feature (repeatable); all others otherwise.")
@click.option("--exclude", multiple=True, help="Column not to use as a feature (repeatable).")
@click.option("--categorical", multiple=True, help="Column of categories though it holds numbers (repeatable).")
@click.option(
    "--scale",
    type=click.Choice(["none", "minmax", "standard"]),
    default="none",
    help="Scale numeric features; minmax scales a simulated column to [0, 1] too.",
)
@click.option("--intercept", is_flag=True, help="Add a constant feature.")
@click.option("--simulate", metavar="COLUMN", help="Take this column as the true means and simulate rewards.")
@click.option(
    "--missing", type=click.Choice(["error", "mean", "drop"]), default="error", help="Blanks in the simulated column."
)
@click.option("--noise-variance", type=float, help="Variance of one reward, if known; needed to simulate.")
@click.option(
    "--pull",
    metavar="'CMD {id}'|MODULE:FUNCTION",
    help="How to observe an arm: a command that prints one number, or a Python function of the arm's id. The id is a "
    "word {id} of the command, or the command reads BESTARM_ID from its environment.",
)
@click.option("--pull-timeout", type=float, metavar="SECONDS", help="Longest time for one pull command.")
@click.option("--model", "model_name", help="Reward model: " + ", ".join(catalog.MODELS) + ".")
@click.option(
    "--policy",
    "policy_name",
    help="A policy of `bestarm policies`; otherwise the model's own, and auto where no model is named.",
)
@click.option("--rounds", type=click.IntRange(min=1), help="How often rewards may be waited for; for the policy auto.")
@click.option("--eta", type=float, help="Keep the best 1/eta of the arms at each stage; for policies of stages.")
@click.option("--minimize", is_flag=True, help="The smallest mean is the best.")
@click.option(
    "--seed", type=click.IntRange(min=0), help="Seed of everything random; printed and logged when not given."
)
@click.option(
    "--log",
    "log_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write each reward to this file as it comes; run again with the same file to resume.",
)
@click.option(
    "--report", "report_file", type=click.Path(dir_okay=False, path_type=Path), help="Write a .html or .png report."
)
@FORMAT
def run(**options: Any) -> None:
    """Find the best arm of a table: `bestarm run cars.csv --budget 4000 --pull './measure {id}'`.

    A .parquet file (or folder of them) or a .npy file (columns x1, x2, ...) of more than 100,000 rows is read in
    blocks, by gse-lin-fwg alone: beyond a dozen bytes a row, memory does not grow with it. Row numbers count from 1.
    """
    asked = Request(**options)
    _check(asked)
    if big.is_big(asked.arms_file):
        big.run_big(asked)
        return
    policy, model = _policy(asked)
    rewards = Rewards(model, asked.minimize)
    arms, means = _arms(asked)
    ids = _labels(arms, asked.label)
    say(f"{arms!r}".removeprefix("Arms").strip("()"), *arms.notes, *_id_like(arms))
    problem = Problem(arms.features, asked.budget, asked.noise_variance)
    observe: Any = None if means is not None else asked.observer(arms.ids)
    about = asked.about(repr(ids).encode() + arms.features.tobytes(), policy)
    log, seed = asked.open_log(about)
    bar = _bar(asked.budget)
    if means is not None:
        bandit: Any = _simulated(arms.features, means, model, asked.noise_variance, asked.minimize)
    else:
        turn = rewards.better, rewards.allowed
        bandit = live.Live(arms.features, arms.ids, observe, asked.noise_variance, *turn, log, bar.update)
    accountant = Accountant(policy, model, ids, rewards.natural)
    account, found = _play(policy, bandit, problem, seed, accountant, bar, log)
    _answer(account, found, means, ids, seed, asked)
    if asked.report_file is not None:
        about |= {"seed": seed, "command": " ".join(["bestarm", *sys.argv[1:]]), "version": __version__}
        try:
            report.write(account, asked.report_file, about)
        except OSError as error:
            raise InputError(f"--report cannot be written: {error}") from error
        say(f"report written to {asked.report_file}")


@main.command()
@click.argument("name", required=False)
@FORMAT
def policies(name: str | None, style: str) -> None:
    """List the policies there are, with one line each, or explain one: `bestarm policies gse-lin-fwg`.

    Of one policy it prints the expression to type in Python, settings, equations, citation and page.
    """
    if name is not None:
        told = catalog.explained(name)
        if style == "table":
            told["equation"] = told["equation"].replace("\n", "\n" + " " * 12)
        print_answer(told, {}, style)
        return
    print_table([{"policy": name, "about": catalog.ENTRIES[name].about} for name in catalog.names()], style)


def _check(asked: Request) -> None:
    if (asked.simulate is None) == (asked.pull is None):
        raise click.UsageError("say where rewards come from: either --simulate COLUMN or --pull 'command {id}'")
    if asked.noise_variance is not None:
        variance_of_noise(asked.noise_variance, "--noise-variance")
    if asked.report_file is not None and asked.report_file.suffix.lower() not in {".html", ".png"}:
        raise click.UsageError(f"--report takes a .html or .png file; given {asked.report_file.name!r}")


def _policy(asked: Request) -> tuple[Any, Any]:
    """Return the policy and its model."""
    name = asked.policy_name or catalog.default_policy(asked.model_name)
    settings: dict[str, Any] = {} if asked.eta is None else {"eta": asked.eta}
    if asked.rounds is not None:
        if not isinstance(catalog.policy(name), Auto):
            raise InputError(f"--rounds is for the policy auto; {name} has stages or single pulls of its own")
        settings["rounds"] = asked.rounds
    if asked.policy_name and asked.model_name:
        settings["model"] = catalog.model(asked.model_name)
    policy = catalog.policy(name, **settings)
    inner = getattr(policy, "policy", policy)
    return policy, getattr(inner, "model", None) or catalog.model(asked.model_name or "linear")


def _arms(asked: Request) -> tuple[Arms, Any]:
    """Return the arms of the table and, where rewards are simulated, their true means `(K,)`."""
    apart = {*asked.exclude, *asked.label, *([asked.simulate] if asked.simulate else [])}
    arms = Arms.from_file(
        asked.arms_file,
        id=asked.id_column,
        features=asked.feature or None,
        exclude=() if asked.feature else tuple(sorted(apart - {asked.id_column})),
        categorical=asked.categorical,
        scale=asked.scale,
        intercept=asked.intercept,
    )
    if asked.simulate is None:
        return arms, None
    if asked.missing == "drop":
        arms = arms.subset(np.flatnonzero(arms.present(asked.simulate)))
    means = arms.column(asked.simulate, missing="mean" if asked.missing == "mean" else "error")
    if asked.scale == "minmax":
        low, high = means.min(), means.max()
        means = (means - low) / (high - low if high > low else 1.0)
    return arms, means


def _labels(arms: Arms, label: tuple[str, ...]) -> tuple[str, ...]:
    columns = [arms.table[name] for name in label]
    return tuple(" ".join([arm, *map(str, row)]) for arm, *row in zip(arms.ids, *columns, strict=True))


def _id_like(arms: Arms) -> list[str]:
    """Return a word of caution for a feature that only numbers the rows."""
    steps = [(name, np.diff(column)) for name, column in zip(arms.names, arms.features.T, strict=True)]
    counts = [name for name, step in steps if len(step) > 2 and step[0] != 0 and np.all(step == step[0])]
    return [
        f"column {name!r} only counts the rows, yet is a feature; is it an --id, or to --exclude?" for name in counts
    ]


def _simulated(features: Any, means: Any, model: Any, variance: float | None, minimize: bool) -> Pullable:
    link = model.link if isinstance(model, GLM) else None
    if isinstance(link, Logistic):
        if means.min() < 0 or means.max() > 1:
            raise InputError("a simulated column of chances must lie between 0 and 1; --scale minmax would do that")
        return Bandit(features, 1 - means if minimize else means, Bernoulli())
    if isinstance(link, PoissonLink):
        if means.min() < 0:
            raise InputError("a simulated column of mean counts must not be negative")
        if means.max() > LARGEST_COUNT:
            raise InputError(f"a simulated column of mean counts must not go beyond {LARGEST_COUNT:g}")
        return Bandit(features, means, Poisson())
    if variance is None:
        raise InputError("simulated rewards need --noise-variance")
    return Bandit(features, -means if minimize else means, Gaussian(variance))


def _play(
    policy: Any, bandit: Any, problem: Problem, seed: int, accountant: Accountant, bar: Any, log: live.Log | None
) -> tuple[Account, int]:
    def watch(round: Round) -> None:
        if not isinstance(bandit, live.Live):
            bar.update(int(round.pulls.times.sum()))
        stage = accountant.watch(round)
        if stage is not None:
            bar.write(_stage_line(stage, len(round.after.stages)), file=sys.stderr)

    if log is not None and log.count:
        say(f"resuming: {log.count} rewards are in {log.path}")

    def best() -> str:
        return str(accountant.stages[-1].estimates[0].arm) if accountant.stages else ""

    with accounted(bandit, problem.budget, log, best), bar:
        _warn_if_thin(policy, problem)
        done = play(policy, bandit, problem.budget, seed, watch)
    return accountant.close(problem, done), int(done.arm)


def _warn_if_thin(policy: Any, problem: Problem) -> None:
    state = policy.start(problem)
    for stage in getattr(state, "stages", ())[:1]:
        dimension = np.linalg.matrix_rank(problem.features)
        if stage.pulls < dimension:
            say(
                f"{BudgetWarning.__name__}: {stage.pulls} pulls in the first stage cannot determine {dimension} "
                "dimensions; more budget, fewer features or a larger eta would help"
            )


def _stage_line(stage: StageAccount, stages: int) -> str:
    lead, pulls = stage.estimates[0], sum(stage.pulls.values())
    kept = len(stage.kept)
    line = f"stage {stage.number}/{stages}: {pulls:,} pulls on {len(stage.pulls):,} arms"
    line += f"; kept {kept:,} of {len(stage.estimates):,}"
    if kept < len(stage.estimates):
        above, below = (report.number(e.mean) for e in stage.estimates[kept - 1 : kept + 1])
        line += f", cut between {above} and {below}"
    spread = f" [{report.number(lead.low)}, {report.number(lead.high)}]"
    return f"{line}; ahead: {lead.arm} at {report.number(lead.mean)}{spread}"


def _answer(account: Account, found: int, means: Any, ids: tuple[str, ...], seed: int, asked: Request) -> None:
    row: dict[str, Any] = account.row() | {"seed": seed}
    if means is not None:
        best = int(np.argmin(means) if asked.minimize else np.argmax(means))
        row |= {
            "true_best": ids[best],
            "true_mean": float(means[found]),
            "regret": float(abs(means[best] - means[found])),
        }
    stages = [
        {"stage": s.number, "pulls": s.pulls, "kept": list(s.kept), "estimates": [vars(e) for e in s.estimates]}
        for s in account.stages
    ]
    more = {"counts": account.counts, "by_stage": stages} | ({"belief": account.belief} if account.belief else {})
    print_answer(row, more, asked.style)


def _bar(budget: int) -> Any:
    from tqdm import tqdm

    return tqdm(total=budget, unit=" pulls", disable=not sys.stderr.isatty(), file=sys.stderr, leave=False)
