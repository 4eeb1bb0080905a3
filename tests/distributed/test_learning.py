"""States learn from Dask collections: labels, row numbers and additional columns."""

from collections import Counter

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from plstream import IncrementalPLS, IncrementalPLSClassifier, IncrementalPLSClassifierCV, IncrementalPLSCV
from plstream.estimators.heads import open_labels, open_values

dask = pytest.importorskip("dask", reason="needs Dask")
da = pytest.importorskip("dask.array", reason="needs Dask")

LABELS = np.array(list("aaaaabcabcddb"))
X = np.arange(2.0 * len(LABELS)).reshape(-1, 2)


class RowNumbers:
    """A stream that notes the numbers and first features of its rows, and their groups."""

    def __init__(self, numbers=(), values=(), groups=()):
        self.numbers, self.values, self.groups = list(numbers), list(values), Counter(groups)

    def with_rows(self, rows, first_row, columns):
        """Be the function that absorbs a block."""
        blocks = list(rows.blocks())
        values = [value for block in blocks for value in block.X[:, 0]]
        groups = np.asarray(columns.get("groups", [])).tolist()
        numbers = range(first_row, first_row + len(values))
        return RowNumbers([*self.numbers, *numbers], [*self.values, *values], self.groups + Counter(groups))

    def merged(self, other, *, later):
        assert later
        both = self.groups + other.groups
        return RowNumbers(self.numbers + other.numbers, self.values + other.values, both)

    def without_waiting(self):
        return self


def absorbed(X, y, weight=None, **columns):
    with open_values(BaseEstimator(), X, y, weight, None, **columns) as (rows, _):
        return rows.absorbed(RowNumbers(), RowNumbers.with_rows, state_bytes=0, by_number=True)


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="sync"):
        yield


def cut(values, unknown=False):
    array = da.from_array(values, chunks=(3, *((-1,) * (values.ndim - 1))))
    return array[da.ones(len(values), chunks=3, dtype=bool)] if unknown else array


def test_labels_are_found():
    with open_labels(BaseEstimator(), cut(X), cut(LABELS), cut(np.full(len(X), 2.0)), None) as (rows, head):
        labels, counts = rows.label_counts()
    assert head.labels.classes.tolist() == labels.tolist() == list("abcd")
    assert dict(zip(labels, counts / 2, strict=True)) == Counter(LABELS.tolist())


def test_labels_are_given():
    with open_labels(BaseEstimator(), cut(X), cut(LABELS), None, None, classes=list("abcdefg")) as (rows, head):
        assert head.labels.classes.tolist() == list("abcdefg")
        assert rows.n_targets == 7


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_are_numbered(unknown, weighted):
    weight = np.ones(len(X))
    if weighted:
        weight[[0, 3, 4, 5, 9]] = 0
    present = X[weight > 0]
    stream = absorbed(cut(X, unknown), cut(X[:, 0], unknown), cut(weight, unknown) if weighted else None)
    assert stream.numbers == list(range(len(present)))
    assert stream.values == present[:, 0].tolist()


def test_additional_columns():
    groups = np.arange(len(X)) // 4
    assert absorbed(cut(X), cut(X[:, 0]), groups=groups).groups == Counter(groups.tolist())
    with pytest.raises(ValueError, match="X has 13 rows, but groups has 12"):
        absorbed(cut(X), cut(X[:, 0]), groups=groups[1:])


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


@pytest.mark.parametrize("solver", ["auto", "gram"])
def test_labels_are_accepted_as_for_arrays(solver):
    model = IncrementalPLSClassifier(2, solver=solver)
    with pytest.raises(ValueError, match="Unknown label type"):
        model.fit(cut(ROWS), cut(ROWS[:, 0]))
    with pytest.raises(ValueError, match="y has only one class, 0"):
        model.fit(cut(ROWS), cut(np.zeros(120, int)))
    with pytest.raises(ValueError, match=r"In block .*: Input y contains NaN or None: every row requires a label"):
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


@pytest.mark.parametrize("method", [IncrementalPLSClassifier, IncrementalPLSClassifierCV])
def test_the_first_block_may_be_empty(method):
    names = np.array(["a", "b", "c"], dtype=object)[NUMBERS]
    blocks = (0, 50, 70)
    rows, labels = da.from_array(ROWS, chunks=(blocks, 4)), da.from_array(names, chunks=(blocks,))
    model = method(2).partial_fit(rows, labels, classes=["a", "b", "c"])
    expected = method(2).partial_fit(ROWS, names, classes=["a", "b", "c"])
    np.testing.assert_allclose(model.predict_proba(ROWS), expected.predict_proba(ROWS), rtol=1e-9)


def test_a_solver_changed_during_a_stream_does_not_matter():
    whole = IncrementalPLS(2, solver="gram").partial_fit(ROWS, ROWS[:, 0])
    model = IncrementalPLS(2, solver="gram").partial_fit(ROWS[:60], ROWS[:60, 0]).set_params(solver="sketch")
    model.partial_fit(cut(ROWS[60:]), cut(ROWS[60:, 0]))
    assert model.solver_ == "gram"
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-9)
