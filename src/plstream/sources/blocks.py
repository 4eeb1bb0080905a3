"""Blocks of rows, and the tiles they are worked on in.

A *block* is what a source hands out at a time: enough rows to be worth a thread's while. A *tile* is a few rows of a
block, few enough to stay in a core's cache while several products are formed: memory is read once, not once a product.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._types import Float64Array, FloatArray, Rows

# Dense data up to this size, in float64, is worked on in memory, by NumPy; more is read in blocks, by compiled loops.
SMALL_BYTES = 32 << 20
SMALLEST_BLOCK_BYTES = 4 << 20
LARGEST_BLOCK_BYTES = 32 << 20
TILE_BYTES = 1 << 20
MIN_TILE_ROWS = 16


class Block(NamedTuple):
    """Some rows: X as the caller has it, Y in float64 with one column a response, and weights or None.

    Of labels, Y is one column with the numbers of the classes. It stands for a response for each class, which is one
    for the rows of the class and zero for all others, but that is never written out.
    """

    X: Rows
    Y: Float64Array
    weight: Float64Array | None
    compiled: bool = False
    """Whether to use compiled loops: X is dense, and part of something large."""
    n_classes: int = 0
    """Number of classes, if Y is of labels."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_targets(self) -> int:
        """Number of responses."""
        return self.n_classes or int(self.Y.shape[1])

    @property
    def classes(self) -> NDArray[np.intp]:
        """The classes of the rows, by number."""
        return self.Y[:, 0].astype(np.intp)

    def present(self) -> Block:
        """Return the block without its rows of weight zero: such a row counts as absent."""
        if self.weight is None or (self.weight > 0).all():
            return self
        rows = np.flatnonzero(self.weight > 0)
        return self._replace(X=self.X[rows], Y=self.Y[rows], weight=self.weight[rows])

    def weighted(self, class_weight: Float64Array | None) -> Block:
        """Return the block with weights times those of the classes."""
        if class_weight is None:
            return self
        weight = class_weight[self.classes]
        return self._replace(weight=weight if self.weight is None else self.weight * weight)


def row_bytes(X: Rows) -> int:
    """Return the bytes of one row, for sparse rows on average."""
    if sparse.issparse(X):
        return max(1, int(X.nnz) * int(X.data.itemsize + X.indices.itemsize) // max(1, int(X.shape[0])))
    return max(1, int(X.shape[1]) * int(X.dtype.itemsize))


def default_block_rows(X: Rows) -> int:
    """Return the rows of a block of X."""
    return default_rows(int(X.shape[0]), row_bytes(X))


def default_rows(n_rows: int | None, bytes_per_row: int) -> int:
    """Return the rows of a block: few enough to keep many cores busy, enough that adding up results costs little."""
    total = LARGEST_BLOCK_BYTES * 32 if n_rows is None else bytes_per_row * n_rows
    block_bytes = min(max(total // 32, SMALLEST_BLOCK_BYTES), LARGEST_BLOCK_BYTES)
    return max(1, block_bytes // bytes_per_row)


def dense_tiles(X: Rows, shift: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """Yield (rows, X[rows] - shift) for all rows, dense and with the dtype of the shift, a cacheful at a time.

    Each tile is written over the one before it: use it before taking the next.
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


def require_finite(name: str, rows: Rows, weight: Float64Array | None = None) -> None:
    """Raise ValueError that says where the first value is that is not finite, if there is one in a row with weight."""
    step = default_block_rows(rows)
    for start in range(0, rows.shape[0], step):
        part = rows[start : start + step]
        entries = part.tocoo() if sparse.issparse(part) else None
        bad = ~np.isfinite(part if entries is None else entries.data)
        at_row, at_column = np.nonzero(bad) if entries is None else (entries.row[bad], entries.col[bad])
        if weight is not None:
            counts = weight[start + at_row] > 0
            at_row, at_column = at_row[counts], at_column[counts]
        if not len(at_row):
            continue
        row, column = int(at_row[0]), int(at_column[0])
        kind = "NaN" if np.isnan(part[row, column]) else "infinity"
        raise ValueError(
            f"Input {name} contains {kind} (first in row {start + row}, column {column}): drop or replace such values."
        )
