"""Files of every format: reading speed, overlap of reading with fitting, and memory.

Run ``python benchmarks/sources.py``, with ``--quick`` for a quick check, with ``--gigabytes 4`` for other sizes of
files, or with ``--tables 1`` for some of the tables. Files are written to a temporary folder (see ``TMPDIR``).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from measure import MIB, Spread, add_tables_option, in_child, log, markdown, peak_growth, take_turns
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from plstream import IncrementalPLS, open_source
from plstream.data import Source

Array: TypeAlias = NDArray[Any]
Place: TypeAlias = tuple[str, dict[str, Any]]

N_COLUMNS = 1000
MEMORY = 512 << 20
# Formats of text take an hour for what others do in a minute, and a number takes two or three times the bytes.
SHARE_OF_TEXT = {1: 8.0, 2: 2.5}


def blocks(n_rows: int) -> Iterator[tuple[Array, Array]]:
    """Yield rows of float32, and a response."""
    rng = np.random.default_rng(0)
    v = rng.normal(size=N_COLUMNS)
    for start in range(0, n_rows, 4096):
        X = rng.standard_normal((min(4096, n_rows - start), N_COLUMNS), np.float32)
        yield X, X @ v + rng.normal(size=len(X))


def write_npy(folder: Path, n_rows: int) -> Place:
    """Write two arrays."""
    X = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype=np.float32, shape=(n_rows, N_COLUMNS))
    y, start = np.empty(n_rows), 0
    for rows, target in blocks(n_rows):
        X[start : start + len(rows)], y[start : start + len(rows)] = rows, target
        start += len(rows)
    X.flush()
    np.save(folder / "y.npy", y)
    return str(folder / "X.npy"), {"target": str(folder / "y.npy")}


def write_npz(folder: Path, n_rows: int) -> Place:
    """Write two compressed arrays."""
    write_npy(folder, n_rows)
    np.savez_compressed(folder / "data.npz", X=np.load(folder / "X.npy"), y=np.load(folder / "y.npy"))
    return f"{folder / 'data.npz'}:X", {"target": "y"}


def write_hdf5(folder: Path, n_rows: int, **options: Any) -> Place:
    """Write two datasets."""
    import h5py

    with h5py.File(folder / "data.h5", "w") as file:
        X = file.create_dataset("X", (n_rows, N_COLUMNS), np.float32, **options)
        y, start = file.create_dataset("y", (n_rows,), np.float64), 0
        for rows, target in blocks(n_rows):
            X[start : start + len(rows)], y[start : start + len(rows)] = rows, target
            start += len(rows)
    return f"{folder / 'data.h5'}:X", {"target": "y"}


def write_zarr(folder: Path, n_rows: int, compressors: Any) -> Place:
    """Write two arrays of a store."""
    import zarr

    group = zarr.open_group(str(folder / "data.zarr"), mode="w")
    X = group.create_array(
        "X", shape=(n_rows, N_COLUMNS), chunks=(4096, N_COLUMNS), dtype=np.float32, compressors=compressors
    )
    y, start = group.create_array("y", shape=(n_rows,), chunks=(4096,), dtype=np.float64), 0
    for rows, target in blocks(n_rows):
        X[start : start + len(rows)], y[start : start + len(rows)] = rows, target
        start += len(rows)
    return f"{folder / 'data.zarr'}:X", {"target": "y"}


def as_lists(X: Array, y: Array) -> Any:
    """Return a table of one column of lists, and the response."""
    import pyarrow as pa

    return pa.table({"x": pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), N_COLUMNS), "y": y})


def as_columns(X: Array, y: Array) -> Any:
    """Return a table of many columns, and the response."""
    import pyarrow as pa

    return pa.table({**{f"x{j}": X[:, j] for j in range(N_COLUMNS)}, "y": y})


def write_parquet(folder: Path, n_rows: int, table: Callable[[Array, Array], Any]) -> Place:
    """Write a Parquet file with a row group for every 4,096 rows."""
    import pyarrow.parquet as pq

    writer = None
    for X, y in blocks(n_rows):
        rows = table(X, y)
        writer = writer or pq.ParquetWriter(folder / "data.parquet", rows.schema)
        writer.write_table(rows)
    assert writer is not None
    writer.close()
    return str(folder / "data.parquet"), {"target": "y"}


def write_large_groups(folder: Path, n_rows: int) -> Place:
    """Write a Parquet file as others do: a million rows a group."""
    import pyarrow.parquet as pq

    X, y = (np.concatenate(part) for part in zip(*blocks(n_rows), strict=True))
    pq.write_table(as_columns(X, y), folder / "data.parquet")
    return str(folder / "data.parquet"), {"target": "y"}


def write_arrow(
    folder: Path, n_rows: int, table: Callable[[Array, Array], Any], compression: str | None = None
) -> Place:
    """Write an Arrow file."""
    import pyarrow as pa

    writer, options = None, pa.ipc.IpcWriteOptions(compression=compression)
    for X, y in blocks(n_rows):
        rows = table(X, y)
        writer = writer or pa.ipc.new_file(folder / "data.arrow", rows.schema, options=options)
        writer.write_table(rows)
    assert writer is not None
    writer.close()
    return str(folder / "data.arrow"), {"target": "y"}


def write_csv(folder: Path, n_rows: int) -> Place:
    """Write numbers with all their digits."""
    with (folder / "data.csv").open("w") as file:
        for X, y in blocks(n_rows):
            for row, target in zip(X.tolist(), y.tolist(), strict=True):
                file.write(",".join(map(repr, row)) + f",{target!r}\n")
    return str(folder / "data.csv"), {"target": -1}


def write_ndjson(folder: Path, n_rows: int) -> Place:
    """Write an array and the response a line."""
    with (folder / "data.ndjson").open("w") as file:
        for X, y in blocks(n_rows):
            for row, target in zip(X.tolist(), y.tolist(), strict=True):
                file.write(json.dumps({"x": row, "y": target}) + "\n")
    return str(folder / "data.ndjson"), {"target": "y"}


FORMATS: dict[str, Callable[[Path, int], Place]] = {
    "npy": write_npy,
    "npz, compressed": write_npz,
    "HDF5": write_hdf5,
    "HDF5, chunks": partial(write_hdf5, chunks=(1024, N_COLUMNS)),
    "HDF5, gzip": partial(write_hdf5, chunks=(1024, N_COLUMNS), compression="gzip", compression_opts=1),
    "Zarr": partial(write_zarr, compressors=None),
    "Zarr, zstd": partial(write_zarr, compressors="auto"),
    "Arrow, lists": partial(write_arrow, table=as_lists),
    "Arrow, columns": partial(write_arrow, table=as_columns),
    "Arrow, columns, zstd": partial(write_arrow, table=as_columns, compression="zstd"),
    "Parquet, lists": partial(write_parquet, table=as_lists),
    "Parquet, columns": partial(write_parquet, table=as_columns),
    "Parquet, columns in large groups": write_large_groups,
    "CSV": write_csv,
    "NDJSON": write_ndjson,
}
TEXT = ("CSV", "NDJSON")


def read(source: Source) -> None:
    """Read all blocks."""
    for _ in source.blocks():
        pass


def one_read(source: Source) -> None:
    """Fit in one read."""
    IncrementalPLS(4, solver="gram").fit(source)


def several_reads(source: Source) -> None:
    """Fit in as many reads as it takes."""
    IncrementalPLS(4).fit(source)


def bytes_of(n_rows: int) -> int:
    """Return the size of the numbers themselves."""
    return n_rows * N_COLUMNS * 4


def speed(name: str, n_rows: int, repeats: int) -> list[str]:
    """Measure one format: reading, the work of a fit by itself, the fit, and the exact fit."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as plain:
        data, options = FORMATS[name](Path(folder), n_rows)
        in_memory = np.load(write_npy(Path(plain), n_rows)[0]), np.load(Path(plain) / "y.npy")
        opened = partial(open_source, data, **options)
        runs = [
            lambda: read(opened()),
            lambda: one_read(open_source(*in_memory)),
            lambda: one_read(opened()),
            lambda: several_reads(open_source(*in_memory)),
            lambda: several_reads(opened()),
        ]
        # One core for the thread that reads: with all of them at work there is nothing left to gain.
        with threadpool_limits(max(1, (os.cpu_count() or 1) - 1), "blas"):
            times = take_turns(runs, repeats)
    reading, work, fit, _, exact = times.T
    return [
        name,
        f"{bytes_of(n_rows) / 1e9:.2f}",
        Spread.of(bytes_of(n_rows) / 1e9 / reading).text(2),
        Spread.of(fit / np.maximum(reading, work)).text(2),
        Spread.of(fit / (reading + work)).text(2),
        Spread.of(exact / times[:, 3]).text(2),
    ]


