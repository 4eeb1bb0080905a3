"""A table: rows of one file, or of several, as every format gives them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._core.errors import DataError, first_not_finite, shortened, usable_dtype
from .._core.types import Array
from .files import file_identity

Piece = tuple[Array, Array | None]
"""Some rows: their features, and their targets if there are any."""


_NOTHING = np.empty(0, np.intp)
# Rows that are taken from a file at a time, at most.
_PIECE_BYTES = 16 << 20
# About what a string takes as a Python object.
_STRING_BYTES = 64


class Table(ABC):
    """Rows of columns, read in order from any row on.

    Attributes
    ----------
    where : str
        What to call it in a message.
    n_rows : int or None
        Number of rows, None if that is not known before all are read.
    n_columns : int
        Number of columns.
    names : tuple of str, or None
        Names of the columns.
    others : tuple of str
        Names of further columns, which can only be targets. They are numbered on from ``n_columns``.
    is_vector : bool
        Whether it has a single column because it has one dimension.
    rereadable, slow : bool
        Whether it can be read again, and whether that takes much longer than to read as much from a file of numbers.
    path : Path or None
        The file, if it is one.
    room : int
        Bytes that reading may take beside the blocks that are made of the rows. A source sets it before it reads.
    """

    format: ClassVar[str]
    n_rows: int | None = None
    names: tuple[str, ...] | None = None
    others: tuple[str, ...] = ()
    is_vector = False
    rereadable = True
    slow = True
    path: Path | None = None
    room = 8 << 20

    def __init__(self, where: str, n_columns: int) -> None:
        self.where = where
        self.n_columns = n_columns

    @abstractmethod
    def dtype_of(self, columns: NDArray[np.intp], *, text: bool = False) -> np.dtype[Any]:
        """Return the dtype of some columns together; raise DataError if they are not numbers (or text)."""

    @abstractmethod
    def pieces(self, features: NDArray[np.intp], targets: NDArray[np.intp], start: int, step: int) -> Iterator[Piece]:
        """Yield rows from ``start`` on, at most ``step`` at a time, best with ends at multiples of it."""

    def whole_bytes(self, features: NDArray[np.intp], targets: NDArray[np.intp]) -> int:
        """Return the room that it takes to read nothing twice, as far as it depends on the file."""
        return 0

    @property
    def bytes_at_most(self) -> int | None:
        """Bytes that all columns take as float64, at most, if that is known before they are read."""
        return None if self.n_rows is None else 8 * self.n_rows * self.n_columns

    @property
    def identity(self) -> tuple[Any, ...]:
        """What changes when the rows do: name, size, time and parts of the file."""
        return (self.where,) if self.path is None else file_identity(self.path)

    @property
    def beginning(self) -> str | None:
        """A short text that changes with the first rows, of what can be read only once."""
        return None

    def mapped(self) -> Array | None:
        """Return all columns as one array whose rows are read when they are used, if there is such."""
        return None

    def count(self) -> int:
        """Return the number of rows, reading them all if need be."""
        if self.n_rows is None:
            nothing = np.empty(0, np.intp)
            self.n_rows = sum(len(X) for X, _ in self.pieces(nothing, nothing, 0, 1 << 16))
        return self.n_rows

    def read(self, features: NDArray[np.intp], targets: NDArray[np.intp], start: int, step: int) -> Iterator[Piece]:
        """Yield rows from ``start`` on; raise DataError for the first number that is not finite."""
        read = False
        for X, y in self.pieces(features, targets, start, step):
            for values, columns in ((X, features), (y, targets)):
                bad = None if values is None else first_not_finite(values)
                if values is not None and bad is not None:
                    raise self.bad_value(start + bad[0], int(columns[bad[1] if len(bad) > 1 else 0]), values[bad])
            start += len(X)
            read = True
            yield X, y
            # It is not needed while the next one is made.
            del X, y, values
        if self.n_rows is not None and (start < self.n_rows or (read and start > self.n_rows)):
            raise DataError(f"{self.where} is damaged: it says that it has {self.n_rows:,} rows, and has {start:,}.")

    def bad_value(self, row: int, column: int, value: Any) -> DataError:
        """Return the error for a value that is not a finite number."""
        problem = "a missing value"
        if value is not None:
            problem = "NaN" if np.isnan(value) else "infinity"
        return self.error_at(row, column, f"there is {problem}: drop or replace such values")

    def error_at(self, row: int, column: int, problem: str) -> DataError:
        """Return the error for something in a row and a column."""
        return DataError(f"In {self.where}, row {row}, column {self.column_name(column)}, {problem}.")

    def column_name(self, column: int) -> str:
        """Return what to call a column in a message."""
        name = self.name_of(column)
        return str(column) if name is None else shortened(name)

    def name_of(self, column: int) -> str | None:
        """Return the name of a column, if it has one."""
        if column >= self.n_columns:
            return self.others[column - self.n_columns]
        return None if self.names is None else self.names[column]


class Matrix(Table):
    """A table whose columns are those of one array, wherever that is.

    Parameters
    ----------
    where : str
    shape : tuple of int
        That of the array, of one or two dimensions.
    dtype : numpy.dtype
        Numbers, or text.
    chunks : tuple of int, optional
        The shape of the chunks that the array is stored in.
    """

    chunks_at_a_time = 1
    """Chunks that the library decompresses at a time."""

    def __init__(
        self, where: str, shape: Sequence[int], dtype: np.dtype[Any], chunks: Sequence[int] | None = None
    ) -> None:
        require_shape(where, shape)
        self.is_vector = len(shape) == 1
        super().__init__(where, 1 if self.is_vector else int(shape[1]))
        self.n_rows = int(shape[0])
        self._dtype = usable_dtype(dtype, where, text=True)
        self._chunks = tuple(chunks or (1, 1))

    @abstractmethod
    def rows(self, start: int, step: int) -> Iterator[Array]:
        """Yield rows of all columns from ``start`` on, as ``pieces`` does."""

    def dtype_of(self, columns: NDArray[np.intp], *, text: bool = False) -> np.dtype[Any]:
        """Return the dtype of the array."""
        return usable_dtype(self._dtype, self.where, text=text)

    @property
    def _row_bytes(self) -> int:
        return (self._dtype.itemsize or _STRING_BYTES) * self.n_columns

    @property
    def _band_bytes(self) -> int:
        """Bytes of the chunks that are side by side."""
        return self._chunks[0] * self._row_bytes

    def whole_bytes(self, features: NDArray[np.intp], targets: NDArray[np.intp]) -> int:
        """Return the size of chunks side by side, and of those that are under way, compressed and not."""
        chunk_bytes = math.prod(self._chunks) * (self._dtype.itemsize or _STRING_BYTES)
        return self._band_bytes + 2 * min(self.chunks_at_a_time * chunk_bytes, max(self._band_bytes, chunk_bytes))

    def pieces(self, features: NDArray[np.intp], targets: NDArray[np.intp], start: int, step: int) -> Iterator[Piece]:
        """Yield rows."""
        # A piece may be there four times: compressed, decompressed, in order, and with the columns chosen.
        piece_rows = min(self.room // 4, _PIECE_BYTES) // self._row_bytes
        for part in self.rows(start, max(1, min(step, piece_rows))):
            rows = part.astype(self._dtype, copy=False).reshape(len(part), self.n_columns)
            del part
            for first in range(0, len(rows), step):
                some = rows[first : first + step]
                X, y = pick(some, features), self._target(some, targets) if len(targets) else None
                if len(some) == step:
                    # What is a block by itself would keep all that it is a view of.
                    X, y = _own(X, rows), y if y is None else _own(y, rows)
                yield X, y
                del some, X, y
            del rows

    def _target(self, rows: Array, targets: NDArray[np.intp]) -> Array:
        y = pick(rows, targets, as_target=True)
        if y.dtype.kind != "S":
            return y
        try:
            text: Array = np.char.decode(y, "utf-8")
        except UnicodeDecodeError:
            raise DataError(f"{self.where} holds labels that are not text in UTF-8.") from None
        return text

    def slices(self, array: Any, start: int, step: int) -> Iterator[Array]:
        """Yield rows of an array that can be sliced; whole chunks, which are decompressed as a whole."""
        assert self.n_rows is not None
        if self.whole_bytes(_NOTHING, _NOTHING) <= self.room:
            step = max(1, step // self._chunks[0]) * self._chunks[0]
        while start < self.n_rows:
            stop = min(start - start % step + step, self.n_rows)
            yield np.asarray(array[start:stop])
            start = stop


class Mapped(Matrix):
    """An array in memory, or one whose rows are read from a file when they are used. Blocks are views of it."""

    slow = False

    def __init__(self, where: str, array: Array) -> None:
        super().__init__(where, array.shape, array.dtype)
        self.array = array

    def pieces(self, features: NDArray[np.intp], targets: NDArray[np.intp], start: int, step: int) -> Iterator[Piece]:
        """Yield rows, with ends at multiples of the step."""
        for part in self.rows(start, step):
            rows = part.astype(self._dtype, copy=False).reshape(len(part), self.n_columns)
            yield pick(rows, features), self._target(rows, targets) if len(targets) else None

    def rows(self, start: int, step: int) -> Iterator[Array]:
        """Yield views."""
        return self.slices(self.array, start, step)

    def mapped(self) -> Array | None:
        """Return the array, unless it has to be converted."""
        return self.array.reshape(len(self.array), -1) if self.array.dtype == self._dtype else None


def require_shape(where: str, shape: Sequence[int]) -> None:
    """Raise DataError unless the shape is that of rows of columns."""
    if len(shape) not in {1, 2}:
        raise DataError(f"{where} has {len(shape)} dimension(s): rows of columns have two.")
    if shape[0] == 0:
        raise DataError(f"{where} has no rows.")
    if len(shape) == 2 and shape[1] == 0:
        raise DataError(f"{where} has no columns.")


def pick(rows: Array, columns: NDArray[np.intp], *, as_target: bool = False) -> Array:
    """Return some columns, as a view if they are neighbours; a single target as a vector."""
    if as_target and len(columns) == 1:
        return rows[:, columns[0]]
    if len(columns) and (np.diff(columns) == 1).all():
        return rows[:, columns[0] : columns[-1] + 1]
    return rows[:, columns]


def _own(part: Array, whole: Array) -> Array:
    """Return rows or columns that keep no others in memory."""
    return part if part.nbytes == whole.nbytes else part.copy()


def rows_of(columns: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """Return columns side by side, row by row in memory."""
    n_rows = len(columns[0]) if columns else 0
    out = np.empty((n_rows, len(columns)), dtype)
    # A few rows at a time: written column by column, they stay in the cache until they are complete.
    step = max(64, (1 << 20) // max(1, out[:1].nbytes))
    for start in range(0, n_rows, step):
        part = out[start : start + step]
        for j, column in enumerate(columns):
            part[:, j] = column[start : start + step]
    return out
