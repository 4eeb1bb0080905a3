"""IncrementalPLSCV and IncrementalPLSClassifierCV: number of components chosen by cross-validation."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils.validation import check_is_fitted

from .._core.projection import centred_product
from .._core.schema import Object, OrNone, stored
from .._core.types import Float64Array
from .._core.validation import located_errors
from ..rows import ArrayRows
from .classifier import ClassifierMethods
from .cv_base import CrossValidated
from .cv_errors import ClassCrossValidation, CrossValidation
from .cv_fitted import FittedFolds
from .decision import by_lda
from .heads import ClassifierHead, RegressionHead, open_labels, open_values
from .regression import RegressionMethods


@stored(
    {
        "_fitted": Object(
            FittedFolds,
            given={
                "head": Object(RegressionHead, q="q"),
                "validation": OrNone(Object(CrossValidation, c="c", q="q")),
            },
            m="m",
        )
    }
)
class IncrementalPLSCV(RegressionMethods, CrossValidated):
    """IncrementalPLS with the number of components chosen by cross-validation.

    ``fit`` computes the same errors as refitting for each fold and number of components, but faster: the models of all
    folds are computed together, from Gram matrices of the folds or from shared reads of the data, whichever is faster
    for the shape of X.

    In a stream, rows are assigned to folds as they arrive, and each fold keeps its own state. The model of all folds
    but one is solved from their merged states, and its error on the held-out fold follows from the state of that fold.
    The cross-validated errors of all numbers of components thus come from the same single pass as the final model, in
    memory that does not depend on the number of rows. With the solver "gram" they are exact as well.

    Once fitted, it behaves like an :class:`IncrementalPLS` fitted to all rows with the chosen number of components. For
    labels, use :class:`IncrementalPLSClassifierCV`.

    Parameters
    ----------
    max_components : int, default=10
        The largest number of components to try. Past the rank of the data, the last error is repeated.
    cv : int, splitter, iterable of splits, or array of int, default=5
        Number of folds. For ``fit`` of arrays also one of scikit-learn's splitters, pairs of training and test rows, or
        the number of the fold of each row; the test sets must be a partition of the rows.
    rule : {"min", "one-se"}, default="min"
        How the number is chosen: the minimum of the error, or the smallest number whose error is within one standard
        error of it.
    block_length : int, default=1
        Number of consecutive rows that stay in one fold. For time series, use many times the correlation length.
    scale : bool, default=True
        Whether to divide each column of X and y by its standard deviation, which is that of the training rows in each
        fold. Columns are always centred.
    solver : {"auto", "gram", "sketch"}, default="auto"
        How X is summarised. "auto" is exact in ``fit`` of data that can be read again. For streams and Dask
        collections, it is "gram" for up to 2,048 features, and "sketch" for more. See Notes.
    sketch_size : int, default=None
        Number of rows that "sketch" keeps per fold. By default 128, or 24 for each of ``max_components`` if that is
        more.
    batch_size : int, default=None
        Number of rows read at a time. By default 4 to 32 MiB.
    missing : {"error", "model"}, default="error"
        What to do with NaN. "error" raises ValueError; "model" completes missing values of X by the factor model of
        ``max_components`` components, in training and in use. Rows without any response are left out. See Notes.

    Attributes
    ----------
    n_components_ : int
        The chosen number of components.
    best_score_ : float
        Its cross-validated score.
    cv_results_ : dict of str to ndarray
        Arrays with one entry per number of components and, where stated, one column per response if y has two
        dimensions:

        - ``n_components``: 1, 2, ..., ``max_components``.
        - ``mean_test_score``: :math:`1 - PRESS / SS`, where PRESS is the sum of the squared errors over all rows, and
          SS that of the squared deviations of y from its mean. Several responses are summed, each divided by its
          variance if ``scale``.
        - ``split0_test_score``, ...: the same for one fold, relative to the variance of all rows; NaN for folds
          without rows.
        - ``se_test_score``: standard error of the mean, from the weighted differences between folds.
        - ``mean_test_rmse``, ``split0_test_rmse``, ... (one column per response): root mean squared errors in the
          units of y, of all rows (RMSECV) and of one fold.
        - ``q2`` (one column per response): :math:`1 - PRESS / SS`.
    coef_, x_weights_, vip_, ... : ndarray
        All other attributes are those of :class:`IncrementalPLS`.

    See Also
    --------
    IncrementalPLS : The same for a given number of components.
    IncrementalPLSClassifierCV : The same for labels.
    sklearn.model_selection.GridSearchCV : A fit for each fold and each number of components.

    Notes
    -----
    The fold of a row depends only on its position since the first call, not on how rows are divided among calls. Of
    every ``cv`` consecutive rows (or blocks of ``block_length`` rows), one goes to each fold, in an order given by a
    hash (SplitMix64) of the row numbers. Rows of weight zero are not counted. With ``groups``, the fold of a row is
    given by a hash of its group (SplitMix64 of a number, or of the BLAKE2b of a string), so that no group is in two
    folds: this requires many more groups than folds. With ``merge``, rows of both models keep their folds.

    The type of a group may differ between calls. Numbers of equal value are one group, compared exactly for integers of
    any size, and so is the string of an integer: 1, 1.0, True, "1" and "01", because blocks of a file may differ in
    whether an id is read as a number. Other strings are one group if they are equal, as str or as UTF-8 bytes. Dates
    and times are one group if they are the same nanosecond, in any unit and time zone, by default UTC.

    After ``fit``, ``partial_fit`` and ``merge`` continue with states of the folds. These are exact if ``fit`` used Gram
    matrices (``solver_`` is "gram"), or if the data takes up to 32 MiB, all of which is kept. Otherwise they are
    sketches that preserve only the first ``max_components`` components of the model of all rows: if many rows will
    follow, fit with ``solver="gram"`` or "sketch".

    With the solver "sketch" the errors are approximate, like the models: variance that the sketch of a fold discards is
    missing both in training and in validation.

    Squared errors are differences of squares of y. Errors below about 1e-7 of the standard deviation of y are dominated
    by rounding, and numbers of components that differ only by rounding count as equally good.

    With ``missing="model"`` and missing values, ``fit`` of data that can be read again fits one model per fold, in
    rounds as in :class:`IncrementalPLS`, and completes held-out rows by the model of the other folds, from X alone: no
    model depends on rows of its fold. Once fitted, rows are completed by the model of ``max_components`` components. In
    a stream, the rows of each fold are completed by the model of the same fold, from X alone. Without missing values,
    results are the same as with "error".

    A model file cannot hold a splitter: before :func:`plstream.save`, set ``cv`` to the number of folds.

    Memory and time of ``partial_fit`` are those of IncrementalPLS, with ``cv`` states. The models of all folds are
    solved when a result is first needed.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import IncrementalPLSCV
    >>> rng = np.random.default_rng(0)
    >>> factors = rng.normal(size=(500, 3)) * [3.0, 2.0, 1.0]
    >>> X = factors @ rng.normal(size=(3, 50)) + 0.1 * rng.normal(size=(500, 50))
    >>> y = factors.sum(axis=1) + 0.5 * rng.normal(size=500)
    >>> model = IncrementalPLSCV(max_components=5)
    >>> for start in range(0, 500, 100):
    ...     model = model.partial_fit(X[start : start + 100], y[start : start + 100])
    >>> model.n_components_
    3
    >>> model.cv_results_["mean_test_rmse"].round(3)
    array([...])
    >>> model.transform(X).shape
    (500, 3)
    """

    _open = staticmethod(partial(open_values, instead="IncrementalPLSClassifierCV"))

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        folds: Any = None,
    ) -> Self:
        """Add rows to the model. A call that fails leaves the model unchanged.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The new rows, one or more.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or Dask collection, default=None
            Their responses. None if X is a source, which provides them.
        sample_weight : array-like of shape (n_samples,), or Dask collection, default=None
            Their weights.
        groups : array-like of shape (n_samples,), or Dask collection, default=None
            Their groups, in all calls or in none. A group may occur in several calls.
        folds : array-like of shape (n_samples,), or Dask collection, default=None
            Their folds, numbers from 0 to ``cv - 1``, in all calls or in none.

        Returns
        -------
        self : IncrementalPLSCV
        """
        return self._learn_folds((X, y, sample_weight), groups, folds)


@stored(
    {
        "_fitted": Object(
            FittedFolds,
            given={
                "head": Object(ClassifierHead, q="q"),
                "validation": OrNone(Object(ClassCrossValidation, c="c")),
            },
            m="m",
        )
    }
)
class IncrementalPLSClassifierCV(ClassifierMethods, CrossValidated):
    """IncrementalPLSClassifier with the number of components chosen by cross-validation.

    Like :class:`IncrementalPLSCV`, for labels. Once fitted, it behaves like an :class:`IncrementalPLSClassifier` fitted
    to all rows with the chosen number of components and ``decision="lda"``.

    Parameters
    ----------
    max_components : int, default=10
        The largest number of components to try. Past the rank of the data, the last error is repeated.
    cv : int, splitter, iterable of splits, or array of int, default=5
        Number of folds. For ``fit`` of arrays also one of scikit-learn's splitters, pairs of training and test rows, or
        the number of the fold of each row; the test sets must be a partition of the rows.
    rule : {"min", "one-se"}, default="min"
        How the number is chosen: the minimum of the error, or the smallest number whose error is within one standard
        error of it.
    block_length : int, default=1
        Number of consecutive rows that stay in one fold. For time series, use many times the correlation length.
    scale : bool, default=True
        Whether to divide each column of X and y by its standard deviation, which is that of the training rows in each
        fold. Columns are always centred.
    solver : {"auto", "gram", "sketch"}, default="auto"
        How X is summarised. "auto" is exact in ``fit`` of data that can be read again. For streams and Dask
        collections, it is "gram" for up to 2,048 features, and "sketch" for more. See Notes.
    sketch_size : int, default=None
        Number of rows that "sketch" keeps per fold. By default 128, or 24 for each of ``max_components`` if that is
        more.
    batch_size : int, default=None
        Number of rows read at a time. By default 4 to 32 MiB.
    missing : {"error", "model"}, default="error"
        What to do with NaN. "error" raises ValueError; "model" completes missing values of X by the factor model of
        ``max_components`` components, in training and in use.

    Attributes
    ----------
    n_components_ : int
        The chosen number of components.
    best_score_ : float
        Its cross-validated score.
    cv_results_ : dict of str to ndarray
        Arrays with one entry per number of components:

        - ``n_components``: 1, 2, ..., ``max_components``.
        - ``mean_test_score``: expected accuracy, see Notes.
        - ``split0_test_score``, ...: the same for one fold; NaN for folds without rows.
        - ``se_test_score``: standard error of the mean, from the weighted differences between folds.
    classes_, class_count_, class_prior_ : ndarray of shape (n_classes,)
        The labels in ascending order, their number of rows, and their shares.
    coef_, x_weights_, vip_, ... : ndarray
        All other attributes are those of :class:`IncrementalPLSClassifier`.

    See Also
    --------
    IncrementalPLSClassifier : The same for a given number of components.
    IncrementalPLSCV : The same for numeric responses. Its Notes describe how rows are assigned to folds.

    Notes
    -----
    The state of a fold does not tell which of its rows would be classified correctly, but it gives the class means of
    the scores by the model of the other folds, and the covariance around them. The score is the expected accuracy for
    normal distributions with these means and this covariance. For exact accuracies of all numbers of components,
    ``held_out_accuracy`` reads the rows once more.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from plstream import IncrementalPLSClassifierCV
    >>> X, y = load_digits(return_X_y=True)
    >>> model = IncrementalPLSClassifierCV(max_components=25).fit(X, y)
    >>> bool(15 <= model.n_components_ <= 25)
    True
    >>> model.predict(X[:3])
    array([0, 1, 2])
    """

    _open = staticmethod(open_labels)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        folds: Any = None,
    ) -> Self:
        """Add rows to the model. A call that fails leaves the model unchanged.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The new rows, one or more.
        y : array-like of shape (n_samples,), or Dask collection, default=None
            Their labels. None if X is a source, which provides them.
        classes : array-like of shape (n_classes,), default=None
            All labels that will occur, in the first call, see :class:`IncrementalPLSClassifier`.
        sample_weight : array-like of shape (n_samples,), or Dask collection, default=None
            Their weights.
        groups : array-like of shape (n_samples,), or Dask collection, default=None
            Their groups, in all calls or in none. A group may occur in several calls.
        folds : array-like of shape (n_samples,), or Dask collection, default=None
            Their folds, numbers from 0 to ``cv - 1``, in all calls or in none.

        Returns
        -------
        self : IncrementalPLSClassifierCV
        """
        return self._learn_folds((X, y, sample_weight), groups, folds, classes=classes)

    def held_out_accuracy(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None, folds: Any = None
    ) -> Float64Array:
        """Return the cross-validated accuracies of all numbers of components, from one more read of the rows.

        Unlike the expected accuracies in ``cv_results_``, they are exact: each row is predicted by the model of the
        other folds.

        Parameters
        ----------
        X, y, sample_weight, groups, folds
            All training data, as in ``predict_held_out``.

        Returns
        -------
        accuracies : ndarray of shape (max_components,)
            Shares of the rows, or of their weight, for 1, 2, ... components.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_digits
        >>> from plstream import IncrementalPLSClassifierCV
        >>> X, y = load_digits(return_X_y=True)
        >>> model = IncrementalPLSClassifierCV(max_components=25).fit(X, y)
        >>> accuracies = model.held_out_accuracy(X, y)
        >>> bool(accuracies.max() - accuracies[model.n_components_ - 1] < 0.005)
        True
        """
        check_is_fitted(self)
        fitted = self._fitted
        most = fitted.n_components
        assignment = self._assignment_again(X, groups, folds)
        models = fitted.models_of_others(most)
        completing = fitted.completing_of_others() if self.missing == "model" else None
        decisions = [[by_lda(model, i, model.y_mean) for i in range(1, most + 1)] for model in models]
        right, total = np.zeros(most), 0.0
        opened = open_labels(self, X, y, sample_weight, fitted.head, batch_size=self.batch_size)
        with opened as (rows, _), located_errors(rows, self):
            rows.allow_missing = self.missing == "model"
            if isinstance(rows, ArrayRows):
                assignment = assignment.present(rows.X, rows.weight)
            for block, numbers in assignment.blocks(rows.blocks(), labelled=False):
                weight = block.weights
                total += weight.sum()
                for fold in np.unique(numbers):
                    chosen = numbers == fold
                    part = block.X[chosen] if completing is None else completing[fold].completed(block.X[chosen])
                    scores = centred_product(part, models[fold].x_mean, models[fold].projection(None))
                    for i, decision in enumerate(decisions[fold]):
                        found = decision.largest(scores[:, : i + 1])
                        right[i] += weight[chosen][found == block.classes[chosen]].sum()
        return right / total
