"""What PLS models of data of any size share: rows in, data read again or a streaming state, a solution, scores out.

An estimator says what it makes of y (``_rows``) and of the solution. All else is here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._core.progress import track
from .._core.projection import centred_product
from .._core.threads import single_threaded_blas
from .._core.types import Float64Array, FloatArray, Rows
from .._core.validation import NoWeightError, located_errors, unchanged_on_failure
from .._core.warnings import warn_user
from ..data import ArraySource
from ..data.blocks import Block
from ..solvers import Journal, Rereading
from ..states import Buffered, Gram, Sketch
from ._collections import CollectionRows, is_collection, learn_collection
from ._solution import Solution, SolvedAttributes
from ._sources import SourceRows, by_blocks

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
LearntFrom: TypeAlias = ArraySource | SourceRows | CollectionRows


class StreamedPLS(SolvedAttributes, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A PLS model that reads the data several times, or keeps a streaming state."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "scale": ["boolean"],
        "solver": [StrOptions({"auto", "multipass", "gram", "sketch"})],
        "sketch_size": [Interval(Integral, 2, None, closed="left"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
    }

    # The parameter that says how many components states are made for.
    _components_parameter = "n_components"

    n_components: int
    scale: bool
    solver: str
    sketch_size: int | None
    batch_size: int | None
    forgetting: float
    _stream: Stream | None
    _solved: Solution | None
    _solve_with: dict[str, Any]
    _classes_to_come: Any

    def transform(self, X: Any, y: Any = None, *, n_components: int | None = None) -> FloatArray:
        """Return the scores of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The rows. With a Dask array or dataframe the result is a Dask array.
        y : None
            Not supported, unlike in scikit-learn's ``PLSRegression``: this method returns one array.
        n_components : int, default=None
            Use the first components only.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_components)
            float32 if X is, else float64.
        """
        if y is not None:
            of_y = ", transform_y(y) those of y" if hasattr(self, "transform_y") else ""
            raise ValueError(f"transform takes no y: transform(X) returns the scores of X{of_y}.")
        solution, k = self._solution(), self._components_to_use(n_components)
        projection = solution.projection(k)

        def scores(rows: Rows) -> FloatArray:
            dtype = np.float32 if rows.dtype == np.float32 else np.float64
            return centred_product(rows, solution.x_mean, projection, dtype)

        return by_blocks(self, X, scores)

    @property
    def n_samples_seen_(self) -> int:
        """Rows that the model was made from."""
        check_is_fitted(self)
        return self._stream.n_rows if self._stream is not None else int(self._n_rows or 0)

    def _rows(self, *data: Any, **how: Any) -> AbstractContextManager[Any]:
        """Give X, y and weights in the form that they are learnt from, once or several times."""
        raise NotImplementedError

    def _fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, journal: Journal | None = None, **targets: Any
    ) -> Self:
        """Fit a model whose parameters are valid. With a journal, exact reads of a source go on where it ends."""
        with unchanged_on_failure(self):
            self._reset()
            in_one_read = self._in_one_read
            if in_one_read and is_collection(X):
                learn_collection(self, X, y, sample_weight, reset=True, **targets)
                self._require_rows(self.n_samples_seen_, self.n_features_in_)
                self._solution()
                return self
            with self._rows(X, y, sample_weight, reset=True, in_one_read=in_one_read, **targets) as rows:
                self._require_rows(rows.n_rows, rows.n_columns)
                self._solve_with = {"n_components": self.n_components, "scale": self.scale}
                with located_errors(rows):
                    if in_one_read:
                        self._fit_stream(rows)
                    else:
                        self._fit_rereading(rows, journal)
        return self

    def _learn(self, X: Any, y: Any, sample_weight: Any, **targets: Any) -> Self:
        """Add rows to the model; a failure leaves it as it was."""
        with self._learning(targets):
            first = not self.__sklearn_is_fitted__()
            if first and self.solver == "multipass":
                raise ValueError(
                    "solver='multipass' reads the data several times: for partial_fit use solver='gram' or 'sketch'."
                )
            stream = None if first else self._require_stream("partial_fit")
            self._validate_params()
            if is_collection(X):
                if stream is not None:
                    self._solve_with = {"n_components": self.n_components, "scale": self.scale}
                    self._stream = self._continued(stream)
                return learn_collection(self, X, y, sample_weight, **targets)
            with self._rows(X, y, sample_weight, reset=first, in_one_read=True, **targets) as rows:
                self._solve_with = {"n_components": self.n_components, "scale": self.scale}
                if stream is None:
                    self._require_weight(rows.n_rows)
                    stream = self._new_stream(rows)
                else:
                    stream = self._continued(stream)
                with located_errors(rows):
                    stream = _with_rows(stream, rows)
            self._solved, self._stream = None, stream
            if first:
                self.solver_ = self._streaming_solver(rows.n_columns)
        return self

    @contextmanager
    def _learning(self, targets: dict[str, Any]) -> Iterator[None]:
        """Leave the model as it was if rows cannot be added, or if none has a weight.

        Then the classes that were given in the first call, and that later ones need not repeat, are still to come.
        """
        if targets.get("classes", 0) is None and not self.__sklearn_is_fitted__():
            targets["classes"] = vars(self).get("_classes_to_come")
        try:
            with unchanged_on_failure(self):
                self.__dict__.pop("_classes_to_come", None)
                yield
        except NoWeightError:
            if targets.get("classes") is not None and not self.__sklearn_is_fitted__():
                self._classes_to_come = targets["classes"]

    def _memory_usage(self, n_features: int, n_targets: int) -> int:
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
            # Three times the rows left by a compression, and as many directions, before and after a change of units,
            # and four blocks.
            block_rows = self._rows_in_sketch()
            n_rows = (4 * n_states + n_folds + 5) * block_rows
            small = 6 * (3 * block_rows) ** 2
        vectors = 4 * self._most_components + (6 * n_targets + 10) * n_states
        responses = (n_folds + 5) * block_rows * (n_targets + 2) + 6 * min(n_features, n_targets) ** 2
        return 8 * (n_features * (n_rows + vectors) + responses + small)

    def _fit_rereading(self, source: LearntFrom, journal: Journal | None) -> None:
        # Between the reads of large data, BLAS's idle threads would spin on the cores that the next read needs.
        with single_threaded_blas() if source.compiled else nullcontext():
            rereading = Rereading(
                source, forgetting=self.forgetting, planned_reads=self.n_components + 1, journal=journal
            )
            # Of rows that are elsewhere, the number is not known earlier.
            self._require_rows(source.n_rows, source.n_columns)
            self._solved = Solution.of(rereading.moments, rereading, **self._solve_with)
        self._n_rows = source.n_rows
        self._stream = None
        self.solver_ = "multipass"

    def _fit_stream(self, source: ArraySource | SourceRows) -> None:
        stream = self._new_stream(source)
        for block in _tracked(source):
            stream.update(block.X, block.Y, block.weight)
        self._require_rows(stream.n_rows, source.n_columns)
        self._stream, self._solved, self.solver_ = stream, None, self._streaming_solver(source.n_columns)
        self._solution()

    def _new_stream(self, source: ArraySource | SourceRows) -> Stream:
        state: Gram | Sketch
        shape = source.n_columns, source.n_targets
        of_labels = source.n_classes > 0
        if self._streaming_solver(source.n_columns) == "gram":
            state = Gram(*shape, forgetting=self.forgetting)
            return Buffered(state, _GRAM_BLOCK_ROWS, of_labels=of_labels)
        size = self._rows_in_sketch()
        state = Sketch(*shape, size=size, forgetting=self.forgetting, **self._solve_with)
        return Buffered(state, size, of_labels=of_labels)

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
                warn_of_small_sketch(state.size, self._solved.subspace_error)
        return self._solved

    def _reset(self) -> None:
        for name in ("_solved", "_solve_with", "_stream", "_n_rows", "solver_", "_classes_to_come"):
            if hasattr(self, name):
                delattr(self, name)

    def _require_weight(self, n_rows: int | None) -> None:
        if n_rows == 0:
            raise NoWeightError

    def _require_rows(self, n_rows: int | None, n_columns: int) -> None:
        self._require_weight(n_rows)
        bound = n_columns if n_rows is None else min(n_rows, n_columns)
        if self.n_components > bound:
            features = f"n_features={n_columns}"
            # The first words are scikit-learn's, for code that looks for them.
            raise ValueError(
                f"`n_components` upper bound is {bound}. Got {self.n_components} instead. Reduce `n_components`. "
                f"The bound is {features if n_rows is None else f'the smaller of n_samples={n_rows} and {features}'}."
            )

    def _require_stream(self, method: str) -> Stream:
        check_is_fitted(self)
        if self._stream is None:
            raise ValueError(
                f"{method} needs a streaming state, and fit with solver='multipass' keeps none: "
                "fit with solver='gram' or 'sketch', or use partial_fit from the start."
            )
        return self._stream

    def _streams_to_merge(self, other: StreamedPLS) -> tuple[Stream, Stream]:
        """Return the streams of both models; raise ValueError unless they are alike."""
        streams = self._require_stream("merge"), other._require_stream("merge")
        mine, theirs = self._kind(), other._kind()
        for name, value in mine.items():
            if value != theirs[name]:
                raise ValueError(
                    f"Only models that are alike can be merged: {name} is {value} here, {theirs[name]} there."
                )
        if list(getattr(self, "feature_names_in_", [])) != list(getattr(other, "feature_names_in_", [])):
            raise ValueError("Only models with the same feature names in the same order can be merged.")
        return streams

    def _settle(self) -> None:
        """Let no row wait to be absorbed."""
        self._stream = self._require_stream("settling").settled()

    def _followed_by(self, later: Self) -> Self:
        """Return a model of these rows and then those of a later one; neither is changed."""
        mine, theirs = self._streams_to_merge(later)
        model = copy(self)
        model._go_on_with(mine.followed_by(theirs))
        return model

    def _go_on_with(self, stream: Stream) -> None:
        """Be the model of a stream."""
        self._solved, self._stream = None, stream

    def _kind(self) -> dict[str, Any]:
        """Return what models must have in common to be merged."""
        return {
            "the class": type(self).__name__,
            **self._solve_with,
            "solver_": self.solver_,
            "forgetting": self._require_stream("merge").state.forgetting,
            "sketch_size": getattr(self._require_stream("merge").state, "size", None),
            "n_features_in_": self.n_features_in_,
        }

    def _components_to_use(self, n_components: Any, most: int | None = None) -> int:
        most = self._n_features_out if most is None else most
        if n_components is None:
            return self._n_features_out
        if not (isinstance(n_components, Integral) and n_components in range(1, most + 1)):
            given = n_components if isinstance(n_components, Real | str) else f"a {type(n_components).__name__}"
            raise ValueError(f"n_components must be a whole number from 1 to the model's {most}, not {given}.")
        return int(n_components)

    @property
    def _n_features_out(self) -> int:
        # Not n_components, which may have been set anew since the fit.
        return int(self._solution().x_weights.shape[1])

    def __sizeof__(self) -> int:
        # Dask asks, to know what it has where.
        stream = getattr(self, "_stream", None)
        return object.__sizeof__(self) + (0 if stream is None else stream.bytes_to_send)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "solver_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _with_rows(stream: Stream, rows: ArraySource | SourceRows) -> Stream:
    """Return the stream after more rows; if that fails, the one that was passed is as it was."""
    if isinstance(rows, ArraySource):
        block = rows.whole()
        return stream.branch().update(block.X, block.Y, block.weight)
    stream = stream.copy()
    for block in _tracked(rows):
        stream.update(block.X, block.Y, block.weight)
    return stream


def _tracked(rows: ArraySource | SourceRows) -> Iterator[Block]:
    """Read rows once, and let progress tell."""
    return track(rows, "read 1 of 1", rows.n_rows, lambda block: block.n_rows)


def warn_of_small_sketch(size: int, subspace_error: Float64Array) -> None:
    too_large = subspace_error > _LARGEST_SUBSPACE_ERROR
    if too_large.any():
        good = int(np.argmax(too_large))
        warn_user(
            f"sketch_size={size} is small for this data: only the first {good} of {len(subspace_error)} components are "
            "likely to be close to those of an exact fit (see subspace_error_). Use a larger sketch_size, or fewer "
            "components."
        )
