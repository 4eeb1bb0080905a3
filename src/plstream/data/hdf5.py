"""HDF5 datasets: memory-mapped if contiguous, otherwise read by h5py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .._core.errors import DataError, import_optional, usable_dtype, wrap_library_errors
from .._core.remote import AnyPath
from .array_reader import ArrayReader, ReadRows, choose_array, mapped_reader, require_shape, rows_of
from .reader import OpenOptions, Reader

# Chunks are read once, as a whole, and need not be cached. HDF5 2 caches 8 MiB by default.
_CACHE_BYTES = 1 << 20
# HDF5 itself follows at most 16 links in a row.
_MOST_LINKS = 16


def open_hdf5(path: AnyPath, where: str, options: OpenOptions) -> Reader:
    """Open a dataset: the one named, or else the only one."""
    h5py = import_optional("h5py", f"Reading {path}")
    with _opened(path) as file, wrap_library_errors(where):
        keys: list[str] = []
        file.visititems(lambda name, item: keys.append(name) if isinstance(item, h5py.Dataset) else None)
        key = None if options.key is None else options.key.strip("/")
        leaves_file = key is not None and _leaves_file(h5py, file, key)
        # Soft links are not among the keys.
        if key is not None and (leaves_file or isinstance(file.get(key), h5py.Dataset)):
            keys.append(key)
        key = choose_array(key, keys, where, "dataset")
        where = f"{where}:{key}"
        dataset = None if leaves_file else file[key]
        if dataset is None or dataset.external or dataset.is_virtual:
            # An untrusted file could name any other file of this machine.
            raise DataError(f"{where} has its values in other files, which are not read: copy them into one file.")
        require_shape(where, dataset.shape or (0,))
        is_text = h5py.check_string_dtype(dataset.dtype) is not None
        if not is_text:
            usable_dtype(dataset.dtype, where)
        # Some types are converted when read.
        is_plain = not is_text and h5py.h5t.py_create(dataset.dtype, logical=True) == dataset.id.get_type()
        offset = dataset.id.get_offset() if dataset.chunks is None and is_plain else None
        if offset is not None and isinstance(path, Path):
            return mapped_reader(path, dataset.dtype, dataset.shape, offset, where)
        return ArrayReader(
            where,
            dataset.shape,
            np.dtype(str) if is_text else dataset.dtype,
            partial(_dataset, path, key, where, is_text=is_text),
            chunks=dataset.chunks,
            path=path,
            slow=not isinstance(path, Path) or bool(dataset.id.get_create_plist().get_nfilters()),
        )


def _leaves_file(h5py: Any, file: Any, key: str) -> bool:
    """Return whether the path to a dataset contains a link to another file.

    Such links are not followed: the file they name would be opened, and opening a pipe blocks.
    """
    group, names, n_followed = file.id, key.encode().split(b"/"), 0
    while names:
        name = names.pop(0)
        if name in {b"", b"."}:
            continue
        if not isinstance(group, h5py.h5g.GroupID) or not group.links.exists(name):
            return False
        kind = group.links.get_info(name).type
        if kind == h5py.h5l.TYPE_EXTERNAL:
            return True
        if kind == h5py.h5l.TYPE_HARD:
            group = h5py.h5o.open(group, name)
            continue
        n_followed += 1
        if n_followed > _MOST_LINKS:
            return False
        path = group.links.get_val(name)
        group, names = file.id if path.startswith(b"/") else group, path.split(b"/") + names
    return False


@contextmanager
def _opened(path: AnyPath) -> Iterator[Any]:
    h5py = import_optional("h5py", f"Reading {path}")
    with wrap_library_errors(str(path), "is not an HDF5 file, or damaged"):
        file = h5py.File(path if isinstance(path, Path) else path.open("rb"), "r", rdcc_nbytes=_CACHE_BYTES)
    with file:
        yield file


@contextmanager
def _dataset(path: AnyPath, key: str, where: str, *, is_text: bool) -> Iterator[ReadRows]:
    with _opened(path) as file:
        with wrap_library_errors(where):
            dataset = file[key].asstr() if is_text else file[key]
        yield rows_of(dataset)
