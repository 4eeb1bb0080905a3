"""Base classes of selectors that rank features by scores and keep the best."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from .._core.schema import FEATURES, ClassLabels, Numbers, OrMissing, stored
from .._core.tiles import require_finite
from .._core.types import Array, Float64Array
from .._core.validation import as_numpy, changed_at_once
from .._core.warnings import warn_user

# Scores are ties if they differ by less than this relative tolerance, or by less than this share of the largest score.
TIE = 1e-12
_TIE_OF_LARGEST = 4e-15
# Accepted dtypes of features. Any other dtype is converted to the first one before it is checked.
_DTYPES = [np.dtype(code) for code in "dfe?bhilqBHILQ"]
# n_features_to_select: a number, a share, or the default of the selector.
A_NUMBER_OR_SHARE: list[Any] = [
    None,
    Interval(Integral, 1, None, closed="left"),
    Interval(Real, 0, 1, closed="right"),
]


class NumpySelector(SelectorMixin):
    """A selector that returns NumPy arrays for input of any array library."""

    def transform(self, X: Any) -> Any:
        """Return the columns of X that are kept.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        kept : array or sparse matrix of shape (n_samples, n_selected_features)
        """
        # With dispatch on, scikit-learn 1.6 interprets the mask as column indices.
        with config_context(array_api_dispatch=False):
            return super().transform(as_numpy(X, "X"))

    def inverse_transform(self, X: Any) -> Any:
        """Return rows with zeros in the columns that are not kept.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_selected_features)
            The columns that are kept.

        Returns
        -------
        X : array or sparse matrix of shape (n_samples, n_features)
        """
        with config_context(array_api_dispatch=False):
            return super().inverse_transform(as_numpy(X, "X"))


@stored(
    {
        **FEATURES,
        "scores_": Numbers("m", finite=False),
        "ranking_": Numbers("m", dtypes=("int64",), least=1),
        "support_": Numbers("m", dtypes=("bool",)),
        "classes_": OrMissing(ClassLabels("k")),
    },
    {
        "ranks are 1, 2, ...": lambda its: np.array_equal(np.sort(its.ranking_), np.arange(1, len(its.ranking_) + 1)),
        "the first features are kept": lambda its: np.array_equal(
            its.support_, its.ranking_ <= np.count_nonzero(its.support_)
        ),
    },
)
class FeatureRanking(NumpySelector, BaseEstimator):
    """A selector that scores all features and keeps the best. Methods differ in :meth:`_score`."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"n_features_to_select": A_NUMBER_OR_SHARE}

    n_features_to_select: float | str | None
    scores_: Float64Array
    ranking_: NDArray[np.intp]
    support_: NDArray[np.bool_]

    def fit(self, X: Any, y: Any = None) -> Self:
        """Score and rank the features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,), default=None
            Labels, ignored by unsupervised methods.

        Returns
        -------
        self : object
            The fitted selector.
        """
        self._validate_params()
        with changed_at_once(self) as (twin,):
            twin._fit(X, y)
        return self

    def _fit(self, X: Any, y: Any) -> None:
        """Set the results."""
        # Numbers too large for float64 become infinite, and are then refused.
        with np.errstate(over="ignore"):
            X = as_numpy(X, "X")
            rows: Array = validate_data(self, X, dtype=_DTYPES, ensure_min_samples=2, ensure_all_finite=False)
        require_finite("X", rows)
        classes = None
        if self.__sklearn_tags__().target_tags.required:
            classes = self._validate_labels(y, len(rows))
        elif hasattr(self, "classes_"):
            del self.classes_
        self.scores_ = self._score(rows, classes)
        self.ranking_ = ranking_of(self._ranked_by())
        wanted = 0.5 if self.n_features_to_select is None else self.n_features_to_select
        n_kept = number_by_bins(self.scores_) if wanted == "bins" else number_to_keep(wanted, len(self.scores_))
        self.support_ = self.ranking_ <= n_kept

    def _score(self, X: Array, classes: NDArray[np.intp] | None) -> Float64Array:
        """Return the scores of the features; ``classes`` are class indices, or None for unsupervised methods."""
        raise NotImplementedError

    def _ranked_by(self) -> Float64Array:
        """Return the ranking criterion: the scores, unless a method can distinguish equal scores."""
        return self.scores_

    def _validate_labels(self, y: Any, n_rows: int) -> NDArray[np.intp]:
        name = type(self).__name__
        if y is None:
            raise ValueError(f"{name} requires y to be passed, but the target y is None: pass the labels as y.")
        labels = column_or_1d(as_numpy(y, "y"), warn=True)
        if len(labels) != n_rows:
            raise ValueError(f"X has {n_rows} rows, but y has {len(labels)} labels: pass one label per row.")
        try:
            check_classification_targets(labels)
            self.classes_, classes = np.unique(labels, return_inverse=True)
        except TypeError:
            raise ValueError(
                "y has labels that cannot be sorted, such as None among strings: use labels of one type."
            ) from None
        if len(self.classes_) < 2:
            label = self.classes_.tolist()[0]
            raise ValueError(f"{name} requires rows of at least two classes, but all rows have the label {label!r}.")
        tags = self.__sklearn_tags__().classifier_tags
        if len(self.classes_) > 2 and tags is not None and not tags.multi_class:
            own = " ".join(str(self).split())
            raise ValueError(f"{own} requires two classes, but y has {len(self.classes_)}.")
        return classes

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "support_")
        return self.support_


def needs_labels(tags: Tags, *, multi_class: bool) -> Tags:
    """Set the tags of a selector that requires labels."""
    tags.target_tags.required = True
    # Not a classifier, but scikit-learn has no other tag for the number of classes.
    tags.classifier_tags = ClassifierTags(multi_class=multi_class)
    return tags


def number_to_keep(n_features_to_select: Any, n_features: int) -> int:
    """Return the number of features to keep; a fraction is rounded, halves up, to at least one feature."""
    if not isinstance(n_features_to_select, (int, np.integer)):
        # Rounded to a millionth: 0.145 * 100 is slightly less than 14.5.
        return max(1, int(np.floor(round(n_features_to_select * n_features, 6) + 0.5)))
    if n_features_to_select > n_features:
        warn_user(f"X has {n_features} features, fewer than n_features_to_select={n_features_to_select}: all are kept.")
    return min(int(n_features_to_select), n_features)


def number_by_bins(scores: Float64Array) -> int:
    """Return the number of histogram bins that hold more scores than average, for half as many bins as scores."""
    if np.ptp(scores) <= TIE * scores.max():
        # All scores are in one bin.
        return 1
    counts = np.histogram(scores, max(1, len(scores) // 2))[0]
    return max(1, int(np.sum(counts > counts.mean())))


def ranking_of(scores: Float64Array) -> NDArray[np.intp]:
    """Return the rank of every feature, 1 for the largest score.

    Scores that are equal up to rounding errors are ties, for example those of copies of a feature. Ties are ranked in
    column order, so that a ranking does not depend on rounding. Ties are transitive: a score that is tied with the next
    one is tied with all scores that this one is tied with.
    """
    order = np.argsort(-scores, kind="stable")
    sizes = np.abs(np.where(np.isfinite(scores), scores, 0.0))
    # Equal infinities are also ties: their difference is NaN, which compares as no drop.
    with np.errstate(invalid="ignore"):
        drops = -np.diff(scores[order], prepend=scores[order[:1]])
    group = np.cumsum(drops > TIE * sizes[order] + _TIE_OF_LARGEST * sizes.max(initial=0.0))
    return np.argsort(order[np.lexsort((order, group))]) + 1
