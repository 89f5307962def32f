"""`make bench`: one question a file, each a function `main(quick: bool)` that prints a table."""

import argparse
import importlib
import pkgutil
from pathlib import Path

import benchmarks
from benchmarks import against

parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
parser.add_argument("names", nargs="*", help="benchmarks to run, such as gse; all otherwise")
parser.add_argument("--quick", action="store_true", help="smaller sizes, a few seconds in all")
parser.add_argument("--against", type=Path, metavar="SRC", help="time this tree and another one in turns instead")
parser.add_argument("--repeats", type=int, default=5, help="turns of each, with --against")
options = parser.parse_args()
if options.against:
    against.main(options.against, options.names, options.repeats)
    raise SystemExit
for info in sorted(pkgutil.iter_modules(benchmarks.__path__), key=lambda info: info.name):
    name = info.name.removeprefix("bench_")
    if info.name.startswith("bench_") and (not options.names or name in options.names):
        module = importlib.import_module(f"benchmarks.{info.name}")
        print(f"\n{name}: {(module.__doc__ or '').splitlines()[0]}")
        module.main(options.quick)
