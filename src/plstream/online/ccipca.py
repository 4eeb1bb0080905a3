"""CCIPCA: principal components without a covariance matrix, one row at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from operator import attrgetter
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .._core.compiled import compiled, compiled_inline
from .._core.schema import Count, Numbers, Object, solved_numbers, stored
from .._core.signs import peak_signs
from .._core.types import Array, Float64Array
from ..estimators.attributes import Solved
from .base import OnlineMethod, stored_method
from .loops import is_finite, scale_into, square_and_product
from .state import OnlineState, Recursion, Tile, zeros_of

Amnesic = float | tuple[float, float, float]


@stored()
@dataclass
class PrincipalDirections(Recursion):
    """Vectors with the directions of principal components and their variances as lengths."""

    V: Annotated[Float64Array, Numbers("L?", "m")]
    """The vectors."""
    squares: Annotated[Float64Array, Numbers("L?", least=0)]
    """Their sums of squares."""
    ages: Annotated[Float64Array, Numbers("L?", least=0)]
    """Number of rows that each has learnt from."""
    row_squares: Annotated[Float64Array, Numbers(2, least=0)]
    """Mean and largest sum of squares of a row, the mean with the weights of the first component."""
    amnesic: Annotated[Float64Array, Numbers(4, least=0)]
    """Extra weight of new rows, relative to a plain average: l, n1, n2, r."""

    def learn(self, tile: Tile) -> int:
        """Learn from the rows."""
        return int(ccipca(tile.U, self.V, self.squares, self.ages, self.row_squares, self.amnesic))

    def sorted(self) -> tuple[Float64Array, Float64Array]:
        """Return unit directions, one per row, and variances, in descending order; zero past the rank."""
        lengths = np.sqrt(self.squares)
        order = np.argsort(-lengths, kind="stable")
        order = order[lengths[order] > 0]
        units = self.V[order] / lengths[order, None]
        kept = _is_new_direction(units)
        directions, variances = np.zeros_like(self.V), np.zeros_like(lengths)
        directions[: len(kept)], variances[: len(kept)] = units[kept], lengths[order[kept]]
        return directions, variances


def as_schedule(amnesic: Amnesic) -> Float64Array:
    """Return ``amnesic`` as in :func:`_amnesia`."""
    if not isinstance(amnesic, tuple):
        return np.array([amnesic, 0.0, 0.0, 0.0])
    is_schedule = len(amnesic) == 3 and all(isinstance(number, Real) for number in amnesic)
    if not is_schedule or not 0 <= amnesic[0] < amnesic[1] or not amnesic[2] > 0:
        raise ValueError(f"amnesic must be one number, or (n1, n2, r) with 0 <= n1 < n2 and r > 0, not {amnesic}.")
    return np.array([0.0, *amnesic])


def _is_new_direction(units: Float64Array) -> Array:
    """Return which unit vectors, one per row, are outside the span of the vectors before them.

    Vectors that have not converged are not orthogonal. With rows of low rank, the remainder after deflation is then not
    zero, and starts further vectors within the span of the first ones.
    """
    # Squares of the parts outside, by Cholesky's method, accurate to 1e-15.
    products = units @ units.T
    kept = []
    for i in range(len(units)):
        if products[i, i] > 1e-12:
            kept.append(i)
            products -= np.outer(products[i], products[i]) / products[i, i]
    return np.array(kept, dtype=np.intp)


@compiled
def ccipca(
    U: Float64Array,
    V: Float64Array,
    squares: Float64Array,
    ages: Float64Array,
    row_squares: Float64Array,
    amnesic: Float64Array,
) -> int:
    """Rotate the rows of V towards the principal components of the rows of U, which are deflated in place.

    Row i of V has the sum of squares squares[i], and has seen ages[i] rows; ``row_squares`` are the mean and the
    largest sum of squares of a row of U, the mean with the weights of V[0]; ``amnesic`` is as in :func:`_amnesia`.
    """
    c, m = V.shape
    nothing = np.zeros(m)
    for k in range(len(U)):
        u = U[k]
        left, product = square_and_product(u, V[0])
        whole = left
        row_squares[1] = max(row_squares[1], whole)
        for i in range(c):
            begins = squares[i] == 0
            if begins:
                # A single row is its own principal component, of variance |u|^2. But the remainder of a row explained
                # by the components is a rounding error, relative to the largest row, because it has moved the mean.
                if left <= 1e-26 * row_squares[1]:
                    break
                scale_into(V[i], math.sqrt(left), u)
                squares[i], ages[i] = left * left, 1
            else:
                ages[i] += 1
                share = _weight_of_new(ages[i], amnesic)
                following = V[i + 1] if i + 1 < c else nothing
                product, left, squares[i] = _turn_and_deflate(V[i], following, u, product, left, squares[i], share)
            if not (is_finite(squares[i]) and is_finite(left)):
                return i
            if begins:
                break
        if ages[0] > 0:
            row_squares[0] += _weight_of_new(ages[0], amnesic) * (whole - row_squares[0])
    return -1


@compiled_inline
def _weight_of_new(age: float, amnesic: Float64Array) -> float:
    """Return (1 + l)/age, with l limited so that old rows keep at least half their weight in a plain average."""
    share: float = (1 + min(_amnesia(age, amnesic), (age - 1) / 2)) / age
    return share


@compiled_inline
def _amnesia(age: float, amnesic: Float64Array) -> float:
    """Return l at a given age, for ``amnesic`` = (l, n1, n2, r): the constant l if r is zero, else Weng's schedule."""
    constant: float = amnesic[0]
    n1: float = amnesic[1]
    n2: float = amnesic[2]
    r: float = amnesic[3]
    if r == 0:
        return constant
    if age < n1:
        return 0.0
    if age < n2:
        return 2 * (age - n1) / (n2 - n1)
    return 2 + (age - n2) / r


