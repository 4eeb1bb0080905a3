"""Which fold a row is in: by its number, by its group, or as the caller says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import blake2b
from numbers import Real
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import _num_samples

from .._types import Array, Float64Array, Rows

FoldNumbers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Dealing:
    """How rows are dealt to folds.

    Attributes
    ----------
    n_folds : int
        Number of folds.
    by : str
        What decides: in a stream, that is always the same.
    block_length : int
        Rows that stay together where numbers of rows decide.
    given : ndarray of shape (n_rows,), or None
        The fold of each row where something else decides.
    """

    n_folds: int
    by: str
    block_length: int = 1
    given: FoldNumbers | None = None

    @classmethod
    def of(cls, n_folds: int, block_length: int, groups: Any, folds: Any) -> Self:
        """Decide by groups or folds if there are any."""
        if groups is not None and folds is not None:
            raise ValueError("groups and folds both say which rows are in a fold: pass one of them.")
        if groups is not None:
            return cls(n_folds, "groups", given=folds_of_groups(_vector(groups, "groups"), n_folds))
        if folds is not None:
            return cls(n_folds, "folds", given=_require_folds(_vector(folds, "folds"), n_folds))
        return cls(n_folds, "rows" if block_length == 1 else f"blocks of {block_length} rows", block_length)

    def present(self, X: Rows, weight: Float64Array | None) -> Self:
        """Return the same for the rows that have a weight."""
        if self.given is None:
            return self
        check_consistent_length(X, self.given)
        return self if weight is None else replace(self, given=self.given[weight > 0])

    def folds(self, n_before: int, start: int, n_rows: int) -> FoldNumbers:
        """Return the folds of rows from one on, before which there have been ``n_before`` in all calls so far."""
        if self.given is not None:
            return self.given[start : start + n_rows]
        return folds_of_rows(n_before, n_rows, self.n_folds, self.block_length)


def folds_of_rows(first: int, n_rows: int, n_folds: int, block_length: int = 1) -> FoldNumbers:
    """Return the folds of rows by their numbers, in an order without a pattern, and so that folds are of equal size.

    Of ``n_folds`` blocks in a row, each goes to another fold: they are ranked by a hash of their number.

    Examples
    --------
    >>> from plstream.estimators._dealing import folds_of_rows
    >>> folds_of_rows(0, 9, 3).tolist()
    [2, 0, 1, 0, 2, 1, 2, 0, 1]
    """
    blocks = np.arange(first, first + n_rows) // block_length
    rounds = np.arange(first // block_length // n_folds, (first + n_rows - 1) // block_length // n_folds + 1)
    hashes = _hashed(rounds[:, None] * n_folds + np.arange(n_folds))
    ranks = np.argsort(np.argsort(hashes, axis=1), axis=1).astype(np.int64)
    folds: FoldNumbers = ranks.ravel()[blocks - rounds[0] * n_folds]
    return folds


def folds_of_groups(groups: Array, n_folds: int) -> FoldNumbers:
    """Return the folds of rows by a hash of their groups: numbers of equal value, or equal texts, are one group."""
    if groups.dtype.kind == "O":
        groups = groups.astype(np.float64 if all(isinstance(group, Real) for group in groups) else str)
    if groups.dtype.kind not in "biufUSmM":
        raise ValueError(f"groups must be numbers or text, not values of type {groups.dtype}.")
    if groups.dtype.kind == "f" and np.isnan(groups).any():
        raise ValueError("groups contain NaN: every row needs a group.")
    values, which = np.unique(groups, return_inverse=True)
    if values.dtype.kind in "US":
        hashes = np.array([_hashed_text(value) for value in values.tolist()], np.uint64)
    else:
        hashes = _hashed(_as_integers(values))
    folds: FoldNumbers = (hashes % np.uint64(n_folds)).astype(np.int64)[which]
    return folds


def folds_of_splits(cv: Any, X: Any, y: Any, groups: Any) -> FoldNumbers:
    """Return the fold of each row according to a splitter, to pairs of training and test rows, or to numbers."""
    if hasattr(cv, "dtype") and np.ndim(cv) == 1:
        return np.unique(np.asarray(cv), return_inverse=True)[1].astype(np.int64)
    every_row = np.arange(_num_samples(X))
    folds, times = np.zeros_like(every_row), np.zeros_like(every_row)
    for fold, (train, test) in enumerate(check_cv(cv).split(X, y, groups)):
        folds[test] = fold
        times[test] += 1
        if len(every_row[train]) != len(every_row) - len(every_row[test]):
            raise ValueError("cv must train on all rows that it does not test on.")
    if (times != 1).any():
        row = int(np.argmax(times != 1))
        raise ValueError(
            f"The test sets of cv must be a partition of the rows, and row {row} is in {times[row]} of them: use a "
            "splitter such as KFold or GroupKFold."
        )
    return folds


def _vector(values: Any, name: str) -> Array:
    vector: Array = np.asarray(values)
    if vector.ndim != 1:
        raise ValueError(f"{name} must have one dimension, an entry a row, not {vector.ndim}.")
    return vector


def _require_folds(folds: Array, n_folds: int) -> FoldNumbers:
    if folds.dtype.kind not in "iu" or folds.min(initial=0) < 0 or folds.max(initial=0) >= n_folds:
        raise ValueError(f"folds must be whole numbers from 0 to {n_folds - 1}, for there are {n_folds}.")
    return folds.astype(np.int64)


def _hashed(numbers: FoldNumbers) -> NDArray[np.uint64]:
    """Return a hash of each number that is the same everywhere (SplitMix64)."""
    z = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _hashed_text(text: str | bytes) -> int:
    content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "little")


def _as_integers(values: Array) -> NDArray[np.int64]:
    """Return whole numbers as they are, and the bits of others: 2 and 2.0 are the same group."""
    if values.dtype.kind != "f":
        return values.astype(np.int64)
    floats = values.astype(np.float64)
    whole = (floats == np.round(floats)) & (np.abs(floats) < 2.0**63)
    return np.where(whole, np.where(whole, floats, 0.0).astype(np.int64), floats.view(np.int64))
