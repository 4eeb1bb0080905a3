"""DriftTracker: whether the distribution of a stream changes, batch by batch."""

from __future__ import annotations

from collections import deque
from copy import copy
from typing import Any, Self

import numpy as np
from scipy import linalg
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing

from .._core.metrics import columns_of
from .._core.schema import Count, Each, Entries, Number, Numbers, Object, OrMissing, OrNone, Tuple, stored
from .._core.types import Float64Array
from .._core.validation import changed_at_once, validate_rows, validate_weight
from ..data import Source
from ..estimators import StreamingPipeline
from ..estimators.base import PLSBase
from ..estimators.settings import Settings
from ..rows import Block
from ..solvers.solution import Solution
from ..states import Moments
from .batches import WATCHED, Batch, Measured, Snapshot, measured
from .cusum import WARM_UP, Cusum
from .monitor import MONITORED, is_monitored
from .pipelines import last_record, last_step, rows_for_last_step

# Windows of usual batches for the reference. With fewer, sums drift because the mean is too uncertain.
_REFERENCE_WINDOWS = 10
# Rows per component, and for the mean, required for a reference model.
_ROWS_PER_COMPONENT = 10
# Error rates are compared by the arcsine of their root, with known variance; other statistics by logarithms.
_LEAST_VARIANCE_OF_SHARES = 0.25
_UNKNOWN = Measured(np.nan, np.nan, np.nan, "")


def _is_of_size(model: Any, n_features: int, n_targets: int) -> bool:
    """Return whether a model in a file is fitted, with matching numbers of features and responses."""
    if not hasattr(model, "_fitted"):
        return False
    return bool(model.sizes["m"] == n_features and getattr(model._fitted.head, "n_targets", 0) == n_targets)


