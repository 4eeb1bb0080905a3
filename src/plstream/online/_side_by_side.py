"""Models of the columns of y side by side, as one model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from .._core.types import Float64Array
from ..estimators._solution import FromFactors
from ..solvers import Factors
from ._base import Stream


@dataclass(frozen=True)
class SideBySide(FromFactors):
    """Factors of a model for each column of y, as one model in the units of the data, with its means."""

    factors: Factors
    x_mean: Float64Array
    y_mean: Float64Array
    y_lengths_in_units: Float64Array
    """What components explain, in the units of the stream, in which squares are neither too large nor too small."""

    @classmethod
    def of(cls, stream: Stream, models: Sequence[Factors]) -> SideBySide:
        """Take the factors out of the units of the stream."""
        in_units = _side_by_side(models)
        x_unit, y_unit = stream.x.unit or 1.0, stream.y.unit or 1.0
        with np.errstate(over="ignore", under="ignore"):
            factors = replace(
                in_units,
                y_loadings=in_units.y_loadings / y_unit * x_unit,
                score_squares=in_units.score_squares / x_unit / x_unit,
            )
        return cls(factors, stream.x.mean, stream.y.mean, in_units.y_lengths)

    @property
    def y_lengths(self) -> Float64Array:
        """Roots of what each component explains of each column of y, in the units of the stream."""
        return self.y_lengths_in_units

    @property
    def projection(self) -> Float64Array:
        """R again."""
        return self.factors.x_rotations

    @property
    def coef(self) -> Float64Array:
        """Coefficients of the centred X."""
        return self.factors.coefficients().T

    @property
    def intercept(self) -> Float64Array:
        """Prediction for the mean of X."""
        return self.y_mean


def _side_by_side(models: Sequence[Factors]) -> Factors:
    """Return the factors of models of different columns of y as those of one model, of all columns."""
    return Factors(
        x_weights=np.hstack([model.x_weights for model in models]),
        x_loadings=np.hstack([model.x_loadings for model in models]),
        x_rotations=np.hstack([model.x_rotations for model in models]),
        y_loadings=linalg.block_diag(*(model.y_loadings for model in models)),
        score_squares=np.hstack([model.score_squares for model in models]),
        n_components=sum(model.n_components for model in models),
    )


def rotations(W: Float64Array, P: Float64Array) -> Float64Array:
    """Return r_i = w_i - sum over j < i of (p_j.w_i) r_j, one a row.

    They take a row to the scores w_i.(x - t_1 p_1 - ... - t_(i-1) p_(i-1)). R = W (P'W)^-1 does so only if P'W is unit
    triangular, which that of running regressions is not.
    """
    R = W.copy()
    for i in range(1, len(W)):
        R[i] -= (P[:i] @ W[i]) @ R[:i]
    return R
