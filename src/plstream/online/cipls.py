"""CIPLS: partial least squares without a covariance matrix, one row at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .._core.compiled import compiled
from .._core.schema import Number, Numbers, stored
from .._core.signs import peak_signs
from .._core.types import Float64Array
from ..solvers import Factors
from .base import OnlineMethod
from .cipls_paper import PaperRecursion
from .loops import difference_from_mean_before, is_finite, square_and_product
from .prediction import PredictingMethod, StackedModels, rotations, stored_predictor
from .state import OnlineState, Recursion, Tile, for_each_column, zeros_of

# Entries processed at a time by a pass of several loops.
_STRIP = 512


@stored()
@dataclass
class NormalizedRecursion(Recursion):
    """The recursion that converges to PLS, for q columns of y.

    It stores X'y, which is exact, and for every component the product of X'X with its rotation r, accumulated row by
    row as the sum of t u. All else follows as in batch PLS. When a row rotates r, the product is rotated with it.
    """

    cross: Annotated[Float64Array, Numbers("q", "m")]
    """X'y, centred."""
    actions: Annotated[Float64Array, Numbers("q", "c", "m")]
    """X'X r."""
    sums: Annotated[Float64Array, Numbers("q", 5, "c+1")]
    """For each column of y, in a single array because it is faster to copy than five:

    - squares: r'X'X r of each component.
    - residuals: sums of squares of the rows, and of their residuals after each component.
    - y_products, t_squares: products of the scores with the residual y, and with themselves: a regression of y
      that does not depend on the accuracy of the rotations.
    - y_total: the sum of squares of y.
    """
    amnesic: Annotated[float, Number(0)]
    """Extra weight of new rows in ``actions``, relative to a plain sum."""
    x_total: Annotated[float, Number(0)] = 0.0
    """Sum of squares of the rows."""

    def learn(self, tile: Tile) -> int:
        """Learn from the rows."""
        self.x_total = tile.x_total
        C, P, sums = self.cross, self.actions, self.sums
        if len(C) == 1:
            return int(cipls_normalized(tile.U, tile.V, 0, C, P, sums, tile.n_before, self.amnesic))

        def run(U: Float64Array, k: int) -> int:
            return cipls_normalized(U, tile.V, k, C, P, sums, tile.n_before, self.amnesic)

        return for_each_column(run, tile, *P.shape[:2])

    def factors(self, k: int) -> Factors:
        """Return the PLS factors of one column of y, from X'y as in the recursion.

        Rotations are those of the scores of the recursion. For exact weights, they would equal W (P'W)^-1, which
        otherwise magnifies the errors of later components.
        """
        directions, loadings = np.zeros_like(self.actions[k]), np.zeros_like(self.actions[k])
        squares, _, y_products, t_squares, (y_total, *_) = self.sums[k]
        w, found = self.cross[k], 0
        # Anything smaller is a rounding error, of a deflation or of X'y itself.
        least = max(1e-12 * np.linalg.norm(w), 1e-14 * np.sqrt(self.x_total) * np.sqrt(y_total))
        for i, (action, square) in enumerate(zip(self.actions[k], squares[:-1], strict=True)):
            length = np.linalg.norm(w)
            if length <= least or square <= 0:
                break
            directions[i], loadings[i], found = w / length, action / square, i + 1
            w = w - length * loadings[i]
        signs = peak_signs(directions.T)
        t_squares = np.where(np.arange(len(signs)) < found, t_squares[:-1], 0.0)
        slopes = y_products[:-1] / np.where(t_squares > 0, t_squares, 1.0)
        return Factors(
            x_weights=_orthonormal(directions[:found] * signs[:found, None], len(signs)),
            x_loadings=(loadings * signs[:, None]).T,
            x_rotations=(rotations(directions, loadings) * signs[:, None]).T,
            y_loadings=np.where(t_squares > 0, slopes * signs, 0.0)[None],
            score_squares=t_squares,
            n_components=found,
        )


def _orthonormal(directions: Float64Array, n_columns: int) -> Float64Array:
    """Return the rows orthonormalized in order, as columns; columns past the rank are zero."""
    columns = np.zeros((directions.shape[1], n_columns))
    Q, R = np.linalg.qr(directions.T)
    columns[:, : len(directions)] = Q * np.where(np.diag(R) < 0, -1.0, 1.0)
    return columns


