"""Rows of text: CSV, TSV and NDJSON, from a file, a compressed file or a pipe.

Text is read a few megabytes at a time and cut into records; numbers are parsed a block of records at a time. Parsers
round correctly, so what was written by ``repr`` is read back exactly, whichever of them is at hand.
"""

from __future__ import annotations

import csv
import io
import json
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._types import Array
from .errors import DataError
from .files import plain_bytes
from .table import Piece, Table, pick, rows_of

_READ_BYTES = 1 << 20
_PIECE_BYTES = 4 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SAMPLE_RECORDS = 100
# Whole numbers below this one are exact in float64.
_LARGEST_EXACT = 2**53

Record = Any
"""The bytes of a line, or the fields of a record that has quotation marks."""


class TextTable(Table):
    """Records of text, one after another.

    Parameters
    ----------
    file : Path or a binary file
        A path can be read again, unless it is a pipe. Anything else is read once.
    where : str
        What to call it in a message.
    """

    def __init__(self, file: Path | IO[bytes], where: str) -> None:
        super().__init__(where, 0)
        self._file = file
        self.rereadable = isinstance(file, Path) and not file.is_fifo()
        self.path = file if isinstance(file, Path) and self.rereadable else None
        self._unread: Iterator[list[Record]] | None = None
        sample = self._open_sample()
        if not sample:
            raise DataError(f"{where} has no rows.")
        self._sample = sample

    @abstractmethod
    def parse(self, records: list[Record], features: NDArray[np.intp], targets: NDArray[np.intp], row: int) -> Piece:
        """Return the numbers of some records, the first of which is in the given row."""

    def pieces(self, features: NDArray[np.intp], targets: NDArray[np.intp], start: int, step: int) -> Iterator[Piece]:
        """Yield rows, parsed as they are read."""
        step = max(1, min(step, _PIECE_BYTES // (8 * max(1, len(features) + len(targets)))))
        row, held = 0, list[Record]()
        for records in self._groups():
            row += len(records)
            held += records[max(0, len(records) - (row - start)) :] if row > start else []
            while len(held) >= step:
                yield self.parse(held[:step], features, targets, row - len(held))
                held = held[step:]
        if held:
            yield self.parse(held, features, targets, row - len(held))

    def count(self) -> int:
        """Return the number of rows, without parsing them."""
        if self.n_rows is None:
            self.n_rows = sum(map(len, self._groups()))
        return self.n_rows

    def _open_sample(self) -> list[Record]:
        """Return the first records; those of a pipe are kept to be read again."""
        groups = self._records()
        sample: list[Record] = []
        seen: list[list[Record]] = []
        for records in groups:
            seen.append(records)
            sample += records
            if len(sample) >= 2:
                break
        if self.rereadable:
            groups.close()  # type: ignore[attr-defined]
        else:
            self._unread = chain(seen, groups)
        return sample[:_SAMPLE_RECORDS]

    def _groups(self) -> Iterator[list[Record]]:
        """Yield the records after the header, some at a time."""
        groups = self._records() if self._unread is None else self._unread
        skip = self._header_records
        for records in groups:
            yield records[skip:]
            skip = max(0, skip - len(records))

    _header_records = 0

    def _records(self) -> Iterator[list[Record]]:
        opened: AbstractContextManager[IO[bytes]]
        opened = plain_bytes(self._file) if isinstance(self._file, Path) else nullcontext(self._file)
        with opened as file:
            # From a pipe, take what there is: a stream may be slow.
            read = getattr(file, "read1", file.read) if self._unread is None and not self.rereadable else file.read
            left, first = b"", True
            while data := read(_READ_BYTES):
                text = left + data
                if first:
                    text, first = text.removeprefix(_BYTE_ORDER_MARK), False
                cut = self._cut(text)
                left = text[cut:]
                if records := self._split(text[:cut]):
                    yield records
            if records := self._split(left):
                yield records

    def _cut(self, text: bytes) -> int:
        """Return where the last complete record ends."""
        return text.rfind(b"\n") + 1

    def _split(self, text: bytes) -> list[Record]:
        """Return the records in some text; blank lines are none."""
        return [line for line in text.splitlines() if line and not line.isspace()]

    def _kinds(self, columns: list[list[str]]) -> list[str]:
        """Return what the sample has in each column: "i" for whole numbers, "f" for numbers, "U" for text."""
        return [_kind(column) for column in columns]


class CsvTable(TextTable):
    """Lines of fields with a delimiter between them, some of them perhaps quoted.

    Parameters
    ----------
    file : Path or a binary file
    where : str
    delimiter : str
        One character.
    header : bool, optional
        Whether the first line holds names. By default it does if no field of it is a number, or if one is not where the
        second line has a number.
    """

    format: ClassVar[str] = "csv"

    def __init__(self, file: Path | IO[bytes], where: str, *, delimiter: str = ",", header: bool | None = None) -> None:
        self.delimiter = delimiter
        super().__init__(file, where)
        sample = [self._fields(record) for record in self._sample]
        if header is None:
            header = _looks_like_header(sample)
        self._header_records = int(header)
        if header:
            self.names = tuple(name.strip() for name in sample[0])
            sample = sample[1:]
        if not sample:
            raise DataError(f"{where} has no rows, only a header.")
        self.n_columns = len(self.names if self.names is not None else sample[0])
        # A row of another length is an error when it is read.
        fitting = [fields for fields in sample if len(fields) == self.n_columns] or [[""] * self.n_columns]
        self.kinds = self._kinds([list(column) for column in zip(*fitting, strict=True)])
        self._arrow = _arrow_csv()

    def dtype_of(self, columns: NDArray[np.intp], *, text: bool = False) -> np.dtype[Any]:
        """Return float64: that is what text is read as."""
        kinds = {self.kinds[column] for column in columns}
        if text and kinds == {"U"}:
            return np.dtype(str)
        if "U" in kinds:
            text_columns = [int(column) for column in columns if self.kinds[column] == "U"]
            raise self._what_is_wrong(self._sample[self._header_records :], text_columns, 0)
        return np.dtype(np.float64)

    def parse(self, records: list[Record], features: NDArray[np.intp], targets: NDArray[np.intp], row: int) -> Piece:
        """Parse by Arrow or else by NumPy; if neither can, find out what is wrong."""
        numbers = [int(column) for column in (*features, *targets) if self.kinds[column] != "U"]
        texts = [int(column) for column in targets if self.kinds[column] == "U"]
        if not numbers and not texts:
            return np.empty((len(records), 0)), None
        lines = None if any(isinstance(record, list) for record in records) else b"\n".join(records)
        parsed = None if lines is None else self._by_arrow(lines, numbers, texts)
        if parsed is None or len(parsed[0]) != len(records):
            parsed = self._by_numpy(records, lines, numbers, texts, row)
        values, labels = parsed
        X = np.ascontiguousarray(values[:, : len(features)])
        if labels:
            return X, labels[0] if len(labels) == 1 else np.column_stack(labels)
        return X, self._numeric_targets(values[:, len(features) :], targets, row) if len(targets) else None

    def _numeric_targets(self, values: Array, targets: NDArray[np.intp], row: int) -> Array:
        """Return integers if the first rows have such, and all of these are."""
        y = np.ascontiguousarray(pick(values, np.arange(len(targets)), as_target=True))
        if any(self.kinds[column] != "i" for column in targets) or not (y == np.round(y)).all():
            return y
        if (large := np.argwhere(np.abs(values) >= _LARGEST_EXACT)).size:
            at, column = large[0]
            problem = "there is a whole number too large to be read exactly: use text for labels, 1e20 for values"
            raise self.error_at(row + int(at), int(targets[column]), problem)
        return y.astype(np.int64)

    def _by_arrow(self, lines: bytes, numbers: list[int], texts: list[int]) -> tuple[Array, list[Array]] | None:
        """Parse all of it, or return None if there is anything that is not as it should be."""
        if self._arrow is None:
            return None
        import pyarrow as pa

        names = [str(column) for column in range(self.n_columns)]
        types = {str(column): pa.float64() for column in numbers} | {str(column): pa.string() for column in texts}
        arrow = self._arrow
        try:
            table = arrow.read_csv(
                pa.BufferReader(lines),
                read_options=arrow.ReadOptions(column_names=names, block_size=len(lines) + 1, use_threads=False),
                parse_options=arrow.ParseOptions(delimiter=self.delimiter),
                convert_options=arrow.ConvertOptions(
                    column_types=types, include_columns=[str(column) for column in (*numbers, *texts)]
                ),
            )
        except (pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowNotImplementedError):
            return None
        if any(column.null_count for column in table.columns):
            return None
        columns = [column.to_numpy(zero_copy_only=False) for column in table.columns]
        split = len(numbers)
        values = rows_of(columns[:split], np.dtype(np.float64)) if split else np.empty((table.num_rows, 0))
        return values, [column.astype(str) for column in columns[split:]]

    def _by_numpy(
        self, records: list[Record], lines: bytes | None, numbers: list[int], texts: list[int], row: int
    ) -> tuple[Array, list[Array]]:
        fields = None
        if lines is None or texts or self.n_columns == 1:
            fields = [self._fields(record) for record in records]
        try:
            if fields is None:
                assert lines is not None
                self._require_lengths(records, row)
                read = np.loadtxt(
                    io.StringIO(lines.decode()),
                    delimiter=self.delimiter,
                    comments=None,
                    usecols=numbers,
                    ndmin=2,
                )
            else:
                read = np.array([[_number(f[j]) for j in numbers] for f in fields], np.float64)
                read = read.reshape(len(fields), len(numbers))
            if len(read) == len(records):
                return read, [self._texts(fields or [], column, row) for column in texts]
        except (ValueError, IndexError):
            pass
        raise self._what_is_wrong(records, numbers, row)

    def _texts(self, fields: list[list[str]], column: int, row: int) -> Array:
        return np.array([line[column].strip() for line in fields])

    def _require_lengths(self, records: list[Record], row: int) -> None:
        delimiter = self.delimiter.encode()
        counts = [record.count(delimiter) for record in records]
        if any(count != self.n_columns - 1 for count in counts):
            raise self._what_is_wrong(records, [], row)

    def _what_is_wrong(self, records: list[Record], numbers: list[int], row: int) -> DataError:
        for at, record in enumerate(records, row):
            fields = self._fields(record)
            if len(fields) != self.n_columns:
                return DataError(
                    f"In {self.where}, row {at}, there are {len(fields)} field(s), and {self.n_columns} in others."
                )
            for column in numbers:
                if not fields[column].strip():
                    return self.bad_value(at, column, None)
                try:
                    _number(fields[column])
                except ValueError:
                    return self._not_a_number(at, column, fields[column])
        return DataError(f"{self.where} cannot be read as text of numbers, from row {row} on.")

    def _not_a_number(self, row: int, column: int, field: str) -> DataError:
        if not field.strip():
            return self.bad_value(row, column, None)
        return self.error_at(
            row, column, f"there is {_shortened(field)}, not a number: leave such columns out by columns= or exclude="
        )

    def _fields(self, record: Record) -> list[str]:
        if isinstance(record, list):
            return record
        try:
            return next(csv.reader([record.decode()], delimiter=self.delimiter), [""])
        except (UnicodeDecodeError, csv.Error):
            raise DataError(f"{self.where} is not text in UTF-8, or not of lines: {_shortened(record)}.") from None

    def _cut(self, text: bytes) -> int:
        """Return where the last complete record ends: within quotation marks a line may go on."""
        cut = text.rfind(b"\n") + 1
        quotes = text.count(b'"', 0, cut)
        while cut and quotes % 2:
            shorter = text.rfind(b"\n", 0, cut - 1) + 1
            quotes -= text.count(b'"', shorter, cut)
            cut = shorter
        return cut

    def _split(self, text: bytes) -> list[Record]:
        if b'"' not in text:
            return super()._split(text)
        try:
            lines = io.StringIO(text.decode(), newline="")
            return [fields for fields in csv.reader(lines, delimiter=self.delimiter, strict=True) if fields]
        except (UnicodeDecodeError, csv.Error) as error:
            raise DataError(f"{self.where} cannot be read as lines of fields: {error}.") from None


class NdjsonTable(TextTable):
    """A JSON value a line: an array of numbers, or an object of named numbers, or of one array and named targets."""

    format: ClassVar[str] = "ndjson"

    def __init__(self, file: Path | IO[bytes], where: str) -> None:
        super().__init__(file, where)
        first = self._load([self._sample[0]], 0)[0]
        self._key: str | None = None
        if isinstance(first, list):
            self.n_columns = len(first)
        elif isinstance(first, dict):
            lists = [name for name, value in first.items() if isinstance(value, list)]
            if len(lists) > 1:
                raise DataError(f"{where} has several arrays in an object, {lists[0]} and {lists[1]}: keep one.")
            scalars = tuple(name for name in first if name not in lists)
            if lists:
                self._key, self.others, self.n_columns = lists[0], scalars, len(first[lists[0]])
            else:
                self.names, self.n_columns = scalars, len(scalars)
        else:
            raise DataError(
                f"In {where}, row 0, there is neither an array nor an object, but {_shortened(str(first))}."
            )
        if not self.n_columns:
            raise DataError(f"{where} has no columns.")
        self._first = first

    def dtype_of(self, columns: NDArray[np.intp], *, text: bool = False) -> np.dtype[Any]:
        """Return float64: that is what numbers are read as."""
        values = [self._value(self._first, int(column), 0) for column in columns]
        if text and values and all(isinstance(value, str) for value in values):
            return np.dtype(str)
        for column, value in zip(columns, values, strict=True):
            if isinstance(value, str | list | dict):
                raise self._not_a_number(0, int(column), value)
        return np.dtype(np.float64)

    def parse(self, records: list[Record], features: NDArray[np.intp], targets: NDArray[np.intp], row: int) -> Piece:
        """Parse all records at once."""
        values = self._load(records, row)
        X = self._numbers(values, features, row)
        if not len(targets):
            return X, None
        columns = [self._target(values, int(column), row) for column in targets]
        return X, columns[0] if len(columns) == 1 else np.column_stack(columns)

    def _load(self, records: list[Record], row: int) -> list[Any]:
        try:
            values: list[Any] = json.loads(b"[" + b",".join(records) + b"]")
        except (ValueError, RecursionError):
            values = []
        # A line that closes a bracket and opens another may have made two rows of one.
        return values if len(values) == len(records) else self._load_each(records, row)

    def _load_each(self, records: list[Record], row: int) -> list[Any]:
        values = []
        for at, record in enumerate(records, row):
            try:
                values.append(json.loads(record))
            except (ValueError, RecursionError):
                raise DataError(f"In {self.where}, row {at}, there is no JSON value: {_shortened(record)}.") from None
        return values

    def _numbers(self, values: list[Any], features: NDArray[np.intp], row: int) -> Array:
        everything = len(features) == self.n_columns and (np.diff(features) == 1).all()
        try:
            if self.names is not None:
                chosen = [self.names[column] for column in features]
                rows = [[value[name] for name in chosen] for value in values]
            else:
                rows = [value[self._key] for value in values] if self._key is not None else values
                if any(len(fields) != self.n_columns for fields in rows):
                    return self._numbers_one_by_one(values, features, row)
                rows = rows if everything else [[fields[column] for column in features] for fields in rows]
            array = np.array(rows)
            if array.dtype.kind in "biuf":
                return array.astype(np.float64, copy=False).reshape(len(values), len(features))
        except (ValueError, KeyError, TypeError, IndexError, OverflowError):
            pass
        return self._numbers_one_by_one(values, features, row)

    def _numbers_one_by_one(self, values: list[Any], features: NDArray[np.intp], row: int) -> Array:
        rows = [
            [self._number(self._value(value, int(column), at), at, int(column)) for column in features]
            for at, value in enumerate(values, row)
        ]
        return np.array(rows, np.float64).reshape(len(values), len(features))

    def _target(self, values: list[Any], column: int, row: int) -> Array:
        found = [self._value(value, column, at) for at, value in enumerate(values, row)]
        for at, value in enumerate(found, row):
            if value is None:
                raise self.bad_value(at, column, None)
            if isinstance(value, list | dict):
                raise self._not_a_number(at, column, value)
        kinds = {isinstance(value, str) for value in found}
        if len(kinds) > 1:
            at = next(at for at, value in enumerate(found) if isinstance(value, str) != isinstance(found[0], str))
            raise self.error_at(row + at, column, "there is text among numbers: keep to one of the two")
        try:
            return np.array(found) if True in kinds else _as_numbers(found)
        except OverflowError:
            raise self.error_at(row, column, "or later, there is a number too large for float64") from None

    def _value(self, value: Any, column: int, row: int) -> Any:
        """Return what a record has in a column; raise DataError if it has none."""
        if isinstance(value, dict) and (self.names is not None or self._key is not None):
            name: Any = self._name(column)
            if name not in value:
                raise DataError(f"In {self.where}, row {row}, there is no {name!r}, which row 0 has.")
            value = value[name]
            if self.names is not None or column >= self.n_columns:
                return value
        if not isinstance(value, list) or (self.names is not None):
            kind = "array" if self.names is None else "object"
            raise DataError(f"In {self.where}, row {row}, there is no {kind}, as in row 0.")
        if len(value) != self.n_columns:
            raise DataError(
                f"In {self.where}, row {row}, there are {len(value)} numbers, and {self.n_columns} in row 0."
            )
        return value[column]

    def _name(self, column: int) -> str | None:
        if column >= self.n_columns:
            return self.others[column - self.n_columns]
        return self._key if self.names is None else self.names[column]

    def _number(self, value: Any, row: int, column: int) -> float:
        if value is None:
            raise self.bad_value(row, column, None)
        if isinstance(value, str | list | dict):
            raise self._not_a_number(row, column, value)
        try:
            return float(value)
        except OverflowError:
            raise self.error_at(row, column, "there is a number too large for float64") from None

    def _not_a_number(self, row: int, column: int, value: Any) -> DataError:
        shown = _shortened(value if isinstance(value, str) else json.dumps(value))
        return self.error_at(
            row, column, f"there is {shown}, not a number: leave such columns out by columns= or exclude="
        )


def _as_numbers(values: list[Any]) -> Array:
    if all(isinstance(value, bool) for value in values):
        return np.array(values)
    whole = all(isinstance(value, int) for value in values)
    return np.array(values, np.int64 if whole and all(-(2**63) <= v < 2**63 for v in values) else np.float64)


def _number(field: str) -> float:
    if "_" in field:
        # Python would read 1_000.
        raise ValueError(field)
    return float(field)


def _kind(fields: list[str]) -> str:
    try:
        numbers = [_number(field) for field in fields if field.strip()]
    except ValueError:
        return "U"
    whole = numbers and all(field.strip().lstrip("+-").isdigit() for field in fields if field.strip())
    return "i" if whole else "f"


def _looks_like_header(sample: list[list[str]]) -> bool:
    first = [_kind([field]) == "U" for field in sample[0]]
    if all(first) or len(sample) < 2:
        return all(first)
    second = [_kind([field]) == "U" for field in sample[1]]
    return any(is_text and not below for is_text, below in zip(first, second, strict=False))


def _shortened(text: str | bytes) -> str:
    shown = text.decode(errors="replace") if isinstance(text, bytes) else text
    return repr(shown if len(shown) <= 30 else shown[:30] + "...")


def _arrow_csv() -> Any:
    try:
        import pyarrow.csv
    except ImportError:
        return None
    return pyarrow.csv
