"""Tables of arms that a log refers to instead of copying them: where they are, and whether they are the same."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bestarm.errors import StorageError
from bestarm.numbers import counted
from bestarm.tables.source import Source

if TYPE_CHECKING:
    from bestarm.tables.arms import Arms

PIECES, PIECE, WHOLE = 64, 1 << 16, 1 << 22  # bytes: 64 pieces of 64 KiB of any file longer than 4 MiB


def digest_of(path: Path) -> str:
    """Return what tells a table from others, cheap for large ones: see docs/log-format.md."""
    if path.is_dir():
        text = "".join(f"{one.name} {digest_of(one)}\n" for one in sorted(path.iterdir()) if one.is_file())
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    size = path.stat().st_size
    found = hashlib.sha256(f"{size}\n".encode())
    with path.open("rb") as file:
        if size <= WHOLE:
            found.update(file.read())
        else:
            for i in range(PIECES):
                file.seek(i * (size - PIECE) // (PIECES - 1))
                found.update(file.read(PIECE))
    return f"sha256:{found.hexdigest()}"


def reference(path: Path, arms: "Arms | Source", folder: Path | None, **read: Any) -> dict[str, Any]:
    """Return what a log keeps of a table in place of its rows; `read` are the options that made `arms` of it."""
    inside = folder is not None and path.resolve().is_relative_to(folder.resolve())
    at = path.resolve().relative_to(folder.resolve()) if inside and folder else path.resolve()
    from bestarm.tables.arms import Arms

    rows, long = (len(arms), {}) if isinstance(arms, Arms) else (arms.rows, {"long": True})
    return {"at": str(at), "rows": rows, "digest": digest_of(path), "read": read, **long}


def table_of(
    kept: Mapping[str, Any], folder: Path | None, elsewhere: str | Path | None = None
) -> dict[str, Any] | Source:
    """Return the arms a log refers to, as it would keep them, or the source of a table that is read in blocks.

    `elsewhere` is where a table that was moved is now.
    """
    at = Path(elsewhere) if elsewhere is not None else Path(kept["at"])
    path = at if elsewhere is not None or at.is_absolute() or folder is None else folder / at
    way = "name the table's place by arms=, or --arms on the command line"
    if not path.exists():
        raise StorageError(f"the table of arms {path} is not there; {way}")
    if digest_of(path) != kept["digest"]:
        raise StorageError(f"{path} is not the table this study was made with: its digest is another; {way}")
    from bestarm.tables.arms import Arms  # who reads a log that has its arms needs no reader of tables
    from bestarm.tables.opening import open_source

    if kept.get("long"):
        return open_source(path, **kept.get("read", {}))
    arms = Arms.from_file(path, **kept.get("read", {}))
    if len(arms) != kept["rows"]:
        raise StorageError(f"{path} has {counted(len(arms), 'arm')}; {kept['rows']} are expected")
    return plain(arms) | {"labels": kept.get("labels", [])}


def plain(arms: "Arms") -> dict[str, Any]:
    """Return arms as a log keeps them."""
    return {
        "ids": list(arms.ids), "features": arms.features.tolist(), "names": list(arms.names),
        "cost": None if arms.cost is None else arms.cost.tolist(), "encoding": arms.encoding.to_dict(),
        "table": {column: list(cells) for column, cells in arms.table.items()},
    }  # fmt: skip
