"""DriftTracker: whether a stream stays what it was, batch by batch."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import linalg, stats
from sklearn.base import is_classifier
from sklearn.utils import check_array, check_consistent_length

from .._types import Float64Array
from ..estimators._base import unchanged_on_failure, validate_rows
from ..estimators._solution import Solution, SolvedAttributes
from ..sources import Source
from ..statistics import Moments
from .names import feature_names
from .residuals import divisor_of, residuals_of

# Batches before the first judgement.
_WARM_UP = 10
# A batch this far off is not taken as an example of what is usual.
_UNUSUAL = 3.0
# Deviations that each batch may be above the mean before it counts as a step towards an alarm.
_SLACK = 0.5
_WATCHED = ("error", "outside", "shift")


class Batch(NamedTuple):
    """What a tracker records of a batch. All is measured with the model as it was before it learnt the batch."""

    n_rows: int
    """Rows in the batch."""
    n_seen: int
    """Rows before it."""
    error: float
    """Root mean squared error of predictions, in deviations of y; for a classifier the share of wrong ones."""
    outside: float
    """Mean of Q, what of the rows the model does not represent, relative to that of the rows before."""
    shift: float
    """Largest difference of a feature's mean from that of all rows before, in deviations of the feature."""
    shifted_feature: str
    """The feature."""
    angle: float
    """Largest angle, in degrees, between the space of the components and what it was after ten batches."""
    retained_variance: float
    """Share of the variance of X that the state of the model holds."""
    alarms: tuple[str, ...]
    """Which of error, outside and shift have risen."""


