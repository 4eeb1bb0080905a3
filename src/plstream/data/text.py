"""Text records, from a file, a compressed file or a pipe.

Text is read in chunks of a few megabytes and split into records, and blocks of records are parsed. All parsers round
correctly: numbers written by ``repr`` are read back exactly.
"""

from __future__ import annotations

import json
import select
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from hashlib import sha256
from itertools import chain
from typing import IO, Any

import numpy as np

from .._core.errors import DataError, shortened
from .._core.remote import AnyPath
from .files import GZIP, plain_bytes
from .reader import FIRST_ROWS, Columns, Pieces, Reader
from .reading import PATIENCE_SECONDS

# Maximum and minimum size of chunks.
_READ_BYTES = 4 << 20
_LEAST_READ_BYTES = 1 << 16
# Maximum memory for parsing: more is not faster.
_PARSED_BYTES = 32 << 20
# Minimum number of records that are parsed at a time, if a chunk has as many.
_LEAST_RECORDS = 64
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SAMPLE_RECORDS = 100
_SAMPLE_BYTES = 4 << 20
# Longer records are errors: a file without lines, or a quotation mark that is not closed.
_LONGEST_RECORD_BYTES = 64 << 20

Record = Any
"""The bytes of a line, or the fields of a quoted record."""


class TextReader(Reader):
    """Text records. A path can be read again unless it is a pipe; open files are read once.

    The first records are read at once to find the columns; those of a pipe are kept.
    """

    # Number of records before the first row.
    _header_records = 0

    def __init__(self, file: AnyPath | IO[bytes], where: str) -> None:
        super().__init__(where, 0)
        self._file = file
        self.rereadable = isinstance(file, AnyPath) and not file.is_fifo()
        self.path = file if isinstance(file, AnyPath) and self.rereadable else None
        self._unread: Iterator[list[Record]] | None = None
        self._sample: list[Record] = []
        groups = self._records()
        seen: list[list[Record]] = []
        # A pipe may not have more yet.
        n_bytes, enough = 0, _SAMPLE_RECORDS if self.rereadable else FIRST_ROWS
        for records in groups:
            seen.append(records)
            self._sample += records
            n_bytes += sum(len(self._as_bytes(record)) for record in records)
            if len(self._sample) >= (enough if n_bytes < _SAMPLE_BYTES else FIRST_ROWS):
                break
        if self.rereadable:
            groups.close()  # type: ignore[attr-defined]
        else:
            self._unread = chain(seen, groups)
        if not self._sample:
            raise DataError(f"{self.where} has no rows.")
        del self._sample[_SAMPLE_RECORDS:]
        first = [self._as_bytes(record) for record in self._sample[:FIRST_ROWS]]
        self.beginning = sha256(b"\n".join(first)).hexdigest()[:16]
        self._find_columns()

    @abstractmethod
    def _find_columns(self) -> None:
        """Set ``n_columns``, ``names`` and the like from the records in ``_sample``."""

    @abstractmethod
    def parse(self, records: list[Record], features: Columns, others: Columns, row: int) -> Pieces:
        """Return the values of records, the first of which is the given row."""

    def pieces(self, features: Columns, others: Columns, start: int, step: int) -> Iterator[Pieces]:
        """Yield rows as they are read and parsed; empty pieces while a pipe is silent."""
        step, row = max(_LEAST_RECORDS, step), 0
        for records in self._groups():
            for first in range(max(0, start - row), len(records), step):
                yield self.parse(records[first : first + step], features, others, row + first)
            if not records:
                yield np.empty((0, len(features))), [np.empty(0)] * len(others)
            row += len(records)
            # Free them before the next ones are read.
            del records

    def count(self) -> int:
        """Return the number of rows, without parsing them."""
        if self.n_rows is None:
            self.n_rows = sum(map(len, self._groups()))
        return self.n_rows

    @property
    def bytes_at_most(self) -> int | None:
        """Upper bound: a number and the delimiter after it have at least two bytes."""
        is_plain = self.path is not None and self.path.suffix.lower() != ".gz"
        return 4 * self.path.stat().st_size if self.path is not None and is_plain else None

    def not_a_number(self, row: int, column: int, found: Any) -> DataError:
        """Return the error for text, or another JSON value, in place of a number."""
        shown = shortened(found if isinstance(found, str) else json.dumps(found))
        return self.error_at(
            row, column, f"there is {shown}, which is not a number: leave such columns out by columns= or exclude="
        )

    def _as_bytes(self, record: Record) -> bytes:
        """Return the text of a record."""
        return bytes(record)

    def _groups(self) -> Iterator[list[Record]]:
        """Yield lists of records after the header; empty lists while a pipe is silent."""
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
                    raise DataError(
                        f"{self.where} is compressed: decompress it first, for example with gunzip -c FILE |."
                    )
                if b"\0" in data:
                    raise DataError(f"{self.where} is not UTF-8 text: it contains zero bytes.")
                pending.append(data)
                del data
                if len(left) > self._read_bytes and sum(map(len, pending)) < len(left):
                    # Avoids searching a long record repeatedly.
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
                # Free it before more is read.
                del text
            yield from self._in_room(b"".join([left, *pending]), self._parsing_room)

    @property
    def _parsing_room(self) -> int:
        # The chunk read from a pipe is kept until the next one.
        return min(_PARSED_BYTES, self.room - (0 if self.rereadable else self._read_bytes))

    def _in_room(self, text: bytes, room: int) -> Iterator[list[Record]]:
        """Yield lists of the records in a text, each of which can be parsed in the given memory."""
        if self.parsed_bytes(text) > room and (cut := self._cut(text, len(text) // 2)):
            # The whole text stays in memory as long as its parts.
            room -= len(text)
            yield from self._in_room(text[:cut], room)
            yield from self._in_room(text[cut:], room)
        elif records := self._split(text):
            yield records

    @abstractmethod
    def parsed_bytes(self, text: bytes) -> int:
        """Return an upper estimate of the memory for parsing a text, including the text."""

    def _cut(self, text: bytes, end: int) -> int:
        """Return the end of the last complete record before ``end``."""
        return text.rfind(b"\n", 0, end) + 1

    def _split(self, text: bytes) -> list[Record]:
        """Return the records in a text, without blank lines."""
        return [line for line in text.splitlines() if line and not line.isspace()]

    @property
    def _read_bytes(self) -> int:
        return min(_READ_BYTES, max(_LEAST_READ_BYTES, self.room // 8))

    def _live_chunks(self, file: IO[bytes]) -> Iterator[bytes]:
        """Yield data as soon as it arrives, and empty chunks while the pipe is silent."""
        read = getattr(file, "read1", file.read)
        # Chunks of this size leave nothing in a buffer, which select does not see.
        for data in iter(lambda: read(self._read_bytes), b""):
            yield data
            del data
            while not _has_more(file):
                yield b""


def _has_more(file: IO[bytes]) -> bool:
    """Return whether data or the end arrives within a short time; True if unknown."""
    try:
        return bool(select.select([file.fileno()], [], [], PATIENCE_SECONDS)[0])
    except (OSError, ValueError, AttributeError):
        return True
