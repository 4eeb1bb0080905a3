"""What a fitted model has, whatever its kind: the same names for what methods call differently, or nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._core.types import Array, Float64Array
from ..monitoring.names import feature_names
from ..monitoring.pipelines import last_step
from ..plots._features import positions


def counted(n: int, thing: str) -> str:
    """Return how many things there are, in words that agree.

    Examples
    --------
    >>> from plstream.report.traits import counted
    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"


def _inside(model: Any) -> str:
    """Return where the model is in what is none, as the end of a sentence."""
    name = next((name for name in ("best_estimator_", "estimator_", "model") if hasattr(model, name)), None)
    return "" if name is None else f": pass its {name}"


class Features:
    """The features of a model.

    Parameters
    ----------
    names : sequence of str
        Their names.

    Attributes
    ----------
    names : tuple of str
        Their names.
    axis : str
        What the axis is called if names are numbers in order, such as wavelengths, else nothing.
    positions : ndarray
        Where they are on it.

    Examples
    --------
    >>> from plstream.report.traits import Features
    >>> features = Features(["1100", "1102.5"])
    >>> features.axis, features.positions.tolist()
    ('Wavelength', [1100.0, 1102.5])
    """

    def __init__(self, names: Iterable[object]) -> None:
        self.names = tuple(map(str, names))
        self.axis, self.positions = positions(np.array(self.names, dtype=object))

    def __len__(self) -> int:
        return len(self.names)


class Traits:
    """What a fitted model has.

    Parameters
    ----------
    model : object
        A fitted model of this package, or a pipeline that ends with one.

    Attributes
    ----------
    kind : str
        Name of its class.
    before : tuple of str
        Names of the steps before it, in a pipeline.
    features : Features
        Its features.
    n_rows : int or None
        Rows that it was made from.
    n_components, n_asked : int or None
        Components that it has, and those asked for.
    weights, loadings : ndarray of shape (n_features, n_components), or None
        Weights (or directions of another kind), and loadings of X.
    coefficients : ndarray of shape (n_responses, n_features), or None
        Coefficients.
    scale : ndarray of shape (n_features,), or None
        What features are divided by.
    importance : ndarray of shape (n_features,), or None
        VIP, or what a selector ranks features by.
    kept : ndarray of shape (n_features,), or None
        Which features a selector keeps.
    classes : ndarray, or None
        Labels that it predicts.
    """

    def __init__(self, model: Any) -> None:
        last, _ = last_step(model)
        is_ours = any(kind.__module__.startswith("plstream.") for kind in type(last).__mro__)
        if not (is_ours and hasattr(last, "get_params")):
            raise TypeError(f"A report is of a fitted model of plstream, not of {type(last).__name__}{_inside(last)}.")
        check_is_fitted(last)
        steps = [step for _, step in model.steps[:-1]] if last is not model else []
        self.before = tuple(type(step).__name__ for step in steps if hasattr(step, "transform"))
        self.features = Features(feature_names(model))
        model = last
        self.model = model
        self.kind = type(model).__name__
        self.n_rows: int | None = getattr(model, "n_samples_seen_", None)
        self.weights = self._first_of("x_weights_", "scalings_")
        if self.weights is None and (components := self._first_of("components_")) is not None:
            self.weights = components.T
        self.loadings = self._first_of("x_loadings_")
        self.coefficients = self._first_of("coef_")
        self.scale = self._first_of("x_scale_")
        self.importance = self._first_of("vip_", "scores_")
        self.kept = self._first_of("support_")
        self.classes = self._first_of("classes_")
        self.n_components: int | None = getattr(model, "n_components_", None)
        self.n_asked = self.n_components if self.weights is None else self.weights.shape[1]

    def _first_of(self, *names: str) -> Array | None:
        return next((np.asarray(getattr(self.model, name)) for name in names if hasattr(self.model, name)), None)

    @property
    def is_selector(self) -> bool:
        """Whether it keeps features, and has no scores."""
        return self.kept is not None

    @property
    def importance_name(self) -> str:
        """What the importance is called."""
        return "VIP" if hasattr(self.model, "vip_") or self.kind == "VIPSelector" else "Score"

    def responses(self, target_names: list[str] | None = None) -> list[str]:
        """Return names of what is predicted, one for each row of the coefficients."""
        n = 1 if self.coefficients is None else len(self.coefficients)
        if self.classes is not None:
            # Of two classes, the second is what the only response stands for.
            return [str(name) for name in (self.classes if n == len(self.classes) else self.classes[-n:])]
        if target_names is not None and len(target_names) == n:
            return list(target_names)
        return ["y"] if n == 1 else [f"y{k}" for k in range(n)]

    @property
    def unused(self) -> int:
        """Features that have no part in the model, as they did not vary with anything in the rows it was made from."""
        if self.weights is None or not self.n_components:
            return 0
        return int(np.count_nonzero(~self.weights.any(axis=1)))

    @property
    def strength(self) -> Float64Array:
        """What features are ranked by: their importance, else their largest coefficient, scaled, or weight."""
        if self.importance is not None:
            return np.asarray(self.importance, dtype=np.float64)
        if self.coefficients is not None:
            scaled = self.coefficients if self.scale is None else self.coefficients * self.scale
            return np.asarray(np.abs(scaled).max(axis=0))
        return np.zeros(len(self.features)) if self.weights is None else np.asarray(np.abs(self.weights).max(axis=1))
