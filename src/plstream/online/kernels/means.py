"""Differences from the running mean."""

from __future__ import annotations

from ..._core.compiled import compiled
from ..._core.types import Float64Array, FloatArray


@compiled
def subtract_running_mean(
    X: FloatArray,
    origin: Float64Array,
    offset: Float64Array,
    unit: float,
    n_rows: int,
    total: float,
    out: Float64Array,
) -> float:
    """Set ``out`` to the rows minus the mean up to and with each, in units, and ``offset`` to the last mean.

    Returns the sum of squares about the mean, given that of the rows before, which is ``total``.
    """
    for i in range(len(X)):
        n = n_rows + i + 1
        square = _subtract_mean(X[i], origin, offset, unit, 1.0 / n, out[i])
        # One factor of the product is from the mean before, which is that much further off.
        total += square * n / max(1, n - 1)
    return total


@compiled
def _subtract_mean(
    x: FloatArray, origin: Float64Array, offset: Float64Array, unit: float, share: float, out: Float64Array
) -> float:
    square = 0.0
    for j in range(len(x)):
        difference = (x[j] - origin[j]) * unit - offset[j]
        step = share * difference
        offset[j] += step
        left = difference - step
        out[j] = left
        square += left * left
    return square
