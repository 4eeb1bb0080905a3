"""A model in a file applied to data, block by block."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from .._core.progress import track
from .._core.types import Array
from ..data import DataError, Source
from ..files import load
from ..monitoring import DriftTracker, Monitor
from ..rows import validate_source
from .options import open_data
from .output import ENDINGS, require_free, writing
from .progress import shown


def load_model(path: Path) -> Any:
    """Load a model; of a monitor or a tracker, which have one, that."""
    loaded = load(path)
    return loaded.model if isinstance(loaded, Monitor | DriftTracker) else loaded


def open_for(model: Any, data: str, target: list[str] | None = None, **options: Any) -> Source:
    """Open data with the features that a model has: by their names, wherever both have names."""
    names = None if options.get("columns") else getattr(model, "feature_names_in_", None)
    source = open_data(data, target, **options, names=names)
    validate_source(model, source, reset=False)
    return source


def in_blocks(source: Source, function: Callable[[Array], Array]) -> Iterator[tuple[Array, Array | None]]:
    """Yield the result of each block, and its y."""
    with closing(source.blocks()) as blocks, warnings.catch_warnings():  # type: ignore[type-var]
        # Names of features are checked once, for the source.
        warnings.simplefilter("ignore")
        n_rows = 0
        for X, y in track(blocks, "one read", source.n_rows, lambda block: len(block[0])):
            yield function(X), y
            n_rows += len(X)
    if not n_rows:
        raise DataError(f"{source.name} has no rows.")


def apply(
    method: str,
    model_file: Path,
    data: str,
    output: str,
    *,
    force: bool,
    **options: Any,
) -> None:
    """Write what a method of a model returns for all rows."""
    require_free(output, force=force, endings=ENDINGS)
    model = load_model(model_file)
    if not hasattr(model, method):
        raise ValueError(f"{type(model).__name__} cannot {method}: it only has scores, for plstream transform.")
    source = open_for(model, data, **options)
    names = _result_names(model, method)
    with shown(), writing(output, names, force=force) as writer:
        for block, _ in in_blocks(source, getattr(model, method)):
            writer.write(block)


def _result_names(model: Any, method: str) -> list[str]:
    if method == "transform":
        return [str(name) for name in model.get_feature_names_out()]
    n_targets = len(model.intercept_) if hasattr(model, "intercept_") and not hasattr(model, "classes_") else 1
    return ["prediction"] if n_targets == 1 else [f"prediction{k}" for k in range(n_targets)]
