"""Feature files: rows of features, with the paths and labels of the rows next to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np

from ..._core.errors import DataError, usable_dtype
from ..._core.types import Array
from ...data.columns import listed
from ...data.numpy_files import members
from ...data.opening import read_array

SUFFIXES = (".npy", ".npz")
_BESIDE = ("y", "fold", "test", "pairs", "same")


class FeatureFile:
    """A .npz file with features X or F and arrays about its rows, or a .npy file with such files next to it.

    The image paths of ``vgg16.npy`` are in ``vgg16.txt``, one per line, in the order of the rows, and labels in
    ``vgg16.y.npy`` (likewise ``vgg16.fold.npy``, ``vgg16.test.npy``). ``X.npy`` may come with ``y.npy``.

    Its ``features`` are stored unchanged, possibly as a memory map; ``files`` are the paths of the images of the
    rows, with slashes, or None.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.stem
        self._arrays = _arrays_of(path)
        self.features = self._features()
        self.files = self._files()

    def __contains__(self, key: str) -> bool:
        return key in self._arrays

    def __getitem__(self, key: str) -> Array:
        """Return an array by name, with one entry (or row) per row of features, or of pairs."""
        return read_array(*self._arrays[key])

    def per_row(self, key: str) -> Array:
        """Return an array by name; raise DataError unless it has one entry per row."""
        values, n_rows = self[key], len(self.features)
        if values.shape != (n_rows,):
            raise DataError(f"{self.path}: {key} has shape {values.shape}, but there are {n_rows:,} rows.")
        return values

    def unnamed(self, what: str) -> DataError:
        """Return the error for rows without names."""
        return DataError(
            f"{self.path} has no names of {what}s: list one path per row in "
            f"{self.path.with_suffix('.txt').name} next to it."
        )

    def _features(self) -> Array:
        name = next((name for name in ("X", "F") if name in self), None)
        if name is None:
            raise DataError(f"{self.path} has no array X or F of features: it has {listed(self._arrays)}.")
        features = self[name]
        if features.ndim != 2:
            raise DataError(f"{self.path} must contain rows of features, but has an array of shape {features.shape}.")
        return features

    def _files(self) -> list[str] | None:
        listing = self.path.with_suffix(".txt")
        if "files" in self:
            files = [str(name) for name in self["files"]]
        elif self.path.suffix == ".npy" and listing.exists():
            files = read_lines(listing)
        else:
            return None
        if len(files) != len(self.features):
            raise DataError(f"{self.path} has {len(self.features):,} rows, but paths of {len(files):,} images.")
        twice = [name for name, count in Counter(files).items() if count > 1]
        if twice:
            raise DataError(f"{self.path} has more than one row of {listed(twice)}.")
        return [name.replace("\\", "/") for name in files]


def _arrays_of(path: Path) -> dict[str, tuple[Path, str | None]]:
    """Return the locations of arrays, by name."""
    if path.suffix == ".npz":
        return {name: (path, name) for name in members(path)}
    found: dict[str, tuple[Path, str | None]] = {"X": (path, None)}
    for key in _BESIDE:
        other = path.with_name(f"{key}.npy" if path.stem == "X" else f"{path.stem}.{key}.npy")
        if other.exists():
            found[key] = other, None
    return found


def feature_files(folder: Path) -> list[Path]:
    """Return the feature files of a folder, in order, without those that belong to another."""
    found = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    others = {path for file in found if file.suffix == ".npy" for path, _ in _arrays_of(file).values() if path != file}
    found = [path for path in found if path not in others]
    for first, second in pairwise(found):
        if first.stem == second.stem:
            raise DataError(f"{first} and {second.name} have the same name: rename one of them.")
    return found


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file, without empty ones at the end."""
    # File names need not be valid UTF-8.
    return path.read_text(encoding="utf-8", errors="surrogateescape").rstrip().split("\n")


class StackedRows:
    """Concatenated rows of arrays, converted to float32 or float64 on access.

    Float16 features and pixels stay in their file: ImageNet's features are larger than memory, and take half the
    space of float32.
    """

    ndim = 2

    def __init__(self, arrays: Sequence[Array], dtype: np.dtype[Any]) -> None:
        self._arrays = arrays
        self._ends = np.cumsum([len(array) for array in arrays])
        self.dtype = dtype
        self.shape = int(self._ends[-1]), arrays[0].shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | Array) -> Array:
        """Return rows, by a slice or by their numbers."""
        numbers = np.array(range(*rows.indices(len(self)))) if isinstance(rows, slice) else rows
        found = np.empty((len(numbers), self.shape[1]), self.dtype)
        places = np.searchsorted(self._ends, numbers, side="right")
        for place in np.unique(places):
            here, array = places == place, self._arrays[place]
            found[here] = array[numbers[here] - (self._ends[place] - len(array))]
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:  # noqa: FBT001
        return self[:].astype(self.dtype if dtype is None else dtype, copy=False)


def as_rows(arrays: Sequence[Array], where: str) -> Array:
    """Return concatenated rows of arrays as float32 or float64; a single array of these types is returned unchanged."""
    dtypes = [usable_dtype(array.dtype, where) for array in arrays]
    dtype: np.dtype[Any] = np.result_type(np.float32, *(np.float32 if of.itemsize < 4 else of for of in dtypes))
    if len(arrays) == 1 and arrays[0].dtype == dtype:
        return arrays[0]
    if len({array.shape[1] for array in arrays}) > 1:
        raise DataError(f"{where}: rows have {listed(map(str, (array.shape[1] for array in arrays)))} features.")
    # A task only needs row indexing.
    return cast("Array", StackedRows(arrays, dtype))
