"""Labels and values are interpreted in the same way in every call, and anything else is refused."""

import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone

from plstream import CIPLS, IPLS, IncrementalLDA

from ..oracles import regression_data

X, Y = regression_data(30, 4)
INTEGERS = (np.median(Y) < Y).astype(int)
TEXT = np.where(INTEGERS, "yes", "no")

methods = pytest.mark.parametrize("method", [CIPLS(), IPLS()], ids=repr)


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (INTEGERS, [0, 1]),
        (INTEGERS.astype(bool), [False, True]),
        (TEXT, ["no", "yes"]),
        (TEXT.astype(object), ["no", "yes"]),
        (INTEGERS.astype(object), [0, 1]),
        (INTEGERS.astype(np.uint8), [0, 1]),
        (INTEGERS.tolist(), [0, 1]),
        (INTEGERS.astype(bool).astype(object), [False, True]),
        (np.array([np.bool_(label) for label in INTEGERS], dtype=object), [False, True]),
    ],
)
def test_inputs_that_are_labels(y, classes):
    model = CIPLS(1).fit(X, y)
    assert list(model.classes_) == classes
    assert list(model.predict(X[:1])) in ([classes[0]], [classes[1]])


@pytest.mark.parametrize("y", [Y, Y.astype(np.float32), Y.astype(object), Y[:, None], INTEGERS.astype(float)])
def test_inputs_that_are_values(y):
    model = CIPLS(1).fit(X, y)
    assert not hasattr(model, "classes_")
    assert model.predict(X).shape == np.shape(y)
    assert model.predict(X).dtype == np.float64


def test_target_decides():
    assert not hasattr(CIPLS(1, target="values").fit(X, INTEGERS), "classes_")
    assert list(CIPLS(1, target="labels").fit(X, INTEGERS.astype(float)).classes_) == [0.0, 1.0]
    with pytest.raises(ValueError, match="y must hold numbers, not strings"):
        CIPLS(target="values").fit(X, TEXT)
    with pytest.raises(ValueError, match="classes are for labels"):
        CIPLS(target="values").partial_fit(X, INTEGERS, classes=[0, 1])


def test_floats_are_labels_if_classes_are_given():
    model = CIPLS(1).partial_fit(X, INTEGERS.astype(float), classes=[0, 1])
    assert list(model.classes_) == [0, 1]
    np.testing.assert_array_equal(model.transform(X), CIPLS(1).fit(X, INTEGERS).transform(X))


BAD_LABELS = {
    "unseen": (np.full(30, 2), r"Label 2 is not among the classes of the first call"),
    "text": (TEXT, "Labels were integers in the first call, but are strings now"),
    "floats": (INTEGERS.astype(float), "Labels were integers in the first call, but are floats now"),
    "two columns": (np.column_stack([INTEGERS, INTEGERS]), "Labels must be in one column"),
    "mixed": (np.array([1, "a"] * 15, dtype=object), "numbers, or labels that are all strings"),
    "complex": (INTEGERS + 1j, "Complex data not supported"),
    "dates": (np.full(30, np.datetime64("2026-01-01")), "y must hold numbers or labels, not values of type datetime"),
    "none": (None, "requires y to be passed"),
    "three dimensions": (INTEGERS[:, None, None], "one or two dimensions"),
    "no columns": (np.empty((30, 0)), "y has no columns"),
    "another length": (INTEGERS[1:], "inconsistent numbers of samples"),
}


@methods
@pytest.mark.parametrize("case", BAD_LABELS)
def test_bad_labels_change_nothing(method, case):
    y, message = BAD_LABELS[case]
    model = type(method)(1).partial_fit(X, INTEGERS)
    before = model.transform(X)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, y)
    np.testing.assert_array_equal(model.transform(X), before)


def test_bad_values():
    model = CIPLS(1).partial_fit(X, Y)
    with pytest.raises(ValueError, match=r"y has 2 targets, but the model has 1"):
        model.partial_fit(X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match="y must hold numbers, not strings"):
        model.partial_fit(X, TEXT)
    with pytest.raises(ValueError, match=r"y contains NaN \(first in row 3, column 0\)"):
        model.partial_fit(X, np.where(np.arange(30) == 3, np.nan, Y))
    with pytest.raises(ValueError, match="classes differ"):
        model.partial_fit(X, Y, classes=[0, 1])


