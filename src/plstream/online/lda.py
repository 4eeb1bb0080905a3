"""Linear discriminant analysis of a stream: exact from the scatter within classes, or without such a matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import linalg, sparse
from scipy.linalg import blas, lapack
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._core.compiled import compiled, copied
from .._core.labels import TargetEncoding, as_labels
from .._core.schema import (
    Choice,
    Count,
    Entries,
    Number,
    Numbers,
    Object,
    OrNone,
    solved_numbers,
    stored,
)
from .._core.signs import peak_signs
from .._core.types import Array, Float64Array, Rows
from ..estimators._decision import Decision, against_the_first, log_priors, require_priors
from ._base import ENCODING, OnlineMethod, OnlineState, Recursion, Solved, Tile, is_finite, state_of, unit_of

# Up to this many features "auto" keeps the scatter: 32 MiB, and a solution in seconds.
_MODERATE_FEATURES = 2048
# Rows of one product: enough that adding to the scatter costs little beside it.
BLOCK_ROWS = 512
# Least variance within classes, relative to the largest, of features in units of their deviation within classes.
_LEAST_VARIANCE = 1e-9
# Classes up to which their products are formed even if there are fewer features.
_LARGEST_PRODUCT = 1024


@stored(
    {
        "origin": Numbers("m"),
        "unit": Number(0),
        "counts": Numbers("k", least=0, most=2.0**53),
        "offsets": Numbers("k", "m"),
        "lower": Numbers("m", "m", any_order=True),
        "waiting": Numbers("w?", "m"),
        "waiting_classes": Numbers("w?", dtypes=("int64",), least=0),
    },
    {
        "fewer rows wait than a block has": lambda its: len(its.waiting) < BLOCK_ROWS,
        "rows that wait are of classes that there are": lambda its: (
            its.waiting_classes.max(initial=0) < len(its.counts)
        ),
    },
)
@dataclass
class WithinScatter:
    """Counts and means of classes, and the scatter of rows about the mean of their class.

    Rows are added in blocks that are cut by the count of rows since the start, so sums do not depend on the chunks that
    the rows came in. Until a block is complete, its rows wait.

    Attributes
    ----------
    origin : ndarray of shape (m,)
        The first row, which means are relative to.
    unit : float
        What differences from it are multiplied by, as in RunningMean.
    counts : ndarray of shape (K,)
        Rows of each class.
    offsets : ndarray of shape (K, m)
        Means of the classes, minus the origin, in units.
    lower : ndarray of shape (m, m)
        The lower triangle of the scatter, in units.
    waiting : ndarray of shape (n_waiting, m)
        Rows that have not been added, minus the origin, in units.
    waiting_classes : ndarray of shape (n_waiting,)
        Their classes, by number.
    """

    origin: Float64Array
    unit: float
    counts: Float64Array
    offsets: Float64Array
    lower: Float64Array
    waiting: Float64Array
    waiting_classes: Array

    @classmethod
    def of(cls, n_classes: int, n_features: int) -> WithinScatter:
        """Return the scatter of no rows."""
        return cls(
            origin=np.zeros(n_features),
            unit=0.0,
            counts=np.zeros(n_classes),
            offsets=np.zeros((n_classes, n_features)),
            lower=np.zeros((n_features, n_features)),
            waiting=np.empty((0, n_features)),
            waiting_classes=np.empty(0, np.int64),
        )

    @property
    def n_rows(self) -> int:
        """Rows so far."""
        return int(self.counts.sum()) + len(self.waiting)

    def learn(self, X: Rows, numbers: Float64Array, encoding: TargetEncoding | None) -> None:
        """Take in rows, and the numbers of their classes; raise ValueError if numbers are no longer finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            self._learn(X, numbers)

    def _learn(self, X: Rows, numbers: Float64Array) -> None:
        start = 0
        while start < X.shape[0]:
            rows = slice(start, start + BLOCK_ROWS - len(self.waiting))
            part = X[rows].toarray() if sparse.issparse(X) else X[rows]
            if not self.n_rows:
                self.origin[:] = part[0]
            differences = np.subtract(part, self.origin, order="C")
            self.unit = self.unit or unit_of(differences)
            differences *= self.unit
            self._take_in(differences, numbers[rows, 0].astype(np.int64))
            start = rows.stop
        squares = self.lower.diagonal() + np.square(self.waiting).sum(axis=0)
        if not (np.isfinite(squares).all() and np.isfinite(self.offsets).all()):
            raise ValueError("The scatter is no longer finite: scale the features to unit variance.")

    def settled(self) -> WithinScatter:
        """Return the scatter of the same rows, none of which waits. The stream is not disturbed."""
        if not len(self.waiting):
            return self
        state = copied(self)
        state._add_waiting()
        return state

    def _take_in(self, rows: Float64Array, labels: Array) -> None:
        """Let rows wait, until there is a block of them."""
        if len(self.waiting):
            rows, labels = np.concatenate([self.waiting, rows]), np.concatenate([self.waiting_classes, labels])
        self.waiting, self.waiting_classes = rows, labels
        if len(rows) == BLOCK_ROWS:
            self._add_waiting()

    def _add_waiting(self) -> None:
        self._add(self.waiting, self.waiting_classes)
        self.waiting, self.waiting_classes = self.waiting[:0].copy(), self.waiting_classes[:0].copy()

    def _add(self, rows: Float64Array, labels: Array) -> None:
        """Add rows: their scatter about the means they have here, and that of those means (Chan, Golub and LeVeque)."""
        order = np.argsort(labels, kind="stable")
        present, starts, n_new = np.unique(labels[order], return_index=True, return_counts=True)
        rows = rows[order]
        means = np.add.reduceat(rows, starts, axis=0) / n_new[:, None]
        rows -= np.repeat(means, n_new, axis=0)
        share = n_new / (self.counts[present] + n_new)
        moves = means - self.offsets[present]
        between = np.sqrt(self.counts[present] * share)[:, None] * moves
        # BLAS takes columns for rows, and so the lower triangle for the upper one.
        both = np.concatenate([rows, between])
        self.lower = blas.dsyrk(1.0, both.T, beta=1.0, c=self.lower.T, overwrite_c=True).T
        self.offsets[present] += share[:, None] * moves
        self.counts[present] += n_new


