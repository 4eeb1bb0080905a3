"""Online methods that predict labels or values, and the stacked models of all columns of y."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if

from .._core.schema import Count, Numbers, Object, Rule, is_in_proportion, solved_numbers, stored
from .._core.types import Array, Float64Array
from ..estimators.attributes import Solved
from ..solvers import Factors, importance
from .base import Method, OnlineMethod, stored_method
from .state import OnlineState


def rotations(W: Float64Array, P: Float64Array) -> Float64Array:
    """Return r_i = w_i - sum over j < i of (p_j.w_i) r_j, one per row.

    They map a row to the scores w_i.(x - t_1 p_1 - ... - t_(i-1) p_(i-1)). R = W (P'W)^-1 does so only if P'W is unit
    triangular, which it is not for running regressions.
    """
    R = W.copy()
    for i in range(1, len(W)):
        R[i] -= (P[:i] @ W[i]) @ R[:i]
    return R


@stored()
@dataclass(frozen=True)
class StackedModels:
    """One PLS model per column of y, with concatenated components, in the units of the data."""

    x_mean: Annotated[Float64Array, Numbers("m")]
    y_mean: Annotated[Float64Array, Numbers("q")]
    x_weights: Annotated[Float64Array, solved_numbers("m", "s")]
    x_loadings: Annotated[Float64Array, solved_numbers("m", "s")]
    x_rotations: Annotated[Float64Array, solved_numbers("m", "s")]
    y_loadings: Annotated[Float64Array, solved_numbers("q", "s")]
    y_lengths: Annotated[Float64Array, solved_numbers("q", "s")]
    """Roots of the explained sums of squares of each column of y, in units that avoid overflow and underflow."""
    n_components: Annotated[int, Count()]

    @classmethod
    def of(cls, state: OnlineState, models: Sequence[Factors]) -> StackedModels:
        """Concatenate the models of all columns of y, and convert them to the units of the data."""
        # Block diagonal. SciPy's function takes longer than all else for one model.
        blocks = np.zeros((len(models), len(models), len(models[0].score_squares)))
        for k, model in enumerate(models):
            blocks[k, k] = model.y_loadings
        y_loadings = blocks.reshape(len(models), -1)
        with np.errstate(over="ignore", under="ignore"):
            y_loadings_of_data = y_loadings / (state.y.unit or 1.0) * (state.x.unit or 1.0)
        return cls(
            x_mean=state.x.mean,
            y_mean=state.y.mean,
            x_weights=np.hstack([model.x_weights for model in models]),
            x_loadings=np.hstack([model.x_loadings for model in models]),
            x_rotations=np.hstack([model.x_rotations for model in models]),
            y_loadings=y_loadings_of_data,
            y_lengths=y_loadings * np.sqrt(np.hstack([model.score_squares for model in models])),
            n_components=sum(model.n_components for model in models),
        )

    projection = property(attrgetter("x_rotations"))
    # The prediction for the mean of X.
    intercept = property(attrgetter("y_mean"))

    @property
    def coef(self) -> Float64Array:
        """Coefficients of the centred X."""
        coefficients: Float64Array = self.x_rotations @ self.y_loadings.T
        return coefficients.T

    @property
    def vip(self) -> Float64Array:
        """Variable importance in projection."""
        return importance(self.x_weights, self.y_lengths)


def _predicts(model: Any) -> bool:
    if model.variant != model._predicting_variant:
        raise AttributeError(
            f"variant={model.variant!r} does not support prediction: use variant={model._predicting_variant!r}."
        )
    return True


def stored_predictor(*recursions: type) -> Callable[[Method], Method]:
    """Declare a method whose solution is a :class:`StackedModels`."""
    rules: dict[str, Rule] = {
        # Loadings of every response for all components.
        "responses are in proportion to its arrays": lambda its: is_in_proportion(
            its.sizes["q"] ** 2 * its._begun_with["n_components"], its
        )
    }
    solution = Object(StackedModels, m="m", q="q", s="q*c")
    return stored_method(*recursions, solution=solution, components="c", rules=rules)


class PredictingMethod(OnlineMethod):
    """An online method that is a classifier or regressor in one of its variants.

    Its solution is a :class:`StackedModels`.
    """

    variant: str
    _predicting_variant: ClassVar[str]

    x_weights_ = Solved("Weights of X.")
    x_loadings_ = Solved("Loadings of X.")
    x_rotations_ = Solved("Rotations of X.")
    y_loadings_ = Solved("Loadings of y.")
    coef_ = Solved("Coefficients of the centred X.")
    intercept_ = Solved("Means of y.")
    x_mean_ = Solved("Means of X.")
    y_mean_ = Solved("Means of y.")
    vip_ = Solved("Variable importance in projection.")
    n_components_ = Solved("Number of components found so far.")

    @available_if(_predicts)
    def predict(self, X: Any) -> Array:
        """Predict labels or values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Labels of the largest predicted response, or values with the dimensions of the training y.
        """
        solution, encoding = self._solution(), self._encoding
        assert encoding is not None
        values = self._map_product(X, solution.coef.T, lambda product: product)
        return encoding.decode(values + solution.y_mean)

    @available_if(_predicts)
    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy of labels, or R² of values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their labels or values.

        Returns
        -------
        score : float
            Accuracy, or the mean of the R² of all responses.
        """
        # Slow to import.
        from sklearn.metrics import accuracy_score, r2_score

        predicted = self.predict(X)
        assert self._encoding is not None
        return float((r2_score if self._encoding.labels is None else accuracy_score)(y, predicted))

    def __sklearn_tags__(self) -> Any:
        """Return the tags: those of a classifier or regressor if it predicts and ``target`` or y determines which."""
        tags = super().__sklearn_tags__()
        known = {"labels": True, "values": False}.get(self.target)
        if self._encoding is not None:
            known = self._encoding.labels is not None
        tags.target_tags.multi_output = self.target != "labels"
        if self.variant == self._predicting_variant and known is not None:
            tags.estimator_type = "classifier" if known else "regressor"
            tags.classifier_tags = ClassifierTags() if known else None
            tags.regressor_tags = None if known else RegressorTags()
        return tags
