"""A model fitted to a source: exactly, in several reads, or block by block."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

from .._types import Array
from ..progress import listening, track
from ..sources import DataError, Source

OnBlock = Callable[[Any, Array, Array | None], None]
"""Called with the model, X and y of a block before the model learns it."""


def fit_source(
    model: Any, source: Source, *, one_pass: bool = False, classes: Any = None, on_block: OnBlock | None = None
) -> Any:
    """Return the model, fitted to all rows."""
    if not one_pass:
        return model.fit(source)
    options = {} if classes is None else {"classes": classes}
    n_rows = 0
    with closing(source.blocks()) as blocks:  # type: ignore[type-var]
        for X, y in track(blocks, "one read", source.n_rows, lambda block: len(block[0])):
            if on_block is not None and n_rows:
                on_block(model, X, y)
            # It has its own progress, that of one block.
            with listening(None):
                model.partial_fit(source.part((X, y), n_rows), **options)
            n_rows += len(X)
    if not n_rows:
        raise DataError(f"{source.name} has no rows.")
    return model
