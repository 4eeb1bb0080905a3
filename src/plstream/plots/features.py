"""LoadingsDisplay, CoefficientsDisplay and VIPDisplay: what a model makes of each feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from .._core.types import Float64Array
from ..monitoring.names import feature_names
from ..monitoring.pipelines import last_step
from ..selection import vip_scores
from ._axes import SMALL, ink
from ._features import MOST_BARS, FeatureDisplay, apart, positions
from .palette import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_LINES = 10


class LoadingsDisplay(FeatureDisplay):
    """Loadings, weights or rotations of X, one line a component.

    Parameters
    ----------
    values : dict of str to ndarray of shape (n_features,)
        What is drawn, by its name in the legend.
    feature_names : array-like of shape (n_features,)
        Names of the features. If all are numbers, with or without a unit, and in order, the values are drawn at these.
    ylabel : str
        What the values are.

    Attributes
    ----------
    ax_, figure_
        The axes that it was drawn in, and their figure.

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
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw those of a fitted model.

        Parameters
        ----------
        model : IncrementalPLS or another with ``x_loadings_``
            The model.
        components : sequence of int, default=None
            Which components, counted from one. By default the first three.
        kind : {"loadings", "weights", "rotations"}, default="loadings"
            What is drawn.
        ax : matplotlib.axes.Axes, default=None
            Where to. By default in a new figure.
        **options
            Others of ``plot``: ``xlabel`` and ``title``.

        Returns
        -------
        display : LoadingsDisplay
        """
        if kind not in {"loadings", "weights", "rotations"}:
            raise ValueError(f"kind must be 'loadings', 'weights' or 'rotations', not {kind!r}.")
        names = feature_names(model)
        model, _ = last_step(model)
        matrix = getattr(model, f"x_{kind}_")
        chosen = range(1, 1 + min(3, matrix.shape[1])) if components is None else components
        columns = component_columns(chosen, matrix.shape[1])
        values = {f"component {j + 1}": matrix[:, j] for j in columns}
        if len(values) == 1:
            return cls(values, names, f"{kind.capitalize()}, {next(iter(values))}").plot(ax, **options)
        return cls(values, names, kind.capitalize()).plot(ax, **options)


class CoefficientsDisplay(FeatureDisplay):
    """Coefficients of a regression, one line a response.

    Parameters
    ----------
    values : dict of str to ndarray of shape (n_features,)
        What is drawn, by its name in the legend.
    feature_names : array-like of shape (n_features,)
        Names of the features. If all are numbers, with or without a unit, and in order, the values are drawn at these.
    ylabel : str
        What the values are.

    Attributes
    ----------
    ax_, figure_
        The axes that it was drawn in, and their figure.

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
        scaled: bool = False,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw those of a fitted model.

        Parameters
        ----------
        model : IncrementalPLS or another with ``coef_``
            The model.
        targets : sequence, default=None
            Names of the responses. By default those of the classes, or numbers; the first ten are drawn.
        scaled : bool, default=False
            Whether to draw the coefficients of scaled features and responses, which can be compared with each other
            where units differ.
        ax : matplotlib.axes.Axes, default=None
            Where to. By default in a new figure.
        **options
            Others of ``plot``: ``xlabel`` and ``title``.

        Returns
        -------
        display : CoefficientsDisplay
        """
        names = feature_names(model)
        model, _ = last_step(model)
        coefficients = np.atleast_2d(model.coef_)
        if scaled:
            if not hasattr(model, "x_scale_"):
                raise TypeError(f"{type(model).__name__} does not scale features: leave out scaled=True.")
            coefficients = coefficients * model.x_scale_ / model.y_scale_[:, None]
        classes = getattr(model, "classes_", None)
        if targets is None:
            targets = [f"y{k}" for k in range(len(coefficients))] if classes is None else list(classes)
        values = dict(zip(map(str, targets), coefficients[:_MOST_LINES], strict=False))
        name = "Scaled coefficient" if scaled else "Coefficient"
        if len(values) < len(targets):
            name += f" (the first {len(values)} of {len(targets)})"
        return cls(values, names, name).plot(ax, **options)


class VIPDisplay(FeatureDisplay):
    """Variable importance in projection, with the threshold one, and the names of those that are highest.

    Parameters
    ----------
    vip : ndarray of shape (n_features,)
        The scores.
    feature_names : array-like of shape (n_features,)
        Names of the features. If all are numbers, with or without a unit, and in order, the values are drawn at these.

    Attributes
    ----------
    ax_, figure_
        The axes that it was drawn in, and their figure.

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

    def __init__(self, vip: Float64Array, feature_names: Any) -> None:
        super().__init__({"VIP": vip}, feature_names, "VIP")

    def plot(
        self,
        ax: Axes | None = None,
        *,
        n_named: int = 5,
        threshold: float = 1.0,
        xlabel: str | None = None,
        title: str = "",
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to. By default in a new figure.
        n_named : int, default=5
            How many of the highest features have their names in a spectrum; those too close to a higher one do not.
        threshold : float, default=1.0
            Where the line is, above which features count as important.
        xlabel : str, default=None
            What the features are, such as "Wavelength, nm". By default it is guessed from their names.
        title : str, default=""
            Of the picture.

        Returns
        -------
        display : VIPDisplay
        """
        found, at = positions(self.feature_names)
        order = np.argsort(-self.values["VIP"], kind="stable")
        shown = self if found else self._in_order(order)
        super(VIPDisplay, shown).plot(ax, xlabel=xlabel, title=title)
        self.ax_, self.figure_ = shown.ax_, shown.figure_
        bars = bool(self.ax_.patches)
        line = self.ax_.axvline if bars else self.ax_.axhline
        line(threshold, color=INK, linewidth=1.1, linestyle="--", gid="threshold")
        if not bars:
            self.ax_.set_ylim(bottom=0)
            high = _is_peak(self.values["VIP"]) & (self.values["VIP"] > threshold)
            self._name_highest(apart(order[high[order]], at, n_named))
            n_above = int(np.sum(self.values["VIP"] > threshold))
            note = f"{n_above:,} of {len(order):,} above {threshold:g}"
            self.ax_.text(
                1.0,
                1.01,
                note,
                transform=self.ax_.transAxes,
                ha="right",
                va="bottom",
                fontsize=SMALL,
                color=ink(self.ax_),
            )
        return self

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Axes | None = None, **options: Any) -> Self:
        """Draw that of a fitted model.

        Parameters
        ----------
        model : object
            A model that :func:`plstream.vip_scores` takes.
        ax : matplotlib.axes.Axes, default=None
            Where to. By default in a new figure.
        **options
            Others of ``plot``.

        Returns
        -------
        display : VIPDisplay
        """
        return cls(vip_scores(last_step(model)[0]), feature_names(model)).plot(ax, **options)

    def _in_order(self, order: Any) -> VIPDisplay:
        """Return the display with bars from the highest to the lowest; a spectrum stays as it is."""
        return self if len(order) > MOST_BARS else VIPDisplay(self.values["VIP"][order], self.feature_names[order])


def _is_peak(values: Float64Array) -> NDArray[np.bool_]:
    """Return which values are not below their neighbours."""
    around = np.pad(values, 1, constant_values=-np.inf)
    peaks: NDArray[np.bool_] = (values >= around[:-2]) & (values >= around[2:])
    return peaks


def component_columns(components: Sequence[int], n_components: int) -> list[int]:
    """Return the columns of components that are counted from one; raise ValueError if there are not so many."""
    for number in components:
        if number not in range(1, n_components + 1):
            raise ValueError(
                f"components are counted from 1 to the model's {n_components}, and {number} is none of them."
            )
    return [int(number) - 1 for number in components]
