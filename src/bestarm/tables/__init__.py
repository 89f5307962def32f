"""Tables of candidates, small or large: in memory, a mapped file, Parquet, a GPU, a Dask cluster."""

from bestarm.tables.opening import open_source
from bestarm.tables.source import Combine, Kernel, Source

__all__ = ["Combine", "Kernel", "Source", "open_source"]
