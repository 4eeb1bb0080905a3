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

import numpy as np

from .._compiled import compiled
from .._types import Float64Array, FloatArray

# Entries that a pass of several loops works on at a time.
_STRIP = 512


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


# ------------------------------------------------------------------------------------------------------ CIPLS


@compiled
def cipls_normalized(
    U: Float64Array,
    v: Float64Array,
    C: Float64Array,
    P: Float64Array,
    squares: Float64Array,
    residuals: Float64Array,
    n_before: int,
    amnesic: float,
) -> int:
    """Follow X'y and the products of X'X with the PLS directions; U is deflated in place.

    C is X'y, row i of P is X'X r_i, squares[i] is r_i'X'X r_i, and residuals[i] is the sum of squares that the
    components before it leave of the rows; so the first is all, and there is one more of them than components.
    """
    c, m = P.shape
    w, w_before, nothing = np.empty(m), np.empty(m), np.zeros(m)
    for k in range(len(U)):
        u = U[k]
        old, new = _weights(n_before + k, amnesic)
        products = _add_to_cross(u, v[k], C, P[0], w, w_before)
        # Below, a direction or what is left of a row is nothing but rounding errors.
        least_direction, least_row = 1e-24 * products[0], 1e-24 * products[2]
        for i in range(c):
            if not _is_finite(products[0] + products[2] + squares[i]):
                return i
            if products[0] <= least_direction or products[2] <= least_row:
                break
            residuals[i] = old * residuals[i] + new * products[2]
            spread = residuals[i + 1] / max(1, m - i - 1)
            step = _step(products, squares[i], spread, residuals[i], old, new)
            if step[0] <= 1e-24 * residuals[0]:
                break
            following = P[i + 1] if i + 1 < c else nothing
            products = _follow_and_deflate(P[i], following, u, w, w_before, step)
            squares[i] = step[0]
        else:
            residuals[c] = old * residuals[c] + new * products[2]
    return -1


@compiled
def _weights(n_before: int, amnesic: float) -> tuple[float, float]:
    """Return the factors of old sums and of products of a new row with itself.

    Without amnesia the first is 1. The second is n/(n - 1), for both factors are differences from the mean with the row
    in it, and one should be from the mean before it. Amnesia l makes them (1 - l/(n - 2)) and (1 + l) times that.
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
    # Two loops, for LLVM gives up on telling so many vectors apart; in strips, which stay in the nearest cache.
    for start in range(0, len(u), _STRIP):
        part = slice(start, start + _STRIP)
        products = _keep_and_add(u[part], v, C[part], w_before[part])
        wp += _copy_and_multiply(C[part], p[part], w[part])
        ww += products[0]
        uw += products[1]
        uu += products[2]
        wb += products[3]
        bb += products[4]
    return ww, uw, uu, wp, wb, bb


@compiled
def _keep_and_add(
    u: Float64Array, v: float, C: Float64Array, before: Float64Array
) -> tuple[float, float, float, float, float]:
    ww, uw, uu, wb, bb = 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(len(u)):
        uj, bj = u[j], C[j]
        wj = bj + v * uj
        C[j], before[j] = wj, bj
        ww += wj * wj
        uw += uj * wj
        uu += uj * uj
        wb += wj * bj
        bb += bj * bj
    return ww, uw, uu, wb, bb


@compiled
def _copy_and_multiply(a: Float64Array, b: Float64Array, out: Float64Array) -> float:
    product = 0.0
    for j in range(len(a)):
        out[j] = a[j]
        product += a[j] * b[j]
    return product


@compiled
def _step(
    products: tuple[float, float, float, float, float, float],
    square: float,
    spread: float,
    most: float,
    old: float,
    new: float,
) -> tuple[float, float, float, float, float, float, float, float]:
    """Return what :func:`_follow_and_deflate` does with the vectors, and the new r'X'X r, which comes first.

    The direction has turned from b/|b| to w/|w| since the last row. What X'X does to the difference is known along p,
    as it is there pp'/square, and else taken to be the same in all directions: ``spread``. No direction can have more
    than ``most``; one that would has been turned by rounding errors, and begins anew.
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
    """Bring p up to date with the direction w and the row u, take it out of all three, and return their products."""
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
def cipls_paper(
    U: Float64Array, y: Float64Array, W: Float64Array, P: Float64Array, q: Float64Array, squares: Float64Array
) -> int:
    """Algorithm 1 of the paper: scores are signs, and loadings are sums. U is deflated in place."""
    c = len(W)
    for k in range(len(U)):
        u, v = U[k], y[k]
        product, _ = _add_direction(W[0], u, v)
        for i in range(c):
            if not _is_finite(product + v):
                return i
            t = math.copysign(1.0, product) if product != 0 else 0.0
            q[i] += t * v
            v -= t * q[i]
            squares[i] += t * t
            if i + 1 < c:
                product = _add_loading_and_direction(P[i], W[i + 1], u, t, v)
            else:
                _add_loading(P[i], u, t)
    return -1


