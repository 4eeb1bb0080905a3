"""Files: patterns, order and identity, and their decompressed bytes."""

from __future__ import annotations

import glob
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
# Number and size of the parts of a file that are hashed to recognise it.
_SAMPLES = 32
_SAMPLE_BYTES = 1 << 12


def natural_order(path: AnyPath) -> list[Any]:
    """Return a sort key that puts part 2 before part 10."""
    return [*(int(text) if text.isdecimal() else text for text in re.split(r"(\d+)", str(path))), str(path)]


def glob_files(pattern: str) -> list[Path]:
    """Return the files that match a pattern. Unlike in glob, ** enters a folder with several links only once."""
    parts = Path(pattern).parts
    if "**" not in parts:
        return [Path(name) for name in glob.glob(pattern)]  # noqa: PTH207
    stars = parts.index("**")
    found: list[Path] = []
    for top in glob_files(str(Path(*parts[:stars]))) if stars else [Path()]:
        for folder in _folders_in(top):
            # Names of folders are not patterns.
            found += glob_files(str(Path(glob.escape(str(folder)), *(parts[stars + 1 :] or ["*"]))))
    return found


def _folders_in(top: Path) -> Iterator[Path]:
    """Yield a folder and all folders below it, following links, each once and without hidden ones."""
    seen = set()
    for folder, folders, _ in os.walk(top, followlinks=True):
        identity = _inode(Path(folder))
        if identity in seen:
            folders.clear()
            continue
        seen.add(identity)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield Path(folder)


def without_duplicates(paths: list[Any]) -> list[Any]:
    """Return the paths, each file only once even if it has several names."""
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


def file_identity(path: AnyPath) -> tuple[str, int, int, str]:
    """Return name, size, modification time, and a hash of parts of a file, including the first and the last.

    For a folder, names, sizes and times of all its files are hashed; for an object in a store, it is its status.
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

    For a folder, it is a hash of those of all its files; for an object in a store, a string from a request. (Getting
    the status of a file takes microseconds, reading a chunk of an array from it about a millisecond.)
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
    """Return whether a file or folder exists; False for invalid names."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def require_readable(path: AnyPath) -> bool:
    """Raise OSError unless it is a readable file, folder or named pipe; return whether it is a pipe."""
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
        # Raised outside of the handler: the system's error contains the full name, possibly with a password.
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
    """Open a file, decompressed if its name or its first bytes are those of gzip."""
    with path.open("rb") as raw:
        # Peeking at a pipe would block.
        begin = raw.peek(len(GZIP))[: len(GZIP)] if path.is_file() else b""
        if path.suffix.lower() != ".gz" and begin != GZIP:
            yield raw
            return
        with gzip.GzipFile(fileobj=raw) as file:
            yield _GzipReader(file, path)  # type: ignore[misc]


class Utf8File:
    """A file opened in text mode, read as bytes."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def read(self, n: int = -1) -> bytes:
        """Return about n bytes, or all the rest."""
        return self._file.read(n).encode()

    read1 = read


class _GzipReader:
    """A compressed file whose errors name the file."""

    def __init__(self, file: Any, path: AnyPath) -> None:
        self.file = file
        self.path = path

    def read(self, n: int) -> bytes:
        try:
            data: bytes = self.file.read(n)
        except EOFError:
            raise DataError(f"{self.path} is truncated.") from None
        except (gzip.BadGzipFile, zlib.error):
            raise DataError(f"{self.path} is not a gzip file, or damaged.") from None
        return data

    read1 = read
