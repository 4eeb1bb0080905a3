"""EvaluationResult: results of a model on data, from one read, in memory independent of the number of rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length

from .._core.labels import as_target, holds_labels
from .._core.metrics import Metrics, added, with_values
from .._core.progress import track
from .._core.tiles import as_dense, default_block_rows
from .._core.types import Array, Float64Array, Rows
from .._core.validation import names_of_target, validate_rows
from ..data import DataError, Source
from ..monitoring import Monitor
from ..monitoring.monitor import largest_contributions
from ..rows import Block, require_alone, validate_source
from ..rows.sources import takes_missing
from ..solvers.completion import FactorModel, has_gaps, observed_means
from ..states import Gram, Moments

# Components whose scores are drawn.
N_COMPONENTS = 4
# Number of rows drawn, and of unusual rows listed with the features responsible.
_N_DRAWN, _N_NAMED = 2000, 10


@dataclass
class EvaluationResult:
    """Results of a model on data; None for those that are not available."""

    name: str
    target_names: list[str] | None
    # Source of T2, Q and their limits, or the reason why there is none.
    monitor: Monitor | None = None
    no_monitor: str = ""
    has_labels: bool = False
    n_rows: int = 0
    # Of the predictions: of all rows, of those beyond a limit of T2 or Q, and of the others.
    metrics: Metrics | None = None
    metrics_beyond: Metrics | None = None
    metrics_within: Metrics | None = None
    # Means and covariances of the scores, means and variances of the features.
    moments: Gram = field(default_factory=lambda: Gram(0, 0))
    features: Moments = field(default_factory=lambda: Moments(0, 0))
    # Numbers of rows beyond the limit of T2, of Q, and of either.
    n_t2_alarms: int = 0
    n_q_alarms: int = 0
    n_alarms: int = 0
    # A random sample of rows: their number ``row``, ``scores``, and if known ``y``, ``predicted``, ``t2`` and ``q``.
    sample: dict[str, Array] = field(default_factory=dict)
    # The rows farthest beyond the limits, farthest first: as in the sample, with ``excess``, the larger of T2 and Q
    # relative to its limit, and the features ``X``.
    unusual: dict[str, Array] = field(default_factory=dict)
    # For each of them, the features with the largest contributions to T2 or Q, and their shares.
    causes: list[list[tuple[int, float]]] = field(default_factory=list)

    @property
    def sampled_note(self) -> str:
        """A sentence about the rows drawn, if not all are."""
        n = len(self.sample["row"])
        return f" The plot shows a random sample of {n:,} of {self.n_rows:,} rows." if n < self.n_rows else ""


def evaluate(model: Any, X: Any, y: Any = None) -> EvaluationResult:
    """Return the results of a fitted model on a source or arrays.

    The data is read once, or twice if the limits of T2 and Q are computed from it.
    """
    if isinstance(X, Source):
        require_alone(y)
        validate_source(model, X, reset=False)
        rows, target = X, None
        result = EvaluationResult(X.name, X.target_names)
    else:
        rows = validate_rows(model, X, reset=False)
        target = None if y is None else as_target(y, type(model).__name__)
        if target is not None:
            check_consistent_length(rows, target)
        result = EvaluationResult("the data given", names_of_target(y))
    # The keys of rows do not depend on the blocks.
    random = np.random.default_rng(0)
    row, completes = getattr(X, "first_row", 0), takes_missing(model)
    with warnings.catch_warnings():
        # Feature names have been checked.
        warnings.simplefilter("ignore")
        result.monitor, result.no_monitor = _monitor(model, rows)
        for read, read_y in _blocks(rows, target):
            known = with_values(read_y) if completes and read_y is not None else np.ones(read.shape[0], bool)
            columns = {"row": row + np.flatnonzero(known)}
            row += read.shape[0]
            block = read if known.all() else read[known]
            block_y = None if read_y is None else read_y[known]
            if not block.shape[0]:
                continue
            columns |= _add(result, model, block, block_y)
            columns["key"] = random.random(block.shape[0])
            result.sample = smallest(result.sample, columns, _N_DRAWN)
            if result.monitor is not None:
                columns["key"] = -np.maximum(*_relative(columns, result.monitor))
                most = np.argsort(columns["key"], kind="stable")[:_N_NAMED]
                farthest = {name: column[most] for name, column in columns.items()}
                farthest["X"] = np.asarray(as_dense(block[most]), dtype=np.float64)
                result.unusual = smallest(result.unusual, farthest, _N_NAMED)
        if not result.n_rows:
            raise DataError(f"{result.name} has no rows.")
        if result.monitor is not None:
            order = np.argsort(result.unusual["key"], kind="stable")
            result.unusual = {name: column[order] for name, column in result.unusual.items()}
            result.unusual["excess"] = -result.unusual.pop("key")
            t2, q = _relative(result.unusual, result.monitor)
            result.causes = [
                largest_contributions(result.monitor, X, "q" if is_q else "t2")
                for X, is_q in zip(result.unusual["X"], q >= t2, strict=True)
            ]
    return result


def smallest(kept: dict[str, Array], new: dict[str, Array], size: int) -> dict[str, Array]:
    """Return the rows with the smallest ``key`` of kept and new ones, in order; random keys give a random sample."""
    if kept:
        new = {name: np.concatenate([kept[name], column]) for name, column in new.items()}
    rows = np.sort(np.argsort(new["key"], kind="stable")[:size])
    return {name: column[rows] for name, column in new.items()}


def _blocks(rows: Any, target: Array | None) -> Iterator[tuple[Rows, Array | None]]:
    if isinstance(rows, Source):
        with closing(rows.blocks()) as blocks:  # type: ignore[type-var]
            yield from track(blocks, "one read", rows.n_rows, lambda block: len(block[0]))
        return
    step = default_block_rows(rows)
    for start in range(0, rows.shape[0], step):
        part = slice(start, start + step)
        yield rows[part], None if target is None else target[part]


def _monitor(model: Any, rows: Any) -> tuple[Monitor | None, str]:
    """Return a monitor with limits from the model or else from these rows, or the reason why there is none."""
    try:
        monitor = Monitor(model)
    except TypeError:
        return None, f"T2 and Q are not available for {type(model).__name__}."
    try:
        _ = monitor.t2_limit_
    except ValueError:
        if isinstance(rows, Source) and not rows.rereadable:
            return (
                None,
                "The model has kept no state from which limits could be computed, and the data can be read only once.",
            )
        try:
            _ = monitor.partial_fit(rows).t2_limit_, monitor.q_limit_
        except ValueError as error:
            return None, str(error)
    return monitor, ""


def _add(result: EvaluationResult, model: Any, X: Rows, y: Array | None) -> dict[str, Array]:
    """Add a block, and return the results of its rows."""
    n = X.shape[0]
    scores = np.asarray(model.transform(X), dtype=np.float64)[:, :N_COMPONENTS]
    if not result.n_rows:
        result.moments, result.features = Gram(scores.shape[1], 0), Moments(X.shape[1], 0)
    result.n_rows += n
    result.moments.update(scores, np.empty((n, 0)))
    result.features.update(_completed(model, X), np.empty((n, 0)))
    columns: dict[str, Array] = {"scores": scores}
    predicted = model.predict(X) if hasattr(model, "predict") else None
    if predicted is not None:
        columns["predicted"] = predicted
    if y is not None:
        columns["y"] = y
        result.has_labels = hasattr(model, "classes_") or (predicted is None and holds_labels(y))
    if predicted is not None and y is not None:
        result.metrics = added(result.metrics, model, y, predicted)
    if result.monitor is not None:
        checked = result.monitor.check(X)
        columns |= {"t2": checked.t2, "q": checked.q}
        result.n_t2_alarms += int(checked.t2_alarm.sum())
        result.n_q_alarms += int(checked.q_alarm.sum())
        result.n_alarms += int(checked.alarm.sum())
        if predicted is not None and y is not None:
            beyond, within = checked.alarm, ~checked.alarm
            result.metrics_beyond = added(result.metrics_beyond, model, y[beyond], predicted[beyond])
            result.metrics_within = added(result.metrics_within, model, y[within], predicted[within])
    return columns


def _completed(model: Any, X: Rows) -> Rows:
    """Return rows with missing values filled by the model or, if it does not support this, by means."""
    if not (takes_missing(model) and has_gaps(X)):
        return X
    if model.missing == "model":
        return model._fitted.factor_model().completed(X)
    means = observed_means(Block(X, np.empty((X.shape[0], 0)), None))
    return FactorModel.of_means(means, 0).completed(X)


def _relative(rows: dict[str, Array], monitor: Monitor) -> tuple[Float64Array, Float64Array]:
    """Return T2 and Q relative to their limits; zero where a limit is zero because the rows have no variation."""
    t2, q = (
        rows[name] / limit if limit > 0 else np.where(rows[name] > 0, np.inf, 0.0)
        for name, limit in (("t2", monitor.t2_limit_), ("q", monitor.q_limit_))
    )
    return t2, q
