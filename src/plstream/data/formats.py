"""File formats: how each is recognised and opened.

To add a format, write ``open_<name>(path, where, options) -> Reader`` in its own module, and add one ``Format(...)`` to
``FORMATS`` below. Return

- an :class:`~plstream.data.array_reader.ArrayReader` for an array, by ``mapped_reader`` if contiguous in the file,
- an :class:`~plstream.data.arrow.ArrowReader` for record batches of Arrow,
- a subclass of :class:`~plstream.data.text.TextReader` for text, with ``_find_columns``, ``dtype_of``, ``parse`` and
  ``parsed_bytes``,
- otherwise a subclass of :class:`~plstream.data.reader.Reader` with ``dtype_of`` and ``pieces``.

Files may be damaged or hostile: check declared sizes before allocating memory, never unpickle, and wrap calls of
libraries in ``wrap_library_errors``. ``where`` is the name of the file in messages.
"""

from __future__ import annotations

import glob
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from .._core.errors import DataError
from .._core.remote import AnyPath, RemotePath, path_of
from .._core.urls import is_url, shown
from .files import Utf8File, exists, file_status, glob_files, natural_order, require_readable, without_duplicates
from .objects import open_object
from .parts import ConcatenatedReader, is_partition, partition_values
from .reader import OpenOptions, Reader
from .sql import is_database, open_query


class Format(NamedTuple):
    """A file format."""

    name: str
    suffixes: tuple[str, ...]
    """Suffixes of file names, without ".gz"."""
    opener: str
    """Module of this package, and its function of (path or binary file, name in messages, OpenOptions) that returns a
    Reader. The module is imported when needed."""
    magic: tuple[bytes, ...] = ()
    """First bytes of files."""
    marks: tuple[str, ...] = ()
    """Names of files, any of which identifies a folder as one data set of this format."""
    streams: bool = False
    """Whether it can be read from a pipe."""
    has_keys: bool = False
    """Whether a file can hold several named arrays."""

    def open(self, file: AnyPath | IO[bytes], where: str, options: OpenOptions) -> Reader:
        """Open a file."""
        module, function = self.opener.split(":")
        reader: Reader = getattr(import_module(f".{module}", __package__), function)(file, where, options)
        return reader


_ARROW_SUFFIXES = (".arrow", ".feather", ".ipc", ".arrows")
_ARROW_MAGIC = (b"ARROW1", b"\xff\xff\xff\xff")
_ZARR_MARKS = (".zarray", ".zgroup", "zarr.json")

FORMATS = {
    known.name: known
    for known in (
        Format("arrow", _ARROW_SUFFIXES, "arrow_files:open_arrow", _ARROW_MAGIC, streams=True),
        Format("csv", (".csv",), "delimited:open_csv", streams=True),
        Format("hdf5", (".h5", ".hdf5", ".he5"), "hdf5:open_hdf5", magic=(b"\x89HDF\r\n\x1a\n",), has_keys=True),
        Format("ndjson", (".ndjson", ".jsonl"), "ndjson:open_ndjson", streams=True),
        Format("npy", (".npy",), "numpy_files:open_npy", magic=(b"\x93NUMPY",)),
        Format("npz", (".npz",), "numpy_files:open_npz", has_keys=True),
        Format("parquet", (".parquet", ".pq"), "arrow_files:open_parquet", magic=(b"PAR1",)),
        Format("tsv", (".tsv",), "delimited:open_tsv", streams=True),
        Format("zarr", (".zarr", ".zarr.zip"), "zarr:open_zarr", marks=_ZARR_MARKS, has_keys=True),
    )
}


def open_reader(data: Any, options: OpenOptions) -> Reader:
    """Open data of any kind; see :func:`plstream.open_source`."""
    if isinstance(data, str) and data == "-":
        if sys.stdin is None:
            raise DataError("There is no standard input: pass a file.")
        return _open_stream(sys.stdin.buffer, "standard input", options)
    if is_database(data):
        return open_query(data, options)
    if isinstance(data, str | os.PathLike):
        path, key = split_key(os.fspath(data), options.key)
        return _open_path(path, options._replace(key=key))
    # An iterator of pandas.read_csv has "read", too.
    if hasattr(data, "read") and not hasattr(data, "get_chunk"):
        file = cast("IO[bytes]", Utf8File(data)) if hasattr(data, "encoding") else data
        return _open_stream(file, "the stream", options)
    return open_object(data)


def split_key(name: str, key: str | None) -> tuple[AnyPath, str | None]:
    """Split ``file.h5:X`` into path and key, unless a file has that name."""
    front, colon, back = name.rpartition(":")
    if is_url(name):
        has_keys = any(known.has_keys and front.lower().endswith(known.suffixes) for known in FORMATS.values())
        return (path_of(front), back) if key is None and back and has_keys else (path_of(name), key)
    path = Path(name)
    # "C:\\data" is a path.
    is_there = exists(Path(front)) or glob.has_magic(front)
    if key is None and colon and len(front) > 1 and back and not exists(path) and is_there:
        return Path(front), back
    return path, key


