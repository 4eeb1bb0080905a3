"""Training: fit a model to rows that are read several times, or add rows to its stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from time import monotonic
from typing import Any

import numpy as np

from .._core.errors import NonFiniteError, counted
from .._core.progress import log_fit
from .._core.threads import single_threaded_blas
from .._core.validation import NoWeightError, changed_at_once, located_errors, require_components
from .._core.warnings import warn_user
from ..rows import CollectionRows, TrainingRows
from ..solvers import Journal, LossyGramAction, MultipassGram, read_few_times
from ..solvers.completion import FactorModel, Gaps
from ..solvers.solution import Solution
from ..states import Buffered, Gram, Sketch
from .fitted import LARGEST_SUBSPACE_ERROR, Fitted
from .heads import Head, OpenedRows
from .missing import CompletedRows, gaps_of_labelled
from .settings import Settings

# Completing rows with missing values: maximum number of rounds, and the change of coefficients at which to stop.
_MOST_ROUNDS = 20
_SMALL_DIFFERENCE = 1e-3
# Data up to this size is solved by one thread.
_SINGLE_THREADED_BYTES = 4 << 20


def fit_rows(
    model: Any,
    opened: Callable[..., OpenedRows],
    data: tuple[Any, Any, Any],
    *,
    journal: Journal | None = None,
) -> Any:
    """Fit a model to rows, discarding earlier training. If the call fails, the model is left unchanged.

    ``opened`` is ``open_values`` or ``open_labels``, possibly with further arguments; ``data`` holds X, y and weights.
    With a journal, exact reads of a source resume where it ends.
    """
    start = monotonic()
    model._validate_params()
    settings = Settings.of(model)
    if settings.rereads is False and settings.in_few_reads:
        raise ValueError(
            f"solver={model.solver!r} reads the data once: with read_tol or max_reads, use solver='auto' or "
            "'multipass'."
        )
    with changed_at_once(model) as (twin,):
        for name in ("_fitted", "_classes_to_come"):
            vars(twin).pop(name, None)
        with opened(twin, *data, None, again=settings.rereads, batch_size=model.batch_size) as (rows, head):
            once = not (rows.rereadable if settings.rereads is None else settings.rereads)
            settings.require_rows(rows.n_rows, rows.n_columns)
            with located_errors(rows, twin):
                rows.allow_missing = settings.missing == "model"
                try:
                    if once:
                        fitted = _fit_stream(rows, head, settings)
                    else:
                        # The first read only finds missing values; it does not complete them.
                        first = replace(settings, missing="error") if rows.allow_missing else settings
                        fitted = _fit_multipass(rows, head, first, journal)
                except NonFiniteError as error:
                    if once or not (error.is_missing and rows.allow_missing):
                        raise
                    fitted = fit_completed_rows(rows, head, settings, twin)
            if once:
                # The number of rows of a stream is known only after the read.
                settings.require_rows(fitted.n_rows, rows.n_columns)
                fitted.solved()
        twin._fitted = fitted
    log_fit(model, start)
    return model


def _fit_multipass(
    rows: TrainingRows, head: Head, settings: Settings, journal: Journal | None = None, *, quiet: bool = False
) -> Fitted:
    """Read the rows until the solution is exact, or accurate enough for ``read_tol`` and ``max_reads``."""
    state: Gram | Sketch | None = None
    if settings.in_few_reads and not rows.in_memory:
        state = _fit_stream(rows, head, settings, journal=journal, label="read 1").stream.current().settle()
    # BLAS threads do not pay off for small products. Between the reads of large data, idle threads would spin on the
    # cores that the next read needs.
    small = 8 * (rows.n_rows or 0) * rows.n_columns <= _SINGLE_THREADED_BYTES
    with single_threaded_blas() if rows.compiled or small else nullcontext():
        reads = MultipassGram(
            rows,
            forgetting=settings.forgetting,
            planned_reads=settings.n_components + 1 if state is None else None,
            journal=journal,
            moments=state,
        )
        if state is None:
            reads.read_moments()
        # The number of rows on Dask workers is known only after the read.
        settings.require_rows(reads.moments.n_rows if rows.n_rows is None else rows.n_rows, rows.n_columns)
        n_components, scale = settings.n_components, settings.scale
        gram: LossyGramAction = reads
        if state is not None:
            tolerance, most = settings.read_tol, settings.most_reads
            gram = read_few_times(reads, state, n_components, scale=scale, tolerance=tolerance, most=most)
        solution = Solution.of(reads.moments, gram, n_components, scale=scale, quiet=quiet)
    known = reads.known()
    if isinstance(known, Sketch):
        known = known.corrected(solution.factors, solution.x_scale)
    # Including rows whose weight has decayed to zero.
    known.n_rows = rows.n_rows or known.n_rows
    error = float(solution.subspace_error.max())
    if error > (settings.read_tol or LARGEST_SUBSPACE_ERROR):
        than = f" for read_tol={settings.read_tol}" if settings.read_tol else ""
        warn_user(
            f"max_reads={settings.max_reads} is not enough{than}: the estimated error is {error:.1g} (see "
            "subspace_error_). Allow more reads."
        )
    return Fitted(head, "multipass", n_components, scale, None, known, solution, reads.n_reads)


def fit_completed_rows(
    rows: TrainingRows, head: Head, settings: Settings, model: Any, *, where: str = "in any row"
) -> Fitted:
    """Fit rows with missing values exactly, completed by the model of all rows.

    One read finds the missing cells, and one fits a stream, whose model completes the rows of the first round. Each
    further round completes them by the model of the previous one, until convergence. ``model`` has the feature names.
    """
    gaps = Gaps.none((rows.n_columns, rows.n_targets), 0.0)
    for part, _ in rows.parts(gaps_of_labelled, settings.forgetting, "missing values"):
        gaps.merge(part)
    _require_observed(gaps, rows.n_columns, model, where)
    stream = _fit_stream(rows, head, replace(settings, solver="auto")).stream
    state = stream.current()
    solution = Solution.of(state, state, settings.n_components, scale=settings.scale, quiet=True)
    exact, n_reads = replace(settings, read_tol=0.0, max_reads=None, missing="error"), 2
    for _ in range(_MOST_ROUNDS):
        before = solution
        fitted = _fit_multipass(CompletedRows(rows, FactorModel.of(before, gaps)), head, exact, quiet=True)
        solution, n_reads = fitted.solved(), n_reads + fitted.n_reads
        if solution.difference(before) < _SMALL_DIFFERENCE:
            break
    if solution.n_components < settings.n_components:
        warn_user(
            f"X and y have only {counted(solution.n_components, 'component')} in common, fewer than the "
            f"n_components={settings.n_components} requested: the rest are zero."
        )
    assert fitted.moments is not None
    fitted.moments.n_rows = stream.n_rows
    return replace(fitted, gaps=gaps, n_reads=1 if rows.in_memory else n_reads)


def _require_observed(gaps: Gaps, n_columns: int, model: Any, where: str) -> None:
    """Raise ValueError naming the first column without any value, if there is one."""
    empty = np.flatnonzero(gaps.unseen).tolist()
    if not empty:
        return
    if empty[0] >= n_columns:
        column = "y" if len(gaps.unseen) == n_columns + 1 else f"Column {empty[0] - n_columns} of y"
        raise ValueError(f"{column} has no value {where}: pass rows with responses.")
    names = getattr(model, "feature_names_in_", None)
    name = empty[0] if names is None else repr(str(names[empty[0]]))
    raise ValueError(f"Column {name} of X has no value {where}: leave it out.")


def _fit_stream(
    rows: TrainingRows,
    head: Head,
    settings: Settings,
    before: Fitted | None = None,
    *,
    journal: Journal | None = None,
    label: str = "read 1 of 1",
) -> Fitted:
    """Read the rows once, and add them to the stream of earlier rows, if any."""
    require_components(settings.n_components, rows.n_columns)
    stream = settings.new_stream(rows) if before is None else settings.continued(before.stream)
    if isinstance(rows, CollectionRows):
        same = settings.continuing(stream)
        n_bytes = same.stream_bytes(rows.n_columns, rows.n_targets)
        empty = same.new_stream(rows)
        learnt = rows.absorbed(empty, _absorb_block, state_bytes=n_bytes, by_number=False, label=label)
        stream = learnt if before is None else stream.merged(learnt, later=True)
    else:
        stream = _absorb(stream, rows, journal, label)
    return Fitted.of_stream(head, settings, stream, n_reads=1 if before is None else before.n_reads)


def _absorb(stream: Any, rows: TrainingRows, journal: Journal | None = None, label: str = "read 1 of 1") -> Any:
    """Return a stream with all rows; the stream of a journal already has the rows before it."""
    start = 0
    if journal is not None:
        stream, start = journal.continued_stream(stream), journal.n_rows
        if journal.n_reads:
            return stream
    for block in rows.tracked_blocks(label, start):
        stream = stream.with_rows(block.X, block.Y, block.weight)
        if journal is not None:
            journal.add_to_stream(stream, block.n_rows + block.n_skipped)
    if journal is not None:
        journal.n_reads, journal.n_rows = 1, 0
    return stream


def _absorb_block(stream: Any, rows: TrainingRows, _first_row: int, _columns: dict[str, Any]) -> Any:
    return _absorb(stream, rows)


def learn_rows(model: Any, opened: Callable[..., OpenedRows], data: tuple[Any, Any, Any], **classes: Any) -> Any:
    """Add rows to a model. If the call fails, or no row has a positive weight, the model is left unchanged.

    For ``opened`` and ``data`` see :func:`fit_rows`. Models of labels take ``classes``, all labels or None.
    """
    fitted: Fitted | None = vars(model).get("_fitted")
    if fitted is None and model.solver == "multipass":
        raise ValueError(
            "solver='multipass' reads the data several times: for partial_fit use solver='gram' or 'sketch'."
        )
    if fitted is None or fitted.stream is None or not fitted.has_parameters_of(model):
        model._validate_params()
    settings = Settings.of(model)
    before = None if fitted is None else fitted.streamed(settings)
    with learning(model, classes) as twin:
        head = None if before is None else before.head
        with opened(twin, *data, head, batch_size=model.batch_size, **classes) as (rows, head):
            if before is None and rows.n_rows == 0:
                raise NoWeightError
            with located_errors(rows, twin):
                rows.allow_missing = settings.missing == "model"
                learnt = _fit_stream(rows, head, settings, before)
        # Without further rows, an exact solution is kept.
        if fitted is None or fitted.moments is None or learnt.n_rows > fitted.n_rows:
            twin._fitted = learnt
    return model


def learn_one_row(model: Any, X: Any, y: Any) -> bool:
    """Add one row to the buffer of a model and return True, or do nothing if a full ``partial_fit`` is needed.

    X has shape (1, n_features). y is a number, a label, or an array of responses.
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


