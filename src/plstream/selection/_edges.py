"""Graphs of features: weights of edges between every two of m features, as products with vectors.

A graph has m^2 edges, 5 GB of them for 25,088 features. None is ever held as a whole but those of a few hundred
features, by :meth:`Edges.dense`. What is needed of the others is their product with a vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config

from .._core.memory import require_memory
from .._core.progress import track
from .._core.threads import blas_threads, ordered_map
from .._core.types import Array, Float64Array
from ._columns import map_features
from ._relevance import centred_ranks

_TILE = 1024
_TILE_ROWS = 4096
_ROUNDING = 4 * float(np.finfo(np.float64).eps)


def _room() -> int:
    """Return the bytes that may be kept to save time."""
    return int(get_config()["working_memory"]) << 20


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
        total, *others = (weight * edges.dense() for weight, edges in self.parts if weight)
        for edges in others:
            total += edges
        return total


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


class Independence:
    """One minus Spearman's correlation, or minus its absolute value.

    Correlations are products of tiles of ranks. They are formed anew for every product with a vector, except for those
    that there is room to keep: as many as fit in the ``working_memory`` of scikit-learn's configuration, 1 GiB unless
    told otherwise. If not all do, weights are rounded to multiples of a unit, 2^-31, so that more of them fit, and so
    that all passes see the same ones. (Single precision would take as much room for fewer digits.) Ranks are whole
    numbers, and so are their products: exact as long as they are below 2^53, which 300,000 rows are sure to be.

    Parameters
    ----------
    X : ndarray of shape (n, m)
        Rows.
    signed : bool
        Whether a correlation of -1 is a weight of two, and not of zero. A constant feature, which has no correlations,
        then has weights of one, and else of zero.
    """

    def __init__(self, X: Array, *, signed: bool) -> None:
        self.signed = signed
        self._X = X
        self._n_features = X.shape[1]
        room = _room()
        rounded = 4 * self._n_features**2 > room
        self._unit = (2.0**-30 if signed else 2.0**-31) if rounded else None
        # The same ones every time, whichever thread comes first: results are the same to the last digit.
        self._to_keep = set(self._tiles()[: room // (_TILE**2 * (4 if rounded else 8))])
        self._kept: dict[tuple[int, int], Array] = {}
        self._passes = count(1)
        self._require_memory(room)

    @cached_property
    def ranks(self) -> NDArray[np.signedinteger[Any]]:
        """Centred ranks, a feature a row."""
        n, m = self._X.shape
        ranks = np.empty((m, n), dtype=self._rank_dtype())
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
        # Before threads ask for them.
        _ = self._inverse_lengths
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
        everything = slice(0, self._n_features)
        return self._weights(everything, everything)

    def _rank_dtype(self) -> np.dtype[Any]:
        return np.dtype(np.int16 if self._X.shape[0] <= 1 << 15 else np.int32)

    def _require_memory(self, room: int) -> None:
        n, m = self._X.shape
        side = min(m, _TILE)
        tile_bytes = 8 * side * (2 * min(n, _TILE_ROWS) + 3 * side)
        require_memory(
            n * m * self._rank_dtype().itemsize
            + min(room, 4 * m * m)
            + min(blas_threads(), len(self._tiles())) * tile_bytes,
            f"A graph of {m:,} features by ranks of {n:,} rows",
        )

    def _tiles(self) -> list[tuple[int, int]]:
        starts = range(0, self._n_features, _TILE)
        return [(i, j) for i in starts for j in starts if i <= j]

    def _span(self, start: int) -> slice:
        return slice(start, min(start + _TILE, self._n_features))

    def _tile(self, tile: tuple[int, int]) -> Float64Array:
        """Return the weights of a tile, and keep them if there is room."""
        kept = self._kept.get(tile)
        if kept is None:
            kept = self._weights(*map(self._span, tile))
            if self._unit is not None:
                kept = np.rint(kept / self._unit).astype(np.uint32)
            if tile in self._to_keep:
                self._kept[tile] = kept
        return kept if self._unit is None else kept * self._unit

    def _weights(self, rows: slice, columns: slice) -> Float64Array:
        products = np.zeros((rows.stop - rows.start, columns.stop - columns.start))
        for start in range(0, self.ranks.shape[1], _TILE_ROWS):
            part = slice(start, start + _TILE_ROWS)
            left, right = self.ranks[rows, part], self.ranks[columns, part]
            products += np.dot(left.astype(np.float64), right.T.astype(np.float64))
        products *= self._inverse_lengths[rows, None]
        products *= self._inverse_lengths[columns]
        return self._from_correlations(products, self._inverse_lengths[rows] > 0, self._inverse_lengths[columns] > 0)

    def _from_correlations(
        self, correlations: Float64Array, rows_vary: NDArray[np.bool_], columns_vary: NDArray[np.bool_]
    ) -> Float64Array:
        if not self.signed:
            np.abs(correlations, out=correlations)
        weights = np.subtract(1.0, correlations, out=correlations)
        # A correlation of one may be off by a rounding error, to either side.
        weights[weights < _ROUNDING] = 0.0
        if not self.signed:
            weights[~rows_vary] = 0.0
            weights[:, ~columns_vary] = 0.0
        return weights
