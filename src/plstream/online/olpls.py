"""OLPLS: partial least squares by a gradient step for every row."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from .._core.compiled import compiled, compiled_inline
from .._core.schema import Boolean, Number, Numbers, stored
from .._core.signs import peak_signs
from .._core.types import Float64Array
from ..solvers import Factors
from .base import OnlineMethod
from .loops import is_finite, scale_into, square_and_product
from .prediction import PredictingMethod, StackedModels, rotations, stored_predictor
from .state import OnlineState, Recursion, Tile, for_each_column, zeros_of

# Numbers with smaller sums of squares have lost digits.
_LEAST_SQUARE = 1e-280


@stored()
@dataclass
class OLPLSState(Recursion):
    """One model of c components for each of q columns of y."""

    S: Annotated[Float64Array, Numbers("q", "c", "m")]
    """Sums of deflated y times deflated x, with less weight on older rows."""
    W: Annotated[Float64Array, Numbers("q", "c", "m")]
    """Weights, of unit length unless ``released``; zero before a component's first row."""
    P: Annotated[Float64Array, Numbers("q", "c", "m")]
    """Loadings of x: its regression on the scores."""
    C: Annotated[Float64Array, Numbers("q", "c")]
    """Loadings of y."""
    T: Annotated[Float64Array, Numbers("q", "c")]
    """Running means of the squared scores."""
    forgetting: Annotated[float, Number(0, 1)]
    eta: Annotated[float, Number(0, 1)]
    eta_loading: Annotated[float, Number(0, 1)]
    released: Annotated[bool, Boolean()]
    """Whether to follow the released code: rows are then not centred, S is a mean, and T is not used."""

    @property
    def advice(self) -> str:
        """What to do when numbers are no longer finite."""
        return super().advice + (", or a smaller eta, or variant='corrected'" if self.released else "")

    def learn(self, tile: Tile) -> int:
        """Learn from the rows."""
        loop, v = olpls, np.asfortranarray(tile.V)
        if self.released:
            tile.U[:] = tile.X
            loop, v = olpls_released, np.array(tile.Y, order="F")

        def run(U: Float64Array, k: int) -> int:
            state = self.S[k], self.W[k], self.P[k], self.C[k], self.T[k]
            return loop(U, v[:, k], *state, self.forgetting, self.eta, self.eta_loading)

        return for_each_column(run, tile, *self.C.shape)

    def factors(self, k: int, most: int) -> Factors:
        """Return the PLS factors of one column of y, with at most ``most`` components."""
        if self.released:
            return self._released_factors(k)
        W = np.where((np.arange(len(self.W[k])) < most)[:, None], self.W[k], 0.0)
        begun = np.count_nonzero(W, axis=1) > 0
        P, signs = np.where(begun[:, None], self.P[k], 0.0), peak_signs(W.T)
        return Factors(
            x_weights=W.T * signs,
            x_loadings=P.T * signs,
            x_rotations=rotations(W, P).T * signs,
            y_loadings=(np.where(begun, self.C[k], 0.0) * signs)[None],
            score_squares=self.T[k],
            n_components=int(np.count_nonzero(begun)),
        )

    def _released_factors(self, k: int) -> Factors:
        """Return unit weights, and the original weights as rotations: the released code does not deflate rows."""
        W = self.W[k]
        lengths, signs = np.linalg.norm(W, axis=1), peak_signs(W.T)
        return Factors(
            x_weights=(W / np.where(lengths > 0, lengths, 1.0)[:, None]).T * signs,
            x_loadings=self.P[k].T * signs,
            x_rotations=W.T * signs,
            y_loadings=(self.C[k] * signs)[None],
            score_squares=self.T[k],
            n_components=int(np.count_nonzero(lengths)),
        )


@compiled
def olpls(
    U: Float64Array,
    v: Float64Array,
    S: Float64Array,
    W: Float64Array,
    P: Float64Array,
    C: Float64Array,
    T: Float64Array,
    forgetting: float,
    eta: float,
    eta_loading: float,
) -> int:
    """Rotate the rows of W towards PLS weights of U and v; U is deflated in place.

    Rows of S are covariances, rows of P are loadings, C holds the loadings of v, and T the mean squared scores.
    """
    c = len(W)
    for k in range(len(U)):
        u = U[k]
        y: float = v[k]
        least = 1e-13 * abs(y)
        # Not a mean but a sum: only the direction of s matters, and forgetting may be 1.
        ss, sw, ww, us, uw, left = _add_covariance(S[0], W[0], u, forgetting, y)
        whole = left
        for i in range(c):
            if not (is_finite(ss) and is_finite(left)):
                return i
            # The remainder of a row explained by the components is a rounding error, not a new direction.
            if left <= 1e-26 * whole or (ww == 0 and ss < _LEAST_SQUARE):
                break
            keep, step = _ascent(ss, sw, ww, eta)
            t = keep * uw + step * us
            T[i] += eta_loading * (t * t - T[i])
            gain = eta_loading * t / T[i] if T[i] > 0 else 0.0
            C[i] += gain * (y - t * C[i])
            y -= t * C[i]
            if abs(y) <= least:
                y = 0.0
            if i + 1 == c:
                _turn(W[i], keep, S[i], step, P[i], u, t, gain)
                break
            ss, sw, ww, us, uw, left = _turn_and_pass_on(
                W[i], keep, S[i], step, P[i], u, t, gain, S[i + 1], W[i + 1], forgetting, y
            )
    return -1


