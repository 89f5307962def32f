"""A storage: one journal a study, in a folder. It rests on the storage of bestarm that appends to one file."""

from pathlib import Path
from urllib.parse import quote, unquote

from bestarm.study import Journal


class Shelf:
    """A folder with a file for each study."""

    def __init__(self, folder, timeout=60.0):
        self.folder, self.timeout = Path(folder), timeout
        self.place = f"the shelf {folder}"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.kept = {}

    def of(self, name):
        path = self.folder / f"{quote(name, safe='')}.jsonl"
        return self.kept.setdefault(name, Journal(path, self.timeout))

    def names(self):
        found = [unquote(path.stem) for path in self.folder.glob("*.jsonl")]
        return sorted(name for name in found if self.of(name).names())

    def create(self, name, first):
        return self.of(name).create(name, first)

    def append(self, name, records, after=None):
        return self.of(name).append(name, records, after)

    def read(self, name, start=0):
        return self.of(name).read(name, start)

    def delete(self, name):
        return self.of(name).delete(name)

    def hold(self, name):
        return self.of(name).hold(name)

    def beat(self, name, runner):
        self.of(name).beat(name, runner)

    def beats(self, name):
        return self.of(name).beats(name)

    def unbeat(self, name, runner):
        self.of(name).unbeat(name, runner)

    def salvage(self, name):
        return self.of(name).salvage(name)

    def notes(self):
        return [f"{len(self.names())} studies, each in a file of its own"]


def shelf(url):
    """Return the storage of a URL shelf:///folder."""
    return Shelf(url.partition("://")[2].removeprefix("/"))
