"""Few pulls on whole tables: how often is what a policy names in the top 1 %, and what does it lose?

    python -m benchmarks.whole_tables --policy auto --draws 60 -o results/whole.csv
    python -m benchmarks.whole_tables --gp --draws 60 -o results/gp.csv
    python -m benchmarks.whole_tables --policy after=auto --rounds 10 --with results/gp.csv -o results/after.csv
    python -m benchmarks.whole_tables -o results/after.csv --with results/gp.csv

Tables are those of benchmarks/whole_worlds.py; recorded timings are looked for in the folder BESTARM_DATA names. A
policy is a name of the catalog or `package.module:Class`, with settings, and perhaps a label before `=`; --rounds N
asks each of them in that many rounds, too. --gp runs scikit-learn's Gaussian process with Thompson sampling
(gp_thompson.py). Every draw is a row of the CSV as soon as it is made, and is not made again. Without --policy and --gp
the CSV is printed. Differences to --against are paired by draw, with 95 % intervals. Regret is in parts of the range of
the means of a table.
"""

import argparse
import csv
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from benchmarks.gp_thompson import search
from benchmarks.whole_worlds import WholeTable, tables
from bestarm.bench.table import to_csv
from bestarm.core import policy_of
from bestarm.errors import BestArmError, InputError
from bestarm.playing import play
from bestarm.simulate.chunks import fingerprint, seeds
from bestarm.simulate.intervals import paired
from bestarm.simulate.policies import policy_of_text

GP = "gp-thompson (scikit-learn)"
COLUMNS = ("table", "group", "policy", "budget", "seed", "arms", "rank", "top", "regret", "seconds")
Key = tuple[str, str, int, int]


def policies(texts: Iterable[str], rounds: int | None) -> dict[str, Any]:
    """Return policies by label, each in so many rounds as well."""
    found = {}
    for text in texts:
        label, equals, rest = text.partition("=")
        ref = policy_of_text(rest if equals and ":" not in label else text)
        name = label if equals and ":" not in label else str(ref)
        found[name] = ref.build()
        if rounds is not None:
            planned = policy_of(found[name]).in_rounds(rounds)
            if planned is None:
                raise InputError(f"{name} cannot be asked in rounds")
            found[f"{name}, {rounds} rounds"] = planned
    return found


def measured(table: WholeTable, name: str, policy: Any, budget: int, seed: int) -> dict[str, Any]:
    """Return the row of one draw; `policy` None is scikit-learn's."""
    from threadpoolctl import threadpool_limits

    bandit, stream = table.draw(seed)
    rng = np.random.default_rng(seeds(seed, fingerprint(f"{table.name}, {name}, {budget}")))
    start = time.process_time()
    with threadpool_limits(1):
        arm = search(stream, budget, rng) if policy is None else int(play(policy, stream, budget, rng).arm[0])
    seconds = time.process_time() - start
    means = bandit.means[0]
    rank = int(np.sum(means > means[arm]))
    return {"table": table.name, "group": table.group, "policy": name, "budget": budget, "seed": seed,
            "arms": len(means), "rank": rank, "top": int(rank < len(means) / 100),
            "regret": float((means.max() - means[arm]) / np.ptp(means)), "seconds": round(seconds, 3)}  # fmt: skip


def key(row: Mapping[str, Any]) -> Key:
    return row["table"], row["policy"], int(row["budget"]), int(row["seed"])


def read(paths: Iterable[Path]) -> dict[Key, Mapping[str, Any]]:
    """Return the rows of some files, those there are; a line that is half written is left out."""
    rows = {}
    for path in paths:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for row in csv.DictReader(text[: text.rfind("\n") + 1].splitlines()):
            rows[key(row)] = {**row, "top": int(row["top"]), "regret": float(row["regret"])}
    return rows