@compiled_inline
def _turn_and_deflate(
    v: Float64Array,
    following: Float64Array,
    u: Float64Array,
    product: float,
    left: float,
    square: float,
    share: float,
) -> tuple[float, float, float]:
    """Average v with (u.v/|v|) u, deflate u by the new v, and return u.v of the next v, |u|^2 and |v|^2.

    The new v is formed in the same pass; its products with itself and with u are known in advance.
    """
    old, new = 1 - share, share * product / math.sqrt(square)
    new_square = old * old * square + 2 * old * new * product + new * new * left
    shift = (old * product + new * left) / new_square if new_square > 0 else 0.0
    next_product, next_left, next_square = 0.0, 0.0, 0.0
    for j in range(len(u)):
        vj = old * v[j] + new * u[j]
        uj = u[j] - shift * vj
        v[j], u[j] = vj, uj
        next_product += uj * following[j]
        next_left += uj * uj
        next_square += vj * vj
    return next_product, next_left, next_square


def in_units_of_data(variances: Float64Array, state: OnlineState) -> Float64Array:
    """Return variances converted from the units of a state to those of the data; they may overflow."""
    unit = state.x.unit or 1.0
    with np.errstate(over="ignore"):
        return variances / unit / unit


@stored()
@dataclass(frozen=True)
class PrincipalComponents:
    """Components in descending order of variance, with the largest entry of each positive."""

    x_mean: Annotated[Float64Array, Numbers("m")]
    components: Annotated[Float64Array, solved_numbers("L", "m")]
    explained_variance: Annotated[Float64Array, solved_numbers("L", least=0)]
    explained_variance_ratio: Annotated[Float64Array, solved_numbers("L", least=0)]
    n_components: Annotated[int, Count()]

    # The name in scikit-learn's PCA.
    mean = property(attrgetter("x_mean"))

    @property
    def projection(self) -> Float64Array:
        """The components as columns."""
        return self.components.T


@stored_method(PrincipalDirections, solution=Object(PrincipalComponents, m="m", L="L"), components="L")
class CCIPCA(OnlineMethod):
    """Principal component analysis without a covariance matrix, one row at a time.

    Candid covariance-free incremental PCA stores only the components, and each row takes a few passes over them. The
    components converge to those of PCA.

    Parameters
    ----------
    n_components : int, default=2
        Number of components.
    amnesic : float or tuple (n1, n2, r), default=2.0
        Extra weight l of a new row: (1 + l)/n instead of 1/n, to forget the inaccurate directions of the first rows. A
        tuple is a schedule: zero up to row n1, growing to 2 up to row n2, and then by one every r rows, to follow a
        changing stream. (20, 200, 2000) is usual.
    missing : {"error", "mean"}, default="error"
        How to handle NaN in X. "mean" replaces it with the running mean of the feature (before its first value, with
        that value, which must be in the same call); ``transform`` and similar methods use the mean of the model.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Principal components of unit length, in descending order of variance, largest entries positive.
    explained_variance_ : ndarray of shape (n_components,)
        Their estimated variances.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The same as shares of the total variance, estimated with the same weights.
    mean_ : ndarray of shape (n_features,)
        Means of the features.
    n_components_ : int
        Number of components found so far; further ones are zero.
    n_samples_seen_ : int
        Number of training samples.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X has names that are all strings.

    See Also
    --------
    sklearn.decomposition.IncrementalPCA : PCA by singular value decompositions of blocks.

    Notes
    -----
    The code released with the CIPLS paper weights new rows by (n + l)/n: its directions are correct, but its variances
    grow with the number of rows. Here a component starts from the first row with a part outside the previous ones, with
    its squared length as variance, and counts its own rows, so that l is at most half of them. Components are
    orthogonal only in the limit. Those in the span of stronger ones, which occur in rows of low rank, are left out of
    the result.

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

    _uses_y = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "amnesic": [Interval(Real, 0, None, closed="left"), tuple],
        "missing": [StrOptions({"error", "mean"})],
    }

    components_ = Solved("Principal components.")
    explained_variance_ = Solved("Variances of the components.")
    explained_variance_ratio_ = Solved("Shares of the variance of rows.")
    mean_ = Solved("Means of the features.")
    n_components_ = Solved("Number of components found so far.")

    def __init__(self, n_components: int = 2, *, amnesic: Amnesic = 2.0, missing: str = "error") -> None:
        self.n_components = n_components
        self.amnesic = amnesic
        self.missing = missing

    def _begin(self, n_features: int, n_columns: int) -> OnlineState:
        amnesic = as_schedule(self.amnesic)
        recursion = zeros_of(PrincipalDirections, L=self.n_components, m=n_features, amnesic=amnesic)
        return OnlineState.of(recursion, n_features, n_columns)

    def _solve(self, state: OnlineState) -> PrincipalComponents:
        directions: PrincipalDirections = state.recursion
        components, variances = directions.sorted()
        return PrincipalComponents(
            x_mean=state.x.mean,
            components=components * peak_signs(components.T)[:, None],
            explained_variance=in_units_of_data(variances, state),
            explained_variance_ratio=variances / (directions.row_squares[0] or 1.0),
            n_components=int(np.count_nonzero(variances)),
        )
