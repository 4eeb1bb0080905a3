"""Settings: the parameters that determine the state of an estimator and its memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, log2
from typing import Any, TypeAlias

from .._core.threads import blas_threads
from .._core.validation import NoWeightError
from ..rows import TrainingRows
from ..solvers.completion import Gaps
from ..states import Buffered, Folds, Gram, Sketch
from .missing import CompletingStream

# Rows that the Gram matrix absorbs at a time: enough that adding to it costs little compared with the product itself.
_GRAM_BLOCK_ROWS = 1024
# With more features, the sketch is faster and the square matrix too large.
_LARGEST_GRAM = 2048
# Maximum number of entries of all Gram matrices of an exact cross-validation together.
_LARGEST_FOLD_GRAMS = 1 << 25
# Rows of a sketch: the larger of the two.
_SKETCH_SIZE = 128
_SKETCH_SIZE_PER_COMPONENT = 24

Stream: TypeAlias = Buffered[Gram | Sketch]


def buffered(state: Gram | Sketch, *, of_labels: bool) -> Stream:
    """Return a stream that continues from a state."""
    return Buffered(state, getattr(state, "size", _GRAM_BLOCK_ROWS), of_labels=of_labels)


def grams_fit(n_features: int, n_folds: int) -> bool:
    """Return whether an exact cross-validation may hold the Gram matrices of all folds and of all training sets."""
    return n_folds > 0 and (2 * n_folds + 1) * n_features**2 <= _LARGEST_FOLD_GRAMS


@dataclass(frozen=True)
class Settings:
    """The parameters of an estimator that determine its state and how it is solved."""

    n_components: int
    scale: bool
    solver: str
    sketch_size: int | None
    forgetting: float
    parameter: str
    """The name of the parameter for the number of components."""
    read_tol: float = 0.0
    max_reads: int | None = None
    missing: str = "error"

    @classmethod
    def of(cls, model: Any) -> Settings:
        """Return the current parameters of a model."""
        parameter = "n_components" if hasattr(model, "n_components") else "max_components"
        forgetting = getattr(model, "forgetting", 1.0)
        few_reads = getattr(model, "read_tol", 0.0), getattr(model, "max_reads", None)
        common = model.scale, model.solver, model.sketch_size
        return cls(getattr(model, parameter), *common, forgetting, parameter, *few_reads, model.missing)

    @property
    def in_few_reads(self) -> bool:
        """Whether ``fit`` reads the data until a tolerance is met instead of once per component."""
        return self.read_tol > 0 or self.max_reads is not None

    @property
    def rereads(self) -> bool | None:
        """Whether ``fit`` reads the data several times; None if it does so whenever the data can be read again."""
        if self.solver == "auto" and not self.in_few_reads:
            return None
        return self.solver in {"auto", "multipass"}

    @property
    def most_reads(self) -> int:
        """Maximum number of reads of ``fit``."""
        exact = self.n_components + 1
        return exact if self.max_reads is None else min(exact, self.max_reads)

    def streaming_solver(self, n_columns: int) -> str:
        """Return the solver for rows that are read once."""
        if self.solver in {"gram", "sketch"}:
            return self.solver
        # After exact reads, training continues from a sketch.
        return "gram" if self.solver == "auto" and n_columns <= _LARGEST_GRAM else "sketch"

    def new_stream(self, rows: TrainingRows) -> Stream:
        """Return an empty stream for rows of this shape."""
        shape = rows.n_columns, rows.n_targets
        state: Gram | Sketch
        if self.streaming_solver(rows.n_columns) == "gram":
            state = Gram(*shape, forgetting=self.forgetting)
        else:
            state = Sketch(
                *shape,
                size=self.sketch_rows,
                forgetting=self.forgetting,
                n_components=self.n_components,
                scale=self.scale,
            )
        return self.completing(buffered(state, of_labels=rows.n_classes > 0))

    def new_folds(self, rows: TrainingRows, n_folds: int) -> Folds[Gram | Sketch]:
        """Return one empty stream per fold."""
        return Folds(self.new_stream(rows) for _ in range(n_folds))

    def completing(self, stream: Stream, gaps: Gaps | None = None) -> Stream:
        """Return a stream that completes missing values, if ``missing`` is "model" or the stream has gaps."""
        if self.missing == "error" and gaps is None:
            return stream
        # Cross-validation errors are measured on rows completed from X alone.
        from_y = self.parameter == "n_components"
        return CompletingStream.of(stream, n_components=self.n_components, scale=self.scale, from_y=from_y, gaps=gaps)

    def continued(self, stream: Stream) -> Stream:
        """Return the stream, prepared for the current parameters, which may have changed since the last call."""
        state = stream.state
        if state.forgetting != self.forgetting:
            raise ValueError(f"forgetting cannot change during a stream: set it back to {state.forgetting}.")
        if isinstance(stream, CompletingStream) and self.missing == "error":
            raise ValueError("missing cannot change to 'error' during a stream: set it back to 'model'.")
        stream = self.completing(stream)
        if not isinstance(state, Sketch):
            return stream
        if self.sketch_size not in {None, state.size}:
            raise ValueError(f"sketch_size cannot change during a stream: set it back to {state.size}.")
        if self.n_components >= state.size:
            raise ValueError(f"{self.parameter}={self.n_components} is too many for a sketch of {state.size} rows.")
        if state.preserves(n_components=self.n_components, scale=self.scale):
            return stream
        return stream.with_state(state.copy().preserve(n_components=self.n_components, scale=self.scale))

    def continuing(self, stream: Stream) -> Settings:
        """Return settings for streams to be merged with this one, whose solver may differ from the parameter."""
        state = stream.state
        if isinstance(state, Sketch):
            return replace(self, solver="sketch", sketch_size=state.size)
        return replace(self, solver="gram")

    def stream_bytes(self, n_features: int, n_targets: int, n_folds: int = 1, n_merged: int = 0) -> int:
        """Return an upper bound on the memory of ``partial_fit`` and solving, in bytes, for any number of rows.

        ``n_merged`` states are held in addition to those of the folds.
        """
        n_states = 2 * n_folds + n_merged
        if self.streaming_solver(n_features) == "gram":
            # The matrices and the waiting rows are copied while they change, and the rows of a block are centred.
            block_rows, small = _GRAM_BLOCK_ROWS, 0
            n_rows = n_states * n_features + (2 * n_folds + 2) * block_rows
        else:
            # Three times the rows after a compression, and as many directions, before and after a change of units,
            # four blocks, and two for the indices of sparse rows.
            block_rows = self.sketch_rows
            n_rows = (4 * n_states + n_folds + 7) * block_rows
            small = 6 * (3 * block_rows) ** 2
        vectors = 4 * self.n_components + (6 * n_targets + 10) * n_states
        responses = (n_folds + 5) * block_rows * (n_targets + 2) + 6 * min(n_features, n_targets) ** 2
        return 8 * (n_features * (n_rows + vectors) + responses + small)

    def n_bytes(self, method: str, n_features: int, n_targets: int, n_folds: int = 0) -> int:
        """Return an upper bound on the memory of ``fit`` or ``partial_fit``, in bytes, for any number of rows."""
        if method not in {"partial_fit", "fit"}:
            raise ValueError(f"method must be 'partial_fit' or 'fit', not {method!r}.")
        # The folds are merged by recursive halving.
        streams = max(1, n_folds), ceil(log2(n_folds)) + 2 if n_folds else 0
        if method == "partial_fit" or self.rereads is False:
            return self.stream_bytes(n_features, n_targets, *streams)
        # Per set of training rows: solutions, their products, and the sums of two blocks per thread.
        sums = 4 * blas_threads() * (n_targets + 3)
        n_bytes = 8 * n_features * (n_folds + 1) * (7 * self.n_components + 6 * n_targets + 30 + sums)
        if self.in_few_reads:
            # All directions with their actions, before and after a change.
            n_bytes += 32 * n_features * self.n_components * self.most_reads
        if self.in_few_reads or self.missing == "model":
            n_bytes += self.stream_bytes(n_features, n_targets, *streams)
        elif grams_fit(n_features, n_folds):
            n_bytes += replace(self, solver="gram").stream_bytes(n_features, n_targets, *streams)
        return n_bytes

    def require_rows(self, n_rows: int | None, n_columns: int) -> None:
        """Raise ValueError if data of this shape has no rows, or too few rows or columns for ``n_components``."""
        if n_rows == 0:
            raise NoWeightError
        bound = n_columns if n_rows is None else min(n_rows, n_columns)
        # In cross-validation, the last error is repeated past the number of components of the data.
        if self.n_components > bound and self.parameter == "n_components":
            features = f"n_features={n_columns}"
            # The message begins like scikit-learn's, for code that matches it.
            raise ValueError(
                f"`n_components` upper bound is {bound}. Got {self.n_components} instead. Reduce `n_components`. "
                f"The bound is {features if n_rows is None else f'the smaller of n_samples={n_rows} and {features}'}."
            )

    @property
    def sketch_rows(self) -> int:
        """Number of rows of a sketch."""
        if self.sketch_size is None:
            return max(_SKETCH_SIZE, _SKETCH_SIZE_PER_COMPONENT * self.n_components)
        if self.sketch_size <= self.n_components:
            raise ValueError(f"sketch_size={self.sketch_size} must be more than {self.parameter}={self.n_components}.")
        return self.sketch_size
