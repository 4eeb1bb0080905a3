"""What float64 has room for: rows whose squares would overflow, or vanish, are refused."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from .._core.tiles import require_finite
from .._core.types import Array, Rows
from ..rows import Block
from .moments import TOO_LARGE, Moments

# Squares smaller than this have fewer digits than other numbers, or none.
_LEAST_SQUARE = float(np.finfo(np.float64).tiny)

_TOO_SMALL = "X, y or the weights are too small, weighted squares underflow float64: multiply them by a constant first."


def require_range(
    state: Moments, block: Block, weight: float, waiting_peaks: tuple[float, float]
) -> tuple[float, float]:
    """Return the largest numbers in a block and in rows that wait; raise ValueError unless the state has room for both.

    ``weight`` is that of all these rows, and ``waiting_peaks`` are the largest |x| and |y| of those that wait.
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
    """Raise ValueError if squares of rows to come vanish, and there are no others so far; zeros are just zeros.

    ``weight`` is that of these rows, and ``peaks`` are their largest |x| and |y|.
    """
    for peak, mean, squares in zip(
        peaks, (state.x_mean, state.y_mean), (state.x_squares, state.y_squares), strict=True
    ):
        reach = np.square(max(peak, np.abs(mean).max(initial=0.0)))
        if peak > 0 and (state.weight + weight) * reach + squares.max(initial=0.0) < _LEAST_SQUARE:
            raise ValueError(_TOO_SMALL)


def require_resolution(moments: Moments) -> None:
    """Raise ValueError if X or y is so small that its squares have lost digits. Means and references do not vanish."""
    for origin, offset, squares in (
        (moments.x_origin, moments.x_offset, moments.x_squares),
        (moments.y_origin, moments.y_offset, moments.y_squares),
    ):
        largest = float(squares.max(initial=0.0))
        if largest >= _LEAST_SQUARE * moments.effective_rows:
            continue
        reach = float(max(np.abs(origin).max(initial=0.0), np.abs(offset).max(initial=0.0)))
        largest = max(moments.weight * reach * reach, largest)
        if reach > 0 and largest < _LEAST_SQUARE * moments.effective_rows:
            raise ValueError(_TOO_SMALL)


def _peak(name: str, rows: Rows, at_least: float) -> float:
    """Return the largest absolute value; raise ValueError if there is one that is not finite."""
    stored: Array = rows.data if sparse.issparse(rows) else rows
    if stored.size == 0:
        return at_least
    low, high = float(stored.min()), float(stored.max())
    if not (np.isfinite(low) and np.isfinite(high)):
        require_finite(name, rows)
    return max(-low, high, at_least)
