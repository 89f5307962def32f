"""Arms that a study refers to and does not copy: the rows of a long table, looked up when somebody needs them."""

from collections.abc import Iterable, Sequence
from typing import overload

import numpy as np

from bestarm.tables.source import Source

CHUNK = 1 << 16  # ids read together in search of one


class RowIds(Sequence[str]):
    """What the rows of a source are called, each looked up once."""

    def __init__(self, source: Source) -> None:
        self.source, self.known = source, dict[int, str]()

    def __len__(self) -> int:
        return self.source.rows

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            return self.of(range(len(self))[row])
        return self.of([row])[0]

    def of(self, rows: Iterable[int]) -> list[str]:
        """Return the ids of some rows, looked up together."""
        wanted = [int(row) for row in rows]
        missing = np.array(sorted({row for row in wanted if row not in self.known}), dtype=np.int64)
        if len(missing):
            self.known.update(zip(missing.tolist(), self.source.ids(missing), strict=True))
        return [self.known[row] for row in wanted]


class RowPlaces:
    """Where rows stand, by their ids: those looked up are known, others are searched for."""

    def __init__(self, ids: RowIds) -> None:
        self.ids, self.known = ids, dict[str, int]()

    def __contains__(self, id: object) -> bool:
        return self._found(str(id)) is not None

    def __getitem__(self, id: str) -> int:
        found = self._found(id)
        if found is None:
            raise KeyError(id)
        return found

    def _found(self, id: str) -> int | None:
        if len(self.known) < len(self.ids.known):
            self.known = {name: row for row, name in self.ids.known.items()}
        for start in range(0, len(self.ids) if id not in self.known else 0, CHUNK):
            rows = np.arange(start, min(start + CHUNK, len(self.ids)))
            names = self.ids.source.ids(rows)
            if id in names:
                self.known[id] = start + names.index(id)
                break
        return self.known.get(id)
