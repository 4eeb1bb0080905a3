"""Errors in data, whose message is one plain sentence that names the file, the row and the column."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from .types import Array
from .urls import redacted

Item = TypeVar("Item")
_LONGEST_SHOWN = 60
_LONGEST_REASON = 200


class DataError(ValueError):
    """Data that cannot be used.

    The message is one line, whatever names and strings the data contains, and never contains passwords of URLs.
    """

    def __init__(self, message: str) -> None:
        super().__init__(printable(redacted(message)))


class NonFiniteError(ValueError):
    """A non-finite number in X or y (``name``), with the position of the first one.

    ``known_as`` is the name of its column, if known; ``instead`` suggests an alternative to removing the value;
    ``where`` is the block whose rows are counted, unless they are counted from the start.
    """

    def __init__(
        self,
        name: str,
        row: int,
        column: int,
        *,
        is_missing: bool,
        known_as: str = "",
        instead: str = "",
        where: str = "",
    ) -> None:
        self.name, self.row, self.column, self.is_missing = name, row, column, is_missing
        self.known_as, self.instead, self.where = known_as, instead, where
        kind = "NaN" if is_missing else "infinity"
        super().__init__(
            f"{f'In {where}: ' if where else ''}Input {name} contains {kind} (first in row {row}, column "
            f"{shortened(known_as) if known_as else column}): drop or replace such values{instead}."
        )

    def of_model(self, model: Any) -> NonFiniteError:
        """Return the error with the column name, and the model's parameter for missing values."""
        changes = {}
        names = getattr(model, "feature_names_in_", None)
        if self.name == "X" and names is not None and self.column < len(names):
            changes["known_as"] = str(names[self.column])
        how = getattr(model, "_missing_by", {}).get(self.name) if self.is_missing else None
        if how is not None:
            changes["instead"] = f", or set missing={how!r}"
        return self._with(**changes)

    def within(self, where: str) -> NonFiniteError:
        """Return the error with rows counted in a block."""
        return self._with(where=where)

    def _with(self, **changes: str) -> NonFiniteError:
        return NonFiniteError(**{**vars(self), **changes})

    def __reduce__(self) -> Any:
        return partial(NonFiniteError, **vars(self)), ()


def printable(text: str) -> str:
    """Return text with control characters escaped, such as terminal sequences."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def beginning(text: str) -> str:
    """Return the beginning of a text for a message."""
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def shortened(text: str | bytes) -> str:
    """Return text in quotation marks, shortened for a message."""
    return repr(beginning(text.decode(errors="replace") if isinstance(text, bytes) else text))


def counted(n: int, thing: str, things: str | None = None) -> str:
    """Return a number with a noun in the singular or plural.

    Examples
    --------
    >>> from plstream._core.errors import counted
    >>> counted(1, "row"), counted(2000, "row"), counted(2, "class", "classes")
    ('1 row', '2,000 rows', '2 classes')
    """
    return f"{n:,} {thing if n == 1 else things or f'{thing}s'}"


@contextmanager
def wrap_library_errors(where: str, problem: str = "is damaged or truncated") -> Iterator[None]:
    """Raise DataError for any exception of a library inside, whatever its type."""
    try:
        yield
    except DataError:
        raise
    except MemoryError:
        raise DataError(f"{where} requires more memory than is available, or is damaged.") from None
    except Exception as error:  # noqa: BLE001
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise DataError(f"{where} {problem}: {lines[0][:_LONGEST_REASON].rstrip('.')}.") from None


def wrap_iteration(items: Iterator[Item], where: str) -> Iterator[Item]:
    """Yield the items of a library's iterator; its exceptions become DataError."""
    while True:
        with wrap_library_errors(where):
            found = next(items, None)
        if found is None:
            return
        yield found
        # Free the item before the next one is read.
        del found


def import_optional(module: str, what: str, extra: str = "io") -> Any:
    """Import an optional dependency, installed by an extra of this package."""
    try:
        return import_module(module)
    except ImportError:
        package = module.split(".", maxsplit=1)[0].replace("PIL", "pillow")
        raise ImportError(
            f"{redacted(what)} requires the package {package}: pip install 'plstream[{extra}]'."
        ) from None


def usable_dtype(dtype: np.dtype[Any], where: str, *, text: bool = False) -> np.dtype[Any]:
    """Return the dtype of the returned values; raise DataError unless they are numbers or strings."""
    if dtype.kind == "O":
        raise DataError(f"{where} holds Python objects, which are never loaded: save it as an array of numbers.")
    if dtype.names is not None:
        raise DataError(f"{where} holds records with several fields: save it as a two-dimensional array.")
    if dtype.kind == "c":
        raise DataError(f"{where} holds complex numbers: split them into real and imaginary parts.")
    if dtype.kind not in ("biufSU" if text else "biuf"):
        raise DataError(f"{where} holds values of type {dtype}, not numbers.")
    if dtype.kind == "f" and dtype.itemsize > 8:
        return np.dtype(np.float64)
    return dtype.newbyteorder("=")


def first_not_finite(values: Array, *, allow_missing: bool = False) -> tuple[int, ...] | None:
    """Return the position of the first value that is not finite, or None; NaN may be allowed."""
    if values.dtype.kind != "f" or not values.size:
        return None
    if values.dtype.itemsize >= 4:
        # A product with ones is as fast as reading. If it overflows, the values are checked individually.
        rows = values.reshape(len(values), -1)
        with np.errstate(over="ignore", invalid="ignore"):
            suspects = np.flatnonzero(~np.isfinite(rows @ np.ones(rows.shape[1], rows.dtype)))
    else:
        suspects = np.arange(len(values))
    step = max(1, (1 << 20) // max(1, values[:1].size))
    for start in range(0, len(suspects), step):
        rows = suspects[start : start + step]
        bad = np.argwhere(np.isinf(values[rows]) if allow_missing else ~np.isfinite(values[rows]))
        if len(bad):
            return int(rows[bad[0, 0]]), *map(int, bad[0, 1:])
    return None