@compiled
def cipls_normalized(
    U: Float64Array,
    V: Float64Array,
    column: int,
    cross: Float64Array,
    actions: Float64Array,
    sums: Float64Array,
    n_before: int,
    amnesic: float,
) -> int:
    """Follow X'y and the products of X'X with the PLS directions, for one column of V; U is deflated in place.

    C is X'y, row i of P is X'X r_i, and the sums are those of :class:`NormalizedRecursion`.
    """
    C, P, v = cross[column], actions[column], V[:, column]
    squares, residuals, y_products, t_squares, y_total = (
        sums[column, 0],
        sums[column, 1],
        sums[column, 2],
        sums[column, 3],
        sums[column, 4],
    )
    m = P.shape[1]
    # There are no more components than features; the rest is rounding errors.
    c = min(P.shape)
    w, w_before = np.empty(m), np.empty(m)
    for k in range(len(U)):
        u, y = U[k], v[k]
        old, new = _weights(n_before + k, amnesic)
        from_mean_before = difference_from_mean_before(y, n_before + k)
        y_total[0] += y * from_mean_before
        products = _add_to_cross(u, from_mean_before, C, P[0], w, w_before)
        # Smaller squares of a direction or of a residual row are rounding errors.
        least_direction, least_row = 1e-24 * products[0], 1e-24 * products[2]
        explained = 0
        for i in range(c):
            if not is_finite(products[0] + products[2] + squares[i]):
                return i
            if products[0] <= least_direction or products[2] <= least_row:
                break
            # A new component has missed the earlier rows; only their total variance is known.
            spread = residuals[i + 1] / max(1, m - i - 1) if squares[i] > 0 else residuals[i] / (m - i)
            residual = old * residuals[i] + new * products[2]
            step = _step(products, squares[i], spread, residual, old, new)
            if step[0] <= 1e-24 * max(residual, residuals[0]):
                break
            residuals[i] = residual
            if squares[i] == 0:
                t_squares[i] = spread
            squares[i] = step[0]
            t = step[5] * step[0]
            y_products[i] = old * y_products[i] + new * t * y
            t_squares[i] = old * t_squares[i] + new * t * t
            y -= t * y_products[i] / t_squares[i] if t_squares[i] > 0 else 0.0
            explained = i + 1
            if explained < c:
                products = _follow_and_deflate(P[i], P[i + 1], u, w, w_before, step)
        rest = products[2] if explained < c else _follow(P[c - 1], u, w, w_before, step)
        for i in range(explained, c + 1):
            residuals[i] = old * residuals[i] + new * rest
    return -1


@compiled
def _weights(n_before: int, amnesic: float) -> tuple[float, float]:
    """Return the factors of old sums and of products of a new row with itself.

    Without amnesia, the first is 1. The second is n/(n - 1), because both factors are differences from the mean that
    includes the row, and one should be from the mean before it. Amnesia l multiplies them by 1 - l/(n - 2) and 1 + l.
    """
    age = max(1, n_before - 1)
    forgotten = min(amnesic, (age - 1) / 2)
    return 1 - forgotten / age, (1 + forgotten) * (n_before + 1) / max(1, n_before)


@compiled
def _add_to_cross(
    u: Float64Array, v: float, C: Float64Array, p: Float64Array, w: Float64Array, w_before: Float64Array
) -> tuple[float, float, float, float, float, float]:
    """Set w_before to C, add v u to it, set w to the sum, and return the products that :func:`_step` needs."""
    ww, uw, uu, wp, wb, bb = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    # Two loops, because LLVM does not analyse aliasing of so many vectors; in strips, which stay in L1 cache.
    for start in range(0, len(u), _STRIP):
        part = slice(start, start + _STRIP)
        products = _keep_and_add(u[part], v, C[part], w[part], w_before[part])
        _, product = square_and_product(w[part], p[part])
        ww += products[0]
        uw += products[1]
        uu += products[2]
        wp += product
        wb += products[3]
        bb += products[4]
    return ww, uw, uu, wp, wb, bb


@compiled
def _keep_and_add(
    u: Float64Array, v: float, C: Float64Array, w: Float64Array, before: Float64Array
) -> tuple[float, float, float, float, float]:
    ww, uw, uu, wb, bb = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(len(u)):
        uj, bj = u[j], C[j]
        wj = bj + v * uj
        C[j], w[j], before[j] = wj, wj, bj
        ww += wj * wj
        uw += uj * wj
        uu += uj * uj
        wb += wj * bj
        bb += bj * bj
    return ww, uw, uu, wb, bb


