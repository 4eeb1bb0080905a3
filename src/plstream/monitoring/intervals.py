"""PredictionInterval: limits that contain the response of a new row with a given probability."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from .._core.types import Array, Float64Array
from ..estimators.base import PLSBase
from ..rows import by_blocks
from .limits import divisor_of
from .pipelines import last_step, rows_for_last_step, snapshot


class Interval(NamedTuple):
    """Limits of predictions, each with the shape of the predictions."""

    lower: Array
    upper: Array


class PredictionInterval:
    r"""Prediction intervals of a fitted PLS regression, from its cross-validated or training errors.

    For a new row with scores t and a model with n training rows, c components and training scores T,

    .. math::
        \hat y \pm t_{\nu} \, s \sqrt{\frac{1 + h}{1 + \bar h}}, \quad
        h = \frac1n + t^T (T^T T)^{-1} t ,

    with the leverage h, which grows with T2, and the quantile of Student's distribution with :math:`\nu` degrees of
    freedom. There are two sources of the standard error s:

    - a model chosen by cross-validation has the errors of held-out rows: s is their root mean square,
      :math:`\bar h = (c + 1)/n` is the average leverage of such rows, and :math:`\nu = n - c - 1`;
    - any other model has only the errors of its training rows, which are too small because of the degrees of freedom of
      the fit. Those of PLS are not known exactly, but are at most those of least squares, m for m features. So
      :math:`s^2 = \mathrm{RSS} / (n - m - 1)`, :math:`\bar h = 0` and :math:`\nu = n - m - 1`, which is conservative.
      With no more rows than features, no such bound exists, and the model is refused.

    Parameters
    ----------
    model : IncrementalPLS, IncrementalPLSCV, or a pipeline that ends with one
        A fitted model. Later training does not change the interval.
    level : float, default=0.95
        Probability that the value of a new row is between the limits.

    Attributes
    ----------
    standard_error_ : ndarray of shape (n_targets,)
        s, in the units of the targets.
    degrees_of_freedom_ : float
        :math:`\nu`.
    is_validated_ : bool
        Whether s is computed from held-out rows.

    Raises
    ------
    ValueError
        If the errors of the model are not known.

    Notes
    -----
    The intervals hold for rows from the same distribution as the training rows, with normal and independent errors of
    equal variance. T2 and Q show whether a row is from this distribution (:class:`Monitor`); if not, its interval is
    meaningless. Cross-validated errors are those of the best number of components, and thus slightly optimistic.
    Dependent rows, such as repeated measurements of a sample, must be in one group of the cross-validation.

    References
    ----------
    K. Faber and B. R. Kowalski, "Propagation of measurement errors for the validation of predictions obtained by
    principal component regression and partial least squares", Journal of Chemometrics 11, 1997.

    N. Kraemer and M. Sugiyama, "The degrees of freedom of partial least squares regression", Journal of the American
    Statistical Association 106, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import IncrementalPLSCV
    >>> from plstream.monitoring import PredictionInterval
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 20))
    >>> y = X[:, 0] - X[:, 1] + rng.normal(size=4000)
    >>> interval = PredictionInterval(IncrementalPLSCV().fit(X[:2000], y[:2000]), level=0.9)
    >>> lower, upper = interval.of(X[2000:])
    >>> float(np.mean((lower <= y[2000:]) & (y[2000:] <= upper)).round(2))
    0.9
    """

    def __init__(self, model: Any, *, level: float = 0.95) -> None:
        self.model: Any = snapshot(model)
        model = last_step(self.model)
        if not isinstance(model, PLSBase) or hasattr(model, "classes_"):
            instead = ", which predicts labels" if isinstance(model, PLSBase) else ""
            raise TypeError(f"Prediction intervals require an IncrementalPLS, not {type(model).__name__}{instead}.")
        if not 0 < level < 1:
            raise ValueError(f"level must be a probability between 0 and 1, not {level!r}.")
        self.level = level
        solution, state = model._solution(), model._fitted.current()
        n, c, m = state.effective_rows, solution.n_components, len(solution.x_mean)
        self.is_validated_ = hasattr(model, "cv_results_")
        if self.is_validated_:
            self.degrees_of_freedom_ = n - c - 1
            self._mean_leverage = (c + 1) / n
            rmse = np.asarray(model.cv_results_["mean_test_rmse"])
            standard_error = np.atleast_1d(rmse[model.n_components_ - 1])
        else:
            self.degrees_of_freedom_ = n - m - 1
            self._mean_leverage = 0.0
            # Roots, because squares of large units overflow.
            deviation = np.sqrt(state.y_squares)
            known = np.where(deviation > 0, deviation, 1.0)
            lengths = solution.y_lengths[:, :c] * (solution.y_scale / known)[:, None]
            shares = np.clip(1 - np.square(lengths).sum(axis=1), 0, 1)
            factor = (n - 1) / self.degrees_of_freedom_ if self.degrees_of_freedom_ > 0 else np.nan
            standard_error = deviation * np.sqrt(shares * factor / divisor_of(state))
        # The number of rows is a sum of weights, and may be off by rounding.
        if self.degrees_of_freedom_ < 0.5 or not np.isfinite(standard_error).all():
            raise ValueError(
                f"The errors of a model of {n:,.0f} rows and {m:,} features are unknown: fit IncrementalPLSCV, which "
                "computes errors of held-out rows, or use more rows than features."
            )
        self.standard_error_: Float64Array = standard_error
        # For rows of typical weight.
        self._score_lengths = np.sqrt(solution.factors.score_squares[:c] / (state.typical_weight or 1.0))
        self._n_rows = n

    def of(self, X: Any) -> Interval:
        """Return the limits of every row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.

        Returns
        -------
        interval : Interval
            With the arrays ``lower`` and ``upper``, each of the same shape as from ``predict``.
        """
        c = len(self._score_lengths)
        model = last_step(self.model)

        def both(rows: Any) -> Array:
            scores = np.asarray(model.transform(rows), dtype=np.float64)[:, :c]
            leverage = 1 / self._n_rows + np.square(scores / self._score_lengths).sum(axis=1)
            factor = stats.t.ppf((1 + self.level) / 2, self.degrees_of_freedom_)
            width = factor * np.sqrt((1 + leverage) / (1 + self._mean_leverage))[:, None] * self.standard_error_
            predicted = np.asarray(model.predict(rows), dtype=np.float64)
            width = width.reshape(predicted.shape)
            return np.stack([predicted - width, predicted + width], axis=1)

        limits = by_blocks(model, rows_for_last_step(self.model, X), both)
        return Interval(limits[:, 0], limits[:, 1])
