"""Files that are not as they should be, each with what is to be said about it.

``CASES`` maps a name to a function that writes such a file into a folder and returns what to open, the options, and a
pattern of the message.
"""

import gzip
import json
import os
import zipfile

import numpy as np
import pytest

from .formats import npy_bytes, write_encrypted, zip_of

CASES = {}
X = np.arange(12.0).reshape(4, 3)


def case(function):
    CASES[function.__name__] = function
    return function


def _with(value, row=2, column=1):
    bad = X.copy()
    bad[row, column] = value
    return bad


def _text(path, *lines):
    path.write_text("\n".join(lines) + "\n")
    return path


def _arrow():
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pa, pq


@case
def npy_nan(folder):
    np.save(folder / "X.npy", _with(np.nan))
    return folder / "X.npy", {}, r"X.npy, row 2, column 1, there is NaN: drop or replace"


@case
def npy_infinity_in_target(folder):
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", [0, 1, 2, -np.inf])
    return folder / "X.npy", {"target": folder / "y.npy"}, r"y.npy, row 3, column 0, there is infinity"


@case
def npy_objects(folder):
    (folder / "X.npy").write_bytes(npy_bytes(np.array([[{}, 1]]), allow_pickle=True))
    return folder / "X.npy", {}, r"X.npy holds Python objects, which are never loaded"


@case
def npz_objects(folder):
    zip_of(folder / "X.npz", "X.npy", npy_bytes(np.array([[{}, 1]]), allow_pickle=True), zipfile.ZIP_DEFLATED)
    return folder / "X.npz", {}, r"X.npz:X holds Python objects, which are never loaded"


@case
def npy_pickle(folder):
    (folder / "X.npy").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    return folder / "X.npy", {}, r"X.npy is not a NumPy array"


@case
def npy_truncated(folder):
    (folder / "X.npy").write_bytes(npy_bytes(X)[:-8])
    return folder / "X.npy", {}, r"X.npy is truncated: it should have 224 bytes, but has 216"


@case
def npy_truncated_header(folder):
    (folder / "X.npy").write_bytes(npy_bytes(X)[:40])
    return folder / "X.npy", {}, r"X.npy is not a NumPy array"


@case
def npy_huge(folder):
    data = npy_bytes(X).replace(b"(4, 3), }" + b" " * 20, b"(4000000000000000000, 3), }" + b" " * 2)
    (folder / "X.npy").write_bytes(data)
    return folder / "X.npy", {}, r"X.npy is truncated: it should have 96,000,000,000,000,000,128 bytes, but has 224"


@case
def npz_huge(folder):
    data = npy_bytes(X).replace(b"(4, 3), }" + b" " * 20, b"(4000000000000000000, 3), }" + b" " * 2)
    zip_of(folder / "X.npz", "X.npy", data, zipfile.ZIP_DEFLATED)
    return folder / "X.npz", {}, r"X.npz:X is truncated: it should have"


@case
def npy_header_not_closed(folder):
    (folder / "X.npy").write_bytes(npy_bytes(X).replace(b"(4, 3)", b"(((((("))
    return folder / "X.npy", {}, r"X.npy is not a NumPy array"


@case
def npy_negative(folder):
    (folder / "X.npy").write_bytes(npy_bytes(X).replace(b"(4, 3), }  ", b"(-4, -3), }"))
    return folder / "X.npy", {}, r"X.npy is damaged: its shape is \(-4, -3\)"


@case
def npz_nothing_at_its_place(folder):
    np.savez_compressed(folder / "X.npz", X=X)
    data = (folder / "X.npz").read_bytes()
    (folder / "X.npz").write_bytes(b"none" + data[4:])
    return folder / "X.npz", {}, r"X.npz:X is damaged or truncated: Bad magic number"


