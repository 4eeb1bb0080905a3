"""PLS of centred data, scaled to unit variance if requested: the solver's input and output in the right units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._core.types import Float64Array
from ..pls import Factors, GramAction, solve_pls
from ..states.moments import Moments


@dataclass(frozen=True)
class Scaling:
    """Divisors of the columns of X and Y, and the sums of squares that are left of them.

    A constant column has divisor one, and does not take part.
    """

    x_scale: Float64Array
    y_scale: Float64Array
    x_squares: Float64Array
    y_squares: Float64Array

    @classmethod
    def of(cls, moments: Moments, *, scale: bool) -> Scaling:
        """Return standard deviations, or ones if ``scale`` is false."""
        squares = moments.x_squares, moments.y_squares
        if not scale:
            return cls(np.ones_like(squares[0]), np.ones_like(squares[1]), *squares)
        # Weights count as repeated rows. Where they sum to less than two, as shares do, n - 1 has no meaning.
        divisor = max(moments.weight - 1, moments.weight / 2, 1e-300)
        x_scale, y_scale = (np.sqrt(np.where(sums > 0, sums / divisor, 1.0)) for sums in squares)
        return cls(x_scale, y_scale, squares[0] / x_scale**2, squares[1] / y_scale**2)


class Units(NamedTuple):
    """Powers of two that bring scaled data near one, and the factors that take the columns as they are to these units.

    Nothing is rounded by that; numbers near 1e+-300 leave no room to work in.
    """

    x: float
    y: float
    x_factor: Float64Array
    y_factor: Float64Array

    @classmethod
    def of(cls, moments: Moments, scaling: Scaling) -> Units:
        """Return the units for data with these moments."""
        x, y = _power_of_two(scaling.x_squares), _power_of_two(scaling.y_squares)
        # A constant column has nothing but rounding errors to give.
        x_factor = np.where(moments.x_squares > 0, 1.0 / (scaling.x_scale * x), 0.0)
        return cls(x, y, x_factor, 1.0 / (scaling.y_scale * y))


def solve_scaled(
    moments: Moments, gram: GramAction, scaling: Scaling, n_components: int, *, quiet: bool = False
) -> Factors:
    """Return the PLS factors of the centred and scaled data."""
    units = Units.of(moments, scaling)
    factors = solve_pls(
        moments.cross * units.x_factor[:, None] * units.y_factor,
        _ScaledGram(gram, units.x_factor),
        n_components,
        x_squares=float((scaling.x_squares / units.x**2).sum()),
        y_squares=float((scaling.y_squares / units.y**2).sum()),
        quiet=quiet,
    )
    return replace(
        factors,
        y_loadings=factors.y_loadings * (units.y / units.x),
        score_squares=factors.score_squares * units.x**2,
    )


class _ScaledGram:
    """The Gram action of columns multiplied by factors."""

    def __init__(self, gram: GramAction, factor: Float64Array) -> None:
        self.gram = gram
        self.factor = factor
        self.rounding = gram.rounding
        self.variance_resolution = gram.variance_resolution

    def apply(self, v: Float64Array) -> tuple[Float64Array, float]:
        action, square = self.gram.apply(self.factor * v)
        return self.factor * action, square


def _power_of_two(squares: Float64Array) -> float:
    """Return the power of two nearest the root of the largest square."""
    largest = float(squares.max(initial=0.0))
    return float(2.0 ** np.round(np.log2(largest) / 2)) if largest > 0 else 1.0
