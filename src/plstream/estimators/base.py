"""PLSBase: base class of all PLS estimators, with fitted attributes and scores."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from numbers import Integral, Real
from sys import getsizeof
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._core.labels import as_one_target
from .._core.projection import centred_product
from .._core.schema import FEATURES, stored
from .._core.types import FloatArray, Rows
from .._core.validation import as_one_row
from ..rows import by_blocks
from ..solvers.solution import Solution
from .attributes import Solved
from .fitted import are_affordable
from .missing import CompletedBefore
from .training import learn_one_row, merge_models

_PLAIN_TYPES = frozenset({bool, int, float, str, type(None)})
# Valid parameter values and types.
_valid_parameters: set[tuple[Any, ...]] = set()
_MOST_REMEMBERED = 1000


def _parameter_is_affordable(its: Any) -> bool:
    """Return whether the memory that ``partial_fit`` needs is in proportion to the arrays of a model file."""
    n_components = its.parameters.get("n_components", its.parameters.get("max_components"))
    # Other values are refused by partial_fit.
    return type(n_components) is not int or are_affordable(n_components, its._fitted)


@stored(FEATURES, {"components to come are in proportion to its arrays": _parameter_is_affordable})
class PLSBase(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A PLS model; ``_fitted`` holds the result of training."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "scale": ["boolean"],
        "sketch_size": [Interval(Integral, 2, None, closed="left"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "missing": [StrOptions({"error", "model"})],
    }

    _fitted: Any
    missing: str = "error"
    # The values of ``missing`` that accept NaN in X and y, named in error messages.
    _missing_by: ClassVar[dict[str, str]] = {"X": "model", "y": "model"}

    x_weights_ = Solved("Weights of X.")
    x_loadings_ = Solved("Loadings of X.")
    x_rotations_ = Solved("Rotations of X.")
    y_weights_ = Solved("Weights of y.")
    y_loadings_ = Solved("Loadings of y.")
    y_rotations_ = Solved("Rotations of y.")
    coef_ = Solved("Coefficients of the centred X.")
    intercept_ = Solved("Means of y.")
    x_mean_ = Solved("Means of X.")
    x_scale_ = Solved("Divisors of X.")
    y_mean_ = Solved("Means of y.")
    y_scale_ = Solved("Divisors of y.")
    n_components_ = Solved("Number of components found in the data.")
    vip_ = Solved("Variable importance in projection.")
    x_explained_variance_ratio_ = Solved("Share of the variance of X that each component explains.")
    y_explained_variance_ratio_ = Solved("Share of the variance of y that each component explains.")
    retained_variance_ = Solved("Share of the variance of X that the state still holds.")
    subspace_error_ = Solved("Estimated sine of the angle to the exact solution, for each number of components.")

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        # scikit-learn inspects the signature in every fit, which takes as long as fitting a small array.
        return super()._get_param_names()

    def _validate_params(self) -> None:
        # Validation is equally slow, so parameters that are numbers, strings, booleans or None are validated only once.
        values = [*map(vars(self).__getitem__, self._get_param_names())]
        key = (type(self), *map(type, values), *values) if _PLAIN_TYPES.issuperset(map(type, values)) else None
        if key is None or key not in _valid_parameters:
            super()._validate_params()
            if key is not None and len(_valid_parameters) < _MOST_REMEMBERED:
                _valid_parameters.add(key)

    def transform(self, X: Any, y: Any = None, *, n_components: int | None = None) -> FloatArray:
        """Return the scores of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The rows. With a Dask array or dataframe the result is a Dask array.
        y : None
            Not supported. Unlike scikit-learn's ``PLSRegression``, this method returns only the scores of X.
        n_components : int, default=None
            Use only the first components.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_components)
            float32 if X is, else float64.
        """
        if y is not None:
            of_y = ", transform_y(y) those of y" if hasattr(self, "transform_y") else ""
            raise ValueError(f"transform takes no y: transform(X) returns the scores of X{of_y}.")
        solution, k = self._solution(), self._components_to_use(n_components)
        projection = solution.projection(k)

        def scores(rows: Rows) -> FloatArray:
            dtype = np.float32 if rows.dtype == np.float32 else np.float64
            return centred_product(rows, solution.x_mean, projection, dtype)

        return by_blocks(self, X, self._completing(scores))

    @property
    def n_missing_(self) -> NDArray[np.int64]:
        """Number of missing values of each feature in the training samples."""
        gaps = self._require_fitted().missing
        return np.zeros(self.n_features_in_, np.int64) if gaps is None else gaps.n_missing.astype(np.int64)

    def learn_one(self, x: Any, y: Any = None) -> Self:
        """Add one row to the model, like ``partial_fit`` but faster.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            The row: an array with features in the order of the first call, or a pandas Series with their names.
        y : float, label or array-like of shape (n_targets,)
            Its response, label or responses.

        Returns
        -------
        self : object
        """
        row = as_one_row(x)
        if not learn_one_row(self, row, y):
            cast("Any", self).partial_fit(row, as_one_target(y))
        return self

    def transform_one(self, x: Any) -> FloatArray:
        """Return the scores of one row.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            The row, see ``learn_one``.

        Returns
        -------
        scores : ndarray of shape (n_components,)
            float32 if x is, else float64.
        """
        scores: FloatArray = self.transform(as_one_row(x))[0]
        return scores

    def predict_one(self, x: Any) -> Any:
        """Predict the response, label or responses of one row.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            The row, see ``learn_one``.

        Returns
        -------
        y : label, float or ndarray of shape (n_targets,)
            As returned by ``predict`` for one row.
        """
        return cast("Any", self).predict(as_one_row(x))[0]

    @property
    def n_samples_seen_(self) -> int:
        """Number of training samples."""
        return int(self._require_fitted().n_rows)

    @property
    def solver_(self) -> str:
        """The solver in use."""
        return str(self._require_fitted().solver)

    @property
    def n_reads_(self) -> int:
        """Number of reads of the data by ``fit``."""
        return int(self._require_fitted().n_reads)

    def _completing(self, function: Callable[[Rows], Any]) -> Callable[[Rows], Any]:
        """Return the function, preceded by the completion of missing values if ``missing`` is "model"."""
        return CompletedBefore(function, self._fitted.factor_model()) if self.missing == "model" else function

    def _require_fitted(self) -> Any:
        check_is_fitted(self)
        return self._fitted

    def _solution(self) -> Solution:
        """Return the solution for the rows so far."""
        return self._require_fitted().solved()

    def _components_to_use(self, n_components: Any, most: int | None = None) -> int:
        most = self._n_features_out if most is None else most
        if n_components is None:
            return self._n_features_out
        if not (isinstance(n_components, Integral) and n_components in range(1, most + 1)):
            given = n_components if isinstance(n_components, Real | str) else f"a {type(n_components).__name__}"
            raise ValueError(f"n_components must be an integer from 1 to the model's {most}, not {given}.")
        return int(n_components)

    @property
    def _n_features_out(self) -> int:
        # Not n_components, which may have changed since the fit.
        return int(self._solution().x_weights.shape[1])

    def __sizeof__(self) -> int:
        # Dask uses it to track memory.
        fitted = vars(self).get("_fitted")
        return object.__sizeof__(self) + (0 if fitted is None else getsizeof(fitted.stream) + getsizeof(fitted.moments))

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing == "model"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class SingleModel(PLSBase):
    """Base class of the estimators with a fixed number of components."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PLSBase._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions({"auto", "multipass", "gram", "sketch"})],
        "forgetting": [Interval(Real, 0.0, 1.0, closed="right")],
        "read_tol": [Interval(Real, 0.0, None, closed="left")],
        "max_reads": [Interval(Integral, 1, None, closed="left"), None],
    }

    def merge(self, other: Self, *, later: bool | None = None) -> Self:
        """Merge another model into this one. The other model is left unchanged.

        Parameters
        ----------
        other : object
            A model fitted to other rows, with the same class, parameters and features. The class labels of two
            classifiers may differ.
        later : bool, default=None
            Whether the rows of ``other`` came after those of this model, which are then forgotten accordingly. If
            False, both sets of rows count as equally old. With ``forgetting=1.0`` this makes no difference; otherwise
            the default is False, with a warning.

        Returns
        -------
        self : object
        """
        return merge_models(self, other, later=later)