def memory(data: str, options: dict[str, Any], *, exact: bool) -> int:
    """Return how much memory of its own a fit takes at most."""
    fit = several_reads if exact else one_read
    small = np.random.default_rng(0).normal(size=(50_000, 100))
    fit(open_source(small, small[:, 0]))  # Compiles.
    return peak_growth(lambda: fit(open_source(data, memory=MEMORY, **options)))


def memory_of(name: str, n_rows: int) -> list[str]:
    """Measure the memory of one format, in processes of their own."""
    with tempfile.TemporaryDirectory() as folder:
        data, options = FORMATS[name](Path(folder), n_rows)
        peaks = [in_child(memory, data, options, exact=exact) for exact in (False, True)]
    return [name, f"{bytes_of(n_rows) / 1e9:.2f}", *(f"{peak / MIB:,.0f}" for peak in peaks)]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small files, to see whether it works")
    parser.add_argument("--gigabytes", type=float, default=4.0, help="size of the files whose memory is measured")
    parser.add_argument("--repeats", type=int, default=5, help="rounds of timing")
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=[*FORMATS], help="some formats alone")
    add_tables_option(parser, 2)
    options = parser.parse_args()
    log(f"Python {platform.python_version()}, NumPy {version('numpy')}, {os.cpu_count()} cores")
    gigabytes = {1: 0.05 if options.quick else 1.0, 2: 0.2 if options.quick else options.gigabytes}

    def rows(number: int, name: str) -> int:
        size = gigabytes[number] / (SHARE_OF_TEXT[number] if name in TEXT else 1)
        return max(2000, int(size * 1e9) // (4 * N_COLUMNS))

    if 1 in options.tables:
        header = ["format", "GB", "read, GB/s", "fit / max(read, work)", "fit / (read + work)", "exact fit / in memory"]
        repeats = 2 if options.quick else options.repeats
        print(markdown(header, logged(options.formats, lambda name: speed(name, rows(1, name), repeats))), flush=True)
    if 2 in options.tables:
        header = ["format", "GB", "one read, MiB", "exact fit, MiB"]
        print(markdown(header, logged(options.formats, lambda name: memory_of(name, rows(2, name)))), flush=True)


def logged(names: list[str], measure: Callable[[str], list[str]]) -> list[list[str]]:
    """Measure formats, and tell how long each takes."""
    lines: list[list[str]] = []
    for name in names:
        start = time.perf_counter()
        lines.append(measure(name))
        log(f"{name}: {time.perf_counter() - start:.0f} s")
    return lines


if __name__ == "__main__":
    main()