@compiled
def _add_direction(w: Float64Array, u: Float64Array, v: float) -> tuple[float, float]:
    """Add v u to w; return u.w and w.w."""
    product, square = 0.0, 0.0
    for j in range(len(u)):
        wj = w[j] + v * u[j]
        w[j] = wj
        product += u[j] * wj
        square += wj * wj
    return product, square


@compiled
def _add_loading(p: Float64Array, u: Float64Array, t: float) -> None:
    for j in range(len(u)):
        p[j] += t * u[j]


@compiled
def _add_loading_and_direction(p: Float64Array, w: Float64Array, u: Float64Array, t: float, v: float) -> float:
    """Add t u to p, take t p out of u, add v u to w, and return u.w."""
    product = 0.0
    for j in range(len(u)):
        pj = p[j] + t * u[j]
        uj = u[j] - t * pj
        wj = w[j] + v * uj
        p[j], u[j], w[j] = pj, uj, wj
        product += uj * wj
    return product


@compiled
def cipls_released(
    U: Float64Array,
    y: Float64Array,
    v_first: Float64Array,
    W: Float64Array,
    P: Float64Array,
    q: Float64Array,
    squares: Float64Array,
    skip_first: bool,  # noqa: FBT001
) -> int:
    """What the code released by the authors computes; U is deflated in place.

    ``v_first`` is y minus its mean over the rows before: with it the first direction is exactly X'y. The very first row
    only begins the means.
    """
    c = len(W)
    for k in range(1 if skip_first else 0, len(U)):
        u, v = U[k], y[k]
        product, square = _add_direction(W[0], u, v_first[k])
        t = product / math.sqrt(square) if square > 0 else 0.0
        q[0] += t * v
        squares[0] += t * t
        _add_loading(P[0], u, t)
        for i in range(1, c):
            v -= t * q[i - 1]
            product, square = _deflate_and_add(P[i - 1], P[i], W[i], u, t, v)
            if not _is_finite(product + square + v):
                return i
            # As released: the loading takes the score of the component before.
            q[i] += t * v
            squares[i] += t * t
            t = product / math.sqrt(square) if square > 0 else 0.0
        if not _is_finite(t):
            return c - 1
    return -1


@compiled
def _deflate_and_add(
    p_before: Float64Array, p: Float64Array, w: Float64Array, u: Float64Array, t: float, v: float
) -> tuple[float, float]:
    """Take t p_before out of u, add v u to w and t u to p, and return u.w and w.w."""
    product, square = 0.0, 0.0
    for j in range(len(u)):
        uj = u[j] - t * p_before[j]
        wj = w[j] + v * uj
        u[j], w[j] = uj, wj
        p[j] += t * uj
        product += uj * wj
        square += wj * wj
    return product, square


# ----------------------------------------------------------------------------------------------------- CCIPCA


@compiled
def ccipca(
    U: Float64Array,
    V: Float64Array,
    squares: Float64Array,
    ages: Float64Array,
    row_squares: Float64Array,
    amnesic: Float64Array,
) -> int:
    """Turn the rows of V towards the principal components of the rows of U, which are deflated in place.

    Row i of V has the sum of squares squares[i], and has seen ages[i] rows; ``row_squares`` are the mean and the
    largest sum of squares of a row of U, the mean with the weights of V[0]; ``amnesic`` is that of :func:`_amnesia`.
    """
    c, m = V.shape
    nothing = np.zeros(m)
    for k in range(len(U)):
        u = U[k]
        left, product = _products(u, V[0])
        whole = left
        row_squares[1] = max(row_squares[1], whole)
        for i in range(c):
            begins = squares[i] == 0
            if begins:
                # One row is its own principal component, of variance |u|^2. But what is left of a row that the
                # components explain is rounding error, of the size of the largest row, for it has moved the mean.
                if left <= 1e-26 * row_squares[1]:
                    break
                _scale_into(V[i], math.sqrt(left), u)
                squares[i], ages[i] = left * left, 1
            else:
                ages[i] += 1
                share = _weight_of_new(ages[i], amnesic)
                following = V[i + 1] if i + 1 < c else nothing
                product, left, squares[i] = _turn_and_deflate(V[i], following, u, product, left, squares[i], share)
            if not (_is_finite(squares[i]) and _is_finite(left)):
                return i
            if begins:
                break
        if ages[0] > 0:
            row_squares[0] += _weight_of_new(ages[0], amnesic) * (whole - row_squares[0])
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
            if not (_is_finite(ss) and _is_finite(left)):
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
            if not (_is_finite(square) and _is_finite(product)):
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


# ------------------------------------------------------------------------------------------------- all methods


@compiled
def _is_finite(number: float) -> bool:
    """Return whether a number is finite. math.isfinite forms x - x, which reordering turns to zero if x is a sum."""
    return abs(number) < math.inf


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