@compiled
def olpls_released(
    U: Float64Array,
    v: Float64Array,
    S: Float64Array,
    W: Float64Array,
    P: Float64Array,
    C: Float64Array,
    T: Float64Array,
    forgetting: float,
    eta: float,
    eta_loading: float,
) -> int:
    """Scale the rows of W as in the released code, whose gradient has (s.s) w instead of (s.w) s.

    Otherwise as in :func:`olpls`, but rows and y are not centred, and loadings take steps of least mean squares.
    """
    c = len(W)
    for k in range(len(U)):
        u = U[k]
        y: float = v[k]
        begun, _ = square_and_product(W[0], W[0])
        if begun == 0:
            failed = _begin_released(u, y, S, W, P, C, T)
            if failed >= 0:
                return failed
            continue
        ss, sw, ww, _, uw, left = _add_covariance(S[0], W[0], u, forgetting, (1 - forgetting) * y)
        for i in range(c):
            if ww == 0:
                break
            slope = sw * sw / ww
            keep = 1 + eta * ((ss - slope) / ww - slope * (1 - 1 / math.sqrt(ww)))
            t = keep * uw
            gain = eta_loading * t
            if not is_finite(ss + left + ww * keep * keep + t * t):
                return i
            T[i] += eta_loading * (t * t - T[i])
            C[i] += gain * (y - t * C[i])
            y -= t * C[i]
            if i + 1 == c:
                _turn(W[i], keep, S[i], 0.0, P[i], u, t, gain)
            else:
                ss, sw, ww, _, uw, left = _turn_and_pass_on(
                    W[i], keep, S[i], 0.0, P[i], u, t, gain, S[i + 1], W[i + 1], forgetting, (1 - forgetting) * y
                )
            square, _ = square_and_product(P[i], P[i])
            if not is_finite(square + y):
                return i
    return -1


@compiled
def _begin_released(
    u: Float64Array, y: float, S: Float64Array, W: Float64Array, P: Float64Array, C: Float64Array, T: Float64Array
) -> int:
    """Start all components from one row, each from half of the previous one, unless the row or its y is zero."""
    square, _ = square_and_product(u, u)
    for i in range(len(W)):
        # The weights are s/|s|, and the score is the length of u.
        length = math.sqrt(square)
        t = math.copysign(length, y)
        if not is_finite(square + y * length):
            return i
        if abs(y) * length == 0:
            break
        scale_into(S[i], y, u)
        scale_into(W[i], 1 / t, u)
        scale_into(P[i], 0.6 / t, u)
        C[i], T[i] = 0.6 * y / t, square
        scale_into(u, 0.5, u)
        square, y = square / 4, y / 2
    return -1


@compiled
def _ascent(ss: float, sw: float, ww: float, eta: float) -> tuple[float, float]:
    """Return a and b of the new unit w = a w + b s: a step of eta/|s|^2 along the gradient of (s.w)^2/(w.w).

    With |w| = 1, the gradient is (s.w) s - (s.w)^2 w, up to a factor of two.
    """
    if ww == 0:
        return 0.0, 1 / math.sqrt(ss)
    a, b = 1 / math.sqrt(ww), 0.0
    if ss >= _LEAST_SQUARE:
        product = sw * a
        a *= 1 - eta * (product * product / ss)
        b = eta * (product / ss)
        length = math.sqrt(a * a * ww + 2 * a * b * sw + b * b * ss)
        a, b = a / length, b / length
    return a, b


@compiled
def _add_covariance(
    s: Float64Array, w: Float64Array, u: Float64Array, forgetting: float, y: float
) -> tuple[float, float, float, float, float, float]:
    """Add y u to s, and return s.s, s.w, w.w, u.s, u.w and u.u."""
    ss, sw, ww, us, uw, uu = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(len(u)):
        uj, wj = u[j], w[j]
        sj = forgetting * s[j] + y * uj
        s[j] = sj
        ss += sj * sj
        sw += sj * wj
        ww += wj * wj
        us += uj * sj
        uw += uj * wj
        uu += uj * uj
    return ss, sw, ww, us, uw, uu


