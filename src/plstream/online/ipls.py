"""IPLS: exact first weights of PLS, and the others from principal components, one row at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from operator import attrgetter
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .._core.compiled import compiled, compiled_in_order
from .._core.schema import Number, Numbers, Object, is_in_proportion, most_components, solved_numbers, stored
from .._core.signs import peak_signs
from .._core.types import Float64Array
from ..estimators.attributes import Solved
from .base import OnlineMethod, stored_method
from .ccipca import CCIPCA, Amnesic, PrincipalDirections, as_schedule, in_units_of_data
from .loops import add_multiple, is_finite, outer_weight, scale_into, square_and_product
from .state import OnlineState, Recursion, Tile, zeros_of

# A covariance below this share of its upper bound is a rounding error.
_ROUNDING = 1e-14
# A smaller remainder of an orthogonalized vector, relative to the largest variance, is a rounding error.
_VANISHED = 1e-13
# The released code adds it to lengths to avoid division by zero.
_EPSILON = float(np.finfo(np.float64).eps)
# Entries processed at a time: those of a few rows stay in L1 cache.
_STRIP = 512


@stored()
@dataclass
class ReleasedDirections(Recursion):
    """The principal components of the released code: each is nearly a multiple of the last row."""

    V: Annotated[Float64Array, Numbers("L?", "m")]
    """The vectors."""
    amnesic: Annotated[float, Number(0)]

    def learn(self, tile: Tile) -> int:
        """Learn from the rows."""
        if tile.n_before == 0:
            # The very first row is not centred.
            tile.U[0] = tile.X[0]
        return int(ccipca_released(tile.U, self.V, tile.n_before, self.amnesic))

    def sorted(self) -> tuple[Float64Array, Float64Array]:
        """Return unit directions, one per row, and lengths, in descending order."""
        lengths = np.linalg.norm(self.V, axis=1)
        order = np.argsort(-lengths, kind="stable")
        return self.V[order] / _or_one(lengths[order, None]), lengths[order]


@compiled
def ccipca_released(U: Float64Array, V: Float64Array, n_before: int, amnesic: float) -> int:
    """Update V as in the released code, where the weights of old and new rows are swapped; U is deflated in place."""
    for k in range(len(U)):
        u, n = U[k], n_before + k + 1
        for i in range(min(n, len(V))):
            if i + 1 == n:
                scale_into(V[i], 1.0, u)
                continue
            square, product = square_and_product(V[i], u)
            weight = (n - 1 - amnesic) / n
            square, product = _mix(V[i], 1 - weight, u, weight * product / (math.sqrt(square) + _EPSILON))
            if not is_finite(square + product):
                return i
            if square > 0:
                add_multiple(u, -product / square, V[i])
    return -1


@compiled
def _mix(v: Float64Array, old: float, u: Float64Array, new: float) -> tuple[float, float]:
    """Set v to old*v + new*u, and return v.v and v.u."""
    square, product = 0.0, 0.0
    for j in range(len(v)):
        vj = old * v[j] + new * u[j]
        v[j] = vj
        square += vj * vj
        product += vj * u[j]
    return square, product


@stored(
    rules={
        "there are not far more principal components than features": lambda its: (
            len(its.principal.V) <= most_components(its.cross.shape[1])
        )
    },
)
@dataclass
class Covariances(Recursion):
    """Sums of products of X and y, and principal components of X."""

    cross: Annotated[Float64Array, Numbers("q", "m")]
    """Yc'Xc."""
    x_square: Annotated[float, Number(0)]
    """Sum of squares of Xc."""
    y_squares: Annotated[Float64Array, Numbers("q")]
    """Sums of squares of the columns of Yc."""
    principal: Annotated[
        PrincipalDirections | ReleasedDirections, Object(PrincipalDirections, ReleasedDirections, m="m", L="L?")
    ]
    """Represents Xc'Xc; empty if there is only one component."""

    def learn(self, tile: Tile) -> int:
        """Learn from the rows."""
        self.x_square = tile.x_total
        are_finite = add_products(tile.U, tile.V, tile.n_before, self.cross, self.y_squares)
        # No product is larger than the geometric mean of the squares.
        if not (are_finite and math.isfinite(self.x_square)):
            return 0
        # Last, because it deflates the rows in place. It yields all components of PLS except the first.
        failed = self.principal.learn(tile) if len(self.principal.V) else -1
        return failed + 1 if failed >= 0 else -1

    def starts(self) -> Float64Array:
        """Return Yc'Xc with zeros for rows that are only rounding errors."""
        could_be = np.sqrt(self.x_square) * np.sqrt(self.y_squares)
        is_known = np.linalg.norm(self.cross, axis=1) > _ROUNDING * could_be
        return np.where(is_known[:, None], self.cross, 0.0)


