"""What the online methods share: rows and targets in, a recursion over the rows, a projection out.

A method is a recursion, which holds its state and learns from rows, and an estimator, which says how the recursion
begins (``_begin``) and what the state amounts to (``_solve``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._core.compiled import aligned_empty, compiled, copied, read_only, readable
from .._core.errors import NonFiniteError
from .._core.labels import TargetEncoding, as_one_target, as_target, holds_labels, require_label_vector
from .._core.progress import track
from .._core.projection import centred_product
from .._core.schema import FEATURES, Choice, Count, Number, Numbers, Object, OrMissing, most_components, stored
from .._core.threads import ordered_map
from .._core.tiles import require_finite
from .._core.types import Array, Float64Array, FloatArray, Rows
from .._core.validation import as_one_row, changed_at_once, require_components, validate_rows
from .._core.warnings import warn_user
from ..data import Source
from ..estimators._missing import CompletedBefore
from ..estimators._solution import Solved as Solved  # noqa: PLC0414 - for the methods
from ..rows import ArrayRows, Block, SourceRows, by_blocks, opened_data, require_target, validate_source
from ..solvers.completion import FactorModel
from ._means import NoValueError, ObservedMeans

# Rows that are worked on at a time: they stay in a core's cache, and calls of compiled code are few.
_TILE_BYTES = 1 << 20
_LEAST_TILE_ROWS = 8
_DOUBLE = np.dtype(np.float64)
# Entries of the state that are read in a few milliseconds, which is what it takes to start threads several times over.
_WORK_WORTH_THREADS = 10_000_000
# The same in a fraction of a second.
_WORK_BETWEEN_STEPS = 200_000_000


class NotFiniteError(ValueError):
    """A component, the first being 1, has numbers that are no longer finite: fewer components may do."""

    def __init__(self, message: str, component: int = 0) -> None:
        super().__init__(message)
        self.component = component


class Tile(NamedTuple):
    """Some consecutive rows, ready for a recursion, which may use them as its scratch space.

    ``U`` and ``V`` are X and y minus the running means that include the row itself, in the units of those; ``X`` and
    ``Y`` are X and y as they came, and not to be written to. ``n_before`` is the number of rows before them, and
    ``x_total`` the sum of squares of X, centred, of all rows up to the last of them.
    """

    U: Float64Array
    V: Float64Array
    X: FloatArray
    Y: Float64Array
    n_before: int
    x_total: float


class Recursion:
    """The state of a method, a dataclass of arrays and numbers, and how it learns."""

    @property
    def advice(self) -> str:
        """What to do when numbers are no longer finite."""
        return "scale the features to unit variance, or use fewer components"

    def learn(self, tile: Tile) -> int:
        """Take in the rows; return the number of the component whose numbers are no longer finite, or -1."""
        raise NotImplementedError


def for_each_column(run: Callable[[Float64Array, int], int], tile: Tile, n_columns: int, n_components: int) -> int:
    """Run the recursion of every column of y, on all cores if there is enough work.

    ``run`` takes the rows, which it may overwrite, and the number of the column. Returns the least number that any of
    them returned that is not negative, else -1.
    """
    if n_columns == 1:
        return int(run(tile.U, 0))
    parallel = tile.U.size * n_columns * n_components > _WORK_WORTH_THREADS
    results = (ordered_map if parallel else map)(lambda k: int(run(tile.U.copy(), k)), range(n_columns))
    return min((result for result in results if result >= 0), default=-1)


@stored(
    {
        "origin": Numbers("n?"),
        "offset": Numbers("n?"),
        "unit": Number(0),
        "n_rows": Count(),
        "total": Number(0, finite=False),
    }
)
@dataclass
class RunningMean:
    """Mean of the rows so far, as their first one plus a difference in units of about the size of the data.

    So columns with a mean of 1e8 deviations lose no digits, and squares neither overflow nor vanish for data in units
    of 1e150 or 1e-150.

    Attributes
    ----------
    origin : ndarray of shape (m,)
        The first row.
    offset : ndarray of shape (m,)
        Mean of the differences from it, times ``unit``.
    unit : float
        A power of two: one if fixed, else about one over the first difference that is not zero, and zero before that.
    n_rows : int
        Rows so far.
    total : float
        Sum of squares of all of them, centred, in units.
    """

    origin: Float64Array
    offset: Float64Array
    unit: float
    n_rows: int = 0
    total: float = 0.0

    # After the first row.
    never_written: ClassVar[frozenset[str]] = frozenset({"origin"})

    @classmethod
    def of(cls, n: int, unit: float) -> RunningMean:
        """Return the mean of no rows of n columns."""
        origin = aligned_empty((n,))
        origin[:] = 0.0
        return cls(origin, np.zeros(n), unit)

    @property
    def mean(self) -> Float64Array:
        """The mean in the units of the data."""
        return self.origin + self.offset / (self.unit or 1.0)

    def subtract_from(self, tile: FloatArray, out: Float64Array) -> Float64Array:
        """Add the rows to the mean one by one, and set ``out`` to each minus the mean that includes it, in units."""
        if self.n_rows == 0:
            self.origin[:] = tile[0]
        if not self.unit:
            with np.errstate(over="ignore", invalid="ignore"):
                self.unit = unit_of(tile - self.origin)
        before = self.n_rows, self.total
        self.total = subtract_running_mean(tile, self.origin, self.offset, self.unit, *before, out)
        self.n_rows += len(tile)
        return out

    @property
    def is_finite(self) -> bool:
        """Whether the mean is finite: so it is if the sum of squares is, which is sooner known."""
        return math.isfinite(self.total) or bool(np.isfinite(self.offset).all())


def unit_of(differences: FloatArray) -> float:
    """Return one over a power of two near the largest entry of the first row that is not all zeros, else zero."""
    rows = np.flatnonzero(differences.any(axis=1))
    if not len(rows):
        return 0.0
    largest = np.abs(differences[rows[0]]).max()
    return float(np.ldexp(1.0, -int(np.clip(np.frexp(largest)[1], -1000, 1000))))


@stored(
    {
        "x": Object(RunningMean, n="m"),
        "y": Object(RunningMean, n="q?"),
        # Each method says which.
        "recursion": Object(),
    }
)
@dataclass
class OnlineState:
    """A recursion with the running means that its rows are centred by."""

    x: RunningMean
    y: RunningMean
    recursion: Any

    @classmethod
    def of(cls, recursion: Recursion, n_features: int, n_columns: int, *, fixed_unit: bool = False) -> OnlineState:
        """Return the state before the first row. Units are fixed if results depend on them."""
        x, y = (RunningMean.of(n, float(fixed_unit)) for n in (n_features, n_columns))
        return cls(x, y, recursion)

    def learn(self, X: Rows, numbers: Float64Array, encoding: TargetEncoding | None) -> None:
        """Take in rows one by one; raise ValueError if numbers are no longer finite."""
        if len(numbers) == 1 and type(X) is np.ndarray and X.dtype == _DOUBLE and X.flags.c_contiguous:
            # All that the loops below do with one row, in less time.
            self._learn_tile(read_only(X), numbers, encoding, np.empty(X.shape))
        else:
            # Of X and of y, whichever is wider.
            step = min(X.shape[0], tile_rows(max(X.shape[1], len(self.y.origin))))
            buffer = aligned_empty((step, X.shape[1]))
            for rows, part in readable(X):
                for start in range(0, len(part), step):
                    tile = part[start : start + step]
                    some = numbers[rows.start + start :][: len(tile)]
                    self._learn_tile(tile, some, encoding, buffer[: len(tile)])
        if not (self.x.is_finite and self.y.is_finite):
            raise ValueError("The mean is no longer finite: scale the features to unit variance.")

    def _learn_tile(
        self, tile: FloatArray, numbers: Float64Array, encoding: TargetEncoding | None, out: Float64Array
    ) -> None:
        """Take in some rows, in the form that ``readable`` yields; ``out`` is scratch space."""
        n_before = self.x.n_rows
        U = self.x.subtract_from(tile, out)
        Y = V = numbers
        if encoding is not None:
            # As X is: not to be written to, or else Numba compiles once more.
            Y = read_only(np.ascontiguousarray(encoding.columns(numbers)))
            V = self.y.subtract_from(Y, np.empty(Y.shape))
        component = self.recursion.learn(Tile(U, V, tile, Y, n_before, self.x.total)) + 1
        if component:
            raise NotFiniteError(
                f"Component {component} is no longer finite: {self.recursion.advice}. The model is as it was before "
                "this call.",
                component,
            )

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return self.x.n_rows


def tile_rows(n_columns: int) -> int:
    """Return the number of rows in a tile of so many columns."""
    return max(_LEAST_TILE_ROWS, _TILE_BYTES // (8 * max(1, n_columns)))


# The y of a method that uses none.
_NO_TARGET = np.empty((1, 0))

# What methods declare: the parameter that says what y is, and how y is encoded.
TARGET = Choice("auto", "labels", "values")
ENCODING = Object(TargetEncoding, q="q", k="k")


def state_of(*recursions: type, instead: tuple[type, ...] = ()) -> Object:
    """Return the kind of a state with one of some recursions, or of a class that is in place of such a state."""
    given = {"recursion": Object(*recursions, m="m", q="q", c="c", L="L?")}
    return Object(OnlineState, *instead, given=given, m="m", q="q?", c="c", L="L?", k="k")


class CheckedRow(NamedTuple):
    """One row that has been validated, as rows of which it is the only one."""

    row: Rows


@stored(
    {**FEATURES, "_observed": OrMissing(Object(ObservedMeans, m="m"))},
    {
        "there are not far more components than features": lambda its: (
            (its._begun_with["n_components"] or 1) <= most_components(its.n_features_in_)
        )
    },
)
class OnlineMethod(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """An estimator that learns one row at a time.

    It holds a state, which is an :class:`OnlineState` or has the same ``learn`` and ``n_rows``, and the solution if
    that has been asked for since the last row.
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
    # Means of the values so far, if missing ones are to be replaced by them.
    _observed: ObservedMeans | None = None
    # Parameters that may change in mid-stream, because the state does not depend on them.
    _free_parameters: ClassVar[frozenset[str]] = frozenset()
    _uses_y: ClassVar[bool] = True

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
        with changed_at_once(self) as (twin,):
            twin.__dict__.pop("_state", None)
            for _ in range(twin._n_passes(X)):
                twin._learn(X, y, None)
            twin._solution()
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
        if not hasattr(self, "_state"):
            # scikit-learn's decorator would do so in every call, in as much time as it takes to learn from a row.
            self._validate_params()
        else:
            self._require_same_parameters()
        with changed_at_once(self) as (twin,):
            twin._learn(X, y, classes)
        return self

    def learn_one(self, x: Any, y: Any = None) -> Self:
        """Learn from one more row: what ``partial_fit`` does with it, to the last bit, in a fraction of the time.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            The row. An array has its features in the order of the first call; a Series of pandas has their names.
        y : float, label or array-like of shape (n_targets,), default=None
            Its value, its label or its values, see ``target``. If the first call is one with a label, that must be of
            ``partial_fit``, whose ``classes`` are all labels that will come.

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
        learned: dict[str, Any] = {}
        if self.missing == "mean":
            row, learned["_observed"] = self._filled(row, self._means())
        try:
            state.learn(row, numbers, encoding)
        except ValueError:
            self._require_finite(row, numbers)
            raise
        # At once, as after every call: an interrupt, or another thread, finds all or none.
        self.__dict__ = {**vars(self), "_state": state, "_solved": None, **learned}
        return self

    def _filled(self, rows: Rows, observed: ObservedMeans) -> tuple[Rows, ObservedMeans]:
        try:
            return observed.filled(rows)
        except NoValueError as error:
            names = getattr(self, "feature_names_in_", None)
            raise NoValueError(error.column, None if names is None else str(names[error.column])) from None

    def _means(self) -> ObservedMeans:
        return ObservedMeans.of(self.n_features_in_) if self._observed is None else self._observed

    def _require_finite(self, rows: Rows, numbers: Float64Array) -> None:
        """Raise NonFiniteError that names the row and the column, if a number is not finite."""
        try:
            require_finite("X", rows, allow_missing=self.missing == "mean")
            require_finite("y", numbers)
        except NonFiniteError as error:
            raise error.of_model(self) from None

    def _filling(self, function: Callable[[Rows], Any]) -> Callable[[Rows], Any]:
        """Return a function of rows, in which missing values are replaced before by the means of the model, if set."""
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
        """Return the scores of one row: those of ``transform``, to the last bit, in a fraction of the time.

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
        """Predict the label, the value or the values of one row: what ``predict`` does with it, in less time.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            The row, see ``learn_one``.

        Returns
        -------
        y : label, float or ndarray of shape (n_targets,)
            As ``predict`` returns it for a row.
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
        """Return how many times ``fit`` learns from the rows."""
        return 1

    def _begin(self, n_features: int, n_columns: int) -> Any:
        """Return the state before the first row."""
        raise NotImplementedError

    def _solve(self, state: Any) -> Any:
        """Return what the state amounts to.

        It has all attributes that are ``Solved``, and ``x_mean``, ``n_components``, the components that the rows so far
        have, and ``projection``, the matrix that takes centred rows to scores.
        """
        raise NotImplementedError

    def _solution(self) -> Any:
        """Return the solution for the rows so far, solving for it if that has not been done."""
        if not hasattr(self, "_state"):
            check_is_fitted(self)
        # Replaced as a whole when more rows are learnt, perhaps in another thread: a solution stays with its state.
        attributes = self.__dict__
        state, solution = attributes["_state"], attributes["_solved"]
        if solution is None:
            solution = self._solve(state)
            n_columns = solution.projection.shape[1]
            if solution.n_components < n_columns:
                warn_user(
                    f"The rows so far have only {solution.n_components} of {n_columns} component(s): the rest are zero."
                )
            attributes["_solved"] = solution
        return solution

    def _map_product(self, X: Any, matrix: Float64Array, function: Callable[[Any], Array]) -> Any:
        """Return a function of (X - mean) matrix, formed of one block of a source after the other."""
        mean = self._solution().x_mean
        if isinstance(X, CheckedRow):
            return self._filling(lambda row: function(centred_product(row, mean, matrix)))(X.row)
        return by_blocks(self, X, self._filling(lambda rows: function(centred_product(rows, mean, matrix))))

    def _require_same_parameters(self) -> None:
        for name, value in self._begun_with.items():
            if getattr(self, name) != value:
                raise ValueError(f"{name} cannot change in mid-stream: set it back to {value!r}, or use fit.")

    def _validate_row(self, x: Any) -> Rows:
        """Return one row as rows of which it is the only one, with as many features as the model has."""
        row = x[None] if type(x) is np.ndarray and x.ndim == 1 else as_one_row(x)
        if type(row) is not np.ndarray or row.dtype.kind not in "fiub":
            return validate_rows(self, row, reset=False)
        if row.shape[1] != self.n_features_in_:
            raise ValueError(
                f"x has {row.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features."
            )
        return row

    @classmethod
    def _fixed_parameters(cls) -> dict[str, list[Any]]:
        """Return the constraints of the parameters that cannot change in mid-stream."""
        free = cls._free_parameters | {"missing"}
        return {name: legal for name, legal in cls._parameter_constraints.items() if name not in free}

    def _learn(self, X: Any, y: Any, classes: Any) -> None:
        """Check all there is to check before the first row is learnt, and take in the rows."""
        X, y = opened_data(X, y)
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
        # What takes a fraction of a second: progress is told after each block of these.
        step = max(
            tile_rows(n_features), _WORK_BETWEEN_STEPS // (n_features * n_columns * (self.n_components or n_columns))
        )
        blocks: Iterable[Block] = [Block(rows, numbers, None)]
        if n_rows > step:
            blocks = track(ArrayRows(rows, numbers, batch_size=step).blocks(), "one read", n_rows, _n_rows)
        try:
            self._learn_blocks(blocks, n_features)
        except ValueError:
            # A recursion knows that a number is not finite, but not which row and column it came from.
            self._require_finite(rows, numbers)
            raise

    def _learn_source(self, source: Source, y: Any, classes: Any) -> None:
        name, is_first = type(self).__name__, not hasattr(self, "_state")
        if self._uses_y:
            require_target(source, name, y)
        validate_source(self, source, reset=is_first)
        with SourceRows(source) as rows:
            if self._uses_y:
                target = self._as_target(rows.first_y, classes)
                if is_first and classes is None and source.rereadable and holds_labels(target, None, self.target):
                    # All labels have to be known before the first row is learnt.
                    require_label_vector(target)
                    target = self._as_target(source.labels(), classes)
                encoding = self._encode(target, classes)
                rows.numbers = lambda y: encoding.numbers(as_target(y, name))
            self._learn_blocks(track(rows.blocks(), "one read", rows.n_rows, _n_rows), rows.n_columns)

    def _as_target(self, y: Any, classes: Any) -> Array:
        """Return y as an array."""
        return as_target(y, type(self).__name__)

    def _encode(self, target: Array, classes: Any) -> TargetEncoding:
        """Return what y is: decided at the first call, from all of it or from the labels that there are."""
        if self._encoding is None or not hasattr(self, "_state"):
            self._encoding = TargetEncoding.of(target, classes, self.target)
        elif classes is not None:
            self._encoding.require_same(classes)
        return self._encoding

    def _learn_blocks(self, blocks: Iterable[Block], n_features: int) -> None:
        """Take in blocks, whose y is the numbers of the encoding.

        A recursion may fail in the middle, at finite numbers whose products are not, and a source may break off. So a
        copy of the state learns, and takes its place when all rows have been taken in: this is called for a twin.
        """
        if hasattr(self, "_state"):
            state = copied(self._state)
        else:
            require_components(self.n_components or 1, n_features)
            self._begun_with = {name: getattr(self, name) for name in self._fixed_parameters()}
            state = copied(self._begin(n_features, 0 if self._encoding is None else self._encoding.n_columns))
            self.__dict__.pop("_observed", None)
        observed = self._means()
        for block in blocks:
            X = block.X
            if self.missing == "mean":
                X, observed = self._filled(X, observed)
            state.learn(X, block.Y, self._encoding)
        self._state, self._solved = state, None
        if self.missing == "mean":
            self._observed = observed

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


def _n_rows(block: Block) -> int:
    return block.n_rows


# Compiled loops that several recursions use.


@compiled
def is_finite(number: float) -> bool:
    """Return whether a number is finite. math.isfinite forms x - x, which reordering turns to zero if x is a sum."""
    return abs(number) < math.inf


@compiled
def square_and_product(a: Float64Array, b: Float64Array) -> tuple[float, float]:
    """Return a.a and a.b."""
    square, product = 0.0, 0.0
    for j in range(len(a)):
        square += a[j] * a[j]
        product += a[j] * b[j]
    return square, product


@compiled
def scale_into(out: Float64Array, factor: float, a: Float64Array) -> None:
    """Set out to a times a factor."""
    for j in range(len(out)):
        out[j] = factor * a[j]


@compiled
def subtract_running_mean(
    X: FloatArray,
    origin: Float64Array,
    offset: Float64Array,
    unit: float,
    n_rows: int,
    total: float,
    out: Float64Array,
) -> float:
    """Set ``out`` to the rows minus the mean up to and with each, in units, and ``offset`` to the last mean.

    Returns the sum of squares about the mean, given that of the rows before, which is ``total``.
    """
    for i in range(len(X)):
        n = n_rows + i + 1
        square = _subtract_mean(X[i], origin, offset, unit, 1.0 / n, out[i])
        # One factor of the product is from the mean before, which is that much further off.
        total += square * n / max(1, n - 1)
    return total


@compiled
def _subtract_mean(
    x: FloatArray, origin: Float64Array, offset: Float64Array, unit: float, share: float, out: Float64Array
) -> float:
    square = 0.0
    for j in range(len(x)):
        difference = (x[j] - origin[j]) * unit - offset[j]
        step = share * difference
        offset[j] += step
        left = difference - step
        out[j] = left
        square += left * left
    return square