@case
def npz_name_of_several_lines(folder):
    zip_of(folder / "X.npz", "a\nb\u2028.npy", npy_bytes(X))
    return f"{folder / 'X.npz'}:Z", {}, r"There is no array 'Z' in .*X.npz: it has a\\nb\\u2028\.$"


@case
def npz_wide(folder):
    # A small file of one row, which is not small when it is read.
    zip_of(folder / "X.npz", "X.npy", npy_bytes(np.zeros((1, 70 << 20), np.int8)), zipfile.ZIP_DEFLATED)
    return folder / "X.npz", {}, r"A row of .*X.npz:X \(73,400,320 columns\) does not fit in memory=268,435,456"


@case
def npy_structured(folder):
    np.save(folder / "X.npy", np.zeros(3, [("a", float), ("b", int)]))
    return folder / "X.npy", {}, r"X.npy holds records with several fields"


@case
def npy_complex(folder):
    np.save(folder / "X.npy", X + 1j)
    return folder / "X.npy", {}, r"X.npy holds complex numbers"


@case
def npy_dates(folder):
    np.save(folder / "X.npy", np.zeros((2, 2), "M8[s]"))
    return folder / "X.npy", {}, r"X.npy holds values of type datetime64\[s\], not numbers"


@case
def npy_text(folder):
    np.save(folder / "X.npy", np.full((2, 2), "a"))
    return folder / "X.npy", {}, r"X.npy holds values of type <U1, not numbers"


@case
def npy_three_dimensions(folder):
    np.save(folder / "X.npy", X.reshape(2, 2, 3))
    return folder / "X.npy", {}, r"X.npy has 3 dimensions"


@case
def npy_no_rows(folder):
    np.save(folder / "X.npy", X[:0])
    return folder / "X.npy", {}, r"X.npy has no rows"


@case
def npy_no_columns(folder):
    np.save(folder / "X.npy", X[:, :0])
    return folder / "X.npy", {}, r"X.npy has no columns"


@case
def npy_target_of_other_length(folder):
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", np.zeros(5))
    return folder / "X.npy", {"target": folder / "y.npy"}, r"y.npy has 5 rows, but .*X.npy has 4"


@case
def npz_not_a_zip(folder):
    (folder / "X.npz").write_bytes(b"PK\x03\x04" + b"\0" * 100)
    return folder / "X.npz", {}, r"X.npz is not a .npz file"


@case
def npz_which(folder):
    np.savez(folder / "X.npz", X=X, Z=X)
    return folder / "X.npz", {}, r"Say which array of .*X.npz: it has X, Z, as in"


@case
def npz_no_such(folder):
    np.savez(folder / "X.npz", X=X, Z=X)
    return f"{folder / 'X.npz'}:W", {}, r"There is no array 'W' in .*X.npz: it has X, Z"


@case
def npz_by_columns(folder):
    np.savez_compressed(folder / "X.npz", X=np.asfortranarray(X))
    return folder / "X.npz", {}, r"compressed and stored by columns"


@case
def npz_damaged(folder):
    path = folder / "X.npz"
    np.savez_compressed(path, X=np.random.default_rng(0).normal(size=(500, 20)))
    data = bytearray(path.read_bytes())
    data[20_000:20_100] = b"\xff" * 100
    path.write_bytes(data)
    return path, {}, r"X.npz:X is damaged"


@case
def csv_text_among_numbers(folder):
    return (
        _text(folder / "d.csv", "a,b", "1,2", "3,4", "5,six"),
        {},
        r"d.csv, row 2, column 'b', there is 'six', which is not a",
    )


@case
def csv_several_of_text(folder):
    lines = "a,z,b,m", "1,2,3,4", "1,x,3,y", "1,2,w,4"
    message = r"3 columns of .*d.csv do not hold numbers, 'z' \(text\), 'b' \(text\), 'm' \(text\): .* exclude=\['z',"
    return _text(folder / "d.csv", *lines), {}, message


