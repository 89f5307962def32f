"""Studies that survive: ask and tell by files or code; every told result is on disk before anything else happens."""

from bestarm.answer.answer import Answer
from bestarm.study.copying import copy_study
from bestarm.study.create import create_study, delete_study, get_all_study_names, load_study
from bestarm.study.running import run
from bestarm.study.storage import Journal, Memory, SQLite, Storage, open_storage
from bestarm.study.study import Study
from bestarm.study.successor import create_from
from bestarm.study.trials import Batch, Trial

__all__ = [
    "Answer",
    "Batch",
    "Journal",
    "Memory",
    "SQLite",
    "Storage",
    "Study",
    "Trial",
    "copy_study",
    "create_from",
    "create_study",
    "delete_study",
    "get_all_study_names",
    "load_study",
    "open_storage",
    "run",
]
