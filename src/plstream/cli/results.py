"""Tables of results per row, block by block, as .npy, .csv or .parquet."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .._core.errors import import_optional
from .._core.progress import track
from .._core.types import Array
from ..data import Source
from ..data.numpy_files import npy_header
from .options import Reading, as_columns, as_list, quoted
from .output import STANDARD_OUTPUT, opened_output, write_csv
from .progress import shown

Table = list[Array]
"""Some rows of a table: arrays of one or two dimensions, side by side."""


def in_blocks(source: Source, function: Callable[[Array], Array]) -> Iterator[tuple[Any, ...]]:
    """Yield the result of a function for each block, its y, and its columns with roles."""
    with closing(source.records()) as blocks, warnings.catch_warnings():  # type: ignore[type-var]
        # Feature names have been checked for the source.
        warnings.simplefilter("ignore")
        n_rows = 0
        for X, y, *others in track(blocks, "one read", source.n_rows, lambda block: len(block[0])):
            yield function(X), y, *others
            n_rows += len(X)
    if not n_rows:
        raise source.no_rows()


class Results:
    """A table with one row per data row: columns copied from the data, then columns computed from features.

    The model determines which features are read.
    """

    def __init__(self, reading: Reading, data: str, model: Any, keep: list[str] | None) -> None:
        self._kept = as_list(keep)
        features = [] if reading.columns else getattr(model, "feature_names_in_", [])
        ids = [quoted(name) for name in self._kept if name not in features]
        self._source = reading.open(data, None, model, ids=as_columns(ids))
        self._names: list[str] = []
        self._functions: list[Callable[[Array], Any]] = []

    def add(self, names: list[str], function: Callable[[Array], Any]) -> None:
        """Add columns that a function computes from the features."""
        self._names += names
        self._functions.append(function)

    @property
    def names(self) -> list[str]:
        """Names of all columns."""
        return [*self._kept, *self._names]

    def blocks(self) -> Iterator[Table]:
        """Yield the table in blocks of rows."""
        features = self._source.feature_names or []

        def computed(X: Array) -> Any:
            return X, [function(X) for function in self._functions]

        with closing(in_blocks(self._source, computed)) as blocks:  # type: ignore[type-var]
            for (X, columns), _, *others in blocks:
                ids = iter(others)
                kept = [X[:, features.index(name)] if name in features else next(ids) for name in self._kept]
                yield [*kept, *columns]


def require_distinct(names: list[str]) -> None:
    """Raise ValueError if two columns of the output would have one name."""
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"Two columns of the output would be named {twice!r}: rename the column of --keep.")


def write_results(results: Results, output: str, *, force: bool) -> None:
    """Write results to a file, or as CSV to standard output."""
    require_distinct(results.names)
    write = _write_csv if output == STANDARD_OUTPUT else _WRITERS[Path(output).suffix]
    with shown(), opened_output(output, force=force) as file:
        write(file, results.names, results.blocks())


def _write_npy(file: BinaryIO, _: list[str], blocks: Iterator[Table]) -> None:
    """Write one array: with the dimensions of the blocks, or two-dimensional if there are several columns."""
    arrays = (_side_by_side(block) for block in blocks)
    first = next(arrays)
    dtype, shape, n_rows = first.dtype, first.shape[1:], 0
    file.write(npy_header(dtype, (0, *shape)))
    for block in chain([first], arrays):
        file.write(np.ascontiguousarray(block, dtype=dtype).data.cast("B"))
        n_rows += len(block)
    file.seek(0)
    file.write(npy_header(dtype, (n_rows, *shape)))


def _side_by_side(block: Table) -> Array:
    if len(block) > 1 and any(part.dtype.kind not in "biuf" for part in block):
        raise ValueError("A .npy file cannot hold both strings and numbers: write .csv or .parquet.")
    return block[0] if len(block) == 1 else np.column_stack(block)


def _write_csv(file: Any, names: list[str], blocks: Iterator[Table]) -> None:
    """Write CSV with a header; numbers have enough digits to restore them exactly."""
    # As Python floats, float32 values would be written with meaningless digits.
    parts = ([part.astype(str) if part.dtype == np.float32 else part for part in block] for block in blocks)
    columns = ([column.tolist() for column in _columns(block)] for block in parts)
    write_csv(file, names, (row for block in columns for row in zip(*block, strict=True)))


def _columns(block: Table) -> list[Array]:
    return [column for part in block for column in part.reshape(len(part), -1).T]


def _write_parquet(file: BinaryIO, names: list[str], blocks: Iterator[Table]) -> None:
    """Write a table of columns, with one row group per block."""
    arrow, parquet = import_optional("pyarrow", "Parquet"), import_optional("pyarrow.parquet", "Parquet")
    writer = None
    for block in blocks:
        table = arrow.table([arrow.array(np.ascontiguousarray(column)) for column in _columns(block)], names)
        if writer is None:
            writer = parquet.ParquetWriter(file, table.schema)
        writer.write_table(table.cast(writer.schema))
    if writer is not None:
        writer.close()


# By the ending of the output.
_WRITERS: dict[str, Callable[[Any, list[str], Iterator[Table]], None]] = {
    ".npy": _write_npy,
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}
ENDINGS = tuple(_WRITERS)
