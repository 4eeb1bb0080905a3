"""IncrementalPLSClassifier: classes from PLS (PLS-DA), for data larger than memory and for streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from .._core.projection import centred_product
from .._core.schema import Object, stored
from .._core.types import Array, Float64Array, Rows
from ..data import Source
from ..rows import by_blocks, is_collection, opened_data
from ..solvers import Journal
from ._base import PLSBase
from ._decision import Decision, against_the_first, by_lda, by_response, require_priors
from ._heads import NOT_BALANCED, ClassifierHead, open_labels
from ._scores import Hits, score_of
from .training import Fitted, Settings, fit_rows, learn_rows, merge_models


class ClassifierMethods(ClassifierMixin):
    """Labels and probabilities from scores, for a model with a ClassifierHead."""

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

        The model is what it would be if the class had been among those of the first call.

        Parameters
        ----------
        label : str, int, bool or float
            Its label, of the type of the others.

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
        """Return the most likely label of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The rows. With a Dask array or dataframe the result is a Dask array.
        n_components : int, default=None
            Use the first components only. The result is that of a model fitted with so many.

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
            The rows. Those of a source are read block by block, and those of a Dask collection stay where they are, and
            so do their predictions.
        y : array-like of shape (n_samples,)
            The labels; None with a source, which has them.
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
            return score_of(rows, Hits, predict)

    def decision_function(self, X: Any, *, n_components: int | None = None) -> Float64Array:
        """Return the decision scores.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The rows. With a Dask array or dataframe the result is a Dask array.
        n_components : int, default=None
            Use the first components only.

        Returns
        -------
        values : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            For "lda" the logarithm of the likelihood of each class, times its prior probability, but for a number that
            is the same for all classes; for "regression" the predicted responses. For two classes, that of the second
            less that of the first.
        """
        return self._decide(X, n_components, "values", then=against_the_first)

    def predict_log_proba(self, X: Any, *, n_components: int | None = None) -> Float64Array:
        """Return the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), source or Dask collection
            The rows. With a Dask array or dataframe the result is a Dask array.
        n_components : int, default=None
            Use the first components only.

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
            Use the first components only.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            For "lda" those of normal distributions with one covariance. For "regression" the predicted responses, which
            sum to one: negative ones count as zero, and the others are divided by their sum. These rank the classes,
            but are not to be trusted as probabilities.
        """
        return self._decide(X, n_components, "log_probabilities", then=np.exp)

    @property
    def classes_(self) -> Array:
        """The labels."""
        return self._require_fitted().head.labels.classes

    @property
    def class_count_(self) -> Float64Array:
        """Sums of the weights of the rows of each class."""
        solution = self._solution()
        return solution.y_mean * solution.weight

    @property
    def class_prior_(self) -> Float64Array:
        """Probabilities of the classes that decisions are made with."""
        if self.priors is None:
            return self._solution().y_mean
        return require_priors(self.priors, len(self.classes_))

    def _decide(
        self, X: Any, n_components: int | None, what: str, then: Callable[[Any], Any] = lambda result: result
    ) -> Any:
        """Return what a method of the decision makes of the scores of X, and a function of that."""
        decide = self._decider(n_components, what)
        return by_blocks(self, X, lambda rows: then(decide(rows)))

    def _decider(self, n_components: int | None, what: str) -> Callable[[Rows], Any]:
        """Return what applies a method of the decision to the scores of rows."""
        solution, k = self._solution(), self._components_to_use(n_components)
        projection, method = solution.projection(k), getattr(self._decision(k), what)
        decide: Callable[[Rows], Any] = self._completing(
            lambda rows: method(centred_product(rows, solution.x_mean, projection))
        )
        return decide

    def _decision(self, n_components: int) -> Decision:
        """Return how scores become classes: parameters that say so may have been set after the fit."""
        self._validate_params()
        if self.decision == "lda":
            return by_lda(self._solution(), n_components, self.class_prior_)
        if self.priors is not None:
            raise ValueError("priors are for decision='lda': pass none with decision='regression'.")
        return by_response(self._solution(), n_components)