@stored(
    {
        "model": Object(*MONITORED, StreamingPipeline),
        "window": Count(WARM_UP),
        "threshold": Number(0, finite=False),
        "max_history": Count(),
        "history_": Each(Object(Batch)),
        "alarms_": Each(Tuple(Count(), Object(Batch))),
        "n_batches_": Count(),
        "_sums": Entries(**dict.fromkeys(WATCHED, Object(Cusum))),
        "_reference": OrNone(Object(Snapshot, m="m", v="v?")),
        "_reference_sums": Entries(**dict.fromkeys(WATCHED, OrMissing(Object(Cusum)))),
        "_n_quiet": Count(),
        "_moments": OrNone(Object(Moments, m="m", q="v?")),
        "_earlier": OrNone(Numbers("m", None)),
    },
    {
        "there is a sum for every statistic, with a reference": lambda its: (
            len(its._reference_sums) == (0 if its._reference is None else len(WATCHED))
        ),
        "the model is a PLS model": lambda its: is_monitored(its.model),
        "the model has the features and responses of the rows before": lambda its: (
            its._moments is None or _is_of_size(last_record(its.model), its.sizes["m"], its.sizes["v"])
        ),
        "the reference was trained on earlier rows": lambda its: its._reference is None or its._moments is not None,
    },
)
class DriftTracker:
    """Test-then-train: every batch is first used to test the model, and then to train it.

    Three statistics of each batch are monitored: the ``error`` of the predictions, the part of X ``outside`` of the
    model, and the ``shift`` of means (see ``Batch``). Each is measured twice: with the current model, which may follow
    the stream, and with the *reference*, an earlier model. Changes are thus detected even if the model adapts to them
    at once, and slow changes even if no batch differs much from the previous ones.

    Alarms are raised by cumulative sums (CUSUM): the logarithm of a statistic is compared with those of earlier
    batches, the last ``window`` for the model, the first ten times as many since it was set for the reference. Its
    excess over their mean, in standard deviations and minus one half, is summed while the sum is positive. An alarm is
    raised if the sum exceeds ``threshold``, or if a single batch exceeds half of it. Each change raises one alarm: the
    comparison with the last batches then starts again, and the comparison with the reference raises no further alarm
    until the stream is back to normal or ``set_reference`` is called.

    Parameters
    ----------
    model : IncrementalPLS, or a pipeline that ends with one
        The model, which ``partial_fit`` of the tracker trains. It may already be trained. With ``forgetting``, it
        follows changes.
    window : int, default=30
        Number of batches to compare with, at least ten. The reference is the given model if it was trained on ten rows
        per component, otherwise the model after this many batches without an alarm.
    threshold : float, default=10.0
        Threshold of the cumulative sums. Lower values detect changes earlier but raise more false alarms: see
        ``docs/monitoring.md``. Use a higher one for heavy tails or dependent rows, which raise many more.
    max_history : int, default=1000
        Maximum number of batches in the history.

    Attributes
    ----------
    history_ : deque of Batch
        One record per batch.
    alarms_ : deque of (int, Batch)
        The batches with an alarm, and their indices.
    changed_ : tuple of str
        Which of error, outside and shift differ from the reference, since an alarm.
    n_batches_ : int
        Number of batches.

    See Also
    --------
    Monitor : Checks single rows.

    Notes
    -----
    If the model has ``missing="model"``, it completes the rows of a batch before statistics are computed, and rows
    without any response are left out.

    The model is solved for every batch, so batches should have a few hundred rows, at least with many features.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import IncrementalPLS
    >>> from plstream.monitoring import DriftTracker
    >>> rng = np.random.default_rng(0)
    >>> tracker = DriftTracker(IncrementalPLS(n_components=2))
    >>> for i in range(60):
    ...     X = rng.normal(size=(50, 5))
    ...     y = X[:, 0] + 0.1 * rng.normal(size=50) if i < 50 else X[:, 1]
    ...     tracker = tracker.partial_fit(X, y)
    >>> [(i, batch.alarms) for i, batch in tracker.alarms_]
    [(50, ('error',))]
    >>> tracker.changed_
    ('error',)
    >>> print(tracker.summary())
    3,000 rows in 60 batches.
    ...
    Batch 50 (from row 2,500 on): the error rose to 1.66, 16.9 times what is usual for the reference.

    If the change is permanent, compare later batches with the current model:

    >>> tracker.set_reference().changed_
    ()
    """

    def __init__(self, model: Any, *, window: int = 30, threshold: float = 10.0, max_history: int = 1000) -> None:
        last = last_step(model)
        if not (isinstance(last, PLSBase) and hasattr(model, "partial_fit")):
            what = type(model if isinstance(last, PLSBase) else last).__name__
            raise TypeError(f"DriftTracker requires an IncrementalPLS or a StreamingPipeline with one, not {what}.")
        if window < WARM_UP:
            raise ValueError(f"window={window} is too small: use at least {WARM_UP} batches.")
        self.model: Any = model
        self.window, self.threshold, self.max_history = window, threshold, max_history
        self.history_: deque[Batch] = deque(maxlen=max_history)
        self.alarms_: deque[tuple[int, Batch]] = deque(maxlen=max_history)
        self.n_batches_ = 0
        self._sums = self._new_sums()
        self._reference: Snapshot | None = None
        self._reference_sums: dict[str, Cusum] = {}
        # Number of batches without an alarm since the search for a reference began.
        self._n_quiet = 0
        self._moments: Moments | None = None
        self._earlier: Float64Array | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.history_ = deque(self.history_, self.max_history)
        self.alarms_ = deque(self.alarms_, self.max_history)

    def __repr__(self) -> str:
        return f"DriftTracker({self.model!r}, threshold={self.threshold:g}), {self.n_batches_} batches"

    @property
    def changed_(self) -> tuple[str, ...]:
        """Which of error, outside and shift differ from the reference, since an alarm."""
        return tuple(name for name, total in self._reference_sums.items() if total.raised)

    def partial_fit(self, X: Any, y: Any, **parameters: Any) -> Self:
        """Test the model on a batch, then train it on the batch.

        A call that fails changes neither the tracker nor the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their responses.
        **parameters
            Further parameters of the model's ``partial_fit``.

        Returns
        -------
        self : DriftTracker
        """
        if isinstance(X, Source):
            raise TypeError("A tracker learns one batch at a time: pass the blocks of the source one after another.")
        things: tuple[Any, ...] = self, self.model
        with changed_at_once(*things) as (twin, model):
            # The batch modifies these, so the twin has copies.
            twin.model, twin.history_, twin.alarms_ = model, self.history_.copy(), self.alarms_.copy()
            twin._sums = {name: total.copy() for name, total in self._sums.items()}
            twin._reference_sums = {name: total.copy() for name, total in self._reference_sums.items()}
            twin._follow(X, y, parameters)
            twin.model = self.model
        return self

    def _follow(self, X: Any, y: Any, parameters: dict[str, Any]) -> None:
        """Test the model on a batch, and train it."""
        completes = self._last.missing == "model"
        if completes and not self._of_labels:
            X, y, parameters = _labelled(X, y, parameters)
            if not len(y):
                return
        if self._moments is None:
            self._moments = self._moments_of_model()
            if self._has_rows(_ROWS_PER_COMPONENT):
                self._take_reference()
        found, reference = _UNKNOWN, None
        if self._moments is not None and self._has_rows(1):
            treated = rows_for_last_step(self.model, X)
            present = Snapshot(self._last._solution(), self._moments, self.n_batches_)
            found = measured(self.model, present, treated, y)
            if self._reference is not None and self._is_comparable(present.solution):
                reference = measured(self.model, self._reference, treated, y)
        self.model.partial_fit(X, y, **parameters)
        last = self._last
        rows = validate_rows(last, rows_for_last_step(self.model, X), reset=False)
        weight = validate_weight(parameters.get("sample_weight"), rows.shape[0])
        Y = np.empty((rows.shape[0], 0)) if self._of_labels else columns_of(y)
        if completes:
            block = Block(rows, Y, weight)
            rows, Y, *_ = last._fitted.factor_model().completed_block(block, from_y=False)
        before = self._moments
        if before is None:
            before = Moments(rows.shape[1], Y.shape[1], forgetting=getattr(last, "forgetting", 1.0))
        self._moments = before.copy().update(rows, Y, weight)
        solution = last._solution() if self._moments.n_rows > 1 + Settings.of(self._last).n_components else None
        self._record(rows.shape[0], before, found, reference, solution)

    @property
    def _last(self) -> Any:
        """The model itself, or the last step of a pipeline."""
        return last_step(self.model)

    def set_reference(self) -> Self:
        """Use the current model as the reference, and the batches that follow as usual ones.

        Call it after an intended change, such as a new lamp, once the model has learnt enough new rows, or whenever
        the stream is known to be good.

        Returns
        -------
        self : DriftTracker
        """
        with changed_at_once(self) as (twin,):
            twin._take_reference()
        return self

    def _take_reference(self) -> None:
        if self._moments is None:
            self._moments = self._moments_of_model()
        if self._moments is None or not self._has_rows(1):
            raise ValueError("The model has learnt too few rows to be a reference: call partial_fit first.")
        self._reference = Snapshot(self._last._solution(), self._moments, self.n_batches_)
        self._reference_sums, self._sums = self._new_sums(fixed=True), self._new_sums()

    def summary(self) -> str:
        """Return a summary in a few sentences."""
        if not self.history_:
            return "No batch has been seen yet."
        last = self.history_[-1]
        lines = [f"{last.n_seen + last.n_rows:,} rows in {self.n_batches_:,} batches."]
        recent = [batch for batch in self.history_ if np.isfinite(batch.error)][-10:]
        if recent:
            kind = "wrong" if self._of_labels else "deviations of y"
            error = float(np.mean([batch.error for batch in recent]))
            outside = float(np.mean([batch.outside for batch in recent]))
            lines += [
                f"Error on new rows in the last {len(recent)} batches: {error:.3g} {kind}.",
                f"Residual of X (Q): {outside:.3g} times that of earlier rows.",
                f"The model retains {100 * last.retained_variance:.4g} % of the variance of X.",
            ]
        if np.isfinite(last.angle):
            lines.append(f"Its components have turned by {last.angle:.2g} degrees since batch {WARM_UP}.")
        if self._reference is None:
            lines.append(f"There is no reference yet: it is set after {self.window} batches without an alarm.")
        else:
            since = f"; changed since: {', '.join(self.changed_)}. If the change is permanent, call set_reference"
            after = f"The reference is the model after {self._reference.n_batches:,} batches"
            lines.append(f"{after}{since if self.changed_ else ''}.")
        if not self.alarms_:
            lines.append("No significant change was detected.")
        lines += [f"Batch {i} (from row {batch.n_seen:,} on): {', '.join(batch.reasons)}." for i, batch in self.alarms_]
        return "\n".join(lines)

    def _record(
        self,
        n_rows: int,
        before: Moments,
        measured: Measured,
        reference: Measured | None,
        solution: Solution | None,
    ) -> None:
        found = {} if measured is _UNKNOWN else self._judge(n_rows, before, measured, reference)
        angle, retained = np.nan, np.nan
        if solution is not None:
            retained = solution.retained_variance
            present = solution.x_rotations[:, : solution.n_components]
            if self._earlier is not None and present.size and self._earlier.size:
                angle = float(np.degrees(linalg.subspace_angles(present, self._earlier).max()))
            elif self.n_batches_ + 1 >= WARM_UP:
                self._earlier = present.copy()
        batch = Batch(n_rows, before.n_rows, *measured, angle, retained, reference, tuple(found), tuple(found.values()))
        self.history_.append(batch)
        if found:
            self.alarms_.append((self.n_batches_, batch))
        self.n_batches_ += 1
        if solution is not None:
            self._look_for_reference(solution, is_quiet=not found)

    def _judge(self, n_rows: int, before: Moments, measured: Measured, reference: Measured | None) -> dict[str, str]:
        """Return the statistics that have risen, and a sentence about each."""
        found = {}
        known = self._values(measured, n_rows, before)
        by_reference = {}
        if reference is not None and self._reference is not None:
            by_reference = self._values(reference, n_rows, self._reference.moments)
        for name in WATCHED:
            total = self._sums[name]
            if total.add(*known[name], self.threshold):
                found[name] = self._reason(name, measured, known[name][0], total)
            if name in by_reference:
                fixed = self._reference_sums[name]
                if fixed.add(*by_reference[name], self.threshold):
                    found[name] = self._reason(name, reference, by_reference[name][0], fixed)
                elif name in found:
                    # Report the same change only once.
                    fixed.hold(self.threshold)
            if name in found:
                self._sums[name] = self._new_sums()[name]
        return found

    def _values(self, measured: Measured, n_rows: int, moments: Moments) -> dict[str, tuple[float, float]]:
        """Return values to compare with those of other batches, and their weights.

        Errors and residuals are means over rows; a shift is the deviation of a mean.
        """
        n_known = moments.effective_rows
        error = np.arcsin(np.sqrt(measured.error)) if self._of_labels else _logarithm(measured.error)
        shift = measured.shift * np.sqrt(n_rows * n_known / (n_rows + n_known))
        return {
            "error": (float(error), n_rows),
            "outside": (_logarithm(measured.outside), n_rows),
            "shift": (_logarithm(shift), 1),
        }

    def _new_sums(self, *, fixed: bool = False) -> dict[str, Cusum]:
        size = _REFERENCE_WINDOWS * self.window if fixed else self.window
        sums = {name: Cusum(size, fixed) for name in WATCHED}
        if self._of_labels:
            sums["error"].least = _LEAST_VARIANCE_OF_SHARES
        return sums

    def _reason(self, name: str, measured: Any, value: float, total: Cusum) -> str:
        usual = "what is usual for the reference" if total.fixed else "what was usual"
        times = f"{np.exp(value - total.mean):.3g} times {usual}"
        if name == "error" and self._of_labels:
            times = f"where {np.sin(total.mean) ** 2:.3g} {usual.removeprefix('what ')}"
        since = f", since about batch {self.n_batches_ + 1 - total.n_rising}" if total.n_rising > 1 else ""
        parts = {
            "error": f"the error rose to {measured.error:.3g}, {times}",
            "outside": f"the residual of X (Q) rose to {times}",
            "shift": f"the mean of {measured.shifted_feature} is {measured.shift:.2g} deviations off, {times}",
        }
        return parts[name] + since

    def _look_for_reference(self, solution: Solution, *, is_quiet: bool) -> None:
        """Take the model as the reference after enough rows and enough batches without an alarm."""
        if self._is_comparable(solution) and (is_quiet or self._reference_sums["error"].is_ready):
            return
        # Batches after a change do not show what was usual before it.
        self._reference, self._reference_sums = None, {}
        self._n_quiet = self._n_quiet + 1 if is_quiet else 0
        if self._n_quiet >= self.window and self._has_rows(_ROWS_PER_COMPONENT):
            sums = self._sums
            self._take_reference()
            self._sums, self._n_quiet = sums, 0

    def _is_comparable(self, solution: Solution) -> bool:
        """Return whether there is a reference with all classes."""
        return self._reference is not None and len(self._reference.solution.y_mean) == len(solution.y_mean)

    @property
    def _of_labels(self) -> bool:
        return bool(is_classifier(self.model))

    def _has_rows(self, n_for_each: int) -> bool:
        """Return whether the model was trained on enough rows per component and for the mean, plus one."""
        n_rows = 0 if self._moments is None else self._moments.n_rows
        return n_rows > n_for_each * (1 + Settings.of(self._last).n_components)

    def _moments_of_model(self) -> Moments | None:
        """Return the moments of the model's training rows, or None if there are none."""
        if not self._last.__sklearn_is_fitted__():
            return None
        state = self._last._fitted.current()
        moments = Moments(state.shape[0], 0 if self._of_labels else state.shape[1], forgetting=state.forgetting)
        of_y = {"y_origin", "y_offset", "y_squares", "cross"} if self._of_labels else set()
        for name in vars(moments).keys() - of_y:
            setattr(moments, name, copy(getattr(state, name)))
        return moments


def _labelled(X: Any, y: Any, parameters: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Return a batch without rows that have no response."""
    target = np.asarray(y)
    if target.dtype.kind != "f":
        return X, y, parameters
    known = np.flatnonzero(np.logical_not(np.isnan(target.reshape(len(target), -1)).all(axis=1)))
    if len(known) == len(target):
        return X, y, parameters
    weight = parameters.get("sample_weight")
    if weight is not None:
        parameters = parameters | {"sample_weight": np.asarray(weight)[known]}
    return _safe_indexing(X, known), target[known], parameters


def _logarithm(value: float) -> float:
    return float(np.log(max(value, 1e-12)))
