"""Parts that installed packages bring, found by their entry points: `bestarm.policies`, `bestarm.models`, ..."""

from typing import TYPE_CHECKING, Any

from bestarm.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PARTS = ("policies", "models", "laws", "designs", "worlds")  # what a log or a benchmark may write down
KINDS = (*PARTS, "storages")


def found(kind: str) -> "list[EntryPoint]":
    """Return the entry points of a kind by name; nothing is imported."""
    from importlib.metadata import entry_points  # takes 12 ms, and few need it

    return sorted(entry_points(group=f"bestarm.{kind}"), key=lambda point: (point.name, package(point)))


def names(kind: str) -> list[str]:
    """Return the names that installed packages give to parts of a kind."""
    return sorted({point.name for point in found(kind)})


def package(point: "EntryPoint") -> str:
    """Return the name under which an entry point's package was installed."""
    return "an unnamed package" if point.dist is None else point.dist.name


def loaded(point: "EntryPoint") -> Any:
    """Return what an entry point names; what its package raises is told in one line."""
    try:
        return point.load()
    except (Exception, SystemExit) as error:  # the module is run by this, and may raise anything
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        kind = point.group.removeprefix("bestarm.")
        raise InputError(f"{point.name} of {package(point)} ({kind}) cannot be used: {why}") from error


def part(kind: str, name: str, known: Any = ()) -> Any:
    """Return what the one package that has it calls `name`; `known` are names to offer beside those of packages."""
    points = [point for point in found(kind) if point.name == name]
    if not points:
        raise UnknownNameError({"policies": "policy"}.get(kind, kind[:-1]), name, [*known, *names(kind)])
    if len({point.value for point in points}) > 1:
        ways = " and ".join(f"{package(point)} ({point.value})" for point in points)
        raise InputError(f"{name!r} is in {ways}; say which by its path, module:Class")
    return loaded(points[0])


def importable() -> set[str]:
    """Return the top modules of packages installed as plugins: whoever installed them lets logs name their parts."""
    return {point.module.partition(".")[0] for kind in PARTS for point in found(kind)}
