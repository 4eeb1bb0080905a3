"""Many values in few pixels: lines that keep their extremes, and samples of points that keep the outermost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._core.types import Array, Float64Array

# More points of a line than a picture has pixels say nothing.
LINE_BINS = 1500
# Points that are drawn, at most.
MOST_POINTS = 10_000


def thin(x: Array, y: Float64Array, n_bins: int = LINE_BINS) -> tuple[Array, Float64Array]:
    """Return the points of a line, of each of n bins the lowest and the highest, in their order; all if they are few.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.plots._many import thin
    >>> x, y = thin(np.arange(9), np.array([0, 1, 0, 0, -5, 0, 0, 0, 7.0]), n_bins=2)
    >>> x.tolist(), y.tolist()
    ([0, 1, 4, 8], [0.0, 1.0, -5.0, 7.0])
    """
    if len(y) <= 2 * n_bins:
        return x, y
    starts = np.linspace(0, len(y), n_bins, endpoint=False).astype(int)
    order = np.lexsort((y, np.repeat(np.arange(n_bins), np.diff([*starts, len(y)]))))
    lowest, highest = order[starts], order[np.r_[starts[1:], len(y)] - 1]
    kept = np.unique(np.concatenate([lowest, highest]))
    return x[kept], y[kept]


def sample(distances: Float64Array, most: int = MOST_POINTS) -> NDArray[np.intp]:
    """Return which points to draw, in order: all, or some at random and a few that are the farthest out."""
    n = len(distances)
    if n <= most:
        return np.arange(n)
    n_far = most // 200
    order = np.argpartition(distances, n - n_far)
    far, others = order[n - n_far :], order[: n - n_far]
    return np.sort(np.concatenate([far, np.random.default_rng(0).choice(others, most - n_far, replace=False)]))


def of_many(n_drawn: int, n: int) -> str:
    """Return what a title says if not all rows are drawn."""
    return f"{n_drawn:,} of {n:,} rows drawn" if n_drawn < n else ""
