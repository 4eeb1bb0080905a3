"""Monitor: which rows differ from the training samples of a PLS model, and in which features."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from .. import estimators
from .._core.errors import counted
from .._core.schema import Boolean, Choice, Number, Numbers, Object, OrNone, declared, stored
from .._core.tiles import as_dense, require_finite
from .._core.types import Array, Float64Array, Rows
from ..estimators.base import PLSBase
from ..estimators.settings import Settings
from ..rows import by_blocks, is_collection
from ..solvers.completion import FactorModel, Gaps, has_gaps
from ..solvers.solution import Solution
from ..states import Gram, Sketch
from .limits import Q_LIMITS, Traces, divisor_of, matrix_of, residual_traces, residuals_of, t2_limit
from .pipelines import feature_names, last_record, last_step, rows_for_last_step, snapshot

# Features named as the causes of an alarm.
_N_LARGEST = 3
MONITORED = declared(estimators, having="vip_")


def is_monitored(model: Any) -> bool:
    """Return whether a model in a file is a PLS model, or a pipeline that ends with one."""
    return last_record(model).cls in MONITORED


class Checked(NamedTuple):
    """Result of a check, one entry per row."""

    t2: Float64Array
    """Distances within the model."""
    q: Float64Array
    """Squared distances to the model."""
    t2_alarm: NDArray[np.bool_]
    """Whether T2 is above its limit."""
    q_alarm: NDArray[np.bool_]
    """Whether Q is above its limit."""

    @property
    def alarm(self) -> NDArray[np.bool_]:
        """Whether either is above its limit."""
        return self.t2_alarm | self.q_alarm

    def __repr__(self) -> str:
        n, t2, q = (int(alarm.sum()) for alarm in (self.alarm, self.t2_alarm, self.q_alarm))
        return f"<Checked: {n:,} of {counted(len(self.t2), 'row')} above a limit, {t2:,} of T2 and {q:,} of Q>"


@stored(
    {
        "mean": Numbers("a?"),
        "whitening": Numbers("a?", "a?", any_order=True),
        "n_rows": Number(0),
        "residuals": Object(Traces),
    }
)
class Normal(NamedTuple):
    """The distribution of normal rows."""

    mean: Float64Array
    """Mean of their scores."""
    whitening: Float64Array
    """Matrix that whitens the centred scores."""
    n_rows: float
    """Number of rows these are estimated from."""
    residuals: Traces
    """Traces of the covariance of the residuals of new rows."""

    def scaled(self, scores: Float64Array) -> Float64Array:
        """Return scores with a mean of zero and a covariance of one."""
        return np.asarray((scores - self.mean) @ self.whitening)


@stored(
    {
        "model": Object(*MONITORED, estimators.StreamingPipeline),
        "level": Number(0, 1),
        "q_limit": Choice(*Q_LIMITS),
        "held_out": Boolean(),
        "_solution": Object(Solution, m="m", a="a?"),
        "_gaps": OrNone(Object(Gaps, m="m", n="n?")),
        "_n_rows": Number(0),
        "_unit": Number(0),
        # Gram matrix of scores, Q and its square.
        "_reference": OrNone(Object(Gram, m="a+2")),
        "_normal": OrNone(Object(Normal, a="a?")),
    },
    {
        "the model is a PLS model": lambda its: is_monitored(its.model),
        "the model has the same number of features": lambda its: (
            last_record(its.model).sizes.get("m") == its.sizes["m"]
        ),
    },
)
class Monitor:
    r"""Hotelling's T2 and Q of new rows, with limits: statistical process control of X.

    With rows z, centred and scaled as in the model, scores :math:`t = R^T z` and residuals :math:`e = z - P t`,

    .. math::
        T^2 = (t - \bar t)^T S_t^{-1} (t - \bar t), \quad Q = e^T e .

    T2 is large for rows that are extreme within the model, and Q for rows that vary in directions outside of it, for
    example due to a failed sensor or a new ingredient. A constant column that begins to vary counts in Q, unscaled.

    The distribution of normal rows is estimated from the state of the model, without reading any row again. After an
    exact ``fit`` (``solver="multipass"``), the limit of Q is approximate; for an accurate one, call ``partial_fit``
    with reference rows, once or repeatedly. Reference rows that are not training samples are also better if the model
    was trained on few rows: see ``docs/monitoring.md``.

    Parameters
    ----------
    model : IncrementalPLS, or a pipeline that ends with one
        A fitted model. Later training does not change the monitor. The features of a pipeline are those of its last
        step, and rows pass through the steps before it.
    level : float, default=0.99
        Share of normal rows below each limit.
    q_limit : {"pearson", "jackson-mudholkar", "box"}, default="pearson"
        How the limit of Q is computed.
    held_out : bool, default=True
        Whether reference rows were held out from training. Training rows are closer to the model than new rows; if they
        are used as reference rows, set False to correct the limit of Q.

    Attributes
    ----------
    t2_limit_, q_limit_ : float
        The limits.
    n_reference_rows_ : int
        Number of reference rows.

    Notes
    -----
    Limits assume normal distributions. The limit of T2 is then exact if ``partial_fit`` has been called with held-out
    rows. The limit of Q is an approximation, from the mean and the variance of Q (Box), or from its first three moments
    (Jackson and Mudholkar). For the state of a model, these follow from the covariance of residuals, corrected for the
    degrees of freedom of means and components and for the spread of eigenvalues in small samples; for reference rows,
    they are the moments of Q itself, whether or not residuals are normal.

    References
    ----------
    J. E. Jackson and G. S. Mudholkar, "Control procedures for residuals associated with principal component analysis",
    Technometrics 21, 1979.

    C. F. Alcala and S. J. Qin, "Analysis and generalization of fault diagnosis methods for process monitoring", Journal
    of Process Control 21, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import IncrementalPLS
    >>> from plstream.monitoring import Monitor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3)) @ rng.normal(size=(3, 20)) + 0.1 * rng.normal(size=(2000, 20))
    >>> y = X[:, 0] + X[:, 1]
    >>> model = IncrementalPLS(n_components=3).partial_fit(X[:1000], y[:1000])
    >>> monitor = Monitor(model)
    >>> monitor.check(X[1000:])
    <Checked: 17 of 1,000 rows above a limit, 6 of T2 and 11 of Q>
    >>> fault = X[1000:1001].copy()
    >>> fault[0, 7] += 2
    >>> monitor.check(fault).alarm
    array([ True])
    >>> int(monitor.contributions(fault, "q").argmax())
    7
    """

    def __init__(self, model: Any, *, level: float = 0.99, q_limit: str = "pearson", held_out: bool = True) -> None:
        self.model: Any = snapshot(model)
        last = last_step(self.model)
        if not isinstance(last, PLSBase):
            raise TypeError(f"Monitor requires a fitted IncrementalPLS, not {type(last).__name__}.")
        if not 0 < level < 1:
            raise ValueError(f"level must be a share between 0 and 1, not {level!r}.")
        if q_limit not in Q_LIMITS:
            raise ValueError(f"q_limit must be one of {', '.join(map(repr, Q_LIMITS))}, not {q_limit!r}.")
        self.level, self.q_limit, self.held_out = level, q_limit, held_out
        self._solution: Solution = last._solution()
        self._n_rows = float(last.n_samples_seen_)
        self._gaps: Gaps | None = None
        if last.missing == "model":
            shape = len(self._solution.x_mean), len(self._solution.y_mean)
            self._gaps = last._fitted.missing or Gaps.none(shape, self._n_rows)
        # Near the variance of all features: squares of Q must not overflow.
        self._unit = self._solution.x_total / max(self._n_rows, 1.0) or 1.0
        self._reference: Gram | None = None
        self._normal = self._from_state(last._fitted.streamed(Settings.of(last)).current().settle())

    def __repr__(self) -> str:
        return f"Monitor({self.model!r}, level={self.level:g})"

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Estimate the distribution of normal rows from reference rows, in one or more calls.

        The first call replaces the estimate from the state of the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.
        y : object
            Ignored.

        Returns
        -------
        self : Monitor
        """
        if is_collection(X):
            # It would be read lazily, or never.
            raise TypeError("Reference rows cannot be a Dask collection: pass its computed blocks, one after another.")
        n_columns = self._solution.n_components + 2
        reference = Gram(n_columns, 0) if self._reference is None else self._reference.copy()

        def absorb(rows: Rows) -> Array:
            scores, q = self._scores_and_q(rows)
            q = q / self._unit
            # The third moment of Q is known from the covariance with its square.
            reference.update(np.column_stack([scores, q, q * q]), np.empty((len(q), 0)))
            return np.empty(0)

        self._by_blocks(X, absorb)
        # Set both at once, because an interrupt may occur between two statements.
        vars(self).update(_reference=reference, _normal=None)
        return self

    def t2(self, X: Any) -> Float64Array:
        """Return T2 of every row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.

        Returns
        -------
        t2 : ndarray of shape (n_samples,)
        """
        return self._statistics(X)[:, 0]

    def q(self, X: Any) -> Float64Array:
        """Return Q of every row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.

        Returns
        -------
        q : ndarray of shape (n_samples,)
        """
        return self._by_blocks(X, lambda rows: self._scores_and_q(rows)[1])

    def check(self, X: Any) -> Checked:
        """Return T2 and Q of every row, and whether they exceed their limits.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.

        Returns
        -------
        checked : Checked
            With the arrays ``t2``, ``q``, ``t2_alarm``, ``q_alarm``, and ``alarm`` for either.
        """
        t2, q = self._statistics(X).T
        return Checked(t2, q, t2 > self.t2_limit_, q > self.q_limit_)

    def contributions(self, X: Any, statistic: str = "q") -> Float64Array:
        r"""Return the contribution of each feature to T2 or Q of every row.

        For Q these are the squares :math:`e_j^2` of the residuals. For T2 they are

        .. math::
            (z - P \bar t)_j \, (R S_t^{-1} (t - \bar t))_j ,

        the deviation of the feature times the gradient of T2: the partial decomposition of Alcala and Qin. Both
        sum to the statistic. Contributions to T2 are negative for features that bring the row closer to the mean.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.
        statistic : {"q", "t2"}, default="q"
            Which statistic.

        Returns
        -------
        contributions : ndarray of shape (n_samples, n_features)
            The columns correspond to ``feature_names_``.
        """
        if statistic not in {"t2", "q"}:
            raise ValueError(f"statistic must be 't2' or 'q', not {statistic!r}.")
        k = self._solution.n_components
        R, P = self._solution.x_rotations[:, :k], self._solution.x_loadings[:, :k]

        def part(scores: Float64Array, e: Float64Array) -> Float64Array:
            if statistic == "q":
                return e**2
            known = self._known()
            directions = (R @ known.whitening).T
            return np.asarray((e + (scores - known.mean) @ P.T) * (known.scaled(scores) @ directions))

        def parts(rows: Rows) -> Float64Array:
            with np.errstate(over="ignore", invalid="ignore"):
                # Contributions to T2 are those of the completed row.
                tiles = self._residuals(rows, completed=statistic == "t2")
                return _finite(np.concatenate([part(*tile) for tile in tiles]), rows)

        return self._by_blocks(X, parts)

    @property
    def t2_limit_(self) -> float:
        """The limit of T2."""
        return t2_limit(self.level, self._solution.n_components, self._known().n_rows)

    @property
    def q_limit_(self) -> float:
        """The limit of Q."""
        return Q_LIMITS[self.q_limit](self.level, self._known().residuals)

    @property
    def n_reference_rows_(self) -> int:
        """Number of reference rows."""
        return 0 if self._reference is None else self._reference.n_rows

    @property
    def feature_names_(self) -> Array:
        """Feature names; x0, x1 and so on if the model has none."""
        return feature_names(self.model)

    def _by_blocks(self, X: Any, function: Callable[[Rows], Array]) -> Array:
        """Apply a function to rows as passed to the last step of the model."""
        return by_blocks(last_step(self.model), rows_for_last_step(self.model, X), function)

    def _residuals(self, rows: Rows, *, completed: bool = False) -> Iterator[tuple[Float64Array, Float64Array]]:
        """Yield the scores and residuals of a few rows at a time; those of missing cells are zero, or completed."""
        if self._gaps is None or not has_gaps(rows):
            yield from residuals_of(self._solution, rows)
            return
        start = 0
        for scores, e in residuals_of(self._solution, FactorModel.of(self._solution, self._gaps).completed(rows)):
            if not completed:
                e[np.isnan(as_dense(rows[start : start + len(e)]))] = 0.0
            start += len(e)
            yield scores, e

    def _scores_and_q(self, rows: Rows) -> tuple[Float64Array, Float64Array]:
        with np.errstate(over="ignore", invalid="ignore"):
            parts = [(scores, np.einsum("ij,ij->i", e, e)) for scores, e in self._residuals(rows)]
        scores, q = (np.concatenate(part) for part in zip(*parts, strict=True))
        return scores, _finite(q, rows)

    def _statistics(self, X: Any) -> Float64Array:
        """Return T2 and Q of every row, from one read."""
        known = self._known()

        def both(rows: Rows) -> Float64Array:
            scores, q = self._scores_and_q(rows)
            return np.column_stack([np.square(known.scaled(scores)).sum(axis=1), q])

        return self._by_blocks(X, both)

    def _known(self) -> Normal:
        """Return the distribution of normal rows."""
        if self._normal is None:
            if self._reference is None:
                raise ValueError(
                    "The model has learnt too few rows to estimate limits: call partial_fit with reference rows."
                )
            self._normal = self._from_reference(self._reference)
        return self._normal

    def _from_state(self, state: Gram | Sketch) -> Normal | None:
        """Return the distribution from the state of the model, or None if it was trained on too few rows."""
        n, c = state.effective_rows, self._solution.n_components
        dof = n - 1 - c
        if dof <= 2:
            return None
        traces = residual_traces(self._solution, state, cube=self.q_limit != "box")
        # Means and loadings, which are regressions on scores, were fitted to these rows and not to new ones.
        residuals = traces.scaled((n - 1) / dof).unbiased(dof).scaled(1 + (c + 1) / n)
        if self._gaps is not None:
            residuals = residuals.scaled(self._variance_of_observed())
        deviations = np.sqrt(self._solution.factors.score_squares[:c] / divisor_of(state))
        return Normal(np.zeros(c), np.diag(1 / deviations), n, residuals)

    def _variance_of_observed(self) -> float:
        """Return the ratio of Q of complete rows to that of training rows, whose completed cells contribute nothing.

        In addition, the c scores are fitted to fewer cells of a row, so their residuals are smaller.
        """
        assert self._gaps is not None
        solution, k = self._solution, self._solution.n_components
        loadings = solution.x_loadings[:, :k] * np.sqrt(solution.factors.score_squares[:k])
        left = np.maximum(solution.x_squares - np.einsum("ij,ij->i", loadings, loadings), 0.0)
        share = self._gaps.share[: len(left)]
        if not left.sum() > 0:
            return 1.0
        m = np.count_nonzero(left)
        fitted = max(1 - k / max(m * float(share.mean()), 1.0), 0.1)
        return float((left / share).sum() / left.sum()) * max(1 - k / m, 0.1) / fitted

    def _from_reference(self, reference: Gram) -> Normal:
        """Return the distribution from reference rows."""
        n, c = reference.n_rows, self._solution.n_components
        if n < c + 2:
            raise ValueError(f"{n} reference rows are too few for {c} components: pass more rows to partial_fit.")
        covariance = matrix_of(reference) / (n - 1)
        try:
            root = linalg.cholesky(covariance[:c, :c], lower=True)
        except linalg.LinAlgError:
            raise ValueError("The scores of the reference rows are collinear: pass more rows to partial_fit.") from None
        mean, variance = reference.x_mean[c], covariance[c, c]
        third = covariance[c, c + 1] - 2 * mean * variance
        # The moments of a sum of squares of normal residuals.
        residuals = Traces(mean, variance / 2, third / 8, self._unit)
        if not self.held_out:
            share = min((c + 1) / self._n_rows, 0.9)
            residuals = residuals.scaled((1 + share) / (1 - share))
        # Not scipy's triangular solver, which does not support empty matrices before 1.14.
        whitening = np.linalg.solve(root, np.eye(c)).T
        return Normal(reference.x_mean[:c], whitening, float(n), residuals)


def largest_contributions(monitor: Monitor, row: Array, statistic: str) -> list[tuple[int, float]]:
    """Return the three features that contribute most to T2 or Q of a row, and their shares."""
    parts = monitor.contributions(row[None], statistic)[0]
    most = np.argsort(-parts, kind="stable")[:_N_LARGEST]
    # Contributions to T2 may be negative; the others then sum to more than T2.
    total = np.abs(parts).sum()
    return [(int(k), float(parts[k] / total)) for k in most if parts[k] > 0]


def _finite(result: Float64Array, rows: Rows) -> Float64Array:
    """Return a result; raise ValueError if it is not finite."""
    if not np.isfinite(result).all():
        require_finite("X", rows)
        raise ValueError("X has values so far from the model that their squares overflow float64: scale the features.")
    return result
