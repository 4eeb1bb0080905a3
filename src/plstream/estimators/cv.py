"""IncrementalPLSCV: the number of components chosen by cross-validation, in the one pass that the fit takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil, log2
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._core.labels import is_text
from .._core.progress import track
from .._core.projection import centred_product
from .._core.types import Array, Float64Array, Rows
from .._core.validation import located_errors, unchanged_on_failure
from .._core.warnings import warn_user
from ..data import ArraySource, Source
from ..states import Folds, Gram, Sketch
from ..states.folds import all_but_one, merged
from ._classes import OfLabels, for_labels
from ._collections import is_collection, learn_collection
from ._cross_validation import ClassCrossValidation, CrossValidation
from ._dealing import Dealing, as_groups, as_vector, folds_of_splits
from ._decision import by_lda
from ._solution import Solution
from ._sources import SourceRows, as_numbers, by_blocks, require_target, validate_source
from ._streamed import warn_of_small_sketch
from .incremental_pls import IncrementalPLS

_NOT_FOR_SOURCES = "groups and folds are not for sources: pass blocks of rows with theirs."


class IncrementalPLSCV(IncrementalPLS, OfLabels):
    """IncrementalPLS with the number of components chosen by cross-validation, in one pass over the data.

    Rows are dealt to folds as they come, and each fold keeps a streaming state of its own. A model of all folds but one
    needs no other rows, for states can be merged, and its error on the fold that was held out needs no rows either: it
    follows from the state of that fold. So the cross-validated errors of all numbers of components come from the same
    single pass that the final model is made from, and in memory that does not depend on the number of rows. With the
    solver "gram" they are exact: those of fitting and predicting again for each fold.

    Once fitted, it is an :class:`IncrementalPLS` of all rows with the chosen number of components, or for labels an
    :class:`IncrementalPLSClassifier`.

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
        What y holds. "auto" takes text for labels, and numbers for values. Labels are learnt as by
        :class:`IncrementalPLSClassifier`, and predicted by linear discriminant analysis of the scores.
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

        For labels, scores are expected accuracies, see Notes, and there are no errors of responses.
    classes_, class_count_, class_prior_ : ndarray of shape (n_classes,)
        If y holds labels: these in ascending order, how many rows they have, and their shares.
    coef_, x_weights_, vip_, ... : ndarray
        All other attributes are those of :class:`IncrementalPLS`.

    See Also
    --------
    IncrementalPLS, IncrementalPLSClassifier : The same for a given number of components.
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

    Squared errors come from squares of y. Where the error is less than about 1e-7 of the standard deviation of y, its
    digits are rounding errors, and numbers of components that differ only so count as equally good.

    For labels, the state of a fold does not tell which of its rows would be told right, but where its classes lie among
    the scores of the model of the other folds, and how its rows spread about them. The score is the accuracy that is
    expected of rows with normal distributions there, all with the same covariance. If it is not to be trusted, take one
    more read of the rows: ``held_out_accuracy`` returns the exact ones of all numbers of components.

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
    _validated: CrossValidation | ClassCrossValidation | None

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
        X : array-like, sparse matrix or memory map of shape (n_samples, n_features), source or Dask collection
            The rows. Files of any size are opened by :func:`plstream.open_source`.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or Dask collection, default=None
            The responses, or labels. None if X is a source, which has them.
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
        with unchanged_on_failure(self):
            self._reset()
            self._learn_rows(X, y, sample_weight, groups, folds, splits=True)
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
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The new rows, one or more.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or Dask collection, default=None
            Their responses, or labels. None if X is a source, which has them.
        sample_weight : array-like of shape (n_samples,), or Dask collection, default=None
            Their weights.
        classes : array-like of shape (n_classes,), default=None
            All labels that will come, in the first call, as of :class:`IncrementalPLSClassifier`.
        groups : array-like of shape (n_samples,), or Dask collection, default=None
            Their groups, in all calls or in none. A group may come in several calls.
        folds : array-like of shape (n_samples,), or Dask collection, default=None
            Their folds, numbers from 0 to ``cv - 1``, in all calls or in none.

        Returns
        -------
        self : IncrementalPLSCV
        """
        targets = {"classes": classes}
        with self._learning(targets):
            self._learn_rows(X, y, sample_weight, groups, folds, **targets)
        return self

    def merge(self, other: IncrementalPLS) -> Self:
        """Add to each fold of this model the rows of the same fold of another one, which is left as it is.

        Parameters
        ----------
        other : IncrementalPLSCV
            A model of other rows, with the same parameters and features. For labels, either may have classes that the
            other has not.

        Returns
        -------
        self : IncrementalPLSCV
        """
        if self._of_labels and isinstance(other, IncrementalPLSCV):
            return self._merge(other)
        return super().merge(other)

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
        return self._stream_bytes(n_features, n_targets, n_folds, ceil(log2(n_folds)) + 2)

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
        k = self._components_to_use(n_components, self._solve_with["n_components"])
        dealing = self._dealing_again(X, groups, folds)
        models = self._models_of_others(k)
        start, of_labels = 0, self._of_labels

        def predict(rows: Rows) -> Array:
            nonlocal start
            numbers = dealing.folds(start, start, rows.shape[0])
            start += rows.shape[0]
            prediction = np.empty(len(numbers), np.intp) if of_labels else np.empty((len(numbers), self._n_targets))
            for fold in np.unique(numbers):
                chosen = numbers == fold
                prediction[chosen] = _predicted(models[fold], rows[chosen], of_labels=of_labels)
            return prediction

        prediction = by_blocks(self, X, predict)
        if of_labels:
            labels: Array = self.classes_[prediction]
            return labels
        return prediction[:, 0] if self._y_is_vector else prediction

    @for_labels
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
        >>> from plstream import IncrementalPLSCV
        >>> X, y = load_digits(return_X_y=True)
        >>> model = IncrementalPLSCV(max_components=25, target="labels").fit(X, y)
        >>> accuracies = model.held_out_accuracy(X, y)
        >>> bool(accuracies.max() - accuracies[model.n_components_ - 1] < 0.005)
        True
        """
        check_is_fitted(self)
        most = self._solve_with["n_components"]
        dealing = self._dealing_again(X, groups, folds)
        models = self._models_of_others(most)
        decisions = [[by_lda(model, i, model.y_mean) for i in range(1, most + 1)] for model in models]
        right, total, start = np.zeros(most), 0.0, 0
        with self._rows(X, y, sample_weight, reset=False, in_one_read=True) as rows, located_errors(rows):
            if isinstance(rows, ArraySource):
                dealing = dealing.present(rows.X, rows.weight)
            for block in rows:
                numbers = dealing.folds(start, start, block.n_rows)
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

    def predict(self, X: Any, *, n_components: int | None = None) -> Array:
        """Predict the responses of X, or its labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The rows. With a Dask array or dataframe the result is a Dask array.
        n_components : int, default=None
            Use the first components only.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            With as many dimensions as the y of the fit.
        """
        prediction: Array = self._kind_of_model.predict(self, X, n_components=n_components)
        return prediction

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
        scored = accuracy_score if self._of_labels else r2_score
        return float(scored(y, self.predict(X), sample_weight=sample_weight))

    @property
    def cv_results_(self) -> dict[str, Any]:
        """Scores and errors of all numbers of components."""
        return self._cross_validation().results()

    @property
    def n_components_(self) -> int:
        """The number of components that was chosen."""
        return int(self._n_features_out)

    @property
    def best_score_(self) -> float:
        """Its cross-validated score."""
        return float(1.0 - self._cross_validation().errors[self.n_components_ - 1])

    def _learn_rows(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        groups: Any,
        folds: Any,
        *,
        classes: Any = None,
        splits: bool = False,
    ) -> None:
        """Deal rows to the folds; without a state yet, begin one. If ``splits``, cv may be a splitter of these rows."""
        first = not self.__sklearn_is_fitted__()
        stream = None if first else self._require_stream("partial_fit")
        n_folds = self._number_of_folds
        if n_folds is None and folds is not None and stream is not None:
            n_folds = len(stream.streams)
        if n_folds is None and (not splits or is_collection(X)):
            raise ValueError(
                "Rows to come, and those of a Dask collection, cannot be split beforehand: set cv to a number of folds."
            )
        self._validate_params()
        if is_collection(X):
            self._learn_collection(X, y, sample_weight, classes, groups, folds)
            return
        if n_folds is None:
            dealing = self._dealing_of_splits(X, y, groups, folds)
        else:
            dealing = Dealing.of(n_folds, self.block_length, groups, folds)
        with self._rows(X, y, sample_weight, reset=first, in_one_read=True, classes=classes) as rows:
            if isinstance(rows, ArraySource):
                dealing = dealing.present(rows.X, rows.weight)
            elif dealing.given is not None:
                raise ValueError(_NOT_FOR_SOURCES)
            self._set_solving()
            if stream is None:
                self._require_weight(rows.n_rows)
                stream = Folds(self._new_stream(rows) for _ in range(dealing.n_folds))
            else:
                self._require_same_dealing(dealing)
                stream = Folds(self._continued(fold) for fold in stream.streams)
            with located_errors(rows):
                _deal(stream, rows, dealing, vars(self).get("_first_row", 0))
        self._go_on_with(stream)
        self._dealt_by = dealing.by
        self.solver_ = self._streaming_solver(rows.n_columns)

    def _learn_collection(self, X: Any, y: Any, sample_weight: Any, classes: Any, groups: Any, folds: Any) -> None:
        """Deal rows to the folds where Dask has them."""
        if self.__sklearn_is_fitted__():
            self._set_solving()
            self._stream = Folds(self._continued(fold) for fold in self._require_stream("partial_fit").streams)
        by_number = groups is None and folds is None
        if not (groups is None or is_collection(groups)):
            groups = as_groups(groups)
        if not (folds is None or is_collection(folds)):
            folds = as_vector(folds, "folds")
        learn_collection(self, X, y, sample_weight, classes=classes, by_number=by_number, groups=groups, folds=folds)
        # It was that of the first block.
        self.__dict__.pop("_first_row", None)

    def _set_solving(self) -> None:
        """Note what the model is to be solved with: parameters may be set anew before the next call."""
        self._solve_with = {"n_components": self.max_components, "scale": self.scale}
        self._rule = self.rule

    def _begin_at(self, row: int) -> None:
        """Let the first row to come be that of a number."""
        self._first_row = row

    def _go_on_with(self, stream: Any) -> None:
        super()._go_on_with(stream)
        self._validated = None

    @contextmanager
    def _rows(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool, in_one_read: bool, classes: Any = None
    ) -> Iterator[Any]:
        if isinstance(X, Source):
            require_target(X, type(self).__name__, y, sample_weight)
            with SourceRows(X) as source_rows:
                if self._learns_labels(source_rows.first_y, classes, reset=reset):
                    validate_source(self, X, reset=reset)
                    self._read_labels(source_rows, classes, reset=reset)
                else:
                    self._set_columns(X, reset=reset)
                    source_rows.numbers = as_numbers
                yield source_rows
            return
        how: dict[str, Any] = {"reset": reset, "in_one_read": in_one_read}
        if self._learns_labels(y, classes, reset=reset):
            with OfLabels._rows(self, X, y, sample_weight, **how, classes=classes) as rows:
                yield rows
        else:
            with IncrementalPLS._rows(self, X, y, sample_weight, **how) as rows:
                yield rows

    def _learns_labels(self, y: Any, classes: Any, *, reset: bool) -> bool:
        """Return whether y holds labels, which is decided at the first call."""
        if not reset:
            labels = self._of_labels
        elif self.target == "auto":
            labels = classes is not None or is_text(y)
        else:
            labels = self.target == "labels"
        if classes is not None and not labels:
            raise ValueError("classes are for labels, and y holds values: pass none, or set target='labels'.")
        return labels

    @property
    def _of_labels(self) -> bool:
        """Whether y holds labels; before there is any, whether it will for sure."""
        return hasattr(self, "_labels") if self.__sklearn_is_fitted__() else self.target == "labels"

    @property
    def _kind_of_model(self) -> Any:
        """The class whose methods are those of the model."""
        return OfLabels if self._of_labels else IncrementalPLS

    def _dealing_again(self, X: Any, groups: Any, folds: Any) -> Dealing:
        """Return how rows that have been learnt were dealt to folds."""
        stream = self._require_stream("predict_held_out")
        if is_collection(X):
            raise TypeError("Rows are known by their number, and those of a Dask collection are not: pass arrays.")
        dealing = Dealing.of(len(stream.streams), self.block_length, groups, folds)
        self._require_same_dealing(dealing)
        if dealing.given is not None:
            if isinstance(X, Source):
                raise ValueError(_NOT_FOR_SOURCES)
            dealing = dealing.present(X, None)
        return dealing

    def _models_of_others(self, n_components: int) -> list[Solution]:
        """Return the model of all rows but those of each fold."""
        solve_with = {**self._solve_with, "n_components": n_components, "quiet": True}
        states = self._require_stream("predict_held_out").states()
        return [Solution.of(others, others, **solve_with) for others in all_but_one(states)]

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
            validated: CrossValidation | ClassCrossValidation
            if self._of_labels:
                validated = ClassCrossValidation.of(folds, total, **self._solve_with)
            else:
                validated = CrossValidation.of(folds, total, **self._solve_with, y_is_vector=self._y_is_vector)
            if validated.n_folds < 2:
                warn_user("All rows so far are in one fold: until there are others, the model has one component.")
            chosen = {**self._solve_with, "n_components": validated.choice(self._rule)}
            solved = Solution.of(total, total, **chosen)
            if isinstance(total, Sketch):
                warn_of_small_sketch(total.size, solved.subspace_error)
            self._validated, self._solved = validated, solved
        return self._solved

    def _cross_validation(self) -> CrossValidation | ClassCrossValidation:
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
        for name in ("_validated", "_rule", "_dealt_by", "_labels", "_n_targets", "_y_is_vector"):
            if hasattr(self, name):
                delattr(self, name)

    def _kind(self) -> dict[str, Any]:
        stream = self._require_stream("merge")
        return {
            "the class": type(self).__name__,
            "what y holds": "labels" if self._of_labels else "values",
            **self._kind_of_model._kind(self),
            "cv": len(stream.streams),
            "what rows are dealt to folds by": self._dealt_by,
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self._of_labels:
            tags.estimator_type, tags.classifier_tags, tags.regressor_tags = "classifier", ClassifierTags(), None
            tags.target_tags.multi_output = False
        return tags


def _predicted(model: Solution, rows: Rows, *, of_labels: bool) -> Array:
    """Return what a model predicts: values, or classes by number."""
    if of_labels:
        scores: Any = centred_product(rows, model.x_mean, model.projection(None))
        return by_lda(model, scores.shape[1], model.y_mean).largest(scores)
    return centred_product(rows, model.x_mean, model.coefficients(None).T) + model.y_mean


def _deal(stream: Folds[Gram | Sketch], rows: ArraySource | SourceRows, dealing: Dealing, first_row: int) -> None:
    """Let each row be taken in by the stream of its fold; the first row of all has the number ``first_row``."""
    start = 0
    for block in track(rows, "read 1 of 1", rows.n_rows, lambda block: block.n_rows):
        folds = dealing.folds(first_row + stream.n_rows, start, block.n_rows)
        stream.update(block.X, block.Y, block.weight, folds)
        start += block.n_rows
