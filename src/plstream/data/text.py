"""Records of text, from a file, a compressed file or a pipe.

Text is read a few megabytes at a time and cut into records; numbers are parsed a block of records at a time. Parsers
round correctly, so what was written by ``repr`` is read back exactly, whichever of them is at hand.
"""

from __future__ import annotations

import json
import select
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from hashlib import sha256
from itertools import chain
from typing import IO, Any, Self

import numpy as np

from .._core.errors import DataError, shortened
from .._core.remote import AnyPath
from .files import GZIP, plain_bytes
from .reader import Columns, Pieces, Reader
from .reading import PATIENCE_SECONDS

# Text that is read at a time, at most and at least.
_READ_BYTES = 4 << 20
_LEAST_READ_BYTES = 1 << 16
# What parsing may take, at most: more is not faster.
_PARSED_BYTES = 32 << 20
# Records that are parsed at a time, at least, if there are as many in what was read.
_LEAST_RECORDS = 64
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SAMPLE_RECORDS = 100
_SAMPLE_BYTES = 4 << 20
# Records that are looked at to see what they hold, and by which a pipe that begins anew is known.
_FIRST_RECORDS = 5
# More is taken for something else than a record: a file without lines, or a quotation mark that is not closed.
_LONGEST_RECORD_BYTES = 64 << 20

Record = Any
"""The bytes of a line, or the fields of a record that has quotation marks."""


