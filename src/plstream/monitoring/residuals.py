r"""What a PLS model leaves of X: of new rows, and its covariance in all rows seen, from the state of the stream.

Scores are uncorrelated, and loadings are regressions on them, so that the residuals of scaled rows have the covariance

.. math::
    E = S - P \Lambda P^T

with that of the rows, S, the loadings and the variances of the scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._core.tiles import dense_tiles
from .._core.types import Float64Array, Rows
from ..estimators._base import PLSBase
from ..estimators._solution import Solution
from ..states import Gram, Moments, Sketch
from .limits import Traces

# What is formed of a sketch at a time.
_COLUMNS_AT_A_TIME = 1024


def residuals_of(solution: Solution, rows: Rows) -> Iterator[tuple[Float64Array, Float64Array]]:
    """Yield the scores and the residuals of a few rows at a time; the residuals are written over by the next."""
    k = solution.n_components
    R, P = solution.x_rotations[:, :k], solution.x_loadings[:, :k]
    for _, centred in dense_tiles(rows, solution.x_mean):
        z = np.divide(centred, solution.x_scale, out=centred)
        scores = z @ R
        yield scores, np.subtract(z, scores @ P.T, out=z)


def divisor_of(state: Moments) -> float:
    """Return what sums of squares are divided by for variances: n - 1, for weights what is as unbiased."""
    return max(state.weight - state.typical_weight, 1e-300)


def score_variances(model: Any) -> tuple[Float64Array, float] | None:
    """Return the variances of a model's scores, and of how many rows, or None if it has no streaming state."""
    stream = model._fitted.stream if isinstance(model, PLSBase) else None
    if stream is None:
        return None
    state, solution = stream.current(), model._solution()
    return solution.factors.score_squares[: solution.n_components] / divisor_of(state), state.effective_rows


def residual_traces(solution: Solution, state: Gram | Sketch, *, cube: bool = True) -> Traces:
    """Return the traces of E, E^2 and E^3, as shares of that of S.

    Parameters
    ----------
    solution : Solution
        The model.
    state : Gram or Sketch
        What it was solved from. Of what a sketch has lost, the variances of the columns are known: they count as
        independent.
    cube : bool, default=True
        Whether the third is wanted. With a Gram matrix it takes a product of square matrices.
    """
    divisor = divisor_of(state)
    unit = solution.x_total / divisor
    if not unit > 0:
        return Traces(0.0, 0.0, 0.0)
    factor = np.where(state.x_squares > 0, 1 / solution.x_scale, 0.0) / np.sqrt(unit) / np.sqrt(divisor)
    loadings = solution.x_loadings * (np.sqrt(solution.factors.score_squares) / np.sqrt(divisor) / np.sqrt(unit))
    # Squares of small numbers one after the other: those of columns may be near the largest number.
    variances = state.x_squares * factor * factor - np.einsum("ij,ij->i", loadings, loadings)
    least = state.variance_resolution / len(factor)
    variances = np.maximum(variances, least)
    if isinstance(state, Gram):
        second, third = _of_matrix(state, factor, loadings, cube=cube)
    else:
        second, third = _of_rows(state, solution, factor, variances)
    return Traces(float(variances.sum()), second, third, unit)


def _of_matrix(state: Gram, factor: Float64Array, loadings: Float64Array, *, cube: bool) -> tuple[float, float]:
    E = np.triu(state.upper)
    E += np.triu(E, 1).T
    E *= factor
    E *= factor[:, None]
    E -= loadings @ loadings.T
    return float(np.einsum("ij,ij->", E, E)), float(np.einsum("ij,ij->", E @ E, E)) if cube else 0.0


def _of_rows(state: Sketch, solution: Solution, factor: Float64Array, variances: Float64Array) -> tuple[float, float]:
    """Return the traces of the square and the cube of A'A + D, for the residuals A of the rows in a sketch.

    The diagonal D is what they lack of the variances of the columns. With K = AA', these are

        tr K^2 + 2 tr ADA' + tr D^2,  tr K^3 + 3 tr KADA' + 3 tr AD^2A' + tr D^3.
    """
    scores = _scores(state, solution, factor)
    n, second, third = state.n_held, 0.0, 0.0
    K, KD = np.zeros((n, n)), np.zeros((n, n))
    for start in range(0, len(factor), _COLUMNS_AT_A_TIME):
        part = slice(start, start + _COLUMNS_AT_A_TIME)
        rows = np.concatenate([piece[:, part] for piece in state.pieces]) * (state.unit[part] * factor[part])
        rows -= scores @ solution.x_loadings[part].T
        squares = np.einsum("ij,ij->j", rows, rows)
        D = np.maximum(variances[part] - squares, 0.0)
        K += rows @ rows.T
        KD += (rows * D) @ rows.T
        second += float(D @ D + 2 * squares @ D)
        third += float(D**2 @ D + 3 * squares @ D**2)
    second += float(np.einsum("ij,ij->", K, K))
    return second, third + float(np.einsum("ij,ij->", K @ K + 3 * KD, K))


def _scores(state: Sketch, solution: Solution, factor: Float64Array) -> Float64Array:
    """Return the scores of the rows in a sketch."""
    right = (state.unit * factor)[:, None] * solution.x_rotations
    return np.concatenate([piece @ right for piece in state.pieces])
