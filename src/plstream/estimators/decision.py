r"""Decision rules: linear discriminant analysis of the scores, or the largest predicted response.

Both are linear in the scores t, with one value per class: ``t @ matrix + offset``.

LDA needs no further read. Responses are class indicators, so with :math:`n_k` rows of class k the loadings of the
solution give the mean :math:`\mu_k` of their scores,

.. math::
    n_k \mu_k = C_k^T R = \tau q_k ,

the scores are uncorrelated with sums of squares :math:`\tau`, so their within-class scatter is

.. math::
    \operatorname{diag}(\tau) - \sum_k n_k \mu_k \mu_k^T = \tau^{1/2} (I - D^T D) \tau^{1/2}, \quad
    D_k = \tau^{1/2} q_k / \sqrt{n_k} ,

which, divided by the number of rows, is their covariance. The eigenvalues of :math:`I - D^T D` are the within-class
shares of the variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from .._core.errors import counted
from .._core.types import Float64Array
from ..solvers.solution import Solution

# Minimum within-class share of the variance in any direction.
_LEAST_WITHIN = 1e-9
# The same, relative to the share that a sketch has discarded: the largest error seen with well separated classes.
# Without this bound, models with too small a sketch misclassified up to 40 % of the rows.
_LEAST_WITHIN_OF_LOST = 0.03
# Number of values held at a time if only the largest class is needed.
_ENTRIES_AT_A_TIME = 1 << 20


@dataclass(frozen=True)
class Decision:
    """A decision rule: ``scores @ matrix + offset`` is one value per class."""

    matrix: Float64Array
    offset: Float64Array
    """Minus infinity for classes that are never predicted."""
    of_likelihoods: bool
    """Whether values are log-likelihoods, up to a constant shared by all classes."""

    def values(self, scores: Float64Array) -> Float64Array:
        """Return the value of each row and class."""
        return scores @ self.matrix + self.offset

    def largest(self, scores: Float64Array) -> NDArray[np.intp]:
        """Return the class index of the largest value for each row."""
        step = max(1, _ENTRIES_AT_A_TIME // len(self.offset))
        parts = [self.values(scores[i : i + step]).argmax(axis=1) for i in range(0, len(scores), step)]
        return np.concatenate(parts)

    def log_probabilities(self, scores: Float64Array) -> Float64Array:
        """Return the logarithms of the class probabilities."""
        values = self.values(scores)
        if self.of_likelihoods:
            return log_softmax(values, axis=1)
        # Responses sum to one, so some are positive.
        shares = np.maximum(values, 0.0)
        with np.errstate(divide="ignore"):
            logarithms: Float64Array = np.log(shares / shares.sum(axis=1, keepdims=True))
        return logarithms


def against_the_first(values: Float64Array) -> Float64Array:
    """Return the values of the second class minus those of the first; with more than two classes, all values."""
    return values[:, 1] - values[:, 0] if values.shape[1] == 2 else values


def require_priors(priors: Any, n_classes: int) -> Float64Array:
    """Return prior probabilities as an array; raise ValueError unless they are one probability per class."""
    probabilities: Float64Array = np.asarray(priors, dtype=np.float64)
    if probabilities.shape != (n_classes,):
        raise ValueError(
            f"priors must be {counted(n_classes, 'number')}, one per class, not of shape {probabilities.shape}."
        )
    if not ((probabilities >= 0).all() and np.isclose(probabilities.sum(), 1.0)):
        raise ValueError("priors must be probabilities: zero or more, with a sum of one.")
    return probabilities


def log_priors(priors: Float64Array, *, present: NDArray[np.bool_]) -> Float64Array:
    """Return the logarithms of prior probabilities, minus infinity for classes without rows."""
    possible = np.where(present, priors, 0.0)
    if present.any() and not possible.any():
        raise ValueError(
            "priors are zero for all classes that have rows: set at least one of them to a positive probability."
        )
    with np.errstate(divide="ignore"):
        logarithms: Float64Array = np.log(possible)
    return logarithms


def by_response(solution: Solution, n_components: int) -> Decision:
    """Return the rule that predicts the class of the largest response."""
    loadings = solution.y_loadings[:, :n_components] * solution.y_scale[:, None]
    return Decision(loadings.T, solution.y_mean, of_likelihoods=False)


def by_lda(solution: Solution, n_components: int, priors: Float64Array) -> Decision:
    """Return linear discriminant analysis of the first scores, equal to scikit-learn's on these scores.

    Classes without rows are never predicted, whatever their prior probability.
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
    """Return the minimum within-class share of the variance in any direction of the scores.

    A sketch knows the scatter only approximately, so the within-class part may be too small, or negative.
    """
    return max(_LEAST_WITHIN, _LEAST_WITHIN_OF_LOST * (1.0 - solution.retained_variance))
