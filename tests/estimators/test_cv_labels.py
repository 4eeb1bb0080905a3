"""IncrementalPLSClassifierCV: expected accuracies against rows, exact ones against refitting for every fold."""

import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import norm
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

from plstream import (
    IncrementalPLSClassifier,
    IncrementalPLSClassifierCV,
    IncrementalPLSCV,
    VIPSelector,
    load,
    open_source,
    save,
)
from plstream.data import Source
from plstream.estimators.cv_folds import folds_of_rows
from plstream.files import fit_source
from tests.checks import streaming_checks
from tests.estimators.test_classifier import spectra
from tests.estimators.test_cv import MERGES, assert_same_table
from tests.real_data import real_data

X, NUMBERS = spectra(200, 20)
NAMES = np.array(["barley", "oats", "rye", "wheat"])
Y = NAMES[NUMBERS]


def models_again(X, y, folds, c, **params):
    """Yield the rows of every fold, and a model of the others."""
    for fold in np.unique(folds):
        train = folds != fold
        yield folds == fold, IncrementalPLSClassifier(c, **params).fit(X[train], y[train])


def expected_from_rows(model, X, y):
    """Return the accuracy of normal distributions with one covariance within classes, for every pair of classes."""
    values = model.decision_function(X)
    if len(model.classes_) == 2:
        values = np.column_stack([-values / 2, values / 2])
    present = np.unique(y)
    right = 0.0
    for label in present:
        if label not in model.classes_:
            continue
        k, chance = np.flatnonzero(model.classes_ == label)[0], 1.0
        for j in range(len(model.classes_)):
            if j != k:
                margin = values[:, k] - values[:, j]
                variance = sum(np.sum((margin[y == i] - margin[y == i].mean()) ** 2) for i in present) / len(y)
                chance *= norm.cdf(margin[y == label].mean() / np.sqrt(variance))
        right += chance * np.mean(y == label)
    return right


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_expected_accuracies_are_those_from_the_rows(scale, n_classes):
    X, y = spectra(150, 12, n_classes)
    folds = np.arange(150) % 3
    table = IncrementalPLSClassifierCV(6, cv=3, scale=scale).fit(X, y, folds=folds).cv_results_
    for c in range(1, 7):
        again = [
            expected_from_rows(model, X[test], y[test]) for test, model in models_again(X, y, folds, c, scale=scale)
        ]
        found = [table[f"split{i}_test_score"][c - 1] for i in range(3)]
        np.testing.assert_allclose(found, again, rtol=1e-9)
        assert table["mean_test_score"][c - 1] == pytest.approx(np.mean(again))
    assert set(table) == {
        "n_components",
        "mean_test_score",
        "se_test_score",
        *(f"split{i}_test_score" for i in range(3)),
    }


@pytest.mark.parametrize("solver", ["gram", "sketch"])
def test_predictions_of_held_out_rows(solver):
    folds = folds_of_rows(0, 200, 4)
    # A sketch of all directions is exact.
    model = IncrementalPLSClassifierCV(6, cv=4, solver=solver, sketch_size=40).fit(X, Y)
    accuracies = model.held_out_accuracy(X, Y)
    for c in range(1, 7):
        expected = np.empty_like(Y)
        for test, again in models_again(X, Y, folds, c):
            expected[test] = again.predict(X[test])
        np.testing.assert_array_equal(model.predict_held_out(X, n_components=c), expected)
        assert accuracies[c - 1] == pytest.approx(np.mean(expected == Y))
    source = open_source(X, Y, batch_size=30)
    np.testing.assert_array_equal(model.predict_held_out(source), model.predict_held_out(X))
    np.testing.assert_allclose(model.held_out_accuracy(source), accuracies)
    np.testing.assert_allclose(model.held_out_accuracy(sparse.csr_matrix(X), Y), accuracies)
    np.testing.assert_allclose(accuracies.max(), model.best_score_, atol=0.05)


def test_exact_accuracies_with_weights_and_folds():
    rng = np.random.default_rng(0)
    folds, weight = rng.integers(0, 3, 200), rng.integers(0, 3, 200).astype(float)
    model = IncrementalPLSClassifierCV(4, cv=3).fit(X, Y, weight, folds=folds)
    repeated = np.repeat(np.arange(200), weight.astype(int))
    expected = IncrementalPLSClassifierCV(4, cv=3).fit(X[repeated], Y[repeated], folds=folds[repeated])
    assert_same_table(model.cv_results_, expected.cv_results_)
    exact = expected.held_out_accuracy(X[repeated], Y[repeated], folds=folds[repeated])
    np.testing.assert_allclose(model.held_out_accuracy(X, Y, weight, folds=folds), exact)
    with pytest.raises(ValueError, match="assigned to folds by folds, so later rows cannot be assigned by rows"):
        model.held_out_accuracy(X, Y)


