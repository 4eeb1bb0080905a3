"""Files: their order, kind and identity, and their decompressed bytes."""

from __future__ import annotations

import gzip
import os
import re
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

from .._core.errors import DataError
from .._core.remote import AnyPath, RemotePath
from .._core.urls import shown

GZIP = b"\x1f\x8b"
# Parts of a file that are looked at to know it again, and their size.
_SAMPLES = 32
_SAMPLE_BYTES = 1 << 12


def natural_order(path: AnyPath) -> list[Any]:
    """Return a key that puts part 2 before part 10."""
    return [*(int(text) if text.isdecimal() else text for text in re.split(r"(\d+)", str(path))), str(path)]


def file_identity(path: AnyPath) -> tuple[str, int, int, str]:
    """Return the name, the size, the time of the last change and a hash of some parts, the first and last included.

    Of a folder, the hash is one of the names, sizes and times of all files in it; of an object in a store, it is what
    the store says of it.
    """
    if isinstance(path, RemotePath):
        return str(path), path.stat().st_size, 0, path.status()
    status = path.stat()
    digest = sha256()
    if path.is_dir():
        files = [(file, file.stat()) for file in sorted(path.rglob("*")) if file.is_file()]
        known = [(str(file.relative_to(path)), found.st_size, found.st_mtime_ns) for file, found in files]
        digest.update(repr(known).encode())
        return path.name, len(files), 0, digest.hexdigest()
    with path.open("rb") as file:
        last = max(0, status.st_size - _SAMPLE_BYTES)
        for number in range(_SAMPLES):
            file.seek(last * number // (_SAMPLES - 1))
            digest.update(file.read(_SAMPLE_BYTES))
    return path.name, status.st_size, status.st_mtime_ns, digest.hexdigest()


def file_status(path: AnyPath) -> tuple[int, ...] | str:
    """Return values that change when a file is written to or replaced: device, inode, size and modification time.

    Of a folder, it is a hash of those of all files in it. To look at a file takes microseconds, and to read a chunk of
    an array from one about a millisecond. An object in a store is asked for, and is no more than a text.
    """
    if isinstance(path, RemotePath):
        return path.status()
    status = path.stat()
    if not stat.S_ISDIR(status.st_mode):
        return _status_of(status)
    digest = sha256()
    for folder, folders, files in os.walk(path):
        folders.sort()
        for name in sorted(files):
            digest.update(repr((folder, name, _status_of(Path(folder, name).stat()))).encode())
    return digest.hexdigest()


def _status_of(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def exists(path: AnyPath) -> bool:
    """Return whether there is a file or folder; False for invalid names."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def require_readable(path: AnyPath) -> bool:
    """Raise OSError unless there is a file, folder or named pipe; return whether it is a pipe, to be read only once."""
    if isinstance(path, RemotePath):
        if path.is_file() and path.stat().st_size == 0:
            raise DataError(f"{path} is empty.")
        path.stat()
        return False
    mode, refusal = 0, None
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        refusal = _refusal(path, error)
    if refusal is not None:
        # Raised here, it does not carry the system's own error, which has the name in full, with a password if any.
        raise refusal
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISSOCK(mode):
        raise OSError(f"{path} is a device, not a file: for standard input use '-'.")
    if stat.S_ISREG(mode):
        try:
            with path.open("rb"):
                pass
        except PermissionError:
            raise PermissionError(f"There is no permission to read {path}.") from None
        if path.stat().st_size == 0:
            raise DataError(f"{path} is empty.")
    return stat.S_ISFIFO(mode)


def _refusal(path: Path, error: Exception) -> OSError:
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(f"There is no file {shown(path)}.")
    if isinstance(error, PermissionError):
        return PermissionError(f"There is no permission to read {shown(path)}.")
    return OSError(f"{shown(path)} cannot be opened: {getattr(error, 'strerror', None) or error}.")


@contextmanager
def plain_bytes(path: AnyPath) -> Iterator[IO[bytes]]:
    """Open a file, through gzip if that is what it is, or its name says so."""
    with path.open("rb") as raw:
        # A pipe cannot be looked into.
        begin = raw.peek(len(GZIP))[: len(GZIP)] if path.is_file() else b""
        if path.suffix.lower() != ".gz" and begin != GZIP:
            yield raw
            return
        with gzip.GzipFile(fileobj=raw) as file:
            yield _GzipReader(file, path)  # type: ignore[misc]


class Utf8File:
    """A file that is open as text, read as bytes."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def read(self, n: int = -1) -> bytes:
        """Return about as many bytes, all of them at the end."""
        return self._file.read(n).encode()

    read1 = read


class _GzipReader:
    """A compressed file that says which file it is that is cut off or damaged."""

    def __init__(self, file: Any, path: AnyPath) -> None:
        self.file = file
        self.path = path

    def read(self, n: int) -> bytes:
        try:
            data: bytes = self.file.read(n)
        except EOFError:
            raise DataError(f"{self.path} is cut off.") from None
        except (gzip.BadGzipFile, zlib.error):
            raise DataError(f"{self.path} is not a gzip file, or damaged.") from None
        return data

    read1 = read
