"""Pairs of images or videos as a verification task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._core.errors import DataError
from ..._core.types import Array
from ...data.columns import listed
from ...vision import pair_differences
from ..task import FOLDS, Task, split_by_fold


def is_number(text: str) -> bool:
    """Whether a field of a list is an integer of plausible size."""
    return text.isascii() and text.isdigit() and len(text) < 10


class NamedPair(NamedTuple):
    """A line of a list of pairs."""

    first: str
    second: str
    same: bool
    fold: int


def unique_pairs(numbered: Iterable[tuple[int, NamedPair]], path: Path) -> list[NamedPair]:
    """Return the pairs of a list, given with the numbers of their lines; raise DataError if one occurs twice."""
    pairs = []
    seen: dict[frozenset[str], int] = {}
    for number, pair in numbered:
        first = seen.setdefault(frozenset(pair[:2]), number)
        if first != number:
            raise DataError(f"{path}, line {number}: the same pair is in line {first}.")
        pairs.append(pair)
    return pairs


def find_rows(
    pairs: Sequence[NamedPair], rows: Mapping[str, int], where: str, what: str
) -> tuple[NDArray[np.intp], Array, Array]:
    """Return the rows of named pairs, whether they are the same, and their folds; raise DataError for unknown names."""
    absent = sorted({name for pair in pairs for name in pair[:2] if name not in rows})
    if absent:
        raise DataError(
            f"{where} has no features of {len(absent):,} {what} that occur in pairs: {listed(absent)}. Extract their "
            "features as well."
        )
    numbers = np.array([(rows[pair.first], rows[pair.second]) for pair in pairs], np.intp)
    return numbers, np.array([pair.same for pair in pairs]), np.array([pair.fold for pair in pairs])


def verification(
    features: Array,
    pairs: Any,
    same: Any,
    fold: Any,
    *,
    name: str,
    title: str,
    note: str,
    seed: int,
    official: tuple[str, int] | None = None,
) -> Task:
    """Return the task of distinguishing matching pairs from others by |a - b|, one split per given fold.

    Pairs are rows of features; ``same`` and ``fold`` have one entry per pair. The seed determines the order of training
    rows. ``official`` is the paper's name of the data set, and its number of pairs there, in ten folds.
    """
    pairs, same, fold = np.asarray(pairs), np.asarray(same), np.asarray(fold)
    if same.shape != (len(pairs),) or fold.shape != (len(pairs),):
        raise DataError(f"{name}: same and fold must have one entry for each of {len(pairs):,} pairs.")
    if not np.isin(same, (0, 1)).all():
        raise DataError(f"{name}: same must be 1 or 0.")
    differences, splits = pair_differences(features, pairs), split_by_fold(fold, seed)
    uses = np.unique(np.column_stack([pairs.ravel(), np.repeat(fold, 2)]), axis=0)
    if len(uses) > len(np.unique(pairs)):
        note += " Some images are in pairs of several folds, so that they are both trained and tested on."
    paper = official[0] if official and (len(pairs), len(splits)) == (official[1], FOLDS) else None
    return Task(name, title, "verification", differences, same.astype(np.int64), splits, paper, note)
