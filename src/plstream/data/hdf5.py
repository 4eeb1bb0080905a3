"""Datasets of HDF5 files: mapped if they lie in one piece, else read by h5py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from .._core.errors import DataError, import_optional, usable_dtype, wrap_iteration, wrap_library_errors
from .._core.types import Array
from .columns import listed
from .numpy_files import mapped_array
from .table import Mapped, Matrix, Table, require_shape

# Chunks are read once, as a whole: they need not be kept. HDF5 2 would keep 8 MiB.
_CACHE_BYTES = 1 << 20


class Hdf5Table(Matrix):
    """A dataset in chunks, or compressed, or of text."""

    format: ClassVar[str] = "hdf5"
    path: Path

    def __init__(self, path: Path, key: str, dataset: Any, *, is_text: bool) -> None:
        kind = np.dtype(str) if is_text else dataset.dtype
        super().__init__(f"{path}:{key}", dataset.shape, kind, dataset.chunks)
        self.path, self.key = path, key
        self.slow = bool(dataset.id.get_create_plist().get_nfilters())
        self._is_text = is_text

    def rows(self, start: int, step: int) -> Iterator[Array]:
        """Yield rows, read from the file."""
        with opened(self.path) as file:
            with wrap_library_errors(self.where):
                dataset = file[self.key].asstr() if self._is_text else file[self.key]
            yield from wrap_iteration(self.slices(dataset, start, step), self.where)


class Hdf5Mapped(Mapped):
    """A dataset in one piece, which can be mapped like a .npy file."""

    format: ClassVar[str] = "hdf5"

    def __init__(self, path: Path, key: str, dataset: Any, offset: int) -> None:
        where = f"{path}:{key}"
        super().__init__(where, mapped_array(path, dataset.dtype, dataset.shape, offset, where))
        self.path = path


def open_hdf5(path: Path, key: str | None) -> Table:
    """Open a dataset: the one named, or else the only one."""
    with opened(path) as file, wrap_library_errors(str(path)):
        keys = dataset_keys(file)
        if key is None and len(keys) == 1:
            key = keys[0]
        key = None if key is None else key.strip("/")
        if key is not None and isinstance(file.get(key), import_optional("h5py", f"Reading {path}").Dataset):
            keys.append(key)
        if key is None or key not in keys:
            asked = "Say which dataset of" if key is None else f"There is no dataset {key!r} in"
            raise DataError(f"{asked} {path}: it has {listed(keys) or 'none'}.")
        dataset, where = file[key], f"{path}:{key}"
        require_shape(where, dataset.shape or (0,))
        is_text = import_optional("h5py", f"Reading {path}").check_string_dtype(dataset.dtype) is not None
        if not is_text:
            usable_dtype(dataset.dtype, where)
        in_one_piece = dataset.chunks is None and not (is_text or dataset.external or dataset.is_virtual)
        offset = dataset.id.get_offset() if in_one_piece else None
        if offset is None:
            return Hdf5Table(path, key, dataset, is_text=is_text)
        return Hdf5Mapped(path, key, dataset, offset)


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open an HDF5 file."""
    h5py = import_optional("h5py", f"Reading {path}")
    with wrap_library_errors(str(path), "is not an HDF5 file, or damaged"):
        file = h5py.File(path, "r", rdcc_nbytes=_CACHE_BYTES)
    with file:
        yield file


def dataset_keys(group: Any) -> list[str]:
    """Return the names of all datasets, with those of their groups."""
    h5py = import_optional("h5py", "HDF5")
    keys: list[str] = []
    group.visititems(lambda name, item: keys.append(name) if isinstance(item, h5py.Dataset) else None)
    return keys
