"""How near to one reading of the table is an optimal design on a GPU? Prints a Markdown table.

    PYTHONPATH=src python benchmarks/gpu_designs.py                                  # the card, CuPy or PyTorch
    PYTHONPATH=src python benchmarks/gpu_designs.py --device cpu --backend numpy --rows 20000 --rows 100000

Rows are drawn on the device, a block at a time. Screening is in float32, the certificate in float64.
"""

import argparse
import importlib
import sys
import time
from datetime import UTC, datetime
from typing import Any

import numpy as np

VENDORED = ("scipy._lib.array_api_compat", "sklearn.externals.array_api_compat")
DRAW = 1 << 22  # rows that are drawn at once


def provide_array_api() -> None:
    """Import array_api_compat, or the copy that SciPy or scikit-learn carries under the same name."""
    for name in ("array_api_compat", *VENDORED):
        try:
            sys.modules["array_api_compat"] = importlib.import_module(name)
            return
        except ImportError:
            continue
    sys.exit("array_api_compat is needed, or a SciPy or scikit-learn that carries a copy of it")


class NumPy:
    """The host, as a device: to test this program."""

    def __init__(self, device: str) -> None:
        self.rng, self.name = np.random.default_rng(1), "host"

    def empty(self, K: int, d: int) -> Any:
        return np.empty((K, d), np.float32)

    def normals(self, rows: int, d: int) -> Any:
        return self.rng.standard_normal((rows, d), dtype=np.float32)

    def wait(self) -> None: ...

    def forget(self) -> None: ...


class CuPy:
    def __init__(self, device: str) -> None:
        import cupy

        self.xp = cupy
        self.rng = cupy.random.default_rng(1)
        self.name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()

    def empty(self, K: int, d: int) -> Any:
        return self.xp.empty((K, d), np.float32)

    def normals(self, rows: int, d: int) -> Any:
        return self.rng.standard_normal((rows, d), dtype=np.float32)

    def wait(self) -> None:
        self.xp.cuda.Device().synchronize()

    def forget(self) -> None:
        self.xp.get_default_memory_pool().free_all_blocks()


class Torch:
    def __init__(self, device: str) -> None:
        import torch

        self.torch, self.device = torch, torch.device("cuda" if device == "gpu" else "cpu")
        torch.set_float32_matmul_precision("highest")
        torch.manual_seed(1)
        self.name = torch.cuda.get_device_name() if device == "gpu" else "host"

    def empty(self, K: int, d: int) -> Any:
        return self.torch.empty((K, d), dtype=self.torch.float32, device=self.device)

    def normals(self, rows: int, d: int) -> Any:
        return self.torch.randn((rows, d), dtype=self.torch.float32, device=self.device)

    def wait(self) -> None:
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()

    def forget(self) -> None:
        if self.device.type == "cuda":
            self.torch.cuda.empty_cache()


BACKENDS = {"numpy": NumPy, "cupy": CuPy, "torch": Torch}


def choose(backend: str | None, device: str) -> Any:
    """Return the library asked for, or the first that is there."""
    for name in (backend,) if backend else ("cupy", "torch"):
        try:
            return BACKENDS[name](device)
        except (ImportError, RuntimeError) as error:
            print(f"{name}: {error}", file=sys.stderr)
    sys.exit("no library for this device; --device cpu --backend numpy works everywhere")


def bandwidth(lib: Any, table: Any) -> float:
    """Return bytes per second that a copy of (a part of) the table moves, read and written, the best of five."""
    part = table[: min(table.shape[0], 1 << 25)]
    copy = lib.empty(*part.shape)
    spent = []
    for _ in range(5):
        lib.wait()
        start = time.perf_counter()
        copy[...] = part
        lib.wait()
        spent.append(time.perf_counter() - start)
    return 2 * 4 * part.shape[0] * part.shape[1] / min(spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--backend", choices=tuple(BACKENDS))
    parser.add_argument("--rows", type=int, action="append", help="K; may be repeated")
    parser.add_argument("--columns", type=int, default=32)
    parser.add_argument("--tolerance", type=float, default=1e-3)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--block-rows", type=int)
    options = parser.parse_args()
    provide_array_api()
    from bestarm.designs.active import optimal_design
    from bestarm.tables import open_source

    lib = choose(options.backend, options.device)
    day = datetime.now(UTC).date().isoformat()
    print(f"{lib.name}, {type(lib).__name__}, {day}: gaussian rows, d = {options.columns}, float32, ", end="")
    print(f"tolerance {options.tolerance:g}, certificate in float64\n")
    print(
        "| K | table, GB | seconds | passes | gap | support | copy, GB/s | one read, s | in reads | fastest pass, s |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for K in options.rows or (10**6, 10**7, 10**8):
        table = lib.empty(K, options.columns)
        for start in range(0, K, DRAW):
            stop = min(start + DRAW, K)
            table[start:stop] = lib.normals(stop - start, options.columns)
        speed = bandwidth(lib, table)
        lib.forget()
        source = open_source(table, block_rows=options.block_rows)
        runs = []
        for _ in range(1 + options.repeats):  # the first also loads kernels and fills pools of memory
            lib.wait()
            start = time.perf_counter()
            found = optimal_design(source, options.tolerance)
            runs.append((time.perf_counter() - start, found))
        spent, found = min(runs[1:] or runs, key=lambda run: run[0])
        size = 4 * K * options.columns
        fastest = min(one.seconds for one in found.trace if one.purpose == "leverages")
        print(
            f"| {K:,} | {size / 1e9:.2f} | {spent:.3f} | {found.passes} | {found.certificate - 1:.1e} "
            f"| {len(found.rows)} | {speed / 1e9:.0f} | {size / speed:.5f} | {spent * speed / size:.1f} "
            f"| {fastest:.4f} |",
            flush=True,
        )
        for one in found.trace:
            print(f"K = {K}: {one.purpose:10s} {one.seconds:.4f} s, gap {one.certificate - 1:.2e}", file=sys.stderr)
        del table, source
        lib.forget()


if __name__ == "__main__":
    main()