@compiled_in_order
def add_products(U: Float64Array, Y: Float64Array, n_before: int, sums: Float64Array, squares: Float64Array) -> bool:
    """Add centred Y'U to the sums, and squares of Y to the squares; return whether all squares are finite.

    Rows are added one by one, so results do not depend on the chunks; BLAS would sum the rows of a call first. Compared
    to BLAS, this takes a third to a half of the time with one column of Y, as long with ten, and up to twice as long
    with hundreds.
    """
    # Differences from the mean of earlier rows.
    V = np.empty(Y.shape)
    are_finite = True
    for i in range(len(Y)):
        weight = outer_weight(n_before + i + 1)
        for k in range(len(squares)):
            V[i, k] = weight * Y[i, k]
            squares[k] += Y[i, k] * V[i, k]
            if not is_finite(squares[k]):
                are_finite = False
    _add_rows(U, V, sums)
    return are_finite


@compiled_in_order
def _add_rows(U: Float64Array, V: Float64Array, sums: Float64Array) -> None:
    n, m = U.shape
    whole, even = n - n % 3, len(sums) - len(sums) % 2
    for start in range(0, m, _STRIP):
        part = slice(start, start + _STRIP)
        for k in range(0, even, 2):
            c, d = sums[k, part], sums[k + 1, part]
            for i in range(0, whole, 3):
                factors = V[i, k], V[i + 1, k], V[i + 2, k], V[i, k + 1], V[i + 1, k + 1], V[i + 2, k + 1]
                _add_three(c, d, U[i, part], U[i + 1, part], U[i + 2, part], factors)
            for i in range(whole, n):
                add_multiple(c, V[i, k], U[i, part])
                add_multiple(d, V[i, k + 1], U[i, part])
        for k in range(even, len(sums)):
            for i in range(n):
                add_multiple(sums[k, part], V[i, k], U[i, part])


@compiled_in_order
def _add_three(
    c: Float64Array,
    d: Float64Array,
    u0: Float64Array,
    u1: Float64Array,
    u2: Float64Array,
    factors: tuple[float, float, float, float, float, float],
) -> None:
    """Add multiples of three rows to two sums. LLVM does not analyse aliasing of more vectors."""
    c0, c1, c2, d0, d1, d2 = factors
    for j in range(len(c)):
        a, b, e = u0[j], u1[j], u2[j]
        c[j] = c[j] + c0 * a + c1 * b + c2 * e
        d[j] = d[j] + d0 * a + d1 * b + d2 * e


def pls_weights(
    starts: Float64Array, directions: Float64Array, variances: Float64Array, n_components: int
) -> Float64Array:
    """Return the weights of PLS1 for each response, with principal components instead of Xc'Xc.

    ``starts`` is Yc'Xc of shape (q, m), whose rows may be zero; ``directions`` are the principal components, of shape
    (L, m), and ``variances`` their variances, in any unit. The weights have shape (q, c, m), and are orthonormal for
    each response; those of missing components are zero.
    """
    W = np.zeros((n_components, *starts.shape))
    shares = variances / (variances.max(initial=0.0) or 1.0)
    rest = starts / _or_one(np.abs(starts).max(axis=1, keepdims=True))
    for i in range(n_components):
        lengths = np.linalg.norm(rest, axis=1, keepdims=True)
        if (lengths <= _VANISHED).all():
            break
        W[i] = np.where(lengths > _VANISHED, rest / _or_one(lengths), 0.0)
        # Multiply the last weights: each of X'y, S X'y, ... would be nearly parallel to the one before, and lose its
        # new direction by rounding. Both span the same space.
        rest = (W[i] @ directions.T * shares) @ directions
        for w in [*W[: i + 1]] * 2:  # Twice, because one pass would leave rounding errors.
            rest -= np.einsum("ij,ij->i", w, rest)[:, None] * w
    return W.swapaxes(0, 1)


