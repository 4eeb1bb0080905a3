"""Cross-validation of rows with missing values, against a plain loop of fits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold

from plstream import (
    IncrementalPLS,
    IncrementalPLSClassifier,
    IncrementalPLSClassifierCV,
    IncrementalPLSCV,
    load,
    open_source,
    save,
)
from plstream.estimators.cv_folds import folds_of_rows

rng = np.random.default_rng(0)
SCORES = rng.normal(size=(240, 4)) * [3, 2, 1, 0.5]
X = SCORES @ rng.normal(size=(4, 12)) + 0.1 * rng.normal(size=(240, 12)) + 5
Y = SCORES @ rng.normal(size=(4, 2)) + 0.1 * rng.normal(size=(240, 2))
y = Y[:, 0]
LABELS = np.array(["a", "b", "c"])[np.digitize(y, [-2, 2])]
GAPS = np.where(rng.random(X.shape) < 0.15, np.nan, X)
FOLDS = folds_of_rows(0, 240, 5)


def model(most=6, **how):
    return IncrementalPLSCV(most, missing="model", **how)


def loop(X, Y, folds, most=6, weight=None, **how):
    """Return root mean squared errors of fits of their own, by fold, number of components and response."""
    found = []
    for fold in np.unique(folds):
        train, test = folds != fold, folds == fold
        w = np.ones(len(X)) if weight is None else weight
        own = IncrementalPLS(most, missing="model", **how).fit(X[train], Y[train], w[train])
        rmse = []
        for k in range(1, most + 1):
            residual = own.predict(X[test], n_components=k) - Y[test]
            known = ~np.isnan(residual)
            totals = (w[test] * known.T).sum(axis=-1)
            rmse.append(np.sqrt((w[test] * np.where(known, residual, 0).T ** 2).sum(axis=-1) / totals))
        found.append(rmse)
    return np.array(found)


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("target", [y, Y], ids=["one response", "two responses"])
def test_errors_are_those_of_a_loop(target, scale):
    found = model(scale=scale).fit(GAPS, target)
    rmse = loop(GAPS, target, FOLDS, scale=scale)
    for fold in range(5):
        np.testing.assert_allclose(found.cv_results_[f"split{fold}_test_rmse"], rmse[fold], rtol=1e-9)
    whole = IncrementalPLS(6, missing="model", scale=scale).fit(GAPS, target)
    np.testing.assert_allclose(
        found.predict(GAPS), whole.predict(GAPS, n_components=found.n_components_), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_array_equal(found.n_missing_, np.isnan(GAPS).sum(axis=0))
    assert found.n_samples_seen_ == 240


def test_splitters_weights_and_responses_that_are_missing():
    weight = rng.uniform(0.5, 2, 240)
    late = Y.copy()
    late[::3, 0] = np.nan
    late[::9] = np.nan
    labelled = ~np.isnan(late).all(axis=1)
    found = model(cv=KFold(4)).fit(GAPS, late, weight)
    folds = np.repeat(np.arange(4), 60)
    rmse = loop(GAPS[labelled], late[labelled], folds[labelled], weight=weight[labelled])
    for fold in range(4):
        np.testing.assert_allclose(found.cv_results_[f"split{fold}_test_rmse"], rmse[fold], rtol=1e-9)
    assert found.n_samples_seen_ == labelled.sum()


def test_labels():
    found = IncrementalPLSClassifierCV(5, missing="model").fit(GAPS, LABELS)
    right = np.zeros(5)
    for fold in range(5):
        train, test = fold != FOLDS, fold == FOLDS
        own = IncrementalPLSClassifier(5, missing="model").fit(GAPS[train], LABELS[train])
        predicted = own.predict(GAPS[test])
        np.testing.assert_array_equal(found.predict_held_out(GAPS, n_components=5)[test], predicted)
        for k in range(5):
            right[k] += (own.predict(GAPS[test], n_components=k + 1) == LABELS[test]).sum()
    np.testing.assert_allclose(found.held_out_accuracy(GAPS, LABELS), right / 240)
    np.testing.assert_allclose(found.cv_results_["mean_test_score"], right / 240, atol=0.06)
    whole = IncrementalPLSClassifier(5, missing="model").fit(GAPS, LABELS)
    np.testing.assert_array_equal(found.predict(GAPS), whole.predict(GAPS, n_components=found.n_components_))


def test_held_out_predictions_are_those_of_a_loop():
    found = model().fit(GAPS, y)
    predicted = found.predict_held_out(GAPS, n_components=3)
    for fold in range(5):
        train, test = fold != FOLDS, fold == FOLDS
        own = IncrementalPLS(6, missing="model").fit(GAPS[train], y[train])
        np.testing.assert_allclose(predicted[test], own.predict(GAPS[test], n_components=3), rtol=1e-9)


def test_rows_that_were_not_trained_on_have_no_folds():
    late = np.where(np.arange(240) % 7 == 3, np.nan, y)
    known = ~np.isnan(late)
    found = model().fit(open_source(GAPS, target=late))
    predicted = found.predict_held_out(GAPS[known])
    np.testing.assert_allclose(predicted, model().fit(GAPS[known], y[known]).predict_held_out(GAPS[known]), rtol=1e-9)
    for rows in (GAPS, open_source(GAPS, target=late, batch_size=50)):
        with pytest.raises(ValueError, match=f"more rows than the {known.sum()} that the model was trained on"):
            found.predict_held_out(rows)


@pytest.mark.parametrize("cls", [IncrementalPLSCV, IncrementalPLSClassifierCV])
@pytest.mark.parametrize("solver", ["auto", "gram", "sketch"])
def test_complete_data_is_learnt_as_ever(solver, cls):
    target = y if cls is IncrementalPLSCV else LABELS
    known, found = (cls(6, solver=solver, missing=how).fit(X, target) for how in ("error", "model"))
    assert known.solver_ == found.solver_
    for name, value in known.cv_results_.items():
        np.testing.assert_array_equal(found.cv_results_[name], value)
    np.testing.assert_array_equal(found.coef_, known.coef_)
    np.testing.assert_array_equal(found.predict_held_out(X), known.predict_held_out(X))
    known, found = (cls(6, missing=how).partial_fit(X, target) for how in ("error", "model"))
    np.testing.assert_array_equal(found.coef_, known.coef_)


def test_rows_change_only_the_errors_of_models_they_train():
    """Held-out responses do not change the model that predicts them."""
    other = y.copy()
    other[FOLDS == 2] = rng.normal(size=(FOLDS == 2).sum())
    for fit in (lambda target: model().fit(GAPS, target), lambda target: model().partial_fit(GAPS, target)):
        first, second = (fit(target).predict_held_out(GAPS, n_components=3) for target in (y, other))
        np.testing.assert_array_equal(first[FOLDS == 2], second[FOLDS == 2])
        assert not np.allclose(first[FOLDS == 1], second[FOLDS == 1])


@settings(deadline=None, max_examples=10)
@given(cuts=st.lists(st.integers(1, 239), max_size=5), solver=st.sampled_from(["gram", "sketch"]))
def test_chunks_do_not_matter(cuts, solver):
    late = np.where(np.arange(240) % 7 == 0, np.nan, y)
    whole = model(solver=solver).partial_fit(GAPS, late)
    parts = model(solver=solver)
    for rows in np.split(np.arange(240), sorted(set(cuts))):
        parts.partial_fit(GAPS[rows], late[rows])
    np.testing.assert_allclose(parts.cv_results_["mean_test_rmse"], whole.cv_results_["mean_test_rmse"], rtol=1e-9)
    np.testing.assert_array_equal(parts.n_missing_, whole.n_missing_)


def test_streams_are_close_to_fits():
    fit, stream = model().fit(GAPS, y), model().partial_fit(GAPS, y)
    np.testing.assert_allclose(stream.cv_results_["mean_test_rmse"], fit.cv_results_["mean_test_rmse"], rtol=0.35)
    assert stream.score(GAPS, y) > 0.97
    fit.partial_fit(GAPS[:50], y[:50])
    assert fit.n_samples_seen_ == 290
    assert fit.score(GAPS, y) > 0.97
    merged = model().partial_fit(GAPS[:100], y[:100]).merge(model().fit(GAPS[100:], y[100:]))
    assert merged.n_samples_seen_ == 240
    np.testing.assert_array_equal(merged.n_missing_, np.isnan(GAPS).sum(axis=0))
    complete = model().fit(X[:100], y[:100]).merge(model().fit(GAPS[100:], y[100:]))
    assert complete.score(GAPS, y) > 0.97


def test_a_feature_without_values_in_a_fold():
    off = GAPS.copy()
    off[FOLDS == 1, 3] = np.nan
    assert model().fit(off, y).best_score_ > 0.95
    stream = model().partial_fit(off, y)
    assert stream.best_score_ > 0.95
    assert abs(stream.x_mean_[3] - np.nanmean(off[:, 3])) < 0.3
    off[FOLDS != 1, 3] = np.nan
    off[FOLDS == 1, 3] = 1.0
    fitted = model().fit(GAPS, y)
    before = fitted.coef_
    with pytest.raises(ValueError, match="Column 3 of X has no value outside fold 1"):
        fitted.fit(off, y)
    np.testing.assert_array_equal(fitted.coef_, before)


@pytest.mark.parametrize("cls", [IncrementalPLSCV, IncrementalPLSClassifierCV])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_files(cls, method, tmp_path):
    target = y if cls is IncrementalPLSCV else LABELS
    fitted = getattr(cls(4, missing="model"), method)(GAPS, target)
    save(fitted, tmp_path / "m.plstream")
    again = load(tmp_path / "m.plstream")
    np.testing.assert_array_equal(again.predict(GAPS), fitted.predict(GAPS))
    np.testing.assert_array_equal(again.predict_held_out(GAPS), fitted.predict_held_out(GAPS))
    for each in (fitted, again):
        each.partial_fit(GAPS[:30], target[:30])
    np.testing.assert_array_equal(again.coef_, fitted.coef_)


@pytest.mark.parametrize("rows", [X, GAPS], ids=["gaps in y", "gaps in both"])
@pytest.mark.parametrize("most", [6, 12], ids=["by Gram matrices", "by reads"])
def test_sources(rows, most, tmp_path):
    table = np.column_stack([rows, np.where(np.arange(240) % 5 == 0, np.nan, y)])
    np.save(tmp_path / "rows.npy", table)
    source = open_source(tmp_path / "rows.npy", target=12)
    found = model(most, batch_size=32).fit(source)
    at_once = model(most).fit(table[:, :12], table[:, 12])
    np.testing.assert_allclose(found.cv_results_["mean_test_rmse"], at_once.cv_results_["mean_test_rmse"], rtol=0.03)
    assert found.n_samples_seen_ == at_once.n_samples_seen_ == 192


def test_folds_that_are_columns_of_a_source():
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    late, folds = np.where(np.arange(240) % 5 == 0, np.nan, y), rng.integers(0, 5, 240)
    frame = pd.DataFrame(GAPS, columns=[f"x{j}" for j in range(12)]).assign(y=late, fold=folds)
    found = model(batch_size=32).fit(open_source(frame, target="y", folds="fold"))
    known = ~np.isnan(late)
    expected = model().fit(GAPS[known], late[known], folds=folds[known])
    np.testing.assert_allclose(found.cv_results_["mean_test_rmse"], expected.cv_results_["mean_test_rmse"], rtol=0.03)
    streamed = model().partial_fit(open_source(frame, target="y", folds="fold"))
    plain = model().partial_fit(GAPS[known], late[known], folds=folds[known])
    np.testing.assert_allclose(streamed.cv_results_["mean_test_rmse"], plain.cv_results_["mean_test_rmse"], rtol=1e-9)


def test_errors():
    message = r"X contains NaN \(first in row 3, column 2\): drop or replace such values, or set missing='model'"
    bad = X.copy()
    bad[3, 2] = np.nan
    for each, target in ((IncrementalPLSCV(3), y), (IncrementalPLSClassifierCV(3), LABELS)):
        for method in (each.fit, each.partial_fit):
            with pytest.raises(ValueError, match=message):
                method(bad, target)
    infinite = GAPS.copy()
    infinite[7, 2] = np.inf
    for call in (model().fit, model().partial_fit):
        with pytest.raises(ValueError, match=r"infinity \(first in row 7, column 2\)"):
            call(infinite, y)
    with pytest.raises(ValueError, match="missing"):
        IncrementalPLSCV(3, missing="mean").fit(X, y)
