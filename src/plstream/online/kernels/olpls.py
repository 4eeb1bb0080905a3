"""OLPLS."""

from __future__ import annotations

import math

from ..._core.compiled import compiled
from ..._core.types import Float64Array
from .common import is_finite


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
    """Turn the rows of W towards PLS weights of U and v; U is deflated in place.

    Rows of S are covariances and rows of P loadings, C has the loadings of v, and T the mean squared scores.
    """
    c = len(W)
    for k in range(len(U)):
        u = U[k]
        y: float = v[k]
        least = 1e-13 * abs(y)
        # Not a mean but a sum: only the direction of s counts, and forgetting may be 1.
        ss, sw, ww, us, uw, left = _add_covariance(S[0], W[0], u, forgetting, y)
        whole = left
        for i in range(c):
            if not (is_finite(ss) and is_finite(left)):
                return i
            # What is left of a row that the components explain is rounding error, and no direction to begin with.
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


# Smaller sums of squares are of numbers that have lost digits.
_LEAST_SQUARE = 1e-280


@compiled
def _ascent(ss: float, sw: float, ww: float, eta: float) -> tuple[float, float]:
    """Return a and b of the new w = a w + b s, the old one plus eta/|s|^2 times the gradient of (s.w)^2/(w.w), scaled.

    With |w| = 1 the gradient is (s.w) s - (s.w)^2 w, up to a factor of two.
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
    """Turn w, and move p towards the regression of u on t."""
    for j in range(len(u)):
        w[j] = keep * w[j] + step * s[j]
        p[j] += gain * (u[j] - t * p[j])


@compiled
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
    """Do as :func:`_turn`, deflate u by the new p, and do as :func:`_add_covariance` for the next component."""
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
