"""IncrementalPLSClassifier: classes from PLS (PLS-DA), for data larger than memory and for streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._types import Array, Float64Array
from ..sources import ArraySource, Source
from ._base import validate_rows, validate_weight
from ._collections import CollectionRows, is_collection, label_counts
from ._decision import Decision, by_lda, by_response
from ._labels import Labels, as_classes, as_labels
from ._projection import centred_product
from ._sources import (
    SourceRows,
    by_blocks,
    require_rereadable,
    require_target,
    rows_to_read_again,
    validate_source,
)
from ._streamed import Stream, StreamedPLS

_NOT_BALANCED = (
    "class_weight='balanced' needs to know how many rows of each class there will be, which a stream does not tell: "
    "pass class_weight as a dict, or equal priors, or fit what can be read again."
)


class IncrementalPLSClassifier(ClassifierMixin, StreamedPLS):
    """Classes from partial least squares (PLS-DA), for streams and for data larger than memory.

    An :class:`IncrementalPLS` of one response for each class, which is one for the rows of the class and zero for all
    others, and a decision by its scores. ``fit``, ``partial_fit``, ``merge`` and the attributes are as there. No ones
    and zeros are written out: the cross-covariance is made of the sums of the rows of each class.

    Parameters
    ----------
    n_components : int, default=2
        Number of components. At most ``min(n_samples, n_features)`` in ``fit``.
    decision : {"lda", "regression"}, default="lda"
        How scores become classes. "lda" is linear discriminant analysis of the scores. It is solved from the state
        alone, and no row is read again. "regression" takes the class with the largest predicted response. With many
        classes some are then hidden between others, and never predicted.
    priors : array-like of shape (n_classes,), default=None
        Probabilities of the classes, in the order of ``classes_``, for "lda" alone. By default their shares in the rows
        seen. It can be changed at any time.
    class_weight : dict or "balanced", default=None
        Weights of the rows of each class, by label, that are not one. "balanced" gives all classes the same weight
        together. As a stream does not tell how many rows of a class will come, ``partial_fit`` does not take
        "balanced". What only should not count in the decision is better left to ``priors``.
    scale : bool, default=True
        Whether to divide each column of X, and each response, by its standard deviation. Columns are always centred.
    solver : {"auto", "multipass", "gram", "sketch"}, default="auto"
        How X is condensed, see :class:`IncrementalPLS`.
    sketch_size : int, default=None
        Rows that "sketch" keeps. By default 128, or 24 a component if that is more.
    batch_size : int, default=None
        Rows read at a time. By default as many as take 4 to 32 MiB.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, in ascending order.
    class_count_ : ndarray of shape (n_classes,)
        Rows of each class, that is the sum of their weights.
    class_prior_ : ndarray of shape (n_classes,)
        Probabilities of the classes that decisions are made with: ``priors``, or shares of ``class_count_``.
    x_weights_, x_loadings_, x_rotations_ : ndarray of shape (n_features, n_components)
        Weights, loadings and rotations of X. The largest entry of each weight vector is positive.
    y_weights_, y_loadings_, y_rotations_ : ndarray of shape (n_classes, n_components)
        The same of the responses.
    coef_, intercept_ : ndarray of shape (n_classes, n_features) and (n_classes,)
        Those of the responses: ``(X - x_mean_) @ coef_.T + intercept_``.
    x_mean_, x_scale_ : ndarray of shape (n_features,)
        Means and divisors of the columns of X.
    y_mean_, y_scale_ : ndarray of shape (n_classes,)
        Means and divisors of the responses.
    n_components_, vip_, x_explained_variance_ratio_, y_explained_variance_ratio_, retained_variance_, subspace_error_
        As of :class:`IncrementalPLS`.
    solver_ : str
        The solver in use.
    n_samples_seen_ : int
        Rows that the model was made from.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X has any that are all strings.

    See Also
    --------
    IncrementalPLS : The same for responses that are numbers.
    IncrementalLDA : Linear discriminant analysis of all features.

    Notes
    -----
    "lda" is what scikit-learn's ``LinearDiscriminantAnalysis`` makes of the scores of the same rows. Their means by
    class follow from the loadings of y, and their scatter within classes is that of all scores less that of the means.
    A sketch knows the former only about, so that the difference may be too small, or negative. At least 1e-9 of the
    variance in any direction is taken to be within classes, and 3 % of ``1 - retained_variance_`` if that is more.

    Two classes are two responses, of which one is the other with its sign changed: the components are those of a single
    response of -1 and +1.

    A class of which no row has come is never predicted.

    References
    ----------
    M. Barker and W. Rayens, "Partial least squares for discrimination", Journal of Chemometrics 17, 2003.

    U. G. Indahl, H. Martens and T. Naes, "From dummy regression to prior probabilities in PLS-DA", Journal of
    Chemometrics 21, 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from plstream import IncrementalPLSClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = IncrementalPLSClassifier(n_components=15).fit(X[:1200], y[:1200])
    >>> round(model.score(X[1200:], y[1200:]), 2)
    0.9
    >>> round(model.set_params(decision="regression").score(X[1200:], y[1200:]), 2)
    0.88

    From a stream:

    >>> stream = IncrementalPLSClassifier(n_components=15)
    >>> for start in range(0, 1200, 100):
    ...     rows = slice(start, start + 100)
    ...     stream = stream.partial_fit(X[rows], y[rows], classes=range(10))
    >>> round(stream.score(X[1200:], y[1200:]), 2)
    0.9
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StreamedPLS._parameter_constraints,
        "decision": [StrOptions({"lda", "regression"})],
        "priors": ["array-like", None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    target = "labels"
    forgetting = 1.0
    _labels: Labels

    def __init__(
        self,
        n_components: int = 2,
        *,
        decision: str = "lda",
        priors: Any = None,
        class_weight: Mapping[Any, float] | str | None = None,
        scale: bool = True,
        solver: str = "auto",
        sketch_size: int | None = None,
        batch_size: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.decision = decision
        self.priors = priors
        self.class_weight = class_weight
        self.scale = scale
        self.solver = solver
        self.sketch_size = sketch_size
        self.batch_size = batch_size

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to X and y, forgetting what it was before.

        Parameters
        ----------
        X : array-like, sparse matrix or memory map of shape (n_samples, n_features), or source
            The rows. Files of any size are opened by :func:`plstream.open_source`.
        y : array-like of shape (n_samples,), default=None
            The labels: text, truth values or whole numbers. None if X is a source, which has them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : IncrementalPLSClassifier
        """
        return self._fit(X, y, sample_weight)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the model. A call that fails leaves the model as it was.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The new rows, one or more.
        y : array-like of shape (n_samples,), default=None
            Their labels. None if X is a source, which has them.
        classes : array-like of shape (n_classes,), default=None
            All labels that will come, in the first call. By default those that are in it, or in the first block of a
            source that can be read only once. For more see ``add_class``.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.

        Returns
        -------
        self : IncrementalPLSClassifier
        """
        if isinstance(self.class_weight, str):
            raise ValueError(_NOT_BALANCED)  # noqa: TRY004
        return self._learn(X, y, sample_weight, classes=classes)

    def add_class(self, label: Any) -> Self:
        """Let rows of one class more come.

        The model is what it would be if the class had been among those of the first call.

        Parameters
        ----------
        label : str, int, bool or float
            Its label, of the type of the others.

        Returns
        -------
        self : IncrementalPLSClassifier
        """
        stream = self._require_stream("add_class")
        labels, position = self._labels.with_label(label)
        self._stream, self._labels, self._solved = stream.copy().add_class(position), labels, None
        return self

    def merge(self, other: IncrementalPLSClassifier) -> Self:
        """Add to this model all rows that another one has seen; the other one is left as it is.

        Parameters
        ----------
        other : IncrementalPLSClassifier
            A model of other rows, with the same parameters and features, made by ``partial_fit``, ``solver="gram"`` or
            ``solver="sketch"``. Either may have classes that the other has not.

        Returns
        -------
        self : IncrementalPLSClassifier
        """
        if not isinstance(other, IncrementalPLSClassifier):
            raise TypeError(f"Only another IncrementalPLSClassifier can be merged, not {type(other).__name__}.")
        mine, theirs = self._streams_to_merge(other)
        classes = np.union1d(self.classes_, other.classes_)
        merged = _with_classes(mine, self.classes_, classes).merge(_with_classes(theirs, other.classes_, classes))
        self._stream, self._labels, self._solved = merged, Labels(classes, self._labels.kind), None
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def memory_usage(self, n_features: int, n_classes: int = 2) -> int:
        """Return the bytes that ``partial_fit`` and solving take, at most, whatever the number of rows.

        Parameters
        ----------
        n_features, n_classes : int
            Number of columns of X and of classes.

        Returns
        -------
        n_bytes : int
            As of :class:`IncrementalPLS`.
        """
        return self._memory_usage(n_features, n_classes)

    def predict(self, X: Any, n_components: int | None = None) -> Array:
        """Return the most likely label of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The rows. With a Dask array or dataframe the result is a Dask array.
        n_components : int, default=None
            Use the first components only. The result is that of a model fitted with so many.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Labels.
        """
        classes = self.classes_
        labels: Array = self._decide(X, n_components, "largest", then=lambda numbers: classes[numbers])
        return labels

    def decision_function(self, X: Any, n_components: int | None = None) -> Float64Array:
        """Return how much speaks for each class.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The rows. With a Dask array or dataframe the result is a Dask array.
        n_components : int, default=None
            Use the first components only.

        Returns
        -------
        values : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            For "lda" the logarithm of the likelihood of each class, times its prior probability, but for a number that
            is the same for all classes; for "regression" the predicted responses. For two classes, that of the second
            less that of the first.
        """
        values: Float64Array = self._decide(X, n_components, "values", then=_against_the_first)
        return values

    def predict_log_proba(self, X: Any, n_components: int | None = None) -> Float64Array:
        """Return the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The rows. With a Dask array or dataframe the result is a Dask array.
        n_components : int, default=None
            Use the first components only.

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            See ``predict_proba``.
        """
        logarithms: Float64Array = self._decide(X, n_components, "log_probabilities")
        return logarithms

    def predict_proba(self, X: Any, n_components: int | None = None) -> Float64Array:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The rows. With a Dask array or dataframe the result is a Dask array.
        n_components : int, default=None
            Use the first components only.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            For "lda" those of normal distributions with one covariance. For "regression" the predicted responses, which
            sum to one: negative ones count as zero, and the others are divided by their sum. These rank the classes,
            but are not to be trusted as probabilities.
        """
        probabilities: Float64Array = self._decide(X, n_components, "log_probabilities", then=np.exp)
        return probabilities

    @property
    def classes_(self) -> Array:
        """The labels."""
        check_is_fitted(self)
        return self._labels.classes

    @property
    def class_count_(self) -> Float64Array:
        """Sums of the weights of the rows of each class."""
        solution = self._solution()
        return solution.y_mean * solution.weight

    @property
    def class_prior_(self) -> Float64Array:
        """Probabilities of the classes that decisions are made with."""
        if self.priors is None:
            return self._solution().y_mean
        priors = np.asarray(self.priors, dtype=np.float64)
        if priors.shape != self.classes_.shape:
            raise ValueError(
                f"priors must be {len(self.classes_)} number(s), one for each class, not of shape {priors.shape}."
            )
        if not ((priors >= 0).all() and np.isclose(priors.sum(), 1.0)):
            raise ValueError("priors must be probabilities: zero or more, with a sum of one.")
        return priors

    def _decide(
        self, X: Any, n_components: int | None, what: str, then: Callable[[Any], Any] = lambda result: result
    ) -> Any:
        """Return what a method of the decision makes of the scores of X, and a function of that."""
        solution, k = self._solution(), self._components_to_use(n_components)
        projection, method = solution.projection(k), getattr(self._decision(k), what)
        return by_blocks(self, X, lambda rows: then(method(centred_product(rows, solution.x_mean, projection))))

    def _decision(self, n_components: int) -> Decision:
        """Return how scores become classes: parameters that say so may have been set after the fit."""
        self._validate_params()
        if self.decision == "lda":
            return by_lda(self._solution(), n_components, self.class_prior_)
        if self.priors is not None:
            raise ValueError("priors are for decision='lda': pass none with decision='regression'.")
        return by_response(self._solution(), n_components)

    @contextmanager
    def _rows(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool, in_one_read: bool, classes: Any = None
    ) -> Iterator[Any]:
        if isinstance(X, Source):
            require_target(X, type(self).__name__, y, sample_weight)
            validate_source(self, X, reset=reset)
            with self._rows_of_source(X, classes, reset=reset, in_one_read=in_one_read) as source_rows:
                yield source_rows
            return
        if is_collection(X):
            yield self._rows_on_workers(X, y, sample_weight)
            return
        rows = validate_rows(self, X, reset=reset)
        labels = as_labels(y, type(self).__name__, first=reset and classes is None)
        check_consistent_length(rows, labels)
        weight = validate_weight(sample_weight, rows.shape[0])
        self._set_labels(labels, classes, reset=reset)
        numbers = self._positions(labels)
        of_classes = self._of_classes(np.bincount(numbers, weight, len(self._labels.classes)))
        yield ArraySource(rows, numbers[:, None], weight, batch_size=self.batch_size, **of_classes)

    @contextmanager
    def _rows_of_source(
        self, source: Source, classes: Any, *, reset: bool, in_one_read: bool
    ) -> Iterator[ArraySource | SourceRows]:
        """Give the rows of a source, the same way as others."""
        counts = None
        if not in_one_read:
            require_rereadable(source)
        if reset and source.rereadable and (classes is None or not in_one_read):
            # All labels have to be known before the first row is learnt.
            values, n_rows = source.label_counts()
            labels = as_labels(values, type(self).__name__, first=classes is None)
            self._set_labels(labels, classes, reset=True)
            counts = np.bincount(self._positions(labels), n_rows, len(self._labels.classes))
        if not in_one_read:
            with rows_to_read_again(source, self._numbers, self.batch_size, **self._of_classes(counts)) as rows:
                yield rows
            return
        with SourceRows(source, self._numbers) as rows:
            if counts is None:
                labels = as_labels(rows.first_y, type(self).__name__, first=reset and classes is None, warn=False)
                self._set_labels(labels, classes, reset=reset)
            vars(rows).update(self._of_classes(counts))
            yield rows

    def _rows_on_workers(self, X: Any, y: Any, sample_weight: Any) -> CollectionRows:
        """Return rows that are elsewhere, to be read again and again."""
        rows = CollectionRows(self, X, y, sample_weight)
        validate_source(self, rows, reset=True)
        values, counts = label_counts(rows.collection)
        labels = as_labels(values, type(self).__name__, first=True)
        self._set_labels(labels, None, reset=True)
        classes = self._labels.classes
        rows.n_targets = len(classes)
        weights = self._weights_of_classes(np.bincount(self._positions(labels), counts, len(classes)))
        # What is balanced in all blocks together need not be so in any of them.
        rows.model = copy(self)
        rows.model.class_weight = None if weights is None else dict(zip(classes.tolist(), weights, strict=True))
        return rows

    def _set_labels(self, labels: Array, classes: Any, *, reset: bool) -> None:
        """Decide at the first call which classes there are."""
        if reset:
            self._labels = Labels.of(labels, classes)
        elif classes is not None:
            unknown = np.setdiff1d(as_classes(classes), self._labels.classes)
            if len(unknown):
                raise ValueError(f"{unknown[0]} is not among the classes of the first call: call add_class with it.")

    def _positions(self, labels: Array) -> NDArray[np.intp]:
        return self._labels.positions(labels, or_else=", or call add_class with it")

    def _numbers(self, y: Array) -> Float64Array:
        """Return labels of a source by number, in one column."""
        labels = as_labels(y, type(self).__name__, warn=False)
        return self._positions(labels)[:, None].astype(np.float64)

    def _of_classes(self, counts: Array | None) -> dict[str, Any]:
        """Return what rows have to know about the classes, of which there are so many rows if that is known."""
        return {"n_classes": len(self._labels.classes), "class_weight": self._weights_of_classes(counts)}

    def _weights_of_classes(self, counts: Array | None) -> Float64Array | None:
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, str):
            if counts is None:
                raise ValueError(_NOT_BALANCED)
            balanced: Float64Array = counts.sum() / np.count_nonzero(counts) / np.where(counts > 0, counts, 1.0)
            return balanced
        labels = self._labels.classes.tolist()
        unknown = [label for label in self.class_weight if label not in labels]
        if unknown:
            raise ValueError(f"class_weight has {unknown[0]!r}, which is none of the classes.")
        weights = np.array([self.class_weight.get(label, 1.0) for label in labels], dtype=np.float64)
        if not (np.isfinite(weights).all() and (weights > 0).all()):
            raise ValueError(
                "class_weight must have positive numbers: leave out the rows of a class that is not to count."
            )
        return weights

    def _kind(self) -> dict[str, Any]:
        return {**super()._kind(), "the type of labels": self._labels.kind}


def _against_the_first(values: Float64Array) -> Float64Array:
    """Return the values for the second of two classes less those for the first, or all values of more."""
    return values[:, 1] - values[:, 0] if values.shape[1] == 2 else values


def _with_classes(stream: Stream, present: Array, classes: Array) -> Stream:
    """Return a stream with all of some classes: itself if these are all that it has, else a copy."""
    missing = np.flatnonzero(~np.isin(classes, present))
    if len(missing):
        stream = stream.copy()
        for position in missing:
            stream.add_class(int(position))
    return stream