@compiled
def _step(
    products: tuple[float, float, float, float, float, float],
    square: float,
    spread: float,
    most: float,
    old: float,
    new: float,
) -> tuple[float, float, float, float, float, float, float, float]:
    """Return the new r'X'X r, and the coefficients for :func:`_follow_and_deflate`.

    The direction has rotated from b/|b| to w/|w| since the last row. The action of X'X on the difference is known along
    p, where it is pp'/square, and assumed equal in all other directions: ``spread``. No direction can have more than
    ``most``; one that would was rotated by rounding errors, and is restarted.
    """
    ww, uw, _, wp, wb, bb = products
    w_length, b_length = math.sqrt(ww), math.sqrt(bb)
    t = uw / w_length
    turned, from_w, from_b = 0.0, old * spread / w_length, 0.0
    if square > 0 and b_length > 0:
        turned = old * wp / (w_length * square)
        from_b = -spread * turned / b_length
    new_square = (turned * wp + from_w * ww + from_b * wb) / w_length + new * t * t
    if not 0 < new_square <= 1.01 * most:
        turned, from_b, new_square = 0.0, 0.0, from_w * w_length + new * t * t
    to_u = t / new_square if new_square > 0 else 0.0
    to_w = w_length / new_square if new_square > 0 else 0.0
    to_b = b_length / square if square > 0 else 0.0
    return new_square, turned, from_w, from_b, new * t, to_u, to_w, to_b


@compiled
def _follow_and_deflate(
    p: Float64Array,
    following: Float64Array,
    u: Float64Array,
    w: Float64Array,
    w_before: Float64Array,
    step: tuple[float, float, float, float, float, float, float, float],
) -> tuple[float, float, float, float, float, float]:
    """Update p with the direction w and the row u, deflate all three by it, and return their products."""
    _, turned, from_w, from_b, from_u, to_u, to_w, to_b = step
    ww, uw, uu, wp, wb, bb = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(len(u)):
        uj, wj, bj, old = u[j], w[j], w_before[j], p[j]
        pj = turned * old + from_w * wj + from_b * bj + from_u * uj
        uj -= to_u * pj
        wj -= to_w * pj
        bj -= to_b * old
        p[j], u[j], w[j], w_before[j] = pj, uj, wj, bj
        ww += wj * wj
        uw += uj * wj
        uu += uj * uj
        wp += wj * following[j]
        wb += wj * bj
        bb += bj * bj
    return ww, uw, uu, wp, wb, bb


@compiled
def _follow(
    p: Float64Array,
    u: Float64Array,
    w: Float64Array,
    w_before: Float64Array,
    step: tuple[float, float, float, float, float, float, float, float],
) -> float:
    """Update the last p, and return the residual sum of squares of u."""
    _, turned, from_w, from_b, from_u, to_u, _, _ = step
    uu = 0.0
    for j in range(len(u)):
        pj = turned * p[j] + from_w * w[j] + from_b * w_before[j] + from_u * u[j]
        uj = u[j] - to_u * pj
        p[j] = pj
        uu += uj * uj
    return uu


