"""Objects that support Arrow are read like files, once or repeatedly."""

import io

import numpy as np
import pytest
from scipy import sparse

from plstream import CIPLS, IncrementalPLS, IncrementalPLSClassifier, open_source
from plstream.data import DataError

from .test_values import rows_and_labels

rng = np.random.default_rng(3)
X = rng.normal(size=(60, 3))
y = X @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=60)
LABELS = np.where(y > 0, "high", "low")
NAMES = ["a", "b", "c"]


@pytest.fixture
def pa():
    return pytest.importorskip("pyarrow", reason="needs pyarrow")


def columns(target=y):
    return {**{name: X[:, j] for j, name in enumerate(NAMES)}, "y": target}


@pytest.fixture
def table(pa):
    return pa.table(columns())


class Stream:
    """An object that has nothing but the protocol."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def make_objects(table):
    import pyarrow.dataset as ds

    found = {
        "table": (table, True),
        "record batch": (table.combine_chunks().to_batches()[0], True),
        "reader": (table.to_reader(7), False),
        "data set": (ds.dataset(table), True),
        "scanner": (ds.dataset(table).scanner(), True),
        "protocol": (Stream(table), False),
        "dict": (columns(), True),
        "dicts": ([{k: v[i : i + 20] for k, v in columns().items()} for i in (0, 20, 40)], True),
        "tables": ([table.slice(i, 20) for i in (0, 20, 40)], True),
        "generator of batches": (iter(table.to_batches(9)), False),
    }
    try:
        import pandas as pd
    except ImportError:
        pass
    else:
        text = pd.DataFrame(columns()).to_csv(index=False)
        found["pandas"] = pd.DataFrame(columns()), True
        found["pandas chunks"] = pd.read_csv(io.StringIO(text), chunksize=25), False
    try:
        import polars as pl
    except ImportError:
        pass
    else:
        found["polars"] = pl.DataFrame(columns()), True
        found["polars lazy"] = pl.DataFrame(columns()).lazy(), True
    try:
        import duckdb
    except ImportError:
        pass
    else:
        found["duckdb"] = duckdb.from_arrow(table), True
    return found


OBJECTS = [
    *("table", "record batch", "reader", "data set", "scanner", "protocol", "dict", "dicts", "tables"),
    *("generator of batches", "pandas", "pandas chunks", "polars", "polars lazy", "duckdb"),
]


@pytest.mark.parametrize("name", OBJECTS)
def test_objects(name, table):
    found = make_objects(table)
    if name not in found:
        pytest.skip(f"requires the package of {name}")
    data, rereadable = found[name]
    source = open_source(data, target="y", batch_size=16)
    assert source.rereadable == rereadable
    assert source.feature_names == NAMES
    for _ in range(1 + rereadable):
        rows, target = rows_and_labels(source)
        np.testing.assert_allclose(rows, X, rtol=1e-14)
        np.testing.assert_allclose(target, y, rtol=1e-14)
    if rereadable:
        expected = IncrementalPLS(2).fit(X, y)
        np.testing.assert_allclose(IncrementalPLS(2).fit(source).coef_, expected.coef_, rtol=1e-9)


@pytest.mark.parametrize("model", [IncrementalPLS(2), CIPLS(2), IncrementalPLSClassifier(2)])
def test_fit_and_predict_take_tables(model, table):
    target = y if not isinstance(model, IncrementalPLSClassifier) else LABELS
    features = table.select(NAMES)
    fitted = model.fit(features, target)
    assert list(fitted.feature_names_in_) == NAMES
    expected = type(model)(2).fit(X, target)
    np.testing.assert_allclose(fitted.transform(features), expected.transform(X), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(fitted.transform(features.to_reader()), expected.transform(X), rtol=1e-8, atol=1e-12)


def test_streams_are_read_once():
    blocks = ((X[i : i + 20], y[i : i + 20]) for i in (0, 20, 40))
    model = IncrementalPLS(2).fit(blocks)
    assert model.solver_ == "gram"
    np.testing.assert_allclose(model.coef_, IncrementalPLS(2).fit(X, y).coef_, rtol=1e-9)
    with pytest.raises(DataError, match="solver='multipass'"):
        IncrementalPLS(2, solver="multipass").fit((X[i : i + 20], y[i : i + 20]) for i in (0, 20, 40))


def test_cursor(table):
    dbapi = pytest.importorskip("adbc_driver_sqlite.dbapi", reason="needs the extra sql")
    with dbapi.connect() as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("data", table)
        cursor.execute("select * from data")
        source = open_source(cursor, target="y")
        assert not source.rereadable
        np.testing.assert_array_equal(rows_and_labels(source)[0], X)


def test_types_of_tables(pa):
    from decimal import Decimal

    kinds = {
        "flag": pa.array([True, False, True]),
        "price": pa.array([Decimal("1.50"), Decimal("2.25"), Decimal("3.00")]),
        "code": pa.array([3, 5, 3]).dictionary_encode(),
        "small": pa.array([1, 2, 3], pa.int8()),
        "half": pa.array(np.array([0.5, 1.5, 2.5], np.float32)),
        "label": pa.array(["x", "y", "x"]).dictionary_encode(),
    }
    rows, target = rows_and_labels(open_source(pa.table(kinds), target="label"))
    np.testing.assert_array_equal(rows, [[1, 1.5, 3, 1, 0.5], [0, 2.25, 5, 2, 1.5], [1, 3.0, 3, 3, 2.5]])
    assert target.tolist() == ["x", "y", "x"]


@pytest.mark.usefixtures("pa")
def test_nullable_types_of_pandas():
    pd = pytest.importorskip("pandas", reason="needs pandas")
    frame = pd.DataFrame(
        {"a": pd.array([1, 2, 3], dtype="Int32"), "b": pd.array([1.5, 2, 3], dtype="Float64"), "c": [True, False, True]}
    )
    np.testing.assert_array_equal(rows_and_labels(open_source(frame))[0], [[1, 1.5, 1], [2, 2, 0], [3, 3, 1]])


@pytest.mark.usefixtures("pa")
def test_chunks_of_pandas_change_types():
    pd = pytest.importorskip("pandas", reason="needs pandas")
    text = "a,y\n1,p\n2,q\n3.5,p\n4,q\n"
    rows, target = rows_and_labels(open_source(pd.read_csv(io.StringIO(text), chunksize=2), target="y"))
    assert rows.ravel().tolist() == [1, 2, 3.5, 4]
    assert target.tolist() == ["p", "q", "p", "q"]
    chunks = pd.read_csv(io.StringIO("a,y\n1,p\n2,q\nred,p\n"), chunksize=2)
    with pytest.raises(DataError, match=r"row 2, column 'a', or later, strings are mixed with numbers"):
        rows_and_labels(open_source(chunks, target="y"))


@pytest.mark.usefixtures("pa")
def test_pairs_of_frames_and_labels():
    pd = pytest.importorskip("pandas", reason="needs pandas")
    frame = pd.DataFrame(X, columns=NAMES)
    blocks = [(frame.iloc[i : i + 20], pd.Series(LABELS[i : i + 20], name="grade")) for i in (0, 20, 40)]
    source = open_source(blocks)
    assert (source.feature_names, source.target_names) == (NAMES, ["grade"])
    rows, target = rows_and_labels(source)
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(target, LABELS)


def test_blocks_as_lists_and_sparse():
    blocks = [[X[i : i + 20], y[i : i + 20]] for i in (0, 20, 40)]
    rows, target = rows_and_labels(open_source(blocks))
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(target, y)
    blocks = [(sparse.csr_array(X[i : i + 20]), y[i : i + 20]) for i in (0, 20, 40)]
    rows, target = rows_and_labels(open_source(blocks, batch_size=7))
    np.testing.assert_array_equal(rows, X)
    rows, target = rows_and_labels(open_source(sparse.csc_matrix(X), target=y, batch_size=7))
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(target, y)


def test_files_that_are_open_as_text(tmp_path):
    (tmp_path / "d.csv").write_text("ä,b,y\n1,2,ö\n3,4,u\n", encoding="utf-8")
    with (tmp_path / "d.csv").open(encoding="utf-8") as file:
        source = open_source(file, target="y", format="csv")
        rows, target = rows_and_labels(source)
    assert source.feature_names == ["ä", "b"]
    assert rows.tolist() == [[1, 2], [3, 4]]
    assert target.tolist() == ["ö", "u"]
    assert rows_and_labels(open_source(io.StringIO("1,2\n3,4\n"), format="csv"))[0].tolist() == [[1, 2], [3, 4]]


def test_errors_of_fit_name_columns_and_what_to_do(tmp_path):
    with pytest.raises(TypeError, match=r"plstream.open_source\('data.parquet', target=...\)"):
        IncrementalPLS().fit("data.parquet", y)
    with pytest.raises(TypeError, match="open it first"):
        IncrementalPLS().fit(X, y).predict(tmp_path / "data.csv")
    with pytest.raises(ValueError, match="for labels, use IncrementalPLSClassifier"):
        IncrementalPLS().fit(X, LABELS)
    pd = pytest.importorskip("pandas", reason="needs pandas")
    frame = pd.DataFrame(X, columns=NAMES).assign(
        day=pd.to_datetime("2024-01-01"), kind=pd.Categorical(LABELS), name=LABELS
    )
    for model in (IncrementalPLS(), CIPLS()):
        with pytest.raises(ValueError, match=r"'day' \(.*\), 'kind' \(category\), 'name' \(.*drop\(columns=\['day',"):
            model.fit(frame, y)
    frame = pd.DataFrame(X, columns=NAMES)
    frame.loc[3, "b"] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN \(first in row 3, column 'b'\)"):
        IncrementalPLS().fit(frame, y)


@pytest.mark.usefixtures("pa")
def test_unsupported_columns_of_frames():
    pd = pytest.importorskip("pandas", reason="needs pandas")
    with pytest.raises(DataError, match="holds text"):
        open_source(pd.DataFrame({"a": [1.0, 2], "b": [1, "x"]}))
    assert open_source(pd.DataFrame({"a": [1.0, 2], "b": [1, "x"]}), exclude="b").n_columns == 1
    numbered = open_source(pd.DataFrame(X), target=2)
    assert numbered.feature_names is None
    np.testing.assert_array_equal(rows_and_labels(numbered)[0], X[:, :2])
    with pytest.raises(DataError, match="has no rows"):
        open_source(pd.DataFrame({"a": []}))
    with pytest.raises(DataError, match="Block 1 has different column names than the first block"):
        rows_and_labels(open_source([pd.DataFrame({"a": [1.0]}), pd.DataFrame({"b": [1.0]})]))
