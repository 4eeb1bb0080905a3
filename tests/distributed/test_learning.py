"""Any estimator with partial_fit and merge learns from Dask collections: labels, numbers of rows, columns beside X."""

from collections import Counter

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from plstream.estimators._collections import is_collection, learn_collection

dask = pytest.importorskip("dask", reason="needs Dask")
da = pytest.importorskip("dask.array", reason="needs Dask")

LABELS = np.array(list("aaaaabcabcddb"))
X = np.arange(2.0 * len(LABELS)).reshape(-1, 2)


class LabelCounter(ClassifierMixin, BaseEstimator):
    """Counts labels, all of which it has to know when it begins."""

    def fit(self, X, y):
        return learn_collection(self, X, y, reset=True)

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        if is_collection(X):
            return learn_collection(self, X, y, sample_weight, classes=classes)
        if not hasattr(self, "classes_"):
            self.classes_, self.counts_ = np.asarray(classes), np.zeros(len(classes))
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        self.counts_ = self.counts_ + [weight[y == label].sum() for label in self.classes_]
        return self

    def merge(self, other):
        assert np.array_equal(self.classes_, other.classes_)
        self.counts_ = self.counts_ + other.counts_
        return self


class RowNumbers(BaseEstimator):
    """Notes the numbers of its rows, and their groups."""

    first = 0

    def fit(self, X, y):
        return learn_collection(self, X, y, reset=True)

    def _begin_at(self, row):
        self.first = row

    @property
    def n_samples_seen_(self):
        return sum(map(len, self.rows_))

    def partial_fit(self, X, y, sample_weight=None, groups=None):
        if is_collection(X):
            return learn_collection(self, X, y, sample_weight, groups=groups)
        present = X if sample_weight is None else X[sample_weight > 0]
        self.rows_ = getattr(self, "rows_", [])
        first = self.first + self.n_samples_seen_
        self.rows_ = [*self.rows_, np.arange(first, first + len(present))]
        self.values_ = np.append(getattr(self, "values_", []), present[:, 0])
        self.groups_ = Counter([] if groups is None else groups.tolist()) + getattr(self, "groups_", Counter())
        return self

    def merge(self, other):
        self.rows_ = [*self.rows_, *other.rows_]
        self.values_ = np.append(self.values_, other.values_)
        self.groups_ = self.groups_ + other.groups_
        return self


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="sync"):
        yield


def cut(values, unknown=False):
    array = da.from_array(values, chunks=(3, *((-1,) * (values.ndim - 1))))
    return array[da.ones(len(values), chunks=3, dtype=bool)] if unknown else array


def test_labels_are_found():
    model = LabelCounter().partial_fit(cut(X), cut(LABELS))
    assert dict(zip(model.classes_, model.counts_, strict=True)) == Counter(LABELS.tolist())
    model.partial_fit(cut(X), cut(LABELS), sample_weight=cut(np.full(len(X), 2.0)))
    assert model.counts_.sum() == 3 * len(X)
    assert model.fit(cut(X), cut(LABELS)).counts_.sum() == len(X)


def test_labels_are_given():
    model = LabelCounter().partial_fit(cut(X), cut(LABELS), classes=list("abcdefg"))
    assert model.counts_.tolist() == [6, 3, 2, 2, 0, 0, 0]


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_models_know_their_first_row(unknown, weighted):
    weight = np.ones(len(X))
    if weighted:
        weight[[0, 3, 4, 5, 9]] = 0
    present = X[weight > 0]
    model = RowNumbers()
    for times in (1, 2):
        model.partial_fit(cut(X, unknown), cut(X[:, 0], unknown), cut(weight, unknown) if weighted else None)
        np.testing.assert_array_equal(np.concatenate(model.rows_), np.arange(times * len(present)))
        np.testing.assert_array_equal(model.values_, np.tile(present[:, 0], times))


def test_columns_beside():
    groups = np.arange(len(X)) // 4
    model = RowNumbers().partial_fit(cut(X), cut(X[:, 0]), groups=groups)
    assert model.groups_ == Counter(groups.tolist())
    with pytest.raises(ValueError, match="X has 13 rows and groups has 12"):
        RowNumbers().partial_fit(cut(X), cut(X[:, 0]), groups=groups[1:])
