"""Blocks and tiles of rows: block sizes, tiles that stay in cache, and the position of the first non-finite number.

A *block* is read at a time, and has enough rows to be worth a thread. A *tile* is a part of a block that stays in a
core's cache while several products are computed: memory is read once, not once per product.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from .errors import NonFiniteError
from .types import Array, Float64Array, FloatArray, Rows

# Dense data up to this size, in float64, is processed in memory by NumPy; more is read in blocks by compiled loops.
SMALL_BYTES = 32 << 20
SMALLEST_BLOCK_BYTES = 4 << 20
LARGEST_BLOCK_BYTES = 32 << 20
TILE_BYTES = 1 << 20
MIN_TILE_ROWS = 16


def as_dense(rows: Rows) -> Array:
    """Return dense rows unchanged, and sparse rows as an array."""
    dense: Array = rows.toarray() if sparse.issparse(rows) else rows
    return dense


def row_bytes(X: Rows) -> int:
    """Return the bytes per row; the average for sparse rows."""
    if sparse.issparse(X):
        return max(1, int(X.nnz) * int(X.data.itemsize + X.indices.itemsize) // max(1, int(X.shape[0])))
    return max(1, int(X.shape[1]) * int(X.dtype.itemsize))


def default_block_rows(X: Rows) -> int:
    """Return the number of rows of a block of X."""
    return default_rows(int(X.shape[0]), row_bytes(X))


def default_rows(n_rows: int | None, bytes_per_row: int) -> int:
    """Return the number of rows per block: few enough to keep many cores busy, enough to make merging cheap."""
    total = LARGEST_BLOCK_BYTES * 32 if n_rows is None else bytes_per_row * n_rows
    block_bytes = min(max(total // 32, SMALLEST_BLOCK_BYTES), LARGEST_BLOCK_BYTES)
    return max(1, block_bytes // bytes_per_row)


def dense_tiles(X: Rows, shift: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """Yield (rows, X[rows] - shift) for all rows, dense and with the dtype of the shift, in cache-sized tiles.

    Each tile overwrites the previous one: use it before taking the next.
    """
    n_rows, n_columns = X.shape
    step = max(MIN_TILE_ROWS, TILE_BYTES // max(1, n_columns * shift.itemsize))
    buffer = np.empty((min(step, n_rows), n_columns), shift.dtype)
    for start in range(0, n_rows, step):
        rows = slice(start, min(start + step, n_rows))
        tile = X[rows].toarray() if sparse.issparse(X) else X[rows]
        out = buffer[: len(tile)]
        np.subtract(tile, shift, out=out, casting="same_kind")
        yield rows, out


def require_finite(
    name: str,
    rows: Rows,
    weight: Float64Array | None = None,
    names: Any = None,
    *,
    allow_missing: bool = False,
) -> None:
    """Raise NonFiniteError for the first non-finite value in a row with a positive weight.

    ``names`` are the column names, if any. With ``allow_missing``, NaN is allowed.
    """
    step = default_block_rows(rows)
    for start in range(0, rows.shape[0], step):
        part = rows[start : start + step]
        entries = part.tocoo() if sparse.issparse(part) else None
        values = part if entries is None else entries.data
        bad = np.isinf(values) if allow_missing else ~np.isfinite(values)
        at_row, at_column = np.nonzero(bad) if entries is None else (entries.row[bad], entries.col[bad])
        if weight is not None:
            counts = weight[start + at_row] > 0
            at_row, at_column = at_row[counts], at_column[counts]
        if not len(at_row):
            continue
        row, column = int(at_row[0]), int(at_column[0])
        is_missing, known_as = bool(np.isnan(part[row, column])), "" if names is None else str(names[column])
        raise NonFiniteError(name, start + row, column, is_missing=is_missing, known_as=known_as)
