"""The same data in every format: files written from X and y, and how to open them."""

import base64
import gzip
import io
import json
import zipfile

import numpy as np
import pytest
from scipy import sparse

from plstream import open_source

NAMES = ["a", "b", "c", "d"]


def _csv(path, X, y, delimiter=",", header=True):
    lines = [delimiter.join([*NAMES, "y"])] if header else []
    lines += [delimiter.join([*map(repr, row), str(label)]) for row, label in zip(X.tolist(), y.tolist(), strict=True)]
    data = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def _npy(folder, X, y):
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    return folder / "X.npy", {"target": str(folder / "y.npy")}


def _npz(folder, X, y):
    np.savez(folder / "stored.npz", X=X, y=y)
    return f"{folder / 'stored.npz'}:X", {"target": "y"}


def _npz_compressed(folder, X, y):
    np.savez_compressed(folder / "data.npz", X=X, y=y)
    return folder / "data.npz", {"target": "y", "key": "X"}


def _npz_sparse(folder, X, y):
    sparse.save_npz(folder / "sparse.npz", sparse.csr_matrix(X))
    np.save(folder / "y.npy", y)
    return folder / "sparse.npz", {"target": str(folder / "y.npy")}


def _csv_file(folder, X, y):
    _csv(folder / "data.csv", X, y)
    return folder / "data.csv", {"target": "y"}


def _csv_gz(folder, X, y):
    _csv(folder / "data.csv.gz", X, y)
    return folder / "data.csv.gz", {"target": "y"}


def _tsv_without_header(folder, X, y):
    _csv(folder / "data.tsv", X, y, "\t", header=False)
    return folder / "data.tsv", {"target": -1}


def _csv_parts(folder, X, y):
    parts = folder / "parts"
    parts.mkdir()
    for part, rows in enumerate(np.array_split(np.arange(len(X)), 11)):
        _csv(parts / f"part{part}.csv", X[rows], y[rows])
    return parts, {"target": "y"}


def _ndjson(folder, X, y):
    lines = [
        json.dumps({**dict(zip(NAMES, row, strict=True)), "y": label})
        for row, label in zip(X.tolist(), y.tolist(), strict=True)
    ]
    (folder / "data.ndjson").write_text("\n".join(lines))
    return folder / "data.ndjson", {"target": "y"}


def _ndjson_lists(folder, X, y):
    lines = [json.dumps({"x": row, "y": label}) for row, label in zip(X.tolist(), y.tolist(), strict=True)]
    (folder / "data.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return folder / "data.jsonl.gz", {"target": "y"}


def _scalars(X, y):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    return pa.table({**{name: X[:, j] for j, name in enumerate(NAMES)}, "y": y})


def _lists(X, y):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    return pa.table({"y": y, "x": pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])})


def _parquet(folder, X, y):
    table = _scalars(X, y)
    import pyarrow.parquet as pq

    pq.write_table(table, folder / "data.parquet", row_group_size=37)
    return folder / "data.parquet", {"target": "y"}


def write_encrypted(table, path, columns, *, plain_footer):
    """Write a Parquet file with some encrypted columns, whose keys are discarded."""
    encryption = pytest.importorskip("pyarrow.parquet.encryption", reason="needs pyarrow with encryption")
    import pyarrow.parquet as pq

    class Keys(encryption.KmsClient):
        def __init__(self, _):
            super().__init__()

        def wrap_key(self, key_bytes, _):
            return base64.b64encode(key_bytes)

    how = encryption.EncryptionConfiguration("footer", column_keys={"key": columns}, plaintext_footer=plain_footer)
    factory = encryption.CryptoFactory(Keys)
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), how)
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as file:
        file.write_table(table)


def _parquet_lists(folder, X, y):
    table = _lists(X, y)
    import pyarrow.parquet as pq

    pq.write_table(table, folder / "lists.parquet", row_group_size=50)
    return folder / "lists.parquet", {"target": "y"}


def _parquet_parts(folder, X, y):
    parts = folder / "parts"
    parts.mkdir()
    table = _scalars(X, y)
    import pyarrow.parquet as pq

    for part, start in enumerate(range(0, len(X), 30)):
        pq.write_table(table.slice(start, 30), parts / f"part-{part}.parquet")
    return str(parts / "*.parquet"), {"target": "y"}