@stored_predictor(NormalizedRecursion, PaperRecursion)
class CIPLS(PredictingMethod):
    """Covariance-free incremental partial least squares: one row at a time, without a covariance matrix.

    Each row takes a few passes over the components, and memory is a few vectors per component. The method of the paper
    below has three variants:

    - "normalized" is the recommended variant of this library. Scores are divided by their sums of squares as in PLS,
      X'y is exact, and loadings are rotated with their directions. It converges to batch PLS.
    - "paper" is Algorithm 1 to the letter, and "released" is the authors' code. Both serve to reproduce results. Their
      first component is that of PLS (nearly so for "paper"). Further ones are not, for any number of rows: loadings are
      never normalized, so deflation adds a growing multiple of a loading instead of removing it. They become near
      copies of the first, and numbers overflow.

    On 12 Gaussian columns of variances from 12 to 0.5, a linear response and 50,000 rows, cosines of directions 2, 3
    and 4 to those of batch PLS are 1.000, 0.999 and 0.998 for "normalized", 0.28, 0.01 and 0.01 for "paper" and for
    "released" (medians of 10 draws). "normalized" needs rows in random order, and many: on 5,400 pairs of faces with
    8,192 features its cosines are 0.997, 0.990 and 0.931. If the data can be read again, or memory holds a few hundred
    rows, :class:`IncrementalPLS` is closer to PLS.

    Parameters
    ----------
    n_components : int, default=2
        Number of components.
    variant : {"normalized", "paper", "released"}, default="normalized"
        Which recursion, see above.
    amnesic : float, default=0.0
        Extra weight l of a new row in the loadings: (1 + l)/n instead of 1/n. With 0.5 to 1, the loadings of the first
        rows, whose directions were inaccurate, are forgotten sooner: better with many more rows than features, worse
        with fewer. Only for "normalized".
    target : {"auto", "labels", "values"}, default="auto"
        Whether y holds labels or values. "auto": floats are values, unless ``partial_fit`` is given classes; integers,
        booleans and strings are labels. With "labels", non-integer floats are refused unless passed as classes, as in
        classifiers.
    missing : {"error", "mean"}, default="error"
        How to handle NaN in X. "mean" replaces it with the running mean of the feature (before its first value, with
        that value, which must be in the same call); ``transform`` and similar methods use the mean of the model.

    Attributes
    ----------
    x_weights_, x_loadings_, x_rotations_ : ndarray of shape (n_features, n_components * n_columns)
        Weights, loadings and rotations of X. With more than two classes or several responses, there is one model per
        class or response, and their columns are concatenated. Scores are ``(X - x_mean_) @ x_rotations_``. For
        "normalized", weights are orthonormal. For "paper" and "released", they have unit length, rotations equal the
        weights, as in the authors' code, and loadings are divided by the sums of squares of their scores.
    y_loadings_ : ndarray of shape (n_columns, n_components * n_columns)
        Loadings of y; zero where a component belongs to another column.
    coef_ : ndarray of shape (n_columns, n_features)
        Coefficients: ``y = (X - x_mean_) @ coef_.T + intercept_``; labels are -1 and +1. Only useful for "normalized".
    intercept_, y_mean_ : ndarray of shape (n_columns,)
        Means of y.
    x_mean_ : ndarray of shape (n_features,)
        Means of X.
    vip_ : ndarray of shape (n_features,)
        Variable importance in projection, of all columns of y. The mean of its squares is one.
    classes_ : ndarray of shape (n_classes,)
        The labels, if y holds labels.
    n_components_ : int
        Number of components found so far, of all columns of y; further ones are zero. (In "paper" and "released", every
        component starts at the second row, whatever the rank.)
    n_samples_seen_ : int
        Number of training samples.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X has names that are all strings.

    See Also
    --------
    IncrementalPLS : Exact in several reads, and close to exact in one, with somewhat more memory.

    Notes
    -----
    Two classes are one response of -1 and +1. With more, there is one response for each class against the rest, as in
    the authors' code. Their code converts labels 0 to -1 depending on the chunk; here labels are fixed by the first
    call.

    VIP divides by sums of squares of scores, :math:`SS_i = (y^T t_i)^2 / t_i^T t_i`, and squares the weights; the
    formula in the paper has no square, and its sums can be negative. In "paper" and "released", the last component has
    nearly all of the weight.

    For scikit-learn, "normalized" is a classifier if ``target="labels"`` or, once trained, y holds labels, and a
    regressor if y holds values: ``cross_val_score`` stratifies folds and ``score`` follows. The other variants make no
    predictions and are only transformers.

    References
    ----------
    A. Jordao, M. Lie, V. H. C. de Melo and W. R. Schwartz, "Covariance-free Partial Least Squares: An Incremental
    Dimensionality Reduction Method", IEEE Winter Conference on Applications of Computer Vision, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import CIPLS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 10))
    >>> y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
    >>> model = CIPLS(n_components=2)
    >>> for start in range(0, 2000, 100):
    ...     rows = slice(start, start + 100)
    ...     model = model.partial_fit(X[rows], y[rows], classes=["no", "yes"])
    >>> model.transform(X).shape
    (2000, 2)
    >>> bool(np.mean(model.predict(X) == y) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OnlineMethod._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "variant": [StrOptions({"normalized", "paper", "released"})],
        "amnesic": [Interval(Real, 0, None, closed="left")],
    }

    _predicting_variant = "normalized"

    def __init__(
        self,
        n_components: int = 2,
        *,
        variant: str = "normalized",
        amnesic: float = 0.0,
        target: str = "auto",
        missing: str = "error",
    ) -> None:
        self.n_components = n_components
        self.variant = variant
        self.amnesic = amnesic
        self.target = target
        self.missing = missing

    def _begin(self, n_features: int, n_columns: int) -> OnlineState:
        sizes = {"q": n_columns, "c": self.n_components, "m": n_features}
        if self.variant == "normalized":
            normalized = zeros_of(NormalizedRecursion, **sizes, amnesic=self.amnesic)
            return OnlineState.of(normalized, n_features, n_columns)
        if self.amnesic:
            raise ValueError(f"amnesic={self.amnesic} requires variant='normalized': with other variants, set it to 0.")
        recursion = zeros_of(PaperRecursion, **sizes, released=self.variant == "released")
        # Its results depend on the units.
        return OnlineState.of(recursion, n_features, n_columns, fixed_unit=True)

    def _solve(self, state: OnlineState) -> StackedModels:
        return StackedModels.of(state, [state.recursion.factors(k) for k in range(len(state.y.origin))])
