"""NumPy files: .npy, members of .npz, and sparse matrices written by ``scipy.sparse.save_npz``.

Arrays that are not compressed are memory-mapped. Headers are checked first: nothing is ever unpickled, and no more
memory is allocated than the file has bytes.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.lib import format as npy

from .._core.errors import DataError, beginning, usable_dtype, wrap_library_errors
from .._core.remote import AnyPath, RemotePath
from .._core.types import Array
from .array_reader import ArrayReader, ReadRows, choose_array, mapped_reader, require_shape
from .reader import NO_COLUMNS, OpenOptions, Reader

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_LOCAL_HEADER_BYTES = 30
# Bytes that are read at a time to skip rows.
_SKIPPED_BYTES = 1 << 18
# Arrays of a sparse matrix in CSR format.
_CSR_PARTS = ("indptr", "indices", "data")
# Entries of a sparse matrix that are processed at a time.
_ENTRIES = 1 << 18
_LONGEST_NAME = 64

OpenFile: TypeAlias = Callable[[], AbstractContextManager[IO[bytes]]]


class _Header(NamedTuple):
    """The header of an array."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    offset: int

    def require(self, where: str, size: int) -> None:
        """Raise DataError unless it describes an array of rows that fits in a file of this size."""
        usable_dtype(self.dtype, where, text=True)
        if any(type(size) is not int or size < 0 for size in self.shape):
            raise DataError(f"{where} is damaged: its shape is {beginning(str(self.shape))}.")
        require_shape(where, self.shape)
        if not self.dtype.itemsize:
            raise DataError(f"{where} holds strings of length zero.")
        declared = self.offset + math.prod(self.shape) * self.dtype.itemsize
        if declared > size:
            raise DataError(f"{where} is truncated: it should have {declared:,} bytes, but has {size:,}.")

    def require_rows(self, what: str) -> None:
        """Raise DataError unless rows are stored one after another."""
        if self.fortran_order and len(self.shape) == 2:
            raise DataError(
                f"{what} stored by columns, so that rows cannot be read one after another: save a copy made by "
                "numpy.ascontiguousarray."
            )


