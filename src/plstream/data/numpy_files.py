"""NumPy's files: .npy, mapped, and the members of .npz, mapped if they are not compressed, else read as a stream.

What the header of an array says is checked before anything else: nothing is ever unpickled, and no memory is taken for
more than the file holds.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from .._core.errors import DataError, beginning, usable_dtype, wrap_library_errors
from .._core.remote import AnyPath, RemotePath
from .._core.types import Array
from .array_reader import ArrayReader, mapped_reader, require_shape
from .columns import listed
from .reader import OpenOptions, Reader

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_LOCAL_HEADER_BYTES = 30
# What is read at a time of rows that are skipped.
_SKIPPED_BYTES = 1 << 18


class _Header(NamedTuple):
    """What the header of an array says."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    offset: int

    @property
    def n_columns(self) -> int:
        return self.shape[1] if len(self.shape) == 2 else 1

    def require(self, where: str, size: int) -> None:
        """Raise DataError unless it is an array of rows, which a file of this size holds."""
        usable_dtype(self.dtype, where, text=True)
        if any(type(size) is not int or size < 0 for size in self.shape):
            raise DataError(f"{where} is damaged: its shape is {beginning(str(self.shape))}.")
        require_shape(where, self.shape)
        if not self.dtype.itemsize:
            raise DataError(f"{where} holds text of no length.")
        declared = self.offset + math.prod(self.shape) * self.dtype.itemsize
        if declared > size:
            raise DataError(f"{where} is cut off: it should have {declared:,} bytes, and has {size:,}.")

    def require_rows(self, what: str) -> None:
        """Raise DataError if rows are not stored one after another."""
        if self.fortran_order and len(self.shape) == 2:
            raise DataError(
                f"{what} stored by columns, so that rows cannot be read one after another: save a copy made by "
                "numpy.ascontiguousarray."
            )


def read_header(file: IO[bytes], where: str) -> _Header:
    """Read the header of an array, and leave the file where its numbers begin."""
    begin = file.tell()
    with wrap_library_errors(where, "is not a NumPy array"):
        # Version 3 differs only in the names of fields.
        read = _HEADERS.get(npy.read_magic(file), npy.read_array_header_2_0)
        shape, fortran_order, dtype = read(file)
    return _Header(shape, fortran_order, dtype, file.tell() - begin)


def open_npy(path: AnyPath, where: str, _options: OpenOptions) -> Reader:
    """Open a .npy file."""
    return _open_array(path, where, 0, path.stat().st_size)


def open_npz(path: AnyPath, where: str, options: OpenOptions) -> Reader:
    """Open an array in a .npz file: the one named, or else the only one."""
    found, key = members(path), options.key
    if key is None and is_sparse(found):
        from .sparse_files import open_sparse

        return open_sparse(path, where)
    if key is None and len(found) == 1:
        key = next(iter(found))
    if key is None or key not in found:
        asked = "Say which array of" if key is None else f"There is no array {key!r} in"
        hint = f", as in {where!r} + ':{beginning(next(iter(found)))}'" if key is None and found else ""
        raise DataError(f"{asked} {where}: it has {listed(found) or 'none'}{hint}.")
    return open_member(path, key, where, found[key])


def open_member(path: AnyPath, key: str, where: str, info: zipfile.ZipInfo | None = None) -> ArrayReader:
    """Open an array in a .npz file by its name."""
    info = info or members(path)[key]
    if info.flag_bits & 1:
        raise DataError(f"{where}:{key} is encrypted: save it without a password.")
    if info.compress_type != zipfile.ZIP_STORED:
        return _open_compressed(path, key, f"{where}:{key}", info.file_size)
    with wrap_library_errors(where), path.open("rb") as file:
        file.seek(info.header_offset)
        local = file.read(_LOCAL_HEADER_BYTES)
    if len(local) < _LOCAL_HEADER_BYTES or local[:4] != b"PK\x03\x04":
        raise DataError(f"{where} is damaged: there is nothing where {key} should be.")
    names = int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
    offset = info.header_offset + _LOCAL_HEADER_BYTES + names
    if offset + info.file_size > path.stat().st_size:
        raise DataError(f"{where} is cut off.")
    return _open_array(path, f"{where}:{key}", offset, info.file_size)


