"""Intermediate results of a long cell, in its own folder: scores that are too large for memory, and checkpoints.

Checkpoints are model files and arrays: nothing is unpickled. Scores are stored row by row as float32, so that the size
of the file gives the number of rows done.
"""

from __future__ import annotations

import mmap
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from .._core.types import Array
from ..files import ModelFileError, load, save
from ..files.files import replacing

# Bytes of a block of scores.
_BLOCK_BYTES = 32 << 20
# Larger scores are stored in a file.
IN_MEMORY = 1 << 30


class Scratch:
    """The folder of one cell, created on demand, from which an interrupted cell resumes.

    ``every_seconds`` is the time between two checkpoints.
    """

    def __init__(self, folder: Path, every_seconds: float = 60.0) -> None:
        self.folder, self._every, self._last = folder, every_seconds, time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return time.monotonic() - self._last >= self._every

    def save_model(self, name: str, model: Any) -> None:
        """Write a model of this library; others are ignored."""
        with suppress(TypeError):
            save(model, self._new(f"{name}.plstream"), overwrite=True)
        self._last = time.monotonic()

    def load_model(self, name: str) -> Any:
        """Return the model of a checkpoint, or None if it is missing or damaged."""
        with suppress(OSError, ModelFileError):
            return load(self.folder / f"{name}.plstream")
        return None

    def save_arrays(self, name: str, **arrays: Any) -> None:
        """Write arrays and numbers."""
        with replacing(self._new(f"{name}.npz")) as file:
            np.savez(file, **arrays)
        self._last = time.monotonic()

    def load_arrays(self, name: str) -> dict[str, Array] | None:
        """Return the arrays of a checkpoint, or None if it is missing or damaged."""
        with (
            suppress(OSError, ValueError, zipfile.BadZipFile),
            (self.folder / f"{name}.npz").open("rb") as file,
            np.load(file, allow_pickle=False) as found,
        ):
            return dict(found)
        return None

    def stored(self, name: str, shape: tuple[int, ...], rows_from: Callable[[int], Iterator[Array]]) -> Array:
        """Return a memory map of float32 rows, after appending missing blocks from ``rows_from``."""
        path, row_bytes = self._new(f"{name}.scores"), 4 * int(np.prod(shape[1:]))
        n_done = path.stat().st_size // row_bytes if path.exists() else 0
        if n_done < shape[0]:
            with path.open("ab") as file:
                file.truncate(n_done * row_bytes)
                for block in rows_from(n_done):
                    file.write(np.ascontiguousarray(block, np.float32).data)
        return np.memmap(path, np.float32, "r", shape=shape)

    def _new(self, name: str) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / name

    def remove(self, pattern: str = "*") -> None:
        """Remove the matching files, and the folder if it is empty."""
        for path in self.folder.glob(pattern):
            path.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()


def blocks_of(S: Array, n_classes: int, start: int = 0) -> Iterator[tuple[slice, Array]]:
    """Yield slices of rows and their scores as float64 matrices, with room for one number per class as well."""
    width = int(np.prod(S.shape[1:]))
    step = max(1, _BLOCK_BYTES // (8 * max(width, n_classes)))
    for first in range(start, len(S), step):
        rows = slice(first, min(first + step, len(S)))
        yield rows, np.array(S[rows], np.float64).reshape(-1, width)
        mapped = getattr(S, "_mmap", None)
        if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
            # Pages already read would count as memory of this process.
            mapped.madvise(mmap.MADV_DONTNEED)
