"""Bad input is refused with one plain sentence, and leaves the model unchanged."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from plstream import (
    CIPLS,
    IPLS,
    OLPLS,
    SGDPLS,
    IncrementalLDA,
    IncrementalPLS,
    IncrementalPLSClassifier,
    IncrementalPLSClassifierCV,
    IncrementalPLSCV,
    VIPSelector,
    open_source,
)
from plstream.states import Gram
from tests.oracles import regression_data, relative_error

X, Y = regression_data(30, 5)


def with_value(array, value, index):
    changed = array.copy()
    changed[index] = value
    return changed


BAD_DATA = {
    "NaN in X": (with_value(X, np.nan, (3, 2)), Y, None, ValueError, r"X contains NaN \(first in row 3, column 2\)"),
    "inf in X": (
        with_value(X, np.inf, (29, 4)),
        Y,
        None,
        ValueError,
        r"X contains infinity \(first in row 29, column 4\)",
    ),
    "NaN in y": (X, with_value(Y, np.nan, 7), None, ValueError, r"y contains NaN \(first in row 7"),
    "inf in y": (X, with_value(Y, -np.inf, 7), None, ValueError, r"y contains infinity"),
    "NaN in sparse X": (
        sparse.csr_array(with_value(X, np.nan, (3, 2))),
        Y,
        None,
        ValueError,
        r"X contains NaN \(first in row 3, column 2\)",
    ),
    "no rows": (X[:0], Y[:0], None, ValueError, "0 sample"),
    "no columns": (X[:, :0], Y, None, ValueError, "0 feature"),
    "one dimension": (X[:, 0], Y, None, ValueError, "2D array"),
    "three dimensions": (X[None], Y, None, ValueError, "dim 3"),
    "y of another length": (X, Y[1:], None, ValueError, "inconsistent numbers of samples"),
    "y with three dimensions": (X, Y[:, None, None], None, ValueError, "one or two dimensions|dim 3"),
    "no y": (X, None, None, ValueError, "requires y"),
    "complex X": (X + 1j, Y, None, ValueError, "[Cc]omplex"),
    "complex y": (X, Y + 1j, None, ValueError, "[Cc]omplex"),
    "text in X": (np.full((30, 5), "a", dtype=object), Y, None, ValueError, "could not convert"),
    "objects in X": (with_value(X.astype(object), {"a": 1}, (0, 0)), Y, None, TypeError, "number"),
    "text in y": (
        X,
        np.full(30, "a"),
        None,
        ValueError,
        "not strings such as 'a': for labels, use IncrementalPLSClassifier",
    ),
    "text among objects in y": (
        X,
        np.array([1.0, "a"] * 15, dtype=object),
        None,
        ValueError,
        "not strings such as 'a': for",
    ),
    "dates in y": (X, np.arange(30).astype("datetime64[D]"), None, ValueError, r"not values of type datetime64\[D\]"),
    "negative weight": (X, Y, np.linspace(-1, 1, 30), ValueError, "negative"),
    "NaN weight": (X, Y, np.full(30, np.nan), ValueError, "finite"),
    "weights of another length": (X, Y, np.ones(29), ValueError, r"shape \(30,\)"),
    "too large": (X * 1e200, Y, None, ValueError, "too large"),
    "y too large": (X, Y * 1e200, None, ValueError, "too large"),
}


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("solver", ["multipass", "gram"])
@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data(case, solver, method):
    if (solver, method) == ("multipass", "partial_fit"):
        solver = "auto"
    rows, target, weight, error, message = BAD_DATA[case]
    model = IncrementalPLS(2, solver=solver, batch_size=7)
    with pytest.raises(error, match=message):
        getattr(model, method)(rows, target, sample_weight=weight)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert vars(model) == vars(IncrementalPLS(2, solver=solver, batch_size=7))
    getattr(model, method)(X, Y)
    before = model.predict(X)
    with pytest.raises(error, match=message):
        getattr(model, method)(rows, target, sample_weight=weight)
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_components": 0},
        {"n_components": -1},
        {"n_components": 1.5},
        {"n_components": "two"},
        {"solver": "simpls"},
        {"scale": "yes"},
        {"batch_size": 0},
        {"forgetting": 0.0},
        {"forgetting": 1.5},
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_parameters(parameters, method):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        getattr(IncrementalPLS(**parameters), method)(X, Y)


def test_more_components_than_the_data_can_have():
    with pytest.raises(ValueError, match=r"upper bound is 5\. Got 6 .* n_samples=30 and n_features=5"):
        IncrementalPLS(6).fit(X, Y)
    with pytest.raises(ValueError, match="n_samples=3"):
        IncrementalPLS(4).fit(X[:3], Y[:3])
    with pytest.raises(ValueError, match="weights are zero"):
        IncrementalPLS(2).fit(X, Y, sample_weight=np.zeros(30))
    with pytest.warns(UserWarning, match="only 5 component"):
        assert IncrementalPLS(6).partial_fit(X, Y).x_weights_.shape == (5, 6)


@pytest.mark.parametrize("method", ["transform", "predict"])
def test_bad_rows_to_apply_the_model_to(method):
    apply = getattr(IncrementalPLS(2).fit(X, Y), method)
    with pytest.raises(ValueError, match="features"):
        apply(X[:, 1:])
    with pytest.raises(ValueError, match=r"X contains NaN \(first in row 3, column 2\)"):
        apply(with_value(X, np.nan, (3, 2)))
    with pytest.raises(ValueError, match="infinity"):
        apply(sparse.csr_array(with_value(X, np.inf, (3, 2))))


def test_transform_takes_no_y():
    """scikit-learn's does, and returns two arrays: it must not be taken for a number of components."""
    for model in (IncrementalPLS(2).fit(X, Y), IncrementalPLSCV(2).fit(X, Y)):
        for call in (lambda model=model: model.transform(X, Y), lambda model=model: model.transform(X, y=Y)):
            with pytest.raises(ValueError, match=r"takes no y: .* scores of X, transform_y\(y\) those of y\.$"):
                call()
    with pytest.raises(ValueError, match=r"takes no y: transform\(X\) returns the scores of X\.$"):
        IncrementalPLSClassifier(2).fit(X, Y > 0).transform(X, Y > 0)


