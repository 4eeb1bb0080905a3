"""Several tables as one: the rows of each after those of the one before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._core.errors import DataError
from .columns import listed
from .table import Piece, Table


class Parts(Table):
    """Tables with the same columns, one after another. They are opened beforehand, so that a bad one is found early."""

    format: ClassVar[str] = "parts"

    def __init__(self, where: str, tables: Sequence[Table]) -> None:
        first = tables[0]
        super().__init__(where, first.n_columns)
        self.names, self.others = first.names, first.others
        self.tables = tables
        for table in tables[1:]:
            self._require_alike(table)
        self.slow = any(table.slow for table in tables)
        counts = [table.n_rows for table in tables]
        self.n_rows = None if None in counts else sum(count for count in counts if count is not None)

    @property
    def identity(self) -> tuple[Any, ...]:
        """Those of all parts."""
        return tuple(table.identity for table in self.tables)

    def dtype_of(self, columns: NDArray[np.intp], *, text: bool = False) -> np.dtype[Any]:
        """Return a dtype that holds what all parts have, if all have numbers or all have text."""
        dtypes = [table.dtype_of(columns, text=text) for table in self.tables]
        for table, dtype in zip(self.tables, dtypes, strict=True):
            if (dtype.kind in "SU") != (dtypes[0].kind in "SU"):
                raise DataError(
                    f"Column {self.column_name(int(columns[0]))} holds numbers in one of {self.tables[0].where} and "
                    f"{table.where}, and text in the other."
                )
        return np.result_type(*dtypes)

    def whole_bytes(self, features: NDArray[np.intp], targets: NDArray[np.intp]) -> int:
        """Return that of the part that takes the most."""
        return max(table.whole_bytes(features, targets) for table in self.tables)

    def count(self) -> int:
        """Return the rows of all parts."""
        self.n_rows = sum(table.count() for table in self.tables)
        return self.n_rows

    def pieces(self, features: NDArray[np.intp], targets: NDArray[np.intp], start: int, step: int) -> Iterator[Piece]:
        """Yield the rows of all parts."""
        dtype = self.dtype_of(features) if len(features) else None
        for table in self.tables:
            if start:
                skipped = min(start, table.count())
                start -= skipped
                if skipped == table.n_rows:
                    continue
            else:
                skipped = 0
            table.room = self.room
            for X, y in table.read(features, targets, skipped, step):
                yield X if dtype is None else X.astype(dtype, copy=False), y
                del X, y

    # Each part looks for numbers that are not finite, and knows its own rows.
    read = pieces

    def _require_alike(self, table: Table) -> None:
        first = self.tables[0]
        mine, theirs = (first.names or ()) + first.others, (table.names or ()) + table.others
        if mine != theirs:
            missing, more = [name for name in mine if name not in theirs], [name for name in theirs if name not in mine]
            if missing or more:
                difference = f"has no {listed(missing)}" if missing else f"has {listed(more)} besides"
            else:
                difference = "has its columns in another order"
            raise DataError(f"{table.where} does not go with {first.where}: it {difference}.")
        if table.n_columns != first.n_columns:
            raise DataError(f"{table.where} has {table.n_columns} column(s), and {first.where} has {first.n_columns}.")


def natural_order(path: Path) -> list[Any]:
    """Return a key that puts part 2 before part 10."""
    return [*(int(text) if text.isdecimal() else text for text in re.split(r"(\d+)", str(path))), str(path)]
