"""Predictions of online methods whose solution has coefficients: of labels or of values, as y was."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if

from .._core.labels import as_labels
from .._core.types import Array
from ._base import OnlineMethod


def _predicts(model: Any) -> bool:
    if model.variant != model._predicting_variant:
        raise AttributeError(
            f"variant={model.variant!r} has loadings that no prediction can be made with: use "
            f"variant={model._predicting_variant!r}."
        )
    return True


class PredictingMethod(OnlineMethod):
    """An online method that is a classifier or a regressor in one of its variants.

    Its solution has ``coef``, of shape (n_columns, n_features), and ``y_mean``.
    """

    variant: str
    _predicting_variant: ClassVar[str]

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
            Labels, the one whose response is predicted to be largest; or values, with as many dimensions as the y of
            the fit.
        """
        solution, encoding = self._solution(), self._encoding
        assert encoding is not None
        values = self._map_product(X, solution.coef.T, lambda product: product)
        return encoding.decode(values + solution.y_mean)

    @available_if(_predicts)
    def score(self, X: Any, y: Any) -> float:
        """Return how good predictions are: the share of labels that are right, or the R² of values.

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
        # It takes time to import.
        from sklearn.metrics import accuracy_score, r2_score

        predicted = self.predict(X)
        assert self._encoding is not None
        return float((r2_score if self._encoding.labels is None else accuracy_score)(y, predicted))

    def __sklearn_tags__(self) -> Any:
        """Return the tags: those of a classifier or regressor if it predicts, and ``target`` or y has said what."""
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

    def _as_target(self, y: Any, classes: Any) -> Array:
        if self.target != "labels":
            return super()._as_target(y, classes)
        # As of classifiers, of which it is one then.
        return as_labels(y, type(self).__name__, first=classes is None and not hasattr(self, "_state"))
