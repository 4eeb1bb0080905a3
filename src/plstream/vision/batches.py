"""Batches of small labelled images in the format of the downsampled ImageNet and CIFAR: pickles, or .npz files."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._core.errors import DataError
from .._core.progress import track
from .._core.types import Array
from ..data.columns import listed
from ..data.files import file_identity
from ..data.numpy_files import members
from ..data.opening import read_array
from .decoding import Content
from .pickles import read_pickle

# Names of the training files (with a number if they end in a dash), of the test file, and its kind.
_LAYOUTS = (("train_data_batch_", "val_data", "val"), ("data_batch_", "test_batch", "test"), ("train", "test", "test"))
_NUMBERS = range(1, 11)
_LABELS = ("labels", "fine_labels")
# First bytes of pickles: protocol 2 and later, and earlier ones.
_BEGINNINGS = (b"\x80", b"(")


class BatchFile(NamedTuple):
    """A file of a batch, and its purpose: "train", "val" or "test"."""

    path: Path
    part: str


def find_batches(place: Path) -> list[BatchFile]:
    """Return the batches of a folder, training batches first, by number; or a single batch file; or none."""
    folder = place if place.is_dir() else place.parent
    for train, test, part in _LAYOUTS:
        names = [f"{train}{number}" for number in _NUMBERS] if train.endswith("_") else [train]
        for suffix in ("", ".npz"):
            possible = [BatchFile(folder / f"{name}{suffix}", "train") for name in names]
            possible.append(BatchFile(folder / f"{test}{suffix}", part))
            found = [batch for batch in possible if place in (folder, batch.path) and _is_batch(batch.path)]
            if found:
                return found
    return []


def _is_batch(path: Path) -> bool:
    """Return whether a file is a batch: the names of CIFAR-100's files are common."""
    if not path.is_file() or path.name not in {"train", "test"}:
        return path.is_file()
    with path.open("rb") as file:
        return file.read(1) in _BEGINNINGS


def read_batch(path: Path) -> tuple[Array, Array]:
    """Return rows of pixels and their labels."""
    if path.suffix == ".npz":
        batch: dict[str, Any] = {key: read_array(path, key) for key in members(path) if key in {"data", *_LABELS}}
    else:
        batch = read_pickle(path)
    data, labels = batch.get("data"), next((batch[key] for key in _LABELS if key in batch), None)
    if isinstance(labels, list) and all(isinstance(label, int) for label in labels):
        labels = np.array(labels)
    if not isinstance(data, np.ndarray) or data.ndim != 2 or not isinstance(labels, np.ndarray) or labels.ndim != 1:
        raise DataError(f"{path} is not a batch of images: it must have data, rows of pixels, and labels, one per row.")
    if len(labels) != len(data):
        raise DataError(f"{path} has {len(data):,} images but {len(labels):,} labels.")
    return data, labels


class Batches:
    """The images of batches, one file in memory at a time.

    Image i of ``val_data``, of class 17, is named ``val/17/val_data_i``: the folder is the label.
    """

    def __init__(self, files: list[BatchFile]) -> None:
        self._files = files
        self._labels: list[NDArray[np.int64]] = []
        sizes = []
        for path, _ in track(files, "Listing batches", len(files), lambda _: 1, "batches"):
            data, labels = read_batch(path)
            if labels.dtype.kind not in "iu":
                raise DataError(f"{path}: labels must be integers, one per image.")
            sizes.append(_size(path, data))
            self._labels.append(labels.astype(np.int64))
            del data
        if len(set(sizes)) > 1:
            raise DataError(f"{files[0].path.parent}: images have {listed(map(str, sizes))} pixels per side.")
        self.size: int = sizes[0]
        """Height and width."""

    def names(self) -> list[str]:
        """Return the name of each image."""
        return [
            f"{part}/{label}/{path.stem}_{i}"
            for (path, part), labels in zip(self._files, self._labels, strict=True)
            for i, label in enumerate(labels.tolist())
        ]

    def contents(self, start: int) -> Iterator[tuple[str, Content]]:
        """Yield the images from an index on, each with its location for messages."""
        for (path, _), labels in zip(self._files, self._labels, strict=True):
            if start < len(labels):
                data, _ = read_batch(path)
                if len(data) != len(labels) or _size(path, data) != self.size:
                    raise DataError(f"{path} has changed while it was read.")
                for i in range(start, len(data)):
                    # Each row contains all of red, then green, then blue.
                    yield f"{path}, image {i}", data[i].reshape(3, self.size, self.size).transpose(1, 2, 0)
                del data
            start = max(0, start - len(labels))

    def identities(self) -> Iterator[object]:
        """Yield values that change if the images change."""
        yield from (file_identity(path) for path, _ in self._files)


def _size(path: Path, data: Array) -> int:
    size = math.isqrt(data.shape[1] // 3)
    if data.dtype != np.uint8 or 3 * size * size != data.shape[1] or not size:
        raise DataError(
            f"{path} has rows of {data.shape[1]:,} numbers of type {data.dtype}, where square images have three times "
            "as many uint8 as pixels (3,072 at 32 x 32)."
        )
    return size
