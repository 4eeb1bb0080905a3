r"""Expected accuracy on held-out rows, computed from their summary state alone.

The model of the other rows decides by linear discriminant analysis, with one value per class that is linear in the
scores t, :math:`a_k^T t + b_k`. With the rotations R, the state of the held-out rows gives the class means :math:`m_k`
of their scores and the within-class covariance S,

.. math::
    m_k = R^T (\bar x - \bar x_{\text{model}}) + R^T C_k / n_k , \quad
    n S = R^T G R - \sum_k R^T C_k C_k^T R / n_k .

A row of class k is misclassified as class j if :math:`(a_k - a_j)^T t + b_k - b_j` is negative. This difference is
assumed to be normal, with the mean given by :math:`m_k` and the variance :math:`(a_k - a_j)^T S (a_k - a_j)`, which
determines the probability :math:`p_{kj}` of the error. A row is classified correctly with probability

.. math:: \prod_{j \ne k} (1 - p_{kj}) ,

as if the errors were independent. This is exact for two classes. For more classes the estimate is too low, for every
number of components, because the errors are correlated. The cost is one product with G per component, and a few
operations per pair of classes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from .._core.types import Float64Array
from ..solvers.solution import Solution
from ..states import Gram, Moments, Sketch
from .decision import Decision, by_lda, least_within

# Number of pairs of classes processed at a time.
_PAIRS_AT_A_TIME = 1 << 16
# Minimum variance of a difference relative to that of the values; smaller ones are rounding errors.
_LEAST_VARIANCE = 1e-14


def expected_accuracies(solution: Solution, training: Gram | Sketch, held_out: Gram | Sketch) -> Float64Array:
    """Return the expected accuracies of the models with 1, 2, ... components."""
    rotations = unit_rotations(solution)
    products = rotations.T @ np.column_stack([held_out.apply(column)[0] for column in rotations.T])
    sums = rotations.T @ held_out.cross
    return accuracies_of_scores(solution, training, held_out, sums, products)


def unit_rotations(solution: Solution) -> Float64Array:
    """Return rotations scaled such that the sum of squares of each score is one for the training rows."""
    c = max(1, solution.n_components)
    deviations = np.sqrt(solution.factors.score_squares[:c])
    return solution.projection(c) * np.divide(1.0, deviations, out=np.zeros(c), where=deviations > 0)


def accuracies_of_scores(
    solution: Solution, training: Moments, held_out: Moments, sums: Float64Array, products: Float64Array
) -> Float64Array:
    """Return the expected accuracies, given sums of held-out scores by :func:`unit_rotations`, centred on their mean.

    ``sums`` are the sums of the scores by class, of shape (c, n_classes), and ``products`` the sums of their products.
    """
    c = max(1, solution.n_components)
    deviations = np.sqrt(solution.factors.score_squares[:c])
    counts = np.maximum(held_out.y_mean, 0.0) * held_out.weight
    classes = np.flatnonzero(counts)
    counts = counts[classes]
    means = sums[:, classes] / counts
    within = (products - (means * counts) @ means.T) / held_out.weight
    values, vectors = np.linalg.eigh((within + within.T) / 2)
    # With a sketch, the difference may be negative.
    values = np.maximum(values, least_within(solution) / training.weight)
    spread = vectors * np.sqrt(values)
    means += (unit_rotations(solution).T @ training.mean_differences(held_out)[0])[:, None]
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
    """Return the probabilities that rows of the given classes are classified correctly.

    Row k of ``means`` holds the mean decision values of the rows of class k, without the offsets. Products of columns
    of ``spread`` are the covariances of these values.
    """
    # A class without training rows is never predicted.
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
