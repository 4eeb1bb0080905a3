"""
Fit a file larger than memory
=============================

A file of correlated columns is generated (1 GiB by default). A process of its own is then allowed 64 MiB more memory
than it takes to start, and fits :class:`~plstream.IncrementalPLS` to the file. scikit-learn's ``PLSRegression`` is
tried under the same limit, and the two are compared on a part of the rows that both can hold.

Run as ``python examples/out_of_core.py [--mebibytes 1024]``, or ``make example``.
"""

# sphinx_gallery_thumbnail_path = "plots/growth.png"  # noqa: ERA001

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cross_decomposition import PLSRegression

from plstream import IncrementalPLS, show_progress
from plstream._core.progress import track

N_COLUMNS = 2048
N_COMPONENTS = 6
ALLOWED = 64 << 20
MIB = 1 << 20


def main() -> None:
    """Generate the file, fit it, compare and print the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--mebibytes", type=int, default=1024, help="size of the file (default: %(default)s)")
    n_rows = max(2000, parser.parse_args().mebibytes * MIB // (8 * N_COLUMNS))
    with tempfile.TemporaryDirectory() as name, show_progress():
        folder = Path(name)
        say(f"Writing {n_rows:,} rows of {N_COLUMNS:,} columns, {n_rows * N_COLUMNS * 8 / MIB:,.0f} MiB ...")
        generate(folder, n_rows)
        say(f"Fitting {N_COMPONENTS} components with {ALLOWED // MIB} MiB of memory to work in ...")
        ours = in_own_process(fit_file, folder, IncrementalPLS(N_COMPONENTS))
        say("Trying scikit-learn's PLSRegression with the same memory ...")
        theirs = in_own_process(fit_file, folder, PLSRegression(N_COMPONENTS))
        say("Comparing the two on the rows that fit into memory ...")
        difference, speed = compare(folder, min(n_rows, 8192))
    print_result(ours, theirs, difference, speed)


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


def generate(folder: Path, n_rows: int) -> None:
    """Write X.npy and y.npy: 20 latent variables seen through all columns, with noise, offsets and a response."""
    rng = np.random.default_rng(0)
    latent_to_x = rng.normal(size=(20, N_COLUMNS)).astype(np.float32)
    latent_to_y = rng.normal(size=20)
    offset = rng.uniform(0, 100, size=N_COLUMNS)
    X = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype=np.float64, shape=(n_rows, N_COLUMNS))
    y = np.empty(n_rows)
    blocks = [slice(start, min(start + 2048, n_rows)) for start in range(0, n_rows, 2048)]
    for rows in track(blocks, "written", n_rows, lambda rows: rows.stop - rows.start):
        n = rows.stop - rows.start
        latent = rng.standard_normal((n, 20), dtype=np.float32)
        X[rows] = latent @ latent_to_x + rng.standard_normal((n, N_COLUMNS), dtype=np.float32) + offset
        y[rows] = latent @ latent_to_y + rng.normal(size=n)
    X.flush()
    np.save(folder / "y.npy", y)


def in_own_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """Return what ``work`` returns in a fresh process, whose memory nobody else has used."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def fit_file(folder: Path, model: Any) -> dict[str, Any]:
    """Fit a model to the file with limited memory; return what it took, and how well it does."""
    X, y = np.load(folder / "X.npy", mmap_mode="r"), np.load(folder / "y.npy")
    if isinstance(model, IncrementalPLS):
        model.fit(X[:8192], y[:8192])  # Without a limit, so that compiling is not counted.
    limit_memory(ALLOWED)
    start = time.perf_counter()
    try:
        with peak_memory() as peak, show_progress():
            model.fit(X, y)
    except MemoryError:
        return {"failed": "MemoryError"}
    seconds = time.perf_counter() - start
    sample = slice(0, None, max(1, len(y) // 2000))
    return {"seconds": seconds, "peak": peak(), "score": model.score(X[sample], y[sample])}


def compare(folder: Path, n_rows: int) -> tuple[float, float]:
    """Return the largest relative difference of coefficients, and how many times faster we are, on some rows."""
    X, y = np.array(np.load(folder / "X.npy", mmap_mode="r")[:n_rows]), np.load(folder / "y.npy")[:n_rows]
    models = [IncrementalPLS(N_COMPONENTS), PLSRegression(N_COMPONENTS)]
    seconds: list[list[float]] = [[], []]
    for _ in range(3):
        for model, times in zip(models, seconds, strict=True):
            start = time.perf_counter()
            model.fit(X, y)
            times.append(time.perf_counter() - start)
    ours, theirs = (model.coef_ for model in models)
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max()), min(seconds[1]) / min(seconds[0])


def limit_memory(extra: int) -> None:
    """Limit the process to ``extra`` bytes beyond its current memory; only Linux enforces this."""
    if sys.platform == "linux":
        import resource

        limit = status("VmData") + extra
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


@contextmanager
def peak_memory() -> Iterator[Callable[[], int | None]]:
    """Watch the memory in use, without mapped files; the value is a function that returns the peak growth."""
    before, highest, done = status("RssAnon"), 0, threading.Event()

    def watch() -> None:
        nonlocal highest
        while not done.wait(0.002):
            highest = max(highest, status("RssAnon"))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield lambda: highest - before if highest else None
    finally:
        done.set()
        watcher.join()


def status(field: str) -> int:
    """Return a field of the process's memory status in bytes, or zero where there is none."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field)), 0)


def print_result(ours: dict[str, Any], theirs: dict[str, Any], difference: float, speed: float) -> None:
    """Print the results as a small table."""
    say("")
    if "failed" in ours:
        sys.exit(f"IncrementalPLS failed: {ours['failed']}")
    peak = "not measured here" if ours["peak"] is None else f"{ours['peak'] / MIB:.1f} MiB beyond the start"
    outcome = theirs.get("failed") or f"{theirs['seconds']:.1f} s (this system enforces no limit)"
    rows = [
        ("IncrementalPLS, the whole file", f"{ours['seconds']:.2f} s, R2 = {ours['score']:.4f}"),
        ("  peak memory", peak),
        ("PLSRegression, the whole file", outcome),
        ("In memory, both", f"largest difference of coefficients {difference:.1e}"),
        ("  time", f"IncrementalPLS {speed:.0f} times faster"),
    ]
    for label, value in rows:
        say(f"{label:<32} {value}")


if __name__ == "__main__":
    main()
