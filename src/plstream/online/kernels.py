"""Compiled recursions, one sample after the other.

A step of a recursion is a few passes over the features, each of which forms all it can while the entries are at hand:
it updates a vector of the state, deflates the sample, and takes the products that the next pass needs to begin. Such a
pass is a function of its own, for LLVM makes vector instructions of short loops, and gives up on the loop over samples
with everything written into it.

The functions without an underscore change the state in place, and return the number of the component whose numbers are
no longer finite, or -1.
"""

from __future__ import annotations

import math

from .._compiled import compiled
from .._types import Float64Array, FloatArray


@compiled
def subtract_running_mean(
    X: FloatArray, origin: Float64Array, offset: Float64Array, unit: float, n_rows: int, out: Float64Array
) -> None:
    """Set ``out`` to the rows minus the mean up to and with each, in units, and ``offset`` to the last mean."""
    for i in range(len(X)):
        _subtract_mean(X[i], origin, offset, unit, 1.0 / (n_rows + i + 1), out[i])


@compiled
def _subtract_mean(
    x: FloatArray, origin: Float64Array, offset: Float64Array, unit: float, share: float, out: Float64Array
) -> None:
    for j in range(len(x)):
        difference = (x[j] - origin[j]) * unit - offset[j]
        step = share * difference
        offset[j] += step
        out[j] = difference - step


# ----------------------------------------------------------------------------------------------------- CCIPCA


@compiled
def ccipca(U: Float64Array, V: Float64Array, squares: Float64Array, ages: Float64Array, amnesic: Float64Array) -> int:
    """Turn the rows of V towards the principal components of the rows of U, which are deflated in place.

    Row i of V has the sum of squares squares[i], and has seen ages[i] rows; ``amnesic`` is that of :func:`_amnesia`.
    """
    c = len(V)
    for k in range(len(U)):
        u = U[k]
        left, product = _products(u, V[0])
        whole = left
        for i in range(c):
            if not math.isfinite(product + left):
                return i
            # What is left of a row that the components explain is rounding error, and no direction to begin with.
            if left <= 1e-26 * whole:
                break
            ages[i] += 1
            if ages[i] == 1:
                # One row is its own principal component, of variance |u|^2.
                _scale_into(V[i], math.sqrt(left), u)
                squares[i] = left * left
                break
            share = _weight_of_new(ages[i], amnesic)
            following = V[i + 1] if i + 1 < c else V[i]
            product, left, squares[i] = _turn_and_deflate(V[i], following, u, product, left, squares[i], share)
    return -1


@compiled
def _weight_of_new(age: float, amnesic: Float64Array) -> float:
    """Return (1 + l)/age, where l never weighs what is old less than half as much as a plain average would."""
    share: float = (1 + min(_amnesia(age, amnesic), (age - 1) / 2)) / age
    return share


@compiled
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


@compiled
def _turn_and_deflate(
    v: Float64Array,
    following: Float64Array,
    u: Float64Array,
    product: float,
    left: float,
    square: float,
    share: float,
) -> tuple[float, float, float]:
    """Average v with (u.v/|v|) u, take the new v out of u, and return u.v of the following v, |u|^2 and |v|^2.

    The new v is formed in the same pass, but its products with itself and with u are known before.
    """
    old, new = 1 - share, share * product / math.sqrt(square) if square > 0 else 0.0
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


# ------------------------------------------------------------------------------------------------------ OLPLS


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
            if not _are_finite(ss, left):
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


# -------------------------------------------------------------------------------------------------------- LDA


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
    q = len(B)
    z = U[0].copy()
    for k in range(len(U)):
        n = n_before + k + 1
        if n == 1:
            continue
        # A row minus the mean that includes it is shorter than minus the mean before it: so counts a step of Welford's.
        growth = n / (n - 1)
        square, product = _standardise(U[k], squares, growth, n, z, B[0])
        length[0] += square
        for i in range(q):
            if not _are_finite(square, product):
                return i
            # No row counts for more than to be fitted.
            most = max(length[0] / (n - 1), eta * square)
            step = eta * (V[k, i] - product) / most if most > 0 else 0.0
            following = B[i + 1] if i + 1 < q else B[i]
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


# ------------------------------------------------------------------------------------------------- all methods


# The largest float64.
_LARGEST = 1.7976931348623157e308


@compiled
def _are_finite(a: float, b: float) -> bool:
    """Tell whether both are finite. ``math.isfinite`` is compiled to x - x, which reordered sums make zero."""
    return abs(a) <= _LARGEST and abs(b) <= _LARGEST


@compiled
def _products(a: Float64Array, b: Float64Array) -> tuple[float, float]:
    """Return a.a and a.b."""
    square, product = 0.0, 0.0
    for j in range(len(a)):
        square += a[j] * a[j]
        product += a[j] * b[j]
    return square, product


@compiled
def _scale_into(out: Float64Array, factor: float, a: Float64Array) -> None:
    for j in range(len(a)):
        out[j] = factor * a[j]
