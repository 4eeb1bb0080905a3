"""SGDPLS: partial least squares as the singular value decomposition of a cross-covariance, by stochastic gradients."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from operator import attrgetter
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from .._core.compiled import compiled
from .._core.schema import Count, Number, Numbers, Object, is_in_proportion, solved_numbers, stored
from .._core.signs import peak_signs
from .._core.types import Float64Array
from ..data import Source
from ..estimators.attributes import Solved
from .base import OnlineMethod, stored_method
from .gradients import MOST_STEPS, StochasticGradient
from .loops import add_multiple, is_finite, square_and_product
from .singular_values import IncrementalSVD, MatrixGradient
from .state import OnlineState, Recursion, Tile, zeros_of

# Rank beyond the number of components kept by "msg" and "incremental": small components may become large later. With 0,
# the last of 5 components of 10 classes of images was 81 degrees off; with 4, the rank of 10 classes, none.
_EXTRA_RANK = 10
# Steps that worked well on simulated data, digits, faces and images of 10 and of 200 classes.
_ETA0 = {"sgd": 0.3, "msg": 0.05, "incremental": 0.0}
# The step of the released code, and its number of passes.
_RELEASED_ETA0 = 0.001
_RELEASED_EPOCHS = 100


@stored()
@dataclass(frozen=True)
class CrossCovarianceSVD:
    """Pairs of directions in descending order of covariance, with largest entries in X positive."""

    x_mean: Annotated[Float64Array, Numbers("m")]
    y_mean: Annotated[Float64Array, Numbers("q")]
    x_weights: Annotated[Float64Array, solved_numbers("m", "s")]
    y_weights: Annotated[Float64Array, solved_numbers("q", "s")]
    singular_values: Annotated[Float64Array, solved_numbers("s", least=0)]
    n_components: Annotated[int, Count()]

    projection = property(attrgetter("x_weights"))


@stored()
@dataclass
class UnprojectedGradient(Recursion):
    """Matrices that follow the gradient and are never orthonormalized, as in the released code."""

    U: Annotated[Float64Array, Numbers("c", "m")]
    V: Annotated[Float64Array, Numbers("c", "q")]
    eta0: Annotated[float, Number(0)]
    """Size of steps."""
    n_steps: Annotated[int, Count(1, MOST_STEPS)]
    """Steps per row."""

    @property
    def advice(self) -> str:
        """What to do when numbers are no longer finite."""
        return "center and scale the features, use a smaller eta0 or fewer epochs, or variant='corrected'"

    def learn(self, tile: Tile) -> int:
        """Learn from the rows."""
        tile.U[:] = tile.X
        # A copy of y always has the same type; for others, Numba would compile the loop again.
        failed = int(unprojected_gradient(tile.U, tile.Y.copy(), self.U, self.V, self.eta0, self.n_steps))
        if failed < 0:
            # The last step may have overflowed.
            bad = ~(np.isfinite(self.U).all(axis=1) & np.isfinite(self.V).all(axis=1))
            failed = int(bad.argmax()) if bad.any() else -1
        return failed


@compiled
def unprojected_gradient(
    X: Float64Array, Y: Float64Array, U: Float64Array, V: Float64Array, eta: float, n_steps: int
) -> int:
    """Add eta*x(y'V) to U and simultaneously eta*y(x'U) to V, for every row."""
    for k in range(len(X)):
        for _ in range(n_steps):
            for i in range(len(U)):
                _, y_part = square_and_product(Y[k], V[i])
                x_part = _product_and_add(U[i], eta * y_part, X[k])
                if not is_finite(x_part + y_part):
                    return i
                add_multiple(V[i], eta * x_part, Y[k])
    return -1


@compiled
def _product_and_add(u: Float64Array, factor: float, x: Float64Array) -> float:
    """Return u.x, and add factor*x to u."""
    product = 0.0
    for j in range(len(u)):
        product += u[j] * x[j]
        u[j] += factor * x[j]
    return product


@stored()
@dataclass(frozen=True)
class ReleasedBases:
    """The bases on which the released code projects rows, without centring."""

    x_mean: Annotated[Float64Array, Numbers("m")]
    y_mean: Annotated[Float64Array, Numbers("q")]
    x_weights: Annotated[Float64Array, solved_numbers("m", "s")]
    y_weights: Annotated[Float64Array, solved_numbers("q", "s")]
    n_components: Annotated[int, Count()]

    @property
    def singular_values(self) -> Float64Array:
        """Not available: raises AttributeError."""
        raise AttributeError("variant='released' does not estimate singular values: use variant='corrected'.")

    projection = property(attrgetter("x_weights"))


def released_bases(gradient: UnprojectedGradient, n_components: int) -> ReleasedBases:
    """Return the directions of the released code: orthonormal ones of X, and those of y with length one."""
    c, n_features = gradient.U.shape
    # In units that avoid overflow of squares: powers of two are exact.
    largest = np.abs(gradient.U).max(axis=1, keepdims=True)
    Q = np.linalg.qr((gradient.U * np.ldexp(1.0, -np.frexp(largest)[1])).T)[0]
    signs = peak_signs(Q)
    V = gradient.V / np.abs(gradient.V).max(axis=1, keepdims=True)
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    missing = ((0, 0), (0, n_components - c))
    return ReleasedBases(
        x_mean=np.zeros(n_features),
        y_mean=np.zeros(V.shape[1]),
        x_weights=np.pad(Q * signs, missing),
        y_weights=np.pad(V.T * signs, missing),
        n_components=c,
    )


@stored_method(
    IncrementalSVD,
    MatrixGradient,
    StochasticGradient,
    UnprojectedGradient,
    solution=Object(CrossCovarianceSVD, ReleasedBases, m="m", q="q", s="s"),
    components="s",
    rules={
        "components are in proportion to its arrays": lambda its: is_in_proportion(
            its._begun_with["n_components"] * (its.sizes["m"] + its.sizes["q"]), its
        ),
        "the number of steps is that of the start": lambda its: (
            getattr(its._state.recursion, "n_steps", its._begun_with["n_steps"]) == its._begun_with["n_steps"]
        ),
    },
)
class SGDPLS(OnlineMethod):
    """Partial least squares as a singular value decomposition of the cross-covariance of X and y, by gradients.

    The components are the pairs of directions in X and y whose scores have the largest covariances, as in
    scikit-learn's PLSSVD. They are not deflated as in PLS regression, with which they share the first component. Rows
    are processed one by one, and memory is a few vectors.

    Parameters
    ----------
    n_components : int, default=2
        Number of components. At most the dimension of y: one for two classes or one response, k - 1 for k
        classes, q for q responses. Further ones are zero.
    algorithm : {"sgd", "msg", "incremental"}, default="sgd"
        How the directions are found.

        - "sgd": steps of both bases along the gradient, x(y'V) and y(x'U). The fastest, and the least accurate.
        - "msg": steps of a matrix along xy', each followed by a projection to singular values from 0 to 1 with a sum of
          at most ``n_components``.
        - "incremental": a singular value decomposition of the sum of all xy', truncated after each row to the largest
          values, 10 more than components. Exact if there are no others, in particular for 12 classes or fewer, and the
          most accurate in general. It has no steps.
    eta0 : float, default=None
        Step size: that of row t is eta0/sqrt(t), divided by an estimate of the norm of the cross-covariance, so that
        units do not matter, and no row changes a direction by more than half its length. Default: 0.3 for "sgd" and
        0.05 for "msg". For "released", the constant step itself; default: 0.001.
    n_steps : int, default=1
        Number of steps per row, at most 1,000, each of 1/``n_steps`` of the step size; of full size for "released".
    n_epochs : int, default=None
        Number of passes over the rows in ``fit``, which reads a source as often; ``partial_fit`` makes one pass, as in
        scikit-learn's stochastic gradient methods. Default: 1, or 100 for "released".
    variant : {"corrected", "released"}, default="corrected"
        Whether gradients are those of centred rows, with orthonormal bases, or as in the code released with the CIPLS
        paper, to reproduce its results. Only for "sgd". See Notes.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial directions in y for "sgd". The other algorithms are deterministic.
    target : {"auto", "labels", "values"}, default="auto"
        Whether y holds labels or values. "auto": floats are values unless classes are given; everything else is labels.
        Two classes are one column of -1 and +1; more are one column per class.
    missing : {"error", "mean"}, default="error"
        How to handle NaN in X. "mean" replaces it with the running mean of the feature (before its first value, with
        that value, which must be in the same call); ``transform`` and similar methods use the mean of the model.

    Attributes
    ----------
    x_weights_ : ndarray of shape (n_features, n_components)
        Directions in X: orthonormal columns, largest entries positive, in descending order of covariance; in no order
        for "released".
    y_weights_ : ndarray of shape (n_columns, n_components)
        The same for the encoded y. For "released", of unit length, but not orthogonal.
    singular_values_ : ndarray of shape (n_components,)
        Estimated covariances of the scores of X with those of y. Not for "released".
    x_mean_ : ndarray of shape (n_features,)
        Means of the features. Zero for "released", which does not centre rows.
    y_mean_ : ndarray of shape (n_columns,)
        Means of the columns of the encoded y. Zero for "released".
    classes_ : ndarray of shape (n_classes,)
        The labels, if y holds labels.
    n_components_ : int
        Number of components found so far; further ones are zero.
    n_samples_seen_ : int
        Number of training samples, counted in every pass.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X has names that are all strings.

    See Also
    --------
    sklearn.cross_decomposition.PLSSVD : The same decomposition of data in memory.
    plstream.IncrementalPLS : Exact PLS regression.

    Notes
    -----
    The code released with the CIPLS paper neither centres X and y nor bounds its matrices, so they overflow after a few
    thousand rows, and components past the dimension of y keep their random initial values. Here running means are
    subtracted such that the sum of all xy' is exactly the centred X'Y, bases are orthonormal after every step, and a
    component starts from the first row with a part outside the previous ones.

    ``variant="released"`` reproduces that code: U += eta0 x(y'V) and V += eta0 y(x'U), with the U before the step, from
    a random U with orthonormal columns and a random V; rows are projected, without centring, on the Q of U = QR. With a
    ``RandomState`` of the same seed, initial values are those of that code. The matrices grow as exp(eta0 T n s), where
    s is the largest singular value of the uncentred mean of xy': numbers overflow when the exponent reaches 700, which
    raises an error. That code makes its T passes in every call; ``n_epochs`` passes in ``fit`` equal one such call with
    all rows, and ``n_steps`` steps in ``partial_fit`` one call per row.

    Gradients take many rows to converge, in particular if singular values are close to each other. The paper makes 100
    passes or more over the data: set ``n_epochs``, or pass rows to ``partial_fit`` again. For scikit-learn's digits,
    1,797 rows, the space of 3 components is 8 to 10 degrees off with "sgd" and 6 with "msg" after one pass, and 2 and 1
    after ten (medians of the largest angle). This depends on the order of rows: in 6 to 8 of 100 orders, "sgd" had lost
    a component after one pass, "msg" in none. Within that space, directions come from a running estimate of the
    covariances of the scores.

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
        **OnlineMethod._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "algorithm": [StrOptions({"sgd", "msg", "incremental"})],
        "eta0": [Interval(Real, 0, None, closed="neither"), None],
        "n_steps": [Interval(Integral, 1, MOST_STEPS, closed="both")],
        "n_epochs": [Interval(Integral, 1, None, closed="left"), None],
        "variant": [StrOptions({"corrected", "released"})],
        "random_state": ["random_state"],
    }

    # random_state is used only for the first row, n_epochs only by fit.
    _free_parameters = OnlineMethod._free_parameters | {"random_state", "n_epochs"}

    x_weights_ = Solved("Directions in X.")
    y_weights_ = Solved("Directions in y.")
    singular_values_ = Solved("Covariances of the scores of X with those of y.")
    x_mean_ = Solved("Means of the features.")
    y_mean_ = Solved("Means of the columns of the encoded y.")
    n_components_ = Solved("Number of components found so far.")

    def __init__(
        self,
        n_components: int = 2,
        *,
        algorithm: str = "sgd",
        eta0: float | None = None,
        n_steps: int = 1,
        n_epochs: int | None = None,
        variant: str = "corrected",
        random_state: Any = None,
        target: str = "auto",
        missing: str = "error",
    ) -> None:
        self.n_components = n_components
        self.algorithm = algorithm
        self.eta0 = eta0
        self.n_steps = n_steps
        self.n_epochs = n_epochs
        self.variant = variant
        self.random_state = random_state
        self.target = target
        self.missing = missing

    def _n_passes(self, X: Any) -> int:
        n_epochs = self.n_epochs or (_RELEASED_EPOCHS if self.variant == "released" else 1)
        if n_epochs > 1 and isinstance(X, Source) and not X.rereadable:
            raise ValueError(
                f"{X.name} can be read only once, but fit reads it {n_epochs} times: set n_epochs=1, or copy the data "
                "to a file."
            )
        return n_epochs

    def _begin(self, n_features: int, n_columns: int) -> OnlineState:
        if self.variant == "released":
            return self._begin_released(n_features, n_columns)
        # Centred columns of more than two classes sum to zero.
        of_classes = self._encoding is not None and self._encoding.labels is not None and n_columns > 1
        largest_rank = min(n_features, n_columns - of_classes)
        c, eta0 = min(self.n_components, largest_rank), float(self.eta0 or _ETA0[self.algorithm])
        rank = min(c + _EXTRA_RANK, largest_rank)
        sizes, steps = {"m": n_features, "q": n_columns}, {"eta0": eta0, "n_steps": self.n_steps}
        recursion: Recursion
        if self.algorithm == "incremental":
            recursion = zeros_of(IncrementalSVD, **sizes, r=rank)
        elif self.algorithm == "msg":
            recursion = zeros_of(MatrixGradient, **sizes, r=rank, **steps, n_components=c)
        else:
            random = check_random_state(self.random_state)
            V = np.linalg.qr(random.standard_normal((n_columns, c)))[0].T.copy()
            recursion = zeros_of(StochasticGradient, **sizes, c=c, **steps, V=V, U_factor=np.eye(c), V_factor=np.eye(c))
        return OnlineState.of(recursion, n_features, n_columns)

    def _begin_released(self, n_features: int, n_columns: int) -> OnlineState:
        if self.algorithm != "sgd":
            raise ValueError(
                f"variant='released' requires algorithm='sgd', not {self.algorithm!r}: set one of the two."
            )
        c, random = min(self.n_components, n_features), check_random_state(self.random_state)
        U = np.linalg.qr(random.standard_normal((n_features, c)))[0].T.copy()
        V = random.standard_normal((n_columns, c)).T.copy()
        recursion = UnprojectedGradient(U, V, float(self.eta0 or _RELEASED_ETA0), self.n_steps)
        # Its results depend on the units.
        return OnlineState.of(recursion, n_features, n_columns, fixed_unit=True)

    def _solve(self, state: OnlineState) -> CrossCovarianceSVD | ReleasedBases:
        n_components = self._begun_with["n_components"]
        if isinstance(state.recursion, UnprojectedGradient):
            return released_bases(state.recursion, n_components)
        U, V, s = (factor[:n_components] for factor in state.recursion.factors(state.n_rows))
        missing = (0, n_components - len(s))
        x_weights, y_weights = (np.pad(vectors, (missing, (0, 0))).T for vectors in (U, V))
        signs = peak_signs(x_weights)
        with np.errstate(over="ignore", under="ignore"):
            singular_values = np.pad(s, missing) / (state.x.unit or 1.0) / (state.y.unit or 1.0)
        return CrossCovarianceSVD(
            x_mean=state.x.mean,
            y_mean=state.y.mean,
            x_weights=x_weights * signs,
            y_weights=y_weights * signs,
            singular_values=singular_values,
            n_components=len(s),
        )
