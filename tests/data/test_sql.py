"""Query results are read like tables, from one snapshot; errors contain no secrets."""

import numpy as np
import pytest

from plstream import IncrementalPLS, IncrementalPLSClassifier, open_source
from plstream.data import DataError

from .databases import postgresql
from .test_values import rows_and_labels

pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
rng = np.random.default_rng(5)
X = rng.normal(size=(300, 3))
y = X @ [1.0, 2.0, -1.0] + 0.1 * rng.normal(size=300)
KIND = np.where(y > 0, "high", "low")
TABLE = pa.table({"i": np.arange(300), "a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y, "kind": KIND})
QUERY = "select a, b, c, y, kind from data order by i"


@pytest.fixture(scope="module")
def postgres():
    with postgresql() as address:
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(address) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("data", TABLE)
            connection.commit()
        yield address


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory):
    dbapi = pytest.importorskip("adbc_driver_sqlite.dbapi", reason="needs the extra sql")
    path = tmp_path_factory.mktemp("sqlite") / "data.sqlite"
    with dbapi.connect(str(path)) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("data", TABLE)
        connection.commit()
    return f"sqlite:///{path}"


@pytest.fixture(scope="module")
def duckdb(tmp_path_factory):
    module = pytest.importorskip("duckdb", reason="needs the extra sql")
    path = tmp_path_factory.mktemp("duckdb") / "data.duckdb"
    with module.connect(str(path)) as connection:
        connection.register("arrow", TABLE)
        connection.execute("create table data as select * from arrow")
    return f"duckdb:///{path}"


DATABASES = ["postgres", "sqlite", "duckdb"]


@pytest.fixture(params=DATABASES)
def address(request):
    return request.getfixturevalue(request.param)


def test_models(address):
    source = open_source(address, query=QUERY, target="y", exclude="kind", batch_size=64)
    assert source.rereadable
    assert source.feature_names == ["a", "b", "c"]
    for _ in range(2):
        rows, target = rows_and_labels(source)
        np.testing.assert_array_equal(rows, X)
        np.testing.assert_array_equal(target, y)
    for solver in ("auto", "gram"):
        model, expected = (IncrementalPLS(2, solver=solver) for _ in range(2))
        np.testing.assert_allclose(model.fit(source).coef_, expected.fit(X, y).coef_, rtol=1e-9)
    labels = open_source(address, query=QUERY, target="kind", exclude="y")
    model = IncrementalPLSClassifier(2).fit(labels)
    assert model.classes_.tolist() == ["high", "low"]
    assert model.score(labels) == IncrementalPLSClassifier(2).fit(X, KIND).score(X, KIND)
    some = open_source(address, query=QUERY, target="y", columns=["a", "b"], categorical="kind", where="c > 0")
    np.testing.assert_array_equal(rows_and_labels(some)[0][:, :2], X[X[:, 2] > 0][:, :2])


def test_queries_that_fail(address):
    with pytest.raises(DataError, match=r"The query of .* fails: .*nothing_there") as caught:
        open_source(address, query="select * from nothing_there", target="y")
    assert "\n" not in str(caught.value)
    with pytest.raises(DataError, match="Pass query= for"):
        open_source(address, target="y")
    with pytest.raises(DataError, match="There is no column 'z'"):
        open_source(address, query=QUERY, target="z")


def test_secrets_are_not_told(postgres):
    wrong = postgres.replace("sesame", "barley")
    with pytest.raises(DataError, match="password authentication failed") as caught:
        open_source(wrong, query=QUERY, target="y")
    assert "barley" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    source = open_source(postgres, query=QUERY, target="y", exclude="kind")
    assert "sesame" not in repr(source)
    assert "sesame" not in source.name


def test_reads_are_of_one_snapshot(postgres):
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(postgres) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("growing", TABLE)
        connection.commit()
        source = open_source(postgres, query="select a, y from growing", target="y")
        assert source.count() == 300
        cursor.execute("insert into growing select * from data")
        connection.commit()
        assert len(rows_and_labels(source)[0]) == 300
        later = open_source(postgres, query="select a, y from growing", target="y")
        assert later.count() == 600


def test_a_lost_connection(postgres):
    from adbc_driver_postgresql import dbapi

    source = open_source(postgres, query=QUERY, target="y", exclude="kind")
    with dbapi.connect(postgres) as connection, connection.cursor() as cursor:
        cursor.execute("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()")
        cursor.fetchall()
    with pytest.raises(DataError, match=r"The query of .* broke off: "):
        rows_and_labels(source)


def test_exact_numbers_of_postgresql(postgres):
    query = "select a::numeric(20, 10) as a, y, true as flag from data order by i"
    rows, _ = rows_and_labels(open_source(postgres, query=query, target="y"))
    np.testing.assert_allclose(rows, np.column_stack([X[:, 0], np.ones(300)]), atol=1e-9)


def test_missing_files(tmp_path):
    pytest.importorskip("duckdb", reason="needs the extra sql")
    pytest.importorskip("adbc_driver_sqlite", reason="needs the extra sql")
    for kind in ("sqlite", "duckdb"):
        with pytest.raises(DataError, match="There is no file"):
            open_source(f"{kind}:///{tmp_path}/none.db", query="select 1", target="y")
