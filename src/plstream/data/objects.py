"""Data of the caller's own: arrays and frames in memory, and any iterable of blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from .._core.errors import DataError, usable_dtype
from .._core.types import Array
from .array_reader import ArrayReader, reader_of_array, require_shape
from .reader import XY, Columns, Reader, pick, side_by_side

_HASHED_BYTES = 1 << 22
# Rows by which a stream that begins anew is known.
_FIRST_ROWS = 5


def open_object(data: Any) -> Reader:
    """Open an array, a frame, a table of Arrow or an iterable of blocks."""
    if is_frame(data):
        return FrameReader(data)
    if type(data).__module__.startswith("pyarrow"):
        from .arrow_files import open_arrow_table

        return open_arrow_table(data)
    if hasattr(data, "shape") or hasattr(data, "__array__"):
        return open_array(data)
    if isinstance(data, list | tuple) and not (data and _is_block(data[0])):
        return open_array(np.asarray(data))
    if isinstance(data, Iterable) and not isinstance(data, bytes | dict):
        return open_blocks(data)
    raise TypeError(f"Data is a path, an array, a frame, a file or an iterable of blocks, not {type(data).__name__}.")


def open_array(array: Any, where: str = "the array") -> ArrayReader:
    """Return a reader of an array in memory, or of one that is mapped already."""
    if sparse.issparse(array):
        raise TypeError("Sparse matrices are in memory: pass them to fit and partial_fit as they are.")
    array = np.asanyarray(array)
    return reader_of_array(_of_objects(array, where) if array.dtype.kind == "O" else array, where)


class FrameReader(Reader):
    """A data frame of pandas or polars."""

    slow = False

    def __init__(self, frame: Any) -> None:
        require_shape("The frame", frame.shape)
        super().__init__("the frame", int(frame.shape[1]))
        self.frame = frame
        self.n_rows = int(frame.shape[0])
        self.names = _names_of(frame)

    @property
    def identity(self) -> tuple[Any, ...]:
        """Number of rows, types of columns and a hash."""
        assert self.n_rows is not None
        columns, digest = np.arange(self.n_columns, dtype=np.intp), sha256()
        step = max(1, _HASHED_BYTES // (8 * self.n_columns))
        types: set[str] = set()
        for start in range(0, self.n_rows, step):
            for array in self._arrays(columns, start, start + step):
                types.add(array.dtype.str)
                digest.update(array.tobytes())
        return self.n_rows, sorted(types), digest.hexdigest()

    def dtype_of(self, columns: Columns, *, text: bool = False) -> np.dtype[Any]:
        """Return the dtype that holds all the columns."""
        first_row = self._rows(0, 1)

        def dtype(column: int) -> np.dtype[Any]:
            where = f"Column {self.column_name(column)} of the frame"
            values = self._array(first_row, column, 0)
            if not text and values.dtype.kind in "SU":
                raise DataError(f"{where} holds text, not numbers: leave it out by columns= or exclude=.")
            return usable_dtype(values.dtype, where, text=text)

        return np.result_type(*set(self.each_suitable(columns, dtype)))

    def pieces(self, features: Columns, targets: Columns, start: int, step: int) -> Iterator[XY]:
        """Yield rows, copied from their columns."""
        assert self.n_rows is not None
        dtype = self.dtype_of(features) if len(features) else np.dtype(np.float64)
        while start < self.n_rows:
            stop = min(start - start % step + step, self.n_rows)
            arrays = self._arrays(features, start, stop)
            self._require_no_gaps(arrays, features, dtype, start)
            X = side_by_side(arrays, dtype) if len(features) else np.empty((stop - start, 0))
            columns = self._arrays(targets, start, stop)
            y = np.column_stack(columns) if len(columns) > 1 else next(iter(columns), None)
            start = stop
            yield X, y

    def _require_no_gaps(self, arrays: list[Array], columns: Columns, dtype: np.dtype[Any], start: int) -> None:
        """Raise DataError for a missing value, which makes floats of whole numbers: they would not stay missing."""
        for array, column in zip(arrays, columns, strict=True):
            if array.dtype.kind == "f" and dtype.kind != "f" and (missing := np.isnan(array)).any():
                raise self.bad_value(start + int(np.argmax(missing)), int(column), None)

    def _arrays(self, columns: Columns, start: int, stop: int) -> list[Array]:
        rows = self._rows(start, stop)
        return [self._array(rows, int(column), start) for column in columns]

    def _rows(self, start: int, stop: int) -> Any:
        return self.frame.iloc[start:stop] if hasattr(self.frame, "iloc") else self.frame[start:stop]

    def _array(self, rows: Any, column: int, first_row: int) -> Array:
        array = np.asarray(rows.iloc[:, column] if hasattr(rows, "iloc") else rows[:, column])
        if array.dtype.kind != "O":
            return array
        return _of_objects(array, f"Column {self.column_name(column)} of the frame", first_row)


def open_blocks(blocks: Iterable[Any]) -> BlocksReader:
    """Open an iterable of blocks, which are X or pairs of X and y, by a look at the first one."""
    iterator = iter(blocks)
    first = next(iterator, None)
    if first is None:
        raise DataError("The iterable has no blocks.")
    # What gives a new iterator every time can be read again.
    rereadable = iterator is not blocks
    return BlocksReader(blocks if rereadable else chain([first], iterator), first, rereadable=rereadable)


class BlocksReader(Reader):
    """Blocks of an iterable, all of them like the first one."""

    slow = False

    def __init__(self, blocks: Iterable[Any], first: Any, *, rereadable: bool) -> None:
        X, y, self.names = _block(first, 0)
        super().__init__("the blocks", X.shape[1])
        self.rereadable = rereadable
        self.beginning = sha256(X[:_FIRST_ROWS].tobytes()).hexdigest()[:16]
        self._blocks = blocks
        self._dtype = X.dtype
        self.paired = y is not None
        if y is not None:
            self.is_vector = y.ndim == 1
            self.others = ("y",) if self.is_vector else tuple(f"y{column}" for column in range(y.shape[1]))

    def dtype_of(self, columns: Columns, *, text: bool = False) -> np.dtype[Any]:
        """Return the dtype of the first block."""
        return usable_dtype(self._dtype, self.where, text=text)

    def pieces(self, features: Columns, targets: Columns, start: int, step: int) -> Iterator[XY]:
        """Yield the blocks from the row on."""
        end, dtype = 0, usable_dtype(self._dtype, self.where)
        for number, item in enumerate(self._blocks):
            X, y, names = _block(item, number)
            self._require_alike(number, X, y, names)
            end += len(X)
            if end <= start:
                continue
            skip = max(0, len(X) - (end - start))
            X = X.astype(dtype, copy=False) if np.can_cast(X.dtype, dtype, "safe") else X
            for first in range(skip, len(X), step):
                rows = slice(first, first + step)
                yield pick(X[rows], features), self._targets(X[rows], None if y is None else y[rows], targets)

    def _targets(self, X: Array, y: Array | None, targets: Columns) -> Array | None:
        if not len(targets):
            return None
        if y is None:
            return pick(X, targets, as_target=True)
        return pick(y.reshape(len(y), -1), targets - self.n_columns, as_target=True)

    def _require_alike(self, number: int, X: Array, y: Array | None, names: tuple[str, ...] | None) -> None:
        if X.shape[1] != self.n_columns:
            raise DataError(f"Block {number} has {X.shape[1]} column(s), and the first one has {self.n_columns}.")
        if (y is not None) != self.paired:
            raise DataError(f"Block {number} is {'X alone' if y is None else 'a pair'}, unlike the first one.")
        if y is not None and (1 if y.ndim == 1 else y.shape[1]) != len(self.others):
            raise DataError(f"y of block {number} has another number of columns than that of the first one.")
        if names != self.names:
            raise DataError(f"Block {number} has other names of columns than the first one.")
        if X.dtype.kind not in "biuf" or (X.dtype.kind == "f" and self._dtype.kind != "f"):
            raise DataError(f"Block {number} holds values of type {X.dtype}, and the first one of {self._dtype}.")


def is_frame(data: Any) -> bool:
    """Return whether it is a data frame of pandas or polars."""
    return (
        hasattr(data, "columns")
        and hasattr(data, "shape")
        and type(data).__module__.split(".")[0] in {"pandas", "polars"}
    )


def _names_of(frame: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a frame if all are text."""
    names = tuple(frame.columns)
    return names if all(isinstance(name, str) for name in names) else None


