"""VIP: feature selection by variable importance in the projection of a PLS model."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, _fit_context, clone
from sklearn.cross_decomposition import CCA, PLSCanonical, PLSRegression
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .. import estimators, online
from .._core.schema import Object, OrMissing, OrNone, declared, stored
from .._core.types import Array, Float64Array
from ..data import Source
from ..distributed import OnWorkers
from ..estimators import IncrementalPLS
from ..estimators.attributes import Solved
from ..rows.collections import apply_lazily, is_collection
from ..solvers import column_lengths, importance
from .base import A_NUMBER_OR_SHARE, TIE, NumpySelector, number_to_keep, ranking_of


def vip_scores(estimator: Any, per_target: bool = False) -> Float64Array:  # noqa: FBT001, FBT002
    r"""Return the variable importance in projection (VIP) of every feature of a fitted PLS model.

    .. math::
        VIP_j = \sqrt{m \sum_i SS_i \frac{w_{ij}^2}{\|w_i\|^2} \Big/ \sum_i SS_i}, \quad
        SS_i = \|q_i\|^2 \, t_i^T t_i

    for m features, weights w, loadings q of y and scores t: the share of feature j in the weights, averaged over the
    components, each weighted by the sum of squares of y that it explains. No data is read.

    Parameters
    ----------
    estimator : object
        A fitted :class:`IncrementalPLS`, :class:`IncrementalPLSClassifier`, :class:`CIPLS` or :class:`OLPLS`, or
        scikit-learn's ``PLSRegression``, ``PLSCanonical`` or ``CCA``; or one of these in a ``FrozenEstimator``.
    per_target : bool, default=False
        Whether to return the importance for each column of y, with :math:`SS_i = q_{ki}^2 \, t_i^T t_i` for column k.

    Returns
    -------
    scores : ndarray of shape (n_features,), or (n_targets, n_features) if ``per_target``
        The mean of the squares is one for every target, or all are zero if nothing of y is explained. Columns of y are
        those of the model: one for two classes, else one per class; always one per class in IncrementalPLSClassifier.

    See Also
    --------
    VIPSelector : Keeps the features with the largest scores.

    Notes
    -----
    As a rule of thumb, features with a score above one are important, because the mean of the squares is one.

    The CIPLS paper prints the formula with :math:`w_{ij}/\|w_i\|^2`, not squared: an error, because its sums can be
    negative.

    For PLSCanonical and CCA, sums of squares are those of the components in the predictions of the model,
    :math:`T Q^T`, where q regresses y on scores of y. In PLS regression, they are the explained sums of squares.

    Components past the rank of the data are zero and do not count. In scikit-learn, they may be rounding errors instead
    of zero, and count with their share in its predictions.

    Report the ``variant`` with scores of :class:`CIPLS`. In "paper" and "released", the last component has nearly all
    of the weight, so they are hardly more than the last column of ``x_weights_`` (of each class).

    References
    ----------
    I.-G. Chong and C.-H. Jun, "Performance of some variable selection methods when multicollinearity is present",
    Chemometrics and Intelligent Laboratory Systems 78, 2005.

    T. Mehmood, K. H. Liland, L. Snipen and S. Sæbø, "A review of variable selection methods in partial least squares
    regression", Chemometrics and Intelligent Laboratory Systems 118, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import IncrementalPLS, vip_scores
    >>> X = np.random.default_rng(0).normal(size=(1000, 4))
    >>> Y = np.column_stack([2 * X[:, 0], X[:, 1]])
    >>> model = IncrementalPLS(n_components=2, scale=False).fit(X, Y)
    >>> vip_scores(model).round(1)
    array([1.8, 0.9, 0.1, 0. ])
    >>> vip_scores(model, per_target=True).round(1)
    array([[2. , 0.1, 0. , 0. ],
           [0.1, 2. , 0.1, 0. ]])
    """
    model = _pls_in(estimator)
    check_is_fitted(model)
    if _is_ours(model):
        solution = model._solution()
        return importance(solution.x_weights, solution.y_lengths, per_target=per_target)
    # PLSCanonical and CCA keep their scores in a private attribute.
    scores = model.x_scores_ if isinstance(model, PLSRegression) else model._x_scores
    return importance(model.x_weights_, model.y_loadings_ * column_lengths(scores), per_target=per_target)


def _pls_in(estimator: Any) -> Any:
    """Return the model itself; raise TypeError if VIP is not defined for its class."""
    model = estimator
    while isinstance(model, FrozenEstimator):
        model = model.estimator
    if _is_ours(model) or isinstance(model, PLSRegression | PLSCanonical | CCA):
        return model
    name = model.__name__ + ", a class" if isinstance(model, type) else type(model).__name__
    raise TypeError(
        "VIP is defined for IncrementalPLS, CIPLS and OLPLS, and for PLSRegression, PLSCanonical and CCA of "
        f"scikit-learn, not for {name}."
    )


def _is_ours(model: Any) -> bool:
    return isinstance(getattr(type(model), "vip_", None), Solved)


def _learns_in_parts(selector: VIPSelector) -> bool:
    model = selector._model_to_fit()
    if selector.prefit or isinstance(model, FrozenEstimator):
        raise AttributeError(
            "A fitted or frozen model is not trained by the selector: call partial_fit of the model itself."
        )
    if not hasattr(model, "partial_fit"):
        raise AttributeError(f"{type(model).__name__} has no partial_fit: use fit, or another model.")
    return True


_WITH_VIP = declared(estimators, online, having="vip_")


@stored(
    {
        "estimator": OrNone(Object(*_WITH_VIP, FrozenEstimator)),
        "_trained": OrMissing(Object(*_WITH_VIP, FrozenEstimator)),
    }
)
class VIPSelector(MetaEstimatorMixin, NumpySelector, BaseEstimator):
    """Select the features that are most important in the projection of a PLS model (VIP).

    The scores follow from the model, see :func:`vip_scores`: no data is read again. They are computed on access, so
    ``partial_fit`` costs as much as that of the model.

    Parameters
    ----------
    estimator : object, default=None
        The PLS model: :class:`IncrementalPLS`, :class:`IncrementalPLSClassifier`, :class:`CIPLS` or :class:`OLPLS`, or
        scikit-learn's ``PLSRegression``, ``PLSCanonical`` or ``CCA``. Default: ``IncrementalPLS()``, with two
        components. Results of CIPLS depend on its ``variant``.
    n_features_to_select : int or float, default=None
        Number of features to keep, or the fraction if it is a float in (0, 1]. Default: those with scores of at least
        ``threshold``.
    threshold : float, default=1.0
        Minimum score of features to keep, if their number is not given. The mean of the squared scores is one.
    prefit : bool, default=False
        Whether the estimator is already fitted. It is then used in its current state, even if trained further, and
        ``fit`` need not be called. Where estimators are cloned, as in a grid search, use a ``FrozenEstimator``
        instead.

    Attributes
    ----------
    estimator_ : object
        The fitted model, after ``fit`` or ``partial_fit``.
    scores_ : ndarray of shape (n_features,)
        VIP. The mean of its squares is one.
    ranking_ : ndarray of shape (n_features,)
        Ranks of the features, 1 for the largest score; ties in column order.
    support_ : ndarray of shape (n_features,)
        Which features are kept, by the current ``n_features_to_select`` and ``threshold``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X has names that are all strings.

    See Also
    --------
    vip_scores : The scores, also per target, and their definition.
    sklearn.feature_selection.SelectFromModel : Selection by coefficients or importances of any model.

    References
    ----------
    I.-G. Chong and C.-H. Jun, "Performance of some variable selection methods when multicollinearity is present",
    Chemometrics and Intelligent Laboratory Systems 78, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import CIPLS, VIPSelector
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 8))
    >>> y = X[:, 2] - X[:, 5] + 0.1 * rng.normal(size=2000)
    >>> VIPSelector().fit(X, y).get_support(indices=True)
    array([2, 5])

    From a stream of labels:

    >>> labels = np.where(y > 0, "high", "low")
    >>> selector = VIPSelector(CIPLS(), n_features_to_select=0.25)
    >>> for start in range(0, 2000, 100):
    ...     rows = slice(start, start + 100)
    ...     selector = selector.partial_fit(X[rows], labels[rows], classes=["high", "low"])
    >>> selector.transform(X).shape
    (2000, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit"]), None],
        "n_features_to_select": A_NUMBER_OR_SHARE,
        "threshold": [Interval(Real, 0, None, closed="left")],
        "prefit": ["boolean"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_features_to_select: float | None = None,
        threshold: float = 1.0,
        prefit: bool = False,
    ) -> None:
        self.estimator = estimator
        self.n_features_to_select = n_features_to_select
        self.threshold = threshold
        self.prefit = prefit

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit the model to X and y. With ``prefit``, only check that it is fitted.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows; sparse or a source if the model supports it.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Responses or labels. None if X is a source that contains them.
        **params : dict
            Other parameters of the model's ``fit``, such as ``sample_weight``. With metadata routing, those that it
            requests.

        Returns
        -------
        self : object
            The selector.
        """
        if self.prefit:
            self._model()
        else:
            self._trained = self._taught(self._fresh_model(), "fit", X, y, params)
        return self

    @available_if(_learns_in_parts)
    @_fit_context(prefer_skip_nested_validation=False)
    def partial_fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Update the model with more rows. A call that fails leaves the selector unchanged.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The new rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
            Their responses or labels. None if X is a source that contains them.
        **params : dict
            Other parameters of the model's ``partial_fit``, such as ``sample_weight`` or ``classes``. With metadata
            routing, those that it requests.

        Returns
        -------
        self : object
            The selector.
        """
        model = self._trained if hasattr(self, "_trained") else self._fresh_model()
        self._trained = self._taught(model, "partial_fit", X, y, params)
        return self

    def transform(self, X: Any) -> Any:
        """Return the columns of X that are kept.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or Dask collection
            The rows.

        Returns
        -------
        kept : array or sparse matrix of shape (n_samples, n_selected_features)
            A Dask array if X is a Dask array or dataframe.
        """
        if not is_collection(X):
            return super().transform(X)
        support = self.support_
        return apply_lazily(self, X, lambda rows: rows[:, support])

    @property
    def estimator_(self) -> Any:
        """The fitted model."""
        return self._model()

    @property
    def scores_(self) -> Float64Array:
        """Variable importance in projection."""
        return vip_scores(self._model())

    @property
    def ranking_(self) -> NDArray[np.intp]:
        """Ranks of the features, 1 for the largest score."""
        return ranking_of(self.scores_)

    @property
    def support_(self) -> NDArray[np.bool_]:
        """Which features are kept."""
        self._validate_params()
        scores = self.scores_
        if self.n_features_to_select is not None:
            return ranking_of(scores) <= number_to_keep(self.n_features_to_select, len(scores))
        # A score equal to the threshold up to rounding is enough, for example with a single feature.
        enough: NDArray[np.bool_] = scores >= self.threshold - TIE * scores.max()
        return enough

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return int(self._model().n_features_in_)

    @property
    def feature_names_in_(self) -> Array:
        """Names of the features, if any."""
        names: Array = self._model().feature_names_in_
        return names

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata routing to the model.

        Returns
        -------
        routing : MetadataRouter
            The requests of the model.
        """
        mapping = MethodMapping()
        for caller, callee in (("fit", "fit"), ("fit_transform", "fit"), ("partial_fit", "partial_fit")):
            mapping.add(caller=caller, callee=callee)
        return MetadataRouter(owner=type(self).__name__).add(estimator=self._model_to_fit(), method_mapping=mapping)

    def _model_to_fit(self) -> Any:
        return IncrementalPLS() if self.estimator is None else self.estimator

    def _fresh_model(self) -> Any:
        model = self._model_to_fit()
        _pls_in(model)
        return clone(model)

    def _taught(self, model: Any, method: str, X: Any, y: Any, params: dict[str, Any]) -> Any:
        """Return the model after a call of its ``fit`` or ``partial_fit``."""
        if isinstance(X, Source | OnWorkers):
            if not _is_ours(model):
                raise TypeError(f"{type(model).__name__} cannot learn from a source: use a model of this package.")
        elif y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None: pass it as y.")
        if get_config()["enable_metadata_routing"]:
            params = process_routing(self, method, **params)["estimator"][method]
        return getattr(model, method)(X, y, **params)

    def _model(self) -> Any:
        """Return the fitted model; raise NotFittedError if there is none."""
        if not self.prefit:
            check_is_fitted(self, "_trained")
            # Not fitted if all weights so far were zero.
            check_is_fitted(_pls_in(self._trained))
            return self._trained
        try:
            check_is_fitted(_pls_in(self._model_to_fit()))
        except NotFittedError:
            raise NotFittedError("With prefit=True, the estimator must already be fitted: fit it first.") from None
        return self.estimator

    def _get_support_mask(self) -> NDArray[np.bool_]:
        return self.support_

    def __sklearn_is_fitted__(self) -> bool:
        try:
            self._model()
        except (NotFittedError, TypeError):
            # TypeError if VIP is not defined for the model.
            return False
        return True

    def __sklearn_tags__(self) -> Any:
        tags, model_tags = super().__sklearn_tags__(), get_tags(self._model_to_fit())
        tags.input_tags = model_tags.input_tags
        tags.target_tags = model_tags.target_tags
        tags.target_tags.required = True
        return tags
