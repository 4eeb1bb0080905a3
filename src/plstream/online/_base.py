"""What all online methods share: rows and targets in, one recursion over the rows, a projection out.

An estimator says how its recursion begins (``_begin``) and what projection it has come to (``_solve``). All else is
here: validation, labels and values, running means, chunks, progress, and calls that fail without a trace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._core.aligned import aligned_empty
from .._core.labels import as_target, require_label_vector
from .._core.progress import track
from .._core.projection import centred_product
from .._core.threads import ordered_map
from .._core.types import Array, Float64Array, FloatArray, Rows
from .._core.validation import located_errors, unchanged_on_failure, validate_rows
from .._core.warnings import warn_user
from ..data import Source
from ..rows import ArrayRows, SourceRows, TrainingRows, by_blocks, require_target
from ..rows.sources import validate_source
from ._centring import RunningMean, tile_rows, tiles
from ._targets import Targets, is_labels

# A few milliseconds, which is what it takes to start threads several times over.
_WORK_WORTH_THREADS = 10_000_000
# Entries of the state that are read in a fraction of a second.
_WORK_BETWEEN_STEPS = 200_000_000


class NotFiniteError(ValueError):
    """A component, the first being 1, has numbers that are no longer finite: fewer components may do."""

    def __init__(self, message: str, component: int = 0) -> None:
        super().__init__(message)
        self.component = component


class Tile(NamedTuple):
    """Some consecutive rows, ready for a recursion, which may use them as its scratch space.

    ``U`` and ``V`` are X and y minus the running means that include the row itself, in the units of those; ``Y`` is y
    as it came. ``n_before`` is the number of rows before them, and ``x_total`` the sum of squares of X, centred, of all
    rows up to the last of them.
    """

    U: Float64Array
    V: Float64Array
    Y: Float64Array
    n_before: int
    x_total: float

    @property
    def V_before(self) -> Float64Array:  # noqa: N802
        """``V``, but as differences from the mean of the rows before: with it, sums of u v are exactly X'y, centred."""
        n = np.arange(self.n_before + 1, self.n_before + len(self.V) + 1)[:, None]
        return self.V * (n / np.maximum(n - 1, 1))


def for_each_column(run: Callable[[int], int], n_columns: int, work: int) -> int:
    """Run the recursion of every column of y, on all cores if there is enough ``work`` in entries read.

    Returns the least number that any of them returned that is not negative, else -1.
    """
    parallel = n_columns > 1 and work > _WORK_WORTH_THREADS
    results = list((ordered_map if parallel else map)(run, range(n_columns)))
    return min((result for result in results if result >= 0), default=-1)


class Recursion(Protocol):
    """The state of a method, and how it learns."""

    def learn(self, tile: Tile) -> int:
        """Take in the rows; return the number of the component whose numbers are no longer finite, or -1."""

    def copy(self) -> Self:
        """Return a copy that shares nothing with this state."""


class Solution(Protocol):
    """What a recursion has come to."""

    x_mean: Float64Array
    n_components: int
    """Components that the rows so far have."""

    @property
    def projection(self) -> Float64Array:
        """The matrix that takes centred rows to scores."""


