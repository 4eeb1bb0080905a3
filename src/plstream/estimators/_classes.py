"""PLS models of labels: one response for each class, and a decision by the scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from operator import attrgetter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._core.labels import Labels, as_labels, balanced_weights, require_known, united
from .._core.projection import centred_product
from .._core.types import Array, Float64Array
from .._core.validation import unchanged_on_failure, validate_rows, validate_weight
from ..data import ArraySource, Source
from ._collections import CollectionRows, is_collection, label_counts
from ._decision import Decision, against_the_first, by_lda, by_response, require_priors
from ._sources import (
    SourceRows,
    by_blocks,
    require_rereadable,
    require_target,
    rows_to_read_again,
    validate_source,
)
from ._streamed import Stream, StreamedPLS

NOT_BALANCED = (
    "class_weight='balanced' needs to know how many rows of each class there will be, which a stream does not tell: "
    "pass class_weight as a dict, or equal priors, or fit what can be read again."
)

for_labels = available_if(attrgetter("_of_labels"))


class OfLabels(StreamedPLS):
    """A PLS model that learns labels by number, and decides for classes by its scores."""

    decision: str = "lda"
    priors: Any = None
    class_weight: Mapping[Any, float] | str | None = None
    _labels: Labels

    @property
    def _of_labels(self) -> bool:
        """Whether y holds labels, which here is always so."""
        return True

    @for_labels
    def add_class(self, label: Any) -> Self:
        """Let rows of one class more come.

        The model is what it would be if the class had been among those of the first call.

        Parameters
        ----------
        label : str, int, bool or float
            Its label, of the type of the others.

        Returns
        -------
        self : object
        """
        stream = self._require_stream("add_class")
        labels, position = self._labels.with_label(label)
        with unchanged_on_failure(self):
            self._go_on_with(stream.copy().add_class(position))
            self._labels = labels
        return self

    def _merge(self, other: OfLabels) -> Self:
        """Add the rows of another model; either may have classes that the other has not."""
        mine, theirs = self._streams_to_merge(other)
        classes = united(self.classes_, other.classes_)
        with unchanged_on_failure(self):
            own = _with_classes(mine, self.classes_, classes).branch()
            self._go_on_with(own.merge(_with_classes(theirs, other.classes_, classes)))
            self._labels = Labels(classes, self._labels.kind)
        return self

    def predict(self, X: Any, *, n_components: int | None = None) -> Array:
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

    @for_labels
    def decision_function(self, X: Any, *, n_components: int | None = None) -> Float64Array:
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
        values: Float64Array = self._decide(X, n_components, "values", then=against_the_first)
        return values

    @for_labels
    def predict_log_proba(self, X: Any, *, n_components: int | None = None) -> Float64Array:
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

    @for_labels
    def predict_proba(self, X: Any, *, n_components: int | None = None) -> Float64Array:
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
        return self._require_labels().classes

    @property
    def class_count_(self) -> Float64Array:
        """Sums of the weights of the rows of each class."""
        self._require_labels()
        solution = self._solution()
        return solution.y_mean * solution.weight

    @property
    def class_prior_(self) -> Float64Array:
        """Probabilities of the classes that decisions are made with."""
        self._require_labels()
        if self.priors is None:
            return self._solution().y_mean
        return require_priors(self.priors, len(self.classes_))

    def _require_labels(self) -> Labels:
        """Return the labels; an error that there are none is one of attributes, as if what asks were not there."""
        check_is_fitted(self)
        return self._labels

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
            with self._rows_on_workers(X, y, sample_weight) as remote:
                yield remote
            return
        rows = validate_rows(self, X, reset=reset)
        labels = as_labels(y, type(self).__name__, first=reset and classes is None)
        check_consistent_length(rows, labels)
        weight = validate_weight(sample_weight, rows.shape[0])
        if reset and weight is not None:
            # Before classes are made of labels that do not count.
            self._require_weight(int(np.count_nonzero(weight)))
        self._set_labels(labels, classes, reset=reset)
        numbers = self._positions(labels)
        of_classes = self._of_classes(np.bincount(numbers, weight, len(self._labels.classes)))
        yield ArraySource(rows, numbers[:, None], weight, batch_size=self.batch_size, **of_classes)

    @contextmanager
    def _rows_of_source(
        self, source: Source, classes: Any, *, reset: bool, in_one_read: bool
    ) -> Iterator[ArraySource | SourceRows]:
        """Give the rows of a source, the same way as others."""
        if in_one_read:
            with SourceRows(source) as rows:
                self._read_labels(rows, classes, reset=reset)
                yield rows
            return
        require_rereadable(source)
        of_classes = self._of_classes(self._labels_of(source, classes))
        with rows_to_read_again(source, self._numbers, self.batch_size, **of_classes) as rows_again:
            yield rows_again

    def _read_labels(self, rows: SourceRows, classes: Any, *, reset: bool) -> None:
        """Let rows of a source come with labels by number."""
        counts = None
        if reset and rows.source.rereadable and classes is None:
            counts = self._labels_of(rows.source, None)
        else:
            labels = as_labels(rows.first_y, type(self).__name__, first=reset and classes is None, warn=False)
            self._set_labels(labels, classes, reset=reset)
        rows.numbers = self._numbers
        vars(rows).update(self._of_classes(counts))

    def _labels_of(self, source: Source, classes: Any) -> Array:
        """Find all labels, which have to be known before the first row is learnt, and return how many there are."""
        values, n_rows = source.label_counts()
        labels = as_labels(values, type(self).__name__, first=classes is None)
        self._set_labels(labels, classes, reset=True)
        return np.bincount(self._positions(labels), n_rows, len(self._labels.classes))

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
            require_known(classes, self._labels.classes)

    def _positions(self, labels: Array) -> NDArray[np.intp]:
        # A model that is about to begin has nothing to add a class to.
        or_else = ", or call add_class with it" if self.__sklearn_is_fitted__() else ""
        return self._labels.positions(labels, or_else)

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
                raise ValueError(NOT_BALANCED)
            return balanced_weights(counts)
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
        return {**super()._kind(), "the type of labels": self._labels.kind if self._of_labels else None}


def _with_classes(stream: Stream, present: Array, classes: Array) -> Stream:
    """Return a stream with all of some classes: itself if these are all that it has, else a copy."""
    missing = np.flatnonzero(~np.isin(classes, present))
    if len(missing):
        stream = stream.copy()
        for position in missing:
            stream.add_class(int(position))
    return stream