@case
def csv_later_text(folder):
    lines = ["a,b", *["1,2"] * 3000, "1,x"]
    return _text(folder / "d.csv", *lines), {}, r"d.csv, row 3000, column 'b', there is 'x', which is not a number"


@case
def csv_ragged(folder):
    return (
        _text(folder / "d.csv", "a,b", "1,2", "3", "5,6"),
        {},
        r"d.csv, row 1, has 1 field, but other rows have 2",
    )


@case
def csv_ragged_more(folder):
    return _text(folder / "d.csv", "1,2", "3,4", "5,6,7"), {}, r"d.csv, row 2, has 3 fields, but other rows have 2"


@case
def csv_missing(folder):
    return _text(folder / "d.csv", "a,b", "1,2", "3,", "5,6"), {}, r"d.csv, row 1, column 'b', there is a missing value"


@case
def csv_nan(folder):
    return _text(folder / "d.csv", "a,b", "1,2", "3,nan"), {}, r"d.csv, row 1, column 'b', there is NaN"


@case
def csv_overflow(folder):
    return _text(folder / "d.csv", "a,b", "1,2", "3,1e999"), {}, r"d.csv, row 1, column 'b', there is infinity"


@case
def csv_underscore(folder):
    return (
        _text(folder / "d.csv", "a,b", "1,2", "3,1_000"),
        {},
        r"d.csv, row 1, column 'b', there is '1_000', which is not a",
    )


@case
def csv_twins(folder):
    return _text(folder / "d.csv", "a,b,a", "1,2,3"), {}, r"d.csv has several columns named 'a'"


@case
def csv_header_only(folder):
    return _text(folder / "d.csv", "a,b"), {}, r"d.csv has no rows, only a header"


@case
def csv_blank(folder):
    return _text(folder / "d.csv", "", "  ", ""), {}, r"d.csv has no rows"


@case
def csv_empty(folder):
    (folder / "d.csv").touch()
    return folder / "d.csv", {}, r"d.csv is empty"


@case
def csv_no_such_column(folder):
    return _text(folder / "d.csv", "a,b", "1,2"), {"target": "z"}, r"no column 'z' in .*d.csv: its columns are a, b"


@case
def csv_no_names(folder):
    return _text(folder / "d.csv", "1,2", "3,4"), {"target": "z"}, r"no column 'z' in .*whose columns have no names"


@case
def csv_no_such_number(folder):
    return _text(folder / "d.csv", "a,b", "1,2"), {"columns": [5]}, r"no column 5 in .*d.csv, which has 2 columns"


@case
def csv_nothing_left(folder):
    return _text(folder / "d.csv", "a", "1"), {"target": "a"}, r"No columns of .*d.csv are left to be features"


@case
def csv_both(folder):
    return _text(folder / "d.csv", "a,b", "1,2"), {"target": "a", "columns": ["a"]}, r"both a feature and a target"


@case
def csv_twice(folder):
    return _text(folder / "d.csv", "a,b", "1,2"), {"columns": ["a", 0]}, r"Column 'a' of .*d.csv is chosen twice"


@case
def csv_utf16(folder):
    (folder / "d.csv").write_bytes("a,b\n1,2\n".encode("utf-16"))
    return folder / "d.csv", {}, r"d.csv is not UTF-8 text"


@case
def csv_long_name(folder):
    return (
        _text(folder / "d.csv", "a," + "b" * 5000, "1,x"),
        {},
        r"d.csv, row 0, column 'b{60}\.\.\.', there is 'x', which is not a",
    )


@case
def csv_name_with_a_bell(folder):
    return (
        _text(folder / "d.csv", "a,b\a", "1,2"),
        {"target": "y"},
        r"no column 'y' in .*d.csv: its columns are a, b\\x07",
    )


@case
def csv_gz_bomb(folder):
    with gzip.open(folder / "d.csv.gz", "wb", 1) as file:
        for _ in range(130):
            file.write(b"1" * (1 << 20))
    return folder / "d.csv.gz", {}, r"d.csv.gz has a line of more than 64 MiB"


