"""Collections of rows that Dask workers hold or read, with X, y and weights in the same blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from math import ceil, isnan
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from .._core.errors import import_optional
from .._core.types import Array
from .._core.warnings import warn_user
from ..data import DataError, Source
from .graph import are_delayed, graph_of, is_dask_frame
from .reduce import RemoteBlocks
from .workers import Workers

# Ranges of files per thread: enough that no thread is idle for long at the end.
_RANGES_PER_THREAD = 8
# Share of a worker's memory for the blocks that its threads read from files.
_SHARE_OF_BLOCKS = 0.25


class Collection(NamedTuple):
    """X, y and further columns of the same rows, in the same blocks, on Dask workers."""

    name: str
    """Its name in messages."""
    blocks: RemoteBlocks
    """X, y and the columns; for files, X is a source that includes all of them."""
    targets: RemoteBlocks
    """The same blocks without X, which is not read; for files, a source can read its target alone."""
    n_columns: int
    feature_names: list[str] | None
    n_targets: int
    target_is_vector: bool


class OnWorkers:
    """Rows of files to be read by Dask workers, passed as X to ``fit`` and ``partial_fit``.

    Each worker opens the files itself, so they must have the same paths on all workers. It reads a range of rows block
    by block: its memory does not depend on the number of rows.

    Parameters
    ----------
    source : Source
        See :func:`plstream.open_source`. It must consist of files, and have a target.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from plstream import IncrementalPLS, open_source
    >>> from plstream.distributed import OnWorkers
    >>> X = np.random.default_rng(0).normal(size=(1000, 20))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "X.npy"), X)
    ...     np.save(Path(folder, "y.npy"), X[:, 0])
    ...     source = open_source(Path(folder, "X.npy"), target=Path(folder, "y.npy"))
    ...     model = IncrementalPLS(2).fit(OnWorkers(source))
    >>> model.n_samples_seen_, round(float(model.score(X, X[:, 0])), 3)
    (1000, 1.0)
    """

    def __init__(self, source: Source) -> None:
        if source.reopen is None:
            raise DataError(
                f"{source.name} is not a file that workers could open: pass a Dask array, or a source of files."
            )
        if not source.n_targets:
            raise ValueError(f"{source.name} has no target: open it with target=.")
        import_optional("dask", "A fit on workers", "distributed")
        self.source = source


def is_collection(X: Any) -> bool:
    """Return whether X is a Dask array or dataframe, a list of delayed blocks, or files for workers.

    This does not import Dask.
    """
    return isinstance(X, OnWorkers) or hasattr(type(X), "__dask_graph__") or are_delayed(X)


def collection_of(X: Any, y: Any, **columns: Any) -> Collection:
    """Return X, y and further columns, such as weights, in the same blocks.

    All are Dask arrays, dataframes or lists of delayed blocks; X may be OnWorkers. If the chunks of X are known, y and
    columns may be arrays in memory. A column may also be a number for all rows, or None.
    """
    if isinstance(X, OnWorkers):
        for name, column in {"y": y, **columns}.items():
            if column is not None:
                raise ValueError(f"{name} cannot be passed with OnWorkers, whose source provides it: leave {name} out.")
        return _of_files(X.source)
    if y is None:
        raise ValueError("y is None, but a Dask collection has no target of its own: pass it as y.")
    X = _in_whole_rows(X)
    n_rows = _known_rows(X)
    parts = {"X": X, "y": _in_blocks_of(X, y, n_rows, "y")}
    numbers = {}
    for name, column in columns.items():
        if is_collection(column) or np.ndim(column):
            parts[name] = _in_blocks_of(X, column, n_rows, name)
        elif column is not None:
            numbers[name] = column
    graph, keys = graph_of(*parts.values())
    if not keys[0]:
        raise ValueError("X has no blocks: pass at least one.")
    keys_of = dict(zip(parts, keys, strict=True))
    for name, number in numbers.items():
        key = f"{name}-{uuid4().hex}"
        graph[key], keys_of[name] = number, [key] * len(keys[0])
    keys_of_blocks = [dict(zip(keys_of, of_block, strict=True)) for of_block in zip(*keys_of.values(), strict=True)]
    keys_of_targets = [{name: key for name, key in of_block.items() if name != "X"} for of_block in keys_of_blocks]
    blocks = RemoteBlocks(graph, keys_of_blocks, n_rows=n_rows, row_bytes=_row_bytes(X, parts["y"]))
    targets = RemoteBlocks(graph, keys_of_targets, n_rows=n_rows)
    # The first of delayed blocks is inspected on its worker.
    layout = blocks.first(_layout_of) if are_delayed(X) or are_delayed(parts["y"]) else _layout_of(parts)
    return Collection("X", blocks, targets, *layout)


def lazily(X: Any, function: Callable[[Any], Array], sample: Array) -> Any:
    """Apply ``function`` lazily to every block of X, and return a Dask array, or a list if X is one.

    ``sample`` is the result of the function for some rows.
    """
    X = _in_whole_rows(X)
    if are_delayed(X):
        delayed = import_optional("dask", "A list of delayed blocks", "distributed").delayed
        return [delayed(function)(block) for block in X]
    meta = np.empty((0, *sample.shape[1:]), sample.dtype)
    if is_dask_frame(X):
        return X.map_partitions(function, meta=meta)
    if sample.ndim == 1:
        return X.map_blocks(function, drop_axis=1, dtype=meta.dtype, meta=meta)
    return X.map_blocks(function, chunks=(X.chunks[0], sample.shape[1:]), dtype=meta.dtype, meta=meta)


def _of_files(source: Source) -> Collection:
    """Return a source in ranges of rows, each opened by a worker."""
    # Its blocks may have to be smaller than those of the caller.
    source, workers = copy(source), Workers.current()
    if workers.usable is not None:
        source.limit(int(_SHARE_OF_BLOCKS * workers.usable / workers.threads))
    n_rows = source.count()
    wanted = _RANGES_PER_THREAD * workers.threads * workers.n_workers
    step = ceil(ceil(n_rows / source.block_rows) / wanted) * source.block_rows
    ranges = [source.between(start, start + step) for start in range(0, n_rows, step)]
    graph = {("rows", number): rows for number, rows in enumerate(ranges)}
    blocks = RemoteBlocks(
        graph,
        [{"X": key} for key in graph],
        n_rows=[rows.count() for rows in ranges],
        row_bytes=source.n_columns * source.dtype.itemsize + 8 * source.n_targets,
        block_bytes=source.bytes_under_way,
    )
    layout = source.n_columns, source.feature_names, source.n_targets, source.target_is_vector
    return Collection(source.name, blocks, blocks, *layout)


def _in_whole_rows(X: Any) -> Any:
    """Return X in blocks of whole rows."""
    if are_delayed(X):
        return list(X)
    if getattr(X, "ndim", 0) != 2:
        raise ValueError("X must be a two-dimensional Dask array or dataframe, or a list of delayed blocks.")
    if is_dask_frame(X):
        return X
    if isnan(X.shape[1]):
        raise ValueError("The number of columns of X is unknown: call X.compute_chunk_sizes() first.")
    if X.numblocks[1] > 1:
        warn_user(
            f"X is chunked along its columns, {X.numblocks[1]} chunks per row, which the workers have to exchange: use "
            "chunks of whole rows, for example X.rechunk({1: -1})."
        )
        X = X.rechunk({1: -1})
    return X


def _known_rows(X: Any) -> list[int] | None:
    """Return the number of rows of each block, if known."""
    if are_delayed(X) or is_dask_frame(X) or any(map(isnan, X.chunks[0])):
        return None
    return [int(n) for n in X.chunks[0]]


def _row_bytes(X: Any, y: Any) -> int:
    """Return the size of a row of X, y and weights, or 0 if unknown."""
    if are_delayed(X):
        return 0
    itemsize = 8 if is_dask_frame(X) else X.dtype.itemsize
    n_targets = 1 if are_delayed(y) or y.ndim == 1 else y.shape[1]
    return int(itemsize * X.shape[1] + 8 * n_targets + 8)


def _in_blocks_of(X: Any, column: Any, n_rows: list[int] | None, name: str) -> Any:
    """Return y or weights in the blocks of X, which have ``n_rows``."""
    if is_collection(column):
        if not (are_delayed(column) or is_dask_frame(column)):
            column = _rechunked(column, n_rows, name)
        n_blocks, expected = _n_blocks(column), _n_blocks(X)
        if n_blocks != expected:
            raise ValueError(
                f"X has {expected} blocks, but {name} has {n_blocks}: divide both into blocks at the same rows."
            )
        return column
    if n_rows is None:
        raise ValueError(
            f"{name} is not a Dask collection, and the number of rows per block of X is unknown: pass {name} in the "
            "same blocks as X, or call X.compute_chunk_sizes() first."
        )
    da = import_optional("dask.array", "A Dask collection", "distributed")
    values = np.asarray(column)
    _require_rows(len(values), n_rows, name)
    return da.from_array(values, chunks=(tuple(n_rows), *((n,) for n in values.shape[1:])))


def _rechunked(column: Any, n_rows: list[int] | None, name: str) -> Any:
    """Return an array in the chunks of X, if known."""
    chunks: dict[int, Any] = {1: -1} if column.ndim == 2 else {}
    if n_rows is not None and not any(map(isnan, column.chunks[0])):
        _require_rows(sum(column.chunks[0]), n_rows, name)
        chunks[0] = tuple(n_rows)
    return column.rechunk(chunks) if chunks else column


def _require_rows(n: int, n_rows: list[int], name: str) -> None:
    if n != sum(n_rows):
        raise ValueError(f"X has {sum(n_rows)} rows, but {name} has {n}: pass one entry per row.")


def _n_blocks(column: Any) -> int:
    if are_delayed(column):
        return len(column)
    return int(column.npartitions if is_dask_frame(column) else column.numblocks[0])


def _layout_of(parts: Mapping[str, Any]) -> tuple[int, list[str] | None, int, bool]:
    """Return the properties of the columns that a fit needs in advance, as in :class:`Collection`."""
    X, y = parts["X"], parts["y"]
    names = list(getattr(X, "columns", []))
    has_names = names and all(isinstance(name, str) for name in names)
    is_vector = np.ndim(y) == 1
    return int(X.shape[1]), names if has_names else None, 1 if is_vector else int(np.shape(y)[1]), is_vector
