"""Objects in memory: arrays and sparse matrices, frames and other objects that support Arrow, and iterables of blocks.

Objects with ``__arrow_c_stream__`` or ``__arrow_c_array__`` are read like Arrow files, and raise the same errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse

from .._core.errors import DataError, counted, import_optional, usable_dtype, wrap_iteration, wrap_library_errors
from .._core.tiles import as_dense
from .._core.types import Array
from .._core.validation import without_mask
from .array_reader import ArrayReader, reader_of_array
from .arrow import ArrowReader, beginning_of, stream_reader
from .reader import FIRST_ROWS, Columns, Pieces, Reader, pick

# Rows of a lazy frame that are computed at a time.
_LAZY_ROWS = 1 << 14


def open_object(data: Any) -> Reader:
    """Open an array, a frame, an Arrow table or an iterable of blocks."""
    if is_frame(data) and not all(isinstance(name, str) for name in data.columns):
        # Numbers are not column names.
        data = data.to_numpy()
    if isinstance(data, dict):
        pa = import_optional("pyarrow", "Reading a dict of columns")
        with wrap_library_errors("The dict of columns", "cannot be read"):
            data = pa.table(data)
    if is_table(data):
        return open_table(data)
    if sparse.issparse(data) or hasattr(data, "shape") or hasattr(data, "__array__"):
        return open_array(data)
    if isinstance(data, list | tuple) and not (data and _is_block(data[0])):
        return open_array(np.asarray(data))
    if isinstance(data, Iterable) and not isinstance(data, bytes):
        return _open_blocks(data)
    raise TypeError(f"Data must be a path, array, frame, file or iterable of blocks, not {type(data).__name__}.")


def open_array(array: Any, where: str = "the array") -> ArrayReader:
    """Open an array or a sparse matrix in memory, or a memory map."""
    if sparse.issparse(array):
        rows = array.tocsr()
        opened = partial(nullcontext, lambda start, stop: as_dense(rows[start:stop]))
        return ArrayReader(where, rows.shape, rows.dtype, opened, slow=False)
    array = np.asanyarray(without_mask(array, where))
    return reader_of_array(_of_objects(array, where) if array.dtype.kind == "O" else array, where)


def is_frame(data: Any) -> bool:
    """Return whether an object is a pandas or polars data frame."""
    is_of_either = type(data).__module__.split(".")[0] in {"pandas", "polars"}
    return is_of_either and hasattr(data, "shape") and hasattr(data, "columns")


def is_table(data: Any) -> bool:
    """Return whether an object is a table with named columns that supports Arrow."""
    if isinstance(data, type) or len(getattr(data, "shape", (0, 0))) != 2:
        # A Series, or a class itself.
        return False
    supports_arrow = hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")
    is_column = hasattr(data, "to_numpy") and not hasattr(data, "columns")
    # A data set, or a scanner of one.
    is_data_set = hasattr(data, "to_batches") and (hasattr(data, "schema") or hasattr(data, "projected_schema"))
    is_arrow = (supports_arrow and not is_column) or is_data_set
    return is_frame(data) or is_arrow or _is_lazy(data) or _is_cursor(data)


def _is_lazy(data: Any) -> bool:
    return hasattr(data, "collect") and hasattr(data, "collect_schema")


def _is_cursor(data: Any) -> bool:
    return hasattr(data, "fetch_record_batch") and hasattr(data, "execute")


def open_table(data: Any) -> ArrowReader:
    """Open a table that supports Arrow, to be read once or repeatedly, depending on the object."""
    where = f"the {'frame' if is_frame(data) or _is_lazy(data) else 'table'}"
    pa = import_optional("pyarrow", f"Reading {where}")
    batches: Any
    n_rows = None
    with wrap_library_errors(where, "cannot be read"):
        if is_frame(data) and hasattr(data, "iloc"):
            schema = pa.schema([(name, _pandas_type(pa, data.iloc[:, j])) for j, name in enumerate(data.columns)])
            batches, n_rows = partial(_pandas_batches, pa, data, schema, where), len(data)
        elif (table := _in_memory(pa, data)) is not None:
            schema, batches, n_rows = table.schema, partial(_table_batches, pa, table), table.num_rows
        elif _is_lazy(data):
            schema = pa.table(data.head(0).collect()).schema
            batches = partial(_lazy_batches, pa, data, where)
        elif hasattr(data, "scanner"):
            schema, batches = data.schema, partial(_data_set_batches, data, where)
        elif hasattr(data, "to_batches") and hasattr(data, "projected_schema"):
            schema, batches = data.projected_schema, lambda *_: wrap_iteration(iter(data.to_batches()), where)
        else:
            stream = data.fetch_record_batch() if _is_cursor(data) else pa.RecordBatchReader.from_stream(data)
            # Only objects with a length are known to be rereadable.
            if _is_cursor(data) or not hasattr(type(data), "__len__"):
                return stream_reader(where, stream.schema, wrap_iteration(iter(stream), where))
            schema, batches = stream.schema, partial(_stream_batches, pa, data, where)
    if n_rows == 0:
        raise DataError(f"{where.capitalize()} has no rows.")
    reader = ArrowReader(where, schema, batches, counts=None if n_rows is None else [n_rows])
    reader.slow = n_rows is None
    return reader


def _in_memory(pa: Any, data: Any) -> Any:
    """Return an Arrow table or record batch of an object that has all rows in memory, otherwise None."""
    if isinstance(data, pa.RecordBatch | pa.Table):
        return data
    if is_frame(data):
        return pa.table(data)
    is_batch = hasattr(data, "__arrow_c_array__") and not hasattr(data, "__arrow_c_stream__")
    return pa.record_batch(data) if is_batch else None


def _table_batches(pa: Any, table: Any, _number: int, names: list[str], step: int) -> Iterator[Any]:
    chosen = table.select(names)
    return iter(chosen.to_batches(step) if isinstance(table, pa.Table) else [chosen])


def _stream_batches(pa: Any, data: Any, where: str, *_: Any) -> Iterator[Any]:
    with wrap_library_errors(where, "cannot be read"):
        stream = pa.RecordBatchReader.from_stream(data)
    return wrap_iteration(iter(stream), where)


def _data_set_batches(data: Any, where: str, _number: int, names: list[str], step: int) -> Iterator[Any]:
    # One at a time: by default, many are read ahead.
    ahead = {"batch_readahead": 1, "fragment_readahead": 1, "use_threads": False}
    with wrap_library_errors(where):
        found = data.to_batches(columns=names, batch_size=step, **ahead)
    return wrap_iteration(iter(found), where)


def _lazy_batches(pa: Any, frame: Any, where: str, _number: int, names: list[str], _step: int) -> Iterator[Any]:
    with wrap_library_errors(where, "cannot be computed"):
        chosen = frame.select(names)
        # Older releases compute all rows at once.
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
    """Return the Arrow type of a column; only for Python objects all values are needed."""
    with suppress(pa.ArrowException):
        return _pandas_column(pa, column if column.dtype == object else column.iloc[:1], None).type
    # Text among numbers, or objects without an Arrow type.
    return pa.string()


def _pandas_column(pa: Any, column: Any, kind: Any) -> Any:
    # NaN in a float column stays NaN; in other columns it means a missing value.
    is_plain = isinstance(column.dtype, np.dtype) and column.dtype.kind == "f"
    found = pa.array(column, type=kind, from_pandas=not is_plain)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _open_blocks(blocks: Iterable[Any]) -> Reader:
    """Open an iterable of blocks, which are X or pairs of X and y, by the first one."""
    iterator = iter(blocks)
    first = next(iterator, None)
    if first is None:
        raise DataError("The iterable has no blocks.")
    # An iterable that returns a new iterator every time can be read again.
    rereadable = iterator is not blocks
    blocks = blocks if rereadable else chain([first], iterator)
    if _is_table_block(first):
        return _open_tables(first, blocks, rereadable=rereadable)
    return BlocksReader(first, blocks, rereadable=rereadable)


def _pair_of(item: Any) -> tuple[Any, Any]:
    """Return X and y of a block, with y None for X alone; a pair is a tuple or a list of two."""
    if not isinstance(item, tuple | list) or len(item) != 2:
        return item, None
    X, y = item
    is_matrix = is_table(X) or sparse.issparse(X) or getattr(X, "ndim", 0) == 2
    return (X, y) if isinstance(item, tuple) or is_matrix else (item, None)


def _is_table_block(item: Any) -> bool:
    """Return whether a block is a table, a dict of columns, or a pair of a table and y."""
    return is_table(_pair_of(item)[0]) or isinstance(item, dict)


def _is_block(item: Any) -> bool:
    """Return whether an item is a block rather than a row of numbers."""
    return _is_table_block(item) or getattr(_pair_of(item)[0], "ndim", 0) == 2


class BlocksReader(Reader):
    """Arrays of an iterable, or pairs of X and y, all with the columns of the first one."""

    slow = False

    def __init__(self, first: Any, blocks: Iterable[Any], *, rereadable: bool) -> None:
        X, y = _block(first, 0)
        super().__init__("the blocks", X.shape[1])
        self.rereadable = rereadable
        self.beginning = sha256(as_dense(X[:FIRST_ROWS]).tobytes()).hexdigest()[:16]
        self._blocks, self._has_y = blocks, y is not None
        self._dtype = X.dtype
        if X.dtype.kind == "f" and isinstance(blocks, list):
            # Later blocks may be wider.
            dtypes = [getattr(_pair_of(item)[0], "dtype", X.dtype) for item in blocks]
            self._dtype = np.result_type(X.dtype, *(dtype for dtype in dtypes if dtype.kind in "biuf"))
        if y is not None:
            self.is_vector = y.ndim == 1
            self.others = ("y",) if self.is_vector else tuple(f"y{column}" for column in range(y.shape[1]))
            self.own_targets = np.arange(self.n_columns, self.n_columns + len(self.others), dtype=np.intp)

    def dtype_of(self, columns: Columns, *, text: bool = False) -> np.dtype[Any]:
        """Return the dtype of the first block; for a list that begins with floats, one that holds all."""
        return usable_dtype(self._dtype, self.where, text=text)

    def pieces(self, features: Columns, others: Columns, start: int, step: int) -> Iterator[Pieces]:
        """Yield the blocks, cut into steps."""
        end, dtype = 0, usable_dtype(self._dtype, self.where)
        for number, item in enumerate(self._blocks):
            X, y = _block(item, number)
            self._require_alike(number, X, y)
            n_rows = X.shape[0]
            end += n_rows
            for first in range(max(0, n_rows - (end - start)), n_rows, step):
                part = as_dense(X[first : first + step])
                part = part.astype(dtype, copy=False) if np.can_cast(part.dtype, dtype, "safe") else part
                targets = part[:, :0] if y is None else y[first : first + step].reshape(len(part), -1)
                m = self.n_columns
                yield pick(part, features), [part[:, j] if j < m else targets[:, j - m] for j in others]

    def _require_alike(self, number: int, X: Any, y: Array | None) -> None:
        if X.shape[1] != self.n_columns:
            raise DataError(
                f"Block {number} has {counted(X.shape[1], 'column')}, but the first one has {self.n_columns}."
            )
        if (y is not None) != self._has_y:
            raise DataError(
                f"Block {number} is {'X alone' if y is None else 'a pair of X and y'}, unlike the first block: use "
                "the same form for all blocks."
            )
        if y is not None and (1 if y.ndim == 1 else y.shape[1]) != len(self.others):
            raise DataError(f"y of block {number} has a different number of columns than that of the first one.")
        if X.dtype.kind not in "biuf" or (X.dtype.kind == "f" and self._dtype.kind != "f"):
            raise DataError(f"Block {number} holds values of type {X.dtype}, but the first block has {self._dtype}.")


def _block(item: Any, number: int) -> tuple[Any, Array | None]:
    """Return X, perhaps sparse, and y of a block."""
    if not _is_block(item) or _is_table_block(item):
        raise TypeError(f"Block {number} is neither a two-dimensional array nor a pair of such an array and y.")
    data, target = _pair_of(item)
    where = f"Block {number}"
    X = data.tocsr() if sparse.issparse(data) else np.asarray(without_mask(data, where))
    y = None if target is None else np.asarray(without_mask(target, f"y of block {number}"))
    if len(X.shape) != 2 or not X.shape[1]:
        raise DataError(f"{where} has no columns.")
    if X.dtype.kind == "O":
        X = _of_objects(X, where)
    usable_dtype(X.dtype, where, text=False)
    if y is not None and len(y) != X.shape[0]:
        raise DataError(f"y of block {number} has {len(y)} rows, but X has {X.shape[0]}.")
    return X, _of_objects(y, f"y of block {number}") if y is not None and y.dtype.kind == "O" else y


def _open_tables(first: Any, blocks: Iterable[Any], *, rereadable: bool) -> ArrowReader:
    """Open an iterable of tables, of dicts of columns, or of pairs of a table and y, all with the same columns."""
    pa = import_optional("pyarrow", "Reading the blocks")
    table, targets = _block_table(pa, first, 0)

    def batches(*_: Any) -> Iterator[Any]:
        for number, item in enumerate(blocks):
            found = _block_table(pa, item, number)[0]
            if found.schema.names != table.schema.names:
                raise DataError(f"Block {number} has different column names than the first block.")
            yield from found.to_batches()

    once = batches()
    read = batches if rereadable else lambda *_: once
    reader = ArrowReader("the blocks", table.schema, read, rereadable=rereadable)
    # Types of later blocks may differ: pandas converts integers with missing values to floats.
    reader.slow, reader.as_float = False, True
    if len(table):
        reader.beginning = beginning_of(table)
    if targets:
        names = (*(reader.names or range(reader.n_columns)), *reader.others)
        reader.own_targets = np.array([names.index(name) for name in targets], np.intp)
        reader.is_vector = getattr(_pair_of(first)[1], "ndim", 1) == 1
    return reader


def _block_table(pa: Any, item: Any, number: int) -> tuple[Any, list[str]]:
    """Return a block as an Arrow table, and the names of its targets."""
    where = f"Block {number}"
    X, y = _pair_of(item)
    if not _is_table_block(item):
        raise TypeError(f"{where} is not a table, unlike the first one.")
    with wrap_library_errors(where, "cannot be read"):
        table = pa.table(X) if isinstance(X, dict) else open_table(X).table()
    if y is None:
        return table, []
    if len(y) != len(table):
        raise DataError(f"y of block {number} has {len(y)} rows, but X has {len(table)}.")
    names: list[str] = []
    values = np.asarray(without_mask(y, f"y of block {number}"))
    for j, column in enumerate(values.reshape(len(table), -1).T):
        name = str(getattr(y, "name", None) or ("y" if values.ndim == 1 else f"y{j}"))
        while name in table.schema.names:
            name += "_"
        with wrap_library_errors(f"y of block {number}", "cannot be read"):
            kind = pa.string() if column.dtype.kind in "OU" and all(isinstance(v, str) for v in column) else None
            table = table.append_column(name, pa.array(column, type=kind))
        names.append(name)
    return table, names


def _of_objects(values: Array, where: str) -> Array:
    """Return Python objects as strings if all are strings, otherwise as numbers."""
    if all(isinstance(value, str) for value in values.flat):
        return values.astype(str)
    rows = values.reshape(len(values), -1)
    for row, value in enumerate(rows):
        if any(map(_is_missing, value)):
            raise DataError(f"{where} has a missing value, first in row {row}: drop or replace such values.")
    for row, value in enumerate(rows):
        if any(isinstance(entry, str) for entry in value):
            raise DataError(f"{where} mixes strings and numbers, first in row {row}: use one type.")
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{where} holds Python objects, not numbers.") from None


def _is_missing(value: Any) -> bool:
    # Comparing pandas.NA with itself returns pandas.NA.
    differs = type(value).__name__ == "NAType" or value is None or value != value  # noqa: PLR0124
    return isinstance(differs, bool | np.bool_) and bool(differs)
