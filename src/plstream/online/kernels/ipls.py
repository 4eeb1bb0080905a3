"""IPLS: sums of products of X and y."""

from __future__ import annotations

from ..._core.compiled import compiled_in_order
from ..._core.types import Float64Array

# Entries that are worked on at a time: those of a few rows stay in the nearest cache.
_STRIP = 512


@compiled_in_order
def add_products(U: Float64Array, V: Float64Array, sums: Float64Array) -> None:
    """Add V'U to the sums, one row after the other: they do not depend on how the rows are divided among calls.

    BLAS would add up the rows of a call first. It takes a third to a half of its time with one column of V, as long
    with ten, and up to twice as long with hundreds.
    """
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
                _add_one(c, U[i, part], V[i, k])
                _add_one(d, U[i, part], V[i, k + 1])
        for k in range(even, len(sums)):
            for i in range(n):
                _add_one(sums[k, part], U[i, part], V[i, k])


@compiled_in_order
def _add_three(
    c: Float64Array,
    d: Float64Array,
    u0: Float64Array,
    u1: Float64Array,
    u2: Float64Array,
    factors: tuple[float, float, float, float, float, float],
) -> None:
    """Add multiples of three rows to two sums. With more vectors LLVM gives up on telling them apart."""
    c0, c1, c2, d0, d1, d2 = factors
    for j in range(len(c)):
        a, b, e = u0[j], u1[j], u2[j]
        c[j] = c[j] + c0 * a + c1 * b + c2 * e
        d[j] = d[j] + d0 * a + d1 * b + d2 * e


@compiled_in_order
def _add_one(sums: Float64Array, u: Float64Array, factor: float) -> None:
    for j in range(len(sums)):
        sums[j] += factor * u[j]


@compiled_in_order
def add_squares(A: Float64Array, B: Float64Array, sums: Float64Array) -> None:
    """Add to each sum the products of a column of A with that of B, one row after the other."""
    for i in range(len(A)):
        for k in range(len(sums)):
            sums[k] += A[i, k] * B[i, k]
