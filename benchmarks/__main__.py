"""`make bench`: one question a file, each a function `main(quick: bool)` that prints a table."""

import argparse
import importlib
import pkgutil

import benchmarks

parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
parser.add_argument("names", nargs="*", help="benchmarks to run, such as gse; all otherwise")
parser.add_argument("--quick", action="store_true", help="smaller sizes, a few seconds in all")
options = parser.parse_args()
for info in sorted(pkgutil.iter_modules(benchmarks.__path__), key=lambda info: info.name):
    name = info.name.removeprefix("bench_")
    if info.name.startswith("bench_") and (not options.names or name in options.names):
        module = importlib.import_module(f"benchmarks.{info.name}")
        print(f"\n{name}: {(module.__doc__ or '').splitlines()[0]}")
        module.main(options.quick)
