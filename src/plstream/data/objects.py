"""Data of the caller's own: arrays, dense and sparse, and iterables of blocks; tables are in ``arrow_objects``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from .._core.errors import DataError, counted, import_optional, usable_dtype
from .._core.types import Array
from .array_reader import ArrayReader, reader_of_array
from .arrow_objects import is_frame, is_table, is_table_block, open_table, open_tables, pair_of
from .reader import Columns, Pieces, Reader, pick

# Rows by which a stream that begins anew is known.
_FIRST_ROWS = 5


def open_object(data: Any) -> Reader:
    """Open an array, a frame, a table of Arrow or an iterable of blocks."""
    if is_frame(data) and not all(isinstance(name, str) for name in data.columns):
        # Numbers as names are no names.
        data = data.to_numpy()
    if isinstance(data, dict):
        data = import_optional("pyarrow", "Reading a dict of columns").table(data)
    if is_table(data):
        return open_table(data)
    if sparse.issparse(data) or hasattr(data, "shape") or hasattr(data, "__array__"):
        return open_array(data)
    if isinstance(data, list | tuple) and not (data and _is_block(data[0])):
        return open_array(np.asarray(data))
    if isinstance(data, Iterable) and not isinstance(data, bytes):
        return open_blocks(data)
    raise TypeError(f"Data is a path, an array, a frame, a file or an iterable of blocks, not {type(data).__name__}.")


def open_array(array: Any, where: str = "the array") -> ArrayReader:
    """Return a reader of an array in memory, or of one that is mapped already."""
    if sparse.issparse(array):
        return sparse_reader(array, where)
    array = np.asanyarray(array)
    return reader_of_array(_of_objects(array, where) if array.dtype.kind == "O" else array, where)


def sparse_reader(matrix: Any, where: str, path: Path | None = None) -> ArrayReader:
    """Return a reader of a sparse matrix in memory, which hands out its rows as dense ones."""
    rows = matrix.tocsr()
    return ArrayReader(where, rows.shape, rows.dtype, partial(nullcontext, _DenseRows(rows)), path=path, slow=False)


class _DenseRows:
    """Slices of a sparse matrix as dense rows."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def __getitem__(self, part: slice) -> Array:
        dense: Array = self._rows[part].toarray()
        return dense


def open_blocks(blocks: Iterable[Any]) -> Reader:
    """Open an iterable of blocks, which are X or pairs of X and y, by a look at the first one."""
    iterator = iter(blocks)
    first = next(iterator, None)
    if first is None:
        raise DataError("The iterable has no blocks.")
    # What gives a new iterator every time can be read again.
    rereadable = iterator is not blocks
    blocks = blocks if rereadable else chain([first], iterator)
    if is_table_block(first):
        return open_tables(first, blocks, rereadable=rereadable)
    return BlocksReader(blocks, first, rereadable=rereadable)


class BlocksReader(Reader):
    """Blocks of an iterable, all of them like the first one."""

    slow = False

    def __init__(self, blocks: Iterable[Any], first: Any, *, rereadable: bool) -> None:
        X, y = _block(first, 0)
        super().__init__("the blocks", X.shape[1])
        self.rereadable = rereadable
        self.beginning = sha256(_dense(X[:_FIRST_ROWS]).tobytes()).hexdigest()[:16]
        self._blocks = blocks
        self._dtype = X.dtype
        self.paired = y is not None
        if y is not None:
            self.is_vector = y.ndim == 1
            self.others = ("y",) if self.is_vector else tuple(f"y{column}" for column in range(y.shape[1]))
            self.own_targets = np.arange(self.n_columns, self.n_columns + len(self.others), dtype=np.intp)

    def dtype_of(self, columns: Columns, *, text: bool = False) -> np.dtype[Any]:
        """Return the dtype of the first block."""
        return usable_dtype(self._dtype, self.where, text=text)

    def pieces(self, features: Columns, others: Columns, start: int, step: int) -> Iterator[Pieces]:
        """Yield the blocks from the row on."""
        end, dtype = 0, usable_dtype(self._dtype, self.where)
        for number, item in enumerate(self._blocks):
            X, y = _block(item, number)
            self._require_alike(number, X, y)
            n_rows = X.shape[0]
            end += n_rows
            if end <= start:
                continue
            skip = max(0, n_rows - (end - start))
            for first in range(skip, n_rows, step):
                rows = slice(first, first + step)
                part = _dense(X[rows])
                part = part.astype(dtype, copy=False) if np.can_cast(part.dtype, dtype, "safe") else part
                yield pick(part, features), self._columns(part, None if y is None else y[rows], others)

    def _columns(self, X: Array, y: Array | None, columns: Columns) -> list[Array]:
        rows = None if y is None else y.reshape(len(y), -1)
        m = self.n_columns
        return [X[:, column] if rows is None or column < m else rows[:, column - m] for column in columns]

    def _require_alike(self, number: int, X: Any, y: Array | None) -> None:
        if X.shape[1] != self.n_columns:
            raise DataError(
                f"Block {number} has {counted(X.shape[1], 'column')}, but the first one has {self.n_columns}."
            )
        if (y is not None) != self.paired:
            raise DataError(f"Block {number} is {'X alone' if y is None else 'a pair'}, unlike the first one.")
        if y is not None and (1 if y.ndim == 1 else y.shape[1]) != len(self.others):
            raise DataError(f"y of block {number} has another number of columns than that of the first one.")
        if X.dtype.kind not in "biuf" or (X.dtype.kind == "f" and self._dtype.kind != "f"):
            raise DataError(f"Block {number} holds values of type {X.dtype}, and the first one of {self._dtype}.")


def _is_block(item: Any) -> bool:
    """Return whether it is a block (X, or a pair of X and y) rather than a row of numbers."""
    return is_table_block(item) or getattr(pair_of(item)[0], "ndim", 0) == 2


def _block(item: Any, number: int) -> tuple[Any, Array | None]:
    if not _is_block(item) or is_table_block(item):
        raise TypeError(f"Block {number} is neither an array of two dimensions nor a pair of such with y.")
    data, target = pair_of(item)
    X, y = data.tocsr() if sparse.issparse(data) else np.asarray(data), None if target is None else np.asarray(target)
    where = f"Block {number}"
    if len(X.shape) != 2 or not X.shape[1]:
        raise DataError(f"{where} has no columns.")
    if X.dtype.kind == "O":
        X = _of_objects(X, where)
    usable_dtype(X.dtype, where, text=False)
    if y is not None and len(y) != X.shape[0]:
        raise DataError(f"y of block {number} has {len(y)} rows, and X has {X.shape[0]}.")
    return X, _of_objects(y, f"y of block {number}") if y is not None and y.dtype.kind == "O" else y


def _dense(rows: Any) -> Array:
    dense: Array = rows.toarray() if sparse.issparse(rows) else rows
    return dense


def _of_objects(values: Array, where: str, first_row: int = 0) -> Array:
    """Return objects as text if all are text, otherwise as numbers."""
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
