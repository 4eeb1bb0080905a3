r"""The scores of a PLS fit, from inner products of rows alone.

Where there are a few hundred rows S of many columns, and with them a cross-covariance C that need not be theirs alone,
all that PLS does can be written with three small matrices: :math:`SS^T`, :math:`SC` and :math:`C^TC`. A weight vector
is :math:`C a` less a combination of rows, and its score is a combination of columns of :math:`SC` and :math:`SS^T`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from .._types import Float64Array

# What is left of a vector after projections counts as rounding error if it is this much smaller.
_NOTHING = 1e-8


class Scores(NamedTuple):
    """Orthonormal scores T, and the rotations R = C a - S'b that give them: SR = T."""

    T: Float64Array
    a: Float64Array
    b: Float64Array


def pls_scores(gram: Float64Array, SC: Float64Array, CC: Float64Array, n_components: int) -> Scores:
    """Return the scores of the first components, or of as many as there are.

    Parameters
    ----------
    gram : ndarray of shape (k, k)
        SS'.
    SC : ndarray of shape (k, q)
        Rows times cross-covariance.
    CC : ndarray of shape (q, q)
        C'C.
    n_components : int
        Components to look for.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.statistics.scores import pls_scores
    >>> S, C = np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([[3.0], [4.0]])
    >>> T, a, b = pls_scores(S @ S.T, S @ C, C.T @ C, 2)
    >>> bool(np.allclose(S @ (C @ a - S.T @ b), T))
    True
    """
    k, q = SC.shape
    T, a, b = np.zeros((k, n_components)), np.zeros((q, n_components)), np.zeros((k, n_components))
    # The deflated C is C - S'Z; these are its products.
    Z, deflated, squares = np.zeros((k, q)), SC.copy(), CC.copy()
    found, least = 0, _NOTHING * np.linalg.norm(SC)
    while found < n_components:
        done = slice(found)
        direction = dominant_eigenvector(squares)
        t, ta, tb = deflated @ direction, direction, Z @ direction
        length = np.linalg.norm(t)
        for _ in range(2):
            along = T[:, done].T @ t
            t, ta, tb = t - T[:, done] @ along, ta - a[:, done] @ along, tb - b[:, done] @ along
        norm = np.linalg.norm(t)
        if not (length > least and norm > _NOTHING * length):
            break
        t, ta, tb = t / norm, ta / norm, tb / norm
        T[:, found], a[:, found], b[:, found] = t, ta, tb
        load, image, overlap = CC @ ta - SC.T @ tb, gram @ t, deflated.T @ t
        Z += np.outer(t, load)
        deflated -= np.outer(image, load)
        squares += (t @ image) * np.outer(load, load) - np.outer(overlap, load) - np.outer(load, overlap)
        found += 1
    return Scores(T[:, :found], a[:, :found], b[:, :found])


def dominant_eigenvector(A: Float64Array) -> Float64Array:
    """Return the eigenvector of the largest eigenvalue."""
    last = len(A) - 1
    vectors: Float64Array = linalg.eigh(A, subset_by_index=(last, last))[1]
    return vectors[:, 0]