@stored({"_fitted": Object(Fitted, given={"head": Object(ClassifierHead, q="q")}, m="m")})
class IncrementalPLSClassifier(ClassifierMethods, PLSBase):
    """Classes from partial least squares (PLS-DA), for streams and for data larger than memory.

    An :class:`IncrementalPLS` of one response for each class, which is one for the rows of the class and zero for all
    others, and a decision by its scores. ``fit``, ``partial_fit``, ``merge`` and the attributes are as there. A row
    costs what it costs there with one response, or little more, however many classes there are: no ones and zeros are
    written out, and the cross-covariance is made of sums of rows.

    Parameters
    ----------
    n_components : int, default=2
        Number of components. At most ``min(n_samples, n_features)`` in ``fit``.
    decision : {"lda", "regression"}, default="lda"
        How scores become classes. "lda" is linear discriminant analysis of the scores. It is solved from the state
        alone, and no row is read again. "regression" takes the class with the largest predicted response. With many
        classes some are then hidden between others, and never predicted.
    priors : array-like of shape (n_classes,), default=None
        Probabilities of the classes, in the order of ``classes_``, for "lda" alone. By default their shares in the rows
        seen. It can be changed at any time.
    class_weight : dict or "balanced", default=None
        Weights of the rows of each class, by label, that are not one. "balanced" gives all classes the same weight
        together. As a stream does not tell how many rows of a class will come, ``partial_fit`` does not take
        "balanced". To change only the decision, set ``priors``.
    scale : bool, default=True
        Whether to divide each column of X, and each response, by its standard deviation. Columns are always centred.
    solver : {"auto", "multipass", "gram", "sketch"}, default="auto"
        How X is condensed, see :class:`IncrementalPLS`.
    sketch_size : int, default=None
        Rows that "sketch" keeps. By default 128, or 24 per component if that is more.
    batch_size : int, default=None
        Rows read at a time. By default as many as take 4 to 32 MiB.
    forgetting : float, default=1.0
        Factor in (0, 1] by which a row weighs less for every row after it.
    read_tol : float, default=0.0
        Error at which ``fit`` makes no further read of the data, see :class:`IncrementalPLS`. By default it is exact.
    max_reads : int, default=None
        Largest number of reads of the data in ``fit``.
    missing : {"error", "model"}, default="error"
        What to do with NaN in X, see :class:`IncrementalPLS`. Labels must not be missing.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels, in ascending order.
    class_count_ : ndarray of shape (n_classes,)
        Rows of each class, that is the sum of their weights.
    class_prior_ : ndarray of shape (n_classes,)
        Probabilities of the classes that decisions are made with: ``priors``, or shares of ``class_count_``.
    x_weights_, x_loadings_, x_rotations_ : ndarray of shape (n_features, n_components)
        Weights, loadings and rotations of X. The largest entry of each weight vector is positive.
    y_weights_, y_loadings_, y_rotations_ : ndarray of shape (n_classes, n_components)
        The same of the responses.
    coef_, intercept_ : ndarray of shape (n_classes, n_features) and (n_classes,)
        Those of the responses: ``(X - x_mean_) @ coef_.T + intercept_``.
    x_mean_, x_scale_ : ndarray of shape (n_features,)
        Means and divisors of the columns of X.
    y_mean_, y_scale_ : ndarray of shape (n_classes,)
        Means and divisors of the responses.
    n_missing_ : ndarray of shape (n_features,)
        Number of missing values of each feature in the training samples.
    n_components_, vip_, x_explained_variance_ratio_, y_explained_variance_ratio_, retained_variance_, subspace_error_
        As of :class:`IncrementalPLS`.
    solver_ : str
        The solver in use.
    n_reads_ : int
        Reads of the data that ``fit`` has made.
    n_samples_seen_ : int
        Number of training samples.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X has any that are all strings.

    See Also
    --------
    IncrementalPLS : The same for responses that are numbers.
    IncrementalLDA : Linear discriminant analysis of all features.

    Notes
    -----
    "lda" is what scikit-learn's ``LinearDiscriminantAnalysis`` makes of the scores of the same rows. Their means by
    class follow from the loadings of y, and their scatter within classes is that of all scores less that of the means.
    A sketch knows the former only about, so that the difference may be too small, or negative. At least 1e-9 of the
    variance in any direction is taken to be within classes, and 3 % of ``1 - retained_variance_`` if that is more.

    Two classes are two responses, of which one is the other with its sign changed: the components are those of a single
    response of -1 and +1.

    A class of which no row has come is never predicted.

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
        **PLSBase._one_model_constraints,
        "decision": [StrOptions({"lda", "regression"})],
        "priors": ["array-like", None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "forgetting": [Interval(Real, 0.0, 1.0, closed="right")],
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
        """Fit the model to X and y, forgetting what it was before.

        Parameters
        ----------
        X : array-like, sparse matrix or memory map of shape (n_samples, n_features), or source
            The rows. Files of any size are opened by :func:`plstream.open_source`.
        y : array-like of shape (n_samples,), default=None
            The labels: strings, booleans or integers. None if X is a source, which has them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.

        Returns
        -------
        self : IncrementalPLSClassifier
        """
        self._validate_params()
        return self._fit(X, y, sample_weight)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add rows to the model. A call that fails leaves the model as it was.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The new rows, one or more.
        y : array-like of shape (n_samples,), default=None
            Their labels. None if X is a source, which has them.
        classes : array-like of shape (n_classes,), default=None
            All labels that will come, in the first call. By default those that are in it, or in the first block of a
            source that can be read only once. For more see ``add_class``.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.

        Returns
        -------
        self : IncrementalPLSClassifier
        """
        if isinstance(self.class_weight, str):
            raise ValueError(NOT_BALANCED)  # noqa: TRY004
        learned: Self = learn_rows(
            self, open_labels, (X, y, sample_weight), classes=classes, class_weight=self.class_weight
        )
        return learned

    def merge(self, other: IncrementalPLSClassifier, *, later: bool | None = None) -> Self:
        """Add to this model all rows that another one has seen; the other one is left as it is.

        Parameters
        ----------
        other : IncrementalPLSClassifier
            A model of other rows, with the same parameters and features. Either may have classes that the other has
            not.
        later : bool, default=None
            Whether the rows of ``other`` came after those of this model, which are then forgotten accordingly. If not,
            both sets of rows are equally old. With ``forgetting=1.0`` that makes no difference; else, by default, they
            count as equally old, with a warning.

        Returns
        -------
        self : IncrementalPLSClassifier
        """
        return merge_models(self, other, IncrementalPLSClassifier, later=later)

    @_fit_context(prefer_skip_nested_validation=True)
    def memory_usage(self, n_features: int, n_classes: int = 2) -> int:
        """Return the bytes that ``partial_fit`` and solving take, at most, whatever the number of rows.

        Parameters
        ----------
        n_features, n_classes : int
            Number of columns of X and of classes.

        Returns
        -------
        n_bytes : int
            As of :class:`IncrementalPLS`.
        """
        return Settings.of(self).memory_usage(n_features, n_classes)

    def _fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        classes: Any = None,
        journal: Journal | None = None,
    ) -> Self:
        """Fit a model whose parameters are valid. With a journal, exact reads of a source resume where it ends."""
        data, how = (X, y, sample_weight), {"classes": classes, "class_weight": self.class_weight}
        return fit_rows(self, open_labels, data, **how, journal=journal)
