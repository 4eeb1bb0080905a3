"""Rows of arrays in memory or mapped from a file, dense or sparse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from .._core.compiled import LOOP_DTYPES
from .._core.tiles import SMALL_BYTES, SMALLEST_BLOCK_BYTES, default_block_rows, require_finite, row_bytes
from .._core.types import Array, Float64Array, Rows
from .blocks import Block, TrainingRows

# Dense data above this size, in float64, is read by compiled loops if that requires no copy.
_LOOP_BYTES = 2 << 20
# With fewer columns, loops along rows are slower than NumPy.
_LEAST_COLUMNS = 32

_AS_FLOAT64: Callable[[Array], Float64Array] = partial(np.asarray, dtype=np.float64)


class ArrayRows(TrainingRows):
    """Rows of an array, in blocks, which can be read repeatedly.

    Nothing is copied or converted as a whole: a block of a dense array is a view, so a memory map is read from its file
    block by block. Sparse columns are the exception: they are converted to sparse rows once.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_rows, n_columns)
    Y : array of shape (n_rows, n_targets)
    weight : array of shape (n_rows,), optional
        Rows of weight zero are skipped.
    n_classes : int, default=0
        Number of classes, if Y is one column of class indices.
    class_weight : array of shape (n_classes,), optional
        Positive weights of the classes; the weight of a row is the product of both.
    feature_names : sequence of str, optional
        Names of the columns, for messages.
    batch_size : int, optional
        Number of rows per block. By default 1/32 of the rows, but at least 4 MiB and at most 32 MiB; 4 MiB if rows are
        skipped; all rows for small dense arrays.
    numbers : callable, optional
        Converts some rows of Y to float64. By default Y holds numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.rows import ArrayRows
    >>> X = np.arange(10.0).reshape(5, 2)
    >>> [len(block.Y) for block in ArrayRows(X, X[:, :1], batch_size=2).blocks()]
    [2, 2, 1]
    """

    def __init__(
        self,
        X: Rows,
        Y: Array,
        weight: Float64Array | None = None,
        *,
        batch_size: int | None = None,
        n_classes: int = 0,
        class_weight: Float64Array | None = None,
        numbers: Callable[[Array], Float64Array] = _AS_FLOAT64,
        feature_names: Any = None,
    ) -> None:
        self.X: Rows = X.tocsr() if sparse.issparse(X) else X
        self.Y = Y
        self.weight = weight
        self.n_classes = n_classes
        self.class_weight = class_weight
        self.numbers = numbers
        self.feature_names = feature_names
        self.n_rows = int(X.shape[0] if weight is None else np.count_nonzero(weight))
        self.n_columns = int(X.shape[1])
        self.n_targets = n_classes or int(Y.shape[1])
        if isinstance(self.X, np.ndarray):
            # Loops over contiguous rows pay off earlier than loops over copies.
            is_contiguous = self.X.flags.c_contiguous and self.X.dtype in LOOP_DTYPES and self.n_rows == len(self.X)
            wide = self.n_columns >= _LEAST_COLUMNS
            self.compiled = 8 * self.X.size > (min(SMALL_BYTES, _LOOP_BYTES) if is_contiguous and wide else SMALL_BYTES)
            self.in_memory = 8 * self.X.size <= SMALL_BYTES
        if batch_size is not None:
            self.batch_size = batch_size
        elif self.in_memory:
            # Too small to divide among threads.
            self.batch_size = int(X.shape[0])
        elif weight is not None and self.n_rows < X.shape[0]:
            # Skipping rows requires copies of blocks, several of which are processed at a time.
            self.batch_size = max(1, SMALLEST_BLOCK_BYTES // row_bytes(self.X))
        else:
            self.batch_size = default_block_rows(self.X)

    def require_finite(self) -> None:
        """Raise ValueError for the first number that is not finite, if any."""
        require_finite("X", self.X, self.weight, self.feature_names, allow_missing=self.allow_missing)
        require_finite("y", self.Y, self.weight, allow_missing=self.allow_missing)

    def n_rows_from(self, start: int) -> int:
        """Return the number of rows of nonzero weight from ``start`` on."""
        return super().n_rows_from(start) if self.weight is None else int(np.count_nonzero(self.weight[start:]))

    def blocks(self, start: int = 0) -> Iterator[Block]:
        """Read the rows, starting at the beginning of a block."""
        n_skipped = 0
        for first in range(start, self.X.shape[0], self.batch_size):
            rows = slice(first, first + self.batch_size)
            weight = None if self.weight is None else self.weight[rows]
            block = Block(self.X[rows], self.numbers(self.Y[rows]), weight, self.compiled, self.n_classes)
            if self.class_weight is not None:
                block = block.weighted(self.class_weight)
            if weight is not None:
                block = block.present()
            n_skipped += block.n_skipped
            if block.n_rows:
                yield block._replace(n_skipped=n_skipped)
                n_skipped = 0
