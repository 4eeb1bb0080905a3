"""PredictionDisplay: predicted against measured values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from .._core.metrics import RegressionMetrics
from .._core.types import Array, Float64Array
from .._core.validation import names_of_target
from ..monitoring.pipelines import last_step
from .display import SMALL, Display, label, points, sampled_title
from .interactive import PlotlyFigure, colour, dashed, figure, markers, numbers
from .names import response_names
from .palette import CLASSES, INK, PAPER
from .thinning import sample

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class PredictionDisplay(Display):
    """Predicted against measured values, with RMSE, R2 and bias.

    With more than 10,000 rows, only those with the largest errors and a random sample are drawn, and the title says so.
    The statistics are computed from all rows.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Measured and predicted values.
    name : str, default="y"
        Their name.
    rows : array-like of shape (n_samples,), default=None
        Row numbers. By default 0, 1 and so on.

    Attributes
    ----------
    rmse_, r2_, bias_ : float
        Root mean squared error, share of the variance explained (as in scikit-learn), and mean error.
    ax_, figure_
        The axes of the last plot, and their figure.

    Examples
    --------
    >>> from plstream.plots import PredictionDisplay
    >>> display = PredictionDisplay([1.0, 2.0, 3.0], [1.5, 2.5, 3.5], name="octane").plot()
    >>> display.ax_.get_xlabel(), display.bias_
    ('Measured octane', 0.5)
    """

    size = (4.2, 4.0)

    def __init__(self, y_true: Any, y_pred: Any, *, name: str = "y", rows: Any = None) -> None:
        self.y_true: Float64Array = np.asarray(y_true, dtype=np.float64).ravel()
        self.y_pred: Float64Array = np.asarray(y_pred, dtype=np.float64).ravel()
        if len(self.y_true) != len(self.y_pred) or not len(self.y_true):
            raise ValueError(
                f"There are {len(self.y_true)} measured but {len(self.y_pred)} predicted values: pass the same number "
                "of both."
            )
        self.name = name
        self.rows: Array = np.arange(len(self.y_true)) if rows is None else np.asarray(rows)
        metrics = RegressionMetrics(self.y_true[:, None])
        metrics.add(self.y_true, self.y_pred)
        self.rmse_, self.r2_, self.bias_ = float(metrics.rmse[0]), float(metrics.r2[0]), float(metrics.bias[0])

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        target: int = 0,
        name: str | None = None,
        ax: Axes | None = None,
        draw: bool = True,
        **options: Any,
    ) -> Self:
        """Draw the predictions of a model.

        Parameters
        ----------
        model : object
            A fitted regressor.
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Measured values.
        target : int, default=0
            Index of the response, if there are several.
        name : str, default=None
            Its name. By default that of ``y``, or of y in ``fit``, or "y".
        ax : matplotlib.axes.Axes, default=None
            Axes to draw in. None for a new figure.
        draw : bool, default=True
            Whether to draw with matplotlib.
        **options
            Further parameters of ``plot``.
        """
        if is_classifier(model) or hasattr(model, "classes_"):
            raise TypeError(f"{type(model).__name__} predicts labels: use scikit-learn's ConfusionMatrixDisplay.")
        y_true = np.asarray(y)
        y_pred = np.asarray(model.predict(X))
        y_true, y_pred = (values if values.ndim == 1 else values[:, target] for values in (y_true, y_pred))
        if name is None:
            n_responses = 1 if np.ndim(y) == 1 else np.shape(y)[1]
            name = response_names(last_step(model), n_responses, names_of_target(y))[target]
        display = cls(y_true, y_pred, name=name)
        return display.plot(ax, **options) if draw else display

    def _draw(self, ax: Axes, title: str) -> None:
        drawn = self._drawn
        low, high = self._range()
        margin = 0.04 * (high - low) or 1.0
        ends = low - margin, high + margin
        ax.plot(ends, ends, color=INK, linewidth=1, linestyle="--", zorder=1, gid="identity")
        ax.scatter(self.y_true[drawn], self.y_pred[drawn], color=CLASSES[0], zorder=2, **points(len(drawn)))
        ax.set(xlim=ends, ylim=ends)
        ax.set_aspect("equal", adjustable="box")
        ax.locator_params(nbins=6)
        # On the training rows, the bias is a rounding error.
        bias = self.bias_ if abs(self.bias_) > 1e-9 * max(abs(low), abs(high)) else 0.0
        note = f"RMSE {self.rmse_:.3g}\nR² {self.r2_:.3f}\nbias {bias:.2g}"
        box = {"facecolor": PAPER, "edgecolor": "none", "alpha": 0.85, "pad": 2}
        look: dict[str, Any] = {"va": "top", "fontsize": SMALL + 0.5, "color": INK, "linespacing": 1.4, "bbox": box}
        ax.text(0.03, 0.97, note, transform=ax.transAxes, **look)
        title = sampled_title(title, len(drawn), len(self.y_true))
        label(ax, f"Measured {self.name}", f"Predicted {self.name}", title)

    def plotly(self) -> PlotlyFigure:
        """Return the figure as data for Plotly; row numbers and errors appear on hover."""
        drawn = self._drawn
        x, y = self.y_true[drawn], self.y_pred[drawn]
        hover = "measured %{x:.4g}<br>predicted %{y:.4g}<br>error %{text}"
        rows = markers(x, y, self.rows[drawn], hover, "rows", {"color": colour(0)})
        rows["text"] = ["" if error is None else f"{error:.4g}" for error in numbers(y - x)]
        data = [rows, dashed(self._range(), self._range(), "as measured")]
        return figure(f"Measured {self.name}", f"Predicted {self.name}", data)

    @property
    def _drawn(self) -> NDArray[np.intp]:
        """Indices of the rows to draw."""
        return sample(np.abs(self.y_pred - self.y_true))

    def _range(self) -> tuple[float, float]:
        low, high = min(self.y_true.min(), self.y_pred.min()), max(self.y_true.max(), self.y_pred.max())
        return float(low), float(high)
