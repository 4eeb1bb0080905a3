"""Forty ways to hold the same data, and one model: formats, partitions, frames, databases, stores, iterables, Dask."""

import io
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from plstream import IncrementalPLS, open_source

from .databases import postgresql
from .formats import FORMATS, NAMES
from .stores import empty_bucket, web_server

RNG = np.random.default_rng(11)
X = RNG.normal(size=(240, 4)) * [1.0, 5.0, 0.2, 1.0] + [0.0, 10.0, 0.0, -3.0]
y = X @ [1.0, 0.3, -2.0, 0.5] + 0.2 * RNG.normal(size=240)
EXPECTED = IncrementalPLS(2).fit(X, y).coef_
QUERY = "select a, b, c, d, y from data order by i"


def _table():
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    return pa.table({**{name: X[:, j] for j, name in enumerate(NAMES)}, "y": y})


def _fit(data, **options):
    return IncrementalPLS(2).fit(open_source(data, **options))


def _in_file(name, folder):
    data, options = FORMATS[name](folder, X, y)
    return _fit(data, **options)


def _hive(folder, *, of_text):
    pq = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    table = _table()
    for part in range(4):
        (folder / f"part={part}").mkdir()
        rows = table.slice(60 * part, 60)
        if of_text:
            import pyarrow.csv

            pyarrow.csv.write_csv(rows, folder / f"part={part}" / "rows.csv")
        else:
            pq.write_table(rows, folder / f"part={part}" / "rows.parquet", row_group_size=17)
    return _fit(folder, target="y", exclude="part")


def _dataset(folder):
    dataset = pytest.importorskip("pyarrow.dataset", reason="needs pyarrow")
    dataset.write_dataset(_table(), folder / "set", format="parquet", max_rows_per_file=100, max_rows_per_group=50)
    return _fit(dataset.dataset(folder / "set"), target="y")


def _lazy(_):
    polars = pytest.importorskip("polars", reason="needs polars")
    return _fit(polars.from_arrow(_table()).lazy(), target="y")


def _chunks(folder):
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    FORMATS["csv"](folder, X, y)
    return _fit(pandas.read_csv(folder / "data.csv", chunksize=50), target="y")


def _frame_as_x(_):
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    return IncrementalPLS(2).fit(pandas.DataFrame(X, columns=NAMES), pandas.Series(y))


def _dict_of_columns(_):
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    return _fit({**dict(zip(NAMES, X.T, strict=True)), "y": y}, target="y")


def _relation(_):
    duckdb = pytest.importorskip("duckdb", reason="needs the extra sql")
    table = _table()
    with duckdb.connect() as connection:
        connection.register("rows", table)
        return _fit(connection.sql("select * from rows"), target="y")


def _numbered():
    return _table().append_column("i", [np.arange(len(X))])


def _sqlite(folder, *, by_cursor):
    dbapi = pytest.importorskip("adbc_driver_sqlite.dbapi", reason="needs the extra sql")
    path = folder / "data.sqlite"
    with dbapi.connect(str(path)) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("data", _numbered())
        connection.commit()
        if by_cursor:
            cursor.execute(QUERY)
            return _fit(cursor.fetch_record_batch(), target="y")
    return _fit(f"sqlite:///{path}", query=QUERY, target="y")


def _duckdb(folder):
    duckdb = pytest.importorskip("duckdb", reason="needs the extra sql")
    table = _numbered()
    with duckdb.connect(str(folder / "data.duckdb")) as connection:
        connection.register("arrow", table)
        connection.execute("create table data as select * from arrow")
    return _fit(f"duckdb:///{folder / 'data.duckdb'}", query=QUERY, target="y")


def _postgresql(_):
    with postgresql() as address:
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(address) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("data", _numbered())
            connection.commit()
        return _fit(address, query=QUERY, target="y")


def _s3(name, folder):
    store = empty_bucket()
    data, _ = FORMATS[name](folder, X, y)
    for path in folder.rglob("*"):
        if path.is_file():
            store.pipe_file(f"bucket/{path.relative_to(folder)}", path.read_bytes())
    return _fit(str(data).replace(str(folder), "s3://bucket"), target="y" if name != "npy" else "s3://bucket/y.npy")