def format_of(path: AnyPath, options: OpenOptions) -> Format | None:
    """Return the given format, or that of the name, of the marks of a folder, or of the first bytes."""
    if options.format is not None:
        return FORMATS[options.format]
    name = path.name.lower().removesuffix(".gz")
    for known in FORMATS.values():
        if name.endswith(known.suffixes):
            return known
    if path.is_dir():
        return next((known for known in FORMATS.values() if any(exists(path / mark) for mark in known.marks)), None)
    if not path.is_file():
        return None
    with path.open("rb") as file:
        begin = file.read(8)
    return next((known for known in FORMATS.values() if known.magic and begin.startswith(known.magic)), None)


def open_file(path: AnyPath, options: OpenOptions) -> Reader:
    """Open one file, or a folder that is one data set of its format."""
    known = format_of(path, options)
    if known is None:
        raise DataError(f"The format of {path} is not known: pass format=, one of {', '.join(FORMATS)}.")
    if options.key is not None and not known.has_keys:
        raise DataError(f"{path} holds a single table, which has no part named {options.key!r}.")
    before = file_status(path) if path.is_file() else None
    reader = known.open(path, str(path), options)
    # Only part of a folder may be read.
    reader.status = before if before is not None or reader.path is None else file_status(reader.path)
    return reader


def _open_path(path: AnyPath, options: OpenOptions) -> Reader:
    is_pattern = path.is_pattern if isinstance(path, RemotePath) else glob.has_magic(str(path)) and not exists(path)
    if is_pattern:
        found: list[Any] = path.matches() if isinstance(path, RemotePath) else glob_files(str(path))
        # A pattern with ** also matches folders whose files it matches.
        files = [file for file in found if not _is_folder_of_files(file, options)]
        return _open_parts(shown(path), files or [file for folder in found for file in _files_in(folder)], options)
    if require_readable(path):
        return _open_stream(path, str(path), options)
    if _is_folder_of_files(path, options):
        return _open_parts(str(path), _files_in(path), options, path)
    return open_file(path, options)


def _open_stream(file: AnyPath | IO[bytes], where: str, options: OpenOptions) -> Reader:
    known = FORMATS[options.format] if options.format else None
    if isinstance(file, AnyPath):
        known = format_of(file, options)
    streams = ", ".join(name for name, can in FORMATS.items() if can.streams)
    if known is None:
        raise DataError(f"Pass format= for {where}: one of {streams}.")
    if not known.streams:
        raise DataError(f"Format {known.name} cannot be read from {where}: use one of {streams}.")
    return known.open(file, where, options)


def _is_folder_of_files(path: AnyPath, options: OpenOptions) -> bool:
    if not path.is_dir():
        return False
    known = format_of(path, options)
    return known is None or not known.marks


def _files_in(folder: AnyPath) -> list[Any]:
    """Return the files of a folder and its partitions; raise DataError if it has other folders, which may hold rows."""
    found: list[Any] = [path for path in folder.iterdir() if not path.name.startswith(("_", "."))]
    folders = [path for path in found if path.is_dir()]
    if folders and all(map(is_partition, folders)):
        return [path for path in found if path not in folders] + [file for part in folders for file in _files_in(part)]
    if folders:
        pattern = str(folder / "**" / "*.parquet")
        raise DataError(f"{folder} has folders in it, such as {folders[0].name}: use a pattern such as {pattern!r}.")
    return found


def _open_parts(where: str, paths: list[Any], options: OpenOptions, folder: AnyPath | None = None) -> Reader:
    """Open the files of a folder or of a pattern as one table."""
    paths = without_duplicates(sorted(paths, key=natural_order))
    formats = {format_of(path, options): path for path in reversed(paths)}
    if not any(formats):
        raise DataError(f"There are no data files in {where}.")
    if len(formats) > 1:
        one, other = list(formats.values())[:2]
        raise DataError(f"Files must have the same format, but {where} has {other.name} and {one.name}.")
    for path in paths:
        require_readable(path)
    values = [] if folder is None else partition_values(folder, paths)
    if any(values) and options.where is not None:
        kept = [i for i, columns in enumerate(values) if options.where.may_hold(columns)]
        # Without any such file, one is opened for its columns.
        paths, values = [paths[i] for i in kept or [0]], [values[i] for i in kept or [0]]
    readers = [open_file(path, options) for path in paths]
    if len(readers) == 1 and not any(values):
        return readers[0]
    return ConcatenatedReader(readers[0].where if len(readers) == 1 else where, readers, values if any(values) else ())
