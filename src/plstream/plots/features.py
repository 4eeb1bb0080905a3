"""LoadingsDisplay, CoefficientsDisplay and VIPDisplay: one value per feature.

Features whose names are numbers, or many features without names, are drawn as a spectrum; few features as bars; and
many unordered named features as points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from .._core.types import Array, Float64Array
from ..monitoring.pipelines import last_step
from ..selection import vip_scores
from .display import LIMIT, SMALL, WIDTH, Display, ink, label, legend, short
from .interactive import PlotlyFigure, colour, dashed, figure, numbers, plain, tick_labels
from .names import are_numbered, axis_names, component_columns, distinct, positions, response_names, weights_of
from .palette import CLASSES, FAINT, INK
from .thinning import INTERACTIVE_POINTS, LINE_BINS, interactive_bins, thin

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LINES = 10
# More bars than this have no room for their names.
_MOST_BARS = 30
_BAR_HEIGHT = 0.24
# Least distance of two labelled features, as a share of the axis.
_LABEL_SHARE = 0.05
# Lines that an interactive figure shows initially. A click on a name shows or hides a line.
SHOWN_AT_FIRST = 3
_DASHES = ("-", "--", ":", "-.")


class FeatureDisplay(Display):
    """One value per feature, in one or more lines; the base class of the displays below.

    Parameters
    ----------
    values : dict of str to ndarray of shape (n_features,)
        The values, by the name of the line in the legend.
    feature_names : array-like of shape (n_features,)
        Names of the features. If all are numbers in order, with or without a unit, they are the positions of features.
    ylabel : str
        Name of the values.

    Attributes
    ----------
    axis : str
        Quantity of the numbers in the names, such as "Wavelength, nm"; "" if the names are not numbers.
    positions : ndarray of shape (n_features,)
        Positions of the features.
    ax_, figure_
        The axes of the last plot, and their figure.

    Examples
    --------
    >>> from plstream.plots import FeatureDisplay
    >>> display = FeatureDisplay({"mean": [0.1, 0.4, 0.2]}, ["1100 nm", "1102 nm", "1104 nm"], "Absorbance").plot()
    >>> display.axis
    'Wavelength, nm'
    """

    def __init__(self, values: Mapping[str, Float64Array], feature_names: Any, ylabel: str) -> None:
        self.values = {name: np.asarray(value, dtype=np.float64) for name, value in values.items()}
        self.feature_names: Array = np.asarray(feature_names, dtype=object)
        self.axis, self.positions = positions(self.feature_names)
        self.ylabel = ylabel
        # Features are ordered if their names are numbers, or they have no names.
        self._has_line = bool(self.axis) or are_numbered(self.feature_names)
        self._has_bars = not self.axis and len(self.feature_names) <= _MOST_BARS

    def plot(self, ax: Axes | None = None, *, xlabel: str | None = None, title: str = "") -> Self:
        """Draw with matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes to draw in. None for a new figure.
        xlabel : str, default=None
            What the features are, such as "Wavelength, nm". By default it is guessed from their names.
        title : str, default=""
            Title of the plot.
        """
        if self._has_bars:
            height = 0.9 + _BAR_HEIGHT * len(self.feature_names) * max(1.0, 0.6 * len(self.values))
            self._draw_bars(self._begin(ax, (WIDTH, height)))
            labels = self.ylabel, xlabel or ""
        else:
            self._draw_spectrum(self._begin(ax))
            labels = xlabel or self.axis or "Feature", self.ylabel
        above = legend(self.ax_) if len(self.values) > 1 else 0
        label(self.ax_, *labels, title, above)
        return self

    def plotly(self) -> PlotlyFigure:
        """Return the figure as data for Plotly; the names of features appear on hover."""
        data = [self._trace(i, name, value) for i, (name, value) in enumerate(self.values.items())]
        names = list(map(str, self.feature_names))
        if self._has_bars:
            angle = -45 if max(map(len, names)) > 3 else 0
            ticks = {"tickvals": list(range(len(names))), "ticktext": tick_labels(names), "tickangle": angle}
            return figure("", self.ylabel, data, xaxis=ticks)
        is_falling = self.positions[0] > self.positions[-1]
        direction = {"autorange": "reversed"} if is_falling else {}
        return figure(self.axis or "Feature number", self.ylabel, data, xaxis=direction)

    @property
    def is_thinned(self) -> bool:
        """Whether Plotly's figure has the extremes of bins instead of all features."""
        return len(self.feature_names) > 2 * interactive_bins(len(self.values))

    def _draw_spectrum(self, ax: Axes) -> None:
        ax.axhline(0, color=FAINT, linewidth=0.8)
        at = self.positions
        for i, (name, value) in enumerate(self.values.items()):
            look: dict[str, Any] = {
                "color": CLASSES[i % len(CLASSES)],
                "linestyle": _DASHES[i // len(CLASSES) % len(_DASHES)],
            }
            look |= {"linewidth": 1.4 if len(at) < 2 * LINE_BINS else 0.7}
            if not self._has_line:
                look |= {"linestyle": "none", "marker": ".", "markersize": 4}
            ax.plot(*thin(at, value), label=short(name), **look)
        ax.margins(x=0.01)
        ax.locator_params(axis="x", nbins=8)
        if len(at) > 10_000:
            ax.xaxis.set_major_formatter("{x:,.0f}")

    def _draw_bars(self, ax: Axes) -> None:
        n, k = len(self.feature_names), len(self.values)
        height = 0.8 / k
        for i, (name, value) in enumerate(self.values.items()):
            places = np.arange(n) + (i - (k - 1) / 2) * height
            ax.barh(places, value, height, color=CLASSES[i % len(CLASSES)], label=short(name))
        ax.axvline(0, color=FAINT, linewidth=0.8)
        ax.locator_params(axis="x", nbins=6)
        ax.set_yticks(range(n), [short(name) for name in self.feature_names])
        ax.set_ylim(n - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
        ax.grid(visible=False, axis="y")
        ax.spines["left"].set_visible(False)

    def _trace(self, i: int, name: str, value: Float64Array) -> dict[str, Any]:
        at, _ = thin(np.arange(len(value)), value, interactive_bins(len(self.values)))
        trace = self._named_points(at, value) | {
            "name": plain(name),
            "visible": True if i < SHOWN_AT_FIRST else "legendonly",
        }
        if self._has_bars:
            return trace | {"type": "bar", "textposition": "none", "marker": {"color": colour(i)}}
        if not self._has_line:
            return trace | {"type": "scatter", "mode": "markers", "marker": {"color": colour(i), "size": 5}}
        return trace | {"type": "scatter", "mode": "lines", "line": {"color": colour(i), "width": 1.6}}

    def _named_points(self, at: NDArray[np.intp], value: Float64Array) -> dict[str, Any]:
        return {
            "x": numbers(self.positions[at]),
            "y": numbers(value[at]),
            "text": [plain(self.feature_names[k]) for k in at],
            "hovertemplate": "%{text}<br>%{y:.4g}",
        }


class LoadingsDisplay(FeatureDisplay):
    """Loadings, weights or rotations of X, one line per component.

    Parameters and attributes are those of :class:`FeatureDisplay`.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import IncrementalPLS
    >>> from plstream.plots import LoadingsDisplay
    >>> X = np.random.default_rng(0).normal(size=(50, 100))
    >>> display = LoadingsDisplay.from_estimator(IncrementalPLS(2).fit(X, X[:, 0]))
    >>> [line.get_label() for line in display.ax_.lines[1:]]
    ['component 1', 'component 2']
    """

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        components: Sequence[int] | None = None,
        kind: str = "loadings",
        x: Any = None,
        ax: Axes | None = None,
        draw: bool = True,
        **options: Any,
    ) -> Self:
        """Draw the loadings of a fitted model.

        Parameters
        ----------
        model : IncrementalPLS or another with ``x_loadings_``
            The model.
        components : sequence of int, default=None
            Components to draw, counted from one. By default the first three.
        kind : {"loadings", "weights", "rotations"}, default="loadings"
            What to draw. The weights of CCIPCA and IncrementalLDA are their directions.
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
        if kind not in {"loadings", "weights", "rotations"}:
            raise ValueError(f"kind must be 'loadings', 'weights' or 'rotations', not {kind!r}.")
        names = axis_names(model, x)
        model = last_step(model)
        matrix = weights_of(model) if kind == "weights" else None
        matrix = getattr(model, f"x_{kind}_") if matrix is None else matrix
        chosen = range(1, 1 + min(3, matrix.shape[1])) if components is None else components
        columns = component_columns(chosen, matrix.shape[1])
        values = {f"component {j + 1}": matrix[:, j] for j in columns}
        ylabel = f"{kind.capitalize()}, {next(iter(values))}" if len(values) == 1 else kind.capitalize()
        display = cls(values, names, ylabel)
        return display.plot(ax, **options) if draw else display


class CoefficientsDisplay(FeatureDisplay):
    """Coefficients of a regression, one line per response.

    Parameters and attributes are those of :class:`FeatureDisplay`.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import IncrementalPLS
    >>> from plstream.plots import CoefficientsDisplay
    >>> X = np.random.default_rng(0).normal(size=(50, 100))
    >>> display = CoefficientsDisplay.from_estimator(IncrementalPLS(2).fit(X, X[:, 0]))
    >>> display.ax_.get_ylabel()
    'Coefficient'
    """

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        targets: Sequence[Any] | None = None,
        scaled: bool | str = False,
        x: Any = None,
        ax: Axes | None = None,
        draw: bool = True,
        **options: Any,
    ) -> Self:
        """Draw the coefficients of a fitted model.

        Parameters
        ----------
        model : IncrementalPLS or another with ``coef_``
            The model.
        targets : sequence, default=None
            Names of the responses, of which the first ten are drawn. By default those of y in ``fit``, class labels, or
            numbers.
        scaled : bool or "features", default=False
            Whether to draw the coefficients of scaled features and responses, or of scaled features alone, which are
            comparable even if units differ.
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
        names = axis_names(model, x)
        model = last_step(model)
        coefficients = np.atleast_2d(model.coef_)
        if scaled:
            if not hasattr(model, "x_scale_"):
                raise TypeError(f"{type(model).__name__} does not scale features: leave out scaled=True.")
            coefficients = coefficients * model.x_scale_
            if scaled != "features":
                coefficients = coefficients / model.y_scale_[:, None]
        responses = response_names(model, len(coefficients)) if targets is None else distinct(targets)
        values = dict(zip(responses, coefficients[:MOST_LINES], strict=False))
        ylabel = "Scaled coefficient" if scaled else "Coefficient"
        if len(values) < len(responses):
            ylabel += f" (the first {len(values)} of {len(responses)})"
        display = cls(values, names, ylabel)
        return display.plot(ax, **options) if draw else display


class VIPDisplay(FeatureDisplay):
    """Variable importance in projection, with a threshold at one, and the names of the highest features.

    Parameters
    ----------
    vip : ndarray of shape (n_features,)
        The scores.
    feature_names : array-like of shape (n_features,)
        Names of the features. If all are numbers in order, with or without a unit, they are the positions of features.
    name : str, default="VIP"
        Name of the scores.
    kept : ndarray of shape (n_features,), default=None
        Which features a selector keeps, marked in Plotly's figure.

    Attributes are those of :class:`FeatureDisplay`.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import IncrementalPLS
    >>> from plstream.plots import VIPDisplay
    >>> X = np.random.default_rng(0).normal(size=(50, 8))
    >>> display = VIPDisplay.from_estimator(IncrementalPLS(2).fit(X, X[:, 3]))
    >>> display.ax_.get_yticklabels()[0].get_text()  # In the order of importance.
    'x3'
    """

    def __init__(self, vip: Float64Array, feature_names: Any, *, name: str = "VIP", kept: Any = None) -> None:
        super().__init__({name: vip}, feature_names, name)
        self.kept = kept

    @classmethod
    def from_estimator(
        cls, model: Any, *, x: Any = None, ax: Axes | None = None, draw: bool = True, **options: Any
    ) -> Self:
        """Draw the scores of a fitted model.

        Parameters
        ----------
        model : object
            A model accepted by :func:`plstream.vip_scores`.
        x : array-like of shape (n_features,), default=None
            Positions of the features, such as the wavelengths of spectra, or names. By default the feature names of the
            model.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw in. None for a new figure.
        draw : bool, default=True
            Whether to draw with matplotlib.
        **options
            Further parameters of ``plot``.
        """
        display = cls(vip_scores(last_step(model)), axis_names(model, x))
        return display.plot(ax, **options) if draw else display

    def plot(
        self,
        ax: Axes | None = None,
        *,
        n_named: int = 5,
        threshold: float = 1.0,
        xlabel: str | None = None,
        title: str = "",
    ) -> Self:
        """Draw with matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes to draw in. None for a new figure.
        n_named : int, default=5
            Number of highest features to name in a spectrum; those too close to a higher one are not named.
        threshold : float, default=1.0
            Position of the line above which features count as important.
        xlabel : str, default=None
            What the features are, such as "Wavelength, nm". By default it is guessed from their names.
        title : str, default=""
            Title of the plot.
        """
        (vip,) = self.values.values()
        order = np.argsort(-vip, kind="stable")
        if self._has_bars:
            # From the highest to the lowest.
            bars = FeatureDisplay({self.ylabel: vip[order]}, self.feature_names[order], self.ylabel)
            bars.plot(ax, xlabel=xlabel, title=title)
            self.ax_, self.figure_ = bars.ax_, bars.figure_
            self.ax_.axvline(threshold, **LIMIT, gid="threshold")
            return self
        super().plot(ax, xlabel=xlabel, title=title)
        self.ax_.axhline(threshold, **LIMIT, gid="threshold")
        self.ax_.set_ylim(bottom=0)
        around = np.pad(vip, 1, constant_values=-np.inf)
        is_peak = (vip >= around[:-2]) & (vip >= around[2:])
        peaks = order[(is_peak & (vip > threshold))[order]]
        # Vertical names above peaks take space.
        low, high = self.ax_.get_ylim()
        self.ax_.set_ylim(low, high + 0.25 * (high - low))
        upright: dict[str, Any] = {"ha": "center", "va": "bottom", "rotation": 90, "fontsize": SMALL - 1, "color": INK}
        for i in apart(peaks, self.positions, n_named):
            name, place = short(self.feature_names[i], 14), (self.positions[i], vip[i])
            self.ax_.annotate(name, place, xytext=(0, 3), textcoords="offset points", **upright)
        note = f"{int(np.sum(vip > threshold)):,} of {len(vip):,} above {threshold:g}"
        look: dict[str, Any] = {"ha": "right", "va": "bottom", "fontsize": SMALL, "color": ink(self.ax_)}
        self.ax_.text(1.0, 1.01, note, transform=self.ax_.transAxes, **look)
        return self

    def plotly(self, *, threshold: float | None = 1.0) -> PlotlyFigure:
        """Return the figure as data for Plotly, with a line at the threshold, if any, and kept features marked."""
        data, layout = super().plotly()
        (vip,) = self.values.values()
        if self.kept is not None:
            at = np.flatnonzero(self.kept)
            at = at if len(at) <= INTERACTIVE_POINTS else at[np.argsort(-vip[at])[:INTERACTIVE_POINTS]]
            look = {"type": "scatter", "mode": "markers", "marker": {"color": colour(1), "size": 5}}
            data.append({"name": "kept", **self._named_points(at, vip), **look})
        if threshold is not None:
            ends = (-0.5, len(vip) - 0.5) if self._has_bars else self.positions[[0, -1]]
            data.append(dashed(ends, [threshold] * 2, f"{self.ylabel} of {threshold:g}"))
        return PlotlyFigure(data, {**layout, "showlegend": len(data) > 1})


def apart(which: NDArray[np.intp], at: Float64Array, n: int) -> NDArray[np.intp]:
    """Return the first n features, skipping those too close to an earlier one to be labelled."""
    gap = _LABEL_SHARE * float(np.ptp(at))
    kept: list[int] = []
    for i in which:
        if len(kept) < n and all(abs(at[i] - at[j]) >= gap for j in kept):
            kept.append(int(i))
    return np.array(kept, dtype=np.intp)
