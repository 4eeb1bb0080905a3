"""CrossValidated: base class of the estimators with cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Integral
from time import monotonic
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._core.errors import NonFiniteError
from .._core.progress import log_fit
from .._core.projection import centred_product
from .._core.types import Array, Rows
from .._core.validation import NoWeightError, changed_at_once, located_errors, require_components
from ..data import Source
from ..distributed import OnWorkers
from ..rows import ArrayRows, CollectionRows, SourceRows, TrainingRows, by_blocks, is_collection
from ..solvers.solution import Solution
from ..states import Folds, Gram, Sketch
from .base import PLSBase
from .cv_exact import fit_exactly, in_one_fold
from .cv_fitted import FittedFolds
from .cv_folds import FoldAssignment, as_groups, as_vector, folds_of_splits
from .cv_missing import fit_completed
from .decision import by_lda
from .heads import ClassifierHead, Head, OpenedRows
from .missing import CompletedBefore, CompletingStream
from .settings import Settings
from .training import learning, merge_models

_NOT_FOR_SOURCES = "groups and folds of a source are columns of the source: name them in open_source."
# Minimum number of rows per fold in a block. With fewer rows, merging column sums takes longer than computing them.
_ROWS_OF_A_FOLD = 32


class CrossValidated(PLSBase):
    """Base class of the estimators with cross-validation, which keep one state per fold."""

    # ``open_values`` or ``open_labels``.
    _open: Callable[..., OpenedRows]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PLSBase._parameter_constraints,
        "max_components": [Interval(Integral, 1, None, closed="left")],
        "cv": ["cv_object", "array-like"],
        "rule": [StrOptions({"min", "one-se"})],
        "block_length": [Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions({"auto", "gram", "sketch"})],
    }

    def __init__(
        self,
        max_components: int = 10,
        *,
        cv: Any = 5,
        rule: str = "min",
        block_length: int = 1,
        scale: bool = True,
        solver: str = "auto",
        sketch_size: int | None = None,
        batch_size: int | None = None,
        missing: str = "error",
    ) -> None:
        self.max_components = max_components
        self.cv = cv
        self.rule = rule
        self.block_length = block_length
        self.scale = scale
        self.solver = solver
        self.sketch_size = sketch_size
        self.batch_size = batch_size
        self.missing = missing

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None, folds: Any = None) -> Self:
        """Fit the model to X and y, discarding earlier training.

        With ``solver="auto"``, data that can be read again is read once or twice with Gram matrices, and otherwise
        ``max_components + 3`` times. Dask collections, and sources that cannot be read again, are read once.

        Parameters
        ----------
        X : array-like, sparse matrix or memory map of shape (n_samples, n_features), source or Dask collection
            The rows. Files of any size are opened by :func:`plstream.open_source`.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or Dask collection, default=None
            The responses, or the labels, which have one dimension. None if X is a source, which provides them.
        sample_weight : array-like of shape (n_samples,), or Dask collection, default=None
            Weights of the rows, in the models and in their errors.
        groups : array-like of shape (n_samples,), or Dask collection, default=None
            Groups of rows that stay together in a fold: numbers, strings or dates. Every row needs one: None, NaN, NaT
            and masked entries are refused. The Notes of :class:`IncrementalPLSCV` define equality of groups.
        folds : array-like of shape (n_samples,), or Dask collection, default=None
            The fold of each row, from 0 to ``cv - 1``.

        Returns
        -------
        self : object
        """
        return self._fit(X, y, sample_weight, groups=groups, folds=folds)

    def _fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None, folds: Any = None, **classes: Any
    ) -> Self:
        """Fit the model; ``classes``, all labels that will occur, are for classifiers."""
        start = monotonic()
        with changed_at_once(self) as (twin,):
            for name in ("_fitted", "_classes_to_come"):
                twin.__dict__.pop(name, None)
            fitted = twin._absorbed((X, y, sample_weight), groups, folds, is_fit=True, **classes)
            if fitted.solution is None and sum(fold.n_rows > 0 for fold in fitted.stream.streams) < 2:
                raise ValueError(in_one_fold(fitted.n_rows))
            fitted.solved()
            twin._fitted = fitted
        log_fit(self, start)
        return self

    def merge(self, other: Self) -> Self:
        """Merge another model into this one, fold by fold. The other model is left unchanged.

        Parameters
        ----------
        other : object
            A model fitted to other rows, with the same class, parameters and features. The class labels of two
            classifiers may differ.

        Returns
        -------
        self : object
        """
        return merge_models(self, other, later=False)

    @_fit_context(prefer_skip_nested_validation=True)
    def memory_usage(self, n_features: int, n_targets: int = 1, *, method: str = "partial_fit") -> int:
        """Return an upper bound on the memory of training and solving, in bytes, for any number of rows.

        Parameters
        ----------
        n_features, n_targets : int
            Number of columns of X and y, or of classes.
        method : {"partial_fit", "fit"}, default="partial_fit"
            See :meth:`IncrementalPLS.memory_usage`.

        Returns
        -------
        n_bytes : int
            Including temporary arrays, but not the rows passed or copies of them.

        Examples
        --------
        >>> from plstream import IncrementalPLSCV
        >>> model = IncrementalPLSCV()
        >>> model.memory_usage(500_000, method="fit") < model.memory_usage(500_000) / 2
        True
        """
        n_folds = self._number_of_folds
        if n_folds is None:
            raise ValueError("The number of folds of a splitter depends on the rows: set cv to a number of folds.")
        return Settings.of(self).n_bytes(method, n_features, n_targets, n_folds)

    def predict_held_out(
        self, X: Any, n_components: int | None = None, *, groups: Any = None, folds: Any = None
    ) -> Array:
        """Predict each training row by the model that was fitted without its fold.

        The result equals that of scikit-learn's ``cross_val_predict``, but requires only one more read of the rows and
        no further fits. Use it to compute scores that ``cv_results_`` does not have.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            All training rows, except those of weight zero (which are left out if X is a source with weights) or
            without any response, in training order. With ``groups``
            or ``folds``, which are required after ``merge`` and if ``cv`` was a splitter, the order is arbitrary.
        n_components : int, default=None
            Number of components of the models, up to ``max_components``. By default ``n_components_``.
        groups, folds : array-like of shape (n_samples,), default=None
            Groups or folds of the rows, as in ``partial_fit``.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Values or labels, as returned by ``predict``.
        """
        check_is_fitted(self)
        k = self._components_to_use(n_components, self._fitted.n_components)
        assignment = self._assignment_again(X, groups, folds)
        models, head = self._models_of_others(k), self._fitted.head
        of_labels = isinstance(head, ClassifierHead)
        start = 0

        def predict(rows: Rows) -> Array:
            nonlocal start
            numbers = assignment.folds(start, start, rows.shape[0])
            start += rows.shape[0]
            if assignment.given is None and start > self._fitted.n_rows:
                raise ValueError(
                    f"X has more rows than the {self._fitted.n_rows} that the model was trained on, so their folds are "
                    "unknown: pass the training rows in the same order, without those of weight zero or without y."
                )
            prediction = np.empty(len(numbers), np.intp) if of_labels else np.empty((len(numbers), head.n_targets))
            for fold in np.unique(numbers):
                chosen = numbers == fold
                prediction[chosen] = models[fold](rows[chosen])
            return prediction

        prediction = by_blocks(self, X, predict, weighted=True)
        predicted: Array = head.labels.classes[prediction] if of_labels else head.shaped(prediction)
        return predicted

    def _models_of_others(self, n_components: int) -> list[Callable[[Rows], Array]]:
        """Return one function per fold, which predicts its rows by the model of all other folds."""
        fitted = self._fitted
        of_labels = isinstance(fitted.head, ClassifierHead)
        models: list[Callable[[Rows], Array]] = [
            partial(_predicted, model, of_labels=of_labels) for model in fitted.models_of_others(n_components)
        ]
        if self.missing == "error":
            return models
        return list(map(CompletedBefore, models, fitted.completing_of_others()))

    @property
    def cv_results_(self) -> dict[str, Any]:
        """Scores and errors of all numbers of components."""
        results: dict[str, Any] = self._require_fitted().validated().results()
        return results

    @property
    def n_components_(self) -> int:
        """The chosen number of components."""
        return int(self._n_features_out)

    @property
    def best_score_(self) -> float:
        """Its cross-validated score."""
        return float(1.0 - self._require_fitted().validated().errors[self.n_components_ - 1])

    def _learn_folds(self, data: tuple[Any, Any, Any], groups: Any, folds: Any, **classes: Any) -> Self:
        """Add rows to the model. If the call fails, or no row has a positive weight, the model is left unchanged."""
        with learning(self, classes) as twin:
            twin._fitted = twin._absorbed(data, groups, folds, **classes)
        return self

    def _absorbed(
        self, data: tuple[Any, Any, Any], groups: Any, folds: Any, *, is_fit: bool = False, **columns: Any
    ) -> FittedFolds:
        """Return the result of training on more rows. ``fit`` has all rows, so there cv may be a splitter."""
        X, _, _ = data
        before: FittedFolds | None = vars(self).get("_fitted")
        assignment = self._assignment(data, groups, folds, before, is_fit=is_fit)
        settings = Settings.of(self)
        before = None if before is None else before.streamed(settings)
        if is_collection(X):
            columns |= {
                "groups": _in_blocks(groups, as_groups),
                "folds": _in_blocks(folds, partial(as_vector, name="folds")),
            }
        head = None if before is None else before.head
        again = settings.rereads if is_fit and not is_collection(X) else False
        with self._open(self, *data, head, again=again, batch_size=self.batch_size, **columns) as (rows, head):
            require_components(settings.n_components, rows.n_columns, "max_components")
            rows.allow_missing = self.missing == "model"
            if isinstance(rows, ArrayRows) and not isinstance(X, Source):
                assignment = assignment.present(rows.X, rows.weight)
            if before is None and rows.n_rows == 0:
                raise NoWeightError
            with located_errors(rows, self):
                if again is None and rows.rereadable:
                    return self._fit_again(rows, head, assignment, settings)
                if before is None:
                    stream = settings.new_folds(rows, assignment.n_folds)
                else:
                    before.require_same(assignment)
                    stream = Folds(settings.continued(fold) for fold in before.stream.streams)
                if isinstance(rows, CollectionRows):
                    stream = self._absorbed_by_workers(stream, rows, assignment, settings)
                else:
                    stream = _assign(stream, rows, assignment, stream.n_rows)
        return self._fitted_stream(head, settings, stream, assignment)

    def _fit_again(self, rows: TrainingRows, head: Head, assignment: FoldAssignment, settings: Settings) -> FittedFolds:
        """Fit rows that can be read again."""
        if self.batch_size is None and isinstance(rows, ArrayRows):
            rows.batch_size = max(rows.batch_size, _ROWS_OF_A_FOLD * assignment.n_folds)

        def absorbed() -> Folds[Gram | Sketch]:
            # The first read only finds missing values; it does not complete them.
            strict = replace(settings, missing="error")
            return _assign(strict.new_folds(rows, assignment.n_folds), rows, assignment, 0)

        try:
            return fit_exactly(rows, head, assignment, settings, self.rule, absorbed)
        except NonFiniteError as error:
            if not (error.is_missing and rows.allow_missing):
                raise
        stream = _assign(settings.new_folds(rows, assignment.n_folds), rows, assignment, 0)
        if sum(fold.n_rows > 0 for fold in stream.streams) < 2:
            raise ValueError(in_one_fold(stream.n_rows))
        found = fit_completed(rows, head, assignment, settings, self, stream)
        return self._fitted_stream(head, settings, stream, assignment, **found)

    def _fitted_stream(
        self, head: Head, settings: Settings, stream: Folds[Gram | Sketch], assignment: FoldAssignment, **others: Any
    ) -> FittedFolds:
        return FittedFolds.of_stream(head, settings, stream, assigned_by=assignment.by, rule=self.rule, **others)

    def _assignment(
        self, data: tuple[Any, Any, Any], groups: Any, folds: Any, before: FittedFolds | None, *, is_fit: bool
    ) -> FoldAssignment:
        """Return the assignment of rows to folds."""
        X, y, _ = data
        n_folds = self._number_of_folds
        if n_folds is None and folds is not None and before is not None:
            n_folds = before.n_folds
        if n_folds is None and (not is_fit or is_collection(X)):
            raise ValueError(
                "partial_fit and Dask collections do not support a splitter as cv: set cv to a number of folds."
            )
        self._validate_params()
        if n_folds is None:
            if isinstance(X, Source):
                raise ValueError("A source cannot be split before it is read: set cv to a number of folds.")
            if folds is not None:
                raise ValueError(
                    "cv and folds both assign rows to folds: if you pass folds, set cv to the number of folds."
                )
            given = folds_of_splits(self.cv, X, y, groups)
            return FoldAssignment(int(given.max(initial=0)) + 1, "folds", given=given)
        if isinstance(X, OnWorkers):
            return FoldAssignment.by_roles(n_folds, self.block_length, X.source)
        if is_collection(X):
            return FoldAssignment.by_columns(n_folds, self.block_length, groups, folds)
        return self._assignment_of(n_folds, X, groups, folds)

    def _assignment_of(self, n_folds: int, X: Any, groups: Any, folds: Any) -> FoldAssignment:
        if not isinstance(X, Source):
            return FoldAssignment.of(n_folds, self.block_length, groups, folds)
        if groups is not None or folds is not None:
            raise ValueError(_NOT_FOR_SOURCES)
        return FoldAssignment.of_source(n_folds, self.block_length, X)

    def _absorbed_by_workers(
        self, stream: Folds[Gram | Sketch], rows: CollectionRows, assignment: FoldAssignment, settings: Settings
    ) -> Folds[Gram | Sketch]:
        same = settings.continuing(stream.streams[0])
        empty = same.new_folds(rows, assignment.n_folds)
        learnt = rows.absorbed(
            empty,
            partial(_assign_block, assignment, stream.n_rows),
            state_bytes=self.memory_usage(rows.n_columns, rows.n_targets),
            by_number=assignment.by not in {"groups", "folds"},
        )
        return stream.merged(learnt, later=True) if stream.n_rows else learnt

    def _assignment_again(self, X: Any, groups: Any, folds: Any) -> FoldAssignment:
        """Return the assignment of the training rows to folds, for another read of them."""
        if is_collection(X):
            raise TypeError(
                "The fold of a row depends on its position, which is unknown in a Dask collection: pass arrays."
            )
        assignment = self._assignment_of(self._fitted.n_folds, X, groups, folds)
        self._fitted.require_same(assignment)
        return assignment if isinstance(X, Source) else assignment.present(X, None)

    @property
    def _number_of_folds(self) -> int | None:
        """The number of folds, or None if it depends on the rows."""
        if self.cv is None:
            return 5
        return int(self.cv) if isinstance(self.cv, Integral) else None


def _predicted(model: Solution, rows: Rows, *, of_labels: bool) -> Array:
    """Return the predictions of a model: responses, or class indices."""
    if of_labels:
        scores: Any = centred_product(rows, model.x_mean, model.projection(None))
        return by_lda(model, scores.shape[1], model.y_mean).largest(scores)
    return centred_product(rows, model.x_mean, model.coefficients(None).T) + model.y_mean


def _assign(
    stream: Folds[Gram | Sketch], rows: TrainingRows, assignment: FoldAssignment, n_before: int
) -> Folds[Gram | Sketch]:
    """Return the streams of the folds with all rows added, after ``n_before`` earlier rows."""
    labelled = isinstance(stream.streams[0], CompletingStream)
    for block, folds in assignment.blocks(rows.tracked_blocks("read 1 of 1"), n_before, labelled=labelled):
        stream = stream.with_rows(block.X, block.Y, block.weight, folds)
    return stream


def _assign_block(
    known: FoldAssignment,
    n_before: int,
    stream: Folds[Gram | Sketch],
    rows: TrainingRows,
    first_row: int,
    columns: dict[str, Any],
) -> Folds[Gram | Sketch]:
    """Return the streams with the rows of a block added, on Dask workers."""
    if isinstance(rows, SourceRows):
        assignment = FoldAssignment.of_source(known.n_folds, known.block_length, rows.source)
    else:
        assignment = FoldAssignment.of(known.n_folds, known.block_length, columns.get("groups"), columns.get("folds"))
    if isinstance(rows, ArrayRows):
        assignment = assignment.present(rows.X, rows.weight)
    return _assign(stream, rows, assignment, n_before + first_row)


def _in_blocks(column: Any, as_array: Callable[[Any], Array]) -> Any:
    """Return groups or folds as a Dask collection, or as an array with one entry per row."""
    return column if column is None or is_collection(column) else as_array(column)
