"""Pairs of images or videos as a verification task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._core.errors import DataError
from ..._core.types import Array
from ...data.columns import listed
from ...vision import pair_differences
from ..task import Task, split_by_fold


def is_number(text: str) -> bool:
    """Whether a field of a list is an integer of plausible size."""
    return text.isascii() and text.isdigit() and len(text) < 10


class NamedPair(NamedTuple):
    """A line of a list of pairs."""

    first: str
    second: str
    same: bool
    fold: int


def find_rows(pairs: Sequence[NamedPair], rows: Mapping[str, int], where: str, what: str) -> NDArray[np.intp]:
    """Return the rows of named pairs; raise DataError for names without features."""
    absent = sorted({name for pair in pairs for name in pair[:2] if name not in rows})
    if absent:
        raise DataError(
            f"{where} has no features of {len(absent):,} {what} that occur in pairs: {listed(absent)}. Extract their "
            "features as well."
        )
    return np.array([(rows[pair.first], rows[pair.second]) for pair in pairs], np.intp)


def verification(
    features: Array, pairs: Any, same: Any, fold: Any, *, name: str, note: str, seed: int, **about: Any
) -> Task:
    """Return the task of distinguishing matching pairs from others by |a - b|, one split per given fold.

    Pairs are rows of features; ``same`` and ``fold`` have one entry per pair. The seed determines the order of training
    rows; other arguments are further fields of the task.
    """
    pairs, same, fold = np.asarray(pairs), np.asarray(same), np.asarray(fold)
    if same.shape != (len(pairs),) or fold.shape != (len(pairs),):
        raise DataError(f"{name}: same and fold must have one entry for each of {len(pairs):,} pairs.")
    if not np.isin(same, (0, 1)).all():
        raise DataError(f"{name}: same must be 1 or 0.")
    differences = pair_differences(features, pairs)
    uses = np.unique(np.column_stack([pairs.ravel(), np.repeat(fold, 2)]), axis=0)
    if len(uses) > len(np.unique(pairs)):
        note += " Some images are in pairs of several folds, so that they are both trained and tested on."
    return Task(
        name=name,
        note=note,
        kind="verification",
        X=differences,
        y=same.astype(np.int64),
        splits=split_by_fold(fold, seed),
        **about,
    )
