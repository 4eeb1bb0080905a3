"""Files that change while they are read raise an error, and never give a model of two versions."""

import contextlib
import os
import shutil
from itertools import count

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from plstream import IncrementalPLS, IncrementalPLSClassifier, open_source
from plstream.data import DataError
from plstream.rows import sources
from plstream.solvers import MultipassGram, multipass

from .formats import opened

N_ROWS = 1000
rng = np.random.default_rng(5)
X = rng.normal(size=(N_ROWS, 4))
Y = X @ [3.0, 2.0, 1.0, 0.0] + rng.normal(size=N_ROWS)
# As many bytes in every format, and another model.
OTHER = X[:, ::-1].copy()
MAPPED = ["npy", "npz", "hdf5", "arrow"]
READ_AGAIN = [*MAPPED, "npz compressed", "csv", "csv parts", "ndjson", "parquet", "arrow stream", "feather"]
READ_AGAIN += ["hdf5 compressed", "zarr 2", "zarr 3", "zarr zip"]


def files_in(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def age(folder):
    """Let files be older than any change: clocks of file systems go in steps."""
    for path in files_in(folder):
        os.utime(path, ns=(10**18, 10**18))


def overwrite(folder, other):
    """Write other numbers to the same files, which stay as large."""
    for path in files_in(folder):
        data = (other / path.relative_to(folder)).read_bytes()
        with path.open("r+b") as file:
            file.write(data)
            file.truncate()


def replace(folder, other):
    """Put other files in their place, with the same times."""
    age(other)
    for path in files_in(folder):
        (other / path.relative_to(folder)).replace(path)


def cut(folder, _):
    for path in files_in(folder):
        os.truncate(path, 10)


def remove(folder, _):
    shutil.rmtree(folder)


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Return a function that writes data in a format, and returns its source, its folder and a folder of other data."""
    for module in ("blocks", "sources"):
        # Otherwise small data would be read once.
        monkeypatch.setattr(f"plstream.rows.{module}.SMALL_BYTES", 0)

    def write(name):
        folder, other = tmp_path / "data", tmp_path / "other"
        for place, values in ((other, OTHER), (folder, X)):
            place.mkdir()
            source = opened(name, place, values, Y, batch_size=100)
            age(place)
        return source.reopen(), folder, other

    return write


def change_after(monkeypatch, n_reads, change, *folders):
    """Let files change before the read after so many of them."""
    apply = MultipassGram.apply

    def changed_apply(gram, v):
        if gram.n_reads == n_reads:
            change(*folders)
        return apply(gram, v)

    monkeypatch.setattr(MultipassGram, "apply", changed_apply)


@pytest.mark.parametrize(
    ("name", "change"),
    [(name, overwrite) for name in READ_AGAIN]
    + [(name, change) for name in ("npy", "arrow", "hdf5 compressed", "zarr 3") for change in (replace, cut, remove)],
)
def test_between_reads(name, change, written, monkeypatch):
    source, folder, other = written(name)
    monkeypatch.setattr(sources, "_copied", lambda *_: None)
    change_after(monkeypatch, 2, change, folder, other)
    model = IncrementalPLS(2)
    with pytest.raises(DataError, match=rf"{folder}.* (has changed since it|was removed or renamed after it) was open"):
        model.fit(source)
    assert not hasattr(model, "coef_")


def test_during_the_last_read(written, monkeypatch):
    source, folder, other = written("npy")
    calls, act = count(1), multipass._block_action

    def acted(*arguments, **options):
        if next(calls) == N_ROWS // 100:
            overwrite(folder, other)
        return act(*arguments, **options)

    monkeypatch.setattr(multipass, "_block_action", acted)
    with pytest.raises(DataError, match="has changed since it was opened"):
        IncrementalPLS(1).fit(source)


def test_labels_of_other_rows(tmp_path):
    # They are found by a read of their own.
    source = opened("npy", tmp_path, X, np.arange(N_ROWS) % 3)
    label_counts = source.label_counts

    def counted(**options):
        found = label_counts(**options)
        cut(tmp_path, None)
        return found

    source.label_counts = counted
    with pytest.raises(DataError, match="has changed since it was opened"):
        IncrementalPLSClassifier(1).fit(source)


@pytest.mark.parametrize("name", ["csv", "parquet", "hdf5 compressed", "feather"])
def test_a_temporary_copy_does_not_change(name, written, monkeypatch):
    source, folder, _ = written(name)
    expected = IncrementalPLS(2).fit(source).coef_
    change_after(monkeypatch, 2, remove, folder, None)
    np.testing.assert_array_equal(IncrementalPLS(2).fit(source).coef_, expected)


@pytest.mark.parametrize("name", [*MAPPED, "hdf5 compressed"])
def test_truncation_between_blocks(name, written):
    source, folder, _ = written(name)
    # Without the thread that reads the next block, because truncation during a read would end the process.
    blocks = source._read(0)
    next(blocks)
    cut(folder, None)
    with pytest.raises(DataError, match="has changed since it was opened"):
        list(blocks)


def test_truncation_between_blocks_of_a_fit(written):
    source, folder, _ = written("npy")
    # With one thread no block is under way while another one is used.
    with threadpool_limits(1), contextlib.ExitStack() as stack:
        rows = stack.enter_context(sources.reread(source, np.asarray, None))
        parts = rows.parts(lambda block: block, 1.0, "read")
        next(parts)
        cut(folder, None)
        with pytest.raises(DataError, match="has changed since it was opened"):
            next(parts)
        stack.pop_all()


def test_files_next_to_the_array_may_change(tmp_path):
    zarr = pytest.importorskip("zarr", reason="needs zarr")
    group = zarr.open_group(str(tmp_path / "d.zarr"), mode="w")
    group.create_array("X", shape=X.shape, dtype=X.dtype, chunks=(100, 4))[:] = X
    source = open_source(f"{tmp_path / 'd.zarr'}:X")
    group.create_array("scores", shape=X.shape, dtype=X.dtype)[:] = X
    np.testing.assert_array_equal(np.concatenate([rows for rows, _ in source.blocks()]), X)
    (tmp_path / "d.zarr" / "X" / "c" / "7" / "0").unlink()
    with pytest.raises(DataError, match=r"d.zarr/X has changed since it was opened"):
        list(source.blocks())
