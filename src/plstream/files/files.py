"""Atomic writes of files, and locks."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from .._core.remote import RemotePath, path_of
from .._core.warnings import warn_user

if sys.platform != "win32":
    import fcntl

# Errors of file systems without hard links or without flushing of folders.
_NOT_SUPPORTED = {errno.EPERM, errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK}

# Errors of file systems without locks.
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
# Prefix of the names of files while they are written.
PREFIX = ".plstream-"
# Files that are being written.
_unfinished: set[Path] = set()


@contextmanager
def replacing(path: str | os.PathLike[str], *, overwrite: bool = True, prefix: str = PREFIX) -> Iterator[BinaryIO]:
    """Write a file atomically: it appears under its name only when it is complete and on the disk.

    The file is written under another name in the same folder. If anything fails, including a full disk or an interrupt,
    it is removed, and an existing file under the name is unchanged.

    Parameters
    ----------
    path : str or path-like
        Path of the file. Links are followed. An object in a store is uploaded as a whole at the end.
    overwrite : bool, default=True
        Whether to replace an existing file. Otherwise FileExistsError is raised, even if the file is created in the
        meantime.
    prefix : str
        Prefix of the temporary name.

    Yields
    ------
    file : file object
        A file to write bytes to. ``file.name`` is its temporary path, for functions that write to paths.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from plstream.files.files import replacing
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "scores.csv")
    ...     with replacing(path) as file:
    ...         written = file.write(b"1,2")
    ...         early = path.exists()
    ...     path.read_bytes(), early
    (b'1,2', False)
    """
    place = path_of(path)
    if isinstance(place, RemotePath):
        with _putting(place, overwrite=overwrite, prefix=prefix) as file:
            yield file
        return
    target = Path(os.path.realpath(place))
    if not overwrite and target.exists():
        raise _exists(path)
    if target.exists() and not target.is_file():
        raise OSError(errno.EISDIR if target.is_dir() else errno.EINVAL, "Not a regular file", str(path))
    # Short, because the name of the target may have the maximum length.
    temporary = target.with_name(f"{prefix}{secrets.token_hex(8)}.tmp")
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    _unfinished.add(temporary)
    try:
        # It never has more permissions than the file it replaces.
        with open(temporary, "xb", opener=partial(os.open, mode=0o666 if mode is None else mode & 0o666)) as file:
            yield file
        if mode is not None:
            temporary.chmod(mode)
        put_in_place(temporary, target, overwrite=overwrite)
    except OSError as error:
        if error.errno is not None and error.filename in {None, str(temporary)}:
            # The error names the caller's path.
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        _unfinished.discard(temporary)


@contextmanager
def _putting(place: RemotePath, *, overwrite: bool, prefix: str) -> Iterator[BinaryIO]:
    """Write a local file, and then upload it to a store."""
    if not overwrite and place.exists():
        raise _exists(place)
    with TemporaryDirectory(prefix=prefix) as folder:
        temporary = Path(folder, "file")
        _unfinished.add(temporary)
        try:
            with temporary.open("xb") as file:
                yield file
            place.put(temporary, overwrite=overwrite)
        finally:
            _unfinished.discard(temporary)


def remove_unfinished() -> None:
    """Remove all files that are being written, before the process exits abruptly."""
    for temporary in [*_unfinished]:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk."""
    # A read-only file can be flushed, except on Windows.
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def put_in_place(temporary: Path, target: Path, *, overwrite: bool) -> None:
    """Flush a complete file to the disk, and rename or link it. After a link, the caller removes the old name."""
    _flush(temporary)
    _rename(temporary, target, overwrite=overwrite)
    if os.name == "nt":
        return
    try:
        _flush(target.parent)
    except OSError as error:
        # A folder may be writable but not readable.
        if error.errno not in {errno.EACCES, *_NOT_SUPPORTED}:
            raise


def _rename(temporary: Path, target: Path, *, overwrite: bool) -> None:
    if overwrite:
        temporary.replace(target)
        return
    try:
        # Unlike a rename, a link fails if the file exists.
        os.link(temporary, target)
    except FileExistsError:
        raise _exists(target) from None
    except OSError as error:
        if error.errno not in _NOT_SUPPORTED:
            raise
        # Without links, an empty file reserves the name, which fails if the file exists.
        target.open("xb").close()
        temporary.replace(target)


def _exists(path: str | os.PathLike[str]) -> FileExistsError:
    return FileExistsError(errno.EEXIST, "The file exists, and overwriting was not requested", str(path))


@contextmanager
def locked_folder(folder: Path, in_use: Exception) -> Iterator[None]:
    """Lock a folder against other processes, or raise an error if it is in use.

    The lock ends with this process and its forks.
    """
    path = folder / "lock"
    lock = locked_file(path)
    if lock is None:
        raise in_use
    with lock:
        try:
            yield
        finally:
            with suppress(OSError):
                path.unlink(missing_ok=True)


def locked_file(path: Path) -> BinaryIO | None:
    """Return a file that is locked while it is open, or None if another process has locked it."""
    while True:
        file = path.open("ab")
        if sys.platform == "win32":
            # Without locks, other processes are not excluded.
            return file
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The previous owner may have removed the file, and another process created a new one.
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno in _NO_LOCKS:
                warn_user(f"There are no locks in {str(path.parent)!r}: make sure that no other process writes there.")
                return file
            file.close()
            if error.errno in {errno.EAGAIN, errno.EACCES}:
                return None
            raise
        file.close()
