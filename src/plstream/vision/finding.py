"""Which images there are: in a folder, of a pattern, in an archive, or in a list."""

from __future__ import annotations

import glob
import os
import tarfile
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from hashlib import sha256
from lzma import LZMAError
from pathlib import Path
from typing import Any, TypeAlias

from .._core.errors import DataError
from .._core.urls import shown
from ..data.files import exists, file_identity, natural_order, require_readable

IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
_TAR_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_ARCHIVE_ERRORS = (tarfile.TarError, zipfile.BadZipFile, zlib.error, LZMAError, EOFError, OSError)
# Of one image, compressed: more is damage or malice.
_LARGEST_MEMBER = 1 << 29

Content: TypeAlias = Path | bytes | DataError
"""Where an image is, its bytes, or why they cannot be read."""


class Images(ABC):
    """Images in an order that stays.

    Attributes
    ----------
    where : str
        Where they are, for messages.
    names : list of str
        The name of each.
    """

    def __init__(self, where: str, names: list[str]) -> None:
        self.where = where
        self.names = names
        for name in names:
            # Names are written one to a line.
            if len(name.splitlines()) != 1:
                raise DataError(f"The name of the image {name!r} is empty or has a line break in it: rename it.")
        if not names:
            raise DataError(f"There are no images in {where}: names of images end in {', '.join(IMAGE_ENDINGS)}.")

    def __len__(self) -> int:
        return len(self.names)

    def fingerprint(self) -> str:
        """Return a text that is another one if the images are not the same any more."""
        digest = sha256()
        for entry in self._identities():
            digest.update(repr(entry).encode(errors="surrogateescape"))
        return digest.hexdigest()

    @abstractmethod
    def contents(self, start: int = 0) -> Iterator[tuple[str, Content]]:
        """Yield the images from one on, each with where it is, for messages."""

    @abstractmethod
    def _identities(self) -> Iterator[object]:
        """Yield what tells the images from others."""


class ImageFiles(Images):
    """Images in files of their own."""

    def __init__(self, where: str, names: list[str], paths: list[Path]) -> None:
        super().__init__(where, names)
        self._paths = paths

    def contents(self, start: int = 0) -> Iterator[tuple[str, Content]]:
        """Yield the paths from one on."""
        return ((str(path), path) for path in self._paths[start:])

    def _identities(self) -> Iterator[object]:
        for name, path in zip(self.names, self._paths, strict=True):
            if not exists(path):
                raise FileNotFoundError(f"There is no file {shown(path)}.")
            yield name, file_identity(path)


class ImageArchive(Images):
    """Images in a .tar or .zip file, which is read from its beginning and never unpacked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        super().__init__(str(path), [name for name, _ in _members(path)])

    def contents(self, start: int = 0) -> Iterator[tuple[str, Content]]:
        """Yield the bytes of images from one on."""
        with closing(_members(self._path)) as members:  # type: ignore[type-var]
            for i, (name, read) in enumerate(members):
                if i >= start:
                    where = f"{self._path}:{name}"
                    yield where, _content(where, read)

    def _identities(self) -> Iterator[object]:
        yield file_identity(self._path)
        yield from self.names


def find_images(images: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> Images:
    """Find images, in an order that is the same every time.

    Parameters
    ----------
    images : str, path-like or iterable of such
        One of: a folder, with all folders in it; a pattern such as ``"faces/*/*.jpg"``; an archive (.tar, also
        compressed, or .zip); an image; a text file with a path in each line, relative to its folder; or the paths
        themselves. Folders and patterns give their images by name, with 2 before 10; all else is taken in its order.

    Returns
    -------
    found : Images
        With ``names``: relative to the folder, as found, as in the archive, or as in the list.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from plstream.vision import find_images
    >>> with TemporaryDirectory() as folder:
    ...     for name in ("10.png", "2.png", "notes.md"):
    ...         Path(folder, name).touch()
    ...     find_images(folder).names
    ['2.png', '10.png']
    """
    if not isinstance(images, str | os.PathLike):
        paths = [Path(path) for path in images]
        return ImageFiles("the list", [str(path) for path in paths], paths)
    path = Path(images)
    if glob.has_magic(str(path)) and not exists(path):
        return _matching(str(path))
    require_readable(path)
    name = path.name.lower()
    if path.is_dir():
        return _in_folder(path)
    if name.endswith((*_TAR_ENDINGS, ".zip")):
        return ImageArchive(path)
    if name.endswith(IMAGE_ENDINGS):
        return ImageFiles(str(path), [path.name], [path])
    return _listed(path)


def _matching(pattern: str) -> Images:
    # Unlike Path.glob it leaves out what is hidden.
    found = glob.glob(pattern, recursive=True)  # noqa: PTH207
    paths = sorted(filter(_is_image_file, map(Path, found)), key=natural_order)
    return ImageFiles(shown(pattern), [path.as_posix() for path in paths], paths)


def _in_folder(folder: Path) -> Images:
    found = _matching(str(Path(glob.escape(str(folder)), "**", "*")))
    assert isinstance(found, ImageFiles)
    return ImageFiles(str(folder), [path.relative_to(folder).as_posix() for path in found._paths], found._paths)


def _listed(path: Path) -> Images:
    try:
        lines = path.read_text("utf-8").split("\n")
    except UnicodeDecodeError:
        raise DataError(
            f"{path} is none of what images can be in: a folder, a .tar or .zip archive, an image, or a list in UTF-8."
        ) from None
    names = [line.strip() for line in lines if line.strip()]
    return ImageFiles(str(path), names, [path.parent / name for name in names])


def _is_image_file(path: Path) -> bool:
    return _is_image(path.name) and path.is_file()


def _is_image(name: str) -> bool:
    base = name.rsplit("/", 1)[-1]
    return base.lower().endswith(IMAGE_ENDINGS) and not base.startswith(".")


def _members(path: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Yield the images in an archive: the name, and what reads it until the next is asked for."""
    try:
        if path.name.lower().endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                for info in filter(lambda info: _is_image(info.filename), archive.infolist()):
                    yield info.filename, partial(_read, archive.open, info)
        else:
            with tarfile.open(path) as tar:
                for member in filter(lambda member: member.isfile() and _is_image(member.name), tar):
                    yield member.name, partial(_read, tar.extractfile, member)
    except _ARCHIVE_ERRORS as error:
        raise DataError(f"{path} is no archive, damaged or cut off: {error}.") from None


def _read(opened: Callable[[Any], Any], member: Any) -> bytes:
    with opened(member) as file:
        content: bytes = file.read(_LARGEST_MEMBER + 1)
    if len(content) > _LARGEST_MEMBER:
        raise OSError(f"it has more than {_LARGEST_MEMBER >> 20} MiB")
    return content


def _content(where: str, read: Callable[[], bytes]) -> Content:
    try:
        return read()
    except (*_ARCHIVE_ERRORS, RuntimeError) as error:
        # RuntimeError: encrypted, or compressed in a way that is not known here.
        return DataError(f"{where} cannot be read: {error}.")
