"""Archives of images, read sequentially, without unpacking or following links, and with bounded sizes."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO, Any

from .._core.errors import DataError
from .._core.progress import track
from ..data.columns import listed
from ..data.files import file_identity
from .decoding import Content

IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
TAR_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
ARCHIVE_ENDINGS = (*TAR_ENDINGS, ".zip")
_ERRORS = (tarfile.TarError, zipfile.BadZipFile, zlib.error, LZMAError, EOFError, OSError)
# Limits for one compressed image, and for headers with long names: larger ones are damaged or malicious.
_LARGEST_MEMBER = 1 << 28
_LARGEST_HEADER = 1 << 20
# Types of members with names and attributes of the next one, which tarfile loads as a whole.
_HEADER_TYPES = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_Member = tuple[str, Callable[[], bytes]]


def is_image(name: str) -> bool:
    """Return whether a file is an image, by its name, and not hidden."""
    base = name.rsplit("/", 1)[-1]
    return base.lower().endswith(IMAGE_ENDINGS) and not base.startswith(".")


class Archive:
    """Images in a .tar or .zip file, in stored order, including those of .tar files inside a .tar file.

    An inner archive counts as a folder: an image of ``n01440764.tar`` is named ``n01440764/1.JPEG``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def names(self) -> list[str]:
        """Return the name of each image; raise DataError if two are the same."""
        # Listing an archive of a million images takes minutes.
        found = track(_members(self.path), f"Listing {self.path.name}", None, lambda _: 1, "images")
        names = [name for name, _ in found]
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise DataError(f"{self.path} has several images named {listed(twice)}: pack it again with unique names.")
        return names

    def contents(self, start: int) -> Iterator[tuple[str, Content]]:
        """Yield the images from an index on, each with its location for messages."""
        with closing(_members(self.path)) as members:  # type: ignore[type-var]
            for i, (name, read) in enumerate(members):
                if i >= start:
                    where = f"{self.path}:{name}"
                    try:
                        content: Content = read()
                    except (*_ERRORS, RuntimeError) as error:
                        # RuntimeError: encrypted, or compressed in an unsupported way.
                        content = DataError(f"{where} cannot be read: {error}.")
                    yield where, content

    def identities(self) -> Iterator[object]:
        """Yield values that change if the images change."""
        yield file_identity(self.path)


def _members(path: Path) -> Iterator[_Member]:
    """Yield the name of each image in an archive, and a function that reads it, valid until the next."""
    try:
        if path.name.lower().endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                for info in filter(lambda info: is_image(info.filename), archive.infolist()):
                    yield info.filename, partial(_read, archive.open, info, info.file_size)
        else:
            with tarfile.open(path, tarinfo=_TarHeader) as tar:
                yield from _tar_images(tar)
    except _ERRORS as error:
        raise DataError(f"{path} is not an archive, or is damaged or truncated: {error}.") from None


class _TarHeader(tarfile.TarInfo):
    """A header that cannot request more memory than names need."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _TarHeader:
        header = super().frombuf(buf, encoding, errors)
        if header.type in _HEADER_TYPES and header.size > _LARGEST_HEADER:
            raise tarfile.ReadError(f"a header of {header.size:,} bytes")
        return header


def _tar_images(tar: tarfile.TarFile, folder: str | None = None) -> Iterator[_Member]:
    """Yield the images of a .tar file, or of one inside it, whose name becomes a folder."""
    while (member := tar.next()) is not None:
        # tarfile keeps all members: a gigabyte for a million images.
        tar.members.clear()  # type: ignore[attr-defined]
        if not member.isreg() or member.issparse():
            continue
        if folder is None and member.name.lower().endswith(".tar"):
            with _extracted(tar, member) as file, tarfile.open(fileobj=file, mode="r:", tarinfo=_TarHeader) as inner:
                yield from _tar_images(inner, member.name[: -len(".tar")])
        elif is_image(member.name):
            name = member.name if folder is None else _joined(folder, member.name)
            yield name, partial(_read, partial(_extracted, tar), member, member.size)
    _require_end(tar)


def _joined(folder: str, name: str) -> str:
    """Return a name in a folder, unless it already begins with it."""
    last = PurePosixPath(folder).name
    return f"{folder}/{name.removeprefix('./').removeprefix(f'{last}/')}"


def _extracted(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    file = tar.extractfile(member)
    assert file is not None
    return file


def _require_end(tar: tarfile.TarFile) -> None:
    """Raise ReadError unless reading stopped at zeros or at the end of the file: tarfile also stops at damage."""
    assert tar.fileobj is not None
    tar.fileobj.seek(tar.offset)
    if any(tar.fileobj.read(tarfile.BLOCKSIZE)):
        raise tarfile.ReadError(f"there is no header at byte {tar.offset:,}")


def _read(opened: Callable[[Any], Any], member: Any, size: int) -> bytes:
    # The declared size may be wrong, but bounds the read.
    if size > _LARGEST_MEMBER:
        raise OSError(f"it has {size:,} bytes, more than {_LARGEST_MEMBER >> 20} MiB: unpack the archive")
    with opened(member) as file:
        content: bytes = file.read(size + 1)
    if len(content) != size:
        raise OSError(f"it should have {size:,} bytes, and has {'more' if len(content) > size else len(content)}")
    return content