@case
def csv_open_quote(folder):
    return _text(folder / "d.csv", "a,b", '1,"2', "3,4"), {}, r"d.csv cannot be read as lines of fields"


@case
def gzip_not(folder):
    return _text(folder / "d.csv.gz", "a,b", "1,2"), {}, r"d.csv.gz is not a gzip file"


@case
def gzip_truncated(folder):
    data = gzip.compress("\n".join(["a,b", *[f"{i},{i * i}" for i in range(5000)]]).encode())
    (folder / "d.csv.gz").write_bytes(data[: len(data) // 2])
    return folder / "d.csv.gz", {}, r"d.csv.gz is truncated"


@case
def ndjson_broken(folder):
    return _text(folder / "d.ndjson", "[1,2]", "[3,4", "[5,6]"), {}, r"d.ndjson, row 1 is not valid JSON: '\[3,4'"


@case
def ndjson_two_in_a_line(folder):
    return _text(folder / "d.ndjson", "[1,2]", "[3,4],[5,6]"), {}, r"d.ndjson, row 1 is not valid JSON"


@case
def ndjson_missing(folder):
    return _text(folder / "d.ndjson", '{"a":1,"b":2}', '{"a":1}'), {}, r"d.ndjson, row 1 has no 'b', but row 0"


@case
def ndjson_null(folder):
    lines = '{"a":1,"b":2}', '{"a":1,"b":null}'
    return _text(folder / "d.ndjson", *lines), {}, r"d.ndjson, row 1, column 'b', there is a missing value"


@case
def ndjson_text(folder):
    lines = '{"a":1,"b":2}', '{"a":1,"b":"2"}'
    return _text(folder / "d.ndjson", *lines), {}, r"d.ndjson, row 1, column 'b', there is '2', which is not a number"


@case
def ndjson_several_of_text(folder):
    message = r"2 columns of .*d.ndjson do not hold numbers, 'z' \(text\), 'b' \(text\): .* exclude=\['z', 'b'\]"
    return _text(folder / "d.ndjson", '{"a": 1, "z": "x", "c": 2, "b": "y"}'), {}, message


@case
def ndjson_name_twice(folder):
    lines = '{"a":1,"b":2}', '{"a":1,"b":2,"a":3}'
    return _text(folder / "d.ndjson", *lines), {}, r"d.ndjson, row 1, 'a' occurs twice: use each name once"


@case
def ndjson_name_twice_at_first(folder):
    return _text(folder / "d.ndjson", '{"x":[1,2],"y":"a:b","y":"b"}'), {}, r"d.ndjson, row 0, 'y' occurs twice"


@case
def ndjson_ragged(folder):
    return _text(folder / "d.ndjson", "[1,2]", "[1,2,3]"), {}, r"d.ndjson, row 1 has 3 numbers, but row 0 has 2"


@case
def ndjson_another_kind(folder):
    return _text(folder / "d.ndjson", "[1,2]", '{"a":1}'), {}, r"d.ndjson, row 1 is not an array, but row 0 is"


@case
def ndjson_number(folder):
    return (
        _text(folder / "d.ndjson", "1", "2"),
        {},
        r"d.ndjson, row 0 is neither an array nor an object, but '1'",
    )


@case
def ndjson_nan(folder):
    return _text(folder / "d.ndjson", "[1,2]", "[NaN,2]"), {}, r"d.ndjson, row 1, column 0, there is NaN"


@case
def ndjson_deep(folder):
    return _text(folder / "d.ndjson", "[" * 100_000 + "]" * 100_000), {}, r"d.ndjson, row 0 is not valid JSON"


@case
def ndjson_huge_integer(folder):
    return _text(folder / "d.ndjson", "[1, 2]", f"[1, {10**400}]"), {}, r"d.ndjson, row 1, column 1, .*too large for"


@case
def ndjson_array_among_objects(folder):
    lines = json.dumps({"x": [1, 2], "y": 1}), "[1, 2]"
    return _text(folder / "d.ndjson", *lines), {"target": "y"}, r"d.ndjson, row 1 is not an object, but row 0 is"


@case
def ndjson_two_lists(folder):
    return _text(folder / "d.ndjson", json.dumps({"a": [1], "b": [2]})), {}, r"several arrays in an object, a, b"


@case
def parquet_null(folder):
    pa, pq = _arrow()
    pq.write_table(pa.table({"a": [1.0, 2.0], "b": [1.0, None]}), folder / "d.parquet")
    return folder / "d.parquet", {}, r"d.parquet, row 1, column 'b', there is a missing value"


@case
def parquet_null_in_list(folder):
    pa, pq = _arrow()
    lists = pa.array([[1.0, 2.0], [3.0, None]], pa.list_(pa.float64(), 2))
    pq.write_table(pa.table({"x": lists}), folder / "d.parquet")
    return folder / "d.parquet", {}, r"d.parquet, row 1, column 1, there is a missing value"


@case
def parquet_nan_in_second_group(folder):
    pa, pq = _arrow()
    pq.write_table(pa.table({"a": [1.0, 2.0, np.nan], "b": [1, 2, 3]}), folder / "d.parquet", row_group_size=1)
    return folder / "d.parquet", {}, r"d.parquet, row 2, column 'a', there is NaN"


@case
def parquet_text(folder):
    pa, pq = _arrow()
    pq.write_table(pa.table({"a": [1.0], "b": ["x"]}), folder / "d.parquet")
    return folder / "d.parquet", {}, r"Column 'b' of .*d.parquet holds text, not numbers: leave it out"


@case
def parquet_several_of_text(folder):
    pa, pq = _arrow()
    columns = {"a": [1.0], "z": ["x"], "b": ["x"], "c": [1], "m": pa.array([1], pa.timestamp("s"))}
    pq.write_table(pa.table(columns), folder / "d.parquet")
    # In the order of the file, whatever the hashes of names are.
    message = r"3 columns of .*d.parquet do not hold numbers, 'z' \(text\), 'b' \(text\), 'm' \(.*\): .* exclude="
    return folder / "d.parquet", {}, message


@case
def parquet_dates(folder):
    pa, pq = _arrow()
    pq.write_table(pa.table({"a": pa.array([1], pa.timestamp("s"))}), folder / "d.parquet")
    return folder / "d.parquet", {}, r"Column 'a' of .*d.parquet holds values of type timestamp"


@case
def parquet_lists_of_any_size(folder):
    pa, pq = _arrow()
    pq.write_table(pa.table({"a": [[1.0], [2.0, 3.0]]}), folder / "d.parquet")
    return folder / "d.parquet", {}, r"Column 'a' of .*d.parquet holds lists of variable size"


@case
def parquet_no_rows(folder):
    pa, pq = _arrow()
    pq.write_table(pa.table({"a": pa.array([], pa.float64())}), folder / "d.parquet")
    return folder / "d.parquet", {}, r"d.parquet has no rows"


@case
def parquet_wrong_magic(folder):
    _arrow()
    (folder / "d.parquet").write_bytes(b"not a parquet file at all")
    return folder / "d.parquet", {}, r"d.parquet is damaged or truncated"


@case
def parquet_truncated(folder):
    pa, pq = _arrow()
    pq.write_table(pa.table({"a": np.arange(1000.0)}), folder / "d.parquet")
    data = (folder / "d.parquet").read_bytes()
    (folder / "d.parquet").write_bytes(data[: len(data) // 2])
    return folder / "d.parquet", {}, r"d.parquet is damaged or truncated"


@case
def parquet_encrypted_column(folder):
    pa, _ = _arrow()
    table = pa.table({"a": X[:, 0], "b": X[:, 1]})
    write_encrypted(table, folder / "d.parquet", ["b"], plain_footer=True)
    return folder / "d.parquet", {}, r"d.parquet has encrypted columns, or is encrypted as a whole: leave these"


@case
def parquet_encrypted(folder):
    pa, _ = _arrow()
    write_encrypted(pa.table({"a": X[:, 0]}), folder / "d.parquet", ["a"], plain_footer=False)
    return (
        folder / "d.parquet",
        {},
        r"d.parquet has encrypted columns, or is encrypted .* write a copy without encryption",
    )


@case
def arrow_truncated(folder):
    pa, _ = _arrow()
    table = pa.table({"a": np.arange(1000.0)})
    with pa.ipc.new_file(folder / "d.arrow", table.schema) as file:
        file.write_table(table)
    data = (folder / "d.arrow").read_bytes()
    (folder / "d.arrow").write_bytes(data[: len(data) // 2])
    return folder / "d.arrow", {}, r"d.arrow is damaged or truncated"


@case
def arrow_stream_truncated(folder):
    pa, _ = _arrow()
    table = pa.table({"a": np.arange(1000.0)})
    with pa.ipc.new_stream(folder / "d.arrows", table.schema) as file:
        file.write_table(table)
    data = (folder / "d.arrows").read_bytes()
    (folder / "d.arrows").write_bytes(data[: len(data) // 2])
    return folder / "d.arrows", {}, r"d.arrows is damaged or truncated"


@case
def arrow_twins(folder):
    pa, _ = _arrow()
    table = pa.table([pa.array([1.0]), pa.array([2.0])], names=["a", "a"])
    with pa.ipc.new_file(folder / "d.arrow", table.schema) as file:
        file.write_table(table)
    return folder / "d.arrow", {}, r"d.arrow has several columns named 'a'"


@case
def arrow_text_out_of_bounds(folder):
    pa, _ = _arrow()
    # The second begins far outside, and only the ends of all are looked at when it is made.
    places = pa.py_buffer(np.array([0, 2**30, 2], np.int32).tobytes())
    text = pa.Array.from_buffers(pa.string(), 2, [None, places, pa.py_buffer(b"ab")])
    table = pa.table({"a": [1.0, 2.0], "y": text})
    with pa.ipc.new_file(folder / "d.arrow", table.schema) as file:
        file.write_table(table)
    return folder / "d.arrow", {"target": "y"}, r"d.arrow is damaged or truncated: .*offset"


@case
def hdf5_which(folder):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(folder / "d.h5", "w") as file:
        file["X"], file["group/Z"] = X, X
    return folder / "d.h5", {}, r"Say which dataset of .*d.h5: it has X, group/Z"


@case
def hdf5_numbers_of_another_file(folder):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    (folder / "other").write_bytes(X.tobytes())
    with h5py.File(folder / "d.h5", "w") as file:
        file.create_dataset("X", X.shape, X.dtype, external=[(str(folder / "other"), 0, X.nbytes)])
    return folder / "d.h5", {}, r"d.h5:X has its values in other files, which are not read"


@case
def hdf5_virtual(folder):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(folder / "other.h5", "w") as file:
        file["X"] = X
    layout = h5py.VirtualLayout(X.shape, X.dtype)
    layout[:] = h5py.VirtualSource(folder / "other.h5", "X", X.shape)
    with h5py.File(folder / "d.h5", "w") as file:
        file.create_virtual_dataset("X", layout)
    return folder / "d.h5", {}, r"d.h5:X has its values in other files, which are not read"


@case
def hdf5_link_to_another_file(folder):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(folder / "other.h5", "w") as file:
        file["X"] = X
    with h5py.File(folder / "d.h5", "w") as file:
        file["link"] = h5py.ExternalLink(str(folder / "other.h5"), "/X")
    return folder / "d.h5", {"key": "link"}, r"d.h5:link has its values in other files, which are not read"


@case
def hdf5_no_such(folder):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(folder / "d.h5", "w") as file:
        file["X"] = X
    return f"{folder / 'd.h5'}:Y", {}, r"There is no dataset 'Y' in .*d.h5: it has X"


@case
def hdf5_not(folder):
    pytest.importorskip("h5py", reason="needs h5py")
    return _text(folder / "d.h5", "something else"), {}, r"d.h5 is not an HDF5 file, or damaged"


@case
def hdf5_text(folder):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(folder / "d.h5", "w") as file:
        file["X"] = np.array([["a", "b"]], dtype=object)
    return folder / "d.h5", {}, r"d.h5:X holds values of type .*, not numbers"


@case
def hdf5_nan(folder):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(folder / "d.h5", "w") as file:
        file.create_dataset("X", data=_with(np.nan), chunks=(1, 1))
    return folder / "d.h5", {}, r"d.h5:X, row 2, column 1, there is NaN"


@case
def hdf5_truncated(folder):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(folder / "d.h5", "w") as file:
        file["X"] = np.zeros((100, 100))
    os.truncate(folder / "d.h5", 10_000)
    return folder / "d.h5", {}, r"d.h5 is not an HDF5 file, or damaged: .*truncated"


@case
def hdf5_damaged_group(folder):
    h5py = pytest.importorskip("h5py", reason="needs h5py")
    with h5py.File(folder / "d.h5", "w") as file:
        file["X"] = X
    data = (folder / "d.h5").read_bytes()
    (folder / "d.h5").write_bytes(data.replace(b"SNOD", b"none"))
    return folder / "d.h5", {}, r"d.h5 is damaged or truncated: .*signature"


@case
def zarr_not(folder):
    pytest.importorskip("zarr", reason="needs zarr")
    (folder / "d.zarr").mkdir()
    return folder / "d.zarr", {}, r"d.zarr is not a Zarr store, or damaged"


@case
def zarr_which(folder):
    zarr = pytest.importorskip("zarr", reason="needs zarr")
    group = zarr.open_group(str(folder / "d.zarr"), mode="w")
    for name in ("X", "Z"):
        group.create_array(name, shape=(2, 2), dtype=float)
    return folder / "d.zarr", {}, r"Say which array of .*d.zarr: it has X, Z"


@case
def zarr_damaged(folder):
    zarr = pytest.importorskip("zarr", reason="needs zarr")
    array = zarr.create_array(str(folder / "d.zarr"), shape=(4, 3), chunks=(4, 3), dtype=float)
    array[:] = X
    (folder / "d.zarr" / "c" / "0" / "0").write_bytes(b"nonsense")
    return folder / "d.zarr", {}, r"d.zarr is damaged"


@case
def zarr_damaged_array(folder):
    path = _zarr_group(folder)
    _change_json(path / "X" / "zarr.json", shape=["four", 3])
    return path, {"key": "X"}, r"d.zarr is damaged or truncated"


@case
def zarr_wide(folder):
    path = _zarr_group(folder)
    _change_json(path / "X" / "zarr.json", shape=[4, 2**40])
    return path, {"key": "X"}, r"A row of .*d.zarr:X \(1,099,511,627,776 columns\) does not fit in memory"


@case
def zarr_blosc_cut_off(folder):
    path = _zarr_group(folder, 2, np.random.default_rng(0).normal(size=(40, 3)))
    chunk = path / "X" / "0.0"
    os.truncate(chunk, chunk.stat().st_size // 2)
    return path, {"key": "X"}, r"d.zarr:X is damaged: 0.0 does not have the declared number of bytes"


def _zarr_group(folder, version=3, values=X):
    zarr = pytest.importorskip("zarr", minversion="3", reason="needs zarr 3")
    group = zarr.open_group(str(folder / "d.zarr"), mode="w", zarr_format=version)
    group.create_array("X", shape=values.shape, chunks=values.shape, dtype=values.dtype)[:] = values
    return folder / "d.zarr"


def _change_json(path, **entries):
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


@case
def folder_empty(folder):
    (folder / "parts").mkdir()
    (folder / "parts" / "_SUCCESS").touch()
    return folder / "parts", {}, r"There are no data files in .*parts"


@case
def folder_mixed(folder):
    np.save(folder / "part1.npy", X)
    _text(folder / "part2.csv", "1,2,3")
    return folder, {}, r"Files must have the same format, but .* has part1.npy and part2.csv"


@case
def folder_missing_column(folder):
    _text(folder / "part1.csv", "a,b", "1,2")
    _text(folder / "part2.csv", "a,c", "1,2")
    return folder, {}, r"part2.csv does not match .*part1.csv: it has no b"


@case
def folder_other_order(folder):
    _text(folder / "part1.csv", "a,b", "1,2")
    _text(folder / "part2.csv", "b,a", "1,2")
    return folder, {}, r"part2.csv does not match .*part1.csv: it has its columns in another order"


@case
def folder_fewer_columns(folder):
    np.save(folder / "part1.npy", X)
    np.save(folder / "part2.npy", X[:, :2])
    return folder, {}, r"part2.npy has 2 columns, but .*part1.npy has 3"


@case
def folder_other_type(folder):
    pa, pq = _arrow()
    pq.write_table(pa.table({"a": [1.0], "b": [1.0]}), folder / "part1.parquet")
    pq.write_table(pa.table({"a": [1.0], "b": ["x"]}), folder / "part2.parquet")
    return folder, {}, r"Column 'b' of .*part2.parquet holds text, not numbers"


@case
def folder_nan_in_a_later_part(folder):
    np.save(folder / "part2.npy", X)
    np.save(folder / "part10.npy", _with(np.nan))
    return folder, {}, r"part10.npy, row 2, column 1, there is NaN"


@case
def pattern_without_files(folder):
    return str(folder / "*.csv"), {}, r"There are no data files in .*\*.csv"


@case
def no_file(folder):
    return folder / "d.csv", {}, r"There is no file .*d.csv"


@case
def device(_):
    return "/dev/zero", {"format": "csv"}, r"/dev/zero is a device"


@case
def unknown_format(folder):
    return _text(folder / "d.xyz", "1,2"), {}, r"format of .*d.xyz is not known: pass format=, one of arrow, csv"


@case
def part_of_a_table(folder):
    return _text(folder / "d.csv", "1,2"), {"key": "X"}, r"d.csv holds a single table, which has no part named 'X'"


@case
def blocks_of_different_widths(_):
    return [X, X[:, :2]], {}, r"Block 1 has 2 columns, but the first one has 3"


@case
def blocks_of_text(_):
    return [X, X.astype(str)], {}, r"Block 1 holds values of type <U32, not numbers"


@case
def no_blocks(_):
    return iter([]), {}, r"The iterable has no blocks"


@case
def frame_with_text(_):
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    return pandas.DataFrame({"a": [1.0], "b": ["x"]}), {}, r"Column 'b' of the frame holds text, not numbers"


@case
def frame_with_several_of_text(_):
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    frame = pandas.DataFrame({"a": [1.0], "z": ["x"], "b": ["x"]})
    return frame, {}, r"2 columns of the frame do not hold numbers, 'z' \(text\), 'b' \(text\): .* exclude=\['z', 'b'\]"


@case
def frame_with_missing_boolean(_):
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    column = pandas.array([True, False, None, True], dtype="boolean")
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": column})
    return frame, {"batch_size": 2}, r"the frame, row 2, column 'b', there is a missing value: drop or"


@case
def frame_with_missing(_):
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    return pandas.DataFrame({"a": [1.0, 2.0], "b": [1.0, None]}), {}, r"the frame, row 1, column 'b', there is NaN"
