"""FoldAssignment: the fold of each row, by its number, by its group, or as given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from hashlib import blake2b
from math import inf
from numbers import Integral, Real
from typing import Any, Self, TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import check_consistent_length
from sklearn.utils._missing import is_pandas_na
from sklearn.utils.validation import _num_samples

from .._core.types import Array, Float64Array, Rows
from ..data import Source
from ..rows import Block

FoldNumbers: TypeAlias = NDArray[np.int64]

# Columns that assign rows to folds.
_COLUMNS = "groups", "folds"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Months have no fixed length, so any number will do.
_ATTOSECONDS = {
    "Y": 12 * 10**9,
    "M": 10**9,
    "generic": 10**9,
    "W": 604_800 * 10**18,
    "D": 86_400 * 10**18,
    "h": 3600 * 10**18,
    "m": 60 * 10**18,
    "s": 10**18,
    "ms": 10**15,
    "us": 10**12,
    "ns": 10**9,
    "ps": 10**6,
    "fs": 1000,
    "as": 1,
}


@dataclass(frozen=True)
class FoldAssignment:
    """How rows are assigned to folds."""

    n_folds: int
    by: str
    """Rule that assigns rows to folds, which must not change during a stream."""
    block_length: int = 1
    """Number of consecutive rows that stay together, if rows are assigned by number."""
    given: FoldNumbers | None = None
    """The fold of each row, if rows are not assigned by number."""

    @classmethod
    def by_columns(cls, n_folds: int, block_length: int, groups: Any, folds: Any) -> Self:
        """Assign by groups or folds, if given; their values are not used yet."""
        if groups is not None and folds is not None:
            raise ValueError("groups and folds both assign rows to folds: pass only one of them.")
        if groups is not None or folds is not None:
            return cls(n_folds, "folds" if groups is None else "groups")
        return cls(n_folds, "rows" if block_length == 1 else f"blocks of {block_length} rows", block_length)

    @classmethod
    def of(cls, n_folds: int, block_length: int, groups: Any, folds: Any) -> Self:
        """Assign by groups or folds, if given, else by number."""
        assignment = cls.by_columns(n_folds, block_length, groups, folds)
        if groups is not None:
            return replace(assignment, given=folds_of_groups(groups, n_folds))
        if folds is not None:
            return replace(assignment, given=_require_folds(as_vector(folds, "folds"), n_folds))
        return assignment

    @classmethod
    def by_roles(cls, n_folds: int, block_length: int, source: Source) -> Self:
        """Assign by the column of groups or folds of a source, if it has one; its values are not read yet."""
        named = {role: role if role in source.roles else None for role in _COLUMNS}
        return cls.by_columns(n_folds, block_length, **named)

    @classmethod
    def of_source(cls, n_folds: int, block_length: int, source: Source) -> Self:
        """Assign rows of nonzero weight by the column of groups or folds of a source; if it has neither, by number."""
        assignment = cls.by_roles(n_folds, block_length, source)
        if assignment.by not in _COLUMNS:
            return assignment
        kept = []
        for values in source.column(assignment.by):
            columns = {role: values if role == assignment.by else None for role in _COLUMNS}
            given: Any = cls.of(n_folds, block_length, **columns).given
            # One or two bytes per row.
            kept.append(given.astype(np.min_scalar_type(-n_folds)))
        folds = np.concatenate(kept)
        if "weight" in source.roles:
            folds = folds[np.concatenate([weight > 0 for weight in source.column("weight")])]
        return replace(assignment, given=folds)

    def present(self, X: Rows, weight: Float64Array | None) -> Self:
        """Return the assignment of the rows with a positive weight."""
        if self.given is None:
            return self
        check_consistent_length(X, self.given)
        return self if weight is None else replace(self, given=self.given[weight > 0])

    def folds(self, n_before: int, start: int, n_rows: int) -> FoldNumbers:
        """Return the folds of ``n_rows`` rows from ``start`` on, after ``n_before`` rows of earlier calls."""
        if self.given is not None:
            return self.given[start : start + n_rows]
        return folds_of_rows(n_before, n_rows, self.n_folds, self.block_length)

    def blocks(
        self, blocks: Iterable[Block], n_before: int = 0, *, labelled: bool
    ) -> Iterator[tuple[Block, FoldNumbers]]:
        """Yield blocks with the folds of their rows; if ``labelled``, only rows that have a response."""
        n_read = n_kept = 0
        for read in blocks:
            block = read.labelled() if labelled else read
            if not block.n_rows:
                n_read += read.n_rows
                continue
            if self.given is None:
                folds = self.folds(n_before + n_kept, n_kept, block.n_rows)
            else:
                folds = self.folds(n_read, n_read, read.n_rows)
                if len(folds) < read.n_rows:
                    raise self._length_error(f"at least {n_read + read.n_rows}")
                if block is not read:
                    folds = folds[~np.isnan(read.Y).all(axis=1)]
            yield block, folds
            n_read, n_kept = n_read + read.n_rows, n_kept + block.n_rows
        self.require_length(n_read)

    def require_length(self, n_rows: int) -> None:
        """Raise ValueError unless the fold of every row is given, if any is."""
        if self.given is not None and len(self.given) != n_rows:
            raise self._length_error(str(n_rows))

    def _length_error(self, n_rows: str) -> ValueError:
        n_given = 0 if self.given is None else len(self.given)
        return ValueError(f"X has {n_rows} rows, but {self.by} has {n_given} entries: every row requires one.")


def folds_of_rows(first: int, n_rows: int, n_folds: int, block_length: int = 1) -> FoldNumbers:
    """Return the folds of rows by their numbers, in pseudorandom order, with folds of equal size.

    Each of ``n_folds`` consecutive blocks goes to a different fold, by the rank of a hash of its number.

    Examples
    --------
    >>> from plstream.estimators.cv_folds import folds_of_rows
    >>> folds_of_rows(0, 9, 3).tolist()
    [2, 0, 1, 0, 2, 1, 2, 0, 1]
    """
    blocks = np.arange(first, first + n_rows) // block_length
    rounds = np.arange(first // block_length // n_folds, (first + n_rows - 1) // block_length // n_folds + 1)
    hashes = _hashed(rounds[:, None] * n_folds + np.arange(n_folds))
    ranks = np.argsort(np.argsort(hashes, axis=1), axis=1).astype(np.int64)
    folds: FoldNumbers = ranks.ravel()[blocks - rounds[0] * n_folds]
    return folds


def folds_of_groups(groups: Any, n_folds: int) -> FoldNumbers:
    """Return the folds of rows by a hash of their groups, which depends on the value of a group, not on its type.

    Two groups may share a fold, but one group must not be in two: values that may denote the same group count as one.

    Examples
    --------
    >>> from plstream.estimators.cv_folds import folds_of_groups
    >>> folds_of_groups([7, 7.0, "7", b"7", "lot 7"], 100).tolist()
    [87, 87, 87, 87, 33]
    """
    folds: FoldNumbers = (_hashed(_keys(as_groups(groups))) % np.uint64(n_folds)).astype(np.int64)
    return folds


def as_groups(groups: Any) -> Array:
    """Return groups as an array of their values."""
    # Lists become object arrays: NumPy would convert large integers to floats, and numbers among strings to strings.
    return as_vector(groups if hasattr(groups, "__array__") else np.asarray(groups, dtype=object), "groups")


def folds_of_splits(cv: Any, X: Any, y: Any, groups: Any) -> FoldNumbers:
    """Return the fold of each row, given a splitter, pairs of training and test rows, or an array of folds."""
    if hasattr(cv, "dtype") and np.ndim(cv) == 1:
        return np.unique(np.asarray(cv), return_inverse=True)[1].astype(np.int64)
    every_row = np.arange(_num_samples(X))
    folds, times = np.zeros_like(every_row), np.zeros_like(every_row)
    for fold, (train, test) in enumerate(check_cv(cv).split(X, y, groups)):
        folds[test] = fold
        times[test] += 1
        if not np.array_equal(np.sort(every_row[train]), np.setdiff1d(every_row, every_row[test])):
            raise ValueError(
                "cv must train on all rows that it does not test on, once, and on no others: use KFold or the like."
            )
    if (times != 1).any():
        row = int(np.argmax(times != 1))
        raise ValueError(
            f"The test sets of cv must be a partition of the rows, but row {row} is in {times[row]} of them: use a "
            "splitter such as KFold or GroupKFold."
        )
    return folds


def as_vector(values: Any, name: str) -> Array:
    """Return an array with one entry per row; raise ValueError if any is masked."""
    if np.ma.is_masked(values):
        raise _missing(int(np.argmax(np.ma.getmaskarray(values))), name, "masked")
    vector: Array = np.asarray(values)
    if vector.ndim != 1:
        raise ValueError(f"{name} must have one dimension, one entry per row, not {vector.ndim}.")
    return vector


def _missing(row: int, name: str, value: Any) -> ValueError:
    return ValueError(f"{name} has no value for row {row} ({value}): every row requires one.")


def _require_folds(folds: Array, n_folds: int) -> FoldNumbers:
    if folds.dtype.kind not in "iu" or folds.min(initial=0) < 0 or folds.max(initial=0) >= n_folds:
        raise ValueError(f"folds must be integers from 0 to {n_folds - 1}, because there are {n_folds} folds.")
    return folds.astype(np.int64)


def _hashed(numbers: NDArray[np.integer[Any]]) -> NDArray[np.uint64]:
    """Return a hash of each number, the same on all machines (SplitMix64)."""
    z = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _keys(groups: Array) -> NDArray[np.uint64]:
    """Return a 64-bit key for each group, the same for equal groups of all types."""
    kind = groups.dtype.kind
    if kind in "biu":
        return groups.astype(np.uint64)
    if kind in "fmM":
        missing = np.isnan(groups) if kind == "f" else np.isnat(groups)
        if missing.any():
            raise _missing(int(np.argmax(missing)), "groups", "NaN" if kind == "f" else "NaT")
    if kind == "f" and groups.itemsize <= 8 and (np.abs(groups) < 2.0**53).all():
        floats = groups.astype(np.float64)
        integers = floats.astype(np.int64)
        return np.where(floats == integers, integers, floats.view(np.int64)).astype(np.uint64)
    if kind in "mM":
        nanoseconds = _nanoseconds_at_once(groups)
        if nanoseconds is not None:
            return nanoseconds.astype(np.uint64)
    if kind in "USmM":
        distinct, which = np.unique(groups, return_inverse=True)
        return np.array([_key(group) for group in distinct], np.uint64)[which]
    ids = groups.tolist()
    # Most groups have one of these two types, and few distinct values.
    known = {group: _key(group) for group in {group for group in ids if type(group) in {int, str}}}
    keys = []
    for row, group in enumerate(ids):
        try:
            keys.append(known[group] if type(group) in {int, str} else _key(group))
        except _MissingError:
            raise _missing(row, "groups", group) from None
    return np.array(keys, np.uint64)


class _MissingError(Exception):
    """A group is a missing value."""


def _key(group: Any) -> int:
    """Return the 64-bit key of a group."""
    if isinstance(group, int | np.bool_):
        return _integer_key(int(group))
    if isinstance(group, str | bytes | UUID):
        return _text_key(group if isinstance(group, bytes) else str(group).encode("utf-8", "surrogatepass"))
    if group is None or group is np.ma.masked:
        raise _MissingError
    is_time = isinstance(group, date | timedelta | np.datetime64 | np.timedelta64)
    if is_time or isinstance(group, Real | Decimal):
        # NaN and NaT are equal to nothing.
        if group != group:  # noqa: PLR0124
            raise _MissingError
        return _integer_key(_nanoseconds(group)) if is_time else _number_key(group)
    if is_pandas_na(group):
        raise _MissingError
    raise ValueError(
        f"groups must be numbers, strings or dates, not values of type {type(group).__name__}: convert them to strings."
    )


def _text_key(text: bytes) -> int:
    """Return the key of a string. An integer literal, such as an id in a CSV file, has the key of the integer."""
    # NumPy string arrays drop trailing zero bytes.
    text = text.rstrip(b"\0")
    try:
        return _integer_key(int(text))
    except ValueError:
        return _digest(text)


def _number_key(number: Any) -> int:
    """Return the key of an integer of any type, or the bits of another number."""
    if isinstance(number, Integral):
        return _integer_key(int(number))
    if abs(number) != inf:
        numerator, denominator = number.as_integer_ratio()
        if denominator == 1:
            return _integer_key(numerator)
    return int(np.float64(number).view(np.uint64))


def _integer_key(number: int) -> int:
    if -(2**63) <= number < 2**64:
        return number % 2**64
    return _digest(number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True))


def _digest(content: bytes) -> int:
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")


def _nanoseconds(moment: Any) -> int:
    """Return the time since 1970 in UTC, or a duration, rounded down to nanoseconds.

    Dates without a time zone are in UTC, like the NumPy arrays that pandas and Arrow make of dates with one.
    """
    # The pandas types are finer than their base classes in the standard library.
    moment = getattr(moment, "asm8", moment)
    if isinstance(moment, datetime):
        moment = (moment.replace(tzinfo=UTC) if moment.utcoffset() is None else moment) - _EPOCH
    if isinstance(moment, timedelta):
        return moment // timedelta(microseconds=1) * 1000
    if isinstance(moment, date):
        moment = np.datetime64(moment)
    counts, attoseconds = _counts(moment)
    return int(counts) * attoseconds // 10**9


def _nanoseconds_at_once(moments: Array) -> NDArray[np.int64] | None:
    """Return the same for an array, or None if a value exceeds 64 bits or the unit is finer than nanoseconds."""
    counts, attoseconds = _counts(moments)
    factor, finer = divmod(attoseconds, 10**9)
    most = max(abs(int(counts.min(initial=0))), int(counts.max(initial=0)))
    return None if finer or most * factor >= 2**63 else counts * factor


def _counts(moments: Any) -> tuple[Any, int]:
    """Return NumPy dates or durations as integers, and their unit in attoseconds."""
    if moments.dtype.kind == "M" and np.datetime_data(moments.dtype)[0] in {"Y", "M"}:
        moments = moments.astype("datetime64[D]")
    unit, step = np.datetime_data(moments.dtype)
    return moments.astype(np.int64), step * _ATTOSECONDS[unit]