def members(path: AnyPath) -> dict[str, zipfile.ZipInfo]:
    """Return the arrays in a .npz file by name."""
    with wrap_library_errors(str(path), "is not a .npz file, or damaged"), archive_of(path) as archive:
        infos = archive.infolist()
    return {info.filename.removesuffix(".npy"): info for info in infos if info.filename.endswith(".npy")}


def is_sparse(names: Iterable[str]) -> bool:
    """Return whether arrays of these names are the parts of a sparse matrix of SciPy."""
    return {"format", "shape", "data"} <= set(names)


@contextmanager
def archive_of(path: AnyPath) -> Iterator[zipfile.ZipFile]:
    """Open a .npz file."""
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        yield archive


def _open_array(path: AnyPath, where: str, offset: int, size: int) -> ArrayReader:
    """Map an array that begins, with its header, at an offset of a file."""
    with path.open("rb") as file:
        file.seek(offset)
        header = read_header(file, where)
    header.require(where, size)
    begin = offset + header.offset
    if isinstance(path, RemotePath):
        header.require_rows(f"{where} is")
        return ArrayReader(
            where, header.shape, header.dtype, partial(_remote_rows, path, header, begin, where), path=path
        )
    return mapped_reader(path, header.dtype, header.shape, begin, where, fortran_order=header.fortran_order)


def _open_compressed(path: AnyPath, member: str, where: str, size: int) -> ArrayReader:
    with wrap_library_errors(where), archive_of(path) as archive, archive.open(f"{member}.npy") as file:
        header = read_header(file, where)
    header.require(where, size)
    header.require_rows(f"{where} is compressed and")
    opened = partial(_compressed_rows, path, member, header, where)
    return ArrayReader(where, header.shape, header.dtype, opened, path=path)


@contextmanager
def _compressed_rows(path: AnyPath, member: str, header: _Header, where: str) -> Iterator[_FileRows]:
    with ExitStack() as files:
        with wrap_library_errors(where):
            archive = files.enter_context(archive_of(path))
            file = files.enter_context(archive.open(f"{member}.npy"))
        yield _FileRows(file, header, where, header.offset)


@contextmanager
def _remote_rows(path: RemotePath, header: _Header, begin: int, where: str) -> Iterator[_FileRows]:
    with path.open("rb") as file:
        yield _FileRows(file, header, where, begin)


class _FileRows:
    """Rows of an array that are read when they are asked for.

    Slices of a compressed array must come in their order; those of other files are found at their place.
    """

    def __init__(self, file: IO[bytes], header: _Header, where: str, offset: int) -> None:
        self._file, self._where = file, where
        self._dtype, self._n_columns, self._offset = header.dtype, header.n_columns, offset
        self._is_compressed = isinstance(file, zipfile.ZipExtFile)
        self._at = 0

    def __getitem__(self, rows: slice) -> Array:
        row_bytes = self._dtype.itemsize * self._n_columns
        begin = self._offset + rows.start * row_bytes
        if not self._is_compressed:
            self._at = self._file.seek(begin)
        while self._at < begin:
            self._read(min(begin - self._at, _SKIPPED_BYTES))
        data = self._read((rows.stop - rows.start) * row_bytes)
        return np.frombuffer(data, self._dtype).reshape(-1, self._n_columns)

    def _read(self, n: int) -> bytes:
        with wrap_library_errors(self._where, "is damaged"):
            data = self._file.read(n)
        if len(data) < n:
            raise DataError(f"{self._where} is cut off.")
        self._at += n
        return data
