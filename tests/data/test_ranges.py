"""Ranges of rows of a source: the same rows, blocks and models where the files are reopened."""

import os
import pickle

import numpy as np
import pytest

from plstream import IncrementalPLS, open_source
from plstream.data import DataError

from .formats import FORMATS, opened

rng = np.random.default_rng(3)
X = rng.normal(size=(203, 4))
Y = X @ [1.0, 2.0, 3.0, 4.0] + rng.normal(size=203)
LABELS = np.array(["low", "high"])[(Y > 1).astype(int)]


def rows_of(source, start=0):
    blocks = list(source.blocks(start))
    return np.concatenate([X for X, _ in blocks]), np.concatenate([y for _, y in blocks])


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("start", "stop"), [(0, 203), (0, 40), (40, 80), (13, 14), (39, 121), (200, 900)])
def test_rows(name, start, stop, tmp_path):
    source = opened(name, tmp_path, X, LABELS, batch_size=40)
    part = source.between(start, stop)
    found, labels = rows_of(part)
    np.testing.assert_array_equal(found, X[start:stop])
    np.testing.assert_array_equal(labels, LABELS[start:stop])
    assert part.n_rows == part.count() == len(found)
    assert part.first_row == start
    assert set(part.labels()) == set(LABELS[start:stop])
    assert all(len(block) <= 40 for block, _ in part.blocks())


@pytest.mark.parametrize("name", FORMATS)
def test_opened_elsewhere(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = opened(name, tmp_path, X, Y, batch_size=40)
    part = source.between(40, 130)
    if source.reopen is None:
        with pytest.raises(DataError, match="is not a file"):
            pickle.dumps(part)
        return
    packed = pickle.dumps(part)
    assert len(packed) < 2000
    (tmp_path / "elsewhere").mkdir()
    os.chdir(tmp_path / "elsewhere")
    again = pickle.loads(packed)  # noqa: S301
    for mine, theirs in zip(rows_of(again), rows_of(part), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert again.fingerprint() == part.fingerprint() != source.fingerprint()
    np.testing.assert_array_equal(again.label_counts()[1], np.unique(Y[40:130], return_counts=True)[1])


def test_elsewhere_takes_no_more_memory(tmp_path):
    source = opened("csv", tmp_path, X, Y)
    source.limit(1 << 16)
    again = pickle.loads(pickle.dumps(source.between(0, 200)))  # noqa: S301
    assert again.memory == 1 << 16
    assert again.block_rows == source.block_rows == (1 << 13) // 40


@pytest.mark.parametrize("name", ["npy", "csv"])
def test_rows_in_memory_are_read_again_elsewhere(name, tmp_path):
    source = opened(name, tmp_path, X, LABELS, batch_size=40)
    part = source.between(40, 130)
    held = part.part((X[40:130], LABELS[40:130]), part.first_row)
    again = pickle.loads(pickle.dumps(held))  # noqa: S301
    for one in (held, again):
        assert one.count() == 90
        np.testing.assert_array_equal(rows_of(one)[0], X[40:130])
        labels, counts = one.label_counts()
        np.testing.assert_array_equal(labels, ["high", "low"])
        np.testing.assert_array_equal(counts, np.unique(LABELS[40:130], return_counts=True)[1])


def test_relative_paths_and_names_that_are_also_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("X.npy", X)
    np.save("y.npy", Y)
    (tmp_path / "b").touch()
    (tmp_path / "data.csv").write_text("a,b\n1,2\n3,5\n")
    parts = [open_source("X.npy", "y.npy").between(0, 5), open_source("data.csv", "b").between(0, 2)]
    expected, packed = [rows_of(part) for part in parts], pickle.dumps(parts)
    monkeypatch.chdir("/")
    for again, (rows, y) in zip(pickle.loads(packed), expected, strict=True):  # noqa: S301
        np.testing.assert_array_equal(rows_of(again)[0], rows)
        np.testing.assert_array_equal(rows_of(again)[1], y)


@pytest.mark.parametrize("solver", ["multipass", "gram", "sketch"])
def test_models(tmp_path, solver):
    source = opened("npy", tmp_path, X, Y, batch_size=40)
    part = source.between(33, 177)
    expected = IncrementalPLS(2, solver=solver).fit(X[33:177], Y[33:177])
    np.testing.assert_allclose(IncrementalPLS(2, solver=solver).fit(part).coef_, expected.coef_, rtol=1e-9)


def test_parts_of_parts(tmp_path):
    part = opened("npy", tmp_path, X, Y, batch_size=40).between(30, 100).between(20, 50)
    np.testing.assert_array_equal(rows_of(part)[0], X[50:80])
    np.testing.assert_array_equal(rows_of(part, 5)[0], X[55:80])


def test_bad_calls(tmp_path):
    source = opened("npy", tmp_path, X, Y)
    for start, stop in ((5, 5), (-1, 3), (203, 300)):
        with pytest.raises(ValueError, match="There are no rows"):
            source.between(start, stop)
    with pytest.raises(DataError, match="only once"):
        open_source(iter([(X, Y)])).between(0, 2)


def test_a_file_that_has_changed(tmp_path):
    part = opened("npy", tmp_path, X, Y).between(0, 10)
    packed = pickle.dumps(part)
    np.save(tmp_path / "X.npy", np.vstack([X, X]))
    np.save(tmp_path / "y.npy", np.hstack([Y, Y]))
    with pytest.raises(DataError, match="not the file that was first opened"):
        pickle.loads(packed)  # noqa: S301
