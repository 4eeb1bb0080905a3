"""Differences from the running mean."""

from __future__ import annotations

from ..._compiled import compiled
from ..._types import Float64Array, FloatArray


@compiled
def subtract_running_mean(
    X: FloatArray, origin: Float64Array, offset: Float64Array, unit: float, n_rows: int, out: Float64Array
) -> None:
    """Set ``out`` to the rows minus the mean up to and with each, in units, and ``offset`` to the last mean."""
    for i in range(len(X)):
        _subtract_mean(X[i], origin, offset, unit, 1.0 / (n_rows + i + 1), out[i])


@compiled
def _subtract_mean(
    x: FloatArray, origin: Float64Array, offset: Float64Array, unit: float, share: float, out: Float64Array
) -> None:
    for j in range(len(x)):
        difference = (x[j] - origin[j]) * unit - offset[j]
        step = share * difference
        offset[j] += step
        out[j] = difference - step