def merge_models(model: Any, other: Any, *, later: bool | None) -> Any:
    """Merge a model into another one of the same class; the labels of two classifiers may differ.

    ``later`` says whether the rows of ``other`` came later; None is False, with a warning where it matters.
    """
    if not isinstance(other, type(model)):
        raise TypeError(f"Only another {type(model).__name__} can be merged, not {type(other).__name__}.")
    mine, theirs = _with_states_alike(*((each._require_fitted(), Settings.of(each)) for each in (model, other)))
    here, there = mine.merge_signature(model), theirs.merge_signature(other)
    for name, value in here.items():
        if value != there[name]:
            raise ValueError(f"These models cannot be merged: {name} is {value} here, {there[name]} there.")
    if list(getattr(model, "feature_names_in_", [])) != list(getattr(other, "feature_names_in_", [])):
        raise ValueError("Only models with the same feature names in the same order can be merged.")
    if later is None and here["forgetting"] < 1.0:
        warn_user(
            f"With forgetting={here['forgetting']}, merge must know which rows are older: pass later=True if the rows "
            "of the other model came after those of this one, or later=False, the default, if both are equally old."
        )
    head = mine.head.united(theirs.head)
    own, added = (fitted.head.extended(head, fitted.stream) for fitted in (mine, theirs))
    model._fitted = mine.after(own.merged(added, later=bool(later)), head)
    return model