@pytest.mark.parametrize("copy", [True, False])
def test_predict_takes_no_copy(copy):
    """The second parameter of scikit-learn's predict is copy: True must not be taken for one component."""
    for model in (
        IncrementalPLS(2).fit(X, Y),
        IncrementalPLSCV(2).fit(X, Y),
        IncrementalPLSClassifier(2).fit(X, Y > 0),
    ):
        with pytest.raises(TypeError, match="positional argument"):
            model.predict(X, copy)


LEARN_LABELS = [
    IncrementalPLSClassifier(solver="gram"),
    IncrementalPLSClassifierCV(),
    CIPLS(),
    IPLS(),
    OLPLS(),
    SGDPLS(1),
    IncrementalLDA(),
    VIPSelector(CIPLS()),
]


@pytest.mark.parametrize("model", LEARN_LABELS, ids=lambda model: type(model).__name__)
def test_fit_advises_nothing_that_it_has_no_parameter_for(model):
    """Only partial_fit has classes, and only a model that has begun can add one."""
    with pytest.raises(
        ValueError, match=r"only one class, 1: pass rows of at least two .* in the first call of partial_fit.$"
    ):
        model.fit(X, np.ones(30, dtype=int))
    labels = np.arange(30) % 2 + (np.arange(30) > 20)
    blocks = open_source(((X[i : i + 10], labels[i : i + 10]) for i in (0, 10, 20)), batch_size=10)
    with pytest.raises(ValueError, match=r"Label 2 is not among .* as classes= in the first call of partial_fit.$"):
        model.fit(blocks)


