"""Objects in stores: every format gives the same rows as its file, and errors are one sentence."""

import io
import os
import pickle
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
import pytest

from plstream import IncrementalPLS, load, open_source, save
from plstream._core.remote import RemotePath, path_of
from plstream.data import DataError
from plstream.files import fit_source
from plstream.files.fitting import Stopped

from .formats import FORMATS, NAMES
from .stores import empty_bucket, web_server

fsspec = pytest.importorskip("fsspec", reason="needs the extra remote")

RNG = np.random.default_rng(3)
X = X200 = RNG.normal(size=(200, 4))
y = Y200 = X @ [1.0, 2.0, 0.5, -1.0] + 0.1 * RNG.normal(size=200)
X40, Y40 = X[:40], y[:40]
# What differs in how it is read; all formats are tried on a store in memory, which answers faster.
ON_S3 = ["npy", "npz compressed", "csv.gz", "csv parts", "parquet", "feather", "hdf5 compressed", "zarr 3"]
IN_FILES = [name for name in FORMATS if name not in {"array", "pandas", "polars", "arrow in memory", "blocks"}]


@pytest.fixture
def bucket():
    """An empty bucket."""
    return empty_bucket()


@pytest.fixture
def memory():
    store = fsspec.filesystem("memory")
    store.store.clear()
    store.pseudo_dirs[:] = [""]
    yield store
    store.store.clear()
    store.pseudo_dirs[:] = [""]


def put_all(store, folder, prefix):
    for path in folder.rglob("*"):
        if path.is_file():
            store.pipe_file(f"{prefix}/{path.relative_to(folder)}", path.read_bytes())
    store.invalidate_cache()


def reset_auth(n_free):
    address = f"{os.environ['AWS_ENDPOINT_URL_S3']}/moto-api/reset-auth"
    with urlopen(Request(address, data=n_free.encode(), headers={"Content-Type": "text/plain"})) as answer:  # noqa: S310
        assert answer.status == 200


def moved(value, folder, url):
    """Return a name, or an option that is one, with a URL in place of a folder."""
    text = str(value) if isinstance(value, str | Path) else value
    return text.replace(str(folder), url) if isinstance(text, str) else text


def rows_of(source):
    blocks = list(source.blocks())
    return np.concatenate([b[0] for b in blocks]), np.concatenate([b[1] for b in blocks])


@pytest.mark.parametrize(
    ("scheme", "name"), [*(("memory", name) for name in IN_FILES), *(("s3", name) for name in ON_S3)]
)
def test_every_format(scheme, name, tmp_path, request):
    store = request.getfixturevalue("bucket" if scheme == "s3" else "memory")
    X, y = (X40, Y40) if scheme == "s3" else (X200, Y200)
    prefix, url = ("bucket/data", "s3://bucket/data") if scheme == "s3" else ("/data", "memory://data")
    data, options = FORMATS[name](tmp_path, X, y)
    put_all(store, tmp_path, prefix)
    there = {key: moved(value, tmp_path, url) for key, value in options.items()}
    if name == "zarr zip":
        with pytest.raises(DataError, match="download it first"):
            open_source(moved(data, tmp_path, url), **there)
        return
    source = open_source(moved(data, tmp_path, url), **there)
    assert source.rereadable
    assert source.slow
    for _ in range(2):
        found = rows_of(source)
        np.testing.assert_array_equal(found[0], X)
        np.testing.assert_array_equal(found[1], y)
    # From any row on, as a resumed fit reads.
    np.testing.assert_array_equal(np.concatenate([b[0] for b in source.blocks(23)]), X[23:])
    expected = IncrementalPLS(2).fit(open_source(data, **options))
    np.testing.assert_allclose(IncrementalPLS(2).fit(source).coef_, expected.coef_, rtol=1e-12)
    # As on the workers of a cluster.
    twin = pickle.loads(pickle.dumps(source))  # noqa: S301
    np.testing.assert_array_equal(rows_of(twin)[0], X)


