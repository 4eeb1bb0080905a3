"""Parquet files, Arrow files (Feather is the same format) and Arrow streams."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import IO, Any

from .._core.errors import DataError, import_optional, wrap_iteration, wrap_library_errors
from .._core.remote import AnyPath, RemotePath
from .arrow import ArrowReader, stream_reader
from .reader import OpenOptions
from .where import Where

# Default maximum size of a page of a column with its dictionary.
_PAGE_BYTES = 2 << 20
# Size of requests for a column of an object in a store.
_RANGE_BYTES = 1 << 20
# The first letters of a file, ARRO, read as a number of bytes.
_FILE_NOT_STREAM = "1330795073 metadata bytes"


def open_parquet(path: AnyPath, where: str, options: OpenOptions) -> ArrowReader:
    """Open a Parquet file."""
    parquet = import_optional("pyarrow.parquet", f"Reading {path}")
    opened = partial(_opened_parquet, parquet, path)
    with _wrap_parquet_errors(where), opened() as file:
        schema, metadata = file.schema_arrow, file.metadata
        groups = [metadata.row_group(number) for number in range(file.num_row_groups)]
        counts = [int(group.num_rows) for group in groups]
        sizes = [int(group.total_byte_size) for group in groups]
        begins = [*accumulate(counts, initial=0)]
        value_bytes = {field.name: _value_bytes(field.type) for field in schema}

    kept = _groups_with(path, where, options.where, schema, len(groups))
    counts, sizes, begins = ([values[number] for number in kept] for values in (counts, sizes, begins))

    def batches(number: int, names: list[str], step: int) -> Iterator[Any]:
        with _wrap_parquet_errors(where):
            # Parsing the metadata of many groups takes long, so it is done once.
            file = opened(metadata=metadata)
        with file, _wrap_parquet_errors(where):
            yield from file.iter_batches(step, row_groups=[kept[number]], columns=names)

    def held_bytes(number: int, name: str) -> int:
        """Return the size of a page with its dictionary, or of the column if smaller.

        The metadata of the column is not used: if it is encrypted, Arrow ends the process.
        """
        at_most = max(0, min(_PAGE_BYTES, sizes[number]))
        # A dictionary with as many values as rows, and the indices.
        return min(at_most, counts[number] * value_bytes[name] * 5 // 4) if value_bytes[name] else at_most

    return ArrowReader(where, schema, batches, counts=counts, begins=begins, held_bytes=held_bytes, path=path)


def _opened_parquet(parquet: Any, path: AnyPath, **options: Any) -> Any:
    """Open a Parquet file: memory-mapped, or by ranges, a page of a column at a time."""
    # With pre_buffer, a whole row group is read before its first row.
    if isinstance(path, RemotePath):
        return parquet.ParquetFile(path.ranges(), buffer_size=_RANGE_BYTES, pre_buffer=False, **options)
    return parquet.ParquetFile(path, memory_map=True, pre_buffer=False, **options)


def _groups_with(path: AnyPath, where: str, condition: Where | None, schema: Any, n_groups: int) -> list[int]:
    """Return the groups, at least one, whose statistics allow matching rows."""
    if condition is None or not set(condition.names()) <= set(schema.names) or n_groups < 2:
        return list(range(n_groups))
    needed = ("dataset", "compute", "fs")
    dataset, compute, fs = (import_optional(f"pyarrow.{name}", f"Reading {where}") for name in needed)
    try:
        place = (str(path), fs.LocalFileSystem()) if isinstance(path, Path) else (path.ranges(),)
        fragment = dataset.ParquetFileFormat().make_fragment(*place)
        parts = fragment.split_by_row_group(condition.expression(compute))
        return [group.id for part in parts for group in part.row_groups] or [0]
    except (ValueError, TypeError, NotImplementedError):
        # Arrow cannot compare these types: all groups are read, and rows are compared one by one.
        return list(range(n_groups))


@contextmanager
def _wrap_parquet_errors(where: str) -> Iterator[None]:
    """Raise DataError for errors of Arrow, with advice if the file or a column is encrypted."""
    try:
        with wrap_library_errors(where):
            yield
    except DataError as error:
        if "crypt" not in str(error).removeprefix(where):
            raise
        raise DataError(
            f"{where} has encrypted columns, or is encrypted as a whole: leave these columns out by columns= or "
            "exclude=, or write a copy without encryption."
        ) from None


def open_arrow(file: AnyPath | IO[bytes], where: str, _options: OpenOptions) -> ArrowReader:
    """Open an Arrow file, an Arrow stream in a file, or one in a pipe."""
    if not isinstance(file, AnyPath):
        return _open_pipe(file, where)
    if file.is_fifo():
        return _open_pipe(file.open("rb"), where, close=True)
    with file.open("rb") as begin:
        is_file = begin.read(6) == b"ARROW1"
    return _open_file(file, where) if is_file else _open_stream(file, where)


def _arrow_file(pa: Any, path: AnyPath) -> Any:
    """Open a file for Arrow: memory-mapped, or by ranges."""
    return pa.memory_map(str(path)) if isinstance(path, Path) else pa.PythonFile(path.ranges(), "r")


def _open_file(path: AnyPath, where: str) -> ArrowReader:
    pa = import_optional("pyarrow", f"Reading {path}")
    with wrap_library_errors(where):
        # Mapped once: pages that were read stay in memory for the next read.
        file = _arrow_file(pa, path)
        schema = pa.ipc.open_file(file).schema
        lists = [pa.types.is_fixed_size_list(field.type) for field in schema]
        value_bytes = {field.name: _value_bytes(field.type) for field in schema}
    last_opened = threading.local()

    def opened(columns: list[int] | None) -> Any:
        """Open the file for some columns, which are copied, or for all, which are mapped.

        This takes time proportional to the number of batches, so each thread does it once per read.
        """
        if getattr(last_opened, "columns", ()) != columns:
            options = pa.ipc.IpcReadOptions(included_fields=columns)
            last_opened.reader, last_opened.columns = pa.ipc.open_file(file, options=options), columns
        return last_opened.reader

    # Rows are counted by a column that is quick to decompress.
    cheapest = [lists.index(False)] if False in lists else None
    with wrap_library_errors(where):
        reader = opened(cheapest)
        counts = [reader.get_batch(number).num_rows for number in range(reader.num_record_batches)]
    # Columns that are not mapped take memory.
    is_copied = isinstance(path, RemotePath) or path.stat().st_size < sum(counts) * sum(value_bytes.values())

    def batches(number: int, names: list[str], _step: int) -> Iterator[Any]:
        columns = [schema.get_field_index(name) for name in names] if is_copied else None
        with wrap_library_errors(where):
            batch = opened(columns).get_batch(number)
        yield batch

    def held_bytes(number: int, name: str) -> int:
        """Return the size of a column that is decompressed or fetched; mapped columns take no memory."""
        return counts[number] * value_bytes[name] if is_copied else 0

    found = ArrowReader(where, schema, batches, counts=counts, held_bytes=held_bytes, path=path)
    # Lists are returned as views of the file.
    found.slow = True not in lists or isinstance(path, RemotePath)
    return found


def _open_stream(path: AnyPath, where: str) -> ArrowReader:
    """Open a stream in a file, which is read from its beginning every time."""
    pa = import_optional("pyarrow", f"Reading {where}")

    def batches(*_: Any) -> Iterator[Any]:
        with wrap_library_errors(where):
            stream = pa.ipc.open_stream(_arrow_file(pa, path))
        return wrap_iteration(iter(stream), where)

    with wrap_library_errors(where):
        schema = pa.ipc.open_stream(_arrow_file(pa, path)).schema
    return ArrowReader(where, schema, batches, path=path)


def _open_pipe(file: IO[bytes], where: str, *, close: bool = False) -> ArrowReader:
    """Open a stream that can be read only once; with ``close``, the file is closed at its end."""
    pa = import_optional("pyarrow", f"Reading {where}")
    try:
        with wrap_library_errors(where):
            stream = pa.ipc.open_stream(pa.PythonFile(file, "r"))
    except DataError as error:
        if _FILE_NOT_STREAM in str(error):
            raise DataError(f"{where} is an Arrow file, not an Arrow stream: pass its path.") from None
        raise

    def unread() -> Iterator[Any]:
        yield from wrap_iteration(iter(stream), where)
        if close:
            file.close()

    return stream_reader(where, stream.schema, unread())


def _value_bytes(kind: Any) -> int:
    """Return the number of bytes per value; 0 if unknown, or less than one."""
    try:
        return int(kind.bit_width) // 8
    except ValueError:
        return 0
