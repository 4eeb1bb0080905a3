"""Images: where they are (a folder, a pattern, an archive, a list), and the numbers that a network takes of each."""

from __future__ import annotations

import glob
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from io import BytesIO
from lzma import LZMAError
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._core.errors import DataError, import_optional
from .._core.urls import shown
from ..data.files import exists, file_identity, natural_order, require_readable

IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
_TAR_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_ARCHIVE_ERRORS = (tarfile.TarError, zipfile.BadZipFile, zlib.error, LZMAError, EOFError, OSError)
# Of one image, compressed: more is damage or malice.
_LARGEST_MEMBER = 1 << 29
RESAMPLING = ("lanczos", "bicubic", "bilinear", "box")
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
# Formats that are plain data: others of Pillow's start programs.
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
# With 3 bytes each and copies it is some 2 GB; photographs have up to 100 million.
_MOST_PIXELS = 178_000_000
_LARGEST_OF_16_BITS = 65_535

Content: TypeAlias = Path | bytes | DataError
"""Where an image is, its bytes, or why they cannot be read."""


class Images:
    """Images in a fixed order: files, or the members of an archive, which is read from its beginning.

    Parameters
    ----------
    where : str
        Where they are, for messages; the path of an archive.
    names : list of str
        The name of each.
    paths : list of path, default=None
        The files. By default they are in an archive.

    Attributes
    ----------
    where : str
        Where they are, for messages.
    names : list of str
        The name of each.
    """

    def __init__(self, where: str, names: list[str], paths: list[Path] | None = None) -> None:
        self.where = where
        self.names = names
        self._paths = paths
        for name in names:
            # Names are written one to a line.
            if len(name.splitlines()) != 1:
                raise DataError(f"The name of the image {name!r} is empty or has a line break in it: rename it.")
        if not names:
            raise DataError(f"There are no images in {where}: names of images end in {', '.join(IMAGE_ENDINGS)}.")

    def __len__(self) -> int:
        return len(self.names)

    def fingerprint(self) -> str:
        """Return a string that changes if the images change."""
        digest = sha256()
        for entry in self._identities():
            digest.update(repr(entry).encode(errors="surrogateescape"))
        return digest.hexdigest()

    def contents(self, start: int = 0) -> Iterator[tuple[str, Content]]:
        """Yield the images from one on, each with its place, for messages: paths, or bytes from an archive."""
        if self._paths is not None:
            yield from ((str(path), path) for path in self._paths[start:])
            return
        with closing(_members(Path(self.where))) as members:  # type: ignore[type-var]
            for i, (name, read) in enumerate(members):
                if i >= start:
                    where = f"{self.where}:{name}"
                    yield where, _content(where, read)

    def _identities(self) -> Iterator[object]:
        if self._paths is None:
            yield file_identity(Path(self.where))
            yield from self.names
            return
        for name, path in zip(self.names, self._paths, strict=True):
            if not exists(path):
                raise FileNotFoundError(f"There is no file {shown(path)}.")
            yield name, file_identity(path)


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
        return Images("the list", [str(path) for path in paths], paths)
    path = Path(images)
    if glob.has_magic(str(path)) and not exists(path):
        found = _matching(str(path))
        return Images(shown(str(path)), [file.as_posix() for file in found], found)
    require_readable(path)
    name = path.name.lower()
    if path.is_dir():
        found = _matching(str(Path(glob.escape(str(path)), "**", "*")))
        return Images(str(path), [file.relative_to(path).as_posix() for file in found], found)
    if name.endswith((*_TAR_ENDINGS, ".zip")):
        return Images(str(path), [name for name, _ in _members(path)])
    if name.endswith(IMAGE_ENDINGS):
        return Images(str(path), [path.name], [path])
    return _listed(path)


def _matching(pattern: str) -> list[Path]:
    # Unlike Path.glob it leaves out what is hidden.
    found = map(Path, glob.glob(pattern, recursive=True))  # noqa: PTH207
    return sorted((path for path in found if _is_image(path.name) and path.is_file()), key=natural_order)


def _listed(path: Path) -> Images:
    try:
        lines = path.read_text("utf-8").split("\n")
    except UnicodeDecodeError:
        raise DataError(
            f"{path} is none of what images can be in: a folder, a .tar or .zip archive, an image, or a list in UTF-8."
        ) from None
    names = [line.strip() for line in lines if line.strip()]
    return Images(str(path), names, [path.parent / name for name in names])


