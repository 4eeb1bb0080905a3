"""SGDPLS: partial least squares as the singular value decomposition of a cross-covariance, by stochastic gradients."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from .._core.aligned import Copied
from .._core.signs import peak_signs
from .._core.types import Array, Float64Array
from ..estimators._solution import Solved
from ._base import Stream, Supervised, Tile

Factors = tuple[Float64Array, Float64Array, Float64Array]

# Rank beyond the number of components that "msg" and "incremental" keep: what is small so far may turn out to be large.
# With none, the last of 5 components of 10 classes of images was 81 degrees off; with 4, the rank of 10 classes, none.
_EXTRA_RANK = 10
# Steps that did well on simulated data, digits, faces and images of 10 and of 200 classes.
_ETA0 = {"sgd": 0.3, "msg": 0.05, "incremental": 0.0}


@dataclass
class IncrementalSVD(Copied):
    """Largest singular values of the sum of xy', U'diag(s)V, with their vectors in the rows of U and V."""

    U: Float64Array
    s: Float64Array
    V: Float64Array

    @classmethod
    def of(cls, rank: int, n_features: int, n_columns: int) -> IncrementalSVD:
        """Return the decomposition of zero."""
        return cls(np.zeros((rank, n_features)), np.zeros(rank), np.zeros((rank, n_columns)))

    def learn(self, tile: Tile) -> int:
        """Take in rows."""
        from .kernels.sgdpls import incremental_svd

        return int(incremental_svd(tile.U, tile.V, tile.n_before, self.U, self.s, self.V))

    def factors(self, n_rows: int) -> Factors:
        """Return the rows of U and V, and the covariances of their scores, the largest first."""
        rank = int(np.count_nonzero(self.s))
        return self.U[:rank], self.V[:rank], self.s[:rank] / max(1, n_rows - 1)


@dataclass
class MatrixGradient(Copied):
    """The matrix U'diag(s)V, of spectral norm 1 and nuclear norm c at most, that has the largest products with xy'.

    Attributes
    ----------
    U, V : ndarrays of shape (rank, m) and (rank, q)
        Orthonormal rows.
    s : ndarray of shape (rank,)
        Singular values.
    covariance : ndarray of shape (rank, rank)
        Estimated covariances of Ux with Vy.
    previous_x, previous_y : ndarrays of shape (m,) and (q,)
        The last row.
    totals : ndarray of shape (3,)
        Sums of squares of x and of y, and of products of rows.
    n_components : int
        c.
    eta0, n_steps : float and int
        Size of steps, and steps a row.
    """

    U: Float64Array
    s: Float64Array
    V: Float64Array
    covariance: Float64Array
    previous_x: Float64Array
    previous_y: Float64Array
    totals: Float64Array
    n_components: int
    eta0: float
    n_steps: int

    @classmethod
    def of(
        cls, n_components: int, rank: int, n_features: int, n_columns: int, eta0: float, n_steps: int
    ) -> MatrixGradient:
        """Return the matrix zero."""
        return cls(
            U=np.zeros((rank, n_features)),
            s=np.zeros(rank),
            V=np.zeros((rank, n_columns)),
            covariance=np.zeros((rank, rank)),
            previous_x=np.zeros(n_features),
            previous_y=np.zeros(n_columns),
            totals=np.zeros(3),
            n_components=n_components,
            eta0=eta0,
            n_steps=n_steps,
        )

    def learn(self, tile: Tile) -> int:
        """Take in rows."""
        from .kernels.sgdpls import matrix_gradient

        matrix = (self.U, self.s, self.V, self.covariance)
        past = (self.previous_x, self.previous_y, self.totals)
        options = (self.eta0, self.n_steps, self.n_components)
        return int(matrix_gradient(tile.U, tile.V, tile.n_before, *matrix, *past, *options))

    def factors(self, n_rows: int) -> Factors:
        """Return the rows of U and V, and the covariances of their scores, the largest first."""
        rank = min(self.n_components, int(np.count_nonzero(self.s)))
        return _aligned(self.U[:rank], self.V[:rank], self.covariance[:rank, :rank])


@dataclass
class StochasticGradient(Copied):
    """Orthonormal bases whose scores have the largest covariances: the rows of U_factor U and of V_factor V.

    Attributes
    ----------
    U, V : ndarrays of shape (c, m) and (c, q)
        Vectors.
    U_factor, V_factor : ndarrays of shape (c, c)
        Lower triangular matrices.
    begun : ndarray of shape (1,)
        Rows of U that are not zero.
    covariance : ndarray of shape (c, c)
        Estimated covariances of the scores.
    previous_x, previous_y : ndarrays of shape (m,) and (q,)
        The last row.
    totals : ndarray of shape (3,)
        Sums of squares of x and of y, and of products of rows.
    eta0, n_steps : float and int
        Size of steps, and steps a row.
    """

    U: Float64Array
    U_factor: Float64Array
    V: Float64Array
    V_factor: Float64Array
    begun: Array
    covariance: Float64Array
    previous_x: Float64Array
    previous_y: Float64Array
    totals: Float64Array
    eta0: float
    n_steps: int

    @classmethod
    def of(cls, V: Float64Array, n_features: int, eta0: float, n_steps: int) -> StochasticGradient:
        """Return bases that have seen no rows, given that for y."""
        c, n_columns = V.shape
        return cls(
            U=np.zeros((c, n_features)),
            U_factor=np.eye(c),
            V=V,
            V_factor=np.eye(c),
            begun=np.zeros(1, dtype=np.int64),
            covariance=np.zeros((c, c)),
            previous_x=np.zeros(n_features),
            previous_y=np.zeros(n_columns),
            totals=np.zeros(3),
            eta0=eta0,
            n_steps=n_steps,
        )

    def learn(self, tile: Tile) -> int:
        """Take in rows."""
        from .kernels.sgdpls import stochastic_gradient

        bases = (self.U, self.U_factor, self.V, self.V_factor, self.begun, self.covariance)
        past = (self.previous_x, self.previous_y, self.totals)
        return int(stochastic_gradient(tile.U, tile.V, tile.n_before, *bases, *past, self.eta0, self.n_steps))

    def factors(self, n_rows: int) -> Factors:
        """Return the rows of U and V, and the covariances of their scores, the largest first."""
        rank = int(self.begun[0])
        U, V = self.U_factor @ self.U, self.V_factor @ self.V
        return _aligned(U[:rank], V[:rank], self.covariance[:rank, :rank])


def _aligned(U: Float64Array, V: Float64Array, covariance: Float64Array) -> Factors:
    """Return bases of the same spaces whose scores have no covariances but those of pairs, and these."""
    A, s, B = np.linalg.svd(covariance)
    return A.T @ U, B @ V, s


@dataclass(frozen=True)
class CrossCovarianceSVD:
    """Pairs of directions in the order of their covariances, largest entries of those of X positive."""

    x_mean: Float64Array
    y_mean: Float64Array
    x_weights: Float64Array
    y_weights: Float64Array
    singular_values: Float64Array
    n_components: int

    @property
    def projection(self) -> Float64Array:
        """The weights of X."""
        return self.x_weights


class SGDPLS(Supervised):
    """Partial least squares as a singular value decomposition of the cross-covariance of X and y, by gradients.

    The components are the pairs of directions in X and y whose scores have the largest covariances, as in
    scikit-learn's PLSSVD. They are not deflated as in PLS regression, with which they share the first one. Rows are
    taken in one by one, and memory is that of a few vectors.

    Parameters
    ----------
    n_components : int, default=2
        Number of components. There are no more than y has dimensions: one for two classes or one response, k - 1 for k
        classes, q for q responses. Further ones are zero.
    algorithm : {"sgd", "msg", "incremental"}, default="sgd"
        How the directions are found.

        - "sgd": steps of both bases along the gradient, x(y'V) and y(x'U). The fastest, and the least accurate.
        - "msg": steps of a matrix along xy', each followed by a projection to singular values from 0 to 1 with a sum of
          at most ``n_components``.
        - "incremental": a singular value decomposition of the sum of all xy', of which only the largest values are
          kept after each row, 10 more than components. Exact if there are no others, in particular for 12 classes or
          fewer, and the most accurate in general. It has no steps.
    eta0 : float, default=None
        Size of steps: that of row t is eta0/sqrt(t), divided by an estimate of the norm of the cross-covariance, so
        that units do not matter, and no row changes a direction by more than half its length. By default 0.3 for "sgd"
        and 0.05 for "msg".
    n_steps : int, default=1
        Steps with every row, each an ``n_steps``-th of its size.
    random_state : int, RandomState instance or None, default=None
        Where the directions in y begin with "sgd". The other algorithms have nothing random.
    target : {"auto", "labels", "values"}, default="auto"
        What y is. By default floats are values unless classes are given, and all else is labels. Two classes are one
        column of -1 and +1, and more are one such column for each class.

    Attributes
    ----------
    x_weights_ : ndarray of shape (n_features, n_components)
        Directions in X: orthonormal columns, largest entries positive, in the order of their covariances.
    y_weights_ : ndarray of shape (n_columns, n_components)
        The same in the columns that y is turned into.
    singular_values_ : ndarray of shape (n_components,)
        Covariances of the scores of X with those of y, as estimated.
    x_mean_ : ndarray of shape (n_features,)
        Means of the features.
    y_mean_ : ndarray of shape (n_columns,)
        Means of the columns that y is turned into.
    classes_ : ndarray of shape (n_classes,)
        The labels, if y holds labels.
    n_components_ : int
        Components that the rows so far have; further ones are zero.
    n_samples_seen_ : int
        Rows that the model was made from.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X has any that are all strings.

    See Also
    --------
    sklearn.cross_decomposition.PLSSVD : The same decomposition of data in memory.
    plstream.IncrementalPLS : PLS regression, exact.

    Notes
    -----
    The code released with the CIPLS paper neither centres X and y nor keeps its matrices from growing, so they overflow
    after some thousand rows, and of the components past the dimensions of y it returns what it began with, which was
    random. Here rows are minus the running means, in a way that makes the sum of all xy' exactly the centred X'Y; bases
    are orthonormal after every step; and a component begins with the first row that has a part outside the ones before.

    Gradients take many rows to settle, most of all where singular values are close to each other. The paper has 100
    passes or more over the data, in each call. Here a call is one pass, and rows may be passed to ``partial_fit``
    again. For scikit-learn's digits, 1,797 rows, the space of 3 components is 8 to 10 degrees off with "sgd" and 6 with
    "msg" after one pass, and 2 and 1 after ten (medians of the largest angle). That depends on the order of the rows:
    in 6 to 8 of 100 orders "sgd" had lost a component after one pass, "msg" in none. Within that space, directions come
    from a running estimate of the covariances of the scores.

    References
    ----------
    R. Arora, A. Cotter, K. Livescu and N. Srebro, "Stochastic optimization for PCA and PLS", Allerton Conference on
    Communication, Control, and Computing, 2012.

    R. Arora, P. Mianjy and T. Marinov, "Stochastic optimization for multiview representation learning using partial
    least squares", International Conference on Machine Learning, 2016.

    M. Brand, "Fast low-rank modifications of the thin singular value decomposition", Linear Algebra and its
    Applications 415, 2006.

    Examples
    --------
    >>> from plstream import SGDPLS
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SGDPLS(n_components=2, algorithm="incremental").fit(X, y)
    >>> model.x_weights_.round(2)
    array([[ 0.33,  0.33],
           [-0.11,  0.89],
           [ 0.86, -0.13],
           [ 0.37,  0.29]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Supervised._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "algorithm": [StrOptions({"sgd", "msg", "incremental"})],
        "eta0": [Interval(Real, 0, None, closed="neither"), None],
        "n_steps": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    x_weights_ = Solved("Directions in X.")
    y_weights_ = Solved("Directions in y.")
    singular_values_ = Solved("Covariances of the scores of X with those of y.")
    x_mean_ = Solved("Means of the features.")
    y_mean_ = Solved("Means of the columns that stand for y.")
    n_components_ = Solved("Components that the rows so far have.")

    def __init__(
        self,
        n_components: int = 2,
        *,
        algorithm: str = "sgd",
        eta0: float | None = None,
        n_steps: int = 1,
        random_state: Any = None,
        target: str = "auto",
    ) -> None:
        self.n_components = n_components
        self.algorithm = algorithm
        self.eta0 = eta0
        self.n_steps = n_steps
        self.random_state = random_state
        self.target = target

    def _begin(self, n_features: int, n_columns: int) -> IncrementalSVD | MatrixGradient | StochasticGradient:
        # One column a class, centred: they add up to zero.
        is_one_a_class = self._targets.classes is not None and n_columns > 1
        largest_rank = min(n_features, n_columns - is_one_a_class)
        c, eta0 = min(self.n_components, largest_rank), float(self.eta0 or _ETA0[self.algorithm])
        if self.algorithm == "incremental":
            return IncrementalSVD.of(min(c + _EXTRA_RANK, largest_rank), n_features, n_columns)
        if self.algorithm == "msg":
            rank = min(c + _EXTRA_RANK, largest_rank)
            return MatrixGradient.of(c, rank, n_features, n_columns, eta0, self.n_steps)
        random = check_random_state(self.random_state)
        V = np.linalg.qr(random.standard_normal((n_columns, c)))[0].T.copy()
        return StochasticGradient.of(V, n_features, eta0, self.n_steps)

    def _solve(self, stream: Stream) -> CrossCovarianceSVD:
        recursion: Any = stream.recursion
        n_components = self._begun_with["n_components"]
        U, V, s = (factor[:n_components] for factor in recursion.factors(stream.n_rows))
        missing = (0, n_components - len(s))
        x_weights, y_weights = (np.pad(vectors, (missing, (0, 0))).T for vectors in (U, V))
        signs = peak_signs(x_weights)
        with np.errstate(over="ignore", under="ignore"):
            singular_values = np.pad(s, missing) / (stream.x.unit or 1.0) / (stream.y.unit or 1.0)
        return CrossCovarianceSVD(
            x_mean=stream.x.mean,
            y_mean=stream.y.mean,
            x_weights=x_weights * signs,
            y_weights=y_weights * signs,
            singular_values=singular_values,
            n_components=len(s),
        )
