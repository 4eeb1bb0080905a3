"""How rows are read: ahead of their use, in blocks of a given size, and from a copy of slow files."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any, TypeAlias, TypeVar

import numpy as np

from .._core.progress import still_waiting
from .._core.tiles import LARGEST_BLOCK_BYTES
from .._core.types import Array

Item = TypeVar("Item")
Parts: TypeAlias = tuple[Any, ...]
"""Arrays of the same rows: X, y or None, and further columns."""

# Blocks that wait to be used. The reader holds one more.
_WAITING = 1
# A pipe may be slow: after this time, listeners are notified, and the rows so far become a block. A thread that waits
# for a pipe cannot be stopped.
PATIENCE_SECONDS = 1.0
# Share of the free disk space that a temporary copy leaves.
_SPARE_SHARE = 0.1


def read_ahead(make: Callable[[], Iterator[Item]]) -> Iterator[Item]:
    """Yield the items of an iterator that a separate thread advances, up to two items ahead.

    Errors of the thread are raised here, with their traceback. Closing the generator stops the thread, which closes
    the iterator.
    """
    queue: Queue[tuple[Any, BaseException | None] | None] = Queue(_WAITING)
    stopped = threading.Event()

    def read() -> None:
        try:
            with closing(make()) as items:  # type: ignore[type-var]
                for item in items:
                    queue.put((item, None))
                    del item
                    if stopped.is_set():
                        return
        except BaseException as error:  # noqa: BLE001
            queue.put((None, error))
        else:
            queue.put(None)

    # A daemon does not prevent the interpreter from exiting.
    thread = threading.Thread(target=read, name="plstream-reader", daemon=True)
    thread.start()
    try:
        while (entry := _next_entry(queue)) is not None:
            item, error = entry
            if error is not None:
                raise error
            yield item
            del entry, item
    finally:
        stopped.set()
        # The thread may be waiting for space in the queue.
        while not queue.empty():
            queue.get_nowait()
        thread.join(PATIENCE_SECONDS)


def _next_entry(queue: Queue[Item]) -> Item:
    """Wait for an entry of the queue, and report regularly that nothing has arrived."""
    while True:
        try:
            return queue.get(timeout=PATIENCE_SECONDS)
        except Empty:
            still_waiting()


def cut_rows(parts: Parts, start: int, stop: int | None = None) -> Parts:
    """Return a range of rows."""
    return tuple(None if part is None else part[start:stop] for part in parts)


def regrouped(pieces: Iterable[Parts], start: int, rows: int, *, live: bool = False) -> Iterator[Parts]:
    """Cut and join pieces from row ``start`` on into blocks that end at multiples of ``rows``.

    Blocks of a ``live`` stream may end earlier, so that rows do not wait for others.
    """
    block = _BlockBuffer(rows - start % rows)
    yielded_at = time.monotonic()
    for piece in pieces:
        begin, n_rows = 0, len(piece[0])
        while n_rows - begin >= block.missing:
            end = begin + block.missing
            if block.n_rows or n_rows > end - begin:
                block.add(cut_rows(piece, begin, end))
                yield block.rows()
            else:
                yield piece
            block, begin, yielded_at = _BlockBuffer(rows), end, time.monotonic()
        if begin < n_rows:
            block.add(cut_rows(piece, begin, n_rows))
        # Free it before the next one is read.
        del piece
        if live and block.n_rows and time.monotonic() - yielded_at > PATIENCE_SECONDS:
            yield block.rows()
            block, yielded_at = _BlockBuffer(rows), time.monotonic()
    if block.n_rows:
        yield block.rows()


def first_two(records: Iterator[Parts]) -> Iterator[tuple[Array, Array | None]]:
    """Yield X and y of records."""
    with closing(records) as opened:  # type: ignore[type-var]
        for X, y, *_ in opened:
            yield X, y


def skip_rows(blocks: Iterator[Parts], n_rows: int) -> Iterator[Parts]:
    """Yield the rows after the first ``n_rows``."""
    for parts in blocks:
        here = len(parts[0])
        if n_rows < here:
            yield cut_rows(parts, n_rows) if n_rows else parts
        n_rows = max(0, n_rows - here)
        del parts


class _BlockBuffer:
    """A block that pieces are copied into as they arrive: joining them at the end would take twice the memory."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.n_rows = 0
        self._parts: tuple[Array | None, ...] = ()

    @property
    def missing(self) -> int:
        """Number of rows until it is full."""
        return self.size - self.n_rows

    def add(self, piece: Parts) -> None:
        """Copy a piece."""
        so_far = self._parts or (None,) * len(piece)
        pairs = zip(so_far, piece, strict=True)
        self._parts = tuple(None if part is None else self._added(array, part) for array, part in pairs)
        self.n_rows += len(piece[0])

    def rows(self) -> Parts:
        """Return the rows so far."""
        return cut_rows(self._parts, 0, self.n_rows)

    def _added(self, array: Array | None, part: Array) -> Array:
        """Copy a part into an array, or into a larger copy of it if necessary, and return the array."""
        end = self.n_rows + len(part)
        dtype = part.dtype if array is None else np.result_type(array.dtype, part.dtype)
        if array is None or end > len(array) or dtype != array.dtype:
            # All that a block takes, unless the caller asks for larger ones.
            usual = LARGEST_BLOCK_BYTES // max(1, part[:1].nbytes)
            larger = np.empty((min(self.size, max(2 * end, usual)), *part.shape[1:]), dtype)
            if array is not None:
                larger[: self.n_rows] = array[: self.n_rows]
            array = larger
        array[self.n_rows : end] = part
        return array


