"""Damaged and unsuitable files are refused with one plain sentence."""

import os
import sys

import numpy as np
import pytest

from plstream import IncrementalPLS, open_source
from plstream._core.errors import import_optional

from .hostile import CASES, X


@pytest.mark.parametrize("name", CASES)
def test_message(name, tmp_path):
    data, options, message = CASES[name](tmp_path)
    with pytest.raises((ValueError, OSError), match=message) as caught:
        list(open_source(data, **options).blocks())
    text = str(caught.value)
    assert text.endswith(".")
    assert text.isprintable()


@pytest.mark.parametrize("name", ["npy_nan", "csv_nan", "ndjson_nan", "parquet_nan_in_second_group", "hdf5_nan"])
@pytest.mark.parametrize("solver", ["multipass", "gram", "sketch"])
def test_fit_says_where(name, solver, tmp_path):
    data, _, message = CASES[name](tmp_path)
    model = IncrementalPLS(1, solver=solver)
    with pytest.raises(ValueError, match=message):
        model.fit(open_source(data, target=0 if name == "npy_nan" else -1))
    assert not hasattr(model, "n_features_in_")


def test_fewer_rows_than_a_file_says_it_has(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": X[:, 0]}), tmp_path / "d.parquet")
    source = open_source(tmp_path / "d.parquet")
    assert [len(block) for block, _ in source.blocks(9)] == []
    for n_rows in (3, 5):
        source._reader.n_rows = n_rows
        with pytest.raises(ValueError, match=rf"d.parquet is damaged: it declares {n_rows} rows, but has 4\."):
            list(source.blocks())


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path):
    np.save(tmp_path / "X.npy", X)
    (tmp_path / "X.npy").chmod(0)
    with pytest.raises(PermissionError, match="no permission to read"):
        open_source(tmp_path / "X.npy")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "xls"}, "format='xls' is not one of"),
        ({"batch_size": 0}, "batch_size=0 must be an integer"),
        ({"memory": 1.5}, "memory=1.5 must be an integer"),
        ({"delimiter": ",,"}, "delimiter=',,' must be one character"),
        ({"target": []}, "target is an empty list"),
        ({"columns": []}, "No columns of the array are left"),
    ],
)
def test_options(options, message):
    with pytest.raises(ValueError, match=message):
        open_source(X, **options)


def test_kinds_of_data():
    with pytest.raises(TypeError, match=r"not by 1.5"):
        open_source(X, columns=[1.5])
    with pytest.raises(TypeError, match="not int"):
        open_source(3)
    with pytest.raises(TypeError, match="Block 0 is neither a two-dimensional array"):
        open_source(iter([[1, 2]]))
    with pytest.raises(ValueError, match="Pass format= for the stream"):
        open_source(sys.stdin)


def test_missing_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"Reading d.h5 requires the package h5py: pip install 'plstream\[io\]'"):
        import_optional("h5py", "Reading d.h5")
