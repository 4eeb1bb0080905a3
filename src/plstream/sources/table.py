"""A table: rows of one file, or of several, as every format gives them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._types import Array
from .errors import DataError, first_not_finite, shortened, usable_dtype
from .files import file_identity

Piece = tuple[Array, Array | None]
"""Some rows: their features, and their targets if there are any."""


# Rows that are taken from a file at a time, and chunks that are read as a whole.
_PIECE_BYTES = 16 << 20
_LARGEST_CHUNK_BYTES = 64 << 20


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
    """

    format: ClassVar[str]
    n_rows: int | None = None
    names: tuple[str, ...] | None = None
    others: tuple[str, ...] = ()
    is_vector = False
    rereadable = True
    slow = True
    path: Path | None = None

    def __init__(self, where: str, n_columns: int) -> None:
        self.where = where
        self.n_columns = n_columns

    @abstractmethod
    def dtype_of(self, columns: NDArray[np.intp], *, text: bool = False) -> np.dtype[Any]:
        """Return the dtype of some columns together; raise DataError if they are not numbers (or text)."""

    @abstractmethod
    def pieces(self, features: NDArray[np.intp], targets: NDArray[np.intp], start: int, step: int) -> Iterator[Piece]:
        """Yield rows from ``start`` on, at most ``step`` at a time, best with ends at multiples of it."""

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
    """

    def __init__(self, where: str, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
        require_shape(where, shape)
        self.is_vector = len(shape) == 1
        super().__init__(where, 1 if self.is_vector else int(shape[1]))
        self.n_rows = int(shape[0])
        self._dtype = usable_dtype(dtype, where, text=True)

    @abstractmethod
    def rows(self, start: int, step: int) -> Iterator[Array]:
        """Yield rows of all columns from ``start`` on, as ``pieces`` does."""

    def dtype_of(self, columns: NDArray[np.intp], *, text: bool = False) -> np.dtype[Any]:
        """Return the dtype of the array."""
        return usable_dtype(self._dtype, self.where, text=text)

    def pieces(self, features: NDArray[np.intp], targets: NDArray[np.intp], start: int, step: int) -> Iterator[Piece]:
        """Yield rows."""
        row_bytes = self._dtype.itemsize * self.n_columns
        for part in self.rows(start, max(1, min(step, _PIECE_BYTES // max(1, row_bytes)))):
            rows = part.astype(self._dtype, copy=False).reshape(len(part), self.n_columns)
            X, y = pick(rows, features), self._target(rows, targets) if len(targets) else None
            # A view of a few columns would keep all of them in memory.
            yield X.copy() if 0 < len(features) < self.n_columns and not isinstance(self, Mapped) else X, y

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
        chunk_rows = (getattr(array, "chunks", None) or (1,))[0]
        if chunk_rows * self._dtype.itemsize * self.n_columns <= _LARGEST_CHUNK_BYTES:
            step = -(-step // chunk_rows) * chunk_rows
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