class TextReader(Reader):
    """Records of text, one after another. Before anything else, it is opened.

    Parameters
    ----------
    file : Path, RemotePath or a binary file
        A path can be read again, unless it is a pipe. Anything else is read once.
    where : str
        What to call it in a message.
    """

    # Records before the first row.
    _header_records = 0

    def __init__(self, file: AnyPath | IO[bytes], where: str) -> None:
        super().__init__(where, 0)
        self._file = file
        self.rereadable = isinstance(file, AnyPath) and not file.is_fifo()
        self.path = file if isinstance(file, AnyPath) and self.rereadable else None
        self._unread: Iterator[list[Record]] | None = None
        self._sample: list[Record] = []

    def open(self) -> Self:
        """Read the first records, which tell what the columns are; those of a pipe are kept to be read again."""
        groups = self._records()
        seen: list[list[Record]] = []
        # A pipe may not have more for now.
        n_bytes, enough = 0, _SAMPLE_RECORDS if self.rereadable else _FIRST_RECORDS
        for records in groups:
            seen.append(records)
            self._sample += records
            n_bytes += sum(len(self._as_bytes(record)) for record in records)
            if len(self._sample) >= (enough if n_bytes < _SAMPLE_BYTES else _FIRST_RECORDS):
                break
        if self.rereadable:
            groups.close()  # type: ignore[attr-defined]
        else:
            self._unread = chain(seen, groups)
        if not self._sample:
            raise DataError(f"{self.where} has no rows.")
        del self._sample[_SAMPLE_RECORDS:]
        first = [self._as_bytes(record) for record in self._sample[:_FIRST_RECORDS]]
        self.beginning = sha256(b"\n".join(first)).hexdigest()[:16]
        self._find_columns()
        return self

    @abstractmethod
    def _find_columns(self) -> None:
        """Set what the first records tell of the columns."""

    @abstractmethod
    def parse(self, records: list[Record], features: Columns, others: Columns, row: int) -> Pieces:
        """Return the numbers of some records, the first of which is in the given row."""

    def pieces(self, features: Columns, others: Columns, start: int, step: int) -> Iterator[Pieces]:
        """Yield rows, parsed as they are read; none, while a pipe is silent."""
        step, row = max(_LEAST_RECORDS, step), 0
        for records in self._groups():
            for first in range(max(0, start - row), len(records), step):
                yield self.parse(records[first : first + step], features, others, row + first)
            if not records:
                yield np.empty((0, len(features))), [np.empty(0)] * len(others)
            row += len(records)
            # They are not needed while the next ones are read.
            del records

    def count(self) -> int:
        """Return the number of rows, without parsing them."""
        if self.n_rows is None:
            self.n_rows = sum(map(len, self._groups()))
        return self.n_rows

    @property
    def bytes_at_most(self) -> int | None:
        """A number takes two bytes at least, with what is after it."""
        is_plain = self.path is not None and self.path.suffix.lower() != ".gz"
        return 4 * self.path.stat().st_size if self.path is not None and is_plain else None

    def not_a_number(self, row: int, column: int, found: Any) -> DataError:
        """Return the error for text, or another JSON value, where there should be a number."""
        shown = shortened(found if isinstance(found, str) else json.dumps(found))
        return self.error_at(
            row, column, f"there is {shown}, not a number: leave such columns out by columns= or exclude="
        )

    def _as_bytes(self, record: Record) -> bytes:
        """Return a record as it is in the text."""
        return bytes(record)

    def _groups(self) -> Iterator[list[Record]]:
        """Yield the records after the header, some at a time; none, if a pipe is silent for a while."""
        groups = self._records() if self._unread is None else self._unread
        skip = self._header_records
        for records in groups:
            yield records[skip:] if skip else records
            skip = max(0, skip - len(records))
            del records

    def _records(self) -> Iterator[list[Record]]:
        opened: AbstractContextManager[IO[bytes]]
        opened = plain_bytes(self._file) if isinstance(self._file, AnyPath) else nullcontext(self._file)
        with opened as file:
            left, first = b"", True
            pending: list[bytes] = []
            chunks = iter(lambda: file.read(self._read_bytes), b"") if self.rereadable else self._live_chunks(file)
            for data in chunks:
                if not data:
                    yield []
                    continue
                if first and data.startswith(GZIP):
                    raise DataError(f"{self.where} is compressed: put gunzip before it, as in gunzip -c FILE |.")
                if b"\0" in data:
                    raise DataError(f"{self.where} is not text in UTF-8: there are zero bytes in it.")
                pending.append(data)
                del data
                if len(left) > self._read_bytes and sum(map(len, pending)) < len(left):
                    # A long record is not looked through again and again.
                    continue
                text = b"".join([left, *pending])
                pending = []
                if first:
                    text, first = text.removeprefix(_BYTE_ORDER_MARK), False
                cut = self._cut(text, len(text))
                text, left = text[:cut], text[cut:]
                if len(left) > _LONGEST_RECORD_BYTES:
                    raise DataError(f"{self.where} has a line of more than {_LONGEST_RECORD_BYTES >> 20} MiB.")
                yield from self._in_room(text, self._parsing_room)
                # It is not needed while more is read.
                del text
            yield from self._in_room(b"".join([left, *pending]), self._parsing_room)

    @property
    def _parsing_room(self) -> int:
        # What was read from a pipe is kept until more is read.
        return min(_PARSED_BYTES, self.room - (0 if self.rereadable else self._read_bytes))

    def _in_room(self, text: bytes, room: int) -> Iterator[list[Record]]:
        """Yield the records in some text, as many at a time as there is room for."""
        if self.parsed_bytes(text) > room and (cut := self._cut(text, len(text) // 2)):
            # The whole is there as long as its parts are.
            room -= len(text)
            yield from self._in_room(text[:cut], room)
            yield from self._in_room(text[cut:], room)
        elif records := self._split(text):
            yield records

    @abstractmethod
    def parsed_bytes(self, text: bytes) -> int:
        """Return about how many bytes it takes at most to parse some text, with the text itself."""

    def _cut(self, text: bytes, end: int) -> int:
        """Return where the last complete record ends before an end."""
        return text.rfind(b"\n", 0, end) + 1

    def _split(self, text: bytes) -> list[Record]:
        """Return the records in some text; blank lines are none."""
        return [line for line in text.splitlines() if line and not line.isspace()]

    @property
    def _read_bytes(self) -> int:
        return min(_READ_BYTES, max(_LEAST_READ_BYTES, self.room // 8))

    def _live_chunks(self, file: IO[bytes]) -> Iterator[bytes]:
        """Yield what there is, as soon as it is there, and nothing if that takes a while."""
        read = getattr(file, "read1", file.read)
        # So much at a time leaves nothing in a buffer, where it would not be seen.
        for data in iter(lambda: read(self._read_bytes), b""):
            yield data
            del data
            while not _has_more(file):
                yield b""


def _has_more(file: IO[bytes]) -> bool:
    """Return whether there is something to read, or the end, within a short while; True if that cannot be known."""
    try:
        return bool(select.select([file.fileno()], [], [], PATIENCE_SECONDS)[0])
    except (OSError, ValueError, AttributeError):
        return True
