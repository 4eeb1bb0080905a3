r"""Errors of a solution on held-out rows, from their state alone.

With :math:`a_i` the rotations and :math:`q_i` the loadings of y, both in the units of the training rows, and with the
means :math:`\bar x, \bar y`, the cross-covariance C and the Gram matrix G of the other rows, the i-th component changes
the squared error of each response by

.. math::
    q_i^2 \, a_i^T G a_i - 2 q_i \, a_i^T \Big( C - \sum_{j < i} G a_j q_j^T \Big)

and the error of the means is added. One product with G per component thus gives the errors for all numbers of
components. The terms refer to the residuals of y, not to y itself, but if y is predicted almost exactly, their sum is a
small difference of large numbers: root mean squared errors below about 1e-7 of the standard deviation of y are rounding
errors.
"""

from __future__ import annotations

import numpy as np

from .._core.types import Float64Array
from ..pls import Factors, GramAction
from ..states.moments import Moments
from .solution import Scaling


def held_out_errors(
    factors: Factors, training: Moments, scaling: Scaling, held_out: Moments, gram: GramAction
) -> Float64Array:
    """Return the root mean squared errors of the solution's first 1, 2, ... components.

    Parameters
    ----------
    factors : Factors
        The solution for the training rows, centred and scaled.
    training : Moments
        Moments of the training rows.
    scaling : Scaling
        The divisors of the columns.
    held_out : Moments
        Moments of the other rows.
    gram : GramAction
        The action of their Gram matrix.

    Returns
    -------
    errors : ndarray of shape (c, q)
        In the units of the responses. Past the rank, the last error is repeated.
    """
    c = factors.n_components
    rotations = factors.x_rotations[:, :c] * scaling.x_factor[:, None]
    loads = factors.y_loadings[:, :c].T * (scaling.x_unit / scaling.y_unit)
    actions = np.empty_like(rotations)
    for i in range(c):
        actions[:, i] = gram.apply(rotations[:, i])[0]
    products = rotations.T @ actions
    # Covariance of the score of a component with the residuals of the responses.
    common = rotations.T @ held_out.cross * scaling.y_factor - np.tril(products, -1) @ loads
    changes = loads * (np.diag(products)[:, None] * loads - 2 * common)
    squares = held_out.y_squares * scaling.y_factor * scaling.y_factor + _running_sums(changes)
    dx, dy = training.mean_differences(held_out)
    offsets = dy * scaling.y_factor - _running_sums((rotations.T @ dx)[:, None] * loads)
    found = np.sqrt(np.maximum(squares, 0.0) / held_out.weight + offsets**2) / scaling.y_factor
    return found[np.arange(1, factors.x_weights.shape[1] + 1).clip(max=c)]


def _running_sums(changes: Float64Array) -> Float64Array:
    """Return the sums of the first 0, 1, 2, ... rows."""
    return np.concatenate([np.zeros((1, changes.shape[1])), np.cumsum(changes, axis=0)])
