"""Arrays of Zarr stores, folders or zip files, of version 2 or 3 of the format."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from .._core.errors import DataError, import_optional, wrap_iteration, wrap_library_errors
from .._core.types import Array
from .columns import listed
from .files import file_identity
from .table import Matrix

_MARKS = (".zarray", ".zgroup", "zarr.json")


class ZarrTable(Matrix):
    """An array of a store."""

    format: ClassVar[str] = "zarr"
    chunks_at_a_time = 10
    path: Path

    def __init__(self, path: Path, key: str | None) -> None:
        self.path = path
        with opened(path) as root, wrap_library_errors(str(path)):
            array, where = _array_in(root, path, key)
            # Text is of Python objects in version 2, and of a type of its own in version 3.
            is_text = array.dtype.kind == "T" or (array.dtype.kind == "O" and array.ndim == 1)
            super().__init__(where, array.shape, np.dtype(str) if is_text else array.dtype, array.chunks)
            self.key = key
            self.slow = bool(_compressors(array))
            _require_whole_chunks(array, path, where)

    @property
    def identity(self) -> tuple[Any, ...]:
        """What identifies the file, or the names, sizes and times of all files that the array is in."""
        if not self.path.is_dir():
            return file_identity(self.path)
        folder = self.path / (self.key or "")
        files = [(path, path.stat()) for path in sorted(folder.rglob("*")) if path.is_file()]
        known = [(str(path.relative_to(folder)), status.st_size, status.st_mtime_ns) for path, status in files]
        return self.path.name, self.key, sha256(repr(known).encode()).hexdigest()

    def rows(self, start: int, step: int) -> Iterator[Array]:
        """Yield rows, read from the store."""
        with opened(self.path) as root:
            with wrap_library_errors(self.where):
                array, _ = _array_in(root, self.path, self.key)
            yield from wrap_iteration(self.slices(array, start, step), self.where)


def is_store(path: Path) -> bool:
    """Return whether a folder is a Zarr store."""
    return any((path / mark).exists() for mark in _MARKS)


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open the array or the group at the top of a store."""
    zarr = import_optional("zarr", f"Reading {path}")
    is_zip = path.is_file()
    with wrap_library_errors(str(path), "is not a Zarr store, or damaged"):
        store: Any = zarr.storage.ZipStore(str(path), mode="r") if is_zip else str(path)
        root = zarr.open(store, mode="r")
    try:
        yield root
    finally:
        if is_zip:
            store.close()


def array_keys(group: Any, prefix: str = "") -> list[str]:
    """Return the names of all arrays, with those of their groups."""
    keys = [prefix + name for name in sorted(group.array_keys())]
    for name in sorted(group.group_keys()):
        keys += array_keys(group[name], f"{prefix}{name}/")
    return keys


def _array_in(root: Any, path: Path, key: str | None) -> tuple[Any, str]:
    if not hasattr(root, "array_keys"):
        if key is not None and key != root.path:
            raise DataError(f"{path} is a single array, and has none named {key!r}.")
        return root, str(path)
    keys = array_keys(root)
    if key is None and len(keys) == 1:
        key = keys[0]
    if key is None or key.strip("/") not in keys:
        asked = "Say which array of" if key is None else f"There is no array {key!r} in"
        raise DataError(f"{asked} {path}: it has {listed(keys) or 'none'}.")
    return root[key], f"{path}:{key}"


def _require_whole_chunks(array: Any, path: Path, where: str) -> None:
    """Raise DataError if a chunk is cut off that Blosc wrote: it would read on in memory, whatever is there."""
    last = str(_compressors(array)[-1:] if isinstance(_compressors(array), tuple) else _compressors(array))
    if "blosc" not in last.lower() or getattr(array, "shards", None) or not path.is_dir():
        return
    for chunk in (path / array.path).rglob("[!.]*"):
        if chunk.is_file() and chunk.name not in _MARKS:
            with chunk.open("rb") as file:
                declared = int.from_bytes(file.read(16)[12:], "little")
            if declared != chunk.stat().st_size:
                raise DataError(f"{where} is damaged: {chunk.name} has not as many bytes as it says.")


def _compressors(array: Any) -> Any:
    # Version 2 of the package has one compressor, version 3 a tuple of them.
    return array.compressors if hasattr(array, "compressors") else array.compressor
