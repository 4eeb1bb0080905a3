"""CCIPCA."""

from __future__ import annotations

import math

import numpy as np

from ..._core.compiled import compiled
from ..._core.types import Float64Array
from .common import is_finite, scale_into, square_and_product


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
        left, product = square_and_product(u, V[0])
        whole = left
        row_squares[1] = max(row_squares[1], whole)
        for i in range(c):
            begins = squares[i] == 0
            if begins:
                # One row is its own principal component, of variance |u|^2. But what is left of a row that the
                # components explain is rounding error, of the size of the largest row, for it has moved the mean.
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
