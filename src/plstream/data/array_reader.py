"""Arrays in memory, memory-mapped, or read in slices by the library of a format."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from .._core.errors import DataError, beginning, counted, usable_dtype, wrap_library_errors
from .._core.remote import AnyPath
from .._core.types import Array
from .columns import listed
from .reader import NO_COLUMNS, Columns, Pieces, Reader, pick

# Maximum size of rows read from a file at a time.
_PIECE_BYTES = 16 << 20
# Approximate size of a string as a Python object.
_STRING_BYTES = 64
_HASHED_BYTES = 1 << 22

ReadRows: TypeAlias = Callable[[int, int], Array]
"""Returns rows of an array, from a first one up to a last one, which is excluded."""


class ArrayReader(Reader):
    """Columns of one array of numbers or strings, in memory or in a file.

    ``opened`` returns a context manager of a function that reads rows. If the array is stored in chunks, ``chunks`` is
    their shape, and ``chunks_at_a_time`` the number that the library decompresses at a time. ``array`` is the array
    itself, if in memory or memory-mapped: blocks are then views of it.
    """

    def __init__(
        self,
        where: str,
        shape: Sequence[int],
        dtype: np.dtype[Any],
        opened: Callable[[], AbstractContextManager[Any]],
        *,
        chunks: Sequence[int] | None = None,
        chunks_at_a_time: int = 1,
        array: Array | None = None,
        path: AnyPath | None = None,
        slow: bool = True,
    ) -> None:
        require_shape(where, shape)
        self.is_vector = len(shape) == 1
        super().__init__(where, 1 if self.is_vector else int(shape[1]))
        self.n_rows = int(shape[0])
        self.array, self.path, self.slow = array, path, slow
        self.in_blocks = array is not None
        self._dtype = usable_dtype(dtype, where, text=True)
        self.opened = opened
        self._chunks = tuple(chunks or (1, 1))
        self._chunks_at_a_time = chunks_at_a_time

    def dtype_of(self, columns: Columns, *, text: bool = False) -> np.dtype[Any]:
        """Return the dtype of the array."""
        return usable_dtype(self._dtype, self.where, text=text)

    @property
    def identity(self) -> tuple[Any, ...]:
        """Identity of the file; for an array in memory, length, type and a hash."""
        if self.array is None or self.path is not None:
            return super().identity
        digest = sha256()
        step = max(1, _HASHED_BYTES // max(1, self.array[:1].nbytes))
        for start in range(0, len(self.array), step):
            digest.update(np.ascontiguousarray(self.array[start : start + step]).tobytes())
        return self.n_rows, self.array.dtype.str, digest.hexdigest()

    def mapped(self) -> Array | None:
        """Return the array, unless its type has to be converted."""
        if self.array is None or self.array.dtype != self._dtype:
            return None
        return self.array.reshape(len(self.array), -1)

    @property
    def _row_bytes(self) -> int:
        return (self._dtype.itemsize or _STRING_BYTES) * self.n_columns

    def whole_bytes(self, features: Columns, targets: Columns) -> int:
        """Return the size of a row of chunks plus that of the chunks being read, compressed and decompressed."""
        row_of_chunks = self._chunks[0] * self._row_bytes
        chunk_bytes = math.prod(self._chunks) * (self._dtype.itemsize or _STRING_BYTES)
        return row_of_chunks + 2 * min(self._chunks_at_a_time * chunk_bytes, max(row_of_chunks, chunk_bytes))

    def pieces(self, features: Columns, others: Columns, start: int, step: int) -> Iterator[Pieces]:
        """Yield rows; for an array in memory, views that end at multiples of the step."""
        at_a_time = step
        if self.array is None:
            # There may be four copies: compressed, decompressed, in C order, and with the chosen columns.
            at_a_time = max(1, min(step, min(self.room // 4, _PIECE_BYTES) // self._row_bytes))
        for part in self.rows(start, at_a_time):
            rows = part.astype(self._dtype, copy=False).reshape(len(part), self.n_columns)
            del part
            for first in range(0, len(rows), step):
                some = rows[first : first + step]
                X, columns = pick(some, features), [self._decoded(some[:, column]) for column in others]
                if self.array is None and len(some) == step:
                    # A block that is a view would keep all rows in memory.
                    X, columns = _own(X, rows), [_own(column, rows) for column in columns]
                yield X, columns
                del some, X, columns
            del rows

    def rows(self, start: int, step: int) -> Iterator[Array]:
        """Yield rows of all columns from ``start`` on, in whole chunks if these fit in memory."""
        if self.whole_bytes(NO_COLUMNS, NO_COLUMNS) <= self.room:
            step = max(1, step // self._chunks[0]) * self._chunks[0]
        assert self.n_rows is not None
        with self.opened() as read:
            while start < self.n_rows:
                stop = min(start - start % step + step, self.n_rows)
                with wrap_library_errors(self.where):
                    rows = read(start, stop)
                yield rows
                # Free it before the next one is read.
                del rows
                start = stop

    def _decoded(self, column: Array) -> Array:
        if column.dtype.kind != "S":
            return column
        try:
            text: Array = np.char.decode(column, "utf-8")
        except UnicodeDecodeError:
            raise DataError(f"{self.where} holds labels that are not UTF-8 text.") from None
        return text


def reader_of_array(array: Array, where: str, path: Path | None = None) -> ArrayReader:
    """Return a reader of an array in memory, or of a memory map of a file."""
    opened = partial(nullcontext, rows_of(array))
    return ArrayReader(where, array.shape, array.dtype, opened, array=array, path=path, slow=False)


def rows_of(array: Any) -> ReadRows:
    """Return a function that reads rows of an array in memory, or of one like it."""
    return lambda start, stop: np.asarray(array[start:stop])


def mapped_reader(
    path: Path, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int, where: str, *, fortran_order: bool = False
) -> ArrayReader:
    """Return a reader of an array that is contiguous in a file; raise DataError if it is incomplete."""
    order: Any = "F" if fortran_order else "C"
    try:
        array = np.memmap(path, dtype, "r", offset, shape, order)
    except (ValueError, OverflowError, OSError):
        raise DataError(
            f"{where} is truncated: it has fewer than {math.prod(shape) * dtype.itemsize:,} bytes."
        ) from None
    return reader_of_array(array, where, path)


def choose_array(key: str | None, names: Iterable[str], where: str, thing: str = "array") -> str:
    """Return the name of the array to open: the given name, or that of the only array in the file."""
    known = list(names)
    if key is None and len(known) == 1:
        return known[0]
    if key is None or key not in known:
        asked = f"Say which {thing} of" if key is None else f"There is no {thing} {key!r} in"
        hint = f", as in '{where}:{beginning(known[0])}'" if key is None and known else ""
        raise DataError(f"{asked} {where}: it has {listed(known) or 'none'}{hint}.")
    return key


def require_shape(where: str, shape: Sequence[int]) -> None:
    """Raise DataError unless the array has one or two dimensions."""
    if len(shape) not in {1, 2}:
        raise DataError(f"{where} has {counted(len(shape), 'dimension')}: it must have one or two.")
    if shape[0] == 0:
        raise DataError(f"{where} has no rows.")
    if len(shape) == 2 and shape[1] == 0:
        raise DataError(f"{where} has no columns.")


def _own(part: Array, whole: Array) -> Array:
    """Return a copy of rows or columns if a view would keep others in memory."""
    return part if part.nbytes == whole.nbytes else part.copy()
