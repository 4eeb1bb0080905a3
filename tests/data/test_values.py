"""Values of all formats are preserved, and missing values are detected."""

import numpy as np
import pytest

from plstream import open_source
from plstream.data import DataError
from plstream.data.columns import find_columns


def rows_and_labels(source):
    X, y = zip(*source.blocks(), strict=True)
    return np.concatenate(X), None if y[0] is None else np.concatenate(y)


@pytest.mark.parametrize("kind", ["Int64", "category"])
def test_gaps_in_columns_of_integers(kind):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": pd.array([1, 2, None, 4], dtype="Int64").astype(kind), "y": [1.0, 2, 3, 4]})
    with pytest.raises(DataError, match="missing value"):
        rows_and_labels(open_source(frame, "y"))


def test_gaps_in_a_polars_frame():
    pl = pytest.importorskip("polars")
    with pytest.raises(DataError, match="row 2, column 'a', there is a missing value"):
        rows_and_labels(open_source(pl.DataFrame({"a": [1, 2, None, 4], "y": [1.0, 2, 3, 4]}), "y"))


@pytest.mark.parametrize("kind", ["Categorical", "Enum"])
def test_categories_of_polars(kind):
    pl = pytest.importorskip("polars")
    dtype = pl.Categorical if kind == "Categorical" else pl.Enum(["u", "v", "w"])
    frame = pl.DataFrame({"a": [1.0, 2, 3, 4], "k": pl.Series(["u", "v", None, "v"], dtype=dtype), "y": [1.0, 2, 3, 4]})
    source = open_source(frame, "y", categorical=["k"])
    assert source.feature_names == ["a", "k=u", "k=v"]
    assert rows_and_labels(source)[0].tolist() == [[1, 1, 0], [2, 0, 1], [3, 0, 0], [4, 0, 1]]
    assert rows_and_labels(open_source(frame.drop_nulls(), "k"))[1].tolist() == ["u", "v", "v"]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("extension", ["parquet", "arrow", None])
def test_gaps_in_lists(tmp_path, dtype, extension):
    """An entry may be missing, and so may a whole list, whose place must stay."""
    pa, feather, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.feather", "pyarrow.parquet"))
    lists = [[1, 2], [3, None], None, [5, 6]]
    table = data = pa.table({"x": pa.array(lists, pa.list_(pa.type_for_alias(dtype), 2)), "y": [1.0, 2, 3, 4]})
    if extension is not None:
        data = tmp_path / f"d.{extension}"
        (parquet.write_table if extension == "parquet" else feather.write_feather)(table, data)
    with pytest.raises(DataError, match=r"row [12], column [01], there is a missing value"):
        rows_and_labels(open_source(data, "y"))
    source = open_source(data, "y")
    source.allow_missing = True
    X, y = rows_and_labels(source)
    np.testing.assert_array_equal(X, [[1, 2], [3, np.nan], [np.nan, np.nan], [5, 6]])
    assert y.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_masked_entries_are_missing(dtype):
    X = np.ma.array(np.arange(8).reshape(4, 2), mask=False, dtype=dtype)
    y = np.ma.array([1.0, 2, 3, 5], mask=[False, False, False, True])
    X[1, 0] = np.ma.masked
    filled, target = np.where(X.mask, np.nan, X.data), np.array([1.0, 2, 3, np.nan])
    for source in (open_source(X, y), open_source([(X, y)])):
        source.allow_missing = True
        np.testing.assert_array_equal(rows_and_labels(source)[0], filled)
        np.testing.assert_array_equal(rows_and_labels(source)[1], target)
        source.allow_missing = False
        with pytest.raises(DataError, match="there is NaN"):
            rows_and_labels(source)
    with pytest.raises(ValueError, match="y of block 0 has masked entries that are not numbers"):
        open_source([(X, np.ma.array(list("abcd"), mask=[1, 0, 0, 0]))])


def test_columns_of_different_lengths():
    pytest.importorskip("pyarrow")
    with pytest.raises(DataError, match=r"The dict of columns cannot be read: .*length"):
        open_source({"a": [1.0, 2], "y": [1.0, 2, 3]}, "y")


def test_gaps_in_a_dictionary():
    pa = pytest.importorskip("pyarrow")
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["a", None]))
    with pytest.raises(DataError, match="row 1"):
        rows_and_labels(open_source(pa.table({"x": [1.0, 2, 3], "y": column}), "y"))


def test_blocks_of_wider_types_lose_nothing():
    blocks = [np.ones((2, 2), np.int8), np.full((2, 2), 300, np.int64)]
    assert rows_and_labels(open_source(blocks))[0].tolist() == [[1, 1], [1, 1], [300, 300], [300, 300]]
    blocks = [np.ones((1, 1), np.float32), np.full((1, 1), 0.1)]
    assert rows_and_labels(open_source(blocks))[0].tolist() == [[1.0], [0.1]]


def test_labels_of_bytes_are_text(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((3, 2)))
    np.save(tmp_path / "y.npy", np.array([b"hi", b"lo", b"hi"]))
    y = rows_and_labels(open_source(tmp_path / "X.npy", tmp_path / "y.npy"))[1]
    assert y.tolist() == ["hi", "lo", "hi"]
    np.save(tmp_path / "y.npy", np.array([b"\xff", b"lo", b"hi"]))
    with pytest.raises(DataError, match="not UTF-8 text"):
        rows_and_labels(open_source(tmp_path / "X.npy", tmp_path / "y.npy"))


