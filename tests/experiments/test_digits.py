"""Digits: pairs as in LFW, and classes."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from plstream.experiments.datasets import load_tasks
from plstream.experiments.datasets.digits import _make_pairs
from plstream.experiments.task import stratified_folds


def test_no_image_is_in_two_folds_and_pairs_are_what_they_say():
    y = load_digits().target
    fold = stratified_folds(y, seed=3)
    pairs, same, fold_of_pair = _make_pairs(y, fold, seed=3)
    assert len(np.unique(pairs, axis=0)) == len(pairs) == 4000
    assert (pairs[:, 0] < pairs[:, 1]).all()
    np.testing.assert_array_equal(same, y[pairs[:, 0]] == y[pairs[:, 1]])
    np.testing.assert_array_equal(fold[pairs], np.column_stack([fold_of_pair, fold_of_pair]))
    np.testing.assert_array_equal(np.bincount(fold_of_pair, same), np.full(10, 200))


def test_tasks():
    pairs, digits = load_tasks("digits", seed=1)
    assert [pairs.kind, digits.kind] == ["verification", "classification"]
    assert [len(test) for _, test in pairs.splits] == [400] * 10
    assert sorted(len(test) for _, test in digits.splits) == [179] * 3 + [180] * 7
    np.testing.assert_array_equal(digits.X, load_digits().data)
    assert load_tasks("digits", seed=1)[0].fingerprint() == pairs.fingerprint() != load_tasks("digits")[0].fingerprint()


def test_fewer_folds_are_the_first():
    for some, every in zip(load_tasks("digits", folds=2), load_tasks("digits"), strict=True):
        assert len(some.splits) == 2
        for few, all_ in zip(some.splits, every.splits, strict=False):
            np.testing.assert_array_equal(few[0], all_[0])
    with pytest.raises(ValueError, match="folds=0 must be at least 1"):
        load_tasks("digits", folds=0)