@dataclass
class Stream:
    """A recursion with the running means of its rows."""

    x: RunningMean
    y: RunningMean
    recursion: Recursion
    targets: Targets | None
    advice: str = "scale the features to unit variance, or use fewer components"

    def learn(self, X: Rows, Y: Float64Array) -> None:
        """Take in rows one by one; raise ValueError if numbers are no longer finite."""
        # Of X and of y, whichever is wider.
        step = min(X.shape[0], tile_rows(max(X.shape[1], len(self.y.origin))))
        buffer = aligned_empty((step, X.shape[1]))
        for rows, tile in tiles(X, step):
            n_before = self.x.n_rows
            U = self.x.subtract_from(tile, buffer[: len(tile)])
            columns, V = self._columns(Y[rows])
            self._require_finite(self.recursion.learn(Tile(U, V, columns, n_before, self.x.total)))
        if not (np.isfinite(self.x.offset).all() and np.isfinite(self.y.offset).all()):
            raise ValueError("The mean is no longer finite: scale the features to unit variance.")

    def _columns(self, numbers: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return the columns that stand for y, and these minus their running mean."""
        if self.targets is None:
            return numbers, numbers
        # As X is: not to be written to, or else Numba compiles once more.
        columns = np.ascontiguousarray(self.targets.columns(numbers)).view()
        columns.flags.writeable = False
        return columns, self.y.subtract_from(columns, np.empty_like(columns))

    def _require_finite(self, failed: int) -> None:
        if failed >= 0:
            component = failed + 1
            raise NotFiniteError(
                f"Component {component} is no longer finite: {self.advice}. The model is as it was before this call.",
                component,
            )

    def copy(self) -> Stream:
        """Return a copy that shares nothing with this stream."""
        return Stream(self.x.copy(), self.y.copy(), self.recursion.copy(), self.targets, self.advice)

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return self.x.n_rows


class OnlineMethod(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """An estimator that learns one row at a time."""

    n_components: int
    _stream: Any
    _solved: Any
    _begun_with: dict[str, Any]
    _targets: Targets | None = None
    _parameter_constraints: ClassVar[dict[str, list[Any]]]
    # Whether rows may be put in units of their own. Not if results depend on the units.
    _any_unit = True
    # Parameters that may change in mid-stream, because the state does not depend on them.
    _free_parameters: ClassVar[frozenset[str]] = frozenset()

    def transform(self, X: Any) -> FloatArray:
        """Return the scores of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_features_out)
            float32 if X is, else float64.
        """
        solution = self._solution()

        def scores(rows: Rows) -> FloatArray:
            dtype = np.float32 if rows.dtype == np.float32 else np.float64
            return centred_product(rows, solution.x_mean, solution.projection, dtype)

        return by_blocks(self, X, scores)

    @property
    def n_samples_seen_(self) -> int:
        """Rows that the model was made from."""
        check_is_fitted(self)
        return int(self._stream.n_rows)

    def _begin(self, n_features: int, n_columns: int) -> Any:
        """Return the recursion before the first row."""
        raise NotImplementedError

    def _solve(self, stream: Any) -> Any:
        """Return the Solution that the stream has come to."""
        raise NotImplementedError

    def _learn(self, rows: Rows, numbers: Float64Array) -> None:
        """Take in validated rows, and the numbers that stand for y."""
        self._learn_blocks(ArrayRows(rows, numbers, batch_size=self._rows_between_steps(int(rows.shape[1]))))

    def _learn_blocks(self, source: TrainingRows) -> None:
        """Take in blocks, whose y is the numbers that stand for it."""
        n_columns = 0 if self._targets is None else self._targets.n_columns
        stream = (self._new_stream(source.n_columns, n_columns) if self._is_new() else self._stream).copy()
        with located_errors(source), np.errstate(over="ignore", invalid="ignore"):
            for block in track(source.blocks(), "one read", source.n_rows, lambda block: block.n_rows):
                stream.learn(block.X, block.Y)
        self._stream, self._solved = stream, None

    def _rows_between_steps(self, n_features: int) -> int:
        """Return the rows that take a fraction of a second: progress is told after each block of them."""
        columns = 1 if self._targets is None else self._targets.n_columns
        work_a_row = n_features * columns * (self.n_components or columns)
        return max(tile_rows(n_features), _WORK_BETWEEN_STEPS // work_a_row)

    def _check_parameters(self) -> None:
        """Raise an error for parameters that are not valid, or that have changed since the first row.

        scikit-learn's decorator would do so, in as much time as it takes to learn from a row.
        """
        if self._is_new():
            self._validate_params()
            return
        for name, value in self._begun_with.items():
            if getattr(self, name) != value:
                raise ValueError(f"{name} cannot change in mid-stream: set it back to {value!r}, or use fit.")

    def _new_stream(self, n_features: int, n_columns: int) -> Any:
        self._begun_with = {name: getattr(self, name) for name in self._fixed_parameters()}
        fixed = not self._any_unit
        x, y = RunningMean.of(n_features, fixed_unit=fixed), RunningMean.of(n_columns, fixed_unit=fixed)
        return Stream(x, y, self._begin(n_features, n_columns), self._targets)

    @classmethod
    def _fixed_parameters(cls) -> dict[str, list[Any]]:
        """Return the constraints of the parameters that cannot change in mid-stream."""
        return {name: legal for name, legal in cls._parameter_constraints.items() if name not in cls._free_parameters}

    def _is_new(self) -> bool:
        return not hasattr(self, "_stream")

    def _forget_all(self) -> None:
        for name in ("_stream", "_solved", "_targets", "_begun_with", "classes_"):
            self.__dict__.pop(name, None)

    def _solution(self) -> Any:
        """Return the solution for the rows so far, solving for it if that has not been done."""
        check_is_fitted(self)
        if self._solved is None:
            solution = self._solve(self._stream)
            n_columns = solution.projection.shape[1]
            if solution.n_components < n_columns:
                warn_user(
                    f"The rows so far have only {solution.n_components} of {n_columns} component(s): the rest are zero."
                )
            self._solved = solution
        return self._solved

    @property
    def _n_features_out(self) -> int:
        return int(self._solution().projection.shape[1])

    def __sklearn_is_fitted__(self) -> bool:
        return not self._is_new()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class Unsupervised(OnlineMethod):
    """An online method of X alone."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the rows of X in order, forgetting what came before.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The estimator.
        """
        with unchanged_on_failure(self):
            self._forget_all()
            self._learn_rows(X)
            self._solution()
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from more rows. A call that fails leaves the model as it was.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The new rows, one or more.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The estimator.
        """
        with unchanged_on_failure(self):
            self._check_parameters()
            self._learn_rows(X)
        return self

    def _learn_rows(self, X: Any) -> None:
        if isinstance(X, Source):
            validate_source(self, X, reset=self._is_new())
            with SourceRows(X) as source_rows:
                self._learn_blocks(source_rows)
            return
        rows = validate_rows(self, X, reset=self._is_new())
        self._learn(rows, np.empty((rows.shape[0], 0)))