def released_weights(
    starts: Float64Array, directions: Float64Array, lengths: Float64Array, n_components: int
) -> Float64Array:
    """Return weights like :func:`pls_weights`, from powers of S with one pass of Gram-Schmidt.

    This is what the released code does. Powers of S become nearly parallel, so weights are not quite orthogonal. Where
    a vector vanishes up to rounding errors, the released code returns these errors, and this function zeros.
    """
    W = np.zeros((n_components, *starts.shape))
    shares = lengths / (lengths.max(initial=0.0) or 1.0)
    power = left = starts / _or_one(np.abs(starts).max(axis=1, keepdims=True))
    for i in range(n_components):
        lengths_left = np.linalg.norm(left, axis=1, keepdims=True)
        left = np.where(lengths_left > _VANISHED, left / _or_one(lengths_left), 0.0)
        if not left.any():
            break
        W[i] = left
        # Responses without further weights stay zero.
        power = np.where(left.any(axis=1, keepdims=True), power, 0.0)
        power = (power @ directions.T * shares) @ directions
        power /= _or_one(np.linalg.norm(power, axis=1, keepdims=True))
        left = power.copy()
        for w in W[: i + 1]:
            left -= np.einsum("ij,ij->i", w, left)[:, None] * w
    return W.swapaxes(0, 1)


def _or_one(numbers: Float64Array) -> Float64Array:
    """Return the numbers with zeros replaced by ones, to divide by them."""
    return np.where(numbers > 0, numbers, 1.0)


@stored()
@dataclass(frozen=True)
class IPLSSolution:
    """Weights of PLS, grouped by column of y, with the largest entry of each positive."""

    x_mean: Annotated[Float64Array, Numbers("m")]
    x_weights: Annotated[Float64Array, solved_numbers("m", "s")]
    pca_components: Annotated[Float64Array, solved_numbers("L?", "m")]
    pca_explained_variance: Annotated[Float64Array, solved_numbers("L?", least=0)]

    @property
    def n_components(self) -> int:
        """Number of components found, of all columns of y."""
        return int(np.count_nonzero(self.x_weights.any(axis=0)))

    projection = property(attrgetter("x_weights"))