def test_partitions_and_patterns_and_conditions(bucket, tmp_path):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    import pyarrow.parquet as pq

    for year in (2023, 2024):
        (tmp_path / f"year={year}").mkdir()
        table = pa.table({**{name: X[:, j] + year for j, name in enumerate(NAMES)}, "y": y, "row": np.arange(200)})
        pq.write_table(table, tmp_path / f"year={year}" / "part.parquet", row_group_size=50)
    put_all(bucket, tmp_path, "bucket/t")
    whole = open_source("s3://bucket/t", target="y", exclude="row")
    assert whole.feature_names == [*NAMES, "year"]
    assert whole.count() == 400
    chosen = open_source("s3://bucket/t", target="y", exclude="row", where="year == 2024 and row < 60")
    here = open_source(tmp_path, target="y", exclude="row", where="year == 2024 and row < 60")
    np.testing.assert_array_equal(rows_of(chosen)[0], rows_of(here)[0])
    pattern = open_source("s3://bucket/t/*/part.parquet", target="y", exclude="row")
    assert pattern.count() == 400


def test_a_wide_file_is_read_in_part(bucket, tmp_path, monkeypatch):
    """Of a Parquet file and of an array, what is fetched is what is asked for, and no more than a little beside."""
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    import pyarrow.parquet as pq

    wide = np.random.default_rng(0).normal(size=(5000, 50))
    pq.write_table(pa.table({f"c{j}": wide[:, j] for j in range(50)}), tmp_path / "wide.parquet", compression="none")
    np.save(tmp_path / "wide.npy", wide)
    put_all(bucket, tmp_path, "bucket/w")
    fetched, fetch = [], RemotePath.fetch

    def counted(self, start, stop):
        fetched.append(stop - start)
        return fetch(self, start, stop)

    monkeypatch.setattr(RemotePath, "fetch", counted)
    source = open_source("s3://bucket/w/wide.parquet", target="c49", columns=["c3"])
    np.testing.assert_array_equal(rows_of(source)[0][:, 0], wide[:, 3])
    assert sum(fetched) < 0.3 * bucket.info("bucket/w/wide.parquet")["size"]
    fetched.clear()
    array = open_source("s3://bucket/w/wide.npy", batch_size=100)
    np.testing.assert_array_equal(next(iter(array.blocks(4900)))[0], wide[4900:])
    assert sum(fetched) < 0.5 * wide.nbytes


@pytest.mark.parametrize("ranges", [True, False])
def test_web_servers(tmp_path, ranges):
    data, options = FORMATS["csv"](tmp_path, X, y)
    FORMATS["npy"](tmp_path, X, y)
    with web_server(tmp_path, ranges=ranges) as address:
        source = open_source(f"{address}/{Path(data).name}?sig=hunter2", **options)
        np.testing.assert_array_equal(rows_of(source)[0], X)
        assert "hunter2" not in repr(source)
        array = open_source(f"{address}/X.npy", target=f"{address}/y.npy")
        np.testing.assert_array_equal(rows_of(array)[1], y)
        save(IncrementalPLS(3), tmp_path / "m.plstream")
        assert load(f"{address}/m.plstream").n_components == 3
        with pytest.raises(ValueError, match="cannot be written"):
            save(IncrementalPLS(3), f"{address}/m.plstream")
        with pytest.raises(FileNotFoundError, match=r"^There is no file http://.*/none\.csv\.$"):
            open_source(f"{address}/none.csv")
    with pytest.raises(OSError, match="cannot be read: Cannot connect"):
        open_source(f"{address}/X.npy")


@pytest.mark.parametrize("how", ["written again", "removed"])
@pytest.mark.parametrize("name", ["npy", "csv", "parquet", "zarr 3"])
def test_an_object_that_changes(name, how, bucket, tmp_path):
    data, options = FORMATS[name](tmp_path, X, y)
    put_all(bucket, tmp_path, "bucket/data")
    there = {key: moved(value, tmp_path, "s3://bucket/data") for key, value in options.items()}
    source = open_source(moved(data, tmp_path, "s3://bucket/data"), **there)
    assert len(rows_of(source)[0]) == 200
    (tmp_path / "other").mkdir()
    FORMATS[name](tmp_path / "other", X + 1, y)
    if how == "removed":
        for path in bucket.find("bucket/data"):
            bucket.rm_file(path)
    else:
        put_all(bucket, tmp_path / "other", "bucket/data")
    with pytest.raises(DataError, match=r"has changed since it was opened|was removed or renamed") as caught:
        rows_of(source)
    assert "\n" not in str(caught.value)


