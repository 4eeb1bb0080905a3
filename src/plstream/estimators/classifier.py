"""IncrementalPLSClassifier: PLS discriminant analysis for data larger than memory and for streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import StrOptions

from .._core.projection import centred_product
from .._core.schema import Object, stored
from .._core.types import Array, Float64Array, Rows
from ..data import Source
from ..rows import by_blocks, is_collection, opened_data
from ..solvers import Journal
from .base import SingleModel
from .decision import Decision, against_the_first, by_lda, by_response, require_priors
from .fitted import Fitted
from .heads import NOT_BALANCED, ClassifierHead, open_labels
from .scores import AccuracySums, score_of
from .settings import Settings
from .training import fit_rows, learn_rows


class ClassifierMethods(ClassifierMixin):
    """Methods of classifiers: labels and probabilities from scores."""

    decision: str = "lda"
    priors: Any = None
    _fitted: Any
    _solution: Any
    _require_fitted: Any
    _components_to_use: Any
    _completing: Any
    # Labels are not completed.
    _missing_by: ClassVar[dict[str, str]] = {"X": "model"}
    _validate_params: Any

    def add_class(self, label: Any) -> Self:
        """Register a new class.

        The result is the same as if the class had been declared in the first call.

        Parameters
        ----------
        label : str, int, bool or float
            Its label, of the same type as the others.

        Returns
        -------
        self : object
        """
        fitted = self._require_fitted()
        head, position = fitted.head.with_class(label)
        fitted = fitted.streamed(Settings.of(self))
        self._fitted = fitted.after(fitted.stream.with_classes([position]), head)
        return self

    def predict(self, X: Any, *, n_components: int | None = None) -> Array:
        """Predict the class labels of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The rows. With a Dask array or dataframe the result is a Dask array.
        n_components : int, default=None
            Use only the first components, like a model fitted with that number.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Labels.
        """
        classes = self.classes_
        return self._decide(X, n_components, "largest", then=lambda numbers: classes[numbers])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy of the predictions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The rows. Sources are read block by block; the rows and predictions of a Dask collection stay on its
            workers.
        y : array-like of shape (n_samples,)
            The labels; None with a source, which provides them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights.

        Returns
        -------
        score : float
        """
        X, y = opened_data(X, y)
        if not (isinstance(X, Source) or is_collection(X)):
            return float(super().score(X, y, sample_weight))
        predict = self._decider(None, "largest")
        with open_labels(self, X, y, sample_weight, self._fitted.head) as (rows, _):
            return score_of(rows, AccuracySums, predict)

    def decision_function(self, X: Any, *, n_components: int | None = None) -> Float64Array:
        """Return the decision scores.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The rows. With a Dask array or dataframe the result is a Dask array.
        n_components : int, default=None
            Use only the first components.

        Returns
        -------
        values : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            For "lda", the log-likelihood of each class plus the log of its prior, up to a constant; for "regression",
            the predicted responses. For two classes, the second minus the first.
        """
        return self._decide(X, n_components, "values", then=against_the_first)

    def predict_log_proba(self, X: Any, *, n_components: int | None = None) -> Float64Array:
        """Return the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The rows. With a Dask array or dataframe the result is a Dask array.
        n_components : int, default=None
            Use only the first components.

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            See ``predict_proba``.
        """
        return self._decide(X, n_components, "log_probabilities")

    def predict_proba(self, X: Any, *, n_components: int | None = None) -> Float64Array:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The rows. With a Dask array or dataframe the result is a Dask array.
        n_components : int, default=None
            Use only the first components.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            For "lda", the posterior probabilities of normal distributions with a common covariance. For "regression",
            the predicted responses, clipped at zero and normalized to sum to one: they rank the classes, but are not
            calibrated.
        """
        return self._decide(X, n_components, "log_probabilities", then=np.exp)

    @property
    def classes_(self) -> Array:
        """The labels."""
        return self._require_fitted().head.labels.classes

    @property
    def class_count_(self) -> Float64Array:
        """Sum of the sample weights of each class."""
        solution = self._solution()
        return solution.y_mean * solution.weight

    @property
    def class_prior_(self) -> Float64Array:
        """Prior probabilities of the classes used for decisions."""
        if self.priors is None:
            return self._solution().y_mean
        return require_priors(self.priors, len(self.classes_))

    def _decide(
        self, X: Any, n_components: int | None, what: str, then: Callable[[Any], Any] = lambda result: result
    ) -> Any:
        """Apply the method ``what`` of the decision rule, followed by ``then``, to the scores of X."""
        decide = self._decider(n_components, what)
        return by_blocks(self, X, lambda rows: then(decide(rows)))

    def _decider(self, n_components: int | None, what: str) -> Callable[[Rows], Any]:
        """Return a function that applies the method ``what`` of the decision rule to the scores of rows."""
        solution, k = self._solution(), self._components_to_use(n_components)
        projection, method = solution.projection(k), getattr(self._decision(k), what)
        decide: Callable[[Rows], Any] = self._completing(
            lambda rows: method(centred_product(rows, solution.x_mean, projection))
        )
        return decide

    def _decision(self, n_components: int) -> Decision:
        """Return the decision rule, whose parameters may have been set after the fit."""
        self._validate_params()
        if self.decision == "lda":
            return by_lda(self._solution(), n_components, self.class_prior_)
        if self.priors is not None:
            raise ValueError("priors require decision='lda': leave them out with decision='regression'.")
        return by_response(self._solution(), n_components)


@stored({"_fitted": Object(Fitted, given={"head": Object(ClassifierHead, q="q")}, m="m")})
class IncrementalPLSClassifier(ClassifierMethods, SingleModel):
    """Partial least squares discriminant analysis (PLS-DA) for streams and for data larger than memory.

    An :class:`IncrementalPLS` with one indicator response per class, and a decision rule on its scores. ``fit``,
    ``partial_fit``, ``merge`` and the attributes are the same. The cost of a row hardly depends on the number of
    classes: indicators are never formed, and the cross-covariance is computed from sums of rows.

    Parameters
    ----------
    n_components : int, default=2
        Number of components. At most ``min(n_samples, n_features)`` in ``fit``.
    decision : {"lda", "regression"}, default="lda"
        Decision rule. "lda" is linear discriminant analysis of the scores, solved from the state without reading rows
        again. "regression" predicts the class with the largest response; with many classes, some may be masked by
        others and never predicted.
    priors : array-like of shape (n_classes,), default=None
        Prior probabilities of the classes, in the order of ``classes_``, for "lda" only. By default the class
        frequencies. Can be changed at any time.
    class_weight : dict or "balanced", default=None
        Weights of the classes by label, by default one. "balanced" gives all classes the same total weight;
        ``partial_fit`` does not support it, because the class frequencies of a stream are unknown. To change only the
        decision, set ``priors``.
    scale : bool, default=True
        Whether to divide each column of X, and each response, by its standard deviation. Columns are always centred.
    solver : {"auto", "multipass", "gram", "sketch"}, default="auto"
        How X is summarised, see :class:`IncrementalPLS`.
    sketch_size : int, default=None
        Number of rows that "sketch" keeps. By default 128, or 24 per component if that is more.
    batch_size : int, default=None
        Number of rows read at a time. By default 4 to 32 MiB.
    forgetting : float, default=1.0
        Factor in (0, 1] by which the weight of a row shrinks with every later row.
    read_tol : float, default=0.0
        Estimated error at which ``fit`` stops reading the data, see :class:`IncrementalPLS`. By default it is exact.
    max_reads : int, default=None
        Maximum number of reads of the data in ``fit``.
    missing : {"error", "model"}, default="error"
        How to handle NaN in X, see :class:`IncrementalPLS`. Labels must not be missing.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, in ascending order.
    class_count_ : ndarray of shape (n_classes,)
        Number of rows of each class, as the sum of their weights.
    class_prior_ : ndarray of shape (n_classes,)
        Prior probabilities of the classes: ``priors``, or shares of ``class_count_``.
    x_weights_, x_loadings_, x_rotations_ : ndarray of shape (n_features, n_components)
        Weights, loadings and rotations of X. The largest entry of each weight vector is positive.
    y_weights_, y_loadings_, y_rotations_ : ndarray of shape (n_classes, n_components)
        The same for the responses.
    coef_, intercept_ : ndarray of shape (n_classes, n_features) and (n_classes,)
        Coefficients of the responses, ``(X - x_mean_) @ coef_.T + intercept_``.
    x_mean_, x_scale_ : ndarray of shape (n_features,)
        Means and divisors of the columns of X.
    y_mean_, y_scale_ : ndarray of shape (n_classes,)
        Means and divisors of the responses.
    n_missing_ : ndarray of shape (n_features,)
        Number of missing values of each feature in the training samples.
    n_components_, vip_, x_explained_variance_ratio_, y_explained_variance_ratio_, retained_variance_, subspace_error_
        See :class:`IncrementalPLS`.
    solver_ : str
        The solver in use.
    n_reads_ : int
        Number of reads of the data by ``fit``.
    n_samples_seen_ : int
        Number of training samples.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X has names that are all strings.

    See Also
    --------
    IncrementalPLS : The same for numeric responses.
    IncrementalLDA : Linear discriminant analysis of all features.

    Notes
    -----
    "lda" equals scikit-learn's ``LinearDiscriminantAnalysis`` on the scores of the same rows. Class means follow from
    the loadings of y, and the within-class scatter is the total scatter minus that of the means. A sketch approximates
    the total scatter, so the difference may be too small, or negative. At least 1e-9 of the variance in any direction
    is assumed to be within classes, and 3 % of ``1 - retained_variance_`` if that is more.

    Two classes are two responses that differ only in sign: the components are those of a single response of -1 and +1.

    A class without rows is never predicted.

    References
    ----------
    M. Barker and W. Rayens, "Partial least squares for discrimination", Journal of Chemometrics 17, 2003.

    U. G. Indahl, H. Martens and T. Naes, "From dummy regression to prior probabilities in PLS-DA", Journal of
    Chemometrics 21, 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from plstream import IncrementalPLSClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = IncrementalPLSClassifier(n_components=15).fit(X[:1200], y[:1200])
    >>> round(model.score(X[1200:], y[1200:]), 2)
    0.9
    >>> round(model.set_params(decision="regression").score(X[1200:], y[1200:]), 2)
    0.88

    From a stream:

    >>> stream = IncrementalPLSClassifier(n_components=15)
    >>> for start in range(0, 1200, 100):
    ...     rows = slice(start, start + 100)
    ...     stream = stream.partial_fit(X[rows], y[rows], classes=range(10))
    >>> round(stream.score(X[1200:], y[1200:]), 2)
    0.9
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SingleModel._parameter_constraints,
        "decision": [StrOptions({"lda", "regression"})],
        "priors": ["array-like", None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        decision: str = "lda",
        priors: Any = None,
        class_weight: Mapping[Any, float] | str | None = None,
        scale: bool = True,
        solver: str = "auto",
        sketch_size: int | None = None,
        batch_size: int | None = None,
        forgetting: float = 1.0,
        read_tol: float = 0.0,
        max_reads: int | None = None,
        missing: str = "error",
    ) -> None:
        self.n_components = n_components
        self.decision = decision
        self.priors = priors
        self.class_weight = class_weight
        self.scale = scale
        self.solver = solver
        self.sketch_size = sketch_size
        self.batch_size = batch_size
        self.forgetting = forgetting
        self.read_tol = read_tol
        self.max_reads = max_reads
        self.missing = missing

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model to X and y, discarding earlier training.

        Parameters
        ----------
        X : array-like, sparse matrix or memory map of shape (n_samples, n_features), or source
            The rows. Files of any size are opened by :func:`plstream.open_source`.
        y : array-like of shape (n_samples,), default=None
            The labels: strings, booleans or integers. None if X is a source, which provides them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : IncrementalPLSClassifier
        """
        return fit_rows(self, partial(open_labels, class_weight=self.class_weight), (X, y, sample_weight))

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the model. A call that fails leaves the model unchanged.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The new rows, one or more.
        y : array-like of shape (n_samples,), default=None
            Their labels. None if X is a source, which provides them.
        classes : array-like of shape (n_classes,), default=None
            All labels that will occur, given in the first call. By default the labels of that call, or of the first
            block of a source that can be read only once. To add more, see ``add_class``.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.

        Returns
        -------
        self : IncrementalPLSClassifier
        """
        if isinstance(self.class_weight, str):
            raise ValueError(NOT_BALANCED)  # noqa: TRY004
        opened = partial(open_labels, class_weight=self.class_weight)
        return learn_rows(self, opened, (X, y, sample_weight), classes=classes)

    @_fit_context(prefer_skip_nested_validation=True)
    def memory_usage(self, n_features: int, n_classes: int = 2, *, method: str = "partial_fit") -> int:
        """Return an upper bound on the memory of training and solving, in bytes, for any number of rows.

        Parameters
        ----------
        n_features, n_classes : int
            Number of columns of X and of classes.
        method : {"partial_fit", "fit"}, default="partial_fit"
            See :meth:`IncrementalPLS.memory_usage`.

        Returns
        -------
        n_bytes : int
            See :class:`IncrementalPLS`.
        """
        return Settings.of(self).n_bytes(method, n_features, n_classes)

    def _fit(self, X: Any, *, classes: Any = None, journal: Journal | None = None) -> Self:
        """Fit the model to a source. With a journal, exact reads resume where it ends."""
        opened = partial(open_labels, classes=classes, class_weight=self.class_weight)
        return fit_rows(self, opened, (X, None, None), journal=journal)
