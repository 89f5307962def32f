"""Tables of candidates, small or large: in memory, a mapped file, Parquet, a GPU, a Dask cluster."""

from bestarm.tables.opening import in_blocks, open_source, open_table, source_of
from bestarm.tables.source import Combine, Kernel, Source

__all__ = ["Combine", "Kernel", "Source", "in_blocks", "open_source", "open_table", "source_of"]
