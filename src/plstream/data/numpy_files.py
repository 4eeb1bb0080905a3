"""NumPy's files: .npy, mapped, and the members of .npz, mapped if they are not compressed, else read as a stream.

What the header of an array says is checked before anything else: nothing is ever unpickled, and no memory is taken for
more than the file holds.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple

import numpy as np
from numpy.lib import format as npy

from .._core.errors import DataError, beginning, usable_dtype, wrap_library_errors
from .._core.types import Array
from .columns import listed
from .table import Mapped, Matrix, Table, require_shape

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_LOCAL_HEADER_BYTES = 30
_PIECE_BYTES = 4 << 20


class NpyTable(Mapped):
    """An array in a .npy file, or in a .npz file that is not compressed."""

    format: ClassVar[str] = "npy"

    def __init__(self, path: Path, *, where: str = "", offset: int = 0, size: int | None = None) -> None:
        where = where or str(path)
        with path.open("rb") as file:
            file.seek(offset)
            header = read_header(file, where)
        header.require(where, (path.stat().st_size - offset if size is None else size))
        array = mapped_array(
            path, header.dtype, header.shape, offset + header.offset, where, fortran_order=header.fortran_order
        )
        super().__init__(where, array)
        self.path = path


class Header(NamedTuple):
    """What the header of an array says."""

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    offset: int

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


def read_header(file: IO[bytes], where: str) -> Header:
    """Read the header of an array, and leave the file where its numbers begin."""
    begin = file.tell()
    with wrap_library_errors(where, "is not a NumPy array"):
        # Version 3 differs only in the names of fields.
        read = _HEADERS.get(npy.read_magic(file), npy.read_array_header_2_0)
        shape, fortran_order, dtype = read(file)
    return Header(shape, fortran_order, dtype, file.tell() - begin)


class NpzMember(Matrix):
    """A compressed array in a .npz file, read from the beginning."""

    format: ClassVar[str] = "npz"

    path: Path

    def __init__(self, path: Path, member: str, size: int) -> None:
        where = f"{path}:{member}"
        self.path, self.member = path, member
        with wrap_library_errors(where), zipfile.ZipFile(path) as archive, archive.open(f"{member}.npy") as file:
            self.header = read_header(file, where)
        self.header.require(where, size)
        if self.header.fortran_order and len(self.header.shape) == 2:
            raise DataError(
                f"{where} is compressed and stored by columns, so that rows cannot be read one after another: "
                "use numpy.savez, or save a copy made by numpy.ascontiguousarray."
            )
        super().__init__(where, self.header.shape, self.header.dtype)

    def rows(self, start: int, step: int) -> Iterator[Array]:
        """Yield rows, decompressed as they are read."""
        assert self.n_rows is not None
        row_bytes = self.header.dtype.itemsize * self.n_columns
        step = max(1, min(step, _PIECE_BYTES // row_bytes))
        with ExitStack() as opened:
            with wrap_library_errors(self.where):
                archive = opened.enter_context(zipfile.ZipFile(self.path))
                file = opened.enter_context(archive.open(f"{self.member}.npy"))
            self._skip(file, self.header.offset + min(start, self.n_rows) * row_bytes)
            while start < self.n_rows:
                stop = min(start - start % step + step, self.n_rows)
                data = self._read(file, (stop - start) * row_bytes)
                yield np.frombuffer(data, self.header.dtype).reshape(-1, self.n_columns)
                start = stop

    def _skip(self, file: IO[bytes], n: int) -> None:
        while n:
            n -= len(self._read(file, min(n, self.room // 4, _PIECE_BYTES)))

    def _read(self, file: IO[bytes], n: int) -> bytes:
        with wrap_library_errors(self.where, "is damaged"):
            data = file.read(n)
        if len(data) < n:
            raise DataError(f"{self.where} is cut off.")
        return data


def mapped_array(
    path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int, where: str, *, fortran_order: bool = False
) -> Array:
    """Map a part of a file, if it is all there."""
    order: Any = "F" if fortran_order else "C"
    try:
        return np.memmap(path, dtype, "r", offset, shape, order)
    except (ValueError, OverflowError, OSError):
        raise DataError(f"{where} is cut off: its {math.prod(shape) * dtype.itemsize:,} bytes are not there.") from None


def members(path: Path) -> dict[str, zipfile.ZipInfo]:
    """Return the arrays in a .npz file by name."""
    with wrap_library_errors(str(path), "is not a .npz file, or damaged"), zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
    return {info.filename.removesuffix(".npy"): info for info in infos if info.filename.endswith(".npy")}


def open_npz(path: Path, key: str | None) -> Table:
    """Open an array in a .npz file: the one named, or else the only one."""
    found = members(path)
    if key is None and len(found) == 1:
        key = next(iter(found))
    if key is None or key not in found:
        asked = "Say which array of" if key is None else f"There is no array {key!r} in"
        hint = f", as in {str(path)!r} + ':{beginning(next(iter(found)))}'" if key is None and found else ""
        raise DataError(f"{asked} {path}: it has {listed(found) or 'none'}{hint}.")
    info = found[key]
    if info.flag_bits & 1:
        raise DataError(f"{path}:{key} is encrypted: save it without a password.")
    if info.compress_type != zipfile.ZIP_STORED:
        return NpzMember(path, key, info.file_size)
    with wrap_library_errors(str(path)), path.open("rb") as file:
        file.seek(info.header_offset)
        local = file.read(_LOCAL_HEADER_BYTES)
    if len(local) < _LOCAL_HEADER_BYTES or local[:4] != b"PK\x03\x04":
        raise DataError(f"{path} is damaged: there is nothing where {key} should be.")
    names = int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
    offset = info.header_offset + _LOCAL_HEADER_BYTES + names
    if offset + info.file_size > path.stat().st_size:
        raise DataError(f"{path} is cut off.")
    return NpyTable(path, where=f"{path}:{key}", offset=offset, size=info.file_size)
