"""Products of centred rows with a small matrix, as in transform and predict."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .threads import ordered_map
from .tiles import default_block_rows, dense_tiles, require_finite
from .types import Float64Array, FloatArray, Rows


def centred_product(X: Rows, mean: Float64Array, matrix: Float64Array, dtype: Any = np.float64) -> FloatArray:
    """Return ``(X - mean) @ matrix``, computed in float64 without copying X; raise ValueError unless X is finite."""
    if X.shape[0] == 1 and isinstance(X, np.ndarray):
        # The same result, faster than distributing blocks of rows over threads.
        with np.errstate(over="ignore", invalid="ignore"):
            scores: FloatArray = np.dot(np.subtract(X, mean, dtype=np.float64), matrix).astype(dtype, copy=False)
        if np.isfinite(scores).all():
            return scores
    product = np.empty((X.shape[0], matrix.shape[1]), dtype)

    def fill(rows: slice) -> None:
        block, out = X[rows], product[rows]
        with np.errstate(over="ignore", invalid="ignore"):
            if sparse.issparse(block):
                out[:] = block @ matrix - mean @ matrix
                return
            for part, tile in dense_tiles(block, mean):
                out[part] = np.dot(tile, matrix)

    step = default_block_rows(X)
    for _ in ordered_map(fill, (slice(i, i + step) for i in range(0, X.shape[0], step))):
        pass
    if not np.isfinite(product).all():
        require_finite("X", X)
        if not np.isfinite(matrix).all():
            raise ValueError("The model has coefficients that are not finite: scale the features and the responses.")
        raise ValueError(f"X has values so large that results are not finite in {np.dtype(dtype)}: scale the features.")
    return product
