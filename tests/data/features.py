"""Parquet and HDF5 files with features that a reader may not expect, or that are meant to harm.

``FEATURES`` maps a format and a name to a function that writes such a file of rows X and targets y into a folder. It
returns what to open, the options, and what is to come of it: READ, the rows X; an array, these rows; SOME, any rows;
REFUSED, one sentence.
"""

# Functions that write files have the same arguments, whether they need them or not.
# ruff: noqa: ARG001

import base64
import os

import numpy as np
import pytest

from .formats import NAMES, write_encrypted

READ, SOME, REFUSED = "read", "some rows are read", "refused"
FEATURES = {"parquet": {}, "hdf5": {}}
# What is declared and is not there, and what is there and is small only as long as it is compressed.
HUGE, BOMB_BYTES = 1 << 40, 64 << 20


def parquet(write):
    """Register a function of (pyarrow, pyarrow.parquet, path, X, y), which returns options and what comes of it."""

    def feature(folder, X, y):
        pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
        import pyarrow.parquet as pq

        return folder / "d.parquet", *write(pa, pq, folder / "d.parquet", X, y)

    FEATURES["parquet"][write.__name__] = feature


def hdf5(write):
    """Register a function of (h5py, an open file, X, y), which returns key, options and what comes of it."""

    def feature(folder, X, y):
        h5py = pytest.importorskip("h5py", reason="needs h5py")
        with h5py.File(folder / "d.h5", "w") as file:
            key, options, outcome = write(h5py, file, X, y)
        return folder / "d.h5", {"key": key, **options}, outcome

    FEATURES["hdf5"][write.__name__] = feature


def _columns(X):
    return dict(zip(NAMES, X.T, strict=True))


def _lists(pa, X):
    return pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])


# Parquet.


@parquet
def encrypted_column(pa, _, path, X, y):
    write_encrypted(pa.table({**_columns(X), "y": y}), path, ["b"], plain_footer=True)
    return {"target": "y"}, REFUSED


@parquet
def encrypted_column_that_is_left_out(pa, _, path, X, y):
    write_encrypted(pa.table({**_columns(X), "y": y, "secret": y}), path, ["secret"], plain_footer=True)
    return {"target": "y", "exclude": "secret"}, READ


@parquet
def encrypted_target(pa, _, path, X, y):
    write_encrypted(pa.table({**_columns(X), "y": y}), path, ["y"], plain_footer=True)
    return {"target": "y"}, REFUSED


@parquet
def encrypted_lists(pa, _, path, X, y):
    write_encrypted(pa.table({"x": _lists(pa, X), "y": y}), path, ["x.list.element"], plain_footer=True)
    return {"target": "y"}, REFUSED


@parquet
def encrypted_footer(pa, _, path, X, y):
    write_encrypted(pa.table({**_columns(X), "y": y}), path, ["y"], plain_footer=False)
    return {"target": "y"}, REFUSED


@parquet
def lists_of_lists(pa, pq, path, X, y):
    pq.write_table(pa.table({"x": [[row[:2], row[2:]] for row in X.tolist()], "y": y}), path)
    return {"target": "y"}, REFUSED


@parquet
def lists_of_any_size(pa, pq, path, X, y):
    pq.write_table(pa.table({"x": pa.array(X.tolist(), pa.large_list(pa.float64())), "y": y}), path)
    return {"target": "y"}, REFUSED


@parquet
def lists_of_fixed_lists(pa, pq, path, X, y):
    inner = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 2)
    pq.write_table(pa.table({"x": pa.FixedSizeListArray.from_arrays(inner, 2), "y": y}), path)
    return {"target": "y"}, REFUSED


@parquet
def lists_of_text(pa, pq, path, X, y):
    text = pa.array(X.ravel().astype(str))
    pq.write_table(pa.table({"x": pa.FixedSizeListArray.from_arrays(text, 4), "y": y}), path)
    return {"target": "y"}, REFUSED


@parquet
def lists_of_no_size(pa, pq, path, X, y):
    empty = pa.array([[]] * len(X), pa.list_(pa.float64(), 0))
    pq.write_table(pa.table({"x": empty, "y": y}), path)
    return {"target": "y"}, REFUSED