@stored(
    {
        "B": Numbers("q", "m"),
        "A": Numbers("q", "m"),
        "C": Numbers("q", "m"),
        "squares": Numbers("m", least=0),
        "length": Numbers(1, least=0),
        "eta": Number(0, 1),
    }
)
@dataclass
class IndicatorRegression(Recursion):
    """Regression of q columns that stand for the classes on the standardised features, by averaged least mean squares.

    Attributes
    ----------
    B : ndarray of shape (q, m)
        Coefficients that the last step has come to.
    A : ndarray of shape (q, m)
        Their averages, later ones weighing more.
    C : ndarray of shape (q, m)
        Sums of products of the centred columns and features.
    squares : ndarray of shape (m,)
        Sums of squares of the centred features.
    length : ndarray of shape (1,)
        Sum of squares of all standardised rows.
    eta : float
        The step.
    """

    B: Float64Array
    A: Float64Array
    C: Float64Array
    squares: Float64Array
    length: Float64Array
    eta: float

    @classmethod
    def of(cls, n_columns: int, n_features: int, eta: float) -> IndicatorRegression:
        """Return the regression before the first row."""
        B, A, C = np.zeros((3, n_columns, n_features))
        return cls(B, A, C, np.zeros(n_features), np.zeros(1), eta)

    def learn(self, tile: Tile) -> int:
        """Take in rows."""
        arrays = self.B, self.A, self.C, self.squares, self.length
        failed = int(averaged_regression(tile.U, tile.V, *arrays, tile.n_before, self.eta))
        # Divided by an infinite deviation, a feature is zero.
        return failed if np.isfinite(self.squares).all() else max(failed, 0)


@compiled
def averaged_regression(
    U: Float64Array,
    V: Float64Array,
    B: Float64Array,
    A: Float64Array,
    C: Float64Array,
    squares: Float64Array,
    length: Float64Array,
    n_before: int,
    eta: float,
) -> int:
    """Move the rows of B towards coefficients of the columns of V on standardised U, and their averages A along.

    Sums are added to: products of U and V to C, squares of U to ``squares``, and those of standardised U to ``length``.
    """
    q, m = B.shape
    z, nothing = np.empty(m), np.zeros(m)
    for k in range(len(U)):
        n = n_before + k + 1
        if n == 1:
            continue
        # A row minus the mean that includes it is shorter than minus the mean before it: so counts a step of Welford's.
        growth = n / (n - 1)
        square, product = _standardise(U[k], squares, growth, n, z, B[0])
        length[0] += square
        for i in range(q):
            if not (is_finite(square) and is_finite(product)):
                return i
            # No row counts for more than to be fitted.
            most = max(length[0] / (n - 1), eta * square)
            step = eta * (V[k, i] - product) / most if most > 0 else 0.0
            following = B[i + 1] if i + 1 < q else nothing
            product = _regress(B[i], A[i], C[i], U[k], z, step, 2.0 / n, growth * V[k, i], following)
    return -1


