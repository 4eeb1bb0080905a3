"""Files that the workers open for themselves: a source, cut into ranges of rows."""

from __future__ import annotations

from copy import copy
from functools import cached_property
from math import ceil
from typing import Any

from .._core.errors import import_optional
from ..data import DataError, Source
from .collections import Layout, Remote
from .graph import Rows
from .remote import RemoteBlocks
from .workers import Workers

# Ranges for each thread, so that none waits for long at the end.
_RANGES_A_THREAD = 8
# Share of a worker's memory that the blocks under way of all its threads may take.
_SHARE_OF_BLOCKS = 0.25


class OnWorkers(Remote):
    """The rows of files, to be read by Dask's workers: it can be passed as X to ``fit`` and ``partial_fit``.

    A worker opens the files for itself, so they must be where all workers can see them, under the same names. It reads
    a range of rows block by block: its memory does not depend on how many rows a range has.

    Parameters
    ----------
    source : Source
        See :func:`plstream.open_source`. It must be of files, and have a target.

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
            raise DataError(f"{source.name} is not a file, which workers could open: pass a Dask array or files.")
        if not source.n_targets:
            raise ValueError(f"{source.name} has no target: open it with target=.")
        import_optional("dask", "A fit on workers", "distributed")
        self.source = source
        self.name = source.name
        self.names = ()
        self.layout = Layout(source.n_columns, source.feature_names, source.n_targets, source.target_is_vector)

    @property
    def targets(self) -> RemoteBlocks:  # type: ignore[override]
        """The ranges: a source can read its target alone."""
        return self.blocks

    @cached_property
    def blocks(self) -> RemoteBlocks:  # type: ignore[override]
        """The ranges."""
        # Its blocks may have to be smaller than those of the caller.
        source, workers = copy(self.source), Workers.current()
        if workers.usable is not None:
            source.limit(int(_SHARE_OF_BLOCKS * workers.usable / workers.threads))
        n_rows, block_rows = source.count(), source.block_rows
        wanted = _RANGES_A_THREAD * workers.threads * workers.n_workers
        step = ceil(ceil(n_rows / block_rows) / wanted) * block_rows
        ranges = [source.between(start, start + step) for start in range(0, n_rows, step)]
        graph: dict[Any, Any] = {("rows", number): Rows(rows) for number, rows in enumerate(ranges)}
        return RemoteBlocks(
            graph,
            [(key,) for key in graph],
            n_rows=[rows.count() for rows in ranges],
            row_bytes=source.n_columns * source.dtype.itemsize + 8 * source.n_targets,
            block_bytes=source.bytes_under_way,
        )
