"""Training: from rows to what a fit leaves, by reading them several times or into a streaming state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Self, TypeAlias

import numpy as np

from .._core.errors import NonFiniteError
from .._core.progress import track
from .._core.schema import Boolean, Choice, Count, Object, OrNone, is_in_proportion, most_components, stored
from .._core.threads import single_threaded_blas
from .._core.types import Float64Array
from .._core.validation import NoWeightError, changed_at_once, located_errors, require_components
from .._core.warnings import warn_user
from ..data import Source
from ..rows import CollectionRows, TrainingRows, opened_data
from ..solvers import Journal, LossyGramAction, MultipassGram, read_few_times
from ..solvers.completion import FactorModel, Gaps
from ..states import Buffered, Gram, Moments, Sketch
from ._heads import ClassifierHead, Head, OpenedRows, RegressionHead
from ._missing import CompletedRows, CompletingStream, gaps_of_labelled
from ._solution import Solution

# Rows that the Gram matrix absorbs at a time: enough that adding to it costs little beside the product itself.
GRAM_BLOCK_ROWS = 1024
# With more features the sketch is faster, and the square matrix grows out of hand.
_LARGEST_GRAM = 2048
# Rows of a sketch: the larger of the two.
_SKETCH_SIZE = 128
_SKETCH_SIZE_PER_COMPONENT = 24
# Estimated sine of the angle to the exact solution, above which there is a warning.
_LARGEST_SUBSPACE_ERROR = 0.3

# Rounds in which rows with missing values are completed, at most, and the change of coefficients to stop at.
_MOST_ROUNDS = 20
_SMALL_DIFFERENCE = 1e-3

# Data up to this size is solved by one thread.
_SINGLE_THREADED_BYTES = 4 << 20

_SOLVERS = frozenset({"auto", "multipass", "gram", "sketch"})

Stream: TypeAlias = Buffered[Gram | Sketch]


@dataclass(frozen=True)
class Settings:
    """The parameters of an estimator that decide how its state is made and solved."""

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
        """Return those that are set now."""
        parameter = "n_components" if hasattr(model, "n_components") else "max_components"
        forgetting = getattr(model, "forgetting", 1.0)
        few_reads = getattr(model, "read_tol", 0.0), getattr(model, "max_reads", None)
        common = model.scale, model.solver, model.sketch_size
        return cls(getattr(model, parameter), *common, forgetting, parameter, *few_reads, model.missing)

    @property
    def in_few_reads(self) -> bool:
        """Whether ``fit`` reads the data until it is exact enough, and not once per component."""
        return self.read_tol > 0 or self.max_reads is not None

    @property
    def in_one_read(self) -> bool:
        """Whether ``fit`` reads the data only once."""
        return self.solver in {"gram", "sketch"} or self.parameter == "max_components"

    @property
    def most_reads(self) -> int:
        """Largest number of reads that ``fit`` makes."""
        exact = self.n_components + 1
        return exact if self.max_reads is None else min(exact, self.max_reads)

    def read_few_times(self, reads: MultipassGram, state: Gram | Sketch) -> LossyGramAction:
        """Return the Gram action of rows that a state is of, exact enough after as few reads more as possible."""
        c, most = self.n_components, self.most_reads
        return read_few_times(reads, state, c, scale=self.scale, tolerance=self.read_tol, most=most)

    def warn_of_few_reads(self, solution: Solution) -> None:
        """Warn if more reads than allowed would have been needed."""
        error = float(solution.subspace_error.max())
        if error > (self.read_tol or _LARGEST_SUBSPACE_ERROR):
            than = f" for read_tol={self.read_tol}" if self.read_tol else ""
            warn_user(
                f"max_reads={self.max_reads} is not enough{than}: the estimated error is {error:.1g} (see "
                "subspace_error_). Allow more reads."
            )

    def streaming_solver(self, n_columns: int) -> str:
        """Return the solver for rows that are read once."""
        if self.solver in {"gram", "sketch"}:
            return self.solver
        # What exact reads leave to go on with is a sketch.
        return "gram" if self.solver == "auto" and n_columns <= _LARGEST_GRAM else "sketch"

    def new_stream(self, rows: TrainingRows) -> Stream:
        """Return an empty state for rows like these."""
        state: Gram | Sketch
        shape, of_labels = (rows.n_columns, rows.n_targets), rows.n_classes > 0
        if self.streaming_solver(rows.n_columns) == "gram":
            state = Gram(*shape, forgetting=self.forgetting)
            return self._completing(Buffered(state, GRAM_BLOCK_ROWS, of_labels=of_labels))
        size = self.sketch_rows
        state = Sketch(*shape, size=size, forgetting=self.forgetting, n_components=self.n_components, scale=self.scale)
        return self._completing(Buffered(state, size, of_labels=of_labels))

    def stream_after(self, moments: Moments, solution: Solution, gaps: Gaps | None, *, of_labels: bool) -> Stream:
        """Return a stream that goes on from what exact reads have left."""
        if isinstance(moments, Gram | Sketch):
            block_rows = getattr(moments, "size", GRAM_BLOCK_ROWS)
            return self._completing(Buffered(moments, block_rows, of_labels=of_labels), gaps)
        size = self.sketch_rows
        sketch: Gram | Sketch = Sketch.seeded(
            moments,
            solution.factors,
            solution.x_scale,
            size=size,
            n_components=self.n_components,
            scale=self.scale,
        )
        return self._completing(Buffered(sketch, size, of_labels=of_labels), gaps)

    def _completing(self, stream: Stream, gaps: Gaps | None = None) -> Stream:
        """Return a stream that takes missing values, if this is set."""
        if self.missing == "model" or gaps is not None:
            how: dict[str, Any] = {
                "n_components": self.n_components,
                "scale": self.scale,
                "from_y": self.parameter == "n_components",
            }
            return CompletingStream.of(stream, **how, gaps=gaps)
        return stream

    def continued(self, stream: Stream) -> Stream:
        """Return a stream as it is, or one that preserves another solution: parameters may have been set anew."""
        state = stream.state
        if state.forgetting != self.forgetting:
            raise ValueError(f"forgetting cannot change in mid-stream: set it back to {state.forgetting}.")
        if isinstance(stream, CompletingStream) and self.missing == "error":
            raise ValueError("missing cannot change to 'error' in mid-stream: set it back to 'model'.")
        stream = self._completing(stream)
        if not isinstance(state, Sketch):
            return stream
        if self.sketch_size not in {None, state.size}:
            raise ValueError(f"sketch_size cannot change in mid-stream: set it back to {state.size}.")
        if self.n_components >= state.size:
            raise ValueError(f"{self.parameter}={self.n_components} is too many for a sketch of {state.size} rows.")
        if state.preserves(n_components=self.n_components, scale=self.scale):
            return stream
        return stream.with_state(state.copy().preserve(n_components=self.n_components, scale=self.scale))

    def continuing(self, stream: Stream) -> Settings:
        """Return settings for streams that are to be merged with one: the solver may have been set anew since."""
        state = stream.state
        if isinstance(state, Sketch):
            return replace(self, solver="sketch", sketch_size=state.size)
        return replace(self, solver="gram")

    def stream_bytes(self, n_features: int, n_targets: int, n_folds: int = 1, n_merged: int = 0) -> int:
        """Return the bytes that several streams take, with their states when they are solved, and others beside."""
        n_states = 2 * n_folds + n_merged
        if self.streaming_solver(n_features) == "gram":
            # The matrix and the waiting rows are copied while they change, and the rows are centred.
            block_rows, small = GRAM_BLOCK_ROWS, 0
            n_rows = n_states * n_features + (n_folds + 3) * block_rows
        else:
            # Three times the rows left by a compression, and as many directions, before and after a change of units,
            # and four blocks.
            block_rows = self.sketch_rows
            n_rows = (4 * n_states + n_folds + 5) * block_rows
            small = 6 * (3 * block_rows) ** 2
        vectors = 4 * self.n_components + (6 * n_targets + 10) * n_states
        responses = (n_folds + 5) * block_rows * (n_targets + 2) + 6 * min(n_features, n_targets) ** 2
        return 8 * (n_features * (n_rows + vectors) + responses + small)

    def memory_usage(self, n_features: int, n_targets: int) -> int:
        """Return the bytes that ``partial_fit`` and solving take, at most, whatever the number of rows."""
        return self.stream_bytes(n_features, n_targets)

    def require_rows(self, n_rows: int | None, n_columns: int) -> None:
        """Raise ValueError unless data of this size has as many components."""
        if n_rows == 0:
            raise NoWeightError
        bound = n_columns if n_rows is None else min(n_rows, n_columns)
        # In cross-validation, errors of more components than there are repeat the last one.
        if self.n_components > bound and self.parameter == "n_components":
            features = f"n_features={n_columns}"
            # The first words are scikit-learn's, for code that looks for them.
            raise ValueError(
                f"`n_components` upper bound is {bound}. Got {self.n_components} instead. Reduce `n_components`. "
                f"The bound is {features if n_rows is None else f'the smaller of n_samples={n_rows} and {features}'}."
            )

    @property
    def sketch_rows(self) -> int:
        """Rows of a sketch."""
        if self.sketch_size is None:
            return max(_SKETCH_SIZE, _SKETCH_SIZE_PER_COMPONENT * self.n_components)
        if self.sketch_size <= self.n_components:
            raise ValueError(f"sketch_size={self.sketch_size} must be more than {self.parameter}={self.n_components}.")
        return self.sketch_size


def _buffers(stream: Any) -> tuple[Any, ...]:
    """Return the buffers of a stream, one per fold if it has folds."""
    return () if stream is None else getattr(stream, "streams", (stream,))


def are_affordable(n_components: int, its: Any) -> bool:
    """Return whether a solution with so many components is in proportion to the arrays of what a fit has left."""
    m, q, n_folds = its.sizes["m"], its.sizes["q"], len(_buffers(its.stream))
    return n_components <= most_components(m) and is_in_proportion(n_components * (3 * m + (n_folds + 1) * q), its)


@stored(
    {
        "head": Object(RegressionHead, ClassifierHead, q="q"),
        "solver": Choice("multipass", "gram", "sketch"),
        "n_components": Count(1, size="s"),
        "scale": Boolean(),
        "stream": OrNone(Object(Buffered, CompletingStream, m="m", q="q")),
        "moments": OrNone(Object(Moments, Gram, Sketch, m="m", q="q")),
        "gaps": OrNone(Object(Gaps, m="m", n="m+q")),
        "solution": OrNone(Object(Solution, m="m", q="q", s="s")),
        "n_reads": Count(1),
    },
    {
        "there is a stream or a solution": lambda its: its.stream is not None or its.solution is not None,
        "there is a stream or moments": lambda its: (its.stream is None) != (its.moments is None),
        "the solver is that of the state": lambda its: (
            ({buffer.state.cls.__name__.lower() for buffer in _buffers(its.stream)} or {"multipass"}) == {its.solver}
        ),
        "rows that wait have all responses, or classes by number": lambda its: all(
            buffer._Y.shape[1] == getattr(its.head, "n_targets", 1) for buffer in _buffers(its.stream)
        ),
        "components are in proportion to its arrays": lambda its: are_affordable(its.n_components, its),
    },
)
@dataclass
class Fitted:
    """What a fit has left. It is replaced as a whole, so that results never mix two of them.

    Attributes
    ----------
    head : RegressionHead or ClassifierHead
        What y is.
    solver : str
        The solver in use: "multipass", "gram" or "sketch".
    n_components, scale
        What to solve with.
    stream : Buffered, Folds or None
        The streaming state; None after reads of the data again.
    moments : Moments, Gram, Sketch or None
        What reads of the data again have left of the rows, besides the solution.
    solution : Solution or None
        Computed when it is first asked for.
    n_reads : int
        Reads of the data that ``fit`` has made; rows of ``partial_fit`` are read once.
    gaps : Gaps or None
        Missing cells of the rows, if there were any that reads of the data again have completed.
    """

    head: Head
    solver: str
    n_components: int
    scale: bool
    stream: Any
    moments: Moments | None = None
    solution: Solution | None = None
    n_reads: int = 1
    gaps: Gaps | None = None

    @property
    def missing(self) -> Gaps | None:
        """Missing cells of all rows, or None if there cannot be any."""
        parts = [buffer.all_gaps() for buffer in _buffers(self.stream) if isinstance(buffer, CompletingStream)]
        return reduce(Gaps.merged, parts) if parts else self.gaps

    @property
    def n_rows(self) -> int:
        """Number of training samples."""
        return int((self.stream if self.moments is None else self.moments).n_rows)

    def factor_model(self) -> FactorModel:
        """Return the model that completes rows."""
        return FactorModel.of(self.solved(), self.missing)

    def current(self) -> Any:
        """Return the moments of all rows, by the state if there is one."""
        return self.stream.current() if self.moments is None else self.moments

    def streamed(self, settings: Settings) -> Self:
        """Return the same with a stream: after reads of the data again, it goes on from what they have left."""
        if self.moments is None:
            return self
        assert self.solution is not None
        preserved = replace(settings, n_components=self.n_components, scale=self.scale)
        of_labels = isinstance(self.head, ClassifierHead)
        stream = preserved.stream_after(self.moments, self.solution, self.gaps, of_labels=of_labels)
        return self._with_stream(stream, moments=None, gaps=None)

    def as_sketch(self, size: int) -> Self:
        """Return the same with a sketch in place of a Gram matrix."""
        gram = self.stream.current()
        sketch = Sketch.of_gram(gram, size=size, n_components=self.n_components, scale=self.scale)
        stream: Stream = Buffered(sketch, size, of_labels=self.stream.of_labels)
        if isinstance(self.stream, CompletingStream):
            gaps = self.stream.all_gaps()
            stream = CompletingStream.of(stream, n_components=self.n_components, scale=self.scale, gaps=gaps)
        return self._with_stream(stream)

    def _with_stream(self, stream: Stream, **changes: Any) -> Self:
        return replace(self, stream=stream, solver=type(stream.state).__name__.lower(), **changes)

    def solved(self) -> Solution:
        """Return the solution for the rows so far, solving for it if that has not been done."""
        if self.solution is None:
            state = self.stream.current()
            solution = Solution.of(state, state, self.n_components, scale=self.scale)
            warn_of_small_sketch(state, solution)
            self.solution = solution
        return self.solution

    def has_parameters_of(self, model: Any) -> bool:
        """Return whether all parameters of a model are those that its stream has, and so valid."""
        state = self.stream.state
        return (
            getattr(model, "n_components", None) == self.n_components
            and model.scale is self.scale
            and getattr(model, "forgetting", 1.0) == state.forgetting
            and model.solver in _SOLVERS
            and (model.sketch_size is None or model.sketch_size == getattr(state, "size", None))
            and model.batch_size is None
            and getattr(model, "read_tol", 0.0) == 0.0
            and getattr(model, "max_reads", None) is None
        )

    def after(self, stream: Any, head: Head | None = None) -> Self:
        """Return what is left with another stream, and perhaps more classes."""
        return replace(self, stream=stream, head=head or self.head, solution=None)

    def alike(self, model: Any) -> dict[str, Any]:
        """Return what models must have in common to be merged."""
        state = self.stream.state
        return {
            "the class": type(model).__name__,
            "n_components": self.n_components,
            "scale": self.scale,
            "solver_": self.solver,
            "forgetting": state.forgetting,
            "sketch_size": getattr(state, "size", None),
            "missing": "model" if isinstance(_buffers(self.stream)[0], CompletingStream) else "error",
            "n_features_in_": model.n_features_in_,
            **self.head.alike,
        }


def fit_rows(model: Any, opened: Callable[..., OpenedRows], data: tuple[Any, Any, Any], **how: Any) -> Any:
    """Fit a model to rows, forgetting what it was before.

    Parameters
    ----------
    model : estimator
        It is as it was if anything fails.
    opened : callable
        ``open_values`` or ``open_labels``.
    data : tuple
        X, y and weights as the caller has them.
    **how
        What else ``opened`` takes; and ``journal``, with which exact reads of a source resume where it ends.
    """
    journal: Journal | None = how.pop("journal", None)
    settings = Settings.of(model)
    X, y, sample_weight = data
    X, y = opened_data(X, y)
    with changed_at_once(model) as (twin,):
        for name in ("_fitted", "_classes_to_come"):
            vars(twin).pop(name, None)
        # What can be read only once is, unless several reads were asked for.
        asked = settings.solver != "auto" or settings.in_few_reads
        is_stream = not asked and isinstance(X, Source) and not X.rereadable
        again = not (settings.in_one_read or is_stream)
        if settings.in_few_reads and not again:
            raise ValueError(
                f"solver={model.solver!r} reads the data once: with read_tol or max_reads, use solver='auto' or "
                "'multipass'."
            )
        with opened(twin, X, y, sample_weight, None, again=again, batch_size=model.batch_size, **how) as (rows, head):
            settings.require_rows(rows.n_rows, rows.n_columns)
            with located_errors(rows, twin):
                rows.allow_missing = settings.missing == "model"
                try:
                    # Without what completes rows: missing values are to be found in the first read.
                    strict = replace(settings, missing="error")
                    fitted = _reread(rows, head, strict, journal) if again else _absorbed(rows, head, settings)
                except NonFiniteError as error:
                    if not (error.is_missing and again and rows.allow_missing):
                        raise
                    fitted = _completed(rows, head, settings, twin)
            if not again:
                # Of a stream, the number of rows is not known earlier.
                settings.require_rows(fitted.n_rows, rows.n_columns)
                fitted.solved()
        twin._fitted = fitted
    return model


def _reread(
    rows: TrainingRows, head: Head, settings: Settings, journal: Journal | None = None, *, quiet: bool = False
) -> Fitted:
    """Return what reads of the rows leave, as many as make the solution exact, or exact enough."""
    state: Gram | Sketch | None = None
    if settings.in_few_reads and not rows.in_memory:
        state = _absorbed(rows, head, settings, journal=journal, label="read 1").stream.current()
    # Threads of BLAS do not pay for small products. And between the reads of large data, while they are idle, they
    # would spin on the cores that the next read needs.
    small = 8 * (rows.n_rows or 0) * rows.n_columns <= _SINGLE_THREADED_BYTES
    with single_threaded_blas() if rows.compiled or small else nullcontext():
        reads = MultipassGram(
            rows,
            forgetting=settings.forgetting,
            planned_reads=settings.n_components + 1 if state is None else None,
            journal=journal,
            moments=state,
        )
        # Of rows that are elsewhere, the number is not known earlier.
        settings.require_rows(reads.moments.n_rows if rows.n_rows is None else rows.n_rows, rows.n_columns)
        gram = reads if state is None else settings.read_few_times(reads, state)
        solution = Solution.of(reads.moments, gram, settings.n_components, scale=settings.scale, quiet=quiet)
    known = reads.known()
    if isinstance(known, Sketch):
        known = known.corrected(solution.factors, solution.x_scale)
    # With those that are too old to count.
    known.n_rows = rows.n_rows or known.n_rows
    settings.warn_of_few_reads(solution)
    return Fitted(head, "multipass", settings.n_components, settings.scale, None, known, solution, reads.n_reads)


def _completed(rows: TrainingRows, head: Head, settings: Settings, model: Any) -> Fitted:
    """Return what exact reads leave of rows with missing values, completed by the model of all rows.

    One read finds the gaps, and one is that of a stream. Rounds begin with its model: each completes the rows by the
    model of the round before, until the model stays.
    """
    gaps = Gaps.none((rows.n_columns, rows.n_targets), 0.0)
    for part, _ in rows.parts(gaps_of_labelled, settings.forgetting, "missing values"):
        gaps.merge(part)
    _require_observed(gaps, rows.n_columns, model)
    stream = _absorbed(rows, head, replace(settings, solver="auto")).stream
    state = stream.current()
    solution = Solution.of(state, state, settings.n_components, scale=settings.scale, quiet=True)
    exact, n_reads = replace(settings, read_tol=0.0, max_reads=None, missing="error"), 2
    for _ in range(_MOST_ROUNDS):
        before = solution
        fitted = _reread(CompletedRows(rows, FactorModel.of(before, gaps)), head, exact, quiet=True)
        solution, n_reads = fitted.solved(), n_reads + fitted.n_reads
        if solution.difference(before) < _SMALL_DIFFERENCE:
            break
    if solution.n_components < settings.n_components:
        warn_user(
            f"X and y have only {solution.n_components} component(s) in common, fewer than the "
            f"n_components={settings.n_components} asked for: the rest are zero."
        )
    assert fitted.moments is not None
    fitted.moments.n_rows = stream.n_rows
    return replace(fitted, gaps=gaps, n_reads=1 if rows.in_memory else n_reads)


def _require_observed(gaps: Gaps, n_columns: int, model: Any) -> None:
    """Raise ValueError that names the first column without any value, if there is one."""
    empty = np.flatnonzero(gaps.unseen).tolist()
    if not empty:
        return
    if empty[0] >= n_columns:
        what = (
            "y has no value in any row"
            if len(gaps.unseen) == n_columns + 1
            else (f"Column {empty[0] - n_columns} of y has no value in any row")
        )
        raise ValueError(f"{what}: pass rows with responses.")
    names = getattr(model, "feature_names_in_", None)
    name = empty[0] if names is None else repr(str(names[empty[0]]))
    raise ValueError(f"Column {name} of X has no value in any row, so that nothing is known of it: leave it out.")


def _absorbed(
    rows: TrainingRows,
    head: Head,
    settings: Settings,
    before: Fitted | None = None,
    *,
    journal: Journal | None = None,
    label: str = "read 1 of 1",
) -> Fitted:
    """Return what one read leaves, after rows before if there were any."""
    require_components(settings.n_components, rows.n_columns)
    stream = settings.new_stream(rows) if before is None else settings.continued(before.stream)
    if isinstance(rows, CollectionRows):
        same = settings if before is None else settings.continuing(stream)
        n_bytes = same.stream_bytes(rows.n_columns, rows.n_targets)
        empty = same.new_stream(rows)
        learnt = rows.absorbed(empty, _absorb_block, state_bytes=n_bytes, by_number=False, label=label)
        stream = learnt if before is None else stream.merged(learnt, later=True)
    else:
        stream = absorb(stream, rows, journal, label)
    solver = settings.streaming_solver(rows.n_columns) if before is None else before.solver
    fitted = Fitted(head, solver, settings.n_components, settings.scale, stream)
    return fitted if before is None else replace(fitted, n_reads=before.n_reads)


def absorb(stream: Any, rows: TrainingRows, journal: Journal | None = None, label: str = "read 1 of 1") -> Any:
    """Return a stream with all rows; those that are in a journal are in its stream already."""
    start = 0
    if journal is not None:
        stream, start = journal.continued_stream(stream), journal.n_rows
        if journal.n_reads:
            return stream
    n_rows = None if rows.n_rows is None else rows.n_rows - start
    for block in track(rows.blocks(start), label, n_rows, lambda block: block.n_rows):
        stream = stream.with_rows(block.X, block.Y, block.weight)
        if journal is not None:
            journal.add_to_stream(stream, block.n_rows)
    if journal is not None:
        journal.n_reads, journal.n_rows = 1, 0
    return stream


def _absorb_block(stream: Any, rows: TrainingRows, _first_row: int, _columns: dict[str, Any]) -> Any:
    return absorb(stream, rows)


def learn_rows(model: Any, opened: Callable[..., OpenedRows], data: tuple[Any, Any, Any], **how: Any) -> Any:
    """Add rows to a model. If that fails it is as it was, and if none of them has a weight.

    ``opened``, ``data`` and ``how`` are as of :func:`fit_rows`.
    """
    left: Fitted | None = vars(model).get("_fitted")
    if left is None and model.solver == "multipass":
        raise ValueError(
            "solver='multipass' reads the data several times: for partial_fit use solver='gram' or 'sketch'."
        )
    if left is None or left.stream is None or not left.has_parameters_of(model):
        model._validate_params()
    settings = Settings.of(model)
    before = None if left is None else left.streamed(settings)
    with learning(model, how) as twin:
        head = None if before is None else before.head
        with opened(twin, *data, head, batch_size=model.batch_size, **how) as (rows, head):
            if before is None and rows.n_rows == 0:
                raise NoWeightError
            with located_errors(rows, twin):
                rows.allow_missing = settings.missing == "model"
                fitted = _absorbed(rows, head, settings, before)
        # Without a row more, an exact solution stays what it is.
        if left is None or left.moments is None or fitted.n_rows > left.n_rows:
            twin._fitted = fitted
    return model


def learn_one_row(model: Any, X: Any, y: Any) -> bool:
    """Add one row to a model, in microseconds, and return True; or do nothing if there is anything else to check or do.

    Parameters
    ----------
    model : estimator
        Nothing about it has changed since the last row, and the row only has to wait for others.
    X : array-like of shape (1, n_features)
        The row.
    y : object
        Its value, its label, or its values as an array.
    """
    fitted: Fitted | None = vars(model).get("_fitted")
    if fitted is None or type(fitted.stream) is not Buffered or not fitted.has_parameters_of(model):
        return False
    is_plain = type(X) is np.ndarray and X.dtype.kind == "f" and "feature_names_in_" not in vars(model)
    if not is_plain or X.shape != (1, model.n_features_in_):
        return False
    numbers = fitted.head.numbers_of_one(y)
    stream = None if numbers is None else fitted.stream.with_one(X, numbers)
    if stream is None:
        return False
    model._fitted = fitted.after(stream)
    return True


def merge_models(model: Any, other: Any, kind: Any, *, later: bool | None) -> Any:
    """Add to a model all rows of another one of the same kind; either may have classes that the other has not.

    ``later`` says whether the rows of the other one came after; None if that was not said.
    """
    if not isinstance(other, kind):
        raise TypeError(f"Only another {kind.__name__} can be merged, not {type(other).__name__}.")
    mine, theirs = _of_one_kind(*((each._require_fitted(), Settings.of(each)) for each in (model, other)))
    here, there = mine.alike(model), theirs.alike(other)
    for name, value in here.items():
        if value != there[name]:
            raise ValueError(f"Only models that are alike can be merged: {name} is {value} here, {there[name]} there.")
    if list(getattr(model, "feature_names_in_", [])) != list(getattr(other, "feature_names_in_", [])):
        raise ValueError("Only models with the same feature names in the same order can be merged.")
    if later is None and here["forgetting"] < 1.0:
        warn_user(
            f"With forgetting={here['forgetting']}, rows age by those that come after them, and merge does not know "
            "which came first: pass later=True if the rows of the other model came after, or later=False if both "
            "are equally old, as without it."
        )
    head = mine.head.united(theirs.head)
    own, added = (fitted.head.extended(head, fitted.stream) for fitted in (mine, theirs))
    model._fitted = mine.after(own.merged(added, later=bool(later)), head)
    return model


def _of_one_kind(*models: tuple[Fitted, Settings]) -> list[Any]:
    """Return two models with their streams, a Gram matrix as a sketch if exact reads have left one of the two so."""
    streamed = [left.streamed(settings) for left, settings in models]
    sketches = [fitted.stream.state for fitted in streamed if fitted.solver == "sketch"]
    by_reads = any(left.moments is not None for left, _ in models) or any(state.unresolved for state in sketches)
    if len(sketches) == 1 and by_reads:
        size = sketches[0].size
        return [fitted if fitted.solver == "sketch" else fitted.as_sketch(size) for fitted in streamed]
    return streamed


@contextmanager
def learning(model: Any, how: dict[str, Any]) -> Iterator[Any]:
    """Give a twin that learns more rows, and whose attributes then replace those of the model.

    If no row has a weight, nothing changes, but the classes that were given are remembered: later calls need not repeat
    them.
    """
    is_new = "_fitted" not in vars(model)
    if is_new and how.get("classes", 0) is None:
        how["classes"] = vars(model).get("_classes_to_come")
    try:
        with changed_at_once(model) as (twin,):
            yield twin
            vars(twin).pop("_classes_to_come", None)
    except NoWeightError:
        if is_new and how.get("classes") is not None:
            model._classes_to_come = how["classes"]


def warn_of_small_sketch(state: Gram | Sketch, solution: Solution) -> None:
    """Warn if a sketch is too small for the components it is solved for."""
    errors: Float64Array = solution.subspace_error
    too_large = errors > _LARGEST_SUBSPACE_ERROR
    if isinstance(state, Sketch) and too_large.any():
        good = int(np.argmax(too_large))
        why = f"sketch_size={state.size} is small for this data"
        advice = "Use a larger sketch_size, or fewer components."
        if state.unresolved:
            why = "fit has left no more of its rows than the solution needs"
            advice = "Fit with solver='gram' or 'sketch' where rows are to follow, or fit all rows again."
        warn_user(
            f"{why}: only the first {good} of {len(errors)} components are likely to be close to those of an exact fit "
            f"(see subspace_error_). {advice}"
        )