class Supervised(OnlineMethod):
    """An online method of X and of y, which holds labels or values."""

    target: str
    _targets: Targets
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"target": [StrOptions({"auto", "labels", "values"})]}

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the rows in order, forgetting what came before.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Labels or values, see ``target``. None if X is a source, which has them.

        Returns
        -------
        self : object
            The estimator.
        """
        with unchanged_on_failure(self):
            self._forget_all()
            self._learn_pairs(X, y, None)
            self._solution()
        return self

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Learn from more rows. A call that fails leaves the model as it was.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The new rows, one or more.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Their labels or values, see ``target``. None if X is a source, which has them.
        classes : array-like of shape (n_classes,), default=None
            All labels that will ever come. By default those in the first call, and those in the first block of a source
            that can be read only once. Only needed in that.

        Returns
        -------
        self : object
            The estimator.
        """
        with unchanged_on_failure(self):
            self._check_parameters()
            self._learn_pairs(X, y, classes)
        return self

    def _learn_pairs(self, X: Any, y: Any, classes: Any) -> None:
        if isinstance(X, Source):
            self._learn_source(X, y, classes)
            return
        rows = validate_rows(self, X, reset=self._is_new())
        target = self._target(y, classes)
        if rows.shape[0] != len(target):
            check_consistent_length(rows, target)
        self._set_targets(target, classes)
        self._learn(rows, self._targets.numbers(target))

    def _learn_source(self, source: Source, y: Any, classes: Any) -> None:
        name = type(self).__name__
        require_target(source, name, y)
        validate_source(self, source, reset=self._is_new())

        with SourceRows(source, lambda y: self._targets.numbers(as_target(y, name))) as rows:
            target = self._target(rows.first_y, classes)
            if self._is_new() and classes is None and source.rereadable and is_labels(target, classes, self.target):
                # All labels have to be known before the first row is learnt.
                require_label_vector(target)
                target = self._target(source.labels(), classes)
            self._set_targets(target, classes)
            self._learn_blocks(rows)

    def _target(self, y: Any, classes: Any) -> Array:
        """Return y as an array."""
        return as_target(y, type(self).__name__)

    def _set_targets(self, target: Array, classes: Any) -> None:
        """Decide what y is, at the first call, from all of it or from the labels that there are."""
        if not self._is_new():
            self._targets.require_same(classes)
            return
        self._targets = Targets.of(target, classes, self.target)
        if self._targets.classes is not None:
            self.classes_ = self._targets.classes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags
