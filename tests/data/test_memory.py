"""Memory of reading does not grow with the number of rows, and stays within ``memory``."""

import gzip
import json
import os
import platform
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from .stores import s3_store

pytestmark = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or not Path("/proc/self/clear_refs").exists(),
    reason="only Linux keeps a peak of memory that can be reset, and only glibc can be told to keep nothing free",
)

MEMORY = 1 << 20
# Reading may take 4 MiB at any rate, and libraries keep a little.
CONSTANT = 6 << 20
N_COLUMNS = 40
FEW, MANY = 4000, 32_000

# Memory is freed when it is not needed any more, so that the peak is that of what is in use at the same time.
ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}

# Every file is read by a process of its own, a copy of one that has imported all that it takes. It keeps five blocks,
# as a fit does, and is slow enough for others to be read ahead. Pages of files that are mapped do not count.
MEASURE = """
import ctypes, gc, json, os, sys, time
from collections import deque
from pathlib import Path
from plstream import open_source
from plstream.data import arrow_files, delimited, hdf5, ndjson, numpy_files, zarr

def status():
    lines = (line.split() for line in Path('/proc/self/status').read_text().splitlines())
    return {words[0]: int(words[1]) << 10 for words in lines if words[-1] == 'kB'}

def read(data, options, pause):
    source, blocks = open_source(data, memory=memory, **options), deque(maxlen=5)
    n_bytes = mapped = 0
    for block in source.blocks():
        n_bytes += block[0].nbytes
        blocks.append(block)
        del block
        time.sleep(pause)
        mapped = max(mapped, status()['RssFile:'])
    return n_bytes, mapped

def measure(data, options, first):
    read(first, options, 0)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    # Pages of two megabytes would be counted as a whole.
    ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)
    Path('/proc/self/clear_refs').write_text('5')
    before = status()
    n_bytes, mapped = read(data, options, 0.001)
    return n_bytes, status()['VmHWM:'] - before['VmRSS:'] - (mapped - before['RssFile:'])

memory, cases = json.loads(sys.argv[1])
for module in ('pandas', 'pyarrow.csv', 'pyarrow.parquet', 'h5py', 'zarr'):
    try:
        __import__(module)
    except ImportError:
        pass
for case in cases:
    process = os.fork()
    if not process:
        print(json.dumps(measure(*case)), flush=True)
        os._exit(0)
    if os.waitpid(process, 0)[1]:
        sys.exit(f'{case} failed')
"""


