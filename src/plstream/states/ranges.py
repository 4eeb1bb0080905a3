"""The range of float64: rows whose squares would overflow or underflow are refused."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .._core.tiles import require_finite
from .._core.types import Array, Rows
from ..rows import Block
from .moments import TOO_LARGE, Moments

# Smaller squares are subnormal, with fewer digits or none.
LEAST_SQUARE = float(np.finfo(np.float64).tiny)

TOO_SMALL = "X, y or the weights are too small: weighted squares underflow float64. Multiply them by a constant first."


def require_range(
    state: Moments, block: Block, weight: float, waiting_peaks: tuple[float, float]
) -> tuple[float, float]:
    """Return the largest numbers in a block and in buffered rows; raise ValueError if their squares would overflow.

    ``weight`` is the weight of all these rows, and ``waiting_peaks`` are the largest |x| and |y| of the buffered ones.
    """
    peaks = _peak("X", block.X, waiting_peaks[0]), _peak("y", block.Y, waiting_peaks[1])
    for peak, mean, squares in zip(
        peaks, (state.x_mean, state.y_mean), (state.x_squares, state.y_squares), strict=True
    ):
        reach = 2.0 * max(peak, np.abs(mean).max(initial=0.0))
        with np.errstate(over="ignore"):
            bound = (state.weight + weight) * np.square(reach) + squares.max(initial=0.0)
        if not np.isfinite(bound):
            raise ValueError(TOO_LARGE)
    return peaks


def require_size(state: Moments, weight: float, peaks: tuple[float, float]) -> None:
    """Raise ValueError if the squares of the first rows underflow; exact zeros are allowed.

    ``weight`` is the weight of these rows, and ``peaks`` are their largest |x| and |y|.
    """
    for peak, mean, squares in zip(
        peaks, (state.x_mean, state.y_mean), (state.x_squares, state.y_squares), strict=True
    ):
        reach = np.square(max(peak, np.abs(mean).max(initial=0.0)))
        if peak > 0 and (state.weight + weight) * reach + squares.max(initial=0.0) < LEAST_SQUARE:
            raise ValueError(TOO_SMALL)


def _peak(name: str, rows: Rows, at_least: float) -> float:
    """Return the largest absolute value; raise ValueError if any value is not finite."""
    stored: Array = rows.data if sparse.issparse(rows) else rows
    if stored.size == 0:
        return at_least
    low, high = float(stored.min()), float(stored.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        require_finite(name, rows)
    return max(-low, high, at_least)
