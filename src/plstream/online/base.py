"""Shared code of the online methods: validation, a recursion over the rows, and a projection.

A method consists of a recursion, which holds its state and learns from rows, and an estimator, which starts the
recursion (``_begin``) and solves the state (``_solve``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._core.compiled import copied
from .._core.errors import NonFiniteError, counted
from .._core.labels import TargetEncoding, as_labels, as_one_target, as_target, holds_labels, require_label_vector
from .._core.projection import centred_product
from .._core.schema import (
    FEATURES,
    LARGEST_COUNT,
    Choice,
    Count,
    Entries,
    Kind,
    Number,
    Object,
    OrMissing,
    OrNone,
    Rule,
    Value,
    most_components,
    stored,
)
from .._core.tiles import require_finite
from .._core.types import Array, Float64Array, FloatArray, Rows
from .._core.validation import as_one_row, changed_at_once, require_components, validate_rows
from .._core.warnings import warn_user
from ..data import Source
from ..estimators.missing import CompletedBefore
from ..rows import ArrayRows, Block, SourceRows, by_blocks, opened_data, require_target, validate_source
from ..solvers.completion import FactorModel
from .means import ObservedMeans
from .state import OnlineState, Recursion, tile_rows

# Number of state entries processed in a fraction of a second.
_WORK_BETWEEN_STEPS = 200_000_000
# The y of an unsupervised method.
_NO_TARGET = np.empty((1, 0))

Method = TypeVar("Method", bound="type[OnlineMethod]")


def stored_method(
    *states: type, solution: Object, components: str | None = None, rules: Mapping[str, Rule] | None = None
) -> Callable[[Method], Method]:
    """Declare an online method for model files: its states, its solution, and the parameters that may not change.

    A state is a recursion, or a class with the methods of :class:`OnlineState`. ``components`` is the symbol in shapes
    for ``n_components``.
    """
    recursions = [state for state in states if issubclass(state, Recursion)]
    given = {"recursion": Object(*recursions, m="m", q="q", c="c", L="L?")}
    others = [state for state in states if state not in recursions]
    state = Object(OnlineState, *others, given=given, m="m", q="q?", c="c", L="L?", k="k")

    def declare(cls: Method) -> Method:
        constraints = {name: cls._parameter_constraints[name] for name in cls._fixed_parameters()}
        kinds = {
            name: _kind_of(legal, components if name == "n_components" else None) for name, legal in constraints.items()
        }
        fields: dict[str, Kind] = {"_begun_with": Entries(**kinds), "_state": state, "_solved": OrNone(solution)}
        if cls._uses_y:
            fields["_encoding"] = Object(TargetEncoding, q="q", k="k")
        return stored(fields, rules)(cls)

    return declare


def _kind_of(constraints: list[Any], size: str | None) -> Kind:
    """Return the kind of a parameter with scikit-learn's constraints."""
    kind: Kind
    legal = constraints[0]
    if tuple in constraints:
        return Value()
    if isinstance(legal, StrOptions):
        kind = Choice(*sorted(legal.options))
    elif legal.type is Integral:
        kind = Count(legal.left, LARGEST_COUNT if legal.right is None else legal.right, size=size)
    else:
        kind = Number(legal.left, math.inf if legal.right is None else legal.right)
    return OrNone(kind) if None in constraints else kind


class CheckedRow(NamedTuple):
    """A validated row, as an array of shape (1, n_features)."""

    row: Rows


