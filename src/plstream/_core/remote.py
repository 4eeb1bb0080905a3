"""Objects in stores supported by fsspec, such as ``s3://bucket/key``, used like file paths.

Byte ranges are read, and whole objects are written. The contents of an object are never used as URLs.
"""

from __future__ import annotations

import glob
import io
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias
from urllib.parse import urlsplit
from urllib.request import url2pathname
from weakref import finalize

from .errors import DataError, import_optional, printable
from .urls import is_url, redacted, shown

# Buffer size for headers and other small parts.
_BUFFER_BYTES = 1 << 18
_LONGEST_REASON = 200
_NO_BUCKET = ", and no such bucket"
_LOCAL = {"file", "local"}
_WEB = {"http", "https"}
# A reference file would cause other URLs to be read.
_REFUSED = {"reference"}
# Metadata that change when an object is written; the size is always compared.
_MARKS = (
    "ETag", "etag", "content_md5", "md5Hash", "crc32c", "generation", "version", "Content-MD5", "Digest",
    "LastModified", "last_modified", "Last-Modified", "updated", "mtime", "modified", "created",
)  # fmt: skip


class RemotePath:
    """An object in a store, or all objects below a name, with those methods of a path that are needed.

    pathlib may have removed a slash from the URL, such as ``s3://bucket/key``. ``store`` is its fsspec file system, and
    ``info`` its entry in a listing.
    """

    def __init__(self, url: str, store: Any = None, info: dict[str, Any] | None = None) -> None:
        self.url = re.sub(r":/(?!/)", "://", url, count=1)
        self._info = info
        self._copy: str | None = None
        if store is None:
            schemes = {part.partition("://")[0].lower() for part in self.url.split("::")}
            if schemes & _REFUSED:
                raise DataError(f"{self} refers to other URLs, which are not followed: name the data itself.")
            fsspec = import_optional("fsspec", f"Reading {self}", "remote")
            store, self._key = self._response("opened", lambda: fsspec.core.url_to_fs(self.url))
        else:
            self._key = store._strip_protocol(self.url) if info is None else info["name"]
        self._store = store

    def __str__(self) -> str:
        # In messages, without passwords.
        return shown(self.url)

    def __fspath__(self) -> str:
        return self.url

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and self.url == other.url

    def __hash__(self) -> int:
        return hash(self.url)

    def __truediv__(self, name: str) -> RemotePath:
        return RemotePath(f"{self.url.rstrip('/')}/{name}", self._store) if name else self

    @property
    def is_on_the_web(self) -> bool:
        """Whether it is on a web server, which has neither folders nor patterns, and is read-only."""
        return re.match(r"[a-z]+", self.url.rpartition("::")[2].lower())[0] in _WEB  # type: ignore[index]

    @property
    def name(self) -> str:
        """The part after the last slash, without parameters."""
        key = urlsplit(self.url).path if self.is_on_the_web else self._key
        return str(key).rstrip("/").rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The end of the name, with its dot."""
        return PurePosixPath(self.name).suffix

    @property
    def is_pattern(self) -> bool:
        """Whether it is a glob pattern."""
        return not self.is_on_the_web and glob.has_magic(self._key)

    def relative_to(self, folder: Any) -> PurePosixPath:
        """Return the path relative to a folder."""
        return PurePosixPath(self._key).relative_to(folder._key)

    def stat(self) -> os.stat_result:
        """Return size and type."""
        known = self._known()
        mode = stat.S_IFDIR if known.get("type") == "directory" else stat.S_IFREG
        size = known.get("size")
        return os.stat_result((mode, 0, 0, 1, 0, 0, self._copied_size() if size is None else size, 0, 0, 0))

    def exists(self) -> bool:
        """Return whether the object or folder exists."""
        try:
            self._known()
        except FileNotFoundError:
            return False
        return True

    def is_file(self) -> bool:
        """Return whether it is an object."""
        return self.exists() and self._known().get("type") != "directory"

    def is_dir(self) -> bool:
        """Return whether it is a folder: whether there are objects below it."""
        return self.exists() and self._known().get("type") == "directory"

    @staticmethod
    def is_fifo() -> bool:
        """Return False: there are no pipes."""
        return False

    def status(self) -> str:
        """Request metadata that change with the object: size, and ETag or time if available.

        For a folder, return a hash of the metadata of all objects below it.
        """

        def ask() -> str:
            self._store.invalidate_cache()
            self._info = self._store.info(self._key)
            if self._info.get("type") != "directory":
                return repr(_marks(self._info))
            found = self._store.find(self._key, detail=True)
            return sha256(repr([(name, _marks(info)) for name, info in sorted(found.items())]).encode()).hexdigest()

        return self._response("read", ask)

    def iterdir(self) -> Iterator[RemotePath]:
        """Yield the objects and folders in a folder."""
        if self.is_on_the_web:
            raise DataError(f"{self} is on a web server, which cannot list folders: name a file.")
        for info in self._listed(lambda: self._store.ls(self._key, detail=True)):
            # An object may have the name of the folder.
            if info["name"].rstrip("/") != self._key.rstrip("/"):
                yield RemotePath(self._store.unstrip_protocol(info["name"]), self._store, info)

    def glob(self, pattern: str) -> Iterator[RemotePath]:
        """Yield the objects and folders in a folder with matching names; nothing if it does not exist."""
        if self.is_dir():
            yield from (path for path in self.iterdir() if fnmatchcase(path.name, pattern))

    def rglob(self, pattern: str) -> Iterator[RemotePath]:
        """Yield all objects below a folder with matching names."""
        for name, info in self._listed(lambda: self._store.find(self._key, detail=True)).items():
            if fnmatchcase(name.rpartition("/")[2], pattern):
                yield RemotePath(self._store.unstrip_protocol(name), self._store, info)

    def matches(self) -> list[RemotePath]:
        """Return all objects that match the pattern."""
        found = self._listed(lambda: self._store.glob(self._key, detail=True))
        return [RemotePath(self._store.unstrip_protocol(name), self._store, info) for name, info in found.items()]

    def open(self, mode: str = "rb") -> io.BufferedReader:
        """Open the object for reading: by ranges, or from a temporary copy if the server does not support ranges."""
        assert mode == "rb"
        if self._copy is None and self.is_on_the_web and not self._has_ranges():
            self._copy = self._copied()
        if self._copy is not None:
            return open(self._copy, "rb")  # noqa: PTH123
        return io.BufferedReader(_Ranges(self), _BUFFER_BYTES)

    def ranges(self) -> io.RawIOBase:
        """Open the object without a buffer: exactly the requested ranges are read."""
        return self.open().detach()

    def fetch(self, start: int, stop: int) -> bytes:
        """Return a range of bytes; raise DataError if it cannot be read."""

        def ask() -> bytes:
            if not self.is_on_the_web:
                return self._store.cat_file(self._key, start=start, end=stop)
            with self._store.open(self._key, "rb", cache_type="none", size=self.stat().st_size) as file:
                file.seek(start)
                return file.read(stop - start)

        try:
            data = self._response("read", ask)
        except OSError as error:
            # While reading, an OSError means that the data is unavailable.
            problem = str(error)
        else:
            if len(data) == stop - start:
                return data
            problem = f"{self} became shorter while it was read: open it again, and repeat the fit."
        raise DataError(problem)

    def put(self, file: Path, *, overwrite: bool) -> None:
        """Write a complete file to the store, atomically."""
        self._require_writable()
        mode = {} if overwrite else {"mode": "create"}
        self._response("written", lambda: self._store.put_file(str(file), self._key, **mode))
        self._store.invalidate_cache()
        self._info = None

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Remove the object."""
        try:
            self._response("removed", lambda: self._store.rm_file(self._key))
        except FileNotFoundError:
            if not missing_ok:
                raise

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Raise OSError or ValueError if objects cannot be written here; stores have no folders to create."""
        self._require_writable()
        try:
            self.status()
        except FileNotFoundError as error:
            if _NO_BUCKET in str(error):
                raise

    def _require_writable(self) -> None:
        if self.is_on_the_web:
            raise ValueError(f"{self} cannot be written: name a path, or an object in a store such as s3://.")

    def _known(self) -> dict[str, Any]:
        if self._info is None:
            self.status()
        assert self._info is not None
        return self._info

    def _has_ranges(self) -> bool:
        size = self._known().get("size")
        if size is None or self._known().get("partial") is False:
            return False
        if size < 2:
            return True
        try:
            # A server without ranges would send the whole object; it is not read.
            with self._store.open(self._key, "rb", cache_type="none", size=size) as file:
                file.seek(1)
                return len(file.read(1)) == 1
        except ValueError:
            return False
        except Exception:  # noqa: BLE001
            # The read itself will raise the error.
            return True

    def _copied(self) -> str:
        """Return the path of a temporary copy, which is removed together with this object."""
        descriptor, copy = tempfile.mkstemp(prefix=".plstream-")
        os.close(descriptor)
        finalize(self, os.unlink, copy)
        self._response("read", lambda: self._store.get_file(self._key, copy))
        return copy

    def _copied_size(self) -> int:
        if self._copy is None:
            self._copy = self._copied()
        return os.path.getsize(self._copy)  # noqa: PTH202

    def _listed(self, function: Callable[[], Any]) -> Any:
        self._store.invalidate_cache()
        return self._response("listed", function)

    def _response(self, action: str, function: Callable[[], Any]) -> Any:
        """Return the response of a store to a request; exceptions become one sentence without passwords."""
        try:
            return function()
        except DataError:
            raise
        except Exception as error:  # noqa: BLE001
            refusal = self._refusal(error, action)
        # Raised outside of the handler: the store's error may contain the full URL.
        raise refusal

    def _refusal(self, error: Exception, action: str) -> Exception:
        reason = _reason(error, self.url)
        if isinstance(error, ImportError):
            return ImportError(f"{self} requires another package: {reason}.")
        status = getattr(error.__cause__, "status", None)
        if isinstance(error, FileExistsError) or "PreconditionFailed" in f"{type(error).__name__} {reason}":
            return FileExistsError(f"{self} exists already.")
        if (
            isinstance(error, PermissionError)
            or status in {401, 403}
            or "redential" in f"{type(error).__name__} {reason}"
        ):
            # Each store raises its own errors.
            return PermissionError(
                f"{self} cannot be {action}, because the credentials were refused or are missing: {reason}."
            )
        if isinstance(error, FileNotFoundError) and (status or 404) == 404 and not _is_unreachable(error):
            has_bucket = "bucket does not exist" not in reason
            return FileNotFoundError(f"There is no file {self}{'' if has_bucket else _NO_BUCKET}.")
        if isinstance(error, ValueError) and "rotocol not known" in reason:
            return DataError(f"{self} has an unsupported URL scheme: use s3://, gs://, https:// or file://.")
        return OSError(f"{self} cannot be {action}: {_reason(error.__cause__ or error, self.url)}.")


AnyPath: TypeAlias = Path | RemotePath
"""A file or folder, local or in a store."""


class _Ranges(io.RawIOBase):
    """An object as a file; each read requests one range."""

    def __init__(self, path: RemotePath) -> None:
        self._path, self._size, self._at = path, path.stat().st_size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence])
        return self._at

    def readinto(self, buffer: Any) -> int:
        stop = min(self._at + len(buffer), self._size)
        if stop <= self._at:
            return 0
        data = self._path.fetch(self._at, stop)
        memoryview(buffer).cast("B")[: len(data)] = data
        self._at = stop
        return len(data)


def path_of(name: str | os.PathLike[str]) -> AnyPath:
    """Return the path of a file or folder, which is local unless the name is a URL."""
    text = os.fspath(name)
    if isinstance(name, RemotePath) or not is_url(text):
        return name if isinstance(name, RemotePath) else Path(name)
    scheme, _, rest = text.partition(":")
    return Path(url2pathname("/" + rest.lstrip("/"))) if scheme.lower() in _LOCAL else RemotePath(text)


def _marks(info: dict[str, Any]) -> list[Any]:
    return [info.get("size"), *((mark, str(info[mark])) for mark in _MARKS if info.get(mark))]


def _reason(error: BaseException, url: str) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return printable(redacted(text, [url]))[:_LONGEST_REASON].rstrip(".")


def _is_unreachable(error: BaseException) -> bool:
    """Return whether a host does not respond, which some stores report as a missing file."""
    return isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, FileNotFoundError)
