"""Thinning of many values: lines that keep their extremes, and samples that keep the outermost points.

This module alone decides which values are drawn, with matplotlib and with Plotly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._core.types import Array, Float64Array

# Two points per bin are more than a matplotlib figure has pixels.
LINE_BINS = 1500
# Points of all lines of an interactive figure together, which can be zoomed.
INTERACTIVE_POINTS = 16_000
# Maximum number of rows drawn.
MOST_POINTS = 10_000


def thin(x: Array, y: Float64Array, n_bins: int = LINE_BINS) -> tuple[Array, Float64Array]:
    """Return the lowest and the highest point of each bin of a line, in order, or all points if they are few.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.plots.thinning import thin
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


def interactive_bins(n_lines: int) -> int:
    """Return the number of bins per line of an interactive figure."""
    return max(1, INTERACTIVE_POINTS // (2 * n_lines))


def sample(distances: Float64Array, most: int = MOST_POINTS) -> NDArray[np.intp]:
    """Return the indices of the points to draw, in order: all, or a random sample and the outermost few."""
    n = len(distances)
    if n <= most:
        return np.arange(n)
    n_far = most // 200
    order = np.argpartition(distances, n - n_far)
    far, others = order[n - n_far :], order[: n - n_far]
    return np.sort(np.concatenate([far, np.random.default_rng(0).choice(others, most - n_far, replace=False)]))
