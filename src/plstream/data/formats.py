"""File formats: how each is recognised and opened."""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from .._core.errors import DataError
from .._core.remote import AnyPath, RemotePath, path_of
from .._core.urls import is_url, shown
from .files import Utf8File, exists, file_status, natural_order, require_readable
from .objects import open_object
from .partitions import PartitionReader, is_partition, may_hold, partition_of, typed_values
from .reader import ConcatenatedReader, OpenOptions, Reader
from .sql import is_database, open_query


class Format(NamedTuple):
    """A format of files."""

    name: str
    suffixes: tuple[str, ...]
    """Ends of names, without ".gz"."""
    opener: str
    """The module here and its function of (path or binary file, what to call it, OpenOptions), which returns a Reader.
    Modules are imported when they are needed."""
    magic: tuple[bytes, ...] = ()
    """First bytes of files."""
    marks: tuple[str, ...] = ()
    """Files by any of which a folder is known that is one thing of this format."""
    streams: bool = False
    """Whether it can be read from a pipe."""
    has_keys: bool = False
    """Whether a file can hold several arrays, each with a name."""

    def open(self, file: AnyPath | IO[bytes], where: str, options: OpenOptions) -> Reader:
        """Open a file."""
        module, function = self.opener.split(":")
        reader: Reader = getattr(import_module(f".{module}", __package__), function)(file, where, options)
        return reader


