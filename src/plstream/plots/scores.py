"""ScoresDisplay: rows in the plane of two components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length

from .._core.types import Array, Float64Array
from ..monitoring.limits import score_variances, t2_limit
from ..monitoring.pipelines import last_step, rows_for_last_step
from .display import LIMIT, SMALL, Display, ink, label, legend, points, sampled_title, short
from .interactive import PlotlyFigure, colour, dashed, figure, markers, numbers, plain, symbol
from .names import component_columns
from .palette import CLASS_MARKERS, CLASSES, FAINT, SCALE
from .thinning import sample

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Number of distinguishable classes: by colour and marker, and in a figure that names them on hover.
_MOST_CLASSES, _MOST_INTERACTIVE = 10, 20
_OTHERS = "others"
_MISSING = "no value"


class ScoresDisplay(Display):
    """Scores of rows on two components, coloured by class or value, with Hotelling's ellipse.

    Rows outside the ellipse are extreme within the model. With one component, scores are drawn in the order of the
    rows, and the ellipse is a band. With more than 10,000 rows, only the outermost and a random sample are drawn, and
    the title says so.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, 1) or (n_samples, 2)
        The scores.
    y : array-like of shape (n_samples,), default=None
        Classes or values of the rows.
    labels : sequence of str
        Labels of the axes.
    ellipse : tuple of (mean, covariance, n_rows), default=None
        Moments of the scores for the ellipse. By default those of the rows.
    rows : array-like of shape (n_samples,), default=None
        Row numbers. By default 0, 1 and so on.
    has_values : bool, default=None
        Whether y holds values rather than classes. By default floats are values, and so are integers with many
        distinct values.

    Attributes
    ----------
    ax_, figure_
        The axes of the last plot, and their figure.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import IncrementalPLS
    >>> from plstream.plots import ScoresDisplay
    >>> X = np.random.default_rng(0).normal(size=(50, 8))
    >>> model = IncrementalPLS(2).fit(X, X[:, 3])
    >>> display = ScoresDisplay.from_estimator(model, X, X[:, 3] > 0)
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['False', 'True', '95 % of rows']
    """

    def __init__(
        self,
        scores: Any,
        y: Any = None,
        *,
        labels: Sequence[str] = ("Score 1", "Score 2"),
        ellipse: Any = None,
        rows: Any = None,
        has_values: bool | None = None,
    ) -> None:
        self.scores: Float64Array = np.asarray(scores, dtype=np.float64)
        self.y: Array | None = None if y is None else np.asarray(y)
        if self.y is not None:
            check_consistent_length(self.scores, self.y)
            self.y = self.y.reshape(len(self.scores), -1)[:, 0]
            has_values = are_values(self.y) if has_values is None else has_values
        self.labels = labels
        self.rows: Array = np.arange(len(self.scores)) if rows is None else np.asarray(rows)
        self.has_values = self.y is not None and bool(has_values)
        n, n_dimensions = self.scores.shape
        if ellipse is None and n > n_dimensions + 1:
            ellipse = self.scores.mean(axis=0), np.atleast_2d(np.cov(self.scores.T)), float(n)
        self.ellipse: tuple[Float64Array, Float64Array, float] | None = ellipse

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any = None,
        *,
        components: Sequence[int] = (1, 2),
        ax: Axes | None = None,
        draw: bool = True,
        **options: Any,
    ) -> Self:
        """Draw the scores of rows.

        Parameters
        ----------
        model : IncrementalPLS or another with ``transform``
            The model. The ellipse is that of its training rows if their covariance is known, else that of the drawn
            rows.
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.
        y : array-like of shape (n_samples,), default=None
            Classes or values, for colours.
        components : sequence of one or two int, default=(1, 2)
            Components to draw, counted from one.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw in. None for a new figure.
        draw : bool, default=True
            Whether to draw with matplotlib.
        **options
            Further parameters of ``plot``.
        """
        X, model = rows_for_last_step(model, X), last_step(model)
        scores = np.asarray(model.transform(X))
        chosen = list(components)[: scores.shape[1]] if tuple(components) == (1, 2) else components
        columns = component_columns(chosen, scores.shape[1])
        known = score_variances(model)
        ellipse = None
        if known is not None and max(columns) < len(known[0]):
            variances = known[0][columns]
            ellipse = np.zeros(len(columns)), np.diag(variances), known[1]
        display = cls(scores[:, columns], y, labels=component_labels(model, columns), ellipse=ellipse)
        return display.plot(ax, **options) if draw else display

    def plot(self, ax: Axes | None = None, *, level: float = 0.95, ylabel: str = "", title: str = "") -> Self:
        """Draw with matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Axes to draw in. None for a new figure.
        level : float, default=0.95
            Share of rows within the ellipse, for normal scores.
        ylabel : str, default=""
            Name of y.
        title : str, default=""
            Title of the plot.
        """
        ax = self._begin(ax)
        drawn, places = self._drawn, self._places()
        look = points(len(drawn))
        for i, (name, which) in enumerate(self._groups(drawn, _MOST_CLASSES).items()):
            is_rest = name in {_OTHERS, _MISSING}
            at = places[which]
            if self.has_values and not is_rest:
                assert self.y is not None
                self._draw_values(ax, at, self.y[which].astype(np.float64), ylabel, look)
                continue
            tone, marker = (FAINT, ".") if is_rest else (CLASSES[i], CLASS_MARKERS[i])
            ax.scatter(*at.T, color=tone, marker=marker, label=short(name) or None, zorder=2 - is_rest, **look)
        for i, line in enumerate(self._outlines(level)):
            look = {"label": None if i else _share(level), "gid": "ellipse", **LIMIT}
            if self._is_plane:
                ax.plot(*line.T, **look)
            else:
                ax.axhline(line[0, 1], **look)
        above = 0
        if ax.get_legend_handles_labels()[1]:
            has_classes = self.y is not None and not self.has_values
            above = legend(ax, ylabel if has_classes else "", beside=has_classes)
        x, y = self._axis_labels()
        label(ax, x, y, sampled_title(title, len(drawn), len(self.scores)), above)
        return self

    def plotly(self, *, level: float = 0.95, ylabel: str = "y") -> PlotlyFigure:
        """Return the figure as data for Plotly; row numbers and classes or values appear on hover."""
        drawn, places = self._drawn, self._places()
        x, y = self._axis_labels()
        hover = f"{plain(x)} %{{x:.4g}}<br>{plain(y)} %{{y:.4g}}"
        data = []
        for i, (name, which) in enumerate(self._groups(drawn, _MOST_INTERACTIVE).items()):
            is_rest = name in {_OTHERS, _MISSING}
            look: dict[str, Any] = {"color": "--faint"} if is_rest else {"color": colour(i), "symbol": symbol(i)}
            more: dict[str, Any] = {}
            text = hover if self.y is None else f"{hover}<br>%{{fullData.name}}"
            if self.has_values and not is_rest:
                assert self.y is not None
                bar = {"title": {"text": plain(ylabel), "side": "right"}, "thickness": 12, "outlinewidth": 0}
                scale = [[0, "--s0"], [0.5, "--s1"], [1, "--s2"]]
                look = {"color": numbers(self.y[which]), "colorscale": scale, "showscale": True, "colorbar": bar}
                # Not part of the template, where the name might be interpreted.
                text, more = f"{hover}<br>%{{meta}} %{{marker.color:.4g}}", {"meta": plain(ylabel), "showlegend": False}
            at = places[which]
            data.append(markers(at[:, 0], at[:, 1], self.rows[which], text, name or "rows", look) | more)
        for i, line in enumerate(self._outlines(level)):
            data.append(dashed(line[:, 0], line[:, 1], "" if i else _share(level)))
        return figure(x, y, data)

    @property
    def _is_plane(self) -> bool:
        return bool(self.scores.shape[1] == 2)

    def _axis_labels(self) -> Sequence[str]:
        return self.labels if self._is_plane else ("Row", self.labels[0])

    def _places(self) -> Float64Array:
        return self.scores if self._is_plane else np.column_stack([self.rows, self.scores])

    @property
    def _drawn(self) -> NDArray[np.intp]:
        """Indices of the rows to draw."""
        centred = self.scores - self.scores.mean(axis=0) if len(self.scores) else self.scores
        return sample(np.square(centred).sum(axis=1))

    def _groups(self, drawn: NDArray[np.intp], most: int) -> dict[str, NDArray[np.intp]]:
        """Return the drawn rows by class; with values or without y, one group without a name."""
        if self.y is None:
            return {"": drawn}
        if not self.has_values:
            return {name: drawn[rows[drawn]] for name, rows in groups_of(self.y, most).items()}
        missing = ~np.isfinite(self.y[drawn].astype(np.float64))
        return {_MISSING: drawn[missing], "": drawn[~missing]} if missing.any() else {"": drawn}

    def _outlines(self, level: float) -> list[Float64Array]:
        """Return the outline of Hotelling's ellipse, or the two lines of a band; none if there are too few rows."""
        n_dimensions = self.scores.shape[1]
        if self.ellipse is None or self.ellipse[2] <= n_dimensions:
            return []
        mean, covariance, n_rows = self.ellipse
        values, vectors = np.linalg.eigh(covariance)
        axes = vectors * np.sqrt(np.maximum(values, 0.0) * t2_limit(level, n_dimensions, n_rows))
        turn = np.linspace(0, 2 * np.pi, 181) if self._is_plane else np.array([-np.pi, 0.0])
        circle = np.stack([np.cos(turn), np.sin(turn)])[:n_dimensions]
        outline: Float64Array = mean + (axes @ circle).T
        if self._is_plane:
            return [outline]
        return [np.column_stack([self.rows[[0, -1]], [bound, bound]]) for bound in outline[:, 0]]

    def _draw_values(self, ax: Axes, places: Float64Array, values: Array, ylabel: str, look: dict[str, Any]) -> None:
        from matplotlib.colors import LinearSegmentedColormap

        scale = LinearSegmentedColormap.from_list("plstream", SCALE)
        drawn = ax.scatter(places[:, 0], places[:, 1], c=values, cmap=scale, **look)
        bar = ax.figure.colorbar(drawn, ax=ax, pad=0.02, aspect=30)
        if bar.solids is not None:
            bar.solids.set_alpha(1.0)
        bar.outline.set_visible(False)
        bar.ax.tick_params(color=FAINT, labelcolor=ink(ax), labelsize=SMALL)
        bar.set_label(ylabel or "y", fontsize=SMALL + 1, color=ink(ax))