def test_is_the_classifier_of_all_rows():
    model = IncrementalPLSClassifierCV(8).fit(X, Y)
    chosen = IncrementalPLSClassifier(model.n_components_).fit(X, Y)
    for method in ("predict_proba", "predict_log_proba", "decision_function", "transform"):
        np.testing.assert_allclose(getattr(model, method)(X), getattr(chosen, method)(X), rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), chosen.predict(X))
    np.testing.assert_array_equal(model.predict(X, n_components=1), chosen.predict(X, n_components=1))
    for name in ("vip_", "class_count_", "class_prior_", "coef_"):
        np.testing.assert_allclose(getattr(model, name), getattr(chosen, name), rtol=1e-9, err_msg=name)
    assert model.classes_.tolist() == NAMES.tolist()
    assert model.score(X, Y) == chosen.score(X, Y)
    selector = VIPSelector(IncrementalPLSClassifierCV(8)).fit(X, Y)
    np.testing.assert_allclose(selector.scores_, chosen.vip_, rtol=1e-9)


def test_kinds_of_y():
    by_name = IncrementalPLSClassifierCV(5).fit(X, Y)
    for y in (Y.astype(object), Y.tolist(), Y.astype("S")):
        assert_same_table(IncrementalPLSClassifierCV(5).fit(X, y).cv_results_, by_name.cv_results_)
    numbers = IncrementalPLSClassifierCV(5).fit(X, NUMBERS)
    assert_same_table(numbers.cv_results_, by_name.cv_results_)
    assert numbers.predict(X).dtype.kind == "i"
    told = (
        IncrementalPLSClassifierCV(5).partial_fit(X[:1], NUMBERS[:1], classes=range(4)).partial_fit(X[1:], NUMBERS[1:])
    )
    assert_same_table(told.cv_results_, by_name.cv_results_)
    values = IncrementalPLSCV(5).fit(X, NUMBERS)
    assert "mean_test_rmse" in values.cv_results_
    for name in ("classes_", "predict_proba", "decision_function", "held_out_accuracy", "class_count_", "add_class"):
        assert hasattr(numbers, name), name
        assert not hasattr(values, name), name
    with pytest.raises(ValueError, match="for labels, use IncrementalPLSClassifierCV"):
        IncrementalPLSCV(5).fit(X, Y)


def test_tags():
    assert is_regressor(IncrementalPLSCV())
    model = IncrementalPLSClassifierCV(3)
    assert is_classifier(model)
    assert not is_regressor(model)
    assert is_classifier(IncrementalPLSClassifierCV(3).fit(X, Y))
    assert is_classifier(IncrementalPLSClassifierCV(3).fit(X, NUMBERS))
    # Splits are by label, and the score is the accuracy.
    scores = cross_val_score(model, X, Y, cv=4)
    np.testing.assert_allclose(scores, cross_val_score(model, X, Y, cv=StratifiedKFold(4), scoring="accuracy"))
    assert scores.mean() > 0.6


