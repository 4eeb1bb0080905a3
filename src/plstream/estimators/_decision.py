r"""From scores to classes: linear discriminant analysis of the scores, or the largest of the predicted responses.

Both are linear in the scores t, so both are a matrix and a row of numbers, ``t @ matrix + offset``, one number a class.

For LDA no row is looked at again. The responses are one for the rows of a class, so with :math:`n_k` rows of class k
the solution's loadings hold the mean :math:`\mu_k` of their scores,

.. math::
    n_k \mu_k = C_k^T R = \tau q_k ,

the scores have no covariance and the sums of squares :math:`\tau`, and so their scatter within classes is

.. math::
    \operatorname{diag}(\tau) - \sum_k n_k \mu_k \mu_k^T = \tau^{1/2} (I - D^T D) \tau^{1/2}, \quad
    D_k = \tau^{1/2} q_k / \sqrt{n_k} ,

and divided by the number of rows it is their covariance. The eigenvalues of :math:`I - D^T D` are the shares of the
variance that are within classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from .._core.errors import counted
from .._core.types import Float64Array
from ._solution import Solution

# Share of the variance in a direction that is within classes, at the least.
_LEAST_WITHIN = 1e-9
# The same, of the share that a sketch has lost: errors were up to that where classes lie far apart. Without it, models
# with too small a sketch mistook up to four rows in ten there.
_LEAST_WITHIN_OF_LOST = 0.03
# Numbers for classes that are held at a time, where only the largest is of interest.
_ENTRIES_AT_A_TIME = 1 << 20


@dataclass(frozen=True)
class Decision:
    """What scores say about classes.

    Attributes
    ----------
    matrix : ndarray of shape (n_components, n_classes)
        What scores are multiplied by.
    offset : ndarray of shape (n_classes,)
        What is added; minus infinity for a class that cannot be.
    of_likelihoods : bool
        Whether the result is the logarithm of a likelihood, but for what all classes have in common.
    """

    matrix: Float64Array
    offset: Float64Array
    of_likelihoods: bool

    def values(self, scores: Float64Array) -> Float64Array:
        """Return a number for each row and class."""
        return scores @ self.matrix + self.offset

    def largest(self, scores: Float64Array) -> NDArray[np.intp]:
        """Return the class of the largest number for each row."""
        step = max(1, _ENTRIES_AT_A_TIME // len(self.offset))
        parts = [self.values(scores[i : i + step]).argmax(axis=1) for i in range(0, len(scores), step)]
        return np.concatenate(parts)

    def log_probabilities(self, scores: Float64Array) -> Float64Array:
        """Return logarithms of the probabilities of the classes."""
        values = self.values(scores)
        if self.of_likelihoods:
            return log_softmax(values, axis=1)
        # Responses sum to one, so some are positive.
        shares = np.maximum(values, 0.0)
        with np.errstate(divide="ignore"):
            logarithms: Float64Array = np.log(shares / shares.sum(axis=1, keepdims=True))
        return logarithms


def against_the_first(values: Float64Array) -> Float64Array:
    """Return the values for the second of two classes less those for the first, or all values of more."""
    return values[:, 1] - values[:, 0] if values.shape[1] == 2 else values


def require_priors(priors: Any, n_classes: int) -> Float64Array:
    """Return prior probabilities as an array; raise ValueError unless they are probabilities, one for each class."""
    probabilities: Float64Array = np.asarray(priors, dtype=np.float64)
    if probabilities.shape != (n_classes,):
        raise ValueError(
            f"priors must be {counted(n_classes, 'number')}, one per class, not of shape {probabilities.shape}."
        )
    if not ((probabilities >= 0).all() and np.isclose(probabilities.sum(), 1.0)):
        raise ValueError("priors must be probabilities: zero or more, with a sum of one.")
    return probabilities


def log_priors(priors: Float64Array, *, present: NDArray[np.bool_]) -> Float64Array:
    """Return the logarithms of prior probabilities, minus infinity for classes that have no rows."""
    possible = np.where(present, priors, 0.0)
    if present.any() and not possible.any():
        raise ValueError("priors are zero for all classes that have rows: give one of these a probability.")
    with np.errstate(divide="ignore"):
        logarithms: Float64Array = np.log(possible)
    return logarithms


def by_response(solution: Solution, n_components: int) -> Decision:
    """Return the decision for the class of the largest predicted response."""
    loadings = solution.y_loadings[:, :n_components] * solution.y_scale[:, None]
    return Decision(loadings.T, solution.y_mean, of_likelihoods=False)


def by_lda(solution: Solution, n_components: int, priors: Float64Array) -> Decision:
    """Return the decision of linear discriminant analysis of the first scores, as scikit-learn's of these scores.

    Classes without rows are never decided for, whatever their prior probability.
    """
    counts = solution.y_mean * solution.weight
    present = counts > 0
    roots = np.sqrt(np.where(present, counts, 1.0))[:, None]
    D = solution.y_lengths[:, :n_components] * solution.y_scale[:, None] / roots
    left, s, right = np.linalg.svd(D, full_matrices=False)
    within = np.maximum(1.0 - s**2, least_within(solution))
    deviations = np.sqrt(solution.factors.score_squares[:n_components])
    inverse = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0)
    directions = solution.weight / roots * ((left * (s / within)) @ right)
    offset = log_priors(priors, present=present) - 0.5 * np.sum(directions * D, axis=1) / roots[:, 0]
    return Decision((directions * inverse).T, offset, of_likelihoods=True)


def least_within(solution: Solution) -> float:
    """Return the share of the variance in any direction of the scores that is taken to be within classes at the least.

    A sketch does not know all of the scatter, so what is left of it within classes may be too little, or negative.
    """
    return max(_LEAST_WITHIN, _LEAST_WITHIN_OF_LOST * (1.0 - solution.retained_variance))