def _memory(folder):
    fsspec = pytest.importorskip("fsspec", reason="needs the extra remote")
    data, _ = FORMATS["feather"](folder, X, y)
    fsspec.filesystem("memory").pipe_file("/forty/data.feather", Path(data).read_bytes())
    return _fit("memory://forty/data.feather", target="y")


def _web(folder):
    FORMATS["csv.gz"](folder, X, y)
    with web_server(folder, ranges=True) as address:
        return _fit(f"{address}/data.csv.gz", target="y")


def _open_file(folder):
    FORMATS["csv"](folder, X, y)
    with (folder / "data.csv").open("rb") as file:
        return _fit(file, format="csv", target="y")


def _stream(folder):
    FORMATS["arrow stream"](folder, X, y)
    return _fit(io.BytesIO((folder / "data.arrows").read_bytes()), format="arrow", target="y")


def _batches(_):
    return _fit(_table().to_reader(max_chunksize=31), target="y")


def _generator(_):
    table = _table()
    return _fit((table.slice(start, 50) for start in range(0, 240, 50)), target="y")


def _dask_array(_):
    array = pytest.importorskip("dask.array", reason="needs the extra distributed")
    return IncrementalPLS(2).fit(array.from_array(X, chunks=(37, 4)), array.from_array(y, chunks=37))


def _dask_frame(folder):
    frames = pytest.importorskip("dask.dataframe", reason="needs the extra distributed")
    pq = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    table = _table()
    for part in range(6):
        pq.write_table(table.slice(40 * part, 40), folder / f"part-{part}.parquet")
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        # Those of Dask about its own calls of pandas.
        frame = frames.read_parquet(folder)
        return IncrementalPLS(2).fit(frame[NAMES], frame["y"])


def _blocks_by_hand(_):
    model = IncrementalPLS(2)
    for start in range(0, 240, 7):
        model.partial_fit(X[start : start + 7], y[start : start + 7])
    return model


WAYS = {
    **{f"format: {name}": partial(_in_file, name) for name in FORMATS},
    "partitions: Parquet": partial(_hive, of_text=False),
    "partitions: CSV": partial(_hive, of_text=True),
    "Arrow: data set": _dataset,
    "Arrow: reader of batches": _batches,
    "Arrow: stream of bytes": _stream,
    "Arrow: generator of tables": _generator,
    "frames: lazy": _lazy,
    "frames: chunks of a CSV": _chunks,
    "frames: X and y": _frame_as_x,
    "frames: relation of DuckDB": _relation,
    "frames: dict of columns": _dict_of_columns,
    "sparse: matrix": lambda _: IncrementalPLS(2).fit(sparse.csr_matrix(X), y),
    "sparse: blocks": lambda _: _fit([(sparse.csr_matrix(X[i : i + 60]), y[i : i + 60]) for i in range(0, 240, 60)]),
    "blocks: memory map": lambda folder: IncrementalPLS(2).fit(_mapped(folder), y),
    "blocks: partial_fit": _blocks_by_hand,
    "SQL: SQLite": partial(_sqlite, by_cursor=False),
    "SQL: cursor": partial(_sqlite, by_cursor=True),
    "SQL: DuckDB": _duckdb,
    "SQL: PostgreSQL": _postgresql,
    "store: Parquet": partial(_s3, "parquet"),
    "store: CSV": partial(_s3, "csv"),
    "store: .npy": partial(_s3, "npy"),
    "store: in memory": _memory,
    "store: web server": _web,
    "open file": _open_file,
    "Dask: array": _dask_array,
    "Dask: data frame": _dask_frame,
}


def _mapped(folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def test_there_are_forty():
    assert len(WAYS) >= 40


@pytest.mark.parametrize("way", WAYS)
def test_one_model(way, tmp_path):
    np.testing.assert_allclose(WAYS[way](tmp_path).coef_, EXPECTED, rtol=1e-9)