@compiled
def _standardise(
    u: Float64Array, squares: Float64Array, growth: float, n: float, z: Float64Array, b: Float64Array
) -> tuple[float, float]:
    """Add to the squares, set z to u divided by deviations, and return z.z and z.b."""
    square, product = 0.0, 0.0
    for j in range(len(u)):
        total = squares[j] + growth * u[j] * u[j]
        squares[j] = total
        zj = u[j] * math.sqrt(n / total) if total > 0 else 0.0
        z[j] = zj
        square += zj * zj
        product += zj * b[j]
    return square, product


@compiled
def _regress(
    b: Float64Array,
    a: Float64Array,
    c: Float64Array,
    u: Float64Array,
    z: Float64Array,
    step: float,
    share: float,
    y: float,
    following: Float64Array,
) -> float:
    """Move b along z, its average a towards b, add y u to c, and return z.b of the following b."""
    product = 0.0
    for j in range(len(u)):
        bj = b[j] + step * z[j]
        b[j] = bj
        a[j] += share * (bj - a[j])
        c[j] += y * u[j]
        product += z[j] * following[j]
    return product


@stored(
    {
        "solver": Choice("scatter", "covariance-free"),
        "x_mean": Numbers("m"),
        "means": solved_numbers("k", "m"),
        "shares": Numbers("k", least=0, most=1),
        "scalings": solved_numbers("m", "s"),
        "explained_variance_ratio": solved_numbers("s"),
        "directions": solved_numbers("m", "all"),
        "centres": solved_numbers("k", "all"),
    }
)
@dataclass(frozen=True)
class Discriminants:
    """Discriminants in the order of their ratios of variances, largest entries positive, and what predictions need."""

    solver: str
    x_mean: Float64Array
    means: Float64Array
    shares: Float64Array
    scalings: Float64Array
    explained_variance_ratio: Float64Array
    directions: Float64Array
    """All discriminants, for predictions."""
    centres: Float64Array
    """Classes in the space of the scores of all discriminants."""

    @classmethod
    def of(
        cls,
        solver: str,
        n_components: int,
        place: tuple[Float64Array, float],
        offsets: Float64Array,
        shares: Float64Array,
        solved: tuple[Float64Array, Float64Array],
    ) -> Discriminants:
        """Return the first of the solved discriminants and their ratios, all relative to an origin and in units."""
        (origin, unit), (directions, ratios) = place, solved
        mean = shares @ offsets
        # A class without rows is where all rows are, for want of anything better, and is never predicted.
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

    @property
    def xbar(self) -> Float64Array:
        """The mean of all rows, under the name it has in scikit-learn's LDA."""
        return self.x_mean

    @property
    def n_components(self) -> int:
        """Discriminants that the rows have."""
        return int(np.count_nonzero(self.scalings.any(axis=0)))

    @property
    def projection(self) -> Float64Array:
        """The scalings."""
        return self.scalings

    def decision(self, priors: Float64Array) -> Decision:
        """Return the decision by the scores t of all discriminants: t'c_k - c_k'c_k / 2 + log(prior_k) for centre c_k.

        Scores have unit variance within classes and no covariance, so that this is the logarithm of the density of a
        normal distribution, times the prior probability, but for what all classes have in common.
        """
        offset = log_priors(priors, present=self.shares > 0) - np.square(self.centres).sum(axis=1) / 2
        return Decision(self.centres.T, offset, of_likelihoods=True)