class NoRoomError(OSError):
    """There is not enough disk space for a temporary copy."""


@contextmanager
def temporary_copy(blocks: Iterable[tuple[Array, ...]], n_bytes: int = 0) -> Iterator[tuple[Array, ...]]:
    """Copy the columns of blocks to temporary files, and yield memory maps of them.

    Raise NoRoomError if there is not enough disk space for them, or for ``n_bytes``.
    """
    _require_room(_temporary_folder(), n_bytes)
    with ExitStack() as files:
        copies: list[GrowingArray] = []
        for block in blocks:
            copies = copies or [files.enter_context(temporary_array()) for _ in block]
            for copy, column in zip(copies, block, strict=True):
                copy.append(column)
            # Free it before the copy is used.
            del block, column
        yield tuple(copy.array() for copy in copies)


@contextmanager
def temporary_array() -> Iterator[GrowingArray]:
    """Yield an empty array in an unnamed file, which the system removes when it is closed, however the process ends."""
    folder = _temporary_folder()
    with tempfile.TemporaryFile(dir=folder) as file:
        yield GrowingArray(file, folder)


class GrowingArray:
    """An array in a file, to which rows are appended."""

    def __init__(self, file: Any, folder: Path) -> None:
        self.file = file
        self.folder = folder
        self.n_rows = 0

    def append(self, rows: Array) -> None:
        """Append rows; raise NoRoomError if there is not enough disk space."""
        _require_room(self.folder, rows.nbytes)
        self.shape, self.dtype = rows.shape[1:], rows.dtype
        try:
            self.file.write(np.ascontiguousarray(rows).data)
        except OSError as error:
            raise NoRoomError(str(error)) from error
        self.n_rows += len(rows)

    def array(self) -> Array:
        """Return a memory map of all rows."""
        self.file.flush()
        return np.memmap(self.file, self.dtype, "r", shape=(self.n_rows, *self.shape))


def _require_room(folder: Path, n_bytes: int) -> None:
    usage = shutil.disk_usage(folder)
    if n_bytes > usage.free - _SPARE_SHARE * min(usage.free, usage.total / 10):
        raise NoRoomError(f"There is no room for a temporary copy in {folder}.")


def _temporary_folder() -> Path:
    """Return the folder for large temporary files: /tmp is often in memory."""
    large = Path("/var/tmp")  # noqa: S108
    chosen = any(name in os.environ for name in ("TMPDIR", "TEMP", "TMP"))
    return large if not chosen and os.access(large, os.W_OK) else Path(tempfile.gettempdir())