def _with_states_alike(*models: tuple[Fitted, Settings]) -> list[Any]:
    """Return two models with streams; if one has a sketch after exact reads, the other gets a sketch too."""
    streamed = [fitted.streamed(settings) for fitted, settings in models]
    sketches = [fitted.stream.state for fitted in streamed if fitted.solver == "sketch"]
    by_reads = any(fitted.moments is not None for fitted, _ in models) or any(
        state.errors.unresolved for state in sketches
    )
    if len(sketches) == 1 and by_reads:
        size = sketches[0].size
        return [fitted if fitted.solver == "sketch" else fitted.as_sketch(size) for fitted in streamed]
    return streamed


@contextmanager
def learning(model: Any, declared: dict[str, Any]) -> Iterator[Any]:
    """Provide a copy of the model to train; afterwards, its attributes replace those of the model.

    If no row has a positive weight, only ``classes``, if declared, are kept, for later calls, which then need not
    declare them.
    """
    is_new = "_fitted" not in vars(model)
    if is_new and declared.get("classes", 0) is None:
        declared["classes"] = vars(model).get("_classes_to_come")
    try:
        with changed_at_once(model) as (twin,):
            yield twin
            vars(twin).pop("_classes_to_come", None)
    except NoWeightError:
        if is_new and declared.get("classes") is not None:
            model._classes_to_come = declared["classes"]
