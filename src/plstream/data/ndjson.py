"""NDJSON: one JSON value per line."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import IO, Any, cast

import numpy as np

from .._core.errors import DataError, shortened
from .._core.remote import AnyPath
from .._core.types import Array
from .columns import first_duplicate, listed
from .reader import Columns, OpenOptions, Pieces, Reader, are_adjacent
from .text import Record, TextReader


def open_ndjson(file: AnyPath | IO[bytes], where: str, _options: OpenOptions) -> Reader:
    """Open NDJSON."""
    return NdjsonReader(file, where)


class NdjsonReader(TextReader):
    """One JSON value per line: an array, an object of named numbers, or an object of one array and named targets."""

    # Name of the array in an object, if any, and the first record.
    _key: str | None = None
    _first: Any = None

    def _find_columns(self) -> None:
        where, first = self.where, self._load([self._sample[0]], 0)[0]
        if isinstance(first, list):
            self.n_columns = len(first)
        elif isinstance(first, dict):
            lists = [name for name, value in first.items() if isinstance(value, list)]
            if len(lists) > 1:
                raise DataError(f"{where} has several arrays in an object, {listed(lists)}: keep one.")
            scalars = tuple(name for name in first if name not in lists)
            if lists:
                self._key, self.others, self.n_columns = lists[0], scalars, len(first[lists[0]])
            else:
                self.names, self.n_columns = scalars, len(scalars)
        else:
            raise DataError(f"In {where}, row 0 is neither an array nor an object, but {shortened(str(first))}.")
        if not self.n_columns:
            raise DataError(f"{where} has no columns.")
        self._first = first

    def dtype_of(self, columns: Columns, *, text: bool = False) -> np.dtype[Any]:
        """Return float64, or str for text."""
        values = [self._value(self._first, int(column), 0) for column in columns]
        if text and values and all(isinstance(value, str) for value in values):
            return np.dtype(str)
        other = {int(column): value for column, value in zip(columns, values, strict=True) if _is_no_number(value)}
        if other:
            raise self.not_a_number(0, *other.popitem()) if len(other) == 1 else self.not_numeric(other)
        return np.dtype(np.float64)

    def parse(self, records: list[Record], features: Columns, others: Columns, row: int) -> Pieces:
        """Parse all records at once."""
        values = self._load(records, row)
        X = self._numbers(values, features, row)
        return X, [self._target(values, int(column), row) for column in others]

    def parsed_bytes(self, text: bytes) -> int:
        """Return the memory of the text and its lines, joined and decoded, of the parsed objects, and of the arrays."""
        records = text.count(b"\n") + 1
        return 4 * len(text) + 256 * records + 112 * (text.count(b",") + records)

    def _load(self, records: list[Record], row: int) -> list[Any]:
        values: list[Any] = []
        text = b"[" + b",".join(records) + b"]"
        with suppress(ValueError, RecursionError):
            values = json.loads(text)
        # A line that closes a bracket and opens another could become two rows.
        if len(values) == len(records):
            n_names = sum(len(value) for value in values if isinstance(value, dict))
            # There are more colons than names if a name occurs twice, or if there are colons in text.
            if n_names == text.count(b":"):
                return values
            with suppress(KeyError):
                return cast("list[Any]", json.loads(text, object_pairs_hook=_named_once))
        values = []
        for at, record in enumerate(records, row):
            try:
                values.append(json.loads(record, object_pairs_hook=_named_once))
            except KeyError as twice:
                name = shortened(twice.args[0])
                raise DataError(f"In {self.where}, row {at}, {name} occurs twice: use each name once.") from None
            except (ValueError, RecursionError):
                raise DataError(f"In {self.where}, row {at} is not valid JSON: {shortened(record)}.") from None
        return values

    def _numbers(self, values: list[Any], features: Columns, row: int) -> Array:
        everything = len(features) == self.n_columns and are_adjacent(features)
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

    def _numbers_one_by_one(self, values: list[Any], features: Columns, row: int) -> Array:
        rows = [
            [self._number(self._value(value, int(column), at), at, int(column)) for column in features]
            for at, value in enumerate(values, row)
        ]
        return np.array(rows, np.float64).reshape(len(values), len(features))

    def _target(self, values: list[Any], column: int, row: int) -> Array:
        found = [self._value(value, column, at) for at, value in enumerate(values, row)]
        for at, value in enumerate(found, row):
            if value is None and not self.allow_missing and column not in self.optional:
                raise self.bad_value(at, column, None)
            if isinstance(value, list | dict):
                raise self.not_a_number(at, column, value)
        if column in self.optional and None in found and any(isinstance(value, bool) for value in found):
            found = [None if value is None else str(value) for value in found]
        if None in found and not any(isinstance(value, str) for value in found):
            return np.array([np.nan if value is None else value for value in found], np.float64)
        if column in self.optional:
            found = ["" if value is None else value for value in found]
        kinds = {isinstance(value, str) for value in found}
        if len(kinds) > 1:
            at = next(at for at, value in enumerate(found) if isinstance(value, str) != isinstance(found[0], str))
            raise self.error_at(row + at, column, "strings are mixed with numbers: use one type")
        try:
            return np.array(found) if True in kinds else _as_numbers(found)
        except OverflowError:
            raise self.error_at(row, column, "or later, there is a number too large for float64") from None

    def _value(self, value: Any, column: int, row: int) -> Any:
        """Return the value of a record in a column; raise DataError if there is none."""
        if self.names is not None or self._key is not None:
            if not isinstance(value, dict):
                raise DataError(f"In {self.where}, row {row} is not an object, but row 0 is.")
            name = self.name_of(column)
            name = self._key if name is None else name
            if name not in value:
                raise DataError(f"In {self.where}, row {row} has no {shortened(name or '')}, but row 0 has.")
            value = value[name]
            if self.names is not None or column >= self.n_columns:
                return value
        if not isinstance(value, list):
            raise DataError(f"In {self.where}, row {row} is not an array, but row 0 is.")
        if len(value) != self.n_columns:
            raise DataError(f"In {self.where}, row {row} has {len(value)} numbers, but row 0 has {self.n_columns}.")
        return value[column]

    def _number(self, value: Any, row: int, column: int) -> float:
        if value is None:
            if self.allow_missing:
                return np.nan
            raise self.bad_value(row, column, None)
        if _is_no_number(value):
            raise self.not_a_number(row, column, value)
        try:
            return float(value)
        except OverflowError:
            raise self.error_at(row, column, "there is a number too large for float64") from None


def _is_no_number(value: Any) -> bool:
    return isinstance(value, str | list | dict)


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; raise KeyError for a name that occurs twice, where Python keeps the last value."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise KeyError(first_duplicate(name for name, _ in pairs))
    return found


def _as_numbers(values: list[Any]) -> Array:
    if all(isinstance(value, bool) for value in values):
        return np.array(values)
    whole = all(isinstance(value, int) for value in values)
    return np.array(values, np.int64 if whole and all(-(2**63) <= v < 2**63 for v in values) else np.float64)