def test_classes_of_the_first_call_stay():
    with pytest.raises(ValueError, match=r"only one class, 1: .* or all labels as classes="):
        CIPLS().partial_fit(X, np.ones(30, dtype=int))
    model = CIPLS(1).partial_fit(X, INTEGERS, classes=[0, 1, 2])
    model.partial_fit(X, np.full(30, 2)).partial_fit(X, INTEGERS, classes=[2, 1, 0])
    with pytest.raises(ValueError, match="classes differ from those of the first call"):
        model.partial_fit(X, INTEGERS, classes=[0, 1])
    with pytest.raises(ValueError, match="every row requires a label"):
        CIPLS().partial_fit(X, np.full(30, np.nan), classes=[0, 1])


@pytest.mark.parametrize(
    ("y", "classes", "message"),
    [
        (INTEGERS, [], "a list of at least two labels"),
        (INTEGERS, [1], "a list of at least two labels"),
        (INTEGERS, 5, "a list of at least two labels"),
        (INTEGERS, ["0", "1"], "classes are strings, but y holds integers"),
        (TEXT, [0, 1], "classes are integers, but y holds strings"),
        (TEXT, [None, "no", "yes"], "classes must hold numbers, or labels that are all strings"),
        (TEXT, ["no", "yes", np.nan], "classes must hold numbers, or labels that are all strings"),
        (INTEGERS, [0, 0], "a list of at least two labels"),
        (INTEGERS.astype(float), [0.0, 1.0, np.nan], "classes contain NaN"),
    ],
)
def test_bad_classes(y, classes, message):
    with pytest.raises(ValueError, match=message):
        CIPLS().partial_fit(X, y, classes=classes)


def test_classes_in_any_form():
    expected = CIPLS(1).fit(X, TEXT).transform(X)
    for classes in (
        ["yes", "no"],
        {"no", "yes"},
        {"no": 1, "yes": 2}.keys(),
        np.array(["no", "yes"], dtype=object),
        ("yes", "no", "yes"),
    ):
        model = CIPLS(1).partial_fit(X[:10], TEXT[:10], classes=classes).partial_fit(X[10:], TEXT[10:], classes=classes)
        np.testing.assert_allclose(model.transform(X), expected, atol=1e-12)


def test_integers_of_any_type_are_the_same_labels():
    large = np.where(INTEGERS, 2**60 + 1, 2**60)
    model = CIPLS(1).partial_fit(X, large).partial_fit(X, large.astype(np.uint64))
    assert list(model.classes_) == [2**60, 2**60 + 1]


@pytest.mark.parametrize("method", [CIPLS(1), IncrementalLDA()], ids=repr)
@pytest.mark.parametrize(("first", "later"), [(np.uint8, 256), (np.uint8, -256), (np.int8, 2**32), (np.int64, 2**63)])
def test_integers_that_do_not_fit_are_other_labels(method, first, later):
    model = clone(method).partial_fit(X, INTEGERS.astype(first))
    with pytest.raises(ValueError, match=f"Label {later} is not among the classes"):
        model.partial_fit(X[:1], np.array([later]))


def test_nullable_labels_of_data_frames():
    pandas = pytest.importorskip("pandas")
    for y in (pandas.Series(INTEGERS, dtype="Int64"), pandas.Series(INTEGERS).astype("category")):
        assert list(CIPLS(1).fit(X, y).classes_) == [0, 1]
        assert IncrementalLDA().fit(X, y).classes_.dtype.kind == "i"
    truth = pandas.Series(INTEGERS.astype(bool), dtype="boolean")
    assert IncrementalLDA().fit(X, truth).predict(X).dtype == bool


def test_memory_does_not_grow_with_rows_times_classes():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(40_000, 4)), np.arange(40_000) % 200
    CIPLS(1).fit(rows[:400], labels[:400])
    tracemalloc.start()
    try:
        CIPLS(1).fit(rows, labels)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A column of -1 and +1 for each class, for all rows, would be 64 MB.
    assert peak < 20e6
