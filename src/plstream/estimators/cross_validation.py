"""IncrementalPLSCV and IncrementalPLSClassifierCV: the number of components chosen by cross-validation."""

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
from ._cross_validated import CrossValidated
from ._cross_validation import ClassCrossValidation, CrossValidation
from ._decision import by_lda
from ._fitted_folds import FittedFolds
from ._heads import ClassifierHead, RegressionHead, open_labels, open_values
from .classifier import ClassifierMethods
from .regression import RegressionMethods
from .training import merge_models


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

    ``fit`` computes the errors of fitting and predicting again for each fold and number of components, exactly and
    without these fits: the models of all folds are made together, from Gram matrices of the folds or from reads of the
    data that they share, whichever is faster for the shape of X.

    In a stream, rows are assigned to folds as they come, and each fold keeps a state of its own. A model of all folds
    but one needs no other rows, because states can be merged, and its error on the fold that was held out needs no rows
    either: it follows from the state of that fold. So the cross-validated errors of all numbers of components come from
    the same single pass that the final model is made from, and in memory that does not depend on the number of rows.
    With the solver "gram" they are exact as well.

    Once fitted, it is an :class:`IncrementalPLS` of all rows with the chosen number of components. For labels there is
    :class:`IncrementalPLSClassifierCV`.

    Parameters
    ----------
    max_components : int, default=10
        The largest number of components to try. Where the data has fewer, errors of the others repeat the last one.
    cv : int, splitter, iterable of splits, or array of int, default=5
        Number of folds. For ``fit`` of arrays also one of scikit-learn's splitters, pairs of training and test rows, or
        the number of the fold of each row; the test sets must be a partition of the rows.
    rule : {"min", "one-se"}, default="min"
        Which number of components is chosen: the one of the least error, or the least whose error is within a
        standard error of that.
    block_length : int, default=1
        Rows that follow each other and stay together in a fold. For series in time, take many times as many as it takes
        for what a row says of the next ones to fade.
    scale : bool, default=True
        Whether to divide each column of X and y by its standard deviation, which is that of the training rows in each
        fold. Columns are always centred.
    solver : {"auto", "gram", "sketch"}, default="auto"
        How X is condensed. "auto" is exact in ``fit`` of data that can be read again. Of streams, and of Dask
        collections, it is "gram" for up to 2,048 features, and "sketch" for more. See Notes.
    sketch_size : int, default=None
        Rows that "sketch" keeps for each fold. By default 128, or 24 for each of ``max_components`` if that is more.
    batch_size : int, default=None
        Rows read at a time. By default as many as take 4 to 32 MiB.

    Attributes
    ----------
    n_components_ : int
        The number of components that was chosen.
    best_score_ : float
        Its cross-validated score.
    cv_results_ : dict of str to ndarray
        With an entry for each number of components in every array, and for y with two dimensions a column for each
        response where it says so:

        - ``n_components``: 1, 2, ..., ``max_components``.
        - ``mean_test_score``: :math:`1 - PRESS / SS`, the sums over all rows of the squared errors and of the squared
          deviations of y from its mean. Several responses are added up, each divided by its variance if ``scale``.
        - ``split0_test_score``, ...: the same of one fold, relative to the variance of all rows. Folds that have no
          rows have NaN.
        - ``se_test_score``: standard error of the mean, from how the folds differ, each with its weight.
        - ``mean_test_rmse``, ``split0_test_rmse``, ... (a column for each response): root mean squared errors in the
          units of y, of all rows (RMSECV) and of one fold.
        - ``q2`` (a column for each response): :math:`1 - PRESS / SS`.
    coef_, x_weights_, vip_, ... : ndarray
        All other attributes are those of :class:`IncrementalPLS`.

    See Also
    --------
    IncrementalPLS : The same for a given number of components.
    IncrementalPLSClassifierCV : The same for labels.
    sklearn.model_selection.GridSearchCV : A fit for each fold and each number of components.

    Notes
    -----
    Which fold a row is in depends on its number since the first call alone, and not on how rows are divided among
    calls. Of every ``cv`` rows (or blocks of ``block_length`` rows) that follow each other, one goes to each fold, in
    an order given by a hash (SplitMix64) of their numbers. Rows of weight zero are not counted. With ``groups``, rows
    go to the fold of a hash of their group (SplitMix64 of a number, or of the BLAKE2b of a text), so that no group is
    in two folds: this takes many more groups than folds. ``merge`` adds the rows of a fold to those of the same fold;
    rows of the other model stay in the folds that they had there.

    The same group may come in other types in other calls. Numbers of equal value are one group, integers of any size
    exactly, and so is the text of an integer: 1, 1.0, True, "1" and "01", because blocks of a file may differ in
    whether an id is read as a number. Other text is one group if it is equal, as str or as UTF-8 bytes. Dates and times
    are one group if they are the same nanosecond, whatever their unit and time zone; without a time zone they are in
    UTC.

    After ``fit``, ``partial_fit`` and ``merge`` continue with states of the folds. These are exact where ``fit`` used
    Gram matrices (``solver_`` is "gram"), and where the data takes up to 32 MiB, all of which is kept. Otherwise they
    are sketches that know the first ``max_components`` components of the model of all rows, and no more: if many rows
    are to follow, fit with ``solver="gram"`` or "sketch".

    With the solver "sketch" the errors are approximate, as are the models: what a sketch lets go of a fold is missing
    both where the fold trains models and where it is held out.

    Squared errors come from squares of y. Where the error is less than about 1e-7 of the standard deviation of y, its
    digits are rounding errors, and numbers of components that differ only so count as equally good.

    A model file cannot hold a splitter: before :func:`plstream.save`, set ``cv`` to the number of folds.

    Memory and time of ``partial_fit`` are those of IncrementalPLS, but for ``cv`` states. The models of all folds are
    solved when a result is first asked for.

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

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None, folds: Any = None) -> Self:
        """Fit the model to X and y, forgetting what it was before.

        With ``solver="auto"``, data that can be read again is read once or twice by Gram matrices, or else
        ``max_components + 3`` times. Dask collections, and sources that cannot be read again, are read once.

        Parameters
        ----------
        X : array-like, sparse matrix or memory map of shape (n_samples, n_features), source or Dask collection
            The rows. Files of any size are opened by :func:`plstream.open_source`.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or Dask collection, default=None
            The responses. None if X is a source, which has them.
        sample_weight : array-like of shape (n_samples,), or Dask collection, default=None
            Weights of the rows, in the models and in their errors.
        groups : array-like of shape (n_samples,), or Dask collection, default=None
            Groups of rows, numbers, text or dates, that stay together in a fold. Every row needs one: None, NaN, NaT
            and masked entries are refused. What counts as the same group is in Notes.
        folds : array-like of shape (n_samples,), or Dask collection, default=None
            The folds of the rows, numbers from 0 to ``cv - 1``.

        Returns
        -------
        self : IncrementalPLSCV
        """
        opened = partial(open_values, instead="IncrementalPLSClassifierCV")
        return self._fit_folds(opened, (X, y, sample_weight), groups, folds)

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
        """Add rows to the model. A call that fails leaves the model as it was.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The new rows, one or more.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or Dask collection, default=None
            Their responses. None if X is a source, which has them.
        sample_weight : array-like of shape (n_samples,), or Dask collection, default=None
            Their weights.
        groups : array-like of shape (n_samples,), or Dask collection, default=None
            Their groups, in all calls or in none. A group may come in several calls.
        folds : array-like of shape (n_samples,), or Dask collection, default=None
            Their folds, numbers from 0 to ``cv - 1``, in all calls or in none.

        Returns
        -------
        self : IncrementalPLSCV
        """
        opened = partial(open_values, instead="IncrementalPLSClassifierCV")
        return self._learn_folds(opened, (X, y, sample_weight), groups, folds)

    def merge(self, other: IncrementalPLSCV) -> Self:
        """Add to each fold of this model the rows of the same fold of another one, which is left as it is.

        Parameters
        ----------
        other : IncrementalPLSCV
            A model of other rows, with the same parameters and features.

        Returns
        -------
        self : IncrementalPLSCV
        """
        merged: Self = merge_models(self, other, IncrementalPLSCV, later=False)
        return merged


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

    As :class:`IncrementalPLSCV`, for labels. Once fitted, it is an :class:`IncrementalPLSClassifier` of all rows with
    the chosen number of components, which decides by linear discriminant analysis of the scores.

    Parameters
    ----------
    max_components : int, default=10
        The largest number of components to try. Where the data has fewer, errors of the others repeat the last one.
    cv : int, splitter, iterable of splits, or array of int, default=5
        Number of folds. For ``fit`` of arrays also one of scikit-learn's splitters, pairs of training and test rows, or
        the number of the fold of each row; the test sets must be a partition of the rows.
    rule : {"min", "one-se"}, default="min"
        Which number of components is chosen: the one of the least error, or the least whose error is within a
        standard error of that.
    block_length : int, default=1
        Rows that follow each other and stay together in a fold. For series in time, take many times as many as it takes
        for what a row says of the next ones to fade.
    scale : bool, default=True
        Whether to divide each column of X and y by its standard deviation, which is that of the training rows in each
        fold. Columns are always centred.
    solver : {"auto", "gram", "sketch"}, default="auto"
        How X is condensed. "auto" is exact in ``fit`` of data that can be read again. Of streams, and of Dask
        collections, it is "gram" for up to 2,048 features, and "sketch" for more. See Notes.
    sketch_size : int, default=None
        Rows that "sketch" keeps for each fold. By default 128, or 24 for each of ``max_components`` if that is more.
    batch_size : int, default=None
        Rows read at a time. By default as many as take 4 to 32 MiB.

    Attributes
    ----------
    n_components_ : int
        The number of components that was chosen.
    best_score_ : float
        Its cross-validated score.
    cv_results_ : dict of str to ndarray
        With an entry for each number of components in every array:

        - ``n_components``: 1, 2, ..., ``max_components``.
        - ``mean_test_score``: expected accuracy, see Notes.
        - ``split0_test_score``, ...: the same of one fold. Folds that have no rows have NaN.
        - ``se_test_score``: standard error of the mean, from how the folds differ, each with its weight.
    classes_, class_count_, class_prior_ : ndarray of shape (n_classes,)
        The labels in ascending order, how many rows they have, and their shares.
    coef_, x_weights_, vip_, ... : ndarray
        All other attributes are those of :class:`IncrementalPLSClassifier`.

    See Also
    --------
    IncrementalPLSClassifier : The same for a given number of components.
    IncrementalPLSCV : The same for responses that are numbers. Its Notes say which fold a row is in.

    Notes
    -----
    The state of a fold does not tell which of its rows would be classified correctly, but where its classes lie among
    the scores of the model of the other folds, and how its rows spread about them. The score is the accuracy that is
    expected of rows with normal distributions there, all with the same covariance. If it is not to be trusted, take one
    more read of the rows: ``held_out_accuracy`` returns the exact ones of all numbers of components.

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

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None, folds: Any = None) -> Self:
        """Fit the model to X and y, forgetting what it was before.

        With ``solver="auto"``, data that can be read again is read once or twice by Gram matrices, or else
        ``max_components + 3`` times. Dask collections, and sources that cannot be read again, are read once.

        Parameters
        ----------
        X : array-like, sparse matrix or memory map of shape (n_samples, n_features), source or Dask collection
            The rows. Files of any size are opened by :func:`plstream.open_source`.
        y : array-like of shape (n_samples,), or Dask collection, default=None
            The labels. None if X is a source, which has them.
        sample_weight : array-like of shape (n_samples,), or Dask collection, default=None
            Weights of the rows, in the models and in their errors.
        groups : array-like of shape (n_samples,), or Dask collection, default=None
            Groups of rows, numbers, text or dates, that stay together in a fold. Every row needs one: None, NaN, NaT
            and masked entries are refused. What counts as the same group is in Notes.
        folds : array-like of shape (n_samples,), or Dask collection, default=None
            The folds of the rows, numbers from 0 to ``cv - 1``.

        Returns
        -------
        self : IncrementalPLSClassifierCV
        """
        return self._fit_folds(open_labels, (X, y, sample_weight), groups, folds)

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
        """Add rows to the model. A call that fails leaves the model as it was.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The new rows, one or more.
        y : array-like of shape (n_samples,), or Dask collection, default=None
            Their labels. None if X is a source, which has them.
        classes : array-like of shape (n_classes,), default=None
            All labels that will come, in the first call, as of :class:`IncrementalPLSClassifier`.
        sample_weight : array-like of shape (n_samples,), or Dask collection, default=None
            Their weights.
        groups : array-like of shape (n_samples,), or Dask collection, default=None
            Their groups, in all calls or in none. A group may come in several calls.
        folds : array-like of shape (n_samples,), or Dask collection, default=None
            Their folds, numbers from 0 to ``cv - 1``, in all calls or in none.

        Returns
        -------
        self : IncrementalPLSClassifierCV
        """
        return self._learn_folds(open_labels, (X, y, sample_weight), groups, folds, classes=classes)

    def merge(self, other: IncrementalPLSClassifierCV) -> Self:
        """Add to each fold of this model the rows of the same fold of another one, which is left as it is.

        Parameters
        ----------
        other : IncrementalPLSClassifierCV
            A model of other rows, with the same parameters and features. Either may have classes that the other has
            not.

        Returns
        -------
        self : IncrementalPLSClassifierCV
        """
        merged: Self = merge_models(self, other, IncrementalPLSClassifierCV, later=False)
        return merged

    def held_out_accuracy(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None, folds: Any = None
    ) -> Float64Array:
        """Return the cross-validated accuracies of all numbers of components, from one more read of the rows.

        These are the exact ones that ``cv_results_`` has expectations of: each row is predicted by the model of all
        folds but its own.

        Parameters
        ----------
        X, y, sample_weight, groups, folds
            All that the model was made from, as in ``predict_held_out``.

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
        decisions = [[by_lda(model, i, model.y_mean) for i in range(1, most + 1)] for model in models]
        right, total, start = np.zeros(most), 0.0, 0
        opened = open_labels(self, X, y, sample_weight, fitted.head, batch_size=self.batch_size)
        with opened as (rows, _), located_errors(rows):
            if isinstance(rows, ArrayRows):
                assignment = assignment.present(rows.X, rows.weight)
            for block in rows.blocks():
                numbers = assignment.folds(start, start, block.n_rows)
                start += block.n_rows
                weight = np.ones(block.n_rows) if block.weight is None else block.weight
                total += weight.sum()
                for fold in np.unique(numbers):
                    chosen = numbers == fold
                    scores = centred_product(block.X[chosen], models[fold].x_mean, models[fold].projection(None))
                    for i, decision in enumerate(decisions[fold]):
                        found = decision.largest(scores[:, : i + 1])
                        right[i] += weight[chosen][found == block.classes[chosen]].sum()
        return right / total