@compiled
def _turn(
    w: Float64Array, keep: float, s: Float64Array, step: float, p: Float64Array, u: Float64Array, t: float, gain: float
) -> None:
    """Rotate w, and move p towards the regression of u on t."""
    for j in range(len(u)):
        w[j] = keep * w[j] + step * s[j]
        p[j] += gain * (u[j] - t * p[j])


@compiled_inline
def _turn_and_pass_on(
    w: Float64Array,
    keep: float,
    s: Float64Array,
    step: float,
    p: Float64Array,
    u: Float64Array,
    t: float,
    gain: float,
    next_s: Float64Array,
    next_w: Float64Array,
    forgetting: float,
    y: float,
) -> tuple[float, float, float, float, float, float]:
    """Apply :func:`_turn`, deflate u by the new p, and apply :func:`_add_covariance` for the next component."""
    ss, sw, ww, us, uw, uu = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(len(u)):
        w[j] = keep * w[j] + step * s[j]
        pj = p[j] + gain * (u[j] - t * p[j])
        uj, wj = u[j] - t * pj, next_w[j]
        p[j], u[j] = pj, uj
        sj = forgetting * next_s[j] + y * uj
        next_s[j] = sj
        ss += sj * sj
        sw += sj * wj
        ww += wj * wj
        us += uj * sj
        uw += uj * wj
        uu += uj * uj
    return ss, sw, ww, us, uw, uu


