"""How the columns of a reader are used: as numbers, categories, targets, or columns with other roles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .._core.errors import DataError, shortened
from .._core.types import Array
from .columns import NamesIfAny, as_items, find_columns, find_item, first_duplicate, is_pattern, places_of
from .reader import LARGEST_EXACT, NO_COLUMNS, Columns, Pieces, Reader
from .where import Where

# Columns with more levels are assumed to identify rows.
MOST_LEVELS = 1000
_STEP = 1 << 14

Feature: TypeAlias = tuple[int, str | None]
"""A column, and the level that its indicator stands for; None for a column of numbers."""


class Category(NamedTuple):
    """A categorical column. Each level becomes an indicator feature: one in rows with that level, else zero."""

    column: int
    name: str
    levels: tuple[str, ...]


@dataclass
class Preparation:
    """How the columns of a reader are used."""

    numbers: Columns
    """Columns that are features."""
    targets: Columns = field(default_factory=lambda: NO_COLUMNS)
    """Columns that are targets."""
    categories: tuple[Category, ...] = ()
    """Columns that become one feature per level."""
    order: Columns | None = None
    """Positions of the features among the numbers and, after these, the levels; None if in that order."""
    where: Where | None = None
    """Which rows are used."""
    roles: dict[str, int] = field(default_factory=dict)
    """Columns with other roles, such as "weight"."""
    unseen: Counter[str] = field(default_factory=Counter)
    """Number of rows with an unknown level, by column, in the last read."""

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.numbers) + sum(len(category.levels) for category in self.categories)

    @property
    def optional(self) -> frozenset[int]:
        """Columns where values may be missing."""
        return frozenset(category.column for category in self.categories)

    @property
    def is_plain(self) -> bool:
        """Whether all rows and columns are used as they are."""
        return not self.categories and self.where is None and not self.roles

    @property
    def others(self) -> Columns:
        """Columns that are read in addition to the numbers, each once."""
        wanted = [*self.targets, *(category.column for category in self.categories), *self.roles.values()]
        wanted += [] if self.where is None else self.where.columns.values()
        return np.array(list(dict.fromkeys(map(int, wanted))), dtype=np.intp)

    def names(self, reader: Reader) -> list[str] | None:
        """Return the names of the features, such as "kind=red" for levels."""
        if reader.names is None:
            return None
        found = [reader.names[column] for column in self.numbers]
        found += [f"{category.name}={level}" for category in self.categories for level in category.levels]
        return found if self.order is None else [found[place] for place in self.order]

    def dtype(self, reader: Reader) -> np.dtype[Any]:
        """Return the dtype of the features."""
        return reader.dtype_of(self.numbers) if len(self.numbers) else np.dtype(np.float64)

    def rows(self, pieces: Iterator[Pieces]) -> Iterator[tuple[Array | None, ...]]:
        """Yield X, y and the columns with a role."""
        others = self.others
        self.unseen.clear()
        for X, columns in pieces:
            found = dict(zip(others.tolist(), columns, strict=True))
            del columns
            if self.where is not None:
                chosen = self.where.mask(found)
                X, found = X[chosen], {column: values[chosen] for column, values in found.items()}  # noqa: PLW2901
            X = self._with_levels(X, found)  # noqa: PLW2901
            targets = [found[int(column)] for column in self.targets]
            y = np.column_stack(targets) if len(targets) > 1 else targets[0] if targets else None
            yield X, y, *(found[column] for column in self.roles.values())
            del X, y, found, targets

    def _with_levels(self, X: Array, found: Mapping[int, Array]) -> Array:
        if not self.categories:
            return X
        parts = [X if len(self.numbers) else np.empty((len(X), 0))]
        for category in self.categories:
            values = _as_levels(found[category.column])
            ones = values[:, None] == np.array(category.levels, dtype=str)
            # A missing category is not an unknown level.
            n_unseen = int(np.count_nonzero(~ones.any(axis=1) & (values != "")))
            if n_unseen:
                self.unseen[category.name] += n_unseen
            parts.append(ones.astype(parts[0].dtype))
        rows = np.concatenate(parts, axis=1)
        return rows if self.order is None else rows[:, self.order]


def choose_columns(
    reader: Reader,
    targets: Columns,
    columns: Any,
    exclude: Any,
    categorical: Any,
    where: Where | None,
    roles: dict[str, int],
) -> Preparation:
    """Return how columns are used, from the arguments of ``open_source``."""
    categories = _find_categories(reader, categorical)
    features = [
        (column, level)
        for column, level in _find_features(reader, np.append(targets, [*roles.values()]), columns, exclude)
        if level is not None or column not in categories
    ]
    # Of all other columns, only the levels named in columns= are features.
    named = {column for column, _ in features}
    expanded = [column for column in categories if column not in named]
    found = _find_levels(reader, [column for column in expanded if categories[column] is None], where)
    features += [(column, level) for column in expanded for level in categories[column] or found[column]]
    if columns is None:
        features.sort(key=lambda feature: feature[0])
    if not features:
        raise DataError(f"No columns of {reader.where} are left to be features.")
    numbers = [column for column, level in features if level is None]
    levels: dict[int, list[str]] = {}
    for column, level in features:
        if level is not None:
            levels.setdefault(column, []).append(level)
    read: list[Feature] = [(column, None) for column in numbers]
    read += [(column, level) for column, known in levels.items() for level in known]
    places = {feature: place for place, feature in enumerate(read)}
    preparation = Preparation(
        np.array(numbers, np.intp),
        targets,
        tuple(Category(column, (reader.names or ())[column], tuple(known)) for column, known in levels.items()),
        None if read == features else np.array([places[feature] for feature in features], np.intp),
        where,
        roles,
    )
    twice = first_duplicate(preparation.names(reader) or ())
    if twice is not None:
        raise DataError(f"Two features of {reader.where} would be named {shortened(twice)}: give columns other names.")
    return preparation


def _find_categories(reader: Reader, categorical: Any) -> dict[int, tuple[str, ...] | None]:
    """Return the categorical columns, with their levels if given."""
    if categorical is None:
        return {}
    if reader.names is None:
        raise DataError(f"categorical= requires column names, but {reader.where} has none.")
    given = categorical if isinstance(categorical, dict) else {}
    levels = {name: tuple(map(str, known)) for name, known in given.items()}
    found: dict[int, tuple[str, ...] | None] = {}
    for column in find_columns(list(given) or categorical, reader.names, reader.n_columns, reader.where):
        reader.dtype_of(np.array([column], np.intp), text=True)
        found[int(column)] = levels.get(reader.names[column])
    return found


def _find_features(reader: Reader, taken: Columns, columns: Any, exclude: Any) -> list[Feature]:
    """Return the chosen features, except for the levels of categorical columns that are not named."""
    names, n = reader.names, reader.n_columns
    if isinstance(columns, NamesIfAny) and names is None:
        columns = None
    left_out = NO_COLUMNS
    if exclude is not None:
        # Columns that can only be targets are never features.
        items = [item for item in as_items(exclude) if not (isinstance(item, str) and item in reader.others)]
        left_out = find_columns(items, names, n, reader.where)
    if columns is None:
        chosen = np.setdiff1d(np.arange(n, dtype=np.intp), np.concatenate([taken, left_out, reader.index_columns]))
        return [(int(column), None) for column in chosen]
    found: list[Feature] = []
    places = places_of(names)
    for item in as_items(columns):
        name, level = _split_level(item, places)
        numbers = find_item(name, places, n, reader.where)
        again: set[int] = set()
        if is_pattern(item, places):
            # Columns that match several patterns are used once.
            numbers, again = numbers[~np.isin(numbers, taken)], {column for column, _ in found}
        elif np.isin(numbers, taken).any():
            raise DataError("A column is both a feature and a target: leave it out of columns=.")
        kept = numbers[~np.isin(numbers, left_out)].tolist()
        found += [(column, level) for column in kept if column not in again]
    twice = first_duplicate(found)
    if twice is not None:
        raise DataError(f"Column {reader.column_name(twice[0])} of {reader.where} is chosen twice.")
    return found


def _split_level(item: Any, names: Mapping[str, int] | None) -> tuple[Any, str | None]:
    """Split a feature name such as "kind=red" if "kind" is a column, and "kind=red" is not."""
    if isinstance(item, str) and names is not None and item not in names:
        # Both levels and names of columns may contain the sign.
        for at, sign in enumerate(item):
            if sign == "=" and item[:at] in names:
                return item[:at], item[at + 1 :]
    return item, None


def find_role(reader: Reader, role: str, column: Any) -> int:
    """Return the number of a column with a role other than feature or target."""
    found = find_columns(column, reader.names, reader.n_columns, reader.where)
    if len(found) != 1:
        raise DataError(f"{role}= must name one column, not {len(found)}.")
    reader.dtype_of(found, text=role != "weight")
    return int(found[0])


def _find_levels(reader: Reader, columns: list[int], where: Where | None) -> dict[int, tuple[str, ...]]:
    """Return the levels of columns in ascending order, from a read of these columns."""
    if not columns:
        return {}
    if not reader.rereadable:
        name = reader.column_name(columns[0])
        raise DataError(
            f"{reader.where} can be read only once, but the levels of column {name} must be known first: "
            f"pass them, for example categorical={{{name}: [...]}}."
        )
    found: dict[int, set[str]] = {column: set() for column in columns}
    others = Preparation(NO_COLUMNS, np.array(columns, np.intp), where=where).others
    reader.optional = frozenset(columns)
    for _, read in reader.read(NO_COLUMNS, others, 0, _STEP):
        values = dict(zip(others.tolist(), read, strict=True))
        chosen = slice(None) if where is None else where.mask(values)
        for column, levels in found.items():
            levels.update(set(np.unique(_as_levels(values[column][chosen])).tolist()) - {""})
            if len(levels) > MOST_LEVELS:
                which = f"Column {reader.column_name(column)} of {reader.where}"
                raise DataError(f"{which} has more than {MOST_LEVELS:,} levels: leave it out by exclude=.")
    return {column: tuple(sorted(levels, key=_natural_order)) for column, levels in found.items()}


def _as_levels(values: Array) -> Array:
    """Return the values of a column as names of levels; missing values are empty strings."""
    if values.dtype.kind == "U":
        return values
    if values.dtype.kind != "f":
        return values.astype(str)
    # Columns of integers with missing values are floats, but have the same names.
    is_integer = np.abs(values) < LARGEST_EXACT
    is_integer[is_integer] = values[is_integer] == np.round(values[is_integer])
    names = np.where(is_integer, np.where(is_integer, values, 0).astype(np.int64).astype(str), values.astype(str))
    return np.where(np.isnan(values), "", names)


def _natural_order(level: str) -> tuple[int, float, str]:
    """Return a sort key that puts numbers in their order, before other text."""
    try:
        return 0, float(level), level
    except ValueError:
        return 1, 0.0, level
