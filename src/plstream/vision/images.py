"""Locations of images: a folder, a pattern, an archive, a list, or batches."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path, PurePosixPath

from .._core.errors import DataError
from .._core.progress import track
from .._core.urls import shown
from .._core.warnings import warn_user
from ..data.columns import listed
from ..data.files import exists, natural_order, require_readable
from .archives import ARCHIVE_ENDINGS, IMAGE_ENDINGS, Archive, is_image
from .batches import Batches, find_batches
from .decoding import Content
from .ground_truth import with_classes


class Files:
    """Images in files; archives and batches have the same methods."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def contents(self, start: int) -> Iterator[tuple[str, Content]]:
        """Yield the images from an index on, each with its location for messages."""
        return ((str(path), path) for path in self.paths[start:])

    def identities(self) -> Iterator[object]:
        """Yield values that change if the images change."""
        for path in self.paths:
            if not exists(path):
                raise FileNotFoundError(f"There is no file {shown(path)}.")
            status = path.stat()
            yield status.st_size, status.st_mtime_ns


class Images:
    """Images in a fixed order, as found by :func:`find_images`.

    Attributes
    ----------
    where : str
        Location of the images, for messages.
    names : list of str
        Name of each image.
    size : int or None
        Height and width, if known and the same for all.
    """

    def __init__(self, where: str, names: list[str], store: Files | Archive | Batches, size: int | None = None) -> None:
        self.where = where
        self.names = names
        self.size = size
        self._store = store
        for name in names:
            # Names are written one per line.
            if len(name.splitlines()) != 1:
                raise DataError(f"The name of the image {name!r} is empty or has a line break in it: rename it.")
        if not names:
            raise DataError(f"There are no images in {where}: names of images end in {', '.join(IMAGE_ENDINGS)}.")

    def __len__(self) -> int:
        return len(self.names)

    def fingerprint(self) -> str:
        """Return a string that changes if the images change."""
        digest = sha256()
        for entry in (*self.names, *self._store.identities()):
            digest.update(repr(entry).encode(errors="surrogateescape"))
        return digest.hexdigest()

    def contents(self, start: int = 0) -> Iterator[tuple[str, Content]]:
        """Yield the images from an index on, each with its location for messages."""
        return self._store.contents(start)

    def by_folder(self) -> Images:
        """Return the images grouped by folder; those of an archive must be grouped already."""
        folders = self.folders()
        order = {folder: number for number, folder in enumerate(dict.fromkeys(folders))}
        numbers = sorted(range(len(self)), key=lambda i: order[folders[i]])
        if numbers == list(range(len(self))):
            return self
        if not isinstance(self._store, Files):
            torn = next(folders[number] for i, number in enumerate(numbers) if i != number)
            raise DataError(f"The images of {torn} in {self.where} are not contiguous: unpack the archive first.")
        paths = self._store.paths
        return Images(self.where, [self.names[i] for i in numbers], Files([paths[i] for i in numbers]), self.size)

    def folders(self) -> list[str]:
        """Return the folder of each image, with a trailing slash."""
        return [f"{PurePosixPath(name).parent}/" for name in self.names]


def find_images(
    images: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    labels: str | os.PathLike[str] | None = None,
) -> Images:
    """Find images, in a reproducible order.

    Parameters
    ----------
    images : str, path-like or iterable of these
        One of: a folder, including subfolders; a pattern such as ``"faces/*/*.jpg"``; an archive (.tar, also
        compressed, or .zip), perhaps with one .tar file per class; an image; a text file with one path per line,
        relative to its folder; a batch of the downsampled ImageNet or of CIFAR, or a folder of them; or the paths
        themselves. Folders and patterns are sorted by name, with 2 before 10; everything else keeps its order.
    labels : str or path-like, default=None
        The classes of ImageNet's validation images, which come without folders: the folder of the development kit,
        ``ILSVRC2012_validation_ground_truth.txt`` with ``meta.mat`` next to it, or a text file with an image and its
        class per line. By default the kit is searched near the images.

    Returns
    -------
    found : Images
        Its ``names`` are relative to the folder, as found, as in the archive, or as in the list. Names of ImageNet's
        validation images include the class folder; those of batches are like ``val/17/val_data_0``, with the label 17.

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
    found, near = _found(images)
    if near is not None or labels is not None:
        names = with_classes(found.names, None if labels is None else Path(labels), near or Path())
        found = Images(found.where, names, found._store, found.size)
    return found


def _found(images: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> tuple[Images, Path | None]:
    """Return images, and the folder of the images or of their archive; None for lists."""
    if not isinstance(images, str | os.PathLike):
        paths = [Path(path) for path in images]
        return Images("the list", [str(path) for path in paths], Files(paths)), None
    path = Path(images)
    if glob.has_magic(str(path)) and not exists(path):
        found = _matching(str(path))
        where = shown(str(path))
        return Images(where, [file.as_posix() for file in found], Files(found)), found[0].parent if found else None
    require_readable(path)
    batches = find_batches(path)
    if batches:
        parts = {batch.part for batch in batches}
        if path.is_dir() and len(parts) == 1:
            warn_user(f"{path} has only {parts.pop()} batches, so features of other batches will be missing.")
        store = Batches(batches)
        return Images(str(path), store.names(), store, store.size), None
    if path.is_dir():
        found = _matching(str(Path(glob.escape(str(path)), "**", "*")))
        if not found:
            archives = [file.name for file in sorted(path.iterdir()) if file.name.lower().endswith(ARCHIVE_ENDINGS)]
            if archives:
                raise DataError(
                    f"There are only archives in {path}, no images: {listed(archives)}. Name one of the archives, or a "
                    ".tar of all."
                )
        return Images(str(path), [file.relative_to(path).as_posix() for file in found], Files(found)), path
    if path.name.lower().endswith(ARCHIVE_ENDINGS):
        archive = Archive(path)
        return Images(str(path), archive.names(), archive), path.parent
    return _listed(path), None


def _matching(pattern: str) -> list[Path]:
    # Unlike Path.glob, this ignores hidden files.
    found = track(glob.iglob(pattern, recursive=True), "Looking for images", None, lambda _: 1, "files")  # noqa: PTH207
    paths = (Path(name) for name in found if is_image(Path(name).name))
    return sorted((path for path in paths if path.is_file()), key=natural_order)


def _listed(path: Path) -> Images:
    """Return the images listed in a file, or the file itself if it is an image."""
    if is_image(path.name):
        return Images(str(path), [path.name], Files([path]))
    try:
        lines = path.read_text("utf-8").split("\n")
    except UnicodeDecodeError:
        raise DataError(
            f"{path} does not contain images: expected a folder, a .tar or .zip archive, an image, batches of "
            "ImageNet or CIFAR under their names, or a list in UTF-8."
        ) from None
    names = [line.strip() for line in lines if line.strip()]
    return Images(str(path), names, Files([path.parent / name for name in names]))
