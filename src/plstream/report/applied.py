"""What a model makes of data, from one read of it and in memory that does not depend on the number of rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_consistent_length

from .._core.labels import as_target, holds_labels
from .._core.metrics import Metrics, metrics_for
from .._core.progress import track
from .._core.tiles import default_block_rows
from .._core.types import Array, Float64Array, Rows
from .._core.validation import validate_rows
from ..data import DataError, Source
from ..monitoring import Monitor
from ..rows import require_alone, validate_source
from ..states import Gram, Moments
from .kept_rows import KeptRows

# Rows that are drawn, rows that are named, and components whose scores are drawn.
N_DRAWN = 2000
N_NAMED = 10
N_COMPONENTS = 4
_N_CAUSES = 3


@dataclass
class Applied:
    """What a model makes of data.

    Attributes
    ----------
    name : str
        Of the data.
    target_names : list of str, or None
        Of its targets.
    labels : bool
        Whether y holds labels.
    n_rows : int
        Rows read.
    score : Metrics or None
        How good predictions are, if there are such and y.
    score_beyond, score_within : Metrics or None
        The same of the rows beyond a limit of T2 or Q, and of the others, if there are any.
    sample : dict of str to ndarray
        A sample of rows: their number ``row``, ``scores``, and as far as there are such ``y``, ``predicted``, ``t2``
        and ``q``.
    unusual : dict of str to ndarray
        The rows that are furthest beyond the limits of T2 and Q, the furthest first, with their features ``X`` as well.
    causes : list
        For each of these, the features with the largest part in what is beyond the limit, and their shares.
    moments : Gram
        Means and covariances of the scores.
    features : Moments
        Means and variances of the features.
    monitor : Monitor or None
        What T2, Q and their limits are from.
    no_monitor : str
        Why there is none.
    n_t2_alarms, n_q_alarms, n_alarms : int
        Rows beyond the limit of T2, of Q, and of either.
    """

    name: str
    target_names: list[str] | None
    monitor: Monitor | None = None
    no_monitor: str = ""
    labels: bool = False
    n_rows: int = 0
    score: Metrics | None = None
    score_beyond: Metrics | None = None
    score_within: Metrics | None = None
    moments: Gram = field(default_factory=lambda: Gram(0, 0))
    features: Moments = field(default_factory=lambda: Moments(0, 0))
    n_t2_alarms: int = 0
    n_q_alarms: int = 0
    n_alarms: int = 0
    causes: list[list[tuple[int, float]]] = field(default_factory=list)
    _drawn: KeptRows = field(default_factory=lambda: KeptRows(N_DRAWN))
    _named: KeptRows = field(default_factory=lambda: KeptRows(N_NAMED))

    @property
    def sample(self) -> dict[str, Array]:
        """A sample of rows."""
        return self._drawn.columns

    @property
    def unusual(self) -> dict[str, Array]:
        """The rows that are furthest beyond the limits, the furthest first."""
        columns = self._named.columns
        order = np.argsort(-columns["excess"], kind="stable") if columns else np.empty(0, np.intp)
        return {name: column[order] for name, column in columns.items()}


def apply_model(model: Any, X: Any, y: Any = None) -> Applied:
    """Read data once, twice if limits of T2 and Q have to come from it, and return what the model makes of it.

    Parameters
    ----------
    model : object
        A fitted model with scores.
    X : array-like or sparse matrix of shape (n_samples, n_features), or source
        The rows.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
        What is true of them, if that is known. None if X is a source, which has it.

    Returns
    -------
    applied : Applied
    """
    if isinstance(X, Source):
        require_alone(y)
        validate_source(model, X, reset=False)
        rows, target = X, None
        found = Applied(X.name, X.target_names)
    else:
        rows = validate_rows(model, X, reset=False)
        target = None if y is None else as_target(y, type(model).__name__)
        if target is not None:
            check_consistent_length(rows, target)
        found = Applied("the data given", _names_of(y))
    with warnings.catch_warnings():
        # Names of features are checked by now.
        warnings.simplefilter("ignore")
        found.monitor, found.no_monitor = _monitor(model, rows)
        # The keys of rows do not depend on where blocks end.
        random = np.random.default_rng(0)
        first_row = getattr(X, "first_row", 0)
        for block, block_y in _blocks(rows, target):
            _add(found, model, block, block_y, first_row, random)
        found.causes = _causes(found)
    if not found.n_rows:
        raise DataError(f"{found.name} has no rows.")
    return found


def _names_of(y: Any) -> list[str] | None:
    """Return the names that the columns of a frame, or a series, have."""
    names = [y.name] if getattr(y, "ndim", 0) == 1 and getattr(y, "name", None) is not None else None
    columns = getattr(y, "columns", names)
    return None if columns is None else [str(name) for name in columns]


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
    """Return a monitor that knows what is normal: from the model, else from these very rows; or why there is none."""
    try:
        monitor = Monitor(model)
    except TypeError:
        return None, f"T2 and Q are not known for {type(model).__name__}."
    try:
        _ = monitor.t2_limit_
    except ValueError:
        if isinstance(rows, Source) and not rows.rereadable:
            return None, "The model has kept no state that tells what is normal, and the data can be read only once."
        try:
            _ = monitor.partial_fit(rows).t2_limit_, monitor.q_limit_
        except ValueError as error:
            return None, str(error)
    return monitor, ""


def _add(found: Applied, model: Any, X: Rows, y: Array | None, first_row: int, random: np.random.Generator) -> None:
    """Take in a block."""
    n = X.shape[0]
    scores = np.asarray(model.transform(X), dtype=np.float64)[:, :N_COMPONENTS]
    if not found.n_rows:
        found.moments, found.features = Gram(scores.shape[1], 0), Moments(X.shape[1], 0)
    found.moments.update(scores, np.empty((n, 0)))
    found.features.update(X, np.empty((n, 0)))
    columns: dict[str, Array] = {"row": first_row + found.n_rows + np.arange(n), "scores": scores}
    predicted = model.predict(X) if hasattr(model, "predict") else None
    if predicted is not None:
        columns["predicted"] = predicted
    if y is not None:
        columns["y"] = y
        if found.score is None:
            found.labels = hasattr(model, "classes_") or (predicted is None and holds_labels(y))
            found.score = None if predicted is None else metrics_for(model, y)
        if found.score is not None and predicted is not None:
            found.score.add(y, predicted)
    if found.monitor is not None:
        checked = found.monitor.check(X)
        columns |= {"t2": checked.t2, "q": checked.q}
        found.n_t2_alarms += int(checked.t2_alarm.sum())
        found.n_q_alarms += int(checked.q_alarm.sum())
        found.n_alarms += int(checked.alarm.sum())
        if found.score is not None and y is not None and predicted is not None:
            found.score_beyond = _added(found.score_beyond, model, y, predicted, checked.alarm)
            found.score_within = _added(found.score_within, model, y, predicted, ~checked.alarm)
        excess = np.maximum(_share(checked.t2, found.monitor.t2_limit_), _share(checked.q, found.monitor.q_limit_))
        most = np.argsort(-excess, kind="stable")[:N_NAMED]
        rest = {name: column[most] for name, column in columns.items()}
        found._named.add(-excess[most], rest | {"excess": excess[most], "X": _dense(X[most])})
    found._drawn.add(random.random(n), columns)
    found.n_rows += n


def _added(score: Metrics | None, model: Any, y: Array, predicted: Array, which: NDArray[np.bool_]) -> Metrics | None:
    """Return a score with some rows more; None as long as there are none."""
    if not which.any():
        return score
    score = metrics_for(model, y[which]) if score is None else score
    score.add(y[which], predicted[which])
    return score


def _causes(found: Applied) -> list[list[tuple[int, float]]]:
    monitor, rows = found.monitor, found.unusual
    if monitor is None or not rows:
        return []
    by_q = _share(rows["q"], monitor.q_limit_) >= _share(rows["t2"], monitor.t2_limit_)
    causes = []
    for X, is_q in zip(rows["X"], by_q, strict=True):
        parts = monitor.contributions(X[None], "q" if is_q else "t2")[0]
        most = np.argsort(-parts, kind="stable")[:_N_CAUSES]
        # Parts of T2 may be negative, and then the others sum to more than it.
        total = np.abs(parts).sum()
        causes.append([(int(k), float(parts[k] / total)) for k in most if parts[k] > 0])
    return causes


def _share(values: Float64Array, limit: float) -> Float64Array:
    return values / limit if limit > 0 else np.where(values > 0, np.inf, 0.0)


def _dense(rows: Rows) -> Float64Array:
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