def _read_header(file: IO[bytes], where: str) -> _Header:
    """Read the header of an array; the file is then positioned at its values."""
    begin = file.tell()
    with wrap_library_errors(where, "is not a NumPy array"):
        # Version 3 differs only in the names of fields.
        read = _HEADERS.get(npy.read_magic(file), npy.read_array_header_2_0)
        shape, fortran_order, dtype = read(file)
    return _Header(shape, fortran_order, dtype, file.tell() - begin)


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Return the header of a .npy file, whose length does not depend on the number of rows."""
    header = io.BytesIO()
    descr = npy.dtype_to_descr(dtype)
    npy.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": shape})
    return header.getvalue()


def open_npy(path: AnyPath, where: str, _options: OpenOptions) -> Reader:
    """Open a .npy file."""
    return _open_array(path, where, 0, path.stat().st_size)


def open_npz(path: AnyPath, where: str, options: OpenOptions) -> Reader:
    """Open an array in a .npz file: the one named, or else the only one."""
    found, key = members(path), options.key
    if key is None and {"format", "shape", "data"} <= found.keys():
        return _open_sparse(path, where, found)
    key = choose_array(key, found, where)
    return _open_member(path, key, where, found[key])


def _open_member(path: AnyPath, key: str, where: str, info: zipfile.ZipInfo) -> ArrayReader:
    """Open an array in a .npz file."""
    if info.flag_bits & 1:
        raise DataError(f"{where}:{key} is encrypted: save it without a password.")
    if info.compress_type != zipfile.ZIP_STORED:
        open_file = partial(_member_file, path, key, f"{where}:{key}")
        with open_file() as file:
            header = _read_header(file, f"{where}:{key}")
        header.require(f"{where}:{key}", info.file_size)
        header.require_rows(f"{where}:{key} is compressed and")
        return _array_reader(path, open_file, header, header.offset, f"{where}:{key}")
    with wrap_library_errors(where), path.open("rb") as file:
        file.seek(info.header_offset)
        local = file.read(_LOCAL_HEADER_BYTES)
    if len(local) < _LOCAL_HEADER_BYTES or local[:4] != b"PK\x03\x04":
        raise DataError(f"{where} is damaged: it does not have {key} at its declared position.")
    names = int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
    offset = info.header_offset + _LOCAL_HEADER_BYTES + names
    if offset + info.file_size > path.stat().st_size:
        raise DataError(f"{where} is truncated.")
    return _open_array(path, f"{where}:{key}", offset, info.file_size)


def members(path: AnyPath) -> dict[str, zipfile.ZipInfo]:
    """Return the arrays in a .npz file by name."""
    with wrap_library_errors(str(path), "is not a .npz file, or damaged"), _archive(path) as archive:
        infos = archive.infolist()
    return {info.filename.removesuffix(".npy"): info for info in infos if info.filename.endswith(".npy")}


@contextmanager
def _archive(path: AnyPath) -> Iterator[zipfile.ZipFile]:
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        yield archive


@contextmanager
def _member_file(path: AnyPath, key: str, where: str) -> Iterator[IO[bytes]]:
    with ExitStack() as files:
        with wrap_library_errors(where):
            archive = files.enter_context(_archive(path))
            file = files.enter_context(archive.open(f"{key}.npy"))
        yield file


def _open_array(path: AnyPath, where: str, offset: int, size: int) -> ArrayReader:
    """Map an array whose header is at an offset of a file."""
    with path.open("rb") as file:
        file.seek(offset)
        header = _read_header(file, where)
    header.require(where, size)
    begin = offset + header.offset
    if isinstance(path, RemotePath):
        header.require_rows(f"{where} is")
        return _array_reader(path, path.open, header, begin, where)
    return mapped_reader(path, header.dtype, header.shape, begin, where, fortran_order=header.fortran_order)


def _array_reader(path: AnyPath, open_file: OpenFile, header: _Header, begin: int, where: str) -> ArrayReader:
    """Return a reader of an array whose values begin at an offset of a file."""
    return ArrayReader(where, header.shape, header.dtype, partial(_rows, open_file, header, begin, where), path=path)


@contextmanager
def _rows(open_file: OpenFile, header: _Header, begin: int, where: str) -> Iterator[ReadRows]:
    """Open an array; rows of a compressed one must be read in order."""
    n_columns = math.prod(header.shape[1:])
    row_bytes = header.dtype.itemsize * n_columns
    with open_file() as file:
        at = 0

        def read_bytes(n: int) -> bytes:
            nonlocal at
            with wrap_library_errors(where, "is damaged"):
                data = file.read(n)
            if len(data) < n:
                raise DataError(f"{where} is truncated.")
            at += n
            return data

        def read(start: int, stop: int) -> Array:
            nonlocal at
            first = begin + start * row_bytes
            if not isinstance(file, zipfile.ZipExtFile):
                at = file.seek(first)
            while at < first:
                read_bytes(min(first - at, _SKIPPED_BYTES))
            return np.frombuffer(read_bytes((stop - start) * row_bytes), header.dtype).reshape(-1, n_columns)

        yield read


def _open_sparse(path: AnyPath, where: str, found: dict[str, zipfile.ZipInfo]) -> ArrayReader:
    """Open a sparse matrix in CSR format; its rows are returned as dense ones."""
    with _archive(path) as archive:
        kind = _small(archive, "format", where)
        shape = _small(archive, "shape", where)
    if kind.size != 1 or kind.dtype.kind not in "SU":
        raise DataError(f"{where} is damaged: its format is not a name.")
    name = kind.item().decode(errors="replace") if kind.dtype.kind == "S" else str(kind.item())
    if name != "csr" or not {*_CSR_PARTS} <= found.keys():
        raise DataError(
            f"{where} is a sparse matrix of format {beginning(name)!r}, whose rows cannot be read one after another: "
            "save matrix.tocsr()."
        )
    parts = [_open_member(path, part, where, found[part]) for part in _CSR_PARTS]
    starts, indices, data = parts
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or (shape < 0).any():
        raise DataError(f"{where} is damaged: its shape is not that of a matrix.")
    if starts.n_rows != int(shape[0]) + 1 or indices.n_rows != data.n_rows or not all(part.is_vector for part in parts):
        raise DataError(f"{where} is damaged: its parts have different lengths.")
    if any(part.dtype_of(NO_COLUMNS, text=True).kind not in "iu" for part in (starts, indices)):
        raise DataError(f"{where} is damaged: its indices are not integers.")
    dtype = usable_dtype(data.dtype_of(NO_COLUMNS), where)
    opened = partial(_sparse_rows, parts, int(shape[1]), dtype, where)
    return ArrayReader(where, shape.tolist(), dtype, opened, path=path)


def _small(archive: Any, name: str, where: str) -> Array:
    """Read an array of a few bytes."""
    with wrap_library_errors(where), archive.open(f"{name}.npy") as file:
        header = _read_header(file, where)
        n_bytes = int(np.prod(header.shape, dtype=object)) * header.dtype.itemsize
        if header.dtype.kind not in "iuSU" or not 0 < n_bytes <= _LONGEST_NAME:
            raise DataError(f"{where} is damaged: {name} is not a small array.")
        return np.frombuffer(file.read(n_bytes), header.dtype).reshape(header.shape)


@contextmanager
def _sparse_rows(parts: list[ArrayReader], n_columns: int, dtype: np.dtype[Any], where: str) -> Iterator[ReadRows]:
    """Open a sparse matrix, whose rows are read in order, as dense ones."""
    n_entries = parts[1].n_rows or 0
    with ExitStack() as files:
        read_starts, read_indices, read_data = (files.enter_context(part.opened()) for part in parts)
        # The position of the entries of the next row, once known.
        following: Array = np.empty(0, np.int64)

        def read(start: int, stop: int) -> Array:
            nonlocal following
            later = read_starts(start + len(following), stop + 1).ravel()
            starts = np.concatenate([following, later]).astype(np.int64)
            following = starts[-1:]
            if (np.diff(starts) < 0).any() or starts[0] < 0 or starts[-1] > n_entries:
                raise DataError(f"{where} is damaged: its rows do not follow one another.")
            dense = np.zeros((stop - start, n_columns), dtype)
            for begin in range(int(starts[0]), int(starts[-1]), _ENTRIES):
                end = min(begin + _ENTRIES, int(starts[-1]))
                columns, values = read_indices(begin, end).ravel(), read_data(begin, end).ravel()
                if columns.min() < 0 or columns.max() >= n_columns:
                    raise DataError(f"{where} is damaged: it has entries outside of its columns.")
                row = np.searchsorted(starts, np.arange(begin, end), side="right") - 1
                # Duplicate entries are added, as in SciPy.
                np.add.at(dense, (row, columns), values.astype(dtype, copy=False))
            return dense

        yield read
