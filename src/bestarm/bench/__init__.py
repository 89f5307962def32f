"""Benchmarks: pick instances, policies and budgets; get a table with honest intervals.

>>> from bestarm import bench
>>> cells = bench.grid([bench.instance("static", Delta=3.0)], ["gse-lin-fwg", "uniform"], budget=160)
>>> [row["policy"] for row in bench.run(cells, replications=20, rng=1, n_jobs=1).table()]
['gse-lin-fwg', 'uniform']
"""

from bestarm.bench.grid import Cell, grid
from bestarm.bench.runner import Results, run
from bestarm.bench.worlds import WORLDS, Instance, instance
from bestarm.simulate.intervals import paired, wilson
from bestarm.simulate.policies import PolicyRef

__all__ = ["WORLDS", "Cell", "Instance", "PolicyRef", "Results", "grid", "instance", "paired", "run", "wilson"]
