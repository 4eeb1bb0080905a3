"""Linear discriminant analysis of a stream: exact from the scatter within classes, or covariance-free."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from operator import attrgetter
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._core.errors import counted
from .._core.schema import Choice, Numbers, Object, solved_numbers, stored
from .._core.signs import peak_signs
from .._core.types import Array, Float64Array
from ..estimators.attributes import Solved
from ..estimators.decision import Decision, against_the_first, log_priors, require_priors
from .base import OnlineMethod, stored_method
from .indicators import IndicatorRegression, solve_regression
from .scatter import SolvedClasses, WithinScatter, solve_scatter
from .state import OnlineState, zeros_of

# Number of features up to which "auto" stores the scatter: 32 MiB, and a solution in seconds.
_MODERATE_FEATURES = 2048


@stored()
@dataclass(frozen=True)
class Discriminants:
    """Discriminants in descending order of variance ratios, largest entries positive, and data for predictions."""

    solver: Annotated[str, Choice("scatter", "covariance-free")]
    x_mean: Annotated[Float64Array, Numbers("m")]
    means: Annotated[Float64Array, solved_numbers("k", "m")]
    shares: Annotated[Float64Array, Numbers("k", least=0, most=1)]
    scalings: Annotated[Float64Array, solved_numbers("m", "s")]
    explained_variance_ratio: Annotated[Float64Array, solved_numbers("s")]
    directions: Annotated[Float64Array, solved_numbers("m", "all")]
    """All discriminants, for predictions."""
    centres: Annotated[Float64Array, solved_numbers("k", "all")]
    """Classes in the space of the scores of all discriminants."""

    @classmethod
    def of(cls, solver: str, n_components: int, classes: SolvedClasses) -> Discriminants:
        """Return the first discriminants, converted to the units of the data."""
        origin, unit, offsets, shares, directions, ratios = classes
        mean = shares @ offsets
        # A class without rows has the mean of all rows, and is never predicted.
        offsets = np.where(shares[:, None] > 0, offsets, mean)
        directions = directions * peak_signs(directions)
        return cls(
            solver=solver,
            x_mean=origin + mean / unit,
            means=origin + offsets / unit,
            shares=shares,
            scalings=directions[:, :n_components] * unit,
            directions=directions * unit,
            explained_variance_ratio=ratios[:n_components] / (ratios.sum() or 1.0),
            centres=(offsets - mean) @ directions,
        )

    projection = property(attrgetter("scalings"))
    # The name in scikit-learn's LDA.
    xbar = property(attrgetter("x_mean"))

    @property
    def n_components(self) -> int:
        """Number of discriminants found."""
        return int(np.count_nonzero(self.scalings.any(axis=0)))

    def decision(self, priors: Float64Array) -> Decision:
        """Return the decision by the scores t of all discriminants: t'c_k - c_k'c_k / 2 + log(prior_k) for centre c_k.

        Scores have unit variance within classes and no covariance, so this is the logarithm of a normal density times
        the prior probability, up to a constant common to all classes.
        """
        offset = log_priors(priors, present=self.shares > 0) - np.square(self.centres).sum(axis=1) / 2
        return Decision(self.centres.T, offset, of_likelihoods=True)


@stored_method(IndicatorRegression, WithinScatter, solution=Object(Discriminants, m="m", k="k"))
class IncrementalLDA(ClassifierMixin, OnlineMethod):
    """Linear discriminant analysis of a stream: the directions that separate classes best, and a classifier.

    With up to 2,048 features, it is exact: it stores the class means and the scatter of rows within classes, and equals
    scikit-learn's LDA of all rows so far, whatever the chunks. With more features, it stores only a few vectors per
    class, and converges to LDA.

    Parameters
    ----------
    n_components : int, default=None
        Number of discriminants, at most ``min(n_classes - 1, n_features)``, which is the default.
    shrinkage : float in [0, 1], default=None
        Shrinkage a of the covariance S within classes: (1 - a) S + a trace(S)/m I for m features, as in scikit-learn.
        Only for "scatter".
    solver : {"auto", "scatter", "covariance-free"}, default="auto"
        Whether to store the scatter, of n_features^2 numbers. "auto" does so up to 2,048 features.
    eta : float, default=0.25
        Step of "covariance-free", above 0 and at most 1: the share of the error of a row of typical length that the
        regression corrects.
    priors : array-like of shape (n_classes,), default=None
        Prior probabilities, in the order of ``classes_``. Default: the class frequencies. They affect only predictions,
        and can be set at any time.
    missing : {"error", "mean"}, default="error"
        How to handle NaN in X. "mean" replaces it with the running mean of the feature (before its first value, with
        that value, which must be in the same call); ``transform`` and similar methods use the mean of the model.

    Attributes
    ----------
    scalings_ : ndarray of shape (n_features, n_components)
        Projection of centred rows to scores: discriminants scaled so that scores have unit variance within classes and
        no covariance, largest entries positive. Those not found so far are zero.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Ratio of the variances between and within classes, as a share of the sum over all discriminants.
    means_ : ndarray of shape (n_classes, n_features)
        Class means; ``xbar_`` for a class without rows.
    xbar_ : ndarray of shape (n_features,)
        Mean of all rows.
    priors_ : ndarray of shape (n_classes,)
        Prior probabilities used for predictions: ``priors``, or the class frequencies.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_components_ : int
        Number of discriminants found so far.
    solver_ : str
        "scatter" or "covariance-free".
    n_samples_seen_ : int
        Number of training samples.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X has names that are all strings.

    See Also
    --------
    sklearn.discriminant_analysis.LinearDiscriminantAnalysis : LDA of data in memory.

    Notes
    -----
    *Exact.* Directions without variance within classes, which exist with fewer rows than features, would have infinite
    ratios. Their variances are raised to 1e-9 of the largest, for features in units of their deviations within classes.
    If classes differ in such directions, these come first, and rows of a class have nearly the same scores. This
    separates training rows perfectly, but new rows badly if there are about as many rows as features: use shrinkage
    then, or the covariance-free solver. (After 500 rows of 512 features, 54 % of new pairs of faces were classified
    correctly, 87 % with ``shrinkage=0.1``, 95 % covariance-free.) scikit-learn's solver "svd" drops such directions,
    and "eigen" fails. Its "eigen" also shrinks the scatter between classes, which tilts the discriminants, but not the
    predictions.

    Predictions, probabilities and decision scores are those of scikit-learn's solvers "eigen" and "lsqr" with the same
    ``shrinkage``. (Its "svd" divides the scatter by the number of rows minus classes, so its probabilities are slightly
    less extreme.) With ``priors``, scikit-learn also weights the covariances of the classes and the scatter between
    classes. Here one scatter is stored for all classes, so ``priors`` affect only the decision: probabilities are those
    without ``priors``, times ``priors`` over class frequencies, normalized.

    *Covariance-free.* Least squares regression of the classes on X has the subspace of LDA. It is learnt by a step of
    normalized least mean squares for every row, of features in units of their running deviations, and the iterates are
    averaged, the k-th with weight k. Constant steps with averaging converge as 1/n for least squares, whatever the
    condition number (Bach and Moulines). Class means are exact, and together with the regression give the order and
    scale of the discriminants. Shuffle rows that are sorted by class. Probabilities are those of the current
    discriminants, and converge with them.

    The table shows angles in degrees to exact LDA of the same rows after one pass in random order: the largest, and the
    median if there are many discriminants. The last column is the rule of Hiraoka et al. with the better of two steps;
    with the other, it diverged in all cases but the first.

    =========================================  ======  =======  =============  =============
    rows                                       number  classes  angles         after Hiraoka
    =========================================  ======  =======  =============  =============
    Gaussian, 20 features, deviations 1 to 10  20,000  4        1              13
    Gaussian, 100 features, 1 to 30            20,000  4        20             66
    pairs of faces, 512 features               4,800   2        24             32
    images, 512 features of VGG16              5,000   10       48, median 35  89, median 75
    the same                                   25,000  50       54, median 20  89, median 68
    =========================================  ======  =======  =============  =============

    Accuracy for new pairs of faces was 95.8 % (exact LDA: 95.3 %), for new images of 10 classes 48 % (49.8 %), and of
    50 classes 35.6 % (35.6 %).

    References
    ----------
    T. F. Chan, G. H. Golub and R. J. LeVeque, "Algorithms for computing the sample variance", The American Statistician
    37, 1983.

    F. Bach and E. Moulines, "Non-strongly-convex smooth stochastic approximation with convergence rate O(1/n)",
    Advances in Neural Information Processing Systems 26, 2013.

    K. Hiraoka, K. Hidai, M. Hamahira, H. Mizoguchi, T. Mishima and S. Yoshizawa, "Successive learning of linear
    discriminant analysis: Sanger-type algorithm", International Conference on Pattern Recognition, 2000.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from plstream import IncrementalLDA
    >>> X, y = load_iris(return_X_y=True)
    >>> model = IncrementalLDA()
    >>> for start in range(0, 150, 50):
    ...     rows = slice(start, start + 50)
    ...     model = model.partial_fit(X[rows], y[rows], classes=[0, 1, 2])
    >>> model.explained_variance_ratio_.round(3)
    array([0.991, 0.009])
    >>> float(model.score(X, y))
    0.98
    >>> model.predict_proba(X[70:71]).round(2)
    array([[0.  , 0.25, 0.75]])
    >>> model.set_params(priors=[0.1, 0.8, 0.1]).predict_proba(X[70:71]).round(2)
    array([[0.  , 0.73, 0.27]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "shrinkage": [Interval(Real, 0, 1, closed="both"), None],
        "solver": [StrOptions({"auto", "scatter", "covariance-free"})],
        "eta": [Interval(Real, 0, 1, closed="right")],
        "priors": ["array-like", None],
        "missing": [StrOptions({"error", "mean"})],
    }
    _free_parameters = OnlineMethod._free_parameters | {"priors"}

    target = "labels"
    n_components: Any

    scalings_ = Solved("Discriminants.")
    explained_variance_ratio_ = Solved("Ratios of variances, as shares.")
    means_ = Solved("Means of the classes.")
    xbar_ = Solved("Mean of all rows.")
    n_components_ = Solved("Number of discriminants found so far.")
    solver_ = Solved("The solver.")

    def __init__(
        self,
        n_components: int | None = None,
        *,
        shrinkage: float | None = None,
        solver: str = "auto",
        eta: float = 0.25,
        priors: Any = None,
        missing: str = "error",
    ) -> None:
        self.n_components = n_components
        self.shrinkage = shrinkage
        self.solver = solver
        self.eta = eta
        self.priors = priors
        self.missing = missing

    @property
    def priors_(self) -> Float64Array:
        """Prior probabilities of the classes used for predictions."""
        shares: Float64Array = self._solution().shares
        return shares if self.priors is None else require_priors(self.priors, len(self.classes_))

    def predict(self, X: Any) -> Array:
        """Predict class labels: the nearest class, corrected for its prior probability.

        All discriminants are used, including those past ``n_components``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Labels.
        """
        check_is_fitted(self)
        classes = self.classes_
        labels: Array = self._decide(X, "largest", then=lambda numbers: classes[numbers])
        return labels

    def decision_function(self, X: Any) -> Float64Array:
        """Return the decision scores.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.

        Returns
        -------
        values : ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes
            The log-likelihood of each class plus the log of its prior, up to a constant. For two classes, the
            difference of the second and the first.
        """
        values: Float64Array = self._decide(X, "values", then=against_the_first)
        return values

    def predict_log_proba(self, X: Any) -> Float64Array:
        """Return the logarithms of the class probabilities.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            Minus infinity for a class without rows or with a prior probability of zero.
        """
        logarithms: Float64Array = self._decide(X, "log_probabilities")
        return logarithms

    def predict_proba(self, X: Any) -> Float64Array:
        """Return the class probabilities, for normal distributions with a common covariance.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        probabilities: Float64Array = self._decide(X, "log_probabilities", then=np.exp)
        return probabilities

    def _decide(self, X: Any, what: str, then: Callable[[Any], Any] = lambda result: result) -> Any:
        """Apply the method ``what`` of the decision rule, followed by ``then``, to the scores of X."""
        solution = self._solution()
        method = getattr(solution.decision(self.priors_), what)
        return self._map_product(X, solution.directions, lambda scores: then(method(scores)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    def _solver_for(self, n_features: int) -> str:
        if self.solver != "auto":
            return self.solver
        return "scatter" if n_features <= _MODERATE_FEATURES else "covariance-free"

    def _begin(self, n_features: int, n_columns: int) -> WithinScatter | OnlineState:
        n_classes = max(2, n_columns)
        largest = min(n_features, n_classes - 1)
        if self.n_components is not None and self.n_components > largest:
            raise ValueError(
                f"n_components={self.n_components} is too large: {n_classes} classes and "
                f"{counted(n_features, 'feature')} have at most {counted(largest, 'discriminant')}."
            )
        if self.priors is not None:
            require_priors(self.priors, n_classes)
        if self._solver_for(n_features) == "scatter":
            return zeros_of(WithinScatter, k=n_classes, m=n_features, w=0, unit=0.0)
        if self.shrinkage is not None:
            raise ValueError(
                f"shrinkage requires the scatter of all {n_features} features: pass solver='scatter', or no shrinkage."
            )
        recursion = zeros_of(IndicatorRegression, q=n_columns, m=n_features, eta=float(self.eta))
        return OnlineState.of(recursion, n_features, n_columns)

    def _solve(self, state: WithinScatter | OnlineState) -> Discriminants:
        n_features, shrinkage = self.n_features_in_, self._begun_with["shrinkage"] or 0.0
        n_components = self._begun_with["n_components"] or min(n_features, len(self.classes_) - 1)
        if isinstance(state, WithinScatter):
            return Discriminants.of("scatter", n_components, solve_scatter(state.settled(), shrinkage))
        return Discriminants.of("covariance-free", n_components, solve_regression(state))