@stored_method(
    Covariances,
    solution=Object(IPLSSolution, m="m", s="q*c", L="L?"),
    components="c",
    rules={
        "components are in proportion to its arrays": lambda its: is_in_proportion(
            its._begun_with["n_components"] * its._state.recursion.cross.size, its
        )
    },
)
class IPLS(OnlineMethod):
    """Partial least squares by way of principal components, one row at a time.

    In the incremental PLS of Zeng and Li, the first component is exact: the direction of X'y. The others follow from it
    by products with the covariance matrix of X, approximated by a few principal components that CCIPCA tracks. Memory
    is that of the principal components, and each row takes a few passes over them.

    Parameters
    ----------
    n_components : int, default=2
        Number of components for each column of y.
    n_pca_components : int, default=20
        Number of principal components of X. There is at most one more component of PLS. Except for the first, PLS
        components improve with the share of the variance of X that these explain.
    amnesic : float or tuple (n1, n2, r), default=2.0
        How fast principal components forget the first rows, see :class:`CCIPCA`. The first component of PLS does not.
        For "released", a float.
    variant : {"corrected", "released"}, default="corrected"
        Whether principal components are tracked correctly, or as in the code released with the CIPLS paper, to
        reproduce its results. See Notes.
    target : {"auto", "labels", "values"}, default="auto"
        Whether y holds labels or values. "auto": floats are values unless ``classes`` are given; all else is labels.
        Two classes are one column of -1 and +1; more are one column per class; several values are as many columns.
        Each column of y has its own components, which are concatenated, but the principal components are shared.
    missing : {"error", "mean"}, default="error"
        How to handle NaN in X. "mean" replaces it with the running mean of the feature (before its first value, with
        that value, which must be in the same call); ``transform`` and similar methods use the mean of the model.

    Attributes
    ----------
    x_weights_ : ndarray of shape (n_features, n_components * n_columns)
        Weights of PLS: grouped by column of y, orthonormal for each, largest entries positive.
    x_mean_ : ndarray of shape (n_features,)
        Means of the features.
    pca_components_ : ndarray of shape (min(n_pca_components, n_features), n_features)
        Principal components of X, in descending order of variance. No rows if ``n_components`` is 1. For "released",
        always ``n_pca_components`` rows.
    pca_explained_variance_ : ndarray of shape (min(n_pca_components, n_features),)
        Their estimated variances. For "released", the lengths of its vectors.
    classes_ : ndarray of shape (n_classes,)
        The labels, if y holds labels.
    n_components_ : int
        Number of components found so far, of all columns of y; further ones are zero.
    n_samples_seen_ : int
        Number of training samples.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X has names that are all strings.

    See Also
    --------
    IncrementalPLS : Exact components, or close to exact.
    CCIPCA : The principal components.

    Notes
    -----
    The weights of PLS are an orthonormal basis of X'y, S X'y, S^2 X'y and so on, with S = X'X. Here S is the sum of
    lambda a a' over the principal components a and their variances lambda: if all are included and exact, the result is
    that of PLS. Scores are products of the centred rows with the weights. They are not uncorrelated, but span the same
    space as the scores of PLS.

    There is no ``predict``: a regression on the scores needs their variances. The state has only the part explained by
    the principal components, and none for a single component, so coefficients would be too large. Fit any regressor or
    classifier to the scores.

    In the code released with the CIPLS paper, the weights of old and new rows in CCIPCA are swapped. So its principal
    components are the last row, and its components other than the first have little to do with PLS.
    ``variant="released"`` computes the same: with w = (n - 1 - l)/n, a vector v becomes (1 - w) v + w (u.v/norm(v)) u,
    the first one starts as the first row, which is not centred, the i-th one as the remainder of row i, and the weights
    of PLS follow from X'y, S X'y, S^2 X'y and so on by one pass of Gram-Schmidt. Results depend on the units of X.
    Numbers do not grow with the number of rows, but lengths of vectors are those of squared rows, and overflow with
    rows of about 1e77 or more; then an error names the component. Where that code returns rounding errors or fails
    because there are no more directions, columns are zero.

    References
    ----------
    X.-Q. Zeng and G.-Z. Li, "Incremental partial least squares analysis of big streaming data", Pattern Recognition 47,
    2014.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import IPLS
    >>> X = np.random.default_rng(0).normal(size=(5000, 4)) * [4, 3, 2, 1]
    >>> y = X @ [1.0, 1.0, 0.0, 0.0]
    >>> model = IPLS(n_components=2).fit(X, y)
    >>> model.x_weights_.round(1) + 0.0
    array([[ 0.9, -0.5],
           [ 0.5,  0.9],
           [ 0. ,  0. ],
           [ 0. ,  0. ]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OnlineMethod._parameter_constraints,
        **CCIPCA._parameter_constraints,
        "n_pca_components": [Interval(Integral, 1, None, closed="left")],
        "variant": [StrOptions({"corrected", "released"})],
    }

    x_weights_ = Solved("Weights of X.")
    x_mean_ = Solved("Means of the features.")
    pca_components_ = Solved("Principal components of X.")
    pca_explained_variance_ = Solved("Variances of the principal components.")
    n_components_ = Solved("Number of components found so far.")

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_pca_components: int = 20,
        amnesic: Amnesic = 2.0,
        variant: str = "corrected",
        target: str = "auto",
        missing: str = "error",
    ) -> None:
        self.n_components = n_components
        self.n_pca_components = n_pca_components
        self.amnesic = amnesic
        self.variant = variant
        self.target = target
        self.missing = missing

    def _begin(self, n_features: int, n_columns: int) -> OnlineState:
        released, amnesic = self.variant == "released", self.amnesic
        n_directions = self.n_pca_components if self.n_components > 1 else 0
        principal: PrincipalDirections | ReleasedDirections
        if not released:
            sizes = {"L": min(n_directions, n_features), "m": n_features}
            principal = zeros_of(PrincipalDirections, **sizes, amnesic=as_schedule(amnesic))
        elif isinstance(amnesic, tuple):
            raise ValueError(
                f"amnesic={amnesic} requires variant='corrected': with variant='released', set it to one number."
            )
        else:
            principal = zeros_of(ReleasedDirections, L=n_directions, m=n_features, amnesic=float(amnesic))
        covariances = zeros_of(Covariances, q=n_columns, m=n_features, x_square=0.0, principal=principal)
        # The released code depends on the units.
        return OnlineState.of(covariances, n_features, n_columns, fixed_unit=released)

    def _solve(self, state: OnlineState) -> IPLSSolution:
        covariances: Covariances = state.recursion
        directions, variances = covariances.principal.sorted()
        weights_of = pls_weights if self._begun_with["variant"] == "corrected" else released_weights
        weights = weights_of(covariances.starts(), directions, variances, self._begun_with["n_components"])
        columns = weights.reshape(-1, self.n_features_in_).T
        return IPLSSolution(
            x_mean=state.x.mean,
            x_weights=columns * peak_signs(columns),
            pca_components=directions * peak_signs(directions.T)[:, None],
            pca_explained_variance=in_units_of_data(variances, state),
        )