def test_an_object_that_changes_in_the_middle_of_a_read(bucket, tmp_path):
    np.save(tmp_path / "X.npy", X)
    put_all(bucket, tmp_path, "bucket/m")
    source = open_source("s3://bucket/m/X.npy", batch_size=10)
    blocks = source.blocks()
    assert len(next(blocks)[0]) == 10
    bucket.pipe_file("bucket/m/X.npy", (tmp_path / "X.npy").read_bytes()[:-80])
    with pytest.raises(DataError, match=r"s3://bucket/m/X\.npy has changed since it was opened"):
        list(blocks)


def test_missing_buckets_and_objects(bucket):
    with pytest.raises(FileNotFoundError, match=r"^There is no file s3://none/x\.csv, and no such bucket\.$"):
        open_source("s3://none/x.csv")
    with pytest.raises(FileNotFoundError, match=r"^There is no file s3://bucket/none\.csv\.$"):
        open_source("s3://bucket/none.csv")
    with pytest.raises(FileNotFoundError, match=r"There is no file s3://bucket/none\.plstream"):
        load("s3://bucket/none.plstream")
    with pytest.raises(FileNotFoundError, match="no such bucket"):
        save(IncrementalPLS(), "s3://none/m.plstream")
    with pytest.raises(DataError, match="There are no data files in"):
        open_source("s3://bucket/*.csv")
    bucket.pipe_file("bucket/empty.csv", b"")
    with pytest.raises(DataError, match="is empty"):
        open_source("s3://bucket/empty.csv")


def test_credentials_that_are_refused_or_missing(bucket, monkeypatch):
    bucket.pipe_file("bucket/x.csv", b"a,b\n1,2\n")
    try:
        # From now on, the server looks at the keys.
        reset_auth("0")
        with pytest.raises(PermissionError, match="the credentials were refused or are missing: Forbidden"):
            open_source("s3://bucket/x.csv")
    finally:
        reset_auth("inf")
    exceptions = pytest.importorskip("botocore.exceptions", reason="needs the extra remote")

    def missing(*_, **__):
        raise exceptions.NoCredentialsError

    monkeypatch.setattr(bucket, "info", missing)
    with pytest.raises(PermissionError, match=r"x\.csv cannot be read, .* are missing: Unable to locate credentials"):
        open_source("s3://bucket/x.csv")


