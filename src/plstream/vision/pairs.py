"""Features of pairs of images, computed from those of the images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core.errors import DataError
from .._core.memory import require_memory
from .._core.progress import track
from .._core.types import Array

# A block of rows that roughly fits into cache.
_BLOCK_BYTES = 4 << 20


def pair_differences(features: Array, pairs: Any, *, out: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
    """Return the absolute differences of the features of pairs, ``|a - b|``, one row per pair.

    This is the paper's representation of a pair: it has the features of an image, which are small where two images
    agree.

    Parameters
    ----------
    features : array of shape (n_images, n_features)
        One row per image, in any floating-point type, possibly memory-mapped.
    pairs : array-like of int of shape (n_pairs, 2)
        The rows of the images of each pair.
    out : float32 array of shape (n_pairs, n_features), default=None
        Output array, such as a memory-mapped file if the differences are larger than memory.

    Returns
    -------
    differences : float32 array of shape (n_pairs, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.vision import pair_differences
    >>> pair_differences(np.array([[1.0, 2.0], [4.0, 0.0], [1.0, 1.0]]), [[0, 1], [2, 0]])
    array([[3., 2.],
           [0., 1.]], dtype=float32)
    """
    rows = np.asarray(pairs)
    if rows.ndim != 2 or rows.shape[1] != 2 or rows.dtype.kind not in "iu":
        raise DataError(f"pairs must be integers of shape (n, 2), not {rows.dtype} of shape {rows.shape}.")
    if rows.size and (rows.min() < 0 or rows.max() >= len(features)):
        wrong = rows.min() if rows.min() < 0 else rows.max()
        raise DataError(f"pairs has row {wrong}, but there are rows 0 to {len(features) - 1:,} of features.")
    n, m = len(rows), features.shape[1]
    if out is None:
        require_memory(4 * n * m, f"The differences of {n:,} pairs of {m:,} features")
        out = np.empty((n, m), np.float32)
    elif out.shape != (n, m) or out.dtype != np.float32:
        raise DataError(f"out must be float32 of shape {(n, m)}, not {out.dtype} of shape {out.shape}.")
    step = max(1, _BLOCK_BYTES // (4 * max(1, m)))
    for start in track(range(0, n, step), "pairs", n, lambda start: min(step, n - start), unit="pairs"):
        block = out[start : start + step]
        first, second = rows[start : start + step].T
        block[:] = features[first]
        block -= features[second]
        np.abs(block, out=block)
    return out
