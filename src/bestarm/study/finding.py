"""How studies are found again, and end."""

import os
from collections.abc import Iterable
from typing import TypeAlias

from bestarm.errors import StorageError, UnknownNameError
from bestarm.study.storage import Storage, open_storage
from bestarm.study.study import Study

Place: TypeAlias = str | os.PathLike[str] | Storage | None


def load_study(
    study_name: str, storage: Place = None, *, allow: Iterable[str] = (), arms: str | os.PathLike[str] | None = None
) -> Study:
    """Return the study of that name.

    `allow` are packages, beside bestarm and those installed as its plugins, that may be imported for the parts the log
    names; `arms` is where the table of arms is now, if the log refers to one that was moved.
    """
    place = opened(storage)
    try:
        return Study(study_name, place, [allow] if isinstance(allow, str) else allow, arms)
    except StorageError:
        _known(study_name, storage, place)
        raise


def delete_study(study_name: str, storage: Place = None) -> None:
    """Forget a study and all its results."""
    place = opened(storage)
    _known(study_name, storage, place)
    place.delete(study_name)


def get_all_study_names(storage: Place = None) -> list[str]:
    """Return the names of all studies in a storage."""
    return opened(storage).names()


def opened(storage: Place) -> Storage:
    """Return the storage that is meant, that of the environment where none is."""
    return open_storage(storage if storage is not None else os.environ.get("BESTARM_STORAGE"))


def _known(name: str, storage: Place, place: Storage) -> None:
    names = place.names()
    if name not in names:
        if not names:
            said = storage is not None or os.environ.get("BESTARM_STORAGE")
            way = "" if said else "; say where studies are kept: storage=, or set BESTARM_STORAGE"
            raise StorageError(f"there is no study {name!r} here; there is none at all{way}")
        raise UnknownNameError("study", name, names)
