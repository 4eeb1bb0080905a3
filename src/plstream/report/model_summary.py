"""ModelSummary: the results of a fitted model, under the same names for all models."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._core.types import Array, Float64Array
from ..monitoring.pipelines import feature_names, last_step
from ..plots.features import MOST_LINES
from ..plots.names import response_names, weights_of

# Maximum number of responses shown as columns of a table.
N_RESPONSES = 4


class ModelSummary:
    """The results of a fitted model of this package, or of the last step of a pipeline; None for those it lacks."""

    def __init__(self, model: Any) -> None:
        last = last_step(model)
        is_ours = any(kind.__module__.startswith("plstream.") for kind in type(last).__mro__)
        if not (is_ours and hasattr(last, "get_params")):
            inside = next((name for name in ("best_estimator_", "estimator_", "model") if hasattr(last, name)), None)
            instead = f": pass its {inside}" if inside else ""
            raise TypeError(f"A report requires a fitted model of plstream, not {type(last).__name__}{instead}.")
        check_is_fitted(last)
        self.given, self.model, self.kind = model, last, type(last).__name__
        steps = [step for _, step in model.steps[:-1]] if last is not model else []
        self.before = tuple(type(step).__name__ for step in steps if hasattr(step, "transform"))
        self.feature_names = tuple(map(str, feature_names(model)))
        self.n_rows: int | None = getattr(last, "n_samples_seen_", None)
        # One column per component: weights, or directions of another kind.
        self.weights = weights_of(last)
        self.loadings = self._first_of("x_loadings_")
        # One row per response.
        self.coefficients = self._first_of("coef_")
        self.scale = self._first_of("x_scale_")
        # VIP, or the scores by which a selector ranks features, and the features that it keeps.
        self.importance = self._first_of("vip_", "scores_")
        self.kept = self._first_of("support_")
        self.classes = self._first_of("classes_")
        # The number of components found, and requested.
        self.n_components: int | None = getattr(last, "n_components_", None)
        self.n_requested = self.n_components if self.weights is None else self.weights.shape[1]

    def _first_of(self, *names: str) -> Array | None:
        return next((np.asarray(getattr(self.model, name)) for name in names if hasattr(self.model, name)), None)

    @property
    def is_selector(self) -> bool:
        """Whether it selects features, and has no scores of rows."""
        return self.kept is not None

    @property
    def importance_name(self) -> str:
        """Name of the scores in ``importance``: VIP, or those of the selector."""
        return "VIP" if hasattr(self.model, "vip_") or self.kind == "VIPSelector" else "Score"

    def responses(self, target_names: list[str] | None = None) -> list[str]:
        """Return names of the responses, one per row of the coefficients."""
        return response_names(self.model, 1 if self.coefficients is None else len(self.coefficients), target_names)

    @property
    def is_used(self) -> Array | None:
        """Mask of features with nonzero weights; None without weights."""
        return None if self.weights is None else np.asarray(self.weights.any(axis=1))

    @property
    def strength(self) -> Float64Array:
        """Values by which features are ranked: importance or, without it, the largest scaled coefficient or weight."""
        if self.importance is not None:
            return np.asarray(self.importance, dtype=np.float64)
        if self.coefficients is not None:
            scaled = self.coefficients if self.scale is None else self.coefficients * self.scale
            return np.asarray(np.abs(scaled).max(axis=0))
        weights = np.zeros((len(self.feature_names), 1)) if self.weights is None else self.weights
        return np.asarray(np.abs(weights).max(axis=1))


def drawn_note(responses: list[str]) -> str:
    """Return a sentence about the responses drawn, if not all are."""
    n = len(responses)
    return f" The plot shows the first {MOST_LINES} of {n} responses." if n > MOST_LINES else ""
