"""Tables of kernel timings, as the suite `fooled-tables` takes them, from cache files of Kernel Tuner.

    python benchmarks/kernel_tables.py hub/cachefiles/convolution_milo/A4000.json.gz -o data/fooled
    BESTARM_DATA=data bestarm bench --suite fooled-tables --judge auto

The files are those of https://github.com/AutoTuningAssociation/benchmark_hub (MIT; doi 10.5281/zenodo.15364124), and
none of them is kept here. `convolution_milo/A4000.json.gz` becomes `convolution_A4000.npz` with `X` (K, d), the
parameters that vary, their names `features`, and `times_ms` (K, repeats). Configurations that failed are left out. The
first timing of each is that of a cold start, which readers skip. Of more than --at-most configurations some are drawn
by --seed.
"""

import argparse
import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bestarm.errors import BestArmError, InputError

# The tables that `fooled-tables` names, beside kernels/convolution_A100.npz.
WANTED = ("convolution_A4000", "convolution_W7800", "convolution_MI250X", "dedispersion_A6000", "dedispersion_W6600")


def name_of(path: Path) -> str:
    """Return the name of the table a cache file becomes: the kernel, its folder's first word, and the processor.

    >>> name_of(Path("cachefiles/convolution_milo/A4000.json.gz"))
    'convolution_A4000'
    """
    return f"{path.resolve().parent.name.partition('_')[0]}_{path.name.partition('.')[0]}"


def table_of(cache: Mapping[str, Any], where: str, most: int = 16_000, seed: int = 0) -> dict[str, Any]:
    """Return the arrays of a cache: parameters that vary, of configurations that ran, and their timings in ms."""
    runs = [run for run in cache["cache"].values() if run.get("times") and not isinstance(run.get("time"), str)]
    if not runs:
        raise InputError(f"{where}: no configuration has timings")
    keys = [key for key in cache["tune_params_keys"] if len({run[key] for run in runs}) > 1]
    for key in keys:
        if not all(isinstance(run[key], int | float) for run in runs):
            raise InputError(f"{where}: parameter {key!r} is not a number")
    repeats = {len(run["times"]) for run in runs}
    if len(repeats) > 1:
        raise InputError(f"{where}: configurations have {min(repeats)} to {max(repeats)} timings, not equally many")
    if len(runs) > most:
        chosen = np.sort(np.random.default_rng(seed).choice(len(runs), most, replace=False))
        runs = [runs[n] for n in chosen]
    x = np.array([[run[key] for key in keys] for run in runs], dtype=np.float32)
    return {"X": x, "features": np.array(keys), "times_ms": np.array([run["times"] for run in runs], dtype=np.float32)}


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.json.gz")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the folder the tables go to")
    parser.add_argument("--at-most", type=int, default=16_000, help="configurations to keep")
    parser.add_argument("--seed", type=int, default=0, help="of the choice of those")
    given = parser.parse_args(words)
    given.output.mkdir(parents=True, exist_ok=True)
    for path in given.files:
        try:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                cache = json.load(file)
            table = table_of(cache, str(path), given.at_most, given.seed)
        except (OSError, json.JSONDecodeError, BestArmError) as error:
            parser.error(f"{path}: {error}")
        target = given.output / f"{name_of(path)}.npz"
        np.savez_compressed(target, **table)
        arms, repeats = table["times_ms"].shape
        print(f"{target}: {arms} of {len(cache['cache'])} configurations, {repeats} timings, "
              f"{', '.join(table['features'])}")  # fmt: skip


if __name__ == "__main__":
    main()
