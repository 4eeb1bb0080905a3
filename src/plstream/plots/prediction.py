"""PredictionDisplay: what is predicted against what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import is_classifier

from .._core.types import Float64Array
from ._axes import SMALL, Display, label, points
from ._many import of_many, sample
from .palette import CLASSES, INK, PAPER

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class PredictionDisplay(Display):
    """Predicted against measured values, with RMSE, R2 and bias.

    Of more than 10,000 rows some are drawn, and the title says so: those with the largest errors, and others at random.
    The numbers are of all rows.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Measured and predicted values.
    name : str, default="y"
        What they are.

    Attributes
    ----------
    rmse_, r2_, bias_ : float
        Root mean squared error, share of the variance explained (NaN if y does not vary), and mean error.
    ax_, figure_
        The axes that it was drawn in, and their figure.

    Examples
    --------
    >>> from plstream.plots import PredictionDisplay
    >>> display = PredictionDisplay([1.0, 2.0, 3.0], [1.5, 2.5, 3.5], name="octane").plot()
    >>> display.ax_.get_xlabel(), display.bias_
    ('Measured octane', 0.5)
    """

    size = (4.2, 4.0)

    def __init__(self, y_true: Any, y_pred: Any, *, name: str = "y") -> None:
        self.y_true: Float64Array = np.asarray(y_true, dtype=np.float64).ravel()
        self.y_pred: Float64Array = np.asarray(y_pred, dtype=np.float64).ravel()
        if len(self.y_true) != len(self.y_pred) or not len(self.y_true):
            raise ValueError(
                f"There are {len(self.y_true)} measured and {len(self.y_pred)} predicted values: both must be as many."
            )
        self.name = name
        errors = self.y_pred - self.y_true
        variance = float(np.var(self.y_true))
        self.rmse_ = float(np.sqrt(np.mean(errors**2)))
        self.r2_ = 1 - float(np.mean(errors**2)) / variance if variance else np.nan
        self.bias_ = float(np.mean(errors))

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any, *, target: int = 0, name: str = "y", ax: Axes | None = None, **options: Any
    ) -> Self:
        """Draw the predictions of a model.

        Parameters
        ----------
        model : object
            A fitted regressor.
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            What was measured.
        target : int, default=0
            Which response, if there are several.
        name : str, default="y"
            What it is.
        ax : matplotlib.axes.Axes, default=None
            Where to. By default in a new figure.
        **options
            Others of ``plot``.

        Returns
        -------
        display : PredictionDisplay
        """
        if is_classifier(model) or hasattr(model, "classes_"):
            raise TypeError(f"{type(model).__name__} predicts labels: use scikit-learn's ConfusionMatrixDisplay.")
        y_true = np.asarray(y)
        y_pred = np.asarray(model.predict(X))
        y_true, y_pred = (values if values.ndim == 1 else values[:, target] for values in (y_true, y_pred))
        return cls(y_true, y_pred, name=name).plot(ax, **options)

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
        display : PredictionDisplay
        """
        ax = self._begin(ax)
        drawn = sample(np.abs(self.y_pred - self.y_true))
        low = min(self.y_true.min(), self.y_pred.min())
        high = max(self.y_true.max(), self.y_pred.max())
        margin = 0.04 * (high - low) or 1.0
        ends = low - margin, high + margin
        ax.plot(ends, ends, color=INK, linewidth=1, linestyle="--", zorder=1, gid="identity")
        ax.scatter(self.y_true[drawn], self.y_pred[drawn], color=CLASSES[0], zorder=2, **points(len(drawn)))
        ax.set(xlim=ends, ylim=ends)
        ax.set_aspect("equal", adjustable="box")
        ax.locator_params(nbins=6)
        # Of rows that the model was made from it is a rounding error.
        bias = self.bias_ if abs(self.bias_) > 1e-9 * max(abs(low), abs(high)) else 0.0
        note = f"RMSE {self.rmse_:.3g}\nR² {self.r2_:.3f}\nbias {bias:.2g}"
        ax.text(
            0.03,
            0.97,
            note,
            transform=ax.transAxes,
            va="top",
            fontsize=SMALL + 0.5,
            color=INK,
            linespacing=1.4,
            bbox={"facecolor": PAPER, "edgecolor": "none", "alpha": 0.85, "pad": 2},
        )
        titles = [part for part in (title, of_many(len(drawn), len(self.y_true))) if part]
        label(ax, f"Measured {self.name}", f"Predicted {self.name}", "\n".join(titles))
        return self