def test_the_index_of_pandas_is_no_feature(tmp_path):
    pd, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": [1.0, 2, 3], "b": [4.0, 5, 6]})
    frame[frame.a > 1].to_parquet(tmp_path / "d.parquet")
    assert open_source(tmp_path / "d.parquet").feature_names == ["a", "b"]


def test_targets_count_in_the_size_of_blocks():
    X = np.ones((100, 2))
    few, many = (open_source(X, np.ones((100, q)), memory=1 << 16) for q in (1, 500))
    assert many.block_rows < few.block_rows
    assert many.bytes_under_way <= 1 << 16


@pytest.mark.parametrize("chunks", [(1000, 2), (1000, 40), (16, 40)])
def test_indivisible_reads_count_in_the_size_of_blocks(tmp_path, chunks):
    h5py = pytest.importorskip("h5py")
    rows = np.random.default_rng(0).normal(size=(4000, 40))
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file.create_dataset("X", data=rows, chunks=chunks, compression="gzip")
    memory = 1 << 21
    source = open_source(tmp_path / "d.h5", memory=memory)
    chunk_bytes, all_chunks_bytes = 8 * chunks[0] * chunks[1], 8 * chunks[0] * 40
    reading = min(memory // 4, max(memory // 8, all_chunks_bytes + 2 * chunk_bytes))
    assert 7 * source.block_rows * 320 <= memory - reading < 7 * (source.block_rows + 2) * 320
    np.testing.assert_array_equal(rows_and_labels(source)[0], rows)


def test_chunks_larger_than_memory_are_read_in_parts(tmp_path):
    h5py = pytest.importorskip("h5py")
    rows = np.random.default_rng(0).normal(size=(3000, 40))
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file.create_dataset("X", data=rows, chunks=(1000, 10), compression="gzip")
    reader = open_source(tmp_path / "d.h5")._reader
    reader.room = 1 << 18
    nothing = np.empty(0, np.intp)
    pieces = [X for X, _ in reader.pieces(np.arange(40), nothing, 0, 1000)]
    assert max(X.nbytes for X in pieces) <= 1 << 16
    np.testing.assert_array_equal(np.concatenate(pieces), rows)


def test_folders_within_folders_are_not_left_out(tmp_path):
    for part in ("a", "b"):
        (tmp_path / part).mkdir()
        np.save(tmp_path / part / "d.npy", np.ones((3, 2)))
    with pytest.raises(DataError, match=r"has folders in it.*\*\*"):
        open_source(tmp_path)
    assert open_source(str(tmp_path / "**" / "*.npy")).n_rows == 6


def test_links_lead_to_no_file_twice(tmp_path):
    folder, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    for place, value in ((folder / "10", 1.0), (folder / "2", 2.0), (elsewhere, 3.0)):
        place.mkdir(parents=True)
        np.save(place / "d.npy", np.full((3, 2), value))
    for link in (folder / "2" / "loop", folder / "10" / "loop", folder / "again"):
        link.symlink_to(folder)
    (folder / "3").symlink_to(elsewhere)
    (folder / "1").mkdir()
    (folder / "1" / "same.npy").symlink_to(folder / "10" / "d.npy")
    (folder / "2" / "also.npy").hardlink_to(folder / "10" / "d.npy")
    for pattern in ("**/*.npy", "**/**/*.npy", "**"):
        X, _ = rows_and_labels(open_source(str(folder / pattern)))
        # In the order of names, of several for one file the first.
        assert X[::3, 0].tolist() == [1.0, 2.0, 3.0]
    assert open_source(str(folder / "*" / "d.npy")).n_rows == 9


def test_target_only_columns_may_be_excluded(tmp_path):
    (tmp_path / "d.ndjson").write_text('{"x": [1, 2], "id": 7, "y": 0.5}\n{"x": [3, 4], "id": 8, "y": 1.5}\n')
    X, y = rows_and_labels(open_source(tmp_path / "d.ndjson", "y", exclude=["id"]))
    assert X.tolist() == [[1, 2], [3, 4]]
    assert y.tolist() == [0.5, 1.5]


def test_whole_chunks_are_read_once(tmp_path):
    h5py = pytest.importorskip("h5py")
    rows = np.arange(600.0).reshape(200, 3)
    with h5py.File(tmp_path / "d.h5", "w") as file:
        file.create_dataset("X", data=rows, chunks=(100, 3), compression="gzip")
        file["link"] = h5py.SoftLink("/X")
        file["nothing"] = h5py.Empty("f8")
    source = open_source(tmp_path / "d.h5", key="X", batch_size=7)
    assert [len(rows) for rows in source._reader.rows(0, 7)] == [100, 100]
    np.testing.assert_array_equal(rows_and_labels(source)[0], rows)
    np.testing.assert_array_equal(rows_and_labels(open_source(f"{tmp_path / 'd.h5'}:link"))[0], rows)
    with pytest.raises(DataError, match="no rows"):
        open_source(tmp_path / "d.h5", key="nothing")


def test_many_columns_are_found_by_name_at_once():
    """Looking through all names for each of them would take hours."""
    names = [f"wavelength {i}" for i in range(200_000)]
    np.testing.assert_array_equal(find_columns(names[::-1], names, len(names), "data"), np.arange(200_000)[::-1])
    assert find_columns("twice", ["once", "twice", "twice"], 3, "data") == [1]
