"""Datasets of HDF5 files: mapped if they lie in one piece, else read by h5py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._core.errors import DataError, import_optional, usable_dtype, wrap_library_errors
from .array_reader import ArrayReader, mapped_reader, require_shape
from .columns import listed
from .reader import OpenOptions, Reader

# Chunks are read once, as a whole: they need not be kept. HDF5 2 would keep 8 MiB.
_CACHE_BYTES = 1 << 20


def open_hdf5(path: Path, where: str, options: OpenOptions) -> Reader:
    """Open a dataset: the one named, or else the only one."""
    h5py, key = import_optional("h5py", f"Reading {path}"), options.key
    with _opened(path) as file, wrap_library_errors(where):
        keys: list[str] = []
        file.visititems(lambda name, item: keys.append(name) if isinstance(item, h5py.Dataset) else None)
        if key is None and len(keys) == 1:
            key = keys[0]
        key = None if key is None else key.strip("/")
        if key is not None and isinstance(file.get(key), h5py.Dataset):
            keys.append(key)
        if key is None or key not in keys:
            asked = "Say which dataset of" if key is None else f"There is no dataset {key!r} in"
            raise DataError(f"{asked} {where}: it has {listed(keys) or 'none'}.")
        dataset, where = file[key], f"{where}:{key}"
        if dataset.external or dataset.is_virtual or dataset.file.filename != file.filename:
            # A file from a stranger could name any other file of this machine.
            raise DataError(f"{where} has its numbers in other files, which are not read: copy them into one file.")
        require_shape(where, dataset.shape or (0,))
        is_text = h5py.check_string_dtype(dataset.dtype) is not None
        if not is_text:
            usable_dtype(dataset.dtype, where)
        offset = dataset.id.get_offset() if dataset.chunks is None and not is_text else None
        if offset is not None:
            return mapped_reader(path, dataset.dtype, dataset.shape, offset, where)
        return ArrayReader(
            where,
            dataset.shape,
            np.dtype(str) if is_text else dataset.dtype,
            partial(_dataset, path, key, where, is_text=is_text),
            chunks=dataset.chunks,
            path=path,
            slow=bool(dataset.id.get_create_plist().get_nfilters()),
        )


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    h5py = import_optional("h5py", f"Reading {path}")
    with wrap_library_errors(str(path), "is not an HDF5 file, or damaged"):
        file = h5py.File(path, "r", rdcc_nbytes=_CACHE_BYTES)
    with file:
        yield file


@contextmanager
def _dataset(path: Path, key: str, where: str, *, is_text: bool) -> Iterator[Any]:
    with _opened(path) as file:
        with wrap_library_errors(where):
            dataset = file[key].asstr() if is_text else file[key]
        yield dataset
