"""Small loops that several recursions use."""

from __future__ import annotations

import math

from ..._core.compiled import compiled
from ..._core.types import Float64Array


@compiled
def is_finite(number: float) -> bool:
    """Return whether a number is finite. math.isfinite forms x - x, which reordering turns to zero if x is a sum."""
    return abs(number) < math.inf


@compiled
def square_and_product(a: Float64Array, b: Float64Array) -> tuple[float, float]:
    """Return a.a and a.b."""
    square, product = 0.0, 0.0
    for j in range(len(a)):
        square += a[j] * a[j]
        product += a[j] * b[j]
    return square, product


@compiled
def scale_into(out: Float64Array, factor: float, a: Float64Array) -> None:
    """Set out to a times a factor."""
    for j in range(len(out)):
        out[j] = factor * a[j]
