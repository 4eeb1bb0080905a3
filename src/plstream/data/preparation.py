"""What is made of the columns of a reader: rows are chosen, categories become columns of zeros and ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .._core.errors import DataError, shortened
from .._core.types import Array
from .reader import NO_COLUMNS, Columns, Pieces, Reader
from .where import Where

# More levels than this are taken for names of rows.
MOST_LEVELS = 1000
_LARGEST_EXACT = 2.0**53
_STEP = 1 << 14


class Category(NamedTuple):
    """A column of categories, each level of which is a feature that is one where the column has it, else zero."""

    column: int
    name: str
    levels: tuple[str, ...]

    @property
    def feature_names(self) -> list[str]:
        """Names of the features: that of the column and that of the level."""
        return [f"{self.name}={level}" for level in self.levels]


@dataclass
class Preparation:
    """Which columns of a reader become what.

    Attributes
    ----------
    numbers : array of int
        Columns that are features as they are.
    targets : array of int
        Columns that are targets.
    categories : tuple of Category
        Columns that become one feature per level.
    order : array of int, or None
        Where each feature is among the numbers and, after these, the levels; None if they are in that order.
    where : Where or None
        Which rows are used.
    roles : dict of str to int
        What other columns are, such as "weight", by name of the role.
    unseen : Counter
        Rows of each column with a level that it did not have, counted in the last read.
    """

    numbers: Columns
    targets: Columns = field(default_factory=lambda: NO_COLUMNS)
    categories: tuple[Category, ...] = ()
    order: Columns | None = None
    where: Where | None = None
    roles: dict[str, int] = field(default_factory=dict)
    unseen: Counter[str] = field(default_factory=Counter)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.numbers) + sum(len(category.levels) for category in self.categories)

    @property
    def optional(self) -> frozenset[int]:
        """Columns in which values may be missing."""
        return frozenset(category.column for category in self.categories)

    @property
    def is_plain(self) -> bool:
        """Whether columns are used unchanged."""
        return not self.categories and self.where is None and not self.roles

    @property
    def others(self) -> Columns:
        """Columns that are read beside the numbers, each once."""
        wanted = [*self.targets, *(category.column for category in self.categories), *self.roles.values()]
        wanted += [] if self.where is None else self.where.columns.values()
        return np.array(list(dict.fromkeys(map(int, wanted))), dtype=np.intp)

    def names(self, reader: Reader) -> list[str] | None:
        """Return the names of the features."""
        if reader.names is None:
            return None
        plain = [reader.names[column] for column in self.numbers]
        found = plain + [name for category in self.categories for name in category.feature_names]
        return found if self.order is None else [found[place] for place in self.order]

    def dtype(self, reader: Reader) -> np.dtype[Any]:
        """Return the type of the features."""
        return reader.dtype_of(self.numbers) if len(self.numbers) else np.dtype(np.float64)

    def rows(self, pieces: Iterator[Pieces]) -> Iterator[tuple[Array | None, ...]]:
        """Yield X, y and the columns that have a role."""
        others = self.others
        self.unseen.clear()
        for X, columns in pieces:
            found = dict(zip(others.tolist(), columns, strict=True))
            del columns
            if self.where is not None:
                chosen = self.where.mask(found)
                X, found = X[chosen], {column: values[chosen] for column, values in found.items()}  # noqa: PLW2901
            X = self._with_levels(X, found)  # noqa: PLW2901
            y = stacked([found[int(column)] for column in self.targets])
            yield X, y, *(found[column] for column in self.roles.values())
            del X, y, found

    def _with_levels(self, X: Array, found: Mapping[int, Array]) -> Array:
        if not self.categories:
            return X
        parts = [X if len(self.numbers) else np.empty((len(X), 0))]
        for category in self.categories:
            values = as_levels(found[category.column])
            ones = values[:, None] == np.array(category.levels, dtype=str)
            # A missing category is none of the levels.
            n_unseen = int(np.count_nonzero(~ones.any(axis=1) & (values != "")))
            if n_unseen:
                self.unseen[category.name] += n_unseen
            parts.append(ones.astype(parts[0].dtype))
        rows = np.concatenate(parts, axis=1)
        return rows if self.order is None else rows[:, self.order]


def stacked(columns: list[Array]) -> Array | None:
    """Return columns side by side; a single one as a vector, none as None."""
    if not columns:
        return None
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


def as_levels(values: Array) -> Array:
    """Return the values of a column as text, as levels are named; missing numbers as empty text."""
    if values.dtype.kind == "U":
        return values
    if values.dtype.kind != "f":
        return values.astype(str)
    # Integers are floats where others are missing, and have the same names.
    is_integer = np.abs(values) < _LARGEST_EXACT
    is_integer[is_integer] = values[is_integer] == np.round(values[is_integer])
    names = np.where(is_integer, np.where(is_integer, values, 0).astype(np.int64).astype(str), values.astype(str))
    return np.where(np.isnan(values), "", names)


def find_levels(reader: Reader, columns: list[int], where: Where | None) -> dict[int, tuple[str, ...]]:
    """Return the levels of columns, in ascending order, from a read of these alone."""
    if not columns:
        return {}
    if not reader.rereadable:
        name = reader.column_name(columns[0])
        raise DataError(
            f"{reader.where} can be read only once, and the levels of column {name} are found by a read of their own: "
            f"pass them, as by categorical={{{name}: [...]}}."
        )
    found: dict[int, set[str]] = {column: set() for column in columns}
    preparation = Preparation(NO_COLUMNS, np.array(columns, np.intp), where=where)
    reader.optional = frozenset(columns)
    for piece in reader.read(NO_COLUMNS, preparation.others, 0, _STEP):
        values = dict(zip(preparation.others.tolist(), piece[1], strict=True))
        chosen = slice(None) if where is None else where.mask(values)
        for column, levels in found.items():
            levels.update(set(np.unique(as_levels(values[column][chosen])).tolist()) - {""})
            if len(levels) > MOST_LEVELS:
                which = f"Column {reader.column_name(column)} of {reader.where}"
                raise DataError(f"{which} has more than {MOST_LEVELS:,} levels: leave it out by exclude=.")
    return {column: tuple(sorted(levels, key=_natural)) for column, levels in found.items()}


def _natural(level: str) -> tuple[int, float, str]:
    """Return a key that puts numbers in their order, before other text."""
    try:
        return 0, float(level), level
    except ValueError:
        return 1, 0.0, level


def split_level(name: str, names: tuple[str, ...] | None) -> tuple[str, str] | None:
    """Take the name of a feature such as "kind=red" apart, if there is a column "kind" and none of the whole name."""
    if names is None or name in names:
        return None
    # A level may have the sign in it, and so may the name of a column.
    for at, sign in enumerate(name):
        if sign == "=" and name[:at] in names:
            return name[:at], name[at + 1 :]
    return None


def require_distinct(names: list[str] | None, where: str) -> None:
    """Raise DataError if two features have the same name."""
    if names is not None and len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"Two features of {where} would be named {shortened(twice)}: give columns other names.")
