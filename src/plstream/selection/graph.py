"""Graphs of features, and the energy of each feature: the total weight of all walks that begin with it.

With edges A and a rate r, walks of length l have weights ``r^l A^l 1``. Their sum ``e = (I - rA)^-1 1 - 1`` converges
if r times the spectral radius of A is less than one.

A graph of m features has m^2 edges, or 5 GB for 25,088 features. They are stored only for up to a few hundred
features, by ``Edges.dense``; otherwise only their products with vectors are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn import get_config

from .._core.memory import require_memory
from .._core.progress import track
from .._core.threads import blas_threads, ordered_map
from .._core.types import Array, Float64Array
from .statistics import centred_ranks, map_features

_TILE = 1024
_TILE_ROWS = 4096
_ROUNDING = 4 * float(np.finfo(np.float64).eps)
# Relative to the norm of the energies.
_TOLERANCE = 1e-12
DENSE_FEATURES = 256
# Sums of edges below this are treated as zero: their inverses would overflow.
_NOTHING = 1e-300
# Products with vectors that a ranking takes, about.
_PRODUCTS = 7


def _room() -> int:
    """Return the number of bytes available for cached tiles."""
    return int(get_config()["working_memory"]) << 20


def _rank_dtype(n: int) -> np.dtype[Any]:
    return np.dtype(np.int16 if n <= 1 << 15 else np.int32)


def rank_graph_bytes(n: int, m: int, n_threads: int = 1) -> int:
    """Return the bytes of a graph of m features by ranks of n rows: the ranks, cached tiles, and tiles at work."""
    side = min(m, _TILE)
    at_work = 8 * side * (2 * min(n, _TILE_ROWS) + 3 * side)
    return n * m * _rank_dtype(n).itemsize + min(_room(), 4 * m * m) + n_threads * at_work


def rank_graph_multiplications(n: int, m: int) -> float:
    """Return the approximate multiplications of a ranking: all tiles once, and those not cached again per product."""
    recomputed = max(0.0, 1 - _room() / (2 * m * m))
    # Reading a cached weight takes as long as tens of multiplications.
    return n * m * m / 2 * (1 + _PRODUCTS * recomputed) + 40.0 * _PRODUCTS * m * m


class Edges(NamedTuple):
    """Non-negative weights A of the edges of a graph."""

    product: Callable[[Float64Array], Float64Array]
    """Returns A v."""
    dense: Callable[[], Float64Array]
    """Returns A."""


def weighted_sum(*parts: tuple[float, Edges]) -> Edges:
    """Return a weighted sum of edges."""
    used = [(weight, edges) for weight, edges in parts if weight]

    def dense() -> Float64Array:
        total, *others = (weight * edges.dense() for weight, edges in used)
        for edges in others:
            total += edges
        return total

    return Edges(lambda v: sum((weight * edges.product(v) for weight, edges in used), np.zeros(len(v))), dense)


def low_rank(left: Float64Array, right: Float64Array) -> Edges:
    """Return L R', with few columns."""
    return Edges(lambda v: left @ (right.T @ v), lambda: left @ right.T)


def pairwise_maximum(values: Float64Array) -> Edges:
    """Return the larger of the values of two features: products take O(m) once the values are sorted."""
    order = np.argsort(values)
    ascending = values[order]

    def product(v: Float64Array) -> Float64Array:
        # Each value times the sum of v over smaller values, plus the larger values times v.
        own = ascending * np.cumsum(v[order])
        larger = np.cumsum((ascending * v[order])[::-1])[::-1]
        result = np.empty_like(v)
        result[order] = own + np.append(larger[1:], 0.0)
        return result

    return Edges(product, lambda: np.maximum.outer(values, values))


