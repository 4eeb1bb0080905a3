"""Zarr arrays in folders or zip files, in version 2 or 3 of the format."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from .._core.errors import DataError, import_optional, wrap_library_errors
from .._core.remote import AnyPath, RemotePath
from .array_reader import ArrayReader, ReadRows, choose_array, rows_of
from .reader import OpenOptions, Reader

_CHUNKS_AT_A_TIME = 10


def open_zarr(path: AnyPath, where: str, options: OpenOptions) -> Reader:
    """Open an array of a store: the one named, or else the only one."""
    if isinstance(path, RemotePath) and path.is_file():
        raise DataError(f"{where} is a remote zip file, but only local ones can be read: download it first.")
    with _opened(path) as root, wrap_library_errors(where):
        array, name = _array_in(root, where, options.key)
        # Strings are Python objects in version 2, and have their own type in version 3.
        is_text = array.dtype.kind == "T" or (array.dtype.kind == "O" and array.ndim == 1)
        reader = ArrayReader(
            name,
            array.shape,
            np.dtype(str) if is_text else array.dtype,
            partial(_array, path, where, options.key),
            chunks=array.chunks,
            chunks_at_a_time=_CHUNKS_AT_A_TIME,
            path=path / (options.key or "").strip("/") if path.is_dir() else path,
            slow=isinstance(path, RemotePath) or bool(_compressors(array)),
        )
        _require_whole_chunks(array, path, name)
    return reader


@contextmanager
def _opened(path: AnyPath) -> Iterator[Any]:
    """Open the root array or group of a store."""
    zarr = import_optional("zarr", f"Reading {path}")
    is_zip = path.is_file()
    with wrap_library_errors(str(path), "is not a Zarr store, or damaged"):
        store: Any = zarr.storage.ZipStore(str(path), mode="r") if is_zip else os.fspath(path)
        # Cached listings may be out of date.
        options = {"storage_options": {"use_listings_cache": False}} if isinstance(path, RemotePath) else {}
        root = zarr.open(store, mode="r", **options)
    try:
        yield root
    finally:
        if is_zip:
            store.close()


@contextmanager
def _array(path: AnyPath, where: str, key: str | None) -> Iterator[ReadRows]:
    with _opened(path) as root:
        with wrap_library_errors(where):
            array, _ = _array_in(root, where, key)
        yield rows_of(array)


def _array_in(root: Any, where: str, key: str | None) -> tuple[Any, str]:
    """Return the array, and its name in messages."""
    if not hasattr(root, "array_keys"):
        if key is not None and key != root.path:
            raise DataError(f"{where} is a single array, and has no array named {key!r}.")
        return root, where
    key = choose_array(None if key is None else key.strip("/"), _array_keys(root), where)
    return root[key], f"{where}:{key}"


def _array_keys(group: Any, prefix: str = "") -> list[str]:
    """Return the names of all arrays, including those of their groups."""
    keys = [prefix + name for name in sorted(group.array_keys())]
    for name in sorted(group.group_keys()):
        keys += _array_keys(group[name], f"{prefix}{name}/")
    return keys


def _require_whole_chunks(array: Any, path: AnyPath, where: str) -> None:
    """Raise DataError if a chunk of Blosc is truncated: Blosc would read beyond its end in memory."""
    last = str(_compressors(array)[-1:] if isinstance(_compressors(array), tuple) else _compressors(array))
    if "blosc" not in last.lower() or getattr(array, "shards", None) or not path.is_dir():
        return
    for chunk in (path / array.path).rglob("[!.]*"):
        if chunk.is_file() and chunk.name != "zarr.json":
            with chunk.ranges() if isinstance(chunk, RemotePath) else chunk.open("rb") as file:
                declared = int.from_bytes((file.read(16) or b"")[12:], "little")
            if declared != chunk.stat().st_size:
                raise DataError(f"{where} is damaged: {chunk.name} does not have the declared number of bytes.")


def _compressors(array: Any) -> Any:
    # Version 2 of the package has one compressor, version 3 a tuple of them.
    return array.compressors if hasattr(array, "compressors") else array.compressor
