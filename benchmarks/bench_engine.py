"""What do workers and clusters buy? Wall-clock seconds of one grid by engine, with the ratio to one process."""

import logging
import time
import warnings

from bestarm import bench


def main(quick: bool = False) -> None:
    replications = 500 if quick else 6000
    cells = bench.grid(
        [bench.instance("adaptive", K=16), bench.instance("randomized", K=64)],
        ["gse-lin-fwg", "gse-lin-greedy", "lingape-greedy", "linucb"],
        budget_per_arm=20,
    )
    logging.disable(logging.WARNING)
    seen, first = set(), 0.0
    print(f"{'engine':10s} {'workers':>7s} {'seconds':>8s} {'speed-up':>9s}")
    for engine, workers in ((None, 1), (None, 2), ("dask", 2), ("ray", 2)):
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = bench.run(cells, replications, rng=1, n_jobs=workers, engine=engine)
        spent = time.perf_counter() - start
        first = first or spent
        seen.add(tuple(row["accuracy"] for row in results.table()))
        print(f"{engine or 'processes':10s} {workers:7d} {spent:8.1f} {first / spent:8.2f}x", flush=True)
    print("the same numbers everywhere" if len(seen) == 1 else "THE NUMBERS DIFFER")
    logging.disable(logging.NOTSET)
