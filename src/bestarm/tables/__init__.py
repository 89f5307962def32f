"""Tables of candidates, small or large: in memory, a mapped file, Parquet, a GPU, a Dask cluster."""

from importlib import import_module as _module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bestarm.tables.opening import in_blocks as in_blocks
    from bestarm.tables.opening import open_source as open_source
    from bestarm.tables.opening import open_table as open_table
    from bestarm.tables.opening import source_of as source_of
    from bestarm.tables.source import Combine as Combine
    from bestarm.tables.source import Kernel as Kernel
    from bestarm.tables.source import Source as Source

_HOMES = {
    "bestarm.tables.opening": "in_blocks open_source open_table source_of",
    "bestarm.tables.source": "Combine Kernel Source",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    """Import what is named when it is first named: who tells a result needs no table."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(_module(_HOME[name]), name))


def __dir__() -> list[str]:
    return __all__
