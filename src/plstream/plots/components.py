"""ExplainedVarianceDisplay and CrossValidationDisplay: number of components."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._core.types import Float64Array
from ..monitoring.pipelines import last_step
from .display import Display, label, legend
from .interactive import PlotlyFigure, colour, figure, integer_ticks, numbers, plain
from .palette import CLASSES, FAINT, PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARK: dict[str, Any] = {"markersize": 6, "markeredgecolor": PAPER, "markeredgewidth": 0.6, "linewidth": 1.6}
# With more components, no markers are drawn.
_MOST_MARKERS = 40


class ExplainedVarianceDisplay(Display):
    """Share of the variance of X and y explained by each component, and cumulatively.

    Parameters
    ----------
    x_ratio, y_ratio : array-like of shape (n_components,), default=None
        Shares per component, if known.
    class_ratio : array-like of shape (n_components,), default=None
        Shares of the variance between classes.

    Attributes
    ----------
    ratios : dict of str to ndarray of shape (n_components,)
        The known shares by name.
    ax_, figure_
        The axes of the last plot, and their figure.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import IncrementalPLS
    >>> from plstream.plots import ExplainedVarianceDisplay
    >>> X = np.random.default_rng(0).normal(size=(50, 8))
    >>> display = ExplainedVarianceDisplay.from_estimator(IncrementalPLS(4).fit(X, X[:, 3]))
    >>> display.ax_.lines[1].get_ydata().round(1)
    array([ 90.9,  99. ,  99.9, 100. ])
    """

    def __init__(self, x_ratio: Any = None, y_ratio: Any = None, *, class_ratio: Any = None) -> None:
        given = {"X": x_ratio, "y": y_ratio, "between classes": class_ratio}
        self.ratios: dict[str, Float64Array] = {
            name: np.asarray(ratio, dtype=np.float64) for name, ratio in given.items() if ratio is not None
        }
        self.x_ratio, self.y_ratio, self.class_ratio = map(self.ratios.get, given)

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Axes | None = None, draw: bool = True, **options: Any) -> Self:
        """Draw the shares of a fitted model.

        Parameters
        ----------
        model : object
            A model with ``x_explained_variance_ratio_`` and ``y_explained_variance_ratio_``, or with
            ``explained_variance_ratio_``, which refers to X or, in a discriminant analysis, to differences between
            classes.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw in. None for a new figure.
        draw : bool, default=True
            Whether to draw with matplotlib.
        **options
            Further parameters of ``plot``.
        """
        model = last_step(model)
        if hasattr(model, "explained_variance_ratio_"):
            name = "class_ratio" if hasattr(model, "scalings_") else "x_ratio"
            display = cls(**{name: model.explained_variance_ratio_})
        else:
            display = cls(model.x_explained_variance_ratio_, model.y_explained_variance_ratio_)
        return display.plot(ax, **options) if draw else display

    def _draw(self, ax: Axes, title: str) -> None:
        at = np.arange(1, 1 + len(next(iter(self.ratios.values()))))
        for i, (name, ratio) in enumerate(self.ratios.items()):
            shift = (i - (len(self.ratios) - 1) / 2) * 0.3
            ax.bar(at + shift, 100 * ratio, 0.3, color=CLASSES[i], alpha=0.35, linewidth=0)
            marker = "" if len(at) > _MOST_MARKERS else "o^s"[i]
            ax.plot(at, 100 * np.cumsum(ratio), color=CLASSES[i], marker=marker, label=f"{name}, cumulative", **_MARK)
        _count(ax)
        ax.set_xlim(0.4, len(at) + 0.6)
        ax.set_ylim(0, 103)
        label(ax, "Component", "Explained variance, %", title, legend(ax))

    def plotly(self) -> PlotlyFigure:
        """Return the figure as data for Plotly."""
        data: list[dict[str, Any]] = []
        for i, (name, ratio) in enumerate(self.ratios.items()):
            common = {"x": list(range(1, len(ratio) + 1)), "hovertemplate": "component %{x}<br>%{y:.2%}"}
            bars = {"type": "bar", "name": plain(name), "y": numbers(ratio)}
            line = {"type": "scatter", "mode": "lines+markers", "name": plain(f"{name}, cumulative")}
            data += [
                bars | common | {"marker": {"color": colour(i), "opacity": 0.6}},
                line | common | {"y": numbers(np.cumsum(ratio)), "line": {"color": colour(i)}},
            ]
        return figure(
            "Component",
            "Share of the variance",
            data,
            xaxis=integer_ticks(len(next(iter(self.ratios.values())))),
            yaxis={"tickformat": ".0%", "rangemode": "tozero"},
        )


class CrossValidationDisplay(Display):
    """Cross-validated error against the number of components, with standard errors and the chosen number.

    Parameters
    ----------
    n_components : array-like of int
        Numbers of components.
    error : array-like of float
        Error, or another metric, for each number.
    std_error : array-like of float, default=None
        Its standard error.
    folds : array-like of shape (n_folds, n_numbers), default=None
        The errors of folds, drawn as thin lines.
    chosen : int, default=None
        The chosen number of components.
    ylabel : str, default="RMSE"
        Name of the error.

    Attributes
    ----------
    ax_, figure_
        The axes of the last plot, and their figure.

    Examples
    --------
    >>> from plstream.plots import CrossValidationDisplay
    >>> display = CrossValidationDisplay([1, 2, 3], [0.9, 0.5, 0.6], [0.1, 0.05, 0.05], chosen=2).plot()
    >>> display.ax_.get_xlabel()
    'Components'
    """

    def __init__(
        self,
        n_components: Any,
        error: Any,
        std_error: Any = None,
        *,
        folds: Any = None,
        chosen: int | None = None,
        ylabel: str = "RMSE",
    ) -> None:
        self.n_components, self.error = np.asarray(n_components), np.asarray(error, dtype=np.float64)
        self.std_error = None if std_error is None else np.asarray(std_error, dtype=np.float64)
        self.folds = None if folds is None else np.asarray(folds, dtype=np.float64)
        self.chosen, self.ylabel = chosen, ylabel

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        metric: str | None = None,
        target: int = 0,
        ax: Axes | None = None,
        draw: bool = True,
        **options: Any,
    ) -> Self:
        """Draw the results of a cross-validated model.

        Parameters
        ----------
        model : IncrementalPLSCV or another with ``cv_results_`` and ``n_components_``
            The model. Its results have "n_components", "mean_test_rmse" and, for each fold, "split0_test_rmse", or the
            same for another metric. Standard errors are in "se_test_rmse", or those of the mean over folds.
        metric : str, default=None
            The metric. By default "rmse", or "score" if that is missing, as for labels.
        target : int, default=0
            Index of the response, if there are several.
        ax : matplotlib.axes.Axes, default=None
            Axes to draw in. None for a new figure.
        draw : bool, default=True
            Whether to draw with matplotlib.
        **options
            Further parameters of ``plot``.
        """
        model = last_step(model)
        if not hasattr(model, "cv_results_"):
            raise TypeError(f"{type(model).__name__} has not been cross-validated: use a fitted IncrementalPLSCV.")
        results = model.cv_results_
        if metric is None:
            metric = "rmse" if "mean_test_rmse" in results else "score"
        if f"mean_test_{metric}" not in results:
            known = sorted(key[10:] for key in results if key.startswith("mean_test_"))
            raise ValueError(f"metric must be one of {', '.join(known)}, not {metric!r}.")

        def of_target(key: str) -> Float64Array:
            values = np.asarray(results[key], dtype=np.float64)
            return values if values.ndim == 1 else values[:, target]

        splits = [of_target(key) for key in results if re.fullmatch(rf"split\d+_test_{metric}", key)]
        std_error = None
        if f"se_test_{metric}" in results:
            std_error = of_target(f"se_test_{metric}")
        elif len(splits) > 1:
            std_error = np.nanstd(splits, axis=0, ddof=1) / np.sqrt(len(splits))
        display = cls(
            results["n_components"],
            of_target(f"mean_test_{metric}"),
            std_error,
            folds=splits or None,
            chosen=int(model.n_components_),
            ylabel=f"Cross-validated {metric.upper() if metric == 'rmse' else metric}",
        )
        return display.plot(ax, **options) if draw else display

    def _draw(self, ax: Axes, title: str) -> None:
        for i, fold in enumerate([] if self.folds is None else self.folds):
            ax.plot(self.n_components, fold, color=FAINT, linewidth=0.7, alpha=0.5, label="folds" if not i else None)
        marker = "" if len(self.n_components) > _MOST_MARKERS else "o"
        ax.plot(self.n_components, self.error, color=CLASSES[0], marker=marker, label="all rows", gid="error", **_MARK)
        if self.std_error is not None:
            look: dict[str, Any] = {"color": CLASSES[0], "linestyle": "", "capsize": 2.5, "linewidth": 1.1}
            ax.errorbar(self.n_components, self.error, self.std_error, label="standard error", **look)
        if self.chosen is not None:
            ax.axvline(self.chosen, color=CLASSES[1], linewidth=1.4, linestyle="--", label=f"chosen: {self.chosen}")
        _count(ax)
        label(ax, "Components", self.ylabel, title, legend(ax))

    def plotly(self) -> PlotlyFigure:
        """Return the figure as data for Plotly."""
        common = {"type": "scatter", "hovertemplate": "components: %{x}<br>%{y:.4g}"}
        x = self.n_components.tolist()
        line: dict[str, Any] = {"mode": "lines+markers", "name": "cross-validated", "x": x, "y": numbers(self.error)}
        if self.std_error is not None:
            line["error_y"] = {"type": "data", "array": numbers(self.std_error), "color": "--faint"}
        data = [line | common | {"line": {"color": colour(0)}}]
        if self.chosen is not None:
            at = self.n_components == self.chosen
            star = {"color": colour(1), "size": 12, "symbol": "star"}
            chosen = {"mode": "markers", "name": "chosen", "x": self.n_components[at].tolist(), "marker": star}
            data.append(chosen | common | {"y": numbers(self.error[at])})
        for i, fold in enumerate([] if self.folds is None else self.folds):
            thin = {
                "mode": "lines",
                "line": {"color": "--faint", "width": 0.7},
                "name": "folds",
                "legendgroup": "folds",
            }
            data.append(thin | common | {"x": x, "y": numbers(fold), "showlegend": not i})
        return figure("Number of components", self.ylabel, data, xaxis=integer_ticks(len(x)))


def _count(ax: Axes) -> None:
    """Set a moderate number of integer ticks."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True, min_n_ticks=1))
    ax.grid(visible=False, axis="x")
