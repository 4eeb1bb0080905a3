"""CSV and TSV: one record per line, fields with delimiters."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import IO, Any

import numpy as np

from .._core.errors import DataError, counted, shortened
from .._core.remote import AnyPath
from .._core.types import Array
from .reader import LARGEST_EXACT, Columns, OpenOptions, Pieces, Reader, stack_columns
from .text import Record, TextReader

# With more columns, or fewer records at a time, NumPy is faster than Arrow.
_MOST_COLUMNS_OF_ARROW = 4096
_LEAST_RECORDS_OF_ARROW = 32
# Memory that Arrow takes per column, however few records there are.
_ARROW_COLUMN_BYTES = 1500
# Types of fields: missing, possibly missing, integer, float, text. The type of a column is the last one among its
# fields. A column without values may be numbers, and one of words such as "none" the labels of sorted rows.
_KINDS = ["", "?", "i", "f", "U"]
_KINDS_OF_COLUMNS = {"": "f", "?": "U"}
# Names of the index column that pandas writes first, unless index=False.
_INDEX_NAMES = {"", "Unnamed: 0"}
_OTHER_DELIMITERS = (";", "\t", "|")
# Spellings of missing values, which are not names; in a column of text, some of them may be labels.
_ALWAYS_MISSING = {"", "na", "n/a", "#n/a", "null"}
_MISSING = _ALWAYS_MISSING | {"none", "?", "-"}
# Decimal commas and separators of thousands.
_WITH_COMMAS = re.compile(r"[+-]?\d[\d.]*,[\d,.]*\d")
_SPELLINGS = sorted(
    {spelling for word in _MISSING for spelling in (word, word.upper(), word.capitalize())} | {"NaN", "nan"}
)


def open_csv(file: AnyPath | IO[bytes], where: str, options: OpenOptions) -> Reader:
    """Open CSV, with a comma as delimiter unless given or detected otherwise."""
    reader = CsvReader(file, where, options.delimiter or ",", header=options.header)
    if options.delimiter is None and reader.n_columns == 1 and (other := reader.likely_delimiter()) is not None:
        if not reader.rereadable:
            raise DataError(
                f"The fields of {where} are separated by {other!r}, not by commas: pass delimiter={other!r}."
            )
        return CsvReader(file, where, other, header=options.header)
    return reader


def open_tsv(file: AnyPath | IO[bytes], where: str, options: OpenOptions) -> Reader:
    """Open TSV, with a tab as delimiter unless given otherwise."""
    return CsvReader(file, where, options.delimiter or "\t", header=options.header)


class CsvReader(TextReader):
    """Lines of delimited fields, possibly quoted.

    By default, the first line is a header if none of its fields is a number, or if one of them is text above a number.
    """

    def __init__(self, file: AnyPath | IO[bytes], where: str, delimiter: str = ",", *, header: bool | None) -> None:
        self.delimiter, self.header = delimiter, header
        # A field that begins with a quotation mark, and its end; elsewhere quotation marks have no meaning.
        begin = b"(?<![^\n" + re.escape(delimiter.encode()) + b'])"'
        self._quoted = re.compile(begin + b'(?:[^"]++|"")*+("|\\Z)')
        self._arrow = _arrow_csv()
        # Types of the columns.
        self.kinds: list[str] = []
        super().__init__(file, where)

    def _find_columns(self) -> None:
        first = [self._fields(record) for record in self._sample[:2]]
        header = _looks_like_header(first) if self.header is None else self.header
        self._header_records = int(header)
        if header:
            self.names = tuple(name.strip() for name in first[0])
        if len(self._sample) == self._header_records:
            raise DataError(f"{self.where} has no rows, only a header.")
        self.n_columns = len(first[0])
        self.kinds = self._kinds()
        if self.names is not None and self.names[0] in _INDEX_NAMES and self.n_columns > 1:
            numbers_rows = all(fields[0].strip() == str(row) for row, fields in enumerate(self._sample_fields()))
            self.index_columns = np.zeros(int(numbers_rows), np.intp)

    def _sample_fields(self) -> Iterator[list[str]]:
        """Yield the fields of the first records, one record at a time."""
        return map(self._fields, self._sample[self._header_records :])

    def likely_delimiter(self) -> str | None:
        """Return another delimiter that occurs equally often in all of the first records, if any."""
        lines = [self._as_bytes(record).decode(errors="replace") for record in self._sample]
        counts = {sign: {line.count(sign) for line in lines} for sign in _OTHER_DELIMITERS}
        return next((sign for sign, found in counts.items() if len(found) == 1 and found != {0}), None)

    def _kinds(self) -> list[str]:
        """Return the types of the columns in the first records."""
        kinds = [""] * self.n_columns
        for fields in self._sample_fields():
            # Rows of another length are errors when they are read.
            if len(fields) == self.n_columns:
                kinds = [max(pair, key=_KINDS.index) for pair in zip(kinds, map(_kind, fields), strict=True)]
        return [_KINDS_OF_COLUMNS.get(kind, kind) for kind in kinds]

    def dtype_of(self, columns: Columns, *, text: bool = False) -> np.dtype[Any]:
        """Return float64, or str for text."""
        kinds = {self.kinds[column] for column in columns}
        if text and kinds == {"U"}:
            return np.dtype(str)
        if "U" in kinds:
            refused = [int(column) for column in columns if self.kinds[column] == "U"]
            # The first text in one of the first records.
            row, field = max(self._rows_of(refused[0]), key=lambda found: _KINDS.index(_kind(found[1])))
            if len(refused) == 1 or _WITH_COMMAS.fullmatch(field.strip()):
                raise self.not_a_number(row, refused[0], field)
            raise self.not_numeric(refused)
        return np.dtype(np.float64)

    def kind_of(self, column: int) -> str:
        """Return the type of a column in the first records, distinguishing dates from other text."""
        if self.kinds[column] != "U":
            return {"i": "integer", "f": "number"}[self.kinds[column]]
        texts = [field.strip() for _, field in self._rows_of(column) if _kind(field) == "U"]
        return "date" if texts and all(map(_is_date, texts)) else "text"

    def _rows_of(self, column: int) -> Iterator[tuple[int, str]]:
        """Yield row and text of a column in the first records."""
        for row, fields in enumerate(self._sample_fields()):
            if len(fields) == self.n_columns:
                yield row, fields[column]

    def not_a_number(self, row: int, column: int, found: Any) -> DataError:
        """Return the error for text in place of a number, with advice if the text is a number with commas."""
        if not _WITH_COMMAS.fullmatch(found.strip()):
            return super().not_a_number(row, column, found)
        problem = (
            f"there is {shortened(found)}, a number with a comma: write decimal points, and thousands without commas"
        )
        return self.error_at(row, column, problem)

    def parse(self, records: list[Record], features: Columns, others: Columns, row: int) -> Pieces:
        """Parse by Arrow, otherwise by NumPy; if both fail, locate the error."""
        numbers = [int(column) for column in (*features, *others) if self.kinds[column] != "U"]
        texts = [int(column) for column in others if self.kinds[column] == "U"]
        if not numbers and not texts:
            return np.empty((len(records), 0)), []
        lines = None if any(isinstance(record, list) for record in records) else b"\n".join(records)
        is_few = len(records) < _LEAST_RECORDS_OF_ARROW
        parsed = None if lines is None or is_few else self._by_arrow(lines, numbers, texts)
        if parsed is None or len(parsed[0]) != len(records):
            parsed = self._by_numpy(records, lines, numbers, texts, row)
        values, labels = parsed
        X = np.ascontiguousarray(values[:, : len(features)])
        for column, label in zip(texts, labels, strict=True):
            if column not in self.optional and (missing := label == "").any():
                raise self.bad_value(row + int(np.argmax(missing)), column, None)
        plain, text = iter(values[:, len(features) :].T), iter(labels)
        columns = [
            next(text) if self.kinds[column] == "U" else self._integers_if_any(next(plain), int(column), row)
            for column in others
        ]
        return X, columns

    def parsed_bytes(self, text: bytes) -> int:
        """Return the memory of text, lines, Arrow arrays and two arrays of values; for quoted records, of objects."""
        records = text.count(b"\n") + 1
        fields = text.count(self.delimiter.encode()) + records
        if b'"' in text:
            return 8 * len(text) + 160 * records + 128 * fields
        return 4 * len(text) + 80 * records + 20 * fields + _ARROW_COLUMN_BYTES * self.n_columns

    def _integers_if_any(self, values: Array, column: int, row: int) -> Array:
        """Return integers if the first rows and these have only integers."""
        values = np.ascontiguousarray(values)
        if self.kinds[column] != "i" or not (values == np.round(values)).all():
            return values
        if (large := np.abs(values) >= LARGEST_EXACT).any():
            problem = "an integer is too large to be read exactly: use strings for labels, floats (1e20) for values"
            raise self.error_at(row + int(np.argmax(large)), column, problem)
        return values.astype(np.int64)

    def _by_arrow(self, lines: bytes, numbers: list[int], texts: list[int]) -> tuple[Array, list[Array]] | None:
        """Parse all lines, or return None if anything is wrong."""
        if self._arrow is None or self.n_columns > _MOST_COLUMNS_OF_ARROW:
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
                    column_types=types,
                    include_columns=[str(column) for column in (*numbers, *texts)],
                    # Without missing values, Arrow need not build a table of their spellings for every column.
                    null_values=_SPELLINGS if self.parses_missing else [],
                    true_values=[],
                    false_values=[],
                ),
            )
        except (pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowNotImplementedError):
            return None
        checked = table.columns[len(numbers) :] if self.parses_missing else table.columns
        if any(column.null_count for column in checked):
            return None
        columns = [column.to_numpy(zero_copy_only=False) for column in table.columns]
        split = len(numbers)
        values = stack_columns(columns[:split], np.dtype(np.float64)) if split else np.empty((table.num_rows, 0))
        return values, [np.char.strip(column.astype(str)) for column in columns[split:]]

    def _by_numpy(
        self, records: list[Record], lines: bytes | None, numbers: list[int], texts: list[int], row: int
    ) -> tuple[Array, list[Array]]:
        """Parse by NumPy, or field by field if there are quotation marks, text or missing values."""
        delimiter = self.delimiter.encode()
        by_fields = lines is None or texts or self.n_columns == 1 or self.parses_missing
        fields = [self._fields(record) for record in records] if by_fields else []
        with suppress(ValueError, IndexError):
            if by_fields:
                read = np.array([[self._number(f[j]) for j in numbers] for f in fields], np.float64)
                labels = [np.array([line[column].strip() for line in fields]) for column in texts]
                return read.reshape(len(fields), len(numbers)), labels
            if all(record.count(delimiter) == self.n_columns - 1 for record in records):
                text = map(bytes.decode, records)
                read = np.loadtxt(text, delimiter=self.delimiter, comments=None, usecols=numbers, ndmin=2)
                if len(read) == len(records):
                    return read, []
        raise self._what_is_wrong(records, numbers, row)

    def _number(self, field: str) -> float:
        is_missing = self.parses_missing and field.strip().lower() in _MISSING
        return np.nan if is_missing else _number(field)

    def _what_is_wrong(self, records: list[Record], numbers: list[int], row: int) -> DataError:
        for at, record in enumerate(records, row):
            fields = self._fields(record)
            if len(fields) != self.n_columns:
                return DataError(
                    f"{self.where}, row {at}, has {counted(len(fields), 'field')}, but other rows have "
                    f"{self.n_columns}."
                )
            for column in numbers:
                kind = _kind(fields[column])
                if kind == "U":
                    return self.not_a_number(at, column, fields[column])
                if kind in _KINDS_OF_COLUMNS and not self.parses_missing:
                    return self.bad_value(at, column, None)
        return DataError(f"{self.where} cannot be parsed as numbers, from row {row} on.")

    def _fields(self, record: Record) -> list[str]:
        if isinstance(record, list):
            return record
        try:
            return next(csv.reader([record.decode()], delimiter=self.delimiter), [""])
        except (UnicodeDecodeError, csv.Error):
            raise DataError(f"{self.where} does not consist of lines of UTF-8 text: {shortened(record)}.") from None

    def _as_bytes(self, record: Record) -> bytes:
        # It is a list if there are quotation marks in the same chunk.
        return self.delimiter.join(record).encode() if isinstance(record, list) else bytes(record)

    def _cut(self, text: bytes, end: int) -> int:
        """Return the end of the last complete record: quoted fields may contain line breaks."""
        if b'"' not in text:
            return super()._cut(text, end)
        cut = after = 0
        for field in self._quoted.finditer(text, 0, end):
            cut = text.rfind(b"\n", after, field.start()) + 1 or cut
            after = field.end() if field[1] else end
        return text.rfind(b"\n", after, end) + 1 or cut

    def _split(self, text: bytes) -> list[Record]:
        if b'"' not in text:
            delimiter = self.delimiter.encode()
            return [line for line in text.splitlines() if line and (delimiter in line or not line.isspace())]
        try:
            lines = io.StringIO(text.decode(), newline="")
            rows = csv.reader(lines, delimiter=self.delimiter, strict=True)
            return [fields for fields in rows if fields and (len(fields) > 1 or not fields[0].isspace())]
        except (UnicodeDecodeError, csv.Error) as error:
            raise DataError(f"{self.where} cannot be read as lines of fields: {error}.") from None


def _kind(field: str) -> str:
    word = field.strip().lower()
    if word in _MISSING:
        return "" if word in _ALWAYS_MISSING else "?"
    try:
        _number(field)
    except ValueError:
        return "U"
    return "i" if field.strip().lstrip("+-").isdigit() else "f"


def _is_date(field: str) -> bool:
    """Return whether a field is a date in ISO 8601 format, possibly with a time."""
    try:
        datetime.fromisoformat(field)
    except ValueError:
        return False
    return True


def _number(field: str) -> float:
    if "_" in field:
        # Python accepts 1_000.
        raise ValueError(field)
    return float(field)


def _looks_like_header(sample: list[list[str]]) -> bool:
    first = [_kind(field) == "U" for field in sample[0]]
    if all(first) or len(sample) < 2:
        return all(first)
    second = [_kind(field) == "U" for field in sample[1]]
    return any(is_text and not below for is_text, below in zip(first, second, strict=False))


def _arrow_csv() -> Any:
    try:
        import pyarrow.csv
    except ImportError:
        return None
    return pyarrow.csv