class SpearmanDissimilarity:
    """One minus Spearman's correlation, or minus its absolute value.

    Correlations are products of tiles of ranks. They are recomputed for every product with a vector, except for cached
    tiles: as many as fit into the ``working_memory`` of scikit-learn's configuration, 1 GiB by default. If not all fit,
    weights are rounded to multiples of 2^-31, so that more of them fit and all passes use the same values. (Single
    precision would take as much space for fewer digits.) Ranks and their products are integers: exact below 2^53, which
    is guaranteed up to 300,000 rows.

    Parameters
    ----------
    X : ndarray of shape (n, m)
        Rows.
    signed : bool
        Whether a correlation of -1 has weight two instead of zero. A constant feature, which has no correlations, then
        has weights of one instead of zero.
    """

    def __init__(self, X: Array, *, signed: bool) -> None:
        self.signed = signed
        self._X = X
        n, m = X.shape
        room = _room()
        rounded = 4 * m**2 > room
        self._unit = (2.0**-30 if signed else 2.0**-31) if rounded else None
        spans = [slice(start, min(start + _TILE, m)) for start in range(0, m, _TILE)]
        self._tiles = [(rows, columns) for i, rows in enumerate(spans) for columns in spans[i:]]
        # Cache the same tiles in every run, whatever the order of threads: results are bit-identical.
        self._n_to_keep = room // (_TILE**2 * (4 if rounded else 8))
        self._kept: dict[int, Array] = {}
        self._passes = count(1)
        n_bytes = rank_graph_bytes(n, m, min(blas_threads(), len(self._tiles)))
        require_memory(n_bytes, f"A graph of {m:,} features by ranks of {n:,} rows")

    @cached_property
    def ranks(self) -> NDArray[np.signedinteger[Any]]:
        """Centred ranks, one row per feature."""
        n, m = self._X.shape
        ranks = np.empty((m, n), dtype=_rank_dtype(n))
        for columns, values in map_features(centred_ranks, self._X, "ranks"):
            ranks[columns] = values
        return ranks

    @cached_property
    def _inverse_lengths(self) -> Float64Array:
        """One over the lengths of the ranks, or zero for a constant feature."""
        lengths = np.array([np.linalg.norm(ranks.astype(np.float64)) for ranks in self.ranks])
        return np.where(lengths > 0, 1.0 / np.where(lengths > 0, lengths, 1.0), 0.0)

    def product(self, v: Float64Array) -> Float64Array:
        """Return A v, from each tile above the diagonal and its mirror image."""
        result = np.zeros_like(v)
        # Compute them before threads start.
        _ = self._inverse_lengths

        def run(i: int) -> tuple[int, Float64Array, Float64Array]:
            rows, columns = self._tiles[i]
            weights = self._tile(i)
            return i, np.dot(weights, v[columns]), np.dot(weights.T, v[rows])

        label, n_tiles = f"edges, pass {next(self._passes)}", len(self._tiles)
        for i, down, across in track(ordered_map(run, range(n_tiles)), label, n_tiles, lambda _: 1, "blocks"):
            rows, columns = self._tiles[i]
            result[rows] += down
            if rows != columns:
                result[columns] += across
        return result

    def dense(self) -> Float64Array:
        """Return A."""
        everything = slice(0, self._X.shape[1])
        return self._weights(everything, everything)

    def _tile(self, i: int) -> Float64Array:
        """Return the weights of a tile, cached if there is room."""
        kept = self._kept.get(i)
        if kept is None:
            kept = self._weights(*self._tiles[i])
            if self._unit is not None:
                kept = np.rint(kept / self._unit).astype(np.uint32)
            if i < self._n_to_keep:
                self._kept[i] = kept
        return kept if self._unit is None else kept * self._unit

    def _weights(self, rows: slice, columns: slice) -> Float64Array:
        correlations = np.zeros((rows.stop - rows.start, columns.stop - columns.start))
        for start in range(0, self.ranks.shape[1], _TILE_ROWS):
            part = slice(start, start + _TILE_ROWS)
            left, right = self.ranks[rows, part], self.ranks[columns, part]
            correlations += np.dot(left.astype(np.float64), right.T.astype(np.float64))
        correlations *= self._inverse_lengths[rows, None]
        correlations *= self._inverse_lengths[columns]
        if not self.signed:
            np.abs(correlations, out=correlations)
        weights = np.subtract(1.0, correlations, out=correlations)
        # A correlation of one may have a rounding error of either sign.
        weights[weights < _ROUNDING] = 0.0
        if not self.signed:
            weights[self._inverse_lengths[rows] == 0] = 0.0
            weights[:, self._inverse_lengths[columns] == 0] = 0.0
        return weights


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
        The spectral radius of A times the rate, or an upper bound.
    bound : callable or None
        Returns an upper bound of the spectral radius from the largest row sum. None stands for the spectral radius
        itself, for symmetric edges.
    symmetric : bool
        Whether A is symmetric.
    solver : {"auto", "dense", "krylov"}
        "dense" solves with all edges, "krylov" with products only.
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
    # The spectral radius is at most the largest row sum. If the rate times the radius were one or more, walks would
    # diverge, and some energies would be negative: (1 - rate radius) u'e = rate radius u'1 for the non-negative left
    # eigenvector u.
    if known_bound is not None and share * largest >= known_bound and result.min() < 0:
        raise _no_bound()
    return np.maximum(result, 0.0)


def _no_bound() -> ValueError:
    return ValueError(
        "The sum over all walks diverges, because edges are light and the rate is high: use double_scaling=False."
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
    """Solve in the Krylov space of the vector 1, which grows until it contains the solution.

    For non-negative symmetric edges, it also contains an eigenvector of the spectral radius: a non-negative one, which
    is not orthogonal to 1.
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
    """Return the coefficients of v in an orthonormal basis and the remainder, orthogonalized twice for accuracy."""
    B = np.array(basis)
    coefficients = np.zeros(len(basis))
    for _ in range(2):
        part = B @ v
        coefficients += part
        v = v - part @ B
    return coefficients, v


def _radius(H: Float64Array, beyond: float) -> tuple[float, float]:
    """Return the largest eigenvalue of H, and a bound on its distance to an eigenvalue of A."""
    values, vectors = np.linalg.eigh(H)
    residual = beyond * abs(vectors[-1, -1])
    gap = values[-1] - values[-2] if len(values) > 1 else 0.0
    # The error of a separated eigenvalue is quadratic in that of its eigenvector.
    error = residual if gap <= residual else residual**2 / gap
    return float(values[-1]), float(error)
