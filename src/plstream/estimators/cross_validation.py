"""IncrementalPLSCV and IncrementalPLSClassifierCV: the number of components chosen by cross-validation, in one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, log2
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._core.progress import track
from .._core.projection import centred_product
from .._core.schema import Choice, Count, Object, OrNone, Text, stored
from .._core.types import Array, Float64Array, Rows
from .._core.validation import NoWeightError, changed_at_once, located_errors, require_components
from .._core.warnings import warn_user
from ..data import Source
from ..rows import ArrayRows, CollectionRows, TrainingRows, by_blocks, is_collection
from ..states import Folds, Gram, Sketch
from ..states.folds import all_but_one, merged
from ._base import PLSBase
from ._cross_validation import ClassCrossValidation, CrossValidation
from ._decision import by_lda
from ._folds import FoldAssignment, as_groups, as_vector, folds_of_splits
from ._heads import ClassifierHead, Head, OpenedRows, RegressionHead, open_labels, open_values
from ._solution import Solution
from .classifier import ClassifierMethods
from .regression import RegressionMethods
from .training import Fitted, Settings, learning, merge_models, warn_of_small_sketch

_NOT_FOR_SOURCES = "groups and folds are not for sources: pass blocks of rows with theirs."


@stored(
    {
        "n_components": Count(1, size="c"),
        "stream": Object(Folds, m="m", q="q"),
        "solution": OrNone(Object(Solution, m="m", q="q")),
        "assigned_by": Text(),
        "rule": Choice("min", "one-se"),
        "validation": OrNone(Object(CrossValidation, ClassCrossValidation, c="c", q="q")),
    },
    {
        "every fold has errors": lambda its: (
            its.validation is None or len(its.validation.weight) == len(its.stream.streams)
        ),
        "as many components are chosen as were tried, or fewer": lambda its: (
            its.solution is None or len(its.solution.subspace_error) <= its.n_components
        ),
        "models are solved and validated together": lambda its: (its.solution is None) == (its.validation is None),
    },
)
@dataclass
class FittedFolds(Fitted):
    """What a fit with cross-validation has left; ``n_components`` is the largest number to try.

    Attributes
    ----------
    assigned_by : str
        What decides on the fold of a row.
    rule : str
        How the number of components is chosen.
    validation : CrossValidation, ClassCrossValidation or None
        Errors of all numbers of components, computed with the solution.
    """

    assigned_by: str = "rows"
    rule: str = "min"
    validation: CrossValidation | ClassCrossValidation | None = None

    def solved(self) -> Solution:
        """Return the solution for the rows so far, with the number of components chosen for them."""
        if self.solution is None:
            folds = self.stream.states()
            total = merged(folds)
            validation: CrossValidation | ClassCrossValidation
            if isinstance(self.head, ClassifierHead):
                validation = ClassCrossValidation.of(folds, total, self.n_components, scale=self.scale)
            else:
                validation = CrossValidation.of(
                    folds, total, self.n_components, scale=self.scale, y_is_vector=self.head.is_vector
                )
            if validation.n_folds < 2:
                warn_user("All rows so far are in one fold: until there are others, the model has one component.")
            solution = Solution.of(total, total, validation.choice(self.rule), scale=self.scale)
            warn_of_small_sketch(total, solution)
            # Both at once, for an interrupt may come between two statements.
            vars(self).update(validation=validation, solution=solution)
            return solution
        return self.solution

    def validated(self) -> CrossValidation | ClassCrossValidation:
        """Return the errors of all numbers of components."""
        self.solved()
        assert self.validation is not None
        return self.validation

    def models_of_others(self, n_components: int) -> list[Solution]:
        """Return the model of all rows but those of each fold."""
        states = all_but_one(self.stream.states())
        return [Solution.of(others, others, n_components, scale=self.scale, quiet=True) for others in states]

    def after(self, stream: Any, head: Head | None = None) -> Self:
        """Return what is left with another stream, and perhaps more classes."""
        return replace(super().after(stream, head), validation=None)

    def alike(self, model: Any) -> dict[str, Any]:
        """Return what models must have in common to be merged."""
        folds = {"cv": len(self.stream.streams), "what rows are dealt to folds by": self.assigned_by}
        return super().alike(model) | folds

    def require_same(self, assignment: FoldAssignment) -> None:
        """Raise ValueError unless rows are assigned to folds as those before."""
        n_folds = len(self.stream.streams)
        if assignment.n_folds != n_folds:
            raise ValueError(f"cv cannot change in mid-stream: set it back to {n_folds}.")
        if assignment.by != self.assigned_by:
            raise ValueError(
                f"Rows were dealt to folds by {self.assigned_by} before, and cannot be by {assignment.by} now."
            )


class _CrossValidated(PLSBase):
    """What both estimators share: rows are assigned to folds, and each fold has a state."""

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
    ) -> None:
        self.max_components = max_components
        self.cv = cv
        self.rule = rule
        self.block_length = block_length
        self.scale = scale
        self.solver = solver
        self.sketch_size = sketch_size
        self.batch_size = batch_size

    @_fit_context(prefer_skip_nested_validation=True)
    def memory_usage(self, n_features: int, n_targets: int = 1) -> int:
        """Return the bytes that ``partial_fit`` and solving take, at most, whatever the number of rows.

        Parameters
        ----------
        n_features, n_targets : int
            Number of columns of X and y, or of classes.

        Returns
        -------
        n_bytes : int
            With all that is held for a moment only. The rows handed over, and copies of them, do not count.

        Examples
        --------
        >>> from plstream import IncrementalPLS, IncrementalPLSCV
        >>> IncrementalPLSCV().memory_usage(1000) // IncrementalPLS().memory_usage(1000)
        3
        """
        n_folds = self._number_of_folds
        if n_folds is None:
            raise ValueError("How many folds a splitter makes depends on the rows: set cv to a number of folds.")
        # Halves of the folds are merged, and halves of these.
        return Settings.of(self).stream_bytes(n_features, n_targets, n_folds, ceil(log2(n_folds)) + 2)

    def predict_held_out(
        self, X: Any, n_components: int | None = None, *, groups: Any = None, folds: Any = None
    ) -> Array:
        """Predict rows that the model was made from, each by the model of all folds but its own.

        This is what scikit-learn's ``cross_val_predict`` returns, from one more read of the rows and no further fits.
        Any score can be computed from it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows, in the order in which they came since the first call, without those of weight zero; with
            ``groups`` or ``folds`` in any order. After ``merge``, rows are known by those alone.
        n_components : int, default=None
            Components of the models, up to ``max_components``. By default ``n_components_``.
        groups, folds : array-like of shape (n_samples,), default=None
            Groups or folds of the rows, as in ``partial_fit``.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Values or labels as ``predict`` returns them.
        """
        check_is_fitted(self)
        k = self._components_to_use(n_components, self._fitted.n_components)
        assignment = self._assignment_again(X, groups, folds)
        models, head = self._fitted.models_of_others(k), self._fitted.head
        of_labels = isinstance(head, ClassifierHead)
        start = 0

        def predict(rows: Rows) -> Array:
            nonlocal start
            numbers = assignment.folds(start, start, rows.shape[0])
            start += rows.shape[0]
            prediction = np.empty(len(numbers), np.intp) if of_labels else np.empty((len(numbers), head.n_targets))
            for fold in np.unique(numbers):
                chosen = numbers == fold
                prediction[chosen] = _predicted(models[fold], rows[chosen], of_labels=of_labels)
            return prediction

        prediction = by_blocks(self, X, predict)
        predicted: Array = head.labels.classes[prediction] if of_labels else head.shaped(prediction)
        return predicted

    @property
    def cv_results_(self) -> dict[str, Any]:
        """Scores and errors of all numbers of components."""
        results: dict[str, Any] = self._require_fitted().validated().results()
        return results

    @property
    def n_components_(self) -> int:
        """The number of components that was chosen."""
        return int(self._n_features_out)

    @property
    def best_score_(self) -> float:
        """Its cross-validated score."""
        return float(1.0 - self._require_fitted().validated().errors[self.n_components_ - 1])

    def _fit_folds(
        self, opened: Callable[..., OpenedRows], data: tuple[Any, Any, Any], groups: Any, folds: Any
    ) -> Self:
        """Fit the model, forgetting what it was before; here cv may be a splitter."""
        with changed_at_once(self) as (twin,):
            for name in ("_fitted", "_classes_to_come"):
                twin.__dict__.pop(name, None)
            fitted = twin._absorbed(opened, data, groups, folds, splits=True)
            if sum(fold.n_rows > 0 for fold in fitted.stream.streams) < 2:
                raise ValueError(
                    f"All rows (n_samples={fitted.n_rows}) are in one fold, and cross-validation takes two at least: "
                    "pass more rows, or other groups."
                )
            fitted.solved()
            twin._fitted = fitted
        return self

    def _learn_folds(
        self, opened: Callable[..., OpenedRows], data: tuple[Any, Any, Any], groups: Any, folds: Any, **how: Any
    ) -> Self:
        """Add rows to the model. If that fails it is as it was, and if none of them has a weight."""
        with learning(self, how) as twin:
            twin._fitted = twin._absorbed(opened, data, groups, folds, **how)
        return self

    def _absorbed(
        self,
        opened: Callable[..., OpenedRows],
        data: tuple[Any, Any, Any],
        groups: Any,
        folds: Any,
        *,
        splits: bool = False,
        **how: Any,
    ) -> FittedFolds:
        """Return what is left after more rows. If ``splits``, cv may be a splitter of these rows."""
        X, y, _ = data
        before: FittedFolds | None = vars(self).get("_fitted")
        n_folds = self._number_of_folds
        if n_folds is None and folds is not None and before is not None:
            n_folds = len(before.stream.streams)
        if n_folds is None and (not splits or is_collection(X)):
            raise ValueError(
                "Rows to come, and those of a Dask collection, cannot be split beforehand: set cv to a number of folds."
            )
        self._validate_params()
        settings = Settings.of(self)
        if is_collection(X):
            assert n_folds is not None
            assignment = FoldAssignment.by_columns(n_folds, self.block_length, groups, folds)
            how |= {
                "groups": _in_blocks(groups, as_groups),
                "folds": _in_blocks(folds, partial(as_vector, name="folds")),
            }
        elif n_folds is None:
            assignment = self._assignment_of_splits(X, y, groups, folds)
        else:
            assignment = FoldAssignment.of(n_folds, self.block_length, groups, folds)
        head = None if before is None else before.head
        with opened(self, *data, head, batch_size=self.batch_size, **how) as (rows, head):
            require_components(settings.n_components, rows.n_columns, "max_components")
            if isinstance(rows, ArrayRows):
                assignment = assignment.present(rows.X, rows.weight)
            elif assignment.given is not None:
                raise ValueError(_NOT_FOR_SOURCES)
            if before is None:
                if rows.n_rows == 0:
                    raise NoWeightError
                stream = Folds(settings.new_stream(rows) for _ in range(assignment.n_folds))
            else:
                before.require_same(assignment)
                stream = Folds(settings.continued(fold) for fold in before.stream.streams)
            with located_errors(rows):
                if isinstance(rows, CollectionRows):
                    stream = self._absorbed_by_workers(stream, rows, assignment, settings)
                else:
                    stream = _assign(stream, rows, assignment, stream.n_rows)
        solver = settings.streaming_solver(rows.n_columns) if before is None else before.solver
        return FittedFolds(
            head,
            solver,
            settings.n_components,
            settings.scale,
            stream,
            assigned_by=assignment.by,
            rule=self.rule,
        )

    def _absorbed_by_workers(
        self, stream: Folds[Gram | Sketch], rows: CollectionRows, assignment: FoldAssignment, settings: Settings
    ) -> Folds[Gram | Sketch]:
        same = settings.continuing(stream.streams[0])
        empty = Folds(same.new_stream(rows) for _ in range(assignment.n_folds))
        learnt = rows.absorbed(
            empty,
            _AssignedBlocks(assignment, stream.n_rows),
            state_bytes=self.memory_usage(rows.n_columns, rows.n_targets),
            by_number=assignment.by not in {"groups", "folds"},
        )
        return stream.merged(learnt, later=True) if stream.n_rows else learnt

    def _assignment_again(self, X: Any, groups: Any, folds: Any) -> FoldAssignment:
        """Return how rows that have been learnt were assigned to folds."""
        if is_collection(X):
            raise TypeError("Rows are known by their number, and those of a Dask collection are not: pass arrays.")
        assignment = FoldAssignment.of(len(self._fitted.stream.streams), self.block_length, groups, folds)
        self._fitted.require_same(assignment)
        if assignment.given is not None:
            if isinstance(X, Source):
                raise ValueError(_NOT_FOR_SOURCES)
            assignment = assignment.present(X, None)
        return assignment

    @property
    def _number_of_folds(self) -> int | None:
        """The number of folds, or None if it depends on the rows."""
        if self.cv is None:
            return 5
        return int(self.cv) if isinstance(self.cv, Integral) else None

    def _assignment_of_splits(self, X: Any, y: Any, groups: Any, folds: Any) -> FoldAssignment:
        if isinstance(X, Source):
            raise ValueError("A source is read only once, and not split beforehand: set cv to a number of folds.")  # noqa: TRY004
        if folds is not None:
            raise ValueError("cv and folds both say which rows are in a fold: with folds, set cv to their number.")
        given = folds_of_splits(self.cv, X, y, groups)
        return FoldAssignment(int(given.max(initial=0)) + 1, "folds", given=given)


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
class IncrementalPLSCV(RegressionMethods, _CrossValidated):
    """IncrementalPLS with the number of components chosen by cross-validation, in one pass over the data.

    Rows are assigned to folds as they come, and each fold keeps a streaming state of its own. A model of all folds but
    one needs no other rows, because states can be merged, and its error on the fold that was held out needs no rows
    either: it follows from the state of that fold. So the cross-validated errors of all numbers of components come from
    the same single pass that the final model is made from, and in memory that does not depend on the number of rows.
    With the solver "gram" they are exact: those of fitting and predicting again for each fold.

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
        How X is condensed; "auto" is "gram" for up to 2,048 features, and "sketch" for more. See Notes.
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
        """Fit the model to X and y, forgetting what it was before. The data is read once.

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
class IncrementalPLSClassifierCV(ClassifierMethods, _CrossValidated):
    """IncrementalPLSClassifier with the number of components chosen by cross-validation, in one pass over the data.

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
        How X is condensed; "auto" is "gram" for up to 2,048 features, and "sketch" for more. See Notes.
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
        """Fit the model to X and y, forgetting what it was before. The data is read once.

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


def _predicted(model: Solution, rows: Rows, *, of_labels: bool) -> Array:
    """Return what a model predicts: values, or classes by number."""
    if of_labels:
        scores: Any = centred_product(rows, model.x_mean, model.projection(None))
        return by_lda(model, scores.shape[1], model.y_mean).largest(scores)
    return centred_product(rows, model.x_mean, model.coefficients(None).T) + model.y_mean


def _assign(
    stream: Folds[Gram | Sketch], rows: TrainingRows, assignment: FoldAssignment, n_before: int
) -> Folds[Gram | Sketch]:
    """Return the streams with all rows, each in that of its fold; ``n_before`` rows came before them."""
    start = 0
    for block in track(rows.blocks(), "read 1 of 1", rows.n_rows, lambda block: block.n_rows):
        folds = assignment.folds(n_before + start, start, block.n_rows)
        stream = stream.with_rows(block.X, block.Y, block.weight, folds)
        start += block.n_rows
    return stream


@dataclass(frozen=True)
class _AssignedBlocks:
    """Assigns the rows of blocks to folds, where Dask has them."""

    assignment: FoldAssignment
    n_before: int

    def __call__(
        self, stream: Folds[Gram | Sketch], rows: TrainingRows, first_row: int, columns: dict[str, Any]
    ) -> Folds[Gram | Sketch]:
        known = self.assignment
        assignment = FoldAssignment.of(known.n_folds, known.block_length, columns.get("groups"), columns.get("folds"))
        if isinstance(rows, ArrayRows):
            assignment = assignment.present(rows.X, rows.weight)
        return _assign(stream, rows, assignment, self.n_before + first_row)


def _in_blocks(column: Any, as_array: Callable[[Any], Array]) -> Any:
    """Return groups or folds of a Dask collection as these, or as an array of one entry per row."""
    return column if column is None or is_collection(column) else as_array(column)