@parquet
def lists_of_another_size_than_declared(pa, pq, path, X, y):
    declared = pa.schema([("x", pa.list_(pa.float64(), 5)), ("y", pa.array(y).type)])
    metadata = {b"ARROW:schema": base64.b64encode(declared.serialize().to_pybytes())}
    table = pa.table({"x": pa.array(X.tolist(), pa.list_(pa.float64())), "y": y})
    pq.write_table(table.replace_schema_metadata(metadata), path, store_schema=False)
    return {"target": "y"}, REFUSED


@parquet
def lists_that_are_huge_as_declared(pa, pq, path, X, y):
    declared = pa.schema([("x", pa.list_(pa.float64(), 2**31 - 1)), ("y", pa.array(y).type)])
    metadata = {b"ARROW:schema": base64.b64encode(declared.serialize().to_pybytes())}
    table = pa.table({"x": pa.array(X.tolist(), pa.list_(pa.float64())), "y": y})
    pq.write_table(table.replace_schema_metadata(metadata), path, store_schema=False)
    return {"target": "y"}, REFUSED


@parquet
def other_types_than_declared(pa, pq, path, X, y):
    declared = pa.schema([(name, pa.duration("s")) for name in NAMES] + [("y", pa.month_day_nano_interval())])
    metadata = {b"ARROW:schema": base64.b64encode(declared.serialize().to_pybytes())}
    pq.write_table(pa.table({**_columns(X), "y": y}).replace_schema_metadata(metadata), path, store_schema=False)
    return {"target": "y"}, READ


@parquet
def structs(pa, pq, path, X, y):
    pq.write_table(pa.table({"x": [dict(zip(NAMES, row, strict=True)) for row in X.tolist()], "y": y}), path)
    return {"target": "y"}, REFUSED


@parquet
def maps(pa, pq, path, X, y):
    pairs = [list(zip(NAMES, row, strict=True)) for row in X.tolist()]
    pq.write_table(pa.table({"x": pa.array(pairs, pa.map_(pa.string(), pa.float64())), "y": y}), path)
    return {"target": "y"}, REFUSED


@parquet
def dictionaries(pa, pq, path, X, y):
    columns = {name: pa.array(column).dictionary_encode() for name, column in _columns(X).items()}
    pq.write_table(pa.table({**columns, "y": pa.array(y).dictionary_encode()}), path)
    return {"target": "y"}, READ


@parquet
def nothing_but_nulls(pa, pq, path, X, y):
    pq.write_table(pa.table({**_columns(X), "z": pa.nulls(len(X)), "y": y}), path)
    return {"target": "y"}, REFUSED


@parquet
def decimals(pa, pq, path, X, y):
    columns = {name: pa.array(column).cast(pa.decimal128(38, 20)) for name, column in _columns(X).items()}
    pq.write_table(pa.table({**columns, "y": y}), path)
    return {"target": "y"}, np.column_stack([column.cast("float64").to_numpy() for column in columns.values()])


@parquet
def bytes_for_numbers(pa, pq, path, X, y):
    columns = {name: pa.array([value.tobytes() for value in column]) for name, column in _columns(X).items()}
    pq.write_table(pa.table({**columns, "y": y}), path)
    return {"target": "y"}, REFUSED


@parquet
def unusual_pages(pa, pq, path, X, y):
    table = pa.table({**_columns(X), "y": y})
    how = {"data_page_version": "2.0", "data_page_size": 16, "write_page_checksum": True, "compression": "brotli"}
    pq.write_table(table, path, use_dictionary=False, column_encoding=dict.fromkeys(NAMES, "BYTE_STREAM_SPLIT"), **how)
    return {"target": "y"}, READ


@parquet
def groups_without_rows(pa, pq, path, X, y):
    table = pa.table({**_columns(X), "y": y})
    with pq.ParquetWriter(path, table.schema) as file:
        for start in (0, 7):
            file.write_table(table.slice(0, 0))
            file.write_table(table.slice(start, 7 if not start else len(X)))
        file.write_table(table.slice(0, 0))
    return {"target": "y"}, READ


@parquet
def groups_in_another_file(pa, pq, path, X, y):
    table, parts = pa.table({**_columns(X), "y": y}), []
    pq.write_table(table, path.with_name("other.parquet"), metadata_collector=parts)
    parts[0].set_file_path("other.parquet")
    with path.open("wb") as file:
        parts[0].write_metadata_file(file)
    return {"target": "y"}, REFUSED


