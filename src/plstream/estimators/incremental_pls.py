"""IncrementalPLS: PLS regression of data larger than memory, and of streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    MultiOutputMixin,
    RegressorMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._types import Array, Float64Array, FloatArray, Rows
from .._warnings import warn_user
from ..parallel import single_threaded_blas
from ..progress import track
from ..solvers import Journal, Rereading
from ..sources import ArraySource, Source
from ..statistics import Buffered, Gram, Sketch
from ._base import located_errors, unchanged_on_failure, validate_training_rows
from ._projection import centred_product
from ._solution import Solution, SolvedAttributes
from ._sources import SourceRows, as_numbers, by_blocks, require_target, rows_to_read_again, validate_source

# Rows that the Gram matrix absorbs at a time: enough that adding to it costs little beside the product itself.
_GRAM_BLOCK_ROWS = 1024
# With more features the sketch is faster, and the square matrix grows out of hand.
_LARGEST_GRAM = 2048
# Rows of a sketch: the larger of the two.
_SKETCH_SIZE = 128
_SKETCH_SIZE_A_COMPONENT = 24
# Estimated sine of the angle to the exact solution, above which there is a warning.
_LARGEST_SUBSPACE_ERROR = 0.3

Stream: TypeAlias = Buffered[Gram | Sketch]


class IncrementalPLS(
    SolvedAttributes,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    RegressorMixin,
    MultiOutputMixin,
    BaseEstimator,
):
    """Partial least squares regression for streams and for data larger than memory.

    A drop-in for :class:`sklearn.cross_decomposition.PLSRegression`: the same model, attributes and predictions. Its
    memory does not depend on the number of rows, and it is many times faster.

    - ``fit`` reads large data ``n_components + 1`` times, block by block (``solver="multipass"``). It is exact.
    - ``partial_fit`` takes rows as they come. With up to 2,048 features it is exact in one pass, with memory for a
      square matrix of all features (``solver="gram"``). With more it keeps a few hundred rows that stand for all
      (``solver="sketch"``), chosen to preserve the PLS solution. Models of separate parts can be combined by ``merge``.

    Parameters
    ----------
    n_components : int, default=2
        Number of components. At most ``min(n_samples, n_features)`` in ``fit``.
    scale : bool, default=True
        Whether to divide each column of X and y by its standard deviation. Columns are always centred.
    solver : {"auto", "multipass", "gram", "sketch"}, default="auto"
        How X is condensed. "auto" is "multipass" in ``fit``; in ``partial_fit`` it is "gram" for up to 2,048 features,
        and "sketch" for more. After "multipass" there is no streaming state, so neither ``partial_fit`` nor ``merge``
        can follow.
    sketch_size : int, default=None
        Rows that "sketch" keeps: more are closer to the exact solution, and take as much more memory and time. Data
        of no higher rank is solved exactly. By default 128, or 24 a component if that is more.
    batch_size : int, default=None
        Rows read at a time. By default as many as take 4 to 32 MiB.
    forgetting : float, default=1.0
        Factor in (0, 1] by which a row weighs less for every row after it. With 0.999 the model follows about the last
        thousand rows.

    Attributes
    ----------
    x_weights_, x_loadings_, x_rotations_ : ndarray of shape (n_features, n_components)
        Weights, loadings and rotations of X. The largest entry of each weight vector is positive.
    y_weights_, y_loadings_, y_rotations_ : ndarray of shape (n_targets, n_components)
        The same of y.
    coef_ : ndarray of shape (n_targets, n_features)
        Coefficients: ``y = (X - x_mean_) @ coef_.T + intercept_``.
    intercept_ : ndarray of shape (n_targets,)
        Means of y, as in scikit-learn.
    x_mean_, x_scale_ : ndarray of shape (n_features,)
        Means and divisors of the columns of X.
    y_mean_, y_scale_ : ndarray of shape (n_targets,)
        Means and divisors of the columns of y.
    n_components_ : int
        Components that the data has: the columns of the arrays above past this number are zero.
    vip_ : ndarray of shape (n_features,)
        Variable importance in projection. The mean of its squares is one.
    x_explained_variance_ratio_, y_explained_variance_ratio_ : ndarray of shape (n_components,)
        Share of the variance of (scaled) X and y that each component explains.
    retained_variance_ : float
        Share of the variance of (scaled) X that the state still holds: 1.0 unless a sketch had to let some of it go.
    subspace_error_ : ndarray of shape (n_components,)
        Estimated sine of the largest angle between the space of the first components and that of an exact fit, for each
        number of components: zeros unless a sketch had to let some of X go. For rows in random order and responses that
        are not free of noise it is good to a factor of about three.
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
    sklearn.cross_decomposition.PLSRegression : The same for arrays in memory.
    sklearn.decomposition.IncrementalPCA : Unsupervised, with memory independent of the number of rows.

    Notes
    -----
    A row of weight two counts as the row twice, and one of weight zero as absent; with forgetting, either ages the rows
    before it as one row or none.

    Unlike in PLSRegression, ``transform`` and ``fit_transform`` return the scores of X alone (see ``transform_y``).
    Nothing is kept that grows with the number of rows, so there is no ``x_scores_`` or ``y_scores_``. There is no inner
    iteration, so neither ``tol``, ``max_iter`` nor ``n_iter_``.

    The model is solved when a result is first asked for: ``partial_fit`` costs no more than adding rows to the state.

    References
    ----------
    B. S. Dayal and J. F. MacGregor, "Improved PLS algorithms", Journal of Chemometrics 11, 1997.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import IncrementalPLS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 20))
    >>> y = X[:, 0] - 2 * X[:, 1] + 0.1 * rng.normal(size=1000)
    >>> model = IncrementalPLS(n_components=3).fit(X, y)
    >>> round(model.score(X, y), 3)
    0.998
    >>> stream = IncrementalPLS(n_components=3)
    >>> for start in range(0, 1000, 100):
    ...     stream = stream.partial_fit(X[start : start + 100], y[start : start + 100])
    >>> bool(np.allclose(stream.coef_, model.coef_))
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "scale": ["boolean"],
        "solver": [StrOptions({"auto", "multipass", "gram", "sketch"})],
        "sketch_size": [Interval(Integral, 2, None, closed="left"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "forgetting": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    # The parameter that says how many components states are made for.
    _components_parameter = "n_components"
    _stream: Stream | None
    _solved: Solution | None
    _solve_with: dict[str, Any]

    def __init__(
        self,
        n_components: int = 2,
        *,
        scale: bool = True,
        solver: str = "auto",
        sketch_size: int | None = None,
        batch_size: int | None = None,
        forgetting: float = 1.0,
    ) -> None:
        self.n_components = n_components
        self.scale = scale
        self.solver = solver
        self.sketch_size = sketch_size
        self.batch_size = batch_size
        self.forgetting = forgetting

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to X and y, forgetting what it was before.

        Parameters
        ----------
        X : array-like, sparse matrix or memory map of shape (n_samples, n_features), or source
            The rows. Arrays and memory maps of more than 32 MiB are read block by block, and neither copied nor
            converted as a whole. Files of any size are opened by :func:`plstream.open_source`.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            The responses. None if X is a source, which has them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : IncrementalPLS
        """
        return self._fit(X, y, sample_weight)

    def _fit(self, X: Any, y: Any = None, sample_weight: Any = None, journal: Journal | None = None) -> Self:
        """Fit a model whose parameters are valid. With a journal, exact reads of a source go on where it ends."""
        with unchanged_on_failure(self):
            self._reset()
            in_one_read = self._in_one_read
            with self._rows(X, y, sample_weight, reset=True, in_one_read=in_one_read) as rows:
                self._require_rows(rows.n_rows, rows.n_columns)
                self._solve_with = {"n_components": self.n_components, "scale": self.scale}
                with located_errors(rows):
                    if in_one_read:
                        self._fit_stream(rows)
                    else:
                        self._fit_rereading(rows, journal)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the model. A call that fails leaves the model as it was.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The new rows, one or more.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Their responses. None if X is a source, which has them.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.

        Returns
        -------
        self : IncrementalPLS
        """
        with unchanged_on_failure(self):
            first = not self.__sklearn_is_fitted__()
            if first and self.solver == "multipass":
                raise ValueError(
                    "solver='multipass' reads the data several times: for partial_fit use solver='gram' or 'sketch'."
                )
            stream = None if first else self._require_stream("partial_fit")
            self._validate_params()
            with self._rows(X, y, sample_weight, reset=first, in_one_read=True) as rows:
                self._solve_with = {"n_components": self.n_components, "scale": self.scale}
                if stream is None:
                    self._require_weight(rows.n_rows)
                    stream = self._new_stream(rows)
                else:
                    stream = self._continued(stream)
                with located_errors(rows):
                    stream = _with_rows(stream, rows)
            self._stream, self._solved = stream, None
            if first:
                self.solver_ = self._streaming_solver(rows.n_columns)
        return self

    def merge(self, other: IncrementalPLS) -> Self:
        """Add to this model all rows that another one has seen; the other one is left as it is.

        Parameters
        ----------
        other : IncrementalPLS
            A model of other rows, with the same parameters and features, made by ``partial_fit``, ``solver="gram"`` or
            ``solver="sketch"``.

        Returns
        -------
        self : IncrementalPLS
        """
        if not isinstance(other, IncrementalPLS):
            raise TypeError(f"Only another IncrementalPLS can be merged, not {type(other).__name__}.")
        mine, theirs = self._require_stream("merge"), other._require_stream("merge")
        self._require_alike(other)
        mine.merge(theirs)
        self._solved = None
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
            With all that is held for a moment only; between calls it is a third or less. The rows handed over, and
            those that a conversion of them makes, do not count.

        Examples
        --------
        >>> from plstream import IncrementalPLS
        >>> IncrementalPLS(solver="gram").memory_usage(100_000) // 10**6
        163308
        >>> IncrementalPLS(solver="sketch").memory_usage(100_000) // 10**6
        1267
        """
        if self.solver == "multipass":
            raise ValueError("solver='multipass' keeps no streaming state: use solver='auto', 'gram' or 'sketch'.")
        return self._stream_bytes(n_features, n_targets)

    def _stream_bytes(self, n_features: int, n_targets: int, n_folds: int = 1, n_merged: int = 0) -> int:
        """Return the bytes that several streams take, with their states when they are solved, and others beside."""
        n_states = 2 * n_folds + n_merged
        if self._streaming_solver(n_features) == "gram":
            # The matrix and the waiting rows are copied while they change, and the rows are centred.
            block_rows, small = _GRAM_BLOCK_ROWS, 0
            n_rows = n_states * n_features + (n_folds + 3) * block_rows
        else:
            # Three times the rows left by a compression, before and after a change of units, and four blocks.
            block_rows = self._rows_in_sketch()
            n_rows = (3 * n_states + n_folds + 5) * block_rows
            small = 6 * (3 * block_rows) ** 2
        vectors = 4 * self._most_components + (6 * n_targets + 10) * n_states
        responses = (n_folds + 5) * block_rows * (n_targets + 2) + 6 * min(n_features, n_targets) ** 2
        return 8 * (n_features * (n_rows + vectors) + responses + small)

    def transform(self, X: Any, n_components: int | None = None) -> FloatArray:
        """Return the scores of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.
        n_components : int, default=None
            Use the first components only.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_components)
            float32 if X is, else float64.
        """
        solution, k = self._solution(), self._components_to_use(n_components)
        projection = solution.projection(k)

        def scores(rows: Rows) -> FloatArray:
            dtype = np.float32 if rows.dtype == np.float32 else np.float64
            return centred_product(rows, solution.x_mean, projection, dtype)

        return by_blocks(self, X, scores)

    def predict(self, X: Any, n_components: int | None = None) -> FloatArray:
        """Predict the responses of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.
        n_components : int, default=None
            Use the first components only. The result is that of a model fitted with so many.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            With as many dimensions as the y of the fit.
        """
        solution, k = self._solution(), self._components_to_use(n_components)
        coefficients = solution.coefficients(k).T
        prediction = by_blocks(self, X, lambda rows: centred_product(rows, solution.x_mean, coefficients))
        prediction += solution.y_mean
        return prediction[:, 0] if self._y_is_vector else prediction

    def transform_y(self, y: Any) -> Float64Array:
        """Return the scores of y.

        Parameters
        ----------
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            The responses.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_components)
        """
        solution = self._solution()
        Y = _as_columns(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"))
        self._require_targets(Y.shape[1])
        scores: Float64Array = ((Y - solution.y_mean) / solution.y_scale) @ solution.y_rotations
        return scores

    def inverse_transform(self, X: Any, y: Any = None) -> Float64Array | tuple[Float64Array, Float64Array]:
        """Return the rows that scores stand for.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Scores of X.
        y : array-like of shape (n_samples, n_components), default=None
            Scores of y.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The part of the rows that the components span.
        y : ndarray of shape (n_samples, n_targets)
            Only if scores of y are given.
        """
        solution = self._solution()
        rows = self._check_scores(X, "X") @ solution.x_loadings.T * solution.x_scale + solution.x_mean
        if y is None:
            return rows
        return rows, self._check_scores(y, "y") @ solution.y_loadings.T * solution.y_scale + solution.y_mean

    @property
    def n_samples_seen_(self) -> int:
        """Rows that the model was made from."""
        check_is_fitted(self)
        return self._stream.n_rows if self._stream is not None else int(self._n_rows or 0)

    def _fit_rereading(self, source: ArraySource | SourceRows, journal: Journal | None) -> None:
        # Between the reads of large data, BLAS's idle threads would spin on the cores that the next read needs.
        with single_threaded_blas() if source.compiled else nullcontext():
            rereading = Rereading(
                source, forgetting=self.forgetting, planned_reads=self.n_components + 1, journal=journal
            )
            self._solved = Solution.of(rereading.moments, rereading, **self._solve_with)
        self._n_rows = source.n_rows
        self._stream = None
        self.solver_ = "multipass"

    def _fit_stream(self, source: ArraySource | SourceRows) -> None:
        stream = self._new_stream(source)
        for block in track(source, "read 1 of 1", source.n_rows, lambda block: block.n_rows):
            stream.update(block.X, block.Y, block.weight)
        self._require_rows(stream.n_rows, source.n_columns)
        self._stream, self._solved, self.solver_ = stream, None, self._streaming_solver(source.n_columns)
        self._solution()

    def _new_stream(self, source: ArraySource | SourceRows) -> Stream:
        state: Gram | Sketch
        shape = source.n_columns, source.n_targets
        if self._streaming_solver(source.n_columns) == "gram":
            state = Gram(*shape, forgetting=self.forgetting)
            return Buffered(state, _GRAM_BLOCK_ROWS)
        size = self._rows_in_sketch()
        state = Sketch(*shape, size=size, forgetting=self.forgetting, **self._solve_with)
        return Buffered(state, size)

    def _continued(self, stream: Stream) -> Stream:
        """Return a stream, or a copy of it that preserves another solution, after parameters may have been set anew."""
        state = stream.state
        if state.forgetting != self.forgetting:
            raise ValueError(f"forgetting cannot change in mid-stream: set it back to {state.forgetting}.")
        if isinstance(state, Sketch):
            if self.sketch_size not in {None, state.size}:
                raise ValueError(f"sketch_size cannot change in mid-stream: set it back to {state.size}.")
            if self._most_components >= state.size:
                raise ValueError(
                    f"{self._components_parameter}={self._most_components} is too many for a sketch of {state.size} "
                    "rows."
                )
            if not state.preserves(**self._solve_with):
                stream = stream.copy()
                stream.state = state.copy().preserve(**self._solve_with)
        return stream

    def _rows_in_sketch(self) -> int:
        if self.sketch_size is None:
            return max(_SKETCH_SIZE, _SKETCH_SIZE_A_COMPONENT * self._most_components)
        if self.sketch_size <= self._most_components:
            raise ValueError(
                f"sketch_size={self.sketch_size} must be more than "
                f"{self._components_parameter}={self._most_components}."
            )
        return self.sketch_size

    @property
    def _most_components(self) -> int:
        return int(getattr(self, self._components_parameter))

    @property
    def _in_one_read(self) -> bool:
        """Whether ``fit`` reads the data only once."""
        return self.solver in {"gram", "sketch"}

    def _streaming_solver(self, n_columns: int) -> str:
        if self.solver in {"gram", "sketch"}:
            return self.solver
        return "gram" if n_columns <= _LARGEST_GRAM else "sketch"

    def _solution(self) -> Solution:
        """Return the solution for the rows seen so far, solving for it if that has not been done."""
        check_is_fitted(self)
        if self._solved is None:
            state = self._require_stream("solving").current()
            self._solved = Solution.of(state, state, **self._solve_with)
            if isinstance(state, Sketch):
                _warn_of_small_sketch(state.size, self._solved.subspace_error)
        return self._solved

    @contextmanager
    def _rows(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool, in_one_read: bool
    ) -> Iterator[ArraySource | SourceRows]:
        """Give the rows in the form that they are learnt from, once or several times."""
        if isinstance(X, Source):
            require_target(X, type(self).__name__, y, sample_weight)
            validate_source(self, X, reset=reset)
            self._set_targets(X.n_targets, is_vector=X.target_is_vector, reset=reset)
            with SourceRows(X, as_numbers) if in_one_read else rows_to_read_again(X, self.batch_size) as source_rows:
                yield source_rows
            return
        rows, target, weight = validate_training_rows(self, X, y, sample_weight, reset=reset)
        Y = _as_columns(target)
        self._set_targets(Y.shape[1], is_vector=target.ndim == 1, reset=reset)
        yield ArraySource(rows, Y, weight, batch_size=self.batch_size)

    def _set_targets(self, n_targets: int, *, is_vector: bool, reset: bool) -> None:
        if reset:
            self._y_is_vector, self._n_targets = is_vector, n_targets
        self._require_targets(n_targets)

    def _reset(self) -> None:
        for name in ("_solved", "_solve_with", "_stream", "_n_rows", "solver_"):
            if hasattr(self, name):
                delattr(self, name)

    def _require_weight(self, n_rows: int | None) -> None:
        if n_rows == 0:
            raise ValueError("All weights are zero: give at least one row a positive weight.")

    def _require_rows(self, n_rows: int | None, n_columns: int) -> None:
        self._require_weight(n_rows)
        if self.n_components > (n_columns if n_rows is None else min(n_rows, n_columns)):
            raise ValueError(
                f"n_components={self.n_components} is more than the smaller of n_samples={n_rows} and "
                f"n_features={n_columns}: ask for fewer components."
            )

    def _require_targets(self, n_targets: int) -> None:
        if n_targets != self._n_targets:
            raise ValueError(f"y has {n_targets} target(s), but the model has {self._n_targets}.")

    def _require_stream(self, method: str) -> Stream:
        check_is_fitted(self)
        if self._stream is None:
            raise ValueError(
                f"{method} needs a streaming state, and fit with solver='multipass' keeps none: "
                "fit with solver='gram' or 'sketch', or use partial_fit from the start."
            )
        return self._stream

    def _require_alike(self, other: IncrementalPLS) -> None:
        """Raise ValueError unless the other model has the same kind of state."""
        mine, theirs = self._kind(), other._kind()
        for name, value in mine.items():
            if value != theirs[name]:
                raise ValueError(
                    f"Only models that are alike can be merged: {name} is {value} here, {theirs[name]} there."
                )
        if list(getattr(self, "feature_names_in_", [])) != list(getattr(other, "feature_names_in_", [])):
            raise ValueError("Only models with the same feature names in the same order can be merged.")

    def _kind(self) -> dict[str, Any]:
        return {
            "the class": type(self).__name__,
            **self._solve_with,
            "solver_": self.solver_,
            "forgetting": self._require_stream("merge").state.forgetting,
            "sketch_size": getattr(self._require_stream("merge").state, "size", None),
            "n_features_in_": self.n_features_in_,
            "the number of targets": self._n_targets,
            "the number of dimensions of y": 1 if self._y_is_vector else 2,
        }

    def _components_to_use(self, n_components: Any, most: int | None = None) -> int:
        most = self._n_features_out if most is None else most
        if n_components is None:
            return self._n_features_out
        if not (isinstance(n_components, Integral) and n_components in range(1, most + 1)):
            given = n_components if isinstance(n_components, Real | str) else f"a {type(n_components).__name__}"
            raise ValueError(f"n_components must be a whole number from 1 to the model's {most}, not {given}.")
        return int(n_components)

    def _check_scores(self, scores: Any, name: str) -> Array:
        checked: Array = check_array(scores, dtype=(np.float64, np.float32), input_name=name)
        n_columns, n_components = checked.shape[1], self._n_features_out
        if n_columns != n_components:
            raise ValueError(
                f"Scores of {name} have {n_columns} column(s), but the model has {n_components} components."
            )
        return checked

    @property
    def _n_features_out(self) -> int:
        # Not n_components, which may have been set anew since the fit.
        return int(self._solution().x_weights.shape[1])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "solver_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _as_columns(y: Array) -> Array:
    return y.reshape(-1, 1) if y.ndim == 1 else y


def _with_rows(stream: Stream, rows: ArraySource | SourceRows) -> Stream:
    """Return the stream after more rows; if that fails, the one that was passed is as it was."""
    if isinstance(rows, ArraySource):
        return stream.update(rows.X, np.asarray(rows.Y, dtype=np.float64), rows.weight)
    stream = stream.copy()
    for block in track(rows, "read 1 of 1", rows.n_rows, lambda block: block.n_rows):
        stream.update(block.X, block.Y)
    return stream


def _warn_of_small_sketch(size: int, subspace_error: Float64Array) -> None:
    too_large = subspace_error > _LARGEST_SUBSPACE_ERROR
    if too_large.any():
        good = int(np.argmax(too_large))
        warn_user(
            f"sketch_size={size} is small for this data: only the first {good} of {len(subspace_error)} components are "
            "likely to be close to those of an exact fit (see subspace_error_). Use a larger sketch_size, or fewer "
            "components."
        )
