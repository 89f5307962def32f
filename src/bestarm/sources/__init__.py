"""Where a big table of candidate rows lives: memory, a mapped file, Parquet, a GPU, a Dask cluster."""

from bestarm.sources.opening import open_source
from bestarm.sources.protocols import Combine, Kernel, Source

__all__ = ["Combine", "Kernel", "Source", "open_source"]
