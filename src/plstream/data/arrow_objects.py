"""Objects that support Arrow: frames, tables, record batches, data sets, relations and cursors, and iterables of them.

Whatever has ``__arrow_c_stream__`` or ``__arrow_c_array__`` is read like a file of Arrow, and has the same errors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._core.errors import DataError, import_optional, wrap_iteration, wrap_library_errors
from .arrow import ArrowReader, RowGroups, beginning_of

# Rows of a lazy frame that are computed at a time.
_LAZY_ROWS = 1 << 14


def is_frame(data: Any) -> bool:
    """Return whether it is a data frame of pandas or polars."""
    is_of_either = type(data).__module__.split(".")[0] in {"pandas", "polars"}
    return is_of_either and hasattr(data, "shape") and hasattr(data, "columns")


def is_table(data: Any) -> bool:
    """Return whether it is a table that supports Arrow: named columns."""
    if isinstance(data, type) or len(getattr(data, "shape", (0, 0))) != 2:
        # A Series, or one of the classes.
        return False
    speaks = hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")
    is_column = speaks and hasattr(data, "to_numpy") and not hasattr(data, "columns")
    return is_frame(data) or (speaks and not is_column) or _is_lazy(data) or _is_data_set(data) or _is_cursor(data)


def _is_lazy(data: Any) -> bool:
    return hasattr(data, "collect") and hasattr(data, "collect_schema")


def _is_data_set(data: Any) -> bool:
    """Return whether it is a data set, or a scanner of one."""
    return hasattr(data, "to_batches") and (hasattr(data, "schema") or hasattr(data, "projected_schema"))


def _is_cursor(data: Any) -> bool:
    return hasattr(data, "fetch_record_batch") and hasattr(data, "execute")


def open_table(data: Any) -> ArrowReader:
    """Open a table that supports Arrow: to be read once or repeatedly, depending on the object."""
    where = f"the {'frame' if is_frame(data) or _is_lazy(data) else 'table'}"
    pa = import_optional("pyarrow", f"Reading {where}")
    opened = _opened(pa, data, where)
    if opened.n_rows == 0:
        raise DataError(f"{where.capitalize()} has no rows.")
    if opened.once is not None:
        batches = wrap_iteration(opened.once, where)
        # The first rows tell whether a stream that begins anew is the same.
        first = next(batches, None)
        left = chain([] if first is None else [first], batches)
        reader = ArrowReader(where, opened.schema, RowGroups([sys.maxsize], lambda *_: left), rereadable=False)
        reader.beginning = None if first is None else beginning_of(first)
        return reader
    end = sys.maxsize if opened.n_rows is None else opened.n_rows
    reader = ArrowReader(where, opened.schema, RowGroups([end], opened.batches), n_rows=opened.n_rows)
    reader.slow = opened.n_rows is None
    return reader


class _Opened(NamedTuple):
    """How a table is read."""

    schema: Any
    batches: Callable[[int, list[str], int], Iterator[Any]]
    n_rows: int | None = None
    once: Iterator[Any] | None = None


def _opened(pa: Any, data: Any, where: str) -> _Opened:
    with wrap_library_errors(where, "cannot be read"):
        return _in_memory(pa, data, where) or _on_demand(pa, data, where) or _as_stream(pa, data, where)


def _in_memory(pa: Any, data: Any, where: str) -> _Opened | None:
    if is_frame(data) and hasattr(data, "iloc"):
        schema = pa.schema([(name, _pandas_type(pa, data.iloc[:, j])) for j, name in enumerate(data.columns)])
        return _Opened(schema, partial(_pandas_batches, pa, data, schema, where), len(data))
    if isinstance(data, pa.RecordBatch | pa.Table) or is_frame(data):
        table = pa.table(data) if is_frame(data) else data
    elif hasattr(data, "__arrow_c_array__") and not hasattr(data, "__arrow_c_stream__"):
        table = pa.record_batch(data)
    else:
        return None
    return _Opened(table.schema, partial(_table_batches, pa, table), table.num_rows)


def _on_demand(pa: Any, data: Any, where: str) -> _Opened | None:
    """Open an object that computes or reads its rows on every access."""
    if _is_lazy(data):
        schema = pa.table(data.head(0).collect()).schema
        return _Opened(schema, lambda _, names, _step: _lazy_batches(pa, data, names, where))
    if hasattr(data, "scanner"):
        return _Opened(data.schema, lambda _, names, step: _set_batches(data, names, step, where))
    if hasattr(data, "to_batches") and hasattr(data, "projected_schema"):
        return _Opened(data.projected_schema, lambda *_: wrap_iteration(iter(data.to_batches()), where))
    return None


def _as_stream(pa: Any, data: Any, where: str) -> _Opened:
    stream = data.fetch_record_batch() if _is_cursor(data) else pa.RecordBatchReader.from_stream(data)
    # Nothing but a length tells that it can be read again.
    if hasattr(type(data), "__len__") and not _is_cursor(data):
        return _Opened(stream.schema, lambda *_: _stream_batches(pa, data, where))
    return _Opened(stream.schema, _no_batches, once=iter(stream))


def _no_batches(_number: int, _names: list[str], _step: int) -> Iterator[Any]:
    return iter(())


def _table_batches(pa: Any, table: Any, _number: int, names: list[str], step: int) -> Iterator[Any]:
    chosen = table.select(names)
    return iter(chosen.to_batches(step) if isinstance(table, pa.Table) else [chosen])


def _stream_batches(pa: Any, data: Any, where: str) -> Iterator[Any]:
    with wrap_library_errors(where, "cannot be read"):
        stream = pa.RecordBatchReader.from_stream(data)
    return wrap_iteration(iter(stream), where)


def _set_batches(data: Any, names: list[str], step: int, where: str) -> Iterator[Any]:
    # One after another: else many would be read ahead.
    ahead = {"batch_readahead": 1, "fragment_readahead": 1, "use_threads": False}
    with wrap_library_errors(where):
        found = data.to_batches(columns=names, batch_size=step, **ahead)
    return wrap_iteration(iter(found), where)


def _lazy_batches(pa: Any, frame: Any, names: list[str], where: str) -> Iterator[Any]:
    with wrap_library_errors(where, "cannot be computed"):
        chosen = frame.select(names)
        # Of releases that cannot compute a few rows at a time, all are computed at once.
        parts = (
            chosen.collect_batches(chunk_size=_LAZY_ROWS, maintain_order=True)
            if hasattr(chosen, "collect_batches")
            else [chosen.collect()]
        )
    for part in wrap_iteration(iter(parts), where):
        yield from pa.table(part).to_batches()


def _pandas_batches(
    pa: Any, frame: Any, schema: Any, where: str, _number: int, names: list[str], step: int
) -> Iterator[Any]:
    places = {name: j for j, name in enumerate(frame.columns)}
    kinds = pa.schema([schema.field(name) for name in names])
    for start in range(0, len(frame), step):
        rows = frame.iloc[start : start + step]
        with wrap_library_errors(f"{where}, from row {start} on,", "cannot be read"):
            columns = [_pandas_column(pa, rows.iloc[:, places[f.name]], f.type) for f in kinds]
            batch = pa.RecordBatch.from_arrays(columns, schema=kinds)
        yield batch


def _pandas_type(pa: Any, column: Any) -> Any:
    """Return the type of a column; only of Python objects do all values have to be looked at."""
    with suppress(pa.ArrowException):
        return _pandas_column(pa, column if column.dtype == object else column.iloc[:1], None).type
    # Text among numbers, or what Arrow has no type for.
    return pa.string()


def _pandas_column(pa: Any, column: Any, kind: Any) -> Any:
    # NaN in numbers stays what it is, and stands for a missing value elsewhere.
    is_plain = isinstance(column.dtype, np.dtype) and column.dtype.kind == "f"
    found = pa.array(column, type=kind, from_pandas=not is_plain)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def is_table_block(item: Any) -> bool:
    """Return whether a block of an iterable is a table, a dict of columns, or a pair of a table and y."""
    return is_table(pair_of(item)[0]) or isinstance(item, dict)


def pair_of(item: Any) -> tuple[Any, Any]:
    """Return X and y of a block, y being None if it is X alone: a pair is a tuple or a list of two."""
    is_pair = isinstance(item, tuple) or (isinstance(item, list) and _has_rows(item[0] if item else None))
    return (item[0], item[1]) if is_pair and len(item) == 2 else (item, None)


def _has_rows(X: Any) -> bool:
    return is_table(X) or sparse.issparse(X) or getattr(X, "ndim", 0) == 2


def open_tables(first: Any, blocks: Iterable[Any], *, rereadable: bool) -> ArrowReader:
    """Open an iterable of tables, of dicts of columns, or of pairs of a table and y, all with the same columns."""
    pa = import_optional("pyarrow", "Reading the blocks")
    table, targets = _block_table(pa, first, 0)

    def batches(*_: Any) -> Iterator[Any]:
        for number, item in enumerate(blocks):
            found = _block_table(pa, item, number)[0]
            if found.schema.names != table.schema.names:
                raise DataError(f"Block {number} has other names of columns than the first one.")
            yield from found.to_batches()

    later = batches() if not rereadable else None
    groups = RowGroups([sys.maxsize], batches if later is None else lambda *_: later)
    reader = ArrowReader("the blocks", table.schema, groups, rereadable=rereadable)
    # Types of later blocks may differ: pandas turns integers with gaps into floats.
    reader.slow, reader.as_float = False, True
    if len(table):
        reader.beginning = beginning_of(table)
    if targets:
        reader.own_targets = np.array([reader.column_of(name) for name in targets], np.intp)
        reader.is_vector = getattr(pair_of(first)[1], "ndim", 1) == 1
    return reader


def _block_table(pa: Any, item: Any, number: int) -> tuple[Any, list[str]]:
    """Return a block as a table of Arrow, and which of its columns are targets."""
    where = f"Block {number}"
    X, y = pair_of(item)
    if not is_table_block(item):
        raise TypeError(f"{where} is no table, unlike the first one.")
    with wrap_library_errors(where, "cannot be read"):
        table = pa.table(X) if isinstance(X, dict) else open_table(X).table()
    if y is None:
        return table, []
    if len(y) != len(table):
        raise DataError(f"y of block {number} has {len(y)} rows, and X has {len(table)}.")
    names: list[str] = []
    values = np.asarray(y)
    for j, column in enumerate(values.reshape(len(table), -1).T):
        name = str(getattr(y, "name", None) or ("y" if values.ndim == 1 else f"y{j}"))
        while name in table.schema.names:
            name += "_"
        with wrap_library_errors(f"y of block {number}", "cannot be read"):
            kind = pa.string() if column.dtype.kind in "OU" and all(isinstance(v, str) for v in column) else None
            table = table.append_column(name, pa.array(column, type=kind))
        names.append(name)
    return table, names