@stored_predictor(OLPLSState)
class OLPLS(PredictingMethod):
    """Partial least squares by a gradient step for every row: online NIPALS.

    Every component stores a covariance s of y with X that forgets old rows, and moves its weights w along the gradient
    of the squared covariance of y with the score, J(w) = (s.w)^2/(w.w). Rows are then deflated by running regressions
    on that score, and passed to the next component. Memory is three vectors per component, and each row takes one pass
    over them.

    Parameters
    ----------
    n_components : int, default=2
        Number of components, for each column of y.
    forgetting : float, default=0.999
        Weight of a row in the covariances relative to the next row, above 0 and at most 1. About 1/(1 - forgetting)
        rows count: more give more accurate components, fewer follow a changing stream.
    eta : float, default=0.05
        Step of the weights, above 0 and at most 1. The gradient is divided by the square of s, so the step has no unit:
        the angle to s decreases by about this share with every row.
    eta_loading : float, default=0.01
        Step of the loadings, between 0 and 1. The step of least mean squares is divided by a running mean of the
        squared score, with the same weight for the new row. This makes it a regression with a forgetting factor of
        1 - eta_loading, which no row can make unstable.
    variant : {"corrected", "released"}, default="corrected"
        Whether the weights follow the correct gradient, or that of the code released with the CIPLS paper, to reproduce
        its results. See Notes. That code has ``forgetting=0.2``, ``eta=0.01`` and ``eta_loading=0.01``.
    target : {"auto", "labels", "values"}, default="auto"
        Whether y holds labels or values. "auto": floats are values unless ``classes`` are given; everything else is
        labels. Two classes are one column of -1 and +1; more are one column per class. Every column, and every
        response, has its own model, and scores are concatenated.
    missing : {"error", "mean"}, default="error"
        How to handle NaN in X. "mean" replaces it with the running mean of the feature (before its first value, with
        that value, which must be in the same call); ``transform`` and similar methods use the mean of the model.

    Attributes
    ----------
    x_weights_ : ndarray of shape (n_features, n_components * n_columns)
        Weights of unit length, largest entries positive, grouped by column of y. For "released", all weights of a
        column are equal.
    x_loadings_ : ndarray of shape (n_features, n_components * n_columns)
        Regression of the deflated X on each score: rows are deflated by score times loading.
    y_loadings_ : ndarray of shape (n_columns, n_components * n_columns)
        The same for the column of y that the score belongs to; zero for the others.
    x_rotations_ : ndarray of shape (n_features, n_components * n_columns)
        Projection of centred rows to scores, including deflation. For "released", the unnormalized weights.
    coef_ : ndarray of shape (n_columns, n_features)
        Coefficients of the centred X, used by ``predict``. Not for "released".
    intercept_, y_mean_ : ndarray of shape (n_columns,)
        Means of the columns of y.
    x_mean_ : ndarray of shape (n_features,)
        Means of the features over all rows, without forgetting. Zero for "released", which does not centre rows.
    vip_ : ndarray of shape (n_features,)
        Variable importance in projection, of all columns of y, for the rows not yet forgotten. The mean of its squares
        is one.
    classes_ : ndarray of shape (n_classes,)
        The labels, if y holds labels.
    n_components_ : int
        Number of components found so far, of all columns; further ones are zero.
    n_samples_seen_ : int
        Number of training samples.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of features, if X has names that are all strings.

    See Also
    --------
    IncrementalPLS : Exact.

    Notes
    -----
    The weights come close to those of PLS for the rows not yet forgotten; deflation accumulates the errors of previous
    components. For 20,000 rows of 12 Gaussian columns, with deviations from 2 to 0.4, and a linear response with some
    noise, cosines with the first three weights of PLS (the lowest of three draws) were 0.990, 0.85 and 0.70 with
    ``forgetting=0.99``; 0.998, 0.998 and 0.993 with 0.999; 0.9999, 0.999 and 0.994 with 0.9999.

    In the code released with the CIPLS paper, the gradient has (s.s) w instead of (s.w) s. It is parallel to w, so w
    keeps the direction of the first row, and its length diverges. That code does not centre rows, and by default
    forgets four fifths of the covariance with every row. Here the gradient is that of J, w keeps unit length, X and y
    are centred by their running means, and a component starts from the first row with a nonzero remainder.

    ``variant="released"`` reproduces that code. All components start from the first row: w = yx/norm(yx) and 0.6 times
    the loadings that fit the row, of which half is subtracted before the next component. With every later row, s
    becomes lambda s + (1 - lambda) yx, w is multiplied by 1 + eta ((s.s)/(w.w) - (s.w)^2/(w.w)^2 - mu), with mu =
    (s.w)^2/(w.w) (1 - 1/norm(w)) for a constraint on its length, and p and c take steps of least mean squares,
    eta_loading t (x - tp) and eta_loading t (y - tc). So all scores are multiples of the product of a row with the
    first one, whatever y is. Loadings overflow if eta_loading t^2 stays above 2, and lengths if eta (s.w)^2/(w.w) does;
    then an error names the component. With the parameters of that code and two classes, two components of 128
    standardized features overflowed after 300 rows and four after 100, and none of 16 features did. (That code restarts
    after a first call with one row, and divides by zero if the first row or its y is zero; here chunks do not matter,
    and components start from the first nonzero row.)

    References
    ----------
    A. E. Stott, S. Kanna, D. P. Mandic and W. T. Pike, "An online NIPALS algorithm for partial least squares", IEEE
    International Conference on Acoustics, Speech and Signal Processing, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import OLPLS
    >>> X = np.random.default_rng(0).normal(size=(5000, 4))
    >>> model = OLPLS(n_components=1).fit(X, X[:, 0] + X[:, 2])
    >>> model.x_weights_.round(1).T + 0.0
    array([[0.7, 0. , 0.7, 0. ]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **OnlineMethod._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "forgetting": [Interval(Real, 0, 1, closed="right")],
        "eta": [Interval(Real, 0, 1, closed="right")],
        "eta_loading": [Interval(Real, 0, 1, closed="neither")],
        "variant": [StrOptions({"corrected", "released"})],
    }

    _predicting_variant = "corrected"

    def __init__(
        self,
        n_components: int = 2,
        *,
        forgetting: float = 0.999,
        eta: float = 0.05,
        eta_loading: float = 0.01,
        variant: str = "corrected",
        target: str = "auto",
        missing: str = "error",
    ) -> None:
        self.n_components = n_components
        self.forgetting = forgetting
        self.eta = eta
        self.eta_loading = eta_loading
        self.variant = variant
        self.target = target
        self.missing = missing

    def _begin(self, n_features: int, n_columns: int) -> OnlineState:
        released = self.variant == "released"
        recursion = zeros_of(
            OLPLSState,
            q=n_columns,
            c=self.n_components,
            m=n_features,
            forgetting=float(self.forgetting),
            eta=float(self.eta),
            eta_loading=float(self.eta_loading),
            released=released,
        )
        # The released code depends on the units.
        return OnlineState.of(recursion, n_features, n_columns, fixed_unit=released)

    def _solve(self, state: OnlineState) -> StackedModels:
        recursion: OLPLSState = state.recursion
        # Further components are artefacts of loadings that have not converged.
        most = min(self.n_features_in_, max(0, state.n_rows - 1))
        models = StackedModels.of(state, [recursion.factors(k, most) for k in range(len(recursion.W))])
        if recursion.released:
            return replace(models, x_mean=np.zeros_like(models.x_mean), y_mean=np.zeros_like(models.y_mean))
        return models
