"""Sparse matrices that ``scipy.sparse.save_npz`` has written, read some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np

from .._core.errors import DataError, beginning, usable_dtype, wrap_library_errors
from .._core.remote import AnyPath
from .._core.types import Array
from .array_reader import ArrayReader
from .numpy_files import archive_of, open_member, read_header

_PARTS = ("indptr", "indices", "data")
# Entries that are put in their place at a time.
_ENTRIES = 1 << 18
_LONGEST_NAME = 64


def open_sparse(path: AnyPath, where: str) -> ArrayReader:
    """Open a matrix of compressed sparse rows; its rows are handed out as dense ones."""
    with archive_of(path) as archive:
        names = {name.removesuffix(".npy") for name in archive.namelist()}
        kind = _small(archive, "format", where)
        shape = _small(archive, "shape", where)
    if kind.size != 1 or kind.dtype.kind not in "SU":
        raise DataError(f"{where} is damaged: its format is not a name.")
    name = kind.item().decode(errors="replace") if kind.dtype.kind == "S" else str(kind.item())
    if name != "csr" or not {*_PARTS} <= names:
        raise DataError(
            f"{where} is a sparse matrix of format {beginning(name)!r}, whose rows cannot be read one after another: "
            "save matrix.tocsr()."
        )
    parts = [open_member(path, part, where) for part in _PARTS]
    starts, indices, data = parts
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or (shape < 0).any():
        raise DataError(f"{where} is damaged: its shape is not that of a matrix.")
    if starts.n_rows != int(shape[0]) + 1 or indices.n_rows != data.n_rows or not all(part.is_vector for part in parts):
        raise DataError(f"{where} is damaged: its parts have different lengths.")
    if any(part.dtype_of(np.empty(0, np.intp), text=True).kind not in "iu" for part in (starts, indices)):
        raise DataError(f"{where} is damaged: its indices are not integers.")
    dtype = usable_dtype(data.dtype_of(np.empty(0, np.intp)), where)
    rows = partial(_rows, parts, int(shape[1]), dtype, where)
    return ArrayReader(where, shape.tolist(), dtype, rows, path=path)


def _small(archive: Any, name: str, where: str) -> Array:
    """Return an array of a few bytes."""
    with wrap_library_errors(where), archive.open(f"{name}.npy") as file:
        header = read_header(file, where)
        n_bytes = int(np.prod(header.shape, dtype=object)) * header.dtype.itemsize
        if header.dtype.kind not in "iuSU" or not 0 < n_bytes <= _LONGEST_NAME:
            raise DataError(f"{where} is damaged: {name} is not what it should be.")
        return np.frombuffer(file.read(n_bytes), header.dtype).reshape(header.shape)


@contextmanager
def _rows(parts: list[ArrayReader], n_columns: int, dtype: np.dtype[Any], where: str) -> Iterator[_SparseRows]:
    with ExitStack() as files:
        yield _SparseRows(
            [files.enter_context(part.opened()) for part in parts], parts[1].n_rows, n_columns, dtype, where
        )


class _SparseRows:
    """Slices of the matrix, which must come in their order, as dense rows."""

    def __init__(
        self, parts: list[Any], n_entries: int | None, n_columns: int, dtype: np.dtype[Any], where: str
    ) -> None:
        self._starts, self._indices, self._data = parts
        self._n_entries, self._n_columns, self._dtype, self._where = n_entries, n_columns, dtype, where
        # Where the entries of the next row begin, once that has been read.
        self._next: Array = np.empty(0, np.int64)

    def __getitem__(self, rows: slice) -> Array:
        first = rows.start + len(self._next)
        starts = np.concatenate([self._next, self._read(self._starts, first, rows.stop + 1)]).astype(np.int64)
        self._next = starts[-1:]
        if (np.diff(starts) < 0).any() or starts[0] < 0 or starts[-1] > (self._n_entries or 0):
            raise DataError(f"{self._where} is damaged: its rows do not follow one another.")
        dense = np.zeros((rows.stop - rows.start, self._n_columns), self._dtype)
        for begin in range(int(starts[0]), int(starts[-1]), _ENTRIES):
            end = min(begin + _ENTRIES, int(starts[-1]))
            columns, values = self._read(self._indices, begin, end), self._read(self._data, begin, end)
            if columns.min() < 0 or columns.max() >= self._n_columns:
                raise DataError(f"{self._where} is damaged: it has entries outside of its columns.")
            row = np.searchsorted(starts, np.arange(begin, end), side="right") - 1
            # Entries of one place are added, as SciPy does.
            np.add.at(dense, (row, columns), values.astype(self._dtype, copy=False))
        return dense

    @staticmethod
    def _read(part: Any, start: int, stop: int) -> Array:
        return np.asarray(part[start:stop]).reshape(-1)
