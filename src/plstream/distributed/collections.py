"""Dask arrays, dataframes and delayed blocks: what they are, and how X, y and weights are cut into the same blocks."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from functools import cached_property
from math import isnan
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from .._core.errors import import_optional
from .._core.warnings import warn_user
from .graph import Graph, Key, LoadedBlock, is_future
from .remote import RemoteBlocks


def is_collection(X: Any) -> bool:
    """Return whether X is Dask's: an array, a dataframe, a list of delayed blocks, or files that workers are to read.

    Dask is not imported for it.
    """
    return isinstance(X, Remote) or _is_of_dask(X) or are_delayed(X)


def are_delayed(blocks: Any) -> bool:
    """Return whether these are delayed blocks in a list."""
    return isinstance(blocks, list | tuple) and bool(blocks) and all(map(_is_of_dask, blocks))


def _is_of_dask(X: Any) -> bool:
    return hasattr(type(X), "__dask_graph__")


def collection_of(X: Any, y: Any, **columns: Any) -> Remote:
    """Return rows in blocks, with what else there is of them."""
    if not isinstance(X, Remote):
        return Collection(X, y, **columns)
    for name, column in {"y": y, **columns}.items():
        if column is not None:
            raise ValueError(f"{name} is not for files that workers read, which have a target: pass no {name}.")
    return X


def is_frame(X: Any) -> bool:
    """Return whether a collection is a dataframe, or one of its columns."""
    return hasattr(X, "npartitions") and hasattr(X, "divisions")


def graph_of(*collections: Any) -> tuple[Graph, list[list[Key]]]:
    """Return the optimised tasks of collections or of delayed blocks, and the keys of the blocks of each."""
    dask = import_optional("dask", "A Dask collection", "distributed")
    collections = tuple(collection.optimize() if is_frame(collection) else collection for collection in collections)
    keys = [list(dask.core.flatten(_keys(collection))) for collection in collections]
    arrays = [i for i, collection in enumerate(collections) if not (are_delayed(collection) or is_frame(collection))]
    graph: Graph = {}
    if arrays:
        # All at a time: what X and y are both made from, such as the chunk of a file, is made once for both.
        merged = dask.highlevelgraph.HighLevelGraph.merge(*(collections[i].__dask_graph__() for i in arrays))
        # Optimising an array drops what is in the memory of a cluster.
        graph.update((key, value) for key, value in merged.items() if is_future(value))
        graph.update(collections[arrays[0]].__dask_optimize__(merged, [key for i in arrays for key in keys[i]]))
    for collection in collections:
        if are_delayed(collection):
            graph.update((key, task) for block in collection for key, task in block.__dask_graph__().items())
        elif is_frame(collection):
            graph.update(collection.__dask_graph__())
    return graph, keys


def _keys(collection: Any) -> list[Any]:
    return [block.key for block in collection] if are_delayed(collection) else collection.__dask_keys__()


class Layout(NamedTuple):
    """What a fit has to know of the columns before it begins."""

    n_columns: int
    feature_names: list[str] | None
    n_targets: int
    target_is_vector: bool


class Remote(ABC):
    """Rows that are where Dask's workers are.

    Attributes
    ----------
    name : str
        What messages call it.
    names : sequence of str
        Names of what there is of each row beside X and y.
    layout : Layout
        What is known of the columns.
    blocks : RemoteBlocks
        The blocks, each of X, y and the columns.
    targets : RemoteBlocks
        The same with nothing to be read of X, for which y stands in.
    """

    name: str
    names: Sequence[str]
    layout: Layout
    blocks: RemoteBlocks
    targets: RemoteBlocks


class Collection(Remote):
    """X, y and what else there is of each row, in the same blocks.

    Parameters
    ----------
    X : dask array, dask dataframe, or list of delayed arrays or frames
        The rows.
    y : the same, or an array beside X with known chunks
        The responses or labels.
    **columns : the same, a number for all rows, or None
        What else there is of each row, such as its weight.
    """

    name = "X"

    def __init__(self, X: Any, y: Any, **columns: Any) -> None:
        if y is None:
            raise ValueError("y is None, and a Dask collection has no responses of its own: pass them as y.")
        self._X = X = in_whole_rows(X)
        n_rows = _known_rows(X)
        self._y = y = _like(y, X, n_rows, "y")
        self.names = [name for name, column in columns.items() if column is not None]
        beside = {name: columns[name] for name in self.names}
        in_blocks = {
            name: _like(column, X, n_rows, name)
            for name, column in beside.items()
            if is_collection(column) or np.ndim(column)
        }
        graph, (keys, *others) = graph_of(X, y, *in_blocks.values())
        if not keys:
            raise ValueError("X has no blocks: pass at least one.")
        keys_of = dict(zip(["y", *in_blocks], others, strict=True))
        for name, number in beside.items():
            if name not in in_blocks:
                keys_of[name] = [f"{name}-{uuid4().hex}"] * len(keys)
                graph[keys_of[name][0]] = number
        blocks = [keys, *(keys_of[name] for name in ("y", *self.names))]
        self.blocks = RemoteBlocks(
            graph, list(zip(*blocks, strict=True)), n_rows=n_rows, row_bytes=_row_bytes(X, _n_targets(y))
        )
        self._beside = graph, list(zip(blocks[1], *blocks[1:], strict=True)), n_rows

    @cached_property
    def targets(self) -> RemoteBlocks:  # type: ignore[override]
        """The blocks without X."""
        graph, blocks, n_rows = self._beside
        return RemoteBlocks(graph, blocks, n_rows=n_rows)

    @cached_property
    def layout(self) -> Layout:  # type: ignore[override]
        """What is known of the columns; delayed blocks do not tell, so the first of them is looked at where it is."""
        if are_delayed(self._X):
            return self.blocks.first(_layout_of_block)  # type: ignore[no-any-return]
        n_targets = _n_targets(self._y)
        if n_targets is None:
            n_targets, is_vector = self.blocks.first(_layout_of_block)[2:]
        else:
            is_vector = self._y.ndim == 1
        return Layout(int(self._X.shape[1]), _names(self._X), n_targets, is_vector)


def in_whole_rows(X: Any) -> Any:
    """Return X in blocks of whole rows."""
    if are_delayed(X):
        return list(X)
    if getattr(X, "ndim", 0) != 2:
        raise ValueError("X must be a Dask array or dataframe of two dimensions, or a list of delayed blocks.")
    if is_frame(X):
        return X
    if isnan(X.shape[1]):
        raise ValueError("The number of columns of X is not known: call X.compute_chunk_sizes() first.")
    if X.numblocks[1] > 1:
        warn_user(
            f"X is cut along its columns, {X.numblocks[1]} chunks a row, which are put together: use chunks of whole "
            "rows, as by X.rechunk({1: -1}), to spare the workers the exchange."
        )
        X = X.rechunk({1: -1})
    return X


def _known_rows(X: Any) -> list[int] | None:
    """Return the number of rows of each block, if they are known."""
    if are_delayed(X) or is_frame(X) or any(map(isnan, X.chunks[0])):
        return None
    return [int(n) for n in X.chunks[0]]


def _like(column: Any, X: Any, n_rows: list[int] | None, name: str) -> Any:
    """Return y or weights in the blocks of X."""
    if is_collection(column):
        if not (are_delayed(column) or is_frame(column)):
            column = _rechunked(column, n_rows, name)
        n_blocks, expected = _n_blocks(column), _n_blocks(X)
        if n_blocks != expected:
            raise ValueError(f"X has {expected} blocks and {name} has {n_blocks}: cut both at the same rows.")
        return column
    if n_rows is None:
        raise ValueError(
            f"{name} is no Dask collection, and how many rows the blocks of X have is not known: pass {name} in the "
            "same blocks, or call X.compute_chunk_sizes() first."
        )
    da = import_optional("dask.array", "A Dask collection", "distributed")
    values = np.asarray(column)
    _require_rows(len(values), n_rows, name)
    return da.from_array(values, chunks=(tuple(n_rows), *((n,) for n in values.shape[1:])))


def _rechunked(column: Any, n_rows: list[int] | None, name: str) -> Any:
    """Return an array in the chunks of X, as far as these are known."""
    chunks: dict[int, Any] = {1: -1} if column.ndim == 2 else {}
    if n_rows is not None and not any(map(isnan, column.chunks[0])):
        _require_rows(sum(column.chunks[0]), n_rows, name)
        chunks[0] = tuple(n_rows)
    return column.rechunk(chunks) if chunks else column


def _require_rows(n: int, n_rows: list[int], name: str) -> None:
    if n != sum(n_rows):
        raise ValueError(f"X has {sum(n_rows)} rows and {name} has {n}: there must be one of {name} for each row.")


def _n_blocks(column: Any) -> int:
    return len(column) if are_delayed(column) else int(column.npartitions if is_frame(column) else column.numblocks[0])


def _n_targets(y: Any) -> int | None:
    """Return the number of columns of y, if it is known."""
    if are_delayed(y):
        return None
    return 1 if y.ndim == 1 else int(y.shape[1])


def _row_bytes(X: Any, n_targets: int | None) -> int:
    """Return the bytes of a row of all, or 0 if that is not known."""
    if are_delayed(X):
        return 0
    itemsize = 8 if is_frame(X) else X.dtype.itemsize
    return int(itemsize * X.shape[1] + 8 * (n_targets or 1) + 8)


def _layout_of_block(block: LoadedBlock) -> Layout:
    X, y = block.parts[:2]
    return Layout(int(X.shape[1]), _names(X), 1 if np.ndim(y) == 1 else int(np.shape(y)[1]), np.ndim(y) == 1)


def _names(X: Any) -> list[str] | None:
    names = list(getattr(X, "columns", []))
    return names if names and all(isinstance(name, str) for name in names) else None
