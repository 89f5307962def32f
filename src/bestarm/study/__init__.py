"""Studies that survive: ask and tell by files or code; every told result is on disk before anything else happens."""

from importlib import import_module as _module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bestarm.answer.answer import Answer as Answer
    from bestarm.study.copying import copy_study as copy_study
    from bestarm.study.create import create_study as create_study
    from bestarm.study.finding import delete_study as delete_study
    from bestarm.study.finding import get_all_study_names as get_all_study_names
    from bestarm.study.finding import load_study as load_study
    from bestarm.study.running import run as run
    from bestarm.study.storage import Journal as Journal
    from bestarm.study.storage import Memory as Memory
    from bestarm.study.storage import SQLite as SQLite
    from bestarm.study.storage import Storage as Storage
    from bestarm.study.storage import open_storage as open_storage
    from bestarm.study.study import Study as Study
    from bestarm.study.successor import create_from as create_from
    from bestarm.study.trials import Batch as Batch
    from bestarm.study.trials import Trial as Trial

_HOMES = {
    "bestarm.answer.answer": "Answer",
    "bestarm.study.copying": "copy_study",
    "bestarm.study.create": "create_study",
    "bestarm.study.finding": "delete_study get_all_study_names load_study",
    "bestarm.study.running": "run",
    "bestarm.study.storage": "Journal Memory SQLite Storage open_storage",
    "bestarm.study.study": "Study",
    "bestarm.study.successor": "create_from",
    "bestarm.study.trials": "Batch Trial",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    """Import what is named when it is first named."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(_module(_HOME[name]), name))


def __dir__() -> list[str]:
    return __all__