class DriftTracker:
    """Test-then-train: every batch is first used to test the model, and then to train it.

    Three numbers of each batch are watched: the ``error`` of the predictions, the part of X ``outside`` of the model,
    and the ``shift`` of means (see ``Batch``). An alarm is raised by a cumulative sum (CUSUM): the logarithm of a
    number is compared with those of the batches before, at most ``window`` of them, and what it is above their mean,
    in deviations and less one half, is added up while it is positive. The sum raises an alarm above ``threshold``, and
    all begins anew: one change is one alarm. So a large change shows in one or two batches, and a small one that lasts
    in some more.

    Parameters
    ----------
    model : IncrementalPLS
        The model, which learns from ``partial_fit`` of the tracker. It may have learnt before. With ``forgetting`` it
        follows changes.
    window : int, default=30
        Batches to compare with, ten or more.
    threshold : float, default=8.0
        Of the cumulative sums. Lower is faster, and raises more false alarms: with 8, there were two in 30,000 batches
        of simulated streams that do not change, of normal and independent rows. Heavy tails or rows that depend on each
        other raise many more, up to three in 1,000: use a higher one for these.
    max_history : int, default=1000
        Batches that the history holds. Older ones are dropped.

    Attributes
    ----------
    history_ : deque of Batch
        One record a batch.
    alarms_ : deque of (int, Batch)
        The batches with an alarm, and their numbers, counted from zero.
    n_batches_ : int
        Batches so far.

    See Also
    --------
    Monitor : Judges single rows.

    Notes
    -----
    The model is solved for every batch, so that batches should have some hundred rows, at least where there are many
    features.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import IncrementalPLS
    >>> from plstream.inspection import DriftTracker
    >>> rng = np.random.default_rng(0)
    >>> tracker = DriftTracker(IncrementalPLS(n_components=2))
    >>> for i in range(40):
    ...     X = rng.normal(size=(50, 5))
    ...     y = X[:, 0] + 0.1 * rng.normal(size=50) if i < 30 else X[:, 1]
    ...     tracker = tracker.partial_fit(X, y)
    >>> [(i, batch.alarms) for i, batch in tracker.alarms_]
    [(30, ('error',))]
    >>> print(tracker.summary())
    2,000 rows in 40 batches.
    ...
    Batch 30 (from row 1,500 on): the error rose to 1.41.
    """

    def __init__(self, model: Any, *, window: int = 30, threshold: float = 8.0, max_history: int = 1000) -> None:
        if not issubclass(type(model), SolvedAttributes):
            raise TypeError(f"A tracker is of an IncrementalPLS, not of {type(model).__name__}.")
        if window < _WARM_UP:
            raise ValueError(f"window={window} is too few batches to compare with: use {_WARM_UP} or more.")
        self.model: Any = model
        self.window, self.threshold, self.max_history = window, threshold, max_history
        self.history_: deque[Batch] = deque(maxlen=max_history)
        self.alarms_: deque[tuple[int, Batch]] = deque(maxlen=max_history)
        self.n_batches_ = 0
        self._sums = {name: _Sum(deque(maxlen=window)) for name in _WATCHED}
        self._moments: Moments | None = None
        self._earlier: Float64Array | None = None

    def __repr__(self) -> str:
        return f"DriftTracker({self.model!r}, threshold={self.threshold:g}), {self.n_batches_} batches"

    def partial_fit(self, X: Any, y: Any, **parameters: Any) -> Self:
        """Test the model with a batch, and let it learn the batch.

        A call that fails leaves the tracker and the model as they were.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their responses.
        **parameters
            Others of the model's ``partial_fit``.

        Returns
        -------
        self : DriftTracker
        """
        if isinstance(X, Source):
            raise TypeError("A tracker takes one batch after another: pass the blocks of the source.")
        measured = self._measured(X, y)
        with unchanged_on_failure(self.model):
            self.model.partial_fit(X, y, **parameters)
            rows = validate_rows(self.model, X, reset=False)
            n_rows, n_columns = rows.shape
            forgetting = getattr(self.model, "forgetting", 1.0)
            before = Moments(n_columns, 0, forgetting=forgetting) if self._moments is None else self._moments
            moments = before.copy().update(rows, np.empty((n_rows, 0)))
            solution = self.model._solution() if moments.n_rows >= 2 + self._n_components() else None
        self._moments = moments
        self._record(n_rows, before.n_rows, measured, solution)
        return self

    def summary(self) -> str:
        """Return what has been seen, in a few sentences."""
        if not self.history_:
            return "There has been no batch yet."
        last = self.history_[-1]
        lines = [f"{last.n_seen + last.n_rows:,} rows in {self.n_batches_:,} batches."]
        recent = [batch for batch in self.history_ if np.isfinite(batch.error)][-10:]
        if recent:
            kind = "wrong" if is_classifier(self.model) else "deviations of y"
            error = float(np.mean([batch.error for batch in recent]))
            outside = float(np.mean([batch.outside for batch in recent]))
            lines += [
                f"Error on new rows in the last {len(recent)} batches: {error:.3g} {kind}.",
                f"What of X is outside of the model: {outside:.3g} times as much as in the rows before.",
                f"The model holds {100 * last.retained_variance:.4g} % of the variance of X.",
            ]
        if np.isfinite(last.angle):
            lines.append(f"Its components have turned by {last.angle:.2g} degrees since batch {_WARM_UP}.")
        if not self.alarms_:
            lines.append("Nothing has changed that stands out.")
        lines += [f"Batch {i} (from row {batch.n_seen:,} on): {_in_words(batch)}." for i, batch in self.alarms_]
        return "\n".join(lines)

    def _measured(self, X: Any, y: Any) -> dict[str, Any]:
        """Return what is measured of a batch before it is learnt, NaN where the model has not yet learnt enough."""
        moments = self._moments
        if moments is None or moments.n_rows < 2 + self._n_components():
            return {"error": np.nan, "outside": np.nan, "shift": np.nan, "shifted_feature": ""}
        prediction = self.model.predict(X)
        truth = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        check_consistent_length(prediction, truth)
        rows = validate_rows(self.model, X, reset=False)
        solution = self.model._solution()
        if is_classifier(self.model):
            error = float(np.mean(prediction != truth))
        else:
            errors = (truth.reshape(prediction.shape) - prediction) / solution.y_scale
            error = float(np.sqrt(np.mean(errors**2)))
        q = sum(float(np.einsum("ij,ij->", e, e)) for _, e in residuals_of(solution, rows)) / rows.shape[0]
        variances = moments.x_squares / divisor_of(moments)
        total = float(np.sum(variances / solution.x_scale / solution.x_scale)) or 1.0
        # Not as a share of the total: components that are known badly turn, and so take more or less of X with them.
        left = max(1 - float(np.sum(solution.x_explained_variance_ratio)), 1e-12) * total
        means = np.asarray(rows.mean(axis=0), dtype=np.float64).ravel()
        # A constant column has no deviation to measure by: that it varies is seen in what is outside of the model.
        deviations = np.sqrt(np.where(variances > 0, variances, np.inf))
        shifts = np.abs(means - moments.x_mean) / deviations
        at = int(np.argmax(shifts))
        return {
            "error": error,
            "outside": q / left,
            "shift": float(shifts[at]),
            "shifted_feature": str(feature_names(self.model)[at]),
        }

    def _record(self, n_rows: int, n_seen: int, measured: dict[str, Any], solution: Solution | None) -> None:
        alarms = []
        if np.isfinite(measured["error"]):
            # Errors and residuals are means over rows; a shift is a deviation of a mean, to be compared with that.
            known = {
                "error": (measured["error"], n_rows),
                "outside": (measured["outside"], n_rows),
                "shift": (measured["shift"] * np.sqrt(n_rows * n_seen / (n_rows + n_seen)), 1),
            }
            alarms = [name for name in _WATCHED if self._sums[name].add(*known[name]) > self.threshold]
            for name in alarms:
                self._sums[name] = _Sum(deque(maxlen=self.window))
        angle, retained = np.nan, np.nan
        if solution is not None:
            retained = solution.retained_variance
            present = solution.x_rotations[:, : solution.n_components]
            if self._earlier is not None and present.size and self._earlier.size:
                angle = float(np.degrees(linalg.subspace_angles(present, self._earlier).max()))
            elif self.n_batches_ + 1 >= _WARM_UP:
                self._earlier = present
        batch = Batch(n_rows, n_seen, **measured, angle=angle, retained_variance=retained, alarms=tuple(alarms))
        self.history_.append(batch)
        if alarms:
            self.alarms_.append((self.n_batches_, batch))
        self.n_batches_ += 1

    def _n_components(self) -> int:
        parameters = self.model.get_params(deep=False)
        return int(parameters.get("n_components") or parameters["max_components"])