def test_bad_scores():
    model = IncrementalPLS(2).fit(X, Y)
    with pytest.raises(ValueError, match="3 column"):
        model.inverse_transform(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="2 target"):
        model.transform_y(np.zeros((4, 2)))


def test_text_categories_in_a_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X).assign(kind=pandas.Categorical(np.where(Y > 0, "up", "down")))
    frame.columns = list("abcdef")
    with pytest.raises(ValueError, match=r"are not numeric, 'f' \(category\): leave them out"):
        IncrementalPLS(2).fit(frame, Y)
    # Categories that are numbers are numbers.
    frame["f"] = pandas.Categorical((Y > 0).astype(int))
    expected = IncrementalPLS(2).fit(np.column_stack([X, Y > 0]), Y)
    np.testing.assert_allclose(IncrementalPLS(2).fit(frame, Y).coef_, expected.coef_, rtol=1e-12)


@pytest.mark.parametrize("missing", [None, np.nan])
@pytest.mark.parametrize("model", LEARN_LABELS, ids=lambda model: type(model).__name__)
def test_labels_that_are_missing(model, missing):
    labels = np.array(["a", "b", missing] * 10, dtype=object)
    with pytest.raises(ValueError, match="y contains NaN or None: every row requires a label"):
        model.fit(X, labels)


def test_scores_of_the_training_rows_are_not_kept():
    model = IncrementalPLS(2).fit(X, Y)
    with pytest.raises(AttributeError, match=r"x_scores_ is not stored, .*: call transform\(X\)\."):
        model.x_scores_  # noqa: B018
    with pytest.raises(AttributeError, match=r"y_scores_ is not stored, .*: call transform_y\(y\)\."):
        model.y_scores_  # noqa: B018
    assert not hasattr(model, "x_scores_")


def test_unfitted():
    model = IncrementalPLS()
    for use in (
        lambda: model.predict(X),
        lambda: model.transform(X),
        lambda: model.coef_,
        lambda: model.n_samples_seen_,
        lambda: model.merge(IncrementalPLS().partial_fit(X, Y)),
        lambda: IncrementalPLS().partial_fit(X, Y).merge(model),
        lambda: IncrementalPLSCV().predict_held_out(X),
        lambda: IncrementalPLSClassifierCV().held_out_accuracy(X, Y),
    ):
        with pytest.raises(NotFittedError):
            use()
    assert not hasattr(model, "coef_")


def test_multipass_has_to_begin_with_fit():
    model = IncrementalPLS(2, solver="multipass")
    with pytest.raises(ValueError, match="solver='gram'"):
        model.partial_fit(X, Y)
    assert model.fit(X, Y).partial_fit(X, Y).n_samples_seen_ == 60


def test_targets_of_another_number():
    model = IncrementalPLS(2).partial_fit(X, Y)
    with pytest.raises(ValueError, match="2 target"):
        model.partial_fit(X, np.column_stack([Y, Y]))


def test_merge_of_unlike_models_is_refused():
    pandas = pytest.importorskip("pandas")
    model = IncrementalPLS(2).partial_fit(X, Y)
    before = model.coef_
    unlike = {
        "n_components": IncrementalPLS(3).partial_fit(X, Y),
        "scale": IncrementalPLS(2, scale=False).partial_fit(X, Y),
        "forgetting": IncrementalPLS(2, forgetting=0.9).partial_fit(X, Y),
        "n_features_in_": IncrementalPLS(2).partial_fit(X[:, :4], Y),
        "targets": IncrementalPLS(2).partial_fit(X, np.column_stack([Y, Y])),
        "feature names": IncrementalPLS(2).partial_fit(pandas.DataFrame(X, columns=list("abcde")), Y),
    }
    for word, other in unlike.items():
        theirs = other.coef_
        with pytest.raises(ValueError, match=word):
            model.merge(other)
        np.testing.assert_array_equal(model.coef_, before)
        np.testing.assert_array_equal(other.coef_, theirs)
    with pytest.raises(TypeError, match="IncrementalPLS"):
        model.merge("a model")