def _csv(path, rows, quoted=False):
    end = ',"a"\n' if quoted else "\n"
    few = rows[: 1000 * N_COLUMNS // rows.shape[1]].astype(int)
    data = ("".join(",".join(map(str, row)) + end for row in few.tolist()) * (len(rows) // len(few))).encode()
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)
    return path, {"target": -1}


def _parts(path, rows):
    path.mkdir()
    for part in range(2):
        _csv(path / f"{part}.csv", rows)
    return path, {"target": -1}


def _ndjson(path, rows):
    text = "".join(json.dumps({"x": row[1:], "y": row[0]}) + "\n" for row in rows[:1000].tolist())
    path.write_text(text * (len(rows) // 1000))
    return path, {"target": "y"}


def _npy(path, rows, **options):
    np.save(path, rows)
    return path, {"target": 0, **options}


def _npz(path, rows, save=np.savez):
    save(path, X=rows)
    return path, {"target": 0}


def _tables(rows):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    lists = pa.FixedSizeListArray.from_arrays(pa.array(rows[:, 1:].ravel()), N_COLUMNS - 1)
    return {
        "columns": pa.table({"y": rows[:, 0], **{f"x{j}": rows[:, j] for j in range(1, N_COLUMNS)}}),
        "lists": pa.table({"y": rows[:, 0], "x": lists}),
    }


def _parquet(path, rows, kind="columns", group_rows=10_000):
    table = _tables(rows)[kind]
    import pyarrow.parquet as pq

    pq.write_table(table, path, row_group_size=group_rows)
    return path, {"target": "y"}


def _arrow(path, rows, kind="columns", compression="zstd"):
    table = _tables(rows)[kind]
    import pyarrow as pa

    with pa.ipc.new_file(str(path), table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as file:
        file.write_table(table, max_chunksize=2000)
    return path, {"target": "y"}


def _hdf5(path, rows, **options):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=rows, **options)
    return path, {"target": 0}


def _zarr(path, rows):
    zarr = pytest.importorskip("zarr", reason="needs zarr")
    group = zarr.open_group(str(path), mode="w")
    group.create_array("X", shape=rows.shape, chunks=(1000, 20), dtype=rows.dtype)[:] = rows
    return path, {"target": 0}


def _sparse(path, rows):
    sparse.save_npz(path, sparse.csr_matrix(rows))
    return path, {"target": 0}


def _hive(path, rows):
    for part in range(2):
        (path / f"part={part}").mkdir(parents=True)
        _parquet(path / f"part={part}" / "rows.parquet", rows[part::2])
    return path, {"target": "y", "exclude": "part"}


def _sqlite(path, rows):
    dbapi = pytest.importorskip("adbc_driver_sqlite.dbapi", reason="needs the extra sql")
    with dbapi.connect(str(path)) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("rows", _tables(rows)["columns"])
        connection.commit()
    return f"sqlite:///{path}", {"target": "y", "query": "select * from rows"}


def _on_s3(write, path, rows):
    path, options = write(path, rows)
    url = f"s3://bucket/memory/{path.name}"
    s3_store().put_file(str(path), url)
    return url, options


# What a library keeps of the pages of a file, however many there are.
KEPT = {"sqlite": 2000 << 10}

WRITERS = {
    "csv on S3": lambda path, rows: _on_s3(_csv, path.with_suffix(".csv"), rows),
    "npy on S3": lambda path, rows: _on_s3(_npy, path.with_suffix(".npy"), rows),
    "parquet on S3": lambda path, rows: _on_s3(_parquet, path.with_suffix(".parquet"), rows),
    "npz sparse": lambda path, rows: _sparse(path.with_suffix(".npz"), rows),
    "partitions": _hive,
    "sqlite": lambda path, rows: _sqlite(path.with_suffix(".sqlite"), rows),
    "csv": lambda path, rows: _csv(path.with_suffix(".csv"), rows),
    "csv.gz": lambda path, rows: _csv(path.with_suffix(".csv.gz"), rows),
    "csv with quotation marks": lambda path, rows: _csv(path.with_suffix(".csv"), rows, quoted=True),
    "csv of wide rows": lambda path, rows: _csv(path.with_suffix(".csv"), rows.reshape(-1, 25 * N_COLUMNS)),
    "csv parts": _parts,
    "ndjson": lambda path, rows: _ndjson(path.with_suffix(".ndjson"), rows),
    "npy": lambda path, rows: _npy(path.with_suffix(".npy"), rows),
    "npy columns": lambda path, rows: _npy(path.with_suffix(".npy"), rows, columns=[*range(N_COLUMNS - 1, 0, -1)]),
    "npz": lambda path, rows: _npz(path.with_suffix(".npz"), rows),
    "npz compressed": lambda path, rows: _npz(path.with_suffix(".npz"), rows, np.savez_compressed),
    "parquet": lambda path, rows: _parquet(path.with_suffix(".parquet"), rows),
    "parquet in one group": lambda path, rows: _parquet(path.with_suffix(".parquet"), rows, group_rows=len(rows)),
    "parquet lists": lambda path, rows: _parquet(path.with_suffix(".parquet"), rows, "lists"),
    "arrow": lambda path, rows: _arrow(path.with_suffix(".arrow"), rows),
    "arrow lists": lambda path, rows: _arrow(path.with_suffix(".arrow"), rows, "lists", None),
    "hdf5": lambda path, rows: _hdf5(path.with_suffix(".h5"), rows),
    "hdf5 compressed": lambda path, rows: _hdf5(path.with_suffix(".h5"), rows, chunks=(1000, 20), compression="gzip"),
    "zarr": lambda path, rows: _zarr(path.with_suffix(".zarr"), rows),
}


@pytest.mark.slow
def test_memory_is_a_bound_whatever_the_number_of_rows(tmp_path):
    numbers = np.random.default_rng(0).integers(0, 100, size=(1000, N_COLUMNS)).astype(float)
    rows = np.tile(numbers, (MANY // 1000, 1))
    names, cases = [], []
    for name, write in WRITERS.items():
        folder = tmp_path / name
        folder.mkdir()
        with suppress(pytest.skip.Exception):
            first, few, many = (write(folder / str(n_rows), rows[:n_rows]) for n_rows in (1000, FEW, MANY))
            names.append(name)
            cases += [(str(data), options, str(first[0])) for data, options in (few, many)]
    run = [sys.executable, "-c", MEASURE, json.dumps([MEMORY, cases])]
    result = subprocess.run(run, check=True, stdout=subprocess.PIPE, env={**os.environ, **ENVIRONMENT})  # noqa: S603
    found = np.array([json.loads(line) for line in result.stdout.splitlines()]).reshape(len(names), 2, 2)
    n_bytes, peaks = (dict(zip(names, found[..., column].tolist(), strict=True)) for column in (0, 1))
    assert all(many == 8 * few > MEMORY for few, many in n_bytes.values())
    grown = {name: many - few - KEPT.get(name, 0) for name, (few, many) in peaks.items()}
    assert not {name: by for name, by in grown.items() if by > 0.2 * (n_bytes[name][1] - n_bytes[name][0])}
    assert min(many for _, many in n_bytes.values()) > MEMORY + CONSTANT
    assert not {name: peak for name, (_, peak) in peaks.items() if peak > MEMORY + CONSTANT}
