"""Any estimator with partial_fit and merge learns from Dask collections: labels, numbers of rows, columns beside X."""

from collections import Counter

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from plstream import IncrementalPLS, IncrementalPLSClassifier, IncrementalPLSClassifierCV, IncrementalPLSCV
from plstream.rows.collections import is_collection, learn_collection

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


ROWS = np.random.default_rng(0).normal(size=(120, 4))
NUMBERS = np.arange(120) % 3
ROWS[:, 0] += NUMBERS


@pytest.mark.parametrize("make", [IncrementalPLSClassifier, IncrementalPLSClassifierCV])
def test_classes_given_again_are_those_of_the_model(make):
    """Blocks with other labels must not be taken for those that the model has."""
    first, others, later = NUMBERS < 2, NUMBERS != 1, slice(60, None)
    model = make(2).partial_fit(ROWS[first], NUMBERS[first])
    with pytest.raises(ValueError, match="2 is not among the classes of the first call"):
        model.partial_fit(cut(ROWS[others]), cut(NUMBERS[others]), classes=[0, 2])
    assert model.class_count_.tolist() == [40, 40]
    # Some of them are enough.
    model = make(2).partial_fit(ROWS[:60], NUMBERS[:60])
    expected = make(2).partial_fit(ROWS[:60], NUMBERS[:60])
    rows, labels = ROWS[later][NUMBERS[later] > 0], NUMBERS[later][NUMBERS[later] > 0]
    model.partial_fit(cut(rows), cut(labels), classes=[1, 2])
    expected.partial_fit(rows, labels)
    np.testing.assert_allclose(model.predict_proba(ROWS), expected.predict_proba(ROWS), rtol=1e-9)
    values = IncrementalPLSCV(2).partial_fit(ROWS, ROWS[:, 0])
    with pytest.raises(ValueError, match="classes are for labels"):
        values.partial_fit(cut(ROWS), cut(ROWS[:, 0]), classes=[0, 1])


@pytest.mark.parametrize("solver", ["auto", "gram"])
def test_what_labels_can_be_is_the_same_as_of_arrays(solver):
    model = IncrementalPLSClassifier(2, solver=solver)
    with pytest.raises(ValueError, match="Unknown label type"):
        model.fit(cut(ROWS), cut(ROWS[:, 0]))
    with pytest.raises(ValueError, match="y has only one class, 0"):
        model.fit(cut(ROWS), cut(np.zeros(120, int)))
    with pytest.raises(ValueError, match=r"In block .*: Input y contains NaN or None: every row needs a label"):
        model.fit(cut(ROWS), cut(np.array(["a", np.nan, "b"], dtype=object)[NUMBERS]))
    assert not hasattr(model, "solver_")


@pytest.mark.parametrize("solver", ["auto", "gram"])
def test_balanced_classes(solver):
    labels, weight = np.where(np.arange(120) % 7, "often", "rare"), np.arange(120) % 4.0
    model = IncrementalPLSClassifier(2, solver=solver, class_weight="balanced")
    expected = IncrementalPLSClassifier(2, solver=solver, class_weight="balanced").fit(ROWS, labels, weight)
    model.fit(cut(ROWS), cut(labels), cut(weight))
    assert model.class_weight == "balanced"
    np.testing.assert_allclose(model.class_count_, expected.class_count_, rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(ROWS), expected.predict_proba(ROWS), rtol=1e-9)


@pytest.mark.parametrize("model", [IncrementalPLS(2, solver="gram"), IncrementalPLS(2), IncrementalPLSCV(2)])
def test_names_of_an_earlier_fit_are_forgotten(model):
    pandas = pytest.importorskip("pandas")
    model = clone(model).fit(pandas.DataFrame(ROWS, columns=list("abcd")), ROWS[:, 0])
    model.fit(cut(ROWS), cut(ROWS[:, 0]))
    assert not hasattr(model, "feature_names_in_")


def test_parameters_are_left_as_they_are():
    priors = np.array([0.2, 0.3, 0.5])
    model = IncrementalPLSClassifier(2, solver="gram", priors=priors).fit(cut(ROWS), cut(NUMBERS))
    assert model.priors is priors
