r"""How far errors of the Gram action carry a PLS solution: an estimate without the exact one.

A weight vector comes from the cross-covariance that earlier components leave, :math:`C_i = C - \sum_j S r_j q_j^T`. An
error e of :math:`S r_i` changes it by :math:`e q_i^T`, so that the next weight vector turns by about
:math:`|e| |q_i| / |C_i|`.

The sketch's error e is not known, but its size is: the sketch has lost directions of at most the variance of the least
that it holds, and it loses of r only what differs from the r of the time of the compression. How much that is follows
from the sampling error of C, which grows from one component to the next.
"""

from __future__ import annotations

import numpy as np

from .._types import Float64Array
from .pls import Factors


def subspace_errors(factors: Factors, cross: Float64Array, *, blur: float, sampling_error: float) -> Float64Array:
    """Return, for each number of components, about the sine of the angle between their space and the exact one.

    Parameters
    ----------
    factors : Factors
        A solution.
    cross : ndarray of shape (m, q)
        The cross-covariance it is for.
    blur : float
        Largest sum of squares of X along a direction that is not held.
    sampling_error : float
        Relative error of the cross-covariance.
    """
    c = factors.n_components
    errors = np.zeros(factors.x_weights.shape[1])
    W, P, R = (matrix[:, :c] for matrix in (factors.x_weights, factors.x_loadings, factors.x_rotations))
    loads = factors.y_loadings[:, :c] * factors.score_squares[:c]
    # Column i: what component i + 1 finds of C after the deflations by those before it.
    left = cross.T @ W - loads @ np.triu(P.T @ W, 1)
    found = np.linalg.norm(left, axis=0)
    turns = blur * np.linalg.norm(R, axis=0) * np.linalg.norm(factors.y_loadings[:, :c], axis=0)
    staleness = np.minimum(1.0, sampling_error * np.arange(1, c + 1))
    ratios = np.divide(staleness[:-1] * turns[:-1], found[1:], out=np.ones(max(c - 1, 0)), where=found[1:] > 0)
    errors[1:c] = np.sqrt(np.cumsum(ratios**2))
    return np.minimum(errors, 1.0)