@stored(
    {**FEATURES, "_observed": OrMissing(Object(ObservedMeans, m="m"))},
    {
        "there are not many more components than features": lambda its: (
            (its._begun_with["n_components"] or 1) <= most_components(its.n_features_in_)
        )
    },
)
class OnlineMethod(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """An estimator that learns one row at a time.

    It holds a state, an :class:`OnlineState` or an object with the same ``learn`` and ``n_rows``, and the solution if
    it has been computed since the last row.
    """

    n_components: int
    target: str
    _state: Any
    _solved: Any
    _begun_with: dict[str, Any]
    _encoding: TargetEncoding | None = None
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "target": [StrOptions({"auto", "labels", "values"})],
        "missing": [StrOptions({"error", "mean"})],
    }
    missing: str = "error"
    _missing_by: ClassVar[dict[str, str]] = {"X": "mean"}
    # Means of the values so far, to replace missing ones.
    _observed: ObservedMeans | None = None
    # Parameters that may change during a stream, because the state does not depend on them.
    _free_parameters: ClassVar[frozenset[str]] = frozenset({"missing"})
    _uses_y: ClassVar[bool] = True

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the rows in order, discarding earlier training.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Labels or values, see ``target``. None if X is a source, which contains them. Ignored by CCIPCA.

        Returns
        -------
        self : object
            The estimator.
        """
        with changed_at_once(self) as (twin,):
            twin.__dict__.pop("_state", None)
            for _ in range(twin._n_passes(X)):
                twin._learn(X, y, None)
            twin._solution()
        return self

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Learn from more rows. A call that fails leaves the model unchanged.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The new rows, one or more.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Their labels or values, see ``target``. None if X is a source, which contains them. Ignored by CCIPCA.
        classes : array-like of shape (n_classes,), default=None
            All labels of the stream, in the first call. By default, those of the first call, or of the first block of a
            source that can be read only once.

        Returns
        -------
        self : object
            The estimator.
        """
        if not hasattr(self, "_state"):
            # scikit-learn's decorator would validate them in every call, which takes as long as learning a row.
            self._validate_params()
        else:
            self._require_same_parameters()
        with changed_at_once(self) as (twin,):
            twin._learn(X, y, classes)
        return self

    def learn_one(self, x: Any, y: Any = None) -> Self:
        """Learn from one more row. The result is bit-identical to that of ``partial_fit``, in a fraction of the time.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            The row: an array with features in the order of the first call, or a pandas Series with their names.
        y : float, label or array-like of shape (n_targets,), default=None
            Its value, label or values, see ``target``. For labels, the first call must be ``partial_fit`` with
            ``classes``.

        Returns
        -------
        self : object
            The estimator.
        """
        if not hasattr(self, "_state"):
            return self.partial_fit(as_one_row(x), as_one_target(y))
        self._require_same_parameters()
        row, numbers, encoding = self._validate_row(x), _NO_TARGET, self._encoding
        if encoding is not None:
            of_one = encoding.numbers_of_one(y)
            numbers = encoding.numbers(self._as_target(as_one_target(y), None)) if of_one is None else of_one
        state = copied(self._state)
        changes = {"_state": state, "_solved": None}
        if self.missing == "mean":
            row, changes["_observed"] = self._filled(row)
        try:
            state.learn(row, numbers, encoding)
        except ValueError:
            self._require_finite(row, numbers)
            raise
        # Set together, so that an interrupt or another thread sees either all changes or none.
        self.__dict__ = vars(self) | changes
        return self

    def _filled(self, rows: Rows) -> tuple[Rows, ObservedMeans]:
        """Return rows with missing values replaced, and the updated means."""
        means = self._observed or ObservedMeans.of(self.n_features_in_)
        return means.filled(rows, getattr(self, "feature_names_in_", None))

    def _require_finite(self, rows: Rows, numbers: Float64Array) -> None:
        """Raise NonFiniteError with the row and the column if a number is not finite."""
        try:
            require_finite("X", rows, allow_missing=self.missing == "mean")
            require_finite("y", numbers)
        except NonFiniteError as error:
            raise error.of_model(self) from None

    def _filling(self, function: Callable[[Rows], Any]) -> Callable[[Rows], Any]:
        """Return the function, preceded by replacing missing values with the model's means if ``missing="mean"``."""
        if self.missing == "error":
            return function
        return CompletedBefore(function, FactorModel.of_means(self._solution().x_mean, 0))

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
        return by_blocks(self, X, self._filling(lambda rows: _scores(rows, solution)))

    def transform_one(self, x: Any) -> FloatArray:
        """Return the scores of one row, bit-identical to those of ``transform``, in a fraction of the time.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            The row, see ``learn_one``.

        Returns
        -------
        scores : ndarray of shape (n_features_out,)
            float32 if x is, else float64.
        """
        solution = self._solution()
        scores: FloatArray = self._filling(lambda row: _scores(row, solution))(self._validate_row(x))[0]
        return scores

    @available_if(lambda model: hasattr(model, "predict"))
    def predict_one(self, x: Any) -> Any:
        """Predict the label, value or values of one row, like ``predict`` but faster.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            The row, see ``learn_one``.

        Returns
        -------
        y : label, float or ndarray of shape (n_targets,)
            The result of ``predict`` for the row.
        """
        if not hasattr(self, "_state"):
            check_is_fitted(self)
        return cast("Any", self).predict(CheckedRow(self._validate_row(x)))[0]

    @property
    def n_samples_seen_(self) -> int:
        """Number of training samples."""
        check_is_fitted(self)
        return int(self._state.n_rows)

    @property
    def classes_(self) -> Array:
        """The labels, if y holds labels."""
        check_is_fitted(self)
        if self._encoding is None or self._encoding.labels is None:
            raise AttributeError(f"This {type(self).__name__} was not fitted to labels and has no classes.")
        return self._encoding.labels.classes

    def _n_passes(self, X: Any) -> int:
        """Return the number of passes over the rows in ``fit``."""
        return 1

    def _begin(self, n_features: int, n_columns: int) -> Any:
        """Return the state before the first row."""
        raise NotImplementedError

    def _solve(self, state: Any) -> Any:
        """Solve the state.

        The solution has all attributes that are ``Solved``, ``x_mean``, ``n_components``, the number of components
        found so far, and ``projection``, the matrix that maps centred rows to scores.
        """
        raise NotImplementedError

    def _solution(self) -> Any:
        """Return the solution for the rows so far, computed on first use."""
        if not hasattr(self, "_state"):
            check_is_fitted(self)
        # The pair is replaced as a whole when rows are learnt, possibly in another thread, so a solution stays with its
        # state.
        attributes = self.__dict__
        state, solution = attributes["_state"], attributes["_solved"]
        if solution is None:
            solution = self._solve(state)
            n_columns = solution.projection.shape[1]
            if solution.n_components < n_columns:
                warn_user(
                    f"The rows so far have only {solution.n_components} of {counted(n_columns, 'component')}: "
                    "the rest are zero."
                )
            attributes["_solved"] = solution
        return solution

    def _map_product(self, X: Any, matrix: Float64Array, function: Callable[[Any], Array]) -> Any:
        """Apply ``function`` to ``(X - mean) @ matrix``, block by block if X is a source."""
        mean = self._solution().x_mean
        if isinstance(X, CheckedRow):
            return self._filling(lambda row: function(centred_product(row, mean, matrix)))(X.row)
        return by_blocks(self, X, self._filling(lambda rows: function(centred_product(rows, mean, matrix))))

    @classmethod
    def _fixed_parameters(cls) -> list[str]:
        return [name for name in cls._parameter_constraints if name not in cls._free_parameters]

    def _require_same_parameters(self) -> None:
        for name, value in self._begun_with.items():
            if getattr(self, name) != value:
                raise ValueError(f"{name} cannot change during a stream: set it back to {value!r}, or use fit.")

    def _validate_row(self, x: Any) -> Rows:
        """Return one row as an array of shape (1, n_features)."""
        row = x[None] if type(x) is np.ndarray and x.ndim == 1 else as_one_row(x)
        if type(row) is not np.ndarray or row.dtype.kind not in "fiub":
            return validate_rows(self, row, reset=False)
        if row.shape[1] != self.n_features_in_:
            raise ValueError(
                f"x has {row.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features."
            )
        return row

    def _learn(self, X: Any, y: Any, classes: Any) -> None:
        """Validate the input as a whole, then learn from the rows."""
        if not isinstance(X, np.ndarray):
            X, y = opened_data(X, y if self._uses_y else None)
            if isinstance(X, Source):
                self._learn_source(X, y, classes)
                return
        rows = validate_rows(self, X, reset=not hasattr(self, "_state"))
        n_rows, n_features = rows.shape
        numbers, n_columns = np.empty((n_rows, 0)), 1
        if self._uses_y:
            target = self._as_target(y, classes)
            if n_rows != len(target):
                check_consistent_length(rows, target)
            encoding = self._encode(target, classes)
            numbers, n_columns = encoding.numbers(target), encoding.n_columns
        # Blocks take a fraction of a second each; progress is reported after each.
        step = max(
            tile_rows(n_features), _WORK_BETWEEN_STEPS // (n_features * n_columns * (self.n_components or n_columns))
        )
        blocks: Iterable[Block] = [Block(rows, numbers, None)]
        if n_rows > step:
            blocks = ArrayRows(rows, numbers, batch_size=step).tracked_blocks("one read")
        try:
            self._learn_blocks(blocks, n_features, aligned=n_rows > 1)
        except ValueError:
            # A recursion does not know the row and column of a non-finite number.
            self._require_finite(rows, numbers)
            raise

    def _learn_source(self, source: Source, y: Any, classes: Any) -> None:
        name, is_first = type(self).__name__, not hasattr(self, "_state")
        if self._uses_y:
            require_target(source, name, y)
        if "weight" in source.roles:
            raise ValueError(f"{name} gives all rows the same weight: open {source.name} without weight=.")
        validate_source(self, source, reset=is_first)
        with SourceRows(source) as rows:
            if self._uses_y:
                target = self._as_target(rows.first_y, classes)
                if is_first and classes is None and source.rereadable and holds_labels(target, None, self.target):
                    # All labels must be known before the first row is learnt.
                    require_label_vector(target)
                    target = self._as_target(source.labels(), classes)
                encoding = self._encode(target, classes)
                rows.numbers = lambda y: encoding.numbers(as_target(y, name))
            self._learn_blocks(rows.tracked_blocks("one read"), rows.n_columns)

    def _as_target(self, y: Any, classes: Any) -> Array:
        """Return y as an array; with ``target="labels"``, as labels."""
        name = type(self).__name__
        if self.target != "labels":
            return as_target(y, name)
        return as_labels(y, name, first=classes is None and not hasattr(self, "_state"))

    def _encode(self, target: Array, classes: Any) -> TargetEncoding:
        """Return the encoding of y, which is fixed by the first call."""
        if self._encoding is None or not hasattr(self, "_state"):
            self._encoding = TargetEncoding.of(target, classes, self.target)
        elif classes is not None:
            self._encoding.require_same(classes)
        return self._encoding

    def _learn_blocks(self, blocks: Iterable[Block], n_features: int, *, aligned: bool = True) -> None:
        """Learn from blocks of rows with encoded y, with an aligned state if there are many.

        A recursion may fail halfway, because products of finite numbers overflow, and so may reading a source.
        Therefore a copy of the state learns, and replaces the state after the last row.
        """
        if hasattr(self, "_state"):
            state = copied(self._state, aligned=aligned)
        else:
            require_components(self.n_components or 1, n_features)
            self._begun_with = {name: getattr(self, name) for name in self._fixed_parameters()}
            n_columns = 0 if self._encoding is None else self._encoding.n_columns
            state = copied(self._begin(n_features, n_columns), aligned=aligned)
            self.__dict__.pop("_observed", None)
        for block in blocks:
            X = block.X
            if self.missing == "mean":
                X, self._observed = self._filled(X)
            state.learn(X, block.Y, self._encoding)
        self._state, self._solved = state, None

    @property
    def _n_features_out(self) -> int:
        return int(self._solution().projection.shape[1])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "mean"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.target_tags.required = self._uses_y
        tags.target_tags.multi_output = self._uses_y
        return tags


def _scores(rows: Rows, solution: Any) -> FloatArray:
    dtype = np.float32 if rows.dtype == np.float32 else np.float64
    return centred_product(rows, solution.x_mean, solution.projection, dtype)