@stored(
    {
        "_begun_with": Entries(
            n_components=OrNone(Count(1)),
            shrinkage=OrNone(Number(0, 1)),
            solver=Choice("auto", "scatter", "covariance-free"),
            eta=Number(0, 1),
        ),
        "_encoding": ENCODING,
        "_state": state_of(IndicatorRegression, instead=(WithinScatter,)),
        "_solved": OrNone(Object(Discriminants, m="m", k="k")),
    }
)
class IncrementalLDA(ClassifierMixin, OnlineMethod):
    """Linear discriminant analysis of a stream: the directions that separate classes best, and a classifier.

    With up to 2,048 features it is exact: it keeps the means of the classes and the scatter of rows within them, and
    equals scikit-learn's LDA for all rows so far, whatever the chunks. With more it needs no such matrix, only a few
    vectors per class, and approaches LDA as rows come in.

    Parameters
    ----------
    n_components : int, default=None
        Number of discriminants, at most the number of features and of classes less one. By default that many.
    shrinkage : float in [0, 1], default=None
        Share a of the covariance S within classes that is replaced by a sphere: (1 - a) S + a trace(S)/m I for m
        features, as in scikit-learn. Only if the scatter is kept.
    solver : {"auto", "scatter", "covariance-free"}, default="auto"
        Whether the scatter is kept, of n_features^2 numbers. By default up to 2,048 features.
    eta : float, default=0.25
        Step of "covariance-free", above 0 and at most 1: how much of its error for a row of usual length the regression
        corrects.
    priors : array-like of shape (n_classes,), default=None
        Probabilities of the classes, in the order of ``classes_``. By default their shares in the rows seen. They
        change predictions alone, and can be set at any time.
    missing : {"error", "mean"}, default="error"
        What to do with NaN in X. "mean" replaces it by the mean of the values of the feature up to its row (before its
        first value, by that, which must be in the same call), in ``transform`` and the like by the mean of the model.

    Attributes
    ----------
    scalings_ : ndarray of shape (n_features, n_components)
        What takes centred rows to scores: discriminants scaled so that scores have unit variance within classes and no
        covariance, largest entries positive. Those that the rows so far do not have are zero.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Ratio of the variances between and within classes, as a share of the sum for all discriminants.
    means_ : ndarray of shape (n_classes, n_features)
        Means of the classes; ``xbar_`` for one without rows.
    xbar_ : ndarray of shape (n_features,)
        Mean of all rows.
    priors_ : ndarray of shape (n_classes,)
        Probabilities of the classes that predictions are made with: ``priors``, or shares of the rows.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    n_components_ : int
        Discriminants that the rows so far have.
    solver_ : str
        "scatter" or "covariance-free".
    n_samples_seen_ : int
        Number of training samples.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X has any that are all strings.

    See Also
    --------
    sklearn.discriminant_analysis.LinearDiscriminantAnalysis : Of data in memory.

    Notes
    -----
    *Exact.* Directions in which rows do not vary within classes, as there are with fewer rows than features, would have
    infinite ratios. Variances there are raised to 1e-9 of the largest, for features in units of their deviations within
    classes. So if classes differ in such directions they come first, and rows of a class have all but the same scores.
    That separates the rows seen perfectly, but new ones badly if there are about as many rows as features: shrink then,
    or go without the covariance. (New pairs of faces were right in 54 % after 500 rows of 512 features, in 87 % with
    ``shrinkage=0.1``, in 95 % covariance-free.) scikit-learn's solver "svd" leaves such directions out, and "eigen"
    fails. Its "eigen" also shrinks the scatter between classes, which tilts the discriminants; it predicts the same.

    Predictions, probabilities and decision scores are those of scikit-learn's solvers "eigen" and "lsqr" with the same
    ``shrinkage``. (Its "svd" divides the scatter by the number of rows less that of classes, and so is a little less
    sure.) With ``priors``, scikit-learn also weighs the covariance of each class, and its share in the scatter between
    classes, by them. Here one scatter is kept for all classes, so ``priors`` enter the decision alone: probabilities
    are those without ``priors``, times ``priors`` over shares, divided by their sum.

    *Covariance-free.* Least squares regression of the classes on X has the subspace of LDA. It is learnt by a step
    of normalised least mean squares for every row, of features in units of their running deviations, and the iterates
    are averaged, the k-th with weight k. Constant steps with averaging are known to converge as 1/n for least squares
    whatever the condition (Bach and Moulines). Class means are exact, and with the regression they give the order and
    the scale of the discriminants too. Shuffle rows that are sorted by class. Probabilities are those of the
    discriminants so far, and approach the exact ones with them.

    Measured in one pass in random order, the angles to exact LDA of the same rows, the largest, and the median if there
    are many discriminants, and beside them those of the rule after Hiraoka et al., at the better of two steps, which
    diverged at the other in all cases but the first:

    =========================================  ======  =======  =============  =============
    rows                                       number  classes  angles         after Hiraoka
    =========================================  ======  =======  =============  =============
    Gaussian, 20 features, deviations 1 to 10  20,000  4        1              13
    Gaussian, 100 features, 1 to 30            20,000  4        20             66
    pairs of faces, 512 features               4,800   2        24             32
    images, 512 features of VGG16              5,000   10       48, median 35  89, median 75
    the same                                   25,000  50       54, median 20  89, median 68
    =========================================  ======  =======  =============  =============

    Predictions for new pairs of faces were right in 95.8 % (exact LDA: 95.3 %), for new images in 48 % of 10 classes
    (49.8 %) and in 35.6 % of 50 (35.6 %).

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
    _free_parameters = frozenset({"priors"})

    target = "labels"
    n_components: Any

    scalings_ = Solved("Discriminants.")
    explained_variance_ratio_ = Solved("Ratios of variances, as shares.")
    means_ = Solved("Means of the classes.")
    xbar_ = Solved("Mean of all rows.")
    n_components_ = Solved("Discriminants that the rows so far have.")
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
        """Probabilities of the classes that predictions are made with."""
        shares: Float64Array = self._solution().shares
        return shares if self.priors is None else require_priors(self.priors, len(self.classes_))

    def predict(self, X: Any) -> Array:
        """Return the most likely label of each row: that of the nearest class, corrected for its prior probability.

        All discriminants count, also those past ``n_components``.

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
            The logarithm of the likelihood of each class, times its prior probability, but for a number that is the
            same for all classes of a row. For two classes, that of the second less that of the first.
        """
        values: Float64Array = self._decide(X, "values", then=against_the_first)
        return values

    def predict_log_proba(self, X: Any) -> Float64Array:
        """Return the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or source
            The rows.

        Returns
        -------
        logarithms : ndarray of shape (n_samples, n_classes)
            Minus infinity for a class that has no rows or a prior probability of zero.
        """
        logarithms: Float64Array = self._decide(X, "log_probabilities")
        return logarithms

    def predict_proba(self, X: Any) -> Float64Array:
        """Return the probabilities of the classes: those of normal distributions with one covariance.

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
        """Return what a method of the decision makes of the scores of X, and a function of that."""
        solution = self._solution()
        method = getattr(solution.decision(self.priors_), what)
        return self._map_product(X, solution.directions, lambda scores: then(method(scores)))

    def _as_target(self, y: Any, classes: Any) -> Array:
        return as_labels(y, type(self).__name__, first=classes is None and not hasattr(self, "_state"))

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
                f"n_components={self.n_components} is too many: there are at most {largest} discriminant(s) of "
                f"{n_classes} classes and {n_features} feature(s)."
            )
        if self.priors is not None:
            require_priors(self.priors, n_classes)
        if self._solver_for(n_features) == "scatter":
            return WithinScatter.of(n_classes, n_features)
        if self.shrinkage is not None:
            raise ValueError(
                f"shrinkage needs the scatter of all {n_features} features: pass solver='scatter', or no shrinkage."
            )
        return OnlineState.of(IndicatorRegression.of(n_columns, n_features, float(self.eta)), n_features, n_columns)

    def _solve(self, state: WithinScatter | OnlineState) -> Discriminants:
        n_features, shrinkage = self.n_features_in_, self._begun_with["shrinkage"] or 0.0
        n_components = self._begun_with["n_components"] or min(n_features, len(self.classes_) - 1)
        if isinstance(state, WithinScatter):
            return _solve_scatter(state.settled(), n_components, shrinkage)
        return _solve_regression(state, n_components)


