"""IncrementalPLSCV: the number of components chosen by cross-validation, in the one pass that the fit takes."""

from __future__ import annotations

from math import ceil, log2
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._types import Array, Float64Array, Rows
from .._warnings import warn_user
from ..progress import track
from ..sources import ArraySource, Source
from ..statistics import Folds, Gram, Sketch
from ..statistics.folds import all_but_one, merged
from ._base import located_errors, unchanged_on_failure
from ._cross_validation import CrossValidation
from ._dealing import Dealing, folds_of_splits
from ._one_hot import as_labels, classes_of, is_text, one_hot
from ._projection import centred_product
from ._solution import Solution
from ._sources import SourceRows, by_blocks
from ._streamed import warn_of_small_sketch
from .incremental_pls import IncrementalPLS

_NOT_FOR_SOURCES = "groups and folds are not for sources: pass blocks of rows with theirs."


class IncrementalPLSCV(IncrementalPLS):
    """IncrementalPLS with the number of components chosen by cross-validation, in one pass over the data.

    Rows are dealt to folds as they come, and each fold keeps a streaming state of its own. A model of all folds but one
    needs no other rows, for states can be merged, and its error on the fold that was held out needs no rows either: it
    follows from the state of that fold. So the cross-validated errors of all numbers of components come from the same
    single pass that the final model is made from, and in memory that does not depend on the number of rows. With the
    solver "gram" they are exact: those of fitting and predicting again for each fold.

    Once fitted, it is an :class:`IncrementalPLS` of all rows with the chosen number of components.

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
    target : {"auto", "values", "labels"}, default="auto"
        What y holds. "auto" takes text for labels, and numbers for values. Labels become one response a class, one
        where a row is of the class and zero elsewhere. ``predict`` returns the class of the largest prediction.
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
    classes_ : ndarray of shape (n_classes,)
        The labels in ascending order, if y holds labels.
    coef_, x_weights_, vip_, ... : ndarray
        All other attributes are those of :class:`IncrementalPLS`.

    See Also
    --------
    IncrementalPLS : The same for a given number of components.
    sklearn.model_selection.GridSearchCV : A fit for each fold and each number of components.

    Notes
    -----
    Which fold a row is in depends on its number since the first call alone, and not on how rows are divided among
    calls. Of every ``cv`` rows (or blocks of ``block_length`` rows) that follow each other, one goes to each fold, in
    an order given by a hash (SplitMix64) of their numbers. Rows of weight zero are not counted. With ``groups``, rows
    go to the fold of a hash of their group (SplitMix64 of a number, BLAKE2b of a text), so that no group is in two
    folds: this takes many more groups than folds. ``merge`` adds the rows of a fold to those of the same fold; rows of
    the other model stay in the folds that they had there.

    Squared errors come from squares of y. Where the error is less than about 1e-7 of the standard deviation of y, its
    digits are rounding errors, and numbers of components that differ only so count as equally good.

    For labels the errors are those of the responses, and not of the classes that they stand for: a prediction that is
    far on the right side of its class counts as an error, too. The accuracy takes one more read of the rows, by
    ``predict_held_out``.

    With the solver "sketch" the errors are approximate, as are the models: what a sketch lets go of a fold is missing
    both where the fold trains models and where it is held out.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_components": [Interval(Integral, 1, None, closed="left")],
        "cv": ["cv_object", "array-like"],
        "rule": [StrOptions({"min", "one-se"})],
        "block_length": [Interval(Integral, 1, None, closed="left")],
        "scale": ["boolean"],
        "solver": [StrOptions({"auto", "gram", "sketch"})],
        "target": [StrOptions({"auto", "values", "labels"})],
        "sketch_size": [Interval(Integral, 2, None, closed="left"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
    }

    forgetting = 1.0
    _components_parameter = "max_components"
    _in_one_read = True
    _stream: Folds[Gram | Sketch] | None  # type: ignore[assignment]
    _validated: CrossValidation | None

    def __init__(
        self,
        max_components: int = 10,
        *,
        cv: Any = 5,
        rule: str = "min",
        block_length: int = 1,
        scale: bool = True,
        solver: str = "auto",
        target: str = "auto",
        sketch_size: int | None = None,
        batch_size: int | None = None,
    ) -> None:
        self.max_components = max_components
        self.cv = cv
        self.rule = rule
        self.block_length = block_length
        self.scale = scale
        self.solver = solver
        self.target = target
        self.sketch_size = sketch_size
        self.batch_size = batch_size

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None, folds: Any = None) -> Self:
        """Fit the model to X and y, forgetting what it was before. The data is read once.

        Parameters
        ----------
        X : array-like, sparse matrix or memory map of shape (n_samples, n_features), or source
            The rows. Files of any size are opened by :func:`plstream.open_source`.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            The responses. None if X is a source, which has them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, in the models and in their errors.
        groups : array-like of shape (n_samples,), default=None
            Groups of rows, numbers or text, that stay together in a fold.
        folds : array-like of shape (n_samples,), default=None
            The folds of the rows, numbers from 0 to ``cv - 1``.

        Returns
        -------
        self : IncrementalPLSCV
        """
        with unchanged_on_failure(self):
            self._reset()
            if self._number_of_folds is None:
                dealing = self._dealing_of_splits(X, y, groups, folds)
            else:
                dealing = Dealing.of(self._number_of_folds, self.block_length, groups, folds)
            self._learn_dealt(X, y, sample_weight, dealing)
            stream = self._require_stream("fit")
            if sum(fold.n_rows > 0 for fold in stream.streams) < 2:
                raise ValueError(
                    f"All rows (n_samples={stream.n_rows}) are in one fold, and cross-validation takes two at least: "
                    "pass more rows, or other groups."
                )
            self._solution()
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        classes: Any = None,
        groups: Any = None,
        folds: Any = None,
    ) -> Self:
        """Add rows to the model. A call that fails leaves the model as it was.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The new rows, one or more.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Their responses. None if X is a source, which has them.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.
        classes : array-like, default=None
            All labels that will ever come, in the first call. By default those of its rows.
        groups : array-like of shape (n_samples,), default=None
            Their groups, in all calls or in none. A group may come in several calls.
        folds : array-like of shape (n_samples,), default=None
            Their folds, numbers from 0 to ``cv - 1``, in all calls or in none.

        Returns
        -------
        self : IncrementalPLSCV
        """
        with unchanged_on_failure(self):
            n_folds = self._number_of_folds
            if n_folds is None and folds is not None and self.__sklearn_is_fitted__():
                n_folds = len(self._require_stream("partial_fit").streams)
            if n_folds is None:
                raise ValueError(
                    "Rows to come cannot be split beforehand: for partial_fit set cv to a number of folds."
                )
            self._learn_dealt(X, y, sample_weight, Dealing.of(n_folds, self.block_length, groups, folds), classes)
        return self

    def merge(self, other: IncrementalPLS) -> Self:
        """Add to each fold of this model the rows of the same fold of another one, which is left as it is.

        Parameters
        ----------
        other : IncrementalPLSCV
            A model of other rows, with the same parameters and features.

        Returns
        -------
        self : IncrementalPLSCV
        """
        super().merge(other)
        self._validated = None
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def memory_usage(self, n_features: int, n_targets: int = 1) -> int:
        """Return the bytes that ``partial_fit`` and solving take, at most, whatever the number of rows.

        Parameters
        ----------
        n_features, n_targets : int
            Number of columns of X and y.

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
        return self._stream_bytes(n_features, n_targets, n_folds, ceil(log2(n_folds)) + 2)

    def predict_held_out(
        self, X: Any, n_components: int | None = None, *, groups: Any = None, folds: Any = None
    ) -> Array:
        """Predict rows that the model was made from, each by the model of all folds but its own.

        This is what scikit-learn's ``cross_val_predict`` returns, from one more read of the rows and no further fits.
        Any score can be computed from it, such as the accuracy for labels.

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
        stream = self._require_stream("predict_held_out")
        k = self._components_to_use(n_components, self._solve_with["n_components"])
        dealing = Dealing.of(len(stream.streams), self.block_length, groups, folds)
        self._require_same_dealing(dealing)
        if dealing.given is not None:
            if isinstance(X, Source):
                raise ValueError(_NOT_FOR_SOURCES)
            dealing = dealing.present(X, None)
        solve_with = {"n_components": k, "scale": self._solve_with["scale"], "quiet": True}
        models = [Solution.of(others, others, **solve_with) for others in all_but_one(stream.states())]
        start = 0

        def predict(rows: Rows) -> Float64Array:
            nonlocal start
            n_rows = rows.shape[0]
            numbers = dealing.folds(start, start, n_rows)
            start += n_rows
            prediction = np.empty((n_rows, self._n_targets))
            for fold in np.unique(numbers):
                chosen, model = np.flatnonzero(numbers == fold), models[fold]
                product = centred_product(rows[chosen], model.x_mean, model.coefficients(None).T)
                prediction[chosen] = product + model.y_mean
            return prediction

        prediction = by_blocks(self, X, predict)
        return self._as_labels(prediction[:, 0] if self._y_is_vector else prediction)

    def predict(self, X: Any, n_components: int | None = None) -> Array:
        """Predict the responses of X, or its labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.
        n_components : int, default=None
            Use the first components only.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            With as many dimensions as the y of the fit.
        """
        return self._as_labels(super().predict(X, n_components))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination of predictions, or the accuracy for labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            What they are to be predicted as.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        score : float
        """
        scored = accuracy_score if hasattr(self, "classes_") else r2_score
        return float(scored(y, self.predict(X), sample_weight=sample_weight))

    @property
    def cv_results_(self) -> dict[str, Any]:
        """Scores and errors of all numbers of components."""
        return self._cross_validation().results(y_is_vector=self._y_is_vector)

    @property
    def n_components_(self) -> int:
        """The number of components that was chosen."""
        return int(self._n_features_out)

    @property
    def best_score_(self) -> float:
        """Its cross-validated score."""
        return float(1.0 - self._cross_validation().errors[self.n_components_ - 1])

    def _learn_dealt(self, X: Any, y: Any, sample_weight: Any, dealing: Dealing, classes: Any = None) -> None:
        """Deal rows to the folds; without a state yet, begin one."""
        first = not self.__sklearn_is_fitted__()
        stream = None if first else self._require_stream("partial_fit")
        self._validate_params()
        y = self._responses(X, y, classes, first=first)
        with self._rows(X, y, sample_weight, reset=first, in_one_read=True) as rows:
            if isinstance(rows, ArraySource):
                dealing = dealing.present(rows.X, rows.weight)
            elif dealing.given is not None:
                raise ValueError(_NOT_FOR_SOURCES)
            self._solve_with = {"n_components": self.max_components, "scale": self.scale}
            if stream is None:
                self._require_weight(rows.n_rows)
                stream = Folds(self._new_stream(rows) for _ in range(dealing.n_folds))
            else:
                self._require_same_dealing(dealing)
                stream = Folds(self._continued(fold) for fold in stream.streams)
            with located_errors(rows):
                _deal(stream, rows, dealing)
        self._stream, self._solved, self._validated = stream, None, None
        self._rule, self._dealt_by = self.rule, dealing.by
        self.solver_ = self._streaming_solver(rows.n_columns)

    def _responses(self, X: Any, y: Any, classes: Any, *, first: bool) -> Any:
        """Return values as they are, and labels as one column a class."""
        if first:
            if self.target == "values" or (self.target == "auto" and classes is None and not is_text(y)):
                return y
            if isinstance(X, Source):
                raise ValueError(
                    "Labels of a source cannot be learnt: pass blocks of rows to partial_fit with classes."
                )
            self.classes_ = classes_of(as_labels(y if classes is None else classes))
        known = getattr(self, "classes_", None)
        if classes is not None and (known is None or not np.array_equal(classes_of(as_labels(classes)), known)):
            raise ValueError("classes differ from those of the first call: pass them once, or the same every time.")
        if known is None:
            return y
        return one_hot(as_labels(y), known)

    def _as_labels(self, prediction: Array) -> Array:
        labels: Array = self.classes_[prediction.argmax(axis=1)] if hasattr(self, "classes_") else prediction
        return labels

    def _require_same_dealing(self, dealing: Dealing) -> None:
        n_folds = len(self._require_stream("partial_fit").streams)
        if dealing.n_folds != n_folds:
            raise ValueError(f"cv cannot change in mid-stream: set it back to {n_folds}.")
        if dealing.by != self._dealt_by:
            raise ValueError(f"Rows were dealt to folds by {self._dealt_by} before, and cannot be by {dealing.by} now.")

    @property
    def _number_of_folds(self) -> int | None:
        """The number of folds, or None if it depends on the rows."""
        if self.cv is None:
            return 5
        return int(self.cv) if isinstance(self.cv, Integral) else None

    def _dealing_of_splits(self, X: Any, y: Any, groups: Any, folds: Any) -> Dealing:
        if isinstance(X, Source):
            raise ValueError("A source is read only once, and not split beforehand: set cv to a number of folds.")  # noqa: TRY004
        if folds is not None:
            raise ValueError("cv and folds both say which rows are in a fold: with folds, set cv to their number.")
        given = folds_of_splits(self.cv, X, y, groups)
        return Dealing(int(given.max(initial=0)) + 1, "folds", given=given)

    def _solution(self) -> Solution:
        """Return the solution for the rows seen so far, with the number of components chosen for them."""
        check_is_fitted(self)
        if self._solved is None:
            folds = self._require_stream("solving").states()
            total = merged(folds)
            validated = CrossValidation.of(folds, total, **self._solve_with)
            if validated.n_folds < 2:
                warn_user("All rows so far are in one fold: until there are others, the model has one component.")
            chosen = {**self._solve_with, "n_components": validated.choice(self._rule)}
            solved = Solution.of(total, total, **chosen)
            if isinstance(total, Sketch):
                warn_of_small_sketch(total.size, solved.subspace_error)
            self._validated, self._solved = validated, solved
        return self._solved

    def _cross_validation(self) -> CrossValidation:
        self._solution()
        assert self._validated is not None
        return self._validated

    def _require_rows(self, n_rows: int | None, n_columns: int) -> None:
        # Components that there are not repeat the last error.
        self._require_weight(n_rows)

    def _require_stream(self, method: str) -> Folds[Gram | Sketch]:  # type: ignore[override]
        check_is_fitted(self)
        assert self._stream is not None
        return self._stream

    def _reset(self) -> None:
        super()._reset()
        for name in ("_validated", "_rule", "_dealt_by", "classes_"):
            if hasattr(self, name):
                delattr(self, name)

    def _kind(self) -> dict[str, Any]:
        folds = {"cv": len(self._require_stream("merge").streams), "what rows are dealt to folds by": self._dealt_by}
        classes = {"classes_": getattr(self, "classes_", np.empty(0)).tolist()}
        return {**super()._kind(), **folds, **classes}


def _deal(stream: Folds[Gram | Sketch], rows: ArraySource | SourceRows, dealing: Dealing) -> None:
    """Let each row be taken in by the stream of its fold."""
    start = 0
    for block in track(rows, "read 1 of 1", rows.n_rows, lambda block: block.n_rows):
        stream.update(block.X, block.Y, block.weight, dealing.folds(stream.n_rows, start, block.n_rows))
        start += block.n_rows
