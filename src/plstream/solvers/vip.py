"""Variable importance in projection (VIP), from the factors of any PLS model."""

from __future__ import annotations

import numpy as np

from .._core.types import Float64Array


def importance(x_weights: Float64Array, y_lengths: Float64Array, *, per_target: bool = False) -> Float64Array:
    r"""Return the importance of every feature for the part of y that the components explain.

    .. math::
        VIP_j = \sqrt{m \sum_i SS_i \frac{w_{ij}^2}{\|w_i\|^2} \Big/ \sum_i SS_i}, \quad
        SS_i = \sum_k SS_{ki}, \quad SS_{ki} = q_{ki}^2 \, t_i^T t_i

    Parameters
    ----------
    x_weights : ndarray of shape (m, c)
        Weights w, of any length.
    y_lengths : ndarray of shape (q, c)
        Roots of :math:`SS_{ki}`, in any unit and of any sign: their squares may be outside the range of float64.
    per_target : bool, default=False
        Whether to compute VIP for each column of y.

    Returns
    -------
    vip : ndarray of shape (m,), or (q, m) if ``per_target``
        The mean of the squares is one, or zero if nothing is explained.
    """
    squares = x_weights / _largest(x_weights)
    squares *= squares
    lengths = squares.sum(axis=0)
    y_lengths = y_lengths / _largest(y_lengths, axis=None)
    explained = y_lengths if per_target else column_lengths(y_lengths)[None]
    explained = np.square(explained / _largest(explained, axis=1))
    # Relative to the largest, sums of squares are one or more, or zero.
    shares = explained / np.maximum(explained.sum(axis=1, keepdims=True), 1.0) / np.maximum(lengths, 1.0)
    vip: Float64Array = np.sqrt(len(x_weights) * (shares @ squares.T))
    return vip if per_target else vip[0]


def column_lengths(columns: Float64Array) -> Float64Array:
    """Return the Euclidean norms of columns whose squares may overflow or underflow."""
    largest = _largest(columns)
    return np.linalg.norm(columns / largest, axis=0) * largest[0]


def _largest(numbers: Float64Array, axis: int | None = 0) -> Float64Array:
    """Return the largest magnitudes along an axis, with zeros replaced by one, to divide by."""
    largest = np.abs(numbers).max(axis=axis, keepdims=True, initial=0.0)
    return np.where(largest > 0, largest, 1.0)
