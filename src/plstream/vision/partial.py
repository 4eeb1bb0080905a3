"""An array in a file that grows row by row, and can be resumed if the process is killed.

Until it is complete, its name is ``features.npy.part``, with a journal ``features.npy.part.json`` that records its
inputs and the number of rows. Rows are flushed to disk before the journal counts them; rows beyond its count are
truncated.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from .._core.errors import DataError
from .._core.types import Array
from ..data.numpy_files import npy_header
from ..files.files import locked_file, put_in_place, replacing

_JOURNAL_SECONDS = 5.0


class PartialArray:
    """A .npy file of rows computed from items, in batches; it gets its final name when it is complete.

    A file is resumed if the fingerprints ``made_from`` are equal. ``overwrite`` replaces existing files, including
    those begun with other inputs.
    """

    def __init__(self, path: Path, n_columns: int, dtype: Any, made_from: dict[str, str], *, overwrite: bool) -> None:
        self.path, self.names_path = path, path.with_suffix(".txt")
        self._part, self._journal = (path.with_name(path.name + end) for end in (".part", ".part.json"))
        self._n_columns = n_columns
        self._dtype: np.dtype[Any] = np.dtype(dtype)
        self._made_from, self._overwrite = made_from, overwrite
        # Items processed or skipped, rows, and the items without a row.
        self.n_done = self.n_rows = 0
        self.skipped: list[int] = []
        self._finishing = False

    def __enter__(self) -> Self:
        held = locked_file(self._part)
        if held is None:
            raise DataError(
                f"{self.path} is being written by another process: wait until it has ended, or choose another name."
            )
        self._held = held
        try:
            self._begin()
        except BaseException:
            self._held.close()
            raise
        return self

    def _begin(self) -> None:
        resumed = self._resume()
        for path in () if self._overwrite else (self.path, self.names_path):
            if path.exists() and not (resumed and self._is_finishing(path)):
                if not resumed:
                    self._remove()
                raise FileExistsError(f"{path} exists already: choose another name, or replace it with overwrite=.")
        self._file: BinaryIO = self._part.open("r+b")
        self._file.write(self._header())
        self._file.truncate(self._end())
        self._file.seek(0, os.SEEK_END)
        self._written_at = time.monotonic()

    def _is_finishing(self, path: Path) -> bool:
        """Return whether a file exists because the process was killed while files were renamed."""
        return self._finishing and (path == self.names_path or _are_one(path, self._part))

    def _resume(self) -> bool:
        """Read the journal, and return whether there is a file to resume."""
        try:
            journal = json.loads(self._journal.read_bytes())
            n_done, n_rows, skipped = (journal[name] for name in ("n_done", "n_rows", "skipped"))
            made_from = journal["made_from"]
        except (OSError, ValueError, LookupError, TypeError):
            return False
        changed = [name for name, value in self._made_from.items() if made_from.get(name) != value]
        if changed and not self._overwrite:
            raise DataError(
                f"{self._part} was begun with other {' and '.join(changed)}: start over with overwrite=, or "
                "choose another name."
            )
        self.n_done, self.n_rows, self.skipped = n_done, n_rows, skipped
        self._finishing = bool(journal.get("finishing"))
        if changed or self._part.stat().st_size < self._end():
            self.n_done, self.n_rows, self.skipped, self._finishing = 0, 0, [], False
        return self.n_done > 0

    def append(self, rows: Array, n_items: int, skipped: list[int]) -> None:
        """Append the rows of the next items, except skipped ones."""
        self._file.write(np.ascontiguousarray(rows, self._dtype).data)
        self.n_done, self.n_rows = self.n_done + n_items, self.n_rows + len(rows)
        self.skipped = self.skipped + skipped
        if time.monotonic() - self._written_at >= _JOURNAL_SECONDS:
            self._write_journal()

    def finish(self, names: list[str]) -> None:
        """Rename the file, and write the names of its rows next to it."""
        self._finishing = True
        self._write_journal()
        self._file.seek(0)
        self._file.write(self._header())
        self._file.close()
        with replacing(self.names_path) as file:
            file.write("".join(f"{name}\n" for name in names).encode(errors="surrogateescape"))
        if not _are_one(self._part, self.path):
            put_in_place(self._part, self.path, overwrite=self._overwrite)
        self._remove()

    def __exit__(self, *error: object) -> None:
        try:
            if self._file.closed:
                return
            if self.n_done == 0:
                self._file.close()
                self._remove()
                return
            # On a full disk, the previous journal is kept.
            with suppress(OSError):
                self._write_journal()
            with suppress(OSError):
                self._file.close()
        finally:
            self._held.close()

    def _write_journal(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        journal = {
            "made_from": self._made_from,
            "n_done": self.n_done,
            "n_rows": self.n_rows,
            "skipped": self.skipped,
            "finishing": self._finishing,
        }
        with replacing(self._journal) as file:
            file.write(json.dumps(journal).encode())
        self._written_at = time.monotonic()

    def _remove(self) -> None:
        for path in (self._part, self._journal):
            path.unlink(missing_ok=True)

    def _header(self) -> bytes:
        return npy_header(self._dtype, (self.n_rows, self._n_columns))

    def _end(self) -> int:
        return len(self._header()) + self.n_rows * self._n_columns * self._dtype.itemsize


def _are_one(first: Path, second: Path) -> bool:
    return first.exists() and second.exists() and first.samefile(second)
