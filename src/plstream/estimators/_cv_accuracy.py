r"""Expected accuracy on held-out rows, from their state alone.

The model of the other rows decides by linear discriminant analysis: by numbers for the classes that are linear in the
scores t, :math:`a_k^T t + b_k`. The state holds, with the rotations R, the means :math:`m_k` of the scores of its own
rows by class and their covariance S within classes,

.. math::
    m_k = R^T (\bar x - \bar x_{\text{model}}) + R^T C_k / n_k , \quad
    n S = R^T G R - \sum_k R^T C_k C_k^T R / n_k .

A row of class k is mistaken for one of class j where :math:`(a_k - a_j)^T t + b_k - b_j` is negative. It is taken to be
normal, with the mean that :math:`m_k` gives and the variance :math:`(a_k - a_j)^T S (a_k - a_j)`, so that has a
probability :math:`p_{kj}`. It is taken to be classified correctly with probability

.. math:: \prod_{j \ne k} (1 - p_{kj}) ,

as if the mistakes were independent of each other. That is exact for two classes; of many it expects too little, for
mistakes come together, but then it does so for all numbers of components. All numbers take one product with G for each
component, and some operations for every pair of classes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from .._core.types import Float64Array
from ..states import Gram, Moments, Sketch
from ._decision import Decision, by_lda, least_within
from ._solution import Solution

# Pairs of classes that are looked at together.
_PAIRS_AT_A_TIME = 1 << 16
# Variances of differences are at least this share of those of the numbers themselves, because smaller ones are rounding
# errors.
_LEAST_VARIANCE = 1e-14


def expected_accuracies(solution: Solution, training: Gram | Sketch, held_out: Gram | Sketch) -> Float64Array:
    """Return the share of rows that models of the first 1, 2, ... components are expected to classify correctly.

    Parameters
    ----------
    solution : Solution
        The model of the training rows.
    training, held_out : Gram or Sketch
        States of the training rows, and of those that the accuracy is that of.

    Returns
    -------
    accuracies : ndarray of shape (c,)
        For as many components as the solution has, but one at the least.
    """
    rotations = unit_rotations(solution)
    products = rotations.T @ np.column_stack([held_out.apply(column)[0] for column in rotations.T])
    sums = rotations.T @ held_out.cross
    return accuracies_of_scores(solution, training, held_out, sums, products)


def unit_rotations(solution: Solution) -> Float64Array:
    """Return rotations in units in which the sum of squares of every score is one, among the training rows."""
    c = max(1, solution.n_components)
    deviations = np.sqrt(solution.factors.score_squares[:c])
    return solution.projection(c) * np.divide(1.0, deviations, out=np.zeros(c), where=deviations > 0)


def accuracies_of_scores(
    solution: Solution, training: Moments, held_out: Moments, sums: Float64Array, products: Float64Array
) -> Float64Array:
    """Return expected accuracies as :func:`expected_accuracies` does, from scores.

    ``sums`` are those of the scores of held-out rows by class, of shape (c, n_classes), and ``products`` the sums of
    their products, of shape (c, c), both of rows centred on their own mean and by :func:`unit_rotations`.
    """
    c = max(1, solution.n_components)
    deviations = np.sqrt(solution.factors.score_squares[:c])
    counts = np.maximum(held_out.y_mean, 0.0) * held_out.weight
    classes = np.flatnonzero(counts)
    counts = counts[classes]
    means = sums[:, classes] / counts
    within = (products - (means * counts) @ means.T) / held_out.weight
    values, vectors = np.linalg.eigh((within + within.T) / 2)
    # Of a sketch, the difference may have become negative.
    values = np.maximum(values, least_within(solution) / training.weight)
    spread = vectors * np.sqrt(values)
    means += (unit_rotations(solution).T @ training.differences(held_out)[0])[:, None]
    accuracies = np.empty(c)
    for i in range(1, c + 1):
        decision = by_lda(solution, i, solution.y_mean)
        matrix = decision.matrix * deviations[:i, None]
        correct = _probability_correct(decision, means[:i].T @ matrix, spread[:i].T @ matrix, classes)
        accuracies[i - 1] = counts @ correct / counts.sum()
    return accuracies


def _probability_correct(
    decision: Decision, means: Float64Array, spread: Float64Array, classes: NDArray[np.intp]
) -> Float64Array:
    """Return the probabilities that rows of some classes are classified correctly.

    ``means`` are those of the numbers for all classes without the offsets, a row for each of the classes, and the
    columns of ``spread`` have their covariances as products.
    """
    # A class that the model knows no rows of is never decided for.
    known = np.isfinite(decision.offset)
    offset = np.where(known, decision.offset, 0.0)
    squares = np.einsum("ij,ij->j", spread, spread)
    chances = np.zeros(len(classes))
    step = max(1, _PAIRS_AT_A_TIME // len(offset))
    for start in range(0, len(classes), step):
        rows = slice(start, start + step)
        own = classes[rows]
        values = means[rows] + offset
        margins = np.take_along_axis(values, own[:, None], axis=1) - values
        both = squares[own][:, None] + squares
        variances = np.maximum(both - 2 * spread[:, own].T @ spread, _LEAST_VARIANCE * both)
        z = margins / np.sqrt(np.maximum(variances, np.finfo(np.float64).tiny))
        z[:, ~known] = np.inf
        z[np.arange(len(own)), own] = np.inf
        chances[rows] = np.where(known[own], np.exp(log_ndtr(z).sum(axis=1)), 0.0)
    return chances
