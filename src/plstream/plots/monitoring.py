"""MonitoringDisplay: T2 and Q of rows, with limits; ContributionsDisplay: contributions of features to T2 or Q."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from .._core.types import Array, Float64Array
from ..monitoring import Monitor
from .display import LIMIT, SMALL, Display, label, legend, points, sampled_title
from .features import MOST_LINES, FeatureDisplay
from .interactive import PlotlyFigure, colour, dashed, figure, markers, symbol
from .names import axis_names
from .palette import CLASSES, FAINT, INK
from .thinning import sample, thin

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# If at most this many rows are above a limit, they are labelled with their numbers.
_MOST_NUMBERS = 8
# Size of a number, in inches.
_ROOM = 0.3, 0.12
# With values above this many times the limit, an axis is logarithmic: rows below the limit would have no room.
_FAR_ABOVE = 8.0


class MonitoringDisplay(Display):
    """T2 and Q of rows relative to their limits, against each other or over time.

    Rows to the right of the T2 limit are extreme within the model, and rows above the Q limit contain variation that
    the model does not describe.

    Parameters
    ----------
    t2, q : array-like of shape (n_samples,)
        The statistics.
    t2_limit, q_limit : float
        Their limits.
    level : float, default=None
        The level of the limits.
    rows : array-like of shape (n_samples,), default=None
        Row numbers. By default 0, 1 and so on.

    Attributes
    ----------
    ax_, figure_
        The axes of the last plot, and their figure.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import IncrementalPLS
    >>> from plstream.monitoring import Monitor
    >>> from plstream.plots import MonitoringDisplay
    >>> X = np.random.default_rng(0).normal(size=(500, 8))
    >>> monitor = Monitor(IncrementalPLS(2).partial_fit(X, X[:, 3]))
    >>> display = MonitoringDisplay.from_estimator(monitor, X, kind="time")
    >>> display.ax_.get_ylabel()
    'Relative to the limit'
    """

    def __init__(
        self, t2: Any, q: Any, t2_limit: float, q_limit: float, *, level: float | None = None, rows: Any = None
    ) -> None:
        self.t2, self.q = np.asarray(t2, dtype=np.float64), np.asarray(q, dtype=np.float64)
        self.t2_limit, self.q_limit, self.level = t2_limit, q_limit, level
        self.rows: Array = np.arange(len(self.t2)) if rows is None else np.asarray(rows)
        # Mask of the rows above a limit.
        self.alarm: NDArray[np.bool_] = (self.t2 > t2_limit) | (self.q > q_limit)
        # Positions of the limits, which are (nearly) zero for rows without variation, and statistics relative to them.
        both = ((self.t2, t2_limit), (self.q, q_limit))
        self._limits = [max(limit, 1e-9 * values.max(initial=0.0)) or 1.0 for values, limit in both]
        self._relative = self.t2 / self._limits[0], self.q / self._limits[1]

    @classmethod
    def from_estimator(cls, monitor: Any, X: Any, *, ax: Axes | None = None, draw: bool = True, **options: Any) -> Self:
        """Draw the statistics of rows.

        Parameters
        ----------
        monitor : Monitor
            The monitor, or a model with a streaming state, for which one is created.
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw in. None for a new figure.
        draw : bool, default=True
            Whether to draw with matplotlib.
        **options
            Further parameters of ``plot``.
        """
        watch = monitor if isinstance(monitor, Monitor) else Monitor(monitor)
        t2, q, _, _ = watch.check(X)
        display = cls(t2, q, watch.t2_limit_, watch.q_limit_, level=watch.level)
        return display.plot(ax, **options) if draw else display

    def plot(self, ax: Axes | None = None, *, kind: str = "chart", title: str = "") -> Self:
        """Draw with matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes to draw in. None for a new figure.
        kind : {"chart", "time"}, default="chart"
            Q against T2, or both, each relative to its limit, in the order of the rows.
        title : str, default=""
            Title of the plot. By default the number of rows above a limit.
        """
        if kind not in {"chart", "time"}:
            raise ValueError(f"kind must be 'chart' or 'time', not {kind!r}.")
        ax = self._begin(ax)
        title = title or f"{int(self.alarm.sum()):,} of {len(self.t2):,} rows above a limit"
        if kind == "time":
            self._draw_time(ax)
            label(ax, "Row", "Relative to the limit", title, legend(ax))
        else:
            drawn = self._drawn
            self._draw_chart(ax, drawn)
            label(ax, "T²", "Q", sampled_title(title, len(drawn), len(self.t2)))
        return self

    def plotly(self) -> PlotlyFigure:
        """Return the chart of Q against T2 as data for Plotly; row numbers appear on hover."""
        drawn = self._drawn
        t2, q, rows, alarm = self.t2[drawn], self.q[drawn], self.rows[drawn], self.alarm[drawn]
        data = [
            markers(t2[which], q[which], rows[which], "T2 %{x:.4g}<br>Q %{y:.4g}", name, look)
            for which, name, look in (
                (~alarm, "within limits", {"color": colour(0)}),
                (alarm, "beyond a limit", {"color": colour(1), "symbol": symbol(1), "size": 8}),
            )
            if which.any()
        ]
        t2_limit, q_limit = self._limits
        name = "limits" if self.level is None else f"limits, {self.level:.0%}"
        data += [
            dashed([t2_limit] * 2, [q.min(), max(q.max(), q_limit)], name),
            dashed([t2.min(), max(t2.max(), t2_limit)], [q_limit] * 2, ""),
        ]
        log = {"type": "log", "dtick": 1}
        scales = {
            axis: log for axis, values in zip(("xaxis", "yaxis"), self._relative, strict=True) if _is_wide(values)
        }
        return figure("T2, within the model", "Q, distance to the model", data, **scales)

    @property
    def _drawn(self) -> NDArray[np.intp]:
        """Indices of the rows of a chart."""
        return sample(np.maximum(*self._relative))

    def _draw_chart(self, ax: Axes, drawn: NDArray[np.intp]) -> None:
        t2_limit, q_limit = self._limits
        above = self.alarm[drawn]
        look = points(len(drawn))
        ax.scatter(self.t2[drawn][~above], self.q[drawn][~above], color=CLASSES[0], **look)
        look |= {"s": 1.6 * look["s"], "alpha": 0.95}
        ax.scatter(self.t2[drawn][above], self.q[drawn][above], color=CLASSES[1], marker="^", zorder=3, **look)
        ax.axvline(t2_limit, **LIMIT, gid="t2 limit")
        ax.axhline(q_limit, **LIMIT, gid="q limit")
        for which, values in zip("xy", self._relative, strict=True):
            _set_scale(ax, which, values)
        self._write_numbers(ax, drawn[above])
        if self.level is not None:
            text, look = f"{100 * self.level:g} %", {"ha": "right", "fontsize": SMALL - 0.5, "color": FAINT}
            ax.text(0.99, q_limit, text, transform=ax.get_yaxis_transform(), va="bottom", **look)
            ax.text(t2_limit, 0.99, text, transform=ax.get_xaxis_transform(), va="top", rotation=90, **look)

    def _write_numbers(self, ax: Axes, which: NDArray[np.intp]) -> None:
        """Label a few rows with their numbers, without overlaps."""
        if len(which) > _MOST_NUMBERS:
            return
        places = ax.transData.transform(np.column_stack([self.t2[which], self.q[which]])) / ax.figure.dpi
        look: dict[str, Any] = {"textcoords": "offset points", "fontsize": SMALL - 1, "color": INK}
        for i, k in enumerate(which):
            gaps = np.abs(places[:i] - places[i])
            if not np.any((gaps[:, 0] < _ROOM[0]) & (gaps[:, 1] < _ROOM[1])):
                ax.annotate(f"{self.rows[k]:,}", (self.t2[k], self.q[k]), xytext=(4, 3), **look)

    def _draw_time(self, ax: Axes) -> None:
        for i, (name, values) in enumerate(zip(("T²", "Q"), self._relative, strict=True)):
            width = 1 if len(self.t2) < 500 else 0.6
            ax.plot(*thin(self.rows, values), color=CLASSES[i], linewidth=width, label=name, alpha=0.9)
            above = np.flatnonzero(values > 1)
            above = above[sample(values[above])]
            look = {"color": CLASSES[i], "marker": "o^"[i], **points(max(200, len(above)))}
            ax.scatter(self.rows[above], values[above], zorder=3, **look)
        ax.axhline(1, **LIMIT, gid="limit")
        _set_scale(ax, "y", np.concatenate(self._relative))
        ax.margins(x=0.01)
        ax.locator_params(axis="x", nbins=8)
        ax.xaxis.set_major_formatter("{x:,.0f}")


def _is_wide(relative: Float64Array) -> bool:
    """Return whether an axis is logarithmic: some values are far above the limit, and none is zero."""
    return bool(relative.max(initial=0.0) > _FAR_ABOVE and relative.min() > 0)


def _set_scale(ax: Axes, which: str, relative: Float64Array) -> None:
    """Make an axis logarithmic if values are far apart; otherwise start it at zero."""
    if _is_wide(relative):
        getattr(ax, f"set_{which}scale")("log")
    else:
        getattr(ax, f"set_{which}lim")(**{"left" if which == "x" else "bottom": 0})


class ContributionsDisplay(FeatureDisplay):
    """The contribution of each feature to T2 or Q, one line per row.

    Parameters and attributes are those of :class:`FeatureDisplay`.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import IncrementalPLS
    >>> from plstream.monitoring import Monitor
    >>> from plstream.plots import ContributionsDisplay
    >>> X = np.random.default_rng(0).normal(size=(100, 6))
    >>> monitor = Monitor(IncrementalPLS(2).partial_fit(X, X[:, 0]))
    >>> display = ContributionsDisplay.from_estimator(monitor, X[:2])
    >>> list(display.values), display.ylabel
    (['row 0', 'row 1'], 'Contribution to Q')
    """

    @classmethod
    def from_estimator(
        cls,
        monitor: Any,
        X: Any,
        *,
        statistic: str = "q",
        x: Any = None,
        ax: Axes | None = None,
        draw: bool = True,
        **options: Any,
    ) -> Self:
        """Draw the contributions of some rows.

        Parameters
        ----------
        monitor : Monitor
            The monitor, or a model or pipeline, for which one is created.
        X : array-like of shape (n_samples, n_features)
            The rows, preferably a few. The first ten are drawn.
        statistic : {"q", "t2"}, default="q"
            The statistic.
        x : array-like of shape (n_features,), default=None
            Positions of the features, such as the wavelengths of spectra, or names. By default the feature names of the
            model.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw in. None for a new figure.
        draw : bool, default=True
            Whether to draw with matplotlib.
        **options
            Further parameters of ``plot``: ``xlabel`` and ``title``.
        """
        watch = monitor if isinstance(monitor, Monitor) else Monitor(monitor)
        parts = watch.contributions(X, statistic)[:MOST_LINES]
        values = {f"row {k}": part for k, part in enumerate(parts)}
        display = cls(values, axis_names(watch.model, x), f"Contribution to {'Q' if statistic == 'q' else 'T²'}")
        return display.plot(ax, **options) if draw else display