def _is_block(item: Any) -> bool:
    """Return whether it is X, or a pair of X and y, rather than a row of numbers."""
    X = item[0] if isinstance(item, tuple) and len(item) == 2 else item
    return is_frame(X) or getattr(X, "ndim", 0) == 2


def _block(item: Any, number: int) -> tuple[Array, Array | None, tuple[str, ...] | None]:
    if not _is_block(item):
        raise TypeError(f"Block {number} is neither an array of two dimensions nor a pair of such with y.")
    data, target = item if isinstance(item, tuple) else (item, None)
    if sparse.issparse(data):
        raise TypeError(f"Block {number} is sparse: pass such blocks to partial_fit.")
    names = _names_of(data) if is_frame(data) else None
    X, y = np.asarray(data), None if target is None else np.asarray(target)
    where = f"Block {number}"
    if len(X.shape) != 2 or not X.shape[1]:
        raise DataError(f"{where} has no columns.")
    if X.dtype.kind == "O":
        X = _of_objects(X, where)
    usable_dtype(X.dtype, where, text=False)
    if y is not None and len(y) != len(X):
        raise DataError(f"y of block {number} has {len(y)} rows, and X has {len(X)}.")
    return X, _of_objects(y, f"y of block {number}") if y is not None and y.dtype.kind == "O" else y, names


def _of_objects(values: Array, where: str, first_row: int = 0) -> Array:
    """Return objects as text if all are, else as numbers."""
    if all(isinstance(value, str) for value in values.flat):
        return values.astype(str)
    rows = values.reshape(len(values), -1)
    for row, value in enumerate(rows, first_row):
        if any(map(_is_missing, value)):
            raise DataError(f"{where} has a missing value, first in row {row}: drop or replace such values.")
    for row, value in enumerate(rows, first_row):
        if any(isinstance(entry, str) for entry in value):
            raise DataError(f"{where} has text among numbers, first in row {row}.")
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{where} holds Python objects, not numbers.") from None


def _is_missing(value: Any) -> bool:
    # Whether pandas' own missing value differs from itself is missing too.
    differs = type(value).__name__ == "NAType" or value is None or value != value  # noqa: PLR0124
    return isinstance(differs, bool | np.bool_) and bool(differs)
