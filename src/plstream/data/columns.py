"""Columns by name, number or range."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from glob import has_magic
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._core.errors import DataError, beginning, counted, shortened

Item = TypeVar("Item")
_MOST_NAMES_SHOWN = 8
_NUMBER_OR_RANGE = re.compile(r"(-?\d+)|(-?\d+)?:(-?\d+)?")


class NameOrNumber(str):
    """Columns on the command line: a name or, if no column has that name, a number or a range such as 3:10."""

    __slots__ = ()

    def meant(self, names: Container[str] | None) -> str | int | slice:
        """Resolve the columns in a table with these names."""
        match = None if self in (names or ()) else _NUMBER_OR_RANGE.fullmatch(self)
        if match is None:
            return str(self)
        number, start, stop = (None if part is None else int(part) for part in match.groups())
        return slice(start, stop) if number is None else number


class NamesIfAny(tuple[str, ...]):
    """Columns by these names if columns have names, otherwise all of them in order."""

    __slots__ = ()


def listed(names: Iterable[Any]) -> str:
    """Return the first names, for a message."""
    shown = [beginning(str(name)) for name in names]
    more = len(shown) - _MOST_NAMES_SHOWN
    return ", ".join(shown[:_MOST_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def find_columns(chosen: Any, names: Sequence[str] | None, n_columns: int, where: str) -> NDArray[np.intp]:
    """Return the numbers of the columns chosen by a name, number, range or slice, or by a list of these."""
    places = places_of(names)
    found = [np.empty(0, np.intp), *(find_item(item, places, n_columns, where) for item in as_items(chosen))]
    numbers = np.concatenate(found)
    twice = first_duplicate(sorted(numbers.tolist()))
    if twice is not None:
        raise DataError(f"Column {twice if names is None else shortened(names[twice])} of {where} is chosen twice.")
    return numbers


def places_of(names: Sequence[str] | None) -> dict[str, int] | None:
    """Return the numbers of columns by name, for columns with names; equal names mean the first column."""
    return None if names is None else {name: i for i, name in reversed(list(enumerate(names)))}


def first_duplicate(items: Iterable[Item]) -> Item | None:
    """Return the first of the items that occurs more than once, or None."""
    return next((item for item, count in Counter(items).items() if count > 1), None)


def require_unique(names: Iterable[str], where: str) -> None:
    """Raise DataError if two columns have the same name."""
    twice = first_duplicate(names)
    if twice is not None:
        raise DataError(f"{where} has several columns named {shortened(twice)}: give every column a different name.")


def is_pattern(item: Any, names: Container[str] | None) -> bool:
    """Return whether an item is a pattern such as ``"sensor_*"``, and not a name itself."""
    return isinstance(item, str) and names is not None and item not in names and has_magic(item)


def as_items(chosen: Any) -> list[Any]:
    """Return an argument such as ``columns`` as a list of names, numbers, ranges and slices."""
    return [chosen] if isinstance(chosen, str | Integral | slice | range) else list(chosen)


def find_item(item: Any, places: dict[str, int] | None, n_columns: int, where: str) -> NDArray[np.intp]:
    """Return the numbers of columns chosen by one name, pattern, number, range or slice."""
    if isinstance(item, NameOrNumber):
        item = item.meant(places)
    if isinstance(item, slice):
        return np.arange(n_columns, dtype=np.intp)[item]
    if is_pattern(item, places):
        assert places is not None
        matching = [number for name, number in places.items() if fnmatchcase(name, item)]
        if not matching:
            raise DataError(f"No column of {where} matches {item!r}: its columns are {listed(_in_order(places))}.")
        return np.array(sorted(matching), dtype=np.intp)
    if isinstance(item, str):
        return np.array([_find_name(item, places, where)], dtype=np.intp)
    if isinstance(item, bool | np.bool_) or not isinstance(item, Integral | range):
        raise TypeError(f"Columns are chosen by a name, number, range or slice, not by {item!r}.")
    numbers = np.array(item if isinstance(item, range) else [item], dtype=np.intp)
    outside = (numbers < -n_columns) | (numbers >= n_columns)
    if outside.any():
        raise DataError(
            f"There is no column {numbers[outside][0]} in {where}, which has {counted(n_columns, 'column')}."
        )
    return numbers % max(1, n_columns)


def _find_name(name: str, places: dict[str, int] | None, where: str) -> int:
    if places is None:
        raise DataError(f"There is no column {name!r} in {where}, whose columns have no names: use a number.")
    if name not in places:
        similar = get_close_matches(name, places, 2, 0.75)
        if similar:
            raise DataError(f"There is no column {name!r} in {where}: did you mean {' or '.join(map(repr, similar))}?")
        names = _in_order(places)
        last = f", the last {beginning(names[-1])}" if len(names) > _MOST_NAMES_SHOWN else ""
        raise DataError(f"There is no column {name!r} in {where}: its columns are {listed(names)}{last}.")
    return places[name]


def _in_order(places: dict[str, int]) -> list[str]:
    return sorted(places, key=lambda name: places[name])
