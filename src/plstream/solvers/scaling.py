"""PLS of centred data, scaled to unit variance if requested: the solver's input and output in the right units."""

from __future__ import annotations

from dataclasses import replace
from math import log2
from typing import NamedTuple

import numpy as np

from .._core.types import Float64Array
from ..pls import Factors, GramAction, solve_pls
from ..states.moments import Moments
from ..states.ranges import LEAST_SQUARE, TOO_SMALL


class Scaling(NamedTuple):
    """Divisors of the columns of X and Y, and the units used by the solver.

    Attributes
    ----------
    x_scale, y_scale : ndarray
        Divisors: standard deviations, or ones. A constant column has divisor one and does not contribute.
    x_squares, y_squares : ndarray
        Sums of squares of the scaled columns.
    x_unit, y_unit : float
        Powers of two that bring scaled data close to one. This is exact, and prevents overflow of data near 1e+-300.
    x_factor, y_factor : ndarray
        Factors that convert the columns of the data to these units.
    """

    x_scale: Float64Array
    y_scale: Float64Array
    x_squares: Float64Array
    y_squares: Float64Array
    x_unit: float
    y_unit: float
    x_factor: Float64Array
    y_factor: Float64Array

    @classmethod
    def of(cls, moments: Moments, *, scale: bool) -> Scaling:
        """Return standard deviations, or ones if ``scale`` is false."""
        x_squares, y_squares = moments.x_squares, moments.y_squares
        if scale:
            # Weights count as repeated rows. If they sum to less than two, for example shares, n - 1 is meaningless.
            divisor = max(moments.weight - 1, moments.weight / 2, 1e-300)
            x_scale = np.sqrt(np.where(x_squares > 0, x_squares / divisor, 1.0))
            y_scale = np.sqrt(np.where(y_squares > 0, y_squares / divisor, 1.0))
            x_squares, y_squares = x_squares / x_scale**2, y_squares / y_scale**2
        else:
            x_scale, y_scale = np.ones_like(x_squares), np.ones_like(y_squares)
        x_unit, y_unit = _power_of_two(x_squares), _power_of_two(y_squares)
        # A constant column contains only rounding errors.
        x_factor = np.where(moments.x_squares > 0, 1.0 / (x_scale * x_unit), 0.0)
        return cls(x_scale, y_scale, x_squares, y_squares, x_unit, y_unit, x_factor, 1.0 / (y_scale * y_unit))


def require_resolution(moments: Moments) -> None:
    """Raise ValueError if X or y is so small that its squares lose digits. Means and references cannot underflow."""
    for origin, offset, squares in (
        (moments.x_origin, moments.x_offset, moments.x_squares),
        (moments.y_origin, moments.y_offset, moments.y_squares),
    ):
        largest = float(squares.max(initial=0.0))
        if largest >= LEAST_SQUARE * moments.effective_rows:
            continue
        reach = float(max(np.abs(origin).max(initial=0.0), np.abs(offset).max(initial=0.0)))
        largest = max(moments.weight * reach * reach, largest)
        if reach > 0 and largest < LEAST_SQUARE * moments.effective_rows:
            raise ValueError(TOO_SMALL)


def solve_scaled(
    moments: Moments, gram: GramAction, scaling: Scaling, n_components: int, *, quiet: bool = False
) -> Factors:
    """Return the PLS factors of the centred and scaled data."""
    x_unit, y_unit = scaling.x_unit, scaling.y_unit
    factors = solve_pls(
        moments.cross * scaling.x_factor[:, None] * scaling.y_factor,
        gram,
        n_components,
        x_squares=float((scaling.x_squares / x_unit**2).sum()),
        y_squares=float((scaling.y_squares / y_unit**2).sum()),
        x_factor=scaling.x_factor,
        quiet=quiet,
    )
    return replace(
        factors, y_loadings=factors.y_loadings * (y_unit / x_unit), score_squares=factors.score_squares * x_unit**2
    )


def _power_of_two(squares: Float64Array) -> float:
    """Return the power of two nearest the root of the largest square."""
    largest = float(squares.max(initial=0.0))
    return float(2.0 ** round(log2(largest) / 2)) if largest > 0 else 1.0