def _is_image(name: str) -> bool:
    base = name.rsplit("/", 1)[-1]
    return base.lower().endswith(IMAGE_ENDINGS) and not base.startswith(".")


def _members(path: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Yield the name of each image in an archive, and a function that reads it, valid until the next."""
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


@dataclass(frozen=True)
class Preprocessing:
    """How an image becomes numbers: ``(RGB / 255 - mean) / std`` at a given size, whatever its own shape.

    Attributes
    ----------
    size : tuple of int
        Height and width.
    resample : {"lanczos", "bicubic", "bilinear", "box"}
        How pixels are made of others; when an image becomes smaller all of them count.
    mean, std : tuple of float
        Of red, green and blue.
    """

    size: tuple[int, int]
    resample: str = "lanczos"
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD

    def __post_init__(self) -> None:
        if self.resample not in RESAMPLING:
            raise ValueError(f"resample={self.resample!r} is not one of {', '.join(RESAMPLING)}.")
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) != 3 or not np.isfinite(values).all():
                raise ValueError(f"{name}= takes three numbers, of red, green and blue, not {values}.")
        if min(self.std) <= 0:
            raise ValueError(f"std= takes three numbers above 0, not {self.std}.")

    def __call__(self, content: Content, where: str) -> NDArray[np.float32]:
        """Return the numbers of an image, as (3, height, width)."""
        Image = import_optional("PIL.Image", "Reading images", "vision")
        height, width = self.size
        small = read_image(content, where).resize((width, height), getattr(Image.Resampling, self.resample.upper()))
        mean, std = np.array(self.mean), np.array(self.std)
        factor, shift = (1 / (255 * std)).astype(np.float32), (-mean / std).astype(np.float32)
        return np.ascontiguousarray((np.asarray(small) * factor + shift).transpose(2, 0, 1))


def read_image(content: Content, where: str) -> Any:
    """Return an image of Pillow in RGB, 8 bits each, upright.

    Grey, palettes and CMYK are converted, 16 bits of grey scaled to 8, what is transparent becomes white, and of
    several frames the first is taken. Profiles of colours are left alone.

    Parameters
    ----------
    content : path or bytes
        A file, or what is in it. If it is a DataError, that is raised.
    where : str
        The name of the image, for messages.
    """
    Image = import_optional("PIL.Image", "Reading images", "vision")
    if isinstance(content, DataError):
        raise content
    try:
        with Image.open(BytesIO(content) if isinstance(content, bytes) else content, formats=_FORMATS) as image:
            return _in_rgb(image, where)
    except (DataError, MemoryError):
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise DataError(f"{where} has more pixels than an image should: make it smaller.") from None
    except Image.UnidentifiedImageError:
        raise DataError(f"{where} is not an image in a format that is read here: {', '.join(_FORMATS)}.") from None
    except Exception as error:  # noqa: BLE001
        # Decoders raise whatever they come across.
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise DataError(f"{where} is damaged, or cannot be read: {reason}.") from None


def _in_rgb(image: Any, where: str) -> Any:
    Image, ImageOps = (import_optional(name, "Reading images", "vision") for name in ("PIL.Image", "PIL.ImageOps"))
    # Before memory is allocated.
    if image.width * image.height > _MOST_PIXELS:
        raise DataError(f"{where} has {image.width:,} x {image.height:,} pixels, too many: make it smaller.")
    image.load()
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I"):
        values = np.asarray(image)
        if values.min() < 0 or values.max() > _LARGEST_OF_16_BITS:
            raise DataError(f"{where} has values beyond 16 bits: save it with 8 or 16 bits.")
        # Conversion by Pillow would clip at 255.
        return Image.fromarray(np.rint(values / 257).astype(np.uint8)).convert("RGB")
    if image.mode == "F":
        raise DataError(f"{where} holds fractions, which say nothing of black and white: save it with 8 or 16 bits.")
    if image.mode.endswith(("A", "a")) or "transparency" in image.info:
        # Transparent pixels may have any colour.
        visible = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", visible.size, "white"), visible).convert("RGB")
    return image.convert("RGB")
