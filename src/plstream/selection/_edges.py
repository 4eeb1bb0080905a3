"""Graphs of features: weights of edges between every two of m features, as products with vectors.

A graph has m^2 edges, 5 GB of them for 25,088 features. None is ever held as a whole but those of a few hundred
features, by :meth:`Edges.dense`. What is needed of the others is their product with a vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config

from .._types import Array, Float64Array
from ..memory import require_memory
from ..parallel import blas_threads, ordered_map
from ..progress import track
from ._columns import map_features
from ._relevance import centred_ranks

_TILE = 1024
_TILE_ROWS = 4096


class Edges(Protocol):
    """Weights of the edges of a graph, none of them negative."""

    def product(self, v: Float64Array) -> Float64Array:
        """Return A v."""
        ...

    def dense(self) -> Float64Array:
        """Return A."""
        ...


@dataclass(frozen=True)
class Mixture:
    """A weighted sum of edges."""

    parts: Sequence[tuple[float, Edges]]

    def product(self, v: Float64Array) -> Float64Array:
        """Return A v."""
        return sum((weight * edges.product(v) for weight, edges in self.parts if weight), np.zeros(len(v)))

    def dense(self) -> Float64Array:
        """Return A."""
        edges: Float64Array = np.sum([weight * edges.dense() for weight, edges in self.parts], axis=0)
        return edges


class Largest:
    """The larger of two values, one of each end: products take O(m) once the values are sorted."""

    def __init__(self, values: Float64Array) -> None:
        self.values = values
        self._order = np.argsort(values)

    def product(self, v: Float64Array) -> Float64Array:
        """Return A v: the value times the sum of v at features with smaller ones, and the rest with their own."""
        values, sorted_v = self.values[self._order], v[self._order]
        own = values * np.cumsum(sorted_v)
        larger = np.cumsum((values * sorted_v)[::-1])[::-1]
        result = np.empty_like(v)
        result[self._order] = own + np.append(larger[1:], 0.0)
        return result

    def dense(self) -> Float64Array:
        """Return A."""
        return np.maximum.outer(self.values, self.values)


@dataclass(frozen=True)
class LowRank:
    """L R', from a few columns."""

    left: Float64Array
    right: Float64Array

    def product(self, v: Float64Array) -> Float64Array:
        """Return A v."""
        product: Float64Array = self.left @ (self.right.T @ v)
        return product

    def dense(self) -> Float64Array:
        """Return A."""
        edges: Float64Array = self.left @ self.right.T
        return edges


@dataclass(frozen=True)
class _Kept:
    """A tile that is kept: as it is, or as whole multiples of a unit in half the room.

    Single precision would take as much room and have fewer digits, of which weights close to one, such as most are, can
    use but 24 bits.
    """

    numbers: Array
    unit: float

    @classmethod
    def of(cls, weights: Float64Array, *, compact: bool) -> _Kept:
        if not compact:
            return cls(weights, 1.0)
        unit = float(weights.max() or 1.0) / np.iinfo(np.uint32).max
        return cls(np.rint(weights / unit).astype(np.uint32), unit)

    @property
    def weights(self) -> Float64Array:
        return self.numbers if self.unit == 1.0 else self.numbers * self.unit


