"""CIPLS: the normalized recursion, the one of the paper, and the released one."""

from __future__ import annotations

import math

import numpy as np

from ..._core.compiled import compiled
from ..._core.types import Float64Array
from .common import is_finite, square_and_product

# Entries that a pass of several loops works on at a time.
_STRIP = 512


@compiled
def cipls_normalized(
    U: Float64Array,
    v: Float64Array,
    C: Float64Array,
    P: Float64Array,
    squares: Float64Array,
    residuals: Float64Array,
    y_products: Float64Array,
    t_squares: Float64Array,
    y_total: Float64Array,
    n_before: int,
    amnesic: float,
) -> int:
    """Follow X'y and the products of X'X with the PLS directions; U is deflated in place.

    C is X'y, row i of P is X'X r_i, squares[i] is r_i'X'X r_i, and residuals[i] is the sum of squares that the
    components before it leave of the rows; so the first is all, and there is one more of them than components.
    y_products[i] and t_squares[i] are sums of products of scores with what is left of y, and with themselves. y_total
    is the sum of squares of y.
    """
    m = P.shape[1]
    # There are no more components than features: what is left then is rounding errors.
    c = min(P.shape)
    w, w_before = np.empty(m), np.empty(m)
    for k in range(len(U)):
        u, y = U[k], v[k]
        old, new = _weights(n_before + k, amnesic)
        from_mean_before = _from_mean_before(y, n_before + k)
        y_total[0] += y * from_mean_before
        products = _add_to_cross(u, from_mean_before, C, P[0], w, w_before)
        # Below, a direction or what is left of a row is nothing but rounding errors.
        least_direction, least_row = 1e-24 * products[0], 1e-24 * products[2]
        explained = 0
        for i in range(c):
            if not is_finite(products[0] + products[2] + squares[i]):
                return i
            if products[0] <= least_direction or products[2] <= least_row:
                break
            # A component that begins has missed the rows so far. Of them no more is known than what they had in all.
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
def _from_mean_before(difference: float, n_before: int) -> float:
    """Return the difference of a row from the mean of those before, given that from the mean with it.

    One factor of a product has to be such a difference for the sum of products to be that of centred rows.
    """
    return difference * (n_before + 1) / max(1, n_before)


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
def _follow(
    p: Float64Array,
    u: Float64Array,
    w: Float64Array,
    w_before: Float64Array,
    step: tuple[float, float, float, float, float, float, float, float],
) -> float:
    """Bring the last p up to date, and return the sum of squares that it leaves of u."""
    _, turned, from_w, from_b, from_u, to_u, _, _ = step
    uu = 0.0
    for j in range(len(u)):
        pj = turned * p[j] + from_w * w[j] + from_b * w_before[j] + from_u * u[j]
        uj = u[j] - to_u * pj
        p[j] = pj
        uu += uj * uj
    return uu


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
            if not is_finite(product + v):
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
    v: Float64Array,
    W: Float64Array,
    P: Float64Array,
    q: Float64Array,
    squares: Float64Array,
    n_before: int,
) -> int:
    """What the code released by the authors computes; U is deflated in place.

    ``v`` is y minus its running mean: with it the first direction is exactly X'y. The very first row only begins the
    means.
    """
    c = len(W)
    for k in range(1 if n_before == 0 else 0, len(U)):
        u, left = U[k], y[k]
        product, square = _add_direction(W[0], u, _from_mean_before(v[k], n_before + k))
        t = product / math.sqrt(square) if square > 0 else 0.0
        q[0] += t * left
        squares[0] += t * t
        _add_loading(P[0], u, t)
        for i in range(1, c):
            left -= t * q[i - 1]
            product, square = _deflate_and_add(P[i - 1], P[i], W[i], u, t, left)
            if not is_finite(product + square + left):
                return i
            # As released: the loading takes the score of the component before.
            q[i] += t * left
            squares[i] += t * t
            t = product / math.sqrt(square) if square > 0 else 0.0
        if not is_finite(t):
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
