"""Solution: PLS factors with the means and scales of the data, under scikit-learn's names.

Data is centred, and scaled to unit variance if requested, by its moments alone; the solver gets powers of two as units,
so that nothing overflows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log2
from typing import Annotated, NamedTuple

import numpy as np
from scipy import linalg

from .._core.schema import Number, Numbers, Object, solved_numbers, stored
from .._core.types import Float64Array
from ..pls import Factors, GramAction, LossyGramAction, solve_pls
from ..states.moments import Moments
from ..states.ranges import LEAST_SQUARE, TOO_SMALL
from .vip import importance


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


@stored()
@dataclass(frozen=True)
class Solution:
    """A solved model. Scores, weights, loadings and rotations refer to scaled data."""

    factors: Annotated[Factors, Object(Factors, m="m", q="q", s="s", a="a?")]
    x_mean: Annotated[Float64Array, Numbers("m")]
    y_mean: Annotated[Float64Array, Numbers("q")]
    x_scale: Annotated[Float64Array, Numbers("m", least=0)]
    y_scale: Annotated[Float64Array, Numbers("q", least=0)]
    x_squares: Annotated[Float64Array, solved_numbers("m", least=0)]
    """Sums of squares of the centred and scaled columns of X."""
    y_squares: Annotated[Float64Array, solved_numbers("q", least=0)]
    """Sums of squares of the centred and scaled columns of y."""
    retained_variance: Annotated[float, Number(nan=True)]
    subspace_error: Annotated[Float64Array, Numbers("s", nan=True)]
    weight: Annotated[float, Number(0)]
    """Total weight of the rows."""

    @classmethod
    def of(
        cls, moments: Moments, gram: LossyGramAction, n_components: int, *, scale: bool, quiet: bool = False
    ) -> Solution:
        """Return the solution for data given by its moments and Gram action; if ``quiet``, without warnings."""
        if gram.forgetting == 1.0:
            # With forgetting, the columns shrink as rows are forgotten.
            require_resolution(moments)
        scaling = Scaling.of(moments, scale=scale)
        factors = solve_scaled(moments, gram, scaling, n_components, quiet=quiet)
        # A scalar zero for exact actions.
        has_lost = not isinstance(gram.lost, float) and bool(np.any(gram.lost))
        lost = float(np.sum(gram.lost / scaling.x_scale**2)) if has_lost else 0.0
        # The state does not determine components that it has not preserved.
        subspace_error = np.zeros(n_components)
        subspace_error[: factors.n_components] = float(has_lost)
        known = gram.subspace_error[:n_components]
        subspace_error[: len(known)] = known
        return cls.of_factors(factors, moments, scaling, lost=lost, subspace_error=subspace_error)

    @classmethod
    def of_factors(
        cls,
        factors: Factors,
        moments: Moments,
        scaling: Scaling,
        *,
        lost: float = 0.0,
        subspace_error: Float64Array | None = None,
    ) -> Solution:
        """Return the solution with the given factors; ``lost`` is the sum of squares that a state has discarded."""
        x_total = float(scaling.x_squares.sum())
        return cls(
            factors=factors,
            x_mean=moments.x_mean,
            y_mean=moments.y_mean,
            x_scale=scaling.x_scale,
            y_scale=scaling.y_scale,
            x_squares=scaling.x_squares,
            y_squares=scaling.y_squares,
            retained_variance=1.0 - lost / (x_total or 1.0),
            subspace_error=np.zeros(len(factors.score_squares)) if subspace_error is None else subspace_error,
            weight=moments.weight,
        )

    def first(self, n_components: int) -> Solution:
        """Return the solution with the first components only, like a fit with this number."""
        return replace(
            self, factors=self.factors.first(n_components), subspace_error=self.subspace_error[:n_components].copy()
        )

    @property
    def x_total(self) -> float:
        """Sum of squares of the centred and scaled X."""
        return float(self.x_squares.sum())

    @property
    def y_total(self) -> float:
        """Sum of squares of the centred and scaled y."""
        return float(self.y_squares.sum())

    @property
    def n_components(self) -> int:
        """Number of components found in the data."""
        return self.factors.n_components

    @property
    def x_weights(self) -> Float64Array:
        """W."""
        return self.factors.x_weights

    @property
    def x_loadings(self) -> Float64Array:
        """P."""
        return self.factors.x_loadings

    @property
    def x_rotations(self) -> Float64Array:
        """R = W (P'W)^-1."""
        return self.factors.x_rotations

    @property
    def y_loadings(self) -> Float64Array:
        """Q."""
        return self.factors.y_loadings

    @property
    def y_lengths(self) -> Float64Array:
        """Root of the sum of squares of each column of y explained by each component, in any unit."""
        return self.factors.y_lengths

    @property
    def vip(self) -> Float64Array:
        """Variable importance in projection."""
        return importance(self.x_weights, self.y_lengths)

    @property
    def y_weights(self) -> Float64Array:
        """The loadings: in regression mode, y is regressed on the scores of X."""
        return self.factors.y_loadings

    @property
    def y_rotations(self) -> Float64Array:
        """Q (Q'Q)^+."""
        unit = np.abs(self.factors.y_loadings).max(initial=0.0) or 1.0
        Q = self.factors.y_loadings / unit
        return Q @ linalg.pinv(Q.T @ Q) / unit

    @property
    def intercept(self) -> Float64Array:
        """Prediction for the mean of X."""
        return self.y_mean

    @property
    def coef(self) -> Float64Array:
        """Coefficients of the centred, unscaled X."""
        return self.coefficients(None)

    def coefficients(self, n_components: int | None) -> Float64Array:
        """Return the coefficients of the model with the first components, of shape (q, m)."""
        scaled = self.factors.coefficients(n_components)
        return (scaled * self.y_scale).T / self.x_scale

    def projection(self, n_components: int | None) -> Float64Array:
        """Return the matrix that projects centred, unscaled X to the first scores."""
        return self.factors.x_rotations[:, :n_components] / self.x_scale[:, None]

    def difference(self, other: Solution) -> float:
        """Return the relative difference between the coefficients of scaled features of two solutions."""
        own, others = (solution.coef * self.x_scale / self.y_scale[:, None] for solution in (self, other))
        return float(np.linalg.norm(own - others) / (np.linalg.norm(own) or 1.0))

    @property
    def x_explained_variance_ratio(self) -> Float64Array:
        """Share of X's variance that each component explains."""
        return self.factors.x_explained / (self.x_total or 1.0)

    @property
    def y_explained_variance_ratio(self) -> Float64Array:
        """Share of Y's variance that each component explains."""
        return self.factors.y_explained / (self.y_total or 1.0)


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
        x_squares=float((scaling.x_squares / x_unit / x_unit).sum()),
        y_squares=float((scaling.y_squares / y_unit / y_unit).sum()),
        x_factor=scaling.x_factor,
        quiet=quiet,
    )
    return replace(
        factors,
        y_loadings=factors.y_loadings * (y_unit / x_unit),
        score_squares=factors.score_squares * x_unit * x_unit,
    )


def _power_of_two(squares: Float64Array) -> float:
    """Return the power of two nearest the root of the largest square."""
    largest = float(squares.max(initial=0.0))
    return float(2.0 ** round(log2(largest) / 2)) if largest > 0 else 1.0
