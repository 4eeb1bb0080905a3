"""ExplainedVarianceDisplay and CrossValidationDisplay: how many components."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._core.types import Float64Array
from ..monitoring.pipelines import last_step
from ._axes import Display, label, legend
from .palette import CLASSES, FAINT, PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARK: dict[str, Any] = {"markersize": 6, "markeredgecolor": PAPER, "markeredgewidth": 0.6, "linewidth": 1.6}
# More than so many components have no markers of their own.
_MOST_MARKERS = 40


class ExplainedVarianceDisplay(Display):
    """Share of the variance of X and y that components explain: each by itself, and all up to it.

    Parameters
    ----------
    x_ratio, y_ratio : ndarray of shape (n_components,)
        Shares of each component.

    Attributes
    ----------
    ax_, figure_
        The axes that it was drawn in, and their figure.

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

    def __init__(self, x_ratio: Any, y_ratio: Any) -> None:
        self.x_ratio: Float64Array = np.asarray(x_ratio, dtype=np.float64)
        self.y_ratio: Float64Array = np.asarray(y_ratio, dtype=np.float64)

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Axes | None = None, **options: Any) -> Self:
        """Draw those of a fitted model.

        Parameters
        ----------
        model : IncrementalPLS or another with ``x_explained_variance_ratio_`` and ``y_explained_variance_ratio_``
            The model.
        ax : matplotlib.axes.Axes, default=None
            Where to. By default in a new figure.
        **options
            Others of ``plot``.

        Returns
        -------
        display : ExplainedVarianceDisplay
        """
        model, _ = last_step(model)
        return cls(model.x_explained_variance_ratio_, model.y_explained_variance_ratio_).plot(ax, **options)

    def plot(self, ax: Axes | None = None, *, title: str = "") -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to. By default in a new figure.
        title : str, default=""
            Of the picture.

        Returns
        -------
        display : ExplainedVarianceDisplay
        """
        ax = self._begin(ax)
        numbers = np.arange(1, 1 + len(self.x_ratio))
        for i, (name, ratio) in enumerate((("X", self.x_ratio), ("y", self.y_ratio))):
            ax.bar(numbers + (i - 0.5) * 0.3, 100 * ratio, 0.3, color=CLASSES[i], alpha=0.35, linewidth=0)
            marker = "" if len(numbers) > _MOST_MARKERS else "o^"[i]
            ax.plot(
                numbers, 100 * np.cumsum(ratio), color=CLASSES[i], marker=marker, label=f"{name}, cumulative", **_MARK
            )
        _count(ax)
        ax.set_xlim(0.4, len(numbers) + 0.6)
        ax.set_ylim(0, 103)
        label(ax, "Component", "Explained variance, %", title, legend(ax))
        return self


class CrossValidationDisplay(Display):
    """Cross-validated error against the number of components, with standard errors and the number chosen.

    Parameters
    ----------
    n_components : array-like of int
        Numbers of components.
    error : array-like of float
        The error of each.
    std_error : array-like of float, default=None
        Its standard error.
    folds : array-like of shape (n_folds, n_numbers), default=None
        The errors of folds, drawn as thin lines.
    chosen : int, default=None
        The number of components that was chosen.
    ylabel : str, default="RMSE"
        What the error is.

    Attributes
    ----------
    ax_, figure_
        The axes that it was drawn in, and their figure.

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
        cls, model: Any, *, metric: str | None = None, target: int = 0, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Draw what a cross-validated model has found.

        Parameters
        ----------
        model : IncrementalPLSCV or another with ``cv_results_`` and ``n_components_``
            The model. Its results have "n_components", "mean_test_rmse" and, for each fold, "split0_test_rmse", or the
            same of another metric. Standard errors are in "se_test_rmse", or are those of the mean of all folds.
        metric : str, default=None
            Which metric. By default "rmse", or "score" where there are no such errors, as for labels.
        target : int, default=0
            Which response, where errors are of several.
        ax : matplotlib.axes.Axes, default=None
            Where to. By default in a new figure.
        **options
            Others of ``plot``.

        Returns
        -------
        display : CrossValidationDisplay
        """
        model, _ = last_step(model)
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
        return cls(
            results["n_components"],
            of_target(f"mean_test_{metric}"),
            std_error,
            folds=splits or None,
            chosen=int(model.n_components_),
            ylabel=f"Cross-validated {metric.upper() if metric == 'rmse' else metric}",
        ).plot(ax, **options)

    def plot(self, ax: Axes | None = None, *, title: str = "") -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to. By default in a new figure.
        title : str, default=""
            Of the picture.

        Returns
        -------
        display : CrossValidationDisplay
        """
        ax = self._begin(ax)
        for i, fold in enumerate([] if self.folds is None else self.folds):
            ax.plot(self.n_components, fold, color=FAINT, linewidth=0.7, alpha=0.5, label="folds" if not i else None)
        marker = "" if len(self.n_components) > _MOST_MARKERS else "o"
        ax.plot(self.n_components, self.error, color=CLASSES[0], marker=marker, label="all rows", gid="error", **_MARK)
        if self.std_error is not None:
            ax.errorbar(
                self.n_components,
                self.error,
                self.std_error,
                color=CLASSES[0],
                linestyle="",
                capsize=2.5,
                linewidth=1.1,
                label="standard error",
            )
        if self.chosen is not None:
            ax.axvline(self.chosen, color=CLASSES[1], linewidth=1.4, linestyle="--", label=f"chosen: {self.chosen}")
        _count(ax)
        label(ax, "Components", self.ylabel, title, legend(ax))
        return self


def _count(ax: Axes) -> None:
    """Have whole numbers below, and not too many of them."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(nbins=10, integer=True, min_n_ticks=1))
    ax.grid(visible=False, axis="x")