def _arrow_file(folder, X, y):
    table = _lists(X, y)
    import pyarrow as pa

    with pa.ipc.new_file(folder / "data.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=23)
    return folder / "data.arrow", {"target": "y"}


def _arrow_stream(folder, X, y):
    table = _scalars(X, y)
    import pyarrow as pa

    with pa.ipc.new_stream(folder / "data.arrows", table.schema) as file:
        file.write_table(table, max_chunksize=23)
    return folder / "data.arrows", {"target": "y"}


def _feather(folder, X, y):
    table = _scalars(X, y)
    from pyarrow import feather

    feather.write_feather(table, folder / "data.feather", compression="lz4", chunksize=31)
    return folder / "data.feather", {"target": "y"}


def _hdf5(folder, X, y):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(folder / "data.h5", "w") as file:
        file["group/X"], file["y"] = X, y.astype(object) if y.dtype.kind == "U" else y
    return f"{folder / 'data.h5'}:group/X", {"target": f"{folder / 'data.h5'}:y"}


def _hdf5_compressed(folder, X, y):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(folder / "data.hdf5", "w") as file:
        file.create_dataset("X", data=X, chunks=(16, 2), compression="gzip")
        file["y"] = y.astype(object) if y.dtype.kind == "U" else y
    return folder / "data.hdf5", {"target": "y", "key": "X"}


def _zarr_of(version, is_zip):
    def write(folder, X, y):
        zarr = pytest.importorskip("zarr", reason="needs zarr")
        path = folder / ("data.zarr.zip" if is_zip else "data.zarr")
        store = zarr.storage.ZipStore(str(path), mode="w") if is_zip else str(path)
        group = zarr.open_group(store, mode="w", zarr_format=version)
        group.create_array("X", shape=X.shape, chunks=(16, 3), dtype=X.dtype)[:] = X
        if is_zip:
            store.close()
        np.save(folder / "y.npy", y)
        return f"{path}:X", {"target": folder / "y.npy"}

    return write


def _array(_, X, y):
    return X, {"target": y}


def _frame(library):
    def make(_, X, y):
        pytest.importorskip("pyarrow", reason="needs pyarrow")
        frames = pytest.importorskip(library, reason=f"needs {library}")
        return frames.DataFrame({**{name: X[:, j] for j, name in enumerate(NAMES)}, "y": y}), {"target": "y"}

    return make


def _arrow_in_memory(_, X, y):
    return _scalars(X, y), {"target": "y"}


def _blocks(_, X, y):
    return [(X[start : start + 13], y[start : start + 13]) for start in range(0, len(X), 13)], {}


FORMATS = {
    "npy": _npy,
    "npz": _npz,
    "npz compressed": _npz_compressed,
    "npz sparse": _npz_sparse,
    "csv": _csv_file,
    "csv.gz": _csv_gz,
    "tsv": _tsv_without_header,
    "csv parts": _csv_parts,
    "ndjson": _ndjson,
    "ndjson lists": _ndjson_lists,
    "parquet": _parquet,
    "parquet lists": _parquet_lists,
    "parquet parts": _parquet_parts,
    "arrow": _arrow_file,
    "arrow stream": _arrow_stream,
    "feather": _feather,
    "hdf5": _hdf5,
    "hdf5 compressed": _hdf5_compressed,
    "zarr 2": _zarr_of(2, is_zip=False),
    "zarr 3": _zarr_of(3, is_zip=False),
    "zarr zip": _zarr_of(3, is_zip=True),
    "array": _array,
    "pandas": _frame("pandas"),
    "polars": _frame("polars"),
    "arrow in memory": _arrow_in_memory,
    "blocks": _blocks,
}


def opened(name, folder, X, y, **options):
    """Write the data in a format, and open it."""
    data, how = FORMATS[name](folder, X, y)
    return open_source(data, **how, **options)


def zip_of(path, name, data, compression=zipfile.ZIP_STORED):
    """Write a zip file of one member."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr(name, data)


def npy_bytes(array, **options):
    """Return what numpy.save writes."""
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()