def test_merge_that_would_overflow_is_refused():
    weight = np.full(30, 1e3)
    one, other = (IncrementalPLS(2).partial_fit(X * 1e150, Y, sample_weight=weight) for _ in range(2))
    n_samples = 30
    with pytest.raises(ValueError, match="too large"):  # noqa: PT012
        while n_samples < 10**6:
            one.merge(other)
            n_samples += 30
    assert one.n_samples_seen_ == n_samples
    assert relative_error(one.coef_, other.coef_) < 1e-9


def test_interrupted_fit_leaves_the_old_model(monkeypatch):
    model = IncrementalPLS(2).fit(X, Y)
    before = model.predict(X)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("plstream.solvers.multipass.MultipassGram.apply", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :3], Y)
    monkeypatch.undo()
    np.testing.assert_array_equal(model.predict(X), before)


def test_interrupted_partial_fit_leaves_the_old_model(monkeypatch):
    rows, target = regression_data(3000, 5)
    model = IncrementalPLS(2).partial_fit(X, Y)
    before, calls = model.predict(X), []
    original = Gram._add

    def interrupted_at_the_second(self, *args):
        calls.append(self)
        if len(calls) == 2:
            raise KeyboardInterrupt
        original(self, *args)

    monkeypatch.setattr(Gram, "_add", interrupted_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(rows, target)
    monkeypatch.undo()
    assert model.n_samples_seen_ == 30
    np.testing.assert_array_equal(model.predict(X), before)
    expected = IncrementalPLS(2).partial_fit(np.vstack([X, rows]), np.concatenate([Y, target]))
    np.testing.assert_array_equal(model.partial_fit(rows, target).coef_, expected.coef_)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_rows_of_weight_zero_are_not_blamed(method):
    weight = np.ones(30)
    weight[0] = 0
    absent = with_value(X, np.nan, (0, 0))
    assert np.isfinite(getattr(IncrementalPLS(2), method)(absent, Y, sample_weight=weight).coef_).all()
    for rows in (with_value(absent, np.nan, (5, 1)), sparse.csr_array(with_value(absent, np.nan, (5, 1)))):
        with pytest.raises(ValueError, match=r"row 5, column 1"):
            getattr(IncrementalPLS(2), method)(rows, Y, sample_weight=weight)
    with pytest.raises(ValueError, match="too large"):
        getattr(IncrementalPLS(2), method)(absent, Y * 1e200, sample_weight=weight)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("model", [IncrementalPLS(2), IncrementalPLS(2, solver="sketch"), IncrementalPLSCV(2)], ids=str)
def test_too_small_numbers(model, method):
    before = vars(model).copy()
    for x_unit, y_unit, weight in ((1e-200, 1, 1), (1, 1e-200, 1), (1, 1, 5e-324), (1e-100, 1, 1e-150), (1e-310, 1, 1)):
        for rows in (X, sparse.csr_array(X), X[: 1 if method == "partial_fit" else 3]):
            with pytest.raises(ValueError, match=r"too small: .* Multiply them by a constant first"):
                getattr(model, method)(rows * x_unit, Y[: rows.shape[0]] * y_unit, np.full(rows.shape[0], weight))
            assert vars(model) == before


@pytest.mark.parametrize("solver", ["multipass", "gram", "sketch"])
@pytest.mark.parametrize("scale", [True, False])
def test_values_that_underflow_are_refused(solver, scale):
    """Data either keeps all digits or is refused, whatever its unit."""
    reference = IncrementalPLS(2, scale=scale, solver=solver).fit(X, Y).predict(X)
    refused = []
    for exponent in range(-145, -180, -1):
        unit = 10.0**exponent
        for x_unit, y_unit in ((unit, 1.0), (1.0, unit)):
            try:
                model = IncrementalPLS(2, scale=scale, solver=solver).fit(X * x_unit, Y * y_unit)
            except ValueError as error:
                assert "too small" in str(error)  # noqa: PT017
                refused.append(exponent)
            else:
                assert relative_error(model.predict(X * x_unit) / y_unit, reference) < 1e-12
    assert max(refused) < -150


@pytest.mark.parametrize("scale", [True, False])
def test_large_data_that_is_too_small(scale):
    rows = np.random.default_rng(0).normal(size=(600_000, 8))
    with pytest.raises(ValueError, match="too small"):
        IncrementalPLS(1, scale=scale).fit(rows * 1e-200, rows[:, 0])


@pytest.mark.filterwarnings("ignore:X and y have only")
def test_zeros_and_forgotten_rows_are_allowed():
    model = IncrementalPLS(2, forgetting=0.5).partial_fit(np.zeros((3, 5)), np.zeros(3)).partial_fit(X, Y)
    for _ in range(100):
        # A row of zeros halves what is left: on the way to zero it is as small as any number can be.
        assert np.isfinite(model.partial_fit(np.zeros((10, 5)), np.zeros(10)).coef_).all()
    assert np.abs(model.x_mean_).max() < 1e-300
    # Small rows among larger ones are allowed.
    mixed = IncrementalPLS(2).partial_fit(X, Y).partial_fit(X * 1e-200, Y * 1e-200)
    assert relative_error(mixed.coef_, IncrementalPLS(2).partial_fit(X, Y).partial_fit(0 * X, 0 * Y).coef_) < 1e-12


def test_rows_that_wait_are_known_to_have_room():
    """However large rows come one by one, a stream never holds more than it can solve for."""
    largest = np.sqrt(np.finfo(np.float64).max / 4)
    model = IncrementalPLS(1)
    with pytest.raises(ValueError, match="too large"):  # noqa: PT012
        for i in range(1, 3000):
            model.partial_fit([[(-1) ** i * 0.2 * largest / np.sqrt(i)]], [float(i)])
    assert model.n_samples_seen_ == i - 1
    assert np.isfinite(model.predict([[1.0]])).all()


def test_a_first_call_without_weight_decides_nothing():
    """Neither the features nor the classes: the model is what it was."""
    names = np.repeat(["a", "b", "c"], 10)
    for model, labels in (
        (IncrementalPLS(2), Y),
        (IncrementalPLSClassifier(2), names),
        (IncrementalPLSClassifierCV(2), names),
    ):
        before = vars(model).copy()
        # Of one class, and with other features and another kind of y than the rows to come.
        model.partial_fit(X[:5, 1:], np.full(5, "z") if labels is names else Y[:5], sample_weight=np.zeros(5))
        assert vars(model) == before
        with pytest.raises(ValueError, match="negative"):
            model.partial_fit(X, labels, sample_weight=np.full(30, -1.0))
        assert vars(model) == before
        model.partial_fit(X, labels)
        assert model.n_features_in_ == 5
        if labels is names:
            assert model.classes_.tolist() == ["a", "b", "c"]


def test_classes_given_without_weight_are_known_until_a_fit():
    names = np.repeat(["a", "b"], 15)
    model = IncrementalPLSClassifier(2)
    model.partial_fit(X, names, classes=["a", "b", "c"], sample_weight=0.0)
    assert model.fit(X, names).classes_.tolist() == ["a", "b"]
    model = IncrementalPLSClassifierCV(2).partial_fit(X, names, classes=["a", "b", "c"], sample_weight=0.0)
    assert model.partial_fit(X, names, sample_weight=0.0).partial_fit(X, names).classes_.tolist() == ["a", "b", "c"]
    # A call that fails does not make the model forget them.
    model = IncrementalPLSClassifier(2).partial_fit(X, names, classes=["a", "b", "c"], sample_weight=0.0)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(X * np.nan, names)
    assert model.partial_fit(X, names).classes_.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_name_is_not_a_weight(method):
    with pytest.raises(ValueError, match=r"sample_weight must be numbers.*plstream.open_source"):
        getattr(IncrementalPLS(2), method)(X, Y, sample_weight="w")
