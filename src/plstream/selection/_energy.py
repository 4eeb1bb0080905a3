"""The energy of features in a graph: the weights of all walks that begin at each of them.

With edges A and a rate r, walks of length l weigh ``r^l A^l 1``. Their sum over all lengths, ``e = (I - rA)^-1 1 - 1``,
converges if r times the spectral radius of A is less than one.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from .._types import Float64Array
from ..memory import require_memory
from ._edges import Edges

# Relative, of the energies: what is kept of large graphs has no more digits.
_TOLERANCE = 1e-12
DENSE_FEATURES = 256


def energies(
    edges: Edges, row_sums: Float64Array, share: float, bound: float | None, *, symmetric: bool, solver: str
) -> Float64Array:
    """Return the energies at the rate ``share / bound``.

    Parameters
    ----------
    edges : Edges
        A.
    row_sums : ndarray of shape (m,)
        A 1.
    share : float
        What the spectral radius of A times the rate is, or is at most.
    bound : float or None
        The spectral radius, or a larger number. None stands for the spectral radius, for symmetric edges.
    symmetric : bool
        Whether A is.
    solver : {"auto", "dense", "krylov"}
        "dense" solves with all edges, "krylov" with products alone.
    """
    if not row_sums.any():
        return np.zeros(len(row_sums))
    if solver == "dense" or (solver == "auto" and len(row_sums) <= DENSE_FEATURES):
        return _dense(edges, row_sums, share, bound, symmetric=symmetric)
    return _krylov(edges, row_sums, share, bound, symmetric=symmetric)


def _dense(edges: Edges, row_sums: Float64Array, share: float, bound: float | None, *, symmetric: bool) -> Float64Array:
    m = len(row_sums)
    require_memory(5 * 8 * m * m, f'solver="dense" with {m:,} features')
    A = edges.dense()
    if bound is None:
        bound = float(linalg.eigvalsh(A, subset_by_index=[m - 1, m - 1])[0])
    rate = share / bound
    solution: Float64Array = linalg.solve(np.eye(m) - rate * A, rate * row_sums, assume_a="pos" if symmetric else "gen")
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
        if converged or k == m or beyond <= np.finfo(np.float64).eps * np.linalg.norm(H):
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
