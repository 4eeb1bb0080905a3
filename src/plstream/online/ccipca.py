"""CCIPCA: principal components without a covariance matrix, one row at a time."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from .._core.aligned import Copied
from .._core.signs import peak_signs
from .._core.types import Array, Float64Array
from ..estimators._solution import Solved
from ._base import Stream, Tile, Unsupervised

Amnesic = float | tuple[float, float, float]


@dataclass
class PrincipalDirections(Copied):
    """Vectors whose directions are principal components, and whose lengths are their variances.

    Attributes
    ----------
    V : ndarray of shape (c, m)
        The vectors.
    squares : ndarray of shape (c,)
        Their sums of squares.
    ages : ndarray of shape (c,)
        Rows that each has learnt from.
    row_squares : ndarray of shape (2,)
        Mean and largest sum of squares of a row, the mean with the weights that the first component gives to rows.
    amnesic : ndarray of shape (4,)
        How much more new rows weigh than in a plain average: l, n1, n2, r.
    """

    V: Float64Array
    squares: Float64Array
    ages: Float64Array
    row_squares: Float64Array
    amnesic: Float64Array

    @classmethod
    def of(cls, n_components: int, n_features: int, amnesic: Amnesic) -> PrincipalDirections:
        """Return directions that have seen no rows."""
        V, squares, ages = np.zeros((n_components, n_features)), np.zeros(n_components), np.zeros(n_components)
        return cls(V, squares, ages, np.zeros(2), _as_schedule(amnesic))

    def learn(self, tile: Tile) -> int:
        """Take in rows."""
        from .kernels.ccipca import ccipca

        return int(ccipca(tile.U, self.V, self.squares, self.ages, self.row_squares, self.amnesic))

    def sorted(self) -> tuple[Float64Array, Float64Array]:
        """Return unit directions, one a row, and variances, the largest first; zero for those there are none of."""
        lengths = np.sqrt(self.squares)
        order = np.argsort(-lengths, kind="stable")
        order = order[lengths[order] > 0]
        units = self.V[order] / lengths[order, None]
        kept = _outside_those_before(units)
        directions, variances = np.zeros_like(self.V), np.zeros_like(lengths)
        directions[: len(kept)], variances[: len(kept)] = units[kept], lengths[order[kept]]
        return directions, variances


@dataclass(frozen=True)
class PrincipalComponents:
    """Components in the order of their variances, with the largest entry of each positive."""

    x_mean: Float64Array
    components: Float64Array
    explained_variance: Float64Array
    explained_variance_ratio: Float64Array
    n_components: int

    @property
    def mean(self) -> Float64Array:
        """The mean, under the name it has in scikit-learn's PCA."""
        return self.x_mean

    @property
    def projection(self) -> Float64Array:
        """The components as columns."""
        return self.components.T


class CCIPCA(Unsupervised):
    """Principal component analysis without a covariance matrix, one row at a time.

    Candid covariance-free incremental PCA. Its memory is that of the components, and a row costs a few passes over
    them. Components approach those of PCA as rows come in.

    Parameters
    ----------
    n_components : int, default=2
        Number of components.
    amnesic : float or tuple (n1, n2, r), default=2.0
        How much more a new row weighs than in a plain average, l: (1 + l)/n instead of 1/n, in order to forget the
        directions of the first rows, which were far off. A tuple is a schedule: none up to row n1, growing to 2 up to
        row n2, and then by one every r rows, which follows a stream that changes. (20, 200, 2000) is usual.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Principal components of unit length, in the order of their variances, largest entries positive.
    explained_variance_ : ndarray of shape (n_components,)
        Their variances, as estimated.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The same as shares of the variance of rows, which is estimated with the same weights.
    mean_ : ndarray of shape (n_features,)
        Means of the features.
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
    sklearn.decomposition.IncrementalPCA : By singular value decompositions of blocks of rows.

    Notes
    -----
    The code released with the CIPLS paper weighs new rows by (n + l)/n: its directions are right, and its variances
    grow with the number of rows. Here a component begins as the first row that has a part outside the ones before,
    with the square of its length as variance, and its own rows are counted, so that l is never more than half of them.
    Components are orthogonal only in the limit. Those that lie in the span of stronger ones, as come up in rows of low
    rank, are left out of the result.

    References
    ----------
    J. Weng, Y. Zhang and W.-S. Hwang, "Candid covariance-free incremental principal component analysis", IEEE
    Transactions on Pattern Analysis and Machine Intelligence 25, 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import CCIPCA
    >>> X = np.random.default_rng(0).normal(size=(5000, 4)) * [4, 3, 2, 1]
    >>> model = CCIPCA(n_components=2).fit(X)
    >>> model.components_.round(1) + 0.0
    array([[1., 0., 0., 0.],
           [0., 1., 0., 0.]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "amnesic": [Interval(Real, 0, None, closed="left"), tuple],
    }

    components_ = Solved("Principal components.")
    explained_variance_ = Solved("Variances of the components.")
    explained_variance_ratio_ = Solved("Shares of the variance of rows.")
    mean_ = Solved("Means of the features.")
    n_components_ = Solved("Components that the rows so far have.")

    def __init__(self, n_components: int = 2, *, amnesic: Amnesic = 2.0) -> None:
        self.n_components = n_components
        self.amnesic = amnesic

    def _begin(self, n_features: int, n_columns: int) -> PrincipalDirections:
        return PrincipalDirections.of(self.n_components, n_features, self.amnesic)

    def _solve(self, stream: Stream) -> PrincipalComponents:
        directions: Any = stream.recursion
        components, variances = directions.sorted()
        return PrincipalComponents(
            x_mean=stream.x.mean,
            components=components * peak_signs(components.T)[:, None],
            explained_variance=in_units_of_data(variances, stream),
            explained_variance_ratio=variances / (directions.row_squares[0] or 1.0),
            n_components=int(np.count_nonzero(variances)),
        )


def _as_schedule(amnesic: Amnesic) -> Float64Array:
    if not isinstance(amnesic, tuple):
        return np.array([amnesic, 0.0, 0.0, 0.0])
    is_schedule = len(amnesic) == 3 and all(isinstance(number, Real) for number in amnesic)
    if not is_schedule or not 0 <= amnesic[0] < amnesic[1] or not amnesic[2] > 0:
        raise ValueError(f"amnesic must be one number, or (n1, n2, r) with 0 <= n1 < n2 and r > 0, not {amnesic}.")
    return np.array([0.0, *amnesic])


def _outside_those_before(units: Float64Array) -> Array:
    """Return which unit vectors, one a row, are outside the span of those before them.

    Vectors that have not converged are not orthogonal. So what they leave of rows of low rank is not zero, and begins
    further vectors within the span of the first.
    """
    # Squares of the parts outside, by Cholesky's method. They are known to 1e-15.
    products = units @ units.T
    kept = []
    for i in range(len(units)):
        if products[i, i] > 1e-12:
            kept.append(i)
            products -= np.outer(products[i], products[i]) / products[i, i]
    return np.array(kept, dtype=np.intp)


def in_units_of_data(variances: Float64Array, stream: Stream) -> Float64Array:
    """Return variances of a stream's rows as those of the data, which may be more than a number can hold."""
    unit = stream.x.unit or 1.0
    with np.errstate(over="ignore"):
        return variances / unit / unit