def append(path: Path, row: Mapping[str, Any]) -> None:
    """Add a row to a file, which others may add to as well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = to_csv([dict(row)])
    with path.open("a", encoding="utf-8") as file:
        file.write(text if not file.tell() else text.partition("\n")[2])


def compared(
    rows: Mapping[Key, Mapping[str, Any]], chosen: Mapping[str, set[str]], against: str = GP
) -> list[dict[str, Any]]:
    """Return a line for each name of `chosen` (of a table, or of several), budget and policy, beside one policy."""
    budgets = sorted({budget for _, _, budget, _ in rows})
    names = sorted({policy for _, policy, _, _ in rows}, key=lambda policy: (policy != against, policy))
    lines = []
    for what, some in chosen.items():
        for budget in budgets:
            for name in names:
                mine = {k: row for k, row in rows.items() if k[0] in some and k[1:3] == (name, budget)}
                if mine:
                    lines.append({"table": what, "budget": budget, "policy": name, **_line(mine, rows, against)})
    return lines


def _line(mine: Mapping[Key, Mapping[str, Any]], rows: Mapping[Key, Mapping[str, Any]], against: str) -> dict[str, Any]:
    line: dict[str, Any] = {"draws": len(mine)}
    theirs = {k: (k[0], against, k[2], k[3]) for k in mine}
    both = [(row, rows[theirs[k]]) for k, row in mine.items() if theirs[k] in rows]
    for what in ("top", "regret"):
        line[what] = float(np.mean([row[what] for row in mine.values()]))
        ends = paired(*([row[what] for row in side] for side in zip(*both, strict=True))) if both else (None,) * 3
        line |= dict(zip((f"{what}_difference", f"{what}_low", f"{what}_high"), ends, strict=True))
    return line | {"paired": len(both)}


def show(lines: Iterable[Mapping[str, Any]], against: str) -> None:
    print(f"{'table':22} {'B':>4}  {'policy':28} {'draws':>5}  top 1 %  difference in points       regret  difference")
    for line in lines:
        top = regret = ""
        if line["policy"] != against and line["paired"]:
            top = f"{100 * line['top_difference']:+.1f} [{100 * line['top_low']:+.1f}, {100 * line['top_high']:+.1f}]"
            regret = f"{line['regret_difference']:+.3f} [{line['regret_low']:+.3f}, {line['regret_high']:+.3f}]"
        print(f"{line['table']:22} {line['budget']:4}  {line['policy']:28} {line['draws']:5}  {line['top']:.3f}    "
              f"{top:26} {line['regret']:.3f}  {regret}")  # fmt: skip


def options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", action="append", default=[], help="a policy, or LABEL=POLICY (repeatable)")
    parser.add_argument("--rounds", type=int, help="ask each policy in so many rounds, too")
    parser.add_argument("--gp", action="store_true", help="scikit-learn's Gaussian process with Thompson sampling")
    parser.add_argument("--table", action="append", default=[], help="only tables of this name or group (repeatable)")
    parser.add_argument("--budget", type=int, action="append", help="pulls (repeatable); 50 and 100 otherwise")
    parser.add_argument("--against", default=GP, help="the policy that differences are to; scikit-learn's otherwise")
    parser.add_argument("--draws", type=int, default=60, help="draws of each table")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--with", dest="beside", type=Path, action="append", default=[], help="other rows to show")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the CSV, which is gone on with")
    given = parser.parse_args(words)
    try:
        given.policies = policies(given.policy, given.rounds) | ({GP: None} if given.gp else {})
    except BestArmError as error:
        parser.error(str(error))
    given.tables, absent = tables(os.environ.get("BESTARM_DATA"))
    given.tables = [t for t in given.tables if not given.table or {t.name, t.group} & set(given.table)]
    if not given.tables:
        parser.error("no table is of that name or group")
    for why in absent:
        print(f"left out: {why}")
    return given


def main(words: Sequence[str] | None = None) -> None:
    given = options(words)
    known = read([given.output])
    work = [
        (table, name, policy, budget, seed)
        for name, policy in given.policies.items()
        for budget in given.budget or (50, 100)
        for table in given.tables
        for seed in range(given.draws)
        if (table.name, name, budget, seed) not in known
    ]
    for row in Parallel(given.jobs, return_as="generator_unordered")(delayed(measured)(*one) for one in work):
        append(given.output, row)
    names = {table.name: {table.name} for table in given.tables}
    groups = {t.group: {o.name for o in given.tables if o.group == t.group} for t in given.tables}
    several = {f"all {group}": some for group, some in groups.items() if len(some) > 1}
    every = {"all": set(names)} if len(names) > 1 else {}
    show(compared(read([*given.beside, given.output]), names | several | every, given.against), given.against)


if __name__ == "__main__":
    main()