def test_a_connection_that_is_lost(bucket, tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", X)
    put_all(bucket, tmp_path, "bucket/l")
    source = open_source("s3://bucket/l/X.npy", batch_size=10)

    def lost(*_, **__):
        raise ConnectionResetError("Connection lost")

    monkeypatch.setattr(bucket, "cat_file", lost)
    with pytest.raises(DataError, match=r"^s3://bucket/l/X.npy cannot be read: Connection lost\.$"):
        rows_of(source)


@pytest.mark.parametrize("url", ["s3://bucket/m/model.plstream", "memory://m/model.plstream"])
def test_models(url, request):
    if url.startswith("s3"):
        request.getfixturevalue("bucket")
    else:
        request.getfixturevalue("memory")
    model = IncrementalPLS(2).fit(X, y)
    save(model, url)
    assert load(url).coef_.tobytes() == model.coef_.tobytes()
    save(IncrementalPLS(3), Path(url))
    assert load(Path(url)).n_components == 3
    with pytest.raises(FileExistsError):
        save(model, url, overwrite=False)
    assert load(url).n_components == 3


def test_nothing_is_written_of_a_save_that_fails(bucket, monkeypatch):
    model = IncrementalPLS(2).fit(X, y)
    save(IncrementalPLS(3), "s3://bucket/keep.plstream")

    def broken(*_, **__):
        raise OSError("Connection lost")

    monkeypatch.setattr(bucket, "put_file", broken)
    with pytest.raises(OSError, match=r"^s3://bucket/keep.plstream cannot be written: Connection lost\.$"):
        save(model, "s3://bucket/keep.plstream")
    monkeypatch.undo()
    assert load("s3://bucket/keep.plstream").n_components == 3
    # Another one that came in between is not replaced either.
    monkeypatch.setattr(RemotePath, "exists", lambda _: False)
    with pytest.raises(FileExistsError, match="exists already"):
        save(model, "s3://bucket/keep.plstream", overwrite=False)


def test_checkpoints(bucket, tmp_path):
    np.savez(tmp_path / "d.npz", X=X, y=y)
    put_all(bucket, tmp_path, "bucket/c")

    def opened():
        return open_source("s3://bucket/c/d.npz:X", target="y", batch_size=20)

    def stop():
        bucket.invalidate_cache()
        return bool(bucket.find("bucket/points"))

    how = {"checkpoint": "s3://bucket/points", "every_rows": 20, "one_pass": True}
    with pytest.raises(Stopped):
        fit_source(IncrementalPLS(2), opened(), stop=stop, **how)
    assert [name for name in bucket.find("bucket/points") if name.endswith(".plstream")]
    model = fit_source(IncrementalPLS(2), opened(), **how)
    expected = fit_source(IncrementalPLS(2), opened(), one_pass=True)
    assert model.coef_.tobytes() == expected.coef_.tobytes()
    bucket.invalidate_cache()
    assert not bucket.find("bucket/points")


def test_no_url_in_a_file_is_followed(bucket, tmp_path):
    """A list of references, or a link in HDF5, names other places: neither is read."""
    bucket.pipe_file("bucket/secret.npy", b"secret")
    bucket.pipe_file("bucket/refs.json", b'{"X/.zarray": ["s3://bucket/secret.npy"]}')
    for url in ("reference::s3://bucket/refs.json", "reference://?fo=s3://bucket/refs.json"):
        with pytest.raises(DataError, match="refers to other URLs, which are not followed"):
            open_source(url)
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(tmp_path / "links.h5", "w") as file:
        file["X"] = h5py.ExternalLink("s3://bucket/secret.npy", "X")
    put_all(bucket, tmp_path, "bucket/h")
    for place in ("s3://bucket/h/links.h5:X", f"{tmp_path}/links.h5:X"):
        with pytest.raises(DataError, match="in other files, which are not read"):
            open_source(place)
    # A column that is a URL is text.
    bucket.pipe_file("bucket/urls.csv", b"a,b\n1,s3://bucket/secret.npy\n2,s3://bucket/secret.npy\n")
    with pytest.raises(DataError, match=r"text|not a number"):
        rows_of(open_source("s3://bucket/urls.csv"))


def test_other_names(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.testing.assert_array_equal(next(iter(open_source((tmp_path / "X.npy").as_uri()).blocks()))[0][:5], X[:5])
    with pytest.raises(DataError, match=r"^redis://h/x has an unsupported URL scheme: use s3://"):
        open_source("redis://h/x")
    with pytest.raises(ImportError, match=r"^oci://bucket/x.csv requires another package"):
        path_of("oci://bucket/x.csv")
    assert str(path_of("https://me:hunter2@host/a.csv?sig=x")) == "https://***@host/a.csv?***"


def test_open_files_and_bytes(tmp_path):
    model = IncrementalPLS(2).fit(X, y)
    file = io.BytesIO(b"before")
    file.seek(0, os.SEEK_END)
    save(model, file)
    content = file.getvalue()[6:]
    save(model, tmp_path / "m.plstream")
    assert content == (tmp_path / "m.plstream").read_bytes()
    file.seek(6)
    unseekable = io.BytesIO(content)
    unseekable.seekable = lambda: False
    with (tmp_path / "m.plstream").open("rb") as opened:
        for there in (content, bytearray(content), memoryview(content), file, opened, unseekable):
            assert load(there).coef_.tobytes() == model.coef_.tobytes()
    with pytest.raises(ValueError, match=r"^The bytes is not a model file|^The bytes are not a model"):
        load(b"not a model")
    with pytest.raises(ValueError, match="damaged"):
        load(content[:-1] + b"?")
    with pytest.raises(TypeError, match="not from a TextIOWrapper"), (tmp_path / "m.plstream").open() as text:
        load(text)
    with pytest.raises(TypeError, match="not to a StringIO"):
        save(model, io.StringIO())
    with pytest.raises(TypeError, match="not from a int"):
        load(3)
