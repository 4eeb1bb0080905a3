"""Row groups that are too large to be read at once."""

import numpy as np
import pytest

from plstream import open_source
from plstream.data import DataError
from plstream.data.arrow import ArrowReader
from plstream.data.reading import GrowingArray, NoRoomError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

N_ROWS, N_COLUMNS = 700, 9


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    # Few values, so that compression makes the file smaller than the numbers.
    return rng.integers(0, 5, size=(N_ROWS, N_COLUMNS)).astype(np.float32), rng.normal(size=N_ROWS)


def table_of(X, y, **more):
    return pa.table({f"x{j}": column for j, column in enumerate(X.T)} | {"y": y} | more)


def write(path, table, group_rows):
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=group_rows)
        return
    with pa.ipc.new_file(path, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table, max_chunksize=group_rows)


@pytest.fixture
def turns(monkeypatch):
    """Let groups be too large, and count those that go through a temporary file."""
    monkeypatch.setattr(ArrowReader, "_largest_columns_bytes", 500)
    numbers, turn = [], ArrowReader._transposed

    def counting(self, turned, number, *arguments):
        numbers.append(number)
        return turn(self, turned, number, *arguments)

    monkeypatch.setattr(ArrowReader, "_transposed", counting)
    return numbers


@pytest.mark.parametrize("name", ["data.parquet", "data.arrow"])
@pytest.mark.parametrize("group_rows", [300, N_ROWS])
@pytest.mark.parametrize("start", [0, 1, 299, 300, 301, 650])
def test_large_groups_give_the_same_rows(tmp_path, rows, turns, name, group_rows, start):
    X, y = rows
    write(tmp_path / name, table_of(X, y), group_rows)
    columns = ["x7", "x0", "x1", "x2", "x3", "x8", "x4"]
    source = open_source(tmp_path / name, target="y", columns=columns, batch_size=128)
    found = [*source.blocks(start)]
    np.testing.assert_array_equal(np.concatenate([block for block, _ in found]), X[start:, [7, 0, 1, 2, 3, 8, 4]])
    np.testing.assert_array_equal(np.concatenate([target for _, target in found]), y[start:])
    assert turns == [*range(start // group_rows, -(-N_ROWS // group_rows))]


def test_mixed_types_text_and_no_target(tmp_path, rows, turns):
    X, y = rows
    labels = np.where(y > 0, "yes", "no")
    table = table_of(X, y, whole=np.arange(N_ROWS), label=labels)
    write(tmp_path / "data.parquet", table, N_ROWS)
    source = open_source(tmp_path / "data.parquet", target="label")
    blocks = [*source.blocks()]
    expected = np.column_stack([X, y, np.arange(N_ROWS)])
    np.testing.assert_array_equal(np.concatenate([block for block, _ in blocks]), expected)
    np.testing.assert_array_equal(np.concatenate([target for _, target in blocks]), labels)
    source = open_source(tmp_path / "data.parquet", exclude=["label"])
    np.testing.assert_array_equal(np.concatenate([block for block, _ in source.blocks()]), expected)
    assert turns == [0, 0]


def test_a_missing_value_is_found_where_it_is(tmp_path, rows, turns):
    X, y = rows
    table = table_of(X, y, gap=[None if row == 555 else 1.0 for row in range(N_ROWS)])
    write(tmp_path / "data.parquet", table, N_ROWS)
    with pytest.raises(DataError, match=r"row 555, column 'gap', there is a missing value"):
        [*open_source(tmp_path / "data.parquet", target="y").blocks(17)]
    assert turns


def test_without_room_they_are_read_as_others(tmp_path, rows, turns, monkeypatch):
    def full(_array, _rows):
        raise NoRoomError("full")

    X, y = rows
    write(tmp_path / "data.parquet", table_of(X, y), 300)
    monkeypatch.setattr(GrowingArray, "append", full)
    found = [block for block, _ in open_source(tmp_path / "data.parquet", target="y").blocks()]
    np.testing.assert_array_equal(np.concatenate(found), X)
    assert turns == [0, 1, 2]


def test_uncompressed_arrays_are_mapped(tmp_path, rows, turns):
    X, y = rows
    table = table_of(X, y)
    with pa.ipc.new_file(tmp_path / "data.arrow", table.schema) as writer:
        writer.write_table(table)
    found = [block for block, _ in open_source(tmp_path / "data.arrow", target="y").blocks()]
    np.testing.assert_array_equal(np.concatenate(found), X)
    assert not turns