FORMATS = {
    known.name: known
    for known in (
        Format(
            "arrow",
            (".arrow", ".feather", ".ipc", ".arrows"),
            "arrow_files:open_arrow",
            magic=(b"ARROW1", b"\xff\xff\xff\xff"),
            streams=True,
        ),
        Format("csv", (".csv",), "delimited:open_csv", streams=True),
        Format("hdf5", (".h5", ".hdf5", ".he5"), "hdf5:open_hdf5", magic=(b"\x89HDF\r\n\x1a\n",), has_keys=True),
        Format("ndjson", (".ndjson", ".jsonl"), "ndjson:open_ndjson", streams=True),
        Format("npy", (".npy",), "numpy_files:open_npy", magic=(b"\x93NUMPY",)),
        Format("npz", (".npz",), "numpy_files:open_npz", has_keys=True),
        Format("parquet", (".parquet", ".pq"), "arrow_files:open_parquet", magic=(b"PAR1",)),
        Format("tsv", (".tsv",), "delimited:open_tsv", streams=True),
        Format(
            "zarr", (".zarr", ".zarr.zip"), "zarr:open_zarr", marks=(".zarray", ".zgroup", "zarr.json"), has_keys=True
        ),
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
    # What pandas reads in chunks has both.
    if hasattr(data, "read") and not hasattr(data, "get_chunk"):
        file = cast("IO[bytes]", Utf8File(data)) if hasattr(data, "encoding") else data
        return _open_stream(file, "the stream", options)
    return open_object(data)


def split_key(name: str, key: str | None) -> tuple[AnyPath, str | None]:
    """Take ``file.h5:X`` apart, unless there is a file of that name."""
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
    """Return the given format, or that of the name, or that of the first bytes."""
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
    """Open one file, or a folder that is one thing of its format."""
    known = format_of(path, options)
    if known is None:
        raise DataError(f"It is not clear what format {path} is: pass format=, one of {', '.join(FORMATS)}.")
    if options.key is not None and not known.has_keys:
        raise DataError(f"{path} is a file of one table, which has no part named {options.key!r}.")
    before = file_status(path) if path.is_file() else None
    reader = known.open(path, str(path), options)
    # Of a folder, only part may be read.
    reader.status = before if before is not None or reader.path is None else file_status(reader.path)
    return reader


def _open_path(path: AnyPath, options: OpenOptions) -> Reader:
    is_pattern = path.is_pattern if isinstance(path, RemotePath) else glob.has_magic(str(path)) and not exists(path)
    if is_pattern:
        found: list[Any] = path.matches() if isinstance(path, RemotePath) else _matches(str(path))
        # With ** a pattern also stands for folders whose files it stands for.
        files = [file for file in found if not _is_folder_of_files(file, options)]
        return _open_parts(shown(path), files or [file for folder in found for file in _files_in(folder)], options)
    if require_readable(path):
        return _open_stream(path, str(path), options)
    if _is_folder_of_files(path, options):
        return _open_parts(str(path), _files_in(path), options, path)
    return open_file(path, options)


def _is_folder_of_files(path: AnyPath, options: OpenOptions) -> bool:
    if not path.is_dir():
        return False
    known = format_of(path, options)
    return known is None or not known.marks


def _open_parts(where: str, paths: list[Any], options: OpenOptions, folder: AnyPath | None = None) -> Reader:
    paths = _each_once(sorted(paths, key=natural_order))
    formats = {format_of(path, options): path for path in reversed(paths)}
    if not any(formats):
        raise DataError(f"There are no files of data in {where}.")
    if len(formats) > 1:
        one, other = list(formats.values())[:2]
        raise DataError(f"Parts must be of one format, and {where} has {other.name} and {one.name}.")
    for path in paths:
        require_readable(path)
    partitions = [] if folder is None else [partition_of(folder, path) for path in paths]
    if any(partitions):
        values = typed_values(partitions, where)
        # If no file has such rows, one is left to tell the columns.
        files = list(zip(paths, values, strict=True))
        files = [pair for pair in files if may_hold(options.where, pair[1])] or files[:1]
        readers: list[Reader] = [PartitionReader(open_file(path, options), found) for path, found in files]
    else:
        readers = [open_file(path, options) for path in paths]
    return readers[0] if len(readers) == 1 else ConcatenatedReader(where, readers)


def _matches(pattern: str) -> list[Path]:
    """Return the matches of a pattern. Unlike glob's, ** enters a folder with several links only once."""
    front, stars, back = _at_stars(pattern)
    if not stars:
        return [Path(name) for name in glob.glob(pattern)]  # noqa: PTH207
    found: list[Path] = []
    for top in _matches(front) if front else [Path()]:
        for folder in _folders_in(top):
            # Names of folders are not patterns.
            found += _matches(os.path.join(glob.escape(str(folder)), back or "*"))  # noqa: PTH118
    return found


def _at_stars(pattern: str) -> tuple[str, str, str]:
    """Return what is before, at and after the first ** that is a part of a pattern by itself."""
    parts = Path(pattern).parts
    if "**" not in parts:
        return pattern, "", ""
    at = parts.index("**")
    return str(Path(*parts[:at])) if at else "", "**", str(Path(*parts[at + 1 :])) if at + 1 < len(parts) else ""


def _folders_in(top: Path) -> Iterator[Path]:
    """Yield a folder and all folders in it, those that links lead to as well, each once; hidden ones are left out."""
    seen = set()
    for folder, folders, _ in os.walk(top, followlinks=True):
        identity = _inode(Path(folder))
        if identity in seen:
            folders.clear()
            continue
        seen.add(identity)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield Path(folder)


def _each_once(paths: list[Any]) -> list[Any]:
    """Return files, of those that are one file by several names the first."""
    found: dict[Any, Any] = {}
    for path in paths:
        found.setdefault(_inode(path), path)
    return list(found.values())


def _inode(path: AnyPath) -> Any:
    if isinstance(path, RemotePath):
        return path
    try:
        status = path.stat()
    except OSError:
        return path
    return status.st_dev, status.st_ino


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


def _files_in(folder: AnyPath) -> list[Any]:
    """Return the files of a folder and its partitions; raise DataError for other folders, which may hold more rows."""
    found: list[Any] = [path for path in folder.iterdir() if not path.name.startswith(("_", "."))]
    folders = [path for path in found if path.is_dir()]
    if folders and all(map(is_partition, folders)):
        return [path for path in found if path not in folders] + [file for part in folders for file in _files_in(part)]
    if folders:
        pattern = str(folder / "**" / "*.parquet")
        raise DataError(f"{folder} has folders in it, such as {folders[0].name}: use a pattern such as {pattern!r}.")
    return found
