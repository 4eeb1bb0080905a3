"""ScoresDisplay: rows in the plane of two components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length

from .._core.types import Array, Float64Array
from ..monitoring.limits import t2_limit
from ..monitoring.pipelines import last_step
from ..monitoring.residuals import score_variances
from ._axes import SMALL, Display, ink, label, legend, points, short
from ._many import of_many, sample
from .features import component_columns
from .palette import CLASS_MARKERS, CLASSES, FAINT, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Classes with a colour of their own.
_MOST_CLASSES = 10
_OTHERS = "others"
_MISSING = "no value"


class Ellipse(NamedTuple):
    """A region that holds most rows: mean, covariance, and how many rows these are from."""

    mean: Float64Array
    covariance: Float64Array
    n_rows: float

    def outline(self, level: float) -> Float64Array:
        """Return points on the border of Hotelling's T2."""
        n_dimensions = len(self.mean)
        values, vectors = np.linalg.eigh(self.covariance)
        axes = vectors * np.sqrt(np.maximum(values, 0.0) * t2_limit(level, n_dimensions, self.n_rows))
        turn = np.linspace(0, 2 * np.pi, 181) if n_dimensions == 2 else np.array([-np.pi, 0.0])
        circle = np.stack([np.cos(turn), np.sin(turn)])[:n_dimensions]
        outline: Float64Array = self.mean + (axes @ circle).T
        return outline


