"""Products of centred rows with a small matrix: what transform and predict come down to."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .._types import Float64Array, FloatArray, Rows
from ..parallel import ordered_map
from ..sources.blocks import default_block_rows, dense_tiles, require_finite


def centred_product(X: Rows, mean: Float64Array, matrix: Float64Array) -> FloatArray:
    """Return (X - mean) matrix, in float32 for float32 rows, without copying X; raise ValueError unless X is finite."""
    dtype = np.dtype(np.float32 if X.dtype in (np.float16, np.float32) else np.float64)
    product = np.empty((X.shape[0], matrix.shape[1]), dtype)
    shift, factor = mean.astype(dtype), matrix.astype(dtype)
    # What the mean loses in float32.
    rest = (mean - shift) @ matrix

    def fill(rows: slice) -> None:
        if sparse.issparse(X):
            product[rows] = X[rows] @ matrix - mean @ matrix
            return
        block, out = X[rows], product[rows]
        for part, tile in dense_tiles(block, shift):
            np.subtract(np.dot(tile, factor), rest, out=out[part], casting="same_kind")

    step = default_block_rows(X)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in ordered_map(fill, (slice(i, i + step) for i in range(0, X.shape[0], step))):
            pass
    if not np.isfinite(product).all():
        require_finite("X", X)
    return product
