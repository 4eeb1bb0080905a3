"""Which columns of a table are features, as numbers or as levels of categories, and which have another role."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._core.errors import DataError
from .columns import NamesIfAny, find_columns, is_pattern
from .preparation import Category, Preparation, find_levels, require_distinct, split_level
from .reader import Columns, Reader
from .where import Where


def choose_columns(
    reader: Reader,
    targets: Columns,
    columns: Any,
    exclude: Any,
    categorical: Any,
    where: Where | None,
    roles: dict[str, int],
) -> Preparation:
    """Return which columns are features, as numbers or as levels."""
    given = _find_categories(reader, categorical)
    features: list[tuple[int, str | None]] = []
    for column, level in _find_features(reader, np.append(targets, [*roles.values()]), columns, exclude):
        if level is not None or column not in given:
            features.append((column, level))
    expanded = [column for column in given if all(column != other for other, _ in features)]
    found = find_levels(reader, [column for column in expanded if given[column] is None], where)
    if columns is None:
        # In the place of the column.
        features += [(column, level) for column in expanded for level in given[column] or found[column]]
        features.sort(key=lambda feature: feature[0])
    else:
        features += [(column, level) for column in expanded for level in given[column] or found[column]]
    if not features:
        raise DataError(f"No columns of {reader.where} are left to be features.")
    numbers = np.array([column for column, level in features if level is None], np.intp)
    levels: dict[int, list[str]] = {}
    for column, level in features:
        if level is not None:
            levels.setdefault(column, []).append(level)
    names = reader.names or ()
    categories = tuple(Category(column, names[column], tuple(known)) for column, known in levels.items())
    places = {(int(column), None): place for place, column in enumerate(numbers)}
    for category in categories:
        for level in category.levels:
            places[category.column, level] = len(places)  # type: ignore[index]
    order = np.array([places[feature] for feature in features], np.intp)  # type: ignore[index]
    is_in_order = bool((order == np.arange(len(order))).all())
    preparation = Preparation(numbers, targets, categories, None if is_in_order else order, where, roles)
    require_distinct(preparation.names(reader), reader.where)
    return preparation


def _find_categories(reader: Reader, categorical: Any) -> dict[int, tuple[str, ...] | None]:
    """Return columns of categories, with their levels if these are given."""
    if categorical is None:
        return {}
    if reader.names is None:
        raise DataError(f"categorical= is for columns with names, and those of {reader.where} have none.")
    levels: dict[str, tuple[str, ...]] = {}
    chosen = categorical
    if isinstance(categorical, dict):
        chosen, levels = list(categorical), {name: tuple(map(str, known)) for name, known in categorical.items()}
    found: dict[int, tuple[str, ...] | None] = {}
    for column in find_columns(chosen, reader.names, reader.n_columns, reader.where):
        reader.dtype_of(np.array([column], np.intp), text=True)
        found[int(column)] = levels.get(reader.names[column])
    return found


def _find_features(reader: Reader, taken: Columns, columns: Any, exclude: Any) -> list[tuple[int, str | None]]:
    """Return the columns that are features, those of categories with a level."""
    names, n = reader.names, reader.n_columns
    if isinstance(columns, NamesIfAny) and names is None:
        columns = None
    left_out: Columns = np.empty(0, np.intp)
    if exclude is not None:
        exclude = [exclude] if isinstance(exclude, str) else exclude
        if isinstance(exclude, list | tuple):
            # What can only be a target is no feature anyway.
            exclude = [item for item in exclude if item not in reader.others]
        left_out = find_columns(exclude, names, n, reader.where)
    if columns is None:
        chosen = np.setdiff1d(np.arange(n, dtype=np.intp), np.concatenate([taken, left_out, reader.index_columns]))
        return [(int(column), None) for column in chosen]
    items = [columns] if isinstance(columns, str | int | np.integer | range | slice) else list(columns)
    found: list[tuple[int, str | None]] = []
    for item in items:
        level = split_level(item, names) if isinstance(item, str) else None
        places = find_columns([item if level is None else level[0]], names, n, reader.where)
        if is_pattern(item, names):
            places = places[~np.isin(places, taken)]
        elif np.isin(places, taken).any():
            raise DataError("A column is both a feature and a target: leave it out of columns=.")
        kept = places[~np.isin(places, left_out)].tolist()
        # What several patterns stand for is there once.
        again = {column for column, _ in found} if is_pattern(item, names) else set()
        found += [(column, None if level is None else level[1]) for column in kept if column not in again]
    if len(set(found)) < len(found):
        twice = next(column for column, level in found if found.count((column, level)) > 1)
        raise DataError(f"Column {reader.column_name(twice)} of {reader.where} is chosen twice.")
    return found


def find_role(reader: Reader, role: str, column: Any) -> int:
    """Return the number of a column that is no feature."""
    found = find_columns(column, reader.names, reader.n_columns, reader.where)
    if len(found) != 1:
        raise DataError(f"{role}= names one column, not {len(found)}.")
    reader.dtype_of(found, text=role != "weight")
    return int(found[0])


def with_columns(where: Where, reader: Reader) -> Where:
    """Return the condition with the numbers of the columns that it names."""
    names = list(dict.fromkeys(where.names()))
    numbers = find_columns(names, reader.names, reader.n_columns, reader.where)
    return replace(where, columns=dict(zip(names, numbers.tolist(), strict=True)))