class Independence:
    """One minus Spearman's correlation, or minus its absolute value.

    Correlations are products of tiles of ranks. They are formed anew for every product with a vector, except for those
    that there is room to keep: as many as fit in the ``working_memory`` of scikit-learn's configuration, 1 GiB unless
    told otherwise. Ranks are whole numbers, and so their products are exact.

    Parameters
    ----------
    X : ndarray of shape (n, m)
        Rows.
    signed : bool
        Whether a correlation of -1 is a weight of two, and not of zero. A constant feature, which has no correlations,
        then has weights of one, and else of zero.
    """

    def __init__(self, X: Array, *, signed: bool) -> None:
        n, m = X.shape
        dtype = np.dtype(np.int16 if n <= 1 << 15 else np.int32)
        room = int(get_config()["working_memory"]) << 20
        tile_bytes = 8 * (2 * _TILE * min(n, _TILE_ROWS) + 3 * _TILE**2)
        require_memory(
            n * m * dtype.itemsize + min(room, 4 * m * m) + blas_threads() * tile_bytes,
            f"A graph of {m:,} features by ranks of {n:,} rows",
        )
        self.signed = signed
        self.ranks = np.empty((m, n), dtype=dtype)
        lengths = np.empty(m)
        for columns, ranks in map_features(centred_ranks, X, "ranks"):
            self.ranks[columns], lengths[columns] = ranks, np.linalg.norm(ranks, axis=1)
        self._varies = lengths > 0
        self._inverse_lengths = np.where(self._varies, 1.0 / np.where(self._varies, lengths, 1.0), 0.0)
        self._compact = 4 * m * m > room
        # The same ones every time, whichever thread comes first: results are the same to the last digit.
        self._to_keep = set(self._tiles()[: room // (_TILE**2 * (4 if self._compact else 8))])
        self._kept: dict[tuple[int, int], _Kept] = {}
        self._passes = count(1)

    def product(self, v: Float64Array) -> Float64Array:
        """Return A v, from each tile above the diagonal and its mirror image."""
        result = np.zeros_like(v)
        tiles = self._tiles()

        def run(tile: tuple[int, int]) -> tuple[tuple[int, int], Float64Array, Float64Array]:
            rows, columns = map(self._span, tile)
            weights = self._tile(tile)
            return tile, np.dot(weights, v[columns]), np.dot(weights.T, v[rows])

        label = f"edges, pass {next(self._passes)}"
        for tile, down, across in track(ordered_map(run, tiles), label, len(tiles), lambda _: 1, "blocks"):
            rows, columns = map(self._span, tile)
            result[rows] += down
            if rows != columns:
                result[columns] += across
        return result

    def dense(self) -> Float64Array:
        """Return A."""
        everything = slice(0, len(self.ranks))
        return self._weights(everything, everything)

    def _tiles(self) -> list[tuple[int, int]]:
        starts = range(0, len(self.ranks), _TILE)
        return [(i, j) for i in starts for j in starts if i <= j]

    def _span(self, start: int) -> slice:
        return slice(start, min(start + _TILE, len(self.ranks)))

    def _tile(self, tile: tuple[int, int]) -> Float64Array:
        """Return the weights of a tile, and keep them if there is room."""
        if tile in self._kept:
            return self._kept[tile].weights
        weights = self._weights(*map(self._span, tile))
        if tile in self._to_keep:
            self._kept[tile] = _Kept.of(weights, compact=self._compact)
        return weights

    def _weights(self, rows: slice, columns: slice) -> Float64Array:
        products = np.zeros((rows.stop - rows.start, columns.stop - columns.start))
        for start in range(0, self.ranks.shape[1], _TILE_ROWS):
            part = slice(start, start + _TILE_ROWS)
            left, right = self.ranks[rows, part], self.ranks[columns, part]
            products += np.dot(left.astype(np.float64), right.T.astype(np.float64))
        products *= self._inverse_lengths[rows, None]
        products *= self._inverse_lengths[columns]
        return self._from_correlations(products, self._varies[rows], self._varies[columns])

    def _from_correlations(
        self, correlations: Float64Array, rows_vary: NDArray[np.bool_], columns_vary: NDArray[np.bool_]
    ) -> Float64Array:
        if not self.signed:
            np.abs(correlations, out=correlations)
        weights = np.subtract(1.0, correlations, out=correlations)
        # A correlation may be larger than one by a rounding error.
        np.maximum(weights, 0.0, out=weights)
        if not self.signed:
            weights[~rows_vary] = 0.0
            weights[:, ~columns_vary] = 0.0
        return weights
