"""The classes of ImageNet's validation images, which come in one folder: from the development kit or a list."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path, PurePosixPath

import numpy as np

from .._core.errors import DataError, shortened, wrap_library_errors
from ..data.files import exists, require_readable

TRUTH = "ILSVRC2012_validation_ground_truth.txt"
_CLASSES = "meta.mat"
_KIT = "ILSVRC2012_devkit_t12"
_ADDRESS = "https://image-net.org/"
# Possible locations: the folder of the images, its parent, or a given folder.
_PLACES = ("", "data", _KIT, f"{_KIT}/data")
_IMAGE = re.compile(r"ILSVRC2012_(val|test)_(\d{8})\.jpe?g", re.IGNORECASE)
_CLASS = re.compile(r"n\d{8}")
# A line of a list, such as "ILSVRC2012_val_00000001.JPEG n01751748", possibly followed by more, such as Kaggle's boxes.
_LINE = re.compile(r"ILSVRC2012_val_(\d{8})(?:\.jpe?g)?[\s,]+(n\d{8})(?:[\s,].*)?", re.IGNORECASE)
# The file of the kit has 100 kB, and lists have 2 MB.
_LARGEST_FILE = 1 << 26


def with_classes(names: Sequence[str], labels: Path | None, near: Path) -> list[str]:
    """Return image names with class folders, for validation images without one.

    ``val/ILSVRC2012_val_00000001.JPEG`` becomes ``val/n01751748/ILSVRC2012_val_00000001.JPEG``. ``labels`` is the
    development kit, its ground truth file, or a list of images and classes; if None, the ground truth is searched
    ``near`` the images. DataError gives instructions if the classes are unknown.
    """
    found = {i: match for i, name in enumerate(names) if (match := _unsorted(name))}
    unlabelled = next((names[i] for i, match in found.items() if match[1].lower() == "test"), None)
    if unlabelled is not None:
        raise DataError(f"{unlabelled} is a test image of ImageNet, whose classes are not published: leave these out.")
    if not found:
        if labels is not None:
            raise DataError(
                f"labels= is for ImageNet's validation images, such as ILSVRC2012_val_00000001.JPEG, but in {near} "
                "all of them are in class folders, or there are none."
            )
        return list(names)
    file = _file(labels, near, names[next(iter(found))])
    classes, sorted_names = _read(file), list(names)
    for i, match in found.items():
        number = int(match[2])
        if number not in classes:
            raise DataError(f"{file} has classes of {len(classes):,} images, but not of {names[i]}.")
        path = PurePosixPath(names[i])
        folder = path.parent if path.parent.name == "val" else path.parent / "val"
        sorted_names[i] = str(folder / classes[number] / path.name)
    return sorted_names


def _unsorted(name: str) -> re.Match[str] | None:
    """Match the name of an image that is not in a class folder."""
    path = PurePosixPath(name)
    return None if _CLASS.fullmatch(path.parent.name) else _IMAGE.fullmatch(path.name)


def _file(labels: Path | None, near: Path, image: str) -> Path:
    """Return the ground truth file, or a list."""
    if labels is not None and not labels.is_dir():
        require_readable(labels)
        return labels
    roots = (near, near.parent) if labels is None else (labels,)
    for root, place in product(roots, _PLACES):
        if exists(root / place / TRUTH):
            return root / place / TRUTH
    if labels is not None:
        raise DataError(f"There is no {TRUTH} in {labels}, nor in its folder data: name the folder of {_KIT}.")
    raise DataError(
        f"{image} is a validation image of ImageNet that is not in a class folder such as val/n01440764: download "
        f"{_KIT} from {_ADDRESS}, unpack it in {near}, or name its folder with labels=."
    )


def _read(path: Path) -> Mapping[int, str]:
    """Return the class of every image, by its number."""
    lines = list(_lines(path))
    if path.name == TRUTH or (lines and all(line.isascii() and line.isdigit() for line in lines)):
        classes = _read_classes(path.with_name(_CLASSES))
        unknown = next((k for k, line in enumerate(lines, start=1) if line not in classes), None)
        if unknown is not None:
            raise DataError(
                f"{path}, line {unknown}: {shortened(lines[unknown - 1])} is not the number of a class in {_CLASSES}."
            )
        return {number: classes[line] for number, line in enumerate(lines, start=1)}
    matches = [_LINE.fullmatch(line) for line in lines]
    for number, match in enumerate(matches, start=1):
        # The first line may be a header.
        if match is None and number > 1:
            raise DataError(
                f"{path}, line {number}: expected an image and its class, as in ILSVRC2012_val_00000001 "
                f"n01751748, not {shortened(lines[number - 1])}."
            )
    return {int(match[1]): match[2].lower() for match in matches if match}


def _lines(path: Path) -> Iterator[str]:
    _require_small(path)
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{path} is not a list of classes: it is not text.") from None
    return (line.strip() for line in text.rstrip().split("\n"))


def _read_classes(path: Path) -> dict[str, str]:
    """Return the names of classes (n01440764) by their numbers, from the list of the kit."""
    if not exists(path):
        raise DataError(f"There is no {path}, which names the classes: it belongs next to {TRUTH}.")
    _require_small(path)
    from scipy.io import loadmat

    with wrap_library_errors(str(path), "is not the list of ImageNet's classes"):
        synsets = loadmat(path, squeeze_me=True, variable_names=["synsets"])["synsets"]
        numbers, names = (np.atleast_1d(synsets[key]) for key in ("ILSVRC2012_ID", "WNID"))
        classes = {str(int(number)): str(name) for number, name in zip(numbers, names, strict=True)}
    bad = next((name for name in classes.values() if not _CLASS.fullmatch(name)), None)
    if bad is not None:
        raise DataError(f"{path} is not the list of ImageNet's classes: {shortened(bad)} is not a class.")
    return classes


def _require_small(path: Path) -> None:
    require_readable(path)
    if path.stat().st_size > _LARGEST_FILE:
        raise DataError(f"{path} has {path.stat().st_size:,} bytes, too many for a list of classes.")