@dataclass
class _Sum:
    """A cumulative sum of how far values are above those before, in deviations of the normal distribution."""

    before: deque[tuple[float, float]]
    total: float = field(default=0.0)

    def add(self, value: float, weight: float) -> float:
        """Return the sum with one value more; its variance is inverse to its weight."""
        logarithm = float(np.log(max(value, 1e-12)))
        z = self._deviations(logarithm, weight) if len(self.before) >= _WARM_UP else 0.0
        self.total = max(0.0, self.total + z - _SLACK)
        # A jump must not be taken as usual: it would hide the batches that follow.
        if z < _UNUSUAL:
            self.before.append((logarithm, weight))
        return self.total

    def _deviations(self, value: float, weight: float) -> float:
        values, weights = np.array(self.before).T
        mean = weights @ values / weights.sum()
        variance = weights @ (values - mean) ** 2 / (len(values) - 1)
        # Values that are all the same say nothing about how much they vary; a per cent is little.
        deviation = np.sqrt(max(variance, 1e-4) * (1 / weight + 1 / weights.sum()))
        # Of few batches, the deviation is known so badly that Student's distribution is far from the normal one.
        return float(stats.norm.isf(stats.t.sf((value - mean) / deviation, len(values) - 1)))


def _in_words(batch: Batch) -> str:
    parts = {
        "error": f"the error rose to {batch.error:.3g}",
        "outside": f"what is outside of the model rose to {batch.outside:.3g} times what it was",
        "shift": f"the mean of {batch.shifted_feature} is {batch.shift:.2g} deviations off",
    }
    return ", ".join(parts[name] for name in batch.alarms)