class ScoresDisplay(Display):
    """Scores of rows on two components, in the colours of their classes or values, with Hotelling's ellipse.

    Rows outside of the ellipse are extreme in what these two components know. With one component, scores are drawn in
    the order of the rows, and the ellipse is a band. Of more than 10,000 rows some are drawn, and the title says so:
    the outermost, and others at random.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, 1) or (n_samples, 2)
        The scores.
    y : array-like of shape (n_samples,), default=None
        Classes or values of the rows.
    labels : sequence of str
        What the axes are.
    ellipse : tuple of (mean, covariance, n_rows), default=None
        Of the scores that the ellipse is made from. By default those of the rows.

    Attributes
    ----------
    ax_, figure_
        The axes that it was drawn in, and their figure.

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
        self, scores: Any, y: Any = None, *, labels: Sequence[str] = ("Score 1", "Score 2"), ellipse: Any = None
    ) -> None:
        self.scores: Float64Array = np.asarray(scores, dtype=np.float64)
        self.y: Array | None = None if y is None else np.asarray(y)
        if self.y is not None:
            check_consistent_length(self.scores, self.y)
            self.y = self.y.reshape(len(self.scores), -1)[:, 0]
        self.labels = labels
        self.ellipse = self._own_ellipse() if ellipse is None else Ellipse(*ellipse)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any = None,
        *,
        components: Sequence[int] = (1, 2),
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the scores of rows.

        Parameters
        ----------
        model : IncrementalPLS or another with ``transform``
            The model. The ellipse is that of the rows it was made from if it keeps a streaming state, or else that of
            the rows drawn.
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.
        y : array-like of shape (n_samples,), default=None
            Classes or values, for colours.
        components : sequence of one or two int, default=(1, 2)
            Which components, counted from one.
        ax : matplotlib.axes.Axes, default=None
            Where to. By default in a new figure.
        **options
            Others of ``plot``.

        Returns
        -------
        display : ScoresDisplay
        """
        model, X = last_step(model, X)
        scores = np.asarray(model.transform(X))
        chosen = list(components)[: scores.shape[1]] if tuple(components) == (1, 2) else components
        columns = component_columns(chosen, scores.shape[1])
        explained = getattr(model, "x_explained_variance_ratio_", None)
        labels = [
            f"Component {j + 1}" + ("" if explained is None else f" ({100 * explained[j]:.3g} % of X)") for j in columns
        ]
        known = score_variances(model)
        ellipse = None
        if known is not None and max(columns) < len(known[0]):
            variances = known[0][columns]
            ellipse = np.zeros(len(columns)), np.diag(variances), known[1]
        return cls(scores[:, columns], y, labels=labels, ellipse=ellipse).plot(ax, **options)

    def plot(self, ax: Axes | None = None, *, level: float = 0.95, ylabel: str = "", title: str = "") -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to. By default in a new figure.
        level : float, default=0.95
            Share of rows that is within the ellipse, if scores are normal.
        ylabel : str, default=""
            What y is.
        title : str, default=""
            Of the picture.

        Returns
        -------
        display : ScoresDisplay
        """
        ax = self._begin(ax)
        drawn = sample(
            np.square(self.scores - self.scores.mean(axis=0)).sum(axis=1) if len(self.scores) else np.empty(0)
        )
        places = self._places()
        self._draw(ax, places, drawn, ylabel)
        self._draw_ellipse(ax, level)
        above = 0
        if ax.get_legend_handles_labels()[1]:
            has_bar = self.y is not None and are_values(self.y)
            above = legend(ax, "" if has_bar else ylabel, beside=self.y is not None and not has_bar)
        titles = [part for part in (title, of_many(len(drawn), len(self.scores))) if part]
        x, y = self.labels if self._is_plane else ("Row", self.labels[0])
        label(ax, x, y, "\n".join(titles), above)
        return self

    @property
    def _is_plane(self) -> bool:
        return bool(self.scores.shape[1] == 2)

    def _places(self) -> Float64Array:
        return self.scores if self._is_plane else np.column_stack([np.arange(len(self.scores)), self.scores])

    def _own_ellipse(self) -> Ellipse | None:
        n, n_dimensions = self.scores.shape
        if n <= n_dimensions + 1:
            return None
        covariance = np.atleast_2d(np.cov(self.scores.T))
        return Ellipse(self.scores.mean(axis=0), covariance, float(n))

    def _draw(self, ax: Axes, places: Float64Array, drawn: NDArray[np.intp], ylabel: str) -> None:
        look = points(len(drawn))
        if self.y is None:
            ax.scatter(*places[drawn].T, color=CLASSES[0], **look)
        elif are_values(self.y):
            self._draw_values(ax, places[drawn], self.y[drawn], ylabel, look)
        else:
            groups = groups_of(self.y)
            for i, (name, rows) in enumerate(groups.items()):
                plain = name in {_OTHERS, _MISSING}
                colour, marker = (FAINT, ".") if plain else (CLASSES[i], CLASS_MARKERS[i])
                chosen = drawn[rows[drawn]]
                ax.scatter(*places[chosen].T, color=colour, marker=marker, label=short(name), zorder=2 - plain, **look)

    def _draw_values(self, ax: Axes, places: Float64Array, y: Array, ylabel: str, look: dict[str, Any]) -> None:
        values = y.astype(np.float64)
        missing = ~np.isfinite(values)
        if missing.any():
            ax.scatter(*places[missing].T, color=FAINT, marker=".", label=_MISSING, **look)
        drawn = ax.scatter(places[~missing, 0], places[~missing, 1], c=values[~missing], cmap="viridis", **look)
        bar = ax.figure.colorbar(drawn, ax=ax, pad=0.02, aspect=30)
        if bar.solids is not None:
            bar.solids.set_alpha(1.0)
        bar.outline.set_visible(False)
        bar.ax.tick_params(color=FAINT, labelcolor=ink(ax), labelsize=SMALL)
        bar.set_label(ylabel or "y", fontsize=SMALL + 1, color=ink(ax))

    def _draw_ellipse(self, ax: Axes, level: float) -> None:
        if self.ellipse is None or self.ellipse.n_rows <= self.scores.shape[1]:
            return
        outline = self.ellipse.outline(level)
        look: dict[str, Any] = {
            "color": INK,
            "linewidth": 1.1,
            "linestyle": "--",
            "label": f"{100 * level:g} % of rows",
            "gid": "ellipse",
        }
        if self._is_plane:
            ax.plot(*outline.T, **look)
        else:
            for i, value in enumerate(outline[:, 0]):
                ax.axhline(value, **(look if i == 0 else look | {"label": None}))


def are_values(y: Array) -> bool:
    """Return whether y holds values rather than classes: fractions, or whole numbers of which there are many.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream.plots.scores import are_values
    >>> are_values(np.array([0.0, 1.0])), are_values(np.array([0, 1])), are_values(np.arange(100))
    (True, False, True)
    """
    return y.dtype.kind == "f" or (y.dtype.kind in "iu" and len(np.unique(y)) > 2 * _MOST_CLASSES)


def groups_of(y: Array) -> dict[str, NDArray[np.bool_]]:
    """Return the rows of each class by its name; of many classes, the most frequent, and all others together."""
    missing = np.array([value is None or value != value for value in y], dtype=bool)  # noqa: PLR0124
    names = np.array([str(value) for value in y], dtype=object)
    known, counts = np.unique(names[~missing].astype(str), return_counts=True)
    if len(known) > _MOST_CLASSES:
        known = np.sort(known[np.argsort(-counts, kind="stable")[: _MOST_CLASSES - 1]])
    in_order = sorted(map(str, known), key=lambda name: (len(name), name) if name.isdigit() else (0, name))
    groups = {name: (names == name) & ~missing for name in in_order}
    others = ~missing & ~np.any([*groups.values(), missing], axis=0)
    return groups | {name: rows for name, rows in ((_OTHERS, others), (_MISSING, missing)) if rows.any()}
