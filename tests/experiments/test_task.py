"""Tasks: invalid ones are refused, and fingerprints change with the data."""

import dataclasses

import numpy as np
import pytest

from plstream.data import DataError
from plstream.experiments.task import Task, single_split, split_by_fold, stratified_folds


def rows(*numbers):
    return np.array(numbers, np.intp)


def make(**changes):
    X = np.arange(12, dtype=np.float32).reshape(6, 2)
    y = np.array([0, 1, 0, 1, 0, 1])
    splits = ((rows(0, 1, 2, 3), rows(4, 5)), (rows(4, 5, 0, 1), rows(2, 3)))
    return Task(**{"name": "six", "title": "Six", "kind": "verification", "X": X, "y": y, "splits": splits} | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "regression"}, "one of verification and classification"),
        ({"X": np.zeros((6, 2), np.float16)}, "float32 or float64"),
        ({"X": np.zeros(6)}, "must be a matrix"),
        ({"X": np.zeros((6, 0))}, "must be a matrix"),
        ({"X": np.full((6, 2), np.nan)}, "row 0, feature 0 is nan"),
        ({"y": np.zeros(5, np.int64)}, "6 int64, one per row"),
        ({"y": np.zeros(6)}, "6 int64, one per row"),
        ({"y": np.array([0, 1, 2, 0, 1, 2])}, r"1 \(same\) or 0"),
        ({"splits": ()}, "has no splits"),
        ({"splits": ((rows(0, 1), rows()),)}, "Split 1 of six: test rows must be"),
        ({"splits": ((np.array([0.0, 1.0]), rows(2)),)}, "training rows must be"),
        ({"splits": ((rows(0, 1), rows(2)), (rows(0, 1), rows(6)))}, "Split 2 of six has test rows that do not exist"),
        ({"splits": ((rows(-1, 1), rows(2)),)}, "training rows that do not exist"),
        ({"splits": ((rows(0, 1), rows(2, 1)),)}, "row 1 is both"),
        ({"splits": ((rows(0, 1, 1), rows(2)),)}, "more than once"),
        ({"splits": ((rows(0, 2, 4), rows(1)),)}, "single class"),
    ],
)
def test_mismatched_data_is_refused(changes, message):
    with pytest.raises(DataError, match=message):
        make(**changes)


def test_any_labels_are_classes():
    task = make(kind="classification", y=np.array([3, 1, 4, 1, 5, 9]))
    assert (task.n_classes, task.n_features) == (5, 2)


def test_fingerprint_depends_on_data_labels_and_splits():
    task = make()
    other = task.X.copy()
    other[3, 1] += 1
    changed = [{"X": other}, {"y": 1 - task.y}, {"splits": task.splits[:1]}, {"splits": task.splits[::-1]}]
    changed += [{"name": "other"}, {"X": task.X.astype(np.float64)}]
    prints = {dataclasses.replace(task, **change).fingerprint() for change in changed} | {task.fingerprint()}
    assert len(prints) == 7
    assert make().fingerprint() == task.fingerprint()


def test_stratified_folds_are_even_in_size_and_in_classes():
    y = np.random.default_rng(0).integers(0, 7, 503)
    fold = stratified_folds(y, seed=1)
    for labels in [fold, *(fold[y == label] for label in range(7))]:
        counts = np.bincount(labels, minlength=10)
        assert counts.max() - counts.min() <= 1
    assert (fold != stratified_folds(y, seed=2)).any()


def test_every_row_is_tested_once_and_trained_on_otherwise():
    fold = np.repeat([3, 5, 9], 4)
    splits = split_by_fold(fold, seed=0)
    np.testing.assert_array_equal(np.concatenate([test for _, test in splits]), np.arange(12))
    for train, test in splits:
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(12))
        assert (np.diff(train) < 0).any()
    ((train, test),) = single_split(fold == 5, seed=0)
    np.testing.assert_array_equal(test, [4, 5, 6, 7])
    np.testing.assert_array_equal(np.sort(train), [0, 1, 2, 3, 8, 9, 10, 11])
