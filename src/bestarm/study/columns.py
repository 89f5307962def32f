"""Which columns of a file of results are ours: by our names, as somebody says, or by what people often call them."""

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, field

from bestarm.errors import InputError
from bestarm.tables.cells import like_number, there
from bestarm.tables.files import Grid

WHERE = ("trial", "arm", "well")  # one of them says what a row is of
SUMS = ("successes", "mean", "sd")  # of several rewards of an arm
TIMES = ("trials", "n", "times")  # how many those were; where one is blank, the next one says
NAMES = (*WHERE, "plate", "reward", "failed", *SUMS, *TIMES)
SAID = {
    "reward": "value score result measurement outcome",
    "successes": "clicks conversions converted passed passes wins won hits correct solved sales orders opens signups",
    "trials": "views impressions shown visitors visits sessions users sent total games attempts tries runs played",
    "mean": "average avg",
    "sd": "std stdev stddev",
    "n": "count size replicates samples",
}
WAYS = (("reward",), ("successes", "trials"), ("mean", "n"))


@dataclass(frozen=True)
class Columns:
    """What is known of a file's columns beside their names.

    `given` is what somebody says: our name, and the column's. `ids` is what the table of arms calls its ids, `own` are
    the columns it has, and `arms` the ids. `key` names rows. `way` is how a person says which column is meant.
    """

    given: Mapping[str, str] = field(default_factory=dict)
    ids: str | None = None
    own: Collection[str] = ()
    arms: Container[str] = ()
    key: str | None = None
    way: str = "--column {0}=COLUMN says which column is meant"

    def header(self, grid: Grid) -> tuple[list[str], list[str]]:
        """Return the columns' names in lower case, ours where they mean the same, and a note on those that are guessed.

        Refuse a file whose columns are not said.
        """
        header = self._said(grid)
        if self.ids is not None and not {"arm", "trial"} & {*header}:
            header = ["arm" if cell == self.ids.strip().lower() else cell for cell in header]
        found, doubts = self._guessed(grid, header)
        for ours, at in found.items():
            header[at] = ours
        taken = (f"column {grid.header[at]!r} is taken for {ours!r}" for ours, at in found.items())
        notes = ["; ".join(taken)] if found else []
        if whole({*header}):
            return header, notes
        ways = "'well' and 'reward', 'arm', 'successes' and 'trials', or 'arm', 'mean', 'sd' and 'n'"
        said = f"columns 'trial' (or 'arm') and 'reward' are expected, or {ways}; found {', '.join(grid.header)[:80]!r}"
        missing = next((ours for ours, _ in doubts), "reward" if {*WHERE} & {*header} else "arm")
        seen = [f"; {ours} may be {' or '.join(map(repr, names))}" for ours, names in doubts[:2]]
        raise InputError(f"{grid.source}, {grid.each} 1: {said}{''.join(seen)}; {self.way.format(missing)}")

    def _said(self, grid: Grid) -> list[str]:
        """Return the header with the columns that somebody named under our names."""
        header = [cell.lower() for cell in grid.header]
        places = {}
        for ours, column in self.given.items():
            name = column.strip().lower()
            if header.count(name) != 1:
                many = f"there are {header.count(name)} columns" if name in header else "there is no column"
                raise InputError(
                    f"{grid.source}, {grid.each} 1: {many} {column!r}; there are {', '.join(grid.header)[:200]}"
                )
            places[header.index(name)] = ours
        if len(places) < len(self.given):
            raise InputError(f"one column cannot be {' and '.join(map(repr, self.given))}")
        return [places.get(at, "" if cell in self.given else cell) for at, cell in enumerate(header)]

    def _guessed(self, grid: Grid, header: Sequence[str]) -> tuple[dict[str, int], list[tuple[str, list[str]]]]:
        """Return where columns are that can mean one thing only, and what may be several, by our names."""
        if whole({*header}):
            return {}, []
        aside = {one.strip().lower() for one in (*self.own, self.key or "")}

        def named(ours: str) -> list[int]:
            names = TIMES if ours in TIMES else (ours,)
            own = [at for at, cell in enumerate(header) if cell in names]
            called = [at for at, cell in enumerate(header) if cell in SAID[ours].split() and cell not in aside]
            if ours == "reward" and not own + called and {"trial", "well"} & {*header}:  # a reader's file
                taken = {*NAMES, "id", *aside}
                return [at for at, cell in enumerate(header) if cell not in taken and _of_numbers(grid.columns[at])]
            return own or called

        found: dict[str, list[int]] = {}
        if not {*WHERE} & {*header}:
            found["arm"] = [at for at, cells in enumerate(grid.columns) if _all_in(cells, self.arms)]
        ways = [] if whole({*header, *found}) else [way for way in WAYS if all(map(named, way))]
        counted = {at for way in WAYS[1:] for ours in way for at in named(ours)}
        if ways[:1] == [("reward",)] and counted - {*named("reward")}:
            ways = []  # a value beside a number of times may be their mean
        for ours in {ours: None for way in ways for ours in (*way, *(("sd",) if "mean" in way else ()))}:
            found[ours] = named(ours)
        doubts = [(ours, [grid.header[at] for at in places]) for ours, places in found.items() if len(places) > 1]
        sure = {ours: places[0] for ours, places in found.items() if places and header[places[0]] not in NAMES}
        return ({}, doubts) if doubts or len(ways) > 1 else (sure, [])


def whole(names: Collection[str]) -> bool:
    """Return whether columns say what each row is of, and what came out."""
    summed = "arm" in names and bool({"successes", "mean"} & {*names} and {*TIMES} & {*names})
    return summed or ("reward" in names and bool({*WHERE} & {*names}))


def _of_numbers(cells: Sequence[str]) -> bool:
    some = there(cells)
    return bool(some) and 2 * sum(map(like_number, some)) > len(some)


def _all_in(cells: Sequence[str], arms: Container[str]) -> bool:
    some = [cell for cell in cells if cell]
    return bool(some) and all(cell in arms for cell in some)


def by_name(given: Sequence[str], refuse: Callable[[str], Exception]) -> dict[str, str]:
    """Return columns by our names, of texts such as successes=clicks."""
    found: dict[str, str] = {}
    for one in given:
        ours, equals, column = (part.strip() for part in one.partition("="))
        if ours.lower() not in NAMES or not equals or not column or ours.lower() in found:
            raise refuse(f"NAME=COLUMN is expected, each NAME once, of {', '.join(NAMES)}; given {one!r}")
        found[ours.lower()] = column
    return found