def _solve_scatter(state: WithinScatter, n_components: int, shrinkage: float) -> Discriminants:
    n_rows, n_features = max(1, state.n_rows), len(state.origin)
    priors = state.counts / n_rows
    lower = state.lower / n_rows
    covariance = np.tril(lower) + np.tril(lower, -1).T
    if shrinkage:
        sphere = shrinkage * float(np.trace(covariance)) / n_features
        covariance *= 1 - shrinkage
        covariance.flat[:: n_features + 1] += sphere
    between = np.sqrt(priors)[:, None] * (state.offsets - priors @ state.offsets)
    solved = _discriminants(covariance, between.T)
    return Discriminants.of("scatter", n_components, (state.origin, state.unit or 1.0), state.offsets, priors, solved)


def _discriminants(within: Float64Array, between: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return directions g and ratios of bb' g = ratio within g, with g'within g = 1, for b of one column per class.

    ``within`` is overwritten. There are as many directions as columns of b; without a ratio they are zero.
    """
    deviations = np.sqrt(within.diagonal())
    totals = np.sqrt(within.diagonal() + np.square(between).sum(axis=1))
    # What does not vary within classes is rounding error there.
    scale = np.where(deviations > 1e-12 * totals, deviations, totals)
    scale[scale == 0] = 1.0
    within /= scale[:, None] * scale
    between = between / scale[:, None]
    factor, is_singular = lapack.dpotrf(within, lower=1)
    if not is_singular:
        reciprocal_condition, _ = lapack.dpocon(factor, np.abs(within).sum(axis=0).max(), uplo="L")
        is_singular = reciprocal_condition < _LEAST_VARIANCE
    if is_singular:
        variances, axes = linalg.eigh(within)
        axes = axes / np.sqrt(np.maximum(variances, _LEAST_VARIANCE * (variances[-1] or 1.0)))
        whitened = axes.T @ between
    else:
        whitened = linalg.solve_triangular(factor, between, lower=True)
    U, s, _ = linalg.svd(whitened, full_matrices=False)
    directions = axes @ U if is_singular else linalg.solve_triangular(factor, U, lower=True, trans="T")
    there_is = s > max(1e-12, 1e-10 * s[0])
    return directions / scale[:, None] * there_is, np.square(s) * there_is


def _svd_of_product(left: Float64Array, right: Float64Array) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return the singular value decomposition of a product, without forming it if it is large and of low rank."""
    n, rank = left.shape
    if n <= max(rank, _LARGEST_PRODUCT):
        U, s, V = linalg.svd(left @ right)
        return U, s, V
    (Q1, R1), (Q2, R2) = linalg.qr(left, mode="economic"), linalg.qr(right.T, mode="economic")
    U, s, V = linalg.svd(R1 @ R2.T)
    return Q1 @ U, s, V @ Q2.T


def _solve_regression(state: OnlineState, n_components: int) -> Discriminants:
    """Return the discriminants, from what regression of the indicators of classes on X has come to.

    With D = (m_k - mean) sqrt(prior_k), one column per class, and T the covariance of all rows, the coefficients are
    G sqrt(prior), G = T^-1 D. An eigenvector v of D'G, of eigenvalue r, gives the discriminant g = Gv, with g'Tg = r
    and g'DD'g = r^2, hence g'(T - DD')g = r (1 - r). Before the regression has converged, D'G is not symmetric: with
    its singular values and right singular vectors g'DD'g is what it is said to be all the same.
    """
    regression: IndicatorRegression = state.recursion
    n_rows = max(1, state.n_rows)
    # Columns of -1 and +1, divided by their unit, are twice the indicators of the classes.
    halves = np.array([[-0.5], [0.5]]) if len(regression.A) == 1 else 0.5
    to_indicators = halves / (state.y.unit or 1.0)
    deviations = np.sqrt(regression.squares / n_rows)
    coefficients = np.divide(regression.A, deviations, out=np.zeros_like(regression.A), where=deviations > 0)
    coefficients = coefficients * to_indicators
    covariances = regression.C / n_rows * to_indicators
    shares = 2 * halves * state.y.mean[:, None]
    priors = np.rint((1 + shares[:, 0]) / 2 * n_rows) / n_rows
    roots = np.sqrt(priors)[:, None]
    weights = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
    directions, between = (coefficients * weights).T, (covariances * weights).T
    _, r, V = _svd_of_product(between.T, directions)
    there_is = r > 1e-10
    r = np.where(there_is, np.minimum(r, 1 - _LEAST_VARIANCE), 0.5)
    solved = directions @ (V.T / np.sqrt(r * (1 - r))) * there_is, r / (1 - r) * there_is
    offsets = state.x.offset + (between * weights.T).T
    place = state.x.origin, state.x.unit or 1.0
    return Discriminants.of("covariance-free", n_components, place, offsets, priors, solved)
