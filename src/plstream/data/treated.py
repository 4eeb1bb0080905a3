"""A source whose rows are transformed block by block, such as by the steps before a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, SupportsIndex

import numpy as np

from .._core.errors import DataError, first_not_finite
from .._core.types import Array
from .reading import Parts
from .source import Source


class TreatedSource(Source):
    """The rows of a source, transformed by a function; targets stay unchanged.

    Parameters
    ----------
    source : Source
        The rows.
    treat : callable
        Transforms the rows of a block; the number of columns it returns must not vary.
    sample : ndarray of shape (n, n_columns)
        Its result for some rows, which has the number of columns and their type.
    names : sequence of str, default=None
        Names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from plstream import open_source
    >>> from plstream.data.treated import TreatedSource
    >>> source = open_source(np.arange(6.0).reshape(3, 2), target=np.arange(3.0))
    >>> roots = TreatedSource(source, np.sqrt, np.ones((1, 2)))
    >>> [X.round(1).tolist() for X, y in roots.blocks()]
    [[[0.0, 1.0], [1.4, 1.7], [2.0, 2.2]]]
    """

    def __init__(
        self, source: Source, treat: Callable[[Array], Array], sample: Array, names: Sequence[str] | None = None
    ) -> None:
        vars(self).update(vars(source))
        self._source, self._treat, self._names = source, treat, names
        self.n_columns, self.dtype = int(sample.shape[1]), sample.dtype
        if self.batch_size is None and self._row_bytes > source._row_bytes:
            # Blocks have the same size in bytes as those of the source.
            self.block_rows = max(1, self.block_rows * source._row_bytes // self._row_bytes)

    @property
    def feature_names(self) -> list[str] | None:
        """Names of the columns."""
        return None if self._names is None else list(self._names)

    @property
    def slow(self) -> bool:
        """True: keeping transformed rows in a temporary file is faster than transforming them again."""
        return True

    def mapped(self) -> None:
        """Return None: there is no file of transformed rows."""

    def require_finite(self) -> None:
        """Read all rows, and raise DataError for the first one that is not finite, in the file or transformed."""
        row = self.first_row
        for X, _ in self.blocks():
            bad = first_not_finite(X, allow_missing=self.allow_missing)
            if bad is not None:
                raise DataError(
                    f"In {self.name}, row {row + bad[0]}, the steps before the model return NaN or infinity "
                    f"(column {bad[1]}): leave out such rows, or use other steps."
                )
            row += len(X)

    def _is_mapped(self) -> bool:
        # Blocks are read and transformed ahead of their use.
        return False

    def _read_from(self, row: int) -> Iterator[Parts]:
        for X, *others in super()._read_from(row):
            yield self._treated(X, row), *others
            row += len(X)
            del X, others

    def _treated(self, X: Array, row: int) -> Array:
        try:
            rows = self._treat(X)
        except ValueError as error:
            reason = str(error).partition("\n")[0].strip()
            raise DataError(f"In {self.name}, from row {row} on: {reason}") from None
        if rows.shape != (len(X), self.n_columns):
            raise DataError(
                f"In {self.name}, from row {row} on, the steps before the model return {rows.shape[0]} rows of "
                f"{rows.shape[1]} columns instead of {len(X)} of {self.n_columns}: every step must return one output "
                "row per input row, and always the same number of columns."
            )
        return rows

    def _fingerprint_of_files(self) -> str:
        return f"{super()._fingerprint_of_files()}-treated"

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        source = object.__new__(Source)
        own = {"_source", "_treat", "_names", "n_columns", "dtype"}
        vars(source).update({name: value for name, value in vars(self).items() if name not in own})
        source.n_columns, source.dtype = self._source.n_columns, self._source.dtype
        sample = np.empty((0, self.n_columns), self.dtype)
        return _treated_again, (source, self._treat, sample, self._names, self.block_rows)


def _treated_again(source: Source, treat: Any, sample: Array, names: Any, block_rows: int) -> TreatedSource:
    """Return the source where it is unpickled."""
    treated = TreatedSource(source, treat, sample, names)
    treated.block_rows = block_rows
    return treated