@parquet
def strange_names(pa, pq, path, X, y):
    names = ["x.list.element", "", "a\nb\u2028", "n" * 100_000]
    pq.write_table(pa.table({**dict(zip(names, X.T, strict=True)), "y": y}), path)
    return {"target": "y"}, READ


@parquet
def much_to_say_about_itself(pa, pq, path, X, y):
    table = pa.table({**_columns(X), "y": y}).replace_schema_metadata({f"k{i}": "v" * 1000 for i in range(5000)})
    pq.write_table(table, path, compression="zstd")
    return {"target": "y"}, READ


@parquet
def small_file_of_many_rows(pa, pq, path, X, y):
    zeros = pa.array(np.zeros(BOMB_BYTES // 32, np.float64))
    pq.write_table(pa.table(dict.fromkeys([*NAMES, "y"], zeros)), path, compression="zstd")
    return {"target": "y"}, SOME


@parquet
def small_file_of_wide_lists(pa, pq, path, X, y):
    lists = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(BOMB_BYTES // 8)), BOMB_BYTES // 32)
    pq.write_table(pa.table({"x": lists, "y": np.arange(4)}), path, compression="zstd")
    return {"target": "y"}, SOME


# HDF5.


def _beside(file, name):
    return os.path.join(os.path.dirname(file.filename), name)  # noqa: PTH118, PTH120


def _data(file, X, y, **how):
    """Write X and y as datasets."""
    file.create_dataset("X", data=X, **how)
    file["y"] = y.astype(object) if y.dtype.kind == "U" else y
    return "X", {"target": "y"}


@hdf5
def external_storage(_, file, X, y):
    with open(_beside(file, "other"), "wb") as other:  # noqa: PTH123
        other.write(X.tobytes())
    file.create_dataset("X", X.shape, X.dtype, external=[(_beside(file, "other"), 0, X.nbytes)])
    return "X", {}, REFUSED


@hdf5
def external_link(h5py, file, X, y):
    with h5py.File(_beside(file, "other.h5"), "w") as other:
        other["X"] = X
    file["link"] = h5py.ExternalLink("other.h5", "/X")
    return "link", {}, REFUSED


@hdf5
def external_link_on_the_way(h5py, file, X, y):
    with h5py.File(_beside(file, "other.h5"), "w") as other:
        other["group/X"] = X
    file["link"] = h5py.ExternalLink("other.h5", "/group")
    file["soft"] = h5py.SoftLink("/link")
    return "soft/X", {}, REFUSED


@hdf5
def external_link_to_a_pipe(h5py, file, X, y):
    # Whoever opens it waits for ever.
    os.mkfifo(_beside(file, "pipe"))
    _data(file, X, y)
    file["link"] = h5py.ExternalLink("pipe", "/X")
    return "link", {}, REFUSED


@hdf5
def external_link_to_a_pipe_beside_the_data(h5py, file, X, y):
    os.mkfifo(_beside(file, "pipe"))
    file["group/link"] = h5py.ExternalLink("pipe", "/X")
    return *_data(file, X, y), READ


@hdf5
def virtual_of_a_pipe(h5py, file, X, y):
    os.mkfifo(_beside(file, "pipe"))
    layout = h5py.VirtualLayout((len(X), 4), X.dtype, maxshape=(None, 4))
    source = h5py.VirtualSource("pipe", "X", (len(X), 4), X.dtype, maxshape=(None, 4))
    layout[: h5py.h5s.UNLIMITED] = source[: h5py.h5s.UNLIMITED]
    file.create_virtual_dataset("X", layout)
    return "X", {}, REFUSED


@hdf5
def virtual_of_itself(h5py, file, X, y):
    layout = h5py.VirtualLayout(X.shape, X.dtype)
    layout[:] = h5py.VirtualSource(".", "X", X.shape)
    file.create_virtual_dataset("X", layout)
    return "X", {}, REFUSED


@hdf5
def soft_link(h5py, file, X, y):
    _data(file, X, y)
    file["group/link"] = h5py.SoftLink("/alias")
    file["alias"] = h5py.SoftLink("X")
    return "group/link", {"target": "y"}, READ


@hdf5
def soft_links_in_a_circle(h5py, file, X, y):
    _data(file, X, y)
    file["a"], file["b"] = h5py.SoftLink("/b"), h5py.SoftLink("/a")
    return "a", {}, REFUSED


@hdf5
def dangling_link(h5py, file, X, y):
    _data(file, X, y)
    file["link"] = h5py.SoftLink("/nowhere")
    return "link", {}, REFUSED


@hdf5
def group_within_itself(_, file, X, y):
    file["group/again"] = file.create_group("group/inner")
    file["group/inner/loop"] = file["group"]
    file["group/X"], file["y"] = X, y.astype(object) if y.dtype.kind == "U" else y
    return "group/inner/loop/again/loop/X", {"target": "y"}, READ


@hdf5
def deep_groups(_, file, X, y):
    file["/".join(["g"] * 500)] = X
    return None, {}, READ


@hdf5
def group_for_a_dataset(_, file, X, y):
    file["group/X"] = X
    return "group", {}, REFUSED


@hdf5
def named_type_for_a_dataset(_, file, X, y):
    file["X"] = np.dtype("f8")
    return "X", {}, REFUSED


@hdf5
def compound(_, file, X, y):
    file["X"] = np.zeros(len(X), [("a", float), ("b", int)])
    return "X", {}, REFUSED


@hdf5
def compound_of_lists(_, file, X, y):
    file["X"] = np.zeros((len(X), 2), [("a", float, (2,))])
    return "X", {}, REFUSED


@hdf5
def arrays_within_arrays(h5py, file, X, y):
    kind = h5py.h5t.array_create(h5py.h5t.NATIVE_DOUBLE, (4,))
    h5py.h5d.create(file.id, b"X", kind, h5py.h5s.create_simple((len(X),)))
    return "X", {}, REFUSED


@hdf5
def lists_of_different_length(h5py, file, X, y):
    data = file.create_dataset("X", (len(X),), h5py.vlen_dtype(np.float64))
    for row, values in enumerate(X):
        data[row] = values[: row % 4]
    return "X", {}, REFUSED


@hdf5
def object_references(h5py, file, X, y):
    _data(file, X, y)
    file.create_dataset("references", data=[[file["X"].ref]] * len(X), dtype=h5py.ref_dtype)
    return "references", {}, REFUSED


@hdf5
def region_references(h5py, file, X, y):
    _data(file, X, y)
    file.create_dataset("regions", data=[[file["X"].regionref[:2]]] * len(X), dtype=h5py.regionref_dtype)
    return "regions", {}, REFUSED


@hdf5
def references_as_labels(h5py, file, X, y):
    _data(file, X, y)
    file.create_dataset("references", data=[file["X"].ref] * len(X), dtype=h5py.ref_dtype)
    return "X", {"target": "references"}, REFUSED


@hdf5
def enumeration(h5py, file, X, y):
    kind = h5py.enum_dtype({"no": 0, "yes": 1}, np.int8)
    file.create_dataset("y", data=np.arange(len(X)) % 2, dtype=kind)
    file["X"] = X
    return "X", {"target": "y"}, READ


@hdf5
def opaque(h5py, file, X, y):
    file.create_dataset("X", data=X.view("V8").reshape(X.shape))
    return "X", {}, REFUSED


@hdf5
def complex_numbers(_, file, X, y):
    file["X"] = X + 1j
    return "X", {}, REFUSED


@hdf5
def other_byte_order(_, file, X, y):
    return *_data(file, X.astype(X.dtype.newbyteorder(">")), y), READ


@hdf5
def numbers_of_three_bytes(h5py, file, X, y):
    kind = h5py.h5t.STD_I32LE.copy()
    kind.set_precision(24)
    kind.set_size(3)
    data = h5py.h5d.create(file.id, b"X", kind, h5py.h5s.create_simple(X.shape))
    data.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(X.size, dtype=np.int32).reshape(X.shape))
    return "X", {}, REFUSED


@hdf5
def numbers_of_twelve_bits(h5py, file, X, y):
    # They lie in the middle of their two bytes.
    kind = h5py.h5t.STD_I16LE.copy()
    kind.set_precision(12)
    kind.set_offset(3)
    rows = np.arange(X.size, dtype=np.int16).reshape(X.shape) - 50
    data = h5py.h5d.create(file.id, b"X", kind, h5py.h5s.create_simple(X.shape))
    data.write(h5py.h5s.ALL, h5py.h5s.ALL, rows)
    return "X", {}, rows


@hdf5
def floats_of_unknown_layout(h5py, file, X, y):
    kind = h5py.h5t.IEEE_F32LE.copy()
    kind.set_fields(31, 20, 11, 0, 20)
    kind.set_ebias(1000)
    rows = np.arange(X.size, dtype=np.float64).reshape(X.shape)
    data = h5py.h5d.create(file.id, b"X", kind, h5py.h5s.create_simple(X.shape))
    data.write(h5py.h5s.ALL, h5py.h5s.ALL, rows)
    # So that there are bytes beyond.
    file["more"] = np.zeros(X.shape)
    return "X", {}, rows


@hdf5
def long_doubles(_, file, X, y):
    return *_data(file, X.astype(np.longdouble), y), READ


@hdf5
def all_filters_at_once(_, file, X, y):
    how = {"shuffle": True, "fletcher32": True, "compression": "gzip", "compression_opts": 9}
    return *_data(file, X, y, chunks=(3, 3), **how), READ


@hdf5
def lossy_filter(_, file, X, y):
    file.create_dataset("X", data=np.arange(X.size).reshape(X.shape), chunks=(4, 2), scaleoffset=0)
    return "X", {}, SOME


@hdf5
def unknown_filter(h5py, file, X, y):
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    how.set_chunk((4, 4))
    how.set_filter(50_000, h5py.h5z.FLAG_OPTIONAL)
    data = h5py.h5d.create(file.id, b"X", h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple((4, 4)), how)
    # Written as if it had been filtered.
    data.write_direct_chunk((0, 0), bytes(128), 0)
    return "X", {}, REFUSED


@hdf5
def compact(h5py, file, X, y):
    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    how.set_layout(h5py.h5d.COMPACT)
    data = h5py.h5d.create(file.id, b"X", h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple(X.shape), how)
    data.write(h5py.h5s.ALL, h5py.h5s.ALL, X.astype(np.float64))
    return "X", {}, READ


@hdf5
def nothing_written(_, file, X, y):
    file.create_dataset("X", X.shape, X.dtype)
    return "X", {}, SOME


@hdf5
def nothing_written_is_not_a_number(_, file, X, y):
    file.create_dataset("X", X.shape, X.dtype, fillvalue=np.nan)
    return "X", {}, REFUSED


@hdf5
def no_dimensions(_, file, X, y):
    file["X"] = 1.0
    return "X", {}, REFUSED


@hdf5
def no_space(h5py, file, X, y):
    file["X"] = h5py.Empty("f8")
    return "X", {}, REFUSED


@hdf5
def more_rows_than_any_disk_holds(_, file, X, y):
    file.create_dataset("X", (HUGE, 4), "f8", chunks=(1000, 4))
    return "X", {}, SOME


@hdf5
def rows_that_are_too_wide(_, file, X, y):
    file.create_dataset("X", (4, HUGE), "f8", chunks=(1, 1000))
    return "X", {}, REFUSED


@hdf5
def more_in_one_piece_than_there_is(_, file, X, y):
    file.create_dataset("X", (HUGE, 4), "f8")
    return "X", {}, SOME


@hdf5
def small_file_of_a_large_chunk(_, file, X, y):
    file.create_dataset("X", (BOMB_BYTES // 32, 4), "f8", chunks=(BOMB_BYTES // 32, 4), compression="gzip")
    file["X"][0] = 1.0
    return "X", {}, SOME


@hdf5
def large_chunk_of_few_rows(_, file, X, y):
    data = file.create_dataset("X", (4, 4), "f8", chunks=(BOMB_BYTES // 32, 4), maxshape=(None, 4), compression="gzip")
    data[:] = X[:4]
    return "X", {}, SOME


@hdf5
def text_of_fixed_length(_, file, X, y):
    file["X"], file["y"] = X, np.array([b"yes", b"no"])[np.arange(len(X)) % 2]
    return "X", {"target": "y"}, READ


@hdf5
def text_that_is_none(h5py, file, X, y):
    file["X"] = X
    file.create_dataset("y", data=np.full(len(X), b"\xff\xfe"), dtype=h5py.string_dtype("ascii", 2))
    return "X", {"target": "y"}, REFUSED


def _user_block(folder, X, y):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(folder / "d.h5", "w", userblock_size=512) as file:
        _data(file, X, y)
    return folder / "d.h5", {"key": "X", "target": "y"}, READ


FEATURES["hdf5"]["user_block"] = _user_block
