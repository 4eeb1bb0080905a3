"""The energy of features in a graph: the weights of all walks that begin at each of them.

With edges A and a rate r, walks of length l weigh ``r^l A^l 1``. Their sum over all lengths, ``e = (I - rA)^-1 1 - 1``,
converges if r times the spectral radius of A is less than one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import linalg

from .._core.memory import require_memory
from .._core.types import Float64Array
from ._edges import Edges

# Of the length of the vector of energies.
_TOLERANCE = 1e-12
DENSE_FEATURES = 256
# Sums of edges that are as good as zero: one over them would overflow.
_NOTHING = 1e-300


def energies(
    edges: Edges, m: int, share: float, bound: Callable[[float], float] | None, *, symmetric: bool, solver: str
) -> Float64Array:
    """Return the energies of m features at the rate ``share / bound``.

    Parameters
    ----------
    edges : Edges
        A.
    m : int
        Number of features.
    share : float
        What the spectral radius of A times the rate is, or is at most.
    bound : callable or None
        Gives a number that should be larger than the spectral radius, from the largest sum of a row. None stands for
        the spectral radius itself, for symmetric edges.
    symmetric : bool
        Whether A is.
    solver : {"auto", "dense", "krylov"}
        "dense" solves with all edges, "krylov" with products alone.
    """
    if solver == "dense" or (solver == "auto" and m <= DENSE_FEATURES):
        require_memory(5 * 8 * m * m, f'solver="dense" with {m:,} features')
        A = edges.dense()
        row_sums, solve = A.sum(axis=1), partial(_dense, A)
    else:
        row_sums, solve = edges.product(np.ones(m)), partial(_krylov, edges)
    largest = float(row_sums.max())
    if largest < _NOTHING:
        return np.zeros(m)
    known_bound = None if bound is None else bound(largest)
    result = solve(row_sums, share, known_bound, symmetric=symmetric)
    # The spectral radius is no larger than the largest sum of a row. If the rate times it were one or more, walks would
    # have no bound, and some energies would come out negative: (1 - rate radius) u'e = rate radius u'1 for the left
    # eigenvector u, which has no negative entries.
    if known_bound is not None and share * largest >= known_bound and result.min() < 0:
        raise _no_bound()
    return np.maximum(result, 0.0)


def _no_bound() -> ValueError:
    return ValueError(
        "The sum of all walks has no bound, as edges are light and the rate is high: use double_scaling=False."
    )


def _dense(
    A: Float64Array, row_sums: Float64Array, share: float, bound: float | None, *, symmetric: bool
) -> Float64Array:
    m = len(row_sums)
    if bound is None:
        bound = float(linalg.eigvalsh(A, subset_by_index=[m - 1, m - 1])[0])
    rate = share / bound
    try:
        solution: Float64Array = linalg.solve(
            np.eye(m) - rate * A, rate * row_sums, assume_a="pos" if symmetric else "gen"
        )
    except linalg.LinAlgError:
        raise _no_bound() from None
    return solution


def _krylov(
    edges: Edges, row_sums: Float64Array, share: float, bound: float | None, *, symmetric: bool
) -> Float64Array:
    """Solve in the space of the vector 1 and its products with A, which grows until it holds the solution.

    For non-negative symmetric edges that space also has an eigenvector of the spectral radius: one without negative
    entries, which is not orthogonal to 1.
    """
    m = len(row_sums)
    length = np.sqrt(m)
    basis = [np.full(m, 1.0 / length)]
    product = row_sums / length
    # A in the basis, where the vector 1 is the first unit vector times its length.
    H = np.empty((0, 0))
    beyond = 0.0
    while True:
        k = len(basis)
        H = np.pad(H, (0, 1))
        H[k - 1, k - 2 : k - 1] = beyond
        H[:, -1], product = _orthogonalised(product, basis)
        beyond = float(np.linalg.norm(product))
        local = (H + H.T) / 2 if symmetric else H
        radius, radius_error = _radius(local, beyond) if bound is None else (bound, 0.0)
        rate = share / radius
        solution = linalg.solve(np.eye(k) - rate * local, rate * length * local[:, 0])
        residual = rate * beyond * abs(solution[-1] + (length if k == 1 else 0.0))
        converged = residual <= _TOLERANCE * np.linalg.norm(solution) and radius_error <= _TOLERANCE * radius
        if converged or k == m:
            result: Float64Array = solution @ np.array(basis)
            return result
        basis.append(product / beyond)
        product = edges.product(basis[-1])


def _orthogonalised(v: Float64Array, basis: list[Float64Array]) -> tuple[Float64Array, Float64Array]:
    """Return the coefficients of v in an orthonormal basis, and what is left of it; twice, for the rounding errors."""
    B = np.array(basis)
    coefficients = np.zeros(len(basis))
    for _ in range(2):
        part = B @ v
        coefficients += part
        v = v - part @ B
    return coefficients, v


def _radius(H: Float64Array, beyond: float) -> tuple[float, float]:
    """Return the largest eigenvalue of H, and a bound of how far it is from one of A."""
    values, vectors = np.linalg.eigh(H)
    residual = beyond * abs(vectors[-1, -1])
    gap = values[-1] - values[-2] if len(values) > 1 else 0.0
    # The error of an eigenvalue is that of the vector squared, if it stands out from the others.
    error = residual if gap <= residual else residual**2 / gap
    return float(values[-1]), float(error)