@settings(max_examples=20, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    cv=st.integers(2, 5),
    scale=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_chunks_and_merges_do_not_matter(sizes, cv, scale, seed):
    rng = np.random.default_rng(seed)
    n = 70
    whole = IncrementalPLSClassifierCV(4, cv=cv, scale=scale).partial_fit(X[:n], Y[:n], classes=NAMES)
    model, start = IncrementalPLSClassifierCV(4, cv=cv, scale=scale), 0
    while start < n:
        size = sizes.pop(0) if len(sizes) > 1 else sizes[0]
        rows = slice(start, min(start + size, n))
        model.partial_fit(X[rows], Y[rows], classes=NAMES)
        start += size
    assert_same_table(model.cv_results_, whole.cv_results_)
    folds, part = folds_of_rows(0, n, cv), rng.integers(0, 2, n)
    part[:8] = np.tile([0, 1], 4)
    # Each part knows the classes of its own rows alone.
    parts = [np.flatnonzero((part == i) & (NUMBERS[:n] != (i * 3))) for i in range(2)]
    models = [
        IncrementalPLSClassifierCV(4, cv=cv, scale=scale).partial_fit(X[rows], Y[rows], folds=folds[rows])
        for rows in parts
    ]
    rows = np.sort(np.concatenate(parts))
    expected = IncrementalPLSClassifierCV(4, cv=cv, scale=scale).partial_fit(X[rows], Y[rows], folds=folds[rows])
    merged = models[0].merge(models[1])
    assert merged.classes_.tolist() == expected.classes_.tolist()
    assert_same_table(merged.cv_results_, expected.cv_results_)


def test_adding_a_class():
    few = NUMBERS < 3
    model = IncrementalPLSClassifierCV(4).partial_fit(X[few], Y[few])
    assert len(model.cv_results_) > 3
    model.add_class("wheat").partial_fit(X[~few], Y[~few])
    order = np.argsort(~few, kind="stable")
    expected = IncrementalPLSClassifierCV(4).partial_fit(X[order], Y[order])
    assert_same_table(model.cv_results_, expected.cv_results_)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


def test_sources(tmp_path, monkeypatch):
    expected = IncrementalPLSClassifierCV(4).fit(X, Y)
    lines = [",".join([f"x{i}" for i in range(20)] + ["kind"])]
    lines += [",".join([*map(repr, row.tolist()), label]) for row, label in zip(X, Y, strict=True)]
    path = tmp_path / "data.csv"
    path.write_text("\n".join(lines))
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", NUMBERS)
    reads, records = [], Source.records
    monkeypatch.setattr(Source, "records", lambda self, start=0: reads.append(start) or records(self, start))
    # Labels have a read of their own. A text is copied, and an array is mapped.
    for source, expected_reads in (
        (open_source(path, target="kind", batch_size=30), [0]),
        (open_source(tmp_path / "X.npy", target=tmp_path / "y.npy", batch_size=30), []),
    ):
        reads.clear()
        model = IncrementalPLSClassifierCV(4).fit(source)
        assert reads == expected_reads
        assert_same_table(model.cv_results_, expected.cv_results_)
        assert_same_table(IncrementalPLSClassifierCV(4).partial_fit(source).cv_results_, expected.cv_results_)
        by_blocks = fit_source(IncrementalPLSClassifierCV(4), source)
        assert_same_table(by_blocks.cv_results_, expected.cv_results_)
        np.testing.assert_array_equal(
            NAMES[np.searchsorted(model.classes_, model.predict(source))], expected.predict(X)
        )
    monkeypatch.setattr(Source, "rereadable", False)
    stream = open_source(X, Y, batch_size=30)
    # What can be read only once is looked at as it is read.
    assert_same_table(IncrementalPLSClassifierCV(4).fit(stream).cv_results_, expected.cv_results_)


@pytest.mark.parametrize("model", [IncrementalPLSClassifierCV(2), IncrementalPLSClassifier(2, solver="gram")])
def test_blocks_of_one_class(model):
    order = np.argsort(NUMBERS, kind="stable")
    source = open_source(X[order], Y[order], batch_size=7)
    expected = clone(model).fit(X[order], Y[order]).predict_proba(X)
    np.testing.assert_allclose(fit_source(clone(model), source).predict_proba(X), expected, rtol=1e-7, atol=1e-12)


def test_sparse_and_float32_rows():
    thin = np.where(np.abs(X - X.mean(axis=0)) < 3, 0.0, X)
    expected = IncrementalPLSClassifierCV(4).fit(thin, Y).cv_results_
    assert_same_table(IncrementalPLSClassifierCV(4).fit(sparse.csr_matrix(thin), Y).cv_results_, expected)
    single = X.astype(np.float32)
    exact = IncrementalPLSClassifierCV(4).fit(single.astype(float), Y).cv_results_
    assert_same_table(IncrementalPLSClassifierCV(4).fit(np.asfortranarray(single), Y).cv_results_, exact)


def test_files(tmp_path):
    model = IncrementalPLSClassifierCV(4, cv=3).partial_fit(X[:120], Y[:120])
    for asked in (False, True):
        if asked:
            model.predict(X)
        save(model, tmp_path / "model.plstream")
        for again in (load(tmp_path / "model.plstream"), pickle.loads(pickle.dumps(model))):  # noqa: S301
            again.partial_fit(X[120:], Y[120:])
            whole = clone(model).partial_fit(X[:120], Y[:120]).partial_fit(X[120:], Y[120:])
            assert_same_table(again.cv_results_, whole.cv_results_)
            np.testing.assert_array_equal(again.predict_proba(X), whole.predict_proba(X))


@pytest.mark.filterwarnings("ignore:sketch_size:UserWarning")
@pytest.mark.parametrize(("solver", "m"), [("gram", 150), ("sketch", 1500)])
def test_memory_is_as_stated(solver, m):
    X, y = spectra(900, m, 30)
    model = IncrementalPLSClassifierCV(3, cv=4, solver=solver, sketch_size=40)
    stated = model.memory_usage(m, 30)
    tracemalloc.start()
    try:
        for start in range(0, len(X), 30):
            model.partial_fit(X[start : start + 30], y[start : start + 30], classes=range(30))
        model.n_components_  # noqa: B018
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert stated / 6 < peak <= stated


def test_cross_validation_display():
    pytest.importorskip("matplotlib").use("Agg")
    from plstream.plots import CrossValidationDisplay

    model = IncrementalPLSClassifierCV(4).fit(X, Y)
    display = CrossValidationDisplay.from_estimator(model)
    np.testing.assert_array_equal(display.error, model.cv_results_["mean_test_score"])


# How good it is.


@pytest.mark.parametrize(
    ("read", "most", "estimate", "cost"),
    [(load_digits, 40, 0.05, 0.006), (load_wine, 13, 0.02, 0.006), (load_breast_cancer, 30, 0.02, 0.006)],
)
def test_choices_cost_little(read, most, estimate, cost):
    X, y = read(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    model = IncrementalPLSClassifierCV(most).fit(X[order], y[order])
    exact = model.held_out_accuracy(X[order], y[order])
    assert abs(model.best_score_ - exact[model.n_components_ - 1]) < estimate
    assert exact.max() - exact[model.n_components_ - 1] < cost


def test_a_choice_for_many_classes():
    data = real_data("tiny_imagenet/vgg16_pool5_32px_val.npz")
    chosen = data["y"] < 20
    X, y = data["X"][chosen].astype(np.float64), data["y"][chosen]
    order = np.random.default_rng(0).permutation(len(X))
    model = IncrementalPLSClassifierCV(40).fit(X[order], y[order])
    exact = model.held_out_accuracy(X[order], y[order])
    assert exact.max() - exact[model.n_components_ - 1] < 0.015


@pytest.mark.filterwarnings("ignore:sketch_size:UserWarning")
def test_a_small_sketch_keeps_scores_in_range():
    digits, y = load_digits(return_X_y=True)
    exact = IncrementalPLSClassifierCV(8).fit(digits, y)
    model = IncrementalPLSClassifierCV(8, solver="sketch", sketch_size=12).fit(digits, y)
    scores = model.cv_results_["mean_test_score"]
    assert ((scores >= 0) & (scores <= 1)).all()
    np.testing.assert_allclose(scores[:4], exact.cv_results_["mean_test_score"][:4], atol=0.1)


# Hostile data.


@pytest.mark.parametrize("x_unit", [1e-150, 1e150])
@pytest.mark.parametrize("scale", [True, False])
def test_units_do_not_matter(x_unit, scale):
    expected = IncrementalPLSClassifierCV(6, scale=scale).fit(X, Y).cv_results_
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        actual = IncrementalPLSClassifierCV(6, scale=scale).fit(X * x_unit, Y).cv_results_
    assert_same_table(actual, expected)


def test_far_from_zero():
    rows = (X + 1e8) - 1e8
    expected = IncrementalPLSClassifierCV(5).fit(rows, Y).cv_results_
    assert_same_table(IncrementalPLSClassifierCV(5).fit(rows + 1e8, Y).cv_results_, expected, rtol=1e-6)


def test_folds_of_one_class():
    """Every fold is of a class that the model of the others has never seen."""
    model = IncrementalPLSClassifierCV(3, cv=4).fit(X, Y, folds=NUMBERS)
    assert (model.cv_results_["mean_test_score"] == 0).all()
    assert (model.held_out_accuracy(X, Y, folds=NUMBERS) == 0).all()
    assert model.n_components_ == 1
    # In one fold there is only the first class, which all others have as well.
    folds = np.where(np.arange(200) % 3 == 0, np.where(NUMBERS == 0, 0, 1), 1 + np.arange(200) % 3)
    model = IncrementalPLSClassifierCV(3, cv=4).fit(X, Y, folds=folds)
    for test, again in models_again(X, Y, folds, 2):
        fold = folds[test][0]
        expected = expected_from_rows(again, X[test], Y[test])
        assert model.cv_results_[f"split{fold}_test_score"][1] == pytest.approx(expected, rel=1e-8)


def test_classes_of_a_single_row():
    y = Y.copy()
    y[7] = "emmer"
    model = IncrementalPLSClassifierCV(4).fit(X, y)
    expected = np.array([np.mean(model.predict_held_out(X, c) == y) for c in range(1, 5)])
    np.testing.assert_allclose(model.held_out_accuracy(X, y), expected)
    assert np.isfinite(model.cv_results_["mean_test_score"]).all()
    assert model.predict_held_out(X)[7] != "emmer"


def test_constant_columns():
    expected = IncrementalPLSClassifierCV(4).fit(X, Y)
    padded = np.column_stack([X, np.full(200, 8.0)])
    assert_same_table(IncrementalPLSClassifierCV(4).fit(padded, Y).cv_results_, expected.cv_results_)
    padded[3, -1] = 9.0
    assert np.isfinite(IncrementalPLSClassifierCV(4).fit(padded, Y).cv_results_["mean_test_score"]).all()
    with pytest.warns(UserWarning, match="only 0 component"):
        nothing = IncrementalPLSClassifierCV(4).fit(np.ones((200, 3)), Y)
    assert nothing.n_components_ == 1
    # Without further information, the largest class is predicted.
    np.testing.assert_allclose(nothing.held_out_accuracy(np.ones((200, 3)), Y), np.mean(Y == "wheat"))
    assert set(nothing.predict(np.ones((5, 3)))) == {"wheat"}


def test_few_rows():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in (2, 3, 4, 7):
            model = IncrementalPLSClassifierCV(5).fit(X[:n], np.arange(n) % 2)
            assert np.isfinite(model.cv_results_["mean_test_score"]).all()
            assert model.predict(X[:n]).shape == (n,)
        # In rows that are copies of each other there is nothing within classes.
        copies = np.repeat(X[[0, 2]], 20, axis=0)
        model = IncrementalPLSClassifierCV(3).fit(copies, np.repeat(["a", "b"], 20))
        assert model.best_score_ == pytest.approx(1.0)
        assert model.n_components_ == 1


def test_bad_calls():
    good = IncrementalPLSClassifierCV(3).fit(X, Y)
    before = good.cv_results_
    for call, message in [
        (lambda: good.partial_fit(X[:1], np.array(["emmer"])), "Label emmer is not among .* add_class"),
        (lambda: good.partial_fit(X[:1], Y[:1], classes=["rye", "emmer"]), "emmer is not among the classes"),
        (lambda: good.partial_fit(X[:4], NUMBERS[:4]), "were strings in the first call, but are integers now"),
        (lambda: good.merge(IncrementalPLSCV(3).fit(X, NUMBERS)), "Only another IncrementalPLSClassifierCV"),
        (lambda: good.merge(IncrementalPLSClassifierCV(3).fit(X, NUMBERS)), "type of labels"),
        (lambda: good.merge(IncrementalPLSClassifier(3).partial_fit(X, Y)), "Only another IncrementalPLS"),
        (lambda: IncrementalPLSClassifierCV().partial_fit(X[:5], np.full(5, "rye")), "only one class"),
        (lambda: IncrementalPLSClassifierCV().fit(X, X[:, 0]), "not integers"),
        (lambda: IncrementalPLSCV().partial_fit(X, Y), "must hold numbers.*use IncrementalPLSClassifierCV"),
        (lambda: IncrementalPLSClassifierCV(cv=KFold(3)).fit(X, Y).partial_fit(X, Y), "set cv to a number"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            call()
    assert_same_table(good.cv_results_, before, rtol=0)


@pytest.mark.filterwarnings("ignore:X and y have only:UserWarning")
@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        *streaming_checks(IncrementalPLSClassifierCV(max_components=1)),
        *streaming_checks(IncrementalPLSClassifierCV(max_components=4), MERGES),
        *streaming_checks(IncrementalPLSClassifierCV(max_components=1, cv=2, solver="sketch", scale=False)),
    ],
)
def test_streaming(estimator, check):
    check(estimator)