def _share(level: float) -> str:
    return f"{100 * level:g} % of rows"


def component_labels(model: Any, columns: Sequence[int]) -> list[str]:
    """Return axis labels of components, with the share of the variance of X if known."""
    explained = getattr(model, "x_explained_variance_ratio_", None)
    return [
        f"Component {j + 1}" + ("" if explained is None else f" ({100 * explained[j]:.3g} % of X)") for j in columns
    ]


def are_values(y: Array) -> bool:
    """Return whether y holds values rather than classes: floats, or many distinct integers.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.plots.scores import are_values
    >>> are_values(np.array([0.0, 1.0])), are_values(np.array([0, 1])), are_values(np.arange(100))
    (True, False, True)
    """
    return y.dtype.kind == "f" or (y.dtype.kind in "iu" and len(np.unique(y)) > 2 * _MOST_CLASSES)


def groups_of(y: Array, most: int = _MOST_CLASSES) -> dict[str, NDArray[np.bool_]]:
    """Return the rows of each class by name; with many classes, the most frequent ones, and all others as one."""
    missing = np.array([value is None or value != value for value in y], dtype=bool)  # noqa: PLR0124
    names = np.array([str(value) for value in y], dtype=object)
    known, counts = np.unique(names[~missing].astype(str), return_counts=True)
    if len(known) > most:
        known = np.sort(known[np.argsort(-counts, kind="stable")[: most - 1]])
    in_order = sorted(map(str, known), key=lambda name: (len(name), name) if name.isdigit() else (0, name))
    groups = {name: (names == name) & ~missing for name in in_order}
    others = ~missing & ~np.any([*groups.values(), missing], axis=0)
    return groups | {name: rows for name, rows in ((_OTHERS, others), (_MISSING, missing)) if rows.any()}
